//! Some lines of a file, cut out of the pieces in which it is read.
//!
//! A line that is longer than what is shown of it is not held in memory: once enough of it is there, the rest of it is
//! only passed over.

use super::encoding::{Balance, Encoding};
use super::text::end_of_words;

/// Characters shown at most, numbers included (spec tools §3.3).
const MOST_CHARS: usize = 100_000;

/// Collects lines.
#[derive(Debug)]
pub(crate) struct Window {
    encoding: Encoding,
    /// Line ends that are still to be passed.
    skip: u64,
    limit: usize,
    line_chars: usize,
    lines: Vec<Line>,
    line: Line,
    is_open: bool,
    bytes: usize,
}

/// The bytes of a line, as far as they can be shown, without its end.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    is_cut: bool,
}

/// What a window shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The lines with their numbers.
    pub content: String,
    /// How many lines that are.
    pub lines: u64,
    /// Some of them are longer than what is shown.
    pub has_cut_lines: bool,
    /// How the bytes were read, in words; `None` for UTF-8 without more.
    pub encoding: Option<String>,
}

impl Window {
    /// The next `limit` lines after `skip` line ends, each up to so many characters.
    pub(crate) fn new(encoding: Encoding, skip: u64, limit: usize, line_chars: usize) -> Self {
        Self { encoding, skip, limit, line_chars, lines: Vec::new(), line: Line::default(), is_open: false, bytes: 0 }
    }

    /// Nothing more is needed.
    pub(crate) fn is_full(&self) -> bool {
        // Each character that is shown has at least one byte.
        self.lines.len() >= self.limit || self.bytes > 4 * MOST_CHARS
    }

    /// Of the line that is being read nothing more than its end is needed.
    pub(crate) fn wants_line_end_only(&self) -> bool {
        self.line.is_cut
    }

    /// Takes the next piece. It begins on a character.
    pub(crate) fn push(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() && !self.is_full() {
            let (line, rest) = match self.encoding.line_end(piece) {
                Some(at) => (&piece[..at], Some(&piece[at + self.encoding.unit()..])),
                None => (piece, None),
            };
            if self.skip == 0 {
                self.is_open |= !line.is_empty();
                // A character has at most four bytes; one more tells that the line is longer than what is shown.
                let room = (4 * self.line_chars + 4).saturating_sub(self.line.bytes.len());
                self.line.is_cut |= line.len() > room;
                self.line.bytes.extend_from_slice(&line[..line.len().min(room)]);
            }
            match rest {
                Some(_) if self.skip > 0 => self.skip -= 1,
                Some(_) => self.end_line(),
                None => {}
            }
            piece = rest.unwrap_or_default();
        }
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if !line.is_cut {
            let end = self.encoding.encode("\r").unwrap_or_default();
            let keep = line.bytes.len() - if line.bytes.ends_with(&end) { end.len() } else { 0 };
            line.bytes.truncate(keep);
        }
        self.bytes += line.bytes.len();
        self.lines.push(line);
        self.is_open = false;
    }

    /// What it shows. `first` is the number of its first line, and `has_all` whether the file ends here.
    pub(crate) fn finish(mut self, first: u64, has_all: bool) -> Shown {
        if self.is_open && has_all && self.lines.len() < self.limit {
            self.end_line();
        }
        let reading = Reading::of(self.encoding, &self.lines);
        let mut shown = Shown { content: String::new(), lines: 0, has_cut_lines: false, encoding: reading.in_words() };
        let mut chars = 0;
        for line in &self.lines {
            let (text, is_cut) = shortened(reading.text(line), self.line_chars);
            let row = format!("{}|{text}", first + shown.lines);
            chars += row.chars().count() + 1;
            if shown.lines > 0 && chars > MOST_CHARS {
                break;
            }
            if shown.lines > 0 {
                shown.content.push('\n');
            }
            shown.content += &row;
            shown.has_cut_lines |= is_cut || line.is_cut;
            shown.lines += 1;
        }
        shown
    }
}

/// How the bytes of some lines are read.
enum Reading {
    As(Encoding),
    /// They are UTF-8 but in so many places.
    Broken(usize),
}

impl Reading {
    /// The beginning of a file says nothing about bytes that come later: what is not UTF-8 here decides.
    fn of(encoding: Encoding, lines: &[Line]) -> Self {
        if !encoding.is_utf8() {
            return Self::As(encoding);
        }
        let balance = lines.iter().fold(Balance::default(), |sum, line| sum + Balance::of(&line.bytes, !line.is_cut));
        if balance.broken == 0 {
            return Self::As(encoding);
        }
        if balance.is_utf8() || !encoding.bom().is_empty() {
            return Self::Broken(balance.broken);
        }
        let all: Vec<&[u8]> = lines.iter().map(|line| line.bytes.as_slice()).collect();
        Self::As(Encoding::of(&all.join(&b'\n'), false))
    }

    fn text(&self, line: &Line) -> String {
        match self {
            Self::As(encoding) => encoding.decode(&line.bytes).into_owned(),
            Self::Broken(_) => String::from_utf8_lossy(&line.bytes).into_owned(),
        }
    }

    fn in_words(&self) -> Option<String> {
        match self {
            Self::As(encoding) if encoding.is_utf8() && encoding.bom().is_empty() => None,
            Self::As(encoding) if encoding.is_utf8() => Some("UTF-8 with a byte order mark".into()),
            Self::As(encoding) => Some(encoding.name().into()),
            Self::Broken(count) => {
                let places = hermes_core::plural(*count, "place");
                Some(format!("UTF-8, but for {places} shown as \u{fffd}"))
            }
        }
    }
}

fn shortened(text: String, chars: usize) -> (String, bool) {
    match text.char_indices().nth(chars) {
        Some((at, _)) => (format!("{}... [truncated]", &text[..end_of_words(&text, at)]), true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same from pieces of every size.
    fn shown(bytes: &[u8], skip: u64, limit: usize) -> Shown {
        let encoding = Encoding::of(bytes, true);
        let bytes = &bytes[encoding.bom().len()..];
        let mut reference = None;
        for piece in [2, 4, 1_000_000] {
            let mut window = Window::new(encoding, skip, limit, 20);
            bytes.chunks(piece).for_each(|piece| window.push(piece));
            let shown = window.finish(skip + 1, true);
            assert_eq!(reference.get_or_insert_with(|| shown.content.clone()), &shown.content, "pieces of {piece}");
            if piece == 1_000_000 {
                return shown;
            }
        }
        unreachable!("the last piece holds all")
    }

    fn content(bytes: &[u8], skip: u64, limit: usize) -> String {
        shown(bytes, skip, limit).content
    }

    #[test]
    fn lines_are_what_lf_ends_and_the_last_one_counts() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (b"a", "1|a"),
            (b"a\n", "1|a"),
            (b"a\n\n", "1|a\n2|"),
            (b"a\r\nb\rc", "1|a\n2|b\rc"),
            (b"\xef\xbb\xbfa\n", "1|a"),
            (b"\x1b[31m\x07\n", "1|\u{1b}[31m\u{7}"),
            (b"\n", "1|"),
        ] {
            assert_eq!(content(bytes, 0, 10), expected, "{bytes:?}");
        }
        assert_eq!(content(b"a\nb\nc\nd", 1, 2), "2|b\n3|c");
        assert_eq!(content(b"a\nb", 2, 2), "");
    }

    #[test]
    fn utf_16_is_read_line_by_line() {
        for encode in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = "\u{feff}eins\r\nzwei ä\u{a0a}\n\ndrei".encode_utf16().flat_map(encode).collect();
            assert_eq!(content(&bytes, 0, 9), "1|eins\n2|zwei ä\u{a0a}\n3|\n4|drei");
            assert_eq!(content(&bytes, 1, 1), "2|zwei ä\u{a0a}");
            assert!(shown(&bytes, 0, 1).encoding.unwrap().starts_with("UTF-16"));
        }
    }

    #[test]
    fn long_lines_are_cut_on_a_character() {
        let got = shown("é".repeat(30).as_bytes(), 0, 5);
        assert_eq!((got.content, got.has_cut_lines), (format!("1|{}... [truncated]", "é".repeat(20)), true));
        let got = shown(format!("{}\nnext\n", "x".repeat(9_000)).as_bytes(), 0, 5);
        assert_eq!((got.content, got.encoding), (format!("1|{}... [truncated]\n2|next", "x".repeat(20)), None));
    }

    #[test]
    fn bytes_that_are_no_utf_8_are_declared() {
        for (bytes, expected, declared) in [
            (&b"caf\xe9\n"[..], "1|café", "windows-1252"),
            (b"caf\xe9\nna\xefve\n", "1|café\n2|naïve", "windows-1252"),
            ("grün blau\u{e4} \u{fc}ber".as_bytes(), "1|grün blauä über", ""),
            (b"gr\xc3\xbc\xc3\xbc\xc3\xbcn \xff\n", "1|grüüün \u{fffd}", "but for 1 place"),
        ] {
            let got = shown(bytes, 0, 5);
            assert_eq!(got.content, expected);
            assert!(got.encoding.unwrap_or_default().contains(declared), "{bytes:?}");
        }
    }
}
