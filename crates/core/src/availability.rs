//! Whether a tool can be used here, and who is asked about it.
//!
//! A tool names what it needs (variables, programs) in its [`crate::ToolSpec`] and may add a [`Check`] of its own. The
//! tricky idea is the check's id: tools that name the same id share one answer, so that fourteen browser tools look for
//! the browser once.

use std::fmt;
use std::sync::Arc;

/// Whether a tool can be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Available,
    /// It cannot.
    Missing {
        /// What is not there, for example `chromium not found`.
        reason: String,
        /// What to do about it, for example `apt install chromium`.
        fix: String,
    },
}

impl Availability {
    /// Not usable, because of `reason`; `fix` makes it so.
    pub fn missing(reason: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Missing { reason: reason.into(), fix: fix.into() }
    }

    /// Whether it is [`Availability::Available`].
    pub fn is_available(&self) -> bool {
        *self == Self::Available
    }
}

/// A question about the surroundings that several tools may share.
#[derive(Clone)]
pub struct Check {
    id: Arc<str>,
    slow: bool,
    probe: Probe,
}

type Probe = Arc<dyn Fn() -> Availability + Send + Sync>;

impl Check {
    /// A question that is answered at once, for example whether a file exists. Checks of one `id` share one answer.
    pub fn quick(id: &str, probe: impl Fn() -> Availability + Send + Sync + 'static) -> Self {
        Self { id: id.into(), slow: false, probe: Arc::new(probe) }
    }

    /// A question that may take long, such as asking a daemon or a server. It is asked on a thread of its own, and the
    /// last answer holds meanwhile.
    pub fn slow(id: &str, probe: impl Fn() -> Availability + Send + Sync + 'static) -> Self {
        Self { id: id.into(), slow: true, probe: Arc::new(probe) }
    }

    /// What tells it from other checks.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the answer may take long.
    pub fn is_slow(&self) -> bool {
        self.slow
    }

    /// Asks. May block for as long as the question takes, and may panic: the asker is prepared for both.
    pub fn ask(&self) -> Availability {
        (self.probe)()
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("id", &self.id).field("slow", &self.slow).finish_non_exhaustive()
    }
}

/// What tools may need of the machine, as seen by whoever started this process.
pub trait Surroundings: Send + Sync {
    /// Whether an environment variable is set and not empty.
    fn has_variable(&self, name: &str) -> bool;

    /// Whether a program is found, by name on the search path or by its path.
    fn has_program(&self, name: &str) -> bool;
}
