//! A process that does what a test says, and the other neighbours of a table of processes.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hermes_core::{
    Clock, FinishedHow, InputError, Process, ProcessFacts, ProcessState, Redactor, Screen, TerminalSize, Watched,
};
use hermes_exec::processes::TableSetup;
use tokio::sync::Notify;

/// A time that a test moves on.
#[derive(Debug)]
pub(crate) struct SetClock(Mutex<SystemTime>);

impl SetClock {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)))
    }

    pub(crate) fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for SetClock {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }
}

/// Knows one secret.
pub(crate) struct MaskingRedactor;

impl Redactor for MaskingRedactor {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        text.replace("hunter2", "***").into()
    }
}

pub(crate) fn setup(folder: &Path, owner: &str, clock: &Arc<SetClock>) -> TableSetup {
    TableSetup {
        folder: folder.to_path_buf(),
        owner: owner.into(),
        grace: Duration::from_secs(1),
        tells: true,
        redactor: None,
        clock: Arc::<SetClock>::clone(clock),
    }
}

pub(crate) fn facts(command: &str) -> ProcessFacts {
    ProcessFacts {
        command: command.into(),
        cwd: "/".into(),
        notify_on_complete: false,
        watch_patterns: Vec::new(),
        terminal: false,
        unconfined: false,
    }
}

pub(crate) fn line(line: &str, suppressed: u64, last: bool) -> Watched {
    Watched { pattern: "ready".into(), line: line.into(), suppressed, last }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct MadeUp {
    state: Mutex<ProcessState>,
    lines: Mutex<Vec<Watched>>,
    changed: Notify,
}

impl MadeUp {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(ProcessState::Running), lines: Mutex::default(), changed: Notify::new() }
    }

    pub(crate) fn end(&self, code: i32) {
        *self.state.lock().unwrap() = ProcessState::Ended(FinishedHow::Exited(code));
        self.changed.notify_waiters();
    }

    pub(crate) fn print(&self, line: Watched) {
        self.lines.lock().unwrap().push(line);
        self.changed.notify_waiters();
    }

    async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            if holds() {
                return;
            }
            changed.await;
        }
    }
}

#[async_trait]
impl Process for MadeUp {
    fn pid(&self) -> i32 {
        1
    }

    fn state(&self) -> ProcessState {
        *self.state.lock().unwrap()
    }

    async fn ended(&self) {
        self.until(|| self.state() != ProcessState::Running).await;
    }

    async fn begun(&self, _limit: Duration) {}

    async fn stirred(&self) {
        self.until(|| self.state() != ProcessState::Running || !self.lines.lock().unwrap().is_empty()).await;
    }

    fn output_len(&self) -> u64 {
        0
    }

    fn output_start(&self) -> u64 {
        0
    }

    async fn output(&self, _range: Range<u64>) -> std::io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    async fn text(&self, _range: Range<u64>) -> std::io::Result<String> {
        Ok(String::new())
    }

    async fn screen(&self) -> Option<Screen> {
        None
    }

    async fn write(&self, _bytes: &[u8]) -> Result<usize, InputError> {
        Err(InputError::None)
    }

    async fn close_input(&self) -> Result<(), InputError> {
        Err(InputError::None)
    }

    async fn resize(&self, _size: TerminalSize) {}

    async fn kill(&self, _grace: Duration) -> usize {
        self.end(137);
        0
    }

    fn watched(&self) -> Vec<Watched> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }
}
