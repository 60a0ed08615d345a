//! Telling a model's reasoning from its answer.
//!
//! Many local models write their reasoning before the answer, between `<think>` and `</think>`. It is shown apart and
//! never stored. Only there: once the answer has begun, a tag in it is something the model says about tags. The tags
//! arrive cut at any place, so a piece that could be the beginning of one is held back.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A piece of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Answer(String),
    Reasoning(String),
}

/// Splits a stream of text.
#[derive(Debug, Default)]
pub(crate) struct ThinkFilter {
    held: String,
    inside: bool,
    /// Whether the answer has begun.
    answering: bool,
}

impl ThinkFilter {
    /// Takes more of the stream and gives what can be decided.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Piece> {
        self.held += text;
        let mut pieces = Vec::new();
        loop {
            if self.answering {
                let rest = std::mem::take(&mut self.held);
                self.give(rest, &mut pieces);
                return pieces;
            }
            let tag = if self.inside { CLOSE } else { OPEN };
            // Outside of a block only white space may precede the next one.
            let start = self.held.trim_start();
            if !self.inside && !start.starts_with(tag) && !tag.starts_with(start) {
                self.answering = true;
            } else if let Some(at) = self.held.find(tag) {
                let rest = self.held.split_off(at + tag.len());
                self.held.truncate(at);
                let before = std::mem::replace(&mut self.held, rest);
                self.give(before, &mut pieces);
                self.inside = !self.inside;
            } else {
                let keep = beginning_of(tag, &self.held);
                let rest = self.held.split_off(self.held.len() - keep);
                let before = std::mem::replace(&mut self.held, rest);
                self.give(before, &mut pieces);
                return pieces;
            }
        }
    }

    /// Gives what was held back when the stream ends.
    pub(crate) fn finish(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let rest = std::mem::take(&mut self.held);
        self.give(rest, &mut pieces);
        pieces
    }

    fn give(&self, text: String, pieces: &mut Vec<Piece>) {
        if !text.is_empty() {
            pieces.push(if self.inside { Piece::Reasoning(text) } else { Piece::Answer(text) });
        }
    }
}

/// How many bytes at the end of `text` could be the beginning of `tag`.
fn beginning_of(tag: &str, text: &str) -> usize {
    (1..tag.len()).rev().find(|len| text.ends_with(&tag[..*len])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, step: usize) -> (String, String) {
        let mut filter = ThinkFilter::default();
        let (mut answer, mut reasoning) = (String::new(), String::new());
        let chars: Vec<char> = text.chars().collect();
        let mut pieces: Vec<Piece> =
            chars.chunks(step).flat_map(|chunk| filter.push(&chunk.iter().collect::<String>())).collect();
        pieces.extend(filter.finish());
        for piece in pieces {
            match piece {
                Piece::Answer(text) => answer += &text,
                Piece::Reasoning(text) => reasoning += &text,
            }
        }
        (answer, reasoning)
    }

    #[test]
    fn reasoning_is_told_apart_wherever_the_stream_is_cut() {
        for step in 1..30 {
            assert_eq!(split("<think>sécret</think>final <answer>", step), ("final <answer>".into(), "sécret".into()));
            assert_eq!(split("a < b <thin", step), ("a < b <thin".into(), String::new()));
            assert_eq!(split("\n<think>a</think>\n<think>b</think>c", step), ("\n\nc".into(), "ab".into()));
            assert_eq!(split("Write <think> before it.", step), ("Write <think> before it.".into(), String::new()));
            assert_eq!(split("<think>never closed", step), (String::new(), "never closed".into()));
        }
    }
}
