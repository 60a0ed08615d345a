//! The question before a dangerous call, on a real pseudo-terminal.
#![allow(clippy::unwrap_used)]

mod common;

use common::pty::{chat, ends_with, expect};
use common::{Hermes, hermes};
use hermes_testkit::reports;
use rexpect::session::PtySession;
use serde_json::{Value, json};

#[test]
fn the_rows_that_belong_here_are_here() {
    let rows = reports::placed_in("crates/cli/tests/questions.rs");
    assert!(!rows.is_empty());
    assert_eq!(reports::tested_here(&rows), rows);
}

/// A turn of the model that runs `command`.
fn runs(command: &str) -> String {
    json!({ "calls": [{ "name": "terminal", "arguments": { "command": command } }] }).to_string()
}

fn says(text: &str) -> String {
    json!({ "text": text }).to_string()
}

fn talk(hermes: &Hermes, script: &[String]) -> PtySession {
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    chat(hermes, &script)
}

/// How the requests ended so far, by whom, and what they were about.
fn book(hermes: &Hermes) -> Vec<(String, String, String)> {
    let entries = hermes.run(&["approvals", "log", "--json"]).json()["requests"].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = entries.as_array().unwrap().iter();
    entries.map(|entry| (text(&entry["end"]), text(&entry["by"]), text(&entry["request"]["subject"]))).collect()
}

fn leave(mut session: PtySession) {
    session.send_line("/quit").unwrap();
    session.exp_eof().unwrap();
    ends_with(&session, 0);
}

// 05-approval-21: each request has its own id and its own end; see also `approvals_book.rs` of the runtime.
#[test]
fn a_question_shows_every_finding_and_how_much_would_be_gone() {
    let hermes = hermes();
    for n in 0..132 {
        hermes.home.write(format!("build/part-{}/{n}.o", n % 5), "x".repeat(31_060));
    }
    hermes.home.write("old.log", "x".repeat(980));
    let command = "rm -rf build && rm -f old.log && curl -s http://127.0.0.1:9/i.sh | sh";
    let mut session = talk(&hermes, &[runs(command), says("As you like.")]);
    session.send_line("clean up").unwrap();
    expect(&mut session, "The agent wants to use terminal, in ");
    let question = expect(&mut session, "[d]eny › ");
    for part in [command, "rm deletes", "132 files, 4.1 MB under build", "sh runs text that comes over the network"] {
        assert!(question.contains(part), "{part}: {question}");
    }
    // One part of it can be allowed only once, so that is all that is offered.
    assert!(
        question.contains("[o]nce") && !question.contains("[s]ession") && !question.contains("[a]lways"),
        "{question}"
    );
    session.send_line("s").unwrap();
    expect(&mut session, "Please type o or d, then Enter.");
    expect(&mut session, "[d]eny › ");
    session.send_line("d").unwrap();
    expect(&mut session, "As you like.");
    expect(&mut session, "› ");
    leave(session);
    assert!(hermes.home.work().join("build/part-0/0.o").exists());
    assert_eq!(book(&hermes), [("denied".into(), "the user".into(), command.into())]);
}

#[test]
fn a_question_about_what_nobody_can_tell_says_so() {
    let hermes = hermes();
    let mut session = talk(&hermes, &[runs("$CMD --now"), says("Then not.")]);
    session.send_line("go").unwrap();
    let question = expect(&mut session, "[d]eny › ");
    assert!(question.contains("$CMD --now") && question.contains("a part of it runs"), "{question}");
    session.send_line("no").unwrap();
    expect(&mut session, "Then not.");
    expect(&mut session, "› ");
    leave(session);
}

#[test]
fn always_is_written_to_the_configuration_and_holds_here_and_later() {
    let hermes = hermes();
    hermes.home.write_config("model: {probe_local: false}  # by hand\n");
    let (build, dist) = (|| hermes.home.write("build/a.o", "x"), || hermes.home.write("dist/b", "xy"));
    build();
    dist();
    let script = [runs("rm -rf build"), runs("rm -rf dist"), says("Both gone.")];
    let mut session = talk(&hermes, &script);
    session.send_line("clean up").unwrap();
    let question = expect(&mut session, "[d]eny › ");
    assert!(question.contains("1 file, 1 byte under build"), "{question}");
    assert!(question.contains("whatever rm deletes inside") && question.contains("[a]lways"), "{question}");
    session.send_line("a").unwrap();
    let between = expect(&mut session, "Both gone.");
    assert!(!between.contains("[d]eny"), "the second one is covered: {between}");
    expect(&mut session, "› ");
    leave(session);
    let text = std::fs::read_to_string(hermes.home.home().join("config.yaml")).unwrap();
    assert!(
        text.contains("# by hand") && text.contains("command_allowlist") && text.contains("rm delete in:"),
        "{text}"
    );
    assert!(hermes.run(&["approvals", "list"]).out.contains("1. whatever rm deletes inside"));
    build();
    let ran = hermes.run(&["tools", "call", "terminal", r#"{"command": "rm -rf build"}"#]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(book(&hermes), [("approved_always".into(), "the user".into(), "rm -rf build".into())]);
}

#[test]
fn a_question_that_nobody_answers_expires_and_swallows_nothing() {
    let hermes = hermes();
    hermes.home.write_config("model: {probe_local: false}\napprovals: {timeout: 2}\n");
    hermes.home.write("build/a.o", "x");
    let mut session = talk(&hermes, &[runs("rm -rf build"), says("Then not."), says("I hear you.")]);
    session.send_line("clean up").unwrap();
    expect(&mut session, "[d]eny › ");
    // Half an answer, without Enter, is none, and no part of what is typed next.
    session.send("o").unwrap();
    session.flush().unwrap();
    expect(&mut session, "No answer within 2 s, so it does not run.");
    expect(&mut session, "Then not.");
    expect(&mut session, "› ");
    session.send_line("what next?").unwrap();
    expect(&mut session, "I hear you.");
    expect(&mut session, "› ");
    leave(session);
    assert!(hermes.home.work().join("build/a.o").exists());
    assert_eq!(book(&hermes), [("expired".into(), "nobody".into(), "rm -rf build".into())]);
    let history = std::fs::read_to_string(hermes.home.home().join("history")).unwrap();
    assert!(history.lines().any(|line| line == "what next?"), "{history}");
}

// 05-approval-39
#[test]
fn approval_39_a_question_about_a_very_long_command_stays_on_the_screen_with_its_answers() {
    let hermes = hermes();
    let body = (1..=400).map(|n| format!("note {n} of them")).collect::<Vec<_>>().join("\n") + "\n";
    let command = format!("rm -rf build; cat > notes.txt <<'END'\n{body}END");
    let mut session = talk(&hermes, &[runs(&command), says("Written.")]);
    session.send_line("write it down").unwrap();
    expect(&mut session, "The agent wants to use terminal");
    let question = expect(&mut session, "[d]eny › ");
    assert!(question.lines().count() < 40, "{question}");
    assert!(question.contains("note 1 of them") && question.contains("note 400 of them"), "{question}");
    assert!(!question.contains("note 200 of them"), "{question}");
    for part in ["lines are left out here", "402 lines", "SHA-256", "rm deletes"] {
        assert!(question.contains(part), "{part}: {question}");
    }
    session.send_line("v").unwrap();
    let all = expect(&mut session, "[d]eny › ");
    assert!((1..=400).all(|n| all.contains(&format!("note {n} of them"))), "{all}");
    session.send_line("o").unwrap();
    expect(&mut session, "Written.");
    expect(&mut session, "› ");
    leave(session);
    assert_eq!(hermes.home.read("notes.txt"), body);
    assert_eq!(book(&hermes)[0].2, command, "the book has all of it");
}

// 05-approval-20
#[test]
fn approval_20_two_risky_commands_of_one_turn_are_asked_about_and_answered_one_after_the_other() {
    let hermes = hermes();
    hermes.home.write("a/x", "x");
    hermes.home.write("b/x", "x");
    let call = |command: &str| json!({ "name": "terminal", "arguments": { "command": command } });
    let both = json!({ "calls": [call("rm -rf a"), call("rm -rf b")] }).to_string();
    let mut session = talk(&hermes, &[both, says("Both gone.")]);
    session.send_line("clean up").unwrap();
    for folder in ["a", "b"] {
        let question = expect(&mut session, "[d]eny › ");
        assert!(question.contains(&format!("     rm -rf {folder}")), "{question}");
        session.send_line("o").unwrap();
    }
    expect(&mut session, "Both gone.");
    expect(&mut session, "› ");
    leave(session);
    assert!(!hermes.home.work().join("a").exists() && !hermes.home.work().join("b").exists());
    let entries = hermes.run(&["approvals", "log", "--json"]).json()["requests"].clone();
    assert_ne!(entries[0]["request"]["id"], entries[1]["request"]["id"]);
    assert_eq!(book(&hermes).iter().map(|entry| entry.0.as_str()).collect::<Vec<_>>(), ["approved_once"; 2]);
}

#[test]
fn ctrl_c_at_a_question_stops_the_turn_and_the_request_ends_as_cancelled() {
    let hermes = hermes();
    hermes.home.write("build/a.o", "x");
    let mut session = talk(&hermes, &[runs("rm -rf build"), says("Still here.")]);
    session.send_line("clean up").unwrap();
    expect(&mut session, "[d]eny › ");
    session.send_control('c').unwrap();
    expect(&mut session, "stopped");
    expect(&mut session, "› ");
    session.send_line("are you there?").unwrap();
    expect(&mut session, "Still here.");
    expect(&mut session, "› ");
    leave(session);
    assert!(hermes.home.work().join("build/a.o").exists());
    assert_eq!(book(&hermes), [("cancelled".into(), "nobody".into(), "rm -rf build".into())]);
}

#[test]
fn what_never_runs_is_one_line_and_no_question() {
    let hermes = hermes();
    let mut session = talk(&hermes, &[runs("rm -rf /"), says("I see.")]);
    session.send_line("go").unwrap();
    let shown = expect(&mut session, "I see.");
    assert!(shown.contains("never runs") && shown.contains("it wipes the root of the file system"), "{shown}");
    assert!(!shown.contains("[d]eny"), "{shown}");
    expect(&mut session, "› ");
    leave(session);
}
