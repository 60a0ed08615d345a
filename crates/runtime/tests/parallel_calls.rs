//! What runs side by side: neighbouring reads, and nothing else. The order of the answers is that of the calls.
//!
//! Nothing here looks at a clock to see an overlap. Calls that need one another can only end if they ran together, and
//! calls that let others go first would be overtaken if anybody were there to do it.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_core::{Effect, ToolCall};
use hermes_runtime::{Status, parallel};
use hermes_testkit::{FakeCall, FakeTool};
use serde_json::{Value, json};
use setting::{Setting, answer, called};
use tokio::sync::Notify;

fn read(name: &str) -> FakeTool {
    FakeTool::new(name).effect(Effect::Read).parallel(true)
}

/// Lets everybody else go first, again and again.
async fn give_way() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Answers `{}`, but only after everybody who could run has run.
fn giving_way(tool: FakeTool) -> Arc<FakeTool> {
    Arc::new(tool.run_async(|_, _| async {
        give_way().await;
        Ok(json!({}).into())
    }))
}

fn numbered(names: &[&str]) -> Vec<ToolCall> {
    names.iter().enumerate().map(|(i, name)| called(&i.to_string(), name, &json!({}))).collect()
}

fn one_after_the_other(calls: &[FakeCall]) -> bool {
    calls.windows(2).all(|pair| !pair[0].overlaps(&pair[1]) && pair[0].finished.unwrap() <= pair[1].started)
}

#[tokio::test]
async fn three_reads_run_together_and_the_write_after_them_waits_for_all() {
    let look = Arc::new(read("look").wait_for_others(3));
    let save = Arc::new(FakeTool::new("save").effect(Effect::Write));
    let setting = Setting::new([&look, &save]).allowing_all();
    let reports = setting.call_all(&numbered(&["look", "look", "look", "save"])).await;
    // Without the overlap the reads answer an error after 30 s.
    assert!(reports.iter().all(|report| report.status == Status::Ok), "{reports:?}");
    let saved = &save.calls()[0];
    for call in look.calls() {
        assert!(call.finished.unwrap() <= saved.started, "the write began while a read was running");
    }
}

#[tokio::test]
async fn results_come_in_the_order_of_the_calls_even_when_the_first_is_the_slowest() {
    let last_is_done = Arc::new(Notify::new());
    let finished = Arc::new(Mutex::new(Vec::new()));
    let (done, order) = (Arc::clone(&last_is_done), Arc::clone(&finished));
    let look = read("look").run_async(move |arguments, _| {
        let (done, order) = (Arc::clone(&done), Arc::clone(&order));
        async move {
            let which = arguments["which"].as_str().unwrap().to_owned();
            match which.as_str() {
                "first" => done.notified().await,
                "last" => done.notify_one(),
                _ => {}
            }
            order.lock().unwrap().push(which.clone());
            Ok(json!({ "which": which }).into())
        }
    });
    let setting = Setting::new([&Arc::new(look)]).with_deadline(Duration::from_secs(30));
    let calls: Vec<ToolCall> =
        ["first", "middle", "last"].iter().map(|which| called(which, "look", &json!({ "which": which }))).collect();
    let reports = setting.call_all(&calls).await;
    assert_eq!(finished.lock().unwrap().last().unwrap(), "first");
    let answers: Vec<Value> = reports.iter().map(|report| answer(report)["which"].clone()).collect();
    assert_eq!(answers, ["first", "middle", "last"]);
}

#[tokio::test]
async fn a_read_is_never_moved_across_a_write() {
    let content = Arc::new(Mutex::new("old".to_owned()));
    let (read_from, write_to) = (Arc::clone(&content), Arc::clone(&content));
    let look = read("look").run_async(move |_, _| {
        let content = Arc::clone(&read_from);
        async move {
            give_way().await;
            let seen = content.lock().unwrap().clone();
            Ok(json!({ "seen": seen }).into())
        }
    });
    let save = FakeTool::new("save").effect(Effect::Write).run_async(move |_, _| {
        let content = Arc::clone(&write_to);
        async move {
            // Longer than a read, so that a read beside it would be done before.
            give_way().await;
            give_way().await;
            *content.lock().unwrap() = "new".into();
            Ok(json!({}).into())
        }
    });
    let setting = Setting::new([&Arc::new(look), &Arc::new(save)]).allowing_all();
    let reports = setting.call_all(&numbered(&["look", "save", "look", "look"])).await;
    let seen: Vec<Value> = [0, 2, 3].map(|i| answer(&reports[i])["seen"].clone()).to_vec();
    assert_eq!(seen, ["old", "new", "new"]);
}

#[tokio::test]
async fn a_tool_that_acts_and_does_not_say_on_what_runs_alone_whatever_it_says_about_itself() {
    for effect in [Effect::Converse, Effect::Write, Effect::Execute] {
        let tool = giving_way(FakeTool::new("act").effect(effect).parallel(true));
        let setting = Setting::new([&tool]).allowing_all();
        setting.call_all(&numbered(&["act", "act", "act"])).await;
        assert_eq!(tool.calls().len(), 3);
        assert!(one_after_the_other(&tool.calls()), "{effect:?}: {:?}", tool.calls());
    }
}

#[tokio::test]
async fn a_read_that_does_not_offer_to_run_beside_others_runs_alone() {
    let tool = giving_way(FakeTool::new("look").effect(Effect::Read).parallel(false));
    let setting = Setting::new([&tool]);
    setting.call_all(&numbered(&["look", "look"])).await;
    assert_eq!(tool.calls().len(), 2);
    assert!(one_after_the_other(&tool.calls()), "{:?}", tool.calls());
}

#[tokio::test]
async fn different_tools_and_different_spellings_share_a_group() {
    // Two barriers of two: each needs a partner that was called under another name.
    let look = Arc::new(read("read_file").wait_for_others(2));
    let count = Arc::new(read("count_all").effect(Effect::None).wait_for_others(2));
    let setting = Setting::new([&look, &count]);
    let reports = setting.call_all(&numbered(&["read_file", "count_all", "ReadFile", "count-all"])).await;
    assert!(reports.iter().all(|report| report.status == Status::Ok), "{reports:?}");
}

#[tokio::test]
async fn no_more_than_eight_calls_run_at_the_same_time() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, peak) = (Arc::clone(&now), Arc::clone(&most));
    let look = read("look").run_async(move |_, _| {
        let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
        async move {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            give_way().await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(json!({}).into())
        }
    });
    let look = Arc::new(look);
    let setting = Setting::new([&look]);
    let reports = setting.call_all(&numbered(&["look"; 20])).await;
    assert!(reports.iter().all(|report| report.status == Status::Ok));
    assert_eq!((most.load(Ordering::SeqCst), parallel::MOST_AT_ONCE), (8, 8));
    assert_eq!(look.calls().len(), 20);
}

#[tokio::test]
async fn a_call_that_makes_no_sense_does_not_keep_its_neighbours_from_running() {
    let look = Arc::new(read("look").wait_for_others(2));
    let setting = Setting::new([&look]);
    let mut calls = numbered(&["look", "look", "nothing_like_it", "look", "look", "look"]);
    calls[5] = setting::called_with_text("5", "look", "{bad");
    let reports = setting.call_all(&calls).await;
    let statuses: Vec<Status> = reports.iter().map(|report| report.status).collect();
    let ok = Status::Ok;
    assert_eq!(statuses, [ok, ok, Status::UnknownTool, ok, ok, Status::InvalidArguments]);
}

#[tokio::test]
async fn no_calls_are_no_answers() {
    assert!(Setting::new([]).call_all(&[]).await.is_empty());
}
