//! Every case of `cases/file-tools.jsonl` and of our own siblings of them, through real dispatch in a folder of its own.
//!
//! A case that cannot hold before its feature is built stands in `cases/file-tools.not-yet` with the reason. A case
//! that fails off that list fails the test, and so does one that holds on it: the list can only shrink.
//!
//! `case` is the format, `folder` makes the files, `session` makes the calls, `judge` compares.
#![allow(clippy::unwrap_used)]

#[path = "file_cases/case.rs"]
mod case;
#[path = "file_cases/folder.rs"]
mod folder;
#[path = "file_cases/judge.rs"]
mod judge;
#[path = "file_cases/session.rs"]
mod session;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;

use case::Case;

const CASES: &str = include_str!("../../../cases/file-tools.jsonl");
const OWN: &str = include_str!("../../../cases/file-tools-own.jsonl");
const NOT_YET: &str = include_str!("../../../cases/file-tools.not-yet");

#[test]
fn every_case_holds_unless_it_is_listed_as_not_yet() {
    // The cases state modes as they are under this mask, whoever runs them.
    umask(Mode::from_bits_truncate(0o022));
    let cases: Vec<&str> = CASES.lines().chain(OWN.lines()).filter(|line| !line.starts_with(r#"{"_meta""#)).collect();
    let mut not_yet = not_yet();
    let mut held = 0;
    let mut trouble = Vec::new();
    for (case, differences) in judge_all(&cases) {
        let title = format!("{}: {}", case.id, case.correct.summary);
        match (differences.is_empty(), not_yet.remove(case.id.as_str())) {
            (true, None) => held += 1,
            (false, Some(_)) => {}
            (true, Some(reason)) => {
                trouble.push(format!("{title}\n    holds now; take it off the list (`{reason}`)"));
            }
            (false, None) => trouble.push(format!("{title}\n    {}", differences.join("\n    "))),
        }
    }
    trouble.extend(not_yet.keys().map(|id| format!("{id}: is on the list, but there is no such case")));
    println!("{held} of {} cases hold", cases.len());
    assert!(trouble.is_empty(), "{held} of {} cases hold\n\n{}\n", cases.len(), trouble.join("\n"));
}

/// The listed cases and why they cannot hold yet. A reason that begins with `as root` is one for root alone.
fn not_yet() -> BTreeMap<&'static str, &'static str> {
    let mut list = BTreeMap::new();
    for line in NOT_YET.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (id, reason) = line.split_once("  ").unwrap_or_else(|| panic!("`{line}` has no reason"));
        if geteuid().is_root() || !reason.starts_with("as root") {
            assert!(list.insert(id, reason).is_none(), "{id} is listed twice");
        }
    }
    list
}

/// What is different in each case, in the order of the cases.
fn judge_all(cases: &[&str]) -> Vec<(Case, Vec<String>)> {
    let next = AtomicUsize::new(0);
    let judged = Mutex::new(BTreeMap::new());
    let worker = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(line) = cases.get(index) else { break };
            let case = Case::parse(line);
            let differences = runtime.block_on(session::differences(&case));
            judged.lock().unwrap().insert(index, (case, differences));
        }
        // A call that ran out of time may hang in a thread of this runtime, which must not hang the test.
        runtime.shutdown_background();
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(worker);
        }
    });
    judged.into_inner().unwrap().into_values().collect()
}
