//! Folders that the binary under test may take for the user's own.
//!
//! They lie as they do for a person, with the Hermes home inside the user's home, so that a test with and one without
//! `HERMES_HOME` in the environment find the same files. All paths are real ones: on some systems the temporary folder
//! is itself a link, and a test that compares paths should not have to know.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A home, a Hermes home and a working folder that disappear with this value.
#[derive(Debug)]
pub struct TempHome {
    root: PathBuf,
    _guard: TempDir,
}

impl TempHome {
    /// Makes the three folders, empty.
    #[track_caller]
    pub fn new() -> Self {
        let guard = tempfile::Builder::new().prefix("hermes-test-").tempdir().expect("a temporary folder");
        let root = guard.path().canonicalize().expect("the real path of a temporary folder");
        let home = Self { root, _guard: guard };
        fs::create_dir_all(home.home()).expect("the Hermes home");
        fs::create_dir(home.work()).expect("the working folder");
        home
    }

    /// For `HERMES_HOME`.
    pub fn home(&self) -> PathBuf {
        self.user_home().join(".hermes")
    }

    /// For `HOME`.
    pub fn user_home(&self) -> PathBuf {
        self.root.join("user")
    }

    /// The folder to work in; outside of both homes.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Writes a file below [`TempHome::work`], with the folders above it, and answers its absolute path.
    #[track_caller]
    pub fn write(&self, relative: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        put(self.work().join(relative), bytes.as_ref())
    }

    /// The text of a file below [`TempHome::work`].
    #[track_caller]
    pub fn read(&self, relative: impl AsRef<Path>) -> String {
        let path = self.work().join(relative);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    }

    /// Writes `config.yaml` of the Hermes home and answers its absolute path.
    #[track_caller]
    pub fn write_config(&self, yaml: &str) -> PathBuf {
        put(self.home().join("config.yaml"), yaml.as_bytes())
    }
}

impl Default for TempHome {
    fn default() -> Self {
        Self::new()
    }
}

#[track_caller]
fn put(path: PathBuf, bytes: &[u8]) -> PathBuf {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, bytes));
    written.unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_are_there_and_go_with_the_value() {
        let home = TempHome::new();
        let root = home.root.clone();
        assert!(home.home().is_dir() && home.user_home().is_dir() && home.work().is_dir());
        drop(home);
        assert!(!root.exists());
    }

    #[test]
    fn a_written_file_is_read_back_and_the_config_lands_in_the_hermes_home() {
        let home = TempHome::new();
        let path = home.write("a/b.txt", "text");
        assert_eq!(path, home.work().join("a/b.txt"));
        assert_eq!(home.read("a/b.txt"), "text");
        home.write_config("model: test-model\n");
        assert_eq!(fs::read_to_string(home.home().join("config.yaml")).unwrap(), "model: test-model\n");
    }
}
