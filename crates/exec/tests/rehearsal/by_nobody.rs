//! Root may do everything, and so would hide what others may not: all tests once more without its rights.

use crate::again;

fn holds_for_nobody(tests: &str) {
    again::all_as_nobody(&[tests, "--skip", "ten_thousand"]);
}

#[test]
fn committing_holds_for_nobody_too() {
    holds_for_nobody("committing::");
}

#[test]
fn crashes_hold_for_nobody_too() {
    holds_for_nobody("crashes::");
}

#[test]
fn the_law_holds_for_nobody_too() {
    holds_for_nobody("random::");
}

#[test]
fn mounts_hold_for_nobody_too() {
    holds_for_nobody("mounts::");
}

#[test]
fn showing_holds_for_nobody_too() {
    holds_for_nobody("showing::");
}

#[test]
fn refusals_hold_for_nobody_too() {
    holds_for_nobody("underneath::");
}
