//! `hermes tools call` and `hermes tools exec`: calls without an agent, for people and for programs.

use std::collections::{BTreeSet, HashMap};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{Asker, CancellationToken, RawArguments, ToolCall, ToolName};
use hermes_runtime::{ApprovalMode, CallReport, Change, Dispatcher, Observer, Scope, Silent, Status, Task};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::args::{CallArgs, PlaceArgs, Walled};
use crate::commands::checkpoints;
use crate::config::Config;
use crate::granted::Granted;
use crate::session::{self, Judged};
use crate::terminal::events::millis;
use crate::terminal::out;
use crate::terminal::person::TerminalPerson;
use crate::terminal::screen::{Abilities, Screen, Stream};
use crate::terminal::signals::Signals;
use crate::terminal::text::visible;
use crate::words::{Exit, Failure};
use crate::world::World;

/// One call, as it stands on the command line.
pub(super) struct Single {
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) args: CallArgs,
    pub(super) as_json: bool,
}

pub(super) async fn call(
    world: &World,
    config: &Config,
    judged: &Judged,
    visible: &BTreeSet<ToolName>,
    single: Single,
) -> Result<Exit, Failure> {
    let Single { name, arguments, args, as_json } = single;
    let asker = (std::io::stdin().is_terminal() && std::io::stderr().is_terminal()).then(|| {
        let screen = Screen::new(Stream::Err, Abilities::of(Stream::Err, world), false, "");
        TerminalPerson::new(screen, world) as Arc<dyn Asker>
    });
    let mut task = session::task(world, config, &args.place, asker, &judged.secrets, &Granted::default()).await?;
    task.approval = session::task_approvals(world, config, &judged.secrets);
    task.processes = Some(session::processes(world, config, &task, &judged.secrets, false));
    let mode = session::approve(config, args.approve);
    let cancel = Signals::listen().begin();
    let report = made(&judged.dispatcher, &task, visible, mode, &cancel, name, arguments).await;
    task.environment.close().await;
    settle(&judged.dispatcher, &task).await;
    let _ = checkpoints::prune_when_due(world, config).await;
    if as_json {
        out::pretty(&in_json(&report))?;
    } else {
        out::foreign(&report.text)?;
    }
    Ok(match report.status {
        Status::Ok => Exit::Done,
        Status::Interrupted => Exit::Interrupted,
        Status::Refused if report.forbidden => Exit::Never,
        _ => Exit::Failed,
    })
}

/// Makes the call of `tools call`.
pub(crate) async fn made(
    dispatcher: &Dispatcher,
    task: &Task,
    visible: &BTreeSet<ToolName>,
    approve: ApprovalMode,
    cancel: &CancellationToken,
    name: String,
    arguments: String,
) -> CallReport {
    let scope = Scope { task, visible, approve, cancel, observer: &Warnings };
    let call = ToolCall { id: "call".into(), name, arguments: RawArguments::Text(arguments) };
    dispatcher.call(&call, &scope).await
}

/// Tells a person what they should know about a call besides its answer.
struct Warnings;

impl Observer for Warnings {
    fn started(&self, _: &ToolCall) {}
    fn finished(&self, _: &CallReport) {}
    fn warned(&self, _: &ToolCall, message: &str) {
        out::error(&format!("hermes: {}", visible(message)));
    }
}

/// Everything about a call, for programs.
fn in_json(report: &CallReport) -> serde_json::Value {
    json!({
        "name": report.name,
        "status": report.status,
        "coerced": report.changes,
        "result": report.text,
        "ms": millis(report.elapsed),
    })
}

pub(super) async fn exec(
    world: &World,
    config: &Config,
    judged: &Judged,
    visible: &BTreeSet<ToolName>,
    args: &CallArgs,
) -> Result<Exit, Failure> {
    let mut tasks: HashMap<String, Task> = HashMap::new();
    let granted = Granted::default();
    let cancel = Signals::listen().begin();
    let ended = answer_lines(&mut tasks, &cancel, async |tasks: &mut HashMap<String, Task>, line: &[u8]| {
        let request = match Request::read(line) {
            Ok(request) => request,
            Err((id, why)) => {
                let result = json!({ "error": format!("not a request: {why}") }).to_string();
                let status = Status::InvalidArguments;
                return Ok(Answer { id, ok: false, status, coerced: Vec::new(), result, ms: 0.0 });
            }
        };
        if !tasks.contains_key(&request.task) {
            if request.place.sandbox.is_some_and(|wall| wall < session::wall(config, &args.place)) {
                return Ok(request.refused("the sandbox can be made stronger for a task, and not weaker"));
            }
            let place = request.place.clone().or(args.place.clone());
            let mut task = match session::task(world, config, &place, None, &judged.secrets, &granted).await {
                Ok(task) => task,
                // Nowhere to run is the trouble of this call alone, if it said so itself.
                Err(why) if request.place != PlaceArgs::default() => return Ok(request.refused(&why.message)),
                Err(why) => return Err(why),
            };
            task.approval = session::task_approvals(world, config, &judged.secrets);
            task.processes = Some(session::processes(world, config, &task, &judged.secrets, false));
            // Who names a task has somebody who remembers what was answered in it.
            let task = if request.is_named { task.in_conversation() } else { task };
            tasks.insert(request.task.clone(), task);
        } else if request.place != PlaceArgs::default() {
            return Ok(request.refused("the task has begun already: where it runs is said with its first call"));
        }
        let task = &tasks[&request.task];
        Ok(request.answer(&judged.dispatcher, task, visible, session::approve(config, args.approve), &cancel).await)
    })
    .await;
    // Whatever ended the conversation, nothing that it started goes on.
    for task in tasks.values() {
        task.environment.close().await;
        settle(&judged.dispatcher, task).await;
    }
    let _ = checkpoints::prune_when_due(world, config).await;
    ended
}

/// Looks at what the calls of a task changed, for an undo of them.
async fn settle(dispatcher: &Dispatcher, task: &Task) {
    if let Err(why) = dispatcher.settle(task).await {
        out::error(&format!("hermes: an undo of this may take back more than it did: {}", visible(&why)));
    }
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
pub(crate) struct Request {
    /// Whatever it is, it comes back byte for byte.
    id: Id,
    task: String,
    /// The line names its task.
    is_named: bool,
    /// Where the task runs; said with its first call.
    place: PlaceArgs,
    tool: String,
    arguments: RawArguments,
}

/// One line of `tools exec`, out.
#[derive(Serialize)]
pub(crate) struct Answer {
    id: Id,
    ok: bool,
    status: Status,
    /// What was changed about the arguments to make them fit; left out if nothing was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    coerced: Vec<Change>,
    pub(crate) result: String,
    ms: f64,
}

type Id = Option<Box<RawValue>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default)]
    id: Id,
    task: Option<String>,
    cwd: Option<PathBuf>,
    backend: Option<String>,
    sandbox: Option<Walled>,
    tool: String,
    #[serde(default)]
    args: Option<Box<RawValue>>,
}

impl Request {
    pub(crate) fn read(line: &[u8]) -> Result<Self, (Id, String)> {
        if line.trim_ascii_start().first().is_some_and(|first| *first == b'[') {
            return Err((None, "expected a JSON object".into()));
        }
        let fields: Fields = serde_json::from_slice(line).map_err(|error| (Self::id_in(line), error.to_string()))?;
        // Everything goes to the chain as the text it is: what is wrong with it is said there, and nowhere else. A JSON
        // string is the text of a model.
        let arguments = fields.args.as_ref().map_or("{}", |args| args.get()).to_owned();
        let arguments = serde_json::from_str::<String>(&arguments).unwrap_or(arguments);
        let arguments = RawArguments::Text(arguments);
        let is_named = fields.task.is_some();
        let task = fields.task.unwrap_or_else(|| "default".into());
        let place = PlaceArgs { cwd: fields.cwd, backend: fields.backend, sandbox: fields.sandbox };
        Ok(Self { id: fields.id, task, is_named, place, tool: fields.tool, arguments })
    }

    /// The id of a line that is otherwise wrong, so that its answer can be told from others.
    fn id_in(line: &[u8]) -> Id {
        let mut fields: HashMap<String, Box<RawValue>> = serde_json::from_slice(line).ok()?;
        fields.remove("id")
    }

    /// The answer to a call that cannot be made.
    fn refused(self, why: &str) -> Answer {
        let result = json!({ "error": why }).to_string();
        Answer { id: self.id, ok: false, status: Status::InvalidArguments, coerced: Vec::new(), result, ms: 0.0 }
    }

    pub(crate) async fn answer(
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
        Answer {
            id: self.id,
            ok: report.status == Status::Ok,
            status: report.status,
            coerced: report.changes,
            result: report.text,
            ms: millis(report.elapsed),
        }
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
            (br#" [1, "t", "todo", {}]"#, "null", "expected a JSON object"),
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
