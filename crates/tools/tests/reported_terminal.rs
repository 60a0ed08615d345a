//! What users of agents reported about commands and processes (`cases/reports.jsonl`, area 04), through real dispatch,
//! real processes and the real table.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hermes_core::{CancellationToken, Clock, Processes as _, RawArguments, ToolCall};
use hermes_exec::LocalEnvironment;
use hermes_exec::processes::{ProcessTable, TableSetup};
use hermes_runtime::{ApprovalMode, CallReport, Dispatcher, PlainJudge, Registry, Scope, Silent, Task};
use hermes_testkit::{TempHome, reports};
use hermes_tools::Builtins;
use serde_json::{Value, json};

struct Now;

impl Clock for Now {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A conversation that can be told of news.
struct Session {
    home: TempHome,
    dispatcher: Dispatcher,
    visible: BTreeSet<hermes_core::ToolName>,
    task: Task,
    table: Arc<ProcessTable>,
}

impl Session {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut BTreeMap<OsString, OsString>)) -> Self {
        let home = TempHome::new();
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        change(&mut variables);
        let environment = LocalEnvironment::new(&home.work(), &home.user_home(), variables, &[]).unwrap();
        let table = Arc::new(ProcessTable::new(TableSetup {
            folder: home.home().join("processes"),
            owner: "session".into(),
            grace: Duration::from_secs(1),
            tells: true,
            redactor: None,
            clock: Arc::new(Now),
        }));
        let registry = Arc::new(Registry::new());
        registry.built_in(&Builtins).unwrap();
        let visible = registry.snapshot().entries().map(|entry| entry.tool.spec().name.clone()).collect();
        let task = Task::new(Arc::new(environment)).with_processes(Arc::clone(&table) as _);
        Self { home, dispatcher: Dispatcher::new(registry, Arc::new(PlainJudge)), visible, task, table }
    }

    async fn report(&self, tool: &str, arguments: Value) -> CallReport {
        let arguments = RawArguments::Object(arguments.as_object().unwrap().clone());
        let call = ToolCall { id: "call".into(), name: tool.into(), arguments };
        let cancel = CancellationToken::new();
        let (task, visible) = (&self.task, &self.visible);
        let scope = Scope { task, visible, approve: ApprovalMode::All, cancel: &cancel, observer: &Silent };
        self.dispatcher.call(&call, &scope).await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        serde_json::from_str(&self.report(tool, arguments).await.text).unwrap()
    }

    async fn run(&self, command: &str) -> Value {
        self.call("terminal", json!({ "command": command })).await
    }

    async fn output(&self, command: &str) -> String {
        self.run(command).await["output"].as_str().unwrap().to_owned()
    }

    async fn background(&self, arguments: Value) -> String {
        let mut arguments = arguments;
        arguments["background"] = true.into();
        let started = self.call("terminal", arguments).await;
        started["session_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    async fn process(&self, action: &str, id: &str) -> Value {
        self.call("process", json!({ "action": action, "session_id": id })).await
    }

    fn path(&self, name: &str) -> String {
        self.home.work().join(name).display().to_string()
    }
}

#[test]
fn no_row_is_forgotten() {
    let rows = reports::rows(|id| id.starts_with("04-"));
    assert!(!rows.is_empty());
    assert_eq!(reports::forgotten(&rows), [] as [&str; 0], "neither tested nor deferred");
}

#[tokio::test]
async fn terminal_02_a_silent_job_in_a_session_of_its_own_does_not_hold_the_call() {
    let session = Session::new();
    let began = Instant::now();
    assert_eq!(session.output("setsid sleep 600 >/dev/null & echo $!").await.lines().count(), 1);
    assert!(began.elapsed() < Duration::from_secs(20));
    session.task.environment.close().await;
}

#[tokio::test]
async fn terminal_03_a_job_that_keeps_printing_does_not_hold_the_call() {
    let session = Session::new();
    let began = Instant::now();
    let output = session.output("(while true; do echo tick; sleep 0.1; done) & sleep 1; echo done").await;
    assert!(output.contains("done\n"), "{output}");
    assert!(began.elapsed() < Duration::from_secs(20));
    session.task.environment.close().await;
}

#[tokio::test]
async fn terminal_05_a_process_substitution_does_not_hide_the_end() {
    let session = Session::new();
    let got = session.run("exec > >(tee -a log.txt) 2>&1 && echo hello && exit 3").await;
    assert_eq!((&got["output"], &got["exit_code"]), (&json!("hello\n"), &json!(3)));
}

#[tokio::test]
async fn terminal_06_commands_with_a_terminal_leave_no_descriptor() {
    const ALONE: &str = "HERMES_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        // Other tests open descriptors in this process as well, so this one gets a process of its own.
        let name = "terminal_06_commands_with_a_terminal_leave_no_descriptor";
        let alone = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stdout));
        return;
    }
    let session = Session::new();
    let open = || fs::read_dir("/proc/self/fd").unwrap().count();
    session.call("terminal", json!({ "command": "true", "pty": true })).await;
    let before = open();
    for _ in 0..500 {
        session.call("terminal", json!({ "command": "true", "pty": true })).await;
    }
    assert!(open() <= before + 2, "{before} before, {} after", open());
}

#[tokio::test]
async fn terminal_07_short_commands_in_the_background_leave_no_zombie() {
    let session = Session::new();
    for _ in 0..300 {
        session.background(json!({ "command": "true" })).await;
    }
    let is_ours = |stat: &String| stat.contains("hermes") || stat.contains("(bash)") || stat.contains("(true)");
    let zombies = || {
        let stats = fs::read_dir("/proc").unwrap().flatten();
        let stats = stats.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        let parent = format!(" Z {} ", std::process::id());
        stats.filter(|stat| stat.contains(&parent) && is_ours(stat)).count()
    };
    for _ in 0..500 {
        if zombies() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} zombies", zombies());
}

#[tokio::test]
async fn terminal_08_without_a_request_there_is_no_input_to_wait_for() {
    let session = Session::new();
    for command in ["cat", "wc -l", "grep pattern -", "read -r line; echo \"got: $line\""] {
        let id = session.background(json!({ "command": command })).await;
        let ended = session.call("process", json!({ "action": "wait", "session_id": id, "timeout": 20 })).await;
        assert_eq!(ended["status"], "exited", "{command}: {ended}");
        let began = Instant::now();
        session.run(command).await;
        assert!(began.elapsed() < Duration::from_secs(20), "{command}");
    }
    let id = session.background(json!({ "command": "cat" })).await;
    let error = session.call("process", json!({ "action": "write", "session_id": id, "data": "x" })).await;
    assert!(error.to_string().contains("stdin") || error["status"] == "already_exited", "{error}");
}

#[tokio::test]
async fn terminal_09_a_line_that_is_submitted_arrives_and_what_is_written_stays_as_it_is() {
    let session = Session::new();
    let script = "while IFS= read -r line; do printf '<%s>\\n' \"$line\"; done; echo end";
    for pty in [true, false] {
        let id = session.background(json!({ "command": script, "pty": pty, "stdin": !pty })).await;
        session.call("process", json!({ "action": "submit", "session_id": id, "data": "yes" })).await;
        session.call("process", json!({ "action": "write", "session_id": id, "data": "a b\n" })).await;
        session.process("close", &id).await;
        let ended = session.call("process", json!({ "action": "wait", "session_id": id, "timeout": 20 })).await;
        let output = ended["output"].as_str().unwrap();
        assert!(output.contains("<yes>") && output.contains("<a b>") && output.contains("end"), "pty {pty}: {ended}");
    }
}

#[tokio::test]
async fn terminal_10_a_terminal_is_a_terminal_in_the_foreground_and_in_the_background() {
    let session = Session::new();
    let command = "tty >/dev/null && test -t 1 && echo yes";
    let got = session.call("terminal", json!({ "command": command, "pty": true })).await;
    assert_eq!(got["output"], "yes\n");
    assert_eq!(session.run(command).await["exit_code"], 1);
    let id = session.background(json!({ "command": command, "pty": true })).await;
    let ended = session.call("process", json!({ "action": "wait", "session_id": id, "timeout": 20 })).await;
    assert_eq!(ended["output"], "yes\n");
}

#[tokio::test]
async fn terminal_11_a_start_that_fails_says_so_at_once_and_stays_listed() {
    let session = Session::new();
    let started =
        session.call("terminal", json!({ "command": "definitely-not-a-program --x", "background": true })).await;
    assert_eq!((&started["exit_code"], &started["status"]), (&json!(127), &json!("exited")), "{started}");
    assert!(started["output"].as_str().unwrap().contains("command not found") && started["pid"].as_i64().is_some());
    let listed = session.call("process", json!({ "action": "list" })).await;
    assert_eq!(
        (&listed["processes"][0]["status"], &listed["processes"][0]["exit_code"]),
        (&json!("exited"), &json!(127))
    );
}

#[tokio::test]
async fn terminal_12_an_end_is_seen_with_the_output_by_the_first_who_asks() {
    let session = Session::new();
    let id = session.background(json!({ "command": "echo quick" })).await;
    let waited = session.call("process", json!({ "action": "wait", "session_id": id, "timeout": 20 })).await;
    assert_eq!((&waited["status"], &waited["exit_code"]), (&json!("exited"), &json!(0)), "{waited}");
    let polled = session.process("poll", &id).await;
    assert_eq!((&polled["status"], &polled["output_preview"]), (&json!("exited"), &json!("quick\n")), "{polled}");
}

#[tokio::test]
async fn terminal_13_text_of_the_locale_s_code_page_is_readable_beside_utf_8() {
    let session = Session::with(|variables| {
        variables.retain(|name, _| !name.to_string_lossy().starts_with("LC_"));
        variables.insert("LANG".into(), "zh_CN.GBK".into());
    });
    let got = session.output("printf '\\xc4\\xe3\\xba\\xc3\\n'; printf 'ok \\xe2\\x9c\\x93\\n'").await;
    assert!(got.contains("你好\nok ✓\n"), "{got}");
}

#[tokio::test]
async fn terminal_14_bytes_that_are_no_text_cost_nothing_else() {
    let session = Session::new();
    let got =
        session.run("printf 'a\\xff\\xfe\\x94b\\n'; printf '\\xe2\\x9c'; sleep 0.1; printf '\\x93\\n'; exit 4").await;
    assert_eq!((&got["output"], &got["exit_code"]), (&json!("a\u{fffd}\u{fffd}\u{fffd}b\n✓\n"), &json!(4)));
}

#[tokio::test]
async fn terminal_17_a_relative_folder_is_made_absolute_once() {
    let session = Session::new();
    fs::create_dir(session.path("proj")).unwrap();
    session.run("cd proj").await;
    let first = session.output("pwd").await;
    assert!(first.ends_with("/proj\n"));
    assert_eq!(session.output("pwd").await, first);
    fs::remove_dir(session.path("proj")).unwrap();
    let gone = session.run("pwd").await;
    assert!(gone["error"].as_str().unwrap().contains("proj is gone; the session goes on in"), "{gone}");
}

#[tokio::test]
async fn terminal_18_what_shadows_cd_and_ls_does_not_reach_our_steps() {
    let session = Session::new();
    session.run("cd() { builtin cd \"$@\"; return 1; }\nalias ls='missing-tool'").await;
    let got = session.run("echo hi").await;
    assert_eq!((&got["output"], &got["exit_code"]), (&json!("hi\n"), &json!(0)));
}

#[tokio::test]
async fn terminal_20_strict_mode_does_not_reach_the_epilogue() {
    let session = Session::new();
    assert_eq!(session.run("set -euo pipefail; echo ok").await["exit_code"], 0);
    assert_eq!(session.run("set -e; false").await["exit_code"], 1);
    assert_eq!(session.run("echo \"$undefined\"").await["exit_code"], 0);
}

#[tokio::test]
async fn terminal_21_a_here_document_without_a_last_line_break_holds_only_its_text() {
    let session = Session::new();
    session.run("cat > f.sh <<'EOF'\necho a\nEOF").await;
    assert_eq!(fs::read_to_string(session.path("f.sh")).unwrap(), "echo a\n");
}

#[tokio::test]
async fn terminal_22_many_variables_print_nothing() {
    let session = Session::new();
    let many: Vec<String> = (0..80).map(|n| format!("export VARIABLE_{n}='value {n}'")).collect();
    session.run(&many.join("\n")).await;
    assert_eq!(session.output("echo hello").await, "hello\n");
    assert_eq!(session.output("echo $VARIABLE_79").await, "value 79\n");
}

/// What a command sees in the foreground, in the background and on a terminal.
async fn environments(session: &Session) -> Vec<String> {
    let mut seen = vec![session.output("env; cat /proc/self/environ | tr '\\0' '\\n'").await];
    for pty in [false, true] {
        let id = session.background(json!({ "command": "env; echo end", "pty": pty })).await;
        session.call("process", json!({ "action": "wait", "session_id": id, "timeout": 20 })).await;
        seen.push(session.process("log", &id).await["output"].as_str().unwrap().to_owned());
    }
    seen
}

#[tokio::test]
async fn terminal_23_service_secrets_stay_behind_on_every_way() {
    let session = Session::with(|variables| {
        for (name, value) in [("CHAT_BOT_TOKEN", "s1"), ("MAIL_PASSWORD", "s2"), ("DATABASE_URL", "s3")] {
            variables.insert(name.into(), value.into());
        }
    });
    for seen in environments(&session).await {
        assert!(seen.contains("PATH="), "{seen}");
        for name in ["CHAT_BOT_TOKEN", "MAIL_PASSWORD", "DATABASE_URL"] {
            assert!(!seen.contains(name), "{name}: {seen}");
        }
    }
}

#[tokio::test]
async fn terminal_24_secrets_under_made_up_names_stay_behind_too() {
    let session = Session::with(|variables| {
        variables.insert("AUX_SUMMARY_API_KEY".into(), "x".into());
        variables.insert("RELAY_EDGE_SECRET".into(), "y".into());
    });
    for seen in environments(&session).await {
        assert!(!seen.contains("AUX_SUMMARY") && !seen.contains("RELAY_EDGE"), "{seen}");
    }
}

#[tokio::test]
async fn terminal_25_no_word_of_a_command_with_sudo_is_changed() {
    let session = Session::with(|_| {});
    let bin = session.home.work().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("sudo"), "#!/bin/sh\necho \"sudo got: $*\"\ncat\n").unwrap();
    fs::set_permissions(bin.join("sudo"), fs::Permissions::from_mode(0o755)).unwrap();
    let command = format!("PATH={}:$PATH; sudo -n true; echo \"use sudo here\"; env A=1 sudo id", bin.display());
    assert_eq!(session.output(&command).await, "sudo got: -n true\nuse sudo here\nsudo got: id\n");
}

#[tokio::test]
async fn terminal_27_an_end_is_an_end_whatever_the_last_line_looks_like() {
    let session = Session::new();
    for (command, output) in [("printf 'no newline'", "no newline"), ("printf 'password: '", "password: ")] {
        let got = session.call("terminal", json!({ "command": command, "pty": true })).await;
        assert_eq!((&got["output"], &got["exit_code"]), (&json!(output), &json!(0)));
    }
}

#[tokio::test]
async fn terminal_28_a_start_up_file_that_waits_is_left_behind_and_named() {
    let home = TempHome::new();
    let (asks, hangs, good) = (
        home.write("asks", "read -p 'name? ' n"),
        home.write("hangs", "sleep 300"),
        home.write("good", "x() { echo fine; }; cd /"),
    );
    let mut environment = LocalEnvironment::new(&home.work(), &home.user_home(), std::env::vars_os(), &[]).unwrap();
    let said = environment.read_init_files(&[asks.clone(), hangs.clone(), good], Duration::from_secs(1)).await;
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].starts_with(&hangs.display().to_string()) && said[1].contains("did not end"), "{said:?}");
    let task = Task::new(Arc::new(environment));
    let command = hermes_core::Command::new("x; pwd", Duration::from_secs(9), 9_000);
    let got = task.environment.run(command, &CancellationToken::new()).await.unwrap();
    assert_eq!(got.output, format!("fine\n{}\n", home.work().canonicalize().unwrap().display()));
}

#[tokio::test]
async fn terminal_30_the_first_line_is_never_lost() {
    let session = Session::new();
    for _ in 0..200 {
        assert_eq!(session.output("echo one && echo two").await, "one\ntwo\n");
    }
}

#[tokio::test]
async fn terminal_31_silence_is_no_end() {
    let session = Session::new();
    // Longer than the quiet after which a server is looked for.
    let got = session.call("terminal", json!({ "command": "sleep 7; echo ready", "timeout": 60 })).await;
    assert_eq!((&got["output"], &got["exit_code"]), (&json!("ready\n"), &json!(0)));
}

#[tokio::test]
async fn terminal_33_a_line_that_comes_all_the_time_is_told_once() {
    let session = Session::new();
    let command = "for i in {1..100}; do echo ready; sleep 0.01; done";
    let id = session.background(json!({ "command": command, "watch_patterns": ["ready"] })).await;
    session.call("process", json!({ "action": "wait", "session_id": id, "timeout": 30 })).await;
    assert_eq!(session.table.news().len(), 1);
}

#[tokio::test]
async fn terminal_34_jobs_end_with_their_session() {
    let session = Session::new();
    let mut pids = Vec::new();
    for _ in 0..20 {
        let started = session.call("terminal", json!({ "command": "sleep 300 & sleep 300", "background": true })).await;
        pids.push(started["pid"].as_i64().unwrap());
    }
    session.task.environment.close().await;
    let left: Vec<&i64> = pids.iter().filter(|pid| Path::new(&format!("/proc/{pid}")).exists()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn terminal_41_the_same_command_gives_the_same_output_and_none_is_said() {
    let session = Session::new();
    let expected = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
    for _ in 0..50 {
        assert_eq!(session.output("seq 1 10").await, expected);
    }
    let report = session.report("terminal", json!({ "command": "true" })).await;
    assert_eq!(report.summary, "exit 0 · no output");
}
