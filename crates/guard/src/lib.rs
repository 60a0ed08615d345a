//! Judge: what a command would do, who must be asked, and what may be read, fetched and shown.
//!
//! [`judge`] reads a command the way bash does and says, without running anything, which effects it would have on which
//! targets. [`Guard`] is the [`hermes_core::Judge`] that holds this against rules and approvals ([`policy`]). Beside it live
//! what decides about paths ([`paths`]), addresses ([`url_policy`]), secrets in text ([`redact`]) and instructions that
//! somebody smuggled into it ([`injection`]). The crate refuses to run anything and to ask anybody.
//!
//! The one tricky idea: what nobody can know stays visible. A half-known text carries its holes as characters of a private
//! plane through every expansion, filter and model (`text`), and a hole that reaches a place where it would run is
//! dangerous. Unknown is never safe, and known is never guessed.
//!
//! Start reading at `eval`, then `programs`; `docs/decisions/shell-grammar.md` says why the grammar is ours.
//!
//! It is no wall: it reads what a command says, not what the programs do inside. See `SECURITY.md`.
#![allow(clippy::match_same_arms, reason = "what programs do is written as tables; a row stays with its kin")]
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "names of files mean what they are on Linux")]
#![allow(clippy::format_collect, clippy::needless_for_each, reason = "short texts, read more easily this way")]
#![allow(clippy::unnecessary_wraps, reason = "filters in one table have one type")]

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
