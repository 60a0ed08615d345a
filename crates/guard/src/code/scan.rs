//! Walks over the words of a program and sees which calls it makes, with constants where they can be computed.
//!
//! This is no interpreter: branches and loops are read once, in order, and what is not a constant is a hole. Two rounds
//! are made, the first one only to learn what names are bound to, so that a loop variable is known in the body before it.

use std::collections::HashMap;

use super::Language;
use super::known::{self, Action};
use super::lexer::{Token, tokens};
use crate::eval::{Call, Extent, Writing};
use crate::finding::{Effect, TargetClass};
use crate::text::{self, HOLE, PLAIN, REMOTE, SECRET};

/// How deep expressions may be nested.
const DEEPEST: usize = 40;

/// What an expression comes to.
#[derive(Clone, Debug)]
enum Value {
    Text(String),
    List(Vec<Value>),
    /// A name that is not bound: a module, a function, an object.
    Path(String),
    /// Nobody knows.
    Unknown,
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::List(values) => values.iter().map(Self::text).collect::<Vec<_>>().join(" "),
            Self::Path(path) if is_environment(path) => SECRET.into(),
            Self::Path(_) | Self::Unknown => HOLE.into(),
        }
    }

    /// Each text on its own.
    fn texts(&self) -> Vec<String> {
        match self {
            Self::List(values) => values.iter().flat_map(Self::texts).collect(),
            other => vec![other.text()],
        }
    }
}

/// Whether a name is that of all variables of the environment, or of a view of them.
fn is_environment(path: &str) -> bool {
    ["os.environ", "process.env", "ENV", "%ENV", "ENVIRON", "$_ENV", "os.environb", "Deno.env"]
        .iter()
        .any(|name| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

#[derive(Debug, Default)]
struct Arguments {
    values: Vec<Value>,
    named: Vec<(String, Value)>,
}

impl Arguments {
    fn text(&self, index: usize) -> Option<String> {
        self.values.get(index).map(Value::text)
    }

    fn texts(&self) -> Vec<String> {
        self.values.iter().flat_map(Value::texts).collect()
    }

    fn named(&self, names: &[&str]) -> Option<&Value> {
        self.named.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value)
    }
}

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
        steps: 0,
    };
    scanner.round();
    scanner.silent = false;
    scanner.round();
    let (sockets, shells, forks) = (scanner.sockets, scanner.shells, scanner.forks);
    if sockets && shells {
        call.asks(Effect::ExecuteRemote, "the network", "ties a shell to a connection");
    }
    if forks && never_ends(&tokens) {
        call.machine.without_end();
    }
}

/// Whether a loop in it has no end.
fn never_ends(tokens: &[Token]) -> bool {
    let name = |at: usize| match tokens.get(at) {
        Some(Token::Name(name)) => name.as_str(),
        Some(Token::Number(number)) => number.as_str(),
        Some(Token::Sign(sign)) => sign,
        _ => "",
    };
    (0..tokens.len()).any(|at| match name(at) {
        "while" => {
            let next = if name(at + 1) == "(" { name(at + 2) } else { name(at + 1) };
            matches!(next, "True" | "true" | "1" | "fork" | "os" | "pcntl_fork")
        }
        "until" => matches!(name(at + 1), "false" | "0"),
        "loop" | "forever" => matches!(name(at + 1), "{" | "do" | ""),
        "for" => {
            let next = if name(at + 1) == "(" { at + 2 } else { at + 1 };
            name(next) == ";" && name(next + 1) == ";" || name(at + 1) == "{"
        }
        "iter" => name(at + 1) == "(" && name(at + 2) == "int",
        "count" | "cycle" | "repeat" => name(at + 1) == "(",
        "setInterval" => true,
        _ => false,
    })
}

struct Scanner<'c, 'm, 'w, 't> {
    call: &'c mut Call<'m, 'w>,
    language: Language,
    tokens: &'t [Token],
    at: usize,
    depth: usize,
    bound: HashMap<String, Value>,
    /// Nothing is reported.
    silent: bool,
    sockets: bool,
    shells: bool,
    forks: bool,
    steps: usize,
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

    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn is(&self, ahead: usize, sign: &str) -> bool {
        matches!(self.peek(ahead), Some(Token::Sign(found)) if *found == sign)
    }

    fn name(&self, ahead: usize) -> Option<&str> {
        match self.peek(ahead) {
            Some(Token::Name(name)) => Some(name),
            _ => None,
        }
    }

    fn newlines(&mut self) {
        while matches!(self.peek(0), Some(Token::Newline)) {
            self.at += 1;
        }
    }

    fn statement(&mut self) {
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
                self.bound.insert(alias, Value::Path(format!("{module}.{name}")));
                if !self.is(0, ",") {
                    return;
                }
            }
        }
        loop {
            if let Some(alias) = self.alias() {
                self.bound.insert(alias, Value::Path(module));
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
    fn for_each(&mut self) {
        self.at += 1;
        if self.is(0, "(") && matches!(self.language, Language::JavaScript | Language::Awk | Language::R) {
            self.at += 1;
        }
        while matches!(self.name(0), Some("my" | "our" | "const" | "let" | "var" | "await")) {
            self.at += 1;
        }
        let Some(name) = self.name(0).map(str::to_owned) else { return };
        match self.name(1) {
            Some("in" | "of") => self.at += 2,
            _ if self.language == Language::Perl && self.is(1, "(") => self.at += 1,
            _ => return,
        }
        let value = self.expression();
        self.bound.insert(name, value);
    }

    fn expression(&mut self) -> Value {
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
            self.bound.insert(name, value.clone());
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
                            self.write(&right.text(), Writing::Replace)
                        }
                        _ => {}
                    }
                    if right.text().starts_with("/inet/") {
                        self.sockets = true;
                    }
                    left = Value::Unknown;
                }
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
        let mut value = self.primary();
        loop {
            if self.is(0, "(") && matches!(value, Value::Path(_)) {
                let arguments = self.arguments();
                value = self.called(&value, arguments);
                continue;
            }
            let dot = self.is(0, ".") && !matches!(self.language, Language::Perl | Language::Php);
            let access = dot || self.is(0, "->") || self.is(0, "::") || self.is(0, "?.");
            if access {
                if let Some(name) = self.name(1).map(|name| name.trim_start_matches(['$', '@']).to_owned()) {
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
                value = self.indexed(value);
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

    /// Whether an argument may follow a name without a parenthesis.
    fn begins_expression(&self) -> bool {
        match self.peek(0) {
            Some(Token::Text(_) | Token::Number(_) | Token::Words(_) | Token::Command(_)) => true,
            Some(Token::Name(name)) => !matches!(
                name.as_str(),
                "if" | "unless"
                    | "while"
                    | "until"
                    | "for"
                    | "foreach"
                    | "and"
                    | "or"
                    | "do"
                    | "end"
                    | "then"
                    | "in"
                    | "x"
                    | "eq"
                    | "ne"
                    | "not"
            ),
            Some(Token::Sign(sign)) => {
                matches!(*sign, "-" | "[" | "\\") || *sign == "<" && self.language == Language::Perl
            }
            _ => false,
        }
    }

    fn bare_arguments(&mut self) -> Arguments {
        let mut found = Arguments::default();
        loop {
            self.argument(&mut found);
            // The words of Lisp have no commas between them.
            if self.is(0, ",") {
                self.at += 1;
                self.newlines();
            } else if !(self.language == Language::Lisp && self.begins_expression()
                || matches!(self.language, Language::Perl)
                    && found.values.len() == 1
                    && matches!(self.peek(0), Some(Token::Text(_))))
            {
                return found;
            }
        }
    }

    fn arguments(&mut self) -> Arguments {
        let mut found = Arguments::default();
        self.at += 1;
        loop {
            self.newlines();
            if self.at >= self.tokens.len() {
                return found;
            }
            if self.is(0, ")") {
                self.at += 1;
                return found;
            }
            if self.is(0, ",") || self.is(0, ";") {
                self.at += 1;
                continue;
            }
            let before = self.at;
            self.argument(&mut found);
            if self.at == before {
                self.at += 1;
            }
        }
    }

    fn argument(&mut self, found: &mut Arguments) {
        if matches!(self.name(0), Some("for")) {
            return self.for_each();
        }
        if let Some(name) = self.name(0).map(str::to_owned)
            && (self.is(1, "=") || self.is(1, ":") || self.is(1, "=>"))
        {
            // A lambda or a ternary looks alike; its value is looked at all the same.
            self.at += 2;
            self.newlines();
            let value = self.expression();
            found.named.push((name, value));
            return;
        }
        if self.is(0, "{") {
            return self.braced(found);
        }
        if self.is(0, "*") || self.is(0, "**") || self.is(0, "&") || self.is(0, "...") {
            self.at += 1;
        }
        let value = self.expression();
        if matches!(self.language, Language::Python) && self.name(0) == Some("for") {
            self.for_each();
        }
        found.values.push(value);
    }

    /// An object with options, or the body of a function.
    fn braced(&mut self, found: &mut Arguments) {
        self.at += 1;
        loop {
            self.newlines();
            if self.at >= self.tokens.len() {
                return;
            }
            if self.is(0, "}") {
                self.at += 1;
                return;
            }
            let key = match self.peek(0) {
                Some(Token::Name(name) | Token::Text(name)) if self.is(1, ":") || self.is(1, "=>") => {
                    Some(name.clone())
                }
                _ => None,
            };
            let before = self.at;
            match key {
                Some(key) => {
                    self.at += 2;
                    let value = self.expression();
                    found.named.push((key, value));
                }
                None => self.statement(),
            }
            if self.at == before {
                self.at += 1;
            }
        }
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
                Value::Text(text)
            }
            Some(Token::Number(number)) => {
                self.at += 1;
                Value::Text(number)
            }
            Some(Token::Command(script)) => {
                self.at += 1;
                Value::Text(self.run_text_captured(&script))
            }
            Some(Token::Words(words)) => {
                self.at += 1;
                Value::List(words.into_iter().map(Value::Text).collect())
            }
            Some(Token::Sign("[")) => {
                self.at += 1;
                let mut found = Arguments::default();
                loop {
                    self.newlines();
                    if self.at >= self.tokens.len() || self.is(0, "]") {
                        self.at += 1;
                        return Value::List(found.values);
                    }
                    if self.is(0, ",") {
                        self.at += 1;
                        continue;
                    }
                    let before = self.at;
                    self.argument(&mut found);
                    if self.at == before {
                        self.at += 1;
                    }
                }
            }
            Some(Token::Sign("(")) => {
                let mut found = self.arguments();
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
                let arguments = if self.is(0, "(") { self.arguments() } else { Arguments::default() };
                self.method(other, name, arguments)
            }
        }
    }

    fn indexed(&mut self, value: Value) -> Value {
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
        if let Value::Path(path) = &value {
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
        match (&value, found.text(0).and_then(|index| index.parse::<i64>().ok())) {
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

    fn variable(&mut self, name: &str) -> Value {
        match name {
            "HOME" | "USERPROFILE" => Value::Text(self.call.machine.world.home.clone()),
            "USER" | "LOGNAME" => Value::Text(self.call.machine.world.user.clone()),
            name if crate::eval::is_secret_name(name) || text::is_unknown(name) => Value::Text(SECRET.into()),
            name => self.call.sees(name).map_or_else(|| Value::Text(HOLE.into()), Value::Text),
        }
    }

    // --------------------------------------------------------------------------------------------------------- calls

    fn called(&mut self, callee: &Value, arguments: Arguments) -> Value {
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
            _ => {}
        }
        // A method of what a call came to, such as `Path("x").unlink`.
        match known::action(&path) {
            Some(action) => self.perform(action, &path, arguments, None),
            None => {
                let secret = arguments.texts().iter().any(|text| text.contains(SECRET));
                if secret && path.contains("post") {
                    self.sends_secret(&path);
                }
                if secret { Value::Text(SECRET.into()) } else { Value::Unknown }
            }
        }
    }

    fn method(&mut self, receiver: Value, name: &str, arguments: Arguments) -> Value {
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

    fn perform(&mut self, action: Action, path: &str, arguments: Arguments, receiver: Option<Value>) -> Value {
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
                let target = if self.language == Language::R { second } else { first };
                self.write(&target, if append { Writing::Edit } else { Writing::Replace });
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
                return Value::Text(match arguments.values.first() {
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
                    _ => {}
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
                let module = first.trim_start_matches("node:").replace("::", ".");
                return Value::Path(module);
            }
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

    fn write(&mut self, path: &str, writing: Writing) {
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

    fn run_text(&mut self, script: &str) {
        let _ = self.run_text_captured(script);
    }

    fn run_text_fed(&mut self, script: &str, fed: &str) {
        if !self.silent {
            let outer = std::mem::replace(&mut self.call.machine.stdin, crate::eval::Feed::of(fed));
            self.run_text(script);
            self.call.machine.stdin = outer;
        }
    }

    fn run_text_captured(&mut self, script: &str) -> String {
        if self.silent {
            return HOLE.into();
        }
        let name = self.call.name.clone();
        let script = script.to_owned();
        self.call.machine.captured(|machine| machine.evaluate_apart(&name, &script, Vec::new()))
    }
}

fn join(a: &str, b: &str) -> String {
    if b.starts_with('/') || a.is_empty() { b.to_owned() } else { format!("{}/{b}", a.trim_end_matches('/')) }
}

/// `"…%s…" % values`
fn format(pattern: &str, values: &Value) -> String {
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
            Some('c') => out.push_str(
                &values
                    .next()
                    .map(|text| text.parse::<u32>().ok().and_then(char::from_u32).map_or(text, String::from))
                    .unwrap_or_else(|| HOLE.into()),
            ),
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
