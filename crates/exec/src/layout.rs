//! Looking through a whole file for its lines: with every processor, and without holding it in memory.

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

use hermes_core::layout::{Layout, LineFeed, PieceFacts};

/// Threads that look at one file at most: more only wait for memory.
const MOST_THREADS: usize = 8;
/// A file of fewer pieces is not worth a thread.
const PIECES_FOR_A_THREAD: u64 = 16;

/// The layout of an open regular file.
pub(crate) fn of(file: &File, feed: LineFeed) -> io::Result<Layout> {
    let pieces = file.metadata()?.len().div_ceil(Layout::PIECE as u64);
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let threads = usize::try_from(pieces / PIECES_FOR_A_THREAD).unwrap_or(usize::MAX).clamp(1, processors);
    let next = AtomicU64::new(0);
    let look = || look_at_pieces(file, feed, pieces, &next);
    let found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(look)).collect();
        let mine = look();
        let others = others.into_iter().map(|other| other.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())));
        std::iter::once(mine).chain(others).collect::<io::Result<Vec<_>>>()
    })?;
    let mut found: Vec<(u64, PieceFacts)> = found.into_iter().flatten().collect();
    found.sort_unstable_by_key(|(piece, _)| *piece);
    Ok(Layout::join(found.into_iter().map(|(_, facts)| facts)))
}

/// Looks at the pieces that nobody else has taken. What was added to the file meanwhile is not looked at; what was cut off
/// is as if it had not been there.
fn look_at_pieces(file: &File, feed: LineFeed, pieces: u64, next: &AtomicU64) -> io::Result<Vec<(u64, PieceFacts)>> {
    let mut buffer = vec![0; Layout::PIECE];
    let mut found = Vec::new();
    loop {
        let piece = next.fetch_add(1, Ordering::Relaxed);
        if piece >= pieces {
            return Ok(found);
        }
        let length = read_all_at(file, &mut buffer, piece * Layout::PIECE as u64)?;
        found.push((piece, Layout::piece(&buffer[..length], feed)));
    }
}

/// Reads until the buffer is full or the file ends.
fn read_all_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn many_threads_see_what_one_look_at_the_whole_sees() {
        for size in [0, 1, Layout::PIECE - 1, Layout::PIECE, Layout::PIECE + 1, 70 * Layout::PIECE + 3] {
            let content: Vec<u8> =
                (0..size).map(|at| if at % 41 == 0 { b'\n' } else { u8::try_from(at % 251).unwrap() }).collect();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&content).unwrap();
            assert_eq!(of(&file, LineFeed::Byte).unwrap(), Layout::of(&content, LineFeed::Byte), "{size}");
        }
    }
}
