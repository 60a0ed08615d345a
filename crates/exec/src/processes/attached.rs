//! Reaching a process that another conversation started, through its supervisor.

use std::io;
use std::time::Duration;

use hermes_core::{InputError, TerminalSize};

use crate::local::place::{connect_to, socket_of};
use crate::supervisor::protocol::{LONGEST_PACKET, Request};
use crate::supervisor::{Supervised, Wiring};

use super::Record;

/// A connection to the process of a record. Dropping it changes nothing for the process.
#[derive(Debug)]
pub struct Attached(Supervised);

impl Attached {
    /// Connects. An error means that nobody looks after the process any more, or that it belongs to another user.
    pub fn connect(record: &Record) -> io::Result<Self> {
        connect_to(&socket_of(&record.log)).map(|socket| Self(Supervised::connected(socket)))
    }

    /// Asks for output as it comes, from now on.
    pub fn follow(&self) -> io::Result<()> {
        self.0.request(&Request::Follow, &Wiring::default())
    }

    /// Waits for output; `None` when the process has ended and all of it was given.
    pub async fn output(&self) -> Option<Vec<u8>> {
        self.0.until(|known| known.has_output() || known.end.is_some()).await.ok()?;
        let bytes = self.0.look().take_output();
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Gives it bytes to read; answers how many it took.
    pub async fn write(&self, bytes: &[u8]) -> Result<usize, InputError> {
        let mut taken = 0;
        for piece in bytes.chunks(LONGEST_PACKET / 2) {
            taken += self.0.ask(&Request::Input(piece.to_vec())).await?;
        }
        Ok(taken)
    }

    /// Its number, once the supervisor has told it.
    pub(super) fn pid(&self) -> Option<i32> {
        self.0.look().pid
    }

    /// Waits until it has ended, or nobody knows any more.
    pub(super) async fn ended(&self) {
        let _ = self.0.until(|known| known.end.is_some()).await;
    }

    /// Whether it takes input; an error says why not.
    pub async fn takes_input(&self) -> Result<(), InputError> {
        self.0.ask(&Request::Input(Vec::new())).await.map(drop)
    }

    /// Ends its input: end of file, in a terminal the character for it.
    pub async fn close_input(&self) -> Result<(), InputError> {
        self.0.ask(&Request::CloseInput).await.map(drop)
    }

    /// How large its terminal was when we connected; `None` if it has none.
    pub async fn size(&self) -> io::Result<Option<TerminalSize>> {
        // The size comes before the number.
        self.0.until(|known| known.pid.is_some()).await?;
        Ok(self.0.look().size)
    }

    /// Gives its terminal another size.
    pub fn resize(&self, size: TerminalSize) {
        // One that has just ended has no terminal to be changed.
        let _ = self.0.request(&Request::Resize(size), &Wiring::default());
    }

    /// Ends it and everything it started; see [`hermes_core::Process::kill`].
    pub async fn kill(&self, grace: Duration) -> io::Result<usize> {
        let grace = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        self.0.request(&Request::End { grace }, &Wiring::default())?;
        self.0.until(|known| known.gone.is_some()).await?;
        let left = self.0.look().gone;
        left.map(|left| left as usize).ok_or_else(|| io::Error::other("its supervisor went away without an answer"))
    }
}
