//! The list that a model sees: one pure function, sorted by name, the same bytes for the same input.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermes_core::ToolName;
use serde_json::{Value, json};

use crate::registry::Snapshot;

/// The definitions of the `visible` tools in the form of the `OpenAI` Chat Completions API (*tools*).
///
/// A name that is not registered any more is left out.
pub fn build(snapshot: &Snapshot, visible: &BTreeSet<ToolName>) -> Arc<[Value]> {
    let sees = |name: &str| visible.contains(name);
    visible
        .iter()
        .filter_map(|name| snapshot.get(name.as_str()))
        .map(|entry| {
            let spec = entry.tool.spec();
            json!({
                "type": "function",
                "function": {
                    "name": spec.name.as_str(),
                    "description": entry.tool.describe(&sees),
                    "parameters": spec.parameters,
                },
            })
        })
        .collect()
}
