//! Commands of the local backend against a stand-in for the workspace, in the real sandbox.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::borrow::Cow;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hermes_core::{CancellationToken, Command, Environment, FinishedHow, Redactor, Rehearsed};
use hermes_exec::LocalEnvironment;
use hermes_exec::local::{CommittedRehearsal, RehearsalSetup, recover_commits};

/// Takes one word for a secret.
struct NoPasswords;

impl Redactor for NoPasswords {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        text.replace("hunter2", "***").into()
    }
}

struct Here {
    environment: LocalEnvironment,
    folder: tempfile::TempDir,
}

async fn here() -> Option<Here> {
    here_with(&["stages"], "undo", "secret").await
}

/// With these folders for stand-ins, for what can be taken back, and to be hidden.
async fn here_with(stages: &[&str], undo: &str, hidden: &str) -> Option<Here> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().canonicalize().unwrap();
    fs::create_dir_all(path.join("work/build")).unwrap();
    fs::create_dir(path.join("secret")).unwrap();
    for (file, text) in [("work/a.txt", "one\ntwo\n"), ("work/build/x.o", "object"), ("secret/key", "very secret")] {
        fs::write(path.join(file), text).unwrap();
    }
    let environment = environment(&path, stages, undo, hidden);
    if let Err(why) = environment.can_rehearse().await {
        eprintln!("skipped: {why}");
        return None;
    }
    Some(Here { environment, folder })
}

fn environment(path: &Path, stages: &[&str], undo: &str, hidden: &str) -> LocalEnvironment {
    let hidden = path.join(hidden);
    let setup = RehearsalSetup {
        stages: stages.iter().map(|stages| path.join(stages)).collect(),
        undo: path.join(undo),
        hidden: Arc::new(move || vec![hidden.clone()]),
        redactor: Some(Arc::new(NoPasswords)),
    };
    let environment = LocalEnvironment::new(&path.join("work"), path, std::env::vars_os(), &[]).unwrap();
    environment.with_rehearsals(setup)
}

impl Here {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    async fn rehearse(&self, script: &str) -> Rehearsed {
        let command = Command::new(script, Duration::from_secs(30), 50_000);
        self.environment.rehearse(command, &CancellationToken::new()).await.unwrap()
    }

    /// The workspace as names and contents.
    fn work(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        let mut folders = vec![self.path("work")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    let name = entry.path().strip_prefix(self.path("work")).unwrap().display().to_string();
                    files.push((name, fs::read_to_string(entry.path()).unwrap()));
                }
            }
        }
        files.sort();
        files
    }
}

const SCRIPT: &str = "rm -rf build; echo three >> a.txt; mkdir -p new/deep; echo n > new/deep/file; echo done; exit 4";

#[tokio::test]
async fn it_shows_what_a_command_does_and_the_workspace_stays_as_it_is() {
    let Some(here) = here().await else { return };
    let before = here.work();
    let rehearsed = here.rehearse(SCRIPT).await;
    assert_eq!((rehearsed.finished.how, rehearsed.finished.output.as_str()), (FinishedHow::Exited(4), "done\n"));
    let lines = rehearsed.rehearsal.lines().join("\n");
    for part in ["a.txt (+1", "build", "new/deep/file"] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    assert!(rehearsed.rehearsal.diff().await.contains("+three"));
    assert_eq!(here.work(), before);
    rehearsed.rehearsal.throw_away().await;
    assert_eq!(here.work(), before);
    assert_eq!(fs::read_dir(here.path("stages")).unwrap().count(), 0, "nothing is left of it");
}

#[tokio::test]
async fn committed_it_equals_the_command_run_directly_and_can_be_taken_back() {
    let (Some(here), Some(direct)) = (here().await, here().await) else { return };
    let before = here.work();
    direct
        .environment
        .run(Command::new(SCRIPT, Duration::from_secs(9), 9_000), &CancellationToken::new())
        .await
        .unwrap();
    let rehearsed = here.rehearse(SCRIPT).await;
    let name = rehearsed.rehearsal.commit().await.unwrap();
    assert_eq!(here.work(), direct.work());
    let kept = CommittedRehearsal::all(&here.path("undo"));
    assert_eq!(kept.iter().map(|kept| kept.name.as_str()).collect::<Vec<_>>(), [name.as_str()]);
    kept[0].undo(&here.path("undo")).unwrap();
    assert_eq!(here.work(), before);
    assert!(CommittedRehearsal::all(&here.path("undo")).is_empty());
}

#[tokio::test]
async fn what_was_written_to_the_stand_in_after_it_was_shown_is_not_committed() {
    let Some(here) = here().await else { return };
    let before = here.work();
    let rehearsed = here.rehearse("echo good > a.txt").await;
    let stand_in = fs::read_dir(here.path("stages")).unwrap().next().unwrap().unwrap().path();
    fs::write(stand_in.join("upper/a.txt"), "evil\n").unwrap();
    let why = rehearsed.rehearsal.commit().await.unwrap_err();
    assert!(why.contains("a.txt changed in the stand-in after it was shown"), "{why}");
    assert_eq!(here.work(), before);
}

#[tokio::test]
async fn an_undo_that_was_interrupted_is_finished_at_the_next_start() {
    let Some(here) = here().await else { return };
    let before = here.work();
    let name = here.rehearse(SCRIPT).await.rehearsal.commit().await.unwrap();
    let journal = here.path("undo").join(&name).join("journal");
    // What is in the journal when a process dies that has just begun to take back.
    let mut text = fs::read_to_string(&journal).unwrap();
    text.push_str("\"taking_back\"\n");
    fs::write(&journal, text).unwrap();
    let kept = CommittedRehearsal::all(&here.path("undo"));
    assert!(kept[0].undo(&here.path("undo")).unwrap_err().contains("interrupted"));

    let said = recovered(&here.path("undo")).await;
    assert!(said.len() == 1 && said[0].contains("is taken back now"), "{said:?}");
    assert_eq!(here.work(), before);
    assert!(CommittedRehearsal::all(&here.path("undo")).is_empty());
    assert!(recover_commits(&here.path("undo"), SystemTime::now()).is_empty());
}

#[tokio::test]
async fn a_commit_without_its_note_gets_one_and_a_note_without_its_commit_goes() {
    let Some(here) = here().await else { return };
    let before = here.work();
    let name = here.rehearse(SCRIPT).await.rehearsal.commit().await.unwrap();
    let (undo, note) = (here.path("undo"), here.path("undo").join(format!("{name}.json")));
    fs::copy(&note, undo.join("undo-gone.json")).unwrap();
    let text = fs::read_to_string(undo.join("undo-gone.json")).unwrap();
    fs::write(undo.join("undo-gone.json"), text.replace(&name, "undo-gone")).unwrap();
    fs::remove_file(&note).unwrap();
    let said = recovered(&undo).await;
    assert!(said.len() == 1 && said[0].contains(&format!("hermes rehearsals undo {name}")), "{said:?}");
    let all = CommittedRehearsal::all(&undo);
    assert_eq!((all.len(), &all[0].name, &all[0].workspace), (1, &name, &here.path("work")));
    all[0].undo(&undo).unwrap();
    assert_eq!(here.work(), before);
}

/// Recovers until so many commits are left. A fork in another test may hold the lock for a moment, and then everything is
/// left for the next time.
async fn until_left(undo: &Path, now: SystemTime, left: usize) {
    for _ in 0..500 {
        assert!(recover_commits(undo, now).is_empty());
        if CommittedRehearsal::all(undo).len() == left {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} are left, not {left}", CommittedRehearsal::all(undo).len());
}

/// What is said about what was interrupted; see [`until_left`] for why that may take more than one look.
async fn recovered(undo: &Path) -> Vec<String> {
    for _ in 0..500 {
        let said = recover_commits(undo, SystemTime::now());
        if !said.is_empty() {
            return said;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Vec::new()
}

#[tokio::test]
async fn the_way_back_is_kept_for_a_time_and_in_number() {
    let Some(here) = here().await else { return };
    let undo = here.path("undo");
    let name = here.rehearse("echo x > a.txt").await.rehearsal.commit().await.unwrap();
    let committed = here.work();
    let note = fs::read_to_string(undo.join(format!("{name}.json"))).unwrap();
    for number in 0..50 {
        let other = format!("undo-z{number:02}");
        fs::create_dir_all(undo.join(&other).join("saved")).unwrap();
        fs::copy(undo.join(&name).join("journal"), undo.join(&other).join("journal")).unwrap();
        fs::write(undo.join(format!("{other}.json")), note.replace(&name, &other)).unwrap();
    }
    // All of one age: the first by name is the one too many.
    let first = CommittedRehearsal::all(&undo)[0].name.clone();
    until_left(&undo, SystemTime::now(), 50).await;
    assert!(!undo.join(&first).exists() && !undo.join(format!("{first}.json")).exists());

    let in_days = |days: u64| SystemTime::now() + Duration::from_secs(days * 24 * 3600);
    until_left(&undo, in_days(13), 50).await;
    until_left(&undo, in_days(15), 0).await;
    let left: Vec<_> = fs::read_dir(&undo).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
    assert_eq!(here.work(), committed);
}

#[tokio::test]
async fn what_is_written_down_is_private_and_without_secrets() {
    let Some(here) = here().await else { return };
    let name = here.rehearse("echo hunter2 > a.txt").await.rehearsal.commit().await.unwrap();
    let note = here.path("undo").join(format!("{name}.json"));
    let text = fs::read_to_string(&note).unwrap();
    assert!(text.contains("echo *** > a.txt") && !text.contains("hunter2"), "{text}");
    let journal = fs::read_to_string(here.path("undo").join(&name).join("journal")).unwrap();
    assert!(!journal.contains("hunter2"), "{journal}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o077;
    assert_eq!((mode(&note), mode(&here.path("undo")), mode(&here.path("undo").join(&name))), (0, 0, 0));
}

/// Somebody works in their home folder, and the agent's home is in it.
#[tokio::test]
async fn a_workspace_that_holds_the_agents_home_is_rehearsed_without_it() {
    let stages = ["work/.hermes/stages", "elsewhere"];
    let Some(here) = here_with(&stages, "work/.hermes/undo", "work/.hermes").await else { return };
    fs::create_dir(here.path("work/.hermes")).unwrap();
    fs::write(here.path("work/.hermes/config"), "the agent's").unwrap();
    let before = here.work();
    let script =
        "cat .hermes/config; echo x > .hermes/config; mv .hermes away; rm -rf a.txt build .hermes; echo n > new";
    let rehearsed = here.rehearse(script).await;
    assert!(!rehearsed.finished.output.contains("the agent's"), "{}", rehearsed.finished.output);
    let lines = rehearsed.rehearsal.lines().join("\n");
    assert!(lines.contains("a.txt") && !lines.contains("hermes"), "{lines}");
    rehearsed.rehearsal.commit().await.unwrap();
    let names = |work: Vec<(String, String)>| work.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let after = names(here.work());
    assert!(after.contains(&"new".into()) && !after.contains(&"a.txt".into()), "{after:?}");
    CommittedRehearsal::all(&here.path("work/.hermes/undo"))[0].undo(&here.path("work/.hermes/undo")).unwrap();
    fs::remove_file(here.path("work/.hermes/undo/.lock")).unwrap();
    assert_eq!(here.work(), before);
    drop(rehearsed);
    let left = std::process::Command::new("find").arg(here.path("elsewhere")).output().unwrap();
    assert_eq!(fs::read_dir(here.path("elsewhere")).unwrap().count(), 0, "{left:?}");
}

#[tokio::test]
async fn where_no_folder_for_stand_ins_lies_outside_of_the_workspace_it_says_so() {
    let Some(here) = here_with(&["work/.hermes/stages"], "work/.hermes/undo", "work/.hermes").await else { return };
    let command = Command::new("true", Duration::from_secs(9), 9_000);
    let error = here.environment.rehearse(command, &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("no folder for stand-ins lies outside"), "{error}");
}

#[tokio::test]
async fn a_folder_that_others_may_enter_holds_no_stand_in() {
    let Some(here) = here().await else { return };
    fs::create_dir(here.path("stages")).unwrap();
    fs::set_permissions(here.path("stages"), fs::Permissions::from_mode(0o755)).unwrap();
    let command = Command::new("true", Duration::from_secs(9), 9_000);
    let error = here.environment.rehearse(command, &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("only its owner may enter"), "{error}");
}

#[tokio::test]
async fn a_workspace_that_changed_underneath_is_not_overwritten() {
    let Some(here) = here().await else { return };
    let rehearsed = here.rehearse("echo mine > a.txt").await;
    fs::write(here.path("work/a.txt"), "somebody else's\n").unwrap();
    let why = rehearsed.rehearsal.commit().await.unwrap_err();
    assert!(why.contains("a.txt"), "{why}");
    assert_eq!(fs::read_to_string(here.path("work/a.txt")).unwrap(), "somebody else's\n");
}

#[tokio::test]
async fn it_reaches_nothing_else() {
    let Some(here) = here().await else { return };
    let outside = here.path("outside");
    let script = format!(
        "echo x > {}; cat {}; exec 3<>/dev/tcp/127.0.0.1/22; (sleep 1; echo late > late) & exit 0",
        outside.display(),
        here.path("secret/key").display()
    );
    let rehearsed = here.rehearse(&script).await;
    assert!(!outside.exists());
    assert!(!rehearsed.finished.output.contains("very secret"), "{}", rehearsed.finished.output);
    assert!(rehearsed.rehearsal.is_empty(), "{:?}", rehearsed.rehearsal.lines());
    assert!(rehearsed.rehearsal.commit().await.is_ok_and(|_| !here.path("work/late").exists()));
}

#[tokio::test]
async fn a_command_that_is_stopped_shows_what_it_did_so_far() {
    let Some(here) = here().await else { return };
    let command = Command::new("rm -r build; sleep 300", Duration::from_secs(1), 9_000);
    let rehearsed = here.environment.rehearse(command, &CancellationToken::new()).await.unwrap();
    assert_eq!(rehearsed.finished.how, FinishedHow::TimedOut);
    assert!(rehearsed.rehearsal.lines().join("\n").contains("build"));
}

#[tokio::test]
async fn outside_of_the_workspace_nothing_is_rehearsed() {
    let Some(here) = here().await else { return };
    let command = Command { cwd: Some("/usr".into()), ..Command::new("true", Duration::from_secs(9), 9_000) };
    let error = here.environment.rehearse(command, &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("is outside of it"), "{error}");
}

/// What may take long happens on a thread that may block: while that one is busy, it waits and nobody else does.
#[test]
fn trying_the_sandbox_and_throwing_away_keep_nobody_waiting() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let Some(here) = here().await else { return };
        let rehearsed = here.rehearse("echo x > a.txt").await;
        let stages = || fs::read_dir(here.path("stages")).unwrap().count();
        let untried = environment(&here.path(""), &["stages"], "undo", "secret");
        let (free, busy) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || busy.recv());

        drop(rehearsed);
        assert_eq!(stages(), 1);
        assert!(tokio::time::timeout(Duration::from_millis(50), untried.can_rehearse()).await.is_err());

        drop(free);
        busy.await.unwrap().unwrap_err();
        untried.can_rehearse().await.unwrap();
        assert_eq!(stages(), 0);
    });
}
