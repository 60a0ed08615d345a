//! The scan behind the build script: a file is all it takes, and a name can be taken only once.
#![allow(clippy::unwrap_used)]

#[path = "../build/scan.rs"]
mod scan;

use hermes_core::ToolSource as _;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, source).unwrap();
    }
    folder
}

#[test]
fn files_that_register_a_tool_are_found_and_sorted_by_its_name() {
    let folder = folder(&[
        ("z.rs", r#"fn tool() { Builtin::new("alpha", run) }"#),
        ("b.rs", r#"fn tool() { Builtin::new( "beta", run) }"#),
        ("b/part.rs", "fn helper() {}"),
        ("notes.txt", r#"Builtin::new("not_rust")"#),
        ("helper.rs", "fn helper() {}"),
    ]);
    let found = scan::find(folder.path()).unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), ["alpha", "beta"]);
    let table = scan::table(&found);
    let at = |text: &str| table.find(text).unwrap();
    assert!(at("(\"alpha\", || std::sync::Arc::new(z::tool()))") < at("(\"beta\", || std::sync::Arc::new(b::tool()))"));
    assert!(!table.contains(&*folder.path().to_string_lossy()), "a path in the table: {table}");
}

#[test]
fn one_name_in_two_files_does_not_compile_and_both_files_are_named() {
    let folder = folder(&[("a.rs", r#"Builtin::new("twin""#), ("b.rs", r#"Builtin::new("twin""#)]);
    let trouble = scan::find(folder.path()).unwrap_err();
    assert!(trouble.contains("two built-in tools are called `twin`"), "{trouble}");
    assert!(trouble.contains("a.rs") && trouble.contains("b.rs"), "{trouble}");
}

#[test]
fn a_name_that_no_provider_takes_does_not_compile() {
    let folder = folder(&[("a.rs", r#"Builtin::new("two words""#)]);
    assert!(scan::find(folder.path()).unwrap_err().contains("cannot be called `two words`"));
    let folder = self::folder(&[("two words.rs", r#"Builtin::new("fine""#)]);
    assert!(scan::find(folder.path()).unwrap_err().contains("the name of the file"));
}

#[test]
fn every_tool_has_what_people_and_models_see() {
    for tool in hermes_tools::Builtins.tools() {
        let spec = tool.spec();
        assert!(!spec.toolset.is_empty() && !spec.description.is_empty(), "{}", spec.name);
        for (name, schema) in spec.properties().unwrap() {
            let about = schema["description"].as_str().unwrap_or_default();
            assert!(!about.is_empty(), "{}.{name} has no description", spec.name);
        }
    }
}
