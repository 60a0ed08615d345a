//! Writing requests: a pure function from a conversation to the body that is sent.

use hermes_core::{Message, ModelRequest, RawArguments, ToolCall, ToolName};
use serde_json::{Map, Value, json};

/// The body of one request. Only documented fields, in a fixed order: providers cache by bytes.
pub fn request(model: &str, request: &ModelRequest<'_>, stream: bool, max_tokens: Option<u64>) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), json!(model));
    body.insert("messages".into(), request.messages.iter().map(message).collect());
    if !request.definitions.is_empty() {
        body.insert("tools".into(), request.definitions.iter().map(|definition| Value::clone(definition)).collect());
    }
    if let Some(max_tokens) = max_tokens {
        body.insert("max_tokens".into(), json!(max_tokens));
    }
    if stream {
        body.insert("stream".into(), json!(true));
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    Value::Object(body)
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
    }
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
        request("m", &ModelRequest { messages, definitions: Arc::new([]) }, true, None)
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
