//! Files in every language that is checked after a write, made of pieces of programs: what is said of one is short, and one of
//! three words.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::Content;
use hermes_testkit::FakeEnvironment;
use serde_json::{Value, json};

use crate::{Bench, Random};

const TOKENS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "\"",
    "'",
    "`",
    "\"\"\"",
    ",",
    ";",
    ":",
    "::",
    "=",
    "=>",
    "->",
    ".",
    "...",
    "?",
    "!",
    "&",
    "*",
    "-",
    "+",
    "@",
    "#",
    "#!",
    "//",
    "/*",
    "*/",
    "/",
    "|",
    "$",
    "${",
    "{{",
    "}}",
    "{%",
    "%}",
    "\\",
    "\n",
    "\r\n",
    "\t",
    "    ",
    " ",
    "a",
    "b1",
    "0",
    "1.5e3",
    "0x",
    "NaN",
    "null",
    "true",
    "f'{",
    "r#\"",
    "'a",
    "if ",
    "else ",
    "for ",
    "while ",
    "fn f() ",
    "def f():\n",
    "class A ",
    "import ",
    "from ",
    "as ",
    "let ",
    "const ",
    "type ",
    "match ",
    "case ",
    "with ",
    "lambda ",
    "async ",
    "await ",
    "return ",
    "yield ",
    "not ",
    "package a\n",
    "func ",
    "go ",
    "public ",
    "static ",
    "void ",
    "new ",
    "extends ",
    "infer ",
    "keyof ",
    "typeof ",
    "export ",
    "macro_rules! a ",
    "unsafe ",
    "impl ",
    "where ",
    "- ",
    "? ",
    "--- ",
    "&x ",
    "*x ",
    "!t ",
    "a: ",
    "|\n",
    ">\n",
    "a = ",
    "[a]\n",
    "[[a]]\n",
    "<a>",
    "</a>",
    "\u{feff}",
    "\0",
    "é",
    "\u{1f600}",
    "\u{2028}",
];

const SUFFIXES: &[&str] =
    &["json", "jsonc", "jsonl", "yaml", "toml", "py", "js", "jsx", "ts", "tsx", "d.ts", "rs", "go", "java", "ipynb"];

fn program(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(60) {
        let piece = TOKENS[random.below(TOKENS.len())];
        let more = if random.below(3) == 0 { TOKENS[random.below(TOKENS.len())] } else { "" };
        let times = if random.below(25) == 0 { 1 + random.below(3_000) } else { 1 };
        text.push_str(&format!("{piece}{more}").repeat(times));
    }
    text
}

/// Writes one file, over another one or none, and looks at what is said of it.
pub(crate) fn call(random: &mut Random, bench: &Bench) -> (Value, Duration) {
    let path = format!("a.{}", SUFFIXES[random.below(SUFFIXES.len())]);
    let arguments = json!({ "path": path, "content": program(random) });
    let mut machine = FakeEnvironment::new();
    if random.below(2) == 0 {
        machine = machine.with_file(&path, program(random));
    }
    let (answer, took) = bench.call("write_file", &arguments, Arc::new(machine));
    if let Ok(output) = answer
        && let Content::Json(result) = output.content
    {
        let (status, size) = (&result["lint"]["status"], result["lint"].to_string().len());
        assert!(["ok", "error", "skipped"].iter().any(|known| status == known), "{arguments}: {result}");
        assert!(size < 8_000 && !result["lint"].to_string().contains("the parser failed"), "{arguments}: {result}");
    }
    (arguments, took)
}
