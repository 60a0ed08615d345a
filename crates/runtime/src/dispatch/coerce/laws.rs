//! The laws of coercion, tried on generated schemas and values with the real validator as the judge.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![1.0, 2.0, 0.5]).prop_map(Value::from),
        prop::sample::select(vec!["1", "2", "true", "null", "x", "[", "[1]", "{}", "1.0", ""]).prop_map(Value::from),
        "[\\[{]?[-0-9a-z.\\]}\" ]{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["{\"a\":\"1\"}", "[\"1\",\"[2]\"]", "{\"a\":null}", "[{\"b\":\"true\"}]"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("a|b|item", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_schema() -> impl Strategy<Value = Value> {
    let kinds = vec!["string", "integer", "number", "boolean", "null", "array", "object"];
    let kind = prop::sample::select(kinds.clone());
    let several = prop::sample::subsequence(kinds, 2..4).prop_shuffle();
    let required = prop::sample::subsequence(vec!["a", "b"], 0..3);
    let leaf = prop_oneof![
        4 => kind.prop_map(|kind| json!({"type": kind})),
        2 => several.prop_map(|kinds| json!({"type": kinds})),
        1 => Just(json!({})),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(json!({"type":"integer","minimum":0})),
        1 => Just(json!({"type":"string","nullable":true})),
        2 => prop::collection::vec(any_value(), 1..4).prop_map(|options| json!({"enum": options})),
        1 => any_value().prop_map(|value| json!({"const": value})),
        2 => prop::sample::select(vec!["#/$defs/a", "#/$defs/b", "#/$defs/tree", "#/properties/v"])
            .prop_map(|target| json!({"$ref": target})),
    ];
    leaf.prop_recursive(3, 16, 3, move |inner| {
        let fields = (inner.clone(), inner.clone(), required.clone());
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type":"array","items":items})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"prefixItems":[a],"items":b})),
            fields
                .clone()
                .prop_map(|(a, b, required)| json!({"type":"object","properties":{"a":a,"b":b},"required":required})),
            fields.prop_map(|(a, b, required)| {
                json!({"properties":{"a":a,"item":b},"required":required,"additionalProperties":false})
            }),
            inner.clone().prop_map(|others| json!({"type":"object","additionalProperties":others})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"anyOf":[a,b]})),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| json!({"oneOf":[a,b,c]})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"allOf":[a,b]})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"type":"object","properties":{"a":a},"anyOf":[b]})),
            inner.prop_map(|not| json!({"not": not})),
        ]
    })
}

/// The schema of a tool with the argument `v`.
fn tool(v: &Value, a: &Value, b: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "v": v },
        "$defs": {
            "a": a,
            "b": b,
            "tree": { "anyOf": [
                { "type": "integer" },
                { "type": "array", "items": { "$ref": "#/$defs/tree" } },
                { "type": "object", "properties": { "a": { "$ref": "#/$defs/tree" } } },
            ]},
        },
    })
}

/// Equal, where 4 and 4.0 are the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn coercing_twice_is_coercing_once(
        value in any_value(), v in any_schema(), a in any_schema(), b in any_schema(),
    ) {
        let schema = tool(&v, &a, &b);
        let mut once = JsonMap::from_iter([("v".to_owned(), value)]);
        let changes = arguments(&mut once, &schema);
        let mut twice = once.clone();
        prop_assert_eq!(arguments(&mut twice, &schema), []);
        prop_assert_eq!(&twice, &once);
        // The record tells of every change.
        prop_assert!(changes.iter().all(|change| change.to.as_ref() != Some(&change.from)));
    }

    #[test]
    fn what_is_valid_is_left_alone(
        value in any_value(), v in any_schema(), a in any_schema(), b in any_schema(),
    ) {
        let schema = tool(&v, &a, &b);
        // Some generated references go round in circles without end; the validator refuses those.
        let Ok(validator) = jsonschema::validator_for(&schema) else { return Ok(()) };
        let mut map = JsonMap::from_iter([("v".to_owned(), value.clone())]);
        if !validator.is_valid(&Value::Object(map.clone())) {
            return Ok(());
        }
        arguments(&mut map, &schema);
        prop_assert!(map.get("v").is_some_and(|now| same(now, &value)), "{} became {:?} for {}", value, map.get("v"), v);
    }

    #[test]
    fn a_number_out_of_a_text_has_all_of_its_digits(
        sign in "-?", before in "[0-9]{0,22}", after in "(\\.[0-9]{0,20})?", exponent in "([eE][-+]?[0-9]{1,2})?",
        integer in any::<bool>(),
    ) {
        let text = format!("{sign}{before}{after}{exponent}");
        let kind = if integer { "integer" } else { "number" };
        let mut map = JsonMap::from_iter([("v".to_owned(), json!(text))]);
        arguments(&mut map, &json!({ "properties": { "v": { "type": kind } } }));
        if let Value::Number(number) = &map["v"] {
            prop_assert_eq!(plain(&number.to_string()), plain(&text), "{} became {}", text, number);
        }
    }
}

/// A decimal number in one form only: its digits without zeros around them, and the power of ten of the last one.
fn plain(text: &str) -> (bool, String, i64) {
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{before}{after}");
    let digits = all.trim_start_matches('0').trim_end_matches('0').to_owned();
    if digits.is_empty() {
        return (false, digits, 0);
    }
    let zeros = all.len() - all.trim_end_matches('0').len();
    let power = exponent.parse::<i64>().unwrap() - i64::try_from(after.len()).unwrap() + i64::try_from(zeros).unwrap();
    (negative, digits, power)
}

/// Comes to an end: anything quadratic would take the runner's patience, not a moment.
fn soon(value: Value, schema: &Value) -> Value {
    let mut map = JsonMap::from_iter([("v".to_owned(), value)]);
    arguments(&mut map, schema);
    map["v"].take()
}

#[test]
fn a_megabyte_of_anything_takes_a_time_in_proportion() {
    let numbers = json!({ "properties": { "v": { "type": "array", "items": { "anyOf": [{ "type": "integer" }, { "type": "null" }] } } } });
    let count = 250_000;
    assert_eq!(soon(json!(format!("[{}\"1\"]", "\"1\",".repeat(count - 1))), &numbers), json!(vec![1; count]));
    for text in ["1", "[", "{\"a\":", "\\\"", " ", "[1,", "0.", "-", "é"] {
        for kind in ["integer", "number", "boolean", "array", "object"] {
            soon(json!(text.repeat(1_000_000 / text.len())), &json!({ "properties": { "v": { "type": kind } } }));
        }
    }
}

#[test]
fn a_schema_that_explodes_is_given_up_and_not_the_machine() {
    // 2^40 ways to read a value, in 40 lines.
    let level = |n: usize| {
        let next = json!({ "$ref": format!("#/$defs/{}", n + 1) });
        let field = json!({ "properties": { "a": next }, "required": ["a"] });
        (n.to_string(), json!({ "anyOf": [field.clone(), field, next.clone(), next] }))
    };
    let mut defs: JsonMap = (0..40).map(level).collect();
    defs.insert("40".into(), json!({ "type": "integer" }));
    let schema = json!({ "properties": { "v": { "$ref": "#/$defs/0" } }, "$defs": defs });
    let nested = (0..40).fold(json!("x"), |inner, _| json!({ "a": inner }));
    assert_eq!(soon(nested.clone(), &schema), nested);
    let wraps = json!({ "properties": { "v": { "$ref": "#/$defs/l" } }, "$defs": { "l": { "anyOf": [
        { "type": "array", "items": { "$ref": "#/$defs/l" } }, { "type": "array", "items": { "$ref": "#/$defs/l" } },
        { "type": "array", "prefixItems": [{ "$ref": "#/$defs/l" }] },
    ] } } });
    soon(json!("x"), &wraps);
    soon(json!(vec!["x"; 1_000]), &wraps);
}

#[test]
fn json_in_json_in_json_does_not_grow_the_stack_without_end() {
    let schema = json!({ "properties": { "v": { "$ref": "#/$defs/l" } },
                         "$defs": { "l": { "type": "array", "items": { "$ref": "#/$defs/l" } } } });
    let nest = |text: &str| format!("{}{}{}", "[".repeat(100), text, "]".repeat(100));
    let text = (0..9).fold(String::from("[]"), |inner, _| nest(&json!(inner).to_string()));
    soon(json!(text), &schema);
}
