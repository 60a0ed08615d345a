//! A change as a unified diff that stays small however large the file and the change are.
//!
//! Nothing is searched: the places of the change are known, so the time follows the size of the change, not of the file.
//! This is for eyes: long lines are cut, carriage returns at line ends are not shown, and at some point it says how much
//! more there is.

use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::matching::Lines;
use super::view::Splice;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Longer lines are cut for the eye; the file is not.
const LONGEST_LINE: usize = 500;

/// So many lines are shown.
const MOST_LINES: usize = 400;

/// So many bytes, the last line aside.
const MOST_BYTES: usize = 32 * 1024;

/// Larger changes are not compared line by line (old lines times new lines).
const MOST_COMPARED: usize = 1_000_000;

const NO_END: &str = "\\ No newline at end of file";

/// The diff of `before` with every splice made; they are in order and do not overlap. `before` and `after` are the names in
/// its head, `/dev/null` for a file that is not there.
pub(crate) fn unified(names: [&str; 2], before: &Lines<'_>, text: &str, splices: &[Splice]) -> String {
    let mut out = Out::new(names);
    let mut rest = splices;
    let mut grown = 0_isize;
    while !rest.is_empty() {
        let (count, lines) = group(before, text, rest);
        let (these, others) = rest.split_at(count);
        rest = others;
        let places = before.start(lines.start)..before.start(lines.end);
        let changed = with(text, places.clone(), these);
        let (old, new) = (numbered(&text[places]), numbered(&changed));
        if out.is_full() {
            out.left_out += old.len().max(new.len());
            continue;
        }
        let first_new = lines.start.saturating_add_signed(grown);
        out.hunk(before, text, lines.start, first_new, &old, &new);
        grown += new.len().cast_signed() - old.len().cast_signed();
    }
    out.finish()
}

/// The beginning of a diff, for somebody who looks on: of several files each with its name, of one without.
pub(crate) fn for_eyes(diff: &str) -> Vec<String> {
    /// Enough to recognise the change.
    const SHOWN: usize = 16;
    let several = diff.lines().filter(|line| line.starts_with("+++ ")).count() > 1;
    let mut lines = Vec::new();
    let mut more = 0;
    for line in diff.lines().filter(|line| !line.starts_with("--- ")) {
        let line = match line.strip_prefix("+++ ") {
            Some(_) if !several => continue,
            Some(name) => name.strip_prefix("b/").unwrap_or(name),
            None => line,
        };
        if lines.len() < SHOWN {
            lines.push(line.to_owned());
        } else {
            more += 1;
        }
    }
    if more > 0 {
        lines.push(format!("… {more} more lines"));
    }
    lines
}

/// The diff of a text that comes, or goes, as a whole.
pub(crate) fn whole(names: [&str; 2], text: &str, comes: bool) -> String {
    let (before, after) = if comes { ("", text) } else { (text, "") };
    let splice = Splice { range: 0..before.len(), new: after.to_owned() };
    unified(names, &Lines::of(before), before, &[splice])
}

/// How many of the splices go into one hunk, and which lines they change.
fn group(lines: &Lines<'_>, text: &str, splices: &[Splice]) -> (usize, Range<usize>) {
    let mut range = touched(lines, text, &splices[0]);
    let mut count = 1;
    for splice in &splices[1..] {
        let next = touched(lines, text, splice);
        if next.start > range.end + 2 * CONTEXT {
            break;
        }
        range.end = range.end.max(next.end);
        count += 1;
    }
    (count, range)
}

/// The whole lines that a splice changes.
fn touched(lines: &Lines<'_>, text: &str, splice: &Splice) -> Range<usize> {
    let begins_line = |at: usize| at == 0 || text.as_bytes()[at - 1] == b'\n';
    let Range { start, end } = splice.range;
    if start == text.len() && begins_line(start) {
        return lines.len()..lines.len();
    }
    let first = if text.is_empty() { 0 } else { lines.at(start) };
    // Ends with whole lines: then the line behind it is as it was.
    let is_clean = begins_line(start) && begins_line(end) && (splice.new.is_empty() || splice.new.ends_with('\n'));
    let last = if is_clean && end == text.len() {
        lines.len()
    } else if is_clean {
        lines.at(end)
    } else {
        lines.at(end.min(text.len())) + 1
    };
    first..last.min(lines.len())
}

/// A part of the text with the splices within it made.
fn with(text: &str, places: Range<usize>, splices: &[Splice]) -> String {
    let mut changed = String::new();
    let mut done = places.start;
    for splice in splices {
        changed.push_str(&text[done..splice.range.start]);
        changed.push_str(&splice.new);
        done = splice.range.end;
    }
    changed + &text[done..places.end]
}

fn numbered(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

struct Out {
    text: String,
    lines: usize,
    left_out: usize,
}

impl Out {
    fn new(names: [&str; 2]) -> Self {
        let [before, after] = names;
        Self { text: format!("--- {before}\n+++ {after}\n"), lines: 0, left_out: 0 }
    }

    fn is_full(&self) -> bool {
        self.lines >= MOST_LINES || self.text.len() >= MOST_BYTES
    }

    fn hunk(&mut self, before: &Lines<'_>, text: &str, first: usize, first_new: usize, old: &[&str], new: &[&str]) {
        let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
        let above = first.min(CONTEXT.saturating_sub(head));
        let last = first + old.len();
        let below = (before.len() - last).min(CONTEXT.saturating_sub(tail));
        // What is the same at both sides is context, and not more of it than elsewhere.
        let (skip, drop) = (head.saturating_sub(CONTEXT), tail.saturating_sub(CONTEXT));
        let line = |at: usize| &text[before.start(at)..before.start(at + 1)];
        let number = |first: usize, count: usize| {
            if count == 0 {
                format!("{first},0")
            } else if count == 1 {
                format!("{}", first + 1)
            } else {
                format!("{},{count}", first + 1)
            }
        };
        let counts = [old, new].map(|lines| above + lines.len() - skip - drop + below);
        let starts = [first, first_new].map(|first| first + skip - above);
        self.text.push_str(&format!("@@ -{} +{} @@\n", number(starts[0], counts[0]), number(starts[1], counts[1])));
        (first - above..first).for_each(|at| self.line(' ', line(at)));
        old[skip..head].iter().for_each(|line| self.line(' ', line));
        let (mid_old, mid_new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
        if mid_old.len().saturating_mul(mid_new.len()) > MOST_COMPARED {
            for (sign, lines) in [('-', mid_old), ('+', mid_new)] {
                for line in lines {
                    self.line(sign, line);
                }
            }
        } else {
            for op in capture_diff_slices(Algorithm::Myers, mid_old, mid_new) {
                let is_same = op.tag() == DiffTag::Equal;
                mid_old[op.old_range()].iter().for_each(|line| self.line(if is_same { ' ' } else { '-' }, line));
                if !is_same {
                    mid_new[op.new_range()].iter().for_each(|line| self.line('+', line));
                }
            }
        }
        old[old.len() - tail..old.len() - drop].iter().for_each(|line| self.line(' ', line));
        (last..last + below).for_each(|at| self.line(' ', line(at)));
    }

    fn line(&mut self, sign: char, line: &str) {
        if self.is_full() {
            self.left_out += 1;
            return;
        }
        self.lines += 1;
        let content = line.strip_suffix('\n').unwrap_or(line);
        let shown = content.strip_suffix('\r').unwrap_or(content);
        self.text.push(sign);
        match shown.char_indices().nth(LONGEST_LINE) {
            Some((at, _)) => self.text.extend([&shown[..at], "… [line shortened]"]),
            None => self.text.push_str(shown),
        }
        self.text.push('\n');
        if content.len() == line.len() {
            self.text.push_str(NO_END);
            self.text.push('\n');
        }
    }

    fn finish(mut self) -> String {
        if self.left_out > 0 {
            self.text.push_str(&format!("… [{} more]\n", hermes_core::plural(self.left_out, "line")));
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, splices: &[(Range<usize>, &str)]) -> String {
        let splices: Vec<_> =
            splices.iter().map(|(range, new)| Splice { range: range.clone(), new: (*new).into() }).collect();
        unified(["a/f", "b/f"], &Lines::of(before), before, &splices)
    }

    /// What another program makes of the same change, where it has one hunk.
    fn reference(before: &str, after: &str) -> String {
        let diff = similar::TextDiff::from_lines(before, after);
        diff.unified_diff().header("a/f", "b/f").to_string()
    }

    #[test]
    fn it_is_what_others_make_of_the_same_change() {
        let ten = (1..=10).map(|at| format!("{at}\n")).collect::<Vec<_>>().concat();
        for (before, range, new) in [
            (ten.as_str(), 8..9, "five"),
            (&ten, 0..0, "zero\n"),
            (&ten, 0..2, ""),
            (&ten, 21..21, "eleven\n"),
            (&ten, 0..21, "all\n"),
            (&ten, 4..10, "3\nx\n5\n"),
            (&ten, 3..4, " "),
            ("a", 0..1, "b"),
            ("a\nb", 3..3, "\n"),
            ("", 0..0, "new\n"),
            ("gone\n", 0..5, ""),
        ] {
            let after = [&before[..range.start], new, &before[range.end..]].concat();
            assert_eq!(diff(before, &[(range.clone(), new)]), reference(before, &after), "{range:?} {new:?}");
        }
        let after = ten.replace('2', "two").replace('9', "nine");
        assert_eq!(diff(&ten, &[(2..3, "two"), (16..17, "nine")]), reference(&ten, &after));
    }

    #[test]
    fn changes_far_apart_are_hunks_of_their_own_with_numbers_that_fit() {
        let many = (1..=40).map(|at| format!("{at:02}\n")).collect::<Vec<_>>().concat();
        let after = many.replacen("05\n", "x\ny\n", 1).replacen("30\n", "", 1);
        assert_eq!(diff(&many, &[(12..15, "x\ny\n"), (87..90, "")]), reference(&many, &after));
    }

    #[test]
    fn it_stays_small() {
        let long = format!("{}\n", "x".repeat(100_000));
        let shown = diff(&long, &[(7..8, "y")]);
        assert!(shown.len() < 4_000 && shown.contains("line shortened"), "{}", shown.len());
        let many = "a\n".repeat(100_000);
        let splices: Vec<_> = (0..100_000).map(|at| (2 * at..2 * at + 1, "b")).collect();
        let shown = diff(&many, &splices);
        assert!(shown.len() < 40_000 && shown.ends_with("lines more]\n"), "{}", shown.len());
    }
}
