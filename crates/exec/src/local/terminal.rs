//! Pseudo-terminals.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use hermes_core::TerminalSize;
use nix::fcntl::OFlag;
use nix::pty::{Winsize, grantpt, posix_openpt, ptsname_r, unlockpt};

/// Our end of a new terminal of this size, and the end for a command.
#[expect(unsafe_code, reason = "ioctl(TIOCSWINSZ), and taking over a descriptor")]
pub(super) fn open(size: TerminalSize) -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the pointer is to a structure of the kind that the request wants.
    let set = unsafe { nix::libc::ioctl(ours.as_raw_fd(), nix::libc::TIOCSWINSZ, &raw const size) };
    if set < 0 {
        return Err(io::Error::last_os_error());
    }
    let theirs: File =
        OpenOptions::new().read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits()).open(ptsname_r(&ours)?)?;
    // SAFETY: the number was just given up by its owner.
    let ours = unsafe { OwnedFd::from_raw_fd(ours.into_raw_fd()) };
    Ok((ours, theirs.into()))
}
