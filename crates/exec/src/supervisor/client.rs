//! Our end of the connection to a supervisor.
//!
//! No task of ours listens all the time: what a supervisor has said waits in the socket until somebody wants to know. So
//! a process in the background costs us nothing while nobody asks.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_core::{InputError, TerminalSize, Watched};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::MsgFlags;

use crate::readiness::readable;

use super::ForkServer;
use super::protocol::{self, End, Event, Job, Received, Refused, Request, Role};

/// The descriptors of a command; see [`Role`].
#[derive(Debug, Default)]
pub(crate) struct Wiring(pub(crate) Vec<(Role, OwnedFd)>);

impl Wiring {
    pub(crate) fn add(&mut self, role: Role, descriptor: impl Into<OwnedFd>) {
        self.0.push((role, descriptor.into()));
    }

    fn borrowed(&self) -> Vec<(Role, BorrowedFd<'_>)> {
        self.0.iter().map(|(role, descriptor)| (*role, descriptor.as_fd())).collect()
    }
}

/// How many messages one look takes. Those of an owner are far fewer; a follower's come as fast as a program prints.
const MOST_AT_ONCE: usize = 64;
/// Output that is kept for whoever follows and does not take it, in bytes; the log has all of it.
const MOST_OUTPUT: usize = 4 * 1024 * 1024;

/// What a supervisor has said so far.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub pid: Option<i32>,
    /// Told to those only who connect later.
    pub size: Option<TerminalSize>,
    /// The program has taken over.
    pub runs: bool,
    pub failed: Option<String>,
    pub end: Option<End>,
    /// Nothing is left of the command but so many processes.
    pub gone: Option<u32>,
    /// The connection is closed.
    pub closed: bool,
    watched: Vec<Watched>,
    /// Output that came since we follow and was not taken yet.
    output: VecDeque<u8>,
    /// Not everything that has come was looked at.
    more: bool,
    /// How many answers about input have come, and the last one.
    answers: u64,
    answer: Option<Event>,
    /// The supervisor has taken the output over.
    pub adopted: bool,
}

/// A command under its supervisor. Dropping it ends the command.
#[derive(Debug)]
pub(crate) struct Supervised {
    socket: OwnedFd,
    known: Mutex<Known>,
    /// How many questions about input were asked, one at a time. Their answers come in the same order and carry no names;
    /// whoever asks and does not wait for the answer leaves one that is not for the next.
    asked: tokio::sync::Mutex<u64>,
}

impl Supervised {
    /// Hands a job over. On an error nothing has run.
    pub(crate) fn start(server: &ForkServer, job: &Job, mut wiring: Wiring) -> io::Result<Self> {
        let mut file = File::from(memfd_create(c"hermes-job", MFdFlags::MFD_CLOEXEC)?);
        file.write_all(&postcard::to_allocvec(job).map_err(io::Error::other)?)?;
        let (socket, theirs) = protocol::pair()?;
        wiring.add(Role::Job, file);
        wiring.add(Role::Control, theirs);
        server.supervise(&wiring.borrowed())?;
        Ok(Self::connected(socket))
    }

    /// A connection to the supervisor of a command that somebody else started. Dropping it changes nothing for the
    /// command.
    pub(crate) fn connected(socket: OwnedFd) -> Self {
        Self { socket, known: Mutex::default(), asked: tokio::sync::Mutex::default() }
    }

    /// What is known now.
    pub(crate) fn look(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut looks = 0;
        known.more = false;
        while !known.closed && !known.more {
            match protocol::receive(&self.socket, MsgFlags::MSG_DONTWAIT) {
                Ok(Received::Message(event, _)) => known.learn(event),
                Ok(Received::Nothing) => break,
                Ok(Received::Closed) | Err(_) => known.closed = true,
            }
            looks += 1;
            known.more = looks == MOST_AT_ONCE;
        }
        known
    }

    /// Waits until `is_so` of what is known, or until nothing more will be known.
    pub(crate) async fn until(&self, is_so: impl Fn(&Known) -> bool) -> io::Result<()> {
        let done = |known: &Known| is_so(known) || known.closed;
        if done(&self.look()) {
            return Ok(());
        }
        // A descriptor of its own for each who waits: the reactor takes every number once only.
        let ready = readable(self.socket.try_clone()?)?;
        loop {
            let mut guard = ready.readable().await?;
            let more = {
                let known = self.look();
                if done(&known) {
                    return Ok(());
                }
                known.more
            };
            if more {
                // Somebody who prints all the time must not keep this thread for themselves.
                tokio::task::yield_now().await;
            } else {
                guard.clear_ready();
            }
        }
    }

    /// Sends a request. An error means that nobody is there any more.
    pub(crate) fn request(&self, request: &Request, wiring: &Wiring) -> io::Result<()> {
        let descriptors: Vec<BorrowedFd<'_>> = wiring.0.iter().map(|(_, descriptor)| descriptor.as_fd()).collect();
        let sent = protocol::send(&self.socket, request, &descriptors, MsgFlags::MSG_DONTWAIT)?;
        if sent { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    /// Sends a request about input and waits for its answer: how much was taken.
    pub(crate) async fn ask(&self, request: &Request) -> Result<usize, InputError> {
        let mut asked = self.asked.lock().await;
        self.request(request, &Wiring::default()).map_err(|_| InputError::Ended)?;
        *asked += 1;
        let is_answered = |known: &Known| known.answers >= *asked || known.gone.is_some();
        self.until(is_answered).await.map_err(|_| InputError::Ended)?;
        let answer = {
            let mut known = self.look();
            if known.answers < *asked { None } else { known.answer.take() }
        };
        match answer {
            Some(Event::Taken { taken, .. }) => Ok(taken as usize),
            Some(Event::InputClosed) => Ok(0),
            Some(Event::Refused(Refused::NoInput)) => Err(InputError::None),
            Some(Event::Refused(Refused::InputClosed)) => Err(InputError::Closed),
            Some(Event::Refused(Refused::Full)) => Err(InputError::Full(super::supervise::MOST_WAITING)),
            _ => Err(InputError::Ended),
        }
    }

    /// The lines that were watched for and came since this was asked before.
    pub(crate) fn watched(&self) -> Vec<Watched> {
        std::mem::take(&mut self.look().watched)
    }

    /// The supervisor itself was ended by force: what it looked after is somebody else's now.
    pub(crate) fn was_killed(&self) -> bool {
        let known = self.look();
        known.closed && known.gone.is_none()
    }
}

impl Known {
    /// Lines wait that were watched for.
    pub(crate) fn has_lines(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Output waits that came since we follow.
    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Takes the output that came since we follow.
    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output).into()
    }

    fn learn(&mut self, event: Event) {
        match event {
            Event::Started { pid } => self.pid = Some(pid),
            Event::Runs => self.runs = true,
            Event::Failed(why) => self.failed = Some(why),
            Event::Ended(end) => self.end = Some(end),
            Event::Gone { left } => self.gone = Some(left),
            Event::Watched(watched) => self.watched.push(watched),
            Event::Taken { .. } | Event::InputClosed | Event::Refused(_) => {
                self.answers += 1;
                self.answer = Some(event);
            }
            Event::Adopted => self.adopted = true,
            Event::Size(size) => self.size = Some(size),
            Event::Output(bytes) => {
                self.output.extend(&bytes);
                let surplus = self.output.len().saturating_sub(MOST_OUTPUT);
                self.output.drain(..surplus);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_program_that_prints_all_the_time_keeps_nobody_from_anything_else() {
        let (ours, theirs) = protocol::pair().unwrap();
        let flood = std::thread::spawn(move || {
            let output = Event::Output(vec![b'x'; 1024]);
            while protocol::send(&theirs, &output, &[], MsgFlags::empty()).is_ok() {}
        });
        let follower = Supervised::connected(ours);
        // On one thread, the timer has its turn only if the wait gives it one.
        let waited = tokio::time::timeout(Duration::from_millis(50), follower.until(|known| known.end.is_some())).await;
        assert!(waited.is_err());
        assert!(follower.look().output.len() <= MOST_OUTPUT);
        drop(follower);
        flood.join().unwrap();
    }
}
