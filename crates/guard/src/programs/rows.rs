//! Programs that are told by a verb what to do: most managers of services, volumes and accounts are alike in this, and a
//! row of a table says all there is to say about one of them.

use super::options::{Grammar, Options};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text;

/// What one program, or several that take the same words, must be asked about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tool {
    /// Names, separated by blanks.
    pub(super) names: &'static str,
    pub(super) grammar: Grammar,
    /// What asks, separated by blanks: a verb, verbs in a row (`gateway/stop`, where `*` stands for any word), or an
    /// option with its dashes.
    pub(super) asks: &'static str,
    /// Options with which nothing happens.
    pub(super) harmless: &'static str,
}

/// A row for programs with these names.
pub(super) const fn tool(names: &'static str, grammar: Grammar, asks: &'static str, harmless: &'static str) -> Tool {
    Tool { names, grammar, asks, harmless }
}

/// Judges a call by the row with its name.
pub(super) fn judge(call: &mut Call<'_, '_>, tools: &[Tool], effect: Effect, why: &str) {
    let name = call.name.to_ascii_lowercase();
    let row = tools.iter().find(|tool| tool.names.split_ascii_whitespace().any(|known| known == name));
    let Some(tool) = row else { return };
    let options = call.options(&tool.grammar);
    if options.asks_only() || !tool.harmless.is_empty() && options.has(tool.harmless) {
        return;
    }
    match asked(&options, tool.asks) {
        Asked::No => {}
        Asked::Unknown => call.cannot_tell("tells it to do something that cannot be told"),
        Asked::Yes => {
            let target = options.operands.join(" ");
            call.asks(effect, &target, why);
        }
    }
}

/// Whether a call does what a list of verbs and options names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    No,
    Yes,
    /// A word in the place of a verb is unknown.
    Unknown,
}

pub(super) fn asked(options: &Options, list: &str) -> Asked {
    let mut found = if options.unknown && list.contains('-') { Asked::Unknown } else { Asked::No };
    for entry in list.split_ascii_whitespace() {
        if entry.starts_with('-') {
            if options.has(entry.trim_start_matches('-')) {
                return Asked::Yes;
            }
            continue;
        }
        let mut unknown = false;
        let matched = entry.split('/').enumerate().all(|(at, part)| match options.operands.get(at) {
            Some(word) if part == "*" || word == part => true,
            Some(word) if text::is_unknown(word) => {
                unknown = true;
                true
            }
            _ => false,
        });
        match (matched, unknown) {
            (true, false) => return Asked::Yes,
            (true, true) => found = Asked::Unknown,
            _ => {}
        }
    }
    found
}
