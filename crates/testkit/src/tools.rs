//! Tools whose behaviour a test decides, for tests of what happens around a tool.
//!
//! The tricky idea is [`FakeTool::wait_for_others`]: two calls that both need the other to have started can only end
//! if they really ran side by side. That proves an overlap without looking at a clock.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Mutex;
use std::time::Instant;

use async_trait::async_trait;
use futures::future::{BoxFuture, FutureExt};
use hermes_core::{
    Availability, Check, Edit, Effect, JsonMap, Tool, ToolCx, ToolError, ToolName, ToolResult, ToolSpec, Touches,
};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::{PATIENCE, lock};

type Run = Box<dyn Fn(JsonMap, ToolCx) -> BoxFuture<'static, ToolResult> + Send + Sync>;
type Describe = Box<dyn Fn(&dyn Fn(&str) -> bool) -> String + Send + Sync>;
type Narrow = Box<dyn Fn(&dyn Fn(&str) -> bool) -> Value + Send + Sync>;
type Reach = Box<dyn Fn(&JsonMap, &ToolCx) -> Touches + Send + Sync>;

/// A tool that answers as told and keeps its calls. Share it as `Arc<FakeTool>` to look at it after the run.
pub struct FakeTool {
    spec: ToolSpec,
    check: Option<Check>,
    describe: Option<Describe>,
    narrow: Option<Narrow>,
    edits: Vec<Edit>,
    run: Run,
    touches: Reach,
    barrier: Option<Barrier>,
    forgetful: bool,
    calls: Mutex<Vec<FakeCall>>,
}

/// One call that reached a [`FakeTool`].
#[derive(Clone, Debug, PartialEq)]
pub struct FakeCall {
    /// The id in the context of the call.
    pub id: String,
    /// The arguments as the tool got them.
    pub arguments: JsonMap,
    /// When it began.
    pub started: Instant,
    /// When it answered; `None` while it runs, and for ever if it was dropped.
    pub finished: Option<Instant>,
}

impl FakeCall {
    /// Whether there was a moment at which both calls were running.
    pub fn overlaps(&self, other: &Self) -> bool {
        let began_before_the_end_of = |a: &Self, b: &Self| b.finished.is_none_or(|end| a.started < end);
        began_before_the_end_of(self, other) && began_before_the_end_of(other, self)
    }
}

impl FakeTool {
    /// A tool of the toolset `test` that takes no arguments, reaches nothing, runs alone and answers `{"ok":true}`.
    ///
    /// Panics if `name` is no tool name.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        let name = ToolName::new(name).unwrap_or_else(|error| panic!("{error}"));
        let description = format!("Stands in for {name}.");
        let spec = ToolSpec::new(name, json!({ "type": "object", "properties": {} }));
        let spec = ToolSpec { toolset: "test".into(), emoji: "🧪".into(), description, ..spec };
        Self {
            spec,
            check: None,
            describe: None,
            narrow: None,
            edits: Vec::new(),
            run: Box::new(|_, _| std::future::ready(Ok(json!({ "ok": true }).into())).boxed()),
            touches: Box::new(|_, _| Touches::nothing()),
            barrier: None,
            forgetful: false,
            calls: Mutex::default(),
        }
    }

    /// Sets the toolset.
    #[must_use]
    pub fn toolset(mut self, toolset: impl Into<String>) -> Self {
        self.spec.toolset = toolset.into();
        self
    }

    /// Sets the strongest thing it claims to do.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Sets the JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Self {
        self.spec.parameters = schema;
        self
    }

    /// Sets whether it may run beside other calls.
    #[must_use]
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.spec.parallel = parallel;
        self
    }

    /// Changes any other static fact.
    #[must_use]
    pub fn with_spec(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Sets whether it is usable here, once and for all.
    #[must_use]
    pub fn with_availability(self, availability: Availability) -> Self {
        let id = format!("test:{}", self.spec.name);
        self.with_check(Check::quick(&id, move || availability.clone()))
    }

    /// Sets who is asked whether it is usable here.
    #[must_use]
    pub fn with_check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// Describes itself by what else is visible.
    #[must_use]
    pub fn describing(mut self, describe: impl Fn(&dyn Fn(&str) -> bool) -> String + Send + Sync + 'static) -> Self {
        self.describe = Some(Box::new(describe));
        self
    }

    /// Shows arguments that depend on what else is visible.
    #[must_use]
    pub fn showing(mut self, narrow: impl Fn(&dyn Fn(&str) -> bool) -> Value + Send + Sync + 'static) -> Self {
        self.narrow = Some(Box::new(narrow));
        self
    }

    /// Tells an editor that it would make these changes.
    #[must_use]
    pub fn editing(mut self, edits: Vec<Edit>) -> Self {
        self.edits = edits;
        self
    }

    /// Sets what a call says it would do.
    #[must_use]
    pub fn touching(mut self, touches: impl Fn(&JsonMap, &ToolCx) -> Touches + Send + Sync + 'static) -> Self {
        self.touches = Box::new(touches);
        self
    }

    /// Answers every call with this.
    #[must_use]
    pub fn result(self, result: ToolResult) -> Self {
        self.run(move |_, _| result.clone())
    }

    /// Answers each call with what `run` makes of it.
    #[must_use]
    pub fn run(self, run: impl Fn(&JsonMap, &ToolCx) -> ToolResult + Send + Sync + 'static) -> Self {
        self.run_async(move |arguments, cx| std::future::ready(run(&arguments, &cx)))
    }

    /// Answers each call with what the future of `run` makes of it.
    #[must_use]
    pub fn run_async<F>(mut self, run: impl Fn(JsonMap, ToolCx) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ToolResult> + Send + 'static,
    {
        self.run = Box::new(move |arguments, cx| run(arguments, cx).boxed());
        self
    }

    /// Lets no call go on before `calls` calls of this tool are running at once.
    ///
    /// If they do not come within 30 s the waiting calls answer an error that says so.
    #[must_use]
    pub fn wait_for_others(mut self, calls: usize) -> Self {
        self.barrier = Some(Barrier::new(calls));
        self
    }

    /// Keeps no calls, for whoever makes a million of them.
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        self.forgetful = true;
        self
    }

    /// The calls so far, in the order in which they began.
    pub fn calls(&self) -> Vec<FakeCall> {
        lock(&self.calls).clone()
    }

    async fn meet_others(&self) -> Result<(), ToolError> {
        let Some(barrier) = &self.barrier else { return Ok(()) };
        match tokio::time::timeout(PATIENCE, barrier.wait()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ToolError::tell(format!("{}: the calls did not run side by side", self.spec.name))),
        }
    }
}

impl fmt::Debug for FakeTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeTool").field("name", &self.spec.name).field("calls", &self.calls).finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self) -> Option<&Check> {
        self.check.as_ref()
    }

    fn describe(&self, visible: &dyn Fn(&str) -> bool) -> Cow<'_, str> {
        self.describe.as_ref().map_or(Cow::Borrowed(&self.spec.description), |describe| describe(visible).into())
    }

    fn parameters(&self, visible: &dyn Fn(&str) -> bool) -> Cow<'_, Value> {
        self.narrow.as_ref().map_or(Cow::Borrowed(&self.spec.parameters), |narrow| Cow::Owned(narrow(visible)))
    }

    async fn edits(&self, _: &JsonMap, _: &ToolCx) -> Result<Vec<Edit>, String> {
        if self.edits.is_empty() { Err("there is nothing to show".into()) } else { Ok(self.edits.clone()) }
    }

    fn touches(&self, arguments: &JsonMap, cx: &ToolCx) -> Touches {
        (self.touches)(arguments, cx)
    }

    async fn call(&self, arguments: JsonMap, cx: ToolCx) -> ToolResult {
        if self.forgetful {
            return (self.run)(arguments, cx).await;
        }
        let started = Instant::now();
        let call = FakeCall { id: cx.call_id.clone(), arguments: arguments.clone(), started, finished: None };
        let index = {
            let mut calls = lock(&self.calls);
            calls.push(call);
            calls.len() - 1
        };
        let result = match self.meet_others().await {
            Ok(()) => (self.run)(arguments, cx).await,
            Err(error) => Err(error),
        };
        lock(&self.calls)[index].finished = Some(Instant::now());
        result
    }
}
