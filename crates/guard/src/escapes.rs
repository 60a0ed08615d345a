//! Backslash escapes: `$'…'`, `echo -e`, and the formats of `printf`.

use crate::text::{self, HOLE};

/// The text of `$'…'` (bash manual, "ANSI-C Quoting").
pub fn ansi_c(source: &str) -> String {
    decode(source, Style::AnsiC).0
}

/// The text that `echo -e` or `printf %b` prints, and whether `\c` ended it.
pub fn echo(source: &str) -> (String, bool) {
    decode(source, Style::Echo)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    AnsiC,
    Echo,
    Format,
}

fn decode(source: &str, style: Style) -> (String, bool) {
    let mut bytes: Vec<u8> = Vec::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let Some(escaped) = chars.next() else {
            bytes.push(b'\\');
            break;
        };
        let digits = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>, radix, most| {
            let mut value = None;
            for _ in 0..most {
                let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else { break };
                chars.next();
                value = Some(value.unwrap_or(0) * radix + digit);
            }
            value
        };
        match escaped {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'e' | 'E' => bytes.push(27),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(11),
            '\\' => bytes.push(b'\\'),
            '\'' | '"' | '?' if style != Style::Echo => bytes.extend(escaped.encode_utf8(&mut [0; 4]).as_bytes()),
            'c' if style == Style::Echo => return (lossy(bytes), true),
            'c' if style == Style::AnsiC => {
                if let Some(control) = chars.next() {
                    bytes.push(u8::try_from(u32::from(control) & 0x1f).unwrap_or_default());
                }
            }
            'x' => match digits(&mut chars, 16, 2) {
                Some(value) => bytes.push(u8::try_from(value).unwrap_or_default()),
                None => bytes.extend(b"\\x"),
            },
            'u' | 'U' => {
                let most = if escaped == 'u' { 4 } else { 8 };
                let decoded = digits(&mut chars, 16, most).and_then(char::from_u32).unwrap_or('\u{FFFD}');
                bytes.extend(text::clean(decoded.encode_utf8(&mut [0; 4])).as_bytes());
            }
            '0'..='7' => {
                let first = escaped.to_digit(8).unwrap_or_default();
                let most = if style == Style::Echo && first == 0 { 3 } else { 2 };
                let mut value = first;
                for _ in 0..most {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
                    chars.next();
                    value = value * 8 + digit;
                }
                bytes.push((value & 0xff) as u8);
            }
            other => {
                bytes.push(b'\\');
                bytes.extend(other.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    (lossy(bytes), false)
}

fn lossy(bytes: Vec<u8>) -> String {
    // A decoded byte sequence must not spell one of the claimed characters; those that were there before stay.
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What `printf FORMAT ARGUMENTS…` prints; a conversion nobody knows leaves a hole.
pub fn printf(format: &str, arguments: &[String]) -> String {
    let mut out = String::new();
    let mut rest = arguments.iter();
    // The format is used again until the arguments are gone.
    loop {
        let before = rest.len();
        once(format, &mut rest, &mut out);
        if rest.len() == 0 || rest.len() == before || out.len() > 1 << 16 {
            return out;
        }
    }
}

fn once<'a>(format: &str, arguments: &mut impl Iterator<Item = &'a String>, out: &mut String) {
    let mut literal = String::new();
    let mut chars = format.chars().peekable();
    let flush = |literal: &mut String, out: &mut String| {
        out.push_str(&decode(literal, Style::Format).0);
        literal.clear();
    };
    while let Some(c) = chars.next() {
        if c == '\\' {
            literal.push(c);
            literal.extend(chars.next());
            continue;
        }
        if c != '%' {
            literal.push(c);
            continue;
        }
        flush(&mut literal, out);
        let mut precision: Option<usize> = None;
        let mut width = String::new();
        while let Some(&flag) = chars.peek() {
            if !matches!(flag, '0'..='9' | '-' | '+' | ' ' | '#' | '.' | '*' | 'l' | 'h' | 'q' | 'L' | 'j' | 'z')
                || (flag == 'q')
            {
                break;
            }
            chars.next();
            match flag {
                '.' => precision = Some(0),
                '*' => {
                    let value = arguments.next().and_then(|argument| argument.parse().ok());
                    if precision.is_some() {
                        precision = value;
                    }
                }
                '0'..='9' => match &mut precision {
                    Some(value) => *value = value.saturating_mul(10).saturating_add(flag as usize - '0' as usize),
                    None => width.push(flag),
                },
                _ => {}
            }
        }
        let mut text = match chars.next() {
            Some('%') => "%".to_owned(),
            Some('s' | 'q' | 'Q') => arguments.next().cloned().unwrap_or_default(),
            Some('b') => echo(arguments.next().map_or("", String::as_str)).0,
            Some('c') => {
                arguments.next().and_then(|argument| argument.chars().next()).map(String::from).unwrap_or_default()
            }
            Some(kind @ ('d' | 'i' | 'u' | 'x' | 'X' | 'o')) => number(kind, arguments.next()),
            Some('(') => {
                for c in chars.by_ref() {
                    if c == ')' {
                        break;
                    }
                }
                chars.next();
                text::PLAIN.to_string()
            }
            Some(_) => {
                arguments.next();
                HOLE.to_string()
            }
            None => "%".to_owned(),
        };
        if let Some(precision) = precision
            && text.chars().count() > precision
            && text::is_literal(&text)
        {
            text = text.chars().take(precision).collect();
        }
        if let Ok(width) = width.parse::<usize>()
            && width <= 256
        {
            let missing = width.saturating_sub(text.chars().count());
            text.insert_str(0, &" ".repeat(missing));
        }
        out.push_str(&text);
    }
    flush(&mut literal, out);
}

fn number(kind: char, argument: Option<&String>) -> String {
    let text = argument.map_or("0", String::as_str);
    let value = match text.strip_prefix(['\'', '"']) {
        Some(character) => character.chars().next().map(|c| i64::from(u32::from(c))),
        None => crate::eval::integer(text),
    };
    match (value, kind) {
        (None, _) => text::PLAIN.to_string(),
        (Some(value), 'x') => format!("{value:x}"),
        (Some(value), 'X') => format!("{value:X}"),
        (Some(value), 'o') => format!("{value:o}"),
        (Some(value), _) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_as_bash_decodes_them() {
        assert_eq!(ansi_c(r"\x72\155 \u002f\n"), "rm /\n");
        assert_eq!(echo(r"\0162m\x20a\cb"), ("rm a".into(), true));
        let arguments = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(printf("%s%s", &arguments(&["r", "m"])), "rm");
        assert_eq!(printf("%s\\n", &arguments(&["a", "b"])), "a\nb\n");
        assert_eq!(printf("\\x72\\155%c%%%x", &arguments(&["abc", "255"])), "rma%ff");
        assert_eq!(printf("%.2s|%3d", &arguments(&["rmx", "7"])), "rm|  7");
    }
}
