//! `sudo` in commands: the real one, asked by a user with a real password, in a mount namespace whose `/etc/shadow` and
//! `/etc/sudoers` are the test's own.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::pty::{ends_with, expect, watch};
use common::{Hermes, Ran, hermes};
use serde_json::{Value, json};

const NOBODY: u32 = 65534;
const PASSWORD: &str = "correct horse";
/// The same as `/etc/shadow` keeps it.
const HASH: &str =
    "$6$rounds=1000$hermes$sQq/xsEU2ctZ889bgCZxVbIX8PfEvlls3C7plEJjfkHArkJa8N4bwSa0SdWaDdi9DBQpccHaDADTUWGRp2WV//";
const ENTER: &str = "set -e; mount --make-rprivate /; mkdir -p /run/sudo; mount -t tmpfs none /run/sudo; \
    mount -t tmpfs none /var/log; mount --bind \"$1/shadow\" /etc/shadow; mount --bind \"$1/sudoers\" /etc/sudoers; shift; \
    exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";

/// A home of nobody's, and the files that make nobody somebody who may use sudo.
struct Machine {
    hermes: Hermes,
    system: tempfile::TempDir,
    program: PathBuf,
}

/// `None` where this cannot be: it takes root, a sudo and namespaces.
fn machine() -> Option<Machine> {
    let can =
        |program: &str, args: &[&str]| Command::new(program).args(args).output().is_ok_and(|it| it.status.success());
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root || !can("sudo", &["--version"]) || !can("unshare", &["--mount", "true"]) {
        eprintln!("skipped: this takes root, sudo and mount namespaces");
        return None;
    }
    let hermes = hermes();
    let system = tempfile::tempdir().unwrap();
    let program = system.path().join("hermes");
    fs::copy(assert_cmd::cargo::cargo_bin("hermes"), &program).unwrap();
    fs::set_permissions(system.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let shadow = fs::read_to_string("/etc/shadow").unwrap();
    let line = |line: &str| match line.split(':').collect::<Vec<_>>()[..] {
        ["nobody", _, ref rest @ ..] => format!("nobody:{HASH}:{}\n", rest.join(":")),
        _ => format!("{line}\n"),
    };
    for (name, text) in
        [("shadow", shadow.lines().map(line).collect()), ("sudoers", "nobody ALL=(ALL) ALL\n".to_owned())]
    {
        fs::write(system.path().join(name), text).unwrap();
        fs::set_permissions(system.path().join(name), fs::Permissions::from_mode(0o440)).unwrap();
    }
    for path in walk(hermes.home.work().parent().unwrap()) {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    Some(Machine { hermes, system, program })
}

fn walk(path: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(path).into_iter().flatten().flatten().flat_map(|entry| walk(&entry.path()));
    below.chain([path.to_path_buf()]).collect()
}

impl Machine {
    fn sudoers(&self, text: &str) {
        fs::write(self.system.path().join("sudoers"), text).unwrap();
    }

    /// What a call prints where nobody sits.
    fn hermes_call(&self, arguments: &str) -> String {
        let ran = Ran::from(self.call_with(arguments, &["--approve", "all"]).output().unwrap());
        ran.out + &ran.err
    }

    /// The call of the terminal with this script, by nobody.
    fn call(&self, script: &str, options: &[&str]) -> Command {
        self.call_with(&json!({ "command": script }).to_string(), options)
    }

    fn call_with(&self, arguments: &str, options: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", ENTER, "sh"])
            .arg(self.system.path())
            .arg(&self.program)
            .args(["tools", "call", "terminal", arguments])
            .args(options)
            .current_dir(self.hermes.home.work())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.hermes.home.user_home())
            .env("HERMES_HOME", self.hermes.home.home())
            .env("TERM", "xterm")
            .env("NO_COLOR", "1");
        command
    }

    /// What a command printed that needs nobody's yes, with a password from the environment of Hermes.
    fn output(&self, script: &str, password: Option<&str>) -> String {
        let mut command = self.call(script, &["--approve", "all"]);
        command.envs(password.map(|password| ("SUDO_PASSWORD", password)));
        let ran = Ran::from(command.output().unwrap());
        let result: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
        result["output"].as_str().unwrap().to_owned()
    }
}

#[test]
fn sudo_gets_its_password_and_the_command_does_not() {
    let Some(machine) = machine() else { return };
    for (script, printed) in [
        ("sudo id -u", "0\n"),
        ("sudo -u nobody id -u; sudo -Eu nobody -- id -u", "65534\n65534\n"),
        // Only the password would be taken for input otherwise.
        ("printf 'for cat' | sudo cat; sudo cat", "for cat"),
        ("sh -c 'sudo id -u'; printf '#!/bin/sh\\nsudo id -u\\n' > x; sh x", "0\n0\n"),
        ("(sudo id -u & sudo id -u & wait)", "0\n0\n"),
        ("echo 'correct horse' | sudo -kS id -u 2>/dev/null", "0\n"),
        ("echo 'correct horse' | sudo --stdin -p '' id -u", "0\n"),
        ("sudo sh -c 'echo $SUDO_ASKPASS $SUDO_PASSWORD'; env | grep -c horse", "\n0\n"),
        ("exec 3</dev/null; sudo -n id -u", "sudo: a password is required\n"),
        ("sudo FOO=bar printenv FOO", "bar\n"),
        ("sudo -A id -u; sudo -k; sudo --user=nobody id -u", "0\n65534\n"),
    ] {
        assert_eq!(machine.output(script, Some(PASSWORD)), printed, "{script}");
    }
}

#[test]
fn a_password_that_is_missing_or_wrong_is_said_and_never_waited_for() {
    let Some(machine) = machine() else { return };
    let none = machine.output("sudo id -u", None);
    assert!(none.contains("nobody is here to type the password of sudo"), "{none}");
    let wrong = machine.output("sudo id -u", Some("battery staple"));
    assert!(wrong.contains("the password in SUDO_PASSWORD is not the right one"), "{wrong}");
    assert!(!wrong.contains("staple"), "{wrong}");
}

#[test]
fn nobody_but_sudo_is_told_the_password() {
    let Some(machine) = machine() else { return };
    let thief = "#!/bin/sh\n\"$ASK\" > as-a-file\n\"$ASK\" | cat > as-a-pipe\nmkfifo named; cat named > as-a-named-pipe &\n\
        \"$ASK\" > named\nwait\necho wrong\n";
    machine.hermes.home.write("thief", thief);
    let script = "chmod +x thief; export ASK=$SUDO_ASKPASS; ./thief; rm named; \
        SUDO_ASKPASS=$PWD/thief /usr/bin/sudo -A true; rm named; \
        cp /bin/sh sudo; ./sudo thief; echo; tail as-*";
    let said = machine.output(script, Some(PASSWORD));
    assert!(said.contains("its output was not made by root") && said.contains("its output is no pipe"), "{said}");
    for name in ["as-a-file", "as-a-pipe", "as-a-named-pipe"] {
        assert_eq!(machine.hermes.home.read(name), "", "{name}");
    }
}

/// A sudo that keeps what its commands print makes pipes for them, and these pipes belong to root, too.
#[test]
fn a_pipe_that_sudo_made_for_its_command_is_not_taken_for_its_own() {
    let Some(machine) = machine() else { return };
    for options in ["log_output", "log_output, log_input", "log_output, use_pty"] {
        machine.sudoers(&format!("Defaults {options}\nnobody ALL=(ALL) NOPASSWD: ALL\n"));
        let thief = "trap '' PIPE; sudo -u nobody env \"$SUDO_ASKPASS\" | tee stolen; \
            python3 -c 'import os,signal,sys; signal.pthread_sigmask(0, [signal.SIGCHLD, signal.SIGTSTP]); \
            signal.signal(signal.SIGTSTP, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])' \
            sudo -u nobody sh -c '\"$0\"' \"$SUDO_ASKPASS\" | tee -a stolen";
        let said = machine.output(thief, Some(PASSWORD));
        assert_eq!(said.matches("was not started by a sudo that asks").count(), 2, "{options}: {said}");
        assert!(!machine.hermes.home.read("stolen").contains(PASSWORD), "{options}");
    }
}

#[test]
fn only_a_command_that_somebody_waits_for_may_ask() {
    let Some(machine) = machine() else { return };
    let arguments = json!({ "command": "sudo id -u", "background": true }).to_string();
    let background = machine.hermes_call(&arguments);
    // Not asked, and not answered: a password from the environment needs nobody.
    let mut session = watch(machine.call("sudo id -u; echo after", &["--approve", "all"]));
    expect(&mut session, "password › ");
    session.send_line(PASSWORD).unwrap();
    expect(&mut session, "0\\nafter");
    assert!(
        background.contains("Background process started") || background.contains("in the background"),
        "{background}"
    );

    // A question is taken back when the command goes on in the background.
    let slow = json!({ "command": "sudo id -u; sleep 300", "timeout": 2 }).to_string();
    let mut session = watch(machine.call_with(&slow, &["--approve", "all"]));
    expect(&mut session, "password › ");
    let said = expect(&mut session, "}");
    assert!(said.contains("running"), "{said}");
    ends_with(&session, 0);
}

#[test]
fn two_that_got_the_same_wrong_password_share_the_right_one() {
    let Some(machine) = machine() else { return };
    let script = "sh -c 'sudo id -u; true' & sh -c 'sudo id -u; true' & wait";
    let mut session = watch(machine.call(script, &["--approve", "all"]));
    expect(&mut session, "password › ");
    session.send_line("a typo").unwrap();
    expect(&mut session, "not the right password");
    expect(&mut session, "password › ");
    session.send_line(PASSWORD).unwrap();
    let result = expect(&mut session, "exit_code");
    assert!(result.matches("0\\n").count() == 2 && !result.contains("›"), "{result}");
    ends_with(&session, 0);
}

#[test]
fn the_person_types_it_unseen_and_once() {
    let Some(machine) = machine() else { return };
    let mut session = watch(machine.call("sudo echo 'as root'; sudo id -u", &["--approve", "all"]));
    let asked = expect(&mut session, "password › ");
    assert!(asked.contains("sudo wants your password, for:") && asked.contains("sudo echo 'as root'"), "{asked}");
    session.send_line("battery staple").unwrap();
    let again = expect(&mut session, "password › ");
    assert!(again.contains("That was not the right password.") && !again.contains("staple"), "{again}");
    session.send_line(PASSWORD).unwrap();
    let result = expect(&mut session, "as root\\n0\\n");
    assert!(!result.contains("horse") && !result.contains("password"), "{result}");
    ends_with(&session, 0);
}

#[test]
fn enter_alone_gives_none() {
    let Some(machine) = machine() else { return };
    let mut session = watch(machine.call("sudo id -u", &["--approve", "all"]));
    expect(&mut session, "password › ");
    session.send_line("").unwrap();
    expect(&mut session, "no password was typed for sudo");
    ends_with(&session, 0);
}
