//! Who decides: what runs by itself, what needs a yes, what a yes covers, and that silence is never one.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hermes_core::{
    Answer, Approval, Concern, Effect, JsonMap, Judge, JudgeRequest, Question, ToolCx, Touches, Verdict,
};
use hermes_runtime::{ApprovalMode, CallReport, Status, Task};
use hermes_testkit::{FakeEnvironment, FakeTool, ScriptedPerson};
use serde_json::{Value, json};
use setting::{Setting, answer, error};

const ONCE: Answer = Answer::Approval(Approval::Once);
const SESSION: Answer = Answer::Approval(Approval::Session);
const DENY: Answer = Answer::Approval(Approval::Deny);

fn path(arguments: &JsonMap, cx: &ToolCx) -> PathBuf {
    cx.resolve(arguments["path"].as_str().unwrap())
}

fn reader() -> Arc<FakeTool> {
    let tool = FakeTool::new("look").effect(Effect::Read);
    Arc::new(tool.touching(|arguments, cx| Touches::reading(path(arguments, cx))))
}

fn writer(name: &str) -> Arc<FakeTool> {
    let tool = FakeTool::new(name).effect(Effect::Write);
    Arc::new(tool.touching(|arguments, cx| Touches::writing(path(arguments, cx)).because("it will contain ten bytes")))
}

fn shell(name: &str) -> Arc<FakeTool> {
    let tool = FakeTool::new(name).effect(Effect::Execute);
    Arc::new(tool.touching(|arguments, cx| {
        let mut touches = Touches::executing(arguments["command"].as_str().unwrap());
        touches.runs_in = arguments.get("workdir").map(|workdir| cx.resolve(workdir.as_str().unwrap()));
        touches
    }))
}

fn person(answers: impl IntoIterator<Item = Answer>) -> Arc<ScriptedPerson> {
    Arc::new(ScriptedPerson::new(answers))
}

/// The fields of an approval question.
struct Asked {
    tool: String,
    cwd: PathBuf,
    subject: String,
    explain: Vec<String>,
    scope: String,
}

fn only_question(person: &ScriptedPerson) -> Asked {
    let [question] = <[Question; 1]>::try_from(person.questions()).unwrap();
    let Question::Approval { tool, cwd, subject, explain, scope, .. } = question else {
        panic!("{question:?} is no approval")
    };
    Asked { tool, cwd, subject, explain, scope }
}

fn assert_refused(report: &CallReport, why: &str) {
    assert_eq!(report.status, Status::Refused, "{}", report.text);
    let told = error(report);
    assert!(told.contains("was not run") && told.contains(why), "{told}");
    assert_eq!(answer(report)["status"], "refused");
    assert_eq!(report.stop, None, "a refusal ends the call, not the turn");
}

// --------------------------------------------------------------------------------------------------- what may run

#[tokio::test]
async fn reads_inside_the_directory_or_the_stored_results_run_unasked() {
    let (look, person) = (reader(), person([]));
    let setting = Setting::new([&look]).asking(&person);
    for path in ["a.txt", "./sub/../a.txt", "/project", "/project/deep/er/b.txt", "/tmp/hermes-fake/results/call_1.txt"]
    {
        assert_eq!(setting.call("look", json!({ "path": path })).await.status, Status::Ok, "{path}");
    }
    assert!(person.questions().is_empty());
}

#[tokio::test]
async fn reads_outside_of_the_directory_ask() {
    for outside in ["/etc/passwd", "../notes", "/", "~/.ssh/id_rsa", "/projector/a.txt", "/project/../project2/a"] {
        let (look, person) = (reader(), person([DENY]));
        let setting = Setting::new([&look]).asking(&person);
        assert_refused(&setting.call("look", json!({ "path": outside })).await, "outside of /project");
        assert_eq!(person.questions().len(), 1, "{outside}");
        assert!(look.calls().is_empty(), "{outside}");
    }
}

#[tokio::test]
async fn one_path_outside_among_many_inside_asks() {
    let tool = FakeTool::new("look").effect(Effect::Read);
    let look = Arc::new(tool.touching(|_, _| Touches {
        reads: ["/project/a", "/etc/shadow", "/project/b"].map(Into::into).to_vec(),
        ..Touches::default()
    }));
    let person = person([DENY]);
    let setting = Setting::new([&look]).asking(&person);
    assert_eq!(setting.call("look", json!({})).await.status, Status::Refused);
    assert!(only_question(&person).explain[0].contains("/etc/shadow"));
}

#[tokio::test]
async fn writes_and_commands_ask_wherever_they_are_and_however_harmless_they_look() {
    for (name, arguments) in [
        ("save", json!({ "path": "a.txt" })),
        ("save", json!({ "path": "/tmp/hermes-fake/a.txt" })),
        ("shell", json!({ "command": "true" })),
        ("shell", json!({ "command": "ls", "workdir": "/project" })),
    ] {
        let (save, shell, person) = (writer("save"), shell("shell"), person([DENY]));
        let setting = Setting::new([&save, &shell]).asking(&person);
        assert_refused(&setting.call(name, arguments.clone()).await, "the user said no");
        assert_eq!(person.questions().len(), 1, "{name} {arguments}");
        assert!(save.calls().is_empty() && shell.calls().is_empty());
    }
}

#[tokio::test]
async fn a_tool_that_calls_itself_a_reader_but_would_write_or_run_something_asks() {
    for touches in [
        Touches { writes: vec!["/project/a".into()], ..Touches::reading("/project/a") },
        Touches { command: Some("true".into()), ..Touches::reading("/project/a") },
    ] {
        let stated = touches.clone();
        let sly = Arc::new(FakeTool::new("sly").effect(Effect::Read).touching(move |_, _| stated.clone()));
        let person = person([]);
        let setting = Setting::new([&sly]).asking(&person);
        assert_eq!(setting.call("sly", json!({})).await.status, Status::Refused, "{touches:?}");
        assert_eq!(person.questions().len(), 1);
        assert!(sly.calls().is_empty());
    }
}

#[tokio::test]
async fn tools_without_effect_and_tools_that_talk_with_the_person_never_ask() {
    for effect in [Effect::None, Effect::Converse] {
        let tool = Arc::new(FakeTool::new("quiet").effect(effect));
        let person = person([]);
        let setting = Setting::new([&tool]).asking(&person);
        assert_eq!(setting.call("quiet", json!({})).await.status, Status::Ok, "{effect:?}");
        // Also where everything that asks is refused.
        let setting = Setting::new([&tool]).approving(ApprovalMode::None);
        assert_eq!(setting.call("quiet", json!({})).await.status, Status::Ok, "{effect:?}");
        assert!(person.questions().is_empty());
    }
}

#[tokio::test]
async fn a_tool_that_acts_but_does_not_say_on_what_asks() {
    for effect in [Effect::Network, Effect::Write, Effect::Execute] {
        let vague = Arc::new(FakeTool::new("vague").effect(effect));
        let person = person([]);
        let setting = Setting::new([&vague]).asking(&person);
        assert_refused(&setting.call("vague", json!({ "to": "bob" })).await, "calls vague");
        assert_eq!(person.questions().len(), 1, "{effect:?}");
        assert!(vague.calls().is_empty(), "{effect:?}");
    }
}

// ------------------------------------------------------------------------------------------------------ who decides

#[tokio::test]
async fn nobody_to_ask_means_no() {
    let (look, save, shell) = (reader(), writer("save"), shell("shell"));
    let setting = Setting::new([&look, &save, &shell]);
    for (name, arguments) in [
        ("look", json!({ "path": "/etc/passwd" })),
        ("save", json!({ "path": "a" })),
        ("shell", json!({ "command": "true" })),
    ] {
        assert_refused(&setting.call(name, arguments).await, "nobody is here to ask");
    }
    assert!(look.calls().is_empty() && save.calls().is_empty() && shell.calls().is_empty());
}

#[tokio::test]
async fn yes_runs_the_call_and_no_does_not() {
    let (shell, person) = (shell("shell"), person([ONCE, DENY]));
    let setting = Setting::new([&shell]).asking(&person);
    assert_eq!(setting.call("shell", json!({ "command": "make" })).await.status, Status::Ok);
    assert_eq!(shell.calls().len(), 1);
    assert_refused(&setting.call("shell", json!({ "command": "make" })).await, "the user said no");
    assert_eq!(shell.calls().len(), 1);
}

#[tokio::test]
async fn an_answer_of_the_wrong_kind_and_no_answer_are_no_yes() {
    for given in [Answer::Text("yes".into()), Answer::Text("once".into()), Answer::None] {
        let (shell, person) = (shell("shell"), person([given.clone()]));
        let setting = Setting::new([&shell]).asking(&person);
        assert_refused(&setting.call("shell", json!({ "command": "make" })).await, "nobody answered");
        assert_eq!(person.questions().len(), 1, "{given:?}");
        assert!(shell.calls().is_empty(), "{given:?}");
    }
}

#[tokio::test]
async fn approvals_switched_off_refuse_without_asking_and_outlive_an_earlier_yes() {
    let (shell, person) = (shell("shell"), person([SESSION, ONCE]));
    let mut setting = Setting::new([&shell]).asking(&person);
    assert_eq!(setting.call("shell", json!({ "command": "make" })).await.status, Status::Ok);
    setting.approve = ApprovalMode::None;
    assert_refused(&setting.call("shell", json!({ "command": "make" })).await, "nothing that needs approval runs here");
    assert_refused(
        &setting.call("shell", json!({ "command": "make clean" })).await,
        "nothing that needs approval runs here",
    );
    assert_eq!((shell.calls().len(), person.questions().len()), (1, 1));
}

#[tokio::test]
async fn yes_to_everything_asks_nobody() {
    let (look, save, shell) = (reader(), writer("save"), shell("shell"));
    let person = person([DENY, DENY, DENY]);
    let setting = Setting::new([&look, &save, &shell]).asking(&person).allowing_all();
    for (name, arguments) in [
        ("look", json!({ "path": "/etc/passwd" })),
        ("save", json!({ "path": "a" })),
        ("shell", json!({ "command": "true" })),
    ] {
        assert_eq!(setting.call(name, arguments).await.status, Status::Ok, "{name}");
    }
    assert!(person.questions().is_empty());
}

/// Refuses whatever it is shown.
struct Never;

impl Judge for Never {
    fn judge(&self, _: &JudgeRequest<'_>) -> Verdict {
        Verdict::Refuse("it would wipe the disk".into())
    }
}

#[tokio::test]
async fn what_must_never_run_is_refused_whoever_says_yes() {
    let (shell, person) = (shell("shell"), person([ONCE]));
    for mode in [ApprovalMode::All, ApprovalMode::Ask, ApprovalMode::None] {
        let setting = Setting::new([&shell]).asking(&person).judged_by(Never).approving(mode);
        let report = setting.call("shell", json!({ "command": "rm -rf /" })).await;
        assert_refused(&report, "it would wipe the disk");
        assert!(error(&report).contains("no approval can change that"), "{mode:?}: {}", report.text);
    }
    assert!(shell.calls().is_empty() && person.questions().is_empty());
}

#[tokio::test]
async fn a_broken_call_is_not_worth_a_question() {
    let (shell, person) = (shell("shell"), person([ONCE, ONCE]));
    let setting = Setting::new([&shell]).asking(&person);
    setting.call_text("shell", "{\"command\":\"rm -rf bui").await;
    setting.call("shel", json!({ "command": "make" })).await;
    assert!(person.questions().is_empty() && shell.calls().is_empty());
}

// -------------------------------------------------------------------------------------------------- what yes covers

#[tokio::test]
async fn once_is_once() {
    let (shell, person) = (shell("shell"), person([ONCE, ONCE]));
    let setting = Setting::new([&shell]).asking(&person);
    for times in 1..=2 {
        assert_eq!(setting.call("shell", json!({ "command": "make" })).await.status, Status::Ok);
        assert_eq!(person.questions().len(), times);
    }
}

#[tokio::test]
async fn yes_for_the_session_covers_exactly_this_command_in_this_directory() {
    let (bash, other) = (shell("shell"), shell("other_shell"));
    let person = person([SESSION]);
    let setting = Setting::new([&bash, &other]).asking(&person);
    for same in
        [json!({ "command": "make" }), json!({ "command": "make" }), json!({ "command": "make", "workdir": "." })]
    {
        assert_eq!(setting.call("shell", same.clone()).await.status, Status::Ok, "{same}");
    }
    assert_eq!(person.questions().len(), 1, "the same thing is not asked twice");

    // The person has no more answers, so whatever is asked now is refused.
    for (name, different) in [
        ("shell", json!({ "command": "make clean" })),
        ("shell", json!({ "command": "make " })),
        ("shell", json!({ "command": "make\n" })),
        ("shell", json!({ "command": "Make" })),
        ("shell", json!({ "command": "make && rm -rf ~" })),
        ("shell", json!({ "command": "make", "workdir": "sub" })),
        ("shell", json!({ "command": "make", "workdir": "/" })),
        ("other_shell", json!({ "command": "make" })),
    ] {
        let before = person.questions().len();
        assert_refused(&setting.call(name, different.clone()).await, "nobody answered");
        assert_eq!(person.questions().len(), before + 1, "{name} {different}");
    }
    assert_eq!((bash.calls().len(), other.calls().len()), (3, 0));
}

#[tokio::test]
async fn yes_for_the_session_does_not_follow_the_session_into_another_directory() {
    let (shell, person) = (shell("shell"), person([SESSION]));
    let setting = Setting::new([&shell]).asking(&person);
    assert_eq!(setting.call("shell", json!({ "command": "make" })).await.status, Status::Ok);
    setting.environment.change_directory("/home/user");
    assert_eq!(setting.call("shell", json!({ "command": "make" })).await.status, Status::Refused);
    setting.environment.change_directory("/project");
    assert_eq!(setting.call("shell", json!({ "command": "make" })).await.status, Status::Ok);
    assert_eq!(person.questions().len(), 2);
}

#[tokio::test]
async fn yes_for_the_session_covers_exactly_this_path_and_this_kind_of_access() {
    let (look, save) = (reader(), writer("save"));
    let person = person([SESSION]);
    let setting = Setting::new([&look, &save]).asking(&person);
    assert_eq!(setting.call("save", json!({ "path": "/srv/a" })).await.status, Status::Ok);
    assert_eq!(setting.call("save", json!({ "path": "/srv/b/../a" })).await.status, Status::Ok);
    for (name, different) in [
        ("save", json!({ "path": "/srv/b" })),
        ("save", json!({ "path": "/srv" })),
        ("save", json!({ "path": "/srv/a/b" })),
        ("look", json!({ "path": "/srv/a" })),
    ] {
        assert_eq!(setting.call(name, different.clone()).await.status, Status::Refused, "{name} {different}");
    }
    assert_eq!(person.questions().len(), 5);
}

#[tokio::test]
async fn yes_for_the_session_to_one_oddly_named_file_is_none_to_two_others() {
    let tool = FakeTool::new("save").effect(Effect::Write).touching(|arguments, _| Touches {
        writes: arguments["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().into()).collect(),
        ..Touches::default()
    });
    let save = Arc::new(tool);
    let person = person([SESSION]);
    let setting = Setting::new([&save]).asking(&person);
    // One file, in a folder whose name ends in a comma and a blank.
    assert_eq!(setting.call("save", json!({ "paths": ["/project/a, /etc/passwd"] })).await.status, Status::Ok);
    let two = setting.call("save", json!({ "paths": ["/project/a", "/etc/passwd"] })).await;
    assert_eq!((two.status, save.calls().len()), (Status::Refused, 1), "{}", two.text);
}

#[tokio::test]
async fn yes_for_the_session_to_a_tool_that_names_nothing_covers_exactly_these_arguments() {
    let send = Arc::new(FakeTool::new("send").effect(Effect::Network));
    let person = person([SESSION]);
    let setting = Setting::new([&send]).asking(&person);
    for _ in 0..2 {
        assert_eq!(setting.call("send", json!({ "to": "bob", "text": "hi" })).await.status, Status::Ok);
    }
    for different in [json!({ "to": "eve", "text": "hi" }), json!({ "to": "bob" }), json!({})] {
        assert_eq!(setting.call("send", different.clone()).await.status, Status::Refused, "{different}");
    }
    assert_eq!(person.questions().len(), 4);
}

#[tokio::test]
async fn yes_for_the_session_ends_with_the_session() {
    let (shell, person) = (shell("shell"), person([SESSION]));
    let mut setting = Setting::new([&shell]).asking(&person);
    assert_eq!(setting.call("shell", json!({ "command": "make" })).await.status, Status::Ok);
    setting.task = Task::new(Arc::clone(&setting.environment) as _).with_asker(Arc::clone(&person) as _);
    assert_eq!(setting.call("shell", json!({ "command": "make" })).await.status, Status::Refused);
    assert_eq!(person.questions().len(), 2);
}

/// Asks about everything and offers nothing that could be remembered.
struct NeverTwice;

impl Judge for NeverTwice {
    fn judge(&self, _: &JudgeRequest<'_>) -> Verdict {
        Verdict::Ask(Concern::new("is special", None, None))
    }
}

#[tokio::test]
async fn where_nothing_can_be_remembered_yes_for_the_session_is_yes_once() {
    let (shell, person) = (shell("shell"), person([SESSION]));
    let setting = Setting::new([&shell]).asking(&person).judged_by(NeverTwice);
    assert_eq!(setting.call("shell", json!({ "command": "a" })).await.status, Status::Ok);
    for command in ["a", "b"] {
        assert_eq!(setting.call("shell", json!({ "command": command })).await.status, Status::Refused, "{command}");
    }
    assert_eq!(shell.calls().len(), 1);
}

// -------------------------------------------------------------------------------------------- what is shown and seen

#[tokio::test]
async fn the_question_shows_the_command_as_written_and_where_it_would_run() {
    let command = "  cd build &&\n\tmake \"$TARGET\" # é";
    for (workdir, shown) in [(None, "/project"), (Some("sub/.."), "/project"), (Some("/srv/app"), "/srv/app")] {
        let (shell, person) = (shell("shell"), person([]));
        let setting = Setting::new([&shell]).asking(&person);
        let mut arguments = json!({ "command": command });
        if let Some(workdir) = workdir {
            arguments["workdir"] = Value::from(workdir);
        }
        setting.call("shell", arguments).await;
        let asked = only_question(&person);
        assert_eq!((asked.tool.as_str(), asked.subject.as_str()), ("shell", command));
        assert_eq!(asked.cwd, Path::new(shown), "{workdir:?}");
        assert!(asked.explain.is_empty(), "the command says it all: {:?}", asked.explain);
        assert_eq!(asked.scope, format!("exactly this command in {shown}"));
    }
}

#[tokio::test]
async fn the_question_shows_every_path_and_what_the_tool_says_about_it() {
    let (save, person) = (writer("save"), person([]));
    let setting = Setting::new([&save]).asking(&person).inside_of("/srv");
    setting.call("save", json!({ "path": "../etc/./hosts" })).await;
    let asked = only_question(&person);
    assert_eq!((asked.tool.as_str(), asked.subject.as_str()), ("save", "/etc/hosts"));
    assert_eq!(asked.cwd, Path::new("/srv"));
    // The task began in /project; the cd to /srv did not move that.
    let facts = ["/etc/hosts does not exist yet", "outside of /project: /etc/hosts", "it will contain ten bytes"];
    assert_eq!(asked.explain, facts);
    assert_eq!(asked.scope, "any change of /etc/hosts");
}

#[tokio::test]
async fn the_question_names_every_path_that_would_be_touched() {
    let tool = FakeTool::new("move").effect(Effect::Write).touching(|_, _| Touches {
        writes: vec!["/project/there.txt".into(), "/srv/elsewhere.txt".into()],
        ..Touches::reading("/project/here.txt")
    });
    let (tool, person) = (Arc::new(tool), person([]));
    let setting = Setting::new([&tool]).asking(&person);
    setting.call("move", json!({})).await;
    let asked = only_question(&person);
    for path in ["there.txt", "/srv/elsewhere.txt"] {
        assert!(asked.subject.contains(path), "{path}: {}", asked.subject);
        assert!(asked.scope.contains(path), "{path}: {}", asked.scope);
    }
}

#[tokio::test]
async fn a_question_about_a_command_shows_the_command_whatever_else_it_touches() {
    let tool = FakeTool::new("build").effect(Effect::Execute);
    let touches = Touches { command: Some("make all".into()), ..Touches::writing("/project/out") };
    let tool = Arc::new(tool.touching(move |_, _| touches.clone()));
    let person = person([]);
    let setting = Setting::new([&tool]).asking(&person);
    setting.call("build", json!({})).await;
    assert_eq!(only_question(&person).subject, "make all");
}

#[tokio::test]
async fn no_question_is_blank_not_even_one_about_the_directory_itself() {
    for (path, named) in [("a.txt", "a.txt"), ("/project", "project"), (".", "project"), ("/", "/")] {
        let (save, person) = (writer("save"), person([]));
        let setting = Setting::new([&save]).asking(&person);
        setting.call("save", json!({ "path": path })).await;
        let asked = only_question(&person);
        for text in [&asked.subject, &asked.scope] {
            // A single dot would do for the directory itself; nothing at all would not.
            assert!(text.contains(named) || text.ends_with('.'), "{path}: {text:?} names nothing");
        }
    }
}

impl Setting {
    fn inside_of(self, cwd: &str) -> Self {
        self.environment.change_directory(cwd);
        self
    }
}

/// What a judge was shown.
#[derive(Debug, PartialEq)]
struct Seen {
    arguments: Value,
    touches: Touches,
    cwd: PathBuf,
    own_folders: Vec<PathBuf>,
}

/// Keeps what it was shown and allows it.
struct Witness(Mutex<Vec<Seen>>);

impl Judge for &'static Witness {
    fn judge(&self, request: &JudgeRequest<'_>) -> Verdict {
        self.0.lock().unwrap().push(Seen {
            arguments: Value::Object(request.arguments.clone()),
            touches: request.touches.clone(),
            cwd: request.cwd.to_owned(),
            own_folders: request.own_folders.to_vec(),
        });
        Verdict::Allow
    }
}

#[tokio::test]
async fn the_judge_sees_the_arguments_that_will_run_and_the_directory_of_this_moment() {
    static WITNESS: Witness = Witness(Mutex::new(Vec::new()));
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let tool = FakeTool::new("count").effect(Effect::Read).parameters(schema);
    let count = Arc::new(tool.touching(|_, cx| Touches::reading(cx.resolve("."))));
    let setting = Setting::new([&count]).inside(FakeEnvironment::new().in_directory("/one")).judged_by(&WITNESS);
    setting.call("count", json!({ "n": "7" })).await;
    setting.environment.change_directory("/two");
    setting.call("count", json!({ "n": 7 })).await;
    let seen = |cwd: &str| Seen {
        arguments: json!({ "n": 7 }),
        touches: Touches::reading(cwd),
        cwd: cwd.into(),
        own_folders: vec!["/tmp/hermes-fake".into()],
    };
    assert_eq!(*WITNESS.0.lock().unwrap(), [seen("/one"), seen("/two")]);
    assert_eq!(count.calls()[0].arguments, *json!({ "n": 7 }).as_object().unwrap());
}
