//! Output as somebody reads it: what a terminal would have done with the bytes, without the terminal.
//!
//! Escape sequences go. A carriage return writes over its line, as progress bars do it, so only the last state of a line
//! is left. Each byte is looked at once, whatever an output contains: a sequence that is never closed ends with its
//! line and does not swallow what follows.

use std::borrow::Cow;

use encoding_rs::Encoding;
use vte::{Params, Parser, Perform};

/// Cancels whatever sequence is open (ECMA-48 §8.3.6).
const CANCEL: &[u8] = &[0x18];
/// A cursor is not moved farther to the right than this: a few bytes must not become a page of spaces.
const FARTHEST_COLUMN: usize = 300;

/// How bytes are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// What a line is in that is no UTF-8, from the locale; without it, bytes that are no text become U+FFFD.
    pub legacy: Option<&'static Encoding>,
    /// They come from a terminal, which ends each line with a carriage return of its own.
    pub terminal: bool,
}

impl Reading {
    /// What the locale among `variables` says about text that is no UTF-8.
    pub(crate) fn of_locale<'a>(variables: impl Fn(&str) -> Option<&'a str>) -> Self {
        let named =
            ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| variables(name).filter(|v| !v.is_empty()));
        // language_TERRITORY.CODESET@modifier (locale(7))
        let codeset = named.and_then(|locale| locale.split('@').next()?.split_once('.').map(|(_, codeset)| codeset));
        let legacy = codeset.and_then(|codeset| Encoding::for_label(codeset.as_bytes()));
        Self { legacy: legacy.filter(|encoding| *encoding != encoding_rs::UTF_8), terminal: false }
    }
}

/// The text that `bytes` show.
pub(crate) fn plain(bytes: &[u8], reading: Reading) -> String {
    let mut text = String::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let (content, end) = match line.strip_suffix(b"\n") {
            Some(content) => match content.strip_suffix(b"\r") {
                Some(content) if reading.terminal => (content, "\n"),
                Some(content) => (content, "\r\n"),
                None => (content, "\n"),
            },
            None => (line, ""),
        };
        let content = decoded(content, reading.legacy);
        if content.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f || byte == 0xc2) {
            let mut shown = Line::default();
            let mut parser = Parser::new();
            parser.advance(&mut shown, seven_bit(&content).as_bytes());
            text.extend(shown.characters);
        } else {
            text += &content;
        }
        text += end;
    }
    text
}

/// The last lines that `bytes` show, with their colours and no other sequence.
pub(crate) fn coloured_tail(bytes: &[u8], lines: usize, reading: Reading) -> Vec<String> {
    let content = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if content.is_empty() {
        return Vec::new();
    }
    let mut last: Vec<&[u8]> = content.rsplit(|byte| *byte == b'\n').take(lines).collect();
    last.reverse();
    last.into_iter().map(|line| coloured_line(line, reading)).collect()
}

/// All lines that `bytes` show, with their colours and no other sequence.
pub(crate) fn coloured(bytes: &[u8], reading: Reading) -> String {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| match line.strip_suffix(b"\n") {
            Some(content) => coloured_line(content, reading) + "\n",
            None => coloured_line(line, reading),
        })
        .collect()
}

fn coloured_line(line: &[u8], reading: Reading) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // What was written over is gone, its colours with it.
    let line = line.rsplit(|byte| *byte == b'\r').find(|piece| !piece.is_empty()).unwrap_or_default();
    let line = decoded(line, reading.legacy);
    let mut shown = Coloured::default();
    let mut parser = Parser::new();
    parser.advance(&mut shown, line.as_bytes());
    parser.advance(&mut shown, CANCEL);
    if shown.coloured { shown.text + "\x1b[0m" } else { shown.text }
}

fn decoded<'a>(line: &'a [u8], legacy: Option<&'static Encoding>) -> Cow<'a, str> {
    match (std::str::from_utf8(line), legacy) {
        (Ok(text), _) => Cow::Borrowed(text),
        (Err(_), Some(encoding)) => match encoding.decode_without_bom_handling(line) {
            (text, false) => text,
            _ => String::from_utf8_lossy(line),
        },
        (Err(_), None) => String::from_utf8_lossy(line),
    }
}

/// Spells the one-character forms of control functions (U+0080 to U+009F) as the two that everybody understands
/// (ECMA-48 §5.3).
fn seven_bit(line: &str) -> Cow<'_, str> {
    let is_c1 = |character: char| ('\u{80}'..='\u{9f}').contains(&character);
    if !line.contains(is_c1) {
        return Cow::Borrowed(line);
    }
    let mut spelt = String::with_capacity(line.len());
    for character in line.chars() {
        match u8::try_from(u32::from(character)) {
            Ok(code) if is_c1(character) => spelt.extend(['\x1b', char::from(code - 0x40)]),
            _ => spelt.push(character),
        }
    }
    Cow::Owned(spelt)
}

/// One line of a terminal that is being written.
#[derive(Default)]
struct Line {
    characters: Vec<char>,
    column: usize,
}

impl Line {
    fn move_to(&mut self, column: usize) {
        self.column = column.min(FARTHEST_COLUMN.max(self.characters.len()));
    }
}

impl Perform for Line {
    fn print(&mut self, character: char) {
        // Controls of the second set (U+0080 to U+009F) show nothing.
        if character.is_control() {
            return;
        }
        while self.characters.len() < self.column {
            self.characters.push(' ');
        }
        match self.characters.get_mut(self.column) {
            Some(place) => *place = character,
            None => self.characters.push(character),
        }
        self.column += 1;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            b'\t' => {
                // Written over, a tab is a blank like another; at the end of a line it stays what it is.
                if self.column >= self.characters.len() {
                    while self.characters.len() < self.column {
                        self.characters.push(' ');
                    }
                    self.characters.push('\t');
                }
                self.column += 1;
            }
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        if !intermediates.is_empty() {
            return;
        }
        let first = params.iter().next().and_then(|param| param.first()).copied().unwrap_or(0);
        let steps = usize::from(first.max(1));
        match action {
            'C' => self.move_to(self.column + steps),
            'D' => self.column = self.column.saturating_sub(steps),
            'G' => self.move_to(steps - 1),
            'K' if first == 0 => self.characters.truncate(self.column),
            'K' => {
                let up_to =
                    if first == 1 { (self.column + 1).min(self.characters.len()) } else { self.characters.len() };
                self.characters[..up_to].fill(' ');
                if first != 1 {
                    self.characters.clear();
                }
            }
            _ => {}
        }
    }
}

/// A line with its colours.
#[derive(Default)]
struct Coloured {
    text: String,
    coloured: bool,
}

impl Perform for Coloured {
    fn print(&mut self, character: char) {
        if !character.is_control() {
            self.text.push(character);
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte == b'\t' {
            self.text.push('\t');
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        if action != 'm' || !intermediates.is_empty() {
            return;
        }
        let groups = params.iter().map(|group| group.iter().map(u16::to_string).collect::<Vec<_>>().join(":"));
        self.text += "\x1b[";
        self.text += &groups.collect::<Vec<_>>().join(";");
        self.text.push('m');
        self.coloured = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        plain(bytes, Reading::default())
    }

    #[test]
    fn ordinary_text_stays_byte_for_byte() {
        for text in ["", "a\n", "no newline", "tab\there\n\n", "你好 ✓\n", "dos\r\nlines\r\n"] {
            assert_eq!(shown(text.as_bytes()), text);
        }
    }

    #[test]
    fn sequences_of_every_kind_go() {
        let cases: [(&[u8], &str); 9] = [
            (b"\x1b[1;31mred\x1b[0m", "red"),
            (b"\x1b[38:2::1:2:3mx", "x"),
            (b"\x1b]0;title\x07x", "x"),
            (b"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"\x1bPq#0;2;0\x1b\\x", "x"),
            (b"\x1b_apc\x1b\\x", "x"),
            (b"\x1b(Bx\x1b7y\x1b=z", "xyz"),
            ("\u{9b}31mx\u{9d}title\u{9c}y".as_bytes(), "xy"),
            (b"\x1b[?25l\x1b[?2004hx\x00\x07", "x"),
        ];
        for (bytes, text) in cases {
            assert_eq!(shown(bytes), text, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn an_open_sequence_ends_with_its_line() {
        assert_eq!(shown(b"before\x1b]0;never closed\nafter\nmore\n"), "before\nafter\nmore\n");
        assert_eq!(shown(b"a\x1b[\nb\x1bP\nc\x1b"), "a\nb\nc");
    }

    #[test]
    fn progress_is_folded_to_its_last_state() {
        assert_eq!(shown(b" 10%\r 20%\r100%\ndone\n"), "100%\ndone\n");
        assert_eq!(shown(b"downloading 9/10\rdone\x1b[K\n"), "done\n");
        assert_eq!(shown(b"abcdef\rxy\n"), "xycdef\n");
        assert_eq!(shown(b"\x1b[2K\rone\x1b[2K\rtwo"), "two");
        assert_eq!(shown(b"ab\x08c"), "ac");
        assert_eq!(shown(b"a\x1b[3Cb"), "a   b");
    }

    #[test]
    fn a_terminal_s_carriage_returns_are_not_the_program_s() {
        assert_eq!(plain(b"a\r\nb\r\n", Reading { terminal: true, legacy: None }), "a\nb\n");
    }

    #[test]
    fn text_of_the_locale_s_code_page_is_read_line_by_line() {
        let mixed = b"\xc4\xe3\xba\xc3\nok \xe2\x9c\x93\n\xff\xff\n";
        let locale = |name: &str| (name == "LANG").then_some("zh_CN.GBK");
        assert_eq!(plain(mixed, Reading::of_locale(locale)), "你好\nok ✓\n\u{fffd}\u{fffd}\n");
        assert_eq!(shown(mixed), "\u{fffd}\u{fffd}\u{fffd}\nok ✓\n\u{fffd}\u{fffd}\n");
        assert!(Reading::of_locale(|name: &str| (name == "LANG").then_some("de_DE.UTF-8")).legacy.is_none());
    }

    #[test]
    fn hostile_output_does_not_grow_much() {
        let jumps = b"\x1b[65535Gx".repeat(5_000);
        assert!(shown(&jumps).len() < 10 * jumps.len());
        let jumps = b"\x1b[65535Gx\n".repeat(5_000);
        assert!(shown(&jumps).len() < 40 * jumps.len());
    }

    #[test]
    fn the_tail_keeps_its_colours_and_nothing_else() {
        let bytes = b"one\n\x1b[32mok\x1b[0m \x1b]0;t\x07two\nthree 1%\rthree 2%\x1b[K\n";
        let tail = coloured_tail(bytes, 2, Reading::default());
        assert_eq!(tail, ["\x1b[32mok\x1b[0m two\x1b[0m", "three 2%"]);
        assert_eq!(coloured_tail(b"", 2, Reading::default()), [] as [&str; 0]);
    }
}
