//! The sandbox against real processes: what a command can see, change and do. What it can reach over sockets is tested in
//! `sandbox_network.rs`.
#![allow(clippy::unwrap_used)]

mod confined;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use confined::{NOBODY, OnTerminal, Place, collect, own_namespaces, places, processes_with, unique_sleep, until, wait};
use hermes_core::FinishedHow;
use hermes_exec::sandbox::refusal::{self, Refusal};
use hermes_exec::sandbox::{Backing, Confinement, Level, Limits, Mechanism, WritableRoot, preflight};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The error of a confinement that cannot be.
fn refused(place: &Place, confinement: &Confinement) -> String {
    match confinement.command("true".as_ref(), &[]) {
        Ok(_) => place.inside(confinement, || "it could be".into()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_workspace_can_be_written_and_nothing_else() {
    for place in places() {
        for confinement in [place.confinement(), place.strict()] {
            let outside = place.path("outside").display().to_string();
            let script = format!(
                "echo in >file; cat file; echo x >{outside}/file && echo ESCAPED; echo x >{outside}/new && echo ESCAPED; \
                 rm -f {outside}/file; echo x >/etc/hermes-test && echo ESCAPED; echo x >/usr/hermes-test && echo ESCAPED; \
                 echo x >/hermes-test && echo ESCAPED; mv {outside} . && echo ESCAPED; touch -d 1999-01-01 {outside}"
            );
            let got = place.run_in(&confinement, &script);
            assert!(got.output.starts_with("in\n") && !got.output.contains("ESCAPED"), "{}: {got:?}", place.name());
            assert_eq!(fs::read_to_string(place.path("outside/file")).unwrap(), "as it was\n", "{}", place.name());
            assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 1, "{}", place.name());
            // Landlock knows no rule about times.
            let is_new = fs::metadata(place.path("outside")).unwrap().mtime() > 1_000_000_000;
            assert!(is_new || place.mechanism == Mechanism::Landlock, "{}", place.name());
            fs::remove_file(place.path("work/file")).unwrap();
        }
    }
}

#[test]
fn new_files_belong_to_the_user() {
    for place in places() {
        place.run("echo x >file");
        let about = fs::metadata(place.path("work/file")).unwrap();
        let user = if place.nobody { NOBODY } else { nix::unistd::geteuid().as_raw() };
        assert_eq!(about.uid(), user, "{}", place.name());
    }
}

#[test]
fn hidden_paths_can_be_neither_read_nor_listed_by_any_way() {
    for place in places() {
        let hidden = place.path("hidden").display().to_string();
        fs::hard_link(place.path("hidden/secret"), place.path("outside/hard")).unwrap();
        fs::remove_file(place.path("outside/hard")).unwrap();
        symlink(place.path("hidden/secret"), place.path("work/link")).unwrap();
        symlink(place.path("hidden"), place.path("work/folder")).unwrap();
        let parent = std::process::id();
        let script = format!(
            "cat {hidden}/secret link folder/secret; ls {hidden} {hidden}/ folder/; \
             for root in /proc/1/root /proc/self/root /proc/$PPID/root /proc/{parent}/root; do cat $root{hidden}/secret; \
             ls $root{hidden}; done; ln {hidden}/secret stolen && cat stolen; cp -r {hidden} copy; cat copy/secret; \
             ln -s {hidden}/secret again; cat again; mv {hidden} moved && cat moved/secret; cat /etc/shadow /etc/sudoers; \
             chmod 700 copy moved"
        );
        for confinement in [place.confinement(), place.strict()] {
            let got = place.run_in(&confinement, &script);
            let leaks = ["the secret", "root:", "ALL="].into_iter().find(|text| got.output.contains(text));
            assert_eq!(leaks, None, "{}: {got:?}", place.name());
            assert!(!got.output.lines().any(|line| line == "secret"), "{}: {got:?}", place.name());
            let _ = fs::remove_file(place.path("work/again"));
            for name in ["work/copy", "work/moved"] {
                let _ = fs::remove_dir_all(place.path(name));
            }
        }
    }
}

#[test]
fn hidden_files_and_folders_inside_of_the_workspace_stay_hidden() {
    for place in places() {
        fs::write(place.path("work/.env"), "the secret\n").unwrap();
        let mut confinement = place.confinement();
        confinement.hidden.push(place.path("work/.env"));
        let script = "cat .env; cp .env env; cat env; mv .env b; cat b; rm -f .env; cat < .env; echo x >.env; ls >list";
        if place.mechanism == Mechanism::Landlock {
            let error = place.inside(&confinement, String::new);
            assert!(error.contains("cannot hide, inside of a writable folder"), "{error}");
        } else {
            let got = place.run_in(&confinement, script);
            assert!(!got.output.contains("the secret"), "{}: {got:?}", place.name());
            assert!(place.path("work/list").exists(), "{}: {got:?}", place.name());
        }
        assert_eq!(fs::read_to_string(place.path("work/.env")).unwrap(), "the secret\n");
    }
}

#[test]
fn lists_overlap_and_the_deepest_entry_decides() {
    for place in own_namespaces() {
        for name in ["work/.git/hooks", "hidden/deep/open"] {
            fs::create_dir_all(place.path(name)).unwrap();
            std::os::unix::fs::chown(place.path(name), place.nobody.then_some(NOBODY), None).unwrap();
        }
        for confinement in [place.confinement(), place.strict()] {
            let mut confinement = confinement;
            confinement.readable = vec![place.path("work/.git/hooks")];
            confinement.writable.push(WritableRoot::direct(place.path("hidden/deep/open")));
            let open = place.path("hidden/deep/open").display().to_string();
            let script = format!(
                "echo x >.git/hooks/evil && echo ESCAPED; echo yes >{open}/file; cat {open}/file; \
                 cat {open}/../../secret; ls {open}/../.. && echo ESCAPED; echo x >{open}/../file && echo ESCAPED"
            );
            let got = place.run_in(&confinement, &script);
            assert!(got.output.contains("yes\n") && !got.output.contains("ESCAPED"), "{}: {got:?}", place.name());
            assert!(!got.output.contains("the secret"), "{}: {got:?}", place.name());
        }
    }
}

#[test]
fn what_is_protected_inside_of_the_workspace_cannot_be_moved_out_of_the_way() {
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Landlock) {
        fs::create_dir_all(place.path("work/.git/deep/hooks")).unwrap();
        fs::create_dir_all(place.path("work/app")).unwrap();
        fs::write(place.path("work/app/.env"), "the secret\n").unwrap();
        for name in ["work/.git", "work/.git/deep", "work/.git/deep/hooks", "work/app", "work/app/.env"] {
            std::os::unix::fs::chown(place.path(name), place.nobody.then_some(NOBODY), None).unwrap();
        }
        let mut confinement = place.confinement();
        confinement.readable = vec![place.path("work/.git/deep/hooks")];
        confinement.hidden.push(place.path("work/app/.env"));
        let script = "mv .git a && echo ESCAPED; mv .git/deep .git/b && echo ESCAPED; mv app c && echo ESCAPED; \
                      mv .git/deep/hooks .git/d && echo ESCAPED; rm -rf app .git; echo x >.git/config; echo y >app/new; \
                      mv app/new app/other; cat app/other";
        let got = place.run_in(&confinement, script);
        assert!(got.output.ends_with("y\n") && !got.output.contains("ESCAPED"), "{}: {got:?}", place.name());
        assert!(place.path("work/.git/deep/hooks").is_dir() && place.path("work/.git/config").is_file());
        assert_eq!(fs::read_to_string(place.path("work/app/.env")).unwrap(), "the secret\n");
    }
}

#[test]
fn a_link_that_an_earlier_command_put_in_the_place_of_a_root_leads_nowhere() {
    for place in places() {
        symlink(place.path("outside"), place.path("work/sub")).unwrap();
        let mut confinement = place.confinement();
        confinement.writable.push(WritableRoot::direct(place.path("work/sub")));
        let error = refused(&place, &confinement);
        assert!(error.starts_with("sandbox: cannot show ") && error.contains("work/sub"), "{error}");
    }
}

#[test]
fn tmp_is_private_and_listed_paths_below_it_stay() {
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Landlock) {
        let mut confinement = place.confinement();
        confinement.private_tmp = true;
        let mark = unique_sleep();
        let script =
            format!("echo x >/tmp/{mark}; echo y >/dev/shm/{mark}; echo z >/var/tmp/{mark}; ls /tmp; echo w >file");
        let got = place.run_in(&confinement, &script);
        assert!(got.output.contains(&mark), "{}: {got:?}", place.name());
        for folder in ["/tmp", "/dev/shm", "/var/tmp"] {
            assert!(!std::path::Path::new(folder).join(&mark).exists(), "{folder}");
        }
        assert!(place.path("work/file").exists(), "{}: {got:?}", place.name());
    }
}

#[test]
fn landlock_alone_puts_tmp_out_of_reach_but_for_listed_paths() {
    for place in places().into_iter().filter(|place| place.mechanism == Mechanism::Landlock) {
        let mut confinement = place.confinement();
        confinement.private_tmp = true;
        let outside = place.path("outside/file").display().to_string();
        let got =
            place.run_in(&confinement, &format!("echo in >file; cat file; cat {outside}; echo x >/tmp/x; ls /tmp"));
        assert!(got.output.starts_with("in\n") && !got.output.contains("as it was"), "{}: {got:?}", place.name());
        assert_eq!(got.output.matches("Permission denied").count(), 3, "{}: {got:?}", place.name());
    }
}

#[test]
fn what_the_sandbox_refused_is_seen_in_what_real_programs_print() {
    for place in places() {
        let (confinement, work) = (place.confinement(), place.path("work"));
        let outside = place.path("outside/file");
        let hidden = place.path("hidden/secret");
        fs::create_dir(place.path("work/locked")).unwrap();
        fs::set_permissions(place.path("work/locked"), fs::Permissions::from_mode(0o000)).unwrap();
        std::os::unix::fs::chown(place.path("work/locked"), place.nobody.then_some(NOBODY), None).unwrap();
        let find = |script: &str| {
            let got = place.run_in(&confinement, script);
            let how = got.code().map_or(FinishedHow::Signalled(9), FinishedHow::Exited);
            (refusal::find(&confinement, script, &work, how, &got.output), got)
        };
        let change = |path: &std::path::Path| match place.mechanism {
            Mechanism::Landlock => Some(Refusal::Access(path.into())),
            _ => Some(Refusal::Change(Some(path.into()))),
        };
        let wanted = [
            (format!("touch {}/new", place.path("outside").display()), change(&place.path("outside/new"))),
            (format!("echo x >{}", outside.display()), change(&outside)),
            (format!("cat {}", hidden.display()), Some(Refusal::Access(hidden.clone()))),
            ("curl -sS http://example.org/".into(), Some(Refusal::Network)),
            ("ls locked; cat locked/x".into(), None),
            ("cat missing; ls /missing".into(), None),
            (format!("cat {}; true", hidden.display()), None),
            (format!("cat {} | wc -c", hidden.display()), None),
        ];
        for (script, expected) in wanted {
            let (found, got) = find(&script);
            assert_eq!(found, expected, "{} {script}: {got:?}", place.name());
        }
        let (found, got) = find("unshare -U true");
        assert!(matches!(found, Some(Refusal::Privilege(_))), "{}: {got:?}", place.name());
        fs::set_permissions(place.path("work/locked"), fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn the_strict_view_shows_programs_and_little_else() {
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Landlock) {
        let outside = place.path("outside/file").display().to_string();
        let script = format!(
            "ls -A /; cat {outside}; cat ~/x; echo note >~/x && cat ~/x; ls -A /tmp /var /opt /srv /boot; type awk"
        );
        let mut confinement = place.strict();
        confinement.private_tmp = true;
        let got = collect(place.command(&confinement, &script).env("HOME", "/home/somebody"));
        let shows = |text: &str| got.output.contains(text);
        assert!(shows("note") && shows("awk is") && !shows("as it was"), "{}: {got:?}", place.name());
        for name in ["boot", "root", "srv", "sys", "opt"] {
            assert!(!got.output.lines().any(|line| line == name), "{name}: {}: {got:?}", place.name());
        }
        assert!(!std::path::Path::new("/home/somebody").exists());
    }
}

#[test]
fn exit_codes_and_signals_are_mirrored() {
    for place in places() {
        assert_eq!(place.run("exit 7").code(), Some(7), "{}", place.name());
        assert_eq!(place.run("exit 255").code(), Some(255), "{}", place.name());
        for signal in [Signal::SIGTERM, Signal::SIGKILL, Signal::SIGINT, Signal::SIGSEGV, Signal::SIGUSR1] {
            let got = place.run(&format!("kill -{} $$", signal as i32));
            // bwrap says it as a shell does.
            let expected = if place.mechanism == Mechanism::Bubblewrap {
                (Some(128 + signal as i32), None)
            } else {
                (None, Some(signal as i32))
            };
            assert_eq!((got.code(), got.signal()), expected, "{signal} {}", place.name());
        }
        let real_time = place.run("kill -40 $$");
        assert!(real_time.signal() == Some(40) || real_time.code() == Some(168), "{}: {real_time:?}", place.name());
    }
}

#[test]
#[expect(unsafe_code, reason = "changing what a signal does is unsafe where it runs code")]
fn a_caller_that_ignores_the_end_of_children_still_ends_like_the_command() {
    for place in own_namespaces() {
        let ignore = || {
            // SAFETY: ignoring a signal runs no code.
            unsafe { nix::sys::signal::signal(Signal::SIGCHLD, nix::sys::signal::SigHandler::SigIgn) }?;
            Ok(())
        };
        let got = collect(&mut place.command_after(&place.confinement(), "exit 6", ignore));
        assert_eq!(got.code(), Some(6), "{}", place.name());
    }
}

#[test]
fn a_failed_step_is_named_and_nothing_runs() {
    for place in own_namespaces() {
        let mut confinement = place.confinement();
        confinement.writable.push(WritableRoot::direct("/no/such/folder"));
        let error = place.inside(&confinement, || "ran".into());
        assert!(error.starts_with("sandbox: cannot show /no/such/folder: "), "{error}");
        let mut hidden = place.confinement();
        hidden.hidden.push(place.path("work"));
        let error = place.inside(&hidden, || "ran".into());
        assert!(error.starts_with("sandbox: cannot go to ") || error == "ran", "{error}");
    }
}

#[test]
fn everything_inside_dies_when_the_outer_process_is_killed() {
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Landlock) {
        let seconds = unique_sleep();
        let script = format!("setsid sleep {seconds} & (sleep {seconds} &) ; exec sleep {seconds}");
        let mut child = place.command(&place.confinement(), &script).spawn().unwrap();
        until("three processes", || processes_with(&seconds).len() == 3);
        child.kill().unwrap();
        wait(&mut child);
        until("their end", || processes_with(&seconds).is_empty());
    }
}

#[test]
fn what_runs_in_the_background_neither_delays_the_end_nor_dies_with_it() {
    for place in own_namespaces() {
        let seconds = unique_sleep();
        let got =
            place.run(&format!("sleep {seconds} >/dev/null 2>&1 & setsid sleep {seconds} >/dev/null 2>&1 & exit 3"));
        assert_eq!(got.code(), Some(3));
        until("both", || processes_with(&seconds).len() == 2);
        let all = processes_with(&seconds);
        // Init stays until the last one has gone, and takes all with it when it is killed.
        kill(Pid::from_raw(all[0]), Signal::SIGKILL).unwrap();
        until("one", || processes_with(&seconds).len() == 1);
        let stat = fs::read_to_string(format!("/proc/{}/stat", processes_with(&seconds)[0])).unwrap();
        let init: i32 = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(fs::read_to_string(format!("/proc/{init}/comm")).unwrap(), "sandbox-init\n");
        kill(Pid::from_raw(init), Signal::SIGKILL).unwrap();
        until("none", || processes_with(&seconds).is_empty());
    }
}

#[test]
fn closing_its_output_is_seen_while_the_command_goes_on() {
    use std::io::Read as _;
    for place in own_namespaces() {
        let seconds = unique_sleep();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut command = place.command(&place.confinement(), &format!("echo word; exec sleep {seconds} >/dev/null"));
        let mut child = command.stdout(writer).spawn().unwrap();
        drop(command);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "word\n");
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        wait(&mut child);
        until("the end", || processes_with(&seconds).is_empty());
    }
}

#[test]
fn only_processes_of_its_own_are_seen() {
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Landlock) {
        let got = place.run("ps -e -o pid= | wc -l; ps -e -o args=");
        let count: usize = got.output.lines().next().unwrap().trim().parse().unwrap();
        assert!(count <= 5 && !got.output.contains("nextest"), "{}: {got:?}", place.name());
    }
}

#[test]
fn a_terminal_works_inside_with_job_control_and_a_name() {
    for place in places() {
        let script = "test -t 0 && echo is-terminal; set -m; sleep 60 & jobs; kill %1; wait %1; echo ended $?; \
                      stty size >/dev/null && echo has-size; echo typed >/dev/tty; bash -ic 'echo interactive'; exit 4";
        let mut on_terminal = OnTerminal::start(&place, &place.confinement(), script);
        for text in ["is-terminal", "Running", "ended 143", "has-size", "typed", "interactive"] {
            on_terminal.expect(text);
        }
        assert_eq!(wait(&mut on_terminal.child).code(), Some(4), "{}", place.name());
    }
}

#[test]
fn the_keys_of_a_terminal_reach_the_command_and_it_decides() {
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Bubblewrap) {
        let script = "trap 'echo got-it; exit 9' INT; echo ready; while :; do sleep 0.02; done";
        let mut on_terminal = OnTerminal::start(&place, &place.confinement(), script);
        on_terminal.expect("ready");
        on_terminal.type_in("\x03");
        on_terminal.expect("got-it");
        assert_eq!(wait(&mut on_terminal.child).code(), Some(9), "{}", place.name());
    }
}

#[test]
fn a_signal_to_the_group_reaches_the_command_and_it_decides() {
    use std::os::unix::process::CommandExt as _;
    for place in own_namespaces() {
        let script = "trap 'echo got-it >mark; exit 9' TERM; echo >ready; while :; do sleep 0.02; done";
        let mut child = place.command(&place.confinement(), script).process_group(0).spawn().unwrap();
        until("ready", || place.path("work/ready").exists());
        nix::sys::signal::killpg(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
        assert_eq!(wait(&mut child).code(), Some(9));
        assert!(place.path("work/mark").exists());
    }
}

#[test]
fn other_terminals_cannot_be_reached() {
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Bubblewrap) {
        let pair = nix::pty::openpty(None, None).unwrap();
        let name = nix::unistd::ttyname(&pair.slave).unwrap();
        if place.nobody {
            std::os::unix::fs::chown(&name, Some(NOBODY), None).unwrap();
        }
        let device = fs::metadata(&name).unwrap().rdev();
        let answer = place.inside(&place.confinement(), move || {
            let opened = fs::OpenOptions::new().write(true).open(&name);
            let is_it = |file: fs::File| file.metadata().is_ok_and(|about| about.rdev() == device);
            // A terminal of its own may have the same number; it is another one all the same, and there is none yet.
            if opened.is_ok_and(is_it) { "reached".into() } else { "out of reach".into() }
        });
        assert_eq!(answer, "out of reach", "{}", place.name());
    }
}

#[test]
fn what_escapes_begin_with_is_refused() {
    for place in places() {
        for (name, confinement) in [("workspace", place.confinement()), ("strict", place.strict())] {
            let parent = std::process::id();
            let disk = fs::read_dir("/dev").unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
            let disk =
                disk.into_iter().find(|name| name.starts_with("vd") || name.starts_with("sd")).unwrap_or("sda".into());
            let hidden = place.path("hidden").display().to_string();
            let attempts = [
                "mount -t tmpfs none /mnt".to_owned(),
                "mount -o remount,rw,bind /".into(),
                "mount -o remount,rw /".into(),
                format!("umount -l {hidden}"),
                "umount -l /proc".into(),
                "mknod node b 254 0".into(),
                "mknod node c 1 1".into(),
                "mkdir -p a/b && chroot a /b".into(),
                "chroot / true".into(),
                "unshare -Ur true".into(),
                "unshare -m true".into(),
                "unshare -n true".into(),
                "unshare -p true".into(),
                "nsenter -t 1 -m true".into(),
                format!("nsenter -t {parent} -m true"),
                format!("kill -0 {parent} && grep -z -q nextest /proc/{parent}/cmdline"),
                format!("cat /proc/{parent}/environ | grep -q CARGO"),
                "echo hermes >/proc/sys/kernel/hostname".into(),
                "echo h >/proc/sysrq-trigger".into(),
                "echo 1 >/sys/kernel/mm/ksm/run".into(),
                "echo x >/sys/fs/cgroup/cgroup.procs".into(),
                format!("head -c 1 /dev/{disk} | grep -q ''"),
                format!("dd if=/dev/zero of=/dev/{disk} bs=1 count=0"),
                "head -c 1 /dev/mem".into(),
                "head -c 1 /dev/kmsg".into(),
                "su -c true nobody </dev/null".into(),
                "setpriv --reuid 1 --clear-groups true".into(),
                "sudo -n true".into(),
                "hostname hermes-test".into(),
                "date -s 2001-01-01".into(),
                "dmesg".into(),
                "swapoff -a && false".into(),
                "grep -v '^Cap[A-Z][a-z]*:.0000000000000000$' /proc/self/status | grep -q ^CapEff".into(),
                "grep -q '^NoNewPrivs:.0' /proc/self/status".into(),
                "cp /bin/bash suid && chmod 4755 suid && ./suid -p -c 'cat /etc/shadow'".into(),
            ];
            let mut script = String::new();
            for (index, attempt) in attempts.iter().enumerate() {
                script.push_str(&format!("({attempt}) >/dev/null 2>&1 && echo ESCAPED-{index}\n"));
            }
            let got = place.run_in(&confinement, &script);
            let escaped = |index: &usize| got.output.lines().any(|line| line == format!("ESCAPED-{index}"));
            let escaped: Vec<&String> = (0..attempts.len()).filter(escaped).map(|index| &attempts[index]).collect();
            assert!(escaped.is_empty(), "{name} {}: {escaped:?}", place.name());
        }
    }
}

/// Calls the kernel, and says which call was let through.
#[expect(unsafe_code, reason = "there is no safe way to ask for what must be refused")]
fn forbidden_calls() -> String {
    let zero = 0_usize;
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    let mut through = Vec::new();
    let mut expect = |name: &str, result: libc::c_long, error: i32| {
        let got = nix::errno::Errno::last_raw();
        if result != -1 || got != error {
            through.push(format!("{name}: {result}, error {got}"));
        }
    };
    // SAFETY: every call is refused before it looks at its arguments; one that is not fails the test.
    unsafe {
        for (name, number) in [
            ("ptrace", libc::SYS_ptrace),
            ("process_vm_readv", libc::SYS_process_vm_readv),
            ("bpf", libc::SYS_bpf),
            ("perf_event_open", libc::SYS_perf_event_open),
            ("userfaultfd", libc::SYS_userfaultfd),
            ("keyctl", libc::SYS_keyctl),
            ("add_key", libc::SYS_add_key),
            ("open_by_handle_at", libc::SYS_open_by_handle_at),
            ("setns", libc::SYS_setns),
            ("mount", libc::SYS_mount),
            ("umount2", libc::SYS_umount2),
            ("fsopen", libc::SYS_fsopen),
            ("open_tree", libc::SYS_open_tree),
            ("move_mount", libc::SYS_move_mount),
            ("mount_setattr", libc::SYS_mount_setattr),
            ("pivot_root", libc::SYS_pivot_root),
            ("reboot", libc::SYS_reboot),
            ("init_module", libc::SYS_init_module),
            ("kexec_load", libc::SYS_kexec_load),
            ("io_uring_setup", libc::SYS_io_uring_setup),
        ] {
            expect(name, libc::syscall(number, zero, zero, zero, zero, zero, zero), libc::EPERM);
        }
        expect("clone3", libc::syscall(libc::SYS_clone3, zero, zero), libc::ENOSYS);
        expect("clone", libc::syscall(libc::SYS_clone, flags, zero, zero, zero, zero), libc::EPERM);
        expect("unshare", libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER), libc::EPERM);
        expect("unshare of time", libc::syscall(libc::SYS_unshare, 0x80), libc::EPERM);
        // TIOCSTI, the same with an upper half that the kernel ignores, and TIOCLINUX.
        for request in [0x5412_u64, 0x5412 | 1 << 40, 0x541c] {
            expect("ioctl", libc::syscall(libc::SYS_ioctl, zero, request, c"x".as_ptr()), libc::EPERM);
        }
        for family in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, libc::AF_BLUETOOTH] {
            expect("socket", libc::syscall(libc::SYS_socket, family, libc::SOCK_RAW, 0), libc::EPERM);
        }
        let uevents = libc::syscall(libc::SYS_socket, libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT);
        expect("netlink", uevents, libc::EPERM);
        #[cfg(target_arch = "x86_64")]
        expect("x32", libc::syscall(0x4000_0000 + libc::SYS_getpid), libc::ENOSYS);
    }
    through.join("\n")
}

#[test]
fn the_system_calls_of_escapes_are_refused() {
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Bubblewrap) {
        assert_eq!(place.inside(&place.confinement(), forbidden_calls), "", "{}", place.name());
    }
}

/// They are the machine's own. What is tried would leave them as they are.
#[test]
fn devices_can_be_used_and_their_modes_and_times_not_be_changed() {
    for place in own_namespaces() {
        for confinement in [place.confinement(), place.strict()] {
            let used = place.run_in(&confinement, "echo x >/dev/null && head -c 2 /dev/zero | wc -c");
            assert_eq!(used.output, "2\n", "{}", place.name());
            for change in ["chmod 666", "chown \"$(id -u)\"", "touch -m -r /dev/null"] {
                for name in ["null", "zero", "full", "random", "urandom", "tty"] {
                    let got = place.run_in(&confinement, &format!("{change} /dev/{name}"));
                    assert_ne!(got.code(), Some(0), "{} {change} {name}: {got:?}", place.name());
                }
            }
        }
    }
}

#[test]
fn changes_of_an_overlay_land_apart_and_the_folder_stays_as_it_was() {
    for place in places() {
        fs::write(place.path("work/kept"), "old\n").unwrap();
        fs::write(place.path("work/gone"), "old\n").unwrap();
        fs::create_dir(place.path("scratch/kernel")).unwrap();
        let own = place.nobody.then_some(NOBODY);
        for name in ["work/kept", "work/gone", "scratch/kernel"] {
            std::os::unix::fs::chown(place.path(name), own, own).unwrap();
        }
        fs::create_dir(place.path("scratch/upper")).unwrap();
        std::os::unix::fs::chown(place.path("scratch/upper"), own, own).unwrap();
        let mut confinement = place.confinement();
        confinement.writable[0].backing =
            Backing::Overlay { upper: place.path("scratch/upper"), work: place.path("scratch/kernel") };
        if place.mechanism != Mechanism::Namespaces {
            let error = refused(&place, &confinement);
            assert!(error.starts_with("sandbox: cannot keep changes apart of"), "{error}");
            continue;
        }
        let got =
            place.run_in(&confinement, "echo new >kept && rm gone && mkdir d && echo x >d/f && cat kept d/f && ls");
        assert_eq!(got.output, "new\nx\nd\nkept\n", "{}: {got:?}", place.name());
        assert_eq!(fs::read_to_string(place.path("work/kept")).unwrap(), "old\n");
        assert_eq!(fs::read_to_string(place.path("work/gone")).unwrap(), "old\n");
        assert!(!place.path("work/d").exists());
        assert_eq!(fs::read_to_string(place.path("scratch/upper/kept")).unwrap(), "new\n");
        assert_eq!(fs::read_to_string(place.path("scratch/upper/d/f")).unwrap(), "x\n");
        // The kernel leaves a folder there that only root could remove as it is.
        fs::set_permissions(place.path("scratch/kernel/work"), fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn another_folder_can_be_shown_in_the_place_of_a_root() {
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Landlock) {
        let mut confinement = place.confinement();
        confinement.writable[0].backing = Backing::Source(place.path("upper"));
        let got = place.run_in(&confinement, "pwd; echo x >file");
        assert_eq!(got.output, format!("{}\n", place.path("work").display()), "{}", place.name());
        assert!(place.path("upper/file").exists() && !place.path("work/file").exists(), "{}", place.name());
    }
}

#[test]
fn limits_hold_for_the_command() {
    for place in places() {
        let mut confinement = place.confinement();
        confinement.limits = Limits { processes: None, memory: Some(1 << 30), file_size: Some(1 << 20) };
        let got = place.run_in(&confinement, "ulimit -v; ulimit -f; head -c 2M /dev/zero >big; stat -c %s big");
        assert_eq!(got.output.lines().next(), Some("1048576"), "{}: {got:?}", place.name());
        assert!(fs::metadata(place.path("work/big")).unwrap().len() <= 1 << 20, "{}: {got:?}", place.name());
    }
}

#[test]
fn a_flood_of_processes_ends_at_its_limit() {
    for place in own_namespaces().into_iter().filter(|place| place.nobody) {
        let mut confinement = place.confinement();
        confinement.limits = Limits { processes: Some(20), ..Limits::STRICT };
        let started = place.inside(&confinement, || {
            let start = |_| std::thread::Builder::new().spawn(std::thread::park).is_ok();
            (0..40).filter(|number| start(*number)).count().to_string()
        });
        let started: usize = started.parse().unwrap();
        assert!((10..20).contains(&started), "{started}");
    }
}

#[test]
fn inside_of_a_sandbox_landlock_alone_still_works() {
    for place in own_namespaces() {
        let mut confinement = place.confinement();
        confinement.private_tmp = true;
        let found = place.inside(&confinement, || format!("{:?}\n{}", preflight().best(), preflight()));
        assert!(
            found.starts_with("Landlock\nnamespaces: sandbox: cannot make namespaces: Operation not permitted"),
            "{found}"
        );
    }
}

#[test]
fn the_environment_of_the_program_in_front_is_out_of_reach() {
    for place in own_namespaces() {
        let mut command = place.command(&place.confinement(), "cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/1/maps");
        let got = collect(command.env("SEEN", "yes"));
        assert!(got.output.contains("SEEN=yes") && !got.output.contains("NEXTEST="), "{got:?}");
        assert!(got.output.contains("/proc/1/environ: Permission denied"), "{got:?}");
    }
}

#[test]
fn a_confinement_is_plain_data() {
    let mut confinement = Place::confinement(&places()[0]);
    confinement
        .writable
        .push(WritableRoot { path: "/a".into(), backing: Backing::Overlay { upper: "/u".into(), work: "/w".into() } });
    let text = serde_json::to_string(&confinement).unwrap();
    assert_eq!(serde_json::from_str::<Confinement>(&text).unwrap(), confinement);
}

#[test]
fn the_level_claims_only_what_was_shown() {
    let mut found = preflight();
    let confinement = Confinement::new(Mechanism::Namespaces);
    for probe in &mut found.probes {
        probe.outcome = Err("made to fail".into());
    }
    assert_eq!(found.best(), Mechanism::None);
    assert_eq!(Level::of(&confinement, &found).files, "not confined");
    assert!(found.to_string().starts_with("namespaces: made to fail\nbwrap: "), "{found}");
}
