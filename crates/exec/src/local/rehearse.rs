//! Running a command against a stand-in for the workspace; see [`crate::rehearsal`].
//!
//! The command runs in the sandbox: the rest of the machine is read-only, secrets are hidden, nothing is reached over
//! the network. So what it changed in the stand-in is all it changed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hermes_core::{CancellationToken, Command, EnvironmentError, Redactor, Rehearsal, Rehearsed};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::committed::{CommittedRehearsal, lock};
use super::{LocalEnvironment, Sandbox, end};
use crate::files::private_folder;
use crate::rehearsal::{Changes, Diff, Method, Mount, Stage};
use crate::sandbox::{Backing, Confinement, Mechanism, Network, WritableRoot, preflight};

/// What is copied at most where overlays cannot be mounted.
const COPY: Method = Method::Copy { most_bytes: 1 << 30, most_files: 100_000 };
/// Bytes of differences that are shown at most.
const LONGEST_DIFF: usize = 200_000;
/// Columns for which a summary is laid out.
const COLUMNS: usize = 76;

/// How rehearsals are set up.
#[derive(Clone)]
pub struct RehearsalSetup {
    /// Private folders for stand-ins. The first that lies outside of the workspace is used: no overlay can be kept
    /// within what it covers.
    pub stages: Vec<PathBuf>,
    /// A private folder for what can be taken back. Where it lies in the workspace, no command sees it.
    pub undo: PathBuf,
    /// Files and folders that a command must not see, asked for before each.
    pub hidden: Arc<dyn Fn() -> Vec<PathBuf> + Send + Sync>,
    /// Masks secrets in what is written down.
    pub redactor: Option<Arc<dyn Redactor>>,
}

impl fmt::Debug for RehearsalSetup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RehearsalSetup").field("stages", &self.stages).finish_non_exhaustive()
    }
}

/// Where and how a command is rehearsed.
#[derive(Debug)]
pub(super) struct Rehearsals {
    setup: RehearsalSetup,
    /// What confines them; found out when somebody wants to know, because trying takes its time.
    mechanism: OnceCell<Option<Mechanism>>,
}

impl Rehearsals {
    pub(super) fn new(setup: RehearsalSetup) -> Self {
        Self { setup, mechanism: OnceCell::new() }
    }

    /// An error where no sandbox shows a command another workspace.
    pub(super) async fn mechanism(&self) -> Result<Mechanism, String> {
        let found = self.mechanism.get_or_try_init(|| {
            blocking(|| {
                let preflight = preflight();
                // Only these have a view of their own.
                let own_view = [Mechanism::Namespaces, Mechanism::Bubblewrap];
                Ok(own_view.into_iter().find(|mechanism| preflight.works(*mechanism)))
            })
        });
        let none = || "no sandbox shows a command another workspace here (hermes sandbox check)".to_owned();
        found.await?.ok_or_else(none)
    }

    fn confinement(
        &self,
        mechanism: Mechanism,
        mount: Mount,
        scratch: &Path,
        sandbox: Option<&Sandbox>,
    ) -> Confinement {
        let (at, backing) = match mount {
            Mount::Overlay { at, upper, work } => (at, Backing::Overlay { upper, work }),
            Mount::Bind { at, source } => (at, Backing::Source(source)),
        };
        let mut confinement =
            sandbox.map_or_else(|| Confinement::new(mechanism), |sandbox| sandbox.confinement.clone());
        confinement.hidden.extend((self.setup.hidden)());
        // A cover within a covered folder would only say that something is there.
        if !confinement.hidden.iter().any(|hidden| self.setup.undo.starts_with(hidden)) {
            confinement.hidden.push(self.setup.undo.clone());
        }
        confinement.mechanism = mechanism;
        confinement.network = Network::Off;
        confinement.readable.push(scratch.to_owned());
        confinement.writable = vec![WritableRoot { path: at, backing }];
        confinement
    }

    /// Makes the folders that a rehearsal of `workspace` needs.
    fn folders(&self, workspace: &Path) -> Result<Folders, String> {
        let real = |folder: &Path| {
            private_folder(folder)?;
            std::fs::canonicalize(folder).map_err(|error| format!("cannot open {}: {error}", folder.display()))
        };
        let undo_is_inside = real(&self.setup.undo)?.starts_with(workspace);
        let mut why = format!("no folder for stand-ins lies outside of the workspace {}", workspace.display());
        for folder in &self.setup.stages {
            match real(folder) {
                Ok(stages) if !stages.starts_with(workspace) => return Ok(Folders { stages, undo_is_inside }),
                Ok(_) => {}
                Err(error) => why = error,
            }
        }
        Err(why)
    }
}

impl LocalEnvironment {
    pub(super) async fn rehearse_command(
        &self,
        command: Command,
        cancel: &CancellationToken,
    ) -> Result<Rehearsed, EnvironmentError> {
        let Some(rehearsals) = &self.rehearsals else {
            return Err(EnvironmentError::CannotDo { backend: "local".into(), what: "rehearse commands here" });
        };
        let mechanism = rehearsals.mechanism().await.map_err(EnvironmentError::NotPrepared)?;
        let workspace = self.first.cwd.clone();
        let directory = self.directory(command.cwd.as_deref())?;
        if !directory.starts_with(&workspace) {
            return Err(EnvironmentError::NotPrepared(format!(
                "a rehearsal runs in the workspace {}, and {} is outside of it",
                workspace.display(),
                directory.display()
            )));
        }
        let folders = rehearsals.folders(&workspace).map_err(EnvironmentError::NotPrepared)?;
        let way = Way { rehearsals, mechanism, workspace: &workspace, stages: &folders.stages };
        let mut no_overlay = "overlays need namespaces of our own".to_owned();
        if mechanism == Mechanism::Namespaces {
            match self.rehearse_with(Method::Overlay, &way, command.clone(), cancel).await {
                // Nothing has run: the stand-in could not be mounted, so a copy takes its place.
                Err(EnvironmentError::NotPrepared(why)) => no_overlay = why,
                rehearsed => return rehearsed,
            }
        }
        if folders.undo_is_inside {
            // What is hidden from the command would be copied for it.
            return Err(EnvironmentError::NotPrepared(format!(
                "the workspace {} holds the agent's own folders, so no copy of it is made, and no overlay can be \
                 mounted: {no_overlay}",
                workspace.display()
            )));
        }
        self.rehearse_with(COPY, &way, command, cancel).await
    }

    async fn rehearse_with(
        &self,
        method: Method,
        way: &Way<'_>,
        command: Command,
        cancel: &CancellationToken,
    ) -> Result<Rehearsed, EnvironmentError> {
        let Way { rehearsals, mechanism, workspace, stages } = *way;
        let (at, base) = (workspace.to_owned(), stages.to_owned());
        let opened = blocking(move || {
            let stage = Stage::open(&at, &base, method).map_err(|error| error.to_string())?;
            Ok((stage.mount(), Kept(Arc::new(Mutex::new(Some(stage))))))
        });
        let (mount, stage) = opened.await.map_err(EnvironmentError::NotPrepared)?;
        let scratch = std::fs::canonicalize(self.scratch.path()).map_err(EnvironmentError::NoScratch)?;
        let confinement = rehearsals.confinement(mechanism, mount, &scratch, self.sandbox.as_ref());
        let script = match &rehearsals.setup.redactor {
            Some(redactor) => redactor.redact(&command.script).into_owned(),
            None => command.script.clone(),
        };
        let (finished, supervised) = self.run_confined(command, cancel, confinement).await?;
        // What it left running could still write; and nothing may hold the stand-in when it is looked at.
        let left = end(&self.server, &supervised, Duration::ZERO).await;
        if supervised.was_killed() {
            let why = "its supervisor was ended, so nobody can tell what it did";
            return Err(EnvironmentError::Lost(std::io::Error::other(why)));
        }
        if left > 0 {
            let why = format!("{left} of its processes would not end, so nobody can tell what it did");
            return Err(EnvironmentError::Lost(std::io::Error::other(why)));
        }
        let looked = stage.with(|stage| match stage {
            Some(stage) => stage.changes().map_err(|error| error.to_string()),
            None => Ok(Changes::default()),
        });
        // It has run, so this must not look as if it had not.
        let changes = looked.await.map_err(|why| EnvironmentError::Lost(std::io::Error::other(why)))?;
        let rehearsal = LocalRehearsal { stage, changes, undo: rehearsals.setup.undo.clone(), command: script };
        Ok(Rehearsed { finished, rehearsal: Arc::new(rehearsal) })
    }
}

/// Where and by what a command is rehearsed.
struct Way<'a> {
    rehearsals: &'a Rehearsals,
    mechanism: Mechanism,
    workspace: &'a Path,
    stages: &'a Path,
}

/// Where a rehearsal keeps what is its own.
struct Folders {
    /// Outside of the workspace.
    stages: PathBuf,
    undo_is_inside: bool,
}

/// A stage until it is committed or thrown away. What it holds may be much, so also a call that is dropped removes it
/// where that keeps nobody waiting.
#[derive(Debug)]
struct Kept(Arc<Mutex<Option<Stage>>>);

impl Kept {
    async fn with<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Option<Stage>) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let stage = Arc::clone(&self.0);
        blocking(move || job(&mut stage.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let stage = std::mem::take(&mut self.0);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(stage))),
            Err(_) => drop(stage),
        }
    }
}

/// See [`hermes_core::Rehearsal`].
#[derive(Debug)]
struct LocalRehearsal {
    stage: Kept,
    changes: Changes,
    undo: PathBuf,
    /// What is written down of the command.
    command: String,
}

#[async_trait]
impl Rehearsal for LocalRehearsal {
    fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn lines(&self) -> Vec<String> {
        self.changes.lines(COLUMNS)
    }

    fn summary(&self) -> Value {
        json!(self.changes.totals)
    }

    async fn diff(&self) -> String {
        let changes = self.changes.clone();
        let shown = self.stage.with(move |stage| {
            let Some(stage) = stage else { return Ok(String::new()) };
            let mut text = String::new();
            for (at, entry) in changes.entries.iter().enumerate() {
                if text.len() > LONGEST_DIFF {
                    text += &format!("… {} more paths\n", changes.entries.len() - at);
                    break;
                }
                match stage.diff(entry) {
                    Ok(text_diff @ Diff::Text { .. }) => text += &text_diff.to_string(),
                    Ok(summary @ Diff::Summary { .. }) => text += &format!("{}: {summary}", entry.path.display()),
                    Err(error) => text += &format!("{error}\n"),
                }
            }
            Ok(text)
        });
        shown.await.unwrap_or_else(|why| why)
    }

    async fn commit(&self) -> Result<String, String> {
        let (undo, command, lines) = (self.undo.clone(), self.command.clone(), self.lines());
        let committed = self.stage.with(move |stage| {
            let Some(open) = stage.take() else { return Err("it was committed or thrown away before".into()) };
            private_folder(&undo)?;
            let _lock = lock(&undo)?;
            let committed = open.commit(&undo).map_err(|error| error.to_string())?;
            let name = committed.undo.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
            let workspace = open.workspace().to_owned();
            let note = CommittedRehearsal { name: name.clone(), workspace, command, at: SystemTime::now(), lines };
            // Without its note it can still be taken back from its folder; the commit itself is done.
            let _ = note.remember(&undo);
            Ok(name)
        });
        committed.await
    }

    async fn throw_away(&self) {
        // Dropping does the same; this waits until it is done.
        let _ = self.stage.with(|stage| Ok(stage.take().is_some())).await;
    }
}

async fn blocking<T: Send + 'static>(job: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(job).await.unwrap_or_else(|error| Err(error.to_string()))
}
