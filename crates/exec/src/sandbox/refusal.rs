//! Seeing, in what a failed command printed, that the sandbox was the reason: for the offer to run it once without.
//!
//! Programs say an error in the C library's words or by its name, with the path somewhere around it. So each line is
//! looked at for such words, and then for a path. A false alarm teaches people to say yes, so what could have failed
//! without a sandbox too is none: a path that may be changed, a file that is not there, a command that succeeded.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use hermes_core::FinishedHow;

use super::{Confinement, Mechanism, Network, View, plan};

/// How much of the output's end is looked at.
const LOOKED_AT: usize = 64 * 1024;
/// Longer lines are no error messages.
const LONGEST_LINE: usize = 4 * 1024;

/// What the sandbox refused. Its text is a sentence for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A change outside of what may be changed; the path if the command said it.
    Change(Option<PathBuf>),
    /// Access to a path that is hidden or not to be changed.
    Access(PathBuf),
    /// A connection.
    Network,
    /// A connection that the proxy's policy refused, in the proxy's words.
    Proxy(String),
    /// Something that needs a privilege or a system call that is not allowed, in the command's words.
    Privilege(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(Some(path)) => write!(f, "The sandbox keeps {} from being changed.", path.display()),
            Self::Change(None) => {
                write!(f, "The sandbox keeps files outside of the writable folders from being changed.")
            }
            Self::Access(path) => write!(f, "The sandbox does not let the command use {}.", path.display()),
            Self::Network => write!(f, "The sandbox does not let the command reach the network."),
            Self::Proxy(words) => write!(f, "The sandbox {words}."),
            Self::Privilege(line) => write!(f, "The sandbox does not permit what the command tried: {line}"),
        }
    }
}

/// What of `command`'s failure was the sandbox, if anything was.
///
/// `cwd` is where it began, `output` what it printed; only the end of long output is looked at. Takes time that grows
/// with the output's length and no faster; looks a few paths up.
pub fn find(confinement: &Confinement, command: &str, cwd: &Path, how: FinishedHow, output: &str) -> Option<Refusal> {
    let failed = matches!(how, FinishedHow::Exited(1..) | FinishedHow::Signalled(_));
    if !failed || confinement.mechanism == Mechanism::None {
        return None;
    }
    let mut start = output.len().saturating_sub(LOOKED_AT);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    let case = Case { confinement, command, cwd };
    // The last error is the one that ended the command.
    output[start..].lines().rev().filter(|line| line.len() <= LONGEST_LINE).find_map(|line| case.read(line.trim()))
}

struct Case<'a> {
    confinement: &'a Confinement,
    command: &'a str,
    cwd: &'a Path,
}

impl Case<'_> {
    fn read(&self, line: &str) -> Option<Refusal> {
        let has = |words: &[&str]| words.iter().any(|words| contains_ignoring_case(line, words));
        if self.confinement.network == Network::Proxied {
            if let Some((_, words)) = line.split_once("hermes sandbox: refused a connection") {
                return Some(Refusal::Proxy(format!("refused a connection{words}")));
            }
            if has(&["403 from proxy", "tunnel failed, response 403", "tunnel connection failed: 403"]) {
                return Some(Refusal::Proxy("refused a connection (HTTP status 403 of its proxy)".into()));
            }
        }
        if self.confinement.network != Network::Open
            && has(&[
                "network is unreachable",
                "temporary failure in name resolution",
                "could not resolve host",
                "could not resolve proxy",
                "ENETUNREACH",
                "EAI_AGAIN",
                "[Errno 101]",
                "[Errno -3]",
            ])
        {
            return Some(Refusal::Network);
        }
        if has(&["read-only file system", "EROFS", "[Errno 30]"]) {
            return match self.path(line) {
                Some(path) if self.may_change(&path) => None,
                path => Some(Refusal::Change(path)),
            };
        }
        if has(&["permission denied", "EACCES", "[Errno 13]"]) {
            return self.path(line).filter(|path| !self.may_change(path)).map(Refusal::Access);
        }
        if has(&["operation not permitted", "EPERM", "[Errno 1]"]) {
            let harmless = self.path(line).is_some_and(|path| self.may_change(&path));
            return (!harmless).then(|| Refusal::Privilege(line.to_owned()));
        }
        if has(&["no such file or directory", "ENOENT", "[Errno 2]"]) {
            return self.path(line).filter(|path| self.took_away(path)).map(Refusal::Access);
        }
        None
    }

    /// Whether the command asked for this path, and it is there, but not in the command's view.
    fn took_away(&self, path: &Path) -> bool {
        let named = path.to_str().is_some_and(|path| self.command.contains(path));
        let Confinement { view, private_tmp, hidden, .. } = self.confinement;
        let below = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
        let out_of_view = hidden.iter().any(|hidden| path.starts_with(hidden))
            || below(&plan::RUNTIME_FOLDERS)
            || (*private_tmp && below(&plan::TEMPORARY_FOLDERS))
            || (matches!(view, View::System { .. }) && !below(&plan::SYSTEM_FOLDERS));
        named && out_of_view && !self.may_change(path) && path.exists()
    }

    /// Whether the deepest entry above `path` lets it be changed.
    fn may_change(&self, path: &Path) -> bool {
        let Confinement { view, writable, readable, hidden, private_tmp, .. } = self.confinement;
        let mut entries: Vec<(&Path, bool)> = Vec::new();
        if self.confinement.mechanism != Mechanism::Landlock {
            let temporary = if *private_tmp { &plan::TEMPORARY_FOLDERS[..] } else { &[] };
            entries.extend(temporary.iter().map(|folder| (Path::new(folder), true)));
            if let View::System { home } = view {
                entries.push((home, true));
            }
        }
        entries.extend(readable.iter().map(|path| (path.as_path(), false)));
        entries.extend(writable.iter().map(|root| (root.path.as_path(), true)));
        entries.extend(hidden.iter().map(|path| (path.as_path(), false)));
        // Of equally deep ones the last counts: hidden beats writable beats readable.
        let above = entries.into_iter().filter(|(root, _)| path.starts_with(root));
        above.max_by_key(|(root, _)| root.components().count()).is_some_and(|(_, changeable)| changeable)
    }

    /// The path that an error line is about, made absolute: in quotes, or between colons, or a word with a slash.
    fn path(&self, line: &str) -> Option<PathBuf> {
        let quoted = || line.split(['\'', '"', '`', '‘', '’']).skip(1).step_by(2);
        let parts = || line.split(": ").map(str::trim);
        let words =
            || line.split([' ', '\t', ',', '(', ')', '\'', '"', '`', '‘', '’']).map(|word| word.trim_end_matches(':'));
        let absolute = quoted().chain(parts()).chain(words()).find(|text| text.starts_with('/') && text.len() > 1);
        let relative = || {
            let is_path = |text: &&str| !text.is_empty() && !text.starts_with(['-', '~']);
            let in_parts = parts().skip(1).filter(|part| part.contains('/') && !part.contains("://"));
            // A bare word may be anything, unless it names what is hidden.
            let is_hidden = |part: &&str| self.confinement.hidden.contains(&self.cwd.join(part));
            quoted().filter(is_path).chain(in_parts).chain(parts().filter(is_hidden)).next()
        };
        Some(normal(&self.cwd.join(absolute.or_else(relative)?)))
    }
}

/// Without `.` and `..`, by the text alone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

fn contains_ignoring_case(text: &str, words: &str) -> bool {
    let (text, words) = (text.as_bytes(), words.as_bytes());
    text.windows(words.len()).any(|window| window.eq_ignore_ascii_case(words))
}

#[cfg(test)]
mod tests {
    use super::super::WritableRoot;
    use super::*;

    fn confinement() -> Confinement {
        let mut confinement = Confinement::new(Mechanism::Namespaces);
        confinement.writable = vec![WritableRoot::direct("/home/u/p"), WritableRoot::direct("/tmp/scratch")];
        confinement.readable = vec!["/home/u/p/.git/hooks".into()];
        confinement.hidden = vec!["/home/u/.ssh".into(), "/home/u/p/.env".into(), "/usr".into()];
        confinement
    }

    fn look(command: &str, output: &str) -> Option<Refusal> {
        find(&confinement(), command, "/home/u/p".as_ref(), FinishedHow::Exited(1), output)
    }

    #[test]
    fn changes_outside_are_recognised_in_the_words_of_many_programs() {
        let lines = [
            "bash: line 1: /etc/foo: Read-only file system",
            "touch: cannot touch '/etc/foo': Read-only file system",
            "OSError: [Errno 30] Read-only file system: '/etc/foo'",
            "Error: EROFS: read-only file system, open '/etc/foo'",
            "tee: /etc/foo: Read-only file system",
            "mkdir: cannot create directory ‘../../../etc/foo’: Read-only file system",
            "open /etc/foo: read-only file system",
        ];
        for line in lines {
            assert_eq!(look("", line), Some(Refusal::Change(Some("/etc/foo".into()))), "{line}");
        }
        assert_eq!(look("", "Error: Read-only file system (os error 30)"), Some(Refusal::Change(None)));
        let protected = look("", "cannot open '.git/hooks/pre-commit': Read-only file system");
        assert_eq!(protected, Some(Refusal::Change(Some("/home/u/p/.git/hooks/pre-commit".into()))));
    }

    #[test]
    fn hidden_paths_are_recognised() {
        let ssh = Some(Refusal::Access("/home/u/.ssh".into()));
        assert_eq!(look("", "ls: cannot open directory '/home/u/.ssh': Permission denied"), ssh);
        for line in ["cat: .env: Permission denied", "cat: ./.env: Permission denied"] {
            assert_eq!(look("", line), Some(Refusal::Access("/home/u/p/.env".into())), "{line}");
        }
        let there = "cat: /usr/bin: No such file or directory";
        assert_eq!(look("cat /usr/bin", there), Some(Refusal::Access("/usr/bin".into())));
        assert_eq!(look("make", there), None, "the command did not name it");
    }

    #[test]
    fn the_network_is_recognised_unless_it_is_open() {
        let lines = [
            "curl: (6) Could not resolve host: example.org",
            "ping: connect: Network is unreachable",
            "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
            "npm ERR! errno EAI_AGAIN",
        ];
        let mut open = confinement();
        open.network = Network::Open;
        for line in lines {
            assert_eq!(look("", line), Some(Refusal::Network), "{line}");
            assert_eq!(find(&open, "", "/".as_ref(), FinishedHow::Exited(1), line), None, "{line}");
        }
        let mut proxied = confinement();
        proxied.network = Network::Proxied;
        let line = "hermes sandbox: refused a connection to evil.test:443: not in the list";
        let found = find(&proxied, "", "/".as_ref(), FinishedHow::Exited(22), line).unwrap();
        assert_eq!(found.to_string(), "The sandbox refused a connection to evil.test:443: not in the list.");
        let line = "curl: (56) CONNECT tunnel failed, response 403";
        assert!(matches!(find(&proxied, "", "/".as_ref(), FinishedHow::Exited(56), line), Some(Refusal::Proxy(_))));
    }

    #[test]
    fn privileges_are_recognised() {
        let line = "unshare: unshare failed: Operation not permitted";
        assert_eq!(look("", line), Some(Refusal::Privilege(line.into())));
    }

    #[test]
    fn what_fails_without_a_sandbox_too_is_none() {
        let lines = [
            "cat: nope.txt: No such file or directory",
            "cat: /home/u/.ssh/none: No such file or directory",
            "bash: line 1: ./run.sh: Permission denied",
            "rm: cannot remove '/home/u/p/locked/x': Permission denied",
            "mkdir: cannot create directory 'locked/x': Permission denied",
            "touch: cannot touch '/tmp/x': Read-only file system",
            "git@github.com: Permission denied (publickey).",
            "chown: changing ownership of '/home/u/p/x': Operation not permitted",
            "curl: (7) Failed to connect to localhost port 80: Connection refused",
            "error: test failed",
            "",
        ];
        for line in lines {
            assert_eq!(look(line, line), None, "{line}");
        }
        let refused = "touch: cannot touch '/etc/x': Read-only file system";
        for how in [FinishedHow::Exited(0), FinishedHow::TimedOut, FinishedHow::Cancelled] {
            assert_eq!(find(&confinement(), "", "/".as_ref(), how, refused), None);
        }
        let none = Confinement::new(Mechanism::None);
        assert_eq!(find(&none, "", "/".as_ref(), FinishedHow::Exited(1), refused), None);
    }

    #[test]
    fn only_the_end_of_long_output_is_looked_at_and_letters_of_many_bytes_are_no_trouble() {
        let refused = "touch: cannot touch '/etc/x': Read-only file system\n";
        assert_eq!(look("", &format!("{refused}{}", "ä\n".repeat(LOOKED_AT))), None);
        assert!(look("", &format!("{}\nx{refused}", "ä".repeat(LOOKED_AT))).is_some());
    }
}
