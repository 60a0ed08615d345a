//! Calls that went wrong in the field, one test for each row of `cases/reports.jsonl`, made as a model makes them.
//!
//! A row says what happened to others (`fact`), what came in (`input`) and what is right (`right`). The tests are
//! written out by hand, because an input is a description; what is data is that no row is forgotten. What waits for
//! something that is not built yet is in `cases/DEFERRED.md`.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::sync::Arc;

use hermes_core::{Effect, JsonMap, RawArguments, StopTurn, ToolCall, Touches};
use hermes_runtime::{CallReport, Change, Guardrails, Status};
use hermes_testkit::{FakeTool, reports};
use serde_json::{Value, json};
use setting::{Setting, answer, error};

#[test]
fn no_row_is_forgotten() {
    let rows = reports::rows(|id| id.starts_with("01-args"));
    assert!(!rows.is_empty());
    assert_eq!(reports::forgotten(&rows), [] as [&str; 0], "neither tested nor deferred");
}

/// A tool `name` that takes `properties`, the ones named in `required` at least.
fn tool(name: &str, properties: &Value, required: &[&str]) -> Arc<FakeTool> {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Arc::new(FakeTool::new(name).parameters(schema))
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// What the tool got from its last call.
#[track_caller]
fn got(tool: &FakeTool) -> Value {
    Value::Object(tool.calls().last().expect("the tool was not reached").arguments.clone())
}

/// Calls `tool` with `arguments` and gives what it got.
async fn received(tool: &Arc<FakeTool>, arguments: Value) -> Value {
    let setting = Setting::new([tool]).allowing_all();
    let report = setting.call(tool_name(tool), arguments).await;
    assert_eq!(report.status, Status::Ok, "{}", report.text);
    got(tool)
}

fn tool_name(tool: &FakeTool) -> &str {
    use hermes_core::Tool as _;
    tool.spec().name.as_str()
}

/// The problem of `field` in the answer.
#[track_caller]
fn field(report: &CallReport, field: &str) -> Value {
    let answer = answer(report);
    let fields = answer["fields"].as_array().unwrap_or_else(|| panic!("no fields in {answer}"));
    fields.iter().find(|one| one["field"] == field).unwrap_or_else(|| panic!("no {field} in {answer}")).clone()
}

fn changed(report: &CallReport) -> Vec<(&str, Option<&Value>)> {
    report.changes.iter().map(|change| (change.field.as_str(), change.to.as_ref())).collect()
}

// 01-args-02
#[tokio::test]
async fn args_02_cut_arguments_never_run_and_the_answer_counts_what_came() {
    let schema = json!({ "type": "object", "properties": { "path": text(), "content": text() }, "required": ["path"] });
    let writes = |arguments: &JsonMap, cx: &hermes_core::ToolCx| {
        Touches::writing(cx.resolve(arguments["path"].as_str().unwrap_or_default()))
    };
    let writer = Arc::new(FakeTool::new("write_file").effect(Effect::Write).parameters(schema).touching(writes));
    let setting = Setting::new([&writer]).allowing_all();
    let cut = "{\"path\":\"report.md\",\"content\":\"# Title\\nline one";
    let complete = format!("{cut}\"}}");
    for arguments in [
        RawArguments::Text(cut.into()),
        RawArguments::Cut(cut.into()),
        // A limit can strike where the text looks complete.
        RawArguments::Cut(complete.clone()),
        RawArguments::Text(cut.rsplit_once('"').unwrap().0.into()),
    ] {
        let came = arguments.to_text().chars().count();
        let report = setting.make(&ToolCall { id: "c".into(), name: "write_file".into(), arguments }).await;
        assert_eq!(report.status, Status::InvalidArguments);
        let told = error(&report);
        assert!(told.contains(&format!("after {came} characters")), "{told}");
        assert!(told.contains("nothing was run") && told.contains("smaller pieces"), "{told}");
    }
    assert!(writer.calls().is_empty());
    // The same call in one piece runs, so it was the cut that stopped it.
    assert_eq!(setting.call_text("write_file", &complete).await.status, Status::Ok);
}

// 01-args-04
#[tokio::test]
async fn args_04_blank_arguments_are_none_and_what_is_missing_is_listed() {
    let scopes = tool("list_scopes", &json!({}), &[]);
    let one =
        tool("get_scope", &json!({ "id": { "type": "integer" }, "kind": { "enum": ["a", "b"] } }), &["id", "kind"]);
    let setting = Setting::new([&scopes, &one]).allowing_all();
    for blank in ["", "  \n\t", "\u{feff}", "null"] {
        assert_eq!(setting.call_text("list_scopes", blank).await.status, Status::Ok, "{blank:?}");
        assert_eq!(got(&scopes), json!({}));
        let report = setting.call_text("get_scope", blank).await;
        assert_eq!(report.status, Status::InvalidArguments, "{blank:?}");
        assert!(error(&report).contains("missing `id`; missing `kind`"), "{}", report.text);
        assert_eq!(field(&report, "id"), json!({ "field": "id", "got": "nothing", "expected": "an integer" }));
        assert_eq!(field(&report, "kind")["allowed"], json!(["a", "b"]));
        assert!(!report.text.contains("JSON") && !report.text.contains("EOF"), "{}", report.text);
    }
    assert!(one.calls().is_empty());
}

// 01-args-05; what is stored and sent again is tested beside `agent::chat_completions::wire`.
#[tokio::test]
async fn args_05_what_is_no_object_does_not_run_and_null_is_empty() {
    let any = tool("any", &json!({}), &[]);
    let setting = Setting::new([&any]).allowing_all();
    for (arguments, kind) in [("[\"a\",\"b\"]", "a list"), ("\"plain\"", "a text"), ("7", "a number")] {
        let report = setting.call_text("any", arguments).await;
        assert_eq!(report.status, Status::InvalidArguments, "{arguments}");
        assert!(error(&report).contains(&format!("must be a JSON object, but at byte 0 there is {kind}")));
    }
    assert!(any.calls().is_empty());
    assert_eq!(setting.call_text("any", "null").await.status, Status::Ok);
    assert_eq!(got(&any), json!({}));
}

// 01-args-06
#[tokio::test]
async fn args_06_single_values_become_lists_at_every_depth() {
    let run = json!({ "type": "object", "properties": { "text": text() } });
    let block = json!({ "type": "object", "properties": { "runs": { "type": "array", "items": run } } });
    let tool = tool("append", &json!({ "blocks": { "type": "array", "items": block } }), &["blocks"]);
    let right = json!({ "blocks": [{ "runs": [{ "text": "hi" }] }] });
    for given in [
        right.clone(),
        json!({ "blocks": [{ "runs": { "text": "hi" } }] }),
        json!({ "blocks": { "item": { "runs": [{ "text": "hi" }] } } }),
        json!({ "blocks": { "runs": { "text": "hi" } } }),
        json!({ "blocks": { "item": [{ "runs": { "item": { "text": "hi" } } }] } }),
    ] {
        assert_eq!(received(&tool, given.clone()).await, right, "{given}");
    }
    let with_item = json!({ "type": "object", "properties": { "item": text() } });
    let other = self::tool("append", &json!({ "blocks": { "type": "array", "items": with_item } }), &["blocks"]);
    let given = json!({ "blocks": { "item": "hi" } });
    assert_eq!(received(&other, given).await, json!({ "blocks": [{ "item": "hi" }] }), "a field of that name stays");
}

// 01-args-07
#[tokio::test]
async fn args_07_a_list_in_a_text_is_a_list_and_a_wrong_element_is_named() {
    let status = json!({ "type": "string", "enum": ["pending", "completed"] });
    let todo = json!({ "type": "object", "properties": { "id": text(), "content": text(), "status": status },
                       "required": ["id", "content", "status"] });
    let tool =
        tool("todo", &json!({ "todos": { "type": "array", "items": todo }, "merge": { "type": "boolean" } }), &[]);
    let list = json!([{ "id": "1", "content": "ship", "status": "pending" }]);
    let setting = Setting::new([&tool]).allowing_all();
    let report = setting.call("todo", json!({ "todos": list.to_string(), "merge": "false" })).await;
    assert_eq!(report.status, Status::Ok, "{}", report.text);
    assert_eq!(got(&tool), json!({ "todos": list, "merge": false }));
    assert_eq!(changed(&report), [("todos", Some(&list)), ("merge", Some(&json!(false)))]);

    for todos in [json!(["ship"]), json!("[\"ship\"]")] {
        let report = setting.call("todo", json!({ "todos": todos })).await;
        assert_eq!(report.status, Status::InvalidArguments);
        assert!(error(&report).contains("`todos.0` must be an object, but it is a text (\"ship\")"), "{}", report.text);
        assert_eq!(field(&report, "todos.0")["expected"], "an object");
    }
    let broken = json!({ "todos": [list[0], { "id": "2", "content": "x", "status": "done" }] });
    let report = setting.call("todo", broken).await;
    let expected = json!({ "field": "todos.1.status", "got": "a text (\"done\")",
                           "expected": "one of \"pending\", \"completed\"", "allowed": ["pending", "completed"] });
    assert_eq!(field(&report, "todos.1.status"), expected);
    assert_eq!(tool.calls().len(), 1);
}

// 01-args-08
#[tokio::test]
async fn args_08_a_bare_word_is_a_list_of_one_and_commas_mean_nothing() {
    let tool = tool("find", &json!({ "globs": { "type": "array", "items": text() } }), &["globs"]);
    for word in ["*.rs", "a.rs,b.rs", "[broken"] {
        let setting = Setting::new([&tool]).allowing_all();
        let report = setting.call("find", json!({ "globs": word })).await;
        assert_eq!(report.status, Status::Ok, "{}", report.text);
        assert_eq!(got(&tool), json!({ "globs": [word] }));
        let change = Change { field: "globs".into(), from: json!(word), to: Some(json!([word])) };
        assert_eq!(report.changes, [change], "the record names the parameter");
    }
}

// 01-args-09
#[tokio::test]
async fn args_09_numbers_in_texts_are_numbers_only_if_nothing_is_lost() {
    let tool = tool("list", &json!({ "limit": { "type": "integer" }, "ratio": { "type": "number" } }), &[]);
    let given = json!({ "limit": "10", "ratio": "0.5" });
    assert_eq!(received(&tool, given).await, json!({ "limit": 10, "ratio": 0.5 }));
    let setting = Setting::new([&tool]).allowing_all();
    for (name, value) in [
        ("limit", "0x10"),
        ("limit", "1,000"),
        ("limit", "10abc"),
        ("limit", "3.7"),
        ("ratio", "NaN"),
        ("limit", "1_000"),
        ("limit", "10 MB"),
        ("ratio", "inf"),
        ("limit", "99999999999999999999"),
    ] {
        let report = setting.call("list", json!({ name: value })).await;
        assert_eq!(report.status, Status::InvalidArguments, "{name}: {value}");
        assert_eq!(field(&report, name)["got"], format!("a text (\"{value}\")"));
        assert_eq!(report.changes, []);
    }
    assert_eq!(tool.calls().len(), 1);
}

// 01-args-11
#[tokio::test]
async fn args_11_what_surrounds_an_object_is_stripped_and_nothing_else_is_guessed() {
    let tool = tool("ask", &json!({ "q": { "type": "integer" } }), &["q"]);
    let setting = Setting::new([&tool]).allowing_all();
    for fine in ["\u{feff}{\"q\":1}", "{\"q\":1} done!", "\u{2028}{\"q\":1}\u{2028}", "{\"q\":1}{\"q\":1}"] {
        let report = setting.call_text("ask", fine).await;
        assert_eq!(report.status, Status::Ok, "{fine:?}: {}", report.text);
        assert_eq!(got(&tool), json!({ "q": 1 }), "{fine:?}");
    }
    let calls = tool.calls().len();
    for (broken, told) in [
        ("{\"q\":NaN}", "byte 5: `NaN` is no JSON number"),
        ("{\"q\":-Infinity}", "`-Infinity` is no JSON number"),
        ("{\"q\":1}\u{2028}{\"q\":2}", "byte 10: a second, different object"),
        ("{\"q\":1} or {\"q\":2}", "byte 8: trailing characters"),
    ] {
        let report = setting.call_text("ask", broken).await;
        assert_eq!(report.status, Status::InvalidArguments, "{broken:?}");
        assert!(error(&report).contains(told), "{broken:?}: {}", report.text);
    }
    assert_eq!(tool.calls().len(), calls);
}

// 01-args-13
#[tokio::test]
async fn args_13_a_name_of_other_agents_is_answered_with_the_tool_and_what_it_requires() {
    let schema = json!({ "type": "object", "properties": { "command": text(), "timeout": { "type": "integer" } },
                         "required": ["command"] });
    let terminal = FakeTool::new("terminal").effect(Effect::Execute).parameters(schema);
    let terminal = Arc::new(terminal.with_spec(|spec| spec.also_known_as = vec!["bash".into(), "shell".into()]));
    let reader = tool("read_file", &json!({ "path": text() }), &["path"]);
    let mut setting = Setting::new([&terminal, &reader]).allowing_all();
    for name in ["bash", "Bash", "bash_tool", "shell"] {
        let report = setting.call(name, json!({ "command": "ls" })).await;
        assert_eq!(report.status, Status::UnknownTool, "{name}");
        let told = error(&report);
        assert!(told.starts_with(&format!("there is no tool `{name}`; nothing was run. Similar: terminal")), "{told}");
        assert!(told.contains("`terminal` requires {command: string}."), "{told}");
        assert!(!told.contains('\n'), "one line: {told}");
    }
    assert!(terminal.calls().is_empty(), "an alias is never run");
    for name in ["Terminal", "terminal_tool", "TERMINAL"] {
        assert_eq!(setting.call(name, json!({ "command": "ls" })).await.status, Status::Ok, "{name}");
    }
    for name in ["read-file", "Read_File"] {
        assert_eq!(setting.call(name, json!({ "path": "a" })).await.status, Status::Ok, "{name}");
    }
    // What this caller may not see is not offered either.
    setting.visible.remove("terminal");
    let told = error(&setting.call("bash", json!({ "command": "ls" })).await);
    assert!(!told.contains("terminal"), "{told}");
}

// 01-args-13
#[tokio::test]
async fn args_13_the_third_identical_miss_is_blocked_and_another_call_is_another_matter() {
    let terminal = Arc::new(FakeTool::new("terminal").effect(Effect::Execute));
    let mut setting = Setting::new([&terminal]).allowing_all();
    setting.task.guardrails = Some(Guardrails::default());
    let mut statuses = Vec::new();
    let mut last = None;
    for _ in 0..3 {
        let report = setting.call("bash", json!({ "command": "ls" })).await;
        statuses.push(report.status);
        last = Some(report);
    }
    assert_eq!(statuses, [Status::UnknownTool, Status::UnknownTool, Status::Repeated]);
    let last = last.unwrap();
    assert!(error(&last).contains("attempt 3 of exactly this call of `bash`"), "{}", last.text);
    let expected =
        json!({ "action": "block", "code": "repeated_exact_failure_block", "tool_name": "bash", "count": 3 });
    assert_eq!(answer(&last)["guardrail"], expected);
    assert!(last.stop.is_none(), "the model may still do something else");
    // Another miss is another call, and the right name runs.
    assert_eq!(setting.call("bash", json!({ "command": "pwd" })).await.status, Status::UnknownTool);
    assert_eq!(setting.call("terminal", json!({})).await.status, Status::Ok);
    assert_eq!(terminal.calls().len(), 1);
}

// 01-args-15
#[tokio::test]
async fn args_15_the_third_identical_failure_is_answered_without_dispatch_and_the_third_of_those_ends_the_turn() {
    let actions = json!({ "type": "string", "enum": ["add", "remove"] });
    let memory = tool("memory", &json!({ "action": actions, "target": text() }), &["action"]);
    let mut setting = Setting::new([&memory]).allowing_all();
    setting.task.guardrails = Some(Guardrails::default());
    let broken = || setting.call("memory", json!({ "target": "memory" }));
    let (mut statuses, mut ends) = (Vec::new(), Vec::new());
    for n in 1..=6 {
        let report = broken().await;
        statuses.push(report.status);
        ends.push(matches!(report.stop, Some(StopTurn::Repetition(_))));
        let told = error(&report);
        let expected = if n < 3 { "missing `action`" } else { "Send something else" };
        assert!(told.contains(expected), "{n}: {told}");
    }
    let (broken_call, repeated) = (Status::InvalidArguments, Status::Repeated);
    assert_eq!(statuses, [broken_call, broken_call, repeated, repeated, repeated, repeated]);
    assert_eq!(ends, [false, false, false, false, true, true]);
    assert!(memory.calls().is_empty());
    // What is in order still runs, and a new message of the person forgets the old mistakes.
    assert_eq!(setting.call("memory", json!({ "action": "add" })).await.status, Status::Ok);
    setting.task.begin_turn();
    let report = broken().await;
    assert_eq!((report.status, report.stop), (Status::InvalidArguments, None));
}

// 01-args-15
#[tokio::test]
async fn args_15_a_second_failure_in_a_row_answers_with_the_schema() {
    let actions = json!({ "type": "string", "enum": ["add", "remove"] });
    let memory = tool("memory", &json!({ "action": actions, "target": text() }), &["action"]);
    let other = tool("other", &json!({ "n": { "type": "integer" } }), &[]);
    let setting = Setting::new([&memory, &other]).allowing_all();
    let broken = || setting.call("memory", json!({ "target": "memory" }));
    let schema = |report: &CallReport| answer(report).get("schema").cloned();

    let first = broken().await;
    assert!(error(&first).contains("missing `action`"), "{}", first.text);
    assert_eq!(field(&first, "action")["allowed"], json!(["add", "remove"]));
    assert_eq!(schema(&first), None);
    // Another tool's calls, good or bad, are no success of this one.
    assert_eq!(setting.call("other", json!({})).await.status, Status::Ok);
    assert_eq!(schema(&setting.call("other", json!({ "n": "x" })).await), None);
    let second = schema(&broken().await).expect("the schema");
    assert_eq!(second["required"], json!(["action"]));
    assert!(schema(&broken().await).is_some());
    // A success, and the count begins again.
    assert_eq!(setting.call("memory", json!({ "action": "add" })).await.status, Status::Ok);
    assert_eq!(schema(&broken().await), None);
    assert!(schema(&broken().await).is_some());
    assert_eq!(memory.calls().len(), 1);
}

// 01-args-16
#[tokio::test]
async fn args_16_null_for_what_may_be_left_out_is_left_out() {
    let limit = json!({ "type": "integer" });
    let nullable = json!({ "type": ["integer", "null"] });
    let openapi = json!({ "type": "integer", "nullable": true });
    let properties = json!({ "path": text(), "limit": limit, "or_null": nullable, "openapi": openapi });
    let tool = tool("read", &properties, &["path"]);
    let given = json!({ "path": "a.txt", "limit": null, "extra": null, "or_null": null, "openapi": null });
    let right = json!({ "path": "a.txt", "extra": null, "or_null": null, "openapi": null });
    assert_eq!(received(&tool, given).await, right);

    let setting = Setting::new([&tool]).allowing_all();
    let report = setting.call("read", json!({ "path": null })).await;
    assert_eq!(report.status, Status::InvalidArguments);
    assert_eq!(field(&report, "path"), json!({ "field": "path", "got": "null", "expected": "a string" }));
    assert!(error(&report).contains("`path` must be a string, but it is null"), "{}", report.text);

    let closed = json!({ "type": "object", "properties": { "path": text() }, "required": ["path"], "additionalProperties": false });
    let closed = Arc::new(FakeTool::new("read").parameters(closed));
    assert_eq!(received(&closed, json!({ "path": "a", "extra": null })).await, json!({ "path": "a" }));
}
