//! What users of agents reported about reading and writing whole files (`cases/reports.jsonl`, area 03), through real
//! dispatch, on a real disk. What they reported about searches is in `reported_search.rs`.
#![allow(clippy::unwrap_used)]

#[path = "search/session.rs"]
mod session;

use std::ffi::OsStr;
use std::path::Path;

use hermes_guard::paths::{PathPolicy, SafeRoots};
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

#[tokio::test]
async fn files_04_after_a_compaction_each_file_is_shown_once_more_and_a_program_sees_it_every_time() {
    let session = Session::new(Place::Here);
    let files = ["a.md", "b.md", "c.md"];
    let is_whole = async |session: &Session, file: &str| {
        let read = session.call("read_file", json!({ "path": file })).await;
        read.get("content").is_some_and(|content| content == &json!("1|text"))
    };
    for file in files {
        session.home.write(file, "text\n");
        assert!(is_whole(&session, file).await);
    }
    session.compact();
    for file in files {
        assert!(is_whole(&session, file).await, "{file}");
        assert!(!is_whole(&session, file).await, "{file}");
    }
    session.close().await;
}

#[tokio::test]
async fn files_15_a_link_to_a_protected_file_is_refused_with_its_real_name_however_it_is_reached() {
    use std::os::unix::fs::symlink;
    let session = Session::new(Place::Here);
    let ssh = session.home.user_home().join(".ssh");
    std::fs::create_dir_all(&ssh).unwrap();
    std::fs::write(ssh.join("authorized_keys"), "mine\n").unwrap();
    symlink(ssh.join("authorized_keys"), session.home.work().join("log.txt")).unwrap();
    symlink(&ssh, session.home.work().join("keys")).unwrap();
    for path in ["log.txt", "keys/authorized_keys", "./x/../log.txt"] {
        let refused = session.call("write_file", json!({ "path": path, "content": "x" })).await;
        let why = refused["error"].as_str().unwrap();
        assert!(why.contains(".ssh/authorized_keys"), "{path}: {why}");
        assert_eq!(std::fs::read_to_string(ssh.join("authorized_keys")).unwrap(), "mine\n");
    }
    session.close().await;
}

#[tokio::test]
async fn files_19_two_names_of_a_folder_are_one_folder() {
    use std::os::unix::fs::symlink;
    let session = Session::new(Place::Here);
    let real = session.home.write("real/a.txt", "one\n");
    symlink(real.parent().unwrap(), session.home.work().join("link")).unwrap();
    let through_the_link = session.home.work().join("link/a.txt");
    let read = session.call("read_file", json!({ "path": through_the_link })).await;
    assert_eq!(read["content"], "1|one", "{read}");
    // Somebody else changes it; a write by the other name knows that what was read is not what is there.
    std::fs::write(&real, "two\n").unwrap();
    let stale = session.call("write_file", json!({ "path": real, "content": "three\n" })).await;
    assert!(stale["error"].as_str().unwrap().contains("changed"), "{stale}");
    let read = session.call("read_file", json!({ "path": real })).await;
    assert_eq!(read["content"], "1|two", "{read}");
    let written = session.call("write_file", json!({ "path": through_the_link, "content": "three\n" })).await;
    assert_eq!(written["bytes_written"], 6, "{written}");
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "three\n");
    session.close().await;
}

#[tokio::test]
async fn files_20_a_relative_path_begins_where_the_session_is_and_the_answer_says_where_that_was() {
    let session = Session::new(Place::Here);
    let written = session.call("write_file", json!({"path": "docs/a.md", "content": "x\n"})).await;
    let there = session.home.work().join("docs/a.md");
    assert_eq!(written["resolved_path"], there.display().to_string(), "{written}");
    assert_ne!(std::env::current_dir().unwrap(), session.home.work());
    assert_eq!(std::fs::read_to_string(there).unwrap(), "x\n");
    session.close().await;
}

#[tokio::test]
async fn files_25_a_path_of_another_system_is_refused_and_makes_no_file_of_a_strange_name() {
    let session = Session::new(Place::Here);
    let path = r"C:\notes\a.md";
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch");
    let moved = format!("*** Begin Patch\n*** Move File: a.md -> {path}\n*** End Patch");
    session.home.write("a.md", "x\n");
    for (tool, arguments) in [
        ("write_file", json!({ "path": path, "content": "x" })),
        ("read_file", json!({ "path": path })),
        ("search_files", json!({ "path": path, "pattern": "x" })),
        ("patch", json!({ "path": path, "old_string": "x", "new_string": "y" })),
        ("patch", json!({ "mode": "patch", "patch": patch })),
        ("patch", json!({ "mode": "patch", "patch": moved })),
    ] {
        let refused = session.call(tool, arguments).await;
        let why = refused["error"].as_str().unwrap();
        assert!(why.contains("a path of Windows") && why.contains("/mnt/c/notes/a.md"), "{tool}: {why}");
    }
    // The separators alone make a strange name as well.
    let add = "*** Begin Patch\n*** Add File: src\\main.rs\n+x\n*** End Patch";
    for (tool, arguments) in [
        ("write_file", json!({ "path": r"src\main.rs", "content": "x" })),
        ("patch", json!({ "mode": "patch", "patch": add })),
    ] {
        let refused = session.call(tool, arguments).await;
        assert!(refused["error"].as_str().unwrap().contains("separated by /"), "{tool}: {refused}");
    }
    let names: Vec<_> =
        std::fs::read_dir(session.home.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.md"]);
    session.close().await;
}

/// The roots below which alone may be written, as the program resolves them at its start.
fn confined_to(root: &Path) -> PathPolicy {
    let nowhere = Path::new("/nowhere");
    let roots = SafeRoots::read(Some(root.as_os_str()), nowhere, nowhere);
    let roots = roots.map(|roots| roots.resolved(|root| std::fs::canonicalize(root).ok()));
    PathPolicy::new(nowhere, "/nowhere/.hermes").within(roots)
}

#[test]
fn files_23_a_root_and_a_path_that_both_go_through_one_link_meet() {
    let home = hermes_testkit::TempHome::new();
    let real = home.write("real/a.txt", "");
    let folder = home.work().join("link");
    std::os::unix::fs::symlink(real.parent().unwrap(), &folder).unwrap();
    let policy = confined_to(&folder);
    let resolved = real.parent().unwrap().canonicalize().unwrap();
    // What is there, and what is new in it, by either name.
    for name in ["a.txt", "new.txt"] {
        for stated in [folder.join(name), real.parent().unwrap().join(name)] {
            policy.check_write(&stated, &resolved.join(name)).unwrap();
        }
    }
    policy.check_write(&home.work().join("x"), &home.work().join("x")).unwrap_err();
}

#[test]
fn files_24_a_root_with_a_separator_at_its_end_is_the_root_and_no_beginning_of_a_name() {
    let home = hermes_testkit::TempHome::new();
    let inside = home.write("ws/a/b.txt", "").canonicalize().unwrap();
    let beside = home.write("ws-other/b.txt", "").canonicalize().unwrap();
    let root = home.work().join("ws");
    for root in [root.clone(), Path::new(&[root.as_os_str(), OsStr::new("/")].join(OsStr::new(""))).to_owned()] {
        let policy = confined_to(&root);
        policy.check_write(&inside, &inside).unwrap();
        policy.check_write(&beside, &beside).unwrap_err();
    }
    confined_to(Path::new("/")).check_write(&beside, &beside).unwrap();
}
