//! What else a value could have been meant to be.
//!
//! Each reading is tried only where the schema asks for that type, in the order of the schema, and kept only if its
//! result could be valid. A list of one is the last resort, since it is the one reading that adds something.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::fit::Fit;
use super::number;
use super::schemas::{Fields, Kind, Look, kinds};
use crate::dispatch::parse;

/// XML habits: `{"item": [1, 2]}` for `[1, 2]`.
const COLLAPSED: &str = "item";

impl<'s> Fit<'_, 's> {
    /// Another reading of `value`, which is certainly not valid, that could be.
    pub(super) fn read_otherwise(&mut self, value: &Value, wanted: &[&'s Value], depth: usize) -> Option<Value> {
        let branches = self.schemas.branches(wanted);
        let kinds = kinds(&branches);
        let read = value.as_str().and_then(|text| self.read_text(text, &kinds, wanted));
        if read.is_some() || !kinds.contains(&Kind::List) || value.is_array() || value.is_null() {
            return read;
        }
        self.uncollapsed(value, &kinds, wanted, depth).or_else(|| self.list_of_one(value, wanted, depth))
    }

    fn read_text(&self, text: &str, kinds: &[Kind], wanted: &[&'s Value]) -> Option<Value> {
        let mut container = None;
        for kind in kinds {
            let Some(read) = read_as(text, *kind) else { continue };
            if !self.schemas.step(1 + text.len() / 16) {
                return None;
            }
            if self.schemas.could_be(&read, wanted, Look::SHAPE) {
                return Some(read);
            }
            container = (read.is_array() || read.is_object()).then_some((*kind, read)).or(container);
        }
        // Nothing but a list or an object can be meant: then its own errors help more than "is a text".
        let (kind, read) = container?;
        let only = kinds.iter().all(|other| matches!(other, Kind::Null) || *other == kind);
        (only && self.schemas.could_be(&read, wanted, Look::KIND)).then_some(read)
    }

    /// `{"item": X}` where a list is wanted whose elements have no field of that name.
    fn uncollapsed(&mut self, value: &Value, kinds: &[Kind], wanted: &[&'s Value], depth: usize) -> Option<Value> {
        let map = value.as_object().filter(|map| map.len() == 1)?;
        let inner = map.get(COLLAPSED).filter(|inner| !inner.is_null())?;
        if kinds.contains(&Kind::Object) || self.elements_have(COLLAPSED, wanted) {
            return None;
        }
        let list = if inner.is_array() { inner.clone() } else { self.attempt(inner, wanted, depth)? };
        (list.is_array() && self.schemas.could_be(&list, wanted, Look::SHAPE)).then_some(list)
    }

    fn elements_have(&self, name: &str, wanted: &[&'s Value]) -> bool {
        let elements = self.element_schemas(wanted);
        let branches = self.schemas.branches(&elements.into_iter().flatten().collect::<Vec<_>>());
        branches.into_iter().any(|schema| Fields::of(schema).declared(name).is_some())
    }

    /// What each branch that speaks about lists says about the first element.
    fn element_schemas(&self, wanted: &[&'s Value]) -> Vec<Option<&'s Value>> {
        let speaks = |kinds: &[Kind]| kinds.contains(&Kind::List);
        let branches = self.schemas.branches(wanted).into_iter();
        branches
            .filter_map(|schema| {
                let elements = self.schemas.elements(schema);
                (elements.says_something() || speaks(&kinds(&[schema]))).then(|| elements.at(0))
            })
            .collect()
    }

    fn list_of_one(&mut self, value: &Value, wanted: &[&'s Value], depth: usize) -> Option<Value> {
        // A list in a text that was refused (a key twice, digits that do not fit) is still a list.
        if value.as_str().is_some_and(is_json_list) {
            return None;
        }
        for element in self.element_schemas(wanted) {
            let Some(element) = element else {
                // Nobody says what the elements are: a map may as well be the list itself, in a shape we do not know.
                let list = Value::Array(vec![value.clone()]);
                if !value.is_object() && self.schemas.could_be(&list, wanted, Look::CHILDREN) {
                    return Some(list);
                }
                continue;
            };
            if value.is_object() && !kinds(&self.schemas.branches(&[element])).contains(&Kind::Object) {
                continue;
            }
            let list = Value::Array(vec![self.attempt(value, &[element], depth)?]);
            if self.schemas.could_be(&list, wanted, Look::CHILDREN) {
                return Some(list);
            }
        }
        None
    }
}

fn read_as(text: &str, kind: Kind) -> Option<Value> {
    let trimmed = text.trim();
    match kind {
        Kind::Null => trimmed.eq_ignore_ascii_case("null").then_some(Value::Null),
        Kind::Boolean if trimmed.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        Kind::Boolean if trimmed.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        Kind::Integer => number::read(trimmed, false).map(Value::Number),
        Kind::Number => number::read(trimmed, true).map(Value::Number),
        Kind::List if trimmed.starts_with('[') => parse::strict(trimmed),
        Kind::Object if trimmed.starts_with('{') => parse::strict(trimmed),
        _ => None,
    }
}

fn is_json_list(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('[') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
