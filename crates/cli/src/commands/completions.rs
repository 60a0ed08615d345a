//! `hermes completions SHELL`.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::terminal::out;
use crate::words::{Exit, Failure};

pub(crate) fn run(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "hermes", &mut script);
    out::line(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
