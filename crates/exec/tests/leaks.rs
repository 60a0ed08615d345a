//! What a long life costs: nothing may be left of a command but its result. Each test has a process to itself, because
//! descriptors, threads and children are counted.
#![allow(clippy::unwrap_used)]

mod again;
mod observed;

use std::time::Duration;

use hermes_core::{CancellationToken, Environment as _, FinishedHow, TerminalSize};
use observed::{Here, command, count, descendants, fork_server_of, is_zombie, ourselves, runtime, ticks, until};

/// What a process has that may grow unseen.
#[derive(Clone, Copy, Debug)]
struct Holds {
    descriptors: usize,
    threads: usize,
}

impl Holds {
    fn now() -> Self {
        Self { descriptors: count("fd"), threads: count("task") }
    }

    /// A few come and go: the listing itself has one, the runtime may keep a thread for a while.
    fn is_about(self, other: Self) -> bool {
        self.descriptors.abs_diff(other.descriptors) <= 2 && self.threads.abs_diff(other.threads) <= 2
    }
}

/// Waits until this process holds what it held before, and has no child but its fork server.
async fn until_as_before(before: Holds) {
    let mut now = Holds::now();
    until("what was held is let go", || {
        now = Holds::now();
        now.is_about(before)
    })
    .await;
    until("nobody is left but the fork server", || descendants(ourselves()).len() == 1).await;
    assert!(!is_zombie(fork_server_of(ourselves())));
}

#[test]
fn five_hundred_commands_leave_nothing() {
    again::alone("five_hundred_commands_leave_nothing", || {
        runtime().block_on(async {
            let here = Here::new();
            for _ in 0..10 {
                here.run("true").await;
            }
            let before = Holds::now();
            for number in 0..500 {
                // Some leave a child that ends soon, some print more than is kept.
                let script = match number % 50 {
                    0 => "sleep 0.01 & echo started",
                    1 => "head -c 200000 /dev/zero | tr '\\0' x",
                    _ => "echo hi",
                };
                assert_eq!(here.run(script).await.how, FinishedHow::Exited(0));
            }
            until_as_before(before).await;
        });
    });
}

#[test]
fn two_hundred_commands_on_a_terminal_leave_nothing() {
    again::alone("two_hundred_commands_on_a_terminal_leave_nothing", || {
        runtime().block_on(async {
            let here = Here::new();
            let on_terminal = |script| {
                let mut command = command(script);
                command.terminal = Some(TerminalSize::default());
                command
            };
            let cancel = CancellationToken::new();
            here.environment.run(on_terminal("true"), &cancel).await.unwrap();
            let before = Holds::now();
            for _ in 0..200 {
                let finished = here.environment.run(on_terminal("test -t 1 && echo yes"), &cancel).await.unwrap();
                assert_eq!(finished.output, "yes\n");
            }
            until_as_before(before).await;
        });
    });
}

#[test]
fn three_hundred_short_processes_in_the_background_leave_nothing() {
    again::alone("three_hundred_short_processes_in_the_background_leave_nothing", || {
        runtime().block_on(async {
            let here = Here::new();
            here.run("true").await;
            let before = Holds::now();
            let mut running = Vec::new();
            for number in 0..300 {
                running.push(here.spawn(&number.to_string(), "true").await);
                // Some 30 side by side.
                if running.len() == 30 {
                    for process in running.drain(..) {
                        process.ended().await;
                    }
                }
            }
            until_as_before(before).await;
        });
    });
}

#[test]
fn commands_that_are_ended_early_leave_nothing() {
    again::alone("commands_that_are_ended_early_leave_nothing", || {
        runtime().block_on(async {
            let here = Here::new();
            here.run("true").await;
            let before = Holds::now();
            for _ in 0..30 {
                let mut command = command("sleep 300 & sleep 300");
                command.timeout = Duration::from_millis(20);
                let finished = here.environment.run(command, &CancellationToken::new()).await.unwrap();
                assert_eq!((finished.how, finished.left_over), (FinishedHow::TimedOut, 0));
                // Let go of in the middle.
                let mut forgotten = Box::pin(here.run("sleep 300"));
                let _ = tokio::time::timeout(Duration::from_millis(10), &mut forgotten).await;
            }
            until_as_before(before).await;
        });
    });
}

#[test]
fn processes_that_wait_cost_no_processor_time() {
    again::alone("processes_that_wait_cost_no_processor_time", || {
        runtime().block_on(async {
            let here = Here::new();
            let mut processes = Vec::new();
            for number in 0..20 {
                let process = here.spawn(&number.to_string(), "sleep 300").await;
                process.begun(Duration::from_secs(10)).await;
                processes.push(process);
            }
            let mut watched = descendants(ourselves());
            watched.push(ourselves());
            assert!(watched.len() >= 1 + 1 + 20 + 20, "{watched:?}");
            let spent = || watched.iter().map(|pid| ticks(*pid)).sum::<u64>();
            // One quiet second is enough: whoever polls never has one.
            let mut least = u64::MAX;
            for _ in 0..10 {
                let before = spent();
                tokio::time::sleep(Duration::from_secs(1)).await;
                least = least.min(spent() - before);
                if least < 3 {
                    break;
                }
            }
            assert!(least < 3, "{least} ticks in a second");
            here.environment.close().await;
            until("they are gone", || descendants(ourselves()).len() == 1).await;
        });
    });
}
