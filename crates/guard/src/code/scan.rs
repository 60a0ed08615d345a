//! Walks over the words of a program and sees which calls it makes, with constants where they can be computed.
//!
//! This is no interpreter: branches and loops are read once, in order, and what is not a constant is a hole. Two rounds
//! are made, the first one only to learn what names are bound to, so that a loop variable is known in the body before it.

use std::collections::{HashMap, HashSet};

use super::Language;
use super::calls::{format, join};
use super::known::{self, Action};
use super::lexer::{Token, tokens};
use super::shape;
use super::values::{Arguments, Value, is_environment};
use crate::eval::{Call, Writing};
use crate::finding::Effect;
use crate::text::{self, HOLE, NAME, PLAIN, REMOTE, SECRET};

/// How deep expressions may be nested.
const DEEPEST: usize = 40;

/// Reports what a piece of code does.
pub(crate) fn scan(call: &mut Call<'_, '_>, language: Language, source: &str) {
    if source.len() > 1 << 18 {
        return call.cannot_tell("runs code that is too long to be read");
    }
    let tokens = tokens(language, source);
    let mut scanner = Scanner {
        call,
        language,
        tokens: &tokens,
        at: 0,
        depth: 0,
        bound: HashMap::new(),
        silent: true,
        sockets: false,
        shells: false,
        forks: false,
        walks: HashMap::new(),
        changing: HashSet::new(),
        parameters: shape::parameters(&tokens),
        steps: 0,
    };
    scanner.round();
    scanner.silent = false;
    scanner.round();
    let (sockets, shells, forks) = (scanner.sockets, scanner.shells, scanner.forks);
    if sockets && shells {
        call.asks(Effect::ExecuteRemote, "the network", "ties a shell to a connection");
    }
    if forks && (shape::never_ends(&tokens) || shape::forks_again(language, source, &tokens)) {
        call.machine.without_end();
    }
}

pub(super) struct Scanner<'c, 'm, 'w, 't> {
    pub(super) call: &'c mut Call<'m, 'w>,
    pub(super) language: Language,
    pub(super) tokens: &'t [Token],
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) bound: HashMap<String, Value>,
    /// What Perl's `File::Find` finds, by where the call begins: known when its function is read for the second time.
    walks: HashMap<usize, Value>,
    /// Variables that get more than one value: which one they have where they are used, nobody follows.
    changing: HashSet<String>,
    /// Names that functions give to what they are called with.
    parameters: HashSet<String>,
    /// Nothing is reported.
    pub(super) silent: bool,
    pub(super) sockets: bool,
    pub(super) shells: bool,
    pub(super) forks: bool,
    pub(super) steps: usize,
}

impl Scanner<'_, '_, '_, '_> {
    fn round(&mut self) {
        self.at = 0;
        while self.at < self.tokens.len() {
            let before = self.at;
            self.statement();
            if self.at == before {
                self.at += 1;
            }
        }
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    pub(super) fn is(&self, ahead: usize, sign: &str) -> bool {
        matches!(self.peek(ahead), Some(Token::Sign(found)) if *found == sign)
    }

    pub(super) fn name(&self, ahead: usize) -> Option<&str> {
        match self.peek(ahead) {
            Some(Token::Name(name)) => Some(name),
            _ => None,
        }
    }

    pub(super) fn newlines(&mut self) {
        while matches!(self.peek(0), Some(Token::Newline)) {
            self.at += 1;
        }
    }

    pub(super) fn statement(&mut self) {
        match self.name(0) {
            Some("import" | "from") if self.language == Language::Python => return self.import(),
            Some("for" | "foreach") => return self.for_each(),
            Some("use") if self.language == Language::Perl => {
                self.at += 1;
                while !matches!(self.peek(0), None | Some(Token::Newline | Token::Sign(";"))) {
                    self.at += 1;
                }
                return;
            }
            _ => {}
        }
        let _ = self.expression();
    }

    fn import(&mut self) {
        let from = self.name(0) == Some("from");
        self.at += 1;
        let mut module = self.dotted();
        if from {
            if self.name(0) == Some("import") {
                self.at += 1;
            }
            loop {
                while self.is(0, "(")
                    || self.is(0, ",")
                    || self.is(0, ")")
                    || (self.is(0, "(") && matches!(self.peek(0), Some(Token::Newline)))
                {
                    self.at += 1;
                }
                let Some(name) = self.name(0).map(str::to_owned) else { return };
                self.at += 1;
                let alias = self.alias().unwrap_or_else(|| name.clone());
                self.bind(alias, Value::Path(format!("{module}.{name}")));
                if !self.is(0, ",") {
                    return;
                }
            }
        }
        loop {
            if let Some(alias) = self.alias() {
                self.bind(alias, Value::Path(module));
            }
            if !self.is(0, ",") {
                return;
            }
            self.at += 1;
            module = self.dotted();
        }
    }

    fn alias(&mut self) -> Option<String> {
        if self.name(0) != Some("as") {
            return None;
        }
        let alias = self.name(1)?.to_owned();
        self.at += 2;
        Some(alias)
    }

    fn dotted(&mut self) -> String {
        let mut path = String::new();
        while let Some(name) = self.name(0) {
            path.push_str(name);
            self.at += 1;
            if !self.is(0, ".") {
                break;
            }
            path.push('.');
            self.at += 1;
        }
        path
    }

    /// `for x in …`, `foreach my $x (…)`, `for (const x of …)`.
    pub(super) fn for_each(&mut self) {
        self.at += 1;
        if self.is(0, "(") && matches!(self.language, Language::JavaScript | Language::Awk | Language::R) {
            self.at += 1;
        }
        while matches!(self.name(0), Some("my" | "our" | "const" | "let" | "var" | "await")) {
            self.at += 1;
        }
        let mut names = Vec::new();
        loop {
            match self.name(0) {
                Some("in" | "of") => break self.at += 1,
                Some(name) => names.push(name.to_owned()),
                None if self.language == Language::Perl && self.is(0, "(") && !names.is_empty() => break,
                // `k, v` and `[k, v]`
                None if [",", "[", "]", "(", ")"].iter().any(|sign| self.is(0, sign)) && names.len() < 8 => {}
                None => return,
            }
            self.at += 1;
        }
        let mut value = self.expression();
        // A walk through a dictionary is one through its keys.
        if self.language == Language::Python && matches!(&value, Value::Path(path) if is_environment(path)) {
            value = Value::Text(HOLE.into());
        }
        for name in names {
            self.bind(name, value.clone());
        }
    }

    pub(super) fn expression(&mut self) -> Value {
        if self.depth >= DEEPEST {
            self.at += 1;
            return Value::Unknown;
        }
        self.steps += 1;
        self.depth += 1;
        let value = self.binary();
        self.depth -= 1;
        value
    }

    fn binary(&mut self) -> Value {
        // `name = value`
        if let Some(name) = self.name(0).map(str::to_owned)
            && self.is(1, "=")
        {
            self.at += 2;
            let value = self.expression();
            self.bind(name, value.clone());
            return value;
        }
        let mut left = self.postfix();
        loop {
            // Awk joins what stands side by side.
            if self.language == Language::Awk && self.joins_in_awk() {
                let right = self.postfix();
                left = Value::Text(left.text() + &right.text());
                continue;
            }
            let Some(Token::Sign(sign)) = self.peek(0) else { return left };
            let sign = *sign;
            let joins = match self.language {
                Language::Perl | Language::Php => sign == ".",
                Language::Lua => sign == "..",
                Language::Awk => false,
                _ => sign == "+",
            };
            match sign {
                _ if joins => {
                    self.at += 1;
                    self.newlines();
                    let right = self.postfix();
                    left = match (left, right) {
                        (Value::List(mut a), Value::List(b)) => {
                            a.extend(b);
                            Value::List(a)
                        }
                        (a, b) => Value::Text(a.text() + &b.text()),
                    };
                }
                "/" if self.language == Language::Python => {
                    self.at += 1;
                    let right = self.postfix();
                    left = Value::Text(join(&left.text(), &right.text()));
                }
                "*" | "x" => {
                    self.at += 1;
                    let right = self.postfix();
                    left = match (&left, right.text().parse::<usize>()) {
                        (Value::Text(text), Ok(times)) if text.len() * times <= 4_096 => {
                            Value::Text(text.repeat(times))
                        }
                        _ => Value::Unknown,
                    };
                }
                "%" => {
                    self.at += 1;
                    let right = self.postfix();
                    left = Value::Text(format(&left.text(), &right));
                }
                "||" | "??" | "&&" => {
                    self.at += 1;
                    self.newlines();
                    let right = self.postfix();
                    left = if matches!(left, Value::Text(ref text) if text::is_literal(text)) {
                        left
                    } else {
                        Value::List(vec![left, right])
                    };
                }
                ">" | ">>" | "|" | "|&" if self.language == Language::Awk => {
                    self.at += 1;
                    if self.name(0) == Some("getline") {
                        self.at += 1;
                        self.run_text(&left.text());
                        continue;
                    }
                    let right = self.postfix();
                    match sign {
                        "|" | "|&" => self.run_text_fed(&right.text(), &left.text()),
                        _ if matches!(right, Value::Text(ref text) if text.contains('/') || text.contains('.')) => {
                            self.write(&right.text(), Writing::Replace);
                        }
                        _ => {}
                    }
                    if right.text().starts_with("/inet/") {
                        self.sockets = true;
                    }
                    left = Value::Unknown;
                }
                // What follows is a block, or the value of a key.
                ":" if self.language == Language::Python => return left,
                "==" | "!=" | "<=" | ">=" | "<" | ">" | "-" | "/" | "+" | "." | ".." | "|" | "&" | "^" | "**"
                | "=~" | "!~" | "<<" | ">>" | "?" | ":" => {
                    self.at += 1;
                    self.newlines();
                    let _ = self.postfix();
                    left = Value::Unknown;
                }
                _ => return left,
            }
        }
    }

    fn joins_in_awk(&self) -> bool {
        match self.peek(0) {
            Some(Token::Text(_) | Token::Number(_)) => true,
            Some(Token::Name(name)) => {
                name.starts_with('$')
                    || self.bound.contains_key(name)
                    || (self.is(1, "(") && known::action(name).is_some())
            }
            _ => false,
        }
    }

    fn postfix(&mut self) -> Value {
        let reversed = self.name(0) == Some("reverse") && self.wants_one_text();
        let mut value = self.primary();
        if reversed {
            value = Value::Path("scalar reverse".into());
        }
        loop {
            if self.is(0, "(")
                && self.language == Language::Perl
                && matches!(&value, Value::Path(path) if matches!(path.as_str(), "find" | "finddepth"))
            {
                self.walk();
                value = Value::Unknown;
                continue;
            }
            if self.is(0, "(") && matches!(value, Value::Path(_)) {
                let arguments = self.arguments(")");
                value = self.called(&value, arguments);
                continue;
            }
            let dot = self.is(0, ".") && !matches!(self.language, Language::Perl | Language::Php);
            let access = dot || self.is(0, "->") || self.is(0, "::") || self.is(0, "?.");
            if access {
                let sigils: &[char] = if self.language == Language::JavaScript { &[] } else { &['$', '@'] };
                if let Some(name) = self.name(1).map(|name| name.trim_start_matches(sigils).to_owned()) {
                    self.at += 2;
                    value = self.member(value, &name);
                    continue;
                }
                if self.is(1, "(") || self.is(1, "[") || self.is(1, "{") {
                    self.at += 1;
                    continue;
                }
            }
            if self.is(0, "[") {
                value = self.indexed(&value);
                continue;
            }
            if self.is(0, "{") && matches!(value, Value::Path(ref path) if path == "$ENV" || path == "%ENV") {
                self.at += 1;
                let key = self.expression();
                if self.is(0, "}") {
                    self.at += 1;
                }
                let key = match key {
                    Value::Path(name) => name,
                    other => other.text(),
                };
                value = self.variable(&key);
                continue;
            }
            // `fork while 1`
            if let Value::Path(path) = &value
                && matches!(self.language, Language::Perl | Language::Ruby | Language::Php)
                && known::action(path) == Some(Action::Fork)
            {
                self.forks = true;
            }
            // `` $`command` `` of zx and Bun is a command.
            if let Value::Path(path) = &value
                && self.language == Language::JavaScript
                && path.rsplit('.').next() == Some("$")
                && let Some(Token::Text(script)) = self.peek(0).cloned()
            {
                self.at += 1;
                let script = self.filled(script);
                value = Value::Text(self.run_text_captured(&script));
                continue;
            }
            // In Perl these are about `$_` without arguments.
            if let Value::Path(path) = &value
                && self.language == Language::Perl
                && matches!(path.as_str(), "unlink" | "eval")
                && !self.begins_expression()
                && !self.is(0, "=>")
                && !self.is(0, "{")
            {
                let it = self.bound.get("$_").cloned().unwrap_or(Value::Unknown);
                return self.called(&value, Arguments { values: vec![it], named: Vec::new() });
            }
            // A call without parentheses.
            if let Value::Path(path) = &value
                && matches!(
                    self.language,
                    Language::Perl
                        | Language::Ruby
                        | Language::Php
                        | Language::Lisp
                        | Language::Lua
                        | Language::Awk
                        | Language::Other
                )
                && known::action(path).is_some()
                && self.begins_expression()
            {
                let arguments = self.bare_arguments();
                value = self.called(&value, arguments);
                continue;
            }
            return value;
        }
    }

    /// `find(sub { … }, directory)` of Perl: inside of it, `$_` is each file of that tree.
    fn walk(&mut self) {
        const NAMES: [&str; 3] = ["$_", "$File.Find.name", "$File::Find::name"];
        let at = self.at;
        let before = NAMES.map(|name| self.bound.get(name).cloned());
        let file = self.walks.get(&at).cloned();
        for name in NAMES {
            self.bound.insert(name.to_owned(), file.clone().unwrap_or(Value::Unknown));
        }
        let arguments = self.arguments(")");
        for (name, value) in NAMES.into_iter().zip(before) {
            match value {
                Some(value) => self.bound.insert(name.to_owned(), value),
                None => self.bound.remove(name),
            };
        }
        if file.is_none() {
            // With more than one directory nobody can tell in which of them it is.
            let directory = arguments.values.last().filter(|_| arguments.values.len() < 3).map(Value::text);
            let directory = directory.filter(|text| text::is_literal(text)).unwrap_or_else(|| HOLE.into());
            let directory = Arguments { values: vec![Value::Text(directory)], named: Vec::new() };
            let file = self.perform(Action::List, "find", directory, None);
            self.walks.insert(at, file);
        }
    }

    fn bind(&mut self, name: String, value: Value) {
        let value = if self.parameters.contains(&name) { Value::Unknown } else { value };
        if let Some(before) = self.bound.insert(name.clone(), value)
            && self.bound.get(&name) != Some(&before)
        {
            self.changing.insert(name);
        }
    }

    /// A text in which the variables that are known have their values.
    fn filled(&self, text: String) -> String {
        if !text.contains(NAME) {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        for (at, part) in text.split(NAME).enumerate() {
            let value = match self.bound.get(part) {
                Some(Value::List(values)) if values.len() == 1 => values.first(),
                value => value,
            };
            match value {
                _ if at % 2 == 0 => out.push_str(part),
                Some(Value::Text(value)) if value.len() < 4_096 && !self.changing.contains(part) => {
                    // Its hole stands before it.
                    if out.ends_with(HOLE) {
                        out.pop();
                    }
                    out.push_str(value);
                }
                _ => {}
            }
        }
        out
    }

    fn primary(&mut self) -> Value {
        match self.peek(0).cloned() {
            Some(Token::Text(mut text)) => {
                self.at += 1;
                while self.language == Language::Python
                    && let Some(Token::Text(more)) = self.peek(0)
                {
                    text.push_str(more);
                    self.at += 1;
                }
                Value::Text(self.filled(text))
            }
            Some(Token::Number(number)) => {
                self.at += 1;
                Value::Text(number)
            }
            Some(Token::Command(script)) => {
                self.at += 1;
                let script = self.filled(script);
                Value::Text(self.run_text_captured(&script))
            }
            Some(Token::Words(words)) => {
                self.at += 1;
                Value::List(words.into_iter().map(Value::Text).collect())
            }
            Some(Token::Sign("[")) => Value::List(self.arguments("]").values),
            Some(Token::Sign("(")) => {
                let mut found = self.arguments(")");
                match found.values.len() {
                    1 => found.values.remove(0),
                    0 => Value::Unknown,
                    _ => Value::List(found.values),
                }
            }
            Some(Token::Sign("-")) => {
                self.at += 1;
                match self.peek(0).cloned() {
                    Some(Token::Number(number)) => {
                        self.at += 1;
                        Value::Text(format!("-{number}"))
                    }
                    _ => self.primary_below(),
                }
            }
            Some(Token::Sign("!" | "~" | "\\" | "&" | "+")) => {
                self.at += 1;
                self.primary_below()
            }
            Some(Token::Name(name)) => {
                self.at += 1;
                match name.as_str() {
                    "new" | "await" | "not" | "my" | "our" | "const" | "let" | "var" | "return" | "yield"
                    | "lambda" | "async" | "typeof" | "begin" | "local" | "static" | "global" | "else" | "then"
                    | "do"
                        if name != "do" || self.language != Language::Perl =>
                    {
                        self.primary_below()
                    }
                    _ => match self.bound.get(&name) {
                        Some(value) => value.clone(),
                        None => self.constant(&name),
                    },
                }
            }
            _ => Value::Unknown,
        }
    }

    fn primary_below(&mut self) -> Value {
        if self.depth >= DEEPEST {
            return Value::Unknown;
        }
        self.depth += 1;
        let value = self.binary();
        self.depth -= 1;
        value
    }

    /// Names that stand for something known.
    fn constant(&self, name: &str) -> Value {
        match name {
            "%ENV" | "$_ENV" | "$_SERVER" => Value::Text(SECRET.into()),
            "$0" if self.language == Language::Awk => Value::Unknown,
            "__FILE__" | "$0" | "__file__" => Value::Text(PLAIN.into()),
            _ => Value::Path(name.to_owned()),
        }
    }

    fn member(&mut self, value: Value, name: &str) -> Value {
        match value {
            Value::Path(path) => {
                let path = format!("{path}.{name}");
                match path.as_str() {
                    "os.sep" | "path.sep" => Value::Text("/".into()),
                    "Dir.home" if !self.is(0, "(") => Value::Text(self.call.machine.world.home.clone()),
                    "sys.argv" | "process.argv" | "sys.stdin" | "process.stdin" => Value::Path(path),
                    "signal.SIGKILL" | "signal.SIGTERM" | "signal.SIGINT" | "signal.SIGHUP" => {
                        Value::Text(name.trim_start_matches("SIG").to_owned())
                    }
                    // Ruby needs no parentheses for a call without arguments.
                    _ => Value::Path(path),
                }
            }
            other => {
                let arguments = if self.is(0, "(") { self.arguments(")") } else { Arguments::default() };
                self.method(other, name, arguments)
            }
        }
    }

    fn indexed(&mut self, value: &Value) -> Value {
        self.at += 1;
        let mut found = Arguments::default();
        let mut colons = 0;
        loop {
            self.newlines();
            if self.at >= self.tokens.len() || self.is(0, "]") {
                self.at += 1;
                break;
            }
            if self.is(0, ":") || self.is(0, "::") || self.is(0, ",") {
                colons += if self.is(0, "::") { 2 } else { usize::from(self.is(0, ":")) };
                self.at += 1;
                continue;
            }
            let before = self.at;
            self.argument(&mut found);
            if self.at == before {
                self.at += 1;
            }
        }
        if let Value::Path(path) = value {
            return match path.as_str() {
                "os.environ" | "process.env" | "ENV" | "$_ENV" | "ENVIRON" => {
                    let key = found.text(0).unwrap_or_default();
                    self.variable(&key)
                }
                "Dir" => Value::Text(text::live(&found.text(0).unwrap_or_default())),
                "sys.argv" | "process.argv" | "ARGV" | "$ARGV" | "arg" => {
                    let skipped = match path.as_str() {
                        "sys.argv" | "arg" => 1,
                        "process.argv" => 2,
                        _ => 0,
                    };
                    let index = found
                        .text(0)
                        .and_then(|index| index.parse::<usize>().ok())
                        .and_then(|index| index.checked_sub(skipped));
                    let argument = index.and_then(|index| self.call.machine.state.positional.get(index).cloned());
                    Value::Text(argument.unwrap_or_else(|| HOLE.into()))
                }
                _ => Value::Unknown,
            };
        }
        match (value, found.text(0).and_then(|index| index.parse::<i64>().ok())) {
            (Value::Text(text), Some(-1)) if colons == 2 && found.values.len() == 1 => {
                Value::Text(text.chars().rev().collect())
            }
            (Value::List(values), Some(index)) if colons == 0 => {
                usize::try_from(index).ok().and_then(|index| values.get(index).cloned()).unwrap_or(Value::Unknown)
            }
            (Value::Text(text), Some(index)) if colons == 0 && text::is_literal(text) => usize::try_from(index)
                .ok()
                .and_then(|index| text.chars().nth(index))
                .map_or(Value::Unknown, |c| Value::Text(c.to_string())),
            (Value::Text(text), _) if text.contains(SECRET) || text.contains(REMOTE) => value.clone(),
            _ => Value::Unknown,
        }
    }

    pub(super) fn variable(&mut self, name: &str) -> Value {
        match name {
            "HOME" | "USERPROFILE" => Value::Text(self.call.machine.world.home.clone()),
            "USER" | "LOGNAME" => Value::Text(self.call.machine.world.user.clone()),
            name if crate::eval::is_secret_name(name) || text::is_unknown(name) => Value::Text(SECRET.into()),
            name => self.call.sees(name).map_or_else(|| Value::Text(HOLE.into()), Value::Text),
        }
    }
}
