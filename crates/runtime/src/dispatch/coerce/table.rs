//! What becomes what, case by case.

use serde_json::{Value, json};

use super::*;

fn coerced(value: Value, schema: &Value) -> Value {
    let mut map = JsonMap::from_iter([("v".to_owned(), value)]);
    arguments(&mut map, &json!({ "properties": { "v": schema } }));
    map.remove("v").unwrap_or(json!("<absent>"))
}

/// Exact, also where `==` would not see a difference: 4 and 4.0, and the order of keys.
#[track_caller]
fn becomes(given: &Value, schema: &Value, expected: &Value) {
    assert_eq!(coerced(given.clone(), schema).to_string(), expected.to_string(), "{given} for {schema}");
}

fn stays(given: &Value, schema: &Value) {
    becomes(given, schema, given);
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
        (json!("4.0"), &num, json!(4)),
        (json!("9007199254740993"), &num, json!(9_007_199_254_740_993_u64)),
        (json!("9007199254740993.0"), &int, json!(9_007_199_254_740_993_u64)),
        (json!("-1.50e1"), &int, json!(-15)),
        (json!("0e5"), &int, json!(0)),
        (json!("007"), &int, json!(7)),
        (json!(".25"), &num, json!(0.25)),
        (json!("0.30000000000000004"), &num, json!(0.1 + 0.2)),
        (json!("18446744073709551615"), &int, json!(u64::MAX)),
        (json!("-9223372036854775808"), &int, json!(i64::MIN)),
        (json!("TRUE"), &flag, json!(true)),
        (json!("[1, \"2\"]"), &list, json!([1, 2])),
        (json!("3"), &list, json!([3])),
        (json!(3), &list, json!([3])),
        (json!("{\"n\":\"5\"}"), &object, json!({"n":5})),
        (json!({"n":"5"}), &object, json!({"n":5})),
        (json!(null), &int, json!("<absent>")),
        (json!("null"), &json!({"type":"null"}), json!(null)),
        (json!("null"), &json!({"type":"integer","nullable":true}), json!(null)),
    ] {
        becomes(&given, schema, &expected);
    }
}

#[test]
fn what_would_lose_something_stays() {
    let (int, num, text) = (json!({"type":"integer"}), json!({"type":"number"}), json!({"type":"string"}));
    let flag = json!({"type":"boolean"});
    let (list, map) = (json!({"type":"array","items":{"type":"integer"}}), json!({"type":"object"}));
    for (given, schema) in [
        (json!("4.5"), &int),
        (json!(4.5), &int),
        (json!("99999999999999999999"), &int),
        (json!("-9223372036854775809"), &int),
        (json!("abc"), &int),
        (json!(""), &int),
        (json!("1.00000000000000000001"), &int),
        (json!("1.00000000000000000001"), &num),
        (json!("99999999999999999999"), &num),
        (json!("1e-400"), &num),
        // The double in the middle of two such texts is printed as the other one.
        (json!("70370000000000.13"), &num),
        (json!("1e400"), &int),
        (json!("1e999999999999"), &int),
        (json!("0x10"), &int),
        (json!("1_000"), &int),
        (json!("1,000"), &int),
        (json!("1 000"), &int),
        (json!("10abc"), &int),
        (json!("10 MB"), &int),
        (json!("1e"), &int),
        (json!("--1"), &int),
        (json!("."), &num),
        (json!("-"), &num),
        (json!("nan"), &num),
        (json!("NaN"), &num),
        (json!("inf"), &num),
        (json!("-Infinity"), &num),
        (json!("٣"), &int),
        (json!("yes"), &flag),
        (json!("1"), &flag),
        (json!(1), &flag),
        (json!(true), &int),
        (json!(5), &text),
        (json!({"a":1}), &text),
        (json!("[1, 2"), &list),
        // A key twice, and digits that do not fit, would be lost in the parsed value.
        (json!("{\"a\":1,\"a\":2}"), &map),
        (json!("[99999999999999999999]"), &list),
        (json!("[1] [2]"), &list),
    ] {
        stays(&given, schema);
    }
}

/// Spec core §9, last row of the table and §20 items 25 and 26.
#[test]
fn nothing_valid_is_touched() {
    for (given, schema) in [
        (json!("5"), json!({"type":["string","integer"]})),
        (json!("null"), json!({"type":["string","null"]})),
        (json!("null"), json!({"type":"string","nullable":true})),
        (json!("null"), json!({"anyOf":[{"type":"null"},{"type":"string"}]})),
        (json!("true"), json!({"oneOf":[{"type":"boolean"},{"type":"string"}]})),
        (json!("[1]"), json!({"anyOf":[{"type":"array"},{"type":"string"}]})),
        (json!("5"), json!({})),
        (json!("5"), json!(true)),
        (json!("5"), json!({"description":"anything"})),
        (json!("1"), json!({"enum":["1", 1]})),
        (json!(4.0), json!({"type":"number"})),
        (json!(4.0), json!({"type":["number","integer"]})),
        (json!("5"), json!({"$ref":"http://elsewhere/schema.json", "description":"unknown"})),
    ] {
        stays(&given, &schema);
    }
}

#[test]
fn unions_are_tried_in_order_and_their_results_must_hold() {
    let union = |branches: Value| json!({ "anyOf": branches });
    let (int, nil) = (json!({"type":"integer"}), json!({"type":"null"}));
    for (given, schema, expected) in [
        (json!("null"), union(json!([int, nil])), json!(null)),
        (json!("3"), union(json!([int, nil])), json!(3)),
        (json!("3"), json!({"type":["integer","null"]}), json!(3)),
        (json!("3"), json!({"oneOf":[{"type":"boolean"},{"type":"integer"}]}), json!(3)),
        (json!(["1"]), union(json!([{"type":"array","items":int}, nil])), json!([1])),
        (json!("[\"1\"]"), union(json!([{"type":"array","items":int}, nil])), json!([1])),
        // Both branches take objects; the constant decides.
        (
            json!({"kind":"b","n":"5"}),
            union(json!([
                {"properties":{"kind":{"const":"a"},"n":{"type":"string"}},"required":["kind"]},
                {"properties":{"kind":{"const":"b"},"n":int},"required":["kind"]},
            ])),
            json!({"kind":"b","n":5}),
        ),
        // The first branch would change what the second takes as it is.
        (
            json!({"n":"5"}),
            union(
                json!([{"type":"object","properties":{"n":int}}, {"type":"object","properties":{"n":{"type":"string"}}}]),
            ),
            json!({"n":"5"}),
        ),
        // Only the branch that has everything it requires is meant.
        (
            json!({"b":"5"}),
            union(json!([
                {"type":"object","properties":{"b":{"type":"boolean"}},"required":["a"]},
                {"type":"object","properties":{"b":int},"required":["b"]},
            ])),
            json!({"b":5}),
        ),
    ] {
        becomes(&given, &schema, &expected);
    }
}

#[test]
fn enum_and_const_ask_for_the_types_of_their_values() {
    for (given, schema, expected) in [
        (json!("1"), json!({"enum":[1,2]}), json!(1)),
        (json!("true"), json!({"enum":["auto",true,false]}), json!(true)),
        (json!("0.5"), json!({"const":0.5}), json!(0.5)),
        (json!("null"), json!({"enum":["a",null]}), json!(null)),
        (json!("3"), json!({"enum":[1,2]}), json!("3")),
        (json!("3"), json!({"type":"integer","enum":[1,2]}), json!("3")),
        (json!("2"), json!({"type":"integer","enum":[1,2]}), json!(2)),
        (json!(1), json!({"enum":["1"]}), json!(1)),
    ] {
        becomes(&given, &schema, &expected);
    }
}

#[test]
fn a_single_value_becomes_a_list_only_where_the_elements_take_it() {
    let texts = json!({"type":"array","items":{"type":"string"}});
    let maps = json!({"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"}}}});
    let any = json!({"type":"array"});
    for (given, schema, expected) in [
        (json!("x"), &texts, json!(["x"])),
        (json!("a,b"), &texts, json!(["a,b"])),
        (json!("[broken"), &texts, json!(["[broken"])),
        (json!("null"), &texts, json!(["null"])),
        (json!("[1]"), &texts, json!([1])),
        (json!(5), &texts, json!(5)),
        (json!({"q":1}), &texts, json!({"q":1})),
        (json!({"x":"1"}), &maps, json!([{"x":1}])),
        (json!("{\"x\":\"1\"}"), &maps, json!([{"x":1}])),
        (json!(["{\"x\":\"3\"}"]), &maps, json!([{"x":3}])),
        (json!("x"), &maps, json!("x")),
        (json!("x"), &any, json!(["x"])),
        (json!(5), &any, json!([5])),
        (json!({"q":1}), &any, json!({"q":1})),
        (json!({"item":{"x":"1"}}), &maps, json!([{"x":1}])),
        (json!({"item":[{"x":"1"},{"x":2}]}), &maps, json!([{"x":1},{"x":2}])),
        (json!({"item":"x"}), &texts, json!(["x"])),
        (json!({"item":["x"]}), &any, json!(["x"])),
        (json!({"item":null}), &texts, json!({"item":null})),
        (json!({"item":"x","n":1}), &texts, json!({"item":"x","n":1})),
    ] {
        becomes(&given, schema, &expected);
    }
    let with_item = json!({"type":"array","items":{"type":"object","properties":{"item":{"type":"integer"}}}});
    becomes(&json!({"item":"1"}), &with_item, &json!([{"item":1}]));
    let either = json!({"type":["array","object"]});
    stays(&json!({"item":[1]}), &either);
}

#[test]
fn everything_is_reached_wherever_it_is_nested() {
    for (given, schema, expected) in [
        (
            json!("[{\"l\":\"[\\\"1\\\"]\"}]"),
            json!({"type":"array","items":{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer"}}}}}),
            json!([{"l":[1]}]),
        ),
        (json!({"k":"[1]"}), json!({"type":"object","properties":{"k":{"type":"array"}}}), json!({"k":[1]})),
        (
            json!({"a":"1","b":"2"}),
            json!({"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":{"type":"integer"}}),
            json!({"a":1,"b":"2"}),
        ),
        (
            json!(["1", "2", "3"]),
            json!({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"number"}}),
            json!([1, "2", 3]),
        ),
        (
            json!({"n":"1"}),
            json!({"allOf":[{"type":"object"},{"properties":{"n":{"type":"integer"}}}]}),
            json!({"n":1}),
        ),
        (
            json!({"x_n":"1","n":"1"}),
            json!({"type":"object","patternProperties":{"^x_":{}},"additionalProperties":{"type":"integer"}}),
            json!({"x_n":"1","n":"1"}),
        ),
    ] {
        becomes(&given, &schema, &expected);
    }
}

#[test]
fn local_references_are_followed_and_may_go_round_in_circles() {
    let schema = json!({
        "properties": { "tree": { "$ref": "#/$defs/node" }, "loop": { "$ref": "#/$defs/loop" }, "old": { "$ref": "#/definitions/n" } },
        "$defs": {
            "node": { "type": "object", "properties": { "n": { "type": "integer" }, "kids": { "type": "array", "items": { "$ref": "#/$defs/node" } } } },
            "loop": { "anyOf": [{ "$ref": "#/$defs/loop" }, { "$ref": "#/$defs/loop" }] },
        },
        "definitions": { "n": { "type": "integer" } },
    });
    let mut map =
        json!({ "tree": { "n": "1", "kids": { "n": "2", "kids": ["{\"n\":\"3\"}"] } }, "loop": "1", "old": "4" });
    arguments(map.as_object_mut().unwrap(), &schema);
    let tree = json!({ "n": 1, "kids": [{ "n": 2, "kids": [{ "n": 3 }] }] });
    assert_eq!(map, json!({ "tree": tree, "loop": "1", "old": 4 }));
}

#[test]
fn keywords_beside_a_reference_count_only_since_draft_2019() {
    let schema = |draft: &str| {
        json!({ "$schema": draft, "definitions": { "any": {} },
                "properties": { "v": { "$ref": "#/definitions/any", "type": "integer" } } })
    };
    for (draft, expected) in [
        ("http://json-schema.org/draft-07/schema#", json!("5")),
        ("https://json-schema.org/draft/2020-12/schema", json!(5)),
    ] {
        let mut map = json!({ "v": "5" });
        arguments(map.as_object_mut().unwrap(), &schema(draft));
        assert_eq!(map["v"], expected, "{draft}");
    }
}

#[test]
fn null_for_what_may_be_left_out_is_left_out_and_only_there() {
    let schema = json!({
        "properties": {
            "may": { "type": "integer" }, "must": { "type": "integer" }, "null": { "type": ["integer", "null"] },
            "openapi": { "type": "integer", "nullable": true }, "any": {},
            "deep": { "type": "object", "properties": { "may": { "enum": ["a"] }, "must": {"type":"string"} }, "required": ["must"] },
        },
        "required": ["must"],
    });
    let mut map = json!({
        "may": null, "must": null, "null": null, "openapi": null, "any": null, "unknown": null,
        "deep": { "may": null, "must": null },
    });
    let changes = arguments(map.as_object_mut().unwrap(), &schema);
    let left =
        json!({ "must": null, "null": null, "openapi": null, "any": null, "unknown": null, "deep": { "must": null } });
    assert_eq!(map, left);
    let dropped = |field: &str| Change { field: field.into(), from: json!(null), to: None };
    assert_eq!(changes, [dropped("may"), dropped("deep.may")]);
}

#[test]
fn an_unknown_switch_that_is_off_is_dropped_only_where_the_schema_is_closed() {
    let schema = json!({"properties":{}, "additionalProperties": false});
    let mut map = json!({"background": false, "pty": null, "port": 80}).as_object().unwrap().clone();
    arguments(&mut map, &schema);
    assert_eq!(Value::Object(map.clone()), json!({"port": 80}));
    for open in [json!({"properties":{}}), json!({"additionalProperties":false,"patternProperties":{"^b":{}}})] {
        let mut map = json!({"background": false}).as_object().unwrap().clone();
        arguments(&mut map, &open);
        assert_eq!(map.len(), 1, "{open}");
    }
}

#[test]
fn every_change_is_recorded_with_its_place_in_order() {
    let schema = json!({ "properties": {
        "todos": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } } },
        "merge": { "type": "boolean" }, "path": { "type": "string" },
    }});
    let mut map = json!({ "path": "a", "todos": "[{\"n\":\"1\"}]", "merge": "false" });
    let changes = arguments(map.as_object_mut().unwrap(), &schema);
    let change = |field: &str, from: Value, to: Value| Change { field: field.into(), from, to: Some(to) };
    assert_eq!(
        changes,
        [
            change("todos", json!("[{\"n\":\"1\"}]"), json!([{ "n": "1" }])),
            change("todos.0.n", json!("1"), json!(1)),
            change("merge", json!("false"), json!(false)),
        ]
    );
    assert_eq!(arguments(map.as_object_mut().unwrap(), &schema), []);
}
