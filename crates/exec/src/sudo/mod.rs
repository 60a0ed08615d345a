//! A password for `sudo` that nobody but sudo gets to see.
//!
//! A command here has no terminal on which sudo could ask. So it finds, before the real sudo, a small script of ours that
//! calls sudo with `-A`, and sudo then starts a helper whose standard output is a pipe that it reads the password from.
//! The helper never has the password: it sends us its end of the pipe, we look whose pipe that is and what its sudo does
//! at the moment, and write into it ourselves. See `docs/decisions/sudo.md`.

mod call;
mod helper;
mod server;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use hermes_core::{CancellationToken, PasswordWish};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

pub use helper::ask;
pub(crate) use server::Server;

/// Who knows the password of the person.
#[async_trait]
pub trait PasswordSource: Send + Sync {
    /// The password, or a few words that say why there is none: the output of the command shows them. `cancel` fires when
    /// nobody may be asked any more: sudo has ended, or its command has gone to the background. It may have fired already.
    async fn password(&self, wish: &PasswordWish, cancel: &CancellationToken) -> Result<SecretString, String>;
}

/// How sudo gets passwords.
#[derive(Clone)]
pub struct SudoSetup {
    /// The program that does nothing but [`ask`], with its arguments; `--`, the path of the socket and what sudo would show
    /// are added.
    pub helper: Vec<OsString>,
    /// Where passwords come from.
    pub source: Arc<dyn PasswordSource>,
}

impl fmt::Debug for SudoSetup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SudoSetup").field("helper", &self.helper).finish_non_exhaustive()
    }
}

/// From the helper, with its standard output.
#[derive(Debug, Serialize, Deserialize)]
enum Asked {
    ForPassword {
        /// What sudo would show.
        prompt: String,
    },
}

/// To the helper.
#[derive(Debug, Serialize, Deserialize)]
enum Answered {
    /// The password is in the pipe.
    Given,
    /// There is none, and why.
    No(String),
}

/// The first `sudo` on `path`.
pub(crate) fn find(path: &OsStr) -> Option<PathBuf> {
    let is_program =
        |file: &PathBuf| fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
    std::env::split_paths(path).map(|folder| folder.join("sudo")).find(is_program)
}

/// The scripts in `folder`: what commands find as `sudo`, and what sudo starts to ask.
fn write_scripts(folder: &Path, sudo: &Path, helper: &[OsString], socket: &Path) -> io::Result<()> {
    let words = helper.iter().map(OsString::as_os_str).chain([OsStr::new("--"), socket.as_os_str()]);
    let words: Vec<Vec<u8>> = words.map(|word| crate::local::quoted(word.as_bytes())).collect();
    write_script(&folder.join("ask"), &[b"#!/bin/sh\nexec ", &words.join(&b' ')[..], b" \"$1\"\n"].concat())?;
    let sudo = crate::local::quoted(sudo.as_os_str().as_bytes());
    let text = include_str!("sudo.sh").split("@SUDO@").map(str::as_bytes).collect::<Vec<_>>().join(&sudo[..]);
    write_script(&folder.join("sudo"), &text)
}

fn write_script(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(path)?;
    io::Write::write_all(&mut file, text)
}
