//! What holds for every schema in every provider's dialect, whoever made it up.

mod shaping;

use std::collections::BTreeSet;

use hermes_runtime::profile::{Profile, Stripped};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use shaping::{define, schema_of};

/// A name for anything: keywords, names of parameters, and nonsense.
fn name() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        6 => proptest::sample::select(vec![
            "type", "properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "default", "required", "$ref", "$defs",
            "definitions", "description", "nullable", "format", "pattern", "additionalProperties", "prefixItems", "not", "if",
            "then", "examples", "patternProperties", "minLength", "maxItems", "minimum", "title", "propertyNames", "contains",
            "dependentSchemas", "dependentRequired", "$id", "$schema", "$anchor", "propertyOrdering", "exclusiveMinimum",
        ])
        .prop_map(str::to_owned),
        2 => proptest::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned),
        1 => "[a-z\\[\\] é]{0,6}",
    ]
}

fn word() -> impl Strategy<Value = Value> + Clone {
    let words = vec!["string", "integer", "number", "boolean", "array", "object", "null", "any", "STRING", ""];
    proptest::sample::select(words).prop_map(Value::from)
}

fn reference() -> impl Strategy<Value = Value> + Clone {
    proptest::sample::select(vec![
        "#",
        "#/$defs/A",
        "#/$defs/B",
        "#/definitions/A",
        "#/definitions/B",
        "#/properties/a",
        "#/properties/b/items",
        "#/anyOf/0",
        "https://example.com/s.json",
        "#/$defs/None",
        "#A",
        "#/$defs",
    ])
    .prop_map(Value::from)
}

fn scalar() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        3 => word(),
        1 => reference(),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => (-3i64..3000).prop_map(Value::from),
        1 => (-3.0f64..3.0).prop_map(Value::from),
        1 => proptest::sample::select(vec!["", "x", "^a$", "(", "(?=a)", "uri", "date-time", "enum"]).prop_map(Value::from),
    ]
}

/// Any JSON whose names are often keywords: mostly broken as a schema.
fn broken() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            4 => prop::collection::vec((name(), inner), 0..6).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn data() -> impl Strategy<Value = Value> {
    broken()
}

/// Schemas as people write them.
fn well_formed() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        word()
            .prop_filter("a type", |word| word.as_str().is_some_and(|word| !word.is_empty() && word != "any"))
            .prop_map(|word| json!({ "type": word.as_str().unwrap_or_default().to_lowercase() })),
        reference().prop_map(|reference| json!({ "$ref": reference })),
        prop::collection::vec(proptest::sample::select(vec!["string", "integer", "array", "object", "null"]), 1..4)
            .prop_map(|types| json!({ "type": types })),
        prop::collection::vec(scalar(), 1..4).prop_map(|values| json!({ "enum": values })),
        scalar().prop_map(|value| json!({ "const": value })),
        Just(json!({})),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 50, 5, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        let map = prop::collection::vec((name(), inner.clone()), 0..5).prop_map(|pairs| pairs.into_iter().collect::<Map<_, _>>());
        let union = proptest::sample::select(vec!["anyOf", "oneOf", "allOf"]);
        prop_oneof![
            4 => (map.clone(), prop::collection::vec(name(), 0..3), any::<bool>()).prop_map(|(properties, required, typed)| {
                let mut schema = json!({ "properties": properties, "required": required });
                if typed { schema["type"] = json!("object"); }
                schema
            }),
            2 => inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            1 => list.clone().prop_map(|items| json!({ "type": "array", "prefixItems": items })),
            4 => (union, list, any::<bool>(), data()).prop_map(|(union, mut list, null, default)| {
                if null { list.push(json!({ "type": "null" })); }
                json!({ union: list, "description": "A choice.", "default": default })
            }),
            1 => (map, inner.clone()).prop_map(|(definitions, root)| {
                let mut schema = json!({ "$defs": definitions, "properties": { "a": root } });
                schema["$defs"]["A"] = schema["properties"]["a"].clone();
                schema
            }),
            1 => (inner.clone(), inner).prop_map(|(a, b)| json!({ "type": ["array", "object"], "items": a, "additionalProperties": b })),
        ]
    })
}

fn any_schema() -> impl Strategy<Value = Value> {
    let with_definitions = (well_formed(), well_formed(), well_formed()).prop_map(|(root, a, b)| {
        let mut root = if root.is_object() { root } else { json!({ "properties": { "a": root } }) };
        root["$defs"] = json!({ "A": a, "B": b });
        root
    });
    prop_oneof![2 => well_formed(), 2 => with_definitions, 2 => broken()]
}

fn any_profile() -> impl Strategy<Value = Profile> {
    proptest::sample::select(Profile::ALL.to_vec())
}

fn any_stripped() -> impl Strategy<Value = Stripped> {
    let words =
        vec!["anyOf", "$ref", "enum", "nullable", "format", "additionalProperties", "default", "allOf", "$defs", "not"];
    prop_oneof![
        3 => Just(Stripped::default()),
        1 => prop::collection::vec(proptest::sample::select(words), 1..3)
            .prop_map(|words| Stripped::named_in(&format!("schema of a function: '{}' are refused", words.join("', '")))),
    ]
}

/// Every data keyword of `schema` in a place of a schema, by its path.
fn data_of(schema: &Value, place: &str, found: &mut Vec<(String, Value)>) {
    let Value::Object(map) = schema else { return };
    for (keyword, value) in map {
        let place = format!("{place}/{keyword}");
        match (keyword.as_str(), value) {
            ("default" | "const" | "enum" | "examples", _) => found.push((place, value.clone())),
            ("properties" | "patternProperties" | "$defs" | "dependentSchemas", Value::Object(schemas)) => {
                schemas.iter().for_each(|(name, schema)| data_of(schema, &format!("{place}/{name}"), found));
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas
                    .iter()
                    .enumerate()
                    .for_each(|(index, schema)| data_of(schema, &format!("{place}/{index}"), found));
            }
            ("items" | "additionalProperties" | "not" | "contains" | "propertyNames", schema) => {
                data_of(schema, &place, found);
            }
            _ => {}
        }
    }
}

/// Every value anywhere in `value`, as text.
fn everything_in(value: &Value, found: &mut BTreeSet<String>) {
    found.insert(value.to_string());
    match value {
        Value::Array(list) => list.iter().for_each(|value| everything_in(value, found)),
        Value::Object(map) => map.values().for_each(|value| everything_in(value, found)),
        _ => {}
    }
}

/// What most tools take, now and then with something in it that is not plain after all.
fn plain_root() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!({ "type": "string", "description": "A text." })),
        Just(json!({ "type": "integer", "minimum": 1, "default": 5 })),
        Just(json!({ "type": "string", "enum": ["a", "b"] })),
        Just(json!({ "type": "string", "enum": [] })),
        Just(json!({ "type": "boolean", "default": null })),
        Just(json!({ "type": "number", "format": "float" })),
        Just(json!({ "description": "untyped" })),
    ];
    let list = (scalar.clone(), any::<bool>()).prop_map(|(items, long)| {
        let about = if long { "x".repeat(40_000) } else { "A list.".into() };
        json!({ "type": "array", "items": items, "description": about })
    });
    let property = prop_oneof![4 => scalar, 2 => list, 1 => Just(json!({ "type": "array" }))];
    let name = prop::sample::select(vec!["path", "limit", "type", "with blank", "$x"]);
    let required = prop::collection::vec(prop::sample::select(vec!["path", "limit", "gone"]), 0..3);
    (prop::collection::btree_map(name, property, 0..4), prop::option::of(required), any::<bool>()).prop_map(
        |(properties, required, closed)| {
            let mut root = json!({ "type": "object", "properties": properties });
            if let Some(required) = required {
                root["required"] = json!(required);
            }
            if closed {
                root["additionalProperties"] = json!(false);
            }
            root
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_provider_refuses_what_is_made_of_any_schema(
        schema in any_schema(), profile in any_profile(), without in any_stripped()
    ) {
        let definition = profile.definition("a_tool", "", &schema, &without);
        let problems = profile.check(&definition);
        prop_assert!(problems.is_empty(), "{}: {problems:#?}\n{definition:#}", profile.id());
    }

    #[test]
    fn shaping_twice_changes_nothing(schema in any_schema(), profile in any_profile(), without in any_stripped()) {
        let once = profile.definition("a_tool", "", &schema, &without);
        let again = schema_of(profile, &once).cloned().unwrap_or_else(|| json!({}));
        let twice = profile.definition("a_tool", "", &again, &without);
        prop_assert_eq!(once.to_string(), twice.to_string(), "{}", profile.id());
    }

    #[test]
    fn shaping_reads_only_and_always_says_the_same(schema in any_schema(), profile in any_profile()) {
        let before = schema.to_string();
        let definition = define(profile, &schema).to_string();
        prop_assert_eq!(define(profile, &schema).to_string(), definition);
        prop_assert_eq!(schema.to_string(), before);
    }

    #[test]
    fn the_short_way_to_the_text_says_what_the_long_one_says(
        schema in prop_oneof![any_schema(), plain_root()], profile in any_profile(), without in any_stripped()
    ) {
        let text = profile.text("a_tool", "What it does.", &schema, &without);
        prop_assert_eq!(text.as_str(), profile.definition("a_tool", "What it does.", &schema, &without).to_string());
    }

    #[test]
    fn data_is_as_it_was_where_it_is_kept(schema in any_schema(), profile in any_profile()) {
        let definition = define(profile, &schema);
        let mut kept = Vec::new();
        data_of(schema_of(profile, &definition).unwrap_or(&Value::Null), "", &mut kept);
        let mut original = BTreeSet::new();
        everything_in(&schema, &mut original);
        for (place, value) in kept {
            // A list of texts may be what several lists were put together to.
            if let (Value::Array(values), true) = (&value, place.ends_with("/enum")) {
                prop_assert!(values.iter().all(|value| original.contains(&value.to_string())), "{place}: {value}");
            } else {
                prop_assert!(original.contains(&value.to_string()), "{place}: {value}");
            }
        }
    }
}
