//! The log of a process: every byte it printed, from the first one that is still kept.
//!
//! A position in the log never changes. When it grows past its cap its beginning is given back to the disk as a hole in
//! the file, so that a talkative server cannot fill the disk and a reader's offsets stay true.

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use nix::fcntl::{FallocateFlags, fallocate};

/// How many bytes of a log are kept.
pub(crate) const KEPT: u64 = 64 * 1024 * 1024;
/// Holes are made in steps of this, so that not every line costs one.
const STEP: u64 = 8 * 1024 * 1024;

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    len: u64,
    hole: u64,
}

impl Log {
    /// Goes on where the file ends.
    pub(crate) fn new(file: File) -> Self {
        let len = file.metadata().map_or(0, |metadata| metadata.len());
        Self { file, len, hole: 0 }
    }

    /// Adds bytes. On an error (the disk is full) none of them counts.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        let start = first_kept(self.len);
        if start > self.hole {
            let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            let end = i64::try_from(start).unwrap_or(i64::MAX);
            // A file system without holes keeps it all.
            let _ = fallocate(&self.file, hole, 0, end);
            self.hole = start;
        }
        Ok(())
    }
}

/// Where what is kept begins in a log of `len` bytes.
pub(crate) fn first_kept(len: u64) -> u64 {
    len.saturating_sub(KEPT).next_multiple_of(STEP)
}

/// How many bytes were written to a log.
pub(crate) fn len(log: &File) -> u64 {
    log.metadata().map_or(0, |metadata| metadata.len())
}

/// The bytes in `range`; fewer where there are not so many, or where they are not kept any more.
pub(crate) fn read(log: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let start = || first_kept(len(log));
    let range = range.start.max(start())..range.end.min(len(log));
    let mut bytes = vec![0; usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)];
    log.read_exact_at(&mut bytes, range.start)?;
    // What was given back to the disk while we read came as zeros.
    let gone = start().saturating_sub(range.start);
    bytes.drain(..usize::try_from(gone).map_or(bytes.len(), |gone| gone.min(bytes.len())));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_long_log_goes_and_positions_stay() {
        use std::io::{Read as _, Seek as _, SeekFrom};
        use std::os::unix::fs::MetadataExt as _;
        let mut file = tempfile::tempfile().unwrap();
        let mut log = Log::new(file.try_clone().unwrap());
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            log.append(&piece).unwrap();
        }
        log.append(b"the end").unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!((metadata.len(), first_kept(metadata.len())), ((100 << 20) + 7, 40 << 20));
        assert!(metadata.blocks() * 512 <= KEPT, "{} blocks", metadata.blocks());
        let mut end = String::new();
        file.seek(SeekFrom::Start(100 << 20)).unwrap();
        file.read_to_string(&mut end).unwrap();
        assert_eq!(end, "the end");
    }

    #[test]
    fn a_short_log_is_kept_whole() {
        assert_eq!([first_kept(0), first_kept(KEPT)], [0, 0]);
        assert_eq!(first_kept(KEPT + 1), STEP);
    }
}
