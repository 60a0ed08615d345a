//! Which paths are special, as data. To protect another path, add a row; to make an exception, put it above.
//!
//! For each of the three questions (may it be read, may it be written, does a write plant code) the first row that
//! answers it decides. Patterns are in lower case; `*` stands for any part of one name; `**` stands last, for everything
//! below (and, where writing is asked about, for the folder itself).
//!
//! Sources: spec exec §14.1 and §14.2, spec tools §2.3 and §2.4, the manuals of the programs named.

use self::At::{Agent, Home, Name, Root, Within};

/// Reading it discloses a secret.
pub(super) const R: u8 = 1;
/// Tools do not write it.
pub(super) const W: u8 = 2;
/// Something runs or trusts what is written there.
pub(super) const P: u8 = 4;
/// It may be read although a later row says `R`.
pub(super) const OPEN: u8 = 8;

/// Where a pattern begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// At the root of the file system.
    Root,
    /// At a home directory: the person's own, and those of others in the usual places.
    Home,
    /// At the home of the agent or of one of its profiles.
    Agent,
    /// At any folder.
    Within,
    /// At the last name, wherever it lies.
    Name,
}

/// Where, which, what holds for it, and why in words that complete "it …".
pub(super) struct Rule(pub(super) At, pub(super) &'static str, pub(super) u8, pub(super) &'static str);

const SSH: &str = "decides which keys and hosts ssh trusts";
const SHELL: &str = "is run by every new shell";
const SESSION: &str = "is run when a session starts";
const GIT: &str = "can make git run programs";
const PROGRAM_START: &str = "is run when its program starts";
const ON_PATH: &str = "lies on the search path of programs";
const SYSTEM: &str = "is a part of the system";
const SCHEDULE: &str = "is run on a schedule";
const ENGINE: &str = "gives control of the machine to who can write to it";
const DISK: &str = "is a raw disk with every file on it";
const MEMORY: &str = "shows the memory of a process";
const KEY: &str = "holds a private key";
const CLUSTER: &str = "holds credentials of a cluster";
const REGISTRY: &str = "holds a token for a package registry";
const CLOUD: &str = "holds credentials of a cloud";
const TOKEN: &str = "holds an access token";
const BROWSER: &str = "holds the passwords and cookies of a browser";
const KEYRING: &str = "holds stored passwords";
const PASSWORDS: &str = "holds passwords";
const WALLET: &str = "holds the keys of a wallet";
const ENV: &str = "holds secrets of the environment";
const AGENT_SECRETS: &str = "holds the agent's own credentials";
const AGENT_STATE: &str = "holds the agent's conversations";
const AGENT_CODE: &str = "is run by the agent";
const AGENT_TEXT: &str = "is read by the agent as instructions";
const NOTHING: &str = "";

pub(super) const TABLE: &[Rule] = &[
    // The agent's own home.
    Rule(Agent, ".env", R | W, AGENT_SECRETS),
    Rule(Agent, ".anthropic_oauth.json", R | W, AGENT_SECRETS),
    Rule(Agent, "auth.json", R | W, AGENT_SECRETS),
    Rule(Agent, "auth.lock", R | W, AGENT_SECRETS),
    Rule(Agent, "auth/**", R | W, AGENT_SECRETS),
    Rule(Agent, "mcp-tokens/**", R | W, AGENT_SECRETS),
    Rule(Agent, "webhook_subscriptions.json", R | W, AGENT_SECRETS),
    Rule(Agent, "pairing/**", R | W, "says who may talk to the agent"),
    Rule(Agent, "cache/bws_cache.json", R | W, AGENT_SECRETS),
    Rule(Agent, "config.yaml", R | W | P, "is the agent's own configuration, with its approvals and keys"),
    Rule(Agent, "hermes.db*", R | W, AGENT_STATE),
    Rule(Agent, "state.db*", R | W, AGENT_STATE),
    Rule(Agent, "sessions/**", R | W, AGENT_STATE),
    Rule(Agent, "pending/**", W, "waits for the user's approval"),
    Rule(Agent, "checkpoints/**", W, "is what a rollback returns to"),
    Rule(Agent, "skills/.hub/**", R, "is text from the hub that nobody has reviewed"),
    Rule(Agent, "plugins/**", P, AGENT_CODE),
    Rule(Agent, "hooks/**", P, AGENT_CODE),
    Rule(Agent, "cron/**", P, AGENT_CODE),
    Rule(Agent, "bin/**", P, AGENT_CODE),
    Rule(Agent, "skills/**", P, AGENT_TEXT),
    Rule(Agent, "memories/**", P, AGENT_TEXT),
    Rule(Agent, "soul.md", P, AGENT_TEXT),
    // ssh: public halves and lists of hosts are no secret, but a write to them is trust.
    Rule(Home, ".ssh/*.pub", OPEN, NOTHING),
    Rule(Home, ".ssh/known_hosts*", OPEN, NOTHING),
    Rule(Home, ".ssh/authorized_keys*", OPEN, NOTHING),
    Rule(Home, ".ssh/config", OPEN, NOTHING),
    Rule(Home, ".ssh/**", W | P, SSH),
    Rule(Home, ".ssh/**", R, "holds private SSH keys"),
    Rule(Within, ".ssh/*.pub", OPEN, NOTHING),
    Rule(Within, ".ssh/id_*", R, "holds private SSH keys"),
    // Credentials of programs.
    Rule(Home, ".aws/**", R | W, CLOUD),
    Rule(Within, ".aws/credentials", R, CLOUD),
    Rule(Home, ".azure/**", R | W, CLOUD),
    Rule(Home, ".config/gcloud/**", R | W, CLOUD),
    Rule(Home, ".config/doctl/**", R | W, CLOUD),
    Rule(Home, ".config/rclone/rclone.conf", R | W, CLOUD),
    Rule(Home, ".oci/**", R | W, CLOUD),
    Rule(Home, ".boto", R | W, CLOUD),
    Rule(Home, ".s3cfg", R | W, CLOUD),
    Rule(Home, ".terraform.d/credentials.tfrc.json", R | W, CLOUD),
    Rule(Home, ".gnupg/**", R | W, "holds GnuPG keys"),
    Rule(Home, ".kube/**", R | W, CLUSTER),
    Rule(Home, ".docker/config.json", R, "holds credentials of container registries"),
    Rule(Home, ".docker/**", W, "configures docker, with its credentials"),
    Rule(Home, ".config/containers/auth.json", R | W, "holds credentials of container registries"),
    Rule(Home, ".config/gh/**", R | W, TOKEN),
    Rule(Home, ".config/glab-cli/**", R | W, TOKEN),
    Rule(Home, ".config/hub", R | W, TOKEN),
    Rule(Home, ".config/github-copilot/**", R | W, TOKEN),
    Rule(Home, ".claude/.credentials.json", R | W, TOKEN),
    Rule(Home, ".codex/auth.json", R | W, TOKEN),
    Rule(Home, ".gemini/oauth_creds.json", R | W, TOKEN),
    Rule(Home, ".vault-token", R | W, TOKEN),
    Rule(Home, ".npmrc", R | W | P, REGISTRY),
    Rule(Home, ".pypirc", R | W, REGISTRY),
    Rule(Home, ".cargo/credentials*", R | W, REGISTRY),
    Rule(Home, ".gem/credentials", R | W, REGISTRY),
    Rule(Home, ".m2/settings*.xml", R | W, REGISTRY),
    Rule(Home, ".composer/auth.json", R | W, REGISTRY),
    Rule(Home, ".config/composer/auth.json", R | W, REGISTRY),
    Rule(Home, ".netrc", R | W, PASSWORDS),
    Rule(Home, "_netrc", R | W, PASSWORDS),
    Rule(Home, ".pgpass", R | W, PASSWORDS),
    Rule(Home, ".my.cnf", R | W, PASSWORDS),
    Rule(Home, ".mylogin.cnf", R | W, PASSWORDS),
    Rule(Home, ".git-credentials", R | W, PASSWORDS),
    Rule(Home, ".config/git/credentials", R | W, PASSWORDS),
    Rule(Home, ".password-store/**", R | W, KEYRING),
    Rule(Home, ".local/share/keyrings/**", R | W, KEYRING),
    Rule(Home, ".local/share/kwalletd/**", R | W, KEYRING),
    Rule(Home, ".config/op/**", R | W, KEYRING),
    Rule(Home, ".config/sops/age/**", R | W, KEY),
    Rule(Home, "library/keychains/**", R | W, KEYRING),
    Rule(Home, ".bitcoin/**", R | W, WALLET),
    Rule(Home, ".ethereum/keystore/**", R | W, WALLET),
    Rule(Home, ".electrum/**", R | W, WALLET),
    // Browsers.
    Rule(Home, ".mozilla/**", R | W, BROWSER),
    Rule(Home, ".thunderbird/**", R | W, BROWSER),
    Rule(Home, ".config/google-chrome*/**", R | W, BROWSER),
    Rule(Home, ".config/chromium/**", R | W, BROWSER),
    Rule(Home, ".config/bravesoftware/**", R | W, BROWSER),
    Rule(Home, ".config/microsoft-edge*/**", R | W, BROWSER),
    Rule(Home, ".config/vivaldi*/**", R | W, BROWSER),
    Rule(Home, ".config/opera*/**", R | W, BROWSER),
    Rule(Home, "snap/firefox/**", R | W, BROWSER),
    Rule(Home, "snap/chromium/**", R | W, BROWSER),
    Rule(Home, ".var/app/org.mozilla.firefox/**", R | W, BROWSER),
    Rule(Home, "library/application support/google/chrome/**", R | W, BROWSER),
    Rule(Home, "library/application support/firefox/**", R | W, BROWSER),
    Rule(Home, "library/cookies/**", R | W, BROWSER),
    Rule(Home, "library/safari/**", R | W, BROWSER),
    // What runs later: shells, sessions, editors.
    Rule(Home, ".bashrc", P, SHELL),
    Rule(Home, ".bash_*", P, SHELL),
    Rule(Home, ".profile", P, SHELL),
    Rule(Home, ".zsh*", P, SHELL),
    Rule(Home, ".zprofile", P, SHELL),
    Rule(Home, ".zlog*", P, SHELL),
    Rule(Home, ".kshrc", P, SHELL),
    Rule(Home, ".cshrc", P, SHELL),
    Rule(Home, ".tcshrc", P, SHELL),
    Rule(Home, ".login", P, SHELL),
    Rule(Home, ".logout", P, SHELL),
    Rule(Home, ".inputrc", P, SHELL),
    Rule(Home, ".config/fish/**", P, SHELL),
    Rule(Home, ".config/nushell/**", P, SHELL),
    Rule(Home, ".pam_environment", P, SESSION),
    Rule(Home, ".xinitrc", P, SESSION),
    Rule(Home, ".xprofile", P, SESSION),
    Rule(Home, ".xsession*", P, SESSION),
    Rule(Home, ".config/autostart/**", P, SESSION),
    Rule(Home, ".config/environment.d/**", P, SESSION),
    Rule(Home, ".config/plasma-workspace/**", P, SESSION),
    Rule(Home, ".config/systemd/**", P, SESSION),
    Rule(Home, ".local/share/systemd/**", P, SESSION),
    Rule(Home, "library/launchagents/**", P, SESSION),
    Rule(Home, ".gitconfig", P, GIT),
    Rule(Home, ".config/git/**", P, GIT),
    Rule(Home, ".vimrc", P, PROGRAM_START),
    Rule(Home, ".vim/**", P, PROGRAM_START),
    Rule(Home, ".config/nvim/**", P, PROGRAM_START),
    Rule(Home, ".emacs", P, PROGRAM_START),
    Rule(Home, ".emacs.d/**", P, PROGRAM_START),
    Rule(Home, ".tmux.conf", P, PROGRAM_START),
    Rule(Home, ".screenrc", P, PROGRAM_START),
    Rule(Home, ".gdbinit", P, PROGRAM_START),
    Rule(Home, ".psqlrc", P, PROGRAM_START),
    Rule(Home, ".irbrc", P, PROGRAM_START),
    Rule(Home, ".rprofile", P, PROGRAM_START),
    Rule(Home, ".curlrc", P, PROGRAM_START),
    Rule(Home, ".wgetrc", P, PROGRAM_START),
    Rule(Home, ".ipython/**", P, PROGRAM_START),
    Rule(Home, ".cargo/config*", P, PROGRAM_START),
    Rule(Home, ".cargo/bin/**", P, ON_PATH),
    Rule(Home, ".local/bin/**", P, ON_PATH),
    Rule(Home, "bin/**", P, ON_PATH),
    // The system.
    Rule(Root, "etc/ssl/certs/**", OPEN, NOTHING),
    Rule(Root, "etc/shadow*", R | W | P, "holds the passwords of all users"),
    Rule(Root, "etc/gshadow*", R | W | P, "holds the passwords of all groups"),
    Rule(Root, "etc/security/opasswd", R | W | P, "holds old passwords of all users"),
    Rule(Root, "etc/sudoers", R | W | P, "says who may become root"),
    Rule(Root, "etc/sudoers.d/**", R | W | P, "says who may become root"),
    Rule(Root, "etc/ssh/ssh_host_*.pub", OPEN, NOTHING),
    Rule(Root, "etc/ssh/ssh_host_*", R, "holds the private keys of this machine"),
    Rule(Root, "etc/ssl/private/**", R, KEY),
    Rule(Root, "etc/pki/tls/private/**", R, KEY),
    Rule(Root, "etc/letsencrypt/*/**", R, KEY),
    Rule(Root, "etc/krb5.keytab", R, KEY),
    Rule(Root, "etc/wireguard/**", R, KEY),
    Rule(Root, "etc/kubernetes/**", R, CLUSTER),
    Rule(Root, "etc/rancher/**", R, CLUSTER),
    Rule(Root, "etc/networkmanager/system-connections/**", R, PASSWORDS),
    Rule(Root, "etc/cron*/**", W | P, SCHEDULE),
    Rule(Root, "etc/systemd/**", W | P, "is run by the system as root"),
    Rule(Root, "etc/**", W | P, "configures the whole system"),
    Rule(Root, "private/etc/**", W | P, "configures the whole system"),
    Rule(Root, "var/spool/cron/**", W | P, SCHEDULE),
    Rule(Root, "var/spool/at/**", W | P, SCHEDULE),
    Rule(Root, "boot/**", W | P, "starts the system"),
    Rule(Root, "efi/**", W | P, "starts the system"),
    Rule(Root, "usr/lib/systemd/**", W | P, "is run by the system as root"),
    Rule(Root, "lib/systemd/**", W | P, "is run by the system as root"),
    Rule(Root, "usr/**", P, SYSTEM),
    Rule(Root, "bin/**", P, SYSTEM),
    Rule(Root, "sbin/**", P, SYSTEM),
    Rule(Root, "lib/**", P, SYSTEM),
    Rule(Root, "lib32/**", P, SYSTEM),
    Rule(Root, "lib64/**", P, SYSTEM),
    Rule(Root, "libx32/**", P, SYSTEM),
    Rule(Root, "system/**", W | P, SYSTEM),
    Rule(Root, "library/launch*/**", W | P, "is run by the system as root"),
    Rule(Root, "run/docker.sock", W | P, ENGINE),
    Rule(Root, "var/run/docker.sock", W | P, ENGINE),
    Rule(Root, "run/containerd/containerd.sock", W | P, ENGINE),
    Rule(Root, "run/podman/podman.sock", W | P, ENGINE),
    Rule(Root, "run/user/*/docker.sock", W | P, ENGINE),
    Rule(Root, "run/user/*/podman/podman.sock", W | P, ENGINE),
    Rule(Root, "run/secrets/**", R | W, "holds secrets that were given to this container"),
    Rule(Root, "var/run/secrets/**", R | W, "holds secrets that were given to this container"),
    Rule(Root, "proc/sys/**", W | P, "changes the running kernel"),
    Rule(Root, "proc/sysrq-trigger", W | P, "can stop the machine at once"),
    Rule(Root, "proc/kcore", R | W, "shows the memory of the machine"),
    Rule(Root, "proc/*/environ", R, "shows the environment of a process, with its keys"),
    Rule(Root, "proc/*/task/*/environ", R, "shows the environment of a process, with its keys"),
    Rule(Root, "proc/*/mem", R | W | P, MEMORY),
    Rule(Root, "proc/*/auxv", R, MEMORY),
    Rule(Root, "proc/*/*maps", R, MEMORY),
    Rule(Root, "proc/*/smaps_rollup", R, MEMORY),
    Rule(Root, "proc/*/pagemap", R, MEMORY),
    Rule(Root, "sys/**", W, "changes the running kernel"),
    Rule(Root, "dev/mem", R | W | P, "shows the memory of the machine"),
    Rule(Root, "dev/kmem", R | W | P, "shows the memory of the machine"),
    Rule(Root, "dev/port", R | W | P, "reaches the hardware itself"),
    Rule(Root, "dev/sd*", R | W, DISK),
    Rule(Root, "dev/hd*", R | W, DISK),
    Rule(Root, "dev/vd*", R | W, DISK),
    Rule(Root, "dev/xvd*", R | W, DISK),
    Rule(Root, "dev/nvme*", R | W, DISK),
    Rule(Root, "dev/mmcblk*", R | W, DISK),
    Rule(Root, "dev/dm-*", R | W, DISK),
    Rule(Root, "dev/md*/**", R | W, DISK),
    Rule(Root, "dev/md*", R | W, DISK),
    Rule(Root, "dev/mapper/*", R | W, DISK),
    Rule(Root, "dev/disk/**", R | W, DISK),
    // git runs what it finds in a repository's own folder.
    Rule(Within, ".git/hooks/**", P, "is run by git in this repository"),
    Rule(Within, ".git/config*", P, GIT),
    Rule(Within, ".git/modules/**", P, GIT),
    Rule(Within, ".git/worktrees/*/config.worktree", P, GIT),
    // Names that mean the same everywhere.
    Rule(Name, ".env.example", OPEN, NOTHING),
    Rule(Name, ".env.sample", OPEN, NOTHING),
    Rule(Name, ".env.template", OPEN, NOTHING),
    Rule(Name, ".env.*.example", OPEN, NOTHING),
    Rule(Name, ".env.*.sample", OPEN, NOTHING),
    Rule(Name, ".env.*.template", OPEN, NOTHING),
    Rule(Name, ".env.dist", OPEN, NOTHING),
    Rule(Name, ".env.schema", OPEN, NOTHING),
    Rule(Name, ".env.defaults", OPEN, NOTHING),
    Rule(Name, ".env", R, ENV),
    Rule(Name, ".env.*", R, ENV),
    Rule(Name, ".envrc", R, ENV),
    Rule(Name, "cacert.pem", OPEN, NOTHING),
    Rule(Name, "ca-bundle.pem", OPEN, NOTHING),
    Rule(Name, "fullchain*.pem", OPEN, NOTHING),
    Rule(Name, "chain*.pem", OPEN, NOTHING),
    Rule(Name, "*public*.pem", OPEN, NOTHING),
    Rule(Name, "*.pub.pem", OPEN, NOTHING),
    Rule(Name, "*.pem", R, KEY),
    Rule(Name, "*.key", R, KEY),
    Rule(Name, "*.p12", R, KEY),
    Rule(Name, "*.pfx", R, KEY),
    Rule(Name, "*.ppk", R, KEY),
    Rule(Name, "*.jks", R, KEY),
    Rule(Name, "*.keystore", R, KEY),
    Rule(Name, "*.keytab", R, KEY),
    Rule(Name, "*.kdbx", R, KEYRING),
    Rule(Name, "id_rsa", R, KEY),
    Rule(Name, "id_dsa", R, KEY),
    Rule(Name, "id_ecdsa", R, KEY),
    Rule(Name, "id_ecdsa_sk", R, KEY),
    Rule(Name, "id_ed25519", R, KEY),
    Rule(Name, "id_ed25519_sk", R, KEY),
    Rule(Name, "wallet.dat", R, WALLET),
    Rule(Name, ".netrc", R, PASSWORDS),
    Rule(Name, ".pgpass", R, PASSWORDS),
    Rule(Name, ".htpasswd", R, PASSWORDS),
    Rule(Name, ".git-credentials", R, PASSWORDS),
    Rule(Name, ".pypirc", R, REGISTRY),
    Rule(Name, ".dockercfg", R, "holds credentials of container registries"),
    Rule(Name, ".dockerconfigjson", R, "holds credentials of container registries"),
];
