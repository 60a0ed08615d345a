//! `hermes processes list`.

use std::time::{Duration, SystemTime};

use hermes_core::{FinishedHow, ProcessState};
use hermes_exec::processes::{KEPT_AFTER_END, Record};
use serde_json::{Value, json};

use super::in_words;
use crate::session;
use crate::terminal::out;
use crate::terminal::screen::{Abilities, Stream};
use crate::terminal::text::{duration, one_line, padded, visible, width};
use crate::words::{Exit, Failure};
use crate::world::World;

pub(super) fn run(world: &World, all: bool, as_json: bool) -> Result<Exit, Failure> {
    let now = SystemTime::now();
    let known = Record::all(&session::processes_folder(world));
    let total = known.len();
    let mut shown: Vec<Record> = known.into_iter().filter(|record| all || is_news(record, now)).collect();
    // Running ones first, and of each kind the newest first.
    shown.reverse();
    shown.sort_by_key(|record| record.state != ProcessState::Running);
    if as_json {
        out::pretty(&Value::Array(shown.iter().map(|record| in_json(record, now)).collect()))?;
        return Ok(Exit::Done);
    }
    let earlier = total - shown.len();
    if shown.is_empty() {
        let why = match earlier {
            0 => "nothing runs in the background, and nothing that did is kept (agents start processes there)".into(),
            _ => format!("nothing runs, and nothing ended in the last half hour; {earlier} earlier (--all)"),
        };
        out::line(&why)?;
        return Ok(Exit::Done);
    }
    let columns = Abilities::of(Stream::Out, world).columns();
    let rows: Vec<[String; 5]> = shown.iter().map(|record| row(record, now)).collect();
    let heads = ["process", "state", "ran for", "owner", "command"];
    let widest = |at: usize| rows.iter().map(|row| width(&row[at])).chain([heads[at].len()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(widest).collect();
    let room = columns.saturating_sub(2 + widths.iter().sum::<usize>() + 2 * 4).max(8);
    let mut text = String::new();
    for cells in std::iter::once(&heads.map(str::to_owned)).chain(&rows) {
        text += "  ";
        for (cell, width) in cells.iter().zip(&widths) {
            text += &padded(cell, width + 2);
        }
        text += &format!("{}\n", one_line(&cells[4], room));
    }
    let running = shown.iter().filter(|record| record.state == ProcessState::Running).count();
    let ended = shown.len() - running;
    let since = if all { "over" } else { "over in the last half hour" };
    let earlier = if earlier > 0 { format!(", {earlier} earlier (--all)") } else { String::new() };
    text += &format!("{running} running, {ended} {since}{earlier}. hermes processes log|attach|kill ID\n");
    out::line(&text)?;
    Ok(Exit::Done)
}

/// Whether it runs or has ended only lately.
fn is_news(record: &Record, now: SystemTime) -> bool {
    record.state == ProcessState::Running
        || last_sign(record).is_some_and(|end| now.duration_since(end).unwrap_or_default() <= KEPT_AFTER_END)
}

/// When it ended; where nobody saw that, when it printed last.
fn last_sign(record: &Record) -> Option<SystemTime> {
    let printed = || std::fs::metadata(&record.log).and_then(|metadata| metadata.modified()).ok();
    record.ended.or_else(printed)
}

fn ran_for(record: &Record, now: SystemTime) -> Duration {
    let until = if record.state == ProcessState::Running { Some(now) } else { last_sign(record) };
    until.and_then(|until| until.duration_since(record.started).ok()).unwrap_or_default()
}

fn row(record: &Record, now: SystemTime) -> [String; 5] {
    let ran = ran_for(record, now);
    // Of what took minutes nobody wants the milliseconds, of what took days not the seconds.
    let ran = match ran.as_secs() {
        0..3_600 => duration(ran),
        seconds @ 3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        seconds => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    };
    [visible(&record.id), in_words(record.state), ran, record.owner_pid.to_string(), record.facts.command.clone()]
}

fn in_json(record: &Record, now: SystemTime) -> Value {
    let (state, code, signal) = match record.state {
        ProcessState::Running => ("running", None, None),
        ProcessState::Ended(FinishedHow::Signalled(number)) => ("killed", None, Some(number)),
        ProcessState::Ended(how) => ("exited", Some(how.exit_code()), None),
        ProcessState::Lost => ("lost", None, None),
    };
    let time = |time: SystemTime| chrono::DateTime::<chrono::Utc>::from(time).to_rfc3339();
    json!({
        "id": record.id,
        "state": state,
        "exit_code": code,
        "signal": signal,
        "started": time(record.started),
        "ended": record.ended.map(time),
        "seconds": ran_for(record, now).as_secs_f64(),
        "owner": record.owner,
        "owner_pid": record.owner_pid,
        "command": record.facts.command,
        "cwd": record.facts.cwd,
        "terminal": record.facts.terminal,
        "log": record.log,
    })
}
