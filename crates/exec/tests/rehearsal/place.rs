//! A workspace, a folder for stages, one for undo; and running a script where a stage is mounted.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use hermes_exec::rehearsal::{Changes, Method, Mount, OVERLAY_OPTIONS, Stage};

pub(crate) const COPY: Method = Method::Copy { most_bytes: 1 << 30, most_files: 100_000 };
pub(crate) const METHODS: [Method; 2] = [Method::Overlay, COPY];

pub(crate) struct Here {
    folder: tempfile::TempDir,
    elsewhere: Option<tempfile::TempDir>,
}

impl Here {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// All of it on a file system in memory.
    pub(crate) fn in_memory() -> Self {
        Self::within(Path::new("/dev/shm"))
    }

    fn within(folder: &Path) -> Self {
        let folder = tempfile::tempdir_in(folder).unwrap();
        for name in ["workspace", "stages", "undo"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, elsewhere: None }
    }

    /// The folder for undo lies on a file system in memory, so that nothing can be renamed into it.
    pub(crate) fn undoing_elsewhere() -> Self {
        let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
        Self { elsewhere: Some(elsewhere), ..Self::new() }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    pub(crate) fn stages(&self) -> PathBuf {
        self.folder.path().join("stages")
    }

    pub(crate) fn undo(&self) -> PathBuf {
        self.elsewhere.as_ref().map_or_else(|| self.folder.path().join("undo"), |folder| folder.path().to_path_buf())
    }

    /// A folder beside the workspace.
    pub(crate) fn outside(&self) -> PathBuf {
        let outside = self.folder.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        outside
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a script in the workspace itself.
    pub(crate) fn directly(&self, script: &str) {
        run_in(&self.workspace(), script.as_bytes());
    }

    pub(crate) fn stage(&self, method: Method) -> Stage {
        Stage::open(&self.workspace(), &self.stages(), method).unwrap()
    }

    /// Opens a stage and runs a script in it.
    pub(crate) fn rehearse(&self, method: Method, script: &str) -> Stage {
        let stage = self.stage(method);
        run(&stage.mount(), script.as_bytes());
        stage
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::of(&self.workspace())
    }

    pub(crate) fn left_over(&self) -> Vec<PathBuf> {
        let list = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        list(self.stages()).chain(list(self.undo())).collect()
    }
}

/// The paths of changes, in order.
pub(crate) fn paths(changes: &Changes) -> Vec<String> {
    changes.entries.iter().map(|entry| format!("{:?} {}", entry.change, entry.path.display())).collect()
}

/// Mounts what a stage asks for in a namespace of its own and runs a script there.
pub(crate) fn run(mount: &Mount, script: &[u8]) {
    let (mount, at) = match mount {
        Mount::Overlay { at, upper, work } => {
            let folders = [("lowerdir", at), ("upperdir", upper), ("workdir", work)];
            let folders = folders.map(|(name, path)| format!("{name}={}", path.display()));
            let options =
                OVERLAY_OPTIONS.map(|(name, value)| value.map_or(name.into(), |value| format!("{name}={value}")));
            let options = [folders.as_slice(), options.as_slice()].concat().join(",");
            (format!("mount -t overlay overlay -o '{options}' '{}'", at.display()), at)
        }
        Mount::Bind { at, source } => (format!("mount --bind '{}' '{}'", source.display(), at.display()), at),
    };
    let script =
        [mount.as_bytes(), b" || exit 70; cd '", at.as_os_str().as_bytes(), b"' || exit 71\n", script].concat();
    in_namespace(&script);
}

/// Runs a script in a folder, with the same rights that it has where a stage is mounted.
pub(crate) fn run_in(folder: &Path, script: &[u8]) {
    in_namespace(&[b"cd '", folder.as_os_str().as_bytes(), b"' || exit 71\n", script].concat());
}

fn in_namespace(script: &[u8]) {
    let script = OsString::from_vec([b"umask 022\n", script, b"\n:"].concat());
    // A further user namespace could not mount an overlay of a folder in which something else is mounted: it might show
    // what lies below that mount.
    let namespaces = if std::env::var_os(crate::mounts::ROLE).is_some() { "-m" } else { "-Urm" };
    let output = Command::new("unshare").args([namespaces, "bash", "-c"]).arg(script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// When each file was written.
type Times = Vec<(PathBuf, (i64, i64))>;

/// Everything about a tree that a comparison may ask for.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Tree(pub(crate) BTreeMap<PathBuf, Node>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) what: What,
    pub(crate) mode: u32,
    pub(crate) ino: u64,
    pub(crate) mtime: (i64, i64),
    pub(crate) ctime: (i64, i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    File(Vec<u8>),
    Folder,
    Link(PathBuf),
    Other,
}

impl Tree {
    pub(crate) fn of(root: &Path) -> Self {
        let mut nodes = BTreeMap::new();
        let mut paths = vec![PathBuf::new()];
        let mut opened = Vec::new();
        while let Some(path) = paths.pop() {
            let full = root.join(&path);
            let metadata = fs::symlink_metadata(&full).unwrap();
            let needed = if metadata.is_dir() { 0o500 } else { 0o400 };
            // Without the rights of root; a test that asks for change times does not take permissions away.
            if !metadata.is_symlink() && metadata.mode() & needed != needed && !rustix::process::geteuid().is_root() {
                fs::set_permissions(&full, fs::Permissions::from_mode(0o700)).unwrap();
                opened.push((full.clone(), metadata.permissions()));
            }
            let what = if metadata.is_dir() {
                paths.extend(fs::read_dir(&full).unwrap().map(|entry| path.join(entry.unwrap().file_name())));
                What::Folder
            } else if metadata.is_symlink() {
                What::Link(fs::read_link(&full).unwrap())
            } else if metadata.is_file() {
                What::File(fs::read(&full).unwrap())
            } else {
                What::Other
            };
            let node = Node {
                what,
                mode: metadata.mode() & 0o7777,
                ino: metadata.ino(),
                mtime: (metadata.mtime(), metadata.mtime_nsec()),
                ctime: (metadata.ctime(), metadata.ctime_nsec()),
            };
            nodes.insert(path, node);
        }
        for (path, permissions) in opened.into_iter().rev() {
            fs::set_permissions(path, permissions).unwrap();
        }
        Self(nodes)
    }

    /// Names, kinds, contents, modes and targets.
    pub(crate) fn looks(&self) -> Looks {
        Looks(self.0.iter().map(|(path, node)| (path.clone(), (node.what.clone(), node.mode))).collect())
    }

    /// The same, and when each file was written.
    pub(crate) fn looks_and_times(&self) -> (Looks, Times) {
        let files = self.0.iter().filter(|(_, node)| node.what != What::Folder);
        (self.looks(), files.map(|(path, node)| (path.clone(), node.mtime)).collect())
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_map().entries(&self.0).finish()
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Looks(pub(crate) BTreeMap<PathBuf, (What, u32)>);

impl std::fmt::Debug for Looks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (path, (what, mode)) in &self.0 {
            let what = match what {
                What::File(bytes) => format!("file {:?}", String::from_utf8_lossy(bytes)),
                other => format!("{other:?}"),
            };
            write!(formatter, "\n  {} {mode:o} {what}", path.display())?;
        }
        Ok(())
    }
}
