//! Commands through the binary: where they run, what becomes of those that take long, rehearsals and the sandbox.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::pty::{chat, expect};
use common::{Ran, hermes};
use hermes_testkit::reports;
use serde_json::{Value, json};

#[test]
fn the_rows_that_belong_here_are_here() {
    let rows = reports::placed_in("crates/cli/tests/commands_here.rs");
    assert!(!rows.is_empty());
    assert_eq!(reports::tested_here(&rows), rows);
}

#[test]
fn terminal_15_the_configured_folder_is_that_of_every_tool() {
    let hermes = hermes();
    hermes.configure("terminal: {cwd: ws}\n");
    hermes.home.write("ws/rel.txt", "found\n");
    let pwd = hermes.run(&["tools", "call", "terminal", r#"{"command": "pwd"}"#]);
    assert!(pwd.out.contains("/ws\\n"), "{pwd:?}");
    let read = hermes.run(&["tools", "call", "read_file", r#"{"path": "rel.txt"}"#]);
    assert!(read.out.contains("found"), "{read:?}");
}

#[test]
fn a_command_that_takes_too_long_goes_on_in_the_background_or_is_killed_as_configured() {
    let hermes = hermes();
    let call = r#"{"command": "echo begun; sleep 300", "timeout": 1}"#;
    let kept: Value = serde_json::from_str(&hermes.run(&["tools", "call", "terminal", call]).out).unwrap();
    assert_eq!(
        (&kept["status"], &kept["exit_code"], &kept["output"]),
        (&json!("running"), &json!(null), &json!("begun\n"))
    );
    hermes.configure("terminal: {at_limit: kill}\n");
    let killed: Value = serde_json::from_str(&hermes.run(&["tools", "call", "terminal", call]).out).unwrap();
    assert_eq!(killed["exit_code"], 124, "{killed}");
}

#[test]
fn a_shell_file_of_the_user_is_read_and_a_broken_one_is_said() {
    let hermes = hermes();
    let good = hermes.home.write("rc", "greet() { echo \"hello $1\"; }\n").display().to_string();
    hermes.configure(&format!("terminal: {{shell_init_files: ['{good}', /nowhere/rc]}}\n"));
    let ran = hermes.run(&["tools", "call", "terminal", r#"{"command": "greet you"}"#]);
    assert!(ran.out.contains("hello you"), "{ran:?}");
    assert!(ran.err.contains("/nowhere/rc was not read into the shell"), "{ran:?}");
}

#[test]
fn each_task_says_where_it_runs() {
    let hermes = hermes();
    hermes.home.write("sub/file", "");
    let call = |task: &str, command: &str, more: Value| {
        let mut line = json!({ "id": task, "task": task, "tool": "terminal", "args": { "command": command } });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let outside = hermes.home.user_home().join("outside");
    let write = format!("echo x > {}", outside.display());
    let lines = [
        call("a", "pwd; x=1; export x", json!({ "cwd": "sub" })),
        call("b", "pwd; echo ${x-unset}", json!({})),
        call("a", "echo $x", json!({ "cwd": "sub" })),
        call("a", "echo $x", json!({})),
        call("c", "pwd", json!({ "backend": "docker" })),
        call("d", "pwd", json!({ "backend": "docer" })),
        call("e", "pwd", json!({ "cwd": "nowhere" })),
        call("f", &write, json!({ "sandbox": "off" })),
        call("g", "true", json!({ "sandbox": "weird" })),
    ];
    let mut command = hermes.command(&["tools", "exec", "--approve", "all"]);
    let ran = Ran::from(command.write_stdin(lines.join("\n")).output().unwrap());
    let results: Vec<String> = ran.lines().iter().map(|line| line["result"].as_str().unwrap().to_owned()).collect();
    for (at, part) in [
        (0, "work/sub"),
        (1, "/work\\nunset"),
        (2, "said with its first call"),
        (3, "\"1\\n\""),
        (4, "docker is not in this build"),
        (5, "did you mean"),
        (6, "nowhere"),
    ] {
        assert!(results[at].contains(part), "{at} {part}: {results:?}");
    }
    assert!(outside.exists());
    if !hermes.run(&["sandbox", "check"]).out.contains("✓") {
        eprintln!("skipped: no sandbox here");
        return;
    }
    fs::remove_file(&outside).unwrap();
    let weaker = call("x", &write, json!({ "sandbox": "off" })) + "\n" + &call("y", &write, json!({}));
    let mut command = hermes.command(&["tools", "exec", "--approve", "all", "--sandbox", "workspace"]);
    let ran = Ran::from(command.write_stdin(weaker).output().unwrap());
    assert!(ran.out.contains("and not weaker") && !outside.exists(), "{ran:?}");
    let arguments = json!({ "command": write }).to_string();
    let ran = hermes.run(&["tools", "call", "terminal", &arguments, "--approve", "all", "--sandbox", "workspace"]);
    assert!(!outside.exists(), "{ran:?}");
}

#[test]
fn a_backend_that_is_not_here_is_never_replaced_by_another_one() {
    let hermes = hermes();
    let mut command = hermes.command(&["tools", "call", "terminal", r#"{"command": "true"}"#]);
    let ran = Ran::from(command.env("TERMINAL_ENV", "docker").output().unwrap());
    assert!(ran.code != 0 && ran.out.is_empty() && ran.err.contains("TERMINAL_ENV"), "{ran:?}");
    hermes.configure("terminal: {backend: local}\n");
    let mut command = hermes.command(&["tools", "call", "terminal", r#"{"command": "true"}"#]);
    assert_eq!(Ran::from(command.env("TERMINAL_ENV", "docker").output().unwrap()).code, 0);
}

#[test]
fn secrets_come_by_reference_and_are_hidden_from_the_model() {
    let hermes = hermes();
    let kept = hermes.home.write("kept", "from-the-file-8f3a\n").display().to_string();
    hermes.configure(&format!(
        "terminal:\n  secrets: ['A=file:{kept}', 'B=env:PATH', 'C=command:echo from-a-program-77c1', 'D=file:/nowhere', \
         'E=env:NOWHERE', 'F=command:exit 3']\n"
    ));
    let script = r#"{"command": "printf '%s\n' \"$A\" \"$C\" \"${D-none}${E-none}${F-none}\" | tee seen"}"#;
    let ran = hermes.run(&["tools", "call", "terminal", "--approve", "all", script]);
    assert_eq!(hermes.home.read("seen"), "from-the-file-8f3a\nfrom-a-program-77c1\nnonenonenone\n", "{ran:?}");
    assert!(ran.out.contains("[redacted: A]\\n[redacted: C]\\nnonenonenone"), "{ran:?}");
    for name in ["D: /nowhere", "E: NOWHERE is not set", "F: exit 3: exit status: 3"] {
        assert!(ran.err.contains(&format!("commands get no {name}")), "{name}: {ran:?}");
    }
    // A program of theirs does not read what is meant for us.
    hermes.configure("terminal: {secrets: ['X=command:head -n1; echo nothing-was-read-9d2e']}\n");
    let line = |id: u32| json!({ "id": id, "tool": "terminal", "args": { "command": "echo $X" } }).to_string() + "\n";
    let mut command = hermes.command(&["tools", "exec", "--approve", "all"]);
    let ran = Ran::from(command.write_stdin(line(1) + &line(2)).output().unwrap());
    assert_eq!((ran.lines().len(), ran.out.matches("[redacted: X]").count()), (2, 2), "{ran:?}");
    // What cannot be hidden is not given.
    hermes.configure("terminal: {secrets: ['X=command:echo abc']}\n");
    let ran = hermes.run(&["tools", "call", "terminal", r#"{"command": "echo [$X]"}"#]);
    assert!(ran.out.contains("[]") && ran.err.contains("could not be hidden"), "{ran:?}");
    hermes.configure("terminal: {secrets: ['A=ghp_0123456789']}\n");
    let ran = hermes.run(&["tools", "call", "terminal", r#"{"command": "true"}"#]);
    ran.is_refused(2, &["NAME=file:PATH"]);
}

#[test]
fn a_rehearsal_is_offered_shown_committed_and_taken_back() {
    let hermes = hermes();
    if !hermes.run(&["sandbox", "check"]).out.contains("namespaces") {
        eprintln!("skipped: no sandbox here");
        return;
    }
    hermes.home.write("build/old.o", "object");
    let call = r#"{"calls": [{"name": "terminal", "arguments": {"command": "rm -rf build; echo new > new.txt"}}]}"#;
    let mut session = chat(&hermes, &[call, r#"{"text": "Done."}"#]);
    session.send_line("clean up").unwrap();
    expect(&mut session, "[r]ehearse first");
    session.send_line("r").unwrap();
    expect(&mut session, "new.txt");
    expect(&mut session, "[t]hrow away › ");
    assert!(hermes.home.work().join("build/old.o").exists() && !hermes.home.work().join("new.txt").exists());
    session.send_line("v").unwrap();
    expect(&mut session, "+new");
    session.send_line("c").unwrap();
    expect(&mut session, "hermes rehearsals undo");
    expect(&mut session, "Done.");
    assert!(!hermes.home.work().join("build").exists() && hermes.home.work().join("new.txt").exists());
    let listed = hermes.run(&["rehearsals", "list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let ran = hermes.run(&["rehearsals", "undo"]);
    assert!(ran.code == 0 && ran.out.starts_with("Taken back: rm -rf build"), "{ran:?}");
    assert_eq!(fs::read_to_string(hermes.home.work().join("build/old.o")).unwrap(), "object");
    assert!(!hermes.home.work().join("new.txt").exists());
    hermes.run(&["rehearsals", "undo"]).is_refused(1, &["no rehearsal was committed"]);
}

#[test]
fn what_cannot_be_rehearsed_is_asked_about_with_the_reason() {
    let hermes = hermes();
    if !hermes.run(&["sandbox", "check"]).out.contains("namespaces") {
        eprintln!("skipped: no sandbox here");
        return;
    }
    // No folder for stand-ins can be made where a file is.
    hermes.configure("model: {probe_local: false}\napprovals: {mode: rehearse}\n");
    fs::write(hermes.home.home().join("rehearsals"), "").unwrap();
    hermes.home.write("build/old.o", "object");
    let call = r#"{"calls": [{"name": "terminal", "arguments": {"command": "rm -rf build"}}]}"#;
    let mut session = chat(&hermes, &[call, r#"{"text": "Done."}"#]);
    session.send_line("clean up").unwrap();
    expect(&mut session, "could not be rehearsed first: cannot make");
    expect(&mut session, "[d]eny › ");
    assert!(hermes.home.work().join("build/old.o").exists());
    session.send_line("o").unwrap();
    expect(&mut session, "Done.");
    assert!(!hermes.home.work().join("build").exists());
}

#[test]
fn in_the_sandbox_a_refusal_is_said_with_the_way_on() {
    let hermes = hermes();
    hermes.configure("terminal: {sandbox: workspace}\n");
    // Not below /tmp, which is the command's own.
    let place =
        tempfile::tempdir_in("/var/lib").or_else(|_| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let outside = place.path().join("outside");
    let call = json!({ "command": format!("echo x > {}", outside.display()) }).to_string();
    let ran = hermes.run(&["tools", "call", "terminal", &call, "--approve", "all"]);
    if ran.err.contains("no sandbox works") {
        eprintln!("skipped: no sandbox here");
        return;
    }
    assert!(!outside.exists() && ran.out.contains("without_sandbox"), "{ran:?}");
    let call = json!({ "command": format!("echo x > {}", outside.display()), "without_sandbox": true }).to_string();
    hermes.run(&["tools", "call", "terminal", &call]);
    assert!(!outside.exists(), "nobody was there to say yes");
    hermes.run(&["tools", "call", "terminal", &call, "--approve", "all"]);
    assert!(!outside.exists(), "also where everything else is allowed, a person leaves the sandbox or nobody");
}
