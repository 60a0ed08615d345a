//! The screen of a process on the person's terminal.
//!
//! What the process prints never gets there. It is drawn on a terminal of ours, and what that one shows is what the
//! person's terminal is told to show: so a process can colour, move and clear what is inside of its frame, and cannot
//! write to the clipboard, change the title, ask the terminal for an answer that would be typed for it, or leave a mess
//! behind. The last line is ours and says how to leave.

use std::io::{self, Write as _};

use hermes_core::TerminalSize;
use hermes_exec::screen::Drawing;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

use super::text::{one_line, padded};

/// The terminal's own second screen, empty (xterm, DEC private mode 1049).
const ENTER: &str = "\x1b[?1049h\x1b[H\x1b[2J";
/// Everything that a process may have switched: keypad and cursor keys, pasting, the mouse in all its ways, the cursor.
const LEAVE: &str =
    "\x1b[m\x1b>\x1b[?1l\x1b[?2004l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?25h\x1b[?1049l";
/// Smaller terminals are taken to have this size.
const SMALLEST: TerminalSize = TerminalSize { rows: 3, columns: 10 };
/// For a terminal that does not know its size (it says 0 or 1).
const USUAL: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// The size of the person's terminal.
fn terminal_size() -> TerminalSize {
    let (columns, rows) = termimad::terminal_size();
    if columns < 2 || rows < 2 {
        return USUAL;
    }
    TerminalSize { rows: rows.max(SMALLEST.rows), columns: columns.max(SMALLEST.columns) }
}

/// The mirror. While it lives the terminal is raw; when it goes, by whatever way, the terminal is as before.
pub(crate) struct Mirror {
    drawing: Drawing,
    drawn: vt100::Screen,
    /// What the last line says.
    says: String,
    before: Termios,
}

impl Mirror {
    /// Takes the terminal over and shows what a terminal of size `theirs` would show after `printed`.
    pub(crate) fn new(theirs: TerminalSize, printed: impl Iterator<Item = Vec<u8>>, says: &str) -> io::Result<Self> {
        let mut drawing = Drawing::new(theirs);
        for bytes in printed {
            drawing.draw(&bytes);
        }
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        let drawn = drawing.screen().clone();
        let mirror = Self { drawing, drawn, says: says.to_owned(), before };
        tcsetattr(io::stdin(), SetArg::TCSADRAIN, &raw)?;
        write(ENTER.as_bytes())?;
        Ok(mirror)
    }

    /// Fits everything to the terminal as it is now, and answers what is left for the process.
    pub(crate) fn fit(&mut self) -> io::Result<TerminalSize> {
        let ours = terminal_size();
        let theirs = TerminalSize { rows: ours.rows - 1, ..ours };
        self.drawing.resize(theirs);
        self.drawn = self.drawing.screen().clone();
        let mut all = self.drawn.state_formatted();
        // Drawing everything has cleared the last line. DECSC and DECRC keep the cursor and its colours.
        let line = padded(&one_line(&self.says, usize::from(ours.columns)), usize::from(ours.columns) - 1);
        all.extend(format!("\x1b7\x1b[{};1H\x1b[m\x1b[7m{line}\x1b[m\x1b8", ours.rows).bytes());
        write(&all)?;
        Ok(theirs)
    }

    /// Shows what comes of `bytes`.
    pub(crate) fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.drawing.draw(bytes) {
            return self.fit().map(drop);
        }
        let change = self.drawing.screen().state_diff(&self.drawn);
        self.drawn = self.drawing.screen().clone();
        write(&change)
    }

    /// What is on the screen, as lines of text.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.drawing.lines()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = write(LEAVE.as_bytes());
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
