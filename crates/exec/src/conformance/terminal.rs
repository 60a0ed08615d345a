//! A command on a terminal.

use hermes_core::{Command, FinishedHow, TerminalSize};

use super::subject::{CAP, PATIENCE, Subject, Wrong, same};

pub(super) async fn size(subject: &Subject<'_>) -> Result<(), Wrong> {
    let script = "test -t 0 && test -t 1 && test -t 2 && echo a terminal; stty size; exit 4";
    let mut command = Command::new(script, PATIENCE, CAP);
    command.terminal = Some(TerminalSize { rows: 33, columns: 101 });
    let finished = subject.run_command(command).await?;
    same("the output", finished.output.as_str(), "a terminal\n33 101\n")?;
    same("the end", finished.how, FinishedHow::Exited(4))?;
    subject.prints("test -t 0 || test -t 1 || echo none", "none\n").await
}
