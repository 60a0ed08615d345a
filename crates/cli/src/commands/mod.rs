//! One file a command.

pub(crate) mod approvals;
pub(crate) mod chat;
pub(crate) mod checkpoints;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod processes;
pub(crate) mod rehearsals;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod tools;
pub(crate) mod toolsets;
pub(crate) mod tour;
