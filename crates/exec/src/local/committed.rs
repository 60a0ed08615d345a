//! The rehearsals that were committed and can still be taken back.
//!
//! Beside the folder with what a commit replaced lies a note for people: where it was, when, and what it did. The note
//! follows the folder: one without the other is what a crash left, and is put right before anybody works on.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::rehearsal::{Recovered, Undo};

/// How long a commit can be taken back: what it replaced takes room, and what is older is in nobody's mind any more.
const KEPT_FOR: Duration = Duration::from_secs(14 * 24 * 3600);
/// How many commits can be taken back.
const MOST_KEPT: usize = 50;

/// A commit that can be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedRehearsal {
    /// Its name.
    pub name: String,
    /// The folder in which it happened.
    pub workspace: PathBuf,
    /// What ran; secrets are masked.
    pub command: String,
    /// When it was committed.
    pub at: SystemTime,
    /// What it did.
    pub lines: Vec<String>,
}

impl CommittedRehearsal {
    /// All of them below `undo`, oldest first. A note that cannot be read is passed over.
    pub fn all(undo: &Path) -> Vec<Self> {
        let entries = fs::read_dir(undo).into_iter().flatten().flatten();
        let notes = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "json"));
        let mut all: Vec<Self> = notes.filter_map(|note| serde_json::from_slice(&fs::read(note).ok()?).ok()).collect();
        all.sort_by(|a, b| (a.at, &a.name).cmp(&(b.at, &b.name)));
        all
    }

    pub(super) fn remember(&self, undo: &Path) -> Result<(), String> {
        let note = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(note_of(undo, &self.name));
        new.and_then(|mut file| file.write_all(&note)).map_err(|error| error.to_string())
    }

    /// Puts everything back as it was before the commit. Refused, with nothing changed, when something that the commit
    /// wrote has been changed since.
    pub fn undo(&self, undo: &Path) -> Result<(), String> {
        let _lock = lock(undo)?;
        self.open(undo)?.undo().map_err(|error| error.to_string())?;
        self.forget(undo)
    }

    /// Gives up the way back.
    pub fn discard(&self, undo: &Path) -> Result<(), String> {
        let _lock = lock(undo)?;
        self.give_up(undo)
    }

    fn give_up(&self, undo: &Path) -> Result<(), String> {
        self.open(undo)?.discard().map_err(|error| error.to_string())?;
        self.forget(undo)
    }

    fn open(&self, undo: &Path) -> Result<Undo, String> {
        Undo::open(&undo.join(&self.name)).map_err(|error| error.to_string())
    }

    fn forget(&self, undo: &Path) -> Result<(), String> {
        fs::remove_file(note_of(undo, &self.name)).map_err(|error| error.to_string())
    }
}

fn note_of(undo: &Path, name: &str) -> PathBuf {
    undo.join(format!("{name}.json"))
}

/// Waits until nobody else commits or recovers there.
pub(super) fn lock(undo: &Path) -> Result<File, String> {
    let file = lock_file(undo)?;
    file.lock().map_err(|error| error.to_string())?;
    Ok(file)
}

fn lock_if_free(undo: &Path) -> Result<File, String> {
    if !undo.is_dir() {
        return Err("nothing was committed".into());
    }
    let file = lock_file(undo)?;
    file.try_lock().map_err(|error| error.to_string())?;
    Ok(file)
}

fn lock_file(undo: &Path) -> Result<File, String> {
    let path = undo.join(".lock");
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| error.to_string())
}

/// Brings to an end what a crash interrupted: a commit is taken back or finished, taking back is finished. Then gives up
/// the way back from what was committed long ago. Before anybody works on. Answers a sentence for each that was
/// interrupted.
pub fn recover_commits(undo: &Path, now: SystemTime) -> Vec<String> {
    // While another program commits, what lies there is its own.
    let Ok(_lock) = lock_if_free(undo) else { return Vec::new() };
    let entries = fs::read_dir(undo).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    let said = folders.filter_map(|folder| recover(undo, &folder, now)).collect();
    let (gone, there): (Vec<_>, Vec<_>) =
        CommittedRehearsal::all(undo).into_iter().partition(|committed| !undo.join(&committed.name).exists());
    let too_many = there.len().saturating_sub(MOST_KEPT);
    for committed in gone {
        let _ = committed.forget(undo);
    }
    for (at, committed) in there.into_iter().enumerate() {
        let is_old = now.duration_since(committed.at).is_ok_and(|since| since > KEPT_FOR);
        if at < too_many || is_old {
            // What cannot be removed now is tried again at the next start.
            let _ = committed.give_up(undo);
        }
    }
    said
}

/// What became of one folder, if that is worth a word.
fn recover(undo: &Path, folder: &Path, now: SystemTime) -> Option<String> {
    let name = folder.file_name()?.to_string_lossy().into_owned();
    Some(match Undo::recover(folder) {
        Ok(Recovered::Committed(_)) if note_of(undo, &name).exists() => return None,
        Ok(Recovered::Removed) => return None,
        Ok(Recovered::NotCommitted) => "a rehearsal whose commit was interrupted was put back".to_owned(),
        Ok(Recovered::TakenBack) => {
            "a rehearsal was being taken back, was interrupted, and is taken back now".to_owned()
        }
        Ok(Recovered::Committed(kept)) => {
            // What it was is in no journal, but so it can be listed and taken back like any other.
            let command = "(its commit was interrupted and then finished)".to_owned();
            let workspace = kept.workspace().unwrap_or_default();
            let note = CommittedRehearsal { name: name.clone(), workspace, command, at: now, lines: Vec::new() };
            match note.remember(undo) {
                Ok(()) => format!(
                    "a rehearsal whose commit was interrupted was finished (hermes rehearsals undo {name} takes it back)"
                ),
                Err(why) => why,
            }
        }
        Err(error) => error.to_string(),
    })
}
