//! The ports: what somebody else must supply so that tools can act and an agent can think.
//!
//! [`crate::Environment`] has a file of its own. A port appears here together with the code that first fills it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::{CancellationToken, Definition, Message, ToolCall, Usage};
use async_trait::async_trait;
use serde::Serialize;

// ---------------------------------------------------------------------------------------------------------- todos

/// The agent's todo list.
pub trait Todos: Send + Sync {
    /// The list as it stands.
    fn read(&self) -> Vec<TodoItem>;
    /// Puts a new list in its place and answers what was stored.
    fn replace(&self, items: Vec<TodoItem>) -> Vec<TodoItem>;
}

/// One thing to do (spec agent §8.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TodoItem {
    /// Unique within the list.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a thing to do is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
}

// ---------------------------------------------------------------------------------------------------------- model

/// A language model that can call tools.
#[async_trait]
pub trait Model: Send + Sync {
    /// The name that is shown and written down, for example `gpt-5`.
    fn name(&self) -> &str;

    /// Asks for one assistant turn. `deltas` is called with each piece as it arrives; after a [`ModelDelta::Restart`]
    /// what came before it is void. The reply is whole, or it is an error: half a turn is never returned.
    async fn respond(
        &self,
        request: ModelRequest<'_>,
        deltas: &mut (dyn FnMut(ModelDelta) + Send),
        cancel: &CancellationToken,
    ) -> Result<ModelReply, ModelError>;
}

/// What a model is asked.
#[derive(Clone, Debug)]
pub struct ModelRequest<'a> {
    /// The conversation, system message first.
    pub messages: &'a [Message],
    /// The tools it may call, as sent; empty leaves the field out.
    pub definitions: Arc<[Definition]>,
}

/// A piece of a turn that is still arriving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelDelta {
    /// More of the visible text.
    Text(String),
    /// More of the model's reasoning; shown at most, never stored.
    Reasoning(String),
    /// The attempt failed and another begins: forget what this turn showed so far.
    Restart {
        /// What went wrong, in one line.
        reason: String,
        /// How long until the next attempt.
        delay: Duration,
        /// Which attempt comes next, counted from 1.
        attempt: u32,
        /// How many there are at most.
        of: u32,
    },
}

/// A whole assistant turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    /// The visible text.
    pub text: String,
    /// The calls, in the model's order.
    pub calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish: Finish,
    /// What it cost.
    pub usage: Usage,
}

/// Why a model stopped writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It was done, or it wants its calls answered.
    Done,
    /// Its output limit cut it off.
    Length,
    /// The provider filtered the answer.
    Filtered,
}

/// Why there is no turn.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct ModelError {
    /// The kind, for exit codes and hints.
    pub kind: ModelErrorKind,
    /// One line: what happened, where, after how many attempts.
    pub message: String,
}

/// The kinds of model trouble that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// Nobody answered there.
    Unreachable,
    /// The key is missing, wrong or not allowed (401, 403).
    Credentials,
    /// The provider does not know the model or the address (404).
    NotFound,
    /// The provider says the request is wrong (other 4xx).
    Rejected,
    /// Too many requests or an overloaded provider, also after waiting (429, 5xx).
    Busy,
    /// What came back was no usable answer, or broke off.
    Garbled,
    /// The person stopped it.
    Cancelled,
    /// A script has no more turns.
    ScriptEnded,
}

// ---------------------------------------------------------------------------------------------------------- clock

/// The time, so that tests and replays can fix it.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> SystemTime;
}
