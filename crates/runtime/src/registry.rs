//! Who exists: every tool of every source, under its name.
//!
//! Readers take a [`Snapshot`], which never changes; writers build the next one. The generation number moves exactly
//! once a change, so that anything computed from a snapshot can be remembered under it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use hermes_core::{Tool, ToolName, ToolSource};

/// The tools of this process. Cheap to share behind an [`Arc`].
#[derive(Debug, Default)]
pub struct Registry(RwLock<Arc<Snapshot>>);

/// All tools at one moment, sorted by name.
#[derive(Debug, Default)]
pub struct Snapshot {
    generation: u64,
    entries: BTreeMap<ToolName, Arc<Entry>>,
}

/// One registered tool.
pub struct Entry {
    /// The tool itself.
    pub tool: Arc<dyn Tool>,
    /// The source that offered it.
    pub owner: String,
    validator: OnceLock<Result<jsonschema::Validator, String>>,
}

/// A source offered a name that another one holds.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{newcomer} offers a tool `{name}`, but {holder} already has one of that name; nothing was registered")]
pub struct NameTaken {
    /// The name in question.
    pub name: ToolName,
    /// Who has it.
    pub holder: String,
    /// Who wanted it.
    pub newcomer: String,
}

impl Registry {
    /// An empty registry at generation 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is registered now. Later changes do not show in it.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts the tools of `source` in place of those it offered before. All of them or, on a conflict, none.
    pub fn register(&self, source: &dyn ToolSource) -> Result<(), NameTaken> {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let owner = source.name();
        let mut entries = current.entries.clone();
        entries.retain(|_, entry| entry.owner != owner);
        for tool in source.tools() {
            let name = tool.spec().name.clone();
            if let Some(holder) = entries.get(&name) {
                return Err(NameTaken { name, holder: holder.owner.clone(), newcomer: owner.to_owned() });
            }
            entries.insert(name, Arc::new(Entry { tool, owner: owner.to_owned(), validator: OnceLock::new() }));
        }
        *current = Arc::new(Snapshot { generation: current.generation + 1, entries });
        Ok(())
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
}

impl Entry {
    /// The compiled schema of the arguments; compiled on first use because most tools are not called in most sessions.
    pub(crate) fn validator(&self) -> Result<&jsonschema::Validator, &str> {
        let compiled = self.validator.get_or_init(|| {
            let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
            options.build(&self.tool.spec().parameters).map_err(|error| error.to_string())
        });
        compiled.as_ref().map_err(String::as_str)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.tool, self.owner)
    }
}
