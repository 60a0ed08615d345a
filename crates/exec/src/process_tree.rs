//! Finding and ending everything that a command started.
//!
//! Most descendants share the command's process group. One that left it (`setsid`, a daemon) still carries the marker
//! variable in its environment, so it is found by a walk over `/proc`. A program that wipes its environment *and*
//! leaves the group escapes this net.

use std::path::Path;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

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
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| carries(*pid, needle))
        .map(Pid::from_raw)
        .collect()
}

fn carries(pid: i32, needle: &[u8]) -> bool {
    // Only our own processes can be read, and a process that ended in the meantime cannot: both mean "not ours".
    let environ = std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|variable| variable.starts_with(needle))
}
