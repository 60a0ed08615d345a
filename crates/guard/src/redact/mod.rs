//! Takes secrets out of text on its way to eyes, logs and models. Bytes that are written or run are never touched.
//!
//! Two passes, because each knows what the other cannot. First *by value*: what was registered with [`Secrets::register`]
//! is masked wherever it stands, plain or in its usual encodings. Then *by shape*: the rows of `rules.rs`, values whose
//! name says secret (`assign.rs`), and blocks of private keys (`block.rs`).
//!
//! The tricky idea: there is only one way through, and it is the streaming one. Where the text is divided is decided by
//! its bytes alone (line ends, and for endless lines a fixed length), never by how it arrived, and [`Secrets::clean`] is
//! a stream that is given everything at once. So a stream cannot say anything else than the whole text would.
//!
//! It refuses to guess about random-looking text that nothing names: commit ids, checksums, UUIDs and lock files stay
//! readable. An opaque secret is found by its value or by its name, or not at all.

mod assign;
mod block;
mod encode;
mod lines;
mod mask;
mod names;
mod rules;
mod shapes;
mod values;
mod worth;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use hermes_core::Redactor;
use secrecy::SecretString;

use self::lines::Lines;
pub use self::mask::{MaskAt, contains_mask, masks};
pub use self::values::Refusal;
use self::values::{Scan, Values};

/// The secrets that are known by value, and with them the way to redact a text.
///
/// Cheap to share: registering goes through `&self`, and a [`Stream`] keeps the values known when it was opened. The
/// values are held in [`SecretString`]; the automaton that finds them has to hold their bytes too.
#[derive(Default)]
pub struct Secrets {
    values: RwLock<Arc<Values>>,
}

impl Secrets {
    /// Knows no value; finds secrets by shape only.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on `value` is masked as `[redacted: NAME]`, wherever it appears: as it is, in base64 (each of the three
    /// alignments, both alphabets, also wrapped), in hex, percent-encoded, escaped for JSON or a shell. Each long line of
    /// a value of several lines is masked by itself as well. Space around the value is not part of it.
    ///
    /// # Errors
    /// A value that would tear holes into ordinary text is refused, and nothing changes.
    pub fn register(&self, name: &str, value: SecretString) -> Result<(), Refusal> {
        let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
        *values = Arc::new(values.with(name, value)?);
        Ok(())
    }

    /// `text` without its secrets; borrowed if there are none. The same as what a [`Stream`] makes of it. A text
    /// that was cleaned comes back as it is (lines of more than 64 KiB may lose more, because they are divided anew).
    ///
    /// Takes linear time. Colours and other escapes between the letters of a secret hide it: strip them first.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut stream = self.stream();
        let mut clean = stream.push(text);
        clean += &stream.finish();
        if clean == text { Cow::Borrowed(text) } else { Cow::Owned(clean) }
    }

    /// For text that arrives in pieces.
    pub fn stream(&self) -> Stream {
        let values = Arc::clone(&self.values.read().unwrap_or_else(PoisonError::into_inner));
        Stream { scan: Scan::new(values), lines: Lines::default() }
    }
}

impl Redactor for Secrets {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.clean(text)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

/// Redacts text that arrives in pieces, cut anywhere.
///
/// What it holds back: the line that is not finished, at most 64 KiB of it; what may be the start of a registered value,
/// at most the length of its longest encoding; and, right after the first line of a private key, up to four short lines
/// until it is clear whether a key follows. Nothing of a key block itself is kept, however long it is.
///
/// A line of more than 64 KiB is divided, if possible behind a comma, a brace or a space. Registered values are found
/// before lines are divided and cannot escape in this way; of a secret known only by shape, the half before or after
/// such a cut may.
pub struct Stream {
    scan: Scan,
    lines: Lines,
}

impl Stream {
    /// Takes the next piece, and gives what is certain by now; often nothing, sometimes several lines.
    pub fn push(&mut self, text: &str) -> String {
        let mut exact = String::new();
        self.scan.push(text, &mut exact);
        let mut clean = String::new();
        self.lines.push(&exact, &mut clean);
        clean
    }

    /// Gives the rest.
    pub fn finish(mut self) -> String {
        let mut exact = String::new();
        self.scan.finish(&mut exact);
        let mut clean = String::new();
        self.lines.push(&exact, &mut clean);
        self.lines.finish(&mut clean);
        clean
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}
