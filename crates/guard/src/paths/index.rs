//! The rows of the table, found by the first or last letters of what they name.
//!
//! The tricky idea is to be cheap, because every word of a command that may be a path comes through here: nearly all names
//! begin and end unlike anything in the table, which two bytes tell, so that for an ordinary path no row is looked at.

use std::iter::successors;
use std::path::is_separator;
use std::sync::LazyLock;

use super::table::{At, OPEN, P, R, Rule, T, TABLE, W};
use crate::text;

/// The table, ready to be asked.
pub(super) static INDEX: LazyLock<Index> = LazyLock::new(Index::new);

/// A row with one pattern.
pub(super) struct Row {
    pub(super) at: At,
    pub(super) what: u8,
    pub(super) why: &'static str,
    /// Without the `/**` at its end.
    body: Box<[u8]>,
    /// Whether it ended with `/**`.
    deep: bool,
    starred: bool,
    /// The last letter before the first `*` and where it stands: the one that tells most rows apart.
    tell: Option<(usize, u8)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// The folder of a `**` itself.
    Folder,
    /// What the pattern names.
    Below,
}

/// The rows that answer for one path, each by its place in the table.
#[derive(Clone, Copy)]
pub(super) struct Answers {
    /// `R` or `T`, or `OPEN` if that comes first.
    read: usize,
    /// The same for a folder with secrets in it.
    folder: usize,
    write: usize,
    plants: usize,
}

impl Answers {
    const NONE: Self = Self { read: usize::MAX, folder: usize::MAX, write: usize::MAX, plants: usize::MAX };

    pub(super) fn read(self) -> Option<&'static Row> {
        INDEX.rows.get(self.read).filter(|row| !row.is(OPEN))
    }

    /// Whether it is a secret, or a folder of secrets.
    pub(super) fn is_secret(self) -> bool {
        [self.read, self.folder].iter().any(|at| INDEX.rows.get(*at).is_some_and(|row| row.is(R)))
    }

    pub(super) fn write(self) -> Option<&'static Row> {
        INDEX.rows.get(self.write)
    }

    pub(super) fn plants(self) -> Option<&'static Row> {
        INDEX.rows.get(self.plants)
    }
}

/// Rows by two letters, and by the first of them alone.
struct Letters {
    by_two: Box<[Vec<u16>]>,
    by_one: Box<[Vec<u16>]>,
}

/// How many lists there are; letters that share one cost time and nothing else.
const LISTS: usize = 1024;

pub(super) struct Index {
    pub(super) rows: Vec<Row>,
    /// By where the pattern begins, in the order of [`At`].
    heads: [Letters; 5],
    /// Patterns for names that begin with `*`, by how they end, the last letter first.
    ends: Letters,
    /// Patterns that begin and end otherwise: looked at for each path.
    loose: Vec<u16>,
}

impl Letters {
    fn new() -> Self {
        Self { by_two: vec![Vec::new(); LISTS].into(), by_one: vec![Vec::new(); 256].into() }
    }

    fn add(&mut self, [one, two]: [u8; 2], row: u16) {
        self.by_two[list(one, two)].push(row);
        self.by_one[usize::from(one)].push(row);
    }

    /// Rows for a name of which the second letter may be unknown.
    fn of(&self, one: u8, two: u8) -> &[u16] {
        let one = one.to_ascii_lowercase();
        if two == LIVING { &self.by_one[usize::from(one)] } else { &self.by_two[list(one, two.to_ascii_lowercase())] }
    }
}

fn list(one: u8, two: u8) -> usize {
    (usize::from(one) * 37 + usize::from(two)) % LISTS
}

/// The first byte of each character that `text.rs` claims.
const LIVING: u8 = 0xF3;

impl Index {
    fn new() -> Self {
        let mut new = Self {
            rows: Vec::new(),
            heads: std::array::from_fn(|_| Letters::new()),
            ends: Letters::new(),
            loose: Vec::new(),
        };
        for Rule(at, pattern, what, why) in TABLE {
            for pattern in alternatives(pattern) {
                new.add(*at, &pattern, *what, why);
            }
        }
        new
    }

    fn add(&mut self, at: At, pattern: &str, what: u8, why: &'static str) {
        let row = u16::try_from(self.rows.len()).unwrap_or(u16::MAX);
        let body = pattern.strip_suffix("/**");
        let deep = body.is_some();
        let body = body.unwrap_or(pattern);
        let plain = |byte: &&u8| !matches!(**byte, b'*' | b'/');
        let first: Vec<u8> = body.bytes().take(2).filter(|byte| plain(&byte)).collect();
        let last: Vec<u8> = body.bytes().rev().take(2).filter(|byte| plain(&byte)).collect();
        if let [one, two] = first[..] {
            self.heads[at as usize].add([one, two], row);
        } else if let ([one, two], At::Name) = (&last[..], at) {
            self.ends.add([*one, *two], row);
        } else {
            self.loose.push(row);
        }
        let head = body.split('*').next().unwrap_or_default();
        let tell = head.bytes().enumerate().next_back();
        self.rows.push(Row { at, what, why, starred: body.contains('*'), body: body.as_bytes().into(), deep, tell });
    }

    /// What the table says of a path. `living` says that it is from a command and globs are in it.
    pub(super) fn ask(&self, starts: &Starts<'_>, living: bool) -> Answers {
        let mut answers = Answers::NONE;
        let mut look = |list: &[u16], rest: &[u8]| {
            for row in list {
                self.weigh(usize::from(*row), rest, living, &mut answers);
            }
        };
        let [roots, homes, agents, within, names] = &self.heads;
        for (heads, rests) in [(roots, &starts.roots[..]), (homes, &starts.homes), (agents, &starts.agents)] {
            for rest in rests.iter().flatten() {
                look(letters(heads, rest), rest);
            }
        }
        let mut rest = starts.roots[0].unwrap_or_default();
        while !rest.is_empty() {
            look(letters(within, rest), rest);
            rest = skip_name(rest);
        }
        let name = starts.name;
        look(letters(names, name), name);
        if let [.., two, one] = name {
            look(self.ends.of(*one, *two), name);
        }
        for row in &self.loose {
            for rest in starts.rests(self.rows[usize::from(*row)].at) {
                look(&[*row], rest);
            }
        }
        answers
    }

    fn weigh(&self, at: usize, rest: &[u8], living: bool, answers: &mut Answers) {
        let Some(row) = self.rows.get(at) else { return };
        // What came before it in the table has answered.
        let answered = |what: u8, answer: usize| !row.is(what) || answer < at;
        let read = answers.read.max(answers.folder);
        if answered(R | T | OPEN, read) && answered(W, answers.write) && answered(P, answers.plants) {
            return;
        }
        let Some(hit) = row.hit(rest, living) else { return };
        let keep = |answer: &mut usize| *answer = at.min(*answer);
        if row.is(OPEN) || row.is(R | T) && hit == Hit::Below {
            keep(&mut answers.read);
        }
        if row.is(OPEN | R) {
            keep(&mut answers.folder);
        }
        if row.is(W) {
            keep(&mut answers.write);
        }
        if row.is(P) {
            keep(&mut answers.plants);
        }
    }
}

/// The rows for a path, by the first letters of its first name.
fn letters<'a>(heads: &'a Letters, rest: &[u8]) -> &'a [u16] {
    match rest {
        [one, two, ..] => heads.of(*one, *two),
        _ => &[],
    }
}

/// A pattern with each of the choices that its braces leave.
fn alternatives(pattern: &str) -> Vec<String> {
    let choice = pattern.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (choices, after))) = choice else { return vec![pattern.to_owned()] };
    let tails = alternatives(after);
    choices.split(',').flat_map(|choice| tails.iter().map(move |tail| format!("{before}{choice}{tail}"))).collect()
}

impl Row {
    /// The pattern, for a `**` that of its folder.
    pub(super) fn place(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok()
    }

    pub(super) fn is(&self, what: u8) -> bool {
        self.what & what != 0
    }

    /// Whether the pattern names this path, both from the same place on.
    pub(super) fn hit(&self, path: &[u8], living: bool) -> Option<Hit> {
        if !living && let Some((at, own)) = self.tell {
            let given = path.get(at)?;
            if given.to_ascii_lowercase() != own && !(own == b'/' && is_slash(*given)) {
                return None;
            }
        }
        if self.starred || living {
            return self.hit_by_names(path, living);
        }
        let (start, rest) = path.split_at_checked(self.body.len())?;
        let same = |(own, given): (&u8, &u8)| given.to_ascii_lowercase() == *own || *own == b'/' && is_slash(*given);
        match rest {
            [] => {}
            [next, ..] if self.deep && is_slash(*next) => {}
            _ => return None,
        }
        self.body.iter().zip(start).all(same).then_some(if self.deep && rest.is_empty() {
            Hit::Folder
        } else {
            Hit::Below
        })
    }

    fn hit_by_names(&self, path: &[u8], living: bool) -> Option<Hit> {
        let mut names = path.split(|&byte| is_slash(byte));
        for part in self.body.split(|&byte| byte == b'/') {
            let name = names.next()?;
            // An exception is none for what a glob may name besides; the folder before it is another matter.
            let whole = self.is(OPEN) && names.clone().next().is_none();
            if !glob(part, name) && (!living || whole || !self.means(part, name)) {
                return None;
            }
        }
        match (names.next(), self.deep) {
            (None, true) => Some(Hit::Folder),
            (None, false) | (Some(_), true) => Some(Hit::Below),
            (Some(_), false) => None,
        }
    }

    /// Whether a name with a glob in it is meant for this part of the pattern. One that spells nothing of it, such as `*`,
    /// is not, and where names count in any folder, one that is for ordinary files as well (`to*`) is not, either.
    fn means(&self, part: &[u8], name: &[u8]) -> bool {
        let anywhere = matches!(self.at, At::Within | At::Name);
        let spelled = name.first().is_some_and(|&byte| byte != LIVING) && part.first() != Some(&b'*');
        if !spelled || anywhere && !name.starts_with(b".") && !name.starts_with(b"id") {
            return false;
        }
        // Nearly every name ends here.
        let (own, given) = (part.last(), name.last());
        if own != Some(&b'*')
            && given.is_some_and(u8::is_ascii_alphanumeric)
            && given.map(u8::to_ascii_lowercase).as_ref() != own
        {
            return false;
        }
        let (Ok(part), Ok(name)) = (std::str::from_utf8(part), std::str::from_utf8(name)) else { return false };
        if !text::has_glob(name) {
            return false;
        }
        let Some((start, _)) = part.split_once('*') else { return text::matches_folded(name, part) };
        // Two patterns: some name fits both if what they begin with does, and it is not worth the while to be exact.
        let written = name.bytes().take_while(|&byte| byte != LIVING);
        written.zip(start.bytes()).all(|(given, own)| given.eq_ignore_ascii_case(&own))
    }

    /// Whether the folder `path` lies on the way to what the pattern names.
    pub(super) fn lies_below(&self, path: &[u8]) -> bool {
        let mut parts = self.body.split(|&byte| byte == b'/').chain(self.deep.then_some(&b"**"[..]));
        !path.is_empty()
            && path.split(|&byte| is_slash(byte)).all(|name| parts.next().is_some_and(|part| glob(part, name)))
    }
}

/// The parts of a path that follow each place where a pattern may begin; `None` where the path is not there.
pub(super) struct Starts<'a> {
    /// The second is for macOS, where `/etc` leads to `/private/etc`.
    roots: [Option<&'a [u8]>; 2],
    homes: [Option<&'a [u8]>; 2],
    agents: [Option<&'a [u8]>; 8],
    name: &'a [u8],
}

impl<'a> Starts<'a> {
    /// All three as the system writes them.
    pub(super) fn of(path: &'a [u8], home: &[u8], agent_home: &[u8]) -> Self {
        let (whole, agent_home) = (trimmed(path), trimmed(agent_home));
        let root = below(whole, b"").unwrap_or_default();
        let private = below(root, b"private");
        let own = below(whole, trimmed(home));
        let usual = usual_home(root).filter(|&usual| own != Some(usual));
        // A profile lives in `profiles/NAME` of the main home, which is the agent's, too.
        let main = parent(agent_home).and_then(|profiles| Some((profiles, parent(profiles)?)));
        let main = main.filter(|(profiles, main)| below(profiles, main).is_some_and(|name| is(name, b"profiles")));
        let agents = [
            below(whole, agent_home),
            main.and_then(|(_, main)| below(whole, main)),
            own.and_then(|rest| below(rest, b".hermes")),
            usual.and_then(|rest| below(rest, b".hermes")),
        ];
        let profile = |rest: Option<&'a [u8]>| rest.and_then(|rest| below(rest, b"profiles")).map(skip_name);
        let [a, b, c, d] = agents;
        let agents = [a, b, c, d, profile(a), profile(b), profile(c), profile(d)];
        let name = whole.rsplit(|&byte| is_slash(byte)).next().unwrap_or_default();
        Self { roots: [Some(root), private], homes: [own, usual], agents, name }
    }

    /// What of the path a pattern is held against: several parts where there are several homes or folders.
    pub(super) fn rests(&self, at: At) -> impl Iterator<Item = &'a [u8]> {
        let name = [Some(self.name)];
        let starts: &[Option<&'a [u8]>] = match at {
            At::Root => &self.roots,
            At::Within => &self.roots[..1],
            At::Home => &self.homes,
            At::Agent => &self.agents,
            At::Name => &name,
        };
        let starts: Vec<&'a [u8]> = starts.iter().copied().flatten().collect();
        let deeper = move |rest: &&'a [u8]| Some(skip_name(rest)).filter(|rest| at == At::Within && !rest.is_empty());
        starts.into_iter().flat_map(move |rest| successors(Some(rest), deeper))
    }
}

/// One name against one part of a pattern, without regard to case: what stands between two `*` is looked for from the left.
pub(super) fn glob(part: &[u8], name: &[u8]) -> bool {
    let mut pieces = part.split(|&byte| byte == b'*');
    let first = pieces.next().unwrap_or_default();
    let Some((start, rest)) = name.split_at_checked(first.len()) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() && is(start, first) };
    let Some(end) = rest.len().checked_sub(last.len()) else { return false };
    let (mut rest, end) = rest.split_at(end);
    is(start, first)
        && is(end, last)
        && pieces.filter(|piece| !piece.is_empty()).all(|piece| {
            let at = rest.windows(piece.len()).position(|part| part[0] | 0x20 == piece[0] | 0x20 && is(part, piece));
            at.is_some_and(|at| {
                rest = &rest[at + piece.len()..];
                true
            })
        })
}

/// The bytes of a path, without separators at its end.
pub(super) fn trimmed(mut path: &[u8]) -> &[u8] {
    while let [rest @ .., last] = path
        && is_slash(*last)
    {
        path = rest;
    }
    path
}

/// What of `path` is below `folder`, both trimmed: empty if they are the same, `None` if it is elsewhere.
pub(super) fn below<'a>(path: &'a [u8], folder: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = path.split_at_checked(folder.len())?;
    match rest {
        [first, ..] if !is_slash(*first) => None,
        _ if !start.eq_ignore_ascii_case(folder) => None,
        [] => Some(rest),
        [_, below @ ..] => Some(below),
    }
}

/// The folder in which a trimmed path lies.
fn parent(path: &[u8]) -> Option<&[u8]> {
    path.iter().rposition(|&byte| is_slash(byte)).map(|at| trimmed(&path[..at]))
}

/// The path without its first name.
fn skip_name(path: &[u8]) -> &[u8] {
    path.iter().position(|&byte| is_slash(byte)).map_or(&[], |at| &path[at + 1..])
}

/// Where homes usually are, as patterns from the root.
pub(super) const USUAL_HOMES: [&str; 5] = ["root", "var/root", "home/*", "users/*", "var/home/*"];

/// What is below somebody's home, where homes usually are; `path` without its first separator.
fn usual_home(path: &[u8]) -> Option<&[u8]> {
    USUAL_HOMES.iter().find_map(|homes| match homes.strip_suffix("/*") {
        Some(all) => below(path, all.as_bytes()).filter(|rest| !rest.is_empty()).map(skip_name),
        None => below(path, homes.as_bytes()),
    })
}

fn is(name: &[u8], other: &[u8]) -> bool {
    name.eq_ignore_ascii_case(other)
}

fn is_slash(byte: u8) -> bool {
    is_separator(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        for Rule(at, pattern, what, why) in TABLE {
            assert_eq!(why.is_empty(), *what == OPEN, "{pattern}: a reason for each rule, none for an exception");
            for pattern in alternatives(pattern) {
                assert_eq!(pattern.to_ascii_lowercase(), pattern, "patterns are in lower case");
                assert!(!pattern.starts_with('/') && !pattern.ends_with('/') && !pattern.contains("//"), "{pattern}");
                assert!(!pattern.trim_end_matches("/**").contains("**"), "{pattern}: `**` stands last");
                assert!(!pattern.contains(['{', '}', ',']), "{pattern}: braces do not nest");
                assert!(*at != At::Name || !pattern.contains('/'), "{pattern}");
            }
        }
        assert!(INDEX.rows.len() < usize::from(u16::MAX));
        let loose = INDEX.loose.iter().map(|row| String::from_utf8_lossy(&INDEX.rows[usize::from(*row)].body));
        assert_eq!(loose.collect::<Vec<_>>(), [""; 0], "rows that no letters lead to");
    }

    #[test]
    fn a_star_takes_any_part_of_one_name() {
        for (part, name) in
            [("*.pem", "a.pem"), ("*.pem", "a.b.PEM"), ("a*b*c", "aXbYbZc"), ("*", ""), ("a*", "a"), ("*a*", "bab")]
        {
            assert!(glob(part.as_bytes(), name.as_bytes()), "{part} {name}");
        }
        for (part, name) in [("*.pem", "a.pem.txt"), ("a*b", "ac"), ("", "a"), ("a", ""), ("*a", "ab")] {
            assert!(!glob(part.as_bytes(), name.as_bytes()), "{part} {name}");
        }
    }

    #[test]
    fn braces_are_choices() {
        assert_eq!(alternatives("a{b,}c{d,e}"), ["abcd", "abce", "acd", "ace"]);
    }
}
