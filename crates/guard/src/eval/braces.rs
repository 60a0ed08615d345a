//! Brace expansion: one word becomes several, before anything else happens to it.

use crate::shell::syntax::{Part, Word};
use crate::text::{HOLE, HOLES, PLAIN};

/// How many words one brace expression may become.
const MOST_BRACES: usize = 64;
/// How many characters of a word are looked through for braces.
const LONGEST: usize = 4_096;

pub(super) fn has_braces(word: &Word) -> bool {
    word.parts.iter().any(|part| matches!(part, Part::Bare(text) if text.contains('{')))
}

/// A character outside of quotes, or a piece that braces do not look into.
#[derive(Clone, Copy)]
enum Token<'w> {
    Character(char),
    Piece(&'w Part),
}

/// `a{b,c}d` as `abd acd`, and `{1..3}` as `1 2 3`.
pub(super) fn braces(word: &Word) -> Vec<Word> {
    let mut tokens = Vec::new();
    for part in &word.parts {
        match part {
            Part::Bare(text) => tokens.extend(text.chars().map(Token::Character)),
            other => tokens.push(Token::Piece(other)),
        }
    }
    if tokens.len() > LONGEST {
        // What so many braces become, nobody counts.
        let chooses = |part: &Part| matches!(part, Part::Bare(text) if text.contains(',') || text.contains(".."));
        return if word.parts.iter().any(chooses) { vec![Word::quoted(HOLES)] } else { vec![word.clone()] };
    }
    let mut words = Vec::new();
    let mut budget = MOST_BRACES;
    spread(&tokens, &mut budget, 0).into_iter().for_each(|tokens| words.push(collect(&tokens)));
    words
}

fn collect(tokens: &[Token<'_>]) -> Word {
    let mut parts: Vec<Part> = Vec::new();
    for token in tokens {
        match (token, parts.last_mut()) {
            (Token::Character(c), Some(Part::Bare(text))) => text.push(*c),
            (Token::Character(c), _) => parts.push(Part::Bare(c.to_string())),
            (Token::Piece(part), _) => parts.push((*part).clone()),
        }
    }
    Word { parts }
}

fn spread<'w>(tokens: &[Token<'w>], budget: &mut usize, depth: usize) -> Vec<Vec<Token<'w>>> {
    let is = |at: usize, wanted: char| matches!(tokens.get(at), Some(Token::Character(c)) if *c == wanted);
    if depth > 16 {
        // Whatever is left of so many braces stands for anything.
        let open = (0..tokens.len()).any(|at| is(at, '{'));
        return vec![if open { vec![Token::Character(HOLE)] } else { tokens.to_vec() }];
    }
    for open in 0..tokens.len() {
        if !is(open, '{') {
            continue;
        }
        let mut level = 0_usize;
        let mut commas = Vec::new();
        let mut close = None;
        for at in open + 1..tokens.len() {
            if is(at, '{') {
                level += 1;
            } else if is(at, '}') {
                if level == 0 {
                    close = Some(at);
                    break;
                }
                level -= 1;
            } else if is(at, ',') && level == 0 {
                commas.push(at);
            }
        }
        let Some(close) = close else { continue };
        let mut choices: Vec<Vec<Token<'w>>> = Vec::new();
        if commas.is_empty() {
            let Some(items) = sequence(&tokens[open + 1..close]) else { continue };
            choices.extend(items.into_iter().map(|item| item.chars().map(Token::Character).collect()));
        } else {
            let mut begin = open + 1;
            for end in commas.into_iter().chain([close]) {
                choices.extend(spread(&tokens[begin..end], budget, depth + 1));
                begin = end + 1;
            }
        }
        let tails = spread(&tokens[close + 1..], budget, depth + 1);
        let mut all = Vec::new();
        for choice in &choices {
            for tail in &tails {
                if *budget == 0 && !all.is_empty() {
                    // Too many: what is left out stands for anything.
                    let mut rest = tokens[..open].to_vec();
                    rest.push(Token::Character(HOLE));
                    rest.extend(tail);
                    all.push(rest);
                    return all;
                }
                *budget = budget.saturating_sub(1);
                let mut one = tokens[..open].to_vec();
                one.extend(choice);
                one.extend(tail);
                all.push(one);
            }
        }
        return all;
    }
    vec![tokens.to_vec()]
}

/// The items of `1..5`, `a..e`, `1..9..2`; past a few dozen one item stands for the rest.
fn sequence(tokens: &[Token<'_>]) -> Option<Vec<String>> {
    let text: Option<String> = tokens
        .iter()
        .map(|token| match token {
            Token::Character(c) => Some(*c),
            Token::Piece(_) => None,
        })
        .collect();
    let text = text?;
    let parts: Vec<&str> = text.split("..").collect();
    let (&[first, last] | &[first, last, _]) = parts.as_slice() else { return None };
    let step = match parts.get(2) {
        Some(step) => usize::try_from(step.parse::<i64>().ok()?.unsigned_abs().max(1)).ok()?,
        None => 1,
    };
    let letter = |text: &str| text.chars().next().filter(|c| text.len() == 1 && c.is_ascii_alphabetic());
    let (from, to, letters) = match (letter(first), letter(last)) {
        (Some(a), Some(b)) => (i64::from(u32::from(a)), i64::from(u32::from(b)), true),
        _ => (first.parse::<i64>().ok()?, last.parse::<i64>().ok()?, false),
    };
    let padded = |text: &str| {
        let digits = text.trim_start_matches(['-', '+']);
        digits.len() > 1 && digits.starts_with('0')
    };
    let width = if !letters && (padded(first) || padded(last)) { first.len().max(last.len()) } else { 0 };
    let show = |value: i64| {
        if letters {
            u32::try_from(value).ok().and_then(char::from_u32).map(String::from).unwrap_or_default()
        } else {
            format!("{value:0width$}")
        }
    };
    let mut items: Vec<String> = if from <= to {
        (from..=to).step_by(step).take(MOST_BRACES / 2 + 1).map(show).collect()
    } else {
        (to..=from).rev().step_by(step).take(MOST_BRACES / 2 + 1).map(show).collect()
    };
    if items.len() > MOST_BRACES / 2 {
        items.pop();
        items.push(PLAIN.into());
    }
    Some(items)
}
