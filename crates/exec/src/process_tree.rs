//! Finding and ending everything that a command started.
//!
//! Most descendants share the command's process group. One that left it (`setsid`, a daemon) still carries the marker
//! variable in its environment, so it is found by a walk over `/proc`. A program that leaves the group *and* shows no
//! marker (it wiped its environment, or wrote over it to rename itself) escapes this net.

use std::path::Path;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// A process group that outlived its command, and a member by which it is known again.
///
/// The number of a group is not given to anybody else while a member lives, and a member is known by its start time:
/// together they make sure that no stranger is signalled.
#[derive(Clone, Debug)]
pub(crate) struct Leftover {
    group: Pid,
    members: Vec<(i32, String)>,
}

impl Leftover {
    /// The group, if anything of it is still alive.
    pub(crate) fn of(group: Pid) -> Option<Self> {
        killpg(group, None).ok()?;
        let in_group = |pid: &i32| stat(*pid).is_some_and(|stat| stat.group == group.as_raw());
        let members = pids().filter(in_group).filter_map(|pid| Some((pid, stat(pid)?.started))).collect();
        Some(Self { group, members })
    }

    /// Sends `signal` to the group if it is still the same; says whether it is.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        let same = |(pid, started): &(i32, String)| {
            stat(*pid).is_some_and(|stat| stat.started == *started && stat.group == self.group.as_raw() && !stat.zombie)
        };
        let alive = self.members.iter().any(same);
        if alive {
            signal_group(self.group, signal);
        }
        alive
    }
}

struct Stat {
    group: i32,
    started: String,
    zombie: bool,
}

/// What `/proc/PID/stat` says (`proc_pid_stat(5)`): the name may contain anything, so fields are counted from its end.
fn stat(pid: i32) -> Option<Stat> {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    Some(Stat {
        zombie: *fields.first()? == "Z",
        group: fields.get(2)?.parse().ok()?,
        started: (*fields.get(19)?).to_owned(),
    })
}

/// The numbers of all processes.
fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The variable that marks every process of a command.
pub(crate) const MARKER: &str = "HERMES_RUN";

/// Sends `signal` to every process of the group; a group that is gone already is fine.
pub(crate) fn signal_group(group: Pid, signal: Signal) {
    let _ = killpg(group, signal);
}

/// Sends `signal` to every process whose marker starts with `run`, and says how many there were.
pub(crate) fn signal_marked(run: &str, signal: Signal) -> usize {
    let needle = format!("{MARKER}={run}").into_bytes();
    let found: Vec<Pid> = marked(&needle);
    for pid in &found {
        let _ = kill(*pid, signal);
    }
    found.len()
}

fn marked(needle: &[u8]) -> Vec<Pid> {
    pids().filter(|pid| carries(*pid, needle)).map(Pid::from_raw).collect()
}

fn carries(pid: i32, needle: &[u8]) -> bool {
    // Only our own processes can be read, and a process that ended in the meantime cannot: both mean "not ours".
    let environ = std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|variable| variable.starts_with(needle))
}
