//! Named sets of tools and what a selection makes of them: a restriction is never read as "no restriction", and every
//! tool has a reason for being in or out. What plugins and MCP servers bring is in `toolset_sources.rs`, the laws that
//! hold for all sets are in `toolset_laws.rs`.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod selecting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hermes_core::{Availability, ToolName};
use hermes_runtime::toolset::{self, Origin};
use hermes_runtime::{CustomToolset, OwnerKind, Registry, Selection, UnknownToolset, Verdict};
use hermes_testkit::FakeTool;
use selecting::*;
use serde_json::Value;

// --------------------------------------------------------------------------------------------------------- the table

fn texts(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn reference() -> Value {
    serde_json::from_str(include_str!("../../../cases/toolsets.json")).unwrap()
}

#[test]
fn the_table_is_the_originals_plus_calculate_in_what_starts_from_core_and_the_set_math() {
    let (reference, registry) = (reference(), Registry::new());
    let sets = reference["toolsets"].as_object().unwrap();
    let mut names: BTreeSet<String> = sets.keys().cloned().collect();
    assert_eq!(names.len(), 57, "the copy in cases/ is whole");
    for (name, set) in sets {
        let mut tools = texts(&set["tools"]);
        if set["core"] == true {
            tools.extend(texts(&reference["core"]));
        }
        // These three are written out in the original, and CORE minus something here.
        if set["core"] == true || ["coding", "hermes-acp", "hermes-api-server"].contains(&name.as_str()) {
            tools.insert("calculate".into());
        }
        let ours = info(&registry, name);
        assert_eq!(ours.tools.iter().cloned().collect::<BTreeSet<_>>(), tools, "{name}");
        assert_eq!(ours.includes.iter().cloned().collect::<BTreeSet<_>>(), texts(&set["includes"]), "{name}");
        assert!(!ours.about.is_empty() && ours.notes.is_empty(), "{name}");
        let is_bundle = name.starts_with("hermes-") || name == "coding";
        assert_eq!(ours.origin, if is_bundle { Origin::Bundle } else { Origin::Table }, "{name}");
    }
    names.insert("math".into());
    assert_eq!(toolset::names(&registry.snapshot()), names);
    assert_eq!(info(&registry, "math").tools, ["calculate"]);
}

#[test]
fn a_composite_holds_what_it_includes_and_a_set_holds_the_tools_that_join_it() {
    let (reference, registry) = (reference(), Registry::new());
    let sets = reference["toolsets"].as_object().unwrap();
    for (name, set) in sets.iter().filter(|(_, set)| set["includes"].is_array()) {
        let mut expected = texts(&set["tools"]);
        for part in texts(&set["includes"]) {
            expected.extend(info(&registry, &part).resolved);
        }
        assert_eq!(info(&registry, name).resolved.into_iter().collect::<BTreeSet<_>>(), expected, "{name}");
    }
    assert_eq!(
        info(&registry, "debugging").resolved,
        ["patch", "process", "read_file", "search_files", "terminal", "web_extract", "web_search", "write_file"]
    );
    for (name, set) in sets.iter().filter(|(_, set)| set["joined"].is_array()) {
        for joined in texts(&set["joined"]) {
            assert!(!info(&registry, name).tools.contains(&joined), "{name}");
            let owner = offer(&registry, OwnerKind::BuiltIn, "built-in", &[&format!("{joined} {name}")]);
            assert!(info(&registry, name).resolved.contains(&joined), "{name}");
            registry.withdraw(&owner);
        }
    }
}

#[test]
fn a_platform_goes_by_its_key_and_by_the_name_of_its_toolset() {
    let keys: BTreeMap<String, String> = serde_json::from_value(reference()["platforms"].clone()).unwrap();
    for (key, name) in &keys {
        assert_eq!(toolset::platform(key), Some(name.as_str()), "{key}");
        assert_eq!(toolset::platform(name), Some(name.as_str()));
        // Two keys may share a toolset; what is stored for it has one of them.
        assert_eq!(keys[toolset::platform_key(key).unwrap()], *name);
    }
    assert!(toolset::platforms().all(|name| toolset::platform(name) == Some(name)));
    assert_eq!((toolset::platform("irc"), toolset::platform_key("web")), (None, None));
}

#[test]
fn the_default_of_a_surface_is_its_bundle_also_where_a_toolset_or_a_server_has_its_key_for_a_name() {
    let registry = usual();
    offer(&registry, OwnerKind::Mcp, "cli", &["mcp__cli__a mcp-cli"]);
    for (platform, more) in [("discord", &["discord", "discord_admin"][..]), ("cli", &[]), ("hermes-cli", &[])] {
        let selection = Selection { platform: platform.into(), with_sources: false, ..Selection::default() };
        let mut expected: Vec<&str> = USUAL_CORE.iter().chain(more).copied().collect();
        expected.sort_unstable();
        assert_eq!(on(&registry, &selection), expected, "{platform}");
    }
    // In a list `discord` is the toolset, as it always was, and the other keys are as good as their toolsets.
    assert_eq!(on(&registry, &exactly(&["discord"])), ["discord"]);
    assert_eq!(on(&registry, &exactly(&["telegram"])), USUAL_CORE);
}

#[test]
fn names_of_earlier_versions_mean_todays_sets_and_never_less_than_they_did() {
    let registry = Registry::new();
    for (old, tools) in reference()["legacy"].as_object().unwrap() {
        let today = info(&registry, old).resolved;
        assert!(texts(tools).iter().all(|tool| today.contains(tool)), "{old}");
        assert!(!toolset::names(&registry.snapshot()).contains(old), "{old} is understood, and not shown");
        registry.define_toolset(old, CustomToolset::default()).unwrap_err();
    }
    let registry = usual();
    assert_eq!(on(&registry, &exactly(&["file_tools"])), FILE);
    assert_eq!(on(&registry, &without(exactly(&["debugging"]), &["file_tools", "web_tools"])), ["process", "terminal"]);
    // A plugin that writes the old name joins the set of today.
    offer(&registry, OwnerKind::Plugin, "old", &["search_more web_tools"]);
    assert_eq!(on(&registry, &exactly(&["web"])), ["search_more", "web_extract", "web_search"]);
    assert!(on(&registry, &exactly(&["all"])).contains(&"search_more".to_owned()));
}

// -------------------------------------------------------------------------------------------------- what is selected

#[test]
fn without_a_list_the_platform_decides_and_a_list_stands_in_its_place() {
    let registry = usual();
    assert_eq!(on(&registry, &Selection::default()), USUAL_CORE);
    assert_eq!(on(&registry, &stored(&["x_search"])), ["x_search"]);
    let webhook = Selection { platform: "webhook".into(), ..Selection::default() };
    assert_eq!(on(&registry, &webhook), ["web_extract", "web_search"]);
    for everything in ["all", "*"] {
        let all: Vec<String> = registry.snapshot().names().map(ToString::to_string).collect();
        assert_eq!(on(&registry, &exactly(&[everything])), all);
        assert_eq!(info(&registry, everything).origin, Origin::Bundle);
    }
}

#[test]
fn an_empty_list_allows_nothing_and_says_so() {
    let registry = usual();
    offer(&registry, OwnerKind::Plugin, "p", &["mail post"]);
    offer(&registry, OwnerKind::Mcp, "s", &["mcp__s__a mcp-s"]);
    for selection in [exactly(&[]), stored(&[]), Selection { lenient: true, ..stored(&[]) }] {
        let resolved = resolve(&registry, &selection);
        assert!(resolved.tools.is_empty(), "{:?}", resolved.tools);
        assert!(resolved.notes.iter().any(|note| note.contains("empty")), "{:?}", resolved.notes);
        assert!(resolved.verdicts.values().all(|verdict| *verdict == Verdict::NotSelected));
    }
}

#[test]
fn a_worker_of_the_board_gets_the_board_also_with_an_empty_list_unless_it_is_disabled() {
    let registry = usual();
    offer(&registry, OwnerKind::BuiltIn, "board", &["kanban_show kanban", "kanban_list kanban"]);
    let worker = |selection: Selection| Selection { also: strings(&["kanban"]), ..selection };
    assert_eq!(on(&registry, &worker(exactly(&[]))), ["kanban_list", "kanban_show"]);
    assert_eq!(on(&registry, &worker(stored(&["web"]))), ["kanban_list", "kanban_show", "web_extract", "web_search"]);
    assert_eq!(on(&registry, &worker(exactly(&["kanban"]))), ["kanban_list", "kanban_show"]);
    assert!(on(&registry, &without(worker(exactly(&[])), &["kanban"])).is_empty());
    assert_eq!(on(&registry, &worker(exactly(&["-kanban_list"]))), ["kanban_show"]);
    // What is added besides can take away too, and is not forgotten for standing there.
    let also = Selection { also: strings(&["-file"]), ..exactly(&["file", "web"]) };
    assert_eq!(on(&registry, &also), ["web_extract", "web_search"]);
}

#[test]
fn an_entry_with_a_minus_takes_away_from_the_list_and_adds_nothing() {
    let registry = usual();
    assert_eq!(on(&registry, &exactly(&["-write_file", "file", "-patch"])), ["read_file", "search_files"]);
    assert_eq!(on(&registry, &exactly(&["hermes-cli", "-terminal", "-file"])), ["web_extract", "web_search"]);
    assert_eq!(on(&registry, &exactly(&["-web", "web"])), [] as [&str; 0]);
    assert_eq!(on(&registry, &exactly(&["-web"])), [] as [&str; 0]);
    assert_eq!(verdict(&registry, &exactly(&["file", "-patch"]), "patch"), Verdict::Removed("-patch".into()));
}

#[test]
fn a_single_tool_is_an_entry_like_any_other_and_a_toolset_of_the_same_name_comes_first() {
    let registry = usual();
    assert_eq!(on(&registry, &exactly(&["read_file", "web_search"])), ["read_file", "web_search"]);
    assert_eq!(on(&registry, &exactly(&["terminal"])), ["process", "terminal"]);
    assert_eq!(on(&registry, &without(exactly(&["file"]), &["patch"])), ["read_file", "search_files", "write_file"]);
    // A tool that everybody knows may be missing, and that is no unknown name.
    let missing = verdict(&registry, &exactly(&["todo"]), "todo");
    assert_eq!(missing, Verdict::NotRegistered("todo".into()));
    toolset::info(&registry.snapshot(), "read_file").unwrap_err();
}

#[test]
fn disabled_beats_enabled_however_either_is_written() {
    let registry = usual();
    assert_eq!(on(&registry, &without(exactly(&["file", "web"]), &["file"])), ["web_extract", "web_search"]);
    assert_eq!(on(&registry, &without(exactly(&["patch", "web"]), &["debugging"])), [] as [&str; 0]);
    for everything in ["all", "*"] {
        assert!(on(&registry, &without(exactly(&["*"]), &[everything])).is_empty());
    }
    let default = without(Selection::default(), &["terminal", "web"]);
    assert_eq!(on(&registry, &default), FILE);
}

#[test]
fn a_bundle_or_a_posture_that_is_off_leaves_what_every_platform_starts_from() {
    let registry = usual();
    let both = ["discord", "discord_admin"];
    let on_discord = exactly(&["hermes-discord"]);
    for bundle in ["hermes-discord", "hermes-gateway"] {
        assert_eq!(on(&registry, &without(on_discord.clone(), &[bundle])), USUAL_CORE, "{bundle}");
    }
    for nothing in ["hermes-cli", "cli", "hermes-webhook", "coding", "hermes-acp"] {
        let resolved = resolve(&registry, &without(on_discord.clone(), &[nothing]));
        let names: Vec<&str> = resolved.tools.iter().map(ToolName::as_str).collect();
        let expected: BTreeSet<&str> = USUAL_CORE.into_iter().chain(both).collect();
        assert_eq!(names, expected.into_iter().collect::<Vec<_>>(), "{nothing}");
        // A restriction without an effect is not kept from whoever wrote it.
        assert!(resolved.notes.iter().any(|note| note.contains(nothing) && note.contains("nothing")), "{nothing}");
    }
    // `-NAME` subtracts by the same rule.
    assert_eq!(on(&registry, &exactly(&["hermes-discord", "-hermes-discord"])), USUAL_CORE);
    // A set for a purpose, and a set that merely includes a bundle, go as a whole.
    custom(&registry, "mine", &[], &["hermes-discord"]);
    assert!(on(&registry, &without(on_discord, &["mine"])).is_empty());
}

// ---------------------------------------------------------------------------------------------------- unknown names

#[test]
fn an_unknown_name_is_refused_with_the_nearest_one_wherever_it_is_written() {
    let registry = usual();
    let also = Selection { also: strings(&["terminol"]), ..exactly(&["file"]) };
    for selection in [
        exactly(&["file", "terminol"]),
        exactly(&["file", "-terminol"]),
        without(exactly(&["file"]), &["terminol"]),
        also,
    ] {
        let error = refused(&registry, &selection);
        assert_eq!((error.name.as_str(), error.nearest[0].as_str()), ("terminol", "terminal"));
        assert_eq!(error.to_string(), r#"unknown toolset "terminol"; did you mean "terminal"?"#);
    }
    let nothing_like_it = refused(&registry, &exactly(&["qqqq"]));
    assert_eq!(nothing_like_it, UnknownToolset { name: "qqqq".into(), nearest: Vec::new() });
    assert_eq!(nothing_like_it.to_string(), r#"unknown toolset "qqqq""#);
    // An empty name, as a stray comma leaves it, is no name; neither is one that differs in case, or a minus too many.
    for name in ["", " ", "File", "--file", "-", "no_mcp "] {
        assert_eq!(refused(&registry, &exactly(&["file", name])).name, name.strip_prefix('-').unwrap_or(name));
    }
    assert_eq!(refused(&registry, &without(exactly(&["file"]), &["-web"])).name, "-web");
    let platform = Selection { platform: "hermes-clo".into(), ..Selection::default() };
    assert_eq!(refused(&registry, &platform).nearest[0], "hermes-cli");
    assert_eq!(toolset::info(&registry.snapshot(), "terminol").unwrap_err().nearest[0], "terminal");
    // Tools, and what was made at run time, are offered as well.
    custom(&registry, "research", &[], &[]);
    assert_eq!(refused(&registry, &exactly(&["reserch"])).nearest[0], "research");
    assert_eq!(refused(&registry, &exactly(&["serch_files"])).nearest[0], "search_files");
}

#[test]
fn where_a_process_must_go_on_an_unknown_name_is_a_note_and_contributes_nothing() {
    let registry = usual();
    let lenient = |selection: Selection| Selection { lenient: true, ..selection };
    let resolved = resolve(&registry, &lenient(exactly(&["web", "terminol", "qqqq"])));
    assert_eq!(resolved.tools.len(), 2);
    assert_eq!(
        resolved.notes,
        [
            r#"unknown toolset "qqqq"; it contributes nothing"#,
            r#"unknown toolset "terminol"; did you mean "terminal"?; it contributes nothing"#,
        ]
    );
    // Nothing but mistakes is nothing, and not everything.
    assert!(on(&registry, &lenient(stored(&["terminol"]))).is_empty());
    let platform = Selection { platform: "hermes-clo".into(), ..Selection::default() };
    assert!(on(&registry, &lenient(platform)).is_empty());
    // A restriction that cannot be read stops the process in any case.
    for selection in [without(exactly(&["web"]), &["terminol"]), exactly(&["web", "-terminol"])] {
        assert_eq!(refused(&registry, &lenient(selection)).name, "terminol");
    }
}

// --------------------------------------------------------------------------------------------------- custom toolsets

#[test]
fn a_cycle_ends_is_told_and_is_no_wider_than_its_members() {
    let registry = usual();
    custom(&registry, "one", &["read_file"], &["two"]);
    custom(&registry, "two", &["patch"], &["three"]);
    custom(&registry, "three", &[], &["one", "three"]);
    for start in ["one", "two", "three"] {
        let resolved = resolve(&registry, &exactly(&[start]));
        let names: Vec<&str> = resolved.tools.iter().map(ToolName::as_str).collect();
        assert_eq!(names, ["patch", "read_file"], "{start}");
        assert!(resolved.notes.iter().any(|note| note.contains("includes itself")), "{:?}", resolved.notes);
        assert_eq!(info(&registry, start).resolved, ["patch", "read_file"]);
        assert!(info(&registry, start).notes.iter().any(|note| note.contains("includes itself")));
        // The same cycle as a restriction takes all of it away, and is told as well.
        let off = resolve(&registry, &without(exactly(&["file"]), &[start]));
        assert_eq!(off.tools.len(), 2);
        assert!(off.notes.iter().any(|note| note.contains("includes itself")));
    }
    custom(&registry, "everything", &[], &["all"]);
    assert_eq!(on(&registry, &exactly(&["everything"])), on(&registry, &exactly(&["all"])));
}

#[test]
fn a_diamond_is_no_cycle_and_counts_once() {
    let registry = usual();
    custom(&registry, "top", &[], &["left", "right"]);
    custom(&registry, "left", &["terminal"], &["file", "bottom"]);
    custom(&registry, "right", &[], &["bottom", "file"]);
    custom(&registry, "bottom", &["web_search"], &[]);
    let resolved = resolve(&registry, &exactly(&["top"]));
    let expected = ["patch", "read_file", "search_files", "terminal", "web_search", "write_file"];
    assert_eq!(resolved.tools.iter().map(ToolName::as_str).collect::<Vec<_>>(), expected);
    assert!(resolved.notes.is_empty(), "{:?}", resolved.notes);
}

#[test]
fn how_deep_sets_nest_does_not_matter() {
    let registry = usual();
    let deep = 2_000;
    for n in 0..deep {
        custom(&registry, &format!("s{n}"), &[], &[&format!("s{}", n + 1)]);
    }
    custom(&registry, &format!("s{deep}"), &["patch"], &[]);
    assert_eq!(on(&registry, &exactly(&["s0"])), ["patch"]);
}

#[test]
fn a_set_may_name_tools_and_sets_that_come_later_and_what_is_not_there_is_told() {
    let registry = usual();
    custom(&registry, "mine", &["later", "patch"], &["later_set", "web"]);
    let before = resolve(&registry, &exactly(&["mine"]));
    assert_eq!(on(&registry, &exactly(&["mine"])), ["patch", "web_extract", "web_search"]);
    assert_eq!(before.verdicts["later"], Verdict::NotRegistered("mine".into()));
    assert_eq!(before.notes, [r#"toolset "mine" includes "later_set", which is not there"#]);
    offer(&registry, OwnerKind::Plugin, "p", &["later elsewhere"]);
    custom(&registry, "later_set", &["x_search"], &[]);
    let after = resolve(&registry, &exactly(&["mine"]));
    assert_eq!(on(&registry, &exactly(&["mine"])), ["later", "patch", "web_extract", "web_search", "x_search"]);
    assert!(after.notes.is_empty());
    // An include may be a single tool, and a name of earlier versions.
    custom(&registry, "old", &[], &["file_tools", "terminal"]);
    assert_eq!(on(&registry, &exactly(&["old"])).len(), FILE.len() + 2);
}

#[test]
fn a_toolset_that_is_made_replaced_or_forgotten_counts_from_that_moment() {
    let registry = usual();
    assert_eq!(refused(&registry, &exactly(&["mine"])).name, "mine");
    let before = registry.snapshot();
    custom(&registry, "mine", &["patch"], &[]);
    assert_ne!(registry.snapshot().generation(), before.generation());
    assert_eq!(on(&registry, &exactly(&["mine"])), ["patch"]);
    assert_eq!(toolset::custom(&registry.snapshot()), ["mine"]);
    custom(&registry, "mine", &["terminal"], &[]);
    assert_eq!(on(&registry, &exactly(&["mine"])), ["terminal"]);
    let mine = info(&registry, "mine");
    assert_eq!((mine.origin, mine.tools, mine.name.as_str()), (Origin::Custom, strings(&["terminal"]), "mine"));
    registry.remove_toolset("mine");
    assert_eq!(refused(&registry, &exactly(&["mine"])).name, "mine");
    // A tool may join a set that somebody made.
    custom(&registry, "mine", &["patch"], &[]);
    offer(&registry, OwnerKind::Plugin, "p", &["mail mine"]);
    assert_eq!(on(&registry, &exactly(&["mine"])), ["mail", "patch"]);
    assert_eq!(info(&registry, "mine").tools, ["mail", "patch"]);
}

#[test]
fn a_toolset_cannot_take_a_name_that_has_a_meaning() {
    let registry = Registry::new();
    for name in
        ["web", "hermes-cli", "coding", "math", "all", "*", "no_mcp", "web_tools", "-x", "", "a b", "a:b", "a,b"]
    {
        let error = registry.define_toolset(name, CustomToolset::default()).unwrap_err();
        assert_eq!(error.0, name);
        assert!(error.to_string().starts_with(&format!("a toolset cannot be called \"{name}\": ")), "{error}");
    }
    for name in ["mine", "my-set", "my.set_2", "für-mich"] {
        registry.define_toolset(name, CustomToolset::default()).unwrap();
        assert!(on(&registry, &exactly(&[name])).is_empty());
    }
}

// --------------------------------------------------------------------------------------------------------- the reasons

#[test]
fn every_tool_has_the_reason_why_it_is_in_or_out() {
    let registry = usual();
    let missing = Availability::missing("chromium not found", "apt install chromium");
    let browser = FakeTool::new("browser_navigate").toolset("browser").with_availability(missing);
    let owner = registry.owner(OwnerKind::BuiltIn, "browser", false);
    registry.offer(&owner, vec![Arc::new(browser)]).unwrap();
    custom(&registry, "work", &["browser_navigate"], &["debugging"]);
    let resolved = resolve(&registry, &without(exactly(&["work", "todo", "-patch"]), &["process"]));
    let of = |tool: &str| resolved.verdicts[tool].clone();
    assert_eq!(of("terminal"), Verdict::On("debugging ← work".into()));
    assert_eq!(of("read_file"), Verdict::On("file ← debugging ← work".into()));
    // Of several ways the first one by the alphabet is told, in whatever order they were written.
    for both in [["debugging", "web"], ["web", "debugging"]] {
        assert_eq!(verdict(&registry, &exactly(&both), "web_search"), Verdict::On("web ← debugging".into()));
    }
    assert_eq!(of("patch"), Verdict::Removed("-patch".into()));
    assert_eq!(of("process"), Verdict::Removed("disabled: process".into()));
    assert_eq!(of("todo"), Verdict::NotRegistered("todo".into()));
    assert_eq!(of("discord"), Verdict::NotSelected);
    let (reason, fix) = ("chromium not found".into(), "apt install chromium".into());
    assert_eq!(of("browser_navigate"), Verdict::Missing { via: "work".into(), reason, fix });
    // Every registered tool has one, and what is on is what has the reason for it.
    assert!(registry.snapshot().names().all(|name| resolved.verdicts.contains_key(name.as_str())));
    let reasons = resolved.verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::On(_)));
    let reasons: Vec<&String> = reasons.map(|(name, _)| name).collect();
    assert_eq!(reasons, resolved.tools.iter().map(ToolName::as_str).collect::<Vec<_>>());
}

#[test]
fn a_tool_that_is_taken_away_is_not_asked_whether_it_can_be_used() {
    let registry = usual();
    let broken = FakeTool::new("vision_analyze").toolset("vision");
    let broken = broken.with_check(hermes_core::Check::quick("costly", || panic!("asked although it is off")));
    let owner = registry.owner(OwnerKind::BuiltIn, "vision", false);
    registry.offer(&owner, vec![Arc::new(broken)]).unwrap();
    let off = verdict(&registry, &without(exactly(&["vision"]), &["vision"]), "vision_analyze");
    assert_eq!(off, Verdict::Removed("disabled: vision".into()));
    assert_eq!(verdict(&registry, &exactly(&["web"]), "vision_analyze"), Verdict::NotSelected);
}
