//! Redaction, from outside: what is hidden, what stays readable, and what was reported of others.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::borrow::Cow;

use hermes_core::Redactor;
use hermes_guard::redact::{Refusal, Secrets, contains_mask, masks};

const PEM: &str = "-----BEGIN RSA PRIVATE KEY-----\n\
    EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE0\n\
    EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE1\n\
    EXAMPLE=\n\
    -----END RSA PRIVATE KEY-----\n";

fn clean(text: &str) -> String {
    Secrets::new().clean(text).into_owned()
}

fn knowing(name: &str, value: &str) -> Secrets {
    let secrets = Secrets::new();
    secrets.register(name, value.into()).unwrap();
    secrets
}

#[test]
fn a_known_value_is_masked_in_every_form() {
    let value = "EX/AMPLE \"värde\"+42'";
    let secrets = knowing("MY_KEY", value);
    for form in [
        value.to_owned(),
        "45582f414d504c45202276c3a4726465222b343227".into(),
        "45582F414D504C45202276C3A4726465222B343227".into(),
        "EX%2FAMPLE%20%22v%C3%A4rde%22%2B42%27".into(),
        "EX%2fAMPLE+%22v%c3%a4rde%22%2b42%27".into(),
        serde_json::to_string(value).unwrap().trim_matches('"').into(),
        r#"EX/AMPLE \"v\u00e4rde\"+42'"#.into(),
        r#"EX\/AMPLE \"värde\"+42'"#.into(),
        r#"EX/AMPLE "värde"+42'\''"#.into(),
    ] {
        assert_eq!(secrets.clean(&format!("a {form} b")), "a [redacted: MY_KEY] b", "{form}");
    }
}

#[test]
fn a_known_value_is_masked_in_base64_whatever_stands_before_it() {
    let secrets = knowing("MY_KEY", "EXAMPLE-value");
    for encoded in ["RVhBTVBMRS12YWx1ZQ==", "eEVYQU1QTEUtdmFsdWU=", "eHhFWEFNUExFLXZhbHVl"] {
        let clean = secrets.clean(encoded);
        assert!(clean.contains("[redacted: MY_KEY]"), "{clean}");
        assert!(clean.replace("[redacted: MY_KEY]", "").len() <= 7, "{clean}");
    }
}

#[test]
fn a_known_value_of_several_lines_is_masked_as_a_whole_and_in_parts() {
    let secrets = knowing("DEPLOY_KEY", PEM);
    assert_eq!(secrets.clean(&format!("key:\n{PEM}end")), "key:\n[redacted: DEPLOY_KEY]\nend");
    assert_eq!(
        secrets.clean("EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE1"),
        "[redacted: DEPLOY_KEY]"
    );
    let config = knowing("CONFIG", "{\n  \"type\": \"service_account\",\n  \"id\":\"a8F3kE0examPLE9x7Q\"\n}");
    assert_eq!(config.clean("  \"type\": \"service_account\","), "  \"type\": \"service_account\",");
}

#[test]
fn overlapping_values_leave_nothing_of_either() {
    let secrets = knowing("FIRST", "alpha-beta");
    secrets.register("SECOND", "beta-gamma".into()).unwrap();
    assert_eq!(secrets.clean("x alpha-beta-gamma y"), "x [redacted: FIRST] y");
    assert_eq!(secrets.clean("alpha-betabeta-gamma"), "[redacted: FIRST][redacted: SECOND]");
}

#[test]
fn values_that_would_tear_holes_are_refused() {
    for (value, refusal) in [
        ("abc", Refusal::Short),
        ("   12345   ", Refusal::Short),
        ("password", Refusal::Trivial),
        ("localhost", Refusal::Trivial),
        ("changeme", Refusal::Trivial),
        ("1234567890", Refusal::Trivial),
        ("2024-01-01", Refusal::Trivial),
        ("aaaaaaaaaa", Refusal::Trivial),
        ("${TOKEN}", Refusal::Trivial),
        ("redacted: ", Refusal::Mask),
        ("github token", Refusal::Mask),
        ("[redacted: x]y0z0", Refusal::Mask),
    ] {
        assert_eq!(Secrets::new().register("X", value.into()), Err(refusal), "{value}");
    }
    let secrets = knowing("X", "quagmire");
    assert_eq!(secrets.register("the quagmire", "a8F3kE0exam".into()), Err(Refusal::Mask));
    assert_eq!(Secrets::new().register("quagmire", "quagmire".into()), Err(Refusal::Mask));
}

#[test]
fn a_value_registered_again_takes_the_new_name() {
    let secrets = knowing("OLD", "EXAMPLE-value");
    secrets.register("NEW", "EXAMPLE-value".into()).unwrap();
    assert_eq!(secrets.clean("EXAMPLE-value"), "[redacted: NEW]");
}

#[test]
fn nothing_shows_the_values() {
    let secrets = knowing("X", "EXAMPLE-value");
    assert_eq!(format!("{secrets:?} {:?}", secrets.stream()), "Secrets Stream");
}

#[test]
fn text_without_secrets_is_borrowed() {
    let secrets = knowing("X", "EXAMPLE-value");
    assert!(matches!(Redactor::redact(&secrets, "fn main() {}\n"), Cow::Borrowed(_)));
}

#[test]
fn assignments_whose_name_says_secret_are_masked() {
    for (text, expected) in [
        ("MY_SERVICE_TOKEN=opaquevalue1", "MY_SERVICE_TOKEN=[redacted: token]"),
        ("export DB_PASSWORD='p4ss w0rd'", "export DB_PASSWORD='p4ss w0rd'"),
        ("export DB_PASSWORD='p4ssw0rd'", "export DB_PASSWORD='[redacted: password]'"),
        ("DB_PASSWORD=p@ss(w0rd", "DB_PASSWORD=[redacted: password]"),
        ("DB_PASS=correcthorse\n", "DB_PASS=[redacted: password]\n"),
        ("password: hunter2\n", "password: [redacted: password]\n"),
        ("password: hunter2 # mine\n", "password: [redacted: password] # mine\n"),
        (r#"{"api_key": "a8F3kE0exam", "n": 1}"#, r#"{"api_key": "[redacted: key]", "n": 1}"#),
        (r#""{\"api_key\": \"a8F3kE0exam\"}""#, r#""{\"api_key\": \"[redacted: key]\"}""#),
        (r#"{"password": "with \"quotes\" 1\\", "a": 1}"#, r#"{"password": "with \"quotes\" 1\\", "a": 1}"#),
        (r#"{"password":"a\"b1c2d3\\","a":1}"#, r#"{"password":"[redacted: password]","a":1}"#),
        ("clientSecret = \"a8F3kE0exam\";", "clientSecret = \"[redacted: secret]\";"),
        ("const API_KEY: &str = \"a8F3kE0exam\";", "const API_KEY: &str = \"[redacted: key]\";"),
        ("let token: String = \"a8F3kE0exam\".into();", "let token: String = \"[redacted: token]\".into();"),
        ("os.environ['API_KEY'] = 'a8F3kE0exam'", "os.environ['API_KEY'] = '[redacted: key]'"),
        (
            "tool --password hunter2x9 --token=a8F3kE0exam x",
            "tool --password [redacted: password] --token=[redacted: token] x",
        ),
        ("https://x.example/?access_token=a8F3kE0exam&n=1", "https://x.example/?access_token=[redacted: token]&n=1"),
        ("//npm.example/:_authToken=a8F3kE0exam", "//npm.example/:_authToken=[redacted: token]"),
        ("X-Api-Key: a8F3kE0exam", "X-Api-Key: [redacted: key]"),
        ("AccountName=x;AccountKey=a8F3kE0exam+/==;Suffix=y", "AccountName=x;AccountKey=[redacted: key];Suffix=y"),
        ("src/a.py:12:password = \"hunter2\"", "src/a.py:12:password = \"[redacted: password]\""),
        (r#"{"log": "a\ntoken=a8F3kE0exam\nb"}"#, r#"{"log": "a\ntoken=[redacted: token]\nb"}"#),
        ("\x1b[1;32mtoken: a8F3kE0exam\x1b[0m", "\x1b[1;32mtoken: [redacted: token]\x1b[0m"),
        (r#""TOKEN=a8F3kE0exam\nNEXT=1""#, r#""TOKEN=[redacted: token]\nNEXT=1""#),
        ("GROQ_KEY=a8F3kE0examPLE9x7Qm2Zt", "GROQ_KEY=[redacted: key]"),
    ] {
        assert_eq!(clean(text), expected);
    }
}

#[test]
fn code_and_documents_stay_readable() {
    for text in [
        "tokenizer=AutoTokenizer.from_pretrained(\"gpt2-medium-345m\")",
        "max_tokens: 100, \"token_count\": 123456",
        "secretary: \"room 12b45678\" keyboard=qwertz105",
        "password_field_id = \"field-1a2b3c4d\"",
        "API_KEY=your-api-key",
        "API_KEY=xxxxxxxxxxxx",
        "TOKEN=<token> TOKEN=${TOKEN} TOKEN=$TOKEN TOKEN=$(pass show token1)",
        "password: '***'",
        "password = None; token = null; secret: undefined",
        "api_key = os.environ[\"OPENAI_API_KEY\"]",
        "apiKey: process.env.OPENAI_API_KEY2,",
        "let token = lexer.next_token2();",
        "let token = tokens[i1];",
        "fn login(password: &str, token: Option<Token64>) -> Result<(), Error>",
        "if token == Token::Ident2 {",
        "private_key: PathBuf, access_key: String,",
        "api_key=get_api_key(user1)",
        "API_KEY=load(\"KEY_1\")",
        "\"password\": \"Enter your password\"",
        "\"password\": \"invalid_password\"",
        "error: invalid token: expected identifier, found `1`",
        "integrity sha512-EXAMPLEexample0123456789EXAMPLEexample0123456789==",
        "secret: sha256:00e0a0b1e0a0b1e0a0b1e0a0b1e0a0b1e0a0b1e0a0b1",
        "commit 0e0a0b1c0e0a0b1c0e0a0b1c0e0a0b1c0e0a0b1c",
        "id: 123e4567-e89b-12d3-a456-426614174000",
        "PWD=/home/user/project1 OLDPWD=/home/user/project2",
        "SSH_AUTH_SOCK=/run/user/1000/keyring/ssh AUTH=none",
        "let token = ParsingToken::BuiltIn2Rule;",
        "private_key: x25519_generate_private_key,",
        "AccessToken: WBEM_128BITS,",
        "f'password={self.password1}'",
        "credentials: user256/home#assets/crates-credentials-of-2",
        "next_page_token: a8F3kE0examPLE9x7Qm2Zt",
        "public_key = \"a8F3kE0examPLE9x7Qm2Zt\"",
        "secrets: inherit\n  token: ${{ secrets.GITHUB_TOKEN }}",
        "token_url: https://auth.example/v1/token2",
        "SECRET_FILE=/run/secrets/db1 PASSWORD_FILE=/run/secrets/db2",
        "https://example.com/a:b@c http://localhost:8080/x@y mail me@example.com",
        "sk_buff_head_init();",
        "User prefers curl over wget; token lives in env var GH_TOKEN",
        "if text.starts_with(\"-----BEGIN PRIVATE KEY-----\") {\n    return Err(\"a private key\");\n}",
        "-----BEGIN CERTIFICATE-----\nEXAMPLEexampleEXAMPLEexampleEXAMPLEexample\n-----END CERTIFICATE-----\n",
        "-----BEGIN PRIVATE KEY-----\nis how a key begins.\n",
        "-----BEGIN PRIVATE KEY-----\n\n",
    ] {
        assert_eq!(clean(text), text);
    }
}

#[test]
fn line_numbers_defeat_nothing() {
    // 10-injection-redaction-06.
    let name = "   12|AWS_SECRET_ACCESS_KEY=";
    assert_eq!(clean(&format!("{name}abcd1234EXAMPLEabcd1234EXAMPLEabcd1234ab\n")), format!("{name}[redacted: key]\n"));
    for gutter in ["{:>5}|", "{}: ", "{}:", "{:>6}\t", "{:>4} │ ", "{}-", "{:>6}→"] {
        let write = |number: usize| match gutter.split_once('}') {
            Some(("{:>5", rest)) => format!("{number:>5}{rest}"),
            Some(("{:>6", rest)) => format!("{number:>6}{rest}"),
            Some(("{:>4", rest)) => format!("{number:>4}{rest}"),
            Some((_, rest)) => format!("{number}{rest}"),
            None => String::new(),
        };
        let lines = ["a", &PEM[..PEM.len() - 1], "b"].join("\n");
        let text: String = lines.lines().zip(8..).map(|(line, number)| write(number) + line + "\n").collect();
        assert_eq!(clean(&text), format!("{}a\n{}[redacted: private key]\n{}b\n", write(8), write(9), write(14)));
    }
}

#[test]
fn a_private_key_is_one_unit() {
    let quoted = PEM.lines().flat_map(|line| ["    \"", line, "\\n\" +\n"]).collect::<String>();
    for (text, expected) in [
        (format!("a\n{PEM}b\n"), "a\n[redacted: private key]\nb\n"),
        (PEM.replace('\n', "\r\n"), "[redacted: private key]\r\n"),
        (PEM.replace('\n', "\n   "), "[redacted: private key]\n   "),
        (format!("> {}", PEM.trim().replace('\n', "\n> ")), "> [redacted: private key]"),
        (serde_json::to_string(PEM).unwrap(), "\"[redacted: private key]\\n\""),
        (format!("key=\"{}\" x", PEM.trim().replace('\n', " ")), "key=\"[redacted: private key]\" x"),
        (
            PEM.replace("KEY-----\nE", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nE"),
            "[redacted: private key]\n",
        ),
        (PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"), "[redacted: private key]\n"),
        // Cut off.
        (PEM[..110].into(), "[redacted: private key]"),
        (format!("{}\nthat was all\n", &PEM[..96]), "[redacted: private key]\nthat was all\n"),
        (format!("{PEM}{PEM}"), "[redacted: private key]\n[redacted: private key]\n"),
        (quoted, "    \"[redacted: private key]\\n\" +\n"),
    ] {
        assert_eq!(clean(&text), expected, "{text}");
    }
}

#[test]
fn a_mask_in_what_would_be_written_is_found_with_its_line() {
    // 10-injection-redaction-03.
    let shown = clean("A=1\nAPI_KEY=a8F3kE0exam\n");
    assert!(contains_mask(&shown) && !contains_mask("A=1\nAPI_KEY=a8F3kE0exam\n"));
    assert_eq!(masks(&shown)[0].line, 2);
}

#[test]
fn a_value_cannot_hide_in_a_line_without_end() {
    let secrets = knowing("X", "EXAMPLE-value");
    for before in [65_520, 65_530, 65_536, 131_070] {
        let text = "x".repeat(before) + "EXAMPLE-value" + &"y".repeat(70_000);
        assert!(!secrets.clean(&text).contains("EXAMPLE-value"), "{before}");
    }
    let token = format!("{}{}{}", "\u{fc}".repeat(10_000), " ghp_EXAMPLE", "example0".repeat(20_000));
    assert!(secrets.clean(&token).ends_with(" [redacted: github token]"));
}

#[test]
fn a_stream_gives_what_is_certain_and_holds_back_what_is_not() {
    let secrets = knowing("X", "EXAMPLE-value\nof two lines");
    let mut stream = secrets.stream();
    assert_eq!(stream.push("one\ntwo"), "one\n");
    assert_eq!(stream.push("\nEXAMPLE-value\n"), "two\n");
    assert_eq!(stream.push("of two lines\n"), "[redacted: X]\n");
    assert_eq!(stream.push("EXAMPLE-value\nof"), "");
    assert_eq!(stream.push(" three\n-----BEGIN PRIVATE KEY-----\n"), "EXAMPLE-value\nof three\n");
    assert_eq!(stream.push("EXAMPLEexample0EXAMPLE\n"), "[redacted: private key]");
    assert_eq!(stream.push(&"EXAMPLEexample0EXAMPLE\n".repeat(10_000)), "");
    assert_eq!(stream.push("the end\n"), "\nthe end\n");
    assert_eq!(stream.finish(), "");
}

#[test]
fn a_stream_keeps_to_the_values_it_began_with() {
    let secrets = Secrets::new();
    let mut stream = secrets.stream();
    secrets.register("X", "EXAMPLE-value".into()).unwrap();
    assert_eq!(stream.push("EXAMPLE-value\n"), "EXAMPLE-value\n");
    assert_eq!(secrets.clean("EXAMPLE-value\n"), "[redacted: X]\n");
}

#[test]
fn an_escape_before_a_secret_does_not_hide_it() {
    let token = concat!("ghp", "_EXAMPLE0example0EXAMPLE0example0EXA");
    for before in ["\\n", "\\t", "%3D", "\x1b[31m", "\x1b[01;31m\x1b[K", "(", "a=", "ü", "-"] {
        assert_eq!(clean(&format!("x{before}{token}")), format!("x{before}[redacted: github token]"), "{before:?}");
    }
    assert_eq!(clean(&format!("x{token}")), format!("x{token}"));
}

#[test]
fn what_a_mask_uncovers_is_masked_in_the_same_pass() {
    // In code a word may follow a variable; at the end of a line the same word is a value.
    let text = concat!("password: hunter2 ghp", "_EXAMPLE0example0EXAMPLE0example0EXA");
    let once = clean(text);
    assert_eq!(once, "password: [redacted: password] [redacted: github token]");
    assert_eq!(clean(&once), once);
}

#[test]
fn a_known_value_in_wrapped_base64_is_masked() {
    let value = "EXAMPLE-value-of-more-than-fifty-seven-bytes-so-that-coreutils-wraps-it-0";
    let secrets = knowing("LONG", value);
    let wrapped =
        "RVhBTVBMRS12YWx1ZS1vZi1tb3JlLXRoYW4tZmlmdHktc2V2ZW4tYnl0ZXMtc28tdGhhdC1jb3Jl\ndXRpbHMtd3JhcHMtaXQtMA==\n";
    let clean = secrets.clean(wrapped);
    assert!(clean.starts_with("[redacted: LONG]") && clean.len() < 24, "{clean}");
}
