//! Which tools a given agent gets.
//!
//! A restriction that cannot be read is an error, never "no restriction": an unknown toolset is refused with a
//! suggestion, an empty list allows nothing, and disabled beats enabled.

use std::collections::BTreeSet;

use hermes_core::{Availability, ToolName};

use crate::registry::Snapshot;

/// What every platform starts from.
const CORE: &[&str] = &["clarify", "file", "math", "terminal", "todo"];

/// A surface and the toolsets that are on there unless the user says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Platform {
    /// For example `hermes-cli`.
    pub name: &'static str,
    /// The toolsets.
    pub toolsets: &'static [&'static str],
}

/// To give a toolset to every platform, add it to [`CORE`]; to one of them, write its list out here.
pub const PLATFORMS: &[Platform] = &[Platform { name: "hermes-cli", toolsets: CORE }];

/// Which toolsets are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The platform whose defaults hold when `toolsets` is not given; also a toolset name of its own.
    pub platform: String,
    /// Exactly these instead of the platform's.
    pub toolsets: Option<Vec<String>>,
    /// None of these, whatever else is said.
    pub disabled: Vec<String>,
}

/// A name that is no toolset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown toolset \"{name}\"{}", hint(.nearest))]
pub struct UnknownToolset {
    /// What was written.
    pub name: String,
    /// The most similar toolsets, nearest first.
    pub nearest: Vec<String>,
}

fn hint(nearest: &[String]) -> String {
    nearest.first().map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default()
}

impl Default for Selection {
    fn default() -> Self {
        Self { platform: "hermes-cli".into(), toolsets: None, disabled: Vec::new() }
    }
}

impl Selection {
    /// The tools that are selected and usable here.
    pub fn resolve(&self, snapshot: &Snapshot) -> Result<BTreeSet<ToolName>, UnknownToolset> {
        let wanted = match &self.toolsets {
            Some(names) => expand(names.iter().map(String::as_str), snapshot)?,
            None => expand([self.platform.as_str()], snapshot)?,
        };
        let disabled = expand(self.disabled.iter().map(String::as_str), snapshot)?;
        let on = |toolset: &str| wanted.contains(toolset) && !disabled.contains(toolset);
        Ok(snapshot
            .entries()
            .filter(|entry| on(&entry.tool.spec().toolset) && entry.tool.availability() == Availability::Available)
            .map(|entry| entry.tool.spec().name.clone())
            .collect())
    }
}

/// The toolsets that have at least one registered tool, sorted.
pub fn registered(snapshot: &Snapshot) -> BTreeSet<String> {
    snapshot.entries().map(|entry| entry.tool.spec().toolset.clone()).collect()
}

fn expand<'a>(
    names: impl IntoIterator<Item = &'a str>,
    snapshot: &Snapshot,
) -> Result<BTreeSet<String>, UnknownToolset> {
    let registered = registered(snapshot);
    let mut toolsets = BTreeSet::new();
    for name in names {
        if let Some(platform) = PLATFORMS.iter().find(|platform| platform.name == name) {
            toolsets.extend(platform.toolsets.iter().map(ToString::to_string));
        } else if matches!(name, "all" | "*") {
            toolsets.extend(registered.iter().cloned());
        } else if registered.contains(name) {
            toolsets.insert(name.to_owned());
        } else {
            let known = registered.iter().map(String::as_str).chain(PLATFORMS.iter().map(|platform| platform.name));
            let nearest = crate::names::nearest(name, known).into_iter().map(str::to_owned).collect();
            return Err(UnknownToolset { name: name.to_owned(), nearest });
        }
    }
    Ok(toolsets)
}
