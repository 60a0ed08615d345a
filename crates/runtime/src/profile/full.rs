//! The last step where JSON Schema itself is spoken: `OpenAI`, and Anthropic with its reservations. What was fine is left
//! byte for byte as it was; and the root, which has the same rules everywhere.

use serde_json::{Map, Value};

use super::keywords::Types;
use super::rules::Dialect;
use super::shape::{Draft, Mode, Shaper};
use super::text::{PARAMETER_DESCRIPTION_CHARS, cut, noted};

/// What no provider takes at the root, or what means nothing there.
const NOT_AT_THE_ROOT: [&str; 4] = ["enum", "const", "not", "nullable"];

impl Shaper<'_> {
    /// The whole schema, as the parameters of a tool: an object with properties. Nothing if this provider wants none
    /// for a tool without parameters.
    pub(super) fn parameters(&mut self) -> Option<Value> {
        let mut draft = self.draft(self.root, 0, Mode::Fold);
        self.fold_alternatives(&mut draft);
        if says_any(&draft.map, &NOT_AT_THE_ROOT) {
            draft.map.retain(|keyword, _| !NOT_AT_THE_ROOT.contains(&keyword.as_str()));
        }
        draft.nullable = false;
        draft.types = Types::OBJECT;
        if draft.map.contains_key("type") {
            draft.map.insert("type".to_owned(), Value::from("object"));
        } else {
            let rest = std::mem::take(&mut draft.map);
            draft.map.insert("type".to_owned(), Value::from("object"));
            draft.map.extend(rest);
        }
        if !says_any(&draft.map, &["properties"]) {
            draft.map.insert("properties".to_owned(), Value::Object(Map::new()));
        }
        match self.rules.dialect {
            Dialect::Full => Some(self.finish_full(draft)),
            Dialect::Gemini | Dialect::Local => self.closed_root(draft),
        }
    }

    pub(super) fn finish_full(&mut self, mut draft: Draft) -> Value {
        draft.drop_repeats();
        let map = &mut draft.map;
        if draft.types.has(Types::ARRAY) && !map.contains_key("items") {
            map.insert("items".to_owned(), Value::Object(Map::new()));
        }
        if self.rules.plain_names {
            fold_patterns(map, !self.without.contains("additionalProperties"));
        }
        // Elsewhere in the node there may be more properties.
        let complete = !says_any(map, &["$ref", "allOf", "anyOf", "oneOf"]);
        if complete && (draft.types.has(Types::OBJECT) || says_any(map, &["properties"])) {
            prune(map, "required");
        }
        if !complete && map.contains_key("$ref") {
            map.shift_remove("default");
        }
        if draft.nullable && self.rules.nullable && !self.without.contains("nullable") {
            map.insert("nullable".to_owned(), Value::Bool(true));
        }
        describe(map, &draft.notes);
        Value::Object(draft.map)
    }
}

/// Whether one of `keywords` is there. A node has few words, and comparing them is cheaper than hashing.
fn says_any(map: &Map<String, Value>, keywords: &[&str]) -> bool {
    map.keys().any(|keyword| keywords.contains(&keyword.as_str()))
}

/// A single pattern's schema becomes that of all further properties, if that `may` be said; several say too little about
/// each.
fn fold_patterns(map: &mut Map<String, Value>, may: bool) {
    let Some(Value::Object(patterns)) = map.shift_remove("patternProperties") else { return };
    if !matches!(map.get("additionalProperties"), None | Some(Value::Bool(false))) {
        return;
    }
    let mut schemas = patterns.into_iter().map(|(_, schema)| schema);
    match (schemas.next(), schemas.next()) {
        (Some(only), None) if may => {
            map.insert("additionalProperties".to_owned(), only);
        }
        (None, _) => {}
        _ => {
            map.shift_remove("additionalProperties");
        }
    }
}

/// Leaves in a list of names those that are properties, and the list out if none is.
pub(super) fn prune(map: &mut Map<String, Value>, list: &str) {
    let Some(Value::Array(names)) = map.get_mut(list) else { return };
    let mut names = std::mem::take(names);
    if names.is_empty() {
        return;
    }
    match map.get("properties") {
        Some(Value::Object(properties)) => {
            names.retain(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
        }
        _ => names.clear(),
    }
    if names.is_empty() {
        map.shift_remove(list);
    } else if let Some(list) = map.get_mut(list) {
        *list = Value::Array(names);
    }
}

/// Puts `notes` behind the description, and keeps it within its limit.
pub(super) fn describe(map: &mut Map<String, Value>, notes: &[String]) {
    let own = map.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = if notes.is_empty() {
        if own.len() <= PARAMETER_DESCRIPTION_CHARS {
            return;
        }
        cut(own, PARAMETER_DESCRIPTION_CHARS)
    } else {
        noted(own, &notes.join(" "))
    };
    map.insert("description".to_owned(), Value::String(text));
}
