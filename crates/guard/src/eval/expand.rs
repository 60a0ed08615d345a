//! From words to arguments: braces, tildes, parameters, substitutions, splitting. Globs stay alive in the text.

use std::rc::Rc;

use super::arithmetic::{self, Outcome};
use super::braces::{braces, has_braces};
use super::state::{FileFact, Value};
use super::strings::{drop_prefix, drop_suffix, first, letters, replace, slice, substring};
use super::{Feed, Machine};
use crate::escapes;
use crate::shell::syntax::{Operation, Parameter, Part, Word};
use crate::text::{self, HOLE, HOLES, JOB, MATCH, OUTPUT, PLAIN, SECRET};

/// What a parameter holds.
enum Held {
    Unset,
    Text(String),
    /// `$@`, `${a[@]}`: a list that stays one in quotes.
    List(Vec<String>),
    /// The word behind `:-` or `:+`, with quotes of its own.
    Instead(Word),
}

/// Arguments under construction.
#[derive(Default)]
struct Fields {
    done: Vec<String>,
    current: String,
    /// Quotes make an empty argument real.
    real: bool,
}

impl Fields {
    fn literal(&mut self, text: &str) {
        self.current.push_str(text);
        self.real = true;
    }

    fn end(&mut self) {
        if self.real || !self.current.is_empty() {
            self.done.push(std::mem::take(&mut self.current));
        }
        self.real = false;
    }

    /// Splits as bash does: blanks among the separators only divide, each other separator ends an argument, even an
    /// empty one.
    fn split(&mut self, value: &str, separators: &str) {
        let blank = |c: char| matches!(c, ' ' | '\t' | '\n') && separators.contains(c);
        let mut rest = value;
        while let Some(at) = rest.find(|c| separators.contains(c)) {
            self.current.push_str(&text::live(&rest[..at]));
            let after = rest[at..].trim_start_matches(blank);
            match after.chars().next().filter(|c| separators.contains(*c)) {
                Some(hard) => {
                    self.done.push(std::mem::take(&mut self.current));
                    self.real = false;
                    rest = after[hard.len_utf8()..].trim_start_matches(blank);
                }
                None => {
                    self.end();
                    rest = after;
                }
            }
        }
        self.current.push_str(&text::live(rest));
    }
}

impl Machine<'_> {
    /// The arguments that words become.
    pub(super) fn arguments(&mut self, words: &[Word]) -> Vec<String> {
        let mut arguments = Vec::with_capacity(words.len());
        for word in words {
            self.expand(word, &mut arguments);
        }
        self.charge(arguments.iter().map(|argument| argument.len() + 64).sum());
        arguments
    }

    fn expand(&mut self, word: &Word, arguments: &mut Vec<String>) {
        if let [Part::Bare(bare)] = word.parts.as_slice()
            && !bare.bytes().any(|byte| matches!(byte, b'{' | b'~' | b'*' | b'?' | b'['))
        {
            arguments.push(bare.clone());
            return;
        }
        if has_braces(word) {
            for word in braces(word) {
                self.expand_parts(&word.parts, arguments);
            }
        } else {
            self.expand_parts(&word.parts, arguments);
        }
    }

    fn expand_parts(&mut self, parts: &[Part], arguments: &mut Vec<String>) {
        let mut fields = Fields::default();
        for (index, part) in parts.iter().enumerate() {
            match part {
                Part::Bare(bare) => {
                    // In a word such as `of=~/disk` the tilde stands for the same.
                    let (name, rest) = match bare.split_once('=') {
                        Some((name, rest)) if crate::shell::is_name(name) => bare.split_at(bare.len() - rest.len()),
                        _ => ("", bare.as_str()),
                    };
                    let rest = if index == 0 { self.tilde(rest) } else { rest.into() };
                    fields.current.push_str(&text::live(&format!("{name}{rest}")));
                }
                other => self.part(other, &mut fields),
            }
        }
        fields.end();
        arguments.append(&mut fields.done);
    }

    /// A piece that is more than bare text.
    fn part(&mut self, part: &Part, fields: &mut Fields) {
        match part {
            Part::Bare(bare) => self.split(bare, fields),
            Part::Quoted(quoted) => fields.literal(quoted),
            Part::Double(parts) => self.double(parts, fields),
            Part::Parameter(parameter) => match self.parameter(parameter) {
                Held::Unset => {}
                Held::Text(value) => self.split(&value, fields),
                Held::Instead(word) => self.instead(&word, fields),
                Held::List(values) => {
                    for (index, value) in values.iter().enumerate() {
                        if index > 0 {
                            fields.end();
                        }
                        self.split(value, fields);
                    }
                }
            },
            Part::Command(script) => {
                let output = self.substitute(script);
                self.split(&output, fields);
            }
            Part::Arithmetic(word) => {
                let value = self.number(word);
                fields.current.push_str(&value);
            }
            Part::Process { writes, script } => {
                let path = self.process(*writes, script);
                fields.literal(&path);
            }
        }
    }

    /// The word behind `:-`: what is not quoted in it is divided.
    fn instead(&mut self, word: &Word, fields: &mut Fields) {
        for (index, part) in word.parts.iter().enumerate() {
            match part {
                Part::Bare(bare) if index == 0 => {
                    // What a tilde stands for is not divided.
                    let path = bare.find(char::is_whitespace).filter(|_| bare.starts_with('~')).unwrap_or(bare.len());
                    let (path, rest) = if bare.starts_with('~') { bare.split_at(path) } else { ("", bare.as_str()) };
                    fields.current.push_str(&self.tilde(path));
                    self.split(rest, fields);
                }
                other => self.part(other, fields),
            }
        }
    }

    fn split(&mut self, value: &str, fields: &mut Fields) {
        let usual = self.state.variables.get("IFS").is_some_and(|values| Rc::ptr_eq(values, &self.usual_separators));
        let separators: std::borrow::Cow<'_, str> = if usual {
            " \t\n".into()
        } else {
            match self.variable("IFS") {
                Value::Text(separators) => separators.into(),
                _ => " \t\n".into(),
            }
        };
        // Unknown text outside of quotes may be any number of arguments.
        let value: std::borrow::Cow<'_, str> =
            if value.contains(HOLE) { value.replace(HOLE, &HOLES.to_string()).into() } else { value.into() };
        if separators.is_empty() {
            fields.current.push_str(&text::live(&value));
        } else {
            fields.split(&value, &separators);
        }
    }

    fn double(&mut self, parts: &[Part], fields: &mut Fields) {
        fields.real = true;
        for part in parts {
            match part {
                Part::Bare(text) | Part::Quoted(text) => fields.current.push_str(text),
                Part::Double(parts) => self.double(parts, fields),
                Part::Parameter(parameter) => match self.parameter(parameter) {
                    Held::Unset if parts.len() == 1 && is_list(parameter, "@") => fields.real = false,
                    Held::Unset => {}
                    Held::Text(value) => fields.current.push_str(&value),
                    Held::List(values) if is_list(parameter, "*") => {
                        let value = self.joined(&values);
                        fields.current.push_str(&value);
                    }
                    Held::Instead(word) => {
                        self.double(&word.parts, fields);
                        fields.real = true;
                    }
                    Held::List(values) => {
                        if values.is_empty() && parts.len() == 1 {
                            fields.real = false;
                        }
                        for (index, value) in values.iter().enumerate() {
                            if index > 0 {
                                fields.end();
                            }
                            fields.literal(value);
                        }
                    }
                },
                Part::Command(script) => {
                    let output = self.substitute(script);
                    fields.current.push_str(&output);
                }
                Part::Arithmetic(word) => {
                    let value = self.number(word);
                    fields.current.push_str(&value);
                }
                Part::Process { .. } => {}
            }
        }
    }

    /// A word as one text: without splitting, braces or living globs.
    pub(super) fn text_of(&mut self, word: &Word) -> String {
        let text = text::unglob(&self.pattern_of(word));
        self.charge(text.len());
        text
    }

    /// The text that a variable gets: a tilde stands for a directory behind each colon as well.
    pub(super) fn assigned_text(&mut self, word: &Word) -> String {
        if !word.parts.iter().any(|part| matches!(part, Part::Bare(bare) if bare.contains(":~"))) {
            return self.text_of(word);
        }
        let mut parts = Vec::with_capacity(word.parts.len());
        for part in &word.parts {
            match part {
                Part::Bare(bare) => {
                    for (index, piece) in bare.split_inclusive(':').enumerate() {
                        let piece = match piece.strip_suffix(':') {
                            Some(path) if index > 0 => self.tilde(path).into_owned() + ":",
                            None if index > 0 => self.tilde(piece).into_owned(),
                            _ => piece.to_owned(),
                        };
                        parts.push(Part::Bare(piece));
                    }
                }
                other => parts.push(other.clone()),
            }
        }
        self.text_of(&Word { parts })
    }

    /// Whether the keys of an array are names: `declare -A`.
    pub(super) fn has_names(&self, name: &str) -> bool {
        self.attributes.get(name).is_some_and(|known| known.contains('A'))
    }

    /// The key of an element, from the text between the brackets.
    pub(super) fn element_key(&mut self, name: &str, index: String) -> String {
        if self.has_names(name) {
            return index;
        }
        self.compute(&index).value.map_or(index, |at| at.to_string())
    }

    /// The same with living globs where they are not quoted.
    fn pattern_of(&mut self, word: &Word) -> String {
        let mut out = String::new();
        for (index, part) in word.parts.iter().enumerate() {
            match part {
                Part::Bare(bare) => {
                    let bare = if index == 0 { self.tilde(bare) } else { bare.into() };
                    out.push_str(&text::live(&bare));
                }
                Part::Quoted(quoted) => out.push_str(quoted),
                Part::Double(parts) => {
                    let mut fields = Fields::default();
                    self.double(parts, &mut fields);
                    fields.end();
                    out.push_str(&fields.done.join(" "));
                }
                Part::Parameter(parameter) => match self.parameter(parameter) {
                    Held::Unset => {}
                    Held::Text(value) => out.push_str(&text::live(&value)),
                    Held::Instead(word) => out.push_str(&self.pattern_of(&word)),
                    Held::List(values) if is_list(parameter, "*") => out.push_str(&self.joined(&values)),
                    Held::List(values) => out.push_str(&values.join(" ")),
                },
                Part::Command(script) => out.push_str(&self.substitute(script)),
                Part::Arithmetic(word) => out.push_str(&self.number(word)),
                Part::Process { writes, script } => out.push_str(&self.process(*writes, script)),
            }
        }
        out
    }

    fn tilde<'t>(&mut self, bare: &'t str) -> std::borrow::Cow<'t, str> {
        let Some(rest) = bare.strip_prefix('~') else { return bare.into() };
        let (name, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let home = match name {
            "" => match self.variable("HOME") {
                Value::Text(home) => home,
                _ => self.world.home.clone(),
            },
            "+" => self.cwd().unwrap_or_else(|| HOLE.into()),
            "-" => match self.variable("OLDPWD") {
                Value::Text(path) => path,
                _ => HOLE.into(),
            },
            "root" => "/root".into(),
            name if name == self.world.user => self.world.home.clone(),
            name if name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')) => {
                format!("/home/{name}")
            }
            _ => return bare.into(),
        };
        format!("{home}{path}").into()
    }

    pub(super) fn substitute(&mut self, script: &Rc<crate::shell::syntax::Script>) -> String {
        if !self.pay() {
            return OUTPUT.to_string();
        }
        let output = self.captured(|machine| machine.apart(|machine| machine.script(script)));
        output.replace('\0', "").trim_end_matches('\n').replace(HOLE, &OUTPUT.to_string())
    }

    /// `<(…)`: a path whose content is what the script prints. `>(…)`: the script reads what is written there.
    fn process(&mut self, writes: bool, script: &Rc<crate::shell::syntax::Script>) -> String {
        self.processes += 1;
        let path = format!("/dev/fd/{}", 62 + self.processes);
        if writes {
            // What `tee` would pass on is what it reads itself.
            let fed = self.stdin.borrow_mut().rest().unwrap_or_else(|| HOLE.to_string());
            let feed = Feed::of(fed.clone());
            *self.stdin.borrow_mut() = Feed { text: Some(fed), ..Feed::default() };
            let outer = std::mem::replace(&mut self.stdin, feed);
            self.apart(|machine| machine.script(script));
            self.stdin = outer;
        } else {
            let output = self.captured(|machine| machine.apart(|machine| machine.script(script)));
            self.state.files.insert(path.clone(), FileFact { text: output });
        }
        path
    }

    // ------------------------------------------------------------------------------------------------- arithmetic

    fn number(&mut self, word: &Word) -> String {
        match self.arithmetic(word) {
            Some(value) => value.to_string(),
            None => PLAIN.to_string(),
        }
    }

    /// The value of an expression; variables it assigns are assigned.
    pub(super) fn arithmetic(&mut self, word: &Word) -> Option<i64> {
        let expression = match word.parts.as_slice() {
            // Here a tilde is an operator.
            [Part::Bare(text)] => text.clone(),
            _ => self.text_of(word),
        };
        let Outcome { value, assigned } = self.compute(&expression);
        for (name, value) in assigned {
            let text = value.map_or_else(|| PLAIN.to_string(), |value| value.to_string());
            self.assign_to(&name, text);
        }
        value
    }

    pub(super) fn compute(&mut self, expression: &str) -> Outcome {
        arithmetic::evaluate(expression, &mut |name| match self.variable(name) {
            // An index in the value is expanded, and that may run something.
            Value::Text(text) if text.contains(['$', '`']) => Some(self.expanded(&text)),
            Value::Text(text) => Some(text),
            Value::Array(elements) => {
                Some(elements.into_iter().find(|(at, _)| at == "0").map(|(_, text)| text).unwrap_or_default())
            }
            Value::Unset => match name.split_once('[') {
                Some((name, key)) => match self.variable(name) {
                    Value::Array(elements) => {
                        let key = key.trim_end_matches(']');
                        Some(elements.into_iter().find(|(at, _)| at == key).map(|(_, text)| text).unwrap_or_default())
                    }
                    _ => None,
                },
                None => self.state.variables.contains_key(name).then(String::new),
            },
        })
    }

    // ------------------------------------------------------------------------------------------------- parameters

    /// A variable that nobody set here comes from the environment, if it exists at all.
    fn from_environment(name: &str) -> String {
        if looks_secret(name) { SECRET.to_string() } else { HOLE.to_string() }
    }

    fn value(&mut self, name: &str, index: Option<&Word>) -> Held {
        let one = |text: String| Held::Text(text);
        match name {
            "@" | "*" => return Held::List(self.state.positional.clone()),
            "#" => return one(self.state.positional.len().to_string()),
            "?" | "$" => return one(PLAIN.to_string()),
            "-" => return one("hBc".into()),
            "!" => return one(JOB.to_string()),
            "_" => return one(self.last_argument.clone()),
            "0" => {
                return one(match self.variable("0") {
                    Value::Text(name) => name,
                    _ => "bash".into(),
                });
            }
            "RANDOM" | "SRANDOM" | "SECONDS" | "EPOCHSECONDS" | "EPOCHREALTIME" | "LINENO" | "BASHPID" | "UID"
            | "EUID" | "HOSTNAME" | "HOSTTYPE" | "OSTYPE" | "MACHTYPE" | "COLUMNS" | "LINES" | "BASH_VERSION"
                if !self.state.variables.contains_key(name) =>
            {
                return one(PLAIN.to_string());
            }
            _ => {}
        }
        if let Ok(number) = name.parse::<usize>() {
            return match self.state.positional.get(number.wrapping_sub(1)) {
                Some(text) => one(text.clone()),
                None => Held::Unset,
            };
        }
        let known = self.state.variables.contains_key(name);
        let value = self.variable(name);
        let Some(index) = index else {
            return match value {
                Value::Text(text) => one(text),
                Value::Array(elements) => {
                    elements.into_iter().find(|(at, _)| at == "0").map_or(Held::Unset, |(_, text)| one(text))
                }
                Value::Unset if known => Held::Unset,
                Value::Unset => one(Self::from_environment(name)),
            };
        };
        let elements = match value {
            Value::Array(elements) => elements,
            Value::Text(text) => vec![("0".into(), text)],
            Value::Unset if known => Vec::new(),
            Value::Unset if !index.bare().is_some_and(|text| text == "@" || text == "*") => {
                let _ = self.text_of(index);
                return one(HOLE.into());
            }
            Value::Unset => vec![("0".into(), HOLE.into())],
        };
        if index.bare().is_some_and(|text| text == "@" || text == "*") {
            return Held::List(elements.into_iter().map(|(_, text)| text).collect());
        }
        let key = self.text_of(index);
        let value = if self.has_names(name) { None } else { self.compute(&key).value };
        let key = match value {
            Some(at) if at < 0 => {
                let last = elements.iter().filter_map(|(at, _)| at.parse::<u64>().ok()).max();
                last.and_then(|last| (last + 1).checked_sub(at.unsigned_abs())).map(|at| at.to_string())
            }
            Some(at) => Some(at.to_string()),
            None => None,
        }
        .filter(|_| !elements.iter().any(|(name, _)| *name == key))
        .unwrap_or(key);
        if !text::is_literal(&key) {
            return one(HOLE.into());
        }
        elements.into_iter().find(|(name, _)| *name == key).map_or(Held::Unset, |(_, text)| one(text))
    }

    fn parameter(&mut self, parameter: &Parameter) -> Held {
        if let Some(Operation::Names) = parameter.operation {
            let set = |values: &[Value]| values.iter().any(|value| *value != Value::Unset);
            let named = self.state.variables.iter().filter(|(name, _)| name.starts_with(&parameter.name));
            let mut names: Vec<_> = named.filter(|(_, values)| set(values)).map(|(name, _)| name.clone()).collect();
            names.sort();
            return Held::List(names);
        }
        let held = if parameter.indirect && parameter.index.as_ref().is_some_and(|index| index.bare() == Some("@")) {
            // `${!a[@]}`: the keys.
            return Held::List(match self.variable(&parameter.name) {
                Value::Array(elements) => elements.into_iter().map(|(key, _)| key).collect(),
                Value::Text(_) => vec!["0".into()],
                Value::Unset => Vec::new(),
            });
        } else if parameter.indirect {
            match self.value(&parameter.name, None) {
                Held::Text(name) if text::is_literal(&name) => match name.split_once('[') {
                    Some((name, index)) => {
                        let index = Word { parts: vec![Part::Bare(index.trim_end_matches(']').to_owned())] };
                        self.value(name, Some(&index))
                    }
                    None => self.value(&name, None),
                },
                // A variable that nobody can name may be any, those with secrets as well.
                Held::Text(_) => Held::Text(format!("{HOLE}{SECRET}")),
                other => other,
            }
        } else {
            self.value(&parameter.name, parameter.index.as_ref())
        };
        if parameter.length {
            return Held::Text(match &held {
                Held::Unset => "0".into(),
                Held::List(values) => values.len().to_string(),
                Held::Text(text) if text::is_literal(text) => text.chars().count().to_string(),
                Held::Text(_) | Held::Instead(_) => PLAIN.into(),
            });
        }
        match &parameter.operation {
            None => held,
            Some(operation) => self.operate(parameter, held, operation),
        }
    }

    /// `$*` in one piece.
    fn joined(&mut self, values: &[String]) -> String {
        let separator = match self.variable("IFS") {
            Value::Text(ifs) => ifs.chars().next().map(String::from).unwrap_or_default(),
            _ => " ".into(),
        };
        values.join(&separator)
    }

    fn operate(&mut self, parameter: &Parameter, held: Held, operation: &Operation) -> Held {
        let empty = match &held {
            Held::Unset => true,
            Held::Text(text) => text.is_empty(),
            Held::List(values) => values.iter().all(String::is_empty),
            Held::Instead(_) => false,
        };
        let unset = match &held {
            Held::Unset => true,
            Held::Text(_) | Held::Instead(_) => false,
            Held::List(values) => values.is_empty(),
        };
        // A variable of the environment may be set or not.
        let uncertain = matches!(&held, Held::Text(text) if text.chars().all(text::is_hole) && !text.is_empty())
            && !self.state.variables.contains_key(&parameter.name);
        match operation {
            Operation::Default { word, empty: counts } | Operation::Assign { word, empty: counts } => {
                let instead = |machine: &mut Self| {
                    if matches!(operation, Operation::Default { .. }) && has_parts(word) {
                        return Held::Instead(word.clone());
                    }
                    let value = machine.text_of(word);
                    if matches!(operation, Operation::Assign { .. }) {
                        match &parameter.index {
                            None => machine.assign_text(&parameter.name, value.clone()),
                            Some(index) => {
                                let key = machine.text_of(index);
                                machine.assign_to(&format!("{}[{key}]", parameter.name), value.clone());
                            }
                        }
                    }
                    Held::Text(value)
                };
                if unset || empty && *counts {
                    instead(self)
                } else if uncertain {
                    // Both are looked at: the choice is held like that of a variable with two values.
                    let key = format!("{}:-", parameter.name);
                    if !self.state.variables.contains_key(&key) {
                        let held = match held {
                            Held::Text(text) => text,
                            _ => HOLE.into(),
                        };
                        let default = self.text_of(word);
                        let values = vec![Value::Text(default), Value::Text(held)];
                        self.state.variables.insert(key.clone(), Rc::new(values));
                    }
                    let chosen = match self.variable(&key) {
                        Value::Text(text) => text,
                        _ => HOLE.into(),
                    };
                    if matches!(operation, Operation::Assign { .. }) {
                        self.state.set_text(&parameter.name, chosen.clone());
                    }
                    self.state.variables.remove(&key);
                    Held::Text(chosen)
                } else {
                    held
                }
            }
            Operation::Demand(word) => {
                let _ = self.text_of(word);
                held
            }
            Operation::Alternative { word, empty: counts } => {
                if unset {
                    Held::Unset
                } else if empty && *counts {
                    Held::Text(String::new())
                } else if has_parts(word) {
                    Held::Instead(word.clone())
                } else {
                    Held::Text(self.text_of(word))
                }
            }
            Operation::Names => held,
            Operation::Transform(kind) => match (kind, held) {
                ('U', held) => each(held, str::to_uppercase),
                ('L', held) => each(held, str::to_lowercase),
                ('u', held) => each(held, |text| first(text, true)),
                ('E', held) => each(held, escapes::ansi_c),
                ('Q', held) => each(held, escapes::quoted),
                ('P', Held::Text(text)) => Held::Text(self.expanded(&text)),
                ('P' | 'A', _) => Held::Text(HOLE.into()),
                (_, held) => held,
            },
            Operation::Case { to, all, pattern } => {
                let pattern = self.pattern_of(pattern);
                each(held, |text| letters(text, *to, *all, &pattern))
            }
            Operation::DropPrefix { pattern, longest } => {
                let pattern = self.pattern_of(pattern);
                each(held, |text| drop_prefix(text, &pattern, *longest))
            }
            Operation::DropSuffix { pattern, longest } => {
                let pattern = self.pattern_of(pattern);
                each(held, |text| drop_suffix(text, &pattern, *longest))
            }
            Operation::Replace { .. } if unset => held,
            Operation::Replace { pattern, with, all, anchor } => {
                let pattern = self.pattern_of(pattern);
                let with = self.replacement(with);
                each(held, |text| replace(text, &pattern, &with, *all, *anchor))
            }
            Operation::Substring(offset, length) => {
                let offset = self.arithmetic(offset);
                let length = length.as_ref().map(|length| self.arithmetic(length));
                let (Some(offset), false) = (offset, length == Some(None)) else {
                    return match held {
                        Held::List(_) => Held::List(vec![HOLE.into()]),
                        Held::Unset | Held::Instead(_) => Held::Unset,
                        Held::Text(_) => Held::Text(HOLE.into()),
                    };
                };
                let length = length.flatten();
                let sparse = match self.variable(&parameter.name) {
                    Value::Array(elements) if parameter.index.is_some() => Some(elements),
                    _ => None,
                };
                match (held, sparse) {
                    // Elements are counted by their indices.
                    (Held::List(_), Some(elements)) => {
                        let last = elements.iter().filter_map(|(at, _)| at.parse::<i64>().ok()).max().unwrap_or(-1);
                        let from = if offset < 0 { last.saturating_add(1).saturating_add(offset) } else { offset };
                        let most = length.map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(0));
                        let later = |at: &str| at.parse::<i64>().is_ok_and(|at| at >= from);
                        let values = elements.iter().filter(|(at, _)| from >= 0 && later(at)).take(most);
                        Held::List(values.map(|(_, text)| text.clone()).collect())
                    }
                    (Held::List(mut values), None) => {
                        // The positional parameters begin with `$0`, if they are counted from there.
                        let positional = parameter.name == "@" || parameter.name == "*";
                        if positional && offset <= 0 {
                            let Held::Text(zero) = self.value("0", None) else { return Held::List(values) };
                            values.insert(0, zero);
                        }
                        let offset = if positional && offset > 0 { offset - 1 } else { offset };
                        Held::List(slice(&values, offset, length))
                    }
                    (Held::Unset | Held::Instead(_), _) => Held::Unset,
                    (Held::Text(text), _) => Held::Text(substring(&text, offset, length)),
                }
            }
        }
    }

    /// The new text of a replacement, with living `&` where they are not quoted.
    fn replacement(&mut self, word: &Word) -> String {
        let mut out = String::new();
        for part in &word.parts {
            let text = self.text_of(&Word { parts: vec![part.clone()] });
            match part {
                Part::Bare(_) | Part::Parameter(_) | Part::Command(_) => {
                    // A backslash in the value of a variable quotes as well.
                    let mut chars = text.chars().peekable();
                    while let Some(c) = chars.next() {
                        match c {
                            '\\' if chars.peek() == Some(&'&') => out.extend(chars.next()),
                            '&' => out.push(MATCH),
                            c => out.push(c),
                        }
                    }
                }
                _ => out.push_str(&text),
            }
        }
        out
    }

    /// What a text becomes where it is expanded once more.
    pub(super) fn expanded(&mut self, text: &str) -> String {
        if !text.contains(['$', '`']) {
            return text.to_owned();
        }
        match crate::shell::here_text(text) {
            Ok(word) => self.text_of(&word),
            Err(_) => HOLE.into(),
        }
    }
}

/// What stands in the names of variables that hold secrets.
const SECRET_NAMES: [&str; 10] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE_KEY", "ACCESS_KEY", "API_KEY", "APIKEY", "PGPASS"];

/// Whether a variable's name says that it holds a secret.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
        || name.ends_with("_KEY")
        || name.ends_with("_PASS")
        || name.ends_with("_PAT")
}

/// Whether a search for this word finds variables with secrets: `KEY`, `PASS`, `API`.
pub(super) fn finds_secrets(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    looks_secret(&word) || SECRET_NAMES.iter().any(|part| part.contains(&word))
}

/// Whether this word is in the names of no variables but those about paths, languages and terminals. `LANG` is not such a
/// word: it finds the keys of services as well.
pub(super) fn says_no_secret(word: &str) -> bool {
    const WORDS: [&str; 12] = [
        "HOSTNAME",
        "SHELL",
        "TERM",
        "PWD",
        "PROXY",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "EDITOR",
        "PAGER",
        "VIRTUAL_ENV",
        "LOGNAME",
        "HOME",
    ];
    let word = word.to_ascii_uppercase();
    word.ends_with("PATH") || word.ends_with("_HOME") || word.ends_with("_ENV") || WORDS.contains(&word.as_str())
}

fn each(held: Held, change: impl Fn(&str) -> String) -> Held {
    match held {
        Held::Unset | Held::Instead(_) => held,
        Held::Text(text) => Held::Text(change(&text)),
        Held::List(values) => Held::List(values.iter().map(|text| change(text)).collect()),
    }
}

/// Whether a parameter is the list `$@` or `${a[@]}`, with `@` or `*` as `sign`.
fn is_list(parameter: &Parameter, sign: &str) -> bool {
    parameter.name == sign || parameter.index.as_ref().is_some_and(|index| index.bare() == Some(sign))
}

/// Whether a word is more than bare text that can be divided.
fn has_parts(word: &Word) -> bool {
    word.parts.iter().any(|part| !matches!(part, Part::Bare(text) if !text.starts_with('~')))
}
