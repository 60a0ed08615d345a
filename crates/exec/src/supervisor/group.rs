//! Control groups (cgroup version 2), where we may make them: the kernel then ends a whole command in one step, which
//! even a program that forks faster than it can be killed one by one does not survive.
//!
//! Nothing depends on them: without one, the supervisor kills its descendants in rounds until none is left.

use std::fs::{self, OpenOptions};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid};

/// A flag beyond what the first 32 bits hold (clone(2)).
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// The folder in which this process may make groups of its own; `None` where it may not.
pub(crate) fn parent() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?.trim_start_matches('/').to_owned();
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then_some(place)
    })?;
    let folder = Path::new(mount).join(own);
    // Trying is the only way to know: a group can be read-only, owned by somebody else, or not delegated.
    let probe = folder.join(format!("{PROBE}{}", std::process::id()));
    fs::create_dir(&probe).ok()?;
    let works = fs::exists(probe.join("cgroup.kill")).unwrap_or(false)
        && OpenOptions::new().write(true).open(folder.join("cgroup.procs")).is_ok();
    let _ = fs::remove_dir(&probe);
    works.then_some(folder)
}

/// What the names of our groups begin with; the mark of a command follows.
pub(crate) const PREFIX: &str = "hermes-";
/// The same for those that are made only to see whether it is possible; the number of the process follows.
pub(crate) const PROBE: &str = "hermes-probe-";

/// Makes a group; answers its folder, for [`fork_into`].
pub(super) fn make(group: &Path) -> Option<OwnedFd> {
    fs::create_dir(group).ok()?;
    fs::File::open(group).ok().map(OwnedFd::from)
}

/// Forks a child that is born in a group. To move it there later would take the kernel some twenty milliseconds, during
/// which nobody may fork.
#[expect(unsafe_code, reason = "clone3(2)")]
pub(super) fn fork_into(group: &OwnedFd) -> nix::Result<ForkResult> {
    // SAFETY: all zeros is a valid value of this structure of numbers.
    let mut arguments: nix::libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = nix::libc::SIGCHLD.cast_unsigned().into();
    arguments.cgroup = group.as_raw_fd().cast_unsigned().into();
    // SAFETY: like fork(2) in a process of one thread; the pointer and the size are those of the structure.
    let pid = unsafe { nix::libc::syscall(nix::libc::SYS_clone3, &raw const arguments, size_of_val(&arguments)) };
    match Errno::result(pid)? {
        0 => Ok(ForkResult::Child),
        pid => Ok(ForkResult::Parent { child: Pid::from_raw(i32::try_from(pid).unwrap_or(i32::MAX)) }),
    }
}

/// Kills everything in a group.
pub(crate) fn kill(group: &Path) {
    let _ = fs::write(group.join("cgroup.kill"), "1");
}

/// Removes an empty group; answers whether it is gone.
pub(crate) fn remove(group: &Path) -> bool {
    fs::remove_dir(group).is_ok()
}
