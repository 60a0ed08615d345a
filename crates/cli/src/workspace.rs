//! Is this folder part of a code base? Asked only for `agent.coding_context: focus`, where the answer chooses the tools.
//!
//! A project file in the folder or up to six above it says so; so does a repository that has source code within one
//! level of its root. The home folder and the root of temporary files are never a code base (spec core §4.9).

use std::path::Path;

/// Files that a build tool or package manager puts at the root of a project.
const MARKERS: &[&str] = &[
    "Cargo.toml",
    "CMakeLists.txt",
    "Gemfile",
    "Makefile",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "deno.json",
    "go.mod",
    "mix.exs",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "requirements.txt",
    "setup.py",
];

const SOURCE: &[&str] = &[
    "c", "cc", "cpp", "cs", "ex", "go", "h", "hs", "java", "js", "jsx", "kt", "lua", "ml", "php", "pl", "py", "rb",
    "rs", "scala", "sh", "sql", "swift", "ts", "tsx", "vue", "zig",
];

/// How many folders up a project file is looked for.
const LEVELS: usize = 6;
/// More entries of a repository are not looked at.
const MOST_ENTRIES: usize = 500;

/// Whether `cwd` lies in a code base.
pub(crate) fn is_code(cwd: &Path, home: &Path) -> bool {
    let excluded = |folder: &Path| folder == home || folder == std::env::temp_dir() || folder.parent().is_none();
    let mut above = cwd.ancestors().take(LEVELS + 1).filter(|folder| !excluded(folder));
    if above.any(|folder| MARKERS.iter().any(|marker| folder.join(marker).is_file())) {
        return true;
    }
    let repository = cwd.ancestors().find(|folder| folder.join(".git").exists());
    repository.is_some_and(|root| root != home && has_source(root))
}

fn has_source(root: &Path) -> bool {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_source = |path: &Path| path.extension().is_some_and(|end| SOURCE.iter().any(|known| end == *known));
    let inside = entries(root).flat_map(|path| if path.is_dir() { entries(&path).collect() } else { vec![path] });
    inside.take(MOST_ENTRIES).any(|path| is_source(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_project_file_above_or_source_in_a_repository_makes_a_code_base() {
        let folder = tempfile::tempdir().unwrap();
        let (home, plain) = (folder.path().join("home"), folder.path().join("home/notes"));
        let (crate_, deep) = (folder.path().join("home/crate"), folder.path().join("home/crate/a/b/c"));
        let repository = folder.path().join("home/repo/docs");
        for made in [&plain, &deep, &repository] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(crate_.join("Cargo.toml"), "").unwrap();
        fs::create_dir(folder.path().join("home/repo/.git")).unwrap();
        assert!(is_code(&deep, &home) && !is_code(&plain, &home) && !is_code(&repository, &home));
        fs::write(repository.join("tool.py"), "").unwrap();
        assert!(is_code(&repository, &home));
        // Whoever keeps a project file in their home does not make everything below it a code base.
        fs::write(home.join("package.json"), "").unwrap();
        assert!(!is_code(&plain, &home));
    }
}
