//! Copies of trees that lose nothing: contents with their holes, links, modes, owners, times, extended attributes, and
//! hard links among what is copied.
//!
//! The contents are shared with the original where the file system can (`FICLONE`), so that a copy of a large tree costs
//! little; otherwise only the parts that hold data are copied.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::changes::Kind;
use super::loosen::Loosened;
use super::steps::Flush;
use super::{Limit, RehearsalError, trouble};
use crate::beneath::{Look, Place, Root, is_boundary};

/// Copies entries from one root to another and remembers which files it has seen, for their further names.
pub(super) struct Copier<'a> {
    from: &'a Root,
    to: &'a Root,
    /// Where a file of several names was copied to.
    links: HashMap<(u64, u64), PathBuf>,
    /// Set when the source is a stage: modes are those that the command left, and the marks of overlayfs stay behind.
    stage: Option<&'a Loosened>,
    /// Set when the copy becomes a stage: only what can be rehearsed, within bounds, whoever owns it.
    room: Option<Room>,
    /// Set when every file has to be on disk as soon as it is copied.
    flush: bool,
}

/// What a copy may take.
pub(super) struct Room {
    pub(super) bytes: u64,
    pub(super) files: u64,
    pub(super) limit: Limit,
}

impl<'a> Copier<'a> {
    pub(super) fn new(from: &'a Root, to: &'a Root) -> Self {
        Self { from, to, links: HashMap::new(), stage: None, room: None, flush: false }
    }

    pub(super) fn out_of_stage(from: &'a Root, to: &'a Root, modes: &'a Loosened) -> Self {
        Self { stage: Some(modes), ..Self::new(from, to) }
    }

    pub(super) fn into_stage(from: &'a Root, to: &'a Root, room: Room) -> Self {
        Self { room: Some(room), ..Self::new(from, to) }
    }

    /// Whether each copy is flushed on its own.
    pub(super) fn flushing(self, flush: Flush) -> Self {
        Self { flush: flush == Flush::Each, ..self }
    }

    /// Says that a file of the source exists in the target already: further names become links to it.
    pub(super) fn is_already(&mut self, dev: u64, ino: u64, path: PathBuf) {
        self.links.insert((dev, ino), path);
    }

    /// Says that a copy has got another name, perhaps with further copies in it.
    pub(super) fn was_renamed(&mut self, from: &Path, to: &Path) {
        for path in self.links.values_mut() {
            if let Ok(rest) = path.strip_prefix(from) {
                *path = if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) };
            }
        }
    }

    /// Copies one entry with all it holds to a path that is free.
    pub(super) fn entry(&mut self, from: &Path, to: &Path) -> Result<(), RehearsalError> {
        let failed = |error: io::Error| trouble("copy", &self.from.path().join(from), &error);
        let look = self.from.look(from).map_err(failed)?.ok_or_else(|| failed(Errno::NOENT.into()))?;
        if !look.is_folder() {
            return self.leaf(from, &look, to);
        }
        let place = self.to.place(to).map_err(failed)?;
        place.make_folder().map_err(failed)?;
        self.inside(from, to)?;
        let source = self.from.place(from).map_err(failed)?;
        self.dress(&source, &look, &place).map_err(failed)
    }

    /// Copies what a folder holds into one that is there.
    pub(super) fn inside(&mut self, from: &Path, to: &Path) -> Result<(), RehearsalError> {
        let from_root = self.from;
        let failed = |path: &Path, error: io::Error| trouble("copy", &from_root.path().join(path), &error);
        // Folders get their modes and times when all they hold is in place, innermost first.
        let mut made: Vec<(PathBuf, PathBuf, Look)> = Vec::new();
        let mut open = vec![(from.to_path_buf(), to.to_path_buf())];
        while let Some((from, to)) = open.pop() {
            let children = match from_root.children(&from) {
                // What is mounted here is no part of the tree.
                Err(error) if is_boundary(&error) => continue,
                children => children.map_err(|error| failed(&from, error))?,
            };
            for (name, look) in children {
                let (from, to) = (from.join(&name), to.join(&name));
                if !look.is_folder() {
                    self.leaf(&from, &look, &to)?;
                    continue;
                }
                self.count(&from, 1, 0)?;
                let make = || self.to.place(&to)?.make_folder();
                make().map_err(|error| failed(&from, error))?;
                open.push((from.clone(), to.clone()));
                made.push((from, to, look));
            }
        }
        for (from, to, look) in made.iter().rev() {
            let dress = || self.dress(&self.from.place(from)?, look, &self.to.place(to)?);
            dress().map_err(|error| failed(from, error))?;
        }
        Ok(())
    }

    fn count(&mut self, path: &Path, files: u64, bytes: u64) -> Result<(), RehearsalError> {
        let Some(room) = &mut self.room else { return Ok(()) };
        let left = (room.files.checked_sub(files), room.bytes.checked_sub(bytes));
        let (Some(files), Some(bytes)) = left else {
            let limit = room.limit;
            return Err(RehearsalError::TooLarge {
                workspace: self.from.path().to_path_buf(),
                at: path.to_path_buf(),
                limit,
            });
        };
        (room.files, room.bytes) = (files, bytes);
        Ok(())
    }

    fn leaf(&mut self, from: &Path, look: &Look, to: &Path) -> Result<(), RehearsalError> {
        let from_root = self.from;
        let failed = |error: io::Error| trouble("copy", &from_root.path().join(from), &error);
        let source = self.from.place(from).map_err(failed)?;
        if self.stage.is_some() && is_whiteout(look, &source) {
            return Ok(());
        }
        // What cannot work in a copy (the other end of a socket, a device) is left out of it.
        if self.room.is_some() && matches!(look.kind, Kind::Socket | Kind::Device) {
            return Ok(());
        }
        let place = self.to.place(to).map_err(failed)?;
        if look.links > 1 {
            if let Some(first) = self.links.get(&(look.dev, look.ino)).cloned() {
                self.count(from, 1, 0)?;
                return self.to.place(&first).and_then(|first| first.link_to(&place)).map_err(failed);
            }
            self.links.insert((look.dev, look.ino), to.to_path_buf());
        }
        self.count(from, 1, 0)?;
        let mut written = None;
        let made = match look.kind {
            Kind::File => {
                let (old, new) = (source.read().map_err(failed)?, place.create().map_err(failed)?);
                written = Some(new.try_clone().map_err(failed)?);
                let shared = rustix::fs::ioctl_ficlone(&new, &old).is_ok();
                if !shared {
                    // Counted before it is copied: the limit is there to spare the disk.
                    self.count(from, 0, data_bytes(&old).map_err(failed)?)?;
                    copy_data(&old, &new).map_err(failed)?;
                }
                Ok(())
            }
            Kind::Link => source.target().and_then(|target| place.make_link(&target)),
            _ => place.make_node(look),
        };
        made.and_then(|()| self.dress(&source, look, &place)).map_err(failed)?;
        match written {
            Some(file) if self.flush => file.sync_all().map_err(failed),
            _ => Ok(()),
        }
    }

    /// Gives the copy everything but the contents: owner, attributes, mode, time, in the order in which none undoes
    /// another.
    fn dress(&self, from: &Place, look: &Look, to: &Place) -> io::Result<()> {
        let made = to.look()?.ok_or(Errno::NOENT)?;
        if (made.uid, made.gid) != (look.uid, look.gid) {
            match to.set_owner(look.uid, look.gid) {
                // Without the right to give files away, a stage is ours: only a change of owner counts there.
                Err(error) if self.room.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {}
                other => other?,
            }
        }
        for (name, value) in from.attributes()? {
            if self.stage.is_some() && is_overlay_mark(&name) {
                continue;
            }
            match to.set_attribute(&name, &value) {
                // Labels that only the system gives, or that this file system has no room for.
                Err(error)
                    if matches!(
                        error.raw_os_error().map(Errno::from_raw_os_error),
                        Some(Errno::PERM | Errno::NOTSUP)
                    ) => {}
                other => other?,
            }
        }
        if self.flush && look.is_folder() {
            to.flush()?;
        }
        if look.kind != Kind::Link {
            to.set_mode(self.stage.map_or(look.mode, |modes| modes.mode(look)))?;
        }
        to.set_mtime(look.mtime)
    }
}

/// Whether an extended attribute belongs to overlayfs rather than to the file.
pub(super) fn is_overlay_mark(name: &[u8]) -> bool {
    name.starts_with(b"user.overlay.") || name.starts_with(b"trusted.overlay.")
}

/// Whether this entry of an upper folder says "deleted": as a device, or as an empty file with a mark.
pub(super) fn is_whiteout(look: &Look, place: &Place) -> bool {
    let marked = || overlay_mark(place, "whiteout").is_some();
    look.is_whiteout_device() || (look.kind == Kind::File && look.size == 0 && marked())
}

/// A mark of overlayfs, in the form for users or the one for root.
pub(super) fn overlay_mark(place: &Place, name: &str) -> Option<Vec<u8>> {
    ["user", "trusted"].iter().find_map(|space| place.attribute(&format!("{space}.overlay.{name}")))
}

/// How much a copy takes on disk: a file with holes counts for what it holds.
fn data_bytes(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    Ok(metadata.len().min(metadata.blocks() * 512))
}

/// Copies the parts that hold data; the rest stays a hole.
fn copy_data(from: &File, to: &File) -> io::Result<()> {
    let length = from.metadata()?.len();
    to.set_len(length)?;
    let mut at = 0;
    while at < length {
        let start = match rustix::fs::seek(from, rustix::fs::SeekFrom::Data(at)) {
            Ok(start) => start,
            // Nothing but a hole until the end.
            Err(Errno::NXIO) => break,
            Err(_) => at,
        };
        let end = rustix::fs::seek(from, rustix::fs::SeekFrom::Hole(start)).unwrap_or(length).min(length);
        let (mut source, mut target) = (from, to);
        source.seek(SeekFrom::Start(start))?;
        target.seek(SeekFrom::Start(start))?;
        if io::copy(&mut source.take(end.saturating_sub(start)), &mut target)? == 0 {
            // It became shorter meanwhile.
            break;
        }
        at = end;
    }
    Ok(())
}
