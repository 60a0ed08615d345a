//! What users of agents reported about searches (`cases/reports.jsonl`, area 03), through real dispatch, on our own disk
//! and on one that is not ours, without ripgrep there.
#![allow(clippy::unwrap_used)]

#[path = "search/session.rs"]
mod session;

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use hermes_testkit::reports;
use serde_json::{Value, json};

use session::{Place, Session};

const PLACES: [Place; 2] = [Place::Here, Place::WithoutRipgrep];

#[test]
fn every_row_that_is_placed_here_is_tested_here() {
    let rows = reports::placed_in("crates/tools/tests/reported_search.rs");
    assert!(!rows.is_empty());
    assert_eq!(reports::tested_here(&rows), rows);
}

fn first(answer: &Value) -> (&str, u64) {
    let row = &answer["matches"][0];
    let path = row["path"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (path, row["line"].as_u64().unwrap())
}

fn hint(answer: &Value) -> &str {
    answer["hint"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn files_07_a_root_below_a_hidden_folder_is_searched() {
    for place in PLACES {
        let session = Session::new(place);
        session.home.write(".agent/notes/a.md", "alpha\n");
        session.home.write(".agent/notes/.more/b.md", "alpha\n");
        let found = session.search(json!({"pattern": "alpha", "path": ".agent/notes"})).await;
        assert_eq!((first(&found), &found["total_count"]), ((".agent/notes/a.md", 1), &json!(1)), "{place:?}");
        session.close().await;
    }
}

#[tokio::test]
async fn files_09_a_pattern_means_the_same_everywhere() {
    for place in PLACES {
        let session = Session::new(place);
        session.home.write("a.txt", "bar\n");
        let found = session.search(json!({"pattern": "foo|bar"})).await;
        assert_eq!(found["total_count"], 1, "{place:?} {found}");
        let refused = session.search(json!({"pattern": "(?<=foo)bar"})).await;
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains("look-around") && error.contains("at character 1"), "{place:?} {error}");
        session.close().await;
    }
}

#[tokio::test]
async fn files_10_a_search_that_takes_too_long_says_so_beside_its_results() {
    let session = Session::new(Place::Here);
    session.home.write("a.txt", "needle\n");
    session.home.write("big.txt", session::slow_text());
    let slow = format!("^needle$|{}", session::SLOW);
    let began = Instant::now();
    let found = session.search(json!({"pattern": slow, "timeout": 1})).await;
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!((&found["limit_reason"], &found["truncated"]), (&json!("search_timeout"), &json!(true)), "{found}");
    assert_eq!((&found["total_count"], &found["total_is_at_least"]), (&json!(1), &json!(true)));
    assert_eq!(found["matches"], json!([{"path": "a.txt", "line": 1, "content": "needle"}]));
    assert_eq!(found["searched_files"], 1);
    assert!(hint(&found).contains("name a folder further down"), "{found}");
    session.close().await;
}

#[tokio::test]
async fn files_11_a_name_is_never_missed_without_a_word() {
    for place in PLACES {
        let session = Session::new(place);
        session.home.write("src/main.rs", "x");
        session.home.write("src/a.rs", "x");
        let ask = |pattern: &str| session.search(json!({"pattern": pattern, "target": "files"}));
        assert_eq!(ask("main").await["files"], json!(["src/main.rs"]), "{place:?}");
        assert_eq!(ask(".").await["total_count"], 2, "{place:?}");
        let nothing = ask("src/(a|b).rs").await;
        assert!(nothing["total_count"] == 0 && hint(&nothing).contains("names are found by globs"), "{nothing}");
        session.close().await;
    }
}

#[tokio::test]
async fn files_18_a_walk_does_not_leave_its_root_through_links() {
    for place in PLACES {
        let session = Session::new(place);
        session.home.write("../outside/secret.txt", "root:x\n");
        symlink("../outside", session.home.work().join("folder")).unwrap();
        symlink("../outside/secret.txt", session.home.work().join("file")).unwrap();
        let found = session.search(json!({"pattern": "root:", "include_hidden": true, "include_ignored": true})).await;
        assert_eq!(found["total_count"], 0, "{place:?} {found}");
        session.close().await;
    }
}

#[tokio::test]
async fn files_21_nothing_found_says_how_many_hidden_files_were_left_out() {
    for place in PLACES {
        let session = Session::new(place);
        session.home.write(".notes/system.md", "protocol\n");
        session.home.write("a.md", "x\n");
        let nothing = session.search(json!({"pattern": "protocol"})).await;
        assert!(hint(&nothing).contains("1 hidden (include_hidden finds them)"), "{place:?} {nothing}");
        let found = session.search(json!({"pattern": "protocol", "include_hidden": true})).await;
        assert_eq!(first(&found), (".notes/system.md", 1), "{place:?}");
        session.close().await;
    }
}

#[tokio::test]
async fn files_26_a_hidden_folder_that_is_named_is_searched() {
    for place in PLACES {
        let session = Session::new(place);
        session.home.write(".github/workflows/ci.yml", "X\n");
        let found = session.search(json!({"pattern": "X", "path": ".github"})).await;
        assert_eq!(first(&found), (".github/workflows/ci.yml", 1), "{place:?}");
        session.close().await;
    }
}

#[tokio::test]
async fn files_27_an_ignored_folder_that_is_named_is_searched() {
    for place in PLACES {
        let session = Session::new(place);
        session.home.write(".gitignore", "vendor-local/*\n");
        session.home.write("vendor-local/a.txt", "word\n");
        let nothing = session.search(json!({"pattern": "word"})).await;
        assert!(hint(&nothing).contains("1 ignored (include_ignored finds them)"), "{place:?} {nothing}");
        let found = session.search(json!({"pattern": "word", "path": "vendor-local"})).await;
        assert_eq!(first(&found), ("vendor-local/a.txt", 1), "{place:?}");
        session.close().await;
    }
}
