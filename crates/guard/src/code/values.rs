//! What expressions come to.

use crate::text::{HOLE, SECRET};

/// What an expression comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    List(Vec<Value>),
    /// A name that is not bound: a module, a function, an object.
    Path(String),
    /// Nobody knows.
    Unknown,
}

impl Value {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::List(values) => values.iter().map(Self::text).collect::<Vec<_>>().join(" "),
            Self::Path(path) if is_environment(path) => SECRET.into(),
            Self::Path(_) | Self::Unknown => HOLE.into(),
        }
    }

    /// Each text on its own.
    pub(super) fn texts(&self) -> Vec<String> {
        match self {
            Self::List(values) => values.iter().flat_map(Self::texts).collect(),
            other => vec![other.text()],
        }
    }
}

/// Whether a name is that of all variables of the environment, or of a view of them.
pub(super) fn is_environment(path: &str) -> bool {
    ["os.environ", "process.env", "ENV", "%ENV", "ENVIRON", "$_ENV", "os.environb", "Deno.env"]
        .iter()
        .any(|name| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) values: Vec<Value>,
    pub(super) named: Vec<(String, Value)>,
}

impl Arguments {
    pub(super) fn text(&self, index: usize) -> Option<String> {
        self.values.get(index).map(Value::text)
    }

    pub(super) fn texts(&self) -> Vec<String> {
        self.values.iter().flat_map(Value::texts).collect()
    }

    pub(super) fn named(&self, names: &[&str]) -> Option<&Value> {
        self.named.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value)
    }
}
