//! Whether it is sudo that asks.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{SFlag, fstat};

use crate::supervisor::tree;

/// The field of `/proc/PID/stat` with the parent, and the one with the start, counted from the state.
const PARENT: usize = 1;
const START: usize = 19;

/// A sudo that waits for a password.
#[derive(Debug)]
pub(super) struct SudoCall {
    /// The process and the moment it began: the same ones ask again when the password was wrong.
    pub(super) id: (i32, String),
    /// What it was called with.
    pub(super) command: String,
}

impl SudoCall {
    /// The sudo that started the helper `peer` and reads the other end of `pipe`. An error says what is not as it is when
    /// sudo asks.
    pub(super) fn of(peer: i32, pipe: &OwnedFd) -> Result<Self, &'static str> {
        let file = fstat(pipe).map_err(|_| "its output cannot be looked at")?;
        if SFlag::from_bits_truncate(file.st_mode) & SFlag::S_IFMT != SFlag::S_IFIFO {
            return Err("its output is no pipe");
        }
        let flags = fcntl(pipe, FcntlArg::F_GETFL).map_err(|_| "its output cannot be looked at")?;
        if OFlag::from_bits_truncate(flags) & OFlag::O_ACCMODE != OFlag::O_WRONLY {
            return Err("its output can be read");
        }
        // Whoever makes a pipe owns it, for as long as it is there (pipe(7)): nobody but root made this one.
        if file.st_uid != 0 {
            return Err("its output was not made by root");
        }
        let parent = parent(peer).ok_or("it has ended")?;
        let status = fs::read_to_string(format!("/proc/{parent}/status")).map_err(|_| "nobody started it")?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        if field("Name:").trim() != "sudo" || field("Uid:").split_ascii_whitespace().nth(1) != Some("0") {
            return Err("sudo did not start it");
        }
        if !is_below(parent, std::process::id().cast_signed()) {
            return Err("the sudo that started it belongs to no command of this session");
        }
        let start = tree::stat_field(parent, START).ok_or("it has ended")?;
        Ok(Self { id: (parent, start), command: command_line(parent) })
    }
}

fn parent(pid: i32) -> Option<i32> {
    tree::stat_field(pid, PARENT)?.parse().ok()
}

fn is_below(pid: i32, root: i32) -> bool {
    std::iter::successors(Some(pid), |pid| parent(*pid).filter(|parent| *parent > 0)).any(|pid| pid == root)
}

/// What a process was started with, without the option that our script has added.
fn command_line(pid: i32) -> String {
    let bytes = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
    let words = bytes.strip_suffix(b"\0").unwrap_or(&bytes).split(|byte| *byte == 0).enumerate();
    let words = words.filter(|(at, word)| !(*at == 1 && *word == b"-A")).map(|(at, word)| match at {
        0 => "sudo".into(),
        _ => String::from_utf8_lossy(&quoted(word)).into_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// As a person would type it.
fn quoted(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-+.,/:=@%".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) { word.to_vec() } else { crate::local::quoted(word) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn only_the_end_of_a_pipe_that_is_written_is_taken() {
        let own = std::process::id().cast_signed();
        let (reader, writer) = std::io::pipe().unwrap();
        let file = OwnedFd::from(File::open("/dev/null").unwrap());
        assert_eq!(SudoCall::of(own, &file).unwrap_err(), "its output is no pipe");
        assert_eq!(SudoCall::of(own, &reader.into()).unwrap_err(), "its output can be read");
        // Root's own pipes look like those of sudo, but sudo did not start this test.
        let why = SudoCall::of(own, &writer.into()).unwrap_err();
        let expected =
            if nix::unistd::geteuid().is_root() { "sudo did not start it" } else { "its output was not made by root" };
        assert_eq!(why, expected);
    }

    #[test]
    fn a_process_is_below_those_that_started_it() {
        let own = std::process::id().cast_signed();
        let child = std::process::Command::new("sleep").arg("5").spawn();
        let mut child = child.unwrap();
        assert!(is_below(child.id().cast_signed(), own) && is_below(own, own));
        assert!(!is_below(own, child.id().cast_signed()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
