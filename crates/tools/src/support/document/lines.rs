//! The text of a document as it grows, up to the most that is kept of one.

/// Bytes of text that are kept of a document. A thousand pages of a book have about three million.
pub(super) const MOST_TEXT: usize = 16 * 1024 * 1024;

/// Lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
    is_full: bool,
}

impl Lines {
    /// Adds a line; what ends lines in it makes several.
    pub(super) fn push(&mut self, line: &str) {
        self.is_full |= self.text.len() + line.len() >= MOST_TEXT;
        if !self.is_full {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// Adds the line that names what follows (spec tools §3.4).
    pub(super) fn title(&mut self, title: &str) {
        self.push(&format!("# ── {title} ──"));
    }

    /// Adds what somebody else has written, without blank lines around it.
    pub(super) fn block(&mut self, text: &str) {
        let text = text.trim_matches(['\n', '\r']).trim_end();
        if !text.is_empty() {
            self.push(text);
        }
    }

    /// No more goes in, and something was left out.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}
