//! Waiting for a descriptor to have something to read.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Puts a descriptor into the reactor of the current runtime.
#[expect(unsafe_code, reason = "the reactor wants a promise about the descriptor")]
pub(crate) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open, and the same, for as long as it is owned, and the answer owns it.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }.map_err(io::Error::from)
}
