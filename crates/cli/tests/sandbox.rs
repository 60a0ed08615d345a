//! `hermes sandbox`: what holds here, and the person's own commands behind the same wall. `hermes env`, whose backends
//! have it.
#![allow(clippy::unwrap_used)]

mod common;

use common::pty::{ends_with, expect, in_a_terminal};
use common::{Hermes, Ran, hermes};
use serde_json::json;

fn run(hermes: &Hermes, options: &[&str], script: &str) -> Ran {
    hermes.run(&[&["sandbox", "run"], options, &["--", "bash", "-c", script]].concat())
}

#[test]
fn check_says_what_works_and_what_holds_in_80_columns() {
    let hermes = hermes();
    let ran = hermes.run(&["sandbox", "check"]);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    for name in ["namespaces", "bwrap", "landlock", "seatbelt"] {
        assert!(ran.out.contains(name), "{name}: {}", ran.out);
    }
    let json = hermes.run(&["sandbox", "check", "--json"]);
    let said = json.json();
    let works = said["mechanisms"].as_array().unwrap().iter().any(|mechanism| mechanism["works"] == true);
    assert_eq!((ran.code, json.code), (i32::from(!works), i32::from(!works)), "{said}");
    let doctor = hermes.run(&["doctor", "--json"]).json();
    let line = doctor.as_array().unwrap().iter().find(|line| line["check"] == "sandbox").unwrap();
    assert_eq!(line["status"], if works { "ok" } else { "warning" }, "{line}");
    assert!(line["message"].as_str().unwrap().contains(if works { "confined" } else { "sandbox check" }), "{line}");
}

#[test]
fn a_command_changes_this_folder_and_nothing_else_and_ends_as_it_ends() {
    let hermes = hermes();
    let outside = hermes.home.user_home().join("outside");
    let script = format!("echo in > inside; echo out > {}; exit 9", outside.display());
    let ran = run(&hermes, &[], &script);
    assert_eq!(ran.code, 9, "{ran:?}");
    assert_eq!(hermes.home.read("inside"), "in\n");
    assert!(!outside.exists());
    assert_eq!(run(&hermes, &[], "kill -TERM $$").code, 128 + 15);
    let folder = hermes.home.user_home().join("more");
    std::fs::create_dir(&folder).unwrap();
    let ran = run(&hermes, &["--writable", folder.to_str().unwrap()], &format!("echo x > {}/file", folder.display()));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(folder.join("file").exists());
}

#[test]
fn keys_and_the_agents_home_are_out_of_sight_and_the_network_is_off() {
    let hermes = hermes();
    let home = hermes.home.user_home();
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id"), "secret").unwrap();
    std::fs::write(home.join(".netrc"), "secret").unwrap();
    std::fs::write(home.join("mine"), "secret").unwrap();
    std::fs::write(home.join("notes"), "plain").unwrap();
    let config = hermes.home.home().join("config.yaml");
    let script = format!("cat ~/.ssh/id ~/.netrc ~/mine {}; cat ~/notes", config.display());
    // The home of a test is below /tmp, which is the command's own; as a writable folder it is in sight.
    let (visible, mine) = (home.to_str().unwrap(), home.join("mine"));
    let ran = run(&hermes, &["--writable", visible, "--hide", mine.to_str().unwrap()], &script);
    assert_eq!(ran.out, "plain", "{ran:?}");
    let ran = run(&hermes, &["--strict"], "cat ~/notes; echo x > ~/file && ls -A ~");
    assert_eq!(ran.out, "file\n", "{ran:?}");
    assert!(!home.join("file").exists(), "a strict home is forgotten");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!(": <>/dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    assert_ne!(run(&hermes, &[], &connect).code, 0);
    assert_eq!(run(&hermes, &["--network"], &connect).code, 0);
}

#[test]
fn what_cannot_run_is_one_line_and_a_code_of_its_own() {
    let hermes = hermes();
    hermes.run(&["sandbox", "run", "--", "no-such-program"]).is_refused(127, &["no-such-program", "did not run"]);
    hermes.home.write("plain.txt", "x");
    hermes.run(&["sandbox", "run", "--", "./plain.txt"]).is_refused(126, &["plain.txt", "did not run"]);
    let wrong = hermes.run(&["sandbox", "run", "--hide", "/nope/x", "--", "true"]);
    wrong.is_refused(125, &["/nope/x", "nothing ran"]);
    hermes.run(&["sandbox", "run"]).is_refused(2, &["CMD", "sandbox run --help"]);
}

#[test]
fn a_command_has_the_terminal_and_decides_about_ctrl_c() {
    let hermes = hermes();
    let script = "trap 'echo heard; exit 6' INT; [ -t 0 ] && echo terminal; while :; do sleep 0.1; done";
    let mut session = in_a_terminal(&hermes, &["sandbox", "run", "--", "bash", "-c", script]);
    expect(&mut session, "terminal");
    session.send_control('c').unwrap();
    expect(&mut session, "heard");
    session.exp_eof().unwrap();
    ends_with(&session, 6);
}

#[test]
fn env_lists_what_there_is_and_what_is_not_yet() {
    let hermes = hermes();
    let ran = hermes.run(&["env", "list"]);
    assert!(ran.code == 0 && ran.out.contains("● local") && ran.out.contains("not in this build yet"), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    let all = hermes.run(&["env", "list", "--json"]).json();
    assert_eq!(all[0]["name"], "local");
    assert_eq!(all[0]["capabilities"]["background"], true);
    let ssh = all.as_array().unwrap().iter().find(|backend| backend["name"] == "ssh").unwrap();
    assert_eq!(*ssh, json!({ "name": "ssh", "available": false, "chosen": false, "capabilities": null }));
    hermes.run(&["env", "test", "ssh"]).is_refused(1, &["ssh is not in this build yet", "env list"]);
    hermes.run(&["env", "test", "dokcer"]).is_refused(2, &["did you mean \"docker\"?"]);
}

#[test]
fn what_a_killed_env_test_leaves_is_reaped() {
    use std::process::{Command, Stdio};
    let hermes = hermes();
    let (cache, tmp) = (hermes.home.user_home().join(".cache"), hermes.home.user_home().join("tmp"));
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::create_dir_all(&tmp).unwrap();
    let left = |folder: &std::path::Path| std::fs::read_dir(folder).unwrap().count();
    let mut testing = Command::new(env!("CARGO_BIN_EXE_hermes"))
        .args(["env", "test", "local"])
        .current_dir(hermes.home.work())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs([("HOME", hermes.home.user_home()), ("HERMES_HOME", hermes.home.home()), ("TMPDIR", tmp.clone())])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = std::time::Instant::now();
    let is_made = |folder: &std::path::Path| {
        std::fs::read_dir(folder).unwrap().any(|entry| entry.unwrap().path().join(".in-use").exists())
    };
    while !is_made(&cache) || !is_made(&tmp) {
        assert!(began.elapsed().as_secs() < 20, "it makes no folders");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    testing.kill().unwrap();
    testing.wait().unwrap();
    // What it had started ends by itself, and may hold the lock until then.
    while left(&cache) > 0 || left(&tmp) > 0 {
        assert!(began.elapsed().as_secs() < 20, "{cache:?} {tmp:?}");
        let ran = hermes.command(&["processes", "reap"]).env("TMPDIR", &tmp).output().unwrap();
        assert!(ran.status.success());
    }
}

#[test]
fn env_test_checks_this_machine() {
    let hermes = hermes();
    let ran = hermes.run(&["env", "test", "local", "--json"]);
    let said = ran.json();
    let checks = said["checks"].as_array().unwrap();
    let failed: Vec<_> = checks.iter().filter(|check| check["outcome"] == "failed").collect();
    assert!(checks.len() > 20 && failed.is_empty() && ran.code == 0, "{failed:?}");
    // The page about backends shows what this prints, once for each.
    let page = include_str!("../../../docs/backends.md");
    for check in checks {
        let line = format!("  ✓ {}\n", check["name"].as_str().unwrap());
        assert_eq!(page.matches(&line).count(), 2, "{line}");
    }
}
