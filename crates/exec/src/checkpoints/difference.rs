//! How one snapshot became another, path by path.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::snapshot::{Entry, Known, Snapshot};

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not there.
    Added,
    /// It is not there any more.
    Removed,
    /// Its content changed, or where a link leads.
    Changed,
    /// Only its permissions changed.
    Mode,
    /// It is of another kind now: a file, a folder, a link.
    Kind,
}

impl Change {
    /// The letter that stands for it in a list.
    pub fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Removed => 'D',
            Self::Changed => 'M',
            Self::Mode => 'P',
            Self::Kind => 'T',
        }
    }
}

/// One path that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) path: PathBuf,
    pub(super) change: Change,
}

/// Everything that differs and of which both snapshots know, in the order of the paths.
pub(super) fn between(before: &Snapshot, after: &Snapshot) -> Vec<Changed> {
    let gone = before.entries.iter().filter(|(name, _)| !after.entries.contains_key(*name));
    let others = after.entries.iter().filter(|(name, entry)| before.entries.get(*name) != Some(entry));
    let names: BTreeSet<&OsString> = gone.chain(others).map(|(name, _)| name).collect();
    let one = |name: &OsString| {
        let path = Path::new(name);
        let change = match (before.at(path), after.at(path)) {
            (Known::NotThere, Known::Here(_)) => Change::Added,
            (Known::Here(_), Known::NotThere) => Change::Removed,
            (Known::Here(old), Known::Here(new)) => differ(old, new)?,
            _ => return None,
        };
        Some(Changed { path: path.to_path_buf(), change })
    };
    names.into_iter().filter_map(one).collect()
}

fn differ(old: &Entry, new: &Entry) -> Option<Change> {
    match (old, new) {
        _ if old == new => None,
        (Entry::File { blob: old, .. }, Entry::File { blob: new, .. }) if old == new => Some(Change::Mode),
        (Entry::Folder { .. }, Entry::Folder { .. }) => Some(Change::Mode),
        (Entry::File { .. }, Entry::File { .. })
        | (Entry::Link { .. }, Entry::Link { .. })
        | (Entry::LeftOut { .. }, _)
        | (_, Entry::LeftOut { .. }) => Some(Change::Changed),
        _ => Some(Change::Kind),
    }
}

/// Whether a path is in both as it was, or of neither anything is known.
pub(super) fn same(before: &Snapshot, after: &Snapshot, path: &Path) -> bool {
    match (before.at(path), after.at(path)) {
        (Known::Here(old), Known::Here(new)) => old == new,
        (Known::NotThere, Known::NotThere) | (Known::Nothing, Known::Nothing) => true,
        _ => false,
    }
}
