//! What was found: effects on targets, and the verdict they add up to.

use serde::Serialize;

/// How a command is judged; the order is the order of severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It runs without a question.
    #[default]
    Safe,
    /// A person has to say yes.
    Dangerous,
    /// It never runs, whatever anybody says.
    Hardline,
}

/// What a command does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Files go away.
    Delete,
    /// The content of files is replaced.
    Overwrite,
    /// Files are emptied.
    Truncate,
    /// Who may do what with a file.
    Permission,
    /// More rights than before.
    Privilege,
    /// The machine stops or restarts.
    Power,
    /// Processes end.
    ProcessKill,
    /// More processes than the machine can carry.
    Exhaustion,
    /// Raw disks, volumes and file systems.
    Disk,
    /// A secret is shown.
    SecretRead,
    /// Data leaves the machine.
    NetworkSend,
    /// Data arrives.
    NetworkReceive,
    /// Code from elsewhere runs.
    ExecuteRemote,
    /// Something runs, and nobody can tell what.
    CannotTell,
    /// Code or trust that stays: start-up files, keys, services, scheduled jobs, configuration.
    Persistence,
    /// Traces go away.
    History,
    /// Rows, tables, keys of a store.
    Database,
    /// Containers, clusters, machines in a cloud.
    CloudResource,
    /// Services, the network and the kernel of this host.
    Service,
    /// Software of the host, or versions that others use.
    Package,
    /// Uncommitted work, branches, history.
    VersionControl,
    /// Users and groups.
    Account,
}

impl Effect {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Delete,
        Self::Overwrite,
        Self::Truncate,
        Self::Permission,
        Self::Privilege,
        Self::Power,
        Self::ProcessKill,
        Self::Exhaustion,
        Self::Disk,
        Self::SecretRead,
        Self::NetworkSend,
        Self::NetworkReceive,
        Self::ExecuteRemote,
        Self::CannotTell,
        Self::Persistence,
        Self::History,
        Self::Database,
        Self::CloudResource,
        Self::Service,
        Self::Package,
        Self::VersionControl,
        Self::Account,
    ];

    /// The effect in words that follow "it".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Delete => "deletes",
            Self::Overwrite => "overwrites",
            Self::Truncate => "empties",
            Self::Permission => "changes permissions of",
            Self::Privilege => "gains rights through",
            Self::Power => "stops or restarts the machine",
            Self::ProcessKill => "ends processes",
            Self::Exhaustion => "starts processes without end",
            Self::Disk => "changes disks or volumes",
            Self::SecretRead => "shows secrets from",
            Self::NetworkSend => "sends data to",
            Self::NetworkReceive => "receives data from",
            Self::ExecuteRemote => "runs code from elsewhere",
            Self::CannotTell => "runs something that cannot be read",
            Self::Persistence => "plants code or trust in",
            Self::History => "clears traces in",
            Self::Database => "deletes or changes data in",
            Self::CloudResource => "changes containers or cloud resources",
            Self::Service => "changes services or settings of this host",
            Self::Package => "changes installed or published software",
            Self::VersionControl => "loses work or history in",
            Self::Account => "changes accounts",
        }
    }

    /// The name that stands in JSON and in approval scopes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Overwrite => "overwrite",
            Self::Truncate => "truncate",
            Self::Permission => "permission",
            Self::Privilege => "privilege",
            Self::Power => "power",
            Self::ProcessKill => "process_kill",
            Self::Exhaustion => "exhaustion",
            Self::Disk => "disk",
            Self::SecretRead => "secret_read",
            Self::NetworkSend => "network_send",
            Self::NetworkReceive => "network_receive",
            Self::ExecuteRemote => "execute_remote",
            Self::CannotTell => "cannot_tell",
            Self::Persistence => "persistence",
            Self::History => "history",
            Self::Database => "database",
            Self::CloudResource => "cloud_resource",
            Self::Service => "service",
            Self::Package => "package",
            Self::VersionControl => "version_control",
            Self::Account => "account",
        }
    }
}

/// What kind of place or thing is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetClass {
    /// `/`
    Root,
    /// A whole top-level directory of the system, such as `/etc`.
    System,
    /// Something below such a directory.
    BelowSystem,
    /// The user's whole home directory.
    Home,
    /// A raw disk or a partition.
    Device,
    /// Keys, credentials, stored secrets.
    Secret,
    /// A file from which programs start or take their settings.
    Startup,
    /// Files of another user.
    OtherUser,
    /// Inside the workspace.
    Workspace,
    /// A temporary directory.
    Temporary,
    /// None of the above.
    Outside,
    /// Nobody can tell.
    Unknown,
    /// No place at all: a process, a service, a host.
    Thing,
}

impl TargetClass {
    /// The class in words, as in "outside the workspace".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Root => "the root of the file system",
            Self::System => "a whole system directory",
            Self::BelowSystem => "a system directory",
            Self::Home => "the whole home directory",
            Self::Device => "a raw disk",
            Self::Secret => "secrets",
            Self::Startup => "a place from which programs start",
            Self::OtherUser => "files of another user",
            Self::Workspace => "inside the workspace",
            Self::Temporary => "a temporary directory",
            Self::Outside => "outside the workspace",
            Self::Unknown => "a target that cannot be told",
            Self::Thing => "no file",
        }
    }

    /// The name that stands in JSON and in approval scopes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::System => "system",
            Self::BelowSystem => "below_system",
            Self::Home => "home",
            Self::Device => "device",
            Self::Secret => "secret",
            Self::Startup => "startup",
            Self::OtherUser => "other_user",
            Self::Workspace => "workspace",
            Self::Temporary => "temporary",
            Self::Outside => "outside",
            Self::Unknown => "unknown",
            Self::Thing => "thing",
        }
    }
}

/// One effect of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub verdict: Verdict,
    /// The program that does it, for example `rm`.
    pub program: String,
    /// What it does.
    pub effect: Effect,
    /// To what: a resolved path, a service, a host; `…` where a part is unknown.
    pub target: String,
    /// What kind of target that is.
    pub class: TargetClass,
    /// Why it needs a person, or why nobody may allow it: words that follow "it".
    pub why: String,
    /// The words that cause it, as far as they are known.
    pub words: String,
    /// Where they run, for a target that is no path: the same words elsewhere are about something else. Empty if the
    /// target is a path, or if nobody can tell.
    #[serde(skip)]
    pub directory: String,
}

impl Finding {
    /// What an approval for longer than once would be about: the program, the effect, the kind of target, and the directory.
    pub fn family(&self) -> String {
        format!("{}:{}", self.effect.name(), self.class.name())
    }
}
