//! How a file is laid out in lines, so that a place deep in it is found without reading what comes before.
//!
//! A file is looked at in pieces of one size. For each piece the number of line ends before it is kept, which is one
//! number for a quarter of a megabyte: enough to go to any line with two small reads. The same look makes a
//! fingerprint of the content, piece by piece too, so that several threads can share the work.

use std::hash::Hasher as _;

use twox_hash::XxHash3_64;

/// How a line ends in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineFeed {
    /// One byte, `0x0a`.
    #[default]
    Byte,
    /// Two bytes of UTF-16, the low one first.
    Utf16Le,
    /// Two bytes of UTF-16, the high one first.
    Utf16Be,
}

/// The lines of a file and the fingerprint of its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    len: u64,
    /// Line ends before each piece, and in all.
    before: Vec<u64>,
    has_open_line: bool,
    hash: u64,
}

/// What one piece contributes; see [`Layout::join`].
#[derive(Clone, Copy, Debug)]
pub struct PieceFacts {
    len: u64,
    line_ends: u64,
    ends_line: bool,
    hash: u64,
}

impl Layout {
    /// Bytes in a piece; only the last one of a file may be shorter.
    pub const PIECE: usize = 256 * 1024;

    /// Looks at one piece. It begins at a multiple of [`Layout::PIECE`] in the file.
    pub fn piece(bytes: &[u8], feed: LineFeed) -> PieceFacts {
        let pairs = bytes.as_chunks::<2>().0;
        let (line_ends, ends_line) = match feed {
            LineFeed::Byte => (memchr::memchr_iter(b'\n', bytes).count(), bytes.ends_with(b"\n")),
            LineFeed::Utf16Le => {
                (pairs.iter().filter(|pair| **pair == [b'\n', 0]).count(), bytes.ends_with(&[b'\n', 0]))
            }
            LineFeed::Utf16Be => {
                (pairs.iter().filter(|pair| **pair == [0, b'\n']).count(), bytes.ends_with(&[0, b'\n']))
            }
        };
        PieceFacts { len: bytes.len() as u64, line_ends: line_ends as u64, ends_line, hash: XxHash3_64::oneshot(bytes) }
    }

    /// The layout of a file from that of all its pieces, in order. Empty ones change nothing.
    pub fn join(pieces: impl IntoIterator<Item = PieceFacts>) -> Self {
        let mut layout = Self { before: vec![0], ..Self::default() };
        let mut hasher = XxHash3_64::new();
        let mut line_ends = 0;
        for piece in pieces.into_iter().filter(|piece| piece.len > 0) {
            layout.len += piece.len;
            line_ends += piece.line_ends;
            layout.before.push(line_ends);
            layout.has_open_line = !piece.ends_line;
            hasher.write_u64(piece.hash);
        }
        hasher.write_u64(layout.len);
        layout.hash = hasher.finish();
        layout
    }

    /// The layout of a whole content.
    pub fn of(content: &[u8], feed: LineFeed) -> Self {
        Self::join(content.chunks(Self::PIECE).map(|piece| Self::piece(piece, feed)))
    }

    /// Bytes in the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lines in the file. What follows the last line end is one if it is not empty.
    pub fn lines(&self) -> u64 {
        self.before.last().copied().unwrap_or(0) + u64::from(self.has_open_line)
    }

    /// Told from that of another content of any length; the same for the same bytes, however lines end in them.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Where to look for the beginning of a line, counted from 0: the offset of a piece, and how many line ends are to be
    /// passed from there on. For a line that is not there: the end of the file.
    pub fn find(&self, line: u64) -> (u64, u64) {
        if line == 0 || line >= self.lines() {
            return (if line == 0 { 0 } else { self.len }, 0);
        }
        // The last piece before which there are fewer line ends than have to be passed.
        let piece = self.before.partition_point(|before| *before < line).saturating_sub(1);
        (piece as u64 * Self::PIECE as u64, line - self.before[piece])
    }

    /// The offset of the first piece from `offset` on in which a line ends; the end of the file if there is none.
    pub fn next_line_end(&self, offset: u64) -> u64 {
        let piece =
            usize::try_from(offset / Self::PIECE as u64).unwrap_or(usize::MAX).min(self.before.len().saturating_sub(1));
        let now = self.before.get(piece).copied().unwrap_or(0);
        let after = self.before.iter().skip(piece).position(|before| *before > now);
        after.map_or(self.len, |after| ((piece + after - 1) * Self::PIECE) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(lines: u64) -> Vec<u8> {
        (0..lines).flat_map(|line| format!("line {line} {}\n", "x".repeat((line % 97) as usize)).into_bytes()).collect()
    }

    /// What a reader finds who goes where the layout says.
    fn line_at(content: &[u8], layout: &Layout, line: u64) -> String {
        let (offset, skip) = layout.find(line);
        let rest = &content[usize::try_from(offset).unwrap()..];
        let text = rest.split(|byte| *byte == b'\n').nth(usize::try_from(skip).unwrap()).unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }

    #[test]
    fn every_line_is_found_from_the_piece_that_it_says() {
        let content = content(30_000);
        let layout = Layout::of(&content, LineFeed::Byte);
        assert!(layout.len() > 4 * Layout::PIECE as u64 && layout.lines() == 30_000);
        for line in (0..30_000).step_by(7) {
            assert!(line_at(&content, &layout, line).starts_with(&format!("line {line} ")), "{line}");
            let (offset, skip) = layout.find(line);
            assert!(offset % Layout::PIECE as u64 == 0 && skip <= 30_000, "{line}");
        }
        assert_eq!(layout.find(30_000), (layout.len(), 0));
    }

    #[test]
    fn only_what_is_there_is_a_line() {
        let lines = |content: &[u8]| Layout::of(content, LineFeed::Byte).lines();
        assert_eq!([&b""[..], b"a", b"a\n", b"a\n\n", b"\n", b"a\nb"].map(lines), [0, 1, 1, 2, 1, 2]);
        assert!(Layout::of(b"", LineFeed::Byte).is_empty());
    }

    #[test]
    fn a_line_end_of_two_bytes_is_one_and_others_are_not_mistaken_for_it() {
        // U+0A0A and U+0A00 have the byte of a line feed in both places.
        let text = "a\nb\u{a0a}\u{a00}\nc";
        for (feed, bytes) in [
            (LineFeed::Utf16Le, text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()),
            (LineFeed::Utf16Be, text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        ] {
            assert_eq!(Layout::of(&bytes, feed).lines(), 3);
        }
    }

    #[test]
    fn a_content_is_known_by_every_byte_and_its_length() {
        let hash = |content: &[u8]| Layout::of(content, LineFeed::Byte).hash();
        let large = content(30_000);
        let mut other = large.clone();
        other[Layout::PIECE] ^= 1;
        assert_ne!(hash(&large), hash(&other));
        assert_ne!(hash(b""), hash(b"\0"));
        assert_eq!(hash(&large), Layout::of(&large, LineFeed::Utf16Le).hash());
    }

    #[test]
    fn the_end_of_a_line_that_fills_pieces_is_found_without_reading_them() {
        let mut content = b"first\n".to_vec();
        content.extend(vec![b'x'; 5 * Layout::PIECE]);
        content.extend(b"\nlast");
        let layout = Layout::of(&content, LineFeed::Byte);
        assert_eq!(layout.next_line_end(0), 0);
        assert_eq!(layout.next_line_end(Layout::PIECE as u64), 5 * Layout::PIECE as u64);
        assert_eq!(line_at(&content, &layout, 2), "last");
        assert_eq!(
            Layout::of(&vec![b'x'; 3 * Layout::PIECE], LineFeed::Byte).next_line_end(9),
            3 * Layout::PIECE as u64
        );
    }
}
