//! The shapes of the Chat Completions API (`OpenAI` API reference, *The chat completion object* and *The chat
//! completion chunk object*).

use serde_json::{Value, json};

use super::reply::{Call, Turn};

/// The one model that the server lists.
pub(super) const MODEL: &str = "test-model";

/// The time in every answer, fixed so that snapshots stay the same.
pub(super) const CREATED: u64 = 1_700_000_000;

const ID: &str = "chatcmpl-test";

/// A body in the pieces in which it may break off.
pub(super) struct Wire {
    pub(super) content_type: &'static str,
    pub(super) parts: Vec<String>,
    /// How many parts come before the one that tells the client that the turn is whole.
    pub(super) before_finish: usize,
}

impl Wire {
    pub(super) fn raw(content_type: &'static str, body: &str) -> Self {
        Self { content_type, parts: vec![body.to_owned()], before_finish: 1 }
    }
}

/// The body of an error answer.
pub(super) fn error(kind: &str, message: &str) -> String {
    json!({ "error": { "message": message, "type": kind, "param": null, "code": null } }).to_string()
}

/// The turn in the form that `request` asks for.
pub(super) fn render(turn: &Turn, request: &Value) -> Wire {
    let model = request["model"].as_str().unwrap_or(MODEL);
    if request["stream"] == true {
        streamed(turn, model, request["stream_options"]["include_usage"] == true)
    } else {
        whole(turn, model)
    }
}

fn whole(turn: &Turn, model: &str) -> Wire {
    let mut message = json!({ "role": "assistant", "content": turn.text, "refusal": null });
    if !turn.calls.is_empty() {
        message["tool_calls"] = turn.calls.iter().map(|call| tool_call(call, &call.arguments)).collect();
    }
    let body = json!({
        "id": ID,
        "object": "chat.completion",
        "created": CREATED,
        "model": model,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(turn) }],
        "usage": usage(turn),
    })
    .to_string();
    let (first, second) = body.split_at(body.floor_char_boundary(body.len() / 2));
    Wire { content_type: "application/json", parts: vec![first.to_owned(), second.to_owned()], before_finish: 1 }
}

fn streamed(turn: &Turn, model: &str, include_usage: bool) -> Wire {
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({
            "id": ID, "object": "chat.completion.chunk", "created": CREATED, "model": model, "choices": choices,
        });
        if include_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        chunk(json!([choice]), Value::Null)
    };

    let opening = turn.text.as_ref().map(|_| "");
    let mut parts = vec![delta(json!({ "role": "assistant", "content": opening, "refusal": null }), None)];
    for piece in pieces(turn.text.as_deref().unwrap_or_default(), turn.chunk) {
        parts.push(delta(json!({ "content": piece }), None));
    }
    for (index, call) in turn.calls.iter().enumerate() {
        let mut first = tool_call(call, "");
        first["index"] = index.into();
        parts.push(delta(json!({ "tool_calls": [first] }), None));
        for piece in pieces(&call.arguments, turn.chunk) {
            let fragment = json!({ "index": index, "function": { "arguments": piece } });
            parts.push(delta(json!({ "tool_calls": [fragment] }), None));
        }
    }
    let before_finish = parts.len();
    parts.push(delta(json!({}), Some(finish_reason(turn))));
    if include_usage {
        parts.push(chunk(json!([]), usage(turn)));
    }
    parts.push("data: [DONE]\n\n".to_owned());
    Wire { content_type: "text/event-stream", parts, before_finish }
}

fn tool_call(call: &Call, arguments: &str) -> Value {
    json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": arguments } })
}

fn finish_reason(turn: &Turn) -> &str {
    let usual = if turn.calls.is_empty() { "stop" } else { "tool_calls" };
    turn.finish.as_deref().unwrap_or(usual)
}

fn usage(turn: &Turn) -> Value {
    json!({
        "prompt_tokens": turn.input_tokens,
        "completion_tokens": turn.output_tokens,
        "total_tokens": turn.input_tokens + turn.output_tokens,
    })
}

/// `text` in pieces of at most `size` bytes on character boundaries, and never without progress.
fn pieces(text: &str, size: Option<usize>) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = size.map_or(rest.len(), |size| rest.floor_char_boundary(size).max(first.len_utf8()));
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_small_whole_characters_and_lose_nothing() {
        assert_eq!(pieces("aé漢", Some(2)), ["a", "é", "漢"]);
        assert_eq!(pieces("abcde", Some(2)), ["ab", "cd", "e"]);
        assert_eq!(pieces("abc", None), ["abc"]);
        assert!(pieces("", Some(1)).is_empty());
    }
}
