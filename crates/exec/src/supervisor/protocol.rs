//! What we and a supervisor say to each other: one message a packet, on a socket that keeps packets apart.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::SystemTime;

use crate::sandbox::Confinement;
use hermes_core::{TerminalSize, Watched};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, recvmsg, sendmsg,
    socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Descriptors in one packet at most: one for each role. [`Role::Listener`] is the last one.
const MOST_DESCRIPTORS: usize = Role::Listener as usize + 1;
/// The longest packet. Input and output travel in pieces below it.
pub(crate) const LONGEST_PACKET: usize = 64 * 1024;

/// The numbers under which a command gets files without a name that it cannot reach otherwise. Programs expect low
/// numbers to be free, and bash uses those around 10 and 255.
pub(crate) const INHERITED: [i32; 2] = [200, 201];

/// What is to be run. Travels in a memory file, because an environment can be longer than a packet.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The program's absolute path.
    pub program: Vec<u8>,
    /// Its arguments, its own name first.
    pub arguments: Vec<Vec<u8>>,
    /// `NAME=value`.
    pub variables: Vec<Vec<u8>>,
    pub directory: Vec<u8>,
    /// Standard input, output and error are a terminal, which becomes that of the session.
    pub terminal: bool,
    /// Lines with one of these are told.
    pub watch: Vec<String>,
    /// How it is confined.
    pub confinement: Option<Confinement>,
    /// The control group that the command is to be put in; made and removed by the supervisor.
    pub group: Option<PathBuf>,
}

/// What a descriptor that comes with a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// The memory file with the [`Job`], or with what a piece of work is about.
    Job,
    /// The supervisor's end of the connection to us.
    Control,
    /// What the command has as standard output and error (and as its terminal).
    ChildOutput,
    /// What the command has as standard input.
    ChildInput,
    /// Where the supervisor reads the output; of a piece of work, the memory file for what comes out.
    Output,
    /// Where the supervisor writes the input; the terminal's own end where there is one.
    Input,
    /// Where the output is kept.
    Log,
    /// Files without a name that the command gets under the numbers [`INHERITED`].
    First,
    Second,
    /// Where a confined command sends its listener.
    Door,
    /// Where its end is written down.
    Record,
    /// Where others may connect.
    Listener,
}

/// To the fork server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Start a supervisor with the descriptors that come along.
    Start { roles: Vec<Role> },
    /// Do a piece of work with the descriptors that come along.
    Work { work: Assignment, roles: Vec<Role> },
    /// A supervisor was killed: end what it looked after.
    Sweep,
}

/// A piece of work of ours. See [`hermes_core::WorkLimits`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Assignment {
    /// The address of a [`hermes_core::Work`]. Whoever gets it is a copy of whoever wrote it: the function is there as well.
    pub function: usize,
    pub seconds: u64,
    pub memory: u64,
    pub output: u64,
}

/// To a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// End everything: SIGTERM now, SIGKILL after so many milliseconds.
    End {
        grace: u32,
    },
    Input(Vec<u8>),
    CloseInput,
    Resize(TerminalSize),
    /// Take the output over: the descriptors say where it comes from and goes to.
    Adopt {
        roles: Vec<Role>,
    },
    /// Send output as it comes, from now on.
    Follow,
}

/// From a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    Started {
        pid: i32,
    },
    /// The program has taken over.
    Runs,
    /// The program could not be started, and why; it read nothing.
    Failed(String),
    /// The tracked process has ended; what it printed before that is in the log.
    Ended(End),
    /// Nothing is left but so many processes that would not go. The last event.
    Gone {
        left: u32,
    },
    /// An answer to [`Request::Input`]: so much was taken, so much waits.
    Taken {
        taken: u32,
        waiting: u32,
    },
    InputClosed,
    Refused(Refused),
    /// The answer to [`Request::Adopt`]: whoever gets none still has the output.
    Adopted,
    Watched(Watched),
    /// To a follower.
    Output(Vec<u8>),
    /// To somebody who has just connected, and to everybody when somebody else has changed it: how large the terminal is.
    Size(TerminalSize),
}

/// Why a request about input failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Refused {
    NoInput,
    InputClosed,
    Full,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
}

/// The line of a record that says how a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub ended: End,
    pub at: SystemTime,
}

/// A connected pair that keeps packets apart.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let pair = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC);
    pair.map_err(io::Error::from)
}

/// Sends one message. `Ok(false)`: there is no room for it now.
pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
    flags: MsgFlags,
) -> io::Result<bool> {
    let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control = if raw.is_empty() { &[][..] } else { &rights[..] };
    let slices = [io::IoSlice::new(&bytes)];
    loop {
        let flags = flags | MsgFlags::MSG_NOSIGNAL;
        return match sendmsg::<UnixAddr>(socket.as_fd().as_raw_fd(), &slices, control, flags, None) {
            Ok(_) => Ok(true),
            Err(Errno::EAGAIN) => Ok(false),
            Err(Errno::EINTR) => continue,
            Err(error) => Err(error.into()),
        };
    }
}

/// What one look into a socket gave.
pub(crate) enum Received<T> {
    Message(T, Vec<OwnedFd>),
    /// Nothing is there now.
    Nothing,
    /// The other end is closed.
    Closed,
}

/// Receives one message and the descriptors that came with it.
#[expect(unsafe_code, reason = "descriptors that the kernel has just made for us are taken over")]
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd, flags: MsgFlags) -> io::Result<Received<T>> {
    let mut buffer = vec![0; LONGEST_PACKET + 1024];
    let mut space = nix::cmsg_space!([RawFd; MOST_DESCRIPTORS]);
    let flags = flags | MsgFlags::MSG_CMSG_CLOEXEC;
    let (length, descriptors) = loop {
        let mut slices = [io::IoSliceMut::new(&mut buffer)];
        let received = match recvmsg::<UnixAddr>(socket.as_fd().as_raw_fd(), &mut slices, Some(&mut space), flags) {
            // The second one comes once, before what the other end has said, if it closed without reading all that we said.
            Err(Errno::EINTR | Errno::ECONNRESET) => continue,
            Err(Errno::EAGAIN) => return Ok(Received::Nothing),
            received => received?,
        };
        let mut descriptors = Vec::new();
        for control in received.cmsgs()? {
            if let ControlMessageOwned::ScmRights(raw) = control {
                // SAFETY: recvmsg has just opened these for us, and nobody else knows them.
                descriptors.extend(raw.into_iter().map(|raw| unsafe { OwnedFd::from_raw_fd(raw) }));
            }
        }
        break (received.bytes, descriptors);
    };
    if length == 0 {
        return Ok(Received::Closed);
    }
    let message = postcard::from_bytes(&buffer[..length]).map_err(io::Error::other)?;
    Ok(Received::Message(message, descriptors))
}
