//! The tool itself: how it may fail, how long it may take, and how it is stopped.
//!
//! Time is tokio's, and it is paused: it moves only when nobody can do anything, so a deadline costs no waiting.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{
    Answer, Approval, Asker, CancellationToken, Effect, JsonMap, Question, StopTurn, Tool, ToolCx, ToolError,
    ToolOutput, ToolResult, ToolSpec, Touches,
};
use hermes_runtime::{Dispatcher, Status};
use hermes_testkit::FakeTool;
use serde_json::{Value, json};
use setting::{Moment, Setting, answer, called, error, register};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// Says when it is gone.
#[derive(Default)]
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A tool that never answers, the signal that it has begun, and whether its future was dropped.
fn endless() -> (Arc<FakeTool>, Arc<Notify>, Arc<AtomicBool>) {
    let (begun, gone) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (tell, flag) = (Arc::clone(&begun), Arc::clone(&gone));
    let tool = FakeTool::new("endless").run_async(move |_, _| {
        let (tell, gone) = (Arc::clone(&tell), Gone(Arc::clone(&flag)));
        async move {
            let _gone = gone;
            tell.notify_one();
            pending::<ToolResult>().await
        }
    });
    (Arc::new(tool), begun, gone)
}

/// Stops the turn as soon as the tool has begun.
async fn stop_after(begun: &Notify, setting: &Setting) {
    // An hour that passes at once where the tool never begins.
    timeout(Duration::from_secs(3600), begun.notified()).await.expect("the tool begins");
    setting.cancel.cancel();
}

fn fine() -> Arc<FakeTool> {
    Arc::new(FakeTool::new("fine"))
}

// ---------------------------------------------------------------------------------------------------------- failing

#[tokio::test]
async fn the_error_of_a_tool_reaches_the_model_with_all_its_fields() {
    let result = Err(ToolError::tell("no such table").with("tables", json!(["a", "b"])));
    let setting = Setting::new([&Arc::new(FakeTool::new("query").result(result))]);
    let report = setting.call("query", json!({})).await;
    assert_eq!((report.status, report.stop.clone()), (Status::Error, None));
    assert_eq!(report.text, r#"{"error":"no such table","tables":["a","b"]}"#);
    assert_eq!(report.summary, "no such table");
}

#[tokio::test]
async fn the_answer_of_a_tool_is_passed_on_as_it_is() {
    let said =
        Arc::new(FakeTool::new("said").result(Ok(ToolOutput::text(" {\"error\": no \n").with_summary("3 words"))));
    let table = Arc::new(FakeTool::new("table").result(Ok(json!({ "z": 1, "a": "é", "error": "none" }).into())));
    let setting = Setting::new([&said, &table]);
    let report = setting.call("said", json!({})).await;
    assert_eq!((report.status, report.text.as_str()), (Status::Ok, " {\"error\": no \n"));
    assert_eq!((report.summary.as_str(), report.emoji.as_str()), ("3 words", "🧪"));
    // An answer that mentions an error is no error: nothing is recognised by its text.
    let report = setting.call("table", json!({})).await;
    assert_eq!((report.status, report.text.as_str()), (Status::Ok, r#"{"z":1,"a":"é","error":"none"}"#));
}

#[tokio::test]
async fn a_panic_is_an_error_of_that_call_and_of_nothing_else() {
    let bomb = FakeTool::new("bomb").effect(Effect::Read).parallel(true).run(|_, _| panic!("boom"));
    let other = FakeTool::new("other").effect(Effect::Read).parallel(true);
    let (bomb, other) = (Arc::new(bomb), Arc::new(other));
    let setting = Setting::new([&bomb, &other]);
    let calls = [
        called("1", "other", &json!({})),
        called("2", "bomb", &json!({})),
        called("3", "other", &json!({})),
        called("4", "bomb", &json!({})),
    ];
    let reports = setting.call_all(&calls).await;
    let statuses: Vec<Status> = reports.iter().map(|report| report.status).collect();
    assert_eq!(statuses, [Status::Ok, Status::Error, Status::Ok, Status::Error]);
    assert!(error(&reports[1]).contains("bomb failed inside"), "{}", reports[1].text);
    assert_eq!(reports[1].stop, None);
    assert_eq!(setting.call("other", json!({})).await.status, Status::Ok);
}

#[tokio::test]
async fn a_panic_while_a_tool_says_what_it_touches_is_an_error_too_and_nothing_runs() {
    let bomb = Arc::new(FakeTool::new("bomb").touching(|_, _| panic!("boom")));
    let setting = Setting::new([&bomb]).allowing_all();
    let report = setting.call("bomb", json!({})).await;
    assert_eq!(report.status, Status::Error);
    assert!(bomb.calls().is_empty(), "what a call would do is unknown, so it is not done");
}

/// Cannot say in a few words what it does.
struct Tongue(ToolSpec);

#[async_trait]
impl Tool for Tongue {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn touches(&self, _: &JsonMap, _: &ToolCx) -> Touches {
        Touches::nothing()
    }

    fn headline(&self, _: &JsonMap) -> String {
        panic!("boom")
    }

    async fn call(&self, _: JsonMap, _: ToolCx) -> ToolResult {
        Ok(json!({ "done": true }).into())
    }
}

#[tokio::test]
async fn a_panic_over_the_headline_costs_the_headline_and_not_the_answer() {
    let tongue = Arc::new(Tongue(FakeTool::new("tongue").spec().clone()));
    let mut setting = Setting::new([&fine()]);
    setting.visible.insert(tongue.spec().name.clone());
    register(&setting.registry, "tongue", vec![tongue]);
    let report = setting.call("tongue", json!({})).await;
    assert_eq!((report.status, report.text.as_str()), (Status::Ok, r#"{"done":true}"#));
    assert_eq!(report.headline, "");
}

// --------------------------------------------------------------------------------------------------------- deadlines

#[tokio::test(start_paused = true)]
async fn a_call_past_its_deadline_is_dropped_and_says_so() {
    let (endless, _, gone) = endless();
    let setting = Setting::new([&endless]).with_deadline(Duration::from_secs(5));
    let began = Instant::now();
    let report = setting.call("endless", json!({})).await;
    assert_eq!(report.status, Status::TimedOut);
    assert!((5..6).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert!(gone.load(Ordering::SeqCst), "a call that was given up must not go on in the dark");
    assert!(error(&report).contains("endless was dropped after 5 s"), "{}", report.text);
    assert_eq!(answer(&report)["status"], "timed_out");
    assert_eq!(report.stop, None);
}

#[tokio::test(start_paused = true)]
async fn a_call_has_the_time_that_its_tool_sets_and_else_five_minutes_and_half_of_it_is_said() {
    let patient = |name: &str, seconds: u64, own: Option<u64>| {
        let tool = FakeTool::new(name).with_spec(|spec| spec.deadline = own.map(Duration::from_secs));
        Arc::new(tool.run_async(move |_, _| async move {
            sleep(Duration::from_secs(seconds)).await;
            Ok(json!({}).into())
        }))
    };
    let setting = Setting::new([
        &patient("long_command", 600, Some(660)),
        &patient("nearly", 299, None),
        &patient("beyond", 400, None),
        &patient("quick", 149, None),
    ]);
    assert_eq!(setting.call("long_command", json!({})).await.status, Status::Ok);
    assert_eq!(setting.call("nearly", json!({})).await.status, Status::Ok);
    let began = Instant::now();
    let before = setting.heard.warnings().len();
    assert_eq!(setting.call("beyond", json!({})).await.status, Status::TimedOut);
    assert_eq!(began.elapsed().as_secs(), Dispatcher::DEADLINE.as_secs());
    let said = setting.heard.warnings().split_off(before);
    assert!(
        said.len() == 2 && said[0].contains("running for 150 s") && said[1].contains("dropped after 300 s"),
        "{said:?}"
    );
    // A single call and one among others have the same limit.
    let reports = setting.call_all(&[called("1", "beyond", &json!({})), called("2", "quick", &json!({}))]).await;
    assert_eq!((reports[0].status, reports[1].status), (Status::TimedOut, Status::Ok));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_belongs_to_one_call_and_the_rest_of_the_turn_goes_on() {
    let ((endless, _, _), fine) = (endless(), fine());
    let setting = Setting::new([&endless, &fine]).with_deadline(Duration::from_secs(5));
    let reports = setting.call_all(&[called("1", "endless", &json!({})), called("2", "fine", &json!({}))]).await;
    assert_eq!((reports[0].status, reports[1].status), (Status::TimedOut, Status::Ok));
}

/// A person who thinks for a while before saying yes.
struct Slow(Duration);

#[async_trait]
impl Asker for Slow {
    async fn ask(&self, _: Question, _: &CancellationToken) -> Answer {
        sleep(self.0).await;
        Answer::Approval(Approval::Once)
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_a_person_takes_does_not_count_against_the_tool() {
    let write = Arc::new(FakeTool::new("write").effect(Effect::Write).touching(|_, _| Touches::writing("/project/a")));
    let setting = Setting::new([&write]).asking(&Arc::new(Slow(Duration::from_secs(59))));
    let setting = setting.with_deadline(Duration::from_secs(5));
    assert_eq!(setting.call("write", json!({})).await.status, Status::Ok);
}

// ---------------------------------------------------------------------------------------------------------- stopping

#[tokio::test]
async fn a_call_after_the_stop_is_not_started() {
    let fine = fine();
    let setting = Setting::new([&fine]);
    setting.cancel.cancel();
    let report = setting.call("fine", json!({})).await;
    assert_eq!(report.status, Status::NotStarted);
    assert_eq!(answer(&report)["status"], "not_started");
    let reports =
        setting.call_all(&[called("1", "fine", &json!({})), called("2", "nothing_like_it", &json!({}))]).await;
    for report in &reports {
        assert_eq!(report.status, Status::NotStarted);
        assert!(error(report).contains("not run"), "{}", report.text);
    }
    assert!(fine.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ignores_the_stop_is_dropped_after_three_seconds() {
    let (endless, begun, gone) = endless();
    let setting = Setting::new([&endless]);
    let stop = async {
        stop_after(&begun, &setting).await;
        Instant::now()
    };
    let (report, stopped) = tokio::join!(setting.call("endless", json!({})), stop);
    assert_eq!(report.status, Status::Interrupted);
    assert_eq!(stopped.elapsed().as_secs(), 3);
    assert!(gone.load(Ordering::SeqCst));
    assert_eq!(answer(&report)["status"], "interrupted");
    assert!(error(&report).contains("endless was interrupted by the user"), "{}", report.text);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_heeds_the_stop_hands_in_what_it_has_and_counts_as_interrupted() {
    let begun = Arc::new(Notify::new());
    let tell = Arc::clone(&begun);
    let polite = FakeTool::new("polite").run_async(move |_, cx| {
        let tell = Arc::clone(&tell);
        async move {
            tell.notify_one();
            cx.cancel.cancelled().await;
            sleep(Duration::from_secs(1)).await;
            Ok(json!({ "done": "half" }).into())
        }
    });
    let setting = Setting::new([&Arc::new(polite)]);
    let (report, ()) = tokio::join!(setting.call("polite", json!({})), stop_after(&begun, &setting));
    assert_eq!((report.status, report.text.as_str()), (Status::Interrupted, r#"{"done":"half"}"#));
}

#[tokio::test(start_paused = true)]
async fn a_stop_in_the_middle_of_a_turn_leaves_no_call_unanswered() {
    let ((endless, begun, _), fine) = (endless(), fine());
    let setting = Setting::new([&endless, &fine]);
    let calls = [
        called("1", "fine", &json!({})),
        called("2", "endless", &json!({})),
        called("3", "fine", &json!({})),
        called("4", "nothing_like_it", &json!({})),
    ];
    let (reports, ()) = tokio::join!(setting.call_all(&calls), stop_after(&begun, &setting));
    let statuses: Vec<Status> = reports.iter().map(|report| report.status).collect();
    // The last one waits for nobody, because there is nothing to run.
    assert_eq!(statuses, [Status::Ok, Status::Interrupted, Status::NotStarted, Status::UnknownTool]);
    assert_eq!(fine.calls().len(), 1);
}

/// A person who says yes and stops the turn in the same breath.
struct YesAndStop(CancellationToken);

#[async_trait]
impl Asker for YesAndStop {
    async fn ask(&self, _: Question, _: &CancellationToken) -> Answer {
        self.0.cancel();
        Answer::Approval(Approval::Once)
    }
}

#[tokio::test]
async fn a_stop_between_the_yes_and_the_tool_still_stops_it() {
    let write = Arc::new(FakeTool::new("write").effect(Effect::Write).touching(|_, _| Touches::writing("/project/a")));
    let mut setting = Setting::new([&write]);
    setting.task.asker = Some(Arc::new(YesAndStop(setting.cancel.clone())));
    assert_eq!(setting.call("write", json!({})).await.status, Status::NotStarted);
    assert!(write.calls().is_empty());
}

#[tokio::test]
async fn a_tool_that_ends_the_turn_ends_it_after_this_call() {
    let broken = ToolError::Stop(StopTurn::Broken("the disk is full".into()));
    let stopper = Arc::new(FakeTool::new("stopper").result(Err(broken)));
    let fine = fine();
    let setting = Setting::new([&stopper, &fine]);
    let calls = [
        called("1", "fine", &json!({})),
        called("2", "stopper", &json!({})),
        called("3", "fine", &json!({})),
        called("4", "stopper", &json!({})),
    ];
    let reports = setting.call_all(&calls).await;
    let statuses: Vec<Status> = reports.iter().map(|report| report.status).collect();
    assert_eq!(statuses, [Status::Ok, Status::Error, Status::NotStarted, Status::NotStarted]);
    assert_eq!(reports[1].stop, Some(StopTurn::Broken("the disk is full".into())));
    assert_eq!(error(&reports[1]), "the disk is full");
    assert_eq!(reports.iter().filter(|report| report.stop.is_some()).count(), 1);
    assert_eq!((fine.calls().len(), stopper.calls().len()), (1, 1));
}

#[tokio::test]
async fn calls_beside_the_one_that_ends_the_turn_are_finished_and_the_next_ones_not_started() {
    let read = |name: &str| FakeTool::new(name).effect(Effect::Read).parallel(true);
    let stopper = Arc::new(read("stopper").run_async(|_, _| async {
        tokio::task::yield_now().await;
        Err(ToolError::Stop(StopTurn::Cancelled))
    }));
    let beside = Arc::new(read("beside").run_async(|_, _| async {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        Ok(json!({}).into())
    }));
    let fine = fine();
    let setting = Setting::new([&stopper, &beside, &fine]);
    let calls =
        [called("1", "stopper", &json!({})), called("2", "beside", &json!({})), called("3", "fine", &json!({}))];
    let reports = setting.call_all(&calls).await;
    let statuses: Vec<Status> = reports.iter().map(|report| report.status).collect();
    assert_eq!(statuses, [Status::Interrupted, Status::Ok, Status::NotStarted]);
    assert_eq!(reports[0].stop, Some(StopTurn::Cancelled));
    // What was never begun is still announced, so that nobody waits for it.
    assert!(setting.heard.moments().contains(&Moment::Finished("3".into(), Status::NotStarted)));
    assert!(fine.calls().is_empty());
}

#[tokio::test]
async fn a_call_knows_its_id_and_shares_state_with_the_calls_of_its_task_only() {
    #[derive(Default)]
    struct Count(std::sync::atomic::AtomicU64);
    let counter = Arc::new(FakeTool::new("count").run(|_, cx| {
        let count = cx.scratch.get::<Count>().0.fetch_add(1, Ordering::SeqCst);
        Ok(json!({ "id": cx.call_id, "count": count }).into())
    }));
    let setting = Setting::new([&counter]);
    let reports = setting.call_all(&[called("a", "count", &json!({})), called("b", "count", &json!({}))]).await;
    let answers: Vec<Value> = reports.iter().map(answer).collect();
    assert_eq!(answers, [json!({ "id": "a", "count": 0 }), json!({ "id": "b", "count": 1 })]);
    let elsewhere = Setting::new([&counter]);
    assert_eq!(answer(&elsewhere.call("count", json!({})).await)["count"], 0);
}
