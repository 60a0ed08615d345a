//! Step: secrets are taken out on the way to eyes and models. What is on disk, and what ran, stays as it is.
//!
//! Texts inside JSON are redacted one by one, so that the result is still JSON.

use async_trait::async_trait;
use hermes_core::{Content, Redactor};
use serde_json::Value;

use super::normalise::text_of;
use super::{Call, Phase, Step};

#[derive(Debug)]
pub(super) struct Redact;

#[async_trait]
impl Step for Redact {
    fn phase(&self) -> Phase {
        Phase::After
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let (Some(redactor), Some(outcome)) = (&call.hooks.redactor, &mut call.outcome) else { return };
        let output = &mut outcome.output;
        match &mut output.content {
            Content::Text(text) => redact(text, &**redactor),
            Content::Json(value) => redact_all(value, &**redactor),
        }
        output.summary.iter_mut().chain(&mut output.detail).for_each(|text| redact(text, &**redactor));
        call.text = text_of(&output.content);
        for change in &mut call.changes {
            redact_all(&mut change.from, &**redactor);
            change.to.iter_mut().for_each(|to| redact_all(to, &**redactor));
        }
    }
}

fn redact(text: &mut String, redactor: &dyn Redactor) {
    if let std::borrow::Cow::Owned(clean) = redactor.redact(text) {
        *text = clean;
    }
}

fn redact_all(value: &mut Value, redactor: &dyn Redactor) {
    match value {
        Value::String(text) => redact(text, redactor),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_all(item, redactor)),
        Value::Object(map) => map.values_mut().for_each(|value| redact_all(value, redactor)),
        _ => {}
    }
}
