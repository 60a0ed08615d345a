//! The places where code that is not ours may take part in a call: plugins, shell hooks, editors, the guard.
//!
//! Those that *decide* ([`PreHook`], [`RequestMiddleware`], [`EditReviewer`]) fail closed unless they say otherwise:
//! one that crashes, hangs or answers nonsense blocks the call. Those that only *watch* or polish ([`PostHook`],
//! [`TransformHook`]) fail open. None of them can change the arguments after the last check: what a hook saw is what
//! runs.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;

use crate::{JsonMap, ToolCx, ToolOutput, ToolResult, ToolSpec, Touches};

/// A call as hooks see it: after coercion and validation.
#[derive(Clone, Copy, Debug)]
pub struct HookCall<'a> {
    /// Pairs it with its result.
    pub call_id: &'a str,
    /// The conversation it belongs to.
    pub task: &'a str,
    /// Counts the turns of the conversation, from 1; 0 where nobody counts.
    pub turn: u64,
    /// The tool.
    pub spec: &'a ToolSpec,
    /// Exactly what would run.
    pub arguments: &'a JsonMap,
}

/// What happens to the call when a deciding hook fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It is blocked.
    #[default]
    Block,
    /// It goes on, with a warning.
    Allow,
}

/// What somebody who takes part in calls says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFacts {
    /// Shown when it blocks or fails, for example `plugin audit`.
    pub name: String,
    /// What a failure means.
    pub on_error: OnError,
    /// How long it may take.
    pub timeout: Duration,
}

impl HookFacts {
    /// A hook that blocks when it fails, with the time limit of the reference (60 s, spec core §14.7).
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), on_error: OnError::Block, timeout: Duration::from_secs(60) }
    }
}

/// Decides about a call before it runs.
#[async_trait]
pub trait PreHook: Send + Sync {
    /// Who it is and what its failure means.
    fn facts(&self) -> &HookFacts;

    /// The decision. `Err` is a failure of the hook itself.
    async fn decide(&self, call: HookCall<'_>) -> Result<HookDecision, String>;
}

/// What a [`PreHook`] says.
#[derive(Clone, Debug, PartialEq)]
pub enum HookDecision {
    /// It may go on.
    Allow,
    /// It must not run; the text says why.
    Block(String),
    /// It may go on with these arguments, which are coerced and validated like a model's own. Every hook is asked again.
    Rewrite(JsonMap),
    /// A person decides.
    Ask {
        /// Why, in words that follow "it".
        reason: String,
        /// What "yes, for this session" covers, compared byte by byte; empty if nothing more than this once.
        key: String,
    },
}

/// Changes what is asked for before anybody decides about it. Each one sees what the one before it made.
#[async_trait]
pub trait RequestMiddleware: Send + Sync {
    /// Who it is and what its failure means.
    fn facts(&self) -> &HookFacts;

    /// New arguments, or `None` to leave them. `Err` is a failure of the middleware itself.
    async fn rewrite(&self, call: HookCall<'_>) -> Result<Option<JsonMap>, String>;
}

/// Stands around the tool itself, for example to measure or to answer from a cache. The arguments are settled by then, and
/// the tool's deadline counts for all of it. One that crashes is skipped.
#[async_trait]
pub trait ExecutionMiddleware: Send + Sync {
    /// Who it is.
    fn facts(&self) -> &HookFacts;

    /// Answers the call, as a rule with what `next` answers.
    async fn around(&self, call: HookCall<'_>, next: Next<'_>) -> ToolResult;
}

/// The rest of the way to the tool. It can be taken once, because it is used up by taking it.
pub struct Next<'a>(Answering<'a>);

type Answering<'a> = Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

impl<'a> Next<'a> {
    /// The way that `rest` is.
    pub fn new(rest: impl Future<Output = ToolResult> + Send + 'a) -> Self {
        Self(Box::pin(rest))
    }

    /// Goes on to the tool.
    pub async fn run(self) -> ToolResult {
        self.0.await
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

/// A call that has its answer.
#[derive(Clone, Copy, Debug)]
pub struct HookResult<'a> {
    /// Pairs it with its call.
    pub call_id: &'a str,
    /// The conversation it belongs to.
    pub task: &'a str,
    /// Counts the turns of the conversation, from 1; 0 where nobody counts.
    pub turn: u64,
    /// The tool's name; the name as written where there is no such tool.
    pub tool: &'a str,
    /// The arguments as far as they were understood.
    pub arguments: &'a JsonMap,
    /// How it ended: a stable word such as `ok` or `invalid_arguments`.
    pub status: &'a str,
    /// What went wrong, as it was before anything was cleaned for the model.
    pub error: Option<&'a str>,
    /// What the tool answered, in its own form: cleaned and without secrets, because those who watch write it down, and
    /// not yet shortened or fenced.
    pub output: &'a ToolOutput,
    /// What the model reads, unless the results of the turn are too long together and this one is stored after all.
    pub text: &'a str,
    /// How long it took, without the time a person needed.
    pub elapsed: Duration,
}

/// Rewrites the text of a result before it is redacted, shortened and fenced.
#[async_trait]
pub trait TransformHook: Send + Sync {
    /// Who it is.
    fn facts(&self) -> &HookFacts;

    /// The new text, or `None` to leave it; the first one that answers wins. `Err` leaves the text as it is.
    async fn transform(&self, result: HookResult<'_>) -> Result<Option<String>, String>;
}

/// Watches finished calls: one event a call, on every path.
#[async_trait]
pub trait PostHook: Send + Sync {
    /// Who it is.
    fn facts(&self) -> &HookFacts;

    /// Takes note. `Err` is a warning and nothing else.
    async fn finished(&self, result: HookResult<'_>) -> Result<(), String>;
}

/// Takes secrets out of a text on its way to eyes and models. Bytes on disk and commands are never redacted.
pub trait Redactor: Send + Sync {
    /// The text without its secrets; borrowed if there are none.
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

/// Keeps a copy of what a call is about to change.
#[async_trait]
pub trait Checkpointer: Send + Sync {
    /// Called after every check and right before the call runs. `Err` is a warning: an undo is a convenience.
    async fn before(&self, call: HookCall<'_>, touches: &Touches, cx: &ToolCx) -> Result<(), String>;

    /// A turn of `task` is over: what it left is what an undo of it starts from. `Err` is a warning.
    async fn settle(&self, task: &str) -> Result<(), String> {
        let _ = task;
        Ok(())
    }
}

/// A change of one file, as shown to an editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file.
    pub path: PathBuf,
    /// Its text now; `None` if it is not there.
    pub old: Option<String>,
    /// Its text afterwards; `None` if it would be removed.
    pub new: Option<String>,
}

impl Edit {
    /// The file at `path` changes from `old` to `new`.
    pub fn new(path: &Path, old: Option<String>, new: Option<String>) -> Self {
        Self { path: path.to_path_buf(), old, new }
    }
}

/// An editor whose user looks at every change of a file before it is made.
#[async_trait]
pub trait EditReviewer: Send + Sync {
    /// Whether all of `edits` may be made. `Err` is a refusal with its reason; silence for 60 s is one too.
    async fn review(&self, tool: &str, edits: &[Edit]) -> Result<(), String>;
}
