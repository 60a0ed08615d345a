//! A process that this conversation started before the program it runs in ended: what its record and its log still say.
//! If its supervisor lives, it can be used as before.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{InputError, Process, ProcessState, Screen, TerminalSize, Watched};

use super::{Attached, Record};
use crate::plain::{Reading, plain};
use crate::screen::Terminal;
use crate::supervisor::log;

/// Between two looks at a record of which nobody tells when it changes.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Remembered {
    record: Record,
    /// `None` if its log is gone.
    log: Option<File>,
    terminal: Option<Mutex<Terminal>>,
    /// A connection to its supervisor, if there is one.
    attached: Option<Attached>,
}

impl Remembered {
    /// Needs a running runtime if the process runs.
    pub(super) fn new(record: Record) -> Self {
        let is_running = record.state == ProcessState::Running;
        Self {
            log: File::open(&record.log).ok(),
            terminal: record.facts.terminal.then(|| Mutex::new(Terminal::new(TerminalSize::default()))),
            attached: is_running.then(|| Attached::connect(&record).ok()).flatten(),
            record,
        }
    }

    fn attached(&self) -> Result<&Attached, InputError> {
        self.attached.as_ref().ok_or(InputError::Ended)
    }
}

#[async_trait]
impl Process for Remembered {
    fn pid(&self) -> i32 {
        self.attached.as_ref().and_then(Attached::pid).unwrap_or_default()
    }

    fn state(&self) -> ProcessState {
        self.record.again().map_or(ProcessState::Lost, |record| record.state)
    }

    async fn ended(&self) {
        if let Some(attached) = &self.attached {
            attached.ended().await;
        }
        // Its supervisor cannot be reached; its record tells.
        while self.state() == ProcessState::Running {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    async fn begun(&self, _limit: Duration) {}

    async fn stirred(&self) {
        self.ended().await;
    }

    fn output_len(&self) -> u64 {
        self.log.as_ref().map_or(0, log::len)
    }

    fn output_start(&self) -> u64 {
        log::first_kept(self.output_len())
    }

    async fn output(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.log.as_ref().map_or(Ok(Vec::new()), |file| log::read(file, range))
    }

    async fn text(&self, range: Range<u64>) -> io::Result<String> {
        let reading = Reading { terminal: self.record.facts.terminal, ..Reading::default() };
        Ok(plain(&self.output(range).await?, reading))
    }

    async fn screen(&self) -> Option<Screen> {
        let size = match &self.attached {
            Some(attached) => attached.size().await.ok().flatten(),
            None => None,
        };
        let mut terminal = self.terminal.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(size) = size {
            terminal.resize(size);
        }
        terminal.catch_up(self.log.as_ref()?, self.output_start()..self.output_len());
        Some(terminal.screen())
    }

    async fn write(&self, bytes: &[u8]) -> Result<usize, InputError> {
        self.attached()?.write(bytes).await
    }

    async fn close_input(&self) -> Result<(), InputError> {
        self.attached()?.close_input().await
    }

    async fn resize(&self, size: TerminalSize) {
        if let (Some(terminal), Ok(attached)) = (&self.terminal, self.attached()) {
            terminal.lock().unwrap_or_else(PoisonError::into_inner).resize(size);
            attached.resize(size);
        }
    }

    async fn kill(&self, grace: Duration) -> usize {
        let killed = match &self.attached {
            Some(attached) => attached.kill(grace).await.ok(),
            None => None,
        };
        // Without an answer only the record is left to say whether it is gone.
        killed.unwrap_or_else(|| usize::from(self.state() == ProcessState::Running))
    }

    fn watched(&self) -> Vec<Watched> {
        Vec::new()
    }
}
