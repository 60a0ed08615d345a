//! Firewalls and network settings of the host: showing is free, changing asks.

use super::options::{gnu, leading, single_dash};
use super::rows::{self, Tool, tool};
use super::{Kind, Program, plain, runs};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text;

pub(super) const PROGRAMS: &[Program] = &[
    plain(
        &[
            "iptables",
            "ip6tables",
            "iptables-nft",
            "iptables-legacy",
            "ebtables",
            "arptables",
            "iptables-restore",
            "ip6tables-restore",
            "ipset",
            "pfctl",
            "ipfw",
            "rfkill",
            "tailscale",
            "zerotier-cli",
            "warp-cli",
            "nordvpn",
            "mullvad",
            "ethtool",
            "brctl",
            "ovs-vsctl",
            "arp",
            "iw",
            "resolvectl",
            "systemd-resolve",
            "resolvconf",
            "networkctl",
            "ifup",
            "ifdown",
            "ifenslave",
            "dhclient",
            "dhcpcd",
            "wg-quick",
            "wpa_cli",
            "connmanctl",
            "netplan",
            "conntrack",
            "bridge",
            "iwctl",
            "csf",
            "shorewall",
            "awall",
            "mii-tool",
            "vconfig",
            "iptunnel",
            "macchanger",
            "socketfilterfw",
        ],
        setting,
    ),
    plain(&["nft"], nft),
    plain(&["ufw"], ufw),
    plain(&["firewall-cmd", "firewall-offline-cmd"], firewall_cmd),
    runs(&["ip"], ip),
    plain(&["tc"], |call| object(call, "show list ls get monitor s", 1)),
    plain(&["nmcli"], nmcli),
    plain(&["ifconfig", "iwconfig"], interface),
    plain(&["route"], route),
    plain(&["wg"], wg),
    plain(&["networksetup", "scutil"], mac),
    plain(&["hostnamectl", "timedatectl", "localectl"], host_settings),
    Program { names: &["netsh"], model: netsh, kind: Kind::Windows },
    Program { names: &["ipconfig"], model: ipconfig, kind: Kind::Windows },
];

const WHY: &str = "changes the firewall or the network of this host";

const TABLES: &str = "-A -I -D -R -F -Z -X -P -N -E -append -insert -delete -replace -flush -zero -delete-chain -policy \
    -new-chain -rename-chain";

const SETTINGS: &[Tool] = &[
    tool(
        "iptables ip6tables iptables-nft iptables-legacy ebtables arptables",
        gnu(
            "tpsdjgiomw?W?",
            "table= protocol= source= destination= jump= match= in-interface= out-interface= append insert delete \
             replace list list-rules flush zero new-chain delete-chain policy rename-chain numeric verbose line-numbers \
             check",
        ),
        TABLES,
        "",
    ),
    tool(
        "iptables-restore ip6tables-restore",
        gnu("MTwW", "modprobe= table= test noflush counters verbose"),
        "",
        "t test",
    ),
    tool(
        "ipset",
        gnu("fo", "file= output= exist resolve"),
        "create n add del destroy x flush f swap rename restore -N -A -D -X -F -W -E -R",
        "",
    ),
    tool("pfctl", gnu("aDFfikKopstTx", ""), "-d -e -F -f -k -K -t -T", "n s"),
    tool("ipfw", gnu("pc", ""), "add delete flush zero resetlog set disable enable", "n"),
    tool("rfkill", gnu("o", "output="), "block unblock toggle", ""),
    tool(
        "tailscale",
        gnu("", "socket="),
        "down up logout login set serve funnel switch update lock cert file/cp exit-node",
        "",
    ),
    tool("zerotier-cli", gnu("", ""), "join leave set orbit deorbit", ""),
    tool(
        "warp-cli nordvpn mullvad",
        gnu("", ""),
        "connect disconnect set delete register registration/delete logout login reset account add-excluded-route lockdown-mode c d",
        "",
    ),
    tool(
        "ethtool",
        gnu("", "set-eee reset flash= set-priv-flags change features offload"),
        "-s -A -C -G -K -L -E -f -p -r -X -U -N -W -change -reset -flash -features -offload -set-eee -set-priv-flags",
        "",
    ),
    tool(
        "brctl vconfig",
        gnu("", ""),
        "addbr delbr addif delif stp setageing setbridgeprio setfd sethello setmaxage setpathcost setportprio hairpin add rem set_flag",
        "",
    ),
    tool(
        "ovs-vsctl",
        gnu("t", "db= timeout= no-wait if-exists may-exist"),
        "add-br del-br add-port del-port set del-controller set-controller emer-reset init clear remove add destroy",
        "",
    ),
    tool("arp", gnu("iAfHp", ""), "-d -s -S -f", ""),
    tool(
        "iw",
        gnu("", ""),
        "dev/*/set dev/*/del dev/*/connect dev/*/disconnect dev/*/interface dev/*/ibss dev/*/ap dev/*/station reg/set phy/*/set phy/*/interface",
        "",
    ),
    tool(
        "resolvectl systemd-resolve",
        gnu("ipct", "interface= set-dns= set-domain= revert"),
        "dns/*/* domain/*/* revert reset-statistics reset-server-features default-route/*/* llmnr/*/* mdns/*/* dnssec/*/* dnsovertls/*/* nta/*/* log-level/* -set-dns -set-domain -revert",
        "",
    ),
    tool("resolvconf", gnu("ad", ""), "-a -d -u", ""),
    tool("networkctl", gnu("n", "lines="), "up down delete renew reload reconfigure forcerenew edit mask unmask", ""),
    tool("ifup ifdown ifenslave macchanger", gnu("i", ""), "* -a -r -A", "n no-act s show l list V"),
    tool("dhclient dhcpcd", gnu("pslecFi", ""), "* -r -x -k -n", ""),
    tool("wg-quick", gnu("", ""), "up down save", ""),
    tool(
        "wpa_cli",
        gnu("ipgaPB", ""),
        "disconnect remove_network reconfigure terminate disable_network enable_network set_network select_network save_config reassociate",
        "",
    ),
    tool("connmanctl", gnu("", ""), "enable disable connect disconnect config tether", ""),
    tool("netplan", gnu("", "debug root-dir="), "apply try set rebind", ""),
    tool("conntrack", gnu("fsdpt", ""), "-D -F -I -U -delete -flush -create -update", ""),
    tool(
        "bridge",
        gnu("", ""),
        "link/set fdb/add fdb/del fdb/append fdb/replace vlan/add vlan/del mdb/add mdb/del",
        "",
    ),
    tool(
        "iwctl",
        gnu("P", "passphrase="),
        "station/*/connect station/*/disconnect device/*/set-property known-networks/*/forget",
        "",
    ),
    tool("csf", gnu("", ""), "-x -f -r -d -a -e -s -tr -dr -ar -df", ""),
    tool("shorewall", gnu("", ""), "stop clear restart reload start drop reject allow safe-restart try", ""),
    tool("awall", gnu("", ""), "activate enable disable flush", ""),
    tool("mii-tool", gnu("FA", "force= advertise= restart reset"), "-F -A -r -R -force -advertise -restart -reset", ""),
    tool("iptunnel", gnu("", ""), "add change del", ""),
    tool(
        "socketfilterfw",
        single_dash("", true),
        "-setglobalstate -setblockall -setallowsigned -setstealthmode -add -remove -blockapp -unblockapp -setloggingmode",
        "",
    ),
];

fn setting(call: &mut Call<'_, '_>) {
    if call.name.ends_with("tables-restore") {
        let options = call.options(&gnu("MTwW", "modprobe= table= test noflush counters verbose help version"));
        if !options.has("t test h help V version") {
            call.asks(Effect::Service, "the firewall", WHY);
        }
        return;
    }
    rows::judge(call, SETTINGS, Effect::Service, WHY);
}

fn nft(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("fIDd", "file= includepath= define= check echo json interactive help version"));
    if options.asks_only() || options.has("c check v") {
        return;
    }
    let mut source = options.operands.join(" ");
    if let Some(file) = options.value("f file").map(str::to_owned) {
        source = call.read(&file);
    } else if options.has("i interactive") {
        source = call.input().unwrap_or_default();
    }
    let changes = source.split([';', '\n']).any(|statement| {
        let verb = statement.split_whitespace().next().unwrap_or_default();
        !verb.is_empty() && !matches!(verb, "list" | "describe" | "monitor" | "get" | "export")
    });
    if changes {
        call.asks(Effect::Service, "the firewall", WHY);
    }
}

fn ufw(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("", "dry-run force help version"));
    if options.asks_only() || options.has("dry-run") {
        return;
    }
    let verb = options.operands.first().map(String::as_str);
    let looks = matches!(verb, None | Some("status" | "show" | "version" | "help"));
    let lists = verb == Some("app") && options.operands.get(1).is_some_and(|word| word == "list" || word == "info");
    if !looks && !lists {
        call.asks(Effect::Service, "the firewall", WHY);
    }
}

/// Each option is a verb, and the ones that look are few.
fn firewall_cmd(call: &mut Call<'_, '_>) {
    let looks = ["query-", "list-", "get-", "info-", "state", "check-config", "path-", "version", "help"];
    let qualifies = [
        "permanent",
        "zone",
        "policy",
        "timeout",
        "quiet",
        "direct",
        "ipset",
        "icmptype",
        "service",
        "helper",
        "family",
        "verbose",
        "default-config",
        "runtime",
        "q",
        "h",
        "V",
        "system-config",
    ];
    let options = call.options(&gnu("", "zone= policy= timeout="));
    let changes = options
        .options
        .iter()
        .any(|(name, _)| !qualifies.contains(&name.as_str()) && !looks.iter().any(|look| name.starts_with(look)));
    if changes && !options.asks_only() {
        call.asks(Effect::Service, "the firewall", WHY);
    }
}

/// `ip [options] object [verb …]`: objects and verbs may be cut short.
fn ip(call: &mut Call<'_, '_>) {
    let options = single_dash("family= netns= batch= rcvbuf= loops= n= f= b= l= rc= N=", false).read(call.arguments());
    if options.has("help h V Version version") {
        return;
    }
    if options.has("b batch") {
        return call.asks(Effect::Service, "the network", WHY);
    }
    let words = &options.operands;
    let Some(first) = words.first() else { return };
    let verb = words.get(1).map(String::as_str).unwrap_or_default();
    if (first == "netns" || first == "vrf") && (verb == "exec" || verb == "e" || verb == "ex") {
        return call.run(words.get(3..).unwrap_or_default().to_vec());
    }
    if text::is_unknown(first) || text::is_unknown(verb) {
        return call.cannot_tell("tells the network something that cannot be told");
    }
    let looks = [
        "show", "list", "lst", "ls", "get", "help", "monitor", "identify", "pids", "list-id", "save", "count", "stats",
    ];
    let look = verb.is_empty()
        || looks.iter().any(|look| look.starts_with(verb) && (verb.len() > 1 || verb != "s"))
        || verb == "l"
        // Cut short to one letter, links are set and everything else is shown.
        || verb == "s" && !"link".starts_with(first.as_str())
        || "monitor".starts_with(first.as_str()) && first.len() > 2
        || verb == "dev"
            && matches!(first.as_str(), "a" | "addr" | "address" | "l" | "link" | "r" | "route" | "n" | "neigh");
    if !look {
        call.asks(Effect::Service, &words[1..].join(" "), WHY);
    }
}

/// `tc qdisc show`: an object, then a verb.
fn object(call: &mut Call<'_, '_>, looks: &str, at: usize) {
    let options = call.options(&single_dash("n= netns= b= batch= cf= conf=", true));
    if options.has("help b batch") {
        if options.has("b batch") {
            call.asks(Effect::Service, "the network", WHY);
        }
        return;
    }
    if let Some(verb) = options.operands.get(at)
        && !looks.split_ascii_whitespace().any(|look| look == verb)
    {
        call.asks(Effect::Service, &options.operands.join(" "), WHY);
    }
}

fn nmcli(call: &mut Call<'_, '_>) {
    let options =
        leading("fgmew", "fields= get-values= mode= escape= wait= terse pretty ask show-secrets colors= help version")
            .read(call.arguments());
    if options.asks_only() {
        return;
    }
    if options.has("s show-secrets") {
        call.asks(Effect::SecretRead, "network connections", "shows passwords of networks");
    }
    let words: Vec<&str> = options.operands.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    let (object, rest) = match words.as_slice() {
        [object, rest @ ..] => (*object, rest),
        [] => return,
    };
    let verb = rest.first().copied().unwrap_or_default();
    let is = |full: &str, word: &str| !word.is_empty() && full.starts_with(word);
    let changes = if is("networking", object) {
        is("on", verb) && verb == "on" || verb == "off"
    } else if is("radio", object) {
        rest.iter().any(|word| *word == "on" || *word == "off")
    } else if is("general", object) {
        is("hostname", verb) && rest.len() > 1 || is("logging", verb) && rest.len() > 1
    } else if is("connection", object) {
        !(verb.is_empty() || is("show", verb) || is("monitor", verb) || is("export", verb) || is("help", verb))
    } else if is("device", object) {
        let wifi = is("wifi", verb) && rest.len() > 1;
        let second = rest.get(1).copied().unwrap_or_default();
        if wifi || verb == "wifi" {
            ["connect", "hotspot"].iter().any(|full| second.len() > 1 && is(full, second))
        } else {
            !(verb.is_empty()
                || is("status", verb)
                || is("show", verb)
                || is("monitor", verb)
                || is("lldp", verb)
                || is("help", verb))
        }
    } else {
        false
    };
    if changes {
        call.asks(Effect::Service, &words.join(" "), WHY);
    }
}

fn interface(call: &mut Call<'_, '_>) {
    let operands = call.options(&gnu("", "")).operands;
    if operands.len() > 1 {
        call.asks(Effect::Service, &operands[0], WHY);
    }
}

fn route(call: &mut Call<'_, '_>) {
    let operands = call.options(&gnu("A", "")).operands;
    let changes = |word: &String| {
        matches!(word.to_ascii_lowercase().as_str(), "add" | "del" | "delete" | "change" | "flush" | "replace")
    };
    if operands.iter().any(changes) || call.arguments().iter().any(|word| word == "-f") {
        call.asks(Effect::Service, &operands.join(" "), WHY);
    }
}

fn wg(call: &mut Call<'_, '_>) {
    let operands = call.options(&gnu("", "")).operands;
    match operands.first().map(String::as_str) {
        Some("set" | "setconf" | "syncconf" | "addconf") => call.asks(Effect::Service, &operands[1..].join(" "), WHY),
        Some("showconf") => call.asks(Effect::SecretRead, "the tunnel's keys", "shows a private key"),
        Some("show")
            if operands.iter().any(|word| word == "private-key" || word == "preshared-keys" || word == "dump") =>
        {
            call.asks(Effect::SecretRead, "the tunnel's keys", "shows a private key");
        }
        _ => {}
    }
}

fn mac(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let changes = words.iter().any(|word| {
        let verb = word.trim_start_matches('-');
        word.starts_with('-')
            && ["set", "add", "remove", "create", "delete", "switch", "rename", "order", "import", "duplicate"]
                .iter()
                .any(|change| verb.starts_with(change))
    });
    if changes {
        call.asks(Effect::Service, &words.join(" "), WHY);
    }
}

fn host_settings(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("HM", "host= machine= static transient pretty help version"));
    if options.asks_only() {
        return;
    }
    let verb = options.operands.first().map(String::as_str).unwrap_or_default();
    let valued = options.operands.len() > 1;
    let set = verb.starts_with("set-")
        || valued
            && matches!(
                verb,
                "hostname" | "icon-name" | "chassis" | "deployment" | "location" | "ntp-servers" | "revert"
            );
    if set {
        call.asks(Effect::Service, &options.operands.join(" "), "changes settings of this host");
    }
}

fn netsh(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
    let changes = ["set", "add", "delete", "reset", "disconnect", "connect", "import", "exec", "-f", "start", "stop"];
    if words.iter().any(|word| word == "key=clear") {
        call.asks(Effect::SecretRead, "network profiles", "shows passwords of networks");
    } else if words.iter().any(|word| changes.contains(&word.as_str())) && !words.iter().any(|word| word == "show") {
        call.asks(Effect::Service, &words.join(" "), WHY);
    }
}

fn ipconfig(call: &mut Call<'_, '_>) {
    let changes = |word: &String| {
        let word = word.to_ascii_lowercase();
        word.starts_with("/release") || word.starts_with("/renew") || word == "set"
    };
    if call.arguments().iter().any(changes) {
        call.asks(Effect::Service, "the network", WHY);
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
    fn changes_ask_and_looks_do_not() {
        for (asks, twin) in [
            ("iptables -t nat -F", "iptables -t nat -L"),
            ("ip6tables --policy INPUT DROP", "ip6tables -S"),
            ("iptables-restore < r", "iptables-restore --test < r"),
            ("nft 'flush ruleset'", "nft list ruleset"),
            ("nft -f rules.nft", "nft -c -f rules.nft"),
            ("ufw --force enable", "ufw status verbose"),
            ("firewall-cmd --zone=public --remove-port=80/tcp", "firewall-cmd --zone=public --list-all"),
            ("firewall-cmd --reload", "firewall-cmd --state"),
            ("pfctl -f /etc/pf.conf", "pfctl -s all"),
            ("ip link set eth0 down", "ip -br addr"),
            ("ip -4 r add default via 10.0.0.1", "ip r"),
            ("ip netns exec blue rm -rf docs", "ip netns exec blue ip addr"),
            ("ip a flush dev eth0", "ip a s eth0"),
            ("tc qdisc del dev eth0 root", "tc -s qdisc show dev eth0"),
            ("nmcli con up home", "nmcli -t con show"),
            ("nmcli device wifi connect x", "nmcli device wifi list"),
            ("ifconfig eth0 10.0.0.1", "ifconfig eth0"),
            ("route del default", "route -n"),
            ("networksetup -setdnsservers Wi-Fi 1.1.1.1", "networksetup -getdnsservers Wi-Fi"),
            ("hostnamectl hostname web1", "hostnamectl hostname"),
            ("timedatectl set-ntp false", "timedatectl show"),
            ("netsh wlan disconnect", "netsh wlan show networks"),
            ("resolvectl dns eth0 1.1.1.1", "resolvectl dns eth0"),
            ("tailscale down", "tailscale status"),
        ] {
            assert_eq!(verdict(asks), Dangerous, "{asks}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }
}
