//! Making the files of a case, and seeing which ones there are.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{Mode, UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::mkfifo;

use crate::case::{Entry, Names};

/// The path that the text of a case means.
pub(crate) fn path(text: &str, names: &Names) -> PathBuf {
    Path::new(&names.work).join(names.fill(text))
}

/// Makes or changes one thing, with the folders above it. Answers where.
#[track_caller]
pub(crate) fn make(entry: &Entry, names: &Names) -> PathBuf {
    let path = path(&entry.path, names);
    let old_mtime = entry.keep_mtime.then(|| fs::metadata(&path).unwrap().modified().unwrap());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if let Some(text) = &entry.text {
        fs::write(&path, names.fill(text)).unwrap();
    }
    if let Some(b64) = &entry.b64 {
        fs::write(&path, decode(b64)).unwrap();
    }
    if let Some(target) = &entry.symlink {
        symlink(names.fill(target), &path).unwrap();
    }
    if let Some(target) = &entry.hardlink {
        fs::hard_link(self::path(target, names), &path).unwrap();
    }
    if entry.fifo {
        mkfifo(&path, Mode::from_bits_truncate(0o644)).unwrap();
    }
    if entry.dir {
        fs::create_dir_all(&path).unwrap();
    }
    if entry.delete {
        fs::remove_file(&path).unwrap();
    }
    if let Some(mode) = &entry.mode {
        fs::set_permissions(&path, fs::Permissions::from_mode(octal(mode))).unwrap();
    }
    let mtime = entry.mtime.map(|seconds| TimeSpec::new(seconds, 0));
    let since_epoch = |time: SystemTime| TimeSpec::from(time.duration_since(SystemTime::UNIX_EPOCH).unwrap());
    if let Some(mtime) = mtime.or_else(|| old_mtime.map(since_epoch)) {
        // By path: to open a pipe would wait for its other end.
        utimensat(AT_FDCWD, &path, &mtime, &mtime, UtimensatFlags::FollowSymlink).unwrap();
    }
    path
}

/// Every path below `folder`, links not followed.
pub(crate) fn everything_below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(everything_below(&entry.path()));
        }
        found.insert(entry.path());
    }
    found
}

/// A mode as the cases write it: `644` or `0o644`.
#[track_caller]
pub(crate) fn octal(mode: &str) -> u32 {
    u32::from_str_radix(mode.trim_start_matches("0o"), 8).unwrap()
}

/// The bytes of a Base64 text (RFC 4648 §4).
#[track_caller]
pub(crate) fn decode(b64: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |c: u8| ALPHABET.iter().position(|known| *known == c).unwrap();
    let digits: Vec<usize> = b64.trim_end_matches('=').bytes().map(value).collect();
    let mut bytes = Vec::new();
    for group in digits.chunks(4) {
        let bits = (0..4).fold(0, |bits, i| bits << 6 | group.get(i).unwrap_or(&0));
        bytes.extend((1..group.len()).map(|i| u8::try_from(bits >> (24 - 8 * i) & 0xff).unwrap()));
    }
    bytes
}

#[test]
fn base64_of_every_length_is_decoded() {
    for (b64, text) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")] {
        assert_eq!(decode(b64), text.as_bytes());
    }
    assert_eq!(decode("77u//w=="), [0xef, 0xbb, 0xbf, 0xff]);
}
