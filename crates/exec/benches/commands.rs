//! What it costs to run things here, against what the system itself takes.
//!
//! `cargo bench -p hermes-exec --bench commands` prints a Markdown table of medians. Ours and the floor take turns, so
//! that a machine that gets slower hits both.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people who measure")]

use std::path::PathBuf;
use std::process::{Command as Std, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use hermes_core::{CancellationToken, Command, Environment as _, Finished, Place, Start};
use hermes_exec::LocalEnvironment;
use hermes_testkit::measure::{in_turn, median, ratio, shown, timed};

const HUNDRED_MEGABYTES_OF_LINES: &str = "head -c 100000000 /dev/zero | tr '\\0' x | fold -w 99";
const HUNDRED_MEGABYTES: &str = "head -c 100000000 /dev/zero | tr '\\0' x";

/// What the first command of an environment takes that has been there for a moment, and the floor after it. One
/// environment is there at a time, as in a program that somebody starts.
fn first_command() -> (Duration, Duration) {
    let here = Here::new();
    std::thread::sleep(Duration::from_millis(20));
    (timed(&mut || here.run("true")), timed(&mut || bash("true")))
}

fn main() {
    let here = Here::new();
    println!("| what | hermes | floor | ratio | goal |\n|---|---|---|---|---|");
    let row = |what: &str, ours: Duration, floor_name: &str, floor: Duration, goal: &str| {
        let times = ratio(ours, floor);
        println!("| {what} | {} | {floor_name} {} | {times:.2}x | {goal} |", shown(ours), shown(floor));
    };

    let (ours, floor) = in_turn(200, || here.run("true"), || bash("true"));
    row("`true`", ours, "`bash -c true`", floor, "at most 2x");

    let (ours, floor): (Vec<Duration>, Vec<Duration>) = (0..50).map(|_| first_command()).unzip();
    let (ours, floor) = (median(ours), median(floor));
    row("`true`, the first command of a new environment", ours, "`bash -c true`", floor, "at most 2x");

    let (ours, floor) = in_turn(50, || here.run("sleep 0.05"), || bash("sleep 0.05"));
    row("`sleep 0.05`", ours, "bash", floor, "");

    let (ours, floor) = in_turn(
        5,
        || here.run("for i in {1..100}; do :; done; echo one"),
        || bash("for i in {1..100}; do :; done; echo one"),
    );
    row("100 turns of a loop", ours, "bash", floor, "");

    let sequential = |one: &dyn Fn()| (0..100).for_each(|_| one());
    let (ours, floor) = in_turn(5, || sequential(&|| here.run("echo hi")), || sequential(&|| bash("echo hi")));
    row("100 `echo` one after the other", ours, "bash", floor, "");

    let (ours, floor) = in_turn(20, || here.side_by_side("true", 32), || bash_side_by_side("true", 32));
    row("32 `true` side by side", ours, "bash", floor, "at most 1.5x");

    let (ours, floor) = in_turn(5, || here.side_by_side("sleep 0.2", 20), || bash_side_by_side("sleep 0.2", 20));
    row("20 `sleep 0.2` side by side", ours, "bash", floor, "at most 0.7 s");

    for (what, producer) in [("lines", HUNDRED_MEGABYTES_OF_LINES), ("one line", HUNDRED_MEGABYTES)] {
        let what = format!("100 MB of output ({what}), all of it kept in a file");
        let into = |place: &str| format!("{producer} | cat >{place}");
        let (ours, floor) = in_turn(7, || here.run(producer), || bash(&into("/dev/null")));
        row(&what, ours, "the producer into `cat >/dev/null`", floor, "at most 1.2x");
        let file = here.log().display().to_string();
        let (ours, floor) = in_turn(7, || here.run(producer), || bash(&into(&file)));
        row(&what, ours, "the producer into `cat >FILE`", floor, "");
    }

    let (ours, floor) = in_turn(
        5,
        || here.run("head -c 50000 /dev/zero | tr '\\0' '\\033' | sed 's/\\x1b/\\x1b]/g'"),
        || {
            bash("head -c 50000 /dev/zero | tr '\\0' '\\033' | sed 's/\\x1b/\\x1b]/g'");
        },
    );
    row("50,000 times `ESC ]`", ours, "the producer", floor, "");

    let (mut starts, mut begins, mut kills) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..50 {
        let (start, begin, kill) = here.start_and_kill("sleep 300");
        starts.push(start);
        begins.push(begin);
        kills.push(kill);
    }
    println!("| a process started in the background | {} | | | at most 2 ms |", shown(median(starts)));
    println!("| the same, until its program is seen to run | {} | | | |", shown(median(begins)));
    println!("| killed, and known to be gone | {} | | | at most 50 ms |", shown(median(kills)));

    let (ours, floor) = in_turn(50, || drop(Here::new()), || drop(tempfile::tempdir().unwrap()));
    row("a new environment and its fork server", ours, "a folder", floor, "");
    here.close();
}

struct Here {
    runtime: tokio::runtime::Runtime,
    environment: LocalEnvironment,
    folder: tempfile::TempDir,
    logs: AtomicU32,
}

impl Here {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let environment = LocalEnvironment::new(folder.path(), folder.path(), std::env::vars_os(), &[]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, environment, folder, logs: AtomicU32::new(0) }
    }

    fn run(&self, script: &str) {
        drop(self.runtime.block_on(self.finished(script)));
    }

    async fn finished(&self, script: &str) -> Finished {
        let command = Command::new(script, Duration::from_secs(60), 50_000);
        self.environment.run(command, &CancellationToken::new()).await.unwrap()
    }

    fn side_by_side(&self, script: &str, how_many: usize) {
        self.runtime.block_on(join_all((0..how_many).map(|_| self.finished(script))));
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join(self.logs.fetch_add(1, Ordering::Relaxed).to_string())
    }

    fn start_and_kill(&self, script: &str) -> (Duration, Duration, Duration) {
        let log = self.log();
        let place = Place { log, facts: String::new() };
        let start = Start::new(script, place);
        self.runtime.block_on(async {
            let began = Instant::now();
            let process = self.environment.spawn(start).await.unwrap();
            let started = began.elapsed();
            process.begun(Duration::from_secs(1)).await;
            let begun = began.elapsed();
            let began = Instant::now();
            assert_eq!(process.kill(Duration::from_secs(1)).await, 0);
            (started, begun, began.elapsed())
        })
    }

    fn close(&self) {
        self.runtime.block_on(self.environment.close());
    }
}

fn bash_command(script: &str) -> Std {
    let mut command = Std::new("bash");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn bash(script: &str) {
    assert!(bash_command(script).status().unwrap().success());
}

fn bash_side_by_side(script: &str, how_many: usize) {
    let children: Vec<_> = (0..how_many).map(|_| bash_command(script).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}
