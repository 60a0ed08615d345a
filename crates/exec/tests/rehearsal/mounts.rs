//! File systems within the workspace.
//!
//! To mount one, the test runs itself again in a namespace of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use hermes_exec::rehearsal::Stage;

use crate::place::{Here, METHODS, paths, run};

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

#[test]
fn a_file_system_within_the_workspace_is_no_part_of_it() {
    let here = Here::new();
    here.directly("mkdir mounted again; echo > gone");
    fs::write(here.outside().join("dear"), "dear").unwrap();
    let folder = here.workspace().parent().unwrap().to_path_buf();
    let script = "cd \"$1\" && mount -t tmpfs tmpfs workspace/mounted && echo > workspace/mounted/precious &&
        mount --bind outside workspace/again && exec \"$2\" --exact mounts::the_one_that_sees_the_mounts";
    let output = Command::new("unshare")
        .args(["-Urm", "bash", "-c", script, "bash"])
        .arg(&folder)
        .arg(std::env::current_exe().unwrap())
        .env(ROLE, &folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(here.path("new0").exists() && here.path("new1").exists());
}
