//! Listens for helpers, and answers those that a sudo of this session has started.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hermes_core::{CancellationToken, PasswordWish};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::MsgFlags;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::call::SudoCall;
use super::{Answered, Asked, PasswordSource, SudoSetup, write_scripts};
use crate::supervisor::protocol::{self, Received};

/// How long a password is known after it was used last: what sudo itself does on a terminal (sudoers(5),
/// `timestamp_timeout`).
const KNOWN_FOR: Duration = Duration::from_secs(5 * 60);
/// How long a helper may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries to listen where the system has no room for more connections.
const PAUSE: Duration = Duration::from_millis(100);
/// How many calls of sudo are remembered to have got a password.
const MOST_CALLS: usize = 64;

/// Answers helpers until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    folder: PathBuf,
    listening: JoinHandle<()>,
    foreground: Arc<Foreground>,
}

/// The commands that somebody waits for, by their marks: only these may ask the person anything.
#[derive(Debug, Default)]
struct Foreground(Mutex<HashMap<String, CancellationToken>>);

impl Foreground {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As long as it is there, a command may ask.
#[derive(Debug)]
pub(crate) struct MayAsk {
    foreground: Arc<Foreground>,
    mark: String,
}

impl Drop for MayAsk {
    fn drop(&mut self) {
        if let Some(turn) = self.foreground.lock().remove(&self.mark) {
            turn.cancel();
        }
    }
}

impl Server {
    /// Makes `folder` with the scripts for the program `sudo`, and listens in it. The marks of this session's commands
    /// begin with `session`.
    pub(crate) fn start(folder: PathBuf, sudo: &Path, session: &str, setup: SudoSetup) -> io::Result<Self> {
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let socket = folder.join("socket");
        let listener = UnixListener::bind(&socket)?;
        write_scripts(&folder, sudo, &setup.helper, &socket)?;
        let foreground = Arc::<Foreground>::default();
        let desk = Arc::new(Desk {
            source: setup.source,
            session: format!("{session}-"),
            foreground: Arc::clone(&foreground),
            known: tokio::sync::Mutex::default(),
        });
        let listening = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(Arc::clone(&desk).serve(stream))),
                    Err(_) => sleep(PAUSE).await,
                }
            }
        });
        Ok(Self { folder, listening, foreground })
    }

    /// What commands get so that their sudo asks here; `path` is their `PATH`.
    pub(crate) fn variables(&self, path: &OsStr) -> [(OsString, OsString); 2] {
        let mut ours_first = self.folder.clone().into_os_string();
        ours_first.push(":");
        ours_first.push(path);
        [("PATH".into(), ours_first), ("SUDO_ASKPASS".into(), self.folder.join("ask").into())]
    }

    /// Lets the command with this mark ask. When what is answered is dropped, a question of it is taken back.
    pub(crate) fn in_foreground(&self, mark: String) -> MayAsk {
        self.foreground.lock().insert(mark.clone(), CancellationToken::new());
        MayAsk { foreground: Arc::clone(&self.foreground), mark }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

struct Desk {
    source: Arc<dyn PasswordSource>,
    session: String,
    foreground: Arc<Foreground>,
    /// Held while somebody is asked: a second sudo waits for the answer to the first.
    known: tokio::sync::Mutex<Known>,
}

#[derive(Default)]
struct Known {
    password: Option<Password>,
    /// How many there were.
    count: u64,
    /// Those that got one and which, so that we see when it was wrong.
    calls: VecDeque<((i32, String), u64)>,
}

struct Password {
    secret: SecretString,
    /// What it answers.
    prompt: String,
    used: Instant,
}

impl Known {
    /// The password that answers `prompt`, unless this call got it already: then it was wrong, and is forgotten. Answers
    /// whether it was.
    fn recall(&mut self, call: &(i32, String), prompt: &str) -> (Option<SecretString>, bool) {
        let is_good = |known: &Password| known.used.elapsed() < KNOWN_FOR;
        self.password = self.password.take().filter(is_good);
        if self.password.as_ref().is_some_and(|known| known.prompt != prompt) {
            return (None, false);
        }
        let had = self.calls.iter().find(|(known, _)| known == call).map(|(_, number)| *number);
        let was_wrong = had == Some(self.count);
        if was_wrong {
            self.password = None;
        }
        (self.password.as_ref().map(|known| known.secret.clone()), was_wrong)
    }

    fn remember(&mut self, call: (i32, String), secret: SecretString, prompt: String, is_new: bool) {
        self.count += u64::from(is_new);
        self.password = Some(Password { secret, prompt, used: Instant::now() });
        self.calls.retain(|(known, _)| *known != call);
        self.calls.push_back((call, self.count));
        if self.calls.len() > MOST_CALLS {
            self.calls.pop_front();
        }
    }
}

impl Desk {
    async fn serve(self: Arc<Self>, stream: UnixStream) {
        let answer = match self.answer(&stream).await {
            Ok(()) => Answered::Given,
            Err(why) => Answered::No(why),
        };
        // A helper that is gone needs no answer.
        let _ = protocol::send(&stream, &answer, &[], MsgFlags::empty());
        drop(stream);
        if matches!(answer, Answered::Given) {
            sleep(KNOWN_FOR).await;
            let mut known = self.known.lock().await;
            known.password = known.password.take().filter(|known| known.used.elapsed() < KNOWN_FOR);
        }
    }

    async fn answer(&self, stream: &UnixStream) -> Result<(), String> {
        let received = timeout(PATIENCE, received(stream)).await.ok().flatten();
        let (prompt, pipe) = received.ok_or("Hermes did not understand")?;
        let peer = stream.peer_cred().ok().and_then(|peer| peer.pid()).ok_or("Hermes cannot tell who asks")?;
        let refused = |why| format!("Hermes tells passwords to sudo only, and this does not look like it: {why}");
        let call = SudoCall::of(peer, &pipe).map_err(refused)?;
        if !call.mark.starts_with(&self.session) {
            return Err(refused("it belongs to no command of this session"));
        }
        let mut known = self.known.lock().await;
        let (secret, was_wrong) = known.recall(&call.id, &prompt);
        let is_new = secret.is_none();
        let secret = match secret {
            Some(secret) => secret,
            None => {
                let wish = PasswordWish { command: call.command, prompt: prompt.clone(), refused: was_wrong };
                self.told(&wish, &call.mark, stream).await?
            }
        };
        write(&pipe, &secret).map_err(|error| format!("sudo does not take the password: {error}"))?;
        known.remember(call.id, secret, prompt, is_new);
        Ok(())
    }

    /// The answer of the source, for as long as the command may ask and sudo waits.
    async fn told(&self, wish: &PasswordWish, mark: &str, stream: &UnixStream) -> Result<SecretString, String> {
        let turn = self.foreground.lock().get(mark).cloned();
        let cancel = turn.as_ref().map_or_else(CancellationToken::new, CancellationToken::child_token);
        if turn.is_none() {
            cancel.cancel();
        }
        let _no_longer = cancel.clone().drop_guard();
        let withdrawn = async {
            match &turn {
                Some(turn) => turn.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            told = self.source.password(wish, &cancel) => told,
            () = gone(stream) => Err("sudo has ended".into()),
            () = withdrawn => Err("nobody typed the password before the command went to the background".into()),
        }
    }
}

/// What a helper says first, with the descriptor that comes along.
async fn received(stream: &UnixStream) -> Option<(String, OwnedFd)> {
    let receive = || match protocol::receive::<Asked>(stream, MsgFlags::MSG_DONTWAIT)? {
        Received::Nothing => Err(io::ErrorKind::WouldBlock.into()),
        Received::Message(Asked::ForPassword { prompt }, descriptors) => Ok((prompt, descriptors)),
        Received::Closed => Err(io::ErrorKind::UnexpectedEof.into()),
    };
    let (prompt, mut descriptors) = stream.async_io(Interest::READABLE, receive).await.ok()?;
    descriptors.pop().filter(|_| descriptors.is_empty()).map(|pipe| (prompt, pipe))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(known: &mut Known, call: i32, prompt: &str) -> (Option<String>, bool) {
        let (secret, was_wrong) = known.recall(&(call, String::new()), prompt);
        (secret.map(|secret| secret.expose_secret().to_owned()), was_wrong)
    }

    #[test]
    fn a_wrong_password_is_forgotten_once_and_a_right_one_is_kept() {
        let mut known = Known::default();
        let give = |known: &mut Known, call: i32, word: &str, is_new: bool| {
            known.remember((call, String::new()), word.into(), "password:".into(), is_new);
        };
        assert_eq!(secret(&mut known, 1, "password:"), (None, false));
        give(&mut known, 1, "typo", true);
        assert_eq!(secret(&mut known, 2, "password:"), (Some("typo".into()), false));
        give(&mut known, 2, "typo", false);
        assert_eq!(secret(&mut known, 1, "password:"), (None, true));
        give(&mut known, 1, "right", true);
        // The second one was given the typo, and gets the right one without a word.
        assert_eq!(secret(&mut known, 2, "password:"), (Some("right".into()), false));
        give(&mut known, 2, "right", false);
        assert_eq!(secret(&mut known, 3, "password:"), (Some("right".into()), false));
        // Another question has another answer.
        assert_eq!(secret(&mut known, 3, "code:"), (None, false));
        assert_eq!(secret(&mut known, 4, "password:"), (Some("right".into()), false));
    }
}
