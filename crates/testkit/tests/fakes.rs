//! The in-memory neighbours: environment, person, tool.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    Answer, Approval, Asker, CancellationToken, Command, Environment, EnvironmentError, FileErrorKind, FileKind,
    FinishedHow, Question, Tool, ToolCx, ToolError, ToolResult, Touches,
};
use hermes_testkit::{FakeEnvironment, FakeTool, ScriptedPerson, exited};
use serde_json::json;

fn command(script: &str) -> Command {
    Command::new(script, Duration::from_secs(1), 1000)
}

fn cx(call_id: &str) -> ToolCx {
    ToolCx { call_id: call_id.into(), ..ToolCx::of_a_program(Arc::new(FakeEnvironment::new())) }
}

#[tokio::test]
async fn a_known_command_ends_as_scripted_and_an_unknown_one_is_not_found() {
    let environment = FakeEnvironment::new().on("make", exited(2, "no rule\n"));
    let cancel = CancellationToken::new();
    let made = environment.run(command("make"), &cancel).await.unwrap();
    assert_eq!((made.how, made.output.as_str()), (FinishedHow::Exited(2), "no rule\n"));
    let unknown = environment.run(command("nope"), &cancel).await.unwrap();
    assert_eq!(unknown.how, FinishedHow::Exited(127));
    assert!(unknown.output.contains("nope: command not found"), "{}", unknown.output);
    assert_eq!(environment.commands(), [command("make"), command("nope")]);
}

#[tokio::test]
async fn a_command_without_a_directory_or_after_the_stop_does_not_run() {
    let environment = FakeEnvironment::new().on("make", exited(0, ""));
    let elsewhere = Command { cwd: Some("/nowhere".into()), ..command("make") };
    let error = environment.run(elsewhere, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, EnvironmentError::NoSuchDirectory(path) if path == Path::new("/nowhere")));

    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(environment.run(command("make"), &cancel).await.unwrap().how, FinishedHow::Cancelled);
    assert!(environment.commands().is_empty());
}

#[tokio::test]
async fn reads_keep_to_their_range() {
    let environment = FakeEnvironment::new().with_file("a.txt", "0123456789");
    let path = Path::new("/project/a.txt");
    assert_eq!(environment.read(path, 0..u64::MAX).await.unwrap(), b"0123456789");
    assert_eq!(environment.read(path, 2..4).await.unwrap(), b"23");
    assert_eq!(environment.read(path, 8..20).await.unwrap(), b"89");
    assert_eq!(environment.read(path, 20..30).await.unwrap(), b"");
}

#[tokio::test]
async fn folders_are_there_because_files_are() {
    let environment = FakeEnvironment::new().with_file("/srv/b/c", "x").with_file("/srv/a", "");
    let kind = |path: &'static str| {
        let environment = &environment;
        async move { environment.stat(Path::new(path)).await.map(|stat| stat.kind).map_err(|error| error.kind) }
    };
    for folder in ["/", "/project", "/home", "/home/user", "/tmp/hermes-fake", "/srv", "/srv/b"] {
        assert_eq!(kind(folder).await, Ok(FileKind::Directory), "{folder}");
    }
    assert_eq!(kind("/srv/b/c").await, Ok(FileKind::File));
    assert_eq!(kind("/sr").await, Err(FileErrorKind::NotFound));

    assert_eq!(environment.list(Path::new("/srv")).await.unwrap(), ["a", "b"]);
    assert_eq!(environment.list(Path::new("/")).await.unwrap(), ["home", "project", "srv", "tmp"]);
    let why = |kind| Err(kind);
    let list = |path| environment.list(Path::new(path));
    assert_eq!(list("/srv/a").await.map_err(|error| error.kind), why(FileErrorKind::Other));
    assert_eq!(list("/nowhere").await.map_err(|error| error.kind), why(FileErrorKind::NotFound));
    let read = environment.read(Path::new("/srv"), 0..1).await;
    assert_eq!(read.unwrap_err().kind, FileErrorKind::NotRegular(FileKind::Directory));
    let read = environment.read(Path::new("/nowhere"), 0..1).await;
    assert_eq!(read.unwrap_err().kind, FileErrorKind::NotFound);
}

#[tokio::test]
async fn writes_say_whether_they_made_a_folder_and_leave_a_later_time() {
    let environment = FakeEnvironment::new();
    let path = Path::new("/project/new/a.txt");
    assert!(environment.write(path, b"one").await.unwrap());
    let before = environment.stat(path).await.unwrap();
    assert!(!environment.write(path, b"three").await.unwrap());
    let after = environment.stat(path).await.unwrap();
    assert_eq!(after.len, 5);
    assert!(after.modified > before.modified);
    assert_eq!(environment.file("new/a.txt").unwrap(), b"three");

    let onto_a_folder = environment.write(Path::new("/project/new"), b"").await.unwrap_err();
    assert_eq!(onto_a_folder.kind, FileErrorKind::NotRegular(FileKind::Directory));
    let below_a_file = environment.write(Path::new("/project/new/a.txt/b"), b"").await.unwrap_err();
    assert_eq!(below_a_file.kind, FileErrorKind::Other);
}

#[tokio::test]
async fn paths_follow_the_session_and_fold_their_dots() {
    let environment = FakeEnvironment::new().in_directory("/srv/app");
    assert_eq!(environment.real_path(Path::new("../x/./y")).await.unwrap(), Path::new("/srv/x/y"));
    environment.change_directory("..");
    assert_eq!(environment.cwd(), PathBuf::from("/srv"));
}

#[tokio::test]
async fn the_scratch_folder_goes_when_the_environment_closes() {
    let environment = FakeEnvironment::new().with_file("kept", "");
    let scratch = environment.scratch();
    let path = scratch.join("long-result");
    assert!(!environment.write(&path, b"long").await.unwrap());
    environment.close().await;
    assert_eq!(environment.stat(&path).await.unwrap_err().kind, FileErrorKind::NotFound);
    assert_eq!(environment.stat(scratch).await.unwrap_err().kind, FileErrorKind::NotFound);
    assert!(environment.file("kept").is_some());
    assert_eq!(environment.times_closed(), 1);
}

#[tokio::test]
async fn a_person_answers_in_order_and_then_not_at_all() {
    let person = ScriptedPerson::new([Answer::Approval(Approval::Once), Answer::Text("blue".into())]);
    let question = |text: &str| Question::Clarify { question: text.into(), choices: Vec::new() };
    let cancel = CancellationToken::new();
    assert_eq!(person.ask(question("one"), &cancel).await, Answer::Approval(Approval::Once));
    assert_eq!(person.ask(question("two"), &cancel).await, Answer::Text("blue".into()));
    assert_eq!(person.ask(question("three"), &cancel).await, Answer::None);
    assert_eq!(person.questions(), [question("one"), question("two"), question("three")]);
}

#[tokio::test]
async fn calls_that_meet_overlap_and_calls_in_turn_do_not() {
    let tool = FakeTool::new("pair").wait_for_others(2);
    let (a, b) = tokio::join!(tool.call(args("a"), cx("1")), tool.call(args("b"), cx("2")));
    assert!(a.is_ok() && b.is_ok());
    let calls = tool.calls();
    assert_eq!(calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(calls[1].arguments, args("b"));
    assert!(calls[0].overlaps(&calls[1]) && calls[1].overlaps(&calls[0]));

    let tool = FakeTool::new("single");
    for id in ["1", "2"] {
        tool.call(args(id), cx(id)).await.unwrap();
    }
    let calls = tool.calls();
    assert!(!calls[0].overlaps(&calls[1]) && !calls[1].overlaps(&calls[0]));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_others_never_come_says_so() {
    let tool = FakeTool::new("pair").wait_for_others(2);
    let error = tool.call(args("a"), cx("1")).await.unwrap_err();
    assert!(error.to_string().contains("side by side"), "{error}");
}

#[tokio::test]
async fn a_fake_tool_answers_as_told_and_says_what_it_would_touch() {
    let fails: ToolResult = Err(ToolError::tell("no"));
    assert_eq!(FakeTool::new("t").result(fails.clone()).call(args("a"), cx("1")).await, fails);
    let echo = FakeTool::new("t").run(|arguments, cx| Ok(json!([cx.call_id, arguments]).into()));
    assert_eq!(echo.call(args("a"), cx("1")).await.unwrap(), json!(["1", { "value": "a" }]).into());
    let later = FakeTool::new("t").run_async(|_, cx| async move {
        tokio::task::yield_now().await;
        Ok(json!(cx.call_id).into())
    });
    assert_eq!(later.call(args("a"), cx("1")).await.unwrap(), json!("1").into());

    let writes =
        FakeTool::new("t").touching(|arguments, cx| Touches::writing(cx.resolve(arguments["value"].as_str().unwrap())));
    assert_eq!(writes.touches(&args("a"), &cx("1")), Touches::writing("/project/a"));
}

fn args(value: &str) -> hermes_core::JsonMap {
    json!({ "value": value }).as_object().cloned().unwrap()
}

#[tokio::test]
async fn what_is_created_or_moved_never_takes_the_place_of_anything() {
    let environment = FakeEnvironment::new().with_file("a", "a").with_file("d/b", "b");
    let path = |name: &str| Path::new("/project").join(name);
    for taken in ["a", "d"] {
        let created = environment.create(&path(taken), b"x").await.unwrap_err();
        let moved = environment.rename(&path("d/b"), &path(taken)).await.unwrap_err();
        assert_eq!([created.kind, moved.kind], [FileErrorKind::Exists; 2], "{taken}");
    }
    assert_eq!(environment.create(&path("n/m/c"), b"c").await, Ok(vec![path("n/m"), path("n")]));
    assert_eq!(environment.rename(&path("d/b"), &path("n/b")).await, Ok(Vec::new()));
    assert_eq!((environment.file("n/b"), environment.file("d/b")), (Some(b"b".to_vec()), None));
    environment.remove(&path("n/b")).await.unwrap();
    assert_eq!(environment.remove(&path("n/b")).await.unwrap_err().kind, FileErrorKind::NotFound);
    assert!(environment.create(&path("a/x"), b"x").await.is_err() && environment.remove(&path("n")).await.is_err());
}
