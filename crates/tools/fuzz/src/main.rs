//! Throws texts and bytes at whatever of the tools reads hostile ones.
//!
//! `cargo run --release --manifest-path crates/tools/fuzz/Cargo.toml -- TARGET SECONDS [SEED]`, where TARGET is `v4a` (patches
//! of several files, read and applied), `replace` (edits of one file), `encoding` (files in all sorts of encodings, read and
//! changed), `syntax` (files in every language that is checked after a write) or `documents` (documents that were changed at
//! random, read). Each call works on a machine in memory, but for documents. A panic ends in the log with its input, and so
//! does an error after which a file is not as it was; what took longest is printed at the end.

mod documents;
mod encoding;
mod syntax;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{
    Environment, JsonMap, Tool, ToolCx, ToolError, ToolResult, ToolSource as _,
};
use hermes_testkit::FakeEnvironment;
use serde_json::{Value, json};

const PIECES: &[&str] = &[
    "*** Begin Patch\n",
    "*** End Patch\n",
    "*** Update File: f\n",
    "*** Update File: g\n",
    "*** Add File: new/h\n",
    "*** Add File: f/x\n",
    "*** Delete File: f\n",
    "*** Delete File: g\n",
    "*** Move File: f -> m\n",
    "*** Move to: m\n",
    "*** Update File: m\n",
    "*** End of File\n",
    "@@\n",
    "@@ fn two() {\n",
    "@@ -1,2 +1,3 @@ x\n",
    "@@ a @@\n",
    " fn one() {\n",
    " fn two() {\n",
    "-    go();\n",
    "+    went();\n",
    " }\n",
    "-go();\n",
    "+x\n",
    "-\n",
    "+\n",
    " \n",
    "\n",
    "\\ No newline at end of file\n",
    "***",
    "*** ",
    " -> ",
    "\r\n",
    "\r",
    "\t",
    "    ",
    "“",
    "\"",
    "—",
    "--",
    "…",
    "\\n",
    "\\\"",
    "\\",
    "é",
    "\u{fffd}",
    "\u{feff}",
    "\0",
    "a",
    "go();",
    "fn one() {\n    go();\n}\n",
    "x\n",
];

const F: &[u8] = b"fn one() {\n    go();\n}\n\nfn two() {\n    go();\n}\n// \xe2\x80\x9csaid\xe2\x80\x9d \xff\n";
const G: &[u8] = b"a\r\n\tgo();\r\n\r\nx  \r\nlast";

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % end.max(1) as u64) as usize
    }

    fn text(&mut self, most: usize) -> String {
        let mut text = String::new();
        for _ in 0..self.below(most) {
            let times = if self.below(40) == 0 { 1 + self.below(500) } else { 1 };
            match self.below(30) {
                0 => text.extend(char::from_u32(self.below(0x11_0000) as u32)),
                _ => text.push_str(&PIECES[self.below(PIECES.len())].repeat(times)),
            }
        }
        text
    }
}

/// What calls are made with.
struct Bench {
    tools: Vec<Arc<dyn Tool>>,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    /// The answer to one call, and how long it took.
    fn call(&self, name: &str, arguments: &Value, environment: Arc<dyn Environment>) -> (ToolResult, Duration) {
        let tool = self.tools.iter().find(|tool| tool.spec().name.as_str() == name).expect("the tool");
        let cx = ToolCx::of_a_program(environment);
        let sent: JsonMap = arguments.as_object().expect("an object").clone();
        let began = Instant::now();
        let _ = tool.touches(&sent, &cx);
        let answer = self.runtime.block_on(tool.call(sent, cx));
        (answer, began.elapsed())
    }
}

/// Makes one call of `patch` and looks that an error changed nothing. Answers what was sent.
fn patch(is_v4a: bool, random: &mut Random, bench: &Bench) -> (Value, Duration) {
    let arguments = if is_v4a {
        json!({ "mode": "patch", "patch": random.text(24) })
    } else {
        let path = if random.below(2) == 0 { "f" } else { "g" };
        json!({ "path": path, "old_string": random.text(5), "new_string": random.text(5), "replace_all": random.below(2) == 0 })
    };
    let machine = Arc::new(FakeEnvironment::new().with_file("f", F).with_file("g", G));
    let (answer, took) = bench.call("patch", &arguments, Arc::clone(&machine) as _);
    if let Err(ToolError::Tell(error)) = answer {
        let is_whole = machine.file("f").as_deref() == Some(F) && machine.file("g").as_deref() == Some(G);
        let is_clean = ["m", "new/h", "f/x"].iter().all(|path| machine.file(path).is_none());
        assert!(is_whole && is_clean, "{arguments} failed ({error:?}) and changed something");
    }
    (arguments, took)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, target, seconds, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: fuzz v4a|replace|encoding|syntax|documents SECONDS [SEED]");
        return ExitCode::from(2);
    };
    let limit = Duration::from_secs(seconds.parse().expect("seconds"));
    let mut random = Random(rest.first().map_or(1, |seed| seed.parse().expect("a seed")) | 0x9E37_79B9_0000_0000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let bench = Bench { tools: hermes_tools::Builtins.tools(), runtime };
    let mut made = (target == "documents").then(documents::Made::new);
    let (began, mut runs, mut crashes, mut slowest) = (Instant::now(), 0_u64, 0, (Duration::ZERO, Value::Null));
    while began.elapsed() < limit {
        let seed = random.0;
        let run = AssertUnwindSafe(|| match target.as_str() {
            "encoding" => encoding::call(&mut random, &bench),
            "syntax" => syntax::call(&mut random, &bench),
            "documents" => made.as_mut().expect("made above").call(&mut random, &bench),
            target => patch(target == "v4a", &mut random, &bench),
        });
        match catch_unwind(run) {
            Ok((sent, took)) if took > slowest.0 => slowest = (took, sent),
            Ok(_) => {}
            Err(_) => {
                crashes += 1;
                println!("crash with the state {seed}");
            }
        }
        runs += 1;
        if crashes > 20 {
            break;
        }
    }
    if let Some(made) = &made {
        made.report();
    }
    println!("{target}: {runs} runs in {:.0} s, {crashes} crashes", began.elapsed().as_secs_f64());
    let sent: String = slowest.1.to_string().chars().take(300).collect();
    println!("slowest {:?} {sent}", slowest.0);
    if crashes > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
