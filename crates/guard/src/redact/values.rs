//! Secrets known by value, found in one pass over a text that arrives in pieces.
//!
//! Where values overlap, everything that belongs to any of them is masked: to take the first match and go on behind it
//! would leave the tail of the second one standing. The tricky idea is how little is held back: the depth of the
//! automaton's state says exactly how many of the last bytes may still become a value; all before them is settled.

use std::collections::HashMap;
use std::sync::Arc;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use secrecy::{ExposeSecret, SecretString};

use super::{encode, mask, worth};

/// The shortest value that can be masked by value, in characters.
const SHORTEST: usize = 6;
/// The longest, in bytes: its encodings are several times as long, and a stream may have to hold one back.
const LONGEST: usize = 64 * 1024;

/// Why a value was not registered. Says nothing of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It would be found inside of ordinary words.
    #[error("the value is shorter than 6 characters and would be found inside of ordinary words")]
    Short,
    /// It has to be a file, not a value.
    #[error("the value is longer than 64 KiB")]
    Long,
    /// It is a word or number that stands in ordinary text.
    #[error("the value is an ordinary word, a number or a placeholder and would be found in ordinary text")]
    Trivial,
    /// It would be found in what stands where secrets were.
    #[error("the value is part of the text that stands where secrets were")]
    Mask,
    /// There are too many values for one automaton.
    #[error("too many values are registered")]
    Full,
}

/// The registered values; never changed, only followed by another.
#[derive(Default)]
pub(super) struct Values {
    entries: Vec<Entry>,
    finder: Option<Finder>,
}

#[derive(Clone)]
struct Entry {
    label: Arc<str>,
    value: SecretString,
}

struct Finder {
    automaton: NFA,
    start: StateID,
    /// How many bytes lead to each state. Every state but the start is a prefix of some pattern.
    depths: HashMap<StateID, usize>,
    labels: Vec<Arc<str>>,
}

impl Values {
    /// These values and one more.
    pub(super) fn with(&self, name: &str, value: SecretString) -> Result<Self, Refusal> {
        let label: Arc<str> = mask::label(name).into();
        let text = value.expose_secret().trim();
        refuse(text, &label)?;
        if self.entries.iter().any(|entry| in_mask(entry.value.expose_secret().trim(), &label)) {
            return Err(Refusal::Mask);
        }
        let mut entries = self.entries.clone();
        entries.retain(|entry| entry.value.expose_secret().trim() != text);
        entries.push(Entry { label, value });
        let finder = Finder::new(&entries)?;
        Ok(Self { entries, finder: Some(finder) })
    }
}

fn refuse(value: &str, label: &str) -> Result<(), Refusal> {
    if value.chars().count() < SHORTEST {
        return Err(Refusal::Short);
    }
    if value.len() > LONGEST {
        return Err(Refusal::Long);
    }
    if worth::is_trivial(value) {
        return Err(Refusal::Trivial);
    }
    let mask = in_mask(value, label) || super::shapes::labels().any(|label| in_mask(value, label));
    if mask { Err(Refusal::Mask) } else { Ok(()) }
}

fn in_mask(value: &str, label: &str) -> bool {
    let mut whole = String::new();
    mask::write(label, &mut whole);
    whole.contains(value) || value.contains("[redacted: ")
}

impl Finder {
    fn new(entries: &[Entry]) -> Result<Self, Refusal> {
        let (mut patterns, mut labels) = (Vec::new(), Vec::new());
        for entry in entries {
            for form in encode::forms(entry.value.expose_secret().trim()) {
                patterns.push(form);
                labels.push(Arc::clone(&entry.label));
            }
        }
        let automaton = NFA::builder().match_kind(MatchKind::Standard).build(&patterns).map_err(|_| Refusal::Full)?;
        let start = automaton.start_state(Anchored::No).map_err(|_| Refusal::Full)?;
        let mut depths = HashMap::new();
        for pattern in &patterns {
            let mut state = start;
            for (at, byte) in pattern.bytes().enumerate() {
                state = automaton.next_state(Anchored::No, state, byte);
                depths.insert(state, at + 1);
            }
        }
        Ok(Self { automaton, start, depths, labels })
    }
}

/// One pass over a text.
pub(super) struct Scan {
    values: Arc<Values>,
    state: Option<StateID>,
    /// What is not settled; begins `base` bytes into the text.
    held: String,
    base: usize,
    /// Values found and not yet written, in order and apart from one another.
    found: Vec<Found>,
}

struct Found {
    start: usize,
    end: usize,
    label: Arc<str>,
}

impl Scan {
    pub(super) fn new(values: Arc<Values>) -> Self {
        let state = values.finder.as_ref().map(|finder| finder.start);
        Self { values, state, held: String::new(), base: 0, found: Vec::new() }
    }

    /// Takes the next piece; writes what is settled.
    pub(super) fn push(&mut self, text: &str, out: &mut String) {
        let (Some(finder), Some(mut state)) = (&self.values.finder, self.state) else {
            out.push_str(text);
            return;
        };
        let from = self.base + self.held.len();
        self.held.push_str(text);
        for (at, byte) in text.bytes().enumerate() {
            state = finder.automaton.next_state(Anchored::No, state, byte);
            if !finder.automaton.is_match(state) {
                continue;
            }
            let end = from + at + 1;
            for index in 0..finder.automaton.match_len(state) {
                let pattern = finder.automaton.match_pattern(state, index);
                let start = end - finder.automaton.pattern_len(pattern);
                add(&mut self.found, Found { start, end, label: Arc::clone(&finder.labels[pattern.as_usize()]) });
            }
        }
        self.state = Some(state);
        let open = finder.depths.get(&state).copied().unwrap_or(0);
        let safe = self.base + self.held.len() - open;
        self.settle(safe, out);
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self, out: &mut String) {
        self.settle(self.base + self.held.len(), out);
    }

    /// Writes everything before `safe`, where no value begins any more that is not found.
    fn settle(&mut self, safe: usize, out: &mut String) {
        let mut at = self.base;
        let mut done = 0;
        for found in &self.found {
            let start = found.start.clamp(at, safe.max(at));
            out.push_str(&self.held[at - self.base..start - self.base]);
            if found.end > safe {
                // It may still grow. Its text is needed no more.
                at = safe;
                break;
            }
            mask::write(&found.label, out);
            at = found.end;
            done += 1;
        }
        if done == self.found.len() {
            out.push_str(&self.held[at - self.base..safe - self.base]);
            at = safe;
        }
        self.found.drain(..done);
        self.held.drain(..at - self.base);
        self.base = at;
    }
}

/// Adds what was found last. What it overlaps becomes one with it and keeps the label of what begins first.
fn add(all: &mut Vec<Found>, mut new: Found) {
    while let Some(last) = all.pop_if(|last| last.end > new.start) {
        if last.start < new.start {
            new.start = last.start;
            new.label = last.label;
        }
    }
    all.push(new);
}
