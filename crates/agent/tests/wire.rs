//! What travels between the agent and a provider, and what becomes of everything that goes wrong on the way.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use hermes_agent::chat_completions::{Body, Response, Transport, TransportError};
use hermes_agent::{EndReason, Event, HttpTransport, Retry};
use hermes_core::{CancellationToken, ModelErrorKind, ToolName, Usage};
use hermes_testkit::{Call, ModelServer, Reply};
use secrecy::SecretString;
use serde_json::{Value, json};
use session::{MODEL, Moment, Plan, SYSTEM, assert_accepted};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// A turn that reads one file, and its answer.
fn read_and_answer() -> [Reply; 2] {
    [Reply::calls([Call::new("read_file", json!({ "path": "a.txt" }))]), Reply::text("It says one.")]
}

// ------------------------------------------------------------------------------------------------------ what is sent

#[tokio::test]
async fn a_request_is_the_conversation_with_every_call_echoed_and_every_result_paired() {
    // Written as no serialiser would: valid arguments travel back byte for byte.
    let odd = "{ \"path\" :\t\"a.txt\" }";
    let server = ModelServer::start([
        Reply::calls([
            Call::raw("read_file", odd).with_id("read"),
            Call::raw("todo", "{bad").with_id("bad"),
            Call::raw("todo", "").with_id("empty"),
            Call::raw("make_coffee", "{}").with_id("unknown"),
        ])
        .with_text("Let me see."),
        Reply::text("Done."),
    ]);
    let mut session = Plan::new().with_file("a.txt", "one\n").with_model(&server);
    session.turn("Look at a.txt").await.unwrap();

    let requests = server.requests();
    assert_eq!(
        requests[0].body["messages"],
        json!([{ "role": "system", "content": SYSTEM }, { "role": "user", "content": "Look at a.txt" }])
    );
    let echo = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let result = |id: &str, name: &str| json!({ "role": "tool", "tool_call_id": id, "name": name, "content": session.result(id) });
    assert_eq!(
        requests[1].body["messages"],
        json!([
            { "role": "system", "content": SYSTEM },
            { "role": "user", "content": "Look at a.txt" },
            { "role": "assistant", "content": "Let me see.", "tool_calls": [
                echo("read", "read_file", odd),
                echo("bad", "todo", r#"{"invalid_arguments":"{bad"}"#),
                echo("empty", "todo", "{}"),
                echo("unknown", "make_coffee", "{}"),
            ] },
            result("read", "read_file"),
            result("bad", "todo"),
            result("empty", "todo"),
            result("unknown", "make_coffee"),
        ])
    );
    assert!(session.result("read").contains("1|one"));
    assert_accepted(&requests[1].body);
}

#[tokio::test]
async fn a_request_has_only_documented_fields_and_the_tools_come_sorted() {
    let server = ModelServer::start([Reply::text("Hi.")]);
    let mut session = Plan::new().with_model(&server);
    session.turn("Hello").await.unwrap();
    let body = &server.requests()[0].body;
    assert_eq!(keys(body), ["model", "messages", "tools", "stream", "stream_options"]);
    assert_eq!((&body["model"], &body["stream"]), (&json!(MODEL), &json!(true)));
    assert_eq!(body["stream_options"], json!({ "include_usage": true }));

    let tools = body["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"read_file"), "{names:?}");
    for tool in tools {
        assert_eq!((keys(tool), &tool["type"]), (vec!["type", "function"], &json!("function")));
        assert_eq!(keys(&tool["function"]), ["name", "description", "parameters"]);
        assert!(ToolName::new(tool["function"]["name"].as_str().unwrap()).is_ok());
        assert_eq!(tool["function"]["parameters"]["type"], "object");
    }
}

#[tokio::test]
async fn a_call_without_text_has_no_content_and_a_call_without_a_name_gets_one() {
    let server = ModelServer::start([Reply::calls([Call::new("", json!({}))]), Reply::text("Sorry.")]);
    let mut session = Plan::new().with_model(&server);
    session.turn("go").await.unwrap();
    let assistant = &server.requests()[1].body["messages"][2];
    assert_eq!(assistant["content"], Value::Null);
    assert_eq!(assistant["tool_calls"][0]["function"]["name"], "invalid_tool_call");
    let result = session.result("call_1");
    assert!(result.contains("without a name") && !result.contains("read_file"), "{result}");
}

#[tokio::test]
async fn a_name_that_providers_refuse_does_not_poison_the_history() {
    // They check the names in the history too, and would refuse this conversation for ever after.
    let names = ["two words", "naïve", "functions.todo!", &"x".repeat(65)].map(|name| Call::new(name, json!({})));
    let server = ModelServer::start([Reply::calls(names), Reply::text("Sorry.")]);
    let mut session = Plan::new().with_model(&server);
    session.turn("go").await.unwrap();
    for call in server.requests()[1].body["messages"][2]["tool_calls"].as_array().unwrap() {
        let name = call["function"]["name"].as_str().unwrap();
        assert!(ToolName::new(name).is_ok(), "{name:?} was sent back");
    }
}

#[tokio::test]
async fn the_same_conversation_is_the_same_bytes_and_grows_only_at_its_end() {
    let talk = || async {
        let server = ModelServer::start([read_and_answer(), read_and_answer()].concat());
        let mut session = Plan::new().with_file("a.txt", "one\n").with_model(&server);
        session.turn("Look").await.unwrap();
        session.turn("Again").await.unwrap();
        server.requests().into_iter().map(|request| request.body).collect::<Vec<Value>>()
    };
    let (once, twice) = (talk().await, talk().await);
    assert_eq!(once.len(), 4);
    let bytes = |requests: &[Value]| requests.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(bytes(&once), bytes(&twice));
    // Providers cache by prefix: what was sent once never changes.
    for pair in once.windows(2) {
        let messages = |body: &Value| bytes(body["messages"].as_array().unwrap());
        assert!(messages(&pair[1]).starts_with(&messages(&pair[0])));
        assert_eq!(pair[0]["tools"].to_string(), pair[1]["tools"].to_string());
    }
}

#[tokio::test]
async fn the_output_limit_is_sent_where_there_is_one() {
    let server = ModelServer::start([Reply::text("Hi.")]);
    let mut session = Plan::new().with_max_tokens(123).with_model(&server);
    session.turn("Hello").await.unwrap();
    assert_eq!(server.requests()[0].body["max_tokens"], 123);
}

#[tokio::test]
async fn the_key_travels_in_the_header_and_nowhere_else() {
    let key = SecretString::from("sk-very-secret");
    let server = ModelServer::start([Reply::status(500, "{}"), Reply::status(401, "{}")]);
    let mut session = Plan::new().over(HttpTransport::new(&server.base_url(), Some(&key)).unwrap());
    let error = session.turn("Hello").await.unwrap_err();
    let requests = server.requests();
    assert_eq!(requests[0].headers["authorization"], "Bearer sk-very-secret");
    assert_eq!(requests[0].headers["content-type"], "application/json");
    assert!(!requests[0].body.to_string().contains("sk-very-secret"));
    assert!(!format!("{error:?} {:?} {:?}", session.heard.moments(), session.agent).contains("sk-very-secret"));

    let server = ModelServer::start([Reply::text("Hi.")]);
    Plan::new().with_model(&server).turn("Hello").await.unwrap();
    assert!(!server.requests()[0].headers.contains_key("authorization"));
}

#[tokio::test]
async fn a_redirect_is_not_followed_so_that_the_key_stays_where_it_was_meant_to_go() {
    let elsewhere = ModelServer::start([Reply::text("I am somebody else.")]);
    let there = format!("{}/chat/completions", elsewhere.base_url());
    for status in [301, 302, 307, 308] {
        let server = ModelServer::start([Reply::status(status, "").with_header("location", there.clone())]);
        let mut session = Plan::new().with_model(&server);
        let error = session.turn("Hello").await.unwrap_err();
        assert_eq!((error.kind, server.requests().len()), (ModelErrorKind::NotFound, 1), "{status}: {error}");
        assert!(error.message.contains("moved"), "{error}");
    }
    assert!(elsewhere.requests().is_empty());
}

// -------------------------------------------------------------------------------------------------- what comes back

#[tokio::test]
async fn an_answer_in_one_piece_and_one_in_many_are_the_same_answer() {
    let replies = |size: usize| {
        let calls = [Call::new("read_file", json!({ "path": "é漢.txt" })), Call::new("todo", json!({}))];
        [
            Reply::calls(calls).with_text("Ich schaue nach – 漢字.").in_chunks_of(size),
            Reply::text("Da steht „één“ 🧪.").in_chunks_of(size),
        ]
    };
    let mut conversations = Vec::new();
    for (size, streamed) in [(1, true), (3, true), (1_000, true), (1, false)] {
        let server = ModelServer::start(replies(size));
        let plan = Plan::new().with_file("é漢.txt", "één\n");
        let mut session = if streamed { plan } else { plan.not_streamed() }.with_model(&server);
        let end = session.turn("lies").await.unwrap();
        assert_eq!(end.answer, "Da steht „één“ 🧪.");
        assert_eq!(session.heard.shown(), ["Ich schaue nach – 漢字.", "Da steht „één“ 🧪."]);
        let body = &server.requests()[1].body;
        assert_eq!(body.get("stream").is_some(), streamed);
        assert_eq!(body.get("stream_options").is_some(), streamed);
        conversations.push(session.agent.messages().to_vec());
    }
    assert!(conversations.windows(2).all(|pair| pair[0] == pair[1]), "{conversations:#?}");
}

#[tokio::test]
async fn a_text_that_arrives_in_pieces_is_heard_in_pieces() {
    let server = ModelServer::start([Reply::text("one two three").in_chunks_of(4)]);
    let mut session = Plan::new().with_model(&server);
    session.turn("count").await.unwrap();
    let heard = session.heard.moments();
    let texts = heard.iter().filter(|moment| matches!(moment, Moment::Text(_))).count();
    assert!(texts >= 3, "{heard:?}");
}

#[tokio::test]
async fn a_server_that_answers_whole_although_it_was_asked_to_stream_is_understood() {
    let message = json!({ "role": "assistant", "content": "All at once." });
    let body = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] });
    let server = ModelServer::start([Reply::status(200, body.to_string())]);
    let end = Plan::new().with_model(&server).turn("go").await.unwrap();
    assert_eq!((end.answer.as_str(), end.reason), ("All at once.", EndReason::Answered));
}

#[tokio::test]
async fn usage_is_summed_over_the_requests_of_a_turn_and_the_turns_of_a_session() {
    for streamed in [true, false] {
        let server = ModelServer::start([
            Reply::calls([Call::new("todo", json!({}))]).with_usage(100, 10),
            Reply::text("One.").with_usage(200, 20),
            Reply::text("Two.").with_usage(1_000, 1),
            Reply::text("Three."),
        ]);
        let plan = Plan::new();
        let mut session = if streamed { plan } else { plan.not_streamed() }.with_model(&server);
        let usage = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, cached_tokens: 0 };
        assert_eq!(session.turn("one").await.unwrap().usage, usage(300, 30));
        assert_eq!(session.turn("two").await.unwrap().usage, usage(1_000, 1));
        assert_eq!(session.turn("three").await.unwrap().usage, Usage::default());
        assert_eq!(session.agent.usage(), usage(1_300, 31));
    }
}

#[tokio::test]
async fn reasoning_is_heard_apart_and_is_neither_the_answer_nor_sent_back() {
    for (size, streamed) in [(1, true), (7, true), (1_000, true), (1, false)] {
        let server = ModelServer::start([
            Reply::text("<think>a secret plan</think>\n\nfinal answer").in_chunks_of(size),
            Reply::text("yes"),
        ]);
        let plan = Plan::new();
        let mut session = if streamed { plan } else { plan.not_streamed() }.with_model(&server);
        assert_eq!(session.turn("go").await.unwrap().answer, "final answer");
        assert_eq!(session.heard.shown(), ["final answer"]);
        assert_eq!(session.heard.reasoning(), "a secret plan");
        session.turn("sure?").await.unwrap();
        let sent = &server.requests()[1].body["messages"];
        assert_eq!(sent[2], json!({ "role": "assistant", "content": "final answer" }));
        assert!(!sent.to_string().contains("secret"), "{sent}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_like_the_beginning_of_a_tag_is_whole() {
    for text in ["a < b <thin", "<", "x <think", "see <thinking>"] {
        let server = ModelServer::start([Reply::text(text).in_chunks_of(1)]);
        let mut session = Plan::new().with_model(&server);
        assert_eq!(session.turn("go").await.unwrap().answer, text);
        assert_eq!((session.heard.shown(), session.heard.reasoning()), (vec![text.to_owned()], String::new()));
    }
}

// ------------------------------------------------------------------------------------------------ what is tried again

#[tokio::test]
async fn a_stream_that_breaks_off_is_asked_for_again_and_what_it_showed_is_withdrawn() {
    for events in [0, 1, 3] {
        let server = ModelServer::start([
            Reply::text("Half of a wrong answer").in_chunks_of(5).cut_after(events),
            Reply::text("The whole answer."),
        ]);
        let mut session = Plan::new().with_model(&server);
        let end = session.turn("go").await.unwrap();
        assert_eq!((end.answer.as_str(), end.requests), ("The whole answer.", 1), "an attempt is no request");
        assert_eq!(session.heard.shown(), ["The whole answer."]);
        let heard = session.heard.moments();
        if events == 3 {
            assert!(heard.contains(&Moment::Text("Half ".into())), "something was there to withdraw: {heard:?}");
        }
        let [restart] = session.heard.restarts()[..] else { panic!("{heard:?}") };
        assert_eq!(restart.0, 2);
        let requests = server.requests();
        assert_eq!(requests[0].body.to_string(), requests[1].body.to_string(), "the same thing is asked again");
        assert_eq!(session.agent.messages().len(), 3);
    }
}

#[tokio::test]
async fn a_call_in_a_stream_that_breaks_off_is_not_run() {
    let write = || Reply::calls([Call::new("write_file", json!({ "path": "twice.txt", "content": "x" }))]);
    // Everything is there but the word that this was all.
    let server = ModelServer::start([write().cut_after(100), Reply::text("I changed my mind.")]);
    let mut session = Plan::new().with_model(&server);
    let end = session.turn("go").await.unwrap();
    assert_eq!((end.answer.as_str(), end.calls), ("I changed my mind.", 0));
    assert!(!session.home.work().join("twice.txt").exists());
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_and_breaks_off_is_asked_for_again_too() {
    for events in [0, 1] {
        let server = ModelServer::start([Reply::text("Never mind.").cut_after(events), Reply::text("Whole.")]);
        let mut session = Plan::new().not_streamed().with_model(&server);
        assert_eq!(session.turn("go").await.unwrap().answer, "Whole.");
        assert_eq!((session.heard.shown(), session.heard.restarts().len()), (vec!["Whole.".to_owned()], 1));
    }
}

#[tokio::test]
async fn a_stream_that_ends_politely_but_too_early_broke_off_as_well() {
    let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": "Half" }, "finish_reason": null }] });
    for body in [format!("data: {chunk}\n\n"), format!("data: {chunk}\n\ndata: [DONE]\n\n"), String::new()] {
        let server = ModelServer::start([Reply::garbage(body.clone()), Reply::text("Whole.")]);
        let mut session = Plan::new().with_model(&server);
        assert_eq!(session.turn("go").await.unwrap().answer, "Whole.", "{body}");
        assert_eq!(session.heard.shown(), ["Whole."], "{body}");
    }
}

#[tokio::test]
async fn a_provider_that_is_busy_says_how_long_to_wait_and_is_asked_again() {
    let busy = || Reply::status(429, r#"{"error":{"message":"slow down"}}"#);
    // The wait of our own would be a minute: this test ends because zero is what was asked for.
    let patient = Retry { attempts: 3, base: Duration::from_secs(60) };
    let server = ModelServer::start([
        busy().with_header("retry-after", "0"),
        busy().with_header("Retry-After", "0.0"),
        Reply::text("Now."),
    ]);
    let mut session = Plan::new().with_retry(patient).with_model(&server);
    assert_eq!(session.turn("go").await.unwrap().answer, "Now.");
    assert_eq!(session.heard.restarts(), [(2, Duration::ZERO), (3, Duration::ZERO)]);
    let Some(Moment::Restart { reason, of, .. }) = session.heard.moments().get(1).cloned() else { panic!() };
    assert!(reason.contains("429") && reason.contains("slow down") && of == 3, "{reason}");
}

#[tokio::test]
async fn without_a_number_of_seconds_the_wait_is_our_own() {
    for header in [None, Some("Wed, 21 Oct 2099 07:28:00 GMT"), Some("-5"), Some("soon"), Some("inf")] {
        let busy = Reply::status(503, "{}");
        let busy = if let Some(value) = header { busy.with_header("retry-after", value) } else { busy };
        let server = ModelServer::start([busy, Reply::text("Now.")]);
        let mut session = Plan::new().with_model(&server);
        assert_eq!(session.turn("go").await.unwrap().answer, "Now.");
        let [(2, delay)] = session.heard.restarts()[..] else { panic!("{header:?}") };
        assert!((1_000..=1_500).contains(&delay.as_micros()), "{header:?}: {delay:?}");
    }
}

#[tokio::test]
async fn a_wait_longer_than_time_itself_is_cut_and_can_be_interrupted() {
    let server = ModelServer::start([Reply::status(429, "{}").with_header("retry-after", "1e30")]);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let stop_at_the_wait = move |event: &Event<'_>| {
        if matches!(event, Event::Restart { .. }) {
            stop.cancel();
        }
    };
    let mut session = Plan::new().reacting(stop_at_the_wait).with_model(&server);
    let end = session.turn_until("go", &cancel).await.unwrap();
    assert_eq!(end.reason, EndReason::Cancelled);
    let [(2, delay)] = session.heard.restarts()[..] else { panic!() };
    assert_eq!(delay, Duration::from_secs(600), "too long is cut, not forgotten");
}

#[tokio::test]
async fn what_stays_broken_is_an_error_of_its_kind_after_three_attempts() {
    let overloaded = r#"{"error":{"message":"overloaded"}}"#;
    for (reply, kind, said) in [
        (Reply::status(500, overloaded), ModelErrorKind::Busy, "500: overloaded"),
        (Reply::status(503, "<h1>Bad\n gateway</h1>"), ModelErrorKind::Busy, "503: <h1>Bad gateway</h1>"),
        (Reply::status(429, ""), ModelErrorKind::Busy, "answered 429"),
        (Reply::status(408, "{}"), ModelErrorKind::Busy, "answered 408"),
        (Reply::garbage("data: this is no answer\n\n"), ModelErrorKind::Garbled, "\"this is no answer\""),
        (Reply::garbage("data: {\"hello\":1}\n\n"), ModelErrorKind::Garbled, "hello"),
        (Reply::garbage("complete nonsense"), ModelErrorKind::Garbled, "broke off"),
        (Reply::status(200, "{\"hello\":1}"), ModelErrorKind::Garbled, "hello"),
        (Reply::status(200, "not even JSON"), ModelErrorKind::Garbled, "not even JSON"),
        (Reply::text("half").cut_after(1), ModelErrorKind::Garbled, "broke off"),
        (Reply::garbage(format!("data: {overloaded}\n\n")), ModelErrorKind::Busy, "overloaded"),
        (Reply::status(200, overloaded), ModelErrorKind::Busy, "overloaded"),
    ] {
        let server = ModelServer::start(std::iter::repeat_n(reply.clone(), 5));
        let mut session = Plan::new().with_model(&server);
        let error = session.turn("go").await.unwrap_err();
        assert_eq!(error.kind, kind, "{reply:?}: {error}");
        assert_eq!(server.requests().len(), 3, "{reply:?}");
        assert!(error.message.contains(said), "{reply:?}: {error}");
        assert!(error.message.contains("3 attempts") && error.message.contains(&server.base_url()), "{error}");
        assert!(!error.message.contains('\n'), "an error is one line: {error}");
        assert_eq!(session.agent.messages().len(), 1);
    }
}

#[tokio::test]
async fn what_another_attempt_cannot_mend_is_not_attempted_again() {
    for (status, kind, hint) in [
        (400, ModelErrorKind::Rejected, "no such thing"),
        (413, ModelErrorKind::Rejected, "413"),
        (422, ModelErrorKind::Rejected, "422"),
        (401, ModelErrorKind::Credentials, "API key"),
        (403, ModelErrorKind::Credentials, "API key"),
        (404, ModelErrorKind::NotFound, "model.base_url"),
    ] {
        let refusal = || Reply::status(status, r#"{"error":{"message":"no such thing"}}"#);
        let server = ModelServer::start([refusal(), Reply::text("Too late.")]);
        let mut session = Plan::new().with_model(&server);
        let error = session.turn("go").await.unwrap_err();
        assert_eq!((error.kind, server.requests().len()), (kind, 1), "{status}: {error}");
        assert!(error.message.contains(hint) && error.message.contains("no such thing"), "{status}: {error}");
        assert!(!error.message.contains("attempts"), "{error}");
        assert!(session.heard.restarts().is_empty());
    }
}

/// A way to the model that always ends at a web page.
#[derive(Clone, Default)]
struct Page(Arc<AtomicUsize>);

#[async_trait]
impl Transport for Page {
    fn place(&self) -> String {
        "a hotel".into()
    }

    async fn post(&self, _: &Body) -> Result<Response, TransportError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let page = Bytes::from("<!doctype html><h1>Please log in</h1>");
        let body = futures::stream::iter([Ok(page)]).boxed();
        Ok(Response { status: 200, content_type: "text/html; charset=utf-8".into(), retry_after: None, body })
    }
}

#[tokio::test]
async fn a_web_page_is_no_answer_and_asking_again_would_not_make_it_one() {
    let page = Page::default();
    let mut session = Plan::new().over(page.clone());
    let error = session.turn("go").await.unwrap_err();
    assert_eq!((error.kind, page.0.load(Ordering::SeqCst)), (ModelErrorKind::Garbled, 1));
    assert!(error.message.contains("web page") && error.message.contains("model.base_url"), "{error}");
}

#[tokio::test]
async fn an_address_that_cannot_be_one_is_refused_before_anything_is_sent() {
    for address in ["", "not an address", "ftp://example.org/v1", "example.org/v1"] {
        let error = HttpTransport::new(address, None).map(|transport| transport.place()).unwrap_err();
        assert!(matches!(error, TransportError::Address(_)), "{address}: {error}");
        assert!(error.to_string().contains(&format!("\"{address}\"")), "{error}");
    }
    let odd = SecretString::from("two\nlines");
    let error = HttpTransport::new("http://localhost/v1", Some(&odd)).map(|transport| transport.place()).unwrap_err();
    assert!(!error.to_string().contains("two"), "{error}");
}
