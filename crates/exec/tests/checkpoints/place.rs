//! A home with a project in it, and turns that change files there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hermes_core::{
    Changes, Checkpointer as _, CommandPlace, HookCall, JsonMap, Judge, JudgeRequest, ToolCx, ToolName, ToolSpec,
    Touches, Verdict,
};
use hermes_exec::LocalEnvironment;
use hermes_exec::checkpoints::{Checkpoint, Checkpoints, Gone, Limits, Purpose, Recorder};

/// The conversation.
pub(crate) const TASK: &str = "a conversation";

pub(crate) struct Here {
    _base: tempfile::TempDir,
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) recorder: Recorder,
    pub(crate) checkpoints: Checkpoints,
    cx: ToolCx,
    turns: AtomicU64,
}

/// Says of every command that it may change anything.
struct Nobody;

impl Judge for Nobody {
    fn judge(&self, _: &JudgeRequest<'_>) -> Verdict {
        Verdict::Allow
    }

    fn changes(&self, command: &str, _: &CommandPlace<'_>) -> Changes {
        match command.strip_prefix("only ") {
            Some(path) => Changes::Only(vec![path.into()]),
            None if command == "ls" => Changes::Nothing,
            None => Changes::Anything(Vec::new()),
        }
    }
}

impl Here {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().canonicalize().unwrap().join("home");
        let project = home.join("code").join("p");
        fs::create_dir_all(&project).unwrap();
        let environment = LocalEnvironment::new(&project, &home, std::env::vars_os(), &[]).unwrap();
        let own = home.join(".hermes");
        let checkpoints = Checkpoints::new(&own.join("checkpoints"), &home, &[own], limits);
        let cx = ToolCx { judge: Some(Arc::new(Nobody)), ..ToolCx::of_a_program(Arc::new(environment)) };
        let recorder = Recorder::new(checkpoints.clone(), None);
        Self { _base: base, home, project, recorder, checkpoints, cx, turns: AtomicU64::new(0) }
    }

    /// With one more folder that belongs to Hermes.
    pub(crate) fn with_own(self, folder: &Path) -> Self {
        let own = [self.home.join(".hermes"), folder.to_path_buf()];
        let checkpoints = Checkpoints::new(&own[0].join("checkpoints"), &self.home, &own, Limits::default());
        let recorder = Recorder::new(checkpoints.clone(), None);
        Self { recorder, checkpoints, ..self }
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.project.join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok()
    }

    /// A call that is about to do this.
    pub(crate) async fn before(&self, turn: u64, touches: &Touches) -> Result<(), String> {
        let name = ToolName::new("terminal").unwrap();
        let (spec, arguments) = (ToolSpec::new(name, serde_json::json!({})), JsonMap::new());
        let call = HookCall { call_id: "call", task: TASK, turn, spec: &spec, arguments: &arguments };
        self.recorder.before(call, touches, &self.cx).await
    }

    /// A turn in which a command that may do anything does this.
    pub(crate) fn turn(&self, does: impl FnOnce(&Self)) {
        self.turn_with(&[Touches::executing("make")], does).unwrap();
    }

    /// A turn in which these calls together do this.
    pub(crate) fn turn_with(&self, calls: &[Touches], does: impl FnOnce(&Self)) -> Result<(), String> {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        let runtime = runtime();
        let mut kept = Ok(());
        for touches in calls {
            kept = kept.and(runtime.block_on(self.before(turn, touches)));
        }
        does(self);
        runtime.block_on(self.recorder.settle(TASK)).unwrap();
        kept
    }

    /// The same; the error is what is said when the turn is over.
    pub(crate) fn turn_until_settled(&self, does: impl FnOnce(&Self)) -> Result<(), String> {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        let runtime = runtime();
        runtime.block_on(self.before(turn, &Touches::executing("make"))).unwrap();
        does(self);
        runtime.block_on(self.recorder.settle(TASK))
    }

    /// A turn in which each call does one of these, right after it was kept.
    pub(crate) fn turn_in_steps(&self, calls: &[Touches], does: &[&dyn Fn(&Self)]) {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        let runtime = runtime();
        for (touches, does) in calls.iter().zip(does) {
            runtime.block_on(self.before(turn, touches)).unwrap();
            does(self);
        }
        runtime.block_on(self.recorder.settle(TASK)).unwrap();
    }

    /// A turn of another process.
    pub(crate) fn turn_of(&self, recorder: &Recorder, does: impl FnOnce(&Self)) {
        self.turn_of_command(recorder, "make", does);
    }

    /// The same, in which this command runs.
    pub(crate) fn turn_of_command(&self, recorder: &Recorder, command: &str, does: impl FnOnce(&Self)) {
        let (spec, arguments) =
            (ToolSpec::new(ToolName::new("terminal").unwrap(), serde_json::json!({})), JsonMap::new());
        let call = HookCall { call_id: "call", task: "another", turn: 1, spec: &spec, arguments: &arguments };
        let runtime = runtime();
        runtime.block_on(recorder.before(call, &Touches::executing(command), &self.cx)).unwrap();
        does(self);
        runtime.block_on(recorder.settle("another")).unwrap();
    }

    pub(crate) fn list(&self) -> Vec<Checkpoint> {
        self.checkpoints.list(None).unwrap()
    }

    pub(crate) fn last(&self) -> Checkpoint {
        self.list().pop().unwrap()
    }

    fn latest(&self, fits: impl Fn(&Checkpoint) -> bool) -> Checkpoint {
        self.list().into_iter().rev().find(|one| !one.is_undone && fits(one)).unwrap()
    }

    pub(crate) fn undo(&self) -> Gone {
        let turn = self.latest(|one| matches!(one.purpose, Purpose::Turn | Purpose::Restore));
        self.checkpoints.go(self.checkpoints.way_back(&turn).unwrap()).unwrap()
    }

    pub(crate) fn redo(&self) -> Gone {
        let undo = self.latest(|one| one.purpose == Purpose::Undo);
        self.checkpoints.go(self.checkpoints.way_back(&undo).unwrap()).unwrap()
    }

    pub(crate) fn restore(&self, to: &Checkpoint) -> Gone {
        self.checkpoints.go(self.checkpoints.way_to(to, &[]).unwrap()).unwrap()
    }

    /// Everything in the project: what each path is, its mode, and its content.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        tree(&self.project)
    }
}

pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let content = if metadata.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
        } else {
            fs::read(&path).unwrap()
        };
        all.insert(path.strip_prefix(root).unwrap().to_path_buf(), (metadata.mode(), content));
    }
    all
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
