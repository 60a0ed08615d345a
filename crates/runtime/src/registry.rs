//! Who exists: every tool of every source, under its name.
//!
//! Readers take a [`Snapshot`], which never changes, without waiting for anybody; writers build the next one. The
//! generation number moves exactly once a change, so that anything computed from a snapshot can be remembered under it.
//!
//! The tricky idea: what is stored is *who offered what*, not who won. The winner of a name is computed from the offers,
//! so a conflict is settled the same way whoever came first, and a tool that was covered by another comes back when the
//! other goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{fmt, ptr};

use arc_swap::ArcSwap;
use hermes_core::{Definition, Tool, ToolName, ToolSource};

use crate::profile::Profile;
use crate::toolset::CustomToolset;

/// The tools of this process. Cheap to share behind an [`Arc`].
#[derive(Debug, Default)]
pub struct Registry {
    snapshot: ArcSwap<Snapshot>,
    offers: Mutex<Offers>,
}

/// Who offers tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    /// This program.
    BuiltIn,
    /// A plugin.
    Plugin,
    /// An MCP server.
    Mcp,
}

/// The right to offer tools under a name. Only [`Registry::owner`] makes one, it cannot be copied, and nothing that a
/// tool says about itself stands in for it.
#[derive(Debug)]
pub struct Owner {
    id: u64,
    facts: Arc<OwnerFacts>,
}

/// What is known about an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerFacts {
    /// What it is.
    pub kind: OwnerKind,
    /// What it is called in the configuration, for example `github`.
    pub name: String,
    /// Whether the operator lets it replace built-in tools (`plugins.entries.<name>.allow_tool_override`).
    pub may_replace_built_ins: bool,
}

impl fmt::Display for OwnerFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            OwnerKind::BuiltIn => f.write_str("built-in"),
            OwnerKind::Plugin => write!(f, "plugin {}", self.name),
            OwnerKind::Mcp => write!(f, "MCP server {}", self.name),
        }
    }
}

/// All tools at one moment, sorted by name, with the toolsets that were made at run time.
#[derive(Debug, Default)]
pub struct Snapshot {
    generation: u64,
    entries: BTreeMap<ToolName, Arc<Entry>>,
    toolsets: BTreeMap<String, BTreeSet<ToolName>>,
    servers: BTreeMap<String, String>,
    custom: BTreeMap<String, Arc<CustomToolset>>,
}

/// One registered tool.
pub struct Entry {
    /// The tool itself.
    pub tool: Arc<dyn Tool>,
    /// The source that offered it.
    pub owner: Arc<OwnerFacts>,
    validator: OnceLock<Result<jsonschema::Validator, String>>,
    definitions: [OnceLock<Definition>; Profile::ALL.len()],
}

/// Why an offer was refused as a whole.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OfferRefused {
    /// A built-in tool has the name.
    #[error(
        "{newcomer} offers a tool `{name}`, which is built in; nothing of it was registered (plugins.entries.{}.allow_tool_override: true allows it)",
        newcomer.name
    )]
    BuiltIn {
        /// The name in question.
        name: ToolName,
        /// Who wanted it.
        newcomer: OwnerFacts,
    },
    /// The same source offered one name twice.
    #[error("{newcomer} offers two tools named `{name}`; nothing of it was registered")]
    Twice {
        /// The name in question.
        name: ToolName,
        /// Who did.
        newcomer: OwnerFacts,
    },
}

/// A tool that another one covers, for as long as the other is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    /// The name in question.
    pub name: ToolName,
    /// Whose tool is used.
    pub winner: Arc<OwnerFacts>,
    /// Whose tool is not.
    pub loser: Arc<OwnerFacts>,
}

impl fmt::Display for Covered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "two tools are named `{}`: that of {} is used, that of {} is not", self.name, self.winner, self.loser)
    }
}

/// Why a toolset was not made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a toolset cannot be called \"{0}\": {1}")]
pub struct NameNotFree(pub String, pub &'static str);

#[derive(Debug, Default)]
struct Offers {
    by_owner: BTreeMap<u64, Offer>,
    custom: BTreeMap<String, Arc<CustomToolset>>,
    next_turn: u64,
}

#[derive(Debug)]
struct Offer {
    facts: Arc<OwnerFacts>,
    tools: BTreeMap<ToolName, Offered>,
}

#[derive(Debug)]
struct Offered {
    entry: Arc<Entry>,
    /// When this owner first offered the name. A routine refresh keeps it, so that it does not turn a conflict around.
    turn: u64,
}

impl Registry {
    /// An empty registry at generation 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is registered now. Later changes do not show in it. Never waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The same for a look that is over soon, without a share that other threads would have to be told of.
    pub(crate) fn look(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    /// A new owner that offers nothing yet. `may_replace_built_ins` is the operator's word, not the owner's.
    pub fn owner(&self, kind: OwnerKind, name: &str, may_replace_built_ins: bool) -> Owner {
        // Numbers are not used twice in a process, so an owner of another registry is nobody here.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Owner { id, facts: Arc::new(OwnerFacts { kind, name: name.into(), may_replace_built_ins }) }
    }

    /// Makes this program's own tools an owner and lets it offer them.
    pub fn built_in(&self, source: &dyn ToolSource) -> Result<Owner, OfferRefused> {
        let owner = self.owner(OwnerKind::BuiltIn, source.name(), false);
        self.offer(&owner, source.tools())?;
        Ok(owner)
    }

    /// Puts `tools` in place of those that `owner` offered before. All of them or, on a refusal, none.
    ///
    /// Between plugins and MCP servers the later offer of a name wins; every such conflict that this owner has a part in
    /// is in the answer, so that it can be said. A built-in gives way only to an owner with the operator's grant.
    pub fn offer(&self, owner: &Owner, tools: Vec<Arc<dyn Tool>>) -> Result<Vec<Covered>, OfferRefused> {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        let facts = &owner.facts;
        let mut new: BTreeMap<ToolName, Offered> = BTreeMap::new();
        for tool in tools {
            let name = tool.spec().name.clone();
            if facts.kind != OwnerKind::BuiltIn && !facts.may_replace_built_ins && offers.has_built_in(&name) {
                return Err(OfferRefused::BuiltIn { name, newcomer: facts.as_ref().clone() });
            }
            let known = offers.by_owner.get(&owner.id).and_then(|offer| offer.tools.get(&name));
            let turn = known.map_or(offers.next_turn, |known| known.turn);
            let entry = Arc::new(Entry::new(tool, Arc::clone(facts)));
            if new.insert(name.clone(), Offered { entry, turn }).is_some() {
                return Err(OfferRefused::Twice { name, newcomer: facts.as_ref().clone() });
            }
        }
        offers.next_turn += 1;
        offers.by_owner.insert(owner.id, Offer { facts: Arc::clone(facts), tools: new });
        let covered = self.publish(&offers);
        Ok(covered.into_iter().filter(|covered| covered.winner == *facts || covered.loser == *facts).collect())
    }

    /// Takes everything that `owner` offered out of the registry. What it covered comes back.
    pub fn withdraw(&self, owner: &Owner) {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        if offers.by_owner.remove(&owner.id).is_some() {
            self.publish(&offers);
        }
    }

    /// Makes a toolset, or replaces one that was made this way. It may name tools and toolsets that are not there yet.
    /// The name of a toolset that this program has already is refused.
    pub fn define_toolset(&self, name: &str, toolset: CustomToolset) -> Result<(), NameNotFree> {
        crate::toolset::check_free(name)?;
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        if offers.custom.get(name).is_none_or(|known| **known != toolset) {
            offers.custom.insert(name.to_owned(), Arc::new(toolset));
            self.publish(&offers);
        }
        Ok(())
    }

    /// Puts `toolsets` in place of all that were made before: all of them or, where one name is not free, none.
    pub fn set_toolsets(&self, toolsets: impl IntoIterator<Item = (String, CustomToolset)>) -> Result<(), NameNotFree> {
        let wanted: BTreeMap<_, _> = toolsets.into_iter().map(|(name, set)| (name, Arc::new(set))).collect();
        wanted.keys().try_for_each(|name| crate::toolset::check_free(name))?;
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        if offers.custom != wanted {
            offers.custom = wanted;
            self.publish(&offers);
        }
        Ok(())
    }

    /// Forgets a toolset that was made at run time.
    pub fn remove_toolset(&self, name: &str) {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        if offers.custom.remove(name).is_some() {
            self.publish(&offers);
        }
    }

    /// Computes the next snapshot and lets readers have it. The caller holds the lock, so generations do not race.
    fn publish(&self, offers: &Offers) -> Vec<Covered> {
        let (entries, covered) = offers.winners();
        let mut toolsets: BTreeMap<String, BTreeSet<ToolName>> = BTreeMap::new();
        for (name, entry) in &entries {
            let toolset = crate::toolset::current_name(&entry.tool.spec().toolset);
            toolsets.entry(toolset.to_owned()).or_default().insert(name.clone());
        }
        let servers = offers.by_owner.values().filter(|offer| offer.facts.kind == OwnerKind::Mcp);
        let servers = servers.map(|offer| (offer.facts.name.clone(), mcp_toolset(&offer.facts.name))).collect();
        let generation = self.snapshot.load().generation + 1;
        let custom = offers.custom.clone();
        self.snapshot.store(Arc::new(Snapshot { generation, entries, toolsets, servers, custom }));
        covered
    }
}

/// The toolset of an MCP server's tools (spec core §18.3).
pub fn mcp_toolset(server: &str) -> String {
    format!("mcp-{server}")
}

impl Offers {
    fn has_built_in(&self, name: &ToolName) -> bool {
        let mut built_in = self.by_owner.values().filter(|offer| offer.facts.kind == OwnerKind::BuiltIn);
        built_in.any(|offer| offer.tools.contains_key(name))
    }

    /// Who has each name, and who does not although it was offered. Where a built-in tool is offered, only an owner with a
    /// grant can have the name instead; among those who can, the latest offer wins.
    fn winners(&self) -> (BTreeMap<ToolName, Arc<Entry>>, Vec<Covered>) {
        let mut candidates: BTreeMap<&ToolName, Vec<&Offered>> = BTreeMap::new();
        for offered in self.by_owner.values().flat_map(|offer| &offer.tools) {
            candidates.entry(offered.0).or_default().push(offered.1);
        }
        let mut entries = BTreeMap::new();
        let mut covered = Vec::new();
        for (name, offers) in candidates {
            let is_built_in = |offered: &Offered| offered.entry.owner.kind == OwnerKind::BuiltIn;
            let contested = offers.iter().any(|offered| is_built_in(offered));
            let may_have =
                |offered: &&&Offered| !contested || is_built_in(offered) || offered.entry.owner.may_replace_built_ins;
            // A built-in is older than all others, whenever it was registered.
            let rank = |offered: &&&Offered| (!is_built_in(offered), offered.turn);
            let Some(winner) = offers.iter().filter(may_have).max_by_key(rank) else { continue };
            for loser in offers.iter().filter(|offered| !ptr::eq(**offered, *winner)) {
                let (winner, loser) = (Arc::clone(&winner.entry.owner), Arc::clone(&loser.entry.owner));
                covered.push(Covered { name: name.clone(), winner, loser });
            }
            entries.insert(name.clone(), Arc::clone(&winner.entry));
        }
        (entries, covered)
    }
}

impl Snapshot {
    /// Moves by one with each change of the registry.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The tool called exactly `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.get(name)
    }

    /// All tools, sorted by name.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &ToolName> {
        self.entries.keys()
    }

    /// The tools whose own word is that they belong to `toolset`.
    pub(crate) fn registered_in(&self, toolset: &str) -> Option<&BTreeSet<ToolName>> {
        self.toolsets.get(toolset)
    }

    /// The toolsets that tools say they belong to, sorted.
    pub(crate) fn registered_toolsets(&self) -> impl Iterator<Item = &str> {
        self.toolsets.keys().map(String::as_str)
    }

    /// The toolset of the MCP server called `name`.
    pub(crate) fn server_toolset(&self, name: &str) -> Option<&str> {
        self.servers.get(name).map(String::as_str)
    }

    /// The MCP server whose tools are the toolset `toolset`.
    pub(crate) fn server_of(&self, toolset: &str) -> Option<&str> {
        self.servers.iter().find(|(_, its)| *its == toolset).map(|(server, _)| server.as_str())
    }

    /// The MCP servers, sorted.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// The toolsets that were made at run time, sorted by name.
    pub(crate) fn custom(&self) -> &BTreeMap<String, Arc<CustomToolset>> {
        &self.custom
    }
}

impl Entry {
    fn new(tool: Arc<dyn Tool>, owner: Arc<OwnerFacts>) -> Self {
        Self { tool, owner, validator: OnceLock::new(), definitions: Default::default() }
    }

    /// The definition of a tool that reads the same in every list, made by `make` the first time.
    pub(crate) fn definition(&self, profile: Profile, make: impl FnOnce() -> Definition) -> Definition {
        let place = Profile::ALL.iter().position(|known| *known == profile).and_then(|at| self.definitions.get(at));
        match place {
            Some(place) => place.get_or_init(make).clone(),
            None => make(),
        }
    }

    /// The compiled schema of the arguments; compiled on first use because most tools are not called in most sessions.
    pub(crate) fn validator(&self) -> Result<&jsonschema::Validator, &str> {
        let compiled = self.validator.get_or_init(|| {
            let schema = &self.tool.spec().parameters;
            let linear = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex()).build(schema);
            // Patterns that look around are common in schemas of other people; the fewer steps they may take, the better.
            let patterns = || jsonschema::PatternOptions::fancy_regex().backtrack_limit(PATTERN_STEPS);
            let built = linear.or_else(|_| jsonschema::options().with_pattern_options(patterns()).build(schema));
            built.map_err(|error| error.to_string())
        });
        compiled.as_ref().map_err(String::as_str)
    }
}

/// Steps that a pattern which looks around may take; one that takes more does not match.
const PATTERN_STEPS: usize = 100_000;

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.tool, self.owner)
    }
}
