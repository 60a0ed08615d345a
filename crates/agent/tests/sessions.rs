//! The acceptance checks of spec agent §23.1, each as a session against a scripted model server.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod session;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hermes_agent::chat_completions::{Body, Response, Transport, TransportError};
use hermes_agent::{EndReason, HttpTransport};
use hermes_core::{Effect, Message, ModelErrorKind, ToolOutput};
use hermes_runtime::Status;
use hermes_testkit::{Call, FakeTool, ModelServer, Reply, ScriptedPerson, unused_base_url};
use serde_json::{Value, json};
use session::{Moment, Plan, assert_accepted};

fn parsed(result: &str) -> Value {
    serde_json::from_str(result).unwrap_or_else(|error| panic!("{error} in {result}"))
}

/// The results that a request told the model about, oldest first.
fn results_in(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages.filter(|message| message["role"] == "tool").map(|message| message["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn check_1_a_todo_that_comes_twice_keeps_its_last_version_and_an_unknown_status_is_pending() {
    let first = json!({ "todos": [
        { "id": "1", "content": "look", "status": "in_progress" },
        { "id": "1", "content": "look closely", "status": "half done" },
    ] });
    let server =
        ModelServer::start([Reply::calls([Call::new("todo", first), Call::new("todo", json!({}))]), Reply::text("ok")]);
    let mut session = Plan::new().with_model(&server);
    session.turn("plan it").await.unwrap();
    let expected = json!([{ "id": "1", "content": "look closely", "status": "pending" }]);
    // The second call reads what the first one stored: the list lives in the agent.
    assert_eq!(parsed(session.result("call_1"))["todos"], expected);
    assert_eq!(parsed(session.result("call_2"))["todos"], expected);
}

#[tokio::test]
async fn check_2_three_turns_of_unknown_tools_give_two_catalogues_and_then_the_end() {
    let unknown = |name: &str| Reply::calls([Call::new(name, json!({ "path": "x" }))]);
    let server =
        ModelServer::start([unknown("make_coffee"), unknown("brew"), unknown("pour"), Reply::text("I am still here.")]);
    let mut session = Plan::new().with_model(&server);
    let end = session.turn("coffee").await.unwrap();
    assert_eq!(end.reason, EndReason::UnknownTools("pour".into()));
    assert_eq!((end.requests, end.calls, end.is_partial()), (3, 3, true));

    let requests = server.requests();
    assert_eq!(requests.len(), 3, "the third time the model is not asked again");
    let told = results_in(&requests[2].body);
    assert_eq!(told.len(), 2);
    for (result, name) in told.iter().zip(["make_coffee", "brew"]) {
        let error = parsed(result)["error"].as_str().unwrap().to_owned();
        assert!(error.contains(name) && error.contains("Available: ") && error.contains("read_file"), "{error}");
    }
    // The end says what happened, and the conversation can go on.
    let Some(Message::Assistant { text, .. }) = session.agent.messages().last() else { panic!() };
    assert!(text.contains("`pour`"), "{text}");
    assert_eq!(session.turn("never mind").await.unwrap().answer, "I am still here.");
    assert_accepted(&server.requests()[3].body);
}

#[tokio::test]
async fn check_2_one_known_tool_among_the_unknown_ones_starts_the_count_again() {
    let unknown = || Call::new("make_coffee", json!({}));
    let server = ModelServer::start([
        Reply::calls([unknown()]),
        Reply::calls([unknown(), unknown()]),
        Reply::calls([unknown(), Call::new("todo", json!({}))]),
        Reply::calls([unknown()]),
        Reply::calls([unknown()]),
        Reply::text("Done."),
    ]);
    let mut session = Plan::new().with_model(&server);
    let end = session.turn("coffee").await.unwrap();
    assert_eq!((end.reason, end.answer.as_str(), end.requests), (EndReason::Answered, "Done.", 6));
}

#[tokio::test]
async fn check_3_a_name_like_a_writer_is_never_executed() {
    let arguments = json!({ "path": "victim.txt", "content": "overwritten" });
    let server = ModelServer::start([
        Reply::calls(["writefiles", "write_files", "writ_file"].map(|name| Call::new(name, arguments.clone()))),
        Reply::text("ok"),
    ]);
    let mut session = Plan::new().with_file("victim.txt", "precious").with_model(&server);
    session.turn("go").await.unwrap();
    assert_eq!(session.home.read("victim.txt"), "precious");
    assert!(session.heard.ends().iter().all(|(_, status)| *status == Status::UnknownTool));
    for (_, result) in session.results() {
        assert!(result.contains("Similar: write_file"), "offered, not taken: {result}");
    }
}

#[tokio::test]
async fn check_4_broken_arguments_are_answered_with_an_error_and_empty_ones_are_an_empty_object() {
    for streamed in [true, false] {
        let broken = ["{bad", "{\"a\":1", "[1]", ""].map(|arguments| Call::raw("todo", arguments));
        let server = ModelServer::start([Reply::calls(broken), Reply::text("ok")]);
        let plan = if streamed { Plan::new() } else { Plan::new().not_streamed() };
        let mut session = plan.with_model(&server);
        let end = session.turn("go").await.unwrap();
        assert_eq!((end.reason, end.requests, end.calls), (EndReason::Answered, 2, 4));
        for (id, place) in [("call_1", "byte 1"), ("call_2", "cut off at byte 6"), ("call_3", "must be a JSON object")]
        {
            let error = parsed(session.result(id))["error"].as_str().unwrap().to_owned();
            assert!(error.contains(place) && error.contains("nothing was run"), "{error}");
        }
        assert_eq!(parsed(session.result("call_4"))["todos"], json!([]));
        // Nothing was repaired, and the history is still one that a provider takes.
        assert_accepted(&server.requests()[1].body);
    }
}

#[tokio::test]
async fn check_4_a_command_that_was_cut_off_is_not_run_as_far_as_it_goes() {
    let server = ModelServer::start([
        Reply::calls([Call::raw("terminal", "{\"command\":\"echo ran > ran.txt\",\"timeout\":1")]),
        Reply::text("ok"),
    ]);
    let mut session = Plan::new().with_model(&server);
    session.turn("go").await.unwrap();
    assert_eq!(session.heard.ends(), [("call_1".to_owned(), Status::InvalidArguments)]);
    assert!(!session.home.work().join("ran.txt").exists());
}

#[tokio::test]
async fn check_5_reads_overlap_the_write_of_the_same_path_comes_after_and_results_keep_their_order() {
    // Real reads are too quick to be caught side by side, so they stand between two calls that wait for one another:
    // these can only end if all four belong together.
    let meet = Arc::new(FakeTool::new("meet").effect(Effect::Read).parallel(true).wait_for_others(2));
    let read = || Call::new("read_file", json!({ "path": "a.txt" }));
    let calls = [
        Call::new("meet", json!({})),
        read(),
        Call::new("search_files", json!({ "pattern": "old", "path": "a.txt" })),
        Call::new("meet", json!({})),
        Call::new("write_file", json!({ "path": "a.txt", "content": "new\n" })),
        read(),
    ];
    let server = ModelServer::start([Reply::calls(calls), Reply::text("ok")]);
    let mut session = Plan::new().with_file("a.txt", "old\n").with_tool(&meet).with_model(&server);
    session.turn("go").await.unwrap();

    let results: Vec<(&str, Value)> = session.results().iter().map(|(id, result)| (*id, parsed(result))).collect();
    let ids: Vec<&str> = results.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3", "call_4", "call_5", "call_6"]);
    assert_eq!((&results[0].1, &results[3].1), (&json!({ "ok": true }), &json!({ "ok": true })));
    assert_eq!(results[1].1["content"], "1|old");
    assert_eq!(results[2].1["total_count"], 1);
    assert_eq!(results[4].1["bytes_written"], 4);
    assert_eq!(results[5].1["content"], "1|new");

    let moments = session.heard.moments();
    let at = |moment: Moment| moments.iter().position(|heard| *heard == moment).unwrap();
    let began = |n: u8| at(Moment::Started(format!("call_{n}")));
    let ended = |n: u8| at(Moment::Finished(format!("call_{n}"), Status::Ok));
    assert!((1..=4).all(|read| ended(read) < began(5)), "the write began before every read had ended: {moments:?}");
    assert!(ended(5) < began(6), "{moments:?}");
}

/// A way to the model that can be pointed at another server between two turns, because what the second server has to
/// say depends on what came out of the first turn.
#[derive(Clone)]
struct Relay(Arc<Mutex<Arc<HttpTransport>>>);

impl Relay {
    fn to(server: &ModelServer) -> Self {
        Self(Arc::new(Mutex::new(Self::transport(server))))
    }

    fn point_at(&self, server: &ModelServer) {
        *self.0.lock().unwrap() = Self::transport(server);
    }

    fn transport(server: &ModelServer) -> Arc<HttpTransport> {
        Arc::new(HttpTransport::new(&server.base_url(), None).unwrap())
    }
}

#[async_trait]
impl Transport for Relay {
    fn place(&self) -> String {
        self.0.lock().unwrap().place()
    }

    async fn post(&self, body: &Body) -> Result<Response, TransportError> {
        let transport = Arc::clone(&self.0.lock().unwrap());
        transport.post(body).await
    }
}

#[tokio::test]
async fn check_6_a_result_of_150_000_characters_is_stored_and_read_back_by_offset() {
    let text = (1..=3_000).fold(String::new(), |text, n| text + &format!("{n:06} {}\n", "é".repeat(42)));
    assert_eq!(text.chars().count(), 150_000);
    let long = Arc::new(FakeTool::new("fetch_all").result(Ok(ToolOutput::text(text.clone()))));
    let first = ModelServer::start([Reply::calls([Call::new("fetch_all", json!({}))]), Reply::text("It is long.")]);
    let relay = Relay::to(&first);
    // Reading what belongs to the session needs nobody's yes.
    let nobody = Arc::new(ScriptedPerson::new([]));
    let mut session = Plan::new().with_tool(&long).asking(&nobody).over(relay.clone());
    session.turn("fetch it").await.unwrap();

    let result = session.result("call_1");
    assert!(result.chars().count() < 2_000, "{} characters", result.chars().count());
    let (head, rest) = result.split_once(" characters:\n").unwrap();
    let preview = rest.split_once("\n…\n").unwrap().0;
    assert!(preview.chars().count() <= 1_000 && text.starts_with(preview), "{preview}");
    let place = head.split("stored in ").nth(1).unwrap().split(" (").next().unwrap();

    let read = json!({ "path": place, "offset": 2_996, "limit": 100 });
    let call = Call::new("read_file", read).with_id("read");
    let second = ModelServer::start([Reply::calls([call]), Reply::text("It ends.")]);
    relay.point_at(&second);
    let end = session.turn("and its end?").await.unwrap();
    assert_eq!((end.answer.as_str(), end.refused), ("It ends.", 0));
    let read = parsed(session.result("read"));
    let tail: Vec<String> = text.lines().enumerate().skip(2_995).map(|(i, line)| format!("{}|{line}", i + 1)).collect();
    assert_eq!(read["content"], tail.join("\n"));
    assert_eq!((&read["total_lines"], &read["truncated"]), (&json!(3_000), &json!(false)));
    assert!(nobody.questions().is_empty());
    // What the model keeps carrying along is the preview, not the text.
    let sent = second.requests()[1].body.to_string();
    assert!(sent.len() < 20_000, "{} bytes", sent.len());
}

#[tokio::test]
async fn check_11_a_spent_budget_costs_exactly_one_more_request_without_tools() {
    let work = || Reply::calls([Call::new("todo", json!({}))]);
    let server = ModelServer::start([work(), work(), Reply::text("Half of it is done."), Reply::text("Going on.")]);
    let mut session = Plan::new().with_budget(2).with_model(&server);
    let end = session.turn("work").await.unwrap();
    assert_eq!((end.reason.clone(), end.answer.as_str()), (EndReason::BudgetSpent, "Half of it is done."));
    assert_eq!((end.requests, end.calls, end.is_partial()), (3, 2, true));

    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let has_tools: Vec<bool> = requests.iter().map(|request| request.body.get("tools").is_some()).collect();
    assert_eq!(has_tools, [true, true, false]);
    let last = requests[2].body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    assert!(last["content"].as_str().unwrap().contains("budget of 2 steps"), "{last}");
    assert_eq!(session.heard.moments().iter().filter(|moment| **moment == Moment::BudgetSpent(2)).count(), 1);

    // The budget is one turn's: the next one has its own, and its tools.
    assert_eq!(session.turn("go on").await.unwrap().reason, EndReason::Answered);
    assert!(server.requests()[3].body.get("tools").is_some());
}

#[tokio::test]
async fn check_11_calls_in_the_closing_summary_are_not_run() {
    let call = || Reply::calls([Call::new("write_file", json!({ "path": "late.txt", "content": "x" }))]);
    let server = ModelServer::start([Reply::calls([Call::new("todo", json!({}))]), call()]);
    let mut session = Plan::new().with_budget(1).with_model(&server);
    let end = session.turn("work").await.unwrap();
    assert_eq!((end.reason, end.requests, end.calls), (EndReason::BudgetSpent, 2, 1));
    assert!(!session.home.work().join("late.txt").exists());
}

#[tokio::test]
async fn check_13_a_provider_that_is_down_is_an_error_after_three_attempts() {
    let url = unused_base_url();
    let mut session = Plan::new().over(HttpTransport::new(&url, None).unwrap());
    let error = session.turn("hello?").await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    for part in [url.as_str(), "test-model", "connection refused", "3 attempts"] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    let attempts: Vec<u32> = session.heard.restarts().iter().map(|(attempt, _)| *attempt).collect();
    assert_eq!(attempts, [2, 3]);
    assert_eq!(session.agent.messages().len(), 1, "the message can be sent again");
}
