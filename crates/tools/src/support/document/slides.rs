//! Presentations (`.pptx`, ECMA-376 part 1, §19): the slides in their order, each with its notes.

use super::Extracted;
use super::flow::Flow;
use super::lines::Lines;
use super::package::Package;
use super::xml::{Along, Attributes, pick, walk};

pub(super) fn read(package: &mut Package<'_>, main: &str) -> Result<Extracted, String> {
    let relations = package.relations(main)?;
    let presentation = package.need(main)?;
    let ids =
        pick(main, &presentation, |element, attributes| (element == "sldId").then(|| attributes.relation()).flatten())?;
    let slides: Vec<&str> = ids
        .iter()
        .filter_map(|id| relations.iter().find(|relation| relation.id == *id))
        .map(|relation| relation.target.as_str())
        .collect();
    let mut lines = Lines::default();
    for (index, slide) in slides.iter().enumerate() {
        lines.title(&format!("Slide {}", index + 1));
        let xml = package.need(slide)?;
        lines.block(&text(slide, &xml)?);
        let notes = package.relations(slide)?.into_iter().find(|relation| relation.kind == "notesSlide");
        if let Some(notes) = notes
            && let Some(xml) = package.part(&notes.target)?
        {
            let notes = text(&notes.target, &xml)?;
            if !notes.trim().is_empty() {
                lines.push("Notes:");
                lines.block(&notes);
            }
        }
        if lines.is_full() {
            break;
        }
    }
    let count = slides.len();
    Ok(Extracted::new("presentation", lines).counting("slides", count))
}

fn text(name: &str, xml: &[u8]) -> Result<String, String> {
    let mut reading = Reading { flow: Flow::default(), in_text: false };
    walk(name, xml, &mut reading)?;
    Ok(reading.flow.finish().into_text())
}

struct Reading {
    flow: Flow,
    in_text: bool,
}

impl Along for Reading {
    /// The second version of what newer programs draw, and fields such as the number of the slide.
    const SKIPPED: &[&str] = &["Fallback", "fld"];

    fn open(&mut self, name: &str, _: &Attributes<'_>) {
        match name {
            "p" => self.flow.begin_paragraph(),
            "t" => self.in_text = true,
            "br" => self.flow.break_line(),
            "tbl" => self.flow.begin_table(),
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
