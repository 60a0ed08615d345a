//! Writing to standard output without tripping over a reader that has gone.

use std::io::{self, Write as _};

/// Prints `text` and a line end, and flushes.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Prints JSON as people read it.
pub(crate) fn pretty(value: &serde_json::Value) -> io::Result<()> {
    line(&format!("{value:#}"))
}
