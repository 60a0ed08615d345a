//! What is special about one path: the matcher of the table.
//!
//! The tricky idea is to be cheap, because every word of a command that may be a path comes through here: a path is cut
//! once at the places where patterns may begin, and a row is given up at its first byte; nothing is allocated.

use std::path::{Path, is_separator};

use super::table::{At, OPEN, P, R, Rule, TABLE, W};

/// What is special about a path; each answer is a reason that completes "it …": `holds private SSH keys`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensitivity {
    /// Why reading it discloses a secret.
    pub read: Option<&'static str>,
    /// Why tools do not write it.
    pub write: Option<&'static str>,
    /// Why a write to it is run or trusted later.
    pub plants: Option<&'static str>,
}

impl Sensitivity {
    /// Whether nothing is special.
    pub fn is_ordinary(self) -> bool {
        self == Self::default()
    }

    /// Both together; where both have an answer, the first one's.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { read: self.read.or(other.read), write: self.write.or(other.write), plants: self.plants.or(other.plants) }
    }
}

/// What is special about `path`, by its name alone.
///
/// All three must be absolute and without `..` (see [`normalise`](super::normalise)); `path` may or may not exist. `home`
/// is the person's, `agent_home` the agent's (`HERMES_HOME`) or one of its profiles; `~/.hermes` counts in any case. The
/// case of letters does not matter. Listing a secret folder is not reading it; see [`secrets_below`] for that.
pub fn classify(path: &Path, home: &Path, agent_home: &Path) -> Sensitivity {
    let starts = Starts::of(path, home, agent_home);
    let mut found = Sensitivity::default();
    let mut open = false;
    for Rule(at, pattern, what, why) in TABLE {
        let Some(hit) = starts.hit(*at, pattern) else { continue };
        let below = hit == Hit::Below;
        if what & OPEN != 0 {
            open = true;
        }
        if what & R != 0 && below && !open {
            found.read.get_or_insert(why);
        }
        if what & W != 0 {
            found.write.get_or_insert(why);
        }
        if what & P != 0 {
            found.plants.get_or_insert(why);
        }
    }
    found
}

/// Why reading all that is below the folder `path` discloses a secret: for `~/.ssh`, for a home, for `/etc`.
///
/// Takes what [`classify`] takes. Names that are secret in any folder (`.env`) are not looked for: nobody knows whether
/// they are there.
pub fn secrets_below(path: &Path, home: &Path, agent_home: &Path) -> Option<&'static str> {
    let starts = Starts::of(path, home, agent_home);
    let whole = trimmed(path);
    let above = |root: &Path| below(trimmed(root), whole).is_some();
    if above(home) {
        return Some("holds a home with its keys and passwords");
    }
    if above(agent_home) {
        return Some("holds the agent's own credentials");
    }
    let rules = |what: u8| TABLE.iter().filter(move |Rule(_, _, own, _)| own & what != 0);
    if rules(OPEN).any(|Rule(at, pattern, ..)| starts.hit(*at, pattern).is_some()) {
        return None;
    }
    let rule = rules(R).find(|Rule(at, pattern, ..)| {
        let is_home = |rest: &[u8]| rest.is_empty() && matches!(at, At::Home | At::Agent);
        starts.rests(*at).any(|rest| is_home(rest) || matches(pattern, rest).is_some() || leads_to(rest, pattern))
    });
    rule.map(|Rule(.., why)| *why)
}

/// The parts of a path that follow each place where a pattern may begin; `None` where the path is not there.
struct Starts<'a> {
    root: [Option<&'a [u8]>; 1],
    homes: [Option<&'a [u8]>; 2],
    agents: [Option<&'a [u8]>; 8],
    name: [Option<&'a [u8]>; 1],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hit {
    /// The folder of a `**` itself.
    Folder,
    /// What the pattern names.
    Below,
}

impl<'a> Starts<'a> {
    fn of(path: &'a Path, home: &Path, agent_home: &Path) -> Self {
        let whole = trimmed(path);
        let root = below(whole, b"").unwrap_or_default();
        let homes = [below(whole, trimmed(home)), usual_home(root)];
        // A profile lives in `profiles/NAME` of the main home, which is the agent's, too.
        let main = agent_home.parent().filter(|parent| is_named(parent, b"profiles")).and_then(Path::parent);
        let agents = [
            below(whole, trimmed(agent_home)),
            main.and_then(|main| below(whole, trimmed(main))),
            homes[0].and_then(|rest| below(rest, b".hermes")),
            homes[1].and_then(|rest| below(rest, b".hermes")),
        ];
        let profile = |rest: Option<&'a [u8]>| rest.and_then(|rest| below(rest, b"profiles")).map(skip_name);
        let [own, main, default, usual] = agents;
        let agents = [own, main, default, usual, profile(own), profile(main), profile(default), profile(usual)];
        let name = whole.rsplit(|&byte| is_slash(byte)).next();
        Self { root: [Some(root)], homes, agents, name: [name] }
    }

    /// What of the path a pattern is held against: several parts where there are several homes or folders.
    fn rests(&self, at: At) -> impl Iterator<Item = &'a [u8]> {
        let starts: &[Option<&'a [u8]>] = match at {
            At::Root | At::Within => &self.root,
            At::Home => &self.homes,
            At::Agent => &self.agents,
            At::Name => &self.name,
        };
        let deeper = move |rest: &&'a [u8]| Some(skip_name(rest)).filter(|rest| at == At::Within && !rest.is_empty());
        starts.iter().copied().flatten().flat_map(move |rest| std::iter::successors(Some(rest), deeper))
    }

    fn hit(&self, at: At, pattern: &str) -> Option<Hit> {
        self.rests(at).find_map(|rest| matches(pattern, rest))
    }
}

/// Whether a pattern of the table names this path, both from the same place on.
fn matches(pattern: &str, path: &[u8]) -> Option<Hit> {
    let pattern = pattern.as_bytes();
    // Nearly every row ends here.
    if pattern.first() != Some(&b'*') && pattern.first() != path.first().map(u8::to_ascii_lowercase).as_ref() {
        return None;
    }
    let mut names = path.split(|&byte| is_slash(byte));
    for part in pattern.split(|&byte| byte == b'/') {
        if part == b"**" {
            return Some(names.next().map_or(Hit::Folder, |_| Hit::Below));
        }
        if !glob(part, names.next()?) {
            return None;
        }
    }
    names.next().is_none().then_some(Hit::Below)
}

/// Whether the folder `path` lies on the way to what the pattern names.
fn leads_to(path: &[u8], pattern: &str) -> bool {
    let mut parts = pattern.as_bytes().split(|&byte| byte == b'/');
    !path.is_empty() && path.split(|&byte| is_slash(byte)).all(|name| parts.next().is_some_and(|part| glob(part, name)))
}

/// One name against one part of a pattern, without regard to case: after a mismatch the last `*` takes one byte more.
fn glob(part: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if part.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if part.get(p) == Some(&name[n].to_ascii_lowercase()) {
            p += 1;
            n += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            n = taken + 1;
        } else {
            return false;
        }
    }
    part[p..].iter().all(|&byte| byte == b'*')
}

/// The bytes of a path, without separators at its end.
fn trimmed(path: &Path) -> &[u8] {
    let mut bytes = path.as_os_str().as_encoded_bytes();
    while let [rest @ .., last] = bytes
        && is_slash(*last)
    {
        bytes = rest;
    }
    bytes
}

/// What of `path` is below `folder`, both trimmed: empty if they are the same, `None` if it is elsewhere.
fn below<'a>(path: &'a [u8], folder: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = path.split_at_checked(folder.len())?;
    match rest {
        _ if !start.eq_ignore_ascii_case(folder) => None,
        [] => Some(rest),
        [first, below @ ..] if is_slash(*first) => Some(below),
        _ => None,
    }
}

/// The path without its first name.
fn skip_name(path: &[u8]) -> &[u8] {
    path.iter().position(|&byte| is_slash(byte)).map_or(&[], |at| &path[at + 1..])
}

/// What is below somebody's home, where homes usually are; `path` without its first separator.
fn usual_home(path: &[u8]) -> Option<&[u8]> {
    below(path, b"root").or_else(|| {
        let all = below(path, b"home").or_else(|| below(path, b"users"))?;
        (!all.is_empty()).then(|| skip_name(all))
    })
}

fn is_named(path: &Path, name: &[u8]) -> bool {
    path.file_name().is_some_and(|own| own.as_encoded_bytes().eq_ignore_ascii_case(name))
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
            assert_eq!(pattern.to_ascii_lowercase(), *pattern, "patterns are in lower case");
            assert!(!pattern.starts_with('/') && !pattern.ends_with('/') && !pattern.contains("//"), "{pattern}");
            assert!(!pattern.trim_end_matches("/**").contains("**"), "{pattern}: `**` stands last");
            assert_eq!(why.is_empty(), *what == OPEN, "{pattern}: a reason for each rule, none for an exception");
            assert!(*at != At::Name || !pattern.contains('/'), "{pattern}");
        }
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
}
