//! Step: the arguments must satisfy the tool's schema, or the call ends here with everything that is wrong.
//!
//! All problems are named at once, in a sentence and as data, and the expected shape with them, so that the model needs
//! one more attempt, not five. A tool that is called wrongly twice in a row answers with its schema: the model has
//! evidently lost it.
//!
//! The tricky idea: of a union the validator can only say that no branch holds. The branch that was meant is found by
//! what it does *not* complain about (the type, a distinguishing constant), and its own complaints are passed on.

use std::fmt::Write as _;

use async_trait::async_trait;
use hermes_core::{JsonMap, ToolError, ToolSpec};
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde::Serialize;
use serde_json::Value;

use super::coerce::nullable;
use super::parse::kind_in_words;
use super::{Call, Phase, Status, Step};
use crate::registry::Entry;

/// More problems than this are counted and not described.
const MOST_PROBLEMS: usize = 20;
/// Longer names and values are cut.
const MOST_CHARS: usize = 60;
/// Schemas may refer to themselves; words about them end here.
const DEEPEST: usize = 4;

#[derive(Debug)]
pub(super) struct Validate;

#[async_trait]
impl Step for Validate {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let Some(entry) = call.entry else { return };
        let (task, spec) = (call.scope.task, entry.tool.spec());
        let Some(error) = error(entry, &mut call.arguments) else { return task.valid_now(spec.name.as_str()) };
        let again = task.invalid_again(spec.name.as_str());
        let error = if again { error.with("schema", spec.parameters.clone()) } else { error };
        call.refuse(Status::InvalidArguments, error);
    }
}

/// What is wrong with `arguments`, if anything. They are only borrowed for the look, and are the same afterwards.
pub(super) fn error(entry: &Entry, arguments: &mut JsonMap) -> Option<ToolError> {
    let spec = entry.tool.spec();
    let validator = match entry.validator() {
        Ok(validator) => validator,
        // A schema that cannot be read cannot be satisfied: the restriction fails closed.
        Err(why) => {
            let message = format!("{}: the tool's own schema is broken: {why}; nothing was run.", spec.name);
            return Some(ToolError::tell(message));
        }
    };
    let value = Value::Object(std::mem::take(arguments));
    let problems = if validator.is_valid(&value) {
        Problems::default()
    } else {
        Problems::of(validator.iter_errors(&value), &spec.parameters)
    };
    if let Value::Object(map) = value {
        *arguments = map;
    }
    (problems.total > 0).then(|| problems.told(spec))
}

/// One thing that is wrong with the arguments.
#[derive(Serialize)]
struct Problem {
    /// Where, with dots: `todos.0.status`; empty for the arguments as a whole.
    field: String,
    /// What is there.
    got: String,
    /// What should be there.
    expected: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<Value>,
    /// The same for the one sentence.
    #[serde(skip)]
    sentence: String,
}

/// Everything that is wrong, as far as it is worth describing.
#[derive(Default)]
struct Problems {
    described: Vec<Problem>,
    total: usize,
}

impl Problems {
    fn of<'e>(errors: impl Iterator<Item = ValidationError<'e>>, root: &Value) -> Self {
        let mut problems = Self::default();
        for error in errors {
            problems.add(&error, root);
        }
        problems
    }

    fn add(&mut self, error: &ValidationError<'_>, root: &Value) {
        let schema = schema_of(error, root);
        if error.instance().is_null() && schema.is_some_and(takes_null) {
            return;
        }
        if let ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } = error.kind()
            && let Some(meant) = meant_branch(error, context)
        {
            return meant.iter().for_each(|error| self.add(error, root));
        }
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                let known = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
                for name in unexpected {
                    self.push(|| unknown(error, name, known));
                }
            }
            _ => self.push(|| problem(error, schema, root)),
        }
    }

    fn push(&mut self, describe: impl FnOnce() -> Problem) {
        self.total += 1;
        if self.described.len() < MOST_PROBLEMS {
            self.described.push(describe());
        }
    }

    fn told(&self, spec: &ToolSpec) -> ToolError {
        let sentences: Vec<&str> = self.described.iter().map(|problem| problem.sentence.as_str()).collect();
        let more = match self.total - self.described.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let problems = sentences.join("; ");
        let message = format!("{}: {problems}{more}; nothing was run. Expected {}.", spec.name, shape(spec));
        let fields = self.described.iter().filter_map(|problem| serde_json::to_value(problem).ok());
        ToolError::tell(message).with("fields", fields.collect::<Value>())
    }
}

/// The schema that has the keyword which failed.
fn schema_of<'r>(error: &ValidationError<'_>, root: &'r Value) -> Option<&'r Value> {
    let (schema, _keyword) = error.schema_path().as_str().rsplit_once('/')?;
    root.pointer(schema)
}

/// `nullable` is not a word of JSON Schema, so the validator does not know it.
fn takes_null(schema: &Value) -> bool {
    let branches = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    [schema].into_iter().chain(branches).filter_map(Value::as_object).any(nullable)
}

/// The complaints of the one branch of a union that can have been meant.
fn meant_branch<'c>(
    union: &ValidationError<'_>,
    branches: &'c [Vec<ValidationError<'static>>],
) -> Option<&'c [ValidationError<'static>]> {
    let here = union.instance_path();
    let right_type = |errors: &&Vec<ValidationError<'_>>| {
        let wrong = |error: &ValidationError<'_>| {
            matches!(
                error.kind(),
                ValidationErrorKind::Type { .. }
                    | ValidationErrorKind::Enum { .. }
                    | ValidationErrorKind::Constant { .. }
            ) && error.instance_path() == here
        };
        !errors.iter().any(wrong)
    };
    let right_constants = |errors: &&Vec<ValidationError<'_>>| {
        !errors.iter().any(|error| matches!(error.kind(), ValidationErrorKind::Constant { .. }))
    };
    let candidates: Vec<_> = branches.iter().filter(right_type).collect();
    let only = match candidates.as_slice() {
        [only] => only,
        several => {
            let mut right = several.iter().filter(|errors| right_constants(errors));
            right.next().filter(|_| right.next().is_none())?
        }
    };
    Some(only)
}

fn unknown(error: &ValidationError<'_>, name: &str, known: Option<&JsonMap>) -> Problem {
    let shown = cut(name);
    let known: Vec<&String> = known.into_iter().flat_map(JsonMap::keys).collect();
    Problem {
        field: joined(&place(error), &shown),
        got: got(error.instance().get(name)),
        expected: "no argument of this name".into(),
        allowed: Some(known.into_iter().cloned().collect()),
        sentence: format!("no such argument: `{shown}`"),
    }
}

fn problem(error: &ValidationError<'_>, schema: Option<&Value>, root: &Value) -> Problem {
    let field = place(error);
    if let ValidationErrorKind::Required { property } = error.kind() {
        let name = property.as_str().unwrap_or_default();
        let wanted = schema.and_then(|schema| schema.get("properties")?.get(name));
        let inside = if field.is_empty() { String::new() } else { format!(" in `{field}`") };
        return Problem {
            field: joined(&field, name),
            got: got(None),
            expected: wanted.map_or_else(|| "a value".into(), |wanted| in_words(wanted, root, 0)),
            allowed: wanted.and_then(|wanted| wanted.get("enum")).cloned(),
            sentence: format!("missing `{name}`{inside}"),
        };
    }
    let value: &Value = error.instance();
    let (expected, allowed) = expected(error, schema, root);
    let of_what = if field.is_empty() { "the arguments".to_owned() } else { format!("`{field}`") };
    let sentence = match (&allowed, &expected) {
        (Some(_), expected) => format!("{of_what} must be {expected}, not {}", short(value)),
        (None, expected) => format!("{of_what} must be {expected}, but it is {}", got(Some(value))),
    };
    Problem { field, got: got(Some(value)), expected, allowed, sentence }
}

/// What should be there, to follow "must be", and the list of all values where there is one.
fn expected(error: &ValidationError<'_>, schema: Option<&Value>, root: &Value) -> (String, Option<Value>) {
    use ValidationErrorKind as Kind;
    let words = match error.kind() {
        Kind::Type { kind: TypeKind::Single(kind) } => with_article(&kind.to_string()),
        Kind::Type { kind: TypeKind::Multiple(kinds) } => {
            kinds.iter().map(|kind| with_article(&kind.to_string())).collect::<Vec<_>>().join(" or ")
        }
        Kind::Enum { options } => return (one_of(options), Some(Value::clone(options))),
        Kind::Constant { expected_value } => {
            let only = Value::clone(expected_value);
            return (short(&only), Some(Value::Array(vec![only])));
        }
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            schema.map_or_else(|| "of another shape".into(), |schema| in_words(schema, root, 0))
        }
        Kind::OneOfMultipleValid { .. } => "of exactly one of the shapes in its schema".into(),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("of {limit} or more characters"),
        Kind::MaxLength { limit } => format!("of {limit} or fewer characters"),
        Kind::MinItems { limit } | Kind::MinProperties { limit } => format!("of {limit} or more elements"),
        Kind::MaxItems { limit } | Kind::MaxProperties { limit } => format!("of {limit} or fewer elements"),
        Kind::UniqueItems => "without an element twice".into(),
        Kind::Pattern { pattern } => format!("a text that matches /{}/", cut(pattern)),
        Kind::Format { format } => format!("a valid {format}"),
        Kind::FalseSchema => "left out".into(),
        // Its own words, without the value, which may be a page.
        _ => return (format!("different ({})", cut(&error.masked().to_string())), None),
    };
    (words, None)
}

/// What a schema takes, in words that follow "must be".
fn in_words(schema: &Value, root: &Value, depth: usize) -> String {
    if let Some(options) = schema.get("enum") {
        return one_of(options);
    }
    match schema.get("type") {
        Some(Value::String(kind)) => return with_article(kind),
        Some(Value::Array(kinds)) => {
            return kinds.iter().filter_map(Value::as_str).map(with_article).collect::<Vec<_>>().join(" or ");
        }
        _ => {}
    }
    if let Some(only) = schema.get("const") {
        return short(only);
    }
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|name| root.pointer(name.strip_prefix('#')?));
    let union = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
    match (target, union) {
        (Some(target), _) if depth < DEEPEST => in_words(target, root, depth + 1),
        (_, Some(branches)) if depth < DEEPEST => {
            let mut words: Vec<String> = branches.iter().map(|branch| in_words(branch, root, depth + 1)).collect();
            words.dedup();
            words.join(" or ")
        }
        _ => "a value".into(),
    }
}

fn one_of(options: &Value) -> String {
    let options: Vec<String> = options.as_array().into_iter().flatten().map(Value::to_string).collect();
    format!("one of {}", options.join(", "))
}

fn place(error: &ValidationError<'_>) -> String {
    let unescaped = |step: &str| step.replace("~1", "/").replace("~0", "~");
    let path = error.instance_path().to_string();
    path.split('/').skip(1).map(unescaped).map(|step| cut(&step)).collect::<Vec<_>>().join(".")
}

fn joined(place: &str, name: &str) -> String {
    if place.is_empty() { name.into() } else { format!("{place}.{name}") }
}

fn with_article(kind: &str) -> String {
    match kind {
        "null" => kind.into(),
        kind if kind.starts_with(['a', 'i', 'o']) => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

fn got(value: Option<&Value>) -> String {
    match value {
        None => "nothing".into(),
        Some(value @ (Value::Object(_) | Value::Array(_) | Value::Null)) => kind_in_words(value).into(),
        Some(value) => format!("{} ({})", kind_in_words(value), short(value)),
    }
}

fn short(value: &Value) -> String {
    match value {
        // A page is not written as JSON to be cut.
        Value::String(text) if text.len() > 8 * MOST_CHARS => cut(&format!("\"{}", cut(text))),
        value => cut(&value.to_string()),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
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

/// The type of an argument, as short as in a signature.
pub(super) fn type_in_words(schema: &Value) -> String {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return options.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    }
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            format!("[{}]", schema.get("items").map_or_else(|| "any".into(), type_in_words))
        }
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
        _ => match ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array()) {
            Some(branches) => branches.iter().map(type_in_words).collect::<Vec<_>>().join("|"),
            None => schema.get("const").map_or_else(|| "any".into(), Value::to_string),
        },
    }
}
