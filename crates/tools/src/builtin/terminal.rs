//! `terminal`: one shell command, run to its end, or started in the background.
//!
//! The command is passed on as it was written. Where it runs, how it is killed and what is kept of its output is the
//! environment's business; this file only says what the model may ask for and words the answer.

mod exit_codes;

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    AtLimit, Command, EnvironmentError, Finished, FinishedHow, Kept, Pending, ProcessFacts, ProcessState, Processes, Reserved,
    Start, TerminalSize, plural,
};

use crate::prelude::*;
use crate::support::words::duration;

/// How long a start in the background is looked at for an end that comes at once.
const FIRST_LOOK: Duration = Duration::from_millis(300);
/// Bytes of the output of a process that ended at once.
const FIRST_OUTPUT: u64 = 4_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Shell text, run by bash as written, for example `cargo test 2>&1 | tail -20`.
    command: String,
    /// Start it in the background and answer at once with a `session_id` for the `process` tool.
    #[serde(default)]
    background: bool,
    /// Seconds in the foreground; 180 if left out, at most 600. After that it goes on in the background.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// Directory for this command only. Otherwise it runs where the last command left off (`cd` is remembered).
    workdir: Option<String>,
    /// Give it a terminal, for programs that want one.
    #[serde(default)]
    pty: bool,
    /// In the background: keep its standard input open for `process` write and submit. A terminal always has one.
    #[serde(default)]
    stdin: bool,
    /// In the background: you are told when it ends.
    #[serde(default)]
    notify_on_complete: bool,
    /// Only show what it would do: it runs against a stand-in for the workspace, without network, and its changes are
    /// committed or thrown away by the user.
    #[serde(default)]
    rehearse: bool,
    /// Outside of the sandbox, for what it refused (`sandbox_refused` in a result). The user is asked.
    #[serde(default)]
    without_sandbox: bool,
    /// In the background: you are told of lines of output with one of these texts in them.
    #[serde(default)]
    watch_patterns: Vec<String>,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("terminal", terminal)
        .also_known_as(&["bash", "shell", "sh", "exec", "exec_command", "execute_command", "run_command", "run_shell_command", "run_terminal_cmd", "local_shell", "shell_command", "command", "cmd", "powershell"])
        .toolset("terminal")
        .emoji("💻")
        .effect(Effect::Execute)
        // Longer than the longest command and its end, so that a command's own limit strikes first.
        .deadline(Duration::from_secs(660))
        .about(
            "Run a shell command to its end and get its output and exit code; or start a server, a watcher or an \
             interactive program in the background and drive it with `process`. Directory, exported variables, \
             functions and aliases are kept from call to call. Without `pty` nothing can be asked interactively. To \
             read, write, patch or search files use the file tools instead of cat, sed, echo or grep.",
        )
        .touches(|args: &Args, cx| {
            let mut touches = Touches::executing(&args.command);
            touches.runs_in = args.workdir.as_deref().map(|workdir| cx.resolve(workdir));
            touches.rehearsed = args.rehearse;
            touches.unconfined = args.without_sandbox && !cx.environment.confinement().is_empty();
            touches
        })
        .headline(|args: &Args| first_line(&args.command))
        .example(r#"{"command": "echo hi; exit 3"}"#, gives(r#"{"output": "hi\n", "exit_code": 3, "error": null}"#))
        .example(r#"{"command": "grep nothing notes.txt"}"#, gives(r#"{"exit_code_meaning": "no matches; not an error"}"#))
        .example(r#"{"command": "tty >/dev/null && echo yes", "pty": true}"#, gives(r#"{"output": "yes\n"}"#))
        .example(r#"{"command": "sleep 60", "timeout": 1}"#, gives(r#"{"exit_code": null, "status": "running"}"#))
        .example(r#"{"command": "pwd", "workdir": "missing"}"#, fails("does not exist"))
        .example(r#"{"command": "true", "timeout": 9000}"#, fails("at most 600"))
        .example(r#"{"command": "true", "notify_on_complete": true}"#, fails("background"))
        .example(r#"{"command": ["ls", "-l"]}"#, fails("`command` must be a string"))
        .example(r#"{"command": " "}"#, fails("command is empty"))
}

async fn terminal(args: Args, cx: ToolCx) -> ToolResult {
    if args.command.trim().is_empty() {
        return Err(ToolError::tell("terminal: the command is empty; nothing was run"));
    }
    if args.command.contains('\0') {
        return Err(ToolError::tell(
            "terminal: the command contains a NUL byte, which no shell can take; nothing was run",
        ));
    }
    if args.background { in_background(args, &cx).await } else { in_foreground(args, &cx).await }
}

fn facts(args: &Args, cx: &ToolCx) -> ProcessFacts {
    ProcessFacts {
        command: args.command.clone(),
        cwd: args.workdir.as_deref().map_or_else(|| cx.environment.cwd(), |workdir| cx.resolve(workdir)),
        notify_on_complete: args.notify_on_complete,
        watch_patterns: args.watch_patterns.clone(),
        terminal: args.pty,
        unconfined: args.without_sandbox && !cx.environment.confinement().is_empty(),
    }
}

// ----------------------------------------------------------------------------------------------------- foreground

async fn in_foreground(args: Args, cx: &ToolCx) -> ToolResult {
    let only_there = [
        (args.notify_on_complete, "notify_on_complete"),
        (!args.watch_patterns.is_empty(), "watch_patterns"),
        (args.stdin, "stdin"),
    ];
    if let Some((_, name)) = only_there.into_iter().find(|(is_set, _)| *is_set) {
        return Err(ToolError::tell(format!(
            "terminal: `{name}` goes with a command in the background; add \"background\": true; nothing was run"
        )));
    }
    let longest = cx.limits.longest_command_timeout;
    let timeout = match args.timeout {
        None | Some(0) => cx.limits.command_timeout,
        Some(seconds) => Duration::from_secs(seconds),
    };
    if timeout > longest {
        let (asked, most) = (timeout.as_secs(), longest.as_secs());
        return Err(ToolError::tell(format!(
            "terminal: a timeout of {asked} s is not possible, at most {most}; for longer work start it in the \
             background and be told (background and notify_on_complete); nothing was run"
        )));
    }
    // Where there is no room for one more in the background, it is ended at its limit.
    let processes = cx.processes.as_ref().filter(|_| cx.limits.keep_at_limit);
    let kept = processes.and_then(|processes| Some((processes, processes.reserve(facts(&args, cx)).ok()?)));
    let mut command = Command::new(args.command.as_str(), timeout, cx.limits.output_bytes);
    command.cwd = args.workdir.as_deref().map(|workdir| cx.resolve(workdir));
    command.terminal = args.pty.then(TerminalSize::default);
    command.unconfined = args.without_sandbox;
    if let Some((_, reserved)) = &kept {
        command.at_limit = AtLimit::Keep(reserved.place.clone());
    }
    if args.rehearse {
        command.at_limit = AtLimit::End;
        let rehearsed = cx.environment.rehearse(command, &cx.cancel).await.map_err(|error| not_rehearsed(&error))?;
        return Ok(ended(&args.command, rehearsed.finished, timeout).with_pending(Pending(rehearsed.rehearsal)));
    }
    let mut finished = cx.environment.run(command, &cx.cancel).await.map_err(|error| cannot_run(&error))?;
    match (finished.how, finished.process.take(), kept) {
        (FinishedHow::Kept(why), Some(process), Some((processes, reserved))) => {
            let id = reserved.id.clone();
            let pid = process.pid();
            processes.register(reserved, process);
            Ok(lives_on(finished, why, timeout, &id, pid))
        }
        _ => Ok(ended(&args.command, finished, timeout)),
    }
}

fn ended(command: &str, finished: Finished, timeout: Duration) -> ToolOutput {
    let mut output = finished.output;
    let exit_code = finished.how.exit_code();
    let (note, error) = match finished.how {
        FinishedHow::TimedOut | FinishedHow::Kept(_) => {
            let limit = duration(timeout);
            (
                Some(format!("[Command timed out after {limit}]")),
                Some(format!("killed after {limit}{}", rest(finished.left_over))),
            )
        }
        FinishedHow::Cancelled => (
            Some("[Command interrupted]".into()),
            Some(format!("interrupted by the user and killed{}", rest(finished.left_over))),
        ),
        FinishedHow::Signalled(signal) => (None, Some(format!("ended by signal {signal}"))),
        FinishedHow::Exited(_) => (None, None),
    };
    let lines = output.lines().count();
    if let Some(note) = note {
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output += &note;
    }
    let summary = match finished.how {
        FinishedHow::TimedOut => "timed out".to_owned(),
        FinishedHow::Cancelled => "interrupted".to_owned(),
        _ if lines == 0 => format!("exit {exit_code} · no output"),
        _ => format!("exit {exit_code} · {}", plural(lines, "line")),
    };
    let mut result = json!({ "output": output, "exit_code": exit_code, "error": error });
    let by_itself = matches!(finished.how, FinishedHow::Exited(_) | FinishedHow::Signalled(_));
    if let Some(meaning) = exit_codes::meaning(command, exit_code).filter(|_| by_itself) {
        result["exit_code_meaning"] = meaning.into();
    }
    if let Some(refusal) = finished.refusal {
        // One step leads on: the same call with one field more, which asks the user.
        result["sandbox_refused"] =
            format!("{refusal} If it is needed, make the same call with \"without_sandbox\": true; the user is asked.").into();
    }
    if let Some(spill) = finished.spill {
        result["full_output"] = spill.display().to_string().into();
    }
    ToolOutput::json(result).with_summary(summary).with_detail(finished.coloured_tail)
}

/// The answer for a command that goes on in the background.
fn lives_on(finished: Finished, why: Kept, timeout: Duration, id: &str, pid: i32) -> ToolOutput {
    let (what, summary) = match why {
        Kept::AtLimit => (format!("still running after {}", duration(timeout)), "still running".to_owned()),
        Kept::Serving(port) => (
            format!("it accepts connections on port {port} and has gone quiet"),
            format!("serving on port {port}"),
        ),
        Kept::Watching => ("it watches files and has gone quiet".to_owned(), "watching files".to_owned()),
    };
    let note = format!(
        "{what}; it goes on in the background as {id}. See more with process poll, log or wait; end it with process kill."
    );
    let result = json!({
        "output": finished.output,
        "exit_code": null,
        "error": null,
        "status": "running",
        "session_id": id,
        "pid": pid,
        "note": note,
    });
    let summary = format!("{summary} · in the background as {id}");
    ToolOutput::json(result).with_summary(summary).with_detail(finished.coloured_tail)
}

// ----------------------------------------------------------------------------------------------------- background

async fn in_background(args: Args, cx: &ToolCx) -> ToolResult {
    let capabilities = cx.environment.capabilities();
    if args.rehearse {
        return Err(ToolError::tell("terminal: what runs in the background cannot be rehearsed; nothing was run"));
    }
    let missing = [
        (!capabilities.background || cx.processes.is_none(), "cannot keep processes in the background"),
        (args.pty && !capabilities.terminal, "has no terminals"),
        (args.stdin && !capabilities.input, "cannot pass input on"),
    ];
    if let Some((_, what)) = missing.into_iter().find(|(is_missing, _)| *is_missing) {
        let backend = cx.environment.backend();
        return Err(ToolError::tell(format!("terminal: the backend {backend} {what} here; nothing was run")));
    }
    let Some(processes) = &cx.processes else { unreachable!("looked at just now") };
    let (watch, ignored) = if args.notify_on_complete { (Vec::new(), &args.watch_patterns[..]) } else { (args.watch_patterns.clone(), &[][..]) };
    let told = processes.will_be_told();
    let mut facts = facts(&args, cx);
    facts.notify_on_complete &= told;
    facts.watch_patterns = if told { watch } else { Vec::new() };
    let reserved =
        processes.reserve(facts).map_err(|why| ToolError::tell(format!("terminal: {why}; nothing was run")))?;
    let start = Start {
        script: args.command.clone(),
        cwd: args.workdir.as_deref().map(|workdir| cx.resolve(workdir)),
        terminal: args.pty.then(TerminalSize::default),
        input: args.stdin,
        place: reserved.place.clone(),
        unconfined: args.without_sandbox,
        watch: reserved.facts.watch_patterns.clone(),
    };
    let process = cx.environment.spawn(start).await.map_err(|error| cannot_run(&error))?;
    let id = reserved.id.clone();
    let mut result = json!({
        "output": "Background process started",
        "session_id": id,
        "pid": process.pid(),
        "exit_code": 0,
        "error": null,
    });
    say_what_will_be_told(&mut result, &args, &reserved, ignored, told);
    processes.register(reserved, Arc::clone(&process));
    process.begun(FIRST_LOOK).await;
    if let ProcessState::Ended(how) = process.state() {
        return Ok(ended_at_once(result, &args.command, how, &id, &**processes).await);
    }
    Ok(ToolOutput::json(result).with_summary(format!("in the background as {id}")))
}

fn say_what_will_be_told(result: &mut Value, args: &Args, reserved: &Reserved, ignored: &[String], told: bool) {
    let asked = args.notify_on_complete || !args.watch_patterns.is_empty();
    if asked && !told {
        result["notify_on_complete"] = false.into();
        result["notify_unsupported"] =
            "nobody can be told here after this turn; use process wait, or poll while there is something else to do".into();
        return;
    }
    if reserved.facts.notify_on_complete {
        result["notify_on_complete"] = true.into();
    }
    if !reserved.facts.watch_patterns.is_empty() {
        result["watch_patterns"] = json!(reserved.facts.watch_patterns);
    }
    if !ignored.is_empty() {
        result["watch_patterns_ignored"] = json!(ignored);
    }
    if !asked {
        result["hint"] = "it runs silently: nothing is told of it. Use process poll or wait to see how it does.".into();
    }
}

/// The answer for a process that has ended before anybody could use it, with what it said.
async fn ended_at_once(
    mut result: Value,
    command: &str,
    how: FinishedHow,
    id: &str,
    processes: &dyn Processes,
) -> ToolOutput {
    processes.seen(id);
    let code = how.exit_code();
    if let Some(entry) = processes.find(id) {
        let len = entry.process.output_len();
        let text = entry.process.text(len.saturating_sub(FIRST_OUTPUT)..len).await;
        result["output"] = text.unwrap_or_else(|error| format!("[its output cannot be read: {error}]")).into();
    }
    result["exit_code"] = code.into();
    result["status"] = "exited".into();
    if let Some(meaning) = exit_codes::meaning(command, code) {
        result["exit_code_meaning"] = meaning.into();
    }
    if let Some(fields) = result.as_object_mut() {
        fields.shift_remove("hint");
    }
    ToolOutput::json(result).with_summary(format!("ended at once · exit {code}"))
}

fn cannot_run(error: &EnvironmentError) -> ToolError {
    let (advice, code) = match error {
        EnvironmentError::Lost(_) => ("check what it did before trying again", -1),
        _ => ("nothing was run", 126),
    };
    ToolError::tell(format!("terminal: {error}; {advice}")).with("output", "").with("exit_code", code)
}

/// What keeps a command from being rehearsed need not keep it from running, but for a directory that is not there.
fn not_rehearsed(error: &EnvironmentError) -> ToolError {
    let why = match error {
        EnvironmentError::NoSuchDirectory(_) | EnvironmentError::DirectoryGone { .. } => return cannot_run(error),
        EnvironmentError::NotPrepared(why) => why.strip_prefix("rehearsal: ").unwrap_or(why).to_owned(),
        EnvironmentError::Lost(why) => why.to_string(),
        _ => error.to_string(),
    };
    let message =
        format!("terminal: it could not be rehearsed: {why}; nothing was changed. Without `rehearse` the user is asked");
    ToolError::not_rehearsed(message, &why).with("output", "").with("exit_code", 126)
}

/// What became of the processes that a killed command had started.
fn rest(left_over: usize) -> String {
    match left_over {
        0 => ", with everything it had started".into(),
        some => format!("; {} could not be ended", plural(some, "process")),
    }
}

fn first_line(command: &str) -> String {
    let mut lines = command.trim().lines();
    let first = lines.next().unwrap_or_default().to_owned();
    if lines.next().is_some() { first + " …" } else { first }
}
