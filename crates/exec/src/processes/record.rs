//! What is written down about processes in the background, for whoever looks later or from elsewhere.
//!
//! One file of lines a process, beside its log: what was known at the start, then what became of it.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hermes_core::{FinishedHow, ProcessFacts, ProcessState};
use serde::{Deserialize, Serialize};

use crate::local::place::{record_of, socket_of};
use crate::supervisor::protocol::{End, Ended};

/// The first line of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begun {
    pub id: String,
    /// The conversation that started it.
    pub owner: String,
    /// The program in which that conversation runs.
    pub owner_pid: u32,
    pub started: SystemTime,
    #[serde(flatten)]
    pub facts: ProcessFacts,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Ended(Ended),
    Begun(Box<Begun>),
}

/// A process as its record tells of it.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its name, `proc_` and twelve hexadecimal digits.
    pub id: String,
    /// The conversation that started it.
    pub owner: String,
    /// The number of the program in which that conversation runs.
    pub owner_pid: u32,
    /// When it began.
    pub started: SystemTime,
    /// When it ended, as far as somebody saw it.
    pub ended: Option<SystemTime>,
    /// What was known at its start; secrets in the command are masked.
    pub facts: ProcessFacts,
    /// How it is now.
    pub state: ProcessState,
    /// Its output.
    pub log: PathBuf,
}

impl Record {
    /// All records in a folder, oldest first. A file that is no record is passed over.
    pub fn all(folder: &Path) -> Vec<Self> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        let mut records: Vec<Self> = files.filter_map(|file| Self::read(&file)).collect();
        records.sort_by(|a, b| (a.started, &a.id).cmp(&(b.started, &b.id)));
        records
    }

    fn read(file: &Path) -> Option<Self> {
        let open = File::open(file).ok()?;
        // Looked at before the lines: a process that ends in between has its line already.
        let is_supervised = is_locked(&open);
        let (mut begun, mut ended) = (None, None);
        for line in BufReader::new(open).lines() {
            match serde_json::from_str(&line.ok()?) {
                Ok(Line::Begun(line)) => begun = Some(*line),
                Ok(Line::Ended(line)) => ended = Some(line),
                Err(_) => {}
            }
        }
        let begun = begun?;
        let state = match &ended {
            Some(Ended { ended: End::Code(code), .. }) => ProcessState::Ended(FinishedHow::Exited(*code)),
            Some(Ended { ended: End::Signal(signal), .. }) => ProcessState::Ended(FinishedHow::Signalled(*signal)),
            None if is_supervised => ProcessState::Running,
            None => ProcessState::Lost,
        };
        Some(Self {
            id: begun.id,
            owner: begun.owner,
            owner_pid: begun.owner_pid,
            started: begun.started,
            ended: ended.map(|ended| ended.at),
            facts: begun.facts,
            state,
            log: file.with_extension("log"),
        })
    }

    /// The same process as it is now; `None` if its record is gone.
    pub fn again(&self) -> Option<Self> {
        Self::read(&record_of(&self.log))
    }

    /// Takes its files away.
    pub fn remove(&self) -> io::Result<()> {
        remove_files(&self.log)
    }

    /// Whether there is none for this log, and nobody is about to write one.
    pub(super) fn is_missing(log: &Path) -> bool {
        match File::open(record_of(log)) {
            Ok(open) => !is_locked(&open) && Self::read(&record_of(log)).is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// Takes the log of a process away, with its socket and its record.
pub(super) fn remove_files(log: &Path) -> io::Result<()> {
    let files = [socket_of(log), log.to_owned(), record_of(log)];
    files.iter().try_for_each(|file| match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    })
}

/// A supervisor holds the lock on the record of its process for as long as it lives.
fn is_locked(record: &File) -> bool {
    matches!(record.try_lock_shared(), Err(fs::TryLockError::WouldBlock))
}
