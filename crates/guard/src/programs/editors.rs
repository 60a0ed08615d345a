//! Editors: what their commands do in batch mode, and what they open for a person.

use super::options::gnu;
use super::{Program, interpreters, prints, runs};
use crate::eval::{Call, Writing};
use crate::finding::{Effect, TargetClass};
use crate::text;

pub(super) const PROGRAMS: &[Program] = &[
    prints(&["vim", "vi", "nvim", "view", "ex", "gvim", "vimdiff", "rvim"], vim),
    prints(&["ed", "red"], ed),
    prints(&["emacs", "emacsclient"], emacs),
    runs(&["nano", "pico", "micro", "hx", "helix", "joe", "mcedit", "kak", "gedit", "kate"], plain_editor),
];

/// `vim -c command file`, `ex -s file <<< commands`
fn vim(call: &mut Call<'_, '_>) {
    // In batch mode `-s` is a flag, otherwise it takes a file.
    let silent = call.name == "ex"
        || call.arguments().iter().any(|word| word.len() < 5 && (word.starts_with("-e") || word.starts_with("-E")));
    let options = gnu(
        if silent { "cSuUtTwWipPor" } else { "cSuUtTwWispPor" },
        "cmd= startuptime= servername= remote-send= remote-expr= listen= noplugin clean headless help version",
    )
    .read(call.arguments());
    if options.asks_only() {
        return;
    }
    let mut commands: Vec<String> = options.values("c cmd").map(str::to_owned).collect();
    commands.extend(call.arguments().iter().filter_map(|word| word.strip_prefix('+')).map(str::to_owned));
    let batch = call.name == "ex" || options.has("e E es s");
    if batch && let Some(input) = call.input() {
        commands.extend(input.lines().map(str::to_owned));
    }
    let files: Vec<String> = options.operands.iter().filter(|word| !word.starts_with('+')).cloned().collect();
    for file in options
        .values("S u")
        .map(str::to_owned)
        .filter(|file| !matches!(file.as_str(), "NONE" | "NORC" | "DEFAULTS"))
        .collect::<Vec<_>>()
    {
        let place = call.place(&file, true);
        if !matches!(place.class, TargetClass::Workspace) {
            call.asks(Effect::CannotTell, &place.path, "makes the editor run a script that cannot be read here");
        }
    }
    edit(call, &commands, &files);
    if !batch && commands.is_empty() && !options.has("R Z M") && !matches!(call.name.as_str(), "view" | "vimdiff") {
        by_hand(call, &files);
    }
}

/// An editor that somebody sits at changes what it opens; an ordinary file may be looked at that way.
fn by_hand(call: &mut Call<'_, '_>, files: &[String]) {
    for file in files {
        if matches!(call.place(file, true).class, TargetClass::Startup | TargetClass::Secret | TargetClass::Device) {
            call.write(file, Writing::Edit);
        }
    }
}

/// Editors that do nothing but what somebody types.
fn plain_editor(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("QTYorsw", "syntax= tabsize= fill= view help version"));
    if !options.asks_only() && !options.has("v view") {
        by_hand(call, &options.operands);
    }
}

/// What commands of a line editor do: shell escapes, writes, and writes of the files that are open.
fn edit(call: &mut Call<'_, '_>, commands: &[String], files: &[String]) {
    let mut writes = false;
    for command in commands {
        let command = command.trim().trim_start_matches(':');
        let bare =
            command.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '%' | ',' | '$' | '.' | '+' | '-'));
        if text::is_unknown(command) {
            call.cannot_tell("gives an editor a command that cannot be told");
        }
        if let Some(script) = bare.strip_prefix('!') {
            call.shell(script);
        } else if let Some(rest) = bare
            .strip_prefix("r !")
            .or_else(|| bare.strip_prefix("r!"))
            .or_else(|| bare.strip_prefix("read !"))
            .or_else(|| bare.strip_prefix("w !"))
            .or_else(|| bare.strip_prefix("w!!"))
        {
            call.shell(rest);
        } else if let Some(rest) = bare.strip_prefix("terminal ").or_else(|| bare.strip_prefix("term ")) {
            call.shell(rest);
        } else if let Some(at) = bare.find("system(")
            && !matches!(call.name.as_str(), "ed" | "red")
        {
            interpreters::code(call, interpreters::Language::Python, &bare[at..]);
        } else if let Some((language, rest)) = [
            ("python3 ", interpreters::Language::Python),
            ("python ", interpreters::Language::Python),
            ("py3 ", interpreters::Language::Python),
            ("py ", interpreters::Language::Python),
            ("perl ", interpreters::Language::Perl),
            ("ruby ", interpreters::Language::Ruby),
            ("lua ", interpreters::Language::Lua),
        ]
        .iter()
        .find_map(|(name, language)| bare.strip_prefix(name).map(|rest| (*language, rest)))
        {
            interpreters::code(call, language, rest);
        } else if let Some(rest) = bare
            .strip_prefix("w ")
            .or_else(|| bare.strip_prefix("w! "))
            .or_else(|| bare.strip_prefix("saveas "))
            .or_else(|| bare.strip_prefix("write "))
        {
            let file = rest.trim_start_matches(['>', ' ']).to_owned();
            call.write(&file, Writing::Replace);
        } else if let Some(rest) = bare.strip_prefix("call delete(") {
            let file = rest.trim_start_matches(['\'', '"']).split(['\'', '"']).next().unwrap_or_default().to_owned();
            call.delete(&file, crate::eval::Extent::One);
        } else if matches!(
            bare.split([' ', '|']).next(),
            Some("w" | "wq" | "wq!" | "x" | "x!" | "w!" | "wa" | "wqa" | "xa" | "update" | "write" | "ZZ")
        ) || bare.ends_with("|wq")
            || bare.ends_with("|x")
            || bare.ends_with("| wq")
            || bare.ends_with("| x")
        {
            writes = true;
        }
    }
    if writes {
        for file in files {
            call.write(file, Writing::Edit);
        }
    }
}

fn ed(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("p", "prompt= quiet silent"));
    let commands: Vec<String> =
        call.input().map(|input| input.lines().map(str::to_owned).collect()).unwrap_or_default();
    edit(call, &commands, &options.operands);
}

fn emacs(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("fl", "eval= execute= load= script= funcall= batch help version"));
    if options.asks_only() {
        return;
    }
    for code in options.values("eval execute").map(str::to_owned).collect::<Vec<_>>() {
        interpreters::code(call, interpreters::Language::Lisp, &code);
    }
    if !options.has("batch") {
        by_hand(call, &options.operands);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Verdict, World, judge};

    #[test]
    fn what_an_editor_opens_for_a_person() {
        let world = World::new("/home/u", "/home/u/project");
        for (asks, passes) in [
            ("sudo vim /etc/hosts", "vim README.md"),
            ("nano ~/.ssh/authorized_keys", "nano src/main.c"),
            ("emacs -nw ~/.bashrc", "view ~/.bashrc"),
            ("vi /etc/passwd", "vim -R /etc/passwd"),
        ] {
            assert_eq!(judge(asks, &world).verdict, Verdict::Dangerous, "{asks}");
            assert_eq!(judge(passes, &world).verdict, Verdict::Safe, "{passes}");
        }
    }
}
