//! What a checkpoint says of itself in the store: its name, and the message of its commits.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::store::Reference;
use super::{Checkpoint, Purpose, Totals};

/// What a checkpoint says of itself in the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    /// The project's name in the store; its path may be no text.
    pub(super) key: String,
    /// Its path, for people.
    pub(super) project: String,
    pub(super) purpose: Purpose,
    pub(super) reason: String,
    pub(super) task: String,
    pub(super) undoes: Option<String>,
}

impl Note {
    pub(super) fn message(&self) -> String {
        format!("{}\n\n{}", self.reason, serde_json::to_string(self).unwrap_or_default())
    }
}

impl Totals {
    pub(super) fn message(self) -> String {
        serde_json::to_string(&self).unwrap_or_default()
    }
}

pub(super) fn note_of(checkpoint: &Checkpoint) -> Note {
    Note {
        key: checkpoint.key.clone(),
        project: checkpoint.project.to_string_lossy().into_owned(),
        purpose: checkpoint.purpose,
        reason: checkpoint.reason.clone(),
        task: checkpoint.task.clone(),
        undoes: checkpoint.undoes.clone(),
    }
}

/// The checkpoints behind some references.
pub(super) fn checkpoints(references: &[Reference]) -> Vec<Checkpoint> {
    let mut all: BTreeMap<(&str, &str), Checkpoint> = BTreeMap::new();
    for which in ["before", "after", "undone"] {
        for reference in references {
            let mut parts = reference.name.split('/').skip(2);
            let (Some(key), Some(id), Some(kind)) = (parts.next(), parts.next(), parts.next()) else { continue };
            if kind != which {
                continue;
            }
            let json = reference.message.lines().last().unwrap_or_default();
            match which {
                "before" => {
                    let Ok(note) = serde_json::from_str::<Note>(json) else { continue };
                    let Some(at) = from_letters(id) else { continue };
                    let checkpoint = Checkpoint {
                        id: id.to_owned(),
                        key: note.key,
                        project: note.project.into(),
                        at,
                        purpose: note.purpose,
                        reason: note.reason,
                        task: note.task,
                        totals: None,
                        is_undone: false,
                        undoes: note.undoes,
                        before: reference.commit.clone(),
                        after: None,
                    };
                    all.insert((key, id), checkpoint);
                }
                "after" => {
                    if let Some(checkpoint) = all.get_mut(&(key, id)) {
                        checkpoint.after = Some(reference.commit.clone());
                        checkpoint.totals = serde_json::from_str(json).ok();
                    }
                }
                _ => {
                    if let Some(checkpoint) = all.get_mut(&(key, id)) {
                        checkpoint.is_undone = true;
                    }
                }
            }
        }
    }
    all.into_values().collect()
}

/// The digits of names: those that are easily told apart and typed.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

pub(super) fn in_letters(millis: u128) -> String {
    // Nine digits last until the year 3084.
    (0..9).rev().map(|at| char::from(DIGITS[usize::try_from(millis >> (5 * at) & 31).unwrap_or(0)])).collect()
}

pub(super) fn from_letters(id: &str) -> Option<SystemTime> {
    let digit = |byte: u8| DIGITS.iter().position(|digit| *digit == byte);
    let millis = id.bytes().try_fold(0_u64, |sum, byte| Some(sum << 5 | digit(byte)? as u64))?;
    Some(UNIX_EPOCH + Duration::from_millis(millis))
}
