//! Web pages as Markdown.

use std::borrow::Cow;

use html_to_markdown_rs::{ConversionOptions, ProcessingWarning, WarningKind, convert};

use super::Extracted;
use super::lines::Lines;
use crate::support::encoding::Encoding;

pub(super) fn read(bytes: &[u8]) -> Result<Extracted, String> {
    let markdown = Markdown::of(bytes)?;
    let mut lines = Lines::default();
    lines.block(&markdown.text);
    let mut extracted = Extracted::new("HTML page", lines);
    extracted.notes.extend(markdown.has_gaps.then(|| Markdown::GAPS.to_owned()));
    Ok(extracted)
}

/// What a page says.
pub(super) struct Markdown {
    pub(super) text: String,
    /// Something was left out.
    pub(super) has_gaps: bool,
}

impl Markdown {
    pub(super) const GAPS: &str = "what is nested too deeply is left out";

    /// A page as Markdown, whatever its encoding.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, String> {
        let html = decoded(bytes);
        let options =
            ConversionOptions { compact_tables: true, extract_metadata: false, ..ConversionOptions::default() };
        let converted = convert(&html, options).map_err(|error| format!("its HTML cannot be read ({error})"))?;
        let text = converted.content.unwrap_or_default();
        let is_gap = |warning: &ProcessingWarning| {
            matches!(warning.kind, WarningKind::DepthLimitExceeded | WarningKind::TruncatedInput)
        };
        Ok(Self { text, has_gaps: converted.warnings.iter().any(is_gap) })
    }
}

/// The text of a page: what its bytes say counts more than what it says itself, and that more than a guess.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let seen = Encoding::of(bytes, true);
    match declared(bytes) {
        Some(said) if seen.legacy().is_some() => said.decode(bytes).0,
        _ => seen.decode(&bytes[seen.bom().len()..]),
    }
}

/// The encoding that a page names at its beginning (HTML, §4.2.5.4: within its first kilobyte).
fn declared(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]).to_ascii_lowercase();
    let (_, after) = head.split_once("charset=").or_else(|| head.split_once("encoding="))?;
    let label = after.trim_start_matches(['"', '\'']).split(['"', '\'', '>', ' ', '/', ';', '?']).next()?;
    encoding_rs::Encoding::for_label(label.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_in_the_encoding_that_it_names() {
        let html = |label: &str| format!("<html><head><meta charset={label}></head><p>\u{6587}\u{4ef6}</p>");
        let page = html("gb2312");
        let gbk = encoding_rs::GBK.encode(&page).0;
        assert!(decoded(&gbk).contains("\u{6587}\u{4ef6}"));
        assert!(decoded(html("gb2312").as_bytes()).contains("\u{6587}\u{4ef6}"), "UTF-8 is seen");
    }
}
