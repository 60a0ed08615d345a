//! Managers of services: stopping, restarting and what changes the next start needs a person, looking does not.

use super::options::gnu;
use super::rows::{self, Asked, Tool, asked, tool};
use super::{Kind, Program, plain, power, runs};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text;

pub(super) const PROGRAMS: &[Program] = &[
    plain(&["systemctl"], systemctl),
    plain(&["loginctl", "machinectl"], sessions),
    plain(&["service", "rc-service", "invoke-rc.d", "rcctl", "initctl"], service),
    plain(&["stop", "restart"], upstart),
    plain(
        &[
            "rc-update",
            "update-rc.d",
            "chkconfig",
            "sv",
            "s6-svc",
            "s6-rc",
            "s6-svscanctl",
            "svc",
            "svcadm",
            "dinitctl",
            "runsvchdir",
            "supervisorctl",
            "pm2",
            "pm2-runtime",
            "forever",
            "monit",
            "circusctl",
            "god",
            "launchctl",
            "nginx",
            "openresty",
            "tengine",
            "caddy",
            "apachectl",
            "apache2ctl",
            "httpd",
            "apache2",
            "haproxy",
            "a2ensite",
            "a2dissite",
            "a2enmod",
            "a2dismod",
            "lighttpd-enable-mod",
            "postfix",
            "postsuper",
            "lpadmin",
            "cupsdisable",
            "cupsreject",
            "cancel",
            "lprm",
            "rndc",
            "unbound-control",
            "fail2ban-client",
            "cloud-init",
            "passenger",
            "uwsgi",
            "gunicornctl",
            "varnishadm",
        ],
        manager,
    ),
    Program { names: &["sc"], model: sc, kind: Kind::Windows },
    runs(&["hermes"], hermes),
];

/// Verbs of `systemctl` that change what runs now or after the next start.
const SYSTEMCTL: &str = "stop restart try-restart reload reload-or-restart try-reload-or-restart condrestart \
    condstop force-reload kill freeze disable enable mask unmask reenable preset preset-all link revert edit \
    set-property set-default set-environment unset-environment import-environment add-wants add-requires clean isolate \
    daemon-reexec log-level service-watchdogs bind mount-image rescue emergency default switch-root suspend hibernate \
    hybrid-sleep suspend-then-hibernate sleep";
/// Verbs that stop or restart the machine themselves.
const POWER: [&str; 6] = ["poweroff", "reboot", "halt", "kexec", "soft-reboot", "exit"];
/// Verbs that start what they name.
const STARTS: [&str; 8] = [
    "start",
    "isolate",
    "restart",
    "reload-or-restart",
    "enqueue-marked-jobs",
    "try-restart",
    "set-default",
    "add-wants",
];

fn systemctl(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "tpPHMnos",
        "type= state= property= value host= machine= lines= output= signal= kill-who= kill-whom= kill-value= job-mode= \
         root= image= what= when= boot-loader-menu= boot-loader-entry= reboot-argument= preset-mode= timestamp= message= \
         check-inhibitors= user system global now no-block no-pager no-legend no-reload force full all quiet wait \
         runtime dry-run recursive reverse plain help version",
    ));
    if options.asks_only() || options.has("h dry-run") {
        return;
    }
    let Some(verb) = options.operands.first().cloned() else { return };
    let units = options.operands[1..].to_vec();
    let own = options.has("user");
    if POWER.contains(&verb.as_str()) && !(own && verb == "exit") {
        return power::never(call, &verb);
    }
    if STARTS.contains(&verb.as_str())
        && let Some(unit) = units.iter().find(|unit| {
            power::is_power_unit(unit) || verb == "isolate" && power::is_power_unit(&format!("{unit}.target"))
        })
    {
        return power::never(call, &unit.clone());
    }
    match asked(&options, SYSTEMCTL) {
        Asked::Yes => call.asks(Effect::Service, &units.join(" "), "changes what services of this host do"),
        Asked::Unknown => call.cannot_tell("tells services something that cannot be told"),
        Asked::No if own && verb == "exit" => call.asks(Effect::Service, "", "ends all services of the user"),
        Asked::No => {}
    }
}

fn sessions(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "HMpnosPu",
        "host= machine= property= lines= output= signal= kill-whom= kill-who= value uid= setenv= help version",
    ));
    if options.asks_only() {
        return;
    }
    let Some(verb) = options.operands.first().cloned() else { return };
    if call.name == "loginctl" && POWER.contains(&verb.as_str()) {
        return power::never(call, &verb);
    }
    if call.name == "machinectl" && matches!(verb.as_str(), "shell" | "login") {
        if options.operands.len() > 2 {
            return call.run(options.operands[2..].to_vec());
        }
        return call.asks(Effect::Privilege, "another machine or user", "opens a shell with other rights");
    }
    if call.name == "loginctl" && matches!(verb.as_str(), "enable-linger" | "disable-linger") {
        let user = options.operands.get(1).cloned().unwrap_or_default();
        return call.asks(Effect::Persistence, &user, "lets programs of a user run without a session, or not any more");
    }
    let list = "terminate-session terminate-user terminate-seat kill-session kill-user lock-sessions lock-session \
        unlock-session unlock-sessions activate attach flush-devices suspend hibernate hybrid-sleep \
        suspend-then-hibernate sleep \
        poweroff reboot terminate kill stop enable disable remove rename clone import-tar import-raw pull-tar pull-raw \
        bind copy-to set-limit clean read-only";
    match asked(&options, list) {
        Asked::Yes => {
            call.asks(Effect::Service, &options.operands[1..].join(" "), "ends or changes sessions or machines");
        }
        Asked::Unknown => call.cannot_tell("tells sessions something that cannot be told"),
        Asked::No => {}
    }
}

/// What scripts of `init` are told.
const SCRIPT: [&str; 22] = [
    "stop",
    "restart",
    "reload",
    "force-reload",
    "force-stop",
    "force-restart",
    "try-restart",
    "condrestart",
    "graceful",
    "graceful-stop",
    "fast_stop",
    "zap",
    "onestop",
    "onerestart",
    "disable",
    "enable",
    "upgrade",
    "kill",
    "off",
    "on",
    "reload-or-restart",
    "pause",
];

/// `service name verb`, `rc-service name verb`, `initctl verb name`
fn service(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("", "query status-all full-restart help version"));
    if options.asks_only() || options.has("query") {
        return;
    }
    let verb_first = matches!(call.name.as_str(), "initctl" | "rcctl");
    let words = &options.operands;
    let (verb, name) = if verb_first { (words.first(), words.get(1)) } else { (words.get(1), words.first()) };
    let name = name.cloned().unwrap_or_default();
    if options.has("full-restart") {
        return call.asks(Effect::Service, &name, "stops or restarts a service");
    }
    match verb {
        Some(verb) if text::is_unknown(verb) => call.cannot_tell("tells a service something that cannot be told"),
        Some(verb) if SCRIPT.contains(&verb.as_str()) || verb_first && matches!(verb.as_str(), "set" | "emit") => {
            let why = "stops, restarts or changes a service";
            call.asks(Effect::Service, &name, why);
        }
        _ => {}
    }
}

/// `stop name`: Upstart's own spelling; without a name it is nothing.
fn upstart(call: &mut Call<'_, '_>) {
    if let Some(name) = call.options(&gnu("", "")).operands.first().cloned() {
        call.asks(Effect::Service, &name, "stops or restarts a service");
    }
}

const MANAGERS: &[Tool] = &[
    tool("rc-update", gnu("", ""), "add del delete -d -a -u", ""),
    tool("update-rc.d", gnu("", ""), "*/disable */enable */remove */defaults */start */stop */defaults-disabled", "n"),
    tool(
        "chkconfig",
        gnu("", "level= levels= list add del override type="),
        "*/on */off */reset */resetpriorities -add -del -override",
        "list",
    ),
    tool(
        "sv",
        gnu("wv", ""),
        "down d exit e restart reload stop shutdown force-stop force-restart force-reload force-shutdown try-restart kill k term t hup h int i quit q alarm a pause p once o 1 2 x",
        "",
    ),
    tool("s6-svc", gnu("wTlU", ""), "-d -D -k -t -x -r -R -h -q -i -a -p -b -1 -2 -o -O -X -y", ""),
    tool("svc", gnu("", ""), "-d -k -t -x -h -i -a -p -o", ""),
    tool("s6-rc", gnu("lvta", ""), "change stop -d", "n"),
    tool("s6-svscanctl", gnu("", ""), "-t -q -b -8 -7 -0 -6 -s -i -n -N -z -h -a", ""),
    tool("runsvchdir", gnu("", ""), "*", ""),
    tool("svcadm", gnu("", ""), "disable restart enable refresh mark clear milestone", ""),
    tool(
        "dinitctl",
        gnu("p", "socket-path="),
        "stop restart enable disable release unpin unload reload signal shutdown",
        "",
    ),
    tool(
        "supervisorctl",
        gnu("cupsr", "configuration= serverurl= username= password="),
        "stop restart shutdown reload update remove signal reread add clear",
        "",
    ),
    tool(
        "pm2 pm2-runtime",
        gnu("nil", "name= instances="),
        "delete del stop restart reload kill gracefulReload startOrRestart startOrReload startOrGracefulReload scale startup unstartup save dump flush update updatePM2 deploy sendSignal reset cleardump resurrect install uninstall set unset",
        "",
    ),
    tool("forever", gnu("", ""), "stop stopall restart restartall stopbypid", ""),
    tool("monit", gnu("cdgpl", ""), "stop restart quit unmonitor reload", ""),
    tool("circusctl", gnu("", ""), "stop restart quit rm kill signal decr set reload", ""),
    tool("god", gnu("cp", ""), "stop restart remove terminate quit unmonitor signal", ""),
    tool(
        "launchctl",
        gnu("", ""),
        "unload load bootout bootstrap kickstart kill stop remove disable enable reboot setenv unsetenv config submit asuser limit detach attach debug",
        "",
    ),
    tool("nginx openresty tengine", gnu("spcgeE", ""), "-s", "t T v V h"),
    tool(
        "caddy",
        gnu("", "config= address= adapter="),
        "stop reload start upgrade add-package remove-package trust untrust",
        "",
    ),
    tool(
        "apachectl apache2ctl httpd apache2",
        gnu("kDdfCceE", ""),
        "stop restart graceful graceful-stop -k",
        "t S l L M V v",
    ),
    tool("haproxy", gnu("fpnNdDsxLSC", ""), "-sf -st", "c v"),
    tool("a2ensite a2dissite a2enmod a2dismod lighttpd-enable-mod", gnu("", ""), "*", ""),
    tool("postfix", gnu("c", ""), "stop abort reload flush drain", ""),
    tool("postsuper", gnu("cdhHrf", ""), "-d -h -r", ""),
    tool("lpadmin cupsdisable cupsreject cancel lprm", gnu("pxdE", ""), "* -p -x -d -a", ""),
    tool(
        "rndc unbound-control",
        gnu("bckpsVyqr", ""),
        "stop halt reload reconfig flush flushname flushtree freeze thaw delzone addzone modzone stop_service set_option flush_zone",
        "",
    ),
    tool("fail2ban-client", gnu("cspxlb", ""), "stop restart reload unban set flushlogs add", ""),
    tool("cloud-init", gnu("f", "file="), "clean init modules", ""),
    tool("passenger", gnu("", ""), "stop", ""),
    tool("uwsgi", gnu("", "stop= reload= ini= connect-and-read="), "-stop -reload", ""),
    tool("gunicornctl", gnu("", ""), "stop restart quit kill", ""),
    tool("varnishadm", gnu("nSTt", ""), "stop ban vcl.discard vcl.use param.set", ""),
];

fn manager(call: &mut Call<'_, '_>) {
    if call.name == "dinitctl" && call.arguments().iter().any(|word| word == "shutdown") {
        return power::never(call, "this machine");
    }
    rows::judge(call, MANAGERS, Effect::Service, "stops, restarts or changes services");
}

/// `sc [\\host] verb service`
fn sc(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
    let verb = words.iter().position(|word| {
        matches!(
            word.as_str(),
            "stop" | "delete" | "config" | "pause" | "create" | "failure" | "sdset" | "control" | "privs" | "boot"
        )
    });
    if let Some(at) = verb.filter(|at| *at <= 1) {
        let name = words.get(at + 1).cloned().unwrap_or_default();
        call.asks(Effect::Service, &name, "stops or changes a service");
    }
}

/// The agent itself: what would stop it, start a second one, or change what it runs on.
fn hermes(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "pcmsrtqP",
        "profile= config= model= provider= session= resume= toolsets= query= home= log-level= approve= disable= cwd= max-turns= help version",
    ));
    if options.asks_only() || options.has("h V") {
        return;
    }
    let list = "gateway/stop gateway/restart gateway/run gateway/install gateway/uninstall gateway/kill update \
        uninstall approvals/allow approvals/revoke config/set config/unset config/edit tools/enable tools/disable \
        tools/call upgrade self-update stop restart kill daemon/stop daemon/restart";
    let unasked = options.value("approve").is_some_and(|mode| mode != "ask" && mode != "none");
    match asked(&options, list) {
        _ if unasked => call.asks(Effect::Service, "hermes", "runs the agent's tools without asking anybody"),
        Asked::Yes => call.asks(Effect::Service, "hermes", "stops, restarts or changes the agent itself"),
        Asked::Unknown => call.cannot_tell("tells the agent something that cannot be told"),
        Asked::No => {}
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
            ("systemctl --user -q stop app", "systemctl --user -q status app"),
            ("systemctl stop --now app", "systemctl show -p MainPID app"),
            ("systemctl -H web1 mask app", "systemctl list-units -t service"),
            ("systemctl \"$VERB\" app", "systemctl status \"$APP\""),
            ("systemctl hibernate", "systemctl --help"),
            ("loginctl kill-user bob", "loginctl list-users"),
            ("loginctl enable-linger bob", "loginctl show-user bob"),
            ("machinectl shell root@box", "machinectl list"),
            ("service ssh restart", "service --status-all"),
            ("/etc/init.d/cron stop", "/etc/init.d/cron status"),
            ("rc-update add sshd", "rc-update show"),
            ("sv -w 5 down app", "sv status app"),
            ("supervisorctl -c s.conf restart web", "supervisorctl -c s.conf status"),
            ("pm2 delete all", "pm2 logs"),
            ("launchctl bootout gui/501/x", "launchctl print gui/501/x"),
            ("nginx -s quit", "nginx -t"),
            ("apachectl -k graceful", "apachectl -S"),
            ("sc.exe stop Spooler", "sc.exe query Spooler"),
            ("hermes -p work gateway stop", "hermes -p work gateway status"),
            ("hermes update", "hermes update --help"),
            ("hermes approvals allow 'rm -rf build'", "hermes approvals check 'rm -rf build'"),
            ("hermes config set approvals.mode off", "hermes config get approvals.mode"),
            ("hermes tools call terminal '{}' --approve all", "hermes tools show terminal"),
            ("hermes run x --approve=all", "hermes toolsets list"),
            ("virsh destroy vm1", "virsh list --all"),
        ] {
            assert_eq!(verdict(asks), Dangerous, "{asks}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }

    #[test]
    fn units_and_verbs_that_end_the_machine_never_run() {
        for never in [
            "systemctl --force reboot",
            "systemctl -i poweroff",
            "systemctl start halt.target --no-block",
            "systemctl isolate poweroff",
            "systemctl set-default reboot.target",
            "loginctl poweroff",
        ] {
            assert_eq!(verdict(never), Hardline, "{never}");
        }
        for safe in ["systemctl cat reboot.target", "systemctl poweroff --help", "systemctl --dry-run reboot"] {
            assert_eq!(verdict(safe), Safe, "{safe}");
        }
    }
}
