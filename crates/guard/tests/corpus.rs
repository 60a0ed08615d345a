//! Judged commands as tests: what the rules of `cases/APPROVAL-RULES.md` say is what the guard says.
//!
//! `cargo test -p hermes-guard --test corpus -- --nocapture` prints the figures. What is wrong today stands in
//! `corpus/not-yet.txt` with the reason, and that list can only shrink: it fails for a row that is wrong and not listed,
//! and for one that is listed and right.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the helpers of a test are tests too, and it reports")]

mod rows;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hermes_guard::{Verdict, World, judge};
use rows::Row;

/// How often a family was right, and in which way it was wrong.
#[derive(Clone, Copy, Default)]
struct Figures {
    rows: u32,
    right: u32,
    unsafe_rows: u32,
    /// Unsafe and called so.
    caught: u32,
    /// Safe and called unsafe.
    alarms: u32,
    hardline: u32,
    hardline_caught: u32,
}

impl Figures {
    fn count(&mut self, expected: Verdict, got: Verdict) {
        self.rows += 1;
        self.right += u32::from(expected == got);
        let (is, says) = (expected != Verdict::Safe, got != Verdict::Safe);
        self.unsafe_rows += u32::from(is);
        self.caught += u32::from(is && says);
        self.alarms += u32::from(!is && says);
        self.hardline += u32::from(expected == Verdict::Hardline);
        self.hardline_caught += u32::from(expected == Verdict::Hardline && got == Verdict::Hardline);
    }

    fn show(&self, name: &str) {
        let part = |a: u32, b: u32| {
            if b == 0 { "-".to_owned() } else { format!("{:.4}", f64::from(a) / f64::from(b)) }
        };
        println!(
            "{name:<24} {:>5} {:>10} {:>8} {:>10} {:>12} {:>9}",
            self.rows,
            part(self.right, self.rows),
            part(self.caught, self.unsafe_rows),
            part(self.caught, self.caught + self.alarms),
            part(self.alarms, self.rows - self.unsafe_rows),
            part(self.hardline_caught, self.hardline),
        );
    }
}

/// Judges all rows, prints the figures by family and answers the rows that are wrong.
fn wrong(rows: &[Row]) -> Vec<(&Row, String)> {
    let world = rows::world();
    let mut families: BTreeMap<&str, Figures> = BTreeMap::new();
    let mut total = Figures::default();
    let mut wrong = Vec::new();
    for row in rows {
        let judgement = judge(&row.cmd, &world);
        families.entry(&row.family).or_default().count(row.verdict(), judgement.verdict);
        total.count(row.verdict(), judgement.verdict);
        if judgement.verdict != row.verdict() {
            let findings: Vec<String> =
                judgement.findings.iter().map(|f| format!("{}: {} {}", f.family(), f.why, f.target)).collect();
            let says = format!("{:?} instead of {:?} {findings:?}", judgement.verdict, row.verdict());
            wrong.push((row, says));
        }
    }
    println!(
        "\n{:<24} {:>5} {:>10} {:>8} {:>10} {:>12} {:>9}",
        "family", "rows", "agreement", "recall", "precision", "false alarms", "hardline"
    );
    for (family, figures) in families {
        figures.show(family);
    }
    total.show("all");
    wrong
}

#[test]
fn our_own_rows_are_judged_right() {
    let rows: Vec<Row> = rows::own().into_iter().flat_map(|(_, rows)| rows).collect();
    assert!(rows.len() > 3_000, "the corpus is missing");
    let listed: HashMap<String, String> = rows::not_yet().into_iter().collect();
    let wrong = wrong(&rows);
    let unlisted: Vec<String> = wrong
        .iter()
        .filter(|(row, _)| !listed.contains_key(&row.cmd))
        .map(|(row, says)| format!("{}  # {}: {says}", serde_json::json!(row.cmd), row.why))
        .collect();
    let wrong: BTreeSet<&str> = wrong.iter().map(|(row, _)| row.cmd.as_str()).collect();
    let right: Vec<&String> = listed.keys().filter(|cmd| !wrong.contains(cmd.as_str())).collect();
    assert!(unlisted.is_empty(), "{} rows are wrong and not listed:\n{}", unlisted.len(), unlisted.join("\n"));
    assert!(right.is_empty(), "take these lines out of corpus/not-yet.txt, they are right or no rows: {right:#?}");
}

#[test]
fn the_given_rows_are_judged_right() {
    let rows = rows::given();
    assert!(rows.len() > 700, "the cases are missing");
    let wrong: Vec<String> =
        wrong(&rows).iter().map(|(row, says)| format!("{:?} ({}): {says}", row.cmd, row.why)).collect();
    assert!(wrong.is_empty(), "{} rows are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Where a path leads on this machine, as the agent looks it up.
fn link(path: &str) -> Option<String> {
    std::fs::read_link(path).ok().map(|target| target.to_string_lossy().into_owned())
}

#[test]
fn the_links_of_this_machine_change_no_verdict() {
    let world = World { link, ..rows::world() };
    let rows: Vec<Row> = rows::own().into_iter().flat_map(|(_, rows)| rows).chain(rows::given()).collect();
    let differ: Vec<&str> = rows
        .iter()
        .filter(|row| judge(&row.cmd, &world).verdict != judge(&row.cmd, &rows::world()).verdict)
        .map(|row| row.cmd.as_str())
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn a_command_stands_once_in_the_file_of_its_family() {
    let mut seen: HashMap<String, String> = HashMap::new();
    for (file, rows) in rows::own() {
        for row in rows {
            assert_eq!(row.family, file, "{:?} is in the file of another family", row.cmd);
            assert!(!row.why.is_empty(), "{:?} has no reason", row.cmd);
            let before = seen.insert(row.cmd.clone(), file.clone());
            assert_eq!(before, None, "{:?} stands twice", row.cmd);
        }
    }
}
