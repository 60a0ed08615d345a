//! Reaching into a folder that others write to.
//!
//! Everything a rehearsal or an undo reads or writes is named relative to a [`Root`], and every name is resolved by the kernel
//! beneath that root without following a single link and without crossing into another file system (`openat2(2)`). So a
//! link that somebody puts in the way can make a step fail, never lead it elsewhere. What has no descriptor-only call
//! (extended attributes, `chmod` without following) goes through `/proc/self/fd/N/NAME`, which starts at the same
//! descriptor.

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use crate::rehearsal::Kind;

/// A folder that is held open: it stays the same one when somebody renames or replaces it.
#[derive(Debug)]
pub(crate) struct Root {
    folder: OwnedFd,
    path: PathBuf,
}

/// A name in an opened folder. The name itself is never followed.
#[derive(Debug)]
pub(crate) struct Place {
    folder: OwnedFd,
    name: OsString,
}

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) kind: Kind,
    /// Tells the two sorts of devices apart.
    pub(crate) format: FileType,
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) links: u64,
    /// The twelve permission bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    pub(crate) rdev: u64,
    /// Seconds and nanoseconds.
    pub(crate) mtime: (i64, i64),
    /// Nanoseconds since 1970.
    pub(crate) ctime: i64,
}

impl Look {
    fn from(stat: &rustix::fs::Stat) -> Self {
        let format = FileType::from_raw_mode(stat.st_mode);
        let kind = match format {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            FileType::Fifo => Kind::Pipe,
            FileType::Socket => Kind::Socket,
            _ => Kind::Device,
        };
        Self {
            kind,
            format,
            dev: stat.st_dev,
            ino: stat.st_ino,
            links: links(stat),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            rdev: stat.st_rdev,
            mtime: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
            ctime: stat.st_ctime * 1_000_000_000 + stat.st_ctime_nsec.cast_signed(),
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }

    /// How overlayfs writes "this was deleted" when it may make devices: a character device with the number 0:0.
    pub(crate) fn is_whiteout_device(&self) -> bool {
        self.format == FileType::CharacterDevice && self.rdev == 0
    }
}

#[allow(clippy::useless_conversion, reason = "the count is narrower on some machines")]
fn links(stat: &rustix::fs::Stat) -> u64 {
    stat.st_nlink.into()
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_XDEV);

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let folder = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { folder, path: path.to_path_buf() })
    }

    /// Opens a folder by a path on which there must be no link.
    pub(crate) fn open_directly(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        Ok(Self { folder, path: path.to_path_buf() })
    }

    /// The same folder once more, whatever its path leads to by now.
    pub(crate) fn again(&self) -> io::Result<Self> {
        Ok(Self { folder: self.folder.try_clone()?, path: self.path.clone() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.folder
    }

    /// What the root folder itself is.
    pub(crate) fn itself(&self) -> io::Result<Look> {
        Ok(Look::from(&rustix::fs::fstat(&self.folder)?))
    }

    fn beneath(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        loop {
            match rustix::fs::openat2(&self.folder, path, flags | OFlags::CLOEXEC, Mode::empty(), BENEATH) {
                // The kernel could not rule out a race with a rename; it asks to be asked again.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    /// The place of a relative path. Its parent must be there. The empty path is the root, by its name in itself.
    pub(crate) fn place(&self, path: &Path) -> io::Result<Place> {
        if path.as_os_str().is_empty() {
            return Ok(Place { folder: self.folder.try_clone()?, name: ".".into() });
        }
        let name = path.file_name().ok_or(Errno::INVAL)?.to_os_string();
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok(Place { folder: self.beneath(parent, OFlags::PATH | OFlags::DIRECTORY)?, name })
    }

    /// What is at a relative path, nothing included. A parent that is missing, or no folder, means nothing.
    pub(crate) fn look(&self, path: &Path) -> io::Result<Option<Look>> {
        match self.place(path) {
            Ok(place) => place.look(),
            Err(error) if is_no_way(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether another file system begins at this path. Another device does not tell: some file systems have several.
    pub(crate) fn is_mounted_on(&self, path: &Path) -> io::Result<bool> {
        match self.beneath(path, OFlags::PATH) {
            Err(error) if is_boundary(&error) => Ok(true),
            opened => opened.map(|_| false),
        }
    }

    /// The names in a folder and what they are, in the order of their bytes.
    pub(crate) fn children(&self, path: &Path) -> io::Result<Vec<(OsString, Look)>> {
        let folder = self.beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut children = Vec::new();
        for name in names(&folder)? {
            // What is gone between the two calls is gone.
            if let Some(look) = look_at(&folder, &name)? {
                children.push((name, look));
            }
        }
        children.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(children)
    }
}

/// The ways in which a path can lead nowhere.
pub(crate) fn is_no_way(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV))
}

/// Whether a path was refused because another file system, or another mount of this one, begins on it.
pub(crate) fn is_boundary(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::XDEV.raw_os_error())
}

fn names(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let entries = Dir::read_from(folder)?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if name != c"." && name != c".." {
            names.push(OsStr::from_bytes(name.to_bytes()).to_os_string());
        }
    }
    Ok(names)
}

fn look_at(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<Look>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(Look::from(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

impl Place {
    pub(crate) fn look(&self) -> io::Result<Option<Look>> {
        look_at(&self.folder, &self.name)
    }

    /// The same folder, another name.
    pub(crate) fn beside(&self, name: &str) -> io::Result<Self> {
        Ok(Self { folder: self.folder.try_clone()?, name: name.into() })
    }

    /// A path that starts at the held descriptor, for calls that take nothing else.
    pub(crate) fn by_descriptor(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.folder.as_raw_fd().to_string()).join(&self.name)
    }

    pub(crate) fn open(&self, flags: OFlags, mode: u32) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(rustix::fs::openat(&self.folder, &self.name, flags, Mode::from_raw_mode(mode))?)
    }

    /// Opens a regular file for reading; never waits for a pipe's other end.
    pub(crate) fn read(&self) -> io::Result<std::fs::File> {
        Ok(self.open(OFlags::RDONLY | OFlags::NONBLOCK, 0)?.into())
    }

    /// Makes a new regular file.
    pub(crate) fn create(&self) -> io::Result<std::fs::File> {
        Ok(self.open(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, 0o600)?.into())
    }

    pub(crate) fn target(&self) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.folder, &self.name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    pub(crate) fn make_folder(&self) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.folder, &self.name, Mode::RWXU)?)
    }

    pub(crate) fn make_link(&self, target: &Path) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.folder, &self.name)?)
    }

    /// Makes a pipe, a socket or a device like the given one.
    pub(crate) fn make_node(&self, like: &Look) -> io::Result<()> {
        Ok(rustix::fs::mknodat(
            &self.folder,
            &self.name,
            like.format,
            Mode::from_raw_mode(like.mode & 0o700),
            like.rdev,
        )?)
    }

    /// Gives a file a further name.
    pub(crate) fn link_to(&self, new: &Self) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.folder, &self.name, &new.folder, &new.name, AtFlags::empty())?)
    }

    /// Renames to a name that must be free.
    pub(crate) fn move_to(&self, to: &Self) -> io::Result<()> {
        let renamed = rustix::fs::renameat_with(&self.folder, &self.name, &to.folder, &to.name, RenameFlags::NOREPLACE);
        match renamed {
            // The file system does not know the flag, so we look first.
            Err(Errno::INVAL | Errno::NOSYS) if to.look()?.is_none() => {
                Ok(rustix::fs::renameat(&self.folder, &self.name, &to.folder, &to.name)?)
            }
            other => Ok(other?),
        }
    }

    /// Takes the place of a file or a link, in one step.
    pub(crate) fn replace(&self, to: &Self) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.folder, &self.name, &to.folder, &to.name)?)
    }

    /// Removes what is no folder.
    pub(crate) fn unlink(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())?)
    }

    /// Removes a folder that is empty. `Ok(false)`: it is not.
    pub(crate) fn remove_empty_folder(&self) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Swaps two entries in one step. `Ok(false)` where the file system cannot.
    pub(crate) fn exchange(&self, with: &Self) -> io::Result<bool> {
        match rustix::fs::renameat_with(&self.folder, &self.name, &with.folder, &with.name, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::NOSYS) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        // `chmod` has no "do not follow": what is there is pinned and looked at first.
        let pinned = self.open(OFlags::PATH, 0)?;
        let found = Look::from(&rustix::fs::fstat(&pinned)?);
        if found.kind == Kind::Link {
            return Err(Errno::LOOP.into());
        }
        let path = Path::new("/proc/self/fd").join(pinned.as_raw_fd().to_string());
        Ok(rustix::fs::chmod(path, Mode::from_raw_mode(mode))?)
    }

    /// Waits until a file or a folder is on disk.
    pub(crate) fn flush(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.open(OFlags::RDONLY | OFlags::NONBLOCK, 0)?)?)
    }

    pub(crate) fn set_owner(&self, uid: u32, gid: u32) -> io::Result<()> {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        Ok(rustix::fs::chownat(&self.folder, &self.name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    pub(crate) fn set_mtime(&self, (seconds, nanoseconds): (i64, i64)) -> io::Result<()> {
        let keep = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let times = Timestamps { last_access: keep, last_modification: time };
        Ok(rustix::fs::utimensat(&self.folder, &self.name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The extended attributes that can be read, by name.
    pub(crate) fn attributes(&self) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let path = self.by_descriptor();
        let mut names = vec![0; 65_536];
        let length = match rustix::fs::llistxattr(&path, names.as_mut_slice()) {
            Ok(length) => length,
            Err(Errno::NOTSUP) => 0,
            Err(errno) => return Err(errno.into()),
        };
        names.truncate(length);
        let mut attributes = Vec::new();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let mut value = vec![0; 65_536];
            match rustix::fs::lgetxattr(&path, name, value.as_mut_slice()) {
                Ok(length) => value.truncate(length),
                Err(Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => continue,
                Err(errno) => return Err(errno.into()),
            }
            attributes.push((name.to_vec(), value));
        }
        attributes.sort();
        Ok(attributes)
    }

    /// One extended attribute; what cannot be read is not there.
    pub(crate) fn attribute(&self, name: &str) -> Option<Vec<u8>> {
        let mut value = vec![0; 256];
        let length = rustix::fs::lgetxattr(self.by_descriptor(), name, value.as_mut_slice()).ok()?;
        value.truncate(length);
        Some(value)
    }

    pub(crate) fn set_attribute(&self, name: &[u8], value: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::lsetxattr(self.by_descriptor(), name, value, rustix::fs::XattrFlags::empty())?)
    }

    /// Removes whatever is here, folders with all they hold. Nothing here is fine.
    ///
    /// Neither the depth of a tree nor missing permissions stop it: a folder that is not empty is first moved up to
    /// the top of the tree, so no path grows long and no stack grows deep.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) if self.look()?.is_some_and(|look| look.is_folder()) => {}
            Err(errno) => return Err(errno.into()),
        }
        let top = self.open_to_empty()?;
        let mut moved = 0_u64;
        loop {
            let names = names(&top)?;
            if names.is_empty() {
                break;
            }
            for name in names {
                if rustix::fs::unlinkat(&top, &name, AtFlags::empty()).is_err() {
                    let place = Self { folder: top.try_clone()?, name };
                    place.empty_into(&top, &mut moved)?;
                }
            }
        }
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::REMOVEDIR)?)
    }

    /// Removes this entry; folders within it that are not empty move to the top.
    fn empty_into(&self, top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) if self.look()?.is_some_and(|look| look.is_folder()) => {}
            Err(errno) => return Err(errno.into()),
        }
        let folder = self.open_to_empty()?;
        for name in names(&folder)? {
            match rustix::fs::unlinkat(&folder, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(errno) => return Err(errno.into()),
            }
            let inner = Self { folder: folder.try_clone()?, name };
            // A folder can change its parent only when it may be written itself.
            inner.set_mode(0o700)?;
            if rustix::fs::unlinkat(&inner.folder, &inner.name, AtFlags::REMOVEDIR).is_ok() {
                continue;
            }
            loop {
                *moved += 1;
                let free = Self { folder: top.try_clone()?, name: format!(".hermes-{moved}").into() };
                match inner.move_to(&free) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    other => break other?,
                }
            }
        }
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::REMOVEDIR)?)
    }

    fn open_to_empty(&self) -> io::Result<OwnedFd> {
        // Best effort: the removal itself says what is wrong when this was not enough.
        let _ = self.set_mode(0o700);
        self.open(OFlags::RDONLY | OFlags::DIRECTORY, 0)
    }
}
