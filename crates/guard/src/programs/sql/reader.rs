//! SQL cut into statements and these into words, where the client would cut them: one pass over the text.

use crate::text;

/// Whose rules a text follows where databases differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::programs) enum Dialect {
    Postgres,
    Mysql,
    Sqlite,
    Other,
}

/// The smallest parts of a statement. Words are in lower case.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    /// A quoted name.
    Name(String),
    Text(String),
    Number(String),
    Sign(char),
}

impl Token {
    pub(super) fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(own) if own == word)
    }

    pub(super) fn word(&self) -> &str {
        match self {
            Self::Word(word) => word,
            _ => "",
        }
    }

    pub(super) fn is_any(&self, words: &[&str]) -> bool {
        matches!(self, Self::Word(own) if words.contains(&own.as_str()))
    }
}

/// What a client gets: statements for the server, and lines for itself.
pub(super) enum Piece {
    Statement(Vec<Token>),
    Own(String),
}

struct Reader<'a> {
    dialect: Dialect,
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    previous: char,
    tokens: Vec<Token>,
    pieces: Vec<Piece>,
    /// What ends a statement, where the script has set something else than `;`.
    delimiter: Option<String>,
    /// How many blocks of a routine's body are open.
    blocks: usize,
}

/// Cuts a script at its delimiters.
pub(super) fn pieces(dialect: Dialect, source: &str) -> Vec<Piece> {
    let mut reader = Reader {
        dialect,
        chars: source.chars().peekable(),
        previous: '\n',
        tokens: Vec::new(),
        pieces: Vec::new(),
        delimiter: None,
        blocks: 0,
    };
    while reader.step() {}
    reader.end_statement();
    reader.pieces
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        self.previous = c;
        Some(c)
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    fn take_line(&mut self) -> String {
        let mut line = String::new();
        while let Some(c) = self.chars.next_if(|c| *c != '\n') {
            line.push(c);
        }
        line
    }

    fn end_statement(&mut self) {
        self.blocks = 0;
        if !self.tokens.is_empty() {
            let tokens = std::mem::take(&mut self.tokens);
            self.pieces.push(Piece::Statement(tokens));
        }
    }

    fn own(&mut self, line: String) {
        self.end_statement();
        self.pieces.push(Piece::Own(line));
    }

    /// Whether what ends a statement here only ends a part of a routine that is being defined.
    fn in_routine(&self) -> bool {
        self.blocks > 0
    }

    fn step(&mut self) -> bool {
        let before = self.previous;
        let Some(c) = self.next() else { return false };
        let fresh = self.tokens.is_empty();
        let line_start = before == '\n';
        match c {
            _ if self.ends_here(c) => self.end_statement(),
            c if c.is_whitespace() => {}
            '-' if self.peek() == Some('-') => {
                self.next();
                // MySQL wants a blank after the two dashes.
                if self.dialect == Dialect::Mysql && self.peek().is_some_and(|c| !c.is_whitespace()) {
                    self.tokens.extend([Token::Sign('-'), Token::Sign('-')]);
                } else {
                    self.take_line();
                }
            }
            '#' if self.dialect == Dialect::Mysql => {
                self.take_line();
            }
            '/' if self.peek() == Some('*') => {
                self.next();
                self.comment();
            }
            '*' if self.peek() == Some('/') && self.dialect == Dialect::Mysql => {
                // The end of a comment whose content MySQL runs.
                self.next();
            }
            '\\' if self.dialect != Dialect::Sqlite => self.backslash(),
            '.' if fresh && line_start && self.dialect == Dialect::Sqlite => {
                let line = self.take_line();
                self.own(line);
            }
            '!' | ':' | '@' if fresh && self.dialect == Dialect::Other => {
                let line = self.take_line();
                self.own(match (c, line.trim_start_matches('!')) {
                    ('@', rest) => format!("include {}", rest.trim_start_matches('@')),
                    (':', _) if !line.starts_with('!') => line,
                    (_, rest) => format!("!{rest}"),
                });
            }
            '\'' => {
                let escapes = self.dialect == Dialect::Mysql
                    || matches!(before, 'e' | 'E') && self.tokens.last().is_some_and(|token| token.is("e"));
                let string = self.quoted('\'', escapes);
                self.tokens.push(Token::Text(string));
            }
            '"' => {
                let string = self.quoted('"', self.dialect == Dialect::Mysql);
                self.tokens.push(if self.dialect == Dialect::Mysql {
                    Token::Text(string)
                } else {
                    Token::Name(string)
                });
            }
            '`' => {
                let name = self.quoted('`', false);
                self.tokens.push(Token::Name(name));
            }
            '$' if !before.is_alphanumeric() && self.dollar() => {}
            ';' if self.in_routine() || self.delimiter.is_some() => self.tokens.push(Token::Sign(';')),
            ';' => self.end_statement(),
            c if c.is_ascii_digit() => {
                let mut number = c.to_string();
                while let Some(c) = self.chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '.') {
                    number.push(c);
                }
                self.tokens.push(Token::Number(number));
                self.previous = '0';
            }
            c if is_word(c) => self.word(c),
            c => self.tokens.push(Token::Sign(c)),
        }
        true
    }

    /// Whether the delimiter that the script has set stands here; it is read to its end.
    fn ends_here(&mut self, c: char) -> bool {
        let Some(delimiter) = self.delimiter.clone() else { return false };
        let mut ahead = self.chars.clone();
        let mut rest = delimiter.chars();
        if rest.next() != Some(c) || !rest.clone().all(|wanted| ahead.next() == Some(wanted)) {
            return false;
        }
        for _ in rest {
            self.next();
        }
        true
    }

    fn comment(&mut self) {
        if self.dialect == Dialect::Mysql && self.peek() == Some('!') {
            self.next();
            while self.chars.next_if(char::is_ascii_digit).is_some() {}
            return;
        }
        let nests = self.dialect == Dialect::Postgres;
        let mut depth = 1;
        while let Some(c) = self.next() {
            match (c, self.peek()) {
                ('*', Some('/')) => {
                    self.next();
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                ('/', Some('*')) if nests => {
                    self.next();
                    depth += 1;
                }
                _ => {}
            }
        }
        self.previous = ' ';
    }

    /// A command of the client itself, or the end of a statement.
    fn backslash(&mut self) {
        let mut line = self.take_line();
        if self.dialect == Dialect::Mysql && line.starts_with(['g', 'G']) {
            self.end_statement();
            return;
        }
        if let Some(end) = line.find("\\\\") {
            line.truncate(end);
        }
        let keep = line.starts_with("gexec");
        if keep {
            self.end_statement();
        }
        self.own(line);
    }

    fn quoted(&mut self, quote: char, escapes: bool) -> String {
        let mut string = String::new();
        while let Some(c) = self.next() {
            if c == '\\' && escapes {
                string.extend(self.next());
            } else if c != quote {
                string.push(c);
            } else if self.peek() == Some(quote) {
                self.next();
                string.push(quote);
            } else {
                break;
            }
        }
        string
    }

    /// `$tag$ text $tag$`; false if it is something else.
    fn dollar(&mut self) -> bool {
        let mut ahead = self.chars.clone();
        let mut tag = String::from("$");
        loop {
            match ahead.next() {
                Some('$') => break,
                Some(c) if (c.is_alphanumeric() || c == '_') && tag.len() < 64 => tag.push(c),
                _ => return false,
            }
        }
        tag.push('$');
        for _ in tag.chars().skip(1) {
            self.next();
        }
        let mut body = String::new();
        while !body.ends_with(&tag) {
            match self.next() {
                Some(c) => body.push(c),
                None => break,
            }
        }
        let body = body.strip_suffix(&tag).unwrap_or(&body);
        self.tokens.push(Token::Text(body.to_owned()));
        true
    }

    fn word(&mut self, first: char) {
        let mut word: String = first.to_lowercase().collect();
        while let Some(c) = self.chars.next_if(|c| is_word(*c) || c.is_ascii_digit() || *c == '$') {
            word.extend(c.to_lowercase());
        }
        self.previous = word.chars().last().unwrap_or(first);
        if self.tokens.is_empty() && self.client_word(&word) {
            return;
        }
        if self.tokens.len() == 1 && word == "go" && self.tokens[0].is("go") {
            self.tokens.clear();
        }
        self.count_blocks(&word);
        self.tokens.push(Token::Word(word));
    }

    /// Words that are commands of the client at the beginning of a statement.
    fn client_word(&mut self, word: &str) -> bool {
        let own = match self.dialect {
            Dialect::Mysql => matches!(word, "system" | "source" | "pager" | "tee" | "delimiter"),
            Dialect::Other => matches!(word, "host" | "source" | "go" | "quit" | "exit"),
            _ => false,
        };
        if !own {
            return false;
        }
        let mut line = String::new();
        // A name of a file ends where a statement would; what goes to the shell is the whole line.
        let short = matches!(word, "source" | "tee" | "pager");
        while let Some(c) = self.chars.next_if(|c| *c != '\n' && !(short && *c == ';')) {
            line.push(c);
        }
        if word == "delimiter" {
            let delimiter = line.trim().to_owned();
            self.delimiter = (!matches!(delimiter.as_str(), "" | ";") && delimiter.len() <= 16).then_some(delimiter);
        } else {
            self.own(format!("{word}{line}"));
        }
        true
    }

    /// The statements in a routine's body are not run by defining it.
    fn count_blocks(&mut self, word: &str) {
        let routine = self.tokens.first().is_some_and(|token| token.is_any(&["create", "alter"]))
            && self.tokens.iter().take(8).any(|token| token.is_any(&["trigger", "procedure", "function", "event"]));
        if !routine {
            return;
        }
        let after_end = self.tokens.last().is_some_and(|token| token.is("end"));
        match word {
            "if" | "loop" | "while" | "repeat" | "for" if after_end => self.blocks += 1,
            "case" if after_end => {}
            "begin" | "case" => self.blocks += 1,
            "end" => self.blocks = self.blocks.saturating_sub(1),
            _ => {}
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphabetic() || c == '_' || !text::is_literal(c.encode_utf8(&mut [0; 4]))
}
