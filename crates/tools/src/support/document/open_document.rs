//! Texts and presentations of the `OpenDocument` family (`.odt`, `.odp`; OASIS standard 1.3, part 3). Text stands directly
//! in paragraphs; blanks beyond the first, tabs and line ends are elements.

use super::Extracted;
use super::flow::Flow;
use super::package::Package;
use super::xml::{Along, Attributes, walk};

/// Where the text is.
const CONTENT: &str = "content.xml";
/// Blanks that one element stands for at most.
const MOST_BLANKS: u64 = 1_000;
/// Equal cells that one element stands for at most, as far as they are shown.
const MOST_REPEATED: u64 = 256;

pub(super) fn read(package: &mut Package<'_>, media_type: &str) -> Result<Extracted, String> {
    let xml = package.need(CONTENT)?;
    if package
        .part("META-INF/manifest.xml")?
        .is_some_and(|manifest| memchr::memmem::find(&manifest, b"encryption-data").is_some())
    {
        return Err("it is protected with a password".into());
    }
    let mut reading = Reading::default();
    walk(CONTENT, &xml, &mut reading)?;
    let pages = reading.pages;
    let lines = reading.flow.finish();
    Ok(if media_type.contains("presentation") {
        Extracted::new("OpenDocument presentation", lines).counting("slides", pages)
    } else {
        Extracted::new("OpenDocument text", lines)
    })
}

#[derive(Default)]
struct Reading {
    flow: Flow,
    /// Paragraphs and headings we are in.
    paragraphs: usize,
    /// How often the cell stands that we are in.
    repeated: usize,
    pages: usize,
}

impl Along for Reading {
    /// What was deleted, who wrote an annotation and when, and the numbers of notes.
    const SKIPPED: &[&str] = &["tracked-changes", "creator", "date", "note-citation", "sequence-decls"];

    fn open(&mut self, name: &str, attributes: &Attributes<'_>) {
        match name {
            "p" | "h" => {
                // Within another one: the text of a note or of a frame, which stays where it stands.
                if self.paragraphs == 0 {
                    self.flow.begin_paragraph();
                }
                self.paragraphs += 1;
            }
            "s" => {
                let blanks = attributes.number("c").unwrap_or(1).min(MOST_BLANKS);
                self.flow.text(&" ".repeat(usize::try_from(blanks).unwrap_or(1)));
            }
            "tab" => self.flow.tab(),
            "line-break" => self.flow.break_line(),
            "note" | "annotation" => self.flow.text("["),
            "table" => self.flow.begin_table(),
            "table-cell" | "covered-table-cell" => {
                let times = attributes.number("number-columns-repeated").unwrap_or(1).clamp(1, MOST_REPEATED);
                self.repeated = usize::try_from(times).unwrap_or(1);
            }
            "page" => {
                self.pages += 1;
                self.flow.lines.title(&format!("Slide {}", self.pages));
            }
            "notes" => self.flow.lines.push("Notes:"),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "p" | "h" => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                if self.paragraphs == 0 {
                    self.flow.end_paragraph();
                }
            }
            "note" | "annotation" => self.flow.text("]"),
            "table-cell" | "covered-table-cell" => {
                self.flow.end_cell(std::mem::take(&mut self.repeated).max(1));
            }
            "table-row" => self.flow.end_row(),
            "table" => self.flow.end_table(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.paragraphs > 0 {
            // Line ends and runs of blanks are those of whoever wrote the XML.
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            let is_blank = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_whitespace());
            let before = if is_blank(text.chars().next()) { " " } else { "" };
            let after = if is_blank(text.chars().last()) && !words.is_empty() { " " } else { "" };
            self.flow.text(&format!("{before}{}{after}", words.join(" ")));
        }
    }

    fn has_enough(&self) -> bool {
        self.flow.lines.is_full()
    }
}
