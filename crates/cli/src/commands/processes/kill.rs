//! `hermes processes kill ID…`.
//!
//! "Ended" is said only when the supervisor has seen that nothing of the process is left.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use hermes_core::{ProcessState, plural};
use hermes_exec::processes::{Attached, Record};

use super::{find, in_words};
use crate::config::Config;
use crate::terminal::out;
use crate::terminal::text::{duration, one_line, visible};
use crate::words::{Exit, Failure};
use crate::world::World;

/// A wait that is longer is explained.
const QUIET: Duration = Duration::from_secs(1);

pub(super) async fn run(world: &World, ids: &[String]) -> Result<Exit, Failure> {
    // Nothing is ended before all of them are known.
    let mut records = ids.iter().map(|id| find(world, id)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    records.retain(|record| seen.insert(record.id.clone()));
    let grace = Config::load_and_warn(world)?.seconds("terminal.daemon_term_grace_seconds");
    let all = join_all(records.iter().map(|record| end(record, grace)));
    tokio::pin!(all);
    let ends = tokio::select! {
        ends = &mut all => ends,
        () = tokio::time::sleep(QUIET) => {
            out::error(&format!("hermes: not all end by themselves; after {} they are ended by force", duration(grace)));
            all.await
        }
    };
    let mut exit = Exit::Done;
    for (record, end) in records.iter().zip(ends) {
        let said = match end {
            End::Ended => "ended".to_owned(),
            End::Over(state) => format!("was over already ({})", in_words(state)),
            End::Not(why) => {
                exit = Exit::Failed;
                visible(&why)
            }
        };
        out::line(&format!("{}  {said} · {}", visible(&record.id), one_line(&record.facts.command, 40)))?;
    }
    Ok(exit)
}

/// What became of one.
enum End {
    Ended,
    Over(ProcessState),
    Not(String),
}

async fn end(record: &Record, grace: Duration) -> End {
    match record.state {
        ProcessState::Running => {}
        over @ ProcessState::Ended(_) => return End::Over(over),
        ProcessState::Lost => {
            return End::Not("is lost: what may be left of it is ended by hermes processes reap".into());
        }
    }
    let killed = match Attached::connect(record) {
        Ok(attached) => attached.kill(grace).await,
        Err(error) => Err(error),
    };
    match killed {
        Ok(0) => End::Ended,
        Ok(left) => End::Not(format!("would not go: {} left", plural(left, "process"))),
        Err(error) => match record.again().map(|record| record.state) {
            Some(over @ ProcessState::Ended(_)) => End::Over(over),
            _ => End::Not(format!("could not be reached: {error}")),
        },
    }
}
