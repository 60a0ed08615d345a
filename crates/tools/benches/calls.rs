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
const LINE: &str = "a line of some thirty characters\n";

/// A line deep in a file of a gigabyte: for a task that has never seen the file, and for one that has.
fn deep_reads(
    runtime: &tokio::runtime::Runtime,
    dispatcher: &Dispatcher,
    visible: &BTreeSet<hermes_core::ToolName>,
    folder: &std::path::Path,
) {
    use std::io::Write as _;
    let path = folder.join("huge.txt");
    let piece = LINE.repeat(30_000);
    let mut file = std::fs::File::create(&path).unwrap();
    while file.metadata().unwrap().len() < 1 << 30 {
        file.write_all(piece.as_bytes()).unwrap();
    }
    drop(file);
    let fresh = || {
        let environment = LocalEnvironment::new(folder, folder, std::env::vars_os(), &[]).unwrap();
        Task::new(Arc::new(environment))
    };
    let read = |task: &Task, from: u64| {
        let cancel = CancellationToken::new();
        let scope = Scope { task, visible, approve: ApprovalMode::All, cancel: &cancel, observer: &Silent };
        let arguments = json!({"path": "huge.txt", "offset": from, "limit": 20}).as_object().unwrap().clone();
        let call =
            ToolCall { id: "bench".into(), name: "read_file".into(), arguments: RawArguments::Object(arguments) };
        let report = runtime.block_on(dispatcher.call(&call, &scope));
        assert!(report.text.contains("a line of some"), "{}", report.text);
    };
    let count = || assert!(Command::new("wc").arg("-l").arg(&path).stdout(Stdio::null()).status().unwrap().success());
    let tasks: Vec<Task> = (0..12).map(|_| fresh()).collect();
    let mut new = tasks.iter();
    let (ours, floor) = in_turn(10, || read(new.next().unwrap(), 30_000_000), count);
    let ratio = ours.as_secs_f64() / floor.as_secs_f64();
    println!(
        "| line 30,000,000 of 1 GB, the first time | {} | `wc -l` {} | {ratio:.2}x | at most 1.2x |",
        shown(ours),
        shown(floor)
    );
    let mut from = 20_000_000;
    let (ours, _) = in_turn(
        RUNS,
        || {
            from += 1;
            read(&tasks[0], from);
        },
        || {},
    );
    println!("| the same again, at another place | {} | | | at most 5 ms |", shown(ours));
    std::fs::remove_file(path).unwrap();
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines.txt");
    std::fs::write(&file, LINE.repeat(100 + RUNS)).unwrap();
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
    let answered = |name: &str, arguments: Value| {
        let arguments: JsonMap = arguments.as_object().unwrap().clone();
        let call = ToolCall { id: "bench".into(), name: name.into(), arguments: RawArguments::Object(arguments) };
        runtime.block_on(dispatcher.call(&call, &scope))
    };
    let call = |name: &str, arguments: Value| {
        let report = answered(name, arguments);
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
    let mut from = 0;
    let mut read = || {
        // Never the same lines: those are not shown twice.
        from += 1;
        call("read_file", json!({"path": "lines.txt", "offset": from, "limit": 100}));
    };
    let (ours, floor) = in_turn(RUNS, &mut read, || drop(std::fs::read(&file).unwrap()));
    println!("| `read_file` of 100 lines | {} | reading the bytes {} | | below 1 ms |", shown(ours), shown(floor));

    let mut written = 0;
    let (ours, floor) = in_turn(
        RUNS,
        || {
            written += 1;
            call("write_file", json!({"path": "new.txt", "content": format!("{written}\n{}", LINE.repeat(30))}));
        },
        || {
            let file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
            std::fs::write(file.path(), LINE.repeat(30)).unwrap();
            file.as_file().sync_all().unwrap();
            drop(file.persist(folder.path().join("floor.txt")).unwrap());
        },
    );
    println!("| `write_file` of 1 kB | {} | the same with fsync {} | | 1 ms more |", shown(ours), shown(floor));
    deep_reads(&runtime, &dispatcher, &visible, folder.path());

    // Code of a megabyte: 26,000 lines with indentation, one of which is there once.
    let line = |at: usize| format!("{}let value_{at} = compute({});\n", " ".repeat(4 * (at % 4)), at % 97);
    let code: String = (0..26_000).map(line).collect();
    let (code_file, mut edits) = (folder.path().join("code.rs"), 0);
    std::fs::write(&code_file, &code).unwrap();
    let (ours, floor) = in_turn(
        RUNS,
        || {
            edits += 1;
            let (old, new) = if edits % 2 == 1 { ("let", "LET") } else { ("LET", "let") };
            let text = |word: &str| format!("{word} value_13000 = compute(");
            call("patch", json!({"path": "code.rs", "old_string": text(old), "new_string": text(new)}));
        },
        || {
            let written = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
            std::fs::write(written.path(), &code).unwrap();
            written.as_file().sync_all().unwrap();
        },
    );
    println!("| `patch` in 1 MB | {} | writing the bytes {} | | at most 10 ms |", shown(ours), shown(floor));
    let mut misses = 0;
    let mut missing = |name: &str, path: &str, old: &str, floor: &std::path::Path| {
        let (ours, floor) = in_turn(
            RUNS,
            || {
                misses += 1;
                let report =
                    answered("patch", json!({"path": path, "old_string": format!("{old}{misses}"), "new_string": "x"}));
                assert!(report.text.contains("was not found"), "{}", report.text);
            },
            || drop(std::fs::read(floor).unwrap()),
        );
        println!(
            "| `patch` that finds nothing, {name} | {} | reading the bytes {} | | at most 50 ms |",
            shown(ours),
            shown(floor)
        );
    };
    missing("1 MB", "code.rs", "let value = compute_something_else();\nreturn value", &code_file);
    let (lines, lines_file): (Vec<String>, _) = ((0..3_000).map(line).collect(), folder.path().join("lines.rs"));
    std::fs::write(&lines_file, lines.concat()).unwrap();
    missing("30 lines in 3,000", "lines.rs", &(lines[1_000..1_029].concat() + "let value_"), &lines_file);
    let same = folder.path().join("same.txt");
    std::fs::write(&same, "    x\n".repeat(170_000)).unwrap();
    missing("1,000 lines in 1 MB of one line", "same.txt", &("  x\n".repeat(1_000) + "x\ny"), &same);
}
