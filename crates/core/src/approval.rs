//! Who decides: the judge, what a yes covers, the person, the reviewer, and the book of what was asked.
//!
//! A [`Judge`] lists *all* doubts about a call, and a call runs only if every one of them is covered: by an approval from
//! before, by a reviewer, or by a person. Silence, an error and an unclear answer are never a yes.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::{CancellationToken, JsonMap, ToolSpec, Touches};

// ---------------------------------------------------------------------------------------------------------- judge

/// Decides whether a call may run.
pub trait Judge: Send + Sync {
    /// The verdict on one call. An implementation that cannot tell answers [`Verdict::Ask`], never [`Verdict::Allow`].
    fn judge(&self, request: &JudgeRequest<'_>) -> Verdict;

    /// Whose text the answer of the call will hold, if that is somebody outside, for example `the network (a command)`:
    /// what a model reads of it is then marked as not its user's.
    fn outside(&self, request: &JudgeRequest<'_>) -> Option<String> {
        let _ = request;
        None
    }

    /// Why the content of a file is not for a model, as an error that it can go on from; `None` if it may be shown.
    ///
    /// Asked by tools that come upon files which no call has named, such as a search: once for every file, so it does no
    /// I/O. `stated` is the path as it was found, `real` where that leads; both are absolute.
    fn withholds(&self, stated: &Path, real: &Path) -> Option<String> {
        let _ = (stated, real);
        None
    }

    /// What a call that runs a command would change, as far as that can be told beforehand, for whoever keeps it for an undo.
    /// Nobody decides anything by it. One that cannot tell answers that it may be anything.
    fn changes(&self, command: &str, place: &CommandPlace<'_>) -> Changes {
        let _ = (command, place);
        Changes::Anything(Vec::new())
    }
}

/// Where a command would run.
#[derive(Clone, Copy, Debug)]
pub struct CommandPlace<'a> {
    /// Its directory, resolved through links.
    pub cwd: &'a Path,
    /// What earlier commands left for this one to use; see [`crate::Environment::carried`].
    pub carried: &'a str,
    /// Paths name the same files for this process, so that links in it may be looked at.
    pub shares_our_files: bool,
}

/// What a command would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing.
    Nothing,
    /// These absolute paths, and nothing else. One may hold a pattern as the shell reads it.
    Only(Vec<PathBuf>),
    /// These, and whatever it comes to below its directory.
    Anything(Vec<PathBuf>),
}

/// What a judge looks at.
#[derive(Debug)]
pub struct JudgeRequest<'a> {
    /// The tool.
    pub spec: &'a ToolSpec,
    /// Its arguments, after coercion and validation: exactly what will run.
    pub arguments: &'a JsonMap,
    /// What it would do, as the tool says it: paths are absolute, links in them are not followed.
    pub stated: &'a Touches,
    /// The same with every path resolved through links.
    pub touches: &'a Touches,
    /// Where the task began, resolved through links. The session's directory may have moved away from it since.
    pub root: &'a Path,
    /// The session's directory, resolved through links.
    pub cwd: &'a Path,
    /// What earlier commands left for this one to use; see [`crate::Environment::carried`].
    pub carried: &'a str,
    /// Paths name the same files for this process, so that links in a command may be looked at.
    pub shares_our_files: bool,
    /// Folders outside of it that belong to the session, such as the one for stored results.
    pub own_folders: &'a [PathBuf],
}

/// What a judge says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person has to say yes.
    Ask(Concern),
    /// It must not run, whoever says yes.
    Refuse(String),
}

/// Why a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    /// What it would do, in words that follow "it", for example `runs a command`.
    pub reason: String,
    /// What a person may not see at once from the command or path itself, for example `outside of ~/code`.
    pub note: Option<String>,
    /// Everything that needs a yes; never empty.
    pub doubts: Vec<Doubt>,
}

impl Concern {
    /// A concern with one doubt, which is its reason.
    pub fn new(reason: impl Into<String>, note: Option<String>, scope: Option<ApprovalScope>) -> Self {
        let reason = reason.into();
        let doubt = Doubt {
            id: "1".into(),
            what: format!("it {reason}"),
            by_person: false,
            rehearsable: false,
            deletes: None,
            scope,
        };
        Self { reason, note, doubts: vec![doubt] }
    }

    /// The same, for nobody but a person to decide.
    #[must_use]
    pub fn by_person(mut self) -> Self {
        for doubt in &mut self.doubts {
            doubt.by_person = true;
        }
        self
    }
}

/// One thing that needs a yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Told from the other doubts of the call by this, for example `2`.
    pub id: String,
    /// A sentence: what would happen to what, and why that needs somebody.
    pub what: String,
    /// Somebody wants a person to decide: no model answers it.
    pub by_person: bool,
    /// It is about nothing but files of the workspace, so a rehearsal shows what would happen.
    pub rehearsable: bool,
    /// What would be gone, so that a person can be told how much that is.
    pub deletes: Option<PathBuf>,
    /// What an approval for longer than once would cover; `None` if there can be none.
    pub scope: Option<ApprovalScope>,
}

/// What an approval for longer than once covers: an effect on a class of targets by a program, never a whole family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalScope {
    /// Two doubts share an approval only if their keys are equal.
    pub key: String,
    /// The same in words, for the prompt.
    pub words: String,
    /// It may be approved for good, not for this session alone.
    pub lasting: bool,
}

// ---------------------------------------------------------------------------------------------------------- asker

/// Puts a question to a person. One question is shown at a time; an implementation queues the rest.
#[async_trait]
pub trait Asker: Send + Sync {
    /// Waits for the answer. Nobody there, a closed terminal or an unreadable answer is [`Answer::None`].
    async fn ask(&self, question: Question, cancel: &CancellationToken) -> Answer;

    /// The password of the person, typed so that nobody sees it; `None` if they do not tell it.
    async fn password(&self, wish: &PasswordWish, cancel: &CancellationToken) -> Option<SecretString> {
        let _ = (wish, cancel);
        None
    }

    /// Who answers, as it is written down.
    fn who(&self) -> String {
        "the user".into()
    }
}

/// What a password is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordWish {
    /// The call of sudo that waits for it.
    pub command: String,
    /// What sudo would show; not always a password is asked for.
    pub prompt: String,
    /// The one before was wrong.
    pub refused: bool,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// May this call run?
    Approval {
        /// The request it belongs to; an answer names it.
        id: String,
        /// The tool's name.
        tool: String,
        /// Where it would run.
        cwd: PathBuf,
        /// The command exactly as it will run, or every path it is about, one a line.
        subject: String,
        /// Sentences that say what it does.
        explain: Vec<String>,
        /// What "for this session" and "always" would cover; empty if it can be allowed this once only.
        scope: String,
        /// "Always" is one of the answers.
        lasting: bool,
        /// "Rehearse it first" is one of the answers.
        rehearsable: bool,
        /// After this long it is too late for an answer.
        expires: Duration,
    },
    /// May this become true that was only rehearsed? [`Approval::Once`] commits it, [`Approval::Deny`] throws it away.
    Rehearsed {
        /// The request it belongs to.
        id: String,
        /// Where it ran.
        cwd: PathBuf,
        /// The command exactly as it ran.
        command: String,
        /// How it ended, in a few words.
        ended: String,
        /// What it did, a few lines.
        lines: Vec<String>,
        /// The differences in text.
        diff: String,
        /// After this long it is thrown away.
        expires: Duration,
    },
    /// Something the model wants to know (the `clarify` tool).
    Clarify {
        /// The question.
        question: String,
        /// Proposed answers; empty for an open question.
        choices: Vec<String>,
    },
}

/// What the person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Question::Approval`].
    Approval(Approval),
    /// To [`Question::Clarify`].
    Text(String),
    /// Nobody answered.
    None,
}

/// An answer to an approval question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Yes, this one call.
    Once,
    /// Yes, and the same thing again for as long as this session lives.
    Session,
    /// Yes, and the same thing again for good.
    Always,
    /// Not yet: show first what it would do.
    Rehearse,
    /// No.
    Deny,
}

// ------------------------------------------------------------------------------------------------------- reviewer

/// A model that looks at doubts before a person does (smart approval). It is never shown what must not run at all.
#[async_trait]
pub trait ApprovalReviewer: Send + Sync {
    /// One opinion for each doubt, by its id. A missing or unclear one counts as [`Opinion::Unclear`]; so does an error.
    async fn review(&self, review: &Review<'_>, cancel: &CancellationToken) -> Result<Vec<(String, Opinion)>, String>;
}

/// What a reviewer looks at.
#[derive(Clone, Copy, Debug)]
pub struct Review<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// Where it would run.
    pub cwd: &'a Path,
    /// Everything that would run, unchanged.
    pub subject: &'a str,
    /// What is doubtful about it.
    pub doubts: &'a [Doubt],
}

/// What a reviewer thinks of one doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// Harmless here.
    Approve,
    /// A person should not allow it lightly.
    Deny,
    /// A person decides.
    Unclear,
}

// ---------------------------------------------------------------------------------------------------------- book

/// The book of approvals: what was asked and how it ended, and what is approved for good.
///
/// A request is written down before anybody sees it and has exactly one end.
pub trait ApprovalBook: Send + Sync {
    /// Whether this scope is approved for good, as of now.
    fn covers(&self, key: &str) -> bool;

    /// Writes a request down. On an error nobody is asked and the call is refused.
    fn open(&self, request: &ApprovalRequest) -> Result<(), String>;

    /// Writes down how a request ended. An error means that it has ended already or cannot be stored: the call is refused.
    fn close(&self, id: &str, end: RequestEnd, by: &str) -> Result<(), String>;

    /// Approves a scope for good.
    fn grant(&self, scope: &ApprovalScope) -> Result<(), String>;
}

/// A request for approval, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Names it everywhere.
    pub id: String,
    /// The conversation it belongs to.
    pub task: String,
    /// The tool.
    pub tool: String,
    /// What would run.
    pub subject: String,
    /// Where.
    pub cwd: PathBuf,
    /// SHA-256 over tool, arguments, directory and environment: an answer is for exactly this.
    pub digest: String,
    /// The doubts, each a sentence.
    pub doubts: Vec<String>,
    /// What "for this session" and "always" would cover.
    pub scopes: Vec<String>,
    /// When it was made.
    pub opened: SystemTime,
    /// When it is too late.
    pub expires: SystemTime,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestEnd {
    /// Yes, this once.
    ApprovedOnce,
    /// Yes, for this session.
    ApprovedSession,
    /// Yes, for good.
    ApprovedAlways,
    /// It was to be rehearsed first; what came of that is a request of its own.
    Rehearsed,
    /// No; also where nobody is there to be asked.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// The turn was stopped, what was asked about changed, or the answer could not be stored.
    Cancelled,
}

/// Watches approvals; nothing it does or fails to do changes a decision.
pub trait ApprovalHook: Send + Sync {
    /// A request was made and written down; whoever is to decide sees it next.
    fn asked(&self, request: &ApprovalRequest);
    /// It has ended.
    fn ended(&self, request: &ApprovalRequest, end: RequestEnd);
}
