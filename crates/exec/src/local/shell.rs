//! What a shell leaves for the next one: directory, exported variables, functions, aliases and options.
//!
//! Each command has a fresh bash. Before the command, bash reads a file of ours (`BASH_ENV`), which defines what is
//! carried and sets an exit trap; when the shell ends, the trap writes what there is now over the same file. The file has
//! no name in any folder, so nothing of it reaches the command's text, its output, or the disk.
//!
//! Commands may run side by side. What one of them *changed* is put into the session, not everything that it saw, so none
//! undoes the change of another.
//!
//! A shell that is killed, that replaces itself (`exec`), or that sets an exit trap of its own leaves nothing, and the
//! session stays as it was. Of the options, `errexit`, `nounset` and `pipefail` are those of one script and are not
//! carried: a `set -euo pipefail` must not make the next command fail.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

type Bytes = Vec<u8>;

/// Options that belong to one script, or to how we start the shell.
const NOT_CARRIED: &[&str] =
    &["cdable_vars", "errexit", "nounset", "pipefail", "noexec", "expand_aliases", "interactive-comments"];
/// A longer variable is not carried: the system takes no argument or variable of more than 128 KiB (`execve(2)`), and the
/// next command could not be started.
const LONGEST_VARIABLE: usize = 120 * 1024;
/// Variables that each shell makes for itself or gets from us, and `CDPATH`, with which `cd` would lead where nobody who
/// reads the next command expects it.
const NOT_OURS: &[&str] = &["_", "CDPATH", "SHLVL", "PWD", "BASH_ENV", "SHELLOPTS", "BASHOPTS", super::MARKER];

/// What a session carries from command to command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShellState {
    pub cwd: PathBuf,
    /// The environment of the next command.
    pub variables: BTreeMap<OsString, OsString>,
    /// Definitions by name, as bash prints them.
    functions: BTreeMap<Bytes, Bytes>,
    aliases: BTreeMap<Bytes, Bytes>,
    /// Options that are not as a fresh shell has them; the name tells `set -o` from `shopt`.
    options: BTreeMap<(OptionKind, String), bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OptionKind {
    Set,
    Shopt,
}

impl ShellState {
    pub(crate) fn new(cwd: PathBuf, variables: BTreeMap<OsString, OsString>) -> Self {
        Self { cwd, variables, ..Self::default() }
    }

    /// The file that bash reads first; `path` is where the shell finds that file, to write it over.
    pub(crate) fn start_file(&self, path: &Path) -> Bytes {
        let mut text = Bytes::new();
        match self.variables.get(OsStr::new("BASH_ENV")) {
            // The user granted one: it is theirs again, for this shell and for those below it.
            Some(theirs) => {
                text.extend(b"export BASH_ENV=");
                text.extend(quoted(theirs.as_bytes()));
                text.extend(b"\n. \"$BASH_ENV\"\n");
            }
            None => text.extend(b"unset BASH_ENV\n"),
        }
        // Every word of the trap costs each command its time, so the options of a fresh shell are not written down, only
        // how long their lists are; see `Options`.
        text.extend(
            b"trap -- '{ builtin printf \"%s\\0\" \"'\"${#SHELLOPTS} ${#BASHOPTS}\"'\" \"$SHELLOPTS\" \"$BASHOPTS\"; ",
        );
        text.extend(b"builtin pwd -P; builtin printf \"\\0\"; builtin declare -xp; builtin alias -p; ");
        text.extend(b"builtin declare -F; builtin declare -f; } 2>/dev/null >|");
        text.extend(path.as_os_str().as_bytes());
        text.extend(b" || builtin :' EXIT\n");
        for ((kind, name), on) in &self.options {
            if *kind == OptionKind::Shopt {
                text.extend(format!("shopt -{} {name}\n", if *on { 's' } else { 'u' }).bytes());
            }
        }
        for definition in self.functions.values() {
            text.extend(definition);
        }
        // After the functions: an alias must not be expanded in them a second time.
        for definition in self.aliases.values() {
            text.extend(definition);
        }
        if !self.aliases.is_empty() {
            text.extend(b"shopt -s expand_aliases\n");
        }
        // Last, because some of them show or change how the lines above would be read.
        for ((kind, name), on) in &self.options {
            if *kind == OptionKind::Set {
                text.extend(format!("set {}o {name}\n", if *on { '-' } else { '+' }).bytes());
            }
        }
        text
    }

    /// Puts in what a shell changed that began with `began`. `fresh` are the options that a fresh shell has; without
    /// them, options stay as they are.
    /// `given` names variables that were added for that command.
    pub(crate) fn absorb(
        &mut self,
        began: &Self,
        report: Report,
        fresh: Option<&Options>,
        given: &[&str],
        moves: bool,
    ) {
        if moves && report.cwd.as_os_str() != "" && report.cwd != began.cwd {
            self.cwd = report.cwd;
        }
        if let Some(mut variables) = report.variables {
            // Names that no shell can have stay, unseen by it.
            let kept = began.variables.iter().filter(|(name, _)| !is_shell_name(name) || is_not_ours(name));
            variables.retain(|name, value| !is_not_ours(name) && name.len() + value.len() < LONGEST_VARIABLE);
            // What goes with one command only, such as the address of its proxy, stays as the session has it.
            for name in given {
                variables.remove(OsStr::new(name));
                variables.extend(began.variables.get_key_value(OsStr::new(name)).map(|(n, v)| (n.clone(), v.clone())));
            }
            variables.extend(kept.map(|(name, value)| (name.clone(), value.clone())));
            apply_changes(&mut self.variables, &began.variables, variables);
        }
        apply_changes(&mut self.functions, &began.functions, report.functions);
        apply_changes(&mut self.aliases, &began.aliases, report.aliases);
        if let Some(fresh) = fresh {
            apply_changes(&mut self.options, &began.options, report.options.changed_from(fresh));
        }
    }

    /// Bash source that defines what is carried, as far as it is not in `first`.
    pub(crate) fn carried(&self, first: &Self) -> String {
        let mut text = Bytes::new();
        for name in first.variables.keys().filter(|name| !self.variables.contains_key(*name) && is_shell_name(name)) {
            text.extend(b"unset ");
            text.extend(name.as_bytes());
            text.push(b'\n');
        }
        for (name, value) in &self.variables {
            let is_ours = is_not_ours(name) || name == "OLDPWD" || !is_shell_name(name);
            if !is_ours && first.variables.get(name) != Some(value) {
                text.extend(b"export ");
                text.extend(name.as_bytes());
                text.push(b'=');
                text.extend(quoted(value.as_bytes()));
                text.push(b'\n');
            }
        }
        for definition in self.functions.values().chain(self.aliases.values()) {
            text.extend(definition);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

fn apply_changes<K: Ord + Clone, V: PartialEq>(into: &mut BTreeMap<K, V>, began: &BTreeMap<K, V>, now: BTreeMap<K, V>) {
    for name in began.keys().filter(|name| !now.contains_key(name)) {
        into.remove(name);
    }
    for (name, value) in now {
        if began.get(&name) != Some(&value) {
            into.insert(name, value);
        }
    }
}

fn is_not_ours(name: &OsStr) -> bool {
    NOT_OURS.iter().any(|ours| name == *ours)
}

fn is_shell_name(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.first().is_some_and(|first| !first.is_ascii_digit()) && bytes.iter().all(is_part)
}

/// A path as one word of bash.
pub(crate) fn quoted_path(path: &Path) -> String {
    String::from_utf8_lossy(&quoted(path.as_os_str().as_bytes())).into_owned()
}

/// As one word of a shell, whatever is in it.
pub(crate) fn quoted(text: &[u8]) -> Bytes {
    let mut quoted = vec![b'\''];
    for byte in text {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// The options of a shell that are on, as `$SHELLOPTS` and `$BASHOPTS` list them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    set: String,
    shopt: String,
}

impl Options {
    /// Script that prints them as [`Options::read`] wants them.
    pub(crate) const PRINT: &str = r#"printf '%s\0' "$SHELLOPTS" "$BASHOPTS""#;

    /// Reads two lists, each ended by a NUL.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let mut lists = text.split(|byte| *byte == 0).map(|list| String::from_utf8_lossy(list).into_owned());
        Some(Self { set: lists.next()?, shopt: lists.next()? })
    }

    fn changed_from(&self, fresh: &Self) -> BTreeMap<(OptionKind, String), bool> {
        let mut changed = changed_options(OptionKind::Set, &fresh.set, &self.set);
        changed.extend(changed_options(OptionKind::Shopt, &fresh.shopt, &self.shopt));
        changed
    }
}

fn changed_options(kind: OptionKind, fresh: &str, now: &str) -> BTreeMap<(OptionKind, String), bool> {
    let names =
        |list: &str| -> Vec<String> { list.split(':').filter(|name| !name.is_empty()).map(str::to_owned).collect() };
    let (fresh, now) = (names(fresh), names(now));
    let on = now.iter().filter(|name| !fresh.contains(name)).map(|name| (name, true));
    let off = fresh.iter().filter(|name| !now.contains(name)).map(|name| (name, false));
    let carried = on.chain(off).filter(|(name, _)| !NOT_CARRIED.contains(&name.as_str()));
    carried.map(|(name, on)| ((kind, name.clone()), on)).collect()
}

/// What a shell said when it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The lists of its options were as long when it was fresh as they are now, so they are taken to be the same.
    pub options_look_fresh: bool,
    pub options: Options,
    cwd: PathBuf,
    /// `None` where bash printed them in a way that is not understood: then they stay as they were.
    variables: Option<BTreeMap<OsString, OsString>>,
    functions: BTreeMap<Bytes, Bytes>,
    aliases: BTreeMap<Bytes, Bytes>,
}

impl Report {
    /// Reads what the exit trap wrote; `None` if it did not come to that.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let (lengths, rest) = split_once(text, 0)?;
        let (set, rest) = split_once(rest, 0)?;
        let (shopt, rest) = split_once(rest, 0)?;
        let (cwd, rest) = split_once(rest, 0)?;
        let cwd = cwd.strip_suffix(b"\n").filter(|cwd| cwd.starts_with(b"/")).unwrap_or_default();
        let (variables, rest) = exported_variables(rest);
        let (aliases, rest) = take_aliases(rest);
        Some(Self {
            options_look_fresh: lengths == format!("{} {}", set.len(), shopt.len()).as_bytes(),
            options: Options::read(&[set, &[0], shopt].concat())?,
            cwd: PathBuf::from(OsString::from_vec(cwd.to_vec())),
            variables,
            functions: split_functions(rest),
            aliases,
        })
    }
}

fn split_once(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = memchr::memchr(at, text)?;
    Some((&text[..place], &text[place + 1..]))
}

/// Reads what `declare -xp` prints at the beginning of `text`: lines of `declare -FLAGS NAME="VALUE"`, the value in double
/// quotes or as `$'…'`. Answers what follows, too.
fn exported_variables(text: &[u8]) -> (Option<BTreeMap<OsString, OsString>>, &[u8]) {
    let mut variables = BTreeMap::new();
    let mut rest = text;
    while let Some(line) = rest.strip_prefix(b"declare -").filter(|line| !line.starts_with(b"f")) {
        match exported_variable(line) {
            Some((variable, after)) => {
                variables.extend(variable);
                rest = after;
            }
            None => return (None, b""),
        }
    }
    (Some(variables), rest)
}

type Variable = (OsString, OsString);

/// The rest of a line after `declare -`; an array is no variable that children get.
fn exported_variable(line: &[u8]) -> Option<(Option<Variable>, &[u8])> {
    let (flags, rest) = split_once(line, b' ')?;
    let (name, rest) = rest.split_at(rest.iter().position(|byte| matches!(byte, b'=' | b'\n'))?);
    let (value, rest) = match rest.strip_prefix(b"=") {
        Some(value) => {
            let (value, rest) = unquoted(value)?;
            (Some(value), rest)
        }
        None => (None, rest),
    };
    let value = value.filter(|_| !flags.contains(&b'a') && !flags.contains(&b'A'));
    let variable = value.map(|value| (OsString::from_vec(name.to_vec()), OsString::from_vec(value)));
    Some((variable, rest.strip_prefix(b"\n")?))
}

/// The value of a quoted word at the beginning of `text`, and what follows it.
fn unquoted(text: &[u8]) -> Option<(Bytes, &[u8])> {
    if let Some(rest) = text.strip_prefix(b"$'") {
        return ansi_c_unquoted(rest);
    }
    // An array: of no interest, but its end is.
    if text.starts_with(b"(") {
        let end = memchr::memmem::find(text, b")\n").map(|end| end + 1)?;
        return Some((Bytes::new(), &text[end..]));
    }
    let mut rest = text.strip_prefix(b"\"")?.iter();
    let mut value = Bytes::new();
    loop {
        match rest.next()? {
            b'"' => return Some((value, rest.as_slice())),
            b'\\' => value.push(*rest.next()?),
            byte => value.push(*byte),
        }
    }
}

/// The rest of a word `$'…'` (bash(1), QUOTING).
fn ansi_c_unquoted(text: &[u8]) -> Option<(Bytes, &[u8])> {
    let mut value = Bytes::new();
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'\'' => return Some((value, &text[at + 1..])),
            b'\\' => {
                let escape = *text.get(at + 1)?;
                at += 2;
                match escape {
                    b'a' => value.push(0x07),
                    b'b' => value.push(0x08),
                    b'e' | b'E' => value.push(0x1b),
                    b'f' => value.push(0x0c),
                    b'n' => value.push(b'\n'),
                    b'r' => value.push(b'\r'),
                    b't' => value.push(b'\t'),
                    b'v' => value.push(0x0b),
                    b'0'..=b'7' => {
                        let digits =
                            text[at - 1..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                        let octal = std::str::from_utf8(&text[at - 1..at - 1 + digits]).ok()?;
                        value.push(u8::try_from(u16::from_str_radix(octal, 8).ok()? & 0xff).ok()?);
                        at += digits - 1;
                    }
                    byte => value.push(byte),
                }
            }
            byte => {
                value.push(*byte);
                at += 1;
            }
        }
    }
}

/// Cuts what `declare -F` and `declare -f` print into functions; they come in the order of their names.
fn split_functions(text: &[u8]) -> BTreeMap<Bytes, Bytes> {
    let mut names = Vec::new();
    let mut text = text;
    // `declare -f NAME`, with more flags before the name for one that is exported or read-only.
    while let Some((line, rest)) = split_once(text, b'\n').filter(|(line, _)| line.starts_with(b"declare -f")) {
        names.extend(line.rsplit(|byte| *byte == b' ').next());
        text = rest;
    }
    let mut starts = Vec::new();
    let mut from = 0;
    for name in names {
        let header = [name, b" () \n"].concat();
        let mut places = memchr::memmem::find_iter(&text[from..], &header).map(|place| from + place);
        let Some(start) = places.find(|place| *place == 0 || text[place - 1] == b'\n') else { break };
        starts.push((name, start));
        from = start + header.len();
    }
    let ends = starts.iter().skip(1).map(|(_, start)| *start).chain([text.len()]);
    starts.iter().zip(ends).map(|((name, start), end)| (name.to_vec(), text[*start..end].to_vec())).collect()
}

/// Takes what `alias -p` prints from the beginning of `text`: `alias NAME='VALUE'`, where a value may go over lines.
fn take_aliases(text: &[u8]) -> (BTreeMap<Bytes, Bytes>, &[u8]) {
    let mut aliases = BTreeMap::new();
    let mut rest = text;
    while rest.starts_with(b"alias ") {
        let (mut in_quotes, mut escaped) = (false, false);
        let end = rest.iter().position(|byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\'' => in_quotes = !in_quotes,
                b'\\' if !in_quotes => escaped = true,
                b'\n' if !in_quotes => return true,
                _ => {}
            }
            false
        });
        let (definition, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        if let Some((name, _)) = split_once(&definition[b"alias ".len()..], b'=') {
            aliases.insert(name.strip_prefix(b"-- ").unwrap_or(name).to_vec(), definition.to_vec());
        }
        rest = after;
    }
    (aliases, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(text: &str) -> OsString {
        OsString::from(text)
    }

    #[test]
    fn exported_values_are_read_as_bash_writes_them() {
        let text = b"declare -x A=\"plain\"\ndeclare -x B=\"q\\\"d\\$x\\`y\\\\z\nsecond\"\ndeclare -x C\n\
            declare -rx D=$'\\E[1m\\001\\'tab\\tend'\ndeclare -ax E=([0]=\"x\")\ndeclare -x F=\"\"\n";
        let (got, rest) = exported_variables(text);
        assert_eq!(rest, b"");
        let got = got.unwrap();
        let wanted = [("A", "plain"), ("B", "q\"d$x`y\\z\nsecond"), ("D", "\x1b[1m\x01'tab\tend"), ("F", "")];
        assert_eq!(got, wanted.map(|(name, value)| (os(name), os(value))).into());
        assert_eq!(exported_variables(b"declare -x A=strange\n").0, None);
    }

    #[test]
    fn functions_are_cut_at_their_names() {
        let names = b"declare -f a\ndeclare -fx b\n";
        let text = b"a () \n{ \n    echo \"b () \n\";\n    cat <<X\n}\nX\n\n}\nb () \n{ \n    :\n}\ndeclare -fx b\n";
        let got = split_functions(&[&names[..], text].concat());
        assert_eq!(got.keys().map(Vec::as_slice).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(got.values().map(Vec::as_slice).collect::<Vec<_>>().concat(), text);
    }

    #[test]
    fn aliases_may_go_over_lines() {
        let (got, rest) = take_aliases(b"alias a='x\ny'\nalias ll='ls -l'\\''q'\nalias -- -='cd -'\ndeclare -f x\n");
        assert_eq!(rest, b"declare -f x\n");
        assert_eq!(got.keys().map(Vec::as_slice).collect::<Vec<_>>(), [b"-".as_slice(), b"a", b"ll"]);
    }

    #[test]
    fn changes_of_commands_side_by_side_are_all_kept() {
        let began = ShellState::new("/".into(), [(os("GONE"), os("1")), (os("SAME"), os("1"))].into());
        let mut session = began.clone();
        let report = |variables: &[(&str, &str)]| Report {
            cwd: "/".into(),
            variables: Some(variables.iter().map(|(name, value)| (os(name), os(value))).collect()),
            functions: BTreeMap::new(),
            aliases: BTreeMap::new(),
            options_look_fresh: true,
            options: Options::default(),
        };
        session.absorb(&began, report(&[("GONE", "1"), ("SAME", "1"), ("ONE", "1")]), None, &[], true);
        session.absorb(&began, report(&[("SAME", "1"), ("TWO", "2")]), None, &[], true);
        let wanted = [("ONE", "1"), ("SAME", "1"), ("TWO", "2")].map(|(name, value)| (os(name), os(value)));
        assert_eq!(session.variables, wanted.into());
    }
}
