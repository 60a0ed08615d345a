//! Settings of git that are programs, and `git config`, which writes them.
//!
//! Whoever sets one of these decides what the next call of git runs; so a setting is judged by what it would run, at the
//! moment it is made.

use super::options::{Grammar, gnu};
use super::{environment, verbs};
use crate::eval::{Call, Writing};
use crate::finding::Effect;
use crate::text;

/// Settings whose value is a command line: section, and name after the last dot; `*` stands for any of them.
const COMMANDS: &[(&str, &str)] = &[
    ("core", "pager"),
    ("core", "editor"),
    ("core", "sshcommand"),
    ("core", "askpass"),
    ("core", "gitproxy"),
    ("core", "fsmonitor"),
    ("core", "alternaterefscommand"),
    ("sequence", "editor"),
    ("pager", "*"),
    ("diff", "external"),
    ("diff", "command"),
    ("diff", "textconv"),
    ("difftool", "cmd"),
    ("difftool", "path"),
    ("mergetool", "cmd"),
    ("mergetool", "path"),
    ("guitool", "cmd"),
    ("browser", "cmd"),
    ("browser", "path"),
    ("man", "cmd"),
    ("man", "path"),
    ("merge", "driver"),
    ("filter", "clean"),
    ("filter", "smudge"),
    ("filter", "process"),
    ("gpg", "program"),
    ("gpg", "defaultkeycommand"),
    ("interactive", "difffilter"),
    ("trailer", "command"),
    ("trailer", "cmd"),
    ("tar", "command"),
    ("uploadpack", "packobjectshook"),
    ("remote", "uploadpack"),
    ("remote", "receivepack"),
    ("sendemail", "sendmailcmd"),
    ("sendemail", "tocmd"),
    ("sendemail", "cccmd"),
    ("sendemail", "headercmd"),
    ("imap", "tunnel"),
    ("web", "browser"),
    ("hook", "command"),
];

/// What git makes of a name that stands alone where a program is expected.
const HELPERS: &[&str] = &[
    "cache",
    "store",
    "osxkeychain",
    "manager",
    "manager-core",
    "wincred",
    "libsecret",
    "gnome-keyring",
    "oauth",
    "netrc",
];

/// A setting is made, for one call or for good. An alias is kept until somebody calls it.
pub(super) fn set(call: &mut Call<'_, '_>, name: &str, value: &str) {
    let (section, last) = match (name.split_once('.'), name.rsplit_once('.')) {
        (Some((section, _)), Some((_, last))) => (section.to_ascii_lowercase(), last.to_ascii_lowercase()),
        _ => return,
    };
    if matches!(value, "" | "true" | "false" | "yes" | "no" | "on" | "off" | "auto" | "always" | "never") {
        if section == "protocol" && name.eq_ignore_ascii_case("protocol.ext.allow") && value == "always" {
            call.asks(Effect::CannotTell, name, "lets an address of a repository run a program");
        }
        if section == "clean" && last == "requireforce" && matches!(value, "false" | "no" | "off") {
            call.machine.state.set_text("git clean.requireforce", "false");
        }
        return;
    }
    match (section.as_str(), last.as_str()) {
        ("alias", _) => {
            let alias = name.split_once('.').map_or("", |(_, alias)| alias).to_ascii_lowercase();
            if let Some(script) = value.strip_prefix('!') {
                call.shell(script);
            }
            call.machine.state.set_text(&alias_key(&alias), value.to_owned());
        }
        ("credential", "helper") => match value.strip_prefix('!') {
            Some(script) => call.shell(script),
            None if HELPERS.contains(&value.split(' ').next().unwrap_or_default()) => {}
            None => environment::side_door(call, value),
        },
        ("core", "hookspath") if value != "/dev/null" => {
            call.asks(Effect::Persistence, value, "makes git run hooks from another directory");
        }
        ("init", "templatedir") => {
            call.asks(Effect::Persistence, value, "gives new repositories the hooks of a template");
        }
        ("include" | "includeif", "path") => {
            call.asks(Effect::Persistence, value, "makes git take settings from a file that cannot be read here");
        }
        ("submodule", "update") => {
            if let Some(script) = value.strip_prefix('!') {
                call.shell(script);
            }
        }
        ("sendemail", "smtpserver") if value.starts_with('/') => environment::side_door(call, value),
        ("remote", "url" | "pushurl" | "vcs") => address(call, value),
        ("url", _) => {
            let base = name.split_once('.').and_then(|(_, rest)| rest.rsplit_once('.')).map_or("", |(base, _)| base);
            address(call, base);
        }
        ("gc", "pruneexpire" | "reflogexpire" | "reflogexpireunreachable") if matches!(value, "now" | "all") => {
            call.asks(Effect::VersionControl, name, "lets git throw away what nothing points to any more");
        }
        ("http", "sslverify") | ("core", "worktree") => {}
        _ if COMMANDS.iter().any(|(of, setting)| *of == section && (*setting == last || *setting == "*")) => {
            command(call, value);
        }
        _ => {}
    }
}

/// A command line that git hands to a shell with file names after it.
pub(super) fn command(call: &mut Call<'_, '_>, value: &str) {
    if text::is_unknown(value) {
        return call.cannot_tell("makes git run a program whose name cannot be told");
    }
    environment::side_door(call, value);
}

/// An address of a repository; `ext::` is a command.
pub(super) fn address(call: &mut Call<'_, '_>, address: &str) {
    if let Some(script) = address.strip_prefix("ext::") {
        // `% ` is a blank inside of a word, `%S` and `%G` are what git asks for.
        let script = script.replace("% ", " ").replace("%S", "git-upload-pack").replace("%G", "");
        call.shell(&script);
        call.asks(Effect::CannotTell, address, "runs a program as the way to a repository");
    }
}

/// Where an alias is kept between two calls of git.
pub(super) fn alias_key(alias: &str) -> String {
    format!("git alias.{alias}")
}

/// Settings that come with the environment.
pub(super) fn from_environment(call: &mut Call<'_, '_>) {
    let count = call.sees("GIT_CONFIG_COUNT").and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
    for index in 0..count.min(16) {
        let name = call.sees(&format!("GIT_CONFIG_KEY_{index}"));
        let value = call.sees(&format!("GIT_CONFIG_VALUE_{index}"));
        if let (Some(name), Some(value)) = (name, value) {
            set(call, &name, &value);
        }
    }
    if let Some(parameters) = call.sees("GIT_CONFIG_PARAMETERS") {
        for parameter in crate::shell::split(&parameters) {
            if let Some((name, value)) = parameter.split_once('=') {
                set(call, name, value);
            }
        }
    }
    for variable in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG"] {
        if let Some(file) = call.sees(variable).filter(|file| !file.is_empty() && file != "/dev/null") {
            let place = call.place(&file, true);
            if place.class != crate::finding::TargetClass::Workspace || call.is_foreign(&place.path) {
                call.asks(
                    Effect::CannotTell,
                    &place.path,
                    "makes git take settings from a file that cannot be read here",
                );
            }
        }
    }
}

const CONFIG: Grammar = gnu(
    "ft",
    "file= blob= type= default= comment= value= global system local worktree get get-all get-regexp get-urlmatch= \
     get-color= get-colorbool= list edit add replace-all unset unset-all rename-section remove-section \
     fixed-value all \
     null name-only show-origin show-scope includes no-includes regexp url= bool int bool-or-int path append",
);

/// `git config [where] [action] name [value]`, in the old and the new spelling.
pub(super) fn config(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = CONFIG.read(arguments);
    let mut operands = options.operands.as_slice();
    let verb = operands.first().map_or("", String::as_str);
    let spelled = ["set", "get", "list", "unset", "edit", "rename-section", "remove-section"].contains(&verb);
    let reads = options.has("get get-all get-regexp get-urlmatch get-color get-colorbool list l blob")
        || matches!(verb, "get" | "list")
        || verbs::leads("get-*", operands);
    if spelled {
        operands = &operands[1..];
    }
    let takes_away = options.has("unset unset-all rename-section remove-section")
        || matches!(verb, "unset" | "rename-section" | "remove-section");
    let edits = options.has("edit e") || verb == "edit";
    let writes = !reads && (takes_away || edits || operands.len() > 1);
    if !writes {
        return;
    }
    if options.has("global system") {
        let name = operands.first().cloned().unwrap_or_default();
        call.asks(Effect::Persistence, &name, "changes the settings of git for all repositories");
    }
    if let Some(file) = options.value("f file").map(str::to_owned) {
        call.write(&file, Writing::Edit);
    }
    if let [name, value, ..] = operands
        && !takes_away
        && !edits
    {
        set(call, &name.clone(), &value.clone());
    }
}
