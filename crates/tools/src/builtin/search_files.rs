//! `search_files`: lines or names below a folder, found with ripgrep's own libraries inside this process, or, where the
//! files are on another machine, by the programs that are there.
//!
//! The tricky idea: what is said is true at any size. Totals are exact, or say "at least"; a page that does not fit says
//! where the next begins; nothing found says what was not looked at. A pattern is never an option and never a shell word.
//!
//! It refuses to look into files whose content is not for the model: the judge of calls is asked about each of them
//! before it is opened, so that not even the number of matches says anything about them.
//!
//! Where to start reading: [`search_files`]; then `search_files/pattern.rs`, `walk.rs`, `content.rs`, `answer.rs`, and
//! `remote.rs` for the files of others.

mod answer;
mod content;
mod pattern;
mod remote;
mod rows;
mod walk;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hermes_core::{CancellationToken, FileErrorKind, FileKind, plural};

use self::answer::{Answer, Page, Reach, in_words};
use self::content::{Found, Omitted, Unit, Window};
use self::pattern::{Glob, Pattern, Reading, looks_like_a_regex};
use self::walk::{Scope, Skipped, Stop, Walker};
use crate::prelude::*;
use crate::support::paths::{similar, stated};
use crate::support::text::file_error;

/// A search that takes longer answers what it has (spec tools §7.2).
const PATIENCE: i64 = 60;
/// The longest that a call may ask for.
const LONGEST_PATIENCE: i64 = 240;
/// When the time is over, the lines of what was found so far may take this.
const FOR_THE_LINES: Duration = Duration::from_secs(2);
/// Lines around a match that can be asked for.
const MOST_CONTEXT: i64 = 50;

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
    /// Search only files whose name (or path below the folder, if it contains `/`) matches this glob; `!*.md` leaves out.
    file_glob: Option<String>,
    /// How many results to show; 50 if left out.
    limit: Option<i64>,
    /// How many results to skip.
    offset: Option<i64>,
    /// `content` shows the lines (default), `files_only` the files, `count` the number of matching lines per file.
    output_mode: Option<OutputMode>,
    /// Lines to show before and after each match, at most 50.
    context: Option<i64>,
    /// Take upper and lower case as equal.
    ignore_case: Option<bool>,
    /// Take the pattern as plain text, not as a regular expression.
    literal: Option<bool>,
    /// Let a match go across lines (`a\nb`, `(?s)a.*b`).
    multiline: Option<bool>,
    /// Search hidden files and folders (`.github`), too.
    include_hidden: Option<bool>,
    /// Search files that .gitignore or .ignore leave out, too.
    include_ignored: Option<bool>,
    /// Seconds after which the search answers what it has; 60 if left out, at most 240.
    timeout: Option<i64>,
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
             skipped, but a path that is named is always searched. Files are listed last changed first. Totals are \
             exact unless marked as a minimum.",
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
        .example(r#"{"pattern": "T.O", "ignore_case": true}"#, gives(r#"{"total_count": 1}"#))
        .example(r#"{"pattern": "nothing like it"}"#, gives(r#"{"total_count": 0, "truncated": false}"#))
        .example(r#"{"pattern": ""}"#, fails("the pattern is empty"))
        .example(r#"{"pattern": "("}"#, fails("not a regular expression"))
        .example(r#"{"pattern": "x", "path": "note.txt"}"#, fails("no such file"))
}

/// What is looked for.
enum Wanted {
    Names,
    Lines(Pattern, OutputMode),
}

async fn search_files(args: Args, cx: ToolCx) -> ToolResult {
    let refused = |why: String| ToolError::tell(format!("search_files: {why}")).with("total_count", 0);
    if args.pattern.is_empty() {
        return Err(refused("the pattern is empty, which would match everything; say what to look for".into()));
    }
    let ignore_case = args.ignore_case.unwrap_or(false);
    let names = args.target == Some(Target::Files);
    let wanted = if names {
        Wanted::Names
    } else {
        let (literal, multiline) = (args.literal.unwrap_or(false), args.multiline.unwrap_or(false));
        let pattern = Pattern::new(&args.pattern, Reading { ignore_case, literal, multiline }).map_err(refused)?;
        Wanted::Lines(pattern, args.output_mode.unwrap_or(OutputMode::Content))
    };
    let name_glob = names.then(|| Glob::names(&args.pattern, ignore_case));
    let filter = args.file_glob.as_deref().filter(|glob| !glob.is_empty()).map(|glob| Glob::filter(glob, false));
    let globs = name_glob.into_iter().chain(filter).collect::<Result<Vec<_>, _>>().map_err(refused)?;

    let scope = match scope(&args, &cx, globs).await {
        Ok(scope) => scope,
        Err(error) => return Err(error.with("total_count", 0)),
    };
    if !names && scope.is_file && scope.withholds(&scope.real) {
        let why = cx.judge.as_ref().and_then(|judge| judge.withholds(&scope.root, &scope.real));
        return Err(refused(why.unwrap_or_default()));
    }
    let cwd = cx.environment.cwd();
    let whole = |number: Option<i64>, default: usize| number.map_or(default, |n| usize::try_from(n).unwrap_or(0));
    let (offset, limit) = (whole(args.offset, 0), whole(args.limit, 50).max(1));
    let context = whole(args.context.map(|lines| lines.min(MOST_CONTEXT)), 0);
    let room = cx.limits.result_chars;
    let page = |scope| Page { scope, cwd: &cwd, offset, limit, context, room };

    let became_multiline = matches!(&wanted, Wanted::Lines(pattern, _) if pattern.became_multiline);
    let mut answer = if cx.environment.shares_our_files() {
        let page = page(&scope);
        let (scope, cwd) = (scope.clone(), cwd.clone());
        let (offset, limit, context, room) = (page.offset, page.limit, page.context, page.room);
        let work = move || here(&Page { scope: &scope, cwd: &cwd, offset, limit, context, room }, &wanted);
        tokio::task::spawn_blocking(work).await.map_err(|error| refused(error.to_string()))?
    } else {
        remote::search(&cx, &page(&scope), &wanted).await.map_err(refused)?
    };
    if became_multiline {
        answer.hint("the pattern holds a line break, so it was searched across lines");
    }
    if names && answer.total == 0 && looks_like_a_regex(&args.pattern) {
        answer.hint("the pattern looks like a regular expression, but names are found by globs, such as `src/{a,b}*.rs`");
    }
    Ok(ToolOutput::json(answer.json).with_summary(answer.summary))
}

/// Where the call wants to search, if that can be searched.
async fn scope(args: &Args, cx: &ToolCx, globs: Vec<Glob>) -> Result<Scope, ToolError> {
    let root = stated(cx, "search_files", args.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("."))?;
    let stat = match cx.environment.stat(&root).await {
        Ok(stat) => stat,
        Err(error) => {
            let nearby = if error.kind == FileErrorKind::NotFound { similar(cx, &root).await } else { Vec::new() };
            let failed = file_error("search_files", &error);
            if nearby.is_empty() {
                return Err(failed);
            }
            let text = format!("{failed}; there is {}", nearby.join(", "));
            return Err(ToolError::tell(text).with("similar_files", nearby));
        }
    };
    if !matches!(stat.kind, FileKind::File | FileKind::Directory) {
        let what = stat.kind.in_words();
        let text = format!("search_files: {} is {what}, which cannot be searched", root.display());
        return Err(ToolError::tell(text));
    }
    let real = cx.environment.real_path(&root).await.map_err(|error| file_error("search_files", &error))?;
    let patience = args.timeout.unwrap_or(PATIENCE).clamp(1, LONGEST_PATIENCE);
    let patience = Duration::from_secs(u64::try_from(patience).unwrap_or(1));
    Ok(Scope {
        is_named: !cx.environment.cwd().starts_with(&root),
        root,
        real,
        is_file: stat.kind == FileKind::File,
        globs,
        with_hidden: args.include_hidden.unwrap_or(false),
        with_ignored: args.include_ignored.unwrap_or(false),
        judge: cx.judge.clone(),
        is_for_a_model: cx.segment.is_some(),
        stop: Stop { deadline: Instant::now() + patience, cancel: cx.cancel.clone() },
    })
}

/// Searches our own disk. Blocks.
fn here(page: &Page<'_>, wanted: &Wanted) -> Answer {
    let scope = page.scope;
    let (pattern, mode) = match wanted {
        Wanted::Names => {
            let walker = Walker::new(scope);
            let mut files = walker.names();
            let is_late = walker.is_cut();
            let limit = is_late.then(|| scope.stop.reason());
            let reach = Reach { is_partial: is_late, limit, searched: files.len() };
            let omitted = Omitted { unreadable: walker.unreadable(), ..Omitted::default() };
            return named(page, &mut files, reach, omitted, || walker.skipped());
        }
        Wanted::Lines(pattern, mode) => (pattern, *mode),
    };
    let (unit, enough) = match mode {
        OutputMode::Content => (Unit::Lines, Some(page.offset.saturating_add(page.limit))),
        OutputMode::FilesOnly => (Unit::Files, Some(page.offset.saturating_add(page.limit))),
        OutputMode::Count => (Unit::Lines, None),
    };
    let found = content::count(scope, pattern, unit, enough);
    let lines = |page: &Page<'_>| {
        // The lines are fetched also when the time is over, or there would be none to show.
        let stop = Stop { deadline: Instant::now() + FOR_THE_LINES, cancel: CancellationToken::new() };
        let scope = Scope { stop, ..scope.clone() };
        let matches = page.offset..page.offset.saturating_add(page.limit);
        // A character has at most four bytes: what is beyond this does not fit.
        content::rows(&scope, pattern, &found, &Window { matches, context: page.context, most: page.room * 4 })
    };
    let rows = if mode == OutputMode::Content { lines(page) } else { Vec::new() };
    matched(page, mode, &found, rows, || Walker::new(scope).skipped())
}

/// The answer to a search for names: `files` with the time of their last change, latest first.
fn named(
    page: &Page<'_>,
    files: &mut Vec<(std::time::SystemTime, PathBuf)>,
    reach: Reach,
    omitted: Omitted,
    skipped: impl FnOnce() -> Skipped,
) -> Answer {
    files.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let files: Vec<PathBuf> = files.drain(..).map(|(_, path)| path).collect();
    let answer = page.files(&files, reach, &plural(files.len(), "file")).with_omitted(omitted);
    if files.is_empty() {
        let place = answer::place(page.scope, page.cwd);
        return answer.with_zero(&place, None, skipped(), omitted);
    }
    answer
}

/// The answer to a search for lines.
fn matched(
    page: &Page<'_>,
    mode: OutputMode,
    found: &Found,
    rows: Vec<rows::Row>,
    skipped: impl FnOnce() -> Skipped,
) -> Answer {
    let answer = match mode {
        OutputMode::Content => page.lines(found, rows),
        OutputMode::FilesOnly => {
            let files: Vec<PathBuf> = found.files.iter().map(|(path, _)| path.clone()).collect();
            page.files(&files, Reach::of(found), &files_in_words(found))
        }
        OutputMode::Count => page.counts(found),
    };
    let answer = answer.with_binary(page, &found.binary).with_omitted(found.omitted);
    if answer.total == 0 {
        let place = answer::place(page.scope, page.cwd);
        return answer.with_zero(&place, Some(found.searched), skipped(), found.omitted);
    }
    answer
}

fn files_in_words(found: &Found) -> String {
    if found.files.is_empty() { in_words(found) } else { plural(found.files.len(), "file") }
}
