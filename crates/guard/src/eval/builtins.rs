//! What the shell does itself.

use std::rc::Rc;

use super::call::Call;
use super::state::{Key, Slot, Value};
use crate::escapes;
use crate::finding::Effect;
use crate::programs::{Kind, Program, environment, plain, prints, runs};
use crate::shell::is_name;
use crate::text::{self, HOLE, PLAIN};

pub(crate) const BUILTINS: &[Program] = &[
    prints(&[":", "true"], |call| call.machine.status = Some(true)),
    prints(&["false"], |call| call.machine.status = Some(false)),
    prints(&["cd", "chdir"], cd),
    prints(&["pushd"], pushd),
    prints(&["popd"], popd),
    prints(&["pwd"], pwd),
    prints(&["dirs", "times", "disown", "wait", "ulimit", "umask", "shopt", "getopts", "suspend", "logout"], |_| {}),
    runs(&["jobs"], jobs),
    prints(&["return", "exit", "break", "continue", "fg", "bg"], |_| {}),
    prints(&["echo", "gecho"], echo),
    prints(&["printf", "gprintf"], printf),
    prints(&["test", "[", "[["], test),
    prints(&["read"], read),
    prints(&["mapfile", "readarray"], mapfile),
    prints(&["set"], set),
    prints(&["shift"], shift),
    prints(&["unset"], unset),
    prints(&["export", "declare", "typeset", "local", "readonly"], declare),
    prints(&["let"], arithmetic),
    runs(&["eval"], eval),
    runs(&["exec"], exec),
    runs(&["source", "."], source),
    prints(&["command"], command),
    runs(&["builtin", "noglob", "nocorrect", "-"], builtin),
    prints(&["type", "which", "whence", "hash", "where"], which),
    prints(&["alias"], alias),
    prints(&["unalias"], unalias),
    prints(&["trap"], trap),
    plain(&["enable"], enable),
    prints(&["compgen", "complete"], complete),
    runs(&["bind"], bind),
    Program { names: &["history"], model: history, kind: Kind::Plain },
    runs(&["fc"], fc),
];

/// `jobs -x command`: runs it, with jobs in it replaced.
fn jobs(call: &mut Call<'_, '_>) {
    if call.arguments().first().is_some_and(|word| word == "-x") {
        call.run(call.words[2..].to_vec());
    }
}

fn enter(call: &mut Call<'_, '_>, path: &str) {
    let place = call.place(path, true);
    let old = call.machine.cwd().unwrap_or_else(|| HOLE.into());
    call.machine.assign_text("OLDPWD", old);
    call.machine.assign_text("PWD", place.path);
    call.machine.status = None;
}

fn cd(call: &mut Call<'_, '_>) {
    let operand =
        call.arguments().iter().find(|word| !matches!(word.as_str(), "-P" | "-L" | "-e" | "-@" | "--")).cloned();
    match operand.as_deref() {
        None => {
            let home = match call.machine.variable("HOME") {
                Value::Text(home) => home,
                _ => HOLE.into(),
            };
            enter(call, &home);
        }
        Some("-") => {
            let old = match call.machine.variable("OLDPWD") {
                Value::Text(path) => path,
                _ => HOLE.into(),
            };
            enter(call, &old);
        }
        // Unknown text may also be nothing at all, and then the shell goes home; what is unknown stays so.
        Some(path) => {
            let path = path.to_owned();
            enter(call, &path);
        }
    }
}

const STACK: &str = "DIRSTACK";

fn pushd(call: &mut Call<'_, '_>) {
    let mut stack = match call.machine.variable(STACK) {
        Value::Array(stack) => stack,
        _ => Vec::new(),
    };
    let cwd = call.machine.cwd().unwrap_or_else(|| HOLE.into());
    let operand = call.arguments().iter().find(|word| *word != "-n" && *word != "--").cloned();
    match operand {
        Some(path) if path.starts_with(['+', '-']) => enter(call, &HOLE.to_string()),
        Some(path) => {
            stack.push((String::new(), cwd));
            enter(call, &path);
        }
        None => {
            let top = stack.pop().map_or_else(|| HOLE.into(), |(_, path)| path);
            stack.push((String::new(), cwd));
            enter(call, &top);
        }
    }
    call.machine.assign_array(STACK, stack);
}

fn popd(call: &mut Call<'_, '_>) {
    let mut stack = match call.machine.variable(STACK) {
        Value::Array(stack) => stack,
        _ => Vec::new(),
    };
    let top = stack.pop().map_or_else(|| HOLE.into(), |(_, path)| path);
    call.machine.assign_array(STACK, stack);
    enter(call, &top);
}

fn pwd(call: &mut Call<'_, '_>) {
    let cwd = call.machine.cwd().unwrap_or_else(|| HOLE.into());
    call.print(&format!("{cwd}\n"));
}

fn echo(call: &mut Call<'_, '_>) {
    let mut words = call.arguments();
    let (mut newline, mut escapes) = (true, false);
    while let [first, rest @ ..] = words
        && let Some(flags) = first.strip_prefix('-')
        && !flags.is_empty()
        && flags.chars().all(|c| matches!(c, 'n' | 'e' | 'E'))
    {
        newline &= !flags.contains('n');
        escapes = (escapes || flags.contains('e')) && !flags.ends_with('E');
        words = rest;
    }
    let text = text::unglob(&words.join(" "));
    let (mut text, ended) = if escapes { escapes::echo(&text) } else { (text, false) };
    if newline && !ended {
        text.push('\n');
    }
    call.machine.status = Some(true);
    call.print(&text);
}

fn printf(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| text::unglob(word)).collect();
    let mut words = words.as_slice();
    let mut variable = None;
    if let [option, name, rest @ ..] = words
        && option == "-v"
    {
        variable = Some(name.clone());
        words = rest;
    }
    if let [first, rest @ ..] = words
        && first == "--"
    {
        words = rest;
    }
    let [format, arguments @ ..] = words else { return };
    let printed = escapes::printf(format, arguments);
    match variable {
        Some(name) => {
            let mut printed = printed;
            printed.truncate(printed.find('\0').unwrap_or(printed.len()));
            call.machine.assign_to(&name, printed);
        }
        None => call.print(&printed),
    }
}

/// Only what is certain: whether a text is empty, whether two texts are equal, numbers.
fn test(call: &mut Call<'_, '_>) {
    // `-v name[index]`: the index is expanded.
    if let Some(at) = call.arguments().iter().position(|word| word == "-v" || word == "-R")
        && let Some(name) = call.arguments().get(at + 1).cloned()
    {
        call.machine.expanded(&name);
    }
    let words: Vec<&str> =
        call.arguments().iter().map(String::as_str).filter(|word| *word != "]" && *word != "]]").collect();
    let literal = words.iter().all(|word| text::is_literal(word));
    let number = |word: &str| super::integer(word);
    call.machine.status = match words.as_slice() {
        _ if !literal => None,
        [] => Some(false),
        [word] => Some(!word.is_empty()),
        ["-n", word] => Some(!word.is_empty()),
        ["-z", word] => Some(word.is_empty()),
        ["!", word] => Some(word.is_empty()),
        [a, "=" | "==", b] => Some(a == b),
        [a, "!=", b] => Some(a != b),
        [a, operator @ ("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"), b] => match (number(a), number(b)) {
            (Some(a), Some(b)) => Some(match *operator {
                "-eq" => a == b,
                "-ne" => a != b,
                "-lt" => a < b,
                "-le" => a <= b,
                "-gt" => a > b,
                _ => a >= b,
            }),
            _ => None,
        },
        _ => None,
    };
}

fn read(call: &mut Call<'_, '_>) {
    let options = call.options(&crate::programs::options::leading("adinNptu", ""));
    let line = call.machine.stdin.borrow_mut().line();
    let fed = call.machine.stdin.borrow().text.is_some();
    let certain = line.as_ref().is_none_or(|line| !text::is_unknown(line));
    call.machine.status = (fed && certain).then_some(line.is_some());
    let mut line = line.unwrap_or_else(|| if fed { String::new() } else { HOLE.into() });
    if options.has("d") && fed {
        // Another delimiter than the newline: take all of it.
        line.push_str(&call.input().unwrap_or_default());
    }
    if !options.has("r") {
        line = line.replace('\\', "");
    }
    if let Some(count) = options.value("n N").and_then(|count| count.parse::<usize>().ok())
        && text::is_literal(&line)
    {
        line = line.chars().take(count).collect();
    }
    let separators = match call.machine.variable("IFS") {
        Value::Text(separators) => separators,
        _ => " \t\n".into(),
    };
    if let Some(name) = options.value("a") {
        let elements = line
            .split(|c| separators.contains(c))
            .filter(|piece| !piece.is_empty())
            .enumerate()
            .map(|(at, piece)| (at.to_string(), piece.to_owned()))
            .collect();
        let name = name.to_owned();
        return call.machine.assign_array(&name, elements);
    }
    let mut names = options.operands;
    if names.is_empty() {
        names.push("REPLY".into());
    }
    let mut rest = line.trim_matches(|c: char| separators.contains(c) && c.is_whitespace());
    let unknown = text::is_unknown(rest);
    let last = names.len() - 1;
    for (at, name) in names.iter().enumerate() {
        if !is_name(name) {
            continue;
        }
        let value = if at == last {
            rest
        } else if unknown {
            // Where an unknown text splits, nobody knows.
            line.as_str()
        } else {
            let (piece, after) = rest.split_once(|c| separators.contains(c)).unwrap_or((rest, ""));
            rest = after.trim_start_matches(|c: char| separators.contains(c) && c.is_whitespace());
            piece
        };
        call.machine.assign_text(name, value.to_owned());
    }
}

fn mapfile(call: &mut Call<'_, '_>) {
    let options = call.options(&crate::programs::options::leading("dnOsuCc", ""));
    if let Some(callback) = options.value("C").map(str::to_owned) {
        call.machine.evaluate("mapfile", &callback);
    }
    let name = options.operands.first().cloned().unwrap_or_else(|| "MAPFILE".into());
    let input = call.input().unwrap_or_else(|| HOLE.into());
    let delimiter = options.value("d").and_then(|text| text.chars().next()).unwrap_or('\n');
    let elements = input
        .split(delimiter)
        .filter(|line| !line.is_empty())
        .enumerate()
        .map(|(at, line)| (at.to_string(), line.to_owned()))
        .collect();
    call.machine.assign_array(&name, elements);
}

fn set(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    if words.is_empty() {
        return call.print(&text::SECRET.to_string());
    }
    let mut rest = words.as_slice();
    while let [first, tail @ ..] = rest {
        match first.as_str() {
            "--" | "-" => {
                let positional = tail.to_vec();
                return call.machine.state.set(Key::Positional, Slot::Positional(positional));
            }
            "-o" | "+o" => {
                if first == "+o" && tail.first().is_some_and(|name| name == "history") {
                    call.asks(Effect::History, "history", "switches the command history off");
                }
                rest = tail.get(1..).unwrap_or_default();
            }
            word if word.starts_with(['-', '+']) => rest = tail,
            _ => {
                let positional = rest.to_vec();
                return call.machine.state.set(Key::Positional, Slot::Positional(positional));
            }
        }
    }
}

fn shift(call: &mut Call<'_, '_>) {
    let count = call.arguments().first().and_then(|word| word.parse::<usize>().ok()).unwrap_or(1);
    let mut positional = call.machine.state.positional.clone();
    positional.drain(..count.min(positional.len()));
    call.machine.state.set(Key::Positional, Slot::Positional(positional));
}

fn unset(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    for name in words.iter().filter(|word| !word.starts_with('-')) {
        if matches!(name.as_str(), "HISTFILE") {
            call.asks(Effect::History, name, "switches the command history off");
        }
        if let Some((name, index)) = name.split_once('[') {
            let index = index.trim_end_matches(']').trim_matches(['"', '\'']).to_owned();
            let key = call.machine.element_key(name, index);
            if let Value::Array(mut elements) = call.machine.variable(name) {
                elements.retain(|(at, _)| *at != key);
                call.machine.assign_array(name, elements);
            }
        } else if words[0] == "-f" {
            call.machine.state.set(Key::Function(name.clone()), Slot::Function(None));
        } else {
            let unset = Slot::Variable(Some(Rc::new(vec![Value::Unset])));
            call.machine.state.set(Key::Variable(name.clone()), unset);
        }
    }
}

/// Assignments among the words came apart when the command was read; what is left are options, names, and texts that
/// only turned out to be assignments.
fn declare(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let exports = call.name == "export" || words.iter().any(|word| word.starts_with('-') && word.contains('x'));
    let names: Vec<&String> = words.iter().filter(|word| !word.starts_with(['-', '+'])).collect();
    let prints = words.iter().any(|word| word.starts_with('-') && word.contains(['p', 'x'])) || words.is_empty();
    if prints
        && names.is_empty()
        && matches!(call.name.as_str(), "export" | "declare" | "typeset")
        && call.words.len() == words.len() + 1
        && !call.machine.declared
    {
        call.print(&text::SECRET.to_string());
    }
    for name in names {
        if !name.contains('=') {
            call.machine.declare_letters(name, &words);
        }
        if let Some((name, value)) = name.split_once('=') {
            if is_name(name) {
                call.machine.declare_letters(name, &words);
                environment::assigned(call.machine, name, value, exports);
                call.machine.assign_text(name, value);
            }
        } else if call.name == "local" {
            call.machine.make_local(name);
            let unset = Slot::Variable(Some(Rc::new(vec![Value::Unset])));
            call.machine.state.set(Key::Variable(name.clone()), unset);
        } else if exports && let Value::Text(value) = call.machine.variable(name) {
            environment::assigned(call.machine, name, &value, true);
        }
    }
}

fn arithmetic(call: &mut Call<'_, '_>) {
    for expression in call.arguments().to_vec() {
        for (name, value) in call.machine.compute(&expression).assigned {
            call.machine.assign_to(&name, value.map_or_else(|| PLAIN.to_string(), |value| value.to_string()));
        }
    }
}

fn eval(call: &mut Call<'_, '_>) {
    let words = call.arguments();
    let words = if words.first().is_some_and(|word| word == "--") { &words[1..] } else { words };
    let script = words.join(" ");
    call.machine.evaluate("eval", &script);
}

/// `exec [-cl] [-a name] program …`; with redirections only, the shell itself is redirected.
fn exec(call: &mut Call<'_, '_>) {
    let options = call.options(&crate::programs::options::leading("a", ""));
    let words = options.operands;
    if !words.is_empty() {
        call.run(words);
    }
}

fn source(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let words = if words.first().is_some_and(|word| word == "--") { &words[1..] } else { &words[..] };
    let Some(file) = words.first() else { return };
    let place = call.place(file, true);
    if let Some(fact) = call.machine.file(&place.path) {
        let script = fact.text.clone();
        return call.machine.evaluate("source", &script);
    }
    if crate::place::is_stdin(file) {
        let script = call.input().unwrap_or_default();
        return call.machine.evaluate("source", &script);
    }
    crate::programs::interpreters::run_file(call, file, Some(crate::programs::interpreters::Language::Shell));
}

fn command(call: &mut Call<'_, '_>) {
    let options = call.options(&crate::programs::options::leading("", ""));
    if options.has("v V") {
        let names = options.operands.join("\n");
        return call.print(&format!("{names}\n"));
    }
    call.run(options.operands);
}

fn builtin(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    call.run(words);
}

/// Prints where a program is; the name is enough to know what runs there.
fn which(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    if call.name == "hash" {
        let options = call.options(&crate::programs::options::leading("p", ""));
        if let (Some(path), Some(name)) = (options.value("p"), options.operands.first()) {
            // From now on the name means another program.
            let (path, name) = (path.to_owned(), name.clone());
            call.machine.state.set(Key::Alias(name), Slot::Text(Some(path)));
        }
        return;
    }
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        call.print(&format!("/usr/bin/{}\n", super::base_name(word)));
    }
}

fn alias(call: &mut Call<'_, '_>) {
    for word in call.arguments().to_vec() {
        if let Some((name, value)) = word.split_once('=') {
            call.machine.state.set(Key::Alias(name.to_owned()), Slot::Text(Some(value.to_owned())));
        }
    }
}

fn unalias(call: &mut Call<'_, '_>) {
    for word in call.arguments().to_vec() {
        call.machine.state.set(Key::Alias(word), Slot::Text(None));
    }
}

fn trap(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let words = if words.first().is_some_and(|word| word == "--") { &words[1..] } else { &words[..] };
    let [action, signals @ ..] = words else { return };
    if action.starts_with("-l") || action.starts_with("-p") || action == "-" || signals.is_empty() {
        return;
    }
    // It runs later, with what the variables hold then.
    call.machine.traps.push(action.clone());
}

fn enable(call: &mut Call<'_, '_>) {
    let options = call.options(&crate::programs::options::leading("f", ""));
    if let Some(file) = options.value("f").map(str::to_owned) {
        call.asks(Effect::CannotTell, &file, "loads code into the shell");
    }
}

fn complete(call: &mut Call<'_, '_>) {
    let options = call.options(&crate::programs::options::gnu("CFWAGPSXo", ""));
    if let Some(text) = options.value("C").map(str::to_owned) {
        call.shell(&text);
    }
    if let Some(words) = options.value("W") {
        // The list is expanded like words.
        let words = call.machine.expanded(words).split_whitespace().collect::<Vec<_>>().join("\n");
        call.print(&format!("{words}\n"));
    } else {
        call.print(&HOLE.to_string());
    }
}

fn bind(call: &mut Call<'_, '_>) {
    let options = call.options(&crate::programs::options::gnu("xmfqru", ""));
    if let Some((_, text)) = options.value("x").and_then(|binding| binding.split_once(':')) {
        let text = text.trim().trim_matches(['"', '\'']).to_owned();
        call.shell(&text);
    }
}

fn history(call: &mut Call<'_, '_>) {
    let options = call.options(&crate::programs::options::gnu("d", "clear delete"));
    // Other shells spell it as a verb.
    let verb =
        options.operands.first().is_some_and(|verb| matches!(verb.as_str(), "clear" | "delete" | "clear-session"));
    if options.has("c d clear delete") || options.has("w") && options.operands.is_empty() || verb {
        call.asks(Effect::History, "the command history", "erases the command history");
    }
}

fn fc(call: &mut Call<'_, '_>) {
    let options = call.options(&crate::programs::options::leading("e", ""));
    if !options.has("l") {
        call.cannot_tell("runs an earlier command again");
    }
    call.print(&HOLE.to_string());
}
