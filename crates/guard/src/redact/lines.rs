//! Divides a text that arrives in pieces into lines, and hands each to what looks for shapes.
//!
//! Where it divides depends on the text alone: at a line end, or, if there is none within [`LONGEST`] bytes, at the last
//! good place among these bytes. That is what makes the pieces it arrives in invisible.

use super::block::{self, Next, Open};
use super::{mask, shapes};

/// A longer line is divided, in bytes.
pub(super) const LONGEST: usize = 64 * 1024;
/// A good place to divide is looked for in the last so many bytes.
const TAIL: usize = 4 * 1024;

/// The state between two pieces.
#[derive(Default)]
pub(super) struct Lines {
    /// The line that is not finished.
    held: String,
    /// So much of it holds no line end.
    seen: usize,
    block: Option<Open>,
    /// A secret reached to where a line was divided; the rest of it follows.
    cut: bool,
}

impl Lines {
    /// Takes the next piece; writes all lines that are finished.
    pub(super) fn push(&mut self, text: &str, out: &mut String) {
        let mut held = std::mem::take(&mut self.held);
        held.push_str(text);
        let mut at = 0;
        loop {
            let rest = &held[at..];
            let window = &rest[..rest.floor_char_boundary(LONGEST)];
            let length = match window[self.seen.min(window.len())..].find('\n') {
                Some(line_end) => self.seen + line_end + 1,
                None if rest.len() > LONGEST => place(window),
                None => break self.seen = rest.len(),
            };
            self.line(&rest[..length], out);
            at += length;
            self.seen = 0;
        }
        held.drain(..at);
        self.held = held;
    }

    /// Nothing more comes.
    pub(super) fn finish(mut self, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.line(&held, out);
        }
        if let Some(block) = self.block.take() {
            shapes_of_each(&block.finish(), out);
        }
    }

    fn line(&mut self, line: &str, out: &mut String) {
        let line = if self.cut { line.trim_start_matches(is_token) } else { line };
        if line.is_empty() {
            return;
        }
        self.cut = false;
        let mut rest = line;
        if let Some(mut block) = self.block.take() {
            match block.next(line, out) {
                Next::Within => {
                    self.block = Some(block);
                    return;
                }
                Next::After(after) => rest = after,
                Next::Over(held) => shapes_of_each(&held, out),
            }
        }
        let before = out.len();
        self.block = block::divide(rest, out, shapes::clean);
        self.cut = !line.ends_with('\n')
            && mask::spans(&out[before..]).last().is_some_and(|(_, end)| before + end == out.len());
    }
}

/// Text that was held back is divided as if it had not been.
fn shapes_of_each(text: &str, out: &mut String) {
    text.split_inclusive('\n').for_each(|line| shapes::clean(line, out));
}

/// Where to divide a line that is too long.
fn place(window: &str) -> usize {
    let tail = window.floor_char_boundary(window.len().saturating_sub(TAIL));
    let last = |good: fn(char) -> bool| {
        window[tail..].char_indices().rev().find(|(_, c)| good(*c)).map(|(at, c)| tail + at + c.len_utf8())
    };
    last(|c| ",;{}".contains(c))
        .or_else(|| last(char::is_whitespace))
        .or_else(|| last(|c| !is_token(c)))
        .unwrap_or(window.len())
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-+/=.~%".contains(c)
}
