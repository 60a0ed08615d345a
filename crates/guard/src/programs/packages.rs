//! Package managers of whole systems: installing and removing asks, looking and refreshing does not.
//!
//! Their caches are theirs: emptying one is safe.

use super::options::{gnu, leading};
use super::verbs::{self, Rule, Tool, asks, fine, tool};
use super::{Program, prints};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text::HOLE;

pub(super) const PROGRAMS: [Program; 35] = verbs::programs(&TOOLS, model);
pub(super) const FLAGS: &[Program] = &[
    prints(&["dpkg"], dpkg),
    prints(&["rpm", "rpmbuild"], rpm),
    prints(&["pacman", "yay", "paru", "pikaur", "trizen", "aura"], pacman),
    prints(&["emerge"], emerge),
    prints(&["softwareupdate"], softwareupdate),
    prints(&["nix-env"], nix_env),
    prints(&["nix"], nix),
];

const INSTALLS: Effect = Effect::Package;
const SYSTEM: &str = "installs or removes software of the whole system";
const SOURCES: &str = "changes from where software of this system comes";

/// Reports a change of what is installed.
fn changes(call: &mut Call<'_, '_>) {
    let target = call.arguments().iter().filter(|word| !word.starts_with('-')).cloned().collect::<Vec<_>>().join(" ");
    call.asks(INSTALLS, &target, SYSTEM);
}

const APT: &[Rule] = &[
    fine("install|upgrade|dist-upgrade|full-upgrade|safe-upgrade|build-dep|reinstall")
        .only("d download-only print-uris"),
    asks(
        "install|remove|purge|upgrade|dist-upgrade|full-upgrade|safe-upgrade|autoremove|autopurge|auto-remove|\
            reinstall|build-dep|dselect-upgrade|satisfy|forbid-version|fetch",
        INSTALLS,
        SYSTEM,
    ),
    asks("edit-sources|modernize-sources", Effect::Persistence, SOURCES),
    asks("history-undo|history-redo|history-rollback", INSTALLS, SYSTEM),
];
const DNF: &[Rule] = &[
    fine("*").only("downloadonly assumeno"),
    asks(
        "install|localinstall|reinstall|remove|erase|rm|autoremove|update|upgrade|up|upgrade-minimal|\
            update-minimal|update-to|downgrade|distro-sync|distribution-synchronization|dsync|swap|groupinstall|\
            groupremove|groupupdate|builddep|offline-upgrade|system-upgrade|offline-distrosync|in|localupdate|\
            remove-n",
        INSTALLS,
        SYSTEM,
    ),
    asks("group|groups|environment install|remove|upgrade|update", INSTALLS, SYSTEM),
    asks("module install|remove|enable|disable|reset|switch-to|update", INSTALLS, SYSTEM),
    asks("history undo|rollback|redo", INSTALLS, SYSTEM),
    asks("copr enable|disable|remove", Effect::Persistence, SOURCES),
    asks("config-manager", Effect::Persistence, SOURCES),
    asks("config-manager-addrepo|addrepo", Effect::Persistence, SOURCES),
];
const ZYPPER: &[Rule] = &[
    fine("*").only("D d download-only"),
    asks(
        "install|in|remove|rm|update|up|dist-upgrade|dup|patch|install-new-recommends|inr|source-install|si|\
            verify|ve|removeptf|rmptf",
        INSTALLS,
        SYSTEM,
    ),
    asks(
        "addrepo|ar|removerepo|rr|modifyrepo|mr|renamerepo|nr|addservice|as|removeservice|rs",
        Effect::Persistence,
        SOURCES,
    ),
];
const APK: &[Rule] = &[asks("add|del|upgrade|fix", INSTALLS, SYSTEM).unless("s simulate")];
const PKG: &[Rule] = &[
    asks("install|delete|remove|uninstall|upgrade|autoremove|add|reinstall|set|full-upgrade", INSTALLS, SYSTEM),
    asks("bootstrap", INSTALLS, SYSTEM),
];
const XBPS_INSTALL: &[Rule] = &[asks("*", INSTALLS, SYSTEM).unless("D download-only")];
const ANY: &[Rule] = &[asks("*", INSTALLS, SYSTEM)];
const BREW: &[Rule] = &[
    fine("bundle list|check|dump|exec"),
    fine("tap").only("repair"),
    asks(
        "install|reinstall|uninstall|remove|rm|upgrade|untap|link|ln|unlink|autoremove|bundle|migrate|tap-new|\
            extract|postinstall|switch",
        INSTALLS,
        SYSTEM,
    ),
    asks("tap *", INSTALLS, SOURCES),
    asks("cask install|uninstall|upgrade|reinstall|zap", INSTALLS, SYSTEM),
    asks("services stop|restart|kill|cleanup|unload", Effect::Service, "stops or restarts services"),
    asks("services start|run", Effect::Service, "starts services, also at the next login"),
    asks("update-reset", Effect::VersionControl, "throws away changes in the package lists"),
];
const PORT: &[Rule] = &[asks(
    "install|uninstall|upgrade|activate|deactivate|selfupdate|reclaim|load|unload|restore|migrate",
    INSTALLS,
    SYSTEM,
)];
const SNAP: &[Rule] = &[
    fine("refresh").only("list time"),
    asks("install|remove|refresh|revert|disable|enable|switch|try|ack|unalias|forget|restore", INSTALLS, SYSTEM),
    asks("stop|restart", Effect::Service, "stops or restarts services"),
    asks("set|unset|connect|disconnect", Effect::Service, "changes settings of this host"),
    asks("reboot", Effect::Power, "restarts the machine"),
];
const FLATPAK: &[Rule] = &[
    asks("install|uninstall|remove|update|upgrade|repair|make-current|mask", INSTALLS, SYSTEM),
    asks("remote-add|remote-delete|remote-modify", Effect::Persistence, SOURCES),
    asks("override|permission-set|permission-reset", Effect::Permission, "changes what applications may reach"),
    asks("kill", Effect::ProcessKill, "ends applications by name"),
];
const CHOCO: &[Rule] = &[
    asks("install|uninstall|upgrade|update|pin|feature|unpackself", INSTALLS, SYSTEM),
    asks("source|sources add|remove|disable|enable", Effect::Persistence, SOURCES),
    asks("push|apikey|setapikey", INSTALLS, "publishes a package"),
];
const WINGET: &[Rule] = &[
    asks("install|uninstall|remove|rm|add|import|repair", INSTALLS, SYSTEM),
    asks("upgrade|update", INSTALLS, SYSTEM).only("all r recurse id name query"),
    asks("upgrade|update *", INSTALLS, SYSTEM),
    asks("configure", INSTALLS, SYSTEM),
    asks("source add|remove|reset", Effect::Persistence, SOURCES),
    asks("settings", Effect::Service, "changes settings of this host").only("enable disable"),
];
const SCOOP: &[Rule] = &[
    asks("install|uninstall|reset|import", INSTALLS, SYSTEM),
    asks("update *", INSTALLS, SYSTEM),
    asks("update", INSTALLS, SYSTEM).only("a all"),
    asks("bucket add|rm", Effect::Persistence, SOURCES),
];
const GUIX: &[Rule] = &[
    asks("install|remove|upgrade|pull", INSTALLS, SYSTEM),
    asks("package", INSTALLS, SYSTEM).only("i install r remove u upgrade m manifest roll-back d delete-generations"),
    asks("system|home reconfigure|roll-back|delete-generations|switch-generation", INSTALLS, SYSTEM),
    asks("gc", INSTALLS, "deletes what is installed"),
];
const SIMPLE: &[Rule] = &[
    asks(
        "install|remove|uninstall|upgrade|erase|delete|in|it|rm|up|add|bundle-add|bundle-remove|update-system|\
            autoremove|reinstall|full-upgrade|install-new|upgrade-all|clean-system",
        INSTALLS,
        SYSTEM,
    ),
    asks("add-repo|remove-repo|ar|rr", Effect::Persistence, SOURCES),
];
const SNAPCRAFT: &[Rule] = &[asks(
    "upload|push|release|close|promote|register|register-key|set-default-track|upload-metadata",
    INSTALLS,
    "publishes or withdraws versions that others use",
)];
const KEYS: &[Rule] = &[asks("add|del|adv|*", Effect::Persistence, "changes whose software this system trusts")];
const NIXOS: &[Rule] =
    &[fine("build|build-vm|dry-build|dry-activate|list-generations|repl|edit"), asks("*", INSTALLS, SYSTEM)];
const CHANNEL: &[Rule] = &[];
const CASK: &[Rule] = &[asks("install|uninstall|upgrade|purchase|lucky|get", INSTALLS, SYSTEM)];

const TOOLS: [Tool; 35] = [
    tool(&["apt", "apt-get", "aptitude", "nala", "apt-fast", "deb-get", "pkcon"], APT)
        .valued("otcaP", "option= target-release= config-file= default-release= host-architecture= solver=")
        .dry("dry-run s simulate just-print no-act recon"),
    tool(&["apt-mark"], &[asks("minimize-manual", INSTALLS, SYSTEM)]),
    tool(&["dnf", "dnf5", "yum", "microdnf", "tdnf", "urpm"], DNF)
        .valued("cdexR", "config= enablerepo= disablerepo= repo= setopt= exclude= installroot= releasever= forcearch="),
    tool(&["zypper"], ZYPPER).valued("cDRrtpx", "config= reposd-dir= root= repo= type= plus-repo= no-refresh"),
    tool(&["apk"], APK)
        .valued("pXt", "root= repository= virtual= arch= keys-dir= repositories-file=")
        .dry("s simulate"),
    tool(&["pkg", "pkgin", "pkg_mgr"], PKG).valued("jcrC", "jail= chroot= rootdir=").dry("n dry-run"),
    tool(&["pkg_add", "pkg_delete", "installpkg", "removepkg", "upgradepkg", "sbopkg"], ANY).dry("n s dry-run"),
    tool(&["xbps-install"], XBPS_INSTALL).valued("CcrR", "config= cachedir= rootdir= repository=").dry("n dry-run"),
    tool(&["xbps-remove"], ANY).valued("Cr", "config= rootdir=").dry("n dry-run"),
    tool(&["xbps-pkgdb", "xbps-reconfigure", "xbps-alternatives"], ANY),
    tool(&["brew"], BREW).dry("n dry-run"),
    tool(&["port"], PORT).dry("y"),
    tool(&["mas"], CASK),
    tool(&["snap"], SNAP).valued("r", "channel= revision= cohort="),
    tool(&["snapcraft"], SNAPCRAFT),
    tool(&["flatpak"], FLATPAK).valued("", "arch= installation= columns= command= branch="),
    tool(&["choco", "chocolatey", "cinst", "cuninst", "cup"], CHOCO).dry("noop whatif what-if"),
    tool(&["winget"], WINGET).valued("qvsme", "id= name= version= source= scope= query= manifest= moniker="),
    tool(&["scoop"], SCOOP).valued("a", ""),
    tool(&["guix"], GUIX).valued("e", "expression=").dry("n dry-run"),
    tool(
        &["opkg", "eopkg", "swupd", "pamac", "slackpkg", "urpmi", "urpme", "cards", "pisi", "tazpkg", "rpm-ostree"],
        SIMPLE,
    )
    .dry("dry-run test n noaction"),
    tool(&["add-apt-repository", "apt-add-repository"], &[asks("*", Effect::Persistence, SOURCES)]).dry("list l L"),
    tool(
        &["apt-key", "pacman-key"],
        &[
            fine("list|finger|export|exportall"),
            asks("*", Effect::Persistence, "changes whose software this system trusts"),
        ],
    ),
    tool(&["rpmkeys"], KEYS).dry("checksig K list"),
    tool(&["alien"], ANY).dry("to-deb d to-rpm r to-tgz t generate g"),
    tool(&["gdebi", "debi", "gdebi-gtk"], ANY),
    tool(&["dpkg-reconfigure"], ANY),
    tool(
        &["update-alternatives", "alternatives", "archlinux-java", "eselect"],
        &[asks("java|kernel|profile|python set", INSTALLS, SYSTEM), asks("set", INSTALLS, SYSTEM)],
    ),
    tool(&["nixos-rebuild", "darwin-rebuild", "home-manager"], NIXOS).valued("IA", "flake= option="),
    tool(&["nix-channel"], CHANNEL),
    tool(&["nix-collect-garbage"], CHANNEL),
    tool(&["installer"], CHANNEL),
    tool(&["do-release-upgrade", "unattended-upgrade", "unattended-upgrades", "freebsd-update"], CHANNEL),
    tool(
        &["tlmgr"],
        &[
            asks("install|remove|uninstall|update *", INSTALLS, SYSTEM),
            asks("update", INSTALLS, SYSTEM).only("all self").unless("list"),
        ],
    )
    .single_dash(""),
    tool(&["krew", "kubectl-krew"], &[asks("install|uninstall|upgrade", INSTALLS, SYSTEM)]),
];

fn model(call: &mut Call<'_, '_>) {
    let Some(tool) = verbs::find(&TOOLS, &call.name) else { return };
    let arguments: Vec<String> = call.arguments().to_vec();
    let has = |names: &[&str]| arguments.iter().any(|word| names.contains(&word.as_str()));
    match call.name.as_str() {
        "apt" | "apt-get" | "aptitude" => {
            let options = tool.read(&arguments);
            for setting in options.values("o option").map(str::to_owned).collect::<Vec<_>>() {
                // `APT::Update::Pre-Invoke::=command` and its kin are run by a shell.
                if let Some((name, value)) = setting.split_once('=')
                    && (name.contains("Invoke")
                        || name.contains("Proxy-Auto-Detect")
                        || name.contains("Pre-Install-Pkgs"))
                {
                    call.shell(value);
                }
            }
        }
        "cinst" | "cuninst" | "cup" | "pkg_add" | "pkg_delete" if !arguments.is_empty() => return changes(call),
        "installer" if has(&["-pkg", "-package"]) => return changes(call),
        "msiexec" if arguments.iter().any(|word| is_msi_action(word)) => return changes(call),
        "do-release-upgrade" | "unattended-upgrade" | "unattended-upgrades"
            if !has(&["-c", "--check-dist-upgrade-only", "--dry-run", "-h", "--help"]) =>
        {
            return changes(call);
        }
        "freebsd-update" if has(&["install", "upgrade", "rollback"]) => return changes(call),
        "nix-channel" if has(&["--add", "--remove", "--rollback", "--update"]) => {
            return call.asks(Effect::Persistence, "channels", SOURCES);
        }
        "nix-collect-garbage" if has(&["-d", "--delete-old", "--delete-older-than"]) && !has(&["--dry-run"]) => {
            return call.asks(INSTALLS, "old generations", "deletes the versions to which this system could go back");
        }
        "update-alternatives" | "alternatives"
            if has(&["--set", "--install", "--remove", "--remove-all", "--auto", "--config", "--set-selections"]) =>
        {
            return changes(call);
        }
        "alien" if has(&["-i", "--install"]) => return changes(call),
        "xbps-remove"
            if arguments.iter().all(|word| matches!(word.as_str(), "-O" | "-y" | "-Oy" | "--clean-cache")) =>
        {
            return;
        }
        "urpmi" | "urpme" | "sbopkg" if !arguments.is_empty() && !has(&["--test"]) => return changes(call),
        "xbps-install"
            if arguments.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('u')) =>
        {
            let tool_options = tool.read(&arguments);
            if !verbs::is_dry(&tool_options, "n dry-run") {
                return changes(call);
            }
        }
        "snapcraft" | "add-apt-repository" | "apt-add-repository" if has(&["-l", "-L", "--list"]) => return,
        _ => {}
    }
    tool.judge(call);
}

fn is_msi_action(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let action = lower.trim_start_matches(['/', '-']);
    lower.starts_with(['/', '-']) && matches!(action, "i" | "x" | "package" | "uninstall" | "p" | "f" | "a" | "update")
}

/// Verbs of `dpkg` are options.
fn dpkg(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "oD",
        "install unpack configure remove purge update-avail merge-avail clear-avail set-selections clear-selections \
         add-architecture= remove-architecture= status list listfiles search print-avail get-selections audit verify \
         contents info extract vextract field fsys-tarfile control no-act dry-run simulate root= admindir= instdir= \
         force-all triggers-only record-avail help version path-exclude= path-include= pre-invoke= post-invoke= \
         status-logger=",
    ));
    for script in options.values("pre-invoke post-invoke status-logger").map(str::to_owned).collect::<Vec<_>>() {
        call.shell(&script);
    }
    call.print(&HOLE.to_string());
    if call.name == "dpkg-deb" || options.has("no-act dry-run simulate help version") {
        return;
    }
    let acts = "i install unpack configure r remove P purge set-selections clear-selections add-architecture \
                remove-architecture clear-avail";
    if options.has(acts) && !options.has("l list s status L listfiles S search c contents I info p") {
        changes(call);
    }
}

fn rpm(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "DEr",
        "install upgrade freshen erase reinstall import initdb rebuilddb query verify checksig test eval= define= root= \
         dbpath= pipe= queryformat= restore setperms setugids percent hash nodeps force replacepkgs allmatches",
    ));
    for text in options.values("eval define E D").map(str::to_owned).collect::<Vec<_>>() {
        // `%(…)` in a macro is run by a shell.
        for script in text.split("%(").skip(1) {
            call.shell(script.rsplit_once(')').map_or(script, |(script, _)| script));
        }
    }
    if let Some(program) = options.value("pipe").map(str::to_owned) {
        call.shell(&program);
    }
    call.print(&HOLE.to_string());
    if call.name == "rpmbuild" || options.has("q query V verify K checksig test help version") {
        return;
    }
    if options.has("import") {
        return call.asks(Effect::Persistence, "keys", "changes whose software this system trusts");
    }
    if options.has("i install U upgrade F freshen e erase reinstall restore setperms setugids") {
        changes(call);
    }
}

fn pacman(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "bro",
        "sync remove upgrade query database deptest files search info list groups refresh sysupgrade clean print \
         downloadonly dbpath= root= config= cachedir= arch= noconfirm needed help version yay getpkgbuild show",
    ));
    call.print(&HOLE.to_string());
    if options.has("h help V version p print") || options.has("Q query T deptest F files G getpkgbuild P show") {
        return;
    }
    let looks = options.has("s search i info l list g groups");
    let clears = options.has("c clean") && !options.has("Y yay");
    let installs = !options.operands.is_empty() || options.has("u sysupgrade");
    let acts = if options.has("S sync") {
        !looks && !clears && installs && !options.has("w downloadonly")
    } else if options.has("R remove U upgrade D database Y yay B build") {
        true
    } else {
        // The helpers take a bare name, or nothing at all, as a wish to install.
        call.name != "pacman"
    };
    if acts {
        changes(call);
    }
}

fn emerge(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "j?",
        "pretend search searchdesc info list-sets sync metadata regen fetchonly fetch-all-uri unmerge depclean prune \
         deselect clean jobs=? config resume help version root= exclude=",
    ));
    call.print(&HOLE.to_string());
    if options.has("p pretend s search S searchdesc info list-sets f fetchonly F fetch-all-uri h help V version") {
        return;
    }
    if !options.operands.is_empty() || options.has("c depclean P prune C unmerge W deselect resume r") {
        changes(call);
    }
}

fn softwareupdate(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("", "install list download all recommended restart background-critical schedule=?"));
    call.print(&HOLE.to_string());
    if options.has("i install install-rosetta R restart fetch-full-installer") {
        changes(call);
    }
}

fn nix_env(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "pfAIsjG",
        "install upgrade uninstall set rollback switch-generation= delete-generations query profile= file= \
            attr= dry-run",
    ));
    call.print(&HOLE.to_string());
    if options.has("dry-run q query help version") {
        return;
    }
    if options.has("i install u upgrade e uninstall set rollback G switch-generation delete-generations") {
        changes(call);
    }
}

/// `nix run`, `nix develop -c program`, `nix profile install`.
fn nix(call: &mut Call<'_, '_>) {
    let options =
        call.options(&leading("jI", "option= extra-experimental-features= experimental-features= store= log-format="));
    call.print(&HOLE.to_string());
    let Some((verb, rest)) = options.operands.split_first() else { return };
    if options.has("help") || rest.iter().any(|word| word == "--help") {
        return;
    }
    match verb.as_str() {
        "profile"
            if matches!(
                rest.first().map(String::as_str),
                Some("install" | "add" | "remove" | "upgrade" | "rollback" | "wipe-history")
            ) =>
        {
            changes(call);
        }
        "run" | "shell" | "develop" | "bundle" => {
            let source = rest.iter().find(|word| !word.starts_with('-')).cloned().unwrap_or_default();
            if super::registries::is_bare_address(&source) {
                call.asks(Effect::ExecuteRemote, &source, "runs code from an address");
            }
            let at = rest.iter().position(|word| matches!(word.as_str(), "-c" | "--command")).map(|at| at + 1);
            if let Some(words) = at.and_then(|at| rest.get(at..)) {
                call.run(words.to_vec());
            }
        }
        "upgrade-nix" => changes(call),
        "store" if matches!(rest.first().map(String::as_str), Some("delete" | "gc")) => {
            call.asks(INSTALLS, "the store", "deletes what is installed");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn systems_change_by_installing_and_removing() {
        pairs(&[
            ("sudo apt install -y tcpdump", "apt show tcpdump"),
            ("apt-get -y remove nginx", "apt-get -s remove nginx"),
            ("apt-get -o Dpkg::Use-Pty=0 install x", "sudo apt-get -o Acquire::Retries=3 update"),
            ("apt-get update -o APT::Update::Pre-Invoke::='rm -rf data'", "apt-get update"),
            ("dpkg -i tool.deb", "dpkg -c tool.deb"),
            ("rpm -Uvh x.rpm", "rpm -qi x"),
            ("rpm --eval '%(rm -rf data)'", "rpm --eval '%{_arch}'"),
            ("pacman -Syu", "pacman -Sy"),
            ("pacman -Rns x", "pacman -Scc"),
            ("yay tool", "yay -Ss tool"),
            ("emerge -av vim", "emerge -pv vim"),
            ("xbps-install -Su", "xbps-install -S"),
            ("brew services stop x", "brew services list"),
            ("brew upgrade", "brew upgrade --dry-run"),
            ("winget upgrade --all", "winget upgrade"),
            ("snap refresh", "snap refresh --list"),
            ("dnf history undo 4", "dnf history list"),
            ("nix profile install nixpkgs#hello", "nix develop -c make"),
        ]);
    }
}
