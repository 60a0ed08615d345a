//! From a folder of files to the table of built-in tools.
//!
//! A tool is a file that contains `Builtin::new("name"`; what else belongs to it lies in a folder of the file's name. The
//! table is sorted by the tool's name, and a name that occurs twice is an error that names both files.
//!
//! The table names modules and no paths: two checkouts may share a build folder, and a path would lead from one into
//! the other.

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
        let file = entry.map_err(trouble)?.path();
        if file.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(&file).map_err(trouble)?;
        let Some(name) = registered_name(&source) else { continue };
        if !is_identifier(name) {
            return Err(format!("{}: a built-in tool cannot be called `{name}`: use a-z, 0-9 and _", file.display()));
        }
        if !is_identifier(&module(&file)) {
            return Err(format!("{}: the name of the file must be one of a module: a-z, 0-9 and _", file.display()));
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

fn module(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_identifier(name: &str) -> bool {
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    starts && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Rust source: `TABLE`, sorted by name.
pub(crate) fn table(found: &BTreeMap<String, PathBuf>) -> String {
    let mut out = String::from("const TABLE: &[(&str, MakeTool)] = &[\n");
    for (name, file) in found {
        let _ = writeln!(out, "    ({name:?}, || std::sync::Arc::new({}::tool())),", module(file));
    }
    out + "];\n"
}
