//! Writing to standard output without tripping over a reader that has gone.

use std::io::{self, IsTerminal as _, Write as _};

use super::text::harmless;

/// Prints `text` and a line end, and flushes.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Prints a line on standard error. Where nobody can read it, nobody has to be told that either.
pub(crate) fn error(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints what a model or a tool wrote: to a program as it is, to a person so that it cannot move the cursor.
pub(crate) fn foreign(text: &str) -> io::Result<()> {
    if io::stdout().is_terminal() { line(&harmless(text)) } else { line(text) }
}

/// Prints JSON as people read it.
pub(crate) fn pretty(value: &serde_json::Value) -> io::Result<()> {
    line(&format!("{value:#}"))
}
