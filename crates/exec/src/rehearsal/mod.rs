//! Rehearsals: run a command against a stand-in for the workspace, look at what it did, then commit it or throw it away.
//!
//! A person who is asked "may this run?" can say "show me first". This module makes the stand-in ([`Stage`]), says what
//! has to be mounted for the command ([`Stage::mount`]), tells what the command did ([`Stage::changes`],
//! [`Stage::diff`]) and carries it over ([`Stage::commit`]) so that it can be taken back ([`Undo`]). It runs nothing and
//! mounts nothing: that is the sandbox's part. It never touches the workspace before a commit.
//!
//! The tricky idea: nobody locks a workspace, so a commit has to know that what the command saw is still what is there.
//! A [`Stage`] takes a moment of the file system's own clock when it opens, and every path that would be touched must
//! carry no change time after it. Only those paths: an editor may go on working next door. A commit then builds
//! everything new under temporary names, swaps by renames within one folder, and only then puts what it replaced into
//! the [`Undo`]'s folder; a journal makes each moment in between one from which there is a way back.
//!
//! What a rehearsal cannot know: other file systems mounted below the workspace (they are not part of it), the mode of
//! the workspace folder itself, and programs that read files *while* a commit swaps them one by one. With an overlay a
//! file of several names is one file per name to the command; a commit changes the names that were shown and no other.
//!
//! All of it blocks, so call it from a thread that may.
//!
//! Start reading at [`Stage`]; `compare` finds what changed, `checks` what would hinder, `commit` applies, [`Undo`]
//! takes back. Every name is resolved in `tree`.

mod changes;
mod checks;
mod commit;
mod compare;
mod copying;
pub(crate) mod diff;
mod journal;
mod loosen;
mod marker;
mod owner;
mod render;
mod shown;
mod steps;

mod undo;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub use changes::{Change, Changes, Entry, Inside, Kind, LineCounts, State, Totals};
pub use checks::{Conflict, Underneath};
pub use commit::{Committed, Progress};
pub use diff::Diff;
pub use owner::reap;
pub use undo::{Recovered, Undo};

use crate::beneath::Root;
use changes::exact_path;
use copying::{Copier, Room};
use marker::{Known, Marker};
use shown::Shown;

/// How many entries of a workspace an overlay's stage remembers. Looking at that many takes about a second; a larger
/// workspace is guarded by the marker alone.
const MOST_KNOWN: usize = 200_000;

/// How long the counting of changed lines may take in all.
const COUNTING: Duration = Duration::from_secs(1);

/// How the stand-in is made. The caller knows what the sandbox can mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// An overlay file system: costs nothing until something is written. Without real root it cannot be mounted where
    /// the workspace holds mounts that were made outside of the sandbox's user namespace.
    Overlay,
    /// A copy of the workspace: works everywhere.
    Copy {
        /// How many bytes may be copied. What the file system can share costs nothing and is not counted.
        most_bytes: u64,
        /// How many entries may be copied.
        most_files: u64,
    },
}

/// The options of an overlay besides its folders: name and value, which a switch has not. Without them the upper folder may
/// hold what cannot be read from it alone: folders that were renamed by reference, files whose contents stayed below.
pub const OVERLAY_OPTIONS: [(&str, Option<&str>); 4] = [
    ("userxattr", None),
    // "off" would mean "follow" on some kernels, which `userxattr` forbids.
    ("redirect_dir", Some("nofollow")),
    ("metacopy", Some("off")),
    ("index", Some("off")),
];

/// What the sandbox has to mount for the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Mount {
    /// An overlay file system of type `overlay`, with [`OVERLAY_OPTIONS`].
    Overlay {
        /// Where, and `lowerdir`: the workspace itself.
        #[serde(with = "exact_path")]
        at: PathBuf,
        /// `upperdir`.
        #[serde(with = "exact_path")]
        upper: PathBuf,
        /// `workdir`.
        #[serde(with = "exact_path")]
        work: PathBuf,
    },
    /// A bind mount.
    Bind {
        /// Where: the workspace itself.
        #[serde(with = "exact_path")]
        at: PathBuf,
        /// The folder that takes its place.
        #[serde(with = "exact_path")]
        source: PathBuf,
    },
}

/// A stand-in for a workspace, in a private folder. Dropping it throws it away.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
    method: Method,
    workspace: Root,
    /// What the command writes to: the upper folder of an overlay, or the copy.
    view: Root,
    marker: Marker,
    known: Known,
    /// What a copy was before the command ran.
    copied: Option<Known>,
    /// The last look at it.
    shown: Mutex<Option<Arc<Shown>>>,
    thrown_away: bool,
}

impl Stage {
    /// Makes a stand-in for `workspace` in a new folder of `base`, a private folder outside of it.
    pub fn open(workspace: &Path, base: &Path, method: Method) -> Result<Self, RehearsalError> {
        let real = |path: &Path| path.canonicalize().map_err(|error| trouble("open", path, &error));
        let (workspace, base) = (real(workspace)?, real(base)?);
        if base.starts_with(&workspace) {
            return Err(RehearsalError::BaseInside { workspace, base });
        }
        let root = Root::open(&workspace).map_err(|error| trouble("open", &workspace, &error))?;
        let folder = owner::new_folder(&base)?;
        let opened = Self::fill(root, &folder, method);
        if opened.is_err() {
            // The first error is the one to report; what stays is reaped later.
            let _ = owner::remove(&folder);
        }
        opened
    }

    fn fill(workspace: Root, folder: &Path, method: Method) -> Result<Self, RehearsalError> {
        let failed = |error: io::Error| trouble("make a stage in", folder, &error);
        let stage = Root::open(folder).map_err(failed)?;
        let make = |name: &str| {
            let place = stage.place(Path::new(name))?;
            place.make_folder()?;
            Root::open(&folder.join(name)).map(|root| (place, root))
        };
        let marker = Marker::take(&workspace, folder).map_err(failed)?;
        let most = match method {
            Method::Overlay => MOST_KNOWN,
            // Where this is not enough, the copy is refused.
            Method::Copy { most_files, .. } => usize::try_from(most_files).unwrap_or(usize::MAX),
        };
        let known = Known::take(&workspace, most).map_err(|error| trouble("read", workspace.path(), &error))?;
        let look = workspace.itself().map_err(failed)?;
        let (place, view, copied) = match method {
            Method::Overlay => {
                make("work").map_err(failed)?;
                let (place, view) = make("upper").map_err(failed)?;
                (place, view, None)
            }
            Method::Copy { most_bytes, most_files } => {
                let (place, view) = make("copy").map_err(failed)?;
                let limit = Limit { bytes: most_bytes, files: most_files };
                let room = Room { bytes: most_bytes, files: most_files, limit };
                Copier::into_stage(&workspace, &view, room).inside(Path::new(""), Path::new(""))?;
                let copied = Known::take(&view, usize::MAX).map_err(failed)?;
                // From here on, whatever the command does carries a later time than what was just looked at.
                Marker::take(&view, folder).map_err(failed)?;
                (place, view, Some(copied))
            }
        };
        // The command sees this mode on its own folder; the folder around it keeps everybody out.
        place.set_mode(look.mode | 0o700).map_err(failed)?;
        let folder = folder.to_path_buf();
        Ok(Self { folder, method, workspace, view, marker, known, copied, shown: Mutex::default(), thrown_away: false })
    }

    /// What the sandbox has to mount before the command runs.
    pub fn mount(&self) -> Mount {
        let at = self.workspace.path().to_path_buf();
        let part = |name: &str| self.folder.join(name);
        match self.method {
            Method::Overlay => Mount::Overlay { at, upper: part("upper"), work: part("work") },
            Method::Copy { .. } => Mount::Bind { at, source: part("copy") },
        }
    }

    /// The workspace, with every link of its path resolved.
    pub fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// What the command did. For when it has ended and nothing is mounted any more. From here on, this is what a commit
    /// carries over.
    pub fn changes(&self) -> Result<Changes, RehearsalError> {
        let mut changes = Changes::new(self.look()?.compared.entries.clone());
        let until = Instant::now() + COUNTING;
        for entry in changes.entries.iter_mut().filter(|entry| entry.text) {
            if Instant::now() >= until {
                break;
            }
            entry.lines = diff::count(self, entry);
        }
        Ok(changes)
    }

    /// The difference that one entry makes, as text where it is text.
    pub fn diff(&self, entry: &Entry) -> Result<Diff, RehearsalError> {
        let _readable = self.shown()?;
        diff::diff(self, entry)
    }

    /// Looks at it anew.
    fn look(&self) -> Result<Arc<Shown>, RehearsalError> {
        let mut last = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        // Puts the modes back that the command has left.
        *last = None;
        let shown = Arc::new(Shown::of(self)?);
        *last = Some(Arc::clone(&shown));
        Ok(shown)
    }

    /// The last look at it, or the first one.
    fn shown(&self) -> Result<Arc<Shown>, RehearsalError> {
        let last = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.map_or_else(|| self.look(), Ok)
    }

    /// Carries the changes over into the workspace, those that were shown if they were. What they replace is kept in a
    /// new folder of `undo_base`.
    ///
    /// `undo_base` is a private folder, in the workspace at most where the command could not see it.
    ///
    /// Refused when a path that would be touched changed since the stage was opened, or what would be written since it
    /// was shown. On an error everything is put
    /// back. The stage stays as it is.
    pub fn commit(&self, undo_base: &Path) -> Result<Committed, RehearsalError> {
        self.commit_watched(undo_base, &mut |_| std::ops::ControlFlow::Continue(()))
    }

    /// The same, telling how far it is. `Break` stops it while it can still be stopped, and everything is put back.
    pub fn commit_watched(
        &self,
        undo_base: &Path,
        watch: &mut dyn FnMut(Progress) -> std::ops::ControlFlow<()>,
    ) -> Result<Committed, RehearsalError> {
        commit::commit(self, &*self.shown()?, undo_base, watch)
    }

    /// Removes the stage and all it holds.
    pub fn throw_away(mut self) -> Result<(), RehearsalError> {
        self.thrown_away = true;
        owner::remove(&self.folder)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.thrown_away {
            // Nobody can be told here; what stays is reaped later.
            let _ = owner::remove(&self.folder);
        }
    }
}

/// The bounds of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Bytes in all.
    pub bytes: u64,
    /// Entries in all.
    pub files: u64,
}

/// Why a rehearsal could not be staged, shown, committed or taken back.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// The operating system refused.
    #[error("rehearsal: cannot {doing} {}: {why}", render::name(path))]
    Io {
        /// What was being done, in words that fit after "cannot".
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The operating system's reason.
        why: String,
    },
    /// A private folder lies within what would be covered or changed.
    #[error(
        "rehearsal: the folder {} lies within the workspace {}; choose one outside of it",
        render::name(base),
        render::name(workspace)
    )]
    BaseInside {
        /// The workspace.
        workspace: PathBuf,
        /// The folder for stages or for what can be taken back.
        base: PathBuf,
    },
    /// A copy would take more than was allowed.
    #[error(
        "rehearsal: {} is too large to copy: more than {} or {} entries (stopped at {}); rehearse in a smaller folder, \
         or where overlays can be mounted",
        render::name(workspace), render::bytes(limit.bytes), render::number(limit.files), render::name(at)
    )]
    TooLarge {
        /// The workspace.
        workspace: PathBuf,
        /// Where the limit was met, relative to the workspace.
        at: PathBuf,
        /// The limit.
        limit: Limit,
    },
    /// Somebody changed what the command had seen, or what a commit had written.
    #[error("{}", render::conflicts(*.undoing, conflicts))]
    Underneath {
        /// Whether this is about taking back rather than committing.
        undoing: bool,
        /// The paths and what happened to them.
        conflicts: Vec<Conflict>,
    },
    /// Somebody wrote to the stand-in after it was shown.
    #[error(
        "rehearsal: not committed, nothing was touched: {} changed in the stand-in after it was shown. Rehearse again",
        render::name(path)
    )]
    NotAsShown {
        /// Relative to the workspace.
        path: PathBuf,
    },
    /// The commit failed or was stopped, and the workspace is what it was.
    #[error("rehearsal: not committed, everything was put back: {why}")]
    PutBack {
        /// What went wrong.
        why: String,
    },
    /// The commit failed, and so did putting things back.
    #[error(
        "rehearsal: not committed, and not everything could be put back: {why}; {then}. What is missing in the \
         workspace is in {}: remove the cause, then recover from there",
        render::name(undo)
    )]
    Half {
        /// What went wrong first.
        why: String,
        /// What went wrong then.
        then: String,
        /// The folder to recover from.
        undo: PathBuf,
    },
    /// The workspace has all of the changes, but what they replaced is not yet where it can be taken back from.
    #[error(
        "rehearsal: committed, but not yet ready to be taken back: {why}; remove the cause, then recover from {}",
        render::name(undo)
    )]
    Unsettled {
        /// What went wrong.
        why: String,
        /// The folder to recover from.
        undo: PathBuf,
    },
    /// Taking back failed on the way.
    #[error("rehearsal: not wholly taken back: {why}; remove the cause, then recover from {}", render::name(undo))]
    Unfinished {
        /// What went wrong.
        why: String,
        /// The folder to recover from.
        undo: PathBuf,
    },
    /// There is nothing to take back here.
    #[error("rehearsal: {} holds nothing that could be taken back: {why}", render::name(undo))]
    NoUndo {
        /// The folder.
        undo: PathBuf,
        /// What it is instead.
        why: String,
    },
}

fn trouble(doing: &'static str, path: &Path, error: &io::Error) -> RehearsalError {
    // The operating system's sentence without "(os error 2)".
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    RehearsalError::Io { doing, path: path.to_path_buf(), why }
}

/// An error within the sentence of another one.
fn reason(error: &RehearsalError) -> String {
    let text = error.to_string();
    text.strip_prefix("rehearsal: ").unwrap_or(&text).to_owned()
}
