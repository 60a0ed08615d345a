//! Tool Search on real questions (`cases/tool-search`): it finds at least what it once found, and always the same.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss)]

use hermes_runtime::tool_search::{Described, Index};
use serde_json::{Value, json};

const TOOLS: &str = include_str!("../../../cases/tool-search/tools.jsonl");
const QUESTIONS: &str = include_str!("../../../cases/tool-search/queries-dev.jsonl");

fn values(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn described(tool: &Value) -> Described<'_> {
    Described {
        name: tool["name"].as_str().unwrap(),
        description: tool["description"].as_str().unwrap_or_default(),
        parameters: &tool["parameters"],
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "parameters": {} })
}

fn found<'t>(tools: &'t [Value], question: &str) -> Vec<&'t str> {
    let index = Index::new(tools.iter().map(described));
    index.search(question, 5).iter().map(|hit| tools[hit.tool]["name"].as_str().unwrap()).collect()
}

#[test]
fn the_right_tool_is_among_the_first() {
    let (tools, questions) = (values(TOOLS), values(QUESTIONS));
    let index = Index::new(tools.iter().map(described));
    let (mut first, mut among) = (0, 0);
    for question in &questions {
        let right = question["right"].as_array().unwrap();
        let hits = index.search(question["query"].as_str().unwrap(), 5);
        let at = hits.iter().position(|hit| right.contains(&tools[hit.tool]["name"]));
        first += usize::from(at == Some(0));
        among += usize::from(at.is_some());
    }
    let share = |count: usize| count as f64 / questions.len() as f64;
    println!("recall@1 {:.4}, recall@5 {:.4} of {} questions", share(first), share(among), questions.len());
    assert!(share(first) >= 0.68 && share(among) >= 0.885, "{first} and {among} of {}", questions.len());
}

#[test]
fn the_same_question_has_the_same_answer_and_a_limit_is_a_limit() {
    let tools = values(TOOLS);
    let (one, two) = (Index::new(tools.iter().map(described)), Index::new(tools.iter().map(described)));
    for question in values(QUESTIONS).iter().take(50) {
        let question = question["query"].as_str().unwrap();
        let all = one.search(question, 1_000);
        assert_eq!(all, two.search(question, 1_000));
        assert_eq!(all[..all.len().min(3)], one.search(question, 3));
        assert!(one.search(question, 0).is_empty());
    }
}

#[test]
fn names_come_first_in_any_spelling_of_the_question() {
    let tools = [
        tool("mcp__github__create_issue", "Create an issue."),
        tool("create_issue_comment", "create_issue for comments: create issue comment issue"),
        tool("mcp__jira__create_issue", "Files a ticket."),
        tool("create_issue", "Nothing."),
    ];
    let ends = ["create_issue", "mcp__jira__create_issue", "mcp__github__create_issue"];
    assert_eq!(found(&tools, "create_issue")[..3], ends);
    assert_eq!(found(&tools, "MCP__jira__Create_Issue")[0], "mcp__jira__create_issue");
    // In a sentence about another tool, and with whatever stands around a name.
    let (many, about) = (values(TOOLS), "create a mix track of these songs for my party");
    assert_ne!(found(&many, about)[0], "math.hypot");
    assert_eq!(found(&many, &format!("use `math.hypot`: {about}"))[0], "math.hypot");
    for question in ["create_issue?", "`create_issue`", "create_issue()", "\"create_issue\"", "请用create_issue"] {
        assert_eq!(found(&tools, question)[0], "create_issue", "{question}");
    }
    let twins = [tool("calculate_bmi", "x"), tool("calculate_BMI", "x")];
    assert_eq!(found(&twins, "calculate_BMI")[0], "calculate_BMI");
    assert_eq!(found(&twins, "use calculate_BMI now")[0], "calculate_BMI");
    assert!(found(&tools, "").is_empty() && found(&tools, "?").is_empty() && found(&[], "x").is_empty());
}

#[test]
fn other_languages_find_tools_too() {
    let tools = [
        tool("a", "读取文件内容"),
        tool("b", "删除一个文件"),
        tool("c", "ウェブを検索する"),
        tool("get_weather", "Weather of a city"),
        tool("send_mail", "Sends an email"),
    ];
    assert_eq!(found(&tools, "帮我读取文件")[0], "a");
    assert_eq!(found(&tools, "删除文件")[0], "b");
    assert_eq!(found(&tools, "検索して")[0], "c");
    assert_eq!(found(&tools, "上海的天气")[0], "get_weather");
}

#[test]
fn what_nobody_would_write_is_no_trouble() {
    let mut deep = json!({});
    for _ in 0..60 {
        deep = json!({ "type": "object", "properties": { "x": deep } });
    }
    let tools = [
        json!({ "name": "deep", "description": "x", "parameters": deep }),
        json!({ "name": "odd", "description": "", "parameters": { "properties": [1], "required": "x" } }),
        json!({ "name": "ünï", "description": "'`\"", "parameters": null }),
        json!({ "name": "", "description": "", "parameters": { "properties": { "": { "enum": [1, null, "x"] } } } }),
    ];
    let index = Index::new(tools.iter().map(described));
    // Each of the long ones once took the square of its length.
    let long = ["word ", "'", "\"a\" ", "'a", "ya", "获取"].map(|piece| piece.repeat(60_000));
    let odd = ["x", "'", "'' x", "\u{201c}\u{201d}", "ünï", "日", "\0", "İstanbul İ"];
    for question in odd.into_iter().chain(long.iter().map(String::as_str)) {
        let hits = index.search(question, 10);
        assert!(hits.iter().all(|hit| hit.score.is_finite() && hit.score > 0.0), "{hits:?}");
    }
    assert_eq!(index.search("x", 1)[0].tool, 0);
    let many: Vec<String> = (0..20_000).map(|at| format!("p{at}")).collect();
    let properties: serde_json::Map<String, Value> = many.iter().map(|name| (name.clone(), json!({}))).collect();
    let required: Vec<&String> = many.iter().rev().collect();
    let parameters = json!({ "properties": properties, "required": required });
    let wide = json!({ "name": "wide", "description": "ya".repeat(100_000), "parameters": parameters });
    assert_eq!(Index::new([described(&wide)]).search("wide", 1).len(), 1);
}
