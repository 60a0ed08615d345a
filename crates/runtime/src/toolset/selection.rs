//! What a given agent gets: names that are wanted, names that are not, and the reason for every tool.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hermes_core::{Availability, ToolName};

use super::{CORE, Meaning, Members, UnknownToolset, Walk, is_bundle, meaning, platform, unknown};
use crate::availability::Checks;
use crate::registry::{OwnerKind, Snapshot};

/// Which tools are wanted. Names are those of toolsets or of single tools; the order of names never matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The surface whose defaults hold when `toolsets` is not given: `hermes-cli` or `cli`.
    pub platform: String,
    /// Exactly these instead of the platform's. `-NAME` takes away, and `no_mcp` everything that an MCP server offers,
    /// whatever else names it. `Some` of an empty list allows nothing.
    pub toolsets: Option<Vec<String>>,
    /// None of these, whatever else is said.
    pub disabled: Vec<String>,
    /// These besides, also if `toolsets` is empty (a worker of the task board needs the board).
    pub also: Vec<String>,
    /// Whether the tools of plugins and MCP servers are on although nobody named them. Enabling a plugin or configuring
    /// a server is a choice too, so this is the rule for a platform, and not for a list that somebody wrote for one run.
    pub with_sources: bool,
    /// A wanted name that nobody knows is a note instead of an error, for processes that must go on. An unknown name in
    /// a restriction is an error always.
    pub lenient: bool,
}

/// The outcome of a [`Selection`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The tools that are selected, registered and usable here.
    pub tools: BTreeSet<ToolName>,
    /// Every tool that was named, directly or through a set, or that is registered, and why it is in or out.
    pub verdicts: BTreeMap<String, Verdict>,
    /// What a person should know about the selection, one line each.
    pub notes: Vec<String>,
}

/// Why a tool is in or out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is in; the text is the way it came in, for example `file ← debugging`.
    On(Arc<str>),
    /// It was wanted and taken away, by this.
    Removed(String),
    /// It is wanted and cannot be used here.
    Missing {
        /// The way it came in.
        via: Arc<str>,
        /// What is not there.
        reason: String,
        /// What fixes it.
        fix: String,
    },
    /// It is wanted and no such tool is registered.
    NotRegistered(Arc<str>),
    /// It is registered and nobody asked for it.
    NotSelected,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            platform: "hermes-cli".into(),
            toolsets: None,
            disabled: Vec::new(),
            also: Vec::new(),
            with_sources: true,
            lenient: false,
        }
    }
}

impl Selection {
    /// Exactly what `names` say, and nothing of a platform.
    pub fn exactly<S: AsRef<str>>(names: &[S]) -> Self {
        let toolsets = Some(names.iter().map(|name| name.as_ref().to_owned()).collect());
        Self { toolsets, with_sources: false, ..Self::default() }
    }

    /// The tools that are on, and why. Pure: the same selection, snapshot and answers give the same result.
    pub fn resolve(&self, snapshot: &Snapshot, checks: &Checks) -> Result<Resolved, UnknownToolset> {
        let mut verdicts = BTreeMap::new();
        let mut resolved = self.each(snapshot, checks, |name, verdict| drop(verdicts.insert(name, verdict)))?;
        for name in snapshot.names() {
            if !verdicts.contains_key(name.as_str()) {
                verdicts.insert(name.to_string(), Verdict::NotSelected);
            }
        }
        resolved.verdicts = verdicts;
        Ok(resolved)
    }

    /// The same without the reasons, for whoever only wants to know which tools are on.
    pub(crate) fn tools(&self, snapshot: &Snapshot, checks: &Checks) -> Result<Resolved, UnknownToolset> {
        self.each(snapshot, checks, |_, _| {})
    }

    /// Goes through everything that is wanted; `tell` hears what became of each of it.
    fn each(
        &self,
        snapshot: &Snapshot,
        checks: &Checks,
        mut tell: impl FnMut(String, Verdict),
    ) -> Result<Resolved, UnknownToolset> {
        let (wanted, mut notes) = self.wanted(snapshot)?;
        let removed = self.removed(snapshot, &mut notes)?;
        let mut tools = BTreeSet::new();
        for (name, via) in wanted {
            let verdict = if let Some(by) = removed.get(&name) {
                Verdict::Removed(by.clone())
            } else if let Some(entry) = snapshot.get(&name) {
                match checks.of(entry) {
                    Availability::Available => {
                        tools.insert(entry.tool.spec().name.clone());
                        Verdict::On(via)
                    }
                    Availability::Missing { reason, fix } => Verdict::Missing { via, reason, fix },
                }
            } else {
                Verdict::NotRegistered(via)
            };
            tell(name, verdict);
        }
        match self.toolsets.as_deref() {
            Some([]) if self.also.is_empty() => {
                notes.push("the list of toolsets is empty, so no tool is on".to_owned());
            }
            Some(names) if !names.is_empty() && names.iter().all(|name| name.starts_with('-')) => {
                notes.push(format!(
                    "the list only takes away; to take away from what is on here, begin it with {}",
                    self.platform
                ));
            }
            _ => {}
        }
        notes.sort();
        notes.dedup();
        Ok(Resolved { tools, verdicts: BTreeMap::new(), notes })
    }

    fn wanted(&self, snapshot: &Snapshot) -> Result<(Members, Vec<String>), UnknownToolset> {
        let mut walk = Walk::new(snapshot);
        // A surface is looked up among the surfaces: `discord` is a toolset too, and a server may be called `cli`.
        let default = [platform(&self.platform).unwrap_or(&self.platform).to_owned()];
        let names = self.toolsets.as_deref().unwrap_or(&default).iter().chain(&self.also);
        let names: Vec<&str> = names.map(String::as_str).filter(|name| !name.starts_with('-')).collect();
        // Sorted, so that the way a tool came in does not depend on the order of names either.
        let sorted: BTreeSet<&str> = names.iter().copied().filter(|name| *name != "no_mcp").collect();
        let mut unknown_ones = Vec::new();
        for name in &sorted {
            if !walk.enter(looked_up(snapshot, name), None) {
                let error = unknown(snapshot, name);
                if !self.lenient {
                    return Err(error);
                }
                unknown_ones.push(format!("{error}; it contributes nothing"));
            }
        }
        if self.with_sources && self.toolsets.as_ref().is_none_or(|names| !names.is_empty()) {
            add_sources(&mut walk, snapshot, &names);
        }
        walk.notes.extend(unknown_ones);
        Ok((walk.members, walk.notes))
    }

    /// What is taken away, and by what.
    fn removed(
        &self,
        snapshot: &Snapshot,
        notes: &mut Vec<String>,
    ) -> Result<BTreeMap<String, String>, UnknownToolset> {
        let written = || self.toolsets.iter().flatten().chain(&self.also);
        let minus = written().filter_map(|name| name.strip_prefix('-'));
        let minus: BTreeSet<(&str, String)> = minus.map(|name| (name, format!("-{name}"))).collect();
        let disabled: BTreeSet<(&str, String)> =
            self.disabled.iter().map(|name| (name.as_str(), format!("disabled: {name}"))).collect();
        let mut removed = BTreeMap::new();
        for (name, by) in minus.into_iter().chain(disabled) {
            let mut walk = Walk::new(snapshot);
            let known = looked_up(snapshot, name);
            if !walk.enter(known, None) {
                return Err(unknown(snapshot, name));
            }
            // A restriction takes everything that goes by the name: whoever comes with a set that is called like a tool, a
            // server or another set does not get anything out of it.
            walk.everything_called(name, &by.as_str().into());
            let spares_core = is_bundle(known);
            let (spared, taken): (Vec<String>, Vec<String>) =
                walk.members.into_keys().partition(|tool| spares_core && CORE.contains(&tool.as_str()));
            if taken.is_empty() && !spared.is_empty() {
                notes.push(format!("\"{by}\" takes nothing away: all of it is what every platform starts from"));
            }
            for tool in taken {
                removed.entry(tool).or_insert_with(|| by.clone());
            }
            notes.append(&mut walk.notes);
        }
        if written().any(|name| name == "no_mcp") {
            for entry in snapshot.entries().filter(|entry| entry.owner.kind == OwnerKind::Mcp) {
                removed.entry(entry.tool.spec().name.to_string()).or_insert_with(|| "no_mcp".into());
            }
        }
        Ok(removed)
    }
}

/// A surface may be written by its key (`cli`) where nothing else is called that.
fn looked_up<'a>(snapshot: &Snapshot, name: &'a str) -> &'a str {
    platform(name).filter(|_| meaning(snapshot, name).is_none()).unwrap_or(name)
}

/// The tools of plugins and MCP servers that are on because they are there. Naming one server means exactly the
/// named ones (spec core §19.3). Who offered a tool decides, not what the tool says about itself: a plugin that
/// claims the toolset of a server, or a server that claims one of ours, switches on nothing but its own.
fn add_sources(walk: &mut Walk<'_>, snapshot: &Snapshot, names: &[&str]) {
    let is_a_server = |name: &&str| match meaning(snapshot, name) {
        Some(Meaning::Registered(toolset)) => snapshot.server_of(toolset).is_some(),
        _ => false,
    };
    let servers_are_chosen = names.iter().any(is_a_server);
    for entry in snapshot.entries() {
        let (spec, owner) = (entry.tool.spec(), &entry.owner);
        let is_on = match owner.kind {
            OwnerKind::BuiltIn => false,
            // A tool that joins a set of ours is on when the set is.
            OwnerKind::Plugin => matches!(meaning(snapshot, &spec.toolset), Some(Meaning::Registered(_))),
            OwnerKind::Mcp => !servers_are_chosen,
        };
        if is_on {
            walk.member(spec.name.as_str(), &format!("{} ({owner})", spec.toolset).into());
        }
    }
}
