//! A call as the model made it, before anybody believed a word of it.

use crate::JsonMap;

/// One tool call of one model turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Pairs the call with its result; unique within a conversation.
    pub id: String,
    /// The name as the model wrote it; it may name no tool at all.
    pub name: String,
    /// The arguments as they came.
    pub arguments: RawArguments,
}

/// Arguments before they are parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum RawArguments {
    /// The text that the model wrote; it may be cut off or no JSON at all.
    Text(String),
    /// The text that the model wrote until its output limit stopped it. However complete it looks, it may be the
    /// beginning of something else.
    Cut(String),
    /// An object from a caller that is a program (a script, the command line).
    Object(JsonMap),
}

impl RawArguments {
    /// The arguments as JSON text, byte for byte as the model wrote them where it wrote them.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) | Self::Cut(text) => text.clone(),
            Self::Object(map) => serde_json::Value::Object(map.clone()).to_string(),
        }
    }
}
