//! The commands of a `sed` script that run programs, write files or show secrets.

use crate::eval::{Call, Writing};
use crate::text;

/// Reports what a `sed` script does.
pub(crate) fn sed(call: &mut Call<'_, '_>, script: &str) {
    let script = text::unglob(script);
    let mut reader = Reader { text: &script, at: 0, waiting: None };
    while let Some(action) = reader.next() {
        match action {
            Action::Run(command) if command.trim().is_empty() => {
                call.cannot_tell("makes sed run each line of its input as a command");
            }
            Action::Run(command) => call.shell(&command),
            Action::Write(file) => {
                if !matches!(file.as_str(), "/dev/stdout" | "/dev/stderr") {
                    call.write(&file, Writing::Replace);
                }
            }
            Action::Read(file) => {
                let shown = call.read(&file);
                call.print(&shown);
            }
        }
    }
}

enum Action {
    Run(String),
    Write(String),
    Read(String),
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    waiting: Option<String>,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.take();
        }
    }

    /// The rest of the line.
    fn line(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let end = rest.find('\n').unwrap_or(rest.len());
        self.at += end;
        rest[..end].trim()
    }

    /// Text up to an unescaped delimiter, which is consumed.
    fn delimited(&mut self, delimiter: char) -> &'t str {
        let begin = self.at;
        while let Some(c) = self.take() {
            if c == '\\' {
                self.take();
            } else if c == delimiter {
                return &self.text[begin..self.at - c.len_utf8()];
            }
        }
        &self.text[begin..]
    }

    fn address(&mut self) {
        match self.peek() {
            Some('/') => {
                self.take();
                self.delimited('/');
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            Some('\\') => {
                self.take();
                if let Some(delimiter) = self.take() {
                    self.delimited(delimiter);
                }
            }
            _ => self.skip(|c| c.is_ascii_digit() || matches!(c, '$' | '~' | '+')),
        }
    }

    fn next(&mut self) -> Option<Action> {
        // What the flag `e` runs is the whole line; what is put into it is looked at besides.
        if let Some(constant) = self.waiting.take() {
            return Some(Action::Run(constant));
        }
        loop {
            self.skip(|c| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
            self.address();
            self.skip(char::is_whitespace);
            if self.peek() == Some(',') {
                self.take();
                self.skip(char::is_whitespace);
                self.address();
            }
            self.skip(|c| c.is_whitespace() || c == '!');
            match self.take()? {
                'e' => return Some(Action::Run(self.line().to_owned())),
                'w' | 'W' => return Some(Action::Write(self.line().to_owned())),
                'r' | 'R' => return Some(Action::Read(self.line().to_owned())),
                'a' | 'i' | 'c' | '#' => {
                    // Text goes on where a line ends with a backslash.
                    while self.line().ends_with('\\') && self.take().is_some() {}
                }
                ':' | 'b' | 't' | 'T' => self.skip(|c| !matches!(c, '\n' | ';' | '}')),
                's' => {
                    let Some(delimiter) = self.take() else { continue };
                    self.delimited(delimiter);
                    let with = self.delimited(delimiter);
                    let mut runs = false;
                    while let Some(flag) = self.peek().filter(char::is_ascii_alphanumeric) {
                        self.take();
                        match flag {
                            'e' => runs = true,
                            'w' => return Some(Action::Write(self.line().to_owned())),
                            _ => {}
                        }
                    }
                    if runs {
                        self.waiting = constant(with);
                        return Some(Action::Run(String::new()));
                    }
                }
                'y' => {
                    let Some(delimiter) = self.take() else { continue };
                    self.delimited(delimiter);
                    self.delimited(delimiter);
                }
                _ => {}
            }
        }
    }
}

/// A replacement without parts of what was matched.
fn constant(with: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = with.chars();
    while let Some(c) = chars.next() {
        match c {
            '&' => return None,
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                c if c.is_ascii_digit() => return None,
                c => out.push(c),
            },
            c => out.push(c),
        }
    }
    (!out.is_empty()).then_some(out)
}
