//! Words: quotes, escapes, and everything that begins with a dollar or a backtick.

use super::parser::{Parser, Read, is_meta, parse_at};
use super::syntax::{Anchor, Letters, Operation, Parameter, Part, Word};

/// Pieces under construction; neighbouring bare text becomes one piece.
#[derive(Default)]
struct Pieces {
    parts: Vec<Part>,
}

impl Pieces {
    fn bare(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Bare(last)) => last.push_str(text),
            _ => self.parts.push(Part::Bare(text.to_owned())),
        }
    }

    fn quoted(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Quoted(last)) => last.push_str(text),
            _ => self.parts.push(Part::Quoted(text.to_owned())),
        }
    }

    fn word(self) -> Word {
        Word { parts: self.parts }
    }
}

impl Parser<'_> {
    /// A word; ends before a blank or an operator.
    pub(super) fn word(&mut self) -> Read<Word> {
        let begin = self.at;
        let mut pieces = Pieces::default();
        let mut run = self.at;
        // Text up to here is taken as it stands.
        macro_rules! flush {
            () => {
                if run < self.at {
                    pieces.bare(&self.source[run..self.at]);
                }
            };
        }
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' | b'\'' | b'"' | b'$' | b'`' => {
                    flush!();
                    self.special(&mut pieces)?;
                    run = self.at;
                }
                b'<' | b'>' if self.peek_at(1) == Some(b'(') => {
                    flush!();
                    self.at += 2;
                    let script = self.inner_script(")")?;
                    pieces.parts.push(Part::Process { writes: byte == b'>', script });
                    run = self.at;
                }
                b'(' if self.at > run && matches!(self.bytes[self.at - 1], b'?' | b'*' | b'+' | b'@' | b'!') => {
                    // An extended glob: one of its choices, or with `!` anything else.
                    let operator = self.bytes[self.at - 1];
                    self.at -= 1;
                    flush!();
                    self.at += 2;
                    let inside = self.nested(|parser| parser.until(b")", false))?;
                    choices(&mut pieces, operator, inside);
                    run = self.at;
                }
                _ if is_meta(byte) => break,
                _ => self.at += 1,
            }
        }
        flush!();
        if self.at == begin {
            return Err(self.wrong("unexpected"));
        }
        Ok(pieces.word())
    }

    /// One quoted or expanded piece outside of double quotes.
    fn special(&mut self, pieces: &mut Pieces) -> Read<()> {
        match self.peek() {
            Some(b'\\') => {
                self.at += 1;
                if !self.eat("\n") {
                    let text = self.character();
                    pieces.quoted(if text.is_empty() { "\\" } else { text });
                }
            }
            Some(b'\'') => {
                self.at += 1;
                let Some(length) = self.bytes[self.at..].iter().position(|byte| *byte == b'\'') else {
                    return Err(self.expected("the closing '"));
                };
                pieces.parts.push(Part::Quoted(self.source[self.at..self.at + length].to_owned()));
                self.at += length + 1;
            }
            Some(b'"') => {
                self.at += 1;
                pieces.parts.push(Part::Double(self.nested(Self::double)?));
            }
            Some(b'`') => pieces.parts.push(self.backticks(false)?),
            _ => self.dollar(pieces, false)?,
        }
        Ok(())
    }

    /// The next character, whole.
    fn character(&mut self) -> &str {
        let length = self.source[self.at..].chars().next().map_or(0, char::len_utf8);
        let text = &self.source[self.at..self.at + length];
        self.at += length;
        text
    }

    /// What stands in double quotes, after the first one.
    fn double(&mut self) -> Read<Vec<Part>> {
        let mut pieces = Pieces::default();
        loop {
            let rest = &self.bytes[self.at..];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'$' | b'`'));
            let Some(plain) = plain else { return Err(self.expected("the closing \"")) };
            if plain > 0 {
                pieces.quoted(&self.source[self.at..self.at + plain]);
                self.at += plain;
            }
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(pieces.parts);
                }
                Some(b'\\') => self.escape_in_quotes(&mut pieces, b"$`\"\\"),
                Some(b'`') => pieces.parts.push(self.backticks(true)?),
                _ => self.dollar(&mut pieces, true)?,
            }
        }
    }

    fn escape_in_quotes(&mut self, pieces: &mut Pieces, escapable: &[u8]) {
        self.at += 1;
        match self.peek() {
            Some(b'\n') => self.at += 1,
            Some(byte) if escapable.contains(&byte) => {
                let text = self.character().to_owned();
                pieces.quoted(&text);
            }
            _ => pieces.quoted("\\"),
        }
    }

    /// The text of a here-document whose delimiter was not quoted.
    pub(super) fn here_text(&mut self) -> Read<Word> {
        let mut pieces = Pieces::default();
        while self.at < self.bytes.len() {
            let rest = &self.bytes[self.at..];
            let plain = rest.iter().position(|byte| matches!(byte, b'\\' | b'$' | b'`')).unwrap_or(rest.len());
            if plain > 0 {
                pieces.quoted(&self.source[self.at..self.at + plain]);
                self.at += plain;
            }
            match self.peek() {
                None => break,
                Some(b'\\') => self.escape_in_quotes(&mut pieces, b"$`\\"),
                Some(b'`') => pieces.parts.push(self.backticks(false)?),
                _ => self.dollar(&mut pieces, true)?,
            }
        }
        Ok(Word { parts: vec![Part::Double(pieces.parts)] })
    }

    /// A word that ends at one of `ends` instead of at a blank; the end is consumed.
    pub(super) fn until(&mut self, ends: &[u8], in_quotes: bool) -> Read<Word> {
        let word = self.before(ends, in_quotes)?;
        self.at += 1;
        Ok(word)
    }

    /// The same, up to the end without consuming it. In double quotes a single quote is only a character.
    fn before(&mut self, ends: &[u8], in_quotes: bool) -> Read<Word> {
        let mut pieces = Pieces::default();
        let mut run = self.at;
        loop {
            let Some(byte) = self.peek() else { return Err(self.expected(&String::from_utf8_lossy(&ends[..1]))) };
            let special = matches!(byte, b'\\' | b'"' | b'$' | b'`') || (byte == b'\'' && !in_quotes);
            if !special && !ends.contains(&byte) {
                self.at += 1;
                continue;
            }
            if run < self.at {
                let text = &self.source[run..self.at];
                if in_quotes { pieces.quoted(text) } else { pieces.bare(text) }
            }
            if ends.contains(&byte) {
                return Ok(pieces.word());
            }
            match byte {
                b'\\' if in_quotes => self.escape_in_quotes(&mut pieces, b"$`\"\\}"),
                b'$' => self.dollar(&mut pieces, in_quotes)?,
                _ => self.special(&mut pieces)?,
            }
            run = self.at;
        }
    }

    /// An arithmetic expression up to `end` outside of parentheses; `end` is consumed.
    pub(super) fn arithmetic(&mut self, end: &str) -> Read<Word> {
        self.nested(|parser| {
            let mut pieces = Pieces::default();
            let mut open = 0_usize;
            let mut run = parser.at;
            loop {
                let Some(byte) = parser.peek() else { return Err(parser.expected(end)) };
                let special = matches!(byte, b'\\' | b'\'' | b'"' | b'$' | b'`');
                let ends = open == 0 && parser.starts_with(end);
                if (special || ends || byte == b')' && open == 0) && run < parser.at {
                    pieces.bare(&parser.source[run..parser.at]);
                    run = parser.at;
                }
                if ends {
                    parser.at += end.len();
                    return Ok(pieces.word());
                }
                if special {
                    parser.special(&mut pieces)?;
                    run = parser.at;
                    continue;
                }
                match byte {
                    b'(' => open += 1,
                    b')' if open == 0 => return Err(parser.expected(end)),
                    b')' => open -= 1,
                    _ => {}
                }
                parser.at += 1;
            }
        })
    }

    /// Arithmetic behind `((`, which is `skip` bytes away; nothing if it turns out to be a shell in a shell. A text that
    /// ends inside of it is neither: reading it once more for each of many would take long.
    pub(super) fn maybe_arithmetic(&mut self, skip: usize) -> Read<Option<Word>> {
        let begin = self.at;
        if self.no_arithmetic.contains(&begin) {
            return Ok(None);
        }
        self.at += skip;
        match self.arithmetic("))") {
            Ok(word) => Ok(Some(word)),
            Err(error) if self.at >= self.bytes.len() => Err(error),
            Err(_) => {
                self.no_arithmetic.insert(begin);
                self.at = begin;
                Ok(None)
            }
        }
    }

    fn backticks(&mut self, in_quotes: bool) -> Read<Part> {
        self.at += 1;
        let mut inner = String::new();
        let mut run = self.at;
        loop {
            match self.peek() {
                None => return Err(self.expected("the closing `")),
                Some(b'`') => break,
                Some(b'\\') => {
                    inner.push_str(&self.source[run..self.at]);
                    let escaped = self.peek_at(1);
                    self.at += 1;
                    let special = matches!(escaped, Some(b'`' | b'$' | b'\\')) || in_quotes && escaped == Some(b'"');
                    if !special {
                        inner.push('\\');
                    }
                    inner.push_str(self.character().to_owned().as_str());
                    run = self.at;
                }
                _ => self.at += 1,
            }
        }
        inner.push_str(&self.source[run..self.at]);
        self.at += 1;
        self.nested(|parser| Ok(Part::Command(parse_at(&inner, parser.depth, &parser.work)?.into())))
    }

    /// Whatever a dollar begins.
    fn dollar(&mut self, pieces: &mut Pieces, in_quotes: bool) -> Read<()> {
        let part = match self.peek_at(1) {
            Some(b'\'') if !in_quotes => {
                self.at += 2;
                Part::Quoted(self.ansi_c()?)
            }
            Some(b'"') if !in_quotes => {
                self.at += 2;
                Part::Double(self.nested(Self::double)?)
            }
            Some(b'(') => self.substitution()?,
            Some(b'[') => {
                self.at += 2;
                Part::Arithmetic(self.arithmetic("]")?)
            }
            Some(b'{') => self.nested(|parser| parser.braces(in_quotes))?,
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.at += 1;
                plain_parameter(self.name())
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.at += 1;
                let name = self.character().to_owned();
                plain_parameter(name)
            }
            _ => {
                self.at += 1;
                if in_quotes {
                    pieces.quoted("$");
                } else {
                    pieces.bare("$");
                }
                return Ok(());
            }
        };
        pieces.parts.push(part);
        Ok(())
    }

    fn name(&mut self) -> String {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let name = self.source[self.at..self.at + length].to_owned();
        self.at += length;
        name
    }

    fn substitution(&mut self) -> Read<Part> {
        if self.peek_at(2) == Some(b'(')
            && let Some(word) = self.maybe_arithmetic(3)?
        {
            return Ok(Part::Arithmetic(word));
        }
        self.at += 2;
        self.inner_script(")").map(Part::Command)
    }

    /// `${…}`
    fn braces(&mut self, in_quotes: bool) -> Read<Part> {
        self.at += 2;
        if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|')) {
            // `${ command; }` runs in this very shell.
            self.at += 1;
            return self.inner_script("}").map(Part::Command);
        }
        let indirect = self.starts_with("!#}")
            || self.peek() == Some(b'!') && self.peek_at(1).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        self.at += usize::from(indirect);
        let length = self.peek() == Some(b'#')
            && self.peek_at(1).is_some_and(|b| {
                b.is_ascii_alphanumeric() || b == b'_' || (b"@*?$!-#".contains(&b) && self.peek_at(2) == Some(b'}'))
            });
        self.at += usize::from(length);
        let mut name = self.name();
        if name.is_empty() {
            match self.peek() {
                Some(byte) if b"@*#?-$!".contains(&byte) => name = self.character().to_owned(),
                _ => return Err(self.wrong("bad substitution")),
            }
        }
        let index = if self.peek() == Some(b'[') {
            self.at += 1;
            Some(self.until(b"]", false)?)
        } else {
            None
        };
        let operation = self.operation(in_quotes, indirect)?;
        if !self.eat("}") {
            return Err(self.wrong("bad substitution"));
        }
        Ok(Part::Parameter(Box::new(Parameter { name, index, indirect, length, operation })))
    }

    fn operation(&mut self, in_quotes: bool, indirect: bool) -> Read<Option<Operation>> {
        let colon = self.peek() == Some(b':');
        let symbol = if colon { self.peek_at(1) } else { self.peek() };
        let operation = match symbol {
            Some(byte @ (b'-' | b'=' | b'?' | b'+')) => {
                self.at += 1 + usize::from(colon);
                let word = self.before(b"}", in_quotes)?;
                match byte {
                    b'-' => Operation::Default { word, empty: colon },
                    b'=' => Operation::Assign { word, empty: colon },
                    b'?' => Operation::Demand(word),
                    _ => Operation::Alternative { word, empty: colon },
                }
            }
            _ if colon => {
                self.at += 1;
                let offset = self.before(b":}", false)?;
                let length = if self.eat(":") { Some(self.before(b"}", false)?) } else { None };
                Operation::Substring(offset, length)
            }
            Some(byte @ (b'#' | b'%')) => {
                self.at += 1;
                let longest = self.peek() == Some(byte);
                self.at += usize::from(longest);
                let pattern = self.before(b"}", false)?;
                if byte == b'#' {
                    Operation::DropPrefix { pattern, longest }
                } else {
                    Operation::DropSuffix { pattern, longest }
                }
            }
            Some(b'/') => {
                self.at += 1;
                let all = self.eat("/");
                let anchor = match self.peek() {
                    Some(b'#') if !all => Some(Anchor::Start),
                    Some(b'%') if !all => Some(Anchor::End),
                    _ => None,
                };
                self.at += usize::from(anchor.is_some());
                // A pattern may begin with the very slash that would end it: `${path////_}`.
                let slash = all && self.eat("/");
                let mut pattern = self.before(b"/}", false)?;
                if slash {
                    match pattern.parts.first_mut() {
                        Some(Part::Bare(text)) => text.insert(0, '/'),
                        _ => pattern.parts.insert(0, Part::Bare("/".into())),
                    }
                }
                let with = if self.eat("/") { self.before(b"}", false)? } else { Word::default() };
                Operation::Replace { pattern, with, all, anchor }
            }
            Some(byte @ (b'^' | b',' | b'~')) => {
                self.at += 1;
                let all = self.peek() == Some(byte);
                self.at += usize::from(all);
                let pattern = self.before(b"}", false)?;
                let to = match byte {
                    b'^' => Letters::Upper,
                    b',' => Letters::Lower,
                    _ => Letters::Other,
                };
                Operation::Case { to, all, pattern }
            }
            Some(b'@' | b'*') if indirect => {
                self.at += 1;
                Operation::Names
            }
            Some(b'@') => {
                self.at += 1;
                Operation::Transform(self.character().chars().next().unwrap_or(' '))
            }
            _ => return Ok(None),
        };
        Ok(Some(operation))
    }

    /// `$'…'`, after its first quote.
    fn ansi_c(&mut self) -> Read<String> {
        let begin = self.at;
        loop {
            match self.peek() {
                None => return Err(self.expected("the closing '")),
                Some(b'\\') => self.at = (self.at + 2).min(self.bytes.len()),
                Some(b'\'') => {
                    // An escape may end in the middle of a character; the borders are then moved apart.
                    let text = self.source.get(begin..self.at).unwrap_or_default();
                    self.at += 1;
                    let mut text = crate::escapes::ansi_c(text);
                    // The shell's own strings end at a zero byte.
                    text.truncate(text.find('\0').unwrap_or(text.len()));
                    return Ok(text);
                }
                Some(_) => self.at += 1,
            }
        }
    }
}

fn plain_parameter(name: String) -> Part {
    Part::Parameter(Box::new(Parameter { name, index: None, indirect: false, length: false, operation: None }))
}

/// The choices of an extended glob, as the braces that mean the same.
fn choices(pieces: &mut Pieces, operator: u8, inside: Word) {
    if operator == b'!' {
        return pieces.bare("*");
    }
    let several = inside.parts.iter().any(|part| matches!(part, Part::Bare(text) if text.contains('|')));
    let open = if operator == b'?' { "{," } else { "{" };
    if several || operator == b'?' {
        pieces.bare(open);
    }
    for part in inside.parts {
        match part {
            Part::Bare(text) => pieces.bare(&text.replace('|', ",")),
            other => pieces.parts.push(other),
        }
    }
    if several || operator == b'?' {
        pieces.bare("}");
    }
}
