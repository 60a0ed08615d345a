//! Step: making arguments fit their schema, without guessing.
//!
//! Models write `"2"` for 2, `"true"` for true, a bare value for a list of one, and JSON inside a text. Each of these
//! can be undone without losing anything, and only then is it undone. Two laws hold, and are tested against the
//! validator itself: *a value that is valid is never changed*, and *coercing twice is coercing once*. What cannot be
//! undone stays as it is and fails the validation that follows.
//!
//! The tricky idea: the compiled validator answers for whole arguments and only yes or no. [`schemas`] therefore reads
//! the schema itself and answers "could this part be valid?", where no means certainly not; a conversion happens only
//! after such a no, and only if its result gets no such no.
//!
//! Start reading at [`fit`].

mod convert;
mod fit;
#[cfg(test)]
mod laws;
mod number;
mod schemas;
#[cfg(test)]
mod table;

use std::mem;

use async_trait::async_trait;
use hermes_core::JsonMap;
use serde::Serialize;
use serde_json::Value;

use self::fit::Fit;
use self::schemas::Schemas;
pub(super) use self::schemas::nullable;
use super::{Call, Phase, Step};

/// What coercion changed, for the record of the call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Where, with dots: `todos.0.id`.
    pub field: String,
    /// What the model wrote.
    pub from: Value,
    /// What the tool gets, before changes inside of it, which follow in the list; `None` if it was dropped.
    pub to: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Coerce;

#[async_trait]
impl Step for Coerce {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        if let Some(entry) = &call.entry {
            call.changes = arguments(&mut call.arguments, &entry.tool.spec().parameters);
        }
    }
}

/// One conversion can make another possible (a text that becomes an object may decide which branch of a union is
/// meant). Real calls settle in one round and need a second to see that; the limit is for hostile schemas.
const ROUNDS: usize = 8;

/// Fits `arguments` to `schema`, the schema of an object, and says what was changed, in the order of the changes. Never
/// fails: what cannot be made to fit without loss stays as it is, for the validation that follows.
pub fn arguments(arguments: &mut JsonMap, schema: &Value) -> Vec<Change> {
    let schemas = Schemas::new(schema);
    let mut fit = Fit::new(&schemas);
    let mut value = Value::Object(mem::take(arguments));
    for _ in 0..ROUNDS {
        let before = fit.changes.len();
        fit.inside(&mut value, &[schema], 0);
        if fit.changes.len() == before {
            break;
        }
    }
    if let Value::Object(map) = value {
        *arguments = map;
    }
    fit.changes
}
