//! Text from files that goes into prompts: what in it looks like an attack, and how to show it safely.
//!
//! Context files, skills, descriptions and memories are read by the model as if somebody had said them. This module tells
//! a person which lines try to do more than inform ([`scan`]), makes text of third parties harmless to the structure of a
//! prompt ([`escape_for_prompt`]), and keeps the one thing out of the memory that would work for ever
//! ([`refuse_memory`]). It never drops or changes a trusted file: a false alarm must cost a glance, not a project's
//! instructions.
//!
//! The tricky idea: the words of an attack and the words of a warning against it are the same. So a finding has two
//! levels: what stands in quotes, in code or after "never obey" is a note, what speaks for itself is a warning. Commands
//! that send a secret away are judged by their parts, not by their words, and are no less dangerous in a code block.
//!
//! This finds carelessness and known tricks, in English and a few phrases of other languages. A text that passes is not
//! thereby safe; the protection is that tools ask before they act.

mod exfiltration;
mod invisible;
mod patterns;
mod prompt;
mod reading;

use std::collections::BTreeMap;
use std::fmt;

use self::reading::Reading;

pub use self::exfiltration::{MemoryRefusal, refuse_memory};
pub use self::prompt::escape_for_prompt;

/// Something in a text that a person should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it begins; the first line is 1.
    pub line: usize,
    /// What it is.
    pub kind: Kind,
    /// How loud to say it.
    pub level: Level,
    /// The passage, on one line, at most about 120 characters, without anything invisible.
    pub excerpt: String,
}

/// How loud to say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever wants to know: probably an example, a rule against attacks, or a habit that could be better.
    Note,
    /// It looks like an attack.
    Warn,
}

/// What a passage does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Characters that nobody sees but a model reads, or that turn the order of what is seen.
    Invisible,
    /// A tag that belongs to the prompt's own structure.
    FakeTag,
    /// An instruction to ignore the instructions.
    Override,
    /// A claim that no limits hold.
    Unbinding,
    /// An instruction to keep something from the user.
    Concealment,
    /// A request for the system prompt.
    Disclosure,
    /// A secret on its way to somewhere else.
    Exfiltration,
    /// Instructions where a reader of the rendered page sees nothing.
    HiddenComment,
    /// A download that is run unseen.
    PipeToShell,
}

impl Kind {
    /// What it does, in words that complete "this line …".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Invisible => "has invisible characters",
            Self::FakeTag => "imitates a tag of the prompt",
            Self::Override => "tells the model to ignore its instructions",
            Self::Unbinding => "tells the model that no limits hold",
            Self::Concealment => "asks to keep something from the user",
            Self::Disclosure => "asks for the system prompt",
            Self::Exfiltration => "sends a secret somewhere else",
            Self::HiddenComment => "hides instructions in a comment",
            Self::PipeToShell => "runs a download unseen",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {} {}: {}", self.line, self.kind.in_words(), self.excerpt)
    }
}

/// Looks through a text: at most one finding of each kind a line, in the order of the lines. Empty means nothing was
/// found, not that nothing is there.
///
/// Takes time in proportion to the length of the text, whatever is in it. The caller decides how many to show.
pub fn scan(text: &str) -> Vec<Warning> {
    let mut found = Found::default();
    let reading = Reading::of(text);
    invisible::find(text, &mut found);
    patterns::find(&reading, &mut found);
    exfiltration::find(&reading, &mut found);
    found.0.into_values().collect()
}

/// Findings by line and kind; the louder one stays.
#[derive(Debug, Default)]
struct Found(BTreeMap<(usize, Kind), Warning>);

impl Found {
    fn add(&mut self, line: usize, kind: Kind, level: Level, excerpt: impl FnOnce() -> String) {
        let louder = self.0.get(&(line, kind)).is_none_or(|known| known.level < level);
        if louder {
            self.0.insert((line, kind), Warning { line, kind, level, excerpt: excerpt() });
        }
    }
}
