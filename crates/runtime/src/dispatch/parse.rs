//! Step: the text that the model wrote becomes a JSON object, or the call ends here.
//!
//! Nothing is repaired. Text that is cut off or malformed is answered with the place of the trouble, so that the model
//! can write the call again; a repaired call would be a different call. What surrounds one complete object is another
//! matter: a byte-order mark, blanks, a closing word, the same object once more, or quotes around the whole leave no
//! doubt about which call was meant.
//!
//! The tricky idea: the JSON parser reads an integer that fits no integer type as a double and says nothing, so huge
//! doubles in the result send us back to look at the digits in the text.

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
                let message = format!("{}: {why}", shown(&call.request.name));
                call.refuse(Status::InvalidArguments, ToolError::tell(message));
            }
        }
    }
}

fn shown(name: &str) -> String {
    if name.trim().is_empty() { "call without a name".into() } else { name.chars().take(80).collect() }
}

/// Why a text is not one JSON value; places are bytes of that text.
#[derive(Debug)]
enum Trouble {
    /// It ends before the value does.
    Unfinished,
    /// Something is wrong here.
    Malformed(usize, String),
    /// An integer begins here that no integer type holds.
    Digits(usize),
}

/// The arguments, or what is wrong and what to do. No text at all, and `null`, mean "no arguments".
fn object(raw: &RawArguments) -> Result<JsonMap, String> {
    let text = match raw {
        RawArguments::Object(map) => return Ok(map.clone()),
        RawArguments::Cut(text) => return Err(in_pieces(text, "the model's output limit cut the arguments off")),
        RawArguments::Text(text) => text,
    };
    let (start, body) = stripped(text);
    match sole_value(body).map_err(|trouble| trouble.in_words(text, start, "the arguments"))? {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(JsonMap::new()),
        // Some servers encode twice. Once more is enough: nobody means a text in a text in a text.
        Value::String(inner) if stripped(&inner).1.starts_with('{') => {
            let (start, body) = stripped(&inner);
            match sole_value(body).map_err(|trouble| trouble.in_words(&inner, start, "the text in the arguments"))? {
                Value::Object(map) => Ok(map),
                other => Err(no_object(start, &other)),
            }
        }
        other => Err(no_object(start, &other)),
    }
}

fn no_object(byte: usize, value: &Value) -> String {
    let kind = kind_in_words(value);
    format!(
        "the arguments must be a JSON object, but at byte {byte} there is {kind}; nothing was run. Send the call again."
    )
}

fn in_pieces(text: &str, what: &str) -> String {
    format!(
        "{what} at byte {}, after {} characters, so the JSON object is not finished; nothing was run. \
         Send the call again in smaller pieces.",
        text.len(),
        text.chars().count()
    )
}

impl Trouble {
    fn in_words(self, text: &str, start: usize, what: &str) -> String {
        match self {
            Self::Unfinished => in_pieces(text, &format!("{what} are cut off")),
            Self::Malformed(byte, why) => {
                let byte = start + byte;
                format!("{what} are not valid JSON at byte {byte}: {why}; nothing was run. Send the call again.")
            }
            Self::Digits(byte) => {
                let key = key_before(&text[start..][..byte]).map(|key| format!(" (the value of `{key}`)"));
                format!(
                    "{what} have an integer at byte {} with more digits than a number keeps{}; nothing was run. \
                     Send the call again with these digits as a text.",
                    start + byte,
                    key.unwrap_or_default()
                )
            }
        }
    }

    fn of(error: &serde_json::Error, text: &str) -> Self {
        if error.is_eof() {
            return Self::Unfinished;
        }
        let byte = byte_offset(text, error);
        let why = error.to_string();
        let why = why.split(" at line ").next().unwrap_or(&why);
        let at_a_word = ["expected value", "expected ident", "invalid number"].contains(&why);
        match not_finite(text, byte).filter(|_| at_a_word) {
            Some((byte, word)) => Self::Malformed(
                byte,
                format!("`{word}` is no JSON number; send a finite number or leave the argument out"),
            ),
            None => Self::Malformed(byte, why.to_owned()),
        }
    }
}

/// `text` without what may surround JSON, and at which byte that begins.
fn stripped(text: &str) -> (usize, &str) {
    let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    let body = text.trim_start_matches(is_blank);
    (text.len() - body.len(), body.trim_end_matches(is_blank))
}

/// `serde_json` counts lines from 1 and bytes within the line from 1; a line end that should not be there is byte 0 of
/// the line after it.
fn byte_offset(text: &str, error: &serde_json::Error) -> usize {
    let lines_before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    (lines_before + error.column()).saturating_sub(1).min(text.len())
}

/// The `NaN` or `-Infinity` around this byte, and where it begins.
fn not_finite(text: &str, byte: usize) -> Option<(usize, &str)> {
    let of_a_word = |c: &u8| c.is_ascii_alphabetic() || *c == b'-';
    let before = text.as_bytes()[..byte].iter().rev().take_while(|c| of_a_word(c)).count();
    let after = text.as_bytes()[byte..].iter().take_while(|c| of_a_word(c)).count();
    let start = byte - before;
    let word = text.get(start..byte + after)?;
    let bare = word.trim_start_matches('-');
    ["nan", "inf", "infinity"].iter().any(|name| bare.eq_ignore_ascii_case(name)).then_some((start, word))
}

/// The one value in `text`, which has no blanks around it. After an object the same object may come again, and then
/// words that are not JSON.
fn sole_value(text: &str) -> Result<Value, Trouble> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let (value, mut end) = first_value(text)?;
    if let Some(byte) = too_many_digits(&value, &text[..end]) {
        return Err(Trouble::Digits(byte));
    }
    for _ in 0..=MOST_REPEATS {
        let (blanks, rest) = stripped(&text[end..]);
        let at = end + blanks;
        if rest.is_empty() {
            return Ok(value);
        }
        if !value.is_object() || !rest.starts_with('{') {
            let harmless = value.is_object() && is_chatter(rest);
            return if harmless { Ok(value) } else { Err(Trouble::Malformed(at, "trailing characters".into())) };
        }
        match first_value(rest) {
            Ok((again, length)) if again == value => end = at + length,
            Ok(_) => {
                let why = "a second, different object begins here; make one call for each";
                return Err(Trouble::Malformed(at, why.into()));
            }
            Err(Trouble::Malformed(byte, why)) => return Err(Trouble::Malformed(at + byte, why)),
            Err(trouble) => return Err(trouble),
        }
    }
    Err(Trouble::Malformed(end, "the same object comes again and again".into()))
}

/// A stutter repeats an object a few times; what repeats it more often is no call.
const MOST_REPEATS: usize = 16;

/// The value that `text` begins with, and where it ends.
fn first_value(text: &str) -> Result<(Value, usize), Trouble> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Strict>();
    match values.next() {
        Some(Ok(Strict(value))) => Ok((value, values.byte_offset())),
        Some(Err(error)) => Err(Trouble::of(&error, text)),
        None => Ok((Value::Null, text.len())),
    }
}

/// Whether this is talk and not the rest of some JSON. Anything with an opening brace in it could be another call.
fn is_chatter(rest: &str) -> bool {
    let json = |c: char| c.is_ascii_digit() || "{}[]:,\"-".contains(c);
    !rest.starts_with(json) && !rest.contains('{')
}

/// Reads JSON in which nothing is lost: no key twice, no integer of more digits than fit. `None` for anything else.
pub(super) fn strict(text: &str) -> Option<Value> {
    let Strict(value) = serde_json::from_str(text).ok()?;
    too_many_digits(&value, text).is_none().then_some(value)
}

/// Where in `text`, which was read as `value`, an integer begins that had to become a double.
fn too_many_digits(value: &Value, text: &str) -> Option<usize> {
    if !has_huge_double(value) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let length = |belongs: fn(&u8) -> bool| bytes[at + 1..].iter().take_while(|byte| belongs(byte)).count() + 1;
        match byte {
            b'"' => {
                at += 1;
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let number = &text[at..at + length(|byte| byte.is_ascii_digit() || b".eE+-".contains(byte))];
                let whole = !number.contains(['.', 'e', 'E']);
                if whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(at);
                }
                at += number.len();
            }
            _ => at += 1,
        }
    }
    None
}

/// The key whose value begins right after `text`.
fn key_before(text: &str) -> Option<&str> {
    let key = text.trim_end().strip_suffix(':')?.trim_end().strip_suffix('"')?;
    key.rsplit_once('"').map(|(_, key)| key)
}

fn has_huge_double(value: &Value) -> bool {
    /// No integer type ends below this.
    const HUGE: f64 = 9.2e18;
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|double| double.abs() >= HUGE),
        Value::Array(items) => items.iter().any(has_huge_double),
        Value::Object(map) => map.values().any(has_huge_double),
        _ => false,
    }
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

    fn refused(text: &str) -> String {
        parsed(text).unwrap_err()
    }

    #[test]
    fn nothing_and_null_are_no_arguments() {
        for text in ["", "  \n", "null", "{}", "\u{feff}", "\u{2028}\t", " null "] {
            assert_eq!(parsed(text), Ok(JsonMap::new()), "{text:?}");
        }
    }

    #[test]
    fn each_kind_of_broken_text_has_its_own_message_with_the_place() {
        for (text, expected) in [
            ("{\"a\":1", "cut off at byte 6, after 6 characters"),
            ("{\"command\":\"echo", "cut off at byte 16"),
            ("{\"é\":", "cut off at byte 6, after 5 characters"),
            ("[1]", "must be a JSON object, but at byte 0 there is a list"),
            ("  [1]", "at byte 2 there is a list"),
            ("\"x\"", "there is a text"),
            ("{bad", "not valid JSON at byte 1: key must be a string"),
            ("\u{feff} {bad", "not valid JSON at byte 5: key must be a string"),
            ("{\"a\":1,}", "not valid JSON at byte 7: trailing comma"),
            ("{\n \"a\": tru }", "not valid JSON at byte 11: expected ident"),
            ("{\"a\":\"\\ud800\"}", "not valid JSON at byte"),
            ("{\"a\":\"x\ny\"}", "not valid JSON at byte 7: control character"),
            ("{\"a\":\"nan\ny\"}", "not valid JSON at byte 9: control character"),
            ("{\"a\":1,\"a\":2}", "the key `a` comes twice"),
            ("{\"a\":{\"b\":1,\"b\":1}}", "the key `b` comes twice"),
        ] {
            let why = refused(text);
            assert!(why.contains(expected), "{text}: {why}");
            assert!(why.contains("; nothing was run. Send the call again"), "{text}: {why}");
        }
    }

    #[test]
    fn what_surrounds_one_complete_object_does_not_matter() {
        for text in [
            "{\"q\":1}",
            "\u{feff}{\"q\":1}",
            " \u{feff}\n{\"q\":1}\u{2028}\u{2029}\u{feff}",
            "{\"q\":1} done!",
            "{\"q\":1}\n```",
            "{\"q\":1}</tool_call>",
            "{\"q\":1}{\"q\":1}",
            "{\"q\":1}\u{2028}{ \"q\": 1 }\n{\"q\":1}",
            "{\"q\":1} {\"q\":1} done",
            "\"{\\\"q\\\":1}\"",
            "\" {\\\"q\\\":1} \"",
        ] {
            assert_eq!(
                parsed(text).map(Value::Object).map_err(|why| format!("{text:?}: {why}")),
                Ok(serde_json::json!({"q":1}))
            );
        }
    }

    #[test]
    fn what_could_be_another_call_or_the_rest_of_this_one_is_refused() {
        for (text, place) in [
            ("{\"q\":1}\u{2028}{\"q\":2}", "at byte 10: a second, different object"),
            ("{\"q\":1}{\"q\":1}{\"q\":2}", "at byte 14: a second, different object"),
            ("{\"q\":1}[1]", "at byte 7: trailing"),
            ("{\"q\":1}}", "at byte 7: trailing"),
            ("{\"q\":1},\"r\":2}", "at byte 7: trailing"),
            ("{\"q\":1} \"r\"", "at byte 8: trailing"),
            ("{\"q\":1} 5", "at byte 8: trailing"),
            ("{\"q\":1} and then {\"q\":2}", "at byte 8: trailing"),
            ("{\"q\":1}{\"q\":", "cut off at byte 12"),
            ("{\"q\":1}{q", "at byte 8: key must be a string"),
            ("Sure: {\"q\":1}", "at byte 0"),
            ("null null", "at byte 5: trailing"),
            ("[1] done", "at byte 4: trailing"),
            ("\"{\\\"q\\\":\"", "cut off"),
            ("\"\\\"{}\\\"\"", "there is a text"),
            ("\"{\\\"q\\\":1,\\\"q\\\":2}\"", "the key `q` comes twice"),
        ] {
            let why = refused(text);
            assert!(why.contains(place), "{text}: {why}");
        }
    }

    #[test]
    fn numbers_that_are_none_are_named() {
        for (text, named) in [
            ("{\"q\":NaN}", "at byte 5: `NaN`"),
            ("{\"q\": nan}", "at byte 6: `nan`"),
            ("{\"q\":[1,-Infinity]}", "at byte 8: `-Infinity`"),
            ("{\"q\":Infinity", "`Infinity`"),
            ("{\"q\":1}{\"q\":NaN}", "at byte 12: `NaN`"),
        ] {
            let why = refused(text);
            assert!(why.contains(named) && why.contains("send a finite number"), "{text}: {why}");
        }
        assert!(!refused("{\"q\":bad}").contains("finite"));
        // A double has no room for this, and JSON no word for infinite.
        assert!(refused("{\"q\":1e999}").contains("number out of range"), "{}", refused("{\"q\":1e999}"));
    }

    #[test]
    fn an_integer_with_more_digits_than_fit_is_refused_and_not_rounded() {
        for (text, byte) in [
            ("{\"q\":18446744073709551616}", 5),
            ("{\"q\":-9223372036854775809}", 5),
            ("{\"a\":\"99999999999999999999 \\\" \",\"q\":[1e30,{\"b\": 99999999999999999999}]}", 48),
            ("\u{feff}{\"q\":18446744073709551616}", 8),
        ] {
            let why = refused(text);
            assert!(why.contains(&format!("integer at byte {byte} with more digits")), "{text}: {why}");
            assert!(why.contains("as a text"), "{why}");
        }
        let text = "{\"a\":18446744073709551615,\"b\":-9223372036854775808,\"c\":0.1234567890123456789012,\"d\":1e300,\"e\":99999999999999999999.0}";
        let map = parsed(text).unwrap();
        assert_eq!((map["a"].as_u64(), map["b"].as_i64()), (Some(u64::MAX), Some(i64::MIN)));
        assert_eq!(parsed("{\"a\":\"99999999999999999999\",\"b\":1e30}").unwrap()["a"], "99999999999999999999");
    }

    #[test]
    fn arguments_that_the_output_limit_cut_never_run_however_complete_they_look() {
        let why = object(&RawArguments::Cut("{\"é\":1}".into())).unwrap_err();
        assert!(why.contains("output limit cut the arguments off at byte 8, after 7 characters"), "{why}");
        assert!(why.contains("nothing was run") && why.contains("smaller pieces"), "{why}");
    }

    #[test]
    fn a_million_brackets_are_an_error_and_no_overflow() {
        for text in ["[".repeat(1_000_000), "{\"a\":".repeat(1_000_000), format!("{{}}{}", "{\"a\":".repeat(1_000_000))]
        {
            assert!(parsed(&text).is_err());
        }
    }
}
