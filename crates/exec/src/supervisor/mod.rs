//! One small process between us and each command, which sees to it that nothing of the command outlives it unwanted.
//!
//! ```text
//! hermes ──► fork server ──► supervisor ──► bash ──► whatever it starts
//!    └────────── socket ─────────┘
//! ```
//!
//! The fork server ([`ForkServer`]) is a copy of this process made once; it forks a supervisor for each command. The
//! supervisor ([`supervise`]) owns everything below it and tells us over a socket what happens. When we end, however
//! that comes about, the socket closes, and the supervisor ends its command.

mod child;
mod client;
mod connection;
mod fork_server;
pub(crate) mod group;
pub(crate) mod log;
pub(crate) mod protocol;
mod supervise;
pub(crate) mod tree;
mod watch;
pub(crate) mod worker;

pub(crate) use client::{Supervised, Wiring};
pub use fork_server::ForkServer;
