//! Reading a schema: what could be valid, what is wanted, which parts speak about a value.
//!
//! Conservative on purpose. [`Schemas::could_be`] says no only from what it understands completely (types, `enum`,
//! `const`, `required`, unions, local references, children); a keyword that it does not know forbids nothing. That is
//! what lets coercion promise never to touch a valid value.
//!
//! A value is always described by a *list* of schemas that must all hold (`allOf`, a property named by two of them);
//! nothing is ever merged, so nothing is copied.
//!
//! Schemas come from strangers (MCP servers). A few lines of references can describe a tree with more branches than
//! there are atoms, so every question has a number of steps after which the answer is "it could be".

use std::cell::Cell;
use std::ptr;

use hermes_core::JsonMap;
use serde_json::Value;

/// The types of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    List,
    Object,
}

/// How far below a value [`Schemas::could_be`] looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Look(u8);

impl Look {
    /// Its type, `enum` and `const`.
    pub(super) const KIND: Self = Self(0);
    /// And whether an object has what is required.
    pub(super) const SHAPE: Self = Self(1);
    /// And the shape of its children.
    pub(super) const CHILDREN: Self = Self(2);
    /// And everything below.
    pub(super) const WHOLE: Self = Self(u8::MAX);

    fn below(self) -> Self {
        if self == Self::WHOLE { self } else { Self(self.0.saturating_sub(1)) }
    }
}

/// Steps for a question about one value, enough for a union of hundreds of branches.
const STEPS: usize = 4_000;
/// Further steps for each part of a value.
const STEPS_PER_PART: usize = 64;
/// Frames of [`Schemas::check`]: values nest to 128 where JSON is parsed, and each level may pass a few references.
const DEEPEST: usize = 512;
/// Schemas that speak about one value.
const MOST_PARTS: usize = 200;

/// The schemas of one tool.
pub(super) struct Schemas<'s> {
    root: &'s Value,
    /// Up to draft 7, keywords beside a `$ref` mean nothing.
    lone_refs: bool,
    /// Since 2020-12, `prefixItems` does what a list in `items` did before.
    prefix_items: bool,
    /// Steps left; `None` where nothing is counted.
    steps: Cell<Option<usize>>,
}

/// What speaks about one value.
pub(super) struct Parts<'s> {
    /// All of these must hold.
    pub(super) all: Vec<&'s JsonMap>,
    /// Of each of these at least one must hold, and several could.
    pub(super) open: Vec<&'s [Value]>,
}

/// What a schema says about the elements of a list.
#[derive(Clone, Copy)]
pub(super) struct Elements<'s> {
    first: &'s [Value],
    rest: Option<&'s Value>,
}

impl<'s> Elements<'s> {
    pub(super) fn at(&self, index: usize) -> Option<&'s Value> {
        self.first.get(index).or(self.rest)
    }

    pub(super) fn says_something(&self) -> bool {
        !self.first.is_empty() || self.rest.is_some()
    }
}

/// What a schema says about the fields of an object.
#[derive(Clone, Copy)]
pub(super) struct Fields<'s> {
    properties: Option<&'s JsonMap>,
    required: &'s [Value],
    others: Option<&'s Value>,
}

impl<'s> Fields<'s> {
    pub(super) fn of(schema: &'s JsonMap) -> Self {
        // Which of the other names a pattern covers is left to the validator, so nothing is known about any of them.
        let others = if schema.contains_key("patternProperties") { None } else { schema.get("additionalProperties") };
        Self {
            properties: schema.get("properties").and_then(Value::as_object),
            required: listed(schema.get("required")),
            others,
        }
    }

    pub(super) fn declared(&self, name: &str) -> Option<&'s Value> {
        self.properties.and_then(|properties| properties.get(name))
    }

    pub(super) fn get(&self, name: &str) -> Option<&'s Value> {
        self.declared(name).or(self.others)
    }

    pub(super) fn requires(&self, name: &str) -> bool {
        self.required.iter().any(|required| required == name)
    }

    pub(super) fn forbids(&self, name: &str) -> bool {
        self.others == Some(&Value::Bool(false)) && self.declared(name).is_none()
    }
}

impl<'s> Schemas<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let lone_refs = draft.contains("draft-0");
        let prefix_items = !lone_refs && !draft.contains("2019-09");
        Self { root, lone_refs, prefix_items, steps: Cell::new(None) }
    }

    /// Runs `work` with a limit of steps for the size of `value`, unless a limit holds already.
    pub(super) fn limited<T>(&self, value: &Value, work: impl FnOnce() -> T) -> T {
        if self.steps.get().is_some() {
            return work();
        }
        self.steps.set(Some(STEPS + STEPS_PER_PART * weight(value)));
        let result = work();
        self.steps.set(None);
        result
    }

    /// Takes `count` steps; false if that is more than are left.
    pub(super) fn step(&self, count: usize) -> bool {
        let Some(left) = self.steps.get() else { return true };
        self.steps.set(Some(left.saturating_sub(count)));
        left > count
    }

    /// Whether `value` could be valid; false is certain.
    pub(super) fn could_be(&self, value: &Value, schemas: &[&Value], look: Look) -> bool {
        let ask = || schemas.iter().all(|schema| self.check(value, schema, look, 0));
        if look == Look::WHOLE {
            return self.limited(value, ask);
        }
        // Looking at a value is cheap, so its size buys no steps.
        self.limited(&Value::Null, ask)
    }

    fn check(&self, value: &Value, schema: &Value, look: Look, depth: usize) -> bool {
        let Value::Object(schema) = schema else { return *schema != Value::Bool(false) };
        if depth > DEEPEST || !self.step(1) || (value.is_null() && nullable(schema)) {
            return true;
        }
        let holds = |schema: &Value| self.check(value, schema, look, depth + 1);
        let target_holds = |rule: &Value| self.target(rule).is_none_or(holds);
        if self.lone_refs
            && let Some(rule) = schema.get("$ref")
        {
            return target_holds(rule);
        }
        let could = schema.iter().all(|(keyword, rule)| match keyword.as_str() {
            "type" => has_type(value, rule),
            "enum" => rule.as_array().is_none_or(|options| options.iter().any(|option| equal(option, value))),
            "const" => equal(rule, value),
            "$ref" => target_holds(rule),
            "allOf" => listed(Some(rule)).iter().all(holds),
            "anyOf" | "oneOf" => rule.as_array().is_none_or(|branches| branches.iter().any(holds)),
            "required" if look >= Look::SHAPE => value.as_object().is_none_or(|map| {
                listed(Some(rule)).iter().filter_map(Value::as_str).all(|name| map.contains_key(name))
            }),
            _ => true,
        });
        could && (look < Look::CHILDREN || self.check_children(value, schema, look.below(), depth + 1))
    }

    fn check_children(&self, value: &Value, schema: &JsonMap, look: Look, depth: usize) -> bool {
        match value {
            Value::Object(map) => {
                let fields = Fields::of(schema);
                map.iter()
                    .all(|(name, value)| fields.get(name).is_none_or(|schema| self.check(value, schema, look, depth)))
            }
            Value::Array(items) => {
                let elements = self.elements(schema);
                let mut items = items.iter().enumerate();
                !elements.says_something()
                    || items.all(|(index, item)| {
                        elements.at(index).is_none_or(|schema| self.check(item, schema, look, depth))
                    })
            }
            _ => true,
        }
    }

    /// What `schema` says about the elements of a list.
    pub(super) fn elements(&self, schema: &'s JsonMap) -> Elements<'s> {
        elements(schema, self.prefix_items)
    }

    /// The schema that a local reference names.
    fn target(&self, rule: &Value) -> Option<&'s Value> {
        let pointer = rule.as_str()?.strip_prefix('#')?;
        // Escapes of URLs and named anchors are for the validator.
        if pointer.contains('%') { None } else { self.root.pointer(pointer) }
    }

    /// The schemas that speak about `value`. Of a union, that is its only branch that could hold, if there is only one.
    pub(super) fn parts(&self, value: &Value, schemas: &[&'s Value]) -> Parts<'s> {
        let mut parts = Parts { all: Vec::with_capacity(schemas.len()), open: Vec::new() };
        for schema in schemas {
            self.gather(value, schema, &mut parts);
        }
        parts
    }

    fn gather(&self, value: &Value, schema: &'s Value, parts: &mut Parts<'s>) {
        let Some(schema) = schema.as_object().filter(|schema| is_new(&parts.all, schema)) else { return };
        parts.all.push(schema);
        if self.lone_refs
            && let Some(rule) = schema.get("$ref")
        {
            parts.all.pop();
            return self.target(rule).into_iter().for_each(|target| self.gather(value, target, parts));
        }
        for (keyword, rule) in schema {
            match keyword.as_str() {
                "$ref" => self.target(rule).into_iter().for_each(|target| self.gather(value, target, parts)),
                "allOf" => listed(Some(rule)).iter().for_each(|part| self.gather(value, part, parts)),
                "anyOf" | "oneOf" => {
                    let branches = listed(Some(rule));
                    let mut possible = branches.iter().filter(|branch| self.could_be(value, &[branch], Look::SHAPE));
                    match (possible.next(), possible.next()) {
                        (Some(only), None) => self.gather(value, only, parts),
                        (Some(_), Some(_)) => parts.open.push(branches),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }

    /// Every schema that speaks about some value, all branches of unions included, in the order of the text.
    pub(super) fn branches(&self, schemas: &[&'s Value]) -> Vec<&'s JsonMap> {
        let mut all = Vec::with_capacity(schemas.len());
        for schema in schemas {
            self.branch(schema, &mut all);
        }
        all
    }

    fn branch(&self, schema: &'s Value, all: &mut Vec<&'s JsonMap>) {
        let Some(schema) = schema.as_object().filter(|schema| is_new(all, schema)) else { return };
        all.push(schema);
        for (keyword, rule) in schema {
            match keyword.as_str() {
                "$ref" => self.target(rule).into_iter().for_each(|target| self.branch(target, all)),
                "allOf" | "anyOf" | "oneOf" => listed(Some(rule)).iter().for_each(|part| self.branch(part, all)),
                _ => {}
            }
        }
    }
}

/// The types that `branches` mention, in the order of the text; none where nothing is said about the type.
pub(super) fn kinds(branches: &[&JsonMap]) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let mut add = |kind: Option<Kind>| {
        if let Some(kind) = kind.filter(|kind| !kinds.contains(kind)) {
            kinds.push(kind);
        }
    };
    for schema in branches {
        for (keyword, rule) in *schema {
            match (keyword.as_str(), rule) {
                ("type", Value::String(name)) => add(kind_named(name)),
                ("type", Value::Array(names)) => {
                    for name in names {
                        add(name.as_str().and_then(kind_named));
                    }
                }
                ("enum", Value::Array(options)) => options.iter().for_each(|option| add(Some(kind_of(option)))),
                ("const", value) => add(Some(kind_of(value))),
                ("nullable", Value::Bool(true)) => add(Some(Kind::Null)),
                _ => {}
            }
        }
    }
    kinds
}

/// A list, or nothing.
fn listed(rule: Option<&Value>) -> &[Value] {
    rule.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Guards against references in circles and absurdly many branches.
fn is_new(seen: &[&JsonMap], schema: &JsonMap) -> bool {
    seen.len() < MOST_PARTS && !seen.iter().any(|known| ptr::eq(*known, schema))
}

fn elements(schema: &JsonMap, prefix_items: bool) -> Elements<'_> {
    let items = schema.get("items");
    if prefix_items {
        Elements { first: listed(schema.get("prefixItems")), rest: items }
    } else if let Some(Value::Array(first)) = items {
        Elements { first, rest: schema.get("additionalItems") }
    } else {
        Elements { first: &[], rest: items }
    }
}

/// `OpenAPI` 3.0 says "or null" with a word of its own.
pub(in crate::dispatch) fn nullable(schema: &JsonMap) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
}

fn kind_named(name: &str) -> Option<Kind> {
    Some(match name {
        "null" => Kind::Null,
        "boolean" => Kind::Boolean,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "string" => Kind::Text,
        "array" => Kind::List,
        "object" => Kind::Object,
        _ => return None,
    })
}

fn kind_of(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Boolean,
        Value::Number(number) if number.is_f64() => Kind::Number,
        Value::Number(_) => Kind::Integer,
        Value::String(_) => Kind::Text,
        Value::Array(_) => Kind::List,
        Value::Object(_) => Kind::Object,
    }
}

fn has_type(value: &Value, rule: &Value) -> bool {
    let is = |name: &Value| {
        name.as_str().and_then(kind_named).is_none_or(|wanted| match (wanted, kind_of(value)) {
            (Kind::Number, Kind::Integer) => true,
            // 4.0 is an integer since draft 6.
            (Kind::Integer, Kind::Number) => value.as_f64().is_some_and(|double| double.fract() == 0.0),
            (wanted, kind) => wanted == kind,
        })
    };
    match rule {
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    }
}

/// Equality as JSON Schema means it: 1 is 1.0. Where a double blurs the difference they count as equal.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The number of parts of a value; long texts count more, because they may have to be parsed.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 16,
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(weight).sum::<usize>(),
        _ => 1,
    }
}
