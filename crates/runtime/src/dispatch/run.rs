//! Step: the tool runs, under a deadline and a way to stop it.
//!
//! When the turn is stopped, the tool sees it first and may hand in what it has; after [`PATIENCE`] it is dropped, and
//! dropping a tool ends whatever it started. A tool that works on a thread cannot be dropped, so its own cancellation
//! fires as soon as nobody waits for it any more.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use hermes_core::{ExecutionMiddleware, HookCall, Next, StopTurn, ToolError, ToolOutput, ToolResult};
use tokio::time::{Instant, sleep, sleep_until};

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
        let Some(entry) = call.entry else { return };
        let cancel = call.scope.cancel;
        let spec = entry.tool.spec();
        let name = &spec.name;
        if cancel.is_cancelled() {
            return call.refuse(Status::NotStarted, stopped_before_it_began());
        }
        let its_own = cancel.child_token();
        let _fires_when_nobody_waits = its_own.clone().drop_guard();
        let cx = call.scope.task.context(&call.request.id, &its_own);
        let tool = entry.tool.call(call.arguments.clone(), cx);
        let limit = spec.deadline.unwrap_or(call.deadline);
        let ended = {
            let running = around(&call.hooks.around, call.for_hooks(&entry), tool);
            let mut running = pin!(running);
            let began = Instant::now();
            let mut half = pin!(sleep_until(began + limit / 2));
            let mut end = pin!(sleep_until(began + limit));
            let mut stopped = pin!(async {
                cancel.cancelled().await;
                sleep(PATIENCE).await;
            });
            let mut said_half = false;
            loop {
                tokio::select! {
                    biased;
                    result = &mut running => break Ended::Answered(result),
                    () = &mut half, if !said_half => {
                        said_half = true;
                        let (so_far, of) = ((limit / 2).as_secs_f32(), limit.as_secs_f32());
                        call.warn(&format!("{name} has been running for {so_far} s; it is dropped after {of} s"));
                    }
                    () = &mut end => break Ended::TooLate,
                    () = &mut stopped => break Ended::Stopped,
                }
            }
        };
        match ended {
            Ended::Answered(result) => {
                let mut outcome = outcome(result);
                if cancel.is_cancelled() {
                    outcome.status = Status::Interrupted;
                }
                call.outcome = Some(outcome);
            }
            Ended::Stopped => {
                let error =
                    ToolError::tell(format!("{name} was interrupted by the user; it may have taken effect in part"));
                call.refuse(Status::Interrupted, error.with("status", "interrupted"));
            }
            Ended::TooLate => {
                let message =
                    format!("{name} was dropped after {} s; it may have taken effect in part", limit.as_secs_f32());
                call.warn(&message);
                call.refuse(Status::TimedOut, ToolError::tell(message).with("status", "timed_out"));
            }
        }
    }
}

enum Ended {
    Answered(ToolResult),
    TooLate,
    Stopped,
}

/// The tool with everybody around it, the first outermost; each of them once.
fn around<'a>(
    layers: &'a [Arc<dyn ExecutionMiddleware>],
    call: HookCall<'a>,
    tool: BoxFuture<'a, ToolResult>,
) -> BoxFuture<'a, ToolResult> {
    layers.iter().rev().fold(tool, |inner, layer| layer.around(call, Next::new(inner)))
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
