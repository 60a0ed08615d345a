//! The port through which commands run and files are reached, wherever that is.
//!
//! File tools go through the same port as commands, so a path is always valid where the model is.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use crate::CancellationToken;

/// A place to run things: this machine, a container, another host.
#[async_trait]
pub trait Environment: Send + Sync {
    /// The backend's name as in `terminal.backend`, for example `local`.
    fn backend(&self) -> &str;

    /// The session's directory; it follows the `cd` of each finished command. Always absolute.
    fn cwd(&self) -> PathBuf;

    /// The home directory there. Always absolute.
    fn home(&self) -> &Path;

    /// Changes whenever commands would run with other variables or at another place: an approval is for one environment.
    fn fingerprint(&self) -> String {
        format!("{} {}", self.backend(), self.home().display())
    }

    /// A private folder there for the session's own files, such as long results; gone after [`Environment::close`].
    fn scratch(&self) -> &Path;

    /// Whether a path names the same file for this process, so that libraries may walk it directly.
    fn shares_our_files(&self) -> bool;

    /// Runs one command to its end, its limit, or `cancel`.
    ///
    /// Whatever way it ends, the whole process group is gone when this returns early. A command is never run twice.
    async fn run(&self, command: Command, cancel: &CancellationToken) -> Result<Finished, EnvironmentError>;

    /// Facts about what `path` leads to, links followed.
    async fn stat(&self, path: &Path) -> Result<FileStat, FileError>;

    /// The real path: links followed as far as the path exists, the rest appended as written.
    async fn real_path(&self, path: &Path) -> Result<PathBuf, FileError>;

    /// The bytes of a regular file in `range`; fewer where the file ends earlier. Never blocks on a pipe or device.
    async fn read(&self, path: &Path, range: Range<u64>) -> Result<Vec<u8>, FileError>;

    /// Replaces or creates a regular file in one step: after a crash the old or the new bytes are there, never a mix.
    ///
    /// Links are followed and kept, mode and owner of an existing file stay, missing parent folders are made. A new file
    /// below [`Environment::scratch`] is for its owner only (mode 0600). Answers whether a folder had to be created.
    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<bool, FileError>;

    /// The names in a folder, sorted.
    async fn list(&self, path: &Path) -> Result<Vec<String>, FileError>;

    /// Ends everything that commands left running. Called once, when the task ends.
    async fn close(&self);
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
}

/// How a command ended and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Standard output and standard error as they came; `\u{fffd}` for bytes that are no UTF-8; terminal escapes removed.
    pub output: String,
    /// Bytes printed in all, also those that were left out.
    pub total_bytes: u64,
    /// Bytes left out of `output`.
    pub omitted_bytes: u64,
    /// How it ended.
    pub how: FinishedHow,
    /// Processes of the command that could not be ended although they should have been.
    pub left_over: usize,
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
}

impl FinishedHow {
    /// The shell's number for this end: 124 for a timeout, 130 for an interrupt, 128 + n for signal n.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => 128 + signal,
            Self::TimedOut => 124,
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
    /// Anything else: the disk is full, a name is too long, links go in a circle.
    Other,
}
