//! What the judge is shown: a call with its paths as they lead at this moment.

use std::path::{Path, PathBuf};

use hermes_core::{Environment, JudgeRequest, ToolSpec, Touches};

use crate::dispatch::Call;
use crate::task::Task;

/// A look at the files, all of them through links.
pub(super) struct Looked {
    pub(super) touches: Touches,
    root: PathBuf,
    cwd: PathBuf,
    carried: String,
    own_folders: Vec<PathBuf>,
}

impl Looked {
    /// For a call that names no path: nobody has to wait for the disk.
    pub(super) fn at_nothing(task: &Task, stated: &Touches) -> Self {
        Self {
            touches: stated.clone(),
            root: task.root().to_owned(),
            cwd: task.environment.cwd(),
            carried: carried(task, stated),
            own_folders: Vec::new(),
        }
    }

    /// # Errors
    /// Which path cannot be resolved, and why.
    pub(super) async fn through_links(task: &Task, stated: &Touches) -> Result<Self, String> {
        let environment = &*task.environment;
        let mut touches = stated.clone();
        for path in touches.reads.iter_mut().chain(&mut touches.writes).chain(&mut touches.runs_in) {
            *path = real(environment, path).await?;
        }
        Ok(Self {
            touches,
            root: real(environment, task.root()).await?,
            cwd: real(environment, &environment.cwd()).await?,
            carried: carried(task, stated),
            own_folders: vec![real(environment, environment.scratch()).await?],
        })
    }

    /// The call as the judge gets it.
    pub(super) fn request<'a>(
        &'a self,
        call: &'a Call<'_>,
        spec: &'a ToolSpec,
        stated: &'a Touches,
    ) -> JudgeRequest<'a> {
        JudgeRequest {
            spec,
            arguments: &call.arguments,
            stated,
            touches: &self.touches,
            root: &self.root,
            cwd: &self.cwd,
            carried: &self.carried,
            shares_our_files: call.scope.task.environment.shares_our_files(),
            own_folders: &self.own_folders,
        }
    }
}

/// Of no interest to a call that runs no command.
fn carried(task: &Task, stated: &Touches) -> String {
    stated.command.as_ref().map(|_| task.environment.carried()).unwrap_or_default()
}

async fn real(environment: &dyn Environment, path: &Path) -> Result<PathBuf, String> {
    environment.real_path(path).await.map_err(|error| error.to_string())
}
