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
mod notes;
mod policy;
mod prune;
mod recorder;
mod restore;
mod snapshot;
mod store;
mod take;
mod way;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use self::difference::Change;
use self::difference::Changed;
use self::notes::checkpoints;
pub use self::prune::Pruned;
pub use self::recorder::Recorder;
use self::snapshot::Snapshot;
use self::store::{Lock, Sharing, Store, lock};
use self::take::{Index, Taker};
pub use self::way::{Gone, TakenBack, Way};

/// How long one waits for another process that works on the same project.
const WAIT: Duration = Duration::from_secs(10);
/// How often a snapshot is begun again because files moved under it.
const TRIES: usize = 3;
/// Folders that everybody shares: nobody's project, whatever lies in them.
const SHARED: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/local",
    "/var",
    "/var/lib",
    "/var/tmp",
];

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
    /// The folder of checkpoints is not for its owner only.
    #[error("{0}")]
    NotPrivate(String),
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
    /// A folder that everybody shares, or that holds the home of the user.
    #[error("{} is not kept as a whole, because it is no project", .0.display())]
    Everything(PathBuf),
    /// A folder of Hermes itself.
    #[error("{} is a folder of Hermes and not kept", .0.display())]
    Own(PathBuf),
    /// There is nothing at a path, neither then nor now.
    #[error("there was no {} then, and there is none now", .0.display())]
    NoSuchPath(PathBuf),
    /// A checkpoint knows nothing of a path.
    #[error("{} was not kept then, so nobody can put it back", .0.display())]
    NotKept(PathBuf),
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
    /// The project's name in the store.
    key: String,
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

/// A path that is not put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The path.
    pub path: PathBuf,
    /// What becomes of it and why, in words that follow its name: "stays as it is: it was changed afterwards".
    pub said: String,
}

impl Left {
    fn stays(why: &str) -> String {
        format!("stays as it is: {why}")
    }

    fn is_gone(why: &str) -> String {
        format!("is gone and does not come back: {why}")
    }

    fn is_not_as_before(why: &str) -> String {
        format!("is not as it was: {why}")
    }
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

    /// Of checkpoint `id`: `before` and `after` are its snapshots, `undone` says that it was taken back, `look` is what
    /// somebody has looked at who may yet go back.
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
    /// Paths that somebody named, with all that is in them.
    named: Vec<PathBuf>,
    /// Paths that are known already, whatever is left out by now: each by itself.
    again: Vec<PathBuf>,
}

impl Wish {
    /// Everything that `snapshot` knows, once more.
    fn again(snapshot: &Snapshot) -> Self {
        let known = snapshot.kept().chain(snapshot.absent.iter().map(PathBuf::as_path));
        let again = known.map(Path::to_path_buf).collect();
        Self { areas: snapshot.areas.keys().cloned().collect(), named: Vec::new(), again }
    }
}

/// Where a snapshot goes.
#[derive(Clone, Debug)]
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
        if self.own.iter().any(|own| folder.starts_with(own)) {
            return Err(CheckpointError::Own(folder.to_path_buf()));
        }
        if self.is_shared(folder) { Err(CheckpointError::Everything(folder.to_path_buf())) } else { Ok(()) }
    }

    /// What everybody shares is not kept because a call names it, and what is Hermes's own neither.
    fn may_be_named(&self, path: &Path) -> Result<(), CheckpointError> {
        if path.is_dir() { self.is_project(path) } else { Ok(()) }
    }

    fn is_shared(&self, folder: &Path) -> bool {
        SHARED.iter().any(|shared| folder == Path::new(shared)) || self.home.starts_with(folder)
    }

    /// Looks at everything that is wished for beyond what `snapshot` knows, and stores the whole, unless `wanted` does not
    /// want it; then `snapshot` stays as it is. Answers the areas that could not be kept, each with the reason.
    fn take(
        &self,
        store: &Store,
        project: &Project,
        wish: &Wish,
        snapshot: &mut Snapshot,
        wanted: impl Fn(&Snapshot, &[CheckpointError]) -> Option<Target>,
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
            let Some(target) = wanted(&taken, &refused) else { return Ok(refused) };
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
                Err(CheckpointError::Io { .. }) if std::fs::symlink_metadata(area).is_err() => {
                    taker.named(snapshot, area)?;
                }
                Err(why) => refused.push(why),
            }
        }
        for path in &wish.named {
            if !snapshot.keeps(path)
                && let Err(why) = self.may_be_named(path).and_then(|()| taker.named(snapshot, path))
            {
                refused.push(why);
            }
        }
        for path in &wish.again {
            if !snapshot.keeps(path) {
                taker.again(snapshot, path)?;
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
        let found =
            folder.ancestors().take_while(|above| !self.is_shared(above)).find(|above| above.join(".git").exists());
        found.unwrap_or(&folder).to_path_buf()
    }

    /// The one whose name begins like this. Of several, one of the project in which `near` lies is meant.
    pub fn find(&self, name: &str, near: &Path) -> Result<Checkpoint, CheckpointError> {
        let all = self.list(None)?;
        let here = Project::of(&self.project(near)).key;
        let is_exact = |one: &&Checkpoint| one.id == name;
        let begins = |one: &&Checkpoint| !name.is_empty() && one.id.starts_with(name);
        for fits in [&is_exact as &dyn Fn(&&Checkpoint) -> bool, &begins] {
            let fitting: Vec<&Checkpoint> = all.iter().filter(fits).collect();
            let mine: Vec<&Checkpoint> = fitting.iter().filter(|one| one.key == here).copied().collect();
            match (&fitting[..], &mine[..]) {
                ([], _) => {}
                ([only], _) | (_, [only]) => return Ok((*only).clone()),
                _ => return Err(CheckpointError::Ambiguous(name.to_owned())),
            }
        }
        Err(CheckpointError::Unknown(name.to_owned()))
    }
}
