//! The model server, seen from the other end of the wire.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod http;

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hermes_testkit::{Call, ModelServer, Reply, unused_base_url};
use serde_json::{Value, json};

use http::{Answer, authority, finish, open, post, request};

fn deltas(answer: &Answer) -> Vec<Value> {
    let chunks = answer.chunks();
    chunks.iter().filter_map(|chunk| chunk["choices"].get(0)).map(|choice| choice["delta"].clone()).collect()
}

#[test]
fn streamed_text_comes_in_pieces_then_a_reason_then_usage_then_done() {
    let server = ModelServer::start([Reply::text("héllo").in_chunks_of(2).with_usage(7, 3)]);
    let answer = post(&server, &request(true));

    assert_eq!(answer.status, 200);
    assert!(answer.complete);
    assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
    assert_eq!(answer.events().last(), Some(&"[DONE]"));
    assert_eq!(
        deltas(&answer),
        [
            json!({ "role": "assistant", "content": "", "refusal": null }),
            json!({ "content": "h" }),
            json!({ "content": "é" }),
            json!({ "content": "ll" }),
            json!({ "content": "o" }),
            json!({}),
        ]
    );
    let chunks = answer.chunks();
    let reasons: Vec<_> =
        chunks.iter().filter_map(|chunk| chunk["choices"].get(0)).map(|c| &c["finish_reason"]).collect();
    assert_eq!(reasons.last(), Some(&&json!("stop")));
    assert!(reasons.iter().rev().skip(1).all(|reason| reason.is_null()), "{reasons:?}");
    let usage = chunks.last().unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"], json!({ "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 }));
    assert_eq!(usage["model"], "some-model");
    assert_eq!(usage["object"], "chat.completion.chunk");
}

#[test]
fn usage_is_streamed_only_to_those_who_ask() {
    let server = ModelServer::start([Reply::text("hi").with_usage(7, 3)]);
    let answer = post(&server, &json!({ "model": "some-model", "stream": true }));
    assert!(answer.complete && !answer.body.contains("usage"), "{}", answer.body);
    assert!(answer.chunks().iter().all(|chunk| chunk["choices"][0].is_object()), "{}", answer.body);
}

#[test]
fn streamed_calls_name_the_tool_first_and_then_send_the_arguments() {
    let calls = [Call::new("read_file", json!({ "path": "a" })), Call::raw("terminal", "{bad")];
    let server = ModelServer::start([Reply::calls(calls).in_chunks_of(8)]);
    let answer = post(&server, &request(true));

    let first = |index: u64, id: &str, name: &str| {
        let function = json!({ "name": name, "arguments": "" });
        json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] })
    };
    let fragment = |index: u64, arguments: &str| json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] });
    assert_eq!(
        deltas(&answer),
        [
            json!({ "role": "assistant", "content": null, "refusal": null }),
            first(0, "call_1", "read_file"),
            fragment(0, r#"{"path":"#),
            fragment(0, r#""a"}"#),
            first(1, "call_2", "terminal"),
            fragment(1, "{bad"),
            json!({}),
        ]
    );
    assert!(answer.body.contains(r#""finish_reason":"tool_calls""#));
}

#[test]
fn a_whole_answer_is_one_object() {
    let call = Call::new("read_file", json!({ "path": "a" }));
    let server = ModelServer::start([Reply::calls([call]).with_text("Looking.").with_usage(7, 3).finish("length")]);
    let answer = post(&server, &request(false));

    assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    let body = answer.json();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["usage"]["total_tokens"], 10);
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], "length");
    assert_eq!(choice["message"]["content"], "Looking.");
    let function = json!({ "name": "read_file", "arguments": r#"{"path":"a"}"# });
    assert_eq!(choice["message"]["tool_calls"], json!([{ "id": "call_1", "type": "function", "function": function }]));
}

#[test]
fn call_ids_are_unique_across_replies() {
    let call = || Call::new("now", json!({}));
    let server = ModelServer::start([Reply::calls([call(), call().with_id("mine")]), Reply::calls([call()])]);
    let ids = |answer: &Answer| {
        let calls = answer.json()["choices"][0]["message"]["tool_calls"].as_array().cloned().unwrap();
        calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&post(&server, &request(false))), ["call_1", "mine"]);
    assert_eq!(ids(&post(&server, &request(false))), ["call_2"]);
}

#[test]
fn a_status_comes_with_its_body_and_headers() {
    let server = ModelServer::start([Reply::status(429, r#"{"error":"slow down"}"#).with_header("retry-after", "1")]);
    let answer = post(&server, &request(true));
    assert_eq!(answer.status, 429);
    assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
    assert_eq!(answer.json(), json!({ "error": "slow down" }));
}

#[test]
fn garbage_is_sent_as_it_is() {
    let server = ModelServer::start([Reply::garbage("<html>busy</html>")]);
    let answer = post(&server, &request(true));
    assert_eq!((answer.status, answer.body.as_str()), (200, "<html>busy</html>"));
    assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
}

#[test]
fn a_cut_stream_breaks_off_after_that_many_events() {
    let server = ModelServer::start([Reply::text("abc").in_chunks_of(1).cut_after(2)]);
    let answer = post(&server, &request(true));
    assert!(!answer.complete);
    assert_eq!(deltas(&answer)[1..], [json!({ "content": "a" })]);
}

#[test]
fn a_cut_stream_never_looks_finished() {
    let server = ModelServer::start([Reply::text("abc").cut_after(99), Reply::text("abc").cut_after(99)]);
    let streamed = post(&server, &request(true));
    assert!(!streamed.complete && !streamed.body.contains("[DONE]"), "{}", streamed.body);
    assert!(streamed.chunks().iter().all(|chunk| chunk["choices"][0]["finish_reason"].is_null()));
    let whole = post(&server, &request(false));
    assert!(!whole.complete && serde_json::from_str::<Value>(&whole.body).is_err(), "{}", whole.body);
}

#[test]
fn a_hanging_stream_stays_open_until_the_server_goes() {
    let server = ModelServer::start([Reply::text("abc").hang(), Reply::text("done")]);
    let mut hanging = open(&server, "POST /v1/chat/completions", &request(true).to_string());
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\n\n") {
        hanging.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
    hanging.read_exact(&mut [0; 2]).unwrap();

    // The server has one thread: by the time it has served somebody else, it would have closed or gone on here.
    assert!(post(&server, &request(true)).complete);
    hanging.set_nonblocking(true).unwrap();
    assert_eq!(hanging.peek(&mut byte).unwrap_err().kind(), ErrorKind::WouldBlock);
    hanging.set_nonblocking(false).unwrap();

    drop(server);
    let mut rest = Vec::new();
    hanging.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
}

#[test]
fn an_answer_comes_no_sooner_than_its_delay() {
    let delay = Duration::from_millis(30);
    let server = ModelServer::start([Reply::text("late").after(delay)]);
    let answer = post(&server, &request(false));
    let answered = Instant::now();
    assert_eq!(answer.status, 200);
    assert!(answered - server.requests()[0].received >= delay);
}

#[test]
fn requests_are_kept_with_their_headers() {
    let server = ModelServer::start([Reply::text("one"), Reply::text("two")]);
    assert!(server.requests().is_empty());
    post(&server, &request(true));
    post(&server, &request(false));

    let requests = server.wait_for_requests(2);
    assert_eq!(requests.iter().map(|seen| seen.body.clone()).collect::<Vec<_>>(), [request(true), request(false)]);
    assert_eq!(requests[0].headers["authorization"], "Bearer key");
    assert_eq!(requests[0].headers["x-twice"], "1, 2");
    assert!(requests[0].received < requests[1].received);
}

#[test]
fn a_script_that_has_ended_says_so() {
    let server = ModelServer::start([]);
    let answer = post(&server, &request(true));
    assert_eq!(answer.status, 500);
    assert_eq!(answer.json()["error"]["message"], "the script of this server has ended");
}

#[test]
fn a_body_that_is_no_json_is_kept_and_costs_no_reply() {
    let server = ModelServer::start([Reply::text("for the next one")]);
    assert_eq!(finish(open(&server, "POST /v1/chat/completions", "{oops")).status, 400);
    assert_eq!(server.requests()[0].body, "{oops");
    assert_eq!(post(&server, &request(false)).status, 200);
}

#[test]
fn models_are_listed_without_being_a_request() {
    let server = ModelServer::start([]);
    let answer = finish(open(&server, "GET /v1/models", ""));
    assert_eq!(answer.json()["object"], "list");
    assert_eq!(answer.json()["data"][0]["id"], "test-model");
    assert!(server.requests().is_empty());
}

#[test]
fn nobody_listens_on_an_unused_address_or_after_the_drop() {
    let server = ModelServer::start([]);
    let gone = server.base_url();
    TcpStream::connect(authority(&gone)).expect("a running server accepts");
    drop(server);
    for url in [gone, unused_base_url()] {
        let refused = TcpStream::connect(authority(&url)).expect_err("somebody listens");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{url}");
    }
}

#[test]
#[should_panic(expected = "no turn to shape")]
fn shaping_a_turn_that_is_none_panics() {
    let _ = Reply::status(500, "").with_text("lost");
}
