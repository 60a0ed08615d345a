//! Every example call of every built-in tool, through real dispatch, in a folder with one small file.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use hermes_core::{CancellationToken, Clock, Expected, RawArguments, TodoItem, Todos, ToolCall};
use hermes_exec::LocalEnvironment;
use hermes_exec::processes::{ProcessTable, TableSetup};
use hermes_runtime::{ApprovalMode, Dispatcher, PlainJudge, Registry, Scope, Silent, Task};
use hermes_testkit::TempHome;
use hermes_tools::Builtins;
use serde_json::Value;

#[derive(Default)]
struct List(Mutex<Vec<TodoItem>>);

impl Todos for List {
    fn read(&self) -> Vec<TodoItem> {
        self.0.lock().unwrap().clone()
    }

    fn replace(&self, items: Vec<TodoItem>) -> Vec<TodoItem> {
        self.0.lock().unwrap().clone_from(&items);
        items
    }
}

struct Now;

impl Clock for Now {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

#[tokio::test]
async fn every_example_answers_what_it_says() {
    let registry = Arc::new(Registry::new());
    registry.built_in(&Builtins).unwrap();
    let dispatcher = Dispatcher::new(Arc::clone(&registry), Arc::new(PlainJudge));
    let snapshot = registry.snapshot();
    let visible: BTreeSet<_> = snapshot.entries().map(|entry| entry.tool.spec().name.clone()).collect();
    for entry in snapshot.entries() {
        let tool = &entry.tool;
        assert!(!tool.examples().is_empty(), "{} has no example", tool.spec().name);
        let home = TempHome::new();
        let work = home.work();
        let todos = Arc::new(List::default());
        for example in tool.examples() {
            // A task of its own: the file is put back behind its back, which a task that had read it would notice.
            let environment = LocalEnvironment::new(&work, &home.user_home(), std::env::vars_os(), &[]).unwrap();
            let processes = ProcessTable::new(TableSetup {
                folder: home.home().join("processes"),
                owner: "example".into(),
                grace: Duration::from_secs(1),
                tells: false,
                redactor: None,
                clock: Arc::new(Now),
            });
            let task = Task::new(Arc::new(environment))
                .with_todos(Arc::clone(&todos) as Arc<dyn Todos>)
                .with_processes(Arc::new(processes));
            home.write("notes.txt", "one\ntwo\nthree\n");
            let call = ToolCall {
                id: "example".into(),
                name: tool.spec().name.to_string(),
                arguments: RawArguments::Text(example.arguments.into()),
            };
            let cancel = CancellationToken::new();
            let scope = Scope {
                task: &task,
                visible: &visible,
                approve: ApprovalMode::All,
                cancel: &cancel,
                observer: &Silent,
            };
            let report = dispatcher.call(&call, &scope).await;
            let got: Value = serde_json::from_str(&report.text).unwrap();
            let label = format!("{} {} gave {got}", tool.spec().name, example.arguments);
            match example.expected {
                Expected::Error(part) => assert!(got["error"].as_str().is_some_and(|e| e.contains(part)), "{label}"),
                Expected::Fields(fields) => {
                    let fields: Value = serde_json::from_str(fields).unwrap();
                    for (key, value) in fields.as_object().unwrap() {
                        assert_eq!(&got[key], value, "{label}");
                    }
                }
            }
        }
    }
}
