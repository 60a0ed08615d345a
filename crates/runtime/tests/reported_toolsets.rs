//! Lists of tools that went wrong in the field, one test for each row of `cases/reports.jsonl` about toolsets and the
//! sets of plugins. The rows about configuration files are tested where files are read, in the crate `hermes`.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod selecting;

use std::collections::BTreeSet;
use std::sync::Arc;

use hermes_core::{CancellationToken, Definition, RawArguments, Tool, ToolCall, ToolName};
use hermes_runtime::toolset;
use hermes_runtime::{
    ApprovalMode, Checks, Definitions, Dispatcher, OwnerKind, PlainJudge, Profile, Registry, Scope, Selection, Silent,
    Status, Task, Verdict, Wanted,
};
use hermes_testkit::{FakeEnvironment, FakeSurroundings, FakeTool};
use selecting::*;
use serde_json::Value;

const ROWS: &str = include_str!("../../../cases/reports.jsonl");

/// Rows with a test here.
const TESTED: &[&str] = &[
    "08-toolsets-config-02",
    "08-toolsets-config-03",
    "08-toolsets-config-04",
    "08-toolsets-config-06",
    "08-toolsets-config-12",
    "08-toolsets-config-17",
    "08-toolsets-config-18",
    "08-toolsets-config-21",
    "21-plugins-hooks-07",
    "21-plugins-hooks-08",
    "21-plugins-hooks-09",
];
/// Rows about files, environment and front ends, which have a test among those of the command line.
const IN_THE_CLI: &[&str] = &[
    "08-toolsets-config-09",
    "08-toolsets-config-10",
    "08-toolsets-config-13",
    "08-toolsets-config-14",
    "08-toolsets-config-16",
    "08-toolsets-config-20",
];

#[test]
fn no_row_is_forgotten() {
    let ids = ROWS.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned());
    // The other rows about plugins are about hooks, see `reported_turns.rs`.
    let ours = |id: &String| id.starts_with("08-") || TESTED.contains(&id.as_str());
    let ids: BTreeSet<String> = ids.filter(ours).collect();
    let known: BTreeSet<String> = TESTED.iter().chain(IN_THE_CLI).map(ToString::to_string).collect();
    assert_eq!(ids, known);
}

fn shown(registry: &Arc<Registry>, selection: Selection) -> Vec<Value> {
    let definitions = Definitions::new(Arc::clone(registry), checks());
    definitions
        .current(&Arc::new(Wanted::new(selection, Profile::OpenAiChat)))
        .unwrap()
        .list
        .iter()
        .map(Definition::to_value)
        .collect()
}

// 08-toolsets-config-02
#[test]
fn toolsets_02_an_old_name_still_works_an_unknown_one_is_loud_and_no_tools_at_all_takes_an_empty_list() {
    let registry = usual();
    assert_eq!(on(&registry, &stored(&["file_tools"])), FILE);
    let refused = refused(&registry, &stored(&["old_core_name"]));
    assert!(refused.to_string().contains("\"old_core_name\""), "{refused}");
    // Where the process must go on, it says what it goes on without.
    let lenient = resolve(&registry, &Selection { lenient: true, ..stored(&["old_core_name"]) });
    assert!(lenient.tools.is_empty());
    assert!(lenient.notes.iter().any(|note| note.contains("old_core_name")), "{:?}", lenient.notes);
    assert!(on(&registry, &stored(&[])).is_empty());
}

// 08-toolsets-config-03
#[test]
fn toolsets_03_a_bundle_that_is_off_takes_only_what_no_platform_starts_from() {
    let registry = usual();
    offer(&registry, OwnerKind::BuiltIn, "chats", &["yb_send_dm yuanbao", "discord_more hermes-discord"]);
    let both = ["hermes-discord", "hermes-yuanbao"];
    let mut expected: Vec<&str> = USUAL_CORE.into_iter().chain(["discord", "discord_admin", "discord_more"]).collect();
    expected.sort_unstable();
    assert_eq!(on(&registry, &without(exactly(&both), &["hermes-yuanbao"])), expected);
    // Which is off does not depend on which is on.
    assert_eq!(on(&registry, &without(exactly(&["hermes-yuanbao"]), &["hermes-yuanbao"])), USUAL_CORE);
}

// 08-toolsets-config-04
#[test]
fn toolsets_04_after_a_reload_the_tool_with_the_new_key_is_in_the_next_list() {
    let registry = Arc::new(Registry::new());
    let search = FakeTool::new("web_search").toolset("web").with_spec(|spec| spec.requires_env = vec!["KEY".into()]);
    let owner = registry.owner(OwnerKind::BuiltIn, "built-in", false);
    registry.offer(&owner, vec![Arc::new(search) as Arc<dyn Tool>]).unwrap();
    let machine = Arc::new(FakeSurroundings::new());
    let definitions = Definitions::new(Arc::clone(&registry), Checks::new(Arc::clone(&machine) as _));
    let wanted = Arc::new(Wanted::new(exactly(&["web"]), Profile::OpenAiChat));
    assert!(definitions.current(&wanted).unwrap().list.is_empty());
    machine.add("KEY");
    let before = definitions.checks().epoch();
    definitions.checks().forget();
    assert_ne!(definitions.checks().epoch(), before);
    assert_eq!(definitions.current(&wanted).unwrap().list.len(), 1);
}

// 08-toolsets-config-06
#[test]
fn toolsets_06_sixty_tools_in_twenty_orders_are_the_same_bytes() {
    let tools: Vec<String> = (0..60).map(|n| format!("t{n:02} mcp-s{}", n % 4)).collect();
    let list = |turn: usize| {
        let registry = Arc::new(Registry::new());
        // The servers come in another order each time, and so do the tools of each.
        for server in (0..4).map(|n| (n + turn) % 4) {
            let mut own: Vec<&str> =
                tools.iter().map(String::as_str).filter(|t| t.ends_with(&format!("s{server}"))).collect();
            own.rotate_left(turn % 15);
            offer(&registry, OwnerKind::Mcp, &format!("s{server}"), &own);
        }
        serde_json::to_string(&shown(&registry, stored(&["web"]))).unwrap()
    };
    let first = list(0);
    assert!(first.contains("t00") && first.contains("t59"));
    assert!((1..20).all(|turn| list(turn) == first));
}

// 08-toolsets-config-12
#[test]
fn toolsets_12_a_cycle_is_reported_and_never_wider_than_what_was_asked() {
    let registry = usual();
    custom(&registry, "safe_only", &["read_file"], &["a"]);
    custom(&registry, "a", &["web_search"], &["safe_only"]);
    let resolved = resolve(&registry, &stored(&["safe_only"]));
    assert_eq!(resolved.tools.iter().map(ToolName::as_str).collect::<Vec<_>>(), ["read_file", "web_search"]);
    assert_eq!(resolved.notes, [r#"toolset "safe_only" includes itself, through "a""#]);
}

// 08-toolsets-config-17
#[tokio::test]
async fn toolsets_17_what_is_shown_and_what_can_be_called_is_one_resolution_for_every_surface() {
    let registry = Arc::new(usual());
    let definitions = Definitions::new(Arc::clone(&registry), checks());
    let dispatcher = Dispatcher::new(Arc::clone(&registry), Arc::new(PlainJudge));
    let task = Task::new(Arc::new(FakeEnvironment::new()) as _);
    let cancel = CancellationToken::new();
    for platform in toolset::platforms() {
        let selection = Selection { platform: platform.into(), ..without(Selection::default(), &["terminal"]) };
        let shown = definitions.current(&Arc::new(Wanted::new(selection.clone(), Profile::OpenAiChat))).unwrap();
        assert_eq!(shown.tools, resolve(&registry, &selection).tools, "{platform}");
        assert!(!shown.tools.contains("terminal") && shown.tools.contains("web_search"), "{platform}");
        let scope = Scope {
            task: &task,
            visible: &shown.tools,
            approve: ApprovalMode::All,
            cancel: &cancel,
            observer: &Silent,
        };
        for (name, status) in [("terminal", Status::OutOfScope), ("web_search", Status::Ok)] {
            let call = ToolCall { id: "c".into(), name: name.into(), arguments: RawArguments::Text("{}".into()) };
            assert_eq!(dispatcher.call(&call, &scope).await.status, status, "{platform}: {name}");
        }
    }
}

// 08-toolsets-config-18
#[test]
fn toolsets_18_no_list_is_the_default_and_an_empty_one_is_none_by_intent_and_said() {
    let registry = usual();
    let absent = resolve(&registry, &Selection::default());
    assert_eq!((absent.tools.len(), absent.notes), (USUAL_CORE.len(), Vec::new()));
    let empty = resolve(&registry, &stored(&[]));
    assert!(empty.tools.is_empty());
    assert_eq!(empty.notes, ["the list of toolsets is empty, so no tool is on"]);
}

// 08-toolsets-config-21
#[test]
fn toolsets_21_the_listing_and_the_request_cannot_differ() {
    let registry = Arc::new(usual());
    custom(&registry, "debug", &["terminal"], &["web", "file"]);
    let selection = without(Selection::default(), &["debug"]);
    let resolved = resolve(&registry, &selection);
    let request: Vec<String> =
        shown(&registry, selection).iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect();
    let listed = |(name, verdict): (&String, &Verdict)| matches!(verdict, Verdict::On(_)).then(|| name.clone());
    assert_eq!(resolved.verdicts.iter().filter_map(listed).collect::<Vec<_>>(), request);
    assert_eq!(request, ["process"]);
    // All that the set holds, by what `info` says as well.
    for tool in toolset::info(&registry.snapshot(), "debug").unwrap().resolved {
        assert_eq!(resolved.verdicts[&tool], Verdict::Removed("disabled: debug".into()), "{tool}");
    }
}

// 21-plugins-hooks-07
#[test]
fn plugins_07_a_plugins_set_is_known_from_the_moment_the_plugin_is_there_and_complained_about_once_before() {
    let registry = usual();
    let lenient = Selection { lenient: true, ..stored(&["web", "my_plugin_set"]) };
    let before = resolve(&registry, &lenient);
    assert_eq!(before.notes, [r#"unknown toolset "my_plugin_set"; it contributes nothing"#]);
    offer(&registry, OwnerKind::Plugin, "p", &["mail my_plugin_set"]);
    let after = resolve(&registry, &lenient);
    assert_eq!(after.notes, Vec::<String>::new());
    assert_eq!(on(&registry, &stored(&["my_plugin_set"])), ["mail"]);
}

// 21-plugins-hooks-08
#[test]
fn plugins_08_enabling_a_plugin_enables_its_set_unless_it_is_disabled_and_the_reason_is_told() {
    let registry = usual();
    offer(&registry, OwnerKind::Plugin, "p", &["mail foo"]);
    let of = |selection: &Selection| verdict(&registry, selection, "mail");
    assert_eq!(of(&Selection::default()), Verdict::On("foo (plugin p)".into()));
    assert_eq!(of(&without(Selection::default(), &["foo"])), Verdict::Removed("disabled: foo".into()));
    assert_eq!(of(&stored(&["web", "-foo"])), Verdict::Removed("-foo".into()));
    assert_eq!(of(&exactly(&["web"])), Verdict::NotSelected);
}

// 21-plugins-hooks-09
#[test]
fn plugins_09_a_tool_that_joins_a_set_of_ours_is_in_it() {
    let registry = usual();
    offer(&registry, OwnerKind::Plugin, "p", &["w2 web"]);
    assert_eq!(on(&registry, &exactly(&["web"])), ["w2", "web_extract", "web_search"]);
    assert_eq!(toolset::info(&registry.snapshot(), "web").unwrap().tools, ["w2", "web_extract", "web_search"]);
    assert_eq!(on(&registry, &exactly(&["safe"])), ["w2", "web_extract", "web_search"]);
}
