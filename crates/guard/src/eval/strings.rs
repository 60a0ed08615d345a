//! What `${…}` does with a text: prefixes, suffixes, replacements, parts, letters.

use crate::shell::syntax::{Anchor, Letters};
use crate::text::{self, HOLE, MATCH};

/// The longest text that is matched against a pattern piece by piece.
const LONGEST_MATCHED: usize = 4_096;

pub(super) fn letters(text: &str, to: Letters, all: bool, pattern: &str) -> String {
    let mut changed = String::with_capacity(text.len());
    for (index, c) in text.chars().enumerate() {
        if index > 0 && !all || !pattern.is_empty() && !text::matches(pattern, c.encode_utf8(&mut [0; 4])) {
            changed.push(c);
            continue;
        }
        match to {
            Letters::Upper => changed.extend(c.to_uppercase()),
            Letters::Lower => changed.extend(c.to_lowercase()),
            Letters::Other if c.is_uppercase() => changed.extend(c.to_lowercase()),
            Letters::Other => changed.extend(c.to_uppercase()),
        }
    }
    changed
}

pub(super) fn first(text: &str, upper: bool) -> String {
    let mut chars = text.chars();
    let Some(c) = chars.next() else { return String::new() };
    let changed: String = if upper { c.to_uppercase().collect() } else { c.to_lowercase().collect() };
    changed + chars.as_str()
}

fn borders(text: &str) -> impl DoubleEndedIterator<Item = usize> + '_ {
    text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len()))
}

pub(super) fn drop_prefix(text: &str, pattern: &str, longest: bool) -> String {
    if text.len() > LONGEST_MATCHED || text::is_unknown(pattern) {
        return format!("{HOLE}");
    }
    if text::is_literal(pattern) {
        return text.strip_prefix(pattern).unwrap_or(text).to_owned();
    }
    let fits = |at: &usize| text::matches(pattern, &text[..*at]);
    let end = if longest { borders(text).rev().find(fits) } else { borders(text).find(fits) };
    text[end.unwrap_or(0)..].to_owned()
}

pub(super) fn drop_suffix(text: &str, pattern: &str, longest: bool) -> String {
    if text.len() > LONGEST_MATCHED || text::is_unknown(pattern) {
        return format!("{HOLE}");
    }
    if text::is_literal(pattern) {
        return text.strip_suffix(pattern).unwrap_or(text).to_owned();
    }
    let fits = |at: &usize| text::matches(pattern, &text[*at..]);
    let begin = if longest { borders(text).find(fits) } else { borders(text).rev().find(fits) };
    text[..begin.unwrap_or(text.len())].to_owned()
}

pub(super) fn replace(text: &str, pattern: &str, with: &str, all: bool, anchor: Option<Anchor>) -> String {
    if pattern.is_empty() {
        let with = with.replace(MATCH, "");
        return match anchor {
            Some(Anchor::Start) => format!("{with}{text}"),
            Some(Anchor::End) => format!("{text}{with}"),
            None => text.to_owned(),
        };
    }
    if text::is_unknown(pattern) || (!text::is_literal(pattern) && text.len() > 256) {
        return format!("{HOLE}");
    }
    if text.is_empty() {
        return if text::matches(pattern, "") { with.replace(MATCH, "") } else { String::new() };
    }
    match anchor {
        Some(Anchor::Start) => {
            let end = borders(text).rev().find(|at| text::matches(pattern, &text[..*at]));
            return end.map_or_else(
                || text.to_owned(),
                |end| format!("{}{}", with.replace(MATCH, &text[..end]), &text[end..]),
            );
        }
        Some(Anchor::End) => {
            let begin = borders(text).find(|at| text::matches(pattern, &text[*at..]));
            return begin.map_or_else(
                || text.to_owned(),
                |begin| format!("{}{}", &text[..begin], with.replace(MATCH, &text[begin..])),
            );
        }
        None => {}
    }
    if text::is_literal(pattern) {
        let with = &with.replace(MATCH, pattern);
        return if all { text.replace(pattern, with) } else { text.replacen(pattern, with, 1) };
    }
    let mut out = String::new();
    let mut at = 0;
    while at < text.len() {
        let found = borders(text).rev().filter(|end| *end > at).find(|end| text::matches(pattern, &text[at..*end]));
        match found {
            Some(end) => {
                out.push_str(&with.replace(MATCH, &text[at..end]));
                at = end;
                if !all {
                    break;
                }
            }
            None => {
                let length = text[at..].chars().next().map_or(1, char::len_utf8);
                out.push_str(&text[at..at + length]);
                at += length;
            }
        }
    }
    out.push_str(&text[at..]);
    out
}

/// The part of something that `:offset:length` means; without a length the rest of it. Nothing where bash would refuse.
fn range(size: usize, offset: i64, length: Option<i64>) -> Option<std::ops::Range<usize>> {
    let from_end = |back: i64| usize::try_from(back.unsigned_abs()).ok().and_then(|back| size.checked_sub(back));
    let begin = match usize::try_from(offset) {
        Ok(begin) => begin.min(size),
        Err(_) => match from_end(offset) {
            Some(begin) => begin,
            None => return Some(0..0),
        },
    };
    let end = match length.map(|length| (length, usize::try_from(length))) {
        None => size,
        Some((_, Ok(length))) => begin.saturating_add(length),
        Some((length, Err(_))) => from_end(length)?,
    };
    Some(begin..end.clamp(begin, size))
}

pub(super) fn substring(text: &str, offset: i64, length: Option<i64>) -> String {
    if !text::is_literal(text) {
        return HOLE.into();
    }
    let chars: Vec<char> = text.chars().collect();
    range(chars.len(), offset, length).map_or_else(|| HOLE.into(), |range| chars[range].iter().collect())
}

pub(super) fn slice(values: &[String], offset: i64, length: Option<i64>) -> Vec<String> {
    range(values.len(), offset, length).map_or_else(|| vec![HOLE.into()], |range| values[range].to_vec())
}
