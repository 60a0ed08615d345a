//! What a command did, as data.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// What a rehearsed command did to the workspace, in the order of the paths' bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// The entries. An added folder is listed with all it holds; a deleted one is one entry.
    pub entries: Vec<Entry>,
    /// The sums.
    pub totals: Totals,
}

/// One path that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Relative to the workspace.
    #[serde(serialize_with = "exact_path::serialize")]
    pub path: PathBuf,
    /// What happened.
    pub change: Change,
    /// What was there before.
    pub old: Option<State>,
    /// What is there now.
    pub new: Option<State>,
    /// What a folder held that is gone.
    pub inside: Option<Inside>,
    /// Whether [`super::Stage::diff`] will try a difference in text: files that are not too large and hold no zero bytes
    /// where we looked, and links.
    pub text: bool,
    /// Added and removed lines, where there was time to count them.
    pub lines: Option<LineCounts>,
    /// How many names the file that was there has. With more than one, a commit changes this name only.
    pub names: u64,
    /// Whether new permissions are enough, without a new file.
    #[serde(skip)]
    pub(super) in_place: bool,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Nothing was there.
    Added,
    /// Other contents, or another target of a link. The permissions may differ too.
    Changed,
    /// Something of another kind is there.
    Replaced,
    /// Only permissions, owner or extended attributes differ. (Extended attributes of folders are not looked at.)
    ModeChanged,
    /// Nothing is there any more.
    Deleted,
}

/// One side of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    /// What it is.
    pub kind: Kind,
    /// Bytes of a file; otherwise zero.
    pub size: u64,
    /// The twelve permission bits.
    pub mode: u32,
    /// The owner's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// Where a link leads.
    #[serde(serialize_with = "exact_path::serialize_option")]
    pub target: Option<PathBuf>,
}

/// What an entry of a file system can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl Kind {
    /// The word for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Link => "link",
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Device => "device",
        }
    }
}

/// What a folder held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inside {
    /// Everything that is no folder.
    pub files: u64,
    /// Folders, the outer one not counted.
    pub folders: u64,
    /// The sum of the files' sizes.
    pub bytes: u64,
}

/// How many lines came and went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineCounts {
    /// Lines that came.
    pub plus: usize,
    /// Lines that went.
    pub minus: usize,
}

/// Sums over all entries. "Files" are all things that are no folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// New files.
    pub files_added: u64,
    /// Files with other contents, and files that took the place of something of another kind.
    pub files_changed: u64,
    /// Files that are gone, those in deleted folders included.
    pub files_deleted: u64,
    /// New folders.
    pub folders_added: u64,
    /// Folders that are gone, those in deleted folders included.
    pub folders_deleted: u64,
    /// Paths of which only the permissions changed.
    pub modes_changed: u64,
    /// Bytes of the new and the changed files.
    pub bytes_written: u64,
    /// Bytes of the files that are gone.
    pub bytes_deleted: u64,
}

impl Changes {
    pub(super) fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|left, right| left.path.as_os_str().cmp(right.path.as_os_str()));
        let totals = Totals::of(&entries);
        Self { entries, totals }
    }

    /// Whether the command left everything as it was.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of a path.
    pub fn get(&self, path: &Path) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.path == path)
    }
}

impl Totals {
    fn of(entries: &[Entry]) -> Self {
        let mut totals = Self::default();
        for entry in entries {
            let is_folder = |state: &Option<State>| state.as_ref().is_some_and(|state| state.kind == Kind::Folder);
            let size = |state: &Option<State>| state.as_ref().map_or(0, |state| state.size);
            if let Some(inside) = entry.inside {
                totals.files_deleted += inside.files;
                totals.folders_deleted += inside.folders;
                totals.bytes_deleted += inside.bytes;
            }
            match entry.change {
                Change::Added if is_folder(&entry.new) => totals.folders_added += 1,
                Change::Added => totals.files_added += 1,
                Change::ModeChanged => totals.modes_changed += 1,
                Change::Deleted if is_folder(&entry.old) => totals.folders_deleted += 1,
                Change::Deleted => totals.files_deleted += 1,
                Change::Replaced if is_folder(&entry.new) => {
                    totals.folders_added += 1;
                    totals.files_deleted += 1;
                }
                Change::Replaced if is_folder(&entry.old) => {
                    totals.folders_deleted += 1;
                    totals.files_added += 1;
                }
                Change::Changed | Change::Replaced => totals.files_changed += 1,
            }
            if matches!(entry.change, Change::Added | Change::Changed | Change::Replaced) {
                totals.bytes_written += size(&entry.new);
            }
            if matches!(entry.change, Change::Deleted) || (entry.change == Change::Replaced && is_folder(&entry.new)) {
                totals.bytes_deleted += size(&entry.old);
            }
        }
        totals
    }
}

/// Paths in JSON without loss: a text where the name is UTF-8, an array of bytes where it is not.
pub(super) mod exact_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => path.as_os_str().as_bytes().serialize(serializer),
        }
    }

    #[expect(clippy::ref_option, reason = "the form that serde calls")]
    pub(crate) fn serialize_option<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => serialize(path, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Text(String),
            Bytes(Vec<u8>),
        }
        Ok(match Either::deserialize(deserializer)? {
            Either::Text(text) => text.into(),
            Either::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}
