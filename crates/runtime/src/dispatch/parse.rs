//! Step 1: the text that the model wrote becomes a JSON object, or the call ends here.
//!
//! Nothing is repaired. Text that is cut off or malformed is answered with the place of the trouble, so that the model
//! can write the call again; a repaired call would be a different call.

use std::fmt;

use async_trait::async_trait;
use hermes_core::{JsonMap, RawArguments, ToolError};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{Call, Phase, Status, Step};

#[derive(Debug)]
pub(super) struct Parse;

#[async_trait]
impl Step for Parse {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        match object(&call.request.arguments) {
            Ok(arguments) => call.arguments = arguments,
            Err(why) => {
                let message = format!("{}: {why}; nothing was run. Send the call again.", shown(&call.request.name));
                call.refuse(Status::InvalidArguments, ToolError::tell(message));
            }
        }
    }
}

fn shown(name: &str) -> String {
    if name.trim().is_empty() { "call without a name".into() } else { name.chars().take(80).collect() }
}

/// No text at all, and `null`, mean "no arguments".
fn object(raw: &RawArguments) -> Result<JsonMap, String> {
    let text = match raw {
        RawArguments::Object(map) => return Ok(map.clone()),
        RawArguments::Text(text) if text.trim().is_empty() => return Ok(JsonMap::new()),
        RawArguments::Cut(text) => {
            return Err(format!("the model's output limit cut the arguments off at byte {}", text.len()));
        }
        RawArguments::Text(text) => text,
    };
    match serde_json::from_str(text) {
        Ok(Strict(Value::Object(map))) => Ok(map),
        Ok(Strict(Value::Null)) => Ok(JsonMap::new()),
        Ok(Strict(other)) => {
            Err(format!("the arguments must be a JSON object, but at byte 0 there is {}", kind_in_words(&other)))
        }
        Err(error) if error.is_eof() => {
            Err(format!("the arguments are cut off at byte {}: the JSON object is not finished", text.len()))
        }
        Err(error) => {
            let why = error.to_string();
            let why = why.split(" at line ").next().unwrap_or(&why);
            Err(format!("the arguments are not valid JSON at byte {}: {why}", byte_offset(text, &error)))
        }
    }
}

/// `serde_json` counts lines from 1 and bytes within the line from 1; a line end that should not be there is byte 0 of
/// the line after it.
fn byte_offset(text: &str, error: &serde_json::Error) -> usize {
    let lines_before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    (lines_before + error.column()).saturating_sub(1).min(text.len())
}

/// JSON in which no object has a key twice: which of the two values was meant cannot be known.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = JsonMap::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(de::Error::custom(format_args!("the key `{key}` comes twice")));
            }
            map.insert(key, entries.next_value::<Strict>()?.0);
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Strict>()? {
            list.push(item.0);
        }
        Ok(Value::Array(list))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

pub(super) fn kind_in_words(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<JsonMap, String> {
        object(&RawArguments::Text(text.into()))
    }

    #[test]
    fn nothing_and_null_are_no_arguments() {
        for text in ["", "  \n", "null", "{}"] {
            assert_eq!(parsed(text), Ok(JsonMap::new()), "{text:?}");
        }
    }

    #[test]
    fn each_kind_of_broken_text_has_its_own_message_with_the_place() {
        for (text, expected) in [
            ("{\"a\":1", "cut off at byte 6"),
            ("{\"command\":\"echo", "cut off at byte 16"),
            ("[1]", "must be a JSON object, but at byte 0 there is a list"),
            ("\"x\"", "there is a text"),
            ("{bad", "not valid JSON at byte 1: key must be a string"),
            ("{\"a\":1,}", "not valid JSON at byte 7: trailing comma"),
            ("{\n \"a\": tru }", "not valid JSON at byte 11: expected ident"),
            ("{} {}", "not valid JSON at byte 3: trailing characters"),
            ("{\"a\":\"\\ud800\"}", "not valid JSON at byte"),
            ("{\"a\":\"x\ny\"}", "not valid JSON at byte 7: control character"),
            ("{\"a\":1,\"a\":2}", "the key `a` comes twice"),
            ("{\"a\":{\"b\":1,\"b\":1}}", "the key `b` comes twice"),
        ] {
            let why = parsed(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }

    #[test]
    fn arguments_that_the_output_limit_cut_never_run_however_complete_they_look() {
        let why = object(&RawArguments::Cut("{\"a\":1}".into())).unwrap_err();
        assert!(why.contains("output limit cut the arguments off at byte 7"), "{why}");
    }
}
