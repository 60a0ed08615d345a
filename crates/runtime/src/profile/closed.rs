//! The last step for providers with a fixed vocabulary: Gemini, and what turns schemas into grammars.
//!
//! Here a node is one of two things. Either it has one type and only words that go with that type, or it is a choice
//! (`anyOf`) between such nodes. Everything else is told in the description, so that the model can still send it and the
//! tool's own schema still checks it.

use serde_json::{Map, Value};

use super::full::{describe, prune};
use super::keywords::Types;
use super::rules::{Dialect, LOCAL_BOUND};
use super::shape::{Draft, Shaper};
use super::text::{listed, noted};
use super::unions::{fold, one_choice};

/// The words of Gemini's *Schema* besides those that are made here (API reference; spec core §6.2).
pub(super) const GEMINI: &[&str] = &[
    "default",
    "description",
    "example",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "propertyOrdering",
    "required",
    "title",
];

/// What a grammar is made of, and what describes it (llama.cpp, `json-schema-to-grammar`).
pub(super) const LOCAL: &[&str] = &[
    "additionalProperties",
    "const",
    "default",
    "description",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "required",
    "title",
];

/// Words about a value of whatever type.
const ANNOTATIONS: [&str; 5] = ["title", "description", "default", "example", "examples"];

const AS_TEXT: &str = "A JSON object, written as text.";

impl Shaper<'_> {
    pub(super) fn closed_root(&mut self, mut draft: Draft) -> Option<Value> {
        draft.drop_repeats();
        let none = draft.map.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
        if none && self.rules.dialect == Dialect::Gemini {
            return None;
        }
        let mut root = self.of_one_type(draft.map, Types::OBJECT, false, draft.notes);
        if none {
            root.insert("properties".to_owned(), Value::Object(Map::new()));
        }
        Some(Value::Object(root))
    }

    pub(super) fn finish_closed(&mut self, mut draft: Draft) -> Value {
        let mut choice = self.settle(&mut draft);
        draft.drop_repeats();
        if draft.types != Types::NULL && draft.types.has(Types::NULL) {
            draft.types = draft.types.without(Types::NULL);
            draft.nullable = true;
        }
        draft.types = draft.types.widened();
        if choice.is_empty() && !draft.types.is_single() {
            let of_values = types_of_values(&draft.map);
            if draft.types.is_empty() {
                draft.types = of_values.unwrap_or_else(|| first_guess(draft.guess));
            } else if let Some(of_values) = of_values {
                draft.types = of_values;
            } else {
                choice = draft.types.each().map(|types| self.one_of_several(&draft.map, types)).collect();
            }
        }
        if choice.is_empty() {
            return Value::Object(self.of_one_type(draft.map, draft.types, draft.nullable, draft.notes));
        }
        self.choice(choice, draft)
    }

    /// Folds what can be folded of the unions of a node; returns the alternatives that are left, finished.
    fn settle(&mut self, draft: &mut Draft) -> Vec<Value> {
        let mut choice = Vec::new();
        while !draft.branches.is_empty() {
            let mut group = draft.branches.remove(0);
            let all = group.len();
            group.retain(|branch| !branch.is_null());
            let nulls = group.len() < all;
            let shaped =
                ["properties", "items", "enum", "const"].iter().any(|keyword| draft.map.contains_key(*keyword));
            let shaped = shaped || !draft.types.is_empty();
            if group.is_empty() {
                if nulls && !shaped {
                    draft.types = Types::NULL;
                }
                continue;
            }
            draft.nullable |= nulls;
            if group.len() == 1 {
                if let Some(only) = group.pop() {
                    fold(draft, only);
                }
            } else if draft.types == Types::OBJECT || draft.map.contains_key("properties") {
                draft.branches.insert(0, group);
                self.fold_alternatives(draft);
            } else if !shaped {
                if choice.is_empty() {
                    choice = group.into_iter().map(|branch| self.finish(branch)).collect();
                }
            } else if !draft.types.is_empty() && types_of_values(&draft.map).is_none() {
                // The node and one of its alternatives hold together, so only the types that both have are left.
                let wanted = draft.types;
                let fits = |schema: &Value| {
                    let word = schema.get("type").and_then(Value::as_str).unwrap_or_default();
                    let types = Types::of_word(word);
                    wanted.has(types) || (types == Types::INTEGER && wanted.has(Types::NUMBER))
                };
                let mut fitting = group.into_iter().map(|branch| self.finish(branch)).collect::<Vec<_>>();
                let finished = fitting.len();
                fitting.retain(fits);
                if wanted == Types::STRING {
                    let texts = (fitting.len() == finished).then(|| one_choice(&fitting)).flatten();
                    if let Some(Value::Object(mut texts)) = texts
                        && let Some(values) = texts.remove("enum")
                        && !self.without.contains("enum")
                    {
                        draft.map.insert("enum".to_owned(), values);
                    }
                } else if !wanted.is_single() && choice.is_empty() {
                    choice = fitting;
                }
            }
        }
        choice
    }

    /// The part of a node with several types that is about one of them.
    fn one_of_several(&self, map: &Map<String, Value>, types: Types) -> Value {
        let about =
            map.iter().filter(|(keyword, _)| !ANNOTATIONS.contains(&keyword.as_str()) && *keyword != "nullable");
        let about = about.map(|(keyword, value)| (keyword.clone(), value.clone())).collect();
        Value::Object(self.of_one_type(about, types, false, Vec::new()))
    }

    fn choice(&mut self, choice: Vec<Value>, draft: Draft) -> Value {
        let (mut choice, nulls) = self.tidy(choice);
        let nullable = draft.nullable || nulls;
        let mut annotations = draft.map;
        annotations.retain(|keyword, _| ANNOTATIONS.contains(&keyword.as_str()));
        describe(&mut annotations, &draft.notes);
        if self.without.contains("anyOf") {
            choice.truncate(1);
        }
        if choice.len() > 1 && self.rules.dialect == Dialect::Gemini {
            // Nothing may stand beside `anyOf`, so the first alternative speaks for all.
            if let Some(Value::Object(first)) = choice.first_mut() {
                if let Some(Value::String(text)) = annotations.shift_remove("description") {
                    let note = first.get("description").and_then(Value::as_str).map(str::to_owned);
                    let text = note.map_or_else(|| text.clone(), |note| noted(&text, &note));
                    first.insert("description".to_owned(), Value::String(text));
                }
                self.mark_nullable(first, nullable);
            }
            (choice, _) = self.tidy(choice);
            if choice.len() > 1 {
                return Value::Object(Map::from_iter([("anyOf".to_owned(), Value::Array(choice))]));
            }
        }
        if choice.len() > 1 {
            annotations.insert("anyOf".to_owned(), Value::Array(choice));
            return Value::Object(annotations);
        }
        let mut only = match choice.pop() {
            Some(Value::Object(only)) => only,
            _ => Map::new(),
        };
        only.extend(annotations);
        self.mark_nullable(&mut only, nullable);
        Value::Object(only)
    }

    fn mark_nullable(&self, map: &mut Map<String, Value>, nullable: bool) {
        if nullable && self.rules.nullable && !self.without.contains("nullable") {
            map.insert("nullable".to_owned(), Value::Bool(true));
        }
    }

    /// A node of one type, with what may be said about that type.
    fn of_one_type(
        &self,
        map: Map<String, Value>,
        types: Types,
        nullable: bool,
        notes: Vec<String>,
    ) -> Map<String, Value> {
        let gemini = self.rules.dialect == Dialect::Gemini;
        let mut notes = notes;
        let mut nullable = nullable;
        let mut types = types;
        let empty = map.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
        let as_text = gemini && types == Types::OBJECT && empty;
        if as_text {
            types = Types::STRING;
            notes.push(AS_TEXT.to_owned());
        } else if gemini && types == Types::NULL {
            types = Types::STRING;
            nullable = true;
            notes.push("Always null.".to_owned());
        }
        let mut shaped = Map::with_capacity(map.len() + 1);
        if !map.contains_key("type") {
            shaped.insert("type".to_owned(), Value::from(types.word()));
        }
        for (keyword, value) in map {
            let keeps = match keyword.as_str() {
                "type" => {
                    shaped.insert(keyword, Value::from(types.word()));
                    continue;
                }
                "enum" if gemini => match texts(&value, types, &mut nullable, &mut notes) {
                    Some(texts) => {
                        shaped.insert(keyword, texts);
                        continue;
                    }
                    None => false,
                },
                "const" if gemini => {
                    self.constant(value, types, &mut nullable, &mut notes, &mut shaped);
                    continue;
                }
                "enum" | "const" => keeps_values(&keyword, &value, types, &mut notes),
                "title" | "description" => true,
                "nullable" => self.rules.nullable,
                "default" | "example" | "examples" => !as_text,
                "format" => gemini && is_gemini_format(&value, types),
                "properties" => types == Types::OBJECT && !empty,
                "required" | "propertyOrdering" | "additionalProperties" => types == Types::OBJECT,
                "minProperties" | "maxProperties" => types == Types::OBJECT && self.is_bound(&value),
                "items" => types == Types::ARRAY,
                "minItems" | "maxItems" => types == Types::ARRAY && self.is_bound(&value),
                "minLength" | "maxLength" => types == Types::STRING && !as_text && self.is_bound(&value),
                "pattern" => types == Types::STRING && !as_text,
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                    Types::NUMBER.with(Types::INTEGER).has(types)
                }
                _ => false,
            };
            if keeps {
                shaped.insert(keyword, value);
            }
        }
        if types == Types::ARRAY && !shaped.contains_key("items") {
            let items = Map::from_iter([("type".to_owned(), Value::from("string"))]);
            shaped.insert("items".to_owned(), Value::Object(items));
        }
        if shaped.get("format").is_some_and(|format| format == "enum") && !shaped.contains_key("enum") {
            shaped.shift_remove("format");
        }
        for list in ["required", "propertyOrdering"] {
            if shaped.get(list).and_then(Value::as_array).is_some_and(Vec::is_empty) {
                shaped.shift_remove(list);
            }
            prune(&mut shaped, list);
        }
        self.mark_nullable(&mut shaped, nullable);
        describe(&mut shaped, &notes);
        shaped
    }

    /// Gemini has no constants: one text is a choice of one, anything else is told.
    fn constant(
        &self,
        value: Value,
        types: Types,
        nullable: &mut bool,
        notes: &mut Vec<String>,
        shaped: &mut Map<String, Value>,
    ) {
        let is_text = types == Types::STRING && value.as_str().is_some_and(|text| !text.is_empty());
        if value.is_null() {
            *nullable = true;
        } else if is_text && !self.without.contains("enum") {
            shaped.entry("enum").or_insert_with(|| Value::Array(vec![value]));
        } else {
            notes.push(format!("Always {}.", listed(std::slice::from_ref(&value))));
        }
    }

    fn is_bound(&self, value: &Value) -> bool {
        match self.rules.dialect {
            // The fields are of protobuf's int64.
            Dialect::Gemini => value.as_i64().is_some_and(|bound| bound >= 0),
            Dialect::Local => value.as_u64().is_some_and(|bound| bound < LOCAL_BOUND),
            Dialect::Full => true,
        }
    }
}

/// The type of the values that a node may have, a text where they differ; nothing if it names none.
fn types_of_values(map: &Map<String, Value>) -> Option<Types> {
    let values = match (map.get("enum"), map.get("const")) {
        (Some(Value::Array(values)), _) => values.as_slice(),
        (_, Some(value)) => std::slice::from_ref(value),
        _ => return None,
    };
    let types = Types::of_values(values);
    Some(if types.is_empty() { Types::STRING } else { types })
}

fn first_guess(guess: Types) -> Types {
    let order = [Types::OBJECT, Types::ARRAY, Types::STRING, Types::NUMBER];
    order.into_iter().find(|types| guess.has(*types)).unwrap_or(Types::STRING)
}

/// The texts of an enum for Gemini. If others are among the values, all are told instead.
fn texts(value: &Value, types: Types, nullable: &mut bool, notes: &mut Vec<String>) -> Option<Value> {
    let Value::Array(values) = value else { return None };
    *nullable |= values.contains(&Value::Null);
    let only_texts = values.iter().all(|value| value.is_string() || value.is_null());
    if types != Types::STRING || !only_texts {
        notes.push(format!("One of {}.", listed(values)));
        return None;
    }
    let texts = values.iter().filter(|value| value.as_str().is_some_and(|text| !text.is_empty()));
    let texts = texts.cloned().collect::<Vec<_>>();
    (!texts.is_empty()).then_some(Value::Array(texts))
}

/// Whether the values of an enum or a constant go with the type; if not, they are told instead.
fn keeps_values(keyword: &str, value: &Value, types: Types, notes: &mut Vec<String>) -> bool {
    let values = match value {
        Value::Array(values) if keyword == "enum" => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    let of_values = Types::of_values(values);
    let fits = of_values == types || (of_values == Types::INTEGER && types == Types::NUMBER);
    if !fits {
        notes.push(format!("One of {}.", listed(values)));
    }
    fits
}

fn is_gemini_format(format: &Value, types: Types) -> bool {
    let formats: &[&str] = match types {
        Types::STRING => &["enum", "date-time"],
        Types::NUMBER => &["float", "double"],
        Types::INTEGER => &["int32", "int64"],
        _ => &[],
    };
    format.as_str().is_some_and(|format| formats.contains(&format))
}
