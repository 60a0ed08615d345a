//! What a commit means to do and how far it is: one JSON value a line, on disk before anything that relies on it.
//!
//! A line without its end was being written when the power went; it does not count.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::changes::exact_path;
use super::marker::Marker;
use super::steps::{Flush, Permission, Step};

const NAME: &str = "journal";

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// What will be done. Nothing was touched before this line.
    Plan(Plan),
    /// Everything new is built, under temporary names with these inodes. Swapping began after this line.
    Prepared { new: Vec<Option<u64>> },
    /// Everything is swapped. From here on the way is forward.
    Applied,
    /// Everything replaced is in the undo folder, and the moment when that was so.
    Committed { marker: Marker },
    /// Folders are being opened, to see whether it can be taken back.
    Looking,
    /// They are closed again, since it cannot.
    Looked,
    /// Taking back began.
    TakingBack,
    /// Nothing in this folder is needed any more.
    Over,
}

/// What a commit means to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    #[serde(with = "exact_path")]
    pub(super) workspace: PathBuf,
    /// Device and inode of the workspace, which may be another folder when we come back.
    pub(super) identity: (u64, u64),
    /// Whether what is replaced can be moved to the undo folder, rather than copied.
    pub(super) moves: bool,
    /// How what is written gets to disk.
    pub(super) flush: Flush,
    pub(super) steps: Vec<Step>,
    pub(super) permissions: Vec<Permission>,
}

/// How far a commit got.
#[derive(Debug)]
pub(super) enum Reached {
    /// Nothing was done.
    Nothing,
    /// At most temporary names were made.
    Planned(Plan),
    /// Some paths may be swapped.
    Prepared(Plan),
    /// All paths are swapped.
    Applied(Plan),
    /// All is done.
    Committed(Plan, Marker),
    /// All is done, but some folders may be open.
    Looking(Plan, Marker),
    /// Some paths may be taken back.
    TakingBack(Plan),
    /// The folder is rubbish.
    Over,
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct Journal(File);

impl Journal {
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().create_new(true).append(true).open(folder.join(NAME))?))
    }

    pub(super) fn reopen(folder: &Path) -> io::Result<Self> {
        let path = folder.join(NAME);
        let file = OpenOptions::new().append(true).open(&path)?;
        let text = std::fs::read(&path)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        // A line that was being written must neither swallow the next one nor be completed by it.
        file.set_len(whole as u64)?;
        Ok(Self(file))
    }

    /// Adds a line and waits until it is on disk.
    pub(super) fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.0.write_all(text.as_bytes())?;
        self.0.sync_data()
    }

    pub(super) fn read(folder: &Path) -> io::Result<Reached> {
        let text = match std::fs::read_to_string(folder.join(NAME)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Reached::Nothing),
            Err(error) => return Err(error),
        };
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let mut reached = Reached::Nothing;
        for line in whole {
            reached = match (serde_json::from_str(line)?, reached) {
                (Line::Plan(plan), Reached::Nothing) => Reached::Planned(plan),
                (Line::Prepared { new }, Reached::Planned(mut plan)) if new.len() == plan.steps.len() => {
                    for (step, new) in plan.steps.iter_mut().zip(new) {
                        step.new = new;
                    }
                    Reached::Prepared(plan)
                }
                (Line::Applied, Reached::Prepared(plan)) => Reached::Applied(plan),
                (Line::Committed { marker }, Reached::Applied(plan))
                | (Line::Looked, Reached::Looking(plan, marker)) => Reached::Committed(plan, marker),
                (Line::Looking, Reached::Committed(plan, marker)) => Reached::Looking(plan, marker),
                (Line::TakingBack, Reached::Committed(plan, _) | Reached::Looking(plan, _)) => {
                    Reached::TakingBack(plan)
                }
                (Line::Over, _) => Reached::Over,
                (line, _) => return Err(io::Error::other(format!("the journal makes no sense at {line:?}"))),
            };
        }
        Ok(reached)
    }
}
