//! What is on, for whom and why: `hermes tools enable|disable|list` and `hermes toolsets`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Hermes, hermes};
use serde_json::{Value, json};

fn config(hermes: &Hermes) -> String {
    std::fs::read_to_string(hermes.home.home().join("config.yaml")).unwrap_or_default()
}

/// The tools that are on for `platform`, as the list says and as they would be sent; the two must agree.
fn on(hermes: &Hermes, platform: &str) -> Vec<String> {
    let list = hermes.run(&["tools", "list", "--json", "--platform", platform]).json();
    let is_on = |tool: &&Value| tool["on"] == true;
    let listed: Vec<String> =
        list.as_array().unwrap().iter().filter(is_on).map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let sent = hermes.run(&["tools", "definitions", "--json", "--platform", platform]).json();
    let names = sent.as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    assert_eq!(names.collect::<Vec<_>>(), listed);
    listed
}

#[test]
fn switching_off_and_on_edits_the_list_of_one_platform_and_nothing_else() {
    let hermes = hermes();
    hermes.home.write_config("# mine\nagent:\n  max_turns: 9 # enough\n");
    let all = on(&hermes, "cli");
    let ran = hermes.run(&["tools", "disable", "terminal", "patch"]);
    assert_eq!((ran.code, ran.out.lines().next()), (0, Some("off: patch, process, terminal")), "{ran:?}");
    let text = config(&hermes);
    assert!(text.starts_with("# mine\nagent:\n  max_turns: 9 # enough\n"), "{text}");
    assert_eq!(
        hermes.run(&["config", "get", "platform_toolsets", "--json"]).json(),
        json!({ "cli": ["hermes-cli", "-terminal", "-patch"] })
    );
    let now = on(&hermes, "cli");
    // `terminal` is a toolset as well: `process` goes with it.
    assert_eq!(now.len() + 3, all.len());
    assert!(!now.contains(&"terminal".to_owned()) && !now.contains(&"patch".to_owned()));
    assert_eq!(on(&hermes, "telegram"), all, "another surface is not concerned");

    let ran = hermes.run(&["tools", "enable", "terminal", "--json"]);
    assert_eq!((&ran.json()["turned_on"], &ran.json()["turned_off"]), (&json!(["process", "terminal"]), &json!([])));
    hermes.run(&["tools", "enable", "patch"]);
    assert_eq!(on(&hermes, "cli"), all);
    // The file as it was before the last change is kept.
    let kept = std::fs::read_to_string(hermes.home.home().join("config.yaml.last-good")).unwrap();
    assert!(kept.contains("-patch") && kept.contains("# enough"), "{kept}");
}

#[test]
fn one_tool_of_a_set_that_is_off_can_be_switched_on() {
    let hermes = hermes();
    hermes.run(&["tools", "disable", "file"]);
    assert!(!on(&hermes, "cli").iter().any(|tool| tool.contains("file") || tool == "patch"));
    hermes.run(&["tools", "enable", "read_file"]);
    let now = on(&hermes, "cli");
    assert!(now.contains(&"read_file".to_owned()) && !now.contains(&"write_file".to_owned()), "{now:?}");
    // What is disabled for everybody is switched on by name as well.
    hermes.home.write_config("agent: {disabled_toolsets: [terminal, math]}\n");
    hermes.run(&["tools", "enable", "terminal"]);
    let now = on(&hermes, "cli");
    assert!(now.contains(&"terminal".to_owned()) && !now.contains(&"calculate".to_owned()), "{now:?}");
}

#[test]
fn an_unknown_name_changes_nothing_and_is_answered_with_the_nearest() {
    let hermes = hermes();
    let before = config(&hermes);
    for verb in ["enable", "disable"] {
        hermes.run(&["tools", verb, "math", "terminol"]).is_refused(2, &["\"terminol\"", "did you mean \"terminal\""]);
        hermes.run(&["tools", verb, "math", "--platform", "telegrm"]).is_refused(2, &["did you mean \"telegram\""]);
    }
    for args in [
        &["tools", "list", "--toolsets", "wep"][..],
        &["toolsets", "show", "wep"],
        &["toolsets", "resolve", "file,-wep"],
        &["tools", "definitions", "--toolsets", "wep"],
        &["run", "--toolsets", "wep", "hi", "--model", "script:x"],
    ] {
        let ran = hermes.run(args);
        assert!(ran.code != 0 && ran.out.is_empty(), "{ran:?}");
    }
    hermes.run(&["toolsets", "show", "wep"]).is_refused(2, &["did you mean \"web\"", "hermes toolsets list"]);
    assert_eq!(config(&hermes), before);
    // A checklist needs somebody to tick.
    hermes.run(&["tools"]).is_refused(2, &["needs a terminal", "hermes tools list"]);
}

#[test]
fn a_restriction_that_nobody_reads_is_an_error_with_the_place_where_it_belongs() {
    let hermes = hermes();
    hermes.home.write_config("disabled_toolsets: [terminal]\n");
    hermes.run(&["tools", "list"]).is_refused(1, &["line 1", "did you mean \"agent.disabled_toolsets\""]);
    for (yaml, place) in [
        ("agent: {disabled_toolsets: [termnal]}\n", "agent.disabled_toolsets in config.yaml"),
        ("platform_toolsets: {cli: [hermes-cli, -termnal]}\n", "platform_toolsets.cli in config.yaml"),
        ("toolsets: [termnal]\n", "toolsets in config.yaml"),
    ] {
        hermes.home.write_config(yaml);
        hermes.run(&["tools", "list"]).is_refused(2, &[place, "did you mean \"terminal\""]);
        let doctor = hermes.run(&["doctor"]);
        assert!(doctor.code == 1 && doctor.out.contains("did you mean \"terminal\""), "{doctor:?}");
    }
}

#[test]
fn a_restriction_in_quotes_restricts_and_says_that_it_is_a_text() {
    let hermes = hermes();
    for list in ["'[\"terminal\",\"file\"]'", "terminal, file"] {
        hermes.home.write_config(&format!("agent:\n  disabled_toolsets: {list}\n"));
        let ran = hermes.run(&["tools", "list", "--json"]);
        assert!(ran.err.contains("is a text; it is read as a list"), "{}", ran.err);
        let now = on(&hermes, "cli");
        assert!(
            now.contains(&"todo".to_owned()) && !now.iter().any(|tool| tool == "terminal" || tool == "read_file"),
            "{now:?}"
        );
    }
}

#[test]
fn an_empty_list_is_no_tools_and_says_so_and_an_absent_one_is_the_platforms() {
    let hermes = hermes();
    hermes.home.write_config("platform_toolsets: {cli: []}\n");
    assert!(on(&hermes, "cli").is_empty());
    let list = hermes.run(&["tools", "list"]).out;
    assert!(list.contains("the list of toolsets is empty, so no tool is on"), "{list}");
    hermes.home.write_config("platform_toolsets: {telegram: []}\n");
    assert!(!on(&hermes, "cli").is_empty());
}

#[test]
fn what_is_switched_off_is_no_trouble_for_the_doctor() {
    let hermes = hermes();
    hermes.home.write_config("model: {probe_local: false}\nagent: {disabled_toolsets: [vision, tts, math]}\n");
    let doctor = hermes.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    let said = "usable, 1 switched off: calculate by disabled: math";
    assert!(doctor.out.contains(said), "{}", doctor.out);
}

#[test]
fn a_broken_file_is_left_as_it_is_by_whatever_wants_to_change_it() {
    let hermes = hermes();
    let broken = "model:\n  default: [\n# a note\n";
    let path = hermes.home.write_config(broken);
    for args in
        [&["config", "set", "model.default", "x"][..], &["tools", "disable", "terminal"], &["tools", "enable", "web"]]
    {
        let ran = hermes.run(args);
        assert_eq!((ran.code, std::fs::read_to_string(&path).unwrap().as_str()), (1, broken), "{ran:?}");
    }
    assert!(!hermes.home.home().join("config.yaml.last-good").exists(), "what is broken is no good copy");
}

#[test]
fn toolsets_are_listed_shown_and_resolved_with_the_reason_for_every_tool() {
    let hermes = hermes();
    let list = hermes.run(&["toolsets", "list"]).out;
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    for name in ["web", "debugging", "coding", "hermes-discord", "hermes-gateway"] {
        assert!(list.contains(&format!("\n  {name} ")), "{name}: {list}");
    }
    let show = hermes.run(&["toolsets", "show", "debugging"]).out;
    assert!(show.contains("includes  web · file") && show.contains("(web_search)"), "{show}");
    let why = hermes.run(&["toolsets", "resolve", "debugging,-web", "--why"]);
    assert_eq!(why.code, 0, "{why:?}");
    for line in [
        "+ patch             file ← debugging",
        "+ terminal          debugging",
        "− web_extract       removed by -web",
        "+ process           debugging",
    ] {
        assert!(why.out.contains(line), "{line}: {}", why.out);
    }
    assert_eq!(hermes.run(&["toolsets", "resolve", "--why", "-terminal,web,file"]).code, 0);
    let json = hermes.run(&["toolsets", "resolve", "file,math", "--json"]).json();
    let calculate = json["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "calculate").unwrap().clone();
    assert_eq!(calculate, json!({ "name": "calculate", "on": true, "why": "math" }));
    assert_eq!(hermes.run(&["toolsets", "resolve", "math"]).out, "calculate\n");
}

#[test]
fn a_toolset_of_ones_own_is_there_at_once_and_a_cycle_in_it_is_said() {
    let hermes = hermes();
    for place in ["toolsets", "custom_toolsets"] {
        hermes.home.write_config(&format!(
            "{place}:\n  mine:\n    description: reading only\n    tools: [read_file, not_there_yet]\n    includes: [math, other]\n  other: {{includes: [mine]}}\n"
        ));
        let show = hermes.run(&["toolsets", "show", "mine"]);
        assert!(show.out.starts_with("mine · reading only · custom"), "{show:?}");
        assert!(show.out.contains("toolset \"mine\" includes itself, through \"other\""), "{}", show.out);
        assert!(show.out.contains("\"not_there_yet\", which is no tool here so far"), "{}", show.out);
        assert_eq!(
            hermes.run(&["toolsets", "resolve", "mine"]).out.lines().take(2).collect::<Vec<_>>(),
            ["calculate", "read_file"]
        );
    }
    hermes.home.write_config("custom_toolsets: {web: {tools: [terminal]}}\n");
    hermes
        .run(&["tools", "list"])
        .is_refused(1, &["custom_toolsets in config.yaml", "\"web\"", "Hermes has one of that name"]);
}

#[test]
fn every_dialect_can_be_printed() {
    let hermes = hermes();
    for (provider, pointer) in [
        ("openai", "/0/function/name"),
        ("openai-responses", "/0/name"),
        ("anthropic", "/0/input_schema/type"),
        ("gemini", "/0/parameters/type"),
        ("local", "/0/function/parameters/type"),
    ] {
        let list = hermes.run(&["tools", "definitions", "--json", "--provider", provider]).json();
        assert!(list.pointer(pointer).is_some(), "{provider}: {}", list[0]);
    }
}

#[test]
fn what_coercion_changed_is_in_the_json_of_a_call_and_of_a_line() {
    let hermes = hermes();
    hermes.home.write("a.txt", "one\ntwo\n");
    let call = hermes.run(&["tools", "call", "read_file", r#"{"path": "a.txt", "limit": "1"}"#, "--json"]).json();
    assert_eq!(
        (&call["status"], &call["coerced"]),
        (&json!("ok"), &json!([{ "field": "limit", "from": "1", "to": 1 }]))
    );
    let exec = hermes
        .command(&["tools", "exec"])
        .write_stdin("{\"id\": 1, \"tool\": \"read_file\", \"args\": {\"path\": \"a.txt\", \"limit\": \"1\"}}\n")
        .output()
        .unwrap();
    let line: Value = serde_json::from_slice(&exec.stdout).unwrap();
    assert_eq!(
        (&line["status"], &line["coerced"]),
        (&json!("ok"), &json!([{ "field": "limit", "from": "1", "to": 1 }]))
    );
}

#[test]
fn a_worker_of_the_board_gets_the_board_and_a_code_base_may_choose_the_tools() {
    let hermes = hermes();
    hermes.home.write_config("platform_toolsets: {cli: [math]}\n");
    let list = hermes.command(&["tools", "list", "--all", "--json"]).env("HERMES_KANBAN_TASK", "t1").output().unwrap();
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert!(
        list.as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "kanban_show" && tool["why"] == "not in this build yet (kanban)"),
        "{list}"
    );

    hermes.home.write_config(
        "model: {probe_local: false}\nagent: {coding_context: focus}\nplatform_toolsets: {cli: [hermes-cli, -terminal]}\n",
    );
    let script = |tool: &str, arguments: &str| {
        let call = format!(r#"{{"calls": [{{"name": "{tool}", "arguments": {arguments}}}]}}"#);
        hermes.script(&[&call, r#"{"text": "ok"}"#])
    };
    let run = |tool: &str, arguments: &str| {
        let model = script(tool, arguments);
        let lines = hermes.run(&["run", "--json", "--approve", "all", "--model", &model, "go"]).lines();
        lines.into_iter().find(|line| line["type"] == "tool_result").unwrap()["status"].clone()
    };
    let (sum, command) = (r#"{"expression": "1+1"}"#, r#"{"command": "true"}"#);
    let speaks = || hermes.run(&["tools", "list", "--all", "--json"]).out.contains("text_to_speech");
    assert_eq!((run("calculate", sum), run("terminal", command)), (json!("ok"), json!("out_of_scope")));
    assert!(speaks());
    hermes.home.write("Cargo.toml", "");
    assert_eq!((run("calculate", sum), run("terminal", command)), (json!("ok"), json!("out_of_scope")));
    assert!(!speaks(), "who works on code is not spoken to");
    // A list that somebody wrote without the terminal's own toolset is meant as it is.
    hermes.home.write_config(
        "model: {probe_local: false}\nagent: {coding_context: focus}\nplatform_toolsets: {cli: [math]}\n",
    );
    assert_eq!((run("calculate", sum), run("terminal", command)), (json!("ok"), json!("out_of_scope")));
    assert_eq!(on(&hermes, "cli"), ["calculate"]);
}

#[test]
fn two_who_switch_at_the_same_time_both_get_what_they_asked_for() {
    let hermes = hermes();
    let names = ["math", "terminal", "patch", "read_file", "write_file", "todo", "search_files"];
    std::thread::scope(|scope| {
        for name in names {
            let hermes = &hermes;
            scope.spawn(move || assert_eq!(hermes.run(&["tools", "disable", name]).code, 0));
        }
    });
    let mut stored = hermes.run(&["config", "get", "platform_toolsets", "--json"]).json()["cli"].clone();
    let stored = stored.as_array_mut().unwrap();
    assert_eq!(stored.len(), names.len() + 1, "{stored:?}");
}

#[test]
fn a_bundle_leaves_the_core_and_what_is_as_asked_is_not_written() {
    let hermes = hermes();
    let (before, all) = (config(&hermes), on(&hermes, "cli"));
    let ran = hermes.run(&["tools", "disable", "hermes-telegram"]);
    assert!(ran.out.starts_with("nothing changes here") && ran.out.contains("still on: calculate"), "{ran:?}");
    hermes.run(&["tools", "enable", "file"]);
    assert_eq!(config(&hermes), before, "nothing was written, so `toolsets` still counts");
    hermes.home.write_config("platform_toolsets: {cli: [cli, -coding, -math]}\n");
    let ran = hermes.run(&["tools", "enable", "calculate", "--json"]);
    assert_eq!((&ran.json()["turned_on"], &ran.json()["turned_off"]), (&json!(["calculate"]), &json!([])), "{ran:?}");
    assert_eq!(on(&hermes, "cli"), all);
    hermes.run(&["tools", "disable", "hermes-cli"]);
    assert!(on(&hermes, "cli").is_empty());
    // What was off for every surface, and is not any more, is said.
    hermes.home.write_config("agent: {disabled_toolsets: [terminal, file]}\n");
    let ran = hermes.run(&["tools", "enable", "terminal"]);
    assert!(
        ran.out.contains("agent.disabled_toolsets = [file] in") && ran.out.contains("counts for every surface"),
        "{ran:?}"
    );
    let ran = hermes.run(&["tools", "enable", "read_file", "--json"]);
    assert_eq!(ran.json()["not_as_asked"][0]["why"], "read_file removed by disabled: file");
}

#[test]
fn what_is_no_name_and_what_would_be_lost_is_refused() {
    let hermes = hermes();
    let before = config(&hermes);
    hermes
        .run(&["tools", "disable", "--", "-file"])
        .is_refused(2, &["\"-file\" is no name", "hermes tools disable file"]);
    hermes.run(&["tools", "enable", "discord"]).is_refused(2, &["--platform discord"]);
    assert_eq!(hermes.run(&["tools", "enable", "discord", "--platform", "discord"]).code, 0);
    assert_eq!(config(&hermes), before, "it is on there already");
    hermes.run(&["tools", "list", "--platform", "telegrm"]).is_refused(2, &["did you mean \"telegram\""]);
    hermes.run(&["config", "set", "platform_toolsets.cli", "[web]"]).is_refused(2, &["hermes tools enable|disable"]);
    hermes.run(&["tools", "enable", "no_mcp"]).is_refused(2, &["is a word for lists"]);
    hermes.run(&["tools", "enable", " , "]).is_refused(2, &["no name is given"]);
    hermes.run(&["tools", "--platform", "telegram", "disable", "web"]).is_refused(2, &["--platform"]);
    hermes.run(&["--disable", "terminal", "tools", "list"]).is_refused(2, &["before the command"]);
    hermes.run(&["config", "set", "platform_toolsets", "{cli: []}"]).is_refused(2, &["hermes tools enable|disable"]);
    hermes.run(&["config", "set", "agent.disabled_toolsets", "[-file]"]).is_refused(2, &["\"-file\""]);
    assert_eq!(config(&hermes), before);
    let ran = hermes.run(&["tools", "disable", "math, terminal"]);
    assert_eq!((ran.code, ran.out.lines().next()), (0, Some("off: calculate, process, terminal")), "{ran:?}");

    let mine = "toolsets:\n  mine: {tools: [read_file]} # for reading\n";
    hermes.home.write_config(mine);
    hermes.run(&["config", "set", "toolsets", "[web]"]).is_refused(1, &["(mine), which would be lost"]);
    assert_eq!(config(&hermes), mine);
    hermes.home.write_config("custom_toolsets: {read_file: {tools: [terminal]}}\n");
    hermes.run(&["tools", "list"]).is_refused(1, &["\"read_file\"", "a tool is called that"]);
    hermes.home.write_config("agent: {disabled_toolsets: [-file]}\n");
    hermes.run(&["tools", "list"]).is_refused(2, &["agent.disabled_toolsets in config.yaml", "\"-file\""]);
    hermes.home.write_config("model: {probe_local: false}\nplatform_toolsets: {telegram: [wep]}\n");
    let doctor = hermes.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.out.contains("platform_toolsets.telegram"), "{doctor:?}");
}
