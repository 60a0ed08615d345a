//! Lines of a text that are alike to other lines, and those lines with a change carried into them.
//!
//! Every line becomes a number, so that a run of lines is found like a word in a text, in one pass whatever both of them
//! look like. What was found by its numbers is then compared as text.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::folded::{Change, Folded, Kinds};
use super::indent::{Shift, common_divisor};
use crate::support::view::Splice;

/// How far two lines may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alike {
    /// In their line ends.
    Content,
    /// In blanks at their ends, too.
    TrailingBlanks,
    /// In the indentation, too, if it differs in one way for all lines.
    Indentation,
    /// In blanks at their ends and in typographic signs.
    Typography,
}

/// A text by its lines. Only LF and CRLF end one; there is no line after the last of them.
#[derive(Debug)]
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// Where each line begins, and the end of the text.
    starts: Vec<usize>,
    numbers: [OnceCell<Vec<u64>>; 4],
    usual_end: OnceCell<&'static str>,
    unit: OnceCell<Option<usize>>,
}

/// Lines that were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The first of them.
    pub(crate) first: usize,
    shift: Shift,
    alike: Alike,
}

/// How many windows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Most {
    /// Every one that does not overlap with the one before it.
    All,
    /// So many.
    Some(usize),
}

/// A part of a change from old to new lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// These old lines stay.
    Keep(Range<usize>),
    /// In place of these old lines come these new ones.
    Change(Range<usize>, Range<usize>),
}

/// How many lines more than the text has are compared to find out which of the runs with the right numbers are meant.
/// It takes a text that was made for it to need more, and then nothing is found.
const MORE_COMPARED: usize = 200_000;

impl<'t> Lines<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Self { text, starts, numbers: Default::default(), usual_end: OnceCell::new(), unit: OnceCell::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where line `at` begins; for the number of lines, the end of the text.
    pub(crate) fn start(&self, at: usize) -> usize {
        self.starts[at]
    }

    /// The line, counted from 0, in which a place of the text is.
    pub(crate) fn at(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place).saturating_sub(1).min(self.len().saturating_sub(1))
    }

    /// A line without its end.
    pub(crate) fn content(&self, at: usize) -> &'t str {
        let line = &self.text[self.starts[at]..self.starts[at + 1]];
        line.strip_suffix("\r\n").or_else(|| line.strip_suffix('\n')).unwrap_or(line)
    }

    /// Its end; empty for a last line without one.
    pub(crate) fn end(&self, at: usize) -> &'t str {
        &self.text[self.starts[at] + self.content(at).len()..self.starts[at + 1]]
    }

    pub(crate) fn contents(&self) -> Vec<&'t str> {
        (0..self.len()).map(|at| self.content(at)).collect()
    }

    /// The line end that most lines have.
    pub(crate) fn usual_end(&self) -> &'static str {
        self.usual_end.get_or_init(|| {
            let crlf = memchr::memmem::find_iter(self.text.as_bytes(), b"\r\n").count();
            if 2 * crlf > memchr::memchr_iter(b'\n', self.text.as_bytes()).count() { "\r\n" } else { "\n" }
        })
    }

    /// How wide a step of indentation by blanks is, from the first lines that have any.
    fn unit(&self) -> Option<usize> {
        *self.unit.get_or_init(|| {
            let widths = (0..self.len().min(2_000)).map(|at| self.content(at)).filter(|line| !line.trim().is_empty());
            let widths = widths.map(|line| line.bytes().take_while(|byte| *byte == b' ').count());
            Some(widths.fold(0, common_divisor)).filter(|unit| (1..=8).contains(unit))
        })
    }

    fn numbers(&self, alike: Alike) -> &[u64] {
        let number = |at| number(key(alike, self.content(at)).as_bytes());
        self.numbers[alike as usize].get_or_init(|| (0..self.len()).map(number).collect())
    }

    /// Where lines like `old` are, in order: all of them that do not overlap if `all`, else the first few, which may.
    /// `new` is what will come there.
    pub(crate) fn windows(&self, old: &Lines<'_>, new: &Lines<'_>, alike: Alike, most: Most) -> Vec<Window> {
        let mut windows: Vec<Window> = Vec::new();
        let mut left = self.len() + MORE_COMPARED;
        let is_open = |windows: &[Window], first: usize| match most {
            Most::All => windows.last().is_none_or(|last| last.first + old.len() <= first),
            Most::Some(_) => true,
        };
        for first in runs(self.numbers(alike), old.numbers(alike)) {
            if matches!(most, Most::Some(most) if windows.len() == most) {
                break;
            }
            if is_open(&windows, first) {
                let Some(rest) = left.checked_sub(old.len()) else { return Vec::new() };
                left = rest;
                windows.extend(self.window(first, old, new, alike));
            }
        }
        windows
    }

    fn window(&self, first: usize, old: &Lines<'_>, new: &Lines<'_>, alike: Alike) -> Option<Window> {
        let same = |at| key(alike, self.content(first + at)) == key(alike, old.content(at));
        if !(0..old.len()).all(same) {
            return None;
        }
        let shift = if alike == Alike::Indentation {
            let lines = (0..old.len()).filter(|at| !old.content(*at).trim().is_empty());
            let pairs: Vec<_> = lines.map(|at| (indent(old.content(at)), indent(self.content(first + at)))).collect();
            let new: Vec<_> = new.contents().into_iter().filter(|line| !line.trim().is_empty()).map(indent).collect();
            Shift::of(&pairs, &new, self.unit())?
        } else {
            Shift::None
        };
        Some(Window { first, shift, alike })
    }

    /// What comes in place of a window that was found for `old`.
    pub(crate) fn replaced(&self, window: &Window, old: &Lines<'_>, new: &Lines<'_>, pieces: &[Piece]) -> Splice {
        let last = window.first + old.len() - 1;
        let ends = |text: &str| text.ends_with('\n');
        let end = if ends(old.text) { self.start(last + 1) } else { self.start(last) + self.content(last).len() };
        // Both end their last line, or neither does: then it stays as it is, also where the file ends without one.
        let after = match (ends(old.text), ends(new.text)) {
            (true, true) => self.end(last),
            (false, true) => self.end_like(last),
            (_, false) => "",
        };
        Splice {
            range: self.start(window.first)..end,
            new: self.joined(&self.rewritten(window, old, new, pieces), after),
        }
    }

    /// The lines that come in place of a window, each with the line of the file whose end it takes.
    pub(crate) fn rewritten(
        &self,
        window: &Window,
        old: &Lines<'_>,
        new: &Lines<'_>,
        pieces: &[Piece],
    ) -> Vec<(String, usize)> {
        let mut lines = Vec::new();
        let mut like = window.first;
        for piece in pieces {
            match piece {
                Piece::Keep(kept) => {
                    lines
                        .extend(kept.clone().map(|at| (self.content(window.first + at).to_owned(), window.first + at)));
                    like = window.first + kept.end.saturating_sub(1);
                }
                // As many as before: each is the one before it, changed.
                Piece::Change(from, to) if from.len() == to.len() => {
                    for (from, to) in from.clone().zip(to.clone()) {
                        like = window.first + from;
                        lines.push((window.line(self.content(like), old.content(from), new.content(to)), like));
                    }
                }
                Piece::Change(from, to) => {
                    if !from.is_empty() {
                        like = window.first + from.start;
                    }
                    lines.extend(to.clone().map(|at| (window.led(new.content(at)), like)));
                }
            }
        }
        lines
    }

    /// Lines as one text: each with the end of the line it was made from, the last one with `after`.
    pub(crate) fn joined(&self, lines: &[(String, usize)], after: &str) -> String {
        let mut text = String::with_capacity(lines.iter().map(|(line, _)| line.len() + 2).sum());
        for (index, (line, like)) in lines.iter().enumerate() {
            text.push_str(line);
            text.push_str(if index + 1 == lines.len() { after } else { self.end_like(*like) });
        }
        text
    }

    /// The end of a line, or the usual one if it has none.
    pub(crate) fn end_like(&self, at: usize) -> &str {
        if at >= self.len() || self.end(at).is_empty() { self.usual_end() } else { self.end(at) }
    }
}

impl Window {
    /// `there`, changed as `old` was to become `new`.
    fn line(&self, there: &str, old: &str, new: &str) -> String {
        let ([i, body, t], [i_old, body_old, t_old], [i_new, body_new, t_new]) = (parts(there), parts(old), parts(new));
        if body_new.is_empty() {
            return new.to_owned();
        }
        let indent = if i_new == i_old { i.to_owned() } else { self.shift.led(i_new) };
        let body = if body == body_old || body.is_empty() {
            body_new.to_owned()
        } else {
            Change::new(body_old, body_new, Kinds::Typography).carried(body, "")
        };
        indent + &body + if t_new == t_old { t } else { t_new }
    }

    /// A new line, indented as those around it are.
    fn led(&self, new: &str) -> String {
        let [indent, body, trailing] = parts(new);
        if body.is_empty() { new.to_owned() } else { self.shift.led(indent) + body + trailing }
    }
}

/// The change from old to new lines.
pub(super) fn compared(old: &Lines<'_>, new: &Lines<'_>) -> Vec<Piece> {
    /// Larger texts are not compared line by line.
    const MOST: usize = 4_000_000;
    let (a, b) = (old.contents(), new.contents());
    let head = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let tail = a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a_mid, b_mid) = (head..a.len() - tail, head..b.len() - tail);
    let mut pieces = vec![Piece::Keep(0..head)];
    if a_mid.len().saturating_mul(b_mid.len()) > MOST {
        pieces.push(Piece::Change(a_mid.clone(), b_mid));
    } else {
        for op in capture_diff_slices(Algorithm::Myers, &a[a_mid.clone()], &b[b_mid]) {
            let (is_same, old, new) = (matches!(op, DiffOp::Equal { .. }), op.old_range(), op.new_range());
            let old = old.start + head..old.end + head;
            pieces.push(if is_same { Piece::Keep(old) } else { Piece::Change(old, new.start + head..new.end + head) });
        }
    }
    pieces.push(Piece::Keep(a_mid.end..a.len()));
    pieces.retain(|piece| !matches!(piece, Piece::Keep(kept) if kept.is_empty()));
    pieces
}

/// A number for a line. Two lines may have the same one; that is looked at later.
fn number(line: &[u8]) -> u64 {
    /// Odd, and without a pattern: the digits of pi.
    const MIX: u64 = 0x243f_6a88_85a3_08d3;
    let (words, rest) = line.as_chunks::<8>();
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(MIX).rotate_left(29);
    let sum = words.iter().fold(line.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(mix(sum, u64::from_le_bytes(last)), 1)
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t')
}

fn key(alike: Alike, line: &str) -> Cow<'_, str> {
    match alike {
        Alike::Content => line.into(),
        Alike::TrailingBlanks => line.trim_end_matches(is_blank).into(),
        Alike::Indentation => line.trim_matches(is_blank).into(),
        Alike::Typography => {
            let line = line.trim_end_matches(is_blank);
            if Kinds::Typography.concern(line) {
                Folded::of(line, Kinds::Typography).text().to_owned().into()
            } else {
                line.into()
            }
        }
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(is_blank).len()]
}

/// Indentation, text, blanks behind it.
fn parts(line: &str) -> [&str; 3] {
    let (indent, rest) = line.split_at(indent(line).len());
    let (body, trailing) = rest.split_at(rest.trim_end_matches(is_blank).len());
    [indent, body, trailing]
}

/// Where `needle` is in `haystack`, overlapping places too. Linear whatever they are (Knuth, Morris and Pratt, 1977).
fn runs<'n>(haystack: &'n [u64], needle: &'n [u64]) -> impl Iterator<Item = usize> + 'n {
    // How much of the needle's beginning ends at each of its places.
    let mut borders = vec![0; needle.len()];
    for at in 1..needle.len() {
        let mut known: usize = borders[at - 1];
        while known > 0 && needle[at] != needle[known] {
            known = borders[known - 1];
        }
        borders[at] = known + usize::from(needle[at] == needle[known]);
    }
    let mut matched = 0;
    let step = move |(at, number): (usize, &u64)| {
        if matched == needle.len() && matched > 0 {
            matched = borders[matched - 1];
        }
        while matched > 0 && *number != needle[matched] {
            matched = borders[matched - 1];
        }
        matched += usize::from(needle.get(matched) == Some(number));
        (matched == needle.len() && matched > 0).then(|| at + 1 - needle.len())
    };
    haystack.iter().enumerate().filter_map(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_no_phantom_and_keep_their_ends() {
        let lines = Lines::of("a\r\n\nb");
        assert_eq!(lines.contents(), ["a", "", "b"]);
        assert_eq!([lines.end(0), lines.end(1), lines.end(2)], ["\r\n", "\n", ""]);
        assert_eq!((Lines::of("").len(), Lines::of("\n").len(), Lines::of("a\n").len()), (0, 1, 1));
        assert_eq!([0, 1, 3, 4, 5].map(|place| lines.at(place)), [0, 0, 1, 2, 2]);
    }

    #[test]
    fn runs_are_found_like_words() {
        let runs = |haystack: &[u64], needle: &[u64]| runs(haystack, needle).collect::<Vec<_>>();
        assert_eq!(runs(&[1, 1, 1, 1], &[1, 1]), [0, 1, 2]);
        assert_eq!(runs(&[1, 2, 1, 2, 1, 3], &[1, 2, 1, 3]), [2]);
        assert_eq!(runs(&[1, 2], &[]), [0; 0]);
        assert_eq!(runs(&[], &[1]), [0; 0]);
    }
}
