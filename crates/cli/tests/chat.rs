//! A conversation, on a real pseudo-terminal.
#![allow(clippy::unwrap_used)]

mod common;

use common::hermes;
use common::pty::{chat, ends_with, expect, in_a_terminal};
use rexpect::session::PtySession;

#[test]
fn a_task_is_answered_and_the_conversation_goes_on() {
    let hermes = hermes();
    let mut session = chat(
        &hermes,
        &[r#"{"text": "Good **day**.", "usage": {"input": 1200, "output": 30}}"#, r#"{"text": "Again."}"#],
    );
    session.send_line("hello").unwrap();
    expect(&mut session, "Good day.");
    expect(&mut session, "1 request · 0 calls · 1.2k tokens");
    expect(&mut session, "› ");
    session.send_line("/tools").unwrap();
    expect(&mut session, "calculate · clarify");
    session.send_line("once more").unwrap();
    expect(&mut session, "Again.");
    expect(&mut session, "› ");
    session.send_line("/quit").unwrap();
    session.exp_eof().unwrap();
    ends_with(&session, 0);
    let history = std::fs::read_to_string(hermes.home.home().join("history")).unwrap();
    assert!(history.contains("hello") && history.contains("once more"), "{history}");
}

#[test]
fn an_approval_shows_what_would_happen_and_takes_only_a_clear_answer() {
    let hermes = hermes();
    let path = hermes.home.user_home().join(".vimrc");
    let call = serde_json::json!({ "path": path, "content": "first line\n" });
    let write = format!(r#"{{"calls": [{{"name": "write_file", "arguments": {call}}}]}}"#);
    let mut session = chat(&hermes, &[&write, &write, r#"{"text": "Both done."}"#]);
    session.send_line("write it twice, outside").unwrap();
    expect(&mut session, "The agent wants to use write_file");
    expect(&mut session, ".vimrc");
    expect(&mut session, "a place from which");
    expect(&mut session, "+ first line");
    expect(&mut session, "[d]eny › ");
    session.send_line("sure").unwrap();
    expect(&mut session, "Please type o, s, a or d, then Enter.");
    assert!(!path.exists());
    expect(&mut session, "[d]eny › ");
    session.send_line("s").unwrap();
    // The session's yes covers the second, identical write: no second question.
    let between = expect(&mut session, "Both done.");
    assert!(!between.contains("[d]eny"), "{between}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "first line\n");
    session.send_control('d').unwrap();
    session.exp_eof().unwrap();
    ends_with(&session, 0);
}

#[test]
fn ctrl_c_stops_the_turn_kills_the_command_and_twice_leaves() {
    let hermes = hermes();
    let mut session = chat(
        &hermes,
        &[
            r#"{"calls": [{"name": "terminal", "arguments": {"command": "rm -rf build; echo $$ > pid; sleep 300"}}]}"#,
            r#"{"text": "Still here."}"#,
        ],
    );
    session.send_line("wait").unwrap();
    expect(&mut session, "[d]eny › ");
    session.send_line("o").unwrap();
    // After a second the screen says what is being waited for.
    expect(&mut session, "terminal is running");
    session.send_control('c').unwrap();
    expect(&mut session, "stopped");
    expect(&mut session, "› ");
    let pid = hermes.home.read("pid");
    let environ = std::path::Path::new("/proc").join(pid.trim()).join("environ");
    assert!(std::fs::read(environ).unwrap_or_default().is_empty(), "the command survived");
    session.send_line("are you there?").unwrap();
    expect(&mut session, "Still here.");
    expect(&mut session, "› ");
    session.send_control('c').unwrap();
    expect(&mut session, "Ctrl-C again leaves.");
    session.send_control('c').unwrap();
    session.exp_eof().unwrap();
    ends_with(&session, 130);
}

#[test]
fn a_request_to_end_is_heard_at_the_prompt_too() {
    let hermes = hermes();
    let call =
        r#"{"calls": [{"name": "terminal", "arguments": {"command": "rm -rf build; echo $HERMES_RUN > ours"}}]}"#;
    let mut session = chat(&hermes, &[call, r#"{"text": "Done."}"#]);
    session.send_line("who are you?").unwrap();
    expect(&mut session, "[d]eny › ");
    session.send_line("o").unwrap();
    expect(&mut session, "Done.");
    expect(&mut session, "› ");
    // The mark that every process of ours carries begins with our number.
    let pid = hermes.home.read("ours").split('-').next().unwrap().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).unwrap();
    session.exp_eof().unwrap();
    ends_with(&session, 130);
}

#[test]
fn a_question_of_the_model_is_answered_by_number_or_words_and_trouble_is_one_line() {
    let hermes = hermes();
    let mut session = chat(
        &hermes,
        &[
            r#"{"calls": [{"name": "clarify", "arguments": {"question": "Which port?", "choices": ["80", "8080"]}}]}"#,
            r#"{"text": "Noted."}"#,
        ],
    );
    session.send_line("set it up").unwrap();
    expect(&mut session, "Which port?");
    expect(&mut session, "2. 8080");
    // What is typed before the prompt stands is no answer to it.
    expect(&mut session, "number or your own words › ");
    session.send_line("2").unwrap();
    expect(&mut session, "Noted.");
    expect(&mut session, "› ");
    session.send_line("more").unwrap();
    expect(&mut session, "the script has 2 turns");
    expect(&mut session, "brings your message back");
    expect(&mut session, "› ");
    session.send_line("/quit").unwrap();
    session.exp_eof().unwrap();
    ends_with(&session, 0);
}

#[test]
fn a_tool_that_is_switched_off_elsewhere_is_off_with_the_next_turn() {
    let hermes = hermes();
    let command = r#"{"calls": [{"name": "terminal", "arguments": {"command": "echo ran > out.txt"}}]}"#;
    let mut session = chat(&hermes, &[r#"{"text": "First."}"#, command, r#"{"text": "Second."}"#]);
    session.send_line("one").unwrap();
    expect(&mut session, "First.");
    expect(&mut session, "› ");
    assert_eq!(hermes.run(&["tools", "disable", "terminal"]).code, 0);
    session.send_line("two").unwrap();
    expect(&mut session, "tools changed: −process −terminal");
    expect(&mut session, "is not available in this session");
    expect(&mut session, "Second.");
    expect(&mut session, "› ");
    session.send_line("/quit").unwrap();
    session.exp_eof().unwrap();
    assert!(!hermes.home.work().join("out.txt").exists());
}

#[test]
fn the_checklist_ticks_searches_and_saves() {
    let hermes = hermes();
    let mut session = in_a_terminal(&hermes, &["tools"]);
    expect(&mut session, "Tools for cli:");
    expect(&mut session, "type to search");
    let press = |session: &mut PtySession, keys: &str| {
        session.send(keys).unwrap();
        session.flush().unwrap();
    };
    press(&mut session, "calc");
    expect(&mut session, "[x] math");
    press(&mut session, " ");
    expect(&mut session, "[ ] math");
    press(&mut session, "\r");
    expect(&mut session, "off: calculate");
    expect(&mut session, "Save?");
    press(&mut session, "\r");
    expect(&mut session, "platform_toolsets.cli = [hermes-cli, -math]");
    session.exp_eof().unwrap();
    let text = std::fs::read_to_string(hermes.home.home().join("config.yaml")).unwrap();
    assert!(text.contains("-math"), "{text}");
}
