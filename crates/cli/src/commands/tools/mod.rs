//! `hermes tools …`: the tools without an agent.

pub(crate) mod call;
mod change;
mod checklist;
mod list;
mod search;
mod show;

use std::collections::BTreeSet;
use std::sync::Arc;

use hermes_core::{Availability, Definition, ToolName};
use hermes_runtime::registry::Entry;
use hermes_runtime::{
    Checks, Definitions, Profile, Resolved, Selection, Snapshot, Stripped, Verdict, definitions, toolset,
};
use serde_json::{Value, json};

use crate::args::{Provider, SelectionArgs, ToolsVerb};
use crate::config::Config;
use crate::session;
use crate::terminal::out;
use crate::words::{Exit, Failure};
use crate::world::World;

pub(crate) async fn run(world: &World, platform: &str, verb: Option<ToolsVerb>) -> Result<Exit, Failure> {
    let config = Config::load_and_warn(world)?;
    let definitions = session::definitions(world, &config)?;
    let (snapshot, checks) = (definitions.registry().snapshot(), definitions.checks());
    let Some(verb) = verb else { return checklist::run(world, &config, &definitions, platform) };
    match verb {
        ToolsVerb::List { selection, all, json } => {
            list::list(&snapshot, checks, &chosen(world, &config, &selection, &definitions)?, all, json.json)
        }
        ToolsVerb::Show { name, json } => show::show(&snapshot, checks, &name, json.json),
        ToolsVerb::Definitions { selection, provider, json } => {
            let chosen = chosen(world, &config, &selection, &definitions)?;
            let shown = definitions::build(&snapshot, chosen.resolved, provider.into(), &Stripped::default());
            let texts: Vec<&str> = shown.list.iter().map(Definition::as_str).collect();
            let exact = format!("[{}]", texts.join(","));
            // With --json, the exact bytes that are sent.
            let printed = if json.json {
                out::line(&exact)
            } else {
                out::pretty(&shown.list.iter().map(Definition::to_value).collect::<Value>())
            };
            printed?;
            Ok(Exit::Done)
        }
        ToolsVerb::Search { question, limit, catalog, jsonl, json } => {
            let wanted = search::Wanted { catalog, limit: limit.into(), as_json: json.json };
            search::run(world, &snapshot, (!jsonl).then(|| question.join(" ")), &wanted)
        }
        ToolsVerb::Enable(args) => change::switch(world, &definitions, &args, true),
        ToolsVerb::Disable(args) => change::switch(world, &definitions, &args, false),
        ToolsVerb::Call { name, arguments, call: args, json } => {
            let (all, judged) = (everything(&snapshot), judged(world, &config, &definitions)?);
            let single = call::Single { name, arguments, args, as_json: json.json };
            call::call(world, &config, &judged, &all, single).await
        }
        ToolsVerb::Exec { call } => {
            let (all, judged) = (everything(&snapshot), judged(world, &config, &definitions)?);
            call::exec(world, &config, &judged, &all, &call).await
        }
    }
}

/// What takes calls that no agent makes.
fn judged(world: &World, config: &Config, definitions: &Definitions) -> Result<session::Judged, Failure> {
    let guard = crate::approvals::guard(world, config)?;
    Ok(session::dispatcher(world, config, definitions.registry(), &guard))
}

/// What is on, and for whom.
struct Chosen {
    resolved: Resolved,
    /// Said in the last line, for example `hermes-cli`.
    surface: String,
}

fn chosen(
    world: &World,
    config: &Config,
    args: &SelectionArgs,
    definitions: &Arc<Definitions>,
) -> Result<Chosen, Failure> {
    change::key(&args.platform)?;
    let selection = session::selection(config, &args.platform, args.toolsets.as_ref(), args.disable.as_ref());
    let selection = session::focused(world, config, selection, None);
    let surface = if args.toolsets.is_some() {
        "this selection"
    } else {
        toolset::platform(&args.platform).unwrap_or(&args.platform)
    };
    Ok(Chosen { resolved: resolved(config, &selection, definitions)?, surface: surface.to_owned() })
}

fn resolved(config: &Config, selection: &Selection, definitions: &Definitions) -> Result<Resolved, Failure> {
    let snapshot = definitions.registry().snapshot();
    selection.resolve(&snapshot, definitions.checks()).map_err(|error| session::unknown(config, error))
}

/// A person who calls a tool by name may call any of them.
fn everything(snapshot: &Snapshot) -> BTreeSet<ToolName> {
    snapshot.names().cloned().collect()
}

/// Why a tool is in or out, in words.
pub(super) fn why(verdict: &Verdict) -> String {
    match verdict {
        Verdict::On(via) => via.to_string(),
        Verdict::Removed(by) => format!("removed by {by}"),
        Verdict::Missing { reason, fix, .. } => format!("{reason} ({fix})"),
        Verdict::NotRegistered(via) => format!("not in this build yet ({via})"),
        Verdict::NotSelected => "in no toolset that is on".into(),
    }
}

/// What a tool misses here, for programs; null if nothing.
fn missing(entry: &Entry, checks: &Checks) -> Value {
    match checks.of(entry) {
        Availability::Available => Value::Null,
        Availability::Missing { reason, fix } => json!({ "reason": reason, "fix": fix }),
    }
}

impl From<Provider> for Profile {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::Openai => Self::OpenAiChat,
            Provider::OpenaiResponses => Self::OpenAiResponses,
            Provider::Anthropic => Self::Anthropic,
            Provider::Gemini => Self::Gemini,
            Provider::Local => Self::Local,
        }
    }
}
