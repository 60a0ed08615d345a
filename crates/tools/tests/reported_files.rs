//! What users of agents reported about reading and writing whole files (`cases/reports.jsonl`, area 03), through real
//! dispatch, on a real disk. What they reported about searches is in `reported_search.rs`.
#![allow(clippy::unwrap_used)]

#[path = "search/session.rs"]
mod session;

use hermes_testkit::reports;
use serde_json::json;

use session::{Place, Session};

#[test]
fn every_row_that_is_placed_here_is_tested_here() {
    let rows = reports::placed_in("crates/tools/tests/reported_files.rs");
    assert!(!rows.is_empty());
    assert_eq!(reports::tested_here(&rows), rows);
}

#[tokio::test]
async fn files_01_what_a_tool_says_about_a_file_cannot_become_the_file() {
    let session = Session::new(Place::Here);
    session.home.write("a.md", "# A\n");
    session.call("read_file", json!({"path": "a.md"})).await;
    let again = session.call("read_file", json!({"path": "a.md"})).await;
    assert_eq!((&again["status"], again.get("content")), (&json!("unchanged"), None), "{again}");
    let said = again["message"].as_str().unwrap();
    for content in [said.to_owned(), format!("{said}\n"), format!("Note: {said}")] {
        let refused = session.call("write_file", json!({"path": "a.md", "content": content})).await;
        assert!(refused["error"].as_str().unwrap().contains("nothing was written"), "{refused}");
        assert_eq!(session.home.read("a.md"), "# A\n");
    }
    session.close().await;
}

#[tokio::test]
async fn files_06_an_empty_file_says_so_an_endless_one_is_refused_and_proc_is_read() {
    let session = Session::new(Place::Here);
    session.home.write("empty", "");
    let empty = session.call("read_file", json!({"path": "empty"})).await;
    assert!(empty["hint"].as_str().unwrap().contains("file is empty (0 bytes)"), "{empty}");
    let zero = session.call("read_file", json!({"path": "/dev/zero"})).await;
    assert!(zero["error"].as_str().unwrap().contains("is a device"), "{zero}");
    let proc = session.call("read_file", json!({"path": "/proc/version"})).await;
    assert!(proc["content"].as_str().unwrap().starts_with("1|Linux"), "{proc}");
    session.close().await;
}

#[tokio::test]
async fn files_12_a_text_in_utf_16_is_read_and_written_as_what_it_is() {
    let session = Session::new(Place::Here);
    let utf16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    session.home.write("marked", [b"\xff\xfe".to_vec(), utf16("h\u{e9}llo\r\nline2")].concat());
    let read = session.call("read_file", json!({"path": "marked"})).await;
    assert_eq!(read["content"], "1|h\u{e9}llo\n2|line2", "{read}");
    assert!(read["encoding"].as_str().unwrap().starts_with("UTF-16"), "{read}");
    let written = session.call("write_file", json!({"path": "marked", "content": "\u{e9}\n"})).await;
    assert!(written["encoding"].as_str().unwrap().starts_with("UTF-16"), "{written}");
    let bytes = std::fs::read(session.home.work().join("marked")).unwrap();
    assert_eq!(bytes, [b"\xff\xfe".to_vec(), utf16("\u{e9}\r\n")].concat());

    session.home.write("dot.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let picture = session.call("read_file", json!({"path": "dot.png"})).await;
    assert_eq!((&picture["is_image"], &picture["content"]), (&json!(true), &json!("")), "{picture}");
    session.close().await;
}
