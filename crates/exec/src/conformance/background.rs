//! Processes that live on after the call that started them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{AtLimit, Command, FinishedHow, InputError, Kept, Process, ProcessState, Start, TerminalSize};

use super::output::{EVERY_BYTE, every_byte};
use super::subject::{CAP, Mark, PATIENCE, Subject, Wrong, end_of, ensure, pause, printed, same, shown, until_printed};

const GRACE: Duration = Duration::from_secs(1);
/// The limit of a command that is to reach it, after it has done something.
const LIMIT: Duration = Duration::from_secs(3);

async fn spawned(subject: &Subject<'_>, start: Start) -> Result<Arc<dyn Process>, Wrong> {
    Ok(subject.environment.spawn(start).await?)
}

pub(super) async fn runs_and_ends(subject: &Subject<'_>) -> Result<(), Wrong> {
    let go = subject.word("go");
    let script = format!("until [ -e {go} ]; do sleep 0.05; done; exit 7");
    let process = spawned(subject, subject.start("runs", &script)).await?;
    same("how it is", process.state(), ProcessState::Running)?;
    let looked = subject.look(&format!("kill -0 {} && echo there", process.pid())).await?;
    same("what a look for its number says", looked.output.as_str(), "there\n")?;
    subject.run(&format!("echo >{go}")).await?;
    same("its end", end_of(&process).await?, ProcessState::Ended(FinishedHow::Exited(7)))
}

pub(super) async fn log(subject: &Subject<'_>) -> Result<(), Wrong> {
    let process = spawned(subject, subject.start("log", &format!("{EVERY_BYTE}; printf out; printf err >&2"))).await?;
    end_of(&process).await?;
    let wanted = [every_byte(), b"outerr".to_vec()].concat();
    same("its log", printed(&process).await?, wanted)?;
    same("the length of its log", process.output_len(), 262)?;
    same("a piece of its log", process.output(256..259).await?.as_slice(), b"out")?;
    same("the text of it", process.text(256..262).await?.as_str(), "outerr")
}

pub(super) async fn input(subject: &Subject<'_>) -> Result<(), Wrong> {
    let mut start = subject.start("input", "read -r line; echo \"got $line\"; cat; echo end");
    start.input = true;
    let process = spawned(subject, start).await?;
    process.write(b"one line\n").await?;
    until_printed(&process, "got one line\n").await?;
    process.write(b"no end of line").await?;
    process.close_input().await?;
    same("its end", end_of(&process).await?, ProcessState::Ended(FinishedHow::Exited(0)))?;
    until_printed(&process, "got one line\nno end of lineend\n").await?;
    let late = process.write(b"x").await;
    same("what writing after the end answers", late, Err(InputError::Ended))
}

pub(super) async fn no_input(subject: &Subject<'_>) -> Result<(), Wrong> {
    let mark = Mark::new();
    let process = spawned(subject, subject.start("no-input", &format!("cat; echo read; sleep {}", mark.0))).await?;
    until_printed(&process, "read\n").await?;
    same("what writing answers", process.write(b"x").await, Err(InputError::None))?;
    same("the processes left", process.kill(GRACE).await, 0)
}

pub(super) async fn dialogue(subject: &Subject<'_>) -> Result<(), Wrong> {
    let mut start = subject.start("dialogue", "read -r -p 'name? ' name; echo \"hi $name\"; read -r; exit 5");
    let size = TerminalSize { rows: 20, columns: 70 };
    start.terminal = Some(size);
    let process = spawned(subject, start).await?;
    until_screen_has(&process, "name?").await?;
    process.write(b"Bo\n").await?;
    until_screen_has(&process, "hi Bo").await?;
    let screen = process.screen().await.ok_or_else(|| Wrong("there is no screen".into()))?;
    same("the screen", screen.lines, vec!["name? Bo".to_owned(), "hi Bo".into()])?;
    same("its size", screen.size, size)?;
    same("the cursor", screen.cursor, (3, 1))?;
    process.write(b"\n").await?;
    same("its end", end_of(&process).await?, ProcessState::Ended(FinishedHow::Exited(5)))
}

async fn until_screen_has(process: &Arc<dyn Process>, line: &str) -> Result<(), Wrong> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let screen = process.screen().await.ok_or_else(|| Wrong("there is no screen".into()))?;
        if screen.lines.iter().any(|shown| shown.starts_with(line)) {
            return Ok(());
        }
        ensure(Instant::now() < deadline, || format!("the screen is {}, without {line:?}", shown(&screen.lines)))?;
        pause().await;
    }
}

pub(super) async fn kill(subject: &Subject<'_>) -> Result<(), Wrong> {
    let mark = Mark::new();
    let script = format!("setsid sleep {0} & trap '' TERM; sleep {0}; sleep {0}", mark.0);
    let process = spawned(subject, subject.start("kill", &script)).await?;
    subject.until_living(&mark, 2).await?;
    same("the processes left", process.kill(GRACE).await, 0)?;
    let state = process.state();
    ensure(matches!(state, ProcessState::Ended(_)), || format!("it is {state:?} after the kill"))?;
    subject.none_lives(&mark).await
}

pub(super) async fn watched(subject: &Subject<'_>) -> Result<(), Wrong> {
    let script = "echo starting; printf 'server re'; sleep 0.2; echo 'ady on 80'; sleep 0.2; echo done";
    let mut start = subject.start("watched", script);
    start.watch = vec!["never there".into(), "ready on".into()];
    let process = spawned(subject, start).await?;
    let stirred = tokio::time::timeout(PATIENCE, process.stirred()).await;
    ensure(stirred.is_ok(), || "nothing was told".to_owned())?;
    end_of(&process).await?;
    let lines: Vec<_> = process.watched().into_iter().map(|line| (line.pattern, line.line)).collect();
    same("what was told", lines, vec![("ready on".into(), "server ready on 80".into())])
}

pub(super) async fn kept_at_its_limit(subject: &Subject<'_>) -> Result<(), Wrong> {
    // More than the text holds: what was left out of it is in the log all the same.
    for (name, early) in [("kept", 100), ("kept-much", 3 * CAP)] {
        let go = subject.word(&format!("{name}-goes-on"));
        let script = format!(
            "head -c {early} /dev/zero | tr '\\0' x; until [ -e {go} ]; do sleep 0.05; done; echo late; exit 6"
        );
        let mut command = Command::new(script, LIMIT, CAP);
        command.at_limit = AtLimit::Keep(subject.place(name));
        let finished = subject.run_command(command).await?;
        same("the end", finished.how, FinishedHow::Kept(Kept::AtLimit))?;
        same("the number of bytes printed", finished.total_bytes, early as u64)?;
        let process = finished.process.ok_or_else(|| Wrong("there is no process".into()))?;
        let early = "x".repeat(early);
        until_printed(&process, &early).await?;
        subject.run(&format!("echo >{go}")).await?;
        same("its end", end_of(&process).await?, ProcessState::Ended(FinishedHow::Exited(6)))?;
        until_printed(&process, &(early + "late\n")).await?;
    }
    Ok(())
}
