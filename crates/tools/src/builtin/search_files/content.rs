//! Lines in the files of our own disk.
//!
//! The tricky idea: the order is fixed and the totals are true, although many threads search. One thread walks in the
//! order of the paths and hands out batches; the others count; what counts is only the unbroken beginning of the batches
//! that are done. When the page that was asked for is full, counting goes on for a fixed number of files and then stops,
//! with "at least": a common word in a huge tree is answered at once, and two runs answer the same bytes. A second pass
//! fetches the rows of the page.
//!
//! A file is searched in a few pieces of memory however large it is. A binary one is looked through up to
//! [`LARGEST_BINARY`], and only named.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use grep_matcher::Matcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};

use super::pattern::{Engine, Pattern};
use super::rows::{Row, blocks, breaks_in, of_page};
use super::walk::{Scope, Walker, open_regular};
use crate::support::discretion::{PART_OF_A_KEY, is_of_a_key, private_lines};

/// A larger file is only searched if it is named.
const LARGEST_FILE: u64 = 1024 * 1024 * 1024;
/// So much of a binary file is looked through.
const LARGEST_BINARY: u64 = 8 * 1024 * 1024;
/// So much of a file is held in memory: a longer line, or across lines a larger file, is not searched.
const MOST_MEMORY: usize = 64 * 1024 * 1024;
/// From this many bytes of a file on it is looked before each piece whether the search is to end.
const BYTES_A_LOOK: u64 = 1024 * 1024;
/// How many files are still counted when the page is full.
const FILES_AFTER_PAGE: usize = 1_000;
/// Files that a thread takes at once, and how many such batches wait.
const BATCH: usize = 32;
const WAITING: usize = 16;
/// What a line takes in an answer, whatever its text.
const LEAST_ROW: usize = 8;
/// More threads than this do not make a disk faster.
const MOST_THREADS: usize = 12;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Matching lines.
    Lines,
    /// Files with a match.
    Files,
}

/// What was found, without the lines themselves.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Files with matches, below the root and sorted, with the number of matching lines of each (1 where files are
    /// counted).
    pub(super) files: Vec<(PathBuf, usize)>,
    /// Binary files with a match; not among `files`.
    pub(super) binary: Vec<PathBuf>,
    /// Files that were searched, whatever was in them.
    pub(super) searched: usize,
    pub(super) omitted: Omitted,
    /// There may be more: the search ended before all files were searched.
    pub(super) is_partial: bool,
    /// Why, where that was no choice of this search.
    pub(super) limit: Option<&'static str>,
}

impl Found {
    pub(super) fn total(&self) -> usize {
        self.files.iter().map(|(_, count)| count).sum()
    }

    /// Takes what became of a file at this path below the root.
    fn take(&mut self, path: &Path, looked: Looked) {
        self.searched += usize::from(matches!(looked, Looked::Text(_) | Looked::Binary));
        match looked {
            Looked::Text(0) | Looked::Gone => {}
            Looked::Text(count) => self.files.push((path.to_path_buf(), count)),
            Looked::Binary => self.binary.push(path.to_path_buf()),
            Looked::LargeBinary => self.omitted.binary += 1,
            Looked::TooLarge => self.omitted.too_large += 1,
            Looked::Unreadable => self.omitted.unreadable += 1,
            Looked::Protected => self.omitted.protected += 1,
        }
    }
}

/// Files that were not, or not wholly, searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Omitted {
    /// Binary ones, of which only the beginning was.
    pub(super) binary: usize,
    pub(super) too_large: usize,
    /// Files and folders.
    pub(super) unreadable: usize,
    /// Their content is not for the model.
    pub(super) protected: usize,
}

/// What one file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// Text with so many matches; also a binary file without any.
    Text(usize),
    /// A binary file with a match.
    Binary,
    LargeBinary,
    TooLarge,
    Unreadable,
    Protected,
    /// It is no regular file any more.
    Gone,
}

/// Counts the matches of every file. With `enough`, counting may stop some files after so many units.
pub(super) fn count(scope: &Scope, pattern: &Pattern, unit: Unit, enough: Option<usize>) -> Found {
    match &pattern.engine {
        Engine::Rust(matcher) => count_with(scope, matcher, pattern.reading.multiline, unit, enough),
        #[cfg(feature = "pcre2")]
        Engine::Pcre2(matcher) => count_with(scope, matcher, pattern.reading.multiline, unit, enough),
    }
}

/// Which lines are fetched.
pub(super) struct Window {
    /// The numbers of their matches, from 0.
    pub(super) matches: Range<usize>,
    /// Lines around each.
    pub(super) context: usize,
    /// Bytes after which it is enough, whatever the numbers say.
    pub(super) most: usize,
}

/// The lines of a page, in order.
pub(super) fn rows(scope: &Scope, pattern: &Pattern, found: &Found, window: &Window) -> Vec<Row> {
    match &pattern.engine {
        Engine::Rust(matcher) => rows_with(scope, matcher, pattern, found, window),
        #[cfg(feature = "pcre2")]
        Engine::Pcre2(matcher) => rows_with(scope, matcher, pattern, found, window),
    }
}

fn count_with<M: Matcher + Clone + Send + Sync>(
    scope: &Scope,
    matcher: &M,
    multiline: bool,
    unit: Unit,
    enough: Option<usize>,
) -> Found {
    let walker = Walker::new(scope);
    let state = Mutex::new(State { enough, ..State::default() });
    let tally = Tally { scope, state, is_done: AtomicBool::new(false), unit };
    let threads = if scope.is_file { 1 } else { std::thread::available_parallelism().map_or(1, NonZero::get) };
    let (send, receive) = mpsc::sync_channel::<(usize, Vec<PathBuf>)>(WAITING);
    let receive = Mutex::new(receive);
    std::thread::scope(|threads_of_search| {
        for _ in 0..threads.min(MOST_THREADS) {
            threads_of_search.spawn(|| {
                let mut worker = Worker { searcher: searcher(0, multiline, false), matcher: matcher.clone(), scope, unit };
                loop {
                    let batch = lock(&receive).recv();
                    let Ok((number, paths)) = batch else { break };
                    if tally.is_done.load(Ordering::Relaxed) {
                        continue;
                    }
                    let is_late = scope.stop.is_late();
                    let looked = paths.into_iter().map(|path| {
                        let looked = if is_late { None } else { worker.look(&path) };
                        (path, looked)
                    });
                    tally.add(number, looked.collect());
                }
            });
        }
        let (mut number, mut batch) = (0, Vec::with_capacity(BATCH));
        for path in walker.in_order() {
            batch.push(path);
            if batch.len() == BATCH {
                if tally.is_done.load(Ordering::Relaxed) {
                    break;
                }
                let _ = send.send((number, std::mem::take(&mut batch)));
                number += 1;
            }
        }
        let _ = send.send((number, batch));
        drop(send);
    });
    let state = tally.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut found = state.found;
    if walker.is_cut() || state.is_cut {
        found.is_partial = true;
        found.limit = Some(scope.stop.reason());
    }
    found.omitted.unreadable += walker.unreadable();
    found
}

/// The unbroken beginning of what is done, and the batches that wait for an earlier one.
struct Tally<'a> {
    scope: &'a Scope,
    state: Mutex<State>,
    /// Nothing that comes now would count.
    is_done: AtomicBool,
    unit: Unit,
}

#[derive(Default)]
struct State {
    enough: Option<usize>,
    found: Found,
    units: usize,
    waiting: BTreeMap<usize, Vec<(PathBuf, Option<Looked>)>>,
    next: usize,
    /// Files so far, and how many of them count.
    files: usize,
    last: Option<usize>,
    /// A file was not reached in time.
    is_cut: bool,
}

impl Tally<'_> {
    /// Takes what became of a batch; `None` for a file that was not reached in time.
    fn add(&self, number: usize, batch: Vec<(PathBuf, Option<Looked>)>) {
        let mut state = lock(&self.state);
        state.waiting.insert(number, batch);
        while let Some(batch) = { let next = state.next; state.waiting.remove(&next) } {
            state.next += 1;
            for (path, looked) in batch {
                if self.is_done.load(Ordering::Relaxed) {
                    return;
                }
                if state.last.is_some_and(|last| state.files >= last) || looked.is_none() {
                    state.found.is_partial = true;
                    state.is_cut = looked.is_none();
                    self.is_done.store(true, Ordering::Relaxed);
                    return;
                }
                let Some(looked) = looked else { return };
                state.files += 1;
                state.units += match (looked, self.unit) {
                    (Looked::Text(count), Unit::Lines) => count,
                    (Looked::Text(1..), Unit::Files) => 1,
                    _ => 0,
                };
                state.found.take(self.scope.below(&path), looked);
                if state.last.is_none() && state.enough.is_some_and(|enough| state.units >= enough) {
                    state.last = Some(state.files + FILES_AFTER_PAGE);
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn searcher(context: usize, multiline: bool, numbers: bool) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(grep_matcher::LineTerminator::crlf())
        // A binary file goes on in lines that end where its zeros are.
        .binary_detection(BinaryDetection::convert(0))
        .heap_limit(Some(MOST_MEMORY))
        .multi_line(multiline)
        .line_number(numbers)
        .before_context(context)
        .after_context(context)
        .build()
}

/// What one thread needs to search files one after the other.
struct Worker<'a, M> {
    searcher: Searcher,
    matcher: M,
    scope: &'a Scope,
    unit: Unit,
}

impl<M: Matcher> Worker<'_, M> {
    /// Counts the matches of one file; `None` if the search ended first.
    fn look(&mut self, path: &Path) -> Option<Looked> {
        // Asked before anything is known of the content, so that the answer says nothing about it.
        if self.scope.withholds(path) {
            return Some(Looked::Protected);
        }
        let (file, len) = match open_regular(path) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Some(Looked::Gone),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Looked::Gone),
            Err(_) => return Some(Looked::Unreadable),
        };
        if len > LARGEST_FILE && !self.scope.is_file {
            return Some(Looked::TooLarge);
        }
        let facts = Facts::default();
        let reader = Bounded { file, scope: self.scope, facts: &facts };
        let mut counter = Counter { matcher: &self.matcher, facts: &facts, unit: self.unit, matches: 0 };
        let searched = self.searcher.search_reader(&self.matcher, reader, &mut counter);
        let matches = counter.matches;
        Some(match (searched, facts.end.get()) {
            (_, Some(End::Stopped)) => return None,
            (_, Some(End::LargeBinary)) if matches == 0 => Looked::LargeBinary,
            (Ok(()) | Err(_), _) if facts.is_binary.get() && matches > 0 => Looked::Binary,
            (Ok(()), _) => Looked::Text(matches),
            // The searcher has no kind of its own for the limit of its memory.
            (Err(error), _) if error.to_string().contains("allocation limit") => Looked::TooLarge,
            (Err(_), _) => Looked::Unreadable,
        })
    }
}

/// What is found out about a file while it is read.
#[derive(Default)]
struct Facts {
    is_binary: Cell<bool>,
    read: Cell<u64>,
    end: Cell<Option<End>>,
}

/// Why reading ended before the file did.
#[derive(Clone, Copy)]
enum End {
    Stopped,
    LargeBinary,
}

/// A file that ends early where the search does.
struct Bounded<'a> {
    file: File,
    scope: &'a Scope,
    facts: &'a Facts,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let facts = self.facts;
        // Small files are many: between them it was looked already.
        let end = if facts.read.get() >= BYTES_A_LOOK && self.scope.stop.is_late() {
            Some(End::Stopped)
        } else if facts.is_binary.get() && facts.read.get() > LARGEST_BINARY {
            Some(End::LargeBinary)
        } else {
            None
        };
        if end.is_some() {
            facts.end.set(end);
            return Err(io::Error::other("the search ends here"));
        }
        let read = self.file.read(buffer)?;
        facts.read.set(facts.read.get() + read as u64);
        Ok(read)
    }
}

/// Counts the matches of one file.
struct Counter<'a, M> {
    matcher: &'a M,
    facts: &'a Facts,
    unit: Unit,
    matches: usize,
}

impl<M: Matcher> Sink for &mut Counter<'_, M> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.matches += if searcher.multi_line_with_matcher(self.matcher) {
            blocks(self.matcher, found.buffer(), found.bytes_range_in_buffer()).len()
        } else {
            1
        };
        if self.unit == Unit::Files {
            self.matches = self.matches.min(1);
        }
        Ok(self.unit == Unit::Lines && !self.facts.is_binary.get())
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.facts.is_binary.set(true);
        // What matched before the first zero is enough to name the file.
        Ok(self.matches == 0)
    }
}

fn rows_with<M: Matcher>(
    scope: &Scope,
    matcher: &M,
    pattern: &Pattern,
    found: &Found,
    window: &Window,
) -> Vec<Row> {
    let Window { matches, context, most } = window;
    let mut rows = Vec::new();
    let mut before = 0;
    let mut room = *most;
    let mut searcher = searcher(*context, pattern.reading.multiline, true);
    for (path, count) in &found.files {
        let here = matches.start.saturating_sub(before)..matches.end.saturating_sub(before).min(*count);
        if !here.is_empty()
            && let Ok(Some((file, _))) = open_regular(&scope.real(path))
        {
            let facts = Facts::default();
            let mut sink = Collect { path, matcher, pattern, window: &here, seen: 0, rows: Vec::new(), room };
            let _ = searcher.search_reader(matcher, Bounded { file, scope, facts: &facts }, &mut sink);
            // Of the matches, only those of the window were kept.
            room = sink.room;
            let mut found = of_page(sink.rows, &(0..here.len()), *context as u64);
            if scope.is_for_a_model {
                hide_private_keys(&mut found, &scope.real(path));
            }
            rows.extend(found);
        }
        before += count;
        if before >= matches.end || room == 0 || scope.stop.is_late() {
            break;
        }
    }
    rows
}

/// Hides rows that are lines of a private key: without its first line nobody could tell that they are.
fn hide_private_keys(rows: &mut [Row], path: &Path) {
    /// Files with keys in them are small.
    const MOST: u64 = 256 * 1024;
    let is_code = |row: &Row| row.text.trim().len() >= 8 && is_of_a_key(row.text.trim().as_bytes());
    if !rows.iter().any(is_code) {
        return;
    }
    let Ok(Some((file, size))) = open_regular(path) else { return };
    let mut content = Vec::new();
    if size > MOST || file.take(MOST).read_to_end(&mut content).is_err() {
        return;
    }
    let keys = private_lines(&content);
    for row in rows.iter_mut().filter(|row| is_code(row) && keys.iter().any(|key| key.contains(&row.line))) {
        row.text = PART_OF_A_KEY.to_owned();
    }
}

/// Collects the matches of one file that lie in the window, and the lines around them.
struct Collect<'a, M> {
    path: &'a Path,
    matcher: &'a M,
    pattern: &'a Pattern,
    window: &'a Range<usize>,
    /// Matches seen so far.
    seen: usize,
    rows: Vec<Row>,
    /// Bytes that are still wanted.
    room: usize,
}

impl<M: Matcher> Collect<'_, M> {
    fn keep(&mut self, line: u64, bytes: &[u8], at: usize, is_match: bool) {
        let row = Row::new(self.path.to_path_buf(), line, bytes, at, is_match);
        self.room = self.room.saturating_sub(row.text.len() + LEAST_ROW);
        self.rows.push(row);
    }

    fn hit(&mut self, line: u64, bytes: &[u8], at: impl FnOnce() -> usize) {
        if self.window.contains(&self.seen) {
            self.keep(line, bytes, at(), true);
        }
        self.seen += 1;
    }
}

impl<M: Matcher> Sink for &mut Collect<'_, M> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let line = found.line_number().unwrap_or(0);
        if searcher.multi_line_with_matcher(self.matcher) {
            let (buffer, range) = (found.buffer(), found.bytes_range_in_buffer());
            let (mut at, mut line) = (range.start, line);
            for (lines, begins) in blocks(self.matcher, buffer, range) {
                line += breaks_in(&buffer[at..lines.start]);
                at = lines.start;
                self.hit(line, &buffer[lines], || begins);
            }
        } else {
            let (bytes, pattern) = (found.bytes(), self.pattern);
            self.hit(line, bytes, || pattern.find(bytes).map_or(0, |found| found.start));
        }
        // One more than the window is needed to know where its context ends.
        Ok(self.seen <= self.window.end && self.room > 0)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        // Lines before the first match of the window arrive when that match is the next one.
        let is_before = *context.kind() == SinkContextKind::Before && self.window.contains(&self.seen);
        let is_after = self.seen >= self.window.start && self.seen <= self.window.end;
        if is_before || is_after {
            self.keep(context.line_number().unwrap_or(0), context.bytes(), 0, false);
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> Result<(), io::Error> {
        Ok(())
    }
}
