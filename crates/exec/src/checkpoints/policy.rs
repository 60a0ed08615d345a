//! What of a project is kept: everything that somebody would miss, and nothing that a program makes again.
//!
//! The tricky part is that leaving something out must never look as if it had not been there: what is left out is written
//! down, so that a restore does not take it for something that was added. Folders that git ignores are left out as a whole;
//! a single file that git ignores is kept while it is small, because that is where `.env` is.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::beneath::{Look, Root};

/// Folders that programs make again, or that belong to a program that keeps a history of its own.
const DERIVED: &[&str] = &[
    "node_modules",
    "bower_components",
    "__pycache__",
    ".venv",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".next",
    ".nuxt",
    ".svelte-kit",
    ".parcel-cache",
    ".turbo",
    ".cache",
    ".direnv",
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".bzr",
];

/// A folder of this name is derived if one of these files stands beside it.
const DERIVED_BESIDE: &[(&str, &[&str])] =
    &[("target", &["Cargo.toml", "pom.xml", "build.sbt"]), ("_build", &["mix.exs", "dune-project"])];

/// A folder that holds one of these is derived: <https://bford.info/cachedir/>, and Python's virtual environments.
const MARKS: &[&str] = &["CACHEDIR.TAG", "pyvenv.cfg"];

/// The largest file that is kept although git ignores it.
const IGNORED_BYTES: u64 = 1 << 20;
/// The largest list of patterns that is read.
const PATTERNS_BYTES: u64 = 1 << 20;

/// The patterns that hold in a folder.
#[derive(Clone, Debug, Default)]
pub(super) struct Ignored {
    /// The outermost first.
    patterns: Vec<Arc<Gitignore>>,
}

impl Ignored {
    /// The same one folder further down, with the patterns that stand there.
    pub(super) fn inside(&self, root: &Root, folder: &Path, children: &[(std::ffi::OsString, Look)]) -> Self {
        let here = children.iter().any(|(name, look)| name == ".gitignore" && !look.is_folder());
        let mut patterns = self.patterns.clone();
        if here && let Some(more) = read(root, folder) {
            patterns.push(Arc::new(more));
        }
        Self { patterns }
    }

    fn has(&self, path: &Path, is_folder: bool) -> bool {
        for patterns in self.patterns.iter().rev() {
            let matched = patterns.matched(path, is_folder);
            if !matched.is_none() {
                return matched.is_ignore();
            }
        }
        false
    }
}

fn read(root: &Root, folder: &Path) -> Option<Gitignore> {
    let mut text = Vec::new();
    let file = root.place(&folder.join(".gitignore")).ok()?.read().ok()?;
    file.take(PATTERNS_BYTES).read_to_end(&mut text).ok()?;
    let mut builder = GitignoreBuilder::new(root.path().join(folder));
    for line in String::from_utf8_lossy(&text).lines() {
        // A pattern that cannot be read ignores nothing, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

/// What becomes of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Kept,
    /// It, and all it holds, is as if nobody had looked.
    Skipped,
}

/// What becomes of a folder at `path` with this name, where these are its siblings.
pub(super) fn of_folder(path: &Path, name: &OsStr, siblings: &[(std::ffi::OsString, Look)], ignored: &Ignored) -> Fate {
    let beside = |wanted: &[&str]| siblings.iter().any(|(name, _)| wanted.iter().any(|wanted| name == *wanted));
    let derived = DERIVED.iter().any(|derived| name == *derived)
        || DERIVED_BESIDE.iter().any(|(derived, marks)| name == *derived && beside(marks));
    if derived || ignored.has(path, true) { Fate::Skipped } else { Fate::Kept }
}

/// Whether a folder says of itself that it is made again.
pub(super) fn is_marked(children: &[(std::ffi::OsString, Look)]) -> bool {
    children.iter().any(|(name, _)| MARKS.iter().any(|mark| name == *mark))
}

/// What becomes of a file at `path`.
pub(super) fn of_file(path: &Path, size: u64, ignored: &Ignored) -> Fate {
    if size > IGNORED_BYTES && ignored.has(path, false) { Fate::Skipped } else { Fate::Kept }
}
