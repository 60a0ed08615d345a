//! The list that a model sees: one pure function, sorted by name, the same bytes for the same input.
//!
//! Which tools are in it is the [`Selection`]; how they are written is the [`Profile`] of the provider. A tool's own
//! description and schema may depend on what else is visible: it is asked with the visible set at hand, and nothing
//! here knows which tools do that.
//!
//! The tricky idea is [`Definitions`], which remembers the list under the *versions* of everything it was made from. A
//! change of any of them makes a new list; no change makes the very same one, which is shared and never written to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, ptr};

use hermes_core::{Definition, ToolName};
use serde_json::Value;

use crate::availability::Checks;
use crate::profile::{Profile, Stripped};
use crate::registry::{Registry, Snapshot};
use crate::toolset::{Resolved, Selection, UnknownToolset};

/// Lists that are remembered at the same time.
const REMEMBERED: usize = 8;

/// What somebody wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Which tools.
    pub selection: Selection,
    /// In whose dialect.
    pub profile: Profile,
    /// Schema keywords that this session leaves out, because its provider refused them.
    pub without: Stripped,
    /// The model's window in tokens, if it is known.
    pub context: Option<u64>,
    /// Moves when the configuration is read again.
    pub config: u64,
}

impl Wanted {
    /// `selection` for `profile`, with nothing left out and nothing known of the model.
    pub fn new(selection: Selection, profile: Profile) -> Self {
        Self { selection, profile, without: Stripped::default(), context: None, config: 0 }
    }
}

/// A list of definitions and what it was made of. Never changes.
#[derive(Debug, Default)]
pub struct Shown {
    /// The definitions as they are sent, sorted by the tools' own names.
    pub list: Arc<[Definition]>,
    /// The tools in it: the granted scope of whoever is shown the list.
    pub tools: BTreeSet<ToolName>,
    /// Names that the provider is shown in another form, and what they really are.
    pub renamed: BTreeMap<String, ToolName>,
    /// What a person should know about the selection, one line each.
    pub notes: Vec<String>,
}

impl Shown {
    /// The real name of a tool that the provider calls `shown`.
    pub fn real_name<'a>(&'a self, shown: &'a str) -> &'a str {
        self.renamed.get(shown).map_or(shown, ToolName::as_str)
    }
}

/// The definitions of the tools in `resolved`, for `profile`. A name that is not registered any more is left out.
pub fn build(snapshot: &Snapshot, resolved: Resolved, profile: Profile, without: &Stripped) -> Shown {
    let Resolved { tools, notes, .. } = resolved;
    let sees = |name: &str| tools.contains(name);
    let mut list = Vec::with_capacity(tools.len());
    let mut renamed = BTreeMap::new();
    for entry in tools.iter().filter_map(|name| snapshot.get(name.as_str())) {
        let tool = &entry.tool;
        let name = &tool.spec().name;
        let mut shown = profile.shown_name(name).into_owned();
        if shown != name.as_str() {
            // Two names must not become one. There are fewer tools than numbers.
            let plain = shown.clone();
            let mut n = 1;
            while tools.contains(shown.as_str()) || renamed.contains_key(&shown) {
                n += 1;
                let end = format!("_{n}");
                shown = plain.chars().take(ToolName::MAX_CHARS - end.len()).chain(end.chars()).collect();
            }
            renamed.insert(shown.clone(), name.clone());
        }
        let (description, parameters) = (tool.describe(&sees), tool.parameters(&sees));
        let make = || profile.text(&shown, &description, &parameters, without);
        // Most tools read the same whatever else is visible, so theirs is written once and shared by all lists.
        let spec = tool.spec();
        let is_plain = without.is_empty()
            && shown == name.as_str()
            && ptr::eq(description.as_ptr(), spec.description.as_ptr())
            && description.len() == spec.description.len()
            && ptr::eq(ptr::from_ref::<Value>(&parameters), ptr::from_ref(&spec.parameters));
        list.push(if is_plain { entry.definition(profile, make) } else { make() });
    }
    Shown { list: list.into(), tools, renamed, notes }
}

/// Makes and remembers lists.
pub struct Definitions {
    registry: Arc<Registry>,
    checks: Checks,
    memo: Mutex<Vec<Remembered>>,
}

struct Remembered {
    generation: u64,
    epoch: u64,
    wanted: Arc<Wanted>,
    shown: Arc<Shown>,
}

impl Definitions {
    /// Over the tools of `registry`, as far as `checks` say that they can be used.
    pub fn new(registry: Arc<Registry>, checks: Checks) -> Self {
        Self { registry, checks, memo: Mutex::default() }
    }

    /// The tools.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// What can be used here.
    pub fn checks(&self) -> &Checks {
        &self.checks
    }

    /// What `wanted` is shown now. The same list as before, unless a tool came or went, an answer about availability
    /// changed, or something else is wanted.
    pub fn current(&self, wanted: &Arc<Wanted>) -> Result<Arc<Shown>, UnknownToolset> {
        // The order matters: whoever changes something after these two lines makes the next list, not this one.
        let epoch = self.checks.epoch();
        let snapshot = self.registry.snapshot();
        let fits = |known: &Remembered| {
            known.generation == snapshot.generation()
                && known.epoch == epoch
                && (Arc::ptr_eq(&known.wanted, wanted) || known.wanted == *wanted)
        };
        let mut memo = self.memo.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = memo.iter().position(fits) {
            // The most recently used stands last.
            memo[at..].rotate_left(1);
            return Ok(memo.last().map(|known| Arc::clone(&known.shown)).unwrap_or_default());
        }
        let is_new = memo.iter().all(|known| known.generation != snapshot.generation());
        drop(memo);
        if is_new {
            self.checks.keep_only(&snapshot);
        }
        let (mut epoch, mut resolved) = (epoch, wanted.selection.tools(&snapshot, &self.checks)?);
        // Asking brings new answers the first time, and a slow one may come at any moment: a list is remembered under the
        // answers that it was made with, so it is made again until they hold still.
        for _ in 0..3 {
            let now = self.checks.epoch();
            if now == epoch {
                break;
            }
            (epoch, resolved) = (now, wanted.selection.tools(&snapshot, &self.checks)?);
        }
        let shown = Arc::new(build(&snapshot, resolved, wanted.profile, &wanted.without));
        let generation = snapshot.generation();
        let remembered = Remembered { generation, epoch, wanted: Arc::clone(wanted), shown: Arc::clone(&shown) };
        let mut memo = self.memo.lock().unwrap_or_else(PoisonError::into_inner);
        if memo.len() == REMEMBERED {
            memo.remove(0);
        }
        memo.push(remembered);
        Ok(shown)
    }

    /// The tools of `shown` told once more, as `wanted` has it, for a turn in which the provider refused a schema. No
    /// tool joins, whatever was registered meanwhile; one that is not registered any more is left out.
    pub fn told_again(&self, shown: &Shown, wanted: &Wanted) -> Arc<Shown> {
        let resolved = Resolved { tools: shown.tools.clone(), notes: shown.notes.clone(), ..Resolved::default() };
        Arc::new(build(&self.registry.snapshot(), resolved, wanted.profile, &wanted.without))
    }
}

impl fmt::Debug for Definitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definitions").field("registry", &self.registry).finish_non_exhaustive()
    }
}
