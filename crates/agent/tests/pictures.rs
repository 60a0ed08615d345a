//! Pictures that tools attach: what the model is sent, and what happens where it takes none.
#![allow(clippy::unwrap_used)]

mod session;

use std::sync::Arc;

use hermes_agent::Sight;
use hermes_agent::agent::EndReason;
use hermes_core::{Attachment, ToolOutput};
use hermes_testkit::{Call, FakeTool, ModelServer, Reply};
use serde_json::{Value, json};

use crate::session::{Plan, assert_accepted};

/// The smallest PNG there is.
const DOT: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8,
    6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0a, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0, 1, 0, 0, 5, 0, 1,
    0x0d, 0x0a, 0x2d, 0xb4, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

/// A tool whose results have a picture beside the text.
fn camera(media_type: &str, bytes: usize) -> Arc<FakeTool> {
    let picture = Attachment { media_type: media_type.into(), data: vec![7; bytes] };
    Arc::new(FakeTool::new("camera").result(Ok(ToolOutput { attachments: vec![picture], ..ToolOutput::text("click") })))
}

fn click() -> Reply {
    Reply::calls([Call::new("camera", json!({}))])
}

/// All pictures of a request, as they are sent.
fn sent(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let parts = messages.filter_map(|message| message["content"].as_array()).flatten();
    parts.filter_map(|part| part["image_url"]["url"].as_str().map(str::to_owned)).collect()
}

fn refusal(status: u16, message: &str) -> Reply {
    Reply::status(status, json!({ "error": { "message": message } }).to_string())
}

#[tokio::test]
async fn a_picture_that_is_read_follows_after_all_results_of_the_turn() {
    let calls =
        [Call::new("read_file", json!({ "path": "dot.png" })), Call::new("read_file", json!({ "path": "a.txt" }))];
    let server = ModelServer::start([Reply::calls(calls), Reply::text("A dot."), Reply::text("Still a dot.")]);
    let mut session = Plan::new().with_file("a.txt", "x\n").with_file("dot.png", DOT).with_model(&server);
    assert_eq!(session.turn("what is it?").await.unwrap().answer, "A dot.");
    session.turn("sure?").await.unwrap();

    let requests = server.requests();
    for request in &requests {
        assert_accepted(&request.body);
    }
    let roles: Vec<&str> =
        requests[1].body["messages"].as_array().unwrap().iter().filter_map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
    let parts = &requests[1].body["messages"][5]["content"];
    assert!(parts[0]["text"].as_str().unwrap().contains("dot.png (image/png, 67 bytes)"), "{parts}");
    assert!(parts[1]["image_url"]["url"].as_str().unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"), "{parts}");
    let before = requests[1].body["messages"].as_array().unwrap();
    assert_eq!(
        requests[2].body["messages"].as_array().unwrap()[..before.len()],
        before[..],
        "the history stays as it was"
    );
}

#[tokio::test]
async fn where_pictures_are_refused_they_are_put_into_words_once_and_for_all() {
    for refused in [
        refusal(400, "messages.3.content: invalid type: sequence, expected a string"),
        refusal(404, "No endpoints found that support image input"),
        refusal(422, "Unprocessable"),
    ] {
        let server = ModelServer::start([click(), refused, click(), Reply::text("ok"), Reply::text("ok")]);
        let mut session = Plan::new().with_tool(&camera("image/png", 9)).with_model(&server);
        let end = session.turn("look").await.unwrap();
        assert_eq!((end.answer.as_str(), end.reason), ("ok", EndReason::Answered));
        session.turn("and?").await.unwrap();
        let requests = server.requests();
        let counts: Vec<usize> = requests.iter().map(|request| sent(&request.body).len()).collect();
        assert_eq!(counts, [0, 1, 0, 0, 0]);
        for request in &requests {
            assert_accepted(&request.body);
        }
        let messages = requests[3].body["messages"].to_string();
        assert_eq!(messages.matches("They cannot be sent to this model").count(), 2, "{messages}");
        assert_eq!(session.heard.warnings().len(), 1, "the person is told, once");
        assert!(session.heard.warnings()[0].contains("refused the pictures"));
    }
}

#[tokio::test]
async fn a_refusal_after_pictures_were_taken_is_about_something_else() {
    let server =
        ModelServer::start([click(), Reply::text("seen"), refusal(400, "context too long"), Reply::text("no")]);
    let mut session = Plan::new().with_tool(&camera("image/jpeg", 9)).with_model(&server);
    session.turn("look").await.unwrap();
    session.turn("again").await.unwrap_err();
    assert_eq!(server.requests().len(), 3);
    assert_eq!(sent(&server.requests()[2].body).len(), 1);
    assert!(session.heard.warnings().is_empty());
}

#[tokio::test]
async fn a_refusal_that_stays_without_the_pictures_was_not_about_them() {
    let too_long = || refusal(400, "context too long");
    let server = ModelServer::start([click(), too_long(), too_long(), Reply::text("seen")]);
    let mut session = Plan::new().with_tool(&camera("image/png", 9)).with_model(&server);
    session.turn("look").await.unwrap_err();
    session.turn("again").await.unwrap();
    let counts: Vec<usize> = server.requests().iter().map(|request| sent(&request.body).len()).collect();
    assert_eq!(counts, [0, 1, 0, 1]);
}

#[tokio::test]
async fn a_server_that_is_down_says_nothing_about_pictures() {
    let down = || refusal(503, "overloaded");
    let replies = [click(), refusal(400, "too long"), down(), down(), down(), Reply::text("seen")];
    let server = ModelServer::start(replies);
    let mut session = Plan::new().with_tool(&camera("image/png", 9)).with_model(&server);
    session.turn("look").await.unwrap_err();
    session.turn("again").await.unwrap();
    assert_eq!(sent(&server.requests().last().unwrap().body).len(), 1);
}

#[tokio::test]
async fn what_somebody_says_of_a_model_counts() {
    let server = ModelServer::start([click(), Reply::text("ok")]);
    let mut session = Plan::new().with_tool(&camera("image/png", 9)).with_sight(Sight::Blind).with_model(&server);
    session.turn("look").await.unwrap();
    let request = &server.requests()[1].body;
    assert!(sent(request).is_empty() && request.to_string().contains("They cannot be sent to this model"), "{request}");

    let server = ModelServer::start([click(), refusal(400, "bad weather"), Reply::text("ok")]);
    let mut session = Plan::new().with_tool(&camera("image/png", 9)).with_sight(Sight::Sees).with_model(&server);
    session.turn("look").await.unwrap_err();
    assert_eq!(server.requests().len(), 2, "it takes pictures, so they cannot be the reason");
}

#[tokio::test]
async fn what_is_sent_is_bounded() {
    let rounds = 10;
    let replies = (0..rounds).map(|_| click()).chain([Reply::text("ok")]);
    let server = ModelServer::start(replies);
    let mut session = Plan::new().with_tool(&camera("image/webp", 9)).with_model(&server);
    session.turn("look").await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.iter().map(|request| sent(&request.body).len()).max(), Some(8));
    assert_eq!(sent(&requests[rounds].body).len(), 8);
    assert_accepted(&requests[rounds].body);

    for (media_type, bytes, why) in
        [("image/png", 4_000_000, "too large"), ("audio/wav", 9, "no format that models read")]
    {
        let server = ModelServer::start([click(), Reply::text("ok")]);
        let mut session = Plan::new().with_tool(&camera(media_type, bytes)).with_model(&server);
        session.turn("look").await.unwrap();
        let request = &server.requests()[1].body;
        assert!(sent(request).is_empty() && request.to_string().contains(why), "{media_type}");
        assert_accepted(request);
    }
}

#[tokio::test]
async fn when_the_budget_is_spent_after_a_picture_one_message_says_both() {
    let server = ModelServer::start([click(), Reply::text("summary")]);
    let mut session = Plan::new().with_tool(&camera("image/png", 9)).with_budget(1).with_model(&server);
    let end = session.turn("look").await.unwrap();
    assert_eq!(end.reason, EndReason::BudgetSpent);
    let request = &server.requests()[1].body;
    assert_accepted(request);
    assert_eq!(sent(request).len(), 1);
    assert!(request.to_string().contains("budget of 1 steps"));
}
