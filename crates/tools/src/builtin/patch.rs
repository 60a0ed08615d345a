//! `patch`: replace one exact piece of a file.
//!
//! Similar is not equal: the old text must occur exactly, and exactly once unless every occurrence is meant. The one
//! thing that is bridged is the line end, because models write LF and some files are CRLF throughout; the new text then
//! gets the file's line ends. Bytes outside the replaced piece are the bytes that were there.

use std::path::PathBuf;

use hermes_core::{Edit, plural};

use crate::prelude::*;
use crate::support::known::{self, Fingerprint};
use crate::support::paths::shown;
use crate::support::text::{BOM, file_error, is_crlf, read_for_editing, to_crlf};
use crate::support::words::quoted;

/// How many places are named when the old text is not unique.
const MOST_PLACES: usize = 10;

/// Longer lines of a diff are cut for the eye; the file is not.
const LONGEST_DIFF_LINE: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// `replace`, the only mode so far.
    #[allow(dead_code, reason = "there is nothing to choose yet; the schema checks the value")]
    mode: Option<Mode>,
    /// File to change.
    path: String,
    /// The text to replace, copied exactly from the file, with enough lines around it to be unique.
    old_string: String,
    /// The text to put in its place; empty deletes.
    new_string: String,
    /// Replace every occurrence instead of requiring exactly one.
    replace_all: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Replace,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("patch", patch)
        .also_known_as(&["edit", "edit_file", "str_replace", "str_replace_editor", "str_replace_based_edit_tool", "search_replace", "replace_in_file", "apply_patch", "apply_diff", "replace", "multi_edit"])
        .toolset("file")
        .emoji("🩹")
        .effect(Effect::Write)
        .parallel()
        .edits(edits)
        .about("Replace a piece of text in a file. Read the file first and copy the old text exactly, indentation included.")
        .touches(|args: &Args, cx| {
            let mut touches = Touches::writing(cx.resolve(&args.path));
            if args.replace_all == Some(true) {
                touches = touches.because("every occurrence is replaced:");
            }
            touches.explain.extend(quoted('-', &args.old_string));
            touches.explain.extend(quoted('+', &args.new_string));
            touches
        })
        .headline(|args: &Args| args.path.clone())
        .example(
            r#"{"path": "notes.txt", "old_string": "two", "new_string": "2"}"#,
            gives(r#"{"success": true}"#),
        )
        .example(r#"{"path": "notes.txt", "old_string": "four", "new_string": "4"}"#, fails("was not found in notes.txt"))
        .example(r#"{"path": "notes.txt", "old_string": "\n", "new_string": " "}"#, fails("found 3 times in notes.txt"))
        .example(r#"{"path": "notes.txt", "old_string": "", "new_string": "x"}"#, fails("old_string is empty"))
        .example(r#"{"path": "notes.txt", "old_string": "one"}"#, fails("missing `new_string`"))
        .example(r#"{"mode": "patch", "path": "notes.txt", "old_string": "a", "new_string": "b"}"#, fails("\"replace\""))
}

/// A change that can be made.
struct Change {
    path: PathBuf,
    /// The path as people read it.
    name: String,
    before: String,
    after: String,
    places: Vec<usize>,
}

/// What the call would do to the file, or why it cannot.
async fn change(args: Args, cx: &ToolCx) -> Result<Change, ToolError> {
    let path = cx.resolve(&args.path);
    let name = shown(cx, &path);
    let unchanged =
        |message: String| ToolError::tell(format!("patch: {message}; nothing was changed")).with("success", false);
    if args.old_string.is_empty() {
        return Err(unchanged(
            "old_string is empty; name the text to replace, or use write_file for a new file".into(),
        ));
    }
    if args.old_string == args.new_string {
        return Err(unchanged("old_string and new_string are the same".into()));
    }
    known::check(cx, "patch", &path).await.map_err(|error| error.with("success", false))?;
    let before = read_for_editing(cx, "patch", &path).await.map_err(|error| error.with("success", false))?;
    let (old, new) = with_line_ends_of(&before, args.old_string, args.new_string);
    let places: Vec<usize> = before.match_indices(&old).map(|(at, _)| at).collect();
    match places.len() {
        0 => {
            let lines = plural(before.lines().count(), "line");
            return Err(unchanged(format!(
                "the text to replace was not found in {name} ({lines}). Read the file and copy the text exactly"
            )));
        }
        1 => {}
        _ if args.replace_all == Some(true) => {}
        found => {
            let lines = line_numbers(&before, &places);
            return Err(unchanged(format!(
                "the text to replace was found {found} times in {name} (lines {lines}). Add surrounding lines to make \
                 it unique, or set replace_all"
            )));
        }
    }
    let after = before.replace(&old, &new);
    Ok(Change { path, name, before, after, places })
}

async fn edits(args: Args, cx: ToolCx) -> Result<Vec<Edit>, String> {
    let change = change(args, &cx).await.map_err(|error| error.to_string())?;
    Ok(vec![Edit::new(&change.path, Some(change.before), Some(change.after))])
}

async fn patch(args: Args, cx: ToolCx) -> ToolResult {
    let Change { path, name, before, after, places } = change(args, &cx).await?;
    cx.environment
        .write(&path, after.as_bytes())
        .await
        .map_err(|error| file_error("patch", &error).with("success", false))?;
    known::remember(&cx, &path, Fingerprint::of(after.as_bytes())).await;
    let resolved = path.display().to_string();
    let result = json!({
        "success": true,
        "diff": diff(&name, &before, &after),
        "files_modified": [resolved],
        "resolved_path": resolved,
    });
    let summary = match places.len() {
        1 => format!("line {}", line_numbers(&before, &places)),
        found => format!("{found} places"),
    };
    let detail = changed_lines(result["diff"].as_str().unwrap_or_default());
    Ok(ToolOutput::json(result).with_summary(summary).with_detail(detail))
}

/// The first lines that a diff takes away or adds.
fn changed_lines(diff: &str) -> Vec<String> {
    /// Enough to recognise the change.
    const SHOWN: usize = 6;
    let changed = |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---");
    diff.lines().filter(changed).take(SHOWN).map(str::to_owned).collect()
}

/// Old and new text with the line ends of a file whose every line ends in CRLF.
fn with_line_ends_of(file: &str, old: String, new: String) -> (String, String) {
    if !is_crlf(file) {
        return (old, new);
    }
    let old = if file.contains(&old) { old } else { to_crlf(&old) };
    (old, to_crlf(&new))
}

fn line_numbers(text: &str, places: &[usize]) -> String {
    let line = |at: &usize| text[..*at].matches('\n').count() + 1;
    let mut lines: Vec<String> = places.iter().take(MOST_PLACES).map(|at| line(at).to_string()).collect();
    if places.len() > MOST_PLACES {
        lines.push("…".into());
    }
    lines.join(", ")
}

fn diff(name: &str, before: &str, after: &str) -> String {
    let strip = |text: &str| text.strip_prefix(BOM).unwrap_or(text).to_owned();
    let (before, after) = (strip(before), strip(after));
    let diff = similar::TextDiff::from_lines(&before, &after);
    let whole = diff.unified_diff().header(&format!("a/{name}"), &format!("b/{name}")).to_string();
    let mut shown = String::with_capacity(whole.len().min(64 * 1024));
    for line in whole.split_inclusive('\n') {
        match line.char_indices().nth(LONGEST_DIFF_LINE) {
            Some((at, _)) => shown.extend([&line[..at], "… [line shortened]\n"]),
            None => shown.push_str(line),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_is_crlf_throughout_lends_its_line_ends() {
        let ends = |file| with_line_ends_of(file, "a\nb".into(), "c\nd".into()).1;
        assert_eq!(ends("a\r\nb\r\n"), "c\r\nd");
        let new = |old: &str| with_line_ends_of("a\r\nb\r\n", old.into(), "c\nd\r\ne".into()).1;
        assert_eq!((new("a"), new("a\r\nb")), ("c\r\nd\r\ne".into(), "c\r\nd\r\ne".into()));
        assert_eq!(ends("a\r\nb\nx\n"), "c\nd");
        assert_eq!(ends("a\nb\n"), "c\nd");
    }

    #[test]
    fn a_diff_of_a_huge_line_stays_small() {
        let long = "x".repeat(100_000);
        let shown = diff("f", &format!("{long}a\n"), &format!("{long}b\n"));
        assert!(shown.len() < 2_000 && shown.contains("line shortened"), "{}", shown.len());
    }

    #[test]
    fn places_are_lines_and_many_of_them_are_not_listed() {
        assert_eq!(line_numbers("a\nb a\na", &[0, 4, 6]), "1, 2, 3");
        assert!(line_numbers(&"a".repeat(50), &(0..50).collect::<Vec<_>>()).ends_with(", …"));
    }
}
