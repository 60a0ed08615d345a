//! What others need to know about a tool without running it.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::ToolName;

/// The strongest thing a tool does. It decides what may run side by side and what has to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Computes an answer and reaches nothing.
    None,
    /// Talks with the person.
    Converse,
    /// Reads files.
    Read,
    /// Talks to the network.
    Network,
    /// Changes files.
    Write,
    /// Runs programs.
    Execute,
}

/// The static facts of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// What the model calls it.
    pub name: ToolName,
    /// Names that other agents have for such a tool. A call of one of them is never run, it is answered with this tool.
    pub also_known_as: Vec<String>,
    /// The set it is switched on and off with.
    pub toolset: String,
    /// Shown beside each call.
    pub emoji: String,
    /// One paragraph that the model reads.
    pub description: String,
    /// JSON Schema (draft 2020-12) of the arguments: always an object schema with `properties`.
    pub parameters: Value,
    /// The strongest thing it does.
    pub effect: Effect,
    /// Whether a call may run beside other calls of the same turn.
    pub parallel: bool,
    /// Environment variables without which the tool does nothing.
    pub requires_env: Vec<String>,
    /// Programs without which the tool does nothing.
    pub requires_programs: Vec<String>,
    /// Whether Tool Search may leave it out of the first list.
    pub deferrable: bool,
    /// Whether its answers may hold text that somebody outside wrote: a web page, another server. Such text is marked as
    /// data before a model reads it. A tool that only knows afterwards says so with [`crate::ToolOutput::from_outside`].
    pub outside: bool,
    /// After this time a call is dropped; `None`: the dispatcher's own limit.
    pub deadline: Option<Duration>,
    /// A result above this many characters is stored beside the conversation and shown as a preview; `None`: never.
    pub max_result_chars: Option<usize>,
}

impl ToolSpec {
    /// The result cap of a tool that does not set its own (spec core §16.1).
    pub const DEFAULT_MAX_RESULT_CHARS: usize = 100_000;

    /// A tool that reaches nothing, runs alone, needs nothing, and takes the arguments of `parameters`.
    pub fn new(name: ToolName, parameters: Value) -> Self {
        Self {
            name,
            also_known_as: Vec::new(),
            toolset: String::new(),
            emoji: "⚡".into(),
            description: String::new(),
            parameters,
            effect: Effect::None,
            parallel: false,
            requires_env: Vec::new(),
            requires_programs: Vec::new(),
            deferrable: false,
            outside: false,
            deadline: None,
            max_result_chars: Some(Self::DEFAULT_MAX_RESULT_CHARS),
        }
    }

    /// The names of the declared arguments, in the order of the schema.
    pub fn argument_names(&self) -> Vec<&str> {
        self.properties().map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// The arguments without which a call is broken.
    pub fn required(&self) -> Vec<&str> {
        let list = self.parameters.get("required").and_then(Value::as_array);
        list.map(|names| names.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    }

    /// The schemas of the declared arguments.
    pub fn properties(&self) -> Option<&crate::JsonMap> {
        self.parameters.get("properties").and_then(Value::as_object)
    }
}
