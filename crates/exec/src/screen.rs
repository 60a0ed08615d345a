//! What a terminal shows, from the bytes that were printed to it.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use hermes_core::{Screen, TerminalSize};

/// How far back a screen is drawn from; a program that draws over its own lines needs no more.
const FARTHEST_BACK: u64 = 4 * 1024 * 1024;
const PIECE: usize = 64 * 1024;

/// A terminal that is drawn only when somebody looks.
pub(crate) struct Terminal {
    parser: vt100::Parser,
    /// What comes next in the log.
    position: u64,
}

impl Terminal {
    pub(crate) fn new(size: TerminalSize) -> Self {
        Self { parser: vt100::Parser::new(size.rows, size.columns, 0), position: 0 }
    }

    /// Draws what the log holds by now; `kept` says which part of it is there.
    pub(crate) fn catch_up(&mut self, log: &File, kept: Range<u64>) {
        self.position = self.position.max(kept.start).max(kept.end.saturating_sub(FARTHEST_BACK));
        let mut buffer = vec![0; PIECE];
        while let Ok(length @ 1..) = log.read_at(&mut buffer, self.position) {
            self.parser.process(&buffer[..length]);
            self.position += length as u64;
        }
    }

    pub(crate) fn resize(&mut self, size: TerminalSize) {
        self.parser.screen_mut().set_size(size.rows, size.columns);
    }

    pub(crate) fn screen(&self) -> Screen {
        let screen = self.parser.screen();
        let (rows, columns) = screen.size();
        let mut lines: Vec<String> = screen.rows(0, columns).map(|line| line.trim_end().to_owned()).collect();
        let used = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        lines.truncate(used);
        let (row, column) = screen.cursor_position();
        Screen {
            lines,
            size: TerminalSize { rows, columns },
            cursor: (row + 1, column + 1),
            full_screen: screen.alternate_screen(),
            application_keys: screen.application_cursor(),
        }
    }
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("position", &self.position).finish_non_exhaustive()
    }
}
