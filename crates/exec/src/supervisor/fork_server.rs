//! The process that forks supervisors, so that we never have to fork while our own threads run.
//!
//! It is a copy of this process made once ([`ForkServer::start`]), with one thread and no descriptors but its socket.
//! Asked to, it forks a supervisor, which then forks the command. It ends when we do.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::socket::MsgFlags;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, setsid};

use super::protocol::{self, Assignment, Order, Received, Role};
use super::{supervise, tree, worker};

/// How long a process that ends may take until its children have another parent.
const HANDING_ON: Duration = Duration::from_secs(2);

/// How many supervisors are remembered before those that have ended are looked for.
const MOST_REMEMBERED: usize = 64;

/// Makes supervisors. One is enough for a whole program; environments share it.
#[derive(Debug)]
pub struct ForkServer(Mutex<State>);

#[derive(Debug)]
struct State {
    /// `None` while it rests.
    connection: Option<Connection>,
    used: Instant,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    server: Pid,
}

impl ForkServer {
    /// Forks it. Best done early, while the program is small and has one thread: the copy is cheap then. Later is
    /// possible too, because the copy uses nothing of ours but the memory allocator, which the C libraries of Linux
    /// keep usable after a fork.
    pub fn start() -> io::Result<Self> {
        Ok(Self(Mutex::new(State { connection: Some(Connection::new()?), used: Instant::now() })))
    }

    /// Starts a supervisor with these descriptors. On an error nothing was started.
    pub(crate) fn supervise(&self, descriptors: &[(Role, BorrowedFd<'_>)]) -> io::Result<()> {
        self.order(&Order::Start { roles: roles(descriptors) }, descriptors)
    }

    /// Starts a piece of work with these descriptors. On an error nothing was started.
    pub(crate) fn work(&self, work: Assignment, descriptors: &[(Role, BorrowedFd<'_>)]) -> io::Result<()> {
        self.order(&Order::Work { work, roles: roles(descriptors) }, descriptors)
    }

    fn order(&self, order: &Order, descriptors: &[(Role, BorrowedFd<'_>)]) -> io::Result<()> {
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(|(_, descriptor)| *descriptor).collect();
        let mut state = self.lock();
        state.used = Instant::now();
        if let Some(open) = &state.connection
            && protocol::send(&open.socket, order, &descriptors, MsgFlags::empty()).is_ok()
        {
            return Ok(());
        }
        // It rests, or somebody has killed it: a packet that could not be sent was not read, so another one may be told
        // the same.
        drop(state.connection.take());
        let new = state.connection.insert(Connection::new()?);
        protocol::send(&new.socket, order, &descriptors, MsgFlags::empty()).map(drop)
    }

    /// Ends it if nothing was started for `idle` and nothing that it started is left: it holds on to the memory of the
    /// moment in which it was copied. The next command makes a new one. Answers how long it is until it may rest.
    pub(crate) fn rest(&self, idle: Duration) -> Duration {
        let mut state = self.lock();
        let left = idle.saturating_sub(state.used.elapsed());
        if left > Duration::ZERO {
            return left;
        }
        let has_work = |open: &Connection| !tree::children(open.server.as_raw()).is_empty();
        if !state.connection.as_ref().is_some_and(has_work) {
            drop(state.connection.take());
        }
        idle
    }

    /// What it has started and is left.
    #[cfg(test)]
    pub(crate) fn children(&self) -> Vec<i32> {
        self.lock().connection.as_ref().map(|open| tree::children(open.server.as_raw())).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what a supervisor looked after that was killed itself.
    pub(crate) fn sweep(&self) {
        if let Some(open) = &self.lock().connection {
            // Without a server its orphans are out of reach; the marker in their environment is left to find them.
            let _ = protocol::send(&open.socket, &Order::Sweep, &[], MsgFlags::empty());
        }
    }
}

impl Connection {
    #[expect(unsafe_code, reason = "fork(2)")]
    fn new() -> io::Result<Self> {
        let (ours, theirs) = protocol::pair()?;
        // A handler of ours must not run in the copy: it would write into descriptors that both share.
        let mut before = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
        // SAFETY: the copy has this thread only. It never returns from `serve`, takes none of our locks, and what it
        // allocates comes from an allocator that is usable after fork (glibc, and musl since 1.2.2).
        let forked = unsafe { fork() };
        if matches!(forked, Ok(ForkResult::Child)) {
            never_return(|| {
                drop(ours);
                serve(&theirs);
            });
        }
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
        match forked? {
            ForkResult::Parent { child } => Ok(Self { socket: ours, server: child }),
            ForkResult::Child => unreachable!("the copy never returns"),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // With its socket shut down it ends at once; nobody else may wait for it.
        let _ = nix::sys::socket::shutdown(self.socket.as_raw_fd(), nix::sys::socket::Shutdown::Both);
        let _ = waitpid(self.server, None);
    }
}

fn roles(descriptors: &[(Role, BorrowedFd<'_>)]) -> Vec<Role> {
    descriptors.iter().map(|(role, _)| *role).collect()
}

/// Runs `work` and ends this process, also when it panics: nothing of the program it was copied from may go on in it.
pub(super) fn never_return(work: impl FnOnce()) -> ! {
    let done = catch_unwind(AssertUnwindSafe(work));
    leave(i32::from(done.is_err()))
}

/// Ends this process.
#[expect(unsafe_code, reason = "_exit(2), because the ordinary exit runs handlers that belong to the original")]
pub(super) fn leave(code: i32) -> ! {
    // SAFETY: ends the process; there is nothing to keep in order.
    unsafe { nix::libc::_exit(code) }
}

fn serve(socket: &OwnedFd) {
    let _ = setsid();
    let _ = prctl::set_name(c"hermes-fork");
    let _ = prctl::set_child_subreaper(true);
    forget_handlers();
    let _ = quiet_standard_descriptors();
    close_all_but(&[0, 1, 2, socket.as_raw_fd()]);
    // Nobody asks how a supervisor ended; the kernel buries them.
    ignore(Signal::SIGCHLD);
    let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    warm_up(socket);
    let mut supervisors: Vec<i32> = Vec::new();
    while let Ok(Received::Message(order, descriptors)) = protocol::receive(socket, MsgFlags::empty()) {
        match order {
            // Without room for all of them the kernel drops some. Those that came close here: whoever asked sees the
            // connection end before anything began.
            Order::Start { roles } | Order::Work { roles, .. } if roles.len() != descriptors.len() => {}
            Order::Start { roles } => {
                let descriptors = roles.into_iter().zip(descriptors).collect();
                supervisors.extend(fork_child(socket, || supervise::supervise(descriptors)));
            }
            Order::Work { work, roles } => {
                let descriptors = roles.into_iter().zip(descriptors).collect();
                supervisors.extend(fork_child(socket, || worker::keep(work, descriptors)));
            }
            Order::Sweep => sweep(&mut supervisors),
        }
        // The numbers of those that have ended are given to others some day.
        if supervisors.len() > MOST_REMEMBERED {
            forget_ended(&mut supervisors);
        }
    }
    sweep(&mut supervisors);
}

/// Forks a child that ends at once, so that the first command does not wait for the memory that is touched by that.
fn warm_up(socket: &OwnedFd) {
    let _ = fork_child(socket, || {});
}

/// Ends what a supervisor left behind that was killed itself: its processes are ours now.
fn sweep(supervisors: &mut Vec<i32>) {
    // Whoever is about to end closes its connection first, and hands on its processes after that.
    let began = Instant::now();
    while supervisors.iter().any(|supervisor| tree::is_ending(*supervisor)) && began.elapsed() < HANDING_ON {
        std::thread::sleep(Duration::from_millis(1));
    }
    let children = forget_ended(supervisors);
    for orphan in children.into_iter().filter(|child| !supervisors.contains(child)) {
        tree::signal(orphan, Signal::SIGKILL);
        let _ = nix::sys::signal::kill(Pid::from_raw(orphan), Signal::SIGKILL);
    }
}

/// Keeps the supervisors that live; answers all children.
fn forget_ended(supervisors: &mut Vec<i32>) -> Vec<i32> {
    let children = tree::children(std::process::id().cast_signed());
    supervisors.retain(|supervisor| children.contains(supervisor));
    children
}

#[expect(unsafe_code, reason = "fork(2)")]
fn fork_child(socket: &OwnedFd, life: impl FnOnce()) -> Option<i32> {
    // SAFETY: this process has one thread.
    match unsafe { fork() } {
        Ok(ForkResult::Child) => never_return(|| {
            let _ = nix::unistd::close(socket.as_raw_fd());
            life();
        }),
        Ok(ForkResult::Parent { child }) => Some(child.as_raw()),
        // The descriptors close here: whoever asked sees the connection end before anything began.
        Err(_) => None,
    }
}

/// Puts every signal back to what it does by itself; the originals' handlers are not for a copy.
pub(super) fn forget_handlers() {
    for signal in Signal::iterator() {
        set_handler(signal, nix::libc::SIG_DFL);
    }
    // A reader that has gone is an error of the write, not an end of this process.
    ignore(Signal::SIGPIPE);
}

/// Puts every signal back for a program that is about to be started, the ignored ones too.
pub(super) fn default_handlers() {
    for signal in Signal::iterator() {
        set_handler(signal, nix::libc::SIG_DFL);
    }
}

fn ignore(signal: Signal) {
    set_handler(signal, nix::libc::SIG_IGN);
}

#[expect(unsafe_code, reason = "signal(2)")]
fn set_handler(signal: Signal, handler: nix::libc::sighandler_t) {
    // SAFETY: the handler is one of the two that are no functions.
    unsafe {
        nix::libc::signal(signal as i32, handler);
    }
}

/// Standard input, output and error lead nowhere: the terminal and the pipes of the original are not to be held open.
fn quiet_standard_descriptors() -> io::Result<()> {
    let nowhere = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(&nowhere)?;
    nix::unistd::dup2_stdout(&nowhere)?;
    nix::unistd::dup2_stderr(&nowhere)?;
    Ok(())
}

/// Closes every other descriptor.
#[expect(unsafe_code, reason = "close(2) on numbers: the values that own them live in the original")]
pub(super) fn close_all_but(keep: &[RawFd]) {
    let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open.into_iter().filter(|descriptor| !keep.contains(descriptor)) {
        // SAFETY: nothing in this copy uses them; one that was the listing itself is closed already.
        unsafe {
            nix::libc::close(descriptor);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_killed_server_is_replaced() {
        let server = ForkServer::start().unwrap();
        let pid = |server: &ForkServer| server.lock().connection.as_ref().map(|open| open.server);
        let first = pid(&server).unwrap();
        nix::sys::signal::kill(first, Signal::SIGKILL).unwrap();
        waitpid(first, None).unwrap();
        let (_ours, theirs) = protocol::pair().unwrap();
        server.supervise(&[(Role::Control, theirs.as_fd())]).unwrap();
        assert!(pid(&server).is_some_and(|second| second != first));
    }
}
