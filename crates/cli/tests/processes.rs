//! `hermes processes`: what runs in the background, seen and handled from outside of its conversation.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use common::pty::{ends_with, expect, in_a_terminal};
use common::{Hermes, hermes};
use rexpect::session::PtySession;
use serde_json::{Value, json};

/// The binary as something that runs beside the test.
fn in_background(hermes: &Hermes, args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("hermes"));
    command.args(args).current_dir(hermes.home.work()).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", hermes.home.user_home()).env("HERMES_HOME", hermes.home.home()).stdout(Stdio::piped());
    command
}

/// A conversation that keeps processes for as long as it lives.
struct Holder {
    child: Child,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Holder {
    fn new(hermes: &Hermes) -> Self {
        let mut command = in_background(hermes, &["tools", "exec", "--approve", "all"]);
        command.stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (calls, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, calls, answers }
    }

    /// Starts `command` in the background and gives its name.
    fn start(&mut self, command: &str, more: &Value) -> String {
        let mut args = json!({ "command": command, "background": true });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        writeln!(self.calls, "{}", json!({ "id": 1, "tool": "terminal", "args": args })).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let result: Value = serde_json::from_str(answer["result"].as_str().unwrap()).unwrap();
        result["session_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn end(self) {
        let Self { mut child, calls, answers } = self;
        drop((calls, answers));
        child.wait().unwrap();
    }
}

/// What `list --json` says of one process.
fn listed(hermes: &Hermes, id: &str) -> Value {
    let all = hermes.run(&["processes", "list", "--all", "--json"]).json();
    all.as_array().unwrap().iter().find(|process| process["id"] == id).unwrap().clone()
}

fn press(session: &mut PtySession, keys: &str) {
    session.send(keys).unwrap();
    session.flush().unwrap();
}

#[test]
fn a_list_without_processes_says_why_it_is_empty() {
    let hermes = hermes();
    let ran = hermes.run(&["processes", "list"]);
    assert!(ran.code == 0 && ran.out.starts_with("nothing runs in the background"), "{ran:?}");
    assert_eq!(hermes.run(&["processes", "list", "--json"]).json(), json!([]));
    hermes.run(&["processes", "log", "abc"]).is_refused(1, &["there is no process abc", "nothing has run"]);
}

#[test]
fn running_ones_are_listed_first_in_80_columns_and_nothing_in_a_command_can_move_the_cursor() {
    let hermes = hermes();
    let mut holder = Holder::new(&hermes);
    let long = format!("sleep 300 # \u{1b}[2J {}", "x".repeat(200));
    let running = holder.start(&long, &json!({}));
    let over = holder.start("sleep 0.2; exit 3", &json!({}));
    hermes.run(&["processes", "log", &over, "--follow"]);
    let ran = hermes.run(&["processes", "list"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{}", ran.out);
    assert!(lines[1].contains(&running) && lines[1].contains("running") && lines[1].contains("\\u{1b}"), "{}", ran.out);
    assert!(lines[2].contains(&over) && lines[2].contains("exited 3"), "{}", ran.out);
    assert!(lines[3].starts_with("1 running, 1 over in the last half hour."), "{}", ran.out);
    let one = listed(&hermes, &over);
    assert_eq!((one["state"].as_str(), one["exit_code"].as_i64()), (Some("exited"), Some(3)), "{one}");
    assert_eq!(one["owner_pid"].as_u64(), Some(u64::from(holder.child.id())), "{one}");
    holder.end();
}

#[test]
fn a_log_is_text_without_escape_sequences_and_may_be_followed_to_the_end() {
    let hermes = hermes();
    let mut holder = Holder::new(&hermes);
    let command = r"printf '\033]52;c;ZXZpbA==\007\033[31mone\033[0m\ntwo\nthree'; read -r; echo; exit 4";
    let id = holder.start(command, &json!({ "stdin": true }));
    let mut following = in_background(&hermes, &["processes", "log", &id, "--follow"]).spawn().unwrap();
    let mut follow = BufReader::new(following.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(follow.next().unwrap(), "one");
    let name = &id["proc_".len()..];
    assert_eq!(hermes.run(&["processes", "log", name, "-n", "2"]).out, "two\nthree");
    // The first eight digits are enough for it.
    assert_eq!(hermes.run(&["processes", "log", &name[..8]]).out, "one\ntwo\nthree");
    let answer = json!({ "id": 2, "tool": "process", "args": { "action": "submit", "session_id": id, "data": "go" } });
    writeln!(holder.calls, "{answer}").unwrap();
    assert_eq!(follow.collect::<Vec<_>>(), ["two", "three"]);
    assert!(following.wait().unwrap().success());
    let bytes = std::fs::read(listed(&hermes, &id)["log"].as_str().unwrap()).unwrap();
    assert!(bytes.starts_with(b"\x1b]52;"), "the file has what was printed");
    holder.end();
}

#[test]
fn what_is_killed_is_gone_and_what_is_over_is_said_to_be() {
    let hermes = hermes();
    let mut holder = Holder::new(&hermes);
    let running = holder.start("sleep 300 & echo $! > child; wait", &json!({}));
    let over = holder.start("sleep 0.2; exit 3", &json!({}));
    hermes.run(&["processes", "log", &over, "--follow"]);
    hermes.run(&["processes", "kill", &running, "zzzz"]).is_refused(1, &["no process zzzz", "processes list"]);
    assert_eq!(listed(&hermes, &running)["state"], "running", "nothing is ended where one is unknown");
    let ran = hermes.run(&["processes", "kill", &running, &over, &running]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out.lines().count(), 2, "{}", ran.out);
    assert!(ran.out.contains(&format!("{running}  ended")), "{}", ran.out);
    assert!(ran.out.contains(&format!("{over}  was over already (exited 3)")), "{}", ran.out);
    let child = hermes.home.read("child");
    assert!(!std::path::Path::new("/proc").join(child.trim()).exists(), "its child lives");
    assert_eq!(listed(&hermes, &running)["state"], "killed");
    holder.end();
}

#[test]
fn an_unknown_name_is_one_line_with_the_nearest_one() {
    let hermes = hermes();
    let mut holder = Holder::new(&hermes);
    let id = holder.start("sleep 300", &json!({}));
    let wrong = format!("{}{}", &id[..id.len() - 1], if id.ends_with('0') { '1' } else { '0' });
    hermes.run(&["processes", "log", &wrong]).is_refused(1, &[&format!("did you mean \"{id}\"?")]);
    let refused = hermes.run(&["processes", "attach", &id]);
    refused.is_refused(2, &["needs a terminal", &format!("processes log {id} --follow")]);
    holder.end();
}

#[test]
fn reap_says_what_it_did() {
    let hermes = hermes();
    let folder = hermes.home.home().join("processes");
    std::fs::create_dir_all(&folder).unwrap();
    let mut begun = json!({
        "id": "proc_0123456789ab", "owner": "1-a", "owner_pid": 1, "command": "make", "cwd": "/",
        "started": { "secs_since_epoch": 1000, "nanos_since_epoch": 0 },
        "notify_on_complete": false, "watch_patterns": [], "terminal": false,
    })
    .to_string();
    begun += "\n";
    std::fs::write(folder.join("proc_0123456789ab.jsonl"), begun).unwrap();
    assert_eq!(listed(&hermes, "proc_0123456789ab")["state"], "lost");
    let killed = hermes.run(&["processes", "kill", "0123"]);
    assert!(killed.code == 1 && killed.out.contains("hermes processes reap"), "{killed:?}");
    let ran = hermes.run(&["processes", "reap"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("took away 1 old record") && ran.out.contains("proc_0123456789ab"), "{}", ran.out);
    assert_eq!(hermes.run(&["processes", "list", "--all", "--json"]).json(), json!([]));
}

#[test]
fn a_person_takes_a_terminal_over_and_leaves_it_as_it_was() {
    let hermes = hermes();
    let mut holder = Holder::new(&hermes);
    let id = holder.start("PS1='ready> ' bash --norc -i; stty size > size; exit 7", &json!({ "pty": true }));
    let mut session = in_a_terminal(&hermes, &["processes", "attach", &id]);
    expect(&mut session, "Ctrl-] leaves");
    expect(&mut session, "ready> ");
    // Where a line is echoed by its terminal, the sum is not in what was typed.
    press(&mut session, "echo $((40 + 2)) `stty size`\r");
    expect(&mut session, "42 23 80");
    press(&mut session, "\u{1d}");
    expect(&mut session, &format!("{id} runs on"));
    session.exp_eof().unwrap();
    ends_with(&session, 0);
    // Who comes again finds what was there, and is told how it ended.
    let mut session = in_a_terminal(&hermes, &["processes", "attach", &id]);
    expect(&mut session, "42 23 80");
    press(&mut session, "\u{1d}");
    expect(&mut session, "runs on");
    session.exp_eof().unwrap();
    let submit = json!({ "action": "submit", "session_id": id, "data": "exit" });
    writeln!(holder.calls, "{}", json!({ "id": 2, "tool": "process", "args": submit })).unwrap();
    hermes.run(&["processes", "log", &id, "--follow"]);
    assert_eq!(hermes.home.read("size"), "30 120\n", "its conversation has its size back");
    assert_eq!(listed(&hermes, &id)["exit_code"], 7);
    holder.end();
}

#[test]
fn nothing_but_a_drawing_reaches_the_terminal_and_the_end_is_told() {
    let hermes = hermes();
    let mut holder = Holder::new(&hermes);
    let evil = r"printf '\033]0;evil title\007\033]52;c;ZXZpbA==\007asks: '; read -r; echo the last word; exit 7";
    let id = holder.start(evil, &json!({ "pty": true }));
    let mut session = in_a_terminal(&hermes, &["processes", "attach", &id]);
    let before = expect(&mut session, "asks: ");
    press(&mut session, "x\r");
    let after = expect(&mut session, &format!("{id} is over: exited 7"));
    assert!(after.contains("the last word"), "what it said last stays: {after}");
    for said in [before, after] {
        assert!(!said.contains("evil title") && !said.contains("ZXZpbA=="), "{said:?}");
    }
    session.exp_eof().unwrap();
    ends_with(&session, 0);
    let over = in_a_terminal(&hermes, &["processes", "attach", &id]).exp_eof().unwrap();
    assert!(over.contains("is over: exited 7"), "{over}");
    holder.end();
}

#[test]
fn a_request_to_end_gives_the_terminal_back_and_leaves_the_process() {
    let hermes = hermes();
    let mut holder = Holder::new(&hermes);
    let id = holder.start("echo here; sleep 300", &json!({ "pty": true }));
    let mut session = in_a_terminal(&hermes, &["processes", "attach", &id]);
    expect(&mut session, "here");
    let pid = session.process().child_pid.as_raw();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).unwrap();
    expect(&mut session, "runs on");
    session.exp_eof().unwrap();
    ends_with(&session, 130);
    assert_eq!(listed(&hermes, &id)["state"], "running");
    holder.end();
}

#[test]
fn a_process_without_a_terminal_gets_lines_and_its_input_can_be_ended() {
    let hermes = hermes();
    let mut holder = Holder::new(&hermes);
    let command = "while read -r line; do echo got $line; done; echo end of input; exit 4";
    let id = holder.start(command, &json!({ "stdin": true }));
    let mut session = in_a_terminal(&hermes, &["processes", "attach", &id]);
    expect(&mut session, "your lines go to it");
    session.send_line("first").unwrap();
    expect(&mut session, "got first");
    press(&mut session, "\u{1d}");
    expect(&mut session, "runs on");
    session.exp_eof().unwrap();
    let mut session = in_a_terminal(&hermes, &["processes", "attach", &id]);
    expect(&mut session, "got first");
    session.send_control('d').unwrap();
    expect(&mut session, "end of input");
    expect(&mut session, "is over: exited 4");
    session.exp_eof().unwrap();
    let id = holder.start("sleep 300", &json!({}));
    let mut session = in_a_terminal(&hermes, &["processes", "attach", &id]);
    expect(&mut session, "it has no input");
    session.send_control('c').unwrap();
    expect(&mut session, "runs on");
    session.exp_eof().unwrap();
    ends_with(&session, 130);
    holder.end();
}
