//! `hermes tools show`: one tool, as a person reads it.

use hermes_core::{Effect, Expected, ToolName};
use hermes_runtime::registry::Entry;
use hermes_runtime::{Checks, Snapshot, names};
use serde_json::{Value, json};

use super::{everything, missing};
use crate::terminal::out;
use crate::terminal::text::{padded, wrapped};
use crate::words::{Exit, Failure};

pub(super) fn show(snapshot: &Snapshot, checks: &Checks, name: &str, as_json: bool) -> Result<Exit, Failure> {
    let all = everything(snapshot);
    let entry = names::resolve(name, &all).and_then(|name| snapshot.get(name.as_str()));
    let Some(entry) = entry else {
        let nearest = names::nearest(name, all.iter().map(ToolName::as_str));
        let hint = nearest.first().map(|nearest| format!("; did you mean \"{nearest}\"?")).unwrap_or_default();
        return Err(Failure::usage(format!("there is no tool \"{name}\"{hint} (hermes tools list)")));
    };
    let spec = entry.tool.spec();
    if as_json {
        let examples: Vec<&str> = entry.tool.examples().iter().map(|example| example.arguments).collect();
        out::pretty(&json!({
            "name": spec.name.as_str(),
            "toolset": spec.toolset,
            "emoji": spec.emoji,
            "effect": spec.effect,
            "parallel": spec.parallel,
            "description": spec.description,
            "parameters": spec.parameters,
            "examples": examples,
            "owner": entry.owner.to_string(),
            "missing": missing(entry, checks),
        }))?;
        return Ok(Exit::Done);
    }
    let mut text = format!("{} {}   toolset {} · {}\n\n", spec.emoji, spec.name, spec.toolset, effect(spec.effect));
    text += &format!("{}\n\n", wrapped(&spec.description, 80, 0));
    if let Some((reason, fix)) = missing_words(entry, checks) {
        text += &format!("  ! cannot be used here: {reason} ({fix})\n\n");
    }
    let required = spec.required();
    for (argument, schema) in spec.properties().into_iter().flatten() {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("one of the values below");
        let need = if required.contains(&argument.as_str()) { "required" } else { "optional" };
        text += &format!("  {} {kind}, {need}\n", padded(argument, 14));
        if let Some(about) = schema.get("description").and_then(Value::as_str) {
            text += &format!("{}\n", wrapped(about, 80, 6));
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            let options: Vec<String> = options.iter().map(Value::to_string).collect();
            text += &format!("      {}\n", options.join(" | "));
        }
        for (field, schema) in schema.pointer("/items/properties").and_then(Value::as_object).into_iter().flatten() {
            let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            text += &format!("{}\n", wrapped(&format!("{field}: {about}"), 80, 8));
        }
    }
    text += "\nExamples:\n";
    for example in entry.tool.examples() {
        let expected = match example.expected {
            Expected::Fields(fields) => fields.to_owned(),
            Expected::Error(part) => format!("an error: {part}"),
        };
        text += &format!("  hermes tools call {} '{}'\n      → {expected}\n", spec.name, example.arguments);
    }
    out::line(&text)?;
    Ok(Exit::Done)
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::None => "reaches nothing",
        Effect::Converse => "talks with you",
        Effect::Read => "reads files",
        Effect::Network => "talks to the network",
        Effect::Write => "changes files",
        Effect::Execute => "runs programs",
    }
}

/// Why the tool cannot be used here, and what fixes it.
fn missing_words(entry: &Entry, checks: &Checks) -> Option<(String, String)> {
    match checks.of(entry) {
        hermes_core::Availability::Available => None,
        hermes_core::Availability::Missing { reason, fix } => Some((reason, fix)),
    }
}
