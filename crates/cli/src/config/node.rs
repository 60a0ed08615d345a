//! YAML with the line of every key, so that a mistake can be shown where it is.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

/// A piece of a YAML file.
#[derive(Debug)]
pub(crate) enum Node {
    Map(Vec<Entry>),
    /// A scalar, or a list.
    Leaf(Value),
}

/// A key, its value, and where it stands.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) line: u64,
    pub(crate) value: Node,
}

/// Why a text is no YAML.
#[derive(Debug)]
pub(crate) struct BadYaml {
    pub(crate) line: u64,
    pub(crate) why: String,
}

/// Reads `text` as YAML 1.2: `no` is a text, not a boolean.
pub(crate) fn parse(text: &str) -> Result<Node, BadYaml> {
    if text.trim().is_empty() {
        return Ok(Node::Leaf(Value::Null));
    }
    let options =
        serde_saphyr::options! { strict_booleans: true, duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough };
    serde_saphyr::from_str_with_options::<Option<Node>>(text, options)
        .map(|node| node.unwrap_or(Node::Leaf(Value::Null)))
        .map_err(|error| BadYaml {
            line: error.location().map_or(1, |location| location.line()),
            why: without_place(&error.without_snippet().to_string()),
        })
}

/// The sentence alone: the place is given once, in our own words.
fn without_place(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.split(" at line ").next().unwrap_or(first).to_owned()
}

impl Node {
    /// The value without its lines.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect())
            }
            Self::Leaf(value) => value.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Node>()? {
            if entries.iter().any(|entry| entry.key == key.value) {
                return Err(de::Error::custom(format_args!("duplicate key `{}`", key.value)));
            }
            entries.push(Entry { line: key.referenced.line(), key: key.value, value });
        }
        Ok(Node::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<Node>()? {
            items.push(item.to_json());
        }
        Ok(Node::Leaf(Value::Array(items)))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }
}
