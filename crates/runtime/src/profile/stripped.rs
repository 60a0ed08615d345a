//! What one session learned from a refusal: the keywords that its provider does not want.
//!
//! The original strips keywords from the shared tool list in place and so poisons every later session. Here the lesson
//! is a value: the session holds it and hands it to [`Profile::definition`](super::Profile::definition).
//!
//! The tricky part is reading: `format`, `not` and `if` are English words, and a message names places as well as culprits. So a keyword
//! counts in the strongest form in which the message has any: an unknown name, the end of a path, a quoted word.

use std::collections::BTreeSet;

/// Schema keywords that are left out for one session because the provider's error message named them.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Stripped(BTreeSet<&'static str>);

/// What may be left out. Never `type`, `properties`, `items` and `required`: without them there is no schema.
const STRIPPABLE: &[&str] = &[
    "$comment",
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "propertyNames",
    "propertyOrdering",
    "readOnly",
    "then",
    "title",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];

/// What a complaint about a grammar or schema means when it names nothing (spec core §6.2, last row).
const USUAL: [&str; 2] = ["format", "pattern"];

/// How sure it is that a word of a message is a keyword it objects to; the strongest form wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// `pattern must start with '^'`: a word that is a keyword by its looks, or one of the usual two.
    Plain,
    /// `'allOf' is not permitted`
    Quoted,
    /// `parameters.properties[url].format: only …`
    EndOfPath,
    /// `Unknown name "exclusiveMinimum" at …`
    UnknownName,
}

impl Stripped {
    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keywords, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().copied()
    }

    /// Whether `keyword` is left out.
    pub fn contains(&self, keyword: &str) -> bool {
        !self.0.is_empty() && self.0.contains(keyword)
    }

    /// Leaves out what `other` does as well. Whether anything was new: if not, trying again would change nothing.
    pub fn add(&mut self, other: &Self) -> bool {
        let before = self.0.len();
        self.0.extend(&other.0);
        self.0.len() > before
    }

    /// Which keywords the `message` of a provider's HTTP 400 objects to.
    ///
    /// A message that speaks of a grammar or a schema and names none means `pattern` and `format` (spec core §6.2). A
    /// message about something else, such as the context length or `response_format`, gives nothing.
    pub fn named_in(message: &str) -> Self {
        let lower = message.to_ascii_lowercase();
        let about_tools = ["tools[", "tools.", "function", "input_schema", "grammar", "parameters"];
        let about_schema = lower.contains("schema") || lower.contains("grammar");
        let speaks_of_tools = about_tools.iter().any(|word| lower.contains(word));
        let about_answers = lower.contains("response_format") || lower.contains("text.format");
        let concerns_us = speaks_of_tools || (about_schema && !about_answers);
        if !concerns_us {
            return Self::default();
        }
        let found = mentions(message, about_schema);
        let strongest = found.iter().map(|(form, _)| *form).max();
        let named = found.iter().filter(|(form, _)| Some(*form) == strongest).map(|(_, name)| *name);
        match strongest {
            Some(_) => Self(named.collect()),
            None if about_schema => Self(USUAL.into()),
            None => Self::default(),
        }
    }
}

/// Every mention of a keyword in `message`. `plain`: whether the usual two count without quotes.
fn mentions(message: &str, plain: bool) -> Vec<(Form, &'static str)> {
    let mut found = Vec::new();
    let mut rest = message;
    let mut before = '\n';
    let mut behind_unknown_name = false;
    while let Some(start) = rest.find(is_word_char) {
        let gap = &rest[..start];
        before = gap.chars().next_back().unwrap_or(before);
        let word_and_rest = &rest[start..];
        let end = word_and_rest.find(|c| !is_word_char(c)).unwrap_or(word_and_rest.len());
        let (word, after) = word_and_rest.split_at(end);
        rest = after;
        // A place, not a culprit: `In context=('properties', 'format'), …`.
        if word == "context"
            && let Some(tuple) = after.strip_prefix("=(")
        {
            rest = tuple.find(')').map_or("", |close| &tuple[close..]);
        } else if let Some(name) = keyword(word)
            && let Some(form) = form(name, word, before, after, behind_unknown_name, plain)
        {
            found.push((form, name));
        }
        behind_unknown_name = word == "name";
        before = word.chars().next_back().unwrap_or(before);
    }
    found
}

fn form(name: &str, word: &str, before: char, after: &str, behind_name: bool, plain: bool) -> Option<Form> {
    let next = after.chars().next();
    let quoted = matches!(before, '"' | '\'' | '`') && next.is_some_and(|c| matches!(c, '"' | '\'' | '`' | '\\'));
    if behind_name && quoted {
        return Some(Form::UnknownName);
    }
    let at_end = behind_index(after).starts_with([':', '\'', '"', '\\']);
    if matches!(before, '.' | '/') && at_end {
        return Some(Form::EndOfPath);
    }
    if matches!(before, '.' | '/') {
        return None;
    }
    if quoted {
        return Some(Form::Quoted);
    }
    let looks_like_one = name.starts_with('$') || word.contains('_') || name.bytes().any(|b| b.is_ascii_uppercase());
    (looks_like_one || (plain && USUAL.contains(&name))).then_some(Form::Plain)
}

/// `text` without the index it begins with: a value in a list is as much the keyword's fault as the list.
fn behind_index(text: &str) -> &str {
    let index = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    index.filter(|(index, _)| index.bytes().all(|b| b.is_ascii_digit())).map_or(text, |(_, behind)| behind)
}

/// The keyword that `word` is, also as protobuf spells it (`any_of`) and at the start of a sentence (`Pattern`).
fn keyword(word: &str) -> Option<&'static str> {
    let same = |name: &&&str| {
        **name == word || snake(name) == word || (USUAL.contains(*name) && name.eq_ignore_ascii_case(word))
    };
    STRIPPABLE.iter().find(same).copied()
}

fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(message: &str) -> Vec<&'static str> {
        Stripped::named_in(message).names().collect()
    }

    #[test]
    fn a_refusal_names_what_it_objects_to() {
        for (message, expected) in [
            (
                "Invalid schema for function 'x': In context=('properties', 'format'), 'allOf' is not permitted.",
                vec!["allOf"],
            ),
            (
                "GenerateContentRequest.tools[0].function_declarations[9].parameters.properties[links].items.properties[url].format: \
                 only 'enum' and 'date-time' are supported for STRING type",
                vec!["format"],
            ),
            (
                "Invalid JSON payload received. Unknown name \"exclusiveMinimum\" at \
                 'tools[0].function_declarations[11].parameters.properties[1].value.any_of[0]': Cannot find field.",
                vec!["exclusiveMinimum"],
            ),
            (
                "* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[mode].enum: only allowed for STRING type",
                vec!["enum"],
            ),
            (
                "Invalid value at 'request.tools[0].function_declarations[21].parameters.properties[5].value.enum[0]' \
                 (TYPE_STRING), 0\nInvalid value at 'request.tools[0].function_declarations[2].parameters.value.enum[1]'",
                vec!["enum"],
            ),
            (
                "GenerateContentRequest.tools[0].function_declarations[5].parameters.properties[a].any_of[1].enum[3]: cannot be empty",
                vec!["enum"],
            ),
            (
                "tools.9.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
                vec!["allOf", "anyOf", "oneOf"],
            ),
            ("JSON schema conversion failed:\nPattern must start with '^' and end with '$'", vec!["pattern"]),
            (
                "schema specified other fields alongside any_of. When using any_of, it must be the only field set.",
                vec!["anyOf"],
            ),
            (
                "In context=('properties', 'x'), $ref cannot have keywords {'default'} (function parameters)",
                vec!["default"],
            ),
            ("Invalid schema for function 'f': 'uri' is not a valid 'format'.", vec!["format"]),
        ] {
            assert_eq!(named(message), expected, "{message}");
        }
    }

    #[test]
    fn a_grammar_that_fails_without_a_reason_means_pattern_and_format() {
        for message in [
            "Failed to initialize samplers: failed to parse grammar",
            "tools.27.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
        ] {
            assert_eq!(named(message), ["format", "pattern"], "{message}");
        }
    }

    #[test]
    fn a_refusal_of_something_else_names_nothing() {
        for message in [
            "",
            "This model's maximum context length is 8192 tokens, not 9000. If you need more, then shorten it.",
            "Invalid image format: only 'png' is supported",
            "Invalid schema for response_format 'answer': 'anyOf' is not permitted.",
            "Invalid 'tools[3].function.description': string too long. Expected a string with maximum length 1024",
        ] {
            assert_eq!(named(message), Vec::<&str>::new(), "{message}");
        }
    }

    #[test]
    fn adding_says_whether_anything_was_new() {
        let mut stripped = Stripped::default();
        let grammar = Stripped::named_in("failed to parse grammar");
        assert!(stripped.add(&grammar));
        assert!(!stripped.add(&grammar));
        assert!(!stripped.add(&Stripped::default()));
        assert_eq!(stripped, grammar);
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(STRIPPABLE.is_sorted());
    }
}
