//! Step: those who watch are told, once a call, whatever happened to it.
//!
//! Each watcher gets its own time limit and nobody waits for another. One that fails is a warning; none of them is left
//! out because it is still busy with another call.

use async_trait::async_trait;
use futures::future::join_all;
use hermes_core::HookResult;

use super::hooks::within_after;
use super::{Call, Phase, Step};

#[derive(Debug)]
pub(super) struct Record;

#[async_trait]
impl Step for Record {
    fn phase(&self) -> Phase {
        Phase::After
    }

    async fn apply(&self, call: &mut Call<'_>) {
        call.announce();
        if call.hooks.post.is_empty() {
            return;
        }
        let Some(result) = call.result_for_hooks() else { return };
        let call = &*call;
        let told = call.hooks.post.iter().map(|hook| within_after(call, hook.facts(), hook.finished(result)));
        let told = join_all(told).await;
        for (hook, told) in call.hooks.post.iter().zip(told) {
            if let Err(why) = told {
                call.warn(&format!("{} did not take note of this call: {why}", hook.facts().name));
            }
        }
    }
}

impl Call<'_> {
    /// The finished call as hooks see it; `None` while it has no answer.
    pub(super) fn result_for_hooks(&self) -> Option<HookResult<'_>> {
        let outcome = self.outcome.as_ref()?;
        Some(HookResult {
            call_id: &self.request.id,
            task: &self.scope.task.id,
            turn: self.scope.task.turn(),
            tool: self.tool_name(),
            arguments: &self.arguments,
            status: outcome.status.word(),
            error: self.raw_error.as_deref(),
            output: &outcome.output,
            text: &self.text,
            elapsed: self.elapsed(),
        })
    }
}
