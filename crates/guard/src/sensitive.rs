//! Places that matter wherever they lie: secrets, and files from which programs start or take their settings.

use crate::finding::TargetClass;
use crate::text;
use crate::world::World;

/// Secret or startup, if the absolute path is one of these.
pub(crate) fn classify(path: &str, world: &World) -> Option<TargetClass> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let in_home = path.strip_prefix(world.home.as_str()).and_then(|rest| rest.strip_prefix('/'));
    // The home of another user has the same places.
    let in_other = ["/root/", "/var/root/"].iter().find_map(|root| path.strip_prefix(root)).or_else(|| {
        let rest = ["/home/", "/Users/"].iter().find_map(|homes| path.strip_prefix(homes))?;
        rest.split_once('/').map(|(_, rest)| rest)
    });
    if let Some(rest) = in_home.or(in_other)
        && let Some(class) = home(rest, name)
    {
        return Some(class);
    }
    if crate::place::within(path, &world.agent_home) {
        let rest = path[world.agent_home.len()..].trim_start_matches('/');
        return agent(rest);
    }
    if let Some(rest) = path.strip_prefix("/etc/") {
        let hidden = may_be(rest, &["shadow", "gshadow", "sudoers"]);
        let secret = hidden.is_some()
            || matches!(rest, "shadow" | "gshadow" | "shadow-" | "gshadow-" | "master.passwd")
            || SYSTEM_SECRETS.iter().any(|secret| rest.starts_with(secret))
            || (rest.starts_with("ssh/ssh_host_") && !rest.ends_with(".pub"));
        return Some(if secret { TargetClass::Secret } else { TargetClass::Startup });
    }
    if [
        "/proc/sys",
        "/var/spool/cron",
        "/usr/lib/systemd",
        "/lib/systemd",
        "/Library/LaunchDaemons",
        "/Library/LaunchAgents",
    ]
    .iter()
    .any(|dir| crate::place::within(path, dir))
    {
        return Some(TargetClass::Startup);
    }
    if path.starts_with("/proc/") && ["/environ", "/mem", "/kcore"].iter().any(|end| path.ends_with(end))
        || ["/run/secrets", "/var/run/secrets"].iter().any(|dir| crate::place::within(path, dir))
        || ["/var/backups/shadow", "/var/backups/gshadow"].iter().any(|start| path.starts_with(start))
    {
        return Some(TargetClass::Secret);
    }
    if matches!(path, "/var/run/docker.sock" | "/run/docker.sock" | "/run/containerd/containerd.sock") {
        return Some(TargetClass::Startup);
    }
    if let Some((_, inside)) = path.split_once("/.git/")
        && (inside.contains("hooks/")
            || inside.ends_with("hooks")
            || matches!(name, "config" | "config.worktree" | "attributes" | "alternates"))
    {
        return Some(TargetClass::Startup);
    }
    anywhere(name)
}

/// Below `/etc`: what only root may read, by how its name begins.
const SYSTEM_SECRETS: [&str; 21] = [
    "ssl/private",
    "pki/tls/private",
    "sudoers",
    "letsencrypt/live",
    "letsencrypt/archive",
    "letsencrypt/keys",
    "wireguard",
    "openvpn/server/",
    "NetworkManager/system-connections",
    "wpa_supplicant",
    "krb5.keytab",
    "mysql/debian.cnf",
    "ppp/chap-secrets",
    "ppp/pap-secrets",
    "ipsec.secrets",
    "swanctl/private",
    "security/opasswd",
    "kubernetes/admin.conf",
    "kubernetes/pki",
    "rancher/k3s/k3s.yaml",
    "docker/key.json",
];

fn agent(rest: &str) -> Option<TargetClass> {
    let first = rest.split('/').next().unwrap_or_default();
    match first {
        ".env" | "auth.json" | "auth.lock" | "mcp-tokens" | "webhook_subscriptions.json" | "pairing" | "auth" => {
            Some(TargetClass::Secret)
        }
        "config.yaml" | "plugins" | "skills" | "hooks" | "cron" | "hermes.db" | "state.db" | "sessions"
        | "memories" => Some(TargetClass::Startup),
        _ => None,
    }
}

/// Names in a home directory that a pattern may stand for.
const DOTTED: [&str; 17] = [
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".azure",
    ".password-store",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".vault-token",
    ".bashrc",
    ".zshrc",
    ".profile",
    ".gitconfig",
];

/// The name that a pattern stands for, among names that matter. A pattern that names nothing of it, such as `*`, is not
/// meant for it: the shell hides names with a dot from it.
fn may_be(pattern: &str, names: &[&'static str]) -> Option<&'static str> {
    let literal = pattern.chars().next().is_some_and(|c| text::is_literal(c.encode_utf8(&mut [0; 4])));
    (literal && text::has_glob(pattern))
        .then(|| names.iter().copied().find(|name| text::matches(pattern, name)))
        .flatten()
}

/// Files in a home directory.
fn home(rest: &str, name: &str) -> Option<TargetClass> {
    let (first, tail) = rest.split_once('/').unwrap_or((rest, ""));
    let first = may_be(first, &DOTTED).unwrap_or(first);
    match first {
        ".ssh" => Some(match name {
            ".ssh" => TargetClass::Secret,
            "authorized_keys" | "config" | "rc" | "environment" | "known_hosts" => TargetClass::Startup,
            name if name.ends_with(".pub") => TargetClass::Startup,
            _ => TargetClass::Secret,
        }),
        ".gnupg" | ".aws" | ".azure" | ".kube" | ".password-store" | ".oci" | ".tsh" | ".electrum" | ".mozilla"
        | ".thunderbird" | ".ethereum" | ".snowsql" | ".secrets" => Some(TargetClass::Secret),
        ".docker" if tail.is_empty() || name == "config.json" => Some(TargetClass::Secret),
        ".netrc" | "_netrc" | ".pgpass" | ".npmrc" | ".pypirc" | ".git-credentials" | ".my.cnf" | ".mylogin.cnf"
        | ".vault-token" | ".boto" | ".s3cfg" | ".yarnrc.yml" | ".msmtprc" | ".fetchmailrc" | ".mbsyncrc"
        | ".offlineimaprc" | ".smbcredentials" | ".passwd-s3fs" | ".databrickscfg" | ".rediscli_auth"
        | ".consul-token" | ".terraformrc" | ".dockercfg" | ".authinfo" | ".authinfo.gpg" => Some(TargetClass::Secret),
        ".config" => match tail.split('/').next().unwrap_or_default() {
            "gh" | "gcloud" | "op" | "doctl" | "hub" | "rclone" | "google-chrome" | "chromium" | "sops"
            | "BraveSoftware" | "microsoft-edge" | "vivaldi" | "age" | "solana" | "hcloud" | "linode-cli"
            | "netlify" | "stripe" | "heroku" | "flyctl" | "github-copilot" | "configstore" | "keepassxc"
            | "Bitwarden CLI" => Some(TargetClass::Secret),
            "containers" if name == "auth.json" => Some(TargetClass::Secret),
            "autostart" | "systemd" | "fish" | "environment.d" | "git" | "nvim" | "plasma-workspace" | "zsh"
            | "nushell" | "xonsh" | "powershell" | "i3" | "sway" | "hypr" | "bspwm" | "awesome" | "openbox"
            | "tmux" | "direnv" | "emacs" | "doom" | "pip" | "containers" | "user-tmpfiles.d" => {
                Some(TargetClass::Startup)
            }
            _ => None,
        },
        ".cargo" if name.starts_with("credentials") => Some(TargetClass::Secret),
        ".cargo" if name == "config.toml" || name == "env" => Some(TargetClass::Startup),
        ".gem" if name == "credentials" => Some(TargetClass::Secret),
        ".terraform.d" | ".claude" | ".codex" | ".kaggle" | ".fly" | ".dbt" | ".mc" | ".huggingface" | ".bitcoin"
            if name.contains("credential")
                || matches!(
                    name,
                    "auth.json"
                        | "kaggle.json"
                        | "config.yml"
                        | "profiles.yml"
                        | "config.json"
                        | "token"
                        | "wallet.dat"
                ) =>
        {
            Some(TargetClass::Secret)
        }
        ".cache" if tail == "huggingface/token" => Some(TargetClass::Secret),
        ".m2" if name.starts_with("settings") => Some(TargetClass::Secret),
        ".gradle" if name == "gradle.properties" => Some(TargetClass::Secret),
        ".local" if tail.starts_with("share/keyrings") => Some(TargetClass::Secret),
        ".local" if tail.starts_with("share/systemd") => Some(TargetClass::Startup),
        "Library" if tail.starts_with("LaunchAgents") => Some(TargetClass::Startup),
        "Library"
            if [
                "Keychains",
                "Cookies",
                "Safari",
                "Messages",
                "Application Support/Google",
                "Application Support/Firefox",
            ]
            .iter()
            .any(|start| tail.starts_with(start)) =>
        {
            Some(TargetClass::Secret)
        }
        ".bashrc" | ".bash_profile" | ".bash_login" | ".bash_logout" | ".bash_aliases" | ".bash_functions"
        | ".profile" | ".zshrc" | ".zshenv" | ".zprofile" | ".zlogin" | ".zlogout" | ".kshrc" | ".cshrc"
        | ".tcshrc" | ".login" | ".inputrc" | ".xinitrc" | ".xsession" | ".xprofile" | ".Xresources" | ".vimrc"
        | ".gvimrc" | ".exrc" | ".emacs" | ".emacs.d" | ".vim" | ".gitconfig" | ".tmux.conf" | ".screenrc"
        | ".pythonrc" | ".psqlrc" | ".sqliterc" | ".gdbinit" | ".lessfilter" | ".pam_environment" | ".forward"
        | ".rhosts" | ".shosts" | ".condarc" | ".curlrc" | ".wgetrc" | ".dircolors" | ".envrc" => {
            Some(TargetClass::Startup)
        }
        _ => None,
    }
}

/// What the name of a template begins or ends with.
const TEMPLATES: [&str; 11] =
    ["example", "sample", "template", "dist", "tmpl", "tpl", "defaults", "default", "schema", "skel", "enc"];
/// Names of keys and credentials.
const KEYS: [&str; 15] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".htpasswd",
    ".vault-token",
    ".secrets",
    ".token",
    "kubeconfig",
    "wallet.dat",
];
/// What the names of keys end with.
const KEY_ENDS: [&str; 16] = [
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".kdbx",
    ".kdb",
    ".jks",
    ".keystore",
    ".asc.key",
    ".ppk",
    ".keytab",
    ".ovpn",
    ".p8",
    ".jwk",
    ".agekey",
    ".pkcs12",
];
/// Files that hold values and no code.
const DATA_ENDS: [&str; 9] = [".txt", ".json", ".yaml", ".yml", ".env", ".toml", ".ini", ".cfg", ".tfvars"];

/// Names that mean the same in every directory.
fn anywhere(name: &str) -> Option<TargetClass> {
    let lower = name.to_ascii_lowercase();
    let mut parts = lower.split(['.', '-', '_']).filter(|part| !part.is_empty());
    let ends = |part: Option<&str>| part.is_some_and(|part| TEMPLATES.contains(&part));
    if ends(parts.next()) || ends(parts.next_back()) {
        return None;
    }
    let env = lower == ".env" || lower == ".envrc" || lower.starts_with(".env.") || lower.starts_with(".env-");
    let known = [".env", ".envrc", ".netrc", ".git-credentials", "id_rsa", "id_ed25519"];
    // A pattern is meant for a name when it spells more of it than one letter.
    let meant = lower.starts_with(['.']) || lower.starts_with("id");
    let env = env || meant && may_be(&lower, &known).is_some();
    let env = env || (lower.ends_with(".env") && !text::has_glob(name) && lower != "requirements.env");
    // Certificates and public keys share endings with the keys they belong to.
    let public =
        ["cert", "chain", "pub", "cacert", "ca-", "ca_", "ca.", "bundle", "csr", "dhparam"].iter().any(|part| {
            if part.starts_with("ca") && part.len() == 3 { lower.starts_with(part) } else { lower.contains(part) }
        }) && !lower.contains("priv")
            && !lower.contains("key.");
    let data = || DATA_ENDS.iter().any(|end| lower.ends_with(end));
    let stem = lower.split('.').next().unwrap_or_default();
    let named = ["secret", "credential", "service-account", "serviceaccount", "service_account", "adminsdk"]
        .iter()
        .any(|part| lower.contains(part))
        || matches!(
            stem,
            "password" | "passwords" | "passwd" | "token" | "api_key" | "apikey" | "api-key" | "api_keys"
        );
    let key =
        KEYS.contains(&lower.as_str()) || KEY_ENDS.iter().any(|end| lower.ends_with(end)) && !public || named && data();
    (env || key).then_some(TargetClass::Secret)
}

/// Whether a name is that of a store of data: losing it loses more than a file.
pub(crate) fn is_database(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    [".db", ".sqlite", ".sqlite3", ".db3", ".mdb", ".accdb", ".rdb", ".ldf", ".mdf", ".ibd", ".frm", ".kdbx", ".duckdb"]
        .iter()
        .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_startup_files_are_known_by_their_place_or_name() {
        let world = World::new("/home/u", "/home/u/project");
        for (path, class) in [
            ("/home/u/project/.env", Some(TargetClass::Secret)),
            ("/home/u/project/.env.example", None),
            ("/home/u/project/example.env", None),
            ("/home/u/project/.env.production", Some(TargetClass::Secret)),
            ("/home/u/project/deploy.pem", Some(TargetClass::Secret)),
            ("/home/u/project/server.cert.pem", None),
            ("/home/u/project/privkey.pem", Some(TargetClass::Secret)),
            ("/home/u/project/public.key", None),
            ("/home/u/project/service-account.json", Some(TargetClass::Secret)),
            ("/home/u/project/src/secrets.py", None),
            ("/home/u/.terraform.d/credentials.tfrc.json", Some(TargetClass::Secret)),
            ("/home/bob/.aws/credentials", Some(TargetClass::Secret)),
            ("/home/bob/notes.txt", None),
            ("/run/secrets/db", Some(TargetClass::Secret)),
            ("/etc/wireguard/wg0.conf", Some(TargetClass::Secret)),
            ("/etc/hosts", Some(TargetClass::Startup)),
            ("/home/u/project/.git/modules/a/hooks/pre-push", Some(TargetClass::Startup)),
            ("/home/u/project/.git/index", None),
        ] {
            assert_eq!(classify(path, &world), class, "{path}");
        }
        for (pattern, secret) in
            [(".e?v", true), (".en*", true), ("*", false), ("i*", false), ("id_*", true), ("*.md", false)]
        {
            let path = format!("/home/u/project/{}", text::live(pattern));
            assert_eq!(classify(&path, &world).is_some(), secret, "{pattern}");
        }
        assert_eq!(classify(&format!("/home/u/{}/config", text::live(".s?h")), &world), Some(TargetClass::Startup));
        assert_eq!(classify(&format!("/etc/{}", text::live("shad*")), &world), Some(TargetClass::Secret));
    }
}
