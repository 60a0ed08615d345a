//! The binary on a real pseudo-terminal.

use rexpect::reader::Options;
use rexpect::session::{PtySession, spawn_with_options};

use super::Hermes;

/// Longer than anything takes on a busy machine; a test that hangs ends with an error instead.
const PATIENCE_MS: u64 = 30_000;

pub(crate) fn chat(hermes: &Hermes, script: &[&str]) -> PtySession {
    let mut session = in_a_terminal(hermes, &["--model", &hermes.script(script)]);
    expect(&mut session, "Type a task, / for commands");
    expect(&mut session, "› ");
    session
}

pub(crate) fn in_a_terminal(hermes: &Hermes, args: &[&str]) -> PtySession {
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("hermes"));
    command
        .args(args)
        .current_dir(hermes.home.work())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", hermes.home.user_home())
        .env("HERMES_HOME", hermes.home.home())
        .env("TERM", "xterm")
        .env("NO_COLOR", "1");
    watch(command)
}

/// Any command on a terminal.
pub(crate) fn watch(command: std::process::Command) -> PtySession {
    let options = Options::new().timeout_ms(Some(PATIENCE_MS)).strip_ansi_escape_codes(true);
    spawn_with_options(command, options).unwrap()
}

/// Waits for `text`. rexpect takes each byte for a character, so the text is given to it byte by byte.
pub(crate) fn expect(session: &mut PtySession, text: &str) -> String {
    let bytes: String = text.bytes().map(char::from).collect();
    session.exp_string(&bytes).unwrap()
}

pub(crate) fn ends_with(session: &PtySession, code: i32) {
    // The type of the status belongs to rexpect's own version of nix, so it is compared as it prints.
    let status = format!("{:?}", session.process().wait().unwrap());
    assert!(status.starts_with("Exited(") && status.ends_with(&format!(", {code})")), "{status}");
}
