//! What a command did to a stand-in for the workspace, waiting for somebody to commit it or throw it away.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::Finished;

/// A command that was rehearsed.
#[derive(Clone, Debug)]
pub struct Rehearsed {
    /// How it ended and what it printed.
    pub finished: Finished,
    /// What it did.
    pub rehearsal: Arc<dyn Rehearsal>,
}

/// What a rehearsed command did. Dropping it throws it away.
#[async_trait]
pub trait Rehearsal: Send + Sync + std::fmt::Debug {
    /// Nothing is different from before.
    fn is_empty(&self) -> bool;

    /// What is different, a few lines for people.
    fn lines(&self) -> Vec<String>;

    /// The same for programs.
    fn summary(&self) -> Value;

    /// The differences in text, bounded.
    async fn diff(&self) -> String;

    /// Carries it over to the workspace, or says why that cannot be done; then the workspace is as it was. Answers the
    /// name under which it can be taken back.
    async fn commit(&self) -> Result<String, String>;

    /// Leaves no trace of it.
    async fn throw_away(&self);
}

/// A rehearsal in the answer of a tool: whoever dispatched the call decides what becomes of it.
#[derive(Clone, Debug)]
pub struct Pending(pub Arc<dyn Rehearsal>);

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
