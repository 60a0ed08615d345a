//! The local backend with its sandbox on: the session goes on as without it, and the wall holds.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{
    CancellationToken, Command, Environment, Finished, FinishedHow, Place, ProcessState, Start, TerminalSize,
};
use hermes_exec::LocalEnvironment;
use hermes_exec::local::{Reach, SandboxWish, Strictness};
use hermes_exec::sandbox::proxy::ConnectPolicy;
use hermes_exec::sandbox::{Mechanism, preflight};

struct Here {
    environment: LocalEnvironment,
    /// Holds `work`, where the session starts, and `secret`, which is hidden.
    folder: tempfile::TempDir,
}

/// Not below /tmp, which is the command's own.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/lib").or_else(|_| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))).unwrap()
}

fn here(strictness: Strictness, reach: Reach) -> Option<Here> {
    let preflight = preflight();
    if preflight.best() != Mechanism::Namespaces {
        eprintln!("skipped: namespaces do not work here:\n{preflight}");
        return None;
    }
    let folder = folder();
    fs::create_dir(folder.path().join("work")).unwrap();
    fs::create_dir(folder.path().join("secret")).unwrap();
    fs::write(folder.path().join("secret/key"), "very secret").unwrap();
    let wish = SandboxWish { strictness, writable: Vec::new(), hidden: vec![folder.path().join("secret")], reach };
    let work = folder.path().join("work");
    let environment = LocalEnvironment::new(&work, folder.path(), std::env::vars_os(), &[]).unwrap();
    Some(Here { environment: environment.confined(wish, &preflight).unwrap(), folder })
}

impl Here {
    async fn run(&self, script: &str) -> Finished {
        self.run_command(Command::new(script, Duration::from_secs(30), 50_000)).await
    }

    async fn run_command(&self, command: Command) -> Finished {
        self.environment.run(command, &CancellationToken::new()).await.unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }
}

#[tokio::test]
async fn a_session_goes_on_as_without_it() {
    for strictness in [Strictness::Workspace, Strictness::Strict] {
        let Some(here) = here(strictness, Reach::Off) else { return };
        let first = "mkdir sub; cd sub; export A=1; hi() { echo \"hi $A\"; }; exit 3";
        assert_eq!(here.run(first).await.how, FinishedHow::Exited(3), "{strictness:?}");
        let got = here.run("hi; pwd; echo x > file; echo err >&2").await;
        assert_eq!(got.output, format!("hi 1\n{}\nerr\n", here.path("work/sub").display()));
        assert_eq!(fs::read_to_string(here.path("work/sub/file")).unwrap(), "x\n");
        let long = here.run(&format!(": {}\necho end", "x".repeat(300_000))).await;
        assert_eq!(long.output, "end\n");
        let terminal = Command {
            terminal: Some(TerminalSize::default()),
            ..Command::new("test -t 0 && echo yes; stty size", Duration::from_secs(9), 9_000)
        };
        assert_eq!(here.run_command(terminal).await.output, "yes\n30 120\n");
        let ended = here.run("kill -9 $$").await;
        assert_eq!(ended.how, FinishedHow::Signalled(9));
    }
}

#[tokio::test]
async fn what_it_refuses_is_recognised_and_can_be_run_without_it() {
    let Some(here) = here(Strictness::Workspace, Reach::Off) else { return };
    let outside = here.path("outside");
    let script = format!("echo x > {}", outside.display());
    let got = here.run(&script).await;
    assert!(!outside.exists());
    let refusal = got.refusal.unwrap();
    assert!(refusal.contains(&outside.display().to_string()), "{refusal}");
    let got =
        here.run_command(Command { unconfined: true, ..Command::new(script, Duration::from_secs(9), 9_000) }).await;
    assert_eq!((got.how, got.refusal, outside.exists()), (FinishedHow::Exited(0), None, true));
}

#[tokio::test]
async fn secrets_processes_and_the_network_are_out_of_reach() {
    for strictness in [Strictness::Workspace, Strictness::Strict] {
        let Some(here) = here(strictness, Reach::Off) else { return };
        let got = here
            .run(&format!("cat {} || ls {}", here.path("secret/key").display(), here.path("secret").display()))
            .await;
        assert!(!got.output.contains("very secret") && !got.output.contains("key\n"), "{strictness:?}: {}", got.output);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = here.run(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}")).await;
        assert_ne!(got.how, FinishedHow::Exited(0), "{}", got.output);
        let got = here.run(&format!("kill -0 {} 2>&1; ls /proc | grep -c '^[0-9]'", std::process::id())).await;
        let seen: usize = got.output.lines().last().unwrap().parse().unwrap();
        assert!(got.output.contains("No such process") && seen < 10, "{}", got.output);
    }
}

#[tokio::test]
async fn a_process_in_the_background_is_confined_and_ends_whole() {
    let Some(here) = here(Strictness::Workspace, Reach::Off) else { return };
    let place = Place { log: here.path("log"), facts: String::new() };
    let script = "setsid sleep 300 & cat; touch ../outside; echo \"tried: $?\"; sleep 300";
    let start = Start { input: true, ..Start::new(script, place) };
    let process = here.environment.spawn(start).await.unwrap();
    process.write(b"typed\n").await.unwrap();
    process.close_input().await.unwrap();
    for _ in 0..1_000 {
        if process.text(0..u64::MAX).await.unwrap().contains("tried: 1") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(process.text(0..u64::MAX).await.unwrap().starts_with("typed\n"));
    assert!(!here.path("outside").exists());
    assert_eq!(process.kill(Duration::from_secs(1)).await, 0);
    assert!(matches!(process.state(), ProcessState::Ended(_)), "{:?}", process.state());
}

#[tokio::test]
async fn a_timeout_ends_everything_inside() {
    let Some(here) = here(Strictness::Workspace, Reach::Off) else { return };
    let mark = format!("{}.5", 300_000 + std::process::id());
    let script = format!("trap '' TERM; setsid sleep {mark} & sleep {mark}; sleep {mark}");
    let got = here.run_command(Command::new(script, Duration::from_secs(1), 9_000)).await;
    assert_eq!((got.how, got.left_over), (FinishedHow::TimedOut, 0));
    let alive = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
    });
    assert_eq!(alive.count(), 0);
}

/// Lets one host through and takes note of the rest.
#[derive(Default)]
struct OneHost(Mutex<Vec<String>>);

#[async_trait]
impl ConnectPolicy for OneHost {
    async fn may_connect(&self, host: &str, _: u16, addresses: &[SocketAddr]) -> Result<Vec<SocketAddr>, String> {
        if host == "localhost" { Ok(addresses.to_vec()) } else { Err("it is not on the list".into()) }
    }

    fn refused(&self, host: &str, _: u16, _: &str) {
        self.0.lock().unwrap().push(host.to_owned());
    }
}

#[tokio::test]
async fn only_hosts_that_the_policy_allows_are_reached() {
    if !Path::new("/usr/bin/curl").exists() {
        eprintln!("skipped: curl is not installed");
        return;
    }
    let policy = Arc::new(OneHost::default());
    let Some(here) = here(Strictness::Workspace, Reach::Through(Arc::clone(&policy) as _)) else { return };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        while let Ok((mut client, _)) = listener.accept().await {
            let _ = client.read(&mut [0; 4096]).await;
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhello\n").await;
        }
    });
    let got = here.run(&format!("curl -sS --noproxy '' http://localhost:{port}/")).await;
    assert_eq!(got.output, "hello\n");
    let got = here.run(&format!("curl -sS -f --noproxy '' http://127.0.0.1:{port}/")).await;
    assert_ne!(got.how, FinishedHow::Exited(0));
    assert_eq!(*policy.0.lock().unwrap(), ["127.0.0.1"]);
}

#[tokio::test]
async fn a_wish_that_cannot_be_granted_is_an_error_and_not_a_weaker_sandbox() {
    let folder = folder();
    let environment = LocalEnvironment::new(folder.path(), folder.path(), std::env::vars_os(), &[]).unwrap();
    let mut nothing = preflight();
    nothing.probes.iter_mut().for_each(|probe| probe.outcome = Err("not here".into()));
    let wish =
        SandboxWish { strictness: Strictness::Workspace, writable: Vec::new(), hidden: Vec::new(), reach: Reach::Off };
    assert!(environment.confined(wish, &nothing).unwrap_err().contains("no sandbox works"));
}
