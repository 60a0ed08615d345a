//! How a file writes its characters: found out from its bytes, and kept when it is changed.
//!
//! A byte order mark decides. Without one, what is valid UTF-8 is UTF-8; the rest is guessed from the bytes alone, the way
//! browsers do, so that a guess can be wrong about which letter a byte means and never about where a line ends.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use hermes_core::LineFeed;

/// The encoding of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding {
    kind: Kind,
    /// The file begins with a byte order mark.
    has_bom: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Utf8,
    Utf16 { is_big: bool },
    Legacy(&'static encoding_rs::Encoding),
}

impl Encoding {
    /// That of texts that come from us.
    pub(crate) const UTF_8: Self = Self { kind: Kind::Utf8, has_bom: false };

    /// The encoding of a file from its beginning. `is_all`: these are all of its bytes, so a character that is cut at their
    /// end is broken.
    pub(crate) fn of(head: &[u8], is_all: bool) -> Self {
        let (kind, has_bom) = match head {
            [0xef, 0xbb, 0xbf, ..] => (Kind::Utf8, true),
            [0xff, 0xfe, ..] => (Kind::Utf16 { is_big: false }, true),
            [0xfe, 0xff, ..] => (Kind::Utf16 { is_big: true }, true),
            head if Balance::of(head, is_all).is_utf8() => (Kind::Utf8, false),
            head => (Kind::Legacy(guess(head, is_all)), false),
        };
        Self { kind, has_bom }
    }

    /// The name that people and programs know (<https://encoding.spec.whatwg.org/#names-and-labels>).
    pub(crate) fn name(self) -> &'static str {
        match self.kind {
            Kind::Utf8 => "UTF-8",
            Kind::Utf16 { is_big: false } => "UTF-16LE",
            Kind::Utf16 { is_big: true } => "UTF-16BE",
            Kind::Legacy(encoding) => encoding.name(),
        }
    }

    pub(crate) fn is_utf8(self) -> bool {
        self.kind == Kind::Utf8
    }

    /// The table, where it is one of the encodings from before Unicode.
    pub(crate) fn legacy(self) -> Option<&'static encoding_rs::Encoding> {
        match self.kind {
            Kind::Legacy(encoding) => Some(encoding),
            Kind::Utf8 | Kind::Utf16 { .. } => None,
        }
    }

    /// The bytes of its mark; empty where there is none.
    pub(crate) fn bom(self) -> &'static [u8] {
        match (self.has_bom, self.kind) {
            (true, Kind::Utf8) => b"\xef\xbb\xbf",
            (true, Kind::Utf16 { is_big: false }) => b"\xff\xfe",
            (true, Kind::Utf16 { is_big: true }) => b"\xfe\xff",
            _ => b"",
        }
    }

    /// How its lines end.
    pub(crate) fn line_feed(self) -> LineFeed {
        match self.kind {
            Kind::Utf16 { is_big: false } => LineFeed::Utf16Le,
            Kind::Utf16 { is_big: true } => LineFeed::Utf16Be,
            _ => LineFeed::Byte,
        }
    }

    /// Where the first line feed in bytes that begin on a character is.
    pub(crate) fn line_end(self, bytes: &[u8]) -> Option<usize> {
        let pairs = || bytes.as_chunks::<2>().0.iter();
        let at = match self.line_feed() {
            LineFeed::Byte => return memchr::memchr(b'\n', bytes),
            LineFeed::Utf16Le => pairs().position(|pair| *pair == [b'\n', 0]),
            LineFeed::Utf16Be => pairs().position(|pair| *pair == [0, b'\n']),
        };
        at.map(|at| 2 * at)
    }

    /// How many bytes a line feed takes.
    pub(crate) fn unit(self) -> usize {
        if matches!(self.kind, Kind::Utf16 { .. }) { 2 } else { 1 }
    }

    /// The text of bytes that begin on a character and come after the mark. What cannot be read is `U+FFFD`.
    pub(crate) fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self.kind {
            Kind::Utf8 => String::from_utf8_lossy(bytes),
            Kind::Utf16 { is_big } => {
                let (pairs, rest) = bytes.as_chunks::<2>();
                let units =
                    pairs.iter().map(|pair| if is_big { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) });
                let mut text: String =
                    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
                text.extend(rest.iter().map(|_| char::REPLACEMENT_CHARACTER));
                text.into()
            }
            Kind::Legacy(encoding) => encoding.decode_without_bom_handling(bytes).0,
        }
    }

    /// The bytes of a text, without the mark. An error is the first character that this encoding does not have.
    pub(crate) fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, char> {
        match self.kind {
            Kind::Utf8 => Ok(text.as_bytes().into()),
            Kind::Utf16 { is_big } => Ok(text
                .encode_utf16()
                .flat_map(|unit| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() })
                .collect()),
            Kind::Legacy(encoding) => {
                let (bytes, _, has_lost) = encoding.encode(text);
                if !has_lost {
                    return Ok(bytes);
                }
                let is_missing = |letter: &char| encoding.encode(letter.encode_utf8(&mut [0; 4])).2;
                Err(text.chars().find(is_missing).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
        }
    }
}

/// What speaks for and against bytes being UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Balance {
    /// Places that are none.
    pub broken: usize,
    /// Bytes of characters of several bytes, but for the first of each: the longer a character, the less it is there by
    /// chance.
    pub others: usize,
}

impl Balance {
    /// `is_all`: a character that is cut at the end is broken.
    pub(crate) fn of(bytes: &[u8], is_all: bool) -> Self {
        let mut balance = Self::default();
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            balance.others += chunk.valid().bytes().filter(|byte| (0x80..0xc0).contains(byte)).count();
            let is_cut = !is_all && chunks.peek().is_none() && chunk.invalid().len() < 4;
            balance.broken += usize::from(!is_cut && !chunk.invalid().is_empty());
        }
        balance
    }

    /// A log with a few odd bytes in it is UTF-8 all the same; another encoding is hardly ever UTF-8 by chance.
    pub(crate) fn is_utf8(self) -> bool {
        self.broken == 0 || self.others > self.broken
    }
}

impl std::ops::Add for Balance {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { broken: self.broken + other.broken, others: self.others + other.others }
    }
}

fn guess(head: &[u8], is_all: bool) -> &'static encoding_rs::Encoding {
    // Escape sequences of ISO-2022-JP are those of terminals, too.
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(head, is_all);
    let guessed = detector.guess(None, Utf8Detection::Deny);
    // One that writes line ends or ASCII in another way would change what a line is.
    if guessed.is_ascii_compatible() { guessed } else { encoding_rs::WINDOWS_1252 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legacy(encoding: &'static encoding_rs::Encoding, text: &str) -> Vec<u8> {
        let (bytes, _, has_lost) = encoding.encode(text);
        assert!(!has_lost);
        bytes.into_owned()
    }

    #[test]
    fn texts_in_the_usual_encodings_are_recognised_and_come_back_byte_for_byte() {
        let chinese = "这是一个用来检查编码的文件。\n第二行有更多的汉字，标点也在其中。\n";
        let japanese = "これは文字コードを調べるためのファイルです。\n二行目にも仮名と漢字があります。\n";
        let french = "Le café était fermé à l'arrivée, hélas.\nNaïveté, garçon, où ça ?\n";
        for (encoding, text) in [
            (encoding_rs::GBK, chinese),
            (encoding_rs::GB18030, chinese),
            (encoding_rs::SHIFT_JIS, japanese),
            (encoding_rs::EUC_JP, japanese),
            (encoding_rs::WINDOWS_1252, french),
        ] {
            let bytes = legacy(encoding, text);
            let found = Encoding::of(&bytes, true);
            assert_eq!(found.decode(&bytes), text, "{} as {}", encoding.name(), found.name());
            assert_eq!(&*found.encode(text).unwrap(), bytes, "{}", encoding.name());
        }
    }

    #[test]
    fn a_mark_decides_and_utf_8_needs_none() {
        for (bytes, name, bom) in [
            (&b"\xef\xbb\xbfa"[..], "UTF-8", 3),
            (b"\xff\xfea\0", "UTF-16LE", 2),
            (b"\xfe\xff\0a", "UTF-16BE", 2),
            (b"plain", "UTF-8", 0),
            (b"", "UTF-8", 0),
            ("zürich".as_bytes(), "UTF-8", 0),
            (b"caf\xe9\n", "windows-1252", 0),
            ("größer, schöner, \u{fc}ber: ".as_bytes(), "UTF-8", 0),
        ] {
            let found = Encoding::of(bytes, true);
            assert_eq!((found.name(), found.bom().len()), (name, bom), "{bytes:?}");
            assert!(bytes.starts_with(found.bom()));
        }
        let cut = &"zü".as_bytes()[..2];
        assert_eq!([true, false].map(|is_all| Encoding::of(cut, is_all).is_utf8()), [false, true]);
    }

    #[test]
    fn utf_16_comes_back_and_half_a_character_is_seen() {
        let text = "a\n\u{1f600}é";
        for mark in [&b"\xff\xfe"[..], b"\xfe\xff"] {
            let encoding = Encoding::of(mark, true);
            let bytes = encoding.encode(text).unwrap();
            assert_eq!(encoding.decode(&bytes), text);
            assert_eq!(encoding.decode(&bytes[..bytes.len() - 1]).chars().last(), Some('\u{fffd}'));
        }
    }

    #[test]
    fn what_an_encoding_does_not_have_is_named() {
        let encoding = Encoding::of(b"caf\xe9\n", true);
        assert_eq!(encoding.encode("x → y").unwrap_err(), '→');
        assert_eq!(&*encoding.encode("é").unwrap(), b"\xe9");
        assert_eq!(Encoding::of(b"", true).encode("→").unwrap().len(), 3);
    }
}
