//! What a task last saw of each file, so that it does not write over a change it knows nothing about.
//!
//! A file is known by its content, not by its time stamp: a change that kept the time is a change, and a file that was
//! only touched is not. A file that the task never read may be replaced; one that it read must still be what it read.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hermes_core::{FileKind, ToolCx, ToolError};

/// How much is read at once to recognise a file.
const PIECE: u64 = 1024 * 1024;

/// The content of a file, in short. Two different contents have the same one by chance only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    bytes: u64,
    hash: u64,
}

impl Fingerprint {
    /// Adds the next piece. The pieces may be of any size as long as all but the last are of one size: here, what the
    /// environment gives for [`PIECE`] bytes.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.hash);
        hasher.write(piece);
        self.hash = hasher.finish();
        self.bytes += piece.len() as u64;
    }

    /// The fingerprint of a whole content.
    pub(crate) fn of(content: &[u8]) -> Self {
        let mut fingerprint = Self::default();
        content.chunks(usize::try_from(PIECE).unwrap_or(usize::MAX)).for_each(|piece| fingerprint.push(piece));
        fingerprint
    }
}

#[derive(Default)]
struct Known(Mutex<HashMap<PathBuf, Fingerprint>>);

/// Remembers what the task has seen or written.
pub(crate) async fn remember(cx: &ToolCx, path: &Path, fingerprint: Fingerprint) {
    if let Ok(real) = cx.environment.real_path(path).await {
        learn(cx, &real, fingerprint);
    }
}

/// The same for a path that is known to be real.
pub(crate) fn learn(cx: &ToolCx, real: &Path, fingerprint: Fingerprint) {
    cx.scratch.get::<Known>().0.lock().unwrap_or_else(PoisonError::into_inner).insert(real.to_path_buf(), fingerprint);
}

/// Forgets a file that is no longer there; `real` is its real path as it was.
pub(crate) fn forget(cx: &ToolCx, real: &Path) {
    cx.scratch.get::<Known>().0.lock().unwrap_or_else(PoisonError::into_inner).remove(real);
}

/// What was seen of a file goes with it to its new name; both are real paths.
pub(crate) fn moved(cx: &ToolCx, from: &Path, to: &Path) {
    let known = cx.scratch.get::<Known>();
    let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    match known.remove(from) {
        Some(fingerprint) => known.insert(to.to_path_buf(), fingerprint),
        None => known.remove(to),
    };
}

/// Refuses to go on if the task has seen another content than the one that is there now.
pub(crate) async fn check(cx: &ToolCx, tool: &str, path: &Path) -> Result<(), ToolError> {
    let Ok(real) = cx.environment.real_path(path).await else { return Ok(()) };
    let known = cx.scratch.get::<Known>().0.lock().unwrap_or_else(PoisonError::into_inner).get(&real).copied();
    let Some(known) = known else { return Ok(()) };
    let is_file = cx.environment.stat(&real).await.is_ok_and(|stat| stat.kind == FileKind::File);
    let now = if is_file { read(cx, &real).await } else { None };
    match now {
        // Gone, or no file any more: the write itself says what is wrong, if anything is.
        None => Ok(()),
        Some(now) if now == known => Ok(()),
        Some(now) => Err(ToolError::tell(format!(
            "{tool}: {} has changed since it was last read here ({} bytes then, {} now); nothing was changed. Read it again",
            path.display(),
            known.bytes,
            now.bytes
        ))),
    }
}

async fn read(cx: &ToolCx, path: &Path) -> Option<Fingerprint> {
    let mut fingerprint = Fingerprint::default();
    let mut at = 0;
    loop {
        let piece = cx.environment.read(path, at..at + PIECE).await.ok()?;
        if piece.is_empty() {
            return Some(fingerprint);
        }
        at += piece.len() as u64;
        fingerprint.push(&piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_known_by_every_byte_and_its_length() {
        let large = vec![7; 3 * 1024 * 1024 + 5];
        let mut other = large.clone();
        other[1024 * 1024] = 8;
        assert_eq!(Fingerprint::of(&large), Fingerprint::of(&large.clone()));
        assert_ne!(Fingerprint::of(&large), Fingerprint::of(&other));
        assert_ne!(Fingerprint::of(b"a"), Fingerprint::of(b"a\0"));
        assert_eq!(Fingerprint::of(b""), Fingerprint::default());
    }
}
