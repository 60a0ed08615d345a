//! What the guard knows about the machine before it reads a command.

use std::fmt;

/// Whose machine it is and where things are. Paths are absolute and without `.` and `..`.
#[derive(Clone)]
pub struct World {
    /// The user's home directory.
    pub home: String,
    /// The user's name.
    pub user: String,
    /// Where the command starts.
    pub cwd: String,
    /// The directory that is being worked on; what lies in it may be edited.
    pub workspace: String,
    /// Where this program keeps its own files.
    pub agent_home: String,
    /// Where a link leads, if the path is one. Pure judgements pass [`no_links`].
    pub link: fn(&str) -> Option<String>,
}

/// A file system without links.
pub fn no_links(_: &str) -> Option<String> {
    None
}

impl World {
    /// A world where commands start in `cwd`, which is the workspace, for a user whose home is `home`.
    pub fn new(home: &str, cwd: &str) -> Self {
        let user = home.rsplit('/').next().unwrap_or_default().to_owned();
        let agent_home = format!("{home}/.hermes");
        Self { home: home.into(), user, cwd: cwd.into(), workspace: cwd.into(), agent_home, link: no_links }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("home", &self.home).field("cwd", &self.cwd).finish_non_exhaustive()
    }
}
