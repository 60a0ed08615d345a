//! A piece of our own work on bytes that nobody vouches for, in a process that can do nothing but work.
//!
//! ```text
//! hermes ──► fork server ──► keeper ──► worker
//!    └──────── socket ──────────┘
//! ```
//!
//! The worker is a copy of the fork server, so the function is there already; what it works on and what comes out are memory
//! files. Before it looks at a byte, it has given up every system call but those for memory and for the descriptors that
//! it has: it cannot open, connect, start or signal anything. The keeper waits for it, tells how it ended, and ends it
//! when nobody waits for the answer any more.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use hermes_core::Work;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::MsgFlags;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use super::fork_server::{close_all_but, leave, never_return};
use super::protocol::{self, Assignment, End, Event, Role};
use super::supervise::{Descriptors, child_signals};
use crate::sandbox::system_calls::ARCHITECTURE;

/// How a worker ends that has not done its work. Above them is what signals make.
pub(crate) mod code {
    /// It panicked; the words are in the file for what comes out.
    pub(crate) const PANICKED: i32 = 10;
    /// It could not be confined, and did not begin; the words are there as well.
    pub(crate) const NOT_CONFINED: i32 = 11;
    /// What came out is too long.
    pub(crate) const TOO_LONG: i32 = 12;
}

/// Room for calls within calls. Untouched, it costs nothing.
const STACK: usize = 64 * 1024 * 1024;

/// Lets a worker do its work and tells how it ended.
pub(super) fn keep(work: Assignment, descriptors: Vec<(Role, OwnedFd)>) {
    let _ = prctl::set_name(c"hermes-keep");
    let mut descriptors = Descriptors(descriptors);
    let Some(control) = descriptors.take(Role::Control) else { return };
    let (Some(input), Some(output)) = (descriptors.take(Role::Job), descriptors.take(Role::Output)) else { return };
    let Some(signals) = child_signals() else { return };
    let Some(worker) = fork_worker(work, input, output) else { return };
    loop {
        let mut watched =
            [PollFd::new(control.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut watched, PollTimeout::NONE);
        if watched[0].any() == Some(true) {
            // Nobody waits for it any more: that is all that can come from there.
            let _ = kill(worker, Signal::SIGKILL);
        }
        let end = match waitpid(worker, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => End::Code(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => End::Signal(signal as i32),
            Ok(_) => {
                while matches!(signals.read_signal(), Ok(Some(_))) {}
                continue;
            }
            Err(_) => return,
        };
        let _ = protocol::send(&control, &Event::Ended(end), &[], MsgFlags::MSG_DONTWAIT);
        return;
    }
}

#[expect(unsafe_code, reason = "fork(2)")]
fn fork_worker(work: Assignment, input: OwnedFd, output: OwnedFd) -> Option<Pid> {
    let keeper = getpid();
    // SAFETY: this process has one thread.
    match unsafe { fork() } {
        Ok(ForkResult::Child) => never_return(|| {
            let _ = prctl::set_name(c"hermes-work");
            let _ = prctl::set_pdeathsig(Signal::SIGKILL);
            // It may have gone before it could be told to take us along.
            if getppid() == keeper {
                stacker::grow(STACK, || begin(work, File::from(input), File::from(output)));
            }
        }),
        Ok(ForkResult::Parent { child }) => Some(child),
        Err(_) => None,
    }
}

fn begin(work: Assignment, mut input: File, mut output: File) {
    close_all_but(&[0, 1, 2, input.as_raw_fd(), output.as_raw_fd()]);
    // Where memory runs out for all, this is the one to go.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    // The words of a panic go where somebody reads them.
    std::panic::set_hook(Box::new(|_| {}));
    let confined = limit(&work).and_then(|()| filter());
    let (ended, bytes) = match confined {
        Err(why) => (code::NOT_CONFINED, why.into_bytes()),
        Ok(()) => match catch_unwind(AssertUnwindSafe(|| run(&work, &mut input))) {
            Ok(bytes) if bytes.len() as u64 > work.output => (code::TOO_LONG, Vec::new()),
            Ok(bytes) => (0, bytes),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
                (code::PANICKED, words.as_bytes().to_vec())
            }
        },
    };
    let written = output.write_all(&bytes);
    leave(if written.is_ok() { ended } else { code::TOO_LONG });
}

#[expect(unsafe_code, reason = "a function crosses into a copy of this process as its address")]
fn run(work: &Assignment, input: &mut File) -> Vec<u8> {
    // SAFETY: the address is that of a function of this type in the process of which this one is a copy (see `Assignment`),
    // and a copy has the same code at the same place.
    let function = unsafe { std::mem::transmute::<usize, Work>(work.function) };
    let mut bytes = Vec::new();
    if let Err(error) = input.rewind().and_then(|()| input.read_to_end(&mut bytes)) {
        std::panic::panic_any(error.to_string());
    }
    function(&bytes)
}

fn limit(work: &Assignment) -> Result<(), String> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|sizes| sizes.split(' ').next()?.parse().ok())
        .ok_or("cannot see how much memory there is")?;
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096);
    // What the copy has from its original is not its own doing.
    let memory = pages.saturating_mul(page.unsigned_abs()).saturating_add(work.memory);
    let limits = [
        (Resource::RLIMIT_AS, memory, memory),
        // The clock on the wall is the keeper's; this one holds where the keeper was killed.
        (Resource::RLIMIT_CPU, work.seconds + 1, work.seconds + 2),
        (Resource::RLIMIT_FSIZE, work.output, work.output),
        (Resource::RLIMIT_CORE, 0, 0),
    ];
    for (resource, soft, hard) in limits {
        setrlimit(resource, soft, hard).map_err(|error| format!("cannot limit it: {}", error.desc().to_lowercase()))?;
    }
    Ok(())
}

/// What work takes: memory, the two files, the clock, an end. All other calls answer "not permitted".
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

fn filter() -> Result<(), String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot filter system calls: {error}");
    let program = program().map_err(|error| cannot(&error))?;
    apply_filter(&program).map_err(|error| cannot(&error))
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|number| (*number, Vec::new())).collect();
    // Memory with code in it is of no use to honest work.
    let executes = u64::from(libc::PROT_EXEC.cast_unsigned());
    for number in [libc::SYS_mmap, libc::SYS_mprotect] {
        let plain = SeccompCondition::new(2, Width::Dword, Is::MaskedEq(executes), 0)?;
        rules.insert(number, vec![SeccompRule::new(vec![plain])?]);
    }
    // An abort is a signal to oneself.
    let itself = u64::from(std::process::id());
    let to_itself = SeccompCondition::new(0, Width::Dword, Is::Eq, itself)?;
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![to_itself])?]);
    let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    SeccompFilter::new(rules, denied, SeccompAction::Allow, ARCHITECTURE).and_then(BpfProgram::try_from)
}
