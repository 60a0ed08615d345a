//! What goes into the chain and what comes out of it, as its callers see it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    ApprovalHook, Attachment, CancellationToken, Checkpointer, ExecutionMiddleware, PostHook, PreHook, Redactor,
    RequestMiddleware, StopTurn, ToolCall, ToolName, TransformHook,
};
use serde::Serialize;

use super::Change;
use crate::task::Task;

/// How a call ended. Decided where it happens, never read from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tool answered.
    Ok,
    /// The tool ran and reported an error.
    Error,
    /// No such tool; nothing ran.
    UnknownTool,
    /// There is such a tool, but it was not granted to this caller; nothing ran.
    OutOfScope,
    /// The arguments were broken; nothing ran.
    InvalidArguments,
    /// A hook or middleware stopped it; nothing ran.
    Blocked,
    /// It was made too often to no avail; nothing ran.
    Repeated,
    /// It needed a yes and got none; nothing ran.
    Refused,
    /// It was stopped before it began; nothing ran.
    NotStarted,
    /// It was stopped while it ran; what it had done by then is unknown.
    Interrupted,
    /// It passed its deadline and was dropped; what it had done by then is unknown.
    TimedOut,
}

impl Status {
    /// The status as it is written down, for example `invalid_arguments`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::UnknownTool => "unknown_tool",
            Self::OutOfScope => "out_of_scope",
            Self::InvalidArguments => "invalid_arguments",
            Self::Blocked => "blocked",
            Self::Repeated => "repeated",
            Self::Refused => "refused",
            Self::NotStarted => "not_started",
            Self::Interrupted => "interrupted",
            Self::TimedOut => "timed_out",
        }
    }
}

/// Everything there is to say about a finished call.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// Pairs it with its call.
    pub id: String,
    /// The tool's real name; the name as written where there is no such tool.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// It was refused, and no approval can change that.
    pub forbidden: bool,
    /// What coercion changed about the arguments.
    pub changes: Vec<Change>,
    /// What the model reads.
    pub text: String,
    /// What travels beside the text.
    pub attachments: Vec<Attachment>,
    /// The call in a few words, for people.
    pub headline: String,
    /// The result in a few words, for people.
    pub summary: String,
    /// A few lines more about the result, for people.
    pub detail: Vec<String>,
    /// The detail is a difference: lines that begin with `+` were added, those with `-` taken away.
    pub is_diff: bool,
    /// The tool's emoji, if there is such a tool.
    pub emoji: String,
    /// How long it took, without the time a person took to decide and the time it waited for other calls.
    pub elapsed: Duration,
    /// Set when the turn must end here.
    pub stop: Option<StopTurn>,
    /// What may still have to be stored, if the results of the turn are too long together.
    pub(crate) body: Body,
}

/// The text of a result before it was fenced and anything was put behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    /// `None`: the text itself.
    pub(crate) unfenced: Option<String>,
    /// Who wrote it, where that was somebody outside.
    pub(crate) origin: Option<String>,
    /// What the model is told behind it.
    pub(crate) hint: Option<String>,
    /// It is a preview already.
    pub(crate) is_stored: bool,
}

/// Told about every call exactly once at its start and exactly once at its end.
pub trait Observer: Send + Sync {
    /// A call begins, or is refused right away.
    fn started(&self, call: &ToolCall);
    /// A call has left the chain, on whatever path.
    fn finished(&self, report: &CallReport);
    /// Something that a person should know about a call: it takes long, a hook failed.
    fn warned(&self, call: &ToolCall, message: &str) {
        let _ = (call, message);
    }
}

/// An [`Observer`] that is not interested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn started(&self, _: &ToolCall) {}
    fn finished(&self, _: &CallReport) {}
}

/// What happens when the judge says that a person must decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalMode {
    /// The person is asked; nobody to ask means no.
    #[default]
    Ask,
    /// A model looks first, and the person is asked about what it does not find harmless.
    Smart,
    /// What is dangerous only for files of the workspace is rehearsed, and the person sees what it did before it counts;
    /// about anything else the person is asked.
    Rehearse,
    /// Yes to everything that can be allowed at all.
    All,
    /// No.
    None,
}

/// On whose behalf, with what in sight, and for how long calls are made.
pub struct Scope<'a> {
    /// The conversation the calls belong to.
    pub task: &'a Task,
    /// The tools this caller may use; any other is refused, registered or not.
    pub visible: &'a BTreeSet<ToolName>,
    /// Who decides about dangerous calls.
    pub approve: ApprovalMode,
    /// Fires when the turn is to stop.
    pub cancel: &'a CancellationToken,
    /// Who is told.
    pub observer: &'a dyn Observer,
}

/// Everybody who takes part in calls, each list in its order.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Change what is asked for.
    pub middleware: Vec<Arc<dyn RequestMiddleware>>,
    /// Decide.
    pub pre: Vec<Arc<dyn PreHook>>,
    /// Stand around the tool, the first outermost.
    pub around: Vec<Arc<dyn ExecutionMiddleware>>,
    /// Rewrite results.
    pub transform: Vec<Arc<dyn TransformHook>>,
    /// Watch questions and their answers.
    pub approval: Vec<Arc<dyn ApprovalHook>>,
    /// Watch.
    pub post: Vec<Arc<dyn PostHook>>,
    /// Takes secrets out of results.
    pub redactor: Option<Arc<dyn Redactor>>,
    /// Keeps what is about to change.
    pub checkpointer: Option<Arc<dyn Checkpointer>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("pre", &self.pre.len()).field("post", &self.post.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("task", &self.task).field("visible", &self.visible).finish_non_exhaustive()
    }
}
