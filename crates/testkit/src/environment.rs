//! A machine that exists only in memory, for tests of code that goes through the port and never around it.
//!
//! Folders are not stored: they are there because a file below them is, plus the session's directory, the home, the
//! scratch folder and the root. There are no links, so the real path of anything is its path with the dots folded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hermes_core::{
    CancellationToken, Command, Environment, EnvironmentError, FileError, FileErrorKind, FileKind, FileStat, Finished,
    FinishedHow, Work, WorkError, WorkLimits,
};

use crate::lock;

const HOME: &str = "/home/user";
const SCRATCH: &str = "/tmp/hermes-fake";

/// An environment without a machine: backend `fake`, session's directory `/project`, home `/home/user`, scratch folder
/// `/tmp/hermes-fake`.
#[derive(Debug)]
pub struct FakeEnvironment {
    results: HashMap<String, Finished>,
    rehearses: bool,
    links: Mutex<HashMap<PathBuf, PathBuf>>,
    state: Mutex<Machine>,
}

#[derive(Debug)]
struct Machine {
    cwd: PathBuf,
    files: BTreeMap<PathBuf, File>,
    commands: Vec<Command>,
    writes: u64,
    closed: usize,
    /// Counts how often they were changed.
    variables: u64,
}

#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    modified: SystemTime,
}

impl FakeEnvironment {
    /// An environment with no files that knows no commands.
    pub fn new() -> Self {
        let machine = Machine {
            cwd: "/project".into(),
            files: BTreeMap::new(),
            commands: Vec::new(),
            writes: 0,
            closed: 0,
            variables: 0,
        };
        Self { results: HashMap::new(), rehearses: false, links: Mutex::default(), state: Mutex::new(machine) }
    }

    /// Starts the session in another directory.
    #[must_use]
    pub fn in_directory(self, cwd: impl AsRef<Path>) -> Self {
        self.change_directory(cwd);
        self
    }

    /// Adds a file. A relative path starts at the session's directory as it is now.
    #[must_use]
    pub fn with_file(self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> Self {
        lock(&self.state).put(path.as_ref(), bytes.into());
        self
    }

    /// Makes `link` another name of `target`, for whoever asks where it leads; files are not read through it.
    #[must_use]
    pub fn with_link(self, link: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        self.lead(link, target);
        self
    }

    /// Leads `link` to `target` from now on, see [`Self::with_link`].
    pub fn lead(&self, link: impl Into<PathBuf>, target: impl Into<PathBuf>) {
        lock(&self.links).insert(link.into(), target.into());
    }

    /// Commands run with other variables from now on.
    pub fn change_variables(&self) {
        lock(&self.state).variables += 1;
    }

    /// Sets how a command ends whose script is exactly `script`; every run of it ends so. See [`exited`].
    #[must_use]
    pub fn on(mut self, script: impl Into<String>, result: Finished) -> Self {
        self.results.insert(script.into(), result);
        self
    }

    /// Says that commands can be rehearsed; a tool of the test does it.
    #[must_use]
    pub fn rehearsing(mut self) -> Self {
        self.rehearses = true;
        self
    }

    /// Moves the session, as a command with `cd` would.
    pub fn change_directory(&self, cwd: impl AsRef<Path>) {
        let mut machine = lock(&self.state);
        machine.cwd = machine.absolute(cwd.as_ref());
    }

    /// The bytes of a file, if there is one at `path`.
    pub fn file(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let machine = lock(&self.state);
        machine.files.get(&machine.absolute(path.as_ref())).map(|file| file.bytes.clone())
    }

    /// The commands that were run, in order, unknown ones included.
    pub fn commands(&self) -> Vec<Command> {
        lock(&self.state).commands.clone()
    }

    /// How often [`Environment::close`] was called.
    pub fn times_closed(&self) -> usize {
        lock(&self.state).closed
    }
}

impl Default for FakeEnvironment {
    fn default() -> Self {
        Self::new()
    }
}

/// A command that exited by itself with all of its output kept.
pub fn exited(code: i32, output: impl Into<String>) -> Finished {
    Finished::new(FinishedHow::Exited(code), output)
}

impl Machine {
    /// Paths that exist, and above which every folder therefore exists.
    fn known_paths(&self) -> impl Iterator<Item = &Path> {
        let scratch = (self.closed == 0).then_some(Path::new(SCRATCH));
        let folders = [self.cwd.as_path(), Path::new(HOME)].into_iter().chain(scratch);
        folders.chain(self.files.keys().map(PathBuf::as_path))
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        if self.files.contains_key(path) {
            return Some(FileKind::File);
        }
        self.known_paths().any(|known| known.starts_with(path)).then_some(FileKind::Directory)
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        let mut absolute = PathBuf::new();
        for part in self.cwd.join(path).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    absolute.pop();
                }
                part => absolute.push(part),
            }
        }
        absolute
    }

    /// Whether a new file may be at `path`, and the folders that it would bring with it, the deepest first.
    fn room_for(&self, path: &Path) -> Result<Vec<PathBuf>, FileError> {
        if self.kind(path).is_some() {
            return Err(FileError { path: path.to_owned(), kind: FileErrorKind::Exists, why: "exists already".into() });
        }
        let folders = || path.ancestors().skip(1);
        if folders().any(|above| self.files.contains_key(above)) {
            return Err(not_a_directory(path.to_owned()));
        }
        Ok(folders().take_while(|above| self.kind(above).is_none()).map(Path::to_path_buf).collect())
    }

    fn put(&mut self, path: &Path, bytes: Vec<u8>) {
        let path = self.absolute(path);
        // Every write is a second later than the one before it: a change is always visible, and always the same.
        self.writes += 1;
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(self.writes);
        self.files.insert(path, File { bytes, modified });
    }
}

#[async_trait]
impl Environment for FakeEnvironment {
    fn backend(&self) -> &'static str {
        "fake"
    }

    fn cwd(&self) -> PathBuf {
        lock(&self.state).cwd.clone()
    }

    fn home(&self) -> &Path {
        Path::new(HOME)
    }

    fn fingerprint(&self) -> String {
        format!("fake {}", lock(&self.state).variables)
    }

    fn scratch(&self) -> &Path {
        Path::new(SCRATCH)
    }

    fn shares_our_files(&self) -> bool {
        false
    }

    async fn can_rehearse(&self) -> Result<(), String> {
        if self.rehearses { Ok(()) } else { Err("nothing is rehearsed on this machine".into()) }
    }

    async fn run(&self, command: Command, cancel: &CancellationToken) -> Result<Finished, EnvironmentError> {
        let mut machine = lock(&self.state);
        if let Some(cwd) = &command.cwd {
            let path = machine.absolute(cwd);
            if machine.kind(&path) != Some(FileKind::Directory) {
                return Err(EnvironmentError::NoSuchDirectory(path));
            }
        }
        if cancel.is_cancelled() {
            return Ok(Finished::new(FinishedHow::Cancelled, ""));
        }
        let known = self.results.get(&command.script).cloned();
        let result = known.unwrap_or_else(|| exited(127, format!("bash: {}: command not found\n", command.script)));
        machine.commands.push(command);
        Ok(result)
    }

    /// Here and now, so that a debugger or a fuzzer sees it: only a panic does not end us.
    async fn isolated(&self, work: Work, input: &[u8], _limits: WorkLimits) -> Result<Vec<u8>, WorkError> {
        std::panic::catch_unwind(|| work(input)).map_err(|_| WorkError::Panicked("a panic".into()))
    }

    async fn stat(&self, path: &Path) -> Result<FileStat, FileError> {
        let machine = lock(&self.state);
        let path = machine.absolute(path);
        match (machine.kind(&path), machine.files.get(&path)) {
            (Some(kind), Some(file)) => {
                Ok(FileStat { kind, len: file.bytes.len() as u64, modified: Some(file.modified), version: None })
            }
            (Some(kind), None) => Ok(FileStat { kind, len: 0, modified: None, version: None }),
            (None, _) => Err(not_found(path)),
        }
    }

    async fn real_path(&self, path: &Path) -> Result<PathBuf, FileError> {
        let path = lock(&self.state).absolute(path);
        Ok(lock(&self.links).get(&path).cloned().unwrap_or(path))
    }

    async fn read(&self, path: &Path, range: Range<u64>) -> Result<Vec<u8>, FileError> {
        let machine = lock(&self.state);
        let path = machine.absolute(path);
        let Some(file) = machine.files.get(&path) else {
            return Err(match machine.kind(&path) {
                Some(kind) => not_regular(&path, kind),
                None => not_found(path),
            });
        };
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(file.bytes.len());
        Ok(file.bytes.get(at(range.start)..at(range.end)).unwrap_or_default().to_vec())
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
        let mut machine = lock(&self.state);
        let path = machine.absolute(path);
        if let Some(kind @ FileKind::Directory) = machine.kind(&path) {
            return Err(not_regular(&path, kind));
        }
        if path.ancestors().skip(1).any(|above| machine.files.contains_key(above)) {
            return Err(not_a_directory(path));
        }
        let made_folder = path.parent().is_some_and(|parent| machine.kind(parent).is_none());
        machine.put(&path, bytes.to_vec());
        Ok(made_folder)
    }

    async fn create(&self, path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>, FileError> {
        let mut machine = lock(&self.state);
        let path = machine.absolute(path);
        let made = machine.room_for(&path)?;
        machine.put(&path, bytes.to_vec());
        Ok(made)
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<Vec<PathBuf>, FileError> {
        let mut machine = lock(&self.state);
        let (from, to) = (machine.absolute(from), machine.absolute(to));
        if !machine.files.contains_key(&from) {
            return Err(machine.kind(&from).map_or_else(|| not_found(from.clone()), |kind| not_regular(&from, kind)));
        }
        let made = machine.room_for(&to)?;
        if let Some(file) = machine.files.remove(&from) {
            machine.files.insert(to, file);
        }
        Ok(made)
    }

    async fn remove(&self, path: &Path) -> Result<(), FileError> {
        let mut machine = lock(&self.state);
        let path = machine.absolute(path);
        // Folders are there because of what is in them, so none of them is empty.
        match machine.files.remove(&path) {
            Some(_) => Ok(()),
            None => Err(machine.kind(&path).map_or_else(|| not_found(path.clone()), |kind| not_regular(&path, kind))),
        }
    }

    async fn list(&self, path: &Path) -> Result<Vec<String>, FileError> {
        let machine = lock(&self.state);
        let path = machine.absolute(path);
        match machine.kind(&path) {
            Some(FileKind::Directory) => {}
            Some(_) => return Err(not_a_directory(path)),
            None => return Err(not_found(path)),
        }
        let below = machine.known_paths().filter_map(|known| known.strip_prefix(&path).ok()?.components().next());
        let names: BTreeSet<String> = below.map(|name| name.as_os_str().to_string_lossy().into_owned()).collect();
        Ok(names.into_iter().collect())
    }

    async fn close(&self) {
        let mut machine = lock(&self.state);
        machine.closed += 1;
        machine.files.retain(|path, _| !path.starts_with(SCRATCH));
    }
}

fn not_found(path: PathBuf) -> FileError {
    FileError { path, kind: FileErrorKind::NotFound, why: "no such file or directory".into() }
}

fn not_regular(path: &Path, kind: FileKind) -> FileError {
    let why = format!("is {}", kind.in_words());
    FileError { path: path.to_owned(), kind: FileErrorKind::NotRegular(kind), why }
}

fn not_a_directory(path: PathBuf) -> FileError {
    FileError { path, kind: FileErrorKind::Other, why: "not a directory".into() }
}
