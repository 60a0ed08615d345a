//! Bash and we take the same texts for scripts.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the helpers of a test are tests too, and it reports")]

mod bash;
mod rows;

use std::collections::BTreeSet;
use std::path::Path;

use hermes_guard::parses;
use rows::random::Random;

/// Texts on which bash and we differ, asked of both; in two threads, because bash has to be started for each.
fn differing(texts: &[String]) -> Vec<(String, bool)> {
    let texts: Vec<&String> = texts.iter().filter(|text| !text.contains('\0') && text.len() < 100_000).collect();
    std::thread::scope(|scope| {
        let halves: Vec<_> = texts.chunks(texts.len().div_ceil(2).max(1)).collect();
        let ask = |half: &[&String]| -> Vec<(String, bool)> {
            let differs = |text: &&&String| bash::accepts(text) != parses(text).is_ok();
            half.iter().filter(differs).map(|text| ((**text).clone(), parses(text).is_ok())).collect()
        };
        let threads: Vec<_> = halves.into_iter().map(|half| scope.spawn(move || ask(half))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// The listed differences: the text as JSON, two blanks, `#`, the reason.
fn listed() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/grammar-differs.txt");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once("  # "))
        .map(|(text, _)| serde_json::from_str(text).unwrap())
        .collect()
}

#[test]
fn a_command_of_the_corpus_is_a_script_for_us_if_it_is_one_for_bash() {
    if !bash::is_here() {
        return;
    }
    let texts: BTreeSet<String> = rows::all().into_iter().map(|row| row.cmd).collect();
    let differing = differing(&texts.into_iter().collect::<Vec<_>>());
    let listed = listed();
    let unlisted: Vec<String> = differing
        .iter()
        .filter(|(text, _)| !listed.contains(text))
        .map(|(text, ours)| {
            format!("{}  # {}", serde_json::json!(text), if *ours { "only we read it" } else { "only bash reads it" })
        })
        .collect();
    println!("{} differ, {} of them not listed", differing.len(), unlisted.len());
    assert!(unlisted.is_empty(), "{}", unlisted.join("\n"));
    let now: BTreeSet<String> = differing.into_iter().map(|(text, _)| text).collect();
    let stale: Vec<&String> = listed.difference(&now).collect();
    assert!(stale.is_empty(), "no difference any more: {stale:#?}");
}

/// Pieces that mean something to a shell.
const PIECES: &[&str] = &[
    "(",
    ")",
    "((",
    "))",
    "{ ",
    "; }",
    "}",
    "[[ ",
    " ]]",
    "$(",
    "${",
    "`",
    "'",
    "\"",
    "\\",
    "\n",
    ";",
    ";;",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    "<",
    ">",
    ">>",
    "<<E\n",
    "\nE\n",
    "<<<",
    "<(",
    ">&2",
    "&>",
    "2>",
    "if ",
    "; then ",
    "; else ",
    "; fi",
    "for x in a; do ",
    "; done",
    "while ",
    "do ",
    "case x in ",
    "a) ",
    " esac",
    "function f ",
    "f() ",
    "! ",
    "time ",
    "coproc ",
    "#",
    " # ",
    "a=",
    "a[1]=",
    "a+=(",
    "$((",
    "$'",
    "$\"",
    "~",
    "*",
    "?",
    "@(",
    "!(",
    "=",
    "-",
    " ",
    "\t",
    "x",
    "echo ",
    "{a,b}",
    "${x:-",
    "${x/a/",
    "${#",
    "${!x",
    "select x in a; do ",
    "until ",
    "in ",
    "declare ",
    "export a=(",
    "1",
    "{fd}>",
    "$",
];

/// A text near to one that somebody would write: cut off, with a piece more, one less, or two of them joined.
fn near(random: &mut Random, texts: &[String]) -> String {
    let text = &texts[random.below(texts.len())];
    let border = |random: &mut Random, text: &str| {
        let at = random.below(text.len() + 1);
        (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
    };
    let mut text = text.chars().take(200).collect::<String>();
    for _ in 0..=random.below(3) {
        let at = border(random, &text);
        match random.below(5) {
            0 => text.truncate(at),
            1 => drop(text.drain(..at)),
            2 | 3 => text.insert_str(at, random.of(PIECES)),
            _ => {
                text.insert_str(at, random.of(PIECES));
                let at = border(random, &text);
                text.insert_str(at, random.of(PIECES));
            }
        }
    }
    text
}

/// Nothing but pieces.
fn pieces(random: &mut Random) -> String {
    (0..2 + random.below(9)).map(|_| random.of(PIECES)).collect()
}

#[test]
fn a_text_near_to_a_command_is_a_script_for_us_if_it_is_one_for_bash() {
    if !bash::is_here() {
        return;
    }
    let (seed, count) = rows::random::from_environment(2_000);
    let texts: Vec<String> = rows::all().into_iter().map(|row| row.cmd).collect();
    let mut random = Random::new(seed);
    let texts: Vec<String> = (0..count)
        .map(|at| if at % 2 == 0 { near(&mut random, &texts) } else { pieces(&mut random) })
        .filter(|text| text.contains(|c: char| !c.is_whitespace()))
        .collect();
    let differing = differing(&texts);
    let (ours, theirs): (Vec<_>, Vec<_>) = differing.iter().partition(|(_, ours)| *ours);
    println!("of {} texts {} are read only by us and {} only by bash", texts.len(), ours.len(), theirs.len());
    // What bash finds wrong only when it comes to it is wrong for us at once, and asks: `${…}`, backticks, arithmetic. Of
    // wrong conditions it says nothing when it only reads.
    // The name of a loop's variable is looked at when the loop begins.
    let misnamed = |name: &str| !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let later = |text: &str| {
        ["${", "`", "((", "$[", "[["].iter().any(|part| text.contains(part))
            || text.split("for ").skip(1).any(|rest| rest.split_whitespace().next().is_some_and(misnamed))
    };
    let refused: Vec<_> = theirs.iter().filter(|(text, _)| !later(text)).collect();
    assert!(refused.is_empty(), "bash reads these, and we do not: {refused:#?}");
    // What bash refuses does nothing, so that reading it costs a question at most: conditions, extended globs, brackets.
    for (text, _) in &ours {
        println!("only we read {text:?}");
    }
}
