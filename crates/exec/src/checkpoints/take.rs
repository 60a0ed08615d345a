//! Looks at folders and paths, and says what is there.
//!
//! Contents are read only where something may have changed: an index remembers what each file looked like when its content
//! was stored. A file that changed within a clock's grain of being read is not remembered, because it may have changed once
//! more without looking different.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hermes_core::FileVersion;
use serde::{Deserialize, Serialize};

use super::policy::{self, Fate, Ignored};
use super::snapshot::{Area, Entry, Snapshot, Why};
use super::{CheckpointError, Limits};
use crate::beneath::{Look, Root, is_boundary};
use crate::rehearsal::Kind;

/// The largest single file that is kept because a call names it.
const NAMED_BYTES: u64 = 64 << 20;
/// How much a folder that a call names may hold, in entries.
const NAMED_ENTRIES: usize = 5_000;

/// Looks around. Answers carry no contents yet; see [`Taker::content`].
#[derive(Debug)]
pub(super) struct Taker<'a> {
    pub(super) limits: &'a Limits,
    /// Folders that are never looked into.
    pub(super) own: &'a [PathBuf],
    pub(super) index: Index,
    pub(super) deadline: Instant,
    /// Which device the file was on and when it changed, for what was read and looked the same afterwards.
    read: Vec<(PathBuf, Look)>,
}

impl<'a> Taker<'a> {
    pub(super) fn new(limits: &'a Limits, own: &'a [PathBuf], index: Index, deadline: Instant) -> Self {
        Self { limits, own, index, deadline, read: Vec::new() }
    }

    /// Adds everything in `folder` to the snapshot. An error leaves the snapshot as it was.
    pub(super) fn area(&self, snapshot: &mut Snapshot, folder: &Path) -> Result<(), CheckpointError> {
        self.whole(snapshot, folder, self.limits.entries, self.limits.total_bytes, true)
    }

    fn whole(
        &self,
        snapshot: &mut Snapshot,
        folder: &Path,
        most_entries: usize,
        most_bytes: u64,
        by_policy: bool,
    ) -> Result<(), CheckpointError> {
        let failed = |error: io::Error| CheckpointError::io("read", folder, &error);
        let root = Root::open(folder).map_err(failed)?;
        let itself = root.itself().map_err(failed)?;
        let mut area = Area::default();
        let mut found: Vec<(PathBuf, Look)> = vec![(folder.to_path_buf(), itself)];
        let mut bytes = 0_u64;
        let mut open = vec![(PathBuf::new(), Ignored::default())];
        while let Some((inside, ignored)) = open.pop() {
            self.has_time()?;
            let children = match root.children(&inside) {
                Ok(children) => children,
                Err(error) if is_boundary(&error) || !inside.as_os_str().is_empty() => {
                    area.skipped.insert(folder.join(&inside));
                    continue;
                }
                Err(error) => return Err(failed(error)),
            };
            if by_policy && !inside.as_os_str().is_empty() && policy::is_marked(&children) {
                area.skipped.insert(folder.join(&inside));
                continue;
            }
            let ignored = if by_policy { ignored.inside(&root, &inside, &children) } else { ignored };
            for (name, look) in &children {
                let path = folder.join(&inside).join(name);
                let fate = match look.kind {
                    _ if !by_policy => Fate::Kept,
                    Kind::Folder => policy::of_folder(&path, name, &children, &ignored, self.own),
                    _ => policy::of_file(&path, look.size, &ignored),
                };
                if fate == Fate::Skipped {
                    area.skipped.insert(path);
                    continue;
                }
                if look.is_folder() {
                    open.push((inside.join(name), ignored.clone()));
                } else if look.kind == Kind::File && look.size <= self.limits.file_bytes {
                    bytes += look.size;
                }
                found.push((path, *look));
            }
            if found.len() > most_entries {
                return Err(CheckpointError::TooMany { folder: folder.to_path_buf(), most: most_entries });
            }
            if bytes > most_bytes {
                return Err(CheckpointError::TooLarge { folder: folder.to_path_buf(), most: most_bytes });
            }
        }
        for (path, look) in found {
            self.add(snapshot, path, look, self.limits.file_bytes);
        }
        snapshot.areas.insert(folder.to_path_buf(), area);
        Ok(())
    }

    /// Adds a path that a call names: a file, a link, a folder that is not too large, or that nothing is there.
    pub(super) fn named(&self, snapshot: &mut Snapshot, path: &Path) -> Result<(), CheckpointError> {
        let Some(parent) = path.parent() else { return Ok(()) };
        let look = match Root::open(parent).and_then(|root| root.look(path.strip_prefix(parent).unwrap_or(path))) {
            Ok(look) => look,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(CheckpointError::io("look at", path, &error)),
        };
        let Some(look) = look else {
            // Folders that would be made on the way are as new as what will be in them.
            let missing = path.ancestors().take_while(|above| fs::symlink_metadata(above).is_err());
            snapshot.absent.extend(missing.map(Path::to_path_buf));
            return Ok(());
        };
        if look.is_folder() {
            return self.whole(snapshot, path, NAMED_ENTRIES, NAMED_BYTES, false);
        }
        self.add(snapshot, path.to_path_buf(), look, NAMED_BYTES.max(self.limits.file_bytes));
        Ok(())
    }

    fn add(&self, snapshot: &mut Snapshot, path: PathBuf, look: Look, most: u64) {
        let left_out = |why| Entry::LeftOut { why, size: look.size, mtime: look.mtime };
        let entry = match look.kind {
            Kind::Folder => Entry::Folder { mode: look.mode },
            Kind::Link => Entry::Link { blob: self.index.blob(&path, &look) },
            Kind::File if look.size > most => left_out(Why::TooLarge),
            Kind::File => {
                let blob = self.index.blob(&path, &look);
                // What was read once can be read again; who may not read it learns that now.
                match blob.is_empty().then(|| open(&path)).transpose() {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => left_out(Why::Unreadable),
                    _ => Entry::File { blob, mode: look.mode },
                }
            }
            Kind::Pipe | Kind::Socket | Kind::Device => left_out(Why::Special),
        };
        snapshot.looks.insert(path.clone(), look);
        snapshot.entries.insert(path, entry);
    }

    /// The bytes of an entry that is new.
    pub(super) fn content(&mut self, snapshot: &Snapshot, path: &Path) -> Result<Vec<u8>, CheckpointError> {
        self.has_time()?;
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => CheckpointError::Moving(path.to_path_buf()),
            _ => CheckpointError::io("read", path, &error),
        };
        let looked = snapshot.looks.get(path);
        if matches!(snapshot.entries.get(path), Some(Entry::Link { .. })) {
            let target = fs::read_link(path).map_err(failed)?;
            self.read.extend(looked.map(|look| (path.to_path_buf(), *look)));
            return Ok(target.into_os_string().into_vec());
        }
        let mut file = open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.by_ref().take(NAMED_BYTES.max(self.limits.file_bytes) + 1).read_to_end(&mut bytes).map_err(failed)?;
        if let Some(look) = looked
            && bytes.len() as u64 == look.size
        {
            self.read.push((path.to_path_buf(), *look));
        }
        Ok(bytes)
    }

    fn has_time(&self) -> Result<(), CheckpointError> {
        if Instant::now() < self.deadline { Ok(()) } else { Err(CheckpointError::TooSlow { limit: self.limits.patience }) }
    }

    /// What the index knows after `snapshot` was stored; `began` is when looking began.
    pub(super) fn remembered(self, snapshot: &Snapshot, began: SystemTime) -> Index {
        let Self { mut index, read, .. } = self;
        // What is not in an area that was looked at stays as it is.
        index.seen.retain(|path, _| {
            !snapshot.areas.keys().any(|area| path.starts_with(area)) || snapshot.entries.contains_key(path)
        });
        let settled = began.checked_sub(FileVersion::GRAIN).unwrap_or(UNIX_EPOCH);
        let settled = settled.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        for (path, look) in read {
            let blob = match snapshot.entries.get(&path) {
                Some(Entry::File { blob, .. } | Entry::Link { blob }) if !blob.is_empty() => blob.clone(),
                _ => continue,
            };
            let is_settled = u128::try_from(look.ctime).is_ok_and(|changed| changed < settled);
            if is_settled {
                index.seen.insert(path, Seen::of(&look, blob));
            } else {
                index.seen.remove(&path);
            }
        }
        index
    }
}

/// Opens a regular file; never waits for a pipe's other end and follows no link at its end.
fn open(path: &Path) -> io::Result<fs::File> {
    let parent = path.parent().unwrap_or(path);
    Root::open(parent)?.place(path.strip_prefix(parent).unwrap_or(path))?.read()
}

/// What files looked like when their contents were stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    seen: BTreeMap<PathBuf, Seen>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    dev: u64,
    ino: u64,
    size: u64,
    mtime: (i64, i64),
    ctime: i64,
    blob: String,
}

impl Seen {
    fn of(look: &Look, blob: String) -> Self {
        Self { dev: look.dev, ino: look.ino, size: look.size, mtime: look.mtime, ctime: look.ctime, blob }
    }

    fn is(&self, look: &Look) -> bool {
        (self.dev, self.ino, self.size) == (look.dev, look.ino, look.size)
            && (self.mtime, self.ctime) == (look.mtime, look.ctime)
    }
}

impl Index {
    /// Reads what was written. An index that is not there or cannot be read knows nothing, which is always right.
    pub(super) fn read(file: &Path) -> Self {
        let read = || {
            let seen: Vec<(Vec<u8>, Seen)> = postcard::from_bytes(&fs::read(file).ok()?).ok()?;
            Some(seen.into_iter().map(|(path, seen)| (OsString::from_vec(path).into(), seen)).collect())
        };
        Self { seen: read().unwrap_or_default() }
    }

    /// Writes it in one step.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let seen: Vec<(&[u8], &Seen)> =
            self.seen.iter().map(|(path, seen)| (path.as_os_str().as_bytes(), seen)).collect();
        let bytes = postcard::to_allocvec(&seen).map_err(io::Error::other)?;
        let folder = file.parent().unwrap_or(file);
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut temporary, &bytes)?;
        temporary.persist(file).map(|_| ()).map_err(|error| error.error)
    }

    /// The blob of a file that looks as it did; empty if it does not.
    fn blob(&self, path: &Path, look: &Look) -> String {
        self.seen.get(path).filter(|seen| seen.is(look)).map(|seen| seen.blob.clone()).unwrap_or_default()
    }
}
