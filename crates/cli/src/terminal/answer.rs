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

/// How long it takes at most until a dropped question lets go of the terminal.
const TICK_MS: u16 = 100;

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
