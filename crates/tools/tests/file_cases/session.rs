//! One run of one case: a home, a dispatcher and a task for every name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{CancellationToken, RawArguments, ToolCall, ToolName};
use hermes_exec::LocalEnvironment;
use hermes_guard::Guard;
use hermes_guard::paths::PathPolicy;
use hermes_guard::policy::Policy;
use hermes_runtime::{ApprovalMode, Dispatcher, Registry, Scope, Silent, Task};
use hermes_testkit::TempHome;
use hermes_tools::Builtins;
use serde_json::{Value, json};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::case::{Call, Case, Names, Step};
use crate::{folder, judge};

const DEADLINE: Duration = Duration::from_secs(10);

/// Runs the case and says what is not as it should be.
pub(crate) async fn differences(case: &Case) -> Vec<String> {
    let mut session = Session::new();
    if case.needs_stub {
        session.names.stub = stub().await;
        if session.names.stub.is_none() {
            return vec!["there is no $STUB: read_file does not say that a file is unchanged".into()];
        }
    }
    for entry in &case.setup {
        folder::make(entry, &session.names);
    }
    let mut known = folder::everything_below(&session.home.work());
    let outside = judge::absent_outside(case, &session.names);

    let answer = session.run(&case.steps, &mut known).await;
    let differences = match answer {
        Ok(text) => judge::differences(&case.correct, &text, &known, &session.names),
        Err(_) => vec![format!("a call was not answered within {} s", DEADLINE.as_secs())],
    };
    for path in outside {
        // A wrong tool, run by root, has written to the machine itself.
        let _ = std::fs::remove_file(path);
    }
    session.close().await;
    differences
}

/// The message of the answer that says that a file is unchanged.
async fn stub() -> Option<String> {
    let mut session = Session::new();
    session.home.write("a.txt", "a\n");
    let read: Call = serde_json::from_value(json!({"tool": "read_file", "args": {"path": "a.txt"}})).unwrap();
    session.call(&read, None).await.ok()?;
    let again = session.call(&read, None).await.ok()?;
    session.close().await;
    let again: Value = serde_json::from_str(&again).unwrap();
    let unchanged = again["status"] == "unchanged";
    unchanged.then(|| again["message"].as_str().unwrap().to_owned())
}

/// The judge of the product: it refuses protected paths, also to somebody who says yes to everything.
fn guard(home: &TempHome) -> Arc<Guard> {
    let (person, agent) = (home.user_home(), home.home());
    let paths = PathPolicy::new(&person, &agent);
    Arc::new(Guard::new(&person, "somebody", &agent, paths, Policy::default()))
}

struct Session {
    names: Names,
    home: TempHome,
    dispatcher: Dispatcher,
    visible: BTreeSet<ToolName>,
    tasks: BTreeMap<String, Task>,
}

impl Session {
    fn new() -> Self {
        let registry = Arc::new(Registry::new());
        registry.built_in(&Builtins).unwrap();
        let visible = registry.snapshot().entries().map(|entry| entry.tool.spec().name.clone()).collect();
        let home = TempHome::new();
        let text = |path: PathBuf| path.into_os_string().into_string().unwrap();
        Self {
            names: Names { work: text(home.work()), home: text(home.user_home()), stub: None },
            dispatcher: Dispatcher::new(registry, guard(&home)),
            home,
            visible,
            tasks: BTreeMap::new(),
        }
    }

    /// Takes the steps in order and answers what the last call to be judged was answered. What a step puts into the
    /// folder behind the tools' back is added to `known`.
    async fn run(&mut self, steps: &[Step], known: &mut BTreeSet<PathBuf>) -> Result<String, Elapsed> {
        let mut answer = String::new();
        for step in steps {
            match step {
                Step::Call(call) => answer = self.call(call, None).await?,
                Step::Other { other, task } => drop(self.call(other, task.as_deref()).await?),
                Step::Mutate { mutate } => {
                    let path = folder::make(mutate, &self.names);
                    known.extend(path.ancestors().map(ToOwned::to_owned));
                }
            }
        }
        Ok(answer)
    }

    /// The answer to a call of the task it names, of the one named beside it, or of `t1`.
    async fn call(&mut self, call: &Call, beside: Option<&str>) -> Result<String, Elapsed> {
        let task = call.task.as_deref().or(beside).unwrap_or("t1");
        if let Some(raw) = &call.raw_args {
            let answer = self.send(task, &call.tool, RawArguments::Text(self.names.fill_json(raw))).await;
            // Whatever that was, the next call is answered.
            self.send(task, "read_file", RawArguments::Text(r#"{"path": "."}"#.into())).await?;
            return answer;
        }
        let arguments = call.args.iter().map(|(key, value)| (key.clone(), self.names.fill_value(value.clone())));
        self.send(task, &call.tool, RawArguments::Object(arguments.collect())).await
    }

    async fn send(&mut self, task: &str, tool: &str, arguments: RawArguments) -> Result<String, Elapsed> {
        let task = self.tasks.entry(task.to_owned()).or_insert_with(|| {
            let home = self.home.user_home();
            let variables = std::env::vars_os().filter(|(name, _)| name != "HOME");
            let variables = variables.chain([("HOME".into(), home.clone().into())]);
            Task::new(Arc::new(LocalEnvironment::new(&self.home.work(), &home, variables, &[]).unwrap()))
                .in_conversation()
        });
        let request = ToolCall { id: "case".into(), name: tool.into(), arguments };
        let cancel = CancellationToken::new();
        let visible = &self.visible;
        let scope = Scope { task, visible, approve: ApprovalMode::All, cancel: &cancel, observer: &Silent };
        timeout(DEADLINE, self.dispatcher.call(&request, &scope)).await.map(|report| report.text)
    }

    async fn close(self) {
        for task in self.tasks.values() {
            task.environment.close().await;
        }
    }
}
