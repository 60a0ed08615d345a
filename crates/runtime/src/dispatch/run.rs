//! Step: the tool runs, under a deadline and a way to stop it.
//!
//! When the turn is stopped, the tool sees it first and may hand in what it has; after [`PATIENCE`] it is dropped, and
//! dropping a tool ends whatever it started. A tool that works on a thread cannot be dropped, so its own cancellation
//! fires as soon as nobody waits for it any more.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use hermes_core::{ExecutionMiddleware, HookCall, Next, StopTurn, ToolError, ToolOutput, ToolResult};
use tokio::time::{Instant, sleep, sleep_until};

use super::approve::changed;
use super::{Call, Outcome, Phase, Status, Step, stopped_before_it_began};

/// How long a tool may go on after the turn was stopped (spec agent §4.6).
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Run;

#[async_trait]
impl Step for Run {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let Some(entry) = call.entry else { return };
        let cancel = call.scope.cancel;
        let spec = entry.tool.spec();
        let name = &spec.name;
        if cancel.is_cancelled() {
            return call.refuse(Status::NotStarted, stopped_before_it_began());
        }
        // What was answered was about this call as it stood then; a snapshot may have taken its time since.
        if call.binding.is_some()
            && let Some(why) = changed(call).await
        {
            let error = ToolError::tell(format!("{name} was not run: {why}")).with("status", "refused");
            return call.refuse(Status::Refused, error);
        }
        let its_own = cancel.child_token();
        let _fires_when_nobody_waits = its_own.clone().drop_guard();
        let tool = entry.tool.call(call.arguments.clone(), call.context(&its_own));
        let crashed = Mutex::default();
        let limit = spec.deadline.unwrap_or(call.deadline);
        let ended = {
            let running = around(&call.hooks.around, call.for_hooks(entry), tool, &crashed);
            let mut running = pin!(AssertUnwindSafe(running).catch_unwind());
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
                    result = &mut running => break match result {
                        Ok(result) => Ended::Answered(result),
                        Err(panic) => Ended::Crashed(panic),
                    },
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
        for what in lock(&crashed).drain(..) {
            call.warn(&what);
        }
        match ended {
            Ended::Answered(result) => {
                let mut outcome = outcome(result);
                if cancel.is_cancelled() {
                    outcome.status = Status::Interrupted;
                }
                call.outcome = Some(outcome);
            }
            Ended::Crashed(panic) => call.crashed(name.as_str(), &*panic),
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
    Crashed(Box<dyn Any + Send>),
    TooLate,
    Stopped,
}

/// The tool with everybody around it, the first outermost; each of them once.
///
/// A layer that crashes is a fault of the layer: if it had not gone on yet, the call goes on without it, and if the answer
/// was there already, the answer counts (spec core §14.5).
fn around<'a>(
    layers: &'a [Arc<dyn ExecutionMiddleware>],
    call: HookCall<'a>,
    tool: BoxFuture<'a, ToolResult>,
    crashed: &'a Mutex<Vec<String>>,
) -> BoxFuture<'a, ToolResult> {
    layers.iter().rev().fold(tool, |inner, layer| Box::pin(within_layer(&**layer, call, inner, crashed)))
}

async fn within_layer<'a>(
    layer: &'a dyn ExecutionMiddleware,
    call: HookCall<'a>,
    inner: BoxFuture<'a, ToolResult>,
    crashed: &'a Mutex<Vec<String>>,
) -> ToolResult {
    let (rest, answer) = (Arc::new(Mutex::new(Some(inner))), Arc::new(Mutex::new(None)));
    let next = {
        let (rest, answer) = (Arc::clone(&rest), Arc::clone(&answer));
        Next::new(async move {
            let Some(inner) = lock(&rest).take() else {
                return Err(ToolError::tell("the way to the tool can be taken only once"));
            };
            let said = inner.await;
            *lock(&answer) = Some(said.clone());
            said
        })
    };
    let panic = match AssertUnwindSafe(layer.around(call, next)).catch_unwind().await {
        Ok(said) => return said,
        Err(panic) => panic,
    };
    let (answer, rest) = (lock(&answer).take(), lock(&rest).take());
    match (answer, rest) {
        (Some(said), _) => {
            lock(crashed).push(format!("{} crashed after the tool had answered", layer.facts().name));
            said
        }
        (None, Some(inner)) => {
            lock(crashed).push(format!("{} crashed and was skipped", layer.facts().name));
            inner.await
        }
        // It was the tool itself that crashed.
        (None, None) => resume_unwind(panic),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn outcome(result: ToolResult) -> Outcome {
    match result {
        Ok(output) => Outcome { status: Status::Ok, output, stop: None, from_tool: true },
        Err(error) => {
            let stop = match &error {
                ToolError::Stop(stop) => Some(stop.clone()),
                ToolError::Tell(_) => None,
            };
            let summary = error.to_string();
            let status = if stop == Some(StopTurn::Cancelled) { Status::Interrupted } else { Status::Error };
            Outcome { status, output: ToolOutput::json(error.into()).with_summary(summary), stop, from_tool: true }
        }
    }
}
