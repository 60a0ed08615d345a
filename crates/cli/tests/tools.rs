//! `hermes tools`: the tools without an agent.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Hermes, Ran, hermes};
use serde_json::{Value, json};

/// Sends lines to `tools exec` and gives the answers.
fn exec(hermes: &Hermes, args: &[&str], lines: &[Value]) -> Vec<Value> {
    let input: String = lines.iter().map(|line| line.as_str().map_or(line.to_string(), str::to_owned) + "\n").collect();
    let all: Vec<&str> = ["tools", "exec"].iter().chain(args).copied().collect();
    let ran = Ran::from(hermes.command(&all).write_stdin(input).output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    ran.lines()
}

fn result(answer: &Value) -> Value {
    serde_json::from_str(answer["result"].as_str().unwrap()).unwrap()
}

#[test]
fn the_definitions_are_what_was_reviewed_and_the_same_bytes_every_time() {
    let hermes = hermes();
    let first = hermes.run(&["tools", "definitions", "--json"]);
    let again = hermes.run(&["tools", "definitions", "--platform", "hermes-cli", "--provider", "openai", "--json"]);
    assert_eq!(first.out, again.out);
    insta::assert_snapshot!("definitions_hermes_cli_openai", format!("{:#}", first.json()));
}

#[test]
fn a_selection_is_strict() {
    let hermes = hermes();
    let names = |args: &[&str]| -> Vec<String> {
        let all: Vec<&str> = ["tools", "definitions", "--json"].iter().chain(args).copied().collect();
        let json = hermes.run(&all).json();
        json.as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["--toolsets", "math,todo"]), ["calculate", "todo"]);
    assert_eq!(names(&["--toolsets", "math,todo", "--disable", "todo"]), ["calculate"]);
    assert_eq!(names(&["--toolsets", ""]), [] as [&str; 0]);
    assert_eq!(names(&["--toolsets", "all", "--disable", "*"]), [] as [&str; 0]);
    let unknown = hermes.run(&["tools", "definitions", "--toolsets", "termnal"]);
    unknown.is_refused(2, &["unknown toolset \"termnal\"", "did you mean \"terminal\""]);
    hermes.run(&["tools", "definitions", "--disable", "nope"]).is_refused(2, &["unknown toolset \"nope\""]);
    hermes.run(&["tools", "definitions", "--provider", "nobody"]).is_refused(2, &["nobody"]);
}

#[test]
fn a_call_prints_what_a_model_would_get() {
    let hermes = hermes();
    hermes.home.write("a.txt", "one\ntwo");
    let ran = hermes.run(&["tools", "call", "read_file", r#"{"path": "a.txt"}"#]);
    assert_eq!((ran.json()["content"].as_str(), ran.code), (Some("1|one\n2|two"), 0));
    let ran = hermes.run(&["tools", "call", "read_file", r#"{"path": "b.txt"}"#]);
    assert_eq!((ran.code, ran.json()["similar_files"].as_array().unwrap().len()), (1, 1));
    let ran = hermes.run(&["tools", "call", "terminal", r#"{"command": "exit 7"}"#, "--approve", "all"]);
    assert_eq!((ran.json()["exit_code"].as_i64(), ran.code), (Some(7), 0));
    let ran = hermes.run(&["tools", "call", "terminal", r#"{"command": "touch x"}"#]);
    assert_eq!((ran.json()["exit_code"].as_i64(), ran.code), (Some(0), 0));
    let ran = hermes.run(&["tools", "call", "terminal", r#"{"command": "rm x"}"#]);
    assert_eq!((ran.json()["exit_code"].as_i64(), ran.code), (Some(0), 0), "{ran:?}");
    hermes.home.write("build/a.o", "");
    let ran = hermes.run(&["tools", "call", "terminal", r#"{"command": "rm -rf build"}"#]);
    assert_eq!((ran.json()["status"].as_str(), ran.code), (Some("refused"), 1));
    assert!(hermes.home.work().join("build/a.o").exists());
    let ran = hermes.run(&["tools", "call", "terminal", r#"{"command": "pwd"}"#, "--approve", "all", "--cwd", "/"]);
    assert_eq!(ran.json()["output"], "/\n");
    hermes.run(&["tools", "call", "calculate", "{}", "--cwd", "nowhere"]).is_refused(1, &["nowhere does not exist"]);
}

#[test]
fn exec_answers_line_by_line_in_order_and_keeps_state_per_task() {
    let hermes = hermes();
    hermes.home.write("sub/f.txt", "deep\n");
    let answers = exec(
        &hermes,
        &["--approve", "all"],
        &[
            json!({"id": 1, "task": "a", "tool": "terminal", "args": {"command": "cd sub"}}),
            json!({"id": "two", "task": "a", "tool": "read_file", "args": {"path": "f.txt"}}),
            json!({"id": 3, "task": "b", "tool": "read_file", "args": {"path": "f.txt"}}),
            json!({"id": 4, "task": "a", "tool": "todo", "args": {"todos": [{"id": "1", "content": "x", "status": "pending"}]}}),
            json!({"id": 5, "task": "a", "tool": "todo"}),
            json!({"id": 6, "task": "b", "tool": "todo", "args": "{}"}),
        ],
    );
    assert_eq!(
        answers.iter().map(|a| a["id"].clone()).collect::<Vec<_>>(),
        [json!(1), json!("two"), json!(3), json!(4), json!(5), json!(6)]
    );
    assert_eq!(result(&answers[1])["content"], "1|deep");
    assert_eq!(answers[2]["ok"], false);
    assert_eq!(result(&answers[4])["summary"]["total"], 1);
    assert_eq!(result(&answers[5])["summary"]["total"], 0);
    assert!(answers.iter().all(|answer| answer["ms"].is_f64()));
}

#[test]
fn exec_survives_every_kind_of_broken_line() {
    let hermes = hermes();
    let answers = exec(
        &hermes,
        &[],
        &[
            json!("nonsense"),
            json!({"id": 1}),
            json!({"id": 2, "tool": "read_file", "args": "{\"path\": \"a"}),
            json!({"id": 3, "tool": "read_file", "args": [1]}),
            json!({"id": 4, "tool": "read_file", "args": 5}),
            json!({"id": 5, "tool": "nope", "args": {}}),
            json!({"id": 6, "tool": "calculate", "args": {"expression": "6*7"}}),
        ],
    );
    let errors: Vec<String> =
        answers[..6].iter().map(|answer| result(answer)["error"].as_str().unwrap().to_owned()).collect();
    for (error, part) in errors.iter().zip([
        "not a request",
        "missing field `tool`",
        "cut off at byte 11",
        "a list",
        "a number",
        "no tool `nope`",
    ]) {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!((answers[6]["ok"].as_bool(), result(&answers[6])["result"].as_i64()), (Some(true), Some(42)));
}

#[test]
fn list_and_show_speak_to_people_and_to_programs() {
    let hermes = hermes();
    let list = hermes.run(&["tools", "list"]);
    assert!(list.out.contains("patch · read_file · search_files · write_file"), "{}", list.out);
    assert!(list.out.lines().all(|line| line.chars().count() <= 80), "{}", list.out);
    let json = hermes.run(&["tools", "list", "--json", "--disable", "terminal"]).json();
    let terminal = json.as_array().unwrap().iter().find(|tool| tool["name"] == "terminal").unwrap().clone();
    assert_eq!((&terminal["on"], &terminal["effect"]), (&json!(false), &json!("execute")));
    let show = hermes.run(&["tools", "show", "ReadFile"]);
    assert!(show.out.contains("📖 read_file") && show.out.contains("Examples:"), "{}", show.out);
    assert_eq!(hermes.run(&["tools", "show", "patch", "--json"]).json()["toolset"], "file");
    hermes.run(&["tools", "show", "reed_file"]).is_refused(2, &["no tool \"reed_file\"", "did you mean \"read_file\""]);
}

#[test]
fn every_line_has_its_answer_also_an_empty_one_and_ids_come_back_as_they_were() {
    let hermes = hermes();
    let lines =
        "\n{\"id\": 123456789012345678901234567890, \"tool\": \"calculate\", \"args\": {\"expression\": \"1\"}}\n";
    let ran = Ran::from(hermes.command(&["tools", "exec"]).write_stdin(lines).output().unwrap());
    assert_eq!(ran.out.lines().count(), 2);
    assert!(
        ran.out.lines().nth(1).unwrap().starts_with("{\"id\":123456789012345678901234567890,\"ok\":true"),
        "{}",
        ran.out
    );
}

#[test]
fn a_task_that_is_named_is_a_conversation_and_one_that_is_not_is_a_program() {
    let hermes = hermes();
    hermes.home.write("a.txt", "x\n");
    let read = |task: Option<&str>| {
        let mut line = json!({ "tool": "read_file", "args": { "path": "a.txt" } });
        if let Some(task) = task {
            line["task"] = json!(task);
        }
        line
    };
    let lines = [read(None), read(None), read(Some("t1")), read(Some("t2")), read(Some("t1"))];
    let said =
        exec(&hermes, &[], &lines).iter().map(|answer| result(answer)["status"] == "unchanged").collect::<Vec<_>>();
    assert_eq!(said, [false, false, false, false, true]);

    let code = "MIIEabcdefghijklmnopqrstuvwxyz0123456789\n".repeat(3);
    let marks = ["-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"];
    hermes.home.write("k.txt", format!("{}\n{code}{}\n", marks[0], marks[1]));
    let lines = [json!({}), json!({ "task": "t1" })].map(|mut line| {
        line["tool"] = json!("read_file");
        line["args"] = json!({ "path": "k.txt", "offset": 3, "limit": 1 });
        line
    });
    let shown = exec(&hermes, &[], &lines).iter().map(|answer| result(answer)["content"].clone()).collect::<Vec<_>>();
    assert_eq!(shown, [json!(format!("3|{}", code.lines().next().unwrap())), json!("3|[part of a private key]")]);
}

#[test]
fn tools_are_found_by_what_they_do_here_and_in_a_catalogue() {
    let hermes = hermes();
    let found = hermes.run(&["tools", "search", "run", "a", "command", "--limit", "1"]);
    assert!(found.out.starts_with("terminal  Run a shell command") && found.out.lines().count() == 1, "{found:?}");
    assert_eq!(hermes.run(&["tools", "search", "--json", "patch"]).json()[0]["name"], "patch");
    assert_eq!(hermes.run(&["tools", "search", "qqq"]).out, "None of 9 tools fits.\n");

    hermes.home.write(
        "c.jsonl",
        "{\"name\": \"a.b\", \"description\": \"Boils water\"}\n\n{\"name\": \"x\", \"description\": null}\n",
    );
    let lines = "{\"id\": 7, \"query\": \"boil some water\"}\n{\"query\": \"nothing\"}\n";
    let all = ["tools", "search", "--catalog", "c.jsonl", "--jsonl"];
    let answers = Ran::from(hermes.command(&all).write_stdin(lines).output().unwrap()).lines();
    assert_eq!((&answers[0]["id"], &answers[0]["hits"]), (&json!(7), &json!(["a.b"])));
    assert_eq!((&answers[1]["id"], &answers[1]["hits"]), (&Value::Null, &json!([])));

    hermes.home.write("broken.jsonl", "{\"name\": \"a\"}\n{\"description\": 1}\n");
    hermes.run(&["tools", "search", "x", "--catalog", "broken.jsonl"]).is_refused(2, &["broken.jsonl, line 2"]);
    hermes.run(&["tools", "search", "x", "--catalog", "none.jsonl"]).is_refused(2, &["none.jsonl"]);
    hermes.run(&["tools", "search"]).is_refused(2, &["QUESTION"]);
    let ran = Ran::from(hermes.command(&all).write_stdin("x\n").output().unwrap());
    ran.is_refused(2, &["line 1 of standard input"]);
}

#[test]
fn a_reader_that_leaves_early_is_no_error_and_nothing_goes_on_behind_it() {
    let hermes = hermes();
    let gone = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    let start = |args: &[&str]| {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("hermes"));
        command.args(args).current_dir(hermes.home.work()).env("HERMES_HOME", hermes.home.home());
        command.stdin(std::process::Stdio::piped()).stdout(gone()).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let ended = start(&["tools", "show", "terminal"]).wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));

    let mut exec = start(&["tools", "exec", "--approve", "all"]);
    let call = json!({"id": 1, "tool": "terminal", "args": {"command": "sleep 300 & echo $! > pid"}});
    std::io::Write::write_all(&mut exec.stdin.take().unwrap(), format!("{call}\n").as_bytes()).unwrap();
    let ended = exec.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
    let environ = std::path::Path::new("/proc").join(hermes.home.read("pid").trim()).join("environ");
    assert!(std::fs::read(environ).unwrap_or_default().is_empty(), "the command goes on");
}
