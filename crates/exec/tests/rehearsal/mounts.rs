//! File systems within the workspace.
//!
//! To mount one, the test runs itself again in a namespace of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use hermes_exec::rehearsal::Stage;

use crate::place::{Here, METHODS, Tree, paths, run};

pub(crate) const ROLE: &str = "HERMES_TEST_MOUNTS";

/// The child, in whose namespace `mounted` and `again` are mounts of another and of the same file system.
#[test]
fn the_one_that_sees_the_mounts() {
    let Some(folder) = std::env::var_os(ROLE) else { return };
    let path = |name: &str| Path::new(&folder).join(name);
    for (number, method) in METHODS.into_iter().enumerate() {
        let stage = Stage::open(&path("workspace"), &path("stages"), method).unwrap();
        let script =
            format!("ls mounted/* again/* 2>/dev/null && exit 9; echo > new{number}; rm -f gone; echo > mounted/lost");
        run(&stage.mount(), script.as_bytes());
        let changes = stage.changes().unwrap();
        assert!(paths(&changes).contains(&format!("Added new{number}")) && changes.entries.len() <= 3, "{changes}");
        // What the command wrote where something is mounted cannot go there, and so nothing goes anywhere.
        let error = stage.commit(&path("undo")).unwrap_err();
        assert!(error.to_string().contains("put back"), "{error}");
        drop(stage);

        let stage = Stage::open(&path("workspace"), &path("stages"), method).unwrap();
        run(&stage.mount(), format!("echo > new{number}; rm -f gone").as_bytes());
        let _undo = stage.commit(&path("undo")).unwrap().undo;
        assert!(path("workspace").join(format!("new{number}")).exists() && !path("workspace/gone").exists());
        assert!(path("workspace/mounted/precious").exists() && path("workspace/again/dear").exists());
        assert!(!path("workspace/mounted/lost").exists());
    }
}

/// The child, whose workspace is a file system that is too small.
#[test]
fn the_one_that_runs_out_of_space() {
    let Some(folder) = std::env::var_os(ROLE) else { return };
    let path = |name: &str| Path::new(&folder).join(name);
    let before = Tree::of(&path("workspace"));
    for method in METHODS {
        let stage = Stage::open(&path("workspace"), &path("stages"), method).unwrap();
        run(&stage.mount(), b"rm gone; echo > kept; echo > small; head -c 1000000 /dev/zero | tr '\\0' x > too_large");
        let error = stage.commit(&path("undo")).unwrap_err().to_string();
        assert!(error.starts_with("rehearsal: not committed, everything was put back: cannot copy "), "{error}");
        assert!(error.ends_with("too_large: no space left on device"), "{error}");
        assert_eq!(Tree::of(&path("workspace")).looks_and_times(), before.looks_and_times());
    }
}

/// Runs one of the children above where a script has mounted something.
fn in_namespace(here: &Here, script: &str, child: &str) {
    let folder = here.workspace().parent().unwrap().to_path_buf();
    let script = format!("cd \"$1\" && {script} && exec \"$2\" --exact mounts::{child}");
    let output = Command::new("unshare")
        .args(["-Urm", "bash", "-c", &script, "bash"])
        .arg(&folder)
        .arg(std::env::current_exe().unwrap())
        .env(ROLE, &folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(here.left_over().iter().all(|path| path.starts_with(here.undo())));
}

#[test]
fn a_file_system_within_the_workspace_is_no_part_of_it() {
    let here = Here::new();
    here.directly("mkdir mounted again; echo > gone");
    fs::write(here.outside().join("dear"), "dear").unwrap();
    let script = "mount -t tmpfs tmpfs workspace/mounted && echo > workspace/mounted/precious &&
        mount --bind outside workspace/again";
    in_namespace(&here, script, "the_one_that_sees_the_mounts");
    assert!(here.path("new0").exists() && here.path("new1").exists());
}

#[test]
fn a_full_disk_puts_everything_back() {
    let script = "mount -t tmpfs -o size=200k tmpfs workspace && echo 1 > workspace/gone && echo 2 > workspace/kept";
    in_namespace(&Here::new(), script, "the_one_that_runs_out_of_space");
}
