//! Values whose name says that they are secret: `NAME=value`, `name: value`, `"name": "value"`, `--name value`.
//!
//! An expression finds a name and its sign; the value behind it is read by hand, because where it ends depends on how it
//! began. The tricky part is to stay linear: values of rejected names may be read again as part of the next one, so the
//! end of the last bare value is remembered instead of looked for again.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::names;
use super::shapes::Span;
use super::worth::{self, Place, Promise};

/// Without one of these words there is no name to find; in lower case.
pub(super) const WORDS: &[&str] = &["pass", "pwd", "_pw", "secret", "token", "key", "cred", "auth"];

/// A terminal's escape before a name, in bytes.
const LONGEST_ESCAPE: usize = 16;
/// Space behind a value that is looked at.
const LONGEST_SPACE: usize = 64;

static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)\]?(?:\\{0,3}["'`])?\]?"#,
        // A sign, perhaps behind a type.
        r"(?:[ \t]{0,8}:[ \t]{0,2}(?:&(?:'static[ ]{1,2})?)?[A-Za-z]{0,6}[sS]tr(?:ing)?[ \t]{0,8}=",
        r"|[ \t]{0,8}(?P<sign>=>|:=|={1,3}|:))",
        r#"(?P<space>[ \t]{0,8})(?P<quote>\\{0,3}["'`])?"#,
    ))
    .ok()
});
static FLAG: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"--(?P<name>[A-Za-z][A-Za-z0-9_\-]*)[ \t]{1,8}(?P<quote>["'])?"#).ok());

/// Finds them; each span is the value without its quotes.
pub(super) fn find(text: &str, order: usize, spans: &mut Vec<Span>) {
    for (regex, flag) in [(&NAME, false), (&FLAG, true)] {
        let Some(regex) = &**regex else { continue };
        let mut reader = Reader { text, flag, bare: [0..0, 0..0] };
        let mut from = 0;
        while let Some(found) = regex.captures_at(text, from) {
            let (Some(name), Some(whole)) = (found.name("name"), found.get(0)) else { break };
            from = whole.end();
            let Some((promise, label)) = names::promise(without_escape(text, name.start(), name.as_str())) else {
                continue;
            };
            if let Some((start, end)) = reader.value(&found, whole.end(), name.as_str(), promise) {
                spans.push(Span { start, end, order, label });
                from = end;
            }
        }
    }
}

/// The name without the letter that ends an escape before it: `\ntoken=` in JSON, colours of a terminal.
fn without_escape<'t>(text: &str, start: usize, name: &'t str) -> &'t str {
    let before = &text.as_bytes()[start.saturating_sub(LONGEST_ESCAPE)..start];
    let parameters = before.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
    let json = before.ends_with(b"\\") && name.starts_with(['n', 'r', 't']);
    let colour = before[..before.len() - parameters].ends_with(b"\x1b[");
    if json || colour { name.get(1..).unwrap_or(name) } else { name }
}

struct Reader<'t> {
    text: &'t str,
    /// Whether names are flags of a command; then what follows is no code.
    flag: bool,
    /// The last bare value, and the last one of an environment.
    bare: [Range<usize>; 2],
}

impl Reader<'_> {
    /// Where the secret is that begins at `start`, if it is one.
    fn value(&mut self, found: &Captures<'_>, start: usize, name: &str, promise: Promise) -> Option<(usize, usize)> {
        let rest = &self.text[start..];
        if let Some(quote) = found.name("quote") {
            let end = start + quoted(rest, quote.as_str());
            return worth::is_secret(&self.text[start..end], promise, Place::Quoted).then_some((start, end));
        }
        let sign = found.name("sign").map_or("", |sign| sign.as_str());
        let tight = found.name("space").is_none_or(|space| space.is_empty());
        let environment = sign == "=" && tight && !name.bytes().any(|byte| byte.is_ascii_lowercase());
        if environment {
            let end = self.bare_end(1, start, is_outside);
            let value = self.text[start..end].trim_end_matches([',', ';']);
            // A call is code.
            let secret = !worth::is_call(value) && worth::is_secret(value, promise, Place::Environment);
            return secret.then_some((start, start + value.len()));
        }
        let end = self.bare_end(0, start, |c| is_outside(c) || ",;&<>(){}[]|\\".contains(c));
        let after = &self.text[end..];
        if after.starts_with(['(', '[', '{', '<']) || rest.starts_with(['$', '*', '@', '!', ':', '-', '%']) {
            return None;
        }
        let mut after = after.chars().skip_while({
            let mut spaces = 0;
            move |c| {
                spaces += 1;
                spaces < LONGEST_SPACE && " \t\r".contains(*c)
            }
        });
        let last = after.next().is_none_or(|c| c == '\n' || c == '#');
        let config = self.flag || last && (sign == ":" || (sign == "=" && tight));
        let place = if config { Place::Config } else { Place::Bare };
        worth::is_secret(&self.text[start..end], promise, place).then_some((start, end))
    }

    /// Where the value ends that begins at `start`. Values of one kind are read once, however many names are in them.
    fn bare_end(&mut self, kind: usize, start: usize, stops: impl Fn(char) -> bool) -> usize {
        if !self.bare[kind].contains(&start) {
            let rest = &self.text[start..];
            let mut before = ' ';
            // An escaped line end is one too.
            let length = rest.find(|c| {
                let escaped = before == '\\' && "nrt".contains(c);
                before = c;
                escaped || stops(c)
            });
            let escaped = length.is_some_and(|length| rest[length..].starts_with(['n', 'r', 't']));
            self.bare[kind] = start..start + length.unwrap_or(rest.len()) - usize::from(escaped);
        }
        self.bare[kind].end
    }
}

/// What stands in no bare value.
fn is_outside(c: char) -> bool {
    c.is_whitespace() || "\"'`\x1b".contains(c)
}

/// The length of a quoted value: up to the same quote, escaped as often; to the end of the line if there is none.
fn quoted(text: &str, quote: &str) -> usize {
    let escapes = quote.len() - 1;
    let mark = quote.as_bytes()[escapes];
    let mut backslashes = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\\' => backslashes += 1,
            b'\n' => return at,
            _ if byte == mark && escapes == 0 && backslashes % 2 == 0 => return at,
            _ if byte == mark && escapes > 0 && backslashes <= escapes => return at - backslashes,
            _ => backslashes = 0,
        }
    }
    text.len()
}
