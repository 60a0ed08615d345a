//! What the model reads: one JSON document, whatever was found and however little room there is.
//!
//! The tricky idea: the answer is cut here, between results, and says so. Somebody who cuts a long text later cannot know
//! where a result ends. So every result is weighed as the JSON it becomes, and the rest is a page of its own.

use std::path::{Path, PathBuf};

use hermes_core::{JsonMap, grouped, plural, shown_path};
use serde_json::{Value, json};

use super::content::{Found, Omitted};
use super::rows::Row;
use super::walk::{Scope, Skipped};

/// From this many rows on, paths are written once and rows below them (spec tools §7.3).
const GROUPED_FROM: usize = 5;
/// Characters for everything but the results.
const FRAME: usize = 2_500;
/// Binary files with a match that are named.
const MOST_BINARY_NAMES: usize = 10;
/// Characters of all these names.
const MOST_BINARY_CHARS: usize = 1_000;

/// Which results are shown, and how.
pub(super) struct Page<'a> {
    pub(super) scope: &'a Scope,
    pub(super) cwd: &'a Path,
    pub(super) offset: usize,
    pub(super) limit: usize,
    pub(super) context: usize,
    /// Characters of the whole answer.
    pub(super) room: usize,
}

/// A result and its description for people.
pub(super) struct Answer {
    pub(super) json: Value,
    pub(super) total: usize,
    pub(super) summary: String,
}

/// How far a search came.
#[derive(Clone, Copy, Default)]
pub(super) struct Reach {
    pub(super) is_partial: bool,
    pub(super) limit: Option<&'static str>,
    pub(super) searched: usize,
}

impl Reach {
    pub(super) fn of(found: &Found) -> Self {
        Self { is_partial: found.is_partial, limit: found.limit, searched: found.searched }
    }
}

/// What is left of the room.
struct Room(usize);

impl Room {
    fn takes(&mut self, value: &Value) -> bool {
        let chars = value.to_string().chars().count() + 1;
        let fits = chars <= self.0;
        self.0 = self.0.saturating_sub(chars);
        fits
    }
}

impl Page<'_> {
    fn room(&self) -> Room {
        Room((self.room - self.room / 10).saturating_sub(FRAME))
    }

    fn path(&self, below: &Path) -> String {
        let path = self.scope.stated(below);
        let relative = path.strip_prefix(self.cwd).ok().filter(|below| !below.as_os_str().is_empty());
        let path = relative.unwrap_or(&path);
        path.to_str().map_or_else(|| in_bash(path), str::to_owned)
    }

    /// The paths, as many as there is room for: at least one.
    fn paths(&self, all: &[PathBuf]) -> Vec<String> {
        let mut room = self.room();
        let page = all.iter().skip(self.offset).take(self.limit).map(|below| self.path(below)).enumerate();
        page.take_while(|(index, path)| room.takes(&json!(path)) || *index == 0).map(|(_, path)| path).collect()
    }

    /// `{"files": […]}` for names or for files with a match.
    pub(super) fn files(&self, all: &[PathBuf], reach: Reach, summary: &str) -> Answer {
        let page = self.paths(all);
        let shown = page.len();
        self.finish(json!({ "files": page }), (all.len(), all.len()), shown, reach, summary)
    }

    /// `{"counts": {…}}`; the total counts lines, the page files.
    pub(super) fn counts(&self, found: &Found) -> Answer {
        let files: Vec<PathBuf> = found.files.iter().map(|(path, _)| path.clone()).collect();
        let page = self.paths(&files);
        let shown = page.len();
        let counts = found.files.iter().skip(self.offset).map(|(_, count)| json!(count));
        let counts: JsonMap = page.into_iter().zip(counts).collect();
        let body = json!({ "counts": counts, "total_files": files.len() });
        self.finish(body, (found.total(), files.len()), shown, Reach::of(found), &in_words(found))
    }

    /// The matching lines, as objects or grouped by file.
    pub(super) fn lines(&self, found: &Found, mut rows: Vec<Row>) -> Answer {
        let as_objects = rows.len() < GROUPED_FROM
            || rows.iter().any(|row| row.last > row.line || !is_plain(&self.path(&row.path)));
        let mut room = self.room();
        let mut current: Option<&Path> = None;
        let fitting = rows.iter().take_while(|row| {
            if as_objects {
                return room.takes(&self.object(row));
            }
            let is_new = current != Some(row.path.as_path());
            current = Some(&row.path);
            (!is_new || room.takes(&json!(self.path(&row.path)))) && room.takes(&json!(line_of(row)))
        });
        let fitting = fitting.count();
        if fitting < rows.len() {
            match rows[..fitting].iter().rposition(|row| row.is_match) {
                Some(last) => rows.truncate(last + 1),
                // The lines before the very first match have taken its place.
                None => rows.retain({
                    let mut is_first = true;
                    move |row| row.is_match && std::mem::replace(&mut is_first, false)
                }),
            }
        }
        let shown = rows.iter().filter(|row| row.is_match).count();
        let body = if as_objects {
            json!({ "matches": rows.iter().map(|row| self.object(row)).collect::<Vec<_>>() })
        } else {
            let format = if self.context > 0 {
                "path, then below it `LINE: text` for a match and `LINE- text` for a line around it"
            } else {
                "path, then below it `LINE: text`"
            };
            json!({ "matches_format": format, "matches_text": self.text(&rows) })
        };
        let total = found.total();
        let mut answer = self.finish(body, (total, total), shown, Reach::of(found), &in_words(found));
        let lossy = rows.iter().filter(|row| row.is_lossy).count();
        if lossy > 0 {
            answer.json["lossy_lines"] =
                json!(format!("{} not UTF-8; \u{fffd} stands for bytes that are no text", of_lines(lossy)));
        }
        answer
    }

    fn object(&self, row: &Row) -> Value {
        let mut object = json!({ "path": self.path(&row.path), "line": row.line, "content": row.text });
        if row.last > row.line {
            object["last_line"] = json!(row.last);
        }
        if !row.is_match {
            object["context"] = json!(true);
        }
        object
    }

    fn text(&self, rows: &[Row]) -> String {
        let mut out = String::new();
        let mut current = None;
        for row in rows {
            if current != Some(&row.path) {
                out += &self.path(&row.path);
                out.push('\n');
                current = Some(&row.path);
            }
            out += &line_of(row);
            out.push('\n');
        }
        out
    }

    /// `total` results, `pages` of them in the unit of the page, `shown` here; says what is left out and how to get it.
    fn finish(
        &self,
        body: Value,
        (total, pages): (usize, usize),
        shown: usize,
        reach: Reach,
        summary: &str,
    ) -> Answer {
        let mut json = json!({ "total_count": total });
        if reach.is_partial {
            json["total_is_at_least"] = json!(true);
        }
        if let (Some(json), Value::Object(body)) = (json.as_object_mut(), body) {
            json.extend(body);
        }
        let end = self.offset.saturating_add(shown);
        json["truncated"] = json!(end < pages || reach.is_partial);
        let at_least = if reach.is_partial { "at least " } else { "" };
        let mut hints = Vec::new();
        if shown > 0 && (end < pages || reach.is_partial && reach.limit.is_none()) {
            json["next_offset"] = json!(end);
            let (first, last, all) = (self.offset + 1, end, pages);
            let [first, last, all] = [first, last, all].map(|number| grouped(number as u64));
            hints.push(format!("showing {first}-{last} of {at_least}{all}; continue with offset {end}"));
            if reach.is_partial && reach.limit.is_none() {
                hints.push("counting stopped early; output_mode `count` counts all".into());
            }
        } else if total > 0 && shown == 0 {
            hints.push(format!("offset {} is past the end: {at_least}{} in all", self.offset, grouped(pages as u64)));
        }
        if let Some(limit) = reach.limit {
            json["limit_reason"] = json!(limit);
            json["searched_files"] = json!(reach.searched);
            hints.push("the search ended early; name a folder further down or a file_glob".into());
        } else if shown < self.limit && end < pages {
            json["limit_reason"] = json!("result_size");
        }
        if !hints.is_empty() {
            json["hint"] = json!(hints.join("; "));
        }
        let summary = format!("{at_least}{summary}");
        Answer { json, total, summary }
    }
}

impl Answer {
    /// Says which binary files have a match.
    pub(super) fn with_binary(mut self, page: &Page<'_>, binary: &[PathBuf]) -> Self {
        if !binary.is_empty() {
            let mut room = Room(MOST_BINARY_CHARS);
            let names = binary.iter().take(MOST_BINARY_NAMES).map(|path| page.path(path));
            let names: Vec<String> = names.take_while(|name| room.takes(&json!(name))).collect();
            let rest = binary.len() - names.len();
            self.json["binary_matches"] = json!(names);
            if rest > 0 {
                self.json["more_binary_matches"] = json!(rest);
            }
        }
        self
    }

    /// Says how much was not, or not wholly, searched.
    pub(super) fn with_omitted(mut self, omitted: Omitted) -> Self {
        for (key, count) in omitted.named() {
            if count > 0 {
                self.json["_omitted"][key] = json!(count);
            }
        }
        self
    }

    /// A result of nothing says where it looked, and what it did not look at and why.
    pub(super) fn with_zero(mut self, place: &str, searched: Option<usize>, skipped: Skipped, omitted: Omitted) -> Self {
        let Skipped { hidden, ignored, is_at_least } = skipped;
        let mut parts = Vec::new();
        for (count, what) in
            [(ignored, "ignored (include_ignored finds them)"), (hidden, "hidden (include_hidden finds them)")]
        {
            if count > 0 {
                parts.push(format!("{} {what}", grouped(count as u64)));
            }
        }
        for (key, count) in omitted.named() {
            if count > 0 {
                parts.push(format!("{} {}", grouped(count as u64), key.replace('_', " ").replace(" files", "")));
            }
        }
        for (key, count) in [("ignored", ignored), ("hidden", hidden)] {
            if count > 0 {
                self.json["skipped"][key] = json!(count);
            }
        }
        let mut hint = format!("{} in {place}", self.summary);
        if let Some(searched) = searched {
            hint += &format!("; {} searched", plural(searched, "file"));
        }
        if !parts.is_empty() {
            let at_least = if is_at_least { "at least " } else { "" };
            hint += &format!("; skipped {at_least}{}", parts.join(", "));
        }
        if let Some(binary) = self.json["binary_matches"].as_array() {
            hint += &format!("; binary files match, see binary_matches ({})", binary.len());
        }
        self.hint(&hint);
        self
    }

    /// Adds a sentence for the model.
    pub(super) fn hint(&mut self, hint: &str) {
        let before = self.json["hint"].as_str().map(|before| format!("{before}; ")).unwrap_or_default();
        self.json["hint"] = json!(format!("{before}{hint}"));
    }
}

impl Omitted {
    fn named(self) -> [(&'static str, usize); 4] {
        [
            ("protected_files", self.protected),
            ("binary_files", self.binary),
            ("too_large_files", self.too_large),
            ("unreadable", self.unreadable),
        ]
    }
}

/// `14 matches in 3 files`.
pub(super) fn in_words(found: &Found) -> String {
    match found.files.len() {
        0 => "0 matches".into(),
        files => format!("{} in {}", plural(found.total(), "match"), plural(files, "file")),
    }
}

fn of_lines(count: usize) -> String {
    format!("{} {}", plural(count, "line"), if count == 1 { "is" } else { "are" })
}

fn line_of(row: &Row) -> String {
    let sign = if row.is_match { ':' } else { '-' };
    let blank = if row.text.is_empty() { "" } else { " " };
    format!("  {}{sign}{blank}{}", row.line, row.text)
}

/// Whether a path can stand on a line of its own and be told from the lines below it.
fn is_plain(path: &str) -> bool {
    !path.contains(char::is_control) && path.trim() == path
}

/// A path that is not UTF-8, as bash reads it, so that no two look alike: `$'caf\xe9'`.
fn in_bash(path: &Path) -> String {
    let mut out = String::from("$'");
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                c if c.is_ascii_control() => out += &format!("\\x{:02x}", c as u32),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            out += &format!("\\x{byte:02x}");
        }
    }
    out.push('\'');
    out
}

/// The place of a search for people and models.
pub(super) fn place(scope: &Scope, cwd: &Path) -> String {
    shown_path(&scope.root, cwd)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn names_that_are_no_text_are_told_apart() {
        let shown = |bytes: &[u8]| in_bash(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(shown(b"caf\xe9 it's\n"), "$'caf\\xe9 it\\'s\\x0a'");
        assert_ne!(shown(b"\xff"), shown(b"\xfe"));
    }
}
