//! What hinders a commit: changes that somebody else made underneath.
//!
//! The present entry of every path that would be touched must be the one that was there when the stage was opened. For
//! most of a workspace we remember inode and change time; for the rest there is the marker, and where that cannot tell
//! an entry that never was from one that was deleted meanwhile, the answer is no.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::changes::{Change, Entry, Kind, exact_path};
use super::compare::Compared;
use super::marker::Memory;
use super::{RehearsalError, Stage, trouble};
use crate::beneath::Look;

/// A path that is in the way, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Relative to the workspace.
    #[serde(serialize_with = "exact_path::serialize")]
    pub path: PathBuf,
    /// What happened to it.
    pub what: Underneath,
}

/// What somebody else did to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Underneath {
    /// Its contents, its permissions, its name or its links.
    Changed,
    /// It is gone.
    Deleted,
    /// It was not there before.
    Appeared,
    /// It is another entry, of the same kind or not.
    Replaced,
    /// The folder it belongs into is gone, is another one, or is reached through a link.
    FolderReplaced,
    /// Nothing, as far as we know, but it would go and what it holds cannot be looked at.
    Unreadable,
    /// The workspace was too large to remember this path, and its folder changed.
    Unsure,
}

impl fmt::Display for Underneath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Changed => "changed",
            Self::Deleted => "was deleted",
            Self::Appeared => "appeared",
            Self::Replaced => "was replaced",
            Self::FolderReplaced => "lost its folder or got another one",
            Self::Unreadable => "cannot be read, so nobody knows whether it changed",
            Self::Unsure => "may have changed, as its folder did",
        })
    }
}

/// The entries that stand for themselves: what lies in a new folder comes with the folder.
pub(super) fn outermost(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    let is_new_folder = |entry: &&Entry| {
        let makes = matches!(entry.change, Change::Added | Change::Replaced);
        makes && entry.new.as_ref().is_some_and(|new| new.kind == Kind::Folder)
    };
    let new_folders: HashSet<&Path> = entries.iter().filter(is_new_folder).map(|entry| entry.path.as_path()).collect();
    entries.iter().filter(move |entry| !entry.path.ancestors().skip(1).any(|folder| new_folders.contains(folder)))
}

/// Everything that hinders a commit of these changes.
pub(super) fn conflicts(stage: &Stage, compared: &Compared) -> Result<Vec<Conflict>, RehearsalError> {
    let mut found = Vec::new();
    for entry in outermost(&compared.entries) {
        let checked = check(stage, entry, &mut found);
        checked.map_err(|error| trouble("check", &stage.workspace.path().join(&entry.path), &error))?;
    }
    // A further name is given to the file that is there, so that must be the one that the command saw.
    for path in compared.unchanged.values() {
        let looked = stage.workspace.look(path).map_err(|error| trouble("check", path, &error))?;
        found.extend(hindrance(stage, path, looked.as_ref()));
    }
    found.sort_by(|left, right| left.path.as_os_str().cmp(right.path.as_os_str()));
    found.dedup();
    Ok(found)
}

fn check(stage: &Stage, entry: &Entry, found: &mut Vec<Conflict>) -> io::Result<()> {
    let conflict = |what| Conflict { path: entry.path.clone(), what };
    let parent = entry.path.parent().unwrap_or(Path::new(""));
    let folder = match stage.workspace.look(parent)? {
        Some(folder) if folder.is_folder() => folder,
        _ => {
            found.push(conflict(Underneath::FolderReplaced));
            return Ok(());
        }
    };
    match stage.known.get(parent) {
        Memory::There(seen) if !seen.is(&folder) => {
            found.push(conflict(Underneath::FolderReplaced));
            return Ok(());
        }
        // The command made this folder, and so did somebody else. The workspace itself is in no memory.
        Memory::NotThere if !parent.as_os_str().is_empty() => {
            found.push(Conflict { path: parent.to_path_buf(), what: Underneath::Appeared });
        }
        Memory::There(_) | Memory::NotThere | Memory::Unknown => {}
    }
    let present = stage.workspace.look(&entry.path)?;
    if entry.change == Change::Added {
        let what = match (present, stage.known.get(&entry.path)) {
            (Some(_), _) => Some(Underneath::Appeared),
            (None, Memory::There(_)) => Some(Underneath::Deleted),
            (None, Memory::Unknown) if stage.marker.is_before(&folder) => Some(Underneath::Unsure),
            (None, Memory::NotThere | Memory::Unknown) => None,
        };
        found.extend(what.map(conflict));
        return Ok(());
    }
    match present {
        Some(present) if present.is_folder() && entry.change == Change::ModeChanged => {
            // Its change time tells of the entries in it as well, which are not our business.
            let what = match stage.known.get(&entry.path) {
                Memory::There(seen) if !seen.is(&present) => Some(Underneath::Replaced),
                Memory::There(seen) => {
                    let same = (seen.mode, seen.uid, seen.gid) == (present.mode, present.uid, present.gid);
                    (!same).then_some(Underneath::Changed)
                }
                _ => stage.marker.is_before(&present).then_some(Underneath::Changed),
            };
            found.extend(what.map(conflict));
        }
        Some(present) if present.is_folder() => {
            found.extend(hindrance(stage, &entry.path, Some(&present)));
            let mut folders = vec![entry.path.clone()];
            while let Some(folder) = folders.pop() {
                let children = match stage.workspace.children(&folder) {
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        found.push(Conflict { path: folder, what: Underneath::Unreadable });
                        continue;
                    }
                    children => children?,
                };
                for (name, look) in children {
                    let path = folder.join(name);
                    found.extend(hindrance(stage, &path, Some(&look)));
                    if look.is_folder() {
                        folders.push(path);
                    }
                }
            }
        }
        present => found.extend(hindrance(stage, &entry.path, present.as_ref())),
    }
    Ok(())
}

/// What is wrong with an entry that should be as it was.
pub(super) fn hindrance(stage: &Stage, path: &Path, present: Option<&Look>) -> Option<Conflict> {
    let what = match (present, stage.known.get(path)) {
        (None, _) => Underneath::Deleted,
        (Some(_), Memory::NotThere) => Underneath::Appeared,
        (Some(look), Memory::There(seen)) if !seen.is(look) => Underneath::Replaced,
        (Some(look), Memory::There(seen)) if look.ctime != seen.ctime => Underneath::Changed,
        (Some(look), _) if stage.marker.is_before(look) => Underneath::Changed,
        (Some(_), _) => return None,
    };
    Some(Conflict { path: path.to_path_buf(), what })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::super::marker::Known;
    use super::*;
    use crate::rehearsal::{Method, Mount};

    /// A stage that could not remember any path of its workspace.
    fn stage_without_memory(workspace: &Path, base: &Path) -> (Stage, PathBuf) {
        let mut stage = Stage::open(workspace, base, Method::Overlay).unwrap();
        stage.known = Known::take(&stage.workspace, 0).unwrap();
        let Mount::Overlay { upper, .. } = stage.mount() else { unreachable!("it was opened as an overlay") };
        (stage, upper)
    }

    fn refusal(stage: &Stage, undo: &Path) -> Option<(PathBuf, Underneath)> {
        match stage.commit(undo) {
            Ok(committed) => {
                committed.undo.undo().unwrap();
                None
            }
            Err(RehearsalError::Underneath { conflicts, .. }) => Some((conflicts[0].path.clone(), conflicts[0].what)),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn beyond_its_memory_a_stage_relies_on_the_marker() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["workspace", "workspace/d", "stages", "undo"] {
            fs::create_dir(path(name)).unwrap();
        }
        fs::write(path("workspace/d/old"), "old").unwrap();
        let (stage, upper) = stage_without_memory(&path("workspace"), &path("stages"));
        fs::create_dir(upper.join("d")).unwrap();
        fs::write(upper.join("d/new"), "new").unwrap();
        assert_eq!(refusal(&stage, &path("undo")), None);

        // The undo has changed the folder, and so might anybody have deleted what is new now.
        assert_eq!(refusal(&stage, &path("undo")), Some(("d/new".into(), Underneath::Unsure)));

        let (stage, upper) = stage_without_memory(&path("workspace"), &path("stages"));
        fs::create_dir(upper.join("d")).unwrap();
        fs::write(upper.join("d/old"), "new").unwrap();
        assert_eq!(refusal(&stage, &path("undo")), None);
        fs::write(path("workspace/d/old"), "changed").unwrap();
        assert_eq!(refusal(&stage, &path("undo")), Some(("d/old".into(), Underneath::Changed)));
    }
}
