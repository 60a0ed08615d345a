//! Calls that make no sense: nothing runs, nothing is guessed, and the answer says how to do better.
//!
//! Approvals are switched off here, so that only the step under test stands between a call and a tool.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::sync::Arc;

use hermes_core::{Effect, JsonMap, RawArguments, Tool as _, ToolCall, ToolName, Touches};
use hermes_runtime::Status;
use hermes_testkit::FakeTool;
use serde_json::{Value, json};
use setting::{Moment, Setting, answer, called, called_with_text, error, register};

/// `path` is required, everything else may be left out, and nothing else is known.
fn reader() -> Arc<FakeTool> {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "limit": { "type": "integer" },
            "mode": { "type": "string", "enum": ["text", "bytes"] },
            "tags": { "type": "array", "items": { "type": "string" } },
            "range": {
                "type": "object",
                "properties": { "from": { "type": "integer" }, "to": { "type": "integer" } },
                "required": ["from", "to"],
            },
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    Arc::new(FakeTool::new("read_file").effect(Effect::Read).parallel(true).parameters(schema))
}

fn writer() -> Arc<FakeTool> {
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "content": { "type": "string" } },
        "required": ["path", "content"],
    });
    let writes = |arguments: &JsonMap, cx: &hermes_core::ToolCx| {
        Touches::writing(cx.resolve(arguments["path"].as_str().unwrap_or_default()))
    };
    Arc::new(FakeTool::new("write_file").effect(Effect::Write).parameters(schema).touching(writes))
}

/// Takes anything, so that only a broken call can keep it from running.
fn anything() -> Arc<FakeTool> {
    Arc::new(FakeTool::new("anything"))
}

#[tokio::test]
async fn an_unknown_tool_runs_nothing_and_the_answer_names_the_nearest_and_all() {
    let (reader, writer) = (reader(), writer());
    let setting = Setting::new([&reader, &writer]).allowing_all();
    let report = setting.call("reed_file", json!({ "path": "a" })).await;
    assert_eq!((report.status, report.name.as_str()), (Status::UnknownTool, "reed_file"));
    assert_eq!(report.stop, None);
    let told = error(&report);
    assert!(told.contains("`reed_file`") && told.contains("nothing was run"), "{told}");
    assert!(told.contains("Similar: read_file"), "{told}");
    assert!(told.contains("Available: read_file, write_file"), "{told}");
    assert!(reader.calls().is_empty() && writer.calls().is_empty());
}

#[tokio::test]
async fn a_name_that_is_80_percent_a_writer_is_never_executed() {
    let (reader, writer) = (reader(), writer());
    let setting = Setting::new([&reader, &writer]).allowing_all();
    let arguments = json!({ "path": "a", "content": "b" });
    for name in ["write_files", "writ_file", "write_fil", "write_file_2", "write_filetool2", "overwrite_file"] {
        let alike = strsim::jaro_winkler(name, "write_file").max(strsim::normalized_levenshtein(name, "write_file"));
        // `overwrite_file` is the trap for anybody who thinks of substrings instead.
        assert!(alike >= 0.8 || name.contains("write_file"), "{name} is no temptation: {alike}");
        let report = setting.call(name, arguments.clone()).await;
        assert_eq!(report.status, Status::UnknownTool, "{name}");
        assert!(error(&report).contains("write_file"), "{name} is at least offered: {}", report.text);
    }
    assert!(writer.calls().is_empty(), "{:?}", writer.calls());
}

#[tokio::test]
async fn another_spelling_of_a_name_is_the_same_tool_and_is_reported_under_its_real_name() {
    let reader = reader();
    let setting = Setting::new([&reader]).allowing_all();
    for name in ["ReadFile", "read-file", " Read File ", "read_file_tool"] {
        let report = setting.call(name, json!({ "path": "a" })).await;
        assert_eq!((report.status, report.name.as_str()), (Status::Ok, "read_file"), "{name}");
    }
    assert_eq!(reader.calls().len(), 4);
}

#[tokio::test]
async fn a_call_without_a_name_runs_nothing_and_gets_no_catalogue() {
    let anything = anything();
    let setting = Setting::new([&anything]).allowing_all();
    for name in ["", " ", "\n\t"] {
        let report = setting.call(name, json!({})).await;
        assert_eq!(report.status, Status::UnknownTool, "{name:?}");
        let told = error(&report);
        // A list of tools would reward text that merely looks like a call.
        assert!(told.contains("without a name") && !told.contains("anything"), "{told}");
    }
    assert!(anything.calls().is_empty());
}

#[tokio::test]
async fn a_name_of_a_page_is_not_repeated_in_full() {
    let setting = Setting::new([&anything()]).allowing_all();
    let report = setting.call(&"é".repeat(50_000), json!({})).await;
    assert_eq!(report.status, Status::UnknownTool);
    assert!(report.text.chars().count() < 500, "{} characters", report.text.chars().count());
}

#[tokio::test]
async fn a_tool_that_was_not_granted_is_refused_although_it_is_registered() {
    let (reader, writer) = (reader(), writer());
    let mut setting = Setting::new([&reader, &writer]).allowing_all();
    setting.visible.remove("write_file");
    for name in ["write_file", "WriteFile", "write_file_tool"] {
        let report = setting.call(name, json!({ "path": "a", "content": "b" })).await;
        // Only the exact name proves that somebody knows the tool.
        let status = if name == "write_file" { Status::OutOfScope } else { Status::UnknownTool };
        assert_eq!(report.status, status, "{name}");
        let told = error(&report).replacen(name, "", 1);
        assert!(!told.contains("write_file"), "a tool that is hidden is not mentioned: {told}");
        assert!(told.contains("Available: read_file."), "{told}");
    }
    assert!(writer.calls().is_empty());
    assert_eq!(setting.call("read_file", json!({ "path": "a" })).await.status, Status::Ok);
}

#[tokio::test]
async fn a_tool_that_was_unregistered_meanwhile_is_neither_run_nor_offered() {
    let (reader, ghost) = (reader(), Arc::new(FakeTool::new("ghost")));
    let mut setting = Setting::new([&reader]).allowing_all();
    let server = register(&setting.registry, "server", vec![Arc::clone(&ghost) as _]);
    setting.visible.insert(ghost.spec().name.clone());
    assert_eq!(setting.call("ghost", json!({})).await.status, Status::Ok);

    setting.registry.withdraw(&server);
    let report = setting.call("ghost", json!({})).await;
    assert_eq!(report.status, Status::UnknownTool);
    assert_eq!(ghost.calls().len(), 1);
    let told = error(&report).replacen("ghost", "", 1);
    assert!(!told.contains("ghost"), "what is gone cannot be called again: {told}");
}

#[tokio::test]
async fn arguments_that_are_no_object_run_nothing_and_the_answer_names_the_byte() {
    let anything = anything();
    let setting = Setting::new([&anything]).allowing_all();
    for (text, place) in [
        ("{bad", "byte 1"),
        ("{\"a\":1", "cut off at byte 6"),
        ("{\"command\":\"rm -rf bui", "cut off at byte 22"),
        ("{\"é\":1", "cut off at byte 7"),
        ("{\"a\":1,}", "byte 7"),
        ("{'a':1}", "byte 1"),
        ("{\"a\":1} {\"a\":2}", "byte 8"),
        ("[1]", "at byte 0 there is a list"),
        ("\"text\"", "at byte 0 there is a text"),
        ("7", "at byte 0 there is a number"),
        ("true", "at byte 0 there is a boolean"),
    ] {
        let report = setting.call_text("anything", text).await;
        assert_eq!(report.status, Status::InvalidArguments, "{text}");
        let told = error(&report);
        assert!(told.contains(place), "{text}: {told}");
        assert!(told.contains("anything") && told.contains("nothing was run"), "{text}: {told}");
    }
    assert!(anything.calls().is_empty(), "{:?}", anything.calls());
}

#[tokio::test]
async fn arguments_nested_deeper_than_anybody_means_are_refused_and_nothing_overflows() {
    let anything = anything();
    let setting = Setting::new([&anything]).allowing_all();
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let report = setting.call_text("anything", &deep).await;
    assert_eq!(report.status, Status::InvalidArguments);
    assert!(report.text.len() < 1_000, "{} bytes", report.text.len());
    assert!(anything.calls().is_empty());
}

#[tokio::test]
async fn no_arguments_at_all_are_an_empty_object() {
    let (anything, reader) = (anything(), reader());
    let setting = Setting::new([&anything, &reader]).allowing_all();
    for text in ["", "  \n", "null", "{}"] {
        assert_eq!(setting.call_text("anything", text).await.status, Status::Ok, "{text:?}");
        assert_eq!(anything.calls().last().unwrap().arguments, JsonMap::new(), "{text:?}");
        // Where something is required, nothing is not enough.
        let report = setting.call_text("read_file", text).await;
        assert_eq!(report.status, Status::InvalidArguments, "{text:?}");
        assert!(error(&report).contains("missing `path`"), "{}", report.text);
    }
    assert!(reader.calls().is_empty());
}

#[tokio::test]
async fn everything_that_is_missing_is_named_at_once_with_the_expected_shape() {
    let (reader, writer) = (reader(), writer());
    let setting = Setting::new([&reader, &writer]).allowing_all();
    let told = error(&setting.call("write_file", json!({})).await);
    assert!(told.contains("missing `path`") && told.contains("missing `content`"), "{told}");
    assert!(told.contains("Expected {path: string, content: string}"), "{told}");

    let told = error(&setting.call("read_file", json!({ "range": { "from": 1 } })).await);
    assert!(told.contains("missing `path`") && told.contains("missing `to` in `range`"), "{told}");
    let shape = r#"{path: string, limit?: integer, mode?: "text"|"bytes", tags?: [string], range?: object}"#;
    assert!(told.contains(shape), "{told}");
    assert!(reader.calls().is_empty() && writer.calls().is_empty());
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_named_with_what_would() {
    let reader = reader();
    let setting = Setting::new([&reader]).allowing_all();
    for (extra, problem) in [
        (json!({ "limit": "many" }), "`limit` must be an integer, but it is a text (\"many\")"),
        (json!({ "limit": 2.5 }), "`limit` must be an integer, but it is a number (2.5)"),
        (json!({ "limit": [5] }), "`limit` must be an integer, but it is a list"),
        (json!({ "path": 5 }), "`path` must be a string, but it is a number (5)"),
        (json!({ "path": null }), "`path` must be a string, but it is null"),
        (json!({ "path": ["a"] }), "`path` must be a string, but it is a list"),
        (json!({ "mode": "Text" }), r#"`mode` must be one of "text", "bytes", not "Text""#),
        (json!({ "tags": ["a", 5] }), "`tags.1` must be a string, but it is a number (5)"),
        (json!({ "range": { "from": 1, "to": "x" } }), "`range.to` must be an integer"),
        (json!({ "colour": "red" }), "no such argument: `colour`"),
    ] {
        let mut arguments = json!({ "path": "a" });
        arguments.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let report = setting.call("read_file", arguments).await;
        assert_eq!(report.status, Status::InvalidArguments, "{extra}");
        let told = error(&report);
        assert!(told.contains(problem), "{extra}: {told}");
        assert!(told.contains("nothing was run. Expected {path: string"), "{extra}: {told}");
    }
    assert!(reader.calls().is_empty(), "{:?}", reader.calls());
}

#[tokio::test]
async fn all_problems_are_named_in_one_answer() {
    let reader = reader();
    let setting = Setting::new([&reader]).allowing_all();
    let arguments = json!({ "limit": "many", "mode": "x", "colour": 1 });
    let told = error(&setting.call("read_file", arguments).await);
    for problem in ["missing `path`", "`limit`", "`mode`", "`colour`"] {
        assert!(told.contains(problem), "{problem}: {told}");
    }
}

#[tokio::test]
async fn the_tool_gets_exactly_the_arguments_that_were_validated() {
    let reader = reader();
    let setting = Setting::new([&reader]).allowing_all();
    let given = json!({ "path": "a", "limit": "12", "tags": "one", "mode": null, "background": false });
    let report = setting.call("read_file", given).await;
    assert_eq!(report.status, Status::Ok, "{}", report.text);
    let got = Value::Object(reader.calls()[0].arguments.clone());
    assert_eq!(got, json!({ "path": "a", "limit": 12, "tags": ["one"] }));
}

#[tokio::test]
async fn arguments_from_a_program_are_checked_like_those_of_a_model() {
    let reader = reader();
    let setting = Setting::new([&reader]).allowing_all();
    let map = |value: Value| RawArguments::Object(value.as_object().unwrap().clone());
    let call = |arguments| ToolCall { id: "call".into(), name: "read_file".into(), arguments: map(arguments) };
    assert_eq!(setting.make(&call(json!({ "limit": 1 }))).await.status, Status::InvalidArguments);
    assert!(reader.calls().is_empty());
    assert_eq!(setting.make(&call(json!({ "path": "a" }))).await.status, Status::Ok);
}

#[tokio::test]
async fn a_tool_whose_own_schema_is_broken_takes_no_call() {
    for schema in [
        json!({ "type": "object", "properties": { "a": { "type": "strin" } } }),
        json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }),
        json!({ "type": "object", "properties": {}, "required": "a" }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/missing" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "http://127.0.0.1:9/schema.json" } } }),
    ] {
        let tool = Arc::new(FakeTool::new("odd").parameters(schema.clone()));
        let setting = Setting::new([&tool]).allowing_all();
        // Twice, because the compiled schema is kept.
        for _ in 0..2 {
            let report = setting.call("odd", json!({ "a": "x" })).await;
            assert_eq!(report.status, Status::InvalidArguments, "{schema}");
            let told = error(&report);
            assert!(told.contains("schema is broken"), "{schema}: {told}");
        }
        assert!(tool.calls().is_empty(), "{schema}");
    }
}

#[tokio::test]
async fn every_broken_call_begins_once_and_ends_once_with_its_status() {
    let reader = reader();
    let setting = Setting::new([&reader]).allowing_all();
    let calls = [
        called("unknown", "nothing_like_it", &json!({})),
        called("blank", "", &json!({})),
        called_with_text("cut", "read_file", "{\"path\":\"a"),
        called_with_text("list", "read_file", "[]"),
        called("incomplete", "read_file", &json!({})),
    ];
    let ended = [
        Status::UnknownTool,
        Status::UnknownTool,
        Status::InvalidArguments,
        Status::InvalidArguments,
        Status::InvalidArguments,
    ];
    let mut expected = Vec::new();
    for (call, status) in calls.iter().zip(ended) {
        setting.make(call).await;
        expected.extend([Moment::Started(call.id.clone()), Moment::Finished(call.id.clone(), status)]);
    }
    assert_eq!(setting.heard.moments(), expected);
    // The same calls as one turn: each has its answer, in order, whatever stands around it.
    let reports = setting.call_all(&calls).await;
    assert_eq!(reports.iter().map(|report| report.status).collect::<Vec<_>>(), ended);
    assert!(reports.iter().all(|report| answer(report)["error"].is_string()));
    assert!(reader.calls().is_empty());
}

#[tokio::test]
async fn a_long_list_of_tools_is_not_spelt_out_but_the_nearest_are() {
    let tools: Vec<_> = (0..200).map(|n| Arc::new(FakeTool::new(&format!("number_{n:03}")))).collect();
    let setting = Setting::new(&tools).allowing_all();
    let told = error(&setting.call("number_07", json!({})).await);
    assert!(told.contains("number_07"), "{told}");
    assert!(told.contains("200 tools are available") && told.len() < 500, "{told}");
    let named = told.split("Similar: ").nth(1).unwrap().split('.').next().unwrap();
    for name in named.split(", ") {
        assert!(setting.visible.contains(&ToolName::new(name).unwrap()), "{named}");
    }
}

/// The problems of the answer as `field: expected`.
fn fields(report: &hermes_runtime::CallReport) -> Vec<String> {
    let answer = answer(report);
    let one = |field: &Value| format!("{}: {}", field["field"].as_str().unwrap(), field["expected"].as_str().unwrap());
    answer["fields"].as_array().unwrap().iter().map(one).collect()
}

#[tokio::test]
async fn every_problem_has_its_field_and_what_is_expected_there() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": { "type": "integer", "minimum": 1, "maximum": 9 },
            "name": { "type": "string", "minLength": 2, "pattern": "^[a-z]+$" },
            "list": { "type": "array", "items": { "type": "integer" }, "maxItems": 2, "uniqueItems": true },
            "either": { "anyOf": [{ "type": "integer" }, { "$ref": "#/$defs/mode" }] },
            "maybe": { "anyOf": [{ "type": "array", "items": { "$ref": "#/$defs/todo" } }, { "type": "null" }] },
            "kind": { "oneOf": [
                { "type": "object", "properties": { "is": { "const": "a" }, "n": { "type": "string" } }, "required": ["is"] },
                { "type": "object", "properties": { "is": { "const": "b" }, "n": { "type": "integer" } }, "required": ["is"] },
            ] },
            "a/b~c": { "type": "boolean" },
        },
        "additionalProperties": false,
        "$defs": {
            "mode": { "enum": ["x", "y"] },
            "todo": { "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] },
        },
    });
    let tool = Arc::new(FakeTool::new("odd").parameters(schema));
    let setting = Setting::new([&tool]).allowing_all();
    for (given, expected) in [
        (json!({ "n": 0 }), vec!["n: at least 1"]),
        (json!({ "n": 10 }), vec!["n: at most 9"]),
        (json!({ "name": "A" }), vec!["name: of 2 or more characters", "name: a text that matches /^[a-z]+$/"]),
        (
            json!({ "list": [1, 1, "x"] }),
            vec!["list: of 2 or fewer elements", "list: without an element twice", "list.2: an integer"],
        ),
        (json!({ "either": "z" }), vec!["either: an integer or one of \"x\", \"y\""]),
        (json!({ "maybe": [{ "id": 1 }, {}] }), vec!["maybe.0.id: a string", "maybe.1.id: a string"]),
        (json!({ "maybe": true }), vec!["maybe: an array or null"]),
        (json!({ "kind": { "is": "b", "n": "x" } }), vec!["kind.n: an integer"]),
        (json!({ "a/b~c": "x" }), vec!["a/b~c: a boolean"]),
        (json!({ "colour": 1 }), vec!["colour: no argument of this name"]),
    ] {
        let report = setting.call("odd", given.clone()).await;
        assert_eq!(report.status, Status::InvalidArguments, "{given}");
        let mut told = fields(&report);
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!(told, expected, "{given}: {}", report.text);
    }
    assert!(tool.calls().is_empty());
}

#[tokio::test]
async fn a_thousand_problems_and_a_page_in_the_wrong_place_make_a_short_answer() {
    let reader = reader();
    let setting = Setting::new([&reader]).allowing_all();
    let arguments = json!({ "path": "a", "tags": vec![1; 1_000], "limit": "x".repeat(100_000) });
    let report = setting.call("read_file", arguments).await;
    assert_eq!(answer(&report)["fields"].as_array().unwrap().len(), 20);
    assert!(error(&report).contains("and 981 more"), "{}", report.text);
    assert!(report.text.len() < 6_000, "{} bytes", report.text.len());

    let report = setting.call("read_file", json!({ "path": "a", "x".repeat(100_000): 1 })).await;
    assert_eq!(report.status, Status::InvalidArguments);
    assert!(report.text.len() < 2_000, "{} bytes", report.text.len());
}
