//! `write_file`: the whole content of a file, in one step.
//!
//! What is written is what was sent, with the habits of an existing file kept: its encoding, its byte order mark and, if all
//! of its lines end in CRLF, its line ends (a file that is binary or too large to be looked at has no habits). Everything
//! that makes the step atomic lives in the environment.
//!
//! What was written is then looked at once more: whether its language can read it (`support/syntax`). That is a remark in the
//! answer and never a reason not to write.
//!
//! A model sometimes sends back what a tool showed it instead of the file: lines with their numbers, or the notice that
//! nothing has changed. Nobody means that, and it is refused.

use std::path::Path;
use std::sync::Arc;

use hermes_core::{Edit, FileErrorKind, FileKind, grouped, plural};

use crate::prelude::*;
use crate::support::diff;
use crate::support::document;
use crate::support::known::{self, Fingerprint};
use crate::support::encoding::Encoding;
use crate::support::matching::Lines;
use crate::support::echo::echo;
use crate::support::paths::stated_file;
use crate::support::syntax;
use crate::support::text::{BOM, LARGEST_EDIT, Looks, SNIFF_BYTES, file_error, is_crlf, is_lf, is_text, looks, to_crlf};
use crate::support::view::{Splice, View};
use crate::support::words::quoted;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// File to create or replace; missing folders are created.
    path: String,
    /// The complete new content.
    content: String,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("write_file", write_file)
        .also_known_as(&["write", "create_file", "create", "save_file", "write_to_file", "new_file", "file_write"])
        .toolset("file")
        .emoji("📝")
        .effect(Effect::Write)
        .parallel()
        .edits(edits)
        .about("Create a file or replace all of its content, in one step. To change a part of a file use patch.")
        .touches(|args: &Args, cx| {
            let lines = plural(args.content.lines().count(), "line");
            let size = format!("the whole file will be {lines}, {} bytes:", grouped(args.content.len() as u64));
            let mut touches = Touches::writing(cx.resolve(&args.path)).because(size);
            touches.explain.extend(quoted('+', &args.content));
            touches
        })
        .headline(|args: &Args| args.path.clone())
        .example(
            r#"{"path": "new/hello.txt", "content": "hi\n"}"#,
            gives(r#"{"bytes_written": 3, "dirs_created": true}"#),
        )
        .example(r#"{"path": "new/a.json", "content": "{\"a\": 1,}"}"#, gives(r#"{"lint": {"status": "error", "output": "1:9: a comma before `}` | {\"a\": 1,}"}}"#))
        .example(r#"{"path": "notes.txt", "content": ""}"#, gives(r#"{"bytes_written": 0, "dirs_created": false}"#))
        .example(r#"{"path": "a.txt", "content": "1|one\n2|two\n"}"#, fails("numbers of read_file"))
        .example(r#"{"path": "."  , "content": "x"}"#, fails("is a directory"))
        .example(r#"{"content": "x"}"#, fails("missing `path`"))
}

async fn write_file(args: Args, cx: ToolCx) -> ToolResult {
    let path = stated_file(&cx, "write_file", &args.path)?;
    if let Some(why) = echo(&args.content) {
        return Err(ToolError::tell(format!("write_file: {why}; nothing was written")));
    }
    let refused = |error: ToolError| {
        let resolved = path.display().to_string();
        error.with("bytes_written", 0).with("dirs_created", false).with("resolved_path", resolved)
    };
    let failed = |error| refused(file_error("write_file", &error));
    known::check(&cx, "write_file", &path).await.map_err(refused)?;
    let old = old_content(&cx, &path).await.map_err(refused)?;
    if old.is_none() && args.path.contains('\\') {
        let why = "a folder is separated by / here, and \\ would become a part of the name; nothing was written";
        return Err(refused(ToolError::tell(format!("write_file: {}: {why}", args.path))));
    }
    let new = Written::new(old.as_deref(), args.content);
    let dirs_created = cx.environment.write(&path, &new.bytes).await.map_err(failed)?;
    known::remember(&cx, &path, Fingerprint::of(&new.bytes)).await;
    let (is_new, bytes) = (old.is_none(), new.bytes.len());
    let detail = difference(old.as_deref(), &new.text);
    let lint = syntax::check(&path, old.map(Arc::new), Arc::new(new.bytes), false).await;
    let resolved = path.display().to_string();
    let mut result = json!({
        "bytes_written": bytes,
        "dirs_created": dirs_created,
        "resolved_path": resolved,
        "files_modified": [resolved],
        "lint": lint.told(),
    });
    if let Some(encoding) = new.encoding {
        result["encoding"] = json!(encoding);
    }
    if let Some(line_ends) = new.line_ends {
        result["line_ends"] = json!(line_ends);
    }
    if let Some(at) = new.text.find('\0') {
        let line = new.text[..at].matches('\n').count() + 1;
        result["_warning"] = json!(format!("there is a NUL byte in line {line}; tools may take the file for binary"));
    }
    let lines = plural(new.text.lines().count(), "line");
    let summary = format!("{lines}, {}", if is_new { "new" } else { "replaced" });
    Ok(ToolOutput::json(result).with_summary(lint.beside(&summary)).with_diff(detail))
}

/// What the write changes, for somebody who looks on; nothing where it is too long to be compared.
fn difference(old: Option<&[u8]>, new: &str) -> Vec<String> {
    /// Nobody looks at the difference of longer texts, and everybody would wait for it.
    const COMPARED: usize = 256 * 1024;
    let old = old.unwrap_or_default();
    if old.len().max(new.len()) > COMPARED || !(old.is_empty() || is_text(old)) {
        return Vec::new();
    }
    let before = View::new(old);
    let splice = Splice { range: 0..before.text().len(), new: new.to_owned() };
    diff::for_eyes(&diff::unified(["a", "b"], &Lines::of(before.text()), before.text(), &[splice]))
}

/// Refuses to put a text in the place of a document.
fn refuse_document(path: &Path, old: &[u8]) -> Result<(), ToolError> {
    let Some(what) = document::lost_to_text(path, old) else { return Ok(()) };
    Err(ToolError::tell(format!(
        "write_file: {} is {what}, which a text in its place would destroy; nothing was written. Write the text under another \
         name, or make the document with a program in the terminal",
        path.display()
    )))
}

/// What is in the file now, as far as it is looked at; `None` if it is not there. A document is an error.
async fn old_content(cx: &ToolCx, path: &Path) -> Result<Option<Vec<u8>>, ToolError> {
    let failed = |error| file_error("write_file", &error);
    match cx.environment.stat(path).await {
        Ok(stat) if stat.kind == FileKind::File => {
            let is_looked_at = stat.len <= LARGEST_EDIT;
            let end = if is_looked_at { u64::MAX } else { SNIFF_BYTES as u64 };
            let content = cx.environment.read(path, 0..end).await.map_err(failed)?;
            refuse_document(path, &content)?;
            Ok(Some(if is_looked_at { content } else { Vec::new() }))
        }
        // Anything that is no regular file is refused by the write itself, in its own words.
        Ok(_) => Ok(Some(Vec::new())),
        Err(error) if error.kind == FileErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

async fn edits(args: Args, cx: ToolCx) -> Result<Vec<Edit>, String> {
    let path = cx.resolve(&args.path);
    let old = old_content(&cx, &path).await.map_err(|error| error.to_string())?;
    let new = Written::new(old.as_deref(), args.content);
    let old = old.map(|old| match habits(&old) {
        Some(encoding) => Ok(encoding.decode(&old[encoding.bom().len()..]).into_owned()),
        None => Err(format!("{} is binary, not text", path.display())),
    });
    Ok(vec![Edit::new(&path, old.transpose()?, Some(new.text))])
}

/// What is written.
struct Written {
    text: String,
    bytes: Vec<u8>,
    /// How, where that is worth a word.
    encoding: Option<String>,
    /// Which line ends it has, where others were sent.
    line_ends: Option<&'static str>,
}

impl Written {
    fn new(old: Option<&[u8]>, content: String) -> Self {
        let Some((old, encoding)) = old.filter(|old| !old.is_empty()).and_then(|old| Some((old, habits(old)?))) else {
            let bytes = content.clone().into_bytes();
            return Self { bytes, text: content, encoding: None, line_ends: None };
        };
        let before = encoding.decode(&old[encoding.bom().len()..]);
        let (content, line_ends) = match (is_crlf(&before), is_crlf(&content)) {
            (true, _) if is_lf(&content) => (to_crlf(&content), Some("CRLF, as before")),
            (true, _) => (to_crlf(&content), None),
            (false, true) if is_lf(&before) => (content.replace("\r\n", "\n"), Some("LF, as before")),
            _ => (content, None),
        };
        let text = content.strip_prefix(BOM).map(str::to_owned).unwrap_or(content);
        let is_plain = encoding.is_utf8() && encoding.bom().is_empty();
        let said = |encoded: &str| (!is_plain).then(|| encoded.to_owned());
        match encoding.encode(&text) {
            Ok(bytes) => {
                Self { bytes: [encoding.bom(), &bytes].concat(), encoding: said(encoding.name()), text, line_ends }
            }
            Err(letter) => {
                let how = format!("UTF-8; it was {}, which has no {letter}", encoding.name());
                Self { bytes: text.clone().into_bytes(), encoding: Some(how), text, line_ends }
            }
        }
    }
}

/// How a file is written, if it is text.
fn habits(old: &[u8]) -> Option<Encoding> {
    let looks = looks(&old[..old.len().min(SNIFF_BYTES)]);
    matches!(looks, Looks::Text | Looks::Utf16).then(|| Encoding::of(old, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_what_was_sent_and_an_old_one_keeps_its_habits() {
        let written = |old: Option<&[u8]>, content: &str| Written::new(old, content.to_owned()).bytes;
        assert_eq!(written(None, "a\r\nb\n"), b"a\r\nb\n");
        assert_eq!(written(Some(b"x\r\ny\r\n"), "a\nb\rc\n"), b"a\r\nb\rc\r\n");
        assert_eq!(written(Some(b"x\r\ny\n"), "a\nb\n"), b"a\nb\n");
        assert_eq!(written(Some(b"x\ny\n"), "a\r\nb\r\n"), b"a\nb\n");
        assert_eq!(written(Some(b"x\ny\n"), "a\r\nb\n"), b"a\r\nb\n");
        assert_eq!(written(Some(b"x"), "a\r\n"), b"a\r\n");
        assert_eq!(written(Some("\u{feff}x".as_bytes()), "a"), "\u{feff}a".as_bytes());
        assert_eq!(written(Some("\u{feff}x".as_bytes()), "\u{feff}a"), "\u{feff}a".as_bytes());
        assert_eq!(written(Some(b"\xff\xfex\0"), "a\u{e4}"), b"\xff\xfea\0\xe4\0");
        assert_eq!(written(Some(b"caf\xe9 na\xefve\n"), "th\u{e9}"), b"th\xe9");
        assert_eq!(written(Some(b"\x7fELF\0\r\n"), "a\n"), b"a\n");
    }

    #[test]
    fn what_an_encoding_does_not_have_makes_the_file_utf_8_and_that_is_said() {
        let new = Written::new(Some(b"caf\xe9 na\xefve\n"), "a \u{2192} b".into());
        assert_eq!(new.bytes, "a \u{2192} b".as_bytes());
        assert!(new.encoding.unwrap().contains("windows-1252, which has no \u{2192}"));
    }
}
