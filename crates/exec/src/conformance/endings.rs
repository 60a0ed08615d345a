//! How commands end that do not end by themselves, and what is left of them.

use std::time::{Duration, Instant};

use futures::future::try_join_all;
use hermes_core::{CancellationToken, Command, FinishedHow};

use super::subject::{CAP, Mark, PATIENCE, Subject, Wrong, ensure, same};

/// The limit of a command that is to reach it, after it has done something.
const LIMIT: Duration = Duration::from_secs(3);
/// A call that should have answered long before.
const FAR_TOO_LONG: Duration = Duration::from_secs(40);

pub(super) async fn twenty_at_once(subject: &Subject<'_>) -> Result<(), Wrong> {
    let folder = subject.word("twenty");
    subject.run(&format!("mkdir -p {folder}")).await?;
    let one = |number: usize| async move {
        // None goes on before all are there.
        let folder = subject.word("twenty");
        let script = format!(
            "echo >{folder}/{number}; until set -- {folder}/*; [ $# -ge 20 ]; do sleep 0.2; done; echo {number}"
        );
        subject.prints(&script, &format!("{number}\n")).await
    };
    try_join_all((0..20).map(one)).await.map(drop)
}

pub(super) async fn timeout_in_time(subject: &Subject<'_>) -> Result<(), Wrong> {
    let mark = Mark::new();
    let began = Instant::now();
    let finished = subject.run_for(&format!("echo before; sleep {}; echo after", mark.0), LIMIT).await?;
    let took = began.elapsed();
    same("the end", finished.how, FinishedHow::TimedOut)?;
    same("the output", finished.output.as_str(), "before\n")?;
    ensure(took >= LIMIT, || format!("it came after {took:?}, before the limit of {LIMIT:?}"))?;
    ensure(took < FAR_TOO_LONG, || format!("it came after {took:?}, long after the limit of {LIMIT:?}"))?;
    subject.none_lives(&mark).await
}

/// A script that starts two processes which leave nothing behind by which they could be found, and waits.
fn daemons(mark: &Mark) -> String {
    let mark = &mark.0;
    format!(
        "echo before; setsid sleep {mark} & \
         (env -i \"$(command -v setsid)\" \"$(command -v sleep)\" {mark} </dev/null >/dev/null 2>&1 &); \
         trap '' TERM; while :; do sleep 0.2; done"
    )
}

pub(super) async fn timeout_ends_daemons(subject: &Subject<'_>) -> Result<(), Wrong> {
    let mark = Mark::new();
    let script = daemons(&mark);
    // Counted while the command runs: a check of processes that never began would say nothing.
    let (finished, both_began) =
        tokio::join!(subject.run_for(&script, LIMIT), tokio::time::timeout(LIMIT, subject.until_living(&mark, 2)));
    let finished = finished?;
    both_began.map_err(|_| Wrong(format!("the daemons did not begin within {LIMIT:?}")))??;
    same("the end", finished.how, FinishedHow::TimedOut)?;
    same("the output", finished.output.as_str(), "before\n")?;
    same("the number of processes that are said to be left", finished.left_over, 0)?;
    subject.none_lives(&mark).await
}

pub(super) async fn interrupt(subject: &Subject<'_>) -> Result<(), Wrong> {
    let mark = Mark::new();
    let cancel = CancellationToken::new();
    let running = subject.environment.run(Command::new(daemons(&mark), PATIENCE * 2, CAP), &cancel);
    let stop = async {
        let both_began = subject.until_living(&mark, 2).await;
        cancel.cancel();
        (both_began, Instant::now())
    };
    let (finished, (both_began, stopped)) = tokio::join!(running, stop);
    let (finished, took) = (finished?, stopped.elapsed());
    both_began?;
    same("the end", finished.how, FinishedHow::Cancelled)?;
    same("the output", finished.output.as_str(), "before\n")?;
    ensure(took < FAR_TOO_LONG, || format!("it took {took:?}"))?;
    subject.none_lives(&mark).await
}

pub(super) async fn child_that_stays(subject: &Subject<'_>) -> Result<(), Wrong> {
    let mark = Mark::new();
    let finished = subject.run_for(&format!("sleep {} & echo started", mark.0), FAR_TOO_LONG).await?;
    same("the end", finished.how, FinishedHow::Exited(0))?;
    same("the output", finished.output.as_str(), "started\n")?;
    subject.until_living(&mark, 1).await?;
    // Whoever leaves a server running wants it to run; here it has done its duty.
    subject.end(&subject.living(&mark).await?, "TERM").await
}

pub(super) async fn close(subject: &Subject<'_>) -> Result<(), Wrong> {
    let mark = Mark::new();
    subject.run(&format!("sleep {} & setsid sleep {} & :", mark.0, mark.0)).await?;
    let in_background = if subject.environment.capabilities().background {
        Some(subject.environment.spawn(subject.start("close", &format!("sleep {}; :", mark.0))).await?)
    } else {
        None
    };
    subject.until_living(&mark, 2 + usize::from(in_background.is_some())).await?;
    subject.environment.close().await;
    // Where nothing can be run any more, the place itself is gone, with all that ran in it.
    match subject.run("true").await {
        Ok(_) => subject.none_lives(&mark).await,
        Err(_) => Ok(()),
    }
}
