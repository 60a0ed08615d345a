//! What every backend must do, as a program: the conformance suite of [`hermes_core::Environment`].
//!
//! It is library code and not a test, because a backend can only be judged where it is: `hermes env test NAME` runs the
//! same checks against somebody's own host that our tests run against this machine. So it knows nothing but the port.
//! Whatever it wants to know of the other side (which processes live there, what a file holds) it asks the environment
//! itself, never this machine. What a backend does not declare among its capabilities is skipped and said to be.
//!
//! Start reading at [`run`]; the checks are in the files of this folder, one file a subject.

mod background;
mod endings;
mod files;
mod output;
mod session;
mod subject;
mod terminal;

use std::time::Duration;

use futures::future::BoxFuture;
use hermes_core::{Capabilities, Environment};
use serde::Serialize;
use tokio::time::timeout;

use subject::{Subject, Wrong};

/// A check that takes longer than this is a check that hangs.
const LONGEST_CHECK: Duration = Duration::from_secs(180);

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What should be so: a short sentence.
    pub name: &'static str,
    /// Whether it is so.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What became of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "why")]
pub enum Outcome {
    /// It is so.
    Passed,
    /// It is not so, and what was seen instead.
    Failed(String),
    /// The backend does not promise it: the capability that is missing.
    Skipped(&'static str),
}

/// A capability that a check needs.
type Needs = Option<(&'static str, fn(&Capabilities) -> bool)>;

struct Entry {
    name: &'static str,
    needs: Needs,
    check: for<'a> fn(&'a Subject<'a>) -> BoxFuture<'a, Result<(), Wrong>>,
}

const NOTHING: Needs = None;
const INPUT: Needs = Some(("input", |can| can.input));
const TERMINAL: Needs = Some(("terminal", |can| can.terminal));
const BACKGROUND: Needs = Some(("background", |can| can.background));

/// An entry of the table: a capability, a sentence, and the function that looks whether it is so.
macro_rules! entry {
    ($needs:expr, $name:literal, $check:path) => {
        Entry { name: $name, needs: $needs, check: |subject| Box::pin($check(subject)) }
    };
}

/// Everything that is checked, in this order. A new promise of the port is a new line here.
const CHECKS: &[Entry] = &[
    entry!(NOTHING, "what a command prints comes back", output::comes_back),
    entry!(NOTHING, "both outputs come back in the order of writing", output::both_in_order),
    entry!(NOTHING, "exit codes come back as they are", output::exit_codes),
    entry!(NOTHING, "an end by a signal is told as 128 and the signal", output::ended_by_a_signal),
    entry!(NOTHING, "without input there is nothing to wait for", output::empty_input),
    entry!(INPUT, "a megabyte of any bytes arrives as input", output::given_input),
    entry!(NOTHING, "100 MB of output are counted and kept", output::endless),
    entry!(NOTHING, "output of any bytes is kept byte for byte", output::any_bytes),
    entry!(NOTHING, "a character that is written in two pieces is one", output::character_in_pieces),
    entry!(NOTHING, "a last line without an end stays without one", output::no_final_newline),
    entry!(NOTHING, "escape sequences are not in the text", output::escapes),
    entry!(NOTHING, "a command of 300 kB runs", output::long_command),
    entry!(NOTHING, "quotes and heredocs arrive byte for byte", output::awkward_command),
    entry!(NOTHING, "the directory is kept", session::directory),
    entry!(NOTHING, "a directory of its own does not move the session", session::directory_of_its_own),
    entry!(NOTHING, "in a missing directory nothing runs", session::missing_directory),
    entry!(NOTHING, "variables, functions and aliases are kept", session::names),
    entry!(NOTHING, "what was changed before `exit 3` is kept", session::names_after_exit),
    entry!(NOTHING, "strict mode ends with its command", session::strict_mode),
    entry!(NOTHING, "commands side by side do not undo each other", session::side_by_side),
    entry!(NOTHING, "20 commands run at once, each with its own output", endings::twenty_at_once),
    entry!(NOTHING, "a timeout comes in time, with what was printed", endings::timeout_in_time),
    entry!(NOTHING, "a timeout ends what left the session and forgot us", endings::timeout_ends_daemons),
    entry!(NOTHING, "an interrupt ends everything, with what was printed", endings::interrupt),
    entry!(NOTHING, "a child that holds the output does not hold the call", endings::child_that_stays),
    entry!(NOTHING, "files with awkward names come back byte for byte", files::round_trip),
    entry!(NOTHING, "a file that is written again keeps its mode", files::mode),
    entry!(NOTHING, "what is no file says so", files::no_files),
    entry!(NOTHING, "nothing takes the place of a file but what is written to it", files::never_over_another),
    entry!(NOTHING, "a file that is moved stays what it is, and what is removed is gone", files::moved_and_removed),
    entry!(TERMINAL, "a command gets a terminal of the wanted size", terminal::size),
    entry!(BACKGROUND, "a background process runs and ends with its code", background::runs_and_ends),
    entry!(BACKGROUND, "its log is what it printed, byte for byte", background::log),
    entry!(BACKGROUND, "it reads what it is given until its input is closed", background::input),
    entry!(BACKGROUND, "without input it says so", background::no_input),
    entry!(BACKGROUND, "a program that asks on a terminal can be answered", background::dialogue),
    entry!(BACKGROUND, "killing it is certain, for what left it too", background::kill),
    entry!(BACKGROUND, "lines that are watched for arrive", background::watched),
    entry!(BACKGROUND, "a command at its limit lives on with its output", background::kept_at_its_limit),
    // The last one: after it the environment is closed.
    entry!(NOTHING, "closing ends everything that was left", endings::close),
];

/// Runs every check, one after the other, and closes the environment: it is of no use afterwards.
pub async fn run(environment: &dyn Environment) -> Vec<Check> {
    run_and_tell(environment, |_| {}).await
}

/// The same for somebody who waits: `tell` hears of each check when it is done.
pub async fn run_and_tell(environment: &dyn Environment, mut tell: impl FnMut(&Check)) -> Vec<Check> {
    let can = environment.capabilities();
    let subject = match Subject::new(environment).await {
        Ok(subject) => subject,
        Err(Wrong(why)) => {
            environment.close().await;
            let name = "a folder for the checks can be made";
            let check = Check { name, outcome: Outcome::Failed(why) };
            tell(&check);
            return vec![check];
        }
    };
    let mut checks = Vec::with_capacity(CHECKS.len());
    for entry in CHECKS {
        let outcome = match entry.needs {
            Some((capability, declared)) if !declared(&can) => Outcome::Skipped(capability),
            _ => match timeout(LONGEST_CHECK, (entry.check)(&subject)).await {
                Ok(Ok(())) => Outcome::Passed,
                Ok(Err(Wrong(why))) => Outcome::Failed(why),
                Err(_) => Outcome::Failed(format!("no answer within {} seconds", LONGEST_CHECK.as_secs())),
            },
        };
        let check = Check { name: entry.name, outcome };
        tell(&check);
        checks.push(check);
    }
    checks
}
