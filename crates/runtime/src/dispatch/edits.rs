//! Step: where an editor drives the task, its user sees every change of a file before it is made.
//!
//! Every file of a call is shown, with its text before and after. A change that cannot be shown is not made.
//! What a command does to files is not known before it runs: that is for the judge, and not shown here.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use hermes_core::{Effect, ToolError};

use super::hooks::within;
use super::{Call, Phase, Status, Step};

/// How long an editor may take (spec core §10).
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Edits;

#[async_trait]
impl Step for Edits {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let (Some(entry), Some(reviewer)) = (call.entry, &call.scope.task.reviewer) else { return };
        let cx = call.context(call.scope.cancel);
        let writes = entry.tool.touches(&call.arguments, &cx).writes;
        if writes.is_empty() && entry.tool.spec().effect != Effect::Write {
            return;
        }
        let began = Instant::now();
        let name = entry.tool.spec().name.as_str();
        let review = async {
            let edits = entry.tool.edits(&call.arguments, &cx).await;
            let edits = edits.map_err(|why| format!("the change could not be prepared for the editor: {why}"))?;
            reviewer.review(name, &edits).await
        };
        let said = within(PATIENCE, review).await;
        call.waited += began.elapsed();
        if let Err(why) = said {
            let error = ToolError::tell(format!("{name} was not run: edit approval denied: {why}"));
            call.refuse(Status::Refused, error.with("status", "refused"));
        }
    }
}
