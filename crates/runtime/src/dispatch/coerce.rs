//! Making arguments fit their schema, without guessing.
//!
//! Models write `"2"` for 2, `"true"` for true, a bare value for a list of one, and JSON inside a string. Each of these
//! can be undone without losing anything, and only then is it undone: `"abc"` for a number, 2.5 for an integer, an
//! object for a text stay as they are and fail the validation that follows. A number is never turned into a text.
//!
//! Coercing twice gives what coercing once gave.

use async_trait::async_trait;
use hermes_core::JsonMap;
use serde_json::{Number, Value};

use super::{Call, Phase, Step};

/// What coercion changed about a call.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Change {
    /// Where, dotted.
    pub field: String,
    /// What was there.
    pub from: Value,
    /// What is there now; `None` if it was dropped.
    pub to: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Coerce;

#[async_trait]
impl Step for Coerce {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        if let Some(entry) = &call.entry {
            arguments(&mut call.arguments, &entry.tool.spec().parameters);
        }
    }
}

/// Integers up to here survive a trip through a double (IEEE 754, 2^53).
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Fits `arguments` to `schema`, an object schema.
pub(super) fn arguments(arguments: &mut JsonMap, schema: &Value) -> Vec<Change> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    arguments.retain(|name, value| match properties.get(name) {
        // `null` for an argument that may be left out means that it was left out.
        Some(property) => !(value.is_null() && !required.contains(&name.as_str()) && !accepts(property, "null")),
        // A switch we do not have, switched off, asks for nothing.
        None => !(closed && is_off(value)),
    });
    for (name, value) in arguments.iter_mut() {
        if let Some(property) = properties.get(name) {
            fit(value, property);
        }
    }
    Vec::new()
}

fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn fit(value: &mut Value, schema: &Value) {
    if !matches_type(value, schema) {
        if let Some(fitted) = converted(value, schema) {
            *value = fitted;
        } else {
            return;
        }
    }
    match value {
        Value::Array(items) => {
            if let Some(item_schema) = branch(schema, "array").and_then(|schema| schema.get("items")) {
                for item in items {
                    fit(item, item_schema);
                }
            }
        }
        Value::Object(map) => {
            if let Some(object_schema) = branch(schema, "object") {
                arguments(map, object_schema);
            }
        }
        _ => {}
    }
}

fn converted(value: &Value, schema: &Value) -> Option<Value> {
    let fitted = match value {
        Value::String(text) => from_text(text, schema),
        Value::Number(number) if accepts(schema, "integer") => whole(number.as_f64()?),
        _ => None,
    };
    fitted.or_else(|| as_list_of_one(value, schema))
}

fn from_text(text: &str, schema: &Value) -> Option<Value> {
    let trimmed = text.trim();
    if accepts(schema, "null") && trimmed == "null" {
        return Some(Value::Null);
    }
    if accepts(schema, "boolean") {
        match trimmed.to_ascii_lowercase().as_str() {
            "true" => return Some(Value::Bool(true)),
            "false" => return Some(Value::Bool(false)),
            _ => {}
        }
    }
    if accepts(schema, "integer") || accepts(schema, "number") {
        let decimal = Decimal::read(trimmed);
        if let Some(whole) = decimal.as_ref().and_then(Decimal::whole) {
            return Some(Value::Number(whole));
        }
        if accepts(schema, "number")
            && let Some((decimal, double)) = decimal.zip(trimmed.parse::<f64>().ok())
            && (decimal.fits_a_double() || double.to_string() == trimmed)
        {
            return Number::from_f64(double).map(Value::Number);
        }
    }
    for (kind, opening) in [("array", '['), ("object", '{')] {
        if accepts(schema, kind) && trimmed.starts_with(opening) {
            return serde_json::from_str(trimmed).ok();
        }
    }
    None
}

/// A decimal number as it is written, before any of its digits can be lost.
struct Decimal {
    negative: bool,
    /// Without leading zeros.
    digits: String,
    /// How many of `digits` stand after the point; negative if zeros are missing.
    scale: i64,
}

impl Decimal {
    /// Reads `-12.50e3` and the like; `inf`, `nan`, `0x10` and `1_000` are texts.
    fn read(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{before}{after}");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let scale = i64::try_from(after.len()).ok()? - i64::from(exponent);
        Some(Self { negative, digits: digits.trim_start_matches('0').to_owned(), scale })
    }

    /// The same as an integer, if it is one and JSON can hold it.
    fn whole(&self) -> Option<Number> {
        /// More digits than the largest integer has.
        const MOST_DIGITS: i64 = 25;
        let digits = self.digits.trim_end_matches('0');
        let zeros = i64::try_from(self.digits.len() - digits.len()).ok()? - self.scale;
        if digits.is_empty() {
            return Some(0.into());
        }
        if !(0..=MOST_DIGITS).contains(&zeros) {
            return None;
        }
        let text = format!("{digits}{}", "0".repeat(usize::try_from(zeros).ok()?));
        if self.negative {
            format!("-{text}").parse::<i64>().ok().map(Number::from)
        } else {
            text.parse::<u64>().ok().map(Number::from)
        }
    }

    /// Whether a double keeps all of its digits: 15 always survive, in the range of normal numbers (IEEE 754).
    fn fits_a_double(&self) -> bool {
        let digits = self.digits.trim_end_matches('0');
        let magnitude = i64::try_from(self.digits.len()).unwrap_or(i64::MAX).saturating_sub(self.scale);
        digits.len() <= 15 && (-300..300).contains(&magnitude)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the value is whole and below 2^53")]
fn whole(double: f64) -> Option<Value> {
    (double.fract() == 0.0 && double.abs() <= EXACT).then(|| Value::from(double as i64))
}

fn as_list_of_one(value: &Value, schema: &Value) -> Option<Value> {
    // A text that begins like a list but is none was cut off; it is not a list of one text.
    let cut_list = value.as_str().is_some_and(|text| text.trim_start().starts_with('['));
    (accepts(schema, "array") && !value.is_array() && !value.is_null() && !cut_list)
        .then(|| Value::Array(vec![value.clone()]))
}

fn matches_type(value: &Value, schema: &Value) -> bool {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => {
            return accepts(schema, "integer") || accepts(schema, "number");
        }
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    accepts(schema, kind)
}

/// Whether `schema`, or a branch of it, has this type. A schema without any type accepts everything.
fn accepts(schema: &Value, kind: &str) -> bool {
    if schema.get("nullable") == Some(&Value::Bool(true)) && kind == "null" {
        return true;
    }
    match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => {
            let mut branches = branches(schema).peekable();
            branches.peek().is_none() || branches.any(|branch| accepts(branch, kind))
        }
    }
}

/// The part of `schema` that describes values of this type.
fn branch<'a>(schema: &'a Value, kind: &str) -> Option<&'a Value> {
    if schema.get("type").is_some() {
        return accepts(schema, kind).then_some(schema);
    }
    branches(schema).find(|branch| branch.get("type").is_some() && accepts(branch, kind)).or(Some(schema))
}

fn branches(schema: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key).and_then(Value::as_array)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn coerced(value: Value, schema: &Value) -> Value {
        let mut map = JsonMap::from_iter([("v".to_owned(), value)]);
        arguments(&mut map, &json!({ "properties": { "v": schema } }));
        map.remove("v").unwrap_or(json!("<absent>"))
    }

    #[test]
    fn what_can_be_undone_without_loss_is_undone() {
        let (int, num, flag) = (json!({"type":"integer"}), json!({"type":"number"}), json!({"type":"boolean"}));
        let list = json!({"type":"array","items":{"type":"integer"}});
        let object = json!({"type":"object","properties":{"n":{"type":"integer"}}});
        for (given, schema, expected) in [
            (json!("42"), &int, json!(42)),
            (json!(" 7 "), &int, json!(7)),
            (json!("42.0"), &int, json!(42)),
            (json!("1e3"), &int, json!(1000)),
            (json!(4.0), &int, json!(4)),
            (json!("-0.5"), &num, json!(-0.5)),
            (json!("9007199254740993.0"), &int, json!(9_007_199_254_740_993_u64)),
            (json!("-1.50e1"), &int, json!(-15)),
            (json!("0e5"), &int, json!(0)),
            (json!(".25"), &num, json!(0.25)),
            (json!("0.30000000000000004"), &num, json!(0.1 + 0.2)),
            (json!("18446744073709551615"), &int, json!(u64::MAX)),
            (json!("TRUE"), &flag, json!(true)),
            (json!("[1, \"2\"]"), &list, json!([1, 2])),
            (json!("3"), &list, json!([3])),
            (json!(3), &list, json!([3])),
            (json!("{\"n\":\"5\"}"), &object, json!({"n":5})),
            (json!({"n":"5"}), &object, json!({"n":5})),
            (json!(null), &int, json!("<absent>")),
            (json!("null"), &json!({"anyOf":[{"type":"integer"},{"type":"null"}]}), json!(null)),
            (json!("3"), &json!({"anyOf":[{"type":"integer"},{"type":"null"}]}), json!(3)),
            (json!("5"), &json!({"type":["string","integer"]}), json!("5")),
        ] {
            assert_eq!(coerced(given.clone(), schema), expected, "{given} for {schema}");
        }
    }

    #[test]
    fn what_would_lose_something_stays() {
        let (int, num, text) = (json!({"type":"integer"}), json!({"type":"number"}), json!({"type":"string"}));
        let list = json!({"type":"array","items":{"type":"integer"}});
        for (given, schema) in [
            (json!("4.5"), &int),
            (json!(4.5), &int),
            (json!("99999999999999999999"), &int),
            (json!("abc"), &int),
            (json!(""), &int),
            (json!("1.00000000000000000001"), &int),
            (json!("1.00000000000000000001"), &num),
            (json!("1e-400"), &num),
            (json!("1e400"), &int),
            (json!("1e999999999999"), &int),
            (json!("0x10"), &int),
            (json!("1_000"), &int),
            (json!("."), &num),
            (json!("nan"), &num),
            (json!("inf"), &num),
            (json!("yes"), &json!({"type":"boolean"})),
            (json!(5), &text),
            (json!({"a":1}), &text),
            (json!("[1, 2"), &list),
        ] {
            assert_eq!(coerced(given.clone(), schema), given, "{given} for {schema}");
        }
    }

    #[test]
    fn an_unknown_switch_that_is_off_is_dropped_only_where_the_schema_is_closed() {
        let schema = json!({"properties":{}, "additionalProperties": false});
        let mut map = json!({"background": false, "pty": null, "port": 80}).as_object().unwrap().clone();
        arguments(&mut map, &schema);
        assert_eq!(Value::Object(map.clone()), json!({"port": 80}));
        let mut map = json!({"background": false}).as_object().unwrap().clone();
        arguments(&mut map, &json!({"properties":{}}));
        assert_eq!(map.len(), 1);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[\\[{]?[-0-9a-z.\\]}\" ]{0,8}".prop_map(Value::from),
            Just(json!("{\"a\":\"1\"}")),
            Just(json!("[\"1\",\"[2]\"]")),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ab]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let kind = prop::sample::select(vec!["string", "integer", "number", "boolean", "null"]);
        let leaf = prop_oneof![kind.prop_map(|kind| json!({"type": kind})), Just(json!({}))];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|items| json!({"type":"array","items":items})),
                inner.clone().prop_map(|a| json!({"type":"object","properties":{"a":a}})),
                (inner.clone(), inner).prop_map(|(a, b)| json!({"anyOf":[a,b]})),
            ]
        })
    }

    proptest! {
        #[test]
        fn coercing_twice_is_coercing_once(value in any_value(), schema in any_schema()) {
            let schema = json!({ "properties": { "v": schema } });
            let mut once = JsonMap::from_iter([("v".to_owned(), value)]);
            arguments(&mut once, &schema);
            let mut twice = once.clone();
            arguments(&mut twice, &schema);
            prop_assert_eq!(twice, once);
        }
    }
}
