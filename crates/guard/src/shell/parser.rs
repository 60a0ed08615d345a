//! Reads the text of a script the way bash does: one pass over the bytes, no backtracking further than one `((`.
//!
//! Written here because the guard must read hostile text in linear time on any stack: nesting is counted, and past
//! [`DEEPEST`] the text is refused, long before the machine's stack is in danger (`docs/decisions/shell-grammar.md` has the
//! figures of the libraries).

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use super::redirects::{HereDocument, errors_follow};
use super::syntax::{AssignedValue, Assignment, Command, Compound, Item, Join, Pipeline};
use super::syntax::{Part, Script, Simple, Word};

/// How many constructs may stand inside one another.
pub(super) const DEEPEST: usize = 60;

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub(crate) struct SyntaxError {
    /// What is wrong.
    pub what: String,
    /// Where, in bytes.
    pub at: usize,
}

/// Reads a whole script.
///
/// # Errors
/// If bash would not run it, or if it is nested deeper than [`DEEPEST`].
pub(crate) fn parse(source: &str) -> Result<Script, SyntaxError> {
    parse_at(source, 0, &Rc::new(Cell::new(4 * source.len() + 4_096)))
}

/// The lines in front of a text that is no script: bash runs them before it comes to what it cannot read.
pub(crate) fn readable_lines(source: &str) -> Script {
    let mut parser = Parser::new(source, 0, Rc::new(Cell::new(4 * source.len() + 4_096)));
    let mut readable = Script::default();
    loop {
        parser.newlines();
        let mut line = Vec::new();
        loop {
            let Ok(Some(item)) = parser.next_item() else { return readable };
            line.push(item);
            if parser.peek() == Some(b'\n') {
                break;
            }
        }
        // The newline fills the here-documents of the line.
        parser.newlines();
        readable.items.append(&mut line);
    }
}

pub(super) fn parse_at(source: &str, depth: usize, work: &Rc<Cell<usize>>) -> Result<Script, SyntaxError> {
    let mut parser = Parser::new(source, depth, Rc::clone(work));
    let script = parser.list()?;
    if parser.at < parser.bytes.len() {
        return Err(parser.wrong("unexpected"));
    }
    parser.here_documents();
    Ok(script)
}

/// Reads a text in which parameters and substitutions are alive, as in an unquoted here-document.
pub(crate) fn here_text(source: &str) -> Read<Word> {
    Parser::new(source, 0, Rc::new(Cell::new(4 * source.len() + 4_096))).here_text()
}

/// What stands where an assignment may stand.
enum Assignable {
    Assignment(Assignment),
    /// A word that begins like one.
    Word(Word),
    /// Nothing was read.
    Neither,
}

pub(super) struct Parser<'s> {
    pub(super) source: &'s str,
    pub(super) bytes: &'s [u8],
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) pending: Vec<HereDocument>,
    /// How many constructs may still be begun. Where one is read a second time, as something else, that is paid as well:
    /// the whole reading stays linear.
    pub(super) work: Rc<Cell<usize>>,
    /// Where `((` turned out to be no arithmetic.
    pub(super) no_arithmetic: HashSet<usize>,
}

/// Words that end a list of commands.
const ENDS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];
/// Builtins whose arguments are assignments, arrays included.
const DECLARATIONS: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

pub(super) type Read<T> = Result<T, SyntaxError>;

impl<'s> Parser<'s> {
    pub(super) fn new(source: &'s str, depth: usize, work: Rc<Cell<usize>>) -> Self {
        let no_arithmetic = HashSet::new();
        Self { source, bytes: source.as_bytes(), at: 0, depth, pending: Vec::new(), work, no_arithmetic }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, offset: usize) -> Option<u8> {
        self.bytes.get(self.at + offset).copied()
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        self.bytes[self.at..].starts_with(text.as_bytes())
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn wrong(&self, what: &str) -> SyntaxError {
        let near: String = self.source.get(self.at..).unwrap_or_default().chars().take(12).collect();
        let what = if near.is_empty() { format!("{what} end") } else { format!("{what} {near:?}") };
        SyntaxError { what, at: self.at }
    }

    pub(super) fn expected(&self, what: &str) -> SyntaxError {
        SyntaxError { what: format!("{what} is missing"), at: self.at }
    }

    /// Runs `read` one level deeper.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= DEEPEST {
            return Err(SyntaxError { what: format!("nested more than {DEEPEST} deep"), at: self.at });
        }
        let Some(left) = self.work.get().checked_sub(1) else {
            return Err(SyntaxError { what: "too entangled".into(), at: self.at });
        };
        self.work.set(left);
        self.depth += 1;
        let result = stacker::maybe_grow(64 * 1024, 1024 * 1024, || read(self));
        self.depth -= 1;
        result
    }

    /// Blanks, continued lines and comments; stops before a newline.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                Some(b'#') => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn newlines(&mut self) {
        loop {
            self.blanks();
            if self.peek() != Some(b'\n') {
                return;
            }
            self.at += 1;
            self.here_documents();
        }
    }

    /// The reserved word that stands here, if one does.
    fn reserved(&self, word: &str) -> bool {
        self.starts_with(word) && self.peek_at(word.len()).is_none_or(is_meta)
    }

    fn eat_reserved(&mut self, word: &str) -> bool {
        let found = self.reserved(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn need_reserved(&mut self, word: &str) -> Read<()> {
        self.newlines();
        if self.eat_reserved(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    fn at_list_end(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => matches!(self.peek_at(1), Some(b';' | b'&')),
            Some(b't' | b'e' | b'f' | b'd' | b'}') => ENDS.iter().any(|word| self.reserved(word)),
            _ => false,
        }
    }

    pub(super) fn list(&mut self) -> Read<Script> {
        let mut items = Vec::new();
        loop {
            self.newlines();
            match self.next_item()? {
                Some(item) => items.push(item),
                None => return Ok(Script { items }),
            }
        }
    }

    /// The next command with what ends it, unless the list ends here.
    fn next_item(&mut self) -> Read<Option<Item>> {
        self.blanks();
        if self.at_list_end() {
            return Ok(None);
        }
        let mut item = self.item()?;
        self.blanks();
        match self.peek() {
            Some(b';') if !matches!(self.peek_at(1), Some(b';' | b'&')) => self.at += 1,
            Some(b'&') => {
                self.at += 1;
                item.background = true;
            }
            Some(b'\n') | None => {}
            _ if self.at_list_end() => {}
            _ => return Err(self.wrong("unexpected")),
        }
        self.blanks();
        Ok(Some(item))
    }

    /// A list that must hold something.
    fn body(&mut self) -> Read<Script> {
        let script = self.nested(Self::list)?;
        if script.items.is_empty() { Err(self.expected("a command")) } else { Ok(script) }
    }

    fn item(&mut self) -> Read<Item> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.blanks();
            let join = if self.eat("&&") {
                Join::And
            } else if self.eat("||") {
                Join::Or
            } else {
                return Ok(Item { first, rest, background: false });
            };
            self.newlines();
            rest.push((join, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Read<Pipeline> {
        self.blanks();
        let mut prefixed = false;
        loop {
            if self.reserved("!") {
                self.at += 1;
            } else if self.reserved("time") {
                self.at += 4;
                self.blanks();
                for option in ["-p", "--"] {
                    if self.reserved(option) {
                        self.at += option.len();
                        self.blanks();
                    }
                }
            } else {
                break;
            }
            prefixed = true;
            self.blanks();
        }
        if prefixed && (self.at_list_end() || matches!(self.peek(), Some(b';' | b'\n' | b'&'))) {
            return Ok(Pipeline { stages: Vec::new() });
        }
        let mut stages = vec![self.command()?];
        loop {
            self.blanks();
            if self.starts_with("||") || self.peek() != Some(b'|') {
                return Ok(Pipeline { stages });
            }
            self.at += 1;
            if self.peek() == Some(b'&') {
                self.at += 1;
                if let Some(stage) = stages.last_mut() {
                    errors_follow(stage);
                }
            }
            self.newlines();
            stages.push(self.command()?);
        }
    }

    fn command(&mut self) -> Read<Command> {
        self.blanks();
        let compound = match self.peek() {
            Some(b'(') if self.peek_at(1) == Some(b'(') => match self.maybe_arithmetic(2)? {
                Some(word) => Some(Compound::Arithmetic(word)),
                None => Some(self.subshell()?),
            },
            Some(b'(') => Some(self.subshell()?),
            Some(b'i' | b']') if self.reserved("in") || self.reserved("]]") => return Err(self.wrong("unexpected")),
            Some(b't' | b'e' | b'f' | b'd' | b'}') if ENDS.iter().any(|word| self.reserved(word)) => {
                return Err(self.wrong("unexpected"));
            }
            Some(b'{' | b'i' | b'w' | b'u' | b'f' | b's' | b'c' | b'[') => self.keyword()?,
            _ => None,
        };
        match compound {
            Some(Compound::Group(mut script)) if script.items.len() == 1 && is_definition(&script) => {
                // `function name …` comes back as a group of one definition.
                let item = script.items.remove(0);
                item.first.stages.into_iter().next().ok_or_else(|| self.expected("a function"))
            }
            Some(compound) => {
                let mut redirects = Vec::new();
                loop {
                    self.blanks();
                    match self.redirect()? {
                        Some(redirect) => redirects.push(redirect),
                        None => return Ok(Command::Compound(Box::new(compound), redirects)),
                    }
                }
            }
            None => self.simple(),
        }
    }

    fn subshell(&mut self) -> Read<Compound> {
        self.at += 1;
        let script = self.body()?;
        if self.eat(")") { Ok(Compound::Subshell(script)) } else { Err(self.expected(")")) }
    }

    fn keyword(&mut self) -> Read<Option<Compound>> {
        let compound = if self.eat_reserved("{") {
            let script = self.body()?;
            self.need_reserved("}")?;
            Compound::Group(script)
        } else if self.eat_reserved("if") {
            self.branches()?
        } else if self.reserved("while") || self.reserved("until") {
            let until = self.peek() == Some(b'u');
            self.at += 5;
            let condition = self.body()?;
            Compound::Loop { until, condition, body: self.do_group()? }
        } else if self.eat_reserved("for") || self.eat_reserved("select") {
            self.for_loop()?
        } else if self.eat_reserved("case") {
            self.case()?
        } else if self.eat_reserved("[[") {
            self.test()?
        } else if self.eat_reserved("function") {
            self.blanks();
            let name = self.word()?.bare().map(str::to_owned).ok_or_else(|| self.expected("a function name"))?;
            self.blanks();
            let begin = self.at;
            // Parentheses after the name are empty, or they are the body.
            if self.eat("(") {
                self.blanks();
                if !self.eat(")") {
                    self.at = begin;
                }
            }
            let body = self.function_body()?;
            let definition = Pipeline { stages: vec![Command::Function(name, body)] };
            Compound::Group(Script { items: vec![Item { first: definition, rest: Vec::new(), background: false }] })
        } else if self.eat_reserved("coproc") {
            self.blanks();
            let begin = self.at;
            let named = self.word().ok().and_then(|word| word.bare().map(is_name)).unwrap_or(false);
            self.blanks();
            if !(named && self.at_compound()) {
                self.at = begin;
            }
            Compound::Coprocess(self.nested(Self::command)?)
        } else {
            return Ok(None);
        };
        Ok(Some(compound))
    }

    fn at_compound(&self) -> bool {
        let words = ["{", "if", "while", "until", "for", "select", "case", "[["];
        self.peek() == Some(b'(') || words.iter().any(|word| self.reserved(word))
    }

    fn function_body(&mut self) -> Read<Rc<Command>> {
        self.newlines();
        if !self.at_compound() {
            return Err(self.expected("a function body"));
        }
        self.nested(Self::command).map(Rc::new)
    }

    fn branches(&mut self) -> Read<Compound> {
        let mut arms = Vec::new();
        loop {
            let condition = self.body()?;
            self.need_reserved("then")?;
            arms.push((condition, self.body()?));
            if self.eat_reserved("elif") {
                continue;
            }
            let otherwise = if self.eat_reserved("else") { Some(self.body()?) } else { None };
            self.need_reserved("fi")?;
            return Ok(Compound::If(arms, otherwise));
        }
    }

    fn do_group(&mut self) -> Read<Script> {
        self.newlines();
        let end = if self.eat_reserved("{") { "}" } else { "done" };
        if end == "done" {
            self.need_reserved("do")?;
        }
        let script = self.body()?;
        self.need_reserved(end)?;
        Ok(script)
    }

    fn for_loop(&mut self) -> Read<Compound> {
        self.blanks();
        if self.eat("((") {
            let first = self.arithmetic(";")?;
            let second = self.arithmetic(";")?;
            let third = self.arithmetic("))")?;
            self.blanks();
            let _ = self.eat(";");
            return Ok(Compound::ArithmeticFor { parts: [first, second, third], body: self.do_group()? });
        }
        let name = self.word()?.bare().filter(|name| is_name(name)).map(str::to_owned);
        let name = name.ok_or_else(|| self.expected("a loop variable"))?;
        self.newlines();
        let words = if self.eat_reserved("in") {
            let mut words = Vec::new();
            loop {
                self.blanks();
                match self.peek() {
                    Some(b';' | b'\n') => break,
                    None => return Err(self.expected("do")),
                    _ => words.push(self.word()?),
                }
            }
            Some(words)
        } else {
            None
        };
        self.blanks();
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        Ok(Compound::For { name, words, body: self.do_group()? })
    }

    fn case(&mut self) -> Read<Compound> {
        self.blanks();
        let subject = self.word()?;
        self.need_reserved("in")?;
        let mut arms = Vec::new();
        loop {
            self.newlines();
            if self.eat_reserved("esac") {
                return Ok(Compound::Case { subject, arms });
            }
            let _ = self.eat("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.push(self.word()?);
                self.blanks();
                if self.eat(")") {
                    break;
                }
                if !self.eat("|") {
                    return Err(self.expected(")"));
                }
            }
            let script = self.nested(Self::list)?;
            arms.push((patterns, script));
            self.newlines();
            if !(self.eat(";;&") || self.eat(";;") || self.eat(";&")) {
                self.need_reserved("esac")?;
                return Ok(Compound::Case { subject, arms });
            }
        }
    }

    fn test(&mut self) -> Read<Compound> {
        let mut words = Vec::new();
        loop {
            self.newlines();
            if self.eat_reserved("]]") {
                return Ok(Compound::Test(words));
            }
            match self.peek() {
                None => return Err(self.expected("]]")),
                Some(b'(' | b')' | b'<' | b'>' | b'&' | b'|' | b';') => self.at += 1,
                _ => words.push(self.word()?),
            }
        }
    }

    fn simple(&mut self) -> Read<Command> {
        let mut simple = Simple { span: (self.at, self.at), ..Simple::default() };
        let mut declares = false;
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                simple.span.1 = self.at;
                continue;
            }
            let process = matches!(self.peek(), Some(b'<' | b'>')) && self.peek_at(1) == Some(b'(');
            match self.peek() {
                None => break,
                Some(b'(') if simple.words.len() == 1 && simple.assignments.is_empty() => {
                    let Some(name) = simple.words[0].bare().map(str::to_owned) else {
                        return Err(self.wrong("unexpected"));
                    };
                    self.at += 1;
                    self.blanks();
                    if !self.eat(")") {
                        return Err(self.expected(")"));
                    }
                    return Ok(Command::Function(name, self.function_body()?));
                }
                Some(byte) if is_meta(byte) && !process => break,
                _ => {}
            }
            let assignable = simple.words.is_empty() || declares;
            let word = match if assignable { self.assignment()? } else { Assignable::Neither } {
                Assignable::Assignment(assignment) => {
                    simple.assignments.push(assignment);
                    None
                }
                Assignable::Word(word) => Some(word),
                Assignable::Neither => Some(self.word()?),
            };
            if let Some(word) = word {
                if simple.words.is_empty() {
                    declares = word.bare().is_some_and(|name| DECLARATIONS.contains(&name));
                }
                simple.words.push(word);
            }
            simple.span.1 = self.at;
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty() {
            return Err(self.wrong("unexpected"));
        }
        Ok(Command::Simple(simple))
    }

    /// An assignment, or a word that only begins like one: what stands between brackets is read once, blanks included,
    /// and without the closing one nothing can be read, as in bash.
    fn assignment(&mut self) -> Read<Assignable> {
        let rest = &self.bytes[self.at..];
        let length =
            rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_')).unwrap_or(rest.len());
        if length == 0 || rest[0].is_ascii_digit() {
            return Ok(Assignable::Neither);
        }
        let begin = self.at;
        match rest.get(length) {
            Some(b'=' | b'[') => {}
            Some(b'+') if rest.get(length + 1) == Some(&b'=') => {}
            _ => return Ok(Assignable::Neither),
        }
        let name = self.source[begin..begin + length].to_owned();
        self.at += length;
        let index = if self.peek() == Some(b'[') {
            self.at += 1;
            Some(self.until(b"]", false)?)
        } else {
            None
        };
        let append = self.eat("+=");
        if !append && !self.eat("=") {
            let Some(index) = index else {
                self.at = begin;
                return Ok(Assignable::Neither);
            };
            return self.bracketed(&format!("{name}["), index).map(Assignable::Word);
        }
        let value = if self.peek() == Some(b'(') {
            self.at += 1;
            AssignedValue::Array(self.nested(Self::array)?)
        } else if self.peek().is_none_or(|byte| is_meta(byte) && !self.at_process()) {
            AssignedValue::Scalar(Word::default())
        } else {
            AssignedValue::Scalar(self.word()?)
        };
        Ok(Assignable::Assignment(Assignment { name, index, append, value }))
    }

    /// The word that begins with `open`, what stands between brackets, and the closing one.
    fn bracketed(&mut self, open: &str, inside: Word) -> Read<Word> {
        let rest = if self.peek().is_none_or(|byte| is_meta(byte) && !self.at_process()) {
            Word::default()
        } else {
            self.word()?
        };
        let bare = |text: &str| Part::Bare(text.to_owned());
        let mut parts: Vec<Part> = Vec::new();
        for part in std::iter::once(bare(open)).chain(inside.parts).chain([bare("]")]).chain(rest.parts) {
            match (parts.last_mut(), part) {
                (Some(Part::Bare(text)), Part::Bare(more)) => text.push_str(&more),
                (_, part) => parts.push(part),
            }
        }
        Ok(Word { parts })
    }

    pub(super) fn at_process(&self) -> bool {
        matches!(self.peek(), Some(b'<' | b'>')) && self.peek_at(1) == Some(b'(')
    }

    fn array(&mut self) -> Read<Vec<(Option<Word>, Word)>> {
        let mut elements = Vec::new();
        loop {
            self.newlines();
            if self.eat(")") {
                return Ok(elements);
            }
            if !self.eat("[") {
                elements.push((None, self.word()?));
                continue;
            }
            let inside = self.until(b"]", false)?;
            if !self.eat("=") {
                elements.push((None, self.bracketed("[", inside)?));
            } else if self.peek().is_none_or(|byte| is_meta(byte) && !self.at_process()) {
                elements.push((Some(inside), Word::default()));
            } else {
                elements.push((Some(inside), self.word()?));
            }
        }
    }

    /// A script inside `$( )`, backticks or `<( )`; the here-documents of the text around it wait meanwhile.
    pub(super) fn inner_script(&mut self, end: &str) -> Read<Rc<Script>> {
        let waiting = std::mem::take(&mut self.pending);
        let script = self.nested(Self::list)?;
        self.newlines();
        if !self.eat(end) {
            return Err(self.expected(end));
        }
        self.here_documents();
        self.pending = waiting;
        Ok(Rc::new(script))
    }
}

fn is_definition(script: &Script) -> bool {
    matches!(script.items[0].first.stages.as_slice(), [Command::Function(..)]) && script.items[0].rest.is_empty()
}

/// Whether a byte ends a word.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// Whether a text can name a variable.
pub(crate) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
