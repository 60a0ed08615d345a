//! What holds, in words that a person can check: for `hermes doctor` and for results.

use std::fmt;

use serde::Serialize;

use super::{Confinement, Mechanism, Network, Preflight, View};

/// What a confinement keeps a command from, in one sentence each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    /// Which files are seen and changed.
    pub files: String,
    /// Which other processes are seen, signalled, inspected.
    pub processes: String,
    /// What sockets reach.
    pub network: String,
    /// Which system calls and privileges are left.
    pub system_calls: String,
}

impl Level {
    /// What `confinement` means on the machine that `preflight` looked at. Says "not confined" where the mechanism was
    /// not shown to work.
    pub fn of(confinement: &Confinement, preflight: &Preflight) -> Self {
        let mechanism = confinement.mechanism;
        if mechanism == Mechanism::None || !preflight.works(mechanism) {
            let not = "not confined".to_owned();
            return Self { files: not.clone(), processes: not.clone(), network: not.clone(), system_calls: not };
        }
        Self {
            files: files(confinement),
            processes: processes(mechanism, preflight),
            network: network(confinement, preflight),
            system_calls: system_calls(mechanism),
        }
    }
}

fn files(confinement: &Confinement) -> String {
    let seen = match &confinement.view {
        View::Everything => "everything but hidden paths can be read",
        View::System { .. } => "only programs, libraries, /etc without secrets and listed paths can be read",
    };
    let besides = match confinement.mechanism {
        Mechanism::Namespaces | Mechanism::Bubblewrap if confinement.private_tmp => "; /tmp is the command's own",
        Mechanism::Landlock if confinement.private_tmp => {
            "; modes and times of other files can be changed too; /tmp is out of reach, and folders above hidden paths \
             cannot be listed"
        }
        Mechanism::Landlock => {
            "; modes and times of other files can be changed too, and folders above hidden paths cannot be listed"
        }
        _ => "",
    };
    format!("{seen}; {} can be changed{besides}", count(confinement.writable.len(), "listed path"))
}

fn count(number: usize, what: &str) -> String {
    match number {
        0 => format!("no {what}"),
        1 => format!("one {what}"),
        _ => format!("{number} {what}s"),
    }
}

fn processes(mechanism: Mechanism, preflight: &Preflight) -> String {
    let text = match mechanism {
        Mechanism::Namespaces => "only its own are visible; if it is stopped, all of them end",
        Mechanism::Bubblewrap => "only its own are visible; when it ends, all of them end",
        Mechanism::Landlock if preflight.landlock.is_some_and(|version| version >= 6) => {
            "others are visible, but can be neither signalled nor inspected"
        }
        Mechanism::Landlock => "others are visible and those of the same user can be signalled, but not inspected",
        Mechanism::Seatbelt => "others are visible; only its own can be signalled",
        Mechanism::None => "not confined",
    };
    text.into()
}

fn network(confinement: &Confinement, preflight: &Preflight) -> String {
    let text = match (confinement.network, confinement.mechanism) {
        (Network::Open, Mechanism::Namespaces) if preflight.landlock.is_some_and(|version| version >= 6) => {
            "open; sockets of local programs below /run and /tmp and abstract ones are out of reach"
        }
        (Network::Open, Mechanism::Namespaces | Mechanism::Bubblewrap) => {
            "open, also to abstract sockets; sockets of local programs below /run and /tmp are out of reach"
        }
        (Network::Open, _) => "open, also to sockets of local programs",
        (Network::Off, Mechanism::Namespaces | Mechanism::Bubblewrap) => {
            "off: only a loopback device of its own; sockets of local programs that were there at the start are hidden"
        }
        (Network::Off, Mechanism::Landlock) => "off: no socket can be made",
        (Network::Off, _) => "off",
        (Network::Proxied, Mechanism::Namespaces) => {
            "only through a proxy that asks a policy about each host and address"
        }
        (Network::Proxied, _) => "cannot be given: commands are refused",
    };
    text.into()
}

fn system_calls(mechanism: Mechanism) -> String {
    let text = match mechanism {
        Mechanism::Namespaces | Mechanism::Bubblewrap | Mechanism::Landlock => {
            "no privileges can be gained; mounts, namespaces, modules, tracing, io_uring and rare sockets are refused"
        }
        Mechanism::Seatbelt => "as the profile says",
        Mechanism::None => "not confined",
    };
    text.into()
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, processes, network, system_calls } = self;
        write!(f, "files: {files}\nprocesses: {processes}\nnetwork: {network}\nsystem calls: {system_calls}")
    }
}
