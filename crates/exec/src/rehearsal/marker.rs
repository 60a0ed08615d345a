//! What the workspace was when the rehearsal began.
//!
//! Two answers, one exact and one without limit. [`Marker`] is a moment on the clock of the workspace's own file system:
//! what carries a later change time was changed since. [`Known`] remembers which entries were there, so that an entry
//! which vanished, or which was swapped for an older one, is noticed too. It is bounded; beyond the bound we only know
//! what the marker tells, and refuse where that is not enough.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, Timespec, Timestamps};

use super::changes::Kind;
use crate::beneath::{Look, Root, is_boundary};

/// A moment that lies strictly before every later change of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Marker(i64);

impl Marker {
    /// Takes the time and waits until the clock has moved on (a few milliseconds).
    ///
    /// The clock is read from a file without a name in `root`, or one in `own` on the same device: nothing is left in
    /// the workspace. Where neither can be made, it is the kernel's coarse clock, which local file systems use.
    pub(super) fn take(root: &Root, own: &Path) -> io::Result<Self> {
        let clock = Clock::of(root, own);
        let first = clock.now()?;
        while clock.now()? <= first {
            thread::sleep(Duration::from_micros(500));
        }
        Ok(Self(first))
    }

    pub(super) fn is_before(self, look: &Look) -> bool {
        look.ctime > self.0
    }
}

enum Clock {
    File(OwnedFd),
    Kernel,
}

impl Clock {
    fn of(root: &Root, own: &Path) -> Self {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let here = |folder: &Root| rustix::fs::openat(folder.descriptor(), ".", flags, Mode::RUSR | Mode::WUSR);
        if let Ok(file) = here(root) {
            return Self::File(file);
        }
        let same_device = |own: &Root| Some(own.itself().ok()?.dev == root.itself().ok()?.dev);
        match Root::open(own) {
            Ok(own) if same_device(&own) == Some(true) => here(&own).map_or(Self::Kernel, Self::File),
            _ => Self::Kernel,
        }
    }

    fn now(&self) -> io::Result<i64> {
        match self {
            Self::File(file) => {
                let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
                rustix::fs::futimens(file, &Timestamps { last_access: now, last_modification: now })?;
                let stat = rustix::fs::fstat(file)?;
                Ok(stat.st_ctime * 1_000_000_000 + stat.st_ctime_nsec.cast_signed())
            }
            Self::Kernel => {
                let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
                Ok(now.tv_sec * 1_000_000_000 + now.tv_nsec)
            }
        }
    }
}

/// One entry as it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Looked at besides the inode, whose number is given again at once on some file systems.
    pub(super) kind: Kind,
    pub(super) ino: u64,
    pub(super) ctime: i64,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Seen {
    /// Whether this is what was seen, if perhaps changed.
    pub(super) fn is(&self, look: &Look) -> bool {
        (self.kind, self.ino) == (look.kind, look.ino)
    }
}

/// What is known of a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Memory {
    There(Seen),
    NotThere,
    Unknown,
}

/// The entries of a tree at one moment.
///
/// A path is kept as a hash with a random key: a few bytes whatever its length. Two paths that meet in one hash would
/// at worst have a commit refused.
#[derive(Debug)]
pub(super) struct Known {
    hasher: RandomState,
    entries: HashMap<u64, Seen>,
    complete: bool,
}

impl Known {
    /// Looks at up to `most` entries below `root`, not at what is mounted there.
    pub(super) fn take(root: &Root, most: usize) -> io::Result<Self> {
        let mut known = Self { hasher: RandomState::new(), entries: HashMap::new(), complete: true };
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let children = match root.children(&folder) {
                Ok(children) => children,
                Err(error) if folder.as_os_str().is_empty() => return Err(error),
                Err(error) if is_boundary(&error) => continue,
                Err(_) => {
                    known.complete = false;
                    continue;
                }
            };
            for (name, look) in children {
                if known.entries.len() >= most {
                    known.complete = false;
                    return Ok(known);
                }
                let path = folder.join(name);
                let Look { kind, ino, ctime, mode, uid, gid, .. } = look;
                known.entries.insert(known.hasher.hash_one(&path), Seen { kind, ino, ctime, mode, uid, gid });
                if look.is_folder() {
                    folders.push(path);
                }
            }
        }
        Ok(known)
    }

    pub(super) fn get(&self, path: &Path) -> Memory {
        match self.entries.get(&self.hasher.hash_one(path)) {
            Some(seen) => Memory::There(*seen),
            None if self.complete => Memory::NotThere,
            None => Memory::Unknown,
        }
    }
}
