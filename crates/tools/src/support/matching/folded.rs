//! A text in which signs that mean the same are the same sign, with the way back to where they came from.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::support::view::{common_prefix, common_suffix};

/// What counts as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// CRLF and LF.
    LineEnds,
    /// That, and typographic signs and what a keyboard has in their place.
    Typography,
}

impl Kinds {
    /// Whether folding would change a text.
    pub(super) fn concern(self, text: &str) -> bool {
        match self {
            Self::LineEnds => memchr::memmem::find(text.as_bytes(), b"\r\n").is_some(),
            Self::Typography => !text.is_ascii() && text.chars().any(|letter| plain(letter).is_some()),
        }
    }
}

/// What a keyboard has in place of a typographic sign.
fn plain(letter: char) -> Option<&'static str> {
    Some(match letter {
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => "\"",
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => "'",
        '\u{2010}'..='\u{2013}' | '\u{2212}' => "-",
        '\u{2014}' => "--",
        '\u{2026}' => "...",
        '\u{a0}' | '\u{202f}' | '\u{2007}' => " ",
        _ => return None,
    })
}

/// A folded text.
#[derive(Debug)]
pub(crate) struct Folded {
    text: String,
    /// Beginning and end of everything that was replaced, in the folded text and in the original.
    marks: Vec<(usize, usize)>,
}

impl Folded {
    pub(super) fn of(text: &str, kinds: Kinds) -> Self {
        let mut folded = Self { text: String::with_capacity(text.len()), marks: Vec::new() };
        let mut done = 0;
        let bytes = text.as_bytes();
        let mut replace = |at: usize, length: usize, by: &str| {
            folded.text.push_str(&text[done..at]);
            folded.marks.push((folded.text.len(), at));
            folded.text.push_str(by);
            done = at + length;
            folded.marks.push((folded.text.len(), done));
        };
        match kinds {
            Kinds::LineEnds => {
                let ends = memchr::memmem::find_iter(bytes, b"\r\n");
                ends.for_each(|at| replace(at, 1, ""));
            }
            Kinds::Typography => {
                for (at, letter) in text.char_indices() {
                    if letter == '\r' && bytes.get(at + 1) == Some(&b'\n') {
                        replace(at, 1, "");
                    } else if let Some(by) = plain(letter) {
                        replace(at, letter.len_utf8(), by);
                    }
                }
            }
        }
        folded.text.push_str(&text[done..]);
        folded
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where a place of the folded text is in the original; `None` within a sign. Where something was left out, the place
    /// before it.
    pub(super) fn original(&self, at: usize) -> Option<usize> {
        led(&self.marks, at, |mark| mark.0, |mark| mark.1)
    }

    /// The other way round.
    fn from_original(&self, at: usize) -> Option<usize> {
        led(&self.marks, at, |mark| mark.1, |mark| mark.0)
    }
}

fn led(marks: &[(usize, usize)], at: usize, from: fn(&(usize, usize)) -> usize, to: fn(&(usize, usize)) -> usize) -> Option<usize> {
    let next = marks.partition_point(|mark| from(mark) < at);
    if let Some(mark) = marks.get(next).filter(|mark| from(mark) == at) {
        return Some(to(mark));
    }
    match next.checked_sub(1) {
        None => Some(at),
        // Every other mark is a beginning: behind it one is within what was replaced.
        Some(last) if last % 2 == 0 => None,
        Some(last) => Some(to(&marks[last]) + at - from(&marks[last])),
    }
}

/// `new` with the characters of `file` wherever it is what `old` was, `file` and `old` being the same text folded. Line
/// ends that are new are `end`.
pub(super) fn merged(file: &str, old: &str, new: &str, kinds: Kinds, end: &str) -> String {
    let (in_file, in_old) = (Folded::of(file, kinds), Folded::of(old, kinds));
    let own = |from: usize, to: usize| {
        let there = |at| in_file.original(in_old.from_original(at)?);
        file.get(there(from)?..there(to)?)
    };
    let added = |text: &str| text.replace("\r\n", "\n").replace('\n', end);
    // An old text that has LF and a new one that has CRLF do not differ in that.
    let new = &if kinds.concern(old) { new.to_owned() } else { new.replace("\r\n", "\n") };
    let head = common_prefix(old, new);
    let tail = common_suffix(&old[head..], &new[head..]);
    let (old_mid, new_mid) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut text = String::with_capacity(file.len() + new.len());
    let mut keep = |text: &mut String, at: usize, same: &str| match own(at, at + same.len()) {
        Some(own) => text.push_str(own),
        None => text.push_str(&added(same)),
    };
    keep(&mut text, 0, &old[..head]);
    for (at, same, changed) in compared(old_mid, new_mid) {
        if same {
            let (at, length) = at;
            keep(&mut text, head + at, &old_mid[at..at + length]);
        } else {
            text.push_str(&added(changed));
        }
    }
    keep(&mut text, old.len() - tail, &old[old.len() - tail..]);
    text
}

/// What of `old` is in `new` (where it begins, and how long it is), and what is new, word by word.
fn compared<'n>(old: &str, new: &'n str) -> Vec<((usize, usize), bool, &'n str)> {
    /// Larger texts are not compared by words.
    const MOST: usize = 1_000_000;
    let (a, b) = (words(old), words(new));
    if a.len().saturating_mul(b.len()) > MOST {
        return vec![((0, 0), false, new)];
    }
    let starts = |words: &[&str]| -> Vec<usize> {
        let sums = words.iter().scan(0, |at, word| {
            *at += word.len();
            Some(*at)
        });
        std::iter::once(0).chain(sums).collect()
    };
    let (in_old, in_new) = (starts(&a), starts(&b));
    let mut pieces = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                let at = in_old[old_index];
                pieces.push(((at, in_old[old_index + len] - at), true, ""));
            }
            DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
                pieces.push(((0, 0), false, &new[in_new[new_index]..in_new[new_index + new_len]]));
            }
            DiffOp::Delete { .. } => {}
        }
    }
    pieces
}

/// Runs of letters, and everything else one by one.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    for (at, letter) in text.char_indices() {
        if !letter.is_alphanumeric() {
            if start < at {
                words.push(&text[start..at]);
            }
            start = at + letter.len_utf8();
            words.push(&text[at..start]);
        }
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_there_and_back() {
        let folded = Folded::of("a\r\n—b…", Kinds::Typography);
        assert_eq!(folded.text(), "a\n--b...");
        let back: Vec<_> = (0..=8).map(|at| folded.original(at)).collect();
        assert_eq!(back, [Some(0), Some(1), Some(3), None, Some(6), Some(7), None, None, Some(10)]);
        assert_eq!((folded.from_original(3), folded.from_original(6)), (Some(2), Some(4)));
    }

    #[test]
    fn what_stays_keeps_its_own_characters() {
        let merge = |file, old, new| merged(file, old, new, Kinds::Typography, "\r\n");
        assert_eq!(merge("He said “hello” — ok", "He said \"hello\" -- ok", "He said \"hello\" -- fine"), "He said “hello” — fine");
        assert_eq!(merge("“a” “b”", "\"a\" \"b\"", "\"b\""), "“b”");
        assert_eq!(merge("a—b", "a--b", "a-b"), "a-b");
        assert_eq!(merge("a\r\nb\nc", "a\nb\nc", "a\nx\nb\nc"), "a\r\nx\r\nb\nc");
        assert_eq!(merge("it’s", "it's", "it's 'so'"), "it’s 'so'");
    }
}
