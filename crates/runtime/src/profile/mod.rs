//! Whose dialect a tool's definition is written in.
//!
//! Every provider takes "JSON Schema" and refuses a different part of it, and refuses the whole request because of one
//! keyword in one tool of some MCP server. So each tool's schema is rewritten for the provider at hand, by a pure function
//! over a borrowed schema: the registry's own is never touched, it stays what calls are validated against.
//!
//! What this module refuses to do: know a tool, remember anything between calls, or tighten a schema. What a provider
//! cannot be told is left out or said in a description, and the tool's own schema still checks the call.
//!
//! The tricky idea is that a schema is not "any JSON map". Only the known places hold schemas (`keywords.rs`); defaults,
//! constants and enum values are data that is copied as it is or left out whole; members of `properties` are names. The
//! original's recursion into every map is where its corrupted defaults came from (spec core §20, 22).
//!
//! The second opinion is [`Profile::check`]: the rules again, written independently, with the meta-schema of draft 2020-12
//! as their base. The tests demand that it finds nothing in whatever the transformation makes, of whatever input.
//!
//! Start reading at `rules.rs` (what each provider wants, with sources), then `shape.rs` (the one pass), then `full.rs` and
//! `closed.rs` (the two ways a node ends). To add a provider: a [`Profile`], a row in `rules.rs`, its rules in `check.rs`.

mod check;
mod closed;
mod full;
mod keywords;
mod refs;
mod rules;
mod shape;
mod stripped;
mod text;
mod unions;
mod written;

use std::borrow::Cow;

use hermes_core::{Definition, ToolName};
use serde_json::{Map, Value};

use shape::Shaper;
pub use stripped::Stripped;

/// Whose dialect definitions are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Profile {
    /// `OpenAI` Chat Completions, and everything that calls itself compatible with it.
    OpenAiChat,
    /// `OpenAI` Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `generateContent`: function declarations.
    Gemini,
    /// llama.cpp and others that turn the schema into a grammar, over the Chat Completions API.
    Local,
}

impl Profile {
    /// Every profile.
    pub const ALL: &[Profile] = &[Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Local];

    /// The stable text for configuration and reports: `openai`, `openai-responses`, `anthropic`, `gemini` or `local`.
    pub fn id(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Local => "local",
        }
    }

    /// The name under which this provider is shown the tool `name`; borrowed if it is the same, which it nearly always is.
    ///
    /// All take 1 to 64 characters out of `A-Z a-z 0-9 _ -`, as [`ToolName`] does. Gemini's must begin with a letter or
    /// an underscore (API reference, *FunctionDeclaration.name*), so one that does not gets an underscore in front and
    /// loses what is then beyond 64. Two names that only differ there would become one: the caller, who sees all names,
    /// has to look.
    pub fn shown_name(self, name: &ToolName) -> Cow<'_, str> {
        let text = name.as_str();
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if self != Self::Gemini || starts_well {
            return Cow::Borrowed(text);
        }
        // All characters are ASCII, see ToolName.
        let kept = text.get(..ToolName::MAX_CHARS - 1).unwrap_or(text);
        Cow::Owned(format!("_{kept}"))
    }

    /// One tool's definition in this provider's form, whatever `parameters` is: something that is no schema becomes a tool
    /// without parameters. The same input always gives the same bytes, and giving the result's schema in again changes
    /// nothing.
    ///
    /// - `name`: as from [`Profile::shown_name`].
    /// - `description`: cut where this provider has a limit.
    /// - `without`: keywords that this session's provider refused; they are left out.
    ///
    /// | Profile | Form |
    /// |---|---|
    /// | chat, local | `{"type": "function", "function": {"name", "description", "parameters"}}` |
    /// | Responses | `{"type": "function", "name", "description", "parameters", "strict": false}` |
    /// | Anthropic | `{"name", "description", "input_schema"}` |
    /// | Gemini | `{"name", "description", "parameters"}`, the last only if there are any |
    pub fn definition(self, name: &str, description: &str, parameters: &Value, without: &Stripped) -> Value {
        let rules = rules::of(self);
        let parameters = Shaper::new(rules, parameters, without).parameters();
        let mut inner = Map::with_capacity(5);
        if self == Self::OpenAiResponses {
            inner.insert("type".to_owned(), Value::from("function"));
        }
        inner.insert("name".to_owned(), Value::from(name));
        inner.insert("description".to_owned(), Value::String(text::cut(description, rules.tool_description)));
        if let Some(parameters) = parameters {
            let key = if self == Self::Anthropic { "input_schema" } else { "parameters" };
            inner.insert(key.to_owned(), parameters);
        }
        match self {
            Self::OpenAiChat | Self::Local => {
                let mut outer = Map::with_capacity(2);
                outer.insert("type".to_owned(), Value::from("function"));
                outer.insert("function".to_owned(), Value::Object(inner));
                return Value::Object(outer);
            }
            // Not strict: that wants every property required, and none of ours was written that way.
            Self::OpenAiResponses => drop(inner.insert("strict".to_owned(), Value::Bool(false))),
            Self::Anthropic | Self::Gemini => {}
        }
        Value::Object(inner)
    }

    /// The same as text, which is what is kept and sent.
    pub fn text(self, name: &str, description: &str, parameters: &Value, without: &Stripped) -> Definition {
        written::text(self, name, description, parameters, without)
    }

    /// Everything this provider would refuse in `definition`, in the order of the definition; empty if it is accepted.
    ///
    /// Checks the form, then the schema against the meta-schema of draft 2020-12, whether its references lead anywhere and
    /// its patterns are regular expressions, then this provider's own rules. Defaults and other data are not looked into.
    pub fn check(self, definition: &Value) -> Vec<String> {
        check::check(self, definition)
    }
}
