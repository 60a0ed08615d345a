//! One conversation around some fake tools: the smallest setting in which calls can be made.
//!
//! Every call made here is a check as well: whatever happens to it, it is announced once and it ends once.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part of this")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_core::{Asker, CancellationToken, Judge, RawArguments, Tool, ToolCall, ToolName};
use hermes_runtime::{
    ApprovalMode, CallReport, Checks, Dispatcher, Hooks, Observer, Owner, OwnerKind, PlainJudge, Registry, Scope,
    Status, Task,
};
pub(crate) use hermes_testkit::hooks;
use hermes_testkit::{FakeEnvironment, FakeSurroundings, FakeTool};
use serde_json::Value;

/// A conversation. What a test varies is public; it starts with every tool visible and nobody to ask.
pub(crate) struct Setting {
    pub(crate) registry: Arc<Registry>,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) environment: Arc<FakeEnvironment>,
    pub(crate) task: Task,
    pub(crate) visible: BTreeSet<ToolName>,
    pub(crate) approve: ApprovalMode,
    pub(crate) cancel: CancellationToken,
    pub(crate) heard: Heard,
}

impl Setting {
    pub(crate) fn new<'a>(tools: impl IntoIterator<Item = &'a Arc<FakeTool>>) -> Self {
        let registry = Arc::new(Registry::new());
        let tools: Vec<Arc<dyn Tool>> = tools.into_iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect();
        let visible = tools.iter().map(|tool| tool.spec().name.clone()).collect();
        let built_in = registry.owner(OwnerKind::BuiltIn, "built-in", true);
        registry.offer(&built_in, tools).unwrap();
        let environment = Arc::new(FakeEnvironment::new());
        Self {
            dispatcher: Dispatcher::new(Arc::clone(&registry), Arc::new(PlainJudge)),
            registry,
            task: Task::new(Arc::clone(&environment) as _),
            environment,
            visible,
            approve: ApprovalMode::Ask,
            cancel: CancellationToken::new(),
            heard: Heard::default(),
        }
    }

    /// Everything that can be allowed at all is allowed.
    pub(crate) fn allowing_all(self) -> Self {
        self.approving(ApprovalMode::All)
    }

    pub(crate) fn approving(mut self, mode: ApprovalMode) -> Self {
        self.approve = mode;
        self
    }

    pub(crate) fn asking(mut self, person: &Arc<impl Asker + 'static>) -> Self {
        self.task.asker = Some(Arc::clone(person) as _);
        self
    }

    pub(crate) fn judged_by(mut self, judge: impl Judge + 'static) -> Self {
        self.dispatcher = Dispatcher::new(Arc::clone(&self.registry), Arc::new(judge));
        self
    }

    pub(crate) fn with_deadline(mut self, deadline: Duration) -> Self {
        self.dispatcher = self.dispatcher.with_deadline(deadline);
        self
    }

    pub(crate) fn with_hooks(mut self, hooks: Hooks) -> Self {
        self.dispatcher = self.dispatcher.with_hooks(hooks);
        self
    }

    pub(crate) fn inside(mut self, environment: FakeEnvironment) -> Self {
        self.environment = Arc::new(environment);
        self.task = Task::new(Arc::clone(&self.environment) as _);
        self
    }

    pub(crate) fn scope(&self) -> Scope<'_> {
        Scope {
            task: &self.task,
            visible: &self.visible,
            approve: self.approve,
            cancel: &self.cancel,
            observer: &self.heard,
        }
    }

    /// Makes a call as a model does, with the arguments as JSON text.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> CallReport {
        self.call_text(name, &arguments.to_string()).await
    }

    /// Makes a call whose arguments are any text.
    pub(crate) async fn call_text(&self, name: &str, arguments: &str) -> CallReport {
        self.make(&called_with_text("call", name, arguments)).await
    }

    pub(crate) async fn make(&self, call: &ToolCall) -> CallReport {
        let before = self.heard.moments().len();
        let report = self.dispatcher.call(call, &self.scope()).await;
        let heard = self.heard.moments().split_off(before);
        assert_eq!(heard, [Moment::Started(call.id.clone()), Moment::Finished(call.id.clone(), report.status)]);
        assert_eq!(report.id, call.id);
        report
    }

    /// Makes the calls of one turn; their ids must differ.
    pub(crate) async fn call_all(&self, calls: &[ToolCall]) -> Vec<CallReport> {
        let before = self.heard.moments().len();
        let reports = self.dispatcher.call_all(calls, &self.scope()).await;
        let ids: Vec<&str> = reports.iter().map(|report| report.id.as_str()).collect();
        let asked: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, asked, "every call has one answer, in the order of the calls");
        let heard = self.heard.moments().split_off(before);
        assert_eq!(heard.len(), 2 * calls.len(), "one beginning and one end a call: {heard:?}");
        for report in &reports {
            let began = heard.iter().position(|moment| *moment == Moment::Started(report.id.clone()));
            let ended = heard.iter().position(|moment| *moment == Moment::Finished(report.id.clone(), report.status));
            assert!(began.is_some() && began < ended, "{}: {heard:?}", report.id);
        }
        reports
    }
}

/// An observer with a good memory.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Vec<Moment>>, Mutex<Vec<String>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Started(String),
    Finished(String, Status),
}

impl Heard {
    pub(crate) fn moments(&self) -> Vec<Moment> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.1.lock().unwrap().clone()
    }
}

impl Observer for Heard {
    fn started(&self, call: &ToolCall) {
        self.0.lock().unwrap().push(Moment::Started(call.id.clone()));
    }

    fn finished(&self, report: &CallReport) {
        self.0.lock().unwrap().push(Moment::Finished(report.id.clone(), report.status));
    }

    fn warned(&self, _: &ToolCall, message: &str) {
        self.1.lock().unwrap().push(message.to_owned());
    }
}

pub(crate) fn called(id: &str, name: &str, arguments: &Value) -> ToolCall {
    called_with_text(id, name, &arguments.to_string())
}

pub(crate) fn called_with_text(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: RawArguments::Text(arguments.into()) }
}

/// What the model reads, as JSON.
pub(crate) fn answer(report: &CallReport) -> Value {
    serde_json::from_str(&report.text).unwrap_or_else(|error| panic!("{error} in {}", report.text))
}

/// The sentence of an error.
pub(crate) fn error(report: &CallReport) -> String {
    let answer = answer(report);
    answer["error"].as_str().unwrap_or_else(|| panic!("no error in {answer}")).to_owned()
}

/// Offers `tools` as a plugin called `owner`, which may replace built-in tools.
pub(crate) fn register(registry: &Registry, owner: &str, tools: Vec<Arc<dyn Tool>>) -> Owner {
    let owner = registry.owner(OwnerKind::Plugin, owner, true);
    registry.offer(&owner, tools).unwrap();
    owner
}

/// On this machine nothing is missing.
pub(crate) fn checks() -> Checks {
    Checks::new(Arc::new(FakeSurroundings::complete()))
}
