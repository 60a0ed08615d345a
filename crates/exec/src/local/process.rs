//! A local process in the background.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{
    EnvironmentError, FinishedHow, InputError, Process, ProcessState, Screen, Start, TerminalSize, Watched,
};

use tokio::time::{Instant, timeout};
use tokio_util::sync::DropGuard;

use crate::plain::{Reading, plain};
use crate::screen::Terminal;
use crate::supervisor::protocol::{End, LONGEST_PACKET, Request, Role};
use crate::supervisor::{ForkServer, Supervised, Wiring, log, tree};

use super::place::{make_place, remove_place};
use super::{LocalEnvironment, Prepared, end, terminal};

/// How long a program may take to take over before it is believed to have.
const LONGEST_BEGINNING: Duration = Duration::from_secs(2);

/// See [`hermes_core::Process`].
#[derive(Debug)]
pub(crate) struct LocalProcess {
    server: Arc<ForkServer>,
    supervised: Supervised,
    pid: i32,
    log: File,
    reading: Reading,
    terminal: Option<Mutex<Terminal>>,
    _held: Held,
}

/// What a command needs of us as long as it runs.
#[derive(Debug)]
pub(super) struct Held {
    /// What bash reads first, and the command's own text when it is long.
    pub _files: (File, Option<File>),
    /// Whoever serves its way to the network.
    pub _proxy: Option<DropGuard>,
}

impl LocalProcess {
    pub(super) fn new(
        server: Arc<ForkServer>,
        supervised: Supervised,
        pid: i32,
        log: File,
        reading: Reading,
        size: Option<TerminalSize>,
        held: Held,
    ) -> Self {
        let terminal = size.map(|size| Mutex::new(Terminal::new(size)));
        let reading = Reading { terminal: size.is_some(), ..reading };
        Self { server, supervised, pid, log, reading, terminal, _held: held }
    }

    pub(super) fn supervised(&self) -> &Supervised {
        &self.supervised
    }

    async fn input(&self, request: &Request) -> Result<usize, InputError> {
        if self.state() != ProcessState::Running {
            return Err(InputError::Ended);
        }
        self.supervised.ask(request).await
    }
}

impl LocalEnvironment {
    pub(super) async fn spawn_process(&self, start: Start) -> Result<LocalProcess, EnvironmentError> {
        let cannot_start = |source| self.cannot_start(source);
        let cwd = self.directory(start.cwd.as_deref())?;
        let mut prepared = self
            .prepare(&start.script, &cwd, start.terminal.is_some(), &start.watch, start.unconfined)
            .map_err(cannot_start)?;
        let log = make_place(&start.place, &mut prepared.wiring).map_err(cannot_start)?;
        let begun = self.begin_process(&start, prepared, log).await;
        begun.inspect_err(|_| remove_place(&start.place))
    }

    async fn begin_process(
        &self,
        start: &Start,
        mut prepared: Prepared,
        log: File,
    ) -> Result<LocalProcess, EnvironmentError> {
        let cannot_start = |source| self.cannot_start(source);
        let wiring = &mut prepared.wiring;
        match start.terminal {
            Some(size) => {
                let (ours, theirs) = terminal::open(size).map_err(cannot_start)?;
                wire_terminal(wiring, &ours, &theirs).map_err(cannot_start)?;
            }
            None => {
                let (reader, writer) = io::pipe().map_err(cannot_start)?;
                wiring.add(Role::Output, reader);
                wiring.add(Role::ChildOutput, writer);
                if start.input {
                    let (reader, writer) = io::pipe().map_err(cannot_start)?;
                    wiring.add(Role::ChildInput, reader);
                    wiring.add(Role::Input, writer);
                }
            }
        }
        let supervised = Supervised::start(&self.server, &prepared.job, prepared.wiring).map_err(cannot_start)?;
        let pid = started(&supervised).await?;
        let held = Held { _files: (prepared.report, prepared.long), _proxy: prepared.proxy };
        Ok(LocalProcess::new(Arc::clone(&self.server), supervised, pid, log, self.reading, start.terminal, held))
    }
}

/// Waits until a supervisor has started its command, and answers the number of the process.
pub(super) async fn started(supervised: &Supervised) -> Result<i32, EnvironmentError> {
    let answered = supervised.until(|known| known.pid.is_some() || known.failed.is_some()).await;
    answered.map_err(EnvironmentError::Lost)?;
    // The mechanics of a sandbox on an old kernel may keep from us that the program has begun, so not for ever.
    let begins = supervised.until(|known| known.runs || known.failed.is_some() || known.end.is_some());
    let _ = timeout(LONGEST_BEGINNING, begins).await;
    let known = supervised.look();
    match (&known.failed, known.pid) {
        (Some(why), _) => Err(EnvironmentError::NotPrepared(why.clone())),
        (None, Some(pid)) => Ok(pid),
        (None, None) => Err(EnvironmentError::Lost(io::ErrorKind::ConnectionReset.into())),
    }
}

/// Whether the shell has come to run something: it has become another program, or started one. One that has not may
/// still end at once, because it does not understand the command or finds no such program.
fn has_begun(shell: i32) -> bool {
    let program = |pid: &dyn std::fmt::Display| std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    // Until it becomes the shell it is still a copy of us.
    let is_new = |path: &Path| path != program(&"self") && path.file_name().is_some_and(|name| name != "bash");
    is_new(&program(&shell)) || tree::descendants(shell).iter().any(|pid| is_new(&program(pid)))
}

/// Connects both ends of a terminal.
fn wire_terminal(wiring: &mut Wiring, ours: &OwnedFd, theirs: &OwnedFd) -> io::Result<()> {
    wiring.add(Role::Output, ours.try_clone()?);
    wiring.add(Role::Input, ours.try_clone()?);
    wiring.add(Role::ChildInput, theirs.try_clone()?);
    wiring.add(Role::ChildOutput, theirs.try_clone()?);
    Ok(())
}

#[async_trait]
impl Process for LocalProcess {
    fn pid(&self) -> i32 {
        self.pid
    }

    fn state(&self) -> ProcessState {
        let known = self.supervised.look();
        match (known.end, known.closed) {
            (Some(End::Code(code)), _) => ProcessState::Ended(FinishedHow::Exited(code)),
            (Some(End::Signal(signal)), _) => ProcessState::Ended(FinishedHow::Signalled(signal)),
            (None, true) => ProcessState::Lost,
            (None, false) => ProcessState::Running,
        }
    }

    async fn ended(&self) {
        // Without a connection there is nothing to wait for: it is lost.
        let _ = self.supervised.until(|known| known.end.is_some()).await;
    }

    async fn stirred(&self) {
        let _ = self.supervised.until(|known| known.end.is_some() || known.has_lines()).await;
    }

    async fn begun(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline && !has_begun(self.pid) && self.state() == ProcessState::Running {
            let _ = timeout(Duration::from_millis(1), self.ended()).await;
        }
    }

    fn output_len(&self) -> u64 {
        log::len(&self.log)
    }

    fn output_start(&self) -> u64 {
        log::first_kept(self.output_len())
    }

    async fn output(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        log::read(&self.log, range)
    }

    async fn text(&self, range: Range<u64>) -> io::Result<String> {
        let bytes = self.output(range).await?;
        Ok(plain(&bytes, self.reading))
    }

    async fn screen(&self) -> Option<Screen> {
        let mut terminal = self.terminal.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else who looks at it has changed its size.
        if let Some(size) = self.supervised.look().size.take() {
            terminal.resize(size);
        }
        terminal.catch_up(&self.log, self.output_start()..self.output_len());
        Some(terminal.screen())
    }

    async fn write(&self, bytes: &[u8]) -> Result<usize, InputError> {
        let mut taken = 0;
        // A piece fits into one packet with room for what is said around it.
        for piece in bytes.chunks(LONGEST_PACKET / 2) {
            taken += self.input(&Request::Input(piece.to_vec())).await?;
        }
        Ok(taken)
    }

    async fn close_input(&self) -> Result<(), InputError> {
        self.input(&Request::CloseInput).await.map(drop)
    }

    async fn resize(&self, size: TerminalSize) {
        if let Some(terminal) = &self.terminal {
            terminal.lock().unwrap_or_else(PoisonError::into_inner).resize(size);
            let _ = self.supervised.request(&Request::Resize(size), &Wiring::default());
        }
    }

    async fn kill(&self, grace: Duration) -> usize {
        end(&self.server, &self.supervised, grace).await
    }

    fn watched(&self) -> Vec<Watched> {
        self.supervised.watched()
    }
}
