//! The places of a file that the hunks of a patch mean.
//!
//! A hunk is found by its lines, not by numbers: exactly first, then as loosely as `matching` allows. Where its lines are
//! at several places, what else is known chooses: the hunks before it (a patch goes from top to bottom), the hints behind
//! `@@`, the end of the file. Nothing chooses by likeness.

use std::ops::Range;

use super::parse::{Hunk, Sign};
use crate::support::matching::{Alike, Lines, MOST_PLACES, Most, Piece, Strategy, Window, nearest};
use crate::support::view::Splice;

/// A hunk at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) splice: Splice,
    pub(crate) strategy: Strategy,
    /// The first line that it concerns, from 1.
    pub(crate) line: usize,
}

/// Why a hunk has no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoPlace {
    /// What is wrong; a sentence that says what to do.
    pub(crate) why: String,
    /// What in the file is nearest to it.
    pub(crate) nearest: Option<String>,
}

impl NoPlace {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), nearest: None }
    }
}

/// The place of every hunk, in the order of the file. `Err` has one entry a hunk without one.
pub(crate) fn placed(text: &str, hunks: &[Hunk]) -> Result<Vec<Placed>, Vec<NoPlace>> {
    let lines = Lines::of(text);
    let (mut placed, mut wrong): (Vec<(Range<usize>, Placed)>, _) = (Vec::new(), Vec::new());
    let mut cursor = Cursor::default();
    for hunk in hunks.iter().filter(|hunk| hunk.lines.iter().any(|(sign, _)| *sign != Sign::Stays)) {
        match place(&lines, text, hunk, cursor) {
            Ok((range, found)) => {
                let end = found.splice.range.end;
                let changed = if end == text.len() { lines.len() } else { lines.at(end) };
                cursor = Cursor { seen: range.end, changed };
                placed.push((range, found));
            }
            Err(no) => match (wrong.len() < MOST_TRIED).then(|| after_others(text, hunk, &placed)).flatten() {
                Some(found) => {
                    let line = found.line;
                    placed.push((line..line, found));
                }
                None => {
                    wrong.push(NoPlace { why: format!("the hunk at line {} of the patch {}", hunk.at, no.why), ..no });
                }
            },
        }
    }
    placed.sort_by_key(|(_, placed)| (placed.splice.range.start, placed.splice.range.end));
    for pair in placed.windows(2) {
        let [(seen, one), (also_seen, other)] = pair else { continue };
        let (first, second) = (&one.splice, &other.splice);
        let overlap = first.range.end > second.range.start;
        // Both put lines between the same two: which come first is not said.
        let beside = first.range.is_empty() && first.range == second.range && seen.end > also_seen.start;
        // Whether the file ends in a line end is for one of them to say.
        let is_unended = !text.ends_with('\n') || !first.new.is_empty() && !first.new.ends_with('\n');
        let at_end = first.range.end == text.len() && !text.is_empty() && is_unended && !first.range.is_empty();
        if overlap || beside || at_end {
            wrong.push(NoPlace::new(format!("two hunks change line {}; make them one", other.line)));
        }
    }
    if wrong.is_empty() { Ok(placed.into_iter().map(|(_, placed)| placed).collect()) } else { Err(wrong) }
}

/// After so many hunks without a place it is not looked for more of them in other ways.
const MOST_TRIED: usize = 3;

/// How far the hunks so far have come.
#[derive(Clone, Copy, Default)]
struct Cursor {
    /// The line after the last one that they concern.
    seen: usize,
    /// The line after the last one that they change: lines around a change may be those around the next one, too.
    changed: usize,
}

/// A hunk whose lines are there once the hunks before it are done, for a patch may be written that way. What it changes
/// must nevertheless be a part of the file as it is.
fn after_others(text: &str, hunk: &Hunk, placed: &[(Range<usize>, Placed)]) -> Option<Placed> {
    let mut splices: Vec<&Splice> = placed.iter().map(|(_, placed)| &placed.splice).collect();
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    if splices.is_empty() {
        return None;
    }
    let (mut now, mut done) = (String::with_capacity(text.len()), 0);
    // What stayed: where it begins now, and where it is in the file.
    let mut stayed: Vec<(usize, Range<usize>)> = Vec::new();
    for splice in splices {
        let kept = text.get(done..splice.range.start)?;
        stayed.push((now.len(), done..splice.range.start));
        now = now + kept + &splice.new;
        done = splice.range.end;
    }
    stayed.push((now.len(), done..text.len()));
    now.push_str(&text[done..]);
    let (_, found) = place(&Lines::of(&now), &now, hunk, Cursor::default()).ok()?;
    let range = &found.splice.range;
    let is_in = |(at, there): &&(usize, Range<usize>)| *at <= range.start && range.end <= at + there.len();
    let (at, there) = stayed.iter().rev().find(is_in)?;
    let range = there.start + range.start - at..there.start + range.end - at;
    // Lines that come before what an earlier hunk adds at the same place would land behind it.
    let last = stayed.iter().rev().find(|(_, other)| other.start <= range.start && range.start <= other.end)?;
    if range.is_empty() && last.0 != *at {
        return None;
    }
    let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..range.start]).count() + 1;
    Some(Placed { splice: Splice { range, ..found.splice }, line, ..found })
}

/// The lines that a hunk concerns and what comes there.
fn place(lines: &Lines<'_>, text: &str, hunk: &Hunk, cursor: Cursor) -> Result<(Range<usize>, Placed), NoPlace> {
    let is_blank = |(sign, line): &(Sign, String)| *sign == Sign::Stays && line.is_empty();
    // Blank lines before the next header may be there for the eye only, so they are tried as a part of the file first.
    let loose = hunk.lines.iter().rev().take_while(|line| is_blank(line)).count();
    let old_lines = hunk.lines.iter().filter(|(sign, _)| *sign != Sign::Comes).count();
    let mut first_error = None;
    // A few of them one by one, or all: each way is a search through the file.
    for dropped in (0..=loose.min(3)).chain((loose > 3).then_some(loose)) {
        let body = &hunk.lines[..hunk.lines.len() - dropped];
        if old_lines == dropped {
            return inserted(lines, text, hunk, body, cursor);
        }
        match found(lines, text, hunk, body, cursor) {
            Ok(placed) => return Ok(placed),
            Err(no) => first_error = first_error.or(Some(no)),
        }
    }
    Err(first_error.unwrap_or_else(|| NoPlace::new("has no lines")))
}

fn found(
    lines: &Lines<'_>,
    text: &str,
    hunk: &Hunk,
    body: &[(Sign, String)],
    cursor: Cursor,
) -> Result<(Range<usize>, Placed), NoPlace> {
    let side = |left_out: Sign| {
        let lines = body.iter().filter(|(sign, _)| *sign != left_out);
        lines.fold(String::new(), |text, (_, line)| text + line + "\n")
    };
    let (old, new) = (side(Sign::Comes), side(Sign::Goes));
    let (old, new) = (Lines::of(&old), Lines::of(&new));
    for (alike, strategy) in [
        (Alike::Content, Strategy::Exact),
        (Alike::TrailingBlanks, Strategy::TrailingBlanks),
        (Alike::Indentation, Strategy::Indentation),
        (Alike::Typography, Strategy::Typography),
    ] {
        if strategy != Strategy::Exact && old.contents().iter().all(|line| line.trim().is_empty()) {
            break;
        }
        let mut windows = lines.windows(&old, &new, alike, Most::Some(MOST_CANDIDATES));
        if windows.is_empty() {
            continue;
        }
        if hunk.is_at_end || hunk.unended.0 {
            windows.retain(|window| window.first + old.len() == lines.len());
            if windows.is_empty() {
                return Err(NoPlace::new("is said to be at the end of the file, and its lines are not there"));
            }
        }
        let window = chosen(lines, hunk, &windows, old.len(), cursor)?;
        let new_lines = lines.rewritten(window, &old, &new, &pieces(body));
        let range = window.first..window.first + old.len();
        let reaches_end = range.end == lines.len();
        let after = match (reaches_end, hunk.unended) {
            (true, (_, true)) => "",
            // It is said that the line end was missing, and not that it still is.
            (true, (true, false)) => lines.end_like(range.end - 1),
            // A line that stays keeps its own end, also where the lines after it go.
            _ => match new_lines.last().filter(|_| ends_in_kept(body) && !lines.end(range.end - 1).is_empty()) {
                Some((_, like)) => lines.end_like(*like),
                None => lines.end(range.end - 1),
            },
        };
        let splice =
            Splice { range: lines.start(range.start)..lines.start(range.end), new: lines.joined(&new_lines, after) };
        let line = range.start + 1;
        let splice = changed_only(text, shortened(text, splice, lines, &new_lines), lines, &range, body);
        return Ok((range, Placed { splice, strategy, line }));
    }
    let nearest = nearest(lines, &old);
    let place =
        nearest.as_ref().map_or(String::new(), |near| format!("; the nearest text begins in line {}", near.first));
    Err(NoPlace {
        why: format!("was not found{place}. Read the file and copy its lines exactly"),
        nearest: nearest.map(|near| near.shown),
    })
}

/// Whether the last line that will be there is one that was there.
fn ends_in_kept(body: &[(Sign, String)]) -> bool {
    body.iter().rev().find(|(sign, _)| *sign != Sign::Goes).is_some_and(|(sign, _)| *sign == Sign::Stays)
}

/// The splice without the lines around the change, as far as they stay as they are.
fn changed_only(
    text: &str,
    splice: Splice,
    lines: &Lines<'_>,
    range: &Range<usize>,
    body: &[(Sign, String)],
) -> Splice {
    let stays = |(sign, _): &&(Sign, String)| *sign == Sign::Stays;
    let (head, tail) = (body.iter().take_while(stays).count(), body.iter().rev().take_while(stays).count());
    let (first, last) = (lines.start(range.start + head), lines.start(range.end - tail));
    let Splice { range, new } = splice;
    let before = text.get(range.start..first).filter(|before| new.starts_with(before)).unwrap_or_default();
    let rest = &new[before.len()..];
    let after = text.get(last..range.end).filter(|after| rest.ends_with(after)).unwrap_or_default();
    let new = rest[..rest.len() - after.len()].to_owned();
    Splice { range: range.start + before.len()..range.end - after.len(), new }
}

/// Candidates among which hints may choose.
const MOST_CANDIDATES: usize = 1_000;

/// A last line that goes leaves the line before it as it is; nothing else is to be shortened.
fn shortened(text: &str, splice: Splice, lines: &Lines<'_>, new: &[(String, usize)]) -> Splice {
    let ends_unended = splice.range.end == text.len() && !text.is_empty() && lines.end(lines.len() - 1).is_empty();
    let has_line_before = splice.range.start > 0;
    if new.is_empty() && ends_unended && has_line_before {
        let before = lines.at(splice.range.start - 1);
        let start = lines.start(before) + lines.content(before).len();
        return Splice { range: start..splice.range.end, ..splice };
    }
    splice
}

/// The one window that is meant.
fn chosen<'w>(
    lines: &Lines<'_>,
    hunk: &Hunk,
    windows: &'w [Window],
    length: usize,
    cursor: Cursor,
) -> Result<&'w Window, NoPlace> {
    if let [only] = windows {
        return Ok(only);
    }
    let from = |line| windows.iter().filter(|window| window.first >= line).collect::<Vec<_>>();
    let later = Some(from(cursor.seen)).filter(|later| !later.is_empty()).unwrap_or_else(|| from(cursor.changed));
    if let [only] = later[..] {
        return Ok(only);
    }
    let open = if later.is_empty() { windows.iter().collect() } else { later };
    let after_hints = hint_places(lines, &hunk.hints).into_iter();
    let mut meant: Vec<&Window> =
        after_hints.filter_map(|hint| open.iter().find(|window| window.first + length > hint).copied()).collect();
    meant.dedup();
    if let [only] = meant[..] {
        return Ok(only);
    }
    if let Some(exact) = open.iter().find(|window| Some(window.first + 1) == hunk.line) {
        return Ok(exact);
    }
    if let Some(hint) = hunk.hints.iter().find(|hint| lines_like(lines, hint).is_empty()) {
        return Err(NoPlace::new(format!(
            "fits at {} places, and its hint `{hint}` is not in the file. Copy a line that comes before it after `@@`",
            windows.len()
        )));
    }
    let mut places: Vec<String> =
        windows.iter().take(MOST_PLACES - 1).map(|window| (window.first + 1).to_string()).collect();
    if windows.len() >= MOST_PLACES {
        places.push("…".into());
    }
    Err(NoPlace::new(format!(
        "fits at {} places (lines {}). Add lines around it, or name the function or class before it after `@@`",
        if windows.len() == MOST_CANDIDATES {
            format!("at least {}", windows.len())
        } else {
            windows.len().to_string()
        },
        places.join(", ")
    )))
}

/// The lines, counted from 0, that the innermost hint means, given those before it. Empty if there are no hints, or one of
/// them is not in the file.
fn hint_places(lines: &Lines<'_>, hints: &[String]) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    for (level, hint) in hints.iter().enumerate() {
        let all = lines_like(lines, hint);
        places = if level == 0 {
            all
        } else {
            places.iter().filter_map(|outer| all.iter().find(|at| *at > outer).copied()).collect()
        };
        places.dedup();
    }
    places
}

/// The lines that are a hint, or else those that contain it.
fn lines_like(lines: &Lines<'_>, hint: &str) -> Vec<usize> {
    let hint = hint.trim();
    let with = |fits: &dyn Fn(&str) -> bool| {
        (0..lines.len()).filter(|at| fits(lines.content(*at))).take(MOST_CANDIDATES).collect::<Vec<_>>()
    };
    let same = with(&|line| line.trim() == hint);
    if same.is_empty() { with(&|line| line.contains(hint)) } else { same }
}

/// A hunk that only adds: after its hint, or at the end of the file.
fn inserted(
    lines: &Lines<'_>,
    text: &str,
    hunk: &Hunk,
    body: &[(Sign, String)],
    cursor: Cursor,
) -> Result<(Range<usize>, Placed), NoPlace> {
    let at = if hunk.hints.is_empty() || hunk.is_at_end {
        lines.len()
    } else {
        let places = hint_places(lines, &hunk.hints);
        let later: Vec<usize> = places.iter().copied().filter(|at| *at >= cursor.changed).collect();
        match (&places[..], &later[..]) {
            ([only], _) | (_, [only]) => only + 1,
            ([], _) => {
                return Err(NoPlace::new(format!(
                    "only adds lines, and its hint `{}` is not in the file",
                    hunk.hints.join("` `")
                )));
            }
            (several, _) => {
                let lines: Vec<String> = several.iter().take(MOST_PLACES - 1).map(|at| (at + 1).to_string()).collect();
                return Err(NoPlace::new(format!(
                    "only adds lines, and its hint is there {} times (lines {}). Add lines around it that stay",
                    several.len(),
                    lines.join(", ")
                )));
            }
        }
    };
    let like = at.saturating_sub(1);
    let new: Vec<(String, usize)> = body.iter().map(|(_, line)| (line.clone(), like)).collect();
    let end = lines.end_like(like);
    let is_unended = at == lines.len() && at > 0 && lines.end(at - 1).is_empty();
    let after = if hunk.unended.1 && at == lines.len() || is_unended { "" } else { end };
    let before = if is_unended { end } else { "" };
    let place = if at == lines.len() { text.len() } else { lines.start(at) };
    let splice = Splice { range: place..place, new: before.to_owned() + &lines.joined(&new, after) };
    Ok((at..at, Placed { splice, strategy: Strategy::Exact, line: at + 1 }))
}

/// The lines of a hunk as a change from those that are there to those that will be.
fn pieces(body: &[(Sign, String)]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut old, mut new, mut at) = (0, 0, 0);
    while at < body.len() {
        let stays = body[at].0 == Sign::Stays;
        let run = body[at..].iter().take_while(|(sign, _)| (*sign == Sign::Stays) == stays);
        let (mut from, mut to) = (0, 0);
        for (sign, _) in run {
            from += usize::from(*sign != Sign::Comes);
            to += usize::from(*sign != Sign::Goes);
            at += 1;
        }
        pieces.push(if stays { Piece::Keep(old..old + from) } else { Piece::Change(old..old + from, new..new + to) });
        (old, new) = (old + from, new + to);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Operation, parse};
    use super::*;
    use crate::support::view::View;

    fn patched(file: &str, hunks: &str) -> Result<String, String> {
        let operations = parse(&format!("*** Update File: f\n{hunks}")).unwrap();
        let [Operation::Update { hunks, .. }] = &operations[..] else { panic!("{operations:?}") };
        let found =
            placed(file, hunks).map_err(|wrong| wrong.into_iter().map(|no| no.why).collect::<Vec<_>>().join("; "))?;
        let splices: Vec<_> = found.into_iter().map(|found| found.splice).collect();
        Ok(String::from_utf8(View::new(file.as_bytes()).spliced(&splices).unwrap()).unwrap())
    }

    #[track_caller]
    fn gives(file: &str, hunks: &str, after: &str) {
        assert_eq!(patched(file, hunks).as_deref(), Ok(after), "{hunks:?}");
    }

    #[test]
    fn lines_are_replaced_where_they_are() {
        gives("a\n\nc\n", " a\n\n-c\n+C\n", "a\n\nC\n");
        gives("a\r\nb\r\n", " a\n-b\n+B\n+c\n", "a\r\nB\r\nc\r\n");
        gives("a\nb", "-b\n+c\n+d\n", "a\nc\nd");
        gives("a\nb", " a\n-b\n", "a");
        gives("a\nb", "-b\n", "a");
        gives("a\n", "-a\n", "");
        gives("\ta  \n\tb\n", " a\n-b\n+c\n", "\ta  \n\tc\n");
        gives("“a”\nx “b” y\n", " \"a\"\n-x \"b\" y\n+x \"b\" z\n", "“a”\nx “b” z\n");
        gives("1\n2\n3\n4\n", "@@\n-1\n+one\n@@\n-3\n+three\n", "one\n2\nthree\n4\n");
        gives("1\n2\n3\n", "@@\n-3\n+three\n@@\n-1\n+one\n", "one\n2\nthree\n");
        // Blank lines between hunks may be nothing but that.
        gives("a\nb\n", "@@\n-a\n+A\n\n\n@@\n-b\n+B\n", "A\nB\n");
        gives("a\n\nb\n", "@@\n-a\n+A\n\n@@\n-b\n+B\n", "A\n\nB\n");
    }

    #[test]
    fn hunks_may_share_the_lines_around_their_changes() {
        let ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        gives(ten, "@@\n 1\n-2\n+two\n 3\n@@\n 3\n-4\n+four\n", "1\ntwo\n3\nfour\n5\n6\n7\n8\n9\n");
        gives(ten, "@@\n 1\n 2\n+a\n 3\n@@\n 2\n 3\n+b\n", "1\n2\na\n3\nb\n4\n5\n6\n7\n8\n9\n");
        // The second one is written as if the first one were done.
        gives(ten, "@@\n 1\n-2\n+two\n@@\n two\n-3\n+three\n 4\n", "1\ntwo\nthree\n4\n5\n6\n7\n8\n9\n");
        gives(ten, "@@\n-2\n@@\n 1\n-3\n+x\n", "1\nx\n4\n5\n6\n7\n8\n9\n");
        gives("a\r\nb\nc\r\n", "@@\n a\n-b\n+B\n c\n@@\n B\n c\n+d\n", "a\r\nB\nc\r\nd\r\n");
        gives("a\nb", "@@\n-a\n+A\n b\n@@\n A\n-b\n+B\n", "A\nB");
        gives("a\r\nb\nc\n", " a\n-b\n", "a\r\nc\n");
        // At the end of the file, too, the one behind the first change is meant, as long as there is one.
        gives("x\nb\ny\nb\n", "@@\n y\n-b\n+B\n@@\n-b\n+C\n", "x\nC\ny\nB\n");
        gives("1\n2\n", "@@\n 1\n+a\n@@\n a\n+b\n 2\n", "1\na\nb\n2\n");
        for (file, unclear) in [
            ("1\n2\n", "@@\n 1\n+x\n 2\n@@\n 1\n+x\n 2\n"),
            ("1\n2\n", "@@\n 1\n+a\n@@\n+b\n a\n"),
            ("a\nb\n", "@@\n a\n-b\n+B\n\\ No newline at end of file\n@@\n b\n+c\n"),
            ("a", "@@\n-a\n\\ No newline at end of file\n+A\n@@\n a\n+b\n"),
        ] {
            assert!(patched(file, unclear).is_err(), "{unclear:?}: {:?}", patched(file, unclear));
        }
        let said = patched(ten, "@@\n-2\n+two\n@@\n-two\n+zwei\n").unwrap_err();
        assert!(said.contains("was not found"), "{said}");
        // Where the lines are there more than once, the one behind the first change is meant.
        let twice = "x\na\nx\nb\nx\nb\n";
        gives(twice, "@@\n-a\n+A\n x\n b\n@@\n-b\n+B\n", "x\nA\nx\nb\nx\nB\n");
        gives("k\na\nk\nb\n", "@@\n-a\n+A\n k\n@@\n k\n-b\n+B\n", "k\nA\nk\nB\n");
    }

    #[test]
    fn the_last_line_end_is_kept_unless_it_is_said_otherwise() {
        let none = "\\ No newline at end of file\n";
        gives("a\n", &format!("-a\n+b\n{none}"), "b");
        gives("a", &format!("-a\n{none}+b\n"), "b\n");
        gives("a", &format!("-a\n{none}+b\n{none}"), "b");
        gives("a", "+b\n", "a\nb");
        gives("a\n", "+b\n", "a\nb\n");
        gives("", "+b\n", "b\n");
        gives("a\r\n", "+b\n", "a\r\nb\r\n");
    }

    #[test]
    fn what_else_is_known_chooses_among_places() {
        let twice = "class A:\n    def f(self):\n        pass\n\nclass B:\n    def f(self):\n        pass\n";
        let hunk = "     def f(self):\n-        pass\n+        return 1\n";
        let second = format!("{}        return 1\n", twice.strip_suffix("        pass\n").unwrap());
        for hint in ["@@ class B:\n", "@@ class B: @@\n", "@@ class B:\n@@ def f(self):\n", "@@ -6,2 +6,2 @@\n"] {
            gives(twice, &format!("{hint}{hunk}"), &second);
        }
        gives(twice, &format!("@@\n{hunk}*** End of File\n"), &second);
        gives(twice, &format!("@@\n-class B:\n+class C:\n@@\n{hunk}"), &second.replace("class B", "class C"));
        let first = twice.replacen("pass", "return 1", 1);
        gives(twice, &format!("@@ class A:\n{hunk}"), &first);
        let said = patched(twice, &format!("@@ class C:\n{hunk}")).unwrap_err();
        assert!(said.contains("its hint `class C:` is not in the file"), "{said}");
        for hint in ["", "@@\n", "@@ def f(self):\n"] {
            let said = patched(twice, &format!("{hint}{hunk}")).unwrap_err();
            assert!(said.contains("fits at 2 places (lines 2, 6)"), "{hint}: {said}");
        }
    }

    #[test]
    fn lines_are_added_after_the_hint_or_at_the_end() {
        gives("import os\n\ndef f():\n", "@@ import os @@\n+import sys\n", "import os\nimport sys\n\ndef f():\n");
        gives("a\nb\n", "@@\n+c\n", "a\nb\nc\n");
        gives("a\nb\n", "@@ a\n+c\n*** End of File\n", "a\nb\nc\n");
        assert!(patched("a\na\n", "@@ a\n+c\n").unwrap_err().contains("2 times (lines 1, 2)"));
        assert!(patched("a\n", "@@ x\n+c\n").unwrap_err().contains("`x` is not in the file"));
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is_near() {
        let said = patched("one line here\nanother line\n", "-one line there\n+x\n").unwrap_err();
        assert_eq!(
            said,
            "the hunk at line 2 of the patch was not found; the nearest text begins in line 1. Read the file and copy its lines exactly"
        );
        let said = patched("a\nb\n", "@@\n-a\n+x\n*** End of File\n").unwrap_err();
        assert!(said.contains("not there"), "{said}");
        assert!(patched("a\nb\n", "@@\n-a\n-b\n+x\n@@\n-b\n+y\n").unwrap_err().contains("two hunks change line 2"));
    }
}
