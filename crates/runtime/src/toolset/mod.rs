//! Named sets of tools, and the algebra on them.
//!
//! A toolset lists tools, includes other toolsets, or both. It comes from the table everybody has (`table.rs`), from the
//! configuration or a running program ([`CustomToolset`]), or from tools that say they belong to it; a set of the table
//! that tools join is the union. What a given agent gets of all this is a [`Selection`].
//!
//! A restriction that cannot be read is an error, never "no restriction": an unknown toolset is refused with a
//! suggestion, an empty list allows nothing, and disabled beats enabled. A set may name tools that are not there: they
//! count from the moment they are.

mod selection;
mod table;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use hermes_core::ToolName;

pub use self::selection::{Resolved, Selection, Verdict};
use self::table::{CODING, CORE, LEGACY, NATIVE, PLATFORMS, Platform, TOOLSETS, Toolset};
use crate::names::{did_you_mean, hint, nearest};
use crate::registry::{Entry, NameNotFree, OwnerKind, Snapshot};

/// A toolset made at run time or in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomToolset {
    /// What it is for.
    pub about: String,
    /// Its own tools; they need not exist yet.
    pub tools: Vec<String>,
    /// Toolsets that are part of it; they need not exist yet.
    pub includes: Vec<String>,
}

/// A name that is no toolset, and no tool either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown toolset \"{name}\"{}", hint(.nearest.first()))]
pub struct UnknownToolset {
    /// What was written.
    pub name: String,
    /// The most similar names, nearest first.
    pub nearest: Vec<String>,
}

/// What there is to say about a toolset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Its own tools, sorted, registered or not.
    pub tools: Vec<String>,
    /// The toolsets that are part of it.
    pub includes: Vec<String>,
    /// Everything in it, sorted.
    pub resolved: Vec<String>,
    /// Something is wrong with it, for example that it includes itself.
    pub notes: Vec<String>,
}

/// Where a toolset comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The table: a set of tools.
    Table,
    /// The table: the default of a surface, or a set for a kind of work.
    Bundle,
    /// The configuration, or a running program.
    Custom,
    /// The tools of a plugin.
    Plugin,
    /// The tools of an MCP server.
    Mcp,
}

/// The members of a set, each with the way it came in, for example `file ← debugging`.
type Members = BTreeMap<String, Arc<str>>;

/// What a name stands for.
enum Meaning<'a> {
    All,
    Set(&'static Toolset),
    Platform(&'static Platform),
    Custom(&'a CustomToolset),
    /// Tools that say they belong to it, under this name.
    Registered(&'a str),
    Tool,
}

fn set_of_the_table(name: &str) -> Option<&'static Toolset> {
    TOOLSETS.iter().find(|set| set.name == name)
}

fn platform_of_the_table(name: &str) -> Option<&'static Platform> {
    PLATFORMS.iter().find(|platform| platform.name == name).or_else(|| (CODING.name == name).then_some(&CODING))
}

fn surface(name: &str) -> Option<&'static Platform> {
    PLATFORMS.iter().find(|platform| platform.name == name || platform.keys.contains(&name))
}

/// The toolset of a surface, by its name (`hermes-cli`) or its key (`cli`).
pub fn platform(name: &str) -> Option<&'static str> {
    surface(name).map(|platform| platform.name)
}

/// What the configuration calls a surface: the key of `platform_toolsets`.
pub fn platform_key(name: &str) -> Option<&'static str> {
    surface(name).map(|platform| platform.keys.first().copied().unwrap_or(platform.name))
}

/// The one surface on which a toolset works, if it is bound to one (spec core §19.2).
pub fn native_to(name: &str) -> Option<&'static str> {
    NATIVE.iter().find(|(set, _)| *set == name).map(|(_, surface)| *surface)
}

/// The toolsets of all surfaces, in the order of the table.
pub fn platforms() -> impl Iterator<Item = &'static str> {
    PLATFORMS.iter().map(|platform| platform.name)
}

/// What a toolset is called today, whatever it was called in earlier versions.
pub(crate) fn current_name(name: &str) -> &str {
    LEGACY.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new)
}

/// Whether a new toolset may have this name.
pub(crate) fn check_free(name: &str) -> Result<(), NameNotFree> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let why = if name.is_empty() || name.starts_with('-') || !name.chars().all(fits) {
        "use letters, digits, _ and -, and begin with no -"
    } else if matches!(name, "all" | "no_mcp") || LEGACY.iter().any(|(old, _)| *old == name) {
        "the name has a meaning already"
    } else if set_of_the_table(name).is_some() || platform_of_the_table(name).is_some() {
        "Hermes has one of that name"
    } else if is_tool_of_the_table(name) {
        "a tool is called that"
    } else {
        return Ok(());
    };
    Err(NameNotFree(name.to_owned(), why))
}

/// What `name` stands for, in the order in which names are looked up; a set of the table cannot be shadowed.
fn meaning<'a>(snapshot: &'a Snapshot, name: &'a str) -> Option<Meaning<'a>> {
    if matches!(name, "all" | "*") {
        return Some(Meaning::All);
    }
    let name = current_name(name);
    if let Some(set) = set_of_the_table(name) {
        return Some(Meaning::Set(set));
    }
    if let Some(platform) = platform_of_the_table(name) {
        return Some(Meaning::Platform(platform));
    }
    if let Some(custom) = snapshot.custom().get(name) {
        return Some(Meaning::Custom(custom));
    }
    if snapshot.registered_in(name).is_some() {
        return Some(Meaning::Registered(name));
    }
    // A server is known while it is connected, with or without tools.
    if snapshot.server_of(name).is_some() {
        return Some(Meaning::Registered(name));
    }
    if let Some(toolset) = snapshot.server_toolset(name) {
        return Some(Meaning::Registered(toolset));
    }
    is_tool(snapshot, name).then_some(Meaning::Tool)
}

/// Whether there is such a tool, registered or in the table.
fn is_tool(snapshot: &Snapshot, name: &str) -> bool {
    snapshot.get(name).is_some() || is_tool_of_the_table(name)
}

fn is_tool_of_the_table(name: &str) -> bool {
    CORE.contains(&name) || TOOLSETS.iter().any(|set| set.tools.contains(&name))
}

/// The tools of a platform, from its line of the table.
fn platform_tools(platform: &Platform) -> BTreeSet<&'static str> {
    let spelt_out = |names: &'static [&'static str]| {
        names.iter().flat_map(|name| set_of_the_table(name).map_or(std::slice::from_ref(name), |set| set.tools))
    };
    let mut tools: BTreeSet<&str> = platform.from.iter().copied().chain(spelt_out(platform.plus).copied()).collect();
    for tool in spelt_out(platform.minus) {
        tools.remove(tool);
    }
    tools
}

/// The names of all toolsets, sorted. The tools of an MCP server are shown under the server's name where that is free.
pub fn names(snapshot: &Snapshot) -> BTreeSet<String> {
    let table = TOOLSETS.iter().map(|set| set.name).chain(PLATFORMS.iter().map(|platform| platform.name));
    let table = table.chain([CODING.name]).map(str::to_owned);
    let custom = snapshot.custom().keys().cloned();
    let mut all: BTreeSet<String> = table.chain(custom).collect();
    let servers = snapshot.servers().filter_map(|server| snapshot.server_toolset(server));
    for toolset in snapshot.registered_toolsets().chain(servers) {
        // Only a name that means the server when it is written.
        let means_it = |server: &&str| {
            !server.starts_with('-')
                && *server != "no_mcp"
                && matches!(meaning(snapshot, server), Some(Meaning::Registered(meant)) if meant == toolset)
        };
        all.insert(snapshot.server_of(toolset).filter(means_it).unwrap_or(toolset).to_owned());
    }
    all
}

/// The names of the toolsets that were made at run time, sorted.
pub fn custom(snapshot: &Snapshot) -> Vec<String> {
    snapshot.custom().keys().cloned().collect()
}

/// Everything about the toolset `name`.
pub fn info(snapshot: &Snapshot, name: &str) -> Result<Info, UnknownToolset> {
    let Some(meaning) = meaning(snapshot, name).filter(|meaning| !matches!(meaning, Meaning::Tool)) else {
        return Err(unknown(snapshot, name));
    };
    let mut walk = Walk::new(snapshot);
    walk.enter(name, None);
    let resolved = walk.members.into_keys().collect();
    let mut notes = walk.notes;
    let own = |toolset: &str| snapshot.registered_in(toolset).into_iter().flatten().map(ToString::to_string);
    let (about, origin, tools, includes): (String, Origin, BTreeSet<String>, Vec<String>) = match meaning {
        Meaning::Set(set) => (
            set.about.into(),
            if is_bundle(name) { Origin::Bundle } else { Origin::Table },
            set.tools.iter().map(ToString::to_string).chain(own(set.name)).collect(),
            set.includes.iter().map(ToString::to_string).collect(),
        ),
        Meaning::Platform(platform) => {
            let tools = platform_tools(platform).into_iter().map(str::to_owned).chain(own(platform.name)).collect();
            (platform.about.into(), Origin::Bundle, tools, Vec::new())
        }
        Meaning::Custom(custom) => {
            // Lenient about tools that come later, and open about names that may be slips.
            for tool in custom.tools.iter().filter(|tool| !is_tool(snapshot, tool)) {
                let table = TOOLSETS.iter().flat_map(|set| set.tools).copied();
                let known = snapshot.names().map(ToolName::as_str).chain(CORE.iter().copied()).chain(table);
                let hint = did_you_mean(tool, known);
                notes.push(format!("toolset \"{name}\" names \"{tool}\", which is no tool here so far{hint}"));
            }
            let tools = custom.tools.iter().cloned().chain(own(name)).collect();
            (custom.about.clone(), Origin::Custom, tools, custom.includes.clone())
        }
        Meaning::Registered(toolset) => {
            let owner =
                snapshot.registered_in(toolset).into_iter().flatten().find_map(|tool| snapshot.get(tool.as_str()));
            let owner = owner.map(|entry| &entry.owner);
            let (origin, about) = match (snapshot.server_of(toolset), owner) {
                (Some(server), _) => (Origin::Mcp, format!("the tools of MCP server {server}")),
                (None, Some(owner)) if owner.kind == OwnerKind::Mcp => (Origin::Mcp, format!("the tools of {owner}")),
                (None, Some(owner)) if owner.kind == OwnerKind::Plugin => {
                    (Origin::Plugin, format!("the tools of {owner}"))
                }
                _ => (Origin::Table, String::new()),
            };
            (about, origin, own(toolset).collect(), Vec::new())
        }
        Meaning::All | Meaning::Tool => ("everything there is".into(), Origin::Bundle, BTreeSet::new(), Vec::new()),
    };
    Ok(Info { name: name.into(), about, origin, tools: tools.into_iter().collect(), includes, resolved, notes })
}

/// Whether switching the set off leaves what every platform starts from alone: a surface's bundle, a posture, and any
/// toolset that is named like a surface (spec core §5.2).
fn is_bundle(name: &str) -> bool {
    name.starts_with("hermes-") || name == CODING.name
}

fn unknown(snapshot: &Snapshot, name: &str) -> UnknownToolset {
    let mut known = names(snapshot);
    known.extend(snapshot.names().map(ToString::to_string));
    let nearest = nearest(name, known.iter().map(String::as_str));
    UnknownToolset { name: name.to_owned(), nearest: nearest.into_iter().map(str::to_owned).collect() }
}

/// A walk through a set and what it includes, each set once, without recursion: how deep a configuration nests is not
/// ours to decide.
struct Walk<'a> {
    snapshot: &'a Snapshot,
    members: Members,
    /// Whether a set is done; the ones that are not are on the way from the first set to this one.
    seen: HashMap<String, bool>,
    notes: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, members: Members::new(), seen: HashMap::new(), notes: Vec::new() }
    }

    /// Adds the members of `first` and of everything in it. Answers whether there is such a set or tool. `label` is said
    /// instead of the name.
    fn enter(&mut self, first: &str, label: Option<&str>) -> bool {
        let label: Arc<str> = label.unwrap_or(first).into();
        let Some(includes) = self.add(first, &label) else { return false };
        let mut way = vec![(first.to_owned(), label, includes)];
        while let Some((name, label, includes)) = way.last_mut() {
            let Some(next) = includes.pop() else {
                let name = std::mem::take(name);
                self.seen.insert(name, true);
                way.pop();
                continue;
            };
            match self.seen.get(&next) {
                Some(true) => {}
                Some(false) => self.notes.push(format!("toolset \"{next}\" includes itself, through \"{name}\"")),
                None => {
                    let label: Arc<str> = format!("{next} ← {label}").into();
                    match self.add(&next, &label) {
                        Some(includes) => way.push((next, label, includes)),
                        None => self.notes.push(format!("toolset \"{name}\" includes \"{next}\", which is not there")),
                    }
                }
            }
        }
        true
    }

    /// Adds the direct members of a set, and answers what it includes, last first.
    fn add(&mut self, name: &str, label: &Arc<str>) -> Option<Vec<String>> {
        let snapshot = self.snapshot;
        let meaning = meaning(snapshot, name)?;
        self.seen.insert(name.to_owned(), false);
        let registered_as = |toolset| snapshot.registered_in(toolset).into_iter().flatten().map(ToolName::as_str);
        let reversed = |names: &[&str]| names.iter().rev().map(ToString::to_string).collect();
        match meaning {
            Meaning::All => {
                // Somebody may have called its toolset so.
                self.add_tools(["all", "*"].into_iter().flat_map(registered_as), label);
                let sets = names(snapshot).into_iter().filter(|name| !matches!(name.as_str(), "all" | "*"));
                return Some(sets.rev().collect());
            }
            Meaning::Tool => self.member(name, label),
            Meaning::Set(set) => {
                self.add_tools(set.tools.iter().copied().chain(registered_as(set.name)), label);
                return Some(reversed(set.includes));
            }
            Meaning::Platform(platform) => {
                self.add_tools(platform_tools(platform).into_iter().chain(registered_as(platform.name)), label);
            }
            Meaning::Custom(custom) => {
                self.add_tools(custom.tools.iter().map(String::as_str).chain(registered_as(name)), label);
                return Some(custom.includes.iter().rev().cloned().collect());
            }
            Meaning::Registered(toolset) => self.add_tools(registered_as(toolset), label),
        }
        Some(Vec::new())
    }

    /// Adds every tool that the name could mean, not only what it is looked up as: those that say so, those of the server of
    /// that name, those of a set of one's own, and the tool itself. A set of the table is meant by its name and nothing
    /// else: a server that is called like one goes by `mcp-NAME`.
    fn everything_called(&mut self, name: &str, label: &Arc<str>) {
        let snapshot = self.snapshot;
        if is_tool(snapshot, name) {
            self.member(name, label);
        }
        if set_of_the_table(name).is_some() || platform_of_the_table(name).is_some() {
            return;
        }
        if let Some(custom) = snapshot.custom().get(name) {
            self.add_tools(custom.tools.iter().map(String::as_str), label);
            for included in &custom.includes {
                self.enter(included, Some(label));
            }
        }
        let server = |entry: &&Arc<Entry>| entry.owner.kind == OwnerKind::Mcp && entry.owner.name == name;
        let of_server = snapshot.entries().filter(server).map(|entry| entry.tool.spec().name.as_str());
        let registered = snapshot.registered_in(name).into_iter().flatten().map(ToolName::as_str);
        self.add_tools(of_server.chain(registered), label);
    }

    fn add_tools<'t>(&mut self, tools: impl Iterator<Item = &'t str>, label: &Arc<str>) {
        for tool in tools {
            self.member(tool, label);
        }
    }

    fn member(&mut self, tool: &str, label: &Arc<str>) {
        // The first way in is the one that is told.
        if !self.members.contains_key(tool) {
            self.members.insert(tool.to_owned(), Arc::clone(label));
        }
    }
}
