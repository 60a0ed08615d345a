//! The ways back: what would be put back is worked out first, can be looked at, and is then done or given up.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::difference::{Change, Changed, between, same};
use super::notes::{Note, checkpoints, note_of};
use super::restore::{self, Step};
use super::snapshot::{Blob, Entry, Known, Snapshot};
use super::store::{self, Sharing, Store};
use super::{Checkpoint, CheckpointError, Checkpoints, Left, Project, Purpose, Target, Totals, WAIT, Wish};
use crate::rehearsal::Diff;
use crate::rehearsal::diff::{MOST_BYTES, of_texts};

/// What would be put back: shown to somebody first, then gone with [`Checkpoints::go`] or given up.
#[derive(Debug)]
pub struct Way {
    note: Note,
    project: Project,
    id: String,
    target: Snapshot,
    now: Snapshot,
    steps: BTreeMap<PathBuf, Step>,
    /// What stays as it is, with the reasons.
    pub left: Vec<Left>,
}

impl Way {
    /// The paths that would be put back, and what would happen to each. Folders that only hold some of them are not named.
    pub fn changes(&self) -> Vec<(PathBuf, Change)> {
        self.named(&self.now, &self.target).into_iter().map(|one| (one.path, one.change)).collect()
    }

    fn named(&self, old: &Snapshot, new: &Snapshot) -> Vec<Changed> {
        let mut named: Vec<Changed> = between(old, new);
        named.retain(|one| self.steps.contains_key(&one.path));
        let holds: HashSet<PathBuf> = named.iter().filter_map(|one| one.path.parent()).map(Path::to_path_buf).collect();
        let comes_or_goes = |change: Change| matches!(change, Change::Added | Change::Removed);
        named.retain(|one| !(comes_or_goes(one.change) && holds.contains(&one.path)));
        named
    }
}

/// What was put back.
#[derive(Debug)]
pub struct Gone {
    /// The checkpoint by which this can be undone.
    pub id: String,
    /// What is as it was.
    pub done: Vec<PathBuf>,
    /// What is not, and why.
    pub left: Vec<Left>,
    /// Why nobody will be able to tell these changes from later ones: what was left was not kept.
    pub not_closed: Option<String>,
}

/// What came of an undo.
#[derive(Debug)]
pub enum TakenBack {
    /// There is none, or nothing is left of what any of them changed.
    Nothing,
    /// What the turn left was not kept, so nobody can tell its changes from others.
    Unclosed(Checkpoint),
    /// This one was taken back.
    Done {
        /// The turn, or the undo.
        checkpoint: Checkpoint,
        /// What was to be put back.
        changes: Vec<(PathBuf, Change)>,
        /// What was.
        gone: Gone,
    },
}

impl Checkpoints {
    /// The way back to what the files were when `checkpoint` began: everything since then, whoever did it. `only`: these
    /// paths and what is in them; all of them if it is empty.
    pub fn way_to(&self, checkpoint: &Checkpoint, only: &[PathBuf]) -> Result<Way, CheckpointError> {
        let note = Note {
            purpose: Purpose::Restore,
            reason: format!("back to {}", checkpoint.id),
            undoes: None,
            ..note_of(checkpoint)
        };
        let wanted = |path: &Path| only.is_empty() || only.iter().any(|only| path.starts_with(only));
        let way = self.way(checkpoint, note, |before, _, now| {
            let changed = between(before, now).into_iter().map(|change| change.path);
            let (kept, lost) = unseen(before, now);
            (
                changed.chain(kept).filter(|path| wanted(path)).collect(),
                lost.into_iter().filter(|left| wanted(&left.path)).collect(),
            )
        })?;
        let unknown = |path: &PathBuf| {
            let has = |snapshot: &Snapshot| snapshot.entries.keys().any(|name| Path::new(name).starts_with(path));
            let keeps = has(&way.target) || has(&way.now) && way.target.at(path) == Known::NotThere;
            match (way.target.at(path), way.now.at(path)) {
                _ if keeps => None,
                (Known::NotThere, Known::NotThere) => Some(CheckpointError::NoSuchPath(path.clone())),
                _ => Some(CheckpointError::NotKept(path.clone())),
            }
        };
        if let Some(error) = only.iter().find_map(unknown) {
            self.give_up(&way)?;
            return Err(error);
        }
        Ok(way)
    }

    /// Takes back the last turn of a conversation of which there is anything left to take back; `again`: the last undo.
    /// What it looks at on the way counts as taken back, so that the next call comes further. `stop` is asked between files.
    pub fn take_back(&self, task: &str, again: bool, stop: &dyn Fn() -> bool) -> Result<TakenBack, CheckpointError> {
        let purpose = if again { Purpose::Undo } else { Purpose::Turn };
        let fits = |one: &Checkpoint| one.purpose == purpose && !one.is_undone && one.task == task;
        loop {
            let Some(checkpoint) = self.list(None)?.into_iter().rev().find(fits) else {
                return Ok(TakenBack::Nothing);
            };
            if checkpoint.totals.is_none() {
                let _store = self.lock_store(Sharing::Shared, Instant::now() + WAIT)?;
                let mark = Project { key: checkpoint.key.clone() }.reference(&checkpoint.id, "undone");
                Store::open(&self.store())?.point(&[(&mark, Some(&checkpoint.before))])?;
                return Ok(TakenBack::Unclosed(checkpoint));
            }
            let way = self.way_back(&checkpoint)?;
            let changes = way.changes();
            let gone = self.go_until(way, stop)?;
            if !(changes.is_empty() && gone.done.is_empty() && gone.left.is_empty()) {
                return Ok(TakenBack::Done { checkpoint, changes, gone });
            }
        }
    }

    /// The way back from what the turn of `checkpoint` did, and from nothing else.
    pub fn way_back(&self, checkpoint: &Checkpoint) -> Result<Way, CheckpointError> {
        let purpose = if checkpoint.purpose == Purpose::Undo { Purpose::Redo } else { Purpose::Undo };
        let note = Note { purpose, undoes: Some(checkpoint.id.clone()), ..note_of(checkpoint) };
        self.way(checkpoint, note, |before, after, now| {
            let (kept, lost) = unseen(before, now);
            let Some(after) = after else {
                return (between(before, now).into_iter().map(|change| change.path).chain(kept).collect(), lost);
            };
            // What was left out before and is gone since the turn.
            let is_of_the_turn = |left: &Left| after.at(&left.path) == Known::NotThere;
            let mut left: Vec<Left> = lost.into_iter().filter(is_of_the_turn).collect();
            let mut paths = Vec::new();
            for Changed { path, .. } in between(before, after) {
                if same(after, now, &path) {
                    paths.push(path);
                } else if !same(before, now, &path) {
                    left.push(Left { path, said: Left::stays("it was changed afterwards") });
                }
            }
            (paths, left)
        })
    }

    fn way(
        &self,
        checkpoint: &Checkpoint,
        note: Note,
        choose: impl FnOnce(&Snapshot, Option<&Snapshot>, &Snapshot) -> (Vec<PathBuf>, Vec<Left>),
    ) -> Result<Way, CheckpointError> {
        let project = Project { key: checkpoint.key.clone() };
        let _store = self.lock_store(Sharing::Shared, Instant::now() + WAIT)?;
        let lock = self.lock_project(&project)?;
        let store = Store::open(&self.store())?;
        let target = store.load(&checkpoint.before)?;
        let after = checkpoint.after.as_ref().map(|commit| store.load(commit)).transpose()?;
        let id = store.new_id(&project.key, &lock);
        let mut now = Snapshot::default();
        let place = || Target { reference: project.reference(&id, "look"), message: note.message() };
        let mut wish = Wish::again(&target);
        if let Some(after) = &after {
            wish.again.extend(after.kept().map(Path::to_path_buf));
        }
        let refused = self.take(&store, &project, &wish, &mut now, |_, _| Some(place()))?;
        let (paths, mut left) = choose(&target, after.as_ref(), &now);
        // Nothing of Hermes itself is ever put back, whatever was kept of it.
        let (own, paths) = paths.into_iter().partition(|path| self.own.iter().any(|own| path.starts_with(own)));
        let of_hermes = |path| Left { path, said: Left::stays("it is Hermes's own") };
        left.extend(Vec::into_iter(own).map(of_hermes));
        let (steps, more) = restore::plan(&target, &now, Vec::into_iter(paths));
        left.extend(more);
        let added = |why: CheckpointError| Left {
            path: checkpoint.project.clone(),
            said: format!("may have new files that stay: {why}"),
        };
        left.extend(refused.into_iter().map(added));
        Ok(Way { note, project, id, target, now, steps, left })
    }

    /// Does not go it after all.
    pub fn give_up(&self, way: &Way) -> Result<(), CheckpointError> {
        let Some(store) = Store::existing(&self.store()) else { return Ok(()) };
        let _store = self.lock_store(Sharing::Shared, Instant::now() + WAIT)?;
        store.point(&[(&way.project.reference(&way.id, "look"), None)])
    }

    /// Goes it. What is put back can be taken back again.
    pub fn go(&self, way: Way) -> Result<Gone, CheckpointError> {
        self.go_until(way, &|| false)
    }

    /// The same. `stop` is asked between files; what remains then stays as it is.
    fn go_until(&self, way: Way, stop: &dyn Fn() -> bool) -> Result<Gone, CheckpointError> {
        let _store = self.lock_store(Sharing::Shared, Instant::now() + WAIT)?;
        let _project = self.lock_project(&way.project)?;
        let store = Store::open(&self.store())?;
        let (look, before) = (way.project.reference(&way.id, "look"), way.project.reference(&way.id, "before"));
        let looked = store.references(&format!("{}/{}/look", way.project.key, way.id))?;
        let [looked] = &looked[..] else { return Err(CheckpointError::Unknown(way.id)) };
        store.point(&[(&before, Some(&looked.commit)), (&look, None)])?;
        let applied = restore::apply(&way.steps, &way.now, &mut store.contents()?, stop);
        // Who stopped may go on. Whatever else stands in the way of a file must not stand in the way of all earlier turns.
        let marked = match &way.note.undoes {
            Some(undone) if !applied.stopped => Self::mark(&store, &way.project, undone),
            _ => Ok(()),
        };
        let left = way.left.iter().cloned().chain(applied.left).collect();
        let mut gone = Gone { id: way.id.clone(), done: applied.done, left, not_closed: None };
        if !applied.touched {
            marked?;
            store.point(&[(&before, None)])?;
            return Ok(gone);
        }
        let mut after = Snapshot::default();
        let place = |after: &Snapshot| Target {
            reference: way.project.reference(&way.id, "after"),
            message: Totals::of(&between(&way.now, after)).message(),
        };
        let closed = self.take(&store, &way.project, &Wish::again(&way.now), &mut after, |after, _| Some(place(after)));
        // The files are as they are; an error would say that nothing had happened.
        gone.not_closed = closed.map(|_| ()).and(marked).err().map(|error| error.to_string());
        Ok(gone)
    }

    /// Writes down that a turn, or an undo, was taken back.
    fn mark(store: &Store, project: &Project, undone: &str) -> Result<(), CheckpointError> {
        let mark = project.reference(undone, "undone");
        let before = store.references(&format!("{}/{undone}/before", project.key))?;
        let mut changes: Vec<(&str, Option<&str>)> = Vec::new();
        if let [before] = &before[..] {
            changes.push((&mark, Some(&before.commit)));
        }
        // Who takes an undo back has done again what was undone.
        let first = checkpoints(&before).pop().and_then(|checkpoint| checkpoint.undoes);
        let first = first.map(|first| project.reference(&first, "undone"));
        changes.extend(first.as_deref().map(|first| (first, None)));
        store.point(&changes)
    }

    /// What would be taken back, path by path: how the files came to be what they are now. What is withheld is not quoted.
    pub fn differences(
        &self,
        way: &Way,
        withholds: impl Fn(&Path) -> bool,
    ) -> Result<Vec<(PathBuf, Change, Diff)>, CheckpointError> {
        let store = Store::open(&self.store())?;
        let mut contents = store.contents()?;
        let mut all = Vec::new();
        for Changed { path, change } in way.named(&way.target, &way.now) {
            let sides = (way.target.at(&path), way.now.at(&path));
            let diff = difference_of(sides, withholds(&path), &mut contents)?;
            all.push((path, change, diff));
        }
        Ok(all)
    }
}

/// What `before` knows and nobody can look at now, and what it knew to be there without keeping it and is gone.
fn unseen(before: &Snapshot, now: &Snapshot) -> (Vec<PathBuf>, Vec<Left>) {
    let paths = before.entries.keys().map(Path::new);
    let hidden = paths.filter(|path| now.at(path) == Known::Nothing).map(Path::to_path_buf).collect();
    let is_gone =
        |path: &Path| std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let skipped = before.areas.values().flat_map(|area| &area.skipped);
    let gone = skipped.filter(|path| before.at(path) == Known::Nothing && is_gone(path));
    let lost = |path: &PathBuf| Left { path: path.clone(), said: Left::is_gone("it was left out") };
    (hidden, gone.map(lost).collect())
}

/// What is on one side of a difference: nothing, a content with its name, or what is no content.
type Side = Option<Result<(Vec<u8>, Blob), &'static str>>;

fn difference_of(
    (old, new): (Known<'_>, Known<'_>),
    is_withheld: bool,
    contents: &mut store::Contents,
) -> Result<Diff, CheckpointError> {
    let summary = |text: String| Ok(Diff::Summary { text });
    let mode = |known: Known<'_>| match known {
        Known::Here(Entry::File { mode, .. } | Entry::Folder { mode }) => Some(*mode),
        _ => None,
    };
    if let (Known::Here(Entry::File { blob: old_blob, .. }), Known::Here(Entry::File { blob: new_blob, .. })) =
        (old, new)
        && old_blob == new_blob
    {
        let modes = (mode(old).unwrap_or_default(), mode(new).unwrap_or_default());
        return summary(format!("permissions {:04o} → {:04o}", modes.0, modes.1));
    }
    let mut side = |known: Known<'_>| match known {
        Known::Here(Entry::File { blob, .. } | Entry::Link { blob }) => {
            contents.read(*blob).map(|bytes| Some(Ok((bytes, *blob))))
        }
        Known::Here(Entry::Folder { .. }) => Ok(Some(Err("a folder"))),
        Known::Here(Entry::LeftOut { why, .. }) => Ok(Some(Err(why.in_words()))),
        Known::NotThere | Known::Nothing => Ok(None),
    };
    let (old, new) = (side(old)?, side(new)?);
    let word = |side: &Side| match side {
        None => "nothing".to_owned(),
        Some(Ok((bytes, blob))) if is_withheld => format!("{} bytes ({:.12})", bytes.len(), blob.to_string()),
        Some(Ok((bytes, _))) => format!("{} bytes", bytes.len()),
        Some(Err(what)) => (*what).to_owned(),
    };
    let words = format!("{} → {}", word(&old), word(&new));
    if is_withheld {
        return summary(format!("not shown, it may hold secrets: {words}"));
    }
    let text = |side: &Side| match side {
        None => Some(None),
        Some(Ok((bytes, _))) if bytes.len() as u64 <= MOST_BYTES && !bytes.contains(&0) => {
            Some(Some(String::from_utf8_lossy(bytes).into_owned()))
        }
        Some(_) => None,
    };
    match (text(&old), text(&new)) {
        (Some(old), Some(new)) => Ok(of_texts(None, old.as_deref(), new.as_deref())),
        _ => summary(words),
    }
}
