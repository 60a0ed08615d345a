//! What is special about one path, as file tools and as commands ask it.

use std::path::Path;

use super::index::{INDEX, Row, Starts, below, trimmed};
use super::table::{At, BROAD, OPEN, R, T};
use crate::text;

/// What is special about a path; each answer is a reason that completes "it …": `holds private SSH keys`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensitivity {
    /// Why reading it discloses a secret.
    pub read: Option<&'static str>,
    /// Why tools do not write it.
    pub write: Option<&'static str>,
    /// Why a write to it is run or trusted later.
    pub plants: Option<&'static str>,
}

impl Sensitivity {
    /// Whether nothing is special.
    pub fn is_ordinary(self) -> bool {
        self == Self::default()
    }

    /// Both together; where both have an answer, the first one's.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { read: self.read.or(other.read), write: self.write.or(other.write), plants: self.plants.or(other.plants) }
    }
}

/// What is special about `path`, by its name alone.
///
/// All three must be absolute and without `..` (see [`normalise`](super::normalise)); `path` may or may not exist. `home`
/// is the person's, `agent_home` the agent's (`HERMES_HOME`) or one of its profiles; `~/.hermes` counts in any case. The
/// case of letters does not matter. Listing a secret folder is not reading it; see [`secrets_below`] for that.
pub fn classify(path: &Path, home: &Path, agent_home: &Path) -> Sensitivity {
    let answers = INDEX.ask(&Starts::of(bytes(path), bytes(home), bytes(agent_home)), false);
    let why = |row: Option<&Row>| row.map(|row| row.why);
    Sensitivity { read: why(answers.read()), write: why(answers.write()), plants: why(answers.plants()) }
}

/// What a command has to know of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is a secret, or a folder of secrets.
    Secret,
    /// What is written there is run or trusted, or tools do not write it.
    Startup,
}

/// The same for a path in a command, which may hold living globs and unknown parts (`text.rs`): what is secret if the
/// glob is meant for a secret. Whole parts of the system, such as `/usr`, are no kind here.
pub(crate) fn kind(path: &str, home: &str, agent_home: &str) -> Option<Kind> {
    let starts = Starts::of(path.as_bytes(), home.as_bytes(), agent_home.as_bytes());
    let answers = INDEX.ask(&starts, text::has_glob(path));
    if answers.is_secret() {
        return Some(Kind::Secret);
    }
    let narrow = |row: Option<&Row>| row.is_some_and(|row| !row.is(BROAD));
    (narrow(answers.write()) || narrow(answers.plants())).then_some(Kind::Startup)
}

/// Why reading all that is below the folder `path` discloses a secret: for `~/.ssh`, for a home, for `/etc`.
///
/// Takes what [`classify`] takes. Names that are secret in any folder (`.env`) are not looked for: nobody knows whether
/// they are there.
pub fn secrets_below(path: &Path, home: &Path, agent_home: &Path) -> Option<&'static str> {
    let (path, home, agent_home) = (bytes(path), bytes(home), bytes(agent_home));
    let whole = trimmed(path);
    let above = |folder: &[u8]| below(trimmed(folder), whole).is_some();
    if above(home) {
        return Some("holds a home with its keys and passwords");
    }
    if above(agent_home) {
        return Some("holds the agent's own credentials");
    }
    let starts = Starts::of(path, home, agent_home);
    let rows = |what: u8| INDEX.rows.iter().filter(move |row| row.is(what));
    if rows(OPEN).any(|row| starts.rests(row.at).any(|rest| row.hit(rest, false).is_some())) {
        return None;
    }
    let above = |row: &Row, rest: &[u8]| !row.is(BROAD) && row.lies_below(rest);
    let row = rows(R | T).find(|row| {
        let is_home = |rest: &[u8]| rest.is_empty() && matches!(row.at, At::Home | At::Agent);
        starts.rests(row.at).any(|rest| is_home(rest) || row.hit(rest, false).is_some() || above(row, rest))
    });
    row.map(|row| row.why)
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}
