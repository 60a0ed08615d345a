//! The text of a definition, and the short way to it.
//!
//! Most tools have a schema that the providers with the full dialect take as it is: an object of plain arguments and
//! lists of them. Theirs is written straight from the tool's own schema, without a copy that would be thrown away. The
//! short way says nothing that the long one does not, and the tests demand the same bytes of both.

use hermes_core::Definition;
use serde::Serialize;
use serde_json::{Map, Value};

use super::rules::{self, Dialect, Rules, is_plain_name};
use super::shape::is_plain;
use super::stripped::Stripped;
use super::{Profile, text};

/// See [`Profile::text`].
pub(super) fn text(
    profile: Profile,
    name: &str,
    description: &str,
    parameters: &Value,
    without: &Stripped,
) -> Definition {
    let rules = rules::of(profile);
    if rules.dialect != Dialect::Full || !without.is_empty() || !is_plain_root(parameters, &rules) {
        return Definition::new(&profile.definition(name, description, parameters, without));
    }
    let description = text::cut(description, rules.tool_description);
    match profile {
        Profile::OpenAiResponses => {
            Definition::new(&Responses { r#type: "function", name, description, parameters, strict: false })
        }
        Profile::Anthropic => Definition::new(&Anthropic { name, description, input_schema: parameters }),
        Profile::OpenAiChat | Profile::Gemini | Profile::Local => {
            let function = Function { name, description, parameters };
            Definition::new(&Chat { r#type: "function", function })
        }
    }
}

#[derive(Serialize)]
struct Chat<'a> {
    r#type: &'a str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: String,
    parameters: &'a Value,
}

#[derive(Serialize)]
struct Responses<'a> {
    r#type: &'a str,
    name: &'a str,
    description: String,
    parameters: &'a Value,
    strict: bool,
}

#[derive(Serialize)]
struct Anthropic<'a> {
    name: &'a str,
    description: String,
    input_schema: &'a Value,
}

/// Whether the long way would give `parameters` back unchanged. No is always a safe answer.
fn is_plain_root(parameters: &Value, rules: &Rules) -> bool {
    let Value::Object(root) = parameters else { return false };
    let Some(Value::Object(properties)) = root.get("properties") else { return false };
    let fits = |(name, schema): (&String, &Value)| {
        (!rules.plain_names || is_plain_name(name)) && (is_plain(schema) || is_plain_list(schema))
    };
    root.get("type").and_then(Value::as_str) == Some("object")
        && root.iter().all(|(keyword, value)| match keyword.as_str() {
            "type" | "properties" => true,
            "required" => is_plain_required(value, properties),
            _ => false,
        })
        && properties.iter().all(fits)
}

fn is_plain_required(required: &Value, properties: &Map<String, Value>) -> bool {
    let Value::Array(names) = required else { return false };
    !names.is_empty()
        && names.iter().enumerate().all(|(at, name)| {
            name.as_str().is_some_and(|text| properties.contains_key(text)) && !names[..at].contains(name)
        })
}

fn is_plain_list(schema: &Value) -> bool {
    let Value::Object(list) = schema else { return false };
    let is_description =
        |value: &Value| value.as_str().is_some_and(|text| text.len() <= text::PARAMETER_DESCRIPTION_CHARS);
    list.get("type").and_then(Value::as_str) == Some("array")
        && list.contains_key("items")
        && list.iter().all(|(keyword, value)| match keyword.as_str() {
            "type" => true,
            "items" => is_plain(value),
            "description" => is_description(value),
            _ => false,
        })
}
