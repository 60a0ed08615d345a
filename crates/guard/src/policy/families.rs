//! The approval keys of the original, which named a family and allowed all of it (spec exec §11.5).

use crate::finding::Effect;

/// What an old key covers: an effect by any program on any target. Better written anew as a scope.
pub fn broad(key: &str) -> Option<&'static [Effect]> {
    use Effect::{
        CannotTell, CloudResource, Database, Delete, Disk, ExecuteRemote, Overwrite, Package, Permission, Persistence,
        Privilege, ProcessKill, Service, Truncate, VersionControl,
    };
    const KEYS: &[(&str, &[Effect])] = &[
        ("delete in root path", &[Delete]),
        ("recursive delete", &[Delete]),
        ("recursive delete (long flag)", &[Delete]),
        ("Windows cmd destructive delete", &[Delete]),
        ("Windows PowerShell destructive delete", &[Delete]),
        ("PowerShell encoded command execution", &[CannotTell]),
        ("world/other-writable permissions", &[Permission]),
        ("recursive world/other-writable (long flag)", &[Permission]),
        ("recursive chown to root", &[Permission]),
        ("recursive chown to root (long flag)", &[Permission]),
        ("format filesystem", &[Disk]),
        ("disk copy", &[Disk, Overwrite]),
        ("write to block device", &[Disk]),
        ("SQL DROP", &[Database]),
        ("SQL DELETE without WHERE", &[Database]),
        ("SQL TRUNCATE", &[Database]),
        ("overwrite system config", &[Overwrite, Persistence, Truncate]),
        ("stop/restart system service", &[Service]),
        ("kill all processes", &[ProcessKill]),
        ("force kill processes", &[ProcessKill]),
        ("force kill (killall -KILL)", &[ProcessKill]),
        ("kill processes by regex", &[ProcessKill]),
        ("pipe remote content to shell", &[ExecuteRemote]),
        ("execute remote script via process substitution", &[ExecuteRemote]),
        ("execute remote content via command substitution", &[ExecuteRemote]),
        ("pipe decoded content to shell", &[CannotTell]),
        ("pipe xxd-decoded content to shell", &[CannotTell]),
        ("pipe tr-transformed output to shell", &[CannotTell]),
        ("pipe openssl-decoded content to shell", &[CannotTell]),
        ("overwrite system file via tee", &[Overwrite, Persistence]),
        ("overwrite system file via redirection", &[Overwrite, Persistence]),
        ("overwrite project env/config via tee", &[Overwrite]),
        ("overwrite project env/config via redirection", &[Overwrite]),
        ("xargs with rm", &[Delete]),
        ("find -exec/-execdir rm", &[Delete]),
        ("find -exec rm", &[Delete]),
        ("find -delete", &[Delete]),
        ("stop/restart gateway", &[Service]),
        ("agent update", &[Service]),
        ("docker compose lifecycle", &[CloudResource]),
        ("docker lifecycle", &[CloudResource]),
        ("start gateway outside supervision", &[Service]),
        ("self-termination", &[ProcessKill]),
        ("kill via pgrep/pidof expansion", &[ProcessKill]),
        ("launchd service stop", &[Service]),
        ("copy/move into system config", &[Overwrite, Persistence]),
        ("overwrite project env/config file", &[Overwrite]),
        ("copy/move into credential/SSH/shell-rc path", &[Overwrite, Persistence]),
        ("in-place edit of user-sensitive paths", &[Overwrite, Persistence]),
        ("in-place edit of system config", &[Overwrite, Persistence]),
        ("in-place edit of agent config/env", &[Overwrite, Persistence]),
        ("shell execution via heredoc", &[CannotTell]),
        ("git reset --hard", &[VersionControl]),
        ("git force push", &[VersionControl]),
        ("git clean with force", &[VersionControl]),
        ("git branch force delete", &[VersionControl]),
        ("sudo with privilege flag", &[Privilege]),
        ("sudo combined flags", &[Privilege]),
        ("system package removal", &[Package]),
    ];
    KEYS.iter().find(|(known, _)| known.eq_ignore_ascii_case(key.trim())).map(|(_, effects)| *effects)
}

/// Whether an entry of `command_allowlist` allows more than one effect of one program on one class of targets.
pub fn is_broad(entry: &str) -> bool {
    broad(entry).is_some() || entry.parse::<super::Scope>().is_err() && entry.contains(['*', '?', '['])
}
