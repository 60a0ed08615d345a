//! Mode `replace`: pieces of one file, all found in the file as it is, all replaced or none.

use std::path::PathBuf;

use hermes_core::plural;

use super::{One, unchanged};
use crate::prelude::*;
use crate::support::diff;
use crate::support::discretion::keeps_quiet;
use crate::support::known;
use crate::support::matching::{Found, Haystack, MOST_PLACES, Miss, Wanted, is_there_already, nearest, numbered};
use crate::support::matching::{Lines, Strategy};
use crate::support::echo::echo;
use crate::support::paths::{shown, similar, stated_file};
use crate::support::text::read_for_editing;
use crate::support::v4a::quietly;
use crate::support::view::{Splice, View};

/// A change that can be made.
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
    pub(super) diff: String,
    /// Nothing of the file is quoted.
    pub(super) quiet: bool,
    /// The new text stands there already, around every place: making the change again would put it there twice.
    pub(super) is_there: bool,
    /// One for each edit, in their order.
    pub(super) made: Vec<Made>,
}

/// What one edit found.
pub(super) struct Made {
    pub(super) strategy: Strategy,
    pub(super) places: usize,
    /// The first lines of the first few places, from 1.
    pub(super) lines: Vec<usize>,
}

/// What the edits would do to the file, or why they cannot. Changes nothing.
pub(super) async fn change(cx: &ToolCx, path: &str, edits: &[One]) -> Result<Change, ToolError> {
    let path = stated_file(cx, "patch", path).map_err(|error| error.with("success", false))?;
    let name = shown(cx, &path);
    for (index, edit) in edits.iter().enumerate() {
        let of = which(edits, index);
        if edit.old_string.is_empty() {
            return Err(unchanged(&format!("{of}old_string is empty; name the text to replace, or use write_file for a new file")));
        }
        if edit.old_string == edit.new_string {
            return Err(unchanged(&format!("{of}old_string and new_string are the same")));
        }
    }
    known::check(cx, "patch", &path).await.map_err(|error| error.with("success", false))?;
    let before = match read_for_editing(cx, "patch", &path).await {
        Ok(before) => before,
        Err(error) => {
            let is_there = cx.environment.stat(&path).await.is_ok();
            let nearby = if is_there { Vec::new() } else { similar(cx, &path).await };
            let error = error.with("success", false);
            return Err(if nearby.is_empty() { error } else { error.with("similar_files", nearby) });
        }
    };
    let real = cx.environment.real_path(&path).await.unwrap_or_else(|_| path.clone());
    let quiet = keeps_quiet(cx, &path, &real, &before);
    let view = View::new(&before);
    // Where the file itself has numbers before a bar, they are data.
    if !view.text().lines().any(|line| numbered(line).is_some())
        && let Some((index, why)) = edits.iter().enumerate().find_map(|(at, edit)| Some((at, echo(&edit.new_string)?)))
    {
        return Err(unchanged(&format!("{}in new_string {why}", which(edits, index))));
    }
    let hay = Haystack::new(view.text());
    let done = find_all(&hay, edits);
    // A text beyond ASCII may be there in UTF-8 although the file around it looks like something older.
    let utf8 = matches!(done, Err((_, Miss::Nowhere))) && view.encoding().legacy().is_some();
    let utf8 = utf8.then(|| View::as_utf8(&before));
    if let Some(utf8) = &utf8 {
        let hay = Haystack::new(utf8.text());
        if let Ok(found) = find_all(&hay, edits) {
            return made(utf8, &hay, edits, found, quiet, &name).map(|made| Change { path, before: before.clone(), ..made });
        }
    }
    let found = done.map_err(|(index, miss)| missed(&hay, edits, index, &miss, quiet, &name))?;
    made(&view, &hay, edits, found, quiet, &name).map(|made| Change { path, before: before.clone(), ..made })
}

fn find_all(hay: &Haystack<'_>, edits: &[One]) -> Result<Vec<Found>, (usize, Miss)> {
    let find = |(index, edit): (usize, &One)| {
        let wanted = Wanted { old: &edit.old_string, new: &edit.new_string, all: edit.replace_all == Some(true) };
        hay.find(wanted).map_err(|miss| (index, miss))
    };
    edits.iter().enumerate().map(find).collect()
}

/// All edits made at once. Path and content before are filled in by the caller.
fn made(view: &View<'_>, hay: &Haystack<'_>, edits: &[One], found: Vec<Found>, quiet: bool, name: &str) -> Result<Change, ToolError> {
    let made = found.iter().map(|found| Made {
        strategy: found.strategy,
        places: found.places.len(),
        lines: found.places.iter().take(MOST_PLACES - 1).map(|place| hay.lines().at(place.start) + 1).collect(),
    });
    let made = made.collect();
    let mut all: Vec<(usize, std::ops::Range<usize>, Splice)> = Vec::new();
    for (index, found) in found.into_iter().enumerate() {
        all.extend(found.places.into_iter().zip(found.splices).map(|(place, splice)| (index, place, splice)));
    }
    all.sort_by_key(|(_, place, _)| place.start);
    if let Some([(one, _, _), (other, place, _)]) = all.array_windows().find(|[a, b]| a.1.end > b.1.start) {
        let line = hay.lines().at(place.start) + 1;
        let (one, other) = (one.min(other) + 1, one.max(other) + 1);
        return Err(unchanged(&format!("edits {one} and {other} both change line {line} of {name}; make them one")));
    }
    let splices: Vec<Splice> = all.into_iter().map(|(_, _, splice)| splice).collect();
    let after = view.spliced(&splices).map_err(|error| unchanged(&format!("{name}: {error}")))?;
    if splices.iter().all(|splice| hay.text[splice.range.clone()] == splice.new) {
        let what = if edits.len() == 1 { "the edit" } else { "the edits" };
        return Err(unchanged(&format!("{what} would leave {name} as it is: what differs is not in the file")));
    }
    let is_there = splices.iter().all(|splice| stands_around(hay.text, splice));
    let names = [format!("a/{name}"), format!("b/{name}")];
    let diff = quietly(&names, quiet, || diff::unified([&names[0], &names[1]], hay.lines(), hay.text, &splices));
    Ok(Change { path: PathBuf::new(), before: Vec::new(), after, diff, quiet, is_there, made })
}

/// Whether what a change would bring, with the old text in the middle of it, is there already.
fn stands_around(text: &str, splice: &Splice) -> bool {
    let old = &text[splice.range.clone()];
    splice.new.match_indices(old).any(|(before, _)| {
        let start = splice.range.start.checked_sub(before);
        start.and_then(|start| text.get(start..start + splice.new.len())) == Some(&splice.new)
    })
}

/// The error for an edit that was not found, or too often.
fn missed(hay: &Haystack<'_>, edits: &[One], index: usize, miss: &Miss, quiet: bool, name: &str) -> ToolError {
    let of = which(edits, index);
    let lines = hay.lines();
    match miss {
        Miss::Several(places) => {
            let count = if places.len() >= MOST_PLACES { "at least ".to_owned() + &places.len().to_string() } else { places.len().to_string() };
            let mut numbers: Vec<String> = places.iter().take(MOST_PLACES - 1).map(|place| (lines.at(*place) + 1).to_string()).collect();
            numbers.dedup();
            if places.len() >= MOST_PLACES {
                numbers.push("…".into());
            }
            unchanged(&format!(
                "{of}the text to replace was found {count} times in {name} ({} {}). Add surrounding lines to make it \
                 unique, or set replace_all",
                if numbers.len() == 1 { "line" } else { "lines" },
                numbers.join(", ")
            ))
        }
        Miss::Nowhere => {
            let old = Lines::of(&edits[index].old_string);
            let size = plural(lines.len(), "line");
            let near = nearest(lines, &old).filter(|_| !quiet);
            let there = is_there_already(hay.text, &edits[index].new_string, lines).filter(|_| !quiet);
            let next = match (&near, there) {
                (_, Some(line)) => format!("The new text is there already, in line {line}: the edit may have been made before"),
                (Some(near), None) => format!("The nearest text begins in line {}; copy it exactly", near.first),
                (None, None) => "Read the file and copy the text exactly".to_owned(),
            };
            let error = unchanged(&format!("{of}the text to replace was not found in {name} ({size}). {next}"));
            match near {
                Some(near) => error.with("nearest", near.shown),
                None => error,
            }
        }
    }
}

/// Which of several edits it is about.
fn which(edits: &[One], index: usize) -> String {
    if edits.len() == 1 { String::new() } else { format!("edit {} of {}: ", index + 1, edits.len()) }
}
