//! Programs that switch the machine off or start it anew: at once, later, over a bus, from afar. None of it ever runs.

use super::options::{Grammar, gnu, leading};
use super::{Kind, Program, interpreters, plain, runs};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text;

pub(super) const PROGRAMS: &[Program] = &[
    Program { names: &["shutdown", "psshutdown", "tsshutdn"], model: shutdown, kind: Kind::Windows },
    plain(&["reboot", "poweroff", "halt", "fasthalt"], halt),
    plain(&["init", "telinit"], init),
    plain(&["openrc-shutdown", "runit-init", "s6-linux-init-shutdown", "dinit-shutdown"], halt),
    plain(&["kexec"], kexec),
    plain(&["ipmitool", "ipmi-power", "ipmiutil", "racadm", "amttool"], remote_power),
    plain(&["rtcwake"], rtcwake),
    plain(&["pm-suspend", "pm-hibernate", "pm-powersave", "s2ram", "s2disk", "zzz", "ZZZ"], sleep),
    plain(&["pmset"], pmset),
    plain(&["busctl", "dbus-send", "gdbus", "qdbus", "qdbus6", "qdbus-qt5", "dcop"], bus),
    plain(&["gnome-session-quit", "xfce4-session-logout", "mate-session-save", "lxqt-leave"], desktop),
    runs(&["osascript"], osascript),
];

const WHY: &str = "stops or restarts the machine";

/// Targets and services of systemd whose start stops or restarts the machine.
const UNITS: &str = "poweroff.target reboot.target halt.target kexec.target shutdown.target final.target \
    soft-reboot.target exit.target runlevel0.target runlevel6.target ctrl-alt-del.target systemd-poweroff.service \
    systemd-reboot.service systemd-halt.service systemd-kexec.service systemd-soft-reboot.service";

/// Whether starting this unit stops or restarts the machine.
pub(super) fn is_power_unit(unit: &str) -> bool {
    UNITS.split_ascii_whitespace().any(|known| known == unit)
}

pub(super) fn never(call: &mut Call<'_, '_>, target: &str) {
    call.never(Effect::Power, target, WHY);
}

/// `shutdown [options] [time] [message]`, on Windows with slashes.
fn shutdown(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    if has(&["--help", "--version", "--show", "/?", "-?", "/a", "-a"]) {
        return;
    }
    if has(&["/l", "-l"]) && !has(&["/s", "/r", "/g", "/p"]) {
        return call.asks(Effect::Service, "the session", "ends the session of the user");
    }
    if words.iter().all(|word| matches!(word.as_str(), "/i" | "/o" | "/e")) && !words.is_empty() {
        return;
    }
    let options = call.options(&gnu("gt", "message= halt poweroff reboot no-wall show"));
    // `-k` only warns, `-c` takes a schedule back.
    if options.has("c k") && !options.has("r h H P p s") {
        return;
    }
    never(call, "this machine");
}

/// `reboot [options]`: `-w` only writes the record that it would.
fn halt(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("", "wtmp-only halt poweroff reboot force no-wtmp no-wall"));
    if options.asks_only() || options.has("w wtmp-only") {
        return;
    }
    never(call, "this machine");
}

/// `init level`
fn init(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("te", "no-wall"));
    for level in options.operands.clone() {
        match level.as_str() {
            "0" | "6" => never(call, &level),
            "q" | "Q" | "u" | "U" => {}
            _ => call.asks(Effect::Service, &level, "changes to another run level, which stops services"),
        }
    }
}

/// `kexec -l kernel`, `kexec -e`: loading prepares, executing leaves this kernel.
fn kexec(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("lp", "load= load-panic= append= command-line= initrd= dtb= type= exec force unload status reuse-cmdline kexec-file-syscall"));
    if options.has("e exec") || options.has("f force") && !options.operands.is_empty() {
        return never(call, "another kernel");
    }
    if options.has("l load p load-panic u unload") {
        call.asks(Effect::Service, "another kernel", "prepares another kernel for the next start");
    }
}

/// Machines that are switched through their management controller.
fn remote_power(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("HUPILAkofpRSNt", "hostname= username= password= off on cycle reset soft stat"));
    let words: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    let off = ["off", "cycle", "reset", "soft", "diag", "powerdown", "powercycle", "hardreset", "graceshutdown"];
    let switches = match call.name.as_str() {
        "ipmi-power" => options.has("off cycle reset soft n f c r"),
        _ => {
            words.windows(2).any(|pair| matches!(pair[0], "power" | "chassis") && off.contains(&pair[1]))
                || words.iter().any(|word| matches!(*word, "powerdown" | "powercycle" | "hardreset" | "graceshutdown"))
                || call.name == "ipmiutil" && words.contains(&"reset")
        }
    };
    if switches {
        never(call, "a machine behind its management controller");
    } else if words.windows(2).any(|pair| matches!(pair, ["mc" | "bmc", "reset"] | ["user", "set"] | ["sel", "clear"]))
    {
        call.asks(Effect::Service, "a management controller", "changes a management controller or its log");
    }
}

/// `rtcwake -m off` switches off and on again later; the other modes only sleep.
fn rtcwake(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "dAmst",
        "device= adjfile= mode= seconds= time= date= list-modes dry-run local utc auto verbose",
    ));
    if options.has("n dry-run list-modes") {
        return;
    }
    match options.value("m mode").unwrap_or("suspend") {
        "off" => never(call, "this machine"),
        "no" | "on" | "show" | "disable" => {}
        _ => sleep(call),
    }
}

fn sleep(call: &mut Call<'_, '_>) {
    call.asks(Effect::Service, "this machine", "puts the machine to sleep");
}

/// `pmset schedule shutdown date`, `pmset sleepnow`
fn pmset(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    if words.first().is_none_or(|word| word == "-g") {
        return;
    }
    let schedules = words.iter().any(|word| matches!(word.as_str(), "schedule" | "repeat" | "relative"));
    if schedules && words.iter().any(|word| matches!(word.as_str(), "shutdown" | "restart" | "poweroff")) {
        return never(call, "this machine");
    }
    call.asks(Effect::Service, "power settings", "changes when the machine sleeps");
}

/// Methods that stop or restart the machine, whichever service of the bus has them.
const METHODS: &[&str] = &[
    "PowerOff",
    "PowerOffWithFlags",
    "Poweroff",
    "Reboot",
    "RebootWithFlags",
    "Halt",
    "HaltWithFlags",
    "KExec",
    "SoftReboot",
    "ScheduleShutdown",
    "Shutdown",
    "RequestShutdown",
    "RequestReboot",
    "SetRebootParameter",
    "shutdown",
    "reboot",
    "halt",
    "logoutAndShutdown",
    "logoutAndReboot",
];
/// Methods that change services, sessions and the network.
const CHANGES: &str = "StopUnit RestartUnit TryRestartUnit ReloadOrRestartUnit KillUnit EnableUnitFiles \
    DisableUnitFiles MaskUnitFiles UnmaskUnitFiles SetDefaultTarget LinkUnitFiles PresetUnitFiles Reexecute Exit \
    StartTransientUnit SetUnitProperties Suspend Hibernate HybridSleep SuspendThenHibernate Sleep TerminateSession \
    TerminateUser KillSession KillUser Logout logout Unmount Eject Format SetHostname SetStaticHostname SetTimezone \
    SetTime SetNTP SetLocale DeactivateConnection Disconnect AddUser CreateUser DeleteUser SetPassword addRule \
    removeService addService addPort removePort SetDefaultZone setDefaultZone";

/// A call over a bus: the method says what happens.
fn bus(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().to_vec();
    let operands: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    let calls = match call.name.as_str() {
        "busctl" => words.iter().any(|word| matches!(word.as_str(), "call" | "emit" | "set-property")),
        "gdbus" => words.first().is_some_and(|verb| matches!(verb.as_str(), "call" | "emit")),
        _ => true,
    };
    if !calls {
        return;
    }
    let method = |word: &str| word.rsplit(['.', '/', ':']).next().unwrap_or_default().to_owned();
    let console = words.iter().any(|word| word.contains("ConsoleKit") || word.contains("Hal.Device"));
    for word in &operands {
        let last = method(word);
        let dotted = word.contains('.') || !matches!(call.name.as_str(), "dbus-send");
        if dotted && METHODS.contains(&last.as_str())
            || console && matches!(last.as_str(), "Stop" | "Restart")
            || is_power_unit(word.trim_start_matches("string:").trim_matches(['\'', '"']))
        {
            return never(call, word);
        }
    }
    // `org.kde.ksmserver … logout 0 1 2`: the second number tells between staying, restarting and switching off.
    if let Some(at) = words.iter().position(|word| word.ends_with("logout"))
        && matches!(words.get(at + 2).map(String::as_str), Some("1" | "2"))
    {
        return never(call, "this machine");
    }
    let change = operands.iter().find(|word| {
        let last = method(word);
        CHANGES.split_ascii_whitespace().any(|known| known == last)
    });
    if let Some(word) = change {
        return call.asks(Effect::Service, word, "changes services of this host over a bus");
    }
    if operands.iter().any(|word| text::is_unknown(word)) {
        call.cannot_tell("calls a service of which a part cannot be told");
    }
}

fn desktop(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("", "power-off reboot shutdown shutdown-dialog logout halt suspend no-prompt force"));
    if options.has("power-off reboot shutdown halt h r") {
        return never(call, "this machine");
    }
    call.asks(Effect::Service, "the session", "ends the session of the user");
}

const OSASCRIPT: Grammar = leading("els", "");

/// `osascript -e text`, `osascript file`, text on the input; JavaScript is read like other code.
fn osascript(call: &mut Call<'_, '_>) {
    let options = OSASCRIPT.read(call.arguments());
    let script = options.value("l").is_some_and(|language| language.eq_ignore_ascii_case("javascript"));
    let language = if script { interpreters::Language::JavaScript } else { interpreters::Language::Other };
    let mut source: String = options.values("e").collect::<Vec<_>>().join("\n");
    if source.is_empty() {
        match options.operands.first() {
            Some(file) if file != "-" => return interpreters::run_file(call, &file.clone(), Some(language)),
            _ => source = call.input().unwrap_or_default(),
        }
    }
    if script {
        interpreters::code(call, language, &source);
    } else {
        apple_events(call, &source);
    }
}

/// What a text of `AppleScript` asks other programs for.
fn apple_events(call: &mut Call<'_, '_>, source: &str) {
    let source = text::unglob(source);
    for line in source.lines() {
        let (code, strings) = unquoted(line);
        let code = code.to_ascii_lowercase();
        let words: Vec<&str> =
            code.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        if words.windows(2).any(|pair| pair == ["shut", "down"])
            || words.contains(&"restart")
            || ["aevtrrst", "aevtrsdn", "rsdn"].iter().any(|event| code.contains(event))
        {
            never(call, "this machine");
        }
        if words.windows(2).any(|pair| pair == ["log", "out"]) {
            call.asks(Effect::Service, "the session", "ends the session of the user");
        }
        if words.contains(&"quit") {
            call.asks(Effect::ProcessKill, "a program", "ends a program by its name");
        }
        if words.windows(2).any(|pair| pair == ["empty", "trash"] || pair == ["empty", "the"])
            || words.contains(&"delete")
        {
            call.asks(Effect::Delete, "files", "deletes files");
        }
        if words.windows(3).any(|three| three == ["do", "shell", "script"]) {
            if code.contains("administrator privileges") {
                call.asks(Effect::Privilege, "root", "runs a text with all rights");
            }
            for string in &strings {
                call.shell(string);
            }
        }
    }
}

/// The line without its strings, and the strings.
fn unquoted(line: &str) -> (String, Vec<String>) {
    let (mut code, mut strings) = (String::new(), Vec::new());
    let mut current: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (&mut current, letter) {
            (Some(_), '"') => strings.extend(current.take()),
            (Some(string), '\\') => string.extend(letters.next()),
            (Some(string), letter) => string.push(letter),
            (None, '"') => current = Some(String::new()),
            (None, letter) => code.push(letter),
        }
    }
    strings.extend(current);
    (code, strings)
}

#[cfg(test)]
mod tests {
    use crate::Verdict::{self, Dangerous, Hardline, Safe};
    use crate::{World, judge};

    fn verdict(command: &str) -> Verdict {
        judge(command, &World::new("/home/u", "/home/u/project")).verdict
    }

    #[test]
    fn power_never_goes_off_and_asking_about_it_is_free() {
        for (never, twin) in [
            ("shutdown -h now", "shutdown -c"),
            ("Shutdown.exe /s /t 0", "shutdown /a"),
            ("shutdown --poweroff +5", "shutdown --help"),
            ("sudo reboot -f", "reboot --help"),
            ("telinit 6", "telinit q"),
            ("kexec -e", "kexec --status"),
            ("kexec --exec", "kexec --version"),
            ("ipmitool -H bmc1 -U a chassis power cycle", "ipmitool -H bmc1 -U a chassis power status"),
            ("ipmitool power off", "ipmitool sdr list"),
            ("rtcwake -m off -s 60", "rtcwake -m show"),
            ("pmset repeat shutdown MTWRF 23:00:00", "pmset -g"),
            (
                "busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager Reboot b 1",
                "busctl introspect org.freedesktop.login1 /org/freedesktop/login1",
            ),
            (
                "dbus-send --system --dest=org.freedesktop.ConsoleKit /org/freedesktop/ConsoleKit/Manager org.freedesktop.ConsoleKit.Manager.Restart",
                "dbus-send --system --dest=org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager.CanPowerOff",
            ),
            ("qdbus org.kde.ksmserver /KSMServer logout 0 2 2", "qdbus org.kde.ksmserver /KSMServer canShutdown"),
            ("osascript -e 'tell app \"System Events\" to restart'", "osascript -e 'display dialog \"restart\"'"),
            ("osascript -e 'do shell script \"halt\"'", "osascript -e 'do shell script \"ls\"'"),
            ("gnome-session-quit --reboot", "gnome-session-quit --help"),
        ] {
            assert_eq!(verdict(never), Hardline, "{never}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }

    #[test]
    fn sleep_and_other_levels_ask() {
        for asks in ["init 1", "pmset sleepnow", "rtcwake -m mem -s 60", "kexec -l /boot/vmlinuz", "shutdown /l"] {
            assert_eq!(verdict(asks), Dangerous, "{asks}");
        }
    }
}
