//! JSON in its dialects, YAML and TOML. None of their parsers recurses here, or each has a limit that is told from an error.

use serde::de::IgnoredAny;

use super::language::Dialect;
use super::{Problem, Verdict, line_at};

/// One JSON value.
pub(super) fn json(text: &str, dialect: Dialect) -> Verdict {
    if text.trim().is_empty() {
        // A placeholder, and not the wrong text.
        return Verdict::Skipped("the file is empty".into());
    }
    let Err(strict) = strict_json(text) else { return Verdict::Fine(None) };
    if dialect == Dialect::Strict {
        return Verdict::Broken(vec![strict]);
    }
    let plain = without_comments(text);
    match (dialect, plain.comment, strict_json(&plain.text)) {
        (Dialect::Commented, _, Ok(())) => Verdict::Fine(None),
        (Dialect::Commented, _, Err(problem)) | (_, Some(_), Err(problem)) => Verdict::Broken(vec![problem]),
        (_, Some(at), Ok(())) => {
            let line = line_at(text, at).0;
            Verdict::Fine(Some(format!(
                "read as JSON with comments; a strict parser would refuse the one in line {line}"
            )))
        }
        (_, None, _) => Verdict::Broken(vec![strict]),
    }
}

/// One JSON value a line.
pub(super) fn json_lines(text: &str) -> Verdict {
    let mut problems = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim().is_empty()
            && let Err(problem) = strict_json(line.trim_end())
        {
            problems.push(Problem::new(start + problem.at, problem.what));
        }
        start += line.len();
    }
    if problems.is_empty() { Verdict::Fine(None) } else { Verdict::Broken(problems) }
}

fn strict_json(text: &str) -> Result<(), Problem> {
    // What is ignored is read without recursion, so that no depth is too deep.
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|error| {
        let said = error.to_string();
        let what = said.split_once(" at line ").map_or(said.as_str(), |(what, _)| what);
        let line: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        // The column counts bytes and is the one of the byte that was read last.
        let at = (line + error.column().saturating_sub(1)).min(text.len());
        Problem::new(at, common_mistake(text, at).unwrap_or_else(|| what.to_owned()))
    })
}

/// What a parser of values has no words for: a comma too much, and the words of other languages.
fn common_mistake(text: &str, at: usize) -> Option<String> {
    let (before, rest) = text.split_at_checked(at)?;
    if rest.starts_with(['}', ']']) && before.trim_end().ends_with(',') {
        return Some(format!("a comma before `{}`", &rest[..1]));
    }
    let word = &rest[..rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len())];
    matches!(word, "NaN" | "Infinity" | "undefined" | "True" | "False" | "None")
        .then(|| format!("`{word}` is no JSON value"))
}

/// JSON with everything blanked that only its relaxed readers know. Every place stays where it was.
struct Plain {
    text: String,
    /// Where the first comment begins.
    comment: Option<usize>,
}

fn without_comments(text: &str) -> Plain {
    let mut bytes = text.as_bytes().to_vec();
    let mut comment = None;
    // A comma after something, and nothing after it so far; what stood before.
    let (mut comma, mut last) = (None, b'[');
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                comment = comment.or(Some(at));
                let rest = &bytes[at..];
                let len = if rest[1] == b'/' {
                    memchr::memchr(b'\n', rest)
                } else {
                    memchr::memmem::find(&rest[2..], b"*/").map(|end| end + 4)
                };
                let end = at + len.unwrap_or(rest.len());
                bytes[at..end].iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
                at = end;
                continue;
            }
            b',' => comma = Some(at).filter(|_| !matches!(last, b'[' | b'{' | b',' | b':')),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            _ => comma = None,
        }
        last = bytes.get(at).copied().unwrap_or(last);
        at += 1;
    }
    // Only whole comments and single ASCII characters became blanks.
    Plain { text: String::from_utf8_lossy(&bytes).into_owned(), comment }
}

/// Every document of a YAML stream. Tags, anchors and keys are not looked at: their meaning is for whoever loads it.
pub(super) fn yaml(text: &str) -> Verdict {
    use granit_parser::ErrorKind;
    for event in granit_parser::Parser::new_from_str(text) {
        let Err(error) = event else { continue };
        return match error.kind() {
            ErrorKind::RecursionLimitExceeded => Verdict::Skipped("it is nested too deeply to be checked".into()),
            kind => {
                let marker = error.marker();
                let at = marker.byte_offset().unwrap_or_else(|| {
                    let line: usize =
                        text.split_inclusive('\n').take(marker.line().saturating_sub(1)).map(str::len).sum();
                    line + marker.col()
                });
                Verdict::Broken(vec![Problem::new(at.min(text.len()), kind.to_string())])
            }
        };
    }
    Verdict::Fine(None)
}

pub(super) fn toml(text: &str) -> Verdict {
    let (_, errors) = toml::de::DeTable::parse_recoverable(text);
    if errors.iter().any(|error| error.message().contains("recurs")) {
        return Verdict::Skipped("it is nested too deeply to be checked".into());
    }
    if errors.is_empty() {
        return Verdict::Fine(None);
    }
    let problem = |error: &toml::de::Error| Problem::new(error.span().map_or(0, |span| span.start), error.message());
    let mut problems: Vec<Problem> = errors.iter().map(problem).collect();
    problems.sort_by_key(|problem| problem.at);
    Verdict::Broken(problems)
}
