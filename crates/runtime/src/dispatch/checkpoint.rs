//! Step: after every check and right before the call runs, what it is about to change is kept.
//!
//! A call that was refused leaves no trace. An undo is a convenience: if the copy fails, a person hears of it and the
//! call goes on.

use std::time::Duration;

use async_trait::async_trait;

use super::hooks::within;
use super::{Call, Phase, Step};

/// A copy that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Checkpoint;

#[async_trait]
impl Step for Checkpoint {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let (Some(entry), Some(checkpointer)) = (call.entry, &call.hooks.checkpointer) else { return };
        let cx = call.context(call.scope.cancel);
        let touches = entry.tool.touches(&call.arguments, &cx);
        if touches.writes.is_empty() && touches.command.is_none() {
            return;
        }
        let kept = checkpointer.before(call.for_hooks(entry), &touches, &cx);
        if let Err(why) = within(PATIENCE, kept).await {
            call.warn(&format!("there will be no undo for this call: {why}"));
        }
    }
}
