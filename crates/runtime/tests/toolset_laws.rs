//! The laws of toolset algebra, for any sets of any shape: with cycles, with names that are not there, with tools of any
//! owner that say anything about themselves.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod selecting;

use std::collections::{BTreeMap, BTreeSet};

use hermes_runtime::{OwnerKind, Registry, Resolved, Selection, Verdict, toolset};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use selecting::{checks, custom, offer};

const SETS: &[&str] = &["s0", "s1", "s2", "s3", "s4"];
const TOOLS: &[&str] = &["t0", "t1", "t2", "t3", "t4", "t5", "t6", "web_search", "terminal"];
/// What a tool may say that it belongs to.
const CLAIMS: &[&str] = &["s0", "s1", "web", "file", "own", "mcp-m", "mcp-n", "hermes-telegram"];
const OWNERS: &[(OwnerKind, &str)] =
    &[(OwnerKind::BuiltIn, "built-in"), (OwnerKind::Plugin, "p"), (OwnerKind::Mcp, "m"), (OwnerKind::Mcp, "n")];

/// Everything that a selection is made from.
#[derive(Clone, Debug)]
struct World {
    sets: BTreeMap<&'static str, (Vec<&'static str>, Vec<&'static str>)>,
    /// Tool, owner, claimed toolset.
    tools: Vec<(&'static str, usize, &'static str)>,
}

fn worlds() -> impl Strategy<Value = World> {
    let includes = [SETS, &["web", "debugging", "file_tools", "nowhere", "t3", "m", "mcp-n"]].concat();
    let set = (subsequence(TOOLS, 0..4), subsequence(includes, 0..4));
    let sets = prop::collection::vec(set, SETS.len());
    let tools = prop::collection::vec((any::<bool>(), 0..OWNERS.len(), select(CLAIMS)), TOOLS.len());
    (sets, tools).prop_map(|(sets, tools)| World {
        sets: SETS.iter().copied().zip(sets).collect(),
        tools: TOOLS
            .iter()
            .zip(tools)
            .filter(|(_, (is_there, ..))| *is_there)
            .map(|(t, (_, o, c))| (*t, o, c))
            .collect(),
    })
}

/// Names that all exist in each world.
fn names() -> impl Strategy<Value = Vec<&'static str>> {
    let known = ["web", "debugging", "hermes-telegram", "hermes-webhook", "coding", "web_tools", "all", "m", "mcp-n"];
    let known = [SETS, &known, &["terminal", "read_file", "web_search"]].concat();
    prop::collection::vec(select(known), 0..5)
}

impl World {
    fn registry(&self) -> Registry {
        let registry = Registry::new();
        for (index, (kind, owner)) in OWNERS.iter().enumerate() {
            let lines = self.tools.iter().filter(|tool| tool.1 == index);
            let lines: Vec<String> = lines.map(|(name, _, set)| format!("{name} {set}")).collect();
            offer(&registry, *kind, owner, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        }
        for (name, (tools, includes)) in &self.sets {
            custom(&registry, name, tools, includes);
        }
        registry
    }

    /// What a custom set holds, found in another way: sets grow until none grows any more.
    fn members(&self, registry: &Registry, name: &str) -> BTreeSet<String> {
        let snapshot = registry.snapshot();
        let joined = |set: &str| {
            let claim = move |tool: &&(&'static str, usize, &'static str)| tool.2 == set;
            self.tools.iter().filter(claim).map(|tool| tool.0.to_owned()).collect::<BTreeSet<_>>()
        };
        let mut grown: BTreeMap<&str, BTreeSet<String>> = SETS.iter().map(|set| (*set, joined(set))).collect();
        for (set, (tools, _)) in &self.sets {
            grown.get_mut(set).unwrap().extend(tools.iter().map(ToString::to_string));
        }
        loop {
            let before = grown.clone();
            for (set, (_, includes)) in &self.sets {
                for include in includes {
                    let more = match *include {
                        "nowhere" => BTreeSet::new(),
                        "t3" => {
                            if snapshot.get("t3").is_some() {
                                ["t3".to_owned()].into()
                            } else {
                                BTreeSet::new()
                            }
                        }
                        "m" => joined("mcp-m"),
                        "mcp-n" => joined("mcp-n"),
                        set if SETS.contains(&set) => before[set].clone(),
                        ours => toolset::info(&snapshot, ours).unwrap().resolved.into_iter().collect(),
                    };
                    grown.get_mut(set).unwrap().extend(more);
                }
            }
            if grown == before {
                return grown.remove(name).unwrap();
            }
        }
    }
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn resolve(registry: &Registry, selection: &Selection) -> Resolved {
    selection.resolve(&registry.snapshot(), &checks()).unwrap()
}

fn on(registry: &Registry, selection: &Selection) -> BTreeSet<String> {
    resolve(registry, selection).tools.iter().map(ToString::to_string).collect()
}

/// The tools that a restriction takes away at most: all that its names stand for, also where a set, a server and a claim
/// of a tool share a name.
fn meant(registry: &Registry, names: &[&str]) -> BTreeSet<String> {
    let snapshot = registry.snapshot();
    let of = |name: &&str| toolset::info(&snapshot, name).map_or_else(|_| list(&[name]), |info| info.resolved);
    let mut all: BTreeSet<String> = names.iter().flat_map(of).collect();
    for name in names {
        // What a registry without tools knows.
        let is_ours = toolset::names(&Registry::new().snapshot()).contains(*name);
        for entry in snapshot.entries().filter(|_| !is_ours) {
            let (spec, owner) = (entry.tool.spec(), &entry.owner);
            if spec.toolset == *name || (owner.kind == OwnerKind::Mcp && owner.name == *name) {
                all.insert(spec.name.to_string());
            }
        }
    }
    all
}

proptest! {
    /// Cycles end, diamonds count once, includes of includes are in, and nothing else is.
    #[test]
    fn a_set_holds_exactly_what_can_be_reached_from_it(world in worlds()) {
        let registry = world.registry();
        for set in SETS {
            let info = toolset::info(&registry.snapshot(), set).unwrap();
            let expected = world.members(&registry, set);
            prop_assert_eq!(&info.resolved, &expected.iter().cloned().collect::<Vec<_>>(), "sorted, each once");
            let there = |name: &String| registry.snapshot().get(name).is_some();
            prop_assert_eq!(on(&registry, &Selection::exactly(&[set])), expected.into_iter().filter(there).collect());
        }
    }

    #[test]
    fn the_order_of_names_and_their_repetition_do_not_matter(
        world in worlds(),
        (wanted, mixed) in names().prop_flat_map(|names| (Just(names.clone()), Just(names).prop_shuffle())),
        (disabled, shuffled) in names().prop_flat_map(|names| (Just(names.clone()), Just(names).prop_shuffle())),
        with_sources: bool,
    ) {
        let registry = world.registry();
        let first = Selection { toolsets: Some(list(&wanted)), disabled: list(&disabled), with_sources, ..Selection::default() };
        let twice = [mixed.clone(), mixed].concat();
        let second = Selection { toolsets: Some(list(&twice)), disabled: list(&shuffled), ..first.clone() };
        // All of it: the tools, the reasons and the notes; and the same again from the same things.
        prop_assert_eq!(resolve(&registry, &first), resolve(&registry, &second));
        prop_assert_eq!(resolve(&registry, &first), resolve(&registry, &first));
        // Who was registered first does not show either.
        let mut reversed = world.clone();
        reversed.tools.reverse();
        prop_assert_eq!(resolve(&registry, &first), resolve(&reversed.registry(), &first));
    }

    #[test]
    fn what_was_resolved_resolves_to_itself(world in worlds(), wanted in names(), disabled in names()) {
        let registry = world.registry();
        let first = Selection { disabled: list(&disabled), ..Selection::exactly(&wanted) };
        let tools = on(&registry, &first);
        let again: Vec<&str> = tools.iter().map(String::as_str).collect();
        custom(&registry, "again", &again, &[]);
        prop_assert_eq!(&on(&registry, &Selection::exactly(&["again"])), &tools);
        prop_assert_eq!(on(&registry, &Selection { toolsets: Some(list(&["again"])), ..first }), tools);
    }

    #[test]
    fn a_list_gives_the_union_of_what_its_names_give(world in worlds(), one in names(), two in names(), disabled in names()) {
        let registry = world.registry();
        let without = |wanted: &[&str]| Selection { disabled: list(&disabled), ..Selection::exactly(wanted) };
        let mut union = on(&registry, &without(&one));
        union.extend(on(&registry, &without(&two)));
        prop_assert_eq!(&on(&registry, &without(&[one.clone(), two.clone()].concat())), &union);
        prop_assert_eq!(&on(&registry, &without(&[two.clone(), one.clone()].concat())), &union);
        // A set that includes the names is as good as the names.
        let all: Vec<&str> = [one, two].concat();
        custom(&registry, "both", &[], &all);
        prop_assert_eq!(on(&registry, &without(&["both"])), union);
    }

    /// Whatever else is said: for a platform, in a list, besides, or because a source is there.
    #[test]
    fn disabled_always_wins(
        world in worlds(),
        wanted in prop::option::of(names()),
        also in names(),
        disabled in names(),
        with_sources: bool,
        as_minus: bool,
    ) {
        let registry = world.registry();
        let mut open = Selection { with_sources, also: list(&also), ..Selection::default() };
        open.toolsets = wanted.map(|names| list(&names));
        let mut closed = open.clone();
        if as_minus {
            closed.also.extend(disabled.iter().map(|name| format!("-{name}")));
        } else {
            closed.disabled = list(&disabled);
        }
        let (before, after) = (on(&registry, &open), on(&registry, &closed));
        prop_assert!(after.is_subset(&before), "a restriction adds nothing");
        let is_bundle = |name: &&&str| name.starts_with("hermes-") || **name == "coding";
        let whole: Vec<&str> = disabled.iter().filter(|name| !is_bundle(name)).copied().collect();
        prop_assert!(after.is_disjoint(&meant(&registry, &whole)));
        // Nothing goes but what was meant; of a bundle, what is in CORE stays.
        let bundles: Vec<&str> = disabled.iter().filter(is_bundle).copied().collect();
        let core: BTreeSet<String> = meant(&registry, &["hermes-cli"]);
        let mut meant_at_all = meant(&registry, &whole);
        meant_at_all.extend(meant(&registry, &bundles).difference(&core).cloned());
        prop_assert_eq!(&after, &before.difference(&meant_at_all).cloned().collect());
        let verdicts = resolve(&registry, &closed).verdicts;
        for gone in before.difference(&after) {
            prop_assert!(matches!(verdicts[gone], Verdict::Removed(_)), "{gone}: {:?}", verdicts[gone]);
        }
    }

    #[test]
    fn adding_an_include_or_a_tool_never_removes(
        world in worlds(),
        set in select(SETS),
        include in select(&["s0", "s1", "s2", "s3", "s4", "web", "nowhere", "m", "all"][..]),
        more in select(TOOLS),
        wanted in names(),
        disabled in subsequence(&["web", "file", "terminal"][..], 0..3),
        with_sources: bool,
    ) {
        let registry = world.registry();
        let selection = Selection { toolsets: Some(list(&wanted)), disabled: list(&disabled), with_sources, ..Selection::default() };
        let before = on(&registry, &selection);
        let (tools, includes) = &world.sets[set];
        custom(&registry, set, tools, &[includes.as_slice(), &[include]].concat());
        let with_include = on(&registry, &selection);
        prop_assert!(before.is_subset(&with_include));
        custom(&registry, set, &[tools.as_slice(), &[more]].concat(), &[includes.as_slice(), &[include]].concat());
        prop_assert!(with_include.is_subset(&on(&registry, &selection)));
    }

    #[test]
    fn all_is_everything_that_is_registered_and_every_other_list_is_part_of_it(world in worlds(), wanted in names()) {
        let registry = world.registry();
        let registered: BTreeSet<String> = registry.snapshot().names().map(ToString::to_string).collect();
        prop_assert_eq!(&on(&registry, &Selection::exactly(&["all"])), &registered);
        prop_assert_eq!(&on(&registry, &Selection::exactly(&["*"])), &registered);
        let stored = Selection { toolsets: Some(list(&wanted)), ..Selection::default() };
        prop_assert!(on(&registry, &stored).is_subset(&registered));
    }

    #[test]
    fn no_mcp_leaves_no_tool_of_a_server_and_takes_no_other(world in worlds(), wanted in names(), with_sources: bool) {
        let registry = world.registry();
        let open = Selection { toolsets: Some(list(&[wanted.as_slice(), &["web"]].concat())), with_sources, ..Selection::default() };
        let mut closed = open.clone();
        closed.toolsets.as_mut().unwrap().push("no_mcp".into());
        let of_a_server = |name: &String| registry.snapshot().get(name).unwrap().owner.kind == OwnerKind::Mcp;
        let expected = on(&registry, &open).into_iter().filter(|name| !of_a_server(name)).collect();
        prop_assert_eq!(on(&registry, &closed), expected);
    }

    #[test]
    fn an_unknown_name_changes_nothing_but_the_notes_where_a_process_must_go_on(world in worlds(), wanted in names()) {
        let registry = world.registry();
        let known = Selection::exactly(&[wanted.as_slice(), &["web"]].concat());
        let mut with_unknown = known.clone();
        with_unknown.toolsets.as_mut().unwrap().push("nowhere".into());
        prop_assert_eq!(with_unknown.resolve(&registry.snapshot(), &checks()).unwrap_err().name, "nowhere");
        let lenient = resolve(&registry, &Selection { lenient: true, ..with_unknown });
        prop_assert_eq!(&lenient.verdicts, &resolve(&registry, &known).verdicts);
        prop_assert!(lenient.notes.iter().any(|note| note.contains("\"nowhere\"") && note.contains("contributes nothing")));
    }
}
