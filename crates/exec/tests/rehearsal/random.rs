//! The law: a series of operations that is rehearsed and committed gives what it gives directly, thrown away it gives
//! nothing, and undone it gives back what was there.

use std::fmt::Write as _;

use hermes_exec::rehearsal::{Method, Undo};
use proptest::prelude::*;

use crate::place::{COPY, Here};

const NAMES: [&str; 12] =
    ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/f", "g h", "g h/a", r"n\nl", r"\xff\xfe", r"d/\x27q\x27"];

#[derive(Clone, Debug)]
enum Operation {
    Write(usize, u8),
    Append(usize, u8),
    Truncate(usize, u8),
    Rename(usize, usize),
    Delete(usize),
    MakeFolder(usize),
    Mode(usize, usize),
    Link(usize, usize),
    HardLink(usize, usize),
    FileToFolder(usize),
    FolderToFile(usize, u8),
    Rewrite(usize, u8),
    Touch(usize),
}

const MODES: [&str; 7] = ["600", "644", "755", "700", "555", "444", "000"];

impl Operation {
    /// One line of bash. It may fail, as it then fails in both places.
    fn line(&self) -> String {
        let name = |number: &usize| format!("$'{}'", NAMES[*number]);
        match self {
            Self::Write(a, text) => format!("echo {text} > {}", name(a)),
            Self::Append(a, text) => format!("echo {text} >> {}", name(a)),
            Self::Truncate(a, length) => format!("[ -f {0} ] && truncate -s {length} {0}", name(a)),
            // A folder from below an overlay is renamed by copying, which may not meet a folder that is there.
            Self::Rename(a, b) => {
                format!("[ -d {1} ] || [ -d {0} -a -e {1} ] || mv -fT {0} {1}", name(a), name(b))
            }
            Self::Delete(a) => format!("rm -rf {}", name(a)),
            Self::MakeFolder(a) => format!("mkdir -p {}", name(a)),
            Self::Mode(a, mode) => format!("[ -L {0} ] || chmod {1} {0}", name(a), MODES[*mode]),
            Self::Link(a, b) => format!("ln -sfn {} {}", name(a), name(b)),
            Self::HardLink(a, b) => format!("[ -d {1} ] || ln -fT {0} {1}", name(a), name(b)),
            Self::FileToFolder(a) => format!("[ -f {0} ] && rm {0} && mkdir {0} && echo in > {0}/a", name(a)),
            Self::FolderToFile(a, text) => format!("[ -d {0} ] && rm -rf {0} && echo {text} > {0}", name(a)),
            Self::Rewrite(a, text) => format!("[ -d {0} ] || {{ echo {text} > t && mv -fT t {0}; }}", name(a)),
            Self::Touch(a) => format!("[ -e {0} ] && touch {0}", name(a)),
        }
    }
}

fn script(operations: &[Operation]) -> String {
    let mut script = String::new();
    for operation in operations {
        writeln!(script, "{{ {}; }} 2>/dev/null", operation.line()).unwrap();
    }
    script
}

fn operation(hard_links: bool) -> impl Strategy<Value = Operation> {
    let name = || 0..NAMES.len();
    prop_oneof![
        4 => (name(), any::<u8>()).prop_map(|(a, text)| Operation::Write(a, text)),
        2 => (name(), any::<u8>()).prop_map(|(a, text)| Operation::Append(a, text)),
        1 => (name(), any::<u8>()).prop_map(|(a, length)| Operation::Truncate(a, length)),
        3 => (name(), name()).prop_map(|(a, b)| Operation::Rename(a, b)),
        2 => name().prop_map(Operation::Delete),
        4 => name().prop_map(Operation::MakeFolder),
        2 => (name(), 0..MODES.len()).prop_map(|(a, mode)| Operation::Mode(a, mode)),
        1 => (name(), name()).prop_map(|(a, b)| Operation::Link(a, b)),
        2 => (name(), name()).prop_map(move |(a, b)| if hard_links { Operation::HardLink(a, b) } else { Operation::Touch(a) }),
        1 => name().prop_map(Operation::FileToFolder),
        1 => (name(), any::<u8>()).prop_map(|(a, text)| Operation::FolderToFile(a, text)),
        1 => (name(), any::<u8>()).prop_map(|(a, text)| Operation::Rewrite(a, text)),
        1 => name().prop_map(Operation::Touch),
    ]
}

fn obeys_the_law(method: Method, before: &[Operation], rehearsed: &[Operation]) -> Result<(), TestCaseError> {
    let (mut before, rehearsed) = (script(before), script(rehearsed));
    if !rustix::process::geteuid().is_root() {
        // Where a stage is mounted the command has root's rights over its own files, but nobody else has them: what
        // cannot be read cannot be compared.
        before.push_str("chmod -R u+rX .\n");
    }
    let (here, direct) = (Here::new(), Here::new());
    here.directly(&before);
    direct.directly(&before);
    direct.directly(&rehearsed);
    let untouched = here.tree();

    let stage = here.rehearse(method, &rehearsed);
    let changes = stage.changes().unwrap();
    prop_assert!(changes.entries.is_sorted_by(|left, right| left.path.as_os_str() < right.path.as_os_str()));
    stage.throw_away().unwrap();
    prop_assert!(here.left_over().is_empty());

    let stage = here.rehearse(method, &rehearsed);
    let again = stage.changes().unwrap();
    prop_assert_eq!(changes.to_string(), again.to_string());
    let undo = stage.commit(&here.undo()).unwrap().undo;
    drop(stage);
    Undo::open(undo.path()).unwrap().undo().unwrap();
    prop_assert_eq!(here.tree().looks_and_times(), untouched.looks_and_times());
    prop_assert!(here.left_over().is_empty());

    // Once more for a look at what is committed: to look may mean to take a mode away, and would hinder the undo.
    let stage = here.rehearse(method, &rehearsed);
    stage.commit(&here.undo()).unwrap().undo.discard().unwrap();
    prop_assert_eq!(here.tree().looks(), direct.tree().looks());
    Ok(())
}

fn configured() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(configured())]

    /// Files of several names below an overlay are several files to a command; that is documented, and left out here.
    #[test]
    fn an_overlay_obeys_the_law(
        before in prop::collection::vec(operation(false), 0..16),
        rehearsed in prop::collection::vec(operation(true), 1..16),
    ) {
        obeys_the_law(Method::Overlay, &before, &rehearsed)?;
    }

    #[test]
    fn a_copy_obeys_the_law(
        before in prop::collection::vec(operation(true), 0..16),
        rehearsed in prop::collection::vec(operation(true), 1..16),
    ) {
        obeys_the_law(COPY, &before, &rehearsed)?;
    }
}
