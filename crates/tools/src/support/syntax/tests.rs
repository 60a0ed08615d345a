use proptest::prelude::*;

use super::*;

fn of(path: &str, old: Option<&str>, new: &str) -> Report {
    report(Path::new(path), old.map(str::as_bytes), new.as_bytes(), false)
}

fn status(path: &str, new: &str) -> &'static str {
    of(path, None, new).status
}

#[test]
fn each_language_has_texts_that_are_fine_and_texts_that_are_not() {
    for (path, fine, broken) in [
        ("a.json", "{\"a\": [1, null]}\n", "{\"a\": 1,}"),
        ("a.json", "\u{feff}[1]", "{'a': 1}"),
        ("a.json", "\"x\"", "{\"a\": NaN}"),
        ("a.ipynb", "{\"cells\": []}", "{\"cells\": [}"),
        ("package.json", "{}", "{} // no"),
        (".vscode/x.json", "// a\n{\"a\": 1, /* b */}", "{\"a\" 1}"),
        ("tsconfig.json", "{\"a\": [1,],}", "{\"a\": [1,,]}"),
        ("a.jsonl", "{\"a\": 1}\r\n\r\n[2]", "{\"a\": 1}\n{\"a\":\n"),
        ("a.yaml", "a: &x [1]\nb: !Ref c\na: *x\n---\n- d\n", "a: b: c"),
        ("a.yml", "on: [push]\nx: ${{ y }}\n", "a: [1, 2\nb: 1\n"),
        ("a.yml", "", "a:\n\t- b"),
        ("a.toml", "a = 1\n[b]\nc = 2024-01-01\n", "a = \n"),
        ("Cargo.lock", "", "a = 1\na = 2\n"),
        ("a.py", "def f():\n    return f'{1!r:>{2}}'\n", "def f(:\n"),
        ("a.py", "match x:\n    case [1, *_]: pass\ntype A[T] = list[T]\n", "def f():\nreturn 1\n"),
        ("a.pyi", "def f(x: int = ...) -> None: ...", "if x\n    y"),
        ("run", "#!/usr/bin/env python3\nprint(1)", "#!/usr/bin/env python3\nprint(1"),
        ("a.js", "let a; export { a as if };\nconst b = <div>{c?.d ?? 1n}</div>", "function f() {"),
        ("a.cjs", "return 1", "let let = 'a"),
        ("a.mjs", "await 1; import a from 'b' with { type: 'json' }", "const a = ;"),
        ("a.ts", "export type * from './b';\nlet a: import('c').D<E> = f<G>(h)!;", "let a: = 1"),
        ("a.tsx", "const a = <T,>(b: T) => <A<T> b={b} />", "const a = <A>"),
        ("a.d.ts", "declare module 'x' { global { var a: 1 } }", "declare module 'x' {"),
        ("a.rs", "fn f() -> impl Fn() { async move || { let x = a?.await; } }", "fn f() { let x = ; }"),
        ("a.rs", "#!/usr/bin/env run\nfn f() { try!(g()); let gen = 1; }", "struct A { b: }"),
        ("a.rs", "macro_rules! a { ($($b:tt)*) => { str![[$($b)*]] } }", "fn f() {"),
        ("a.go", "package a\nfunc F[T any](x T) { go func() {}() }", "package a\nfunc F( {\n}\n"),
        ("a.java", "record A(int b) { sealed interface C permits D {} }", "class A { void b( { } }"),
    ] {
        let (good, bad) = (of(path, None, fine), of(path, None, broken));
        assert_eq!(good.status, "ok", "{path} {fine}: {good:?}");
        assert_eq!(bad.status, "error", "{path} {broken}: {bad:?}");
        // Windows writes the same languages.
        assert_eq!(status(path, &fine.replace("\r\n", "\n").replace('\n', "\r\n")), "ok", "{path} {fine} with CRLF");
    }
}

#[test]
fn what_cannot_be_told_is_skipped_with_the_reason() {
    for (path, text, why) in [
        ("a.txt", "(", "syntax of .txt files"),
        ("Makefile", "(", "language is not known"),
        ("a.json", " \n", "empty"),
        ("templates/a.yaml", "{{- if .Values.on }}\nkind: X\n{{- end }}\n", "template"),
        ("a.yml", "a: {{ b }}-{{ c }}\n", "template"),
        ("a.json", "{\"a\": {{ b | tojson }}}", "template"),
        ("a.toml", "a = {% if b %}1{% endif %}", "template"),
        ("a.py", "{% if a %}\nx = 1\n{% endif %}", "template"),
        ("a.js", "// @flow\nconst a: number = 1;", "Flow"),
        ("a.toml", &format!("a = {}1{}", "[".repeat(400), "]".repeat(400)), "too deeply"),
        ("a.yaml", &format!("a: {}1{}", "[".repeat(400), "]".repeat(400)), "too deeply"),
        ("a.ts", &"f<".repeat(20_000), "too deeply"),
        ("a.py", &" ".repeat(600_000), "more than 512 KiB"),
        ("a.json", &" ".repeat(5_000_000), "more than 4096 KiB"),
    ] {
        let report = of(path, None, text);
        assert_eq!(report.status, "skipped", "{path}: {report:?}");
        assert!(report.message.as_ref().is_some_and(|said| said.contains(why)), "{path}: {report:?}");
    }
    assert_eq!(report(Path::new("a.py"), None, b"\x7fELF\0(", false).status, "skipped");
}

#[test]
fn a_problem_has_its_place_its_words_and_its_line() {
    for (path, text, output) in [
        ("a.json", "{\n  \"a\": NaN\n}", "2:8: `NaN` is no JSON value | \"a\": NaN"),
        ("a.json", "{\"a\": 1,}", "1:9: a comma before `}` | {\"a\": 1,}"),
        ("a.json", "{\"a\":", "1:5: EOF while parsing a value | {\"a\":"),
        ("a.jsonl", "{}\n{]\n", "2:2: key must be a string | {]"),
        ("a.toml", "\"é\" = 1\nb = \n", "2:4: string values must be quoted, expected literal string | b ="),
        ("a.py", "é = 1\nx = (1,\ndef f(): pass\n", "2:8: Expected `)`, found newline | x = (1,"),
        ("a.go", "package a\n\nfunc F() {\n\tg(\n}\n", "4:3: `(` is never closed"),
    ] {
        let report = of(path, None, text);
        let said = report.output.unwrap_or_default();
        assert!(said.starts_with(output), "{path} {text}: {said}");
    }
}

#[test]
fn only_what_is_new_is_news() {
    let old = "def f(:\n    pass\n";
    let same = of("a.py", Some(old), &format!("import os\n\n{old}"));
    assert_eq!((same.status, same.is_news()), ("error", false));
    assert!(same.message.unwrap().contains("before this edit"));

    let more = of("a.py", Some(old), &format!("{old}x = (]\n"));
    assert_eq!((more.status, more.line), ("error", Some(3)));
    assert!(more.output.unwrap().starts_with("3:") && more.message.unwrap().contains("left out"));

    let repaired = of("a.py", Some(old), "def f():\n    pass\n");
    assert_eq!((repaired.status, repaired.beside("1 line")), ("ok", "1 line".into()));
    assert_eq!(of("a.py", Some("x = 1\n"), "x = (\n").beside("line 1"), "line 1 · syntax error in line 1");
    assert_eq!(of("a.py", Some("a\0b"), "x = (\n").line, Some(1), "what was no text was not broken");
}

#[test]
fn comments_in_json_are_fine_where_they_may_be_and_said_where_nobody_knows() {
    let unknown = of("conf/app.json", None, "{\n  // why\n  \"a\": \"http://b\", /* c */\n}");
    assert_eq!(unknown.status, "ok");
    assert!(unknown.message.unwrap().contains("line 2"));
    assert_eq!(of("settings.json", None, "{// a\n}").message, None);
    for broken in ["{\"a\": 1 /* b }", "/ {}", "{\"a\": \"// b}", "{,}", "{\"a\": 1}, // x"] {
        assert_eq!(status("settings.json", broken), "error", "{broken}");
        assert_eq!(status("a.json", broken), "error", "{broken}");
    }
}

#[test]
fn text_in_another_language_is_a_short_report() {
    let prose = "It was the best of times, it was the worst of times; nothing ((closed.\n".repeat(5_000);
    for path in ["a.py", "a.ts", "a.rs", "a.go", "a.java", "a.json", "a.jsonl", "a.toml", "a.yaml"] {
        let began = std::time::Instant::now();
        let report = of(path, Some(&prose), &format!("{prose} and more"));
        assert!(report.told().to_string().len() < 2_000, "{path}");
        assert!(began.elapsed().as_secs() < 20, "{path}: {:?}", began.elapsed());
    }
}

#[test]
fn a_quiet_report_quotes_nothing() {
    let report = report(Path::new("a.py"), None, b"token = ('hunter2\n", true);
    assert!(report.output.as_ref().is_some_and(|said| said.contains("1:") && !said.contains("hunter2")), "{report:?}");
}

#[test]
fn other_encodings_are_read() {
    let utf16 = |text: &str| [b"\xff\xfe".to_vec(), text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat();
    let of = |content: &[u8]| report(Path::new("a.json"), None, content, false).status;
    assert_eq!(of(&utf16("{\"ä\": 1}")), "ok");
    assert_eq!(of(&utf16("{\"ä\": }")), "error");
    assert_eq!(of(b"{\"caf\xe9\": \"na\xefve\"}"), "ok");
}

#[test]
fn no_depth_is_too_deep_for_the_stack() {
    let size = 40_000;
    for (path, units) in [
        (
            "a.py",
            &[
                "(",
                "[",
                "{",
                "-",
                "not ",
                "lambda:",
                "a if b else ",
                "f'{",
                "if a:\n ",
                "a=",
                "with(",
                "a[",
                "(a:=",
                "*",
                "await ",
                "match a:\n case (",
            ][..],
        ),
        (
            "a.tsx",
            &[
                "(",
                "[",
                "{",
                "!",
                "a=>",
                "a?b:",
                "<a>",
                "<>{",
                "`${",
                "({a:",
                "if(a)",
                "else ",
                "new ",
                "({[",
                "class a extends ",
                "x={get a(){",
            ],
        ),
        ("a.ts", &["let a:(", "let a:{a:", "<T>(", "async(", "@a(", "a?.(", "type A=B extends C?", "/(?:", "f<("]),
        (
            "a.rs",
            &["fn f(){", "mod a{", "static A:&", "type A=(", "use a::{", "#[", "impl a{", "fn f(){(", "const A:i32=-"],
        ),
        ("a.go", &["package a;func f(){", "(", "{", "[]"]),
        ("a.java", &["class a{", "(", "class a{int b=(", "@a("]),
        ("a.json", &["[", "{\"a\":"]),
        ("a.toml", &["a=[", "[", "a={a="]),
        ("a.yaml", &["[", "{", "- ", "? ", "a: ", "&a "]),
    ] {
        for unit in units {
            // What has too many brackets is not parsed at all; what has as many as are allowed is.
            let brackets = unit.chars().filter(|letter| "([{<".contains(*letter)).count();
            let allowed = 499_usize.checked_div(brackets).unwrap_or(size);
            for times in [size / unit.len(), allowed.min(size / unit.len())] {
                assert_ne!(status(path, &unit.repeat(times)), "", "{path} {unit}");
            }
        }
        let nested: Vec<String> = (0..400).map(|depth| format!("{}if a:\n", " ".repeat(depth))).collect();
        let nested = nested.concat();
        assert_ne!(status(path, &nested), "", "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_written_the_report_is_short(
        old in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300)),
        pieces in proptest::collection::vec("(\\PC{0,20}|[\\[\\](){}<>\"'`,:;=\\n\\t #&*!?-]{1,8}|fn |def |class |let |if |\\{\\{ x \\}\\}|[a-z]{1,200}|\\x00|\\xff)", 0..60),
        suffix in proptest::sample::select(vec!["json", "jsonc", "jsonl", "yaml", "toml", "py", "js", "tsx", "ts", "rs", "go", "java", "txt"]),
        quiet: bool,
    ) {
        let path = format!("a.{suffix}");
        let new = pieces.concat();
        let report = report(Path::new(&path), old.as_deref(), new.as_bytes(), quiet);
        prop_assert!(["ok", "error", "skipped"].contains(&report.status));
        prop_assert_eq!(report.output.is_some(), report.status == "error");
        prop_assert!(report.told().to_string().len() < 8_000, "{}", report.told());
        prop_assert!(!report.is_news() || report.status == "error");
    }
}
