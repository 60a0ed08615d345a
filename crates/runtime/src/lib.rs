//! Choose and call.
//!
//! Two questions are answered here. *What does this model get to see?* A [`Registry`] holds every tool there is, a
//! [`Selection`] names the toolsets that are wanted, and [`definitions::build`] is the pure function from both to the
//! sorted list that is sent. *What happens to a call?* Every call, whoever makes it, goes through the one list of
//! steps in [`dispatch`].
//!
//! What this crate refuses to do: name a single tool, know a backend, talk to a model or a person. It asks ports.
//!
//! The one tricky idea: nothing here looks at text to find out what happened. A call's [`Status`] is decided where the
//! thing happens and travels with the result.
//!
//! Start reading at [`dispatch::CHAIN`], then [`registry`] and [`definitions`].
#![warn(missing_docs)]

pub mod availability;
pub mod definitions;
pub mod dispatch;
pub mod guardrails;
pub mod names;
pub mod parallel;
pub mod plain_judge;
pub mod profile;
pub mod registry;
pub mod task;
pub mod tool_search;
pub mod toolset;

pub use availability::Checks;
pub use definitions::{Definitions, Shown, Wanted};
pub use dispatch::{ApprovalMode, Budget, CallReport, Change, Dispatcher, Hooks, Observer, Scope, Silent, Status};
pub use guardrails::Guardrails;
pub use plain_judge::PlainJudge;
pub use profile::{Profile, Stripped};
pub use registry::{Covered, OfferRefused, Owner, OwnerKind, Registry, Snapshot};
pub use task::{Approvals, Task};
pub use toolset::{CustomToolset, Resolved, Selection, UnknownToolset, Verdict};
