//! What a call answers: an output, or one of exactly two kinds of error.

use serde_json::{Value, json};

use crate::{JsonMap, Pending};

/// What the function of a tool returns.
pub type ToolResult = Result<ToolOutput, ToolError>;

/// A successful answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Content,
    /// Pictures and the like that travel beside the text.
    pub attachments: Vec<Attachment>,
    /// Who wrote the text, where that was somebody outside, for example `https://example.org`.
    pub origin: Option<String>,
    /// A few words for the person at the screen, for example `14 matches in 3 files`.
    pub summary: Option<String>,
    /// What was only rehearsed so far.
    pub pending: Option<Pending>,
    /// A few lines more for the person, for example the last lines that a command printed.
    pub detail: Vec<String>,
    /// The detail is a difference: lines that begin with `+` were added, those with `-` taken away.
    pub is_diff: bool,
}

/// The part of an output that the model reads as text.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Sent as it stands.
    Text(String),
    /// Sent as compact JSON in the order of its keys.
    Json(Value),
}

/// Binary data beside the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// For example `image/png`.
    pub media_type: String,
    /// The bytes themselves.
    pub data: Vec<u8>,
}

impl ToolOutput {
    /// A JSON answer.
    pub fn json(value: Value) -> Self {
        Self::of(Content::Json(value))
    }

    /// A text answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Content::Text(text.into()))
    }

    fn of(content: Content) -> Self {
        Self {
            content,
            attachments: Vec::new(),
            origin: None,
            summary: None,
            pending: None,
            detail: Vec::new(),
            is_diff: false,
        }
    }

    /// Adds what was only rehearsed; whoever dispatched the call decides what becomes of it.
    #[must_use]
    pub fn with_pending(mut self, pending: Pending) -> Self {
        self.pending = Some(pending);
        self
    }

    /// Says that somebody outside wrote the text; a model is then told that it is data and no instruction.
    #[must_use]
    pub fn from_outside(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Adds the lines that a person sees below the call.
    #[must_use]
    pub fn with_detail(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.detail = lines.into_iter().collect();
        self
    }

    /// Adds a difference that a person sees below the call.
    #[must_use]
    pub fn with_diff(self, lines: impl IntoIterator<Item = String>) -> Self {
        Self { is_diff: true, ..self.with_detail(lines) }
    }

    /// Adds the words that a person sees beside the call.
    #[must_use]
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self::json(value)
    }
}

/// The two kinds of error. There is no third: nothing panics, nothing is recognised by its text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ToolError {
    /// The model is told, as a JSON object with an `error` key, and goes on.
    #[error("{}", .0.get("error").and_then(Value::as_str).unwrap_or("the tool failed"))]
    Tell(JsonMap),
    /// The turn ends here.
    #[error("{0}")]
    Stop(StopTurn),
}

/// The `status` of an error about a rehearsal that could not be made; the reason stands in `why`.
pub const NOT_REHEARSED: &str = "not_rehearsed";

/// Why a turn must end in the middle of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopTurn {
    /// The person asked to stop.
    #[error("stopped by the user")]
    Cancelled,
    /// The same call was made again and again to no avail; the text names it.
    #[error("{0}")]
    Repetition(String),
    /// The runtime cannot go on; the text says why.
    #[error("{0}")]
    Broken(String),
}

impl ToolError {
    /// An error the model can recover from: one sentence that says what happened, where, and what to do next.
    pub fn tell(message: impl Into<String>) -> Self {
        let mut map = JsonMap::new();
        map.insert("error".into(), Value::String(message.into()));
        Self::Tell(map)
    }

    /// The answer of a tool that was to rehearse a command and could not, for a reason that is none against running it:
    /// whoever made a rehearsal of the call asks about it as it was.
    pub fn not_rehearsed(message: impl Into<String>, why: &str) -> Self {
        Self::tell(message).with("status", NOT_REHEARSED).with("why", why)
    }

    /// Adds a field beside `error`. A [`ToolError::Stop`] has no fields and stays as it is.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Self::Tell(map) = &mut self {
            map.insert(key.into(), value.into());
        }
        self
    }
}

impl From<ToolError> for Value {
    fn from(error: ToolError) -> Self {
        let said = error.to_string();
        match error {
            ToolError::Tell(mut map) => {
                // Without it the answer would read like a success.
                map.entry("error").or_insert_with(|| said.into());
                Self::Object(map)
            }
            ToolError::Stop(stop) => json!({ "error": stop.to_string() }),
        }
    }
}
