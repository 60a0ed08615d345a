//! Throws texts at whatever of the guard reads hostile text.
//!
//! `cargo run --release --manifest-path crates/guard/fuzz/Cargo.toml -- TARGET SECONDS [SEED]`, where TARGET is `judge`,
//! `redact` or `places`; `@FILE` instead of the seconds times one text. Texts are made from the judged commands and from
//! those that took longest so far: cut, joined, repeated, spiced with pieces that mean something. A panic ends the run
//! with the input; what took longest is printed at the end, with everything below 10 kB that took more than 100 ms.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hermes_guard::redact::Secrets;
use hermes_guard::{Verdict, World, judge};

const PIECES: &[&str] = &[
    "$(",
    ")",
    "`",
    "'",
    "\"",
    "\\",
    "{",
    "}",
    "${",
    "$((",
    "))",
    "((",
    "[[",
    "]]",
    "<<E\n",
    "\nE\n",
    "<<<",
    "|",
    "||",
    "&&",
    "&",
    ";",
    ";;",
    "\n",
    " ",
    "\t",
    "#",
    "~",
    "*",
    "?",
    "[",
    "]",
    "!",
    "=",
    "x=",
    "a[",
    "]=",
    "if ",
    "then ",
    "fi ",
    "for x in ",
    "do ",
    "done ",
    "case x in ",
    "esac ",
    "f()",
    "eval ",
    "bash -c ",
    "rm -rf ",
    "/",
    "$x",
    "${x:-",
    "${x//",
    "${!x}",
    "${#x}",
    "$@",
    "printf %s ",
    "| sh",
    "xargs ",
    "sudo ",
    "find . -exec ",
    "\\;",
    "+",
    "python3 -c ",
    "awk ",
    "sed s/",
    "é",
    "\u{F0000}",
    "\u{1F600}",
    "\0",
    "\r",
    "%s",
    "{1..9}",
    "{a,b}",
    "1",
    "-",
    "--",
    ">",
    "2>&1",
    "<(",
    ">(",
    "$'",
    "\\x41",
    "@",
    ",",
    "..",
    "while :; do ",
    "x+=$x",
    "a=(",
    "((x=x+1))",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "-----END RSA PRIVATE KEY-----\n",
    "AKIAIOSFODNN7",
    "ghp_",
    "sk-",
    "password=",
    "Bearer ",
    "token: ",
    "api_key=\"",
    "0123456789abcdef",
    "http://",
    "https://user:pw@",
    "127.0.0.1",
    "0x7f.1",
    "[::1]",
    "localhost",
    ":80",
    "%2e",
    "?key=",
    "//",
    "import os;",
    "os.system(",
    "SELECT 1;",
    "DROP TABLE ",
    "; ",
    "=~",
    "${x^^}",
    "${x:1:2}",
    "IFS=",
    "read x <<<",
    "source ",
    "trap ",
];

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % end.max(1) as u64) as usize
    }

    fn border(&mut self, text: &str) -> usize {
        let at = self.below(text.len() + 1);
        (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
    }

    /// Another text, made of those at hand.
    fn text(&mut self, seeds: &[String]) -> String {
        let mut text = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(6) {
            let at = self.border(&text);
            match self.below(9) {
                0 => text.truncate(at),
                1 => drop(text.drain(..at)),
                2..=4 => text.insert_str(at, PIECES[self.below(PIECES.len())]),
                5 => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.border(other);
                    text.insert_str(at, &other[from..]);
                }
                6 => {
                    let piece = PIECES[self.below(PIECES.len())].repeat(1 + self.below(300));
                    text.insert_str(at, &piece);
                }
                7 => {
                    let end = self.border(&text[at..]) + at;
                    let piece = text[at..end].repeat(1 + self.below(8));
                    text.insert_str(end, &piece);
                }
                _ => text.extend(char::from_u32(self.below(0x11_0000) as u32)),
            }
            if text.len() > 10_000 {
                text.truncate((0..=9_999).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
            }
        }
        text
    }
}

fn seeds() -> Vec<String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(tests).expect("the corpus").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let rows = files.iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let rows = rows.map(|path| std::fs::read_to_string(path).expect("a text"));
    let command = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).expect("a row")["cmd"].as_str().expect("a text").to_owned()
    };
    rows.flat_map(|text| text.lines().map(command).collect::<Vec<_>>()).collect()
}

/// Any text gets a verdict, the same each time; and in quotes it is data.
fn judged(text: &str) {
    let world = World::new("/home/u", "/home/u/project");
    let first = judge(text, &world);
    assert_eq!(first.verdict, judge(text, &world).verdict, "twice alike");
    if !text.contains('\0') {
        let data = format!("printf %s '{}' > notes.txt", text.replace('\'', r"'\''"));
        assert_eq!(judge(&data, &world).verdict, Verdict::Safe, "data is data");
    }
}

/// In pieces as in one, and once as twice.
fn redacted(text: &str, random: &mut Random, secrets: &Secrets) {
    let whole = secrets.clean(text);
    let mut stream = secrets.stream();
    let mut pieces = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = random.border(rest);
        let at = if at == 0 { rest.chars().next().map_or(1, char::len_utf8) } else { at };
        pieces += &stream.push(&rest[..at]);
        rest = &rest[at..];
    }
    pieces += &stream.finish();
    assert_eq!(whole, pieces, "stream and whole");
    assert_eq!(whole, secrets.clean(&whole), "once and twice");
}

fn placed(text: &str) {
    let (cwd, home) = (Path::new("/home/u/project"), Path::new("/home/u"));
    let once = hermes_guard::paths::normalise(Path::new(text), cwd, home);
    assert_eq!(once, hermes_guard::paths::normalise(&once, cwd, home), "normalised twice");
    assert!(!hermes_guard::paths::traverses(&once), "no way up is left");
    let policy = hermes_guard::url_policy::UrlPolicy::default();
    if let Ok(url) = policy.check_url(text) {
        // As it is written out in full it may be too long.
        let again = policy.check_url(url.url().as_str());
        assert!(again.is_ok() || url.url().as_str().len() > text.len(), "what is allowed stays so");
    }
    let _ = hermes_guard::injection::scan(text);
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, target, seconds, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: fuzz judge|redact|places SECONDS [SEED]");
        return ExitCode::from(2);
    };
    if let Some(file) = seconds.strip_prefix('@') {
        let text = std::fs::read_to_string(file).expect("a text");
        for _ in 0..3 {
            let start = Instant::now();
            match target.as_str() {
                "judge" => drop(judge(&text, &World::new("/home/u", "/home/u/project"))),
                "redact" => drop(Secrets::new().clean(&text)),
                "stream" => {
                    let mut stream = Secrets::new().stream();
                    text.chars().for_each(|c| drop(stream.push(c.encode_utf8(&mut [0; 4]))));
                    drop(stream.finish());
                }
                _ => placed(&text),
            }
            println!("{:?}", start.elapsed());
        }
        return ExitCode::SUCCESS;
    }
    let limit = Duration::from_secs(seconds.parse().expect("seconds"));
    let mut random = Random(rest.first().map_or(1, |seed| seed.parse().expect("a seed")) | 0x9E37_79B9_0000_0000);
    let mut seeds = seeds();
    let corpus = seeds.len();
    let secrets = Secrets::new();
    secrets.register("TEST_KEY", "correct-horse-battery-staple".to_owned().into()).expect("a good secret");
    let (began, mut runs, mut crashes, mut slow) = (Instant::now(), 0_u64, 0, Vec::<(Duration, String)>::new());
    while began.elapsed() < limit {
        let text = random.text(&seeds);
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| match target.as_str() {
            "judge" => judged(&text),
            "redact" => redacted(&text, &mut random, &secrets),
            _ => placed(&text),
        }));
        let mut took = start.elapsed();
        // Whether it was the text or the machine that took long, the next time shows.
        if took > Duration::from_millis(20) && outcome.is_ok() {
            for _ in 0..3 {
                let start = Instant::now();
                match target.as_str() {
                    "judge" => judged(&text),
                    "redact" => redacted(&text, &mut random, &secrets),
                    _ => placed(&text),
                }
                took = took.min(start.elapsed());
            }
        }
        runs += 1;
        if outcome.is_err() {
            crashes += 1;
            println!("crash {}", serde_json::json!(text));
            if crashes > 20 {
                break;
            }
        }
        if slow.len() < 200 || slow.last().is_some_and(|(least, _)| took > *least) {
            let at = slow.partition_point(|(time, _)| *time > took);
            slow.insert(at, (took, text.clone()));
            slow.truncate(200);
            // What took long is a good beginning for something that takes longer.
            if seeds.len() < corpus + 2_000 {
                seeds.push(text);
            } else {
                let at = corpus + random.below(2_000);
                seeds[at] = text;
            }
        }
    }
    println!("{target}: {runs} runs in {:.0} s, {crashes} crashes", began.elapsed().as_secs_f64());
    for (time, text) in slow.iter().take_while(|(time, _)| *time > Duration::from_millis(100)).take(10) {
        println!("slow {time:?} {} bytes {}", text.len(), serde_json::json!(text));
    }
    if let Some((time, text)) = slow.first() {
        println!(
            "slowest {time:?} {} bytes {}",
            text.len(),
            serde_json::json!(text.chars().take(300).collect::<String>())
        );
    }
    if crashes > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
