//! Lines of an answer: what is shown of them, and which of them belong to a page.

use std::ops::Range;
use std::path::PathBuf;

use grep_matcher::Matcher;

use crate::support::text::{end_of_words, start_of_words};

/// Characters of a line that are shown, around the match (spec tools §7.3).
const LINE_CHARS: usize = 500;

/// One line of the answer, or the lines of one match that goes across several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Below the root.
    pub(super) path: PathBuf,
    pub(super) line: u64,
    /// The last line; `line` itself but for a match across lines.
    pub(super) last: u64,
    pub(super) text: String,
    /// Some of its bytes are no text and are shown as `\u{fffd}`.
    pub(super) is_lossy: bool,
    pub(super) is_match: bool,
}

impl Row {
    /// `bytes` with or without their line end; the match is at byte `at`.
    pub(super) fn new(path: PathBuf, line: u64, bytes: &[u8], at: usize, is_match: bool) -> Self {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let breaks = breaks_in(bytes);
        let (text, is_lossy) = excerpt(bytes, at);
        Self { path, line, last: line + breaks, text, is_lossy, is_match }
    }
}

/// How many line ends there are.
pub(super) fn breaks_in(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// At most [`LINE_CHARS`] characters of a line, with the match at byte `at` among them, and whether bytes of it are no
/// text. Looks at the surroundings of the match only, however long the line is.
fn excerpt(line: &[u8], at: usize) -> (String, bool) {
    let at = at.min(line.len());
    // A character has at most four bytes.
    let from = boundary(line, at.saturating_sub(LINE_CHARS * 4));
    let to = boundary(line, (at + LINE_CHARS * 4).min(line.len()));
    let (before, after) = (String::from_utf8_lossy(&line[from..at]), String::from_utf8_lossy(&line[at..to]));
    let is_lossy = std::str::from_utf8(&line[from..to]).is_err();
    let (left, right) = (before.chars().count(), after.chars().count());
    if from == 0 && to == line.len() && left + right <= LINE_CHARS {
        return (String::from_utf8_lossy(line).into_owned(), is_lossy);
    }
    let wanted_left = left.min((LINE_CHARS / 4).max(LINE_CHARS.saturating_sub(right)));
    let wanted_right = right.min(LINE_CHARS - wanted_left);
    let at_char = |text: &str, chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let (start, end) = (at_char(&before, left - wanted_left), at_char(&after, wanted_right));
    let start = if start > 0 { start_of_words(&before, start) } else { start };
    let end = if end < after.len() { end_of_words(&after, end) } else { end };
    let shown = format!("{}{}", &before[start..], &after[..end]);
    let (cut_left, cut_right) = (from > 0 || start > 0, to < line.len() || end < after.len());
    (format!("{}{shown}{}", if cut_left { "…" } else { "" }, if cut_right { "…" } else { "" }), is_lossy)
}

/// The nearest place at or after `at` that is not within a character of UTF-8.
fn boundary(line: &[u8], at: usize) -> usize {
    let within = line[at..].iter().take(3).take_while(|&&byte| byte & 0b1100_0000 == 0b1000_0000).count();
    at + within
}

/// The lines of each match that goes across lines, within lines that matched together; matches that share a line are
/// one. With each, where in it the match begins.
pub(super) fn blocks<M: Matcher>(matcher: &M, buffer: &[u8], within: Range<usize>) -> Vec<(Range<usize>, usize)> {
    let mut found: Vec<(Range<usize>, usize)> = Vec::new();
    let mut at = within.start;
    while at <= within.end
        && let Ok(Some(hit)) = matcher.find_at(&buffer[..within.end], at)
    {
        // An empty match after the last line end is in no line.
        if hit.start() == within.end && within.end > within.start && buffer[within.end - 1] == b'\n' {
            break;
        }
        let start = buffer[within.start..hit.start()].iter().rposition(|&byte| byte == b'\n');
        let start = start.map_or(within.start, |before| within.start + before + 1);
        let last = if hit.end() > hit.start() { hit.end() - 1 } else { hit.end() };
        let end = buffer[last..within.end].iter().position(|&byte| byte == b'\n');
        let end = end.map_or(within.end, |more| last + more + 1);
        match found.last_mut() {
            Some((lines, _)) if start < lines.end => lines.end = lines.end.max(end),
            _ => found.push((start..end, hit.start() - start)),
        }
        at = if hit.end() > hit.start() { hit.end() } else { hit.end() + 1 };
    }
    found
}

/// The rows of one file that belong to a page: its matches with a number in `window`, and the lines within `context` of
/// one of them. Rows come sorted by line; a line is there once, and a match of another page not at all.
pub(super) fn of_page(rows: Vec<Row>, window: &Range<usize>, context: u64) -> Vec<Row> {
    let mut number = 0;
    let mut is_kept = |row: &Row| {
        let kept = row.is_match && window.contains(&number);
        number += usize::from(row.is_match);
        kept
    };
    let kept: Vec<bool> = rows.iter().map(&mut is_kept).collect();
    let spans: Vec<(u64, u64)> =
        rows.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(row, _)| (row.line, row.last)).collect();
    let mut next = 0;
    let mut is_near = |line: u64| {
        while spans.get(next).is_some_and(|(_, last)| last + context < line) {
            next += 1;
        }
        spans.get(next).is_some_and(|(first, last)| line + context >= *first && line <= last + context)
    };
    let keep = rows.into_iter().zip(kept);
    keep.filter(|(row, kept)| *kept || !row.is_match && is_near(row.line)).map(|(row, _)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excerpt_shows_the_match() {
        let line = format!("{}needle{}", "a".repeat(3_000), "é".repeat(3_000));
        let (shown, lossy) = excerpt(line.as_bytes(), 3_000);
        assert!(shown.contains("needle") && shown.chars().count() == LINE_CHARS + 2 && !lossy, "{shown}");
        assert_eq!(excerpt(b"short", 0), ("short".into(), false));
        assert_eq!(excerpt(b"caf\xe9 x", 5), ("caf\u{fffd} x".into(), true));
        // Of a word that may be a secret all or nothing is shown.
        let secret = "ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5";
        for gap in 440..560 {
            let line = format!("{} {secret} {}needle", "q".repeat(900), "x ".repeat(gap / 2));
            let (shown, _) = excerpt(line.as_bytes(), line.find("needle").unwrap());
            assert!(shown.contains(secret) || !shown.contains("xY5"), "{gap}: {shown}");
            let line = format!("needle{} {secret} {}", " x".repeat(gap / 2), "q".repeat(900));
            let (shown, _) = excerpt(line.as_bytes(), 0);
            assert!(shown.contains(secret) || !shown.contains("ghp"), "{gap}: {shown}");
        }
        let line = format!("{}needle", "é".repeat(3_000));
        let (shown, lossy) = excerpt(line.as_bytes(), 6_000);
        assert!(shown.ends_with("éneedle") && shown.chars().count() == LINE_CHARS + 1 && !lossy, "{shown}");
    }

    #[test]
    fn matches_that_share_a_line_are_one() {
        let matcher = grep_regex::RegexMatcherBuilder::new().build("a\nb|c|x*$").unwrap();
        let lines = |text: &str| {
            let found = blocks(&matcher, text.as_bytes(), 0..text.len());
            found.into_iter().map(|(lines, _)| text[lines].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(lines("ca\nbc\nc\n"), ["ca\nbc\n", "c\n"]);
        assert_eq!(lines("c"), ["c"]);
    }

    #[test]
    fn a_page_has_its_matches_and_the_lines_around_them() {
        let row = |line: u64, is_match| Row::new("f".into(), line, b"x", 0, is_match);
        let rows = vec![row(1, true), row(2, false), row(3, true), row(4, false), row(5, false), row(6, true)];
        let lines = |window: Range<usize>, context| -> Vec<u64> {
            of_page(rows.clone(), &window, context).iter().map(|row| row.line).collect()
        };
        assert_eq!(lines(0..3, 1), [1, 2, 3, 4, 5, 6]);
        assert_eq!(lines(1..2, 1), [2, 3, 4]);
        assert_eq!(lines(1..2, 0), [3]);
        assert_eq!(lines(2..3, 2), [4, 5, 6]);
    }
}
