//! `find` and its younger relatives: what they delete, write and run.

use super::{Program, prints, runs};
use crate::eval::{Call, Extent, Writing};
use crate::finding::TargetClass;
use crate::text::{self, HOLE};

pub(super) const PROGRAMS: &[Program] = &[prints(&["find", "gfind", "bfs"], find), runs(&["fd", "fdfind"], fd)];

/// Tests that leave out almost nothing: everything still goes.
const FILTERS_TYPE_ONLY: [&str; 9] =
    ["-type", "-mindepth", "-maxdepth", "-xdev", "-mount", "-depth", "-d", "-noleaf", "-print"];
/// Predicates with one argument.
const VALUED: [&str; 36] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-lname",
    "-ilname",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-perm",
    "-links",
    "-inum",
    "-samefile",
    "-maxdepth",
    "-mindepth",
    "-fstype",
    "-used",
    "-printf",
    "-regextype",
    "-context",
];

/// `find [paths] [expression]`
fn find(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let leading = words
        .iter()
        .take_while(|word| {
            matches!(word.as_str(), "-H" | "-L" | "-P") || word.starts_with("-O") || word.starts_with("-D")
        })
        .count();
    let words = &words[leading..];
    let begin =
        words.iter().position(|word| word.starts_with('-') || word == "(" || word == "!").unwrap_or(words.len());
    let (roots, expression) = words.split_at(begin);
    let roots: Vec<String> = if roots.is_empty() { vec![".".into()] } else { roots.to_vec() };
    if expression.iter().any(|word| word == "--help" || word == "-help" || word == "--version") {
        return;
    }
    // Whether some test keeps files back.
    let mut narrowed = false;
    let mut name = None;
    let mut at = 0;
    while at < expression.len() {
        let word = expression[at].as_str();
        let value = expression.get(at + 1).cloned().unwrap_or_default();
        match word {
            "-delete" => delete(call, &roots, narrowed),
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = &expression[at + 1..];
                let end = rest.iter().position(|word| word == ";" || word == "+").unwrap_or(rest.len());
                execute(call, &roots, &rest[..end], narrowed, name.as_deref());
                at += end + 1;
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                call.write(&value, Writing::Replace);
                at += 1 + usize::from(word == "-fprintf");
            }
            "-name" | "-iname" | "-path" | "-wholename" => {
                let pattern = text::unglob(&value);
                narrowed |= !pattern.chars().all(|c| matches!(c, '*' | '?'));
                name = Some(value);
                at += 1;
            }
            "!" | "-not" | "(" | ")" | "-o" | "-or" | "-a" | "-and" | "-print0" | "-ls" | "-follow" | "-prune" => {
                // What is only left out leaves the rest.
                if matches!(word, "!" | "-not")
                    && expression.get(at + 1).is_some_and(|w| matches!(w.as_str(), "-path" | "-name" | "-wholename"))
                {
                    at += 2;
                } else if word == "-o" || word == "-or" {
                    narrowed = false;
                }
            }
            _ if FILTERS_TYPE_ONLY.contains(&word) => at += usize::from(VALUED.contains(&word)),
            _ => {
                narrowed = true;
                at += usize::from(VALUED.contains(&word));
            }
        }
        at += 1;
    }
    let end = if expression.iter().any(|word| word == "-print0") { '\0' } else { '\n' };
    for root in roots {
        let shown = text::unglob(&root);
        let shown = shown.trim_end_matches('/');
        let place = call.place(&root, true);
        let whole = !narrowed && matches!(place.class, TargetClass::Root | TargetClass::System | TargetClass::Home);
        match name.as_deref().map(text::unglob).filter(|name| !name.contains(['*', '?', '['])) {
            Some(name) => call.print(&format!("{shown}/{HOLE}/{name}{end}")),
            None if whole => call.print(&format!("{shown}/{}{end}", text::STAR)),
            None => call.print(&format!("{shown}/{HOLE}{end}")),
        }
    }
}

fn delete(call: &mut Call<'_, '_>, roots: &[String], narrowed: bool) {
    for root in roots {
        let mut place = call.place(root, true);
        if narrowed {
            place.path = format!("{}/{HOLE}", place.path.trim_end_matches('/'));
            if matches!(place.class, TargetClass::Root | TargetClass::System | TargetClass::Home) {
                place.class =
                    if place.class == TargetClass::Home { TargetClass::Outside } else { TargetClass::BelowSystem };
            }
        }
        call.delete_place(&place, Extent::Bulk);
    }
}

/// Runs what follows `-exec` with a file that `find` would put in.
fn execute(call: &mut Call<'_, '_>, roots: &[String], command: &[String], narrowed: bool, name: Option<&str>) {
    if command.is_empty() {
        return;
    }
    for root in roots {
        // Without a test that keeps files back, the start itself is among what is found.
        let place = call.place(root, true);
        let whole = !narrowed && matches!(place.class, TargetClass::Root | TargetClass::System | TargetClass::Home);
        let found = if whole {
            place.path
        } else if place.path == "/dev" {
            // Most of what lies there and is worth finding is a disk.
            format!("/dev/{}", text::live(name.filter(|name| !name.contains('/')).unwrap_or("sd*")))
        } else {
            let name = name.map(text::unglob).filter(|name| !name.contains(['*', '?', '['])).unwrap_or_default();
            format!("{}/{HOLE}/{name}", text::unglob(root).trim_end_matches('/'))
        };
        let recursive = whole && deletes(&command[0]);
        let mut words: Vec<String> = command.iter().map(|word| word.replace("{}", &found)).collect();
        if recursive {
            // Each file is named, one after the other, until nothing is left.
            words.insert(1, "-r".into());
        }
        call.run(words);
    }
}

fn deletes(program: &str) -> bool {
    matches!(crate::eval::base_name(program), "rm" | "unlink" | "shred" | "srm")
}

/// `fd [options] pattern [paths] [-x program …]`
fn fd(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let Some(at) = words.iter().position(|word| matches!(word.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"))
    else {
        return call.print(&format!("./{HOLE}\n"));
    };
    if words[..at].iter().any(|word| word == "--help" || word == "--version") {
        return;
    }
    let operands: Vec<&String> = words[..at].iter().filter(|word| !word.starts_with('-')).collect();
    let root = operands.iter().skip(1).find(|word| word.contains('/')).map_or(".", |word| word.as_str());
    // A pattern without anything but a name is that name.
    let name = operands.first().map(|pattern| text::unglob(pattern).trim_matches(['^', '$']).replace("\\.", "."));
    let name = name
        .filter(|name| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-')));
    // What matches every name is all there is.
    let everything = operands.first().is_none_or(|pattern| matches!(text::unglob(pattern).as_str(), "." | "" | ".*"));
    let found = match name.filter(|_| !everything).filter(|name| name.starts_with('.') || name.contains('.')) {
        Some(name) => format!("{}/{HOLE}/{name}", root.trim_end_matches('/')),
        None if everything => format!("{}/{}", root.trim_end_matches('/'), text::live("*")),
        None => format!("{}/{HOLE}", root.trim_end_matches('/')),
    };
    let mut command: Vec<String> = words[at + 1..].iter().take_while(|word| *word != ";").cloned().collect();
    if command.is_empty() {
        return;
    }
    let marked = command.iter().any(|word| word.contains('{'));
    for word in &mut command {
        for mark in ["{}", "{/}", "{//}", "{.}", "{/.}"] {
            *word = word.replace(mark, &found);
        }
    }
    if !marked {
        command.push(found);
    }
    call.run(command);
}
