//! Rows of the acceptance checklist (spec core §21) that no other file covers as a whole. `cases/DEFERRED.md` says which
//! test covers which row.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{
    Answer, Approval, Asker, CancellationToken, Checkpointer, Concern, Edit, EditReviewer, Effect, ExecutionMiddleware,
    HookCall, HookDecision, HookFacts, HookResult, JsonMap, Judge, JudgeRequest, Next, PostHook, PreHook, Question,
    Redactor, RequestMiddleware, StopTurn, ToolCx, ToolError, ToolOutput, ToolResult, Touches, TransformHook, Verdict,
};
use hermes_runtime::{ApprovalMode, Guardrails, Hooks, Status};
use hermes_testkit::FakeTool;
use serde_json::json;
use setting::hooks::{Audit, Gate};
use setting::{Setting, answer};

/// Takes part in every way there is, and writes down when it is its turn and which number it saw.
struct Everybody {
    facts: HookFacts,
    log: Arc<Mutex<Vec<String>>>,
}

impl Everybody {
    fn new() -> Arc<Self> {
        Arc::new(Self { facts: HookFacts::new("everybody"), log: Arc::default() })
    }

    fn note(&self, what: &str) {
        self.log.lock().unwrap().push(what.to_owned());
    }

    fn noted(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

#[async_trait]
impl RequestMiddleware for Everybody {
    fn facts(&self) -> &HookFacts {
        &self.facts
    }

    async fn rewrite(&self, call: HookCall<'_>) -> Result<Option<JsonMap>, String> {
        self.note(&format!("middleware sees {}", call.arguments["n"]));
        let mut arguments = call.arguments.clone();
        // As a text, so that it has to be coerced again.
        arguments.insert("n".into(), json!((call.arguments["n"].as_i64().unwrap() + 1).to_string()));
        Ok(Some(arguments))
    }
}

#[async_trait]
impl PreHook for Everybody {
    fn facts(&self) -> &HookFacts {
        &self.facts
    }

    async fn decide(&self, call: HookCall<'_>) -> Result<HookDecision, String> {
        self.note(&format!("hook sees {}", call.arguments["n"]));
        Ok(HookDecision::Allow)
    }
}

#[async_trait]
impl EditReviewer for Everybody {
    async fn review(&self, _: &str, _: &[Edit]) -> Result<(), String> {
        self.note("editor");
        Ok(())
    }
}

impl Judge for Everybody {
    fn judge(&self, request: &JudgeRequest<'_>) -> Verdict {
        self.note(&format!("judge sees {}", request.arguments["n"]));
        Verdict::Ask(Concern::new("writes", None, None))
    }
}

#[async_trait]
impl Asker for Everybody {
    async fn ask(&self, _: Question, _: &CancellationToken) -> Answer {
        self.note("question");
        Answer::Approval(Approval::Once)
    }
}

#[async_trait]
impl Checkpointer for Everybody {
    async fn before(&self, _: HookCall<'_>, _: &Touches, _: &ToolCx) -> Result<(), String> {
        self.note("checkpoint");
        Ok(())
    }
}

#[async_trait]
impl ExecutionMiddleware for Everybody {
    fn facts(&self) -> &HookFacts {
        &self.facts
    }

    async fn around(&self, call: HookCall<'_>, next: Next<'_>) -> ToolResult {
        self.note(&format!("around sees {}", call.arguments["n"]));
        next.run().await
    }
}

#[async_trait]
impl TransformHook for Everybody {
    fn facts(&self) -> &HookFacts {
        &self.facts
    }

    async fn transform(&self, _: HookResult<'_>) -> Result<Option<String>, String> {
        self.note("transform");
        Ok(Some(format!("secret {}", "long ".repeat(30_000))))
    }
}

impl Redactor for Everybody {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.starts_with("secret ") {
            self.note("redact");
            return text.replacen("secret", "[hidden]", 1).into();
        }
        text.into()
    }
}

#[async_trait]
impl PostHook for Everybody {
    fn facts(&self) -> &HookFacts {
        &self.facts
    }

    async fn finished(&self, result: HookResult<'_>) -> Result<(), String> {
        // By now the text is hidden, shortened and fenced, in this order: what is outermost came last.
        let fenced = result.text.starts_with("<untrusted_tool_result");
        let stored = result.text.contains("\n<persisted-output>\n");
        let shown = result.text.contains("[hidden] long");
        self.note(&format!("post: {}, fenced {fenced}, stored {stored}, hidden {shown}", result.status));
        Ok(())
    }
}

fn setting(everybody: &Arc<Everybody>, tool: &Arc<FakeTool>) -> Setting {
    let hooks = Hooks {
        approval: Vec::new(),
        middleware: vec![Arc::clone(everybody) as _],
        pre: vec![Arc::clone(everybody) as _],
        around: vec![Arc::clone(everybody) as _],
        transform: vec![Arc::clone(everybody) as _],
        post: vec![Arc::clone(everybody) as _],
        redactor: Some(Arc::clone(everybody) as _),
        checkpointer: Some(Arc::clone(everybody) as _),
    };
    let mut setting = Setting::new([tool]).judged_by(Watching(Arc::clone(everybody))).with_hooks(hooks);
    setting.task.asker = Some(Arc::clone(everybody) as _);
    setting.task.reviewer = Some(Arc::clone(everybody) as _);
    setting.task.guardrails = Some(Guardrails::default());
    setting
}

struct Watching(Arc<Everybody>);

impl Judge for Watching {
    fn judge(&self, request: &JudgeRequest<'_>) -> Verdict {
        self.0.judge(request)
    }
}

fn save(everybody: &Arc<Everybody>) -> Arc<FakeTool> {
    let log = Arc::clone(everybody);
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = FakeTool::new("save").effect(Effect::Write).parameters(schema);
    let tool = tool.touching(|_, _| Touches::writing("/project/a"));
    let tool = tool.editing(vec![Edit::new("/project/a".as_ref(), None, Some("new".into()))]);
    Arc::new(tool.run(move |arguments, _| {
        log.note(&format!("tool gets {}", arguments["n"]));
        Ok(ToolOutput::text("page").from_outside("https://example.org"))
    }))
}

#[tokio::test]
async fn the_checks_come_in_the_order_of_the_checklist_and_everybody_after_the_middleware_sees_what_runs() {
    let everybody = Everybody::new();
    let tool = save(&everybody);
    let setting = setting(&everybody, &tool);
    assert_eq!(setting.call("save", json!({ "n": "1" })).await.status, Status::Ok);
    let expected = [
        "middleware sees 1",
        "hook sees 2",
        "editor",
        "judge sees 2",
        "question",
        // Once the answer is there, and once more when the call is about to run.
        "judge sees 2",
        "checkpoint",
        "judge sees 2",
        "around sees 2",
        "tool gets 2",
        "transform",
        "redact",
        "post: ok, fenced true, stored true, hidden true",
    ];
    assert_eq!(everybody.noted(), expected);
}

#[tokio::test]
async fn a_call_that_ends_early_meets_nobody_who_stands_behind_its_end_but_those_who_watch() {
    let everybody = Everybody::new();
    let tool = save(&everybody);
    let mut setting = setting(&everybody, &tool);
    let met = |log: Vec<String>| -> Vec<String> {
        log.iter().map(|line| line.split([' ', ':']).next().unwrap().to_owned()).collect()
    };
    let back = ["transform", "redact", "post"];
    let cases: [(&str, &str, Status, &[&str]); 3] = [
        ("save", "{bad", Status::InvalidArguments, &[]),
        ("save", r#"{"n": "many"}"#, Status::InvalidArguments, &[]),
        ("nothing_like_it", r#"{"n": 1}"#, Status::UnknownTool, &[]),
    ];
    for (name, arguments, status, before) in cases {
        assert_eq!(setting.call_text(name, arguments).await.status, status, "{arguments}");
        assert_eq!(met(everybody.noted()), [before, &back].concat(), "{name} {arguments}");
    }
    setting.approve = ApprovalMode::None;
    let refused = setting.call("save", json!({ "n": 5 })).await;
    assert_eq!(refused.status, Status::Refused);
    assert_eq!(met(everybody.noted()), [&["middleware", "hook", "editor", "judge"][..], &back].concat());
    assert!(tool.calls().is_empty());
}

#[tokio::test]
async fn a_brake_that_holds_asks_neither_a_hook_nor_a_person() {
    let everybody = Everybody::new();
    let tool = save(&everybody);
    let mut setting = setting(&everybody, &tool);
    setting.approve = ApprovalMode::None;
    for _ in 0..2 {
        assert_eq!(setting.call("save", json!({ "n": 5 })).await.status, Status::Refused);
    }
    everybody.noted();
    assert_eq!(setting.call("save", json!({ "n": 5 })).await.status, Status::Repeated);
    let noted = everybody.noted();
    assert_eq!(noted[0], "middleware sees 5", "it is the settled call that is counted: {noted:?}");
    assert!(!noted.iter().any(|line| line.starts_with("hook") || line.starts_with("judge")), "{noted:?}");
}

/// Spec core §13.4, its table: what its tools do is said here by their effect and by what they touch.
#[tokio::test]
async fn a_plan_of_mixed_calls_runs_in_the_segments_of_the_specification() {
    let path = |arguments: &JsonMap, _: &ToolCx| Touches::reading(arguments["path"].as_str().unwrap());
    let target = |arguments: &JsonMap, _: &ToolCx| Touches::writing(arguments["path"].as_str().unwrap());
    let log: Arc<Mutex<Vec<(String, bool)>>> = Arc::default();
    let logging = |tool: FakeTool| {
        let log = Arc::clone(&log);
        Arc::new(tool.run_async(move |_, cx| {
            let log = Arc::clone(&log);
            async move {
                log.lock().unwrap().push((cx.call_id.clone(), true));
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                log.lock().unwrap().push((cx.call_id, false));
                Ok(json!({}).into())
            }
        }))
    };
    let read = logging(FakeTool::new("read_file").effect(Effect::Read).parallel(true).touching(path));
    let write = logging(FakeTool::new("write_file").effect(Effect::Write).parallel(true).touching(target));
    let search = logging(FakeTool::new("web_search").effect(Effect::None).parallel(true));
    let shell = logging(FakeTool::new("terminal").effect(Effect::Execute).touching(|_, _| Touches::executing("make")));
    let ask = logging(FakeTool::new("clarify").effect(Effect::Converse));
    let setting = Setting::new([&read, &write, &search, &shell, &ask]).allowing_all();
    let call = |id: &str, name: &str, path: &str| setting::called(id, name, &json!({ "path": path }));
    setting
        .call_all(&[
            call("0", "read_file", "/project/a"),
            call("1", "read_file", "/project/b"),
            call("2", "write_file", "/project/c"),
            call("3", "web_search", ""),
            call("4", "write_file", "/project/a"),
            call("5", "terminal", ""),
            call("6", "clarify", ""),
            call("7", "read_file", "/project/d"),
            call("8", "write_file", "/project/d/e"),
            call("9", "read_file", "/project/c"),
        ])
        .await;
    let log = log.lock().unwrap();
    let at = |id: &str, begins: bool| log.iter().position(|seen| *seen == (id.to_owned(), begins)).unwrap();
    let after = |first: &str, second: &str| at(first, false) < at(second, true);
    let together = |a: &str, b: &str| !after(a, b) && !after(b, a);
    for (a, b) in [("0", "1"), ("0", "2"), ("1", "2"), ("0", "3"), ("2", "3"), ("7", "9")] {
        assert!(together(a, b), "{a} and {b}: {log:?}");
    }
    for (first, second) in [("0", "4"), ("4", "5"), ("2", "5"), ("5", "6"), ("6", "7"), ("7", "8"), ("6", "9")] {
        assert!(after(first, second), "{first} before {second}: {log:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_json_is_never_put_into_another_text() {
    for value in [json!({ "a": { "b": [1, null] } }), json!([1, "two"]), json!("text"), json!(1.5), json!(null)] {
        let tool = Arc::new(FakeTool::new("give").result(Ok(ToolOutput::json(value.clone()))));
        let report = Setting::new([&tool]).call("give", json!({})).await;
        assert_eq!(report.text, value.to_string());
        assert_eq!(answer(&report), value);
    }
}

/// A tool that does what its argument says until somebody has had enough.
fn moody() -> Arc<FakeTool> {
    Arc::new(FakeTool::new("moody").effect(Effect::Write).touching(|_, _| Touches::writing("/project/a")).run_async(
        |arguments, cx| async move {
            match arguments["mood"].as_str().unwrap() {
                "well" => Ok(json!({}).into()),
                "ill" => Err(ToolError::tell("ill")),
                "stop" => Err(ToolError::Stop(StopTurn::Broken("enough".into()))),
                "crash" => panic!("boom"),
                "heed" => {
                    cx.cancel.cancelled().await;
                    Ok(json!({}).into())
                }
                _ => std::future::pending().await,
            }
        },
    ))
}

#[tokio::test(start_paused = true)]
async fn every_way_to_end_has_exactly_one_event_and_its_own_word() {
    let words = |mood: &'static str| json!({ "mood": mood }).to_string();
    // A call, what was done around it, and how it ends; none of the words of a status is left out.
    let cases: Vec<(&str, String, Around, Status)> = vec![
        ("moody", words("well"), Around::Nothing, Status::Ok),
        ("moody", words("ill"), Around::Nothing, Status::Error),
        ("moody", words("stop"), Around::Nothing, Status::Error),
        ("moody", words("crash"), Around::Nothing, Status::Error),
        ("nobody", "{}".into(), Around::Nothing, Status::UnknownTool),
        ("hidden", "{}".into(), Around::Nothing, Status::OutOfScope),
        ("moody", "{bad".into(), Around::Nothing, Status::InvalidArguments),
        ("moody", words("well"), Around::Block, Status::Blocked),
        ("nobody", "{}".into(), Around::Before, Status::Repeated),
        ("moody", words("well"), Around::SayNo, Status::Refused),
        ("moody", words("well"), Around::Stopped, Status::NotStarted),
        ("moody", words("heed"), Around::StopSoon, Status::Interrupted),
        ("moody", words("hang"), Around::StopSoon, Status::Interrupted),
        ("moody", words("hang"), Around::Nothing, Status::TimedOut),
    ];
    for (name, arguments, around, status) in cases {
        let audit = Audit::new();
        let mut hooks = Hooks { post: vec![Arc::clone(&audit) as _], ..Hooks::default() };
        if around == Around::Block {
            hooks.pre.push(Arc::new(Gate::saying("policy", HookDecision::Block("no".into()))));
        }
        let hidden = Arc::new(FakeTool::new("hidden"));
        let mut setting = Setting::new([&moody(), &hidden]).with_hooks(hooks).allowing_all();
        setting.visible.remove("hidden");
        setting.task.guardrails = Some(Guardrails::default());
        match around {
            Around::SayNo => setting.approve = ApprovalMode::None,
            Around::Stopped => setting.cancel.cancel(),
            Around::Before => {
                for _ in 0..2 {
                    setting.call_text(name, &arguments).await;
                }
            }
            Around::Nothing | Around::Block | Around::StopSoon => {}
        }
        let before = audit.records().len();
        let (report, ()) = tokio::join!(setting.call_text(name, &arguments), async {
            if around == Around::StopSoon {
                tokio::time::sleep(Duration::from_secs(1)).await;
                setting.cancel.cancel();
            }
        });
        assert_eq!(report.status, status, "{name} {arguments}");
        let records = audit.records().split_off(before);
        let told: Vec<(&str, bool)> =
            records.iter().map(|record| (record.status.as_str(), record.text == report.text)).collect();
        assert_eq!(told, [(status.word(), true)], "{name} {arguments}: one event, with what the model reads");
    }
}

/// What happens around a call.
#[derive(Clone, Copy, PartialEq)]
enum Around {
    Nothing,
    /// A hook says no.
    Block,
    /// The same call was made twice before.
    Before,
    SayNo,
    /// The turn is over already.
    Stopped,
    /// The turn ends a second later.
    StopSoon,
}
