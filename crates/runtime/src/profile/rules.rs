//! What the providers accept, as data, each fact with its source. To follow a provider's change, change this file (and
//! the same fact in `check.rs`, which is written independently so that a slip in one shows in the other).
//!
//! | Fact | Source |
//! |---|---|
//! | `OpenAI`: root `type: object`, none of `oneOf anyOf allOf enum not` there | error 400 `schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level` (langchainjs#9804) |
//! | `OpenAI`: root has `properties`, arrays have `items` | errors 400 `object schema missing properties`, `array schema missing items` |
//! | `OpenAI` chat: a tool's description has at most 1,024 characters | error 400 `Invalid 'tools[2].function.description': string too long` (`OpenHands`#4838, goose#739); parameters' descriptions are not limited |
//! | `OpenAI`: `$ref` without `default` beside it | error 400 `$ref cannot have keywords {'default'}` |
//! | `OpenAI`: at most 1,000 values in an enum, 15,000 characters from 250 values on | guide *Structured Outputs*, *supported schemas* (stated for strict schemas; we send `strict: false`, and keep to it) |
//! | Anthropic: root without `oneOf anyOf allOf` | error 400 `input_schema does not support oneOf, allOf, or anyOf at the top level` (claude-code#40075) |
//! | Anthropic: draft 2020-12; no `patternProperties` | error 400 `It must match JSON Schema draft 2020-12`, also for `"patternProperties": {"^(.*)$": {}}` (openclaw#29416) |
//! | Anthropic: names of properties match `^[a-zA-Z0-9_.-]{1,64}$` | error 400 `Property keys should match pattern` (n8n#30590); known for the root, kept to at every depth |
//! | Gemini: a fixed list of keywords | API reference, *Schema*; error 400 `Unknown name "additionalProperties" … Cannot find field` |
//! | Gemini: `enum` only of non-empty strings | errors 400 `enum: only allowed for STRING type` (llms#20), `enum[3]: cannot be empty` (runlore#40) |
//! | Gemini: formats `enum date-time`, `float double`, `int32 int64` | error 400 `only 'enum' and 'date-time' are supported for STRING type` (gemini-cli#3178); *Schema.format* |
//! | Gemini: an object has properties; a tool without any has no `parameters` | error 400 `properties: should be non-empty for OBJECT type` (agno#2112) |
//! | Gemini: `properties`, `required` only on objects, `items` only on arrays, and arrays have it | errors 400 `properties: only allowed for OBJECT type` (opencode#43495), `items: missing field` |
//! | Gemini: nothing beside `anyOf` | Vertex AI error 400 `When using any_of, it must be the only field set` |
//! | llama.cpp: no bound of 2,000 or more | `MAX_REPETITION_THRESHOLD`; error 400 `failed to parse grammar` (llama.cpp#27087, #17473) |
//! | llama.cpp: no unanchored or nested `pattern` | llama.cpp#26930, #25895 |
//! | llama.cpp: no `properties` that is empty below the root | llama.cpp#25923 |

use super::Profile;

/// Which of three shapes a provider's schemas have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    /// JSON Schema 2020-12 with reservations: references, unions and unknown words stay.
    Full,
    /// A fixed list of words; no references; every node has one type or is nothing but `anyOf`.
    Gemini,
    /// What becomes a grammar: no references; every node has one type or `anyOf`.
    Local,
}

/// The rules of one profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) dialect: Dialect,
    /// `nullable: true` is kept, and left where a null branch went away (spec core §6.1, §6.2).
    pub(super) nullable: bool,
    /// Names of properties are restricted, and `patternProperties` is refused.
    pub(super) plain_names: bool,
    /// The longest description of a tool, in characters.
    pub(super) tool_description: usize,
}

/// Where no provider states a limit.
const GENEROUS: usize = 16_384;

pub(super) fn of(profile: Profile) -> Rules {
    let open = Rules { dialect: Dialect::Full, nullable: true, plain_names: false, tool_description: GENEROUS };
    match profile {
        Profile::OpenAiChat => Rules { tool_description: 1_024, ..open },
        Profile::OpenAiResponses => open,
        Profile::Anthropic => Rules { nullable: false, plain_names: true, ..open },
        Profile::Gemini => Rules { dialect: Dialect::Gemini, ..open },
        Profile::Local => Rules { dialect: Dialect::Local, nullable: false, ..open },
    }
}

/// How many schemas may be nested in one another. With two levels of JSON each, and [`DATA_LEVELS`] below, the whole
/// definition stays within the 128 levels that common JSON parsers read (`serde_json`'s default).
pub(super) const SCHEMA_LEVELS: usize = 32;

/// How deep a default, an enum value and the like may be.
pub(super) const DATA_LEVELS: usize = 24;

/// The most schemas and values that references may bring in when they are written out. A few hundred is a large tool.
pub(super) const INLINED_NODES: usize = 2_000;

/// How often one schema is written out inside itself before it is cut.
pub(super) const EXPANSIONS: usize = 2;

/// The most values of an enum.
pub(super) const ENUM_VALUES: usize = 1_000;

/// An enum with more values than this has a limit of characters as well.
pub(super) const ENUM_VALUES_UNCOUNTED: usize = 250;

/// The most characters of all texts of such an enum.
pub(super) const ENUM_CHARS: usize = 15_000;

/// The longest `pattern` that is looked at, in bytes: longer ones cost more to compile than they say.
pub(super) const PATTERN_BYTES: usize = 1_000;

/// How large a compiled `pattern` may be, in bytes, for the same reason.
pub(super) const PATTERN_MEMORY: usize = 2 * 1024 * 1024;

/// The smallest bound that llama.cpp refuses.
pub(super) const LOCAL_BOUND: u64 = 2_000;

/// Which different schemas of one parameter are shown when alternatives are folded together.
pub(super) const VARIANTS: usize = 16;

/// The names that Anthropic accepts for a property.
pub(super) fn is_plain_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}
