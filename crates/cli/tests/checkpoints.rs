//! Checkpoints through the binary: every way in makes them, and every way back says what it did.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use common::pty::{chat, expect};
use common::{Hermes, hermes};
use serde_json::{Value, json};

fn write(hermes: &Hermes, path: &str, content: &str) {
    let arguments = json!({ "path": path, "content": content }).to_string();
    let ran = hermes.run(&["tools", "call", "write_file", &arguments]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
}

fn list(hermes: &Hermes) -> Vec<Value> {
    let ran = hermes.run(&["checkpoints", "list", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn a_call_is_listed_shown_taken_back_and_taken_back_again() {
    let hermes = hermes();
    hermes.home.write("a.txt", "one\n");
    hermes.home.write(".env", "KEY=very-secret\n");
    write(&hermes, "a.txt", "two\n");
    write(&hermes, "new/b.txt", "three\n");
    fs::write(hermes.home.work().join(".env"), "KEY=other-secret\n").unwrap();
    let all = list(&hermes);
    let reasons: Vec<&str> = all.iter().map(|one| one["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["write_file: a.txt", "write_file: new/b.txt"]);
    assert_eq!(all[0]["changes"], json!({ "added": 0, "changed": 1, "removed": 0 }));
    let first = all[0]["id"].as_str().unwrap();

    let shown = hermes.run(&["checkpoints", "diff", first]);
    assert!(shown.out.contains("M a.txt\n@@ -1 +1 @@\n-one\n+two\n"), "{}", shown.out);
    assert!(shown.out.contains("A new/b.txt\n@@ -0,0 +1 @@\n+three\n"), "{}", shown.out);
    assert!(
        shown.out.contains("M .env\nnot shown, it may hold secrets") && !shown.out.contains("-secret"),
        "{}",
        shown.out
    );
    assert_eq!(list(&hermes), all, "to look leaves no trace");

    let back = hermes.run(&["checkpoints", "restore", &first[..8]]);
    assert!(back.out.contains("as before     a.txt"), "{back:?}");
    assert!(back.out.contains("removed       new/b.txt"), "{back:?}");
    assert_eq!(fs::read_to_string(hermes.home.work().join("a.txt")).unwrap(), "one\n");
    assert_eq!(fs::read_to_string(hermes.home.work().join(".env")).unwrap(), "KEY=very-secret\n");
    assert!(!hermes.home.work().join("new").exists());

    let words: Vec<&str> = back.out.lines().last().unwrap().split(' ').collect();
    let again = hermes.run(&words[1..4]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(fs::read_to_string(hermes.home.work().join("new/b.txt")).unwrap(), "three\n");

    let pruned = hermes.run(&["checkpoints", "prune"]);
    assert!(pruned.out.starts_with("Given up: 0 checkpoints;"), "{pruned:?}");
}

#[test]
fn a_wrong_name_is_refused_and_nothing_is_nothing() {
    let hermes = hermes();
    let none = hermes.run(&["checkpoints", "list"]);
    assert!(none.out.starts_with("There is no checkpoint of "), "{none:?}");
    let unknown = hermes.run(&["checkpoints", "restore", "zzz"]);
    assert_eq!(
        (unknown.code, unknown.err.as_str()),
        (2, "hermes: there is no checkpoint \"zzz\" (hermes checkpoints list)\n")
    );
    let diff = hermes.run(&["checkpoints", "diff"]);
    assert_eq!(diff.code, 1, "{diff:?}");
}

#[test]
fn what_is_too_old_is_given_up_by_whoever_only_calls_tools() {
    let hermes = hermes();
    write(&hermes, "a.txt", "one\n");
    write(&hermes, "a.txt", "two\n");
    assert_eq!(list(&hermes).len(), 2);
    let mark = hermes.home.home().join("checkpoints/pruned");
    fs::remove_file(&mark).unwrap();
    hermes.configure("checkpoints: {max_snapshots: 1}\n");
    write(&hermes, "a.txt", "three\n");
    assert_eq!(list(&hermes).len(), 1);
    assert!(mark.exists());
}

#[test]
fn a_secret_that_is_known_is_neither_listed_nor_shown() {
    let hermes = hermes();
    hermes.configure("model: {probe_local: false, api_key: sk-this-is-the-secret-4711}\n");
    let command = json!({ "command": "echo sk-this-is-the-secret-4711 > key.txt" }).to_string();
    let ran = hermes.run(&["tools", "call", "terminal", &command, "--approve", "all"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let listed = hermes.run(&["checkpoints", "list"]).out;
    assert!(listed.contains("terminal: echo ") && !listed.contains("4711"), "{listed}");
    let shown = hermes.run(&["checkpoints", "diff"]).out;
    assert!(shown.contains("A key.txt") && !shown.contains("4711"), "{shown}");
}

fn run_command(hermes: &Hermes, command: &str) {
    let arguments = json!({ "command": command }).to_string();
    let ran = hermes.run(&["tools", "call", "terminal", &arguments, "--approve", "all"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn what_a_command_names_is_kept_wherever_it_is_and_what_only_reads_is_not_looked_at() {
    let hermes = hermes();
    hermes.home.write("a.txt", "one\n");
    hermes.home.write(".gitignore", "ignored/\n");
    hermes.home.write("ignored/b.txt", "one\n");
    let outside = hermes.home.user_home().join("outside.txt");
    fs::write(&outside, "one\n").unwrap();
    run_command(&hermes, "ls; cat a.txt | wc -l");
    assert!(!hermes.home.home().join("checkpoints").exists());

    run_command(&hermes, &format!("rm {}; rm -r ignored; echo two > a.txt", outside.display()));
    let back = hermes.run(&["checkpoints", "restore", list(&hermes)[0]["id"].as_str().unwrap()]);
    assert_eq!(back.code, 0, "{back:?}");
    for path in [outside, hermes.home.work().join("a.txt"), hermes.home.work().join("ignored/b.txt")] {
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n", "{}", path.display());
    }
}

#[test]
fn processes_that_begin_together_keep_a_checkpoint_each() {
    let hermes = hermes();
    write(&hermes, "a.txt", "one\n");
    std::thread::scope(|scope| {
        for n in 0..6 {
            let hermes = &hermes;
            scope.spawn(move || write(hermes, &format!("f{n}"), "x"));
        }
    });
    assert_eq!(list(&hermes).len(), 7);
}

#[test]
fn a_difference_shows_every_line_and_no_name_adds_one() {
    let hermes = hermes();
    hermes.home.write("a.sql", "-- drop users\nselect 1;\n");
    write(&hermes, "a.sql", "select 1;\n");
    write(&hermes, "q\n+spoofed\n", "x\n");
    let first = list(&hermes)[0]["id"].as_str().unwrap().to_owned();
    let shown = hermes.run(&["checkpoints", "diff", &first]).out;
    assert!(shown.contains("\n--- drop users\n"), "{shown}");
    assert!(!shown.lines().any(|line| line.starts_with("+spoofed")), "{shown}");
}

#[test]
fn a_link_is_put_back_itself_and_a_path_that_was_not_kept_is_said_to_be_that() {
    let hermes = hermes();
    let at = |path: &str| hermes.home.work().join(path);
    hermes.home.write("r1", "1\n");
    hermes.home.write("r2", "2\n");
    hermes.home.write("node_modules/x", "code\n");
    symlink("r1", at("current")).unwrap();
    run_command(&hermes, "ln -sfn r2 current");
    let id = list(&hermes)[0]["id"].as_str().unwrap().to_owned();
    let kept = hermes.run(&["checkpoints", "restore", &id, "node_modules"]);
    assert!(kept.code == 2 && kept.err.contains("was not kept then"), "{kept:?}");
    let nothing = hermes.run(&["checkpoints", "restore", &id, "nothing"]);
    assert!(nothing.code == 2 && nothing.err.contains("there was no "), "{nothing:?}");
    let back = hermes.run(&["checkpoints", "restore", &id, "current"]);
    assert_eq!(back.code, 0, "{back:?}");
    assert_eq!(fs::read_link(at("current")).unwrap(), Path::new("r1"));
}

#[test]
fn when_the_store_fails_after_files_were_put_back_that_is_what_is_said() {
    let hermes = hermes();
    hermes.home.write("a.txt", "one\n");
    write(&hermes, "a.txt", "two\n");
    let id = list(&hermes)[0]["id"].as_str().unwrap().to_owned();
    // A git that stores one snapshot and then has no space left.
    let real = String::from_utf8(Command::new("sh").args(["-c", "command -v git"]).output().unwrap().stdout).unwrap();
    let folder = hermes.home.user_home().join("bin");
    fs::create_dir(&folder).unwrap();
    let (git, mark) = (folder.join("git"), folder.join("stored"));
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *fast-import*)\n  if [ -e {mark} ]; then echo 'fatal: no space left' >&2; exit 1; fi\n  \
         touch {mark};;\nesac\nexec {} \"$@\"\n",
        real.trim(),
        mark = mark.display()
    );
    fs::write(&git, script).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let back = hermes.command(&["checkpoints", "restore", &id]).env("PATH", path).output().unwrap();
    let said = String::from_utf8(back.stdout).unwrap();
    assert!(said.contains("as before     a.txt") && said.contains("was not kept: git fast-import: no space"), "{said}");
    assert_eq!(back.status.code(), Some(3), "{said}");
    assert_eq!(fs::read_to_string(hermes.home.work().join("a.txt")).unwrap(), "one\n");
    let words: Vec<&str> = said.lines().last().unwrap().split(' ').collect();
    assert_eq!(hermes.run(&words[1..4]).code, 0, "{said}");
    assert_eq!(fs::read_to_string(hermes.home.work().join("a.txt")).unwrap(), "two\n");
}

#[test]
fn a_person_hears_that_there_will_be_no_undo_also_without_a_conversation() {
    let hermes = hermes();
    let make = json!({ "command": "true; touch made-here", "workdir": hermes.home.user_home() }).to_string();
    let ran = hermes.run(&["tools", "call", "terminal", &make, "--approve", "all"]);
    assert!(ran.err.contains("there will be no undo for this call") && ran.err.contains("no project"), "{ran:?}");
}

#[test]
fn they_can_be_switched_off() {
    let hermes = hermes();
    hermes.configure("checkpoints: {enabled: false}\n");
    write(&hermes, "a.txt", "one\n");
    assert!(!hermes.home.home().join("checkpoints").exists());
}

#[test]
fn a_conversation_shows_an_edit_takes_it_back_and_does_it_again() {
    let hermes = hermes();
    let path = hermes.home.write("a.txt", "one\ntwo\n");
    let mut session = chat(
        &hermes,
        &[
            r#"{"calls": [{"name": "patch", "arguments": {"path": "a.txt", "old_string": "two", "new_string": "2"}}]}"#,
            r#"{"text": "Changed."}"#,
            r#"{"text": "I know."}"#,
        ],
    );
    session.send_line("/undo").unwrap();
    expect(&mut session, "There is nothing to take back.");
    session.send_line("change it").unwrap();
    expect(&mut session, "-two");
    expect(&mut session, "+2");
    expect(&mut session, "Changed.");
    expect(&mut session, "› ");
    session.send_line("/undo").unwrap();
    expect(&mut session, "Taken back (patch: a.txt):");
    expect(&mut session, "a.txt");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    session.send_line("/redo").unwrap();
    expect(&mut session, "Done again (patch: a.txt):");
    expect(&mut session, "› ");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n2\n");
    session.send_line("ok?").unwrap();
    expect(&mut session, "I know.");
}
