//! Places that matter wherever they lie: secrets, and files from which programs start or take their settings.

use crate::finding::TargetClass;
use crate::text;
use crate::world::World;

/// Secret or startup, if the absolute path is one of these.
pub(crate) fn classify(path: &str, world: &World) -> Option<TargetClass> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let in_home = path.strip_prefix(world.home.as_str()).and_then(|rest| rest.strip_prefix('/'));
    let in_root = path.strip_prefix("/root/");
    if let Some(rest) = in_home.or(in_root)
        && let Some(class) = home(rest, name)
    {
        return Some(class);
    }
    if crate::place::within(path, &world.agent_home) {
        let rest = path[world.agent_home.len()..].trim_start_matches('/');
        return agent(rest);
    }
    if let Some(rest) = path.strip_prefix("/etc/") {
        let secret = matches!(rest, "shadow" | "gshadow" | "shadow-" | "gshadow-" | "master.passwd")
            || rest.starts_with("ssl/private")
            || (rest.starts_with("ssh/ssh_host_") && !rest.ends_with(".pub"))
            || rest.starts_with("sudoers");
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
    if path.ends_with("/environ") && path.starts_with("/proc/") {
        return Some(TargetClass::Secret);
    }
    if matches!(path, "/var/run/docker.sock" | "/run/docker.sock" | "/run/containerd/containerd.sock") {
        return Some(TargetClass::Startup);
    }
    if path.contains("/.git/hooks/") || path.ends_with("/.git/hooks") || path.ends_with("/.git/config") {
        return Some(TargetClass::Startup);
    }
    anywhere(name)
}

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

/// Files in a home directory.
fn home(rest: &str, name: &str) -> Option<TargetClass> {
    let (first, tail) = rest.split_once('/').unwrap_or((rest, ""));
    match first {
        ".ssh" => Some(match name {
            ".ssh" => TargetClass::Secret,
            "authorized_keys" | "config" | "rc" | "environment" | "known_hosts" => TargetClass::Startup,
            name if name.ends_with(".pub") => TargetClass::Startup,
            _ => TargetClass::Secret,
        }),
        ".gnupg" | ".aws" | ".azure" | ".kube" | ".password-store" => Some(TargetClass::Secret),
        ".docker" if tail.is_empty() || name == "config.json" => Some(TargetClass::Secret),
        ".netrc" | "_netrc" | ".pgpass" | ".npmrc" | ".pypirc" | ".git-credentials" | ".my.cnf" | ".mylogin.cnf"
        | ".vault-token" | ".boto" | ".s3cfg" | ".yarnrc.yml" => Some(TargetClass::Secret),
        ".config" => match tail.split('/').next().unwrap_or_default() {
            "gh" | "gcloud" | "op" | "doctl" | "hub" | "rclone" | "google-chrome" | "chromium" | "sops" => {
                Some(TargetClass::Secret)
            }
            "autostart" | "systemd" | "fish" | "environment.d" | "git" | "nvim" | "plasma-workspace" => {
                Some(TargetClass::Startup)
            }
            _ => None,
        },
        ".cargo" if name.starts_with("credentials") => Some(TargetClass::Secret),
        ".cargo" if name == "config.toml" || name == "env" => Some(TargetClass::Startup),
        ".gem" if name == "credentials" => Some(TargetClass::Secret),
        ".mozilla" => Some(TargetClass::Secret),
        ".local" if tail.starts_with("share/keyrings") => Some(TargetClass::Secret),
        ".local" if tail.starts_with("share/systemd") => Some(TargetClass::Startup),
        "Library" if tail.starts_with("LaunchAgents") => Some(TargetClass::Startup),
        "Library" if tail.starts_with("Keychains") => Some(TargetClass::Secret),
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

/// Names that mean the same in every directory.
fn anywhere(name: &str) -> Option<TargetClass> {
    let lower = name.to_ascii_lowercase();
    let template = ["example", "sample", "template", "dist", "tmpl", "test.example"]
        .iter()
        .any(|end| lower.rsplit(['.', '-', '_']).next() == Some(end));
    if template {
        return None;
    }
    let env = lower == ".env" || lower == ".envrc" || lower.starts_with(".env.") || lower.starts_with(".env-");
    let env = env || (lower.ends_with(".env") && !text::has_glob(name) && lower != "requirements.env");
    let key = [
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        ".netrc",
        ".pgpass",
        ".git-credentials",
        ".htpasswd",
        ".vault-token",
    ]
    .contains(&lower.as_str())
        || [".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks", ".keystore", ".asc.key", ".ppk"]
            .iter()
            .any(|end| lower.ends_with(end))
        || (lower.contains("secret") || lower.contains("credential"))
            && [".txt", ".json", ".yaml", ".yml", ".env", ".toml", ".ini"].iter().any(|end| lower.ends_with(end));
    (env || key).then_some(TargetClass::Secret)
}

/// Whether a name is that of a store of data: losing it loses more than a file.
pub(crate) fn is_database(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    [".db", ".sqlite", ".sqlite3", ".db3", ".mdb", ".accdb", ".rdb", ".ldf", ".mdf", ".ibd", ".frm", ".kdbx", ".duckdb"]
        .iter()
        .any(|end| name.ends_with(end))
}
