//! `search_files` against a naive search over random trees, on our own disk and elsewhere, and against the real `rg`.
//!
//! Names hold odd bytes, folders are hidden or ignored, files are binary, empty, without a last line end. What is
//! compared: the lines, their order, the totals of every mode, the names, and that pages put one after the other are the
//! whole.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test says what it skips")]

#[path = "search/session.rs"]
mod session;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use session::{Place, Session};

type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// A pattern and what it means.
type Pattern = (&'static str, fn(&[u8]) -> bool);

const PATTERNS: [Pattern; 6] = [
    ("ab", |line| line.windows(2).any(|part| part == b"ab")),
    ("^a", |line| line.starts_with(b"a")),
    ("b$", |line| line.ends_with(b"b")),
    ("c|bb", |line| line.contains(&b'c') || line.windows(2).any(|part| part == b"bb")),
    ("é", |line| line.windows(2).any(|part| part == "é".as_bytes())),
    ("^$", <[u8]>::is_empty),
];

fn tree() -> impl Strategy<Value = Tree> {
    let names: [&[u8]; 11] = [
        b"a",
        b"b.txt",
        b"x.log",
        b".h",
        b"ig",
        b"with space",
        b"a:3:b",
        b"-v",
        b"new\nline",
        b"caf\xe9",
        "é.txt".as_bytes(),
    ];
    let path = vec(select(names.to_vec()), 1..4).prop_map(|parts| parts.into_iter().map(OsStr::from_bytes).collect());
    let pieces: [&[u8]; 9] = [b"a", b"b", b"c", b"\n", b"\n", b"\r\n", "é".as_bytes(), b"\xff", b" "];
    let text = vec(select(pieces.to_vec()), 0..40).prop_map(|pieces| pieces.concat());
    let content = (text, prop::bool::weighted(0.1)).prop_map(|(mut text, is_binary)| {
        if is_binary {
            text.insert(0, 0);
        }
        text
    });
    btree_map(path, content, 0..12).prop_map(|files: Tree| {
        // What is a file is no folder.
        let folders: Vec<PathBuf> =
            files.keys().flat_map(|path| path.ancestors().skip(1)).map(Path::to_path_buf).collect();
        files.into_iter().filter(|(path, _)| !folders.contains(path)).collect()
    })
}

/// Whether the rules leave a file: `.gitignore` says `ig` and `*.log`.
fn is_visible(path: &Path, with_hidden: bool, with_ignored: bool) -> bool {
    let parts = || path.iter().map(OsStr::as_bytes);
    (with_hidden || !parts().any(|part| part.starts_with(b".")))
        && (with_ignored || !parts().any(|part| part == b"ig" || part.ends_with(b".log")))
}

/// The numbers of the matching lines.
fn matching(content: &[u8], matches: fn(&[u8]) -> bool) -> Vec<u64> {
    let mut lines: Vec<&[u8]> = content.split(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let without_cr = |line: &[u8]| matches(line.strip_suffix(b"\r").unwrap_or(line));
    (1..).zip(lines).filter(|(_, line)| without_cr(line)).map(|(number, _)| number).collect()
}

fn shown(path: &Path) -> String {
    path.to_str().map_or_else(
        || {
            let mut out = String::from("$'");
            for chunk in path.as_os_str().as_bytes().utf8_chunks() {
                out += &chunk.valid().replace('\'', "\\'").replace('\n', "\\x0a");
                chunk.invalid().iter().for_each(|byte| out += &format!("\\x{byte:02x}"));
            }
            out + "'"
        },
        str::to_owned,
    )
}

fn write(session: &Session, tree: &Tree) {
    session.home.write(".gitignore", "ig\n*.log\n");
    for (path, content) in tree {
        session.home.write(path, content);
    }
}

/// The rows of an answer, in either form.
fn rows(answer: &Value) -> Vec<(String, u64)> {
    if let Some(matches) = answer["matches"].as_array() {
        let row = |row: &Value| (row["path"].as_str().unwrap().to_owned(), row["line"].as_u64().unwrap());
        return matches.iter().map(row).collect();
    }
    let mut path = "";
    let mut rows = Vec::new();
    for line in answer["matches_text"].as_str().unwrap().lines() {
        let number = line.strip_prefix("  ").and_then(|line| line.split_once(':')?.0.parse().ok());
        match number {
            Some(number) => rows.push((path.to_owned(), number)),
            None => path = line,
        }
    }
    rows
}

fn check(runtime: &Runtime, place: Place, tree: &Tree, pattern: Pattern, (hidden, ignored): (bool, bool), page: usize) {
    let session = Session::new(place).with_room(50_000);
    write(&session, tree);
    let (text, matches) = pattern;
    let ask = |more: Value| {
        let mut arguments = json!({"pattern": text, "include_hidden": hidden, "include_ignored": ignored});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        runtime.block_on(session.search(arguments))
    };
    let mut visible: Tree = tree.clone();
    visible.retain(|path, _| is_visible(path, hidden, ignored));
    if hidden {
        visible.insert(".gitignore".into(), b"ig\n*.log\n".to_vec());
    }
    let is_binary = |content: &[u8]| content.contains(&0);
    let texts = || visible.iter().filter(|(_, content)| !is_binary(content));
    let expected: Vec<(String, u64)> = texts()
        .flat_map(|(path, content)| matching(content, matches).into_iter().map(|line| (shown(path), line)))
        .collect();

    let whole = ask(json!({"limit": 10_000}));
    assert_eq!(rows(&whole), expected, "{place:?} {whole}");
    assert_eq!((&whole["total_count"], &whole["truncated"]), (&json!(expected.len()), &json!(false)));
    let mut paged = Vec::new();
    let mut offset = 0;
    loop {
        let answer = ask(json!({"limit": page, "offset": offset}));
        assert_eq!(answer["total_count"], expected.len());
        paged.extend(rows(&answer));
        match answer["next_offset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(paged, expected, "pages of {page}");

    let counts = ask(json!({"output_mode": "count", "limit": 10_000}));
    let each: BTreeMap<String, usize> = texts()
        .map(|(path, content)| (shown(path), matching(content, matches).len()))
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(counts["counts"], json!(each), "{place:?}");
    let files = ask(json!({"output_mode": "files_only", "limit": 10_000}));
    let names: Vec<&str> = files["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!((names.len(), &files["total_count"]), (each.len(), &json!(each.len())));
    assert!(names.iter().all(|name| each.contains_key(*name)), "{names:?}");

    let found = ask(json!({"pattern": "*", "target": "files", "limit": 10_000}));
    let mut names: Vec<&str> = found["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    names.sort_unstable();
    let mut expected: Vec<String> = visible.keys().map(|path| shown(path)).collect();
    expected.sort_unstable();
    assert_eq!(names, expected, "{place:?}");
    if place == Place::Here && text == "c|bb" {
        let expected =
            visible.iter().filter(|(_, content)| is_binary(content) && !matching(content, matches).is_empty());
        let expected: Vec<String> = expected.map(|(path, _)| shown(path)).collect();
        assert_eq!(whole["binary_matches"].as_array().cloned().unwrap_or_default(), expected);
    }
    runtime.block_on(session.close());
}

fn over_trees(place: Place, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let inputs = (tree(), select(PATTERNS.to_vec()), any::<(bool, bool)>(), 1_usize..5);
    let ran = TestRunner::new(config).run(&inputs, |(tree, pattern, flags, page)| {
        check(&runtime, place, &tree, pattern, flags, page);
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

fn rg() -> Option<Command> {
    let is_there = Command::new("rg").arg("--version").output().is_ok();
    if !is_there {
        println!("skipped: ripgrep is not installed");
    }
    is_there.then(|| Command::new("rg"))
}

#[test]
fn our_own_disk_agrees_with_a_naive_search() {
    over_trees(Place::Here, 96);
}

#[test]
fn grep_elsewhere_agrees_with_a_naive_search() {
    over_trees(Place::WithoutRipgrep, 12);
}

#[test]
fn ripgrep_elsewhere_agrees_with_a_naive_search() {
    if rg().is_some() {
        over_trees(Place::Elsewhere, 12);
    }
}

#[test]
fn the_real_rg_counts_the_same() {
    if rg().is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
    let ran = TestRunner::new(config).run(&(tree(), select(PATTERNS.to_vec())), |(mut tree, (pattern, _))| {
        // What it says of binary files is its own.
        tree.retain(|_, content| !content.contains(&0));
        let session = Session::new(Place::Here);
        write(&session, &tree);
        let args = ["--no-config", "--no-require-git", "--crlf", "-c", "-0", "-e", pattern, "--", "."];
        let theirs = Command::new("rg").args(args).current_dir(session.home.work()).output().unwrap();
        let mut expected = BTreeMap::new();
        let mut rest = theirs.stdout.as_slice();
        while let Some(end) = rest.iter().position(|&byte| byte == 0) {
            let path = Path::new(OsStr::from_bytes(&rest[..end])).strip_prefix(".").unwrap();
            let line = rest[end + 1..].iter().position(|&byte| byte == b'\n').unwrap();
            let count: u64 = std::str::from_utf8(&rest[end + 1..end + 1 + line]).unwrap().trim().parse().unwrap();
            expected.insert(shown(path), count);
            rest = &rest[end + line + 2..];
        }
        let counts = json!({"pattern": pattern, "output_mode": "count", "limit": 10_000});
        let ours = runtime.block_on(session.search(counts));
        assert_eq!(ours["counts"], json!(expected));
        runtime.block_on(session.close());
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

#[test]
fn any_rules_mean_what_they_mean_to_the_real_rg() {
    if rg().is_none() {
        return;
    }
    let rules = ["a", "/a", "*.txt", "a/", "!b.txt", "!.h", "a/**", "**/a", "!a/b.txt", "x*", "!*.log", "# a", "ig/*"];
    let rules = vec(select(rules.to_vec()), 0..4).prop_map(|rules| rules.join("\n"));
    let inputs = (tree(), rules.clone(), rules.clone(), rules, any::<bool>());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let ran = TestRunner::new(config).run(&inputs, |(mut tree, top, deep, other, hidden)| {
        // Older versions do not see through a line break in a path.
        tree.retain(|path, _| !path.as_os_str().as_bytes().contains(&b'\n'));
        for place in [Place::Here, Place::WithoutRipgrep] {
            let session = Session::new(place);
            for (path, content) in &tree {
                session.home.write(path, content);
            }
            session.home.write(".gitignore", &top);
            session.home.write(".ignore", &other);
            if session.home.work().join("a").is_dir() {
                session.home.write("a/.gitignore", &deep);
            }
            let mut theirs = Command::new("rg");
            theirs.args(["--no-config", "--no-require-git", "--files", "-0", "--glob", "!.git"]);
            theirs.args(hidden.then_some("--hidden")).current_dir(session.home.work());
            let theirs = theirs.output().unwrap().stdout;
            let expected = theirs.split(|&byte| byte == 0).filter(|path| !path.is_empty());
            let mut expected: Vec<String> = expected.map(|path| shown(Path::new(OsStr::from_bytes(path)))).collect();
            expected.sort_unstable();
            let names = json!({"pattern": "*", "target": "files", "limit": 10_000, "include_hidden": hidden});
            let ours = runtime.block_on(session.search(names));
            let ours = ours["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
            let mut ours: Vec<String> = ours.collect();
            ours.sort_unstable();
            assert_eq!(ours, expected, "{place:?}");
            runtime.block_on(session.close());
        }
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

#[test]
fn a_file_that_goes_away_meanwhile_is_no_trouble() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let session = Session::new(Place::Here);
    for n in 0..500 {
        session.home.write(format!("d{}/f{n}.txt", n % 20), "needle\n");
    }
    let work = session.home.work();
    let remover = std::thread::spawn(move || {
        for n in 0..500 {
            let _ = fs::remove_file(work.join(format!("d{}/f{n}.txt", n % 20)));
        }
    });
    for _ in 0..20 {
        let found = runtime.block_on(session.search(json!({"pattern": "needle"})));
        assert!(found.get("error").is_none() && found["_omitted"].get("unreadable").is_none(), "{found}");
    }
    remover.join().unwrap();
    runtime.block_on(session.close());
}
