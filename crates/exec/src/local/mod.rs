//! Running on this machine, as this user.
//!
//! One fresh bash a command, started with `bash -c COMMAND` and nothing added to the command. What a session carries from
//! one shell to the next is in [`shell`]; who ends what a command leaves behind is in [`crate::supervisor`].

mod behaviour;
mod committed;
mod confined;
pub(crate) mod place;
mod process;
mod rehearse;
mod run;
mod shell;
mod terminal;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use hermes_core::{
    CancellationToken, Capabilities, Command, Environment, EnvironmentError, FileError, FileStat, Finished,
    FinishedHow, Layout, LineFeed, Process, Rehearsed, Start, Work, WorkError, WorkLimits,
};
use nix::sys::memfd::{MFdFlags, memfd_create};
use tokio_util::sync::DropGuard;

use crate::plain::Reading;
use crate::sandbox::{Confinement, Preflight};
use crate::sudo::{self, SudoSetup};
use crate::supervisor::protocol::{INHERITED, Job, Request, Role};
use crate::supervisor::{ForkServer, Supervised, Wiring, group};
use crate::{Temporary, environment_variables, files, isolated};

pub use committed::{CommittedRehearsal, recover_commits};
pub use confined::{Reach, SandboxWish, Strictness};
pub use rehearse::RehearsalSetup;

use confined::Sandbox;
use process::LocalProcess;
use rehearse::Rehearsals;
pub(crate) use shell::quoted;
use shell::{Options, Report, ShellState};

/// The variable that marks every process of a command: how [`crate::processes::reap`] finds what a crash left.
pub(crate) const MARKER: &str = "HERMES_RUN";
/// How long what a command left running may take to end after SIGTERM before it gets SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// Linux takes at most 128 KiB in one argument (`MAX_ARG_STRLEN`, execve(2)); longer commands go through a file.
const LONGEST_ARGUMENT: usize = 120 * 1024;

/// The local backend.
#[derive(Debug)]
pub struct LocalEnvironment {
    /// Marks our processes; unique per environment.
    id: String,
    runs: AtomicU64,
    server: Arc<ForkServer>,
    shell: PathBuf,
    home: PathBuf,
    scratch: Temporary,
    reading: Reading,
    /// Where control groups for commands can be made.
    groups: Option<PathBuf>,
    /// The options of a fresh shell, once they are known.
    fresh: OnceLock<Option<Options>>,
    sandbox: Option<Sandbox>,
    rehearsals: Option<Rehearsals>,
    /// Asked by the sudo of our commands.
    sudo: Option<sudo::Server>,
    /// What the session began with.
    first: ShellState,
    session: Mutex<Arc<ShellState>>,
    /// Commands that have ended and left something running, such as `server &`.
    leftovers: Mutex<Vec<Supervised>>,
    /// Processes in the background.
    spawned: Mutex<Vec<Weak<LocalProcess>>>,
}

impl LocalEnvironment {
    /// What it can do, sandbox apart.
    pub const CAPABILITIES: Capabilities = Capabilities {
        background: true,
        terminal: true,
        input: true,
        file_transfer: false,
        snapshot: false,
        network_policy: false,
    };

    /// An environment whose session starts in `cwd`, with the home `home` and the allow-listed part of `variables`
    /// (plus the names in `granted`).
    ///
    /// Fails if `cwd` is no directory, no temporary folder can be made, or this process cannot be forked.
    pub fn new(
        cwd: &Path,
        home: &Path,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        granted: &[String],
    ) -> Result<Self, EnvironmentError> {
        let server = ForkServer::start();
        let server =
            server.map_err(|source| EnvironmentError::CannotStart { program: "a supervisor".into(), source })?;
        Self::with_server(Arc::new(server), cwd, home, variables, granted)
    }

    /// The same with a fork server that others use too.
    pub fn with_server(
        server: Arc<ForkServer>,
        cwd: &Path,
        home: &Path,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        granted: &[String],
    ) -> Result<Self, EnvironmentError> {
        let cwd = std::fs::canonicalize(cwd)
            .ok()
            .filter(|path| path.is_dir())
            .ok_or_else(|| EnvironmentError::NoSuchDirectory(cwd.to_path_buf()))?;
        let variables: BTreeMap<_, _> = environment_variables::for_child(variables, granted).into_iter().collect();
        let first = ShellState::new(cwd, variables);
        let scratch = Temporary::new(&std::env::temp_dir(), "").map_err(EnvironmentError::NoScratch)?;
        let variable = |name: &str| first.variables.get(OsStr::new(name)).and_then(|value| value.to_str());
        Ok(Self {
            id: unique_id(),
            runs: AtomicU64::new(0),
            server,
            shell: find_bash(variable("PATH").unwrap_or_default()),
            home: home.to_path_buf(),
            scratch,
            reading: Reading::of_locale(variable),
            groups: group::parent(),
            fresh: OnceLock::new(),
            sandbox: None,
            rehearsals: None,
            sudo: None,
            session: Mutex::new(Arc::new(first.clone())),
            first,
            leftovers: Mutex::default(),
            spawned: Mutex::default(),
        })
    }

    /// Confines its commands. An error says why that is not possible as it was wished for.
    pub fn confined(mut self, wish: SandboxWish, preflight: &Preflight) -> Result<Self, String> {
        let scratch = std::fs::canonicalize(self.scratch.path()).map_err(|error| error.to_string())?;
        let (workspace, variables) = (&self.first.cwd, &self.first.variables);
        self.sandbox = Some(Sandbox::new(wish, workspace, &scratch, &self.home, variables, preflight)?);
        Ok(self)
    }

    /// Reads the user's own shell files, so that what they define is there from the first command on. Each gets no input
    /// and `limit`; answers a sentence for each that did not work. The session goes on without it. For an environment that
    /// is not confined yet.
    pub async fn read_init_files(&mut self, files: &[PathBuf], limit: Duration) -> Vec<String> {
        let mut said = Vec::new();
        for file in files {
            let script = format!(". {}", shell::quoted_path(file));
            let command = Command::new(script, limit, 4_000);
            let why = match self.run(command, &CancellationToken::new()).await {
                Ok(finished) => match finished.how {
                    FinishedHow::Exited(0) => continue,
                    FinishedHow::TimedOut => format!("it did not end within {} s", limit.as_secs()),
                    how => {
                        let last = finished.output.trim_end().lines().last().unwrap_or_default().to_owned();
                        format!("exit {}: {last}", how.exit_code())
                    }
                },
                Err(error) => error.to_string(),
            };
            said.push(format!("{} was not read into the shell: {why}", file.display()));
        }
        // They may have gone elsewhere; the session begins where it begins. What they define is the user's own and part
        // of that beginning.
        self.change_session(|session| session.cwd.clone_from(&self.first.cwd));
        self.first = (*self.session()).clone();
        said
    }

    /// Lets commands be rehearsed, where the machine can.
    #[must_use]
    pub fn with_rehearsals(mut self, setup: RehearsalSetup) -> Self {
        self.rehearsals = Some(Rehearsals::new(setup));
        self
    }

    /// Lets `sudo` in its commands ask for the password, where there is a sudo and we are not root. For an environment in
    /// which nothing has run yet but what belongs to the session's beginning.
    ///
    /// Fails if nobody can listen for it, for example because the path of the temporary folder is too long for a socket.
    pub fn let_sudo_ask(&mut self, setup: SudoSetup) -> io::Result<()> {
        let path = self.first.variables.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        let Some(program) = sudo::find(&path).filter(|_| !nix::unistd::geteuid().is_root()) else { return Ok(()) };
        let server = sudo::Server::start(self.scratch.path().join("sudo"), &program, &self.id, setup)?;
        self.first.variables.extend(server.variables(&path));
        self.session = Mutex::new(Arc::new(self.first.clone()));
        self.sudo = Some(server);
        Ok(())
    }

    /// Ends the process that starts its commands when nothing has run for `idle` and nothing runs; the next command finds
    /// the session as it was. Needs a running runtime.
    #[must_use]
    pub fn resting_after(self, idle: Duration) -> Self {
        let server = Arc::downgrade(&self.server);
        tokio::spawn(async move {
            let mut wait = idle;
            loop {
                tokio::time::sleep(wait).await;
                let Some(server) = server.upgrade() else { return };
                wait = server.rest(idle);
            }
        });
        self
    }

    /// The mark of everything that belongs to one run.
    fn mark(&self, number: u64) -> String {
        // The point ends the number: the mark of run 1 is not the beginning of that of run 10.
        format!("{}-{number}.", self.id)
    }

    fn session(&self) -> Arc<ShellState> {
        Arc::clone(&self.session.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The session as it began, where it is now.
    fn outside(&self) -> Arc<ShellState> {
        let mut outside = self.first.clone();
        outside.cwd.clone_from(&self.session().cwd);
        Arc::new(outside)
    }

    fn change_session(&self, change: impl FnOnce(&mut ShellState)) {
        change(Arc::make_mut(&mut self.session.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    /// Where a command is to run. If the session's directory has gone, the session moves to what is left of its path,
    /// and says so once.
    fn directory(&self, asked: Option<&Path>) -> Result<PathBuf, EnvironmentError> {
        if let Some(asked) = asked {
            let there = asked.is_dir().then(|| asked.to_path_buf());
            return there.ok_or_else(|| EnvironmentError::NoSuchDirectory(asked.to_path_buf()));
        }
        let cwd = self.cwd();
        if cwd.is_dir() {
            return Ok(cwd);
        }
        let now = cwd.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_path_buf();
        self.change_session(|session| session.cwd.clone_from(&now));
        Err(EnvironmentError::DirectoryGone { gone: cwd, now })
    }

    /// What a supervisor needs to run `script`, but for the ends of its output.
    fn prepare(
        &self,
        script: &str,
        cwd: &Path,
        terminal: bool,
        watch: &[String],
        unconfined: bool,
    ) -> io::Result<Prepared> {
        let sandbox = self.sandbox.as_ref().filter(|_| !unconfined);
        // What confined commands left is theirs: outside of the wall a command finds the session as it began.
        let began = if self.sandbox.is_some() && unconfined { self.outside() } else { self.session() };
        let confinement = sandbox.map(|sandbox| sandbox.confinement.clone());
        let mut prepared = self.prepare_within(began, script, cwd, terminal, watch, confinement)?;
        if let Some((door, guard)) = sandbox.map_or(Ok(None), Sandbox::open_door)? {
            prepared.wiring.add(Role::Door, door);
            prepared.proxy = Some(guard);
        }
        Ok(prepared)
    }

    fn prepare_within(
        &self,
        began: Arc<ShellState>,
        script: &str,
        cwd: &Path,
        terminal: bool,
        watch: &[String],
        confinement: Option<Confinement>,
    ) -> io::Result<Prepared> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let mut report = memory_file(b"")?;
        // Through the wall of a sandbox nobody sees our descriptors, so the command gets its own.
        let path_of = |file: &File, number: i32| match &confinement {
            Some(_) => PathBuf::from(format!("/proc/self/fd/{number}")),
            None => proc_path(file),
        };
        let report_path = path_of(&report, INHERITED[0]);
        report.write_all(&began.start_file(&report_path))?;
        let long = (script.len() > LONGEST_ARGUMENT).then(|| memory_file(script.as_bytes())).transpose()?;
        let mut arguments = vec![b"bash".to_vec()];
        match &long {
            Some(file) => arguments.push(path_of(file, INHERITED[1]).into_os_string().into_vec()),
            None => arguments.extend([b"-c".to_vec(), script.as_bytes().to_vec()]),
        }
        let terminal_type = (terminal && !began.variables.contains_key(OsStr::new("TERM")))
            .then(|| (OsStr::new("TERM"), OsStr::new("xterm-256color")));
        let mark = self.mark(number);
        let ours = [
            (OsStr::new("PWD"), cwd.as_os_str()),
            (OsStr::new("BASH_ENV"), report_path.as_os_str()),
            (OsStr::new(MARKER), OsStr::new(&mark)),
        ];
        let theirs = began.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let theirs = theirs.filter(|(name, _)| !ours.iter().any(|(our, _)| our == name));
        let variables = theirs.chain(ours).chain(terminal_type);
        let job = Job {
            program: self.shell.as_os_str().as_bytes().to_vec(),
            arguments,
            variables: variables.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect(),
            directory: cwd.as_os_str().as_bytes().to_vec(),
            terminal,
            watch: watch.to_vec(),
            confinement,
            group: self.groups.as_ref().map(|parent| parent.join(format!("{}{mark}", group::PREFIX))),
        };
        let mut wiring = Wiring::default();
        if job.confinement.is_some() {
            wiring.add(Role::First, report.try_clone()?);
            if let Some(long) = &long {
                wiring.add(Role::Second, long.try_clone()?);
            }
        }
        Ok(Prepared { number, job, wiring, began, report, long, proxy: None })
    }

    fn remember_process(&self, process: &Arc<LocalProcess>) {
        let mut spawned = self.spawned.lock().unwrap_or_else(PoisonError::into_inner);
        spawned.retain(|process| process.strong_count() > 0);
        spawned.push(Arc::downgrade(process));
    }

    fn cannot_start(&self, source: io::Error) -> EnvironmentError {
        EnvironmentError::CannotStart { program: self.shell.display().to_string(), source }
    }
}

/// A command that is about to be handed over.
struct Prepared {
    /// Which command of this environment it is.
    number: u64,
    job: Job,
    wiring: Wiring,
    /// The session as the command finds it.
    began: Arc<ShellState>,
    /// What bash reads first and writes last.
    report: File,
    /// The command itself when it was too long for an argument; bash reads it through our descriptor.
    long: Option<File>,
    /// Whoever serves its way to the network.
    proxy: Option<DropGuard>,
}

#[async_trait]
impl Environment for LocalEnvironment {
    fn backend(&self) -> &'static str {
        "local"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { network_policy: self.sandbox.is_some(), ..Self::CAPABILITIES }
    }

    fn cwd(&self) -> PathBuf {
        self.session().cwd.clone()
    }

    fn home(&self) -> &Path {
        &self.home
    }

    fn fingerprint(&self) -> String {
        // Values may be secrets: only a number made of them leaves this place.
        let mut hasher = DefaultHasher::new();
        self.session().variables.hash(&mut hasher);
        self.carried().hash(&mut hasher);
        format!("{:?}", self.sandbox).hash(&mut hasher);
        format!("{} {} {:x}", self.backend(), self.home.display(), hasher.finish())
    }

    fn carried(&self) -> String {
        self.session().carried(&self.first)
    }

    fn confinement(&self) -> Vec<String> {
        let Some(Sandbox { confinement, level, .. }) = &self.sandbox else { return Vec::new() };
        let lines = [&level.files, &level.processes, &level.network, &level.system_calls];
        std::iter::once(format!("by {}", confinement.mechanism.name())).chain(lines.into_iter().cloned()).collect()
    }

    fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    fn shares_our_files(&self) -> bool {
        true
    }

    async fn run(&self, command: Command, cancel: &CancellationToken) -> Result<Finished, EnvironmentError> {
        self.run_to_end(command, cancel).await
    }

    async fn can_rehearse(&self) -> Result<(), String> {
        let Some(rehearsals) = &self.rehearsals else { return Err("rehearsals are not set up".into()) };
        rehearsals.mechanism().await.map(drop)
    }

    async fn rehearse(&self, command: Command, cancel: &CancellationToken) -> Result<Rehearsed, EnvironmentError> {
        self.rehearse_command(command, cancel).await
    }

    async fn spawn(&self, start: Start) -> Result<Arc<dyn Process>, EnvironmentError> {
        let process = Arc::new(self.spawn_process(start).await?);
        self.remember_process(&process);
        Ok(process)
    }

    async fn isolated(&self, work: Work, input: &[u8], limits: WorkLimits) -> Result<Vec<u8>, WorkError> {
        isolated::run(&self.server, work, input, limits).await
    }

    async fn stat(&self, path: &Path) -> Result<FileStat, FileError> {
        files::blocking(path, files::stat).await
    }

    async fn layout(&self, path: &Path, feed: LineFeed) -> Result<Layout, FileError> {
        files::blocking(path, move |path| files::layout(path, feed)).await
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

    async fn create(&self, path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>, FileError> {
        let bytes = bytes.to_vec();
        let create = if path.starts_with(self.scratch.path()) { files::create_private } else { files::create };
        files::blocking(path, move |path| create(path, &bytes)).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<Vec<PathBuf>, FileError> {
        let to = to.to_path_buf();
        files::blocking(from, move |from| files::rename(from, &to)).await
    }

    async fn remove(&self, path: &Path) -> Result<(), FileError> {
        files::blocking(path, files::remove).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<String>, FileError> {
        files::blocking(path, files::list).await
    }

    async fn close(&self) {
        let leftovers = std::mem::take(&mut *self.leftovers.lock().unwrap_or_else(PoisonError::into_inner));
        let spawned = std::mem::take(&mut *self.spawned.lock().unwrap_or_else(PoisonError::into_inner));
        let spawned: Vec<_> = spawned.iter().filter_map(Weak::upgrade).collect();
        let ends = leftovers.iter().chain(spawned.iter().map(|process| process.supervised()));
        join_all(ends.map(|supervised| end(&self.server, supervised, GRACE))).await;
    }
}

/// Ends a command and everything that it started; answers how many processes would not go.
async fn end(server: &ForkServer, supervised: &Supervised, grace: Duration) -> usize {
    let milliseconds = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
    let _ = supervised.request(&Request::End { grace: milliseconds }, &Wiring::default());
    let _ = supervised.until(|known| known.gone.is_some()).await;
    if supervised.was_killed() {
        server.sweep();
    }
    supervised.look().gone.unwrap_or(0) as usize
}

fn memory_file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"hermes", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(content)?;
    Ok(file)
}

/// How others reach a file of ours that has no name.
fn proc_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

/// The first bash on `path`, else where systems keep it.
fn find_bash(path: &str) -> PathBuf {
    let folders =
        path.split(':').filter(|folder| folder.starts_with('/')).chain(["/usr/bin", "/bin", "/usr/local/bin"]);
    let candidates = folders.map(|folder| Path::new(folder).join("bash"));
    candidates.into_iter().find(|file| file.is_file()).unwrap_or_else(|| "/bin/bash".into())
}

/// Our number, the PID namespace in which it is ours, and something that no other environment has.
fn unique_id() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    // RandomState is seeded by the operating system; the id only has to differ from every other live one.
    format!("{}-{}-{:016x}", std::process::id(), pid_namespace(), RandomState::new().build_hasher().finish())
}

/// The number of our PID namespace; 0 where the system does not say.
pub(crate) fn pid_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}

/// What a shell that has ended left in `report`.
fn read_report(report: &mut File) -> Option<Report> {
    use std::io::{Read as _, Seek as _};
    let mut bytes = Vec::new();
    report.rewind().ok()?;
    report.read_to_end(&mut bytes).ok()?;
    Report::read(&bytes)
}
