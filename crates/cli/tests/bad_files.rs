//! Files that cannot be used as asked: one clear answer each, and everything stays as it was.
#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use common::{Hermes, hermes};
use serde_json::{Value, json};

fn call(hermes: &Hermes, tool: &str, arguments: &Value) -> (Value, i32) {
    let ran = hermes.run(&["tools", "call", tool, &arguments.to_string(), "--approve", "all"]);
    assert_eq!(ran.err, "");
    (ran.json(), ran.code)
}

/// Every name below the working folder with its bytes; a pipe or socket counts by name.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        let bytes = if kind.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
        all.push((entry.file_name().into_string().unwrap(), bytes));
        if kind.is_dir() {
            all.extend(contents(&entry.path()));
        }
    }
    all.sort();
    all
}

#[test]
fn what_is_no_regular_text_file_is_refused_and_untouched() {
    let hermes = hermes();
    let work = hermes.home.work();
    std::fs::create_dir(work.join("folder")).unwrap();
    nix::unistd::mkfifo(&work.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(work.join("socket")).unwrap();
    hermes.home.write("binary", b"\x7fELF\0\0");
    symlink("loop", work.join("loop")).unwrap();
    let before = contents(&work);
    for (name, reading, changing) in [
        ("folder", "is an empty directory", "is a directory, not a regular file"),
        ("pipe", "is a named pipe, not a regular file", "is a named pipe, not a regular file"),
        ("socket", "is a socket, not a regular file", "is a socket, not a regular file"),
        ("/dev/zero", "is a device, not a regular file", "is a device, not a regular file"),
        ("/dev/null", "is a device, not a regular file", "is a device, not a regular file"),
        ("binary", "is binary", "is binary"),
        ("loop", "too many levels of symbolic links", "too many levels of symbolic links"),
        ("folder/missing/../..", "is a directory with", "is a directory"),
    ] {
        let (read, code) = call(&hermes, "read_file", &json!({"path": name}));
        assert!(code == 1 && read["error"].as_str().unwrap().contains(reading), "{name}: {read}");
        let edit = json!({"path": name, "old_string": "a", "new_string": "b"});
        let (patched, code) = call(&hermes, "patch", &edit);
        assert!(code == 1 && patched["error"].as_str().unwrap().contains(changing), "{name}: {patched}");
        if name != "binary" {
            let (written, code) = call(&hermes, "write_file", &json!({"path": name, "content": "x"}));
            assert!(code == 1 && written["error"].as_str().unwrap().contains(changing), "{name}: {written}");
        }
    }
    assert_eq!(contents(&work), before);
}

#[test]
fn text_in_another_encoding_is_edited_in_it() {
    let hermes = hermes();
    for (name, before, after) in
        [("utf16", &b"\xff\xfea\0\n\0"[..], &b"\xff\xfe\xe9\0\n\0"[..]), ("latin", b"caf\xe9 a\n", b"caf\xe9 \xe9\n")]
    {
        hermes.home.write(name, before);
        let edit = json!({"path": name, "edits": [{"old_string": "a\n", "new_string": "é\n"}]});
        let (patched, code) = call(&hermes, "patch", &edit);
        assert!(code == 0 && patched["success"] == true, "{name}: {patched}");
        assert_eq!(std::fs::read(hermes.home.work().join(name)).unwrap(), after, "{name}");
    }
}

#[test]
fn a_file_without_a_final_line_end_is_read_whole_and_edited_without_one() {
    let hermes = hermes();
    hermes.home.write("f", "one\ntwo");
    assert_eq!(call(&hermes, "read_file", &json!({"path": "f"})).0["total_lines"], 2);
    call(&hermes, "patch", &json!({"path": "f", "old_string": "two", "new_string": "2"}));
    assert_eq!(hermes.home.read("f"), "one\n2");
}

#[test]
fn a_parent_that_is_a_file_and_a_name_that_is_too_long_are_said() {
    let hermes = hermes();
    hermes.home.write("f", "x");
    let (got, _) = call(&hermes, "write_file", &json!({"path": "f/below", "content": "x"}));
    assert!(got["error"].as_str().unwrap().contains("not a directory"), "{got}");
    let (got, _) = call(&hermes, "write_file", &json!({"path": "n".repeat(300), "content": "x"}));
    assert!(got["error"].as_str().unwrap().contains("file name too long"), "{got}");
    let (got, _) = call(&hermes, "search_files", &json!({"pattern": "x", "path": "nowhere"}));
    assert!(got["error"].as_str().unwrap().contains("no such file"), "{got}");
    assert_eq!(contents(&hermes.home.work()).len(), 1);
}

/// Root may do everything, so these run as somebody who may not: `setpriv` (util-linux) drops the rights.
#[test]
fn what_may_not_be_read_or_written_is_said_and_stays() {
    let can_drop_rights = std::process::Command::new("setpriv").arg("--version").output().is_ok();
    if nix::unistd::geteuid().is_root() && !can_drop_rights {
        eprintln!("skipped: root may do everything, and setpriv (util-linux) is not there to become somebody else");
        return;
    }
    let hermes = hermes();
    let work = hermes.home.work();
    hermes.home.write("secret", "x\n");
    hermes.home.write("fixed", "x\n");
    let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(&work.join("secret"), 0o000);
    mode(&work.join("fixed"), 0o444);
    for folder in
        work.ancestors().filter(|folder| folder.starts_with(std::env::temp_dir()) && *folder != std::env::temp_dir())
    {
        mode(folder, 0o777);
    }
    let denied = |tool: &str, arguments: Value| {
        let binary = binary_for_everybody(&hermes);
        let mut command = if nix::unistd::geteuid().is_root() {
            let mut command = assert_cmd::Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
            command
        } else {
            assert_cmd::Command::new(&binary)
        };
        let output = command
            .args(["tools", "call", tool, &arguments.to_string(), "--approve", "all"])
            .current_dir(&work)
            .env("HERMES_HOME", hermes.home.home())
            .output()
            .unwrap();
        let got: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert!(got["error"].as_str().is_some_and(|error| error.contains("permission denied")), "{tool}: {got}");
        assert_eq!(output.status.code(), Some(1));
    };
    denied("read_file", json!({"path": "secret"}));
    denied("write_file", json!({"path": "fixed", "content": "y"}));
    denied("patch", json!({"path": "fixed", "old_string": "x", "new_string": "y"}));
    denied("write_file", json!({"path": "/usr/not-ours", "content": "y"}));
    assert_eq!(hermes.home.read("fixed"), "x\n");
}

/// The build folder may lie where only root can look; a copy in the test's own folder can be run by anybody.
fn binary_for_everybody(hermes: &Hermes) -> std::path::PathBuf {
    let copy = hermes.home.user_home().join("hermes-copy");
    if !copy.exists() {
        std::fs::copy(assert_cmd::cargo::cargo_bin("hermes"), &copy).unwrap();
    }
    copy
}
