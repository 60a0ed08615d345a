//! `search_files`, through real dispatch and the real guard: on our own disk, and on one that is not ours, with and
//! without ripgrep there. What must be the same everywhere is asked everywhere.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test says what it skips")]

#[path = "search/session.rs"]
mod session;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use session::{Place, Session};

/// Every place that this machine can be.
fn everywhere() -> Vec<Place> {
    let mut places = vec![Place::Here, Place::WithoutRipgrep, Place::WithoutInput];
    if Command::new("rg").arg("--version").output().is_ok() {
        places.push(Place::Elsewhere);
    } else {
        println!("skipped with ripgrep on another machine: it is not installed");
    }
    places
}

/// A tree with what most questions need.
fn tree(session: &Session) {
    let home = &session.home;
    home.write("src/a.rs", "fn one() {}\n// needle here\nfn two() {}\n");
    home.write("src/deep/b.rs", "needle\n");
    home.write("docs/a.md", "Needle in the docs\n");
    home.write(".gitignore", "ignored/\n*.log\n!keep.log\n");
    home.write("ignored/x.txt", "needle\n");
    home.write("app.log", "needle\n");
    home.write("keep.log", "nothing\n");
    home.write(".hidden/x.txt", "needle\n");
    home.write(".git/config", "needle\n");
    home.write("b.bin", b"\0\x01needle\0");
}

fn paths(answer: &Value) -> Vec<String> {
    answer["files"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect()
}

fn lines(answer: &Value) -> Vec<(String, u64, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let matches = answer["matches"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let line = |row: &Value| {
        (text(&row["path"]), row["line"].as_u64().unwrap(), text(&row["content"]), row["context"] == true)
    };
    matches.iter().map(line).collect()
}

fn row(path: &str, line: u64, content: &str) -> (String, u64, String, bool) {
    (path.into(), line, content.into(), false)
}

#[tokio::test]
async fn lines_are_found_in_order_and_the_rules_hold() {
    for place in everywhere() {
        let session = Session::new(place);
        tree(&session);
        let found = session.search(json!({"pattern": "needle"})).await;
        assert_eq!(
            lines(&found),
            [row("src/a.rs", 2, "// needle here"), row("src/deep/b.rs", 1, "needle")],
            "{place:?}"
        );
        assert_eq!((&found["total_count"], &found["truncated"]), (&json!(2), &json!(false)));
        assert_eq!(found["binary_matches"], json!(["b.bin"]), "{place:?}");
        let engine = found["engine"].as_str();
        match place {
            Place::Here => assert_eq!(engine, None),
            Place::Elsewhere => assert_eq!(engine, Some("rg")),
            Place::WithoutRipgrep | Place::WithoutInput => assert!(engine.unwrap().starts_with("grep"), "{found}"),
        }

        let hidden =
            session.search(json!({"pattern": "needle", "include_hidden": true, "output_mode": "files_only"})).await;
        assert_eq!(paths(&hidden), [".hidden/x.txt", "src/a.rs", "src/deep/b.rs"], "{place:?}");
        let ignored =
            session.search(json!({"pattern": "needle", "include_ignored": true, "output_mode": "files_only"})).await;
        assert_eq!(paths(&ignored), ["app.log", "ignored/x.txt", "src/a.rs", "src/deep/b.rs"], "{place:?}");
        let all = json!({"pattern": "needle", "include_ignored": true, "include_hidden": true, "output_mode": "count"});
        let counts = session.search(all).await;
        assert_eq!((&counts["total_count"], &counts["total_files"]), (&json!(6), &json!(6)), "{place:?} {counts}");
        assert_eq!(counts["counts"][".git/config"], 1);
        session.close().await;
    }
}

#[tokio::test]
async fn a_place_that_is_named_is_searched_whatever_the_rules_say() {
    for place in everywhere() {
        let session = Session::new(place);
        tree(&session);
        for (path, file) in [
            ("ignored", "ignored/x.txt"),
            ("ignored/x.txt", "ignored/x.txt"),
            (".hidden", ".hidden/x.txt"),
            (".hidden/x.txt", ".hidden/x.txt"),
            ("app.log", "app.log"),
            (".git", ".git/config"),
        ] {
            let found = session.search(json!({"pattern": "needle", "path": path})).await;
            assert_eq!(lines(&found), [row(file, 1, "needle")], "{place:?} {path}");
        }
        // A rule from above still holds where it leaves something.
        session.home.write("src/build.log", "needle\n");
        let found = session.search(json!({"pattern": "needle", "path": "src", "output_mode": "files_only"})).await;
        assert_eq!(paths(&found), ["src/a.rs", "src/deep/b.rs"], "{place:?}");
        session.close().await;
    }
}

#[tokio::test]
async fn a_pattern_is_read_as_asked_for() {
    for place in everywhere() {
        let session = Session::new(place);
        session.home.write("a.txt", "a.c\nabc\nABC\r\n42 café\n(x)\n");
        let table = [
            (json!({"pattern": "a.c"}), vec![1, 2]),
            (json!({"pattern": "a.c", "ignore_case": true}), vec![1, 2, 3]),
            (json!({"pattern": "a.c", "literal": true}), vec![1]),
            (json!({"pattern": "A.C", "literal": true, "ignore_case": true}), vec![1]),
            (json!({"pattern": "(x", "literal": true}), vec![5]),
            (json!({"pattern": "ABC$"}), vec![3]),
            (json!({"pattern": "^abc$"}), vec![2]),
            (json!({"pattern": "b|x"}), vec![2, 5]),
            (json!({"pattern": r"\d+ caf\w$"}), vec![4]),
            (json!({"pattern": "-v"}), vec![]),
            (json!({"pattern": "--files"}), vec![]),
            (json!({"pattern": "it's"}), vec![]),
        ];
        for (arguments, expected) in table {
            let found = session.search(arguments.clone()).await;
            let numbers: Vec<u64> = lines(&found).into_iter().map(|row| row.1).collect();
            assert_eq!(numbers, expected, "{place:?} {arguments} {found}");
        }
        session.close().await;
    }
}

#[tokio::test]
async fn a_match_can_go_across_lines() {
    for place in [Place::Here, Place::Elsewhere] {
        if !everywhere().contains(&place) {
            continue;
        }
        let session = Session::new(place);
        session.home.write("a.txt", "x\nfoo\nbar\nfoo\nbar\ny\n");
        let found = session.search(json!({"pattern": "foo\\nbar"})).await;
        assert_eq!(found["total_count"], 2, "{place:?} {found}");
        assert_eq!(found["matches"][0], json!({"path": "a.txt", "line": 2, "content": "foo\nbar", "last_line": 3}));
        assert!(found["hint"].as_str().unwrap().contains("across lines"), "{found}");
        let found = session.search(json!({"pattern": "(?s)x.*y", "multiline": true})).await;
        assert_eq!((&found["total_count"], &found["matches"][0]["last_line"]), (&json!(1), &json!(6)), "{place:?}");
        let second = session.search(json!({"pattern": "foo\nbar", "offset": 1, "context": 1})).await;
        let numbers: Vec<u64> = lines(&second).into_iter().map(|row| row.1).collect();
        assert_eq!(numbers, [4, 6], "{place:?} {second}");
        session.close().await;
    }
    let session = Session::new(Place::WithoutRipgrep);
    session.home.write("a.txt", "x\n");
    let refused = session.search(json!({"pattern": "a\u{0}b"})).await;
    assert!(refused["error"].as_str().unwrap().contains("a zero byte"), "{refused}");
    let refused = session.search(json!({"pattern": "a\\nb"})).await;
    assert!(refused["error"].as_str().unwrap().contains("across lines needs ripgrep"), "{refused}");
    session.close().await;
}

#[tokio::test]
async fn context_is_marked_and_not_counted() {
    for place in everywhere() {
        let session = Session::new(place);
        session.home.write("x-12-y/a:3:b.txt", "one\nneedle 1\ntwo\nneedle 2\nthree\nfour\n");
        let found = session.search(json!({"pattern": "needle", "context": 1})).await;
        let expected = "x-12-y/a:3:b.txt\n  1- one\n  2: needle 1\n  3- two\n  4: needle 2\n  5- three\n";
        assert_eq!((&found["total_count"], found["matches_text"].as_str()), (&json!(2), Some(expected)), "{place:?}");
        let second = session.search(json!({"pattern": "needle", "context": 1, "offset": 1})).await;
        let path = "x-12-y/a:3:b.txt";
        let context = |line, text: &str| (path.to_owned(), line, text.to_owned(), true);
        assert_eq!(lines(&second), [context(3, "two"), row(path, 4, "needle 2"), context(5, "three")], "{place:?}");
        session.close().await;
    }
}

#[tokio::test]
async fn pages_say_where_they_end() {
    for place in everywhere() {
        let session = Session::new(place);
        let text = "hit 0\nhit 1\nhit 2\nhit 3\nhit 4\nhit 5\nhit 6\nhit 7\nhit 8\nhit 9\n";
        session.home.write("a.txt", text);
        session.home.write("b.txt", text);
        let page = session.search(json!({"pattern": "hit", "limit": 3, "offset": 8})).await;
        assert_eq!(lines(&page), [row("a.txt", 9, "hit 8"), row("a.txt", 10, "hit 9"), row("b.txt", 1, "hit 0")]);
        assert_eq!(
            (&page["total_count"], &page["truncated"], &page["next_offset"]),
            (&json!(20), &json!(true), &json!(11))
        );
        let end = session.search(json!({"pattern": "hit", "limit": 3, "offset": 18})).await;
        assert_eq!((end["truncated"].as_bool(), end.get("next_offset")), (Some(false), None), "{place:?}");
        let past = session.search(json!({"pattern": "hit", "offset": 99})).await;
        assert_eq!((&past["total_count"], &past["truncated"]), (&json!(20), &json!(false)));
        assert!(past["hint"].as_str().unwrap().contains("past the end: 20 in all"), "{past}");
        let files = session.search(json!({"pattern": "hit", "limit": 1, "output_mode": "files_only"})).await;
        assert_eq!((&files["total_count"], &files["truncated"]), (&json!(2), &json!(true)), "{place:?}");
        let counts = session.search(json!({"pattern": "hit", "limit": 1, "offset": 1, "output_mode": "count"})).await;
        assert_eq!((&counts["total_count"], &counts["counts"]), (&json!(20), &json!({"b.txt": 10})), "{place:?}");
        for odd in [json!({"pattern": "hit", "limit": 0}), json!({"pattern": "hit", "limit": -3, "offset": -1})] {
            assert_eq!(lines(&session.search(odd).await), [row("a.txt", 1, "hit 0")], "{place:?}");
        }
        session.close().await;
    }
}

#[tokio::test]
async fn names_are_found_by_glob_and_by_part_latest_first() {
    for place in everywhere() {
        let session = Session::new(place);
        let year = |n: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + n * 31_536_000);
        for (n, name) in
            ["docs/a.md", "docs/deep/b.md", "src/test_util.py", "src/util.py", "a[1].txt"].iter().enumerate()
        {
            let path = session.home.write(name, "x");
            fs::File::options().write(true).open(path).unwrap().set_modified(year(n as u64)).unwrap();
        }
        let table = [
            ("*.md", vec!["docs/deep/b.md", "docs/a.md"]),
            ("docs/*.md", vec!["docs/a.md"]),
            ("docs/**/*.md", vec!["docs/deep/b.md", "docs/a.md"]),
            ("util", vec!["src/util.py", "src/test_util.py"]),
            ("*.{py,txt}", vec!["a[1].txt", "src/util.py", "src/test_util.py"]),
            ("a[1].txt", vec!["a[1].txt"]),
            ("UTIL", vec![]),
        ];
        for (pattern, expected) in table {
            let found = session.search(json!({"pattern": pattern, "target": "files"})).await;
            assert_eq!(paths(&found), expected, "{place:?} {pattern}");
            assert_eq!(found["total_count"], expected.len());
        }
        let found =
            session.search(json!({"pattern": "UTIL", "target": "files", "ignore_case": true, "limit": 1})).await;
        assert_eq!((paths(&found), &found["total_count"]), (vec!["src/util.py".into()], &json!(2)), "{place:?}");
        let found = session.search(json!({"pattern": "x", "file_glob": "!*.md", "output_mode": "files_only"})).await;
        assert_eq!(paths(&found), ["a[1].txt", "src/test_util.py", "src/util.py"], "{place:?}");
        let found = session.search(json!({"pattern": "x", "file_glob": "docs/*", "output_mode": "files_only"})).await;
        assert_eq!(paths(&found), ["docs/a.md"], "{place:?}");
        session.close().await;
    }
}

#[tokio::test]
async fn odd_names_survive() {
    for place in everywhere() {
        let session = Session::new(place);
        let latin = Path::new(std::ffi::OsStr::from_bytes(b"caf\xe9.txt")).to_path_buf();
        for name in ["with space.txt", "line\nbreak.txt", "a:12:b.txt", "-v", "$(touch pwned).txt", " lead", "q'uote"] {
            session.home.write(name, "needle\n");
        }
        session.home.write(latin, "needle\n");
        let found = session.search(json!({"pattern": "needle"})).await;
        let found: Vec<String> = lines(&found).into_iter().map(|row| row.0).collect();
        let expected = [
            " lead",
            "$(touch pwned).txt",
            "-v",
            "a:12:b.txt",
            "$'caf\\xe9.txt'",
            "line\nbreak.txt",
            "q'uote",
            "with space.txt",
        ];
        assert_eq!(found, expected, "{place:?}");
        let mut names = paths(&session.search(json!({"pattern": "*", "target": "files"})).await);
        names.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected, "{place:?}");
        assert!(!session.home.work().join("pwned").exists());
        session.close().await;
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_are_found_and_declared() {
    for place in everywhere() {
        let session = Session::new(place);
        session.home.write("l.txt", b"caf\xe8 needle\n");
        let found = session.search(json!({"pattern": "needle"})).await;
        assert_eq!(lines(&found), [row("l.txt", 1, "caf\u{fffd} needle")], "{place:?} {found}");
        assert!(found["lossy_lines"].as_str().unwrap().contains("1 line is not UTF-8"), "{found}");
        session.close().await;
    }
    let session = Session::new(Place::Here);
    let utf16 = |text: &str| -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    session.home.write("w.txt", utf16("first\r\nneedle é\r\n"));
    let found = session.search(json!({"pattern": "needle .$"})).await;
    assert_eq!((lines(&found), found.get("lossy_lines")), (vec![row("w.txt", 2, "needle é")], None));
    session.close().await;
}

#[tokio::test]
async fn nothing_found_says_what_was_not_looked_at() {
    for place in everywhere() {
        let session = Session::new(place);
        tree(&session);
        session.home.write(".env", "TOKEN=needle\n");
        let found = session.search(json!({"pattern": "absent"})).await;
        assert_eq!(found["skipped"], json!({"ignored": 2, "hidden": 3}), "{place:?} {found}");
        let hint = found["hint"].as_str().unwrap();
        for part in ["5 files searched", "2 ignored (include_ignored", "3 hidden (include_hidden"] {
            assert!(hint.contains(part), "{place:?} {hint}");
        }
        let found = session.search(json!({"pattern": "src/(a|b).rs", "target": "files"})).await;
        assert!(found["hint"].as_str().unwrap().contains("looks like a regular expression"), "{found}");
        session.close().await;
    }
}

#[tokio::test]
async fn secrets_do_not_leak_not_even_by_their_number() {
    for place in everywhere() {
        let session = Session::new(place);
        session.home.write(".env", "TOKEN=verysecret\n");
        session.home.write("deploy/id_rsa", "verysecret\n");
        session.home.write("a.txt", "no secret\n");
        let mut answers = Vec::new();
        for pattern in ["verysecret", "absent"] {
            for mode in ["content", "files_only", "count"] {
                let all = json!({"pattern": pattern, "include_hidden": true, "output_mode": mode});
                let found = session.search(all).await;
                assert_eq!(
                    (&found["total_count"], &found["_omitted"]),
                    (&json!(0), &json!({"protected_files": 2})),
                    "{place:?}"
                );
                answers.push(found.to_string());
            }
        }
        let (found, absent) = answers.split_at(3);
        assert_eq!(found, absent, "the answers differ by what is in the secret");
        for path in [".env", "deploy/id_rsa"] {
            let refused = session.search(json!({"pattern": "verysecret", "path": path})).await;
            assert!(refused["error"].as_str().unwrap().contains("Access denied"), "{place:?} {refused}");
        }
        symlink(session.home.work().join(".env"), session.home.work().join("link.txt")).unwrap();
        let refused = session.search(json!({"pattern": "verysecret", "path": "link.txt"})).await;
        assert!(refused["error"].as_str().unwrap().contains("Access denied"), "{place:?} {refused}");
        // That they are there is no secret.
        let names = session.search(json!({"pattern": "id_rsa", "target": "files"})).await;
        assert_eq!(paths(&names), ["deploy/id_rsa"], "{place:?}");
        session.close().await;
    }
}

#[tokio::test]
async fn what_is_no_regular_file_is_never_opened_and_links_lead_nowhere() {
    for place in everywhere() {
        let session = Session::new(place);
        let work = session.home.work();
        session.home.write("a.txt", "needle\n");
        session.home.write("../outside/o.txt", "needle\n");
        nix::unistd::mkfifo(&work.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(work.join("socket")).unwrap();
        symlink(&work, work.join("loop")).unwrap();
        symlink("itself", work.join("itself")).unwrap();
        symlink("../outside", work.join("away")).unwrap();
        symlink("a.txt", work.join("again.txt")).unwrap();
        fs::hard_link(work.join("a.txt"), work.join("hard.txt")).unwrap();
        let began = Instant::now();
        let found = session.search(json!({"pattern": "needle", "output_mode": "files_only"})).await;
        assert_eq!(paths(&found), ["a.txt", "hard.txt"], "{place:?}");
        assert!(began.elapsed() < Duration::from_secs(10));
        for (path, why) in [("pipe", "a named pipe"), ("socket", "a socket"), ("itself", "")] {
            let refused = session.search(json!({"pattern": "x", "path": path})).await;
            assert!(refused["error"].as_str().unwrap().contains(why), "{place:?} {refused}");
        }
        // A link that is named is followed.
        let found = session.search(json!({"pattern": "needle", "path": "away"})).await;
        assert_eq!(lines(&found), [row("away/o.txt", 1, "needle")], "{place:?}");
        session.close().await;
    }
}

#[tokio::test]
async fn what_is_wrong_is_one_line() {
    for place in everywhere() {
        let session = Session::new(place);
        session.home.write("notes.txt", "x\n");
        let table = [
            (json!({"pattern": "(unclosed"}), "unclosed group at character 1"),
            (json!({"pattern": "a(?<=b)"}), "no look-around"),
            (json!({"pattern": r"(a)\1"}), "no backreferences"),
            (json!({"pattern": ""}), "the pattern is empty"),
            (json!({"pattern": "x", "path": "note.txt"}), "notes.txt"),
            (json!({"pattern": "x", "file_glob": "{a"}), "not a glob"),
            (json!({"pattern": "[", "target": "files"}), "not a glob"),
        ];
        for (arguments, part) in table {
            let refused = session.search(arguments).await;
            let error = refused["error"].as_str().unwrap();
            assert!(error.contains(part) && !error.contains('\n'), "{place:?} {error}");
            assert_eq!(refused["total_count"], 0);
        }
        session.close().await;
    }
}

#[tokio::test]
async fn long_lines_show_the_match_and_every_answer_is_one_document_that_fits() {
    for place in everywhere() {
        let session = Session::new(place).with_room(8_000);
        let long = if place == Place::Here { 100_000 } else { 2_000 };
        let line = format!("{}needle{}\n", "a\u{1}".repeat(long), "b".repeat(long));
        session.home.write("long.txt", line.repeat(20));
        let (mut offset, mut seen) = (0, 0);
        for _ in 0..30 {
            let text = session.text(json!({"pattern": "needle", "limit": 1_000, "offset": offset, "context": 2})).await;
            assert!(text.chars().count() <= 8_000, "{} characters", text.chars().count());
            let page: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(page["total_count"], 20, "{place:?}");
            let shown = text.matches("needle").count();
            assert!(shown > 0, "{text}");
            seen += shown;
            let Some(next) = page["next_offset"].as_u64() else { break };
            assert_eq!(page["limit_reason"], "result_size", "{place:?}");
            offset = next;
        }
        assert_eq!(seen, 20, "{place:?}");
        session.close().await;
    }
}

#[tokio::test]
async fn a_page_without_an_end_is_cut_where_it_is_full() {
    let session = Session::new(Place::Here).with_room(10_000);
    session.home.write("a.txt", "x\n".repeat(200_000));
    session.home.write("b.txt", format!("{}\n", "y ".repeat(400)).repeat(50_000));
    for (pattern, context) in [("x", 0), ("x", 50), ("y", 0), ("y", 50), ("^", 0)] {
        let arguments = json!({"pattern": pattern, "limit": 1_000_000_000, "context": context});
        let text = session.text(arguments.clone()).await;
        let page: Value = serde_json::from_str(&text).unwrap();
        assert!(text.chars().count() <= 10_000, "{arguments}");
        assert_eq!((&page["limit_reason"], &page["truncated"]), (&json!("result_size"), &json!(true)), "{arguments}");
        assert!(page["next_offset"].as_u64().unwrap() > 0, "{arguments}");
    }
    let files = session.search(json!({"pattern": "*", "target": "files", "limit": 1_000_000_000})).await;
    assert_eq!((&files["total_count"], &files["truncated"]), (&json!(2), &json!(false)));
    session.close().await;
}

#[tokio::test]
async fn a_search_that_is_stopped_says_so() {
    let session = Session::new(Place::Here);
    session.home.write("a.txt", "needle\n");
    let cancel = session.cancel.clone();
    session.home.write("big.txt", session::slow_text());
    let began = Instant::now();
    let stopper = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let answer = session.search(json!({"pattern": session::SLOW})).await;
    stopper.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(
        (&answer["limit_reason"], &answer["total_is_at_least"]),
        (&json!("cancelled"), &json!(true)),
        "{answer}"
    );
    session.close().await;
}

#[tokio::test]
async fn ten_thousand_files_and_a_common_word_are_answered_at_once_and_say_at_least() {
    let session = Session::new(Place::Here);
    for folder in 0..100 {
        let path = session.home.work().join(format!("d{folder:03}"));
        fs::create_dir(&path).unwrap();
        for file in 0..100 {
            fs::write(path.join(format!("f{file:02}.txt")), "a common word\n").unwrap();
        }
    }
    let page = session.search(json!({"pattern": "common"})).await;
    assert_eq!(
        (&page["total_is_at_least"], &page["next_offset"], &page["truncated"]),
        (&json!(true), &json!(50), &json!(true))
    );
    assert_eq!(page["total_count"], 1_050, "50 files fill the page, and a thousand more are counted");
    assert!(page["hint"].as_str().unwrap().contains("of at least 1,050"), "{page}");
    assert_eq!(page, session.search(json!({"pattern": "common"})).await, "two runs differ");
    let last = session.search(json!({"pattern": "common", "offset": 9_990})).await;
    assert_eq!((&last["total_count"], last.get("total_is_at_least")), (&json!(10_000), None));
    let counts = session.search(json!({"pattern": "common", "output_mode": "count", "limit": 1})).await;
    assert_eq!((&counts["total_count"], counts.get("total_is_at_least")), (&json!(10_000), None));
    let rare = session.search(json!({"pattern": "uncommon"})).await;
    assert_eq!((&rare["total_count"], rare.get("total_is_at_least")), (&json!(0), None));
    session.close().await;
}

#[tokio::test]
async fn patterns_that_ruin_other_engines_are_ordinary_here() {
    let session = Session::new(Place::Here);
    session.home.write("a.txt", format!("{}!\n", "a".repeat(200_000)));
    let began = Instant::now();
    for pattern in ["(a+)+$", "(a|aa)+$", "(a|a?)+b", "([a-z]+)*[0-9]"] {
        session.search(json!({"pattern": pattern})).await;
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let refused = session.search(json!({"pattern": "(a{1000}){1000}"})).await;
    assert!(refused["error"].as_str().is_some(), "{refused}");
    session.close().await;
}
