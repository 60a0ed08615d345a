//! A text in which signs that mean the same are the same sign, with the way back to where they came from.

use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::support::view::{common_prefix, common_suffix};

/// What counts as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// CRLF and LF.
    LineEnds,
    /// That, and typographic signs and what a keyboard has in their place.
    Typography,
    /// The same, where a long dash was typed as one short one and not as two.
    ShortDashes,
}

impl Kinds {
    /// Whether folding would change a text.
    pub(super) fn concern(self, text: &str) -> bool {
        match self {
            Self::LineEnds => memchr::memmem::find(text.as_bytes(), b"\r\n").is_some(),
            Self::Typography => !text.is_ascii() && text.chars().any(|letter| plain(letter).is_some()),
            Self::ShortDashes => memchr::memmem::find(text.as_bytes(), LONG_DASH.as_bytes()).is_some(),
        }
    }
}

const LONG_DASH: &str = "\u{2014}";

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
            Kinds::Typography | Kinds::ShortDashes => {
                for (at, letter) in text.char_indices() {
                    if letter == '\r' && bytes.get(at + 1) == Some(&b'\n') {
                        replace(at, 1, "");
                    } else if kinds == Kinds::ShortDashes && LONG_DASH.starts_with(letter) {
                        replace(at, letter.len_utf8(), "-");
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
    fn folded(&self, at: usize) -> Option<usize> {
        led(&self.marks, at, |mark| mark.1, |mark| mark.0)
    }
}

fn led(
    marks: &[(usize, usize)],
    at: usize,
    from: fn(&(usize, usize)) -> usize,
    to: fn(&(usize, usize)) -> usize,
) -> Option<usize> {
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

/// The way from an old to a new text, to be carried into texts that are the old one folded.
#[derive(Debug)]
pub(super) struct Change {
    old: String,
    in_old: Folded,
    kinds: Kinds,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    /// This part of the old text stays.
    Stays(Range<usize>),
    /// This comes.
    Comes(String),
}

impl Change {
    pub(super) fn new(old: &str, new: &str, kinds: Kinds) -> Self {
        // An old text that has LF and a new one that has CRLF do not differ in that.
        let new = &if Kinds::LineEnds.concern(old) { new.to_owned() } else { new.replace("\r\n", "\n") };
        let head = common_prefix(old, new);
        let tail = common_suffix(&old[head..], &new[head..]);
        let mut pieces = vec![Piece::Stays(0..head)];
        pieces.extend(compared(&old[head..old.len() - tail], head, &new[head..new.len() - tail]));
        pieces.push(Piece::Stays(old.len() - tail..old.len()));
        Self { old: old.to_owned(), in_old: Folded::of(old, kinds), kinds, pieces }
    }

    /// The new text with the characters of `file` wherever it is what the old one was. Line ends that are new are `end`.
    pub(super) fn carried(&self, file: &str, end: &str) -> String {
        let in_file = Folded::of(file, self.kinds);
        let there = |at| in_file.original(self.in_old.folded(at)?);
        let own = |range: &Range<usize>| file.get(there(range.start)?..there(range.end)?);
        let added = |text: &str| text.replace("\r\n", "\n").replace('\n', end);
        let text = |piece: &Piece| match piece {
            Piece::Stays(range) => own(range).map_or_else(|| added(&self.old[range.clone()]), str::to_owned),
            Piece::Comes(new) => added(new),
        };
        self.pieces.iter().map(text).collect()
    }
}

/// The pieces of a change, word by word. `start` is where `old` begins in the whole old text.
fn compared(old: &str, start: usize, new: &str) -> Vec<Piece> {
    /// Larger texts are not compared (old words times new words).
    const MOST: usize = 1_000_000;
    let (a, b) = (words(old), words(new));
    if a.len().saturating_mul(b.len()) > MOST {
        return vec![Piece::Comes(new.to_owned())];
    }
    let mut at = start;
    let mut pieces = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        let length: usize = a[op.old_range()].iter().map(|word| word.len()).sum();
        pieces.push(match op.tag() {
            DiffTag::Equal => Piece::Stays(at..at + length),
            _ => Piece::Comes(b[op.new_range()].concat()),
        });
        at += length;
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
        assert_eq!((folded.folded(3), folded.folded(6)), (Some(2), Some(4)));
    }

    #[test]
    fn what_stays_keeps_its_own_characters() {
        let merge = |file, old, new| Change::new(old, new, Kinds::Typography).carried(file, "\r\n");
        assert_eq!(
            merge("He said “hello” — ok", "He said \"hello\" -- ok", "He said \"hello\" -- fine"),
            "He said “hello” — fine"
        );
        assert_eq!(merge("“a” “b”", "\"a\" \"b\"", "\"b\""), "“b”");
        assert_eq!(merge("a—b", "a--b", "a-b"), "a-b");
        assert_eq!(merge("a\r\nb\nc", "a\nb\nc", "a\nx\nb\nc"), "a\r\nx\r\nb\nc");
        assert_eq!(merge("it’s", "it's", "it's 'so'"), "it’s 'so'");
    }
}
