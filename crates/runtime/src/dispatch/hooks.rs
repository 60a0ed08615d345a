//! Step: hooks decide. One that blocks ends the call, one that rewrites is heard before the next one looks, one that
//! wants a person to decide is heard by the approval.
//!
//! A hook that fails (says so, crashes, takes too long) blocks the call unless it is marked otherwise. Nothing is kept
//! from one call to the next, so a failure concerns this call and no other.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt as _;
use hermes_core::{ApprovalScope, Concern, HookDecision, HookFacts, JsonMap, OnError, ToolError};

use super::sanitise::cleaned;
use super::{Call, Phase, Status, Step, claim, coerce, validate};

#[derive(Debug)]
pub(super) struct PreHooks;

#[async_trait]
impl Step for PreHooks {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        for _ in 0..MOST_ROUNDS {
            call.asks.clear();
            if !ask_all(call).await {
                return;
            }
        }
        call.block("its hooks keep changing its arguments and do not come to an end");
    }
}

/// A rewrite begins a new round, because nobody may let something through that they have not seen.
const MOST_ROUNDS: usize = 4;

/// Asks every hook about the call as it is now. Answers whether one of them changed it, so that all have to look again.
async fn ask_all(call: &mut Call<'_>) -> bool {
    let Some(entry) = call.entry else { return false };
    let hooks = call.hooks;
    for hook in &hooks.pre {
        let facts = hook.facts();
        let began = Instant::now();
        let decided = within(facts.timeout, hook.decide(call.for_hooks(entry))).await;
        // A hook may ask a person by itself; that is not the tool's time.
        call.waited += began.elapsed();
        match decided {
            Ok(HookDecision::Allow) => {}
            Ok(HookDecision::Block(why)) => {
                let why = if why.trim().is_empty() { "it gave no reason".to_owned() } else { cleaned(why.trim()) };
                call.block(&format!("{} does not allow it: {why}", facts.name));
                return false;
            }
            Ok(HookDecision::Rewrite(arguments)) => {
                let before = call.arguments.clone();
                call.take_arguments(facts, arguments);
                if call.outcome.is_some() {
                    return false;
                }
                if call.arguments != before {
                    claim::again(call).await;
                    return call.outcome.is_none();
                }
            }
            Ok(HookDecision::Ask { reason, key }) => {
                let scope = (!key.is_empty()).then(|| ApprovalScope {
                    key: approval_key(&facts.name, &key),
                    words: reason.clone(),
                    lasting: false,
                });
                let note = Some(format!("{} asks", facts.name));
                call.asks.push(Concern::new(reason, note, scope).by_person());
            }
            Err(why) => {
                call.hook_failed(facts, &why);
                if call.outcome.is_some() {
                    return false;
                }
            }
        }
    }
    false
}

/// What a hook's yes covers, told from the judge's and from every other hook's.
fn approval_key(hook: &str, key: &str) -> String {
    format!("hook {} {hook} {key}", hook.len())
}

/// The same after the tool: once the turn was stopped, nobody waits long for a hook.
pub(super) async fn within_after<T>(
    call: &Call<'_>,
    facts: &HookFacts,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let stopped = async {
        call.scope.cancel.cancelled().await;
        tokio::time::sleep(super::run::PATIENCE).await;
    };
    tokio::select! {
        biased;
        said = within(facts.timeout, work) => said,
        () = stopped => Err("the turn was stopped".into()),
    }
}

/// Waits for other people's code no longer than `limit`, and takes a crash for a failure of it.
pub(super) async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match tokio::time::timeout(limit, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(said)) => said,
        Ok(Err(_panic)) => Err("it crashed".into()),
        Err(_elapsed) => Err(format!("it did not answer within {} s", limit.as_secs_f32())),
    }
}

impl Call<'_> {
    fn block(&mut self, why: &str) {
        let message = format!("{} was not run: {why}", self.tool_name());
        self.refuse(Status::Blocked, ToolError::tell(message).with("status", "blocked"));
    }

    /// A deciding hook did not decide.
    pub(super) fn hook_failed(&mut self, facts: &HookFacts, why: &str) {
        let why = cleaned(why);
        match facts.on_error {
            OnError::Block => {
                self.block(&format!(
                    "{} could not decide about it ({why}), and what cannot be checked is not run",
                    facts.name
                ));
            }
            OnError::Allow => self.warn(&format!("{} was skipped: {why}", facts.name)),
        }
    }

    /// New arguments from a hook, treated like a model's own: made to fit. If they do not, the hook has failed.
    pub(super) fn take_arguments(&mut self, whom: &HookFacts, mut arguments: JsonMap) {
        let Some(entry) = self.entry else { return };
        let changes = coerce::arguments(&mut arguments, &entry.tool.spec().parameters);
        if let Some(error) = validate::error(entry, &mut arguments) {
            return self.hook_failed(whom, &format!("it made the arguments invalid: {error}"));
        }
        if arguments != self.arguments {
            self.changes.extend(changes);
            self.arguments = arguments;
        }
    }
}
