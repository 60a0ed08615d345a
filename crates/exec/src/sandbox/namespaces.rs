//! Own namespaces: the processes of the strongest mechanism.
//!
//! Three of them, because only a child can be in a new PID namespace, and its first process must not be the command:
//!
//! ```text
//! outer    called `enter`; waits, then ends as the command ended
//! └ init   first process inside; builds the root, confines itself, starts the command, reaps until nobody is left
//!   └ command   returns from `enter`
//! ```
//!
//! They talk over one socket pair: init reports a failed step, then that the command starts, then how it ended. Init is
//! confined before it starts the command, so there is nothing in it worth attacking; it cannot be inspected, because its
//! memory still has the environment of the program that we were forked from.
//!
//! All three stay in one session and process group, so that a terminal's signals reach the command, which inside has
//! nothing to do for that. The outer one holds these signals back and lets the command decide.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::{get_dumpable, set_dumpable, set_name, set_pdeathsig};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, chdir, fork, getegid, geteuid};

use super::plan::Plan;
use super::{
    Confinement, Entered, Network, failed, landlock, mount_calls, mounts, network, privileges, step, system_calls,
};

/// What init says first: the command starts.
const STARTS: u8 = b'S';
/// What init says first when it could not: the rest of the stream is the error.
const FAILED: u8 = b'F';

/// See [`Confinement::enter`].
pub(super) fn enter(confinement: &Confinement, listener_to: Option<BorrowedFd<'_>>) -> io::Result<Entered> {
    let directory = std::env::current_dir().map_err(step("find the current folder"))?;
    let plan = Plan::of(confinement)?;
    new_namespaces(confinement.network)?;
    let (mut to_init, to_outer) = UnixStream::pair().map_err(step("make a channel"))?;
    let mask = hold_signals().map_err(step("hold signals back"))?;
    match fork_process()? {
        ForkResult::Parent { child } => {
            drop(to_outer);
            let Err(error) = wait_for_start(&mut to_init) else { wait_and_end_alike(to_init) };
            let _ = waitpid(child, None);
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?;
            Err(error)
        }
        ForkResult::Child => {
            drop(to_init);
            be_init(to_outer, || start_command(confinement, &plan, &directory, listener_to, &mask))
        }
    }
}

/// The first thing of init's half: everything until there are two processes.
fn start_command(
    confinement: &Confinement,
    plan: &Plan,
    directory: &Path,
    listener_to: Option<BorrowedFd<'_>>,
    mask: &SigSet,
) -> io::Result<(ForkResult, Entered)> {
    let mut entered = Entered::default();
    if confinement.network != Network::Open {
        network::loopback_up().map_err(step("switch on the loopback device"))?;
    }
    if confinement.network == Network::Proxied {
        let to = listener_to.ok_or_else(|| failed("open the door to the proxy", "nobody wants the listener"))?;
        entered.variables = network::open_door(to).map_err(step("open the door to the proxy"))?;
    }
    mounts::build(plan)?;
    chdir(directory).map_err(|error| step(format_args!("go to {} inside", directory.display()))(error.into()))?;
    privileges::limit(&confinement.limits)?;
    privileges::drop_all()?;
    landlock::enter_below(plan, confinement.network)?;
    system_calls::filter(confinement)?;
    set_dumpable(false).map_err(|error| step("protect its memory")(error.into()))?;
    let forked = fork_process()?;
    if forked.is_child() {
        set_dumpable(true)?;
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(mask), None)?;
    }
    Ok((forked, entered))
}

/// Moves this process into namespaces of its own, in which its user and group keep their numbers.
pub(super) fn new_namespaces(wanted: Network) -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    let mut kinds = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    kinds |= CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    if wanted != Network::Open {
        kinds |= CloneFlags::CLONE_NEWNET;
    }
    // The files below /proc/self belong to root while a process cannot be inspected, as after a change of its user.
    let inspectable = get_dumpable()?;
    set_dumpable(true)?;
    unshare(kinds).map_err(|error| step("make namespaces")(error.into()))?;
    let write = |name: &str, text: String| {
        fs::write(Path::new("/proc/self").join(name), text).map_err(step(format_args!("write {name}")))
    };
    // Without this an ordinary user may not map a group (user_namespaces(7)).
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))?;
    Ok(set_dumpable(inspectable)?)
}

#[expect(unsafe_code, reason = "fork(2) is unsafe where there are threads")]
fn fork_process() -> io::Result<ForkResult> {
    // SAFETY: `Confinement::enter` asks for a process with one thread; so no lock is held by another one.
    unsafe { fork() }.map_err(|error| step("fork")(error.into()))
}

/// Holds back what a terminal or a shell sends to the whole group: it is for the command. Gives the mask as it was.
#[expect(unsafe_code, reason = "changing what a signal does is unsafe where it runs code")]
fn hold_signals() -> io::Result<SigSet> {
    // Where it is ignored, the kernel reaps children itself and nobody learns how they ended.
    // SAFETY: the default action runs no code of ours.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    let group = [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
        Signal::SIGPIPE,
        Signal::SIGALRM,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
    ];
    let (held, mut before): (SigSet, SigSet) = (group.into_iter().collect(), SigSet::empty());
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&held), Some(&mut before))?;
    Ok(before)
}

/// Runs as init: `start` gives the command's process. In that process this returns; in init it never does.
fn be_init(mut to_outer: UnixStream, start: impl FnOnce() -> io::Result<(ForkResult, Entered)>) -> io::Result<Entered> {
    let started = die_with(&to_outer).map_err(step("be tied to the process outside")).and_then(|()| start());
    match started {
        Ok((ForkResult::Child, entered)) => Ok(entered),
        Ok((ForkResult::Parent { child }, _)) => {
            let _ = to_outer.write_all(&[STARTS]);
            reap(to_outer, child)
        }
        Err(error) => {
            let _ = to_outer.write_all(format!("{}{error}", char::from(FAILED)).as_bytes());
            end(1)
        }
    }
}

/// Makes the kernel kill this process when the outer one ends.
fn die_with(to_outer: &UnixStream) -> io::Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    // It may have ended before; its number says nothing in here, but its half of the channel is closed then.
    let mut channel = [PollFd::new(to_outer.as_fd(), PollFlags::empty())];
    poll(&mut channel, PollTimeout::ZERO)?;
    if channel[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP)) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}

/// Init's life: reaps until nobody is left, and says once how the command ended.
#[expect(unsafe_code, reason = "nix's wait does not know all signals; the plain number is passed on")]
fn reap(to_outer: UnixStream, command: Pid) -> ! {
    let _ = set_name(c"sandbox-init");
    // A pipe or a folder must not stay in use because of us.
    close_all_but(&to_outer);
    let _ = chdir("/");
    let mut to_outer = Some(to_outer);
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a number of ours.
        match Errno::result(unsafe { libc::waitpid(-1, &raw mut status, 0) }) {
            Ok(pid) if pid == command.as_raw() => {
                // What is left may stay from now on, so the end of the outer process must not be ours.
                let _ = set_pdeathsig(None);
                if let Some(mut to_outer) = to_outer.take() {
                    let _ = to_outer.write_all(&status.to_ne_bytes());
                }
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => end(0),
        }
    }
}

/// Waits until init says that the command starts, or why it does not.
fn wait_for_start(to_init: &mut UnixStream) -> io::Result<()> {
    let mut first = [0];
    if to_init.read_exact(&mut first).is_ok() {
        if first[0] == STARTS {
            return Ok(());
        }
        let mut error = String::new();
        to_init.read_to_string(&mut error)?;
        return Err(io::Error::other(error));
    }
    Err(failed("start the command", "the process that prepares it was killed"))
}

/// The outer process's life once the command has started.
#[expect(unsafe_code, reason = "nix does not know all signals; the plain number is sent")]
fn wait_and_end_alike(mut to_init: UnixStream) -> ! {
    // Whoever reads the command's output must see its end although we are still here.
    close_all_but(&to_init);
    let mut status = [0; size_of::<libc::c_int>()];
    // No answer: init was killed, and everything inside with it.
    let status = to_init.read_exact(&mut status).map_or(libc::SIGKILL, |()| libc::c_int::from_ne_bytes(status));
    if libc::WIFEXITED(status) {
        end(libc::WEXITSTATUS(status))
    }
    let number = libc::WTERMSIG(status);
    // The command has written its memory to disk if it was to be; ours has nothing to tell.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    if let Ok(known) = Signal::try_from(number)
        && !matches!(known, Signal::SIGKILL | Signal::SIGSTOP)
    {
        // SAFETY: the default action runs no code of ours.
        let _ = unsafe { signal(known, SigHandler::SigDfl) };
    }
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    // SAFETY: kill(2) involves no memory.
    unsafe { libc::kill(libc::getpid(), number) };
    // As a shell says it, should the signal be one that does not end us.
    end(128 + number)
}

fn close_all_but(kept: &UnixStream) {
    let kept = kept.as_raw_fd().cast_unsigned();
    let below = if kept == 0 { Ok(()) } else { mount_calls::close_range(0, kept - 1) };
    // Before Linux 5.9 some stay open: a reader of the output then waits until we end, which is only late.
    let _ = below.and_then(|()| mount_calls::close_range(kept + 1, u32::MAX));
}

/// Ends this process at once: what was registered to run at the end belongs to the program that we were forked from.
#[expect(unsafe_code, reason = "_exit(2) has no safe wrapper")]
fn end(code: i32) -> ! {
    // SAFETY: it does not return and runs no code of ours.
    unsafe { libc::_exit(code) }
}
