//! Becoming the command: what happens in the forked child until the program takes over.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::unistd::{chdir, execve, setsid};

use super::fork_server::default_handlers;
use super::protocol::Job;

/// What the command gets.
pub(super) struct Ends {
    pub output: OwnedFd,
    pub input: Option<OwnedFd>,
    /// Says what went wrong; closed by itself when the program takes over.
    pub trouble: OwnedFd,
}

/// Turns this process into the command. Comes back only if that failed; what failed has been told by then.
pub(super) fn become_command(job: Job, ends: Ends) {
    let trouble = ends.trouble.as_raw_fd();
    let Err((step, error)) = prepare_and_start(job, ends);
    let said = postcard::to_allocvec(&(step, error as i32)).unwrap_or_default();
    let _ = write_raw(trouble, &said);
}

fn prepare_and_start(job: Job, ends: Ends) -> Result<std::convert::Infallible, (String, Errno)> {
    let at = |step: &str| {
        let step = step.to_owned();
        move |error: Errno| (step, error)
    };
    // A session of its own: no controlling terminal, so a program that would ask there for a password fails instead of
    // waiting, and Ctrl-C in ours does not reach it.
    setsid().map_err(at("start a session"))?;
    if job.terminal {
        take_terminal(&ends.output).map_err(at("take the terminal"))?;
    }
    match &ends.input {
        Some(input) => nix::unistd::dup2_stdin(input),
        None => nix::fcntl::open("/dev/null", OFlag::O_RDONLY, nix::sys::stat::Mode::empty())
            .and_then(nix::unistd::dup2_stdin),
    }
    .map_err(at("set up standard input"))?;
    nix::unistd::dup2_stdout(&ends.output).map_err(at("set up standard output"))?;
    nix::unistd::dup2_stderr(&ends.output).map_err(at("set up standard error"))?;
    let directory = path_bytes(job.directory);
    chdir(directory.as_c_str()).map_err(|error| (format!("enter {}", directory.to_string_lossy()), error))?;
    let arguments: Vec<CString> = job.arguments.into_iter().map(path_bytes).collect();
    let variables: Vec<CString> = job.variables.into_iter().map(path_bytes).collect();
    let program = path_bytes(job.program);
    default_handlers();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(at("unblock signals"))?;
    // Every other descriptor was opened to close here.
    execve(&program, &arguments, &variables).map_err(|error| (format!("start {}", program.to_string_lossy()), error))
}

/// What cannot be said to the system (a NUL inside) is cut there; our side refuses it before it comes so far.
fn path_bytes(mut bytes: Vec<u8>) -> CString {
    if let Some(nul) = memchr::memchr(0, &bytes) {
        bytes.truncate(nul);
    }
    CString::new(bytes).unwrap_or_default()
}

#[expect(unsafe_code, reason = "ioctl(TIOCSCTTY)")]
fn take_terminal(terminal: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: the request takes a number, not a pointer.
    Errno::result(unsafe { nix::libc::ioctl(terminal.as_raw_fd(), nix::libc::TIOCSCTTY, 0) }).map(drop)
}

#[expect(unsafe_code, reason = "the descriptor's owner has moved into what failed")]
fn write_raw(descriptor: i32, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of a slice.
    let written = unsafe { nix::libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
