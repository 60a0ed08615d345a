//! Backslash escapes: `$'…'`, `echo -e`, and the formats of `printf`.

use crate::text::{self, HOLE};

/// The text of `$'…'` (bash manual, "ANSI-C Quoting").
pub(crate) fn ansi_c(source: &str) -> String {
    decode(source, Style::AnsiC).0
}

/// The text that `echo -e` prints, and whether `\c` ended it.
pub(crate) fn echo(source: &str) -> (String, bool) {
    decode(source, Style::Echo)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    AnsiC,
    Echo,
    /// `printf %b`: as `echo -e`, and an octal number needs no zero in front.
    Argument,
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
            '\'' | '"' | '?' if !matches!(style, Style::Echo | Style::Argument) => {
                bytes.extend(escaped.encode_utf8(&mut [0; 4]).as_bytes());
            }
            'c' if matches!(style, Style::Echo | Style::Argument) => return (lossy(bytes), true),
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
            '0'..='7' if style != Style::Echo || escaped == '0' => {
                let first = escaped.to_digit(8).unwrap_or_default();
                let most = if matches!(style, Style::Echo | Style::Argument) && first == 0 { 3 } else { 2 };
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
pub(crate) fn printf(format: &str, arguments: &[String]) -> String {
    let mut out = String::new();
    let mut rest = arguments.iter();
    // The format is used again until the arguments are gone.
    loop {
        let before = rest.len();
        let ended = once(format, &mut rest, &mut out);
        if ended || rest.len() == 0 || rest.len() == before || out.len() > 1 << 16 {
            return out;
        }
    }
}

/// What stands between `%` and the letter.
#[derive(Default)]
struct Conversion {
    left: bool,
    zeros: bool,
    plus: bool,
    blank: bool,
    alternative: bool,
    width: usize,
    precision: Option<usize>,
}

impl Conversion {
    fn read<'a>(
        chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
        arguments: &mut impl Iterator<Item = &'a String>,
    ) -> Self {
        let mut conversion = Self::default();
        while let Some(flag) = chars.next_if(|c| matches!(c, '-' | '0' | '+' | ' ' | '#' | '\'')) {
            match flag {
                '-' => conversion.left = true,
                '0' => conversion.zeros = true,
                '+' => conversion.plus = true,
                ' ' => conversion.blank = true,
                '#' => conversion.alternative = true,
                _ => {}
            }
        }
        let mut number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| -> i64 {
            if chars.next_if_eq(&'*').is_some() {
                return arguments.next().and_then(|argument| argument.parse().ok()).unwrap_or(0);
            }
            let mut value = 0_i64;
            while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                chars.next();
                value = value.saturating_mul(10).saturating_add(i64::from(digit));
            }
            value
        };
        let width = number(chars);
        conversion.left |= width < 0;
        conversion.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        if chars.next_if_eq(&'.').is_some() {
            conversion.precision = usize::try_from(number(chars)).ok();
        }
        while chars.next_if(|c| matches!(c, 'l' | 'h' | 'L' | 'j' | 'z' | 't')).is_some() {}
        conversion
    }

    /// Fills a text up to the width; a text that is not whole known gets no blanks.
    fn padded(&self, text: String, zeros: bool) -> String {
        let missing = self.width.min(256).saturating_sub(text.len());
        if missing == 0 || !text::is_literal(&text) {
            return text;
        }
        if self.left {
            return text + &" ".repeat(missing);
        }
        if zeros {
            let sign = text.len() - text.trim_start_matches(['-', '+', ' ']).len();
            return format!("{}{}{}", &text[..sign], "0".repeat(missing), &text[sign..]);
        }
        " ".repeat(missing) + &text
    }

    fn text(&self, mut text: String) -> String {
        if let Some(precision) = self.precision
            && text.len() > precision
            && text::is_literal(&text)
        {
            // Bytes are counted, and half a character is no text.
            text = text.get(..precision).map_or_else(|| HOLE.to_string(), str::to_owned);
        }
        self.padded(text, false)
    }

    fn number(&self, kind: char, argument: Option<&String>) -> String {
        let text = argument.map_or("0", String::as_str);
        let value = match text.strip_prefix(['\'', '"']) {
            Some(character) => Some(character.chars().next().map_or(0, |c| i64::from(u32::from(c)))),
            None if text.trim().is_empty() => Some(0),
            None => crate::eval::integer(text).filter(|_| !text.contains('#')),
        };
        let Some(value) = value else {
            // bash complains about what is no number, and prints those digits that it starts with.
            return if text::is_literal(text)
                && !text.trim_start().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+'))
            {
                self.padded(self.signed(kind, 0), self.zeros && self.precision.is_none())
            } else {
                text::PLAIN.to_string()
            };
        };
        self.padded(self.signed(kind, value), self.zeros && self.precision.is_none())
    }

    fn signed(&self, kind: char, value: i64) -> String {
        let (sign, digits) = match kind {
            'x' => (if self.alternative && value != 0 { "0x" } else { "" }, format!("{value:x}")),
            'X' => (if self.alternative && value != 0 { "0X" } else { "" }, format!("{value:X}")),
            'o' => (if self.alternative && value != 0 { "0" } else { "" }, format!("{value:o}")),
            'u' => ("", value.cast_unsigned().to_string()),
            _ if value < 0 => ("-", value.unsigned_abs().to_string()),
            _ if self.plus => ("+", value.to_string()),
            _ if self.blank => (" ", value.to_string()),
            _ => ("", value.to_string()),
        };
        let missing = self.precision.unwrap_or(0).min(256).saturating_sub(digits.len());
        format!("{sign}{}{digits}", "0".repeat(missing))
    }
}

/// Goes through the format once; answers whether `\c` ended everything.
fn once<'a>(format: &str, arguments: &mut impl Iterator<Item = &'a String>, out: &mut String) -> bool {
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
        let conversion = Conversion::read(&mut chars, arguments);
        let text = match chars.next() {
            Some('%') => "%".to_owned(),
            Some('s') => conversion.text(arguments.next().cloned().unwrap_or_default()),
            Some('q' | 'Q') => conversion.text(backslashed(arguments.next().map_or("", String::as_str))),
            Some('b') => {
                let (text, ended) = decode(arguments.next().map_or("", String::as_str), Style::Argument);
                if ended {
                    out.push_str(&conversion.text(text));
                    return true;
                }
                conversion.text(text)
            }
            Some('c') => {
                let argument = arguments.next().map_or("", String::as_str);
                conversion.padded(argument.chars().next().map_or_else(|| "\0".into(), String::from), false)
            }
            Some(kind @ ('d' | 'i' | 'u' | 'x' | 'X' | 'o')) => conversion.number(kind, arguments.next()),
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
        out.push_str(&text);
    }
    flush(&mut literal, out);
    false
}

/// A text as `printf %q` writes it.
fn backslashed(text: &str) -> String {
    if text.is_empty() {
        return "''".into();
    }
    if text.contains(|c: char| c.is_control()) {
        return ansi_quoted(text);
    }
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let plain = c.is_alphanumeric()
            || matches!(c, '_' | '-' | '.' | '/' | ':' | '=' | '@' | '%' | '+')
            || (matches!(c, '~' | '#') && at > 0)
            || !c.is_ascii();
        if !plain {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A text as `${name@Q}` writes it.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains(|c: char| c.is_control()) {
        return ansi_quoted(text);
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn ansi_quoted(text: &str) -> String {
    let mut out = String::from("$'");
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\u{1b}' => out.push_str("\\E"),
            '\'' | '\\' => out.extend(['\\', c]),
            c if c.is_ascii_control() => out.push_str(&format!("\\{:03o}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "'"
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
