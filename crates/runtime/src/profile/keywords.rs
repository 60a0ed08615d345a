//! The vocabulary: what each word of JSON Schema holds, and the words for types.
//!
//! A transformation that recurses into "any map" turns a parameter's default value into a schema, and a parameter that
//! happens to be called `default` into a keyword. So the question *what is in here?* has one answer, in one table, and
//! whatever is not in the table is data.

use serde_json::Value;

/// What the value of a keyword is (JSON Schema 2020-12, core §10 and validation §6–9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Type,
    Nullable,
    /// One schema.
    Schema,
    /// One schema or a boolean, where the boolean says something that an empty schema does not.
    SchemaOrFlag,
    Items,
    PrefixItems,
    /// `anyOf`, `oneOf`.
    Union,
    AllOf,
    Properties,
    PatternProperties,
    /// Names with a schema each.
    Schemas,
    Definitions,
    Reference,
    Required,
    /// A list of property names that is no demand (Gemini's `propertyOrdering`).
    Names,
    /// Names with a list of names each.
    NamesByName,
    Enum,
    Const,
    /// A list of data.
    DataList,
    /// Anything; never looked into.
    Data,
    Number,
    PositiveNumber,
    /// A whole number from 0.
    Count,
    Flag,
    Text,
    Pattern,
    /// Says where a schema lives or which dialect it is in; true of the original, not of what is made of it.
    Dropped,
}

/// The kind of `keyword`. An unknown word is an annotation, and its value data.
pub(super) fn kind(keyword: &str) -> Kind {
    match keyword {
        "type" => Kind::Type,
        "description" | "title" | "format" | "$comment" | "contentEncoding" | "contentMediaType" => Kind::Text,
        "properties" => Kind::Properties,
        "required" => Kind::Required,
        "enum" => Kind::Enum,
        "items" => Kind::Items,
        "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" => Kind::SchemaOrFlag,
        "anyOf" | "oneOf" => Kind::Union,
        "allOf" => Kind::AllOf,
        "$ref" => Kind::Reference,
        "$defs" | "definitions" => Kind::Definitions,
        "const" => Kind::Const,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => Kind::Number,
        "multipleOf" => Kind::PositiveNumber,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
        | "maxContains" => Kind::Count,
        "pattern" => Kind::Pattern,
        "nullable" => Kind::Nullable,
        "examples" => Kind::DataList,
        "uniqueItems" | "readOnly" | "writeOnly" | "deprecated" => Kind::Flag,
        "not" | "if" | "then" | "else" | "contains" | "propertyNames" | "contentSchema" => Kind::Schema,
        "prefixItems" => Kind::PrefixItems,
        "patternProperties" => Kind::PatternProperties,
        "dependentSchemas" => Kind::Schemas,
        "dependentRequired" => Kind::NamesByName,
        "propertyOrdering" => Kind::Names,
        "$schema" | "$id" | "$anchor" | "$dynamicRef" | "$dynamicAnchor" | "$recursiveRef" | "$recursiveAnchor"
        | "$vocabulary" | "dependencies" | "additionalItems" => Kind::Dropped,
        _ => Kind::Data,
    }
}

/// A set of JSON types.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const STRING: Self = Self(1);
    pub(super) const NUMBER: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const BOOLEAN: Self = Self(8);
    pub(super) const ARRAY: Self = Self(16);
    pub(super) const OBJECT: Self = Self(32);
    pub(super) const NULL: Self = Self(64);

    /// One by one, always in this order, so that what is made of a list does not depend on how it was written.
    const EACH: [(Self, &'static str); 7] = [
        (Self::STRING, "string"),
        (Self::NUMBER, "number"),
        (Self::INTEGER, "integer"),
        (Self::BOOLEAN, "boolean"),
        (Self::ARRAY, "array"),
        (Self::OBJECT, "object"),
        (Self::NULL, "null"),
    ];

    /// What a type word means: the seven words of JSON Schema in any case, and what Python and C call the same things.
    /// Empty for any other word.
    pub(super) fn of_word(word: &str) -> Self {
        if let Some((types, _)) = Self::EACH.iter().find(|(_, known)| *known == word) {
            return *types;
        }
        match word.to_ascii_lowercase().as_str() {
            "string" | "str" => Self::STRING,
            "number" | "float" | "double" => Self::NUMBER,
            "integer" | "int" => Self::INTEGER,
            "boolean" | "bool" => Self::BOOLEAN,
            "array" | "list" => Self::ARRAY,
            "object" | "dict" => Self::OBJECT,
            "null" => Self::NULL,
            _ => Self::NONE,
        }
    }

    /// The type that all `values` have, null left aside; whole numbers among others are numbers.
    pub(super) fn of_values(values: &[Value]) -> Self {
        let mut all = values.iter().map(Self::of_value).fold(Self::NONE, Self::with);
        if all != Self::NULL {
            all = all.without(Self::NULL);
        }
        all = all.widened();
        if all.is_single() { all } else { Self::NONE }
    }

    pub(super) fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() => Self::NUMBER,
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(super) fn word(self) -> &'static str {
        Self::EACH.iter().find(|(types, _)| *types == self).map_or("string", |(_, word)| word)
    }

    pub(super) fn each(self) -> impl Iterator<Item = Self> {
        Self::EACH.iter().map(|(types, _)| *types).filter(move |types| self.has(*types))
    }

    /// Whether any of `other` is in here.
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Every integer is a number already.
    pub(super) fn widened(self) -> Self {
        if self.has(Self::NUMBER) { self.without(Self::INTEGER) } else { self }
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn is_single(self) -> bool {
        self.0.is_power_of_two()
    }
}
