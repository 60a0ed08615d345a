//! Paragraphs and tables as they come, made into lines: a paragraph is a line, a row of a table is a line with tabs between
//! its cells. A table within a cell is a part of that cell.

use super::lines::Lines;

/// Collects the paragraphs of a text.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) lines: Lines,
    /// The paragraph that is open.
    line: String,
    /// The cells of the row that is open, of the outermost table.
    row: Vec<String>,
    /// How many tables we are in.
    tables: usize,
    /// Something is open that is to be seen even if it is empty.
    is_open: bool,
}

impl Flow {
    /// A paragraph begins. One that is still open, around it, is a line of its own.
    pub(super) fn begin_paragraph(&mut self) {
        if self.tables == 0 && !self.line.is_empty() {
            self.end_paragraph();
        }
        self.is_open = true;
    }

    pub(super) fn text(&mut self, text: &str) {
        self.line.push_str(text);
    }

    /// A line ends within a paragraph.
    pub(super) fn break_line(&mut self) {
        self.line.push(if self.tables == 0 { '\n' } else { ' ' });
    }

    pub(super) fn tab(&mut self) {
        self.line.push(if self.tables == 0 { '\t' } else { ' ' });
    }

    pub(super) fn end_paragraph(&mut self) {
        if self.tables > 0 {
            // Paragraphs of a cell follow one another in its line.
            if !self.line.is_empty() && !self.line.ends_with(' ') {
                self.line.push(' ');
            }
        } else if self.is_open || !self.line.is_empty() {
            self.lines.push(&std::mem::take(&mut self.line));
        }
        self.is_open = false;
    }

    pub(super) fn begin_table(&mut self) {
        if self.tables == 0 && !self.line.is_empty() {
            self.end_paragraph();
        }
        self.tables += 1;
    }

    /// A cell ends that stands so many times.
    pub(super) fn end_cell(&mut self, times: usize) {
        if self.tables == 1 {
            let text = std::mem::take(&mut self.line).trim_end().to_owned();
            self.row.extend(std::iter::repeat_n(text, times));
        }
    }

    pub(super) fn end_row(&mut self) {
        if self.tables == 1 {
            self.lines.push(std::mem::take(&mut self.row).join("\t").trim_end_matches('\t'));
        }
    }

    pub(super) fn end_table(&mut self) {
        self.tables = self.tables.saturating_sub(1);
    }

    /// The lines, with what was still open.
    pub(super) fn finish(mut self) -> Lines {
        if !self.line.is_empty() {
            self.lines.push(&self.line);
        }
        self.lines
    }
}
