//! What earlier commands of a session left decides what a word of the next one means.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use hermes_core::{Effect, Judge as _, JudgeRequest, Touches, Verdict};
use hermes_guard::Guard;
use hermes_guard::paths::PathPolicy;
use hermes_guard::policy::Policy;
use hermes_testkit::FakeTool;
use serde_json::json;

const HOME: &str = "/home/u";

fn judged(carried: &str, command: &str) -> Verdict {
    let (home, own, work) = (Path::new(HOME), Path::new("/home/u/.hermes"), Path::new("/home/u/code"));
    let policy = Policy::read(Some(&json!({})), &[]).unwrap();
    let guard = Guard::new(home, "u", own, PathPolicy::new(home, own), policy);
    let spec = hermes_core::Tool::spec(&FakeTool::new("terminal").effect(Effect::Execute)).clone();
    let touches = Touches::executing(command);
    guard.judge(&JudgeRequest {
        carried,
        spec: &spec,
        arguments: &serde_json::Map::new(),
        stated: &touches,
        touches: &touches,
        root: work,
        cwd: work,
        shares_our_files: false,
        own_folders: &[],
    })
}

#[test]
fn a_function_or_alias_of_an_earlier_command_is_judged_where_it_is_used() {
    for carried in ["ls () \n{ \n    rm -rf ~/*\n}\n", "alias ls='rm -rf ~/*'\n"] {
        assert!(matches!(judged(carried, "ls"), Verdict::Refuse(_)), "{carried}");
        assert_eq!(judged(carried, "pwd"), Verdict::Allow, "{carried}");
    }
    assert_eq!(judged("", "ls"), Verdict::Allow);
}

#[test]
fn a_variable_of_an_earlier_command_is_known() {
    assert!(matches!(judged("export TARGET='/'\n", "rm -rf $TARGET"), Verdict::Refuse(_)));
    assert!(matches!(judged("export TARGET='/home/u/code/build'\n", "rm -rf \"$TARGET\""), Verdict::Ask(_)));
}

#[test]
fn what_was_defined_before_is_not_this_command_s_doing() {
    let path = "export PATH='/tmp/tools:/usr/bin'\n";
    assert_eq!(judged(path, "true"), judged("", "true"));
}

#[test]
fn definitions_that_cannot_be_read_make_every_command_a_question() {
    assert!(matches!(judged("f () \n{ \n    echo 'open\n", "true"), Verdict::Ask(_)));
}
