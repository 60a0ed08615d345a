//! `hermes processes list|log|kill|reap|attach`: what runs in the background, seen and handled by the person.
//!
//! A conversation sees its own processes only; the person sees all of them. Nothing here is asked of the conversations:
//! records and logs are files below Hermes' home, and each process has a supervisor that listens.

mod attach;
mod kill;
mod list;
mod log;
mod reap;

use hermes_core::{FinishedHow, ProcessState};
use hermes_exec::processes::Record;
use hermes_runtime::names::did_you_mean;
use nix::sys::signal::Signal;

use crate::args::ProcessesVerb;
use crate::session;
use crate::terminal::text::{one_line, visible};
use crate::words::{Exit, Failure};
use crate::world::World;

pub(crate) async fn run(world: &World, verb: ProcessesVerb) -> Result<Exit, Failure> {
    match verb {
        ProcessesVerb::List { all, json } => list::run(world, all, json.json),
        ProcessesVerb::Log { id, lines, follow } => log::run(world, &find(world, &id)?, lines, follow).await,
        ProcessesVerb::Kill { ids } => kill::run(world, &ids).await,
        ProcessesVerb::Reap => reap::run(world),
        ProcessesVerb::Attach { id } => attach::run(world, &id).await,
    }
}

/// The process that a person means: its name, or a beginning of what follows `proc_` that no other one has.
fn find(world: &World, written: &str) -> Result<Record, Failure> {
    let mut records = Record::all(&session::processes_folder(world));
    let beginning = written.strip_prefix("proc_").unwrap_or(written);
    let is_meant = |record: &Record| record.id.strip_prefix("proc_").is_some_and(|name| name.starts_with(beginning));
    let meant: Vec<usize> = if beginning.is_empty() {
        Vec::new()
    } else {
        (0..records.len()).filter(|&at| is_meant(&records[at])).collect()
    };
    match meant[..] {
        [only] => Ok(records.swap_remove(only)),
        [] if records.is_empty() => Err(Failure::new(format!(
            "there is no process {}: nothing has run in the background (hermes processes list)",
            one_line(written, 40)
        ))),
        [] => {
            let whole = format!("proc_{beginning}");
            let hint = did_you_mean(&whole, records.iter().map(|record| record.id.as_str()));
            Err(Failure::new(format!(
                "there is no process {}{hint} (hermes processes list --all)",
                one_line(written, 40)
            )))
        }
        [..] => {
            let names: Vec<String> = meant.iter().map(|&at| visible(&records[at].id)).collect();
            Err(Failure::new(format!("{} may be {}; write more of it", one_line(written, 40), names.join(" or "))))
        }
    }
}

/// How a process is, in few words: `running`, `exited 0`, `killed by SIGKILL`, `lost`.
fn in_words(state: ProcessState) -> String {
    match state {
        ProcessState::Running => "running".into(),
        ProcessState::Ended(FinishedHow::Signalled(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("killed by {signal}"),
            Err(_) => format!("killed by signal {number}"),
        },
        ProcessState::Ended(how) => format!("exited {}", how.exit_code()),
        ProcessState::Lost => "lost".into(),
    }
}
