//! The local backend, against real processes and real files.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hermes_core::{
    AtLimit, CancellationToken, Command, Environment, FileErrorKind, FileKind, Finished, FinishedHow, Place,
    ProcessState, Start,
};
use hermes_exec::LocalEnvironment;

struct Here {
    environment: LocalEnvironment,
    folder: tempfile::TempDir,
}

fn here() -> Here {
    let folder = tempfile::tempdir().unwrap();
    let environment = LocalEnvironment::new(folder.path(), folder.path(), std::env::vars_os(), &[]).unwrap();
    Here { environment, folder }
}

impl Here {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    async fn run(&self, script: &str) -> Finished {
        self.run_for(script, Duration::from_secs(30)).await
    }

    async fn run_for(&self, script: &str, limit: Duration) -> Finished {
        self.environment.run(command(script, limit), &CancellationToken::new()).await.unwrap()
    }
}

fn command(script: &str, timeout: Duration) -> Command {
    Command::new(script, timeout, 50_000)
}

fn is_alive(pid: &str) -> bool {
    // A zombie is dead; it only waits for its parent.
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Polls until a file has a whole line; whoever waits in vain fails.
async fn appears(path: &Path) {
    for _ in 0..3_000 {
        if fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n')) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} did not appear", path.display());
}

#[tokio::test]
async fn output_and_exit_code_come_back() {
    let got = here().run("echo out; echo err >&2; exit 3").await;
    assert_eq!((got.output.as_str(), got.how), ("out\nerr\n", FinishedHow::Exited(3)));
}

#[tokio::test]
async fn the_directory_is_carried_over_also_through_exit_and_strange_options() {
    let here = here();
    fs::create_dir_all(here.path("a/b c\n'd")).unwrap();
    here.run("set -euo pipefail -C; cd a; exit 4").await;
    assert_eq!(here.environment.cwd(), here.path("a"));
    here.run("cd \"$(ls)\"").await;
    assert_eq!(here.environment.cwd(), here.path("a/b c\n'd"));
    assert_eq!(here.run("pwd; cd /nowhere").await.output.lines().count(), 3);
    assert_eq!(here.environment.cwd(), here.path("a/b c\n'd"), "a failed cd moves nothing");
}

#[tokio::test]
async fn a_directory_of_its_own_does_not_move_the_session() {
    let here = here();
    let mut command = command("cd /; pwd", Duration::from_secs(9));
    command.cwd = Some("/usr".into());
    let got = here.environment.run(command, &CancellationToken::new()).await.unwrap();
    assert_eq!((got.output.as_str(), here.environment.cwd()), ("/\n", here.path("").join("")));
}

#[tokio::test]
async fn a_missing_directory_is_an_error_and_nothing_runs() {
    let here = here();
    let mut command = command("touch ran", Duration::from_secs(9));
    command.cwd = Some(here.path("missing"));
    let error = here.environment.run(command, &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("missing does not exist"), "{error}");
    assert!(!here.path("ran").exists());
}

#[tokio::test]
async fn the_command_runs_as_written_and_sees_nothing_of_ours() {
    let here = here();
    let got = here.run("echo \"$#|${BASH_ENV-none}\"; ls -l /proc/self/fd | grep -c memfd; echo '__ $HOME `x`'").await;
    assert_eq!(got.output, "0|none\n0\n__ $HOME `x`\n");
}

#[tokio::test]
async fn a_command_longer_than_an_argument_may_be_works() {
    let script = format!(": {}\necho end", "x".repeat(300_000));
    assert_eq!(here().run(&script).await.output, "end\n");
}

#[tokio::test]
async fn secrets_of_our_environment_do_not_reach_commands() {
    let folder = tempfile::tempdir().unwrap();
    let ours = [("PATH", std::env::var("PATH").unwrap()), ("OPENAI_API_KEY", "sk-secret".into()), ("OK", "yes".into())]
        .map(|(name, value)| (name.into(), value.into()));
    let environment = LocalEnvironment::new(folder.path(), folder.path(), ours, &["OK".into()]).unwrap();
    let command = command("echo ${OPENAI_API_KEY-unset} $OK", Duration::from_secs(9));
    assert_eq!(environment.run(command, &CancellationToken::new()).await.unwrap().output, "unset yes\n");
}

#[tokio::test]
async fn a_timeout_kills_the_whole_tree_also_what_left_the_group() {
    let here = here();
    let script = "trap '' TERM; sleep 300 & echo $! > child; setsid sleep 301 & echo $! > escaped; echo before; wait";
    let got = here.run_for(script, Duration::from_secs(2)).await;
    assert_eq!((got.output.as_str(), got.how), ("before\n", FinishedHow::TimedOut));
    for name in ["child", "escaped"] {
        let pid = fs::read_to_string(here.path(name)).unwrap();
        assert!(!is_alive(pid.trim()), "{name} survived");
    }
}

#[tokio::test]
async fn cancelling_kills_and_keeps_what_was_printed() {
    let here = here();
    let cancel = CancellationToken::new();
    let running = here.environment.run(command("echo $$ | tee pid; sleep 300", Duration::from_secs(60)), &cancel);
    let stop = async {
        appears(&here.path("pid")).await;
        cancel.cancel();
    };
    let (got, ()) = tokio::join!(running, stop);
    let got = got.unwrap();
    assert_eq!(got.how, FinishedHow::Cancelled);
    assert!(!is_alive(got.output.trim()), "{got:?}");
}

#[tokio::test]
async fn dropping_a_running_command_kills_it() {
    let here = here();
    let file = here.path("pid");
    tokio::select! {
        _ = here.run("echo $$ > pid; exec sleep 300") => panic!("it ended by itself"),
        () = appears(&file) => {}
    }
    let pid = fs::read_to_string(here.path("pid")).unwrap();
    for _ in 0..200 {
        if !is_alive(pid.trim()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{pid} survived the drop");
}

#[tokio::test]
async fn a_background_child_does_not_hold_the_call_and_ends_with_the_task() {
    let here = here();
    let started = Instant::now();
    let got = here.run("sleep 300 & echo $!").await;
    assert!(started.elapsed() < Duration::from_secs(20), "waited for the child");
    let pid = got.output.trim().to_owned();
    assert!(is_alive(&pid));
    here.environment.close().await;
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn endless_output_is_cut_with_its_total() {
    let here = here();
    let mut command = command("head -c 1000000 /dev/zero | tr '\\0' x", Duration::from_secs(30));
    command.output_cap = 1000;
    let got = here.environment.run(command, &CancellationToken::new()).await.unwrap();
    assert_eq!((got.total_bytes, got.omitted_bytes), (1_000_000, 999_000));
    assert!(got.output.contains("999,000 of 1,000,000 bytes left out"), "{}", got.output);
}

#[tokio::test]
async fn only_regular_files_are_read_and_nothing_waits() {
    let here = here();
    nix::unistd::mkfifo(&here.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(here.path("socket")).unwrap();
    let cases = [
        (here.path("pipe"), FileKind::Pipe),
        (here.path("socket"), FileKind::Socket),
        (here.path(""), FileKind::Directory),
        ("/dev/zero".into(), FileKind::Device),
    ];
    for (path, kind) in cases {
        let error = here.environment.read(&path, 0..10).await.unwrap_err();
        assert_eq!(error.kind, FileErrorKind::NotRegular(kind), "{error}");
        let error = here.environment.write(&path, b"x").await.unwrap_err();
        assert_eq!(error.kind, FileErrorKind::NotRegular(kind), "{error}");
    }
    assert_eq!(here.environment.read(&here.path("none"), 0..1).await.unwrap_err().kind, FileErrorKind::NotFound);
}

#[tokio::test]
async fn a_range_is_read_and_may_reach_past_the_end() {
    let here = here();
    fs::write(here.path("f"), "0123456789").unwrap();
    assert_eq!(here.environment.read(&here.path("f"), 3..5).await.unwrap(), b"34");
    assert_eq!(here.environment.read(&here.path("f"), 8..u64::MAX).await.unwrap(), b"89");
    assert_eq!(here.environment.read(&here.path("f"), 50..60).await.unwrap(), b"");
}

#[tokio::test]
async fn writing_keeps_mode_and_links_and_leaves_no_trace() {
    let here = here();
    fs::write(here.path("f"), "old").unwrap();
    fs::set_permissions(here.path("f"), fs::Permissions::from_mode(0o751)).unwrap();
    symlink("f", here.path("link")).unwrap();
    assert!(!here.environment.write(&here.path("link"), b"new").await.unwrap());
    assert!(fs::symlink_metadata(here.path("link")).unwrap().is_symlink());
    assert_eq!(fs::read(here.path("f")).unwrap(), b"new");
    assert_eq!(fs::metadata(here.path("f")).unwrap().mode() & 0o7777, 0o751);
    assert_eq!(here.environment.list(&here.path("")).await.unwrap(), ["f", "link"]);
}

#[tokio::test]
async fn what_a_file_has_beside_its_content_stays_with_it() {
    let here = here();
    let path = here.path("f");
    fs::write(&path, "old").unwrap();
    let set = |name: &str, value: &[u8]| rustix::fs::setxattr(&path, name, value, rustix::fs::XattrFlags::empty());
    if set("user.origin", b"somewhere").is_err() {
        println!("skipped: the file system of temporary folders keeps no extended attributes");
        return;
    }
    // acl(5) as the kernel takes it: version 2, then the owner rw, the user 12345 r, the group -, the mask r, others -.
    let entry = |tag: u16, permissions: u16, id: u32| {
        [tag.to_le_bytes().to_vec(), permissions.to_le_bytes().to_vec(), id.to_le_bytes().to_vec()].concat()
    };
    let nobody = u32::MAX;
    let access = [
        2_u32.to_le_bytes().to_vec(),
        entry(0x01, 6, nobody),
        entry(0x02, 4, 12_345),
        entry(0x04, 0, nobody),
        entry(0x10, 4, nobody),
        entry(0x20, 0, nobody),
    ];
    let access = access.concat();
    let has_access = set("system.posix_acl_access", &access).is_ok();
    here.environment.write(&path, b"new").await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    let get = |name: &str| {
        let mut value = vec![0; 256];
        let length = rustix::fs::getxattr(&path, name, value.as_mut_slice()).unwrap();
        value.truncate(length);
        value
    };
    assert_eq!(get("user.origin"), b"somewhere");
    if !has_access {
        return;
    }
    assert_eq!(get("system.posix_acl_access"), access);
    // What the folder gives to new files is nothing that an old one gets by being written.
    rustix::fs::removexattr(&path, "system.posix_acl_access").unwrap();
    rustix::fs::setxattr(here.path(""), "system.posix_acl_default", &access, rustix::fs::XattrFlags::empty()).unwrap();
    here.environment.write(&path, b"newer").await.unwrap();
    let none = rustix::fs::getxattr(&path, "system.posix_acl_access", vec![0; 256].as_mut_slice());
    assert!(none.is_err(), "{none:?}");
}

#[tokio::test]
async fn a_file_with_two_names_stays_one_file() {
    let here = here();
    fs::write(here.path("a"), "a long old text").unwrap();
    fs::hard_link(here.path("a"), here.path("b")).unwrap();
    here.environment.write(&here.path("a"), b"new").await.unwrap();
    assert_eq!(fs::read(here.path("b")).unwrap(), b"new");
}

#[tokio::test]
async fn a_read_only_file_is_refused_also_to_root() {
    let here = here();
    fs::write(here.path("f"), "old").unwrap();
    fs::set_permissions(here.path("f"), fs::Permissions::from_mode(0o444)).unwrap();
    let error = here.environment.write(&here.path("f"), b"new").await.unwrap_err();
    assert!(error.kind == FileErrorKind::Denied && error.why.contains("read-only"), "{error}");
    assert_eq!(fs::read(here.path("f")).unwrap(), b"old");
}

#[tokio::test]
async fn what_renamed_itself_and_what_wiped_its_environment_ends_with_the_task() {
    let here = here();
    here.run("env -i sleep 300 & echo $! > wiped; bash -c 'exec -a renamed sleep 301' & echo $! > renamed").await;
    here.environment.close().await;
    for name in ["wiped", "renamed"] {
        let pid = fs::read_to_string(here.path(name)).unwrap();
        assert!(!is_alive(pid.trim()), "{name} survived");
    }
}

#[tokio::test]
async fn a_job_in_a_group_of_its_own_without_our_marker_dies_with_its_command() {
    let here = here();
    let script = "set -m; env -i sleep 300 & echo $! > job; sleep 301";
    let got = here.run_for(script, Duration::from_secs(2)).await;
    assert_eq!((got.how, got.left_over), (FinishedHow::TimedOut, 0));
    let pid = fs::read_to_string(here.path("job")).unwrap();
    assert!(!is_alive(pid.trim()), "it survived");
}

#[tokio::test]
async fn nothing_it_starts_can_reach_the_terminal() {
    let got = here().run("(echo hello > /dev/tty) 2>&1; cat /dev/tty").await;
    assert!(got.output.matches("No such device or address").count() == 2, "{}", got.output);
}

#[tokio::test]
async fn a_session_whose_directory_is_gone_says_so_once_and_goes_on_above_it() {
    let here = here();
    fs::create_dir_all(here.path("a/b")).unwrap();
    here.run("cd a/b").await;
    fs::remove_dir_all(here.path("a")).unwrap();
    let lost = here.environment.run(command("pwd", Duration::from_secs(9)), &CancellationToken::new()).await;
    assert!(lost.unwrap_err().to_string().contains("a/b is gone; the session goes on in"));
    assert_eq!(PathBuf::from(here.run("pwd").await.output.trim_end()), here.path("").join(""));
}

#[tokio::test]
async fn a_new_file_gets_its_folders_and_the_umask() {
    let here = here();
    assert!(here.environment.write(&here.path("a/b/f"), b"new").await.unwrap());
    fs::write(here.path("plain"), "").unwrap();
    let mode = |name| fs::metadata(here.path(name)).unwrap().mode();
    assert_eq!(mode("a/b/f"), mode("plain"));
}

#[tokio::test]
async fn a_write_that_fails_leaves_no_folders_behind() {
    let here = here();
    let error = here.environment.write(&here.path("a/b").join("n".repeat(300)), b"x").await.unwrap_err();
    assert_eq!(error.kind, FileErrorKind::Other, "{error}");
    assert_eq!(here.environment.list(&here.path("")).await.unwrap(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_dangling_link_is_written_where_it_leads_and_a_circle_is_refused() {
    let here = here();
    symlink("deep/target", here.path("link")).unwrap();
    assert_eq!(here.environment.real_path(&here.path("link")).await.unwrap(), here.path("deep/target"));
    here.environment.write(&here.path("link"), b"x").await.unwrap();
    assert_eq!(fs::read(here.path("deep/target")).unwrap(), b"x");
    symlink("b", here.path("a")).unwrap();
    symlink("a", here.path("b")).unwrap();
    let error = here.environment.write(&here.path("a"), b"x").await.unwrap_err();
    assert_eq!(error.kind, FileErrorKind::Other, "{error}");
}

#[tokio::test]
async fn variables_functions_aliases_and_options_are_carried_over() {
    let here = here();
    let first = "export A='one\ntwo' B=$'tab\\there'; unset HOME; hello() { echo \"hello $1\"; cat <<X\n}\nX\n}; \
                 alias hi='echo \"hi $A\"'; shopt -s extglob nullglob; set -f; exit 3";
    assert_eq!(here.run(first).await.how, FinishedHow::Exited(3));
    let got = here.run("hello you; hi; echo \"$B ${HOME-none}\"; shopt nullglob; echo *").await;
    assert_eq!(got.output, "hello you\n}\nhi one\ntwo\ntab\there none\nnullglob       \ton\n*\n");
    here.run("unset -f hello; unalias hi; unset A; set +f; shopt -u nullglob").await;
    assert_eq!(here.run("echo \"${A-none}\"; hello; hi").await.output.matches("command not found").count(), 2);
    assert_eq!(here.environment.carried(), "unset HOME\nexport B='tab\there'\n");
}

#[tokio::test]
async fn strict_mode_is_that_of_one_command() {
    let here = here();
    assert_eq!(here.run("set -euo pipefail; echo ok").await.output, "ok\n");
    assert_eq!(here.run("set -e; false; echo no").await.how, FinishedHow::Exited(1));
    assert_eq!(here.run("false; echo \"$undefined\"; false | true; echo $?").await.output, "\n0\n");
}

#[tokio::test]
async fn tracing_shows_the_command_and_nothing_of_ours() {
    let here = here();
    assert_eq!(here.run("set -x; echo one").await.output, "+ echo one\none\n");
    assert_eq!(here.run("echo two").await.output, "+ echo two\ntwo\n");
}

#[tokio::test]
async fn what_shadows_builtins_does_not_reach_our_part() {
    let here = here();
    here.run("cd() { command cd \"$@\"; return 1; }; printf() { echo shadowed; }; pwd() { echo shadowed; }; alias ls='missing-tool'")
        .await;
    let got = here.run("echo hi; cd /usr").await;
    assert_eq!((got.output.as_str(), got.how), ("hi\n", FinishedHow::Exited(1)));
    assert_eq!(here.environment.cwd(), Path::new("/usr"));
}

#[tokio::test]
async fn commands_side_by_side_do_not_undo_each_other() {
    let here = here();
    let scripts: Vec<String> =
        (0..20).map(|n| format!("sleep 0.05; export V{n}={n}; f{n}() {{ echo {n}; }}")).collect();
    futures::future::join_all(scripts.iter().map(|script| here.run(script))).await;
    let all: Vec<String> = (0..20).map(|n| format!("echo $V{n}; f{n}; ")).collect();
    let expected: Vec<String> = (0..20).map(|n| format!("{n}\n{n}\n")).collect();
    assert_eq!(here.run(&all.concat()).await.output, expected.concat());
}

#[tokio::test]
async fn a_shell_that_cannot_be_started_says_why_and_nothing_counts_as_run() {
    let here = here();
    // All variables together may take 2 MiB, a quarter of the usual stack (execve(2)).
    here.run("for i in {1..80}; do printf -v \"LONG$i\" '%100000s' x; export \"LONG$i\"; done").await;
    let error = here.environment.run(command("echo hi", Duration::from_secs(9)), &CancellationToken::new()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("argument list too long; it did not run"), "{error}");
    let place = Place { log: here.path("a.log"), facts: "{}".into() };
    let start = Start::new("echo hi", place);
    let error = here.environment.spawn(start).await.unwrap_err().to_string();
    assert!(error.contains("argument list too long; it did not run"), "{error}");
    assert_eq!(here.environment.list(&here.path("")).await.unwrap(), [] as [&str; 0], "no log of nothing");
}

#[tokio::test]
async fn a_start_that_fails_half_way_leaves_no_file() {
    let here = here();
    // Neither a record nor a socket can be made where something is.
    for taken in ["a.jsonl", "a.sock"] {
        fs::create_dir_all(here.path("processes")).unwrap();
        fs::write(here.path("processes").join(taken), "").unwrap();
        let place = Place { log: here.path("processes/a.log"), facts: "{}".into() };
        here.environment.spawn(Start::new("echo hi", place)).await.unwrap_err();
        assert!(here.environment.list(&here.path("processes")).await.unwrap().is_empty(), "{taken}");
    }
}

#[tokio::test]
async fn the_end_of_a_process_is_told_although_what_it_left_prints_for_ever() {
    let here = here();
    let place = Place { log: here.path("a.log"), facts: String::new() };
    let start = Start::new("yes & yes & sleep 0.1; exit 3", place);
    let process = here.environment.spawn(start).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), process.ended()).await.unwrap();
    assert_eq!(process.state(), ProcessState::Ended(FinishedHow::Exited(3)));
    assert_eq!(process.kill(Duration::from_secs(1)).await, 0);
}

/// All of a long output is copied on a thread that may block: while that one is busy, it waits and nobody else does.
#[test]
fn a_long_output_that_is_handed_over_keeps_nobody_waiting() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let here = here();
        let mut command = command("head -c 1000000 /dev/zero; sleep 60", Duration::from_millis(500));
        command.at_limit = AtLimit::Keep(Place { log: here.path("a.log"), facts: String::new() });
        let (free, busy) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || busy.recv());
        let never = CancellationToken::new();
        let mut run = here.environment.run(command, &never);
        assert!(tokio::time::timeout(Duration::from_millis(1_500), &mut run).await.is_err());
        drop(free);
        busy.await.unwrap().unwrap_err();
        let process = run.await.unwrap().process.unwrap();
        assert_eq!(process.output_len(), 1_000_000);
        process.kill(Duration::ZERO).await;
    });
}

/// Of whoever forks the supervisors: the parent of the parent of the shell.
const FORK_SERVER: &str = "cut -d' ' -f4 /proc/$PPID/stat";

#[tokio::test]
async fn an_idle_session_frees_its_helper_and_goes_on_as_it_was() {
    let mut here = here();
    here.environment = here.environment.resting_after(Duration::from_millis(300));
    let first = here.run(&format!("export x=kept; cd /; {FORK_SERVER}")).await.output;
    let gone = async {
        while is_alive(first.trim()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();
    let second = here.run(&format!("echo $x; pwd; {FORK_SERVER}")).await.output;
    let lines: Vec<&str> = second.lines().collect();
    assert_eq!(lines[..2], ["kept", "/"]);
    // What runs is no idleness.
    here.run("sleep 300 &").await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert!(is_alive(lines[2]));
    assert_eq!(here.run(FORK_SERVER).await.output.trim(), lines[2]);
}
