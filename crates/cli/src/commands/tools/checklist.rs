//! `hermes tools` without a command: a checklist of all tools, by toolset, with search.
//!
//! What is ticked is what is on; what comes out is stored like `enable` and `disable` store it, as few names as it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::IsTerminal as _;

use hermes_core::plural;
use hermes_runtime::Definitions;
use inquire::{Confirm, InquireError, MultiSelect};

use super::change::{self, Changes};
use super::why;
use crate::config::Config;
use crate::session;
use crate::terminal::out;
use crate::terminal::text::{padded, shortened, wrapped};
use crate::words::{Exit, Failure};
use crate::world::World;

/// A line of the list.
struct Row {
    toolset: String,
    name: String,
    about: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = format!("{} {} {}", padded(&self.toolset, 12), padded(&self.name, 16), self.about);
        f.write_str(&shortened(&line, 74))
    }
}

pub(super) fn run(world: &World, config: &Config, definitions: &Definitions, platform: &str) -> Result<Exit, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "a checklist needs a terminal; hermes tools list shows the tools, hermes tools enable|disable NAME changes them",
        ));
    }
    let key = change::key(platform)?;
    let resolved = super::resolved(config, &session::selection(config, key, None, None), definitions)?;
    let snapshot = definitions.registry().snapshot();
    let mut rows: Vec<Row> = snapshot
        .entries()
        .map(|entry| {
            let spec = entry.tool.spec();
            let name = spec.name.to_string();
            let is_on = resolved.tools.contains(name.as_str());
            let off = || resolved.verdicts.get(&name).filter(|_| !is_on).map(why);
            let about = off().unwrap_or_else(|| spec.description.clone());
            Row { toolset: spec.toolset.clone(), name, about }
        })
        .collect();
    rows.sort_by(|a, b| (&a.toolset, &a.name).cmp(&(&b.toolset, &b.name)));
    let ticked: Vec<usize> = (0..rows.len()).filter(|i| resolved.tools.contains(rows[*i].name.as_str())).collect();
    let (names, before): (Vec<(String, String)>, BTreeSet<String>) = (
        rows.iter().map(|row| (row.toolset.clone(), row.name.clone())).collect(),
        ticked.iter().map(|i| rows[*i].name.clone()).collect(),
    );
    let answer = MultiSelect::new(&format!("Tools for {key}:"), rows)
        .with_default(&ticked)
        .with_page_size(16)
        .with_help_message("type to search · space ticks · enter goes on · esc quits")
        .with_formatter(&|ticked| plural(ticked.len(), "tool") + " on")
        .prompt();
    let after: BTreeSet<String> = match answer {
        Ok(rows) => rows.into_iter().map(|row| row.name).collect(),
        Err(InquireError::OperationCanceled) => {
            out::line("Nothing was changed.")?;
            return Ok(Exit::Done);
        }
        Err(InquireError::OperationInterrupted) => return Ok(Exit::Interrupted),
        Err(error) => return Err(Failure::new(format!("the checklist cannot be shown: {error}"))),
    };
    if after == before {
        out::line("Nothing was changed.")?;
        return Ok(Exit::Done);
    }
    // What was ticked may be hidden by what was typed last, so it is said before it counts.
    let (on, off): (Vec<&String>, Vec<&String>) =
        (after.difference(&before).collect(), before.difference(&after).collect());
    for (what, names) in [("on", on), ("off", off)] {
        if !names.is_empty() {
            out::line(&wrapped(&format!("{what}: {}", change::some(&names)), 80, 2))?;
        }
    }
    match Confirm::new("Save?").with_default(true).prompt() {
        Ok(true) => change::run(world, definitions, key, &changes(&names, &before, &after), false),
        Ok(false) | Err(InquireError::OperationCanceled) => {
            out::line("Nothing was changed.")?;
            Ok(Exit::Done)
        }
        Err(InquireError::OperationInterrupted) => Ok(Exit::Interrupted),
        Err(error) => Err(Failure::new(format!("the question cannot be shown: {error}"))),
    }
}

/// The names to switch: a whole toolset where all of its tools go the same way, else the single tools.
fn changes(names: &[(String, String)], before: &BTreeSet<String>, after: &BTreeSet<String>) -> Changes {
    let mut sets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (set, tool) in names {
        sets.entry(set).or_default().push(tool);
    }
    let mut changes = Vec::new();
    for (set, tools) in sets {
        let changed: Vec<&str> =
            tools.iter().copied().filter(|tool| before.contains(*tool) != after.contains(*tool)).collect();
        let all = |on: bool| tools.iter().all(|tool| after.contains(*tool) == on);
        if changed.is_empty() {
            continue;
        }
        if all(true) || all(false) {
            changes.push((set.to_owned(), all(true)));
        } else {
            changes.extend(changed.into_iter().map(|tool| (tool.to_owned(), after.contains(tool))));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_goes_one_way_is_one_change() {
        let names: Vec<(String, String)> =
            [("file", "read"), ("file", "write"), ("math", "sum")].map(|(a, b)| (a.into(), b.into())).to_vec();
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<String>>();
        let all = set(&["read", "write", "sum"]);
        assert_eq!(changes(&names, &all, &set(&["sum"])), [("file".to_owned(), false)]);
        assert_eq!(changes(&names, &all, &set(&["sum", "read"])), [("write".to_owned(), false)]);
        assert_eq!(
            changes(&names, &set(&[]), &set(&["read", "sum"])),
            [("read".to_owned(), true), ("math".to_owned(), true)]
        );
        assert!(changes(&names, &all, &all).is_empty());
    }
}
