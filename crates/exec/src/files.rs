//! The only code that reads and writes files for tools.
//!
//! Reading never blocks on something that is no regular file: it is opened without waiting, and what was opened is
//! checked rather than what was named. Writing is one rename: a temporary file in the same folder is filled, given the
//! old file's mode and owner, flushed to disk and moved over the target (except where the target has several names).

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hermes_core::{FileError, FileErrorKind, FileKind, FileStat, FileVersion, Layout, LineFeed};
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::unistd::{AccessFlags, faccessat};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use crate::beneath::Root;

/// More links than this in one path is a circle (Linux's own limit, `path_resolution(7)`).
const MOST_LINKS: usize = 40;

/// The extended attribute that holds who else may use a file, acl(5).
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Runs `job` on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    path: &Path,
    job: impl FnOnce(&Path) -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    let owned = path.to_path_buf();
    let done = tokio::task::spawn_blocking(move || job(&owned)).await;
    done.unwrap_or_else(|error| Err(trouble(path, FileErrorKind::Other, error.to_string())))
}

/// `PATH_MAX`: the system takes no longer one.
const LONGEST_PATH: usize = 4096;

/// See [`hermes_core::Environment::stat`].
pub fn stat(path: &Path) -> Result<FileStat, FileError> {
    let metadata = fs::metadata(path).map_err(|error| io_trouble(path, &error))?;
    let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
    let since = u64::try_from(seconds).ok().zip(u32::try_from(nanoseconds).ok());
    let version = since.map(|(seconds, nanoseconds)| FileVersion {
        file: (metadata.dev(), metadata.ino()),
        changed: SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds),
    });
    Ok(FileStat { kind: kind(&metadata), len: metadata.len(), modified: metadata.modified().ok(), version })
}

/// See [`hermes_core::Environment::real_path`].
pub fn real_path(path: &Path) -> Result<PathBuf, FileError> {
    if path.as_os_str().len() >= LONGEST_PATH {
        let start: String = path.to_string_lossy().chars().take(60).collect();
        return Err(trouble(Path::new(&(start + "…")), FileErrorKind::Other, "no path is as long as this one"));
    }
    let mut path = path.to_path_buf();
    for _ in 0..=MOST_LINKS {
        // The deepest part that is there, and what is missing of the rest, the last name first.
        let (mut here, mut missing) = (path.clone(), Vec::new());
        let real = loop {
            match fs::canonicalize(&here) {
                Ok(real) => break real,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io_trouble(&path, &error)),
            }
            match (here.parent(), here.file_name()) {
                (Some(parent), Some(name)) => {
                    missing.push(name.to_owned());
                    here = parent.to_path_buf();
                }
                _ => return Ok(path),
            }
        };
        let Some(first) = missing.pop() else { return Ok(real) };
        // A link whose target is missing still decides where a write would go.
        let target = fs::read_link(real.join(&first));
        let is_link = target.is_ok();
        path = real.join(target.unwrap_or_else(|_| first.into()));
        path.extend(missing.into_iter().rev());
        if !is_link {
            return Ok(path);
        }
    }
    Err(trouble(&path, FileErrorKind::Other, "too many levels of symbolic links"))
}

/// See [`hermes_core::Environment::read`].
pub fn read(path: &Path, range: Range<u64>) -> Result<Vec<u8>, FileError> {
    let failed = |error: io::Error| io_trouble(path, &error);
    let (mut file, len) = open(path)?;
    file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
    let wanted = range.end.saturating_sub(range.start);
    let expected = wanted.min(len.saturating_sub(range.start));
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
    file.take(wanted).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// See [`hermes_core::Environment::layout`].
pub fn layout(path: &Path, feed: LineFeed) -> Result<Layout, FileError> {
    let (file, _) = open(path)?;
    crate::layout::of(&file, feed).map_err(|error| io_trouble(path, &error))
}

/// A regular file and its length.
fn open(path: &Path) -> Result<(File, u64), FileError> {
    let failed = |error: io::Error| io_trouble(path, &error);
    // A directory or a pipe without a writer must be refused, not waited for: hence O_NONBLOCK, then a look at it.
    let opened = OpenOptions::new().read(true).custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits()).open(path);
    let file = opened.map_err(|error| special(path).unwrap_or_else(|| failed(error)))?;
    let metadata = file.metadata().map_err(failed)?;
    if kind(&metadata) != FileKind::File {
        return Err(not_regular(path, kind(&metadata)));
    }
    Ok((file, metadata.len()))
}

/// See [`hermes_core::Environment::write`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    write_new_with(path, bytes, 0o666)
}

/// The same for a file that only its owner may read. An existing file keeps its mode.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    write_new_with(path, bytes, 0o600)
}

/// See [`hermes_core::Environment::create`].
pub fn create(path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>, FileError> {
    create_with(path, bytes, 0o666)
}

/// The same for a file that only its owner may read.
pub fn create_private(path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>, FileError> {
    create_with(path, bytes, 0o600)
}

fn create_with(path: &Path, bytes: &[u8], mode: u32) -> Result<Vec<PathBuf>, FileError> {
    let failed = |error: io::Error| io_trouble(path, &error);
    // Looked at first, so that nothing is made beside it in vain; what counts is the rename that replaces nothing.
    if fs::symlink_metadata(path).is_ok() {
        return Err(exists(path));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    let new_folders = NewFolders::make(folder).map_err(failed)?;
    let mut temporary = temporary_in(folder, mode).map_err(failed)?;
    temporary.write_all(bytes).map_err(failed)?;
    temporary.as_file().sync_all().map_err(failed)?;
    let temporary = temporary.into_temp_path();
    rename_to_nothing(&temporary, path).map_err(failed)?;
    // It has gone to its place: there is nothing to take away any more.
    let _ = temporary.keep();
    flush(folder);
    Ok(new_folders.keep())
}

/// See [`hermes_core::Environment::rename`].
pub fn rename(from: &Path, to: &Path) -> Result<Vec<PathBuf>, FileError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |error: io::Error| io_trouble(&path, &error)
    };
    let old = fs::symlink_metadata(from).map_err(failed(from))?;
    if old.is_dir() {
        return Err(not_regular(from, FileKind::Directory));
    }
    if fs::symlink_metadata(to).is_ok() {
        return Err(exists(to));
    }
    let folder = to.parent().unwrap_or(Path::new("/"));
    let new_folders = NewFolders::make(folder).map_err(failed(to))?;
    match rename_to_nothing(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            carry_over(from, &old, to).map_err(failed(to))?;
        }
        done => done.map_err(failed(to))?,
    }
    flush(folder);
    from.parent().into_iter().for_each(flush);
    Ok(new_folders.keep())
}

/// See [`hermes_core::Environment::remove`].
pub fn remove(path: &Path) -> Result<(), FileError> {
    let failed = |error: io::Error| io_trouble(path, &error);
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    if metadata.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }.map_err(failed)?;
    path.parent().into_iter().for_each(flush);
    Ok(())
}

/// Renames, or fails with `AlreadyExists`: nobody can put something there in between.
fn rename_to_nothing(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems do not know the flag. There, a second name is made, which fails if the name is taken.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from).inspect_err(|_| drop(fs::remove_file(to)))
        }
        done => done.map_err(io::Error::from),
    }
}

/// The same between two file systems: a copy beside the target takes its place, then the old one goes.
fn carry_over(from: &Path, old: &fs::Metadata, to: &Path) -> io::Result<()> {
    if old.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    } else {
        let mut source = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(from)?;
        if kind(&source.metadata()?) != FileKind::File {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let mut copy = temporary_in(to.parent().unwrap_or(Path::new("/")), 0o600)?;
        io::copy(&mut source, copy.as_file_mut())?;
        keep_owner_and_mode(copy.as_file(), old)?;
        copy.as_file().set_modified(old.modified()?)?;
        copy.as_file().sync_all()?;
        let copy = copy.into_temp_path();
        rename_to_nothing(&copy, to)?;
        let _ = copy.keep();
    }
    fs::remove_file(from).inspect_err(|_| drop(fs::remove_file(to)))
}

fn temporary_in(folder: &Path, mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let permissions = Permissions::from_mode(mode);
    tempfile::Builder::new().prefix(".hermes-").permissions(permissions).tempfile_in(folder)
}

/// A change of names is on disk only once the folder is. The file is in place already, and a folder that may be written
/// but not read cannot be flushed: that must not be reported as a failure.
fn flush(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

fn write_new_with(path: &Path, bytes: &[u8], mode: u32) -> Result<bool, FileError> {
    let target = real_path(path)?;
    let failed = |error: io::Error| io_trouble(path, &error);
    let old = match fs::metadata(&target) {
        Ok(metadata) if kind(&metadata) != FileKind::File => return Err(not_regular(path, kind(&metadata))),
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if let Some(old) = &old {
        // A rename would replace a write-protected file without asking, so we ask; and root, who may write everywhere,
        // is told what somebody meant by taking every write bit away.
        if old.mode() & 0o222 == 0 {
            return Err(trouble(path, FileErrorKind::Denied, "permission denied: the file is read-only (chmod u+w)"));
        }
        faccessat(AT_FDCWD, &target, AccessFlags::W_OK, AtFlags::AT_EACCESS)
            .map_err(|errno| failed(io::Error::from(errno)))?;
    }
    if old.as_ref().is_some_and(|old| old.nlink() > 1) {
        return write_in_place(&target, bytes).map_err(failed).map(|()| false);
    }
    let folder = target.parent().unwrap_or(Path::new("/"));
    let new_folders = NewFolders::make(folder).map_err(failed)?;
    let mut temporary = temporary_in(folder, mode).map_err(failed)?;
    temporary.write_all(bytes).map_err(failed)?;
    if let Some(old) = &old {
        // What the folder gives to new files is not what this one had.
        drop_access_list(temporary.as_file());
        keep_owner_and_mode(temporary.as_file(), old).map_err(|error| {
            trouble(path, FileErrorKind::Denied, format!("its owner or mode cannot be kept: {error}"))
        })?;
        keep_attributes(&target, temporary.as_file()).map_err(|error| {
            trouble(path, FileErrorKind::Denied, format!("its access list cannot be kept: {error}"))
        })?;
    }
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(&target).map_err(|error| failed(error.error))?;
    flush(folder);
    Ok(!new_folders.keep().is_empty())
}

/// A file with several names is one file: a rename would separate them. So the bytes are written over the old ones; this is
/// the one case in which a crash can leave a mix.
fn write_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
}

/// The folders that had to be made for a file. Unless they are kept, they go again: an error leaves nothing behind.
struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    fn make(folder: &Path) -> io::Result<Self> {
        let missing = folder.ancestors().take_while(|folder| !folder.exists()).map(Path::to_path_buf).collect();
        // Made or not, whatever of them exists at the end is taken away again.
        let new = Self(missing);
        fs::create_dir_all(folder).map_err(|error| match error.kind() {
            // A file is where a folder has to be. That is another trouble than a file that is there already.
            io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
            _ => error,
        })?;
        Ok(new)
    }

    /// Keeps them and says which they are, the deepest first.
    fn keep(mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        // Deepest first; a folder that somebody else uses by now is not empty and stays.
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// See [`hermes_core::Environment::list`].
pub fn list(path: &Path) -> Result<Vec<String>, FileError> {
    let failed = |error: io::Error| io_trouble(path, &error);
    let mut names = fs::read_dir(path)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed)?;
    names.sort();
    Ok(names)
}

/// Makes a folder for its owner only. One that is there must be that already: its name may lie where everybody can make
/// names.
pub(crate) fn private_folder(folder: &Path) -> Result<(), String> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    match fs::symlink_metadata(folder) {
        Ok(about) if about.is_dir() && about.uid() == nix::unistd::geteuid().as_raw() && about.mode() & 0o077 == 0 => {
            Ok(())
        }
        Ok(_) => Err(format!("{} is not a folder that only its owner may enter", folder.display())),
        Err(error) => Err(format!("cannot look at {}: {error}", folder.display())),
    }
}

fn keep_owner_and_mode(file: &File, old: &fs::Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(old.permissions())
}

/// The access list that a file got from the default one of its folder.
pub(crate) fn drop_access_list(file: &File) {
    // A file system without such lists has none to drop.
    let _ = rustix::fs::fremovexattr(file, ACCESS_LIST);
}

/// Gives `file` the extended attributes of the one at `old`. The access list says who may read it, so it must be kept; what
/// else there may be (acl(5), xattr(7)) is kept where that is possible.
fn keep_attributes(old: &Path, file: &File) -> io::Result<()> {
    let (Some(folder), Some(name)) = (old.parent(), old.file_name()) else { return Ok(()) };
    let attributes = Root::open(folder)?.place(Path::new(name))?.attributes();
    // A file system without any has none to keep.
    for (name, value) in attributes.unwrap_or_default() {
        let kept = rustix::fs::fsetxattr(file, name.as_slice(), &value, rustix::fs::XattrFlags::empty());
        if name == ACCESS_LIST.as_bytes() {
            kept?;
        }
    }
    Ok(())
}

fn kind(metadata: &fs::Metadata) -> FileKind {
    let kind = metadata.file_type();
    match () {
        () if kind.is_dir() => FileKind::Directory,
        () if kind.is_fifo() => FileKind::Pipe,
        () if kind.is_socket() => FileKind::Socket,
        () if kind.is_char_device() || kind.is_block_device() => FileKind::Device,
        () => FileKind::File,
    }
}

/// The error for a path that could not be opened because of what it is (a socket gives ENXIO).
fn special(path: &Path) -> Option<FileError> {
    let kind = kind(&fs::metadata(path).ok()?);
    (kind != FileKind::File).then(|| not_regular(path, kind))
}

fn not_regular(path: &Path, kind: FileKind) -> FileError {
    trouble(path, FileErrorKind::NotRegular(kind), format!("is {}, not a regular file", kind.in_words()))
}

fn exists(path: &Path) -> FileError {
    trouble(path, FileErrorKind::Exists, "exists already")
}

fn io_trouble(path: &Path, error: &io::Error) -> FileError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => FileErrorKind::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => FileErrorKind::Denied,
        io::ErrorKind::AlreadyExists => FileErrorKind::Exists,
        _ => FileErrorKind::Other,
    };
    // The operating system's sentence without "(os error 2)".
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    trouble(path, kind, why)
}

fn trouble(path: &Path, kind: FileErrorKind, why: impl Into<String>) -> FileError {
    FileError { path: path.to_path_buf(), kind, why: why.into() }
}
