//! A conversation, in the one form that every model adapter translates from.

use crate::{Attachment, ToolCall};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// What the agent is told before anything else.
    System(String),
    /// What the person said.
    User(String),
    /// What the model said: text, calls, or both.
    Assistant {
        /// The text, without the model's reasoning.
        text: String,
        /// The calls, in the model's order.
        calls: Vec<ToolCall>,
    },
    /// The answer to one call. Every call has exactly one.
    ToolResult {
        /// Which call.
        call_id: String,
        /// The tool's name as the model wrote it.
        name: String,
        /// What the model reads.
        content: String,
    },
    /// Pictures that came with the results before it. It is sent as a message of the person, because most providers take
    /// nothing but text in a result.
    Pictures {
        /// What they are, and what else is to be said here.
        text: String,
        /// In the order of the text.
        pictures: Vec<Attachment>,
    },
}

/// Tokens, as the provider counted them; zero where it did not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// The part of `input_tokens` that came from the provider's cache.
    pub cached_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
    }
}
