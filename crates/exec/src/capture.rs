//! Keeping the head and the tail of an output of any length, in bounded memory, and all of it in a file.
//!
//! Errors tend to stand at the end and the reason for them near the start, so 40 % of the cap goes to the head and
//! 60 % to the tail (spec exec §3.8). What was left out is counted and said in the text; it is in the *spill*, a file
//! that is made as soon as something has to be left out.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hermes_core::grouped;
use nix::errno::Errno;
use nix::fcntl::{SpliceFFlags, splice};

use crate::plain::{Reading, coloured_tail, plain};

/// A spill is not written beyond this; what comes later is counted only.
const LONGEST_SPILL: u64 = 512 * 1024 * 1024;
/// All spills of a session together take no more than this; the oldest ones go first.
const MOST_SPILLED: u64 = 1024 * 1024 * 1024;
/// What is moved at once.
const SPLICED: usize = 1024 * 1024;
/// How many lines a person sees below a command.
const LINES_FOR_PEOPLE: usize = 4;

/// Collects bytes up to a cap.
#[derive(Debug)]
pub(crate) struct Capture {
    head_cap: usize,
    tail_cap: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    reading: Reading,
    spill: Spill,
    /// The end of what was spilled has not been read back yet.
    tail_is_in_spill: bool,
}

#[derive(Debug)]
enum Spill {
    /// Where it would be.
    Not(PathBuf),
    Open {
        file: File,
        path: PathBuf,
        len: u64,
    },
    /// It could not be written on; `kept` holds what came before.
    Broken {
        kept: Option<(File, PathBuf)>,
        why: String,
    },
}

/// What was collected until now.
#[derive(Debug)]
pub(crate) enum SoFar {
    Kept(Vec<u8>),
    /// It may be much: whoever copies it waits for the disk.
    Spilled(PathBuf),
}

impl SoFar {
    pub(crate) fn copy_to(&self, log: &mut File) -> io::Result<()> {
        match self {
            Self::Kept(bytes) => log.write_all(bytes),
            Self::Spilled(path) => io::copy(&mut File::open(path)?, log).map(drop),
        }
    }
}

/// What was collected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    /// The text, with a notice where bytes were left out.
    pub text: String,
    /// Its last lines with their colours.
    pub coloured_tail: Vec<String>,
    /// Bytes seen in all.
    pub total_bytes: u64,
    /// Bytes left out of `text`.
    pub omitted_bytes: u64,
    /// The file that has all of them.
    pub spill: Option<PathBuf>,
}

impl Capture {
    /// Keeps at most `cap` bytes, and all of them in a new file at `spill` once there are more.
    pub(crate) fn new(cap: usize, reading: Reading, spill: PathBuf) -> Self {
        let head_cap = cap / 5 * 2;
        let tail_cap = cap - head_cap;
        let (head, tail) = (Vec::new(), VecDeque::new());
        Self { head_cap, tail_cap, head, tail, total: 0, reading, spill: Spill::Not(spill), tail_is_in_spill: false }
    }

    /// Moves output from a pipe straight into the spill, once there is one: what is left out of the text anyway need not
    /// pass through our memory. `None`: it cannot be done so (no spill, a terminal); read it and [`push`](Self::push).
    pub(crate) fn splice(&mut self, pipe: impl AsFd) -> Option<nix::Result<usize>> {
        let Spill::Open { file, len, .. } = &mut self.spill else { return None };
        if *len >= LONGEST_SPILL {
            return None;
        }
        let flags = SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK;
        match splice(pipe, None, &*file, None, SPLICED, flags) {
            Err(Errno::EINVAL | Errno::ENOSPC | Errno::EIO | Errno::EFBIG) => None,
            Ok(moved) => {
                *len += moved as u64;
                self.total += moved as u64;
                self.tail_is_in_spill |= moved > 0;
                Some(Ok(moved))
            }
            other => Some(other),
        }
    }

    /// Takes the tail back from the spill.
    fn read_tail(&mut self) {
        let Spill::Open { file, len, .. } = &self.spill else { return };
        if !std::mem::take(&mut self.tail_is_in_spill) {
            return;
        }
        let tail = u64::try_from(self.tail_cap).unwrap_or(u64::MAX).min(*len);
        let mut bytes = vec![0; usize::try_from(tail).unwrap_or(0)];
        if file.read_exact_at(&mut bytes, *len - tail).is_ok() {
            self.tail = bytes.into();
        }
    }

    /// Adds what was read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.read_tail();
        let room = (self.head_cap + self.tail_cap) as u64;
        self.total += bytes.len() as u64;
        if self.total > room {
            self.write_spill(bytes);
        }
        let to_head = bytes.len().min(self.head_cap - self.head.len());
        let (head, rest) = bytes.split_at(to_head);
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_cap)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_cap);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    fn write_spill(&mut self, bytes: &[u8]) {
        let spill = std::mem::replace(&mut self.spill, Spill::Broken { kept: None, why: String::new() });
        self.spill = match spill {
            Spill::Not(path) => match self.first_write(&path, bytes) {
                Ok((file, len)) => Spill::Open { file, path, len },
                Err(error) => Spill::Broken { kept: None, why: error.to_string() },
            },
            Spill::Open { file, path, len } if len >= LONGEST_SPILL => {
                let why = format!("it ends after {} bytes", grouped(len));
                Spill::Broken { kept: Some((file, path)), why }
            }
            Spill::Open { mut file, path, len } => match file.write_all(bytes) {
                Ok(()) => Spill::Open { file, path, len: len + bytes.len() as u64 },
                Err(error) => Spill::Broken { kept: Some((file, path)), why: format!("it is not whole: {error}") },
            },
            broken @ Spill::Broken { .. } => broken,
        };
    }

    fn first_write(&self, path: &Path, bytes: &[u8]) -> io::Result<(File, u64)> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        // Nobody makes room by removing what is still needed.
        file.lock_shared()?;
        self.write_kept(&mut file)?;
        file.write_all(bytes)?;
        Ok((file, self.total))
    }

    fn write_kept(&self, file: &mut File) -> io::Result<()> {
        let (one, two) = self.tail.as_slices();
        [&self.head, one, two].into_iter().try_for_each(|piece| file.write_all(piece))
    }

    /// Everything so far, to be written into the log of a process, which goes on there.
    pub(crate) fn so_far(&self) -> SoFar {
        match &self.spill {
            Spill::Open { path, .. } | Spill::Broken { kept: Some((_, path)), .. } => SoFar::Spilled(path.clone()),
            Spill::Not(_) | Spill::Broken { kept: None, .. } => {
                let (one, two) = self.tail.as_slices();
                SoFar::Kept([&self.head, one, two].concat())
            }
        }
    }

    /// The text that is left.
    pub(crate) fn finish(mut self) -> Captured {
        self.read_tail();
        let kept = (self.head.len() + self.tail.len()) as u64;
        let tail: Vec<u8> = self.tail.into();
        let (total_bytes, reading) = (self.total, self.reading);
        if kept == self.total {
            let whole = [self.head, tail].concat();
            let coloured_tail = coloured_tail(&whole, LINES_FOR_PEOPLE, reading);
            let text = plain(&whole, reading);
            return Captured { text, coloured_tail, total_bytes, omitted_bytes: 0, spill: None };
        }
        // A character that the cut runs through belongs to neither side.
        let head = &self.head[..whole_chars_end(&self.head)];
        let tail = &tail[whole_chars_start(&tail)..];
        let omitted_bytes = total_bytes - (head.len() + tail.len()) as u64;
        let (place, spill) = match self.spill {
            Spill::Open { path, .. } => (format!("all of it is in {}", path.display()), Some(path)),
            Spill::Broken { kept: Some((_, path)), why } => (format!("see {} ({why})", path.display()), Some(path)),
            Spill::Broken { kept: None, why } => (format!("the rest could not be stored: {why}"), None),
            Spill::Not(_) => ("the rest is gone".into(), None),
        };
        let notice = format!(
            "\n[… {} of {} bytes left out: the first {} and the last {} are shown; {place} …]\n",
            grouped(omitted_bytes),
            grouped(total_bytes),
            grouped(head.len() as u64),
            grouped(tail.len() as u64)
        );
        Captured {
            text: plain(head, reading) + &notice + &plain(tail, reading),
            coloured_tail: coloured_tail(tail, LINES_FOR_PEOPLE, reading),
            total_bytes,
            omitted_bytes,
            spill,
        }
    }
}

/// Makes room beside the spill that was just written: the oldest ones in its folder go until all of them are below the
/// limit of a session.
pub(crate) fn make_room_beside(spill: &Path) {
    remove_oldest_beside(spill, MOST_SPILLED);
}

fn remove_oldest_beside(spill: &Path, most: u64) {
    let entries = spill.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let facts = |entry: fs::DirEntry| Some((entry.metadata().ok()?, entry.path()));
    let mut spills: Vec<_> = entries.filter_map(facts).collect();
    spills.sort_by_key(|(metadata, _)| std::cmp::Reverse(metadata.modified().ok()));
    let mut total = spills.iter().map(|(metadata, _)| metadata.len()).sum::<u64>();
    while let Some((metadata, path)) = spills.pop()
        && total > most
    {
        // One that is still being written is locked, and is needed by whoever writes it.
        let is_free = || File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if path != spill && is_free() && fs::remove_file(&path).is_ok() {
            total -= metadata.len();
        }
    }
}

/// Where the last whole character of `bytes` ends, if they are UTF-8 that was cut at the end.
fn whole_chars_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// Where the first whole character of `bytes` starts, if they are UTF-8 that was cut at the start.
fn whole_chars_start(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(cap: usize, chunks: &[&[u8]]) -> (Captured, Option<Vec<u8>>) {
        let folder = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(cap, Reading::default(), folder.path().join("made/spill"));
        for chunk in chunks {
            capture.push(chunk);
        }
        let captured = capture.finish();
        let spilled = captured.spill.as_ref().map(|path| fs::read(path).unwrap());
        (captured, spilled)
    }

    #[test]
    fn short_output_is_kept_byte_for_byte() {
        let (got, spilled) = capture(10, &[b"hello", b"world"]);
        assert_eq!((got.text.as_str(), got.total_bytes, got.omitted_bytes), ("helloworld", 10, 0));
        assert_eq!(spilled, None);
    }

    #[test]
    fn long_output_keeps_head_and_tail_and_all_of_it_in_a_file() {
        let bytes: Vec<u8> = (b'a'..=b'z').cycle().take(100_000).collect();
        for chunk in [1, 7, 4096, 100_000] {
            let (got, spilled) = capture(50, &bytes.chunks(chunk).collect::<Vec<_>>());
            assert!(got.text.starts_with("abcdefghijklmnopqrst\n[… 99,950 of 100,000 bytes left out"), "{}", got.text);
            assert!(got.text.ends_with(std::str::from_utf8(&bytes[100_000 - 30..]).unwrap()));
            assert_eq!((got.total_bytes, got.omitted_bytes), (100_000, 99_950));
            assert_eq!(spilled.as_deref(), Some(&bytes[..]));
        }
    }

    #[test]
    fn a_character_on_the_cut_is_dropped_whole() {
        let text = "é".repeat(100);
        let (got, _) = capture(25, &[text.as_bytes()]);
        assert!(!got.text.contains('\u{fffd}'), "{}", got.text);
        assert_eq!(got.omitted_bytes, 200 - 10 - 14);
    }

    #[test]
    fn the_oldest_spills_make_room_for_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..5).map(|number| folder.path().join(format!("{number}.txt"))).collect();
        for (age, path) in paths.iter().rev().enumerate() {
            fs::write(path, [0; 10]).unwrap();
            let time = std::time::SystemTime::now() - std::time::Duration::from_secs(10 * age as u64);
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
        let left = || paths.iter().map(|path| path.exists()).collect::<Vec<_>>();
        remove_oldest_beside(&paths[4], 50);
        assert_eq!(left(), [true; 5]);
        remove_oldest_beside(&paths[4], 25);
        assert_eq!(left(), [false, false, false, true, true]);
        let held = File::open(&paths[4]).unwrap();
        held.lock_shared().unwrap();
        remove_oldest_beside(&paths[3], 1);
        assert_eq!(left(), [false, false, false, true, true]);
        drop(held);
        remove_oldest_beside(&paths[3], 1);
        assert_eq!(left(), [false, false, false, true, false]);
    }

    #[test]
    fn a_spill_that_cannot_be_written_is_said() {
        let mut capture = Capture::new(10, Reading::default(), "/proc/none/spill".into());
        capture.push(&[b'x'; 100]);
        let got = capture.finish();
        assert!(got.text.contains("the rest could not be stored: "), "{}", got.text);
        assert_eq!(got.spill, None);
    }
}
