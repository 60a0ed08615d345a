//! Reading answers, streamed and whole.
//!
//! Fragments of calls are put together by their index. What servers get wrong is expected: a second call under the
//! first one's index, arguments as an object instead of a text, no id, an id that comes twice.

use std::collections::BTreeSet;

use hermes_core::{Finish, ModelDelta, ModelReply, RawArguments, ToolCall, Usage};
use serde_json::Value;

use crate::think::{Piece, ThinkFilter};

/// No answer is this long; a server that goes on and on must not fill the memory.
pub(super) const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Why bytes are no reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadReply {
    /// It ended before it was finished.
    BrokeOff,
    /// It is something else.
    Garbled(String),
    /// The other side says that something went wrong.
    Error(String),
}

/// Builds one reply.
pub(super) struct Assembler {
    /// Makes ids unique for calls that came without one.
    messages: usize,
    /// Bytes read so far.
    bytes: usize,
    text: String,
    think: ThinkFilter,
    calls: Vec<Fragments>,
    finish: Option<Finish>,
    usage: Usage,
}

#[derive(Default)]
struct Fragments {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

impl Assembler {
    /// For a conversation of `messages` messages.
    pub(super) fn new(messages: usize) -> Self {
        Self {
            messages,
            bytes: 0,
            text: String::new(),
            think: ThinkFilter::default(),
            calls: Vec::new(),
            finish: None,
            usage: Usage::default(),
        }
    }

    /// Takes the data of one server-sent event; `true` when it was the last one.
    pub(super) fn event(&mut self, data: &str, deltas: &mut (dyn FnMut(ModelDelta) + Send)) -> Result<bool, BadReply> {
        self.bytes += data.len();
        if self.bytes > MOST_BYTES {
            return Err(too_much());
        }
        if data.trim() == "[DONE]" {
            return Ok(true);
        }
        let chunk = json(data).map_err(|_| garbled(data))?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(BadReply::Error(error_in(error)));
        }
        self.read_usage(&chunk);
        if let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) {
            self.message(choice.get("delta").unwrap_or(&Value::Null), deltas);
            self.read_finish(choice);
        } else if chunk.get("choices").is_none() && chunk.get("usage").is_none() {
            return Err(garbled(data));
        }
        Ok(false)
    }

    /// Reads an answer that came in one piece.
    pub(super) fn whole(
        mut self,
        bytes: &[u8],
        deltas: &mut (dyn FnMut(ModelDelta) + Send),
    ) -> Result<ModelReply, BadReply> {
        let text = String::from_utf8_lossy(bytes);
        let answer = json(&text).map_err(|error| if error.is_eof() { BadReply::BrokeOff } else { garbled(&text) })?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            return Err(BadReply::Error(error_in(error)));
        }
        let choice = answer.get("choices").and_then(|choices| choices.get(0)).ok_or_else(|| garbled(&text))?;
        self.read_usage(&answer);
        self.message(choice.get("message").unwrap_or(&Value::Null), deltas);
        self.read_finish(choice);
        self.finish.get_or_insert(Finish::Done);
        self.finish(deltas)
    }

    /// The reply, if it is whole.
    pub(super) fn finish(mut self, deltas: &mut (dyn FnMut(ModelDelta) + Send)) -> Result<ModelReply, BadReply> {
        for piece in self.think.finish() {
            self.piece(piece, deltas);
        }
        // Without a finish reason nobody said that this was all.
        let finish = self.finish.ok_or(BadReply::BrokeOff)?;
        let last = self.calls.len().checked_sub(1);
        let mut used = BTreeSet::new();
        let calls = self
            .calls
            .into_iter()
            .enumerate()
            .map(|(i, call)| {
                let fresh = !call.id.is_empty() && used.insert(call.id.clone());
                let id = if fresh { call.id } else { format!("call_{}_{i}", self.messages) };
                // Where the output limit struck, the last call may be the beginning of a longer one.
                let is_cut = finish == Finish::Length && Some(i) == last;
                let arguments = if is_cut { RawArguments::Cut } else { RawArguments::Text }(call.arguments);
                ToolCall { id, name: call.name, arguments }
            })
            .collect();
        Ok(ModelReply { text: self.text.trim().to_owned(), calls, finish, usage: self.usage })
    }

    fn message(&mut self, message: &Value, deltas: &mut (dyn FnMut(ModelDelta) + Send)) {
        for key in ["reasoning_content", "reasoning"] {
            if let Some(text) = message.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()) {
                deltas(ModelDelta::Reasoning(text.to_owned()));
                break;
            }
        }
        if let Some(text) = message.get("content").and_then(Value::as_str) {
            for piece in self.think.push(text) {
                self.piece(piece, deltas);
            }
        }
        for (i, fragment) in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten().enumerate() {
            self.fragment(fragment, i as u64);
        }
    }

    fn piece(&mut self, piece: Piece, deltas: &mut (dyn FnMut(ModelDelta) + Send)) {
        match piece {
            Piece::Answer(text) => {
                // The blank lines between reasoning and answer belong to neither.
                let text = if self.text.is_empty() { text.trim_start().to_owned() } else { text };
                if !text.is_empty() {
                    self.text += &text;
                    deltas(ModelDelta::Text(text));
                }
            }
            Piece::Reasoning(text) => deltas(ModelDelta::Reasoning(text)),
        }
    }

    fn fragment(&mut self, fragment: &Value, position: u64) {
        let index = fragment.get("index").and_then(Value::as_u64).unwrap_or(position);
        let id = fragment.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = fragment.get("function").unwrap_or(&Value::Null);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let known = self.calls.iter_mut().rev().find(|call| call.index == index);
        let call = match known {
            // A new id and a name under a known index is another call: some servers number them all 0.
            Some(call) if id.is_empty() || call.id == id || name.is_empty() => call,
            _ => {
                self.calls.push(Fragments { index, ..Fragments::default() });
                let last = self.calls.len() - 1;
                &mut self.calls[last]
            }
        };
        if call.id.is_empty() {
            call.id = id.to_owned();
        }
        if call.name.is_empty() {
            call.name = name.to_owned();
        }
        match function.get("arguments") {
            Some(Value::String(text)) => call.arguments += text,
            Some(Value::Null) | None => {}
            Some(value) => call.arguments += &value.to_string(),
        }
    }

    fn read_finish(&mut self, choice: &Value) {
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(match reason {
                "length" => Finish::Length,
                "content_filter" => Finish::Filtered,
                _ => Finish::Done,
            });
        }
    }

    fn read_usage(&mut self, answer: &Value) {
        let Some(usage) = answer.get("usage").filter(|usage| usage.is_object()) else { return };
        let count = |pointer| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        self.usage = Usage {
            input_tokens: count("/prompt_tokens"),
            output_tokens: count("/completion_tokens"),
            cached_tokens: count("/prompt_tokens_details/cached_tokens"),
        };
    }
}

/// Reads JSON, also where a server cut a character into two halves of a surrogate pair: each half becomes U+FFFD, which
/// loses one character instead of the whole answer.
fn json(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        let mended = without_lone_surrogates(text);
        if mended == text { Err(error) } else { serde_json::from_str(&mended) }
    })
}

fn without_lone_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out += &rest[..at];
        rest = &rest[at..];
        let taken = match (surrogate(rest), rest.get(6..).and_then(surrogate)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out += "\\ufffd";
                rest = &rest[6..];
                continue;
            }
            // An escaped character, which may itself be a backslash.
            _ => rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at),
        };
        out += &rest[..taken];
        rest = &rest[taken..];
    }
    out + rest
}

/// The code unit of an escape such as `\ud83d` at the beginning of `text`.
fn surrogate(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

/// What an error body says, in one line.
pub(super) fn error_text(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let said = match serde_json::from_str::<Value>(&text) {
        Ok(body) => error_in(body.get("error").unwrap_or(&body)),
        Err(_) => excerpt(&text),
    };
    (!said.is_empty()).then_some(said)
}

fn error_in(error: &Value) -> String {
    let message = error.get("message").or(error.get("detail")).unwrap_or(error);
    excerpt(&message.as_str().map_or_else(|| message.to_string(), str::to_owned))
}

pub(super) fn too_much() -> BadReply {
    BadReply::Garbled(format!("an answer of more than {} MiB", MOST_BYTES / 1024 / 1024))
}

fn garbled(data: &str) -> BadReply {
    BadReply::Garbled(format!("\"{}\"", excerpt(data)))
}

fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 200 { line } else { line.chars().take(200).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn streamed(chunks: &[Value]) -> Result<ModelReply, BadReply> {
        let mut assembler = Assembler::new(3);
        for chunk in chunks {
            assembler.event(&chunk.to_string(), &mut |_| {})?;
        }
        assembler.finish(&mut |_| {})
    }

    fn delta(delta: &Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta}]})
    }

    fn done() -> Value {
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    }

    #[test]
    fn fragments_are_joined_by_index() {
        let part = |index: u64, arguments: &str| {
            delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
        };
        let begin = |index: u64, id: &str| {
            delta(&json!({"tool_calls": [{"index": index, "id": id, "function": {"name": "t", "arguments": ""}}]}))
        };
        let reply = streamed(&[begin(0, "a"), part(0, "{\"x\""), begin(1, "b"), part(1, "{}"), part(0, ":1}"), done()]);
        let calls = reply.unwrap().calls;
        assert_eq!(calls[0].arguments, RawArguments::Text("{\"x\":1}".into()));
        assert_eq!(calls[1].arguments, RawArguments::Text("{}".into()));
    }

    #[test]
    fn calls_that_share_an_index_an_id_or_have_none_stay_apart() {
        let call = |id: &str, arguments: Value| json!({"index": 0, "id": id, "function": {"name": "t", "arguments": arguments}});
        let reply = streamed(&[
            delta(&json!({"tool_calls": [call("a", json!("{}"))]})),
            delta(&json!({"tool_calls": [call("b", json!({"k": 1}))]})),
            done(),
        ])
        .unwrap();
        assert_eq!(reply.calls.len(), 2);
        assert_eq!(reply.calls[1].arguments, RawArguments::Text("{\"k\":1}".into()));
        let whole = json!({"choices": [{"message": {"tool_calls": [
            {"function": {"name": "t", "arguments": "{}"}}, {"function": {"name": "u", "arguments": "{}"}},
        ]}}]});
        let reply = Assembler::new(3).whole(whole.to_string().as_bytes(), &mut |_| {}).unwrap();
        assert_eq!(reply.calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["call_3_0", "call_3_1"]);
    }

    #[test]
    fn half_a_surrogate_pair_costs_a_character_and_not_the_answer() {
        let mut assembler = Assembler::new(1);
        for half in ["ab\\ud83d", "\\ude00\\\\ud83d \\ud83d\\ude00"] {
            let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"{half}"}}}}]}}"#);
            assembler.event(&chunk, &mut |_| {}).unwrap();
        }
        assembler.event(&done().to_string(), &mut |_| {}).unwrap();
        assert_eq!(assembler.finish(&mut |_| {}).unwrap().text, "ab\u{fffd}\u{fffd}\\ud83d 😀");
    }

    #[test]
    fn the_call_that_the_output_limit_cut_is_marked_and_only_that_one() {
        let call = |index: u64| json!({"index": index, "id": format!("c{index}"), "function": {"name": "t", "arguments": "{}"}});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]});
        let reply = streamed(&[delta(&json!({"tool_calls": [call(0), call(1)]})), end]).unwrap();
        assert_eq!(reply.calls[0].arguments, RawArguments::Text("{}".into()));
        assert_eq!(reply.calls[1].arguments, RawArguments::Cut("{}".into()));
    }

    #[test]
    fn a_stream_without_a_finish_reason_broke_off() {
        assert_eq!(streamed(&[delta(&json!({"content": "half of"}))]), Err(BadReply::BrokeOff));
    }

    #[test]
    fn garbage_and_errors_are_told_apart() {
        let mut assembler = Assembler::new(1);
        assert!(matches!(assembler.event("<html>", &mut |_| {}), Err(BadReply::Garbled(_))));
        assert!(matches!(assembler.event("{\"a\":1}", &mut |_| {}), Err(BadReply::Garbled(_))));
        let error = assembler.event(r#"{"error":{"message":"overloaded"}}"#, &mut |_| {});
        assert_eq!(error, Err(BadReply::Error("overloaded".into())));
        assert_eq!(error_text(b"{\"error\":{\"message\":\"bad key\"}}").as_deref(), Some("bad key"));
        assert_eq!(error_text(b"<h1>Not\n found</h1>").as_deref(), Some("<h1>Not found</h1>"));
        assert_eq!(error_text(b""), None);
    }
}
