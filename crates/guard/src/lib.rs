//! Judge: what a command would do, who must be asked, and what may be read, fetched and shown.

mod code;
mod escapes;
mod eval;
mod finding;
mod guard;
pub mod injection;
pub mod paths;
mod place;
pub mod policy;
mod programs;
pub mod redact;
mod sensitive;
mod shell;
mod text;
pub mod url_policy;
mod world;

pub use eval::is_secret_name;
pub use finding::{Effect, Finding, TargetClass, Verdict};
pub use guard::{CommandVerdict, Guard};
pub use world::{World, no_links};

/// What a command would do and how that is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Judgement {
    /// The worst of the findings.
    pub verdict: Verdict,
    /// All of them, in the order in which they would happen.
    pub findings: Vec<Finding>,
}

impl Judgement {
    fn of(findings: Vec<Finding>) -> Self {
        let verdict = findings.iter().map(|finding| finding.verdict).max().unwrap_or_default();
        Self { verdict, findings }
    }
}

/// Judges a command that bash would run.
pub fn judge(command: &str, world: &World) -> Judgement {
    Judgement::of(eval::read(command, world, false).findings)
}
