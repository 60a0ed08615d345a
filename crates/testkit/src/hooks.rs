//! Hooks whose behaviour a test decides.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use hermes_core::{
    Checkpointer, ExecutionMiddleware, HookCall, HookDecision, HookFacts, HookResult, JsonMap, Next, OnError, PostHook,
    PreHook, Redactor, RequestMiddleware, ToolCx, ToolResult, Touches, TransformHook,
};
use serde_json::Value;

use crate::lock;

type Rewrite = Box<dyn Fn(&JsonMap) -> Result<Option<JsonMap>, String> + Send + Sync>;
type Transform = Box<dyn Fn(&str) -> Result<Option<String>, String> + Send + Sync>;
type Decide = Box<dyn Fn(JsonMap) -> BoxFuture<'static, Result<HookDecision, String>> + Send + Sync>;

/// Decides as told, and keeps the arguments it saw.
pub struct Gate {
    facts: HookFacts,
    decide: Decide,
    /// The arguments it was asked about, in order.
    pub saw: Mutex<Vec<JsonMap>>,
}

impl Gate {
    /// Decides what the future of `decide` says about the arguments.
    pub fn new<F>(name: &str, decide: impl Fn(JsonMap) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<HookDecision, String>> + Send + 'static,
    {
        let facts = HookFacts { timeout: Duration::from_secs(60), ..HookFacts::new(name) };
        Self { facts, decide: Box::new(move |arguments| Box::pin(decide(arguments))), saw: Mutex::default() }
    }

    /// Says the same about every call.
    pub fn saying(name: &str, decision: HookDecision) -> Self {
        Self::new(name, move |_| std::future::ready(Ok(decision.clone())))
    }

    /// Lets calls go on when it fails.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.facts.on_error = OnError::Allow;
        self
    }
}

#[async_trait]
impl PreHook for Gate {
    fn facts(&self) -> &HookFacts {
        &self.facts
    }

    async fn decide(&self, call: HookCall<'_>) -> Result<HookDecision, String> {
        lock(&self.saw).push(call.arguments.clone());
        (self.decide)(call.arguments.clone()).await
    }
}

/// Rewrites arguments as told.
pub struct Rewriter {
    facts: HookFacts,
    rewrite: Rewrite,
}

impl Rewriter {
    /// Answers what `rewrite` says.
    pub fn new(
        name: &str,
        rewrite: impl Fn(&JsonMap) -> Result<Option<JsonMap>, String> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { facts: HookFacts::new(name), rewrite: Box::new(rewrite) })
    }
}

#[async_trait]
impl RequestMiddleware for Rewriter {
    fn facts(&self) -> &HookFacts {
        &self.facts
    }

    async fn rewrite(&self, call: HookCall<'_>) -> Result<Option<JsonMap>, String> {
        (self.rewrite)(call.arguments)
    }
}

/// Counts how often it stood around a tool, and writes its name into the answer's summary.
pub struct Layer {
    facts: HookFacts,
    /// The arguments of the calls that passed, in order.
    pub passed: Mutex<Vec<Value>>,
}

impl Layer {
    /// Called `name`.
    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { facts: HookFacts::new(name), passed: Mutex::default() })
    }
}

#[async_trait]
impl ExecutionMiddleware for Layer {
    fn facts(&self) -> &HookFacts {
        &self.facts
    }

    async fn around(&self, call: HookCall<'_>, next: Next<'_>) -> ToolResult {
        lock(&self.passed).push(Value::Object(call.arguments.clone()));
        let mut output = next.run().await?;
        let inner = output.summary.take().unwrap_or_default();
        output.summary = Some(format!("{}({inner})", self.facts.name));
        Ok(output)
    }
}

/// Rewrites results as told.
pub struct Polish {
    facts: HookFacts,
    transform: Transform,
}

impl Polish {
    /// Answers what `transform` says about the text.
    pub fn new(
        name: &str,
        transform: impl Fn(&str) -> Result<Option<String>, String> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { facts: HookFacts::new(name), transform: Box::new(transform) })
    }
}

#[async_trait]
impl TransformHook for Polish {
    fn facts(&self) -> &HookFacts {
        &self.facts
    }

    async fn transform(&self, result: HookResult<'_>) -> Result<Option<String>, String> {
        (self.transform)(result.text)
    }
}

/// Writes down every finished call.
pub struct Audit {
    facts: HookFacts,
    delay: Duration,
    /// What it was told.
    pub records: Mutex<Vec<Record>>,
}

/// What an [`Audit`] was told.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The call's id.
    pub call: String,
    /// The tool's name.
    pub tool: String,
    /// How it ended.
    pub status: String,
    /// What went wrong, before it was cleaned.
    pub error: Option<String>,
    /// What the model reads.
    pub text: String,
}

impl Audit {
    /// Takes note at once.
    pub fn new() -> Arc<Self> {
        Self::taking(Duration::ZERO)
    }

    /// Takes this long to take note.
    pub fn taking(delay: Duration) -> Arc<Self> {
        let facts = HookFacts { on_error: OnError::Allow, timeout: Duration::from_secs(5), name: "audit".into() };
        Arc::new(Self { facts, delay, records: Mutex::default() })
    }

    /// What it was told so far.
    pub fn records(&self) -> Vec<Record> {
        lock(&self.records).clone()
    }
}

#[async_trait]
impl PostHook for Audit {
    fn facts(&self) -> &HookFacts {
        &self.facts
    }

    async fn finished(&self, result: HookResult<'_>) -> Result<(), String> {
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        lock(&self.records).push(Record {
            call: result.call_id.into(),
            tool: result.tool.into(),
            status: result.status.into(),
            error: result.error.map(str::to_owned),
            text: result.text.into(),
        });
        Ok(())
    }
}

/// Takes one word out.
pub struct Mask(
    /// The word.
    pub &'static str,
);

impl Redactor for Mask {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.contains(self.0) { text.replace(self.0, "[redacted]").into() } else { text.into() }
    }
}

/// Notes what it was asked to keep.
#[derive(Default)]
pub struct Copies(
    /// The paths of each call.
    pub Mutex<Vec<Vec<PathBuf>>>,
);

#[async_trait]
impl Checkpointer for Copies {
    async fn before(&self, _: HookCall<'_>, touches: &Touches, _: &ToolCx) -> Result<(), String> {
        lock(&self.0).push(touches.writes.clone());
        Ok(())
    }
}

macro_rules! debug_by_name {
    ($($hook:ident),*) => {$(
        impl fmt::Debug for $hook {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($hook))
            }
        }
    )*};
}

debug_by_name!(Gate, Rewriter, Layer, Polish, Audit, Mask, Copies);
