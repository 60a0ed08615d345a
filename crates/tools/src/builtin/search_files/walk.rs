//! Which files are searched: where, under which rules, and until when.
//!
//! Files are known by their path below the root; the root itself may be a link and is followed once, before anything
//! else. No other link is ever followed, so a walk cannot leave the root or go in a circle, and a file that has two names
//! by a link is found under one. Only regular files count: a pipe or a device is never opened.
//!
//! The tricky idea: an ignore rule that stands above a named folder holds in it, unless it would leave nothing of it.
//! Whoever names a folder that is ignored means its files; whoever names `src` does not mean what `*.o` hides there.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hermes_core::{CancellationToken, Judge};
use ignore::{DirEntry, Walk, WalkBuilder, WalkState};

use super::pattern::Glob;

/// How many skipped files are counted before the answer is "at least".
const MOST_SKIPPED: usize = 10_000;
/// How long skipped files are counted.
const SKIPPED_PATIENCE: Duration = Duration::from_secs(2);
/// After how many entries it is looked whether the search is to end: asking costs as much as an entry does.
const ENTRIES_A_LOOK: usize = 64;
/// What the kernel makes up; a search of everything does not mean it.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// When a search ends early.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) deadline: Instant,
    pub(super) cancel: CancellationToken,
}

impl Stop {
    pub(super) fn is_late(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() >= self.deadline
    }

    /// Why it ended early, for `limit_reason`.
    pub(super) fn reason(&self) -> &'static str {
        if self.cancel.is_cancelled() { "cancelled" } else { "search_timeout" }
    }
}

/// Where to search, and what of it.
#[derive(Clone)]
pub(super) struct Scope {
    /// As the call named it, absolute.
    pub(super) root: PathBuf,
    /// What it leads to.
    pub(super) real: PathBuf,
    pub(super) is_file: bool,
    /// The call named a place of its own, not the session's folder or one around it.
    pub(super) is_named: bool,
    /// All of them have to accept a file.
    pub(super) globs: Vec<Glob>,
    pub(super) with_hidden: bool,
    pub(super) with_ignored: bool,
    pub(super) judge: Option<Arc<dyn Judge>>,
    /// A model reads the answer, and no program.
    pub(super) is_for_a_model: bool,
    pub(super) stop: Stop,
}

impl Scope {
    /// The path of a file for people and models.
    pub(super) fn stated(&self, below: &Path) -> PathBuf {
        joined(&self.root, below)
    }

    /// The path of a file for the system.
    pub(super) fn real(&self, below: &Path) -> PathBuf {
        joined(&self.real, below)
    }

    /// The part of a path below what `root` leads to.
    pub(super) fn below<'a>(&self, real: &'a Path) -> &'a Path {
        // By bytes, since it is asked about every file: a walk begins each path with its root.
        let rest = real.as_os_str().as_bytes().strip_prefix(self.real.as_os_str().as_bytes()).unwrap_or_default();
        Path::new(std::ffi::OsStr::from_bytes(rest.strip_prefix(b"/").unwrap_or(rest)))
    }

    pub(super) fn accepts(&self, below: &Path) -> bool {
        self.globs.iter().all(|glob| glob.accepts(&self.root, below))
    }

    /// Whether the content of a file is not for the model; `real` is its path for the system.
    pub(super) fn withholds(&self, real: &Path) -> bool {
        let Some(judge) = &self.judge else { return false };
        if self.root == self.real {
            return judge.withholds(real, real).is_some();
        }
        judge.withholds(&self.stated(self.below(real)), real).is_some()
    }

    /// Whether the kind of a hidden entry, or of git's own folder, is left out by its name.
    pub(super) fn leaves_out(&self, name: &std::ffi::OsStr) -> bool {
        name == ".git" && !(self.with_hidden && self.with_ignored)
            || !self.with_hidden && name.as_bytes().first() == Some(&b'.')
    }
}

/// A path below a folder; an empty one is the folder itself.
pub(super) fn joined(root: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { root.to_path_buf() } else { root.join(below) }
}

/// The walks of one search of our own disk.
pub(super) struct Walker<'a> {
    scope: &'a Scope,
    /// Whether ignore rules that stand above the root hold.
    rules_from_above: bool,
    /// Folders that could not be listed.
    unreadable: AtomicUsize,
    /// A walk ended before all was seen.
    is_cut: AtomicBool,
}

impl<'a> Walker<'a> {
    pub(super) fn new(scope: &'a Scope) -> Self {
        let mut walker = Self {
            scope,
            rules_from_above: !scope.with_ignored,
            unreadable: AtomicUsize::new(0),
            is_cut: AtomicBool::new(false),
        };
        if walker.rules_from_above && scope.is_named && !scope.is_file {
            walker.rules_from_above = walker.builder().build().filter_map(Result::ok).any(|entry| is_file(&entry));
        }
        walker
    }

    fn builder(&self) -> WalkBuilder {
        let scope = self.scope;
        let mut walk = WalkBuilder::new(&scope.real);
        walk.hidden(!scope.with_hidden)
            .ignore(!scope.with_ignored)
            .git_ignore(!scope.with_ignored)
            .git_global(!scope.with_ignored)
            .git_exclude(!scope.with_ignored)
            .parents(self.rules_from_above)
            // .gitignore counts whether or not the folder is a repository.
            .require_git(false)
            .skip_stdout(false);
        let with_git = scope.with_hidden && scope.with_ignored;
        let is_everything = scope.real == Path::new("/");
        walk.filter_entry(move |entry| {
            entry.depth() == 0
                || !(is_everything && OF_THE_KERNEL.iter().any(|place| entry.path() == Path::new(place)))
                    && (with_git || entry.file_name() != ".git")
        });
        walk
    }

    fn is_meant(&self, entry: &DirEntry) -> bool {
        is_file(entry) && self.scope.accepts(self.scope.below(entry.path()))
    }

    /// The files by their paths for the system, each folder's entries by name: the order in which paths sort.
    pub(super) fn in_order(&self) -> impl Iterator<Item = PathBuf> {
        let walk: Walk = self.builder().sort_by_file_name(std::ffi::OsStr::cmp).build();
        let in_time = walk.enumerate().take_while(|(seen, _)| !self.ends_at(*seen)).map(|(_, entry)| entry);
        in_time.filter_map(|entry| self.readable(entry)).filter(|entry| self.is_meant(entry)).map(DirEntry::into_path)
    }

    /// Whether the search ends, after so many entries of one thread.
    fn ends_at(&self, seen: usize) -> bool {
        let ends = seen % ENTRIES_A_LOOK == ENTRIES_A_LOOK - 1 && self.scope.stop.is_late();
        if ends {
            self.is_cut.store(true, Ordering::Relaxed);
        }
        ends
    }

    /// Whether a walk ended before all was seen.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    fn readable(&self, entry: Result<DirEntry, ignore::Error>) -> Option<DirEntry> {
        entry.map_err(|_| self.unreadable.fetch_add(1, Ordering::Relaxed)).ok()
    }

    /// How many folders could not be listed so far.
    pub(super) fn unreadable(&self) -> usize {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Visits every file, on several threads and in no order.
    fn visit<T: Send>(&self, look: impl Fn(&DirEntry, PathBuf) -> T + Sync) -> Vec<T> {
        let found = Mutex::new(Vec::new());
        self.builder().build_parallel().run(|| {
            let mut seen = 0_usize;
            let (found, look) = (&found, &look);
            Box::new(move |entry| {
                seen += 1;
                if self.ends_at(seen) {
                    return WalkState::Quit;
                }
                if let Some(entry) = self.readable(entry)
                    && self.is_meant(&entry)
                {
                    let seen = look(&entry, self.scope.below(entry.path()).to_path_buf());
                    found.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
                }
                WalkState::Continue
            })
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// All files with the time of their last change.
    pub(super) fn names(&self) -> Vec<(SystemTime, PathBuf)> {
        self.visit(|entry, below| {
            let modified = entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
            (modified.unwrap_or(SystemTime::UNIX_EPOCH), below)
        })
    }

    /// The files that the rules leave out. What git keeps for itself does not count.
    pub(super) fn skipped(&self) -> Skipped {
        let scope = self.scope;
        if scope.is_file || scope.with_hidden && scope.with_ignored {
            return Skipped::default();
        }
        let deadline = scope.stop.deadline.min(Instant::now() + SKIPPED_PATIENCE);
        let everything = Scope {
            with_hidden: true,
            with_ignored: true,
            stop: Stop { deadline, ..scope.stop.clone() },
            ..scope.clone()
        };
        let everything = Walker::new(&everything);
        let looked_at: HashSet<PathBuf> = self.visit(|_, below| below).into_iter().collect();
        let mut skipped = Skipped::default();
        let walk = everything.builder().filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git").build();
        for entry in walk.filter_map(Result::ok) {
            if everything.scope.stop.is_late() || skipped.hidden + skipped.ignored == MOST_SKIPPED {
                skipped.is_at_least = true;
                break;
            }
            let below = scope.below(entry.path());
            if everything.is_meant(&entry) && !looked_at.contains(below) {
                skipped.count(scope, below);
            }
        }
        skipped
    }
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// Files that the rules left out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Skipped {
    pub(super) hidden: usize,
    pub(super) ignored: usize,
    pub(super) is_at_least: bool,
}

impl Skipped {
    /// Counts a file that was left out, by the rule that is easier to lift.
    pub(super) fn count(&mut self, scope: &Scope, below: &Path) {
        if below.iter().any(|part| scope.leaves_out(part)) {
            self.hidden += 1;
        } else {
            self.ignored += 1;
        }
    }
}

/// Opens a regular file, and nothing else: what became a pipe or a link since it was listed neither blocks nor leads
/// away. `None` if it is something else now.
pub(super) fn open_regular(path: &Path) -> std::io::Result<Option<(File, u64)>> {
    use rustix::fs::{FileType, Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let stat = rustix::fs::fstat(&file)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Ok(is_file.then_some((file, u64::try_from(stat.st_size).unwrap_or(0))))
}
