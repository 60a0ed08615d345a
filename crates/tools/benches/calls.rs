//! What one call costs inside the process, against what the system itself takes.
//!
//! `cargo bench -p hermes-tools --bench calls` prints a Markdown table of medians. Ours and the floor take turns, so
//! that a machine that gets slower hits both.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people who measure")]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Arc;

use hermes_core::{CancellationToken, JsonMap, RawArguments, ToolCall};
use hermes_exec::LocalEnvironment;
use hermes_runtime::{ApprovalMode, Dispatcher, PlainJudge, Registry, Scope, Silent, Status, Task};
use hermes_testkit::measure::{in_turn, shown};
use serde_json::{Value, json};

const RUNS: usize = 200;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines.txt");
    std::fs::write(&file, "a line of some thirty characters\n".repeat(100)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();

    let registry = Arc::new(Registry::new());
    registry.built_in(&hermes_tools::Builtins).unwrap();
    let visible: BTreeSet<_> = registry.snapshot().entries().map(|entry| entry.tool.spec().name.clone()).collect();
    let dispatcher = Dispatcher::new(registry, Arc::new(PlainJudge));
    let environment = LocalEnvironment::new(folder.path(), folder.path(), std::env::vars_os(), &[]).unwrap();
    let task = Task::new(Arc::new(environment));
    let cancel = CancellationToken::new();
    let scope =
        Scope { task: &task, visible: &visible, approve: ApprovalMode::All, cancel: &cancel, observer: &Silent };
    let call = |name: &str, arguments: Value| {
        let arguments: JsonMap = arguments.as_object().unwrap().clone();
        let call = ToolCall { id: "bench".into(), name: name.into(), arguments: RawArguments::Object(arguments) };
        let report = runtime.block_on(dispatcher.call(&call, &scope));
        assert_eq!(report.status, Status::Ok, "{}", report.text);
    };

    let (ours, floor) = in_turn(
        RUNS,
        || call("terminal", json!({"command": "true"})),
        || assert!(Command::new("bash").args(["-c", "true"]).stdin(Stdio::null()).status().unwrap().success()),
    );
    println!("| what | hermes | floor | ratio | goal |\n|---|---|---|---|---|");
    let ratio = ours.as_secs_f64() / floor.as_secs_f64();
    println!("| `terminal true` | {} | `bash -c true` {} | {ratio:.1}x | at most 2x |", shown(ours), shown(floor));
    let (ours, floor) =
        in_turn(RUNS, || call("read_file", json!({"path": "lines.txt"})), || drop(std::fs::read(&file).unwrap()));
    println!("| `read_file` of 100 lines | {} | reading the bytes {} | | below 1 ms |", shown(ours), shown(floor));
}
