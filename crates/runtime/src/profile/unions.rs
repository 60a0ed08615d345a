//! Putting schemas together: a part into its node, alternatives into one list, and alternatives of an object into the
//! object, so that the model sees every argument there is.
//!
//! Folding loosens and never tightens: what a provider cannot be told is not enforced there, and every call is validated
//! against the tool's own schema anyway.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::keywords::Types;
use super::rules::{Dialect, ENUM_VALUES_UNCOUNTED, VARIANTS};
use super::shape::{Draft, Shaper};

/// Puts `part` into `into`. Where both say something, properties and required names are put together and otherwise
/// `into` is right.
pub(super) fn fold(into: &mut Draft, part: Draft) {
    for (keyword, value) in part.map {
        let Some(own) = into.map.get_mut(&keyword) else {
            into.map.insert(keyword, value);
            continue;
        };
        match (keyword.as_str(), own, value) {
            (
                "properties" | "patternProperties" | "dependentSchemas" | "$defs",
                Value::Object(own),
                Value::Object(more),
            ) => {
                for (name, schema) in more {
                    own.entry(name).or_insert(schema);
                }
            }
            ("required", Value::Array(own), Value::Array(more)) => {
                own.extend(more);
                into.repeats = true;
            }
            _ => {}
        }
    }
    if into.types.is_empty() {
        into.types = part.types;
    }
    into.guess = into.guess.with(part.guess);
    into.nullable |= part.nullable;
    into.repeats |= part.repeats;
    into.branches.extend(part.branches);
    into.notes.extend(part.notes);
}

impl Shaper<'_> {
    /// Folds every union of an object into its properties. A name is required if the node or every alternative says so.
    pub(super) fn fold_alternatives(&mut self, draft: &mut Draft) {
        while !draft.branches.is_empty() {
            let mut group = draft.branches.remove(0);
            let all = group.len();
            group.retain(|branch| !branch.is_null());
            draft.nullable |= group.len() < all;
            if group.len() == 1 {
                if let Some(only) = group.pop() {
                    fold_object(draft, only);
                }
                continue;
            }
            let mut variants = Map::new();
            let mut required: Option<Vec<Value>> = None;
            for mut branch in group {
                if !branch.types.is_empty() && !branch.types.has(Types::OBJECT) {
                    continue;
                }
                self.fold_alternatives(&mut branch);
                draft.notes.append(&mut branch.notes);
                if let Some(Value::Object(properties)) = branch.map.shift_remove("properties") {
                    add_variants(&mut variants, properties);
                }
                let names = match branch.map.shift_remove("required") {
                    Some(Value::Array(names)) => names,
                    _ => Vec::new(),
                };
                required = Some(match required {
                    None => names,
                    Some(common) => in_both(common, &names),
                });
            }
            self.add_properties(draft, variants);
            add_required(draft, required.unwrap_or_default());
        }
    }

    fn add_properties(&mut self, draft: &mut Draft, variants: Map<String, Value>) {
        if variants.is_empty() {
            return;
        }
        let own = draft.map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(own) = own else { return };
        for (name, schemas) in variants {
            if let Value::Array(schemas) = schemas
                && !own.contains_key(&name)
            {
                own.insert(name, self.union_of(schemas));
            }
        }
    }

    /// One schema for what any of these finished `schemas` takes.
    pub(super) fn union_of(&self, schemas: Vec<Value>) -> Value {
        let (mut schemas, nulls) = self.tidy(schemas);
        if schemas.len() > 1 && !self.without.contains("anyOf") {
            let mut union = Map::new();
            union.insert("anyOf".to_owned(), Value::Array(schemas));
            return Value::Object(union);
        }
        schemas.truncate(1);
        let mut only = schemas.pop().unwrap_or_else(|| Value::Object(Map::new()));
        if nulls
            && self.rules.nullable
            && !self.without.contains("nullable")
            && let Value::Object(map) = &mut only
        {
            map.insert("nullable".to_owned(), Value::Bool(true));
        }
        only
    }

    /// Finished alternatives, each once, and whether null was dropped from among them. A union inside a union is part of
    /// it, and texts to choose from are one list of texts.
    pub(super) fn tidy(&self, schemas: Vec<Value>) -> (Vec<Value>, bool) {
        let closed = self.rules.dialect != Dialect::Full;
        let mut seen = BTreeSet::new();
        let mut each = Vec::with_capacity(schemas.len());
        for schema in schemas {
            let inner = match schema {
                Value::Object(mut map) if closed && map.len() == 1 && map.contains_key("anyOf") => {
                    match map.remove("anyOf") {
                        Some(Value::Array(inner)) => inner,
                        _ => Vec::new(),
                    }
                }
                schema => vec![schema],
            };
            each.extend(inner.into_iter().filter(|schema| seen.insert(schema.to_string())));
        }
        let others = each.iter().filter(|schema| !is_null(schema)).count();
        if others == 0 {
            each.truncate(1);
        }
        let drop_nulls = others < each.len() && (others == 1 || (closed && others > 0));
        if drop_nulls {
            each.retain(|schema| !is_null(schema));
        }
        if each.len() > 1
            && !self.without.contains("enum")
            && let Some(choice) = one_choice(&each)
        {
            each = vec![choice];
        }
        (each, drop_nulls)
    }
}

/// As [`fold`], for the single alternative of an object: what is no object has nothing to give.
fn fold_object(into: &mut Draft, only: Draft) {
    if only.types.is_empty() || only.types.has(Types::OBJECT) {
        fold(into, only);
    }
}

fn add_variants(variants: &mut Map<String, Value>, properties: Map<String, Value>) {
    for (name, schema) in properties {
        let known = variants.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(known) = known
            && known.len() < VARIANTS
        {
            known.push(schema);
        }
    }
}

fn in_both(mut common: Vec<Value>, names: &[Value]) -> Vec<Value> {
    let names = names.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>();
    common.retain(|name| name.as_str().is_some_and(|name| names.contains(name)));
    common
}

fn add_required(draft: &mut Draft, names: Vec<Value>) {
    if names.is_empty() {
        return;
    }
    let own = draft.map.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(own) = own {
        own.extend(names);
        draft.repeats = true;
    }
}

/// As [`Draft::is_null`], of a finished schema.
fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|word| word == "null")
        || schema.get("const").is_some_and(Value::is_null)
        || schema.get("enum").and_then(Value::as_array).is_some_and(|values| values.iter().all(Value::is_null))
}

/// The one list of texts that `schemas` are, if each is nothing but some texts to choose from.
pub(super) fn one_choice(schemas: &[Value]) -> Option<Value> {
    let mut texts = Vec::new();
    let mut seen = BTreeSet::new();
    for schema in schemas {
        for text in choices(schema)? {
            if seen.insert(text) {
                texts.push(Value::from(text));
            }
        }
    }
    // Together they must not be more than one list may hold.
    if texts.is_empty() || texts.len() > ENUM_VALUES_UNCOUNTED {
        return None;
    }
    let mut choice = Map::new();
    choice.insert("type".to_owned(), Value::from("string"));
    choice.insert("enum".to_owned(), Value::Array(texts));
    Some(Value::Object(choice))
}

/// The texts of a schema that says nothing else.
fn choices(schema: &Value) -> Option<Vec<&str>> {
    let map = schema.as_object()?;
    let known = map.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value == "string",
        "enum" | "const" => true,
        _ => false,
    });
    match (known, map.get("enum"), map.get("const")) {
        (true, Some(Value::Array(values)), None) => values.iter().map(Value::as_str).collect(),
        (true, None, Some(Value::String(text))) => Some(vec![text]),
        _ => None,
    }
}
