//! Walking and matching.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use hermes_core::CancellationToken;
use ignore::{DirEntry, WalkBuilder, WalkState};

/// Characters of a line that are shown, around the match (spec tools §7.3).
const LINE_CHARS: usize = 500;
/// Bytes that a compiled pattern may take; ordinary ones take thousands.
const LARGEST_REGEX: usize = 10 * 1024 * 1024;
/// How many skipped files are counted before the answer is "at least".
const MOST_SKIPPED: usize = 10_000;

/// Where to search and when to give up.
pub(super) struct Search {
    pub(super) root: PathBuf,
    /// All of them have to match.
    pub(super) globs: Vec<Glob>,
    pub(super) stop: Stop,
}

/// When a search ends early.
pub(super) struct Stop {
    pub(super) deadline: Instant,
    pub(super) cancel: CancellationToken,
}

impl Stop {
    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.deadline || self.cancel.is_cancelled()
    }
}

/// The files with matches, sorted by path, with the number of matching lines of each.
pub(super) struct Found {
    pub(super) files: Vec<(PathBuf, usize)>,
    /// Files that are not text, of which only what precedes the first NUL byte was searched.
    pub(super) binary: usize,
    /// Files that could not be read.
    pub(super) unreadable: usize,
}

impl Found {
    pub(super) fn total(&self) -> usize {
        self.files.iter().map(|(_, count)| count).sum()
    }
}

/// One line of the answer.
pub(super) struct Row {
    pub(super) path: PathBuf,
    pub(super) line: u64,
    pub(super) text: String,
    pub(super) is_match: bool,
}

/// A compiled file glob.
pub(super) struct Glob {
    matcher: GlobMatcher,
    /// Matched against the path below the root (or the whole path) instead of the name.
    on: MatchOn,
}

#[derive(Clone, Copy)]
enum MatchOn {
    Name,
    PathBelowRoot,
    WholePath,
}

/// Compiles `pattern`: one with a `/` is about the path below the root, one without is about the name.
pub(super) fn glob(pattern: &str) -> Result<Glob, String> {
    let on = match pattern {
        pattern if pattern.starts_with('/') => MatchOn::WholePath,
        pattern if pattern.contains('/') => MatchOn::PathBelowRoot,
        _ => MatchOn::Name,
    };
    let pattern = match on {
        MatchOn::PathBelowRoot => pattern.strip_prefix("./").unwrap_or(pattern),
        MatchOn::Name | MatchOn::WholePath => pattern,
    };
    let built = GlobBuilder::new(pattern).literal_separator(true).build();
    let built = built.map_err(|error| format!("`{pattern}` is not a glob: {}", error.kind()))?;
    Ok(Glob { matcher: built.compile_matcher(), on })
}

/// A word without any glob character finds the names that contain it.
pub(super) fn name_glob(pattern: &str) -> String {
    if pattern.contains(['*', '?', '[', '{', '/']) {
        pattern.to_owned()
    } else {
        format!("*{}*", globset::escape(pattern))
    }
}

/// Compiles a regular expression that matches within a line.
pub(super) fn matcher(pattern: &str) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.line_terminator(Some(b'\n')).size_limit(LARGEST_REGEX).dfa_size_limit(LARGEST_REGEX);
    let built = builder.build(pattern);
    built.map_err(|error| {
        let text = error.to_string();
        // The engine draws a picture of the place; its last line is the sentence.
        let why = text.lines().rev().find_map(|line| line.trim().strip_prefix("error: ")).unwrap_or(text.trim());
        format!("`{pattern}` is not a regular expression for lines: {}", why.replace('\n', " "))
    })
}

impl Search {
    fn accepts(&self, entry: &DirEntry) -> bool {
        let path = entry.path();
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        is_file
            && self.globs.iter().all(|glob| match glob.on {
                MatchOn::Name => glob.matcher.is_match(entry.file_name()),
                MatchOn::PathBelowRoot => path.strip_prefix(&self.root).is_ok_and(|below| glob.matcher.is_match(below)),
                MatchOn::WholePath => glob.matcher.is_match(path),
            })
    }

    fn walk(&self) -> WalkBuilder {
        let mut walk = WalkBuilder::new(&self.root);
        // .gitignore counts whether or not the folder is a repository.
        walk.require_git(false);
        walk
    }

    /// Visits every accepted file, on several threads.
    fn visit<T: Send>(&self, look: impl Fn(&DirEntry) -> Option<T> + Sync) -> Vec<T> {
        let found = Mutex::new(Vec::new());
        self.walk().build_parallel().run(|| {
            Box::new(|entry| {
                if self.stop.is_late() {
                    return WalkState::Quit;
                }
                // A folder that may not be read is skipped, as ripgrep does.
                if let Ok(entry) = entry
                    && self.accepts(&entry)
                    && let Some(seen) = look(&entry)
                {
                    found.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
                }
                WalkState::Continue
            })
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the matching lines of every file.
    pub(super) fn count(&self, matcher: &RegexMatcher) -> Found {
        let (binary, unreadable) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut files = self.visit(|entry| {
            let mut counter = Counter::default();
            if searcher(0).search_path(matcher, entry.path(), &mut counter).is_err() {
                unreadable.fetch_add(1, Ordering::Relaxed);
            }
            if counter.is_binary {
                binary.fetch_add(1, Ordering::Relaxed);
            }
            (counter.matches > 0).then(|| (entry.path().to_path_buf(), counter.matches))
        });
        files.sort();
        Found { files, binary: binary.into_inner(), unreadable: unreadable.into_inner() }
    }

    /// The names of all accepted files, last changed first.
    pub(super) fn names(&self) -> Vec<PathBuf> {
        let mut files = self.visit(|entry| {
            let modified = entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
            Some((modified.unwrap_or(SystemTime::UNIX_EPOCH), entry.path().to_path_buf()))
        });
        files.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        files.into_iter().map(|(_, path)| path).collect()
    }

    /// The matches from number `offset` on, `limit` of them, with `context` lines around each.
    pub(super) fn rows(
        &self,
        matcher: &RegexMatcher,
        found: &Found,
        offset: usize,
        limit: usize,
        context: usize,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut before = 0;
        let end = offset.saturating_add(limit);
        for (path, count) in &found.files {
            let window = offset.saturating_sub(before)..end.saturating_sub(before).min(*count);
            if !window.is_empty() {
                let mut sink = Collect { path, matcher, window, seen: 0, rows: &mut rows };
                let _ = searcher(context).search_path(matcher, path, &mut sink);
            }
            before += count;
            if before >= end || self.stop.is_late() {
                break;
            }
        }
        if context > 0 { without_repeats(rows) } else { rows }
    }

    /// How many files an empty result did not look at, in words.
    pub(super) fn skipped(&self) -> Option<String> {
        let looked_at: HashSet<PathBuf> = self.visit(|entry| Some(entry.path().to_path_buf())).into_iter().collect();
        let mut everything = self.walk();
        everything.standard_filters(false);
        let skipped = everything
            .build()
            .filter_map(Result::ok)
            .take_while(|_| !self.stop.is_late())
            .filter(|entry| self.accepts(entry) && !looked_at.contains(entry.path()))
            .take(MOST_SKIPPED)
            .count();
        match skipped {
            0 => None,
            1 => Some("; 1 hidden or ignored file was skipped".into()),
            MOST_SKIPPED => Some(format!("; at least {MOST_SKIPPED} hidden or ignored files were skipped")),
            some => Some(format!("; {some} hidden or ignored files were skipped")),
        }
    }
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .before_context(context)
        .after_context(context)
        .build()
}

/// Overlapping contexts give a line twice; as a match it counts more than as a line around one.
fn without_repeats(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| (&a.path, a.line, !a.is_match).cmp(&(&b.path, b.line, !b.is_match)));
    rows.dedup_by(|b, a| a.path == b.path && a.line == b.line);
    rows
}

/// Counts the matching lines of one file.
#[derive(Default)]
struct Counter {
    matches: usize,
    is_binary: bool,
}

impl Sink for &mut Counter {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, _: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.matches += 1;
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(true)
    }
}

/// Collects the matches of one file that lie in the window, and the lines around them.
struct Collect<'a> {
    path: &'a Path,
    matcher: &'a RegexMatcher,
    window: std::ops::Range<usize>,
    /// Matches seen so far.
    seen: usize,
    rows: &'a mut Vec<Row>,
}

impl Collect<'_> {
    fn keep(&mut self, line: Option<u64>, bytes: &[u8], is_match: bool) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let at = if is_match { self.matcher.find(bytes).ok().flatten().map_or(0, |found| found.start()) } else { 0 };
        let text = excerpt(bytes, at);
        self.rows.push(Row { path: self.path.to_path_buf(), line: line.unwrap_or(0), text, is_match });
    }
}

impl Sink for &mut Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let number = self.seen;
        self.seen += 1;
        if self.window.contains(&number) {
            self.keep(found.line_number(), found.bytes(), true);
        }
        Ok(self.seen <= self.window.end)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        // Lines before the first match of the window arrive when that match is the next one.
        let after = self.seen > self.window.start && self.seen <= self.window.end;
        let before = *context.kind() == grep_searcher::SinkContextKind::Before && self.window.contains(&self.seen);
        if before || after && *context.kind() == grep_searcher::SinkContextKind::After {
            self.keep(context.line_number(), context.bytes(), false);
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> Result<(), io::Error> {
        Ok(())
    }
}

/// At most [`LINE_CHARS`] characters of a line, with the match at byte `at` among them.
fn excerpt(line: &[u8], at: usize) -> String {
    let text = String::from_utf8_lossy(line);
    let total = text.chars().count();
    if total <= LINE_CHARS {
        return text.into_owned();
    }
    let match_at = String::from_utf8_lossy(&line[..at.min(line.len())]).chars().count();
    let start = match_at.saturating_sub(LINE_CHARS / 4).min(total - LINE_CHARS);
    let shown: String = text.chars().skip(start).take(LINE_CHARS).collect();
    let (left, right) = (if start > 0 { "…" } else { "" }, if start + LINE_CHARS < total { "…" } else { "" });
    format!("{left}{shown}{right}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excerpt_shows_the_match() {
        let line = format!("{}needle{}", "a".repeat(3_000), "b".repeat(3_000));
        let shown = excerpt(line.as_bytes(), 3_000);
        assert!(shown.contains("needle") && shown.chars().count() == LINE_CHARS + 2);
        assert_eq!(excerpt(b"short", 0), "short");
    }

    #[test]
    fn a_plain_word_is_part_of_a_name_and_a_glob_is_a_glob() {
        assert_eq!(name_glob("read"), "*read*");
        assert_eq!(name_glob("*.rs"), "*.rs");
        assert_eq!(name_glob("src/main.rs"), "src/main.rs");
    }
}
