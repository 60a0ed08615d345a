//! What a child sees of our environment: an allow-list, because an unknown name may hold a secret.
//!
//! API keys, tokens and database addresses stay behind by default. A user who wants one of them in commands grants it
//! by name (`terminal.env_passthrough`).

use std::ffi::{OsStr, OsString};

/// Names that say who and where we are, how text looks, and where tool chains live. None of them holds a credential;
/// `SSH_AUTH_SOCK` leads to an agent that signs with the user's keys without giving them out, which `git push` needs.
const NAMES: &[&str] = &[
    // who and where
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "PWD",
    "TMPDIR",
    "TZ",
    "HOSTNAME",
    // how text looks
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPATH",
    "INFOPATH",
    // desktop and session
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "GPG_TTY",
    // certificates and proxies without credentials in their names
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "no_proxy",
    // tool chains
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "ANDROID_HOME",
    "NVM_DIR",
    "NVM_BIN",
    "NODE_PATH",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYTHONPATH",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "DOTNET_ROOT",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "PKG_CONFIG_PATH",
    "CC",
    "CXX",
    "CI",
];

/// Families of names that are safe as a whole.
const PREFIXES: &[&str] = &["LC_", "XDG_"];

/// The variables that a child gets: the allow-listed part of `ours` plus the names in `granted`.
///
/// A name that is not valid UTF-8 is never passed on. The order is that of `ours`.
pub fn for_child(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    granted: &[String],
) -> Vec<(OsString, OsString)> {
    ours.into_iter().filter(|(name, _)| is_allowed(name, granted)).collect()
}

fn is_allowed(name: &OsStr, granted: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || granted.iter().any(|g| g == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ours: &[&str], granted: &[&str]) -> Vec<String> {
        let ours = ours.iter().map(|name| (OsString::from(name), OsString::from("v")));
        let granted: Vec<String> = granted.iter().map(ToString::to_string).collect();
        for_child(ours, &granted).into_iter().map(|(name, _)| name.into_string().unwrap()).collect()
    }

    #[test]
    fn secrets_stay_behind_and_unknown_names_too() {
        let secrets =
            ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "GITHUB_TOKEN", "MY_THING", "BASH_ENV"];
        assert!(names(&secrets, &[]).is_empty());
    }

    #[test]
    fn the_everyday_names_and_the_granted_ones_pass() {
        let got = names(&["PATH", "LC_TIME", "XDG_RUNTIME_DIR", "GITHUB_TOKEN", "OTHER_TOKEN"], &["GITHUB_TOKEN"]);
        assert_eq!(got, ["PATH", "LC_TIME", "XDG_RUNTIME_DIR", "GITHUB_TOKEN"]);
    }
}
