//! The tools of a conversation: they are one list for a whole turn, change between turns and only for a reason, and what
//! a provider refused is left out for this conversation alone.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod session;

use std::sync::{Arc, Mutex, OnceLock};

use hermes_agent::EndReason;
use hermes_core::{Effect, Message, ModelErrorKind, ToolOutput};
use hermes_runtime::{Budget, OwnerKind, Profile, Registry, Selection, Status, Wanted};
use hermes_testkit::{Call, FakeTool, ModelServer, Reply};
use serde_json::{Value, json};
use session::{Moment, Plan, Session, assert_accepted};

/// The bytes of the tool list of each request; empty where there was none.
fn lists(server: &ModelServer) -> Vec<String> {
    let list = |body: &Value| body.get("tools").map(Value::to_string).unwrap_or_default();
    server.requests().iter().map(|request| list(&request.body)).collect()
}

/// The names in a tool list.
fn names(list: &str) -> Vec<String> {
    let list: Vec<Value> = serde_json::from_str(list).unwrap();
    list.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn has(list: &str, name: &str) -> bool {
    names(list).iter().any(|known| known == name)
}

fn call(name: &str) -> Reply {
    Reply::calls([Call::new(name, json!({}))])
}

fn ok() -> Reply {
    Reply::text("ok")
}

fn status(session: &Session, id: &str) -> Status {
    session.heard.ends().into_iter().find(|(call, _)| call == id).unwrap().1
}

// ------------------------------------------------------------------------------------------- what a provider refuses

/// A tool whose schema has words that not every provider takes.
fn fetch() -> Arc<FakeTool> {
    let url = json!({ "type": "string", "format": "uri", "pattern": "^https?://", "minLength": 8 });
    let schema = json!({ "type": "object", "properties": { "url": url }, "required": ["url"] });
    Arc::new(FakeTool::new("fetch").parameters(schema))
}

/// A provider's answer to a schema with `keyword` in it.
fn refusing(keyword: &str) -> Reply {
    let message =
        format!("Invalid schema for function 'fetch': In context=('properties', 'url'), '{keyword}' is not permitted.");
    refused(&message)
}

fn refused(message: &str) -> Reply {
    Reply::status(400, json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string())
}

fn url(list: &str) -> Value {
    let list: Vec<Value> = serde_json::from_str(list).unwrap();
    let fetch = list.into_iter().find(|tool| tool["function"]["name"] == "fetch").unwrap();
    fetch["function"]["parameters"]["properties"]["url"].clone()
}

#[tokio::test]
async fn a_keyword_that_the_provider_refuses_is_left_out_for_this_session_and_no_other() {
    let server = ModelServer::start([refusing("pattern"), call("todo"), ok(), ok()]);
    let mut session = Plan::new().with_tool(&fetch()).with_model(&server);
    let end = session.turn("hello").await.unwrap();
    assert_eq!((end.answer.as_str(), end.reason, end.requests), ("ok", EndReason::Answered, 3));
    session.turn("and again").await.unwrap();

    let lists = lists(&server);
    let whole = json!({ "type": "string", "format": "uri", "pattern": "^https?://", "minLength": 8 });
    let rest = json!({ "type": "string", "format": "uri", "minLength": 8 });
    assert_eq!((url(&lists[0]), url(&lists[1])), (whole, rest), "only what was named is left out");
    assert_eq!(names(&lists[0]), names(&lists[1]));
    assert!(lists[1..].iter().all(|list| *list == lists[1]), "and it stays left out");
    // The conversation that was refused is the one that was accepted.
    assert_eq!(server.requests()[0].body["messages"], server.requests()[1].body["messages"]);
    assert_eq!(
        session.heard.warnings(),
        ["the provider refused a tool's schema; asking again without pattern"],
        "the person is told, once"
    );

    let other = ModelServer::start([ok()]);
    let mut next = Plan::new().beside(&session).with_model(&other);
    next.turn("hello").await.unwrap();
    assert_eq!(self::lists(&other), [lists[0].clone()], "the next session starts with the whole schema");
    assert!(next.heard.warnings().is_empty());
}

#[tokio::test]
async fn each_refusal_that_names_something_new_is_one_more_attempt_and_one_that_does_not_is_the_end() {
    // A provider that is never satisfied: three words in turn, again and again.
    let refusals = (0..30).map(|n| refusing(["pattern", "minLength", "format"][n % 3]));
    let server = ModelServer::start(refusals);
    let mut session = Plan::new().with_tool(&fetch()).with_model(&server);
    let error = session.turn("hello").await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Rejected);
    let lists = lists(&server);
    assert_eq!(lists.len(), 4, "three words, and the first of them a second time");
    assert_eq!(url(&lists[3]), json!({ "type": "string" }));
    assert_eq!(session.heard.warnings().len(), 3);
    assert!(session.heard.warnings()[2].ends_with("without format, minLength, pattern"));
    assert_eq!(session.agent.messages().len(), 1, "nothing happened, so the message can be sent again");
    // What was learned holds in the next turn as well.
    session.turn("hello").await.unwrap_err();
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn a_refusal_of_the_same_thing_again_or_of_something_else_is_not_repeated() {
    let elsewhere = [
        "This model's maximum context length is 8192 tokens, not 9000.",
        "Invalid schema for response_format 'answer': 'pattern' is not permitted.",
        "Invalid image format: only 'png' is supported",
        "messages.3: the pattern of roles is wrong",
    ];
    for message in elsewhere {
        let server = ModelServer::start([refused(message), ok()]);
        let mut session = Plan::new().with_tool(&fetch()).with_model(&server);
        let error = session.turn("hello").await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Rejected, "{message}");
        assert!(error.message.contains(message), "{}", error.message);
        assert_eq!(server.requests().len(), 1, "{message}");
        assert!(session.heard.warnings().is_empty());
        session.turn("hello").await.unwrap();
        let lists = lists(&server);
        assert_eq!(lists[0], lists[1], "nothing was left out");
    }
    // The word is named, but by a provider that is busy or wants a key: that is no refusal of the schema.
    for code in [401, 404] {
        let body = json!({ "error": { "message": "Invalid schema for function 'fetch': 'pattern' is not permitted" } });
        let server = ModelServer::start([Reply::status(code, body.to_string())]);
        let mut session = Plan::new().with_tool(&fetch()).with_model(&server);
        session.turn("hello").await.unwrap_err();
        assert_eq!(server.requests().len(), 1, "{code}");
    }
}

#[tokio::test]
async fn a_refusal_in_the_middle_of_a_turn_keeps_what_was_done_and_calls_nothing_twice() {
    let server = ModelServer::start([call("todo"), refusing("pattern"), ok()]);
    let mut session = Plan::new().with_tool(&fetch()).with_model(&server);
    let end = session.turn("hello").await.unwrap();
    assert_eq!((end.answer.as_str(), end.requests, end.calls), ("ok", 3, 1));
    let requests = server.requests();
    assert_eq!(requests[1].body["messages"], requests[2].body["messages"]);
    assert_accepted(&requests[2].body);
}

// --------------------------------------------------------------------------------------------- tools that come and go

#[tokio::test]
async fn the_list_is_the_same_bytes_for_every_request_of_a_turn_and_of_the_turns_after_it() {
    let server = ModelServer::start([call("todo"), call("nothing_like_it"), ok(), ok(), call("todo"), ok()]);
    let mut session = Plan::new().with_tool(&fetch()).with_model(&server);
    for message in ["one", "two", "three"] {
        session.turn(message).await.unwrap();
    }
    let lists = lists(&server);
    assert_eq!(lists.len(), 6);
    assert!(!lists[0].is_empty() && lists.iter().all(|list| *list == lists[0]));
    let (mut sorted, names) = (names(&lists[0]), names(&lists[0]));
    sorted.sort_unstable();
    assert_eq!(names, sorted);
}

/// Where a tool finds the registry of the session it is called in.
type Place = Arc<OnceLock<Arc<Registry>>>;

/// A tool that acts as a plugin: each call offers the tools of the next list in the place of what it offered before.
fn changing<const N: usize>(name: &str, place: &Place, offers: [&'static [&'static str]; N]) -> Arc<FakeTool> {
    let (place, owner) = (Arc::clone(place), OnceLock::new());
    let offers = Mutex::new(offers.into_iter());
    Arc::new(FakeTool::new(name).run(move |_, _| {
        let registry = place.get().unwrap();
        let offer = offers.lock().unwrap().next().unwrap();
        let tools = offer.iter().map(|name| Arc::new(FakeTool::new(name)) as _).collect();
        registry.offer(owner.get_or_init(|| registry.owner(OwnerKind::Plugin, "late", false)), tools).unwrap();
        Ok(json!({ "ok": true }).into())
    }))
}

#[tokio::test]
async fn a_tool_that_comes_within_a_turn_is_neither_shown_nor_callable_before_the_next_one() {
    let place = Place::default();
    let install = changing("install", &place, [&["late"]]);
    let server = ModelServer::start([call("install"), call("late"), ok(), call("late"), ok()]);
    let mut session = Plan::new().with_tool(&install).with_model(&server);
    place.set(Arc::clone(session.definitions.registry())).unwrap();
    session.turn("one").await.unwrap();
    assert_eq!((status(&session, "call_1"), status(&session, "call_2")), (Status::Ok, Status::OutOfScope));
    session.turn("two").await.unwrap();
    assert_eq!(status(&session, "call_3"), Status::Ok);
    let lists = lists(&server);
    let shown: Vec<bool> = lists.iter().map(|list| has(list, "late")).collect();
    assert_eq!(shown, [false, false, false, true, true]);
    assert!(lists[0] == lists[1] && lists[1] == lists[2] && lists[3] == lists[4]);
}

#[tokio::test]
async fn a_refused_schema_does_not_let_a_new_tool_into_the_turn() {
    let place = Place::default();
    let install = changing("install", &place, [&["late"]]);
    let server = ModelServer::start([call("install"), refusing("pattern"), ok(), ok()]);
    let mut session = Plan::new().with_tool(&fetch()).with_tool(&install).with_model(&server);
    place.set(Arc::clone(session.definitions.registry())).unwrap();
    session.turn("one").await.unwrap();
    session.turn("two").await.unwrap();
    let shown: Vec<bool> = lists(&server).iter().map(|list| has(list, "late")).collect();
    assert_eq!(shown, [false, false, false, true]);
}

#[tokio::test]
async fn a_tool_that_goes_within_a_turn_stays_in_the_list_but_runs_no_more_and_is_gone_in_the_next_turn() {
    let place = Place::default();
    let change = changing("change", &place, [&["passing"], &[]]);
    let server =
        ModelServer::start([call("change"), ok(), call("passing"), call("change"), call("passing"), ok(), ok()]);
    let mut session = Plan::new().with_tool(&change).with_model(&server);
    place.set(Arc::clone(session.definitions.registry())).unwrap();
    for message in ["bring it", "take it away", "and now?"] {
        session.turn(message).await.unwrap();
    }
    let shown: Vec<bool> = lists(&server).iter().map(|list| has(list, "passing")).collect();
    assert_eq!(shown, [false, false, true, true, true, true, false]);
    assert_eq!((status(&session, "call_2"), status(&session, "call_4")), (Status::Ok, Status::UnknownTool));
    let lists = lists(&server);
    assert!(lists[2..6].iter().all(|list| *list == lists[2]), "one list for the whole turn");
    assert_eq!(lists[6], lists[0], "and the list of before, to the byte");
}

#[tokio::test]
async fn other_tools_may_be_wanted_from_the_next_turn_on_and_what_was_refused_stays_left_out() {
    let server = ModelServer::start([refusing("pattern"), ok(), ok(), ok()]);
    let mut session = Plan::new().with_tool(&fetch()).with_model(&server);
    session.turn("one").await.unwrap();
    let want = |names: &[&str]| Wanted::new(Selection::exactly(names), Profile::OpenAiChat);
    session.agent.want(want(&["test", "todo"])).unwrap();
    assert_eq!(session.agent.tools().collect::<Vec<_>>(), ["fetch", "todo"]);
    session.turn("two").await.unwrap();
    // A name that is none changes nothing.
    session.agent.want(want(&["tset"])).unwrap_err();
    session.turn("three").await.unwrap();
    let lists = lists(&server);
    assert!(has(&lists[1], "terminal"));
    assert_eq!(names(&lists[2]), ["fetch", "todo"]);
    assert!(url(&lists[2]).get("pattern").is_none(), "{lists:?}");
    assert_eq!(lists[2], lists[3]);
    assert_eq!(session.heard.warnings().len(), 1);
}

#[tokio::test]
async fn a_tool_that_was_switched_off_between_turns_is_refused_although_the_model_remembers_it() {
    let spy = Arc::new(FakeTool::new("spy").effect(Effect::Read));
    let server = ModelServer::start([call("spy"), ok(), call("spy"), ok()]);
    let mut session = Plan::new().with_tool(&spy).with_model(&server);
    session.turn("one").await.unwrap();
    let off = Selection { disabled: vec!["test".into()], ..Selection::exactly(&["all"]) };
    session.agent.want(Wanted::new(off, Profile::OpenAiChat)).unwrap();
    session.turn("two").await.unwrap();
    assert_eq!((status(&session, "call_1"), status(&session, "call_2")), (Status::Ok, Status::OutOfScope));
    assert_eq!(spy.calls().len(), 1);
    let told = session.result("call_2");
    assert!(told.contains("`spy`") && told.contains("nothing was run"), "{told}");
    assert_accepted(&server.requests()[3].body);
    assert!(!has(&lists(&server)[2], "spy"));
}

// ------------------------------------------------------------------------------------------------ brakes and budgets

#[tokio::test]
async fn a_model_that_goes_round_in_circles_ends_the_turn_and_the_conversation_goes_on() {
    let look = Arc::new(FakeTool::new("look").effect(Effect::Read));
    let mut replies: Vec<Reply> = (0..8).map(|_| call("look")).collect();
    replies.extend([call("look"), Reply::text("Now I see.")]);
    let server = ModelServer::start(replies);
    let mut session = Plan::new().with_guardrails().with_tool(&look).with_model(&server);
    let end = session.turn("look").await.unwrap();
    assert!(
        matches!(&end.reason, EndReason::Repetition(what) if what.starts_with("look gave the same result 5 times"))
    );
    assert_eq!((end.requests, end.calls, end.is_partial()), (8, 8, true));
    assert_eq!(look.calls().len(), 5);
    let Some(Message::Assistant { text, .. }) = session.agent.messages().last() else { panic!() };
    assert!(text.contains("went round in circles"), "{text}");
    // In the next turn the same call is a new one.
    assert_eq!(session.turn("once more").await.unwrap().answer, "Now I see.");
    assert_eq!((look.calls().len(), status(&session, "call_9")), (6, Status::Ok));
    assert_accepted(&server.requests()[9].body);
}

#[tokio::test]
async fn a_turn_whose_results_are_too_long_together_stores_the_longest_and_the_conversation_is_what_the_model_saw() {
    let says = |name: &str, line: &str, lines: usize| {
        let output = ToolOutput::text(format!("{line}\n").repeat(lines));
        Arc::new(FakeTool::new(name).effect(Effect::Read).parallel(true).result(Ok(output)))
    };
    let (short, long, longest) =
        (says("short", "short line", 300), says("long", "long lines", 700), says("longest", "the longest", 800));
    let calls = ["short", "longest", "long"].map(|name| Call::new(name, json!({})));
    let server = ModelServer::start([Reply::calls(calls), ok(), ok()]);
    let plan = Plan::new().with_tool(&short).with_tool(&long).with_tool(&longest);
    let budget = Budget { per_result: 10_000, per_turn: 16_000 };
    let mut session = plan.with_result_budget(budget).with_model(&server);
    session.turn("tell me").await.unwrap();

    let kept: Vec<(String, String)> =
        session.results().iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect();
    assert_eq!(kept[0].1, "short line\n".repeat(300));
    assert_eq!(kept[2].1, "long lines\n".repeat(700));
    let stored = &kept[1].1;
    assert!(stored.starts_with("<persisted-output>\nThe results of this turn have 20600 characters"), "{stored}");
    let path = stored.split("stored in ").nth(1).unwrap().split(" (").next().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "the longest\n".repeat(800));
    assert_eq!(std::path::Path::new(path).parent().unwrap(), session.store);
    let total: usize = kept.iter().map(|(_, text)| text.chars().count()).sum();
    assert!(total <= 16_000, "{total}");

    // The model was sent what is kept, in this turn and in the next one.
    session.turn("and now?").await.unwrap();
    for request in &server.requests()[1..] {
        let messages = request.body["messages"].as_array().unwrap().iter();
        let sent: Vec<(String, String)> = messages
            .filter(|message| message["role"] == "tool")
            .map(|message| {
                let field = |key: &str| message[key].as_str().unwrap().to_owned();
                (field("tool_call_id"), field("content"))
            })
            .collect();
        assert_eq!(sent, kept);
    }
    let started = session.heard.moments().iter().filter(|moment| matches!(moment, Moment::Started(_))).count();
    assert_eq!(started, 3);
}
