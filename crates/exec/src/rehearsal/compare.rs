//! Finding what a command did.
//!
//! An overlay's upper folder says where to look: only what it holds can differ, a whiteout is a deletion, an opaque
//! folder hides what lies below. A copy is walked whole, but an entry that still has the inode and the change time that
//! it got when it was copied is not looked at. Either way the verdict comes from comparing with the workspace: a file
//! that was opened for writing, or only touched, and holds the same bytes with the same permissions, is no change.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::changes::{Change, Entry, Inside, Kind, State};
use super::copying::{is_whiteout, overlay_mark};
use super::loosen::Loosened;
use super::marker::{Known, Memory};
use super::{RehearsalError, Stage, diff, trouble};
use crate::beneath::{Look, Root, is_boundary};

/// The changes, and what a commit has to know besides.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) entries: Vec<Entry>,
    /// Entries of several names in the stage, by device and inode, of which one name is unchanged: that one.
    pub(super) unchanged: HashMap<(u64, u64), PathBuf>,
}

/// What of the workspace shows through a folder of the stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    /// Everything that the stage does not hold itself.
    ShowsThrough,
    /// Nothing: what the stage does not hold is gone.
    Hidden,
    /// There is no such folder in the workspace.
    Missing,
}

pub(super) fn compare(stage: &Stage, modes: &Loosened) -> Result<Compared, RehearsalError> {
    let Stage { workspace, view, copied, .. } = stage;
    let device = workspace.itself().map_err(|error| trouble("read", workspace.path(), &error))?.dev;
    let found = Compared { entries: Vec::new(), unchanged: HashMap::new() };
    let mut walk = Walk { workspace, view, copied: copied.as_ref(), modes, device, found };
    let top = if copied.is_some() { Below::Hidden } else { Below::ShowsThrough };
    let mut folders = vec![(PathBuf::new(), top)];
    while let Some((folder, below)) = folders.pop() {
        let more = walk.folder(&folder, below);
        folders.extend(more.map_err(|error| trouble("compare", &workspace.path().join(&folder), &error))?);
    }
    Ok(walk.found)
}

struct Walk<'a> {
    workspace: &'a Root,
    view: &'a Root,
    copied: Option<&'a Known>,
    modes: &'a Loosened,
    /// The device of the workspace.
    device: u64,
    found: Compared,
}

impl Walk<'_> {
    /// Compares the entries of one folder; says which folders within it come next.
    fn folder(&mut self, folder: &Path, below: Below) -> io::Result<Vec<(PathBuf, Below)>> {
        let children = self.view.children(folder)?;
        let mut next = Vec::new();
        if below == Below::Hidden {
            let below = match self.workspace.children(folder) {
                // Another file system begins here, which the stage knows nothing of.
                Err(error) if is_boundary(&error) => Vec::new(),
                below => below?,
            };
            for (name, old) in below {
                let path = folder.join(&name);
                let is_there = children.binary_search_by(|(child, _)| child.cmp(&name)).is_ok();
                // What was not there when the copy was made was not deleted by the command.
                let was_there = self.copied.is_none_or(|copied| matches!(copied.get(&path), Memory::There(_)));
                if !is_there && was_there {
                    self.gone(path, &old)?;
                }
            }
        }
        for (name, new) in children {
            let path = folder.join(name);
            let old = if below == Below::Missing { None } else { self.workspace.look(&path)? };
            if self.copied.is_none() && is_whiteout(&new, &self.view.place(&path)?) {
                if let Some(old) = old {
                    self.gone(path, &old)?;
                }
            } else if new.is_folder() {
                next.push((path.clone(), self.inner_folder(path, &new, old, below)?));
            } else {
                self.leaf(path, &new, old)?;
            }
        }
        Ok(next)
    }

    fn inner_folder(&mut self, path: PathBuf, new: &Look, old: Option<Look>, outer: Below) -> io::Result<Below> {
        let copied = self.seen(&path);
        match old {
            // Another file system is mounted here. What it is like says nothing of the folder below.
            Some(old) if old.dev != self.device && self.workspace.is_mounted_on(&path)? => Ok(Below::ShowsThrough),
            Some(old) if old.is_folder() => {
                // The permissions that the command found: with a copy those of the copy, which may have another owner.
                let before = copied.unwrap_or((old.mode, old.uid, old.gid));
                if (self.modes.mode(new), new.uid, new.gid) != before {
                    let change = Change::ModeChanged;
                    self.add(Entry { in_place: true, ..self.entry(path.clone(), change, Some(&old), Some(new))? });
                }
                let place = self.view.place(&path)?;
                let is_opaque = || overlay_mark(&place, "opaque").is_some_and(|value| value == b"y");
                // What is hidden once is hidden all the way down: overlayfs marks the outermost folder only.
                Ok(if outer == Below::Hidden || is_opaque() { Below::Hidden } else { Below::ShowsThrough })
            }
            // Deleted or replaced by somebody else; the command did not touch it.
            _ if copied.is_some() && self.is_untouched(&path, new) => Ok(Below::Missing),
            None => {
                self.add(self.entry(path, Change::Added, None, Some(new))?);
                Ok(Below::Missing)
            }
            Some(old) => {
                self.add(self.entry(path, Change::Replaced, Some(&old), Some(new))?);
                Ok(Below::Missing)
            }
        }
    }

    fn leaf(&mut self, path: PathBuf, new: &Look, old: Option<Look>) -> io::Result<()> {
        if self.is_untouched(&path, new) {
            return Ok(());
        }
        let Some(old) = old else {
            let added = self.entry(path, Change::Added, None, Some(new))?;
            self.add(added);
            return Ok(());
        };
        if old.kind != new.kind {
            let mut replaced = self.entry(path, Change::Replaced, Some(&old), Some(new))?;
            if old.is_folder() {
                replaced.inside = Some(self.inside(&replaced.path)?);
            }
            self.add(replaced);
            return Ok(());
        }
        let (mode, uid, gid) = self.seen(&path).unwrap_or((old.mode, old.uid, old.gid));
        let same_owner = (new.uid, new.gid) == (uid, gid);
        let same_mode = new.kind == Kind::Link || self.modes.mode(new) == mode;
        // A copy may have another owner from the start; then a commit keeps the one that the file has.
        let kept = Look { uid: old.uid, gid: old.gid, ..*new };
        let new = if same_owner { &kept } else { new };
        let same_attributes = self.attributes(self.view, &path)? == self.attributes(self.workspace, &path)?;
        if !self.same_contents(&path, &old, new)? {
            let entry = self.entry(path, Change::Changed, Some(&old), Some(new))?;
            self.add(entry);
        } else if same_owner && same_mode && same_attributes {
            if new.links > 1 {
                self.found.unchanged.insert((new.dev, new.ino), path);
            }
        } else {
            let in_place = same_attributes && old.links == 1 && new.links == 1 && old.kind != Kind::Link;
            let entry = self.entry(path, Change::ModeChanged, Some(&old), Some(new))?;
            self.add(Entry { in_place, ..entry });
        }
        Ok(())
    }

    fn gone(&mut self, path: PathBuf, old: &Look) -> io::Result<()> {
        let inside = if old.is_folder() { Some(self.inside(&path)?) } else { None };
        let entry = self.entry(path, Change::Deleted, Some(old), None)?;
        self.add(Entry { inside, ..entry });
        Ok(())
    }

    fn add(&mut self, entry: Entry) {
        self.found.entries.push(entry);
    }

    fn entry(&self, path: PathBuf, change: Change, old: Option<&Look>, new: Option<&Look>) -> io::Result<Entry> {
        let state = |root: &Root, look: &Look, mode: u32| {
            let target = if look.kind == Kind::Link { Some(root.place(&path)?.target()?) } else { None };
            let size = if look.kind == Kind::File { look.size } else { 0 };
            io::Result::Ok(State { kind: look.kind, size, mode, uid: look.uid, gid: look.gid, target })
        };
        let old_state = old.map(|old| state(self.workspace, old, old.mode)).transpose()?;
        let new_state = new.map(|new| state(self.view, new, self.modes.mode(new))).transpose()?;
        let names = old.map_or(1, |old| if old.is_folder() { 1 } else { old.links });
        let mut entry = Entry {
            text: false,
            change,
            old: old_state,
            new: new_state,
            inside: None,
            lines: None,
            names,
            in_place: false,
            path,
        };
        entry.text = diff::may_be_text(self.workspace, self.view, &entry);
        Ok(entry)
    }

    /// The permissions with which a path was copied.
    fn seen(&self, path: &Path) -> Option<(u32, u32, u32)> {
        match self.copied?.get(path) {
            Memory::There(seen) => Some((seen.mode, seen.uid, seen.gid)),
            Memory::NotThere | Memory::Unknown => None,
        }
    }

    /// Whether an entry of a copy is still the one that was copied.
    fn is_untouched(&self, path: &Path, new: &Look) -> bool {
        let Some(Memory::There(seen)) = self.copied.map(|copied| copied.get(path)) else { return false };
        seen.is(new) && (seen.ctime == new.ctime || (new.is_folder() && seen.mode == self.modes.mode(new)))
    }

    fn same_contents(&self, path: &Path, old: &Look, new: &Look) -> io::Result<bool> {
        let (before, now) = (self.workspace.place(path)?, self.view.place(path)?);
        match new.kind {
            Kind::File if old.size != new.size => Ok(false),
            Kind::File => match before.read() {
                Ok(before) => same_bytes(before, now.read()?),
                // The command could read it, having changed its mode; we may not do so in the workspace.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
                Err(error) => Err(error),
            },
            Kind::Link => Ok(before.target()? == now.target()?),
            Kind::Device => Ok((old.format, old.rdev) == (new.format, new.rdev)),
            Kind::Folder | Kind::Pipe | Kind::Socket => Ok(true),
        }
    }

    /// The extended attributes that are the file's own and that the command could have set.
    fn attributes(&self, root: &Root, path: &Path) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut attributes = root.place(path)?.attributes()?;
        attributes.retain(|(name, _)| {
            let is_own = name.starts_with(b"user.") || name.starts_with(b"system.posix_acl");
            is_own && (self.copied.is_some() || !super::copying::is_overlay_mark(name))
        });
        Ok(attributes)
    }

    /// What a folder of the workspace holds.
    fn inside(&self, folder: &Path) -> io::Result<Inside> {
        let mut inside = Inside::default();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let children = match self.workspace.children(&folder) {
                // What cannot be looked at is not counted.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
                children => children?,
            };
            for (name, look) in children {
                if look.is_folder() {
                    inside.folders += 1;
                    folders.push(folder.join(name));
                } else {
                    inside.files += 1;
                    inside.bytes += if look.kind == Kind::File { look.size } else { 0 };
                }
            }
        }
        Ok(inside)
    }
}

fn same_bytes(mut left: impl io::Read, mut right: impl io::Read) -> io::Result<bool> {
    const AT_ONCE: u64 = 1 << 16;
    let (mut from_left, mut from_right) = (Vec::new(), Vec::new());
    loop {
        from_left.clear();
        from_right.clear();
        left.by_ref().take(AT_ONCE).read_to_end(&mut from_left)?;
        right.by_ref().take(AT_ONCE).read_to_end(&mut from_right)?;
        if from_left != from_right {
            return Ok(false);
        }
        if from_left.is_empty() {
            return Ok(true);
        }
    }
}
