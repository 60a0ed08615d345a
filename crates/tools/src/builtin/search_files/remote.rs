//! The same search where the files are on another machine: `find` says what is there, `rg` or `grep` says which lines
//! match, and everything else is decided here.
//!
//! The tricky idea: the programs there are asked for as little as possible. Which files count (hidden, ignored, by glob,
//! too large, not for the model) is decided here, by the same code and tables as on our own disk; so a result does not
//! depend on what is installed. Names go there on standard input with zeros between them and come back as base64, since
//! what a command prints is made fit to be read and a name may hold anything. The pattern is compiled here first, is one
//! quoted word after `-e`, and `--` ends the options.
//!
//! What it cannot do: rules that git keeps outside of the tree (`core.excludesFile`, `.git/info/exclude`) are not read; a
//! search across lines needs rg there; UTF-16 is found by rg only.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hermes_core::{Command, FinishedHow, ToolCx};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::Value;

use super::answer::{Answer, Reach};
use super::content::{Found, Omitted};
use super::pattern::{Engine, Pattern};
use super::rows::{Row, blocks, breaks_in, of_page};
use super::walk::{Scope, Skipped};
use super::{OutputMode, Page, Wanted, matched, named};

/// Bytes of names, and of lines, that are fetched.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of names that one command gets on standard input, and where there is none, as a part of the command.
const BY_INPUT: usize = 8 * 1024 * 1024;
const IN_SCRIPT: usize = 48 * 1024;
/// A larger file is only searched if it is named.
const LARGEST_FILE: u64 = 1024 * 1024 * 1024;
/// Bytes of one file of ignore rules.
const LARGEST_RULES: u64 = 256 * 1024;
const RULES: [&str; 2] = [".ignore", ".gitignore"];

/// Searches there. The error is a sentence.
pub(super) async fn search(cx: &ToolCx, page: &Page<'_>, wanted: &Wanted) -> Result<Answer, String> {
    let there = There { cx, scope: page.scope };
    let mut listing = there.list().await?;
    let scope = page.scope;
    match wanted {
        Wanted::Names => {
            let reach =
                Reach { is_partial: listing.limit.is_some(), limit: listing.limit, searched: listing.files.len() };
            let mut files = listing.files.into_iter().map(|file| (file.modified, file.below)).collect();
            let omitted = Omitted { unreadable: listing.unreadable, ..Omitted::default() };
            Ok(named(page, &mut files, reach, omitted, || listing.skipped))
        }
        Wanted::Lines(pattern, mode) => {
            let mut found = Found { limit: listing.limit, ..Found::default() };
            found.omitted.unreadable = listing.unreadable;
            listing.files.retain(|file| {
                let is_protected = scope.withholds(&scope.real(&file.below));
                let is_too_large = !is_protected && file.size > LARGEST_FILE && !scope.is_file;
                found.omitted.protected += usize::from(is_protected);
                found.omitted.too_large += usize::from(is_too_large);
                !is_protected && !is_too_large
            });
            found.searched = listing.files.len();
            let context = if *mode == OutputMode::Content { page.context } else { 0 };
            let rows = there.matches(&listing, pattern, context, &mut found).await?;
            found.is_partial = found.limit.is_some();
            let mut wanted = Vec::new();
            let mut before = 0;
            for (path, rows) in rows {
                let count = rows.iter().filter(|row| row.is_match).count();
                let start = page.offset.saturating_sub(before).min(count);
                let end = page.offset.saturating_add(page.limit).saturating_sub(before).min(count);
                wanted.extend(of_page(rows, &(start..end), page.context as u64));
                before += count;
                // A file counts once where files are counted.
                found.files.push((path, if *mode == OutputMode::FilesOnly { 1 } else { count }));
            }
            let mut answer = matched(page, *mode, &found, wanted, || listing.skipped);
            answer.json["engine"] = listing.program.name().into();
            Ok(answer)
        }
    }
}

/// The other machine, for one search.
struct There<'a> {
    cx: &'a ToolCx,
    scope: &'a Scope,
}

/// What is there.
struct Listing {
    /// Sorted by path.
    files: Vec<File>,
    program: Program,
    skipped: Skipped,
    /// Folders that could not be listed.
    unreadable: usize,
    limit: Option<&'static str>,
}

struct File {
    below: PathBuf,
    modified: SystemTime,
    size: u64,
}

/// Who can match lines there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Ripgrep,
    /// Perl's expressions, with Unicode classes if they are known.
    GrepPerl {
        unicode: bool,
    },
    Grep,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Ripgrep => "rg",
            Self::GrepPerl { .. } => "grep -P",
            Self::Grep => "grep -E",
        }
    }
}

/// Everything a command printed as base64, and the text after it.
struct Printed {
    bytes: Vec<u8>,
    rest: String,
    limit: Option<&'static str>,
}

impl There<'_> {
    async fn run(&self, script: String, input: Option<Vec<u8>>) -> Result<Printed, String> {
        let left = self.scope.stop.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(10));
        let cap = MOST_BYTES / 2 * 3;
        let command = Command { input, ..Command::new(script, left, cap) };
        let environment = &self.cx.environment;
        let ran = environment.run(command, &self.cx.cancel).await.map_err(|error| error.to_string())?;
        let limit = match ran.how {
            FinishedHow::Cancelled => Some("cancelled"),
            FinishedHow::TimedOut | FinishedHow::Kept(_) => Some("search_timeout"),
            FinishedHow::Exited(_) | FinishedHow::Signalled(_) if ran.omitted_bytes > 0 => Some("output_limit"),
            FinishedHow::Exited(_) | FinishedHow::Signalled(_) => None,
        };
        let (text, rest) = ran.output.split_once('#').unwrap_or((&ran.output, ""));
        // What was cut off in the middle is a beginning of base64 still.
        let mut text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let broken = text.find(|c: char| !c.is_ascii_alphanumeric() && !"+/=".contains(c)).unwrap_or(text.len());
        text.truncate(broken / 4 * 4);
        let bytes = BASE64.decode(&text).map_err(|_| format!("{} answered nonsense", environment.backend()))?;
        let limit = limit.or_else(|| (bytes.len() >= MOST_BYTES).then_some("output_limit"));
        Ok(Printed { bytes, rest: rest.to_owned(), limit })
    }

    async fn list(&self) -> Result<Listing, String> {
        let scope = self.scope;
        let root = quoted(&scope.real);
        let with_git = scope.with_hidden && scope.with_ignored;
        let mut prune = if with_git { String::new() } else { "-name .git -prune -o ".to_owned() };
        if scope.real == Path::new("/") {
            prune += "\\( -path /proc -o -path /sys -o -path /dev \\) -prune -o ";
        }
        let find = if scope.is_file {
            format!("find {root} -prune -printf '%T@ %s \\0'")
        } else {
            format!("find {root} -mindepth 1 {prune}-type f -printf '%T@ %s %P\\0'")
        };
        let script = format!(
            "export LC_ALL=C; exec 3>&1\n\
             lost=$({{ {find} | head -c {MOST_BYTES} | base64 >&3; }} 2>&1 | wc -l)\n\
             echo '#'; echo \"lost $lost\"\n\
             command -v find base64 head xargs >/dev/null || echo missing\n\
             command -v rg >/dev/null && echo rg\n\
             echo x | LC_ALL=C.UTF-8 grep -qP '(*UCP)x' 2>/dev/null && echo unicode\n\
             echo x | grep -qP x 2>/dev/null && echo perl\n\
             true"
        );
        let printed = self.run(script, None).await?;
        let says = |word: &str| printed.rest.lines().any(|line| line.trim() == word);
        if says("missing") {
            return Err("the backend lacks find, xargs, head or base64, which a search needs there; use terminal".into());
        }
        let program = match () {
            () if says("rg") => Program::Ripgrep,
            () if says("unicode") => Program::GrepPerl { unicode: true },
            () if says("perl") => Program::GrepPerl { unicode: false },
            () => Program::Grep,
        };
        let lost = printed.rest.lines().find_map(|line| line.trim().strip_prefix("lost ")?.trim().parse().ok());
        let mut all = records(&printed.bytes);
        all.sort_by(|a, b| a.below.cmp(&b.below));
        let (files, skipped) = self.chosen(all).await;
        let unreadable = lost.unwrap_or(0);
        Ok(Listing { files, program, skipped, unreadable, limit: printed.limit })
    }

    /// The files that the rules and globs leave, and how many they do not.
    async fn chosen(&self, all: Vec<File>) -> (Vec<File>, Skipped) {
        let scope = self.scope;
        let mut rules = Rules::default();
        let mut above = Rules::default();
        if !scope.with_ignored && !scope.is_file {
            for file in &all {
                if let Some(kind) = RULES.iter().position(|name| file.below.file_name() == Some(OsStr::new(name))) {
                    rules.read(self.cx, scope.real(&file.below), kind).await;
                }
            }
            let mut saw_git = self.cx.environment.stat(&scope.real.join(".git")).await.is_ok();
            for folder in scope.real.ancestors().skip(1) {
                for (kind, name) in RULES.iter().enumerate() {
                    if kind == 0 || !saw_git {
                        above.read(self.cx, folder.join(name), kind).await;
                    }
                }
                saw_git = saw_git || self.cx.environment.stat(&folder.join(".git")).await.is_ok();
            }
        }
        // As on our own disk: rules from above that would leave nothing of a named folder do not hold in it.
        let mut with_above = rules.clone();
        with_above.folders.extend(above.folders);
        let mut decided = with_above.decide(scope, &all);
        if scope.is_named && !decided.contains(&true) {
            decided = rules.decide(scope, &all);
        }
        let mut skipped = Skipped::default();
        let chosen = all.into_iter().zip(decided).filter(|(file, _)| scope.accepts(&file.below));
        let chosen = chosen.filter_map(|(file, is_kept)| {
            if !is_kept {
                skipped.count(scope, &file.below);
            }
            is_kept.then_some(file)
        });
        (chosen.collect(), skipped)
    }

    /// The rows of each file with a match, sorted; binary files go to `found`.
    async fn matches(
        &self,
        listing: &Listing,
        pattern: &Pattern,
        context: usize,
        found: &mut Found,
    ) -> Result<BTreeMap<PathBuf, Vec<Row>>, String> {
        let script = script(listing.program, pattern, context)?;
        let by_input = self.cx.environment.capabilities().input;
        let mut rows = BTreeMap::new();
        let mut left = MOST_BYTES;
        for names in batches(self.scope, &listing.files, if by_input { BY_INPUT } else { IN_SCRIPT }) {
            let printed = if by_input {
                self.run(script.clone(), Some(names)).await?
            } else {
                let names = BASE64.encode(names);
                self.run(format!("base64 -d <<< {names} | {{\n{script}\n}}"), None).await?
            };
            left = left.saturating_sub(printed.bytes.len());
            let is_whole = printed.limit.is_none();
            match listing.program {
                Program::Ripgrep => self.read_rg(&printed.bytes, pattern, found, &mut rows),
                Program::GrepPerl { .. } | Program::Grep => {
                    self.read_grep(&printed.bytes, is_whole, pattern, found, &mut rows);
                }
            }
            found.limit = found.limit.or(printed.limit).or((left == 0).then_some("output_limit"));
            if !is_whole || left == 0 || self.scope.stop.is_late() {
                found.limit = found.limit.or(Some(self.scope.stop.reason()));
                break;
            }
        }
        rows.retain(|path, _| !found.binary.contains(path));
        found.binary.sort();
        Ok(rows)
    }

    fn below(&self, path: &[u8]) -> Option<PathBuf> {
        Path::new(OsStr::from_bytes(path)).strip_prefix(&self.scope.real).ok().map(Path::to_path_buf)
    }

    /// Reads what `rg --json` printed.
    fn read_rg(&self, bytes: &[u8], pattern: &Pattern, found: &mut Found, rows: &mut BTreeMap<PathBuf, Vec<Row>>) {
        for message in bytes.split(|&byte| byte == b'\n') {
            // The last one may be cut off.
            let Ok(message) = serde_json::from_slice::<Value>(message) else { continue };
            let data = &message["data"];
            let Some(path) = bytes_of(&data["path"]).and_then(|path| self.below(&path)) else { continue };
            match message["type"].as_str() {
                Some("end") if !data["binary_offset"].is_null() && rows.contains_key(&path) => found.binary.push(path),
                Some(kind @ ("match" | "context")) => {
                    let (line, lines) = (data["line_number"].as_u64().unwrap_or(0), bytes_of(&data["lines"]));
                    let lines = lines.unwrap_or_default();
                    let rows = rows.entry(path.clone()).or_default();
                    if kind == "match" && pattern.reading.multiline {
                        let mut line = line;
                        let mut at = 0;
                        for (block, begins) in blocks_of(pattern, &lines) {
                            line += breaks_in(&lines[at..block.start]);
                            at = block.start;
                            rows.push(Row::new(path.clone(), line, &lines[block], begins, true));
                        }
                    } else {
                        rows.push(row(&path, line, &lines, kind == "match", pattern));
                    }
                }
                _ => {}
            }
        }
    }

    /// Reads what [`script`] printed with grep: names of binary files, a zero on its own, and the lines.
    fn read_grep(
        &self,
        mut bytes: &[u8],
        is_whole: bool,
        pattern: &Pattern,
        found: &mut Found,
        rows: &mut BTreeMap<PathBuf, Vec<Row>>,
    ) {
        let until = |bytes: &[u8], end: u8| bytes.iter().position(|&byte| byte == end);
        while let Some(end) = until(bytes, 0) {
            let path = &bytes[..end];
            bytes = &bytes[end + 1..];
            if path.is_empty() {
                break;
            }
            found.binary.extend(self.below(path));
        }
        while let Some(end) = until(bytes, 0) {
            let (path, rest) = (&bytes[..end], &bytes[end + 1..]);
            let Some(end) = until(rest, b'\n').or_else(|| is_whole.then_some(rest.len())) else { break };
            let (line, after) = (&rest[..end], &rest[(end + 1).min(rest.len())..]);
            bytes = after;
            let Some(digits) = line.iter().position(|byte| !byte.is_ascii_digit()) else { continue };
            let number = std::str::from_utf8(&line[..digits]).ok().and_then(|text| text.parse().ok());
            if let (Some(path), Some(number)) = (self.below(path), number) {
                let row = row(&path, number, &line[digits + 1..], line[digits] == b':', pattern);
                rows.entry(path).or_default().push(row);
            }
        }
    }
}

fn row(path: &Path, number: u64, line: &[u8], is_match: bool, pattern: &Pattern) -> Row {
    let at = if is_match { pattern.find(line).map_or(0, |found| found.start) } else { 0 };
    Row::new(path.to_path_buf(), number, line, at, is_match)
}

fn blocks_of(pattern: &Pattern, lines: &[u8]) -> Vec<(std::ops::Range<usize>, usize)> {
    match &pattern.engine {
        Engine::Rust(matcher) => blocks(matcher, lines, 0..lines.len()),
        #[cfg(feature = "pcre2")]
        Engine::Pcre2(matcher) => blocks(matcher, lines, 0..lines.len()),
    }
}

/// A text of rg's, which is text or base64.
fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match (value["text"].as_str(), value["bytes"].as_str()) {
        (Some(text), _) => Some(text.as_bytes().to_vec()),
        (None, Some(bytes)) => BASE64.decode(bytes).ok(),
        (None, None) => None,
    }
}

/// What `find` printed: `TIME SIZE PATH` and a zero, again and again. A record that was cut off is left out.
fn records(bytes: &[u8]) -> Vec<File> {
    let whole = bytes.iter().rposition(|&byte| byte == 0).map_or(0, |end| end + 1);
    let record = |record: &[u8]| {
        let mut parts = record.splitn(3, |&byte| byte == b' ');
        let time: f64 = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let size = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let below = PathBuf::from(OsStr::from_bytes(parts.next()?));
        let modified = Duration::try_from_secs_f64(time).unwrap_or_default();
        Some(File { below, modified: SystemTime::UNIX_EPOCH + modified, size })
    };
    bytes[..whole].split(|&byte| byte == 0).filter_map(record).collect()
}

/// The paths of the files with zeros after them, in pieces.
fn batches(scope: &Scope, files: &[File], most: usize) -> Vec<Vec<u8>> {
    let mut batches: Vec<Vec<u8>> = Vec::new();
    for file in files {
        let path = scope.real(&file.below);
        let path = path.as_os_str().as_bytes();
        match batches.last_mut() {
            Some(batch) if batch.len() + path.len() < most => batch.extend(path),
            _ => batches.push(path.to_vec()),
        }
        if let Some(batch) = batches.last_mut() {
            batch.push(0);
        }
    }
    batches
}

/// The command that reads names from standard input and prints what matches, as base64.
fn script(program: Program, pattern: &Pattern, context: usize) -> Result<String, String> {
    let Pattern { text, reading, .. } = pattern;
    if text.contains('\0') {
        return Err("a zero byte cannot be looked for on this backend".into());
    }
    let mut flags = vec![format!("-C {context}")];
    flags.extend(reading.ignore_case.then(|| "-i".to_owned()));
    flags.extend(reading.literal.then(|| "-F".to_owned()));
    // Whether the rg there was built with that engine cannot be seen, and without it nothing would be found.
    #[cfg(feature = "pcre2")]
    if program == Program::Ripgrep && matches!(pattern.engine, Engine::Pcre2(_)) {
        return Err("look-around and backreferences are only searched on our own disk; look for the plain part".into());
    }
    let search = if program == Program::Ripgrep {
        flags.extend(reading.multiline.then(|| "-U".to_owned()));
        // In order, so that what is cut off at the end is the end.
        let flags = flags.join(" ");
        let text = quoted_text(text);
        format!("xargs -0 -r rg --no-config --no-messages --json --crlf -j 1 {flags} -e {text} --")
    } else {
        if reading.multiline {
            return Err("a search across lines needs ripgrep on the backend; look for a part of one line".into());
        }
        let (kind, text) = if reading.literal { (None, text.clone()) } else { for_grep(program, text)? };
        flags.extend(kind.map(str::to_owned));
        let (flags, text) = (flags.join(" "), quoted_text(&text));
        format!(
            "unset GREP_OPTIONS; mapfile -d '' -t all\n\
             each() {{ local -n names=$1; shift; [ ${{#names[@]}} -eq 0 ] || printf '%s\\0' \"${{names[@]}}\" | xargs -0 -r \"$@\"; }}\n\
             {{ export LC_ALL=C\n\
             mapfile -d '' -t text < <(each all grep -lZI -e '' --)\n\
             mapfile -d '' -t binary < <(each all grep -LZI -e '' --)\n\
             export LC_ALL=C.UTF-8\n\
             each binary grep -alZ {flags} -e {text} --\n\
             printf '\\0'\n\
             each text grep -anHZ --color=never --no-group-separator {flags} -e {text} --; }}"
        )
    };
    Ok(format!("{{ {search}; }} 2>/dev/null | head -c {MOST_BYTES} | base64; echo '#'"))
}

/// The pattern as grep reads it, with the flag of that dialect.
fn for_grep(program: Program, text: &str) -> Result<(Option<&'static str>, String), String> {
    // grep keeps the CR of a line end for a part of the line.
    let text = match text.strip_suffix('$') {
        Some(before) if before.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 0 => {
            format!("{before}\\r?$")
        }
        _ => text.to_owned(),
    };
    match program {
        Program::GrepPerl { unicode } => {
            Ok((Some("-P"), if unicode { format!("(*UCP){text}") } else { text }))
        }
        Program::Grep | Program::Ripgrep => {
            let foreign = ["(?", "\\p", "\\P", "\\x", "\\u", "\\d", "\\D", "\\h", "\\A", "\\z", "\\r", "\\t", "*?", "+?", "??"];
            match foreign.iter().find(|sign| text.contains(**sign)) {
                Some(sign) => Err(format!(
                    "`{sign}` in a pattern needs ripgrep or `grep -P` on the backend; write the pattern without it"
                )),
                None => Ok((Some("-E"), text)),
            }
        }
    }
}

/// Rules of ignore files, by the folder they stand in: what `.ignore` says, what `.gitignore` says.
#[derive(Clone, Default)]
struct Rules {
    folders: HashMap<PathBuf, [Option<Gitignore>; 2]>,
}

impl Rules {
    async fn read(&mut self, cx: &ToolCx, path: PathBuf, kind: usize) {
        let Ok(bytes) = cx.environment.read(&path, 0..LARGEST_RULES).await else { return };
        let Some(folder) = path.parent() else { return };
        let mut builder = GitignoreBuilder::new(folder);
        let text = String::from_utf8_lossy(&bytes);
        for line in text.trim_start_matches('\u{feff}').lines() {
            // A line that is no rule is none, as on our own disk.
            let _ = builder.add_line(None, line);
        }
        if let Ok(rules) = builder.build() {
            self.folders.entry(folder.to_path_buf()).or_default()[kind] = Some(rules);
        }
    }

    /// Which of the files are kept. A file in a folder that is left out is left out.
    fn decide(&self, scope: &Scope, files: &[File]) -> Vec<bool> {
        let mut folders: HashMap<PathBuf, bool> = HashMap::new();
        let mut keeps = |below: &Path| {
            let above: Vec<&Path> = below.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
            for folder in above.into_iter().rev() {
                let kept = match folders.get(folder) {
                    Some(kept) => *kept,
                    None => {
                        let kept = self.keeps(scope, folder, true);
                        folders.insert(folder.to_path_buf(), kept);
                        kept
                    }
                };
                if !kept {
                    return false;
                }
            }
            self.keeps(scope, below, false)
        };
        files.iter().map(|file| scope.is_file || keeps(&file.below)).collect()
    }

    /// One entry, by what is said about itself. The nearest `.ignore` that says something counts, then the nearest
    /// `.gitignore`, then whether the name is hidden.
    fn keeps(&self, scope: &Scope, below: &Path, is_folder: bool) -> bool {
        let path = scope.real(below);
        let Some(name) = path.file_name() else { return true };
        if name == ".git" {
            return !scope.leaves_out(name);
        }
        for kind in 0..RULES.len() {
            let said = path.ancestors().skip(1).filter_map(|folder| self.folders.get(folder)?[kind].as_ref());
            match said.map(|rules| rules.matched(&path, is_folder)).find(|said| !said.is_none()) {
                Some(Match::Ignore(_)) => return false,
                Some(Match::Whitelist(_)) => return true,
                Some(Match::None) | None => {}
            }
        }
        !scope.leaves_out(name)
    }
}

/// A path as one word of bash.
fn quoted(path: &Path) -> String {
    let mut out = String::from("$'");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => out.push(char::from(byte)),
            byte => out += &format!("\\x{byte:02x}"),
        }
    }
    out.push('\'');
    out
}

/// A text as one word of bash.
fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::search_files::pattern::Reading;

    #[test]
    fn a_pattern_is_one_quoted_word_after_its_option() {
        let reading = Reading { literal: true, ..Reading::default() };
        let pattern = Pattern::new("--pre=x'; touch y", reading).unwrap();
        for program in [Program::Ripgrep, Program::GrepPerl { unicode: true }, Program::Grep] {
            let script = script(program, &pattern, 0).unwrap();
            assert!(script.contains(r"-e '--pre=x'\''; touch y' --"), "{script}");
        }
    }

    #[test]
    fn a_dialect_that_cannot_say_it_is_an_error_and_no_other_result() {
        let script = |text| script(Program::Grep, &Pattern::new(text, Reading::default()).unwrap(), 0);
        assert!(script(r"\d+").unwrap_err().contains("needs ripgrep or `grep -P`"));
        assert!(script("foo|bar").unwrap().contains("-E -e 'foo|bar' --"));
        assert!(script("a\\nb").unwrap_err().contains("across lines"));
    }

    #[test]
    fn the_end_of_a_line_may_be_crlf() {
        let perl = |text| for_grep(Program::GrepPerl { unicode: false }, text).unwrap().1;
        assert_eq!((perl("abc$").as_str(), perl(r"abc\$").as_str()), (r"abc\r?$", r"abc\$"));
    }

    #[test]
    fn a_record_that_was_cut_off_is_left_out() {
        let names = |bytes: &[u8]| records(bytes).into_iter().map(|file| file.below).collect::<Vec<_>>();
        assert_eq!(names(b"1.5 3 a b\n\x002 4 c"), [PathBuf::from("a b\n")]);
        assert_eq!(names(b""), [] as [PathBuf; 0]);
    }

    #[test]
    fn paths_are_one_word_whatever_is_in_them() {
        assert_eq!(quoted(Path::new("/a b/$(x)'\n")), r"$'/a\x20b/\x24\x28x\x29\x27\x0a'");
    }
}
