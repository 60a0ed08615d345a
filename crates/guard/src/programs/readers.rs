//! Programs that change nothing by themselves: before them there is nothing to keep for an undo.
//!
//! A program is here only if whatever it may write (`sort -o`, `find -delete`) is told by its model, and whatever it runs
//! (`xargs`, `timeout`) is looked at as a call of its own. A program that is missing costs a checkpoint that is thrown away;
//! one too many would cost somebody's file.

/// Sorted.
const READERS: &[&str] = &[
    ":",
    "[",
    "[[",
    "alias",
    "arch",
    "b2sum",
    "base32",
    "base64",
    "basename",
    "break",
    "cal",
    "cat",
    "cd",
    "chdir",
    "cksum",
    "cmp",
    "comm",
    "command",
    "continue",
    "cut",
    "declare",
    "df",
    "diff",
    "dirname",
    "dirs",
    "du",
    "echo",
    "egrep",
    "env",
    "exit",
    "expand",
    "export",
    "expr",
    "false",
    "fgrep",
    "find",
    "fmt",
    "fold",
    "free",
    "getconf",
    "grep",
    "groups",
    "head",
    "hexdump",
    "hostname",
    "id",
    "jobs",
    "join",
    "let",
    "local",
    "locale",
    "ls",
    "lsblk",
    "lscpu",
    "lsof",
    "mapfile",
    "md5sum",
    "nice",
    "nl",
    "nproc",
    "numfmt",
    "od",
    "paste",
    "pathchk",
    "pgrep",
    "popd",
    "printenv",
    "printf",
    "ps",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readlink",
    "readonly",
    "realpath",
    "return",
    "rev",
    "rg",
    "seq",
    "set",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "shift",
    "shopt",
    "sleep",
    "sort",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "test",
    "time",
    "timeout",
    "tr",
    "true",
    "tsort",
    "tty",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "uname",
    "unexpand",
    "unset",
    "uptime",
    "wait",
    "wc",
    "whereis",
    "which",
    "whoami",
    "xargs",
    "yes",
];

/// Words of git after which it only reads, whatever follows them, except where that names a file for the output.
const GIT: &[&str] = &[
    "blame",
    "cat-file",
    "describe",
    "diff",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "status",
    "version",
];

/// Folders of the system's own programs. `./test` is whatever lies there.
const FOLDERS: &[&str] = &["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"];

/// Whether a command changes nothing but what its program's model tells. `name` is the program without its folder, `words` the
/// command as it stands, the program first.
///
/// What the settings of a repository make `git diff` run is not looked at here, but where somebody writes such settings.
pub(crate) fn only_reads(name: &str, words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return true };
    if program.contains('/') && !FOLDERS.iter().any(|folder| program.strip_prefix(folder) == Some(name)) {
        return false;
    }
    match name {
        "git" => {
            let verb = arguments.first().map(String::as_str).unwrap_or_default();
            let leads_on = |word: &String| {
                word.starts_with("--output")
                    || word.starts_with("--open")
                    || word.starts_with("-O")
                    || word.starts_with("-o")
            };
            GIT.binary_search(&verb).is_ok() && !arguments.iter().any(leads_on)
        }
        name => READERS.binary_search(&name).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::base_name;

    #[test]
    fn the_tables_are_sorted() {
        assert!(READERS.is_sorted() && GIT.is_sorted());
    }

    #[test]
    fn a_way_to_write_is_no_reading() {
        let reads = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            only_reads(base_name(&words[0]), &words)
        };
        for reader in ["ls -la", "/bin/cat x", "git status --short", "git diff HEAD", "find . -name x"] {
            assert!(reads(reader), "{reader}");
        }
        for writer in [
            "git diff --output=x",
            "git checkout .",
            "git",
            "./test",
            "bin/cat x",
            "git grep -O./x",
            "uniq a b",
            "tee x",
            "make",
            "sed -i s/a/b/ x",
        ] {
            assert!(!reads(writer), "{writer}");
        }
    }
}
