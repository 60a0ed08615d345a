//! Control groups (cgroup version 2), where we may make them: the kernel then ends a whole command in one step, which
//! even a program that forks faster than it can be killed one by one does not survive.
//!
//! Nothing depends on them: without one, the supervisor kills its descendants in rounds until none is left.

use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

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
    let probe = folder.join(format!("hermes-probe-{}", std::process::id()));
    fs::create_dir(&probe).ok()?;
    let works = fs::exists(probe.join("cgroup.kill")).unwrap_or(false)
        && OpenOptions::new().write(true).open(folder.join("cgroup.procs")).is_ok();
    let _ = fs::remove_dir(&probe);
    works.then_some(folder)
}

/// Makes a group; answers where a process writes `0` to enter it.
pub(super) fn make(group: &Path) -> Option<OwnedFd> {
    fs::create_dir(group).ok()?;
    OpenOptions::new().write(true).open(group.join("cgroup.procs")).ok().map(OwnedFd::from)
}

/// Kills everything in a group.
pub(super) fn kill(group: &Path) {
    let _ = fs::write(group.join("cgroup.kill"), "1");
}

/// Removes an empty group.
pub(super) fn remove(group: &Path) {
    let _ = fs::remove_dir(group);
}
