//! Which paths are secret, protected, or able to plant code.

use std::ffi::OsString;
use std::path::Path;

use hermes_guard::paths::{Sensitivity, classify, secret_places, secrets_below};
use proptest::prelude::*;

fn of(path: &str) -> Sensitivity {
    classify(Path::new(path), Path::new("/home/u"), Path::new("/home/u/.hermes"))
}

/// Read, write, plants: `r`, `w`, `p` where there is a reason, `-` where there is none.
fn facets(path: &str) -> String {
    let found = of(path);
    let letter = |reason: Option<&str>, letter: char| reason.map_or('-', |_| letter);
    [letter(found.read, 'r'), letter(found.write, 'w'), letter(found.plants, 'p')].iter().collect()
}

#[test]
fn each_kind_of_place_has_its_answer() {
    for (expected, paths) in [
        (
            "r--",
            "/p/.env /p/a/.env.local /p/.env.production /p/.env.production.local /p/.ENV /p/.envrc /p/.env.test /p/.env.staging
             /p/server.pem /p/tls.key /p/a.p12 /p/a.PFX /p/a.kdbx /p/id_rsa /p/id_ed25519 /backup/.ssh/id_rsa_old /p/.netrc
             /p/.pypirc /p/.git-credentials /p/.aws/credentials /proc/self/environ
             /proc/1/task/2/environ /proc/1/smaps",
        ),
        (
            "rw-",
            "/home/u/.aws/credentials /home/u/.gnupg/x/y /home/u/.kube/config /home/u/.docker/config.json /home/u/.azure/a
             /home/u/.config/gh/hosts.yml /home/u/.config/gcloud/x /home/u/.netrc /home/u/.pgpass /home/u/.pypirc
             /home/u/.git-credentials /home/u/.mozilla/firefox/a.default/logins.json
             /home/u/.config/google-chrome/Default/Cookies /home/u/.config/BraveSoftware/Brave-Browser/Default/History
             /home/u/.hermes/.env /home/u/.hermes/auth.json /home/u/.hermes/auth.lock /home/u/.hermes/mcp-tokens/a.json
             /home/u/.hermes/webhook_subscriptions.json /home/u/.hermes/pairing/a /home/u/.hermes/hermes.db
             /home/u/.hermes/hermes.db-wal /home/u/.hermes/state.db /home/u/.hermes/sessions/2026/a.json
             /home/u/.hermes/profiles/office/.env /home/u/.hermes/profiles/office/auth.json /home/other/.aws/config
             /root/.kube/config /Users/ann/.netrc /dev/sda /dev/nvme0n1p1 /dev/mapper/root /run/secrets/token",
        ),
        (
            "rwp",
            "/home/u/.ssh/id_rsa /home/u/.ssh/id_ed25519 /home/u/.ssh/work /home/u/.SSH/ID_RSA /root/.ssh/id_rsa /home/u/.npmrc
             /etc/shadow /etc/shadow- /etc/gshadow /etc/sudoers /etc/sudoers.d/a /etc/ssl/private/a /etc/ssh/ssh_host_rsa_key
             /home/u/.hermes/config.yaml /home/u/.hermes/profiles/office/config.yaml /proc/1/mem",
        ),
        (
            "-wp",
            "/home/u/.ssh/id_rsa.pub /home/u/.ssh/known_hosts /home/u/.ssh/authorized_keys /home/u/.ssh/config /home/u/.ssh
             /etc/hosts /etc/cron.d/a /etc /boot/grub/grub.cfg /etc/ssl/certs/ca.pem /usr/lib/systemd/system/a.service
             /var/run/docker.sock /run/docker.sock /run/user/1000/podman/podman.sock /proc/sys/kernel/x /var/spool/cron/u
             /proc/sysrq-trigger /Library/LaunchDaemons/a.plist",
        ),
        ("r-p", "/home/u/.hermes/skills/.hub/index-cache/a.json"),
        ("-w-", "/home/u/.aws /home/u/.docker /home/u/.docker/daemon.json /home/u/.hermes/pending/skills/a.json /sys/power/state"),
        (
            "--p",
            "/home/u/.bashrc /home/u/.bash_profile /home/u/.zshrc /home/u/.zshenv /home/u/.profile /home/u/.config/fish/config.fish
             /home/u/.config/autostart/a.desktop /home/u/.config/systemd/user/a.service /home/u/Library/LaunchAgents/a.plist
             /p/.git/hooks/pre-commit /p/.git/config /p/sub/.git/modules/a/hooks/post-checkout /home/u/.gitconfig
             /home/u/.local/bin/x /usr/local/bin/x /usr/bin/env /bin/sh /lib64/ld.so /home/u/.hermes/plugins/a.py
             /home/u/.hermes/skills/x/SKILL.md /home/u/.hermes/SOUL.md /home/u/.hermes/profiles/office/hooks/a",
        ),
        (
            "---",
            "/ /home /home/u /home/u/project /home/u/project/src/main.rs /p/.env.example /p/.env.sample /p/.env.template
             /p/.env.local.example /p/env /p/.environment /p/.env/bin/python /p/.gitignore /p/.github/workflows/ci.yml
             /p/.git/HEAD /p/.npmrc /p/config.yaml /p/id_rsa.pub /p/cacert.pem /p/fullchain.pem /p/key.rs /p/keys/a.txt
             /home/u/.ssh-old /home/u/.awsome/x /home/u/.bash /etcetera/x /home/u/.hermes/logs/a.log /home/u/project/sessions/a
             /tmp/x /dev/null /dev/stdout /proc/cpuinfo /proc/self/status /home/u/.hermesx/auth.json /home/u/x/.bashrc
             /var/log/syslog /libertine/x /home/u/.config/ghx/a /p/monkey /p/a.pem.txt",
        ),
    ] {
        for path in paths.split_whitespace() {
            assert_eq!(facets(path), expected, "{path}: {:?}", of(path));
        }
    }
}

#[test]
fn the_reason_fits_the_place() {
    assert_eq!(of("/home/u/.ssh/id_rsa").read, Some("holds private SSH keys"));
    assert_eq!(of("/home/u/.ssh/authorized_keys").plants, Some("decides which keys and hosts ssh trusts"));
    assert_eq!(of("/etc/shadow").read, Some("holds the passwords of all users"));
    assert_eq!(of("/etc/cron.d/x").plants, Some("is run on a schedule"));
    assert_eq!(of("/home/u/.hermes/.env").read, Some("holds the agent's own credentials"));
}

#[test]
fn an_agent_home_elsewhere_is_protected_and_so_is_the_usual_one() {
    let of = |path: &str, agent: &str| classify(Path::new(path), Path::new("/home/u"), Path::new(agent));
    for (path, agent) in [
        ("/srv/agent/auth.json", "/srv/agent"),
        ("/srv/agent/auth.json", "/srv/agent/"),
        ("/srv/agent/profiles/b/auth.json", "/srv/agent"),
        ("/srv/agent/auth.json", "/srv/agent/profiles/a"),
        ("/srv/agent/profiles/b/auth.json", "/srv/agent/profiles/a"),
        ("/home/u/.hermes/auth.json", "/srv/agent"),
        ("/root/.hermes/auth.json", "/srv/agent"),
        ("/home/v/.hermes/profiles/a/auth.json", "/srv/agent"),
    ] {
        assert!(of(path, agent).read.is_some(), "{path} with {agent}");
    }
    assert!(of("/srv/other/auth.json", "/srv/agent").is_ordinary());
}

#[test]
fn a_home_at_the_root_is_a_home() {
    let found = classify(Path::new("/.ssh/id_rsa"), Path::new("/"), Path::new("/.hermes"));
    assert_eq!(found.read, Some("holds private SSH keys"));
    assert!(classify(Path::new(""), Path::new(""), Path::new("")).is_ordinary());
}

#[test]
fn reading_a_whole_folder_discloses_what_lies_below() {
    let below = |path: &str| secrets_below(Path::new(path), Path::new("/home/u"), Path::new("/home/u/.hermes"));
    for path in [
        "/",
        "/home",
        "/home/u",
        "/home/u/.ssh",
        "/home/u/.config",
        "/home/u/.hermes",
        "/etc",
        "/etc/ssh",
        "/home/v/.aws",
        "/proc",
        "/p/.aws",
        "/root",
        "/home/v",
        "/home/v/.hermes",
        "/home/u/.hermes/profiles",
        "/home/u/.hermes/profiles/work",
    ] {
        assert!(below(path).is_some(), "{path}");
    }
    for path in [
        "/home/u/project",
        "/usr",
        "/tmp",
        "/home/u/.cache",
        "/p",
        "/etc/apt",
        "/home/u/.ssh-old",
        "/home/u/.ssh/id_rsa.pub",
        "/etc/ssl/certs",
    ] {
        assert_eq!(below(path), None, "{path}");
    }
}

/// A machine on which these files are, as [`secret_places`] asks for it.
fn names_in(files: &str) -> impl Fn(&Path) -> Vec<OsString> {
    move |folder| {
        let below = files.split_whitespace().filter_map(|file| Path::new(file).strip_prefix(folder).ok());
        below.filter_map(|rest| Some(rest.iter().next()?.to_owned())).collect()
    }
}

#[test]
fn every_place_of_secrets_is_found() {
    let files = "/home/u/.ssh/id_rsa /home/u/.cargo/credentials.toml /home/u/.cargo/config.toml /home/u/.bashrc /home/u/.env
        /home/u/.config/BraveSoftware/Brave-Browser/x /home/u/.config/google-chrome-beta/x /home/u/.docker/cli-plugins/x
        /home/u/.m2/settings.xml /home/u/.m2/repository/x /home/u/.hermes/config.yaml /home/v/.aws/config /home/v/.profile
        /home/v/.hermes/state.db /root/.ssh/id_rsa /root/notes /etc/shadow /etc/shadow- /etc/passwd /etc/ssh/sshd_config
        /etc/ssh/ssh_host_rsa_key /etc/ssh/ssh_host_rsa_key.pub /etc/ssl/certs/ca.pem /proc/1/environ /dev/sda";
    let places = secret_places(Path::new("/home/u"), Path::new("/srv/agent/profiles/a"), names_in(files));
    let has = |path: &str| places.iter().any(|place| Path::new(path).starts_with(place));
    for path in [
        "/home/u/.ssh/config",
        "/home/u/.cargo/credentials.toml",
        "/home/u/.config/BraveSoftware/x",
        "/home/u/.config/google-chrome-beta",
        "/home/u/.m2/settings.xml",
        "/home/v/.aws",
        "/home/v/.hermes",
        "/root/.ssh",
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/ssh/ssh_host_rsa_key",
        // Fixed names, whether they are there or not.
        "/home/u/.netrc",
        "/home/u/.kube/config",
        "/home/u/.git-credentials",
        "/etc/wireguard",
        // Homes of the agent.
        "/srv/agent/.env",
        "/srv/agent/profiles/a/config.yaml",
        "/home/u/.hermes/config.yaml",
    ] {
        assert!(has(path), "{path} in {places:#?}");
    }
    for path in [
        "/home/u/.cargo/config.toml",
        "/home/u/.bashrc",
        "/home/u/.env",
        "/home/u/.config",
        "/home/u/.m2/repository",
        "/home/v/.profile",
        "/home/v/.netrc",
        "/root/notes",
        "/etc/passwd",
        "/etc/ssh/sshd_config",
        "/etc/ssh/ssh_host_rsa_key.pub",
        "/etc/ssl/certs/ca.pem",
        "/proc/1/environ",
        "/dev/sda",
        "/srv/agent.old",
    ] {
        assert!(!has(path), "{path} in {places:#?}");
    }
    let nested = places.iter().filter(|place| places.iter().any(|other| *place != other && place.starts_with(other)));
    assert_eq!(nested.count(), 0, "{places:#?}");
}

#[test]
fn what_is_found_is_what_is_refused_when_it_is_asked_for() {
    let files = "/home/u/.ssh/id_rsa /home/u/.cargo/credentials /root/.kube/config /etc/sudoers.d/x /etc/gshadow";
    let (home, agent) = (Path::new("/home/u"), Path::new("/home/u/.hermes"));
    for place in secret_places(home, agent, names_in(files)) {
        let itself = classify(&place, home, agent).read.is_some();
        assert!(itself || secrets_below(&place, home, agent).is_some(), "{}", place.display());
    }
}

proptest! {
    #[test]
    fn case_changes_no_answer(path in "(/(home/u|root|etc|p|\\.ssh|\\.env|\\.aws|\\.git|hooks|\\.hermes|sessions|id_rsa|a\\.pem|x)){1,6}") {
        prop_assert_eq!(of(&path), of(&path.to_ascii_uppercase()));
    }

    #[test]
    fn any_bytes_are_judged(path in any::<String>(), home in any::<String>(), agent in any::<String>()) {
        let _ = classify(Path::new(&path), Path::new(&home), Path::new(&agent));
        let _ = secrets_below(Path::new(&path), Path::new(&home), Path::new(&agent));
    }
}
