//! Carries a plan out as a whole, or not at all.
//!
//! Every step that was made is in a journal with its way back. If one fails, or somebody stops the call, all of them are
//! taken back, the last one first. A file that goes is only moved aside until everything else has worked, so that it
//! comes back as it was, with all that belongs to it.
//!
//! The steps run in a task of their own: whoever waits for the call may go away in the middle of it, and the files are
//! then nevertheless in one of two states.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{CancellationToken, Environment, FileError, FileErrorKind};

use super::plan::Step;
use crate::support::text::write_after;

/// Why nothing was changed, or what of it could not be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) why: String,
    /// What is not as it was, one sentence each.
    pub(crate) left: Vec<String>,
}

/// The way back of one step.
enum Undo {
    Write { path: PathBuf, before: Arc<Vec<u8>> },
    Remove { path: PathBuf, folders: Vec<PathBuf> },
    Rename { from: PathBuf, to: PathBuf, folders: Vec<PathBuf> },
}

/// Makes every step. Answers with the files that were to be removed and lie aside under another name, because they could
/// not be: that is said, and is no reason to take back what was done.
pub(crate) async fn apply(
    environment: Arc<dyn Environment>,
    cancel: CancellationToken,
    steps: Vec<Step>,
) -> Result<Vec<PathBuf>, Failure> {
    let work = tokio::spawn(async move { Journal::new(environment).run(&cancel, steps).await });
    work.await.unwrap_or_else(|error| {
        Err(Failure { why: error.to_string(), left: vec!["the files may be in any state".into()] })
    })
}

struct Journal {
    environment: Arc<dyn Environment>,
    done: Vec<Undo>,
    /// What lies aside.
    aside: Vec<PathBuf>,
}

impl Journal {
    fn new(environment: Arc<dyn Environment>) -> Self {
        Self { environment, done: Vec::new(), aside: Vec::new() }
    }

    async fn run(mut self, cancel: &CancellationToken, steps: Vec<Step>) -> Result<Vec<PathBuf>, Failure> {
        for step in steps {
            if cancel.is_cancelled() {
                return Err(self.back("stopped by the user".into()).await);
            }
            if let Err(error) = self.make(step).await {
                return Err(self.back(error.to_string()).await);
            }
        }
        let mut left = Vec::new();
        for aside in std::mem::take(&mut self.aside) {
            if self.environment.remove(&aside).await.is_err() {
                left.push(aside);
            }
        }
        Ok(left)
    }

    async fn make(&mut self, step: Step) -> Result<(), FileError> {
        let undo = match step {
            Step::Write { path, before, after } => {
                write_after(&*self.environment, &path, &before, &after).await?;
                Undo::Write { path, before }
            }
            Step::Create { path, bytes } => {
                let folders = self.environment.create(&path, &bytes).await?;
                Undo::Remove { path, folders }
            }
            Step::Rename { from, to } => {
                let folders = self.environment.rename(&from, &to).await?;
                Undo::Rename { from, to, folders }
            }
            Step::Remove { path } => {
                let aside = self.move_aside(&path).await?;
                self.aside.push(aside.clone());
                Undo::Rename { from: path, to: aside, folders: Vec::new() }
            }
        };
        self.done.push(undo);
        Ok(())
    }

    async fn move_aside(&self, path: &Path) -> Result<PathBuf, FileError> {
        loop {
            let name = format!(".hermes-{:016x}", RandomState::new().hash_one(path));
            let aside = path.with_file_name(name);
            match self.environment.rename(path, &aside).await {
                Err(error) if error.kind == FileErrorKind::Exists => {}
                done => return done.map(|_| aside),
            }
        }
    }

    /// Takes everything back.
    async fn back(self, why: String) -> Failure {
        let mut left = Vec::new();
        for undo in self.done.into_iter().rev() {
            let (undone, folders, what) = match undo {
                Undo::Write { path, before } => {
                    (self.environment.write(&path, &before).await.map(drop), Vec::new(), path)
                }
                Undo::Remove { path, folders } => (self.environment.remove(&path).await, folders, path),
                Undo::Rename { from, to, folders } => {
                    (self.environment.rename(&to, &from).await.map(drop), folders, from)
                }
            };
            if let Err(error) = undone {
                left.push(format!("{} could not be put back: {error}", what.display()));
            }
            for folder in folders {
                // One that somebody else uses by now stays.
                let _ = self.environment.remove(&folder).await;
            }
        }
        Failure { why, left }
    }
}
