//! What commands ask of a path: whether it is a secret or a place from which programs start, and whether it is a store of
//! data. The first is asked of the one table that file tools ask, too ([`paths`](crate::paths)); nothing is listed twice.

use crate::finding::TargetClass;
use crate::paths::{Kind, kind};
use crate::world::World;

/// Secret or startup, if the absolute path is one of these.
pub(crate) fn classify(path: &str, world: &World) -> Option<TargetClass> {
    Some(match kind(path, &world.home, &world.agent_home)? {
        Kind::Secret => TargetClass::Secret,
        Kind::Startup => TargetClass::Startup,
    })
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
    use crate::text;

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

    #[test]
    fn both_tables_live_on_in_one() {
        let world = World::new("/home/u", "/home/u/project");
        let (secret, startup) = (Some(TargetClass::Secret), Some(TargetClass::Startup));
        for (class, paths) in [
            (
                secret,
                "/home/u/.ssh /home/u/.ssh/work /home/bob/.ssh/id_rsa /backup/.ssh/work /home/u/.aws /home/u/.docker
                 /home/u/.docker/contexts/a /home/u/.npmrc /home/u/.netrc /home/u/.config/hcloud/cli.toml /home/u/.yarnrc.yml
                 /home/u/.cache/huggingface/token /home/u/.gradle/gradle.properties /etc/shadow /etc/shadow- /etc/ppp/pap-secrets
                 /private/etc/master.passwd /var/backups/shadow.bak /var/root/.netrc /etc/letsencrypt/live/a/privkey.pem
                 /srv/prod.env /srv/.env-old /srv/token.json /srv/api_key.prod.txt /srv/my-credentials.yaml /srv/cert-key.pem
                 /srv/ca.key /srv/a.agekey /srv/kubeconfig /proc/1/environ /home/u/.hermes/sessions/a /home/U/.SSH/ID_RSA",
            ),
            (
                startup,
                "/home/u/.ssh/config /home/u/.ssh/id_rsa.pub /home/u/.ssh/environment /home/u/.zshrc /home/bob/.bashrc /etc/passwd
                 /home/u/.config/sway/config /home/u/.condarc /home/u/.cargo/env /home/u/.local/bin/x /home/u/.hermes/config.yaml
                 /home/u/.docker/daemon.json /private/etc/hosts /etc/letsencrypt/live/a/fullchain.pem /srv/.git/info/attributes
                 /run/docker.sock /run/user/1000/podman/podman.sock /lib/systemd/system/a.service /proc/sys/vm/x",
            ),
            (
                None,
                "/home/u/project/src/a.c /home/u/.local/bin /home/u/bin /usr/bin/env /usr/src/app/main.c /sys/power/state
                 /srv/.env.local.example /srv/.env.dist /srv/sample.credentials.json /srv/default.env /srv/ca.pem /srv/pubkey.pem
                 /srv/secrets.rs /srv/tokens.txt /proc/self/maps /home/u/.cache /home/u/.config /srv/requirements.env",
            ),
        ] {
            for path in paths.split_whitespace() {
                assert_eq!(classify(path, &world), class, "{path}");
            }
        }
        for (class, patterns) in [
            (
                secret,
                "/home/u/.ssh/* /home/u/.ssh/id_* /home/u/.AW?/x /backup/.ssh/* /etc/s* /etc/NetworkM*/system-connections/a /srv/*.pem",
            ),
            (secret, "/home/u/.* /srv/.env* /srv/.env.* /srv/.env.ex* /home/u/.aws/[a-c]redentials"),
            (startup, "/home/u/.ssh/*.pub /home/u/.s?h/known_hosts /etc/* /etc/ssh/* /home/u/.zsh*"),
            (None, "/home/u/* /home/u/.config/* /srv/* /srv/to* /srv/k* /srv/*.md"),
        ] {
            for pattern in patterns.split_whitespace() {
                assert_eq!(classify(&text::live(pattern), &world), class, "{pattern}");
            }
        }
    }

    #[test]
    fn the_home_in_which_the_work_lies_is_a_home() {
        let world = World::new("/root", "/home/u/project");
        for (path, class) in [
            ("/home/u", TargetClass::Home),
            ("/root", TargetClass::Home),
            ("/home/u/notes", TargetClass::Outside),
            ("/home/u/project/a", TargetClass::Workspace),
            ("/home/u/.ssh/id_rsa", TargetClass::Secret),
            ("/home/bob", TargetClass::OtherUser),
            ("/home/bob/notes", TargetClass::OtherUser),
            ("/home/bob/.ssh/id_rsa", TargetClass::Secret),
            ("/home/u2", TargetClass::OtherUser),
            ("/home", TargetClass::System),
        ] {
            assert_eq!(crate::place::classify(path, &world), class, "{path}");
        }
        for wipe in ["rm -rf /home/u", "rm -rf /home/u/*", "cd .. && rm -rf ."] {
            assert_eq!(crate::judge(wipe, &world).verdict, crate::Verdict::Hardline, "{wipe}");
        }
    }
}
