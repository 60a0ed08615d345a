//! Text of which parts may be unknown.
//!
//! The one tricky idea of the evaluator: a half-known text is an ordinary `String` in which characters from a private
//! plane stand for what is not literal. Cutting, joining, replacing and comparing then need no second kind of string, and
//! a text can be read as a script again without losing what is unknown in it. [`clean`] keeps these characters out of
//! what comes from outside.

use std::str::Chars;

/// Text of any length that nobody knows; one argument.
pub(crate) const HOLE: char = '\u{F0000}';
/// The same, outside of quotes: any number of arguments.
pub(crate) const HOLES: char = '\u{F0001}';
/// The same, from a command substitution.
pub(crate) const OUTPUT: char = '\u{F0002}';
/// The same, and it holds a secret.
pub(crate) const SECRET: char = '\u{F0003}';
/// The same, and it came over the network.
pub(crate) const REMOTE: char = '\u{F0004}';
/// Unknown text without blanks, slashes or anything a shell minds: a number, a date, a host's name.
pub(crate) const PLAIN: char = '\u{F0005}';
/// The number of a process that this very command started.
pub(crate) const JOB: char = '\u{F0006}';
/// A name that `mktemp` made up.
pub(crate) const FRESH: char = '\u{F0007}';
/// A living `*`.
pub(crate) const STAR: char = '\u{F0008}';
/// A living `?`.
pub(crate) const QUERY: char = '\u{F0009}';
/// A living `[`.
pub(crate) const BRACKET: char = '\u{F000A}';
/// A living `&` in a replacement: what was matched.
pub(crate) const MATCH: char = '\u{F000B}';

/// On both sides of a name behind a [`HOLE`]: the hole is the value of a variable, which may be known to whoever reads on.
pub(crate) const NAME: char = '\u{F000C}';

/// The characters of the private planes that this module claims.
const CLAIMED: std::ops::RangeInclusive<char> = '\u{F0000}'..='\u{F00FF}';

/// A text from outside, without the characters that mean something here.
pub(crate) fn clean(text: &str) -> std::borrow::Cow<'_, str> {
    // All claimed characters begin with the byte F3 in UTF-8.
    if text.as_bytes().contains(&0xF3) && text.contains(|c| CLAIMED.contains(&c)) {
        text.replace(|c| CLAIMED.contains(&c), "\u{FFFD}").into()
    } else {
        text.into()
    }
}

/// Whether a character stands for text that nobody knows.
pub(crate) fn is_hole(c: char) -> bool {
    (HOLE..=REMOTE).contains(&c)
}

/// Whether nobody knows a part of the text; [`PLAIN`], [`JOB`] and [`FRESH`] are known well enough.
pub(crate) fn is_unknown(text: &str) -> bool {
    text.as_bytes().contains(&0xF3) && text.contains(is_hole)
}

/// Whether anything in the text is not literal.
pub(crate) fn is_literal(text: &str) -> bool {
    !text.as_bytes().contains(&0xF3) || !text.contains(|c| CLAIMED.contains(&c))
}

/// Whether the text holds a living `*`, `?` or `[`.
pub(crate) fn has_glob(text: &str) -> bool {
    text.as_bytes().contains(&0xF3) && text.contains([STAR, QUERY, BRACKET])
}

/// The text with living globs as the characters they were, for reading it again or showing it.
pub(crate) fn unglob(text: &str) -> String {
    if is_literal(text) {
        return text.to_owned();
    }
    text.chars().map(dead).collect()
}

/// A path as a pattern that matches it: what is not literal becomes what it was, or `*`.
pub(crate) fn as_pattern(path: &str) -> String {
    let wild = |c| if CLAIMED.contains(&c) { '*' } else { c };
    unglob(path).chars().map(wild).collect()
}

/// The text as a person reads it: what is unknown becomes `…`.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in unglob(text).chars() {
        match c {
            JOB => shown.push_str("$!"),
            c if CLAIMED.contains(&c) => {
                if !shown.ends_with('…') {
                    shown.push('…');
                }
            }
            c => shown.push(c),
        }
    }
    shown
}

/// The text with living globs for `*`, `?` and `[`.
pub(crate) fn live(text: &str) -> String {
    if !text.contains(['*', '?', '[']) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| match c {
            '*' => STAR,
            '?' => QUERY,
            '[' => BRACKET,
            other => other,
        })
        .collect()
}

/// Whether `name` matches a pattern with living globs and holes, either of which may stand for any text. Linear but for
/// one step back to the last star.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    fits(pattern, name, |a, b| a == b)
}

/// The same without regard to the case of letters.
pub(crate) fn matches_folded(pattern: &str, name: &str) -> bool {
    fits(pattern, name, |a, b| a.eq_ignore_ascii_case(&b))
}

fn fits(pattern: &str, name: &str, same: fn(char, char) -> bool) -> bool {
    // What is left of both, and what was left after the last star.
    let (mut p, mut n) = (pattern.chars(), name.chars());
    let mut back: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let (mut after_p, mut after_n) = (p.clone(), n.clone());
        let step = match (after_p.next(), after_n.next()) {
            (Some(c), _) if c == STAR || is_hole(c) || matches!(c, PLAIN | FRESH) => {
                back = Some((after_p.clone(), n.clone()));
                p = after_p;
                continue;
            }
            (None, None) => return true,
            (Some(QUERY), Some(_)) => Some(after_p),
            (Some(BRACKET), Some(c)) => bracket(p.clone(), c),
            (Some(own), Some(c)) if same(own, c) => Some(after_p),
            _ => None,
        };
        match (step, &mut back) {
            (Some(next), _) => (p, n) = (next, after_n),
            (None, Some((after, from))) => {
                if from.next().is_none() {
                    return false;
                }
                (p, n) = (after.clone(), from.clone());
            }
            _ => return false,
        }
    }
}

/// What follows the bracket expression that `pattern` begins with, if it matches.
fn bracket(pattern: Chars<'_>, c: char) -> Option<Chars<'_>> {
    let mut rest = pattern;
    rest.next();
    let negated = rest.clone().next().is_some_and(|sign| matches!(sign, '!' | '^'));
    if negated {
        rest.next();
    }
    let (mut found, mut first) = (false, true);
    loop {
        let one = rest.next()?;
        if one == ']' && !first {
            return (found != negated).then_some(rest);
        }
        first = false;
        let mut range = rest.clone();
        match (range.next(), range.next()) {
            (Some(':'), _) if matches!(one, '[' | BRACKET) => {
                let (name, behind) = rest.as_str()[1..].split_once(':')?;
                found |= is_of_class(c, name);
                rest = behind.chars();
                rest.next();
            }
            (Some('-'), Some(high)) if high != ']' => {
                found |= (one..=high).contains(&c);
                rest = range;
            }
            _ => found |= dead(one) == c,
        }
    }
}

/// A living glob as the character that it was.
fn dead(c: char) -> char {
    match c {
        STAR => '*',
        QUERY => '?',
        BRACKET => '[',
        other => other,
    }
}

/// The classes of POSIX; nobody knows others.
fn is_of_class(c: char, name: &str) -> bool {
    match name {
        "alnum" => c.is_alphanumeric(),
        "alpha" => c.is_alphabetic(),
        "ascii" => c.is_ascii(),
        "blank" => c == ' ' || c == '\t',
        "cntrl" => c.is_control(),
        "digit" => c.is_ascii_digit(),
        "graph" => !c.is_control() && !c.is_whitespace(),
        "lower" => c.is_lowercase(),
        "print" => !c.is_control(),
        "punct" => !c.is_control() && !c.is_whitespace() && !c.is_alphanumeric(),
        "space" => c.is_whitespace(),
        "upper" => c.is_uppercase(),
        "word" => c.is_alphanumeric() || c == '_',
        "xdigit" => c.is_ascii_hexdigit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_what_the_shell_would_match() {
        for (pattern, name, expected) in [
            ("*", "etc", true),
            ("e*", "etc", true),
            ("?tc", "etc", true),
            ("??", "etc", false),
            ("[a-f]tc", "etc", true),
            ("[!e]tc", "etc", false),
            ("*tc*", "etc", true),
            ("*b*d", "abcd", true),
            ("*b*e", "abcd", false),
            ("[[:upper:]x]", "B", true),
            ("[[:upper:]x]", "b", false),
            ("[^[:digit:]]", "a", true),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
        ] {
            assert_eq!(matches(&live(pattern), name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn claimed_characters_do_not_come_in_from_outside() {
        let text = format!("a{HOLE}b");
        assert!(is_unknown(&text));
        assert!(is_literal(&clean(&text)));
    }
}
