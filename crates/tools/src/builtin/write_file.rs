//! `write_file`: the whole content of a file, in one step.
//!
//! What is written is what was sent, with two habits of an existing file kept: its byte order mark and, if all of its
//! lines end in CRLF, its line ends (a file too large to be looked at has no habits). Everything that makes the step
//! atomic lives in the environment.

use std::path::Path;

use hermes_core::{Edit, FileErrorKind, FileKind, grouped, plural};

use crate::prelude::*;
use crate::support::known::{self, Fingerprint};
use crate::support::text::{BOM, LARGEST_EDIT, file_error, is_crlf, to_crlf};
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
        .example(r#"{"path": "notes.txt", "content": ""}"#, gives(r#"{"bytes_written": 0, "dirs_created": false}"#))
        .example(r#"{"path": "."  , "content": "x"}"#, fails("is a directory"))
        .example(r#"{"content": "x"}"#, fails("missing `path`"))
}

async fn write_file(args: Args, cx: ToolCx) -> ToolResult {
    if args.path.trim().is_empty() {
        return Err(ToolError::tell("write_file: the path is empty; nothing was written"));
    }
    let path = cx.resolve(&args.path);
    let refused = |error: ToolError| {
        let resolved = path.display().to_string();
        error.with("bytes_written", 0).with("dirs_created", false).with("resolved_path", resolved)
    };
    let failed = |error| refused(file_error("write_file", &error));
    known::check(&cx, "write_file", &path).await.map_err(refused)?;
    let (old, content) = change(&cx, &path, args.content).await.map_err(refused)?;
    let dirs_created = cx.environment.write(&path, content.as_bytes()).await.map_err(failed)?;
    known::remember(&cx, &path, Fingerprint::of(content.as_bytes())).await;
    let resolved = path.display().to_string();
    let result = json!({
        "bytes_written": content.len(),
        "dirs_created": dirs_created,
        "resolved_path": resolved,
        "files_modified": [resolved],
    });
    let lines = plural(content.lines().count(), "line");
    Ok(ToolOutput::json(result).with_summary(format!("{lines}, {}", if old.is_some() { "replaced" } else { "new" })))
}

/// What is in the file now (`None` if it is not there), and what would be in it.
async fn change(cx: &ToolCx, path: &Path, content: String) -> Result<(Option<Vec<u8>>, String), ToolError> {
    let failed = |error| file_error("write_file", &error);
    let old = match cx.environment.stat(path).await {
        // Anything that is no regular file is refused by the write itself, in its own words.
        Ok(stat) if stat.kind == FileKind::File && stat.len <= LARGEST_EDIT => {
            Some(cx.environment.read(path, 0..u64::MAX).await.map_err(failed)?)
        }
        Ok(_) => Some(Vec::new()),
        Err(error) if error.kind == FileErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let content = with_habits_of(old.as_deref().and_then(|old| std::str::from_utf8(old).ok()), content);
    Ok((old, content))
}

async fn edits(args: Args, cx: ToolCx) -> Result<Vec<Edit>, String> {
    let path = cx.resolve(&args.path);
    let (old, new) = change(&cx, &path, args.content).await.map_err(|error| error.to_string())?;
    let old = old.map(|old| String::from_utf8(old).map_err(|_| format!("{} is not UTF-8 text", path.display())));
    Ok(vec![Edit::new(&path, old.transpose()?, Some(new))])
}

fn with_habits_of(old: Option<&str>, content: String) -> String {
    let Some(old) = old else { return content };
    let content = if is_crlf(old) { to_crlf(&content) } else { content };
    if old.starts_with(BOM) && !content.starts_with(BOM) { format!("{BOM}{content}") } else { content }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_what_was_sent_and_an_old_one_keeps_its_habits() {
        let written = |old, content: &str| with_habits_of(old, content.to_owned());
        assert_eq!(written(None, "a\r\nb\n"), "a\r\nb\n");
        assert_eq!(written(Some("x\r\ny\r\n"), "a\nb\rc\n"), "a\r\nb\rc\r\n");
        assert_eq!(written(Some("x\r\ny\n"), "a\nb\n"), "a\nb\n");
        assert_eq!(written(Some("\u{feff}x"), "a"), "\u{feff}a");
        assert_eq!(written(Some("\u{feff}x"), "\u{feff}a"), "\u{feff}a");
    }
}
