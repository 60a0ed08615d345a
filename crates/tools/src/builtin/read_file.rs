//! `read_file`: a window of numbered lines, with the truth about what lies outside of it.
//!
//! Only LF ends a line (a CR before it is not shown), there is no phantom line after the last LF, and the totals are always
//! of the whole file. Nothing is redacted or repaired: bytes that are no UTF-8 are read as what they seem to be, and the
//! result says so.
//!
//! Of a document (`support::document`) the lines are those of its text, unless its source is asked for.
//!
//! A long file is looked through once for its lines ([`hermes_core::layout`]); after that a place deep in it is two small
//! reads away, and so is every further read while the file stays as it is.

use std::path::Path;
use std::sync::Arc;

use hermes_core::{Attachment, FileErrorKind, FileKind, FileStat, Layout, grouped, plural, stated_path};

use crate::prelude::*;
use crate::support::discretion::{PART_OF_A_KEY, private_lines};
use crate::support::document::{self, Document, Trouble};
use crate::support::encoding::Encoding;
use crate::support::known::{self, Fingerprint};
use crate::support::paths::{shown, similar, stated};
use crate::support::text::{Looks, SNIFF_BYTES, file_error, looks};
use crate::support::window::{Shown, Window};

/// How much is read at once; a file up to this size is read whole.
const PIECE: u64 = Layout::PIECE as u64;
/// Lines shown when the call does not say (spec tools §3.1).
const DEFAULT_LIMIT: i64 = 500;
/// A larger image is described and not sent: services take about this much (5 MB in base64).
const LARGEST_IMAGE: u64 = 3_750_000;

const ATTACHED: &str =
    "the image is an attachment of this result; if you do not see it, the service in between passes no images on";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// File to read: absolute, relative to the working directory, or `~/…`.
    path: String,
    /// First line to show, counted from 1; a negative number counts from the end (-20 shows the last 20 lines).
    offset: Option<i64>,
    /// How many lines to show: 500 if left out, at most 2000.
    limit: Option<i64>,
    /// `text`: what a reader of the document sees; `source`: the file itself, which is what patch works on. Left out: text, but source of an HTML page.
    view: Option<View>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum View {
    Text,
    Source,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("read_file", read_file)
        .also_known_as(&["read", "view", "view_file", "open_file", "cat", "head", "tail", "get_file", "file_read", "show_file"])
        .toolset("file")
        .emoji("📖")
        .effect(Effect::Read)
        .about("Read a text file, whatever its encoding, or the text of a document (PDF, Word, Excel, PowerPoint, OpenDocument, EPUB, Jupyter notebook); an image comes as an attachment. Lines come as `NUMBER|TEXT`; the total is always stated. Use search_files to find things.")
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
        .example(r#"{"path": "notes.txt", "offset": -1}"#, gives(r#"{"content": "3|three", "truncated": false}"#))
        .example(r#"{"path": "note.txt"}"#, fails("no such file"))
        .example(r#"{"path": "."}"#, fails("is a directory with 1 name in it"))
        .example(r#"{"path": "/dev/zero"}"#, fails("is a device"))
}

async fn read_file(args: Args, cx: ToolCx) -> ToolResult {
    let path = stated(&cx, "read_file", &args.path)?;
    let is_of_a_folder = stated_path::is_of_a_folder(&args.path);
    let failed = |error| file_error("read_file", &error);
    let stat = match cx.environment.stat(&path).await {
        Ok(stat) => stat,
        Err(error) => {
            let nearby = if error.kind == FileErrorKind::NotFound { similar(&cx, &path).await } else { Vec::new() };
            return Err(if nearby.is_empty() { failed(error) } else { failed(error).with("similar_files", nearby) });
        }
    };
    if stat.kind == FileKind::Directory {
        return Err(is_directory(&cx, &path).await);
    }
    if is_of_a_folder {
        let message = format!("read_file: {} is {}, and no directory", path.display(), stat.kind.in_words());
        return Err(ToolError::tell(message));
    }
    let head = cx.environment.read(&path, 0..PIECE).await.map_err(failed)?;
    let mut why_source = None;
    if let Some(kind) = document::kind(&path, &head).filter(|kind| args.wants_text_of(*kind)) {
        match document::extract(&cx, &path, &stat, kind).await {
            Ok(document) => return Ok(read_document(&args, &cx, &path, &stat, kind, &document).await),
            Err(Trouble::File(error)) => return Err(failed(error)),
            // What cannot be read as a notebook is a text all the same.
            Err(Trouble::Unreadable(why)) if kind.has_source() => why_source = Some(format!("the file itself: {why}")),
            Err(Trouble::Unreadable(why)) => {
                let error = ToolError::tell(format!("read_file: {}: {why}", path.display()));
                return Err(error.with("is_binary", true).with("is_image", false).with("file_size", stat.len));
            }
        }
    }
    match looks(&head[..head.len().min(SNIFF_BYTES)]) {
        Looks::Text | Looks::Utf16 => {}
        Looks::Image(format) => return image(&cx, &path, &stat, format).await,
        Looks::Binary => {
            let error = ToolError::tell(format!("read_file: {} is binary, not text", path.display()));
            return Err(error.with("is_binary", true).with("is_image", false).with("file_size", stat.len));
        }
    }
    let file = TextFile::new(&cx, &path, &stat, head).await.map_err(failed)?;
    let (first, limit) = args.window(&file.layout, cx.limits.read_lines);
    if known::was_shown(&cx, &path, first, limit as u64, file.layout.hash()) {
        return Ok(unchanged(&cx, &path));
    }
    known::remember(&cx, &path, file.fingerprint()).await;
    let mut window = file.window(&cx, &path, first, limit).await.map_err(failed)?;
    // A program gets what is there.
    if first > 1 && cx.segment.is_some() {
        hide_private_keys(&mut window, &file.head, first);
    }
    let (mut result, summary) = answer(&shown(&cx, &path), (file.lines(), stat.len), first, &window, cx.limits.line_chars);
    if let Some(why) = why_source {
        result["note"] = json!(why);
    }
    Ok(ToolOutput::json(result).with_summary(summary))
}

/// The lines of a document's text.
async fn read_document(
    args: &Args,
    cx: &ToolCx,
    path: &Path,
    stat: &FileStat,
    kind: document::Kind,
    document: &Document,
) -> ToolOutput {
    let (first, limit) = args.window(&document.layout, cx.limits.read_lines);
    if known::was_shown(cx, path, first, limit as u64, document.layout.hash()) {
        return unchanged(cx, path);
    }
    known::remember(cx, path, document.fingerprint.clone()).await;
    let text = document.extracted.text.as_bytes();
    let (at, skip) = document.layout.find(first - 1);
    let mut window = Window::new(Encoding::UTF_8, skip, limit, cx.limits.line_chars);
    window.push(usize::try_from(at).ok().and_then(|at| text.get(at..)).unwrap_or_default());
    let window = window.finish(first, true);
    let (mut result, summary) = answer(&shown(cx, path), (document.layout.lines(), stat.len), first, &window, cx.limits.line_chars);
    result["extracted_document"] = json!(true);
    result["document"] = document.extracted.facts();
    let about = match kind {
        document::Kind::Page => "the page as Markdown; patch and write_file work on its source",
        document::Kind::Notebook => {
            "the cells of the notebook; patch and write_file work on its JSON (view \"source\")"
        }
        _ => "text extracted from the document; it cannot be patched",
    };
    let notes: Vec<&str> = std::iter::once(about).chain(document.extracted.notes.iter().map(String::as_str)).collect();
    result["note"] = json!(notes.join("; "));
    ToolOutput::json(result).with_summary(format!("{}, {summary}", document.extracted.kind))
}

/// The answer to whoever has seen these lines already.
fn unchanged(cx: &ToolCx, path: &Path) -> ToolOutput {
    let path = shown(cx, path);
    let told = json!({
        "status": "unchanged", "message": known::UNCHANGED, "path": path, "dedup": true, "content_returned": false,
    });
    ToolOutput::json(told).with_summary("unchanged")
}

impl Args {
    fn wants_text_of(&self, kind: document::Kind) -> bool {
        self.view.map_or_else(|| kind.is_read_as_text(), |view| view == View::Text)
    }

    /// The first line that is wanted, counted from 1, and how many.
    fn window(&self, layout: &Layout, most: usize) -> (u64, usize) {
        let limit = usize::try_from(self.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(1).clamp(1, most);
        let first = match self.offset.unwrap_or(1) {
            from_end @ ..0 => (layout.lines() + 1).saturating_sub(from_end.unsigned_abs()).max(1),
            from_start => from_start.unsigned_abs().max(1),
        };
        (first, limit)
    }
}

/// A file of lines.
struct TextFile {
    encoding: Encoding,
    layout: Arc<Layout>,
    /// Its first bytes: all of them if it is short.
    head: Vec<u8>,
}

impl TextFile {
    async fn new(cx: &ToolCx, path: &Path, stat: &FileStat, head: Vec<u8>) -> Result<Self, hermes_core::FileError> {
        let is_all = (head.len() as u64) < PIECE;
        let encoding = Encoding::of(&head, is_all);
        let feed = encoding.line_feed();
        let layout =
            if is_all { Arc::new(Layout::of(&head, feed)) } else { known::layout(cx, path, stat, feed).await? };
        Ok(Self { encoding, layout, head })
    }

    /// How many lines there are. A byte order mark is none.
    fn lines(&self) -> u64 {
        if self.layout.len() <= self.encoding.bom().len() as u64 { 0 } else { self.layout.lines() }
    }

    fn fingerprint(&self) -> Fingerprint {
        if self.layout.len() == self.head.len() as u64 {
            Fingerprint::of(&self.head)
        } else {
            Fingerprint::from(&*self.layout)
        }
    }

    async fn window(
        &self,
        cx: &ToolCx,
        path: &Path,
        first: u64,
        limit: usize,
    ) -> Result<Shown, hermes_core::FileError> {
        let (mut at, skip) = self.layout.find(first - 1);
        let mut window = Window::new(self.encoding, skip, limit, cx.limits.line_chars);
        let mut ended = at >= self.layout.len();
        while !ended && !window.is_full() {
            let piece = match at {
                0 => self.head.clone(),
                at => cx.environment.read(path, at..at + PIECE).await?,
            };
            let mark = if at == 0 { self.encoding.bom().len() } else { 0 };
            window.push(&piece[mark.min(piece.len())..]);
            at += piece.len() as u64;
            ended = (piece.len() as u64) < PIECE;
            if window.wants_line_end_only() {
                at = at.max(self.layout.next_line_end(at));
            }
        }
        Ok(window.finish(first, ended))
    }
}

/// What is shown of a file with so many lines and bytes.
fn answer(path: &str, (total, size): (u64, u64), first: u64, window: &Shown, line_chars: usize) -> (Value, String) {
    let last = first + window.lines.saturating_sub(1);
    let more = window.lines > 0 && last < total;
    let mut result = json!({
        "content": window.content,
        "total_lines": total,
        "file_size": size,
        "truncated": more || window.has_cut_lines,
        "is_binary": false,
        "is_image": false,
    });
    if more {
        result["next_offset"] = json!(last + 1);
    }
    if let Some(encoding) = &window.encoding {
        result["encoding"] = json!(encoding);
    }
    let all = grouped(total);
    let summary = match (window.lines, total) {
        (_, 0) => "empty".to_owned(),
        (0, _) => format!("past the end: {all} lines"),
        _ => format!("{}-{} of {all} lines", grouped(first), grouped(last)),
    };
    let hint = match (window.lines, total) {
        (_, 0) if size > 0 => Some("the file holds a byte order mark and nothing else".to_owned()),
        (_, 0) => Some("the file is empty (0 bytes)".to_owned()),
        (0, _) => Some(format!("line {first} is past the end: {path} has {}", plural(usize::try_from(total).unwrap_or(usize::MAX), "line"))),
        _ if more => Some(format!("showing lines {summary}; continue with offset {}", last + 1)),
        _ if window.has_cut_lines => Some(format!("lines are cut at {line_chars} characters")),
        _ => None,
    };
    if let Some(hint) = hint {
        result["hint"] = json!(hint);
    }
    (result, summary)
}

/// Hides the lines of a private key that begins before what is shown: of a whole one, everybody can tell what it is.
fn hide_private_keys(window: &mut Shown, head: &[u8], first: u64) {
    let keys: Vec<_> = private_lines(head).into_iter().filter(|key| key.start <= first).collect();
    if keys.is_empty() {
        return;
    }
    let row = |(row, number): (&str, u64)| {
        let is_part = keys.iter().any(|key| key.contains(&number));
        if is_part { format!("{number}|{PART_OF_A_KEY}") } else { row.to_owned() }
    };
    let rows: Vec<String> = window.content.split('\n').zip(first..).map(row).collect();
    window.content = rows.join("\n");
}

async fn is_directory(cx: &ToolCx, path: &Path) -> ToolError {
    let names = cx.environment.list(path).await.unwrap_or_default();
    let held = match names.len() {
        0 => "an empty directory".to_owned(),
        some => format!("a directory with {} in it", plural(some, "name")),
    };
    let message = format!("read_file: {} is {held}; name a file", path.display());
    let first: Vec<String> = names.into_iter().take(50).collect();
    ToolError::tell(message).with("entries", first)
}

/// An image is shown as one, where it is not too large.
async fn image(cx: &ToolCx, path: &Path, stat: &FileStat, format: &str) -> ToolResult {
    let facts = json!({
        "content": "", "file_size": stat.len, "is_binary": true, "is_image": true, "format": format,
    });
    let with_hint = |hint: &str| {
        let mut facts = facts.clone();
        facts["hint"] = json!(hint);
        facts
    };
    let summary = format!("{format}, {} bytes", grouped(stat.len));
    if stat.len > LARGEST_IMAGE {
        let hint = format!("the image is not shown: it is larger than {} bytes", grouped(LARGEST_IMAGE));
        return Ok(ToolOutput::json(with_hint(&hint)).with_summary(summary));
    }
    let data = cx.environment.read(path, 0..u64::MAX).await.map_err(|error| file_error("read_file", &error))?;
    let picture = Attachment { media_type: format!("image/{}", format.to_lowercase()), data };
    let mut output = ToolOutput::json(with_hint(ATTACHED)).with_summary(summary);
    output.attachments.push(picture);
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(bytes: &[u8], first: u64, limit: usize) -> Value {
        let encoding = Encoding::of(bytes, true);
        let layout = Layout::of(bytes, encoding.line_feed());
        let mut window = Window::new(encoding, first - 1, limit, 20);
        window.push(bytes);
        answer("f", (layout.lines(), layout.len()), first, &window.finish(first, true), 20).0
    }

    #[test]
    fn the_total_is_true_whatever_is_shown() {
        let got = answered(b"a\nb\nc\nd", 2, 2);
        assert_eq!(
            (&got["content"], &got["total_lines"], &got["next_offset"]),
            (&json!("2|b\n3|c"), &json!(4), &json!(4))
        );
        let got = answered(b"a\nb\n", 1, 2);
        assert_eq!(got["truncated"], json!(false));
        let got = answered(b"a\nb\n", 7, 2);
        assert_eq!(got["hint"], json!("line 7 is past the end: f has 2 lines"));
    }
}
