//! `hermes config` and `hermes doctor`: a file that people edit by hand.
#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::PermissionsExt as _;

use common::{Ran, hermes};
use hermes_testkit::TempHome;

#[test]
fn path_get_and_set_agree_and_comments_stay() {
    let hermes = hermes();
    let path = hermes.home.home().join("config.yaml");
    assert_eq!(hermes.run(&["config", "path"]).out.trim(), path.display().to_string());
    std::fs::write(&path, "# mine\nagent:\n  max_turns: 12 # enough\n").unwrap();
    assert_eq!(hermes.run(&["config", "get", "agent.max_turns"]).out, "12\n");
    assert_eq!(hermes.run(&["config", "get", "terminal.timeout"]).out, "180\n");
    let set = hermes.run(&["config", "set", "agent.max_turns", "20"]);
    assert_eq!(
        (set.code, std::fs::read_to_string(&path).unwrap().as_str()),
        (0, "# mine\nagent:\n  max_turns: 20 # enough\n")
    );
    hermes.run(&["config", "set", "agent.disabled_toolsets", "[terminal, todo]"]);
    assert_eq!(hermes.run(&["config", "get", "agent.disabled_toolsets", "--json"]).out, "[\"terminal\",\"todo\"]\n");
    let all = hermes.run(&["config", "get", "--json"]).json();
    assert!(
        all.as_array()
            .unwrap()
            .iter()
            .any(|key| key["key"] == "agent.max_turns" && key["value"] == 20 && key["set"] == true)
    );
}

#[test]
fn a_secret_is_never_printed() {
    let hermes = hermes();
    let set = hermes.run(&["config", "set", "model.api_key", "sk-very-secret"]);
    let piped =
        hermes.command(&["config", "set", "model.api_key", "-"]).write_stdin("sk-very-secret\n").output().unwrap();
    assert_eq!(Ran::from(piped).code, 0);
    for broken in ["", "one\ntwo\n"] {
        let set = hermes.command(&["config", "set", "model.api_key", "-"]).write_stdin(broken).output().unwrap();
        Ran::from(set).is_refused(2, &["nothing was set"]);
    }
    let get = hermes.run(&["config", "get", "model.api_key"]);
    let all = hermes.run(&["config", "get"]);
    for ran in [set, get, all] {
        assert!(ran.code == 0 && !ran.out.contains("very-secret") && ran.err.is_empty(), "{ran:?}");
    }
    assert!(std::fs::read_to_string(hermes.home.home().join("config.yaml")).unwrap().contains("sk-very-secret"));
}

#[test]
fn a_typo_is_named_with_the_nearest_key_and_stops_every_command() {
    let hermes = hermes();
    let path = hermes.home.write_config("model:\n  default: m\nterminl:\n  timeout: 5\n");
    let before = std::fs::read(&path).unwrap();
    for args in [
        &["run", "hi"][..],
        &["tools", "list"],
        &["config", "get", "agent.max_turns"],
        &["config", "set", "agent.max_turns", "5"],
    ] {
        hermes
            .run(args)
            .is_refused(1, &["config.yaml line 3", "\"terminl\" is not a key", "did you mean \"terminal\"?"]);
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let doctor = hermes.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.out.contains("✗ config") && doctor.out.contains("line 3"), "{}", doctor.out);
}

#[test]
fn values_and_keys_that_cannot_be_are_refused_before_anything_is_written() {
    let hermes = hermes();
    let before = std::fs::read(hermes.home.home().join("config.yaml")).unwrap();
    hermes.run(&["config", "set", "agent.max_turns", "many"]).is_refused(2, &["whole number", "many"]);
    hermes.run(&["config", "set", "agent.max_turns", "0"]).is_refused(2, &["from 1 to"]);
    hermes.run(&["config", "set", "terminal.timeout", "900"]).is_refused(2, &["from 1 to 600"]);
    hermes.run(&["config", "set", "model.base_url", "localhost:80"]).is_refused(2, &["http://"]);
    let secret = hermes.run(&["config", "set", "model.base_url", "http://me:hunter2@host/v1"]);
    secret.is_refused(2, &["must not contain a user name or password"]);
    assert!(!secret.err.contains("hunter2"));
    hermes.run(&["config", "set", "model.stream", "sometimes"]).is_refused(2, &["true or false"]);
    hermes.run(&["config", "set", "agent.max_turn", "5"]).is_refused(1, &["did you mean \"agent.max_turns\""]);
    hermes.run(&["config", "get", "agent"]).is_refused(1, &["\"agent\" is not a key"]);
    assert_eq!(std::fs::read(hermes.home.home().join("config.yaml")).unwrap(), before);
}

#[test]
fn a_section_nobody_knows_is_said_and_left_alone() {
    let hermes = hermes();
    hermes.configure("model: {probe_local: false}\nmy_plugin_stuff: {a: 1}\nbrowser: {anything: 2}\n");
    let ran = hermes.run(&["tools", "list"]);
    assert!(ran.code == 0 && ran.err.contains("\"my_plugin_stuff\"") && !ran.err.contains("browser"), "{ran:?}");
}

#[test]
fn a_home_that_cannot_be_written_is_one_clear_error() {
    let home = TempHome::new();
    let blocked = home.write("blocked", "a file, not a folder");
    let hermes = common::Hermes { home };
    let run =
        |args: &[&str]| Ran::from(hermes.command(args).env("HERMES_HOME", blocked.join("home")).output().unwrap());
    run(&["config", "set", "agent.max_turns", "5"]).is_refused(1, &["blocked/home/config.yaml", "ot a directory"]);
    let doctor = run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.out.contains("✗ home"), "{}", doctor.out);
    assert_eq!(hermes.home.read("blocked"), "a file, not a folder");
    // What does not need the home goes on without it.
    assert_eq!(run(&["tools", "call", "calculate", r#"{"expression": "1+1"}"#]).json()["result"], 2);
}

#[test]
fn what_we_make_is_private() {
    let home = TempHome::new();
    let hermes = common::Hermes { home };
    let fresh = hermes.home.user_home().join("fresh/home");
    let mut command = hermes.command(&["config", "set", "agent.max_turns", "5"]);
    assert_eq!(Ran::from(command.env("HERMES_HOME", &fresh).output().unwrap()).code, 0);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&fresh), mode(&fresh.join("config.yaml"))), (0o700, 0o600));
}

#[test]
fn doctor_is_fine_in_a_fresh_home_and_says_it_to_programs_too() {
    let hermes = hermes();
    let ran = hermes.run(&["doctor", "--json"]);
    let checks = ran.json();
    let status = |name: &str| {
        let check = checks.as_array().unwrap().iter().find(|check| check["check"] == name).unwrap();
        check["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (status("shell"), status("tools"), status("model"), ran.code),
        ("ok".into(), "ok".into(), "warning".into(), 0)
    );
}

#[test]
fn a_file_that_gets_a_key_is_private_and_a_broken_one_says_where_the_good_one_is() {
    let hermes = hermes();
    let path = hermes.home.write_config("agent: {max_turns: 5}\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(hermes.run(&["config", "set", "agent.max_turns", "6"]).code, 0);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644, "it is the user's own choice");
    assert_eq!(hermes.run(&["config", "set", "model.api_key", "sk-abc"]).code, 0);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&path, "bad: [").unwrap();
    hermes.run(&["tools", "list"]).is_refused(1, &["config.yaml.last-good"]);
}
