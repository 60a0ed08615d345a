//! The difference that one entry makes.
//!
//! Bounded in every way: files up to a size, up to a time, up to a length of what is shown. A difference that ran out of
//! time is still a true one, only longer than need be.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::changes::{Entry, Kind, LineCounts, State};
use super::{RehearsalError, Stage, render, trouble};
use crate::beneath::Root;

/// The largest file that is compared line by line.
pub(crate) const MOST_BYTES: u64 = 1 << 20;
/// The longest difference that is written out.
const MOST_SHOWN: usize = 256 << 10;
/// How long one difference may be looked for.
const DEADLINE: Duration = Duration::from_millis(300);
/// Where a zero byte tells that a file is no text.
const HEAD: u64 = 8192;

/// The difference that one entry makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Diff {
    /// Line by line.
    Text {
        /// In the unified format, three lines of context. Bytes that are not UTF-8 are shown as `�`.
        unified: String,
        /// How many lines came and went.
        lines: LineCounts,
        /// Whether the text was too long and its end is missing.
        cut: bool,
    },
    /// Not text, too large, or not about contents: one line that says what changed.
    Summary {
        /// For example `binary, 1.2 MB → 1.3 MB`.
        text: String,
    },
}

impl std::fmt::Display for Diff {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text { unified, cut: false, .. } => formatter.write_str(unified),
            Self::Text { unified, cut: true, .. } => writeln!(formatter, "{unified}… (the rest is not shown)"),
            Self::Summary { text } => writeln!(formatter, "{text}"),
        }
    }
}

/// Whether a difference in text makes sense, judged by sizes and the beginnings of the files.
pub(super) fn may_be_text(workspace: &Root, view: &Root, entry: &Entry) -> bool {
    let side = |root: &Root, state: Option<&State>| match state {
        None => true,
        Some(state) if state.kind == Kind::Link => true,
        Some(state) if state.kind == Kind::File && state.size <= MOST_BYTES => {
            bytes(root, &entry.path, HEAD).is_ok_and(|head| !head.contains(&0))
        }
        Some(_) => false,
    };
    entry.change != super::Change::ModeChanged && side(workspace, entry.old.as_ref()) && side(view, entry.new.as_ref())
}

/// The lines that came and went; none where it is not text or has changed meanwhile.
pub(super) fn count(stage: &Stage, entry: &Entry) -> Option<LineCounts> {
    let (old, new) = both(stage, entry).ok()?;
    Some(counts(&compare(&old, &new)))
}

pub(super) fn diff(stage: &Stage, entry: &Entry) -> Result<Diff, RehearsalError> {
    if !entry.text {
        return Ok(Diff::Summary { text: summary(entry) });
    }
    let failed = |error: io::Error| trouble("read", &stage.workspace.path().join(&entry.path), &error);
    let (old, new) = both(stage, entry).map_err(failed)?;
    if old.contains('\0') || new.contains('\0') {
        return Ok(Diff::Summary { text: summary(entry) });
    }
    let name = render::name(&entry.path);
    Ok(of_texts(Some(&name), entry.old.as_ref().map(|_| old.as_str()), entry.new.as_ref().map(|_| new.as_str())))
}

/// The difference between two texts of a file; `None`: it is not there. Without a `name` there are no lines that tell it.
pub(crate) fn of_texts(name: Option<&str>, old: Option<&str>, new: Option<&str>) -> Diff {
    let difference = compare(old.unwrap_or_default(), new.unwrap_or_default());
    let mut unified = difference.unified_diff();
    unified.context_radius(3);
    if let Some(name) = name {
        let header = |side: &str, text: Option<&str>| match text {
            Some(_) => format!("{side}/{name}"),
            None => "/dev/null".to_owned(),
        };
        unified.header(&header("a", old), &header("b", new));
    }
    let mut unified = unified.to_string();
    let cut = unified.len() > MOST_SHOWN;
    if cut {
        let end = unified[..unified.floor_char_boundary(MOST_SHOWN)].rfind('\n').map_or(0, |at| at + 1);
        unified.truncate(end);
    }
    Diff::Text { unified, lines: counts(&difference), cut }
}

fn both(stage: &Stage, entry: &Entry) -> io::Result<(String, String)> {
    let side = |root: &Root, state: Option<&State>| match state {
        None => io::Result::Ok(String::new()),
        Some(State { target: Some(target), .. }) => Ok(format!("{}\n", target.display())),
        Some(_) => Ok(String::from_utf8_lossy(&bytes(root, &entry.path, MOST_BYTES)?).into_owned()),
    };
    Ok((side(&stage.workspace, entry.old.as_ref())?, side(&stage.view, entry.new.as_ref())?))
}

fn bytes(root: &Root, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    root.place(path)?.read()?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn compare<'a>(old: &'a str, new: &'a str) -> TextDiff<'a, 'a, str> {
    TextDiff::configure().timeout(DEADLINE).diff_lines(old, new)
}

fn counts(difference: &TextDiff<'_, '_, str>) -> LineCounts {
    let mut lines = LineCounts::default();
    for change in difference.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => lines.plus += 1,
            ChangeTag::Delete => lines.minus += 1,
            ChangeTag::Equal => {}
        }
    }
    lines
}

fn summary(entry: &Entry) -> String {
    let (Some(old), Some(new)) = (&entry.old, &entry.new) else {
        let (verb, state) = if entry.new.is_some() { ("added", &entry.new) } else { ("deleted", &entry.old) };
        return match (state, entry.inside) {
            (Some(state), None) if state.kind == Kind::File => format!("{verb}, {}", size_in_words(state)),
            (Some(state), None) => format!("{verb}, a {}", state.kind.in_words()),
            (_, inside) => format!("{verb}, {}", render::inside(inside.unwrap_or_default())),
        };
    };
    if old.kind != new.kind {
        return format!("{} → {}", old.kind.in_words(), new.kind.in_words());
    }
    if entry.change == super::Change::ModeChanged {
        return render::permissions(old, new);
    }
    match new.kind {
        Kind::File if old.size.max(new.size) > MOST_BYTES => {
            format!("too large to compare by lines, {} → {}", render::bytes(old.size), render::bytes(new.size))
        }
        Kind::File => format!("binary, {} → {}", render::bytes(old.size), render::bytes(new.size)),
        kind => format!("another {}", kind.in_words()),
    }
}

fn size_in_words(state: &State) -> String {
    let what = if state.size > MOST_BYTES { "large" } else { "binary" };
    format!("{what}, {}", render::bytes(state.size))
}
