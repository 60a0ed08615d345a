//! The words and the ports of Hermes.
//!
//! Every other crate speaks in terms of this one: what a [`Tool`] is, what a [`ToolCall`] asks for, what a
//! [`ToolOutput`] or [`ToolError`] answers, and which *ports* ([`Environment`], [`Judge`], [`Asker`], [`Model`],
//! [`Todos`], [`Clock`]) somebody else must fill so that a tool can act and an agent can think.
//!
//! What this crate refuses to do: I/O of any kind, reading environment variables, knowing a home directory, a
//! terminal or a wire protocol. A type that needs one of those belongs in `exec`, `agent` or `cli`.
//!
//! The one tricky idea is [`Touches`]: a tool says, from the arguments alone and before anything runs, what the call
//! would read, write or execute. The planner, the judge and the approval prompt all decide from that one statement.
//!
//! Start reading at [`tool`], then [`call`] and [`ports`].
#![warn(missing_docs)]

pub mod approval;
pub mod availability;
pub mod call;
pub mod definition;
pub mod environment;
pub mod hooks;
pub mod layout;
pub mod message;
pub mod name;
pub mod output;
pub mod ports;
pub mod process;
pub mod rehearsal;
pub mod spec;
pub mod stated_path;
pub mod text;
pub mod tool;
pub mod touches;
pub mod work;

pub use approval::{
    Answer, Approval, ApprovalBook, ApprovalHook, ApprovalRequest, ApprovalReviewer, ApprovalScope, Asker, Changes,
    CommandPlace, Concern, Doubt, Judge, JudgeRequest, Opinion, PasswordWish, Question, RequestEnd, Review, Verdict,
};
pub use availability::{Availability, Check, Surroundings};
pub use call::{RawArguments, ToolCall};
pub use definition::Definition;
pub use environment::{
    AtLimit, Capabilities, Command, Environment, EnvironmentError, FileError, FileErrorKind, FileKind, FileStat,
    FileVersion, Finished, FinishedHow, Kept,
};
pub use hooks::{
    Checkpointer, Edit, EditReviewer, ExecutionMiddleware, HookCall, HookDecision, HookFacts, HookResult, Next,
    OnError, PostHook, PreHook, Redactor, RequestMiddleware, TransformHook,
};
pub use layout::{Layout, LineFeed};
pub use message::{Message, Usage};
pub use name::{InvalidToolName, ToolName};
pub use output::{Attachment, Content, NOT_REHEARSED, StopTurn, ToolError, ToolOutput, ToolResult};
pub use ports::{
    Clock, Finish, Model, ModelDelta, ModelError, ModelErrorKind, ModelReply, ModelRequest, TodoItem, TodoStatus, Todos,
};
pub use process::{
    InputError, Place, Process, ProcessEntry, ProcessFacts, ProcessNews, ProcessState, Processes, Reserved, Screen,
    Start, TerminalSize, Watched,
};
pub use rehearsal::{Pending, Rehearsal, Rehearsed};
pub use spec::{Effect, ToolSpec};
pub use text::{grouped, plural, shown_path};
pub use tokio_util::sync::CancellationToken;
pub use tool::{Example, Expected, Limits, Scratch, Tool, ToolCx, ToolSource};
pub use touches::{Touches, Typed};
pub use work::{Work, WorkError, WorkLimits};

/// A JSON object whose keys keep the order in which they were written.
pub type JsonMap = serde_json::Map<String, serde_json::Value>;
