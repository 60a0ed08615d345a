//! `hermes tools enable|disable`: what is on for a surface, stored as the list it is.
//!
//! Nothing is worked out backwards. The list of the surface keeps what it says (`hermes-cli`) and gets what was asked for:
//! a name to add, or `-NAME` to take away. All names are understood before the file is touched.

use std::collections::BTreeSet;

use hermes_core::ToolName;
use hermes_runtime::names::did_you_mean;
use hermes_runtime::{Definitions, Selection, Verdict, toolset};
use serde_json::json;

use crate::args::SwitchArgs;
use crate::config::edit::{self, Edit};
use crate::config::{self, Config};
use crate::session;
use crate::terminal::out;
use crate::terminal::text::wrapped;
use crate::words::{Exit, Failure};
use crate::world::World;

/// Switches what stands on the command line on or off.
pub(super) fn switch(world: &World, definitions: &Definitions, args: &SwitchArgs, on: bool) -> Result<Exit, Failure> {
    run(world, definitions, &args.platform, &named(&args.names, on)?, args.json.json)
}

/// The changes that were asked for: a name, and whether it shall be on.
pub(super) type Changes = Vec<(String, bool)>;

pub(super) fn run(
    world: &World,
    definitions: &Definitions,
    platform: &str,
    changes: &Changes,
    as_json: bool,
) -> Result<Exit, Failure> {
    let key = key(platform)?;
    let resolved = |config: &Config| super::resolved(config, &session::selection(config, key, None, None), definitions);
    // What is changed is what stands there at that moment, and not what was read before somebody thought about it.
    let (before, choice) = edit::update(&config::path(world), |text| {
        let config = Config::of(world, text)?;
        session::define_toolsets(&config, definitions.registry())?;
        let before = resolved(&config)?;
        let mut choice = Choice::read(&config, definitions, key)?;
        for (name, on) in changes {
            choice.set(name, *on)?;
        }
        Ok((choice.edits(), (before, choice)))
    })?;
    let config = Config::load(world)?;
    let after = resolved(&config)?;
    let turned_on: Vec<&str> = after.tools.difference(&before.tools).map(ToolName::as_str).collect();
    let turned_off: Vec<&str> = before.tools.difference(&after.tools).map(ToolName::as_str).collect();
    let other: Vec<(&str, String)> = changes
        .iter()
        .filter_map(|(name, on)| Some((name.as_str(), not_as_asked(name, *on, &after, definitions)?)))
        .collect();
    if as_json {
        out::pretty(&json!({
            "platform": key, "toolsets": choice.list, "turned_on": turned_on, "turned_off": turned_off,
            "on": after.tools.len(), "disabled": config.list("agent.disabled_toolsets"),
            "not_as_asked": other.into_iter().map(|(name, why)| json!({ "name": name, "why": why })).collect::<Vec<_>>(),
            "notes": after.notes,
        }))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for (what, names) in [("on", &turned_on), ("off", &turned_off)] {
        if !names.is_empty() {
            text += &format!("{}\n", wrapped(&format!("{what}: {}", some(names)), 80, 0));
        }
    }
    if text.is_empty() {
        text += "nothing changes here\n";
    }
    let file = world.shown(&config::path(world));
    if choice.list != choice.was {
        text += &format!("platform_toolsets.{key} = [{}] in {file}\n", choice.list.join(", "));
    }
    if choice.disabled != choice.were_disabled {
        let disabled = choice.disabled.join(", ");
        text += &format!("agent.disabled_toolsets = [{disabled}] in {file}, which counts for every surface\n");
    }
    for (name, why) in other {
        text += &format!("! {name}: {why}\n");
    }
    for note in &after.notes {
        text += &format!("! {note}\n");
    }
    out::line(&text)?;
    Ok(Exit::Done)
}

/// The first few of many names.
pub(super) fn some(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 10;
    let first: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    format!("{}{more}", first.join(", "))
}

/// What was typed: names by themselves or separated by commas.
fn named(typed: &[String], on: bool) -> Result<Changes, Failure> {
    let names = typed.iter().flat_map(|typed| typed.split(',')).map(str::trim).filter(|name| !name.is_empty());
    let changes: Changes = names.map(|name| (name.to_owned(), on)).collect();
    if changes.is_empty() {
        return Err(Failure::usage("no name is given (hermes toolsets list shows them)"));
    }
    for (name, _) in &changes {
        if name.starts_with('-') {
            let plain = name.trim_start_matches('-');
            return Err(Failure::usage(format!(
                "\"{name}\" is no name; to take {plain} away: hermes tools disable {plain}"
            )));
        }
        if name == "no_mcp" {
            return Err(Failure::usage(
                "\"no_mcp\" is a word for lists in config.yaml; here, name the server that shall be off",
            ));
        }
    }
    Ok(changes)
}

/// The surface that is meant.
pub(super) fn key(platform: &str) -> Result<&'static str, Failure> {
    toolset::platform_key(platform).ok_or_else(|| {
        let known = toolset::platforms().filter_map(toolset::platform_key);
        let hint = did_you_mean(platform, known);
        Failure::usage(format!("unknown platform \"{platform}\"{hint} (hermes toolsets list shows them)"))
    })
}

/// A name whose tools are not all as asked for, and why.
fn not_as_asked(name: &str, on: bool, after: &hermes_runtime::Resolved, definitions: &Definitions) -> Option<String> {
    let tools = members(name, definitions).ok()?;
    if !on {
        let still: Vec<&str> = tools.iter().map(String::as_str).filter(|tool| after.tools.contains(*tool)).collect();
        let why = format!("still on: {}; name them, or their toolsets, to switch them off", some(&still));
        return (!still.is_empty()).then_some(why);
    }
    let other: Vec<String> = tools
        .iter()
        .filter(|tool| !after.tools.contains(tool.as_str()))
        .filter_map(|tool| after.verdicts.get(tool).map(|verdict| format!("{tool} {}", super::why(verdict))))
        .collect();
    (!other.is_empty()).then(|| match other.as_slice() {
        [first, rest @ ..] if rest.len() > 3 => format!("{first}; and {} more (hermes tools list --all)", rest.len()),
        _ => other.join("; "),
    })
}

/// The tools that a name stands for.
fn members(name: &str, definitions: &Definitions) -> Result<BTreeSet<String>, Failure> {
    let selection = Selection::exactly(&[name]);
    let resolved = selection.resolve(&definitions.registry().snapshot(), definitions.checks())?;
    let wanted = resolved.verdicts.into_iter().filter(|(_, verdict)| *verdict != Verdict::NotSelected);
    Ok(wanted.map(|(tool, _)| tool).collect())
}

/// What a name takes away with a minus before it. Not always all of it: a bundle leaves the core.
fn taken_by(name: &str, definitions: &Definitions) -> Result<BTreeSet<String>, Failure> {
    let minus = format!("-{name}");
    let selection = Selection::exactly(&["all", name, &minus]);
    let resolved = selection.resolve(&definitions.registry().snapshot(), definitions.checks())?;
    let taken = resolved.verdicts.into_iter().filter(|(_, verdict)| matches!(verdict, Verdict::Removed(_)));
    Ok(taken.map(|(tool, _)| tool).collect())
}

/// What is stored for a surface.
struct Choice<'a> {
    definitions: &'a Definitions,
    key: &'static str,
    list: Vec<String>,
    was: Vec<String>,
    disabled: Vec<String>,
    were_disabled: Vec<String>,
}

impl<'a> Choice<'a> {
    fn read(config: &Config, definitions: &'a Definitions, key: &'static str) -> Result<Self, Failure> {
        let selection = session::selection(config, key, None, None);
        // A list with a mistake in it is not built upon.
        super::resolved(config, &selection, definitions)?;
        let own = || vec![toolset::platform(key).unwrap_or(key).to_owned()];
        let list = selection.toolsets.unwrap_or_else(own);
        let disabled = config.list("agent.disabled_toolsets");
        Ok(Self { definitions, key, was: list.clone(), list, were_disabled: disabled.clone(), disabled })
    }

    /// Adds or takes away a toolset or a tool.
    fn set(&mut self, name: &str, on: bool) -> Result<(), Failure> {
        let tools = members(name, self.definitions)?;
        if let Some(native) =
            toolset::native_to(name).filter(|native| on && toolset::platform(self.key) != Some(*native))
        {
            let key = toolset::platform_key(native).unwrap_or(native);
            return Err(Failure::usage(format!(
                "{name} works on {key} alone: hermes tools enable {name} --platform {key}"
            )));
        }
        let minus = format!("-{name}");
        if on {
            self.disabled.retain(|disabled| disabled != name);
            self.list.retain(|entry| *entry != minus);
            if self.is_server(name) {
                self.list.retain(|entry| entry != "no_mcp");
            }
            self.lift(&tools)?;
            if !tools.is_subset(&self.positive()?) {
                self.list.push(name.to_owned());
            }
        } else {
            let snapshot = self.definitions.registry().snapshot();
            // `cli` stands for `hermes-cli` where nothing else is called that.
            let surface = |name: &str| match toolset::info(&snapshot, name) {
                Ok(_) => name.to_owned(),
                Err(_) => toolset::platform(name).unwrap_or(name).to_owned(),
            };
            let meant = surface(name);
            self.list.retain(|entry| surface(entry) != meant);
            let taken = taken_by(name, self.definitions)?;
            if !self.positive()?.is_disjoint(&taken) && !self.list.contains(&minus) {
                self.list.push(minus);
            }
        }
        Ok(())
    }

    fn is_server(&self, name: &str) -> bool {
        let info = toolset::info(&self.definitions.registry().snapshot(), name);
        info.is_ok_and(|info| info.origin == toolset::Origin::Mcp)
    }

    /// Takes `tools` out of what is taken away: a set that is off but for one tool becomes a list of the others.
    fn lift(&mut self, tools: &BTreeSet<String>) -> Result<(), Failure> {
        let mut list = Vec::new();
        let mut rest = BTreeSet::new();
        for entry in &self.list {
            let off = entry.strip_prefix('-').map(|name| taken_by(name, self.definitions)).transpose()?;
            match off {
                Some(off) if !off.is_disjoint(tools) => {
                    rest.extend(off.difference(tools).map(|tool| format!("-{tool}")));
                }
                _ => list.push(entry.clone()),
            }
        }
        // Behind the others, so that these keep their places and what stands beside them.
        rest.retain(|entry| !list.contains(entry));
        list.extend(rest);
        self.list = list;
        Ok(())
    }

    /// The tools that the list adds, whatever it takes away.
    fn positive(&self) -> Result<BTreeSet<String>, Failure> {
        let names = self.list.iter().filter(|entry| !entry.starts_with('-') && *entry != "no_mcp");
        let mut tools = BTreeSet::new();
        for name in names {
            tools.extend(members(name, self.definitions)?);
        }
        if !self.list.is_empty() {
            let sources = Selection { toolsets: Some(self.list.clone()), ..Selection::default() };
            let resolved = sources.resolve(&self.definitions.registry().snapshot(), self.definitions.checks())?;
            tools.extend(resolved.tools.iter().map(ToString::to_string));
        }
        Ok(tools)
    }

    /// What has to be written.
    fn edits(&self) -> Vec<Edit> {
        let mut edits = Vec::new();
        if self.list != self.was {
            edits.push((format!("platform_toolsets.{}", self.key), json!(self.list)));
        }
        if self.disabled != self.were_disabled {
            edits.push(("agent.disabled_toolsets".into(), json!(self.disabled)));
        }
        edits
    }
}
