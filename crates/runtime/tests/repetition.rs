//! The brakes: the same call with the same result, again and again, is told, then stopped, then ends the turn. Honest
//! repetition passes.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use hermes_core::{Answer, Approval, Effect, HookDecision, JsonMap, StopTurn, ToolError, Touches};
use hermes_runtime::{CallReport, Guardrails, Hooks, Status};
use hermes_testkit::{FakeTool, ScriptedPerson};
use proptest::prelude::*;
use serde_json::{Value, json};
use setting::hooks::Gate;
use setting::{Setting, answer};

fn braked<'a>(tools: impl IntoIterator<Item = &'a Arc<FakeTool>>) -> Setting {
    let mut setting = Setting::new(tools).allowing_all();
    setting.task.guardrails = Some(Guardrails::default());
    setting
}

fn same(name: &str) -> Arc<FakeTool> {
    Arc::new(FakeTool::new(name).effect(Effect::Read))
}

fn failing(name: &str) -> Arc<FakeTool> {
    Arc::new(FakeTool::new(name).result(Err(ToolError::tell("the server is down"))))
}

fn hint(report: &CallReport) -> Option<&str> {
    report.text.split_once("\n\n[Tool loop ").map(|(_, hint)| hint)
}

fn code(report: &CallReport) -> String {
    answer(report)["guardrail"]["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_same_result_is_told_the_second_time_and_not_fetched_the_sixth_time() {
    let tool = same("look");
    let setting = braked([&tool]);
    for n in 1..=5 {
        let report = setting.call("look", json!({ "at": "a" })).await;
        assert_eq!(report.status, Status::Ok);
        let expected = format!("warning: idempotent_no_progress_warning; count={n}; ");
        assert_eq!(hint(&report).is_some_and(|hint| hint.starts_with(&expected)), n >= 2, "{}", report.text);
    }
    let report = setting.call("look", json!({ "at": "a" })).await;
    assert_eq!((report.status, code(&report).as_str()), (Status::Repeated, "idempotent_no_progress_block"));
    let guardrail = answer(&report)["guardrail"].clone();
    assert_eq!(guardrail, json!({ "action": "block", "code": code(&report), "tool_name": "look", "count": 5 }));
    assert_eq!(tool.calls().len(), 5);
    assert_eq!(setting.call("look", json!({ "at": "b" })).await.status, Status::Ok, "another call is another matter");
}

#[tokio::test]
async fn sixty_different_reads_and_a_poll_that_sees_something_new_are_no_loop() {
    let count = AtomicUsize::new(0);
    let poll =
        Arc::new(FakeTool::new("poll").run(move |_, _| Ok(json!({ "done": count.fetch_add(1, SeqCst) }).into())));
    let look = same("look");
    let setting = braked([&look, &poll]);
    for n in 0..60 {
        let report = setting.call("look", json!({ "path": format!("f{n}") })).await;
        assert_eq!((report.status, hint(&report)), (Status::Ok, None));
    }
    for _ in 0..10 {
        let report = setting.call("poll", json!({ "id": 1 })).await;
        assert_eq!((report.status, hint(&report)), (Status::Ok, None));
    }
}

#[tokio::test]
async fn running_the_tests_after_every_edit_is_no_loop_and_going_back_and_forth_is_one() {
    let test = Arc::new(FakeTool::new("test").effect(Effect::Execute));
    let edit = Arc::new(FakeTool::new("edit").effect(Effect::Write).touching(|_, _| Touches::writing("/project/a")));
    let setting = braked([&test, &edit]);
    for n in 0..20 {
        assert_eq!(setting.call("edit", json!({ "n": n })).await.status, Status::Ok);
        let report = setting.call("test", json!({})).await;
        assert_eq!((report.status, hint(&report)), (Status::Ok, None), "{n}");
    }
    // Two edits that undo one another, for ever.
    let setting = braked([&test, &edit]);
    let mut stopped = false;
    for n in 0..60 {
        stopped |= setting.call("edit", json!({ "n": n % 2 })).await.status == Status::Repeated;
    }
    assert!(stopped);
}

#[tokio::test]
async fn tests_that_stay_red_while_the_code_changes_are_no_loop() {
    let test = failing("test");
    let edit = Arc::new(FakeTool::new("edit").effect(Effect::Write).touching(|_, _| Touches::writing("/project/a")));
    let setting = braked([&test, &edit]);
    for n in 0..20 {
        setting.call("edit", json!({ "n": n })).await;
        let report = setting.call("test", json!({})).await;
        assert_eq!((report.status, hint(&report), report.stop.clone()), (Status::Error, None, None), "{n}");
    }
}

#[tokio::test]
async fn pressing_a_key_ten_times_is_honest_and_a_hundred_times_is_not() {
    let press = Arc::new(FakeTool::new("press").effect(Effect::Execute));
    let setting = braked([&press]);
    let mut statuses = Vec::new();
    for _ in 0..100 {
        statuses.push(setting.call("press", json!({ "key": "Tab" })).await.status);
    }
    assert!(statuses[..10].iter().all(|status| *status == Status::Ok));
    assert_eq!(statuses[99], Status::Repeated);
}

#[tokio::test]
async fn a_hook_that_rewrites_does_not_hide_a_repetition() {
    let look = Arc::new(FakeTool::new("look").effect(Effect::Read));
    let gate = Gate::new("sign", |arguments: JsonMap| {
        let mut arguments = arguments;
        arguments.insert("signed".into(), json!(true));
        std::future::ready(Ok(HookDecision::Rewrite(arguments)))
    });
    let setting = braked([&look]).with_hooks(Hooks { pre: vec![Arc::new(gate)], ..Hooks::default() });
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(setting.call("look", json!({ "at": "a" })).await.status);
    }
    assert_eq!((look.calls().len(), statuses[5]), (5, Status::Repeated));
}

#[tokio::test]
async fn a_failure_is_told_the_second_time_and_not_tried_a_sixth_time() {
    let tool = failing("fetch");
    let setting = braked([&tool]);
    let mut codes = Vec::new();
    for _ in 0..5 {
        let report = setting.call("fetch", json!({ "url": "x" })).await;
        assert_eq!(report.status, Status::Error);
        codes.push(hint(&report).map(|hint| hint.split(';').next().unwrap().to_owned()));
    }
    let told = Some("warning: repeated_exact_failure_warning".to_owned());
    assert_eq!(codes, [None, told.clone(), told.clone(), told.clone(), told]);
    let report = setting.call("fetch", json!({ "url": "x" })).await;
    assert_eq!((report.status, code(&report).as_str()), (Status::Repeated, "repeated_exact_failure_block"));
    assert_eq!(tool.calls().len(), 5);
}

#[tokio::test]
async fn a_tool_that_fails_whatever_it_is_given_ends_the_turn_at_the_eighth_failure() {
    let tool = failing("fetch");
    let setting = braked([&tool]);
    for n in 1..=8 {
        let report = setting.call("fetch", json!({ "n": n })).await;
        let expected = match n {
            1 | 2 => None,
            8 => Some("hard stop: same_tool_failure_halt"),
            _ => Some("warning: same_tool_failure_warning"),
        };
        assert_eq!(hint(&report).map(|hint| hint.split(';').next().unwrap()), expected, "{n}");
        assert_eq!(matches!(report.stop, Some(StopTurn::Repetition(_))), n == 8, "{n}");
    }
}

#[tokio::test]
async fn a_success_wipes_the_failures_out() {
    let fail_first = AtomicUsize::new(0);
    let tool = Arc::new(FakeTool::new("fetch").run(move |_, _| {
        // Four failures, a success, four failures, …
        if fail_first.fetch_add(1, SeqCst) % 5 == 4 { Ok(json!({}).into()) } else { Err(ToolError::tell("down")) }
    }));
    let setting = braked([&tool]);
    for _ in 0..25 {
        let report = setting.call("fetch", json!({})).await;
        assert!(matches!(report.status, Status::Ok | Status::Error) && report.stop.is_none(), "{report:?}");
    }
}

#[tokio::test]
async fn a_call_that_can_never_run_is_answered_at_once_from_the_third_time_and_three_of_those_end_the_turn() {
    let memory = Arc::new(FakeTool::new("memory").parameters(json!({
        "type": "object", "properties": { "target": { "type": "string" }, "action": { "type": "string" } }, "required": ["action"],
    })));
    let setting = braked([&memory]);
    let calls = [("memory", json!({ "target": "memory" })), ("bash", json!({ "command": "ls" }))];
    for (name, arguments) in calls {
        setting.task.begin_turn();
        let mut statuses = Vec::new();
        let mut stops = Vec::new();
        for _ in 0..5 {
            let report = setting.call(name, arguments.clone()).await;
            statuses.push(report.status);
            stops.push(report.stop.is_some());
        }
        assert_eq!(statuses[2..], [Status::Repeated; 3], "{name}: {statuses:?}");
        assert!(statuses[..2].iter().all(|status| *status != Status::Repeated), "{name}: {statuses:?}");
        assert_eq!(stops, [false, false, false, false, true], "{name}");
    }
    assert!(memory.calls().is_empty());
}

#[tokio::test]
async fn a_person_is_not_asked_a_third_time_for_what_they_refused_twice() {
    let tool = Arc::new(FakeTool::new("write").effect(Effect::Write).touching(|_, _| Touches::writing("/project/a")));
    let person = Arc::new(ScriptedPerson::new([Answer::Approval(Approval::Deny), Answer::Approval(Approval::Deny)]));
    let mut setting = Setting::new([&tool]).asking(&person);
    setting.task.guardrails = Some(Guardrails::default());
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(setting.call("write", json!({})).await.status);
    }
    assert_eq!(statuses, [Status::Refused, Status::Refused, Status::Repeated]);
}

#[tokio::test]
async fn the_order_of_keys_makes_no_other_call_and_a_new_message_forgets_everything() {
    let tool = same("look");
    let setting = braked([&tool]);
    for n in 0..6 {
        let text = if n % 2 == 0 { r#"{"a": 1, "b": {"c": 2, "d": 3}}"# } else { r#"{"b": {"d": 3, "c": 2}, "a": 1}"# };
        let status = setting.call_text("look", text).await.status;
        assert_eq!(status, if n < 5 { Status::Ok } else { Status::Repeated });
    }
    setting.task.begin_turn();
    let report = setting.call("look", json!({ "a": 1, "b": { "c": 2, "d": 3 } })).await;
    assert_eq!((report.status, hint(&report)), (Status::Ok, None));
}

#[tokio::test]
async fn a_program_may_repeat_itself_and_thresholds_can_be_set() {
    let tool = same("look");
    let free = Setting::new([&tool]);
    for _ in 0..20 {
        let report = free.call("look", json!({})).await;
        assert_eq!((report.status, hint(&report)), (Status::Ok, None));
    }
    let mut quiet = braked([&tool]);
    let rails = Guardrails::default();
    quiet.task.guardrails = Some(Guardrails { warnings_enabled: false, hard_stop_enabled: false, ..rails });
    for _ in 0..20 {
        let report = quiet.call("look", json!({})).await;
        assert_eq!((report.status, hint(&report)), (Status::Ok, None));
    }
    let mut strict = braked([&tool]);
    let mut rails = Guardrails::default();
    rails.hard_stop_after.idempotent_no_progress = 1;
    strict.task.guardrails = Some(rails);
    assert_eq!(strict.call("look", json!({})).await.status, Status::Ok);
    assert_eq!(strict.call("look", json!({})).await.status, Status::Repeated);
}

proptest! {
    /// Whatever a model does: a call whose result was never seen before for these arguments is never stopped for its
    /// results.
    #[test]
    fn what_gives_a_new_result_is_never_a_loop(arguments in prop::collection::vec(0..4_u8, 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let count = AtomicUsize::new(0);
        let fresh = Arc::new(FakeTool::new("fresh").run(move |_, _| Ok(json!(count.fetch_add(1, SeqCst)).into())));
        let setting = braked([&fresh]);
        for n in arguments {
            let report = runtime.block_on(setting.call("fresh", json!({ "n": n })));
            prop_assert_eq!(report.status, Status::Ok);
            prop_assert!(serde_json::from_str::<Value>(&report.text).is_ok(), "no hint: {}", report.text);
        }
    }
}
