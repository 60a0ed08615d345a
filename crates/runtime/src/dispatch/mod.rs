//! The life of one call.
//!
//! [`CHAIN`] is the whole truth about what happens to a call and in which order; each step is a file of this folder.
//! To change what happens to every call, change that list. There is no second way in: the agent loop, the command line
//! and scripts all end in [`Dispatcher::call`].

mod approve;
mod cap;
mod coerce;
mod normalise;
mod parse;
mod resolve_name;
mod run;
mod validate;

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::join_all;
use hermes_core::{
    Attachment, CancellationToken, Effect, JsonMap, Judge, StopTurn, ToolCall, ToolError, ToolName, ToolOutput,
};
use serde::Serialize;

pub use self::coerce::Change;
use crate::registry::{Entry, Registry, Snapshot};
use crate::task::Task;
use crate::{names, parallel};

/// The life of a call, in order. A step of [`Phase::Before`] that answers ends the way to the tool; the steps of
/// [`Phase::After`] see every call, also one that was refused or never made sense.
pub const CHAIN: &[&dyn Step] = &[
    &parse::Parse,
    &resolve_name::ResolveName,
    &coerce::Coerce,
    &validate::Validate,
    &approve::Approve,
    &run::Run,
    &normalise::Normalise,
    &cap::Cap,
];

/// One link of the chain.
#[async_trait]
pub trait Step: Send + Sync + fmt::Debug {
    /// On which side of the tool it stands.
    fn phase(&self) -> Phase;

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
    pub(crate) judge: &'a dyn Judge,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) deadline: Duration,
    /// How long a person took to decide.
    pub(crate) waited: Duration,
    /// The tool, once its name is resolved.
    pub(crate) entry: Option<Arc<Entry>>,
    /// The arguments as far as they are understood.
    pub(crate) arguments: JsonMap,
    /// What coercion changed in them.
    pub(crate) changes: Vec<Change>,
    /// The answer, once there is one.
    pub(crate) outcome: Option<Outcome>,
    /// What the model reads, once the answer is normalised.
    pub(crate) text: String,
}

/// An answer on its way back.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) output: ToolOutput,
    pub(crate) stop: Option<StopTurn>,
}

/// How a call ended. Decided where it happens, never read from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tool answered.
    Ok,
    /// The tool ran and reported an error.
    Error,
    /// No such tool; nothing ran.
    UnknownTool,
    /// The arguments were broken; nothing ran.
    InvalidArguments,
    /// It needed a yes and got none; nothing ran.
    Refused,
    /// It was stopped before it began; nothing ran.
    NotStarted,
    /// It was stopped while it ran; what it had done by then is unknown.
    Interrupted,
    /// It passed its deadline and was dropped; what it had done by then is unknown.
    TimedOut,
}

/// Everything there is to say about a finished call.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// Pairs it with its call.
    pub id: String,
    /// The tool's real name; the name as written where there is no such tool.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// What the model reads.
    pub text: String,
    /// What travels beside the text.
    pub attachments: Vec<Attachment>,
    /// The call in a few words, for people.
    pub headline: String,
    /// The result in a few words, for people.
    pub summary: String,
    /// A few lines more about the result, for people.
    pub detail: Vec<String>,
    /// The tool's emoji, if there is such a tool.
    pub emoji: String,
    /// What coercion changed in the arguments.
    pub changes: Vec<Change>,
    /// From entering the chain to leaving it, without the time a person took to decide.
    pub elapsed: Duration,
    /// Set when the turn must end here.
    pub stop: Option<StopTurn>,
}

/// Told about every call exactly once at its start and exactly once at its end.
pub trait Observer: Send + Sync {
    /// A call enters the chain.
    fn started(&self, call: &ToolCall);
    /// A call has left the chain, on whatever path.
    fn finished(&self, report: &CallReport);
}

/// An [`Observer`] that is not interested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn started(&self, _: &ToolCall) {}
    fn finished(&self, _: &CallReport) {}
}

/// What happens when the judge says that a person must decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalMode {
    /// The person is asked; nobody to ask means no.
    #[default]
    Ask,
    /// Yes to everything that can be allowed at all.
    All,
    /// No.
    None,
}

/// On whose behalf, with what in sight, and for how long calls are made.
pub struct Scope<'a> {
    /// The conversation the calls belong to.
    pub task: &'a Task,
    /// The tools this caller may use; a registered tool that is not among them does not exist for it.
    pub visible: &'a BTreeSet<ToolName>,
    /// Who decides about dangerous calls.
    pub approve: ApprovalMode,
    /// Fires when the turn is to stop.
    pub cancel: &'a CancellationToken,
    /// Who is told.
    pub observer: &'a dyn Observer,
}

/// Takes calls through the chain.
pub struct Dispatcher {
    registry: Arc<Registry>,
    judge: Arc<dyn Judge>,
    deadline: Duration,
}

impl Dispatcher {
    /// Longer than the longest foreground command (600 s) and its end, so that a command's own limit strikes first.
    pub const DEADLINE: Duration = Duration::from_secs(660);

    /// A dispatcher over `registry` that lets `judge` decide.
    pub fn new(registry: Arc<Registry>, judge: Arc<dyn Judge>) -> Self {
        Self { registry, judge, deadline: Self::DEADLINE }
    }

    /// Sets the time after which any call is dropped.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The tools this dispatcher knows.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Takes one call through the chain. Never fails: whatever goes wrong is in the report.
    pub async fn call(&self, request: &ToolCall, scope: &Scope<'_>) -> CallReport {
        let began = Instant::now();
        scope.observer.started(request);
        let snapshot = self.registry.snapshot();
        let mut call = Call {
            request,
            scope,
            judge: &*self.judge,
            snapshot: &snapshot,
            deadline: self.deadline,
            waited: Duration::ZERO,
            entry: None,
            arguments: JsonMap::new(),
            changes: Vec::new(),
            outcome: None,
            text: String::new(),
        };
        for step in CHAIN {
            if step.phase() == Phase::Before && call.outcome.is_some() {
                continue;
            }
            if AssertUnwindSafe(step.apply(&mut call)).catch_unwind().await.is_err() {
                call.failed_inside();
            }
        }
        let elapsed = began.elapsed().saturating_sub(call.waited);
        let report = call.into_report(elapsed);
        scope.observer.finished(&report);
        report
    }

    /// Takes the calls of one turn through the chain, reads beside one another, and answers in the order of the calls.
    ///
    /// When a call ends the turn, the calls after it are not started; each of them still gets its one answer.
    pub async fn call_all(&self, requests: &[ToolCall], scope: &Scope<'_>) -> Vec<CallReport> {
        let snapshot = self.registry.snapshot();
        let may_share = |request: &ToolCall| {
            let entry = names::resolve(&request.name, scope.visible).and_then(|name| snapshot.get(name.as_str()));
            entry.is_some_and(|entry| {
                let spec = entry.tool.spec();
                spec.parallel && matches!(spec.effect, Effect::None | Effect::Read)
            })
        };
        let mut reports: Vec<CallReport> = Vec::with_capacity(requests.len());
        for run in parallel::plan(requests, may_share) {
            let stopped = reports.iter().any(|report| report.stop.is_some());
            if stopped || scope.cancel.is_cancelled() {
                reports.extend(requests[run].iter().map(|request| not_started(request, scope)));
            } else {
                reports.extend(join_all(requests[run].iter().map(|request| self.call(request, scope))).await);
            }
        }
        reports
    }
}

fn stopped_before_it_began() -> ToolError {
    ToolError::tell("not run: the turn was stopped before this call began").with("status", "not_started")
}

fn not_started(request: &ToolCall, scope: &Scope<'_>) -> CallReport {
    scope.observer.started(request);
    let report = CallReport {
        id: request.id.clone(),
        name: request.name.clone(),
        status: Status::NotStarted,
        text: serde_json::Value::from(stopped_before_it_began()).to_string(),
        attachments: Vec::new(),
        headline: String::new(),
        summary: "not run: stopped".into(),
        detail: Vec::new(),
        emoji: String::new(),
        changes: Vec::new(),
        elapsed: Duration::ZERO,
        stop: None,
    };
    scope.observer.finished(&report);
    report
}

impl Call<'_> {
    /// Answers the call with an error; the rest of the way to the tool is skipped.
    pub(crate) fn refuse(&mut self, status: Status, error: ToolError) {
        let summary = error.to_string();
        let output = ToolOutput::json(error.into()).with_summary(summary);
        self.outcome = Some(Outcome { status, output, stop: None });
    }

    /// Tools are other people's code: a panic in one is an error of this call and of nothing else.
    fn failed_inside(&mut self) {
        let name = self.entry.as_ref().map_or_else(|| "the runtime".into(), |entry| entry.tool.spec().name.to_string());
        let error = ToolError::tell(format!("{name} failed inside; this is a bug in it, not in the call"));
        self.refuse(Status::Error, error);
    }

    fn into_report(self, elapsed: Duration) -> CallReport {
        let spec = self.entry.as_ref().map(|entry| entry.tool.spec());
        // Every path through the chain sets an outcome; a chain without a tool step would be the only exception.
        let outcome = self.outcome.unwrap_or_else(|| Outcome {
            status: Status::Error,
            output: ToolOutput::text(""),
            stop: Some(StopTurn::Broken("the chain of steps ended without an answer".into())),
        });
        CallReport {
            id: self.request.id.clone(),
            name: spec.map_or_else(|| self.request.name.clone(), |spec| spec.name.to_string()),
            status: outcome.status,
            text: self.text,
            attachments: outcome.output.attachments,
            headline: self.entry.as_ref().map(|entry| headline(entry, &self.arguments)).unwrap_or_default(),
            summary: outcome.output.summary.unwrap_or_default(),
            detail: outcome.output.detail,
            emoji: spec.map(|spec| spec.emoji.clone()).unwrap_or_default(),
            changes: self.changes,
            elapsed,
            stop: outcome.stop,
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

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("task", &self.task).field("visible", &self.visible).finish_non_exhaustive()
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("request", &self.request).finish_non_exhaustive()
    }
}
