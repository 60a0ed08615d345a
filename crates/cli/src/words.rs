//! Where errors become words: one line that says what happened, where, and what to do next, and an exit code.

use std::io;
use std::process::ExitCode;

use hermes_agent::EndReason;
use hermes_core::{EnvironmentError, ModelError, ModelErrorKind};
use hermes_runtime::UnknownToolset;

/// How a command ends. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done what was asked for.
    Done,
    /// Not done.
    Failed,
    /// The command line could not be understood.
    Usage,
    /// Done in part: the budget was spent, an approval was refused.
    Partial,
    /// It can never be done, whoever says yes.
    Never,
    /// Stopped by the person.
    Interrupted,
    /// As a program ended that was run for the person.
    Like(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Partial => 3,
            Exit::Never => 4,
            Exit::Interrupted => 130,
            Exit::Like(code) => code,
        })
    }
}

/// An error as a person reads it. An empty message prints nothing.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::Failed }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::Usage }
    }
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<UnknownToolset> for Failure {
    fn from(error: UnknownToolset) -> Self {
        Self::usage(format!("{error} (hermes toolsets list)"))
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let hint = match error.kind {
            ModelErrorKind::Unreachable => "; is it running, and is the network up?",
            ModelErrorKind::Credentials => " (hermes config set model.api_key …, or the variable of your provider)",
            ModelErrorKind::Busy => "; try again later",
            _ => "",
        };
        let exit = if error.kind == ModelErrorKind::Cancelled { Exit::Interrupted } else { Exit::Failed };
        Self { message: format!("{}{hint}", error.message), exit }
    }
}

/// Output that cannot be written because nobody reads it any more is no error worth a word.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self { message: String::new(), exit: Exit::Done },
            _ => Self::new(format!("cannot write the output: {error}")),
        }
    }
}

/// What clap says about a command line, in one line with the help that fits.
pub(crate) fn usage(error: &clap::Error) -> String {
    let said = error.to_string();
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let usage = lines.iter().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or("hermes");
    let command: Vec<&str> = usage.split(' ').take_while(|word| !word.starts_with(['[', '<', '-'])).collect();
    let is_about_it = |line: &&&str| !line.starts_with("Usage: ") && !line.starts_with("For more information");
    let mut parts: Vec<String> = lines
        .iter()
        .filter(is_about_it)
        // What follows the usage line is the usage of something else.
        .take_while(|line| !line.starts_with("hermes "))
        .map(|line| line.trim_start_matches("error: ").trim_start_matches("tip: ").to_owned())
        .collect();
    if error.kind() == clap::error::ErrorKind::InvalidSubcommand && command == ["hermes"] {
        parts.truncate(1);
        parts.push("for a task: hermes run \"TASK\"".into());
    }
    format!("{} ({} --help)", parts.join("; ").replace(":;", ":"), command.join(" "))
}

/// Why a turn gave less than was asked for, in one line; `None` if it gave everything.
pub(crate) fn why_partial(reason: &EndReason, refused: u32) -> Option<String> {
    match reason {
        EndReason::Answered if refused == 0 => None,
        EndReason::Answered if refused == 1 => Some("1 call was refused; the work may be incomplete".into()),
        EndReason::Answered => Some(format!("{refused} calls were refused; the work may be incomplete")),
        EndReason::BudgetSpent => Some("the budget of steps is spent (--max-turns raises it)".into()),
        EndReason::UnknownTools(name) => {
            Some(format!("stopped: the model kept calling tools that do not exist, last `{name}`"))
        }
        EndReason::Repetition(what) => Some(format!("stopped: {what}")),
        EndReason::CutOff => Some("the model's output limit cut the answer off (model.max_tokens raises it)".into()),
        EndReason::Filtered => Some("the provider filtered the answer".into()),
        EndReason::Cancelled => Some("stopped".into()),
        EndReason::Broken(why) => Some(why.clone()),
    }
}
