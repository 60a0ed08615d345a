//! What the calls of a program do: the actions of the table, carried out on constants and holes.

use super::Language;
use super::known::{self, Action};
use super::scan::Scanner;
use super::values::{Arguments, Value};
use crate::eval::{Extent, Writing};
use crate::finding::{Effect, TargetClass};
use crate::text::{self, HOLE, REMOTE, SECRET};

impl Scanner<'_, '_, '_, '_> {
    pub(super) fn called(&mut self, callee: &Value, arguments: Arguments) -> Value {
        let Value::Path(path) = callee else { return Value::Unknown };
        let path = path.clone();
        match path.as_str() {
            // The name of a function that is only known as text.
            "getattr" => {
                let module = match arguments.values.first() {
                    Some(Value::Path(module)) => module.clone(),
                    _ => String::new(),
                };
                return Value::Path(format!("{module}.{}", arguments.text(1).unwrap_or_default()));
            }
            "exec" | "eval" | "compile" if self.language == Language::Python => {
                return self.perform(Action::Evaluate, &path, arguments, None);
            }
            "exec" | "execSync" if self.language == Language::JavaScript => {
                return self.perform(Action::Run, &path, arguments, None);
            }
            "file.remove" | "unlink" if self.language == Language::R && arguments.named(&["recursive"]).is_some() => {
                return self.perform(Action::DeleteTree, &path, arguments, None);
            }
            "array_map" | "array_walk" | "map" | "call_user_func"
                if arguments.text(0).is_some_and(|name| known::action(&name).is_some()) =>
            {
                let name = arguments.text(0).unwrap_or_default();
                let rest = Arguments { values: arguments.values[1..].to_vec(), named: Vec::new() };
                return self.called(&Value::Path(name), rest);
            }
            // `map(shutil.rmtree, […])`
            "map" | "filter" if matches!(arguments.values.first(), Some(Value::Path(name)) if known::action(name).is_some()) =>
            {
                let rest = Arguments { values: arguments.values[1..].to_vec(), named: Vec::new() };
                return self.called(&arguments.values[0].clone(), rest);
            }
            "join" | "implode" | "reverse" | "scalar" if !matches!(self.language, Language::Perl | Language::Php) => {
                return Value::Unknown;
            }
            "join" | "implode" if arguments.values.len() > 1 => {
                // PHP takes them in either order.
                if let (Value::List(words), joint) = (&arguments.values[0], &arguments.values[1]) {
                    let words: Vec<String> = words.iter().flat_map(Value::texts).collect();
                    return Value::Text(words.join(&joint.text()));
                }
                let joint = arguments.text(0).unwrap_or_default();
                return Value::Text(
                    arguments.values[1..].iter().flat_map(Value::texts).collect::<Vec<_>>().join(&joint),
                );
            }
            // One value: only the context would tell whether its letters are reversed.
            "reverse" if arguments.values.len() < 2 => return Value::Unknown,
            "reverse" => return Value::List(arguments.values.into_iter().rev().collect()),
            "scalar reverse" => return Value::Text(arguments.texts().concat().chars().rev().collect()),
            _ => {}
        }
        // A method of what a call came to, such as `Path("x").unlink`.
        match known::action(&path) {
            Some(action) => self.perform(action, &path, arguments, None),
            None => {
                let named = arguments.named.iter().map(|(_, value)| value.text());
                let secret = arguments.texts().into_iter().chain(named).any(|text| text.contains(SECRET));
                if secret && path.contains("post") {
                    self.sends_secret(&path);
                }
                if secret { Value::Text(SECRET.into()) } else { Value::Unknown }
            }
        }
    }

    pub(super) fn method(&mut self, receiver: Value, name: &str, arguments: Arguments) -> Value {
        let text = receiver.text();
        match name {
            "reverse" | "reversed" | "strrev" if text::is_literal(&text) => {
                return Value::Text(text.chars().rev().collect());
            }
            "split" => return Value::List(text.split_whitespace().map(|word| Value::Text(word.to_owned())).collect()),
            "join" => {
                let list = arguments.values.first().cloned().unwrap_or(Value::Unknown);
                // Python joins with the receiver, JavaScript and Ruby join the receiver.
                return match (&receiver, list) {
                    (Value::List(_), joint) => Value::Text(receiver.texts().join(&joint.text())),
                    (_, list) => Value::Text(list.texts().join(&text)),
                };
            }
            "format" => return Value::Text(text.replace("{}", &arguments.text(0).unwrap_or_else(|| HOLE.into()))),
            "parent" | "parents" | "name" => return Value::Unknown,
            "lower" | "downcase" | "toLowerCase" => return Value::Text(text.to_lowercase()),
            "replace" | "gsub" | "sub" | "replaceAll" if arguments.values.len() >= 2 && text::is_literal(&text) => {
                let (from, to) = (arguments.text(0).unwrap_or_default(), arguments.text(1).unwrap_or_default());
                return Value::Text(if from.is_empty() { text } else { text.replace(&from, &to) });
            }
            "toString" | "decode" if arguments.text(0).as_deref() == Some("base64") => return Value::Unknown,
            _ => {}
        }
        // `fetch(…).then(eval)`
        if let Some(Value::Path(function)) = arguments.values.first()
            && matches!(known::action(function), Some(Action::Evaluate | Action::Run))
            && let Some(action) = known::action(function)
        {
            let action =
                if function == "exec" && self.language == Language::Python { Action::Evaluate } else { action };
            return self.perform(action, function, Arguments { values: vec![receiver], named: Vec::new() }, None);
        }
        if matches!(name, "execute" | "executescript" | "executemany" | "exec" | "query" | "execute_sql")
            && !arguments.values.is_empty()
        {
            return self.perform(Action::Sql, name, arguments, None);
        }
        // A method of something unknown is about a file only if nothing else has such a method.
        let about_files = matches!(name, "unlink" | "unlinkSync" | "rmtree" | "write_text" | "write_bytes");
        if matches!(receiver, Value::Unknown) && !about_files {
            return if text.contains(REMOTE) || text.contains(SECRET) { receiver } else { Value::Unknown };
        }
        let action = known::METHODS.iter().find(|(method, _)| *method == name).map(|(_, action)| *action);
        match action {
            Some(Action::Same) => receiver,
            Some(action) => self.perform(action, name, arguments, Some(receiver)),
            None if matches!(name, "pipe" | "then" | "catch" | "on") => receiver,
            None if text.contains(REMOTE) || text.contains(SECRET) => receiver,
            None => Value::Unknown,
        }
    }

    pub(super) fn perform(
        &mut self,
        action: Action,
        path: &str,
        arguments: Arguments,
        receiver: Option<Value>,
    ) -> Value {
        let method = receiver.is_some();
        let mut arguments = arguments;
        if let Some(receiver) = receiver {
            arguments.values.insert(0, receiver);
        }
        let first = arguments.text(0).unwrap_or_else(|| HOLE.into());
        let second = arguments.text(1).unwrap_or_else(|| HOLE.into());
        match action {
            Action::DeleteTree => self.delete(&arguments.texts(), Extent::Bulk),
            Action::Delete => self.delete(&arguments.texts(), Extent::One),
            Action::DeleteMaybe => {
                let recursive = arguments.named(&["recursive"]).is_some();
                self.delete(&[first], if recursive { Extent::Bulk } else { Extent::One });
            }
            Action::Write => {
                let append = path.contains("append") || arguments.named(&["append"]).is_some();
                let (target, content) = if self.language == Language::R { (second, first) } else { (first, second) };
                let writing = match append {
                    true => Writing::Edit,
                    false if content.is_empty() => Writing::Empty,
                    false => Writing::Replace,
                };
                self.write(&target, writing);
            }
            Action::Empty => self.write(&first, Writing::Empty),
            Action::Create => self.write(&first, Writing::Create),
            Action::Open => return self.open(&arguments),
            Action::OpenHandle => self.write(&second, Writing::Edit),
            Action::Read => {
                if first.starts_with("http://") || first.starts_with("https://") {
                    return Value::Text(REMOTE.into());
                }
                return Value::Text(self.read(&first));
            }
            Action::Copy | Action::Move | Action::Link => {
                let program = match action {
                    Action::Copy => "cp",
                    Action::Move => "mv",
                    _ => "ln",
                };
                self.words(vec![program.into(), first, second]);
            }
            Action::Run => {
                self.note_shell(&arguments);
                return Value::Text(match arguments.values.first().or_else(|| arguments.named(&["cmd"])) {
                    Some(Value::List(words)) => self.words_captured(words.iter().map(Value::text).collect()),
                    _ if arguments.values.len() > 1 && matches!(self.language, Language::Perl | Language::Ruby) => {
                        self.words_captured(arguments.texts())
                    }
                    _ => self.run_text_captured(&first),
                });
            }
            Action::Spawn => {
                self.note_shell(&arguments);
                let words = arguments.texts();
                if words.len() == 1 { self.run_text(&words[0]) } else { self.words(words) }
            }
            Action::SpawnList => {
                self.note_shell(&arguments);
                let mut words = vec![first];
                match arguments.values.get(1) {
                    Some(Value::List(list)) => {
                        let mut list: Vec<String> = list.iter().map(Value::text).collect();
                        // `execv` repeats the program as its first argument.
                        if path.contains("exec") && self.language == Language::Python && !list.is_empty() {
                            list.remove(0);
                        }
                        words.extend(list);
                    }
                    Some(Value::Unknown | Value::Path(_)) => words.push(text::HOLES.to_string()),
                    // `new Deno.Command("rm", { args: […] })`
                    _ => words.extend(arguments.named(&["args"]).map(Value::texts).unwrap_or_default()),
                }
                if words.len() == 1 { self.run_text(&words[0].clone()) } else { self.words(words) }
            }
            Action::Evaluate => {
                // `eval { … }` of Perl and blocks of Ruby have no text.
                if !arguments.values.is_empty() && !self.silent {
                    super::super::programs::interpreters::code(self.call, self.language, &first);
                }
            }
            Action::Load => {
                let remote = first.contains(REMOTE) || first.starts_with("http://") || first.starts_with("https://");
                if !self.silent && remote {
                    self.call.asks(Effect::ExecuteRemote, &first, "loads code from elsewhere");
                } else if !self.silent && !arguments.values.is_empty() && text::is_literal(&first) {
                    super::super::programs::interpreters::run_file(self.call, &first, Some(self.language));
                }
            }
            Action::Chmod => self.words(vec!["chmod".into(), octal(&second), first]),
            Action::ChmodFirst => {
                let mut words = vec!["chmod".to_owned(), octal(&first)];
                words.extend(arguments.values.iter().skip(1).flat_map(Value::texts));
                if path.ends_with("_R") {
                    words.insert(1, "-R".into());
                }
                self.words(words);
            }
            Action::Chown => self.words(vec!["chown".into(), second, first]),
            Action::Kill => self.words(vec!["kill".into(), format!("-{}", signal(&second)), "--".into(), first]),
            Action::KillFirst => {
                let mut words = vec!["kill".to_owned(), format!("-{}", signal(&first)), "--".into()];
                words.extend(arguments.values.iter().skip(1).flat_map(Value::texts));
                if first.starts_with('-') || first.parse::<u32>() != Ok(0) {
                    self.words(words);
                }
            }
            Action::Fetch => {
                if arguments
                    .texts()
                    .iter()
                    .chain(arguments.named.iter().map(|(_, value)| value.text()).collect::<Vec<_>>().iter())
                    .any(|text| text.contains(SECRET))
                {
                    self.sends_secret(&first);
                }
                return Value::Text(REMOTE.into());
            }
            Action::FetchTo => {
                self.write(&second, Writing::Replace);
                self.call.now_foreign(&second);
            }
            Action::Fork => self.forks = true,
            Action::Socket => self.sockets = true,
            Action::Print => {
                let printed = arguments.texts().join(" ");
                if !self.silent {
                    self.call.print(&format!("{printed}\n"));
                }
            }
            Action::PrintFormat | Action::Format => {
                let values = Value::List(arguments.values.iter().skip(1).cloned().collect());
                let text = format(&first, &values);
                if action == Action::Format {
                    return Value::Text(text);
                }
                if !self.silent {
                    self.call.print(&text);
                }
            }
            Action::Pack if first.starts_with(['H', 'h']) => return Value::Text(unhex(&second)),
            Action::Pack => return Value::Unknown,
            // Without a name it is all of them.
            Action::Variable if arguments.values.is_empty() => return Value::Text(SECRET.into()),
            Action::Variable => return self.variable(&first),
            Action::Join => {
                let joined = arguments.texts().into_iter().reduce(|a, b| join(&a, &b)).unwrap_or_default();
                return Value::Text(joined);
            }
            Action::Home => return Value::Text(self.call.machine.world.home.clone()),
            Action::ExpandUser => {
                let home = self.call.machine.world.home.clone();
                return Value::Text(match first.strip_prefix('~') {
                    Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
                    _ => first,
                });
            }
            Action::Glob => {
                let pattern = if method { join(&first, &second) } else { first };
                return Value::Text(text::live(&pattern));
            }
            Action::List => {
                let directory = if arguments.values.is_empty() { ".".to_owned() } else { first };
                let place = self.call.place(&directory, true);
                let whole = matches!(place.class, TargetClass::Root | TargetClass::System | TargetClass::Home);
                return Value::Text(format!(
                    "{}/{}",
                    directory.trim_end_matches('/'),
                    if whole { text::STAR } else { HOLE }
                ));
            }
            Action::ChangeDirectory => {
                let place = self.call.place(&first, true);
                self.call.machine.state.set_text("PWD", place.path);
            }
            Action::Base64 => {
                if path == "Buffer.from" && second != "base64" {
                    return if second == "hex" {
                        Value::Text(unhex(&first))
                    } else {
                        arguments.values.first().cloned().unwrap_or(Value::Unknown)
                    };
                }
                let decoded = crate::eval::unbase64(&first);
                return decoded.map_or(Value::Unknown, Value::Text);
            }
            Action::Hex => return Value::Text(unhex(&first)),
            Action::Character => {
                let characters: Option<String> = arguments
                    .texts()
                    .iter()
                    .map(|number| number.parse::<u32>().ok().and_then(char::from_u32))
                    .collect();
                return characters.map_or(Value::Unknown, Value::Text);
            }
            Action::Same => {
                return arguments.values.into_iter().next().map_or(Value::Unknown, |value| match value {
                    Value::Path(path) if matches!(path.as_str(), "os.environ" | "process.env" | "ENV") => {
                        Value::Text(SECRET.into())
                    }
                    value => value,
                });
            }
            Action::Input => {
                let input = if self.silent { None } else { self.call.input() };
                return Value::Text(input.unwrap_or_else(|| HOLE.into()));
            }
            Action::Module => {
                let module = first.trim_start_matches("node:").replace("::", ".").replace('/', ".");
                return Value::Path(module);
            }
            Action::Native => return Value::Path("libc".into()),
            Action::Power => self.words(vec!["reboot".into()]),
            Action::Sql => {
                if !self.silent && text::is_literal(&first) {
                    crate::programs::sql_text(self.call, &first);
                }
            }
        }
        Value::Unknown
    }

    /// A shell that is started with nothing to do waits for somebody's input.
    fn note_shell(&mut self, arguments: &Arguments) {
        let texts = arguments.texts();
        let name =
            texts.first().map_or("", |text| crate::eval::base_name(text.split_whitespace().next().unwrap_or_default()));
        if matches!(name, "sh" | "bash" | "zsh" | "dash" | "cmd" | "powershell")
            || texts.iter().any(|text| text::is_unknown(text))
        {
            self.shells = true;
        }
    }

    fn sends_secret(&mut self, to: &str) {
        if !self.silent {
            let to = to.to_owned();
            self.call.asks(Effect::NetworkSend, &to, "sends secrets over the network");
        }
    }

    /// `open(path, mode)`, `open(HANDLE, '>path')`, `open(HANDLE, '>', path)`.
    fn open(&mut self, arguments: &Arguments) -> Value {
        if self.language == Language::Perl && arguments.values.len() >= 2 {
            let mode = arguments.text(1).unwrap_or_default();
            let (mode, target) = match arguments.text(2) {
                Some(target) => (mode, target),
                None => {
                    let cut =
                        mode.find(|c| !matches!(c, '<' | '>' | '+' | '|' | '-' | ' ' | '&')).unwrap_or(mode.len());
                    (mode[..cut].to_owned(), mode[cut..].to_owned())
                }
            };
            if mode.contains('|') || target.ends_with('|') {
                self.run_text(target.trim_end_matches('|'));
            } else if mode.contains('>') {
                let append = mode.contains(">>");
                self.write(&target, if append { Writing::Edit } else { Writing::Replace });
            } else {
                return Value::Text(self.read(&target));
            }
            return Value::Unknown;
        }
        let path = arguments.text(0).unwrap_or_else(|| HOLE.into());
        if let Some(script) = path.strip_prefix('|') {
            self.run_text(script);
            return Value::Unknown;
        }
        let mode =
            arguments.named(&["mode"]).map(Value::text).or_else(|| arguments.text(1)).unwrap_or_else(|| "r".into());
        if mode.contains(['w', 'a', 'x', '+', '>']) && !text::is_unknown(&mode) {
            let writing =
                if mode.starts_with('a') || mode.starts_with("r+") { Writing::Edit } else { Writing::Replace };
            self.write(&path, writing);
            return Value::Path("file".into());
        }
        if path.starts_with("http://") || path.starts_with("https://") {
            return Value::Text(REMOTE.into());
        }
        Value::Text(self.read(&path))
    }

    fn delete(&mut self, paths: &[String], extent: Extent) {
        if self.silent {
            return;
        }
        for path in paths {
            self.call.delete(path, extent);
        }
    }

    pub(super) fn write(&mut self, path: &str, writing: Writing) {
        if !self.silent {
            self.call.write(path, writing);
        }
    }

    fn read(&mut self, path: &str) -> String {
        if self.silent { HOLE.into() } else { self.call.read(path) }
    }

    fn words(&mut self, words: Vec<String>) {
        let _ = self.words_captured(words);
    }

    fn words_captured(&mut self, words: Vec<String>) -> String {
        if self.silent || words.is_empty() {
            return HOLE.into();
        }
        self.call.machine.captured(|machine| machine.run_program(words, &[]))
    }

    pub(super) fn run_text(&mut self, script: &str) {
        let _ = self.run_text_captured(script);
    }

    pub(super) fn run_text_fed(&mut self, script: &str, fed: &str) {
        if !self.silent {
            let outer = std::mem::replace(&mut self.call.machine.stdin, crate::eval::Feed::of(fed));
            self.run_text(script);
            self.call.machine.stdin = outer;
        }
    }

    pub(super) fn run_text_captured(&mut self, script: &str) -> String {
        if self.silent {
            return HOLE.into();
        }
        let name = self.call.name.clone();
        let script = script.to_owned();
        self.call.machine.captured(|machine| machine.evaluate_apart(&name, &script, Vec::new()))
    }
}

pub(super) fn join(a: &str, b: &str) -> String {
    if b.starts_with('/') || a.is_empty() { b.to_owned() } else { format!("{}/{b}", a.trim_end_matches('/')) }
}

/// `"…%s…" % values`
pub(super) fn format(pattern: &str, values: &Value) -> String {
    let mut values = values.texts().into_iter();
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('%') => out.push('%'),
            Some('c') => out.push_str(&values.next().map_or_else(
                || HOLE.into(),
                |text| text.parse::<u32>().ok().and_then(char::from_u32).map_or(text, String::from),
            )),
            Some(_) => out.push_str(&values.next().unwrap_or_else(|| HOLE.into())),
            None => {}
        }
    }
    out
}

/// A mode as `chmod` writes it: `0o777`, `0777`, and 511 in decimal stay the same thing.
fn octal(mode: &str) -> String {
    if let Some(digits) = mode.strip_prefix("0o") {
        return digits.to_owned();
    }
    if mode.starts_with('0') || !mode.chars().all(|c| c.is_ascii_digit()) {
        return mode.to_owned();
    }
    mode.parse::<u32>().map_or_else(|_| mode.to_owned(), |value| format!("{value:o}"))
}

fn signal(text: &str) -> String {
    text.trim_start_matches(['-', ':']).trim_start_matches("SIG").to_owned()
}

fn unhex(text: &str) -> String {
    let digits: Option<Vec<u32>> = text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect();
    let Some(digits) = digits else { return HOLE.into() };
    let bytes: Vec<u8> = digits
        .chunks(2)
        .filter_map(|pair| u8::try_from(pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).ok())
        .collect();
    text::clean(&String::from_utf8_lossy(&bytes)).into_owned()
}
