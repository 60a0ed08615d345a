//! Step 4: the arguments must satisfy the tool's schema, or the call ends here with everything that is wrong.
//!
//! All problems are named at once, and the expected shape with them, so that the model needs one more attempt, not five.

use std::fmt::Write as _;

use async_trait::async_trait;
use hermes_core::{JsonMap, ToolError, ToolSpec};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::parse::kind_in_words;
use super::{Call, Phase, Status, Step};
use crate::registry::Entry;

#[derive(Debug)]
pub(super) struct Validate;

#[async_trait]
impl Step for Validate {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let Some(entry) = call.entry.clone() else { return };
        if let Some(error) = error(&entry, &call.arguments) {
            call.refuse(Status::InvalidArguments, error);
        }
    }
}

pub(super) fn error(entry: &Entry, arguments: &JsonMap) -> Option<ToolError> {
    let spec = entry.tool.spec();
    let problems: Vec<String> = match entry.validator() {
        Ok(validator) => {
            let arguments = Value::Object(arguments.clone());
            validator.iter_errors(&arguments).map(|error| problem(&error)).collect()
        }
        // A schema that cannot be read cannot be satisfied: the restriction fails closed.
        Err(why) => vec![format!("the tool's own schema is broken: {why}")],
    };
    if problems.is_empty() {
        return None;
    }
    let message = format!("{}: {}; nothing was run. Expected {}.", spec.name, problems.join("; "), shape(spec));
    Some(ToolError::tell(message))
}

fn problem(error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let place = path.trim_start_matches('/').replace('/', ".");
    let value = error.instance();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            if place.is_empty() { format!("missing `{name}`") } else { format!("missing `{name}` in `{place}`") }
        }
        ValidationErrorKind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(kind) => with_article(&kind.to_string()),
                TypeKind::Multiple(kinds) => {
                    kinds.iter().map(|kind| with_article(&kind.to_string())).collect::<Vec<_>>().join(" or ")
                }
            };
            format!("`{place}` must be {wanted}, but it is {}{}", kind_in_words(value), excerpt(value))
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> = options.as_array().into_iter().flatten().map(Value::to_string).collect();
            format!("`{place}` must be one of {}, not {}", options.join(", "), short(value))
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("no such argument: `{}`", unexpected.join("`, `"))
        }
        _ if place.is_empty() => error.to_string(),
        _ => format!("`{place}`: {error}"),
    }
}

fn with_article(kind: &str) -> String {
    match kind {
        "null" => kind.into(),
        kind if kind.starts_with(['a', 'i', 'o']) => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

fn excerpt(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) | Value::Null => String::new(),
        value => format!(" ({})", short(value)),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(60).chain(['…']).collect() }
}

/// The expected arguments in one line: `{path: string, offset?: integer}`.
fn shape(spec: &ToolSpec) -> String {
    let required = spec.required();
    let mut out = String::from("{");
    for (i, (name, schema)) in spec.properties().into_iter().flatten().enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        let _ = write!(out, "{comma}{name}{optional}: {}", type_in_words(schema));
    }
    out + "}"
}

fn type_in_words(schema: &Value) -> String {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return options.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    }
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            format!("[{}]", schema.get("items").map_or_else(|| "any".into(), type_in_words))
        }
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
        _ => "any".into(),
    }
}
