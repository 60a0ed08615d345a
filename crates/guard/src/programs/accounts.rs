//! Scheduled jobs, users and groups: what changes them asks, what they will run is judged as well.

use super::options::{gnu, single_dash};
use super::rows::{self, Tool, tool};
use super::{Kind, Program, interpreters, plain, runs};
use crate::eval::{Call, Machine};
use crate::finding::Effect;
use crate::text;

pub(super) const PROGRAMS: &[Program] = &[
    runs(&["crontab", "fcrontab"], crontab),
    runs(&["at", "batch"], at),
    plain(&["atrm"], atrm),
    Program { names: &["schtasks"], model: schtasks, kind: Kind::Windows },
    Program { names: &["net", "net1"], model: net, kind: Kind::Windows },
    plain(
        &[
            "useradd",
            "adduser",
            "userdel",
            "deluser",
            "usermod",
            "groupadd",
            "addgroup",
            "groupdel",
            "delgroup",
            "groupmod",
            "groupmems",
            "newusers",
            "chpasswd",
            "chgpasswd",
            "vipw",
            "vigr",
            "pwconv",
            "pwunconv",
            "grpconv",
            "grpunconv",
            "lchage",
            "luseradd",
            "luserdel",
            "lusermod",
            "lpasswd",
            "lgroupadd",
            "lgroupdel",
            "lgroupmod",
            "homectl",
            "smbpasswd",
            "pdbedit",
            "samba-tool",
            "ldapadd",
            "ldapmodify",
            "ldapdelete",
            "ldappasswd",
            "kadmin.local",
            "faillock",
            "pam_tally2",
            "pam-auth-update",
            "yppasswd",
        ],
        manager,
    ),
    plain(&["passwd"], passwd),
    plain(&["gpasswd"], gpasswd),
    plain(&["chage"], chage),
    plain(&["chsh", "chfn"], change_shell),
    plain(&["visudo"], visudo),
    plain(&["dscl", "dseditgroup", "dsenableroot", "sysadminctl", "dsconfigad", "pwpolicy", "security"], mac),
    plain(&["pw"], pw),
];

const WHY: &str = "changes users, groups or their passwords";

// ------------------------------------------------------------------------------------------------------ scheduled jobs

/// `crontab [-u user] [-l | -r | -e | file | -]`
fn crontab(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("us", "help version"));
    if options.asks_only() || options.has("l V h T") {
        return;
    }
    if options.has("r d") {
        return call.asks(Effect::Persistence, "the cron table", "deletes the cron table");
    }
    if options.has("e") {
        return call.asks(Effect::Persistence, "the cron table", "changes the cron table");
    }
    let table = match options.operands.first() {
        Some(file) if file != "-" => call.read(&file.clone()),
        _ => match call.input() {
            Some(table) => table,
            None if options.operands.is_empty() => return,
            None => String::new(),
        },
    };
    call.asks(Effect::Persistence, "the cron table", "replaces the cron table");
    cron_table(call.machine, &table, false);
}

/// Whether a file is a table of cron, and whether its lines name a user.
pub(crate) fn is_cron_table(path: &str) -> Option<bool> {
    if path == "/etc/crontab" || path.starts_with("/etc/cron.d/") {
        return Some(true);
    }
    path.starts_with("/var/spool/cron/").then_some(false)
}

/// Judges what the lines of a table will run, as far as they are known.
pub(crate) fn cron_table(machine: &mut Machine<'_>, table: &str, names_users: bool) {
    for line in table.lines().take(200) {
        let line = line.trim();
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if first.is_empty() || first.starts_with('#') || text::is_unknown(first) {
            continue;
        }
        let is_time =
            |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '*' | ',' | '-' | '/' | '~'));
        let fields = if first.starts_with('@') { 1 } else { 5 } + usize::from(names_users);
        if !first.starts_with('@') && !is_time(&text::unglob(first)) {
            continue;
        }
        let mut rest = line;
        for _ in 0..fields {
            rest = rest.trim_start();
            rest = rest.find(char::is_whitespace).map_or("", |at| &rest[at..]);
        }
        // What follows a percent sign is the input of the command.
        let command = rest.trim().split('%').next().unwrap_or_default();
        if !command.is_empty() {
            machine.evaluate_apart("cron", command, Vec::new());
        }
    }
}

/// `at time` and `batch` run later what they read now.
fn at(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("qft", "help version"));
    if options.asks_only() || options.has("V l c") {
        return;
    }
    if options.has("d r") {
        return atrm(call);
    }
    match options.value("f").map(str::to_owned) {
        Some(file) => interpreters::run_file(call, &file, Some(interpreters::Language::Shell)),
        None => match call.input() {
            Some(script) => call.shell(&script),
            None if options.operands.is_empty() && call.name == "at" => return,
            None => {}
        },
    }
    call.asks(Effect::Persistence, &options.operands.join(" "), "schedules something that runs later");
}

fn atrm(call: &mut Call<'_, '_>) {
    call.asks(Effect::Persistence, &call.arguments().join(" "), "takes back what was scheduled");
}

fn schtasks(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let is = |word: &String, name: &str| {
        word.trim_start_matches(['/', '-']).eq_ignore_ascii_case(name) && word.starts_with(['/', '-'])
    };
    if words.iter().any(|word| {
        is(word, "create") || is(word, "change") || is(word, "delete") || is(word, "run") || is(word, "end")
    }) {
        call.asks(Effect::Persistence, &words.join(" "), "changes what is scheduled");
    }
    if let Some(at) = words.iter().position(|word| is(word, "tr"))
        && let Some(task) = words.get(at + 1).cloned()
    {
        super::windows::command_line(call, &task);
    }
}

// ----------------------------------------------------------------------------------------------------------- accounts

const ACCOUNTS: &[Tool] = &[
    tool("useradd", gnu("bcdeFfgGkKpPRsuZ", "defaults help"), "* -D -defaults", ""),
    tool(
        "adduser addgroup luseradd lgroupadd groupadd",
        gnu("ugsGKpRP", "home= shell= uid= gid= ingroup= gecos= help version"),
        "*",
        "",
    ),
    tool("userdel deluser groupdel delgroup luserdel lgroupdel", gnu("RPZ", "group system help version"), "*", ""),
    tool(
        "usermod lusermod groupmod lgroupmod",
        gnu("bcdefgGlpPRsuvVwWZn", "append groups= shell= home= login= password= help"),
        "*",
        "",
    ),
    tool("groupmems", gnu("adgR", "add= delete= group= list purge help"), "-a -d -p -add -delete -purge", ""),
    tool("faillock pam_tally2", gnu("u", "user= reset"), "-reset", ""),
    tool(
        "homectl",
        gnu("", ""),
        "create remove update passwd resize lock deactivate deactivate-all lock-all activate",
        "",
    ),
    tool("smbpasswd pdbedit", gnu("ucfhGUSNp", ""), "* -a -x -d -e -n -r -m", "L"),
    tool(
        "samba-tool",
        gnu("", ""),
        "user/create user/add user/delete user/disable user/enable user/setpassword user/setexpiry group/add group/delete group/addmembers group/removemembers domain/demote domain/provision domain/join computer/delete computer/create",
        "",
    ),
    tool("kadmin.local", gnu("q", ""), "* -q", ""),
    tool("lchage", gnu("dEImMW", "list"), "*", "l list"),
];

fn manager(call: &mut Call<'_, '_>) {
    if ACCOUNTS.iter().any(|tool| tool.names.split_ascii_whitespace().any(|name| name == call.name)) {
        return rows::judge(call, ACCOUNTS, Effect::Account, WHY);
    }
    // The rest takes what it changes from its input or an editor.
    let options = call.options(&gnu("cRsSDwWHhpxyfe", "help version"));
    if !options.asks_only() && !options.has("n") {
        call.asks(Effect::Account, &options.operands.join(" "), WHY);
    }
}

fn passwd(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "inrRwxP",
        "status all delete lock unlock expire stdin help version inactive= mindays= maxdays= warndays=",
    ));
    if options.asks_only() || options.has("S status h") {
        return;
    }
    call.asks(Effect::Account, &options.operands.join(" "), WHY);
}

fn gpasswd(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("adAMQ", "add= delete= administrators= members= root= remove-password restrict help"));
    if !options.asks_only() && !options.has("h") {
        call.asks(Effect::Account, &options.operands.join(" "), WHY);
    }
}

fn chage(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("dEImMRWP", "list iso8601 lastday= expiredate= inactive= mindays= maxdays= warndays= help"));
    if options.asks_only() || options.has("l list h") {
        return;
    }
    call.asks(Effect::Account, &options.operands.join(" "), WHY);
}

fn change_shell(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("sRforwhp", "shell= list-shells help version"));
    if options.asks_only() || options.has("l list-shells v") {
        return;
    }
    call.asks(Effect::Account, &options.operands.join(" "), WHY);
}

fn visudo(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("fx", "check file= export= quiet strict owner perms help version"));
    if options.asks_only() || options.has("c check h V x") {
        return;
    }
    call.asks(Effect::Privilege, "sudoers", "changes who may do what as root");
}

/// Directory services and keychains of macOS.
fn mac(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let options = single_dash("", true).read(&words);
    let verbs: &[&str] = match call.name.as_str() {
        "dscl" => {
            &["create", "append", "merge", "delete", "change", "changei", "passwd", "auth_", "mcxset", "mcxdelete"]
        }
        "sysadminctl" => &[
            "addUser",
            "deleteUser",
            "newPassword",
            "resetPasswordFor",
            "guestAccount",
            "secureTokenOn",
            "secureTokenOff",
            "autologin",
            "filesystem",
            "afpGuestAccess",
            "smbGuestAccess",
            "screenLock",
            "automaticTime",
        ],
        "dseditgroup" => &["edit", "create", "delete"],
        "dsenableroot" => &[],
        "pwpolicy" => &[
            "setpolicy",
            "setaccountpolicies",
            "clearaccountpolicies",
            "disableuser",
            "enableuser",
            "setpassword",
            "setglobalpolicy",
        ],
        "security" => {
            return security(call, &words);
        }
        _ => &["add", "remove", "passinterval"],
    };
    let bare = |word: &String| word.trim_start_matches('-').to_owned();
    if call.name == "dsenableroot" || words.iter().map(bare).any(|word| verbs.contains(&word.as_str())) {
        let shown = options.has("status") && call.name == "sysadminctl" || words.iter().any(|word| word == "status");
        if !shown {
            call.asks(Effect::Account, &words.join(" "), WHY);
        }
    }
}

fn security(call: &mut Call<'_, '_>, words: &[String]) {
    let verb = words.iter().find(|word| !word.starts_with('-')).map(String::as_str).unwrap_or_default();
    match verb {
        "find-generic-password" | "find-internet-password"
            // Letters of other options take a value: behind one of them there is no flag.
            if words.iter().filter_map(|word| word.strip_prefix('-')).any(|flags| flags.starts_with(['w', 'g'])) =>
        {
            call.asks(Effect::SecretRead, "the keychain", "shows a password");
        }
        "dump-keychain" | "export" | "export-smime-identity" => {
            call.asks(Effect::SecretRead, "the keychain", "shows what a keychain holds");
        }
        "delete-keychain"
        | "delete-generic-password"
        | "delete-internet-password"
        | "delete-certificate"
        | "delete-identity"
        | "set-keychain-password"
        | "add-trusted-cert"
        | "remove-trusted-cert"
        | "authorizationdb"
        | "trust-settings-import"
        | "set-key-partition-list"
        | "add-generic-password"
        | "add-internet-password"
        | "import"
        | "default-keychain"
            if (verb != "default-keychain" || words.iter().any(|word| word == "-s"))
                && (verb != "authorizationdb" || words.iter().any(|word| word == "write" || word == "remove")) =>
        {
            call.asks(Effect::Persistence, "the keychain", "changes stored keys or whom this host trusts");
        }
        _ => {}
    }
}

/// FreeBSD's `pw useradd`, also spelled `pw user add`.
fn pw(call: &mut Call<'_, '_>) {
    let operands = call.options(&gnu("VRCnqcdeupgGmMklsohNPY", "")).operands;
    let spelled: String = operands.iter().take(2).map(String::as_str).collect();
    let changes = ["useradd", "userdel", "usermod", "groupadd", "groupdel", "groupmod", "lock", "unlock"];
    if changes.iter().any(|verb| spelled.starts_with(verb)) {
        call.asks(Effect::Account, &operands.join(" "), WHY);
    }
}

/// `net user`, `net localgroup`, `net stop`, `net share` of Windows.
fn net(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
    let switches = words.iter().any(|word| {
        matches!(word.as_str(), "/add" | "/delete" | "/del")
            || word.starts_with("/active:")
            || word.starts_with("/times:")
            || word.starts_with("/expires:")
            || word.starts_with("/passwordreq")
    });
    let operands = words.iter().filter(|word| !word.starts_with('/')).count();
    match words.first().map(String::as_str) {
        Some("user" | "users") if switches || operands > 2 => call.asks(Effect::Account, &words[1..].join(" "), WHY),
        Some("localgroup" | "group" | "accounts")
            if switches || words.iter().skip(1).any(|word| word.starts_with('/') && word.contains(':')) =>
        {
            call.asks(Effect::Account, &words[1..].join(" "), WHY);
        }
        Some("stop" | "pause") if words.len() > 1 => {
            call.asks(Effect::Service, &words[1], "stops a service");
        }
        Some("share" | "session" | "file" | "use")
            if switches || words.iter().any(|word| word == "/close" || word.starts_with("/grant")) =>
        {
            call.asks(Effect::Service, &words[1..].join(" "), "changes what this host shares");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::Verdict::{self, Dangerous, Hardline, Safe};
    use crate::{World, judge};

    fn verdict(command: &str) -> Verdict {
        judge(command, &World::new("/home/u", "/home/u/project")).verdict
    }

    #[test]
    fn changes_ask_and_looks_do_not() {
        for (asks, twin) in [
            ("crontab -r", "crontab -l"),
            ("crontab -u bob new.cron", "crontab -u bob -l"),
            ("echo '@daily ./x' | crontab -", "echo '@daily ./x' > new.cron"),
            ("crontab < new.cron", "crontab --help"),
            ("echo ./x | at midnight", "at -l"),
            ("at -f job.sh now", "atq"),
            ("atrm 3", "at -c 3"),
            ("schtasks /Create /TN x /TR calc.exe", "schtasks /query"),
            ("useradd -m bob", "id bob"),
            ("useradd -D -s /bin/sh", "useradd --help"),
            ("deluser bob sudo", "getent passwd bob"),
            ("passwd -l bob", "passwd -S bob"),
            ("chage -M 90 bob", "chage -l bob"),
            ("chsh -s /bin/zsh", "chsh --list-shells"),
            ("visudo", "visudo -cf x.sudoers"),
            ("dscl . -delete /Users/bob", "dscl . -read /Users/bob"),
            ("pw user add bob", "pw user show bob"),
            ("net user bob Secret1 /add", "net user bob"),
            ("net stop Spooler", "net start"),
        ] {
            assert_eq!(verdict(asks), Dangerous, "{asks}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }

    #[test]
    fn what_is_scheduled_is_judged() {
        for never in [
            "(crontab -l; echo '0 3 * * * /sbin/reboot') | crontab -",
            "echo '@daily root poweroff' | sudo tee /etc/cron.d/off",
            "echo 'rm -rf /' | at now",
            "batch <<< halt",
        ] {
            assert_eq!(verdict(never), Hardline, "{never}");
        }
    }
}
