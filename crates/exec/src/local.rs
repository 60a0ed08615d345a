//! Running on this machine, as this user.
//!
//! One fresh bash a command, started with `bash -c COMMAND` and nothing added to the command. The session's directory
//! is carried over by a *state file*: an anonymous memory file whose text bash sources first (`BASH_ENV`), which sets
//! an exit trap that overwrites the same file with the shell's last directory. The file is reached as
//! `/proc/OUR_PID/fd/N`, so no descriptor leaks into the command's children. A shell that is killed, replaced with
//! `exec`, or that sets an exit trap of its own leaves the text unchanged, and the directory stays what it was.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{
    CancellationToken, Command, Environment, EnvironmentError, FileError, FileStat, Finished, FinishedHow,
};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command as Process};
use tokio::time::{Instant, sleep_until, timeout};

use crate::capture::Capture;
use crate::process_tree::Leftover;
use crate::{environment_variables, files, process_tree};

/// How long a process tree may take to end after SIGTERM before it gets SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// How long the pipe may stay silent after the shell has exited while a descendant still holds it open.
const DRAIN_IDLE: Duration = Duration::from_millis(50);
/// How long the pipe is drained in all after the shell has exited.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);
/// Linux takes at most 128 KiB in one argument (`MAX_ARG_STRLEN`, execve(2)); longer commands go through a file.
const LONGEST_ARGUMENT: usize = 120 * 1024;

/// The local backend.
#[derive(Debug)]
pub struct LocalEnvironment {
    /// Marks our processes; unique per environment.
    id: String,
    runs: AtomicU64,
    shell: PathBuf,
    home: PathBuf,
    scratch: tempfile::TempDir,
    variables: Vec<(OsString, OsString)>,
    cwd: Mutex<PathBuf>,
    /// The sessions of finished commands, in which something may still run, such as `server &`.
    leftovers: Mutex<Vec<Leftover>>,
}

impl LocalEnvironment {
    /// An environment whose session starts in `cwd`, with the home `home` and the allow-listed part of `variables`
    /// (plus the names in `granted`).
    ///
    /// Fails if `cwd` is no directory or no temporary folder can be made.
    pub fn new(
        cwd: &Path,
        home: &Path,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        granted: &[String],
    ) -> Result<Self, EnvironmentError> {
        let cwd = std::fs::canonicalize(cwd)
            .ok()
            .filter(|path| path.is_dir())
            .ok_or_else(|| EnvironmentError::NoSuchDirectory(cwd.to_path_buf()))?;
        Ok(Self {
            id: unique_id(),
            runs: AtomicU64::new(0),
            shell: "bash".into(),
            home: home.to_path_buf(),
            scratch: tempfile::Builder::new().prefix("hermes-").tempdir().map_err(EnvironmentError::NoScratch)?,
            variables: environment_variables::for_child(variables, granted),
            cwd: Mutex::new(cwd),
            leftovers: Mutex::default(),
        })
    }

    /// The session's directory; if it has gone, the session moves to what is left of its path, and says so once.
    fn existing_cwd(&self) -> Result<PathBuf, EnvironmentError> {
        let cwd = self.cwd();
        if cwd.is_dir() {
            return Ok(cwd);
        }
        let now = cwd.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_path_buf();
        self.set_cwd(now.clone());
        Err(EnvironmentError::DirectoryGone { gone: cwd, now })
    }

    fn set_cwd(&self, cwd: PathBuf) {
        *self.cwd.lock().unwrap_or_else(PoisonError::into_inner) = cwd;
    }

    fn start(&self, command: &Command, cwd: &Path, run: &str) -> Result<Running, EnvironmentError> {
        let cannot_start = |source| EnvironmentError::CannotStart { program: self.shell.display().to_string(), source };
        let state = StateFile::new().map_err(cannot_start)?;
        let long = (command.script.len() > LONGEST_ARGUMENT)
            .then(|| memory_file(command.script.as_bytes()))
            .transpose()
            .map_err(cannot_start)?;
        let (reader, writer) = io::pipe().map_err(cannot_start)?;
        let mut process = Process::new(&self.shell);
        match &long {
            Some(file) => process.arg(proc_path(file)),
            None => process.arg("-c").arg(&command.script),
        };
        process
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("PWD", cwd)
            .env("BASH_ENV", proc_path(&state.0))
            .env(process_tree::MARKER, run)
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(cannot_start)?)
            .stderr(writer);
        own_session(&mut process);
        let child = process.spawn().map_err(cannot_start)?;
        // The builder holds our copies of the pipe's writing end; end of file comes only without them.
        drop(process);
        let session = Pid::from_raw(child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(i32::MAX));
        let tree = Tree { session, run: run.to_owned(), ended: false };
        let output = pipe::Receiver::from_owned_fd(reader.into()).map_err(EnvironmentError::Lost)?;
        Ok(Running { child, tree, output, output_open: true, state, left_over: 0, _long: long })
    }
}

#[async_trait]
impl Environment for LocalEnvironment {
    fn backend(&self) -> &'static str {
        "local"
    }

    fn cwd(&self) -> PathBuf {
        self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn home(&self) -> &Path {
        &self.home
    }

    fn fingerprint(&self) -> String {
        // Values may be secrets: only a number made of them leaves this place.
        let mut hasher = DefaultHasher::new();
        self.variables.hash(&mut hasher);
        format!("{} {} {:x}", self.backend(), self.home.display(), hasher.finish())
    }

    fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    fn shares_our_files(&self) -> bool {
        true
    }

    async fn run(&self, command: Command, cancel: &CancellationToken) -> Result<Finished, EnvironmentError> {
        let cwd = match &command.cwd {
            Some(cwd) if !cwd.is_dir() => return Err(EnvironmentError::NoSuchDirectory(cwd.clone())),
            Some(cwd) => cwd.clone(),
            None => self.existing_cwd()?,
        };
        // The point ends the number: the mark of run 1 is not the beginning of that of run 10.
        let run = format!("{}-{}.", self.id, self.runs.fetch_add(1, Ordering::Relaxed));
        let mut running = self.start(&command, &cwd, &run)?;
        let mut capture = Capture::new(command.output_cap);
        let how = running.run_to_end(command.timeout, cancel, &mut capture).await?;
        let leftover = Leftover::of(running.tree.session);
        self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).push(leftover);
        // A command that was given its own directory does not move the session.
        if command.cwd.is_none()
            && let Some(left_in) = running.state.directory().filter(|path| path.is_dir())
        {
            self.set_cwd(left_in);
        }
        let captured = capture.finish();
        Ok(Finished {
            output: captured.text,
            total_bytes: captured.total_bytes,
            omitted_bytes: captured.omitted_bytes,
            how,
            left_over: running.left_over,
        })
    }

    async fn stat(&self, path: &Path) -> Result<FileStat, FileError> {
        files::blocking(path, files::stat).await
    }

    async fn real_path(&self, path: &Path) -> Result<PathBuf, FileError> {
        files::blocking(path, files::real_path).await
    }

    async fn read(&self, path: &Path, range: Range<u64>) -> Result<Vec<u8>, FileError> {
        files::blocking(path, move |path| files::read(path, range)).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
        let bytes = bytes.to_vec();
        let write = if path.starts_with(self.scratch.path()) { files::write_private } else { files::write };
        files::blocking(path, move |path| write(path, &bytes)).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<String>, FileError> {
        files::blocking(path, files::list).await
    }

    async fn close(&self) {
        if self.runs.load(Ordering::Relaxed) == 0 {
            return;
        }
        let ours = format!("{}-", self.id);
        let leftovers = std::mem::take(&mut *self.leftovers.lock().unwrap_or_else(PoisonError::into_inner));
        let signal = |signal| process_tree::signal_leftovers(&leftovers, &ours, signal);
        if signal(Signal::SIGTERM) == 0 {
            return;
        }
        let deadline = Instant::now() + GRACE;
        while signal(Signal::SIGCONT) > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        signal(Signal::SIGKILL);
    }
}

/// Ends everything that any environment of this process has started, at once and for good. For a process that must end
/// now; otherwise [`Environment::close`] is the way. Finds what carries our marker, not what has hidden it.
pub fn kill_everything() {
    process_tree::signal_marked(&format!("{}-", std::process::id()), Signal::SIGKILL);
}

/// Gives the command a session of its own: everything it starts can be found again, and none of it has a controlling
/// terminal, so a program that would ask there for a password fails instead of waiting.
#[expect(unsafe_code, reason = "setsid(2) has to be called between fork and exec, and is safe to call there")]
fn own_session(process: &mut Process) {
    // SAFETY: the closure runs in the child after fork; setsid is async-signal-safe and allocates nothing.
    unsafe {
        process.pre_exec(|| nix::unistd::setsid().map(drop).map_err(io::Error::from));
    }
}

/// One command while it runs. Dropping it ends the whole tree.
struct Running {
    child: Child,
    tree: Tree,
    output: pipe::Receiver,
    output_open: bool,
    state: StateFile,
    left_over: usize,
    /// The command itself when it was too long for an argument; bash reads it through our descriptor.
    _long: Option<File>,
}

impl Running {
    async fn run_to_end(
        &mut self,
        limit: Duration,
        cancel: &CancellationToken,
        capture: &mut Capture,
    ) -> Result<FinishedHow, EnvironmentError> {
        let deadline = Instant::now() + limit;
        tokio::select! {
            status = self.until_exit(capture) => {
                let status = status.map_err(EnvironmentError::Lost)?;
                self.drain(capture).await;
                // What it left running on purpose (`server &`) stays until the task ends.
                self.tree.ended = true;
                return Ok(how_it_ended(status));
            }
            () = sleep_until(deadline) => {}
            () = cancel.cancelled() => {}
        }
        let how = if cancel.is_cancelled() { FinishedHow::Cancelled } else { FinishedHow::TimedOut };
        self.tree.signal(Signal::SIGTERM);
        // Whether it ends by itself or not, what is left gets the unconditional signal.
        let _ = timeout(GRACE, self.until_exit(capture)).await;
        self.tree.signal(Signal::SIGKILL);
        self.child.wait().await.map_err(EnvironmentError::Lost)?;
        self.left_over = self.tree.confirm_end().await;
        self.tree.ended = true;
        self.drain(capture).await;
        Ok(how)
    }

    /// Reads output until the shell itself has exited. A pipe that a grandchild holds open does not delay this.
    async fn until_exit(&mut self, capture: &mut Capture) -> io::Result<ExitStatus> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            tokio::select! {
                read = self.output.read(&mut buffer), if self.output_open => match read {
                    Ok(0) | Err(_) => self.output_open = false,
                    Ok(n) => capture.push(&buffer[..n]),
                },
                status = self.child.wait() => return status,
            }
        }
    }

    async fn drain(&mut self, capture: &mut Capture) {
        let mut buffer = vec![0; 16 * 1024];
        let deadline = Instant::now() + DRAIN_LIMIT;
        while self.output_open && Instant::now() < deadline {
            match timeout(DRAIN_IDLE, self.output.read(&mut buffer)).await {
                Ok(Ok(n)) if n > 0 => capture.push(&buffer[..n]),
                _ => self.output_open = false,
            }
        }
    }
}

/// The processes of one command. Dropped before their end was seen, they are killed.
struct Tree {
    session: Pid,
    run: String,
    ended: bool,
}

impl Tree {
    fn signal(&self, signal: Signal) -> usize {
        process_tree::signal_command(self.session, &self.run, signal)
    }

    /// Looks until nothing of the tree is left, and kills what appeared meanwhile; gives the number that would not go.
    async fn confirm_end(&self) -> usize {
        let deadline = Instant::now() + GRACE;
        loop {
            let left = self.signal(Signal::SIGKILL);
            if left == 0 || Instant::now() >= deadline {
                return left;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.ended {
            self.signal(Signal::SIGKILL);
        }
    }
}

/// The memory file that carries the shell's directory back to us (see the top of this file).
struct StateFile(File);

impl StateFile {
    fn new() -> io::Result<Self> {
        let mut file = memory_file(b"")?;
        let path = proc_path(&file);
        // `>|` also writes under `set -o noclobber`; the path consists of digits and plain letters.
        writeln!(file, "unset BASH_ENV; trap -- 'builtin pwd -P >|{} 2>/dev/null' EXIT", path.display())?;
        Ok(Self(file))
    }

    /// The directory the shell ended in, if it could still say so.
    fn directory(&mut self) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt as _;
        let mut bytes = Vec::new();
        self.0.rewind().ok()?;
        self.0.read_to_end(&mut bytes).ok()?;
        let directory = bytes.strip_suffix(b"\n")?;
        directory.starts_with(b"/").then(|| PathBuf::from(OsString::from_vec(directory.to_vec())))
    }
}

fn memory_file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"hermes", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(content)?;
    Ok(file)
}

fn proc_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

fn how_it_ended(status: ExitStatus) -> FinishedHow {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => FinishedHow::Exited(code),
        (None, signal) => FinishedHow::Signalled(signal.unwrap_or(0)),
    }
}

fn unique_id() -> String {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    // RandomState is seeded by the operating system; the id only has to differ from every other live one.
    format!("{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish())
}

impl std::fmt::Debug for StateFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateFile")
    }
}
