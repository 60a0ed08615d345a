//! Redirections and here-documents.
//!
//! The text of a here-document begins after the *next* newline: a redirection gets an empty cell, and the newline that
//! follows fills it.

use std::cell::OnceCell;
use std::rc::Rc;

use super::parser::{Parser, Read, is_meta};
use super::syntax::{Command, Part, Redirect, RedirectKind, Script, Word};

/// A here-document whose text has not begun.
pub(super) struct HereDocument {
    delimiter: String,
    /// The delimiter was quoted: the text is data.
    literal: bool,
    strip_tabs: bool,
    cell: Rc<OnceCell<Word>>,
}

impl Parser<'_> {
    /// Fills the here-documents that wait for their text, which begins here.
    pub(super) fn here_documents(&mut self) {
        for document in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            while self.at < self.bytes.len() {
                let rest = &self.source[self.at..];
                let end = rest.find('\n').map_or(rest.len(), |index| index + 1);
                let mut line = &rest[..end];
                self.at += end;
                if document.strip_tabs {
                    line = line.trim_start_matches('\t');
                }
                if line.strip_suffix('\n').unwrap_or(line) == document.delimiter {
                    break;
                }
                body.push_str(line);
            }
            let word = if document.literal {
                Word::quoted(body)
            } else {
                // Text that cannot be read stays text; what it would run is unknown then, and `$(` in it is kept as such.
                Parser::new(&body, self.depth, Rc::clone(&self.work)).here_text().unwrap_or_else(|_| unreadable())
            };
            let _ = document.cell.set(word);
        }
    }

    /// A redirection, if one stands here.
    pub(super) fn redirect(&mut self) -> Read<Option<Redirect>> {
        let begin = self.at;
        let digits = self.bytes[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 {
            self.at += digits;
        }
        let mut variable = None;
        if digits == 0 && self.peek() == Some(b'{') {
            let length =
                self.bytes[begin + 1..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
            if length > 0 && self.peek_at(length + 1) == Some(b'}') {
                variable = Some(self.source[begin + 1..begin + 1 + length].to_owned());
                self.at += length + 2;
            }
        }
        let arrow = matches!(self.peek(), Some(b'<' | b'>')) || self.at == begin && self.starts_with("&>");
        if !arrow || self.at == begin && self.at_process() {
            self.at = begin;
            return Ok(None);
        }
        let mut descriptor = self.source[begin..begin + digits].parse().ok();
        let kinds = [
            ("<<<", RedirectKind::HereString),
            ("<<-", RedirectKind::HereDocument),
            ("<<", RedirectKind::HereDocument),
            ("<&", RedirectKind::Duplicate),
            ("<>", RedirectKind::ReadWrite),
            ("<", RedirectKind::Read),
            ("&>>", RedirectKind::AppendBoth),
            ("&>", RedirectKind::WriteBoth),
            (">>", RedirectKind::Append),
            (">&", RedirectKind::Duplicate),
            (">|", RedirectKind::Write),
            (">", RedirectKind::Write),
        ];
        let Some((text, mut kind)) = kinds.into_iter().find(|(text, _)| self.starts_with(text)) else {
            return Err(self.wrong("unexpected"));
        };
        self.at += text.len();
        self.blanks();
        if self.peek().is_none_or(|byte| is_meta(byte) && !self.at_process()) {
            return Err(self.wrong("unexpected"));
        }
        let cell = Rc::new(OnceCell::new());
        if kind == RedirectKind::HereDocument {
            let word = self.word()?;
            let (delimiter, literal) = delimiter(&word);
            let document = HereDocument { delimiter, literal, strip_tabs: text == "<<-", cell: Rc::clone(&cell) };
            self.pending.push(document);
        } else {
            let word = self.word()?;
            let is_descriptor =
                word.bare().is_some_and(|text| text == "-" || text.trim_end_matches('-').parse::<u32>().is_ok());
            if text == ">&" && !is_descriptor {
                kind = RedirectKind::WriteBoth;
            } else if text == ">&" {
                descriptor = descriptor.or(Some(1));
            }
            let _ = cell.set(word);
        }
        Ok(Some(Redirect { descriptor, variable, kind, target: cell }))
    }
}

/// `|&` is `2>&1 |`.
pub(super) fn errors_follow(command: &mut Command) {
    let one = Word { parts: vec![Part::Bare("1".into())] };
    let redirect = Redirect {
        descriptor: Some(2),
        variable: None,
        kind: RedirectKind::Duplicate,
        target: Rc::new(OnceCell::from(one)),
    };
    match command {
        Command::Simple(simple) => simple.redirects.push(redirect),
        Command::Compound(_, redirects) => redirects.push(redirect),
        Command::Function(..) => {}
    }
}

/// The text that ends a here-document, and whether any part of it was quoted.
fn delimiter(word: &Word) -> (String, bool) {
    let mut text = String::new();
    let mut literal = false;
    for part in &word.parts {
        match part {
            Part::Bare(bare) => text.push_str(bare),
            Part::Quoted(quoted) => {
                text.push_str(quoted);
                literal = true;
            }
            Part::Double(parts) => {
                literal = true;
                for part in parts {
                    if let Part::Quoted(quoted) = part {
                        text.push_str(quoted);
                    }
                }
            }
            Part::Parameter(_) | Part::Command(_) | Part::Arithmetic(_) | Part::Process { .. } => {}
        }
    }
    (text, literal)
}

/// Something that holds a command nobody can read.
fn unreadable() -> Word {
    Word { parts: vec![Part::Command(Rc::new(Script::default())), Part::Quoted(crate::text::HOLE.to_string())] }
}
