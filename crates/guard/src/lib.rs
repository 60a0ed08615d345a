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
    Judgement::of(eval::findings(command, world, None))
}

/// The same, with the simple commands that would run, wrappers taken off and words resolved: what rules are about.
pub fn judge_parts(command: &str, world: &World) -> (Judgement, Vec<String>) {
    let mut commands = Vec::new();
    let findings = eval::findings(command, world, Some(&mut commands));
    (Judgement::of(findings), commands)
}

/// For tests that ask bash the same: whether the text is a script.
#[doc(hidden)]
pub fn parses(script: &str) -> Result<(), String> {
    shell::parse(&text::clean(script)).map(|_| ()).map_err(|error| error.to_string())
}

/// For tests that ask bash the same: the arguments of each call of `program`; `None` is a word of which a part is unknown.
#[doc(hidden)]
pub fn words_of(script: &str, program: &str, world: &World) -> Result<Vec<Vec<Option<String>>>, String> {
    let known = |word: String| {
        let word = text::unglob(&word);
        text::is_literal(&word).then_some(word)
    };
    let calls = eval::words_of(script, program, world).map_err(|error| error.to_string())?;
    Ok(calls.into_iter().map(|words| words.into_iter().map(known).collect()).collect())
}
