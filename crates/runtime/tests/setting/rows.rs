//! The rows of `cases/reports.jsonl`, and where each of them is tested.
//!
//! A test is named after its row: `concurrency_02_…` is about `09-concurrency-02`. The names are those that the test
//! program itself lists, so a test that was removed or renamed is missed.

use std::collections::BTreeSet;
use std::process::Command;

const ROWS: &str = include_str!("../../../../cases/reports.jsonl");
const SESSIONS: &str = include_str!("../../../../cases/reports.sessions");
const DEFERRED: &str = include_str!("../../../../cases/DEFERRED.md");

/// The ids of all rows that `wanted` wants.
pub(crate) fn ids(wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let id = |row: &str| serde_json::from_str::<serde_json::Value>(row).unwrap()["id"].as_str().unwrap().to_owned();
    ROWS.lines().map(id).filter(|id| wanted(id)).collect()
}

/// The rows whose test is a whole session.
pub(crate) fn in_sessions() -> BTreeSet<String> {
    SESSIONS.lines().map(str::to_owned).collect()
}

/// The rows that wait for something, wholly or in part.
pub(crate) fn deferred() -> BTreeSet<String> {
    let first = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    DEFERRED.lines().filter_map(first).collect()
}

/// Those of `rows` after which a test of this program is named.
pub(crate) fn tested_here(rows: &BTreeSet<String>) -> BTreeSet<String> {
    let listed = Command::new(std::env::current_exe().unwrap()).args(["--list", "--format", "terse"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let has_test = |id: &&String| {
        let (_, words) = id.split_once('-').unwrap();
        let beginning = words.replace('-', "_") + "_";
        listed.lines().any(|test| test.starts_with(&beginning))
    };
    rows.iter().filter(has_test).cloned().collect()
}

/// Every one of `rows` has a test in this program or in a session, or waits for something.
pub(crate) fn assert_none_forgotten(rows: &BTreeSet<String>) {
    let mut known = tested_here(rows);
    assert!(!known.is_empty(), "no test is named after a row");
    known.extend(in_sessions());
    known.extend(deferred());
    let forgotten: Vec<&String> = rows.difference(&known).collect();
    assert!(!rows.is_empty() && forgotten.is_empty(), "neither tested nor deferred: {forgotten:?}");
}
