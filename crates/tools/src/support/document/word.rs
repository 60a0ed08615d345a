//! Word documents (`.docx`, ECMA-376 part 1, §17): paragraphs as lines, tables as rows, notes and comments after the text.

use super::Extracted;
use super::flow::Flow;
use super::lines::Lines;
use super::package::Package;
use super::xml::{Along, Attributes, walk};

pub(super) fn read(package: &mut Package<'_>, main: &str) -> Result<Extracted, String> {
    let relations = package.relations(main)?;
    let body = package.need(main)?;
    let mut lines = text(main, &body, Flow::default())?;
    for (kind, title) in [("footnotes", "Footnotes"), ("endnotes", "Endnotes"), ("comments", "Comments")] {
        let Some(part) = relations.iter().find(|relation| relation.kind == kind) else { continue };
        let Some(xml) = package.part(&part.target)? else { continue };
        let notes = text(&part.target, &xml, Flow::default())?.into_text();
        if !notes.trim().is_empty() {
            lines.title(title);
            lines.block(&notes);
        }
    }
    let has_margins = relations.iter().any(|relation| ["header", "footer"].contains(&relation.kind.as_str()));
    let mut extracted = Extracted::new("Word document", lines);
    if has_margins {
        extracted.notes.push("headers and footers are left out".into());
    }
    Ok(extracted)
}

fn text(name: &str, xml: &[u8], flow: Flow) -> Result<Lines, String> {
    let mut reading = Reading { flow, in_text: false, label: String::new() };
    walk(name, xml, &mut reading)?;
    Ok(reading.flow.finish())
}

struct Reading {
    flow: Flow,
    /// Within an element whose text is seen.
    in_text: bool,
    /// What the next paragraph begins with.
    label: String,
}

impl Along for Reading {
    /// Properties, what was moved away, and the second version of what newer programs draw. Deleted text has another name.
    const SKIPPED: &[&str] = &["pPr", "rPr", "tblPr", "trPr", "tcPr", "Fallback", "moveFrom"];

    fn open(&mut self, name: &str, attributes: &Attributes<'_>) {
        match name {
            "p" => {
                self.flow.begin_paragraph();
                self.flow.text(&std::mem::take(&mut self.label));
            }
            "t" => self.in_text = true,
            "tab" | "ptab" => self.flow.tab(),
            "br" | "cr" => self.flow.break_line(),
            "noBreakHyphen" => self.flow.text("-"),
            "tbl" => self.flow.begin_table(),
            "footnoteReference" => self.flow.text(&mark("", attributes)),
            "endnoteReference" => self.flow.text(&mark("e", attributes)),
            "commentReference" => self.flow.text(&mark("c", attributes)),
            // Those with a type are the lines between text and notes.
            "footnote" if attributes.get("type").is_none() => self.label = mark("", attributes) + " ",
            "endnote" if attributes.get("type").is_none() => self.label = mark("e", attributes) + " ",
            "comment" => {
                let author = attributes.get("author").filter(|author| !author.is_empty());
                let author = author.map(|author| format!("{author}: ")).unwrap_or_default();
                self.label = format!("{} {author}", mark("c", attributes));
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "p" => self.flow.end_paragraph(),
            "t" => self.in_text = false,
            "tc" => self.flow.end_cell(1),
            "tr" => self.flow.end_row(),
            "tbl" => self.flow.end_table(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_text {
            self.flow.text(text);
        }
    }

    fn has_enough(&self) -> bool {
        self.flow.lines.is_full()
    }
}

/// What stands for a note in the text, and before the note itself.
fn mark(sort: &str, attributes: &Attributes<'_>) -> String {
    format!("[^{sort}{}]", attributes.get("id").unwrap_or_default())
}
