//! Root may do everything, and so would hide what others may not: all tests once more without its rights.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

fn holds_for_nobody(tests: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // The test program may lie where nobody can reach it.
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args([tests, "--skip", "ten_thousand"])
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !said.contains("running 0 tests"), "{said}");
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
