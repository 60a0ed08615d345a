//! Words of other languages: names, constants and signs, without comments. Enough to see calls with their arguments.

use super::Language;
use crate::escapes;
use crate::text::{HOLE, NAME, SECRET};

/// A word of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name; sigils of variables stay with it (`$x`, `@list`).
    Name(String),
    /// A number, in decimal where that is clear (`0o777` stays as it is written).
    Number(String),
    /// A constant text, with holes where something is put in.
    Text(String),
    /// A text that the language runs in a shell: backticks, `%x(…)`.
    Command(String),
    /// A list of constant words: `qw(a b)`.
    Words(Vec<String>),
    /// Anything else; two-character signs that matter are one token.
    Sign(&'static str),
    /// A line ends.
    Newline,
}

/// Signs of two characters and one; longer ones first.
const SIGNS: [&str; 47] = [
    "<<~", "...", "=>", "->", "::", "==", "!=", "<=", ">=", "&&", "||", "??", "+=", ".=", "=~", "!~", "..", "**", ">>",
    "<<", "|&", "?.", "(", ")", "[", "]", "{", "}", ",", ";", ".", "=", "+", "-", "*", "/", "%", "<", ">", "|", "&",
    "!", "?", ":", "^", "~", "\\",
];

/// The words of `source`. A constant that never ends takes the rest.
pub(super) fn tokens(language: Language, source: &str) -> Vec<Token> {
    let mut lexer = Lexer { language, source, at: 0, out: Vec::new() };
    lexer.run();
    lexer.out
}

struct Lexer<'s> {
    language: Language,
    source: &'s str,
    at: usize,
    out: Vec<Token>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn run(&mut self) {
        use Language::{Awk, JavaScript, Lisp, Lua, Perl, Php, Python, R, Ruby};
        while let Some(c) = self.rest().chars().next() {
            let language = self.language;
            let second = self.rest()[c.len_utf8()..].chars().next();
            match c {
                '\n' => {
                    self.out.push(Token::Newline);
                    self.at += 1;
                }
                c if c.is_whitespace() => self.at += c.len_utf8(),
                '\\' if second == Some('\n') => self.at += 2,
                '#' if !matches!(language, JavaScript | Lua | Lisp) => self.line_comment(),
                '/' if second == Some('/') && matches!(language, JavaScript | Php) => self.line_comment(),
                '/' if second == Some('*') && matches!(language, JavaScript | Php) => {
                    self.at = self.rest().find("*/").map_or(self.source.len(), |end| self.at + end + 2);
                }
                '-' if second == Some('-') && language == Lua => self.line_comment(),
                ';' if language == Lisp => self.line_comment(),
                '\'' | '"' => self.string(c),
                '`' if language == JavaScript => self.string(c),
                '`' if matches!(language, Perl | Ruby | Php | Language::Other) => {
                    self.at += 1;
                    let body = self.until('`', '`');
                    self.out.push(Token::Command(self.interpolated(&body)));
                }
                '[' if language == Lua && second == Some('[') => {
                    self.at += 2;
                    let end = self.rest().find("]]").unwrap_or(self.rest().len());
                    self.out.push(Token::Text(self.rest()[..end].to_owned()));
                    self.at = (self.at + end + 2).min(self.source.len());
                }
                '/' if matches!(language, JavaScript | Perl | Ruby | Awk) && self.regex_may_begin() => {
                    self.at += 1;
                    let _ = self.until('/', '/');
                    self.skip_letters();
                    self.out.push(Token::Text(String::new()));
                }
                '%' if matches!(language, Ruby) && self.percent_literal() => {}
                '$' | '@' | '%'
                    if matches!(language, Perl | Ruby | Php | Awk)
                        && second.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '{' | '$')) =>
                {
                    self.sigil(c);
                }
                c if c.is_ascii_digit() => self.number(),
                c if c.is_alphabetic()
                    || c == '_'
                    || (c == '$' && language == JavaScript)
                    || (c == '.' && language == R && second.is_some_and(char::is_alphabetic)) =>
                {
                    self.name();
                }
                _ => match SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
                    Some(sign) => {
                        self.out.push(Token::Sign(sign));
                        self.at += sign.len();
                    }
                    None => {
                        // A hole in the source stands for a name nobody knows.
                        if crate::text::is_hole(c) {
                            self.out.push(Token::Text(HOLE.to_string()));
                        }
                        self.at += c.len_utf8();
                    }
                },
            }
            if language == Python && self.out.len() > 1 << 16 {
                return;
            }
        }
    }

    fn line_comment(&mut self) {
        self.at = self.rest().find('\n').map_or(self.source.len(), |end| self.at + end);
    }

    fn skip_letters(&mut self) {
        let letters = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        self.at += letters;
    }

    /// A slash divides after a value and begins a pattern everywhere else.
    fn regex_may_begin(&self) -> bool {
        match self.out.last() {
            None | Some(Token::Newline) => true,
            Some(Token::Name(name)) => matches!(
                name.as_str(),
                "if" | "unless"
                    | "and"
                    | "or"
                    | "not"
                    | "return"
                    | "split"
                    | "grep"
                    | "print"
                    | "while"
                    | "when"
                    | "puts"
            ),
            Some(Token::Sign(sign)) => !matches!(*sign, ")" | "]" | "}"),
            Some(_) => false,
        }
    }

    fn name(&mut self) {
        let dots = self.language == Language::R;
        let length = self
            .rest()
            .chars()
            .take_while(|c| {
                c.is_alphanumeric()
                    || *c == '_'
                    || *c == '$' && self.language == Language::JavaScript
                    || dots && *c == '.'
                    || self.language == Language::Lisp && matches!(c, '-' | '*' | '?' | '!' | '/')
            })
            .map(char::len_utf8)
            .sum::<usize>();
        let name = self.rest()[..length].to_owned();
        self.at += length;
        let next = self.rest().chars().next();
        match (self.language, name.as_str(), next) {
            // Prefixes of strings.
            (Language::Python, _, Some(quote @ ('\'' | '"')))
                if name.len() <= 2 && name.chars().all(|c| "rRbBuUfFtT".contains(c)) =>
            {
                let raw = name.contains(['r', 'R']);
                let format = name.contains(['f', 'F', 't', 'T']);
                self.python_string(quote, raw, format);
            }
            // The quoting operators of Perl.
            (Language::Perl, "q" | "qq" | "qw" | "qx" | "qr" | "m" | "s" | "tr" | "y", Some(open))
                if !open.is_alphanumeric()
                    && !matches!(open, ',' | ';' | ')' | '=' | '-')
                    && (!open.is_whitespace()) =>
            {
                self.quote_operator(&name, open);
            }
            // `rm?` and `rm!` are names of methods.
            (Language::Ruby, _, Some('?' | '!')) if !self.rest()[1..].starts_with('=') => {
                let suffix = &self.rest()[..1];
                let whole = format!("{name}{suffix}");
                self.at += 1;
                self.out.push(Token::Name(whole));
            }
            _ => self.out.push(Token::Name(name)),
        }
    }

    fn number(&mut self) {
        let length = self.rest().bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        self.out.push(Token::Number(self.rest()[..length].replace('_', "")));
        self.at += length;
    }

    fn sigil(&mut self, sigil: char) {
        self.at += 1;
        let braced = self.rest().starts_with('{');
        self.at += usize::from(braced);
        let length = self
            .rest()
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':'))
            .map(char::len_utf8)
            .sum::<usize>();
        let name = format!("{sigil}{}", &self.rest()[..length]);
        self.at += length;
        if braced && self.rest().starts_with('}') {
            self.at += 1;
        }
        if length == 0 {
            self.at = (self.at + usize::from(self.rest().starts_with(|c: char| c.is_ascii_punctuation())))
                .min(self.source.len());
        }
        self.out.push(Token::Name(name));
    }

    fn string(&mut self, quote: char) {
        if self.language == Language::Python {
            return self.python_string(quote, false, false);
        }
        self.at += 1;
        let body = self.until(quote, quote);
        let literal = quote == '\'' && matches!(self.language, Language::Perl | Language::Ruby | Language::Php);
        let text = if literal {
            body.replace("\\'", "'").replace("\\\\", "\\")
        } else if quote == '\''
            || self.language == Language::Lua
            || self.language == Language::Awk
            || self.language == Language::R
            || self.language == Language::Lisp
        {
            escapes::ansi_c(&body)
        } else {
            self.interpolated(&body)
        };
        self.out.push(Token::Text(text));
    }

    fn python_string(&mut self, quote: char, raw: bool, format: bool) {
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let body = if self.rest().starts_with(&triple) {
            self.at += 3;
            let end = self.rest().find(&triple).unwrap_or(self.rest().len());
            let body = self.rest()[..end].to_owned();
            self.at = (self.at + end + 3).min(self.source.len());
            body
        } else {
            self.at += 1;
            self.until(quote, quote)
        };
        let mut text = if raw { body } else { escapes::ansi_c(&body) };
        if format {
            text = blanked(&text, "{", '{', '}');
        }
        self.out.push(Token::Text(text));
    }

    /// Text up to an unescaped `close`, nested where it has a partner; the end is consumed.
    fn until(&mut self, open: char, close: char) -> String {
        let mut depth = 0_usize;
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            if c == '\\' {
                chars.next();
            } else if c == close && depth == 0 {
                let body = self.rest()[..at].to_owned();
                self.at += at + c.len_utf8();
                return body;
            } else if c == close {
                depth -= 1;
            } else if c == open && open != close {
                depth += 1;
            }
        }
        let body = self.rest().to_owned();
        self.at = self.source.len();
        body
    }

    /// A text in which variables and expressions become holes.
    fn interpolated(&self, body: &str) -> String {
        let text = match self.language {
            Language::JavaScript => blanked(body, "${", '{', '}'),
            Language::Ruby => blanked(body, "#{", '{', '}'),
            Language::Perl | Language::Php => {
                let mut out = String::new();
                let mut chars = body.chars().peekable();
                while let Some(c) = chars.next() {
                    let variable = matches!(c, '$' | '@')
                        && chars.peek().is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '{'));
                    if c == '\\' {
                        out.push(c);
                        out.extend(chars.next());
                    } else if variable {
                        let mut name = String::new();
                        while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | '{' | '}' | ':'))
                        {
                            name.push(c);
                        }
                        let bare = name.trim_matches(['{', '}']);
                        // In PHP the braces may stand around the sigil.
                        if self.language == Language::Php && name.ends_with('}') && out.ends_with('{') {
                            out.pop();
                        }
                        match name.trim_matches('}') {
                            "ENV{HOME" => out.push('~'),
                            "ENV{" => out.push(SECRET),
                            // An element of a list is not the list.
                            _ if c == '$' && is_name(bare) && !matches!(chars.peek(), Some('[' | '{' | '-')) => {
                                push_variable(&mut out, &format!("${bare}"));
                            }
                            _ => out.push(HOLE),
                        }
                    } else {
                        out.push(c);
                    }
                }
                out
            }
            _ => body.to_owned(),
        };
        escapes::ansi_c(&text)
    }

    fn quote_operator(&mut self, operator: &str, open: char) {
        self.at += open.len_utf8();
        let close = match open {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            '<' => '>',
            other => other,
        };
        let body = self.until(open, close);
        match operator {
            "q" => self.out.push(Token::Text(body)),
            "qq" => self.out.push(Token::Text(self.interpolated(&body))),
            "qx" => self.out.push(Token::Command(self.interpolated(&body))),
            "qw" => self.out.push(Token::Words(body.split_whitespace().map(str::to_owned).collect())),
            "s" | "tr" | "y" => {
                if open != close {
                    while self.rest().starts_with(char::is_whitespace) {
                        self.at += 1;
                    }
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                }
                let with = self.until(open, close);
                let begin = self.at;
                self.skip_letters();
                // `s/…/code/e` runs its replacement.
                if self.source[begin..self.at].contains('e') && operator == "s" {
                    self.out.push(Token::Newline);
                    let inner = tokens(Language::Perl, &with);
                    self.out.extend(inner);
                }
                self.out.push(Token::Text(String::new()));
            }
            _ => {
                self.skip_letters();
                self.out.push(Token::Text(String::new()));
            }
        }
    }

    /// `%w[a b]`, `%x(…)`, `%q(…)` of Ruby.
    fn percent_literal(&mut self) -> bool {
        let mut chars = self.rest()[1..].chars();
        let (Some(kind), Some(open)) = (chars.next(), chars.next()) else { return false };
        if !matches!(kind, 'w' | 'W' | 'x' | 'q' | 'Q' | 'i' | 'I' | 'r')
            || open.is_alphanumeric()
            || open.is_whitespace()
        {
            return false;
        }
        let close = match open {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            '<' => '>',
            other => other,
        };
        self.at += 2 + open.len_utf8();
        let body = self.until(open, close);
        let token = match kind {
            'w' | 'W' | 'i' | 'I' => Token::Words(body.split_whitespace().map(str::to_owned).collect()),
            'x' => Token::Command(self.interpolated(&body)),
            'q' => Token::Text(body),
            'r' => Token::Text(String::new()),
            _ => Token::Text(self.interpolated(&body)),
        };
        self.out.push(token);
        true
    }
}

/// A text in which everything between `begin` and its closing partner becomes a hole; `{{` stays in format strings.
fn blanked(text: &str, begin: &str, open: char, close: char) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(begin) {
        out.push_str(&rest[..at]);
        rest = &rest[at + begin.len()..];
        if begin == "{" && rest.starts_with('{') {
            out.push('{');
            rest = &rest[1..];
            continue;
        }
        let mut depth = 0_usize;
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            if c == close && depth == 0 {
                end = at + 1;
                break;
            } else if c == close {
                depth -= 1;
            } else if c == open {
                depth += 1;
            }
        }
        let inside = rest[..end].strip_suffix(close).unwrap_or(rest).trim();
        if is_name(inside) {
            push_variable(&mut out, inside);
        } else {
            out.push(HOLE);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// A hole that is the value of a variable.
fn push_variable(out: &mut String, name: &str) {
    out.extend([HOLE, NAME]);
    out.push_str(name);
    out.push(NAME);
}
