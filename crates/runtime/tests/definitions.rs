//! The list that a model sees: the same bytes for the same input, remembered under the versions of what it was made
//! from, and speaking only of tools that the model can see.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod selecting;

use std::collections::BTreeSet;
use std::sync::Arc;

use hermes_core::{Definition, Tool, ToolName};
use hermes_runtime::{
    Checks, Definitions, OwnerKind, Profile, Registry, Resolved, Selection, Shown, Stripped, Wanted, definitions,
};
use hermes_testkit::{FakeSurroundings, FakeTool};
use selecting::{checks, custom, offer, tool, usual};
use serde_json::{Value, json};

fn names(tools: &[&str]) -> BTreeSet<ToolName> {
    tools.iter().map(|name| ToolName::new(name).unwrap()).collect()
}

/// The list for exactly these tools, in the dialect nearest to the tools' own words.
fn build(registry: &Registry, tools: &[&str]) -> Shown {
    let resolved = Resolved { tools: names(tools), ..Resolved::default() };
    definitions::build(&registry.snapshot(), resolved, Profile::OpenAiChat, &Stripped::default())
}

fn text(shown: &Shown) -> String {
    serde_json::to_string(&*shown.list).unwrap()
}

fn shown_names(shown: &Shown) -> Vec<String> {
    let name = |tool: &Definition| tool.to_value()["function"]["name"].as_str().unwrap().to_owned();
    shown.list.iter().map(name).collect()
}

fn function(shown: &Shown, name: &str) -> Value {
    let mut functions = shown.list.iter().map(|tool| tool.to_value()["function"].take());
    functions.find(|function| function["name"] == name).unwrap_or_else(|| panic!("{name} is not shown"))
}

fn description(shown: &Shown, name: &str) -> String {
    function(shown, name)["description"].as_str().unwrap().to_owned()
}

fn with(registry: &Registry, tools: Vec<Arc<dyn Tool>>) {
    let owner = registry.owner(OwnerKind::BuiltIn, "more", false);
    registry.offer(&owner, tools).unwrap();
}

fn wanted(toolsets: &[&str]) -> Arc<Wanted> {
    Arc::new(Wanted::new(Selection::exactly(toolsets), Profile::OpenAiChat))
}

// ---------------------------------------------------------------------------------------------------------- the list

#[test]
fn definitions_are_sorted_by_name_and_the_same_bytes_whoever_registered_first() {
    let (one, two) = (Registry::new(), Registry::new());
    offer(&one, OwnerKind::BuiltIn, "a", &["read x", "write x"]);
    offer(&one, OwnerKind::Mcp, "b", &["_edit x", "Zip x"]);
    offer(&two, OwnerKind::Mcp, "b", &["Zip x", "_edit x"]);
    offer(&two, OwnerKind::BuiltIn, "a", &["write x", "read x"]);
    let all = ["write", "Zip", "read", "_edit"];
    assert_eq!(text(&build(&one, &all)), text(&build(&one, &all)));
    assert_eq!(text(&build(&one, &all)), text(&build(&two, &all)));
    assert_eq!(shown_names(&build(&one, &all)), ["Zip", "_edit", "read", "write"]);
    // The same again through the whole way, with sets and answers about availability.
    let list = |registry: Registry| {
        let definitions = Definitions::new(Arc::new(registry), checks());
        text(&definitions.current(&wanted(&["all"])).unwrap())
    };
    assert_eq!(list(one), list(two));
}

#[test]
fn a_definition_is_what_the_api_documents_and_nothing_more() {
    let registry = Registry::new();
    let schema = json!({ "type": "object", "properties": { "z": { "type": "string" } }, "required": ["z"] });
    with(&registry, vec![Arc::new(FakeTool::new("read").parameters(schema))]);
    let shown = build(&registry, &["read"]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let expected = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!(shown.list.len(), 1);
    let first = shown.list[0].to_value();
    assert_eq!((keys(&first), &first["type"]), (expected(&["type", "function"]), &json!("function")));
    let read = function(&shown, "read");
    assert_eq!(keys(&read), expected(&["name", "description", "parameters"]));
    assert_eq!(read["description"], "Stands in for read.");
    assert_eq!(read["parameters"]["properties"]["z"]["type"], "string");
    assert_eq!(read["parameters"]["required"], json!(["z"]));
}

#[test]
fn only_what_is_selected_and_still_registered_is_defined() {
    let registry = usual();
    assert_eq!(shown_names(&build(&registry, &["web_search", "ghost", "patch"])), ["patch", "web_search"]);
    assert!(build(&registry, &[]).list.is_empty());
}

#[test]
fn what_is_said_about_the_selection_and_what_is_granted_come_with_the_list() {
    let registry = Arc::new(usual());
    custom(&registry, "mine", &["patch"], &["mine"]);
    let definitions = Definitions::new(Arc::clone(&registry), checks());
    let shown = definitions.current(&wanted(&["mine", "web"])).unwrap();
    assert_eq!(shown.tools, names(&["patch", "web_extract", "web_search"]));
    assert_eq!(shown_names(&shown), ["patch", "web_extract", "web_search"]);
    assert!(shown.notes.iter().any(|note| note.contains("includes itself")), "{:?}", shown.notes);
    assert_eq!((shown.real_name("patch"), shown.real_name("ghost")), ("patch", "ghost"));
    let unknown = definitions.current(&wanted(&["terminol"])).unwrap_err();
    assert_eq!(unknown.nearest[0], "terminal");
}

// ------------------------------------------------------------------------------------- what depends on other tools

const SANDBOX: [&str; 4] = ["read_file", "terminal", "web_search", "write_file"];

fn sandboxed(sees: &dyn Fn(&str) -> bool) -> Vec<&'static str> {
    SANDBOX.into_iter().filter(|name| sees(name)).collect()
}

/// Like `execute_code`: lists the tools that a script can call, in its description and in its schema.
fn execute_code() -> FakeTool {
    let imports =
        |sees: &dyn Fn(&str) -> bool| format!("For example `from tools import {}`.", sandboxed(sees).join(", "));
    FakeTool::new("execute_code")
        .describing(|sees| match sandboxed(sees).as_slice() {
            [] => "Runs Python. A script can call no tools.".into(),
            tools => format!("Runs Python. A script can call: {}.", tools.join(", ")),
        })
        .showing(move |sees| {
            let code = json!({ "type": "string", "description": imports(sees) });
            json!({ "type": "object", "properties": { "code": code }, "required": ["code"] })
        })
}

/// Like `browser_navigate`: knows a cheaper way, if there is one.
fn browser_navigate() -> FakeTool {
    FakeTool::new("browser_navigate").describing(|sees| {
        let cheaper = ["web_search", "web_extract"].into_iter().find(|name| sees(name));
        let hint = cheaper.map(|name| format!(" For plain facts {name} is cheaper.")).unwrap_or_default();
        format!("Opens a page in the browser.{hint}")
    })
}

/// Like `delegate_task`: says its configured limits where the model reads them.
fn delegate_task(children: usize) -> FakeTool {
    FakeTool::new("delegate_task")
        .describing(move |_| format!("Hands work to up to {children} sub-agents at a time."))
        .showing(move |_| {
            let tasks = json!({ "type": "array", "maxItems": children, "items": { "type": "string" } });
            json!({ "type": "object", "properties": { "tasks": tasks } })
        })
}

#[test]
fn a_tool_that_lists_others_lists_the_visible_ones_and_only_those() {
    let registry = usual();
    with(&registry, vec![Arc::new(execute_code())]);
    for (beside, listed) in [
        (&["web_search", "read_file", "patch", "discord"][..], &["read_file", "web_search"][..]),
        (&["terminal"], &["terminal"]),
        (&SANDBOX, &SANDBOX),
    ] {
        let shown = build(&registry, &[beside, &["execute_code"]].concat());
        let said = format!("Runs Python. A script can call: {}.", listed.join(", "));
        assert_eq!(description(&shown, "execute_code"), said);
        let code = &function(&shown, "execute_code")["parameters"]["properties"]["code"]["description"];
        assert_eq!(code, &json!(format!("For example `from tools import {}`.", listed.join(", "))));
    }
    // None of them is none of them, and not all of them.
    let alone = build(&registry, &["execute_code", "patch", "discord"]);
    assert_eq!(description(&alone, "execute_code"), "Runs Python. A script can call no tools.");
}

#[test]
fn a_tool_recommends_another_one_only_if_the_model_can_see_it() {
    let registry = usual();
    with(&registry, vec![Arc::new(browser_navigate())]);
    let said = |beside: &[&str]| {
        let shown = build(&registry, &[beside, &["browser_navigate"]].concat());
        description(&shown, "browser_navigate")
    };
    assert_eq!(said(&["terminal"]), "Opens a page in the browser.");
    assert_eq!(said(&["web_extract"]), "Opens a page in the browser. For plain facts web_extract is cheaper.");
    assert_eq!(
        said(&["web_extract", "web_search"]),
        "Opens a page in the browser. For plain facts web_search is cheaper."
    );
}

#[test]
fn a_tool_that_is_disabled_or_cannot_be_used_here_is_not_spoken_of() {
    let registry = Arc::new(Registry::new());
    let search = FakeTool::new("web_search").with_spec(|spec| spec.requires_env = vec!["SEARCH_KEY".into()]);
    with(
        &registry,
        vec![Arc::new(search), Arc::new(execute_code()), Arc::new(browser_navigate()), tool("terminal", "x")],
    );
    let machine = Arc::new(FakeSurroundings::new());
    let definitions = Definitions::new(Arc::clone(&registry), Checks::new(Arc::clone(&machine) as _));
    let everything = wanted(&["all"]);
    let shown = definitions.current(&everything).unwrap();
    assert_eq!(shown_names(&shown), ["browser_navigate", "execute_code", "terminal"]);
    assert!(!text(&shown).contains("web_search"), "{}", text(&shown));
    // The moment it can be used, the others say so.
    machine.add("SEARCH_KEY");
    definitions.checks().forget();
    let shown = definitions.current(&everything).unwrap();
    assert_eq!(description(&shown, "execute_code"), "Runs Python. A script can call: terminal, web_search.");
    assert!(description(&shown, "browser_navigate").contains("web_search"));
    let off = definitions.current(&wanted(&["all", "-web_search"])).unwrap();
    assert!(!text(&off).contains("web_search"), "{}", text(&off));
}

#[test]
fn a_tool_says_its_limits_as_they_are() {
    for children in [3, 7] {
        let registry = Registry::new();
        with(&registry, vec![Arc::new(delegate_task(children))]);
        let shown = build(&registry, &["delegate_task"]);
        assert_eq!(
            description(&shown, "delegate_task"),
            format!("Hands work to up to {children} sub-agents at a time.")
        );
        let tasks = &function(&shown, "delegate_task")["parameters"]["properties"]["tasks"];
        assert_eq!(tasks["maxItems"], json!(children));
    }
}

#[test]
fn making_a_list_changes_nothing_that_the_next_list_is_made_from() {
    let registry = usual();
    let schema = json!({ "type": "object", "properties": { "z": { "type": ["string", "null"], "default": {} } } });
    let odd = Arc::new(FakeTool::new("odd").parameters(schema.clone()));
    with(&registry, vec![odd.clone(), Arc::new(execute_code())]);
    let before = text(&build(&registry, &["odd", "execute_code", "terminal"]));
    for profile in Profile::ALL {
        let resolved = Resolved { tools: names(&["odd", "execute_code"]), ..Resolved::default() };
        definitions::build(&registry.snapshot(), resolved, *profile, &Stripped::default());
    }
    assert_eq!(odd.spec().parameters, schema);
    assert_eq!(text(&build(&registry, &["odd", "execute_code", "terminal"])), before);
}

// ------------------------------------------------------------------------------------------------------- the memory

/// A memory over the usual tools and one that needs a variable.
struct Memory {
    registry: Arc<Registry>,
    machine: Arc<FakeSurroundings>,
    definitions: Definitions,
}

impl Memory {
    fn new() -> Self {
        let registry = Arc::new(usual());
        let keyed = FakeTool::new("keyed").with_spec(|spec| spec.requires_env = vec!["KEY".into()]);
        with(&registry, vec![Arc::new(keyed)]);
        let machine = Arc::new(FakeSurroundings::new());
        let definitions = Definitions::new(Arc::clone(&registry), Checks::new(Arc::clone(&machine) as _));
        Self { registry, machine, definitions }
    }

    fn current(&self, wanted: &Arc<Wanted>) -> Arc<Shown> {
        self.definitions.current(wanted).unwrap()
    }
}

#[test]
fn the_same_wish_is_shown_the_very_same_list_while_nothing_changes() {
    let memory = Memory::new();
    let all = wanted(&["all"]);
    let first = memory.current(&all);
    assert!(Arc::ptr_eq(&first, &memory.current(&all)));
    // An equal wish is the same wish, whoever has it.
    assert!(Arc::ptr_eq(&first, &memory.current(&wanted(&["all"]))));
    assert!(Arc::ptr_eq(&first, &memory.current(&Arc::new(Wanted::clone(&all)))));
    // Looking at another list in between does not disturb it.
    let other = memory.current(&wanted(&["web"]));
    assert!(!Arc::ptr_eq(&first, &other) && Arc::ptr_eq(&first, &memory.current(&all)));
}

#[test]
fn anything_else_that_is_wanted_is_another_list() {
    let memory = Memory::new();
    let all = Wanted::new(Selection::exactly(&["all"]), Profile::OpenAiChat);
    let first = memory.current(&Arc::new(all.clone()));
    let selection = all.selection.clone();
    let others = [
        Wanted { selection: Selection { disabled: vec!["web".into()], ..selection.clone() }, ..all.clone() },
        Wanted { selection: Selection { also: vec!["web".into()], ..selection.clone() }, ..all.clone() },
        Wanted { selection: Selection { toolsets: Some(Vec::new()), ..selection.clone() }, ..all.clone() },
        Wanted { selection: Selection { toolsets: None, ..selection }, ..all.clone() },
        Wanted { profile: Profile::Anthropic, ..all.clone() },
        Wanted { context: Some(8_000), ..all.clone() },
        Wanted { config: 1, ..all.clone() },
    ];
    let lists: Vec<Arc<Shown>> = others.into_iter().map(|other| memory.current(&Arc::new(other))).collect();
    for (n, list) in lists.iter().enumerate() {
        assert!(!Arc::ptr_eq(&first, list), "{n}");
        assert!(lists[..n].iter().all(|earlier| !Arc::ptr_eq(earlier, list)), "{n}");
    }
    assert!(lists[2].list.is_empty() && !lists[3].list.is_empty(), "no tools is not no wish");
    assert!(Arc::ptr_eq(&first, &memory.current(&Arc::new(all))));
}

#[test]
fn a_tool_or_a_toolset_that_comes_changes_or_goes_shows_in_the_next_list() {
    let memory = Memory::new();
    custom(&memory.registry, "mine", &["patch"], &[]);
    let mine = wanted(&["mine"]);
    let first = memory.current(&mine);
    assert_eq!(shown_names(&first), ["patch"]);
    custom(&memory.registry, "mine", &["patch"], &["web"]);
    let second = memory.current(&mine);
    assert_eq!(shown_names(&second), ["patch", "web_extract", "web_search"]);
    let plugin = offer(&memory.registry, OwnerKind::Plugin, "p", &["mail mine"]);
    assert_eq!(shown_names(&memory.current(&mine)), ["mail", "patch", "web_extract", "web_search"]);
    memory
        .registry
        .offer(&plugin, vec![Arc::new(FakeTool::new("mail").toolset("mine").describing(|_| "New.".into()))])
        .unwrap();
    assert_eq!(description(&memory.current(&mine), "mail"), "New.");
    memory.registry.withdraw(&plugin);
    let third = memory.current(&mine);
    assert_eq!(text(&third), text(&second), "what comes and goes leaves the same bytes");
    assert!(!Arc::ptr_eq(&third, &second));
    memory.registry.remove_toolset("mine");
    memory.definitions.current(&mine).unwrap_err();
    // Whoever holds a list holds what it was.
    assert_eq!(shown_names(&first), ["patch"]);
}

#[test]
fn an_answer_about_availability_that_changes_shows_in_the_next_list() {
    let memory = Memory::new();
    let keyed = wanted(&["keyed", "web"]);
    let before = memory.current(&keyed);
    assert_eq!(shown_names(&before), ["web_extract", "web_search"]);
    assert!(Arc::ptr_eq(&before, &memory.current(&keyed)));
    memory.machine.add("KEY");
    memory.definitions.checks().forget();
    let after = memory.current(&keyed);
    assert_eq!(shown_names(&after), ["keyed", "web_extract", "web_search"]);
    assert!(Arc::ptr_eq(&after, &memory.current(&keyed)));
    memory.machine.remove("KEY");
    memory.definitions.checks().forget();
    assert_eq!(text(&memory.current(&keyed)), text(&before));
}

#[test]
fn eight_lists_are_remembered_and_the_least_recently_used_goes() {
    let memory = Memory::new();
    let wishes: Vec<Arc<Wanted>> = (0..9)
        .map(|n| Arc::new(Wanted { config: n, ..Wanted::new(Selection::exactly(&["web"]), Profile::OpenAiChat) }))
        .collect();
    let first: Vec<Arc<Shown>> = wishes[..8].iter().map(|wish| memory.current(wish)).collect();
    for (wish, list) in wishes.iter().zip(&first) {
        assert!(Arc::ptr_eq(list, &memory.current(wish)), "eight fit");
    }
    // The first was used again, so it is the second that the ninth pushes out.
    memory.current(&wishes[0]);
    memory.current(&wishes[8]);
    for n in [0, 2, 3, 4, 5, 6, 7] {
        assert!(Arc::ptr_eq(&first[n], &memory.current(&wishes[n])), "{n}");
    }
    assert!(!Arc::ptr_eq(&first[1], &memory.current(&wishes[1])));
}

#[test]
fn a_list_is_shared_between_conversations_and_none_of_them_can_write_to_it() {
    let memory = Memory::new();
    let all = wanted(&["all"]);
    let mut own: Vec<Value> = memory.current(&all).list.iter().map(Definition::to_value).collect();
    // A conversation that must leave something out does so with a copy of its own.
    own[0]["function"].as_object_mut().unwrap().remove("parameters");
    let after = memory.current(&all);
    assert!(after.list.iter().all(|tool| tool.to_value()["function"]["parameters"].is_object()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(Arc::ptr_eq(&after, &memory.current(&all))));
        }
    });
}
