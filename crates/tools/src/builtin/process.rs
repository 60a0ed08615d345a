//! `process`: what runs in the background: look at it, wait for it, type into it, end it.
//!
//! What is typed into a process is judged like a command: as the input of the program that reads it, after everything that
//! was typed before. Keys that edit a line make it unreadable, and then a person is asked.

mod keys;
mod log;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use hermes_core::{
    FinishedHow, InputError, ProcessEntry, ProcessState, Processes, Screen, grouped, plural, Typed};

use crate::prelude::*;
use crate::support::words::duration;
use log::Logs;

/// Bytes of output beside the state of a process, and when it has ended (spec exec §8.5).
const PREVIEW: u64 = 1_000;
const LAST_WORDS: u64 = 2_000;
/// Characters of a command, and bytes of output, in the list.
const IN_LIST: usize = 200;
/// A look after input waits for an answer so long.
const ANSWER: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Poll,
    Log,
    Screen,
    Wait,
    Kill,
    Write,
    Submit,
    Keys,
    Close,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// `poll`: state and last output. `log`: lines. `screen`: what its terminal shows. `wait`: until it ends.
    /// `write`: bytes as they are; `submit`: a line; `keys`: keys by name. `close`: end of its input.
    action: Action,
    /// Which one, from `terminal` or `list`.
    session_id: Option<String>,
    /// What to write or submit; for `keys` names such as `Down Enter`, `Ctrl-C`, `Escape : q Enter`.
    data: Option<String>,
    /// Seconds to wait.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// For `log`: the first line, counted from 0. The last lines if left out.
    offset: Option<usize>,
    /// For `log`: how many lines, 200 if left out.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("process", process)
        .also_known_as(&["bash_output", "kill_shell", "kill_bash", "write_stdin", "shell_output", "terminal_output"])
        .toolset("terminal")
        .emoji("⚙️")
        .effect(Effect::Execute)
        .deadline(Duration::from_secs(660))
        .about("Look at, wait for, type into and end what `terminal` started in the background.")
        .touches(touches)
        .headline(|args: &Args| {
            let parts = [args.session_id.as_deref(), args.data.as_deref()];
            let parts: Vec<&str> = parts.into_iter().flatten().collect();
            format!("{} {}", action_name(args.action), parts.join(" ")).trim_end().to_owned()
        })
        .example(r#"{"action": "list"}"#, gives(r#"{"processes": []}"#))
        .example(r#"{"action": "poll", "session_id": "proc_0"}"#, gives(r#"{"status": "not_found"}"#))
        .example(r#"{"action": "poll"}"#, fails("needs `session_id`"))
        .example(r#"{"action": "write", "session_id": "proc_0"}"#, fails("needs `data`"))
        .example(r#"{"action": "stop"}"#, fails("action"))
}

/// What was typed into processes, by their names: it decides what the next words mean.
#[derive(Default)]
struct History(Mutex<HashMap<String, String>>);

/// So much of it is kept; a longer history cannot be judged.
const LONGEST_HISTORY: usize = 64 * 1024;
/// Programs in which single keys are the ordinary way of working, and not edits of a line that is then run.
const WORK_BY_KEYS: &[&str] =
    &["dialog", "emacs", "fzf", "htop", "less", "man", "more", "nano", "nvim", "tig", "top", "vi", "vim", "whiptail"];

fn touches(args: &Args, cx: &ToolCx) -> Touches {
    let (Some(id), Some(data), true) = (&args.session_id, &args.data, types(args.action)) else {
        return Touches::nothing();
    };
    let Some(entry) = cx.processes.as_ref().and_then(|processes| processes.find(id)) else {
        return Touches::nothing();
    };
    let history = cx.scratch.get::<History>();
    let before = history.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned().unwrap_or_default();
    let now = text_of(args.action, data);
    let mut touches =
        Touches::executing(now.clone()).because(format!("types into {id}, which runs {}", entry.facts.command));
    let into = entry.facts.command;
    let unreadable = before.len() > LONGEST_HISTORY || edits_a_line(&into, &now);
    touches.typed = Some(Typed { into, before, now, unreadable });
    touches.unconfined = entry.facts.unconfined;
    touches.runs_in = Some(entry.facts.cwd);
    touches
}

/// Whether keys would change a line in a way that nobody can follow. Ctrl-C and Ctrl-D end things and edit nothing.
fn edits_a_line(command: &str, text: &str) -> bool {
    let program = command.split_whitespace().next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let edits = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\x03' | '\x04');
    !WORK_BY_KEYS.contains(&program) && text.contains(edits)
}

fn types(action: Action) -> bool {
    matches!(action, Action::Write | Action::Submit | Action::Keys)
}

/// What an action types, as text.
fn text_of(action: Action, data: &str) -> String {
    match action {
        Action::Submit => format!("{data}\n"),
        Action::Keys => {
            String::from_utf8_lossy(&keys::bytes(data, false).unwrap_or_default()).replace('\r', "\n")
        }
        _ => data.replace('\r', "\n"),
    }
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::List => "list",
        Action::Poll => "poll",
        Action::Log => "log",
        Action::Screen => "screen",
        Action::Wait => "wait",
        Action::Kill => "kill",
        Action::Write => "write",
        Action::Submit => "submit",
        Action::Keys => "keys",
        Action::Close => "close",
    }
}

async fn process(args: Args, cx: ToolCx) -> ToolResult {
    let name = action_name(args.action);
    let Some(processes) = cx.processes.clone() else {
        let backend = cx.environment.backend();
        return Err(ToolError::tell(format!("process: the backend {backend} keeps no processes in the background here")));
    };
    if args.action == Action::List {
        return list(&*processes).await;
    }
    if types(args.action) && args.data.is_none() {
        return Err(ToolError::tell(format!("process: {name} needs `data`")));
    }
    let Some(id) = args.session_id.clone() else {
        return Err(ToolError::tell(format!("process: {name} needs `session_id`; action list shows them")));
    };
    let Some(entry) = processes.find(&id) else {
        let known = processes.list();
        let there = known.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>().join(", ");
        let there = if there.is_empty() { "there is none".to_owned() } else { format!("there are {there}") };
        return Ok(json!({ "status": "not_found", "error": format!("no process {id:?} in this session; {there}") }).into());
    };
    match args.action {
        Action::List => unreachable!("answered above"),
        Action::Poll => poll(&entry).await,
        Action::Log => lines(&args, &entry, &*processes, &cx).await,
        Action::Screen => screen(&entry).await,
        Action::Wait => wait(&args, entry, &*processes, &cx).await,
        Action::Kill => kill(entry, &*processes).await,
        Action::Write | Action::Submit | Action::Keys => {
            let data = args.data.unwrap_or_default();
            write(args.action, &data, &entry, &cx).await
        }
        Action::Close => match entry.process.close_input().await {
            Ok(()) => Ok(ToolOutput::json(json!({ "status": "ok" })).with_summary("input closed")),
            Err(error) => no_input(&entry, error),
        },
    }
}

// ------------------------------------------------------------------------------------------------------- looking

fn status(entry: &ProcessEntry) -> &'static str {
    match entry.process.state() {
        ProcessState::Running => "running",
        ProcessState::Ended(_) if entry.killed => "killed",
        ProcessState::Ended(_) => "exited",
        ProcessState::Lost => "lost",
    }
}

/// The fields that say how a process ended; none while it runs.
fn end_fields(entry: &ProcessEntry, result: &mut Value) {
    let (code, reason) = match entry.process.state() {
        ProcessState::Running => return,
        ProcessState::Ended(how) => (exit_code(how), if entry.killed { "killed" } else { "exited" }),
        ProcessState::Lost => (-1, "lost"),
    };
    result["exit_code"] = code.into();
    result["completion_reason"] = reason.into();
    if entry.killed {
        result["termination_source"] = "process.kill".into();
    } else if reason == "lost" {
        result["termination_source"] = "backend_lost".into();
    }
}

/// The number of a signal is negative here, as programs that wait for a child have it (spec exec §8.5).
fn exit_code(how: FinishedHow) -> i32 {
    match how {
        FinishedHow::Signalled(signal) => -signal,
        how => how.exit_code(),
    }
}

fn uptime(entry: &ProcessEntry) -> u64 {
    let until = entry.ended.unwrap_or_else(std::time::SystemTime::now);
    until.duration_since(entry.started).unwrap_or_default().as_secs()
}

async fn tail(entry: &ProcessEntry, bytes: u64) -> String {
    let len = entry.process.output_len();
    let text = entry.process.text(len.saturating_sub(bytes)..len).await;
    let text = text.unwrap_or_else(|error| format!("[its output cannot be read: {error}]"));
    // The first line was cut somewhere.
    let text = if len > bytes { text.split_once('\n').map_or(text.as_str(), |(_, rest)| rest) } else { &text };
    text.to_owned()
}

async fn list(processes: &dyn Processes) -> ToolResult {
    let mut listed = Vec::new();
    let mut running = 0;
    for entry in processes.list() {
        let started = entry.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut one = json!({
            "session_id": entry.id,
            "command": entry.facts.command.chars().take(IN_LIST).collect::<String>(),
            "cwd": entry.facts.cwd.display().to_string(),
            "pid": entry.process.pid(),
            "started_at": started,
            "uptime_seconds": uptime(&entry),
            "status": status(&entry),
            "output_preview": tail(&entry, IN_LIST as u64).await,
        });
        if !entry.facts.watch_patterns.is_empty() {
            one["watch_patterns"] = json!(entry.facts.watch_patterns);
            one["watch_hit"] = (entry.watch_hits > 0).into();
        }
        if entry.facts.notify_on_complete {
            one["notify_on_complete"] = true.into();
        }
        running += usize::from(entry.process.state() == ProcessState::Running);
        end_fields(&entry, &mut one);
        listed.push(one);
    }
    let summary = format!("{} · {running} running", plural(listed.len(), "process"));
    Ok(ToolOutput::json(json!({ "processes": listed })).with_summary(summary))
}

async fn poll(entry: &ProcessEntry) -> ToolResult {
    let status = status(entry);
    let mut result = json!({
        "session_id": entry.id,
        "command": entry.facts.command,
        "status": status,
        "pid": entry.process.pid(),
        "uptime_seconds": uptime(entry),
        "output_preview": tail(entry, PREVIEW).await,
        "output_bytes": entry.process.output_len(),
    });
    end_fields(entry, &mut result);
    Ok(ToolOutput::json(result).with_summary(status))
}

async fn lines(args: &Args, entry: &ProcessEntry, processes: &dyn Processes, cx: &ToolCx) -> ToolResult {
    let unreadable = |error: std::io::Error| ToolError::tell(format!("process: the log of {} cannot be read: {error}", entry.id));
    // Looked at first: what it printed before its end is then in the log.
    let has_ended = entry.process.state() != ProcessState::Running;
    let process = &*entry.process;
    let known = cx.scratch.get::<Logs>().of(&entry.id, process).await.map_err(unreadable)?;
    let total = known.count();
    let limit = args.limit.unwrap_or(200).min(cx.limits.read_lines);
    let first = args.offset.unwrap_or_else(|| total.saturating_sub(limit)).min(total);
    let after = first.saturating_add(limit).min(total);
    let bytes = known.bytes(first..after, process).await.map_err(unreadable)?;
    // No more than a command may show at once; the end of what was asked for counts most.
    let most = cx.limits.output_bytes as u64;
    let left_out = (bytes.end - bytes.start).saturating_sub(most);
    let output = process.text(bytes.start + left_out..bytes.end).await.map_err(unreadable)?;
    let mut showing = match (first, after) {
        (first, after) if first == after => format!("0 of {}", plural(total, "line")),
        (first, after) => format!("lines {}-{} of {}", grouped(first as u64), grouped(after as u64 - 1), grouped(total as u64)),
    };
    if left_out > 0 {
        showing += &format!("; the first {} bytes of them are left out", grouped(left_out));
    }
    if process.output_start() > 0 {
        showing += &format!("; the first {} bytes of the log are not kept any more", grouped(process.output_start()));
    }
    if has_ended && after == total {
        processes.seen(&entry.id);
    }
    let mut result = json!({
        "session_id": entry.id,
        "status": status(entry),
        "output": output,
        "total_lines": total,
        "showing": showing,
    });
    end_fields(entry, &mut result);
    Ok(ToolOutput::json(result).with_summary(showing))
}

fn drawn(screen: &Screen) -> Value {
    json!({
        "screen": screen.lines.join("\n"),
        "rows": screen.size.rows,
        "columns": screen.size.columns,
        "cursor": { "row": screen.cursor.0, "column": screen.cursor.1 },
        "full_screen": screen.full_screen,
    })
}

async fn screen(entry: &ProcessEntry) -> ToolResult {
    let Some(screen) = entry.process.screen().await else {
        return Err(ToolError::tell(format!(
            "process: {} has no terminal; it was started without \"pty\": true. Use log or poll.",
            entry.id
        )));
    };
    let mut result = drawn(&screen);
    result["session_id"] = entry.id.clone().into();
    result["status"] = status(entry).into();
    end_fields(entry, &mut result);
    let summary = plural(screen.lines.len(), "line");
    Ok(ToolOutput::json(result).with_summary(summary).with_detail(screen.lines))
}

// -------------------------------------------------------------------------------------------------------- acting

async fn wait(args: &Args, entry: ProcessEntry, processes: &dyn Processes, cx: &ToolCx) -> ToolResult {
    let most = cx.limits.longest_command_timeout;
    let asked = args.timeout.map_or(cx.limits.command_timeout, Duration::from_secs);
    let limit = asked.min(most);
    let ended = tokio::select! {
        () = entry.process.ended() => true,
        () = tokio::time::sleep(limit) => false,
        () = cx.cancel.cancelled() => {
            let result = json!({
                "session_id": entry.id,
                "status": "interrupted",
                "output": tail(&entry, PREVIEW).await,
                "note": "the user stopped the wait; the process goes on",
            });
            return Ok(ToolOutput::json(result).with_summary("interrupted"));
        }
    };
    if ended {
        processes.seen(&entry.id);
        let entry = processes.find(&entry.id).unwrap_or(entry);
        let mut result = json!({
            "session_id": entry.id,
            "status": if entry.process.state() == ProcessState::Lost { "lost" } else { "exited" },
            "output": tail(&entry, LAST_WORDS).await,
        });
        end_fields(&entry, &mut result);
        let code = result["exit_code"].clone();
        return Ok(ToolOutput::json(result).with_summary(format!("exit {code}")));
    }
    let clamped = if asked > most { format!(" (the longest wait; {} was asked for)", duration(asked)) } else { String::new() };
    let result = json!({
        "session_id": entry.id,
        "status": "timeout",
        "output": tail(&entry, PREVIEW).await,
        "timeout_note": format!("still running after {}{clamped}; it was not touched", duration(limit)),
    });
    Ok(ToolOutput::json(result).with_summary(format!("still running after {}", duration(limit))))
}

async fn kill(entry: ProcessEntry, processes: &dyn Processes) -> ToolResult {
    let had_ended = entry.process.state() != ProcessState::Running;
    let left = processes.kill(&entry.id).await.unwrap_or(0);
    if left > 0 {
        return Err(ToolError::tell(format!(
            "process: {} could not be ended: {} would not go, even by SIGKILL",
            entry.id,
            plural(left, "process")
        )));
    }
    let entry = processes.find(&entry.id).unwrap_or(entry);
    let status = if had_ended { "already_exited" } else { "killed" };
    let mut result = json!({ "session_id": entry.id, "status": status, "output": tail(&entry, LAST_WORDS).await });
    end_fields(&entry, &mut result);
    Ok(ToolOutput::json(result).with_summary(status.replace('_', " ")))
}

async fn write(action: Action, data: &str, entry: &ProcessEntry, cx: &ToolCx) -> ToolResult {
    let process = &entry.process;
    let bytes = match action {
        Action::Keys => {
            let application = process.screen().await.is_some_and(|screen| screen.application_keys);
            keys::bytes(data, application).map_err(|why| ToolError::tell(format!("process: {why}")))?
        }
        // A terminal wants the key that ends a line; a pipe the character.
        Action::Submit if entry.facts.terminal => [data.as_bytes(), b"\r"].concat(),
        Action::Submit => [data.as_bytes(), b"\n"].concat(),
        _ => data.as_bytes().to_vec(),
    };
    let before = process.output_len();
    // Also when only a part of it arrives.
    remember_typed(&entry.id, &text_of(action, data), cx);
    let taken = match process.write(&bytes).await {
        Ok(taken) => taken,
        Err(error) => return no_input(entry, error),
    };
    let mut result = json!({ "session_id": entry.id, "status": "ok", "bytes_written": taken });
    if taken < bytes.len() {
        result["note"] = format!("{} more bytes wait until it reads them", bytes.len() - taken).into();
    }
    // What it answers soon is told at once: a model that types wants to see what came of it.
    let answered = async {
        while process.output_len() == before && process.state() == ProcessState::Running {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // One more moment for the rest of the answer.
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let _ = tokio::time::timeout(ANSWER, answered).await;
    if let Some(screen) = process.screen().await {
        if let (Some(fields), Some(more)) = (result.as_object_mut(), drawn(&screen).as_object()) {
            fields.extend(more.clone());
        }
        return Ok(ToolOutput::json(result).with_summary("typed").with_detail(screen.lines));
    }
    let new = process.text(before..process.output_len()).await.unwrap_or_default();
    result["output"] = new.into();
    Ok(ToolOutput::json(result).with_summary(format!("{} bytes", grouped(taken as u64))))
}

/// Keeps what was typed for the judgement of what is typed next.
fn remember_typed(id: &str, text: &str, cx: &ToolCx) {
    let history = cx.scratch.get::<History>();
    let mut history = history.0.lock().unwrap_or_else(PoisonError::into_inner);
    let typed = history.entry(id.to_owned()).or_default();
    if typed.len() <= LONGEST_HISTORY {
        typed.push_str(text);
    }
}

fn no_input(entry: &ProcessEntry, error: InputError) -> ToolResult {
    if error == InputError::Ended {
        let mut result = json!({ "session_id": entry.id, "status": "already_exited", "error": "it has ended" });
        end_fields(entry, &mut result);
        return Ok(ToolOutput::json(result).with_summary("has ended already"));
    }
    let advice = match error {
        InputError::None => "; start it with \"stdin\": true or \"pty\": true",
        _ => "",
    };
    Err(ToolError::tell(format!("process: {}: {error}{advice}", entry.id)))
}
