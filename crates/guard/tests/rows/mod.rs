//! The judged commands: our own, one file a family in `tests/corpus/`, and those of `cases/approval.jsonl`.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "shared by test programs, each of which uses a part of it"
)]

pub mod random;

use std::path::{Path, PathBuf};

use hermes_guard::{Verdict, World};
use serde::Deserialize;

/// One command with what is right about it.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// What bash would be given.
    pub cmd: String,
    /// `safe`, `dangerous` or `hardline`.
    verdict: String,
    /// The kind of command.
    pub family: String,
    /// Why, in a few words.
    pub why: String,
}

impl Row {
    /// The right verdict.
    pub fn verdict(&self) -> Verdict {
        match self.verdict.as_str() {
            "safe" => Verdict::Safe,
            "dangerous" => Verdict::Dangerous,
            "hardline" => Verdict::Hardline,
            other => panic!("{other:?} is no verdict: {}", self.cmd),
        }
    }
}

/// Where the rules of the verdicts say that every command runs.
pub fn world() -> World {
    World::new("/home/u", "/home/u/project")
}

fn read(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let row = |(at, line): (usize, &str)| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), at + 1))
    };
    text.lines().enumerate().map(row).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Our own rows, file by file.
pub fn own() -> Vec<(String, Vec<Row>)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder of the corpus")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), read(path))).collect()
}

/// The rows of `cases/approval.jsonl`.
pub fn given() -> Vec<Row> {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/approval.jsonl"))
}

/// All rows.
pub fn all() -> Vec<Row> {
    own().into_iter().flat_map(|(_, rows)| rows).chain(given()).collect()
}

/// The rows that are judged wrong today, as `(command, reason)`.
pub fn not_yet() -> Vec<(String, String)> {
    let path = folder().join("not-yet.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (cmd, reason) = line.split_once("  # ").unwrap_or_else(|| panic!("no reason: {line}"));
            (serde_json::from_str(cmd).unwrap_or_else(|error| panic!("{line}: {error}")), reason.to_owned())
        })
        .collect()
}
