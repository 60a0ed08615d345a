//! The parts of a shell script, as bash reads them.
//!
//! Nothing here is expanded: a [`Word`] keeps the pieces it is made of, so that the evaluator can tell quoted data from
//! text that bash splits, globs or runs.

use std::cell::OnceCell;
use std::rc::Rc;

/// Commands one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Script {
    /// In the order of the text.
    pub items: Vec<Item>,
}

/// One `a && b || c`, and whether `&` follows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    /// The first pipeline.
    pub first: Pipeline,
    /// The pipelines that follow, each with what joins it to the one before.
    pub rest: Vec<(Join, Pipeline)>,
    /// `&` follows.
    pub background: bool,
}

/// What stands between two pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands joined by `|`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pipeline {
    /// At least one.
    pub stages: Vec<Command>,
}

/// One command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// A program with its words.
    Simple(Simple),
    /// A loop, a branch, a group, with its redirections.
    Compound(Box<Compound>, Vec<Redirect>),
    /// `name() …`
    Function(String, Rc<Command>),
}

/// A program with its words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Simple {
    /// `NAME=value` in front.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments; empty for bare assignments or redirections.
    pub words: Vec<Word>,
    /// In the order of the text.
    pub redirects: Vec<Redirect>,
    /// Where it stands in the text that was read, in bytes.
    pub span: (usize, usize),
}

/// Commands that hold commands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Compound {
    /// `{ …; }`
    Group(Script),
    /// `( … )`
    Subshell(Script),
    /// `if`: pairs of condition and branch, and the `else` branch.
    If(Vec<(Script, Script)>, Option<Script>),
    /// `while` and `until`.
    Loop { until: bool, condition: Script, body: Script },
    /// `for` and `select`; without words it goes through the positional parameters.
    For { name: String, words: Option<Vec<Word>>, body: Script },
    /// `for ((a; b; c))`
    ArithmeticFor { parts: [Word; 3], body: Script },
    /// `case`: patterns and branch of each arm.
    Case { subject: Word, arms: Vec<(Vec<Word>, Script)> },
    /// `(( … ))`
    Arithmetic(Word),
    /// `[[ … ]]`: its words, without the operators.
    Test(Vec<Word>),
    /// `coproc`
    Coprocess(Command),
}

/// `NAME=value`, `NAME+=value`, `NAME[i]=value`, `NAME=(…)`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assignment {
    /// The variable.
    pub name: String,
    /// The element, if one is named.
    pub index: Option<Word>,
    /// `+=`
    pub append: bool,
    /// What it gets.
    pub value: AssignedValue,
}

/// The right side of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AssignedValue {
    /// One text.
    Scalar(Word),
    /// `(a b [3]=c)`
    Array(Vec<(Option<Word>, Word)>),
}

/// A redirection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Redirect {
    /// The descriptor in front of it, if one is written.
    pub descriptor: Option<u32>,
    /// `{name}> file`: the shell picks the descriptor and puts its number here.
    pub variable: Option<String>,
    /// What it does.
    pub kind: RedirectKind,
    /// The file, the descriptor, or the text of a here-document or here-string.
    pub target: Rc<OnceCell<Word>>,
}

/// The kinds of redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    /// `<`
    Read,
    /// `>`, `>|`
    Write,
    /// `>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `&>`, `>&` with a file
    WriteBoth,
    /// `&>>`
    AppendBoth,
    /// `<&`, `>&` with a descriptor
    Duplicate,
    /// `<<`, `<<-`
    HereDocument,
    /// `<<<`
    HereString,
}

/// A word: what becomes one argument, several, or none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Word {
    /// In the order of the text.
    pub parts: Vec<Part>,
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Outside of quotes: globs, braces and a tilde are alive.
    Bare(String),
    /// Inside quotes or behind a backslash: itself and nothing else.
    Quoted(String),
    /// `"…"`
    Double(Vec<Part>),
    /// `$name`, `${…}`
    Parameter(Box<Parameter>),
    /// `$(…)`, backticks
    Command(Rc<Script>),
    /// `$((…))`, `$[…]`
    Arithmetic(Word),
    /// `<(…)`, `>(…)`
    Process { writes: bool, script: Rc<Script> },
}

/// A parameter and what is done with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    /// A name, a number, or one of `@*#?-$!0`.
    pub name: String,
    /// `[i]`; `@` and `*` are kept as bare text.
    pub index: Option<Word>,
    /// `${!name}`
    pub indirect: bool,
    /// `${#name}`
    pub length: bool,
    /// What follows the name.
    pub operation: Option<Operation>,
}

/// What `${name…}` does with a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    /// `:-`, `-`: this instead, if it has no value; with a colon (`empty`) also if the value is empty.
    Default { word: Word, empty: bool },
    /// `:=`, `=`: the same, and it is assigned.
    Assign { word: Word, empty: bool },
    /// `:?`, `?`: an error if it has no value.
    Demand(Word),
    /// `:+`, `+`: this instead, if it has a value.
    Alternative { word: Word, empty: bool },
    /// `#`, `##`
    DropPrefix { pattern: Word, longest: bool },
    /// `%`, `%%`
    DropSuffix { pattern: Word, longest: bool },
    /// `:offset:length`
    Substring(Word, Option<Word>),
    /// `/`, `//`, `/#`, `/%`
    Replace { pattern: Word, with: Word, all: bool, anchor: Option<Anchor> },
    /// `^`, `^^`, `,`, `,,`, `~`, `~~`: the letters that match the pattern, or all.
    Case { to: Letters, all: bool, pattern: Word },
    /// `@Q`, `@E`, `@U` and so on.
    Transform(char),
    /// `${!prefix@}`
    Names,
}

/// What a letter becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    /// `^`
    Upper,
    /// `,`
    Lower,
    /// `~`
    Other,
}

/// Where a replacement must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// `/#`
    Start,
    /// `/%`
    End,
}

impl Word {
    /// A word of plain quoted text.
    pub(crate) fn quoted(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Quoted(text.into())] }
    }

    /// The text, if every piece of it is bare: what reserved words, names and assignments are made of.
    pub(crate) fn bare(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Bare(text)] => Some(text),
            _ => None,
        }
    }
}
