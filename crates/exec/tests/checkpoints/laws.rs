//! The law: whatever a turn does, an undo gives back what was there, and a redo what the turn left.

use std::fmt::Write as _;
use std::process::Command;

use proptest::prelude::*;

use crate::place::Here;

const NAMES: [&str; 12] =
    ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/f", "g h", ".gitx/%2E", r"n\nl", r"\xff\xfe", r"d/\x27q\x22\x5c"];

const MODES: [&str; 6] = ["600", "644", "755", "700", "2775", "4755"];

/// One line of bash, which may fail.
fn line() -> impl Strategy<Value = String> {
    let name = || (0..NAMES.len()).prop_map(|at| format!("$'{}'", NAMES[at]));
    prop_oneof![
        4 => (name(), any::<u8>()).prop_map(|(a, text)| format!("mkdir -p \"$(dirname {a})\"; echo {text} > {a}")),
        2 => (name(), any::<u16>()).prop_map(|(a, text)| format!("head -c {text} /dev/urandom > {a}")),
        3 => (name(), name()).prop_map(|(a, b)| format!("mv -fT {a} {b}")),
        3 => name().prop_map(|a| format!("rm -rf {a}")),
        3 => name().prop_map(|a| format!("mkdir -p {a}")),
        2 => (name(), 0..MODES.len()).prop_map(|(a, mode)| format!("[ -L {a} ] || chmod {} {a}", MODES[mode])),
        2 => (name(), name()).prop_map(|(a, b)| format!("ln -sfnT {a} {b}")),
        1 => name().prop_map(|a| format!("[ -f {a} ] && rm {a} && mkdir {a} && echo in > {a}/a")),
        1 => name().prop_map(|a| format!("rm -rf {a}; echo file > {a}")),
        1 => name().prop_map(|a| format!("touch {a}")),
    ]
}

fn run(here: &Here, lines: &[String]) {
    let mut script = String::from("umask 022\n");
    for line in lines {
        writeln!(script, "{{ {line}; }} 2>/dev/null").unwrap();
    }
    Command::new("bash").arg("-c").arg(script).current_dir(&here.project).status().unwrap();
}

fn configured() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(16);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 100, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(configured())]

    #[test]
    fn there_and_back_and_there_again(
        first in prop::collection::vec(line(), 0..16),
        second in prop::collection::vec(line(), 1..16),
        third in prop::collection::vec(line(), 1..8),
    ) {
        let here = Here::new();
        run(&here, &first);
        let mut states = vec![here.tree()];
        for lines in [&second, &third] {
            here.turn(|here| run(here, lines));
            states.push(here.tree());
        }
        // A turn that changed nothing has no checkpoint.
        states.dedup();
        for state in states.iter().rev().skip(1) {
            let gone = here.undo();
            prop_assert!(gone.left.is_empty(), "{:?}", gone.left);
            prop_assert_eq!(&here.tree(), state);
        }
        for state in &states[1..] {
            let gone = here.redo();
            prop_assert!(gone.left.is_empty(), "{:?}", gone.left);
            prop_assert_eq!(&here.tree(), state);
        }
    }
}
