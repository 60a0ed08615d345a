//! Traces: logs, audit rules and the history of commands. Reading them is free, clearing them or switching them off asks.

use super::options::gnu;
use super::rows::{self, Tool, tool};
use super::{Kind, Program, plain, prints};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text::HOLE;

pub(super) const PROGRAMS: &[Program] = &[
    plain(
        &[
            "auditctl",
            "augenrules",
            "journalctl",
            "logrotate",
            "savelog",
            "log",
            "atuin",
            "mcfly",
            "lastlog",
            "accton",
            "zoxide",
            "fasd",
            "autojump",
        ],
        traces,
    ),
    prints(&["dmesg"], dmesg),
    Program { names: &["wevtutil"], model: wevtutil, kind: Kind::Windows },
    Program { names: &["auditpol"], model: auditpol, kind: Kind::Windows },
    Program { names: &["doskey"], model: doskey, kind: Kind::Windows },
];

const WHY: &str = "clears traces or stops them from being kept";

const TRACES: &[Tool] = &[
    tool(
        "auditctl",
        gnu("aAdefFikprRSwWbCmt", "backlog_wait_time= reset-lost loginuid-immutable signal="),
        "-D -d -W -e -a -A -w -R -b -f -r -signal",
        "",
    ),
    tool("augenrules", gnu("", "check load"), "-load", "check"),
    tool(
        "journalctl",
        gnu(
            "unopptSgDTcIbM",
            "vacuum-size= vacuum-time= vacuum-files= rotate flush relinquish-var smart-relinquish-var sync unit= since= until= lines=? output= priority= grep= directory= file= root= identifier= facility= cursor= disk-usage verify list-boots setup-keys update-catalog",
        ),
        "-vacuum-size -vacuum-time -vacuum-files -rotate -relinquish-var -setup-keys",
        "",
    ),
    tool("logrotate", gnu("slm", "state= log= mail= debug force verbose"), "* -f -force", "d debug"),
    tool("savelog", gnu("mugcCrR", ""), "*", ""),
    tool("log", gnu("", ""), "erase config", ""),
    tool(
        "atuin",
        gnu("", ""),
        "search/--delete history/prune history/dedup account/delete store/purge -delete -delete-it-all",
        "",
    ),
    tool("mcfly", gnu("", ""), "move", ""),
    tool("lastlog", gnu("ubt", "user= before= time= clear set"), "-C -S -clear -set", ""),
    tool("accton", gnu("", ""), "off", ""),
    tool("zoxide fasd autojump", gnu("", ""), "remove -purge -delete -D", ""),
];

fn traces(call: &mut Call<'_, '_>) {
    rows::judge(call, TRACES, Effect::History, WHY);
}

/// The ring of the kernel's messages: `-c` clears it after showing it.
fn dmesg(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("flFnsK", "facility= level= file= console-level= buffer-size= clear read-clear console-off console-on follow help version"));
    if options.has("C c D n clear read-clear console-off console-level") {
        call.asks(Effect::History, "messages of the kernel", WHY);
    }
    call.print(&format!("{HOLE}\n"));
}

fn wevtutil(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
    let verb = words.iter().find(|word| !word.starts_with('/')).map(String::as_str);
    if matches!(verb, Some("cl" | "clear-log" | "sl" | "set-log" | "um" | "uninstall-manifest")) {
        call.asks(Effect::History, &words[1..].join(" "), WHY);
    }
}

fn auditpol(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
    if words.iter().any(|word| matches!(word.as_str(), "/clear" | "/remove" | "/set" | "/restore")) {
        call.asks(Effect::History, "audit rules", WHY);
    }
}

fn doskey(call: &mut Call<'_, '_>) {
    if call
        .arguments()
        .iter()
        .any(|word| word.to_ascii_lowercase().starts_with("/reinstall") || word.eq_ignore_ascii_case("/listsize=0"))
    {
        call.asks(Effect::History, "the command history", WHY);
    }
}

#[cfg(test)]
mod tests {
    use crate::Verdict::{self, Dangerous, Safe};
    use crate::{World, judge};

    fn verdict(command: &str) -> Verdict {
        judge(command, &World::new("/home/u", "/home/u/project")).verdict
    }

    #[test]
    fn clearing_asks_and_reading_does_not() {
        for (asks, twin) in [
            ("auditctl -D", "auditctl -l"),
            ("auditctl -e 0", "auditctl -s"),
            ("journalctl --vacuum-size=1M", "journalctl --disk-usage"),
            ("journalctl --rotate", "journalctl -u ssh -n 50"),
            ("logrotate -f x.conf", "logrotate -d x.conf"),
            ("dmesg --clear", "dmesg -T"),
            ("dmesg -c", "dmesg --level=err"),
            ("wevtutil cl System", "wevtutil el"),
            ("log erase --all", "log show --last 1m"),
            ("lastlog -C -u bob", "lastlog -u bob"),
        ] {
            assert_eq!(verdict(asks), Dangerous, "{asks}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }
}
