//! Blocks of private keys, as one unit (RFC 7468): however many lines, behind line numbers, quoted in code, or on one line.
//!
//! The first line alone is no secret, and code and documents mention it often; so it waits until what follows is a key.
//! From there on the lines are swallowed, not collected. A block without its last line ends with the first line that
//! cannot belong to it; a short line is kept until it is clear whether it does.

use std::sync::LazyLock;

use regex::Regex;

use super::mask;

/// What the mask of a block says.
pub(super) const LABEL: &str = "private key";
/// So many base64 characters in a row are a key.
const RUN: usize = 16;
/// So many lines may be short or empty before a key begins or goes on: the headers of RFC 1421, and one empty line.
const SHORT_LINES: usize = 5;

static EDGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"-----(?:(?P<begin>BEGIN)|END) (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----").ok()
});

/// A block that may go on with the next line.
pub(super) struct Open {
    /// The first line from its beginning on, as long as no key followed.
    first: Option<String>,
    /// Lines that belong to the block if it goes on.
    short: String,
    lines: usize,
    /// Whether what was swallowed ended with a line end.
    line_end: bool,
}

/// What becomes of a block when a line is read.
pub(super) enum Next<'t> {
    /// The line belongs to it.
    Within,
    /// It ended within the line; this is what follows.
    After(&'t str),
    /// It was none, or it is cut off. The text held back goes first.
    Over(String),
}

impl Open {
    /// Reads the next line. Writes the mask when the block turns out to be one.
    pub(super) fn next<'t>(&mut self, line: &'t str, out: &mut String) -> Next<'t> {
        let end = edges(line).find(|edge| !edge.begins);
        let body = &line[..end.map_or(line.len(), |edge| edge.start)];
        match (kind(body), end) {
            (Kind::Key, end) => {
                self.begin(out);
                self.short.clear();
                self.lines = 0;
                self.line_end = line.ends_with('\n');
                end.map_or(Next::Within, |edge| Next::After(&line[edge.end..]))
            }
            (Kind::Short, Some(edge)) if self.first.is_none() => Next::After(&line[edge.end..]),
            (Kind::Short, None) if self.lines < SHORT_LINES => {
                self.lines += 1;
                self.short.push_str(line);
                Next::Within
            }
            _ => Next::Over(self.rest()),
        }
    }

    fn begin(&mut self, out: &mut String) {
        if self.first.take().is_some() {
            mask::write(LABEL, out);
        }
    }

    fn rest(&mut self) -> String {
        let line_end = if self.first.is_none() && self.line_end { "\n" } else { "" };
        self.first.take().unwrap_or_default() + line_end + &self.short
    }

    /// Nothing more comes. The last lines of a key that is cut off stay hidden.
    pub(super) fn finish(mut self) -> String {
        if self.first.is_none() && !self.short.is_empty() {
            self.line_end = self.short.ends_with('\n');
            self.short.clear();
        }
        self.rest()
    }
}

/// Divides a line at the blocks in it: calls `plain` with what is outside, writes the masks, and returns the block that is
/// open at the end.
pub(super) fn divide(line: &str, out: &mut String, plain: impl Fn(&str, &mut String)) -> Option<Open> {
    let mut written = 0;
    let mut begin: Option<Edge> = None;
    let last = Edge { begins: true, start: line.len(), end: line.len() };
    for edge in edges(line).chain([last]) {
        let at_end = edge.start == line.len();
        if let Some(start) = begin.take() {
            let inside = &line[start.end..edge.start];
            let length = if edge.begins { key_length(inside) } else { has_run(inside).then_some(edge.end - start.end) };
            if let Some(length) = length {
                plain(&line[written..start.start], out);
                mask::write(LABEL, out);
                written = start.end + length;
                if at_end && line[written..].trim().is_empty() {
                    let line_end = line.ends_with('\n');
                    return Some(Open { first: None, short: String::new(), lines: 0, line_end });
                }
            } else if at_end && trimmed(inside).is_empty() {
                plain(&line[written..start.start], out);
                let first = Some(line[start.start..].to_owned());
                return Some(Open { first, short: String::new(), lines: 0, line_end: false });
            }
        }
        begin = Some(edge).filter(|edge| edge.begins);
    }
    plain(&line[written..], out);
    None
}

#[derive(Clone, Copy)]
struct Edge {
    begins: bool,
    start: usize,
    end: usize,
}

fn edges(line: &str) -> impl Iterator<Item = Edge> {
    let expression = if line.contains("PRIVATE KEY") { EDGE.as_ref() } else { None };
    expression.into_iter().flat_map(move |edge| edge.captures_iter(line)).filter_map(|found| {
        let whole = found.get(0)?;
        Some(Edge { begins: found.name("begin").is_some(), start: whole.start(), end: whole.end() })
    })
}

enum Kind {
    /// A line of a key.
    Key,
    /// Perhaps one: empty, a header, or the few characters of a last line.
    Short,
    Other,
}

fn kind(line: &str) -> Kind {
    let text = trimmed(line);
    let text = without_gutter(text).unwrap_or(text);
    let text = trimmed(text.trim_start_matches(['>', '#', '*', '|', '"', '\'', ' ', '\t']));
    if (text.starts_with("[redacted: ") && text.ends_with(']'))
        || text.starts_with("Proc-Type: ")
        || text.starts_with("DEK-Info: ")
    {
        return Kind::Short;
    }
    if ["Version: ", "Comment: ", "Hash: ", "Charset: "].iter().any(|header| text.starts_with(header)) {
        return Kind::Short;
    }
    let text = text.strip_prefix('-').unwrap_or(text);
    match text.bytes().all(is_base64) {
        true if text.len() >= RUN => Kind::Key,
        true => Kind::Short,
        false => Kind::Other,
    }
}

/// Without space, and without what stands around a line of a string in code.
fn trimmed(text: &str) -> &str {
    let text = text.trim();
    let end = text.trim_end_matches(['"', '\'', ',', ';', ' ', '\\', ')']);
    let end = end.strip_suffix("\" +").unwrap_or(end).trim_end_matches(['"', '\'', ' ']);
    let end = end.strip_suffix("\\n").or_else(|| end.strip_suffix("\\r\\n")).unwrap_or(end);
    end.trim_start_matches(' ')
}

/// Behind a line number as `grep -n`, `cat -n` and our own reading tool write it.
fn without_gutter(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - rest.len();
    if digits == 0 || digits > 9 {
        return None;
    }
    let rest = rest.trim_start_matches(' ');
    Some(rest.strip_prefix(['|', ':', '│', '→', '\t', '-'])?.trim_start_matches([' ', '\t']))
}

/// How far a key goes that begins here; `None` if none does.
fn key_length(text: &str) -> Option<usize> {
    let length = text.bytes().position(|byte| !(is_base64(byte) || byte == b'\\' || byte.is_ascii_whitespace()));
    let length = length.unwrap_or(text.len());
    has_run(&text[..length]).then_some(text[..length].trim_end().len())
}

fn has_run(text: &str) -> bool {
    text.as_bytes().split(|byte| !is_base64(*byte)).any(|run| run.len() >= RUN)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}
