//! What happens when one of us is killed: the supervisor of a command, the fork server, or the whole program.
#![allow(clippy::unwrap_used)]

mod again;
mod observed;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hermes_core::{
    CancellationToken, Clock, Environment as _, EnvironmentError, FinishedHow, InputError, Place, ProcessFacts,
    ProcessState, Processes as _, Start, TerminalSize,
};
use hermes_exec::LocalEnvironment;
use hermes_exec::processes::{ProcessTable, Record, TableSetup, reap};
use observed::{
    Here, PATIENCE, command, descendants, fork_server_of, is_alive, kill, mark, ourselves, parent, processes_with,
    runtime, until, within,
};

/// What a program's end may take to reach everything that it started: a second to end by itself, and then some.
const ORPHANS_LIVE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_command_whose_supervisor_is_killed_is_lost_and_leaves_nothing() {
    let here = Here::new();
    let mark = mark();
    let script = format!("echo $$ >shell; setsid sleep {mark} & env -i sleep {mark} & sleep {mark}");
    let cancel = CancellationToken::new();
    let running = tokio::time::timeout(PATIENCE, here.environment.run(command(&script), &cancel));
    let murder = async {
        until("its processes begin", || processes_with(&mark).len() == 3).await;
        let shell: i32 = fs::read_to_string(here.path("shell")).unwrap().trim().parse().unwrap();
        kill(parent(shell).unwrap());
    };
    let (answer, ()) = tokio::join!(running, murder);
    let error = answer.expect("an answer in time").unwrap_err();
    assert!(matches!(error, EnvironmentError::Lost(_)), "{error}");
    until("what it looked after ends", || processes_with(&mark).is_empty()).await;
    assert_eq!(here.run("echo on").await.output, "on\n");
}

#[tokio::test]
async fn a_process_whose_supervisor_is_killed_is_lost_and_can_be_ended() {
    let here = Here::new();
    let mark = mark();
    let process = here.spawn("a", &format!("setsid sleep {mark} & sleep {mark}; :")).await;
    until("its processes begin", || processes_with(&mark).len() == 2).await;
    kill(parent(process.pid()).unwrap());
    tokio::time::timeout(PATIENCE, process.ended()).await.unwrap();
    assert_eq!(process.state(), ProcessState::Lost);
    process.kill(Duration::from_secs(1)).await;
    until("what it looked after ends", || processes_with(&mark).is_empty()).await;
}

#[test]
fn a_killed_fork_server_is_replaced_and_nothing_is_lost() {
    again::alone("a_killed_fork_server_is_replaced_and_nothing_is_lost", || {
        runtime().block_on(async {
            let here = Here::new();
            let mark = mark();
            let process = here.spawn("a", &format!("sleep {mark}; :")).await;
            until("it begins", || processes_with(&mark).len() == 1).await;
            let server = fork_server_of(ourselves());
            kill(server);
            // Until it has gone it may still take what it will never do.
            until("it is dead", || !is_alive(server)).await;
            assert_eq!(here.run("echo on").await.output, "on\n");
            assert_eq!(process.state(), ProcessState::Running);
            here.environment.close().await;
            assert!(processes_with(&mark).is_empty());
            until("only the new one is left", || descendants(ourselves()).len() == 1).await;
        });
    });
}

/// Two folders that several programs share: `tmp` for their scratch folders, `processes` for their records.
struct Shared(tempfile::TempDir);

impl Shared {
    fn new() -> Self {
        let shared = Self(tempfile::tempdir().unwrap());
        fs::create_dir(shared.path("tmp")).unwrap();
        shared
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Starts a program that runs everything of [`be_owner`], marked so, and waits until all of it runs.
    async fn owner(&self, test: &str, mark: &str) -> Owner {
        let mut command = again::command(test);
        command.env("OWNER_MARK", mark).env("OWNER_FOLDER", self.0.path()).env("TMPDIR", self.path("tmp"));
        let owner = Owner(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
        until("the owner's processes begin", || processes_with(mark).len() == PROCESSES).await;
        owner
    }

    fn scratch_folders(&self) -> usize {
        fs::read_dir(self.path("tmp")).unwrap().count()
    }

    fn records(&self) -> Vec<Record> {
        Record::all(&self.path("processes"))
    }
}

/// A program that is killed at the latest when the test ends.
struct Owner(Child);

impl Owner {
    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many processes [`be_owner`] starts that carry the mark.
const PROCESSES: usize = 6;

/// A program with a bit of everything, until it is killed.
fn be_owner() {
    let mark = std::env::var("OWNER_MARK").unwrap();
    let folder = PathBuf::from(std::env::var_os("OWNER_FOLDER").unwrap());
    runtime().block_on(async {
        let environment = LocalEnvironment::new(&folder, &folder, std::env::vars_os(), &[]).unwrap();
        let table = table(&folder);
        let facts = ProcessFacts {
            command: "on a terminal".into(),
            cwd: folder.clone(),
            notify_on_complete: false,
            watch_patterns: Vec::new(),
            terminal: true,
            unconfined: false,
        };
        let reserved = table.reserve(facts).unwrap();
        let mut on_terminal = Start::new(format!("sleep {mark}; :"), reserved.place.clone());
        on_terminal.terminal = Some(TerminalSize::default());
        table.register(reserved, environment.spawn(on_terminal).await.unwrap());
        let scripts = [
            format!("sleep {mark}; :"),
            format!("setsid sleep {mark} & wait"),
            format!("(env -i setsid sleep {mark} </dev/null >/dev/null 2>&1 &) ; sleep {mark}; :"),
            format!("trap '' TERM; sleep {mark}; :"),
        ];
        let cancel = CancellationToken::new();
        let runs = scripts.iter().map(|script| environment.run(command(script), &cancel));
        let _ = futures::future::join_all(runs).await;
        // If all of them are lost, it still does nothing about it.
        std::future::pending::<()>().await;
    });
}

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

fn table(folder: &Path) -> ProcessTable {
    ProcessTable::new(TableSetup {
        folder: folder.join("processes"),
        owner: "somebody".into(),
        grace: Duration::from_secs(1),
        tells: false,
        redactor: None,
        clock: Arc::new(SystemClock),
    })
}

#[tokio::test]
async fn whoever_ends_something_slowly_and_dies_does_not_make_it_last() {
    let here = Here::new();
    let mark = mark();
    let log = here.path("log");
    let script = format!("trap '' TERM; echo begun; sleep {mark}; :");
    let process = here.environment.spawn(Start::new(script, Place { log, facts: "{}".into() })).await.unwrap();
    until("it runs", || process.output_len() > 0).await;
    let slowly = process.kill(Duration::from_secs(600));
    // Asked for, and not waited for.
    assert!(tokio::time::timeout(Duration::from_millis(300), slowly).await.is_err());
    assert_eq!(processes_with(&mark).len(), 1);
    drop(process);
    within(ORPHANS_LIVE, "it ends", || processes_with(&mark).is_empty()).await;
}

#[test]
fn a_program_that_is_killed_leaves_no_process() {
    if again::is_again() {
        return be_owner();
    }
    runtime().block_on(async {
        let (shared, mark) = (Shared::new(), mark());
        let mut owner = shared.owner("a_program_that_is_killed_leaves_no_process", &mark).await;
        let below = descendants(owner.pid());
        assert!(below.len() > PROCESSES, "{below:?}");
        owner.kill();
        within(ORPHANS_LIVE, "what it started ends", || {
            processes_with(&mark).is_empty() && !below.iter().any(|pid| is_alive(*pid))
        })
        .await;
        // Its supervisor has written down how it ended.
        let states: Vec<ProcessState> = shared.records().iter().map(|record| record.state).collect();
        let hung_up_or_asked = [1, 15].map(|signal| ProcessState::Ended(FinishedHow::Signalled(signal)));
        assert!(matches!(&states[..], [state] if hung_up_or_asked.contains(state)), "{states:?}");
        // The same conversation, in another program, knows it, and nobody else does.
        let again = table(shared.0.path());
        let [entry] = &again.list()[..] else { panic!("{:?}", again.list()) };
        assert_eq!((entry.process.state(), entry.ended.is_some()), (states[0], true));
        assert_eq!(entry.process.text(0..99).await.unwrap(), "");
        assert_eq!(entry.process.write(b"x").await, Err(InputError::Ended));
        assert_eq!(again.kill(&entry.id).await, Some(0));
    });
}

#[test]
fn what_a_crash_of_everybody_leaves_is_reaped_and_what_lives_is_left_alone() {
    let test = "what_a_crash_of_everybody_leaves_is_reaped_and_what_lives_is_left_alone";
    if again::is_again() {
        return be_owner();
    }
    runtime().block_on(async {
        let (shared, dead_mark, live_mark) = (Shared::new(), mark(), mark());
        let mut dead = shared.owner(test, &dead_mark).await;
        let lost: Vec<String> = shared.records().into_iter().map(|record| record.id).collect();
        let live = shared.owner(test, &live_mark).await;
        // Nobody who would clear up survives: the fork server, the supervisors, the program, in this order.
        let server = fork_server_of(dead.pid());
        let supervisors: Vec<i32> =
            descendants(server).into_iter().filter(|child| parent(*child) == Some(server)).collect();
        [server].iter().chain(&supervisors).for_each(|pid| kill(*pid));
        dead.kill();
        // They hold the locks on their records until they are dead to the last.
        until("they are dead", || !supervisors.iter().any(|pid| is_alive(*pid))).await;
        assert_eq!(shared.scratch_folders(), 2);
        let left = processes_with(&dead_mark);
        assert!(!left.is_empty(), "nothing is left to be reaped");

        let reaped = reap(&shared.path("processes"), &[shared.path("tmp")], SystemTime::now());

        assert_eq!((&reaped.lost, reaped.folders, reaped.records), (&lost, 1, 0), "{reaped:?}");
        assert!(reaped.ended > 0, "{reaped:?}");
        // The one with a wiped environment carries no mark of ours; it is beyond our knowledge now.
        until("the rest is gone", || processes_with(&dead_mark).len() <= 1).await;
        processes_with(&dead_mark).into_iter().for_each(kill);
        let states: Vec<ProcessState> = shared.records().iter().map(|record| record.state).collect();
        assert_eq!(states.len(), 2);
        assert!(states.contains(&ProcessState::Lost) && states.contains(&ProcessState::Running), "{states:?}");
        assert_eq!(processes_with(&live_mark).len(), PROCESSES);

        // Half an hour later the files of the lost one go, too.
        let later = SystemTime::now() + Duration::from_secs(1_900);
        let reaped = reap(&shared.path("processes"), &[shared.path("tmp")], later);
        assert_eq!((reaped.records, reaped.folders), (1, 0), "{reaped:?}");
        assert_eq!(shared.records().len(), 1);
        // What still runs can be used by the conversation as before.
        let again = table(shared.0.path());
        let [entry] = &again.list()[..] else { panic!("{:?}", again.list()) };
        assert_eq!(entry.process.state(), ProcessState::Running);
        entry.process.write(b"typed").await.unwrap();
        until("the echo is there", || entry.process.output_len() >= 5).await;
        assert_eq!(entry.process.text(0..99).await.unwrap(), "typed");
        assert!(entry.process.pid() > 0 && entry.process.screen().await.is_some());
        drop(live);
        within(ORPHANS_LIVE, "what it started ends", || processes_with(&live_mark).is_empty()).await;
    });
}
