//! What a process printed, read from outside of its conversation: from its log, also while that grows.
//!
//! Whoever follows a process reads its log too and takes the supervisor's messages only as the sign to look again. So
//! nothing falls between what was there and what comes, and a reader that is slow misses nothing.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::plain::{Reading, coloured, plain};
use crate::supervisor::log::first_kept;

use super::Record;

/// How much is read at once.
const PIECE: usize = 64 * 1024;
/// A line is not waited for longer than this.
const LONGEST_LINE: usize = 64 * 1024;

/// A reader of a log.
#[derive(Debug)]
pub struct Output {
    log: File,
    position: u64,
}

impl Output {
    /// Begins with the first byte that is still kept.
    pub fn of(record: &Record) -> io::Result<Self> {
        let log = File::open(&record.log)?;
        let position = first_kept(log.metadata()?.len());
        Ok(Self { log, position })
    }

    /// Where in everything that was printed the next byte stands. Right after [`Output::of`]: how many bytes at the
    /// beginning are not kept any more.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes to the last `lines` lines.
    pub fn skip_to_last(&mut self, lines: usize) -> io::Result<()> {
        let end = self.log.metadata()?.len();
        let (mut at, mut seen) = (end, 0);
        let mut buffer = vec![0; PIECE];
        while at > self.position {
            let length = usize::try_from(at - self.position).unwrap_or(PIECE).min(PIECE);
            let piece = &mut buffer[..length];
            self.log.read_exact_at(piece, at - length as u64)?;
            for (index, _) in piece.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
                let after = at - length as u64 + index as u64 + 1;
                // The end of the last line begins no other one.
                if after < end {
                    seen += 1;
                }
                if seen == lines {
                    self.position = after;
                    return Ok(());
                }
            }
            at -= length as u64;
        }
        Ok(())
    }

    /// Goes to the last `bytes` bytes.
    pub fn skip_to_last_bytes(&mut self, bytes: u64) -> io::Result<()> {
        self.position = self.position.max(self.log.metadata()?.len().saturating_sub(bytes));
        Ok(())
    }

    /// The next bytes; none where there are no more by now.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; PIECE];
        let length = self.log.read_at(&mut buffer, self.position)?;
        buffer.truncate(length);
        self.position += length as u64;
        Ok(buffer)
    }
}

/// Makes text of what was printed, line by line, so that it can be shown to somebody: no escape sequence is left but
/// colours where they are wanted, and no other control character but tabs and line ends.
#[derive(Debug)]
pub struct Lines {
    colours: bool,
    reading: Reading,
    /// What a carriage return would write over is a line of its own, because it may have been shown already.
    live: bool,
    rest: Vec<u8>,
}

impl Lines {
    /// For the output of `record`. `live`: it is shown while it comes.
    pub fn of(record: &Record, colours: bool, live: bool) -> Self {
        let reading = Reading { terminal: record.facts.terminal, ..Reading::default() };
        Self { colours, reading, live, rest: Vec::new() }
    }

    /// Takes bytes and gives the lines that are whole now.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        if self.live {
            // One at the very end may belong to a line end.
            let within = self.rest.len().saturating_sub(1);
            for index in 0..within {
                if self.rest[index] == b'\r' && self.rest[index + 1] != b'\n' {
                    self.rest[index] = b'\n';
                }
            }
        }
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let whole = if self.rest.len() - whole > LONGEST_LINE { self.rest.len() } else { whole };
        let rest = self.rest.split_off(whole);
        let whole = std::mem::replace(&mut self.rest, rest);
        self.shown(&whole)
    }

    /// A line is not whole yet.
    pub fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Gives the line that is not whole: nothing more comes, or not soon.
    pub fn rest(&mut self) -> String {
        let rest = std::mem::take(&mut self.rest);
        self.shown(&rest)
    }

    fn shown(&self, bytes: &[u8]) -> String {
        if self.colours { coloured(bytes, self.reading) } else { plain(bytes, self.reading) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use hermes_core::{ProcessFacts, ProcessState};

    use super::*;

    fn record(log: &std::path::Path, printed: &[u8]) -> Record {
        std::fs::write(log, printed).unwrap();
        let facts = ProcessFacts {
            command: String::new(),
            cwd: "/".into(),
            notify_on_complete: false,
            watch_patterns: Vec::new(),
            terminal: true,
            unconfined: false,
        };
        Record {
            id: "proc_1".into(),
            owner: "1".into(),
            owner_pid: 1,
            started: SystemTime::UNIX_EPOCH,
            ended: None,
            facts,
            state: ProcessState::Running,
            log: log.to_owned(),
        }
    }

    #[test]
    fn the_last_lines_are_found_whatever_the_end_looks_like() {
        let folder = tempfile::tempdir().unwrap();
        let last = |printed: &[u8], lines: usize| {
            let mut output = Output::of(&record(&folder.path().join("log"), printed)).unwrap();
            output.skip_to_last(lines).unwrap();
            let mut all = Vec::new();
            loop {
                let piece = output.read().unwrap();
                if piece.is_empty() {
                    return String::from_utf8(all).unwrap();
                }
                all.extend(piece);
            }
        };
        assert_eq!(last(b"a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last(b"a\nb\nc", 2), "b\nc");
        assert_eq!(last(b"a\nb\n", 5), "a\nb\n");
        assert_eq!(last(b"", 5), "");
        let long = format!("first\n{}\nlast\n", "x".repeat(3 * PIECE));
        assert_eq!(last(long.as_bytes(), 2), long["first\n".len()..]);
    }

    #[test]
    fn only_colours_are_left_of_escape_sequences_and_a_line_that_is_cut_is_none_the_worse() {
        let folder = tempfile::tempdir().unwrap();
        let record = record(&folder.path().join("log"), b"");
        let evil = b"\x1b]52;c;ZXZpbA==\x07\x1b[31mred\x1b[0m\x1b[2J\x1b[1;1Hx\r\n";
        assert_eq!(Lines::of(&record, true, false).push(evil), "\u{1b}[31mred\u{1b}[0mx\u{1b}[0m\n");
        assert_eq!(Lines::of(&record, false, false).push(evil), "redx\n");
        let mut lines = Lines::of(&record, true, true);
        assert_eq!(lines.push(b"10%\r20%\r"), "10%\n");
        assert_eq!(lines.push(b"\nname: \x1b["), "20%\n");
        assert_eq!((lines.rest().as_str(), lines.has_rest()), ("name: ", false));
        assert_eq!(lines.push(b"2Jme\n"), "2Jme\n");
    }
}
