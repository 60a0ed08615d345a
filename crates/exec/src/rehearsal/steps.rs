//! One path of a commit, forward and back.
//!
//! What is new stands under a temporary name beside its path, and takes its place by one exchange of names within one
//! folder; what was there then has the temporary name. How far a step got is never written down: the inodes at the three
//! places (the path, the temporary name, the undo folder) tell it, so [`Site::restore`] is the same function after an
//! error, after a crash, and when a person wants everything back. It may be interrupted and run again.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::changes::exact_path;
use super::copying::Copier;
use super::{RehearsalError, trouble};
use crate::beneath::{Look, Place, Root};

/// A path where something is replaced, deleted or added.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Step {
    #[serde(with = "exact_path")]
    pub(super) path: PathBuf,
    /// The temporary name in the same folder.
    pub(super) temporary: String,
    /// The inode of what is there.
    pub(super) old: Option<u64>,
    /// Whether something new takes the path.
    pub(super) makes: bool,
    /// The inode of what is new, once it is built.
    #[serde(skip)]
    pub(super) new: Option<u64>,
}

/// An entry that keeps its inode and gets other permissions, for good or for the time of the work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Permission {
    #[serde(with = "exact_path")]
    pub(super) path: PathBuf,
    pub(super) ino: u64,
    pub(super) before: Bits,
    pub(super) after: Bits,
    /// Folders must be open to their owner while names in them, or further down, are changed.
    pub(super) is_folder: bool,
}

/// How what was written gets to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Flush {
    /// File by file: does not wait for what others write.
    Each,
    /// The whole file system at once, which is quicker when there is much.
    Whole,
}

impl Flush {
    /// The better way for a number of entries.
    pub(super) fn of(entries: u64) -> Self {
        if entries > 64 { Self::Whole } else { Self::Each }
    }
}

/// Mode and owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bits {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Bits {
    pub(super) fn of(look: &Look) -> Self {
        Self { mode: look.mode, uid: look.uid, gid: look.gid }
    }
}

/// The two folders between which a commit works.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) workspace: Root,
    pub(super) undo: Root,
    /// Whether what is replaced is moved to the undo folder; otherwise a copy is made before anything is touched.
    pub(super) moves: bool,
    pub(super) flush: Flush,
}

/// How far a commit got that is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No path is swapped: one that is missing is somebody else's doing.
    Building,
    /// Some paths may be swapped, and nothing has left the workspace.
    Swapping,
    /// All is swapped and settled.
    Done,
}

/// The folder of what was replaced, within the undo folder.
pub(super) const SAVED: &str = "saved";

fn saved(number: usize) -> PathBuf {
    Path::new(SAVED).join(number.to_string())
}

impl Step {
    pub(super) fn temporary_path(&self) -> PathBuf {
        self.path.with_file_name(&self.temporary)
    }
}

fn ino(place: &Place) -> io::Result<Option<u64>> {
    Ok(place.look()?.map(|look| look.ino))
}

impl Site {
    fn places(&self, step: &Step) -> io::Result<(Place, Place, Place)> {
        let place = self.workspace.place(&step.path)?;
        let temporary = place.beside(&step.temporary)?;
        let aside = place.beside(&format!("{}~", step.temporary))?;
        Ok((place, temporary, aside))
    }

    fn failed(&self, step: &Step, error: &io::Error) -> RehearsalError {
        trouble("replace", &self.workspace.path().join(&step.path), error)
    }

    /// Copies what will be replaced, where it cannot be moved later.
    pub(super) fn save(&self, number: usize, step: &Step, copier: &mut Copier<'_>) -> Result<(), RehearsalError> {
        if self.moves || step.old.is_none() { Ok(()) } else { copier.entry(&step.path, &saved(number)) }
    }

    /// Gives the path to what is new; the old, if any, gets the temporary name.
    pub(super) fn swap(&self, step: &Step) -> Result<(), RehearsalError> {
        let swap = || {
            let (place, temporary, aside) = self.places(step)?;
            if ino(&place)? != step.old {
                return Err(io::Error::other("it was replaced at the last moment"));
            }
            match (step.old, step.makes) {
                (Some(_), true) => exchange(&place, &temporary, &aside),
                (Some(_), false) => place.move_to(&temporary),
                (None, _) => temporary.move_to(&place),
            }
        };
        swap().map_err(|error| self.failed(step, &error))
    }

    /// After the swap: what was replaced leaves the workspace.
    pub(super) fn settle(&self, number: usize, step: &Step) -> Result<(), RehearsalError> {
        let settle = || {
            let (_, temporary, _) = self.places(step)?;
            if step.old.is_none() || ino(&temporary)? != step.old {
                return Ok(());
            }
            if self.moves { move_between(&temporary, &self.undo.place(&saved(number))?) } else { temporary.remove() }
        };
        settle().map_err(|error| self.failed(step, &error))
    }

    /// Puts back what was there, from wherever the step got to.
    pub(super) fn restore(
        &self,
        number: usize,
        step: &Step,
        phase: Phase,
        copier: &mut Copier<'_>,
    ) -> Result<(), RehearsalError> {
        let failed = |error: io::Error| self.failed(step, &error);
        let (place, temporary, aside) = self.places(step).map_err(failed)?;
        put_aside_back(&place, &temporary, &aside).map_err(failed)?;
        let here = ino(&place).map_err(failed)?;
        let is_swapped =
            phase != Phase::Building && if step.makes { here.is_some() && here == step.new } else { here.is_none() };
        let has_old = |place: &Place| ino(place).map(|ino| ino.is_some() && ino == step.old);
        if is_swapped {
            // Once the original is deleted its inode may be that of anything, a copy that was interrupted for one.
            let is_kept = self.moves || phase != Phase::Done;
            if step.old.is_some() && !(is_kept && has_old(&temporary).map_err(failed)?) {
                // Of a copy that was interrupted, nothing is of use.
                temporary.remove().map_err(failed)?;
                if self.moves {
                    let kept = self.undo.place(&saved(number)).map_err(failed)?;
                    move_between(&kept, &temporary).map_err(failed)?;
                } else {
                    copier.entry(&saved(number), &step.temporary_path())?;
                }
            }
            let back = match (step.old, step.makes) {
                (Some(_), true) => exchange(&place, &temporary, &aside),
                (Some(_), false) => temporary.move_to(&place),
                (None, _) => place.move_to(&temporary),
            };
            back.map_err(failed)?;
            copier.was_renamed(&step.temporary_path(), &step.path);
        } else if has_old(&temporary).map_err(failed)? {
            // Somebody took the path while it was in between. What was there must not be lost for that.
            return Err(failed(Errno::EXIST.into()));
        }
        temporary.remove().map_err(failed)
    }

    /// Allows the owner of folders to work in them. Outer ones come first in a plan.
    pub(super) fn allow_work(&self, permissions: &[Permission]) -> Result<(), RehearsalError> {
        for permission in permissions.iter().filter(|permission| permission.is_folder) {
            let allow = || {
                let Some(look) = self.workspace.look(&permission.path)? else { return Ok(()) };
                if look.mode & 0o700 != 0o700 && look.ino == permission.ino {
                    self.workspace.place(&permission.path)?.set_mode(look.mode | 0o700)?;
                }
                Ok(())
            };
            allow().map_err(|error| self.permission_failed(permission, &error))?;
        }
        Ok(())
    }

    /// Gives the permissions of one side to the entries that are asked for, inner ones first.
    pub(super) fn set_all(
        &self,
        permissions: &[Permission],
        bits: impl Fn(&Permission) -> Option<Bits>,
    ) -> Result<(), RehearsalError> {
        for permission in permissions.iter().rev() {
            if let Some(bits) = bits(permission) {
                self.set(permission, bits)?;
            }
        }
        Ok(())
    }

    /// Gives an entry its permissions, if it is still the one that was meant.
    fn set(&self, permission: &Permission, bits: Bits) -> Result<(), RehearsalError> {
        let set = || {
            let look = self.workspace.look(&permission.path)?;
            let Some(look) = look.filter(|look| look.ino == permission.ino) else {
                return Err(Errno::STALE.into());
            };
            let place = self.workspace.place(&permission.path)?;
            if (look.uid, look.gid) != (bits.uid, bits.gid) {
                place.set_owner(bits.uid, bits.gid)?;
                // Giving a file away takes some bits of its mode.
                return place.set_mode(bits.mode);
            }
            if look.mode == bits.mode { Ok(()) } else { place.set_mode(bits.mode) }
        };
        set().map_err(|error| self.permission_failed(permission, &error))
    }

    fn permission_failed(&self, permission: &Permission, error: &io::Error) -> RehearsalError {
        trouble("change the permissions of", &self.workspace.path().join(&permission.path), error)
    }

    /// Waits until the names that steps made and took are on disk. The contents are, or come with them.
    pub(super) fn flush(&self, steps: &[Step]) -> Result<(), RehearsalError> {
        let folders: BTreeSet<&Path> = steps.iter().filter_map(|step| step.path.parent()).collect();
        let workspace = folders.into_iter().map(|folder| (&self.workspace, folder));
        let undo = [Path::new(SAVED), Path::new("")].map(|path| (&self.undo, path));
        match self.flush {
            Flush::Whole => {
                for root in [&self.workspace, &self.undo] {
                    let flushed = rustix::fs::syncfs(root.descriptor());
                    flushed.map_err(|errno| trouble("flush", root.path(), &errno.into()))?;
                }
            }
            Flush::Each => {
                for (root, folder) in workspace.chain(undo) {
                    match root.place(folder).and_then(|place| place.flush()) {
                        // A folder that may be written but not read: it gets to disk a little later.
                        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                        flushed => flushed.map_err(|error| trouble("flush", &root.path().join(folder), &error))?,
                    }
                }
            }
        }
        Ok(())
    }
}

fn exchange(place: &Place, temporary: &Place, aside: &Place) -> io::Result<()> {
    if temporary.exchange(place)? { Ok(()) } else { exchange_by_hand(place, temporary, aside) }
}

/// For file systems that cannot swap two names. In between, the path is missing; [`put_aside_back`] knows both moments.
fn exchange_by_hand(place: &Place, temporary: &Place, aside: &Place) -> io::Result<()> {
    place.move_to(aside)?;
    temporary.move_to(place)?;
    aside.move_to(temporary)
}

/// Ends an exchange by hand that was interrupted, in the direction that is one rename away.
fn put_aside_back(place: &Place, temporary: &Place, aside: &Place) -> io::Result<()> {
    if aside.look()?.is_none() {
        return Ok(());
    }
    if place.look()?.is_none() { aside.move_to(place) } else { aside.move_to(temporary) }
}

/// Moves an entry to another folder.
fn move_between(from: &Place, to: &Place) -> io::Result<()> {
    match from.move_to(to) {
        // A folder that gets another parent must be writable itself.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let look = from.look()?.filter(Look::is_folder).ok_or(error)?;
            from.set_mode(look.mode | 0o700)?;
            from.move_to(to)?;
            to.set_mode(look.mode)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    /// Each moment of an exchange by hand is taken to one of its two ends.
    #[test]
    fn an_exchange_by_hand_can_stop_anywhere() {
        for moves in 0..=3 {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            fs::write(path("place"), "old").unwrap();
            fs::write(path("temporary"), "new").unwrap();
            let root = Root::open(folder.path()).unwrap();
            let at = |name: &str| root.place(Path::new(name)).unwrap();
            let (place, temporary, aside) = (at("place"), at("temporary"), at("aside"));
            for (from, to) in [(&place, &aside), (&temporary, &place), (&aside, &temporary)].iter().take(moves) {
                from.move_to(to).unwrap();
            }

            put_aside_back(&place, &temporary, &aside).unwrap();

            let expected = if moves < 2 { ("old", "new") } else { ("new", "old") };
            let read = |name: &str| fs::read_to_string(path(name)).unwrap();
            assert_eq!((read("place").as_str(), read("temporary").as_str()), expected, "after {moves} moves");
            assert!(!path("aside").exists());
        }
    }

    #[test]
    fn an_exchange_by_hand_exchanges() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("place")).unwrap();
        fs::write(folder.path().join("temporary"), "new").unwrap();
        let root = Root::open(folder.path()).unwrap();
        let at = |name: &str| root.place(Path::new(name)).unwrap();
        exchange_by_hand(&at("place"), &at("temporary"), &at("aside")).unwrap();
        assert!(folder.path().join("place").is_file() && folder.path().join("temporary").is_dir());
    }
}
