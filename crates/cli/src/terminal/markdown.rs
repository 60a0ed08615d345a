//! Markdown as it streams in.
//!
//! A line is shown when it is complete, because only then is it known what it is. Code goes out as it is; the rows of a
//! table wait for the last one, because its columns depend on all of them. The rest is termimad's.

use termimad::MadSkin;

use super::text::harmless;

/// Renders a stream.
pub(crate) struct MarkdownStream {
    skin: MadSkin,
    columns: usize,
    line: String,
    table: String,
    in_code: bool,
}

/// What every line begins with.
const MARGIN: &str = "  ";

impl MarkdownStream {
    /// For a terminal of `columns`; without `colour`, marks such as `**` simply disappear.
    pub(crate) fn new(columns: usize, colour: bool) -> Self {
        let skin = if colour { MadSkin::default() } else { MadSkin::no_style() };
        Self { skin, columns: columns.max(20), line: String::new(), table: String::new(), in_code: false }
    }

    /// Sets the width for what comes next; a terminal can be resized.
    pub(crate) fn set_columns(&mut self, columns: usize) {
        self.columns = columns.max(20);
    }

    /// The line that is still arriving, as far as it is there.
    pub(crate) fn unfinished(&self) -> &str {
        &self.line
    }

    /// Takes more text and gives what can be shown.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for part in text.split_inclusive('\n') {
            self.line += part;
            if part.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                out += &self.whole_line(line.trim_end_matches(['\n', '\r']));
            }
        }
        out
    }

    /// Gives what is left at the end.
    pub(crate) fn finish(&mut self) -> String {
        let line = std::mem::take(&mut self.line);
        let mut out = if line.is_empty() { String::new() } else { self.whole_line(&line) };
        out += &self.whole_table();
        self.in_code = false;
        out
    }

    fn whole_line(&mut self, line: &str) -> String {
        let line = harmless(line);
        if line.trim_start().starts_with("```") {
            self.in_code = !self.in_code;
            return self.whole_table();
        }
        if self.in_code {
            return format!("{MARGIN}{MARGIN}{line}\n");
        }
        if line.trim_start().starts_with('|') {
            self.table += &line;
            self.table.push('\n');
            return String::new();
        }
        self.whole_table() + &self.rendered(&line)
    }

    fn whole_table(&mut self) -> String {
        let table = std::mem::take(&mut self.table);
        if table.is_empty() { table } else { self.rendered(&table) }
    }

    fn rendered(&self, markdown: &str) -> String {
        let text = self.skin.text(markdown, Some(self.columns - MARGIN.len())).to_string();
        let text = text.trim_end_matches('\n');
        let mut out = String::new();
        for line in text.split('\n') {
            out += format!("{MARGIN}{line}").trim_end();
            out.push('\n');
        }
        out
    }
}

impl std::fmt::Debug for MarkdownStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MarkdownStream").field("columns", &self.columns).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut reference = None;
        for step in [1, 7, 1_000] {
            let mut stream = MarkdownStream::new(60, false);
            let chars: Vec<char> = text.chars().collect();
            let mut out: String =
                chars.chunks(step).map(|piece| stream.push(&piece.iter().collect::<String>())).collect();
            out += &stream.finish();
            assert_eq!(*reference.get_or_insert(out.clone()), out, "pieces of {step}");
        }
        reference.unwrap_or_default()
    }

    #[test]
    fn plain_text_lists_and_code_read_well_without_colour() {
        assert_eq!(shown("Some **bold** `code`.\n\n- one\n- two"), "  Some bold code.\n\n  • one\n  • two\n");
        assert_eq!(shown("```rust\nlet **x** = 1;\n```\nend\n"), "    let **x** = 1;\n  end\n");
    }

    #[test]
    fn long_lines_wrap_inside_the_margin() {
        let out = shown(&"word ".repeat(40));
        assert!(out.lines().count() > 3 && out.lines().all(|line| line.starts_with("  ") && line.len() <= 60), "{out}");
    }

    #[test]
    fn a_table_waits_for_its_last_row_and_an_escape_stays_a_text() {
        let out = shown("| a | b |\n|---|---|\n| 1 | long cell |\nafter\n");
        assert!(out.contains("long cell") && out.ends_with("  after\n"), "{out}");
        assert!(shown("x\u{1b}[2Jy").contains("\\u{1b}[2Jy"));
    }
}
