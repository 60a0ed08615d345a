//! Whether it is sudo that asks.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use nix::sys::stat::{SFlag, fstat};

use crate::local::MARKER;
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
    /// The mark of the command of ours to which it belongs.
    pub(super) mark: String,
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
        let own_output = fs::metadata(format!("/proc/{peer}/fd/1"));
        if !own_output.is_ok_and(|own| (own.dev(), own.ino()) == (file.st_dev, file.st_ino)) {
            return Err("what it sent is not its output");
        }
        let parent = parent(peer).ok_or("it has ended")?;
        if !asks_for_a_password(parent) {
            return Err("it was not started by a sudo that asks for a password");
        }
        let mark = mark_of(parent).ok_or("the sudo that started it belongs to no command of this session")?;
        let start = tree::stat_field(parent, START).ok_or("it has ended")?;
        Ok(Self { id: (parent, start), command: command_line(parent), mark })
    }
}

/// Whether a process is a sudo that reads a password, and not one that runs its command: that one makes pipes, too.
///
/// Its signals tell, which nobody but root can set in it. While sudo reads from its helper it ignores SIGPIPE; before it
/// runs a command it begins to handle SIGPIPE and SIGTSTP, in order to pass them on (sudo 1.9, `tgetpass.c` and
/// `exec_nopty.c`, `exec_pty.c`).
fn asks_for_a_password(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    let has = |signals: &str, signal: Signal| {
        u64::from_str_radix(field(signals), 16).is_ok_and(|set| set & (1 << (signal as i32 - 1)) != 0)
    };
    field("Name:") == "sudo"
        && field("Uid:").split_ascii_whitespace().nth(1) == Some("0")
        && has("SigIgn:", Signal::SIGPIPE)
        && !has("SigCgt:", Signal::SIGTSTP)
}

fn parent(pid: i32) -> Option<i32> {
    tree::stat_field(pid, PARENT)?.parse().ok()
}

/// The mark that a command of ours has and everything below it: that of the process right below its supervisor, which is
/// below the fork server, which is below us.
fn mark_of(pid: i32) -> Option<String> {
    let ourselves = std::process::id().cast_signed();
    let line: Vec<i32> = std::iter::successors(Some(pid), |pid| parent(*pid).filter(|parent| *parent > 0)).collect();
    let at = line.iter().position(|pid| *pid == ourselves)?.checked_sub(3)?;
    let environ = fs::read(format!("/proc/{}/environ", line[at])).ok()?;
    let marked = |variable: &[u8]| variable.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    String::from_utf8(environ.split(|byte| *byte == 0).find_map(marked)?).ok()
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
        // Root's own pipes look like those of sudo, but this one is not the output of the test.
        let why = SudoCall::of(own, &writer.into()).unwrap_err();
        let is_root = nix::unistd::geteuid().is_root();
        assert_eq!(why, if is_root { "what it sent is not its output" } else { "its output was not made by root" });
    }
}
