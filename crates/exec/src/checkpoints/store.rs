//! Where checkpoints are kept: a git repository of its own, driven by the git program.
//!
//! The repository is a picture of this machine's paths, so one project, several, and single files elsewhere are all the same
//! to it. It is git's so that its contents can be read, and brought back, by a program that everybody has, also on the day
//! when Hermes cannot: `git --git-dir ~/.hermes/checkpoints/store.git log --all`.
//!
//! A snapshot is written as one stream to `git fast-import`: it becomes visible, with all it refers to, when git moves the
//! reference at its end, or not at all. The configuration of the user and of the machine does not count here, and nothing
//! in a project can change how its bytes are stored.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::CheckpointError;
use super::notes::in_letters;
use super::snapshot::{Blob, Entry, Facts, Snapshot, Stored};
use super::take::Index;
use crate::files::private_folder;

/// In a snapshot's tree: the picture of this machine's paths.
const FILES: &str = "files";
/// In a snapshot's tree: what git does not say about them.
const FACTS: &str = "facts";

/// The repository.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

/// A reference with its commit.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub(super) name: String,
    pub(super) commit: String,
    /// The commit's message.
    pub(super) message: String,
}

/// A lock on the store, or on one project of it; ends when it is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

/// Who else may work at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Everybody who shares as well.
    Shared,
    /// Nobody.
    Alone,
}

/// Waits for a lock, at most until `deadline`.
pub(super) fn lock(file: &Path, sharing: Sharing, deadline: Instant) -> Result<Lock, CheckpointError> {
    let failed = |error: io::Error| CheckpointError::io("open", file, &error);
    if let Some(folder) = file.parent() {
        private_folder(folder).map_err(CheckpointError::NotPrivate)?;
    }
    let open = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(file);
    let open = open.map_err(failed)?;
    loop {
        let tried = match sharing {
            Sharing::Shared => open.try_lock_shared(),
            Sharing::Alone => open.try_lock(),
        };
        match tried {
            Ok(()) => return Ok(Lock(open)),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(fs::TryLockError::WouldBlock) => return Err(CheckpointError::Busy),
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

/// The version of the git program that keeps checkpoints, as it says it itself.
pub(super) fn git_version() -> Result<String, CheckpointError> {
    let here = Store { folder: PathBuf::from("/") };
    let said = here.answer(&["--version"])?;
    Ok(String::from_utf8_lossy(&said).trim().to_owned())
}

impl Store {
    /// Opens the repository in `folder`, which is made if it is not there.
    pub(super) fn open(folder: &Path) -> Result<Self, CheckpointError> {
        if let Some(store) = Self::existing(folder) {
            return Ok(store);
        }
        // Made beside its place, so that nobody finds half of one.
        let failed = |error: io::Error| CheckpointError::io("make", folder, &error);
        let owner_only = fs::Permissions::from_mode(0o700);
        let base = folder.parent().unwrap_or(folder);
        private_folder(base).map_err(CheckpointError::NotPrivate)?;
        let new = tempfile::Builder::new().prefix("store-").permissions(owner_only).tempdir_in(base).map_err(failed)?;
        let store = Self { folder: new.path().to_path_buf() };
        store.answer(&["init", "--quiet", "--bare", "--initial-branch=none", "--template="])?;
        match fs::rename(new.path(), folder) {
            Ok(()) => drop(new.keep()),
            // Somebody else was faster.
            Err(_) if folder.join("HEAD").is_file() => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(Self { folder: folder.to_path_buf() })
    }

    /// One that is there; `None` if there never was a checkpoint.
    pub(super) fn existing(folder: &Path) -> Option<Self> {
        folder.join("HEAD").is_file().then(|| Self { folder: folder.to_path_buf() })
    }

    fn git(&self, arguments: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            git.env("PATH", path);
        }
        git.env("GIT_DIR", &self.folder)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("LC_ALL", "C")
            .current_dir(&self.folder)
            .args(["-c", "core.compression=1", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A key that stops the person's command does not stop what keeps their files.
            .process_group(0);
        git
    }

    fn start(&self, git: &mut Command) -> Result<Child, CheckpointError> {
        git.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CheckpointError::NoGit,
            _ => CheckpointError::io("run git in", &self.folder, &error),
        })
    }

    fn answer(&self, arguments: &[&str]) -> Result<Vec<u8>, CheckpointError> {
        self.fed(arguments, b"")
    }

    /// What git answers to `input`.
    fn fed(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, CheckpointError> {
        let mut child = self.start(self.git(arguments).stdin(Stdio::piped()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // What it does not want to read, its end explains.
            let _ = stdin.write_all(input);
        }
        self.ended(arguments[0], child)
    }

    /// Writes `snapshot` as a commit with this message and lets every name of `references` refer to it. Answers its tree.
    ///
    /// Only what is other than in the tree of `index` is written; `unsent` gives the bytes of contents that may be new.
    pub(super) fn save(
        &self,
        references: &[String],
        message: &str,
        snapshot: &Snapshot,
        index: &Index,
        unsent: impl FnMut(&OsStr) -> Result<Option<Vec<u8>>, CheckpointError>,
    ) -> Result<String, CheckpointError> {
        // Deltas are made later, when things are collected.
        let arguments = ["fast-import", "--quiet", "--force", "--done", "--depth=0"];
        let mut child = self.start(self.git(&arguments).stdin(Stdio::piped()))?;
        let mut written = Ok(());
        if let Some(stdin) = child.stdin.take() {
            written = stream(BufWriter::new(stdin), references, message, snapshot, index, unsent);
        }
        let out = child.wait_with_output().map_err(|error| CheckpointError::io("run git in", &self.folder, &error))?;
        match written {
            Err(Broken::Contents(error)) => return Err(error),
            _ if !out.status.success() => return Err(said_by_git("fast-import", &out.stderr)),
            Err(Broken::Pipe(error)) => return Err(CheckpointError::io("write to", &self.folder, &error)),
            Ok(()) => {}
        }
        let answered = String::from_utf8_lossy(&out.stdout);
        let tree = answered.split_whitespace().nth(2).map(str::to_owned);
        tree.ok_or_else(|| CheckpointError::Git("git fast-import: it did not name the tree".into()))
    }

    /// A name that no other checkpoint of this project has. `_lock`: nobody may take one meanwhile.
    pub(super) fn new_id(&self, project: &str, _lock: &Lock) -> String {
        let loose = self.folder.join("refs").join("hermes").join(project);
        let packed = fs::read_to_string(self.folder.join("packed-refs")).unwrap_or_default();
        let is_taken = |id: &str| loose.join(id).exists() || packed.contains(&format!(" refs/hermes/{project}/{id}/"));
        let mut millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        while is_taken(&in_letters(millis)) {
            millis += 1;
        }
        in_letters(millis)
    }

    /// The snapshot that a commit holds.
    pub(super) fn load(&self, commit: &str) -> Result<Snapshot, CheckpointError> {
        let facts = self.answer(&["cat-file", "blob", &format!("{commit}:{FACTS}")])?;
        let facts: Facts = postcard::from_bytes(&facts).map_err(|_| {
            CheckpointError::Git(format!("the checkpoint {commit} was written by another version of Hermes"))
        })?;
        let listed = self.answer(&["ls-tree", "-r", "-z", commit, &format!("{FILES}/")])?;
        let mut files = Vec::new();
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let Some(file) = listed_file(line) else {
                return Err(CheckpointError::Git(format!(
                    "the checkpoint {commit} holds what git calls {}",
                    String::from_utf8_lossy(line)
                )));
            };
            files.push(file);
        }
        Ok(facts.with(files))
    }

    /// The references below `refs/hermes/` plus `prefix`.
    pub(super) fn references(&self, prefix: &str) -> Result<Vec<Reference>, CheckpointError> {
        let format = "--format=%(refname)%00%(objectname)%00%(contents)%00%00";
        let listed = self.answer(&["for-each-ref", format, &format!("refs/hermes/{prefix}")])?;
        let listed = String::from_utf8_lossy(&listed);
        let one = |record: &str| {
            let mut parts = record.trim_start_matches('\n').splitn(3, '\0');
            Some(Reference {
                name: parts.next()?.to_owned(),
                commit: parts.next()?.to_owned(),
                message: parts.next()?.to_owned(),
            })
        };
        Ok(listed.split("\0\0").filter_map(one).collect())
    }

    /// Creates, moves and deletes references, all or none. A commit of `None` deletes.
    pub(super) fn point(&self, changes: &[(&str, Option<&str>)]) -> Result<(), CheckpointError> {
        let mut input = String::new();
        for (name, commit) in changes {
            match commit {
                Some(commit) => input += &format!("update {name} {commit}\n"),
                None => input += &format!("delete {name}\n"),
            }
        }
        self.fed(&["update-ref", "--stdin"], input.as_bytes()).map(|_| ())
    }

    /// Reads contents, one after the other.
    pub(super) fn contents(&self) -> Result<Contents, CheckpointError> {
        let mut child = self.start(self.git(&["cat-file", "--batch"]).stdin(Stdio::piped()).stderr(Stdio::null()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| CheckpointError::Git("git has no pipes".into()))?;
        Ok(Contents { child, input: Some(input), output: BufReader::new(output) })
    }

    /// Removes what nothing refers to. `lock`: nobody may write meanwhile.
    pub(super) fn collect(&self, lock: &Lock) -> Result<(), CheckpointError> {
        let arguments = ["gc", "--quiet", "--prune=now"];
        // Git holds the lock as well: it goes on when this program ends, and nobody may write before it is done.
        let held = lock.0.try_clone().map_err(|error| CheckpointError::io("lock", &self.folder, &error))?;
        self.ended(arguments[0], self.start(self.git(&arguments).stdin(held))?).map(|_| ())
    }

    /// What git printed, once it has ended.
    fn ended(&self, verb: &str, child: Child) -> Result<Vec<u8>, CheckpointError> {
        let out = child.wait_with_output().map_err(|error| CheckpointError::io("run git in", &self.folder, &error))?;
        if out.status.success() { Ok(out.stdout) } else { Err(said_by_git(verb, &out.stderr)) }
    }

    /// The bytes that it takes on disk.
    pub(super) fn size(&self) -> u64 {
        let mut size = 0;
        let mut open = vec![self.folder.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => open.push(entry.path()),
                    Ok(metadata) => size += metadata.len(),
                    Err(_) => {}
                }
            }
        }
        size
    }
}

/// Contents by the names of their blobs.
#[derive(Debug)]
pub(super) struct Contents {
    child: Child,
    /// `None` only while it ends.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Contents {
    pub(super) fn read(&mut self, blob: Blob) -> Result<Vec<u8>, CheckpointError> {
        let failed = |error: io::Error| CheckpointError::Git(format!("cannot read {blob}: {error}"));
        if let Some(input) = &mut self.input {
            writeln!(input, "{blob}").and_then(|()| input.flush()).map_err(failed)?;
        }
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(failed)?;
        let size = line.trim_end().rsplit_once(" blob ").and_then(|(_, size)| size.parse::<usize>().ok());
        let size = size.ok_or_else(|| CheckpointError::Git(format!("the content {blob} is missing from the store")))?;
        let mut bytes = vec![0; size + 1];
        self.output.read_exact(&mut bytes).map_err(failed)?;
        bytes.truncate(size);
        Ok(bytes)
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        // It ends with its input.
        self.input = None;
        let _ = self.child.wait();
    }
}

enum Broken {
    Contents(CheckpointError),
    Pipe(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Pipe(error)
    }
}

fn stream(
    mut to: impl Write,
    references: &[String],
    message: &str,
    snapshot: &Snapshot,
    index: &Index,
    mut unsent: impl FnMut(&OsStr) -> Result<Option<Vec<u8>>, CheckpointError>,
) -> Result<(), Broken> {
    let data = |to: &mut dyn Write, bytes: &[u8]| -> io::Result<()> {
        writeln!(to, "data {}", bytes.len())?;
        to.write_all(bytes)?;
        writeln!(to)
    };
    for (name, entry) in &snapshot.entries {
        if Stored::of(entry).is_some()
            && let Some(bytes) = unsent(name).map_err(Broken::Contents)?
        {
            writeln!(to, "blob")?;
            data(&mut to, &bytes)?;
        }
    }
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let facts = postcard::to_allocvec(&Facts::of(snapshot)).unwrap_or_default();
    writeln!(to, "commit {}\nmark :1\ncommitter Hermes <> {seconds} +0000", references[0])?;
    data(&mut to, message.as_bytes())?;
    if let Some(tree) = index.tree() {
        writeln!(to, "M 040000 {tree} \"\"")?;
    }
    writeln!(to, "M 100644 inline {FACTS}")?;
    data(&mut to, &facts)?;
    // What goes makes room for what comes: a file may become a folder.
    let is_stored = |(name, entry): &(&OsString, &Entry)| Stored::of(entry).is_some() && index.stored(name).is_some();
    let has_gone = snapshot.entries.iter().filter(is_stored).count() < index.names().count();
    for name in index.names().filter(|_| has_gone) {
        if snapshot.entries.get(name).and_then(Stored::of).is_none() {
            to.write_all(b"D ")?;
            to.write_all(&quoted(name))?;
            writeln!(to)?;
        }
    }
    for (name, entry) in &snapshot.entries {
        let Some((stored, blob)) = Stored::of(entry) else { continue };
        if index.stored(name) != Some((stored, blob)) {
            write!(to, "M {} {blob} ", stored.mode())?;
            to.write_all(&quoted(name))?;
            writeln!(to)?;
        }
    }
    for reference in &references[1..] {
        writeln!(to, "reset {reference}\nfrom :1\n")?;
    }
    // It ends with `done`, so that a stream that breaks off is no commit.
    writeln!(to, "ls :1 \"\"\ndone")?;
    to.flush()?;
    Ok(())
}

/// A path of this machine as one in a tree, quoted for the stream.
fn quoted(name: &OsStr) -> Vec<u8> {
    let mut text = format!("\"{FILES}").into_bytes();
    for component in Path::new(name).components() {
        let Component::Normal(name) = component else { continue };
        text.push(b'/');
        for (at, byte) in name.as_bytes().iter().enumerate() {
            match byte {
                // Git refuses names that mean something to it.
                b'.' if at == 0 && name.as_bytes().to_ascii_lowercase().starts_with(b".git") => text.extend(b"%2E"),
                b'%' => text.extend(b"%25"),
                b'"' => text.extend(b"\\\""),
                b'\\' => text.extend(b"\\\\"),
                b'\n' => text.extend(b"\\n"),
                byte => text.push(*byte),
            }
        }
    }
    text.push(b'"');
    text
}

/// A line of `ls-tree -z`: `100644 blob 0123… \tfiles/home/me/a`.
fn listed_file(line: &[u8]) -> Option<(Stored, Blob, OsString)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let facts = std::str::from_utf8(&line[..tab]).ok()?;
    let mut facts = facts.split(' ');
    let stored = match facts.next()? {
        "100644" => Stored::File { executable: false },
        "100755" => Stored::File { executable: true },
        "120000" => Stored::Link,
        _ => return None,
    };
    let blob = Blob::read(facts.nth(1)?)?;
    let name = line[tab + 1..].strip_prefix(FILES.as_bytes())?;
    let mut path = Vec::with_capacity(name.len());
    let mut at = 0;
    while at < name.len() {
        let escaped = match &name[at..] {
            [b'%', b'2', b'E', ..] => Some(b'.'),
            [b'%', b'2', b'5', ..] => Some(b'%'),
            _ => None,
        };
        path.push(escaped.unwrap_or(name[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    Some((stored, blob, OsString::from_vec(path)))
}

fn said_by_git(verb: &str, said: &[u8]) -> CheckpointError {
    let said = String::from_utf8_lossy(said);
    let line = said.lines().find(|line| line.contains("fatal")).or_else(|| said.lines().last()).unwrap_or("it failed");
    CheckpointError::Git(format!("git {verb}: {}", line.trim_start_matches("fatal: ")))
}
