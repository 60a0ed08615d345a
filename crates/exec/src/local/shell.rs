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
const NOT_CARRIED: &[&str] = &["errexit", "nounset", "pipefail", "noexec", "expand_aliases", "interactive-comments"];
/// Variables that each shell makes for itself or gets from us.
const NOT_OURS: &[&str] = &["_", "SHLVL", "PWD", "BASH_ENV", "SHELLOPTS", "BASHOPTS", super::MARKER];

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
        // The lists are written into the trap as they are before anything is carried: what a fresh shell has.
        text.extend(b"trap -- '{ builtin printf \"%s\\0\" \"'\"$SHELLOPTS $BASHOPTS\"'\" \"$SHELLOPTS\" \"$BASHOPTS\"; ");
        text.extend(b"builtin pwd -P; builtin printf \"\\0\"; builtin declare -xp; builtin printf \"\\0\"; ");
        text.extend(b"builtin alias -p; builtin printf \"\\0\"; builtin declare -F; builtin printf \"\\0\"; ");
        text.extend(b"builtin declare -f; } 2>/dev/null >|");
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
        text.extend(b"shopt -s expand_aliases\n");
        // Last, because some of them show or change how the lines above would be read.
        for ((kind, name), on) in &self.options {
            if *kind == OptionKind::Set {
                text.extend(format!("set {}o {name}\n", if *on { '-' } else { '+' }).bytes());
            }
        }
        text
    }

    /// Puts in what a shell changed that began with `began`. Without a report nothing changes.
    pub(crate) fn absorb(&mut self, began: &Self, report: Report, moves: bool) {
        if moves && report.cwd.as_os_str() != "" && report.cwd != began.cwd {
            self.cwd = report.cwd;
        }
        if let Some(mut variables) = report.variables {
            // Names that no shell can have stay, unseen by it.
            let kept = began.variables.iter().filter(|(name, _)| !is_shell_name(name) || is_not_ours(name));
            variables.retain(|name, _| !is_not_ours(name));
            variables.extend(kept.map(|(name, value)| (name.clone(), value.clone())));
            apply_changes(&mut self.variables, &began.variables, variables);
        }
        apply_changes(&mut self.functions, &began.functions, report.functions);
        apply_changes(&mut self.aliases, &began.aliases, report.aliases);
        apply_changes(&mut self.options, &began.options, report.options);
    }

    /// Bash source that defines what is carried, as far as it is not in `first`.
    pub(crate) fn carried(&self, first: &Self) -> String {
        let mut text = Bytes::new();
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

fn quoted(text: &[u8]) -> Bytes {
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

/// What a shell said when it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    cwd: PathBuf,
    /// `None` where bash printed them in a way that is not understood: then they stay as they were.
    variables: Option<BTreeMap<OsString, OsString>>,
    functions: BTreeMap<Bytes, Bytes>,
    aliases: BTreeMap<Bytes, Bytes>,
    options: BTreeMap<(OptionKind, String), bool>,
}

impl Report {
    /// Reads what the exit trap wrote; `None` if it did not come to that.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let mut parts = text.split(|byte| *byte == 0);
        let mut part = || parts.next();
        let (fresh, set, shopt) = (part()?, part()?, part()?);
        let (fresh_set, fresh_shopt) = split_once(fresh, b' ')?;
        let (cwd, exported, aliases, names, functions) = (part()?, part()?, part()?, part()?, part()?);
        let mut options = changed_options(OptionKind::Set, fresh_set, set);
        options.extend(changed_options(OptionKind::Shopt, fresh_shopt, shopt));
        let cwd = cwd.strip_suffix(b"\n").filter(|cwd| cwd.starts_with(b"/")).unwrap_or_default();
        Some(Self {
            cwd: PathBuf::from(OsString::from_vec(cwd.to_vec())),
            variables: exported_variables(exported),
            functions: split_functions(names, functions),
            aliases: split_aliases(aliases),
            options,
        })
    }
}

fn split_once(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = memchr::memchr(at, text)?;
    Some((&text[..place], &text[place + 1..]))
}

fn changed_options(kind: OptionKind, fresh: &[u8], now: &[u8]) -> BTreeMap<(OptionKind, String), bool> {
    let names = |list: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(list).split(':').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let (fresh, now) = (names(fresh), names(now));
    let on = now.iter().filter(|name| !fresh.contains(name)).map(|name| (name, true));
    let off = fresh.iter().filter(|name| !now.contains(name)).map(|name| (name, false));
    let carried = on.chain(off).filter(|(name, _)| !NOT_CARRIED.contains(&name.as_str()));
    carried.map(|(name, on)| ((kind, name.clone()), on)).collect()
}

/// Reads `declare -xp`: lines of `declare -FLAGS NAME="VALUE"`, the value in double quotes or as `$'…'`.
fn exported_variables(mut text: &[u8]) -> Option<BTreeMap<OsString, OsString>> {
    let mut variables = BTreeMap::new();
    while !text.is_empty() {
        let (flags, rest) = split_once(text.strip_prefix(b"declare -")?, b' ')?;
        let name_end = rest.iter().position(|byte| matches!(byte, b'=' | b'\n'))?;
        let (name, rest) = rest.split_at(name_end);
        let (value, rest) = match rest.strip_prefix(b"=") {
            Some(value) => {
                let (value, rest) = unquoted(value)?;
                (Some(value), rest)
            }
            None => (None, rest),
        };
        // An array is not passed on to children.
        if let (Some(value), false) = (value, flags.contains(&b'a') || flags.contains(&b'A')) {
            variables.insert(OsString::from_vec(name.to_vec()), OsString::from_vec(value));
        }
        text = rest.strip_prefix(b"\n")?;
    }
    Some(variables)
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
                        let digits = text[at - 1..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
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

/// Cuts what `declare -f` prints into its functions; they come in the order of the names that `declare -F` prints.
fn split_functions(names: &[u8], text: &[u8]) -> BTreeMap<Bytes, Bytes> {
    // `declare -f NAME`, with more flags before the name for one that is exported or read-only.
    let names = names.split(|byte| *byte == b'\n').filter_map(|line| line.rsplit(|byte| *byte == b' ').next());
    let names: Vec<&[u8]> = names.filter(|name| !name.is_empty()).collect();
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

/// Cuts what `alias -p` prints into `alias NAME='VALUE'`; a value may go over several lines.
fn split_aliases(text: &[u8]) -> BTreeMap<Bytes, Bytes> {
    let mut aliases = BTreeMap::new();
    let mut start = 0;
    let mut in_quotes = false;
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\'' => in_quotes = !in_quotes,
            b'\\' if !in_quotes => escaped = true,
            b'\n' if !in_quotes => {
                let definition = &text[start..=at];
                if let Some((name, _)) = definition.strip_prefix(b"alias ").and_then(|rest| split_once(rest, b'=')) {
                    let name = name.strip_prefix(b"-- ").unwrap_or(name);
                    aliases.insert(name.to_vec(), definition.to_vec());
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    aliases
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
        let got = exported_variables(text).unwrap();
        let wanted = [("A", "plain"), ("B", "q\"d$x`y\\z\nsecond"), ("D", "\x1b[1m\x01'tab\tend"), ("F", "")];
        assert_eq!(got, wanted.map(|(name, value)| (os(name), os(value))).into());
        assert_eq!(exported_variables(b"export A=1\n"), None);
    }

    #[test]
    fn functions_are_cut_at_their_names() {
        let text = b"a () \n{ \n    echo \"b () \n\";\n    cat <<X\n}\nX\n\n}\nb () \n{ \n    :\n}\ndeclare -fx b\n";
        let got = split_functions(b"declare -f a\ndeclare -fx b\n", text);
        assert_eq!(got.keys().map(|name| name.as_slice()).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(got.values().map(Vec::as_slice).collect::<Vec<_>>().concat(), text);
    }

    #[test]
    fn aliases_may_go_over_lines() {
        let got = split_aliases(b"alias a='x\ny'\nalias ll='ls -l'\\''q'\nalias -- -='cd -'\n");
        assert_eq!(got.keys().map(|name| name.as_slice()).collect::<Vec<_>>(), [b"-".as_slice(), b"a", b"ll"]);
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
            options: BTreeMap::new(),
        };
        session.absorb(&began, report(&[("GONE", "1"), ("SAME", "1"), ("ONE", "1")]), true);
        session.absorb(&began, report(&[("SAME", "1"), ("TWO", "2")]), true);
        let wanted = [("ONE", "1"), ("SAME", "1"), ("TWO", "2")].map(|(name, value)| (os(name), os(value)));
        assert_eq!(session.variables, wanted.into());
    }
}
