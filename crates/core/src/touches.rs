//! What a call would do, said before it does it.

use std::path::PathBuf;

/// The reach of one call, computed from its arguments alone.
///
/// Paths are absolute, in the terms of the call's environment, and not yet resolved through links: resolving needs I/O
/// and is done once, by the step that judges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// Files and folders whose contents may be read.
    pub reads: Vec<PathBuf>,
    /// Files and folders that may be created, changed or removed.
    pub writes: Vec<PathBuf>,
    /// A command that would run, exactly as written.
    pub command: Option<String>,
    /// Where it would run; `None` is the session's directory.
    pub runs_in: Option<PathBuf>,
    /// The command is input for a process that runs already.
    pub typed: Option<Typed>,
    /// The command is only rehearsed: it can change nothing but a stand-in for the workspace, and reaches nothing.
    pub rehearsed: bool,
    /// The command would run outside of the sandbox that is on.
    pub unconfined: bool,
    /// Sentences for the approval prompt, most important first: what the call does, not what it looks like.
    pub explain: Vec<String>,
}

/// Input for a process that runs already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// The command that reads it; it was judged when it began.
    pub into: String,
    /// What was typed before, and judged then; it decides what the new words mean.
    pub before: String,
    /// What is typed now.
    pub now: String,
    /// Something in it edits a line, or so much was typed before, that nobody can tell what will be read.
    pub unreadable: bool,
}

impl Touches {
    /// A call that reaches nothing outside its own answer.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// A call that reads one path.
    pub fn reading(path: impl Into<PathBuf>) -> Self {
        Self { reads: vec![path.into()], ..Self::default() }
    }

    /// A call that changes one path.
    pub fn writing(path: impl Into<PathBuf>) -> Self {
        Self { writes: vec![path.into()], ..Self::default() }
    }

    /// A call that runs a command.
    pub fn executing(command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..Self::default() }
    }

    /// Adds a sentence for the approval prompt.
    #[must_use]
    pub fn because(mut self, sentence: impl Into<String>) -> Self {
        self.explain.push(sentence.into());
        self
    }
}
