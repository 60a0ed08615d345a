//! What a task last saw of each file, so that it does not write over a change it knows nothing about, and is not shown
//! the same lines twice.
//!
//! A file is known by its content, not by its time stamp: a change that kept the time is a change, and a file that was
//! only touched is not. A file that the task never read may be replaced; one that it read must still be what it read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use hermes_core::{FileKind, FileStat, FileVersion, Layout, LineFeed, ToolCx, ToolError, grouped};
use twox_hash::XxHash3_64;

/// What a model is told instead of lines that it has seen already.
pub(crate) const UNCHANGED: &str =
    "The file has not changed since these lines were shown to you; they are still above in this conversation.";

/// Files of more lines are compared as a whole only.
const MOST_LINES: usize = 100_000;
/// Layouts that are kept.
const MOST_LAYOUTS: usize = 64;
/// Windows of files that are remembered to have been shown.
const MOST_SHOWN: usize = 1_000;

/// The content of a file, in short. Two different contents have the same one by chance only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    bytes: u64,
    hash: u64,
    /// One number for each line, where there are not too many: what tells which lines have changed.
    lines: Option<Arc<[u32]>>,
}

impl Fingerprint {
    /// The fingerprint of a whole content.
    pub(crate) fn of(content: &[u8]) -> Self {
        let fingerprint = Self::from(&Layout::of(content, LineFeed::Byte));
        let lines = memchr::memchr_iter(b'\n', content).take(MOST_LINES + 1).count();
        Self { lines: (lines <= MOST_LINES).then(|| line_hashes(content)), ..fingerprint }
    }
}

impl From<&Layout> for Fingerprint {
    fn from(layout: &Layout) -> Self {
        Self { bytes: layout.len(), hash: layout.hash(), lines: None }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "half a hash is enough to see that a line is another one")]
fn line_hashes(content: &[u8]) -> Arc<[u32]> {
    content.split_inclusive(|byte| *byte == b'\n').map(|line| XxHash3_64::oneshot(line) as u32).collect()
}

#[derive(Default)]
struct Known(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    files: HashMap<PathBuf, Fingerprint>,
    /// What was shown of a file: by path, first line, and how many.
    shown: HashMap<(PathBuf, u64, u64), Shown>,
    layouts: HashMap<PathBuf, (FileVersion, LineFeed, Arc<Layout>)>,
    /// The last edit of a file that was not read since.
    edits: HashMap<PathBuf, LastEdit>,
}

/// The content of a file, and the part of the conversation that saw it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shown {
    segment: u64,
    hash: u64,
}

/// An edit that was made: what was asked for, what it left, and how often it was asked for again.
#[derive(Clone, Copy)]
struct LastEdit {
    asked: u64,
    left: u64,
    again: u32,
}

fn memory(known: &Known) -> MutexGuard<'_, Memory> {
    known.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers what the task has seen of a file.
pub(crate) async fn remember(cx: &ToolCx, path: &Path, fingerprint: Fingerprint) {
    memory(&cx.scratch.get::<Known>()).edits.remove(path);
    if let Ok(real) = cx.environment.real_path(path).await {
        learn(cx, &real, fingerprint);
    }
}

/// The same for a path that is known to be real.
pub(crate) fn learn(cx: &ToolCx, real: &Path, fingerprint: Fingerprint) {
    memory(&cx.scratch.get::<Known>()).files.insert(real.to_path_buf(), fingerprint);
}

/// Forgets a file that is no longer there; `real` is its real path as it was.
pub(crate) fn forget(cx: &ToolCx, real: &Path) {
    memory(&cx.scratch.get::<Known>()).files.remove(real);
}

/// What was seen of a file goes with it to its new name; both are real paths.
pub(crate) fn moved(cx: &ToolCx, from: &Path, to: &Path) {
    let known = cx.scratch.get::<Known>();
    let mut memory = memory(&known);
    match memory.files.remove(from) {
        Some(fingerprint) => memory.files.insert(to.to_path_buf(), fingerprint),
        None => memory.files.remove(to),
    };
}

/// Whether these lines of a file with this content were shown before, under this name and to somebody who still has them.
/// From now on they were. A program has nothing but the answer it gets.
pub(crate) fn was_shown(cx: &ToolCx, path: &Path, first: u64, count: u64, hash: u64) -> bool {
    let Some(segment) = cx.segment else { return false };
    let known = cx.scratch.get::<Known>();
    let mut memory = memory(&known);
    if memory.shown.len() >= MOST_SHOWN {
        memory.shown.clear();
    }
    memory.edits.remove(path);
    let shown = Shown { segment, hash };
    memory.shown.insert((path.to_path_buf(), first, count), shown) == Some(shown)
}

/// Remembers an edit that was just made: a text that says what was asked for, and the content that it left.
pub(crate) fn edited(cx: &ToolCx, path: &Path, asked: &str, after: &[u8]) {
    let edit = LastEdit { asked: XxHash3_64::oneshot(asked.as_bytes()), left: XxHash3_64::oneshot(after), again: 0 };
    memory(&cx.scratch.get::<Known>()).edits.insert(path.to_path_buf(), edit);
}

/// How often, this time included, the last edit of a file was asked for again while nobody has read or changed it since;
/// zero if this is another one.
pub(crate) fn asked_again(cx: &ToolCx, path: &Path, asked: &str, now: &[u8]) -> u32 {
    let known = cx.scratch.get::<Known>();
    let mut memory = memory(&known);
    let Some(last) = memory.edits.get_mut(path) else { return 0 };
    if (last.asked, last.left) != (XxHash3_64::oneshot(asked.as_bytes()), XxHash3_64::oneshot(now)) {
        return 0;
    }
    last.again += 1;
    last.again
}

/// The layout of a file. One that was made before is used again if nothing about the file has changed since.
pub(crate) async fn layout(
    cx: &ToolCx,
    path: &Path,
    stat: &FileStat,
    feed: LineFeed,
) -> Result<Arc<Layout>, hermes_core::FileError> {
    let real = cx.environment.real_path(path).await?;
    let known = cx.scratch.get::<Known>();
    if let (Some(version), Some((then, how, layout))) = (stat.version, memory(&known).layouts.get(&real))
        && (version, feed) == (*then, *how)
    {
        return Ok(Arc::clone(layout));
    }
    let looked_at = SystemTime::now();
    let layout = Arc::new(cx.environment.layout(path, feed).await?);
    if let Some(version) = settled(stat, looked_at) {
        let mut memory = memory(&known);
        if memory.layouts.len() >= MOST_LAYOUTS {
            memory.layouts.clear();
        }
        memory.layouts.insert(real, (version, feed, Arc::clone(&layout)));
    }
    Ok(layout)
}

/// The version of a file by which what was read of it at `looked_at` may be kept: another change at the same tick of the
/// clock would not be seen.
pub(crate) fn settled(stat: &FileStat, looked_at: SystemTime) -> Option<FileVersion> {
    let is_settled =
        |version: &FileVersion| looked_at.duration_since(version.changed).is_ok_and(|since| since > FileVersion::GRAIN);
    stat.version.filter(is_settled)
}

/// Refuses to go on if the task has seen another content than the one that is there now.
pub(crate) async fn check(cx: &ToolCx, tool: &str, path: &Path) -> Result<(), ToolError> {
    let Ok(real) = cx.environment.real_path(path).await else { return Ok(()) };
    let Some(known) = memory(&cx.scratch.get::<Known>()).files.get(&real).cloned() else { return Ok(()) };
    // Gone, or no file any more: the write itself says what is wrong, if anything is.
    let Ok(stat) = cx.environment.stat(&real).await else { return Ok(()) };
    if stat.kind != FileKind::File {
        return Ok(());
    }
    let Ok(now) = cx.environment.layout(&real, LineFeed::Byte).await else { return Ok(()) };
    if (now.len(), now.hash()) == (known.bytes, known.hash) {
        return Ok(());
    }
    let what = match &known.lines {
        Some(then) if now.lines() <= MOST_LINES as u64 => {
            let content = cx.environment.read(&real, 0..u64::MAX).await.unwrap_or_default();
            different_lines(then, &line_hashes(&content))
        }
        _ => format!("{} bytes then, {} now", grouped(known.bytes), grouped(now.len())),
    };
    Err(ToolError::tell(format!(
        "{tool}: {} has changed since it was last read here ({what}); nothing was changed. Read it again",
        path.display()
    )))
}

/// Which lines are not as they were: all between the first and the last one that are.
fn different_lines(then: &[u32], now: &[u32]) -> String {
    let start = then.iter().zip(now).take_while(|(a, b)| a == b).count();
    let (rest, new) = (&then[start..], &now[start..]);
    let end = rest.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let range = |count: usize| match count - end {
        0 => format!("nothing after line {start}"),
        1 => format!("line {}", start + 1),
        more => format!("lines {}-{}", start + 1, start + more),
    };
    format!("{} then, {} now", range(rest.len()), range(new.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_known_by_every_byte_and_its_length() {
        let large = vec![7; 3 * 1024 * 1024 + 5];
        let mut other = large.clone();
        other[1024 * 1024] = 8;
        assert_eq!(Fingerprint::of(&large), Fingerprint::of(&large.clone()));
        assert_ne!(Fingerprint::of(&large), Fingerprint::of(&other));
        assert_ne!(Fingerprint::of(b"a"), Fingerprint::of(b"a\0"));
    }

    #[test]
    fn what_changed_is_said_by_lines() {
        let said = |then: &str, now: &str| different_lines(&line_hashes(then.as_bytes()), &line_hashes(now.as_bytes()));
        assert_eq!(said("a\nb\nc\n", "a\nx\nc\n"), "line 2 then, line 2 now");
        assert_eq!(said("a\nb\nc\n", "a\nc\n"), "line 2 then, nothing after line 1 now");
        assert_eq!(said("a\nc\n", "a\nb\nb\nc\n"), "nothing after line 1 then, lines 2-3 now");
        assert_eq!(said("a\na\n", "a\na\na\n"), "nothing after line 2 then, line 3 now");
        assert_eq!(said("a", "b"), "line 1 then, line 1 now");
        assert_eq!(said("", "b\n"), "nothing after line 0 then, line 1 now");
    }
}
