//! A machine whose variables and programs a test decides.

use std::collections::HashSet;
use std::sync::Mutex;

use hermes_core::Surroundings;

use crate::lock;

/// Has what it was given; [`FakeSurroundings::complete`] has everything.
#[derive(Debug, Default)]
pub struct FakeSurroundings {
    complete: bool,
    there: Mutex<HashSet<String>>,
}

impl FakeSurroundings {
    /// Has nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has every variable and every program.
    pub fn complete() -> Self {
        Self { complete: true, ..Self::default() }
    }

    /// From now on there is a variable, or a program, called `name`.
    pub fn add(&self, name: &str) {
        lock(&self.there).insert(name.to_owned());
    }

    /// From now on there is none.
    pub fn remove(&self, name: &str) {
        lock(&self.there).remove(name);
    }

    fn has(&self, name: &str) -> bool {
        self.complete || lock(&self.there).contains(name)
    }
}

impl Surroundings for FakeSurroundings {
    fn has_variable(&self, name: &str) -> bool {
        self.has(name)
    }

    fn has_program(&self, name: &str) -> bool {
        self.has(name)
    }
}
