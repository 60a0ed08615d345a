//! Changes in words, for a terminal of any width.
//!
//! Names come from a command that nobody trusts: whatever could move the cursor, turn the writing direction or hide
//! itself is shown as an escape.

use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use unicode_width::UnicodeWidthStr as _;

use super::changes::{Change, Changes, Entry, Inside, Kind, State};
use super::checks::Conflict;

/// How many names of one kind of change are shown.
const MOST_NAMES: usize = 12;
/// How many paths an error names.
const MOST_CONFLICTS: usize = 5;

impl Changes {
    /// What happened, in lines of up to `width` columns (a single long name may be longer), without colour:
    ///
    /// ```text
    /// added      3 files     db/schema_v8.sql  …
    /// changed    2 files     config/app.yaml (+2 −1)  docs/db.md (+14 −0)
    /// deleted    1 file      db/schema_v7.sql
    /// ```
    pub fn lines(&self, width: usize) -> Vec<String> {
        if self.is_empty() {
            return vec!["changed    nothing".to_owned()];
        }
        let of = |wanted: fn(&Entry) -> bool| self.entries.iter().filter(|entry| wanted(entry)).collect::<Vec<_>>();
        let mut lines = Vec::new();
        let mut group = |verb: &str, noun: &str, entries: Vec<&Entry>| {
            if !entries.is_empty() {
                lines.extend(wrapped(verb, &counted(entries.len(), noun), &entries, width));
            }
        };
        group("added", "file", of(|entry| entry.change == Change::Added && !is_folder(entry.new.as_ref())));
        let mut empty = of(|entry| entry.change == Change::Added && is_folder(entry.new.as_ref()));
        empty.retain(|folder| !self.holds_something(folder));
        group("added", "empty folder", empty);
        group("changed", "file", of(|entry| entry.change == Change::Changed));
        group("replaced", "path", of(|entry| entry.change == Change::Replaced));
        group("mode", "path", of(|entry| entry.change == Change::ModeChanged));
        group("deleted", "file", of(|entry| entry.change == Change::Deleted && !is_folder(entry.old.as_ref())));
        group("deleted", "folder", of(|entry| entry.change == Change::Deleted && is_folder(entry.old.as_ref())));
        lines
    }

    /// Whether something was added to an added folder. The entries are in order, but `a-b` stands between `a` and `a/b`.
    fn holds_something(&self, folder: &Entry) -> bool {
        let mut inner = folder.path.clone().into_os_string();
        inner.push("/");
        let at = self.entries.partition_point(|entry| entry.path.as_os_str() < inner.as_os_str());
        self.entries.get(at).is_some_and(|entry| entry.path.starts_with(&folder.path))
    }
}

/// 80 columns.
impl fmt::Display for Changes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines(80).join("\n"))
    }
}

fn is_folder(state: Option<&State>) -> bool {
    state.is_some_and(|state| state.kind == Kind::Folder)
}

fn wrapped(verb: &str, count: &str, entries: &[&Entry], width: usize) -> Vec<String> {
    let mut words: Vec<String> = entries.iter().take(MOST_NAMES).map(|entry| described(entry)).collect();
    if entries.len() > MOST_NAMES {
        words.push(format!("… and {} more", number((entries.len() - MOST_NAMES) as u64)));
    }
    let start = format!("{verb:<11}{count:<12}");
    let start = if start.ends_with(' ') { start } else { format!("{start}  ") };
    let indent = start.width();
    let (mut lines, mut line, mut is_first) = (Vec::new(), start, true);
    for word in words {
        if !is_first && line.width() + 2 + word.width() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            is_first = true;
        }
        if !is_first {
            line.push_str("  ");
        }
        line.push_str(&word);
        is_first = false;
    }
    lines.push(line);
    lines
}

fn described(entry: &Entry) -> String {
    let name = name(&entry.path);
    let several = if entry.names > 1 && matches!(entry.change, Change::Changed | Change::ModeChanged) {
        format!(" (one of {} names of this file; the others stay)", entry.names)
    } else {
        String::new()
    };
    match (entry.change, &entry.old, &entry.new) {
        (Change::Changed, Some(_), Some(new)) if new.kind == Kind::Link => {
            format!("{name} → {}", new.target.as_deref().map(self::name).unwrap_or_default())
        }
        (Change::Changed, Some(old), Some(new)) => match entry.lines {
            Some(lines) => format!("{name} (+{} −{}){several}", lines.plus, lines.minus),
            None => format!("{name} ({} → {}){several}", bytes(old.size), bytes(new.size)),
        },
        (Change::ModeChanged, Some(old), Some(new)) => format!("{name} ({}){several}", permissions(old, new)),
        (Change::Replaced, Some(old), Some(new)) => {
            let held = entry.inside.map(|held| format!(", {}", inside(held))).unwrap_or_default();
            format!("{name} ({}{held} → {})", old.kind.in_words(), new.kind.in_words())
        }
        (Change::Added, _, Some(State { target: Some(target), .. })) => format!("{name} → {}", self::name(target)),
        (Change::Added, _, Some(new)) if !matches!(new.kind, Kind::File | Kind::Folder) => {
            format!("{name} ({})", new.kind.in_words())
        }
        (Change::Deleted, ..) if entry.inside.is_some() => {
            format!("{name} ({})", inside(entry.inside.unwrap_or_default()))
        }
        _ => name,
    }
}

/// `644 → 755`, or the owners where those changed.
pub(super) fn permissions(old: &State, new: &State) -> String {
    if old.mode != new.mode {
        format!("{:03o} → {:03o}", old.mode, new.mode)
    } else if (old.uid, old.gid) != (new.uid, new.gid) {
        format!("owner {}:{} → {}:{}", old.uid, old.gid, new.uid, new.gid)
    } else {
        "extended attributes".to_owned()
    }
}

/// `38 files, 9.7 MB`.
pub(super) fn inside(inside: Inside) -> String {
    if inside == Inside::default() {
        return "empty".to_owned();
    }
    let folders =
        if inside.folders == 0 { String::new() } else { format!("{}, ", counted_u64(inside.folders, "folder")) };
    format!("{folders}{}, {}", counted_u64(inside.files, "file"), bytes(inside.bytes))
}

/// A path that is safe to print: control and format characters, and bytes that are no UTF-8, are escaped.
pub(super) fn name(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' | '"' | '\\' => name.push(character),
                other => name.extend(other.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(name, "\\x{byte:02x}");
        }
    }
    name
}

/// `9.7 MB`: two digits that matter, powers of a thousand.
pub(super) fn bytes(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB", "EB"];
    let (mut tenths, mut unit) = (u128::from(bytes) * 10, None);
    for name in units {
        if tenths < 9_995 {
            break;
        }
        tenths = (tenths + 500) / 1000;
        unit = Some(name);
    }
    match unit {
        None => format!("{bytes} B"),
        Some(unit) if tenths < 100 => format!("{}.{} {unit}", tenths / 10, tenths % 10),
        Some(unit) => format!("{} {unit}", (tenths + 5) / 10),
    }
}

/// `10,000`.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn counted(count: usize, noun: &str) -> String {
    counted_u64(count as u64, noun)
}

fn counted_u64(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", number(count), if count == 1 { "" } else { "s" })
}

/// The error that names what changed underneath.
pub(super) fn conflicts(undoing: bool, conflicts: &[Conflict]) -> String {
    let named =
        conflicts.iter().take(MOST_CONFLICTS).map(|conflict| format!("{} {}", name(&conflict.path), conflict.what));
    let mut named: Vec<String> = named.collect();
    if conflicts.len() > MOST_CONFLICTS {
        named.push(format!("and {} more", conflicts.len() - MOST_CONFLICTS));
    }
    let named = named.join("; ");
    if undoing {
        format!("rehearsal: not taken back, nothing was touched: since the commit {named}. Put these right by hand")
    } else {
        format!("rehearsal: not committed, nothing was touched: since it began {named}. Rehearse again")
    }
}
