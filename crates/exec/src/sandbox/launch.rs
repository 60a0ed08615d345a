//! Running one command of the person in the sandbox, with everything of ours: terminal, input, output.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, Signal, signal};

use super::Confinement;

/// Runs `program` in the current directory and waits for its end.
///
/// What a terminal sends (Ctrl-C) is for the command, which decides what comes of it. If this process ends before the
/// command does, the command is killed. To be called from the main thread: when a thread ends, so does what it started.
///
/// An error of the kind `NotFound` or `PermissionDenied` without more words is the program's; every other one says
/// which step of confining failed. Nothing of the command has run then.
#[expect(unsafe_code, reason = "confining happens between fork and exec")]
pub fn launch(confinement: &Confinement, program: &OsStr, arguments: &[OsString]) -> io::Result<ExitStatus> {
    let (program, arguments) = confinement.command(program, arguments)?;
    let confinement = confinement.clone();
    let (mut trouble, mut childs_trouble) = io::pipe()?;
    let mut command = Command::new(program);
    command.args(arguments);
    let _ours = Ignored::new()?;
    // SAFETY: the child has one thread. It allocates, which the C library allows after fork: it takes its own locks
    // before and frees them in the child. No other lock of ours or of the standard library is taken.
    unsafe {
        command.pre_exec(move || {
            for it in FROM_A_TERMINAL {
                signal(it, SigHandler::SigDfl)?;
            }
            set_pdeathsig(Signal::SIGKILL)?;
            confinement.enter(None).map(drop).inspect_err(|error| {
                // Only an error's number gets to the parent by itself.
                let _ = childs_trouble.write_all(error.to_string().as_bytes());
            })
        });
    }
    let spawned = command.spawn();
    // The builder holds our copy of the pipe's writing end.
    drop(command);
    match spawned {
        Ok(mut child) => child.wait(),
        Err(error) => {
            let mut words = String::new();
            trouble.read_to_string(&mut words)?;
            Err(if words.is_empty() { error } else { io::Error::other(words) })
        }
    }
}

/// While this lives, Ctrl-C and Ctrl-\ do not end us.
struct Ignored([SigHandler; 2]);

const FROM_A_TERMINAL: [Signal; 2] = [Signal::SIGINT, Signal::SIGQUIT];

impl Ignored {
    #[expect(unsafe_code, reason = "changing what a signal does is unsafe where it runs code")]
    fn new() -> io::Result<Self> {
        // SAFETY: ignoring runs no code of ours.
        let ignore = |it| unsafe { signal(it, SigHandler::SigIgn) };
        Ok(Self([ignore(FROM_A_TERMINAL[0])?, ignore(FROM_A_TERMINAL[1])?]))
    }
}

impl Drop for Ignored {
    #[expect(unsafe_code, reason = "changing what a signal does is unsafe where it runs code")]
    fn drop(&mut self) {
        for (it, before) in FROM_A_TERMINAL.into_iter().zip(self.0) {
            // SAFETY: what was there before was sound there.
            let _ = unsafe { signal(it, before) };
        }
    }
}
