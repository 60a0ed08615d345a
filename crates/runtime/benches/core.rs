//! What the core costs: definitions, the chain around a call, coercion, and whatever reads hostile text.
//!
//! `cargo bench -p hermes-runtime --bench core` prints Markdown tables. Every figure is a median of one run; where there
//! is a floor, its rounds and ours take turns.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{CancellationToken, JsonMap, Judge, RawArguments, Tool, ToolCall, ToolOutput};
use hermes_runtime::dispatch::{clean_error, coerce};
use hermes_runtime::{
    ApprovalMode, Checks, Definitions, Dispatcher, Guardrails, OwnerKind, PlainJudge, Profile, Registry, Scope,
    Selection, Silent, Status, Task, Wanted,
};
use hermes_testkit::measure::{in_turn, median, ratio, shown, timed};
use hermes_testkit::{FakeEnvironment, FakeSurroundings, FakeTool};
use serde_json::{Value, json};

fn main() {
    // `cargo test --benches` only asks whether this starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("## Definitions\n");
    definitions();
    println!("\n## A call\n");
    calls();
    println!("\n## Hostile text\n");
    hostile_text();
}

// ------------------------------------------------------------------------------------------------------- definitions

/// A schema of the usual size: a text, a number, a choice and a list.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "The file to look at." },
            "limit": { "type": "integer", "description": "Lines at most.", "default": 500 },
            "mode": { "type": "string", "enum": ["fast", "exact"], "description": "How to look." },
            "tags": { "type": "array", "items": { "type": "string" }, "description": "Only with these." },
        },
        "required": ["path"],
    })
}

fn with_tools(count: usize) -> (Definitions, Vec<Value>) {
    let registry = Arc::new(Registry::new());
    let owner = registry.owner(OwnerKind::Plugin, "bench", false);
    let tool = |n: usize| -> Arc<dyn Tool> {
        Arc::new(FakeTool::new(&format!("tool_{n:05}")).toolset("bench").parameters(schema()))
    };
    let tools: Vec<Arc<dyn Tool>> = (0..count).map(tool).collect();
    let schemas = tools.iter().map(|tool| tool.spec().parameters.clone()).collect();
    registry.offer(&owner, tools).unwrap();
    (Definitions::new(registry, Checks::new(Arc::new(FakeSurroundings::complete()))), schemas)
}

fn definitions() {
    println!(
        "| tools | the first list ever | a list after a change | a tool | copying the schemas alone | the same list again | goal |"
    );
    println!("|---|---|---|---|---|---|---|");
    for count in [31, 500, 1_000, 2_000, 5_000] {
        let rounds = if count > 1_000 { 15 } else { 51 };
        let asked = |definitions: &Definitions, version| {
            let wanted = Wanted { config: version, ..Wanted::new(Selection::exactly(&["all"]), Profile::OpenAiChat) };
            assert_eq!(definitions.current(&Arc::new(wanted)).unwrap().list.len(), count);
        };
        let ever = median(
            (0..rounds)
                .map(|_| {
                    let (fresh, _) = with_tools(count);
                    timed(&mut || asked(&fresh, 0))
                })
                .collect(),
        );
        let (definitions, schemas) = with_tools(count);
        let mut version = 0;
        let (changed, floor) = in_turn(
            rounds,
            || {
                version += 1;
                asked(&definitions, version);
            },
            || drop(black_box(schemas.clone())),
        );
        let wanted = Arc::new(Wanted::new(Selection::exactly(&["all"]), Profile::OpenAiChat));
        definitions.current(&wanted).unwrap();
        let again = many(100_000, || drop(black_box(definitions.current(&wanted).unwrap())));
        let goal = match count {
            5_000 => "below 15 ms; again below 0.5 µs",
            _ => "",
        };
        println!(
            "| {count} | {} | {} | {} | {} | {} | {goal} |",
            shown(ever),
            shown(changed),
            shown(ever / u32::try_from(count).unwrap()),
            shown(floor),
            shown(again)
        );
    }
}

// ------------------------------------------------------------------------------------------------------------- calls

/// A conversation with a tool that does nothing.
struct Setting {
    dispatcher: Dispatcher,
    task: Task,
    visible: std::collections::BTreeSet<hermes_core::ToolName>,
    cancel: CancellationToken,
}

impl Setting {
    fn new(tool: FakeTool) -> Self {
        let registry = Arc::new(Registry::new());
        let owner = registry.owner(OwnerKind::Plugin, "bench", true);
        registry.offer(&owner, vec![Arc::new(tool)]).unwrap();
        Self {
            visible: registry.snapshot().names().cloned().collect(),
            dispatcher: Dispatcher::new(registry, Arc::new(PlainJudge)),
            task: Task::new(Arc::new(FakeEnvironment::new())),
            cancel: CancellationToken::new(),
        }
    }

    async fn call(&self, arguments: RawArguments) -> Status {
        let call = ToolCall { id: "call".into(), name: "noop".into(), arguments };
        let (task, visible, cancel) = (&self.task, &self.visible, &self.cancel);
        let scope = Scope { task, visible, approve: ApprovalMode::All, cancel, observer: &Silent };
        self.dispatcher.call(&call, &scope).await.status
    }
}

fn noop() -> FakeTool {
    FakeTool::new("noop").parameters(schema()).forgetful()
}

fn text(arguments: &Value) -> RawArguments {
    RawArguments::Text(arguments.to_string())
}

fn calls() {
    const ROUNDS: usize = 20_000;
    println!("| what | hermes | floor | ratio | goal |\n|---|---|---|---|---|");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let arguments = json!({ "path": "src/main.rs", "limit": 10 });

    let setting = Setting::new(noop());
    let tool = noop();
    let judge: Arc<dyn Judge> = Arc::new(PlainJudge);
    let (whole, alone) = in_turn(
        21,
        || {
            for _ in 0..ROUNDS {
                assert_eq!(runtime.block_on(setting.call(text(&arguments))), Status::Ok);
            }
        },
        || {
            for _ in 0..ROUNDS {
                let cx = setting.task.context("call", &judge, &setting.cancel);
                let map: JsonMap = serde_json::from_str(&arguments.to_string()).unwrap();
                runtime.block_on(tool.call(map, cx)).unwrap();
            }
        },
    );
    let (whole, alone) = (whole / 20_000, alone / 20_000);
    println!(
        "| the whole chain around a no-op | {} | parsing and calling it alone {} | {:.1}x | below 5 µs |",
        shown(whole),
        shown(alone),
        ratio(whole, alone)
    );

    let mut braked = Setting::new(noop());
    braked.task.guardrails = Some(Guardrails::default());
    let mut n = 0;
    let with_brakes = many(20_000, || {
        n += 1;
        let arguments = json!({ "path": "src/main.rs", "limit": n });
        assert_eq!(runtime.block_on(braked.call(text(&arguments))), Status::Ok);
    });
    println!("| the same with the brakes against repetition on | {} | | | |", shown(with_brakes));

    for threads in [1, 2, 4] {
        let (ours, one) = (throughput(threads, true), throughput(1, true));
        let (alone, one_alone) = (throughput(threads, false), throughput(1, false));
        println!(
            "| calls a second, {threads} at a time on {} cores | {ours:.0}, {:.2}x of one | the tool alone {:.2}x of one | | scales with cores |",
            cores(),
            ours / one,
            alone / one_alone
        );
    }

    let schema = json!({ "type": "object", "properties": {
        "offset": { "type": "integer", "minimum": 1 }, "limit": { "type": "integer" }, "ratio": { "type": "number" },
        "all": { "type": "boolean" }, "count": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
        "mode": { "enum": [1, 2, 3] }, "depth": { "type": ["integer", "null"] },
    }, "required": ["offset"], "additionalProperties": false });
    let given = json!({ "offset": "10", "limit": "2000", "ratio": "0.5", "all": "true", "count": "7", "mode": "2", "depth": "3" });
    let given = given.as_object().unwrap();
    let (coerced, copied) = in_turn(
        21,
        || {
            for _ in 0..ROUNDS {
                let mut arguments = given.clone();
                assert_eq!(coerce(&mut arguments, &schema).len(), 7);
            }
        },
        || {
            for _ in 0..ROUNDS {
                black_box(given.clone());
            }
        },
    );
    let (coerced, copied) = (coerced / 20_000, copied / 20_000);
    let net = coerced.saturating_sub(copied);
    println!(
        "| coercing 7 texts | {} | copying the arguments, taken off {} | | below 3 µs |",
        shown(net),
        shown(copied)
    );
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Calls a second of several conversations, each on a thread of its own: over one registry and one dispatcher, or without
/// them, which is what this machine can do.
fn throughput(threads: usize, through_the_chain: bool) -> f64 {
    const CALLS: u32 = 30_000;
    let setting = Setting::new(noop());
    let arguments = json!({ "path": "src/main.rs", "limit": 10 });
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let task = Task::new(Arc::new(FakeEnvironment::new()));
                let cancel = CancellationToken::new();
                let tool = noop();
                let judge: Arc<dyn Judge> = Arc::new(PlainJudge);
                runtime.block_on(async {
                    for _ in 0..CALLS {
                        if !through_the_chain {
                            let map: JsonMap = serde_json::from_str(&arguments.to_string()).unwrap();
                            tool.call(map, task.context("call", &judge, &cancel)).await.unwrap();
                            continue;
                        }
                        let call = ToolCall { id: "call".into(), name: "noop".into(), arguments: text(&arguments) };
                        let scope = Scope {
                            task: &task,
                            visible: &setting.visible,
                            approve: ApprovalMode::All,
                            cancel: &cancel,
                            observer: &Silent,
                        };
                        assert_eq!(setting.dispatcher.call(&call, &scope).await.status, Status::Ok);
                    }
                });
            });
        }
    });
    f64::from(CALLS) * f64::from(u32::try_from(threads).unwrap()) / began.elapsed().as_secs_f64()
}

// ------------------------------------------------------------------------------------------------------ hostile text

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

fn hostile_text() {
    println!(
        "| what reads it | text | 1 kB | 10 kB | 100 kB | 1 MB | slope | goal |\n|---|---|---|---|---|---|---|---|"
    );
    let errors: [(&str, &str); 6] = [
        ("line ends", "\n"),
        ("tags in tags", "<sys<system>"),
        ("open CDATA", "<![CDATA["),
        ("fences", "```json\n"),
        ("open brackets", "<"),
        ("closing brackets", "]]>"),
    ];
    for (what, piece) in errors {
        row("cleaning an error", what, |text| drop(black_box(clean_error(text))), piece);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let setting = Setting::new(noop());
    for (what, piece) in
        [("open lists", "["), ("open objects", "{\"a\":"), ("quotes", "\\\""), ("objects", "{}"), ("blanks", " ")]
    {
        let read = |text: &str| {
            black_box(runtime.block_on(setting.call(RawArguments::Text(text.to_owned()))));
        };
        row("a call's arguments", what, read, piece);
    }
    for (what, piece) in [("digits", "1"), ("open lists", "["), ("escapes", "\\\\")] {
        let read = |said: &str| {
            let arguments = json!({ "path": "a", "tags": said });
            black_box(runtime.block_on(setting.call(text(&arguments))));
        };
        row("coercion and validation", what, read, piece);
    }
    for (what, piece) in [
        ("the word of the fence", "untrusted_tool_result"),
        ("almost the word", "untrusted_tool_resul"),
        ("words", "abc "),
    ] {
        let read = |foreign: &str| {
            let said = foreign.to_owned();
            let tool = noop().with_spec(|spec| (spec.outside, spec.max_result_chars) = (true, None));
            let setting = Setting::new(tool.run(move |_, _| Ok(ToolOutput::text(said.clone()))));
            black_box(runtime.block_on(setting.call(text(&json!({ "path": "a" })))));
        };
        row("fencing a result", what, read, piece);
    }
}

/// The slope is the exponent between the last two sizes: 1 is linear, 2 is quadratic.
fn row(what: &str, of: &str, read: impl Fn(&str), piece: &str) {
    let times: Vec<Duration> = SIZES
        .iter()
        .map(|size| {
            let text = piece.repeat(size / piece.len());
            median((0..9).map(|_| timed(&mut || read(&text))).collect())
        })
        .collect();
    let slope = ratio(times[3], times[2]).log10();
    let cells: Vec<String> = times.iter().map(|time| shown(*time)).collect();
    println!("| {what} | {of} | {} | {slope:.2} | 100 kB below 2 ms, linear |", cells.join(" | "));
}

/// What one of many takes, the median of eleven rounds.
fn many(count: u32, mut work: impl FnMut()) -> Duration {
    let mut round = || (0..count / 10).for_each(|_| work());
    median((0..11).map(|_| timed(&mut round) / (count / 10)).collect())
}
