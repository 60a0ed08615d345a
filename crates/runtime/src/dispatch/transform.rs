//! Step: hooks may rewrite what the model reads. The first one that answers wins; one that fails changes nothing.

use async_trait::async_trait;
use hermes_core::Content;

use super::hooks::within_after;
use super::{Call, Phase, Step};

#[derive(Debug)]
pub(super) struct Transform;

#[async_trait]
impl Step for Transform {
    fn phase(&self) -> Phase {
        Phase::After
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let hooks = call.hooks;
        for hook in &hooks.transform {
            let Some(result) = call.result_for_hooks() else { return };
            let transformed = within_after(call, hook.facts(), hook.transform(result)).await;
            match transformed {
                Ok(Some(text)) => {
                    if let Some(outcome) = &mut call.outcome {
                        outcome.output.content = Content::Text(text.clone());
                    }
                    call.text = text;
                    return;
                }
                Ok(None) => {}
                Err(why) => call.warn(&format!("{} left the result as it is: {why}", hook.facts().name)),
            }
        }
    }
}
