//! What programs do: one file per family, each a table of names and small functions.
//!
//! A model gets a [`Call`] with resolved words, reads them with the program's option grammar ([`options`]) and names
//! effects. A program without a model does nothing worth a question; a program whose name nobody can tell does.
//! `CONTRIBUTING.md` says how to add one.

pub(crate) mod accounts;
mod archives;
mod builds;
mod clouds;
mod clusters;
mod containers;
mod disks;
mod editors;
pub(crate) mod environment;
mod fetch;
mod files;
mod find;
mod forges;
mod git;
mod git_settings;
mod history;
mod host_network;
mod images;
mod infrastructure;
pub(crate) mod interpreters;
mod kernel;
mod key_value;
mod keys;
mod machines;
mod migrations;
mod network;
mod node_packages;
pub(crate) mod options;
mod packages;
mod power;
mod powershell;
mod processes;
mod readers;
mod registries;
mod remote;
mod rows;
mod services;
mod shells;
mod sql;
mod stores;
mod text_tools;
mod vcs;
mod verbs;
mod volumes;
mod windows;
mod wrappers;

pub(crate) use readers::only_reads;

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::eval::{Call, base_name, blurred};
use crate::finding::Effect;
use crate::text;

/// The model of a few programs that are alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// Names without directories.
    pub(crate) names: &'static [&'static str],
    /// Says what a call does.
    pub(crate) model: fn(&mut Call<'_, '_>),
    /// What the program is beyond its effects.
    pub(crate) kind: Kind,
}

/// What surrounds the effects of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `--help` among its words means that nothing is done; its output is unknown.
    Plain,
    /// Its words may be those of another program, or its model reads `--help` itself; its output is unknown.
    Runs,
    /// The model prints what the program prints, and reads `--help` itself.
    Prints,
    /// The same for Windows, where case does not matter.
    Windows,
}

/// A program with effects of its own.
pub(crate) const fn plain(names: &'static [&'static str], model: fn(&mut Call<'_, '_>)) -> Program {
    Program { names, model, kind: Kind::Plain }
}

/// A program that runs others.
pub(crate) const fn runs(names: &'static [&'static str], model: fn(&mut Call<'_, '_>)) -> Program {
    Program { names, model, kind: Kind::Runs }
}

/// A program whose output is followed.
pub(crate) const fn prints(names: &'static [&'static str], model: fn(&mut Call<'_, '_>)) -> Program {
    Program { names, model, kind: Kind::Prints }
}

const FAMILIES: &[&[Program]] = &[
    crate::eval::BUILTINS,
    accounts::PROGRAMS,
    archives::PROGRAMS,
    builds::PROGRAMS,
    &clouds::PROGRAMS,
    clusters::KUBECTL,
    &clusters::PROGRAMS,
    containers::PROGRAMS,
    disks::PROGRAMS,
    fetch::PROGRAMS,
    files::PROGRAMS,
    find::PROGRAMS,
    &forges::PROGRAMS,
    git::PROGRAMS,
    history::PROGRAMS,
    images::PROGRAMS,
    &infrastructure::PROGRAMS,
    interpreters::PROGRAMS,
    kernel::PROGRAMS,
    key_value::PROGRAMS,
    keys::PROGRAMS,
    &machines::PROGRAMS,
    migrations::PROGRAMS,
    node_packages::PROGRAMS,
    packages::FLAGS,
    &packages::PROGRAMS,
    power::PROGRAMS,
    powershell::PROGRAMS,
    processes::PROGRAMS,
    &registries::PROGRAMS,
    registries::PYTHON,
    remote::PROGRAMS,
    services::PROGRAMS,
    shells::PROGRAMS,
    stores::PROGRAMS,
    text_tools::PROGRAMS,
    editors::PROGRAMS,
    &vcs::PROGRAMS,
    volumes::PROGRAMS,
    windows::PROGRAMS,
    wrappers::PROGRAMS,
    host_network::PROGRAMS,
];

#[cfg(test)]
/// Programs of which two families know a side each: both models look at a call.
const SHARED: [&str; 14] = [
    "atlas",
    "borg",
    "borgmatic",
    "bup",
    "consul",
    "duplicity",
    "kopia",
    "machinectl",
    "mix",
    "restic",
    "security",
    "snow",
    "tarsnap",
    "turso",
];

static TABLE: LazyLock<HashMap<&'static str, Program>> = LazyLock::new(|| {
    let mut table = HashMap::new();
    for program in FAMILIES.iter().copied().flatten() {
        for name in program.names {
            table.entry(*name).or_insert(*program);
        }
    }
    table
});

/// The second models of shared programs.
static SECOND: LazyLock<HashMap<&'static str, Program>> = LazyLock::new(|| {
    let mut seen = HashSet::new();
    let mut second = HashMap::new();
    for program in FAMILIES.iter().copied().flatten() {
        for name in program.names {
            if !seen.insert(*name) {
                second.insert(*name, *program);
            }
        }
    }
    second
});

fn lookup(name: &str) -> Option<Program> {
    if let Some(program) = TABLE.get(name) {
        return Some(*program);
    }
    if name.bytes().any(|byte| byte.is_ascii_uppercase())
        && let Some(program) = TABLE.get(name.to_ascii_lowercase().as_str())
        && program.kind == Kind::Windows
    {
        return Some(*program);
    }
    if let Some(program) = kin(name).or_else(|| versioned(name)).and_then(|name| TABLE.get(name)) {
        return Some(*program);
    }
    windows::cmdlet(name)
}

/// `mkfs.xfs` is a `mkfs` and `partclone.ext4` a `partclone`.
fn kin(name: &str) -> Option<&str> {
    ["mkfs.", "fsck.", "newfs_", "partclone."]
        .into_iter()
        .find(|first| name.starts_with(first))
        .map(|first| first.trim_end_matches(['.', '_']))
}

/// `python3.12` is `python`, `gcc-13` is `gcc`.
fn versioned(name: &str) -> Option<&str> {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    (bare.len() < name.len() && !bare.is_empty()).then_some(bare)
}

/// The program without its directory, then what follows the options before its verb.
pub(crate) fn verb_first(name: &str, arguments: &[String]) -> Vec<String> {
    const OTHERS: options::Grammar =
        options::leading("n", "namespace= context= kubeconfig= cluster= user= server= token= kube-context=");
    let grammar = match name {
        "git" => Some(&git::GLOBAL),
        "docker" | "podman" | "nerdctl" => Some(&containers::GLOBAL),
        "cargo" => Some(&builds::CARGO),
        "kubectl" | "oc" | "helm" | "terraform" | "tofu" => Some(&OTHERS),
        _ => None,
    };
    let rest = grammar.map_or_else(|| arguments.to_vec(), |grammar| grammar.read(arguments).operands);
    std::iter::once(name.to_owned()).chain(rest).collect()
}

/// Runs the model of the program that `call` names.
pub(crate) fn run(call: &mut Call<'_, '_>) {
    let Some(program) = call.words.first().cloned() else { return };
    if program.is_empty() {
        return;
    }
    if text::is_unknown(&program) {
        let fetched = program.contains(text::REMOTE);
        if fetched {
            call.asks(Effect::ExecuteRemote, &program, "runs text that comes over the network as a command");
        } else {
            call.cannot_tell("runs a program whose name cannot be told");
        }
        // With nothing in the place of what is unknown the rest may already spell a program.
        let known: String = base_name(&program).chars().filter(|c| !text::is_hole(*c)).collect();
        if !known.is_empty() && lookup(&known).is_some() {
            let mut words = call.words.clone();
            words[0] = known;
            call.run(words);
        }
        call.print(&text::HOLE.to_string());
        return;
    }
    if text::has_glob(base_name(&program)) && !matches!(call.name.as_str(), "[" | "[[") {
        return matched(call, &program);
    }
    if let Some(name) = init_script(&program) {
        let mut words = vec!["service".to_owned(), name.to_owned()];
        words.extend_from_slice(call.arguments());
        return call.run(words);
    }
    if program.contains('/') && lookup(&call.name).is_some() {
        // A file that this command wrote or fetched is itself, whatever well-known name it has.
        let place = call.place(&program, true);
        if call.machine.file(&place.path).is_some() || call.is_foreign(&place.path) {
            interpreters::run_file(call, &program, None);
        }
    }
    match lookup(&call.name) {
        Some(program) => {
            if let Some(second) = SECOND.get(call.name.as_str()) {
                call.captured(|call| apply(*second, call));
            }
            apply(program, call);
        }
        None if call.machine.state.functions.contains_key("command_not_found_handle") && !program.contains('/') => {
            let words = call.words.clone();
            call.machine.call_function("command_not_found_handle", words);
        }
        None => {
            interpreters::run_file(call, &program, None);
            let output = call.input().map_or_else(|| text::HOLE.to_string(), |input| blurred(&input));
            call.print(&output);
        }
    }
}

/// The service that a script of `init` starts and stops.
fn init_script(program: &str) -> Option<&str> {
    ["/etc/init.d/", "/etc/rc.d/init.d/", "/etc/rc.d/", "/usr/local/etc/rc.d/"]
        .into_iter()
        .find_map(|directory| program.strip_prefix(directory))
        .filter(|name| !name.is_empty() && !name.contains('/'))
}

fn apply(program: Program, call: &mut Call<'_, '_>) {
    if program.kind == Kind::Plain && asks_for_help(call.arguments()) {
        call.print(&text::PLAIN.to_string());
        return;
    }
    if program.kind == Kind::Windows && call.arguments().iter().any(|word| text::unglob(word) == "/?") {
        return;
    }
    (program.model)(call);
    if matches!(program.kind, Kind::Plain | Kind::Windows) {
        let output = call.input().map_or_else(|| text::HOLE.to_string(), |input| blurred(&input));
        call.print(&output);
    }
}

/// Whether a word in the place of an option asks for help or the version.
fn asks_for_help(arguments: &[String]) -> bool {
    let mut short_before = false;
    for word in arguments.iter().take_while(|word| *word != "--") {
        if matches!(word.as_str(), "--help" | "--version") && !short_before {
            return true;
        }
        short_before = word.len() == 2 && word.starts_with('-');
    }
    false
}

/// Statements that code gives to a database.
pub(crate) fn sql_text(call: &mut Call<'_, '_>, statements: &str) {
    let mut words = vec!["sqlite3".to_owned(), "database".to_owned(), statements.to_owned()];
    words.truncate(3);
    call.run(words);
}

/// A script of the project with verbs of its own, such as `manage.py`: its name is that of a program.
fn project_file(call: &mut Call<'_, '_>, file: &str, arguments: &[String]) {
    if lookup(base_name(file)).is_some() {
        let mut words = vec![base_name(file).to_owned()];
        words.extend_from_slice(arguments);
        call.run(words);
    }
}

/// A program named by a glob: each one that it matches may be meant.
fn matched(call: &mut Call<'_, '_>, program: &str) {
    let pattern = base_name(program).to_owned();
    call.cannot_tell("runs a program that is named by a pattern");
    if pattern.len() > 64 {
        return;
    }
    // Every name there is is looked at.
    call.machine.charge(TABLE.len() * 24);
    let mut names: Vec<&str> = TABLE.keys().copied().filter(|name| text::matches(&pattern, name)).collect();
    names.sort_unstable();
    for name in names.into_iter().take(40) {
        let mut words = call.words.clone();
        words[0] = name.to_owned();
        call.run(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_programs_have_two_models() {
        let mut seen = HashSet::new();
        let names = FAMILIES.iter().copied().flatten().flat_map(|program| program.names);
        let mut twice: Vec<_> = names.copied().filter(|name| !seen.insert(*name)).collect();
        twice.sort_unstable();
        let mut shared = SHARED.to_vec();
        shared.sort_unstable();
        assert_eq!(twice, shared);
    }
}
