//! The shape of the workspace: who may depend on whom, and how long a file may grow.
//!
//! These are the two things that erode without anybody deciding it, one convenient line at a time.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hermes_testkit::TempHome;
use serde_json::{Value, json};

/// The packages of this workspace that a package may depend on, tests aside.
enum Reach {
    Only(&'static [&'static str]),
    /// The binary puts everything together.
    Anything,
}

/// Who may depend on whom in normal and build dependencies. Dev-dependencies are free.
const ARROWS: &[(&str, Reach)] = &[
    ("hermes-core", Reach::Only(&[])),
    ("hermes-runtime", Reach::Only(&["hermes-core"])),
    ("hermes-exec", Reach::Only(&["hermes-core"])),
    ("hermes-tools", Reach::Only(&["hermes-core"])),
    ("hermes-mcp", Reach::Only(&["hermes-core"])),
    ("hermes-guard", Reach::Only(&["hermes-core"])),
    ("hermes-plugins", Reach::Only(&["hermes-core"])),
    ("hermes-testkit", Reach::Only(&["hermes-core"])),
    ("hermes-agent", Reach::Only(&["hermes-core", "hermes-runtime"])),
    ("hermes-gateway", Reach::Only(&["hermes-core", "hermes-runtime", "hermes-agent"])),
    ("hermes", Reach::Anything),
];

/// For tests only, whatever [`ARROWS`] allows.
const TESTKIT: &str = "hermes-testkit";

/// A longer file does more than one thing.
const MOST_LINES: usize = 1500;

#[test]
fn crates_depend_only_on_what_their_place_allows() {
    let manifest = workspace_root().join("Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked", "--manifest-path"])
        .arg(manifest)
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(names(&metadata).contains(TESTKIT), "cargo metadata does not list this very crate");

    let forbidden = forbidden_arrows(&metadata);
    assert!(forbidden.is_empty(), "\n{}", forbidden.join("\n"));
}

#[test]
fn a_forbidden_arrow_is_found() {
    let package = |name: &str, dependencies: &[(&str, Value)]| {
        let list = dependencies.iter().map(|(name, kind)| json!({ "name": name, "kind": kind })).collect::<Vec<_>>();
        json!({ "name": name, "dependencies": list })
    };
    let normal = || Value::Null;
    let metadata = json!({ "packages": [
        package("hermes-core", &[("serde", normal()), (TESTKIT, json!("dev"))]),
        package("hermes-runtime", &[("hermes-core", normal()), ("hermes-tools", json!("dev"))]),
        package("hermes-tools", &[("hermes-runtime", normal()), ("hermes-core", json!("build"))]),
        package("hermes", &[("hermes-tools", normal()), (TESTKIT, json!("build"))]),
        package(TESTKIT, &[]),
        package("hermes-new", &[]),
    ]});
    let found = forbidden_arrows(&metadata);
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].starts_with("hermes-tools must not depend on hermes-runtime"), "{}", found[0]);
    assert!(found[1].starts_with("hermes must not depend on hermes-testkit"), "{}", found[1]);
    assert!(found[2].starts_with("hermes-new is not in ARROWS"), "{}", found[2]);
}

fn forbidden_arrows(metadata: &Value) -> Vec<String> {
    let members = names(metadata);
    let mut forbidden = Vec::new();
    for package in list(&metadata["packages"]) {
        let from = name(package);
        let Some((_, reach)) = ARROWS.iter().find(|(name, _)| *name == from) else {
            forbidden.push(format!("{from} is not in ARROWS: add it there, with the crates it may depend on"));
            continue;
        };
        for dependency in list(&package["dependencies"]).iter().filter(|dependency| dependency["kind"] != "dev") {
            let to = name(dependency);
            let allowed = match reach {
                Reach::Only(crates) => crates.contains(&to),
                Reach::Anything => true,
            };
            if members.contains(to) && (!allowed || to == TESTKIT) {
                forbidden.push(format!("{from} must not depend on {to} outside of its tests (see ARROWS)"));
            }
        }
    }
    forbidden
}

fn names(metadata: &Value) -> BTreeSet<&str> {
    list(&metadata["packages"]).iter().map(name).collect()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("an array in the output of cargo metadata")
}

fn name(value: &Value) -> &str {
    value["name"].as_str().expect("a name in the output of cargo metadata")
}

#[test]
fn no_source_file_is_longer_than_one_thing_needs() {
    let crates = workspace_root().join("crates");
    assert!(!longer_than(0, &crates).is_empty(), "no sources below {}", crates.display());
    let long = longer_than(MOST_LINES, &crates);
    assert!(long.is_empty(), "more than {MOST_LINES} lines, split them: {long:#?}");
}

#[test]
fn a_long_file_is_found_by_its_lines() {
    let home = TempHome::new();
    let long = home.write("a/src/long.rs", "1\n2\n3\n");
    home.write("a/src/short.rs", "1\n2\n");
    home.write("a/notes.md", "1\n2\n3\n");
    assert_eq!(longer_than(2, &home.work()), [(long, 3)]);
}

fn longer_than(limit: usize, folder: &Path) -> Vec<(PathBuf, usize)> {
    let mut long = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            long.extend(longer_than(limit, &path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            if lines > limit {
                long.push((path, lines));
            }
        }
    }
    long
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
