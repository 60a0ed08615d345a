//! Running one test of this program once more, in a process of its own: as another user, or to have its descriptors,
//! threads and children to itself, or to be killed.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

/// Set in a process that runs one test again.
const AGAIN: &str = "HERMES_TEST_AGAIN";

/// Whether this is a process that runs one test again.
pub(crate) fn is_again() -> bool {
    std::env::var_os(AGAIN).is_some()
}

/// This program with one of its tests only, which finds that it runs [again](is_again).
pub(crate) fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(AGAIN, "1");
    command
}

/// Runs the body in a process of its own, which must succeed.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    if is_again() {
        return body();
    }
    must_succeed(&command(test).output().unwrap());
}

/// Runs a test once more as nobody, where that is possible: root may do everything and so would hide what others may not.
pub(crate) fn as_nobody(test: &str) {
    all_as_nobody(&["--exact", test]);
}

/// Runs the tests that the arguments of a test program choose once more as nobody, where that is possible.
pub(crate) fn all_as_nobody(chosen: &[&str]) {
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
        .args(chosen)
        .arg("--nocapture")
        .env(AGAIN, "1")
        .env("TMPDIR", folder.path())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir(folder.path())
        .output()
        .unwrap();
    must_succeed(&output);
}

fn must_succeed(output: &Output) {
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !said.contains(" 0 passed"), "{}\n{said}\n{complained}", output.status);
}
