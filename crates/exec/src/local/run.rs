//! A command in the foreground: from its start to its end, its limit, or the moment it is let go.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hermes_core::{
    AtLimit, CancellationToken, Command, EnvironmentError, Finished, FinishedHow, Kept, Place, TerminalSize,
};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until, timeout};

use super::behaviour::{BETWEEN_LOOKS, Looker, QUIET};
use super::place::{make_place, remove_place};
use super::process::{Held, LocalProcess, started};
use super::shell::{Options, Report, ShellState};
use super::{GRACE, LocalEnvironment, Prepared, end, memory_file, read_report, terminal};
use crate::capture::{Capture, make_room_beside};
use crate::plain::Reading;
use crate::readiness::readable;
use crate::sandbox::{Confinement, refusal};
use crate::supervisor::protocol::{End, Request, Role};
use crate::supervisor::{Supervised, Wiring};

/// How long the output may stay silent after the shell has exited while a descendant still holds it open.
const DRAIN_IDLE: Duration = Duration::from_millis(50);
/// How long the output is drained in all after the shell has exited.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);
/// What one read takes.
const PIECE: usize = 128 * 1024;
/// A wider pipe lets a talkative command go on while we are busy.
const PIPE_SIZE: i32 = 1024 * 1024;

impl LocalEnvironment {
    pub(super) async fn run_to_end(
        &self,
        command: Command,
        cancel: &CancellationToken,
    ) -> Result<Finished, EnvironmentError> {
        let cannot_start = |source| self.cannot_start(source);
        let cwd = self.directory(command.cwd.as_deref())?;
        let mut prepared = self
            .prepare(&command.script, &cwd, command.terminal.is_some(), &[], command.unconfined)
            .map_err(cannot_start)?;
        let _may_ask = self.sudo.as_ref().map(|sudo| sudo.in_foreground(self.mark(prepared.number)));
        let mut running = self.begin(&mut prepared, &command)?;
        let may_be_kept = matches!(command.at_limit, AtLimit::Keep(_));
        let mut way = running.until_something(self, command.timeout, cancel, may_be_kept).await?;
        if let (Way::Kept(why), AtLimit::Keep(place)) = (&way, &command.at_limit) {
            match running.hand_over(place, command.terminal.is_some()).await {
                Ok(log) => return self.let_go(running, *why, log, command.terminal, prepared).await,
                // It has ended at the same moment.
                Err(_) if running.supervised.look().end.is_some() => {
                    way = Way::Ended(running.how_it_ended(self).await?);
                }
                Err(_) => way = Way::Stopped(FinishedHow::TimedOut),
            }
        }
        let (how, left_over) = match way {
            Way::Ended(how) => (how, 0),
            Way::Stopped(how) => (how, running.stop(self).await),
            Way::Kept(_) => (FinishedHow::TimedOut, running.stop(self).await),
        };
        if self.sandbox.is_none() || !command.unconfined {
            self.absorb(&mut prepared, how, command.cwd.is_none());
        }
        running.let_it_print();
        self.remember_leftover(running.supervised);
        let mut finished = finished(running.output.capture, how, left_over);
        if let Some(sandbox) = self.sandbox.as_ref().filter(|_| !command.unconfined) {
            let refusal = refusal::find(&sandbox.confinement, &command.script, &cwd, how, &finished.output);
            finished.refusal = refusal.map(|refusal| refusal.to_string());
        }
        Ok(finished)
    }

    /// The same for a command that is confined in a way of its own and leaves nothing for the next one. What it left
    /// running is under the supervisor that is answered.
    pub(super) async fn run_confined(
        &self,
        command: Command,
        cancel: &CancellationToken,
        confinement: Confinement,
    ) -> Result<(Finished, Supervised), EnvironmentError> {
        let cwd = self.directory(command.cwd.as_deref())?;
        let mut prepared = self
            .prepare_within(self.session(), &command.script, &cwd, command.terminal.is_some(), &[], Some(confinement))
            .map_err(|source| self.cannot_start(source))?;
        let mut running = self.begin(&mut prepared, &command)?;
        let (how, left_over) = match running.until_something(self, command.timeout, cancel, false).await? {
            Way::Ended(how) => (how, 0),
            Way::Stopped(how) => (how, running.stop(self).await),
            Way::Kept(_) => (FinishedHow::TimedOut, running.stop(self).await),
        };
        Ok((finished(running.output.capture, how, left_over), running.supervised))
    }

    fn begin(&self, prepared: &mut Prepared, command: &Command) -> Result<Running, EnvironmentError> {
        let cannot_start = |source| self.cannot_start(source);
        let ours = wire(&mut prepared.wiring, command).map_err(cannot_start)?;
        let wiring = std::mem::take(&mut prepared.wiring);
        let supervised = Supervised::start(&self.server, &prepared.job, wiring).map_err(cannot_start)?;
        let reading = Reading { terminal: command.terminal.is_some(), ..self.reading };
        let spill = self.scratch.path().join("output").join(format!("{}.txt", prepared.number));
        let capture = Capture::new(command.output_cap, reading, spill);
        Ok(Running { supervised, output: Output::new(ours, capture).map_err(EnvironmentError::Lost)? })
    }

    /// Takes over what a shell that ended by itself left for the next one.
    fn absorb(&self, prepared: &mut Prepared, how: FinishedHow, moves: bool) {
        if let (FinishedHow::Exited(_), Some(report)) = (how, read_report(&mut prepared.report)) {
            let began: &ShellState = &prepared.began;
            let fresh = self.fresh_options(&report);
            let mut given: Vec<&str> = Vec::new();
            if prepared.proxy.is_some() {
                given.extend(crate::sandbox::PROXY_NAMES);
            }
            if prepared.job.terminal && !began.variables.contains_key(std::ffi::OsStr::new("TERM")) {
                given.push("TERM");
            }
            self.change_session(|session| session.absorb(began, report, fresh, &given, moves));
        }
    }

    /// The options of a fresh shell. A shell that changed none shows them; otherwise one is asked, once.
    fn fresh_options(&self, report: &Report) -> Option<&Options> {
        let ask = || {
            let mut bash = std::process::Command::new(&self.shell);
            let output = bash.env_clear().args(["-c", Options::PRINT]).stdin(std::process::Stdio::null()).output();
            output.ok().and_then(|output| Options::read(&output.stdout))
        };
        let fresh =
            self.fresh.get_or_init(|| if report.options_look_fresh { Some(report.options.clone()) } else { ask() });
        fresh.as_ref()
    }

    /// Keeps what a command left running (`server &`) until the task ends.
    fn remember_leftover(&self, supervised: Supervised) {
        let mut leftovers = self.leftovers.lock().unwrap_or_else(PoisonError::into_inner);
        leftovers.retain(|leftover| leftover.look().gone.is_none());
        if supervised.look().gone.is_none() {
            leftovers.push(supervised);
        }
    }

    /// Lets a command live on in the background: its supervisor reads the output now, into `log`.
    async fn let_go(
        &self,
        running: Running,
        why: Kept,
        log: File,
        terminal: Option<TerminalSize>,
        prepared: Prepared,
    ) -> Result<Finished, EnvironmentError> {
        let pid = started(&running.supervised).await?;
        let held = Held { _files: (prepared.report, prepared.long), _proxy: prepared.proxy };
        let process =
            LocalProcess::new(Arc::clone(&self.server), running.supervised, pid, log, self.reading, terminal, held);
        let process = Arc::new(process);
        self.remember_process(&process);
        let mut finished = finished(running.output.capture, FinishedHow::Kept(why), 0);
        finished.process = Some(process);
        Ok(finished)
    }
}

/// Connects the ends of input and output; answers the one that we read.
fn wire(wiring: &mut Wiring, command: &Command) -> io::Result<OwnedFd> {
    let ours: OwnedFd = match command.terminal {
        Some(size) => {
            let (ours, theirs) = terminal::open(size)?;
            wiring.add(Role::ChildInput, theirs.try_clone()?);
            wiring.add(Role::ChildOutput, theirs);
            ours
        }
        None => {
            let (reader, writer) = io::pipe()?;
            // More than the system allows this user is no reason to fail.
            let _ = fcntl(&reader, FcntlArg::F_SETPIPE_SZ(PIPE_SIZE));
            if let Some(input) = &command.input {
                // A file that is read from its beginning: nobody has to feed it.
                let mut file = memory_file(input)?;
                io::Seek::rewind(&mut file)?;
                wiring.add(Role::ChildInput, file);
            }
            wiring.add(Role::ChildOutput, writer);
            reader.into()
        }
    };
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(ours)
}

fn finished(capture: Capture, how: FinishedHow, left_over: usize) -> Finished {
    let captured = capture.finish();
    if let Some(spill) = &captured.spill {
        make_room_beside(spill);
    }
    Finished {
        output: captured.text,
        coloured_tail: captured.coloured_tail,
        total_bytes: captured.total_bytes,
        omitted_bytes: captured.omitted_bytes,
        how,
        left_over,
        spill: captured.spill,
        process: None,
        refusal: None,
    }
}

/// What ended the wait for a command.
enum Way {
    Ended(FinishedHow),
    Stopped(FinishedHow),
    Kept(Kept),
}

/// One command while it runs. Dropping it ends the whole tree.
struct Running {
    supervised: Supervised,
    output: Output,
}

impl Running {
    async fn until_something(
        &mut self,
        environment: &LocalEnvironment,
        limit: Duration,
        cancel: &CancellationToken,
        may_be_kept: bool,
    ) -> Result<Way, EnvironmentError> {
        let deadline = Instant::now() + limit;
        let mut looker = Looker::default();
        let mut next_look = Instant::now() + QUIET;
        loop {
            tokio::select! {
                ended = self.until_exit() => {
                    ended.map_err(EnvironmentError::Lost)?;
                    return self.how_it_ended(environment).await.map(Way::Ended);
                }
                () = sleep_until(deadline) => {
                    let way = if may_be_kept { Way::Kept(Kept::AtLimit) } else { Way::Stopped(FinishedHow::TimedOut) };
                    return Ok(way);
                }
                () = cancel.cancelled() => return Ok(Way::Stopped(FinishedHow::Cancelled)),
                () = sleep_until(next_look), if may_be_kept => {
                    next_look = Instant::now() + BETWEEN_LOOKS;
                }
            }
            let pid = self.supervised.look().pid;
            if self.output.last.elapsed() >= QUIET
                && let Some(why) = pid.and_then(|pid| looker.look(pid))
            {
                return Ok(Way::Kept(why));
            }
        }
    }

    /// Reads output until the shell itself has exited. A pipe that a grandchild holds open does not delay this.
    async fn until_exit(&mut self) -> io::Result<()> {
        let Self { supervised, output } = self;
        let exited = supervised.until(|known| known.end.is_some() || known.failed.is_some());
        tokio::pin!(exited);
        loop {
            tokio::select! {
                exited = &mut exited => return exited,
                () = output.read_some(), if output.is_open() => {}
            }
        }
    }

    async fn how_it_ended(&mut self, environment: &LocalEnvironment) -> Result<FinishedHow, EnvironmentError> {
        let (failed, end) = {
            let known = self.supervised.look();
            (known.failed.clone(), known.end)
        };
        match (failed, end) {
            (Some(why), _) => Err(EnvironmentError::NotPrepared(why)),
            (None, Some(end)) => {
                self.output.drain().await;
                Ok(match end {
                    End::Code(code) => FinishedHow::Exited(code),
                    End::Signal(signal) => FinishedHow::Signalled(signal),
                })
            }
            (None, None) => {
                environment.server.sweep();
                Err(EnvironmentError::Lost(io::Error::other("its supervisor was ended")))
            }
        }
    }

    /// Ends it with everything it started; answers how many processes would not go.
    async fn stop(&mut self, environment: &LocalEnvironment) -> usize {
        let Self { supervised, output } = self;
        let stopped = end(&environment.server, supervised, GRACE);
        tokio::pin!(stopped);
        let left_over = loop {
            tokio::select! {
                left_over = &mut stopped => break left_over,
                // What it says to its end is read, or it would wait for us and be killed for it.
                () = output.read_some(), if output.is_open() => {}
            }
        };
        output.drain().await;
        left_over
    }

    /// What the command left running goes on printing; somebody has to read it, or it would be ended for that. Nobody
    /// keeps it: it is no part of this command any more.
    fn let_it_print(&self) {
        if self.output.is_open() && self.supervised.look().gone.is_none() {
            let mut wiring = Wiring::default();
            if let Ok(ours) = self.output.descriptor.get_ref().try_clone() {
                wiring.add(Role::Output, ours);
                // Where nobody is there any more, nothing prints.
                let _ = self.supervised.request(&Request::Adopt { roles: vec![Role::Output] }, &wiring);
            }
        }
    }

    /// Gives the output to the supervisor, which writes it into the log at this path from now on. On an error the output
    /// is still ours.
    async fn hand_over(&mut self, place: &Place, terminal: bool) -> io::Result<File> {
        let mut wiring = Wiring::default();
        let log = make_place(place, &mut wiring)?;
        self.hand_over_into(log, wiring, terminal).await.inspect_err(|_| remove_place(place))
    }

    async fn hand_over_into(&mut self, mut log: File, mut wiring: Wiring, terminal: bool) -> io::Result<File> {
        let so_far = self.output.capture.so_far();
        // Nobody reads meanwhile, so nothing comes in between.
        let copied = tokio::task::spawn_blocking(move || so_far.copy_to(&mut log).map(|()| log));
        let log = copied.await.map_err(io::Error::other)??;
        let ours = self.output.descriptor.get_ref();
        wiring.add(Role::Output, ours.try_clone()?);
        if terminal {
            wiring.add(Role::Input, ours.try_clone()?);
        }
        let roles = wiring.0.iter().map(|(role, _)| *role).collect();
        self.supervised.request(&Request::Adopt { roles }, &wiring)?;
        self.supervised.until(|known| known.adopted).await?;
        if !self.supervised.look().adopted {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.output.give_up();
        Ok(log)
    }
}

/// Our end of a command's output.
struct Output {
    descriptor: AsyncFd<OwnedFd>,
    open: bool,
    buffer: Vec<u8>,
    capture: Capture,
    /// When it last printed.
    last: Instant,
}

impl Output {
    fn new(descriptor: OwnedFd, capture: Capture) -> io::Result<Self> {
        let descriptor = readable(descriptor)?;
        Ok(Self { descriptor, open: true, buffer: vec![0; PIECE], capture, last: Instant::now() })
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn give_up(&mut self) {
        self.open = false;
    }

    /// Waits for output and takes what one read gives.
    async fn read_some(&mut self) {
        let Ok(mut ready) = self.descriptor.readable().await else {
            self.open = false;
            return;
        };
        let descriptor = self.descriptor.get_ref().as_fd();
        let moved = self.capture.splice(descriptor);
        let read = moved.unwrap_or_else(|| {
            let length = nix::unistd::read(descriptor, &mut self.buffer)?;
            self.capture.push(&self.buffer[..length]);
            Ok(length)
        });
        match read {
            Ok(1..) => self.last = Instant::now(),
            Err(Errno::EAGAIN) => ready.clear_ready(),
            Err(Errno::EINTR) => {}
            // A terminal whose last user has gone says EIO instead of end of file.
            Ok(_) | Err(_) => self.open = false,
        }
    }

    /// Takes what is there after the shell has exited, and what comes soon after.
    async fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN_LIMIT;
        while self.open && Instant::now() < deadline {
            if timeout(DRAIN_IDLE, self.read_some()).await.is_err() {
                break;
            }
        }
    }
}
