//! Finds secrets by shape in one piece of text: what stands between two masks, or between a mask and a line end.
//!
//! One automaton looks for the words that rules begin with, and only the rules it has met look closer; most lines meet
//! none. What is left between two secrets is searched again, since without its neighbour it may read differently: this
//! is what makes redaction stable.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;

use super::rules::{Check, RULES, Rule};
use super::worth::{Place, Promise};
use super::{assign, mask, worth};

/// How often text is searched, at most: once, and again between the secrets found. All tests pass with two.
const DEPTH: usize = 6;

/// Where a word begins in a rule; and where it begins although a letter stands before it, because that letter ends an
/// escape: of JSON, of a URL, or of a terminal's colours.
const BORDER: &str = r"(?-u:\b)";
const BORDER_OR_ESCAPE: &str = r"(?:(?-u:\b)|\\[nrt]|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]{0,16}[A-Za-z])";

/// A secret in a piece of text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The smaller one gives the label where secrets overlap.
    pub(super) order: usize,
    pub(super) label: &'static str,
}

struct Shapes {
    words: AhoCorasick,
    /// The rule of each word; `RULES.len()` is names with values.
    owners: Vec<usize>,
    expressions: Vec<Regex>,
}

static SHAPES: LazyLock<Option<Shapes>> = LazyLock::new(|| {
    let expression = |rule: &Rule| Regex::new(&rule.pattern.replacen(BORDER, BORDER_OR_ESCAPE, 1));
    let expressions = RULES.iter().map(expression).collect::<Result<_, _>>().ok()?;
    let of_rules = RULES.iter().enumerate().flat_map(|(at, rule)| rule.words.iter().map(move |word| (*word, at)));
    let (words, owners): (Vec<_>, Vec<_>) =
        of_rules.chain(assign::WORDS.iter().map(|word| (*word, RULES.len()))).unzip();
    let words =
        AhoCorasick::builder().ascii_case_insensitive(true).match_kind(MatchKind::Standard).build(words).ok()?;
    Some(Shapes { words, owners, expressions })
});

/// The labels of all masks that stand for shapes.
pub(super) fn labels() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.label).chain(["password", "secret", "token", "key", "credential", super::block::LABEL])
}

/// Writes `text` without its secrets. Masks in it stay.
pub(super) fn clean(text: &str, out: &mut String) {
    let mut at = 0;
    for (start, end) in mask::spans(text) {
        piece(&text[at..start], 0, out);
        out.push_str(&text[start..end]);
        at = end;
    }
    piece(&text[at..], 0, out);
}

fn piece(text: &str, depth: usize, out: &mut String) {
    let spans = if depth < DEPTH { find(text) } else { Vec::new() };
    if spans.is_empty() {
        out.push_str(text);
        return;
    }
    let mut at = 0;
    for span in spans {
        piece(&text[at..span.start], depth + 1, out);
        mask::write(span.label, out);
        at = span.end;
    }
    piece(&text[at..], depth + 1, out);
}

/// The secrets in `text`, in order and apart from one another.
fn find(text: &str) -> Vec<Span> {
    let Some(shapes) = &*SHAPES else { return Vec::new() };
    let mut met = [false; RULES.len() + 1];
    for word in shapes.words.find_overlapping_iter(text) {
        met[shapes.owners[word.pattern().as_usize()]] = true;
    }
    let mut spans = Vec::new();
    for (order, rule) in RULES.iter().enumerate().filter(|(order, _)| met[*order]) {
        for found in shapes.expressions[order].captures_iter(text) {
            let groups = found.iter().skip(1).flatten();
            let Some(secret) = groups.last().or_else(|| found.get(0)) else { continue };
            let start = secret.start() + escape(secret.as_str());
            if worthy(&found, &text[start..secret.end()], rule.check) {
                spans.push(Span { start, end: secret.end(), order, label: rule.label });
            }
        }
    }
    if met[RULES.len()] {
        assign::find(text, RULES.len(), &mut spans);
    }
    spans.sort_unstable_by_key(|span| (span.start, span.order));
    let mut apart: Vec<Span> = Vec::with_capacity(spans.len());
    for mut span in spans {
        if let Some(last) = apart.pop_if(|last| last.end > span.start) {
            let first = if last.order <= span.order { last } else { span };
            span = Span { start: last.start, end: last.end.max(span.end), ..first };
        }
        apart.push(span);
    }
    apart
}

/// The length of the escape that `text` begins with.
fn escape(text: &str) -> usize {
    match text.as_bytes() {
        [b'\\', b'n' | b'r' | b't', ..] => 2,
        [b'%', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => 3,
        [b'\x1b', rest @ ..] => rest.iter().position(u8::is_ascii_alphabetic).map_or(0, |at| at + 2),
        _ => 0,
    }
}

fn worthy(found: &regex::Captures<'_>, secret: &str, check: Check) -> bool {
    match check {
        Check::Shape => !worth::is_placeholder(secret),
        Check::Run(least) => !worth::is_placeholder(secret) && has_run(secret, least),
        Check::Password => worth::is_secret(secret, Promise::Password, Place::Quoted),
        Check::Random => worth::is_secret(secret, Promise::Perhaps, Place::Quoted),
        Check::Login => {
            let same = found.name("user").is_some_and(|user| user.as_str() == secret);
            secret.chars().count() >= 3 && !same && !worth::is_placeholder(secret)
        }
    }
}

/// Whether letters and digits follow one another so often that this is no word.
fn has_run(text: &str, least: usize) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|run| run.len() >= least && run.bytes().any(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str) -> String {
        let mut out = String::new();
        clean(text, &mut out);
        out
    }

    #[test]
    fn every_expression_is_one() {
        for rule in RULES {
            assert!(Regex::new(rule.pattern).is_ok(), "{}", rule.pattern);
        }
        assert!(SHAPES.is_some());
    }

    #[test]
    fn each_rule_finds_its_example_and_leaves_its_twin() {
        for rule in RULES {
            let found = cleaned(rule.hit);
            let mask = format!("[redacted: {}]", rule.label);
            assert!(found.contains(&mask), "{}: {found}", rule.hit);
            assert_eq!(cleaned(rule.twin), rule.twin);
            assert!(mask::contains_mask(&mask));
        }
    }

    #[test]
    fn overlapping_secrets_are_one() {
        let text = concat!("OPENAI_API_KEY=sk", "-proj-EXAMPLE0example0EXAMPLE0example0 next");
        assert_eq!(cleaned(text), "OPENAI_API_KEY=[redacted: api key] next");
    }

    #[test]
    fn what_stands_between_masks_is_searched() {
        assert_eq!(
            cleaned("[redacted: x] password: \"hunter2\" [redacted: y]"),
            "[redacted: x] password: \"[redacted: password]\" [redacted: y]"
        );
    }
}
