//! Who exists: changes are whole or not at all, conflicts are settled by owners, and readers never wait.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::sync::Arc;

use hermes_core::{Tool, ToolSource};
use hermes_runtime::registry::OwnerFacts;
use hermes_runtime::{Covered, CustomToolset, OfferRefused, Owner, OwnerKind, Registry, Snapshot, toolset};
use hermes_testkit::FakeTool;
use proptest::prelude::*;

fn tool(name: &str, toolset: &str) -> Arc<dyn Tool> {
    Arc::new(FakeTool::new(name).toolset(toolset))
}

fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.names().map(ToString::to_string).collect()
}

fn owner_of(registry: &Registry, tool: &str) -> String {
    registry.snapshot().get(tool).unwrap().owner.to_string()
}

struct Source(Vec<Arc<dyn Tool>>);

impl ToolSource for Source {
    fn name(&self) -> &'static str {
        "built-in"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.clone()
    }
}

/// A registry with a built-in `terminal` in the toolset `terminal`.
fn with_terminal() -> (Registry, Owner) {
    let registry = Registry::new();
    let owner = registry.built_in(&Source(vec![tool("terminal", "terminal")])).unwrap();
    (registry, owner)
}

// -------------------------------------------------------------------------------------------------------- generation

#[test]
fn the_generation_moves_exactly_once_a_change_and_never_otherwise() {
    let (registry, _built_in) = with_terminal();
    let generation = || registry.snapshot().generation();
    let mut expected = generation();
    let mut moved = |what: &str| {
        expected += 1;
        assert_eq!(generation(), expected, "{what}");
    };
    let server = registry.owner(OwnerKind::Mcp, "server", false);
    registry.offer(&server, vec![tool("a", "x"), tool("b", "x"), tool("c", "x")]).unwrap();
    moved("three tools at once");
    registry.offer(&server, vec![tool("a", "x")]).unwrap();
    moved("a replacement");
    registry.define_toolset("mine", CustomToolset::default()).unwrap();
    moved("a toolset");
    // The same once more is no change.
    registry.define_toolset("mine", CustomToolset::default()).unwrap();
    let sets =
        |names: &[&str]| -> Vec<_> { names.iter().map(|n| ((*n).to_owned(), CustomToolset::default())).collect() };
    registry.set_toolsets(sets(&["one", "two"])).unwrap();
    moved("all toolsets at once");
    registry.set_toolsets(sets(&["two", "one"])).unwrap();
    registry.set_toolsets(sets(&["three", "web"])).unwrap_err();
    assert_eq!(toolset::custom(&registry.snapshot()), ["one", "two"], "one name that is not free, and nothing changes");
    registry.remove_toolset("one");
    moved("a toolset that goes");
    registry.withdraw(&server);
    moved("an owner that goes");
    let still = generation();
    registry.withdraw(&server);
    registry.remove_toolset("mine");
    let plugin = registry.owner(OwnerKind::Plugin, "p", false);
    registry.offer(&plugin, vec![tool("terminal", "x")]).unwrap_err();
    registry.define_toolset("web", CustomToolset::default()).unwrap_err();
    assert_eq!(generation(), still, "what changes nothing is no change");
}

#[test]
fn a_snapshot_does_not_change_under_its_reader() {
    let registry = Registry::new();
    let one = registry.owner(OwnerKind::Plugin, "one", false);
    registry.offer(&one, vec![tool("a", "x")]).unwrap();
    let (before, kept) = (registry.snapshot(), registry.snapshot().get("a").unwrap().clone());
    registry.offer(&one, vec![tool("b", "x")]).unwrap();
    assert_eq!((before.generation(), names(&before)), (1, vec!["a".to_owned()]));
    assert_eq!(kept.tool.spec().name.as_str(), "a");
    assert_eq!(names(&registry.snapshot()), ["b"]);
    assert!(before.get("A").is_none(), "a registered name is exact");
}

#[test]
fn changes_from_many_threads_are_all_there_while_readers_read() {
    let registry = Registry::new();
    std::thread::scope(|scope| {
        for n in 0..16 {
            let registry = &registry;
            scope.spawn(move || {
                let owner = registry.owner(OwnerKind::Mcp, &format!("source {n}"), false);
                registry.offer(&owner, vec![tool(&format!("t{n:02}"), "x")]).unwrap();
            });
            scope.spawn(move || {
                let mut last = 0;
                for _ in 0..200 {
                    let now = registry.snapshot();
                    assert!(now.generation() >= last && names(&now).len() as u64 == now.generation());
                    last = now.generation();
                }
            });
        }
    });
    assert_eq!((registry.snapshot().generation(), names(&registry.snapshot()).len()), (16, 16));
}

// --------------------------------------------------------------------------------------------------------- conflicts

#[test]
fn an_owner_that_offers_again_replaces_its_own_tools_and_nobody_elses() {
    let registry = Registry::new();
    let other = registry.owner(OwnerKind::Plugin, "other", false);
    registry.offer(&other, vec![tool("z", "x")]).unwrap();
    let server = registry.owner(OwnerKind::Mcp, "server", false);
    registry.offer(&server, vec![tool("a", "x"), tool("b", "x")]).unwrap();
    assert_eq!(registry.offer(&server, vec![tool("b", "new"), tool("c", "x")]), Ok(Vec::new()));
    let now = registry.snapshot();
    assert_eq!(names(&now), ["b", "c", "z"]);
    assert_eq!(now.get("b").unwrap().tool.spec().toolset, "new");
    registry.offer(&server, Vec::new()).unwrap();
    assert_eq!(names(&registry.snapshot()), ["z"]);
}

#[test]
fn between_plugins_and_servers_the_later_wins_and_the_warning_names_both() {
    for (first, second) in [
        (OwnerKind::Mcp, OwnerKind::Mcp),
        (OwnerKind::Plugin, OwnerKind::Plugin),
        (OwnerKind::Plugin, OwnerKind::Mcp),
        (OwnerKind::Mcp, OwnerKind::Plugin),
    ] {
        let registry = Registry::new();
        let (one, two) = (registry.owner(first, "one", false), registry.owner(second, "two", false));
        assert_eq!(registry.offer(&one, vec![tool("a", "x")]), Ok(Vec::new()));
        let covered = registry.offer(&two, vec![tool("a", "y"), tool("b", "y")]).unwrap();
        let [Covered { name, winner, loser }] = covered.as_slice() else { panic!("{covered:?}") };
        assert_eq!((name.as_str(), winner.name.as_str(), loser.name.as_str()), ("a", "two", "one"));
        let said = covered[0].to_string();
        assert!(said.contains("one") && said.contains("two") && said.contains("`a`"), "{said}");
        assert!(owner_of(&registry, "a").ends_with("two"));

        // A routine refresh of the loser does not turn the conflict around, and is told of it again.
        assert_eq!(registry.offer(&one, vec![tool("a", "x")]).unwrap().len(), 1);
        assert!(owner_of(&registry, "a").ends_with("two"));
        // When the winner goes, what it covered is there again.
        registry.withdraw(&two);
        assert!(owner_of(&registry, "a").ends_with("one"));
    }
}

#[test]
fn a_built_in_is_only_replaced_by_an_owner_with_a_grant_whatever_toolset_it_claims() {
    for kind in [OwnerKind::Plugin, OwnerKind::Mcp] {
        // Also the toolset of the built-in itself is no key.
        for toolset in ["terminal", "mine", "mcp-x"] {
            let (registry, _built_in) = with_terminal();
            let stranger = registry.owner(kind, "stranger", false);
            let refused =
                registry.offer(&stranger, vec![tool("other", toolset), tool("terminal", toolset)]).unwrap_err();
            let OfferRefused::BuiltIn { name, newcomer } = &refused else { panic!("{refused:?}") };
            assert_eq!((name.as_str(), newcomer.name.as_str()), ("terminal", "stranger"));
            assert!(refused.to_string().contains("plugins.entries.stranger.allow_tool_override"), "{refused}");
            assert_eq!(names(&registry.snapshot()), ["terminal"], "all of an offer or nothing of it");
            assert_eq!(owner_of(&registry, "terminal"), "built-in");

            let granted = registry.owner(kind, "granted", true);
            let covered = registry.offer(&granted, vec![tool("terminal", toolset)]).unwrap();
            assert_eq!((covered.len(), covered[0].winner.name.as_str()), (1, "granted"));
            registry.withdraw(&granted);
            assert_eq!(owner_of(&registry, "terminal"), "built-in");
        }
    }
}

#[test]
fn a_built_in_that_comes_late_takes_its_name_back_unless_the_holder_has_a_grant() {
    for granted in [false, true] {
        let registry = Registry::new();
        let plugin = registry.owner(OwnerKind::Plugin, "early", granted);
        registry.offer(&plugin, vec![tool("terminal", "x")]).unwrap();
        registry.built_in(&Source(vec![tool("terminal", "terminal")])).unwrap();
        assert_eq!(owner_of(&registry, "terminal"), if granted { "plugin early" } else { "built-in" });
    }
}

#[test]
fn three_owners_of_one_name_settle_it_the_same_way_in_whatever_order_they_come() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let registry = Registry::new();
        let owners = [
            registry.owner(OwnerKind::BuiltIn, "built-in", false),
            registry.owner(OwnerKind::Plugin, "granted", true),
            registry.owner(OwnerKind::Mcp, "ungranted", false),
        ];
        for who in order {
            let _ = registry.offer(&owners[who], vec![tool("x", "t")]);
        }
        assert_eq!(owner_of(&registry, "x"), "plugin granted", "{order:?}");
        registry.withdraw(&owners[1]);
        assert_eq!(owner_of(&registry, "x"), "built-in", "{order:?}");
    }
}

#[test]
fn an_owner_is_a_handle_and_not_a_name() {
    let (registry, _built_in) = with_terminal();
    // Somebody who calls itself like the built-ins is still somebody else, and so is a namesake.
    let impostor = registry.owner(OwnerKind::Plugin, "built-in", false);
    assert!(registry.offer(&impostor, vec![tool("terminal", "terminal")]).is_err());
    let (one, namesake) = (registry.owner(OwnerKind::Mcp, "s", false), registry.owner(OwnerKind::Mcp, "s", false));
    registry.offer(&one, vec![tool("a", "x")]).unwrap();
    registry.offer(&namesake, vec![tool("b", "x")]).unwrap();
    registry.withdraw(&namesake);
    assert_eq!(names(&registry.snapshot()), ["a", "terminal"]);
    // An owner of another registry owns nothing here.
    let stranger = Registry::new().owner(OwnerKind::BuiltIn, "built-in", true);
    registry.withdraw(&stranger);
    assert_eq!(names(&registry.snapshot()), ["a", "terminal"]);
}

#[test]
fn a_source_that_offers_one_name_twice_is_refused() {
    let registry = Registry::new();
    let twin = registry.owner(OwnerKind::Plugin, "twin", true);
    let refused = registry.offer(&twin, vec![tool("a", "x"), tool("a", "y")]).unwrap_err();
    assert!(matches!(refused, OfferRefused::Twice { .. }), "{refused:?}");
    assert_eq!((registry.snapshot().generation(), names(&registry.snapshot()).len()), (0, 0));
}

proptest! {
    /// Whoever comes and goes in whatever order: every name that is offered has a holder, the holder offers it, and a
    /// built-in has lost its name only to somebody with a grant.
    #[test]
    fn every_offered_name_has_exactly_one_rightful_holder(
        moves in prop::collection::vec((0..4_usize, prop::collection::btree_set(0..5_usize, 0..4)), 1..12),
    ) {
        let registry = Registry::new();
        let owners = [
            registry.owner(OwnerKind::BuiltIn, "built-in", true),
            registry.owner(OwnerKind::Plugin, "plain", false),
            registry.owner(OwnerKind::Mcp, "server", false),
            registry.owner(OwnerKind::Plugin, "granted", true),
        ];
        let mut offered: [std::collections::BTreeSet<usize>; 4] = Default::default();
        for (who, what) in moves {
            let tools = what.iter().map(|n| tool(&format!("t{n}"), "x")).collect();
            let before = registry.snapshot().generation();
            match registry.offer(&owners[who], tools) {
                Ok(_) => {
                    offered[who] = what;
                    prop_assert_eq!(registry.snapshot().generation(), before + 1);
                }
                Err(OfferRefused::BuiltIn { .. }) => {
                    prop_assert!(who == 1 || who == 2);
                    prop_assert!(!what.is_disjoint(&offered[0]));
                    prop_assert_eq!(registry.snapshot().generation(), before);
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
            let snapshot = registry.snapshot();
            for n in 0..5 {
                let holder = snapshot.get(&format!("t{n}")).map(|entry| OwnerFacts::clone(&entry.owner));
                let offerers: Vec<usize> = (0..4).filter(|who| offered[*who].contains(&n)).collect();
                let index = holder.as_ref().map(|h| ["built-in", "plain", "server", "granted"].iter().position(|name| *name == h.name).unwrap());
                prop_assert_eq!(index.is_none(), offerers.is_empty());
                if let Some(index) = index {
                    prop_assert!(offerers.contains(&index));
                    if offerers.contains(&0) {
                        prop_assert!(index == 0 || index == 3);
                        prop_assert!(index == 3 || !offerers.contains(&3));
                    }
                }
            }
        }
    }
}
