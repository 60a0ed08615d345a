//! The text of a patch as a list of operations.
//!
//! Lenient where nothing can be misunderstood: the envelope may be missing, text around it is ignored, a blank line in a hunk
//! is an empty line of the file, a line without a sign is a line that stays. Strict where something would be lost: lines of
//! a new file need their `+`.

/// One operation on one file; paths as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A new file.
    Add {
        /// Where.
        path: String,
        /// All of its content.
        content: String,
    },
    /// A change, and perhaps another name.
    Update {
        /// Where.
        path: String,
        /// The other name.
        to: Option<String>,
        /// In the order of the patch.
        hunks: Vec<Hunk>,
    },
    /// The file goes.
    Delete {
        /// Where.
        path: String,
    },
    /// Another name, and nothing else.
    Move {
        /// Where it is.
        path: String,
        /// Where it will be.
        to: String,
    },
}

/// A change at one place of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The line of the patch where it begins, from 1.
    pub(crate) at: usize,
    /// Lines of the file that come before it, the outermost first.
    pub(crate) hints: Vec<String>,
    /// In which line it begins according to a header such as `@@ -12,3 +12,4 @@`, from 1.
    pub(crate) line: Option<usize>,
    pub(crate) lines: Vec<(Sign, String)>,
    /// It is at the end of the file.
    pub(crate) is_at_end: bool,
    /// The last line of the file has no line end, before and after.
    pub(crate) unended: (bool, bool),
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Stays,
    Goes,
    Comes,
}

/// Why a text is no patch. `line` counts from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {why}")]
pub(crate) struct NoPatch {
    line: usize,
    why: String,
}

/// A line that begins an operation, or belongs to one, and is no content.
enum Header<'l> {
    Begin,
    End,
    Update(&'l str),
    Add(&'l str),
    Delete(&'l str),
    Move(&'l str),
    MoveTo(&'l str),
    EndOfFile,
    /// It looks like one, and nobody knows it.
    Unknown,
}

fn header(line: &str) -> Option<Header<'_>> {
    let rest = line.strip_prefix("***")?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest).trim_end();
    let path = |name: &str| rest.strip_prefix(name).map(str::trim);
    // A quote behind the end belongs to a text that the patch was taken out of.
    match rest.trim_end_matches(['"', '\'', '`']) {
        "Begin Patch" => return Some(Header::Begin),
        "End Patch" => return Some(Header::End),
        "End of File" => return Some(Header::EndOfFile),
        _ => {}
    }
    path("Update File:")
        .map(Header::Update)
        .or_else(|| path("Add File:").map(Header::Add))
        .or_else(|| path("Delete File:").map(Header::Delete))
        .or_else(|| path("Move File:").map(Header::Move))
        .or_else(|| path("Move to:").map(Header::MoveTo))
        .or_else(|| rest.split_once(" File: ").filter(|(word, _)| is_word(word)).map(|_| Header::Unknown))
}

/// `Copy`, `Rename`: one word that begins with a capital.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Reads a patch. The time is linear in its length.
pub(crate) fn parse(text: &str) -> Result<Vec<Operation>, NoPatch> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    let is = |wanted: fn(&Header<'_>) -> bool| move |line: &&str| header(line).is_some_and(|header| wanted(&header));
    let begin = lines.iter().position(is(|header| matches!(header, Header::Begin)));
    let first = begin.map_or(0, |at| at + 1);
    let end = lines[first..].iter().position(is(|header| matches!(header, Header::End)));
    let last = end.map_or(lines.len(), |at| first + at);
    // Text around a patch may be anything, but what looks like a part of one was meant to be done.
    let around = (0..first.saturating_sub(1)).chain(last + 1..lines.len());
    let is_part = |at: &usize| header(lines[*at]).is_some_and(|header| !matches!(header, Header::End));
    if let Some(at) = around.into_iter().find(is_part) {
        let why = format!(
            "`{}` stands outside of the patch; put all of it between one `*** Begin Patch` and one `*** End Patch`",
            lines[at].trim_end()
        );
        return Err(NoPatch { line: at + 1, why });
    }
    let mut reader = Reader { lines: &lines[..last], at: first };
    let operations = reader.operations(begin.is_some())?;
    if operations.is_empty() {
        let is_unified = lines.windows(2).any(|pair| pair[0].starts_with("--- ") && pair[1].starts_with("+++ "));
        let why = if is_unified {
            "this is a unified diff; write `*** Update File: PATH` and hunks that begin with `@@` instead"
        } else {
            "the patch names no file; begin with `*** Update File: PATH`, `*** Add File: PATH`, `*** Delete File: PATH` or \
             `*** Move File: PATH -> PATH`"
        };
        return Err(NoPatch { line: 1, why: why.into() });
    }
    Ok(operations)
}

struct Reader<'l> {
    lines: &'l [&'l str],
    at: usize,
}

impl<'l> Reader<'l> {
    fn wrong<T>(&self, why: impl Into<String>) -> Result<T, NoPatch> {
        Err(NoPatch { line: self.at + 1, why: why.into() })
    }

    /// The next line as it is.
    fn raw(&self) -> Option<&'l str> {
        self.lines.get(self.at).copied()
    }

    /// The next line, without the carriage return of a patch that has CRLF.
    fn peek(&self) -> Option<&'l str> {
        self.raw().map(|line| line.strip_suffix('\r').unwrap_or(line))
    }

    fn path(&self, path: &str) -> Result<String, NoPatch> {
        if path.is_empty() { self.wrong("the header names no path") } else { Ok(path.to_owned()) }
    }

    fn operations(&mut self, has_begin: bool) -> Result<Vec<Operation>, NoPatch> {
        let mut operations = Vec::new();
        while let Some(line) = self.peek() {
            let operation = match header(line) {
                Some(Header::Add(path)) => {
                    let path = self.path(path)?;
                    // A carriage return belongs to the new file if the patch itself has none at its line ends.
                    let is_crlf = self.raw().is_some_and(|line| line.ends_with('\r'));
                    self.at += 1;
                    Operation::Add { path, content: self.content(is_crlf)? }
                }
                Some(Header::Delete(path)) => Operation::Delete { path: self.path(path)? },
                Some(Header::Move(paths)) => match paths.split_once(" -> ") {
                    Some((path, to)) if !to.contains(" -> ") => {
                        Operation::Move { path: self.path(path.trim())?, to: self.path(to.trim())? }
                    }
                    Some(_) => return self.wrong("` -> ` is there more than once; rename the file with `*** Update File: PATH` and `*** Move to: PATH`"),
                    None => return self.wrong("it is not said where the file goes; write `*** Move File: OLD -> NEW`"),
                },
                Some(Header::Update(path)) => {
                    let path = self.path(path)?;
                    self.update(path)?
                }
                Some(Header::MoveTo(_) | Header::EndOfFile) => return self.wrong(format!("`{line}` belongs into an update of a file")),
                Some(Header::Unknown) => {
                    let known = "`*** Add File:`, `*** Update File:`, `*** Delete File:` and `*** Move File:`";
                    return self.wrong(format!("`{line}` is no operation; there are {known}"));
                }
                // Nothing was begun yet, so whatever stands here stands around the patch.
                Some(Header::Begin | Header::End) => {
                    self.at += 1;
                    continue;
                }
                None if line.trim().is_empty() || (operations.is_empty() && !has_begin) => {
                    self.at += 1;
                    continue;
                }
                None => return self.wrong(format!("`{}` belongs to no file", line.chars().take(80).collect::<String>())),
            };
            if matches!(operation, Operation::Delete { .. } | Operation::Move { .. }) {
                self.at += 1;
            }
            operations.push(operation);
        }
        Ok(operations)
    }

    /// The lines of a new file.
    fn content(&mut self, is_crlf: bool) -> Result<String, NoPatch> {
        let mut content = String::new();
        let (mut blank, mut has_line) = (0, false);
        while let Some(line) = self.peek() {
            let follows_line = std::mem::take(&mut has_line);
            match header(line) {
                Some(Header::EndOfFile) => {}
                Some(_) => break,
                None if line.starts_with('\\') => {
                    if follows_line {
                        content.pop();
                    }
                }
                // Blank lines count only if more of the file follows.
                None if line.trim().is_empty() => blank += 1,
                None if content.is_empty() && line.starts_with("@@") => {}
                None => {
                    let Some(line) = line.strip_prefix('+') else {
                        return self.wrong("every line of a new file begins with `+`");
                    };
                    content.extend(std::iter::repeat_n('\n', std::mem::take(&mut blank)));
                    content.push_str(line);
                    content.push_str(if !is_crlf && self.raw().is_some_and(|line| line.ends_with('\r')) {
                        "\r\n"
                    } else {
                        "\n"
                    });
                    has_line = true;
                }
            }
            self.at += 1;
        }
        Ok(content)
    }

    fn update(&mut self, path: String) -> Result<Operation, NoPatch> {
        let header_at = self.at;
        self.at += 1;
        let mut to = None;
        let mut hunks: Vec<Hunk> = Vec::new();
        let mut open = false;
        while let Some(line) = self.peek() {
            match header(line) {
                Some(Header::MoveTo(path)) if hunks.is_empty() && to.is_none() => to = Some(self.path(path)?),
                Some(Header::MoveTo(_)) => {
                    return self.wrong("`*** Move to:` stands right behind `*** Update File:`, once");
                }
                Some(Header::EndOfFile) => {
                    if let Some(hunk) = hunks.last_mut() {
                        hunk.is_at_end = true;
                    }
                    open = false;
                }
                Some(_) => break,
                None => match line.strip_prefix("@@") {
                    Some(hint) => {
                        // Several of them in a row lead to one place, from the outside inwards.
                        if !hunks.last().is_some_and(|hunk| open && hunk.lines.is_empty()) {
                            hunks.push(Hunk { at: self.at + 1, ..Hunk::default() });
                        }
                        open = true;
                        if let Some(hunk) = hunks.last_mut() {
                            hunk.hint(hint);
                        }
                    }
                    None if !open && line.trim().is_empty() => {}
                    None => {
                        if !open {
                            hunks.push(Hunk { at: self.at + 1, ..Hunk::default() });
                            open = true;
                        }
                        if let Some(hunk) = hunks.last_mut() {
                            hunk.line(line);
                        }
                    }
                },
            }
            self.at += 1;
        }
        hunks.retain(|hunk| !hunk.lines.is_empty());
        if hunks.is_empty() && to.is_none() {
            self.at = header_at;
            return self.wrong(format!("the update of {path} has no hunk: no line begins with `+` or `-`"));
        }
        Ok(Operation::Update { path, to, hunks })
    }
}

impl Hunk {
    /// What stands behind `@@`: on one side or between two.
    fn hint(&mut self, text: &str) {
        let text = text.trim();
        let (inner, outer) = match text.split_once("@@") {
            Some((inner, outer)) => (inner.trim(), outer.trim()),
            None => (text, ""),
        };
        if let Some(line) = place_in_old(inner) {
            self.line = Some(line);
            self.hints.extend(Some(outer).filter(|hint| !hint.is_empty()).map(str::to_owned));
        } else {
            let inner = if outer.is_empty() { inner } else { text };
            self.hints.extend(Some(inner).filter(|hint| !hint.is_empty()).map(str::to_owned));
        }
    }

    fn line(&mut self, line: &str) {
        let (sign, text) = match line.split_at_checked(1) {
            Some(("+", text)) => (Sign::Comes, text),
            Some(("-", text)) => (Sign::Goes, text),
            Some((" ", text)) => (Sign::Stays, text),
            Some(("\\", _)) => {
                match self.lines.last() {
                    Some((Sign::Stays, _)) => self.unended = (true, true),
                    Some((Sign::Goes, _)) => self.unended.0 = true,
                    Some((Sign::Comes, _)) => self.unended.1 = true,
                    None => {}
                }
                return;
            }
            _ => (Sign::Stays, line),
        };
        self.lines.push((sign, text.to_owned()));
    }
}

/// The line of `-12,3 +12,4`.
fn place_in_old(text: &str) -> Option<usize> {
    let (old, new) = text.strip_prefix('-')?.split_once(" +")?;
    let number = |text: &str| text.split(',').map(str::parse::<usize>).collect::<Result<Vec<_>, _>>().ok();
    number(new)?;
    number(old)?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunks(text: &str) -> Vec<Hunk> {
        match &parse(&format!("*** Update File: f\n{text}")).unwrap()[..] {
            [Operation::Update { hunks, .. }] => hunks.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_operation_is_read_with_and_without_its_envelope() {
        let inner = "*** Update File: my dir/a b.txt\n*** Move to: c\n@@ x\n a\n\n-b\n+B\n*** End of File\n***Add File: -n\n+one\n\n+two\n\n*** Delete File: d\n*** Move File: e -> f g\n";
        let whole = format!("Here it is:\n```\n*** Begin Patch\n{inner}*** End Patch\n```\nDone.\n");
        let operations = parse(inner).unwrap();
        assert_eq!(parse(&whole.replace('\n', "\r\n")).unwrap().len(), 4);
        assert_eq!(
            operations[1..],
            [
                Operation::Add { path: "-n".into(), content: "one\n\ntwo\n".into() },
                Operation::Delete { path: "d".into() },
                Operation::Move { path: "e".into(), to: "f g".into() },
            ]
        );
        let Operation::Update { path, to, hunks } = &operations[0] else { panic!("{operations:?}") };
        assert_eq!((path.as_str(), to.as_deref(), hunks.len()), ("my dir/a b.txt", Some("c"), 1));
        let line = |sign, text: &str| (sign, text.to_owned());
        let lines = vec![line(Sign::Stays, "a"), line(Sign::Stays, ""), line(Sign::Goes, "b"), line(Sign::Comes, "B")];
        assert_eq!(hunks[0], Hunk { at: 3, hints: vec!["x".into()], lines, is_at_end: true, ..Hunk::default() });
    }

    #[test]
    fn hints_stand_on_one_side_or_between_two_and_numbers_are_places() {
        let hints = |text: &str| hunks(&format!("{text}\n-a\n"))[0].clone();
        for (text, wanted, line) in [
            ("@@", &[][..], None),
            ("@@ class B:", &["class B:"], None),
            ("@@ def f(self): @@", &["def f(self):"], None),
            ("@@ class B:\n@@ def f(self):", &["class B:", "def f(self):"], None),
            ("@@ -3,2 +3,4 @@", &[], Some(3)),
            ("@@ -3 +3 @@ fn main() {", &["fn main() {"], Some(3)),
        ] {
            assert_eq!(
                (&hints(text).hints[..], hints(text).line),
                (&wanted.iter().map(|hint| (*hint).to_owned()).collect::<Vec<_>>()[..], line),
                "{text}"
            );
        }
    }

    #[test]
    fn a_missing_last_line_end_is_told_from_either_side() {
        assert_eq!(hunks("-a\n\\ No newline at end of file\n+b\n")[0].unended, (true, false));
        assert_eq!(hunks("-a\n+b\n\\ No newline at end of file\n")[0].unended, (false, true));
        let added = |text: &str| parse(text).unwrap();
        let file = |content: &str| [Operation::Add { path: "f".into(), content: content.into() }];
        assert_eq!(added("*** Add File: f\n+a\n\\ No newline at end of file\n\\ twice\n"), file("a"));
        assert_eq!(added("*** Add File: f\r\n+a\r\n+b\r\n"), file("a\nb\n"));
        assert_eq!(added("*** Add File: f\n+a\r\n+b\n"), file("a\r\nb\n"));
    }

    #[test]
    fn what_is_no_patch_says_where_and_what_to_write() {
        for (text, error) in [
            ("", "line 1 of the patch: the patch names no file; begin with"),
            ("*** Begin Patch\n*** End Patch\n", "the patch names no file"),
            ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "this is a unified diff"),
            ("*** Add File: x\nhello\n", "line 2 of the patch: every line of a new file begins with `+`"),
            ("*** Add File:\n+x\n", "line 1 of the patch: the header names no path"),
            ("*** Update File: f\n", "line 1 of the patch: the update of f has no hunk"),
            ("*** Move File: f\n", "it is not said where the file goes"),
            ("*** Move File: a -> b -> c\n", "more than once"),
            ("*** Begin Patch\n-a\n", "line 2 of the patch: `-a` belongs to no file"),
            ("*** Delete File: f\n-a\n", "line 2 of the patch: `-a` belongs to no file"),
            ("*** Move to: f\n", "belongs into an update"),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains(error), "{text:?}: {said}");
        }
    }
}
