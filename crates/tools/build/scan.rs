//! From a folder of files to the table of built-in tools.
//!
//! A tool is a file, or a folder with a `mod.rs`, that contains `Builtin::new("name"`. The table is sorted by that name,
//! and a name that occurs twice is an error that names both files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What marks the registration of a tool.
const MARK: &str = "Builtin::new(";

/// The files of `folder` that register a tool, by the tool's name.
pub(crate) fn find(folder: &Path) -> Result<BTreeMap<String, PathBuf>, String> {
    let trouble = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(trouble)? {
        let path = entry.map_err(trouble)?.path();
        let file = if path.is_dir() { path.join("mod.rs") } else { path };
        if file.extension().is_none_or(|extension| extension != "rs") || !file.is_file() {
            continue;
        }
        let source = std::fs::read_to_string(&file).map_err(trouble)?;
        let Some(name) = registered_name(&source) else { continue };
        if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') || name.is_empty() {
            return Err(format!("{}: a built-in tool cannot be called `{name}`: use a-z, 0-9 and _", file.display()));
        }
        if let Some(other) = found.insert(name.to_owned(), file.clone()) {
            let (a, b) = if other < file { (other, file) } else { (file, other) };
            return Err(format!("two built-in tools are called `{name}`: {} and {}", a.display(), b.display()));
        }
    }
    Ok(found)
}

fn registered_name(source: &str) -> Option<&str> {
    let rest = source.split(MARK).nth(1)?.trim_start().strip_prefix('"')?;
    rest.split('"').next()
}

/// Rust source: a `mod` for each file, and `TABLE`, sorted by name.
pub(crate) fn table(found: &BTreeMap<String, PathBuf>) -> String {
    let mut out = String::new();
    for (name, path) in found {
        let _ = writeln!(out, "#[path = {:?}]\nmod {name};", path.display().to_string());
    }
    let _ = writeln!(out, "\nconst TABLE: &[(&str, MakeTool)] = &[");
    for name in found.keys() {
        let _ = writeln!(out, "    ({name:?}, || std::sync::Arc::new({name}::tool())),");
    }
    out + "];\n"
}
