//! What a terminal shows, from the bytes that were printed to it.
//!
//! The bytes are foreign, and the library that draws them was written for friendly ones: it repeats some steps as often as
//! a sequence says, and loses count over a few. So numbers in sequences are cut to what a screen can need before it
//! sees them, and where it fails all the same, the screen begins again, blank: a picture that is wrong for a moment is
//! better than a conversation that ends.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hermes_core::{Screen, TerminalSize};

/// How far back a screen is drawn from; a program that draws over its own lines needs no more.
const FARTHEST_BACK: u64 = 1024 * 1024;
const PIECE: usize = 64 * 1024;
/// The largest number that is left in a sequence, but for those that name a mode: a colour has up to 255, and no step
/// needs to be repeated more often on a screen of usual size.
const LARGEST: u32 = 255;
/// Smaller screens are drawn as if they had this size: on one line alone the library loses count.
const SMALLEST: TerminalSize = TerminalSize { rows: 2, columns: 10 };

/// A screen on which foreign bytes are drawn.
pub struct Drawing {
    parser: vt100::Parser,
    numbers: Numbers,
}

impl Drawing {
    /// A blank screen; at least two lines of ten characters.
    pub fn new(size: TerminalSize) -> Self {
        let (rows, columns) = (size.rows.max(SMALLEST.rows), size.columns.max(SMALLEST.columns));
        Self { parser: vt100::Parser::new(rows, columns, 0), numbers: Numbers::default() }
    }

    /// Draws bytes. `false`: it could not, and the screen has begun again.
    pub fn draw(&mut self, bytes: &[u8]) -> bool {
        let bytes = self.numbers.cut(bytes);
        let drawn = catch_unwind(AssertUnwindSafe(|| self.parser.process(&bytes))).is_ok();
        if !drawn {
            let (rows, columns) = self.parser.screen().size();
            *self = Self::new(TerminalSize { rows, columns });
        }
        drawn
    }

    /// Gives it another size.
    pub fn resize(&mut self, size: TerminalSize) {
        let (rows, columns) = (size.rows.max(SMALLEST.rows), size.columns.max(SMALLEST.columns));
        let resized = catch_unwind(AssertUnwindSafe(|| self.parser.screen_mut().set_size(rows, columns))).is_ok();
        if !resized {
            *self = Self::new(TerminalSize { rows, columns });
        }
    }

    /// What it shows.
    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Its lines without the spaces at their ends; empty ones at the bottom are left out.
    pub fn lines(&self) -> Vec<String> {
        let screen = self.parser.screen();
        let mut lines: Vec<String> = screen.rows(0, screen.size().1).map(|line| line.trim_end().to_owned()).collect();
        let used = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        lines.truncate(used);
        lines
    }
}

impl std::fmt::Debug for Drawing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drawing").field("size", &self.parser.screen().size()).finish_non_exhaustive()
    }
}

/// Cuts the numbers of control sequences (`ESC [ … letter`), wherever they are divided.
#[derive(Debug, Default)]
struct Numbers {
    place: Place,
    /// The number that is being read, where there is one.
    number: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Text,
    Escape,
    Sequence,
    /// A sequence whose numbers name modes.
    Modes,
}

impl Numbers {
    fn cut(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut cut = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if self.place == Place::Sequence && byte.is_ascii_digit() {
                let number = self.number.unwrap_or(0) * 10 + u32::from(byte - b'0');
                self.number = Some(number.min(LARGEST));
                continue;
            }
            if let Some(number) = self.number.take() {
                cut.extend(number.to_string().bytes());
            }
            self.place = match (self.place, byte) {
                (_, 0x1b) => Place::Escape,
                (Place::Sequence, b'?') | (Place::Modes, 0x20..=0x3f) => Place::Modes,
                (Place::Escape, b'[') | (Place::Sequence, 0x20..=0x3f) => Place::Sequence,
                _ => Place::Text,
            };
            cut.push(byte);
        }
        cut
    }
}

/// A terminal that is drawn only when somebody looks.
#[derive(Debug)]
pub(crate) struct Terminal {
    drawing: Drawing,
    /// What comes next in the log.
    position: u64,
}

impl Terminal {
    pub(crate) fn new(size: TerminalSize) -> Self {
        Self { drawing: Drawing::new(size), position: 0 }
    }

    /// Draws what the log holds by now; `kept` says which part of it is there.
    pub(crate) fn catch_up(&mut self, log: &File, kept: Range<u64>) {
        self.position = self.position.max(kept.start).max(kept.end.saturating_sub(FARTHEST_BACK));
        let mut buffer = vec![0; PIECE];
        while let Ok(length @ 1..) = log.read_at(&mut buffer, self.position) {
            self.drawing.draw(&buffer[..length]);
            self.position += length as u64;
        }
    }

    pub(crate) fn resize(&mut self, size: TerminalSize) {
        self.drawing.resize(size);
    }

    pub(crate) fn screen(&self) -> Screen {
        let screen = self.drawing.screen();
        let (rows, columns) = screen.size();
        let (row, column) = screen.cursor_position();
        Screen {
            lines: self.drawing.lines(),
            size: TerminalSize { rows, columns },
            cursor: (row + 1, column + 1),
            full_screen: screen.alternate_screen(),
            application_keys: screen.application_cursor(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    const SIZE: TerminalSize = TerminalSize { rows: 5, columns: 20 };

    fn shown(bytes: &[u8]) -> Vec<String> {
        let mut drawing = Drawing::new(SIZE);
        drawing.draw(bytes);
        drawing.lines()
    }

    #[test]
    fn what_is_drawn_over_is_gone() {
        assert_eq!(shown(b"one\r\ntwo\x1b[1;1HO\x1b[2;2H\x1b[K"), ["One", "t"]);
    }

    #[test]
    fn numbers_are_cut_and_nothing_else_wherever_the_bytes_are_divided() {
        let bytes = b"12345 \x1b[0012345;7Hx\x1b[?1049h\x1b]0;12345\x07 9999";
        let mut numbers = Numbers::default();
        let whole = numbers.cut(bytes);
        assert_eq!(whole, b"12345 \x1b[255;7Hx\x1b[?1049h\x1b]0;12345\x07 9999");
        let mut numbers = Numbers::default();
        assert_eq!(bytes.iter().flat_map(|byte| numbers.cut(&[*byte])).collect::<Vec<_>>(), whole);
    }

    #[test]
    fn no_sequence_keeps_it_busy() {
        for letter in *b"@LMPSTXbABCDEFGHIZ" {
            let bytes = [b"\x1b[65535".as_slice(), &[letter]].concat().repeat(2_000);
            let began = Instant::now();
            shown(&bytes);
            assert!(began.elapsed() < Duration::from_secs(30), "{}", char::from(letter));
        }
    }

    #[test]
    fn no_bytes_end_it() {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let pieces: [&[u8]; 14] = [
            b"\x1b[",
            b"\x1b",
            b";",
            b"999",
            b"0",
            b"H",
            b"L",
            b"M",
            b"r",
            b"?1049h",
            b"\xf0\x9f\x98\x80",
            b"\r\n",
            b"\x1b[2;1r",
            b"wide \xe4\xbd\xa0",
        ];
        for _ in 0..300 {
            let mut drawing = Drawing::new(TerminalSize { rows: 1, columns: 1 });
            for _ in 0..60 {
                drawing.draw(pieces[usize::try_from(next() % 14).unwrap()]);
            }
            drawing.resize(SIZE);
            drawing.lines();
        }
    }
}
