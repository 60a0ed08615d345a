//! Just enough of an HTTP/1.1 client to see what a real one hides: whether a body ended or broke off.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use hermes_testkit::ModelServer;
use serde_json::{Value, json};

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The head as sent, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
    /// Whether the last chunk arrived (RFC 9112 §8), as opposed to the connection just closing.
    pub(crate) complete: bool,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }

    /// The `data:` of each event of the body.
    pub(crate) fn events(&self) -> Vec<&str> {
        let events = self.body.split_terminator("\n\n");
        events.map(|event| event.strip_prefix("data: ").unwrap_or_else(|| panic!("no event: {event:?}"))).collect()
    }

    /// The events that are JSON, which is all but `[DONE]`.
    pub(crate) fn chunks(&self) -> Vec<Value> {
        self.events().iter().filter(|event| **event != "[DONE]").map(|event| event.parse().unwrap()).collect()
    }
}

/// A request body that asks for a stream with usage, or for a whole answer.
pub(crate) fn request(stream: bool) -> Value {
    let mut body = json!({ "model": "some-model", "messages": [{ "role": "user", "content": "hi" }] });
    if stream {
        body["stream"] = true.into();
        body["stream_options"] = json!({ "include_usage": true });
    }
    body
}

/// Sends a chat completion request and reads the answer to its end.
pub(crate) fn post(server: &ModelServer, body: &Value) -> Answer {
    finish(open(server, "POST /v1/chat/completions", &body.to_string()))
}

/// Sends any request and leaves the answer unread.
pub(crate) fn open(server: &ModelServer, method_and_path: &str, body: &str) -> TcpStream {
    let authority = authority(&server.base_url());
    let mut stream = TcpStream::connect(&authority).unwrap();
    // Only a failing test gets there: every answer either ends or is cut by the server.
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method_and_path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nAuthorization: Bearer key\r\n\
         X-Twice: 1\r\nX-Twice: 2\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    stream
}

/// Host and port of a base URL.
pub(crate) fn authority(base_url: &str) -> String {
    base_url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/v1")).unwrap().to_owned()
}

/// Reads until the server closes.
pub(crate) fn finish(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Answer {
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an empty line after the head");
    let head = String::from_utf8(bytes[..split].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let rest = &bytes[split + 4..];
    let (body, complete) =
        if head.contains("transfer-encoding: chunked") { unchunk(rest) } else { (rest.to_vec(), true) };
    Answer { status, head, body: String::from_utf8(body).unwrap(), complete }
}

fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
    (body, false)
}
