//! Programs, each with the parser whose "error" can be trusted (docs/decisions/syntax.md has the figures).
//!
//! Those for Python, JavaScript and Rust recurse, and a text can be nothing but brackets. A stack that is too small ends
//! the whole program, so they run on a thread with as much of it as the deepest nesting of so many bytes could need:
//! pages that are never touched cost nothing. The others work with tables and take what they need from the heap.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use oxc_parser::{ParseOptions as ScriptOptions, Parser as ScriptParser};
use oxc_span::SourceType;
use ra_ap_parser::{Edition, LexedStr, StrStep, TopEntryPoint};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};

use super::language::Language;
use super::{Problem, Verdict};

/// What one byte of a program can take of the stack: the most is 1.6 KiB, `(` in JavaScript. Without optimisation frames
/// are several times as large.
const STACK_PER_BYTE: usize = if cfg!(debug_assertions) { 8 << 10 } else { 3 << 10 };

/// What a parser needs beside it.
const STACK: usize = 1 << 20;

/// How many brackets, or how many `<`, may be open. A parser that tries what they could be takes the cube of them.
const MOST_OPEN: usize = 500;

/// A parser that works with tables stops after this time.
const LONGEST: Duration = Duration::from_secs(2);

pub(super) fn check(language: Language, path: &Path, text: &str) -> Verdict {
    match language {
        Language::Go => by_table(&tree_sitter_go::LANGUAGE.into(), text),
        Language::Java => by_table(&tree_sitter_java::LANGUAGE.into(), text),
        _ if open(text, language == Language::Script) > MOST_OPEN => {
            Verdict::Skipped("it is nested too deeply to be checked".into())
        }
        Language::Python => with_room(text, || python(text)),
        Language::Rust => with_room(text, || rust(text)),
        _ => with_room(text, || script(path, text)),
    }
}

fn with_room(text: &str, parse: impl FnOnce() -> Verdict + Send) -> Verdict {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK + text.len() * STACK_PER_BYTE);
        let Ok(thread) = thread.spawn_scoped(scope, parse) else {
            return Verdict::Skipped("there is not enough memory for the parser".into());
        };
        thread.join().unwrap_or_else(|_| Verdict::Skipped("the parser failed on this text".into()))
    })
}

fn verdict(mut problems: Vec<Problem>) -> Verdict {
    if problems.is_empty() {
        return Verdict::Fine(None);
    }
    problems.sort_by_key(|problem| problem.at);
    Verdict::Broken(problems)
}

fn python(text: &str) -> Verdict {
    let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module));
    let problem = |error: &ruff_python_parser::ParseError| {
        Problem::new(usize::from(error.location.start()), error.error.to_string())
    };
    verdict(parsed.errors().iter().map(problem).collect())
}

fn script(path: &Path, text: &str) -> Verdict {
    let kind = SourceType::from_path(path).unwrap_or_else(|_| SourceType::unambiguous());
    // Many a project writes JSX in `.js`.
    let kind = kind.with_jsx(kind.is_jsx() || kind.is_javascript());
    let allocator = oxc_allocator::Allocator::default();
    // In CommonJS, a file is the body of a function.
    let options = ScriptOptions { allow_return_outside_function: true, ..ScriptOptions::default() };
    let parsed = ScriptParser::new(&allocator, text, kind).with_options(options).parse();
    if parsed.is_flow_language {
        return Verdict::Skipped("this is Flow, which is not checked".into());
    }
    let problems = parsed.diagnostics.iter().map(|error| {
        let at = error.labels.first().map_or(0, |label| label.span().start as usize);
        Problem::new(at, error.message.to_string())
    });
    verdict(problems.collect())
}

/// How many brackets are open at most at one place, as far as a look at the characters tells; with `angles`, how many `<`
/// if those are more.
fn open(text: &str, angles: bool) -> usize {
    let (mut open, mut open_angles, mut most, mut last) = (0_usize, 0_usize, 0, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b'<' if angles => open_angles += 1,
            b'>' if last != b'=' => open_angles = open_angles.saturating_sub(1),
            b';' => open_angles = 0,
            _ => {}
        }
        most = most.max(open).max(open_angles);
        last = byte;
    }
    most
}

/// Rust of any edition: a file does not say which one it is in, and words are reserved in one that are names in another.
fn rust(text: &str) -> Verdict {
    let newest_first = [Edition::Edition2024, Edition::Edition2021, Edition::Edition2018, Edition::Edition2015];
    let mut said = None;
    for edition in newest_first {
        let problems = rust_of(edition, text);
        if problems.is_empty() {
            return Verdict::Fine(None);
        }
        said.get_or_insert(problems);
    }
    verdict(said.unwrap_or_default())
}

fn rust_of(edition: Edition, text: &str) -> Vec<Problem> {
    let lexed = LexedStr::new(edition, text);
    let output = TopEntryPoint::SourceFile.parse(&lexed.to_input(edition));
    let mut problems: Vec<Problem> =
        lexed.errors().map(|(token, what)| Problem::new(lexed.text_start(token), what)).collect();
    lexed.intersperse_trivia(&output, &mut |step| {
        if let StrStep::Error { msg, pos } = step {
            problems.push(Problem::new(pos, msg));
        }
    });
    problems
}

fn by_table(language: &tree_sitter::Language, text: &str) -> Verdict {
    let mut parser = tree_sitter::Parser::new();
    if parser.set_language(language).is_err() {
        return Verdict::Skipped("its grammar cannot be used".into());
    }
    let until = Instant::now() + LONGEST;
    let mut go_on = |_: &tree_sitter::ParseState| {
        if Instant::now() < until { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let options = tree_sitter::ParseOptions::new().progress_callback(&mut go_on);
    let Some(tree) = parser.parse_with_options(&mut |at, _| &text.as_bytes()[at..], None, Some(options)) else {
        return Verdict::Skipped(format!("it takes longer than {} s to parse", LONGEST.as_secs()));
    };
    verdict(errors(tree.root_node(), text))
}

/// The places in a tree where something is missing or too much, in order.
fn errors(root: tree_sitter::Node<'_>, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.is_missing() {
            problems.push(Problem::new(node.start_byte(), format!("expected `{}`", node.kind())));
        } else if node.is_error() {
            problems.push(unexpected(node, text));
        } else if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return problems;
            }
        }
    }
}

/// What is wrong with a piece that fits nowhere: mostly a bracket that is never closed, and then its place says more than
/// the place where the piece begins.
fn unexpected(node: tree_sitter::Node<'_>, text: &str) -> Problem {
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut cursor = node.walk();
    let mut next = cursor.goto_first_child();
    while next {
        let child = cursor.node();
        match child.kind() {
            bracket @ ("(" | "[" | "{") => open.push((child.start_byte(), bracket)),
            ")" | "]" | "}" => drop(open.pop()),
            _ => {}
        }
        next = cursor.goto_next_sibling();
    }
    match open.last() {
        Some((at, bracket)) => Problem::new(*at, format!("`{bracket}` is never closed, or something in it is wrong")),
        None => {
            let piece = text[node.byte_range()].trim();
            let piece: String = piece.split_whitespace().next().unwrap_or_default().chars().take(40).collect();
            Problem::new(node.start_byte(), format!("unexpected `{piece}`"))
        }
    }
}
