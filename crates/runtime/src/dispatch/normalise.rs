//! Step: whatever the answer is, it becomes the one text that the model reads.

use async_trait::async_trait;
use hermes_core::Content;

use super::{Call, Phase, Step};

#[derive(Debug)]
pub(super) struct Normalise;

#[async_trait]
impl Step for Normalise {
    fn phase(&self) -> Phase {
        Phase::After
    }

    async fn apply(&self, call: &mut Call<'_>) {
        call.text = call.outcome.as_ref().map(|outcome| text_of(&outcome.output.content)).unwrap_or_default();
    }
}

pub(super) fn text_of(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Json(value) => value.to_string(),
    }
}
