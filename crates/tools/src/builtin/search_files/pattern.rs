//! What is looked for: a text in lines, or names.
//!
//! The tricky idea: a pattern is only ever data. It is compiled here, by ripgrep's own crates, before anything is
//! opened, so that what is wrong with it is said in the same words wherever the search runs afterwards.

use std::ops::Range;
use std::path::Path;

use globset::{GlobBuilder, GlobSet};
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::walk::joined;

/// Bytes that a compiled pattern may take; ordinary ones take thousands.
const LARGEST_REGEX: usize = 10 * 1024 * 1024;

/// How a pattern is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    pub(super) ignore_case: bool,
    pub(super) literal: bool,
    pub(super) multiline: bool,
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) engine: Engine,
    pub(super) text: String,
    /// As asked for, and across lines where the pattern holds a line break.
    pub(super) reading: Reading,
    /// It was not asked for, but the pattern holds a line break.
    pub(super) became_multiline: bool,
}

/// Who finds it. The first is linear in the text whatever the pattern; the second knows look-around and
/// backreferences, and is only there in a build that asks for it.
#[derive(Clone, Debug)]
pub(super) enum Engine {
    Rust(RegexMatcher),
    #[cfg(feature = "pcre2")]
    Pcre2(grep_pcre2::RegexMatcher),
}

impl Pattern {
    /// Compiles `text`. The error is one line: what is wrong, and where.
    pub(super) fn new(text: &str, mut reading: Reading) -> Result<Self, String> {
        if !reading.literal
            && let Err(error) = regex_syntax::ast::parse::Parser::new().parse(text)
        {
            let engine = beyond_rust(text, reading, &error)?;
            return Ok(Self { engine, text: text.to_owned(), reading, became_multiline: false });
        }
        let mut built = rust(text, reading);
        let breaks_a_line = |error: &grep_regex::Error| matches!(error.kind(), grep_regex::ErrorKind::NotAllowed(_));
        let became_multiline = !reading.multiline && built.as_ref().err().is_some_and(breaks_a_line);
        if became_multiline {
            reading.multiline = true;
            built = rust(text, reading);
        }
        let matcher = built.map_err(|error| {
            let error = error.to_string();
            // The engine draws a picture of the place; the sentence is its last line.
            let sentence = error.lines().rev().find_map(|line| line.trim().strip_prefix("error: "));
            refusal(text, sentence.unwrap_or(error.trim()))
        })?;
        Ok(Self { engine: Engine::Rust(matcher), text: text.to_owned(), reading, became_multiline })
    }

    /// The first match in `text`.
    pub(super) fn find(&self, text: &[u8]) -> Option<Range<usize>> {
        let found = match &self.engine {
            Engine::Rust(matcher) => matcher.find(text).ok(),
            #[cfg(feature = "pcre2")]
            Engine::Pcre2(matcher) => matcher.find(text).ok(),
        };
        found.flatten().map(|found| found.start()..found.end())
    }
}

fn rust(text: &str, reading: Reading) -> Result<RegexMatcher, grep_regex::Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        // `^` and `$` are about lines, and `$` also stands before the end of a line that is CRLF.
        .multi_line(true)
        .crlf(true)
        .case_insensitive(reading.ignore_case)
        .fixed_strings(reading.literal)
        .size_limit(LARGEST_REGEX)
        .dfa_size_limit(LARGEST_REGEX);
    if reading.multiline {
        builder.line_terminator(None).fixed_strings(false);
        return builder.build(&with_any_line_end(text, reading.literal));
    }
    builder.build(text)
}

/// The pattern with every line break in it standing for CRLF as well: who reads a file does not see which one it has.
fn with_any_line_end(text: &str, literal: bool) -> String {
    struct Breaks {
        found: Vec<Range<usize>>,
        /// Where the last carriage return ended: what follows it is CRLF already.
        after_return: Option<usize>,
    }
    impl regex_syntax::ast::Visitor for Breaks {
        type Output = Vec<Range<usize>>;
        type Err = ();
        fn finish(self) -> Result<Self::Output, ()> {
            Ok(self.found)
        }
        fn visit_pre(&mut self, ast: &regex_syntax::ast::Ast) -> Result<(), ()> {
            if let regex_syntax::ast::Ast::Literal(letter) = ast {
                let place = letter.span.start.offset..letter.span.end.offset;
                match letter.c {
                    '\r' => self.after_return = Some(place.end),
                    '\n' if self.after_return != Some(place.start) => self.found.push(place),
                    _ => {}
                }
            }
            Ok(())
        }
    }
    let mut pattern = if literal { regex_syntax::escape(text) } else { text.to_owned() };
    let Ok(ast) = regex_syntax::ast::parse::Parser::new().parse(&pattern) else { return pattern };
    let breaks = regex_syntax::ast::visit(&ast, Breaks { found: Vec::new(), after_return: None }).unwrap_or_default();
    for place in breaks.into_iter().rev() {
        pattern.replace_range(place, r"(?:\r?\n)");
    }
    pattern
}

/// The other engine for what only a backtracking one has, or why there is none.
#[cfg(feature = "pcre2")]
fn beyond_rust(text: &str, reading: Reading, error: &regex_syntax::ast::Error) -> Result<Engine, String> {
    if beyond(error).is_none() {
        return Err(with_place(text, error));
    }
    let mut builder = grep_pcre2::RegexMatcherBuilder::new();
    builder.multi_line(true).crlf(true).utf(true).ucp(true).caseless(reading.ignore_case).jit_if_available(true);
    builder.build(text).map(Engine::Pcre2).map_err(|error| refusal(text, &error.to_string()))
}

/// Why there is no engine for it.
#[cfg(not(feature = "pcre2"))]
fn beyond_rust(text: &str, _: Reading, error: &regex_syntax::ast::Error) -> Result<Engine, String> {
    let why = with_place(text, error);
    Err(match beyond(error) {
        Some(what) => format!(
            "{why}; this search has no {what}: look for the plain part and judge the lines yourself, or use `grep -P` in \
             the terminal"
        ),
        None => why,
    })
}

/// What the pattern wants that only a backtracking engine has.
fn beyond(error: &regex_syntax::ast::Error) -> Option<&'static str> {
    match error.kind() {
        regex_syntax::ast::ErrorKind::UnsupportedLookAround => Some("look-around"),
        regex_syntax::ast::ErrorKind::UnsupportedBackreference => Some("backreferences"),
        _ => None,
    }
}

fn with_place(text: &str, error: &regex_syntax::ast::Error) -> String {
    let at = text.get(..error.span().start.offset).map_or(0, |before| before.chars().count());
    refusal(text, &format!("{} at character {}", error.kind(), at + 1))
}

fn refusal(text: &str, why: &str) -> String {
    let (text, why) = (text.escape_debug(), why.replace('\n', " "));
    format!("`{text}` is not a regular expression: {why}")
}

/// A compiled glob.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    matcher: GlobSet,
    /// What means itself: a file may be called `a[1].txt`.
    literal: String,
    /// The literal may be any part of the name.
    is_part: bool,
    is_negated: bool,
    on: MatchOn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchOn {
    Name,
    PathBelowRoot,
    WholePath,
}

impl Glob {
    /// A filter of files: one with a `/` is about the path below the root, one without is about the name; `!` negates.
    pub(super) fn filter(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        let (pattern, is_negated) = match pattern.strip_prefix('!') {
            Some(rest) if !rest.is_empty() => (rest, true),
            _ => (pattern, false),
        };
        Self::new(pattern, pattern, ignore_case, is_negated, false)
    }

    /// A search for names: as a filter, but what has no glob character in it finds the names that contain it.
    pub(super) fn names(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        if pattern.contains(['*', '?', '[', '{', '/']) {
            Self::new(pattern, pattern, ignore_case, false, true)
        } else {
            Self::new(&format!("*{}*", globset::escape(pattern)), pattern, ignore_case, false, true)
        }
    }

    fn new(
        pattern: &str,
        literal: &str,
        ignore_case: bool,
        is_negated: bool,
        is_part: bool,
    ) -> Result<Self, String> {
        let on = match pattern {
            pattern if pattern.starts_with('/') => MatchOn::WholePath,
            pattern if pattern.contains('/') => MatchOn::PathBelowRoot,
            _ => MatchOn::Name,
        };
        let [pattern, literal] = [pattern, literal].map(|text| text.strip_prefix("./").unwrap_or(text));
        let built = GlobBuilder::new(pattern).literal_separator(true).case_insensitive(ignore_case).build();
        let built = built.map_err(|error| format!("`{}` is not a glob: {}", pattern.escape_debug(), error.kind()))?;
        // A set knows quicker ways than a regular expression, also if it has one member.
        let matcher = GlobSet::builder().add(built).build();
        let matcher = matcher.map_err(|error| format!("`{}` is not a glob: {error}", pattern.escape_debug()))?;
        Ok(Self { matcher, literal: literal.to_owned(), is_part, is_negated, on })
    }

    /// Whether a file is meant: by its path below the folder that is searched, which is empty if that is the file itself.
    pub(super) fn accepts(&self, root: &Path, below: &Path) -> bool {
        let whole;
        let on = match self.on {
            MatchOn::Name => Path::new(below.file_name().or_else(|| root.file_name()).unwrap_or_default()),
            MatchOn::PathBelowRoot => below,
            MatchOn::WholePath => {
                whole = joined(root, below);
                &whole
            }
        };
        let literally = || {
            let bytes = on.as_os_str().as_encoded_bytes();
            let wanted = self.literal.as_bytes();
            bytes == wanted
                || self.is_part
                    && self.on != MatchOn::WholePath
                    && bytes.windows(wanted.len()).any(|part| part == wanted)
        };
        // As in a list of ignored files, `/a.py` may also be meant from the folder that is searched.
        let from_there = || self.on == MatchOn::WholePath && self.matcher.is_match(Path::new("/").join(below));
        self.is_negated != (self.matcher.is_match(on) || literally() || from_there())
    }
}

/// Why a glob that found nothing may be a regular expression.
pub(super) fn looks_like_a_regex(glob: &str) -> bool {
    glob.contains(['(', ')', '|', '^', '$', '\\', '+']) || glob.contains(".*")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(pattern: &str, reading: Reading, text: &str) -> bool {
        Pattern::new(pattern, reading).unwrap().find(text.as_bytes()).is_some()
    }

    #[test]
    fn a_pattern_is_read_as_asked_for() {
        let plain = Reading::default();
        assert!(finds("a.c", plain, "abc") && !finds("a.c", plain, "ABC"));
        assert!(finds("a.c", Reading { ignore_case: true, ..plain }, "ABC"));
        let literal = Reading { literal: true, ..plain };
        assert!(finds("a.c(", literal, "a.c(") && !finds("a.c", literal, "abc"));
        assert!(finds("c$", plain, "abc\r\n"), "a line may end in CRLF");
    }

    #[test]
    fn a_line_break_in_a_pattern_searches_across_lines() {
        for (pattern, literal) in [("foo\\nbar", false), ("foo\nbar", false), ("foo\nbar", true)] {
            let pattern = Pattern::new(pattern, Reading { literal, ..Reading::default() }).unwrap();
            assert!(pattern.became_multiline && pattern.find(b"foo\nbar").is_some());
        }
        assert!(!Pattern::new("foo\\s+bar", Reading::default()).unwrap().became_multiline);
    }

    #[test]
    fn a_line_break_is_any_line_end() {
        let across = |literal| Reading { multiline: true, literal, ..Reading::default() };
        for (pattern, literal) in
            [("foo\\nbar", false), ("foo\nbar", false), ("foo\nbar", true), ("o\\n+b", false), ("foo(?:\\n|x)bar", false)]
        {
            for text in ["foo\nbar", "foo\r\nbar"] {
                assert!(finds(pattern, across(literal), text), "{pattern:?} in {text:?}");
            }
        }
        assert!(finds("foo\\r\\nbar", across(false), "foo\r\nbar") && !finds("foo\\r\\nbar", across(false), "foo\nbar"));
        assert!(!finds("foo[\\n]bar", across(false), "foo\r\nbar"), "a class is one letter");
        assert!(finds("a.(b\nc", across(true), "a.(b\r\nc") && !finds("a.(b\nc", across(true), "axb\r\nc"));
    }

    #[test]
    fn what_is_wrong_with_a_pattern_is_one_line_with_its_place() {
        let refused = |text: &str| Pattern::new(text, Reading::default()).unwrap_err();
        assert_eq!(refused("ab(c"), "`ab(c` is not a regular expression: unclosed group at character 3");
        assert!(refused("a)b(c").contains("unopened group at character 2"), "{}", refused("a)b(c"));
        assert!(refused("\\p{Nothing}").contains("property not found"), "{}", refused("\\p{Nothing}"));
        assert!(!refused("a\n(b").contains('\n'));
        assert!(refused("a{99999}{99999}").contains("size limit") || refused("a{99999}{99999}").contains("too big"));
    }

    #[cfg(not(feature = "pcre2"))]
    #[test]
    fn look_around_and_backreferences_are_named() {
        let refused = |text: &str| Pattern::new(text, Reading::default()).unwrap_err();
        assert!(refused("foo(?=bar)").contains("this search has no look-around"), "{}", refused("foo(?=bar)"));
        assert!(refused("(a)\\1").contains("this search has no backreferences"), "{}", refused("(a)\\1"));
    }

    #[cfg(feature = "pcre2")]
    #[test]
    fn look_around_and_backreferences_are_found() {
        assert!(finds("foo(?=bar)", Reading::default(), "foobar"));
        assert!(finds("(.)\\1", Reading::default(), "noon") && !finds("(.)\\1", Reading::default(), "none"));
    }

    #[test]
    fn a_plain_word_is_part_of_a_name_and_a_glob_is_a_glob() {
        let accepts = |glob: &str, path: &str| {
            Glob::names(glob, false).unwrap().accepts(Path::new("/w"), Path::new(path))
        };
        assert!(accepts("read", "src/already.rs") && !accepts("read", "read/x.rs"));
        assert!(accepts("*.rs", "src/a.rs") && !accepts("*.rs", "src/a.rst"));
        assert!(accepts("docs/*.md", "docs/a.md") && !accepts("docs/*.md", "src/a.md"));
        assert!(!accepts("docs/*.md", "docs/deep/a.md") && accepts("docs/**/*.md", "docs/deep/a.md"));
        assert!(accepts("./docs/*.md", "docs/a.md") && accepts("/w/docs/*", "docs/a.md"));
        assert!(accepts("/docs/*", "docs/a.md") && !accepts("/docs/*", "x/docs/a.md"));
        assert!(accepts("docs/a", "x/docs/a.md") && !accepts("docs/b", "x/docs/a.md"));
        assert!(accepts("a[1].txt", "a[1].txt") && accepts("a[1].txt", "a1.txt"));
    }

    #[test]
    fn a_filter_can_leave_out() {
        let accepts = |glob: &str, path: &str| {
            Glob::filter(glob, false).unwrap().accepts(Path::new("/w"), Path::new(path))
        };
        assert!(accepts("!*.md", "a.rs") && !accepts("!*.md", "a.md"));
        assert!(accepts("a", "a") && !accepts("a", "ab"), "a filter is a whole name");
    }
}
