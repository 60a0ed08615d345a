//! Running things confined, for the tests of the sandbox: every mechanism that works here, as this user and, if that is
//! root, as nobody too.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hermes_exec::sandbox::{Confinement, Mechanism, View, WritableRoot, preflight};

pub(crate) const NOBODY: u32 = 65534;

/// A folder for one test: `work` can be written, `hidden/secret` not be read, and `outside/file` not be changed.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    pub(crate) mechanism: Mechanism,
    pub(crate) nobody: bool,
}

/// One place for each mechanism and user.
pub(crate) fn places() -> Vec<Place> {
    let found = preflight();
    assert!(!found.probes.is_empty());
    let all = [Mechanism::Namespaces, Mechanism::Bubblewrap, Mechanism::Landlock];
    let users: &[bool] = if nix::unistd::geteuid().is_root() { &[false, true] } else { &[false] };
    let works = all.into_iter().filter(|mechanism| found.works(*mechanism));
    works.flat_map(|mechanism| users.iter().map(move |nobody| Place::new(mechanism, *nobody))).collect()
}

/// The places of our own namespaces only.
pub(crate) fn own_namespaces() -> Vec<Place> {
    places().into_iter().filter(|place| place.mechanism == Mechanism::Namespaces).collect()
}

impl Place {
    fn new(mechanism: Mechanism, nobody: bool) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), mechanism, nobody };
        for name in ["work", "outside", "hidden", "upper", "scratch"] {
            fs::create_dir(place.path(name)).unwrap();
        }
        fs::write(place.path("hidden/secret"), "the secret\n").unwrap();
        fs::write(place.path("outside/file"), "as it was\n").unwrap();
        if nobody {
            fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
            let names = ["", "work", "outside", "hidden", "upper", "scratch", "hidden/secret", "outside/file"];
            for name in names {
                chown(place.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// What all tests begin with. What is outside stays in sight: that it cannot be written must say something.
    pub(crate) fn confinement(&self) -> Confinement {
        let mut confinement = Confinement::new(self.mechanism);
        confinement.writable = vec![WritableRoot::direct(self.path("work"))];
        confinement.hidden = vec![self.path("hidden"), "/etc/shadow".into(), "/etc/sudoers".into()];
        confinement.private_tmp = false;
        confinement
    }

    pub(crate) fn strict(&self) -> Confinement {
        let mut confinement = self.confinement();
        confinement.view = View::System { home: "/home/somebody".into() };
        confinement
    }

    /// For messages of failed tests.
    pub(crate) fn name(&self) -> String {
        format!("{:?} as {}", self.mechanism, if self.nobody { "nobody" } else { "this user" })
    }

    /// The command that runs a script confined, in `work`.
    pub(crate) fn command(&self, confinement: &Confinement, script: &str) -> Command {
        self.command_after(confinement, script, || Ok(()))
    }

    /// The same, with something to do just before confining, in the child.
    #[expect(unsafe_code, reason = "confining happens between fork and exec")]
    pub(crate) fn command_after(
        &self,
        confinement: &Confinement,
        script: &str,
        before: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Command {
        let (program, arguments) =
            self.as_its_user(|| confinement.command("bash".as_ref(), &["-c".into(), script.into()]).unwrap());
        let mut command = self.plain(program.as_ref());
        let confinement = confinement.clone();
        // SAFETY: the child has one thread, and the C library lets it allocate.
        unsafe {
            command.args(arguments).pre_exec(move || {
                before()?;
                confinement.enter(None).map(drop).inspect_err(|error| {
                    let _ = nix::unistd::write(std::os::fd::BorrowedFd::borrow_raw(2), error.to_string().as_bytes());
                })
            });
        }
        command
    }

    /// Does something with the eyes of the place's user: what root sees and nobody does not, such as the sockets of a
    /// program of root's, is no part of nobody's plan.
    #[expect(unsafe_code, reason = "the user of one thread")]
    fn as_its_user<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let nobody = self.nobody;
        let with_its_eyes = move || {
            if nobody {
                // SAFETY: the system call itself, unlike the C library's function, changes this thread only.
                let changed = unsafe { nix::libc::syscall(nix::libc::SYS_setresuid, -1, NOBODY, -1) };
                assert_eq!(changed, 0);
            }
            work()
        };
        std::thread::scope(|scope| scope.spawn(with_its_eyes).join().unwrap())
    }

    /// A program as the place's user, in `work`, not confined.
    pub(crate) fn plain(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path("work")).stdin(Stdio::null());
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("TMPDIR", self.path("work"));
        if self.nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Runs a script under the usual confinement.
    pub(crate) fn run(&self, script: &str) -> Ended {
        self.run_in(&self.confinement(), script)
    }

    pub(crate) fn run_in(&self, confinement: &Confinement, script: &str) -> Ended {
        let mut ended = collect(&mut self.command(confinement, script));
        for _ in 0..20 {
            // A socket of another test that went away after the plan was made: bwrap does not start then, and has no
            // option for "if it is still there".
            let not_started = ended.output.starts_with("bwrap: Can't ") && ended.output.lines().count() == 1;
            if !not_started || ended.output.contains(&*self.path("").to_string_lossy()) {
                break;
            }
            ended = collect(&mut self.command(confinement, script));
        }
        ended
    }

    /// Runs `check` in the confined process, and gives what it wrote. It must not fail.
    #[expect(unsafe_code, reason = "confining happens between fork and exec")]
    pub(crate) fn inside(
        &self,
        confinement: &Confinement,
        check: impl Fn() -> String + Send + Sync + 'static,
    ) -> String {
        let mut command = self.plain("true".as_ref());
        let confinement = confinement.clone();
        // SAFETY: as above; the process ends without running anything that was meant for the test's own end.
        unsafe {
            command.pre_exec(move || {
                let text = match confinement.enter(None) {
                    Ok(_) => check(),
                    Err(error) => error.to_string(),
                };
                let _ = nix::unistd::write(std::os::fd::BorrowedFd::borrow_raw(1), text.as_bytes());
                nix::libc::_exit(0)
            });
        }
        let (mut reader, writer) = std::io::pipe().unwrap();
        let child = command.stdout(writer).spawn();
        drop(command);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        child.unwrap().wait().unwrap();
        text
    }
}

/// How a command ended and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
}

impl Ended {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub(crate) fn signal(&self) -> Option<i32> {
        self.status.signal()
    }
}

/// Runs a command to its end. Output is read until the command itself has ended and for a moment longer, because what
/// it left behind may hold the pipe.
pub(crate) fn collect(command: &mut Command) -> Ended {
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let child = command.spawn();
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            let mut said = String::new();
            let mut reader = reader;
            reader.read_to_string(&mut said).unwrap();
            panic!("{error}: {said}");
        }
    };
    let reading = std::thread::spawn(move || {
        let (mut reader, mut all) = (reader, Vec::new());
        reader.read_to_end(&mut all).unwrap();
        String::from_utf8_lossy(&all).into_owned()
    });
    let status = wait(&mut child);
    Ended { status, output: reading.join().unwrap() }
}

/// Waits for a child, and fails if it does not end.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the command did not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The numbers of live processes one of whose arguments is `word`.
pub(crate) fn processes_with(word: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_word = |pid: &i32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    numbers.filter(has_word).collect()
}

/// A number of seconds for `sleep` that no other test uses.
pub(crate) fn unique_sleep() -> String {
    let place = tempfile::tempdir().unwrap();
    let seed = place.path().to_str().unwrap().bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    format!("3600.{}", seed % 1_000_000_000)
}

/// Polls until something holds; whoever waits in vain fails.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A script on a terminal of its own, as leader of a session.
pub(crate) struct OnTerminal {
    pub(crate) child: Child,
    master: fs::File,
    unread: String,
}

impl OnTerminal {
    pub(crate) fn start(place: &Place, confinement: &Confinement, script: &str) -> Self {
        let pair = nix::pty::openpty(None, None).unwrap();
        let name = nix::unistd::ttyname(pair.slave.as_fd()).unwrap();
        if place.nobody {
            chown(&name, Some(NOBODY), None).unwrap();
        }
        let mut command = place.command_after(confinement, script, move || {
            nix::unistd::setsid()?;
            // The first terminal that a session's leader opens becomes the session's.
            fs::File::open(&name).map(drop)
        });
        let slave = |slave: &OwnedFd| Stdio::from(slave.try_clone().unwrap());
        command.stdin(slave(&pair.slave)).stdout(slave(&pair.slave)).stderr(slave(&pair.slave));
        let child = command.env("TERM", "xterm").spawn().unwrap();
        Self { child, master: pair.master.into(), unread: String::new() }
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until `text` has come; the end of the terminal before that is a failure.
    pub(crate) fn expect(&mut self, text: &str) {
        let mut buffer = [0; 1024];
        while !self.unread.contains(text) {
            let read = self.master.read(&mut buffer).unwrap_or(0);
            assert!(read > 0, "{text:?} did not come; what came was {:?}", self.unread);
            self.unread.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        let end = self.unread.find(text).unwrap() + text.len();
        self.unread.drain(..end);
    }
}
