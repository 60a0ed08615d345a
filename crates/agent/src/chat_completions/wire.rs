//! Writing requests: a pure function from a conversation to the body that is sent.

use base64::Engine as _;
use hermes_core::{Attachment, Definition, Message, ModelRequest, RawArguments, ToolCall, ToolName};
use serde::Serialize;
use serde_json::{Value, json};

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// JSON.
    pub text: String,
    /// Whether the answer is asked for piece by piece.
    pub stream: bool,
}

/// Only documented fields, in a fixed order: providers cache by bytes. The definitions go out as the bytes they are.
#[derive(Serialize)]
struct Fields<'a> {
    model: &'a str,
    messages: Vec<Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [Definition],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

/// The body of one request.
pub fn request(model: &str, request: &ModelRequest<'_>, stream: bool, max_tokens: Option<u64>) -> Body {
    let fields = Fields {
        model,
        messages: request.messages.iter().map(message).collect(),
        tools: &request.definitions,
        max_tokens,
        stream: stream.then_some(true),
        stream_options: stream.then(|| json!({ "include_usage": true })),
    };
    // Texts, numbers and JSON that was read before: there is nothing in it that has no JSON form.
    let text = serde_json::to_string(&fields).unwrap_or_default();
    Body { text, stream }
}

fn message(message: &Message) -> Value {
    match message {
        Message::System(text) => json!({ "role": "system", "content": text }),
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::Assistant { text, calls } if calls.is_empty() => json!({ "role": "assistant", "content": text }),
        Message::Assistant { text, calls } => json!({
            "role": "assistant",
            "content": if text.is_empty() { Value::Null } else { json!(text) },
            "tool_calls": calls.iter().map(call).collect::<Vec<_>>(),
        }),
        Message::ToolResult { call_id, name, content } => {
            json!({ "role": "tool", "tool_call_id": call_id, "name": self::name(name), "content": content })
        }
        Message::Pictures { text, pictures } => {
            let words = json!({ "type": "text", "text": text });
            let parts: Vec<Value> = std::iter::once(words).chain(pictures.iter().map(picture)).collect();
            json!({ "role": "user", "content": parts })
        }
    }
}

fn picture(picture: &Attachment) -> Value {
    let data = base64::engine::general_purpose::STANDARD.encode(&picture.data);
    json!({ "type": "image_url", "image_url": { "url": format!("data:{};base64,{data}", picture.media_type) } })
}

fn call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": name(&call.name), "arguments": arguments(&call.arguments) },
    })
}

/// Providers check the names of the history too, and one that they do not accept would end the conversation for good.
/// The model sees the name it really wrote in the error that answers its call.
fn name(written: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    match written.trim() {
        "" => "invalid_tool_call".into(),
        name => name.chars().take(ToolName::MAX_CHARS).map(fits).collect(),
    }
}

/// Many providers parse the arguments of the history and refuse the whole request when they are broken. Broken ones are
/// sent as a JSON text inside an object: the model still sees what it wrote.
fn arguments(raw: &RawArguments) -> String {
    let text = raw.to_text();
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(_)) => text,
        _ if text.trim().is_empty() => "{}".into(),
        _ => json!({ "invalid_arguments": text }).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn sent(messages: &[Message]) -> Value {
        let body = request("m", &ModelRequest { messages, definitions: Arc::new([]) }, true, None);
        serde_json::from_str(&body.text).unwrap()
    }

    #[test]
    fn broken_arguments_travel_inside_valid_ones_and_valid_ones_untouched() {
        for (raw, expected) in [
            ("{\"a\": 1 }", "{\"a\": 1 }"),
            ("", "{}"),
            ("{bad", "{\"invalid_arguments\":\"{bad\"}"),
            ("[1]", "{\"invalid_arguments\":\"[1]\"}"),
        ] {
            assert_eq!(arguments(&RawArguments::Text(raw.into())), expected);
        }
    }

    /// `cases/reports.jsonl`, rows 01-args-02 and 01-args-05: one call that is no object poisoned every later turn.
    #[test]
    fn whatever_a_model_wrote_as_arguments_is_sent_again_as_an_object() {
        for raw in [
            "[\"a\",\"b\"]",
            "\"plain\"",
            "7",
            "null",
            "",
            "{\"path\":\"a",
            "{\"q\":NaN}",
            "{\"q\":1} done!",
            "\u{feff}{\"q\":1}",
        ] {
            for arguments in [RawArguments::Text(raw.into()), RawArguments::Cut(raw.into())] {
                let call = ToolCall { id: "c".into(), name: "t".into(), arguments };
                let body = sent(&[Message::Assistant { text: String::new(), calls: vec![call] }]);
                let text = body["messages"][0]["tool_calls"][0]["function"]["arguments"].as_str().unwrap().to_owned();
                let again: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{raw}: {error}"));
                assert!(again.is_object(), "{raw} is sent as {text}");
                // Nothing that the model wrote is lost on the way.
                assert!(raw.is_empty() || again["invalid_arguments"] == raw, "{raw} is sent as {text}");
            }
        }
    }

    #[test]
    fn a_call_without_text_has_no_content_and_no_tools_means_no_field() {
        let call = ToolCall { id: "c".into(), name: " ".into(), arguments: RawArguments::Text("{}".into()) };
        let body = sent(&[Message::Assistant { text: String::new(), calls: vec![call] }]);
        assert_eq!(body["messages"][0]["content"], Value::Null);
        assert_eq!(body["messages"][0]["tool_calls"][0]["function"]["name"], "invalid_tool_call");
        assert!(body.get("tools").is_none());
    }
}
