//! A tool as a provider reads it: text that is written once and sent as it is.
//!
//! Prompt caches compare bytes, so what is kept is the bytes. A list of definitions is shared by every request and every
//! conversation that sees the same tools; nobody can write to it.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// One definition, in a provider's form. Cheap to clone.
#[derive(Clone)]
pub struct Definition(Arc<RawValue>);

impl Definition {
    /// `value` as compact JSON, in the order of its fields.
    pub fn new(value: &impl Serialize) -> Self {
        // What becomes a definition has no keys that are no texts, which is all that could fail here.
        let text = serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(text.into())
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The same, taken apart.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Definition {}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
