//! `hermes tools list|show|call|exec|definitions`: the tools without an agent.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::IsTerminal as _;

use hermes_core::{Availability, CancellationToken, Effect, Expected, RawArguments, ToolCall, ToolName, plural};
use hermes_runtime::{ApprovalMode, Dispatcher, Scope, Silent, Snapshot, Status, Task, definitions, names};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::args::{CallArgs, Provider, SelectionArgs, ToolsVerb};
use crate::config::Config;
use crate::session;
use crate::terminal::events::millis;
use crate::terminal::out;
use crate::terminal::person::TerminalPerson;
use crate::terminal::screen::{Abilities, Screen, Stream};
use crate::terminal::signals::Signals;
use crate::terminal::text::{padded, wrapped};
use crate::words::{Exit, Failure};
use crate::world::World;

pub(crate) async fn run(world: &World, verb: ToolsVerb) -> Result<Exit, Failure> {
    let config = Config::load_and_warn(world)?;
    let registry = session::registry()?;
    let snapshot = registry.snapshot();
    match verb {
        ToolsVerb::List { selection, json } => {
            list(&snapshot, &visible(&config, &selection, &snapshot)?, &selection, json.json)
        }
        ToolsVerb::Show { name, json } => show(&snapshot, &name, json.json),
        ToolsVerb::Definitions { selection, provider: Provider::Openai, json } => {
            let definitions = definitions::build(&snapshot, &visible(&config, &selection, &snapshot)?);
            let array = Value::Array(definitions.to_vec());
            // With --json, the exact bytes that are sent.
            let printed = if json.json { out::line(&array.to_string()) } else { out::pretty(&array) };
            printed?;
            Ok(Exit::Done)
        }
        ToolsVerb::Call { name, arguments, call } => {
            let everything = everything(&snapshot);
            self::call(world, &config, &session::dispatcher(&registry), &everything, name, arguments, &call).await
        }
        ToolsVerb::Exec { call } => {
            let everything = everything(&snapshot);
            exec(world, &config, &session::dispatcher(&registry), &everything, &call).await
        }
    }
}

fn visible(config: &Config, selection: &SelectionArgs, snapshot: &Snapshot) -> Result<BTreeSet<ToolName>, Failure> {
    let selection =
        session::selection(config, &selection.platform, selection.toolsets.as_ref(), selection.disable.as_ref());
    session::visible(config, &selection, snapshot)
}

/// A person who calls a tool by name may call any of them.
fn everything(snapshot: &Snapshot) -> BTreeSet<ToolName> {
    snapshot.entries().map(|entry| entry.tool.spec().name.clone()).collect()
}

fn list(
    snapshot: &Snapshot,
    on: &BTreeSet<ToolName>,
    selection: &SelectionArgs,
    as_json: bool,
) -> Result<Exit, Failure> {
    if as_json {
        let all: Vec<Value> = snapshot
            .entries()
            .map(|entry| {
                let spec = entry.tool.spec();
                let missing = match entry.tool.availability() {
                    Availability::Available => Value::Null,
                    Availability::Missing { reason, fix } => json!({ "reason": reason, "fix": fix }),
                };
                json!({
                    "name": spec.name.as_str(),
                    "toolset": spec.toolset,
                    "on": on.contains(&spec.name),
                    "effect": spec.effect,
                    "description": spec.description,
                    "owner": entry.owner,
                    "missing": missing,
                })
            })
            .collect();
        out::pretty(&Value::Array(all))?;
        return Ok(Exit::Done);
    }
    let mut sets: BTreeMap<&str, Vec<(&str, bool)>> = BTreeMap::new();
    let mut missing = Vec::new();
    for entry in snapshot.entries() {
        let spec = entry.tool.spec();
        sets.entry(&spec.toolset).or_default().push((spec.name.as_str(), on.contains(&spec.name)));
        if let Availability::Missing { reason, fix } = entry.tool.availability() {
            missing.push(format!("{}: {reason} ({fix})", spec.name));
        }
    }
    let mut text = format!("  {} on   tools\n", padded("toolset", 14));
    for (set, tools) in &sets {
        let mark = match tools.iter().filter(|(_, on)| *on).count() {
            0 => "○",
            some if some == tools.len() => "●",
            _ => "◐",
        };
        let names: Vec<&str> = tools.iter().map(|(name, _)| *name).collect();
        let names = wrapped(&names.join(" · "), 80, 22);
        text += &format!("  {} {mark}    {}\n", padded(set, 14), names.trim_start());
    }
    for line in missing {
        text += &format!("  ! {line}\n");
    }
    let total = snapshot.entries().count();
    let surface = if selection.toolsets.is_some() { "this selection" } else { selection.platform.as_str() };
    text +=
        &format!("{} of {} on for {surface}. hermes tools show NAME tells more.\n", on.len(), plural(total, "tool"));
    out::line(&text)?;
    Ok(Exit::Done)
}

fn show(snapshot: &Snapshot, name: &str, as_json: bool) -> Result<Exit, Failure> {
    let all = everything(snapshot);
    let entry = names::resolve(name, &all).and_then(|name| snapshot.get(name.as_str()));
    let Some(entry) = entry else {
        let nearest = names::nearest(name, all.iter().map(ToolName::as_str));
        let hint = nearest.first().map(|nearest| format!("; did you mean \"{nearest}\"?")).unwrap_or_default();
        return Err(Failure::new(format!("there is no tool \"{name}\"{hint} (hermes tools list)")));
    };
    let spec = entry.tool.spec();
    if as_json {
        let examples: Vec<&str> = entry.tool.examples().iter().map(|example| example.arguments).collect();
        out::pretty(&json!({
            "name": spec.name.as_str(),
            "toolset": spec.toolset,
            "emoji": spec.emoji,
            "effect": spec.effect,
            "parallel": spec.parallel,
            "description": spec.description,
            "parameters": spec.parameters,
            "examples": examples,
            "owner": entry.owner,
        }))?;
        return Ok(Exit::Done);
    }
    let mut text = format!("{} {}   toolset {} · {}\n\n", spec.emoji, spec.name, spec.toolset, effect(spec.effect));
    text += &format!("{}\n\n", wrapped(&spec.description, 80, 0));
    let required = spec.required();
    for (argument, schema) in spec.properties().into_iter().flatten() {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("one of the values below");
        let need = if required.contains(&argument.as_str()) { "required" } else { "optional" };
        text += &format!("  {} {kind}, {need}\n", padded(argument, 14));
        if let Some(about) = schema.get("description").and_then(Value::as_str) {
            text += &format!("{}\n", wrapped(about, 80, 6));
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            let options: Vec<String> = options.iter().map(Value::to_string).collect();
            text += &format!("      {}\n", options.join(" | "));
        }
        for (field, schema) in schema.pointer("/items/properties").and_then(Value::as_object).into_iter().flatten() {
            let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            text += &format!("{}\n", wrapped(&format!("{field}: {about}"), 80, 8));
        }
    }
    text += "\nExamples:\n";
    for example in entry.tool.examples() {
        let expected = match example.expected {
            Expected::Fields(fields) => fields.to_owned(),
            Expected::Error(part) => format!("an error: {part}"),
        };
        text += &format!("  hermes tools call {} '{}'\n      → {expected}\n", spec.name, example.arguments);
    }
    out::line(&text)?;
    Ok(Exit::Done)
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::None => "reaches nothing",
        Effect::Converse => "talks with you",
        Effect::Read => "reads files",
        Effect::Network => "talks to the network",
        Effect::Write => "changes files",
        Effect::Execute => "runs programs",
    }
}

async fn call(
    world: &World,
    config: &Config,
    dispatcher: &Dispatcher,
    visible: &BTreeSet<ToolName>,
    name: String,
    arguments: String,
    args: &CallArgs,
) -> Result<Exit, Failure> {
    let mut task = session::task(world, config, args.cwd.as_deref())?;
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let screen = Screen::new(Stream::Err, Abilities::of(Stream::Err, world), false, "");
        task.asker = Some(TerminalPerson::new(screen, world));
    }
    let cancel = Signals::listen().begin();
    let scope = Scope { task: &task, visible, approve: args.approve.into(), cancel: &cancel, observer: &Silent };
    let call = ToolCall { id: "call".into(), name, arguments: RawArguments::Text(arguments) };
    let report = dispatcher.call(&call, &scope).await;
    task.environment.close().await;
    out::foreign(&report.text)?;
    Ok(match report.status {
        Status::Ok => Exit::Done,
        Status::Interrupted => Exit::Interrupted,
        _ => Exit::Failed,
    })
}

async fn exec(
    world: &World,
    config: &Config,
    dispatcher: &Dispatcher,
    visible: &BTreeSet<ToolName>,
    args: &CallArgs,
) -> Result<Exit, Failure> {
    let mut tasks: HashMap<String, Task> = HashMap::new();
    let cancel = Signals::listen().begin();
    let ended = answer_lines(&mut tasks, &cancel, async |tasks: &mut HashMap<String, Task>, line: &[u8]| {
        let request = match Request::read(line) {
            Ok(request) => request,
            Err((id, why)) => {
                let result = json!({ "error": format!("not a request: {why}") }).to_string();
                return Ok(Answer { id, ok: false, result, ms: 0.0 });
            }
        };
        if !tasks.contains_key(&request.task) {
            tasks.insert(request.task.clone(), session::task(world, config, args.cwd.as_deref())?);
        }
        let task = &tasks[&request.task];
        Ok(request.answer(dispatcher, task, visible, args.approve.into(), &cancel).await)
    })
    .await;
    // Whatever ended the conversation, nothing that it started goes on.
    for task in tasks.values() {
        task.environment.close().await;
    }
    ended
}

/// Answers standard input line by line, until it ends, nobody listens any more, or the process is stopped.
async fn answer_lines(
    tasks: &mut HashMap<String, Task>,
    cancel: &CancellationToken,
    answer: impl AsyncFn(&mut HashMap<String, Task>, &[u8]) -> Result<Answer, Failure>,
) -> Result<Exit, Failure> {
    let mut lines = BufReader::new(tokio::io::stdin()).split(b'\n');
    loop {
        let line = tokio::select! {
            line = lines.next_segment() => line,
            () = cancel.cancelled() => return Ok(Exit::Interrupted),
        };
        let line = line.map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
        let Some(line) = line else { return Ok(Exit::Done) };
        let answer = answer(tasks, &line).await?;
        out::line(&serde_json::to_string(&answer).unwrap_or_default())?;
    }
}

/// One line of `tools exec`, in.
struct Request {
    /// Whatever it is, it comes back byte for byte.
    id: Id,
    task: String,
    tool: String,
    arguments: RawArguments,
}

/// One line of `tools exec`, out.
#[derive(Serialize)]
struct Answer {
    id: Id,
    ok: bool,
    result: String,
    ms: f64,
}

type Id = Option<Box<RawValue>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default)]
    id: Id,
    task: Option<String>,
    tool: String,
    #[serde(default)]
    args: Option<Box<RawValue>>,
}

impl Request {
    fn read(line: &[u8]) -> Result<Self, (Id, String)> {
        let fields: Fields = serde_json::from_slice(line).map_err(|error| (Self::id_in(line), error.to_string()))?;
        // Everything goes to the chain as the text it is: what is wrong with it is said there, and nowhere else. A JSON
        // string is the text of a model.
        let arguments = fields.args.as_ref().map_or("{}", |args| args.get()).to_owned();
        let arguments = serde_json::from_str::<String>(&arguments).unwrap_or(arguments);
        let arguments = RawArguments::Text(arguments);
        let task = fields.task.unwrap_or_else(|| "default".into());
        Ok(Self { id: fields.id, task, tool: fields.tool, arguments })
    }

    /// The id of a line that is otherwise wrong, so that its answer can be told from others.
    fn id_in(line: &[u8]) -> Id {
        let mut fields: HashMap<String, Box<RawValue>> = serde_json::from_slice(line).ok()?;
        fields.remove("id")
    }

    async fn answer(
        self,
        dispatcher: &Dispatcher,
        task: &Task,
        visible: &BTreeSet<ToolName>,
        approve: ApprovalMode,
        cancel: &CancellationToken,
    ) -> Answer {
        let id = self.id.as_ref().map_or("null", |id| id.get());
        let call =
            ToolCall { id: format!("exec_{}", id.trim_matches('"')), name: self.tool, arguments: self.arguments };
        let scope = Scope { task, visible, approve, cancel, observer: &Silent };
        let report = dispatcher.call(&call, &scope).await;
        Answer { id: self.id, ok: report.status == Status::Ok, result: report.text, ms: millis(report.elapsed) }
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("tool", &self.tool).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_strictly() {
        let request = Request::read(br#"{"id": 7, "tool": "todo", "args": "{bad"}"#).unwrap();
        assert_eq!((request.id.unwrap().get(), request.task.as_str()), ("7", "default"));
        assert_eq!(request.arguments, RawArguments::Text("{bad".into()));
        let huge = Request::read(br#"{"id": 123456789012345678901234567890, "tool": "todo"}"#).unwrap();
        assert_eq!(huge.id.unwrap().get(), "123456789012345678901234567890");
        for (line, id, why) in [
            (&b"nonsense"[..], "null", "expected"),
            (b"", "null", "EOF"),
            (br#"{"id": "a"}"#, "\"a\"", "missing field `tool`"),
            (br#"{"id": "a", "tool": 5}"#, "\"a\"", "expected a string"),
            (br#"{"id": "a", "tool": "x", "arg": {}}"#, "\"a\"", "unknown field `arg`"),
        ] {
            let (got_id, got) = Request::read(line).unwrap_err();
            let got_id = got_id.as_ref().map_or("null", |id| id.get());
            assert!(got_id == id && got.contains(why), "{got_id} {got}");
        }
    }
}
