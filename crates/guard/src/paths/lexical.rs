//! Paths as text: nothing here looks at a disk.

use std::path::{Component, Path, PathBuf};

/// `path` made absolute, without `.`, `..` and doubled separators, as far as its text tells.
///
/// A relative path starts at `cwd`; `~` and `~/…` start at `home` (`~name` is a relative name like any other: whose home
/// it is cannot be known here). `..` at the root stays there. Both folders must be absolute. Where the path crosses a
/// link, the text may lie: judge what [`resolve`](super::resolve) answers, too.
pub fn normalise(path: &Path, cwd: &Path, home: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    let mut add = |path: &Path| {
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => drop(out.pop()),
                // An absolute path begins anew.
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(component),
            }
        }
    };
    add(Path::new("/"));
    match path.strip_prefix("~") {
        Ok(below_home) => {
            add(home);
            add(below_home);
        }
        Err(_) => {
            add(cwd);
            add(path);
        }
    }
    out
}

/// Whether `path` is `root` or lies below it: by whole names, never by the beginning of a text.
///
/// Both must be absolute and resolved; anything relative, or with a `..` in it, lies in nothing.
pub fn contains(root: &Path, path: &Path) -> bool {
    root.is_absolute() && !traverses(root) && !traverses(path) && path.starts_with(root)
}

/// Whether one of the names is `..`.
pub fn traverses(path: &Path) -> bool {
    path.components().any(|component| component == Component::ParentDir)
}
