//! What sudo starts to learn the password, and which never learns it itself.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::socket::MsgFlags;

use super::{Answered, Asked};
use crate::supervisor::protocol::{self, Received};

/// Characters of a prompt that are passed on.
const LONGEST_PROMPT: usize = 200;

/// Sends standard output to whoever listens on `socket`, and waits until an answer to `prompt` was written into it.
///
/// Fails with a sentence if nobody listens or there is no password.
pub fn ask(socket: &Path, prompt: &str) -> Result<(), String> {
    let gone = |error: io::Error| format!("Hermes cannot be asked for the password of sudo: {error}");
    let prompt = prompt.chars().take(LONGEST_PROMPT).collect();
    let stream = UnixStream::connect(socket).map_err(gone)?;
    protocol::send(&stream, &Asked::ForPassword { prompt }, &[io::stdout().as_fd()], MsgFlags::empty())
        .map_err(gone)?;
    match protocol::receive(&stream, MsgFlags::empty()).map_err(gone)? {
        Received::Message(Answered::Given, _) => Ok(()),
        Received::Message(Answered::No(why), _) => Err(why),
        Received::Nothing | Received::Closed => Err("Hermes has ended, and nobody tells sudo a password".into()),
    }
}
