//! Listens for helpers, and answers those that sudo has started.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{CancellationToken, PasswordWish};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::MsgFlags;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::call::SudoCall;
use super::{Answered, Asked, PasswordSource, SudoSetup, write_scripts};
use crate::supervisor::protocol::{self, Received};

/// How long a password is known after it was used last: what sudo itself does on a terminal (sudoers(5),
/// `timestamp_timeout`).
const KNOWN_FOR: Duration = Duration::from_secs(5 * 60);
/// How long a helper may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many calls of sudo are remembered to have got a password.
const MOST_CALLS: usize = 64;

/// Answers helpers until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    folder: PathBuf,
    listening: JoinHandle<()>,
}

impl Server {
    /// Makes `folder` with the scripts for the program `sudo`, and listens in it.
    pub(crate) fn start(folder: PathBuf, sudo: &Path, setup: SudoSetup) -> io::Result<Self> {
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let socket = folder.join("socket");
        let listener = UnixListener::bind(&socket)?;
        write_scripts(&folder, sudo, &setup.helper, &socket)?;
        let desk = Arc::new(Desk { source: setup.source, known: tokio::sync::Mutex::default() });
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let desk = Arc::clone(&desk);
                tokio::spawn(async move { desk.serve(&stream).await });
            }
        });
        Ok(Self { folder, listening })
    }

    /// What commands get so that their sudo asks here; `path` is their `PATH`.
    pub(crate) fn variables(&self, path: &OsStr) -> [(OsString, OsString); 2] {
        let mut ours_first = self.folder.clone().into_os_string();
        ours_first.push(":");
        ours_first.push(path);
        [("PATH".into(), ours_first), ("SUDO_ASKPASS".into(), self.folder.join("ask").into())]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

struct Desk {
    source: Arc<dyn PasswordSource>,
    /// Held while somebody is asked: a second sudo waits for the answer to the first.
    known: tokio::sync::Mutex<Known>,
}

#[derive(Default)]
struct Known {
    password: Option<(SecretString, Instant)>,
    /// Those that got one, so that we see when it was wrong.
    calls: VecDeque<(i32, String)>,
}

impl Desk {
    async fn serve(&self, stream: &UnixStream) {
        let answer = match self.answer(stream).await {
            Ok(()) => Answered::Given,
            Err(why) => Answered::No(why),
        };
        // A helper that is gone needs no answer.
        let _ = protocol::send(stream, &answer, &[], MsgFlags::empty());
    }

    async fn answer(&self, stream: &UnixStream) -> Result<(), String> {
        let pipe = timeout(PATIENCE, received(stream)).await.ok().flatten().ok_or("Hermes did not understand")?;
        let peer = stream.peer_cred().ok().and_then(|peer| peer.pid()).ok_or("Hermes cannot tell who asks")?;
        let call = SudoCall::of(peer, &pipe)
            .map_err(|why| format!("Hermes tells passwords to sudo only, and this does not look like it: {why}"))?;
        let mut known = self.known.lock().await;
        let refused = known.calls.contains(&call.id);
        let fresh = known.password.take().filter(|(_, used)| !refused && used.elapsed() < KNOWN_FOR);
        let password = match fresh {
            Some((password, _)) => password,
            None => {
                let cancel = CancellationToken::new();
                let _no_longer = cancel.clone().drop_guard();
                let wish = PasswordWish { command: call.command, refused };
                let asking = self.source.password(&wish, &cancel);
                tokio::select! {
                    told = asking => told?,
                    () = gone(stream) => return Err("sudo has ended".into()),
                }
            }
        };
        write(&pipe, &password).map_err(|error| format!("sudo does not take the password: {error}"))?;
        known.password = Some((password, Instant::now()));
        known.calls.retain(|known| *known != call.id);
        known.calls.push_back(call.id);
        if known.calls.len() > MOST_CALLS {
            known.calls.pop_front();
        }
        Ok(())
    }
}

/// The descriptor that comes with what a helper says first.
async fn received(stream: &UnixStream) -> Option<OwnedFd> {
    let receive = || match protocol::receive::<Asked>(stream, MsgFlags::MSG_DONTWAIT)? {
        Received::Nothing => Err(io::ErrorKind::WouldBlock.into()),
        Received::Message(Asked::ForPassword, descriptors) => Ok(descriptors),
        Received::Closed => Ok(Vec::new()),
    };
    let mut descriptors = stream.async_io(Interest::READABLE, receive).await.ok()?;
    descriptors.pop().filter(|_| descriptors.is_empty())
}

/// Waits until nobody is at the other end.
async fn gone(stream: &UnixStream) {
    loop {
        if stream.readable().await.is_err() {
            return;
        }
        match stream.try_read(&mut [0; 16]) {
            Ok(0) => return,
            // A helper has nothing more to say.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Writes the line that sudo reads. It is shorter than what a pipe takes at once, and sudo's pipe is empty.
fn write(pipe: &OwnedFd, password: &SecretString) -> io::Result<()> {
    let line = SecretString::from(format!("{}\n", password.expose_secret()));
    let mut ready = [PollFd::new(pipe.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut ready, PollTimeout::ZERO)? == 0 {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let written = nix::unistd::write(pipe, line.expose_secret().as_bytes())?;
    if written == line.expose_secret().len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}
