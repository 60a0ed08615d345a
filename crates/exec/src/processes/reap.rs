//! Clearing up what a crash left.
//!
//! There is little to do: when Hermes dies, supervisors end their commands by themselves. What can be left are files, and
//! the processes and control groups of a supervisor that was killed as well. Of what belongs to a Hermes that lives,
//! nothing is touched.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hermes_core::ProcessState;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use super::record::remove_files;
use super::{KEPT_AFTER_END, Record};
use crate::local::place::{record_of, socket_of};
use crate::local::{MARKER, pid_namespace};
use crate::supervisor::group;
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
    /// Control groups of programs that are gone.
    pub groups: usize,
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
        let is_old = ended.is_none_or(|ended| is_old(ended, now));
        reaped.records += usize::from(is_old && record.remove().is_ok());
    }
    reaped.records += remove_unreadable(records, now);
    reaped.groups = group::parent().map_or(0, |parent| remove_groups(&parent));
    reaped.folders = temporary.iter().map(|folder| remove_unused_folders(folder)).sum();
    reaped
}

/// Ends what carries the mark of a Hermes that is gone. A mark names the process number of its Hermes; while a process
/// of that number lives, nothing is ended: it may be the one.
fn end_orphans() -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let orphans = pids.filter(|pid| marked_by(*pid).is_some_and(is_gone));
    orphans.filter(|pid| kill(Pid::from_raw(*pid), Signal::SIGKILL).is_ok()).count()
}

/// The number of the Hermes whose mark a process carries. Only our own processes can be read.
fn marked_by(pid: i32) -> Option<u32> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let prefix = format!("{MARKER}=");
    let mark = environ.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
    owner_of(std::str::from_utf8(mark).ok()?)
}

/// The number of the Hermes that made a mark, PID-NAMESPACE-RANDOM-NUMBER. What belongs to another namespace is for those
/// who live there.
fn owner_of(mark: &str) -> Option<u32> {
    let mut parts = mark.split('-');
    let (hermes, namespace) = (parts.next()?.parse().ok()?, parts.next()?.parse::<u64>().ok()?);
    (namespace == pid_namespace()).then_some(hermes)
}

fn is_gone(hermes: u32) -> bool {
    !fs::exists(format!("/proc/{hermes}")).unwrap_or(true)
}

/// Takes away what a start that died half-way left: logs and sockets without a record that can be read.
fn remove_unreadable(records: &Path, now: SystemTime) -> usize {
    let entries = fs::read_dir(records).into_iter().flatten().flatten();
    let parts = entries.map(|entry| entry.path()).filter(|path| {
        let kind = path.extension().and_then(|kind| kind.to_str());
        matches!(kind, Some("log" | "jsonl" | "sock"))
    });
    let logs: BTreeSet<PathBuf> = parts.map(|path| path.with_extension("log")).collect();
    let is_rubbish = |log: &&PathBuf| Record::is_missing(log) && last_change(log).is_some_and(|at| is_old(at, now));
    logs.iter().filter(is_rubbish).filter(|log| remove_files(log).is_ok()).count()
}

/// When the files of a process changed last.
fn last_change(log: &Path) -> Option<SystemTime> {
    let files = [socket_of(log), log.to_owned(), record_of(log)];
    files.iter().filter_map(|file| fs::symlink_metadata(file).and_then(|about| about.modified()).ok()).max()
}

fn is_old(ended: SystemTime, now: SystemTime) -> bool {
    now.duration_since(ended).is_ok_and(|since| since > KEPT_AFTER_END)
}

/// Ends what is left in the control groups of programs that are gone, and removes them.
fn remove_groups(parent: &Path) -> usize {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let groups = entries.map(|entry| entry.path()).filter(|group| {
        let name = group.file_name().unwrap_or_default().to_string_lossy();
        let owner = match name.strip_prefix(group::PROBE) {
            Some(pid) => pid.parse().ok(),
            None => name.strip_prefix(group::PREFIX).and_then(owner_of),
        };
        owner.is_some_and(is_gone)
    });
    groups
        .filter(|group| {
            group::kill(group);
            // One in which something is still dying goes the next time.
            group::remove(group)
        })
        .count()
}

fn remove_unused_folders(temporary: &Path) -> usize {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == geteuid().as_raw())
    });
    ours.filter(|entry| is_abandoned(&entry.path()) && fs::remove_dir_all(entry.path()).is_ok()).count()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::print_stderr)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    #[test]
    fn files_of_starts_that_died_go_and_those_of_one_that_is_under_way_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| File::create(folder.path().join(name)).unwrap();
        for name in ["a.log", "b.log", "b.jsonl", "b.sock", "c.sock", "other.txt"] {
            file(name);
        }
        file("begins.log");
        let held = file("begins.jsonl");
        held.lock().unwrap();
        let records = |now| reap(folder.path(), &[], now).records;
        assert_eq!(records(SystemTime::now()), 0);
        assert_eq!(records(SystemTime::now() + KEPT_AFTER_END + Duration::from_secs(60)), 3);
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["begins.jsonl", "begins.log", "other.txt"]);
    }

    #[test]
    fn control_groups_of_a_program_that_is_gone_are_removed() {
        let Some(parent) = group::parent() else {
            eprintln!("skipped: no control groups can be made here");
            return;
        };
        // No process has a number beyond the highest one (proc_sys_kernel(5)).
        let (dead, this, namespace) = (4_194_305, std::process::id(), pid_namespace());
        let make = |name: String| {
            let group = parent.join(name);
            fs::create_dir(&group).unwrap();
            group
        };
        let gone = [make(format!("{}{dead}-{namespace}-test{this}-1.", group::PREFIX))];
        let probe = make(format!("{}{dead}", group::PROBE));
        let live = make(format!("{}{this}-{namespace}-test-1.", group::PREFIX));
        let elsewhere = make(format!("{}{dead}-1-test{this}-1.", group::PREFIX));
        remove_groups(&parent);
        let there = [&gone[0], &probe, &live, &elsewhere].map(|group| group.exists());
        for group in [live, elsewhere] {
            group::remove(&group);
        }
        assert_eq!(there, [false, false, true, true]);
    }
}
