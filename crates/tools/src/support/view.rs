//! The text of a file, and the way back from a place in it to the bytes it stands for.
//!
//! Tools look for text, but what they change is bytes: everything outside of a change must be the bytes that were there,
//! also where they are no text at all. So a file is never decoded, changed and encoded again. It is decoded to look at
//! it, and what is found is led back to bytes.
//!
//! The tricky idea: the way back is not stored for every character. There are marks (after every damaged place of UTF-8, at
//! every line of an older encoding, every so often in UTF-16), and from the nearest mark one counts.

use std::borrow::Cow;
use std::ops::Range;

use super::encoding::Encoding;

/// How much text of UTF-16 lies between two marks.
const STRIDE: usize = 1024;

/// A file as text.
#[derive(Debug)]
pub(crate) struct View<'b> {
    bytes: &'b [u8],
    encoding: Encoding,
    text: Cow<'b, str>,
    /// Places in the text and in the bytes that are the same place, in order; the first is the beginning of the text.
    marks: Vec<(usize, usize)>,
}

/// A change: what stands at `range` of the text becomes `new`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) range: Range<usize>,
    pub(crate) new: String,
}

/// Why a change cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CannotWrite {
    /// The file's encoding does not have this character.
    #[error("the file is {encoding}, which has no character `{character}` (U+{:04X})", *.character as u32)]
    Missing {
        /// The name of the encoding.
        encoding: &'static str,
        /// The character.
        character: char,
    },
    /// The change begins or ends inside of something that is one character in the file.
    #[error("the place begins or ends within bytes that cannot be read as {0}")]
    WithinACharacter(&'static str),
}

impl<'b> View<'b> {
    /// The file with these bytes, in the encoding it seems to have.
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        let encoding = Encoding::of(bytes, true);
        // What the guessed encoding cannot read either is kept as it is, byte by byte.
        if encoding.legacy().is_some_and(|legacy| legacy.decode_without_bom_handling(bytes).1) {
            return Self::as_utf8(bytes);
        }
        Self::in_encoding(bytes, encoding)
    }

    /// The file read as UTF-8, whatever it seems to be; bytes that are none are `U+FFFD`.
    pub(crate) fn as_utf8(bytes: &'b [u8]) -> Self {
        // What an empty file would have: UTF-8 without a mark.
        Self::in_encoding(bytes, Encoding::of(b"", true))
    }

    fn in_encoding(bytes: &'b [u8], encoding: Encoding) -> Self {
        let start = encoding.bom().len();
        let body = &bytes[start..];
        let mut marks = vec![(0, start)];
        let text = if encoding.legacy().is_some() {
            let mut text = String::with_capacity(body.len());
            let mut at = start;
            // A line end is never a part of another character in an encoding that ASCII is a part of.
            for line in body.split_inclusive(|byte| *byte == b'\n') {
                text.push_str(&encoding.decode(line));
                at += line.len();
                marks.push((text.len(), at));
            }
            text.into()
        } else if encoding.is_utf8() {
            utf8(body, start, &mut marks)
        } else {
            let text = encoding.decode(body);
            let (mut at, mut next) = (start, STRIDE);
            for (index, letter) in text.char_indices() {
                if index >= next {
                    marks.push((index, at));
                    next = index + STRIDE;
                }
                at += 2 * letter.len_utf16();
            }
            text
        };
        Self { bytes, encoding, text, marks }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Where `at` of the text is in the bytes; `None` within something that is one piece there. `known` is a place that was
    /// found before and is not behind this one: thousands of places in one long line are not counted from its beginning.
    fn byte_at(&self, at: usize, known: (usize, usize)) -> Option<usize> {
        let mark = self.marks.partition_point(|(text, _)| *text <= at).checked_sub(1)?;
        let (text, byte) = self.marks[mark].max(known);
        let before = self.text.get(text..at)?;
        if let Some(legacy) = self.encoding.legacy() {
            return count_bytes(legacy, &self.bytes[byte..], before.len()).map(|bytes| byte + bytes);
        }
        let bytes =
            if self.encoding.is_utf8() { before.len() } else { 2 * before.chars().map(char::len_utf16).sum::<usize>() };
        // Half a character at the end of UTF-16 is shown as a whole one.
        Some((byte + bytes).min(self.bytes.len()))
    }

    /// The bytes of the file with every change made. `splices` are in order and do not overlap. What a change leaves as it
    /// was, at its beginning and its end, keeps its own bytes.
    pub(crate) fn spliced(&self, splices: &[Splice]) -> Result<Vec<u8>, CannotWrite> {
        let grown: usize = splices.iter().map(|splice| splice.new.len()).sum();
        let mut after = Vec::with_capacity(self.bytes.len() + grown);
        let (mut done, mut known) = (0, (0, 0));
        for splice in splices {
            let (range, new) = narrowed(&self.text, splice);
            let within = || CannotWrite::WithinACharacter(self.encoding.name());
            let start = self.byte_at(range.start, known).ok_or_else(within)?;
            let end = self.byte_at(range.end, (range.start, start)).ok_or_else(within)?;
            known = (range.end, end);
            let new = self
                .encoding
                .encode(new)
                .map_err(|character| CannotWrite::Missing { encoding: self.encoding.name(), character })?;
            after.extend_from_slice(&self.bytes[done..start]);
            after.extend_from_slice(&new);
            done = end;
        }
        after.extend_from_slice(&self.bytes[done..]);
        Ok(after)
    }
}

/// The splice without what stays the same on both sides of it.
fn narrowed<'s>(text: &str, splice: &'s Splice) -> (Range<usize>, &'s str) {
    let old = &text[splice.range.clone()];
    let head = common_prefix(old, &splice.new);
    let tail = common_suffix(&old[head..], &splice.new[head..]);
    (splice.range.start + head..splice.range.end - tail, &splice.new[head..splice.new.len() - tail])
}

/// How many bytes of whole characters two texts begin with in common.
pub(crate) fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (0..=same).rev().find(|at| a.is_char_boundary(*at) && b.is_char_boundary(*at)).unwrap_or(0)
}

/// How many bytes of whole characters two texts end with in common.
pub(crate) fn common_suffix(a: &str, b: &str) -> usize {
    let same = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let is_border = |tail: &usize| a.is_char_boundary(a.len() - tail) && b.is_char_boundary(b.len() - tail);
    (0..=same).rev().find(is_border).unwrap_or(0)
}

/// UTF-8 with a mark after every damaged place.
fn utf8<'b>(body: &'b [u8], start: usize, marks: &mut Vec<(usize, usize)>) -> Cow<'b, str> {
    if let Ok(text) = std::str::from_utf8(body) {
        return text.into();
    }
    let mut text = String::with_capacity(body.len());
    let mut at = start;
    for chunk in body.utf8_chunks() {
        text.push_str(chunk.valid());
        at += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            marks.push((text.len(), at));
            text.push(char::REPLACEMENT_CHARACTER);
            at += chunk.invalid().len();
            marks.push((text.len(), at));
        }
    }
    text.into()
}

/// How many bytes it takes until `text` bytes of UTF-8 have been decoded; `None` if that is within a character.
fn count_bytes(encoding: &'static encoding_rs::Encoding, bytes: &[u8], text: usize) -> Option<usize> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let (mut made, mut taken) = (0, 0);
    let mut out = [0; 16];
    while made < text {
        let (_, read, written, _) = decoder.decode_to_utf8(bytes.get(taken..=taken)?, &mut out, false);
        taken += read;
        made += written;
    }
    (made == text).then_some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(bytes: &[u8], old: &str, new: &str) -> Result<Vec<u8>, CannotWrite> {
        let view = View::new(bytes);
        let at = view.text().find(old).unwrap_or_else(|| panic!("{old:?} in {:?}", view.text()));
        view.spliced(&[Splice { range: at..at + old.len(), new: new.into() }])
    }

    #[test]
    fn only_the_bytes_of_the_change_change() {
        let utf16 = |mark: &[u8], text: &str| [mark, &Encoding::of(mark, true).encode(text).unwrap()].concat();
        let sjis = |text: &str| encoding_rs::SHIFT_JIS.encode(text).0.into_owned();
        let japanese = "これは文字コードを調べるためのファイルです。\n表示 two 行目にも仮名と漢字があります。\n";
        for (before, old, new, after) in [
            (b"one two\n".to_vec(), "two", "zw\u{f6}lf", "one zw\u{f6}lf\n".as_bytes().to_vec()),
            (b"\xef\xbb\xbftwo".to_vec(), "two", "2", b"\xef\xbb\xbf2".to_vec()),
            // Damaged UTF-8 stays damaged, and stays UTF-8.
            (
                "zürich \u{1f600} two".bytes().chain(*b"\xff\x00\xc3").collect(),
                "two",
                "é",
                "zürich \u{1f600} é".bytes().chain(*b"\xff\x00\xc3").collect(),
            ),
            (b"caf\xe9 one\ntwo\n".to_vec(), "two", "th\u{e9}", b"caf\xe9 one\nth\xe9\n".to_vec()),
            (b"caf\xe9 one\ntwo\n".to_vec(), "one", "1", b"caf\xe9 1\ntwo\n".to_vec()),
            (sjis(japanese), "two", "二", sjis(&japanese.replace("two", "二"))),
            (
                utf16(b"\xff\xfe", "é\u{1f600}\ntwo\n"),
                "two",
                "\u{1f600}",
                utf16(b"\xff\xfe", "é\u{1f600}\n\u{1f600}\n"),
            ),
            (
                utf16(b"\xfe\xff", &"é\u{1f600}x".repeat(3_000))
                    .into_iter()
                    .chain(utf16(b"\xfe\xff", "two")[2..].to_vec())
                    .collect(),
                "two",
                "2",
                utf16(b"\xfe\xff", &("é\u{1f600}x".repeat(3_000) + "2")),
            ),
            ([utf16(b"\xff\xfe", "two"), vec![7]].concat(), "two", "2", [utf16(b"\xff\xfe", "2"), vec![7]].concat()),
        ] {
            assert_eq!(replaced(&before, old, new).unwrap(), after, "{old:?} in {before:x?}");
        }
    }

    #[test]
    fn what_the_encoding_does_not_have_is_refused_unless_it_stays() {
        let error = replaced(b"caf\xe9 one\n", "one", "→").unwrap_err();
        assert_eq!(error.to_string(), "the file is windows-1252, which has no character `→` (U+2192)");
        assert_eq!(replaced(b"caf\xe9\n", "café", "café!").unwrap(), b"caf\xe9!\n");
    }

    #[test]
    fn a_place_within_a_character_is_none() {
        // A first half whose second half is missing, as browsers read it: two characters of two bytes.
        let bytes = [&encoding_rs::SHIFT_JIS.encode("ファイルです。仮名と漢字があります。").0[..], b" two"].concat();
        let view = View::new(&bytes);
        let at = view.text().find("two").unwrap();
        assert_eq!(view.byte_at(at, (0, 0)), Some(bytes.len() - 3));
        assert_eq!(view.byte_at(1, (0, 0)), None);
    }

    #[test]
    fn what_is_common_is_whole_characters() {
        assert_eq!((common_prefix("é", "è"), common_suffix("é", "ũ")), (0, 0));
        assert_eq!((common_prefix("aé", "aéb"), common_suffix("éa", "béa")), (3, 3));
    }
}
