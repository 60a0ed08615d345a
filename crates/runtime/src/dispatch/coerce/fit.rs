//! Walks a value beside its schemas, to the bottom, and changes what certainly is not valid but can be read otherwise.

use std::fmt::Write as _;
use std::mem;

use hermes_core::JsonMap;
use serde_json::Value;

use super::Change;
use super::number;
use super::schemas::{Elements, Fields, Kind, Look, Parts, Schemas, kinds};

/// Below this nothing is changed. Parsed JSON nests to 128, and text inside it may be JSON again: the sum must leave
/// stack for everybody who walks the result later.
const DEEPEST: usize = 128;

/// One pass over some arguments.
pub(super) struct Fit<'a, 's> {
    pub(super) schemas: &'a Schemas<'s>,
    pub(super) changes: Vec<Change>,
    /// Where the walk is, with dots.
    path: String,
}

impl<'a, 's> Fit<'a, 's> {
    pub(super) fn new(schemas: &'a Schemas<'s>) -> Self {
        Self { schemas, changes: Vec::new(), path: String::new() }
    }

    /// Fits `value` and everything in it to all of `wanted`.
    pub(super) fn fit(&mut self, value: &mut Value, wanted: &[&'s Value], depth: usize) {
        if depth > DEEPEST || !self.schemas.step(1) {
            return;
        }
        let read = match self.as_integer(value, wanted) {
            Some(whole) => Some(whole),
            None if self.schemas.could_be(value, wanted, Look::SHAPE) => None,
            None => self.read_otherwise(value, wanted, depth),
        };
        if let Some(new) = read {
            let from = mem::replace(value, new);
            self.record(from, Some(value.clone()));
        }
        if matches!(value, Value::Array(_) | Value::Object(_)) {
            self.inside(value, wanted, depth);
        }
    }

    /// Fits everything in `value`, but not the value itself.
    pub(super) fn inside(&mut self, value: &mut Value, wanted: &[&'s Value], depth: usize) {
        let parts = self.schemas.parts(value, wanted);
        match value {
            Value::Array(items) => self.fit_items(items, &parts, depth),
            Value::Object(map) => self.fit_fields(map, &parts, depth),
            _ => return,
        }
        for branches in &parts.open {
            self.fit_one_of(value, branches, wanted, depth);
        }
    }

    fn fit_items(&mut self, items: &mut [Value], parts: &Parts<'s>, depth: usize) {
        let elements: Vec<Elements<'s>> = parts.all.iter().map(|schema| self.schemas.elements(schema)).collect();
        if !elements.iter().any(Elements::says_something) {
            return;
        }
        let mut wanted = Vec::with_capacity(elements.len());
        for (index, item) in items.iter_mut().enumerate() {
            wanted.clear();
            wanted.extend(elements.iter().filter_map(|elements| elements.at(index)));
            let here = self.enter(index);
            self.fit(item, &wanted, depth + 1);
            self.path.truncate(here);
        }
    }

    fn fit_fields(&mut self, map: &mut JsonMap, parts: &Parts<'s>, depth: usize) {
        let fields: Vec<Fields<'s>> = parts.all.iter().map(|schema| Fields::of(schema)).collect();
        self.drop_what_asks_for_nothing(map, &fields);
        let mut wanted = Vec::with_capacity(fields.len());
        for (name, value) in map {
            wanted.clear();
            wanted.extend(fields.iter().filter_map(|fields| fields.get(name)));
            if !wanted.is_empty() {
                let here = self.enter(name);
                self.fit(value, &wanted, depth + 1);
                self.path.truncate(here);
            }
        }
    }

    fn drop_what_asks_for_nothing(&mut self, map: &mut JsonMap, fields: &[Fields<'s>]) {
        if !map.values().any(is_off) {
            return;
        }
        map.retain(|name, value| {
            // `null` for an argument that may be left out means that it was left out.
            let left_out = value.is_null() && !fields.iter().any(|fields| fields.requires(name)) && {
                let declared: Vec<&Value> = fields.iter().filter_map(|fields| fields.declared(name)).collect();
                !self.schemas.could_be(value, &declared, Look::KIND)
            };
            // A switch we do not have, switched off, asks for nothing.
            let unknown_and_off = is_off(value) && fields.iter().any(|fields| fields.forbids(name));
            if left_out || unknown_and_off {
                let here = self.enter(name);
                self.record(value.take(), None);
                self.path.truncate(here);
            }
            !left_out && !unknown_and_off
        });
    }

    /// Several branches of a union have the right shape. If one of them holds as it is, nothing is changed; else the
    /// first that can be made to hold decides.
    fn fit_one_of(&mut self, value: &mut Value, branches: &'s [Value], wanted: &[&'s Value], depth: usize) {
        let schemas = self.schemas;
        if schemas.limited(value, || branches.iter().any(|branch| schemas.could_be(value, &[branch], Look::WHOLE))) {
            return;
        }
        let before = self.changes.len();
        for branch in branches {
            let mut attempt = value.clone();
            let holds = schemas.limited(value, || {
                self.fit(&mut attempt, &[branch], depth + 1);
                // What ran out of steps is half done.
                schemas.could_be(&attempt, wanted, Look::WHOLE) && schemas.step(0)
            });
            if holds {
                *value = attempt;
                return;
            }
            self.changes.truncate(before);
        }
    }

    /// 4.0 where only integers are welcome: JSON Schema takes it, tools do not.
    fn as_integer(&self, value: &Value, wanted: &[&'s Value]) -> Option<Value> {
        let whole = number::whole(value)?;
        let kinds = kinds(&self.schemas.branches(wanted));
        let only_integers = kinds.contains(&Kind::Integer) && !kinds.contains(&Kind::Number);
        (only_integers && self.schemas.could_be(&whole, wanted, Look::SHAPE)).then_some(whole)
    }

    /// A copy of `value`, fitted as far as possible, of which nothing is recorded; `None` if that took too long.
    pub(super) fn attempt(&mut self, value: &Value, wanted: &[&'s Value], depth: usize) -> Option<Value> {
        let before = self.changes.len();
        let mut attempt = value.clone();
        let schemas = self.schemas;
        let done = schemas.limited(value, || {
            self.fit(&mut attempt, wanted, depth + 1);
            schemas.step(0)
        });
        self.changes.truncate(before);
        done.then_some(attempt)
    }

    /// Goes down into a field or element; the result is for [`String::truncate`] on the way back.
    fn enter(&mut self, step: impl std::fmt::Display) -> usize {
        let here = self.path.len();
        let dot = if here > 0 { "." } else { "" };
        // Writing to a text cannot fail.
        let _ = write!(self.path, "{dot}{step}");
        here
    }

    fn record(&mut self, from: Value, to: Option<Value>) {
        self.changes.push(Change { field: self.path.clone(), from, to });
    }
}

fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
