//! What runs side by side: neighbouring reads, and nothing else. The order of the answers is that of the calls.
//!
//! Nothing here looks at a clock to see an overlap. Calls that need one another can only end if they ran together, and
//! calls that let others go first would be overtaken if anybody were there to do it.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use std::path::PathBuf;

use hermes_core::{Answer, Approval, Effect, HookDecision, JsonMap, ToolCall, Touches};
use hermes_runtime::{Hooks, Status, parallel};
use hermes_testkit::{FakeCall, FakeEnvironment, FakeTool, ScriptedPerson};
use proptest::prelude::*;
use serde_json::{Value, json};
use setting::hooks::{Audit, Gate};
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

// ------------------------------------------------------------------------------------------------------ what overlaps

/// Begin and end of calls, in the order in which they happened.
type Log = Arc<Mutex<Vec<(usize, bool)>>>;

/// A tool that touches what its arguments say, takes `steps` turns, and keeps a log.
fn touching_tool(name: &str, effect: Effect, parallel: bool, log: &Log) -> Arc<FakeTool> {
    let log = Arc::clone(log);
    let paths = |arguments: &JsonMap, key: &str| -> Vec<PathBuf> {
        arguments[key].as_array().unwrap().iter().map(|path| PathBuf::from(path.as_str().unwrap())).collect()
    };
    let tool = FakeTool::new(name).effect(effect).parallel(parallel);
    let tool = tool.touching(move |arguments, _| Touches {
        reads: paths(arguments, "reads"),
        writes: paths(arguments, "writes"),
        ..Touches::nothing()
    });
    Arc::new(tool.run_async(move |arguments, _| {
        let log = Arc::clone(&log);
        async move {
            let n = usize::try_from(arguments["n"].as_u64().unwrap()).unwrap();
            log.lock().unwrap().push((n, true));
            for _ in 0..arguments["steps"].as_u64().unwrap() {
                tokio::task::yield_now().await;
            }
            log.lock().unwrap().push((n, false));
            Ok(json!({}).into())
        }
    }))
}

/// Whether call `a` had ended when call `b` began.
fn ended_before(log: &[(usize, bool)], a: usize, b: usize) -> bool {
    let at = |event| log.iter().position(|seen| *seen == event).unwrap();
    at((a, false)) < at((b, true))
}

#[derive(Clone, Debug)]
struct Planned {
    tool: &'static str,
    reads: Vec<&'static str>,
    writes: Vec<&'static str>,
    steps: u64,
}

fn planned() -> impl Strategy<Value = Planned> {
    let paths = || {
        prop::sample::subsequence(vec!["/project/a", "/project/b", "/project/d/x", "/project/d", "/project/link"], 0..3)
    };
    (prop::sample::select(vec!["look", "look", "save", "save", "run"]), paths(), paths(), 0..6_u64).prop_map(
        |(tool, reads, writes, steps)| {
            let writes = if tool == "save" { writes } else { Vec::new() };
            Planned { tool, reads, writes, steps }
        },
    )
}

/// Whether the two must not overlap, said once more and in other words than the code.
fn in_the_way(a: &Planned, b: &Planned) -> bool {
    let is_vague =
        |call: &Planned| call.tool == "run" || (call.tool == "save" && call.writes.is_empty() && call.reads.is_empty());
    if is_vague(a) || is_vague(b) {
        return true;
    }
    // `link` is another name of `a`.
    let real = |path: &&'static str| if *path == "/project/link" { "/project/a" } else { path };
    let meets = |x: &str, y: &str| x == y || x.starts_with(&format!("{y}/")) || y.starts_with(&format!("{x}/"));
    let vague_read = |call: &Planned| call.reads.is_empty() && call.writes.is_empty();
    let one_way = |a: &Planned, b: &Planned| {
        a.writes
            .iter()
            .map(real)
            .any(|w| vague_read(b) || b.reads.iter().chain(&b.writes).map(real).any(|t| meets(w, t)))
    };
    one_way(a, b) || one_way(b, a)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_two_calls_overlap_where_one_writes_what_the_other_touches_and_their_order_is_kept(
        calls in prop::collection::vec(planned(), 2..14),
    ) {
        let log = Log::default();
        let look = touching_tool("look", Effect::Read, true, &log);
        let save = touching_tool("save", Effect::Write, true, &log);
        let run = touching_tool("run", Effect::Execute, true, &log);
        let environment = FakeEnvironment::new().with_link("/project/link", "/project/a");
        let setting = Setting::new([&look, &save, &run]).inside(environment).allowing_all();
        let requests: Vec<ToolCall> = calls
            .iter()
            .enumerate()
            .map(|(n, call)| {
                let arguments = json!({ "n": n, "steps": call.steps, "reads": call.reads, "writes": call.writes });
                called(&n.to_string(), call.tool, &arguments)
            })
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let reports = runtime.block_on(setting.call_all(&requests));
        prop_assert!(reports.iter().all(|report| report.status == Status::Ok), "{reports:?}");
        let log = log.lock().unwrap();
        let mut most = 0;
        let mut running = 0_i32;
        for (_, begins) in log.iter() {
            running += if *begins { 1 } else { -1 };
            most = most.max(running);
        }
        prop_assert!(most <= 8, "{most} at once");
        for b in 0..calls.len() {
            for a in 0..b {
                if in_the_way(&calls[a], &calls[b]) {
                    prop_assert!(ended_before(&log, a, b), "{:?} and {:?}: {log:?}", calls[a], calls[b]);
                }
            }
        }
    }
}

#[tokio::test]
async fn two_changes_of_one_file_under_two_names_happen_one_after_the_other_and_of_two_files_together() {
    let log = Log::default();
    let save = touching_tool("save", Effect::Write, true, &log);
    let environment = FakeEnvironment::new().with_link("/project/link", "/project/a");
    let setting = Setting::new([&save]).inside(environment).allowing_all();
    let change = |n: usize, path: &str| {
        called(&n.to_string(), "save", &json!({ "n": n, "steps": 3, "reads": [], "writes": [path] }))
    };
    let calls = [change(0, "/project/a"), change(1, "/project/link"), change(2, "/project/b"), change(3, "/project/A")];
    setting.call_all(&calls).await;
    let log = log.lock().unwrap();
    // Where case does not matter to a file system, `A` is a third name.
    assert!(ended_before(&log, 0, 1) && ended_before(&log, 1, 3), "{log:?}");
    assert!(!ended_before(&log, 0, 2) && !ended_before(&log, 2, 0), "{log:?}");
}

#[tokio::test]
async fn one_slow_call_does_not_hold_up_those_that_are_not_in_its_way() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let slow = Arc::new(read("slow").touching(|_, _| Touches::reading("/project/slow")).run_async(move |_, _| {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            Ok(json!({}).into())
        }
    }));
    let count = Arc::new(AtomicUsize::new(0));
    let (seen, release) = (Arc::clone(&count), release);
    let quick = Arc::new(read("quick").touching(|_, _| Touches::reading("/project/quick")).run_async(move |_, _| {
        // Thirty more than fit at once: they only all run if the slow one costs a single place.
        if seen.fetch_add(1, Ordering::SeqCst) == 29 {
            release.notify_one();
        }
        std::future::ready(Ok(json!({}).into()))
    }));
    let setting = Setting::new([&slow, &quick]);
    let names: Vec<&str> = std::iter::once("slow").chain(std::iter::repeat_n("quick", 30)).collect();
    let reports = setting.call_all(&numbered(&names)).await;
    assert!(reports.iter().all(|report| report.status == Status::Ok));
}

#[tokio::test]
async fn a_hook_that_makes_a_call_write_elsewhere_makes_it_wait_for_whoever_is_there() {
    let log = Log::default();
    let save = touching_tool("save", Effect::Write, true, &log);
    // The first call is sent to the file that the second one is changing already.
    let gate = Gate::new("redirect", |arguments: JsonMap| {
        std::future::ready(Ok(if arguments["n"] == 0 {
            let mut arguments = arguments;
            arguments.insert("writes".into(), json!(["/project/b"]));
            HookDecision::Rewrite(arguments)
        } else {
            HookDecision::Allow
        }))
    });
    let hooks = Hooks { pre: vec![Arc::new(gate)], ..Hooks::default() };
    let setting = Setting::new([&save]).with_hooks(hooks).allowing_all();
    let change = |n: usize, path: &str| {
        called(&n.to_string(), "save", &json!({ "n": n, "steps": 4, "reads": [], "writes": [path] }))
    };
    let reports = setting.call_all(&[change(0, "/project/a"), change(1, "/project/b")]).await;
    assert!(reports.iter().all(|report| report.status == Status::Ok));
    let log = log.lock().unwrap();
    assert!(ended_before(&log, 0, 1) || ended_before(&log, 1, 0), "they never wrote at the same time: {log:?}");
}

#[tokio::test]
async fn a_person_is_asked_in_the_order_of_the_calls_although_they_run_side_by_side() {
    let log = Log::default();
    let save = touching_tool("save", Effect::Write, true, &log);
    for _ in 0..50 {
        let person = Arc::new(ScriptedPerson::new([
            Answer::Approval(Approval::Deny),
            Answer::Approval(Approval::Once),
            Answer::Approval(Approval::Deny),
        ]));
        let setting = Setting::new([&save]).asking(&person);
        let change = |n: usize, path: &str| {
            called(&n.to_string(), "save", &json!({ "n": n, "steps": 1, "reads": [], "writes": [path] }))
        };
        let calls = [change(0, "/project/a"), change(1, "/project/b"), change(2, "/project/c")];
        let statuses: Vec<Status> = setting.call_all(&calls).await.iter().map(|report| report.status).collect();
        assert_eq!(statuses, [Status::Refused, Status::Ok, Status::Refused]);
    }
}

#[tokio::test]
async fn a_call_that_waited_looks_again_at_what_it_touches_because_the_session_may_have_moved() {
    let log = Log::default();
    let relative = |name: &str, effect: Effect| {
        let log = Arc::clone(&log);
        let tool = FakeTool::new(name).effect(effect).parallel(true);
        let tool = tool.touching(move |arguments, cx| {
            let path = cx.resolve(arguments["path"].as_str().unwrap());
            if effect == Effect::Write { Touches::writing(path) } else { Touches::reading(path) }
        });
        Arc::new(tool.run_async(move |arguments, _| {
            let log = Arc::clone(&log);
            async move {
                let n = usize::try_from(arguments["n"].as_u64().unwrap()).unwrap();
                log.lock().unwrap().push((n, true));
                give_way().await;
                log.lock().unwrap().push((n, false));
                Ok(json!({}).into())
            }
        }))
    };
    let (save, look) = (relative("save", Effect::Write), relative("look", Effect::Read));
    let place: Arc<Mutex<Option<Arc<FakeEnvironment>>>> = Arc::default();
    let there = Arc::clone(&place);
    let cd = FakeTool::new("cd").effect(Effect::Execute).touching(|_, _| Touches::executing("cd sub"));
    let cd = Arc::new(cd.run_async(move |_, _| {
        let there = Arc::clone(&there);
        async move {
            give_way().await;
            there.lock().unwrap().as_ref().unwrap().change_directory("/project/sub");
            Ok(json!({}).into())
        }
    }));
    let setting = Setting::new([&cd, &save, &look]).allowing_all();
    *place.lock().unwrap() = Some(Arc::clone(&setting.environment));
    let calls = [
        called("0", "cd", &json!({})),
        called("1", "save", &json!({ "n": 1, "path": "x" })),
        called("2", "look", &json!({ "n": 2, "path": "/project/sub/x" })),
    ];
    setting.call_all(&calls).await;
    let log = log.lock().unwrap();
    assert!(ended_before(&log, 1, 2), "{log:?}");
}

#[tokio::test]
async fn a_thousand_calls_in_one_turn_are_answered_and_most_of_them_are_not_run() {
    let look = Arc::new(read("look"));
    let audit = Audit::new();
    let setting = Setting::new([&look]).with_hooks(Hooks { post: vec![Arc::clone(&audit) as _], ..Hooks::default() });
    let calls: Vec<ToolCall> = (0..1_000).map(|n| called(&n.to_string(), "look", &json!({}))).collect();
    let reports = setting.call_all(&calls).await;
    assert_eq!(look.calls().len(), 128);
    assert!(reports[128..].iter().all(|report| report.status == Status::NotStarted));
    assert_eq!(audit.records().len(), 1_000, "whoever watches hears of the others too");
}
