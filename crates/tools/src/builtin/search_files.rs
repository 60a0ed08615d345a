//! `search_files`: lines or names below a folder, found with ripgrep's own libraries inside this process.
//!
//! The tricky idea: totals are true. A first pass counts the matches of every file, in parallel and in bounded memory;
//! a second pass fetches only the rows of the window that was asked for. The order is that of the sorted paths, so two
//! runs answer the same bytes. A pattern is never an option and never a shell word: there is no command line.

mod engine;

use std::time::{Duration, Instant};

use hermes_core::{FileErrorKind, FileKind, JsonMap, grouped, plural, shown_path};

use self::engine::{Found, Row, Search, Stop, glob};
use crate::prelude::*;
use crate::support::paths::{shown, similar};
use crate::support::text::file_error;

/// A search that takes longer answers what it has (spec tools §7.2).
const PATIENCE: Duration = Duration::from_secs(60);
/// From this many rows on, paths are written once and rows below them (spec tools §7.3).
const GROUPED_FROM: usize = 5;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// A regular expression (Rust syntax), or with target `files` a glob such as `*.rs` or `src/**/test_*.py`; a plain
    /// word finds names that contain it.
    pattern: String,
    /// `content` searches lines (default), `files` searches names.
    target: Option<Target>,
    /// Folder or file to search; the working directory if left out.
    path: Option<String>,
    /// Search only files whose name (or path, if it contains `/`) matches this glob.
    file_glob: Option<String>,
    /// How many results to show; 50 if left out.
    limit: Option<i64>,
    /// How many results to skip.
    offset: Option<i64>,
    /// `content` shows the lines (default), `files_only` the files, `count` the number of matching lines per file.
    output_mode: Option<OutputMode>,
    /// Lines to show before and after each match.
    context: Option<i64>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Target {
    Content,
    Files,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    Content,
    FilesOnly,
    Count,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("search_files", search_files)
        .also_known_as(&["grep", "grep_search", "rg", "ripgrep", "find", "find_files", "glob", "ls", "list_files", "list_dir", "list_directory", "search", "codebase_search", "file_search"])
        .toolset("file")
        .emoji("🔎")
        .effect(Effect::Read)
        .about(
            "Search file contents or find files by name, recursively. Hidden, binary and .gitignore'd files are \
             skipped. Totals are exact.",
        )
        .parallel()
        .touches(|args: &Args, cx| Touches::reading(cx.resolve(args.path.as_deref().unwrap_or("."))))
        .headline(|args: &Args| match &args.path {
            Some(path) if path != "." => format!("\"{}\" in {path}", args.pattern),
            _ => format!("\"{}\"", args.pattern),
        })
        .example(
            r#"{"pattern": "t.o"}"#,
            gives(r#"{"total_count": 1, "matches": [{"path": "notes.txt", "line": 2, "content": "two"}]}"#),
        )
        .example(r#"{"pattern": "*.txt", "target": "files"}"#, gives(r#"{"total_count": 1, "files": ["notes.txt"]}"#))
        .example(r#"{"pattern": "o", "output_mode": "count"}"#, gives(r#"{"counts": {"notes.txt": 2}}"#))
        .example(r#"{"pattern": "nothing like it"}"#, gives(r#"{"total_count": 0, "truncated": false}"#))
        .example(r#"{"pattern": ""}"#, fails("the pattern is empty"))
        .example(r#"{"pattern": "("}"#, fails("not a regular expression"))
        .example(r#"{"pattern": "x", "path": "note.txt"}"#, fails("no such file"))
}

async fn search_files(args: Args, cx: ToolCx) -> ToolResult {
    let refused = |why: String| ToolError::tell(format!("search_files: {why}")).with("total_count", 0);
    if !cx.environment.shares_our_files() {
        return Err(refused(format!("not possible on the {} backend yet; use terminal", cx.environment.backend())));
    }
    if args.pattern.is_empty() {
        return Err(refused("the pattern is empty, which would match everything; say what to look for".into()));
    }
    let root = cx.resolve(args.path.as_deref().unwrap_or("."));
    let stat = match cx.environment.stat(&root).await {
        Ok(stat) => stat,
        Err(error) => {
            let nearby = if error.kind == FileErrorKind::NotFound { similar(&cx, &root).await } else { Vec::new() };
            let failed = file_error("search_files", &error).with("total_count", 0);
            return Err(if nearby.is_empty() { failed } else { failed.with("similar_files", nearby) });
        }
    };
    if !matches!(stat.kind, FileKind::File | FileKind::Directory) {
        return Err(refused(format!("{} is {}, which cannot be searched", root.display(), stat.kind.in_words())));
    }
    let window = Window {
        offset: usize::try_from(args.offset.unwrap_or(0)).unwrap_or(0),
        limit: usize::try_from(args.limit.unwrap_or(50)).unwrap_or(1).max(1),
        context: usize::try_from(args.context.unwrap_or(0)).unwrap_or(0).min(50),
    };
    let names = args.target == Some(Target::Files);
    let name_pattern = names.then(|| engine::name_glob(&args.pattern));
    let globs = name_pattern.into_iter().chain(args.file_glob).map(|pattern| glob(&pattern));
    let globs: Vec<_> = globs.collect::<Result<_, _>>().map_err(&refused)?;
    let stop = Stop { deadline: Instant::now() + PATIENCE, cancel: cx.cancel.clone() };
    let search = Search { root: root.clone(), globs, stop };

    let cwd = cx.environment.cwd();
    let mode = args.output_mode.unwrap_or(OutputMode::Content);
    let work = move || -> Result<Answer, String> {
        if names {
            return Ok(named(&search, &window, &cwd));
        }
        let matcher = engine::matcher(&args.pattern)?;
        let found = search.count(&matcher);
        let answer = match mode {
            OutputMode::Content => lines(&search, &matcher, &found, &window, &cwd),
            OutputMode::FilesOnly => files(&search, &found, &window, &cwd),
            OutputMode::Count => counts(&search, &found, &window, &cwd),
        };
        Ok(answer.with_omitted(&found))
    };
    let answer = tokio::task::spawn_blocking(work).await.map_err(|error| refused(error.to_string()))?;
    let mut answer = answer.map_err(refused)?;
    if answer.total == 0 {
        let place = shown(&cx, &root);
        answer.json["hint"] =
            json!(format!("{} in {place}{}", answer.summary, answer.skipped.as_deref().unwrap_or("")));
    }
    Ok(ToolOutput::json(answer.json).with_summary(answer.summary))
}

struct Window {
    offset: usize,
    limit: usize,
    context: usize,
}

/// A result, its total, and its two descriptions for people.
struct Answer {
    json: Value,
    total: usize,
    summary: String,
    skipped: Option<String>,
}

impl Answer {
    /// `total` results of which `shown` are in `body`; says what is left out and how to get it.
    fn new(search: &Search, body: Value, (total, shown): (usize, usize), window: &Window, summary: String) -> Self {
        let mut json = json!({ "total_count": total });
        if let (Some(json), Value::Object(body)) = (json.as_object_mut(), body) {
            json.extend(body);
        }
        let end = window.offset.saturating_add(shown);
        let timed_out = search.stop.is_late();
        json["truncated"] = json!(end < total || timed_out);
        if end < total && shown > 0 {
            json["next_offset"] = json!(end);
            json["hint"] = json!(format!(
                "showing {}-{} of {}; continue with offset {end}",
                grouped((window.offset + 1) as u64),
                grouped(end as u64),
                grouped(total as u64)
            ));
        } else if total > 0 && shown == 0 {
            json["hint"] = json!(format!("offset {} is past the end: {} in all", window.offset, grouped(total as u64)));
        }
        if timed_out {
            json["limit_reason"] = json!("search_timeout");
        }
        let skipped = if total == 0 { search.skipped() } else { None };
        Self { json, total, summary, skipped }
    }

    /// Says what was not, or not wholly, searched.
    fn with_omitted(mut self, found: &Found) -> Self {
        for (key, count) in [("binary_files", found.binary), ("unreadable_files", found.unreadable)] {
            if count > 0 {
                self.json["_omitted"][key] = json!(count);
            }
        }
        self
    }
}

fn named(search: &Search, window: &Window, cwd: &std::path::Path) -> Answer {
    let all = search.names();
    let page: Vec<String> =
        all.iter().skip(window.offset).take(window.limit).map(|path| shown_path(path, cwd)).collect();
    let counts = (all.len(), page.len());
    Answer::new(search, json!({ "files": page }), counts, window, plural(all.len(), "file"))
}

fn files(search: &Search, found: &Found, window: &Window, cwd: &std::path::Path) -> Answer {
    let page: Vec<String> =
        found.files.iter().skip(window.offset).take(window.limit).map(|(path, _)| shown_path(path, cwd)).collect();
    let counts = (found.files.len(), page.len());
    Answer::new(search, json!({ "files": page }), counts, window, in_words(found))
}

fn counts(search: &Search, found: &Found, window: &Window, cwd: &std::path::Path) -> Answer {
    let page: JsonMap = found
        .files
        .iter()
        .skip(window.offset)
        .take(window.limit)
        .map(|(path, count)| (shown_path(path, cwd), json!(count)))
        .collect();
    let (shown, files) = (page.len(), found.files.len());
    let mut answer = Answer::new(search, json!({ "counts": page }), (files, shown), window, in_words(found));
    // The total counts lines, the window counts files.
    answer.json["total_count"] = json!(found.total());
    answer
}

fn lines(
    search: &Search,
    matcher: &grep_regex::RegexMatcher,
    found: &Found,
    window: &Window,
    cwd: &std::path::Path,
) -> Answer {
    let rows = search.rows(matcher, found, window.offset, window.limit, window.context);
    let matches = rows.iter().filter(|row| row.is_match).count();
    let body = if rows.len() < GROUPED_FROM {
        json!({ "matches": rows.iter().map(|row| as_object(row, cwd)).collect::<Vec<_>>() })
    } else {
        json!({
            "matches_format": if window.context > 0 {
                "path, then below it `LINE: text` for a match and `LINE- text` for a line around it"
            } else {
                "path, then below it `LINE: text`"
            },
            "matches_text": as_text(&rows, cwd),
        })
    };
    Answer::new(search, body, (found.total(), matches), window, in_words(found))
}

fn as_object(row: &Row, cwd: &std::path::Path) -> Value {
    let mut object = json!({ "path": shown_path(&row.path, cwd), "line": row.line, "content": row.text });
    if !row.is_match {
        object["context"] = json!(true);
    }
    object
}

fn as_text(rows: &[Row], cwd: &std::path::Path) -> String {
    let mut out = String::new();
    let mut current = None;
    for row in rows {
        if current != Some(&row.path) {
            out += &shown_path(&row.path, cwd);
            out.push('\n');
            current = Some(&row.path);
        }
        let sign = if row.is_match { ':' } else { '-' };
        out += format!("  {}{sign} {}", row.line, row.text).trim_end();
        out.push('\n');
    }
    out
}

fn in_words(found: &Found) -> String {
    match found.files.len() {
        0 => "0 matches".into(),
        files => format!("{} in {}", plural(found.total(), "match"), plural(files, "file")),
    }
}
