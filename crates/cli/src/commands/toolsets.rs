//! `hermes toolsets list|show|resolve`: the sets, what is in them, and what a choice of them gives.

use std::collections::BTreeSet;

use hermes_core::plural;
use hermes_runtime::toolset::{self, Info, Origin};
use hermes_runtime::{Definitions, Selection, Snapshot, Verdict};
use serde_json::{Value, json};

use super::tools::why;
use crate::args::ToolsetsVerb;
use crate::config::Config;
use crate::session;
use crate::terminal::out;
use crate::terminal::text::{padded, wrapped};
use crate::words::{Exit, Failure};
use crate::world::World;

pub(crate) fn run(world: &World, verb: ToolsetsVerb) -> Result<Exit, Failure> {
    let config = Config::load_and_warn(world)?;
    let definitions = session::definitions(world, &config)?;
    let snapshot = definitions.registry().snapshot();
    match verb {
        ToolsetsVerb::List { json } => list(&snapshot, json.json)?,
        ToolsetsVerb::Show { name, json } => show(&snapshot, &name, json.json)?,
        ToolsetsVerb::Resolve { names, why, json } => resolve(&config, &definitions, &names, why, json.json)?,
    }
    Ok(Exit::Done)
}

fn list(snapshot: &Snapshot, as_json: bool) -> Result<(), Failure> {
    let names = toolset::names(snapshot);
    let all: Vec<Info> = names.iter().map(|name| toolset::info(snapshot, name)).collect::<Result<_, _>>()?;
    let here = |info: &Info| info.resolved.iter().filter(|tool| snapshot.get(tool).is_some()).count();
    if as_json {
        let all: Vec<Value> = all.iter().map(|info| in_json(snapshot, info)).collect();
        return Ok(out::pretty(&Value::Array(all))?);
    }
    let mut text = format!("  {} {} what for\n", padded("toolset", 22), padded("tools", 9));
    for origin in [Origin::Table, Origin::Custom, Origin::Plugin, Origin::Mcp, Origin::Bundle] {
        for info in all.iter().filter(|info| info.origin == origin) {
            let count = format!("{} of {}", here(info), info.resolved.len());
            let about = wrapped(&info.about, 80, 35);
            text += &format!("  {} {} {}\n", padded(&info.name, 22), padded(&count, 9), about.trim_start());
        }
    }
    text += &format!("{}; tools: in this build, of all. hermes toolsets show NAME\n", plural(all.len(), "toolset"));
    Ok(out::line(&text)?)
}

fn show(snapshot: &Snapshot, name: &str, as_json: bool) -> Result<(), Failure> {
    let info = toolset::info(snapshot, name)?;
    if as_json {
        return Ok(out::pretty(&in_json(snapshot, &info))?);
    }
    let about = if info.about.is_empty() { String::new() } else { format!(" · {}", info.about) };
    let mut text = format!("{}{about} · {}\n\n", info.name, origin(info.origin));
    let shown = |names: &[String]| {
        let marked: Vec<String> = names
            .iter()
            .map(|name| if snapshot.get(name).is_some() { name.clone() } else { format!("({name})") })
            .collect();
        wrapped(&marked.join(" · "), 80, 12).trim_start().to_owned()
    };
    if !info.includes.is_empty() {
        text += &format!("  includes  {}\n", info.includes.join(" · "));
        text += &format!("  its own   {}\n", if info.tools.is_empty() { "nothing".into() } else { shown(&info.tools) });
    }
    text += &format!("  tools     {}\n", if info.resolved.is_empty() { "none".into() } else { shown(&info.resolved) });
    if info.resolved.iter().any(|name| snapshot.get(name).is_none()) {
        text += "\nIn brackets: not in this build yet.\n";
    }
    for note in &info.notes {
        text += &format!("! {note}\n");
    }
    Ok(out::line(&text)?)
}

fn resolve(
    config: &Config,
    definitions: &Definitions,
    names: &str,
    with_reasons: bool,
    as_json: bool,
) -> Result<(), Failure> {
    let names: Vec<String> =
        names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    // The same rules as for an agent, with what the configuration takes away.
    let selection = Selection { disabled: config.list("agent.disabled_toolsets"), ..Selection::exactly(&names) };
    let resolved = selection.resolve(&definitions.registry().snapshot(), definitions.checks());
    let resolved = resolved.map_err(|error| {
        if names.iter().any(|name| name.trim_start_matches('-') == error.name) {
            error.into()
        } else {
            session::unknown(config, error)
        }
    })?;
    let relevant = resolved.verdicts.iter().filter(|(_, verdict)| **verdict != Verdict::NotSelected);
    if as_json {
        let tools: Vec<Value> = relevant
            .map(
                |(name, verdict)| json!({ "name": name, "on": matches!(verdict, Verdict::On(_)), "why": why(verdict) }),
            )
            .collect();
        return Ok(out::pretty(&json!({ "tools": tools, "notes": resolved.notes }))?);
    }
    let mut text = String::new();
    if with_reasons {
        let mut legend = BTreeSet::new();
        for (name, verdict) in relevant {
            let (mark, means) = match verdict {
                Verdict::On(_) => ("+", "+ on"),
                Verdict::Removed(_) => ("−", "− taken away"),
                _ => ("·", "· cannot be used here"),
            };
            legend.insert(means);
            let reason = wrapped(&why(verdict), 80, 22);
            text += &format!("  {mark} {} {}\n", padded(name, 17), reason.trim_start());
        }
        text += &format!("{}\n", legend.into_iter().collect::<Vec<_>>().join("   "));
    } else {
        resolved.tools.iter().for_each(|name| text += &format!("{name}\n"));
        if resolved.tools.is_empty() {
            text += if names.is_empty() {
                "no tools: the list is empty\n"
            } else {
                "no tools; --why tells what became of them\n"
            };
        }
    }
    for note in &resolved.notes {
        text += &format!("! {note}\n");
    }
    Ok(out::line(&text)?)
}

fn in_json(snapshot: &Snapshot, info: &Info) -> Value {
    let here: Vec<&String> = info.resolved.iter().filter(|tool| snapshot.get(tool).is_some()).collect();
    json!({
        "name": info.name,
        "about": info.about,
        "origin": origin(info.origin),
        "tools": info.tools,
        "includes": info.includes,
        "resolved": info.resolved,
        "in_this_build": here,
        "notes": info.notes,
    })
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Table => "built in",
        Origin::Bundle => "bundle",
        Origin::Custom => "custom",
        Origin::Plugin => "plugin",
        Origin::Mcp => "MCP server",
    }
}
