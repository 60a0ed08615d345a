//! The conformance suite against the local backend, as whoever runs the tests and without root's rights.
#![allow(clippy::unwrap_used)]

mod again;

use std::ops::Range;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use hermes_core::{
    CancellationToken, Command, Environment, EnvironmentError, FileError, FileStat, Finished, FinishedHow,
};
use hermes_exec::LocalEnvironment;
use hermes_exec::conformance::{self, Check, Outcome};
use hermes_exec::local::{Reach, SandboxWish, Strictness};
use hermes_exec::sandbox::{Mechanism, preflight};

/// What is not as it should be, one line each.
async fn wrong(environment: &LocalEnvironment) -> String {
    let checks = conformance::run(environment).await;
    let of_check = |Check { name, outcome }: &Check| match outcome {
        Outcome::Passed => None,
        Outcome::Failed(why) => Some(format!("{name}: {why}")),
        // It declares all that is checked.
        Outcome::Skipped(capability) => Some(format!("{name}: skipped for want of {capability}")),
    };
    let wrong: Vec<String> = checks.iter().filter_map(of_check).collect();
    wrong.join("\n")
}

#[tokio::test]
async fn the_local_backend_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let environment = LocalEnvironment::new(folder.path(), folder.path(), std::env::vars_os(), &[]).unwrap();
    let wrong = wrong(&environment).await;
    assert!(wrong.is_empty(), "checks failed:\n{wrong}");
}

#[tokio::test]
async fn the_local_backend_conforms_in_its_sandbox_too() {
    let preflight = preflight();
    if preflight.best() == Mechanism::None {
        println!("skipped: no sandbox works here:\n{preflight}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let environment = LocalEnvironment::new(folder.path(), folder.path(), std::env::vars_os(), &[]).unwrap();
    let (strictness, reach) = (Strictness::Workspace, Reach::Off);
    let wish = SandboxWish { strictness, writable: Vec::new(), hidden: Vec::new(), reach };
    let wrong = wrong(&environment.confined(wish, &preflight).unwrap()).await;
    assert!(wrong.is_empty(), "checks failed:\n{wrong}");
}

#[test]
fn the_local_backend_conforms_for_nobody_too() {
    again::as_nobody("the_local_backend_conforms");
}

#[test]
fn a_check_is_written_as_one_flat_object() {
    let json = |outcome| serde_json::to_string(&Check { name: "it works", outcome }).unwrap();
    assert_eq!(json(Outcome::Passed), r#"{"name":"it works","outcome":"passed"}"#);
    assert_eq!(json(Outcome::Failed("no".into())), r#"{"name":"it works","outcome":"failed","why":"no"}"#);
    assert_eq!(json(Outcome::Skipped("input")), r#"{"name":"it works","outcome":"skipped","why":"input"}"#);
}

/// A backend that declares nothing, counts nothing, thinks that everything went well, and does not clear up.
struct Careless(LocalEnvironment);

#[async_trait]
impl Environment for Careless {
    fn backend(&self) -> &'static str {
        "careless"
    }
    fn cwd(&self) -> PathBuf {
        self.0.cwd()
    }
    fn home(&self) -> &Path {
        self.0.home()
    }
    fn scratch(&self) -> &Path {
        self.0.scratch()
    }
    fn shares_our_files(&self) -> bool {
        true
    }
    async fn run(&self, command: Command, cancel: &CancellationToken) -> Result<Finished, EnvironmentError> {
        let finished = self.0.run(command, cancel).await?;
        Ok(Finished { how: FinishedHow::Exited(0), total_bytes: 0, ..finished })
    }
    async fn stat(&self, path: &Path) -> Result<FileStat, FileError> {
        self.0.stat(path).await
    }
    async fn real_path(&self, path: &Path) -> Result<PathBuf, FileError> {
        self.0.real_path(path).await
    }
    async fn read(&self, path: &Path, range: Range<u64>) -> Result<Vec<u8>, FileError> {
        self.0.read(path, range).await
    }
    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
        self.0.write(path, bytes).await
    }
    async fn create(&self, path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>, FileError> {
        self.0.create(path, bytes).await
    }
    async fn rename(&self, from: &Path, to: &Path) -> Result<Vec<PathBuf>, FileError> {
        // It moves, and looks at nothing.
        let bytes = self.0.read(from, 0..u64::MAX).await?;
        self.0.write(to, &bytes).await?;
        self.0.remove(from).await.map(|()| Vec::new())
    }
    async fn remove(&self, path: &Path) -> Result<(), FileError> {
        self.0.remove(path).await
    }
    async fn list(&self, path: &Path) -> Result<Vec<String>, FileError> {
        self.0.list(path).await
    }
    async fn close(&self) {}
}

#[tokio::test]
async fn what_a_backend_does_wrong_is_told_and_what_it_does_not_promise_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let environment = LocalEnvironment::new(folder.path(), folder.path(), std::env::vars_os(), &[]).unwrap();
    let checks = conformance::run(&Careless(environment)).await;
    let outcome = |name: &str| checks.iter().find(|check| check.name == name).map(|check| check.outcome.clone());
    let failed = |name: &str| matches!(outcome(name), Some(Outcome::Failed(_)));
    assert!(failed("exit codes come back as they are"), "{checks:?}");
    assert!(failed("100 MB of output are counted and kept"), "{checks:?}");
    assert!(failed("a timeout comes in time, with what was printed"), "{checks:?}");
    assert!(failed("closing ends everything that was left"), "{checks:?}");
    assert!(failed("nothing takes the place of a file but what is written to it"), "{checks:?}");
    assert_eq!(outcome("the directory is kept"), Some(Outcome::Passed));
    assert_eq!(outcome("a megabyte of any bytes arrives as input"), Some(Outcome::Skipped("input")));
    assert_eq!(outcome("lines that are watched for arrive"), Some(Outcome::Skipped("background")));
}
