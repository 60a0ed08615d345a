//! What the tests of Hermes stand on, so that no test needs a network, an API key, a real home directory or patience.
//!
//! Each part stands in for one neighbour of the code under test: [`ModelServer`] for a provider, [`FakeEnvironment`]
//! for the machine, [`ScriptedPerson`] for whoever answers questions, [`FakeTool`] for a tool with a known behaviour,
//! and [`TempHome`] for the folders that the binary believes to be its own.
//!
//! What this crate refuses to do: be a normal dependency of anything (`tests/workspace.rs` checks that), decide what
//! is right (assertions belong to the test that makes them), and hide a mistake of the test: misuse panics where it
//! happens, with the caller's line.
//!
//! The one tricky idea is that nothing here waits by the clock. What a test would sleep for is an event it can wait
//! for instead: a request that arrived ([`ModelServer::wait_for_requests`]), calls that met
//! ([`FakeTool::wait_for_others`]). Each such wait has a deadline of its own, so a broken test fails and never hangs.
//!
//! Start reading at [`model_server`]; the other files are a page each.
#![warn(missing_docs)]

pub mod environment;
pub mod home;
pub mod hooks;
pub mod measure;
pub mod model_server;
pub mod person;
pub mod rehearsal;
pub mod reports;
pub mod surroundings;
pub mod tools;

pub use environment::{FakeEnvironment, exited};
pub use home::TempHome;
pub use model_server::{Call, ModelServer, Reply, Request, unused_base_url};
pub use person::ScriptedPerson;
pub use rehearsal::{FakeRehearsal, Fate};
pub use surroundings::FakeSurroundings;
pub use tools::{FakeCall, FakeTool};

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long anything here waits for an event of the test before it says that the event did not come. Generous, because
/// only a failing test ever gets there.
const PATIENCE: Duration = Duration::from_secs(30);

/// Locks in spite of poison: a test that already failed should report its own panic, not ours.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
