//! What a checkpoint costs a turn, against the git program doing the same with `add`, `write-tree` and `commit-tree`.
//!
//! `cargo bench -p hermes-exec --bench checkpoints` prints a Markdown table of medians. A turn is both snapshots, of what was
//! there before and of what it left; ours and git's take turns on one tree, each with a store of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people who measure")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hermes_core::{Checkpointer as _, HookCall, JsonMap, ToolCx, ToolName, ToolSpec, Touches};
use hermes_exec::LocalEnvironment;
use hermes_exec::checkpoints::{self, Checkpoints, Recorder};
use hermes_testkit::measure::{in_turn, ratio, shown, timed};

/// Bytes of one file: what a source file has.
const FILE: usize = 6_000;

struct Here {
    base: tempfile::TempDir,
    project: PathBuf,
    checkpoints: Checkpoints,
    recorder: Recorder,
    cx: ToolCx,
    turns: AtomicU64,
    runtime: tokio::runtime::Runtime,
}

impl Here {
    fn new(files: usize) -> Self {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().join("home");
        let project = home.join("code").join("project");
        for at in 0..files {
            let folder = project.join(format!("{}", at / 400)).join(format!("{}", at / 20));
            fs::create_dir_all(&folder).unwrap();
            let mut text = String::new();
            while text.len() < FILE {
                writeln!(text, "line {} of file {at}: {:x}", text.len(), (text.len() + at).wrapping_mul(2_654_435_761))
                    .unwrap();
            }
            fs::write(folder.join(format!("{at}.txt")), text).unwrap();
        }
        // What changed just now is read again; a project has been there for a while.
        std::thread::sleep(Duration::from_millis(200));
        let environment = LocalEnvironment::new(&project, &home, std::env::vars_os(), &[]).unwrap();
        let own = home.join(".hermes");
        let checkpoints = Checkpoints::new(&own.join("checkpoints"), &home, &[own], checkpoints::Limits::default());
        let cx = ToolCx::of_a_program(Arc::new(environment));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let recorder = Recorder::new(checkpoints.clone(), None);
        Self { base, project, checkpoints, recorder, cx, turns: AtomicU64::new(0), runtime }
    }

    fn change(&self) {
        fs::write(self.project.join("changed.txt"), format!("{}", self.turns.load(Ordering::Relaxed))).unwrap();
    }

    fn turn(&self) {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        let (spec, arguments) =
            (ToolSpec::new(ToolName::new("terminal").unwrap(), serde_json::json!({})), JsonMap::new());
        let call = HookCall { call_id: "call", task: "task", turn, spec: &spec, arguments: &arguments };
        self.runtime.block_on(self.recorder.before(call, &Touches::executing("make"), &self.cx)).unwrap();
        self.change();
        self.runtime.block_on(self.recorder.settle("task")).unwrap();
    }

    fn undo(&self) {
        let last = self.checkpoints.list(None).unwrap().pop().unwrap();
        self.checkpoints.go(self.checkpoints.way_back(&last).unwrap()).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        let out = Command::new("git")
            .env("GIT_DIR", self.base.path().join("peer.git"))
            .env("GIT_WORK_TREE", &self.project)
            .args([
                "-c",
                "core.compression=1",
                "-c",
                "gc.auto=0",
                "-c",
                "user.name=peer",
                "-c",
                "user.email=peer@localhost",
            ])
            .args(arguments)
            .current_dir(&self.project)
            .stderr(Stdio::null())
            .output()
            .unwrap();
        assert!(out.status.success(), "git {arguments:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    fn git_snapshot(&self) {
        self.git(&["add", "-A"]);
        let tree = self.git(&["write-tree"]);
        let commit = self.git(&["commit-tree", &tree, "-m", "snapshot"]);
        self.git(&["update-ref", "refs/heads/snapshot", &commit]);
    }

    fn git_turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.git_snapshot();
        self.change();
        self.git_snapshot();
    }
}

fn stored(folder: &Path) -> u64 {
    let out = Command::new("du").args(["-sk"]).arg(folder).output().unwrap();
    String::from_utf8(out.stdout).unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

fn main() {
    println!("| what | hermes | git | ratio |\n|---|---|---|---|");
    let row = |what: &str, ours: Duration, peer: Duration| {
        println!("| {what} | {} | {} | {:.2}x |", shown(ours), shown(peer), ratio(ours, peer));
    };
    for files in [30, 3_000, 30_000] {
        let here = Here::new(files);
        here.git(&["init", "-q"]);
        let ours = timed(&mut || here.turn());
        let peer = timed(&mut || here.git_turn());
        row(&format!("{files} files, the first turn"), ours, peer);
        let (ours, peer) = in_turn(10, || here.turn(), || here.git_turn());
        row(&format!("{files} files, a later turn"), ours, peer);
        let ours = timed(&mut || here.undo());
        println!("| {files} files, `/undo` of one | {} | | |", shown(ours));
        let sizes = (stored(&here.base.path().join("home/.hermes")), stored(&here.base.path().join("peer.git")));
        println!("| {files} files, on disk | {} kB | {} kB | |", sizes.0, sizes.1);
    }
}
