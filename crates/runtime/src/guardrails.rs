//! Brakes against a model that does the same thing again and again.
//!
//! What counts as a loop is *the same call with the same result* (spec core §15). The first repetitions are a hint to
//! the model, later ones are not run any more, and after some of those the turn ends. Reading sixty files is no loop,
//! polling something that changes is none, and neither is running the tests after every edit: a call that changes
//! something and was not seen before in this turn makes every count begin anew. A call that acts (presses a key, waits,
//! starts something) may look the same twice as often as one that only looks.
//!
//! A call that never ran (no such tool, broken arguments, a no from the person) cannot end differently the next time, so
//! its third attempt is answered at once.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use hermes_core::JsonMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// When to hint and when to stop (`tool_loop_guardrails` in the configuration).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guardrails {
    /// Whether the model is told.
    pub warnings_enabled: bool,
    /// Whether calls are stopped.
    pub hard_stop_enabled: bool,
    /// Repetitions after which the model is told.
    pub warn_after: Thresholds,
    /// Repetitions after which the call is not run any more.
    pub hard_stop_after: Thresholds,
}

/// Counts within one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// The same call failed.
    pub exact_failure: u32,
    /// The same tool failed, with whatever arguments.
    pub same_tool_failure: u32,
    /// The same call gave the same result.
    pub idempotent_no_progress: u32,
}

/// A call that never ran is answered at once from this attempt on.
const HOPELESS: u32 = 3;
/// A call that does something may look the same this many times as often as one that only looks.
const PATIENCE_WITH_ACTIONS: u32 = 2;
/// After this many calls that were not run for repetition, the turn ends.
const MOST_BLOCKS: u32 = 3;

impl Default for Guardrails {
    /// The figures of the reference, with the stops switched on: a model that ignores two hints does not heed a third.
    fn default() -> Self {
        Self {
            warnings_enabled: true,
            hard_stop_enabled: true,
            warn_after: Thresholds { exact_failure: 2, same_tool_failure: 3, idempotent_no_progress: 2 },
            hard_stop_after: Thresholds { exact_failure: 5, same_tool_failure: 8, idempotent_no_progress: 5 },
        }
    }
}

/// One call, as far as repetition is concerned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Signature {
    tool: String,
    arguments: u64,
}

impl Signature {
    /// Two calls that differ only in the order of their keys are one.
    pub(crate) fn new(tool: &str, arguments: &JsonMap) -> Self {
        let mut hasher = DefaultHasher::new();
        canonical_map(arguments, &mut hasher);
        Self { tool: tool.to_owned(), arguments: hasher.finish() }
    }

    /// The same for arguments that are no JSON.
    pub(crate) fn of_text(tool: &str, arguments: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        arguments.hash(&mut hasher);
        Self { tool: tool.to_owned(), arguments: hasher.finish() }
    }
}

fn canonical_map(map: &JsonMap, hasher: &mut DefaultHasher) {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_unstable();
    keys.len().hash(hasher);
    for key in keys {
        key.hash(hasher);
        canonical(&map[key], hasher);
    }
}

fn canonical(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(map) => canonical_map(map, hasher),
        Value::Array(items) => {
            (items.len(), "list").hash(hasher);
            for item in items {
                canonical(item, hasher);
            }
        }
        other => other.hash(hasher),
    }
}

/// How a finished call is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It ran.
    Ok {
        /// It may have changed something.
        changes: bool,
    },
    /// It ran and failed.
    Failed,
    /// It never ran and never will.
    NeverRan,
    /// It was stopped, or is not to be counted.
    Other,
}

/// What the brakes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Says {
    pub(crate) action: Action,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The model gets a hint with the result.
    Warn,
    /// The call is not run.
    Block,
    /// The turn ends after this call.
    Halt,
}

/// What happened in this turn so far.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    failures: HashMap<Signature, u32>,
    hopeless: HashMap<Signature, u32>,
    failures_of_tool: HashMap<String, u32>,
    /// The last result of a call, and how often in a row it came.
    results: HashMap<Signature, (u64, u32)>,
    seen: HashSet<(Signature, u64)>,
    /// The calls that do something rather than look.
    acting: HashSet<Signature>,
    blocks: u32,
}

impl Turn {
    /// Before a call runs: whether it must not.
    pub(crate) fn before(&mut self, rails: &Guardrails, call: &Signature) -> Option<Says> {
        if !rails.hard_stop_enabled {
            return None;
        }
        let count_in = |map: &HashMap<Signature, u32>| map.get(call).copied().unwrap_or(0);
        let (hopeless, failed) = (count_in(&self.hopeless), count_in(&self.failures));
        let repeated = self.results.get(call).map_or(0, |(_, count)| *count);
        let tool = &call.tool;
        let (code, count, message) = if hopeless >= HOPELESS - 1 {
            ("repeated_exact_failure_block", hopeless + 1, hopeless_words(tool, hopeless))
        } else if failed >= rails.hard_stop_after.exact_failure {
            let message = format!(
                "{tool} failed {failed} times with exactly these arguments; it was not run again. Change something, or say what stands in the way."
            );
            ("repeated_exact_failure_block", failed, message)
        } else if repeated >= rails.hard_stop_after.idempotent_no_progress * self.patience_with(call) {
            let message = format!(
                "{tool} gave the same result {repeated} times for exactly these arguments; it was not run again. Use the result you have, or do something else."
            );
            ("idempotent_no_progress_block", repeated, message)
        } else {
            return None;
        };
        Some(self.block(code, message, count))
    }

    /// After a call: a hint, a block (for a call that never ran), or the end of the turn.
    pub(crate) fn after(&mut self, rails: &Guardrails, call: Signature, ending: Ending, result: &str) -> Option<Says> {
        let tool = call.tool.clone();
        match ending {
            Ending::Other => None,
            Ending::NeverRan => {
                let count = bump(&mut self.hopeless, call);
                if rails.hard_stop_enabled && count >= HOPELESS {
                    return Some(self.block("repeated_exact_failure_block", hopeless_words(&tool, count), count));
                }
                None
            }
            Ending::Failed => {
                self.results.remove(&call);
                let exact = bump(&mut self.failures, call);
                let same_tool = bump(&mut self.failures_of_tool, tool.clone());
                if rails.hard_stop_enabled && same_tool >= rails.hard_stop_after.same_tool_failure {
                    let message = format!("{tool} has failed {same_tool} times in this turn, so the turn ends here.");
                    return Some(Says {
                        action: Action::Halt,
                        code: "same_tool_failure_halt",
                        message,
                        count: same_tool,
                    });
                }
                if !rails.warnings_enabled {
                    return None;
                }
                if exact >= rails.warn_after.exact_failure {
                    let message = format!(
                        "{tool} has now failed {exact} times with exactly these arguments. Do not send them again; change something."
                    );
                    return Some(warn("repeated_exact_failure_warning", message, exact));
                }
                (same_tool >= rails.warn_after.same_tool_failure).then(|| {
                    let message = format!("{tool} has now failed {same_tool} times in this turn. Stop and look at what the errors say before calling it again.");
                    warn("same_tool_failure_warning", message, same_tool)
                })
            }
            Ending::Ok { changes } => {
                self.failures.remove(&call);
                self.hopeless.remove(&call);
                self.failures_of_tool.remove(&tool);
                let mut hasher = DefaultHasher::new();
                result.hash(&mut hasher);
                let result = hasher.finish();
                if self.seen.insert((call.clone(), result)) && changes {
                    self.results.clear();
                    self.failures.clear();
                    self.failures_of_tool.clear();
                }
                let call_kept = call.clone();
                let (last, count) = self.results.entry(call).or_insert((result, 0));
                *count = if *last == result { *count + 1 } else { 1 };
                *last = result;
                let count = *count;
                let patience = if changes { PATIENCE_WITH_ACTIONS } else { 1 };
                if changes {
                    self.acting.insert(call_kept);
                }
                (rails.warnings_enabled && count >= rails.warn_after.idempotent_no_progress * patience).then(|| {
                    let message = format!("{tool} has now given the same result {count} times for exactly these arguments. It will not change by asking again.");
                    warn("idempotent_no_progress_warning", message, count)
                })
            }
        }
    }

    /// Pressing a key six times, or waiting half a minute six times, is honest although each time looks like the last.
    fn patience_with(&self, call: &Signature) -> u32 {
        if self.acting.contains(call) { PATIENCE_WITH_ACTIONS } else { 1 }
    }

    fn block(&mut self, code: &'static str, message: String, count: u32) -> Says {
        self.blocks += 1;
        let action = if self.blocks >= MOST_BLOCKS { Action::Halt } else { Action::Block };
        Says { action, code, message, count }
    }
}

fn hopeless_words(tool: &str, count: u32) -> String {
    let shown: String = tool.chars().take(80).collect();
    format!(
        "this is attempt {} of exactly this call of `{shown}`, which cannot succeed; it was not run. Send something else, or say what stands in the way.",
        count.max(HOPELESS)
    )
}

fn warn(code: &'static str, message: String, count: u32) -> Says {
    Says { action: Action::Warn, code, message, count }
}

fn bump<K: Eq + Hash>(map: &mut HashMap<K, u32>, key: K) -> u32 {
    let count = map.entry(key).or_insert(0);
    *count += 1;
    *count
}
