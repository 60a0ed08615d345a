//! What is text, and how its lines end.

use std::ops::Range;
use std::path::Path;

use hermes_core::{Environment, FileError, FileErrorKind, ToolCx, ToolError, grouped};

use super::document;

/// The UTF-8 byte order mark.
pub(crate) const BOM: &str = "\u{feff}";

/// How much of a file is looked at to tell text from binary.
pub(crate) const SNIFF_BYTES: usize = 8 * 1024;

/// A larger file is not held in memory to change a piece of it.
pub(crate) const LARGEST_EDIT: u64 = 64 * 1024 * 1024;

/// What the first bytes of a file say about the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// Text, as far as one can see.
    Text,
    /// Text in an encoding that is not read yet.
    Utf16,
    /// A picture; the text names its format.
    Image(&'static str),
    /// No text.
    Binary,
}

/// Text never contains a NUL byte, except in UTF-16, which begins with a mark of its own.
pub(crate) fn looks(head: &[u8]) -> Looks {
    // Letters alone make no picture: both formats have sizes in bytes right behind their names.
    let is_words =
        || std::str::from_utf8(head).is_ok_and(|text| !text.contains(|c: char| c.is_control() && !c.is_whitespace()));
    match head {
        [0x89, b'P', b'N', b'G', ..] => Looks::Image("PNG"),
        [0xff, 0xd8, 0xff, ..] => Looks::Image("JPEG"),
        [b'G', b'I', b'F', b'8', ..] if !is_words() => Looks::Image("GIF"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] if !is_words() => Looks::Image("WebP"),
        // UTF-32, which nobody writes text in.
        [0xff, 0xfe, 0, 0, ..] => Looks::Binary,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Looks::Utf16,
        head if head.contains(&0) => Looks::Binary,
        _ => Looks::Text,
    }
}

/// The bytes of a whole file for a tool that edits its text; what is no text, or too large, is refused.
pub(crate) async fn read_for_editing(cx: &ToolCx, tool: &str, path: &Path) -> Result<Vec<u8>, ToolError> {
    let stat = cx.environment.stat(path).await.map_err(|error| file_error(tool, &error))?;
    let shown = path.display();
    if stat.len > LARGEST_EDIT {
        let (size, most) = (grouped(stat.len), grouped(LARGEST_EDIT));
        let message =
            format!("{tool}: {shown} has {size} bytes, more than the {most} that can be edited; nothing was changed");
        return Err(ToolError::tell(message));
    }
    let bytes = cx.environment.read(path, 0..u64::MAX).await.map_err(|error| file_error(tool, &error))?;
    if let Some(what) = document::lost_to_text(path, &bytes) {
        return Err(ToolError::tell(format!(
            "{tool}: {shown} is {what}, whose text is not what its bytes are; nothing was changed. Change it with a program that \
             knows the format, in the terminal"
        )));
    }
    if is_text(&bytes) {
        return Ok(bytes);
    }
    Err(ToolError::tell(format!("{tool}: {shown} is binary, not text; nothing was changed")))
}

/// Writes the new content of a file that was read before, unless somebody else has written to it in between.
pub(crate) async fn write_after(
    environment: &dyn Environment,
    path: &Path,
    before: &[u8],
    after: &[u8],
) -> Result<(), FileError> {
    if environment.read(path, 0..u64::MAX).await? != before {
        let why = "it was changed by somebody else while it was edited; read it again";
        return Err(FileError { path: path.to_path_buf(), kind: FileErrorKind::Other, why: why.into() });
    }
    environment.write(path, after).await.map(drop)
}

/// Whether a content is text that can be edited.
pub(crate) fn is_text(content: &[u8]) -> bool {
    matches!(looks(&content[..content.len().min(SNIFF_BYTES)]), Looks::Text | Looks::Utf16)
}

/// A file error in the words of a tool.
pub(crate) fn file_error(tool: &str, error: &FileError) -> ToolError {
    ToolError::tell(format!("{tool}: {error}"))
}

/// Whether every line of `text` ends in CRLF (and there is at least one line end).
pub(crate) fn is_crlf(text: &str) -> bool {
    let all = text.matches('\n').count();
    all > 0 && all == text.matches("\r\n").count()
}

/// Whether no line of `text` ends in CRLF, and some in LF.
pub(crate) fn is_lf(text: &str) -> bool {
    text.contains('\n') && !text.contains("\r\n")
}

/// `text` with CRLF line ends; a lone CR is data and stays.
pub(crate) fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Where a text that is longer than `at` bytes ends when it is cut: not within a word that may be a secret, for of half a
/// secret nobody can tell any more that it is one. `at` is on a character.
pub(crate) fn end_of_words(text: &str, at: usize) -> usize {
    let word = secret_around(text, at).unwrap_or(at..at);
    // A line of one word is shown as far as it goes.
    if word.start > 0 && at - word.start <= at / 2 { word.start } else { at }
}

/// The same for the beginning of what is left.
pub(crate) fn start_of_words(text: &str, at: usize) -> usize {
    let word = secret_around(text, at).unwrap_or(at..at);
    if word.end < text.len() { word.end } else { at }
}

/// The word on both sides of a place, if it has what secrets have.
fn secret_around(text: &str, at: usize) -> Option<Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./+=~".contains(c);
    let (before, after) = text.split_at(at);
    if !(before.ends_with(is_part) && after.starts_with(is_part)) {
        return None;
    }
    // All that belongs to a word is one byte long.
    let start = at - before.bytes().rev().take_while(|byte| is_part(char::from(*byte))).count();
    let end = at + after.bytes().take_while(|byte| is_part(char::from(*byte))).count();
    let word = &text[start..end];
    let mixed = word.contains(|c: char| c.is_ascii_digit()) && word.contains(|c: char| c.is_ascii_alphabetic());
    (mixed || word.contains(['_', '-'])).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_somebody_else_wrote_in_between_is_not_written_over() {
        let machine = hermes_testkit::FakeEnvironment::new().with_file("f", "theirs");
        let path = machine.cwd().join("f");
        let refused = write_after(&machine, &path, b"read", b"mine").await.unwrap_err();
        assert!(refused.why.contains("by somebody else"), "{refused}");
        assert_eq!(machine.file("f").unwrap(), b"theirs");
        write_after(&machine, &path, b"theirs", b"mine").await.unwrap();
        assert_eq!(machine.file("f").unwrap(), b"mine");
    }

    #[test]
    fn content_decides() {
        assert_eq!(looks(b"plain \xff latin"), Looks::Text);
        assert_eq!(looks(b"\xff\xfea\0"), Looks::Utf16);
        assert_eq!(looks(b"ELF\0"), Looks::Binary);
        assert_eq!(looks(b"\xff\xfe\0\0h\0\0\0"), Looks::Binary);
        assert_eq!(looks(b"GIF89a\x01\0\x01\0"), Looks::Image("GIF"));
        assert_eq!(looks(b"GIF89a is a format"), Looks::Text);
        assert_eq!(looks(b"RIFF but WEBP"), Looks::Text);
        assert_eq!(looks(b""), Looks::Text);
    }

    #[test]
    fn a_word_that_may_be_a_secret_is_not_cut() {
        let secret = "ghp_aB3dE5fG7hI9jK1lM3nO";
        let line = format!("{} {secret} rest", "x".repeat(100));
        for at in 102..100 + secret.len() {
            assert_eq!(&line[..end_of_words(&line, at)], format!("{} ", "x".repeat(100)), "{at}");
        }
        assert_eq!(end_of_words(&line, 50), 50);
        assert_eq!(end_of_words(&line, 101 + secret.len()), 101 + secret.len());
        assert_eq!(end_of_words(&"a1".repeat(100), 101), 101, "one long word");
        assert_eq!(end_of_words("é a1b2c3", 6), 3);
        assert_eq!(&line[start_of_words(&line, 110)..], " rest");
        assert_eq!(start_of_words(&line, 50), 50);
    }

    #[test]
    fn line_ends_are_counted_not_guessed() {
        assert!(is_crlf("a\r\nb\r\n") && !is_crlf("a\r\nb\n") && !is_crlf("a"));
        assert_eq!(to_crlf("a\nb\r\nc\rd\n"), "a\r\nb\r\nc\rd\r\n");
    }
}
