//! The processes in the background of one conversation: their names, their limits, and what is to be told of them.
//!
//! The table asks nobody for news all the time. What a process did waits with its supervisor; the table looks when
//! somebody looks at the table.

mod attached;
mod output;
mod reap;
mod record;
mod remembered;

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures::future::{BoxFuture, FutureExt as _, join_all, select_all};
use hermes_core::{
    CancellationToken, Clock, Place, Process, ProcessEntry, ProcessFacts, ProcessNews, ProcessState, Processes,
    Redactor, Reserved, Watched,
};

pub use attached::Attached;
pub use output::{Lines, Output};
pub use reap::{Reaped, reap};
pub use record::Record;

use record::Begun;
use remembered::Remembered;

/// How many processes are kept in mind, ended ones included (spec exec §8.1).
const MOST_KEPT: usize = 64;
/// How many may run at once.
const MOST_RUNNING: usize = 32;
/// How long an ended process is kept in mind, from its end.
pub const KEPT_AFTER_END: Duration = Duration::from_secs(1_800);
/// So many lines are told within [`LINES_SPAN`]; a conversation is not to be flooded.
const MOST_LINES: usize = 15;
const LINES_SPAN: Duration = Duration::from_secs(10);

/// How a table is set up.
#[derive(Clone)]
pub struct TableSetup {
    /// Where logs and records are kept; made for its owner only when it is needed.
    pub folder: PathBuf,
    /// The conversation; others do not see its processes.
    pub owner: String,
    /// What a process may take to end by itself when it is killed (`terminal.daemon_term_grace_seconds`).
    pub grace: Duration,
    /// Somebody listens for news after the call that starts a process.
    pub tells: bool,
    /// Masks secrets in what is written down.
    pub redactor: Option<Arc<dyn Redactor>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for TableSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableSetup").field("folder", &self.folder).field("owner", &self.owner).finish_non_exhaustive()
    }
}

/// See [`hermes_core::Processes`].
#[derive(Debug)]
pub struct ProcessTable {
    setup: TableSetup,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    entries: BTreeMap<(SystemTime, String), Entry>,
    /// When lines were told.
    told: Vec<SystemTime>,
}

#[derive(Debug)]
struct Entry {
    shown: ProcessEntry,
    /// Lines that were watched for and have not been told.
    lines: Vec<Watched>,
    /// Its end has been seen or told.
    end_seen: bool,
    /// Its end is to be told although nobody asked for that, because its lines came too often.
    tell_end: bool,
}

impl ProcessTable {
    /// A table with what this conversation is remembered to have started. Needs a running runtime if any of that runs.
    pub fn new(setup: TableSetup) -> Self {
        let records = Record::all(&setup.folder).into_iter().filter(|record| record.owner == setup.owner);
        let entries = records.map(|record| ((record.started, record.id.clone()), Entry::remembered(record)));
        let known = Known { entries: entries.collect(), told: Vec::new() };
        Self { setup, known: Mutex::new(known) }
    }

    /// Ends every process. Called once, when the conversation ends.
    pub async fn close(&self) {
        let entries: Vec<ProcessEntry> = self.look().entries.values().map(|entry| entry.shown.clone()).collect();
        join_all(entries.iter().map(|entry| entry.process.kill(self.setup.grace))).await;
    }

    /// What is known, after a look at every process.
    fn look(&self) -> MutexGuard<'_, Known> {
        let now = self.setup.clock.now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in known.entries.values_mut() {
            let lines = entry.shown.process.watched();
            entry.shown.watch_hits += lines.iter().map(|line| line.suppressed + 1).sum::<u64>();
            entry.tell_end |= lines.iter().any(|line| line.last);
            entry.lines.extend(lines);
            if entry.shown.ended.is_none() && entry.shown.process.state() != ProcessState::Running {
                entry.shown.ended = Some(now);
            }
        }
        known.forget(now);
        known
    }
}

impl Known {
    /// Forgets what ended long ago, and the oldest ends when there are too many; those that are still to be told last.
    fn forget(&mut self, now: SystemTime) {
        let too_many = self.entries.len().saturating_sub(MOST_KEPT);
        let of_ended = |(key, entry): (&(SystemTime, String), &Entry)| {
            Some((entry.has_end_to_tell(), entry.shown.ended?, key.clone()))
        };
        let mut ended: Vec<_> = self.entries.iter().filter_map(of_ended).collect();
        ended.sort();
        for (at, (_, ended, key)) in ended.into_iter().enumerate() {
            let is_old = now.duration_since(ended).is_ok_and(|since| since > KEPT_AFTER_END);
            if at < too_many || is_old {
                self.entries.remove(&key);
            }
        }
    }

    fn find(&mut self, id: &str) -> Option<&mut Entry> {
        self.entries.values_mut().find(|entry| entry.shown.id == id)
    }

    /// How many lines may be told now.
    fn room(&mut self, now: SystemTime) -> usize {
        self.told.retain(|told| now.duration_since(*told).is_ok_and(|since| since < LINES_SPAN));
        MOST_LINES.saturating_sub(self.told.len())
    }

    /// How long until there is room again.
    fn until_room(&self, now: SystemTime) -> Duration {
        let oldest = self.told.first().and_then(|told| now.duration_since(*told).ok());
        oldest.map_or(Duration::ZERO, |since| LINES_SPAN.saturating_sub(since))
    }
}

impl Entry {
    fn remembered(record: Record) -> Self {
        let shown = ProcessEntry {
            id: record.id.clone(),
            facts: record.facts.clone(),
            started: record.started,
            ended: record.ended,
            killed: false,
            watch_hits: 0,
            process: Arc::new(Remembered::new(record)),
        };
        Self { shown, lines: Vec::new(), end_seen: false, tell_end: false }
    }

    /// It has ended, that is to be told, and nobody knows yet.
    fn has_end_to_tell(&self) -> bool {
        let wanted = self.shown.facts.notify_on_complete || self.tell_end;
        self.shown.ended.is_some() && wanted && !self.end_seen
    }

    /// Something may still happen to it that is to be told.
    fn may_have_news(&self) -> bool {
        let facts = &self.shown.facts;
        let end_is_told = !self.end_seen && (facts.notify_on_complete || self.tell_end);
        self.shown.ended.is_none() && (end_is_told || !facts.watch_patterns.is_empty())
    }
}

#[async_trait]
impl Processes for ProcessTable {
    fn reserve(&self, facts: ProcessFacts) -> Result<Reserved, String> {
        let known = self.look();
        let running = known.entries.values().filter(|entry| entry.shown.ended.is_none()).count();
        if running >= MOST_RUNNING {
            return Err(format!("{running} processes run in the background already; end one first (action kill)"));
        }
        drop(known);
        let folder = &self.setup.folder;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let id = format!("proc_{:012x}", random() & 0xffff_ffff_ffff);
        let masked = |text: &str| match &self.setup.redactor {
            Some(redactor) => redactor.redact(text).into_owned(),
            None => text.to_owned(),
        };
        let at = self.setup.clock.now();
        let begun = Begun {
            id: id.clone(),
            owner: self.setup.owner.clone(),
            owner_pid: std::process::id(),
            started: at,
            facts: ProcessFacts { command: masked(&facts.command), ..facts.clone() },
        };
        let line = serde_json::to_string(&begun).map_err(|error| error.to_string())?;
        let log = folder.join(format!("{id}.log"));
        Ok(Reserved { id, at, facts, place: Place { log, facts: line } })
    }

    fn register(&self, reserved: Reserved, process: Arc<dyn Process>) {
        let started = reserved.at;
        let shown = ProcessEntry {
            id: reserved.id.clone(),
            facts: reserved.facts,
            started,
            ended: None,
            killed: false,
            watch_hits: 0,
            process,
        };
        let entry = Entry { shown, lines: Vec::new(), end_seen: false, tell_end: false };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entries.insert((started, reserved.id), entry);
    }

    fn list(&self) -> Vec<ProcessEntry> {
        self.look().entries.values().map(|entry| entry.shown.clone()).collect()
    }

    fn find(&self, id: &str) -> Option<ProcessEntry> {
        self.look().find(id).map(|entry| entry.shown.clone())
    }

    fn seen(&self, id: &str) {
        if let Some(entry) = self.look().find(id) {
            entry.end_seen = true;
        }
    }

    async fn kill(&self, id: &str) -> Option<usize> {
        let process = {
            let mut known = self.look();
            let entry = known.find(id)?;
            entry.end_seen = true;
            entry.shown.killed |= entry.shown.ended.is_none();
            Arc::clone(&entry.shown.process)
        };
        Some(process.kill(self.setup.grace).await)
    }

    fn news(&self) -> Vec<ProcessNews> {
        let now = self.setup.clock.now();
        let mut known = self.look();
        let mut room = known.room(now);
        let Known { entries, told } = &mut *known;
        let mut news = Vec::new();
        for entry in entries.values_mut() {
            let now_told = room.min(entry.lines.len());
            room -= now_told;
            told.extend(std::iter::repeat_n(now, now_told));
            news.extend(entry.lines.drain(..now_told).map(|line| ProcessNews::Line(entry.shown.clone(), line)));
            if entry.has_end_to_tell() {
                entry.end_seen = true;
                news.push(ProcessNews::Ended(entry.shown.clone()));
            }
        }
        news
    }

    fn will_be_told(&self) -> bool {
        self.setup.tells
    }

    async fn until_news(&self, cancel: &CancellationToken) {
        loop {
            let (listened_to, pause) = {
                let now = self.setup.clock.now();
                let mut known = self.look();
                let has_room = known.room(now) > 0;
                let lines_wait = known.entries.values().any(|entry| !entry.lines.is_empty());
                if known.entries.values().any(Entry::has_end_to_tell) || lines_wait && has_room {
                    return;
                }
                let listened_to = known.entries.values().filter(|entry| entry.may_have_news());
                let listened_to: Vec<Arc<dyn Process>> =
                    listened_to.map(|entry| Arc::clone(&entry.shown.process)).collect();
                (listened_to, lines_wait.then(|| known.until_room(now)))
            };
            let mut waits: Vec<BoxFuture<'_, ()>> =
                listened_to.iter().map(|process| process.stirred().boxed()).collect();
            waits.extend(pause.map(|pause| tokio::time::sleep(pause).boxed()));
            if waits.is_empty() {
                return cancel.cancelled().await;
            }
            tokio::select! {
                // What stirred may be nothing that is told, such as the end of a process of which only lines are.
                _ = select_all(waits) => {}
                () = cancel.cancelled() => return,
            }
        }
    }
}

fn random() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    // Seeded by the operating system.
    RandomState::new().build_hasher().finish()
}
