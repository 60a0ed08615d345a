//! The second opinion: what a provider would say about a definition.
//!
//! It shares nothing with the transformation, not even the tables, so that a slip in one shows as a disagreement. Where the
//! rules come from is written once, in [`super::rules`].

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Profile;

/// A definition that common JSON parsers would not read back (`serde_json`'s default limit).
const LEVELS: usize = 127;

pub(super) fn check(profile: Profile, definition: &Value) -> Vec<String> {
    if is_deeper_than(definition, LEVELS) {
        // Whatever looks further would recurse.
        return vec![format!("the definition is nested more than {LEVELS} levels deep")];
    }
    let mut report = Report { profile, problems: Vec::new() };
    if let Some(schema) = report.form(definition) {
        report.json_schema(schema);
        report.root(schema);
        report.schema(schema, "", true);
    }
    report.problems
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, level)) = open.pop() {
        if level > levels {
            return true;
        }
        match value {
            Value::Array(list) => open.extend(list.iter().map(|value| (value, level + 1))),
            Value::Object(map) => open.extend(map.values().map(|value| (value, level + 1))),
            _ => {}
        }
    }
    false
}

struct Report {
    profile: Profile,
    problems: Vec<String>,
}

impl Report {
    fn say(&mut self, place: &str, problem: &str) {
        let place = if place.is_empty() { "/" } else { place };
        self.problems.push(format!("{place}: {problem}"));
    }

    /// Checks everything around the schema and returns the schema.
    fn form<'a>(&mut self, definition: &'a Value) -> Option<&'a Value> {
        let (inner, fields, schema): (_, &[&str], _) = match self.profile {
            Profile::OpenAiChat | Profile::Local => {
                self.fields("definition", definition, &["type", "function"]);
                let inner = definition.get("function").unwrap_or(&Value::Null);
                (inner, &["name", "description", "parameters"], "parameters")
            }
            Profile::OpenAiResponses => {
                (definition, &["type", "name", "description", "parameters", "strict"], "parameters")
            }
            Profile::Anthropic => (definition, &["name", "description", "input_schema"], "input_schema"),
            Profile::Gemini => (definition, &["name", "description", "parameters"], "parameters"),
        };
        self.fields("function", inner, fields);
        let typed = !matches!(self.profile, Profile::Anthropic | Profile::Gemini);
        if typed && definition.get("type").is_none_or(|word| word != "function") {
            self.say("type", "must be `function`");
        }
        if self.profile == Profile::OpenAiResponses && inner.get("strict").is_none_or(|strict| *strict != false) {
            self.say("strict", "must be false: these schemas are not written for strict mode");
        }
        let name = inner.get("name").and_then(Value::as_str).unwrap_or_default();
        let named_well = !name.is_empty()
            && name.len() <= 64
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !named_well || (self.profile == Profile::Gemini && !starts_well) {
            self.say("name", "is not a name of a function");
        }
        match inner.get("description").and_then(Value::as_str) {
            None => self.say("description", "must be a text"),
            Some(text) if self.profile == Profile::OpenAiChat && text.chars().count() > 1024 => {
                self.say("description", "string too long, at most 1024 characters");
            }
            Some(_) => {}
        }
        let found = inner.get(schema);
        if found.is_none() && self.profile != Profile::Gemini {
            self.say(schema, "is missing");
        }
        found
    }

    fn fields(&mut self, place: &str, value: &Value, known: &[&str]) {
        let Value::Object(map) = value else {
            self.say(place, "must be an object");
            return;
        };
        for field in map.keys().filter(|field| !known.contains(&field.as_str())) {
            self.say(place, &format!("unknown field `{field}`"));
        }
    }

    fn json_schema(&mut self, schema: &Value) {
        if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
            self.say(&error.instance_path().to_string(), &format!("not draft 2020-12: {error}"));
            return;
        }
        // Finds references that lead nowhere and patterns that are none.
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
        if let Err(error) = options.build(schema) {
            self.say(&error.instance_path().to_string(), &format!("cannot be used: {error}"));
        }
    }

    fn root(&mut self, schema: &Value) {
        if schema.get("type").is_none_or(|word| word != "object") {
            self.say("", "schema must be of type `object`");
        }
        if !schema.get("properties").is_some_and(Value::is_object) {
            self.say("", "object schema missing properties");
        }
        for keyword in ["oneOf", "anyOf", "allOf", "not", "enum", "$ref"] {
            if schema.get(keyword).is_some() {
                self.say("", &format!("`{keyword}` at the top level"));
            }
        }
    }

    fn schema(&mut self, schema: &Value, place: &str, root: bool) {
        let Value::Object(map) = schema else {
            self.say(place, "a schema must be an object here");
            return;
        };
        match self.profile {
            Profile::OpenAiChat | Profile::OpenAiResponses => self.open_ai(map, place),
            Profile::Anthropic => self.anthropic(map, place),
            Profile::Gemini => self.gemini(map, place, root),
            Profile::Local => self.local(map, place),
        }
        self.any(map, place);
        for (keyword, value) in map {
            let place = format!("{place}/{keyword}");
            match (keyword.as_str(), value) {
                ("additionalProperties" | "unevaluatedProperties" | "unevaluatedItems", Value::Bool(_)) => {}
                (
                    "items"
                    | "contains"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "propertyNames"
                    | "contentSchema"
                    | "additionalProperties"
                    | "unevaluatedProperties"
                    | "unevaluatedItems",
                    schema,
                ) => self.schema(schema, &place, false),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                    for (index, schema) in schemas.iter().enumerate() {
                        self.schema(schema, &format!("{place}/{index}"), false);
                    }
                }
                (
                    "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                    Value::Object(map),
                ) => {
                    for (name, schema) in map {
                        self.schema(schema, &format!("{place}/{name}"), false);
                    }
                }
                _ => {}
            }
        }
    }

    /// What is wrong everywhere.
    fn any(&mut self, map: &Map<String, Value>, place: &str) {
        if map.get("description").and_then(Value::as_str).is_some_and(|text| text.chars().count() > 4096) {
            self.say(place, "the description is too long");
        }
        if let Some(Value::Array(values)) = map.get("enum") {
            let chars = values.iter().filter_map(Value::as_str).map(|text| text.chars().count()).sum::<usize>();
            if values.is_empty() {
                self.say(place, "an enum without values");
            }
            if values.len() > 1000 || (values.len() > 250 && chars > 15_000) {
                self.say(place, "an enum with too many values");
            }
        }
        for keyword in ["prefixItems", "definitions", "$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor"] {
            if map.contains_key(keyword) {
                self.say(place, &format!("`{keyword}` is not understood everywhere"));
            }
        }
        let elsewhere = ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| map.contains_key(*keyword));
        let properties = map.get("properties").and_then(Value::as_object);
        if !elsewhere && (properties.is_some() || is_typed(map, "object")) {
            for name in map.get("required").and_then(Value::as_array).into_iter().flatten() {
                let known = name.as_str().is_some_and(|name| properties.is_some_and(|known| known.contains_key(name)));
                if !known {
                    self.say(place, &format!("property is not defined: {name}"));
                }
            }
        }
        if is_typed(map, "array") && !map.contains_key("items") {
            self.say(place, "array schema missing items");
        }
        for union in ["anyOf", "oneOf"] {
            let branches = map.get(union).and_then(Value::as_array);
            let nulls = branches.into_iter().flatten().filter(|branch| branch.get("type").is_some_and(|t| t == "null"));
            if nulls.count() > 0 && branches.is_some_and(|branches| branches.len() == 2) {
                self.say(place, "a nullable union was left");
            }
        }
    }

    fn open_ai(&mut self, map: &Map<String, Value>, place: &str) {
        if map.contains_key("$ref") && map.contains_key("default") {
            self.say(place, "$ref cannot have keywords {'default'}");
        }
    }

    fn anthropic(&mut self, map: &Map<String, Value>, place: &str) {
        self.open_ai(map, place);
        for keyword in ["patternProperties", "nullable"] {
            if map.contains_key(keyword) {
                self.say(place, &format!("`{keyword}` is refused"));
            }
        }
        for name in map.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            if name.is_empty() || name.chars().count() > 64 || !name.chars().all(allowed) {
                self.say(place, &format!("Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$': {name:?}"));
            }
        }
    }

    fn gemini(&mut self, map: &Map<String, Value>, place: &str, root: bool) {
        if map.contains_key("anyOf") {
            if map.len() > 1 {
                self.say(place, "When using any_of, it must be the only field set");
            }
            if map.get("anyOf").and_then(Value::as_array).is_none_or(|branches| branches.len() < 2) {
                self.say(place, "any_of is no choice");
            }
            return;
        }
        let word = self.one_type(map, place, &["string", "number", "integer", "boolean", "array", "object"]);
        let only = |keyword: &str| -> Option<&[&str]> {
            Some(match keyword {
                "type" | "title" | "description" | "nullable" | "default" | "example" => &[],
                "format" => &["string", "number", "integer"],
                "enum" | "minLength" | "maxLength" | "pattern" => &["string"],
                "minimum" | "maximum" => &["number", "integer"],
                "items" | "minItems" | "maxItems" => &["array"],
                "properties" | "required" | "propertyOrdering" | "minProperties" | "maxProperties" => &["object"],
                _ => return None,
            })
        };
        for (keyword, value) in map {
            match only(keyword) {
                None => self.say(place, &format!("Unknown name \"{keyword}\": Cannot find field.")),
                Some(types) if !types.is_empty() && !types.contains(&word) => {
                    self.say(place, &format!("{keyword}: only allowed for {types:?}"));
                }
                Some(_) if keyword.starts_with("min") || keyword.starts_with("max") => {
                    let is_count = keyword != "minimum" && keyword != "maximum";
                    if is_count && value.as_i64().is_none_or(|count| count < 0) {
                        self.say(place, &format!("{keyword}: not a count"));
                    }
                }
                Some(_) => {}
            }
        }
        let texts = map.get("enum").and_then(Value::as_array);
        for value in texts.into_iter().flatten() {
            if value.as_str().is_none_or(str::is_empty) {
                self.say(place, "enum: must be texts that are not empty");
            }
        }
        if let Some(format) = map.get("format").and_then(Value::as_str) {
            let known = match word {
                "string" => format == "date-time" || (format == "enum" && texts.is_some()),
                "number" => format == "float" || format == "double",
                "integer" => format == "int32" || format == "int64",
                _ => false,
            };
            if !known {
                self.say(place, &format!("format: `{format}` is not supported for {word}"));
            }
        }
        if word == "object" && map.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty) {
            let which = if root { "of the tool" } else { "of a parameter" };
            self.say(place, &format!("properties {which}: should be non-empty for OBJECT type"));
        }
    }

    fn local(&mut self, map: &Map<String, Value>, place: &str) {
        for keyword in [
            "$ref",
            "$defs",
            "pattern",
            "format",
            "not",
            "if",
            "then",
            "else",
            "oneOf",
            "allOf",
            "nullable",
            "patternProperties",
            "dependentSchemas",
            "contains",
        ] {
            if map.contains_key(keyword) {
                self.say(place, &format!("`{keyword}` cannot become a grammar"));
            }
        }
        for keyword in ["minLength", "maxLength", "minItems", "maxItems"] {
            if map.get(keyword).and_then(Value::as_f64).is_some_and(|bound| bound >= 2000.0) {
                self.say(place, &format!("{keyword}: number of repetitions exceeds sane defaults"));
            }
        }
        if map.contains_key("anyOf") {
            if map.contains_key("type") {
                self.say(place, "a type beside a choice");
            }
        } else {
            self.one_type(map, place, &["string", "number", "integer", "boolean", "array", "object", "null"]);
        }
    }

    fn one_type<'a>(&mut self, map: &'a Map<String, Value>, place: &str, known: &[&str]) -> &'a str {
        let word = map.get("type").and_then(Value::as_str).unwrap_or_default();
        if !known.contains(&word) {
            self.say(place, "needs exactly one type");
        }
        word
    }
}

fn is_typed(map: &Map<String, Value>, word: &str) -> bool {
    let types = map.get("type").map_or(&[] as &[Value], |types| match types {
        Value::Array(several) => several.as_slice(),
        one => std::slice::from_ref(one),
    });
    types.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>().contains(word)
}
