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
        let is_known = |path: &PathBuf| {
            let has = |snapshot: &Snapshot| snapshot.entries.keys().any(|name| Path::new(name).starts_with(path));
            has(&way.target) || has(&way.now)
        };
        if let Some(path) = only.iter().find(|path| !is_known(path)) {
            self.give_up(&way)?;
            return Err(CheckpointError::NoSuchPath(path.clone()));
        }
        Ok(way)
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
                    left.push(Left { path, why: "it was changed afterwards".into() });
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
        let _project = self.lock_project(&project)?;
        let store = Store::open(&self.store())?;
        let target = store.load(&checkpoint.before)?;
        let after = checkpoint.after.as_ref().map(|commit| store.load(commit)).transpose()?;
        let id = store.new_id(&project.key);
        let mut now = Snapshot::default();
        let place = || Target { reference: project.reference(&id, "before"), message: note.message() };
        let mut wish = Wish::again(&target);
        if let Some(after) = &after {
            wish.again.extend(after.kept().map(Path::to_path_buf));
        }
        let refused = self.take(&store, &project, &wish, &mut now, |_, _| Some(place()))?;
        let (paths, mut left) = choose(&target, after.as_ref(), &now);
        let (steps, more) = restore::plan(&target, &now, paths.into_iter());
        left.extend(more);
        let added = |why: CheckpointError| Left {
            path: checkpoint.project.clone(),
            why: format!("what was added is not looked for: {why}"),
        };
        left.extend(refused.into_iter().map(added));
        Ok(Way { note, project, id, target, now, steps, left })
    }

    /// Does not go it after all.
    pub fn give_up(&self, way: &Way) -> Result<(), CheckpointError> {
        let Some(store) = Store::existing(&self.store()) else { return Ok(()) };
        store.point(&[(&way.project.reference(&way.id, "before"), None)])
    }

    /// Goes it. What is put back can be taken back again.
    pub fn go(&self, way: Way) -> Result<Gone, CheckpointError> {
        let _store = self.lock_store(Sharing::Shared, Instant::now() + WAIT)?;
        let _project = self.lock_project(&way.project)?;
        let store = Store::open(&self.store())?;
        let (done, failed) = restore::apply(&way.steps, &way.now, &mut store.contents()?);
        if done.is_empty() {
            store.point(&[(&way.project.reference(&way.id, "before"), None)])?;
            return Ok(Gone { id: way.id, done, left: way.left.into_iter().chain(failed).collect() });
        }
        let mut after = Snapshot::default();
        let place = |after: &Snapshot| Target {
            reference: way.project.reference(&way.id, "after"),
            message: Totals::of(&between(&way.now, after)).message(),
        };
        self.take(&store, &way.project, &Wish::again(&way.now), &mut after, |after, _| Some(place(after)))?;
        if let Some(undone) = &way.note.undoes {
            let mark = way.project.reference(undone, "undone");
            let before = store.references(&format!("{}/{undone}/before", way.project.key))?;
            let mut changes: Vec<(&str, Option<&str>)> = Vec::new();
            if let [before] = &before[..] {
                changes.push((&mark, Some(&before.commit)));
            }
            // Who takes an undo back has done again what was undone.
            let first = checkpoints(&before).pop().and_then(|checkpoint| checkpoint.undoes);
            let first = first.map(|first| way.project.reference(&first, "undone"));
            changes.extend(first.as_deref().map(|first| (first, None)));
            store.point(&changes)?;
        }
        let left = way.left.into_iter().chain(failed).collect();
        Ok(Gone { id: way.id, done, left })
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
            let diff = difference_of(&path, sides, withholds(&path), &mut contents)?;
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
    let lost = |path: &PathBuf| Left { path: path.clone(), why: "it was left out, and does not come back".into() };
    (hidden, gone.map(lost).collect())
}

/// What is on one side of a difference: nothing, a content with its name, or what is no content.
type Side = Option<Result<(Vec<u8>, Blob), &'static str>>;

fn difference_of(
    path: &Path,
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
        (Some(old), Some(new)) => Ok(of_texts(&path.display().to_string(), old.as_deref(), new.as_deref())),
        _ => summary(words),
    }
}
