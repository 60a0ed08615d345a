//! The forms in which a known value usually turns up: what a tool prints when it encodes, quotes or wraps it.
//!
//! The tricky one is base64, where the same bytes look different depending on how many bytes stand before them. Only
//! those characters are kept that no neighbour can change, so each of the three alignments is found inside a longer
//! text; at most one character at each end, which carries some bits of the value, stays outside.

use super::worth;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const FOR_URLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// A line of a longer value is known by itself from this length on.
const LINE: usize = 16;

/// Every form of `value`, itself included, without doubles.
pub(super) fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let bytes = value.as_bytes();
    for alphabet in [STANDARD, FOR_URLS] {
        let first = base64(bytes, 0, alphabet);
        // Line lengths of coreutils and MIME, and of PEM.
        forms.extend([76, 64].into_iter().filter(|width| first.len() > *width).map(|width| wrapped(&first, width)));
        forms.push(first);
        forms.extend([1, 2].map(|alignment| base64(bytes, alignment, alphabet)));
    }
    for digits in [b"0123456789abcdef", b"0123456789ABCDEF"] {
        forms.push(hex(bytes, digits));
        forms.push(percent(bytes, digits, false));
        forms.push(percent(bytes, digits, true));
    }
    for ascii in [false, true] {
        let once = json(value, ascii);
        forms.push(once.replace('/', "\\/"));
        forms.push(json(&once, ascii));
        forms.push(once);
    }
    forms.push(value.replace('\'', r"'\''"));
    if value.contains('\n') {
        forms.push(value.replace("\r\n", "\n").replace('\n', "\r\n"));
        forms.extend(value.lines().map(str::trim).filter(|line| is_key(line)).map(str::to_owned));
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// Whether a line of a longer value gives it away by itself; those around it are often the same in many files.
fn is_key(line: &str) -> bool {
    let encoded = line.bytes().all(|byte| STANDARD.contains(&byte) || byte == b'=');
    line.len() >= LINE
        && !line.contains(char::is_whitespace)
        && ((encoded && line.len() >= 2 * LINE) || worth::is_random(line))
}

/// The characters of the base64 form that depend on `bytes` alone when `before` bytes (modulo 3) come first.
fn base64(bytes: &[u8], before: usize, alphabet: &[u8; 64]) -> String {
    let (from, to) = ((before * 8).div_ceil(6), (before + bytes.len()) * 8 / 6);
    let byte = |at: usize| at.checked_sub(before).and_then(|at| bytes.get(at)).map_or(0, |byte| u16::from(*byte));
    (from..to)
        .map(|at| {
            let bit = at * 6;
            let pair = byte(bit / 8) << 8 | byte(bit / 8 + 1);
            let index = pair >> (10 - bit % 8) & 63;
            char::from(alphabet[usize::from(index)])
        })
        .collect()
}

fn wrapped(text: &str, width: usize) -> String {
    let mut lines = String::with_capacity(text.len() + text.len() / width);
    for (at, c) in text.chars().enumerate() {
        if at > 0 && at % width == 0 {
            lines.push('\n');
        }
        lines.push(c);
    }
    lines
}

fn hex(bytes: &[u8], digits: &[u8; 16]) -> String {
    bytes.iter().flat_map(|byte| pair(*byte, digits)).collect()
}

fn pair(byte: u8, digits: &[u8; 16]) -> [char; 2] {
    [char::from(digits[usize::from(byte >> 4)]), char::from(digits[usize::from(byte & 15)])]
}

/// RFC 3986 §2.1; with `form`, a space is a plus sign.
fn percent(bytes: &[u8], digits: &[u8; 16], form: bool) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(*byte)),
            b' ' if form => text.push('+'),
            _ => {
                text.push('%');
                text.extend(pair(*byte, digits));
            }
        }
    }
    text
}

/// The inside of a JSON string (RFC 8259 §7); with `ascii`, everything beyond ASCII is escaped too.
fn json(value: &str, ascii: bool) -> String {
    let mut text = String::new();
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c < ' ' || (ascii && !c.is_ascii()) => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
            }
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_alignment_of_base64_is_a_part_of_the_real_thing() {
        // `base64` of "EXAMPLE-value" behind nothing, "x" and "xx".
        for (alignment, whole) in
            [(0, "RVhBTVBMRS12YWx1ZQ=="), (1, "eEVYQU1QTEUtdmFsdWU="), (2, "eHhFWEFNUExFLXZhbHVl")]
        {
            let part = base64(b"EXAMPLE-value", alignment, STANDARD);
            assert!(whole.contains(&part), "{part} in {whole}");
            assert!(part.len() >= 16, "{part}");
        }
    }

    #[test]
    fn escapes_are_those_of_json_and_urls() {
        assert_eq!(json("a\"b\\c\n\u{1}ü😀", true), r#"a\"b\\c\n\u0001\u00fc\ud83d\ude00"#);
        assert_eq!(json("ü", false), "ü");
        assert_eq!(percent("a b/ü".as_bytes(), b"0123456789ABCDEF", false), "a%20b%2F%C3%BC");
        assert_eq!(percent(b"a b", b"0123456789ABCDEF", true), "a+b");
        assert_eq!(hex(b"az", b"0123456789abcdef"), "617a");
        assert_eq!(wrapped("abcde", 2), "ab\ncd\ne");
    }
}
