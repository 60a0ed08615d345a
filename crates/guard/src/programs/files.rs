//! Programs that delete, copy, move, link, empty and change files.

use super::options::{Grammar, gnu};
use super::{Program, plain, prints, runs};
use crate::eval::{Call, Extent, Writing};
use crate::finding::{Effect, TargetClass, Verdict};
use crate::text::{self, HOLE, SECRET};

pub(super) const PROGRAMS: &[Program] = &[
    plain(&["rm", "grm"], rm),
    plain(&["srm", "wipe", "rmrf", "rimraf", "del-cli"], srm),
    plain(&["unlink"], unlink),
    plain(&["rmdir"], rmdir),
    plain(&["shred", "gshred", "scrub"], shred),
    plain(&["trash-empty"], trash_empty),
    plain(&["trash", "trash-put", "gio"], trash),
    plain(&["cp", "gcp"], cp),
    plain(&["mv", "gmv"], mv),
    plain(&["install", "ginstall"], install),
    plain(&["ln", "gln", "link"], ln),
    plain(&["touch", "mkdir", "mkfifo", "mknod"], create),
    plain(&["truncate"], truncate),
    plain(&["fallocate"], fallocate),
    prints(&["tee", "sponge"], tee),
    plain(&["rename", "prename"], rename),
    prints(&["mktemp"], mktemp),
    plain(&["chmod"], chmod),
    plain(&["chown", "chgrp"], chown),
    plain(&["setfacl"], setfacl),
    plain(&["setcap"], setcap),
    plain(&["chattr", "chflags"], chattr),
    plain(&["patch"], patch),
    runs(&["split"], split),
];

const RM: Grammar =
    gnu("", "recursive force interactive=? one-file-system no-preserve-root preserve-root=? dir verbose help version");

fn rm(call: &mut Call<'_, '_>) {
    let options = call.options(&RM);
    if options.asks_only() {
        return;
    }
    let recursive = options.has("r R recursive") || options.unknown;
    for operand in &options.operands {
        let many = operand.contains(text::HOLES) || operand.contains(text::OUTPUT);
        call.delete(operand, if recursive || many { Extent::Bulk } else { Extent::One });
    }
    if options.unknown && options.operands.is_empty() {
        call.cannot_tell("deletes something that cannot be told");
    }
}

fn srm(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("lxPSq", ""));
    let bulk = options.has("r R recursive") || matches!(call.name.as_str(), "rmrf" | "rimraf" | "del-cli");
    for operand in &options.operands {
        call.delete(operand, if bulk { Extent::Bulk } else { Extent::Shred });
    }
}

fn unlink(call: &mut Call<'_, '_>) {
    for operand in call.options(&gnu("", "")).operands {
        call.delete(&operand, Extent::One);
    }
}

/// Only empty directories go, so only their names are lost; the program of Windows is another one.
fn rmdir(call: &mut Call<'_, '_>) {
    if call.arguments().iter().any(|word| word.to_ascii_lowercase().starts_with("/s") && word.len() <= 4) {
        super::windows::rd(call);
    }
}

fn shred(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "nsp",
        "iterations= size= random-source= pattern= remove=? force verbose exact zero help version",
    ));
    for operand in options.operands {
        if operand != "-" {
            call.delete(&operand, Extent::Shred);
        }
    }
}

fn trash_empty(call: &mut Call<'_, '_>) {
    call.asks(Effect::Delete, "the trash", "deletes what is in the trash for good");
}

/// What goes into the trash comes back from it, but not from where nobody looks for it.
fn trash(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("", ""));
    let mut operands = options.operands.as_slice();
    if call.name == "gio" {
        if operands.first().is_none_or(|verb| verb != "trash" && verb != "remove") {
            return;
        }
        if options.has("empty") {
            return trash_empty(call);
        }
        operands = &operands[1..];
    }
    for operand in operands {
        let place = call.place(operand, false);
        if !matches!(place.class, TargetClass::Workspace | TargetClass::Temporary) {
            call.delete_place(&place, Extent::Bulk);
        }
    }
}

const COPY: Grammar = gnu(
    "tSgomZ?",
    "target-directory= suffix= no-target-directory backup=? preserve=? no-preserve= reflink=? sparse= recursive force interactive archive verbose update=? group= owner= mode= directory strip strip-program= context=? no-clobber dereference symbolic-link link parents attributes-only help version",
);

/// Source files and what they are written to.
fn pairs(call: &mut Call<'_, '_>, operands: &[String], directory: Option<&str>, exact: bool) -> Vec<(String, String)> {
    let (sources, target, into) = match directory {
        Some(directory) => (operands, directory.to_owned(), true),
        None => match operands {
            [sources @ .., target] if !sources.is_empty() => {
                let into = sources.len() > 1 || target.ends_with('/') || matches!(target.as_str(), "." | "..");
                (sources, target.clone(), into)
            }
            _ => return Vec::new(),
        },
    };
    let place = call.place(&target, true);
    // A directory that is known to be one, or whose name says nothing else.
    let known = matches!(place.class, TargetClass::Root | TargetClass::System | TargetClass::Home)
        || [
            "/.ssh",
            "/autostart",
            "/cron.d",
            "/cron.daily",
            "/cron.hourly",
            "/hooks",
            "/sudoers.d",
            "/profile.d",
            "/tmp",
            "/bin",
            "/init.d",
            "/LaunchAgents",
            "/user",
        ]
        .iter()
        .any(|end| place.path.ends_with(end));
    let into = (into || known) && !exact;
    sources
        .iter()
        .map(|source| {
            let name = source.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let to = if into && !name.is_empty() && name != "." {
                format!("{}/{name}", target.trim_end_matches('/'))
            } else {
                target.clone()
            };
            (source.clone(), to)
        })
        .collect()
}

fn cp(call: &mut Call<'_, '_>) {
    let options = call.options(&COPY);
    if options.asks_only() {
        return;
    }
    let links = options.has("s symbolic-link l link");
    for (source, target) in
        pairs(call, &options.operands, options.value("t target-directory"), options.has("T no-target-directory"))
    {
        copy(call, &source, &target, links);
    }
}

fn copy(call: &mut Call<'_, '_>, source: &str, target: &str, links: bool) {
    let from = call.place(source, true);
    let empty = from.path == "/dev/null";
    let text = match call.machine.file(&from.path) {
        Some(fact) => fact.text.clone(),
        None if from.class == TargetClass::Secret && !links => {
            let to = call.place(target, true);
            let kept = matches!(to.class, TargetClass::Secret);
            if !kept {
                call.find(
                    Verdict::Dangerous,
                    Effect::SecretRead,
                    &from.path,
                    TargetClass::Secret,
                    "copies a secret to where it is not expected",
                );
            }
            SECRET.into()
        }
        None if call.is_foreign(&from.path) => {
            call.now_foreign(target);
            HOLE.into()
        }
        None if empty => String::new(),
        None => HOLE.into(),
    };
    let path = call.write(target, if empty { Writing::Empty } else { Writing::Replace });
    if text != HOLE.to_string() {
        call.machine.remember_file(&path, text);
    }
}

fn mv(call: &mut Call<'_, '_>) {
    let options = call.options(&COPY);
    if options.asks_only() {
        return;
    }
    for (source, target) in
        pairs(call, &options.operands, options.value("t target-directory"), options.has("T no-target-directory"))
    {
        let from = call.place(&source, source.ends_with('/'));
        let to = call.place(&target, true);
        if to.path == "/dev/null" {
            call.find(
                Verdict::Dangerous,
                Effect::Delete,
                &from.path,
                from.class,
                "loses the file, or replaces the device",
            );
            continue;
        }
        match from.class {
            TargetClass::Workspace | TargetClass::Temporary => {}
            TargetClass::Secret
                if to.class == TargetClass::Secret
                    || crate::place::within(&from.path, &call.machine.world.workspace) =>
            {
                call.find(
                    Verdict::Dangerous,
                    Effect::Overwrite,
                    &from.path,
                    from.class,
                    "moves a file that holds secrets",
                );
            }
            _ if crate::place::wiped(&from, call.machine.world).is_some() => call.delete_place(&from, Extent::Bulk),
            TargetClass::Unknown => {}
            _ => {
                let why = format!("takes a file away: {}", from.class.in_words());
                call.find(Verdict::Dangerous, Effect::Delete, &from.path, from.class, &why);
            }
        }
        copy(call, &source, &target, true);
    }
}

fn install(call: &mut Call<'_, '_>) {
    let options = call.options(&COPY);
    if let Some(mode) = options.value("m mode")
        && opens(mode)
    {
        call.asks(
            Effect::Permission,
            mode,
            "sets a mode that opens the file to everybody or runs it with other rights",
        );
    }
    if options.has("d directory") {
        for operand in &options.operands {
            call.write(operand, Writing::Create);
        }
        return;
    }
    for (source, target) in
        pairs(call, &options.operands, options.value("t target-directory"), options.has("T no-target-directory"))
    {
        copy(call, &source, &target, false);
    }
}

fn ln(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "tS",
        "target-directory= suffix= symbolic force no-dereference backup=? relative no-target-directory help version",
    ));
    let (targets, name) = match (options.value("t target-directory"), options.operands.as_slice()) {
        (Some(directory), targets) => (targets.to_vec(), directory.to_owned()),
        (None, [one]) => (vec![one.clone()], ".".to_owned()),
        (None, [targets @ .., name]) => (targets.to_vec(), name.clone()),
        (None, []) => return,
    };
    for target in targets {
        let base = target.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        let into = name.ends_with('/') || name == "." || options.has("t target-directory");
        let path = if into { format!("{}/{base}", name.trim_end_matches('/')) } else { name.clone() };
        let place = call.place(&path, false);
        call.write_place(&place, Writing::Replace);
        let to = if options.has("s symbolic") { target.clone() } else { call.place(&target, true).path };
        let key = crate::eval::Key::Link(place.path);
        call.machine.state.set(key, crate::eval::Slot::Text(Some(to)));
    }
}

fn create(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("dtrmZ?", "date= reference= time= mode= context=? no-create parents verbose help version"));
    if let Some(mode) = options.value("m mode").filter(|_| call.name == "mkdir")
        && opens(mode)
    {
        call.asks(Effect::Permission, mode, "makes a directory that is open to everybody");
    }
    for operand in &options.operands {
        call.write(operand, Writing::Create);
    }
}

fn truncate(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("sr", "size= reference= no-create io-blocks help version"));
    let shrinks = options.value("s size").is_none_or(|size| {
        size.trim_start_matches(['-', '<', '=']).trim_matches('0').is_empty() || size.starts_with('-')
    });
    for operand in &options.operands {
        call.write(operand, if shrinks { Writing::Empty } else { Writing::Edit });
    }
}

fn fallocate(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("lo", "length= offset= punch-hole zero-range collapse-range dig-holes help version"));
    for operand in &options.operands {
        call.write(
            operand,
            if options.has("z zero-range p punch-hole c collapse-range") { Writing::Empty } else { Writing::Create },
        );
    }
}

fn tee(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("", "append ignore-interrupts output-error=? help version"));
    if options.asks_only() {
        return;
    }
    let append = options.has("a append");
    let input = call.input().unwrap_or_else(|| HOLE.into());
    for operand in &options.operands {
        let empties = input.is_empty() && !append;
        let writing = if append {
            Writing::Edit
        } else if empties {
            Writing::Empty
        } else {
            Writing::Replace
        };
        let path = call.write(operand, writing);
        let text = match call.machine.file(&path) {
            Some(fact) if append => format!("{}{input}", fact.text),
            _ => input.clone(),
        };
        call.machine.remember_file(&path, text);
    }
    call.print(&input);
}

/// `rename 's/a/b/' files`: the Perl of it may do anything, but a substitution only changes names.
fn rename(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("e", "help version"));
    for code in options.value("e").map(str::to_owned).into_iter().chain(options.operands.first().cloned()) {
        if code.contains('(') {
            super::interpreters::code(call, super::interpreters::Language::Perl, &code);
        }
    }
    for operand in options.operands.iter().skip(1) {
        let place = call.place(operand, false);
        if !matches!(place.class, TargetClass::Workspace | TargetClass::Temporary | TargetClass::Unknown) {
            call.write_place(&place, Writing::Edit);
        }
    }
}

/// A name that did not exist before, in a temporary directory unless the pattern says otherwise.
fn mktemp(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("p", "tmpdir=? suffix= directory dry-run quiet help version"));
    let name = text::FRESH;
    let path = match (options.operands.first(), options.value("p tmpdir")) {
        (Some(pattern), None) if !options.has("t") => pattern.trim_end_matches('X').to_owned() + &name.to_string(),
        (_, Some(directory)) => format!("{directory}/tmp.{name}"),
        _ => format!("/tmp/tmp.{name}"),
    };
    call.print(&format!("{path}\n"));
}

// ------------------------------------------------------------------------------------------------------- permissions

/// Whether a mode opens to others for writing, or runs with the rights of the owner.
fn opens(mode: &str) -> bool {
    if mode.chars().all(|c| c.is_ascii_digit()) && !mode.is_empty() {
        let digits: Vec<u32> = mode.chars().filter_map(|c| c.to_digit(8)).collect();
        let others = digits.last().copied().unwrap_or(0);
        let special = if digits.len() >= 4 { digits[digits.len() - 4] } else { 0 };
        return others & 2 != 0 || special & 6 != 0;
    }
    mode.split(',').any(|clause| {
        let Some(at) = clause.find(['+', '=']) else { return false };
        let (who, what) = (&clause[..at], &clause[at..]);
        let others = who.is_empty() || who.contains(['o', 'a']);
        let copied = who.contains('o') && what.contains(['u', 'g']);
        (others && what.contains('w') && !(who.is_empty() && what.starts_with('+')))
            || what.contains('s')
            || copied && what.starts_with('=')
            || (who.contains('a') || who.contains('o')) && what.contains('w')
    })
}

/// Whether a mode takes away what the owner needs.
fn locks_out(mode: &str) -> bool {
    let digits: String = mode.chars().filter(char::is_ascii_digit).collect();
    digits.len() >= 3 && digits.len() == mode.len() && digits.as_bytes()[digits.len() - 3] == b'0'
        || mode.split(',').any(|clause| {
            matches!(
                clause,
                "a-rwx" | "u-rwx" | "a=" | "u=" | "-rwx" | "ugo-rwx" | "a-r" | "u-r" | "u-rw" | "ugo=" | "u=,g=,o="
            )
        })
}

fn chmod(call: &mut Call<'_, '_>) {
    // A mode such as `-w` or `-x` looks like an option.
    let words: Vec<String> = call.arguments().to_vec();
    let is_mode = |word: &str| {
        word.len() > 1
            && word[1..]
                .chars()
                .all(|c| matches!(c, 'r' | 'w' | 'x' | 'X' | 's' | 't' | 'u' | 'g' | 'o' | '-' | '+' | ','))
    };
    let options =
        gnu("", "recursive reference= changes silent quiet verbose preserve-root no-preserve-root help version").read(
            &words
                .iter()
                .filter(|word| !(word.starts_with('-') && !word.starts_with("--") && is_mode(word) && *word != "-R"))
                .cloned()
                .collect::<Vec<_>>(),
        );
    let dashed = words
        .iter()
        .find(|word| word.starts_with('-') && !word.starts_with("--") && is_mode(word) && *word != "-R")
        .cloned();
    let mut operands = options.operands.clone();
    let mode = match dashed {
        Some(mode) => mode,
        None if options.has("reference") => String::new(),
        None if !operands.is_empty() => operands.remove(0),
        None => return,
    };
    let recursive = options.has("R recursive");
    let unknown = text::is_unknown(&mode);
    for operand in &operands {
        let place = call.place(operand, true);
        let (path, class) = (place.path.clone(), place.class);
        let why = if opens(&mode) {
            format!("sets {mode}: open to everybody, or run with the rights of its owner")
        } else if locks_out(&mode) {
            format!("sets {mode}: nobody can use it any more")
        } else if unknown {
            "sets a mode that cannot be told".to_owned()
        } else if matches!(class, TargetClass::Secret | TargetClass::Startup) && loosens(&mode) {
            format!("sets {mode}: others can read what is secret")
        } else if recursive && matches!(class, TargetClass::Root | TargetClass::System | TargetClass::BelowSystem) {
            "changes the permissions of everything in a system directory".to_owned()
        } else {
            continue;
        };
        call.find(Verdict::Dangerous, Effect::Permission, &path, class, &why);
    }
}

/// Whether others can read it afterwards.
fn loosens(mode: &str) -> bool {
    if let Some(last) = mode.chars().last().and_then(|c| c.to_digit(8))
        && mode.chars().all(|c| c.is_ascii_digit())
    {
        return last & 4 != 0;
    }
    mode.split(',').any(|clause| {
        clause.find(['+', '=']).is_some_and(|at| clause[..at].contains(['o', 'a']) && clause[at..].contains('r'))
    })
}

fn chown(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("", "recursive reference= from= changes silent quiet verbose dereference no-dereference preserve-root no-preserve-root help version"));
    let mut operands = options.operands.clone();
    if operands.is_empty() {
        return;
    }
    let owner = if options.has("reference") { String::new() } else { operands.remove(0) };
    let user = owner.split([':', '.']).next().unwrap_or_default();
    let world = call.machine.world;
    let own = user.is_empty() && call.name == "chown" || user == world.user || user == text::PLAIN.to_string();
    let recursive = options.has("R recursive");
    for operand in &operands {
        let place = call.place(operand, true);
        let outside = !matches!(place.class, TargetClass::Workspace | TargetClass::Temporary);
        let (path, class) = (place.path, place.class);
        if own
            && !matches!(
                class,
                TargetClass::Root
                    | TargetClass::System
                    | TargetClass::BelowSystem
                    | TargetClass::Startup
                    | TargetClass::Device
            )
        {
            continue;
        }
        if recursive && !own {
            let why = format!("gives everything in it to {}", text::shown(&owner));
            call.find(Verdict::Dangerous, Effect::Permission, &path, class, &why);
        } else if outside || user == "root" && call.name == "chown" {
            let why = format!("gives it to {}", text::shown(&owner));
            call.find(Verdict::Dangerous, Effect::Permission, &path, class, &why);
        }
    }
}

fn setfacl(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("mMxX", "modify= remove= set= recursive restore= help version"));
    for rule in options.values("m modify set") {
        let other = rule.split(',').any(|entry| {
            let entry = entry.strip_prefix("d:").or_else(|| entry.strip_prefix("default:")).unwrap_or(entry);
            (entry.starts_with("o:") || entry.starts_with("other:"))
                && entry.rsplit(':').next().is_some_and(|rights| rights.contains('w') || rights == "7" || rights == "6")
        });
        if other {
            let target = options.operands.first().cloned().unwrap_or_default();
            call.asks(Effect::Permission, &target, "opens it to everybody");
            return;
        }
    }
    for operand in &options.operands {
        let place = call.place(operand, true);
        if !matches!(place.class, TargetClass::Workspace | TargetClass::Temporary | TargetClass::Outside) {
            call.find(Verdict::Dangerous, Effect::Permission, &place.path, place.class, "changes who may use it");
        }
    }
}

fn setcap(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("n", ""));
    if options.has("v") {
        return;
    }
    let target = options.operands.last().cloned().unwrap_or_default();
    call.asks(Effect::Permission, &target, "gives a program rights of the kernel");
}

fn chattr(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    for operand in words.iter().filter(|word| !word.starts_with(['-', '+', '='])) {
        let place = call.place(operand, true);
        let protects =
            words.iter().any(|word| (word.starts_with('+') || word.starts_with('=')) && word.contains(['i', 'a']));
        let exposes = words.iter().any(|word| {
            word.starts_with('-') && !word.starts_with("-R") && word.contains(['i', 'a']) && word.len() <= 4
        });
        if exposes || protects && !matches!(place.class, TargetClass::Workspace | TargetClass::Temporary) {
            call.find(
                Verdict::Dangerous,
                Effect::Permission,
                &place.path,
                place.class,
                "changes what protects the file",
            );
        }
    }
}

/// A patch names the files it changes; one that is fed in can be read.
fn patch(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "pidoDBFYzrgV",
        "strip= input= directory= output= dry-run reverse backup reject-file= help version",
    ));
    if options.has("dry-run C check") {
        return;
    }
    if let Some(directory) = options.value("d directory").map(str::to_owned) {
        let place = call.place(&format!("{directory}/x"), true);
        call.write_place(&place, Writing::Edit);
    }
    if let Some(output) = options.value("o output").map(str::to_owned) {
        call.write(&output, Writing::Replace);
    } else if let Some(file) = options.operands.first() {
        call.write(file, Writing::Edit);
    }
    let text = match options.value("i input").map(str::to_owned).or_else(|| options.operands.get(1).cloned()) {
        Some(file) => call.read(&file),
        None => call.input().unwrap_or_default(),
    };
    let strip = options.value("p strip").and_then(|value| value.parse::<usize>().ok()).unwrap_or(0);
    for line in text.lines().take(2_000) {
        if let Some(name) = line.strip_prefix("+++ ").and_then(|rest| rest.split('\t').next()) {
            let name = name.trim();
            let name = name.splitn(strip + 1, '/').last().unwrap_or(name).to_owned();
            if options.operands.is_empty() && name != "dev/null" && name != "/dev/null" {
                call.write(&name, Writing::Edit);
            }
        }
    }
}

fn split(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("abClnt", "suffix-length= additional-suffix= bytes= line-bytes= lines= number= filter= separator= numeric-suffixes=? hex-suffixes=? verbose help version"));
    if let Some(filter) = options.value("filter").map(str::to_owned) {
        // It gets each piece on its input and the piece's name in a variable.
        let name = call.name.clone();
        let outer = std::mem::replace(&mut call.machine.stdin, crate::eval::Feed::of(HOLE.to_string()));
        call.machine.apart(|machine| {
            machine.state.set_text("FILE", format!("x{}", text::PLAIN));
            machine.evaluate_apart(&name, &filter, Vec::new());
        });
        call.machine.stdin = outer;
        return;
    }
    if let Some(prefix) = options.operands.get(1) {
        call.write(prefix, Writing::Replace);
    }
}
