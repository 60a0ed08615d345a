//! One pass over a schema, from the original to what a provider accepts.
//!
//! The tricky idea is the [`Draft`]: a schema that has been read but not yet written. Everything that folds schemas
//! together (a null branch that goes away, a union at the root, a reference that is written out, `allOf`) folds drafts,
//! in which a missing type is still missing and a union still has its branches; only what stays is finished. So each
//! part of the input is visited once and nothing is built twice.
//!
//! Two things keep that pass small whatever comes in. Depth is an argument and ends at [`SCHEMA_LEVELS`], before anything
//! recursive touches what lies deeper. And whatever references bring in is paid from a budget.
//!
//! Applying the pass to its own output must change nothing. That is why depth is counted generously where a finished
//! schema may end up one level deeper than it was read (a list of types becomes a union, a tuple a union of items).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::keywords::{Kind, Types, kind};
use super::refs::{Loops, Target};
use super::rules::{
    DATA_LEVELS, Dialect, ENUM_CHARS, ENUM_VALUES, ENUM_VALUES_UNCOUNTED, EXPANSIONS, INLINED_NODES, PATTERN_BYTES,
    PATTERN_MEMORY, Rules, SCHEMA_LEVELS, is_plain_name,
};
use super::stripped::Stripped;
use super::text::{PARAMETER_DESCRIPTION_CHARS, listed, names_listed};
use super::unions::fold;

/// What stands for a schema that would have to be written out inside itself again.
const RECURSIVE: &str = "Nested further in the same way.";

/// What stands for a schema below [`SCHEMA_LEVELS`] or beyond the budget.
const TOO_DEEP: &str = "Any value; its schema is nested too deeply to be shown.";

/// A schema that has been read: its keywords are shaped, but what it is as a whole is not decided.
#[derive(Default, Debug)]
pub(super) struct Draft {
    /// Shaped keywords in their order. `type` may be a placeholder that says where it goes.
    pub(super) map: Map<String, Value>,
    /// The types that were named.
    pub(super) types: Types,
    /// The types that other keywords speak of.
    pub(super) guess: Types,
    /// Null was allowed, and the branch or type that said so is gone.
    pub(super) nullable: bool,
    /// The branches of unions that are to be folded, one group for each union.
    pub(super) branches: Vec<Vec<Draft>>,
    /// What goes behind the description.
    pub(super) notes: Vec<String>,
    /// Names were put together in `required`, and some may be there twice. Put right once, at the end: a hostile schema has
    /// many parts.
    pub(super) repeats: bool,
    /// The positions of a tuple.
    positions: Vec<Value>,
}

/// What happens to unions and references on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// They stay where they are.
    Keep,
    /// They are gathered, to be folded into the node.
    Fold,
}

/// The pass, with what it must remember.
pub(super) struct Shaper<'a> {
    pub(super) rules: Rules,
    pub(super) without: &'a Stripped,
    pub(super) root: &'a Value,
    pub(super) loops: Loops,
    /// What references are being written out, outermost first.
    expanding: Vec<&'a Value>,
    budget: usize,
}

impl<'a> Shaper<'a> {
    pub(super) fn new(rules: Rules, root: &'a Value, without: &'a Stripped) -> Self {
        let loops = Loops::default();
        Self { rules, without, root, loops, expanding: Vec::new(), budget: INLINED_NODES }
    }

    /// The schema in `schema`, below the root.
    pub(super) fn node(&mut self, schema: &'a Value, level: usize) -> Value {
        if level <= SCHEMA_LEVELS && self.without.is_empty() && self.expanding.is_empty() && is_plain(schema) {
            return schema.clone();
        }
        if *schema == Value::Bool(false) && self.rules.dialect == Dialect::Full && !self.without.contains("not") {
            return nothing();
        }
        let mode = if self.rules.dialect == Dialect::Full { Mode::Keep } else { Mode::Fold };
        let draft = self.draft(schema, level, mode);
        self.finish(draft)
    }

    pub(super) fn finish(&mut self, draft: Draft) -> Value {
        match self.rules.dialect {
            Dialect::Full => self.finish_full(draft),
            Dialect::Gemini | Dialect::Local => self.finish_closed(draft),
        }
    }

    /// Reads `schema`. Anything that is not a schema reads as one that allows everything.
    pub(super) fn draft(&mut self, schema: &'a Value, level: usize, mode: Mode) -> Draft {
        if !self.afford(1) || level > SCHEMA_LEVELS {
            return self.leaf(TOO_DEEP, Types::NONE);
        }
        let whole = match schema {
            Value::Object(whole) => whole,
            Value::String(word) => return Draft::of_type(Types::of_word(word)),
            _ => return Draft::default(),
        };
        let mut draft = Draft { map: Map::with_capacity(whole.len()), ..Draft::default() };
        // What a folded branch says beside words that the node says itself.
        let mut beside = Vec::new();
        let closed = self.rules.dialect != Dialect::Full;
        let spreads = closed && matches!(whole.get("type"), Some(Value::Array(words)) if words.len() > 1);
        // The alternatives are a level themselves.
        let level_of_alternatives = level + usize::from(spreads);
        if level_of_alternatives > SCHEMA_LEVELS {
            return self.leaf(TOO_DEEP, Types::NONE);
        }
        let inner = level_of_alternatives + 1;
        for (keyword, value) in whole {
            let kind = kind(keyword);
            let stripped = self.without.contains(keyword);
            if stripped && !matches!(kind, Kind::Reference | Kind::Union | Kind::AllOf) {
                continue;
            }
            if closed {
                draft.guess = draft.guess.with(spoken_of(keyword));
            }
            let shaped = match kind {
                Kind::Type => {
                    self.read_type(value, &mut draft);
                    continue;
                }
                Kind::Nullable => {
                    draft.nullable |= *value == Value::Bool(true);
                    (draft.nullable && self.rules.nullable).then_some(Value::Bool(true))
                }
                Kind::Union => {
                    let Value::Array(branches) = value else { continue };
                    let drafts = self.branches(branches, level, mode);
                    if mode == Mode::Fold {
                        draft.branches.push(drafts);
                        continue;
                    }
                    self.keep_union(drafts, stripped, whole, &mut draft, &mut beside)
                }
                Kind::AllOf => {
                    let Value::Array(branches) = value else { continue };
                    if mode == Mode::Fold || stripped {
                        beside.extend(branches.iter().map(|branch| self.draft(branch, level + 1, mode)));
                        continue;
                    }
                    let parts = branches.iter().filter(|branch| is_schema(branch));
                    let parts = parts.map(|branch| self.node(branch, level + 1)).collect::<Vec<_>>();
                    (!parts.is_empty()).then_some(Value::Array(parts))
                }
                Kind::Reference => {
                    let Value::String(text) = value else { continue };
                    match self.target(text, mode == Mode::Keep && !stripped && !self.without.contains("$defs")) {
                        Target::Kept(text) => Some(Value::String(text)),
                        Target::WrittenOut(target) => {
                            let part = self.expand(target, level, mode);
                            fold_now(&mut draft, part, whole, &mut beside);
                            continue;
                        }
                        Target::Gone => continue,
                    }
                }
                Kind::Definitions => {
                    if level == 0 && !closed && !["$ref", "$defs"].iter().any(|word| self.without.contains(word)) {
                        self.definitions(keyword, value, &mut draft);
                    }
                    continue;
                }
                Kind::Properties => self.properties(value, inner, &mut draft),
                Kind::PrefixItems => {
                    self.positions(value, level, &mut draft);
                    continue;
                }
                Kind::Items => match value {
                    Value::Array(_) => {
                        self.positions(value, level, &mut draft);
                        continue;
                    }
                    Value::Object(_) | Value::String(_) => Some(self.node(value, inner)),
                    Value::Bool(_) if !closed => Some(Value::Object(Map::new())),
                    _ => None,
                },
                Kind::Enum => self.enumeration(value, whole, &mut draft),
                _ if closed && !self.says_something(keyword) => None,
                Kind::Schema | Kind::SchemaOrFlag => self.single(keyword, kind, value, inner),
                Kind::PatternProperties | Kind::Schemas => self.schemas(keyword, value, inner),
                Kind::Const | Kind::Data => self.data(value),
                _ => self.plain(kind, value),
            };
            if let Some(shaped) = shaped {
                draft.map.insert(keyword.clone(), shaped);
            }
        }
        for part in beside {
            fold(&mut draft, part);
        }
        if !draft.positions.is_empty() {
            let mut items = std::mem::take(&mut draft.positions);
            items.extend(
                draft.map.shift_remove("items").filter(|rest| rest.as_object().is_none_or(|rest| !rest.is_empty())),
            );
            let items = self.union_of(items);
            draft.map.insert("items".to_owned(), items);
        }
        draft
    }

    /// The schema that a reference leads to, unless it is being written out already. It takes the place of the reference,
    /// so it is no level deeper; a chain of references has a limit of its own.
    fn expand(&mut self, target: &'a Value, level: usize, mode: Mode) -> Draft {
        let times = self.expanding.iter().filter(|outer| std::ptr::eq(**outer, target)).count();
        let times = times + usize::from(std::ptr::eq(self.root, target));
        if times >= EXPANSIONS {
            return self.leaf(RECURSIVE, Types::OBJECT);
        }
        if self.expanding.len() >= SCHEMA_LEVELS {
            return self.leaf(TOO_DEEP, Types::NONE);
        }
        self.expanding.push(target);
        let draft = self.draft(target, level, mode);
        self.expanding.pop();
        draft
    }

    /// Pays `nodes` out of the budget, if a reference is being written out. Otherwise the input itself is the bound.
    fn afford(&mut self, nodes: usize) -> bool {
        if self.expanding.is_empty() {
            return true;
        }
        let enough = self.budget >= nodes;
        self.budget = self.budget.saturating_sub(nodes);
        enough
    }

    /// What stands where nothing more is said. Its finished form must not change when it is read again.
    fn leaf(&self, text: &str, types: Types) -> Draft {
        let types = match self.rules.dialect {
            Dialect::Full => types,
            Dialect::Gemini => Types::STRING,
            Dialect::Local => Types::OBJECT,
        };
        let mut draft = Draft::of_type(types);
        draft.map.insert("description".to_owned(), Value::String(text.to_owned()));
        draft
    }

    fn branches(&mut self, branches: &'a [Value], level: usize, mode: Mode) -> Vec<Draft> {
        // `false` is a branch that nothing takes.
        let branches = branches.iter().filter(|branch| is_schema(branch) && **branch != Value::Bool(false));
        branches.map(|branch| self.draft(branch, level + 1, mode)).collect()
    }

    /// A union where unions stay. One branch beside null is no union: it is folded into the node, which keeps all it
    /// said itself (spec core §20, 23). `first`: only the first branch may stay.
    fn keep_union(
        &mut self,
        mut drafts: Vec<Draft>,
        first: bool,
        whole: &Map<String, Value>,
        into: &mut Draft,
        beside: &mut Vec<Draft>,
    ) -> Option<Value> {
        let nulls = drafts.iter().filter(|branch| branch.is_null()).count();
        let others = drafts.len() - nulls;
        if others == 0 {
            if let Some(null) = drafts.pop() {
                fold_now(into, null, whole, beside);
            }
            return None;
        }
        if first || (nulls > 0 && others == 1) {
            into.nullable |= nulls > 0;
            if let Some(other) = drafts.into_iter().find(|branch| !branch.is_null()) {
                fold_now(into, other, whole, beside);
            }
            return None;
        }
        Some(Value::Array(drafts.into_iter().map(|branch| self.finish(branch)).collect()))
    }

    fn read_type(&self, value: &Value, draft: &mut Draft) {
        let words = match value {
            Value::String(_) => std::slice::from_ref(value),
            Value::Array(words) => words.as_slice(),
            _ => return,
        };
        let mut each = Vec::new();
        for types in words.iter().filter_map(Value::as_str).map(Types::of_word) {
            if !types.is_empty() && !draft.types.has(types) {
                draft.types = draft.types.with(types);
                each.push(types);
            }
        }
        let others = draft.types.without(Types::NULL);
        if others.is_single() && draft.types.has(Types::NULL) {
            draft.types = others;
            draft.nullable = true;
            each.retain(|types| *types != Types::NULL);
        }
        let shown = match each.as_slice() {
            [] => return,
            [one] => Value::from(one.word()),
            // What is made of it is decided when the whole node is known (spec core §20, 24).
            _ if self.rules.dialect != Dialect::Full => Value::Null,
            several => several.iter().map(|types| types.word()).collect(),
        };
        draft.map.insert("type".to_owned(), shown);
    }

    fn properties(&mut self, value: &'a Value, level: usize, draft: &mut Draft) -> Option<Value> {
        let Value::Object(properties) = value else { return None };
        let mut shaped = Map::with_capacity(properties.len());
        let mut refused = Vec::new();
        for (name, schema) in properties {
            if *schema == Value::Bool(false) {
                continue;
            }
            if self.rules.plain_names && !is_plain_name(name) {
                refused.push(name.as_str());
                continue;
            }
            shaped.insert(name.clone(), self.node(schema, level));
        }
        if !refused.is_empty() {
            draft.notes.push(format!("Also takes {}.", names_listed(refused.into_iter())));
        }
        Some(Value::Object(shaped))
    }

    fn definitions(&mut self, keyword: &str, value: &'a Value, draft: &mut Draft) {
        let Value::Object(schemas) = value else { return };
        let mut shaped = match draft.map.shift_remove("$defs") {
            Some(Value::Object(earlier)) => earlier,
            _ => Map::with_capacity(schemas.len()),
        };
        for (name, schema) in schemas {
            // A name in both means two schemas; references to the old one are written out.
            if keyword == "$defs" || !shaped.contains_key(name) {
                shaped.insert(name.clone(), self.node(schema, 1));
            }
        }
        draft.map.insert("$defs".to_owned(), Value::Object(shaped));
    }

    /// The schemas of a tuple's positions: no provider takes tuples, so they become one schema for all items.
    fn positions(&mut self, value: &'a Value, level: usize, draft: &mut Draft) {
        let Value::Array(positions) = value else { return };
        let positions = positions.iter().filter(|schema| is_schema(schema) && **schema != Value::Bool(false));
        let shaped = positions.map(|schema| self.node(schema, level + 2)).collect::<Vec<_>>();
        draft.positions.extend(shaped);
    }

    fn single(&mut self, keyword: &str, kind: Kind, value: &'a Value, level: usize) -> Option<Value> {
        match value {
            Value::Bool(_) if kind == Kind::SchemaOrFlag => Some(value.clone()),
            Value::Bool(_) if keyword == "not" => None,
            Value::Bool(_) | Value::Object(_) | Value::String(_) => Some(self.node(value, level)),
            _ => None,
        }
    }

    fn schemas(&mut self, keyword: &str, value: &'a Value, level: usize) -> Option<Value> {
        let Value::Object(schemas) = value else { return None };
        let mut shaped = Map::with_capacity(schemas.len());
        for (name, schema) in schemas {
            if keyword != "patternProperties" || is_pattern(name, Dialect::Full) {
                shaped.insert(name.clone(), self.node(schema, level));
            }
        }
        Some(Value::Object(shaped))
    }

    fn enumeration(&mut self, value: &Value, whole: &Map<String, Value>, draft: &mut Draft) -> Option<Value> {
        let Value::Array(values) = value else { return None };
        if values.is_empty() {
            return None;
        }
        let chars = || values.iter().filter_map(Value::as_str).map(|text| text.chars().count()).sum::<usize>();
        let oversize = values.len() > ENUM_VALUES || (values.len() > ENUM_VALUES_UNCOUNTED && chars() > ENUM_CHARS);
        if !oversize && let Some(copy) = self.data(value) {
            return Some(copy);
        }
        draft.notes.push(format!("One of {}.", listed(values)));
        let types = Types::of_values(values);
        if draft.types.is_empty() && !whole.contains_key("type") && !types.is_empty() {
            fold(draft, Draft::of_type(types));
        }
        None
    }

    /// A copy of data, byte for byte, or nothing if it is too deep to be copied or to be paid for.
    fn data(&mut self, value: &Value) -> Option<Value> {
        match value {
            Value::Array(_) | Value::Object(_) => {
                let nodes = nodes_within(value, DATA_LEVELS)?;
                self.afford(nodes).then(|| value.clone())
            }
            _ => Some(value.clone()),
        }
    }

    fn plain(&mut self, kind: Kind, value: &Value) -> Option<Value> {
        let number = value.as_f64();
        let fits = match kind {
            Kind::Text => value.is_string() && self.afford(value.as_str().map_or(0, |text| text.len() / 64)),
            Kind::Pattern => value.as_str().is_some_and(|pattern| is_pattern(pattern, self.rules.dialect)),
            Kind::Flag => value.is_boolean(),
            Kind::Number => number.is_some(),
            Kind::PositiveNumber => number.is_some_and(|number| number > 0.0),
            Kind::Count => value.is_u64() || number.is_some_and(|number| number >= 0.0 && number.fract() == 0.0),
            Kind::DataList => return if value.is_array() { self.data(value) } else { None },
            Kind::Required | Kind::Names => return self.names(value),
            Kind::NamesByName => {
                let Value::Object(lists) = value else { return None };
                let lists = lists.iter().filter_map(|(name, list)| Some((name.clone(), self.names(list)?)));
                return Some(Value::Object(lists.collect()));
            }
            _ => false,
        };
        fits.then(|| value.clone())
    }

    /// A list of names, each once. Nothing if there was something in it but no name.
    fn names(&mut self, value: &Value) -> Option<Value> {
        let Value::Array(values) = value else { return None };
        if !self.afford(values.len()) {
            return None;
        }
        if let [Value::String(_)] = values.as_slice() {
            return Some(value.clone());
        }
        let mut seen = BTreeSet::new();
        let names = values.iter().filter(|name| name.as_str().is_some_and(|name| seen.insert(name)));
        let names = names.cloned().collect::<Vec<_>>();
        (values.is_empty() || !names.is_empty()).then_some(Value::Array(names))
    }

    /// Whether a closed dialect has a use for `keyword` in some node.
    fn says_something(&self, keyword: &str) -> bool {
        match self.rules.dialect {
            Dialect::Full => true,
            Dialect::Gemini => super::closed::GEMINI.contains(&keyword) || keyword == "const",
            Dialect::Local => super::closed::LOCAL.contains(&keyword),
        }
    }
}

impl Draft {
    pub(super) fn of_type(types: Types) -> Self {
        let mut draft = Self { types, ..Self::default() };
        if types.is_single() {
            draft.map.insert("type".to_owned(), Value::from(types.word()));
        }
        draft
    }

    pub(super) fn drop_repeats(&mut self) {
        if std::mem::take(&mut self.repeats)
            && let Some(Value::Array(names)) = self.map.get_mut("required")
        {
            let mut seen = BTreeSet::new();
            names.retain(|name| name.as_str().is_some_and(|name| seen.insert(name.to_owned())));
        }
    }

    /// Whether only null fits.
    pub(super) fn is_null(&self) -> bool {
        let only_null = |value: &Value| value.is_null();
        self.types == Types::NULL
            || self.map.get("const").is_some_and(only_null)
            || self.map.get("enum").and_then(Value::as_array).is_some_and(|values| values.iter().all(only_null))
    }
}

/// Folds `part` into `draft` in the place that the pass has reached. Words that the node has itself come later and
/// replace it; what must be put together instead of being replaced waits in `beside`.
fn fold_now(draft: &mut Draft, mut part: Draft, whole: &Map<String, Value>, beside: &mut Vec<Draft>) {
    let mut later = Map::new();
    let mut now = Map::with_capacity(part.map.len());
    for (keyword, value) in std::mem::take(&mut part.map) {
        if whole.contains_key(&keyword) {
            later.insert(keyword, value)
        } else {
            now.insert(keyword, value)
        };
    }
    // The type is told by the word, so that a node's own type is read as if the part had none.
    let types = std::mem::take(&mut part.types);
    let typed = if now.contains_key("type") { types } else { Types::NONE };
    let typed_later = if later.contains_key("type") || !now.contains_key("type") { types } else { Types::NONE };
    fold(draft, Draft { map: now, types: typed, ..part });
    if !later.is_empty() || !typed_later.is_empty() {
        beside.push(Draft { map: later, types: typed_later, ..Draft::default() });
    }
}

/// The schema that nothing fits.
fn nothing() -> Value {
    let mut map = Map::new();
    map.insert("not".to_owned(), Value::Object(Map::new()));
    Value::Object(map)
}

/// Whether every provider takes `schema` as it is. This says nothing that the long way does not: it is what most
/// parameters are, and a copy costs a third.
pub(super) fn is_plain(schema: &Value) -> bool {
    let Value::Object(map) = schema else { return false };
    let Some(Value::String(word)) = map.get("type") else { return false };
    let numeric = match word.as_str() {
        "string" | "boolean" => false,
        "integer" | "number" => true,
        _ => return false,
    };
    map.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => true,
        "description" | "title" => value.as_str().is_some_and(|text| text.len() <= PARAMETER_DESCRIPTION_CHARS),
        "default" => !value.is_array() && !value.is_object(),
        "minimum" | "maximum" => numeric && value.is_number(),
        "enum" => value.as_array().is_some_and(|values| {
            let texts = values.iter().all(|value| value.as_str().is_some_and(|text| !text.is_empty()));
            texts && word == "string" && (1..=ENUM_VALUES_UNCOUNTED).contains(&values.len())
        }),
        _ => false,
    })
}

fn is_schema(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Bool(_) | Value::String(_))
}

/// The types of values that `keyword` says something about.
fn spoken_of(keyword: &str) -> Types {
    match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "minProperties"
        | "maxProperties"
        | "propertyNames"
        | "dependentRequired"
        | "dependentSchemas"
        | "unevaluatedProperties" => Types::OBJECT,
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => Types::ARRAY,
        "minLength" | "maxLength" | "pattern" => Types::STRING,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Types::NUMBER,
        _ => Types::NONE,
    }
}

/// How many values there are in `value`, if none is more than `levels` deep.
fn nodes_within(value: &Value, levels: usize) -> Option<usize> {
    let levels = levels.checked_sub(1)?;
    match value {
        Value::Array(values) => values.iter().try_fold(1, |sum, value| Some(sum + nodes_within(value, levels)?)),
        Value::Object(map) => map.values().try_fold(1, |sum, value| Some(sum + nodes_within(value, levels)?)),
        _ => Some(1),
    }
}

/// Whether `pattern` is a regular expression (ECMA-262; for Gemini, one without look-around and back references).
fn is_pattern(pattern: &str, dialect: Dialect) -> bool {
    if pattern.len() > PATTERN_BYTES {
        return false;
    }
    let mut schema = Map::new();
    schema.insert("pattern".to_owned(), Value::from(pattern));
    let schema = Value::Object(schema);
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    if dialect == Dialect::Gemini {
        let engine = jsonschema::PatternOptions::regex().size_limit(PATTERN_MEMORY);
        return options.with_pattern_options(engine).build(&schema).is_ok();
    }
    let engine = jsonschema::PatternOptions::fancy_regex().size_limit(PATTERN_MEMORY);
    options.with_pattern_options(engine).build(&schema).is_ok()
}
