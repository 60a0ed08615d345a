//! What tools refuse to read and to write, said so that a model can go on.
//!
//! The tricky idea: a path is judged as it was written and as what it leads to, and the homes likewise, since any of them
//! may be a link. One of the pairs being protected is enough.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::lexical::{contains, normalise};
use super::sensitive::{Sensitivity, classify};

/// A path that a tool does not touch. Its text is one line: what, why, what next.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct PathRefusal(String);

/// The folders outside of which nothing is written: `HERMES_WRITE_SAFE_ROOT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeRoots(Vec<PathBuf>);

impl SafeRoots {
    /// Reads the variable: folders, with the system's separator of path lists between them (`:`, on Windows `;`).
    ///
    /// `None` if it is not set or empty. A list of nothing but separators is set, and allows nothing.
    pub fn read(value: Option<&OsStr>, cwd: &Path, home: &Path) -> Option<Self> {
        let value = value.filter(|value| !value.is_empty())?;
        let folders = std::env::split_paths(value).filter(|folder| !folder.as_os_str().is_empty());
        Some(Self(folders.map(|folder| normalise(&folder, cwd, home)).collect()))
    }

    /// The folders, absolute.
    pub fn folders(&self) -> &[PathBuf] {
        &self.0
    }

    /// The same with links followed, as the paths are that will be compared with them. `real` answers `None` for a folder
    /// that cannot be resolved: nothing may then be written there.
    #[must_use]
    pub fn resolved(self, real: impl FnMut(PathBuf) -> Option<PathBuf>) -> Self {
        Self(self.0.into_iter().filter_map(real).collect())
    }

    /// Whether a path lies in one of them; links followed.
    pub fn permits(&self, real: &Path) -> bool {
        self.0.iter().any(|root| contains(root, real))
    }
}

/// What is protected, for one person and one agent.
#[derive(Clone, Debug)]
pub struct PathPolicy {
    homes: Vec<(PathBuf, PathBuf)>,
    safe_roots: Option<SafeRoots>,
}

impl PathPolicy {
    /// For a home and the agent's home (`HERMES_HOME`), both absolute.
    pub fn new(home: impl Into<PathBuf>, agent_home: impl Into<PathBuf>) -> Self {
        Self { homes: vec![(home.into(), agent_home.into())], safe_roots: None }
    }

    /// Adds what the homes lead to when links are followed.
    #[must_use]
    pub fn also(mut self, real_home: impl Into<PathBuf>, real_agent_home: impl Into<PathBuf>) -> Self {
        let real = (real_home.into(), real_agent_home.into());
        if !self.homes.contains(&real) {
            self.homes.push(real);
        }
        self
    }

    /// Confines writes; `None` does not.
    #[must_use]
    pub fn within(mut self, safe_roots: Option<SafeRoots>) -> Self {
        self.safe_roots = safe_roots;
        self
    }

    /// What is special about a path: `stated` is what was asked for, absolute, and `real` what it leads to.
    pub fn sensitivity(&self, stated: &Path, real: &Path) -> Sensitivity {
        let found = self.of(real);
        // A search asks about every file, and nearly all are named as what they are, with nothing to tidy.
        let is_tidy = |bytes: &[u8]| !bytes.windows(2).any(|pair| pair == b"/." || pair == b"//");
        if stated.as_os_str() == real.as_os_str() && is_tidy(stated.as_os_str().as_encoded_bytes()) {
            return found;
        }
        let tidy = normalise(stated, Path::new("/"), Path::new("/"));
        found.or(if tidy == real { Sensitivity::default() } else { self.of(&tidy) })
    }

    fn of(&self, path: &Path) -> Sensitivity {
        let each = self.homes.iter().map(|(home, agent_home)| classify(path, home, agent_home));
        each.fold(Sensitivity::default(), Sensitivity::or)
    }

    /// Refuses a file whose content is a secret.
    pub fn check_read(&self, stated: &Path, real: &Path) -> Result<(), PathRefusal> {
        let Some(why) = self.sensitivity(stated, real).read else { return Ok(()) };
        Err(PathRefusal(format!(
            "Access denied: {}, which {why}; go on without it, or ask the user for the part you need",
            named(stated, real)
        )))
    }

    /// Refuses a protected place, and anything outside of the safe roots where there are some.
    pub fn check_write(&self, stated: &Path, real: &Path) -> Result<(), PathRefusal> {
        if let Some(why) = self.sensitivity(stated, real).write {
            return Err(PathRefusal(format!(
                "Write denied: {}, which {why}; ask the user to make this change",
                named(stated, real)
            )));
        }
        let Some(roots) = self.safe_roots.as_ref().filter(|roots| !roots.permits(real)) else { return Ok(()) };
        let folders: Vec<String> = roots.folders().iter().map(|folder| folder.display().to_string()).collect();
        let next = match folders.as_slice() {
            [] => "it names no folder that can be written; the user must mend it".to_owned(),
            folders => format!("write below {}", folders.join(" or ")),
        };
        Err(PathRefusal(format!(
            "Write denied: {} lies outside of HERMES_WRITE_SAFE_ROOT; {next}",
            named(stated, real)
        )))
    }
}

/// The path, and where it leads if that is elsewhere. A name with a line break in it must not forge a second line.
fn named(stated: &Path, real: &Path) -> String {
    let shown = |path: &Path| path.display().to_string().replace(char::is_control, "\u{fffd}");
    if stated == real { shown(real) } else { format!("{} leads to {}", shown(stated), shown(real)) }
}
