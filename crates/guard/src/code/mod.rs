//! Code of other languages on a command line: which calls it makes, with which constants.

mod arguments;
mod calls;
mod known;
mod lexer;
mod scan;
mod sed;
mod shape;
mod values;

pub(crate) use scan::scan;
pub(crate) use sed::sed;

/// A language whose code is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Shell,
    Python,
    Perl,
    Ruby,
    JavaScript,
    Php,
    Lua,
    R,
    Awk,
    Lisp,
    Other,
}

impl Language {
    /// The language of an interpreter or of a file's ending.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        Some(match name {
            "sh" | "bash" | "dash" | "zsh" | "ksh" => Self::Shell,
            "python" | "py" | "pypy" => Self::Python,
            "perl" | "pl" => Self::Perl,
            "ruby" | "rb" => Self::Ruby,
            "node" | "nodejs" | "js" | "mjs" | "cjs" | "ts" | "bun" | "deno" => Self::JavaScript,
            "php" => Self::Php,
            "lua" | "luajit" => Self::Lua,
            "Rscript" | "R" | "r" => Self::R,
            "awk" | "gawk" | "mawk" => Self::Awk,
            "el" | "emacs" => Self::Lisp,
            "julia" | "elixir" | "groovy" | "osascript" | "tclsh" | "guile" | "swift" | "scala" => Self::Other,
            _ => return None,
        })
    }
}
