//! `hermes tools enable|disable`: what is on for a surface, stored as the list it is.
//!
//! Nothing is worked out backwards. The list of the surface keeps what it says (`hermes-cli`) and gets what was asked for:
//! a name to add, or `-NAME` to take away. All names are understood before the file is touched.

use std::collections::BTreeSet;

use hermes_runtime::{Definitions, Selection, toolset};
use serde_json::json;

use crate::config::{self, Config, edit};
use crate::session;
use crate::terminal::out;
use crate::words::{Exit, Failure};
use crate::world::World;

pub(super) fn run(
    world: &World,
    config: &Config,
    definitions: &Definitions,
    platform: &str,
    names: &[String],
    on: bool,
    as_json: bool,
) -> Result<Exit, Failure> {
    let key = key(platform)?;
    let mut choice = Choice::read(config, definitions, key)?;
    for name in names {
        choice.set(name, on)?;
    }
    let before = super::resolved(config, &session::selection(config, key, None, None), definitions)?;
    choice.store(world)?;
    let after = Config::load(world)?;
    let after = super::resolved(&after, &session::selection(&after, key, None, None), definitions)?;
    let changed: Vec<String> = before.tools.symmetric_difference(&after.tools).map(ToString::to_string).collect();
    if as_json {
        out::pretty(&json!({
            "platform": key, "toolsets": choice.list, "changed": changed, "on": after.tools.len(),
            "disabled": choice.disabled,
        }))?;
        return Ok(Exit::Done);
    }
    let what = match (changed.is_empty(), on) {
        (true, _) => "nothing changes here".to_owned(),
        (false, true) => format!("on: {}", changed.join(", ")),
        (false, false) => format!("off: {}", changed.join(", ")),
    };
    let mut text = format!("{what}\n{}\n", choice.line(world, key));
    for name in names {
        if let Some(why) = not_as_asked(name, on, &after, definitions) {
            text += &format!("! {name}: {why}\n");
        }
    }
    out::line(&text)?;
    Ok(Exit::Done)
}

/// The surface that is meant.
pub(super) fn key(platform: &str) -> Result<&'static str, Failure> {
    toolset::platform_key(platform).ok_or_else(|| {
        let known = toolset::platforms().filter_map(toolset::platform_key);
        let nearest = hermes_runtime::names::nearest(platform, known);
        let hint = nearest.first().map(|nearest| format!("; did you mean \"{nearest}\"?")).unwrap_or_default();
        Failure::usage(format!("unknown platform \"{platform}\"{hint} (hermes toolsets list shows them)"))
    })
}

/// A name whose tools are not all as asked for, and why.
fn not_as_asked(name: &str, on: bool, after: &hermes_runtime::Resolved, definitions: &Definitions) -> Option<String> {
    let tools = members(name, definitions).ok()?;
    let other: Vec<String> = tools
        .iter()
        .filter(|tool| after.tools.contains(tool.as_str()) != on)
        .filter_map(|tool| after.verdicts.get(tool).map(|verdict| format!("{tool} {}", super::why(verdict))))
        .collect();
    (on && !other.is_empty()).then(|| other.join("; "))
}

/// The tools that a name stands for.
fn members(name: &str, definitions: &Definitions) -> Result<BTreeSet<String>, Failure> {
    let selection = Selection::exactly(&[name]);
    let resolved = selection.resolve(&definitions.registry().snapshot(), definitions.checks())?;
    let wanted = resolved.verdicts.into_iter().filter(|(_, verdict)| *verdict != hermes_runtime::Verdict::NotSelected);
    Ok(wanted.map(|(tool, _)| tool).collect())
}

/// What is stored for a surface.
pub(super) struct Choice<'a> {
    config: &'a Config,
    definitions: &'a Definitions,
    key: &'static str,
    pub(super) list: Vec<String>,
    pub(super) disabled: Vec<String>,
}

impl<'a> Choice<'a> {
    pub(super) fn read(config: &'a Config, definitions: &'a Definitions, key: &'static str) -> Result<Self, Failure> {
        let selection = session::selection(config, key, None, None);
        // A list with a mistake in it is not built upon.
        super::resolved(config, &selection, definitions)?;
        let own = || vec![toolset::platform(key).unwrap_or(key).to_owned()];
        let list = selection.toolsets.unwrap_or_else(own);
        Ok(Self { config, definitions, key, list, disabled: config.list("agent.disabled_toolsets") })
    }

    /// Adds or takes away a toolset or a tool.
    pub(super) fn set(&mut self, name: &str, on: bool) -> Result<(), Failure> {
        let tools = members(name, self.definitions)?;
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
            self.list.retain(|entry| entry != name);
            if !self.positive()?.is_disjoint(&tools) && !self.list.contains(&minus) {
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
        for entry in &self.list {
            let off = entry.strip_prefix('-').map(|name| members(name, self.definitions)).transpose()?;
            match off {
                Some(off) if !off.is_disjoint(tools) => {
                    list.extend(off.difference(tools).map(|tool| format!("-{tool}")));
                }
                _ => list.push(entry.clone()),
            }
        }
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

    /// Writes what has changed.
    pub(super) fn store(&self, world: &World) -> Result<(), Failure> {
        let path = config::path(world);
        edit::set(&path, &format!("platform_toolsets.{}", self.key), &json!(self.list))?;
        if self.disabled != self.config.list("agent.disabled_toolsets") {
            edit::set(&path, "agent.disabled_toolsets", &json!(self.disabled))?;
        }
        Ok(())
    }

    /// What is stored, as it stands in the file.
    pub(super) fn line(&self, world: &World, key: &str) -> String {
        format!("platform_toolsets.{key} = [{}] in {}", self.list.join(", "), world.shown(&config::path(world)))
    }
}
