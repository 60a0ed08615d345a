//! Shells: what they are given to run is read as this shell reads it.

use super::options::{Grammar, gnu, leading};
use super::{Program, interpreters, runs};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text;

pub(super) const PROGRAMS: &[Program] = &[
    runs(
        &[
            "bash", "sh", "zsh", "dash", "ksh", "ash", "mksh", "rbash", "yash", "fish", "csh", "tcsh", "oksh", "xonsh",
            "nu", "elvish",
        ],
        shell,
    ),
    runs(&["su"], su),
    runs(&["sg", "newgrp"], switch_group),
];

const SHELL: Grammar = leading("Oo", "rcfile= init-file= noprofile norc login posix help version");

/// What is switched off with `+x` says nothing about what runs.
fn without_plus(arguments: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" | "-" => {
                kept.push(word.clone());
                break;
            }
            "+o" | "+O" => drop(words.next()),
            switch if switch.starts_with('+') => {}
            option if option.starts_with('-') => {
                kept.push(word.clone());
                if matches!(option, "--rcfile" | "--init-file")
                    || !option.starts_with("--") && option.ends_with(['o', 'O'])
                {
                    kept.extend(words.next().cloned());
                }
            }
            _ => {
                kept.push(word.clone());
                break;
            }
        }
    }
    kept.extend(words.cloned());
    kept
}

/// `bash [options] [-c text | file] [arguments]`
fn shell(call: &mut Call<'_, '_>) {
    let options = SHELL.read(&without_plus(call.arguments()));
    if options.asks_only() {
        return;
    }
    for variable in ["BASH_ENV", "ENV"] {
        if call.environment.iter().any(|(name, _)| name == variable) {
            start_up(call, variable);
        }
    }
    if options.has("i")
        && let Some((_, command)) = call.environment.iter().find(|(name, _)| name == "PROMPT_COMMAND").cloned()
    {
        call.shell(&command);
    }
    for file in options.values("rcfile init-file").map(str::to_owned).collect::<Vec<_>>() {
        let place = call.place(&file, true);
        if place.class != crate::TargetClass::Workspace
            && place.path != "/dev/null"
            && call.machine.file(&place.path).is_none()
        {
            call.asks(Effect::CannotTell, &place.path, "runs a start-up file that cannot be read here");
        }
        interpreters::run_file(call, &file, Some(interpreters::Language::Shell));
    }
    let mut operands = options.operands.clone();
    if options.unknown && !options.has("c") {
        call.cannot_tell("gives a shell arguments that cannot be told");
    }
    if options.has("c") {
        let Some(script) = (!operands.is_empty()).then(|| operands.remove(0)) else { return };
        if options.has("n") {
            return;
        }
        let zero = (!operands.is_empty()).then(|| operands.remove(0));
        let name = call.name.clone();
        call.machine.apart(|machine| {
            machine.state.set_text("0", zero.unwrap_or_else(|| name.clone()));
            machine.evaluate_apart(&name, &script, operands);
        });
        return;
    }
    // `-s` reads the input although there are operands.
    if let Some(file) = operands.first().filter(|_| !options.has("s")) {
        if options.has("n") || operands.iter().any(|word| word == "--help" || word == "--version") {
            return;
        }
        let file = file.clone();
        interpreters::run_file(call, &file, Some(interpreters::Language::Shell));
        return;
    }
    if options.has("n") {
        return;
    }
    let input = call.input();
    if input.is_none() && call.machine.elevated {
        call.asks(Effect::Privilege, "root", "opens a shell with the rights of another user");
    }
    if let Some(script) = input {
        if call.machine.endless_input && script.contains('&') {
            call.machine.without_end();
        }
        let name = call.name.clone();
        call.machine.evaluate_apart(&name, &script, operands);
    }
}

/// A file that a shell reads before anything else.
fn start_up(call: &mut Call<'_, '_>, variable: &str) {
    let Some(file) = call.sees(variable).filter(|file| !file.is_empty()) else { return };
    if crate::place::is_stdin(&file) {
        if let Some(script) = call.input() {
            call.shell(&script);
        }
        return;
    }
    call.asks(Effect::CannotTell, &file, &format!("{variable} makes the shell run a file that cannot be read here"));
    interpreters::run_file(call, &file, Some(interpreters::Language::Shell));
}

const SU: Grammar =
    gnu("cCgGsw", "command= session-command= group= supp-group= shell= whitelist-environment= login help version");

/// `su [options] [-] [user [arguments]]`
fn su(call: &mut Call<'_, '_>) {
    let options = call.options(&SU);
    if options.asks_only() {
        return;
    }
    let commands: Vec<String> = options.values("c C command session-command").map(str::to_owned).collect();
    if commands.is_empty() {
        call.asks(Effect::Privilege, "another user", "opens a shell as another user");
        return call.run(vec!["bash".to_owned()]);
    }
    for command in commands {
        super::wrappers::elevated_text(call, &command);
    }
}

/// `sg group -c text`
fn switch_group(call: &mut Call<'_, '_>) {
    const SG: Grammar = gnu("c", "");
    let options = call.options(&SG);
    let command = options.value("c").map(str::to_owned).or_else(|| options.operands.get(1).cloned());
    match command {
        Some(command) => call.shell(&command),
        None if call.name == "newgrp" => call.asks(Effect::Privilege, "a group", "opens a shell in another group"),
        None => {}
    }
}

/// Joins words as `ssh` and `eval` do before they are read again.
pub(super) fn joined(words: &[String]) -> String {
    text::unglob(&words.join(" "))
}
