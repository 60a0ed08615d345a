//! A schema on its way into a provider's dialect, for the tests that look at what becomes of it.

use hermes_runtime::profile::{Profile, Stripped};
use serde_json::Value;

/// The part of a definition that is the schema.
pub(crate) fn schema_of(profile: Profile, definition: &Value) -> Option<&Value> {
    match profile {
        Profile::OpenAiChat | Profile::Local => definition["function"].get("parameters"),
        Profile::OpenAiResponses | Profile::Gemini => definition.get("parameters"),
        Profile::Anthropic => definition.get("input_schema"),
    }
}

pub(crate) fn define(profile: Profile, parameters: &Value) -> Value {
    profile.definition("a_tool", "Does something.", parameters, &Stripped::default())
}
