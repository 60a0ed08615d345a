//! A turn as a program reads it: one JSON object a line, with stable fields.

use hermes_agent::{Event, Listener, TurnEnd};
use serde_json::{Value, json};

use super::out;
use crate::words::why_partial;

/// Prints events. A reader that has gone is told nothing more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JsonEvents;

impl JsonEvents {
    /// The last two lines of a turn.
    pub(crate) fn end(end: &TurnEnd) {
        emit(&json!({
            "type": "answer",
            "text": end.answer,
            "partial": end.is_partial(),
            "why": why_partial(&end.reason, end.refused),
        }));
        emit(&json!({
            "type": "usage",
            "requests": end.requests,
            "calls": end.calls,
            "refused": end.refused,
            "input_tokens": end.usage.input_tokens,
            "output_tokens": end.usage.output_tokens,
            "cached_tokens": end.usage.cached_tokens,
        }));
    }

    /// The last line of a turn that failed.
    pub(crate) fn failed(message: &str) {
        emit(&json!({ "type": "error", "message": message }));
    }
}

impl Listener for JsonEvents {
    fn hear(&self, event: Event<'_>) {
        match event {
            Event::Asking { request } => emit(&json!({ "type": "turn", "request": request })),
            Event::Text(_) | Event::Reasoning(_) => {}
            Event::Restart { reason, delay, attempt, of } => emit(&json!({
                "type": "retry", "reason": reason, "delay_ms": millis(delay), "attempt": attempt, "of": of,
            })),
            Event::Replied { text, calls, .. } => {
                if !calls.is_empty() && !text.is_empty() {
                    emit(&json!({ "type": "text", "text": text }));
                }
            }
            Event::CallStarted(call) => emit(&json!({
                "type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments.to_text(),
            })),
            Event::CallFinished(report) => emit(&json!({
                "type": "tool_result",
                "id": report.id,
                "name": report.name,
                "status": report.status,
                "coerced": report.changes,
                "result": report.text,
                "ms": millis(report.elapsed),
            })),
            Event::Warned { call, message } => emit(&json!({
                "type": "warning", "id": call.map(|call| &call.id), "message": message,
            })),
            Event::News(line) => emit(&json!({ "type": "news", "message": line })),
            Event::BudgetSpent { of } => emit(&json!({ "type": "budget_spent", "of": of })),
        }
    }
}

/// Milliseconds with three digits after the point.
pub(crate) fn millis(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn emit(event: &Value) {
    // Whoever stopped reading does not want the rest; the turn itself goes on to a clean end.
    let _ = out::line(&event.to_string());
}
