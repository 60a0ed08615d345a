//! A rehearsal that only remembers what became of it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hermes_core::Rehearsal;
use serde_json::{Value, json};

use crate::lock;

/// What became of a [`FakeRehearsal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nobody has decided yet.
    Open,
    /// It is true now.
    Committed,
    /// It never happened.
    ThrownAway,
}

/// Says that it deleted `build/old.o`.
#[derive(Debug)]
pub struct FakeRehearsal {
    empty: bool,
    /// Why it cannot be committed, if it cannot.
    hindered: Option<String>,
    fate: Mutex<Fate>,
}

impl FakeRehearsal {
    /// One that waits.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { empty: false, hindered: None, fate: Mutex::new(Fate::Open) })
    }

    /// One that changed nothing.
    pub fn empty() -> Arc<Self> {
        Arc::new(Self { empty: true, hindered: None, fate: Mutex::new(Fate::Open) })
    }

    /// One whose commit fails.
    pub fn hindered(why: &str) -> Arc<Self> {
        Arc::new(Self { empty: false, hindered: Some(why.to_owned()), fate: Mutex::new(Fate::Open) })
    }

    /// What became of it.
    pub fn fate(&self) -> Fate {
        *lock(&self.fate)
    }
}

#[async_trait]
impl Rehearsal for FakeRehearsal {
    fn is_empty(&self) -> bool {
        self.empty
    }

    fn lines(&self) -> Vec<String> {
        vec!["deleted    1 file   build/old.o".into()]
    }

    fn summary(&self) -> Value {
        json!({ "files_deleted": u8::from(!self.empty) })
    }

    async fn diff(&self) -> String {
        "--- build/old.o\n".into()
    }

    async fn commit(&self) -> Result<String, String> {
        if let Some(why) = &self.hindered {
            return Err(why.clone());
        }
        *lock(&self.fate) = Fate::Committed;
        Ok("undo-1".into())
    }

    async fn throw_away(&self) {
        *lock(&self.fate) = Fate::ThrownAway;
    }
}
