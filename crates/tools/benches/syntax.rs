//! How far the syntax check after a write can be trusted, and what it costs.
//!
//! `find DIR -type f | cargo bench -p hermes-tools --bench syntax -- alarms` writes each of the files to a machine in memory
//! and lists those about which the check complains: all of a repository that builds should be fine. `… -- breakages` takes a
//! piece out of each (a bracket, a quote, a colon, a line) and counts how many of the broken texts are noticed. Without
//! an argument the cost of a check is measured. Everything goes through `write_file`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a program for people who measure"
)]

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{Content, JsonMap, Tool, ToolCx, ToolSource as _};
use hermes_testkit::FakeEnvironment;
use serde_json::{Value, json};

/// As many files of one suffix are broken.
const BROKEN: usize = 400;

struct Machine {
    tool: Arc<dyn Tool>,
    runtime: tokio::runtime::Runtime,
}

impl Machine {
    fn new() -> Self {
        let tools = hermes_tools::Builtins.tools();
        let tool = tools.into_iter().find(|tool| tool.spec().name.as_str() == "write_file").unwrap();
        Self { tool, runtime: tokio::runtime::Builder::new_current_thread().build().unwrap() }
    }

    /// What the check says of a text, and how long the whole write took.
    fn lint(&self, path: &str, text: &str) -> (Value, Duration) {
        let cx = ToolCx::of_a_program(Arc::new(FakeEnvironment::new()));
        let arguments: JsonMap = json!({ "path": path, "content": text }).as_object().unwrap().clone();
        let began = Instant::now();
        let output = self.runtime.block_on(self.tool.call(arguments, cx));
        let took = began.elapsed();
        match output.map(|output| output.content) {
            Ok(Content::Json(Value::Object(result))) => (result.get("lint").cloned().unwrap_or_default(), took),
            _ => (Value::Null, took),
        }
    }
}

#[derive(Default)]
struct Count {
    files: usize,
    bytes: usize,
    ok: usize,
    errors: usize,
    skipped: usize,
    time: Duration,
}

fn suffix(path: &str) -> String {
    Path::new(path).extension().map_or("-".into(), |suffix| suffix.to_string_lossy().into_owned())
}

/// The files that are named on standard input and are text.
fn files() -> impl Iterator<Item = (String, String)> {
    std::io::stdin().lock().lines().filter_map(|path| {
        let path = path.unwrap();
        let text = std::fs::read_to_string(&path).ok()?;
        Some((path, text))
    })
}

fn alarms() {
    let machine = Machine::new();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for (path, text) in files() {
        let (lint, took) = machine.lint(&path, &text);
        let count = counts.entry(suffix(&path)).or_default();
        count.files += 1;
        count.bytes += text.len();
        count.time += took;
        match lint["status"].as_str() {
            Some("ok") => count.ok += 1,
            Some("error") => {
                count.errors += 1;
                let first = lint["output"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
                println!("{path}:{first}");
            }
            _ => count.skipped += 1,
        }
    }
    println!("\n| suffix | files | MB | fine | error | skipped | time |\n|---|---|---|---|---|---|---|");
    for (suffix, count) in counts {
        let Count { files, bytes, ok, errors, skipped, time } = count;
        println!(
            "| {suffix} | {files} | {:.1} | {ok} | {errors} | {skipped} | {:.1} s |",
            bytes as f64 / 1e6,
            time.as_secs_f64()
        );
    }
}

/// A text without one piece, and what it was; the same for the same text.
fn broken(text: &str, kind: usize) -> Option<(&'static str, String)> {
    let (name, pieces): (_, &[&str]) = match kind {
        0 => ("a closing bracket", &[")", "]", "}"]),
        1 => ("an opening bracket", &["(", "[", "{"]),
        2 => ("a quote", &["\"", "'"]),
        3 => ("a colon, comma or equals sign", &[":", ",", "="]),
        _ => ("the last third", &[]),
    };
    if pieces.is_empty() {
        let cut = text.floor_char_boundary(text.len() * 2 / 3);
        return Some((name, text[..cut].to_owned()));
    }
    let places: Vec<usize> = pieces.iter().flat_map(|piece| text.match_indices(piece).map(|(at, _)| at)).collect();
    let at = *places.get(text.len() % places.len().max(1))?;
    Some((name, format!("{}{}", &text[..at], &text[at + 1..])))
}

fn breakages() {
    let machine = Machine::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut counts: BTreeMap<(String, &str), (usize, usize)> = BTreeMap::new();
    for (path, text) in files() {
        if seen.get(&suffix(&path)).is_some_and(|seen| *seen >= BROKEN)
            || machine.lint(&path, &text).0["status"] != "ok"
        {
            continue;
        }
        *seen.entry(suffix(&path)).or_default() += 1;
        for (name, text) in (0..5).filter_map(|kind| broken(&text, kind)) {
            let noticed = machine.lint(&path, &text).0["status"] == "error";
            let count = counts.entry((suffix(&path), name)).or_default();
            count.0 += usize::from(noticed);
            count.1 += 1;
        }
    }
    println!("| suffix | without | noticed |\n|---|---|---|");
    for ((suffix, name), (noticed, all)) in counts {
        println!("| {suffix} | {name} | {noticed} of {all} ({:.0} %) |", 100.0 * noticed as f64 / all as f64);
    }
}

fn cost() {
    let machine = Machine::new();
    let json = format!("[{}]", vec![r#"{"name": "value", "list": [1, 2, 3]}"#; 50].join(",\n"));
    let python = "def f(a, b=1):\n    if a:\n        return [a, b]\n    return None\n\n\n".repeat(30);
    let script = "export function f(a, b = 1) {\n  if (a) { return [a, b]; }\n  return null;\n}\n".repeat(30);
    let rust = "pub fn f(a: Option<u8>) -> Vec<u8> {\n    a.map(|a| vec![a]).unwrap_or_default()\n}\n".repeat(25);
    let go = format!(
        "package a\n\n{}",
        "func F(a int) []int {\n\tif a > 1 {\n\t\treturn []int{a}\n\t}\n\treturn nil\n}\n".repeat(25)
    );
    let yaml = "- name: a\n  list: [1, 2]\n  map: {a: b}\n".repeat(50);
    println!("| 2 kB of | write_file, median | the same as .txt | the check |\n|---|---|---|---|");
    for (path, text) in
        [("a.json", json), ("a.yaml", yaml), ("a.py", python), ("a.ts", script), ("a.rs", rust), ("a.go", go)]
    {
        let median = |path: &str| {
            let mut all: Vec<Duration> = (0..300).map(|_| machine.lint(path, &text).1).collect();
            all.sort();
            all[all.len() / 2]
        };
        let (with, without) = (median(path), median("a.txt"));
        assert_eq!(machine.lint(path, &text).0["status"], "ok", "{path}");
        println!(
            "| {path} | {} µs | {} µs | {} µs |",
            with.as_micros(),
            without.as_micros(),
            with.saturating_sub(without).as_micros()
        );
    }
}

fn main() {
    match std::env::args()
        .find(|word| !word.starts_with("--") && ["alarms", "breakages"].contains(&word.as_str()))
        .as_deref()
    {
        Some("alarms") => alarms(),
        Some(_) => breakages(),
        None => cost(),
    }
}
