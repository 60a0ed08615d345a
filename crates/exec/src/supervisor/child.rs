//! Becoming the command: what happens in the forked child until the program takes over.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::unistd::{chdir, execve, execvpe, setsid};

use super::fork_server::{close_all_but, default_handlers};
use super::protocol::{INHERITED, Job};

/// The longest message about what went wrong, in bytes: a pipe takes that much in one piece.
pub(super) const LONGEST_TROUBLE: usize = 4096;

/// What the command gets.
pub(super) struct Ends {
    pub output: OwnedFd,
    pub input: Option<OwnedFd>,
    /// Files that it gets under numbers of their own.
    pub inherited: [Option<OwnedFd>; 2],
    /// Where it sends its listener when it is confined.
    pub door: Option<OwnedFd>,
    /// Says what went wrong; closed by itself when the program takes over.
    pub trouble: OwnedFd,
}

/// Turns this process into the command. Comes back only if that failed; what failed has been told by then.
pub(super) fn become_command(job: Job, ends: &Ends) {
    let Err(mut why) = prepare_and_start(job, ends);
    why.truncate(why.floor_char_boundary(LONGEST_TROUBLE));
    let _ = nix::unistd::write(&ends.trouble, why.as_bytes());
}

fn prepare_and_start(job: Job, ends: &Ends) -> Result<std::convert::Infallible, String> {
    let at = |step: &str| {
        let step = step.to_owned();
        move |error: Errno| cannot(&step, error)
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
    chdir(directory.as_c_str()).map_err(|error| cannot(&format!("enter {}", directory.to_string_lossy()), error))?;
    default_handlers();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(at("unblock signals"))?;
    let (mut program, mut arguments, mut variables) = (job.program, job.arguments, job.variables);
    if let Some(confinement) = job.confinement {
        let keep = [Some(&ends.trouble), ends.door.as_ref(), ends.inherited[0].as_ref(), ends.inherited[1].as_ref()];
        let keep: Vec<i32> = keep.into_iter().flatten().map(AsRawFd::as_raw_fd).collect();
        // Part of the sandbox stays behind and waits; it must not hold anything open that we wait for.
        close_all_but(&[&[0, 1, 2], keep.as_slice()].concat());
        let door = ends.door.as_ref().map(AsFd::as_fd);
        let entered = confinement.enter(door).map_err(|error| error.to_string())?;
        variables
            .extend(entered.variables.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()));
        let name = arguments.first().cloned().unwrap_or_default();
        let given: Vec<OsString> = arguments.drain(..).skip(1).map(OsString::from_vec).collect();
        let (confined, given) =
            confinement.command(OsStr::from_bytes(&program), &given).map_err(|error| error.to_string())?;
        let is_itself = confined.as_bytes() == program;
        arguments.push(if is_itself { name } else { confined.as_bytes().to_vec() });
        arguments.extend(given.into_iter().map(OsString::into_vec));
        program = confined.into_vec();
    }
    for (descriptor, number) in ends.inherited.iter().zip(INHERITED) {
        if let Some(descriptor) = descriptor {
            give(descriptor, number).map_err(at("pass a file on"))?;
        }
    }
    let arguments: Vec<CString> = arguments.into_iter().map(path_bytes).collect();
    let variables: Vec<CString> = variables.into_iter().map(path_bytes).collect();
    let program = path_bytes(program);
    // Every other descriptor was opened to close here. A program without a folder is looked for in `PATH`.
    let started = if program.as_bytes().contains(&b'/') {
        execve(&program, &arguments, &variables)
    } else {
        execvpe(&program, &arguments, &variables)
    };
    started.map_err(|error| cannot(&format!("start {}", program.to_string_lossy()), error))
}

fn cannot(step: &str, error: Errno) -> String {
    format!("cannot {step}: {}", error.desc().to_lowercase())
}

/// Makes a descriptor known under a number, to the program as well.
#[expect(unsafe_code, reason = "dup2(2) onto a number that nobody owns")]
fn give(descriptor: &OwnedFd, number: i32) -> Result<(), Errno> {
    // SAFETY: nothing else in this process knows the number.
    Errno::result(unsafe { nix::libc::dup2(descriptor.as_raw_fd(), number) }).map(drop)
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
