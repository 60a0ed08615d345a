//! What one command leaves for the next.

use futures::future::try_join_all;
use hermes_core::{Command, FileErrorKind, FinishedHow};

use super::subject::{CAP, PATIENCE, Subject, Wrong, ensure, same, word};

pub(super) async fn directory(subject: &Subject<'_>) -> Result<(), Wrong> {
    let environment = subject.environment;
    let began = environment.cwd();
    let moved = subject.path("a b/c");
    environment.write(&moved.join("file"), b"").await?;
    subject.run(&format!("cd {} && false", word(&moved))).await?;
    let kept = environment.cwd();
    let seen = subject.run("pwd").await?;
    subject.run(&format!("cd {}", word(&began))).await?;
    same("the session's directory", &kept, &moved)?;
    same("what `pwd` says", seen.output, format!("{}\n", moved.display()))?;
    same("the session's directory after the way back", environment.cwd(), began)
}

pub(super) async fn directory_of_its_own(subject: &Subject<'_>) -> Result<(), Wrong> {
    let began = subject.environment.cwd();
    let own = subject.path("own");
    subject.environment.write(&own.join("file"), b"").await?;
    let mut command = Command::new("ls; cd /; pwd", PATIENCE, CAP);
    command.cwd = Some(own);
    same("the output", subject.run_command(command).await?.output.as_str(), "file\n/\n")?;
    same("the session's directory", subject.environment.cwd(), began)
}

pub(super) async fn missing_directory(subject: &Subject<'_>) -> Result<(), Wrong> {
    let trace = subject.path("trace");
    let mut command = Command::new(format!("echo >{}", word(&trace)), PATIENCE, CAP);
    command.cwd = Some(subject.path("missing"));
    let answer = subject.run_command(command).await;
    ensure(answer.is_err(), || "there was no error".to_owned())?;
    match subject.environment.stat(&trace).await {
        Err(error) if error.kind == FileErrorKind::NotFound => Ok(()),
        _ => Err(Wrong("the command ran somewhere else".into())),
    }
}

const FORGET: &str = "unset CONFORMS; unset -f conforms; unalias conforms_too; true";

pub(super) async fn names(subject: &Subject<'_>) -> Result<(), Wrong> {
    subject
        .run("export CONFORMS=$'two\\nlines'; conforms() { echo \"yes $1\"; }; alias conforms_too='echo too'")
        .await?;
    subject.prints("conforms 1; conforms_too; echo \"$CONFORMS\"", "yes 1\ntoo\ntwo\nlines\n").await?;
    subject.run(FORGET).await?;
    let gone = subject.run("echo \"${CONFORMS-gone}\"; conforms || conforms_too").await?;
    ensure(gone.output.starts_with("gone\n"), || "a variable that was unset came back".into())?;
    same("the end without the function and the alias", gone.how, FinishedHow::Exited(127))
}

pub(super) async fn names_after_exit(subject: &Subject<'_>) -> Result<(), Wrong> {
    let first = "export CONFORMS=1; conforms() { echo yes; }; alias conforms_too='echo too'; exit 3";
    same("the end", subject.run(first).await?.how, FinishedHow::Exited(3))?;
    subject.prints("echo $CONFORMS; conforms; conforms_too", "1\nyes\ntoo\n").await?;
    subject.run(FORGET).await.map(drop)
}

pub(super) async fn strict_mode(subject: &Subject<'_>) -> Result<(), Wrong> {
    subject.run("set -euo pipefail; true").await?;
    subject.prints("false; echo \"on${undefined}\"; false | true; echo $?", "on\n0\n").await
}

pub(super) async fn side_by_side(subject: &Subject<'_>) -> Result<(), Wrong> {
    subject.run("export CONFORMS_0=old").await?;
    // Each waits until both have begun, so that each has seen the session without the other's change.
    let one = |name: &str, change: &str| {
        let folder = subject.word("both");
        format!(
            "mkdir -p {folder}; cd {folder}; echo >{name}; until [ -e a ] && [ -e b ]; do sleep 0.05; done; {change}"
        )
    };
    let scripts = [
        one("a", "export CONFORMS_1=1; unset CONFORMS_0; cd - >/dev/null"),
        one("b", "export CONFORMS_2=2; cd - >/dev/null"),
    ];
    try_join_all(scripts.iter().map(|script| subject.run(script))).await?;
    subject.prints("echo ${CONFORMS_0-gone} $CONFORMS_1 $CONFORMS_2", "gone 1 2\n").await?;
    subject.run("unset CONFORMS_1 CONFORMS_2").await.map(drop)
}
