//! Tool names: the one identifier that models, people, providers and configuration share.

use std::fmt;
use std::sync::Arc;

/// The name of a tool, for example `read_file`.
///
/// One to 64 characters out of `A-Z a-z 0-9 _ -`, the set that every provider of function calling accepts
/// (`OpenAI` API reference, *tools.function.name*).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

/// Why a text cannot be a tool name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a tool name: 1 to 64 characters out of A-Z a-z 0-9 _ -")]
pub struct InvalidToolName(pub String);

impl ToolName {
    /// The longest name in characters.
    pub const MAX_CHARS: usize = 64;

    /// Checks `name` and wraps it.
    pub fn new(name: &str) -> Result<Self, InvalidToolName> {
        let fits = (1..=Self::MAX_CHARS).contains(&name.len());
        if fits && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            Ok(Self(name.into()))
        } else {
            Err(InvalidToolName(name.chars().take(80).collect()))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_provider_safe_names_are_names() {
        assert!(ToolName::new("read_file").is_ok());
        assert!(ToolName::new(&"a".repeat(64)).is_ok());
        for bad in ["", "a b", "naïve", "x/y", &"a".repeat(65)] {
            assert!(ToolName::new(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
