//! Telling by its behaviour that a command will not end by itself: it accepts connections or watches files, prints
//! nothing, and uses no processor.
//!
//! No list of names knows all servers, and `pip install uvicorn` is none.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use hermes_core::Kept;

use crate::supervisor::tree;

/// A command is looked at only after it has printed nothing for so long.
pub(super) const QUIET: Duration = Duration::from_secs(5);
/// Time between two looks.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// Processor time between two looks below which it counts as idle, in ticks of 10 ms.
const IDLE_TICKS: u64 = 2;

/// Looks at the processes of one command.
#[derive(Debug, Default)]
pub(super) struct Looker {
    ticks: Option<u64>,
}

impl Looker {
    /// What the processes below and including `root` do, if they only wait for somebody since the last look.
    pub(super) fn look(&mut self, root: i32) -> Option<Kept> {
        let mut processes = tree::descendants(root);
        processes.push(root);
        let ticks = processes.iter().map(|pid| processor_ticks(*pid)).sum();
        let before = self.ticks.replace(ticks)?;
        if ticks.saturating_sub(before) > IDLE_TICKS {
            return None;
        }
        let listening = listening_ports(root);
        let mut watches = false;
        for link in processes.iter().flat_map(|pid| descriptors(*pid)) {
            let inode = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            if let Some(port) = inode.and_then(|inode| listening.get(inode)) {
                return Some(Kept::Serving(*port));
            }
            watches |= link.ends_with("inotify");
        }
        watches.then_some(Kept::Watching)
    }
}

/// User and system time (fields 14 and 15 of `proc_pid_stat(5)`).
fn processor_ticks(pid: i32) -> u64 {
    let field = |at| tree::stat_field(pid, at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    field(11) + field(12)
}

fn descriptors(pid: i32) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned()))
}

/// The ports on which somebody listens in the network that `pid` sees, by the number of the socket (`proc_pid_net(5)`).
fn listening_ports(pid: i32) -> HashMap<String, u16> {
    const LISTEN: &str = "0A";
    let tables =
        ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
            (*fields.get(3)? == LISTEN).then(|| fields.get(9).map(|inode| ((*inode).to_owned(), port)))?
        })
        .collect()
}
