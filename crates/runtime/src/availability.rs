//! What can be used here, remembered for a while.
//!
//! A check is asked once for all tools that share it and its answer holds for 30 s. One that said yes keeps saying so
//! through a hiccup of 60 s (spec core §2.8). Slow checks are asked on a thread of their own, never while a model waits.
//! A check that panics means *missing*.
//!
//! The tricky idea is the epoch: it moves exactly when an answer changes, so whoever remembers something computed from
//! the answers compares one number. [`Checks::epoch`] itself costs a look at the clock until the next answer runs out.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hermes_core::{Availability, Check, Surroundings};

use crate::registry::{Entry, Snapshot};

/// An answer is as good as new for this long.
pub const HOLDS: Duration = Duration::from_secs(30);
/// A tool that was there is not given up sooner than this.
pub const GRACE: Duration = Duration::from_secs(60);

/// Within the grace, the check is asked again after this time: at once would be with every request.
const AGAIN: Duration = Duration::from_secs(1);

/// The answers so far. Cheap to clone; all clones share them.
#[derive(Clone)]
pub struct Checks(Arc<Shared>);

struct Shared {
    surroundings: Arc<dyn Surroundings>,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    epoch: AtomicU64,
    /// The time at which the first answer runs out, in microseconds of `clock`.
    due: AtomicU64,
    known: Mutex<Known>,
    answered: Condvar,
}

#[derive(Default)]
struct Known {
    answers: HashMap<Question, Answer>,
    /// Slow checks that are being asked, each on a thread, and since when.
    asking: HashMap<Question, Duration>,
    /// Answers to questions from before are of no use.
    forgotten: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Question {
    Variable(String),
    Program(String),
    /// A check of an owner: whoever uses the same id elsewhere asks something else.
    Check(String, String),
}

struct Answer {
    /// Only checks have to be asked through somebody.
    check: Option<Check>,
    says: Availability,
    until: Duration,
    last_good: Option<Duration>,
}

impl Checks {
    /// Nothing is known yet about `surroundings`.
    pub fn new(surroundings: Arc<dyn Surroundings>) -> Self {
        let began = Instant::now();
        Self::with_clock(surroundings, move || began.elapsed())
    }

    /// The same with a clock that only goes forward, from any beginning.
    pub fn with_clock(
        surroundings: Arc<dyn Surroundings>,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared {
            surroundings,
            clock: Box::new(clock),
            epoch: AtomicU64::new(0),
            due: AtomicU64::new(u64::MAX),
            known: Mutex::default(),
            answered: Condvar::new(),
        }))
    }

    /// Whether a registered tool can be used: the first thing that is missing, if any. A slow check that never answered is
    /// missing until it does; see [`Checks::settle`].
    pub fn of(&self, entry: &Entry) -> Availability {
        let spec = entry.tool.spec();
        if spec.requires_env.is_empty() && spec.requires_programs.is_empty() && entry.tool.check().is_none() {
            return Availability::Available;
        }
        for (question, check) in questions(entry) {
            let says = self.answer(question, check);
            if !says.is_available() {
                return says;
            }
        }
        Availability::Available
    }

    /// Moves whenever an answer changes. Asks again what has run out, so the number is true now.
    pub fn epoch(&self) -> u64 {
        let now = (self.0.clock)();
        if micros(now) >= self.0.due.load(Ordering::Acquire) {
            self.refresh(now);
        }
        self.0.epoch.load(Ordering::Acquire)
    }

    /// Starts asking about every tool of `snapshot`, and waits up to `limit` for the slow answers. Answers whether all
    /// are there.
    pub fn settle(&self, snapshot: &Snapshot, limit: Duration) -> bool {
        for entry in snapshot.entries() {
            self.of(entry);
        }
        let known = self.known();
        let waited = self.0.answered.wait_timeout_while(known, limit, |known| !known.asking.is_empty());
        waited.is_ok_and(|(known, _)| known.asking.is_empty())
    }

    /// Forgets everything, for example because a key was added: the next question is asked anew.
    pub fn forget(&self) {
        let mut known = self.known();
        known.answers.clear();
        known.asking.clear();
        known.forgotten += 1;
        self.0.due.store(u64::MAX, Ordering::Release);
        self.0.epoch.fetch_add(1, Ordering::AcqRel);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, question: Question, check: Option<&Check>) -> Availability {
        let now = (self.0.clock)();
        if let Some(answer) = self.known().answers.get(&question)
            && now < answer.until
        {
            return answer.says.clone();
        }
        self.ask(question, check.cloned(), now)
    }

    fn refresh(&self, now: Duration) {
        let stale: Vec<(Question, Option<Check>)> = {
            let known = self.known();
            known
                .answers
                .iter()
                .filter(|(_, answer)| answer.until <= now)
                .map(|(q, a)| (q.clone(), a.check.clone()))
                .collect()
        };
        for (question, check) in stale {
            self.ask(question, check, now);
        }
        self.set_due(&self.known());
    }

    /// Asks without holding the lock: a question may take long, or ask something itself.
    fn ask(&self, question: Question, check: Option<Check>, now: Duration) -> Availability {
        match (&question, check) {
            (Question::Variable(name), _) => {
                let is_set = self.0.surroundings.has_variable(name);
                let says = if_there(is_set, || (format!("{name} is not set"), format!("set {name}")));
                self.note(question, None, says)
            }
            (Question::Program(name), _) => {
                let is_there = self.0.surroundings.has_program(name);
                let says = if_there(is_there, || (format!("{name} not found"), format!("install {name}")));
                self.note(question, None, says)
            }
            (Question::Check(..), Some(check)) if check.is_slow() => {
                let mut known = self.known();
                if let Some(since) = known.asking.get(&question)
                    && now.saturating_sub(*since) >= GRACE
                {
                    // Whoever does not answer at all is not there, whatever it said last.
                    let reason = format!("it has not answered for {} s", GRACE.as_secs());
                    let says = Availability::missing(reason, "see whether it hangs");
                    let answer = Answer { check: Some(check), says: says.clone(), until: now + HOLDS, last_good: None };
                    let before = known.answers.insert(question, answer);
                    self.set_due(&known);
                    if before.is_none_or(|before| before.says != says) {
                        self.0.epoch.fetch_add(1, Ordering::AcqRel);
                    }
                    return says;
                }
                let says = known.answers.get(&question).map_or_else(still_unknown, |answer| answer.says.clone());
                // Until the thread answers nobody else needs to ask.
                known.answers.entry(question.clone()).or_insert_with(|| Answer {
                    check: Some(check.clone()),
                    says: says.clone(),
                    until: now,
                    last_good: None,
                });
                if !known.asking.contains_key(&question) {
                    known.asking.insert(question.clone(), now);
                    let forgotten = known.forgotten;
                    drop(known);
                    self.ask_elsewhere(&question, check, forgotten);
                }
                says
            }
            (Question::Check(..), Some(check)) => {
                let says = ask_safely(&check);
                self.note(question, Some(check), says)
            }
            // A check comes with every question about it.
            (Question::Check(..), None) => still_unknown(),
        }
    }

    fn ask_elsewhere(&self, question: &Question, check: Check, forgotten: u64) {
        let checks = self.clone();
        let asked = question.clone();
        let begun = std::thread::Builder::new().name(format!("check {}", check.id())).spawn(move || {
            let says = ask_safely(&check);
            if checks.known().forgotten == forgotten {
                checks.note(asked, Some(check), says);
            }
            checks.0.answered.notify_all();
        });
        if begun.is_err() {
            // Without a thread there is no answer; the next question tries again.
            self.known().asking.remove(question);
        }
    }

    /// Forgets the answers about tools that are not registered any more, so that nobody goes on asking.
    pub(crate) fn keep_only(&self, snapshot: &Snapshot) {
        let wanted: HashSet<Question> =
            snapshot.entries().flat_map(|entry| questions(entry).map(|(question, _)| question)).collect();
        let mut known = self.known();
        known.answers.retain(|question, _| wanted.contains(question));
        self.set_due(&known);
    }

    /// Keeps an answer, and answers what holds: a tool that was there a moment ago is still there.
    fn note(&self, question: Question, check: Option<Check>, says: Availability) -> Availability {
        // The clock is read after the question was asked, so that a slow one does not shorten its own life.
        let now = (self.0.clock)();
        let mut known = self.known();
        let before = known.answers.get(&question);
        let last_good = if says.is_available() { Some(now) } else { before.and_then(|before| before.last_good) };
        let in_grace = !says.is_available() && last_good.is_some_and(|good| now.saturating_sub(good) < GRACE);
        let (holding, until) = if in_grace { (Availability::Available, now + AGAIN) } else { (says, now + HOLDS) };
        let changed = before.is_none_or(|before| before.says != holding);
        known.asking.remove(&question);
        let answer = Answer { check, says: holding.clone(), until, last_good };
        known.answers.insert(question, answer);
        self.set_due(&known);
        if changed {
            self.0.epoch.fetch_add(1, Ordering::AcqRel);
        }
        holding
    }

    fn set_due(&self, known: &Known) {
        let first = known.answers.iter().map(|(question, answer)| match known.asking.get(question) {
            // While somebody is asking, the next thing to happen is the answer, or that there is none.
            Some(since) => answer.until.max(*since + GRACE),
            None => answer.until,
        });
        let first = first.map(micros).min();
        self.0.due.store(first.unwrap_or(u64::MAX), Ordering::Release);
    }
}

/// Everything that has to be there for the tool, in the order in which it is asked.
fn questions(entry: &Entry) -> impl Iterator<Item = (Question, Option<&Check>)> {
    let spec = entry.tool.spec();
    let variables = spec.requires_env.iter().map(|name| (Question::Variable(name.clone()), None));
    let programs = spec.requires_programs.iter().map(|name| (Question::Program(name.clone()), None));
    let check = entry.tool.check();
    let check = check.map(|check| (Question::Check(entry.owner.to_string(), check.id().to_owned()), Some(check)));
    variables.chain(programs).chain(check)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn if_there(is_there: bool, reason_and_fix: impl FnOnce() -> (String, String)) -> Availability {
    if is_there {
        return Availability::Available;
    }
    let (reason, fix) = reason_and_fix();
    Availability::missing(reason, fix)
}

fn still_unknown() -> Availability {
    Availability::missing("not known yet: it is being checked", "try again in a moment")
}

fn ask_safely(check: &Check) -> Availability {
    catch_unwind(AssertUnwindSafe(|| check.ask())).unwrap_or_else(|_| {
        Availability::missing(
            format!("the check `{}` failed", check.id()),
            "this is a bug in it; tell whoever made the tool",
        )
    })
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").field("epoch", &self.0.epoch).finish_non_exhaustive()
    }
}
