//! Steps: the brakes of [`crate::guardrails`], before the tool and after it.

use async_trait::async_trait;
use hermes_core::{Effect, StopTurn, ToolError};
use serde_json::json;

use super::{Call, Phase, Status, Step, normalise};
use crate::guardrails::{Action, Ending, Says, Signature};

/// Before the tool: a call that has proved useless is not run again.
#[derive(Debug)]
pub(super) struct Guardrail;

/// After the tool: counts, hints, and ends a turn that goes round in circles. A call that may have changed something sets
/// back what reads have counted.
#[derive(Debug)]
pub(super) struct Repetition;

#[async_trait]
impl Step for Guardrail {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let Some(rails) = &call.scope.task.guardrails else { return };
        // What is counted is the call as the model made it, whatever a hook makes of it later.
        let signature = signature(call);
        let said = call.scope.task.repetition().before(rails, &signature);
        call.signature = Some(signature);
        if let Some(says) = said {
            block(call, &says);
        }
    }
}

#[async_trait]
impl Step for Repetition {
    fn phase(&self) -> Phase {
        Phase::After
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let task = call.scope.task;
        let (Some(rails), Some(outcome)) = (&task.guardrails, &call.outcome) else { return };
        let ending = match outcome.status {
            Status::Ok => Ending::Ok { changes: call.spec().is_some_and(|spec| spec.effect >= Effect::Network) },
            Status::Error | Status::TimedOut => Ending::Failed,
            Status::UnknownTool | Status::OutOfScope | Status::InvalidArguments | Status::Blocked | Status::Refused => {
                Ending::NeverRan
            }
            Status::Repeated | Status::NotStarted | Status::Interrupted => Ending::Other,
        };
        let signature = call.signature.take().unwrap_or_else(|| signature(call));
        let said = task.repetition().after(rails, signature, ending, &call.text);
        match said {
            Some(says) if ending == Ending::NeverRan => {
                block(call, &says);
                call.text = call.outcome.as_ref().map(|o| normalise::text_of(&o.output.content)).unwrap_or_default();
            }
            Some(says) => {
                let what = if says.action == Action::Warn { "warning" } else { "hard stop" };
                call.hint = Some(format!("[Tool loop {what}: {}; count={}; {}]", says.code, says.count, says.message));
                end_turn(call, &says);
            }
            None => {}
        }
    }
}

fn signature(call: &Call<'_>) -> Signature {
    match call.entry {
        Some(entry) => Signature::new(entry.tool.spec().name.as_str(), &call.arguments),
        None => Signature::of_text(&call.request.name, &call.request.arguments.to_text()),
    }
}

fn block(call: &mut Call<'_>, says: &Says) {
    let guardrail = json!({
        "action": if says.action == Action::Halt { "halt" } else { "block" },
        "code": says.code,
        "tool_name": call.tool_name(),
        "count": says.count,
    });
    call.refuse(Status::Repeated, ToolError::tell(&says.message).with("guardrail", guardrail));
    end_turn(call, says);
}

fn end_turn(call: &mut Call<'_>, says: &Says) {
    if says.action == Action::Halt
        && let Some(outcome) = &mut call.outcome
    {
        outcome.stop = Some(StopTurn::Repetition(says.message.clone()));
    }
}
