//! The processes below one process, as the kernel lists them.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Every descendant of `root` that has not ended, parents before their children.
pub(crate) fn descendants(root: i32) -> Vec<i32> {
    let mut found = children(root);
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children(pid));
        next += 1;
    }
    found.retain(|pid| !is_zombie(*pid));
    found
}

/// Signals every descendant of `root`; says how many there were.
pub(crate) fn signal(root: i32, signal: Signal) -> usize {
    let found = descendants(root);
    for pid in &found {
        // One that has ended in the meantime is no failure.
        let _ = kill(Pid::from_raw(*pid), signal);
    }
    found.len()
}

pub(super) fn children(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    // A thread has children of its own.
    for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            // It has ended, or the kernel has no such lists (CONFIG_PROC_CHILDREN).
            Err(_) if kernel_lists_children() => {}
            Err(_) => return children_by_parent(pid),
        }
    }
    found
}

/// Whether a process has begun to end and is not gone yet (`PF_EXITING` of the kernel, in the flags of `proc_pid_stat(5)`).
pub(super) fn is_ending(pid: i32) -> bool {
    const FLAGS: usize = 6;
    const EXITING: u64 = 0x4;
    let flags = stat_field(pid, FLAGS).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & EXITING != 0)
}

fn kernel_lists_children() -> bool {
    let pid = std::process::id();
    fs::exists(format!("/proc/{pid}/task/{pid}/children")).unwrap_or(false)
}

fn children_by_parent(parent: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| stat_field(*pid, 1).and_then(|field| field.parse().ok()) == Some(parent)).collect()
}

fn is_zombie(pid: i32) -> bool {
    stat_field(pid, 0).is_none_or(|state| state == "Z" || state == "X")
}

/// A field of `/proc/PID/stat`, counted from the state: the name before it may contain anything (`proc_pid_stat(5)`).
pub(crate) fn stat_field(pid: i32, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.split(' ').nth(field).map(str::to_owned)
}
