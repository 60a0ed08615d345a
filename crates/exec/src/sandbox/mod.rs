//! The operating system's sandbox for commands on this machine (`terminal.sandbox: workspace | strict`).
//!
//! Judging a command by its text only decides how much to ask; this is the boundary that holds when the judgement was
//! wrong. A [`Confinement`] is plain data that says what a command may see, change and reach. A small forked process
//! that is about to exec the command calls [`Confinement::enter`]; when that returns, the process *is* confined, and
//! nothing that it starts can get out again.
//!
//! What this module refuses to do: decide what should be confined, look at the environment or the configuration, or
//! claim more than it showed. [`preflight`] tries every [`Mechanism`] for real, and [`Level`] says in words what holds.
//!
//! The one tricky idea: every file tree that the command may see is taken as a *detached mount* while the old root is
//! still there (`open_tree(2)`), through a path walk that follows no links; then the root is exchanged and the trees are
//! put in their places. No path of the old root is needed afterwards, and a link that an earlier command left in the
//! workspace leads nowhere.
//!
//! Start reading at [`Confinement`]; `plan` turns it into layers of a file tree, `namespaces` runs the processes of the
//! strongest mechanism, `mounts` builds its root.

mod bubblewrap;
mod landlock;
mod launch;
mod level;
mod mount_calls;
mod mounts;
mod namespaces;
mod network;
mod plan;
mod preflight;
mod privileges;
pub mod proxy;
pub mod refusal;
pub mod seatbelt;
pub(crate) mod system_calls;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use launch::launch;
pub use level::Level;
pub(crate) use network::PROXY_NAMES;
pub use preflight::{Preflight, Probe, preflight};

/// How a command is confined, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// User, mount, PID, IPC, host name and network namespaces of our own, with Landlock and a system call filter on top.
    Namespaces,
    /// The program `bwrap`, with our system call filter. For machines where only it may make namespaces.
    Bubblewrap,
    /// Landlock and a system call filter: no view of its own, so processes stay visible and overlays are impossible.
    Landlock,
    /// `sandbox-exec` of macOS.
    Seatbelt,
    /// Nothing is confined.
    None,
}

impl Mechanism {
    /// Its name, as people and lists have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bwrap",
            Self::Landlock => "landlock",
            Self::Seatbelt => "seatbelt",
            Self::None => "none",
        }
    }
}

/// What a confined process can reach over sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Everything that the machine reaches.
    Open,
    /// Nothing outside; with namespaces there is a loopback device of its own, so a test server works.
    Off,
    /// As `Off`, with one way out: a proxy of ours that asks a policy (see [`proxy`]).
    Proxied,
}

/// What of the machine is visible, read-only, before anything else is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// Every file of the machine that is not hidden (`terminal.sandbox: workspace`).
    Everything,
    /// Only programs, libraries and `/etc` without its secrets (`terminal.sandbox: strict`). The home folder is there
    /// and writable, but empty and forgotten when the command ends.
    System {
        /// The home folder.
        home: PathBuf,
    },
}

/// A file tree (or file) that the command may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritableRoot {
    /// Where the command finds it.
    pub path: PathBuf,
    /// Where the changes go.
    pub backing: Backing,
}

impl WritableRoot {
    /// A folder that is changed in place.
    pub fn direct(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), backing: Backing::Direct }
    }
}

/// Where the changes below a writable root go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// Into the folder itself.
    Direct,
    /// Into `upper`, while the folder stays as it is. What is mounted below the folder is not seen.
    Overlay {
        /// Gets what was changed, in the format of overlayfs with `userxattr`. Not below the folder itself.
        upper: PathBuf,
        /// An empty folder on the mount of `upper` for the kernel's own use. It leaves a folder without any permission
        /// there, which has to be given some before it can be removed.
        work: PathBuf,
    },
    /// Into another folder, which the command sees in this place.
    Source(PathBuf),
}

/// Limits for each process of the command (`setrlimit(2)`); what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processes and threads of this user; with namespaces only those inside count. The kernel does not apply it to root.
    pub processes: Option<u64>,
    /// Address space, in bytes.
    pub memory: Option<u64>,
    /// Size of a file that is written, in bytes.
    pub file_size: Option<u64>,
}

impl Limits {
    /// For `terminal.sandbox: strict`. Memory is not among them: several run-times reserve far more address space than
    /// they use.
    pub const STRICT: Self = Self { processes: Some(2_048), memory: None, file_size: Some(16 << 30) };
}

/// Everything that confines one command.
///
/// All paths are absolute and free of links (as [`std::fs::canonicalize`] gives them when the user named them): one
/// that leads through a link is refused, because an earlier command may have put it there. Hidden paths are an
/// exception, they are followed to what they lead to.
///
/// Where lists overlap, the deepest entry decides; for one and the same path hidden beats writable beats readable. So a
/// readable folder inside of a writable one is protected, and a writable one inside of a hidden one can be reached.
///
/// A folder on the way from a writable root to a protected or hidden path inside of it can be neither renamed nor
/// removed (or the path would be free for the next command), and files cannot be moved across its border in one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// What [`Preflight::best`] found.
    pub mechanism: Mechanism,
    /// What is visible to begin with.
    pub view: View,
    /// What may be changed.
    pub writable: Vec<WritableRoot>,
    /// What else is visible, read-only: tool chains in the view `System`, protected parts of a writable root.
    pub readable: Vec<PathBuf>,
    /// Files and folders that seem empty and cannot be read; those that do not exist are skipped. Nothing is a secret unless
    /// it is named here, not even `/etc/shadow`: whoever confines knows where secrets are.
    pub hidden: Vec<PathBuf>,
    /// Whether `/tmp` and `/var/tmp` are the command's own. Listed paths below them stay visible. Without it they are
    /// as the view and the lists say.
    pub private_tmp: bool,
    /// What can be reached over sockets.
    pub network: Network,
    /// Limits per process.
    pub limits: Limits,
}

/// What the confined process needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entered {
    /// Variables to set for the command: the proxy's address under its usual names. Empty unless `Network::Proxied`.
    pub variables: Vec<(OsString, OsString)>,
}

impl Confinement {
    /// The confinement of `mechanism` that shows everything but what is private to other programs, and lets nothing
    /// be changed and nothing be reached. Set the public fields from here.
    pub fn new(mechanism: Mechanism) -> Self {
        Self {
            mechanism,
            view: View::Everything,
            writable: Vec::new(),
            readable: Vec::new(),
            hidden: Vec::new(),
            private_tmp: true,
            network: Network::Off,
            limits: Limits::default(),
        }
    }

    /// Confines the calling process; exec must follow.
    ///
    /// The process must have one thread only. With [`Mechanism::Namespaces`] the one that *returns* is not the one that
    /// called but its grandchild: the caller waits inside of this function and ends exactly as the command ends (same
    /// code, same signal), as soon as the command itself ends; what the command left running lives on, below an init of
    /// its own that stays in the caller's session and process group. If the caller is killed before, everything inside
    /// is killed. Signals for the command go to its process group or session: the waiting caller passes none on.
    /// Descriptors without close-on-exec are inherited.
    ///
    /// `listener_to` is a UNIX stream socket; with [`Network::Proxied`] it gets one message, a single byte with the
    /// descriptor of a listening TCP socket, for [`proxy::receive_listener`]. Whoever receives must close its own copy of
    /// this end, or it waits for ever when confining fails.
    ///
    /// Errors name the step that failed, as `sandbox: cannot …: …`. Nothing of the command has run then, and the
    /// process may be confined in part: it has to end.
    pub fn enter(&self, listener_to: Option<BorrowedFd<'_>>) -> io::Result<Entered> {
        if self.network == Network::Proxied && self.mechanism != Mechanism::Namespaces {
            return Err(failed("let only the proxy through", "it needs namespaces of our own"));
        }
        match self.mechanism {
            Mechanism::Namespaces => namespaces::enter(self, listener_to),
            Mechanism::Bubblewrap => bubblewrap::prepare(self).map(|()| Entered::default()),
            Mechanism::Landlock => landlock::enter_alone(self).map(|()| Entered::default()),
            Mechanism::Seatbelt | Mechanism::None => {
                privileges::limit(&self.limits)?;
                Ok(Entered::default())
            }
        }
    }

    /// The program and arguments that run `program` with `arguments` under this confinement, after [`Self::enter`].
    ///
    /// They stay what they are, except that bubblewrap and macOS confine by a program in front. Fails where that program
    /// cannot do what is asked, for the first as [`Self::enter`] does.
    pub fn command(&self, program: &OsStr, arguments: &[OsString]) -> io::Result<(OsString, Vec<OsString>)> {
        let (wrapper, mut all) = match self.mechanism {
            Mechanism::Bubblewrap => ("bwrap", bubblewrap::arguments(self)?),
            Mechanism::Seatbelt => ("/usr/bin/sandbox-exec", vec!["-p".into(), seatbelt::profile(self)?.into()]),
            Mechanism::Namespaces | Mechanism::Landlock | Mechanism::None => {
                return Ok((program.to_owned(), arguments.to_vec()));
            }
        };
        all.push(program.to_owned());
        all.extend_from_slice(arguments);
        Ok((wrapper.into(), all))
    }
}

/// `sandbox: cannot STEP: why`, with the kind of error that `why` has.
fn step(step: impl std::fmt::Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("sandbox: cannot {step}: {error}"))
}

/// A step that failed for a reason of ours.
fn failed(step: impl std::fmt::Display, why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("sandbox: cannot {step}: {why}"))
}

/// The terminal that this process has been given, if it has one. Asked of `/proc`, because the standard library's streams
/// have locks, and another thread may have held one when we were forked.
fn own_terminal() -> Option<PathBuf> {
    let stream = |number: i32| std::fs::read_link(format!("/proc/self/fd/{number}")).ok();
    (0..3)
        .filter_map(stream)
        .find(|path| path.starts_with("/dev/pts") || path.to_string_lossy().starts_with("/dev/tty"))
}
