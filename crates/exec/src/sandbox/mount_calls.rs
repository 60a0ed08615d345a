//! The kernel's newer mount interface, which nix does not wrap: trees of files as descriptors.
//!
//! `open_tree(2)`, `move_mount(2)` and `fsopen(2)` came with Linux 5.2, `openat2(2)` with 5.6, `mount_setattr(2)` with
//! 5.12. Each function is one step of the kernel and gives its plain error; the caller knows what it was for.
#![expect(unsafe_code, reason = "system calls without a safe wrapper in nix")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc;

/// Attributes of a mount (`MOUNT_ATTR_*`).
pub(super) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(super) const NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(super) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;
pub(super) const NO_PROGRAMS: u64 = libc::MOUNT_ATTR_NOEXEC;

/// A handle of what is at `path`, which must not lead through a link.
pub(super) fn open_plain(path: &Path) -> io::Result<OwnedFd> {
    // Without O_NOFOLLOW, which would give a handle of a link at the end instead of an error.
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC);
    Ok(openat2(AT_FDCWD, path, how.resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS))?)
}

/// A detached copy of the tree at `handle`, with everything that is mounted below it.
pub(super) fn copy_tree(handle: impl AsFd) -> io::Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC;
    let flags = flags | (libc::AT_EMPTY_PATH | libc::AT_RECURSIVE).cast_unsigned();
    // SAFETY: the descriptor is open and the path is an empty C string that lives for ever.
    descriptor(unsafe { libc::syscall(libc::SYS_open_tree, handle.as_fd().as_raw_fd(), c"".as_ptr(), flags) })
}

/// Puts a detached tree on top of what `target` is.
pub(super) fn attach(tree: impl AsFd, target: impl AsFd) -> io::Result<()> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    let (tree, target) = (tree.as_fd().as_raw_fd(), target.as_fd().as_raw_fd());
    // SAFETY: both descriptors are open and both paths are empty C strings that live for ever.
    done(unsafe { libc::syscall(libc::SYS_move_mount, tree, c"".as_ptr(), target, c"".as_ptr(), flags) })
}

/// Sets attributes of a tree, also of everything mounted below it.
///
/// Fails with `ENOSYS` before Linux 5.12.
pub(super) fn restrict_tree(tree: impl AsFd, attributes: u64) -> io::Result<()> {
    let change = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = (libc::AT_EMPTY_PATH | libc::AT_RECURSIVE).cast_unsigned();
    let tree = tree.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, the path is an empty C string, and the structure is as long as we say.
    done(unsafe {
        let size = size_of::<libc::mount_attr>();
        libc::syscall(libc::SYS_mount_setattr, tree, c"".as_ptr(), flags, &raw const change, size)
    })
}

/// An option of a new file system.
pub(super) enum FsOption<'a> {
    Flag(&'a CStr),
    Text(&'a CStr, &'a CStr),
}

/// A new file system, not mounted anywhere yet.
pub(super) fn new_filesystem(kind: &CStr, options: &[FsOption<'_>], attributes: u64) -> io::Result<OwnedFd> {
    const SET_FLAG: u32 = 0;
    const SET_STRING: u32 = 1;
    const CREATE: u32 = 6;
    const CLOSE_ON_EXEC: u32 = 1;
    // SAFETY: the name is a C string.
    let context = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOSE_ON_EXEC) })?;
    let set = |command: u32, key: *const libc::c_char, value: *const libc::c_char| {
        // SAFETY: the descriptor is open; key and value are C strings or null, as the command wants them.
        done(unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), command, key, value, 0) })
    };
    for option in options {
        match option {
            FsOption::Flag(key) => set(SET_FLAG, key.as_ptr(), std::ptr::null())?,
            FsOption::Text(key, value) => set(SET_STRING, key.as_ptr(), value.as_ptr())?,
        }
    }
    set(CREATE, std::ptr::null(), std::ptr::null())?;
    // SAFETY: the descriptor is open.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOSE_ON_EXEC, attributes) })
}

/// Closes every descriptor of this process that is at least `first` and at most `last`.
///
/// Values that own one of them must never be dropped afterwards.
pub(super) fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: no memory is involved; the doc comment says what callers owe.
    done(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })
}

fn done(result: libc::c_long) -> io::Result<()> {
    Ok(Errno::result(result).map(drop)?)
}

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    let number = i32::try_from(Errno::result(result)?).map_err(io::Error::other)?;
    // SAFETY: the system call has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
