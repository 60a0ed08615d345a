//! `terminal`: one shell command, run to its end.
//!
//! The command is passed on as it was written. Where it runs, how it is killed and what is kept of its output is the
//! environment's business; this file only says what the model may ask for and words the answer.

use std::time::Duration;

use hermes_core::{Command, EnvironmentError, FinishedHow, plural};

use crate::prelude::*;
use crate::support::words::duration;

/// The last lines of the output that the person sees; the model sees all of it.
const LINES_FOR_PEOPLE: usize = 4;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Shell text, run by bash as written, for example `cargo test 2>&1 | tail -20`.
    command: String,
    /// Seconds before it is killed; 180 if left out, at most 600.
    timeout: Option<u64>,
    /// Directory for this command only. Otherwise it runs where the last command left off (`cd` is remembered).
    workdir: Option<String>,
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
            "Run a shell command to its end and get its output and exit code. Standard input is empty, so nothing can \
             be asked interactively. The working directory is kept from call to call. To read, write, patch or search \
             files use the file tools instead of cat, sed, echo or grep.",
        )
        .touches(|args: &Args, cx| {
            let mut touches = Touches::executing(&args.command);
            touches.runs_in = args.workdir.as_deref().map(|workdir| cx.resolve(workdir));
            touches
        })
        .headline(|args: &Args| first_line(&args.command))
        .example(r#"{"command": "echo hi; exit 3"}"#, gives(r#"{"output": "hi\n", "exit_code": 3, "error": null}"#))
        .example(r#"{"command": "sleep 60", "timeout": 1}"#, gives(r#"{"exit_code": 124}"#))
        .example(r#"{"command": "pwd", "workdir": "missing"}"#, fails("does not exist"))
        .example(r#"{"command": "true", "timeout": 9000}"#, fails("at most 600"))
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
    let longest = cx.limits.longest_command_timeout;
    let timeout = match args.timeout {
        None | Some(0) => cx.limits.command_timeout,
        Some(seconds) => Duration::from_secs(seconds),
    };
    if timeout > longest {
        let (asked, most) = (timeout.as_secs(), longest.as_secs());
        return Err(ToolError::tell(format!(
            "terminal: a timeout of {asked} s is not possible, at most {most}; nothing was run"
        )));
    }
    let cwd = args.workdir.as_deref().map(|workdir| cx.resolve(workdir));
    let command = Command { script: args.command, cwd, timeout, output_cap: cx.limits.output_bytes };
    let finished = cx.environment.run(command, &cx.cancel).await.map_err(|error| cannot_run(&error))?;

    let mut output = finished.output;
    let exit_code = finished.how.exit_code();
    let (note, error) = match finished.how {
        FinishedHow::TimedOut => {
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
    let detail: Vec<String> = output.lines().skip(lines.saturating_sub(LINES_FOR_PEOPLE)).map(str::to_owned).collect();
    if let Some(note) = note {
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output += &note;
    }
    let summary = match finished.how {
        FinishedHow::TimedOut => "timed out".to_owned(),
        FinishedHow::Cancelled => "interrupted".to_owned(),
        _ => format!("exit {exit_code} · {}", plural(lines, "line")),
    };
    let result = json!({ "output": output, "exit_code": exit_code, "error": error });
    Ok(ToolOutput::json(result).with_summary(summary).with_detail(detail))
}

fn cannot_run(error: &EnvironmentError) -> ToolError {
    let (advice, code) = match error {
        EnvironmentError::Lost(_) => ("check what it did before trying again", -1),
        _ => ("nothing was run", 126),
    };
    ToolError::tell(format!("terminal: {error}; {advice}")).with("output", "").with("exit_code", code)
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
