//! Golden definition lists: every platform in every dialect, over all 79 tools of the reference and our own.
//!
//! The whole list of each dialect is written out once. What a platform is shown is a part of it, so for the platforms the
//! names and a fingerprint of the bytes are enough: a change shows in the fingerprint, and what changed in the list.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::sync::Arc;

use hermes_core::Tool;
use hermes_runtime::{Definitions, Profile, Registry, Selection, Shown, Wanted, toolset};
use hermes_testkit::FakeTool;
use serde::Deserialize;
use serde_json::{Value, json};
use setting::{checks, register};

#[derive(Deserialize)]
struct Case {
    name: String,
    toolset: String,
    parameters: Value,
}

/// Everything there is, and a few schemas that no provider would take as they are.
fn tools() -> Vec<Arc<dyn Tool>> {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../cases/tool-schemas.json")).unwrap();
    let tool = |name: &str, toolset: &str, parameters: Value| -> Arc<dyn Tool> {
        Arc::new(FakeTool::new(name).toolset(toolset).parameters(parameters))
    };
    let mut tools: Vec<_> = cases.into_iter().map(|case| tool(&case.name, &case.toolset, case.parameters)).collect();
    tools.push(tool(
        "calculate",
        "math",
        json!({ "type": "object", "properties": { "expression": { "type": "string" } } }),
    ));
    for (name, parameters) in [
        (
            "7zip",
            json!({ "type": "object", "properties": { "path": { "type": ["string", "null"], "default": null } } }),
        ),
        (
            "tree",
            json!({
                "type": "object",
                "properties": { "root": { "$ref": "#/definitions/node" } },
                "definitions": { "node": { "type": "object", "properties": { "children": { "type": "array", "items": { "$ref": "#/definitions/node" } } } } },
            }),
        ),
        (
            "either",
            json!({ "oneOf": [
            { "properties": { "a": { "const": 1 } }, "required": ["a"] },
            { "properties": { "b": { "type": "array", "prefixItems": [{ "type": "integer" }, true] } } },
        ] }),
        ),
    ] {
        tools.push(tool(name, "plugin_set", parameters));
    }
    tools
}

fn definitions() -> Definitions {
    let registry = Arc::new(Registry::new());
    // The grant lets it offer what is otherwise built in; nothing is, here.
    register(&registry, "reference", tools());
    Definitions::new(registry, checks())
}

fn shown(definitions: &Definitions, selection: Selection, profile: Profile) -> Arc<Shown> {
    definitions.current(&Arc::new(Wanted::new(selection, profile))).unwrap()
}

/// FNV-1a: the same on every machine and with every compiler.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn text(shown: &Shown) -> String {
    shown.list.iter().fold(String::new(), |text, definition| text + &format!("{definition}\n"))
}

#[test]
fn every_dialect_is_written_out_and_every_definition_in_it_is_accepted() {
    let definitions = definitions();
    for profile in Profile::ALL {
        let shown = shown(&definitions, Selection::exactly(&["all"]), *profile);
        for definition in shown.list.iter() {
            assert_eq!(profile.check(&definition.to_value()), Vec::<String>::new(), "{} {definition}", profile.id());
        }
        insta::assert_snapshot!(format!("definitions-{}", profile.id()), text(&shown));
    }
}

#[test]
fn every_platform_is_shown_its_tools_in_every_dialect() {
    let definitions = definitions();
    let mut table = String::new();
    for platform in toolset::platforms().chain(["hermes-gateway", "coding"]) {
        let selection = Selection { with_sources: false, ..Selection::exactly(&[platform]) };
        table += &format!("{platform}\n");
        for profile in Profile::ALL {
            let shown = shown(&definitions, selection.clone(), *profile);
            let print = fingerprint(text(&shown).as_bytes());
            table += &format!("  {:<17} {:>3} tools  {print:016x}\n", profile.id(), shown.list.len());
        }
        let names: Vec<String> =
            shown(&definitions, selection, Profile::OpenAiChat).tools.iter().map(ToString::to_string).collect();
        table += &format!("  {}\n", names.join(" "));
    }
    insta::assert_snapshot!("platforms", table);
}

#[test]
fn a_name_that_a_provider_does_not_take_is_shown_differently_and_found_again() {
    let definitions = definitions();
    let gemini = shown(&definitions, Selection::exactly(&["all"]), Profile::Gemini);
    assert_eq!((gemini.real_name("_7zip"), gemini.real_name("read_file")), ("7zip", "read_file"));
    assert!(gemini.list.iter().any(|definition| definition.to_value()["name"] == "_7zip"));
    assert!(shown(&definitions, Selection::exactly(&["all"]), Profile::OpenAiChat).renamed.is_empty());
}
