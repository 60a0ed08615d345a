//! Finds the built-in tools and writes the table of them. The work is in `build/scan.rs`, which is also tested.
#![allow(clippy::print_stdout, reason = "cargo reads a build script's standard output")]

use std::path::Path;

#[path = "build/scan.rs"]
mod scan;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/builtin");
    println!("cargo::rerun-if-changed={}", folder.display());
    let table = match scan::find(&folder) {
        Ok(found) => scan::table(&found),
        Err(trouble) => format!("compile_error!({trouble:?});\n"),
    };
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    if let Err(error) = std::fs::write(Path::new(&out).join("builtin.rs"), table) {
        println!("cargo::error=cannot write the table of built-in tools: {error}");
    }
}
