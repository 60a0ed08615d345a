//! Three readers of shell text side by side: ours, `brush-parser`, and `tree-sitter-bash`. Why ours is ours:
//! `docs/decisions/shell-grammar.md`. Run with `cargo bench -p hermes-guard --bench readers`.
//!
//! Only reading is measured; the others would have their words still to be taken apart. Each text is new in every round,
//! because one of the readers remembers texts.
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::hint::black_box;
use std::time::Duration;

use hermes_testkit::measure::{median, ratio, shown, timed};

const ROUNDS: usize = 9;
const SIZE: usize = 100_000;

fn repeated(unit: &str) -> String {
    unit.repeat(SIZE / unit.len() + 1)
}

/// The medians of the three for texts of one shape.
fn measured(text: &str) -> [Duration; 3] {
    let mut times = [const { Vec::new() }; 3];
    let mut editor = tree_sitter::Parser::new();
    let language = editor.set_language(&tree_sitter_bash::LANGUAGE.into());
    assert!(language.is_ok(), "the grammar and the library do not fit");
    for round in 0..=ROUNDS {
        let text = format!("{text}\n# {round}");
        let ours = timed(&mut || drop(black_box(hermes_guard::parses(&text))));
        let brush = timed(&mut || {
            let tokens = brush_parser::tokenize_str(&text);
            let options = brush_parser::ParserOptions::default();
            drop(black_box(tokens.map(|tokens| brush_parser::parse_tokens(&tokens, &options).is_ok())));
        });
        let tree = timed(&mut || drop(black_box(editor.parse(&text, None))));
        if round > 0 {
            for (times, time) in times.iter_mut().zip([ours, brush, tree]) {
                times.push(time);
            }
        }
    }
    times.map(median)
}

fn main() {
    println!("{:<28} {:>10} {:>18} {:>18}", "100 kB of", "ours", "brush-parser", "tree-sitter");
    for (name, unit) in [
        ("short commands", "tee a\n"),
        ("commands with an option", "chmod +x a\n"),
        ("words", "sudo-words a "),
        ("pipes", "echo a | tr b c | "),
        ("assignments", "A=1 "),
        ("quotes", "'a' \"b\" "),
        ("substitutions", "$(echo a) "),
        ("a loop", "for i in a b; do echo \"$i\"; done; "),
    ] {
        let text = if name == "pipes" { repeated(unit) + "cat" } else { repeated(unit) };
        let [ours, brush, tree] = measured(&text);
        println!(
            "{name:<28} {:>10} {:>10} ({:>4.1}x) {:>10} ({:>4.1}x)",
            shown(ours),
            shown(brush),
            ratio(brush, ours),
            shown(tree),
            ratio(tree, ours),
        );
    }
}
