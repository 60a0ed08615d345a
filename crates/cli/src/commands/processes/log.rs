//! `hermes processes log ID`: what a process printed, for a person or the next program.
//!
//! What it printed is nobody's word but its own, so it never reaches a terminal as it is: escape sequences can redraw
//! what stands above, fill the clipboard, or make a terminal type an answer. On a terminal colours are left of them
//! (unless `NO_COLOR` is set), elsewhere nothing is; a carriage return writes over its line as progress bars want it, and
//! what reorders text is spelt out. Whoever needs the bytes themselves finds their file with `list --json`.

use std::io::Write as _;
use std::time::Duration;

use hermes_core::{ProcessState, grouped};
use hermes_exec::processes::{Attached, Lines, Output, Record};

use super::in_words;
use crate::terminal::out;
use crate::terminal::screen::{Abilities, Stream};
use crate::terminal::signals::Signals;
use crate::terminal::text::harmless_in_colour;
use crate::words::{Exit, Failure};
use crate::world::World;

/// What `--follow` begins with.
const LINES_BEFORE: usize = 10;
/// A line that has not ended is shown when nothing comes for so long: it may be a question.
const QUIET: Duration = Duration::from_millis(300);

pub(super) async fn run(world: &World, record: &Record, lines: Option<u32>, follow: bool) -> Result<Exit, Failure> {
    let cannot_read = |error| Failure::new(format!("{}: {error}", world.shown(&record.log)));
    let mut output = Output::of(record).map_err(cannot_read)?;
    let lines = lines.map(|lines| usize::try_from(lines).unwrap_or(usize::MAX));
    match lines.or(follow.then_some(LINES_BEFORE)) {
        Some(lines) => output.skip_to_last(lines).map_err(cannot_read)?,
        None if output.position() > 0 => {
            out::error(&format!(
                "hermes: the first {} bytes of its output are not kept any more",
                grouped(output.position())
            ));
        }
        None => {}
    }
    let begins_at = output.position();
    // Listened to before the log is read to its end: what comes in between is not missed.
    let attached = if follow && record.state == ProcessState::Running { connected(record)? } else { None };
    let colours = Abilities::of(Stream::Out, world).colour;
    let mut page = Page { output, lines: Lines::of(record, colours, attached.is_some()) };
    page.print()?;
    if let Some(attached) = attached {
        let signals = Signals::listen();
        let cancel = signals.begin();
        loop {
            let pause = async {
                if page.lines.has_rest() {
                    tokio::time::sleep(QUIET).await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            let more = tokio::select! {
                more = attached.output() => more.is_some(),
                () = pause => {
                    print(&page.lines.rest())?;
                    continue;
                }
                () = cancel.cancelled() => return Ok(Exit::Interrupted),
            };
            page.print()?;
            if !more {
                break;
            }
        }
    }
    print(&page.lines.rest())?;
    if page.output.position() == begins_at {
        out::error(&format!("hermes: {} has not printed anything", record.id));
    }
    if follow {
        let state = record.again().map_or(ProcessState::Lost, |record| record.state);
        out::error(&format!("hermes: {} is over: {}", record.id, in_words(state)));
    }
    Ok(Exit::Done)
}

/// The connection to a running process; `None` if it has just ended.
pub(super) fn connected(record: &Record) -> Result<Option<Attached>, Failure> {
    match Attached::connect(record).and_then(|attached| attached.follow().map(|()| attached)) {
        Ok(attached) => Ok(Some(attached)),
        Err(_) if record.again().is_none_or(|record| record.state != ProcessState::Running) => Ok(None),
        Err(error) => Err(Failure::new(format!(
            "cannot reach what looks after {}: {error}; does it belong to another user?",
            record.id
        ))),
    }
}

/// The output of a process on its way to standard output.
pub(super) struct Page {
    pub(super) output: Output,
    pub(super) lines: Lines,
}

impl Page {
    /// Prints what is there by now, but for a line that has not ended.
    pub(super) fn print(&mut self) -> Result<(), Failure> {
        loop {
            let bytes = self.output.read().map_err(|error| Failure::new(format!("cannot read the log: {error}")))?;
            if bytes.is_empty() {
                return Ok(());
            }
            print(&self.lines.push(&bytes))?;
        }
    }
}

/// Prints what is left of a process's output.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(harmless_in_colour(text).as_bytes())?;
    Ok(out.flush()?)
}
