//! Which mechanisms work on this machine, shown by trying each of them.
//!
//! A kernel's version or a setting's value says little: containers, security modules and distributions all have a word.
//! So a short script runs under each mechanism, tries what must work and what must fail, and says what it saw. A
//! mechanism counts only if everything was as promised.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Confinement, Mechanism, WritableRoot, landlock};
use crate::Temporary;

/// How long one mechanism may take to answer. It takes a few milliseconds, but on a machine that is busy with namespaces
/// the kernel may let it wait for seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs confined, in a folder with `inside` (writable), `outside` and `hidden`. `$1` is a port on which the parent
/// listens, `$2` the parent's number and `$3` when it started, because numbers repeat in another namespace.
const SCRIPT: &str = r#"
exec 2>/dev/null
(echo x >inside/file) && echo wrote-inside
(echo x >outside/file) && echo wrote-outside
(read -r secret <hidden/secret) && echo read-hidden
(: <>"/dev/tcp/127.0.0.1/$1") && echo connected
if read -r -a stat <"/proc/$2/stat" && [[ " ${stat[*]} " == *" $3 "* ]]; then
    echo saw-parent
    (: <"/proc/$2/environ") && echo inspected-parent
    kill -0 "$2" && echo signalled-parent
fi
while read -r name value; do
    case $name$value in NoNewPrivs:1 | Seccomp:2) echo "$name$value" ;; esac
done </proc/self/status
echo end
"#;

/// What was found out about one mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Which one.
    pub mechanism: Mechanism,
    /// Why it does not work, and what to do about it.
    pub outcome: Result<(), String>,
}

/// What was found out about this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preflight {
    /// One entry for each mechanism but `None`, strongest first.
    pub probes: Vec<Probe>,
    /// The version of Landlock that the kernel enforces.
    pub landlock: Option<u32>,
}

impl Preflight {
    /// Whether everything that `mechanism` promises was shown.
    pub fn works(&self, mechanism: Mechanism) -> bool {
        mechanism == Mechanism::None
            || self.probes.iter().any(|probe| probe.mechanism == mechanism && probe.outcome.is_ok())
    }

    /// The strongest mechanism that works; `Mechanism::None` if none does.
    pub fn best(&self) -> Mechanism {
        self.probes.iter().find(|probe| probe.outcome.is_ok()).map_or(Mechanism::None, |probe| probe.mechanism)
    }
}

impl fmt::Display for Preflight {
    /// One line for each mechanism.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Probe { mechanism, outcome }) in self.probes.iter().enumerate() {
            let name = mechanism.name();
            let line = outcome.as_ref().map_or_else(String::as_str, |()| "works");
            write!(f, "{}{name}: {line}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// Tries every mechanism once, in about 50 ms. Can be called where there are other threads.
pub fn preflight() -> Preflight {
    let landlock = landlock::version();
    let try_it = |mechanism| Probe { mechanism, outcome: probe(mechanism, landlock) };
    let mechanisms = [Mechanism::Namespaces, Mechanism::Bubblewrap, Mechanism::Landlock, Mechanism::Seatbelt];
    Preflight { probes: mechanisms.into_iter().map(try_it).collect(), landlock }
}

fn probe(mechanism: Mechanism, landlock: Option<u32>) -> Result<(), String> {
    if mechanism == Mechanism::Seatbelt && !cfg!(target_os = "macos") {
        return Err("only on macOS".into());
    }
    if mechanism == Mechanism::Landlock && landlock.is_none() {
        return Err("this kernel has no Landlock or has it switched off (add landlock to the boot option lsm=)".into());
    }
    let answer = ask(mechanism).map_err(|error| match (mechanism, error.kind()) {
        (Mechanism::Bubblewrap, io::ErrorKind::NotFound) => "not installed (apt install bubblewrap)".into(),
        (_, io::ErrorKind::NotFound) => format!("cannot be tried without bash: {error}"),
        _ => format!("{error}{}", advice()),
    })?;
    judge(mechanism, landlock, &answer)
}

/// Compares what the script saw with what the mechanism promises.
fn judge(mechanism: Mechanism, landlock: Option<u32>, answer: &str) -> Result<(), String> {
    let saw = |what: &str| answer.lines().any(|line| line == what);
    if !saw("end") {
        let last = answer.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no word came back");
        return Err(format!("a command did not run to its end: {last}{}", advice()));
    }
    let own_view = matches!(mechanism, Mechanism::Namespaces | Mechanism::Bubblewrap);
    let keeps_signals = own_view || landlock.is_some_and(|version| version >= 6);
    let wrong = [
        (!saw("wrote-inside"), "a writable folder could not be written"),
        (saw("wrote-outside"), "a file outside could be written"),
        (saw("read-hidden"), "a hidden file could be read"),
        (saw("connected"), "a connection to the machine could be made"),
        (saw("saw-parent") && own_view, "processes outside were visible"),
        (saw("inspected-parent"), "a process outside could be inspected"),
        (saw("signalled-parent") && keeps_signals, "a process outside could be signalled"),
        (!saw("NoNewPrivs:1"), "new privileges were possible"),
        (!saw("Seccomp:2"), "system calls were not filtered"),
    ];
    let wrong: Vec<&str> = wrong.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, words)| words).collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("does not hold here: {}", wrong.join(", "))) }
}

/// Runs the script under `mechanism`, and gives all that it and the programs in front of it said.
#[expect(unsafe_code, reason = "confining happens between fork and exec")]
fn ask(mechanism: Mechanism) -> io::Result<String> {
    let folder = Temporary::new(&std::env::temp_dir(), "preflight-")?;
    let root = folder.path().canonicalize()?;
    for name in ["inside", "outside", "hidden"] {
        fs::create_dir(root.join(name))?;
    }
    fs::write(root.join("hidden/secret"), "secret\n")?;
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let mut confinement = Confinement::new(mechanism);
    confinement.writable = vec![WritableRoot::direct(root.join("inside"))];
    confinement.hidden = vec![root.join("hidden")];
    // What is outside must be in sight, or not being able to write it would say nothing.
    confinement.private_tmp = false;
    let parent = std::process::id().to_string();
    let port = listener.local_addr()?.port().to_string();
    // `-p`: neither BASH_ENV nor functions from the environment have a say.
    let arguments = ["-p", "-c", SCRIPT, "preflight", &port, &parent, &started()].map(OsString::from);
    let (program, arguments) = confinement.command("bash".as_ref(), &arguments)?;

    let (mut reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&root).stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    // SAFETY: the child has one thread. It allocates, which the C library allows after fork: it takes its own locks
    // before and frees them in the child. No other lock of ours or of the standard library is taken.
    unsafe {
        command.pre_exec(move || {
            confinement.enter(None).map(drop).inspect_err(|error| {
                // Only an error's number gets to the parent by itself.
                let _ = nix::unistd::write(BorrowedFd::borrow_raw(2), error.to_string().as_bytes());
            })
        });
    }
    let spawned = command.spawn();
    // The builder holds our copies of the pipe's writing end.
    drop(command);
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let mut words = String::new();
            reader.read_to_string(&mut words)?;
            return Err(if words.is_empty() { error } else { io::Error::other(words) });
        }
    };
    let answer = read_all(&mut reader);
    // It has ended, or it never will.
    let _ = child.kill();
    child.wait()?;
    answer
}

fn read_all(reader: &mut io::PipeReader) -> io::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    let (mut all, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(reader.as_fd(), PollFlags::POLLIN)], left)? == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "a command did not end within five seconds"));
        }
        match reader.read(&mut buffer)? {
            0 => return Ok(String::from_utf8_lossy(&all).into_owned()),
            count => all.extend_from_slice(&buffer[..count]),
        }
    }
}

/// When this process started, as `/proc/PID/stat` says it. An unreadable one is like none that the script can see.
fn started() -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields are counted from the end of the name, which may contain anything (proc_pid_stat(5)).
    let field = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(19));
    field.unwrap_or("unknown").to_owned()
}

/// What the machine's settings say about namespaces that cannot be made.
fn advice() -> &'static str {
    let is = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    if is("/proc/sys/user/max_user_namespaces", "0") {
        "; user namespaces are switched off (sysctl -w user.max_user_namespaces=10000)"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "; user namespaces are switched off (sysctl -w kernel.unprivileged_userns_clone=1)"
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "; AppArmor forbids user namespaces (sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or a profile)"
    } else if Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists() {
        "; this is a container (start it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "wrote-inside\nNoNewPrivs:1\nSeccomp:2\nend\n";

    #[test]
    fn a_mechanism_counts_only_if_everything_was_as_promised() {
        assert_eq!(judge(Mechanism::Namespaces, Some(7), GOOD), Ok(()));
        for (extra, word) in [("connected", "connection"), ("read-hidden", "hidden"), ("saw-parent", "visible")] {
            let error = judge(Mechanism::Bubblewrap, None, &format!("{extra}\n{GOOD}")).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        let error = judge(Mechanism::Landlock, Some(7), "bash: odd\n").unwrap_err();
        assert!(error.contains("did not run to its end: bash: odd"), "{error}");
    }

    #[test]
    fn landlock_alone_may_show_processes_and_before_version_6_signal_them() {
        let answer = format!("saw-parent\nsignalled-parent\n{GOOD}");
        assert_eq!(judge(Mechanism::Landlock, Some(5), &answer), Ok(()));
        assert!(judge(Mechanism::Landlock, Some(6), &answer).is_err());
    }
}
