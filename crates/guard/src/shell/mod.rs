//! The grammar of bash: text in, a tree out. Nothing is expanded or judged here.

mod parser;
mod redirects;
pub(crate) mod syntax;
mod words;

pub(crate) use parser::{SyntaxError, here_text, is_name, parse, readable_lines};

/// Cuts a text into words at blanks, minding quotes and backslashes: what `xargs` and `env -S` do.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut real = false;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                real = true;
            }
            (None | Some('"'), '\\') => {
                word.extend(chars.next());
                real = true;
            }
            (None, c) if c.is_whitespace() => {
                if real || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                real = false;
            }
            (_, c) => word.push(c),
        }
    }
    if real || !word.is_empty() {
        words.push(word);
    }
    words
}
