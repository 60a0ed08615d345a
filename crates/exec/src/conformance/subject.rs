//! The environment under examination, and the ways in which checks ask it.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{
    CancellationToken, Command, Environment, Finished, FinishedHow, Place, Process, ProcessState, Start,
};

use crate::Temporary;

/// What a check saw instead of what should be.
#[derive(Debug)]
pub(super) struct Wrong(pub(super) String);

impl<E: std::error::Error> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// How long something that should happen may take. Generous: hosts are slow, and only a failing check waits for it.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// How much output checks keep.
pub(super) const CAP: usize = 50_000;
/// How much of a value a message shows.
const SHOWN: usize = 300;

/// See the module.
pub(super) struct Subject<'e> {
    pub(super) environment: &'e dyn Environment,
    /// A folder there.
    folder: PathBuf,
    /// Where processes in the background leave their traces, which is always here.
    traces: Temporary,
}

impl<'e> Subject<'e> {
    pub(super) async fn new(environment: &'e dyn Environment) -> Result<Self, Wrong> {
        let folder = environment.scratch().join("conformance");
        environment.write(&folder.join("made"), b"").await?;
        // Commands may see the folder under another name than we gave it.
        let folder = environment.real_path(&folder).await?;
        Ok(Self { environment, folder, traces: Temporary::new(&std::env::temp_dir(), "traces-")? })
    }

    /// A path in the folder of the checks, there.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The same as a word of the shell.
    pub(super) fn word(&self, name: &str) -> String {
        word(&self.path(name))
    }

    pub(super) async fn run(&self, script: &str) -> Result<Finished, Wrong> {
        self.run_for(script, PATIENCE).await
    }

    pub(super) async fn run_for(&self, script: &str, limit: Duration) -> Result<Finished, Wrong> {
        self.run_command(Command::new(script, limit, CAP)).await
    }

    pub(super) async fn run_command(&self, command: Command) -> Result<Finished, Wrong> {
        Ok(self.environment.run(command, &CancellationToken::new()).await?)
    }

    /// Runs a script that looks at what others do. A sandbox may keep each command from the processes of all others, so
    /// this one runs outside of it.
    pub(super) async fn look(&self, script: &str) -> Result<Finished, Wrong> {
        let mut command = Command::new(script, PATIENCE, CAP);
        command.unconfined = true;
        self.run_command(command).await
    }

    /// Signals processes by their numbers.
    pub(super) async fn end(&self, numbers: &[String], signal: &str) -> Result<(), Wrong> {
        self.look(&format!("kill -{signal} {}", numbers.join(" "))).await.map(drop)
    }

    /// Runs a script that must print this and exit with 0.
    pub(super) async fn prints(&self, script: &str, output: &str) -> Result<(), Wrong> {
        let finished = self.run(script).await?;
        same("the output", finished.output.as_str(), output)?;
        same("the end", finished.how, FinishedHow::Exited(0))
    }

    /// All bytes of a file there.
    pub(super) async fn content(&self, path: &Path) -> Result<Vec<u8>, Wrong> {
        Ok(self.environment.read(path, 0..u64::MAX).await?)
    }

    /// The numbers of the live processes there that have this word among their arguments.
    pub(super) async fn living(&self, mark: &Mark) -> Result<Vec<String>, Wrong> {
        let mark = &mark.0;
        // Where there is no /proc, `ps` knows. The text of this script is itself an argument, but no such word.
        let script = format!(
            "if [ -r /proc/self/cmdline ]; then for entry in /proc/[0-9]*; do while IFS= read -r -d '' word; do \
             if [ \"$word\" = {mark} ]; then echo \"${{entry##*/}}\"; fi; done <\"$entry/cmdline\"; done 2>/dev/null; \
             else ps -axo pid=,args= | awk '$NF == \"{mark}\" {{ print $1 }}'; fi; true"
        );
        let finished = self.look(&script).await?;
        same("the end of the list of processes", finished.how, FinishedHow::Exited(0))?;
        Ok(finished.output.lines().map(str::to_owned).collect())
    }

    /// Waits until so many processes have the mark.
    pub(super) async fn until_living(&self, mark: &Mark, how_many: usize) -> Result<(), Wrong> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let living = self.living(mark).await?.len();
            if living >= how_many {
                return Ok(());
            }
            ensure(Instant::now() < deadline, || format!("of {how_many} processes only {living} began"))?;
            pause().await;
        }
    }

    /// No process has the mark. One that has is ended, so that a failed check leaves nothing either.
    pub(super) async fn none_lives(&self, mark: &Mark) -> Result<(), Wrong> {
        let living = self.living(mark).await?;
        if !living.is_empty() {
            self.end(&living, "KILL").await?;
        }
        ensure(living.is_empty(), || format!("{} of its processes live on", living.len()))
    }

    /// What starts `script` in the background, with a log under `name`.
    pub(super) fn start(&self, name: &str, script: &str) -> Start {
        Start::new(script, self.place(name))
    }

    pub(super) fn place(&self, name: &str) -> Place {
        Place { log: self.traces.path().join(name).with_extension("log"), facts: String::new() }
    }
}

/// A word that no other process has among its arguments: a number of seconds for `sleep`.
pub(super) struct Mark(pub(super) String);

impl Mark {
    pub(super) fn new() -> Self {
        use std::hash::{BuildHasher as _, Hasher as _, RandomState};
        // Seeded by the operating system. Seven digits are months: longer than any check.
        Self((1_000_000 + RandomState::new().build_hasher().finish() % 9_000_000).to_string())
    }
}

/// A path as a word of the shell.
pub(super) fn word(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

pub(super) async fn pause() {
    tokio::time::sleep(BETWEEN_LOOKS).await;
}

/// Waits until a process has ended, and answers how.
pub(super) async fn end_of(process: &Arc<dyn Process>) -> Result<ProcessState, Wrong> {
    let ended = tokio::time::timeout(PATIENCE, process.ended()).await;
    ensure(ended.is_ok(), || "it did not end".to_owned())?;
    Ok(process.state())
}

/// Everything that a process has printed and that is kept.
pub(super) async fn printed(process: &Arc<dyn Process>) -> Result<Vec<u8>, Wrong> {
    Ok(process.output(0..u64::MAX).await?)
}

/// Waits until a process has printed exactly this.
pub(super) async fn until_printed(process: &Arc<dyn Process>, wanted: &str) -> Result<(), Wrong> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let got = printed(process).await?;
        if got == wanted.as_bytes() {
            return Ok(());
        }
        let got = String::from_utf8_lossy(&got);
        ensure(Instant::now() < deadline, || format!("the log is {}, not {}", shown(&got), shown(&wanted)))?;
        pause().await;
    }
}

pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(Wrong(otherwise())) }
}

#[expect(clippy::needless_pass_by_value, reason = "checks read better without references")]
pub(super) fn same<T: PartialEq + Debug>(what: &str, got: T, wanted: T) -> Result<(), Wrong> {
    ensure(got == wanted, || format!("{what} is {}, not {}", shown(&got), shown(&wanted)))
}

/// A value for a message.
pub(super) fn shown(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
