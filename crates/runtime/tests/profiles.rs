//! Definitions in each provider's dialect: what is made of a schema, and that no provider would refuse it.

mod shaping;

use hermes_core::ToolName;
use hermes_runtime::profile::{Profile, Stripped};
use serde_json::{Map, Value, json};
use shaping::{define, schema_of};

/// What becomes of `parameters`; it is accepted, or this fails.
fn shaped(profile: Profile, parameters: &Value) -> Value {
    let definition = define(profile, parameters);
    assert_eq!(profile.check(&definition), Vec::<String>::new(), "{}: {definition:#}", profile.id());
    schema_of(profile, &definition).cloned().unwrap_or(Value::Null)
}

/// What becomes of `schema` as the one parameter `x`.
fn parameter(profile: Profile, schema: &Value) -> Value {
    shaped(profile, &json!({ "type": "object", "properties": { "x": schema } }))["properties"]["x"].clone()
}

fn on_each(profiles: &[Profile], schema: &Value, expected: &Value) {
    for profile in profiles {
        let found = parameter(*profile, schema);
        assert_eq!(found.to_string(), expected.to_string(), "{} of {schema}", profile.id());
    }
}

const FULL: &[Profile] = &[Profile::OpenAiChat, Profile::OpenAiResponses, Profile::Anthropic];
const OPEN_AI: &[Profile] = &[Profile::OpenAiChat, Profile::OpenAiResponses];
const CLOSED: &[Profile] = &[Profile::Gemini, Profile::Local];

mod real_schemas {
    use super::*;

    #[test]
    fn every_tool_of_the_original_is_accepted_by_every_provider() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases/tool-schemas.json");
        let tools: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(!tools.is_empty());
        for tool in &tools {
            let name = ToolName::new(tool["name"].as_str().unwrap()).unwrap();
            for profile in Profile::ALL {
                let shown = profile.shown_name(&name);
                let definition = profile.definition(&shown, "", &tool["parameters"], &Stripped::default());
                assert_eq!(profile.check(&definition), Vec::<String>::new(), "{name} for {}", profile.id());
                if OPEN_AI.contains(profile) {
                    let shaped = schema_of(*profile, &definition).unwrap();
                    assert_eq!(shaped.to_string(), tool["parameters"].to_string(), "{name} was changed");
                }
            }
        }
    }

    #[test]
    fn each_provider_gets_its_own_form() {
        let parameters = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let inner = json!({ "name": "a_tool", "description": "Does something.", "parameters": parameters });
        let chat = json!({ "type": "function", "function": inner });
        assert_eq!(define(Profile::OpenAiChat, &parameters), chat);
        assert_eq!(define(Profile::Local, &parameters), chat);
        assert_eq!(define(Profile::Gemini, &parameters), inner);
        assert_eq!(
            define(Profile::Anthropic, &parameters),
            json!({ "name": "a_tool", "description": "Does something.", "input_schema": parameters })
        );
        assert_eq!(
            define(Profile::OpenAiResponses, &parameters).to_string(),
            json!({
                "type": "function", "name": "a_tool", "description": "Does something.", "parameters": parameters, "strict": false
            })
            .to_string()
        );
    }

    #[test]
    fn a_tool_description_is_cut_where_there_is_a_limit() {
        let long = "é".repeat(2_000);
        let cut = |profile: Profile| profile.definition("a", &long, &json!({}), &Stripped::default());
        let chat = cut(Profile::OpenAiChat);
        assert!(Profile::OpenAiChat.check(&chat).is_empty());
        let text = chat["function"]["description"].as_str().unwrap();
        assert_eq!((text.chars().count(), text.ends_with('…')), (1_024, true));
        assert_eq!(cut(Profile::Anthropic)["description"], long);
    }

    #[test]
    fn only_gemini_renames_and_only_what_starts_badly() {
        let name = |text: &str| ToolName::new(text).unwrap();
        for profile in Profile::ALL {
            assert!(matches!(profile.shown_name(&name("read_file")), std::borrow::Cow::Borrowed("read_file")));
        }
        assert_eq!(Profile::Gemini.shown_name(&name("2fa")), "_2fa");
        assert_eq!(Profile::Gemini.shown_name(&name(&"-".repeat(64))), format!("_{}", "-".repeat(63)));
        assert_eq!(Profile::Anthropic.shown_name(&name("2fa")), "2fa");
    }
}

mod soundness {
    use super::*;

    #[test]
    fn what_is_no_schema_becomes_a_tool_without_parameters() {
        let empty = json!({ "type": "object", "properties": {} });
        for broken in
            [json!(null), json!(5), json!("object"), json!("x"), json!([]), json!(true), json!(false), json!({})]
        {
            for profile in Profile::ALL {
                let expected = if *profile == Profile::Gemini { Value::Null } else { empty.clone() };
                assert_eq!(shaped(*profile, &broken), expected, "{} of {broken}", profile.id());
            }
        }
    }

    #[test]
    fn data_keywords_are_never_rewritten() {
        let schema = json!({
            "type": "array", "items": { "type": "string" },
            "default": ["a", "object", { "type": ["string", "null"], "$ref": "#/nowhere" }],
            "examples": [{ "properties": 1, "definitions": {} }],
        });
        on_each(FULL, &schema, &schema);
        assert_eq!(parameter(Profile::Gemini, &schema)["default"], schema["default"]);
        assert_eq!(parameter(Profile::Local, &schema), schema);
        let schema = json!({ "const": { "type": ["a"], "anyOf": [] }, "enum": ["object", { "required": [1, 1] }] });
        on_each(FULL, &schema, &schema);
    }

    #[test]
    fn a_parameter_may_be_called_like_a_keyword() {
        let names =
            ["default", "type", "pattern", "properties", "required", "format", "anyOf", "$ref", "enum", "not", "$defs"];
        let text = json!({ "type": "string" });
        let properties = names.map(|name| (name.to_owned(), text.clone())).into_iter().collect::<Map<_, _>>();
        let schema = json!({ "type": "object", "properties": properties, "required": names });
        for profile in Profile::ALL {
            let found = shaped(*profile, &schema);
            for name in names.iter().filter(|name| *profile != Profile::Anthropic || !name.starts_with('$')) {
                assert_eq!(found["properties"][name], text, "{name} for {}", profile.id());
            }
        }
        assert_eq!(shaped(Profile::Gemini, &schema), schema);
    }

    #[test]
    fn required_names_only_what_there_is_and_once() {
        let schema =
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["b", "a", 3, "a"] });
        for profile in Profile::ALL {
            assert_eq!(shaped(*profile, &schema)["required"], json!(["a"]), "{}", profile.id());
        }
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": "a" });
        assert_eq!(shaped(Profile::OpenAiChat, &schema).get("required"), None);
    }

    #[test]
    fn a_bare_word_is_a_type() {
        let schema =
            json!({ "type": "object", "properties": { "a": "integer", "b": "whatever", "c": "STRING", "d": 4 } });
        assert_eq!(
            shaped(Profile::OpenAiChat, &schema)["properties"],
            json!({ "a": { "type": "integer" }, "b": {}, "c": { "type": "string" }, "d": {} })
        );
    }

    #[test]
    fn keywords_of_a_wrong_shape_are_dropped() {
        let schema = json!({
            "type": "string", "minLength": -1, "maxLength": "9", "pattern": "(", "title": 3, "format": [], "default": "kept",
            "anyOf": {}, "enum": "a", "properties": [], "additionalProperties": 3, "uniqueItems": "yes", "multipleOf": 0,
        });
        on_each(FULL, &schema, &json!({ "type": "string", "default": "kept" }));
    }

    #[test]
    fn boolean_schemas_are_understood() {
        let schema =
            json!({ "type": "object", "properties": { "a": true, "b": false }, "additionalProperties": false });
        let expected = json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": false });
        assert_eq!(shaped(Profile::OpenAiChat, &schema), expected);
        assert_eq!(shaped(Profile::Gemini, &schema)["properties"], json!({ "a": { "type": "string" } }));
    }

    #[test]
    fn an_array_says_what_is_in_it() {
        on_each(FULL, &json!({ "type": "array" }), &json!({ "type": "array", "items": {} }));
        on_each(CLOSED, &json!({ "type": "array" }), &json!({ "type": "array", "items": { "type": "string" } }));
        let tuple = json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer" }, { "type": "string" }] });
        let items = json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] });
        on_each(Profile::ALL, &tuple, &json!({ "type": "array", "items": items }));
        let old = json!({ "type": "array", "items": [{ "type": "string" }] });
        on_each(Profile::ALL, &old, &json!({ "type": "array", "items": { "type": "string" } }));
    }

    #[test]
    fn an_oversize_enum_becomes_its_type_and_says_how_it_starts() {
        let values = (0..1_500).collect::<Vec<_>>();
        let found = parameter(Profile::OpenAiChat, &json!({ "enum": values, "description": "Which." }));
        assert_eq!(found["type"], "integer");
        let text = found["description"].as_str().unwrap();
        assert!(text.starts_with("Which. One of 0, 1, 2,") && text.ends_with("… (1500 values)."), "{text}");
        for profile in Profile::ALL {
            assert_eq!(parameter(*profile, &json!({ "enum": values })).get("enum"), None);
        }
    }
}

mod unions {
    use super::*;

    #[test]
    fn a_nullable_union_keeps_its_siblings() {
        for union in ["anyOf", "oneOf"] {
            let schema = json!({
                union: [{ "type": "string", "minLength": 2, "description": "inner" }, { "type": "null" }],
                "title": "T", "description": "outer", "default": null, "x-order": 3, "deprecated": true,
            });
            let expected = json!({
                "type": "string", "minLength": 2, "description": "outer", "title": "T", "default": null,
                "x-order": 3, "deprecated": true, "nullable": true,
            });
            for profile in OPEN_AI {
                assert_eq!(parameter(*profile, &schema), expected);
            }
            let mut without_hint = expected.clone();
            without_hint.as_object_mut().unwrap().remove("nullable");
            assert_eq!(parameter(Profile::Anthropic, &schema), without_hint);
            assert_eq!(
                parameter(Profile::Gemini, &schema),
                json!({ "type": "string", "minLength": 2, "description": "outer", "title": "T", "default": null, "nullable": true })
            );
        }
    }

    #[test]
    fn a_nullable_union_puts_properties_together() {
        let schema = json!({
            "properties": { "a": { "type": "string" } }, "required": ["a"],
            "anyOf": [{ "type": "object", "properties": { "b": { "type": "integer" } }, "required": ["b"] }, { "type": "null" }],
        });
        for profile in Profile::ALL {
            let found = parameter(*profile, &schema);
            assert_eq!(found["properties"], json!({ "a": { "type": "string" }, "b": { "type": "integer" } }));
            assert_eq!(found["required"], json!(["a", "b"]));
        }
    }

    #[test]
    fn a_nullable_reference_keeps_the_reference() {
        let schema = json!({
            "type": "object", "$defs": { "D": { "type": "string" } },
            "properties": { "x": { "anyOf": [{ "$ref": "#/$defs/D" }, { "type": "null" }], "default": null, "description": "d" } },
        });
        let found = shaped(Profile::OpenAiChat, &schema);
        assert_eq!(found["properties"]["x"], json!({ "$ref": "#/$defs/D", "description": "d", "nullable": true }));
        assert_eq!(
            shaped(Profile::Gemini, &schema)["properties"]["x"],
            json!({ "type": "string", "default": null, "description": "d", "nullable": true })
        );
    }

    #[test]
    fn only_the_null_branch_goes_where_there_is_no_null() {
        let schema = json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }, { "type": "null" }] });
        on_each(FULL, &schema, &schema);
        let two = json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] });
        on_each(&[Profile::Local], &schema, &two);
        let hinted = json!({ "anyOf": [{ "type": "string", "nullable": true }, { "type": "integer" }] });
        on_each(&[Profile::Gemini], &schema, &hinted);
    }

    #[test]
    fn a_type_list_does_not_depend_on_key_order() {
        let one = json!({ "type": ["string", "integer"], "anyOf": [{ "type": "integer" }, { "type": "boolean" }] });
        let other = json!({ "anyOf": [{ "type": "integer" }, { "type": "boolean" }], "type": ["integer", "string"] });
        for profile in CLOSED {
            assert_eq!(parameter(*profile, &one), json!({ "type": "integer" }));
            assert_eq!(parameter(*profile, &other), parameter(*profile, &one));
        }
        let found = parameter(Profile::OpenAiChat, &one);
        assert_eq!((&found["type"], &found["anyOf"]), (&one["type"], &one["anyOf"]));
        on_each(&[Profile::Anthropic], &json!({ "type": ["null", "string"] }), &json!({ "type": "string" }));
        on_each(OPEN_AI, &json!({ "type": ["string", "null"] }), &json!({ "type": "string", "nullable": true }));
    }

    #[test]
    fn a_type_list_gives_each_type_its_own_keywords() {
        let schema = json!({
            "description": "Either.", "type": ["array", "string"], "items": { "type": "integer" }, "minLength": 3,
        });
        on_each(
            &[Profile::Local],
            &schema,
            &json!({
                "description": "Either.",
                "anyOf": [
                    { "type": "string", "minLength": 3 },
                    { "type": "array", "items": { "type": "integer" } },
                ],
            }),
        );
        assert_eq!(
            parameter(Profile::Gemini, &schema),
            json!({ "anyOf": [
                { "type": "string", "minLength": 3, "description": "Either." },
                { "type": "array", "items": { "type": "integer" } },
            ]})
        );
    }

    #[test]
    fn alternatives_at_the_root_become_arguments() {
        let schema = json!({
            "oneOf": [
                { "type": "object", "properties": { "kind": { "const": "file" }, "path": { "type": "string" } }, "required": ["kind", "path"] },
                { "$ref": "#/$defs/Url" },
            ],
            "$defs": { "Url": { "properties": { "kind": { "const": "url" }, "url": { "type": "string" } }, "required": ["url", "kind"] } },
        });
        for profile in Profile::ALL {
            let found = shaped(*profile, &schema);
            let expected = json!({
                "kind": { "type": "string", "enum": ["file", "url"] }, "path": { "type": "string" }, "url": { "type": "string" },
            });
            assert_eq!(found["properties"], expected, "{}", profile.id());
            assert_eq!(found["required"], json!(["kind"]));
        }
    }

    #[test]
    fn parts_at_the_root_are_all_demanded() {
        let schema = json!({
            "allOf": [
                { "properties": { "a": { "type": "string" } }, "required": ["a"] },
                { "properties": { "b": { "type": "string" } }, "required": ["b"] },
            ],
            "not": { "required": ["c"] },
        });
        for profile in Profile::ALL {
            let found = shaped(*profile, &schema);
            assert_eq!(found["properties"], json!({ "a": { "type": "string" }, "b": { "type": "string" } }));
            assert_eq!(found["required"], json!(["a", "b"]));
        }
    }

    #[test]
    fn at_least_one_of_leaves_all_optional() {
        let schema = json!({
            "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
            "anyOf": [{ "required": ["a"] }, { "required": ["b"] }],
        });
        for profile in Profile::ALL {
            let found = shaped(*profile, &schema);
            assert_eq!(found, json!({ "type": "object", "properties": schema["properties"] }), "{}", profile.id());
        }
        for profile in CLOSED {
            assert_eq!(parameter(*profile, &schema), json!({ "type": "object", "properties": schema["properties"] }));
        }
        on_each(FULL, &schema, &schema);
    }
}

mod references {
    use super::*;

    #[test]
    fn old_definitions_are_renamed_with_their_references() {
        let schema = json!({
            "type": "object",
            "properties": { "x": { "$ref": "#/definitions/A" }, "definitions": { "type": "string" } },
            "definitions": { "A": { "type": "object", "properties": { "n": { "$ref": "#/definitions/B" } } }, "B": { "type": "integer" } },
        });
        for profile in FULL {
            let found = shaped(*profile, &schema);
            assert_eq!(found["properties"]["x"], json!({ "$ref": "#/$defs/A" }));
            assert_eq!(found["$defs"]["A"]["properties"]["n"], json!({ "$ref": "#/$defs/B" }));
            assert_eq!(found["properties"]["definitions"], json!({ "type": "string" }));
            assert_eq!(found.get("definitions"), None);
        }
        for profile in CLOSED {
            let inlined = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
            assert_eq!(shaped(*profile, &schema)["properties"]["x"], inlined);
        }
    }

    #[test]
    fn a_reference_that_leads_nowhere_accepts_anything() {
        for text in ["https://example.com/a.json", "#/$defs/None", "other.json#/A", "#anchor", "", "#/%zz"] {
            on_each(FULL, &json!({ "$ref": text, "description": "d" }), &json!({ "description": "d" }));
            on_each(
                CLOSED,
                &json!({ "$ref": text, "description": "d" }),
                &json!({ "type": "string", "description": "d" }),
            );
        }
    }

    #[test]
    fn a_reference_to_elsewhere_in_the_schema_is_written_out() {
        let schema = json!({ "type": "object", "properties": {
            "a": { "type": "array", "items": { "type": "integer", "minimum": 3 } },
            "b": { "$ref": "#/properties/a/items", "description": "As in `a`." },
        }});
        for profile in Profile::ALL {
            let expected = json!({ "type": "integer", "minimum": 3, "description": "As in `a`." });
            assert_eq!(shaped(*profile, &schema)["properties"]["b"], expected);
        }
    }

    #[test]
    fn a_name_that_is_no_uri_is_escaped() {
        let schema = json!({
            "type": "object", "properties": { "x": { "$ref": "#/$defs/List[a b]~1é" } },
            "$defs": { "List[a b]/é": { "type": "string" } },
        });
        let found = shaped(Profile::OpenAiChat, &schema);
        assert_eq!(found["properties"]["x"]["$ref"], "#/$defs/List%5Ba%20b%5D~1%C3%A9");
        assert_eq!(shaped(Profile::OpenAiChat, &found), found);
    }

    #[test]
    fn a_recursive_schema_ends() {
        let schema = json!({
            "type": "object", "properties": { "tree": { "$ref": "#/$defs/Node" } },
            "$defs": { "Node": { "type": "object", "properties": {
                "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/Node" } },
            }}},
        });
        for profile in FULL {
            assert_eq!(shaped(*profile, &schema), schema);
        }
        let leaf = shaped(Profile::Local, &schema)["properties"]["tree"]["properties"]["children"]["items"]["properties"]
            ["children"]["items"]
            .clone();
        assert_eq!(leaf, json!({ "type": "object", "description": "Nested further in the same way." }));
        let text = shaped(Profile::Gemini, &schema).to_string();
        assert!(text.contains("Nested further in the same way."), "{text}");
    }

    #[test]
    fn a_reference_to_itself_accepts_anything() {
        let schema = json!({
            "type": "object",
            "properties": { "x": { "$ref": "#/$defs/A" }, "y": { "$ref": "#/$defs/C" } },
            "$defs": {
                "A": { "anyOf": [{ "$ref": "#/$defs/B" }, { "type": "null" }] },
                "B": { "allOf": [{ "$ref": "#/$defs/A" }] },
                "C": { "type": "object", "properties": { "c": { "$ref": "#/$defs/C" } } },
            },
        });
        let found = shaped(Profile::OpenAiChat, &schema);
        assert_eq!(found["properties"]["x"], json!({}));
        assert_eq!(found["properties"]["y"], json!({ "$ref": "#/$defs/C" }));
        shaped(Profile::Gemini, &schema);
        let root = json!({ "$ref": "#", "properties": { "a": { "type": "string" } } });
        assert_eq!(shaped(Profile::Local, &root)["properties"], root["properties"]);
    }

    #[test]
    fn references_cannot_blow_up() {
        let mut definitions = Map::new();
        for level in 0..30 {
            let next = json!({ "$ref": format!("#/$defs/L{}", level + 1) });
            let properties = (0..10).map(|n| (format!("p{n}"), next.clone())).collect::<Map<_, _>>();
            definitions.insert(format!("L{level}"), json!({ "type": "object", "properties": properties }));
        }
        definitions.insert("L30".to_owned(), json!({ "enum": vec!["laugh"; 200] }));
        let schema = json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/L0" } }, "$defs": definitions });
        for profile in Profile::ALL {
            let size = shaped(*profile, &schema).to_string().len();
            assert!(size < 400_000, "{size} bytes for {}", profile.id());
        }
    }
}

mod dialects {
    use super::*;

    #[test]
    fn anthropic_is_told_in_words_of_names_it_refuses() {
        let schema = json!({ "type": "object", "properties": {
            "filter[id]": { "type": "string" }, "ok.name-1": { "type": "string" }, "a b": { "type": "string" },
        }, "required": ["filter[id]"], "description": "Filters." });
        assert_eq!(
            shaped(Profile::Anthropic, &schema),
            json!({
                "type": "object", "properties": { "ok.name-1": { "type": "string" } },
                "description": "Filters. Also takes `filter[id]`, `a b`.",
            })
        );
    }

    #[test]
    fn anthropic_gets_no_patterns_of_names() {
        let schema = json!({ "type": "object", "patternProperties": { "^(.*)$": { "type": "integer" } }, "additionalProperties": false });
        on_each(
            &[Profile::Anthropic],
            &schema,
            &json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
        );
        on_each(OPEN_AI, &schema, &schema);
    }

    #[test]
    fn gemini_gets_only_what_it_knows() {
        for (schema, expected) in [
            (json!({ "type": "integer", "enum": [1, 2] }), json!({ "type": "integer", "description": "One of 1, 2." })),
            (json!({ "enum": ["a", "", null] }), json!({ "type": "string", "enum": ["a"], "nullable": true })),
            (json!({ "const": "a" }), json!({ "type": "string", "enum": ["a"] })),
            (json!({ "const": 4 }), json!({ "type": "integer", "description": "Always 4." })),
            (
                json!({ "type": "string", "format": "uri", "pattern": "^a" }),
                json!({ "type": "string", "pattern": "^a" }),
            ),
            (json!({ "type": "string", "pattern": "(?=a)" }), json!({ "type": "string" })),
            (
                json!({ "type": "integer", "format": "int64", "exclusiveMinimum": 3 }),
                json!({ "type": "integer", "format": "int64" }),
            ),
            (
                json!({ "type": "object", "additionalProperties": { "type": "string" }, "description": "Headers." }),
                json!({ "type": "string", "description": "Headers. A JSON object, written as text." }),
            ),
            (
                json!({ "properties": { "a": "string" } }),
                json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
            ),
            (
                json!({ "oneOf": [{ "const": "a" }, { "enum": ["b", "c"] }] }),
                json!({ "type": "string", "enum": ["a", "b", "c"] }),
            ),
            (json!({ "allOf": [{ "type": "integer" }, { "minimum": 1 }] }), json!({ "type": "integer", "minimum": 1 })),
        ] {
            assert_eq!(parameter(Profile::Gemini, &schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_grammar_gets_one_type_for_each_node() {
        for (schema, expected) in [
            (json!({}), json!({ "type": "string" })),
            (json!({ "enum": [1, 2] }), json!({ "type": "integer", "enum": [1, 2] })),
            (json!({ "enum": [1, "a"] }), json!({ "type": "string", "description": "One of 1, \"a\"." })),
            (
                json!({ "type": "string", "pattern": "^a$", "format": "uri", "maxLength": 2000 }),
                json!({ "type": "string" }),
            ),
            (json!({ "if": {}, "then": {}, "not": {}, "minimum": 3 }), json!({ "type": "number", "minimum": 3 })),
            (
                json!({ "type": "object", "additionalProperties": { "description": "any" } }),
                json!({ "type": "object", "additionalProperties": { "type": "string", "description": "any" } }),
            ),
        ] {
            assert_eq!(parameter(Profile::Local, &schema).to_string(), expected.to_string(), "{schema}");
        }
    }

    #[test]
    fn what_a_provider_refused_is_left_out() {
        let schema = json!({ "type": "object", "properties": {
            "pattern": { "type": "string", "pattern": "^a$", "format": "uri", "default": { "pattern": 1 } },
            "u": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "r": { "$ref": "#/$defs/A" },
        }, "$defs": { "A": { "type": "boolean" } } });
        let without = Stripped::named_in("failed to parse grammar");
        let found = Profile::OpenAiChat.definition("a", "", &schema, &without);
        assert_eq!(
            found["function"]["parameters"]["properties"]["pattern"],
            json!({ "type": "string", "default": { "pattern": 1 } })
        );
        let without = Stripped::named_in("tools.1.input_schema: anyOf and $ref are not supported");
        for profile in Profile::ALL {
            let found = profile.definition("a", "", &schema, &without);
            assert_eq!(profile.check(&found), Vec::<String>::new());
            let properties = &schema_of(*profile, &found).unwrap()["properties"];
            assert_eq!(properties["u"], json!({ "type": "string" }));
            assert_eq!(properties["r"], json!({ "type": "boolean" }));
        }
    }

    #[test]
    fn what_was_left_out_is_not_put_back() {
        let without = |word: &str| Stripped::named_in(&format!("tools[0]: schema: '{word}' is not permitted"));
        let patterns = json!({ "patternProperties": { "a": { "type": "string" } } });
        let found = Profile::Anthropic.definition("a", "", &patterns, &without("additionalProperties"));
        assert_eq!(found["input_schema"], json!({ "type": "object", "properties": {} }));
        let never = json!({ "properties": { "x": { "allOf": [false] } } });
        let found = Profile::OpenAiChat.definition("a", "", &never, &without("not"));
        assert_eq!(found["function"]["parameters"]["properties"]["x"], json!({ "allOf": [{}] }));
    }

    #[test]
    fn the_checker_does_refuse() {
        let text = json!({ "type": "string" });
        for (profile, schema) in [
            (Profile::OpenAiChat, json!({ "type": "object" })),
            (Profile::OpenAiChat, json!({ "type": "object", "properties": {}, "anyOf": [{}] })),
            (Profile::OpenAiChat, json!({ "type": "object", "properties": { "a": { "type": "array" } } })),
            (Profile::OpenAiChat, json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/A" } } })),
            (Profile::OpenAiChat, json!({ "type": "object", "properties": { "a": { "type": "strin" } } })),
            (Profile::OpenAiChat, json!({ "type": "object", "properties": {}, "required": ["a"] })),
            (Profile::Anthropic, json!({ "type": "object", "properties": { "a[]": text } })),
            (Profile::Anthropic, json!({ "type": "object", "properties": { "a": { "pattern": "(" } } })),
            (Profile::Gemini, json!({ "type": "object", "properties": {} })),
            (Profile::Gemini, json!({ "type": "object", "properties": { "a": { "description": "untyped" } } })),
            (Profile::Gemini, json!({ "type": "object", "properties": { "a": { "type": "integer", "enum": [1] } } })),
            (Profile::Gemini, json!({ "type": "object", "properties": { "a": text }, "additionalProperties": false })),
            (Profile::Local, json!({ "type": "object", "properties": { "a": { "type": ["string", "integer"] } } })),
            (
                Profile::Local,
                json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "^a$" } } }),
            ),
        ] {
            let mut definition = define(profile, &json!({ "properties": { "a": text } }));
            let schema_key = if profile == Profile::Anthropic { "input_schema" } else { "parameters" };
            if definition.get("function").is_some() {
                definition["function"][schema_key] = schema.clone();
            } else {
                definition[schema_key] = schema.clone();
            }
            assert!(!profile.check(&definition).is_empty(), "{} accepts {schema}", profile.id());
            let data = json!({ "type": "object", "properties": { "a": { "type": "string", "default": schema } } });
            assert!(profile.check(&define(profile, &data)).is_empty(), "data was taken for a schema");
        }
    }
}

mod hostile {
    use super::*;

    /// Nested `levels` deep through `keyword`. Not dropped: that would need the stack that the code under test does without.
    fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> &'static Value {
        Box::leak(Box::new((0..levels).fold(json!({ "type": "string" }), |inner, _| wrap(inner))))
    }

    #[test]
    fn ten_thousand_levels_do_not_overflow_the_stack() {
        let object = |mut properties: Map<String, Value>, name: &str, inner| {
            properties.insert(name.to_owned(), inner);
            Value::Object(properties)
        };
        let in_list = |keyword: &str, inner: Value| {
            object(Map::new(), keyword, Value::Array(vec![inner, Value::String("integer".to_owned())]))
        };
        let in_map = |keyword: &str, inner: Value| object(Map::new(), keyword, object(Map::new(), "a", inner));
        let schemas = [
            nested(10_000, |inner| object(Map::new(), "items", inner)),
            nested(10_000, |inner| object(Map::new(), "default", inner)),
            nested(10_000, |inner| object(Map::new(), "x-unknown", inner)),
            nested(10_000, |inner| in_list("anyOf", inner)),
            nested(10_000, |inner| in_list("allOf", inner)),
            nested(10_000, |inner| in_list("enum", inner)),
            nested(10_000, |inner| in_list("prefixItems", inner)),
            nested(10_000, |inner| in_map("properties", inner)),
            nested(10_000, |inner| Value::Array(vec![inner])),
        ];
        let run = move || {
            for schema in schemas {
                for profile in Profile::ALL {
                    let definition = define(*profile, schema);
                    assert_eq!(profile.check(&definition), Vec::<String>::new());
                    assert!(serde_json::from_str::<Value>(&definition.to_string()).is_ok());
                    assert!(!profile.check(schema).is_empty());
                }
            }
        };
        std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(run).unwrap().join().unwrap();
    }

    #[test]
    fn what_was_cut_for_its_depth_stays_as_it_is() {
        let steps: &[fn(Value) -> Value] = &[
            |inner| json!({ "type": "array", "items": inner }),
            |inner| json!({ "type": "object", "properties": { "a": inner } }),
            |inner| json!({ "type": ["array", "object", "string"], "items": inner, "properties": { "b": { "type": "null" } } }),
            |inner| json!({ "anyOf": [inner, { "type": "boolean" }] }),
            |inner| json!({ "oneOf": [inner, { "type": "null" }], "description": "d" }),
            |inner| json!({ "type": "array", "prefixItems": [inner, { "type": "integer" }] }),
            |inner| json!({ "allOf": [inner, { "title": "t" }] }),
            |inner| json!({ "type": "object", "additionalProperties": inner }),
            |inner| json!({ "properties": { "c": {} }, "anyOf": [{ "properties": { "c": inner } }, { "properties": { "c": "string" } }] }),
        ];
        for first in 0..steps.len() {
            for second in 0..steps.len() {
                for levels in (14..18).chain(30..35) {
                    let step = |inner, level: usize| {
                        if level.is_multiple_of(2) { steps[first](inner) } else { steps[second](inner) }
                    };
                    let schema = (0..levels).fold(json!({ "type": ["string", "integer"], "default": [1] }), step);
                    for profile in Profile::ALL {
                        let once = define(*profile, &schema);
                        let again = schema_of(*profile, &once).cloned().unwrap_or_else(|| json!({}));
                        let twice = define(*profile, &again);
                        assert_eq!(once.to_string(), twice.to_string(), "{} {first} {second} {levels}", profile.id());
                    }
                }
            }
        }
    }

    #[test]
    fn a_large_schema_comes_out_in_proportion() {
        let many = |n: usize| {
            let parts = (0..n).map(|k| {
                let name = format!("p{k}");
                let value = json!({ "const": k });
                json!({ "properties": { name.as_str(): value, "common": value }, "required": [name], "anyOf": [{}, { "required": ["q"] }] })
            });
            let parts = parts.collect::<Vec<_>>();
            json!({ "allOf": parts, "anyOf": parts, "properties": { "x": { "oneOf": parts }, "y": { "prefixItems": parts } } })
        };
        // Twenty times as much in, and no more than in proportion out; whoever does quadratic work does not get here.
        let (small, large) = (many(300), many(6_000));
        for profile in Profile::ALL {
            let bytes = |schema: &Value| define(*profile, schema).to_string().len();
            let (small, large) = (bytes(&small).max(1_000), bytes(&large));
            assert!(large < small * 40, "{}: {small} bytes, then {large}", profile.id());
        }
    }

    #[test]
    fn a_long_chain_of_references_does_not_overflow_the_stack() {
        let mut definitions = Map::new();
        for n in 0..20_000 {
            definitions.insert(format!("D{n}"), json!({ "$ref": format!("#/$defs/D{}", n + 1) }));
        }
        let schema = json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/D0" } }, "$defs": definitions });
        for profile in CLOSED {
            shaped(*profile, &schema);
        }
        define(Profile::OpenAiChat, &schema);
    }
}
