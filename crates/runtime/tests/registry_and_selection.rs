//! Who exists and who is seen: changes are whole or not at all, and a restriction is never read as "no restriction".
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use hermes_core::{Availability, JsonMap, Tool, ToolCx, ToolName, ToolResult, ToolSpec, Touches};
use hermes_runtime::{Registry, Selection, Snapshot, UnknownToolset, definitions};
use hermes_testkit::FakeTool;
use proptest::prelude::*;
use serde_json::{Value, json};
use setting::register;

fn tool(name: &str, toolset: &str) -> Arc<dyn Tool> {
    Arc::new(FakeTool::new(name).toolset(toolset))
}

fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.entries().map(|entry| entry.tool.spec().name.to_string()).collect()
}

fn selection(toolsets: &[&str], disabled: &[&str]) -> Selection {
    Selection {
        toolsets: Some(toolsets.iter().map(ToString::to_string).collect()),
        disabled: disabled.iter().map(ToString::to_string).collect(),
        ..Selection::default()
    }
}

fn resolved(registry: &Registry, selection: &Selection) -> Vec<String> {
    selection.resolve(&registry.snapshot()).unwrap().iter().map(ToString::to_string).collect()
}

/// Two files, a shell, a calculator and one tool that belongs to no platform.
fn usual() -> Registry {
    let registry = Registry::new();
    let tools = [("read", "file"), ("write", "file"), ("shell", "terminal"), ("sum", "math"), ("mail", "post")];
    register(&registry, "built-in", tools.map(|(name, toolset)| tool(name, toolset)).to_vec()).unwrap();
    registry
}

// ---------------------------------------------------------------------------------------------------------- registry

#[test]
fn the_generation_moves_once_a_registration_however_many_tools_come() {
    let registry = Registry::new();
    assert_eq!((registry.snapshot().generation(), names(&registry.snapshot()).len()), (0, 0));
    register(&registry, "one", vec![tool("c", "x"), tool("a", "x"), tool("b", "x")]).unwrap();
    assert_eq!(registry.snapshot().generation(), 1);
    assert_eq!(names(&registry.snapshot()), ["a", "b", "c"]);
    register(&registry, "two", vec![tool("d", "x")]).unwrap();
    register(&registry, "three", Vec::new()).unwrap();
    assert_eq!(registry.snapshot().generation(), 3);
    assert_eq!(registry.snapshot().get("d").unwrap().owner, "two");
    assert!(registry.snapshot().get("D").is_none(), "a registered name is exact");
}

#[test]
fn a_name_that_is_taken_refuses_the_whole_registration_and_changes_nothing() {
    let registry = Registry::new();
    register(&registry, "first", vec![tool("a", "x")]).unwrap();
    register(&registry, "second", vec![tool("b", "x")]).unwrap();
    let before = registry.snapshot();
    // Its own tools would be replaced, were the registration whole.
    let conflict = register(&registry, "second", vec![tool("c", "x"), tool("a", "x"), tool("d", "x")]).unwrap_err();
    assert_eq!(
        (conflict.name.as_str(), conflict.holder.as_str(), conflict.newcomer.as_str()),
        ("a", "first", "second")
    );
    let told = conflict.to_string();
    assert!(["second", "`a`", "first"].iter().all(|part| told.contains(part)), "{told}");
    assert_eq!((registry.snapshot().generation(), names(&registry.snapshot())), (2, names(&before)));
    assert_eq!(registry.snapshot().get("a").unwrap().owner, "first");
}

#[test]
fn a_source_that_offers_one_name_twice_is_refused() {
    let registry = Registry::new();
    let conflict = register(&registry, "twin", vec![tool("a", "x"), tool("a", "y")]).unwrap_err();
    assert_eq!((conflict.holder.as_str(), conflict.newcomer.as_str()), ("twin", "twin"));
    assert_eq!((registry.snapshot().generation(), names(&registry.snapshot()).len()), (0, 0));
}

#[test]
fn a_source_that_registers_again_replaces_its_own_tools_and_nobody_elses() {
    let registry = Registry::new();
    register(&registry, "other", vec![tool("z", "x")]).unwrap();
    register(&registry, "server", vec![tool("a", "x"), tool("b", "x")]).unwrap();
    register(&registry, "server", vec![tool("b", "new"), tool("c", "x")]).unwrap();
    let now = registry.snapshot();
    assert_eq!(names(&now), ["b", "c", "z"]);
    assert_eq!(now.get("b").unwrap().tool.spec().toolset, "new");
    register(&registry, "server", Vec::new()).unwrap();
    assert_eq!(names(&registry.snapshot()), ["z"]);
}

#[test]
fn a_snapshot_does_not_change_under_its_reader() {
    let registry = Registry::new();
    register(&registry, "one", vec![tool("a", "x")]).unwrap();
    let (before, kept) = (registry.snapshot(), registry.snapshot().get("a").unwrap().clone());
    register(&registry, "one", vec![tool("b", "x")]).unwrap();
    assert_eq!((before.generation(), names(&before)), (1, vec!["a".to_owned()]));
    assert_eq!(kept.tool.spec().name.as_str(), "a");
    assert_eq!(names(&registry.snapshot()), ["b"]);
}

#[test]
fn registrations_from_many_threads_are_all_there_and_each_counts_once() {
    let registry = Registry::new();
    std::thread::scope(|scope| {
        for n in 0..16 {
            let registry = &registry;
            scope.spawn(move || register(registry, &format!("source {n}"), vec![tool(&format!("t{n:02}"), "x")]));
        }
    });
    assert_eq!((registry.snapshot().generation(), names(&registry.snapshot()).len()), (16, 16));
}

// --------------------------------------------------------------------------------------------------------- selection

#[test]
fn without_a_wish_the_platform_decides() {
    assert_eq!(resolved(&usual(), &Selection::default()), ["read", "shell", "sum", "write"]);
}

#[test]
fn a_wish_stands_in_place_of_the_platform_and_does_not_add_to_it() {
    let registry = usual();
    assert_eq!(resolved(&registry, &selection(&["post"], &[])), ["mail"]);
    assert_eq!(
        resolved(&registry, &selection(&["hermes-cli", "post"], &[])),
        ["mail", "read", "shell", "sum", "write"]
    );
    for everything in ["all", "*"] {
        assert_eq!(resolved(&registry, &selection(&[everything], &[])), ["mail", "read", "shell", "sum", "write"]);
    }
}

#[test]
fn an_empty_allow_list_allows_nothing() {
    assert!(resolved(&usual(), &selection(&[], &[])).is_empty());
}

#[test]
fn disabled_beats_enabled() {
    let registry = usual();
    assert_eq!(resolved(&registry, &selection(&["file", "math"], &["file"])), ["sum"]);
    assert_eq!(resolved(&registry, &selection(&["all"], &["file", "post"])), ["shell", "sum"]);
    assert!(resolved(&registry, &selection(&["all"], &["all"])).is_empty());
    let default = Selection { disabled: vec!["terminal".into()], ..Selection::default() };
    assert_eq!(resolved(&registry, &default), ["read", "sum", "write"]);
}

#[test]
fn an_unknown_toolset_is_refused_with_the_nearest_one_wherever_it_is_named() {
    let registry = usual();
    let refused = |selection: &Selection| selection.resolve(&registry.snapshot()).unwrap_err();
    for selection in [selection(&["file", "terminol"], &[]), selection(&["file"], &["terminol"])] {
        let error = refused(&selection);
        assert_eq!((error.name.as_str(), error.nearest[0].as_str()), ("terminol", "terminal"));
        assert_eq!(error.to_string(), r#"unknown toolset "terminol"; did you mean "terminal"?"#);
    }
    let nothing_like_it = refused(&selection(&["qqqq"], &[]));
    assert_eq!(nothing_like_it, UnknownToolset { name: "qqqq".into(), nearest: Vec::new() });
    assert_eq!(nothing_like_it.to_string(), r#"unknown toolset "qqqq""#);
    // An empty name, as a stray comma leaves it, is no name.
    assert_eq!(refused(&selection(&["file", ""], &[])).name, "");
    let platform = Selection { platform: "hermes-clo".into(), ..Selection::default() };
    assert_eq!(refused(&platform).nearest, ["hermes-cli"]);
}

#[test]
fn a_tool_that_cannot_be_used_here_is_hidden_and_its_toolset_is_still_known() {
    let registry = usual();
    let missing = Availability::Missing { reason: "no browser".into(), fix: "install one".into() };
    let browse = FakeTool::new("browse").toolset("web").with_availability(missing);
    register(&registry, "web", vec![Arc::new(browse), tool("fetch", "file")]).unwrap();
    assert!(resolved(&registry, &selection(&["web"], &[])).is_empty());
    assert_eq!(resolved(&registry, &selection(&["web", "file"], &[])), ["fetch", "read", "write"]);
    assert!(!resolved(&registry, &selection(&["all"], &[])).contains(&"browse".to_owned()));
}

const TOOLSETS: &[&str] = &["file", "math", "post", "terminal"];

fn some_toolsets() -> impl Strategy<Value = Vec<&'static str>> {
    // Names may come twice: what counts is whether they come.
    prop::collection::vec(prop::sample::select(TOOLSETS), 0..6)
}

proptest! {
    #[test]
    fn the_order_of_names_and_their_repetition_do_not_matter(
        (wanted, shuffled) in some_toolsets().prop_flat_map(|names| (Just(names.clone()), Just(names).prop_shuffle())),
        (disabled, mixed) in some_toolsets().prop_flat_map(|names| (Just(names.clone()), Just(names).prop_shuffle())),
    ) {
        let registry = usual();
        let got = resolved(&registry, &selection(&wanted, &disabled));
        prop_assert_eq!(&got, &resolved(&registry, &selection(&shuffled, &mixed)));
        let set = |names: &[&'static str]| -> Vec<&str> { names.iter().copied().collect::<BTreeSet<_>>().into_iter().collect() };
        prop_assert_eq!(&got, &resolved(&registry, &selection(&set(&wanted), &set(&disabled))));
        // The whole rule, said once more: wanted and not disabled.
        let snapshot = registry.snapshot();
        let expected: Vec<String> = snapshot
            .entries()
            .map(|entry| entry.tool.spec())
            .filter(|spec| wanted.contains(&spec.toolset.as_str()) && !disabled.contains(&spec.toolset.as_str()))
            .map(|spec| spec.name.to_string())
            .collect();
        prop_assert_eq!(got, expected);
    }
}

// ------------------------------------------------------------------------------------------------------- definitions

fn visible(names: &[&str]) -> BTreeSet<ToolName> {
    names.iter().map(|name| ToolName::new(name).unwrap()).collect()
}

#[test]
fn definitions_are_sorted_by_name_and_the_same_bytes_twice() {
    // Registered in different orders by different sources: the list must not tell.
    let (one, two) = (Registry::new(), Registry::new());
    register(&one, "a", vec![tool("read", "x"), tool("write", "x")]).unwrap();
    register(&one, "b", vec![tool("_edit", "x"), tool("Zip", "x")]).unwrap();
    register(&two, "b", vec![tool("Zip", "x"), tool("write", "x"), tool("_edit", "x"), tool("read", "x")]).unwrap();
    let visible = visible(&["write", "Zip", "read", "_edit"]);
    let text =
        |registry: &Registry| serde_json::to_string(&*definitions::build(&registry.snapshot(), &visible)).unwrap();
    assert_eq!(text(&one), text(&one));
    assert_eq!(text(&one), text(&two));
    let list: Vec<Value> = serde_json::from_str(&text(&one)).unwrap();
    let names: Vec<&str> = list.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Zip", "_edit", "read", "write"]);
}

#[test]
fn a_definition_is_what_the_api_documents_and_nothing_more() {
    let registry = Registry::new();
    let schema = json!({ "type": "object", "properties": { "z": {}, "a": {} }, "required": ["z"] });
    let read = FakeTool::new("read").parameters(schema.clone());
    register(&registry, "a", vec![Arc::new(read)]).unwrap();
    let list = definitions::build(&registry.snapshot(), &visible(&["read"]));
    let function = json!({ "name": "read", "description": "Stands in for read.", "parameters": schema });
    assert_eq!(*list, [json!({ "type": "function", "function": function })]);
}

#[test]
fn only_what_is_visible_and_still_registered_is_defined() {
    let registry = usual();
    let list = definitions::build(&registry.snapshot(), &visible(&["sum", "ghost", "mail"]));
    let names: Vec<&Value> = list.iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["mail", "sum"]);
    assert!(definitions::build(&registry.snapshot(), &BTreeSet::new()).is_empty());
}

/// Says which other tool it sees.
struct Neighbourly(ToolSpec);

#[async_trait]
impl Tool for Neighbourly {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn describe(&self, visible: &dyn Fn(&str) -> bool) -> Cow<'_, str> {
        let seen: Vec<&str> = ["read", "mail"].into_iter().filter(|name| visible(name)).collect();
        format!("Works with: {}.", seen.join(", ")).into()
    }

    fn touches(&self, _: &JsonMap, _: &ToolCx) -> Touches {
        Touches::nothing()
    }

    async fn call(&self, _: JsonMap, _: ToolCx) -> ToolResult {
        Ok(json!({}).into())
    }
}

#[test]
fn a_description_speaks_only_of_tools_that_the_model_sees() {
    let registry = usual();
    let spec = FakeTool::new("helper").spec().clone();
    register(&registry, "helper", vec![Arc::new(Neighbourly(spec))]).unwrap();
    let described = |names: &[&str]| {
        let list = definitions::build(&registry.snapshot(), &visible(names));
        list[0]["function"]["description"].as_str().unwrap().to_owned()
    };
    assert_eq!(described(&["helper", "read"]), "Works with: read.");
    assert_eq!(described(&["helper"]), "Works with: .");
}
