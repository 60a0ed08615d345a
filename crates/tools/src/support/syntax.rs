//! Whether a text that was written can be read by the language it is in.
//!
//! A broken bracket is best heard of right after the write, in the same answer. It is never a reason to refuse a write:
//! a file may be broken for a step, and the checker may be wrong. So the rule for everything below is that a wrong
//! "error" is worse than no check: what only might be broken (a template, a dialect, something nested too deeply for its
//! parser) is skipped with the reason.
//!
//! The tricky idea is what is *new*. A file that was broken before is parsed as it was, too, and only what was not wrong
//! there is news; lines are compared by what they say, because an edit moves them.
//!
//! `language` tells the language, `data` and `code` have the parsers.

mod code;
mod data;
mod language;

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use self::language::{Language, is_template, language};
use super::text::is_text;
use super::view::View;

/// More problems than these are only counted: after the first few, a parser mostly stumbles over its own repairs.
const SHOWN: usize = 5;

/// So many are compared with those that were there before. Text in another language than its name says has a problem at
/// every word.
const COMPARED: usize = 200;

/// How long the words about one problem may be, in characters.
const LONGEST_WORDS: usize = 200;

/// How much of a line is quoted, in characters.
const LONGEST_QUOTE: usize = 100;

/// What a parser says.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing is wrong; possibly with a remark.
    Fine(Option<String>),
    /// Something is, in the order of the text.
    Broken(Vec<Problem>),
    /// It cannot tell, and why.
    Skipped(String),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    /// Where, in bytes of the text.
    at: usize,
    what: String,
}

impl Problem {
    fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}

/// What a model and a person read about the syntax of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    status: &'static str,
    output: Option<String>,
    message: Option<String>,
    /// The line of the first problem that was not there before.
    line: Option<usize>,
}

impl Report {
    fn skipped(why: impl Into<String>) -> Self {
        Self { status: "skipped", output: None, message: Some(why.into()), line: None }
    }

    /// The object under `lint` (spec tools §2.8).
    pub(crate) fn told(&self) -> Value {
        let mut told = json!({ "status": self.status });
        for (name, text) in [("output", &self.output), ("message", &self.message)] {
            if let Some(text) = text {
                told[name] = json!(text);
            }
        }
        told
    }

    /// Adds what a person should see to the words beside the call.
    pub(crate) fn beside(&self, summary: &str) -> String {
        match self.line {
            Some(line) => format!("{summary} · syntax error in line {line}"),
            None => summary.to_owned(),
        }
    }

    /// Whether the change broke something.
    pub(crate) fn is_news(&self) -> bool {
        self.line.is_some()
    }
}

/// Checks the new content of a file, against the old one where there was one. With `quiet` nothing of the file is quoted.
pub(crate) async fn check(path: &Path, old: Option<Arc<Vec<u8>>>, new: Arc<Vec<u8>>, quiet: bool) -> Report {
    if let Err(why) = worth_it(path, &new) {
        return Report::skipped(why);
    }
    let path = path.to_path_buf();
    let work = move || report(&path, old.as_deref().map(Vec::as_slice), &new, quiet);
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Report::skipped("the parser failed on this text"))
}

/// The cheap questions first.
fn worth_it(path: &Path, new: &[u8]) -> Result<Language, String> {
    let language = language(path, new)?;
    let most = language.most_bytes();
    if new.len() > most {
        return Err(format!("files of more than {} KiB are not checked", most / 1024));
    }
    if !is_text(new) {
        return Err("this is no text".into());
    }
    Ok(language)
}

fn report(path: &Path, old: Option<&[u8]>, new: &[u8], quiet: bool) -> Report {
    let language = match worth_it(path, new) {
        Ok(language) => language,
        Err(why) => return Report::skipped(why),
    };
    let view = View::new(new);
    let text = view.text();
    match verdict(language, path, text) {
        Verdict::Fine(message) => Report { status: "ok", output: None, message, line: None },
        Verdict::Skipped(why) => Report::skipped(why),
        Verdict::Broken(problems) if is_template(language, path, text, &places(text, &problems)) => {
            Report::skipped("this looks like a template; what it makes cannot be checked")
        }
        Verdict::Broken(problems) => {
            let old = old.filter(|old| !old.is_empty() && worth_it(path, old).is_ok()).map(View::new);
            let old = old.as_ref().map_or("", View::text);
            let before = match verdict(language, path, old) {
                Verdict::Broken(before) => before,
                Verdict::Fine(_) | Verdict::Skipped(_) => Vec::new(),
            };
            broken(text, problems, &before, old, quiet)
        }
    }
}

/// The lines of the first problems, and those before them: a parser often stumbles one line late.
fn places<'t>(text: &'t str, problems: &[Problem]) -> Vec<&'t str> {
    let lines: Vec<&str> = text.lines().collect();
    let around = |problem: &Problem| {
        let line = line_at(text, problem.at).0;
        lines.get(line.saturating_sub(2)..line.min(lines.len())).unwrap_or_default()
    };
    problems.iter().take(SHOWN).flat_map(around).copied().collect()
}

fn verdict(language: Language, path: &Path, text: &str) -> Verdict {
    let mut verdict = match language {
        Language::Json(dialect) => data::json(text, dialect),
        Language::JsonLines => data::json_lines(text),
        Language::Yaml => data::yaml(text),
        Language::Toml => data::toml(text),
        code => code::check(code, path, text),
    };
    if let Verdict::Broken(problems) = &mut verdict {
        problems.truncate(COMPARED);
    }
    verdict
}

/// The report on a text with problems, of which some may have been there `before`, in the `old` text.
fn broken(text: &str, problems: Vec<Problem>, before: &[Problem], old: &str, quiet: bool) -> Report {
    let said = |text: &str, problem: &Problem| (problem.what.clone(), line_at(text, problem.at).1.trim().to_owned());
    let mut known: Vec<_> = before.iter().map(|problem| said(old, problem)).collect();
    let all = problems.len();
    let mut news = problems.clone();
    news.retain(|problem| {
        let found = known.iter().position(|known| *known == said(text, problem));
        found.map(|index| known.swap_remove(index)).is_none()
    });
    let (listed, mut message) = match (news.len(), all) {
        (0, _) => (problems, "as before this edit: these problems were there already".to_owned()),
        (new, all) if new < all => {
            let rest = all - new;
            let message = format!(
                "new with this edit; {rest} that {} there before left out",
                if rest == 1 { "was" } else { "were" }
            );
            (news.clone(), message)
        }
        _ => (problems, String::new()),
    };
    if listed.len() > SHOWN {
        let lead = if message.is_empty() { "" } else { "; " };
        let least = if all == COMPARED { "at least " } else { "" };
        message.push_str(&format!("{lead}the first {SHOWN} of {least}{}", listed.len()));
    }
    let output: Vec<String> = listed.iter().take(SHOWN).map(|problem| words(text, problem, quiet)).collect();
    Report {
        status: "error",
        output: Some(output.join("\n")),
        message: Some(message).filter(|message| !message.is_empty()),
        line: news.first().map(|problem| line_at(text, problem.at).0),
    }
}

/// `3:14: expected ',' | some of line 3`.
fn words(text: &str, problem: &Problem, quiet: bool) -> String {
    let at = place(text, problem.at);
    let (number, line) = line_at(text, at);
    let before = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let column = text[before..at].chars().count();
    if quiet {
        return format!("{number}:{}: a syntax error", column + 1);
    }
    let what: String = problem.what.split_whitespace().collect::<Vec<_>>().join(" ");
    let what: String = what.chars().take(LONGEST_WORDS).collect();
    // A line of a minified file is quoted around the place.
    let skipped = column.saturating_sub(LONGEST_QUOTE / 2);
    let rest = line.chars().skip(skipped);
    let quote: String = rest.take(LONGEST_QUOTE).filter(|letter| !letter.is_control() || *letter == '\t').collect();
    match quote.trim() {
        "" => format!("{number}:{}: {what}", column + 1),
        quote => format!("{number}:{}: {what} | {quote}", column + 1),
    }
}

fn place(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.trim_end().len()))
}

/// The number of the line at a place, from 1, and the line. What is missed at the end is missed in the last line.
fn line_at(text: &str, at: usize) -> (usize, &str) {
    let at = place(text, at);
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    (memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1, &text[start..end])
}

#[cfg(test)]
mod tests;
