//! What lies around this process, read once and passed on: nothing else looks at environment variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hermes_core::Clock;
use hermes_guard::paths;

use crate::words::Failure;

/// The process's surroundings. Not printable: variables hold secrets.
#[derive(Clone)]
pub(crate) struct World {
    /// Where Hermes keeps its things: `HERMES_HOME`, else `~/.hermes`. It need not exist.
    pub(crate) home: PathBuf,
    /// The person's home.
    pub(crate) user_home: PathBuf,
    /// Where we were started.
    pub(crate) cwd: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl World {
    pub(crate) fn of_this_process() -> Result<Self, Failure> {
        let variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let path =
            |name: &str| variables.get(name.as_ref() as &std::ffi::OsStr).filter(|v| !v.is_empty()).map(PathBuf::from);
        let user_home = path("HOME").or_else(std::env::home_dir).unwrap_or_else(|| PathBuf::from("/"));
        let home = path("HERMES_HOME").unwrap_or_else(|| user_home.join(".hermes"));
        let cwd = std::env::current_dir().map_err(|error| {
            Failure::new(format!("the current directory is not there any more: {error}; cd somewhere"))
        })?;
        let home = if home.is_absolute() { home } else { cwd.join(home) };
        Ok(Self { home, user_home, cwd, variables })
    }

    /// The same surroundings with another home of Hermes.
    pub(crate) fn at_home(&self, home: &Path) -> Self {
        Self { home: home.to_owned(), ..self.clone() }
    }

    /// What a person means by `path`: `~` is their home, and a relative path begins where we were started.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        match path.strip_prefix('~') {
            Some("") => self.user_home.clone(),
            Some(rest) if rest.starts_with('/') => self.user_home.join(rest.trim_start_matches('/')),
            _ => self.cwd.join(path),
        }
    }

    /// A variable that is set, not empty and readable as text.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name.as_ref() as &std::ffi::OsStr)?.to_str().filter(|value| !value.trim().is_empty())
    }

    /// The name of the person, as far as the environment says it.
    pub(crate) fn user_name(&self) -> String {
        let name = self.variable("USER").or_else(|| self.variable("LOGNAME")).map(str::to_owned);
        let of_home = || self.user_home.file_name().map(|name| name.to_string_lossy().into_owned());
        name.or_else(of_home).unwrap_or_default()
    }

    /// The variables whose names say that they hold secrets.
    pub(crate) fn secret_variables(&self) -> impl Iterator<Item = (String, secrecy::SecretString)> {
        self.variables.iter().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value.to_str()?);
            hermes_guard::is_secret_name(name).then(|| (name.to_owned(), secrecy::SecretString::from(value.to_owned())))
        })
    }

    /// The files and folders of this machine in which secrets are kept, and the agent's own home.
    pub(crate) fn secret_places(&self) -> Vec<PathBuf> {
        let names_in = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name()).collect()
        };
        paths::secret_places(&self.user_home, &self.home, names_in)
    }

    /// All variables, for the one place that builds a child's environment.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.variables.iter().map(|(name, value)| (name.clone(), value.clone()))
    }

    /// `path` with the person's home written as `~`.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.user_home) {
            Ok(rest) if rest.as_os_str().is_empty() => "~".into(),
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}
