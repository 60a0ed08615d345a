//! A registry with some usual tools, and selections written in a few words.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::sync::Arc;

use hermes_core::Tool;
use hermes_runtime::toolset::{self, Info};
use hermes_runtime::{Checks, CustomToolset, Owner, OwnerKind, Registry, Resolved, Selection, UnknownToolset, Verdict};
use hermes_testkit::{FakeSurroundings, FakeTool};

pub(crate) fn tool(name: &str, toolset: &str) -> Arc<dyn Tool> {
    Arc::new(FakeTool::new(name).toolset(toolset))
}

/// Tools `NAME TOOLSET` of one owner.
pub(crate) fn offer(registry: &Registry, kind: OwnerKind, owner: &str, tools: &[&str]) -> Owner {
    let owner = registry.owner(kind, owner, false);
    let tools = tools.iter().map(|line| line.split_once(' ').unwrap()).map(|(name, set)| tool(name, set)).collect();
    registry.offer(&owner, tools).unwrap();
    owner
}

/// The tools of the sets `web`, `file` and `terminal`, one of no platform, and the two that Discord adds.
pub(crate) fn usual() -> Registry {
    let registry = Registry::new();
    let tools = [
        "web_search web",
        "web_extract web",
        "read_file file",
        "write_file file",
        "patch file",
        "search_files file",
        "terminal terminal",
        "process terminal",
        "x_search x_search",
        "discord discord",
        "discord_admin discord_admin",
    ];
    offer(&registry, OwnerKind::BuiltIn, "built-in", &tools);
    registry
}

pub(crate) const FILE: [&str; 4] = ["patch", "read_file", "search_files", "write_file"];
pub(crate) const USUAL_CORE: [&str; 8] =
    ["patch", "process", "read_file", "search_files", "terminal", "web_extract", "web_search", "write_file"];

pub(crate) fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// What somebody wrote, for one run.
pub(crate) fn exactly(names: &[&str]) -> Selection {
    Selection::exactly(names)
}

/// What is stored for a platform.
pub(crate) fn stored(names: &[&str]) -> Selection {
    Selection { toolsets: Some(strings(names)), ..Selection::default() }
}

pub(crate) fn without(selection: Selection, disabled: &[&str]) -> Selection {
    Selection { disabled: strings(disabled), ..selection }
}

pub(crate) fn resolve(registry: &Registry, selection: &Selection) -> Resolved {
    selection.resolve(&registry.snapshot(), &checks()).unwrap()
}

pub(crate) fn refused(registry: &Registry, selection: &Selection) -> UnknownToolset {
    selection.resolve(&registry.snapshot(), &checks()).unwrap_err()
}

pub(crate) fn on(registry: &Registry, selection: &Selection) -> Vec<String> {
    resolve(registry, selection).tools.iter().map(ToString::to_string).collect()
}

pub(crate) fn custom(registry: &Registry, name: &str, tools: &[&str], includes: &[&str]) {
    let set = CustomToolset { about: String::new(), tools: strings(tools), includes: strings(includes) };
    registry.define_toolset(name, set).unwrap();
}

pub(crate) fn info(registry: &Registry, name: &str) -> Info {
    toolset::info(&registry.snapshot(), name).unwrap()
}

pub(crate) fn verdict(registry: &Registry, selection: &Selection, tool: &str) -> Verdict {
    resolve(registry, selection).verdicts[tool].clone()
}

/// On this machine nothing is missing.
pub(crate) fn checks() -> Checks {
    Checks::new(Arc::new(FakeSurroundings::complete()))
}
