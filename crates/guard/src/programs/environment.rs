//! Variables that make other programs run something: start-up files, preloaded libraries, pagers, search paths.

use crate::eval::{Call, Machine};
use crate::finding::Effect;
use crate::place;
use crate::text;

/// Variables whose value is a command that some program runs.
const COMMANDS: &[&str] = &[
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "SSH_ASKPASS",
    "PAGER",
    "MANPAGER",
    "MANROFFOPT",
    "SYSTEMD_PAGER",
    "AWS_PAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "PROMPT_COMMAND",
    "PS4",
    "PS1",
    "CVS_RSH",
    "RSYNC_RSH",
    "RSYNC_CONNECT_PROG",
    "PSQL_PAGER",
    "PSQL_EDITOR",
    "HGEDITOR",
    "BAT_PAGER",
    "FZF_DEFAULT_COMMAND",
    "DELTA_PAGER",
    "TAR_OPTIONS",
];
/// Variables that name a file whose code is loaded.
const FILES: [&str; 8] =
    ["BASH_ENV", "ENV", "PYTHONSTARTUP", "PERL5DB", "LD_AUDIT", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "RUBYLIB"];
/// Variables with options that load code.
const OPTIONS: [(&str, &[&str]); 5] = [
    ("NODE_OPTIONS", &["--require", "-r ", "--import", "--loader", "--experimental-loader"]),
    ("PERL5OPT", &["-M", "-I", "-m", "-d"]),
    ("RUBYOPT", &["-r", "-I"]),
    ("JAVA_TOOL_OPTIONS", &["-javaagent", "-agentpath", "-agentlib", "-XX:OnError", "-XX:OnOutOfMemoryError"]),
    ("MAVEN_OPTS", &["-javaagent", "-agentpath"]),
];
/// Variables with directories in which programs or code are looked up.
const PATHS: [&str; 9] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "PYTHONPATH",
    "PERL5LIB",
    "NODE_PATH",
    "GIT_EXEC_PATH",
    "CLASSPATH",
    "GEM_PATH",
];

/// A variable is assigned; what is exported, or was already, reaches other programs.
pub(crate) fn assigned(machine: &mut Machine<'_>, name: &str, value: &str, exported: bool) {
    if !is_watched(name) && !matches!(name, "HISTFILE" | "HISTSIZE" | "HISTFILESIZE" | "HISTCONTROL" | "HISTIGNORE") {
        return;
    }
    let assignment = format!("{name}={value}");
    let mut call = Call::new(machine, vec![assignment], &[]);
    call.name = name.to_owned();
    match name {
        "HISTFILE" if value.is_empty() || value == "/dev/null" => {
            call.asks(Effect::History, name, "switches the command history off");
        }
        "HISTSIZE" | "HISTFILESIZE" if value == "0" => {
            call.asks(Effect::History, name, "switches the command history off");
        }
        "HISTIGNORE" if text::unglob(value) == "*" => {
            call.asks(Effect::History, name, "switches the command history off");
        }
        "PATH" => passed(&mut call, name, value),
        // Without `export` only the shell itself would mind, and prompts are shown to nobody here.
        _ if exported => passed(&mut call, name, value),
        "LD_PRELOAD" | "BASH_ENV" | "LD_LIBRARY_PATH" => passed(&mut call, name, value),
        _ => {}
    }
}

fn is_watched(name: &str) -> bool {
    COMMANDS.contains(&name)
        || FILES.contains(&name)
        || PATHS.contains(&name)
        || OPTIONS.iter().any(|(option, _)| *option == name)
        || name.starts_with("GIT_CONFIG_")
        || name.starts_with("BASH_FUNC_")
}

/// A variable reaches another program.
pub(crate) fn passed(call: &mut Call<'_, '_>, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    if (name == "BASH_ENV" || name == "ENV") && (place::is_stdin(value) || name == "ENV" && !value.contains('/')) {
        // The shell that reads it is looked at with its input; `ENV=production` names no file.
        return;
    }
    if FILES.contains(&name) {
        let why = format!("{name} makes every program load a file that cannot be read here");
        return call.asks(Effect::CannotTell, value, &why);
    }
    if COMMANDS.contains(&name) {
        if matches!(name, "PS1" | "PS4") && !value.contains(['$', '`']) {
            return;
        }
        let script = value.trim_start_matches('|').replace("%s", "file");
        return match name {
            "TAR_OPTIONS" => call.shell(&format!("tar {value} -tf x.tar")),
            "PS1" | "PS4" => call.shell(&format!("echo \"{value}\"")),
            _ => side_door(call, &script),
        };
    }
    if let Some((_, loaders)) = OPTIONS.iter().find(|(option, _)| *option == name) {
        if loaders.iter().any(|loader| value.contains(loader)) {
            let why = format!("{name} makes every program of its kind load other code first");
            call.asks(Effect::CannotTell, value, &why);
        }
        return;
    }
    if name == "GIT_EXEC_PATH" {
        return call.asks(Effect::CannotTell, value, "makes git run its parts from another directory");
    }
    if PATHS.contains(&name) {
        for entry in value.split(':').filter(|entry| !entry.is_empty() && !text::is_unknown(entry)) {
            let place = call.place(entry, true);
            let open = ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|dir| place::within(&place.path, dir));
            if open {
                let why =
                    format!("{name} puts a directory that anybody can write to in front of the programs that run");
                call.asks(Effect::CannotTell, &place.path, &why);
            }
        }
    }
}

/// Filters and viewers that run nothing themselves.
const HARMLESS: [&str; 40] = [
    "cat",
    "less",
    "more",
    "most",
    "head",
    "tail",
    "delta",
    "bat",
    "batcat",
    "diff-so-fancy",
    "col",
    "colordiff",
    "vim",
    "vi",
    "nvim",
    "nano",
    "emacs",
    "code",
    "subl",
    "micro",
    "hx",
    "gzip",
    "gunzip",
    "pigz",
    "bzip2",
    "xz",
    "zstd",
    "lz4",
    "lzop",
    "true",
    ":",
    "false",
    "ssh",
    "ed",
    "lesspipe",
    "lesspipe.sh",
    "highlight",
    "pygmentize",
    "firefox",
    "open",
];

/// A program that another program runs for us: known filters are safe, others are judged, files that cannot be read ask.
pub(crate) fn side_door(call: &mut Call<'_, '_>, script: &str) {
    let words = crate::shell::split(script);
    let Some(program) = words.first() else { return };
    let simple = !script.contains([';', '|', '&', '`', '\n', '>', '<']) && !script.contains("$(");
    let name = crate::eval::base_name(program);
    if simple && HARMLESS.contains(&name) && (name != "ssh" || words.len() <= 1 || !script.contains("Command")) {
        let standard = !program.contains('/')
            || ["/bin/", "/usr/bin/", "/usr/local/bin/"].iter().any(|dir| program.starts_with(dir));
        if standard {
            return;
        }
    }
    if program.contains('/') && simple && super::lookup(name).is_none() {
        call.asks(Effect::CannotTell, program, "runs a program through a side door, and it cannot be read here");
        return;
    }
    let interpreter = matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "perl" | "ruby" | "node" | "php")
        || name.starts_with("python");
    if let Some(file) = words.get(1).filter(|file| interpreter && simple && !file.starts_with('-')) {
        let place = call.place(file, true);
        if call.machine.file(&place.path).is_none() {
            let why = "runs a script through a side door, and it cannot be read here";
            return call.asks(Effect::CannotTell, file, why);
        }
    }
    call.shell(script);
}
