//! Stand-in until the branch `profiles` is merged.
use hermes_core::ToolName;
use serde_json::{Value, json};
use std::borrow::Cow;
/// d
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Profile {
    /// d
    OpenAiChat,
    /// d
    OpenAiResponses,
    /// d
    Anthropic,
    /// d
    Gemini,
    /// d
    Local,
}
/// d
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stripped(Vec<String>);
impl Profile {
    /// d
    pub const ALL: &[Profile] = &[Self::OpenAiChat];
    /// d
    pub fn id(self) -> &'static str {
        "openai"
    }
    /// d
    pub fn shown_name(self, name: &ToolName) -> Cow<'_, str> {
        name.as_str().into()
    }
    /// d
    pub fn definition(self, name: &str, description: &str, parameters: &Value, _without: &Stripped) -> Value {
        json!({ "type": "function", "function": { "name": name, "description": description, "parameters": parameters } })
    }
}
impl Stripped {
    /// d
    pub fn named_in(_message: &str) -> Self {
        Self::default()
    }
    /// d
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// d
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
    /// d
    pub fn add(&mut self, _other: &Self) -> bool {
        false
    }
}
