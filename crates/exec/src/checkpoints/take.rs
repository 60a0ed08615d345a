//! Looks at folders and paths, and says what is there.
//!
//! Contents are read only where something may have changed: an index remembers what each file looked like when it was read
//! last, and which content it had. A file that changed within a clock's grain of being read is not trusted the next time,
//! because it may have changed once more without looking different.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hermes_core::FileVersion;
use serde::{Deserialize, Serialize};

use super::policy::{self, Fate, Ignored};
use super::snapshot::{Area, Blob, Entry, Snapshot, Stored, Why};
use super::{CheckpointError, Limits};
use crate::beneath::{Look, Root, is_boundary};
use crate::rehearsal::Kind;

/// The largest single file that is kept because a call names it.
const NAMED_BYTES: u64 = 64 << 20;
/// How much a folder that a call names may hold, in entries.
const NAMED_ENTRIES: usize = 5_000;
/// Contents up to this many bytes wait in memory until they are stored; the others are read once more.
const WAITING_BYTES: usize = 32 << 20;

/// How far a folder is looked into.
struct Reach {
    entries: usize,
    bytes: u64,
    /// Some of it is left out, see [`policy`].
    by_policy: bool,
}

/// Looks around.
#[derive(Debug)]
pub(super) struct Taker<'a> {
    limits: &'a Limits,
    /// Folders that are never looked into.
    own: &'a [PathBuf],
    index: &'a Index,
    deadline: Instant,
    began: SystemTime,
    /// Contents that may not be in the store; those that are not in memory are read once more.
    unsent: HashMap<OsString, (Blob, Option<Vec<u8>>)>,
    waiting: usize,
}

impl<'a> Taker<'a> {
    pub(super) fn new(limits: &'a Limits, own: &'a [PathBuf], index: &'a Index, deadline: Instant) -> Self {
        let began = SystemTime::now();
        Self { limits, own, index, deadline, began, unsent: HashMap::new(), waiting: 0 }
    }

    /// Adds everything in `folder` that the snapshot does not know yet. An error leaves the snapshot as it was.
    pub(super) fn area(&mut self, snapshot: &mut Snapshot, folder: &Path) -> Result<(), CheckpointError> {
        let reach = Reach { entries: self.limits.entries, bytes: self.limits.total_bytes, by_policy: true };
        let mut area = Snapshot::default();
        self.whole(&mut area, folder, &reach)?;
        snapshot.learn(area);
        Ok(())
    }

    /// Looks at a path that another snapshot knows, whatever the policy says of it now. What cannot be looked at stays unknown.
    pub(super) fn again(&mut self, snapshot: &mut Snapshot, path: &Path) -> Result<(), CheckpointError> {
        let Some(parent) = path.parent() else { return Ok(()) };
        match Root::open_directly(parent).and_then(|root| root.look(path.strip_prefix(parent).unwrap_or(path))) {
            Ok(Some(look)) => {
                self.add(snapshot, path.to_path_buf(), look, NAMED_BYTES.max(self.limits.file_bytes))?;
            }
            Ok(None) => drop(snapshot.absent.insert(path.to_path_buf())),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                snapshot.absent.insert(path.to_path_buf());
            }
            // A link stands in the way, or a permission.
            Err(_) => {}
        }
        Ok(())
    }

    fn whole(&mut self, snapshot: &mut Snapshot, folder: &Path, reach: &Reach) -> Result<(), CheckpointError> {
        let failed = |error: io::Error| CheckpointError::io("read", folder, &error);
        let root = Root::open_directly(folder).map_err(failed)?;
        let itself = root.itself().map_err(failed)?;
        let mut area = Area::default();
        let mut found: Vec<(PathBuf, Look)> = vec![(folder.to_path_buf(), itself)];
        let mut bytes = 0_u64;
        let mut open = vec![(PathBuf::new(), Ignored::default())];
        while let Some((inside, ignored)) = open.pop() {
            self.has_time()?;
            let is_root = inside.as_os_str().is_empty();
            let here = if is_root { folder.to_path_buf() } else { folder.join(&inside) };
            let children = match root.children(&inside) {
                Ok(children) => children,
                Err(error) if is_boundary(&error) || !is_root => {
                    area.skipped.insert(here);
                    continue;
                }
                Err(error) => return Err(failed(error)),
            };
            if reach.by_policy && !is_root && policy::is_marked(&children) {
                area.skipped.insert(here);
                continue;
            }
            let ignored = if reach.by_policy { ignored.inside(&root, &inside, &children) } else { ignored };
            for (name, look) in &children {
                let path = here.join(name);
                let fate = match look.kind {
                    Kind::Folder if self.own.contains(&path) => Fate::Skipped,
                    _ if !reach.by_policy => Fate::Kept,
                    Kind::Folder => policy::of_folder(&path, name, &children, &ignored),
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
            if found.len() > reach.entries {
                return Err(CheckpointError::TooMany { folder: folder.to_path_buf(), most: reach.entries });
            }
            if bytes > reach.bytes {
                return Err(CheckpointError::TooLarge { folder: folder.to_path_buf(), most: reach.bytes });
            }
        }
        for (path, look) in found {
            self.add(snapshot, path, look, self.limits.file_bytes)?;
        }
        snapshot.areas.insert(folder.to_path_buf(), area);
        Ok(())
    }

    /// Adds a path that a call names: a file, a link, a folder that is not too large, or that nothing is there.
    pub(super) fn named(&mut self, snapshot: &mut Snapshot, path: &Path) -> Result<(), CheckpointError> {
        let Some(parent) = path.parent() else { return Ok(()) };
        let look =
            match Root::open_directly(parent).and_then(|root| root.look(path.strip_prefix(parent).unwrap_or(path))) {
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
            let mut folder = Snapshot::default();
            self.whole(&mut folder, path, &Reach { entries: NAMED_ENTRIES, bytes: NAMED_BYTES, by_policy: false })?;
            snapshot.learn(folder);
            return Ok(());
        }
        let most = NAMED_BYTES.max(self.limits.file_bytes);
        self.add(snapshot, path.to_path_buf(), look, most)?;
        let is_too_large = look.kind == Kind::File && look.size > most;
        if is_too_large { Err(CheckpointError::TooLarge { folder: path.to_path_buf(), most }) } else { Ok(()) }
    }

    fn add(&mut self, snapshot: &mut Snapshot, path: PathBuf, look: Look, most: u64) -> Result<(), CheckpointError> {
        let left_out = |why| Entry::LeftOut { why, size: look.size, mtime: look.mtime };
        let entry = match look.kind {
            Kind::Folder => Entry::Folder { mode: look.mode },
            Kind::File if look.size > most => left_out(Why::TooLarge),
            Kind::Pipe | Kind::Socket | Kind::Device => left_out(Why::Special),
            Kind::File | Kind::Link => match self.blob(&path, &look) {
                Ok(blob) if look.kind == Kind::Link => Entry::Link { blob },
                Ok(blob) => Entry::File { blob, mode: look.mode },
                // It went away after it was seen.
                Err(Unread::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(Unread::Io(_)) => left_out(Why::Unreadable),
                Err(Unread::Late(error)) => return Err(error),
            },
        };
        let name = path.into_os_string();
        snapshot.looks.insert(name.clone(), look);
        snapshot.entries.insert(name, entry);
        Ok(())
    }

    /// The content of a file or a link; it is read where the index does not know it.
    fn blob(&mut self, path: &Path, look: &Look) -> Result<Blob, Unread> {
        let known = self.index.files.get(path.as_os_str());
        if let Some(known) = known
            && known.seen.is_some_and(|seen| seen == Seen::of(look))
        {
            return Ok(known.blob);
        }
        self.has_time().map_err(Unread::Late)?;
        let bytes = read(path, look, NAMED_BYTES.max(self.limits.file_bytes)).map_err(Unread::Io)?;
        let blob = Blob::of(&bytes);
        if known.is_none_or(|known| known.blob != blob) {
            let waits = self.waiting + bytes.len() <= WAITING_BYTES;
            self.waiting += if waits { bytes.len() } else { 0 };
            self.unsent.insert(path.as_os_str().to_owned(), (blob, waits.then_some(bytes)));
        }
        Ok(blob)
    }

    /// The bytes of a path, if they may not be in the store yet.
    pub(super) fn unsent(&mut self, name: &OsStr) -> Result<Option<Vec<u8>>, CheckpointError> {
        let Some((blob, waiting)) = self.unsent.remove(name) else { return Ok(None) };
        if waiting.is_some() {
            return Ok(waiting);
        }
        self.has_time()?;
        let path = Path::new(name);
        let again = || -> io::Result<Vec<u8>> {
            let parent = path.parent().unwrap_or(path);
            let look = Root::open_directly(parent)?.look(path.strip_prefix(parent).unwrap_or(path))?;
            read(path, &look.ok_or(io::ErrorKind::NotFound)?, NAMED_BYTES.max(self.limits.file_bytes))
        };
        match again() {
            Ok(bytes) if Blob::of(&bytes) == blob => Ok(Some(bytes)),
            _ => Err(CheckpointError::Moving(path.to_path_buf())),
        }
    }

    fn has_time(&self) -> Result<(), CheckpointError> {
        let limit = self.limits.patience;
        if Instant::now() < self.deadline { Ok(()) } else { Err(CheckpointError::TooSlow { limit }) }
    }

    /// The index of a snapshot that was stored as this tree.
    pub(super) fn remembered(self, snapshot: &Snapshot, tree: String) -> Index {
        let settled = self.began.checked_sub(FileVersion::GRAIN).unwrap_or(UNIX_EPOCH);
        let settled = settled.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let known = |(name, entry): (&OsString, &Entry)| {
            let (stored, blob) = Stored::of(entry)?;
            let look = snapshot.looks.get(name);
            let is_settled = |look: &&Look| u128::try_from(look.ctime).is_ok_and(|changed| changed < settled);
            Some((name.clone(), Remembered { stored, blob, seen: look.filter(is_settled).map(Seen::of) }))
        };
        Index { tree: Some(tree), files: snapshot.entries.iter().filter_map(known).collect() }
    }
}

/// Why a content was not read.
enum Unread {
    Io(io::Error),
    Late(CheckpointError),
}

/// The bytes of a regular file, or where a link leads. Never waits for a pipe's other end.
fn read(path: &Path, look: &Look, most: u64) -> io::Result<Vec<u8>> {
    let parent = path.parent().unwrap_or(path);
    let place = Root::open_directly(parent)?.place(path.strip_prefix(parent).unwrap_or(path))?;
    if look.kind == Kind::Link {
        return Ok(place.target()?.into_os_string().into_vec());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(look.size).unwrap_or(0).min(WAITING_BYTES));
    place.read()?.take(most + 1).read_to_end(&mut bytes)?;
    // It has grown since it was looked at.
    if bytes.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// The files and links of the tree that was stored last, and what they looked like.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    tree: Option<String>,
    files: HashMap<OsString, Remembered>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Remembered {
    stored: Stored,
    blob: Blob,
    /// `None`: it has to be read once more.
    seen: Option<Seen>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    dev: u64,
    ino: u64,
    size: u64,
    mtime: (i64, i64),
    ctime: i64,
}

impl Seen {
    fn of(look: &Look) -> Self {
        Self { dev: look.dev, ino: look.ino, size: look.size, mtime: look.mtime, ctime: look.ctime }
    }
}

impl Index {
    /// Reads what was written. An index that is not there or cannot be read knows nothing, which is always right.
    pub(super) fn read(file: &Path) -> Self {
        type Written<'a> = (Option<String>, Vec<(&'a [u8], Remembered)>);
        let read = || {
            let bytes = fs::read(file).ok()?;
            let (tree, files): Written<'_> = postcard::from_bytes(&bytes).ok()?;
            let named = |(name, known): (&[u8], Remembered)| (OsStr::from_bytes(name).to_owned(), known);
            Some(Self { tree, files: files.into_iter().map(named).collect() })
        };
        read().unwrap_or_default()
    }

    /// Writes it in one step.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let files: Vec<(&[u8], &Remembered)> =
            self.files.iter().map(|(name, known)| (name.as_bytes(), known)).collect();
        let bytes = postcard::to_allocvec(&(&self.tree, files)).map_err(io::Error::other)?;
        let folder = file.parent().unwrap_or(file);
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut temporary, &bytes)?;
        temporary.persist(file).map(|_| ()).map_err(|error| error.error)
    }

    /// The tree; `None` if nothing was stored yet.
    pub(super) fn tree(&self) -> Option<&str> {
        self.tree.as_deref()
    }

    /// The paths in the tree.
    pub(super) fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.files.keys().map(OsString::as_os_str)
    }

    /// How a path is stored in the tree.
    pub(super) fn stored(&self, name: &OsStr) -> Option<(Stored, Blob)> {
        self.files.get(name).map(|known| (known.stored, known.blob))
    }
}
