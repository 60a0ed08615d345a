//! Landlock (landlock(7)): which files may be opened for what, decided by the kernel for this process and its children.
//!
//! Below our own root it is a second wall, should a mount be writable that must not be. Alone it is the wall: it can
//! only allow, not hide, so everything *around* a hidden path is allowed. The folders above a hidden path can then not
//! be listed, because a right to list holds for everything below.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, PathBeneath, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use nix::errno::Errno;
use nix::libc;

use super::mount_calls::open_plain;
use super::plan::{self, Plan};
use super::{Backing, Confinement, Network, View, failed, own_terminal, privileges, step, system_calls};

/// The newest version whose rights we know the meaning of; an older kernel enforces what it has of them.
const KNOWN: ABI = ABI::V9;

/// Devices that every program may use, and that reach nothing.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];

/// The version that this kernel enforces; `None` if it has no Landlock or has it switched off.
#[expect(unsafe_code, reason = "the library asks this only when it confines")]
pub(super) fn version() -> Option<u32> {
    const ASK_VERSION: u32 = 1;
    // SAFETY: with this flag the call reads no memory (landlock_create_ruleset(2)).
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, ASK_VERSION)
    };
    Errno::result(answer).ok().and_then(|version| version.try_into().ok())
}

/// The second wall, below a root of our own. A kernel without Landlock leaves it out.
pub(super) fn enter_below(plan: &Plan, network: Network) -> io::Result<()> {
    let writable: Vec<&Path> = plan.writable().chain(["/dev/shm", "/dev/pts"].map(Path::new)).collect();
    enforce(&[Path::new("/")], &writable, network, false).map(drop)
}

/// Confines this process by Landlock and a system call filter alone.
///
/// Fails where that cannot hold what `confinement` asks for, and on a kernel without Landlock.
pub(super) fn enter_alone(confinement: &Confinement) -> io::Result<()> {
    let cannot = |what: &str, path: &Path| {
        failed(
            format_args!("{what} {}", path.display()),
            "Landlock alone gives no view of its own; it needs namespaces",
        )
    };
    if let Some(root) = confinement.writable.iter().find(|root| root.backing != Backing::Direct) {
        return Err(cannot("keep changes apart of", &root.path));
    }
    let writable: Vec<&Path> = confinement.writable.iter().map(|root| root.path.as_path()).collect();
    let hidden = hidden(confinement);
    let inside = |path: &&PathBuf| writable.iter().any(|root| path.starts_with(root));
    if let Some(path) = hidden.iter().find(inside) {
        return Err(cannot("hide, inside of a writable folder,", path));
    }
    if let Some(path) = confinement.readable.iter().find(inside) {
        return Err(cannot("protect, inside of a writable folder,", path));
    }
    let mut readable = confinement.readable.clone();
    match &confinement.view {
        View::Everything => around(Path::new("/"), &hidden, &mut readable),
        View::System { .. } => {
            // Of links among them, what they lead to is among them too.
            let folders = plan::SYSTEM_FOLDERS.into_iter().chain(["/proc"]).map(Path::new);
            folders.filter(|folder| !folder.is_symlink()).for_each(|folder| around(folder, &hidden, &mut readable));
        }
    }
    readable.extend(fs::canonicalize("/etc/resolv.conf"));
    let readable: Vec<&Path> = readable.iter().map(PathBuf::as_path).collect();
    privileges::limit(&confinement.limits)?;
    privileges::drop_all()?;
    let network = confinement.network;
    let status = enforce(&readable, &writable, network, network != Network::Open);
    match status?.ruleset {
        RulesetStatus::NotEnforced => {
            return Err(failed("confine files", "the Landlock of this kernel cannot (before Linux 5.19)"));
        }
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => {}
    }
    system_calls::filter(confinement)
}

fn enforce(
    readable: &[&Path],
    writable: &[&Path],
    network: Network,
    without_tcp: bool,
) -> io::Result<RestrictionStatus> {
    // Version 9 adds the right to connect to sockets with a path. Where the network is open, those in sight are too.
    let known = if network == Network::Open { ABI::V8 } else { KNOWN };
    // What cannot be opened has no rule, so it cannot be read.
    let readable = readable.iter().filter_map(|path| open_plain(path).ok());
    let open = |path: &&Path| open_plain(path).map_err(step(format_args!("show {}", path.display())));
    let writable = writable.iter().map(open).collect::<io::Result<Vec<_>>>()?.into_iter();
    let rules = move || -> Result<RestrictionStatus, RulesetError> {
        let mut rules = Ruleset::default().handle_access(AccessFs::from_all(known))?.scope(Scope::from_all(KNOWN))?;
        if without_tcp {
            rules = rules.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
        }
        let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        rules
            .create()?
            .add_rules(
                readable.map(|handle| Ok::<_, RulesetError>(PathBeneath::new(handle, AccessFs::from_read(known)))),
            )?
            .add_rules(
                writable.map(|handle| Ok::<_, RulesetError>(PathBeneath::new(handle, AccessFs::from_all(known)))),
            )?
            .add_rules(path_beneath_rules(DEVICES, device))?
            .add_rules(path_beneath_rules(own_terminal(), device))?
            .restrict_self()
    };
    rules().map_err(io::Error::other).map_err(step("add the Landlock rules"))
}

/// What must not be read, for Landlock alone: also what a view of its own would replace.
fn hidden(confinement: &Confinement) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = plan::hidden(confinement).collect();
    // Root may read disks through their devices, capabilities or not.
    let replaced = ["/dev"].into_iter().chain(plan::RUNTIME_FOLDERS);
    let temporary = if confinement.private_tmp { &plan::TEMPORARY_FOLDERS[..] } else { &[] };
    hidden.extend(replaced.chain(temporary.iter().copied()).filter_map(|path| fs::canonicalize(path).ok()));
    hidden
}

/// Adds to `allowed` as few paths as cover everything at and below `path` without what is hidden.
fn around(path: &Path, hidden: &[PathBuf], allowed: &mut Vec<PathBuf>) {
    if hidden.iter().any(|hidden| path == hidden) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        return allowed.push(path.to_path_buf());
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        // A link needs no rule: what it leads to decides.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            around(&entry.path(), hidden, allowed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_around_what_is_hidden_is_allowed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["a/secret", "a/plain", "b/c"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        std::os::unix::fs::symlink(path("a/secret"), path("link")).unwrap();
        let mut allowed = Vec::new();
        around(folder.path(), &[path("a/secret")], &mut allowed);
        allowed.sort();
        assert_eq!(allowed, [path("a/plain"), path("b")]);
    }
}
