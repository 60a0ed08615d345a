//! How the calls of a program get their arguments: in parentheses, bare behind a name, in braces.

use super::Language;
use super::lexer::Token;
use super::scan::Scanner;
use super::values::Arguments;

impl Scanner<'_, '_, '_, '_> {
    /// Whether a word of Perl stands where it gives one text and no list: `scalar reverse …`, `$x = reverse …`.
    pub(super) fn wants_one_text(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map(|at| &self.tokens[at]);
        self.language == Language::Perl
            && match before(1) {
                Some(Token::Name(name)) => name == "scalar",
                Some(Token::Sign(sign)) => match *sign {
                    "." => true,
                    "=" => matches!(before(2), Some(Token::Name(name)) if name.starts_with('$')),
                    _ => false,
                },
                _ => false,
            }
    }

    /// Whether an argument may follow a name without a parenthesis.
    pub(super) fn begins_expression(&self) -> bool {
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

    pub(super) fn bare_arguments(&mut self) -> Arguments {
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

    /// What stands in parentheses or brackets, up to `end`.
    pub(super) fn arguments(&mut self, end: &str) -> Arguments {
        let mut found = Arguments::default();
        self.at += 1;
        loop {
            self.newlines();
            if self.at >= self.tokens.len() {
                return found;
            }
            if self.is(0, end) {
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

    pub(super) fn argument(&mut self, found: &mut Arguments) {
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
}
