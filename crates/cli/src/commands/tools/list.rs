//! `hermes tools list`: what is on for a surface, what is not, and why.

use std::collections::BTreeMap;

use hermes_core::plural;
use hermes_runtime::registry::Entry;
use hermes_runtime::toolset::{self, Origin};
use hermes_runtime::{Checks, Resolved, Snapshot, Verdict};
use serde_json::{Value, json};

use super::{Chosen, missing, why};
use crate::terminal::out;
use crate::terminal::text::{padded, wrapped};
use crate::words::{Exit, Failure};

/// How a set is shown.
const ALL_ON: &str = "●";
const SOME_ON: &str = "◐";
const ALL_OFF: &str = "○";

pub(super) fn list(
    snapshot: &Snapshot,
    checks: &Checks,
    chosen: &Chosen,
    all: bool,
    as_json: bool,
) -> Result<Exit, Failure> {
    if as_json {
        let tools: Vec<Value> = snapshot.entries().map(|entry| in_json(entry, checks, &chosen.resolved)).collect();
        let absent =
            chosen.resolved.verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::NotRegistered(_)));
        let absent = absent
            .map(|(name, verdict)| json!({ "name": name, "on": false, "registered": false, "why": why(verdict) }));
        let tools: Vec<Value> = tools.into_iter().chain(absent.filter(|_| all)).collect();
        out::pretty(&Value::Array(tools))?;
        return Ok(Exit::Done);
    }
    let mut sets: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in snapshot.entries() {
        sets.entry(&entry.tool.spec().toolset).or_default().push(entry);
    }
    let on = |name: &str| chosen.resolved.tools.contains(name);
    let mut text = format!("  {} on   tools\n", padded("toolset", 14));
    for (set, entries) in &sets {
        let count = entries.iter().filter(|entry| on(entry.tool.spec().name.as_str())).count();
        let mark = if count == 0 {
            ALL_OFF
        } else if count == entries.len() {
            ALL_ON
        } else {
            SOME_ON
        };
        let names: Vec<&str> = entries.iter().map(|entry| entry.tool.spec().name.as_str()).collect();
        let names = wrapped(&names.join(" · "), 80, 22);
        text += &format!("  {} {mark}    {}\n", padded(set, 14), names.trim_start());
        for entry in entries {
            let name = entry.tool.spec().name.as_str();
            if let Some(verdict) = chosen
                .resolved
                .verdicts
                .get(name)
                .filter(|verdict| !on(name) && (all || count > 0 || **verdict != Verdict::NotSelected))
            {
                let line = format!("{name}: {}", why(verdict));
                text += &format!("{}\n", wrapped(&line, 80, 22));
            }
        }
    }
    if all {
        text += &not_here(&chosen.resolved, snapshot);
    }
    for note in &chosen.resolved.notes {
        text += &format!("  ! {note}\n");
    }
    let total = snapshot.entries().count();
    text += &format!(
        "{} of {} on for {}. hermes tools (interactive)\n",
        chosen.resolved.tools.len(),
        plural(total, "tool"),
        chosen.surface
    );
    text += "hermes tools enable|disable NAME · hermes tools show NAME\n";
    out::line(&text)?;
    Ok(Exit::Done)
}

/// The tools that are wanted and not in this build, by toolset.
fn not_here(resolved: &Resolved, snapshot: &Snapshot) -> String {
    let absent: Vec<&str> = resolved
        .verdicts
        .iter()
        .filter(|(_, verdict)| matches!(verdict, Verdict::NotRegistered(_)))
        .map(|(name, _)| name.as_str())
        .collect();
    let names = toolset::names(snapshot);
    let sets = names.iter().filter_map(|name| toolset::info(snapshot, name).ok());
    let mut sets: Vec<_> = sets.filter(|set| set.origin == Origin::Table && set.includes.is_empty()).collect();
    // A tool of several sets is shown with the smallest, which is the one it is about.
    sets.sort_by_key(|set| set.tools.len());
    let mut rest: Vec<&str> = absent;
    let mut lines = BTreeMap::new();
    for set in sets {
        let (these, others): (Vec<&str>, Vec<&str>) =
            rest.into_iter().partition(|name| set.tools.iter().any(|tool| tool == name));
        rest = others;
        if !these.is_empty() {
            lines.insert(set.name, wrapped(&these.join(" · "), 80, 22));
        }
    }
    let lines = lines.iter().map(|(set, tools)| format!("  {} –    {}\n", padded(set, 14), tools.trim_start()));
    let text: String = lines.collect();
    if text.is_empty() { text } else { format!("  not in this build yet:\n{text}") }
}

fn in_json(entry: &Entry, checks: &Checks, resolved: &Resolved) -> Value {
    let spec = entry.tool.spec();
    json!({
        "name": spec.name.as_str(),
        "toolset": spec.toolset,
        "on": resolved.tools.contains(spec.name.as_str()),
        "why": resolved.verdicts.get(spec.name.as_str()).map(why),
        "effect": spec.effect,
        "description": spec.description,
        "owner": entry.owner.to_string(),
        "missing": missing(entry, checks),
    })
}
