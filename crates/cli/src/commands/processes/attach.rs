//! `hermes processes attach ID`: the person takes a process over.
//!
//! With a terminal, its screen is drawn from its log and keys go to it as they are pressed. Without one, its output is
//! printed and lines go to its input. In both, Ctrl-] leaves, as in telnet: no program of any use needs that key. What the
//! process prints is read from its log; the supervisor only says when there is more.

use std::io::IsTerminal as _;

use hermes_core::{InputError, ProcessState, TerminalSize};
use hermes_exec::processes::{Attached, Lines, Output, Record};
use nix::sys::termios::{SetArg, SpecialCharacterIndices, tcgetattr, tcsetattr};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};

use super::log::{Page, connected, print};
use super::{find, in_words};
use crate::terminal::mirror::Mirror;
use crate::terminal::out;
use crate::terminal::screen::{Abilities, Stream};
use crate::terminal::signals::Signals;
use crate::terminal::text::{harmless, one_line, visible};
use crate::words::{Exit, Failure};
use crate::world::World;

/// Ctrl-].
const LEAVE: u8 = 0x1d;
/// How far back a screen is drawn from.
const FARTHEST_BACK: u64 = 4 * 1024 * 1024;
/// What a process without a terminal printed last, shown when one comes to it.
const LINES_BEFORE: usize = 20;

pub(super) async fn run(world: &World, id: &str) -> Result<Exit, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage(format!(
            "attach needs a terminal; to read what it prints: hermes processes log {} --follow",
            one_line(id, 40)
        )));
    }
    let record = find(world, id)?;
    let attached = match record.state {
        ProcessState::Running => connected(&record)?,
        _ => None,
    };
    let Some(attached) = attached else {
        let state = record.again().map_or(record.state, |record| record.state);
        return Err(Failure::new(format!("{0} is over: {1} (hermes processes log {0})", record.id, in_words(state))));
    };
    let signals = Signals::listen();
    let left = if record.facts.terminal {
        by_keys(&record, &attached, &signals).await?
    } else {
        by_lines(world, &record, &attached, &signals).await?
    };
    if left == Left::AtItsEnd {
        let state = record.again().map_or(ProcessState::Lost, |record| record.state);
        out::line(&format!("{} is over: {}", visible(&record.id), in_words(state)))?;
        return Ok(Exit::Done);
    }
    out::line(&format!("{0} runs on (hermes processes attach {0})", visible(&record.id)))?;
    Ok(if left == Left::BySignal { Exit::Interrupted } else { Exit::Done })
}

/// Why one has left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    ByKey,
    BySignal,
    AtItsEnd,
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn cannot_follow(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot show the process any longer: {error}; it runs on"))
}

/// A process with a terminal.
async fn by_keys(record: &Record, attached: &Attached, signals: &Signals) -> Result<Left, Failure> {
    let cancel = signals.begin();
    let before = attached.size().await.map_err(cannot_follow)?.unwrap_or_default();
    let mut output = Output::of(record).map_err(cannot_follow)?;
    output.skip_to_last_bytes(FARTHEST_BACK).map_err(cannot_follow)?;
    let mut resized = signal(SignalKind::window_change()).map_err(cannot_follow)?;
    let mut keys = tokio::io::stdin();
    let mut typed = [0; 4096];

    let name = visible(&record.id);
    out::line(&format!("{name} · Ctrl-] leaves, and it runs on"))?;
    let says = format!("{name} · Ctrl-] leaves · {}", record.facts.command);
    let printed = std::iter::from_fn(|| output.read().ok().filter(|bytes| !bytes.is_empty()));
    let mut mirror = Mirror::new(before, printed, &says).map_err(cannot_follow)?;
    attached.resize(mirror.fit().map_err(cannot_follow)?);
    let left = loop {
        tokio::select! {
            more = attached.output() => {
                loop {
                    let bytes = output.read().map_err(cannot_follow)?;
                    if bytes.is_empty() {
                        break;
                    }
                    mirror.show(&bytes).map_err(cannot_follow)?;
                }
                if more.is_none() {
                    break Left::AtItsEnd;
                }
            }
            read = keys.read(&mut typed) => {
                let typed = &typed[..read.map_err(cannot_follow)?];
                let leave = typed.iter().position(|key| *key == LEAVE);
                let theirs = &typed[..leave.unwrap_or(typed.len())];
                // One that has just ended says so itself; one that does not read for long misses keys, as on a
                // terminal.
                let _ = attached.write(theirs).await;
                if leave.is_some() || typed.is_empty() {
                    break Left::ByKey;
                }
            }
            _ = resized.recv() => attached.resize(mirror.fit().map_err(cannot_follow)?),
            () = cancel.cancelled() => break Left::BySignal,
        }
    };
    // Its conversation looks at a terminal of that size.
    give_back(attached, before);
    let last = mirror.lines();
    drop(mirror);
    if left == Left::AtItsEnd {
        // The screen is gone with the process, and what it said last may be what matters.
        last.iter().try_for_each(|line| out::line(&harmless(line)))?;
    }
    Ok(left)
}

fn give_back(attached: &Attached, size: TerminalSize) {
    if size.rows > 0 && size.columns > 0 {
        attached.resize(size);
    }
}

/// A process without a terminal.
async fn by_lines(world: &World, record: &Record, attached: &Attached, signals: &Signals) -> Result<Left, Failure> {
    let cancel = signals.begin();
    let takes_input = attached.takes_input().await;
    let name = visible(&record.id);
    let input = match takes_input {
        Ok(()) => "your lines go to it, Ctrl-D ends its input".to_owned(),
        Err(error) => error.to_string(),
    };
    out::line(&format!("{name} has no terminal: {input}\nCtrl-] leaves, and it runs on"))?;
    let mut output = Output::of(record).map_err(cannot_follow)?;
    output.skip_to_last(LINES_BEFORE).map_err(cannot_follow)?;
    let colours = Abilities::of(Stream::Out, world).colour;
    let mut page = Page { output, lines: Lines::of(record, colours, true) };
    page.print()?;
    // The terminal is restored by whoever runs us.
    end_lines_with_leave().map_err(cannot_follow)?;
    let mut refuses = takes_input.err();
    let mut lines = tokio::io::stdin();
    let mut typed = [0; 4096];
    loop {
        tokio::select! {
            more = attached.output() => {
                page.print()?;
                print(&page.lines.rest())?;
                if more.is_none() {
                    return Ok(Left::AtItsEnd);
                }
            }
            read = lines.read(&mut typed) => {
                let typed = &typed[..read.map_err(cannot_follow)?];
                if typed.last() == Some(&LEAVE) {
                    out::line("")?;
                    return Ok(Left::ByKey);
                }
                let sent = match (refuses, typed.is_empty()) {
                    // There is nothing left to be said to it.
                    (Some(_), true) => return Ok(Left::ByKey),
                    (Some(error), false) => Err(error),
                    (None, true) => {
                        refuses = Some(InputError::Closed);
                        attached.close_input().await
                    }
                    (None, false) => attached.write(typed).await.map(drop),
                };
                if let Err(error) = sent {
                    out::error(&format!("hermes: that did not arrive: {error}"));
                }
            }
            () = cancel.cancelled() => {
                // What a terminal shows for Ctrl-C has no line of its own.
                out::line("")?;
                return Ok(Left::BySignal);
            }
        }
    }
}

/// Makes Ctrl-] end a line, so that it arrives without Enter.
fn end_lines_with_leave() -> std::io::Result<()> {
    let mut settings = tcgetattr(std::io::stdin())?;
    settings.control_chars[SpecialCharacterIndices::VEOL as usize] = LEAVE;
    Ok(tcsetattr(std::io::stdin(), SetArg::TCSANOW, &settings)?)
}
