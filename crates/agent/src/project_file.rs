//! What a project wants its agents to know, in one file of its own.

use std::path::{Path, PathBuf};

use hermes_core::{Environment, FileKind};

/// The names that are looked for in each folder, in this order (spec agent §7).
const NAMES: &[&str] = &[".hermes.md", "HERMES.md", "AGENTS.md", "agents.md", "CLAUDE.md", "claude.md", ".cursorrules"];
/// Longer files are shown by their head and tail (spec agent §7).
const MOST_CHARS: usize = 20_000;

/// A project file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its text, shortened if it is long.
    pub text: String,
}

/// The nearest project file, from `cwd` up to the folder that holds `.git`; without one, only `cwd` is looked at.
///
/// It is read without a question, so a link that leads out of the project is passed over: a repository must not choose
/// which of the person's other files reach the model.
pub async fn find(environment: &dyn Environment, cwd: &Path) -> Option<ProjectFile> {
    let folders = folders(environment, cwd).await;
    let root = environment.real_path(folders.last()?).await.ok()?;
    for folder in folders {
        for name in NAMES {
            let path = folder.join(name);
            let is_file = environment.stat(&path).await.is_ok_and(|stat| stat.kind == FileKind::File);
            let is_inside = environment.real_path(&path).await.is_ok_and(|real| real.starts_with(&root));
            if !is_file || !is_inside {
                continue;
            }
            let bytes = environment.read(&path, 0..4 * 1024 * 1024).await.ok()?;
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            if !text.is_empty() {
                return Some(ProjectFile { text: shortened(&text, &path), path });
            }
        }
    }
    None
}

async fn folders(environment: &dyn Environment, cwd: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for folder in cwd.ancestors() {
        folders.push(folder.to_path_buf());
        if environment.stat(&folder.join(".git")).await.is_ok() {
            return folders;
        }
    }
    folders.truncate(1);
    folders
}

/// 70 % from the head and 20 % from the tail, with the place of the rest between them.
fn shortened(text: &str, path: &Path) -> String {
    let total = text.chars().count();
    if total <= MOST_CHARS {
        return text.to_owned();
    }
    let head: String = text.chars().take(MOST_CHARS * 7 / 10).collect();
    let tail: String = text.chars().skip(total - MOST_CHARS / 5).collect();
    format!(
        "{head}\n[… {} of {total} characters left out; the whole is in {} …]\n{tail}",
        total - MOST_CHARS * 9 / 10,
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_keeps_its_ends_and_says_where_the_rest_is() {
        let text = shortened(&format!("HEAD{}TAIL", "x".repeat(30_000)), Path::new("/p/AGENTS.md"));
        assert!(text.starts_with("HEAD") && text.ends_with("TAIL") && text.contains("/p/AGENTS.md"));
        assert!(text.chars().count() < MOST_CHARS);
        assert_eq!(shortened("short", Path::new("/p")), "short");
    }
}
