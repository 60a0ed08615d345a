//! Giving up what is too old or too much, so that the store stays small.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use super::notes::{checkpoints, from_letters};
use super::store::{Reference, Sharing, Store};
use super::{Checkpoint, CheckpointError, Checkpoints, WAIT};

/// How often the oldest checkpoints are given up to come below the size limit.
const ROUNDS: usize = 20;
/// No turn takes longer.
const OPEN: Duration = Duration::from_secs(24 * 3600);

/// What was given up to save space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Checkpoints.
    pub checkpoints: usize,
    /// Bytes on disk before and after.
    pub bytes: (u64, u64),
}

impl Checkpoints {
    /// Gives up what is older or more than the limits say. Waits for everybody who writes; nobody writes meanwhile.
    pub fn prune(&self, now: SystemTime) -> Result<Pruned, CheckpointError> {
        let Some(store) = Store::existing(&self.store()) else { return Ok(Pruned::default()) };
        let lock = self.lock_store(Sharing::Alone, Instant::now() + WAIT)?;
        let before = store.size();
        let mut pruned = Pruned { checkpoints: 0, bytes: (before, before) };
        for round in 0..ROUNDS {
            let references = store.references("")?;
            let all = checkpoints(&references);
            let goes = self.outdated(&all, now, round > 0);
            if round > 0 && goes.is_empty() {
                break;
            }
            pruned.checkpoints += goes.len();
            self.forget(&store, &references, &goes, now)?;
            store.collect(&lock)?;
            pruned.bytes.1 = store.size();
            if pruned.bytes.1 <= self.limits.total_bytes {
                break;
            }
        }
        Ok(pruned)
    }

    /// Whether there is enough to make a prune worth its time.
    pub fn is_large(&self) -> bool {
        Store::existing(&self.store()).is_some_and(|store| store.size() > self.limits.total_bytes)
    }

    /// What is too old or too many; `more`: and the oldest one of each project besides, but for its last one.
    fn outdated<'a>(&self, all: &'a [Checkpoint], now: SystemTime, more: bool) -> Vec<&'a Checkpoint> {
        let mut projects: BTreeMap<&str, Vec<&Checkpoint>> = BTreeMap::new();
        for checkpoint in all {
            projects.entry(&checkpoint.key).or_default().push(checkpoint);
        }
        let mut goes = Vec::new();
        for checkpoints in projects.values_mut() {
            checkpoints.sort_by(|left, right| left.id.cmp(&right.id));
            let too_many = checkpoints.len().saturating_sub(self.limits.checkpoints.max(1));
            let too_many = if more { too_many.max(usize::from(checkpoints.len() > 1)) } else { too_many };
            let is_old =
                |checkpoint: &Checkpoint| now.duration_since(checkpoint.at).is_ok_and(|age| age > self.limits.age);
            // One without an end may be of a turn that goes on.
            let is_open = |checkpoint: &Checkpoint| {
                let age = now.duration_since(checkpoint.at).unwrap_or_default();
                checkpoint.totals.is_none() && age < OPEN
            };
            let indexed = checkpoints.iter().enumerate().filter(|(_, one)| !is_open(one));
            goes.extend(indexed.filter(|(at, one)| *at < too_many || is_old(one)).map(|(_, one)| *one));
        }
        goes
    }

    fn forget(
        &self,
        store: &Store,
        references: &[Reference],
        goes: &[&Checkpoint],
        now: SystemTime,
    ) -> Result<(), CheckpointError> {
        let begins: Vec<&str> =
            references.iter().filter_map(|reference| reference.name.strip_suffix("before")).collect();
        // What has no beginning is of no use to anybody, but for what somebody looks at right now.
        let is_lost = |name: &str| match name.rsplit('/').next() {
            Some("latest") => false,
            Some("look") => !is_recent(name, now),
            _ => !begins.iter().any(|begin| name.starts_with(begin)),
        };
        let goes: Vec<String> =
            goes.iter().map(|checkpoint| format!("refs/hermes/{}/{}/", checkpoint.key, checkpoint.id)).collect();
        let mut stays: Vec<&str> = Vec::new();
        let mut changes: Vec<(&str, Option<&str>)> = Vec::new();
        for reference in references {
            if is_lost(&reference.name) || goes.iter().any(|gone| reference.name.starts_with(gone)) {
                changes.push((&reference.name, None));
            } else if let Some(key) = reference.name.split('/').nth(2).filter(|_| !reference.name.ends_with("/latest"))
            {
                stays.push(key);
            }
        }
        for reference in references.iter().filter(|reference| reference.name.ends_with("/latest")) {
            let key = reference.name.split('/').nth(2).unwrap_or_default();
            if !stays.contains(&key) {
                changes.push((&reference.name, None));
                // Nothing keeps its contents from here on. That it is not there is fine.
                let _ = std::fs::remove_file(self.folder.join("projects").join(format!("{key}.index")));
            }
        }
        if changes.is_empty() { Ok(()) } else { store.point(&changes) }
    }
}

/// Whether the checkpoint of a reference may still be at work.
fn is_recent(reference: &str, now: SystemTime) -> bool {
    let at = reference.rsplit('/').nth(1).and_then(from_letters);
    at.is_some_and(|at| now.duration_since(at).unwrap_or_default() < OPEN)
}
