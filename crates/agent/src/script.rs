//! A model that plays prepared turns, so that a tour, a bug report or a test replays exactly.
//!
//! A script is a file of JSON lines. Each request of the agent takes the next turn, whatever it asks. The turn is written
//! out as the bytes a real server would send and read by the same adapter, so a fault in a script is a real fault.
//!
//! One line is one turn, or one answer of the person for a surface that has nobody to ask:
//!
//! ```json
//! {"text": "I will look.", "calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}
//! {"calls": [{"name": "terminal", "arguments": "{\"command\": \"ec"}]}
//! {"text": "half an answer", "fault": "cut"}
//! {"fault": {"status": 429, "message": "slow down", "retry_after": 1}}
//! {"text": "Done.", "usage": {"input": 900, "output": 12}}
//! {"person": "once"}
//! ```

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat_completions::wire::Body;
use crate::chat_completions::{Response, Transport, TransportError};

/// Prepared turns and prepared answers of a person.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    name: String,
    turns: Vec<Turn>,
    person: Vec<String>,
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} line {line}: {why}")]
pub struct BadLine {
    name: String,
    line: usize,
    why: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<ScriptedCall>,
    finish: Option<String>,
    #[serde(default)]
    usage: ScriptedUsage,
    fault: Option<Fault>,
    person: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Turn {
    text: String,
    calls: Vec<ScriptedCall>,
    finish: Option<String>,
    usage: ScriptedUsage,
    fault: Option<Fault>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    name: String,
    id: Option<String>,
    /// An object, or a text that is sent as it stands.
    arguments: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct ScriptedUsage {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
}

/// What goes wrong with a turn.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Fault {
    /// The connection closes in the middle.
    Cut,
    /// The bytes are no answer at all.
    Garbage,
    /// Nobody answers.
    Down,
    #[serde(untagged)]
    Refused {
        status: u16,
        #[serde(default)]
        message: String,
        retry_after: Option<f64>,
    },
}

impl Script {
    /// Reads a script; `name` is what messages call it. Empty lines and lines that begin with `//` are skipped.
    pub fn parse(name: &str, text: &str) -> Result<Self, BadLine> {
        let mut script = Self { name: name.into(), ..Self::default() };
        for (i, source) in text.lines().enumerate() {
            if source.trim().is_empty() || source.trim_start().starts_with("//") {
                continue;
            }
            let line: Line = serde_json::from_str(source).map_err(|error| BadLine {
                name: name.into(),
                line: i + 1,
                why: without_place(&error),
            })?;
            match line.person {
                Some(answer) => script.person.push(answer),
                None => script.turns.push(Turn {
                    text: line.text,
                    calls: line.calls,
                    finish: line.finish,
                    usage: line.usage,
                    fault: line.fault,
                }),
            }
        }
        Ok(script)
    }

    /// What the person answers, in order.
    pub fn person(&self) -> &[String] {
        &self.person
    }

    /// A transport that plays the turns.
    pub fn into_transport(self) -> ScriptTransport {
        ScriptTransport { script: self, next: AtomicUsize::new(0) }
    }
}

/// Plays a [`Script`] to the adapter.
#[derive(Debug)]
pub struct ScriptTransport {
    script: Script,
    next: AtomicUsize,
}

#[async_trait]
impl Transport for ScriptTransport {
    fn place(&self) -> String {
        self.script.name.clone()
    }

    async fn post(&self, body: &Body) -> Result<Response, TransportError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let turns = &self.script.turns;
        let turn = turns.get(number).ok_or(TransportError::ScriptEnded(turns.len()))?;
        let streamed = body.stream;
        match &turn.fault {
            Some(Fault::Down) => Err(TransportError::Network("connection refused".into())),
            Some(Fault::Refused { status, message, retry_after }) => Ok(Response {
                status: *status,
                content_type: "application/json".into(),
                retry_after: retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
                body: pieces(vec![json!({ "error": { "message": message } }).to_string()]),
            }),
            Some(Fault::Garbage) => Ok(answer(streamed, vec!["data: this is no answer\n\n".into()])),
            fault => {
                let mut events = if streamed { turn.events(number) } else { vec![turn.whole(number)] };
                if *fault == Some(Fault::Cut) {
                    cut(&mut events);
                }
                Ok(answer(streamed, events))
            }
        }
    }
}

/// What is wrong, without the place inside the line, which is always line 1.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line 1 column").next().unwrap_or(&text).replace(
        "data did not match any variant of untagged enum Fault",
        "`fault` must be \"cut\", \"garbage\", \"down\" or {\"status\": …}",
    )
}

/// Half of what comes before the end of a stream, or half of the only piece.
fn cut(events: &mut Vec<String>) {
    if let [only] = events.as_mut_slice() {
        let half = only.len() / 2;
        let half = (0..=half).rev().find(|at| only.is_char_boundary(*at)).unwrap_or(0);
        only.truncate(half);
    } else {
        // The last three say that the turn is finished, what it cost, and that this was all.
        let content = events.len().saturating_sub(3);
        events.truncate(content.div_ceil(2));
    }
}

fn answer(streamed: bool, events: Vec<String>) -> Response {
    let content_type = if streamed { "text/event-stream" } else { "application/json" };
    Response { status: 200, content_type: content_type.into(), retry_after: None, body: pieces(events) }
}

fn pieces(events: Vec<String>) -> stream::BoxStream<'static, Result<Bytes, TransportError>> {
    stream::iter(events.into_iter().map(|event| Ok(Bytes::from(event)))).boxed()
}

impl Turn {
    /// The server-sent events of this turn, in the form of the Chat Completions API (*streaming*).
    fn events(&self, number: usize) -> Vec<String> {
        let delta =
            |delta: Value| event(&json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }));
        let mut events = vec![delta(json!({ "role": "assistant" }))];
        events.extend(words(&self.text).map(|piece| delta(json!({ "content": piece }))));
        for (i, call) in self.calls.iter().enumerate() {
            let (id, text) = (call.id(number, i), call.text());
            let function = json!({ "name": call.name, "arguments": "" });
            events.push(delta(
                json!({ "tool_calls": [{ "index": i, "id": id, "type": "function", "function": function }] }),
            ));
            for piece in words(&text) {
                events.push(delta(json!({ "tool_calls": [{ "index": i, "function": { "arguments": piece } }] })));
            }
        }
        events.push(event(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": self.finish() }] })));
        events.push(event(&json!({ "choices": [], "usage": self.usage() })));
        events.push("data: [DONE]\n\n".into());
        events
    }

    fn whole(&self, number: usize) -> String {
        let calls: Vec<Value> = self
            .calls
            .iter()
            .enumerate()
            .map(|(i, call)| {
                let function = json!({ "name": call.name, "arguments": call.text() });
                json!({ "id": call.id(number, i), "type": "function", "function": function })
            })
            .collect();
        let message = json!({ "role": "assistant", "content": self.text, "tool_calls": calls });
        let choice = json!({ "index": 0, "message": message, "finish_reason": self.finish() });
        json!({ "choices": [choice], "usage": self.usage() }).to_string()
    }

    fn finish(&self) -> &str {
        self.finish.as_deref().unwrap_or(if self.calls.is_empty() { "stop" } else { "tool_calls" })
    }

    fn usage(&self) -> Value {
        json!({ "prompt_tokens": self.usage.input, "completion_tokens": self.usage.output })
    }
}

impl ScriptedCall {
    fn id(&self, turn: usize, position: usize) -> String {
        self.id.clone().unwrap_or_else(|| format!("script_{turn}_{position}"))
    }

    fn text(&self) -> String {
        self.arguments.as_str().map_or_else(|| self.arguments.to_string(), str::to_owned)
    }
}

fn event(chunk: &Value) -> String {
    let mut event = String::new();
    let _ = write!(event, "data: {chunk}\n\n");
    event
}

/// A text in pieces that end with a blank, as models send it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ').filter(|piece| !piece.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_and_answers_are_read_and_a_bad_line_is_named() {
        let text = "// a tour\n{\"text\":\"hi\"}\n\n{\"person\":\"once\"}\n{\"fault\":{\"status\":429}}\n{\"fault\":\"cut\"}\n";
        let script = Script::parse("tour", text).unwrap();
        assert_eq!((script.turns.len(), script.person()), (3, &["once".to_owned()][..]));
        assert_eq!(script.turns[2].fault, Some(Fault::Cut));
        let error = Script::parse("tour", "{}\n{\"txt\":1}").unwrap_err().to_string();
        assert!(error.starts_with("tour line 2: unknown field `txt`"), "{error}");
    }

    #[test]
    fn a_text_argument_is_sent_as_it_stands() {
        let script = Script::parse("s", r#"{"calls":[{"name":"t","arguments":"{\"a\": 1"}]}"#).unwrap();
        assert_eq!(script.turns[0].calls[0].text(), "{\"a\": 1");
    }
}
