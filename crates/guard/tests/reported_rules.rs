//! Rules and approvals for good that went wrong in the field, one test for each row of `cases/reports.jsonl` that is
//! about what a yes or a rule covers. `cases/reports.places` lists the rows that are here.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "the helpers of a test are tests too")]

use std::path::Path;

use hermes_core::{ApprovalScope, Effect, Judge as _, JudgeRequest, ToolSpec, Touches, Verdict};
use hermes_guard::paths::PathPolicy;
use hermes_guard::policy::Policy;
use hermes_guard::{CommandVerdict, Guard, World};
use hermes_testkit::{FakeTool, reports};
use serde_json::{Value, json};

const HOME: &str = "/home/u";
const WORK: &str = "/home/u/project";

#[test]
fn the_rows_that_belong_here_are_here() {
    let rows = reports::placed_in("crates/guard/tests/reported_rules.rs");
    assert!(!rows.is_empty());
    assert_eq!(reports::tested_here(&rows), rows);
}

fn guard(rules: &Value, allowlist: &[String]) -> Guard {
    let policy = Policy::read(Some(&json!({ "rules": rules })), allowlist).unwrap();
    let (home, own) = (Path::new(HOME), Path::new("/home/u/.hermes"));
    Guard::new(home, "u", own, PathPolicy::new(home, own), policy)
}

fn heard(guard: &Guard, command: &str) -> CommandVerdict {
    guard.judge_command("terminal", command, &World::new(HOME, WORK))
}

/// The verdict on a call of `tool` by somebody else, who says nothing about what it touches.
fn called(guard: &Guard, tool: &str, effect: Effect, arguments: &Value) -> Verdict {
    let spec: ToolSpec = hermes_core::Tool::spec(&FakeTool::new(tool).effect(effect)).clone();
    let (nothing, work) = (Touches::nothing(), Path::new(WORK));
    guard.judge(&JudgeRequest {
        carried: "",
        spec: &spec,
        arguments: arguments.as_object().unwrap(),
        stated: &nothing,
        touches: &nothing,
        root: work,
        cwd: work,
        shares_our_files: false,
        own_folders: &[],
    })
}

/// It runs without a question.
fn runs(verdict: &CommandVerdict) -> bool {
    verdict.denied.is_none() && verdict.hardline().is_none() && verdict.open.is_empty() && verdict.asked.is_empty()
}

/// What "always" would store for a command; `None` if a part of it can only be allowed once.
fn always(command: &str) -> Option<Vec<String>> {
    let open = heard(&guard(&json!([]), &[]), command).open;
    assert!(!open.is_empty(), "{command} asks");
    open.into_iter().map(|(_, scope)| scope.map(|scope| scope.to_string())).collect()
}

// 05-approval-11
#[test]
fn approval_11_a_pipeline_of_allowed_programs_is_not_asked_about() {
    let guard =
        guard(&json!([{ "pattern": "git *", "action": "allow" }, { "pattern": "grep *", "action": "allow" }]), &[]);
    for command in [
        "git diff --stat | grep rs",
        "git diff --stat 2>&1 | grep rs",
        "git log --oneline >/dev/null",
        "git status && git diff | grep -c x 2>/dev/null",
    ] {
        assert!(runs(&heard(&guard, command)), "{command}");
    }
    // Allowed together, not allowed to bring others along.
    assert!(!runs(&heard(&guard, "git diff --stat | grep rs | xargs rm -rf")));
}

// 05-approval-12
#[test]
fn approval_12_always_stores_what_the_shell_runs_and_never_the_shell() {
    let stored = always("/bin/zsh -lc 'rm -rf build'").unwrap();
    assert_eq!(stored, [format!("rm delete in:{WORK}")]);
    let guard = guard(&json!([]), &stored);
    assert!(runs(&heard(&guard, "/bin/zsh -lc 'rm -rf build'")));
    for command in [
        "/bin/zsh -lc 'curl x | sh'",
        "/bin/zsh -lc 'git push --force'",
        "/bin/zsh -lc \"$CMD\"",
        "zsh x.sh; rm -rf ~/old",
    ] {
        assert!(!runs(&heard(&guard, command)), "{command}");
    }
    // What a shell is given unread cannot be approved for longer at all.
    for command in ["curl x | sh", "bash -c \"$CMD\"", "base64 -d notes.b64 | bash"] {
        let open = heard(&guard, command).open;
        assert!(open.iter().any(|(_, scope)| scope.is_none()), "{command}");
    }
}

// 05-approval-13
#[test]
fn approval_13_a_yes_for_what_a_wrapper_runs_is_none_for_the_wrapper() {
    for wrapper in
        ["flock lock", "nice -n 5", "timeout 5", "env A=1", "nohup", "time", "stdbuf -o0", "setsid", "ionice -c3"]
    {
        let stored = always(&format!("{wrapper} rm -rf build")).unwrap();
        assert_eq!(stored, [format!("rm delete in:{WORK}")], "{wrapper}");
        let guard = guard(&json!([]), &stored);
        assert!(runs(&heard(&guard, &format!("{wrapper} rm -rf dist"))), "{wrapper}");
        for inner in ["sh -c 'curl x | sh'", "git push --force", "sh -c \"$X\"", "rm -rf ~/old"] {
            assert!(!runs(&heard(&guard, &format!("{wrapper} {inner}"))), "{wrapper} {inner}");
        }
    }
}

// 05-approval-30
#[test]
fn approval_30_a_rule_is_about_the_whole_command_with_its_options() {
    let guard =
        guard(&json!([{ "pattern": "pkill *", "action": "ask" }, { "pattern": "npm run *", "action": "deny" }]), &[]);
    for command in ["pkill -f worker", "pkill", "pkill -9 -u me x", "ls && pkill -f worker", "cd src; PKILL -f worker"]
    {
        assert_eq!(heard(&guard, command).asked.len(), 1, "{command}");
    }
    for command in ["npm run build", "npm   run build --watch", "true | npm run x"] {
        assert!(heard(&guard, command).denied.is_some(), "{command}");
    }
    for command in ["pgrep -f worker", "echo pkill -f worker", "npm test", "ls # pkill x"] {
        assert!(runs(&heard(&guard, command)), "{command}");
    }
}

// 05-approval-40
#[test]
fn approval_40_a_rule_of_the_user_counts_more_than_what_a_tool_says_about_itself() {
    let call = json!({ "path": "/" });
    for effect in [Effect::Read, Effect::Network, Effect::Write, Effect::Execute] {
        let allowing = guard(&json!([{ "tool": "mcp__s__list", "action": "allow" }]), &[]);
        assert_eq!(called(&allowing, "mcp__s__list", effect, &call), Verdict::Allow, "{effect:?}");
        let asking = guard(&json!([{ "tool": "mcp__s__*", "action": "ask" }]), &[]);
        assert!(matches!(called(&asking, "mcp__s__list", effect, &call), Verdict::Ask(_)), "{effect:?}");
        let denying =
            guard(&json!([{ "tool": "mcp__s__list", "action": "allow" }, { "tool": "mcp__*", "action": "deny" }]), &[]);
        assert!(matches!(called(&denying, "mcp__s__list", effect, &call), Verdict::Refuse(_)), "{effect:?}");
    }
    // One that asks beats one that allows, and it is a person who is asked.
    let both = json!([{ "tool": "mcp__s__list", "action": "allow" }, { "tool": "mcp__s__*", "action": "ask" }]);
    for effect in [Effect::Read, Effect::Network] {
        let Verdict::Ask(concern) = called(&guard(&both, &[]), "mcp__s__list", effect, &call) else {
            panic!("{effect:?}")
        };
        assert!(concern.doubts.iter().any(|doubt| doubt.by_person), "{concern:?}");
    }
    // Without a rule, whatever could act is asked about, and the yes is for exactly this call.
    let Verdict::Ask(concern) = called(&guard(&json!([]), &[]), "mcp__s__list", Effect::Network, &call) else {
        panic!()
    };
    let scopes: Vec<Option<ApprovalScope>> = concern.doubts.into_iter().map(|doubt| doubt.scope).collect();
    assert!(scopes.iter().flatten().all(|scope| !scope.lasting) && scopes.len() == 1, "{scopes:?}");
}

// 05-approval-43
#[test]
fn approval_43_an_argument_of_a_foreign_tool_is_judged_as_the_command_it_is() {
    let judging = guard(
        &json!([{ "tool": "mcp__*", "argument": "command", "action": "judge" }, { "pattern": "rm *", "action": "deny" }]),
        &[],
    );
    let judging_only = guard(&json!([{ "tool": "mcp__*", "argument": "command", "action": "judge" }]), &[]);
    let ssh =
        |guard: &Guard, command: &str| called(guard, "mcp__ssh__exec", Effect::Execute, &json!({ "command": command }));
    let Verdict::Ask(concern) = ssh(&judging_only, "rm -rf /srv/data") else { panic!("it asks") };
    assert!(concern.doubts[0].what.contains("/srv/data"), "{concern:?}");
    assert!(matches!(ssh(&judging_only, "rm -rf /"), Verdict::Refuse(_)));
    assert_eq!(ssh(&judging_only, "ls /srv"), Verdict::Allow);
    // A rule about commands of the terminal is one about the terminal.
    assert!(matches!(ssh(&judging, "rm -rf /srv/data"), Verdict::Ask(_)));
    // Another tool of the same server that carries a command elsewhere is asked about as a whole.
    let other = called(&judging_only, "mcp__ssh__put", Effect::Execute, &json!({ "script": "rm -rf /srv/data" }));
    assert!(matches!(other, Verdict::Ask(_)));
}
