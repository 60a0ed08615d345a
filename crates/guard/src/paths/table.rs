//! Which paths are special, as data: the only list, for file tools and for commands alike. To protect another path, add
//! a row; to make an exception, put it above.
//!
//! For each of the three questions (may it be read, may it be written, does a write plant code) the first row that
//! answers it decides. Patterns are in lower case; `*` stands for any part of one name; `{a,b}` for either; `**` stands
//! last, for everything below (and, where writing is asked about, for the folder itself).
//!
//! A pattern begins with two letters that are written out, or it is a name that ends with two: that is how rows are found
//! (`paths/index.rs`), and any other row costs each path a little.
//!
//! Sources: spec exec §14.1 and §14.2, spec tools §2.3 and §2.4, `APPROVAL-RULES.md` 16 to 19, the manuals of the
//! programs named.

use self::At::{Agent, Home, Name, Root, Within};

/// Reading it discloses a secret.
pub(super) const R: u8 = 1;
/// Tools do not write it.
pub(super) const W: u8 = 2;
/// Something runs or trusts what is written there.
pub(super) const P: u8 = 4;
/// It may be read although a later row says `R`.
pub(super) const OPEN: u8 = 8;
/// It is a part of something large: a workspace in `/usr` is a workspace nevertheless, and who reads all of `~/.cache` is
/// not after the token in it.
pub(super) const BROAD: u8 = 16;
/// Tools do not read it, though it is no secret as such: a command may (`APPROVAL-RULES.md` 18).
pub(super) const T: u8 = 32;

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
const MAIL: &str = "holds the password of a mailbox";
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
    Rule(Agent, "config.yaml", T | W | P, "is the agent's own configuration, with its approvals and keys"),
    Rule(Agent, "hermes.db*", R | W, AGENT_STATE),
    Rule(Agent, "state.db*", R | W, AGENT_STATE),
    Rule(Agent, "sessions/**", R | W, AGENT_STATE),
    Rule(Agent, "pending/**", W, "waits for the user's approval"),
    Rule(Agent, "checkpoints/**", R | W, "is what an undo returns to, secrets of the projects included"),
    Rule(Agent, "skills/.hub/**", T, "is text from the hub that nobody has reviewed"),
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
    Rule(Home, ".ssh/{config,rc,environment}", OPEN, NOTHING),
    Rule(Home, ".ssh/**", W | P, SSH),
    Rule(Home, ".ssh/**", R, "holds private SSH keys"),
    Rule(Within, ".ssh/{*.pub,known_hosts*,authorized_keys*,config,rc,environment}", OPEN, NOTHING),
    Rule(Within, ".ssh/**", R, "holds private SSH keys"),
    // Credentials of programs.
    Rule(Home, ".aws/**", R | W, CLOUD),
    Rule(Within, ".aws/credentials", R, CLOUD),
    Rule(Home, ".azure/**", R | W, CLOUD),
    Rule(Home, ".config/gcloud/**", R | W, CLOUD),
    Rule(Home, ".config/doctl/**", R | W, CLOUD),
    Rule(Home, ".config/rclone/**", R | W, CLOUD),
    Rule(Home, ".oci/**", R | W, CLOUD),
    Rule(Home, ".{boto,s3cfg,passwd-s3fs,databrickscfg,terraformrc}", R | W, CLOUD),
    Rule(Home, ".terraform.d/*credential*", R | W, CLOUD),
    Rule(Home, ".mc/config.json", R | W, CLOUD),
    Rule(Home, ".fly/config.yml", R | W, CLOUD),
    Rule(Home, ".config/linode-cli", R | W, CLOUD),
    Rule(Home, ".config/{hcloud,linode-cli,netlify,heroku,flyctl}/**", R | W, CLOUD),
    Rule(Home, ".{tsh,secrets}/**", R | W, "holds keys and passwords"),
    Rule(Home, ".gnupg/**", R | W, "holds GnuPG keys"),
    Rule(Home, ".kube/**", R | W, CLUSTER),
    Rule(Home, ".docker/{daemon.json,features.json}", OPEN, NOTHING),
    Rule(Home, ".docker/{cli-plugins,buildx,desktop,scout}/**", OPEN, NOTHING),
    Rule(Home, ".docker/cli-plugins/**", P, "is run by docker"),
    Rule(Home, ".docker/**", R | W, "configures docker, with its credentials and keys"),
    Rule(Home, ".dockercfg", R | W, "holds credentials of container registries"),
    Rule(Home, ".config/containers/auth.json", R | W, "holds credentials of container registries"),
    Rule(Home, ".config/gh/**", R | W, TOKEN),
    Rule(Home, ".config/glab-cli/**", R | W, TOKEN),
    Rule(Home, ".config/hub", R | W, TOKEN),
    Rule(Home, ".config/{hub,stripe,configstore}/**", R | W, TOKEN),
    Rule(Home, ".config/github-copilot/**", R | W, TOKEN),
    Rule(Home, ".claude/{*credential*,config.json}", R | W, TOKEN),
    Rule(Home, ".codex/auth.json", R | W, TOKEN),
    Rule(Home, ".gemini/oauth_creds.json", R | W, TOKEN),
    Rule(Home, ".{vault-token,consul-token}", R | W, TOKEN),
    Rule(Home, ".kaggle/kaggle.json", R | W, TOKEN),
    Rule(Home, ".huggingface/token", R | W, TOKEN),
    Rule(Home, ".cache/huggingface/{token,stored_tokens}", R | W | BROAD, TOKEN),
    Rule(Home, ".{npmrc,yarnrc.yml}", R | W | P, REGISTRY),
    Rule(Home, ".pypirc", R | W, REGISTRY),
    Rule(Home, ".cargo/credentials*", R | W, REGISTRY),
    Rule(Home, ".gem/credentials", R | W, REGISTRY),
    Rule(Home, ".m2/settings*", R | W, REGISTRY),
    Rule(Home, ".gradle/gradle.properties", R | W | P, REGISTRY),
    Rule(Home, ".composer/auth.json", R | W, REGISTRY),
    Rule(Home, ".config/composer/auth.json", R | W, REGISTRY),
    Rule(Home, "{.netrc,_netrc,.authinfo,.authinfo.gpg,.smbcredentials,.git-credentials}", R | W, PASSWORDS),
    Rule(Home, ".{pgpass,my.cnf,mylogin.cnf,rediscli_auth}", R | W, PASSWORDS),
    Rule(Home, ".snowsql/**", R | W, PASSWORDS),
    Rule(Home, ".dbt/profiles.yml", R | W, PASSWORDS),
    Rule(Home, ".{msmtprc,fetchmailrc,mbsyncrc,offlineimaprc}", R | W, MAIL),
    Rule(Home, ".config/git/credentials", R | W, PASSWORDS),
    Rule(Home, ".password-store/**", R | W, KEYRING),
    Rule(Home, ".local/share/keyrings/**", R | W, KEYRING),
    Rule(Home, ".local/share/kwalletd/**", R | W, KEYRING),
    Rule(Home, ".config/{op,keepassxc,bitwarden cli}/**", R | W, KEYRING),
    Rule(Home, ".config/{sops,age}/**", R | W, KEY),
    Rule(Home, "library/keychains/**", R | W, KEYRING),
    Rule(Home, ".bitcoin/**", R | W, WALLET),
    Rule(Home, ".ethereum/**", R | W, WALLET),
    Rule(Home, ".config/solana/**", R | W, WALLET),
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
    Rule(Home, "library/application support/google/**", R | W, BROWSER),
    Rule(Home, "library/application support/firefox/**", R | W, BROWSER),
    Rule(Home, "library/cookies/**", R | W, BROWSER),
    Rule(Home, "library/safari/**", R | W, BROWSER),
    Rule(Home, "library/messages/**", R | W, "holds the person's messages"),
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
    Rule(Home, ".{inputrc,dircolors,envrc}", P, SHELL),
    Rule(Home, ".config/{fish,nushell,zsh,xonsh,powershell,direnv}/**", P, SHELL),
    Rule(Home, ".pam_environment", P, SESSION),
    Rule(Home, ".xinitrc", P, SESSION),
    Rule(Home, ".xprofile", P, SESSION),
    Rule(Home, ".xsession*", P, SESSION),
    Rule(Home, ".xresources", P, SESSION),
    Rule(Home, ".config/autostart/**", P, SESSION),
    Rule(Home, ".config/environment.d/**", P, SESSION),
    Rule(Home, ".config/plasma-workspace/**", P, SESSION),
    Rule(Home, ".config/{i3,sway,hypr,bspwm,awesome,openbox,user-tmpfiles.d}/**", P, SESSION),
    Rule(Home, ".config/systemd/**", P, SESSION),
    Rule(Home, ".local/share/systemd/**", P, SESSION),
    Rule(Home, "library/launchagents/**", P, SESSION),
    Rule(Home, ".gitconfig", P, GIT),
    Rule(Home, ".config/git/**", P, GIT),
    Rule(Home, ".{vimrc,gvimrc,exrc}", P, PROGRAM_START),
    Rule(Home, ".vim/**", P, PROGRAM_START),
    Rule(Home, ".config/{nvim,emacs,doom,tmux}/**", P, PROGRAM_START),
    Rule(Home, ".config/{pip,containers}/**", P, "says where packages and images come from"),
    Rule(Home, ".condarc", P, "says where packages and images come from"),
    Rule(Home, ".emacs", P, PROGRAM_START),
    Rule(Home, ".emacs.d/**", P, PROGRAM_START),
    Rule(Home, ".tmux.conf", P, PROGRAM_START),
    Rule(Home, ".screenrc", P, PROGRAM_START),
    Rule(Home, ".gdbinit", P, PROGRAM_START),
    Rule(Home, ".{psqlrc,sqliterc,pythonrc,lessfilter}", P, PROGRAM_START),
    Rule(Home, ".forward", P, "is run when mail arrives"),
    Rule(Home, ".{rhosts,shosts}", P, "says who may log in without a password"),
    Rule(Home, ".irbrc", P, PROGRAM_START),
    Rule(Home, ".rprofile", P, PROGRAM_START),
    Rule(Home, ".curlrc", P, PROGRAM_START),
    Rule(Home, ".wgetrc", P, PROGRAM_START),
    Rule(Home, ".ipython/**", P, PROGRAM_START),
    Rule(Home, ".cargo/config*", P, PROGRAM_START),
    Rule(Home, ".cargo/env*", P, SHELL),
    // A search is not recursive, and the folder alone runs nothing.
    Rule(Home, "{.cargo/bin,.local/bin,bin}/*", P, ON_PATH),
    // The system.
    Rule(Root, "etc/ssl/certs/**", OPEN, NOTHING),
    Rule(Root, "etc/shadow*", R | W | P, "holds the passwords of all users"),
    Rule(Root, "etc/gshadow*", R | W | P, "holds the passwords of all groups"),
    Rule(Root, "etc/security/opasswd", R | W | P, "holds old passwords of all users"),
    Rule(Root, "etc/sudoers*", R | W | P, "says who may become root"),
    Rule(Root, "etc/sudoers.d/**", R | W | P, "says who may become root"),
    Rule(Root, "etc/ssh/ssh_host_*.pub", OPEN, NOTHING),
    Rule(Root, "etc/ssh/ssh_host_*", R, "holds the private keys of this machine"),
    Rule(Root, "etc/master.passwd", R | W | P, "holds the passwords of all users"),
    Rule(Root, "etc/{ssl,pki/tls,swanctl}/private/**", R, KEY),
    Rule(Root, "etc/letsencrypt/{live,archive}/*/{cert,chain,fullchain}*.pem", OPEN, NOTHING),
    Rule(Root, "etc/letsencrypt/{live,archive,keys,accounts}/**", R, KEY),
    Rule(Root, "etc/krb5.keytab*", R, KEY),
    Rule(Root, "etc/{wireguard,openvpn/server}/**", R, KEY),
    Rule(Root, "etc/docker/key.json", R, KEY),
    Rule(Root, "etc/{ipsec.secrets,ppp/chap-secrets,ppp/pap-secrets,mysql/debian.cnf}*", R, PASSWORDS),
    Rule(Root, "etc/wpa_supplicant/**", R, PASSWORDS),
    Rule(Root, "etc/wpa_supplicant*", R, PASSWORDS),
    Rule(Root, "etc/kubernetes/manifests/**", OPEN, NOTHING),
    Rule(Root, "etc/kubernetes/**", R, CLUSTER),
    Rule(Root, "etc/rancher/**", R, CLUSTER),
    Rule(Root, "etc/networkmanager/system-connections/**", R, PASSWORDS),
    Rule(Root, "etc/cron*/**", W | P, SCHEDULE),
    Rule(Root, "etc/systemd/**", W | P, "is run by the system as root"),
    Rule(Root, "etc/**", W | P, "configures the whole system"),
    Rule(Root, "var/backups/{shadow,gshadow}*", R | W, "holds the passwords of all users"),
    Rule(Root, "var/spool/cron/**", W | P, SCHEDULE),
    Rule(Root, "var/spool/at/**", W | P, SCHEDULE),
    Rule(Root, "boot/**", W | P, "starts the system"),
    Rule(Root, "efi/**", W | P, "starts the system"),
    Rule(Root, "usr/lib/systemd/**", W | P, "is run by the system as root"),
    Rule(Root, "lib/systemd/**", W | P, "is run by the system as root"),
    Rule(Root, "usr/**", P | BROAD, SYSTEM),
    Rule(Root, "bin/**", P | BROAD, SYSTEM),
    Rule(Root, "sbin/**", P | BROAD, SYSTEM),
    Rule(Root, "lib/**", P | BROAD, SYSTEM),
    Rule(Root, "lib32/**", P | BROAD, SYSTEM),
    Rule(Root, "lib64/**", P | BROAD, SYSTEM),
    Rule(Root, "libx32/**", P | BROAD, SYSTEM),
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
    Rule(Root, "proc/*/auxv", T, MEMORY),
    Rule(Root, "proc/*/*maps", T, MEMORY),
    Rule(Root, "proc/*/smaps_rollup", T, MEMORY),
    Rule(Root, "proc/*/pagemap", T, MEMORY),
    Rule(Root, "sys/**", W | BROAD, "changes the running kernel"),
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
    Rule(Within, ".git/worktrees/*/config*", P, GIT),
    Rule(Within, ".git/{info/attributes,objects/info/alternates}", P, GIT),
    // Names that mean the same everywhere.
    // Templates: what they begin or end with.
    Rule(Name, "{,.}{example,sample,template,tmpl,tpl,schema,skel}{.,-,_}*", OPEN, NOTHING),
    Rule(
        Name,
        ".env{,rc}{.,-,_}{example,sample,template,tmpl,tpl,schema,skel,dist,default,defaults,enc}",
        OPEN,
        NOTHING,
    ),
    Rule(
        Name,
        ".env{.,-}*{.,-,_}{example,sample,template,tmpl,tpl,schema,skel,dist,default,defaults,enc}",
        OPEN,
        NOTHING,
    ),
    Rule(Name, ".env", R, ENV),
    Rule(Name, ".env{.,-}*", R, ENV),
    Rule(Name, ".envrc", R, ENV),
    // Keys. Public halves and certificates share endings with the keys they belong to.
    Rule(Name, "{*public*,*pubkey*,*.pub}.{pem,key,p8,jwk}", OPEN, NOTHING),
    Rule(Name, "*{priv*,key}.{pem,p8,jwk}", R, KEY),
    Rule(Name, "*{cert,chain,pub,bundle,csr,dhparam}*.pem", OPEN, NOTHING),
    Rule(Name, "ca{,-*,_*,.*}.pem", OPEN, NOTHING),
    Rule(Name, "*.{pem,key,p8,p12,pkcs12,pfx,ppk,jks,jwk,keystore,keytab,ovpn,agekey}", R, KEY),
    Rule(Name, "*.{kdbx,kdb}", R, KEYRING),
    Rule(Name, "id_{rsa,dsa,ecdsa,ecdsa_sk,ed25519,ed25519_sk}", R, KEY),
    Rule(Name, "wallet.dat", R, WALLET),
    Rule(Name, "kubeconfig", R, CLUSTER),
    Rule(Name, ".{netrc,pgpass,htpasswd,git-credentials}", R, PASSWORDS),
    Rule(Name, ".{vault-token,token}", R, TOKEN),
    Rule(Name, ".pypirc", R, REGISTRY),
    Rule(Name, ".{dockercfg,dockerconfigjson}", R, "holds credentials of container registries"),
    Rule(Name, ".secrets", R, "is named as a secret"),
    // Files of values, no code, that say what they are.
    Rule(Name, "{,.}{dist,default,defaults,enc}{.,-,_}*", OPEN, NOTHING),
    Rule(Name, "requirements.env", OPEN, NOTHING),
    Rule(Name, "*.env", R, ENV),
    Rule(
        Name,
        "*{secret,credential,service-account,serviceaccount,service_account,adminsdk}*.{txt,json,yaml,yml,toml,ini,cfg,tfvars}",
        R,
        "is named as a secret",
    ),
    Rule(
        Name,
        "{password,passwords,passwd,token,api_key,apikey,api-key,api_keys}.{,*.}{txt,json,yaml,yml,toml,ini,cfg,tfvars}",
        R,
        "is named as a secret",
    ),
];
