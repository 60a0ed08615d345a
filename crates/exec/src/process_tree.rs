//! Finding and ending everything that a command started.
//!
//! A command is the leader of a session of its own, and its descendants belong to that session whatever groups they make
//! (`set -m`). One that left it (`setsid`, a daemon) still carries the marker variable in its environment, so it is found
//! by the same walk over `/proc`. A program that leaves the session *and* shows no marker (it wiped its environment, or
//! wrote over it to rename itself) escapes this net.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The session of a command that has ended; something may still run in it (`server &`).
///
/// The number of a session is not given to anybody else while a member lives. Later it may be, so the session is taken
/// for the same only while a member is there that began before the command ended: no stranger is signalled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leftover {
    session: i32,
    /// When the command ended, in the unit of `/proc/PID/stat`.
    ended: u64,
}

impl Leftover {
    pub(crate) fn of(session: Pid) -> Self {
        Self { session: session.as_raw(), ended: ticks_since_boot() }
    }
}

/// Sends `signal` to everything that is left of these sessions, and says how many processes there were.
pub(crate) fn signal_leftovers(leftovers: &[Leftover], signal: Signal) -> usize {
    let alive: Vec<(i32, Stat)> = pids().filter_map(|pid| Some((pid, stat(pid)?))).filter(|(_, s)| !s.zombie).collect();
    let is_ours = |session| {
        let members = || alive.iter().filter(move |(_, stat)| stat.session == session);
        leftovers
            .iter()
            .filter(|leftover| leftover.session == session)
            .any(|leftover| members().any(|(_, stat)| stat.started <= leftover.ended))
    };
    let ours: Vec<i32> = alive.iter().filter(|(_, stat)| is_ours(stat.session)).map(|(pid, _)| *pid).collect();
    for pid in &ours {
        let _ = kill(Pid::from_raw(*pid), signal);
    }
    ours.len()
}

/// Sends `signal` to every process of the session of a command that has not been waited for yet, and says how many.
pub(crate) fn signal_session(session: Pid, signal: Signal) -> usize {
    let is_member = |pid: &i32| stat(*pid).is_some_and(|stat| stat.session == session.as_raw() && !stat.zombie);
    let members: Vec<i32> = pids().filter(is_member).collect();
    for pid in &members {
        let _ = kill(Pid::from_raw(*pid), signal);
    }
    members.len()
}

fn ticks_since_boot() -> u64 {
    /// `USER_HZ`, fixed at 100 for what the kernel shows to programs (`time(7)`).
    const PER_SECOND: u64 = 100;
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let (seconds, rest) = uptime.split_once('.').unwrap_or((&uptime, "0"));
    let hundredths = rest.get(..2).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    // Without a readable clock nothing began before the end, and nothing is signalled.
    seconds.parse().map_or(0, |seconds: u64| seconds * PER_SECOND + hundredths)
}

struct Stat {
    session: i32,
    started: u64,
    zombie: bool,
}

/// What `/proc/PID/stat` says (`proc_pid_stat(5)`): the name may contain anything, so fields are counted from its end.
fn stat(pid: i32) -> Option<Stat> {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    Some(Stat {
        zombie: *fields.first()? == "Z",
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// The numbers of all processes.
fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The variable that marks every process of a command.
pub(crate) const MARKER: &str = "HERMES_RUN";

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
