//! The life of one call.
//!
//! [`CHAIN`] is the whole truth about what happens to a call and in which order; each step is a file of this folder.
//! To change what happens to every call, change that list. There is no second way in: the agent loop, the command line
//! and scripts all end in [`Dispatcher::call`].
//!
//! The order has two ideas. Whoever decides sees what will run: arguments are understood before anybody looks at them
//! and are settled after the last look. And whatever happens, the way back is walked to its end: every call has one text
//! for the model and one event for those who watch.

mod approve;
mod budget;
mod checkpoint;
mod claim;
mod coerce;
mod edits;
mod fence;
mod guardrail;
mod hooks;
mod middleware;
mod normalise;
mod parse;
mod record;
mod redact;
mod report;
mod resolve_name;
mod run;
mod sanitise;
mod transform;
mod validate;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::join_all;
use hermes_core::{
    CancellationToken, Concern, HookCall, JsonMap, Judge, StopTurn, ToolCall, ToolCx, ToolError, ToolOutput, ToolSpec,
    Touches, Verdict,
};

pub use self::budget::Budget;
pub use self::coerce::{Change, arguments as coerce};
use self::report::Body;
pub use self::report::{ApprovalMode, CallReport, Hooks, Observer, Scope, Silent, Status};
pub use self::sanitise::clean_error;
use crate::Task;
use crate::guardrails::Signature;
use crate::parallel::{Board, MOST_AT_ONCE};
use crate::registry::{Entry, Registry, Snapshot};

/// The life of a call, in order. A step of [`Phase::Before`] that answers ends the way to the tool; the steps of
/// [`Phase::After`] see every call, also one that was refused or never made sense.
pub const CHAIN: &[&dyn Step] = &[
    &parse::Parse,
    &resolve_name::ResolveName,
    &coerce::Coerce,
    &validate::Validate,
    &middleware::Middleware,
    &claim::Claim,
    &guardrail::Guardrail,
    &hooks::PreHooks,
    &edits::Edits,
    &approve::Approve,
    &checkpoint::Checkpoint,
    &run::Run,
    &approve::Settle,
    &sanitise::Sanitise,
    &normalise::Normalise,
    &guardrail::Repetition,
    &transform::Transform,
    &redact::Redact,
    &budget::Cap,
    &fence::Fence,
    &record::Record,
];

/// One link of the chain.
#[async_trait]
pub trait Step: Send + Sync + fmt::Debug {
    /// On which side of the tool it stands.
    fn phase(&self) -> Phase;

    /// Whether it looks at the stop of the turn itself; any other step before the tool is dropped when the turn stops.
    fn ends_by_itself(&self) -> bool {
        false
    }

    /// Looks at the call, changes it, or answers it by setting its outcome.
    async fn apply(&self, call: &mut Call<'_>);
}

/// On which side of the tool a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Skipped once the call has an outcome. The tool itself runs in the last of these.
    Before,
    /// Never skipped.
    After,
}

/// A call on its way through the chain.
pub struct Call<'a> {
    /// As the model made it.
    pub(crate) request: &'a ToolCall,
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) judge: &'a Arc<dyn Judge>,
    pub(crate) hooks: &'a Hooks,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) deadline: Duration,
    /// Its place among the calls of the turn, if there are others.
    pub(crate) place: Option<(&'a Board, usize)>,
    /// Fires when no call of the turn that waits is to begin any more.
    pub(crate) no_more: &'a CancellationToken,
    /// When it entered the chain, or got its turn among other calls.
    pub(crate) began: Instant,
    /// How long a person took to decide.
    pub(crate) waited: Duration,
    /// The observer has heard of it.
    pub(crate) announced: bool,
    /// The tool, once its name is resolved.
    pub(crate) entry: Option<&'a Entry>,
    /// The arguments as far as they are understood.
    pub(crate) arguments: JsonMap,
    /// What was changed about them to fit the schema.
    pub(crate) changes: Vec<Change>,
    /// Why a hook wants a person to decide.
    pub(crate) asks: Vec<Concern>,
    /// The call as the brakes count it.
    pub(crate) signature: Option<Signature>,
    /// Whose text the answer will hold, by the judge's word.
    pub(crate) outside: Option<String>,
    /// What an approval was given for: the call must still be that when it runs.
    pub(crate) binding: Option<String>,
    /// What the judge said about it.
    pub(crate) judged: Option<Verdict>,
    /// The arguments as they were, where an approval made a rehearsal of the call.
    pub(crate) not_rehearsed: Option<JsonMap>,
    /// It is a rehearsal of what would run without a question.
    pub(crate) runs_unasked: bool,
    /// What it touches, through links, once somebody has looked.
    pub(crate) touches: Option<Touches>,
    /// It was refused, and no approval can change that.
    pub(crate) forbidden: bool,
    /// The answer, once there is one.
    pub(crate) outcome: Option<Outcome>,
    /// What went wrong, before it was cleaned for the model.
    pub(crate) raw_error: Option<String>,
    /// What the model reads, once the answer is normalised.
    pub(crate) text: String,
    /// What the model is told behind the result.
    pub(crate) hint: Option<String>,
    pub(crate) body: Body,
}

/// An answer on its way back.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) output: ToolOutput,
    pub(crate) stop: Option<StopTurn>,
    /// The words are the tool's own, not ours about it.
    pub(crate) from_tool: bool,
}

/// Takes calls through the chain.
pub struct Dispatcher {
    registry: Arc<Registry>,
    judge: Arc<dyn Judge>,
    hooks: Hooks,
    deadline: Duration,
}

impl Dispatcher {
    /// How long a tool may take that does not set a limit of its own.
    pub const DEADLINE: Duration = Duration::from_secs(300);

    /// A dispatcher over `registry` that lets `judge` decide.
    pub fn new(registry: Arc<Registry>, judge: Arc<dyn Judge>) -> Self {
        Self { registry, judge, hooks: Hooks::default(), deadline: Self::DEADLINE }
    }

    /// Lets others take part.
    #[must_use]
    pub fn with_hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// A turn of `task` is over, or its last call where nobody counts turns: what it changed is looked at once more, for
    /// whoever wants to take it back. `Err` is a warning.
    pub async fn settle(&self, task: &Task) -> Result<(), String> {
        match &self.hooks.checkpointer {
            Some(checkpointer) => checkpointer.settle(&task.id).await,
            None => Ok(()),
        }
    }

    /// Sets the time after which a call is dropped whose tool does not set a limit of its own.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// A text that does not come from a call, without its secrets.
    pub fn redacted(&self, text: &str) -> String {
        self.hooks.redactor.as_ref().map_or_else(|| text.to_owned(), |redactor| redactor.redact(text).into_owned())
    }

    /// The tools this dispatcher knows.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Takes one call through the chain. Never fails: whatever goes wrong is in the report.
    pub async fn call(&self, request: &ToolCall, scope: &Scope<'_>) -> CallReport {
        self.call_at(request, scope, None, scope.cancel).await
    }

    /// Takes the calls of one turn through the chain, side by side where neither changes what the other touches, and
    /// answers in the order of the calls. If the results are too long together, the longest are stored.
    ///
    /// When a call ends the turn, the calls after it that wait are not started; each of them still gets its one answer.
    pub async fn call_all(&self, requests: &[ToolCall], scope: &Scope<'_>) -> Vec<CallReport> {
        if let [only] = requests {
            let mut reports = vec![self.call(only, scope).await];
            budget::fit_turn(&mut reports, scope.task).await;
            return reports;
        }
        let board = Board::new(requests.len().min(MOST_CALLS), MOST_AT_ONCE);
        // Ends the turn for the calls that wait, and leaves alone those that run.
        let no_more = scope.cancel.child_token();
        let calls = requests.iter().enumerate().map(|(index, request)| {
            let (board, no_more) = (&board, &no_more);
            async move {
                let report = self.call_at(request, scope, Some((board, index)), no_more).await;
                if report.stop.is_some() {
                    no_more.cancel();
                }
                board.done(index);
                report
            }
        });
        let mut reports = join_all(calls).await;
        budget::fit_turn(&mut reports, scope.task).await;
        reports
    }

    async fn call_at(
        &self,
        request: &ToolCall,
        scope: &Scope<'_>,
        place: Option<(&Board, usize)>,
        no_more: &CancellationToken,
    ) -> CallReport {
        let snapshot = self.registry.look();
        let mut call = Call {
            request,
            scope,
            judge: &self.judge,
            hooks: &self.hooks,
            snapshot: &snapshot,
            deadline: self.deadline,
            place,
            no_more,
            began: Instant::now(),
            waited: Duration::ZERO,
            announced: false,
            entry: None,
            arguments: JsonMap::new(),
            changes: Vec::new(),
            asks: Vec::new(),
            signature: None,
            outside: None,
            binding: None,
            judged: None,
            not_rehearsed: None,
            runs_unasked: false,
            touches: None,
            forbidden: false,
            outcome: None,
            raw_error: None,
            text: String::new(),
            hint: None,
            body: Body::default(),
        };
        if place.is_some_and(|(_, index)| index >= MOST_CALLS) {
            let why = format!("not run: more than {MOST_CALLS} calls in one turn; make the rest in the next one");
            call.refuse(Status::NotStarted, ToolError::tell(why).with("status", "not_started"));
        }
        for step in CHAIN {
            let applied = match step.phase() {
                Phase::Before if call.outcome.is_some() => continue,
                // Until the tool runs there is nothing that a stop would have to wait for.
                Phase::Before if !step.ends_by_itself() => {
                    let stopped = tokio::select! {
                        biased;
                        () = no_more.cancelled() => None,
                        applied = AssertUnwindSafe(step.apply(&mut call)).catch_unwind() => Some(applied),
                    };
                    let Some(applied) = stopped else {
                        call.refuse(Status::NotStarted, stopped_before_it_began());
                        continue;
                    };
                    applied
                }
                Phase::Before | Phase::After => AssertUnwindSafe(step.apply(&mut call)).catch_unwind().await,
            };
            if let Err(panic) = applied {
                call.failed_inside(*step, &*panic);
            }
        }
        let report = call.into_report();
        scope.observer.finished(&report);
        report
    }
}

/// More calls than this in one turn are a fault of the model, and each of them is compared with all others.
const MOST_CALLS: usize = 128;

fn stopped_before_it_began() -> ToolError {
    ToolError::tell("not run: the turn was stopped before this call began").with("status", "not_started")
}

impl Call<'_> {
    /// Tells the observer, once.
    pub(crate) fn announce(&mut self) {
        if !std::mem::replace(&mut self.announced, true) {
            self.scope.observer.started(self.request);
        }
    }

    /// Answers the call with an error; the rest of the way to the tool is skipped.
    pub(crate) fn refuse(&mut self, status: Status, error: ToolError) {
        let summary = error.to_string();
        let output = ToolOutput::json(error.into()).with_summary(summary);
        self.outcome = Some(Outcome { status, output, stop: None, from_tool: false });
    }

    /// What is asked on the way is other people's code: a panic in it is an error of this call and of nothing else.
    fn failed_inside(&mut self, step: &dyn Step, panic: &(dyn std::any::Any + Send)) {
        self.crashed(&format!("the step {step:?} of this call"), panic);
        // In a step of the way back nothing else would write the text any more.
        self.text =
            self.outcome.as_ref().map(|outcome| normalise::text_of(&outcome.output.content)).unwrap_or_default();
    }

    /// Answers the call with the crash of `what`. What it said goes to those who watch, and cleaned to the model.
    pub(crate) fn crashed(&mut self, what: &str, panic: &(dyn std::any::Any + Send)) {
        let said = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        self.raw_error = Some(said);
        let error = ToolError::tell(format!("{what} failed inside; this is a bug in it, not in the call"));
        self.refuse(Status::Error, error);
    }

    pub(crate) fn spec(&self) -> Option<&ToolSpec> {
        self.entry.as_ref().map(|entry| entry.tool.spec())
    }

    /// The call as hooks see it; `None` before there is a tool.
    pub(crate) fn for_hooks<'b>(&'b self, entry: &'b Entry) -> HookCall<'b> {
        HookCall {
            call_id: &self.request.id,
            task: &self.scope.task.id,
            turn: self.scope.task.turn(),
            spec: entry.tool.spec(),
            arguments: &self.arguments,
        }
    }

    /// What the tool works with, until `cancel` fires.
    pub(crate) fn context(&self, cancel: &CancellationToken) -> ToolCx {
        self.scope.task.context(&self.request.id, self.judge, cancel)
    }

    pub(crate) fn warn(&self, message: &str) {
        self.scope.observer.warned(self.request, message);
    }

    /// The tool's name; the name as written where there is no such tool.
    pub(crate) fn tool_name(&self) -> &str {
        self.spec().map_or(self.request.name.as_str(), |spec| spec.name.as_str())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.waited)
    }

    fn into_report(self) -> CallReport {
        let elapsed = self.elapsed();
        let name = self.tool_name().to_owned();
        let emoji = self.spec().map(|spec| spec.emoji.clone()).unwrap_or_default();
        let headline = self.entry.as_ref().map(|entry| headline(entry, &self.arguments)).unwrap_or_default();
        let headline = match &self.hooks.redactor {
            Some(redactor) => redactor.redact(&headline).into_owned(),
            None => headline,
        };
        // Every path through the chain sets an outcome; a chain without a tool step would be the only exception.
        let outcome = self.outcome.unwrap_or_else(|| Outcome {
            status: Status::Error,
            output: ToolOutput::text(""),
            stop: Some(StopTurn::Broken("the chain of steps ended without an answer".into())),
            from_tool: false,
        });
        CallReport {
            id: self.request.id.clone(),
            name,
            status: outcome.status,
            forbidden: self.forbidden,
            changes: self.changes,
            text: self.text,
            attachments: outcome.output.attachments,
            headline,
            summary: outcome.output.summary.unwrap_or_default(),
            is_diff: outcome.output.is_diff,
            detail: outcome.output.detail,
            emoji,
            elapsed,
            stop: outcome.stop,
            body: self.body,
        }
    }
}

/// The call in a few words; a tool that cannot even say that says nothing.
fn headline(entry: &Entry, arguments: &JsonMap) -> String {
    catch_unwind(AssertUnwindSafe(|| entry.tool.headline(arguments))).unwrap_or_default()
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("request", &self.request).finish_non_exhaustive()
    }
}
