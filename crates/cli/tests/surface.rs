//! The command line itself: version, help, completions, usage errors, the tour.
#![allow(clippy::unwrap_used)]

mod common;

use common::hermes;

#[test]
fn version_help_and_completions_print_and_end_with_0() {
    let hermes = hermes();
    assert_eq!(hermes.run(&["--version"]).out, format!("hermes {}\n", env!("CARGO_PKG_VERSION")));
    let help = hermes.run(&["--help"]);
    assert!(help.code == 0 && help.out.contains("hermes run \"why does the build fail?\""), "{}", help.out);
    for shell in ["bash", "zsh", "fish"] {
        let ran = hermes.run(&["completions", shell]);
        assert!(ran.code == 0 && ran.out.contains("hermes") && ran.out.contains("definitions"), "{shell}");
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let hermes = hermes();
    for command in [
        &["run"][..],
        &["chat"],
        &["config", "path"],
        &["tour"],
        &["doctor"],
        &["completions"],
        &["tools", "list"],
        &["tools", "show"],
        &["tools", "call"],
        &["tools", "exec"],
        &["tools", "definitions"],
        &["config", "get"],
        &["config", "set"],
        &["approvals", "check"],
        &["approvals", "list"],
        &["approvals", "allow"],
        &["approvals", "revoke"],
        &["approvals", "test"],
        &["approvals", "log"],
        &["processes", "list"],
        &["processes", "log"],
        &["processes", "kill"],
        &["processes", "reap"],
        &["processes", "attach"],
        &["env", "list"],
        &["env", "test"],
        &["sandbox", "check"],
        &["sandbox", "run"],
    ] {
        let args: Vec<&str> = command.iter().chain(&["--help"]).copied().collect();
        let ran = hermes.run(&args);
        assert!(ran.code == 0 && ran.out.contains("Example"), "{command:?}: {}", ran.out);
    }
}

#[test]
fn a_wrong_command_line_is_one_line_and_exit_2() {
    let hermes = hermes();
    hermes.run(&["nonsense"]).is_refused(2, &["nonsense", "hermes --help"]);
    hermes.run(&["tools", "lst"]).is_refused(2, &["lst", "list"]);
    hermes.run(&["run", "--approve", "maybe", "x"]).is_refused(2, &["maybe", "ask, smart, rehearse, all, none"]);
    hermes.run(&["run", "--max-turns", "0", "x"]).is_refused(2, &["--max-turns"]);
    hermes.run(&["config", "set", "agent.max_turns"]).is_refused(2, &["<VALUE>"]);
    hermes.run(&["-q", "task", "tools", "list"]).is_refused(2, &["-q TASK", "no command"]);
    hermes.run(&[]).is_refused(2, &["needs a terminal", "hermes run"]);
}

#[test]
fn the_tour_uses_every_tool_says_that_it_is_scripted_and_leaves_nothing() {
    let hermes = hermes();
    let ran = hermes.run(&["tour"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(ran.out.contains("The model in this tour is scripted"), "{}", ran.out);
    for tool in ["todo", "search_files", "write_file", "read_file", "patch", "calculate", "clarify", "terminal"] {
        assert!(ran.out.lines().any(|line| line.split_whitespace().nth(1) == Some(tool)), "{tool}: {}", ran.out);
    }
    // One question about what would do harm, with what would be gone, and an answer; nothing else is asked about.
    assert!(ran.out.contains("rm -rf drafts") && ran.out.contains("1 file, 40 bytes under drafts"), "{}", ran.out);
    assert_eq!(ran.out.matches("[o]nce").count(), 1, "{}", ran.out);
    assert!(ran.out.contains("once   ← answered by the script"), "{}", ran.out);
    assert!(!ran.out.contains("refused"), "{}", ran.out);
    assert!(ran.out.contains("there is no tool `list_files`"), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'), "colours on something that is no terminal");
    let folder = ran.out.split("They happen in\n").nth(1).unwrap().split(',').next().unwrap();
    assert!(folder.starts_with('/') && !std::path::Path::new(folder).exists(), "{folder}");
    assert!(!hermes.home.home().join("approvals.jsonl").exists(), "an answer of the tour is none of the user's");
}
