//! One line from the terminal that nobody has to wait for.
//!
//! A question may expire while it stands on the screen. A blocked read could not be taken back and would swallow the next
//! thing that is typed, so the terminal is only read once a whole line is there.

use std::io::{self, BufRead as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;

/// How long it takes at most until a dropped question lets go of the terminal.
const TICK_MS: u16 = 100;

/// Hides what is typed until it is dropped; what was typed before is not part of it.
struct Unseen(Termios);

impl Unseen {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_flags.remove(LocalFlags::ECHO);
        hidden.local_flags.insert(LocalFlags::ECHONL | LocalFlags::ICANON);
        tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &self.0);
    }
}

/// The next line, which nobody sees while it is typed. Fails where that is not possible.
pub(super) async fn unseen_line() -> io::Result<Option<SecretString>> {
    let _unseen = Unseen::new()?;
    let line = line().await?;
    Ok(line.map(|line| SecretString::from(line.trim_end_matches(['\n', '\r']))))
}

/// Lets the waiting thread go when the question is dropped.
struct LetGo(Arc<AtomicBool>);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The next line that is typed; `None` at the end of the input. Dropping the future leaves the terminal alone.
pub(super) async fn line() -> io::Result<Option<String>> {
    let dropped = Arc::new(AtomicBool::new(false));
    let _let_go = LetGo(Arc::clone(&dropped));
    let reading = tokio::task::spawn_blocking(move || {
        let stdin = io::stdin();
        loop {
            if dropped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let mut waiting = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            match poll(&mut waiting, PollTimeout::from(TICK_MS)) {
                Ok(0) | Err(Errno::EINTR) => {}
                // What is typed after the question was dropped belongs to whoever asks next.
                Ok(_) if dropped.load(Ordering::Relaxed) => return Ok(None),
                Ok(_) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let mut line = String::new();
        let read = stdin.lock().read_line(&mut line)?;
        Ok((read > 0).then_some(line))
    });
    reading.await.map_err(io::Error::other)?
}
