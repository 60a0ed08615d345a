//! `read_file`: a window of numbered lines, with the truth about what lies outside of it.
//!
//! The file is streamed in pieces, so the memory needed is that of the window. Only LF ends a line (a CR before it is
//! not shown), there is no phantom line after the last LF, and the totals are always of the whole file. Nothing is
//! redacted or repaired: bytes that are no UTF-8 are read as Latin-1, and the result says so.

use hermes_core::{FileErrorKind, FileKind, grouped, plural};

use crate::prelude::*;
use crate::support::known::{self, Fingerprint};
use crate::support::paths::{shown, similar};
use crate::support::text::{BOM, Looks, SNIFF_BYTES, file_error, looks};

/// How much is read at once.
const PIECE: u64 = 1024 * 1024;
/// Lines shown when the call does not say (spec tools §3.1).
const DEFAULT_LIMIT: i64 = 500;
/// Characters shown at most, numbers included (spec tools §3.3).
const MOST_CHARS: usize = 100_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// File to read: absolute, relative to the working directory, or `~/…`.
    path: String,
    /// First line to show, counted from 1.
    offset: Option<i64>,
    /// How many lines to show: 500 if left out, at most 2000.
    limit: Option<i64>,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("read_file", read_file)
        .also_known_as(&["read", "view", "view_file", "open_file", "cat", "head", "tail", "get_file", "file_read", "show_file"])
        .toolset("file")
        .emoji("📖")
        .effect(Effect::Read)
        .about("Read a text file. Lines come as `NUMBER|TEXT`; the total is always stated. Use search_files to find things.")
        .parallel()
        .limits_itself()
        .touches(|args: &Args, cx| Touches::reading(cx.resolve(&args.path)))
        .headline(|args: &Args| args.path.clone())
        .example(r#"{"path": "notes.txt"}"#, gives(r#"{"content": "1|one\n2|two\n3|three", "total_lines": 3}"#))
        .example(
            r#"{"path": "notes.txt", "offset": 2, "limit": 1}"#,
            gives(r#"{"content": "2|two", "truncated": true, "next_offset": 3}"#),
        )
        .example(r#"{"path": "notes.txt", "offset": 9}"#, gives(r#"{"content": "", "total_lines": 3}"#))
        .example(r#"{"path": "note.txt"}"#, fails("no such file"))
        .example(r#"{"path": "."}"#, fails("is a directory with 1 name in it"))
        .example(r#"{"path": "/dev/zero"}"#, fails("is a device"))
}

async fn read_file(args: Args, cx: ToolCx) -> ToolResult {
    let path = cx.resolve(&args.path);
    let stat = match cx.environment.stat(&path).await {
        Ok(stat) => stat,
        Err(error) => {
            let nearby = if error.kind == FileErrorKind::NotFound { similar(&cx, &path).await } else { Vec::new() };
            let failed = file_error("read_file", &error);
            return Err(if nearby.is_empty() { failed } else { failed.with("similar_files", nearby) });
        }
    };
    if stat.kind == FileKind::Directory {
        let names = cx.environment.list(&path).await.unwrap_or_default();
        let held = match names.len() {
            0 => "an empty directory".to_owned(),
            some => format!("a directory with {} in it", plural(some, "name")),
        };
        let message = format!("read_file: {} is {held}; name a file", path.display());
        let first: Vec<String> = names.into_iter().take(50).collect();
        return Err(ToolError::tell(message).with("entries", first));
    }
    let head =
        cx.environment.read(&path, 0..SNIFF_BYTES as u64).await.map_err(|error| file_error("read_file", &error))?;
    let looks = looks(&head);
    let unreadable = match looks {
        Looks::Text => None,
        Looks::Utf16 => Some("is UTF-16 text, which cannot be read yet (iconv -f UTF-16 converts it)".to_owned()),
        Looks::Image(format) => Some(format!("is an image ({format}), which cannot be shown yet")),
        Looks::Binary => Some("is binary, not text".to_owned()),
    };
    if let Some(why) = unreadable {
        let is_image = matches!(looks, Looks::Image(_));
        let error = ToolError::tell(format!("read_file: {} {why}", path.display()));
        return Err(error.with("is_binary", !is_image).with("is_image", is_image).with("file_size", stat.len));
    }

    let first = usize::try_from(args.offset.unwrap_or(1)).unwrap_or(1).max(1);
    let limit = usize::try_from(args.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(1).clamp(1, cx.limits.read_lines);
    let mut window = Window::new(first, limit, cx.limits.line_chars);
    let mut fingerprint = Fingerprint::default();
    let mut at = 0;
    loop {
        let piece =
            cx.environment.read(&path, at..at + PIECE).await.map_err(|error| file_error("read_file", &error))?;
        if piece.is_empty() {
            break;
        }
        at += piece.len() as u64;
        fingerprint.push(&piece);
        window.push(&piece);
    }
    known::remember(&cx, &path, fingerprint).await;
    Ok(window.finish(&shown(&cx, &path), at))
}

/// Counts every line and keeps those that were asked for.
struct Window {
    first: usize,
    limit: usize,
    line_chars: usize,
    /// Bytes of the line that is being read, as far as they can be shown.
    line: Vec<u8>,
    /// Whether the line being read has any bytes at all.
    line_is_open: bool,
    /// Whether bytes of it were left out.
    line_is_cut: bool,
    total: usize,
    kept: Vec<Line>,
}

/// The bytes of a line, as far as they can be shown.
struct Line {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Window {
    fn new(first: usize, limit: usize, line_chars: usize) -> Self {
        Self {
            first,
            limit,
            line_chars,
            line: Vec::new(),
            line_is_open: false,
            line_is_cut: false,
            total: 0,
            kept: Vec::new(),
        }
    }

    fn wants_the_next_line(&self) -> bool {
        self.total + 1 >= self.first && self.kept.len() < self.limit
    }

    fn push(&mut self, piece: &[u8]) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            self.line_is_open |= !text.is_empty();
            if self.wants_the_next_line() {
                // A character has at most four bytes; one more tells that the line is longer than what is shown.
                let room = self.line_chars.saturating_mul(4).saturating_add(4).saturating_sub(self.line.len());
                self.line_is_cut |= text.len() > room;
                self.line.extend_from_slice(&text[..text.len().min(room)]);
            }
            if ends {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        if self.wants_the_next_line() {
            let mut bytes = std::mem::take(&mut self.line);
            if bytes.last() == Some(&b'\r') && !self.line_is_cut {
                bytes.pop();
            }
            self.kept.push(Line { bytes, is_cut: self.line_is_cut });
        }
        self.line_is_cut = false;
        self.total += 1;
        self.line_is_open = false;
    }

    fn finish(mut self, path: &str, size: u64) -> ToolOutput {
        if self.line_is_open {
            self.end_line();
        }
        let is_utf8 = self.kept.iter().all(Line::is_utf8);
        let mut content = String::new();
        let mut chars = 0;
        let mut shown = 0;
        let mut cut_lines = false;
        for (i, line) in self.kept.iter().enumerate() {
            let text = decoded(&line.bytes, is_utf8);
            let text = if i == 0 && self.first == 1 { text.strip_prefix(BOM).unwrap_or(&text) } else { &text };
            let (text, cut) = shortened(text, self.line_chars);
            let row = format!("{}|{text}", self.first + i);
            chars += row.chars().count() + 1;
            if shown > 0 && chars > MOST_CHARS {
                break;
            }
            if shown > 0 {
                content.push('\n');
            }
            content += &row;
            cut_lines |= cut;
            shown += 1;
        }
        let last = self.first + shown - 1;
        let more = shown > 0 && last < self.total;
        let mut result = json!({
            "content": content,
            "total_lines": self.total,
            "file_size": size,
            "truncated": more || cut_lines,
            "is_binary": false,
            "is_image": false,
        });
        if more {
            result["next_offset"] = json!(last + 1);
        }
        if !is_utf8 {
            result["encoding"] = json!("latin-1 (the file is not UTF-8)");
        }
        let total = grouped(self.total as u64);
        let summary = match (shown, self.total) {
            (_, 0) => "empty".to_owned(),
            (0, _) => format!("past the end: {total} lines"),
            _ => format!("{}-{} of {total} lines", grouped(self.first as u64), grouped(last as u64)),
        };
        let hint = match (shown, self.total) {
            (_, 0) => Some(format!("{path} is empty")),
            (0, _) => Some(format!("line {} is past the end: {path} has {total} lines", self.first)),
            _ if more => Some(format!("showing lines {summary}; continue with offset {}", last + 1)),
            _ if cut_lines => Some(format!("lines are cut at {} characters", self.line_chars)),
            _ => None,
        };
        if let Some(hint) = hint {
            result["hint"] = json!(hint);
        }
        ToolOutput::json(result).with_summary(summary)
    }
}

impl Line {
    /// A line that was cut may end inside a character; any other may not.
    fn is_utf8(&self) -> bool {
        match std::str::from_utf8(&self.bytes) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none() && self.is_cut,
        }
    }
}

fn decoded(line: &[u8], is_utf8: bool) -> String {
    if is_utf8 {
        String::from_utf8_lossy(line).into_owned()
    } else {
        line.iter().map(|byte| char::from(*byte)).collect()
    }
}

fn shortened(text: &str, chars: usize) -> (String, bool) {
    match text.char_indices().nth(chars) {
        Some((at, _)) => (format!("{}... [truncated]", &text[..at]), true),
        None => (text.to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(bytes: &[u8], first: usize, limit: usize) -> Value {
        let mut reference = None;
        for piece in [1, 3, 1_000_000] {
            let mut window = Window::new(first, limit, 20);
            bytes.chunks(piece).for_each(|piece| window.push(piece));
            let hermes_core::Content::Json(value) = window.finish("f", bytes.len() as u64).content else { panic!() };
            assert_eq!(*reference.get_or_insert(value.clone()), value, "pieces of {piece} bytes");
        }
        reference.unwrap()
    }

    #[test]
    fn lines_are_what_lf_ends_and_the_last_one_counts() {
        for (bytes, content, total) in [
            (&b""[..], "", 0),
            (b"a", "1|a", 1),
            (b"a\n", "1|a", 1),
            (b"a\n\n", "1|a\n2|", 2),
            (b"a\r\nb\rc", "1|a\n2|b\rc", 2),
            (b"\xef\xbb\xbfa\n", "1|a", 1),
            (b"\x1b[31m\x07\n", "1|\u{1b}[31m\u{7}", 1),
        ] {
            let got = window(bytes, 1, 10);
            assert_eq!((got["content"].as_str().unwrap(), got["total_lines"].as_u64().unwrap()), (content, total));
        }
    }

    #[test]
    fn the_total_is_true_whatever_is_shown() {
        let got = window(b"a\nb\nc\nd", 2, 2);
        assert_eq!(
            (&got["content"], &got["total_lines"], &got["next_offset"]),
            (&json!("2|b\n3|c"), &json!(4), &json!(4))
        );
        let got = window(b"a\nb\n", 1, 2);
        assert_eq!(got["truncated"], json!(false));
        let got = window(b"a\nb\n", 7, 2);
        assert_eq!(got["hint"], json!("line 7 is past the end: f has 2 lines"));
    }

    #[test]
    fn long_lines_are_cut_on_a_character_and_latin_1_is_declared() {
        let got = window("é".repeat(30).as_bytes(), 1, 5);
        assert_eq!(got["content"], json!(format!("1|{}... [truncated]", "é".repeat(20))));
        assert_eq!(got["truncated"], json!(true));
        let got = window(b"caf\xe9\n", 1, 5);
        assert_eq!(got["content"], json!("1|café"));
        assert!(got["encoding"].as_str().unwrap().starts_with("latin-1"));
        assert_eq!(window(b"un caf\xe9\n", 1, 5)["content"], json!("1|un café"));
    }
}
