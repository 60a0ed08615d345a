//! How long hostile text takes, for a person to read; nothing is asserted about time.
//!
//! `cargo test --release -p hermes-guard --test redact_speed -- --ignored --nocapture`

use std::time::Instant;

use hermes_guard::redact::Secrets;

#[test]
#[ignore = "prints times"]
fn hostile_shapes() {
    let secrets = Secrets::new();
    secrets.register("A", "ananas-ananas-anana0".into()).unwrap();
    secrets.register("B", "aaaaaaaaaaaaaaab".into()).unwrap();
    for at in 0..50 {
        secrets.register(&format!("K{at}"), format!("EXAMPLE-{at}-example-{}", at * 7919).into()).unwrap();
    }
    let source = include_str!("redact.rs");
    println!("{:>34} {:>10} {:>10} {:>10}", "repeated", "100 kB", "1 MB", "1 MB in 16");
    for part in [
        source,
        "the quick brown fox jumps over the lazy dog\n",
        "a",
        "a ",
        "\n",
        " ",
        "é",
        "\u{1F600}",
        "ananas-",
        "token=",
        "token=(",
        "token:",
        "token: ",
        "token=\"",
        "token='token=\"",
        "token=\\\"",
        "\\",
        "\"",
        "password=p4ss",
        "password=p4ss ",
        "API_KEY=a)(",
        "--token ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nEXAMPLEexample0EXAMPLE\n",
        "EXAMPLEexample0EXAMPLEexample0\n",
        "eyJ",
        "eyJaaaaaaaaa.",
        "sk-",
        "sk-a",
        "ghp_",
        "SG.",
        "SG.aaaaaaaaaaaaaaaa",
        "://",
        "a://b:c",
        "a://b:c@",
        "http://:",
        "authorization: ",
        "bearer ",
        "curl -u a",
        "curl ",
        "machine a login ",
        "<token>aaaaaa",
        "[redacted: ",
        "[redacted: x]",
        "[redacted: x]token=a1b2c3d4",
        "ghp_EXAMPLE0example0EXAMPLE0example0EXA ",
        "password: \"hunter2\" ",
        "0123456789:A",
        "MAAAAAAAAAAAAAAAAAAAAAAA.",
        "cookie: a=",
        "AKIA",
        "1",
        "12|",
        "{\"api_key\":\"a8F3kE0exam\",",
        "AGE-SECRET-KEY-1",
        "xoxb-1-",
    ] {
        let time = |size: usize, pieces: usize| {
            let text = part.repeat(size / part.len() + 1);
            let start = Instant::now();
            let mut stream = secrets.stream();
            let mut length = 0;
            let mut at = 0;
            while at < text.len() {
                let end = text.floor_char_boundary(at + pieces.max(4));
                length += stream.push(&text[at..end]).len();
                at = end;
            }
            length += stream.finish().len();
            assert!(length > 0);
            format!("{:.1} ms", start.elapsed().as_secs_f64() * 1e3)
        };
        let name: String = part.escape_debug().take(34).collect();
        println!(
            "{name:>34} {:>10} {:>10} {:>10}",
            time(100_000, usize::MAX / 2),
            time(1_000_000, usize::MAX / 2),
            time(1_000_000, 16)
        );
    }
}
