//! Finding and ending everything that a command started.
//!
//! A command is the leader of a session of its own, and its descendants belong to that session whatever groups they make
//! (`set -m`). One that left it (`setsid`, a daemon) still carries the marker variable in its environment, so it is found
//! by the same walk over `/proc`. A program that leaves the session *and* shows no marker (it wiped its environment, or
//! wrote over it to rename itself) escapes this net.

use std::borrow::Borrow;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that marks every process of a command.
pub(crate) const MARKER: &str = "HERMES_RUN";

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

/// Signals what is left of one command: its session and what carries its marker. Says how many
/// processes there were. Only for a command that runs or has just been ended: later the session may be another's.
pub(crate) fn signal_command(session: Pid, run: &str, signal: Signal) -> usize {
    signal_all(running().filter(|process| process.session == session.as_raw() || process.is_marked(run)), signal)
}

/// Signals what is left of these sessions, and what carries a marker that starts with `run`. Says how many processes
/// there were.
pub(crate) fn signal_leftovers(leftovers: &[Leftover], run: &str, signal: Signal) -> usize {
    let processes: Vec<Process> = running().collect();
    let is_left_over = |session| {
        let oldest = processes.iter().filter(|process| process.session == session).map(|process| process.started).min();
        let mut endings = leftovers.iter().filter(|leftover| leftover.session == session);
        endings.any(|leftover| oldest.is_some_and(|oldest| oldest <= leftover.ended))
    };
    signal_all(processes.iter().filter(|process| is_left_over(process.session) || process.is_marked(run)), signal)
}

/// Signals every process whose marker starts with `run`.
pub(crate) fn signal_marked(run: &str, signal: Signal) {
    signal_all(running().filter(|process| process.is_marked(run)), signal);
}

fn signal_all(processes: impl Iterator<Item = impl Borrow<Process>>, signal: Signal) -> usize {
    let mut count = 0;
    for process in processes {
        // One that has ended in the meantime is no failure.
        let _ = kill(Pid::from_raw(process.borrow().pid), signal);
        count += 1;
    }
    count
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

/// A process that has not ended.
struct Process {
    pid: i32,
    session: i32,
    started: u64,
}

impl Process {
    /// What `/proc/PID/stat` says (`proc_pid_stat(5)`): the name may contain anything, so fields are counted from its
    /// end.
    fn read(pid: i32) -> Option<Self> {
        let text = std::fs::read_to_string(folder(pid).join("stat")).ok()?;
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        let has_ended = *fields.first()? == "Z";
        let process = Self { pid, session: fields.get(3)?.parse().ok()?, started: fields.get(19)?.parse().ok()? };
        (!has_ended).then_some(process)
    }

    fn is_marked(&self, run: &str) -> bool {
        // Only our own processes can be read, and a process that ended in the meantime cannot: both mean "not ours".
        let environ = std::fs::read(folder(self.pid).join("environ")).unwrap_or_default();
        let mut marks =
            environ.split(|byte| *byte == 0).filter_map(|variable| variable.strip_prefix(MARKER.as_bytes()));
        marks.any(|mark| mark.strip_prefix(b"=").is_some_and(|mark| mark.starts_with(run.as_bytes())))
    }
}

fn folder(pid: i32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

fn running() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_member_of_the_session_that_carries_the_marker_is_one_process() {
        let run = format!("{}-once", std::process::id());
        let mut child = Command::new("setsid").args(["sleep", "60"]).env(MARKER, &run).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while Process::read(pid).is_none_or(|process| process.session != pid) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let session = Pid::from_raw(pid);
        let counted = [
            signal_command(session, &run, Signal::SIGCONT),
            signal_command(session, "no such run", Signal::SIGCONT),
            signal_leftovers(&[Leftover::of(session)], &run, Signal::SIGCONT),
            signal_command(session, &run, Signal::SIGKILL),
        ];
        child.wait().unwrap();
        assert_eq!(counted, [1; 4]);
        assert_eq!(signal_command(session, &run, Signal::SIGCONT), 0);
    }
}
