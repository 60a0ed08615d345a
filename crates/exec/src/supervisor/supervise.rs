//! The supervisor of one command: the process between us and it.
//!
//! It is a *sub-reaper*: whatever the command starts, and whatever leaves its session, group or parents, becomes a child
//! of the supervisor when its own parent ends. So "nothing is left" is not a guess from a list of processes but the
//! kernel's own answer: there is no child to wait for. The supervisor lives until then.
//!
//! It is one thread around one `poll`: it sleeps unless something happens. When the connection to its owner closes, for
//! whatever reason, it ends everything.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use hermes_core::TerminalSize;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::MsgFlags;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe2};

use super::child::{self, Ends};
use super::connection::{Connection, say_farewell};
use super::fork_server::never_return;
use super::log::Log;
use super::protocol::{self, End, Ended, Event, Job, LONGEST_PACKET, Received, Refused, Request, Role};
use super::watch::Watch;
use super::{group, tree};

/// How long what is left may take to go after SIGKILL. Only a process that hangs in the kernel takes so long.
const LAST_GRACE: Duration = Duration::from_secs(2);
/// What a command gets to end by itself when whoever started it is gone.
const ORPHAN_GRACE: Duration = Duration::from_secs(1);
/// Between two rounds of SIGKILL, for what was being forked during the one before.
const ROUND: Duration = Duration::from_millis(5);
/// Input that waits for a reader, in bytes.
pub(super) const MOST_WAITING: usize = 1024 * 1024;

/// Runs the command of the [`Job`] among `descriptors` and stays until nothing of it is left.
pub(super) fn supervise(descriptors: Vec<(Role, OwnedFd)>) {
    let _ = prctl::set_name(c"hermes-run");
    let _ = prctl::set_child_subreaper(true);
    let mut descriptors = Descriptors(descriptors);
    let Some(control) = descriptors.take(Role::Control) else { return };
    let Some(job) = descriptors.take(Role::Job).and_then(read_job) else { return };
    let Some(signals) = child_signals() else { return };
    match Supervisor::start(job, control, signals, descriptors) {
        Ok(supervisor) => supervisor.run(),
        Err((control, step, error)) => {
            let failed = Event::Failed(format!("cannot {step}: {}", error.desc().to_lowercase()));
            let _ = protocol::send(&control, &failed, &[], MsgFlags::empty());
        }
    }
}

pub(super) struct Descriptors(pub(super) Vec<(Role, OwnedFd)>);

impl Descriptors {
    pub(super) fn take(&mut self, role: Role) -> Option<OwnedFd> {
        let at = self.0.iter().position(|(is, _)| *is == role)?;
        Some(self.0.swap_remove(at).1)
    }
}

fn read_job(file: OwnedFd) -> Option<Job> {
    let mut file = File::from(file);
    let mut bytes = Vec::new();
    file.rewind().ok()?;
    file.read_to_end(&mut bytes).ok()?;
    postcard::from_bytes(&bytes).ok()
}

/// Children's ends as something to poll. The signal may have been ignored before: it must count again.
pub(super) fn child_signals() -> Option<SignalFd> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    super::fork_server::forget_handlers();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&signals), None).ok()?;
    SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).ok()
}

/// How far the end that somebody asked for has come.
enum Ending {
    Not,
    /// SIGTERM was sent; SIGKILL follows.
    Asked(Instant),
    /// SIGKILL is sent in rounds until this moment.
    Killing {
        next: Instant,
        until: Instant,
    },
}

struct Supervisor {
    clients: Vec<Connection>,
    listener: Option<OwnedFd>,
    signals: SignalFd,
    child: Pid,
    trouble: Option<OwnedFd>,
    output: Option<OwnedFd>,
    terminal: bool,
    input: Option<OwnedFd>,
    /// There was one once.
    had_input: bool,
    waiting: VecDeque<u8>,
    log: Option<Log>,
    record: Option<File>,
    watch: Option<Watch>,
    ending: Ending,
    /// The program could not be started.
    failed: bool,
    /// How the tracked process ended.
    end: Option<End>,
    /// Nothing is left to wait for.
    gone: bool,
    group: Option<PathBuf>,
    buffer: Vec<u8>,
}

impl Supervisor {
    #[expect(unsafe_code, reason = "fork(2)")]
    fn start(
        mut job: Job,
        control: OwnedFd,
        signals: SignalFd,
        mut descriptors: Descriptors,
    ) -> Result<Self, (OwnedFd, &'static str, Errno)> {
        let Some(output) = descriptors.take(Role::ChildOutput) else {
            return Err((control, "give it an output", Errno::EINVAL));
        };
        let (trouble, childs_trouble) = match pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK) {
            Ok(pipe) => pipe,
            Err(error) => return Err((control, "make a pipe", error)),
        };
        let group = job.group.take();
        let ends = Ends {
            output,
            input: descriptors.take(Role::ChildInput),
            inherited: [descriptors.take(Role::First), descriptors.take(Role::Second)],
            door: descriptors.take(Role::Door),
            trouble: childs_trouble,
        };
        let (terminal, watch) = (job.terminal, std::mem::take(&mut job.watch));
        let place = group.as_deref().and_then(group::make);
        let born_there = place.as_ref().and_then(|place| group::fork_into(place).ok());
        // SAFETY: this process has one thread.
        let child = match born_there.map_or_else(|| unsafe { fork() }, Ok) {
            Ok(ForkResult::Child) => never_return(|| child::become_command(job, &ends)),
            Ok(ForkResult::Parent { child }) => child,
            Err(error) => return Err((control, "fork", error)),
        };
        drop(ends);
        let input = descriptors.take(Role::Input);
        let mut supervisor = Self {
            clients: vec![Connection::new(control, true)],
            listener: descriptors.take(Role::Listener),
            signals,
            child,
            trouble: Some(trouble),
            output: descriptors.take(Role::Output),
            terminal,
            had_input: input.is_some(),
            input,
            waiting: VecDeque::new(),
            log: descriptors.take(Role::Log).map(|file| Log::new(file.into())),
            record: descriptors.take(Role::Record).map(File::from),
            watch: Watch::new(watch),
            ending: Ending::Not,
            failed: false,
            end: None,
            gone: false,
            group,
            buffer: Vec::new(),
        };
        for descriptor in [&supervisor.output, &supervisor.input].into_iter().flatten() {
            let _ = fcntl(descriptor, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        }
        supervisor.tell(&Event::Started { pid: child.as_raw() });
        Ok(supervisor)
    }

    fn run(mut self) {
        loop {
            self.reap();
            if self.gone && self.output.is_none() {
                break;
            }
            if let Ending::Killing { until, .. } = self.ending
                && Instant::now() >= until
            {
                break;
            }
            self.act_on_time();
            self.wait();
        }
        self.hear_trouble();
        let left = u32::try_from(tree::descendants(std::process::id().cast_signed()).len()).unwrap_or(u32::MAX);
        if let Some(group) = self.group.take() {
            // One in which something will not end stays for whoever reaps.
            let _ = group::remove(&group);
        }
        self.tell(&Event::Gone { left });
        say_farewell(&mut self.clients);
    }

    /// Sleeps until something happens, and deals with it.
    fn wait(&mut self) {
        let mut watched = Vec::with_capacity(8);
        watched.push(PollFd::new(self.signals.as_fd(), PollFlags::POLLIN));
        for client in &self.clients {
            watched.push(PollFd::new(client.socket.as_fd(), client.awaited()));
        }
        let clients = self.clients.len();
        let optional = [
            (&self.output, PollFlags::POLLIN),
            (&self.trouble, PollFlags::POLLIN),
            (&self.listener, PollFlags::POLLIN),
            (if self.waiting.is_empty() { &None } else { &self.input }, PollFlags::POLLOUT),
        ];
        let mut places = [None; 4];
        for (place, (descriptor, flags)) in places.iter_mut().zip(&optional) {
            if let Some(descriptor) = descriptor {
                *place = Some(watched.len());
                watched.push(PollFd::new(descriptor.as_fd(), *flags));
            }
        }
        if poll(&mut watched, self.timeout()).is_err() {
            return;
        }
        let happened = |at: usize| watched[at].revents().is_some_and(|events| !events.is_empty());
        let heard: Vec<usize> = (0..clients).filter(|client| happened(client + 1)).collect();
        let [output, trouble, listener, input] = places.map(|place| place.is_some_and(happened));
        if output {
            self.read_output(1);
        }
        if trouble {
            self.hear_trouble();
        }
        if input {
            self.write_input();
        }
        if listener {
            self.accept();
        }
        for client in heard.into_iter().rev() {
            self.clients[client].flush();
            self.hear(client);
        }
    }

    fn timeout(&self) -> PollTimeout {
        let until = match self.ending {
            Ending::Not => return PollTimeout::NONE,
            Ending::Asked(kill) => kill,
            Ending::Killing { next, until } => next.min(until),
        };
        // Rounded up: a moment too early would be a turn for nothing.
        let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    }

    /// Buries every child that has ended. The tracked one's end is told after what it printed is in the log.
    fn reap(&mut self) {
        while let Ok(Some(_)) = self.signals.read_signal() {}
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => self.buried(pid, End::Code(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => self.buried(pid, End::Signal(signal as i32)),
                Ok(WaitStatus::StillAlive) => return,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => {
                    if !self.gone {
                        self.gone = true;
                        self.drain_and_close();
                    }
                    return;
                }
            }
        }
    }

    fn buried(&mut self, pid: Pid, end: End) {
        if pid != self.child || self.end.is_some() {
            return;
        }
        self.end = Some(end);
        self.hear_trouble();
        if self.failed {
            return;
        }
        // All that a pipe holds, and no more: what it left running may print for ever.
        self.read_output(64);
        self.finish_line();
        if self.terminal {
            // Terminals are few on a machine; nobody of its session is left in the foreground of this one.
            self.drain_and_close();
            self.input = None;
        }
        self.write_down(end);
        self.tell(&Event::Ended(end));
    }

    /// Adds the end to the record; whoever looks after us learns it there.
    fn write_down(&mut self, end: End) {
        if let Some(record) = &mut self.record {
            let ended = Ended { ended: end, at: SystemTime::now() };
            // A disk that is full takes this line; the record then says "lost", which is true for whoever reads it.
            let _ = serde_json::to_vec(&ended).map(|mut line| {
                line.push(b'\n');
                record.write_all(&line)
            });
        }
    }

    /// Everybody who could write has ended: what is there is all there will be.
    fn drain_and_close(&mut self) {
        while self.read_output(64) {}
        self.output = None;
        self.finish_line();
    }

    /// A line that was begun counts as one: whoever wrote it has ended.
    fn finish_line(&mut self) {
        let mut told = Vec::new();
        if let Some(watch) = &mut self.watch {
            watch.finish(Instant::now(), &mut |watched| told.push(watched));
        }
        for watched in told {
            self.tell(&Event::Watched(watched));
        }
    }

    /// Reads at most so many pieces of output; true if there may be more right now.
    fn read_output(&mut self, pieces: usize) -> bool {
        self.buffer.resize(LONGEST_PACKET - 1024, 0);
        for _ in 0..pieces {
            let Some(output) = &self.output else { return false };
            match nix::unistd::read(output, &mut self.buffer) {
                Ok(0) | Err(Errno::EIO) => {
                    self.output = None;
                    return false;
                }
                Ok(length) => self.printed(length),
                Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn printed(&mut self, length: usize) {
        let buffer = std::mem::take(&mut self.buffer);
        let bytes = &buffer[..length];
        if let Some(log) = &mut self.log {
            // A full disk must not stop the command; the log then ends early, and its length says so.
            let _ = log.append(bytes);
        }
        if let Some(mut watch) = self.watch.take() {
            let mut told = Vec::new();
            watch.push(bytes, Instant::now(), &mut |watched| told.push(watched));
            self.watch = Some(watch);
            for watched in told {
                self.tell(&Event::Watched(watched));
            }
        }
        if self.clients.iter().any(|client| client.follows) {
            let event = Event::Output(bytes.to_vec());
            // A follower that does not keep up misses output on its screen; the log has it.
            self.clients.iter_mut().filter(|client| client.follows).for_each(|client| client.show(&event));
        }
        self.buffer = buffer;
    }

    /// Tells everybody.
    fn tell(&mut self, event: &Event) {
        self.clients.iter_mut().for_each(|client| client.tell(event.clone()));
    }

    fn hear_trouble(&mut self) {
        let Some(trouble) = &self.trouble else { return };
        let mut bytes = [0; child::LONGEST_TROUBLE];
        match nix::unistd::read(trouble, &mut bytes) {
            Ok(0) => {
                self.trouble = None;
                self.tell(&Event::Runs);
            }
            Ok(length) => {
                self.trouble = None;
                self.failed = true;
                self.tell(&Event::Failed(String::from_utf8_lossy(&bytes[..length]).into_owned()));
            }
            Err(_) => {}
        }
    }

    fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        if let Ok(socket) = accept_one(listener) {
            let mut client = Connection::new(socket, false);
            // Whoever comes late learns what the others were told.
            let terminal = self.input.as_ref().or(self.output.as_ref()).filter(|_| self.terminal);
            if let Some(size) = terminal.and_then(size_of) {
                client.tell(Event::Size(size));
            }
            client.tell(Event::Started { pid: self.child.as_raw() });
            if let Some(end) = self.end {
                client.tell(Event::Ended(end));
            }
            self.clients.push(client);
        }
    }

    fn hear(&mut self, client: usize) {
        loop {
            match protocol::receive(&self.clients[client].socket, MsgFlags::MSG_DONTWAIT) {
                Ok(Received::Message(request, descriptors)) => self.asked(client, request, descriptors),
                Ok(Received::Nothing) => return,
                Ok(Received::Closed) | Err(_) => {
                    if self.clients.remove(client).owner {
                        self.end(ORPHAN_GRACE);
                    }
                    return;
                }
            }
        }
    }

    fn asked(&mut self, client: usize, request: Request, descriptors: Vec<OwnedFd>) {
        let answer = match request {
            Request::End { grace } => {
                self.end(Duration::from_millis(grace.into()));
                return;
            }
            Request::Input(bytes) => self.take_input(&bytes),
            Request::CloseInput => self.close_input(),
            Request::Resize(size) => {
                if let (true, Some(terminal)) = (self.terminal, self.input.as_ref().or(self.output.as_ref())) {
                    resize(terminal, size);
                    let others = self.clients.iter_mut().enumerate().filter(|(other, _)| *other != client);
                    others.for_each(|(_, other)| other.tell(Event::Size(size)));
                }
                return;
            }
            Request::Follow => {
                self.clients[client].follows = true;
                return;
            }
            Request::Adopt { roles } => {
                self.adopt(Descriptors(roles.into_iter().zip(descriptors).collect()));
                Event::Adopted
            }
        };
        self.clients[client].tell(answer);
    }

    fn adopt(&mut self, mut descriptors: Descriptors) {
        self.output = descriptors.take(Role::Output);
        self.input = descriptors.take(Role::Input);
        self.had_input |= self.input.is_some();
        self.listener = descriptors.take(Role::Listener);
        self.log = descriptors.take(Role::Log).map(|file| Log::new(file.into()));
        self.record = descriptors.take(Role::Record).map(File::from);
        for descriptor in [&self.output, &self.input].into_iter().flatten() {
            let _ = fcntl(descriptor, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        }
        if let Some(end) = self.end {
            self.write_down(end);
        }
        if self.gone {
            self.drain_and_close();
        }
    }

    fn take_input(&mut self, bytes: &[u8]) -> Event {
        if self.input.is_none() {
            return Event::Refused(if self.had_input { Refused::InputClosed } else { Refused::NoInput });
        }
        if self.waiting.len() + bytes.len() > MOST_WAITING {
            return Event::Refused(Refused::Full);
        }
        self.waiting.extend(bytes);
        let before = self.waiting.len();
        self.write_input();
        if self.input.is_none() {
            return Event::Refused(Refused::InputClosed);
        }
        let waiting = self.waiting.len();
        let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        Event::Taken { taken: number(before - waiting), waiting: number(waiting) }
    }

    fn write_input(&mut self) {
        while !self.waiting.is_empty() {
            let Some(input) = &self.input else { return };
            match nix::unistd::write(input, self.waiting.as_slices().0) {
                Ok(length) => drop(self.waiting.drain(..length)),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                // Nobody reads any more.
                Err(_) => {
                    self.input = None;
                    self.waiting.clear();
                }
            }
        }
    }

    fn close_input(&mut self) -> Event {
        if self.input.is_none() {
            return Event::Refused(if self.had_input { Refused::InputClosed } else { Refused::NoInput });
        }
        if self.terminal {
            // Ctrl-D: the terminal turns it into end of file where a program reads lines.
            self.waiting.push_back(0x04);
            self.write_input();
        } else {
            self.write_input();
            self.input = None;
            self.waiting.clear();
        }
        Event::InputClosed
    }

    /// Begins to end everything. Whoever asks again can make it shorter, never longer.
    fn end(&mut self, grace: Duration) {
        if grace.is_zero() {
            self.ending = Ending::Killing { next: Instant::now(), until: Instant::now() + LAST_GRACE };
        } else if let Ending::Asked(kill) = &mut self.ending {
            *kill = (*kill).min(Instant::now() + grace);
        } else if matches!(self.ending, Ending::Not) {
            let ourselves = std::process::id().cast_signed();
            tree::signal(ourselves, Signal::SIGTERM);
            // One that is stopped hears SIGTERM only when it goes on.
            tree::signal(ourselves, Signal::SIGCONT);
            self.ending = Ending::Asked(Instant::now() + grace);
        }
    }

    fn act_on_time(&mut self) {
        let now = Instant::now();
        match self.ending {
            Ending::Asked(kill) if now >= kill => {
                self.ending = Ending::Killing { next: now, until: now + LAST_GRACE };
                self.act_on_time();
            }
            Ending::Killing { next, until } if now >= next => {
                if let Some(group) = &self.group {
                    group::kill(group);
                }
                tree::signal(std::process::id().cast_signed(), Signal::SIGKILL);
                self.ending = Ending::Killing { next: now + ROUND, until };
            }
            _ => {}
        }
    }
}

#[expect(unsafe_code, reason = "ioctl(TIOCSWINSZ)")]
fn resize(terminal: &OwnedFd, size: TerminalSize) {
    let size = nix::pty::Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the pointer is to a structure of the kind that the request wants.
    unsafe {
        nix::libc::ioctl(terminal.as_raw_fd(), nix::libc::TIOCSWINSZ, &raw const size);
    }
}

#[expect(unsafe_code, reason = "ioctl(TIOCGWINSZ)")]
fn size_of(terminal: &OwnedFd) -> Option<TerminalSize> {
    let mut size = nix::pty::Winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the pointer is to a structure of the kind that the request fills.
    let answer = unsafe { nix::libc::ioctl(terminal.as_raw_fd(), nix::libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0).then_some(TerminalSize { rows: size.ws_row, columns: size.ws_col })
}

#[expect(unsafe_code, reason = "a descriptor that the kernel has just made for us is taken over")]
fn accept_one(listener: &OwnedFd) -> nix::Result<OwnedFd> {
    use std::os::fd::FromRawFd as _;
    let raw = nix::sys::socket::accept4(listener.as_raw_fd(), nix::sys::socket::SockFlag::SOCK_CLOEXEC)?;
    // SAFETY: accept4 has just opened it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
