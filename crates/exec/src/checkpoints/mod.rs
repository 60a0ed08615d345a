//! Checkpoints: what files were before a turn changed them, and the way back.
//!
//! A checkpoint is a pair of snapshots, of what was there before the turn and of what the turn left. The second one is
//! what makes an undo polite: what somebody else changed afterwards is not what the turn left, so it stays and is named.
//! An undo is a checkpoint itself, and can be undone.
//!
//! [`snapshot`] is what is known of paths, [`take`] looks at them, [`policy`] says what is worth keeping, [`store`] is the
//! repository, [`difference`] compares, [`restore`] puts back, [`recorder`] sits in the life of a call. The decision record
//! is `docs/decisions/checkpoints.md`.

mod difference;
mod policy;
mod recorder;
mod restore;
mod snapshot;
mod store;
mod take;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use self::difference::Change;
use self::difference::{Changed, between, same};
pub use self::recorder::Recorder;
use self::restore::Step;
use self::snapshot::{Blob, Entry, Known, Snapshot};
use self::store::{Lock, Reference, Sharing, Store, lock};
use self::take::{Index, Taker};
use crate::rehearsal::Diff;
use crate::rehearsal::diff::{MOST_BYTES, of_texts};

/// How long one waits for another process that works on the same project.
const WAIT: Duration = Duration::from_secs(10);
/// How often a snapshot is begun again because files moved under it.
const TRIES: usize = 3;
/// How often the oldest checkpoints are given up to come below the size limit.
const ROUNDS: usize = 20;

/// The git program that keeps checkpoints, in its own words, or why there is none.
pub fn git() -> Result<String, CheckpointError> {
    store::git_version()
}

/// What is kept, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Checkpoints of one project.
    pub checkpoints: usize,
    /// Bytes on disk of all of them together; also of the files of one project that are kept as a whole.
    pub total_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Entries of a project.
    pub entries: usize,
    /// How long a checkpoint is kept.
    pub age: Duration,
    /// How long taking one may take.
    pub patience: Duration,
}

impl Default for Limits {
    /// The values of the reference (spec exec §17).
    fn default() -> Self {
        Self {
            checkpoints: 20,
            total_bytes: 500 << 20,
            file_bytes: 10 << 20,
            entries: 50_000,
            age: Duration::from_secs(7 * 24 * 3600),
            patience: Duration::from_secs(30),
        }
    }
}

/// Why there is no checkpoint, or no way back.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The git program is missing.
    #[error("checkpoints are kept with git, and there is no git here")]
    NoGit,
    /// Git refused.
    #[error("{0}")]
    Git(String),
    /// A file could not be reached.
    #[error("cannot {verb} {}: {why}", .path.display())]
    Io {
        /// In words that follow "cannot".
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system answered.
        why: String,
    },
    /// A folder holds more than is kept.
    #[error("{} holds more than {most} files and folders", .folder.display())]
    TooMany {
        /// The folder.
        folder: PathBuf,
        /// How many are kept.
        most: usize,
    },
    /// A folder holds more than is kept.
    #[error("{} holds more than {} MB", .folder.display(), .most >> 20)]
    TooLarge {
        /// The folder.
        folder: PathBuf,
        /// How many bytes are kept.
        most: u64,
    },
    /// Not a project.
    #[error("{} is no project but holds everything", .0.display())]
    Everything(PathBuf),
    /// It took too long.
    #[error("keeping it takes longer than {} s", .limit.as_secs())]
    TooSlow {
        /// The limit.
        limit: Duration,
    },
    /// A file changed or went away while it was read.
    #[error("{} changes while it is read", .0.display())]
    Moving(PathBuf),
    /// Another process works on it.
    #[error("another Hermes is at work on the checkpoints; try again")]
    Busy,
    /// There is none.
    #[error("there is no checkpoint {0:?} (hermes checkpoints list)")]
    Unknown(String),
    /// There are several.
    #[error("{0:?} is the beginning of several checkpoints (hermes checkpoints list)")]
    Ambiguous(String),
}

impl CheckpointError {
    fn io(verb: &'static str, path: &Path, error: &io::Error) -> Self {
        Self::Io { verb, path: path.to_path_buf(), why: error.to_string() }
    }
}

/// What a checkpoint was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn, or a call outside of one, changed files.
    Turn,
    /// A turn was taken back.
    Undo,
    /// Taking back was taken back.
    Redo,
    /// Files were put back to what an earlier checkpoint says.
    Restore,
}

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its name; later ones sort after earlier ones.
    pub id: String,
    /// The project that it is about.
    pub project: PathBuf,
    /// When it began.
    pub at: SystemTime,
    /// What it was made for.
    pub purpose: Purpose,
    /// The first call of the turn, in a few words.
    pub reason: String,
    /// The conversation.
    pub task: String,
    /// How much changed; `None` if that was never looked at, because the process ended first.
    pub totals: Option<Totals>,
    /// It was taken back.
    pub is_undone: bool,
    /// The checkpoint that this one takes back.
    undoes: Option<String>,
    before: String,
    after: Option<String>,
}

/// How many paths a turn changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Were not there before.
    pub added: usize,
    /// Are other than before.
    pub changed: usize,
    /// Are not there any more.
    pub removed: usize,
}

impl Totals {
    fn of(changes: &[Changed]) -> Self {
        let mut totals = Self::default();
        for change in changes {
            match change.change {
                Change::Added => totals.added += 1,
                Change::Removed => totals.removed += 1,
                Change::Changed | Change::Mode | Change::Kind => totals.changed += 1,
            }
        }
        totals
    }
}

/// What a checkpoint says of itself in the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    project: String,
    purpose: Purpose,
    reason: String,
    task: String,
    undoes: Option<String>,
}

/// A path that is not put back, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The path.
    pub path: PathBuf,
    /// Why it stays as it is.
    pub why: String,
}

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

    /// Whether nothing would be put back.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
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

/// What was given up to save space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Checkpoints.
    pub checkpoints: usize,
    /// Bytes on disk before and after.
    pub bytes: (u64, u64),
}

/// The checkpoints of one user.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    /// Where they are kept.
    folder: PathBuf,
    /// The home of the user, which is not kept as a whole.
    home: PathBuf,
    /// Folders that are never looked into.
    own: Vec<PathBuf>,
    limits: Limits,
}

/// A project's names in the store.
#[derive(Clone, Debug)]
struct Project {
    key: String,
}

impl Project {
    fn of(root: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let digest = format!("{:x}", Sha256::digest(root.as_os_str().as_bytes()));
        Self { key: digest[..16].to_owned() }
    }

    fn reference(&self, id: &str, which: &str) -> String {
        format!("refs/hermes/{}/{id}/{which}", self.key)
    }

    /// Keeps the newest contents from being collected, so that the index stays true.
    fn latest(&self) -> String {
        format!("refs/hermes/{}/latest", self.key)
    }
}

/// What is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wish {
    /// Folders as a whole.
    areas: Vec<PathBuf>,
    /// Single paths.
    named: Vec<PathBuf>,
}

/// Where a snapshot goes.
struct Target {
    reference: String,
    message: String,
}

impl Checkpoints {
    /// Those that are kept in `folder`, for somebody whose home is `home`. `own` are folders that belong to Hermes.
    pub fn new(folder: &Path, home: &Path, own: &[PathBuf], limits: Limits) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let own = own.iter().map(|path| real(path)).collect();
        Self { folder: real(folder), home: real(home), own, limits }
    }

    fn store(&self) -> PathBuf {
        self.folder.join("store.git")
    }

    fn index(&self, project: &Project) -> PathBuf {
        self.folder.join("projects").join(format!("{}.index", project.key))
    }

    fn lock_store(&self, sharing: Sharing, deadline: Instant) -> Result<Lock, CheckpointError> {
        lock(&self.folder.join("store.lock"), sharing, deadline)
    }

    fn lock_project(&self, project: &Project) -> Result<Lock, CheckpointError> {
        let file = self.folder.join("projects").join(format!("{}.lock", project.key));
        lock(&file, Sharing::Alone, Instant::now() + WAIT)
    }

    /// Whether a folder is kept as a whole at all.
    fn is_project(&self, folder: &Path) -> Result<(), CheckpointError> {
        let is_everything = folder.components().count() <= 2 || self.home.starts_with(folder);
        let is_own = self.own.iter().any(|own| folder.starts_with(own));
        if is_everything || is_own { Err(CheckpointError::Everything(folder.to_path_buf())) } else { Ok(()) }
    }

    /// Looks at everything that is wished for beyond what `snapshot` knows, and stores the whole, unless `wanted` does not
    /// want it. Answers the areas that could not be kept, each with the reason.
    fn take(
        &self,
        store: &Store,
        project: &Project,
        wish: &Wish,
        snapshot: &mut Snapshot,
        wanted: impl Fn(&Snapshot) -> Option<Target>,
    ) -> Result<Vec<CheckpointError>, CheckpointError> {
        let deadline = Instant::now() + self.limits.patience;
        let file = self.index(project);
        let mut index = Index::read(&file);
        let mut tries = 0;
        loop {
            tries += 1;
            let mut taken = snapshot.clone();
            let mut taker = Taker::new(&self.limits, &self.own, &index, deadline);
            let refused = self.look(&mut taker, wish, &mut taken)?;
            let Some(target) = wanted(&taken) else {
                *snapshot = taken;
                return Ok(refused);
            };
            let references = [target.reference, project.latest()];
            let saved = store.save(&references, &target.message, &taken, &index, |name| taker.unsent(name));
            match saved {
                Ok(tree) => {
                    // An index that is not there only costs time.
                    let _ = taker.remembered(&taken, tree).write(&file);
                    *snapshot = taken;
                    return Ok(refused);
                }
                Err(CheckpointError::Moving(_)) if tries < TRIES => {}
                // The index may speak of contents that are gone.
                Err(CheckpointError::Git(_)) if tries < TRIES => index = Index::default(),
                Err(error) => return Err(error),
            }
        }
    }

    fn look(
        &self,
        taker: &mut Taker<'_>,
        wish: &Wish,
        snapshot: &mut Snapshot,
    ) -> Result<Vec<CheckpointError>, CheckpointError> {
        let mut refused = Vec::new();
        for area in &wish.areas {
            match self.is_project(area).and_then(|()| taker.area(snapshot, area)) {
                Ok(()) => {}
                Err(CheckpointError::Io { .. }) if !area.exists() => taker.named(snapshot, area)?,
                Err(why) => refused.push(why),
            }
        }
        for path in &wish.named {
            if !snapshot.covers(path)
                && let Err(why) = taker.named(snapshot, path)
            {
                refused.push(why);
            }
        }
        Ok(refused)
    }

    /// Those of one project, or all; the oldest first.
    pub fn list(&self, project: Option<&Path>) -> Result<Vec<Checkpoint>, CheckpointError> {
        let Some(store) = Store::existing(&self.store()) else { return Ok(Vec::new()) };
        let prefix = project.map(|root| Project::of(root).key).unwrap_or_default();
        let mut all = checkpoints(&store.references(&prefix)?);
        all.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(all)
    }

    /// The project that work in `folder` belongs to: the nearest folder upwards that has a `.git`, else the folder itself.
    pub fn project(&self, folder: &Path) -> PathBuf {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let found = folder
            .ancestors()
            .take_while(|above| !self.home.starts_with(above))
            .find(|above| above.join(".git").exists());
        found.unwrap_or(&folder).to_path_buf()
    }

    /// The one whose name begins like this.
    pub fn find(&self, name: &str) -> Result<Checkpoint, CheckpointError> {
        let mut fitting = self.list(None)?.into_iter().filter(|checkpoint| checkpoint.id.starts_with(name));
        match (fitting.next(), fitting.next()) {
            (Some(only), None) if !name.is_empty() => Ok(only),
            (Some(_), Some(_)) if !name.is_empty() => Err(CheckpointError::Ambiguous(name.to_owned())),
            _ => Err(CheckpointError::Unknown(name.to_owned())),
        }
    }

    /// The way back to what the files were when `checkpoint` began: everything since then, whoever did it. `only`: these
    /// paths and what is in them; all of them if it is empty.
    pub fn way_to(&self, checkpoint: &Checkpoint, only: &[PathBuf]) -> Result<Way, CheckpointError> {
        let note = Note {
            purpose: Purpose::Restore,
            reason: format!("back to {}", checkpoint.id),
            undoes: None,
            ..note_of(checkpoint)
        };
        self.way(checkpoint, note, |before, _, now| {
            let changed = between(before, now).into_iter().map(|change| change.path);
            let wanted = |path: &PathBuf| only.is_empty() || only.iter().any(|only| path.starts_with(only));
            (changed.filter(wanted).collect(), Vec::new())
        })
    }

    /// The way back from what the turn of `checkpoint` did, and from nothing else.
    pub fn way_back(&self, checkpoint: &Checkpoint) -> Result<Way, CheckpointError> {
        let purpose = if checkpoint.purpose == Purpose::Undo { Purpose::Redo } else { Purpose::Undo };
        let note = Note { purpose, undoes: Some(checkpoint.id.clone()), ..note_of(checkpoint) };
        self.way(checkpoint, note, |before, after, now| {
            let Some(after) = after else {
                return (between(before, now).into_iter().map(|change| change.path).collect(), Vec::new());
            };
            let (mut paths, mut left) = (Vec::new(), Vec::new());
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
        let project = Project::of(&checkpoint.project);
        let _store = self.lock_store(Sharing::Shared, Instant::now() + WAIT)?;
        let _project = self.lock_project(&project)?;
        let store = Store::open(&self.store())?;
        let target = store.load(&checkpoint.before)?;
        let after = checkpoint.after.as_ref().map(|commit| store.load(commit)).transpose()?;
        let id = store.new_id(&project.key);
        let mut now = Snapshot::default();
        let place = || Target { reference: project.reference(&id, "before"), message: note.message() };
        let refused = self.take(&store, &project, &wish_of(&target), &mut now, |_| Some(place()))?;
        if let Some(why) = refused.into_iter().next() {
            store.point(&[(&project.reference(&id, "before"), None)])?;
            return Err(why);
        }
        let (paths, mut left) = choose(&target, after.as_ref(), &now);
        let (steps, more) = restore::plan(&target, &now, paths.into_iter());
        left.extend(more);
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
        let mut after = Snapshot::default();
        let place = |after: &Snapshot| Target {
            reference: way.project.reference(&way.id, "after"),
            message: Totals::of(&between(&way.now, after)).message(),
        };
        self.take(&store, &way.project, &wish_of(&way.target), &mut after, |after| Some(place(after)))?;
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

    /// Gives up what is older or more than the limits say. Waits for everybody who writes; nobody writes meanwhile.
    pub fn prune(&self, now: SystemTime) -> Result<Pruned, CheckpointError> {
        let Some(store) = Store::existing(&self.store()) else { return Ok(Pruned::default()) };
        let _store = self.lock_store(Sharing::Alone, Instant::now() + WAIT)?;
        let before = store.size();
        let mut pruned = Pruned { checkpoints: 0, bytes: (before, before) };
        for round in 0..ROUNDS {
            let references = store.references("")?;
            let all = checkpoints(&references);
            let goes = self.outdated(&all, now, round > 0);
            if round > 0 && goes.is_empty() {
                break;
            }
            pruned.checkpoints += goes.len();
            self.forget(&store, &references, &goes)?;
            store.collect()?;
            pruned.bytes.1 = store.size();
            if pruned.bytes.1 <= self.limits.total_bytes {
                break;
            }
        }
        Ok(pruned)
    }

    /// Whether there is enough to make a prune worth its time.
    pub fn is_large(&self) -> bool {
        Store::existing(&self.store()).is_some_and(|store| store.size() > self.limits.total_bytes)
    }

    /// What is too old or too many; `more`: and the oldest one of each project besides, but for its last one.
    fn outdated<'a>(&self, all: &'a [Checkpoint], now: SystemTime, more: bool) -> Vec<&'a Checkpoint> {
        let mut projects: BTreeMap<&Path, Vec<&Checkpoint>> = BTreeMap::new();
        for checkpoint in all {
            projects.entry(&checkpoint.project).or_default().push(checkpoint);
        }
        let mut goes = Vec::new();
        for checkpoints in projects.values_mut() {
            checkpoints.sort_by(|left, right| left.id.cmp(&right.id));
            let too_many = checkpoints.len().saturating_sub(self.limits.checkpoints.max(1));
            let too_many = if more { too_many.max(usize::from(checkpoints.len() > 1)) } else { too_many };
            let is_old =
                |checkpoint: &Checkpoint| now.duration_since(checkpoint.at).is_ok_and(|age| age > self.limits.age);
            let indexed = checkpoints.iter().enumerate();
            goes.extend(indexed.filter(|(at, one)| *at < too_many || is_old(one)).map(|(_, one)| *one));
        }
        goes
    }

    fn forget(&self, store: &Store, references: &[Reference], goes: &[&Checkpoint]) -> Result<(), CheckpointError> {
        let names = |checkpoint: &Checkpoint| {
            let project = Project::of(&checkpoint.project);
            format!("refs/hermes/{}/{}/", project.key, checkpoint.id)
        };
        let goes: Vec<String> = goes.iter().map(|checkpoint| names(checkpoint)).collect();
        let mut stays: Vec<&str> = Vec::new();
        let mut changes: Vec<(&str, Option<&str>)> = Vec::new();
        for reference in references {
            if goes.iter().any(|gone| reference.name.starts_with(gone)) {
                changes.push((&reference.name, None));
            } else if let Some(key) = reference.name.split('/').nth(2).filter(|_| !reference.name.ends_with("/latest"))
            {
                stays.push(key);
            }
        }
        for reference in references.iter().filter(|reference| reference.name.ends_with("/latest")) {
            let key = reference.name.split('/').nth(2).unwrap_or_default();
            if !stays.contains(&key) {
                changes.push((&reference.name, None));
                // Nothing keeps its contents from here on. That it is not there is fine.
                let _ = std::fs::remove_file(self.folder.join("projects").join(format!("{key}.index")));
            }
        }
        if changes.is_empty() { Ok(()) } else { store.point(&changes) }
    }
}

/// The digits of names: those that are easily told apart and typed.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

fn in_letters(millis: u128) -> String {
    // Nine digits last until the year 3084.
    (0..9).rev().map(|at| char::from(DIGITS[usize::try_from(millis >> (5 * at) & 31).unwrap_or(0)])).collect()
}

fn from_letters(id: &str) -> Option<SystemTime> {
    let digit = |byte: u8| DIGITS.iter().position(|digit| *digit == byte);
    let millis = id.bytes().try_fold(0_u64, |sum, byte| Some(sum << 5 | digit(byte)? as u64))?;
    Some(UNIX_EPOCH + Duration::from_millis(millis))
}

impl Note {
    fn message(&self) -> String {
        format!("{}\n\n{}", self.reason, serde_json::to_string(self).unwrap_or_default())
    }
}

impl Totals {
    fn message(self) -> String {
        serde_json::to_string(&self).unwrap_or_default()
    }
}

fn note_of(checkpoint: &Checkpoint) -> Note {
    Note {
        project: checkpoint.project.to_string_lossy().into_owned(),
        purpose: checkpoint.purpose,
        reason: checkpoint.reason.clone(),
        task: checkpoint.task.clone(),
        undoes: checkpoint.undoes.clone(),
    }
}

/// The checkpoints behind some references.
fn checkpoints(references: &[Reference]) -> Vec<Checkpoint> {
    let mut all: BTreeMap<(&str, &str), Checkpoint> = BTreeMap::new();
    let parts = |reference: &'_ Reference| -> Option<(usize, usize)> {
        let name = reference.name.strip_prefix("refs/hermes/")?;
        let key = name.find('/')?;
        Some((key, name[key + 1..].find('/')?))
    };
    for which in ["before", "after", "undone"] {
        for reference in references {
            let Some((key, id)) = parts(reference) else { continue };
            let name = &reference.name["refs/hermes/".len()..];
            let (key, id, kind) = (&name[..key], &name[key + 1..key + 1 + id], &name[key + id + 2..]);
            if kind != which {
                continue;
            }
            let json = reference.message.lines().last().unwrap_or_default();
            match which {
                "before" => {
                    let Ok(note) = serde_json::from_str::<Note>(json) else { continue };
                    let Some(at) = from_letters(id) else { continue };
                    let checkpoint = Checkpoint {
                        id: id.to_owned(),
                        project: note.project.into(),
                        at,
                        purpose: note.purpose,
                        reason: note.reason,
                        task: note.task,
                        totals: None,
                        is_undone: false,
                        undoes: note.undoes,
                        before: reference.commit.clone(),
                        after: None,
                    };
                    all.insert((key, id), checkpoint);
                }
                "after" => {
                    if let Some(checkpoint) = all.get_mut(&(key, id)) {
                        checkpoint.after = Some(reference.commit.clone());
                        checkpoint.totals = serde_json::from_str(json).ok();
                    }
                }
                _ => {
                    if let Some(checkpoint) = all.get_mut(&(key, id)) {
                        checkpoint.is_undone = true;
                    }
                }
            }
        }
    }
    all.into_values().collect()
}

/// Everything that a snapshot looked at.
fn wish_of(snapshot: &Snapshot) -> Wish {
    let areas: Vec<PathBuf> = snapshot.areas.keys().cloned().collect();
    let outside = |path: &&Path| {
        let mut covering = areas.iter().filter(|area| path.starts_with(area));
        // What a policy leaves out of an area was named.
        !covering.any(|area| !path.ancestors().any(|above| snapshot.areas[area].skipped.contains(above)))
    };
    let named = snapshot.entries.keys().map(Path::new).filter(outside);
    let named = snapshot.absent.iter().map(PathBuf::as_path).chain(named).map(Path::to_path_buf).collect();
    Wish { areas, named }
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
