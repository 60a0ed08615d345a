//! Links: what counts is where a path leads, not what it is called.
//!
//! These tests need a real file system, which is why they live beside the sessions and not with the other approvals.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{Answer, Approval, CancellationToken, Question, RawArguments, ToolCall, ToolName};
use hermes_exec::LocalEnvironment;
use hermes_runtime::{ApprovalMode, CallReport, Dispatcher, PlainJudge, Registry, Scope, Silent, Status, Task};
use hermes_testkit::{ScriptedPerson, TempHome};
use hermes_tools::Builtins;
use serde_json::{Value, json};

/// A working folder, a secret outside of it, and a person who may be asked.
struct Place {
    home: TempHome,
    outside: PathBuf,
    dispatcher: Dispatcher,
    visible: BTreeSet<ToolName>,
    person: Arc<ScriptedPerson>,
    task: Task,
}

impl Place {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let home = TempHome::new();
        let work = home.work();
        Self::starting_in(home, &work, answers)
    }

    fn starting_in(home: TempHome, cwd: &Path, answers: impl IntoIterator<Item = Answer>) -> Self {
        let outside = home.user_home().join("private");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret.txt"), "the secret word\n").unwrap();
        fs::write(home.user_home().join("secret.txt"), "the other secret word\n").unwrap();
        let registry = Arc::new(Registry::new());
        registry.built_in(&Builtins).unwrap();
        let visible = registry.snapshot().entries().map(|entry| entry.tool.spec().name.clone()).collect();
        let environment = LocalEnvironment::new(cwd, &home.user_home(), std::env::vars_os(), &[]).unwrap();
        let person = Arc::new(ScriptedPerson::new(answers));
        let task = Task::new(Arc::new(environment)).with_asker(Arc::clone(&person) as _);
        let dispatcher = Dispatcher::new(registry, Arc::new(PlainJudge));
        Self { home, outside, dispatcher, visible, person, task }
    }

    /// Makes a link in the working folder.
    fn link(&self, name: &str, to: impl AsRef<Path>) {
        symlink(to, self.home.work().join(name)).unwrap();
    }

    async fn call(&self, name: &str, arguments: Value) -> CallReport {
        let call =
            ToolCall { id: "call".into(), name: name.into(), arguments: RawArguments::Text(arguments.to_string()) };
        let cancel = CancellationToken::new();
        let scope = Scope {
            task: &self.task,
            visible: &self.visible,
            approve: ApprovalMode::Ask,
            cancel: &cancel,
            observer: &Silent,
        };
        self.dispatcher.call(&call, &scope).await
    }

    async fn read(&self, path: impl AsRef<Path>) -> CallReport {
        self.call("read_file", json!({ "path": path.as_ref() })).await
    }

    /// What the person was told, a text a question.
    fn told(&self) -> Vec<String> {
        let told = |question| match question {
            Question::Approval { explain, .. } => explain.join("\n"),
            Question::Rehearsed { command, .. } => panic!("{command}"),
            Question::Clarify { question, .. } => panic!("{question}"),
        };
        self.person.questions().into_iter().map(told).collect()
    }
}

#[tokio::test]
async fn a_link_that_leads_outside_asks_and_the_question_says_where_it_leads() {
    let place = Place::new([]);
    let secret = place.outside.join("secret.txt");
    place.link("notes.txt", &secret);
    place.link("folder", &place.outside);
    place.link("again", "folder");
    for path in ["notes.txt", "folder/secret.txt", "again/secret.txt", "./again/../again/secret.txt"] {
        let before = place.told().len();
        let report = place.read(path).await;
        assert_eq!(report.status, Status::Refused, "{path}: {}", report.text);
        assert!(!report.text.contains("secret word"), "{path}: {}", report.text);
        let told = place.told();
        assert_eq!(told.len(), before + 1, "{path}");
        assert!(told[before].contains(secret.to_str().unwrap()), "{path}: {}", told[before]);
    }
}

#[tokio::test]
async fn a_link_that_stays_inside_is_read_unasked() {
    let place = Place::new([]);
    place.home.write("deep/er/a.txt", "inside\n");
    place.link("near", "deep/er");
    place.link("far", place.home.work().join("deep"));
    for path in ["near/a.txt", "far/er/a.txt"] {
        let report = place.read(path).await;
        assert_eq!(report.status, Status::Ok, "{path}: {}", report.text);
        assert!(report.text.contains("1|inside"), "{path}: {}", report.text);
    }
    assert!(place.told().is_empty());
}

#[tokio::test]
async fn a_session_that_starts_in_a_link_is_inside_of_what_it_leads_to() {
    let home = TempHome::new();
    let link = home.user_home().join("project");
    symlink(home.work(), &link).unwrap();
    let place = Place::starting_in(home, &link, []);
    let real = place.home.write("a.txt", "inside\n");
    for path in [PathBuf::from("a.txt"), link.join("a.txt"), real] {
        assert_eq!(place.read(&path).await.status, Status::Ok, "{}", path.display());
    }
    assert!(place.told().is_empty());
}

#[tokio::test]
async fn dots_after_a_link_mean_the_same_to_the_judge_and_to_the_tool() {
    let place = Place::new([]);
    place.link("folder", &place.outside);
    // For the kernel this is the secret beside `private`; for us it is a file of the working folder.
    let report = place.read("folder/../secret.txt").await;
    assert_eq!(report.status, Status::Error, "{}", report.text);
    assert!(report.text.contains("no such file") && !report.text.contains("secret word"), "{}", report.text);
    assert!(place.told().is_empty());
}

#[tokio::test]
async fn a_path_that_leads_in_a_circle_asks_and_a_yes_to_it_is_not_remembered() {
    let place = Place::new([Answer::Approval(Approval::Session)]);
    place.link("one", "two");
    place.link("two", "one");
    // The person says yes, and the tool finds out that there is nothing to read.
    assert_eq!(place.read("one").await.status, Status::Error);
    assert_eq!(place.read("one").await.status, Status::Refused);
    let told = place.told();
    assert_eq!(told.len(), 2);
    assert!(told[0].contains("cannot be resolved"), "{}", told[0]);
}

#[tokio::test]
async fn yes_for_the_session_covers_the_place_and_not_the_link() {
    let place = Place::new([Answer::Approval(Approval::Session)]);
    let secret = place.outside.join("secret.txt");
    place.link("notes.txt", &secret);
    assert_eq!(place.read("notes.txt").await.status, Status::Ok);
    // The same place under its own name is the same thing.
    assert_eq!(place.read(&secret).await.status, Status::Ok);
    assert_eq!(place.told().len(), 1);

    fs::remove_file(place.home.work().join("notes.txt")).unwrap();
    place.link("notes.txt", place.home.user_home().join("secret.txt"));
    let report = place.read("notes.txt").await;
    assert_eq!(report.status, Status::Refused, "{}", report.text);
    assert_eq!(place.told().len(), 2);
}

#[tokio::test]
async fn a_write_through_a_link_asks_about_the_file_that_would_change() {
    let place = Place::new([Answer::Approval(Approval::Deny), Answer::Approval(Approval::Deny)]);
    let (old, new) = (place.outside.join("secret.txt"), place.outside.join("new.txt"));
    place.link("old.txt", &old);
    // A link to nothing still decides where a new file would appear.
    place.link("new.txt", &new);
    for (path, target) in [("old.txt", &old), ("new.txt", &new)] {
        let before = place.told().len();
        let report = place.call("write_file", json!({ "path": path, "content": "x" })).await;
        assert_eq!(report.status, Status::Refused, "{}", report.text);
        assert!(place.told()[before].contains(target.to_str().unwrap()), "{path}: {}", place.told()[before]);
    }
    assert_eq!(fs::read_to_string(&old).unwrap(), "the secret word\n");
    assert!(!new.exists());
}

#[tokio::test]
async fn a_question_about_a_link_that_stays_inside_says_where_it_leads_too() {
    let place = Place::new([]);
    let real = place.home.write("deep/real.txt", "precious\n");
    place.link("innocent.txt", "deep/real.txt");
    place.link("here", "deep");
    place.call("write_file", json!({ "path": "innocent.txt", "content": "x" })).await;
    place.call("terminal", json!({ "command": "make clean", "workdir": "here" })).await;
    let told = place.told();
    assert!(told[0].contains(real.to_str().unwrap()), "{}", told[0]);
    assert!(told[1].contains(real.parent().unwrap().to_str().unwrap()), "{}", told[1]);
    assert_eq!(place.home.read("deep/real.txt"), "precious\n");
}

#[tokio::test]
async fn a_search_of_the_directory_does_not_leave_it_through_a_link() {
    let place = Place::new([]);
    place.home.write("a.txt", "a harmless word\n");
    place.link("notes.txt", place.outside.join("secret.txt"));
    place.link("folder", &place.outside);
    let report = place.call("search_files", json!({ "pattern": "word" })).await;
    assert_eq!(report.status, Status::Ok, "{}", report.text);
    assert!(report.text.contains("harmless") && !report.text.contains("secret"), "{}", report.text);
    let report = place.call("search_files", json!({ "pattern": "secret", "target": "files" })).await;
    assert!(!report.text.contains("secret.txt"), "{}", report.text);
    assert!(place.told().is_empty());

    // A search that begins at such a link is one outside, and asks.
    for path in ["notes.txt", "folder"] {
        let report = place.call("search_files", json!({ "pattern": "word", "path": path })).await;
        assert_eq!(report.status, Status::Refused, "{path}: {}", report.text);
    }
    assert_eq!(place.told().len(), 2);
}
