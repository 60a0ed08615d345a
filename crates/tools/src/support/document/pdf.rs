//! PDF: the text of each page in the order in which the page writes it.

use lopdf::Document;

use super::Extracted;
use super::lines::Lines;

/// What one stream may unpack to, in bytes.
const MOST_UNPACKED: usize = 64 * 1024 * 1024;

pub(super) fn read(bytes: &[u8]) -> Result<Extracted, String> {
    let options = lopdf::LoadOptions { max_decompressed_size: Some(MOST_UNPACKED), ..Default::default() };
    let document = Document::load_mem_with_options(bytes, options)
        .map_err(|error| format!("it is a damaged or cut off PDF ({error})"))?;
    // What anybody may open has been decrypted by now.
    if document.is_encrypted() && document.encryption_state.is_none() {
        return Err("it is a PDF that is protected with a password".into());
    }
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    let mut lines = Lines::default();
    let mut with_text = 0;
    for page in &pages {
        lines.title(&format!("Page {page}"));
        match document.extract_text_with_limit(&[*page], MOST_UNPACKED) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => {
                with_text += 1;
                lines.block(&without_gaps(&text));
            }
            Err(error) => lines.push(&format!("(this page cannot be read: {error})")),
        }
        if lines.is_full() {
            break;
        }
    }
    let mut extracted = Extracted::new("PDF", lines).counting("pages", pages.len());
    if with_text == 0 {
        extracted.notes.push(
            "no text in it: its pages may be pictures (pdftoppm makes images of them that read_file can show)".into(),
        );
    }
    Ok(extracted)
}

/// A text with one empty line where there were several: they say where drawing went on, and not how far below.
fn without_gaps(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.dedup_by(|next, before| next.is_empty() && before.is_empty());
    lines.join("\n")
}
