//! What a search takes, against the real `rg` over the same tree.
//!
//! `cargo bench -p hermes-tools --bench search` prints a Markdown table of medians. Ours goes through real dispatch and
//! the real guard, which is asked about every file; `rg` is a process of its own. Both take turns, so that a machine that
//! gets slower hits both.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people who measure")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use hermes_core::{CancellationToken, RawArguments, ToolCall};
use hermes_exec::LocalEnvironment;
use hermes_guard::Guard;
use hermes_guard::paths::PathPolicy;
use hermes_guard::policy::Policy;
use hermes_runtime::{ApprovalMode, Dispatcher, Registry, Scope, Silent, Status, Task};
use hermes_testkit::measure::{in_turn, ratio, shown};
use serde_json::{Value, json};

const FOLDERS: usize = 300;
const FILES: usize = 100;
const ROUNDS: usize = 15;

/// 30,000 files of about 4 kB in 300 folders. Every file has the word `common`, one in a thousand `rarely`.
fn tree(root: &Path) {
    let mut state = 7_u32;
    let words = ["alpha", "beta", "common", "delta", "value", "return", "self", "let", "match", "into"];
    for folder in 0..FOLDERS {
        let path = root.join(format!("p{:02}/m{:02}", folder / 20, folder % 20));
        std::fs::create_dir_all(&path).unwrap();
        for file in 0..FILES {
            let mut text = String::with_capacity(4_200);
            while text.len() < 4_000 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text += words[(state >> 16) as usize % words.len()];
                text.push(if state >> 29 == 0 { '\n' } else { ' ' });
            }
            if (folder * FILES + file).is_multiple_of(1_000) {
                text += "\nrarely\n";
            }
            std::fs::write(path.join(format!("f{file:02}.rs")), text).unwrap();
        }
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    tree(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let registry = Arc::new(Registry::new());
    registry.built_in(&hermes_tools::Builtins).unwrap();
    let visible: BTreeSet<_> = registry.snapshot().entries().map(|entry| entry.tool.spec().name.clone()).collect();
    let (home, own) = (home.path(), home.path().join(".hermes"));
    let policy = Policy::read(Some(&json!({})), &[]).unwrap();
    let guard = Guard::new(home, "user", &own, PathPolicy::new(home, &own), policy);
    let dispatcher = Dispatcher::new(registry, Arc::new(guard));
    let environment = LocalEnvironment::new(folder.path(), home, std::env::vars_os(), &[]).unwrap();
    let task = Task::new(Arc::new(environment));
    let cancel = CancellationToken::new();
    let scope =
        Scope { task: &task, visible: &visible, approve: ApprovalMode::All, cancel: &cancel, observer: &Silent };
    let search = |arguments: &Value| {
        let arguments = RawArguments::Object(arguments.as_object().unwrap().clone());
        let call = ToolCall { id: "bench".into(), name: "search_files".into(), arguments };
        let report = runtime.block_on(dispatcher.call(&call, &scope));
        assert_eq!(report.status, Status::Ok, "{}", report.text);
    };
    let has_rg = Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_ok();
    let rg = |arguments: &[&str]| {
        let mut rg = Command::new("rg");
        rg.arg("--no-config").args(arguments).current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        assert!(rg.status().unwrap().success());
    };

    println!("| what, over 30,000 files | hermes | rg | ratio | goal |\n|---|---|---|---|---|");
    let table: [(&str, Value, &[&str], &str); 5] = [
        ("a rare word", json!({"pattern": "rarely"}), &["-n", "-e", "rarely", "."], "at most 1.1x"),
        ("a rare expression", json!({"pattern": r"\brare\w+$"}), &["-n", "-e", r"\brare\w+$", "."], "at most 1.1x"),
        (
            "a common word, all counted",
            json!({"pattern": "common", "output_mode": "count"}),
            &["-c", "-e", "common", "."],
            "",
        ),
        ("a common word, first page", json!({"pattern": "common"}), &["-n", "-e", "common", "."], "at most 15 ms"),
        ("names", json!({"pattern": "*7.rs", "target": "files"}), &["--files", "-g", "*7.rs", "."], ""),
    ];
    for (what, ours, theirs, goal) in table {
        let theirs = || {
            if has_rg {
                rg(theirs);
            }
        };
        let (ours, theirs) = in_turn(ROUNDS, || search(&ours), theirs);
        let (theirs, ratio) = if has_rg {
            (shown(theirs), format!("{:.2}x", ratio(ours, theirs)))
        } else {
            ("skipped".into(), String::new())
        };
        println!("| {what} | {} | {theirs} | {ratio} | {goal} |", shown(ours));
    }
}
