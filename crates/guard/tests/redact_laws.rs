//! What holds for every text: pieces do not matter, twice is once, and known values never get through.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use hermes_guard::redact::Secrets;
use proptest::prelude::*;

const VALUES: &[&str] =
    &["EXAMPLE-value", "value-EXAMPLE", "ananas-ananas", "line one EX\nline two 0\n3", "tück\"1\\x"];

fn secrets() -> Secrets {
    let secrets = Secrets::new();
    for (at, value) in VALUES.iter().enumerate() {
        secrets.register(&format!("KEY_{at}"), (*value).into()).unwrap();
    }
    secrets
}

/// Parts of secrets and of what stands around them, so that they often meet.
fn part() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----",
        "\n",
        "\n",
        "\r\n",
        "EXAMPLEexample0EXAMPLEexample0EXAMPLEexample0\n",
        "EXAMPLEexample0EXAMPLEexample0",
        "EXAM==\n",
        "\\n",
        "  12|",
        "13: ",
        "Proc-Type: 4,ENCRYPTED\n",
        "ghp_",
        "sk-",
        "sk-ant-",
        "EXAMPLE0example0EXAMPLE0example0EX",
        "password",
        "token",
        "API_KEY",
        "=",
        ": ",
        ":",
        "\"",
        "'",
        "\\\"",
        "\\",
        "hunter2",
        "a8F3kE0exam",
        " ",
        ",",
        "&",
        "Authorization: ",
        "Bearer ",
        "postgres://",
        "app",
        "@",
        "/",
        "host",
        "eyJEXAMPLE0example0",
        ".",
        "[redacted: ",
        "x",
        "]",
        "[redacted: X]",
        "[redacted: github token]",
        "EXAMPLE",
        "-value",
        "value-",
        "ananas-",
        "line one EX\n",
        "line two 0\n",
        "3",
        "ü",
        "--",
        "curl -u ",
        "<password>",
        "</password>",
        "AKIA",
        "0000EXAMPLE00000",
        "RVhBTVBMRS12YWx1ZQ==",
        "-----",
        "key",
        "0",
        "é",
        "xoxb-",
        "%3D",
        "\x1b[31m",
        "\\n",
        "n",
        "\\t",
        "your-api-key",
        "sha512-",
        "?sig=",
        "Cookie: a=",
        "machine a login b password ",
        "(",
        ")",
        "{",
        "}",
        "$",
    ])
    .prop_map(str::to_owned);
    prop_oneof![
        8 => fixed,
        2 => prop::sample::select(VALUES.to_vec()).prop_map(str::to_owned),
        1 => "[a-zA-Z0-9_\"' =:.-]{0,12}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(part(), 0..24).prop_map(|parts| parts.concat())
}

fn in_pieces(secrets: &Secrets, text: &str, cuts: &[usize]) -> String {
    let mut stream = secrets.stream();
    let mut out = String::new();
    let mut cuts: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut % (text.len() + 1))).collect();
    cuts.sort_unstable();
    let mut at = 0;
    for cut in cuts.into_iter().chain([text.len()]) {
        out += &stream.push(&text[at..cut]);
        at = cut;
    }
    out + &stream.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_do_not_matter(text in text(), cuts in prop::collection::vec(any::<usize>(), 0..12)) {
        let secrets = secrets();
        let whole = secrets.clean(&text).into_owned();
        prop_assert_eq!(&in_pieces(&secrets, &text, &cuts), &whole);
        let each: Vec<_> = (0..=text.len()).collect();
        prop_assert_eq!(&in_pieces(&secrets, &text, &each), &whole);
    }

    #[test]
    fn twice_is_once(text in text()) {
        let secrets = secrets();
        let once = secrets.clean(&text).into_owned();
        let twice = secrets.clean(&once).into_owned();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn a_known_value_never_gets_through(text in text()) {
        let clean = secrets().clean(&text).into_owned();
        for value in VALUES {
            prop_assert!(!clean.contains(value), "{clean}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_of_endless_lines_do_not_matter(
        parts in prop::collection::vec((part(), 1_usize..3000), 1..40),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let text: String = parts.into_iter().map(|(part, times)| part.repeat(times)).collect();
        let text = &text[..text.floor_char_boundary(200_000)];
        let secrets = secrets();
        let whole = secrets.clean(text).into_owned();
        prop_assert_eq!(in_pieces(&secrets, text, &cuts), whole);
    }
}
