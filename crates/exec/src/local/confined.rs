//! How the commands of a local environment are confined (`terminal.sandbox`).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::CancellationToken;
use tokio_util::sync::DropGuard;

use crate::sandbox::proxy::{self, ConnectPolicy};
use crate::sandbox::{Confinement, Level, Limits, Mechanism, Network, Preflight, View, WritableRoot};

/// How strictly commands are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Everything can be read but secrets; the workspace can be changed.
    Workspace,
    /// Only programs, libraries and the workspace are there.
    Strict,
}

/// What commands may reach over the network.
#[derive(Clone)]
pub enum Reach {
    /// Everything.
    Open,
    /// Nothing.
    Off,
    /// What a policy allows, through a proxy of ours.
    Through(Arc<dyn ConnectPolicy>),
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "Open",
            Self::Off => "Off",
            Self::Through(_) => "Through",
        })
    }
}

/// What is wanted of a sandbox.
#[derive(Clone, Debug)]
pub struct SandboxWish {
    /// How strict.
    pub strictness: Strictness,
    /// Folders that may be changed besides the one in which the session starts.
    pub writable: Vec<PathBuf>,
    /// Files and folders that must not be seen; secrets are not known otherwise.
    pub hidden: Vec<PathBuf>,
    /// The network.
    pub reach: Reach,
}

impl SandboxWish {
    /// What grants this by `mechanism` to a command that works in `folders`. A writable path is taken as it leads now, and
    /// left out if it is not there. `variables` say where tool chains are.
    pub fn confinement(
        &self,
        mechanism: Mechanism,
        folders: &[&Path],
        home: &Path,
        variables: &BTreeMap<OsString, OsString>,
    ) -> Confinement {
        let mut confinement = Confinement::new(mechanism);
        confinement.network = match &self.reach {
            Reach::Open => Network::Open,
            Reach::Off => Network::Off,
            Reach::Through(_) => Network::Proxied,
        };
        let real = |path: &PathBuf| std::fs::canonicalize(path).ok();
        let mut writable: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
        writable.extend(self.writable.iter().filter_map(real));
        writable.sort();
        writable.dedup();
        confinement.writable = writable.into_iter().map(WritableRoot::direct).collect();
        // As they were named: one that is not there yet is hidden as soon as it is.
        confinement.hidden.clone_from(&self.hidden);
        if self.strictness == Strictness::Strict {
            confinement.view = View::System { home: real(&home.to_owned()).unwrap_or_else(|| home.to_owned()) };
            confinement.readable = tool_chains(variables, home);
            confinement.limits = Limits::STRICT;
        }
        confinement
    }
}

/// The sandbox of an environment: what was wanted, by what works here.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    pub confinement: Confinement,
    pub level: Level,
    reach: Reach,
}

impl Sandbox {
    /// The strongest sandbox that `preflight` found, for a session that works in `workspace`. A wish that cannot be
    /// granted is an error and not a weaker sandbox.
    pub(crate) fn new(
        wish: SandboxWish,
        workspace: &Path,
        scratch: &Path,
        home: &Path,
        variables: &BTreeMap<OsString, OsString>,
        preflight: &Preflight,
    ) -> Result<Self, String> {
        let mechanism = preflight.best();
        if mechanism == Mechanism::None {
            return Err(format!("no sandbox works on this machine (hermes sandbox check):\n{preflight}"));
        }
        if matches!(wish.reach, Reach::Through(_)) && mechanism != Mechanism::Namespaces {
            return Err(
                "chosen hosts can be let through only with namespaces of our own, which do not work on this machine \
                 (hermes sandbox check)"
                    .into(),
            );
        }
        let confinement = wish.confinement(mechanism, &[workspace, scratch], home, variables);
        let level = Level::of(&confinement, preflight);
        Ok(Self { confinement, level, reach: wish.reach })
    }

    /// The door through which a command's listener comes out, and who serves it until the command is gone.
    pub(crate) fn open_door(&self) -> io::Result<Option<(UnixStream, DropGuard)>> {
        let Reach::Through(policy) = &self.reach else { return Ok(None) };
        let (ours, theirs) = UnixStream::pair()?;
        let (policy, cancel) = (Arc::clone(policy), CancellationToken::new());
        let guard = cancel.clone().drop_guard();
        tokio::spawn(async move {
            let received = tokio::task::spawn_blocking(move || proxy::receive_listener(ours.as_fd())).await;
            if let Ok(Ok(listener)) = received {
                // Without it, connections fail inside; the command says so.
                let _ = proxy::serve(listener, policy, cancel).await;
            }
        });
        Ok(Some((theirs, guard)))
    }
}

/// Folders in which tool chains live that the user has installed for themselves: those of `PATH` and of the variables
/// that name them, where they are below the home folder.
fn tool_chains(variables: &BTreeMap<OsString, OsString>, home: &Path) -> Vec<PathBuf> {
    const NAMED: &[&str] = &[
        "CARGO_HOME",
        "RUSTUP_HOME",
        "GOROOT",
        "GOPATH",
        "JAVA_HOME",
        "NVM_DIR",
        "PYENV_ROOT",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "RBENV_ROOT",
        "GEM_HOME",
        "DOTNET_ROOT",
        "DENO_DIR",
        "BUN_INSTALL",
        "PNPM_HOME",
    ];
    let value = |name: &str| variables.get(OsStr::new(name)).map(PathBuf::from);
    let path = variables.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(NAMED.iter().filter_map(|name| value(name)));
    folders.extend([home.join(".cargo"), home.join(".rustup")]);
    let mut real: Vec<PathBuf> = folders
        .into_iter()
        .filter(|folder| folder.is_absolute())
        .filter_map(|folder| std::fs::canonicalize(folder).ok())
        // The home itself, or all of the machine, is no tool chain.
        .filter(|folder| folder.is_dir() && !home.starts_with(folder))
        .collect();
    real.sort();
    real.dedup();
    real
}
