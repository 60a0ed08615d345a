//! Whether the filter of a statement really filters: conditions that are true for every row are none.

use super::reader::Token;
use crate::text;

/// How deep parentheses are followed; deeper conditions are taken for filters nobody can vouch for.
const DEEPEST: usize = 24;

/// Whether a condition leaves any row of `table` alone, as far as its text tells.
pub(super) fn filters(condition: &[Token], table: &str) -> bool {
    let untold = matches!(condition, [] | [Token::Word(_)])
        && condition.iter().all(|token| matches!(token, Token::Word(word) if text::is_unknown(word)));
    !untold && truth(condition, table, 0) != Some(true)
}

/// The value of a condition that is the same for every row.
fn truth(condition: &[Token], table: &str, depth: usize) -> Option<bool> {
    if depth > DEEPEST {
        return Some(true);
    }
    let either = split(condition, "or");
    if either.len() > 1 {
        let values: Vec<_> = either.iter().map(|part| truth(part, table, depth + 1)).collect();
        if values.contains(&Some(true)) || complete(&either) {
            return Some(true);
        }
        return values.iter().all(|value| *value == Some(false)).then_some(false);
    }
    // MySQL's other spelling of `or`; elsewhere it joins texts, and no whole comparison stands beside it.
    let bars: Vec<&[Token]> =
        condition.split(|token| *token == Token::Sign('|')).filter(|part| part.len() > 2).collect();
    if bars.len() > 1 && bars.iter().any(|part| truth(part, table, depth + 1) == Some(true)) {
        return Some(true);
    }
    let all = split(condition, "and");
    if all.len() > 1 {
        let values: Vec<_> = all.iter().map(|part| truth(part, table, depth + 1)).collect();
        if values.contains(&Some(false)) {
            return Some(false);
        }
        return values.iter().all(|value| *value == Some(true)).then_some(true);
    }
    match condition {
        [first, rest @ ..] if first.is("not") => truth(rest, table, depth + 1).map(|value| !value),
        [Token::Sign('!'), rest @ ..] => truth(rest, table, depth + 1).map(|value| !value),
        [Token::Sign('('), inner @ .., Token::Sign(')')] if closes_at_the_end(condition) => {
            truth(inner, table, depth + 1)
        }
        [first, Token::Sign('('), query @ .., Token::Sign(')')] if first.is("exists") => {
            (!query.iter().any(|token| token.is("from"))).then_some(true)
        }
        _ => compared(condition, table),
    }
}

/// Cuts at a word outside of parentheses; the `and` of `between` does not count.
fn split<'a>(tokens: &'a [Token], at: &str) -> Vec<&'a [Token]> {
    let mut parts = Vec::new();
    let (mut depth, mut begin, mut between) = (0_i32, 0, false);
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth -= 1,
            token if depth == 0 && token.is("between") => between = true,
            token if depth == 0 && token.is("and") && between => between = false,
            token if depth == 0 && token.is(at) => {
                parts.push(&tokens[begin..index]);
                begin = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[begin..]);
    parts
}

fn closes_at_the_end(tokens: &[Token]) -> bool {
    let mut depth = 0_i32;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1 == tokens.len();
        }
    }
    false
}

/// `a is null or a is not null`
fn complete(parts: &[&[Token]]) -> bool {
    // Each part is compared with each.
    parts.iter().take(64).any(|part| match part {
        [column @ .., is, null] if is.is("is") && null.is("null") => parts.iter().any(|other| {
            matches!(other, [same @ .., is, not, null] if *same == *column && is.is("is") && not.is("not") && null.is("null"))
        }),
        _ => false,
    })
}

#[derive(Clone, Debug, PartialEq)]
enum Constant {
    Number(f64),
    Text(String),
    Bool(bool),
    Null,
}

fn constant(tokens: &[Token]) -> Option<Constant> {
    match tokens {
        [Token::Number(number)] => number.parse().ok().map(Constant::Number),
        [Token::Sign('-'), Token::Number(number)] => number.parse().ok().map(|number: f64| Constant::Number(-number)),
        [Token::Text(text)] if !text::is_unknown(text) => Some(Constant::Text(text.clone())),
        [Token::Name(text)] if text.is_empty() => Some(Constant::Text(String::new())),
        [word] if word.is("true") => Some(Constant::Bool(true)),
        [word] if word.is("false") => Some(Constant::Bool(false)),
        [word] if word.is("null") => Some(Constant::Null),
        [Token::Sign('('), inner @ .., Token::Sign(')')] if inner.len() == 1 => constant(inner),
        _ => None,
    }
}

fn compared(condition: &[Token], table: &str) -> Option<bool> {
    if let Some(value) = constant(condition) {
        return Some(match value {
            Constant::Number(number) => number != 0.0,
            // MySQL reads a text as a number; anything else refuses it.
            Constant::Text(text) => !matches!(text.trim(), "" | "0" | "f" | "false"),
            Constant::Bool(value) => value,
            Constant::Null => false,
        });
    }
    let mut depth = 0_i32;
    let at = condition.iter().position(|token| {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth -= 1,
            Token::Sign('=' | '<' | '>' | '!' | '~') if depth == 0 => return true,
            token if depth == 0 => return token.is_any(&["is", "like", "ilike", "in", "rlike", "regexp"]),
            _ => {}
        }
        false
    })?;
    let left = &condition[..at];
    if let Token::Word(word) = &condition[at] {
        let right = &condition[at + 1..];
        return match word.as_str() {
            "like" | "ilike" => match right {
                [Token::Text(pattern)] if !pattern.is_empty() && pattern.chars().all(|c| c == '%') => Some(true),
                _ => None,
            },
            "rlike" | "regexp" => match right {
                [Token::Text(pattern)] if matches!(pattern.as_str(), ".*" | "" | "^" | "." | ".+") => Some(true),
                _ => None,
            },
            // A key is never null, so that asks for every row.
            "is" => match right {
                [not, null] if not.is("not") && null.is("null") => {
                    (is_key(left) || constant(left).is_some_and(|value| value != Constant::Null)).then_some(true)
                }
                [null] if null.is("null") && constant(left) == Some(Constant::Null) => Some(true),
                _ => None,
            },
            _ => same_table(left, right, table),
        };
    }
    let operator: String = condition[at..]
        .iter()
        .map_while(|token| match token {
            Token::Sign(sign @ ('=' | '<' | '>' | '!' | '~')) => Some(*sign),
            _ => None,
        })
        .collect();
    let right = &condition[at + operator.chars().count()..];
    if let (Some(left), Some(right)) = (constant(left), constant(right)) {
        return constants(&left, &operator, &right);
    }
    if left == right {
        return match operator.as_str() {
            "=" | "==" | "<=" | ">=" | "<=>" => Some(true),
            "<>" | "!=" | "<" | ">" => Some(false),
            _ => None,
        };
    }
    // Keys are counted from one.
    match (is_key(left), operator.as_str(), constant(right)) {
        (true, ">" | "<>" | "!=", Some(Constant::Number(number))) if number <= 0.0 => Some(true),
        (true, ">=", Some(Constant::Number(number))) if number <= 1.0 => Some(true),
        (true, "<>" | "!=", Some(Constant::Text(text))) if text.is_empty() => Some(true),
        _ => None,
    }
}

fn constants(left: &Constant, operator: &str, right: &Constant) -> Option<bool> {
    use std::cmp::Ordering;
    let ordering = match (left, right) {
        (Constant::Number(left), Constant::Number(right)) => left.partial_cmp(right)?,
        (Constant::Text(left), Constant::Text(right)) => left.cmp(right),
        (Constant::Bool(left), Constant::Bool(right)) => left.cmp(right),
        (Constant::Null, _) | (_, Constant::Null) => return Some(false),
        _ => return None,
    };
    Some(match operator {
        "=" | "==" | "<=>" => ordering == Ordering::Equal,
        "<>" | "!=" => ordering != Ordering::Equal,
        "<" => ordering == Ordering::Less,
        ">" => ordering == Ordering::Greater,
        "<=" => ordering != Ordering::Greater,
        ">=" => ordering != Ordering::Less,
        _ => return None,
    })
}

/// `id in (select id from t)` of the same table, without a filter of its own.
fn same_table(left: &[Token], right: &[Token], table: &str) -> Option<bool> {
    let narrowed = right
        .iter()
        .any(|token| token.is_any(&["where", "limit", "having", "join", "except", "intersect", "fetch", "top"]));
    let from = right.iter().position(|token| token.is("from"))?;
    let same = super::named(&right[from + 1..]) == table;
    (is_key(left) && same && !narrowed).then_some(true)
}

fn is_key(column: &[Token]) -> bool {
    let ([Token::Word(name) | Token::Name(name)] | [_, Token::Sign('.'), Token::Word(name) | Token::Name(name)]) =
        column
    else {
        return false;
    };
    let name = name.to_ascii_lowercase();
    name.ends_with("_id")
        || matches!(name.as_str(), "id" | "rowid" | "ctid" | "pk" | "uuid" | "guid" | "oid" | "_rowid_")
}

#[cfg(test)]
mod tests {
    use crate::{Verdict, World, judge};

    #[test]
    fn filters_that_let_everything_through_are_none() {
        for (through, real) in [
            ("1=1", "1=id"),
            ("true", "active"),
            ("1", "0"),
            ("'a'='a'", "name='a'"),
            ("id=id", "id=other"),
            ("id=1 or 1=1", "id=1 or id=2"),
            ("(id=1 or (2>1))", "(id=1 and (2>1))"),
            ("not 1=2", "not id=2"),
            ("id is not null", "deleted_at is not null"),
            ("a is null or a is not null", "a is null or b is not null"),
            ("id > 0", "id > 100"),
            ("name like '%'", "name like 'a%'"),
            ("exists (select 1)", "exists (select 1 from s where s.id = t.id)"),
            ("id in (select id from t)", "id in (select id from t where old)"),
            ("1 between 0 and 2 or true", "age between 1 and 2"),
            ("1=1 and true", "1=1 and id=4"),
        ] {
            for (condition, expected) in [(through, Verdict::Dangerous), (real, Verdict::Safe)] {
                let command = format!("psql -c \"DELETE FROM t WHERE {condition}\"");
                let world = World::new("/home/u", "/home/u/project");
                assert_eq!(judge(&command, &world).verdict, expected, "{command}");
            }
        }
    }
}
