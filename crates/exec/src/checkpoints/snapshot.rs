//! What a checkpoint knows: which paths there were and what they held, which were not there, and of which it knows nothing.
//!
//! The third kind is what makes an undo safe. A path that is missing from a snapshot was absent only where the snapshot
//! looked; everywhere else its absence means nothing, and nothing is ever removed because of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::beneath::Look;

/// The name that git gives a content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Blob([u8; 20]);

impl Blob {
    /// The name of these bytes (gitformat-pack(5): `blob`, the length, a zero byte, the content; hashed with SHA-1).
    pub(super) fn of(bytes: &[u8]) -> Self {
        let head = format!("blob {}\0", bytes.len());
        Self(Sha1::new_with_prefix(head).chain_update(bytes).finalize().into())
    }

    /// Reads 40 hexadecimal digits.
    pub(super) fn read(digits: &str) -> Option<Self> {
        let mut name = [0; 20];
        for (at, byte) in name.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        (digits.len() == 40).then_some(Self(name))
    }
}

impl fmt::Display for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Everything that is known of some folders and paths at one moment. Paths are absolute and free of links.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// Folders that were looked at as a whole.
    pub(super) areas: BTreeMap<PathBuf, Area>,
    /// By the bytes of their paths, because there may be many: paths compare part by part.
    pub(super) entries: BTreeMap<OsString, Entry>,
    /// Paths that somebody named and where nothing was.
    pub(super) absent: BTreeSet<PathBuf>,
    /// What was at the paths when they were looked at; not stored.
    pub(super) looks: HashMap<OsString, Look>,
}

/// A folder that was looked at as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Area {
    /// Paths in it of which nothing is known.
    pub(super) skipped: BTreeSet<PathBuf>,
}

/// What was at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File {
        blob: Blob,
        mode: u32,
    },
    Link {
        blob: Blob,
    },
    Folder {
        mode: u32,
    },
    /// It was there, and its content was not kept.
    LeftOut {
        why: Why,
        size: u64,
        mtime: (i64, i64),
    },
}

/// Why a content was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Why {
    TooLarge,
    Unreadable,
    Special,
}

impl Why {
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::TooLarge => "too large to be kept",
            Self::Unreadable => "not readable",
            Self::Special => "no file, folder or link",
        }
    }
}

/// What a snapshot says about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known<'a> {
    Here(&'a Entry),
    NotThere,
    Nothing,
}

impl Snapshot {
    pub(super) fn at(&self, path: &Path) -> Known<'_> {
        if let Some(entry) = self.entries.get(path.as_os_str()) {
            return Known::Here(entry);
        }
        if self.absent.contains(path) {
            return Known::NotThere;
        }
        let mut area = None;
        for above in path.ancestors() {
            if self.absent.contains(above) {
                return Known::NotThere;
            }
            if let Some(found) = self.areas.get(above) {
                area = Some(found);
                break;
            }
        }
        match area {
            Some(area) if !path.ancestors().any(|above| area.skipped.contains(above)) => Known::NotThere,
            _ => Known::Nothing,
        }
    }

    /// Whether it says enough about a path to bring back what was there.
    pub(super) fn keeps(&self, path: &Path) -> bool {
        !matches!(self.at(path), Known::Nothing | Known::Here(Entry::LeftOut { .. }))
    }

    /// The paths of which it can bring back what was there.
    pub(super) fn kept(&self) -> impl Iterator<Item = &Path> {
        let kept = self.entries.iter().filter(|(_, entry)| !matches!(entry, Entry::LeftOut { .. }));
        kept.map(|(name, _)| Path::new(name))
    }

    /// Adds what another one knows and this one does not.
    pub(super) fn learn(&mut self, other: Self) {
        if self.entries.is_empty() && self.areas.is_empty() && self.absent.is_empty() {
            *self = other;
            return;
        }
        let new: Vec<OsString> =
            other.entries.keys().filter(|name| self.at(Path::new(name)) == Known::Nothing).cloned().collect();
        for name in new {
            self.entries.extend(other.entries.get(&name).map(|entry| (name.clone(), *entry)));
            self.looks.extend(other.looks.get(&name).map(|look| (name, *look)));
        }
        for (root, area) in other.areas {
            self.areas.entry(root).or_insert(area);
        }
    }

    /// The folder as whose part a path is reached: the innermost area around it, else, and where that was not looked into
    /// so far, the folder that it is in.
    pub(super) fn base_of<'a>(&'a self, path: &'a Path) -> &'a Path {
        let parent = path.parent().unwrap_or(path);
        let area = parent.ancestors().find_map(|above| self.areas.get_key_value(above));
        let reaches = |area: &Area| !path.ancestors().any(|above| area.skipped.contains(above));
        area.filter(|(_, area)| reaches(area)).map_or(parent, |(root, _)| root)
    }
}

/// What git's trees do not say.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Facts {
    areas: Vec<(Bytes, Vec<Bytes>)>,
    absent: Vec<Bytes>,
    folders: Vec<(Bytes, u32)>,
    left_out: Vec<(Bytes, Why, u64, (i64, i64))>,
    /// The modes that most files have: those that git calls plain, and those that it calls executable.
    usual: (u32, u32),
    /// The others.
    modes: Vec<(Bytes, u32)>,
}

type Bytes = Vec<u8>;

impl Facts {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let mut facts = Self::default();
        for (root, area) in &snapshot.areas {
            facts.areas.push((bytes(root), area.skipped.iter().map(|path| bytes(path)).collect()));
        }
        facts.absent = snapshot.absent.iter().map(|path| bytes(path)).collect();
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for entry in snapshot.entries.values() {
            if let Entry::File { mode, .. } = entry {
                *counts.entry(*mode).or_default() += 1;
            }
        }
        let most = |executable: bool| {
            let fitting = counts.iter().filter(|(mode, _)| is_executable(**mode) == executable);
            fitting.max_by_key(|(mode, count)| (**count, **mode)).map_or(0, |(mode, _)| *mode)
        };
        facts.usual = (most(false), most(true));
        for (path, entry) in &snapshot.entries {
            match entry {
                Entry::File { mode, .. } if *mode != facts.usual_of(is_executable(*mode)) => {
                    facts.modes.push((path.as_bytes().to_vec(), *mode));
                }
                Entry::File { .. } | Entry::Link { .. } => {}
                Entry::Folder { mode } => facts.folders.push((path.as_bytes().to_vec(), *mode)),
                Entry::LeftOut { why, size, mtime } => {
                    facts.left_out.push((path.as_bytes().to_vec(), *why, *size, *mtime));
                }
            }
        }
        facts
    }

    fn usual_of(&self, executable: bool) -> u32 {
        if executable { self.usual.1 } else { self.usual.0 }
    }

    /// The snapshot, together with the files and links of git's tree.
    pub(super) fn with(self, files: Vec<(Stored, Blob, OsString)>) -> Snapshot {
        let modes: HashMap<&[u8], u32> = self.modes.iter().map(|(name, mode)| (name.as_slice(), *mode)).collect();
        let mut snapshot = Snapshot::default();
        for (stored, blob, name) in files {
            let entry = match stored {
                Stored::Link => Entry::Link { blob },
                Stored::File { executable } => {
                    let mode = modes.get(name.as_bytes()).copied().unwrap_or_else(|| self.usual_of(executable));
                    Entry::File { blob, mode }
                }
            };
            snapshot.entries.insert(name, entry);
        }
        for (name, mode) in &self.folders {
            snapshot.entries.insert(name_of(name), Entry::Folder { mode: *mode });
        }
        for (name, why, size, mtime) in &self.left_out {
            let entry = Entry::LeftOut { why: *why, size: *size, mtime: *mtime };
            snapshot.entries.insert(name_of(name), entry);
        }
        let path = |name: &Bytes| PathBuf::from(name_of(name));
        for (root, skipped) in &self.areas {
            snapshot.areas.insert(path(root), Area { skipped: skipped.iter().map(path).collect() });
        }
        snapshot.absent = self.absent.iter().map(path).collect();
        snapshot
    }
}

/// How git stores an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stored {
    File { executable: bool },
    Link,
}

impl Stored {
    /// How an entry is stored, and its content; `None` for what git's trees do not hold.
    pub(super) fn of(entry: &Entry) -> Option<(Self, Blob)> {
        match entry {
            Entry::File { blob, mode } => Some((Self::File { executable: is_executable(*mode) }, *blob)),
            Entry::Link { blob } => Some((Self::Link, *blob)),
            Entry::Folder { .. } | Entry::LeftOut { .. } => None,
        }
    }

    /// The mode in a tree.
    pub(super) fn mode(self) -> &'static str {
        match self {
            Self::File { executable: false } => "100644",
            Self::File { executable: true } => "100755",
            Self::Link => "120000",
        }
    }
}

fn is_executable(mode: u32) -> bool {
    mode & 0o100 != 0
}

fn bytes(path: &Path) -> Bytes {
    path.as_os_str().as_bytes().to_vec()
}

fn name_of(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(mode: u32) -> Entry {
        Entry::File { blob: Blob([7; 20]), mode }
    }

    #[test]
    fn a_blob_has_the_name_that_git_gives_it() {
        // `git hash-object --stdin` of these.
        for (bytes, name) in [
            (&b""[..], "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
            (&b"hi\n"[..], "45b983be36b73c0788dc9cbcb76cbb80fc7bb057"),
        ] {
            assert_eq!(Blob::of(bytes).to_string(), name);
            assert_eq!(Blob::read(name), Some(Blob::of(bytes)));
        }
        assert_eq!(Blob::read("45b9"), None);
    }

    #[test]
    fn a_path_is_absent_only_where_somebody_looked() {
        let mut snapshot = Snapshot::default();
        let skipped = BTreeSet::from(["/p/target".into()]);
        snapshot.areas.insert("/p".into(), Area { skipped });
        snapshot.absent.insert("/q/new".into());
        snapshot.entries.insert("/p/a".into(), file(0o644));
        assert!(matches!(snapshot.at(Path::new("/p/a")), Known::Here(_)));
        for (path, known) in [
            ("/p/b", Known::NotThere),
            ("/p/sub/b", Known::NotThere),
            ("/p/target", Known::Nothing),
            ("/p/target/x/y", Known::Nothing),
            ("/p2", Known::Nothing),
            ("/q/new", Known::NotThere),
            ("/q/new/below", Known::NotThere),
            ("/q/other", Known::Nothing),
        ] {
            assert_eq!(snapshot.at(Path::new(path)), known, "{path}");
        }
    }

    #[test]
    fn what_git_does_not_keep_comes_back() {
        let mut snapshot = Snapshot::default();
        let odd = OsString::from_vec(b"/p/\xff\n".to_vec());
        snapshot.areas.insert("/p".into(), Area::default());
        for (path, mode) in [("/p/a", 0o664), ("/p/b", 0o664), ("/p/c", 0o600), ("/p/run", 0o755), ("/p/set", 0o4711)] {
            snapshot.entries.insert(path.into(), file(mode));
        }
        snapshot.entries.insert(odd, file(0o664));
        snapshot.entries.insert("/p/empty".into(), Entry::Folder { mode: 0o2770 });
        let large = Entry::LeftOut { why: Why::TooLarge, size: 7, mtime: (1, 2) };
        snapshot.entries.insert("/p/large".into(), large);
        let files = snapshot.entries.iter().filter_map(|(name, entry)| {
            let (stored, blob) = Stored::of(entry)?;
            Some((stored, blob, name.clone()))
        });
        let again = Facts::of(&snapshot).with(files.collect());
        assert_eq!((again.entries, again.areas), (snapshot.entries, snapshot.areas));
    }
}
