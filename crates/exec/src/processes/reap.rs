//! Clearing up what a crash left.
//!
//! There is little to do: when Hermes dies, supervisors end their commands by themselves. What can be left are files, and
//! the processes of a supervisor that was killed as well.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hermes_core::ProcessState;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use super::{KEPT_AFTER_END, Record};
use crate::local::{MARKER, pid_namespace};
use crate::temporary::is_abandoned;

/// What was cleared up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Names of processes of which nobody knows how they ended.
    pub lost: Vec<String>,
    /// Processes that nobody looked after any more, and that were ended.
    pub ended: usize,
    /// Old records and logs that were taken away.
    pub records: usize,
    /// Temporary folders that were taken away.
    pub folders: usize,
}

/// Ends processes that nobody looks after, and takes away the files of those that ended more than half an hour ago and
/// the temporary folders of programs that are gone. `records` is the folder of [`super::TableSetup`], `temporary` are
/// those in which a [`crate::Temporary`] was made.
pub fn reap(records: &Path, temporary: &[PathBuf], now: SystemTime) -> Reaped {
    let mut reaped = Reaped { ended: end_orphans(), ..Reaped::default() };
    for record in Record::all(records) {
        let ended = match record.state {
            ProcessState::Running => continue,
            ProcessState::Ended(_) => record.ended,
            ProcessState::Lost => {
                reaped.lost.push(record.id.clone());
                fs::metadata(&record.log).and_then(|metadata| metadata.modified()).ok()
            }
        };
        let is_old = ended.is_none_or(|ended| now.duration_since(ended).is_ok_and(|since| since > KEPT_AFTER_END));
        reaped.records += usize::from(is_old && record.remove().is_ok());
    }
    reaped.folders = temporary.iter().map(|folder| remove_unused_folders(folder)).sum();
    reaped
}

/// Ends what carries the mark of a Hermes that is gone. A mark names the process number of its Hermes; while a process
/// of that number lives, nothing is ended: it may be the one.
fn end_orphans() -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let orphans =
        pids.filter(|pid| marked_by(*pid).is_some_and(|hermes| !fs::exists(format!("/proc/{hermes}")).unwrap_or(true)));
    orphans.filter(|pid| kill(Pid::from_raw(*pid), Signal::SIGKILL).is_ok()).count()
}

/// The number of the Hermes whose mark a process carries. Only our own processes can be read.
fn marked_by(pid: i32) -> Option<u32> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let prefix = format!("{MARKER}=");
    let mark = environ.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
    // PID-NAMESPACE-RANDOM-NUMBER. What belongs to another namespace is for those who live there.
    let mut parts = std::str::from_utf8(mark).ok()?.split('-');
    let (hermes, namespace) = (parts.next()?.parse().ok()?, parts.next()?.parse::<u64>().ok()?);
    (namespace == pid_namespace()).then_some(hermes)
}

fn remove_unused_folders(temporary: &Path) -> usize {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == geteuid().as_raw())
    });
    ours.filter(|entry| is_abandoned(&entry.path()) && fs::remove_dir_all(entry.path()).is_ok()).count()
}
