//! The port through which commands run and files are reached, wherever that is.
//!
//! File tools go through the same port as commands, so a path is always valid where the model is.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use crate::{
    CancellationToken, Layout, LineFeed, Place, Process, Rehearsed, Start, TerminalSize, Work, WorkError, WorkLimits,
};

/// A place to run things: this machine, a container, another host.
#[async_trait]
pub trait Environment: Send + Sync {
    /// The backend's name as in `terminal.backend`, for example `local`.
    fn backend(&self) -> &str;

    /// What it can do beyond running a command to its end and reaching files.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// The session's directory; it follows the `cd` of each finished command. Always absolute.
    fn cwd(&self) -> PathBuf;

    /// The home directory there. Always absolute.
    fn home(&self) -> &Path;

    /// Changes whenever commands would run with other variables or at another place: an approval is for one environment.
    fn fingerprint(&self) -> String {
        format!("{} {}", self.backend(), self.home().display())
    }

    /// What earlier commands left for the next one, as bash source without effects: functions, aliases, and variables
    /// that are not as they were when the session began. Whoever judges a command reads this before it. Empty if
    /// there is nothing.
    fn carried(&self) -> String {
        String::new()
    }
    /// How commands are confined, one line each, by what was shown to work; empty if they are not.
    fn confinement(&self) -> Vec<String> {
        Vec::new()
    }

    /// A private folder there for the session's own files, such as long results; gone after [`Environment::close`].
    fn scratch(&self) -> &Path;

    /// Whether a path names the same file for this process, so that libraries may walk it directly.
    fn shares_our_files(&self) -> bool;

    /// Runs one command to its end, its limit, or `cancel`.
    ///
    /// It has ended when the shell itself has, whatever its children hold open. Where it is ended early, everything that
    /// it started is gone when this returns. A command is never run twice.
    async fn run(&self, command: Command, cancel: &CancellationToken) -> Result<Finished, EnvironmentError>;

    /// Whether [`Environment::rehearse`] works here; an error says why not. May take a moment the first time: it is
    /// tried.
    async fn can_rehearse(&self) -> Result<(), String> {
        Err(format!("the backend {} cannot rehearse commands", self.backend()))
    }

    /// Runs one command against a stand-in for the folder in which the session started: what it changes there waits to
    /// be committed or thrown away, and it can change nothing else.
    async fn rehearse(&self, command: Command, cancel: &CancellationToken) -> Result<Rehearsed, EnvironmentError> {
        let _ = (command, cancel);
        Err(EnvironmentError::CannotDo { backend: self.backend().to_owned(), what: "rehearse commands" })
    }

    /// Starts a process that lives on in the background, with its output in a log.
    async fn spawn(&self, start: Start) -> Result<Arc<dyn Process>, EnvironmentError> {
        drop(start);
        Err(EnvironmentError::CannotDo { backend: self.backend().to_owned(), what: "keep processes in the background" })
    }

    /// Does a piece of our own work on `input` in a process beside us, wherever commands run: it can reach nothing, it has
    /// limits, and however it ends, we live on. It ends when the answer is not waited for any more.
    async fn isolated(&self, work: Work, input: &[u8], limits: WorkLimits) -> Result<Vec<u8>, WorkError> {
        let _ = (work, input, limits);
        Err(WorkError::NotStarted(format!("the backend {} has no process for it", self.backend())))
    }

    /// Facts about what `path` leads to, links followed.
    async fn stat(&self, path: &Path) -> Result<FileStat, FileError>;

    /// The real path: links followed as far as the path exists, the rest appended as written.
    async fn real_path(&self, path: &Path) -> Result<PathBuf, FileError>;

    /// The bytes of a regular file in `range`; fewer where the file ends earlier. Never blocks on a pipe or device.
    async fn read(&self, path: &Path, range: Range<u64>) -> Result<Vec<u8>, FileError>;

    /// How a regular file is laid out in lines, with a fingerprint of its content. `feed` is how its lines end.
    async fn layout(&self, path: &Path, feed: LineFeed) -> Result<Layout, FileError> {
        let (mut pieces, mut at) = (Vec::new(), 0);
        loop {
            let piece = self.read(path, at..at + Layout::PIECE as u64).await?;
            if piece.is_empty() {
                return Ok(Layout::join(pieces));
            }
            at += piece.len() as u64;
            pieces.push(Layout::piece(&piece, feed));
        }
    }

    /// Replaces or creates a regular file in one step: after a crash the old or the new bytes are there, never a mix.
    ///
    /// Links are followed and kept, mode and owner of an existing file stay, missing parent folders are made. A new file
    /// below [`Environment::scratch`] is for its owner only (mode 0600). Answers whether a folder had to be created.
    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<bool, FileError>;

    /// Creates a regular file where there is nothing: in one step, with the mode that new files get there. Whatever has the
    /// name already stays ([`FileErrorKind::Exists`]), a link that leads nowhere too. Missing parent folders are made;
    /// answers which, the deepest first.
    async fn create(&self, path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>, FileError>;

    /// Gives a file, or a link itself, another name, with all that belongs to it: mode, owner, times. It never takes the
    /// place of anything ([`FileErrorKind::Exists`]); on one file system it is one step. Missing parent folders of `to` are
    /// made; answers which, the deepest first. After an error everything is as it was.
    async fn rename(&self, from: &Path, to: &Path) -> Result<Vec<PathBuf>, FileError>;

    /// Removes a file, a link and not what it leads to, or a folder that is empty.
    async fn remove(&self, path: &Path) -> Result<(), FileError>;

    /// The names in a folder, sorted.
    async fn list(&self, path: &Path) -> Result<Vec<String>, FileError>;

    /// Ends everything that commands left running. Called once, when the task ends.
    async fn close(&self);
}

/// What a backend can do. Each field is a promise that the conformance suite checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It keeps processes in the background.
    pub background: bool,
    /// It gives a command a terminal.
    pub terminal: bool,
    /// It gives a command standard input.
    pub input: bool,
    /// Files are brought there and back, because they are not ours.
    pub file_transfer: bool,
    /// Its files can be kept as they are now and put back.
    pub snapshot: bool,
    /// It can keep a command from the network, or let it reach chosen hosts only.
    pub network_policy: bool,
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Bash source, run as written.
    pub script: String,
    /// Where to run it; `None` is the session's directory.
    pub cwd: Option<PathBuf>,
    /// How long it may take.
    pub timeout: Duration,
    /// How many bytes of output to keep: the first 40 % and the last 60 %.
    pub output_cap: usize,
    /// What it reads on standard input; `None` is nothing at all.
    pub input: Option<Vec<u8>>,
    /// It gets a terminal of this size instead of pipes.
    pub terminal: Option<TerminalSize>,
    /// What happens when it outlives its limit.
    pub at_limit: AtLimit,
    /// It runs outside of the sandbox of an environment that has one.
    pub unconfined: bool,
}
impl Command {
    /// A command that runs in the session's directory without input, and is ended at its limit.
    pub fn new(script: impl Into<String>, timeout: Duration, output_cap: usize) -> Self {
        let at_limit = AtLimit::End;
        Self {
            script: script.into(),
            cwd: None,
            timeout,
            output_cap,
            input: None,
            terminal: None,
            at_limit,
            unconfined: false,
        }
    }
}

/// What happens to a command at its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtLimit {
    /// It is ended, with everything it started.
    End,
    /// It lives on in the background and leaves its traces there. So does one that is seen to serve or to watch and has
    /// gone quiet, already before its limit.
    Keep(Place),
}

/// How a command ended and what it printed.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Standard output and standard error as they came, as somebody reads them: terminal escapes removed, what a
    /// carriage return wrote over gone, `\u{fffd}` for bytes that are no text.
    pub output: String,
    /// The last lines as a terminal would show them, with their colours.
    pub coloured_tail: Vec<String>,
    /// Bytes printed in all, also those that were left out.
    pub total_bytes: u64,
    /// Bytes left out of `output`.
    pub omitted_bytes: u64,
    /// How it ended.
    pub how: FinishedHow,
    /// Processes of the command that could not be ended although they should have been.
    pub left_over: usize,
    /// The file that holds all of the output, where `output` does not.
    pub spill: Option<PathBuf>,
    /// What the sandbox kept it from, where that seems to be why it failed; a sentence.
    pub refusal: Option<String>,
    /// The command itself, where it lives on ([`FinishedHow::Kept`]).
    pub process: Option<Arc<dyn Process>>,
}

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishedHow {
    /// It exited by itself.
    Exited(i32),
    /// A signal that we did not send ended it.
    Signalled(i32),
    /// It was still running at its limit and was killed.
    TimedOut,
    /// The person stopped it.
    Cancelled,
    /// It has not ended but lives on in the background.
    Kept(Kept),
}

/// Why a command lives on in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was still at work at its limit.
    AtLimit,
    /// It accepts connections on this TCP port and has gone quiet.
    Serving(u16),
    /// It watches files and has gone quiet.
    Watching,
}

impl Finished {
    /// A command that printed `output` and ended so.
    pub fn new(how: FinishedHow, output: impl Into<String>) -> Self {
        let output = output.into();
        Self {
            coloured_tail: Vec::new(),
            total_bytes: output.len() as u64,
            omitted_bytes: 0,
            output,
            how,
            left_over: 0,
            spill: None,
            refusal: None,
            process: None,
        }
    }
}

impl FinishedHow {
    /// The shell's number for this end: 124 for a timeout, 130 for an interrupt, 128 + n for signal n; for a command
    /// that lives on, 124 as well: its limit came first.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => 128 + signal,
            Self::TimedOut | Self::Kept(_) => 124,
            Self::Cancelled => 130,
        }
    }
}

/// Why a command could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The directory to run in is not there.
    #[error("working directory {} does not exist or is not a directory", .0.display())]
    NoSuchDirectory(PathBuf),
    /// The session's directory has gone; the session goes on in its nearest folder that is still there.
    #[error("the session's directory {} is gone; the session goes on in {}", gone.display(), now.display())]
    DirectoryGone {
        /// Where the session was.
        gone: PathBuf,
        /// Where it is now.
        now: PathBuf,
    },
    /// The session's private folder could not be made.
    #[error("cannot make a temporary folder: {0}")]
    NoScratch(std::io::Error),
    /// The shell could not be started.
    #[error("cannot start {program}: {source}")]
    CannotStart {
        /// What was to be started.
        program: String,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The shell was started but could not become what was asked for, before it read a word of the command.
    #[error("cannot prepare the command: {0}; it did not run")]
    NotPrepared(String),
    /// The backend has no such ability.
    #[error("the backend {backend} cannot {what}")]
    CannotDo {
        /// Its name.
        backend: String,
        /// What was asked of it, in words that follow "cannot".
        what: &'static str,
    },
    /// The connection to the running command broke; it may have run.
    #[error("lost track of the command, which may have run: {0}")]
    Lost(std::io::Error),
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes; meaningful for regular files.
    pub len: u64,
    /// Time of the last change, where the system keeps one.
    pub modified: Option<SystemTime>,
    /// Which file it is and when it changed, where the system says so.
    pub version: Option<FileVersion>,
}

/// Which file it is and when anything about it changed last, its time stamps included: nobody can set this back. Two
/// changes within [`FileVersion::GRAIN`] of one another may look like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileVersion {
    /// The device and the number of the file on it.
    pub file: (u64, u64),
    /// When.
    pub changed: SystemTime,
}

impl FileVersion {
    /// How finely a system tells times apart at worst.
    pub const GRAIN: Duration = Duration::from_millis(50);
}

/// What kind of thing a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file, the only kind that is read or written.
    File,
    /// A folder.
    Directory,
    /// A named pipe: reading it would wait for a writer.
    Pipe,
    /// A socket.
    Socket,
    /// A character or block device: reading it may never end.
    Device,
}

impl FileKind {
    /// The kind in words, with its article.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::File => "a regular file",
            Self::Directory => "a directory",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        }
    }
}

/// Why a file could not be reached.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{}: {why}", path.display())]
pub struct FileError {
    /// The file in question.
    pub path: PathBuf,
    /// The kind of trouble, for code.
    pub kind: FileErrorKind,
    /// The trouble in words, for people and models.
    pub why: String,
}

/// The kinds of trouble that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileErrorKind {
    /// Nothing is there.
    NotFound,
    /// It is there but may not be used.
    Denied,
    /// It is there but is no regular file.
    NotRegular(FileKind),
    /// Something is there, where nothing may be.
    Exists,
    /// Anything else: the disk is full, a name is too long, links go in a circle.
    Other,
}
