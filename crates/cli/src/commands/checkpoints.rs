//! `hermes checkpoints list|diff|restore|prune`: what files were before turns changed them, and the way back.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hermes_core::{Judge as _, Redactor as _, grouped, plural, stated_path};
use hermes_exec::checkpoints::{Change, Checkpoint, CheckpointError, Checkpoints, Gone, Limits, Purpose, Totals};
use hermes_exec::files;
use serde_json::{Value, json};

use crate::approvals;
use crate::args::CheckpointsVerb;
use crate::config::Config;
use crate::terminal::out;
use crate::terminal::screen::{Abilities, Stream};
use crate::terminal::text::{one_line, padded, visible};
use crate::words::{Exit, Failure};
use crate::world::World;

/// Columns of a line in the list.
const COLUMNS: usize = 79;
/// How many paths are named when files are put back.
const NAMED: usize = 12;

pub(crate) fn run(world: &World, verb: CheckpointsVerb) -> Result<Exit, Failure> {
    let config = Config::load_and_warn(world)?;
    let checkpoints = kept(world, &config);
    match verb {
        CheckpointsVerb::List { all, json } => {
            let project = checkpoints.project(&world.cwd);
            let list = checkpoints.list((!all).then_some(&*project))?;
            if json.json {
                let list: Vec<Value> = list.iter().map(in_json).collect();
                out::pretty(&Value::Array(list))?;
            } else {
                out::line(&listed(world, &list, (!all).then_some(&*project)))?;
            }
        }
        CheckpointsVerb::Diff { id, paths } => {
            let checkpoint = match &id {
                Some(id) => checkpoints.find(id, &world.cwd)?,
                None => latest(world, &checkpoints)?,
            };
            diff(world, &config, &checkpoints, &checkpoint, &real(world, &paths))?;
        }
        CheckpointsVerb::Restore { id, paths } => {
            let checkpoint = checkpoints.find(&id, &world.cwd)?;
            let way = checkpoints.way_to(&checkpoint, &real(world, &paths))?;
            let changes = way.changes();
            let gone = checkpoints.go(way)?;
            let head = format!("Back to {}:", checkpoint.id);
            out::line(&told(world, &head, &checkpoint.project, &changes, &gone).join("\n"))?;
            if !gone.done.is_empty() {
                out::line(&format!("hermes checkpoints restore {} takes this back.", gone.id))?;
            }
            let is_whole = gone.left.is_empty() && gone.not_closed.is_none();
            return Ok(if is_whole { Exit::Done } else { Exit::Partial });
        }
        CheckpointsVerb::Prune => {
            let pruned = checkpoints.prune(SystemTime::now())?;
            let (before, after) = pruned.bytes;
            let size = |bytes: u64| format!("{} kB", grouped(bytes.div_ceil(1000)));
            let given_up = plural(pruned.checkpoints, "checkpoint");
            out::line(&format!("Given up: {given_up}; {} on disk, {} before.", size(after), size(before)))?;
        }
    }
    Ok(Exit::Done)
}

/// The checkpoints of this user, within the limits of the configuration.
pub(crate) fn kept(world: &World, config: &Config) -> Checkpoints {
    const MB: u64 = 1 << 20;
    let limits = Limits {
        checkpoints: usize::try_from(config.whole("checkpoints.max_snapshots")).unwrap_or(usize::MAX),
        total_bytes: config.whole("checkpoints.max_total_size_mb") * MB,
        file_bytes: config.whole("checkpoints.max_file_size_mb") * MB,
        age: Duration::from_secs(config.whole("checkpoints.retention_days") * 24 * 3600),
        ..Limits::default()
    };
    Checkpoints::new(&world.home.join("checkpoints"), &world.user_home, std::slice::from_ref(&world.home), limits)
}

/// Gives up what is outdated, if that was not done today, or there is too much and that was not found out within the hour.
/// Who has time waits for it.
pub(crate) fn prune_when_due(world: &World, config: &Config) -> tokio::task::JoinHandle<()> {
    const HOUR: Duration = Duration::from_secs(3600);
    let checkpoints = kept(world, config);
    let folder = world.home.join("checkpoints");
    tokio::task::spawn_blocking(move || {
        if !folder.is_dir() {
            return;
        }
        let mark = folder.join("pruned");
        let pruned = std::fs::metadata(&mark).and_then(|mark| mark.modified()).ok();
        let age = pruned.and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_none_or(|age| age > 24 * HOUR || age > HOUR && checkpoints.is_large()) {
            // What does not work now is tried again at the next start.
            let _ = checkpoints.prune(SystemTime::now()).map(|_| std::fs::write(&mark, b""));
        }
    })
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::Unknown(_)
            | CheckpointError::Ambiguous(_)
            | CheckpointError::NoSuchPath(_)
            | CheckpointError::NotKept(_) => Self::usage(visible(&error.to_string())),
            error => Self::new(visible(&error.to_string())),
        }
    }
}

/// The paths that a person means, as checkpoints know them. A link is meant itself, unless a `/` stands behind its name.
fn real(world: &World, paths: &[PathBuf]) -> Vec<PathBuf> {
    let real = |path: &PathBuf| {
        let leads_on = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let resolved = |path: &str| stated_path::resolve(path, &world.cwd, &world.user_home);
        let path = path.to_str().map_or_else(|| world.cwd.join(path), resolved);
        if leads_on && let Ok(real) = path.canonicalize() {
            return real;
        }
        let parent = path.parent().and_then(|parent| files::real_path(parent).ok());
        parent.zip(path.file_name()).map_or_else(|| path.clone(), |(parent, name)| parent.join(name))
    };
    paths.iter().map(real).collect()
}

fn latest(world: &World, checkpoints: &Checkpoints) -> Result<Checkpoint, Failure> {
    let project = checkpoints.project(&world.cwd);
    let last = checkpoints.list(Some(&project))?.pop();
    last.ok_or_else(|| Failure::new(format!("there is no checkpoint of {}", world.shown(&project))))
}

fn listed(world: &World, list: &[Checkpoint], project: Option<&Path>) -> String {
    if list.is_empty() {
        return match project {
            Some(project) => format!(
                "There is no checkpoint of {}. The first turn that changes files makes one.",
                world.shown(project)
            ),
            None => "There is no checkpoint.".to_owned(),
        };
    }
    let mut text = String::new();
    let mut before: Option<&Path> = None;
    let mut sorted: Vec<&Checkpoint> = list.iter().collect();
    sorted.sort_by(|left, right| (&left.project, &left.id).cmp(&(&right.project, &right.id)));
    for checkpoint in sorted {
        if before != Some(&checkpoint.project) {
            text += &format!("{}\n", visible(&world.shown(&checkpoint.project)));
            before = Some(&checkpoint.project);
        }
        let at = chrono::DateTime::<chrono::Local>::from(checkpoint.at).format("%Y-%m-%d %H:%M");
        let totals = checkpoint.totals.map_or_else(|| "?".to_owned(), in_few_letters);
        let line = format!("{}  {at}  {}  {}", checkpoint.id, padded(&totals, 11), what(checkpoint));
        text += &format!("  {}\n", one_line(&visible(&line), COLUMNS - 2).trim_end());
    }
    text += "hermes checkpoints diff ID shows what has changed since; restore ID puts the files back.";
    text
}

fn in_few_letters(totals: Totals) -> String {
    let counts = [('+', totals.added), ('~', totals.changed), ('−', totals.removed)];
    let said: Vec<String> =
        counts.iter().filter(|(_, count)| *count > 0).map(|(sign, count)| format!("{sign}{count}")).collect();
    said.join(" ")
}

/// What a checkpoint was made for, in a few words.
fn what(checkpoint: &Checkpoint) -> String {
    let verb = match checkpoint.purpose {
        Purpose::Turn | Purpose::Restore => "",
        Purpose::Undo => "undo: ",
        Purpose::Redo => "redo: ",
    };
    let undone = if checkpoint.is_undone { "(undone) " } else { "" };
    format!("{undone}{verb}{}", checkpoint.reason)
}

fn in_json(checkpoint: &Checkpoint) -> Value {
    json!({
        "id": checkpoint.id,
        "project": checkpoint.project,
        "at": checkpoint.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        "purpose": checkpoint.purpose,
        "reason": checkpoint.reason,
        "task": checkpoint.task,
        "undone": checkpoint.is_undone,
        "changes": checkpoint.totals,
    })
}

fn diff(
    world: &World,
    config: &Config,
    checkpoints: &Checkpoints,
    checkpoint: &Checkpoint,
    paths: &[PathBuf],
) -> Result<(), Failure> {
    let guard = approvals::guard(world, config)?;
    let secrets = approvals::secrets(world, config);
    let way = checkpoints.way_to(checkpoint, paths)?;
    let shown = checkpoints.differences(&way, |path| guard.withholds(path, path).is_some());
    checkpoints.give_up(&way)?;
    let colour = Abilities::of(Stream::Out, world).colour;
    let mut text = String::new();
    for (path, change, diff) in shown? {
        let name = path
            .strip_prefix(&checkpoint.project)
            .map_or_else(|_| world.shown(&path), |path| path.display().to_string());
        text += &painted(colour, "1", &format!("{} {}", change.letter(), on_one_line(&name)));
        text.push('\n');
        for line in secrets.redact(&diff.to_string()).lines() {
            text += &coloured(colour, &visible(line));
            text.push('\n');
        }
    }
    for left in &way.left {
        text += &format!("! {} {}\n", on_one_line(&world.shown(&left.path)), left.said);
    }
    if text.is_empty() {
        text = format!("Nothing has changed since {}.", checkpoint.id);
    }
    Ok(out::line(&text)?)
}

/// A name as it may stand in a line: also a line end in it is shown.
fn on_one_line(name: &str) -> String {
    visible(name).replace('\n', "\\n")
}

/// A line of a difference in its colour.
fn coloured(colour: bool, line: &str) -> String {
    let style = match line.as_bytes().first() {
        Some(b'+') => "32",
        Some(b'-') => "31",
        Some(b'@') => "36",
        _ => return line.to_owned(),
    };
    painted(colour, style, line)
}

fn painted(colour: bool, style: &str, text: &str) -> String {
    if colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
}

/// What was put back, in a line each below `head`.
pub(crate) fn told(
    world: &World,
    head: &str,
    project: &Path,
    changes: &[(PathBuf, Change)],
    gone: &Gone,
) -> Vec<String> {
    let name = |path: &Path| {
        let inside = path.strip_prefix(project).ok().filter(|inside| !inside.as_os_str().is_empty());
        on_one_line(&inside.map_or_else(|| world.shown(path), |inside| inside.display().to_string()))
    };
    if gone.done.is_empty() && gone.left.is_empty() && gone.not_closed.is_none() {
        return vec!["The files are what they were; nothing was to be done.".to_owned()];
    }
    let mut lines = vec![head.to_owned()];
    let all: HashSet<&PathBuf> = gone.done.iter().collect();
    let done: Vec<&(PathBuf, Change)> = changes.iter().filter(|(path, _)| all.contains(path)).collect();
    for (path, change) in done.iter().take(NAMED) {
        let verb = match change {
            Change::Added => "brought back",
            Change::Removed => "removed",
            Change::Changed | Change::Kind => "as before",
            Change::Mode => "permissions",
        };
        lines.push(format!("  {}  {}", padded(verb, 12), name(path)));
    }
    if done.len() > NAMED {
        lines.push(format!("  … and {} more", done.len() - NAMED));
    }
    for left in &gone.left {
        lines.push(format!("  ! {} {}", name(&left.path), left.said));
    }
    if let Some(why) = &gone.not_closed {
        lines.push(format!("  ! what the files are now was not kept: {}", visible(why)));
    }
    lines
}
