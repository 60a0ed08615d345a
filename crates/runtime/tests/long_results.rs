//! Results that would fill the model's window: stored whole, shown in part, and never lost without a word.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::path::Path;
use std::sync::Arc;

use hermes_core::{Environment as _, ToolError, ToolOutput, ToolResult, ToolSpec};
use hermes_runtime::{CallReport, Status};
use hermes_testkit::{FakeEnvironment, FakeTool};
use serde_json::{Value, json};
use setting::{Setting, called};

const STORE: &str = "/tmp/hermes-fake/results";

fn talker(result: ToolResult) -> Arc<FakeTool> {
    Arc::new(FakeTool::new("talk").result(result))
}

/// 150,000 characters in lines of a hundred, every one different.
fn long_text() -> String {
    let text = (0..1_500).fold(String::new(), |text, n| text + &format!("{n:05} {}\n", "é".repeat(93)));
    assert_eq!(text.chars().count(), 150_000);
    text
}

/// What is stored under `id`.
fn stored(setting: &Setting, id: &str) -> String {
    let path = format!("{STORE}/{id}.txt");
    String::from_utf8(setting.environment.file(&path).unwrap_or_else(|| panic!("nothing in {path}"))).unwrap()
}

async fn files_in_store(setting: &Setting) -> Vec<String> {
    setting.environment.list(Path::new(STORE)).await.unwrap_or_default()
}

/// The beginning of the result itself that the model sees.
fn preview(report: &CallReport) -> &str {
    both_ends(report).0
}

/// The beginning and the end; the end is empty if the beginning is all.
fn both_ends(report: &CallReport) -> (&str, &str) {
    let (claim, rest) = report.text.split_once(" characters:\n").unwrap();
    let rest = rest.strip_suffix("\n</persisted-output>").unwrap();
    let is_as_long_as = |claim: &str, shown: &str| {
        let claimed: usize = claim.rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(claimed, shown.chars().count(), "the preview is as long as it says");
    };
    let (head, tail) = match rest.split_once("\n…\nThe last ") {
        Some((head, rest)) => {
            let (last, tail) = rest.split_once(" characters:\n").unwrap();
            is_as_long_as(last, tail);
            (head, tail)
        }
        None => (rest, ""),
    };
    is_as_long_as(claim, head);
    (head, tail)
}

#[tokio::test]
async fn a_result_of_150_000_characters_is_stored_whole_and_shown_by_its_beginning() {
    let text = long_text();
    let setting = Setting::new([&talker(Ok(ToolOutput::text(text.clone()).with_summary("much")))]);
    let report = setting.call("talk", json!({})).await;
    assert_eq!((report.status, report.summary.as_str()), (Status::Ok, "much"));
    assert_eq!(stored(&setting, "call"), text);

    let (head, tail) = both_ends(&report);
    assert!((500..=1_000).contains(&head.chars().count()), "{} characters", head.chars().count());
    assert!(text.starts_with(head) && text[head.len()..].starts_with('\n'), "it ends with a line: {head}");
    assert!((250..=500).contains(&tail.chars().count()), "{} characters", tail.chars().count());
    assert!(text.ends_with(tail) && text[..text.len() - tail.len()].ends_with('\n'), "it begins with a line: {tail}");
    assert!(report.text.starts_with("<persisted-output>\n"), "{}", report.text);
    for fact in ["150000 characters", "100000", "/tmp/hermes-fake/results/call.txt", "1500 lines", "read_file"] {
        assert!(report.text.contains(fact), "{fact}: {}", report.text);
    }
    assert!(report.text.chars().count() < 2_000, "{} characters", report.text.chars().count());
}

#[tokio::test]
async fn a_result_up_to_the_cap_is_not_touched_and_one_character_more_is_stored() {
    // Two bytes a character: what counts is what a model reads, not what a disk holds.
    let most = "é".repeat(ToolSpec::DEFAULT_MAX_RESULT_CHARS);
    let setting = Setting::new([&talker(Ok(ToolOutput::text(most.clone())))]);
    assert_eq!(setting.call("talk", json!({})).await.text, most);
    assert!(files_in_store(&setting).await.is_empty());

    let setting = Setting::new([&talker(Ok(ToolOutput::text(most + "é")))]);
    let report = setting.call("talk", json!({})).await;
    assert!(report.text.starts_with("<persisted-output>"));
    assert_eq!(files_in_store(&setting).await, ["call.txt"]);
}

#[tokio::test]
async fn a_tool_may_set_a_cap_of_its_own() {
    let small = FakeTool::new("talk").with_spec(|spec| spec.max_result_chars = Some(10));
    let small = Arc::new(small.run(|arguments, _| Ok(ToolOutput::text(arguments["say"].as_str().unwrap()))));
    let setting = Setting::new([&small]);
    assert_eq!(setting.call("talk", json!({ "say": "0123456789" })).await.text, "0123456789");
    let report = setting.call("talk", json!({ "say": "0123456789+" })).await;
    assert_eq!((preview(&report), stored(&setting, "call").as_str()), ("0123456789+", "0123456789+"));
}

#[tokio::test]
async fn a_tool_that_limits_itself_is_never_stored() {
    let text = long_text();
    let tool = FakeTool::new("talk").with_spec(|spec| spec.max_result_chars = None);
    let setting = Setting::new([&Arc::new(tool.result(Ok(ToolOutput::text(text.clone()))))]);
    assert_eq!(setting.call("talk", json!({})).await.text, text);
    assert!(files_in_store(&setting).await.is_empty());
}

#[tokio::test]
async fn json_around_one_long_text_is_stored_as_that_text() {
    let text = long_text();
    let result = json!({ "output": text, "exit_code": 0, "error": null });
    let setting = Setting::new([&talker(Ok(result.into()))]);
    let report = setting.call("talk", json!({})).await;
    assert_eq!(stored(&setting, "call"), text, "no quotes, no \\n, no JSON");
    assert!(report.text.contains("The text of its field `output` is stored in"), "{}", report.text);
    assert!(text.starts_with(preview(&report)));
}

#[tokio::test]
async fn what_stands_beside_the_long_text_is_not_lost() {
    let result = json!({ "output": long_text(), "exit_code": 3, "error": "killed by the kernel" });
    let setting = Setting::new([&talker(Ok(result.into()))]);
    let report = setting.call("talk", json!({})).await;
    // Here or there, but somewhere: without it the model takes a failure for a success.
    let everything = format!("{}{}", report.text, stored(&setting, "call"));
    for fact in ["exit_code", "3", "killed by the kernel"] {
        assert!(everything.contains(fact), "{fact} is gone: {}", report.text);
    }
}

#[tokio::test]
async fn where_much_stands_beside_the_long_text_the_whole_json_is_stored() {
    let result = json!({ "output": long_text(), "warnings": vec!["w".repeat(100); 20] });
    let setting = Setting::new([&talker(Ok(result.clone().into()))]);
    let report = setting.call("talk", json!({})).await;
    let stored = stored(&setting, "call").replace('\n', "");
    // Long lines are broken inside the JSON too, so it is compared without its line ends.
    assert_eq!(stored, serde_json::to_string_pretty(&result).unwrap().replace('\n', ""));
    assert!(report.text.chars().count() < 2_500, "{} characters", report.text.chars().count());
}

#[tokio::test]
async fn json_with_many_values_is_stored_in_lines_and_is_still_that_json() {
    let rows: Vec<Value> = (0..5_000).map(|n| json!({ "path": format!("src/{n}.rs"), "line": n })).collect();
    let result = json!({ "total": 5_000, "rows": rows });
    let setting = Setting::new([&talker(Ok(result.clone().into()))]);
    let report = setting.call("talk", json!({})).await;
    let stored = stored(&setting, "call");
    assert_eq!(serde_json::from_str::<Value>(&stored).unwrap(), result);
    assert!(stored.lines().count() > 10_000, "one line cannot be read by offset");
    assert!(stored.starts_with(preview(&report)));
}

#[tokio::test]
async fn a_line_longer_than_read_file_shows_is_broken_and_nothing_is_lost() {
    let line = (0..30_000).fold(String::new(), |line, n| line + &format!("{n:05}"));
    assert_eq!(line.len(), 150_000);
    let setting = Setting::new([&talker(Ok(ToolOutput::text(format!("short\n{line}\nend\n"))))]);
    let report = setting.call("talk", json!({})).await;
    let stored = stored(&setting, "call");
    let longest = stored.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest <= setting.task.limits.line_chars, "{longest}");
    assert_eq!(stored.replace('\n', ""), format!("short{line}end"));
    assert!(stored.starts_with("short\n") && stored.ends_with("\nend\n"));
    assert!(report.text.contains("characters are broken"), "{}", report.text);
    assert!(preview(&report).chars().count() <= 1_500);
}

#[tokio::test]
async fn a_long_error_is_stored_too_and_stays_an_error() {
    let setting = Setting::new([&talker(Err(ToolError::tell(long_text())))]);
    let report = setting.call("talk", json!({})).await;
    assert_eq!((report.status, stored(&setting, "call")), (Status::Error, long_text()));
    assert!(report.text.chars().count() < 2_000);
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_says_so_and_shows_its_beginning() {
    // A file where the folder should be.
    let full = FakeEnvironment::new().with_file(STORE, "in the way");
    let text = long_text();
    let setting = Setting::new([&talker(Ok(ToolOutput::text(text.clone())))]).inside(full);
    let report = setting.call("talk", json!({})).await;
    assert_eq!(report.status, Status::Ok, "the call itself went well");
    assert!(report.text.contains("The rest is lost") && report.text.contains("not a directory"), "{}", report.text);
    assert!(!report.text.contains("read_file"), "there is nothing to read: {}", report.text);
    let shown = preview(&report);
    assert!(text.starts_with(shown) && (750..=1_500).contains(&shown.chars().count()));
}

#[tokio::test]
async fn an_id_cannot_lead_out_of_the_store() {
    let setting = Setting::new([&talker(Ok(ToolOutput::text(long_text())))]);
    for id in ["../../../etc/cron", "/etc/passwd", "a/b", "..", "nul\0", "é"] {
        let report = setting.make(&called(id, "talk", &json!({}))).await;
        assert!(report.text.contains(&format!("stored in {STORE}/")), "{id:?}: {}", report.text);
    }
    assert_eq!(files_in_store(&setting).await.len(), 6);
    for folder in ["/etc", "/tmp/etc", "/tmp/hermes-fake/etc"] {
        assert!(setting.environment.stat(Path::new(folder)).await.is_err(), "{folder}");
    }
    let scratch = setting.environment.list(Path::new("/tmp/hermes-fake")).await.unwrap();
    assert_eq!(scratch, ["results"]);
}

#[tokio::test]
async fn two_results_of_a_conversation_never_overwrite_one_another() {
    let echo = FakeTool::new("echo").with_spec(|spec| spec.max_result_chars = Some(10));
    let echo = Arc::new(echo.run(|_, cx| Ok(ToolOutput::text(format!("the result of {}", cx.call_id)))));
    let setting = Setting::new([&echo]);
    // Ids are the provider's, and some providers' are longer than a file name should be.
    let (long_a, long_b) = (format!("{}a", "x".repeat(100)), format!("{}b", "x".repeat(100)));
    for (one, other) in [("call.1", "call:1"), (long_a.as_str(), long_b.as_str())] {
        for id in [one, other] {
            setting.make(&called(id, "echo", &json!({}))).await;
        }
        let mut kept = Vec::new();
        for name in files_in_store(&setting).await {
            kept.push(String::from_utf8(setting.environment.file(format!("{STORE}/{name}")).unwrap()).unwrap());
        }
        for id in [one, other] {
            assert!(kept.contains(&format!("the result of {id}")), "{id} is lost: {kept:?}");
        }
    }
}
