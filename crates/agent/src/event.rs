//! What an agent tells whoever watches it.

use std::time::Duration;

use hermes_core::{ToolCall, Usage};
use hermes_runtime::{CallReport, Observer};

/// Something happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The model is asked; counted from 1 within the turn.
    Asking {
        /// Which request of this turn.
        request: u32,
    },
    /// More of the answer.
    Text(&'a str),
    /// More of the model's reasoning.
    Reasoning(&'a str),
    /// The attempt failed; what this request showed so far is void.
    Restart {
        /// What went wrong.
        reason: &'a str,
        /// How long until the next attempt.
        delay: Duration,
        /// Which attempt comes next, counted from 1.
        attempt: u32,
        /// How many there are at most.
        of: u32,
    },
    /// The model's turn is whole.
    Replied {
        /// Its text.
        text: &'a str,
        /// Its calls.
        calls: &'a [ToolCall],
        /// What it cost.
        usage: Usage,
    },
    /// A call enters the chain.
    CallStarted(&'a ToolCall),
    /// A call has its answer.
    CallFinished(&'a CallReport),
    /// Something that a person should know: a call takes long, a hook failed, a schema was refused.
    Warned {
        /// The call it is about, if it is about one.
        call: Option<&'a ToolCall>,
        /// One line.
        message: &'a str,
    },
    /// Something happened to a process in the background; one line. The model is told as well.
    News(&'a str),
    /// The budget is spent; one closing request without tools follows.
    BudgetSpent {
        /// How many requests were allowed.
        of: u32,
    },
}

/// Whoever watches.
pub trait Listener: Send + Sync {
    /// Takes note of an event. Must not block for long: the agent waits.
    fn hear(&self, event: Event<'_>);
}

/// Passes what dispatch reports on to a [`Listener`].
pub(crate) struct Calls<'a>(pub(crate) &'a dyn Listener);

impl Observer for Calls<'_> {
    fn started(&self, call: &ToolCall) {
        self.0.hear(Event::CallStarted(call));
    }

    fn finished(&self, report: &CallReport) {
        self.0.hear(Event::CallFinished(report));
    }

    fn warned(&self, call: &ToolCall, message: &str) {
        self.0.hear(Event::Warned { call: Some(call), message });
    }
}
