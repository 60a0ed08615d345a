//! What users of agents reported about edits (`cases/reports.jsonl`, area 02), through real dispatch, on a real disk.
#![allow(clippy::unwrap_used)]

#[path = "search/session.rs"]
mod session;

use std::os::unix::fs::MetadataExt as _;

use hermes_testkit::reports;
use serde_json::{Value, json};

use session::{Place, Session};

#[test]
fn no_row_is_forgotten() {
    let rows = reports::rows(|id| id.starts_with("02-patch-"));
    assert!(!rows.is_empty());
    assert_eq!(reports::forgotten(&rows), [] as [&str; 0], "neither tested nor deferred");
}

/// `line 1`, `line 2`, …, each with the same rest.
fn numbered(lines: std::ops::Range<usize>, rest: &str) -> String {
    let lines: Vec<String> = lines.map(|line| format!("line {line}{rest}")).collect();
    lines.concat()
}

/// A file `f` and one edit of it.
async fn edited(before: impl AsRef<[u8]>, old: &str, new: &str) -> (Value, Vec<u8>) {
    let session = Session::new(Place::Here);
    session.home.write("f", before);
    let answer = session.call("patch", json!({"path": "f", "old_string": old, "new_string": new})).await;
    let after = std::fs::read(session.home.work().join("f")).unwrap();
    session.close().await;
    (answer, after)
}

/// The same for a text that is replaced, found in the way that is named.
#[track_caller]
fn assert_edited((answer, after): &(Value, Vec<u8>), strategy: &str, expected: impl AsRef<[u8]>) {
    assert_eq!((&answer["success"], &answer["strategy"]), (&json!(true), &json!(strategy)), "{answer}");
    assert_eq!(String::from_utf8_lossy(after), String::from_utf8_lossy(expected.as_ref()));
    assert_eq!(after, expected.as_ref());
}

/// The error of an edit that was not made.
#[track_caller]
fn assert_refused<'a>((answer, after): &'a (Value, Vec<u8>), before: &str) -> &'a str {
    assert_eq!((answer["success"].as_bool(), after.as_slice()), (Some(false), before.as_bytes()), "{answer}");
    answer["error"].as_str().unwrap()
}

#[tokio::test]
async fn patch_02_lines_that_differ_in_the_middle_are_another_text() {
    let before = "begin()\nstep(2)\nend()\n";
    let refused = edited(before, "begin()\nstep(9)\nend()", "begin()\nstep(10)\nend()").await;
    assert!(assert_refused(&refused, before).contains("not found in f"), "{}", refused.0);
    assert!(refused.0["nearest"].as_str().unwrap().contains("step(2)"), "{}", refused.0);

    let (made, _) = edited(before, "step(2)", "step(3)").await;
    assert_eq!((&made["strategy"], &made["lines"]), (&json!("exact"), &json!([2])));
    assert!(made["diff"].as_str().unwrap().contains("-step(2)\n+step(3)"), "{made}");
    let loose = edited("    a()\n    b()\n", "a()\nb()", "a()\nc()").await;
    assert_edited(&loose, "indentation", "    a()\n    c()\n");
}

#[tokio::test]
async fn patch_04_blanks_behind_a_place_stay_where_they_are() {
    let before = "let  a =  1 ; let b = 2;";
    let refused = edited(before, "let a = 1", "let a = 3").await;
    assert!(assert_refused(&refused, before).contains("copy it exactly"), "{}", refused.0);
    assert_edited(&edited(before, "let  a =  1", "let a = 3").await, "exact", "let a = 3 ; let b = 2;");
}

#[tokio::test]
async fn patch_05_an_edit_that_is_sent_again_is_not_made_on_top_of_itself() {
    let session = Session::new(Place::Here);
    session.home.write("f", "# A\n## Notes\n");
    let edit = json!({"path": "f", "old_string": "## Notes\n", "new_string": "## Notes\n- item\n"});
    let first = session.call("patch", edit.clone()).await;
    assert_eq!((&first["success"], &first["status"]), (&json!(true), &Value::Null), "{first}");
    for (again, says_read) in [(1, false), (2, true)] {
        let answer = session.call("patch", edit.clone()).await;
        assert_eq!(answer["status"], "already_applied", "{again}: {answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("nothing was changed") && message.contains("line 2"), "{message}");
        assert_eq!(message.contains("read the file again"), says_read, "{message}");
        assert_eq!(session.home.read("f"), "# A\n## Notes\n- item\n");
    }
    // Who has looked at the file again means it.
    session.call("read_file", json!({"path": "f"})).await;
    assert_eq!(session.call("patch", edit).await["status"], Value::Null);
    assert_eq!(session.home.read("f"), "# A\n## Notes\n- item\n- item\n");

    // The same words elsewhere, or another edit, are no repetition.
    session.home.write("g", "}\n}\n");
    for (old, new) in [("}\n}\n", "}\n}\n}\n"), ("}\n}\n}\n", "}\n}\n}\n}\n")] {
        let answer = session.call("patch", json!({"path": "g", "old_string": old, "new_string": new})).await;
        assert_eq!(answer["status"], Value::Null, "{answer}");
    }
    assert_eq!(session.home.read("g"), "}\n}\n}\n}\n");
    session.close().await;
}

#[tokio::test]
async fn patch_08_look_alikes_are_found_and_what_is_not_touched_keeps_its_own_characters() {
    let line = "top\u{2011}level\u{a0}key \u{2014} \u{201c}value\u{201d}";
    for old in ["top-level key - \"value\"", "top-level key -- \"value\""] {
        assert_edited(&edited(line, old, "renamed").await, "typography", "renamed");
        let new = old.replace("value", "other");
        assert_edited(&edited(line, old, &new).await, "typography", line.replace("value", "other"));
    }
    let twice = format!("{line}\n{}\n", line.replace('\u{2011}', "-"));
    let refused = edited(&twice, "top-level key - \"value\"", "renamed").await;
    assert!(assert_refused(&refused, &twice).contains("found 2 times"), "{}", refused.0);
}

#[tokio::test]
async fn patch_09_what_stands_around_a_patch_does_not_matter_and_what_is_wrong_in_it_has_a_line() {
    let body = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch";
    let around = [
        body.to_owned(),
        body.replace('\n', "\r\n"),
        format!("\n\n{body}\n\n\n"),
        format!("{body}\""),
        format!("```diff\n{body}\n```\n"),
        format!("apply_patch <<'EOF'\n{body}\nEOF\n"),
        format!("cat <<\"PATCH\" | apply_patch\r\n{}\r\nPATCH\r\n", body.replace('\n', "\r\n")),
    ];
    for patch in around {
        let session = Session::new(Place::Here);
        session.home.write("f", "a\nx\n");
        let answer = session.call("patch", json!({"mode": "patch", "patch": patch})).await;
        assert_eq!(
            (&answer["success"], session.home.read("f").as_str()),
            (&json!(true), "b\nx\n"),
            "{patch:?} {answer}"
        );
        session.close().await;
    }
    let session = Session::new(Place::Here);
    let wrong = "*** Begin Patch\n*** Move File: a\n*** End Patch";
    let answer = session.call("patch", json!({"mode": "patch", "patch": wrong})).await;
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("line 2") && error.contains("*** Move File: OLD -> NEW"), "{error}");
    session.close().await;
}

#[tokio::test]
async fn patch_11_a_content_is_written_as_it_was_sent_and_a_nul_in_it_is_said() {
    let session = Session::new(Place::Here);
    let content = r#"char q = '\''; buf[n] = '\0'; log("skip\n");"#;
    let answer = session.call("write_file", json!({"path": "a.c", "content": content})).await;
    assert_eq!((session.home.read("a.c").as_str(), &answer["_warning"]), (content, &Value::Null));
    let answer = session.call("write_file", json!({"path": "b.c", "content": "a\nb\u{0}c\n"})).await;
    assert_eq!(session.home.read("b.c"), "a\nb\u{0}c\n");
    assert!(answer["_warning"].as_str().unwrap().contains("NUL byte in line 2"), "{answer}");
    let answer =
        session.call("patch", json!({"path": "a.c", "old_string": r"'\0'", "new_string": r"'\0' /* \' \n */"})).await;
    assert_eq!(session.home.read("a.c"), content.replace(r"'\0'", r"'\0' /* \' \n */"), "{answer}");
    session.close().await;
}

#[tokio::test]
async fn patch_12_the_content_of_a_new_file_is_never_repaired() {
    let session = Session::new(Place::Here);
    let content = r"\title{A} \newline \textbf{x}";
    session.call("write_file", json!({"path": "paper.tex", "content": content})).await;
    let patch = format!("*** Begin Patch\n*** Add File: other.tex\n+{content}\n*** End Patch");
    session.call("patch", json!({"mode": "patch", "patch": patch})).await;
    assert_eq!(
        (session.home.read("paper.tex").as_str(), session.home.read("other.tex")),
        (content, format!("{content}\n"))
    );
    session.close().await;
    // The old text is there as it was sent, so it means itself and so does the new one.
    assert_edited(&edited(content, r"\newline", r"\newpage\t").await, "exact", r"\title{A} \newpage\t \textbf{x}");
    // It is not there as it was sent, and once without one layer of escapes; then the new text loses the same layer.
    assert_edited(&edited("a\n\tb\n", r"a\n\tb", r"a\n\tc").await, "escapes", "a\n\tc\n");
}

#[tokio::test]
async fn patch_14_numbers_of_read_file_are_taken_away_and_never_written() {
    let before = "let a = 1;\nlet b = 2;\n";
    let old = "  12|let a = 1;\n  13|let b = 2;";
    let new = "  12|let a = 9;\nlet x = 0;\n  13|let b = 2;";
    assert_edited(&edited(before, old, new).await, "line_numbers", "let a = 9;\nlet x = 0;\nlet b = 2;\n");
    assert_edited(&edited(before, "1|let a = 1;", "1|let a = 9;").await, "line_numbers", "let a = 9;\nlet b = 2;\n");
    // A file that has them keeps them, and numbers that do not count up are text.
    assert_edited(&edited("1|a\n2|b\n", "1|a\n2|b", "1|c\n2|b").await, "exact", "1|c\n2|b\n");
    assert_refused(&edited(before, "3|let a = 1;\n9|let b = 2;", "x").await, before);
}

#[tokio::test]
async fn patch_15_only_the_line_that_changes_is_another_one() {
    let before = numbered(1..501, " has words\n");
    let after = before.replace("line 250 has", "line 250 had");
    assert_edited(&edited(&before, "line 250 has", "line 250 had").await, "exact", &after);
    assert_edited(&edited("a\r\nb\nc\r\nd", "b", "x").await, "exact", "a\r\nx\nc\r\nd");
    assert_edited(&edited("a\r\nb\nc\r\nd", "c\nd", "c\ne").await, "line_ends", "a\r\nb\nc\r\ne");
}

#[tokio::test]
async fn patch_16_a_byte_order_mark_is_hidden_and_written_once() {
    let session = Session::new(Place::Here);
    session.home.write("f", "\u{feff}use std;\n// \u{feff}\n");
    let read = session.call("read_file", json!({"path": "f"})).await;
    assert!(read["content"].as_str().unwrap().starts_with("1|use std;"), "{read}");
    let edit = json!({"path": "f", "old_string": "use std;", "new_string": "use core;"});
    assert_eq!(session.call("patch", edit).await["strategy"], "exact");
    assert_eq!(session.home.read("f"), "\u{feff}use core;\n// \u{feff}\n");
    for content in ["use alloc;\n", "\u{feff}use alloc;\n"] {
        session.call("write_file", json!({"path": "f", "content": content})).await;
        assert_eq!(session.home.read("f"), "\u{feff}use alloc;\n");
    }
    session.close().await;
}

#[tokio::test]
async fn patch_17_an_indent_that_is_missing_in_the_first_line_only_is_no_shift() {
    let before = "if (ok) {\n    if (on) {\n        go();\n        stop();\n    }\n}\n";
    let made = edited(before, "go();\n        stop();", "walk();\n        halt();").await;
    assert_edited(&made, "exact", before.replace("go", "walk").replace("stop", "halt"));
}

#[tokio::test]
async fn patch_18_markers_inside_of_a_text_are_text() {
    let before = "Write <old_text>x</old_text>, then the rest.\n";
    let made = edited(before, "<old_text>x</old_text>", "<new_text>y</new_text>").await;
    assert_edited(&made, "exact", "Write <new_text>y</new_text>, then the rest.\n");
    let session = Session::new(Place::Here);
    let patch = "*** Begin Patch\n*** Add File: doc.md\n+*** Begin Patch\n+*** End Patch\n+after\n*** Add File: b\n+b\n*** End Patch";
    session.call("patch", json!({"mode": "patch", "patch": patch})).await;
    assert_eq!(session.home.read("doc.md"), "*** Begin Patch\n*** End Patch\nafter\n");
    assert_eq!(session.home.read("b"), "b\n");
    session.close().await;
}

#[tokio::test]
async fn patch_19_a_file_whose_edit_failed_was_not_touched() {
    let session = Session::new(Place::Here);
    let html = "<html><body><p>a</p><p>b</p></body></html>";
    let path = session.home.write("a.html", html);
    let seen = || {
        let meta = std::fs::metadata(&path).unwrap();
        (std::fs::read(&path).unwrap(), meta.mtime_nsec(), meta.ctime_nsec(), meta.ino())
    };
    let before = seen();
    let answer = session.call("patch", json!({"path": "a.html", "old_string": "<p>c</p>", "new_string": "x"})).await;
    assert_eq!((&answer["success"], seen()), (&json!(false), before));
    session.call("patch", json!({"path": "a.html", "old_string": "<p>b</p>", "new_string": "<p>c</p>"})).await;
    assert_eq!(session.home.read("a.html"), html.replace("<p>b</p>", "<p>c</p>"));
    session.close().await;
}

#[tokio::test]
async fn patch_20_a_file_without_the_text_stays_as_it_is_and_the_answer_says_only_that() {
    let before = numbered(1..41, "\n");
    let refused = edited(&before, "no such block", "x").await;
    let error = assert_refused(&refused, &before);
    assert!(error.contains("not found in f (40 lines)") && !error.contains("restored"), "{error}");
}

#[tokio::test]
async fn patch_22_several_edits_are_found_in_the_file_as_it_is_in_any_order() {
    let session = Session::new(Place::Here);
    let before = numbered(0..10, "\n");
    session.home.write("f", &before);
    let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    let edits = |edits: &[Value]| json!({"path": "f", "edits": edits});
    let refused = session.call("patch", edits(&[edit("line 9", "x"), edit("9\n", "y")])).await;
    assert!(refused["error"].as_str().unwrap().contains("edits 1 and 2 both change line 10"), "{refused}");
    let refused = session.call("patch", edits(&[edit("line 9", "x"), edit("line 12", "y")])).await;
    assert!(refused["error"].as_str().unwrap().contains("edit 2 of 2"), "{refused}");
    assert_eq!(session.home.read("f"), before);
    // The second would find the first one's new text if they were made one after the other.
    let made = session.call("patch", edits(&[edit("line 9", "line 2"), edit("line 2", "line two")])).await;
    assert_eq!(made["success"], true, "{made}");
    assert_eq!(session.home.read("f"), before.replace("line 2", "line two").replace("line 9", "line 2"));
    session.close().await;
}

#[tokio::test]
async fn patch_23_a_text_may_end_in_the_middle_of_a_line_and_else_the_error_shows_where_it_differs() {
    let before = "alpha()\nbeta(1, 2)\n";
    assert_edited(&edited(before, "alpha()\nbeta(1", "gamma()\nbeta(3").await, "exact", "gamma()\nbeta(3, 2)\n");
    let refused = edited(before, "alpha()\nbeta(7", "x").await;
    assert!(assert_refused(&refused, before).contains("nearest text begins in line 1"), "{}", refused.0);
    let nearest = refused.0["nearest"].as_str().unwrap();
    assert!(nearest.contains("alpha()") && nearest.contains('-') && nearest.contains("beta(1, 2)"), "{nearest}");
}

#[tokio::test]
async fn patch_26_a_patch_may_be_as_large_as_a_file() {
    for lines in [1_500, 75_000] {
        let session = Session::new(Place::Here);
        let before = numbered(0..lines, " of a long, long file\n");
        session.home.write("f", &before);
        let body: Vec<String> = (0..lines)
            .map(|line| format!("-line {line} of a long, long file\n+row {line} of a short file\n"))
            .collect();
        let body = body.concat();
        let patch = format!("*** Begin Patch\n*** Update File: f\n@@\n{body}*** End Patch\n");
        assert!(patch.len() > 60_000);
        let answer = session.call("patch", json!({"mode": "patch", "patch": patch})).await;
        assert_eq!(answer["success"], true);
        assert_eq!(session.home.read("f"), before.replace("line", "row").replace("long, long", "short"));
        session.close().await;
    }
}

#[tokio::test]
async fn patch_28_lines_that_come_end_as_those_around_them_do() {
    assert_edited(&edited("a\r\nb\r\n", "a\n", "a\nx\n").await, "line_ends", "a\r\nx\r\nb\r\n");
    assert_edited(&edited("a\r\nb\r\n", "a", "a\nx").await, "exact", "a\r\nx\r\nb\r\n");
    let session = Session::new(Place::Here);
    session.home.write("f", "a\r\nb\r\nc\nd\n");
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n a\n+x\n b\n@@\n c\n+y\n d\n*** End Patch";
    session.call("patch", json!({"mode": "patch", "patch": patch})).await;
    assert_eq!(session.home.read("f"), "a\r\nx\r\nb\r\nc\ny\nd\n");
    session.close().await;
}

#[tokio::test]
async fn patch_29_bytes_far_from_the_edit_are_the_bytes_that_were_there() {
    let lines = numbered(2..61, "\n");
    for head in [&b"caf\xe9\n"[..], b"caf\xe9 \xff\xfe\x80 \xc3\n"] {
        let before = [head, lines.as_bytes()].concat();
        let after = [head, lines.replace("line 40\n", "row 40\n").as_bytes()].concat();
        assert_edited(&edited(&before, "line 40\n", "row 40\n").await, "exact", &after);
    }
}

#[tokio::test]
async fn patch_30_backslashes_are_backslashes_unless_they_can_mean_nothing_else() {
    let session = Session::new(Place::Here);
    for content in [r#"puts("row\tcol\n")"#, r"\textbf{x}"] {
        session.call("write_file", json!({"path": "new", "content": content})).await;
        assert_eq!(session.home.read("new"), content);
        std::fs::remove_file(session.home.work().join("new")).unwrap();
    }
    session.close().await;
    assert_edited(&edited("x\n", "x", r#"puts("row\tcol\n")"#).await, "exact", "puts(\"row\\tcol\\n\")\n");
    let twice = "a\tb\na\tb\n";
    assert!(assert_refused(&edited(twice, r"a\tb", r"c\td").await, twice).contains("2 times"));
}

#[tokio::test]
async fn patch_31_a_tab_stays_a_tab() {
    let before = "all:\n\techo hi\n";
    assert_edited(&edited(before, "echo hi", "echo ho").await, "exact", "all:\n\techo ho\n");
    let loose = edited(before, "    echo hi\n", "    echo ho\n").await;
    assert_edited(&loose, "indentation", "all:\n\techo ho\n");
}
