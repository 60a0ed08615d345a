//! A script in the place of a model: the same loop, the same adapter, the same faults, and no network.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod session;

use std::time::Duration;

use hermes_agent::{EndReason, Retry, Script};
use hermes_core::{ModelErrorKind, Usage};
use hermes_runtime::Status;
use serde_json::json;
use session::{Moment, Plan, Session};

fn session(script: &str) -> Session {
    Plan::new().over(Script::parse("tour", script).unwrap().into_transport())
}

/// The same script played to an adapter that streams and to one that does not.
fn both(script: &str) -> [Session; 2] {
    let whole = Plan::new().not_streamed().over(Script::parse("tour", script).unwrap().into_transport());
    [session(script), whole]
}

fn texts(session: &Session) -> usize {
    session.heard.moments().iter().filter(|moment| matches!(moment, Moment::Text(_))).count()
}

#[tokio::test]
async fn texts_and_calls_are_played_like_those_of_a_server() {
    let script = r#"
// A tour in two turns.
{"text": "I will write – one moment.", "calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "één\n"}}, {"name": "read_file", "id": "mine", "arguments": "{\"path\": \"a.txt\"}"}], "usage": {"input": 100, "output": 10}}

{"text": "Done, all of it.", "usage": {"input": 200, "output": 20}}
{"person": "once"}
{"text": "You are welcome."}
"#;
    for mut session in both(script) {
        let end = session.turn("go").await.unwrap();
        assert_eq!((end.answer.as_str(), end.requests, end.calls), ("Done, all of it.", 2, 2));
        assert_eq!(end.usage, Usage { input_tokens: 300, output_tokens: 30, cached_tokens: 0 });
        assert_eq!(session.heard.shown(), ["I will write – one moment.", "Done, all of it."]);
        assert_eq!(session.home.read("a.txt"), "één\n");
        assert!(session.result("mine").contains("1|één"), "{}", session.result("mine"));
        // What the person answers is no turn of the model.
        let end = session.turn("thanks").await.unwrap();
        assert_eq!((end.answer.as_str(), end.requests), ("You are welcome.", 1));
    }
}

#[tokio::test]
async fn a_streamed_turn_arrives_in_pieces_and_a_whole_one_does_not() {
    let [mut streamed, mut whole] = both(r#"{"text": "one two three"}"#);
    streamed.turn("count").await.unwrap();
    whole.turn("count").await.unwrap();
    assert_eq!((texts(&streamed), texts(&whole)), (3, 1));
}

#[tokio::test]
async fn broken_arguments_in_a_script_are_broken_arguments() {
    let script = r#"{"calls": [{"name": "terminal", "arguments": "{\"command\": \"touch ran"}]}
{"text": "Sorry."}"#;
    for mut session in both(script) {
        assert_eq!(session.turn("go").await.unwrap().answer, "Sorry.");
        let [(_, status)] = &session.heard.ends()[..] else { panic!() };
        assert_eq!(*status, Status::InvalidArguments);
        assert!(!session.home.work().join("ran").exists());
    }
}

#[tokio::test]
async fn a_turn_that_is_cut_is_tried_again_with_the_next_line_and_withdrawn() {
    let script = r#"{"text": "half of a wrong answer", "fault": "cut"}
{"text": "The whole answer."}"#;
    for mut session in both(script) {
        let end = session.turn("go").await.unwrap();
        assert_eq!((end.answer.as_str(), end.requests), ("The whole answer.", 1));
        assert_eq!(session.heard.shown(), ["The whole answer."]);
        assert_eq!(session.heard.restarts().len(), 1);
    }
}

#[tokio::test]
async fn every_turn_can_be_cut_however_little_it_says() {
    for line in [
        r#"{"fault": "cut"}"#,
        r#"{"text": "", "fault": "cut"}"#,
        r#"{"text": "Yes.", "fault": "cut"}"#,
        r#"{"text": "é漢", "fault": "cut"}"#,
        r#"{"calls": [{"name": "todo", "arguments": {}}], "fault": "cut"}"#,
    ] {
        for mut session in both(&format!("{line}\n{{\"text\": \"Whole.\"}}")) {
            let end = session.turn("go").await.unwrap();
            assert_eq!((end.answer.as_str(), end.calls), ("Whole.", 0), "{line}");
            // A turn that ended early is a failed attempt, not an answer that happens to be empty.
            assert_eq!((session.heard.restarts().len(), end.requests), (1, 1), "{line}");
        }
    }
}

#[tokio::test]
async fn garbage_is_garbage_after_three_attempts() {
    let script = "{\"fault\": \"garbage\"}\n".repeat(5);
    for mut session in both(&script) {
        let error = session.turn("go").await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Garbled);
        assert!(error.message.contains("no Chat Completions answer") && error.message.contains("tour"), "{error}");
        assert_eq!(session.heard.restarts().len(), 2);
        assert_eq!(session.agent.messages().len(), 1);
    }
}

#[tokio::test]
async fn a_busy_answer_is_waited_out_as_long_as_it_says() {
    // The wait of our own would be a minute.
    let patient = Retry { attempts: 3, base: Duration::from_secs(60) };
    let script = r#"{"fault": {"status": 429, "message": "slow down", "retry_after": 0}}
{"fault": {"status": 503, "retry_after": 0.001}}
{"text": "Now."}"#;
    let transport = Script::parse("tour", script).unwrap().into_transport();
    let mut session = Plan::new().with_retry(patient).over(transport);
    assert_eq!(session.turn("go").await.unwrap().answer, "Now.");
    assert_eq!(session.heard.restarts(), [(2, Duration::ZERO), (3, Duration::from_millis(1))]);
    let Some(Moment::Restart { reason, .. }) = session.heard.moments().get(1).cloned() else { panic!() };
    assert!(reason.contains("429: slow down"), "{reason}");
}

#[tokio::test]
async fn a_wait_that_cannot_be_is_a_bad_line_or_no_wait_but_never_a_crash() {
    for seconds in ["-1", "1e30"] {
        let script = format!("{{\"fault\": {{\"status\": 429, \"retry_after\": {seconds}}}}}\n{{\"text\": \"Now.\"}}");
        let Ok(script) = Script::parse("tour", &script) else { continue };
        let attempts = Retry { attempts: 1, base: Duration::ZERO };
        let mut session = Plan::new().with_retry(attempts).over(script.into_transport());
        assert_eq!(session.turn("go").await.unwrap_err().kind, ModelErrorKind::Busy, "{seconds}");
    }
}

#[tokio::test]
async fn a_refusal_is_an_error_of_its_kind_at_once() {
    for (status, kind) in
        [(400, ModelErrorKind::Rejected), (401, ModelErrorKind::Credentials), (404, ModelErrorKind::NotFound)]
    {
        let fault = json!({ "fault": { "status": status, "message": "no" } });
        let mut session = session(&format!("{fault}\n{{\"text\": \"Still here.\"}}"));
        assert_eq!(session.turn("go").await.unwrap_err().kind, kind);
        assert!(session.heard.restarts().is_empty());
        assert_eq!(session.turn("go").await.unwrap().answer, "Still here.");
    }
}

#[tokio::test]
async fn nobody_there_is_nobody_there_after_three_attempts() {
    let mut session = session(&"{\"fault\": \"down\"}\n".repeat(5));
    let error = session.turn("go").await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    assert!(error.message.contains("connection refused") && error.message.contains("3 attempts"), "{error}");
    assert_eq!(session.heard.restarts().len(), 2);
}

#[tokio::test]
async fn a_script_that_has_ended_says_so_and_is_not_asked_again() {
    let mut session = session("{\"calls\": [{\"name\": \"todo\", \"arguments\": {}}]}");
    let error = session.turn("go").await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ScriptEnded);
    assert!(error.message.contains("has 1 turn and") && error.message.contains("tour"), "{error}");
    assert!(session.heard.restarts().is_empty());
    // Something happened before, so the conversation keeps it.
    assert_eq!(session.results().len(), 1);

    let mut empty = Plan::new().over(Script::parse("empty", "").unwrap().into_transport());
    assert_eq!(empty.turn("go").await.unwrap_err().kind, ModelErrorKind::ScriptEnded);
    assert_eq!(empty.agent.messages().len(), 1);
}

#[tokio::test]
async fn a_finish_of_its_own_is_passed_on() {
    let mut session = session(r#"{"text": "It begins", "finish": "length"}"#);
    let end = session.turn("go").await.unwrap();
    assert_eq!((end.answer.as_str(), end.reason), ("It begins", EndReason::CutOff));
}
