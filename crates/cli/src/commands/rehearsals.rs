//! `hermes rehearsals list|undo|discard`: what was rehearsed and committed, and the way back from it.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use hermes_exec::local::{CommittedRehearsal, recover_commits};
use serde_json::{Value, json};

use crate::args::RehearsalsVerb;
use crate::terminal::out;
use crate::terminal::text::{one_line, visible};
use crate::words::{Exit, Failure};
use crate::world::World;

/// Columns of a line in the list.
const COLUMNS: usize = 79;

pub(crate) fn run(world: &World, verb: RehearsalsVerb) -> Result<Exit, Failure> {
    let undo = folder(world);
    recover(world);
    match verb {
        RehearsalsVerb::List { json } => list(world, &CommittedRehearsal::all(&undo), json.json)?,
        RehearsalsVerb::Undo { name } => {
            let committed = find(world, name.as_deref())?;
            committed.undo(&undo).map_err(Failure::new)?;
            out::line(&format!("Taken back: {}", said(world, &committed)))?;
        }
        RehearsalsVerb::Discard { name, all } => {
            let chosen = if all { CommittedRehearsal::all(&undo) } else { vec![find(world, name.as_deref())?] };
            for committed in &chosen {
                committed.discard(&undo).map_err(Failure::new)?;
                out::line(&format!("Kept for good: {}", said(world, committed)))?;
            }
            if chosen.is_empty() {
                out::line("There is nothing to discard.")?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Where what can be taken back is kept.
pub(crate) fn folder(world: &World) -> PathBuf {
    world.home.join("rehearsals").join("undo")
}

/// Brings to an end what a crash interrupted, and says what.
pub(crate) fn recover(world: &World) {
    for said in recover_commits(&folder(world), SystemTime::now()) {
        out::error(&format!("hermes: {}", visible(&said)));
    }
}

/// The one that is meant; the latest if nobody says which.
fn find(world: &World, name: Option<&str>) -> Result<CommittedRehearsal, Failure> {
    let mut all = CommittedRehearsal::all(&folder(world));
    let Some(name) = name else {
        return all.pop().ok_or_else(|| Failure::new("no rehearsal was committed that could be taken back"));
    };
    let mut fitting = all.into_iter().filter(|committed| committed.name.starts_with(name));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Failure::usage(format!("no rehearsal {name:?} (hermes rehearsals list)"))),
        (Some(_), Some(_)) => {
            Err(Failure::usage(format!("{name:?} is the beginning of several (hermes rehearsals list)")))
        }
    }
}

fn list(world: &World, all: &[CommittedRehearsal], as_json: bool) -> Result<(), Failure> {
    if as_json {
        let all: Vec<Value> = all.iter().map(in_json).collect();
        return Ok(out::pretty(&Value::Array(all))?);
    }
    if all.is_empty() {
        return Ok(out::line("No rehearsal was committed that could be taken back.")?);
    }
    let mut text = String::new();
    for committed in all {
        text += &format!("{}\n", one_line(&format!("{}  {}", committed.name, said(world, committed)), COLUMNS));
        for line in &committed.lines {
            text += &format!("    {}\n", visible(line));
        }
    }
    text += "hermes rehearsals undo [NAME] takes one back; discard gives up the way back.";
    Ok(out::line(&text)?)
}

/// One in a line.
fn said(world: &World, committed: &CommittedRehearsal) -> String {
    let at = chrono::DateTime::<chrono::Local>::from(committed.at).format("%Y-%m-%d %H:%M");
    let command = committed.command.trim().lines().next().unwrap_or_default();
    visible(&format!("{command}  (in {}, {at})", world.shown(&committed.workspace)))
}

fn in_json(committed: &CommittedRehearsal) -> Value {
    let since = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    json!({
        "name": committed.name,
        "workspace": committed.workspace,
        "command": committed.command,
        "committed_at": since(committed.at),
        "changes": committed.lines,
    })
}
