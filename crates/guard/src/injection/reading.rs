//! A text as a model reads it, and which parts of it are quoted, code or comments.
//!
//! The tricky idea: what is unclear counts as not quoted. A quotation that is not closed soon is dropped, so one stray
//! quote at the top of a file does not turn the rest of it into an example. One pass, no way back.

use std::borrow::Cow;
use std::ops::Range;

use super::invisible::is_invisible;

/// How far a quotation may reach, in bytes.
const LONGEST_QUOTE: usize = 600;

/// How much of a passage is shown, in characters.
const EXCERPT: usize = 120;

/// A text without invisible characters and with wide letters made plain, so that tricks of spelling change nothing.
pub(super) struct Reading<'a> {
    pub(super) plain: Cow<'a, str>,
    line_starts: Vec<usize>,
    quoted: Vec<Range<usize>>,
    comments: Vec<Range<usize>>,
}

impl<'a> Reading<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let plain = plain(text);
        let line_starts = std::iter::once(0).chain(plain.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let (quoted, code) = quoted(&plain);
        // In code a comment is shown like everything else.
        let comments = comments(&plain).into_iter().filter(|comment| !is_in(&code, comment.start)).collect();
        Self { plain, line_starts, quoted, comments }
    }

    /// The line of a byte of `plain`; the first is 1. Lines are those of the original, too: no line break is taken out.
    pub(super) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= at)
    }

    /// Whether it stands in quotation marks, in code, or in a cited line.
    pub(super) fn is_quoted(&self, at: usize) -> bool {
        is_in(&self.quoted, at)
    }

    /// Whether it stands in a comment.
    pub(super) fn is_comment(&self, at: usize) -> bool {
        is_in(&self.comments, at)
    }

    pub(super) fn comments(&self) -> &[Range<usize>] {
        &self.comments
    }

    /// What stands before a byte in the same paragraph, at most `most` bytes of it.
    pub(super) fn before(&self, at: usize, most: usize) -> &str {
        let start = self.plain.floor_char_boundary(at.saturating_sub(most));
        let text = &self.plain[start..at];
        text.rfind("\n\n").map_or(text, |end| &text[end..])
    }

    /// A passage, with what follows it if it is short, on one line.
    pub(super) fn excerpt(&self, passage: &Range<usize>) -> String {
        let line_end = self.plain[passage.end..].find('\n').map_or(self.plain.len(), |length| passage.end + length);
        let mut out = String::new();
        let mut left = EXCERPT;
        let mut blank = true;
        for c in self.plain[passage.start..line_end].chars() {
            if left == 0 {
                out.push('…');
                break;
            }
            if c.is_whitespace() || c.is_control() {
                if !blank {
                    out.push(' ');
                    left -= 1;
                }
                blank = true;
            } else {
                out.push(c);
                left -= 1;
                blank = false;
            }
        }
        out.truncate(out.trim_end().len());
        out
    }
}

fn is_in(sorted: &[Range<usize>], at: usize) -> bool {
    let after = sorted.partition_point(|range| range.start <= at);
    after > 0 && sorted[after - 1].contains(&at)
}

fn plain(text: &str) -> Cow<'_, str> {
    let odd = |c: char| is_invisible(c) || matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{a0}' | '\r');
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let letter = |c: char| match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        '\u{a0}' => Some(' '),
        '\r' => None,
        c if is_invisible(c) => None,
        c => Some(c),
    };
    Cow::Owned(text.chars().filter_map(letter).collect())
}

/// Quotations, inline code, fenced code and cited lines; and once more those of them that are code. Sorted, apart from
/// one another.
fn quoted(text: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let (mut out, mut code) = (Vec::new(), Vec::new());
    let mut fence: Option<(usize, &str)> = None;
    let mut open: Option<(usize, char)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, trimmed) = (at, line.trim());
        at += line.len();
        let ticks = fence_of(trimmed);
        if let Some((began, mark)) = fence {
            if ticks.is_some_and(|ticks| ticks.len() >= mark.len() && ticks.starts_with(mark) && ticks == trimmed) {
                out.push(began..at);
                code.push(began..at);
                fence = None;
            }
            continue;
        }
        if let Some(ticks) = ticks {
            (fence, open) = (Some((start, ticks)), None);
            continue;
        }
        if trimmed.is_empty() {
            open = None;
            continue;
        }
        if trimmed.starts_with('>') {
            open = None;
            out.push(start..at);
            continue;
        }
        let mut before = ' ';
        let mut chars = line.char_indices().peekable();
        while let Some((offset, c)) = chars.next() {
            let here = start + offset;
            if open.is_some_and(|(began, _)| here - began > LONGEST_QUOTE) {
                open = None;
            }
            match open {
                Some((began, end)) if c == end => {
                    let inside_a_word = c == '\'' && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric());
                    if !inside_a_word {
                        out.push(began..here + c.len_utf8());
                        code.extend((c == '`').then_some(began..here + 1));
                        open = None;
                    }
                }
                Some(_) => {}
                None => open = closing(c, before).map(|end| (here, end)),
            }
            before = c;
        }
    }
    // Code that is not closed reaches to the end, as everybody reads it.
    if let Some((began, _)) = fence {
        out.push(began..text.len());
        code.push(began..text.len());
    }
    (out, code)
}

/// What ends the quotation that `c` opens.
fn closing(c: char, before: char) -> Option<char> {
    Some(match c {
        '"' | '`' => c,
        '\'' if !before.is_alphanumeric() => c,
        '“' => '”',
        '„' => '“',
        '‘' => '’',
        '«' => '»',
        '「' => '」',
        '『' => '』',
        _ => return None,
    })
}

/// The mark of a line that opens or closes fenced code.
fn fence_of(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    // Three ticks and more of them on the same line are inline code.
    (length >= 3 && !line[length..].contains('`')).then(|| &line[..length])
}

/// Comments of HTML, and those that Markdown makes of links to nowhere; sorted, apart from one another.
fn comments(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("<!--") {
        let start = at + found;
        let end = text[start + 4..].find("-->").map_or(text.len(), |length| start + 4 + length + 3);
        out.push(start..end);
        at = end;
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with("[//]: #") || trimmed.starts_with("[comment]: #") {
            out.push(start..start + line.len());
        }
        start += line.len();
    }
    out.sort_by_key(|range| range.start);
    out
}
