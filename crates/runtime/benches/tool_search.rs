//! What Tool Search takes and finds, on the questions in `cases/tool-search`.
//!
//! `cargo bench -p hermes-runtime --bench tool_search` prints Markdown tables. The large catalogue is the small one several
//! times over, each time with other names, so that its lists of tools per word are as long as they can be.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a program for people who measure"
)]

use std::time::{Duration, Instant};

use hermes_runtime::tool_search::{Described, Index};
use hermes_testkit::measure::shown;
use serde_json::Value;

const LARGE: usize = 10_000;
const ROUNDS: usize = 9;

fn values(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let tools = values(include_str!("../../../cases/tool-search/tools.jsonl"));
    let questions = values(include_str!("../../../cases/tool-search/queries-dev.jsonl"));
    let asked: Vec<&str> = questions.iter().map(|question| question["query"].as_str().unwrap()).collect();
    let names: Vec<String> = (0..LARGE)
        .map(|at| format!("{}_{}", tools[at % tools.len()]["name"].as_str().unwrap(), at / tools.len()))
        .collect();
    let described = |at: usize, name| {
        let tool: &Value = &tools[at % tools.len()];
        Described {
            name,
            description: tool["description"].as_str().unwrap_or_default(),
            parameters: &tool["parameters"],
        }
    };
    let small = || tools.iter().enumerate().map(|(at, tool)| described(at, tool["name"].as_str().unwrap()));
    let large = || names.iter().enumerate().map(|(at, name)| described(at, name));

    println!("| tools | index built | a question, median | the slowest question | goals |\n|---|---|---|---|---|");
    for (count, goals) in [(tools.len(), "≤ 0.3 ms a question"), (LARGE, "≤ 100 ms; ≤ 2 ms a question")] {
        let build = || if count == LARGE { Index::new(large()) } else { Index::new(small()) };
        let built = (0..ROUNDS).map(|_| {
            let began = Instant::now();
            std::hint::black_box(build());
            began.elapsed()
        });
        let built = median(built.collect());
        let index = build();
        let time = |question: &&str| {
            let each = (0..ROUNDS).map(|_| {
                let began = Instant::now();
                std::hint::black_box(index.search(question, 5));
                began.elapsed()
            });
            median(each.collect())
        };
        let times: Vec<Duration> = asked.iter().map(time).collect();
        let slowest = times.iter().max().copied().unwrap_or_default();
        println!("| {count} | {} | {} | {} | {goals} |", shown(built), shown(median(times)), shown(slowest));
    }

    let index = Index::new(small());
    let rank = |question: &Value| {
        let right = question["right"].as_array().unwrap();
        let hits = index.search(question["query"].as_str().unwrap(), 5);
        hits.iter().position(|hit| right.contains(&tools[hit.tool]["name"]))
    };
    let ranks: Vec<Option<usize>> = questions.iter().map(rank).collect();
    let share =
        |most: usize| ranks.iter().filter(|rank| rank.is_some_and(|at| at < most)).count() as f64 / ranks.len() as f64;
    println!("\n| {} questions | hermes | goal |\n|---|---|---|", ranks.len());
    println!("| the right tool is the first | {:.3} | at least 0.62 |", share(1));
    println!("| the right tool is among the first five | {:.3} | at least 0.86 |", share(5));
}
