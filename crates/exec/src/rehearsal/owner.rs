//! Whose a stage is, and what becomes of it when its owner dies.
//!
//! A stage's folder holds a file that names the process that made it: number, start time (numbers are given again), and
//! the namespace in which that number means something. A process of another namespace cannot be asked for, so its stages
//! are left alone.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::{RehearsalError, trouble};
use crate::beneath::Root;

const PREFIX: &str = "stage-";
const OWNER: &str = "owner";

/// A stage without an owner file is being made, or was when its maker died. Making one takes no longer than this.
const MAKING: Duration = Duration::from_secs(3600);

/// Makes a folder that only its owner may enter and writes down who that is.
pub(super) fn new_folder(base: &Path) -> Result<PathBuf, RehearsalError> {
    let failed = |error: io::Error| trouble("make a stage in", base, &error);
    let folder = private_folder(base, PREFIX).map_err(failed)?;
    let owner = Process::this().map_err(failed)?;
    let mut file = fs::File::create_new(folder.path().join(OWNER)).map_err(failed)?;
    write!(file, "{} {} {}", owner.pid, owner.started, owner.namespace).map_err(failed)?;
    Ok(folder.keep())
}

/// Makes a folder with a new name that only its owner may enter.
pub(super) fn private_folder(base: &Path, prefix: &str) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).permissions(fs::Permissions::from_mode(0o700)).tempdir_in(base)
}

/// Removes a stage's folder with all it holds.
pub(super) fn remove(folder: &Path) -> Result<(), RehearsalError> {
    let remove = || {
        let (Some(base), Some(name)) = (folder.parent(), folder.file_name()) else { return Ok(()) };
        Root::open(base)?.place(Path::new(name))?.remove()
    };
    remove().map_err(|error| trouble("remove", folder, &error))
}

/// Removes the stages in `base` whose owners have died, and says how many there were.
pub fn reap(base: &Path) -> Result<usize, RehearsalError> {
    let failed = |error: io::Error| trouble("read", base, &error);
    let this = Process::this().map_err(failed)?;
    let mut reaped = 0;
    for entry in fs::read_dir(base).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_stage = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_stage && entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_abandoned(&entry.path(), &this) {
            remove(&entry.path())?;
            reaped += 1;
        }
    }
    Ok(reaped)
}

fn is_abandoned(stage: &Path, this: &Process) -> bool {
    match fs::read_to_string(stage.join(OWNER)).ok().and_then(|text| Process::parse(&text)) {
        Some(owner) if owner.namespace != this.namespace => false,
        Some(owner) => started(owner.pid) != Some(owner.started),
        None => {
            let made = fs::symlink_metadata(stage).and_then(|metadata| metadata.modified());
            made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > MAKING))
        }
    }
}

struct Process {
    pid: u32,
    started: u64,
    namespace: String,
}

impl Process {
    fn this() -> io::Result<Self> {
        let pid = std::process::id();
        let started = started(pid).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
        let namespace = fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned();
        Ok(Self { pid, started, namespace })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (pid, started, namespace) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?);
        Some(Self { pid, started, namespace: namespace.to_owned() })
    }
}

/// When a process began, in ticks since the system did (`proc_pid_stat(5)`, field 22). None for one that has ended.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets that may hold anything; fields are counted after its end.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn stage_of(base: &Path, name: &str, owner: &str) -> PathBuf {
        let stage = base.join(name);
        fs::create_dir(&stage).unwrap();
        fs::write(stage.join(OWNER), owner).unwrap();
        stage
    }

    #[test]
    fn only_stages_of_dead_owners_are_reaped() {
        let base = tempfile::tempdir().unwrap();
        let this = Process::this().unwrap();
        let alive = new_folder(base.path()).unwrap();
        let (pid, started, namespace) = (this.pid, this.started, this.namespace);
        let reused = stage_of(base.path(), "stage-reused", &format!("{pid} {} {namespace}", started + 1));
        let dead = stage_of(base.path(), "stage-dead", &format!("4194305 1 {namespace}"));
        let elsewhere = stage_of(base.path(), "stage-elsewhere", "4194305 1 pid:[1]");
        let being_made = base.path().join("stage-being-made");
        fs::create_dir(&being_made).unwrap();
        let no_stage = stage_of(base.path(), "notes", &format!("4194305 1 {namespace}"));

        assert_eq!(reap(base.path()).unwrap(), 2);

        assert!(!reused.exists() && !dead.exists());
        assert!(alive.exists() && elsewhere.exists() && being_made.exists() && no_stage.exists());
    }
}
