//! What the kernel says about processes, and a place to run some.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{CancellationToken, Command, Environment as _, Finished, Place, Process, Start};
use hermes_exec::LocalEnvironment;

/// How long something that should happen may take; only a failing test waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A local environment in a folder of its own.
pub(crate) struct Here {
    pub(crate) environment: LocalEnvironment,
    folder: tempfile::TempDir,
}

impl Here {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let environment = LocalEnvironment::new(folder.path(), folder.path(), std::env::vars_os(), &[]).unwrap();
        Self { environment, folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) async fn run(&self, script: &str) -> Finished {
        self.environment.run(command(script), &CancellationToken::new()).await.unwrap()
    }

    pub(crate) async fn spawn(&self, name: &str, script: &str) -> Arc<dyn Process> {
        let place = Place { log: self.path(name).with_extension("log"), facts: String::new() };
        self.environment.spawn(Start::new(script, place)).await.unwrap()
    }
}

pub(crate) fn command(script: &str) -> Command {
    Command::new(script, PATIENCE, 50_000)
}

/// A runtime for a test that needs to know which threads there are.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A number of seconds for `sleep` that no other process has among its arguments.
pub(crate) fn mark() -> String {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    (1_000_000 + RandomState::new().build_hasher().finish() % 9_000_000).to_string()
}

/// The live processes one of whose arguments is `word`.
pub(crate) fn processes_with(word: &str) -> Vec<i32> {
    let has_word = |pid: &i32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    all().filter(has_word).collect()
}

fn all() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What `/proc/PID/stat` says after the name: the state is field 0, the parent field 1 (`proc_pid_stat(5)`).
fn stat(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

/// Its parent; `None` if there is no such process.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    stat(pid)?.get(1)?.parse().ok()
}

/// It is there and has not ended.
pub(crate) fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| stat[0] != "Z" && stat[0] != "X")
}

pub(crate) fn is_zombie(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| stat[0] == "Z")
}

/// User and system time in ticks of 10 ms.
pub(crate) fn ticks(pid: i32) -> u64 {
    let fields = stat(pid).unwrap();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Everything below a process, zombies too.
pub(crate) fn descendants(root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in all() {
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.get(pid).into_iter().flatten());
        next += 1;
    }
    found.split_off(1)
}

pub(crate) fn ourselves() -> i32 {
    std::process::id().cast_signed()
}

/// The only child of a process that runs commands: its fork server.
pub(crate) fn fork_server_of(pid: i32) -> i32 {
    let servers: Vec<i32> = descendants(pid).into_iter().filter(|child| parent(*child) == Some(pid)).collect();
    assert_eq!(servers.len(), 1, "{servers:?}");
    servers[0]
}

/// How many things of a kind this process has: `fd` or `task`.
pub(crate) fn count(kind: &str) -> usize {
    fs::read_dir(Path::new("/proc/self").join(kind)).unwrap().count()
}

/// Polls until something holds; whoever waits in vain fails.
pub(crate) async fn until(what: &str, holds: impl FnMut() -> bool) {
    within(PATIENCE, what, holds).await;
}

/// Polls until something holds, at most for so long.
pub(crate) async fn within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Kills a process that we may not be the parent of.
pub(crate) fn kill(pid: i32) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
}
