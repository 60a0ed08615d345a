//! What judging costs: a typical command, hostile text at growing sizes, and the redactor.
//!
//! `cargo bench -p hermes-guard --bench judge` prints Markdown tables. Every figure is a median; nothing here decides
//! whether it is good enough.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people who measure")]

#[path = "../tests/rows/mod.rs"]
mod rows;

use std::hint::black_box;
use std::time::Duration;

use hermes_guard::judge;
use hermes_guard::redact::Secrets;
use hermes_testkit::measure::{median, ratio, shown, timed};

fn main() {
    // `cargo test --benches` only asks whether this starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    corpus();
    shapes();
    redactor();
}

fn best_of(rounds: usize, mut work: impl FnMut()) -> Duration {
    median((0..rounds).map(|_| timed(&mut work)).collect())
}

fn corpus() {
    let world = rows::world();
    let rows = rows::all();
    let mut times: Vec<Duration> =
        rows.iter().map(|row| best_of(5, || drop(black_box(judge(black_box(&row.cmd), &world))))).collect();
    times.sort();
    let at = |part: usize| shown(times[(times.len() - 1) * part / 1_000]);
    println!(
        "## Commands\n\n| commands of the corpus | median | 99 of 100 | 999 of 1000 | slowest | goal |\n|---|---|---|---|---|---|"
    );
    println!("| {} | {} | {} | {} | {} | median below 50 µs |", rows.len(), at(500), at(990), at(999), at(1_000));
}

/// `unit` again and again, up to `size` bytes.
fn again(unit: &str, size: usize) -> String {
    let mut text = unit.repeat(size / unit.len() + 1);
    text.truncate((0..=size).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
    text
}

/// Texts of which some reader of commands is known to take more than linear time, by name; what stands around the
/// repeated part comes first and last.
const SHAPES: &[(&str, &str, &str, &str)] = &[
    // long, and nothing else
    (
        "text in a here-document",
        "cat > notes.txt <<'EOF'\n",
        "The quick brown fox jumps over the lazy dog, and on.\n",
        "\nEOF",
    ),
    (
        "Python in a here-document",
        "cat > a.py <<'EOF'\n",
        "def f(x):\n    return {'a': x, \"b\": [1, 2]}  # c; d | e & f\n",
        "\nEOF",
    ),
    (
        "JSON in a here-document",
        "cat > a.json <<'EOF'\n",
        "{\"name\": \"value\", \"list\": [1, 2, 3], \"nested\": {\"k\": \"v\"}},\n",
        "\nEOF",
    ),
    (
        "base64 in a here-document",
        "base64 -d > x.bin <<'EOF'\n",
        "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXI=\n",
        "\nEOF",
    ),
    ("many echo", "", "echo hello world; ", ""),
    ("many &&", "", "test -f a && ", "true"),
    ("one long word", "echo ", "a", "\ntrue"),
    // one program, many times
    ("git push", "", "git push origin x\n", ""),
    ("curl", "", "curl x\n", ""),
    ("chmod +x", "", "chmod +x a\n", ""),
    ("find", "", "find x\n", ""),
    ("xargs", "", "xargs a\n", ""),
    ("cp", "", "cp a b\n", ""),
    ("tee", "", "tee a\n", ""),
    ("sed -n", "", "sed -n a\n", ""),
    ("perl", "", "perl a\n", ""),
    ("perl -i", "", "perl -i a\n", ""),
    ("kill", "", "kill a\n", ""),
    ("openssl", "", "openssl base64 -x\n", ""),
    ("openssl in one line", "", "openssl base64 -d ", "\ntrue"),
    ("echo | tr", "", "echo | tr ", "\n"),
    ("pwsh", "", "pwsh a\n", ""),
    ("gateway run", "", "gateway run\n", ""),
    ("cmd /c", "", "cmd /c a\n", ""),
    ("delete from", "", "delete from where ", "\n"),
    // many arguments
    ("rm and dashes", "rm ", "- ", "\n"),
    ("chmod and options", "chmod ", "-a ", "\n"),
    ("killall and options", "killall ", "-a ", "\n"),
    ("systemctl and options", "systemctl ", "-a ", "\n"),
    ("hermes and options", "hermes ", "-a b ", "\n"),
    ("hermes and double dashes", "hermes ", "-- -- ", "\n"),
    ("sudo and words", "sudo ", "a ", "\n"),
    ("sudo sudo sudo", "", "sudo a ", "\n"),
    ("blanks", "rm", " ", "\n"),
    ("blanks behind a semicolon", ";", " ", "x\n"),
    ("newlines", "a", "\n", ""),
    ("assignments", "", "A=1 ", "\n"),
    ("redirections", "", "> ", "\n"),
    // opened and not closed
    ("$(", "", "$(", "\n"),
    ("backticks", "", "`a` ", "\n"),
    ("{", "", "{ ", "\n"),
    ("quotes", "", "'a' ", "\n"),
    ("quotes without an end", "", "grep \"a ", "\n"),
    // texts in texts
    ("quoted programs", "", "'l's;", "\n"),
    ("default values", "", "${x:-ls};", "\n"),
    ("bash -c", "", "bash -c 'echo a'; ", "\n"),
    ("python3 -c", "", "python3 -c 'print(1)'; ", "\n"),
    ("grep for a command", "", "grep 'rm -rf /' x; ", "\n"),
    ("escapes", "", "\u{1b}[", "\n"),
    ("escapes of a title", "", "\u{1b}]", "\n"),
    ("paths at home", "", "/home/u/a ", "\n"),
    ("slashes", "rm -rf ", "/", "\n"),
    ("dots and slashes", "rm -rf ", "/.", "x\n"),
    // beyond those: what a shell multiplies
    ("(( ", "", "((", "\n"),
    ("[[ ", "", "[[ ", "\n"),
    ("nested default values", "", "${x:-", "\n"),
    ("words in open arithmetic", "$(($(($(($(($(($(($(($((", "DROP TABLE ", "\n"),
    ("globs as programs", "", "[Service]\n", "\n"),
    ("options and operands of ls", "ls ", "-x . ", "\n"),
    ("braces", "echo ", "{a,b}", "\n"),
    ("sequences", "echo ", "{1..9}", "\n"),
    ("a variable that doubles", "x=a\n", "x=$x$x\n", "echo $x"),
    ("branches", "", "if a; then b=1; else b=2; fi\n", "echo $b"),
    ("functions", "", "f() { f2; }; f2() { f; }; f\n", ""),
    ("here-documents", "", "cat <<A\nx\nA\n", ""),
    ("replacements", "x=aaaaaaaaaa\n", "y=${x//a*/b};", "\n"),
    ("arithmetic", "echo $((1", "+1", "))"),
    ("stars", "case x in ", "*?", ") a;; esac"),
    ("pipes", "a", " | a", "\n"),
    ("find -exec", "find . ", "-exec rm {} \\; ", "\n"),
];

fn shapes() {
    let world = rows::world();
    println!("\n## Hostile text\n\n| shape | 1 kB | 10 kB | 100 kB | growth | 100 kB |\n|---|---|---|---|---|---|");
    let (mut slow, mut steep) = (0, 0);
    for (name, first, unit, last) in SHAPES {
        let times: Vec<Duration> = [1_000, 10_000, 100_000]
            .into_iter()
            .map(|size| {
                let text = format!("{first}{}{last}", again(unit, size));
                best_of(5, || drop(black_box(judge(black_box(&text), &world))))
            })
            .collect();
        let growth = ratio(times[2], times[1]);
        let text = format!("{first}{}{last}", again(unit, 100_000));
        let verdict = judge(&text, &world).verdict;
        slow += u32::from(times[2] > Duration::from_millis(20));
        steep += u32::from(growth > 20.0 && times[2] > Duration::from_millis(1));
        println!(
            "| `{}` | {} | {} | {} | {growth:.1}x | {verdict:?} |",
            name.replace('|', "\\|"),
            shown(times[0]),
            shown(times[1]),
            shown(times[2]),
        );
    }
    println!(
        "\nOf {} shapes {slow} take more than 20 ms at 100 kB, {steep} grow more than twice as fast as they get longer.",
        SHAPES.len()
    );
}

fn redactor() {
    let secrets = Secrets::new();
    for n in 0..20 {
        secrets.register(&format!("KEY_{n}"), format!("example-secret-value-number-{n:04}").into()).unwrap();
    }
    println!("\n## Redactor, 20 values registered\n\n| text | 1 kB | 10 kB | 100 kB | growth |\n|---|---|---|---|---|");
    for (name, unit) in [
        ("prose", "The quick brown fox jumps over the lazy dog.\n"),
        ("a log", "2026-01-02T03:04:05Z INFO request id=6f1c2a user=42 path=/api/v1/items took 12 ms\n"),
        ("settings", "API_KEY=example0123456789abcdefABCDEF\nPORT=8080\n"),
        ("one line without an end", "x"),
        ("keys of JSON", "{\"token\": \"abc\", \"password\": \"\", \"n\": 1}, "),
        ("beginnings of key blocks", "-----BEGIN RSA PRIVATE KEY-----\n"),
        ("almost a value", "example-secret-value-number-00"),
        ("base64", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXI="),
    ] {
        let times: Vec<Duration> = [1_000, 10_000, 100_000]
            .into_iter()
            .map(|size| {
                let text = again(unit, size);
                best_of(5, || drop(black_box(secrets.clean(black_box(&text)))))
            })
            .collect();
        let growth = ratio(times[2], times[1]);
        println!("| {name} | {} | {} | {} | {growth:.1}x |", shown(times[0]), shown(times[1]), shown(times[2]));
    }
}
