//! A conversation that searches: through real dispatch, with the real guard, on our own disk or on one that is not ours.
#![allow(dead_code, reason = "each program of tests uses what it needs")]

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use hermes_core::{
    CancellationToken, Capabilities, Command, Environment, EnvironmentError, FileError, FileStat, Finished,
    RawArguments, ToolCall, ToolName,
};
use hermes_exec::LocalEnvironment;
use hermes_guard::Guard;
use hermes_guard::paths::PathPolicy;
use hermes_guard::policy::Policy;
use hermes_runtime::{ApprovalMode, Budget, Dispatcher, Registry, Scope, Silent, Task};
use hermes_testkit::TempHome;
use hermes_tools::Builtins;
use serde_json::{Value, json};

/// Linear in the text, as every pattern is, but with so much to remember that a megabyte of [`slow_text`] takes a while.
pub(crate) const SLOW: &str = r"a[ab]{60}[^ab\r\n]";

/// A lot of text in which [`SLOW`] finds nothing.
pub(crate) fn slow_text() -> String {
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 0 { 'a' } else { 'b' }
    };
    let mut line = || -> String { (0..10_000).map(|_| letter()).chain(['\n']).collect() };
    let lines: String = (0..200).map(|_| line()).collect();
    lines.repeat(50)
}

/// Where the files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Here,
    /// On a machine with everything this one has.
    Elsewhere,
    /// On one without ripgrep.
    WithoutRipgrep,
    /// On one without ripgrep that gives commands no input.
    WithoutInput,
}

pub(crate) struct Session {
    pub(crate) home: TempHome,
    dispatcher: Dispatcher,
    visible: BTreeSet<ToolName>,
    task: Task,
    pub(crate) cancel: CancellationToken,
}

impl Session {
    pub(crate) fn new(place: Place) -> Self {
        let home = TempHome::new();
        let user = home.user_home();
        // Nothing of the person who runs the tests: neither their ignore rules nor their options of grep.
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into();
        let variables = [("HOME".into(), user.clone().into()), ("PATH".into(), path)];
        let local = LocalEnvironment::new(&home.work(), &user, variables, &[]).unwrap();
        let environment: Arc<dyn Environment> = match place {
            Place::Here => Arc::new(local),
            place => Arc::new(Far { local, place }),
        };
        let registry = Arc::new(Registry::new());
        registry.built_in(&Builtins).unwrap();
        let visible = registry.snapshot().entries().map(|entry| entry.tool.spec().name.clone()).collect();
        let policy = Policy::read(Some(&json!({})), &[]).unwrap();
        let guard = Guard::new(&user, "user", &home.home(), PathPolicy::new(&user, home.home()), policy);
        let dispatcher = Dispatcher::new(registry, Arc::new(guard));
        Self {
            home,
            dispatcher,
            visible,
            task: Task::new(environment).in_conversation(),
            cancel: CancellationToken::new(),
        }
    }

    /// The conversation is made shorter.
    pub(crate) fn compact(&self) {
        self.task.begin_segment();
    }

    /// With results of so many characters at most.
    pub(crate) fn with_room(mut self, per_result: usize) -> Self {
        self.task.budget = Budget { per_result, ..Budget::default() };
        self
    }

    /// The text that the model gets for a search.
    pub(crate) async fn text(&self, arguments: Value) -> String {
        self.said("search_files", arguments).await
    }

    /// What the model gets for a call of any tool.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let text = self.said(tool, arguments).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    async fn said(&self, tool: &str, arguments: Value) -> String {
        let arguments = RawArguments::Object(arguments.as_object().unwrap().clone());
        let call = ToolCall { id: "call".into(), name: tool.into(), arguments };
        let (task, visible, cancel) = (&self.task, &self.visible, &self.cancel);
        let scope = Scope { task, visible, approve: ApprovalMode::All, cancel, observer: &Silent };
        self.dispatcher.call(&call, &scope).await.text
    }

    pub(crate) async fn search(&self, arguments: Value) -> Value {
        let text = self.text(arguments).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(crate) async fn close(self) {
        self.task.environment.close().await;
    }
}

/// Our own machine, which pretends that its files are not ours.
struct Far {
    local: LocalEnvironment,
    place: Place,
}

#[async_trait]
impl Environment for Far {
    fn backend(&self) -> &'static str {
        "far"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { input: self.place != Place::WithoutInput, ..self.local.capabilities() }
    }

    fn cwd(&self) -> PathBuf {
        self.local.cwd()
    }

    fn home(&self) -> &Path {
        self.local.home()
    }

    fn scratch(&self) -> &Path {
        self.local.scratch()
    }

    fn shares_our_files(&self) -> bool {
        false
    }

    async fn run(&self, mut command: Command, cancel: &CancellationToken) -> Result<Finished, EnvironmentError> {
        if self.place != Place::Elsewhere {
            // A shell finds a function before a program, and xargs finds neither.
            command.script =
                format!("command() {{ [ \"$2\" = rg ] && return 1; builtin command \"$@\"; }}\n{}", command.script);
        }
        assert!(self.place != Place::WithoutInput || command.input.is_none());
        self.local.run(command, cancel).await
    }

    async fn stat(&self, path: &Path) -> Result<FileStat, FileError> {
        self.local.stat(path).await
    }

    async fn real_path(&self, path: &Path) -> Result<PathBuf, FileError> {
        self.local.real_path(path).await
    }

    async fn read(&self, path: &Path, range: Range<u64>) -> Result<Vec<u8>, FileError> {
        self.local.read(path, range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
        self.local.write(path, bytes).await
    }

    async fn create(&self, path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>, FileError> {
        self.local.create(path, bytes).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<Vec<PathBuf>, FileError> {
        self.local.rename(from, to).await
    }

    async fn remove(&self, path: &Path) -> Result<(), FileError> {
        self.local.remove(path).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<String>, FileError> {
        self.local.list(path).await
    }

    async fn close(&self) {
        self.local.close().await;
    }
}
