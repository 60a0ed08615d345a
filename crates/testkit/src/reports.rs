//! The rows of `cases/reports.jsonl`, and where each of them is tested.
//!
//! A test is named after its row: `concurrency_02_…` is about `09-concurrency-02`. The names are those that the test
//! program itself lists, so a test that was removed or renamed is missed.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

const ROWS: &str = include_str!("../../../cases/reports.jsonl");
const SESSIONS: &str = include_str!("../../../cases/reports.sessions");
const PLACES: &str = include_str!("../../../cases/reports.places");
const DEFERRED: &str = include_str!("../../../cases/DEFERRED.md");

/// The ids of all rows that `wanted` wants.
///
/// Panics if a row is no JSON object with an `id`.
#[track_caller]
pub fn rows(wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let id = |row: &str| {
        let row: Value = serde_json::from_str(row).expect("a row is JSON");
        row["id"].as_str().expect("a row has an id").to_owned()
    };
    ROWS.lines().map(id).filter(|id| wanted(id)).collect()
}

/// The rows whose test is a whole session, `crates/agent/tests/reported_sessions.rs`.
pub fn in_sessions() -> BTreeSet<String> {
    SESSIONS.lines().map(str::to_owned).collect()
}

/// The rows whose test is in `file`, as `cases/reports.places` says. The file itself checks that it has them.
pub fn placed_in(file: &str) -> BTreeSet<String> {
    places().filter(|(_, place)| *place == file).map(|(id, _)| id.to_owned()).collect()
}

/// Each line of `cases/reports.places`: a row and the file of its test.
fn places() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLACES.lines().filter_map(|line| line.split_once("  "))
}

/// The rows that wait for something as a whole. Those that wait in part have a test for the other part.
pub fn deferred() -> BTreeSet<String> {
    let waits = |line: &str| {
        let (id, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        (!rest.starts_with("in part: ")).then(|| id.to_owned())
    };
    DEFERRED.lines().filter_map(waits).collect()
}

/// Those of `rows` after which a test of the running test program is named.
#[track_caller]
pub fn tested_here(rows: &BTreeSet<String>) -> BTreeSet<String> {
    let program = std::env::current_exe().expect("the path of this program");
    let listed = Command::new(program).args(["--list", "--format", "terse"]).output().expect("a list of its tests");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let has_test = |id: &&String| {
        let words = id.split_once('-').map_or(id.as_str(), |(_, words)| words);
        let beginning = words.replace('-', "_") + "_";
        listed.lines().any(|test| test.starts_with(&beginning))
    };
    rows.iter().filter(has_test).cloned().collect()
}

/// Those of `rows` that neither have a test in this program, in a session or in another place that is written down, nor
/// wait for something.
#[track_caller]
pub fn forgotten(rows: &BTreeSet<String>) -> Vec<String> {
    let mut known = tested_here(rows);
    known.extend(in_sessions());
    known.extend(places().map(|(id, _)| id.to_owned()));
    known.extend(deferred());
    rows.difference(&known).cloned().collect()
}
