//! The tool `patch` without a dispatcher around it: in memory, or on a real disk.
#![allow(clippy::unwrap_used, dead_code, reason = "each test program uses a part")]

use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{Edit, Environment, Tool, ToolCx, ToolSource as _, Touches};
use hermes_guard::Guard;
use hermes_guard::paths::PathPolicy;
use hermes_guard::policy::Policy;
use hermes_tools::Builtins;
use serde_json::Value;

pub(crate) struct Patcher {
    tools: Vec<Arc<dyn Tool>>,
    pub(crate) cx: ToolCx,
}

impl Patcher {
    pub(crate) fn new(environment: Arc<dyn Environment>) -> Self {
        let home = environment.home();
        let agent_home = home.join(".hermes");
        let paths = PathPolicy::new(home, &agent_home);
        let judge = Arc::new(Guard::new(home, "somebody", &agent_home, paths, Policy::default()));
        let cx = ToolCx { judge: Some(judge), ..ToolCx::of_a_program(environment) };
        Self { tools: Builtins.tools(), cx }
    }

    fn tool(&self, name: &str) -> &dyn Tool {
        &**self.tools.iter().find(|tool| tool.spec().name.as_str() == name).unwrap()
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        let arguments = arguments.as_object().unwrap().clone();
        match self.tool(name).call(arguments, self.cx.clone()).await {
            Ok(output) => match output.content {
                hermes_core::Content::Json(value) => value,
                hermes_core::Content::Text(text) => Value::String(text),
            },
            Err(error) => error.into(),
        }
    }

    pub(crate) async fn patch(&self, arguments: Value) -> Value {
        self.call("patch", arguments).await
    }

    /// A V4A patch.
    pub(crate) async fn apply(&self, text: &str) -> Value {
        self.patch(serde_json::json!({ "mode": "patch", "patch": text })).await
    }

    pub(crate) fn touches(&self, arguments: &Value) -> Touches {
        self.tool("patch").touches(arguments.as_object().unwrap(), &self.cx)
    }

    pub(crate) async fn edits(&self, arguments: Value) -> Result<Vec<Edit>, String> {
        self.tool("patch").edits(arguments.as_object().unwrap(), &self.cx).await
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.cx.resolve(name)
    }
}

/// The text of the error; there must be one, and it must say that nothing was changed.
#[track_caller]
pub(crate) fn refused(answer: &Value) -> &str {
    let error = answer["error"].as_str().unwrap_or_else(|| panic!("no error: {answer}"));
    assert_eq!(answer["success"], false, "{answer}");
    error
}
