//! Programs that run another program: judged by what they run.

use super::options::{Grammar, gnu, leading};
use super::{Program, runs, shells};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text::{self, HOLE, HOLES};

pub(super) const PROGRAMS: &[Program] = &[
    runs(&["sudo", "doas", "sudoedit", "please", "run0"], sudo),
    runs(&["pkexec"], pkexec),
    runs(&["env", "cross-env", "cross-env-shell"], env),
    runs(&["watchexec", "nodemon", "reflex", "chokidar"], on_change),
    runs(
        &[
            "xterm",
            "gnome-terminal",
            "konsole",
            "alacritty",
            "kitty",
            "urxvt",
            "rxvt",
            "foot",
            "wezterm",
            "x-terminal-emulator",
            "xfce4-terminal",
            "terminator",
            "tilix",
            "st",
        ],
        terminal,
    ),
    runs(&["fzf", "sk", "peco"], chooser),
    runs(&["tcpdump", "dumpcap", "tshark"], capture),
    runs(
        &[
            "nice",
            "ionice",
            "chrt",
            "taskset",
            "timeout",
            "gtimeout",
            "stdbuf",
            "unbuffer",
            "nohup",
            "setsid",
            "time",
            "catchsegv",
            "chronic",
        ],
        simple,
    ),
    runs(
        &[
            "strace",
            "ltrace",
            "perf",
            "valgrind",
            "catchsegv2",
            "faketime",
            "eatmydata",
            "proxychains",
            "proxychains4",
            "torsocks",
            "tsocks",
            "dbus-run-session",
            "xvfb-run",
            "fakeroot",
            "linux32",
            "linux64",
            "setarch",
            "choom",
            "prlimit",
            "cgexec",
            "numactl",
            "caffeinate",
            "direnv",
            "chpst",
            "softlimit",
            "setpriv",
            "capsh",
            "runcon",
            "sem",
            "systemd-inhibit",
            "dotenv",
            "aws-vault",
            "mise",
            "asdf",
            "rtx",
            "pixi",
            "devbox",
            "nix-shell",
        ],
        simple,
    ),
    runs(&["systemd-run"], simple),
    runs(&["runuser", "gosu", "su-exec", "setuidgid"], other_user),
    runs(&["chroot", "unshare", "nsenter", "bwrap", "firejail", "systemd-nspawn", "proot", "fakechroot"], jail),
    runs(&["xargs", "gxargs"], xargs),
    runs(&["parallel"], parallel),
    runs(&["watch", "entr", "viddy", "hyperfine"], watch),
    runs(&["busybox", "toybox"], applet),
    runs(&["script"], script),
    runs(&["flock", "lockf", "setlock"], flock),
    runs(&["screen", "tmux", "byobu"], multiplexer),
    runs(&["expect", "sshpass"], simple),
];

const SUDO: Grammar = leading(
    "ugpCcrtTUDRh",
    "user= group= prompt= close-from= role= type= command-timeout= other-user= chdir= chroot= host= stdin askpass shell login list edit non-interactive validate reset-timestamp remove-timestamp preserve-env=? background help version",
);

/// `sudo [options] [NAME=value…] program …`
fn sudo(call: &mut Call<'_, '_>) {
    let mut options = SUDO.read(call.arguments());
    if options.asks_only() || options.has("l list V") {
        return;
    }
    if options.has("S stdin") {
        call.asks(Effect::Privilege, "root", "feeds a password to sudo");
    }
    if options.has("A askpass") || call.environment.iter().any(|(name, _)| name == "SUDO_ASKPASS") {
        call.asks(Effect::Privilege, "root", "lets another program supply the password for sudo");
    }
    let editing = options.has("e edit") || call.name == "sudoedit";
    if editing {
        for file in options.operands.clone() {
            call.write(&file, crate::eval::Writing::Edit);
        }
        return;
    }
    let mut words = std::mem::take(&mut options.operands);
    let assignments = words
        .iter()
        .take_while(|word| word.split_once('=').is_some_and(|(name, _)| crate::shell::is_name(name)))
        .count();
    for word in words.drain(..assignments) {
        if let Some((name, value)) = word.split_once('=') {
            super::environment::passed(call, name, value);
        }
    }
    if options.has("s shell i login") {
        if words.is_empty() {
            call.asks(Effect::Privilege, "root", "opens a shell with all rights");
            // It reads what it is fed.
            return call.run(vec!["bash".to_owned()]);
        }
        return elevated_text(call, &shells::joined(&words));
    }
    if words.is_empty() {
        if options.unknown {
            call.cannot_tell("runs something with all rights that cannot be told");
        }
        return;
    }
    elevated(call, words);
}

/// Runs words with the rights of another user: a shell among them that waits for input is a shell with all rights.
fn elevated(call: &mut Call<'_, '_>, words: Vec<String>) {
    let before = std::mem::replace(&mut call.machine.elevated, true);
    call.run(words);
    call.machine.elevated = before;
}

/// Runs a text with the rights of another user.
pub(super) fn elevated_text(call: &mut Call<'_, '_>, script: &str) {
    let before = std::mem::replace(&mut call.machine.elevated, true);
    call.shell(script);
    call.machine.elevated = before;
}

/// `pkexec [--user name] program …`
fn pkexec(call: &mut Call<'_, '_>) {
    let options = leading("u", "user= disable-internal-agent keep-cwd help version").read(call.arguments());
    if options.asks_only() {
        return;
    }
    if options.operands.is_empty() {
        return call.asks(Effect::Privilege, "root", "opens a shell with all rights");
    }
    elevated(call, options.operands);
}

const ENV: Grammar = leading(
    "uCSP",
    "unset= chdir= split-string= ignore-environment null debug block-signal=? default-signal=? help version",
);

/// `env -S 'a b' c` is `env a b c`: what `-S` brings may be options of `env`, and nothing behind it is. `None` without `-S`.
fn split_string(arguments: &[String]) -> Option<Vec<String>> {
    let mut at = 0;
    while let Some(word) = arguments.get(at).filter(|word| word.starts_with('-') && *word != "--") {
        let attached = word.strip_prefix("--split-string=").or_else(|| {
            let flags = word.strip_prefix('-')?;
            let before = flags.find('S')?;
            flags[..before].chars().all(|c| matches!(c, 'i' | '0' | 'v')).then(|| &flags[before + 1..])
        });
        let (line, rest) = match attached {
            Some(line) if !line.is_empty() => (line, at + 1),
            Some(_) => (arguments.get(at + 1)?.as_str(), at + 2),
            None if word == "--split-string" => (arguments.get(at + 1)?.as_str(), at + 2),
            None => {
                at += if matches!(word.as_str(), "-u" | "-C" | "--unset" | "--chdir") { 2 } else { 1 };
                continue;
            }
        };
        let mut words = vec!["env".to_owned()];
        words.extend_from_slice(&arguments[..at]);
        words.extend(crate::shell::split(line));
        words.extend_from_slice(arguments.get(rest..).unwrap_or_default());
        return Some(words);
    }
    None
}

/// `env [options] [NAME=value…] [program …]`
fn env(call: &mut Call<'_, '_>) {
    if let Some(words) = split_string(call.arguments()) {
        return call.run(words);
    }
    let options = ENV.read(call.arguments());
    if options.asks_only() {
        return;
    }
    let mut words = options.operands.clone();
    let assignments = words.iter().take_while(|word| word.contains('=')).count();
    let mut environment = call.environment.to_vec();
    for word in words.drain(..assignments) {
        if let Some((name, value)) = word.split_once('=') {
            super::environment::passed(call, name, value);
            environment.push((name.to_owned(), value.to_owned()));
        }
    }
    if words.is_empty() {
        if !options.has("i ignore-environment") {
            call.print(&text::SECRET.to_string());
        }
        return;
    }
    if let Some(directory) = options.value("C chdir") {
        let directory = directory.to_owned();
        let words = words.clone();
        let environment = environment.clone();
        let place = call.place(&directory, true);
        call.machine.apart(|machine| {
            machine.state.set_text("PWD", place.path);
            machine.run_program(words, &environment);
        });
        return;
    }
    call.machine.run_program(words, &environment);
}

/// Options with values of programs that put something around another program, and how many words come before it.
const AROUND: &[(&str, &str, &str, usize)] = &[
    ("nice", "n", "adjustment=", 0),
    ("ionice", "cnpPu", "class= classdata= pid= pgid= uid=", 0),
    ("chrt", "TPDp", "sched-runtime= sched-period= sched-deadline= pid", 1),
    ("taskset", "", "cpu-list pid", 1),
    ("timeout", "ks", "kill-after= signal=", 1),
    ("gtimeout", "ks", "kill-after= signal=", 1),
    ("stdbuf", "ioe", "input= output= error=", 0),
    ("time", "fo", "format= output=", 0),
    ("strace", "aeEIoOpPsSuUXb", "output= trace= user= attach=", 0),
    ("ltrace", "aAeoplnsuxDF", "output=", 0),
    ("faketime", "f", "", 1),
    ("linux32", "", "", 0),
    ("setarch", "", "", 1),
    ("choom", "np", "adjust= pid=", 0),
    ("cgexec", "g", "", 0),
    ("numactl", "iNmCp", "interleave= cpunodebind= membind= physcpubind= preferred=", 0),
    ("caffeinate", "tw", "", 0),
    ("chpst", "uUbenmsdofcr/", "", 0),
    ("setpriv", "", "reuid= regid= groups= inh-caps= ambient-caps= bounding-set= securebits=", 0),
    ("xvfb-run", "nefps", "server-num= server-args= error-file= auth-file= xauth-protocol=", 0),
    ("proxychains", "f", "", 0),
    ("proxychains4", "f", "", 0),
    ("fakeroot", "lsib", "lib= faked=", 0),
    (
        "systemd-run",
        "pMHuEdt",
        "property= machine= host= unit= description= slice= uid= gid= nice= working-directory= setenv= on-active= on-boot= on-calendar= on-startup= on-unit-active= timer-property= service-type= path-property= socket-property=",
        0,
    ),
    ("systemd-inhibit", "", "what= who= why= mode=", 0),
    ("sem", "jI", "jobs= id= semaphoretimeout=", 0),
    ("sshpass", "pfdPe", "", 0),
    ("expect", "cfd", "", 0),
    ("prlimit", "p", "pid= output=", 0),
    ("aws-vault", "", "duration=", 2),
];

/// A program that runs its operands.
fn simple(call: &mut Call<'_, '_>) {
    let row = AROUND.iter().find(|(name, ..)| *name == call.name);
    let (valued, long, before) = row.map_or(("", "", 0), |(_, valued, long, before)| (*valued, *long, *before));
    let grammar = Grammar { valued, long, permute: false, single_dash: false };
    let options = grammar.read(call.arguments());
    if options.asks_only() {
        return;
    }
    let name = call.name.clone();
    if name == "systemd-run" && options.has("on-active on-boot on-calendar on-startup on-unit-active timer-property") {
        call.asks(Effect::Persistence, "a timer", "schedules something that runs later");
    }
    if name == "expect" {
        let mut scripts: Vec<String> = options.values("c").map(str::to_owned).collect();
        if scripts.is_empty() && options.operands.iter().all(|file| file == "-") {
            scripts.extend(call.input());
        }
        return scripts.iter().for_each(|script| expect(call, script));
    }
    if name == "time"
        && let Some(output) = options.value("o output").map(str::to_owned)
    {
        call.write(&output, crate::eval::Writing::Replace);
    }
    let mut words = options.operands;
    // `nice -5 program`: a number in the place of an option.
    words.drain(..before.min(words.len()));
    if matches!(
        name.as_str(),
        "direnv"
            | "mise"
            | "asdf"
            | "rtx"
            | "pixi"
            | "devbox"
            | "dotenv"
            | "perf"
            | "aws-vault"
            | "capsh"
            | "nix-shell"
    ) {
        return behind_verb(call, &words);
    }
    call.run(words);
}

/// A script of `expect` starts programs and types for a person.
fn expect(call: &mut Call<'_, '_>, script: &str) {
    let lines = || script.split(['\n', ';']).map(str::trim);
    for program in lines().filter_map(|line| line.strip_prefix("spawn ")) {
        call.shell(program);
        let asks_for_a_password = ["sudo", "su", "ssh", "scp", "sftp", "passwd", "doas", "mysql", "psql"];
        let name = crate::eval::base_name(program.split_whitespace().next().unwrap_or_default()).to_owned();
        if asks_for_a_password.contains(&name.as_str()) && script.contains("send") {
            call.asks(Effect::Privilege, &name, "types for a person where a password is asked for");
        }
    }
}

/// `direnv exec . program`, `op run -- program`: whatever follows the verb.
fn behind_verb(call: &mut Call<'_, '_>, words: &[String]) {
    let arguments = call.arguments().to_vec();
    if let Some(at) = arguments.iter().position(|word| word == "--") {
        let mut rest = arguments[at + 1..].to_vec();
        if call.name == "capsh" {
            rest.insert(0, "bash".into());
        }
        return call.run(rest);
    }
    let command = arguments.iter().position(|word| matches!(word.as_str(), "-c" | "--run" | "--command"));
    if let Some(script) = command.and_then(|at| arguments.get(at + 1)).cloned() {
        return call.shell(&script);
    }
    if let Some(at) = words.iter().position(|word| matches!(word.as_str(), "exec" | "run" | "x" | "record" | "stat")) {
        let rest: Vec<String> =
            words[at + 1..].iter().skip_while(|word| word.starts_with('-') || *word == ".").cloned().collect();
        call.run(rest);
    }
}

/// `runuser -u name -- program …`, `gosu name program …`
fn other_user(call: &mut Call<'_, '_>) {
    let options = leading("ucgGs", "user= command= group= session-command= shell= help version").read(call.arguments());
    if options.asks_only() {
        return;
    }
    if let Some(script) = options.value("c command session-command").map(str::to_owned) {
        return call.shell(&script);
    }
    let mut words = options.operands.clone();
    if !options.has("u user") && !words.is_empty() {
        words.remove(0);
    }
    // `runuser name -c text`: what follows the name is for the shell.
    if call.name == "runuser"
        && !options.has("u user")
        && let Some(at) = words.iter().position(|word| word == "-c")
    {
        let script = words.get(at + 1).cloned().unwrap_or_default();
        return call.shell(&script);
    }
    if words.is_empty() {
        return call.asks(Effect::Privilege, "another user", "opens a shell as another user");
    }
    elevated(call, words);
}

/// `chroot directory program …` and other walls: what they run is judged as if there were no wall.
fn jail(call: &mut Call<'_, '_>) {
    let (valued, long, before) = match call.name.as_str() {
        "chroot" => ("", "userspec= groups=", 1),
        "nsenter" => ("tSGm?u?i?n?p?C?U?T?r?w?", "target= setuid= setgid= wdns=", 0),
        "unshare" => ("SGRwlm?u?i?n?p?U?C?T?", "setuid= setgid= root= wd= map-user= map-group= propagation=", 0),
        "systemd-nspawn" => ("DiMuEpxLZ", "directory= image= machine= user= setenv= bind= bind-ro= property=", 0),
        "firejail" => ("", "", 0),
        _ => (
            "",
            "bind= ro-bind= dev-bind= dev= proc= tmpfs= chdir= setenv= unsetenv= dir= symlink= uid= gid= hostname=",
            0,
        ),
    };
    let grammar = Grammar { valued, long, permute: false, single_dash: false };
    let mut options = grammar.read(call.arguments());
    if options.asks_only() {
        return;
    }
    if call.name == "bwrap" {
        // Options with two values end only at the first word that is no path of theirs.
        let arguments = call.arguments().to_vec();
        options.operands = after_bwrap(&arguments);
    }
    let mut words = options.operands.clone();
    words.drain(..usize::min(before, words.len()));
    if call.name == "nsenter" {
        call.asks(Effect::Privilege, "other namespaces", "enters the namespaces of another process");
    }
    if words.is_empty() {
        if call.name == "chroot" {
            call.asks(Effect::Privilege, "another root", "opens a shell in another root");
        }
        return;
    }
    call.run(words);
}

fn after_bwrap(arguments: &[String]) -> Vec<String> {
    let mut rest = arguments.iter();
    let mut words = Vec::new();
    while let Some(word) = rest.next() {
        let values = match word.as_str() {
            "--bind" | "--ro-bind" | "--dev-bind" | "--bind-try" | "--ro-bind-try" | "--dev-bind-try" | "--symlink"
            | "--setenv" | "--file" | "--bind-data" => 2,
            "--" => {
                words.extend(rest.cloned());
                return words;
            }
            word if word.starts_with("--unshare")
                || word.starts_with("--share")
                || matches!(word, "--die-with-parent" | "--new-session" | "--clearenv" | "--as-pid-1") =>
            {
                0
            }
            word if word.starts_with("--") => 1,
            _ => {
                words.push(word.clone());
                words.extend(rest.cloned());
                return words;
            }
        };
        for _ in 0..values {
            rest.next();
        }
    }
    words
}

const XARGS: Grammar = leading(
    "IaEdLnPsi?e?l?J?",
    "replace=? arg-file= delimiter= max-lines=? max-args= max-procs= max-chars= eof=? null interactive verbose exit no-run-if-empty open-tty help version",
);

/// `xargs [options] program [arguments]`: the input becomes arguments.
fn xargs(call: &mut Call<'_, '_>) {
    let options = XARGS.read(call.arguments());
    if options.asks_only() {
        return;
    }
    let fed = match options.value("a arg-file").map(str::to_owned) {
        Some(file) => Some(call.read(&file)),
        None => call.input(),
    };
    let mut words = options.operands.clone();
    if words.is_empty() {
        words.push("echo".into());
    }
    let fed = fed.unwrap_or_else(|| HOLE.into());
    let delimiter = options.value("d delimiter").map(crate::escapes::ansi_c);
    let items: Vec<String> = if text::is_unknown(&fed) && !text::is_literal(&fed) && !fed.contains(['/', '\n']) {
        vec![fed.replace(HOLE, &HOLES.to_string())]
    } else if options.has("0 null") {
        fed.split('\0').filter(|item| !item.is_empty()).map(str::to_owned).collect()
    } else if let Some(delimiter) = delimiter.filter(|delimiter| !delimiter.is_empty()) {
        fed.split(delimiter.as_str())
            .map(|item| item.trim_end_matches('\n').to_owned())
            .filter(|item| !item.is_empty())
            .collect()
    } else if options.has("I replace i L max-lines l") {
        fed.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    } else {
        crate::shell::split(&fed)
    };
    let pattern = match (options.value("I replace i J"), options.has("I replace i J")) {
        (Some(pattern), _) => Some(pattern.to_owned()),
        (None, true) => Some("{}".to_owned()),
        (None, false) => None,
    };
    let unbounded = options.value("P max-procs") == Some("0") && fed.contains(HOLE) && call.machine.endless_input;
    if unbounded {
        call.machine.without_end();
    }
    match pattern {
        Some(pattern) => {
            for item in items.iter().take(16) {
                call.run(words.iter().map(|word| word.replace(&pattern, item)).collect());
            }
            if items.len() > 16 {
                call.run(words.iter().map(|word| word.replace(&pattern, &HOLE.to_string())).collect());
            }
        }
        None => {
            // Files whose names come from elsewhere are many, also where only one is known.
            words.extend(items);
            call.run(words);
        }
    }
}

/// `parallel [options] program [arguments] ::: values`
fn parallel(call: &mut Call<'_, '_>) {
    let grammar = leading(
        "jISndaLNPC",
        "jobs= arg-file= delay= timeout= max-args= max-procs= colsep= joblog= results= load= memfree= retries= sshlogin= tmpdir= workdir= tagstring= halt= help version",
    );
    let options = grammar.read(call.arguments());
    if options.asks_only() {
        return;
    }
    let is_mark = |word: &String| matches!(word.as_str(), ":::" | "::::" | ":::+" | "::::+");
    let begin = options.operands.iter().position(is_mark).unwrap_or(options.operands.len());
    let (program, lists) = options.operands.split_at(begin);
    let mut items: Vec<String> = Vec::new();
    let mut files = false;
    for word in lists {
        if is_mark(word) {
            files = word.starts_with("::::");
        } else if files {
            let text = call.read(&word.clone());
            items.extend(text.lines().map(str::to_owned));
        } else {
            items.push(word.clone());
        }
    }
    if lists.is_empty() {
        let fed = match options.value("a arg-file").map(str::to_owned) {
            Some(file) => call.read(&file),
            None => call.input().unwrap_or_else(|| HOLE.into()),
        };
        items = fed.lines().map(str::to_owned).collect();
    }
    let line = shells::joined(program);
    let plain =
        !program.is_empty() && !program.iter().any(|word| word.contains([';', '|', '&', '$', '`', '>', '<', ' ']));
    for item in items.iter().take(16) {
        if plain {
            let marked = program.iter().any(|word| word.contains("{}") || word.contains("{.}"));
            let mut words: Vec<String> =
                program.iter().map(|word| word.replace("{}", item).replace("{.}", item)).collect();
            if !marked {
                words.push(item.clone());
            }
            call.run(words);
            continue;
        }
        let item = crate::eval::quoted(item);
        let script = if line.is_empty() {
            text::unglob(&item)
        } else if line.contains("{}") || line.contains("{.}") || line.contains("{1}") {
            line.replace("{}", &item).replace("{.}", &item).replace("{1}", &item)
        } else {
            format!("{line} {item}")
        };
        call.shell(&script);
    }
}

/// `watch [options] text…`
fn watch(call: &mut Call<'_, '_>) {
    let grammar =
        leading("nqws", "interval= equexit= warmup= runs= prepare= cleanup= setup= export-json= exec help version");
    let options = grammar.read(call.arguments());
    if options.asks_only() {
        return;
    }
    if matches!(call.name.as_str(), "entr") || options.has("x exec") {
        return call.run(options.operands);
    }
    if call.name == "hyperfine" {
        let texts: Vec<String> = options
            .operands
            .iter()
            .cloned()
            .chain(options.values("prepare cleanup setup p s").map(str::to_owned))
            .collect();
        return texts.iter().for_each(|text| call.shell(text));
    }
    call.shell(&shells::joined(&options.operands));
}

/// `busybox applet …`
fn applet(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    if words.first().is_some_and(|word| !word.starts_with("--")) {
        call.run(words);
    }
}

/// `script [options] [file] [-c text]`, on macOS `script file program …`
fn script(call: &mut Call<'_, '_>) {
    let grammar = gnu(
        "cEeImoOtBT",
        "command= log-io= log-out= log-in= timing=? logging-format= output-limit= echo= help version",
    );
    let options = call.options(&grammar);
    if options.asks_only() {
        return;
    }
    if let Some(text) = options.value("c command").map(str::to_owned) {
        return call.shell(&text);
    }
    if options.operands.len() > 1 {
        call.run(options.operands[1..].to_vec());
    }
}

/// `flock file program …`, `flock file -c text`
fn flock(call: &mut Call<'_, '_>) {
    let options = leading("EwcW", "timeout= wait= command= conflict-exit-code= help version").read(call.arguments());
    if options.asks_only() {
        return;
    }
    let mut words = options.operands;
    if !words.is_empty() {
        words.remove(0);
    }
    if words.first().is_some_and(|word| word == "-c" || word == "--command") {
        let text = words.get(1).cloned().unwrap_or_default();
        return call.shell(&text);
    }
    call.run(words);
}

/// `watchexec [options] -- program …`, `nodemon --exec text`: run again at every change.
fn on_change(call: &mut Call<'_, '_>) {
    let options = leading(
        "ewixfdosrgRcpn",
        "exts= watch= ignore= filter= exec= delay= signal= shell= ext= regex= glob= command=",
    )
    .read(call.arguments());
    for text in options.values("exec x command c").map(str::to_owned).collect::<Vec<_>>() {
        if call.name != "watchexec" {
            call.shell(&text);
        }
    }
    if call.name == "nodemon" && options.operands.first().is_some_and(|file| file.contains('.')) {
        return;
    }
    if options.operands.len() == 1 { call.shell(&options.operands[0].clone()) } else { call.run(options.operands) }
}

/// `xterm -e program …`, `gnome-terminal -- program …`
fn terminal(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let Some(at) = words.iter().position(|word| matches!(word.as_str(), "-e" | "-x" | "--" | "--command" | "start"))
    else {
        if let Some(text) = words.iter().find_map(|word| word.strip_prefix("--command=")).map(str::to_owned) {
            call.shell(&text);
        }
        return;
    };
    let rest: Vec<String> = words[at + 1..].iter().skip_while(|word| *word == "--").cloned().collect();
    if rest.len() == 1 { call.shell(&rest[0].clone()) } else { call.run(rest) }
}

/// `fzf --preview text`, key bindings that execute, and the variables that hold its options.
fn chooser(call: &mut Call<'_, '_>) {
    for variable in ["FZF_DEFAULT_COMMAND", "SKIM_DEFAULT_COMMAND"] {
        if let Some((_, text)) = call.environment.iter().find(|(name, _)| name == variable).cloned() {
            call.shell(&text);
        }
    }
    let words = call.arguments().to_vec();
    let mut texts = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let value = |name: &str| match word.strip_prefix(name) {
            Some("") => words.get(at + 1).cloned(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        texts.extend(value("--preview"));
        texts.extend(value("--history").map(|_| String::new()));
        if let Some(bindings) = value("--bind") {
            for action in ["execute", "execute-silent", "become", "reload", "transform", "preview"] {
                for piece in bindings.split(&format!("{action}(")).skip(1) {
                    texts.push(piece.rsplit_once(')').map_or(piece, |(text, _)| text).to_owned());
                }
            }
        }
    }
    for text in texts.iter().filter(|text| !text.is_empty()) {
        call.shell(&text.replace("{}", "item"));
    }
}

/// `tcpdump -z program`: runs on every file that is finished.
fn capture(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("BcCEFGijmMQrsTVwWyzZ", "interface= postrotate-command="));
    if let Some(program) = options.value("z").map(str::to_owned) {
        super::environment::side_door(call, &program);
    }
    if let Some(file) = options.value("w").map(str::to_owned).filter(|file| file != "-") {
        call.write(&file, crate::eval::Writing::Replace);
    }
}

/// `tmux new-session -d text`, `screen -dm program …`
fn multiplexer(call: &mut Call<'_, '_>) {
    if call.name == "screen" {
        let options = leading("SctTesphrxRXQL?", "").read(call.arguments());
        if options.has("X") {
            let first = options.value("X").map(str::to_owned);
            let mut words: Vec<String> = first.into_iter().chain(options.operands.clone()).collect();
            if let Some(at) = words.iter().position(|word| word == "stuff" || word == "exec") {
                let text = shells::joined(&words.split_off(at + 1));
                return call.shell(&crate::escapes::ansi_c(&text));
            }
            if words.iter().any(|word| word == "quit" || word == "kill") {
                call.asks(Effect::ProcessKill, "a screen session", "ends a session and what runs in it");
            }
            return;
        }
        return call.run(options.operands);
    }
    let arguments = call.arguments().to_vec();
    let Some(at) = arguments.iter().position(|word| !word.starts_with('-')) else { return };
    let options = gnu("tsncFxyeLSf", "").read(&arguments[at + 1..]);
    match arguments[at].as_str() {
        "new-session" | "new" | "new-window" | "neww" | "split-window" | "splitw" | "respawn-pane" | "run-shell"
        | "run" | "if-shell" | "if" | "popup" | "display-popup" | "pipe-pane" => {
            call.shell(&shells::joined(&options.operands));
        }
        "send-keys" | "send" => {
            let keys: Vec<String> = options
                .operands
                .iter()
                .filter(|key| !matches!(key.as_str(), "Enter" | "C-m" | "C-c"))
                .cloned()
                .collect();
            call.shell(&keys.join(" "));
        }
        "kill-server" | "kill-session" | "kill-window" | "kill-pane" | "killw" | "killp" => {
            call.asks(Effect::ProcessKill, "a tmux session", "ends a session and what runs in it");
        }
        _ => {}
    }
}
