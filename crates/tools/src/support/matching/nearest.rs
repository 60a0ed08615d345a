//! What in a file looks most like a text that is not there, for whoever sent it to see the difference.
//!
//! Nothing here decides about a change. The time is bounded: lines that are the same vote for where the text would be, in
//! one pass; only if there is none, lines are compared by their letters, and only the best few of them as texts.

use std::collections::HashMap;

use similar::{Algorithm, ChangeTag, TextDiff};

use super::windows::Lines;

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nearest {
    /// Its lines, counted from 1.
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// `-` what was sent, `+` what is in the file with the numbers of its lines, ` ` what is in both.
    pub(crate) shown: String,
}

/// So many lines are shown.
const MOST_LINES: usize = 24;

/// So much of a line.
const MOST_LETTERS: usize = 160;

/// A line that occurs more often says nothing about a place.
const MOST_TIMES: usize = 64;

/// The nearest text, if anything is near.
pub(crate) fn nearest(lines: &Lines<'_>, old: &Lines<'_>) -> Option<Nearest> {
    let first = by_votes(lines, old).or_else(|| by_letters(lines, old))?;
    let last = (first + old.len().max(1)).min(lines.len());
    Some(Nearest { first: first + 1, last, shown: shown(lines, first..last, old) })
}

/// Where most of the lines that are the same would be in their places.
fn by_votes(lines: &Lines<'_>, old: &Lines<'_>) -> Option<usize> {
    let sent = old.contents();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in sent.iter().enumerate().filter(|(_, line)| says_something(line)) {
        places.entry(line.trim()).or_default().push(at);
    }
    let mut found: HashMap<&str, Vec<usize>> = HashMap::new();
    for at in 0..lines.len() {
        let line = lines.content(at).trim();
        if places.contains_key(line) {
            let found = found.entry(line).or_default();
            if found.len() <= MOST_TIMES {
                found.push(at);
            }
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (line, found) in found.iter().filter(|(_, found)| found.len() <= MOST_TIMES) {
        for (at, sent) in found.iter().flat_map(|at| places[line].iter().take(MOST_TIMES).map(move |sent| (at, sent))) {
            *votes.entry(at.saturating_sub(*sent)).or_default() += 1;
        }
    }
    votes.into_iter().max_by_key(|(at, votes)| (*votes, usize::MAX - at)).map(|(at, _)| at)
}

fn says_something(line: &str) -> bool {
    line.chars().filter(|letter| letter.is_alphanumeric()).nth(2).is_some()
}

/// Where the line is that has the most letters in common with the most telling line that was sent.
fn by_letters(lines: &Lines<'_>, old: &Lines<'_>) -> Option<usize> {
    /// So many lines are compared as texts.
    const BEST: usize = 16;
    /// Less alike is not near.
    const NEAR: f32 = 0.5;
    let (at, sent) = old
        .contents()
        .into_iter()
        .enumerate()
        .filter(|(_, line)| says_something(line))
        .max_by_key(|(_, line)| line.len().min(MOST_LETTERS))?;
    let sent = cut(sent.trim());
    let wanted = letters(sent);
    let mut best: Vec<(usize, usize)> = Vec::new();
    for index in 0..lines.len() {
        let line = cut(lines.content(index).trim());
        // What differs by half in length alone cannot be near.
        if 3 * line.len() < sent.len() || line.len() > 3 * sent.len() {
            continue;
        }
        let common: usize = letters(line).iter().zip(&wanted).map(|(a, b)| usize::from(*a.min(b))).sum();
        let score = 2_000 * common / (line.len() + sent.len()).max(1);
        if best.len() < BEST || best.last().is_some_and(|(least, _)| *least < score) {
            let place = best.partition_point(|(other, _)| *other >= score);
            best.insert(place, (score, index));
            best.truncate(BEST);
        }
    }
    let ratio = |index: usize| {
        TextDiff::configure().algorithm(Algorithm::Myers).diff_chars(cut(lines.content(index).trim()), sent).ratio()
    };
    let scored = best.into_iter().map(|(_, index)| (ratio(index), index)).filter(|(ratio, _)| *ratio >= NEAR);
    scored.reduce(|a, b| if b.0 > a.0 { b } else { a }).map(|(_, index)| index.saturating_sub(at))
}

/// How often each byte is there.
fn letters(line: &str) -> [u8; 128] {
    let mut counts = [0_u8; 128];
    for byte in line.bytes() {
        let count = &mut counts[usize::from(byte & 127)];
        *count = count.saturating_add(1);
    }
    counts
}

fn cut(line: &str) -> &str {
    line.char_indices().nth(MOST_LETTERS).map_or(line, |(at, _)| &line[..at])
}

fn shown(lines: &Lines<'_>, range: std::ops::Range<usize>, old: &Lines<'_>) -> String {
    let there: Vec<&str> = range.clone().take(MOST_LINES).map(|at| lines.content(at)).collect();
    let sent: Vec<&str> = (0..old.len().min(MOST_LINES)).map(|at| old.content(at)).collect();
    let mut shown = String::new();
    let mut number = range.start;
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).diff_slices(&sent, &there);
    for change in diff.iter_all_changes() {
        let line = change.value();
        let more = if cut(line).len() < line.len() { "…" } else { "" };
        let line = cut(line);
        match change.tag() {
            ChangeTag::Delete => shown.push_str(&format!("-     | {line}{more}\n")),
            tag => {
                number += 1;
                let sign = if tag == ChangeTag::Equal { ' ' } else { '+' };
                shown.push_str(&format!("{sign}{number:>4} | {line}{more}\n"));
            }
        }
    }
    if old.len().max(range.len()) > MOST_LINES {
        shown.push_str("…\n");
    }
    shown
}

/// Whether the text occurs exactly and once, and in which line: an edit that was made already looks so.
pub(crate) fn is_there_already(text: &str, new: &str, lines: &Lines<'_>) -> Option<usize> {
    let finder = memchr::memmem::Finder::new(new.as_bytes());
    let at = (new.trim().len() > 2).then(|| finder.find(text.as_bytes()))??;
    Some(lines.at(at) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(text: &str, old: &str) -> Option<Nearest> {
        nearest(&Lines::of(text), &Lines::of(old))
    }

    #[test]
    fn lines_that_are_the_same_say_where() {
        let text = "fn a() {\n    one();\n}\n\nfn b() {\n    one();\n    two();\n}\n";
        let found = near(text, "fn b() {\n    one();\n    three();\n}").unwrap();
        assert_eq!((found.first, found.last), (5, 8));
        assert_eq!(
            found.shown,
            "    5 | fn b() {\n    6 |     one();\n-     |     three();\n+   7 |     two();\n    8 | }\n"
        );
    }

    #[test]
    fn else_letters_do_and_what_is_not_near_is_not_shown() {
        let found = near("x = 1\ndef calculate_total(items):\n", "def calculate_totals(item):").unwrap();
        assert_eq!((found.first, found.last), (2, 2));
        assert_eq!(near("x = 1\ny = 2\n", "something else entirely"), None);
        assert_eq!((near("", "a b c d"), near("abc\n", "}")), (None, None));
    }

    #[test]
    fn long_lines_and_many_lines_are_cut() {
        let long = "word ".repeat(50_000);
        let found = near(&long, &format!("{long}x")).unwrap();
        assert!(found.shown.len() < 1_000, "{}", found.shown.len());
        let many = (0..500).map(|at| format!("line number {at}\n")).collect::<Vec<_>>().concat();
        assert!(near(&many, &many.replace("number", "no")).unwrap().shown.lines().count() <= 2 * MOST_LINES + 1);
    }
}
