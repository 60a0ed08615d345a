//! Text of third parties, made fit to stand inside a prompt.
//!
//! The tricky idea: only what could be taken for structure is changed, so that `a < b` and `Vec<T>` in the middle of a
//! description stay readable: `Vec<T>` becomes `Vec&lt;T>`, `a < b` stays.

use std::fmt::Write as _;

use hermes_core::grouped;

use super::invisible::{is_invisible, is_joiner};

/// `text` on one line, without invisible and control characters, with everything that looks like a tag made harmless, and
/// at most `cap` bytes of it, cut between two characters; how much was cut is said behind it.
///
/// For names and descriptions that come with skills, plugins and servers. A line break becomes a blank: a list of a prompt
/// must not grow entries that nobody wrote. `<` before a letter, `/`, `!`, `?`, `|` or `<` becomes `&lt;`, and `[INST]`
/// loses its bracket; escaping twice changes nothing more.
pub fn escape_for_prompt(text: &str, cap: usize) -> String {
    let mut out = String::with_capacity(text.len().min(cap) + 32);
    let mut chars = visible(text).peekable();
    let mut cut = 0_usize;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let mut buffer = [0; 4];
        let piece = match c {
            c if is_bracket(c) && next.is_some_and(opens_a_tag) => "&lt;",
            '[' if is_inst(chars.clone()) => "&#91;",
            _ => c.encode_utf8(&mut buffer),
        };
        if cut > 0 || out.len() + piece.len() > cap {
            cut += 1;
        } else {
            out.push_str(piece);
        }
    }
    out.truncate(out.trim_end().len());
    if cut > 0 {
        let characters = if cut == 1 { "character" } else { "characters" };
        let _ = write!(out, "… [{} more {characters} cut]", grouped(cut as u64));
    }
    out
}

/// The characters that can be seen, with one blank for any run of blanks, and none at either end. A joiner is kept behind
/// a character that it can join; behind a `<` it would hide a tag.
fn visible(text: &str) -> impl Iterator<Item = char> + Clone {
    let mut before = ' ';
    let mut seen = text
        .chars()
        .filter(move |&c| {
            let joins = is_joiner(c) && !before.is_ascii() && !is_joiner(before) && !is_bracket(before);
            let kept = c.is_whitespace() || joins || !(c.is_control() || is_invisible(c));
            if kept {
                before = c;
            }
            kept
        })
        .peekable();
    let mut blank = true;
    std::iter::from_fn(move || {
        loop {
            let c = seen.next()?;
            if !c.is_whitespace() {
                blank = false;
                return Some(c);
            }
            if !std::mem::replace(&mut blank, true) && seen.peek().is_some() {
                return Some(' ');
            }
        }
    })
}

/// `<`, and how it looks in the wide and small forms of East Asian scripts.
fn is_bracket(c: char) -> bool {
    matches!(c, '<' | '\u{ff1c}' | '\u{fe64}')
}

fn opens_a_tag(next: char) -> bool {
    next.is_alphabetic() || is_bracket(next) || matches!(next, '/' | '!' | '?' | '|' | '\u{ff0f}')
}

fn is_inst(rest: impl Iterator<Item = char>) -> bool {
    let mut rest = rest.skip_while(|c| *c == '/').map(|c| c.to_ascii_uppercase());
    "INST]".chars().all(|expected| rest.next() == Some(expected))
}
