//! `hermes processes reap`.

use std::time::SystemTime;

use hermes_core::plural;
use hermes_exec::processes::{Reaped, reap};

use crate::session;
use crate::terminal::out;
use crate::terminal::text::visible;
use crate::words::{Exit, Failure};
use crate::world::World;

pub(super) fn run(world: &World) -> Result<Exit, Failure> {
    let folder = session::processes_folder(world);
    let reaped = reap(&folder, &session::temporary_folders(world), SystemTime::now());
    out::line(&in_words(&reaped))?;
    Ok(Exit::Done)
}

fn in_words(Reaped { lost, ended, records, folders, groups }: &Reaped) -> String {
    let done = [
        (*ended, "ended", "process that nobody looked after", "processes that nobody looked after"),
        (*records, "took away", "old record and its log", "old records and their logs"),
        (
            *folders,
            "took away",
            "temporary folder of a program that is gone",
            "temporary folders of programs that are gone",
        ),
        (*groups, "took away", "control group of a program that is gone", "control groups of programs that are gone"),
    ];
    let done = done.into_iter().filter(|(count, ..)| *count > 0);
    let mut lines: Vec<String> =
        done.map(|(count, did, one, many)| format!("{did} {count} {}", if count == 1 { one } else { many })).collect();
    if !lost.is_empty() {
        let names: Vec<String> = lost.iter().map(|id| visible(id)).collect();
        lines.push(format!("nobody knows how {} ended: {}", plural(lost.len(), "process"), names.join(", ")));
    }
    if lines.is_empty() { "nothing to clear up: no crash has left anything".into() } else { lines.join("\n") }
}
