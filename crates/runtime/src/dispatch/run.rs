//! Step 6: the tool runs, under a deadline and a way to stop it.
//!
//! When the turn is stopped, the tool sees it first and may hand in what it has; after [`PATIENCE`] it is dropped, and
//! dropping a tool ends whatever it started.

use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{StopTurn, ToolError, ToolOutput, ToolResult};
use tokio::time::{sleep, timeout};

use super::{Call, Outcome, Phase, Status, Step, stopped_before_it_began};

/// How long a tool may go on after the turn was stopped (spec agent §4.6).
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Run;

#[async_trait]
impl Step for Run {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let Some(entry) = call.entry.clone() else { return };
        let cancel = call.scope.cancel;
        let name = &entry.tool.spec().name;
        if cancel.is_cancelled() {
            return call.refuse(Status::NotStarted, stopped_before_it_began());
        }
        let cx = call.scope.task.context(&call.request.id, cancel);
        let running = entry.tool.call(call.arguments.clone(), cx);
        let stopped = async {
            cancel.cancelled().await;
            sleep(PATIENCE).await;
        };
        let ended = tokio::select! {
            ended = timeout(call.deadline, running) => ended,
            () = stopped => {
                let error = ToolError::tell(format!("{name} was interrupted by the user; it may have taken effect in part"));
                return call.refuse(Status::Interrupted, error.with("status", "interrupted"));
            }
        };
        match ended {
            Ok(result) => {
                let mut outcome = outcome(result);
                if cancel.is_cancelled() {
                    outcome.status = Status::Interrupted;
                }
                call.outcome = Some(outcome);
            }
            Err(_elapsed) => {
                let seconds = call.deadline.as_secs_f32();
                let message = format!("{name} was dropped after {seconds} s; it may have taken effect in part");
                call.refuse(Status::TimedOut, ToolError::tell(message).with("status", "timed_out"));
            }
        }
    }
}

fn outcome(result: ToolResult) -> Outcome {
    match result {
        Ok(output) => Outcome { status: Status::Ok, output, stop: None },
        Err(error) => {
            let stop = match &error {
                ToolError::Stop(stop) => Some(stop.clone()),
                ToolError::Tell(_) => None,
            };
            let summary = error.to_string();
            let status = if stop == Some(StopTurn::Cancelled) { Status::Interrupted } else { Status::Error };
            Outcome { status, output: ToolOutput::json(error.into()).with_summary(summary), stop }
        }
    }
}
