//! The files of a process in the background: its log, its record, and the socket at which others reach its supervisor.
//!
//! The record is a file of lines. The first is what was known at the start; the supervisor adds how the process ended.
//! While the supervisor lives it holds a lock on the record, which the kernel takes away with it: so whoever looks later
//! can tell "running" from "lost" without trusting a process number.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hermes_core::Place;
use nix::fcntl::OFlag;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket};

use crate::supervisor::Wiring;
use crate::supervisor::protocol::Role;

/// The record that belongs to a log.
pub(crate) fn record_of(log: &Path) -> PathBuf {
    log.with_extension("jsonl")
}

/// The socket that belongs to a log.
pub(crate) fn socket_of(log: &Path) -> PathBuf {
    log.with_extension("sock")
}

/// Makes the files and gives their descriptors to the supervisor; answers the log. On an error none is left.
pub(super) fn make_place(place: &Place, wiring: &mut Wiring) -> io::Result<File> {
    let log = new(&place.log)?;
    fill(place, &log, wiring).inspect_err(|_| remove_place(place))?;
    Ok(log)
}

fn new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
}

fn fill(place: &Place, log: &File, wiring: &mut Wiring) -> io::Result<()> {
    wiring.add(Role::Log, log.try_clone()?);
    if !place.facts.is_empty() {
        let mut record = new(&record_of(&place.log))?;
        // Locked before there is a word in it: whoever reads it meanwhile sees no record yet, never a lost one. Such a
        // reader has a lock for a moment, so this may wait for it. The lock belongs to the open file, so it goes over to
        // the supervisor with it.
        record.lock()?;
        writeln!(record, "{}", place.facts)?;
        wiring.add(Role::Record, record);
        wiring.add(Role::Listener, listen_at(&socket_of(&place.log))?);
    }
    Ok(())
}

/// Takes the files away again: what they were made for never began, or goes on without them.
pub(super) fn remove_place(place: &Place) {
    for file in [socket_of(&place.log), record_of(&place.log), place.log.clone()] {
        // One that is not there is one less.
        let _ = std::fs::remove_file(file);
    }
}

/// A listening socket at `path`, which may be longer than a socket's address can be.
fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let listener = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
    through_folder(path, |address| {
        bind(listener.as_raw_fd(), address)?;
        listen(&listener, Backlog::new(8)?)
    })?;
    Ok(listener)
}

/// A connection to the socket at `path`.
pub(crate) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let client = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
    through_folder(path, |address| connect(client.as_raw_fd(), address))?;
    Ok(client)
}

/// An address has room for 107 bytes; through the open folder any path fits.
fn through_folder<T>(path: &Path, use_it: impl FnOnce(&UnixAddr) -> nix::Result<T>) -> io::Result<T> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let folder =
        OpenOptions::new().read(true).custom_flags((OFlag::O_PATH | OFlag::O_DIRECTORY).bits()).open(folder)?;
    let name = path.file_name().unwrap_or_default();
    let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
    Ok(use_it(&UnixAddr::new(&short)?)?)
}
