//! Processes that outlive the call that started them: one of them ([`Process`]), and the table of all ([`Processes`]).
//!
//! A backend makes processes; the table gives them names and owners, and remembers them. A tool sees the table only.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{CancellationToken, FinishedHow};

/// What to start in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Bash source, run as written.
    pub script: String,
    /// Where to run it; `None` is the session's directory.
    pub cwd: Option<PathBuf>,
    /// It gets a terminal of this size.
    pub terminal: Option<TerminalSize>,
    /// Without a terminal: its standard input stays open for [`Process::write`] instead of being empty.
    pub input: bool,
    /// Where it leaves its traces.
    pub place: Place,
    /// It runs outside of the sandbox of an environment that has one.
    pub unconfined: bool,
    /// A line of output with one of these in it is an event.
    pub watch: Vec<String>,
}

impl Start {
    /// A script in the session's directory, without a terminal, with nothing to read and nothing that is watched for.
    pub fn new(script: impl Into<String>, place: Place) -> Self {
        Self {
            script: script.into(),
            cwd: None,
            terminal: None,
            input: false,
            place,
            unconfined: false,
            watch: Vec::new(),
        }
    }
}

/// Where a process in the background leaves its traces. Whoever starts it makes the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its output, byte for byte. Files of the same name with other endings belong to it as well.
    pub log: PathBuf,
    /// What is written down about it before it starts: one line of text.
    pub facts: String,
}

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub columns: u16,
}

impl Default for TerminalSize {
    /// The size in the reference (spec exec §8.1).
    fn default() -> Self {
        Self { rows: 30, columns: 120 }
    }
}

/// A process in the background, with everything it starts. Dropping it ends them all.
#[async_trait]
pub trait Process: Send + Sync + std::fmt::Debug {
    /// The number of the shell there.
    fn pid(&self) -> i32;

    /// Whether it has ended, as of now. Comes from the system, not from its output.
    fn state(&self) -> ProcessState;

    /// Waits until it has ended.
    async fn ended(&self);

    /// Waits until the shell has come to run something or has ended, at most for `limit`: a command that makes no sense
    /// or a program that is not there ends at once.
    async fn begun(&self, limit: Duration);

    /// Waits until something is known of it that was not asked for yet: a line that was watched for, or its end.
    async fn stirred(&self);

    /// How many bytes it has printed.
    fn output_len(&self) -> u64;

    /// The first byte of its output that is still kept.
    fn output_start(&self) -> u64;

    /// The bytes of its output in `range`; fewer where there are not so many, or where they are not kept any more.
    async fn output(&self, range: Range<u64>) -> std::io::Result<Vec<u8>>;

    /// The same as somebody reads it: terminal escapes removed, what a carriage return wrote over gone.
    async fn text(&self, range: Range<u64>) -> std::io::Result<String>;

    /// What its terminal shows; `None` if it has no terminal.
    async fn screen(&self) -> Option<Screen>;

    /// Gives it bytes to read, unchanged. Answers how many it took; the rest waits until it reads.
    async fn write(&self, bytes: &[u8]) -> Result<usize, InputError>;

    /// Ends its input: end of file, in a terminal the character for it.
    async fn close_input(&self) -> Result<(), InputError>;

    /// Gives its terminal another size; without one this does nothing.
    async fn resize(&self, size: TerminalSize);

    /// Ends it and everything it started: SIGTERM, and SIGKILL to what is left after `grace`. Answers when that is
    /// certain, with the number of processes that would not go.
    async fn kill(&self, grace: Duration) -> usize;

    /// The lines that were watched for and came since the last time this was asked.
    fn watched(&self) -> Vec<Watched>;
}

/// How a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs.
    Running,
    /// It has ended by itself or by a signal.
    Ended(FinishedHow),
    /// Nobody knows: whoever looked after it is gone.
    Lost,
}

/// What a terminal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Its lines without the spaces at their ends; empty ones at the bottom are left out.
    pub lines: Vec<String>,
    /// Its size.
    pub size: TerminalSize,
    /// Line and column of the cursor, counted from 1.
    pub cursor: (u16, u16),
    /// A full-screen program has it (an editor, a pager).
    pub full_screen: bool,
    /// The cursor keys send the codes of an application (`ESC O A` instead of `ESC [ A`).
    pub application_keys: bool,
}

/// Why input did not arrive.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum InputError {
    /// It was started without one.
    #[error("it has no input")]
    None,
    /// Its input was closed before.
    #[error("its input is closed")]
    Closed,
    /// It has ended.
    #[error("it has ended")]
    Ended,
    /// More waits to be read than is kept for it.
    #[error("it does not read: more than {0} bytes wait for it already")]
    Full(usize),
}

/// A line that was watched for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Which of the patterns.
    pub pattern: String,
    /// The line as somebody reads it.
    pub line: String,
    /// Matches since the last event that were not told one by one.
    pub suppressed: u64,
    /// It matched so often that it is not watched any more; its end is told instead.
    pub last: bool,
}

/// The processes of one owner, by their names.
#[async_trait]
pub trait Processes: Send + Sync {
    /// A name and a place for a process that may be about to start. What is to be told of it is written down with it,
    /// so it cannot end unseen. An error says why there can be none.
    fn reserve(&self, facts: ProcessFacts) -> Result<Reserved, String>;

    /// Takes in the process for which this was reserved.
    fn register(&self, reserved: Reserved, process: Arc<dyn Process>);

    /// Those of this owner, oldest first, ended ones that are still kept included.
    fn list(&self) -> Vec<ProcessEntry>;

    /// One by its name. A process of somebody else is not found.
    fn find(&self, id: &str) -> Option<ProcessEntry>;

    /// Its end has been seen: it will not be told again.
    fn seen(&self, id: &str);

    /// Ends one, with everything it started; answers how many processes would not go.
    async fn kill(&self, id: &str) -> Option<usize>;

    /// What is to be told since the last time.
    fn news(&self) -> Vec<ProcessNews>;

    /// Whether somebody will listen to [`Processes::news`] after the call that starts a process.
    fn will_be_told(&self) -> bool;

    /// Waits until one of them has news or `cancel` fires.
    async fn until_news(&self, cancel: &CancellationToken);
}

/// A name that was given out.
#[derive(Debug)]
pub struct Reserved {
    /// `proc_` and twelve hexadecimal digits.
    pub id: String,
    /// When that was; the process begins right after it, or has begun when it is let go into the background.
    pub at: SystemTime,
    /// What was known at this moment.
    pub facts: ProcessFacts,
    /// Where it leaves its traces.
    pub place: Place,
}

/// What is known of a process when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessFacts {
    /// What runs, as written.
    pub command: String,
    /// Where it began.
    pub cwd: PathBuf,
    /// Its end is to be told.
    pub notify_on_complete: bool,
    /// The lines that are to be told.
    pub watch_patterns: Vec<String>,
    /// It has a terminal.
    pub terminal: bool,
    /// It runs outside of the sandbox that is on.
    #[serde(default)]
    pub unconfined: bool,
}

/// A process in the table.
#[derive(Clone, Debug)]
pub struct ProcessEntry {
    /// Its name.
    pub id: String,
    /// What was known at its start.
    pub facts: ProcessFacts,
    /// When it began.
    pub started: SystemTime,
    /// When it was seen to have ended.
    pub ended: Option<SystemTime>,
    /// Who ended it.
    pub killed: bool,
    /// How many lines were watched for and came.
    pub watch_hits: u64,
    /// The process itself.
    pub process: Arc<dyn Process>,
}

/// Something that happened to a process.
#[derive(Clone, Debug)]
pub enum ProcessNews {
    /// It has ended, and nobody has seen that yet.
    Ended(ProcessEntry),
    /// A line came that was watched for.
    Line(ProcessEntry, Watched),
}
