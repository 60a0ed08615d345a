//! Run: where commands run and files live.
//!
//! This crate fills the [`hermes_core::Environment`] port. It knows processes, signals and file systems; it refuses to
//! know models, tools or approvals, and it never decides *whether* something may run.
//!
//! The one tricky idea: a command runs exactly as written, as the argument of `bash -c`. Everything we want to know
//! about the shell afterwards (today its directory) travels through a private memory file that bash reads as its
//! start-up file and writes back on exit, so nothing of ours is ever mixed into the command or its output
//! (see [`local`]).
//!
//! Start reading at [`LocalEnvironment`]; [`environment_variables`] is the only place where a child's environment is
//! built, [`capture`] decides what is kept of an endless output, [`files`] is the only code that writes files,
//! [`sandbox`] is the wall around a command, [`sudo`] brings sudo its password, [`conformance`] is what every backend must do.

mod beneath;
mod capture;
pub mod checkpoints;
pub mod conformance;
pub mod environment_variables;
pub mod files;
mod isolated;
mod layout;
pub mod local;
mod plain;
pub mod processes;
mod readiness;
pub mod rehearsal;
pub mod sandbox;
pub mod screen;
pub mod sudo;
mod supervisor;
mod temporary;

pub use local::LocalEnvironment;
pub use supervisor::ForkServer;
pub use temporary::Temporary;
