//! What holds for `patch` whatever the files and the edits are.
#![allow(clippy::unwrap_used)]

mod patching;

use std::collections::BTreeMap;
use std::sync::Arc;

use hermes_testkit::FakeEnvironment;
use patching::Patcher;
use proptest::prelude::*;
use serde_json::{Value, json};
use similar::TextDiff;

type Tree = BTreeMap<String, Vec<u8>>;

fn machine(tree: &Tree) -> Arc<FakeEnvironment> {
    Arc::new(tree.iter().fold(FakeEnvironment::new(), |machine, (path, bytes)| machine.with_file(path, bytes.clone())))
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// One call in a folder with one file: the answer, and the file afterwards.
fn call(file: &[u8], arguments: Value) -> (Value, Vec<u8>) {
    let machine = machine(&Tree::from([("f".to_owned(), file.to_vec())]));
    let answer = run(Patcher::new(machine.clone()).patch(arguments));
    let after = machine.file("f").unwrap();
    if answer.get("error").is_some() {
        assert_eq!(after, file, "an error changes nothing: {answer}");
    }
    (answer, after)
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(1..=u8::MAX, 0..300),
        prop::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'\t'), Just(0xc3), Just(0x81), Just(b'a')],
            0..60
        ),
        "\\PC{0,40}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Bytes around an edit are the bytes that were there, whether they are text or not.
    #[test]
    fn what_lies_around_an_edit_stays_byte_for_byte(
        before in noise(),
        after in noise(),
        (old, new) in prop_oneof![("[!-~]{6,20}", "[ -~]{0,20}"), ("[a-zà-ÿ€漢]{4,12}[ü漢🙂]", "[a-zà-ÿ€漢🙂 ]{0,12}")],
    ) {
        prop_assume!(old != new);
        let around = |text: &str| [&before[..], b"\n", text.as_bytes(), b"\n", &after[..]].concat();
        let file = around(&old);
        let occurs = file.windows(old.len()).filter(|window| *window == old.as_bytes()).count();
        let (answer, edited) = call(&file, json!({"path": "f", "old_string": old, "new_string": new}));
        let looks_encoded = before.starts_with(b"\xff\xfe") || before.starts_with(b"\xfe\xff");
        if answer.get("error").is_none() {
            prop_assert_eq!(occurs, 1, "{}", answer);
            prop_assert_eq!(edited, around(&new), "{}", answer);
        } else {
            prop_assert!(occurs > 1 || looks_encoded, "{}", answer);
        }
    }

    /// There and back is where one was.
    #[test]
    fn an_edit_and_its_opposite_give_the_original(
        lines in prop::collection::vec("[a-d ]{0,6}", 1..12),
        from in any::<prop::sample::Index>(),
        length in 1..12_usize,
        new in "[w-z ]{1,6}(\n[w-z ]{0,6}){0,3}",
        crlf in any::<bool>(),
        ended in any::<bool>(),
    ) {
        let text = lines.join("\n") + if ended { "\n" } else { "" };
        prop_assume!(!text.is_empty());
        let start = from.index(text.len());
        let old = &text[start..(start + length).min(text.len())];
        let file = if crlf { text.replace('\n', "\r\n") } else { text.clone() };
        prop_assume!(old != new && text.matches(old).count() == 1 && new.trim().len() > 1);
        let (there, edited) = call(file.as_bytes(), json!({"path": "f", "old_string": old, "new_string": new}));
        if there.get("error").is_some() {
            // Overlapping places count as several.
            prop_assert!(there["error"].as_str().unwrap().contains("2 times"), "{}", there);
            return Ok(());
        }
        // In a file of one line nothing says what its line ends are.
        prop_assume!(!crlf || text.contains('\n') && text.replacen(old, "", 1).contains('\n'));
        let (back, original) = call(&edited, json!({"path": "f", "old_string": new, "new_string": old}));
        prop_assert!(back.get("error").is_none(), "{} {}", there, back);
        prop_assert_eq!(String::from_utf8(original).unwrap(), file, "{} {}", there, back);
    }

    /// Whatever text comes as a patch, it is answered, and after an error nothing has changed.
    #[test]
    fn hostile_patches_are_answered_and_change_nothing_by_halves(pieces in prop::collection::vec(prop_oneof![
        Just("*** Begin Patch\n"), Just("*** End Patch\n"), Just("*** Update File: f\n"), Just("*** Add File: g/h\n"),
        Just("*** Add File: f/x\n"), Just("*** Delete File: f\n"), Just("*** Move File: f -> g\n"), Just("*** Move to: m\n"),
        Just("*** Update File: m\n"), Just("*** Add File: g\n"), Just("*** Delete File: g\n"), Just("*** End of File\n"), Just("@@\n"), Just("@@ a\n"),
        Just("@@ -1,2 +1,2 @@ a\n"), Just(" a\n"), Just("-a\n"), Just("+a\n"), Just("-b\n"), Just("+\n"), Just("\n"), Just("a\n"),
        Just("\\ No newline at end of file\n"), Just("***"), Just(" -> "), Just("\0"), Just("é"), Just("\r"),
    ], 0..14)) {
        let tree = Tree::from([("f".to_owned(), b"a\nb\na\n\nb".to_vec()), ("k".to_owned(), b"\0\xff".to_vec())]);
        let machine = machine(&tree);
        let answer = run(Patcher::new(machine.clone()).apply(&pieces.concat()));
        if answer.get("error").is_some() {
            for path in ["f", "g", "m", "g/h", "f/x", "k"] {
                prop_assert_eq!(machine.file(path), tree.get(path).cloned(), "{} {}", path, answer);
            }
        }
    }
}

/// What happens to one file.
#[derive(Clone, Debug)]
enum Fate {
    Stays,
    Goes,
    Moves,
    /// Lines at these places go, are replaced, or get a neighbour; and it may move as well.
    Changes(Vec<(prop::sample::Index, u8, String)>, bool, bool),
}

fn fate() -> impl Strategy<Value = Fate> {
    let change = (any::<prop::sample::Index>(), 0..3_u8, "[a-e]{0,3}");
    prop_oneof![
        Just(Fate::Stays),
        Just(Fate::Goes),
        Just(Fate::Moves),
        (prop::collection::vec(change, 1..5), any::<bool>(), any::<bool>())
            .prop_map(|(changes, ended, moves)| Fate::Changes(changes, ended, moves)),
    ]
}

fn text() -> impl Strategy<Value = String> {
    // Few different lines, so that the same ones are often at several places.
    (prop::collection::vec("[a-c]{0,2}", 0..30), any::<bool>())
        .prop_map(|(lines, ended)| lines.join("\n") + if ended { "\n" } else { "" })
}

fn changed(text: &str, changes: &[(prop::sample::Index, u8, String)], ended: bool) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (place, what, line) in changes {
        let at = place.index(lines.len() + 1);
        match what {
            0 if at < lines.len() => drop(lines.remove(at)),
            1 if at < lines.len() => lines[at].clone_from(line),
            _ => lines.insert(at, line.clone()),
        }
    }
    let text = lines.join("\n");
    if ended && !text.is_empty() { text + "\n" } else { text }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A patch that is made from two trees leads from the one exactly to the other.
    #[test]
    fn a_patch_from_one_tree_to_another_gives_the_other(
        files in prop::collection::btree_map("[a-z]{1,3}(/[a-z]{2,3})?\\.txt", (text(), fate()), 1..6),
        added in prop::collection::btree_map("new/[a-z]{1,3}", text(), 0..3),
    ) {
        let (mut before, mut after) = (Tree::new(), Tree::new());
        let mut patch = String::from("*** Begin Patch\n");
        for (path, (text, fate)) in &files {
            before.insert(path.clone(), text.clone().into_bytes());
            let moved = format!("moved/{path}");
            match fate {
                Fate::Stays => drop(after.insert(path.clone(), text.clone().into_bytes())),
                Fate::Goes => patch += &format!("*** Delete File: {path}\n"),
                Fate::Moves => {
                    patch += &format!("*** Move File: {path} -> {moved}\n");
                    after.insert(moved, text.clone().into_bytes());
                }
                Fate::Changes(changes, ended, moves) => {
                    let new = changed(text, changes, *ended);
                    let target = if *moves { &moved } else { path };
                    after.insert(target.clone(), new.clone().into_bytes());
                    let diff = TextDiff::from_lines(text.as_str(), new.as_str()).unified_diff().to_string();
                    if *moves || !diff.is_empty() {
                        patch += &format!("*** Update File: {path}\n");
                    }
                    if *moves {
                        patch += &format!("*** Move to: {moved}\n");
                    }
                    patch += &diff;
                }
            }
        }
        for (path, text) in &added {
            patch += &format!("*** Add File: {path}\n");
            text.lines().for_each(|line| patch += &format!("+{line}\n"));
            if !text.is_empty() && !text.ends_with('\n') {
                patch += "\\ No newline at end of file\n";
            }
            after.insert(path.clone(), text.clone().into_bytes());
        }
        patch += "*** End Patch\n";
        let machine = machine(&before);
        let answer = run(Patcher::new(machine.clone()).apply(&patch));
        if before == after {
            return Ok(());
        }
        prop_assert!(answer.get("error").is_none(), "{}\n{}", answer, patch);
        for path in before.keys().chain(after.keys()) {
            let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes).unwrap());
            prop_assert_eq!(text(machine.file(path)), text(after.get(path).cloned()), "{}\n{}", path, patch);
        }
    }
}

/// What one hunk does to one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Replaced,
    Removed,
    Followed,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// One hunk a change, with lines around it that neighbours may have, too: as the file is, or as if the hunks before were
    /// done. The result is what the changes say, or an error; and every line that stays keeps its end.
    #[test]
    fn hunks_with_lines_in_common_do_what_each_of_them_says(
        ends in prop::collection::vec(any::<bool>(), 2..12),
        edits in prop::collection::vec(prop_oneof![
            4 => Just(None), 1 => Just(Some(Edit::Replaced)), 1 => Just(Some(Edit::Removed)), 1 => Just(Some(Edit::Followed)),
        ], 12),
        around in 0..3_usize,
        in_turn in any::<bool>(),
        unended in any::<bool>(),
    ) {
        let count = ends.len();
        let end = |at: usize| match ends[at] {
            _ if unended && at + 1 == count => "",
            true => "\r\n",
            false => "\n",
        };
        let file = (0..count).map(|at| format!("line {at}{}", end(at))).collect::<Vec<_>>().concat();
        // Each line of the file with what it has become so far: `None` has gone, and it may have a line behind it.
        let mut now: Vec<(Option<String>, Option<String>)> = (0..count).map(|at| (Some(format!("line {at}")), None)).collect();
        let mut patch = String::from("*** Update File: f\n");
        for (at, edit) in edits.iter().enumerate().take(count).filter_map(|(at, edit)| Some((at, (*edit)?))) {
            let shown = |range: std::ops::Range<usize>| {
                let lines = range.flat_map(|at| {
                    let (line, behind) = now[at].clone();
                    if in_turn { [line, behind] } else { [Some(format!("line {at}")), None] }
                });
                lines.flatten().collect::<Vec<_>>()
            };
            let (mut before, mut after) = (shown(at.saturating_sub(around)..at), shown(at + 1..(at + 1 + around).min(count)));
            before.drain(..before.len().saturating_sub(around));
            after.truncate(around);
            let own = format!("line {at}");
            let middle = match edit {
                Edit::Replaced => {
                    now[at].0 = Some(format!("new {at}"));
                    format!("-{own}\n+new {at}\n")
                }
                Edit::Removed => {
                    now[at].0 = None;
                    format!("-{own}\n")
                }
                Edit::Followed => {
                    now[at].1 = Some(format!("more {at}"));
                    format!(" {own}\n+more {at}\n")
                }
            };
            let lines = |lines: &[String]| lines.iter().map(|line| format!(" {line}\n")).collect::<Vec<_>>().concat();
            patch += &format!("@@\n{}{middle}{}", lines(&before), lines(&after));
        }
        prop_assume!(patch.contains("@@"));
        let machine = machine(&Tree::from([("f".to_owned(), file.clone().into_bytes())]));
        let answer = run(Patcher::new(machine.clone()).apply(&patch));
        let after = String::from_utf8(machine.file("f").unwrap()).unwrap();
        if answer.get("error").is_some() {
            prop_assert_eq!(after, file);
            // Nothing is unclear unless the end of the file is, or a hunk shows what another one takes away.
            prop_assert!(unended || around > 0 && !in_turn, "{}\n{}", patch, answer);
            return Ok(());
        }
        let expected: Vec<String> = now.into_iter().flat_map(|(line, behind)| [line, behind]).flatten().collect();
        let lines: Vec<(&str, &str)> = after.split_inclusive('\n').map(|line| {
            let content = line.trim_end_matches(['\r', '\n']);
            (content, &line[content.len()..])
        }).collect();
        prop_assert_eq!(lines.iter().map(|(line, _)| *line).collect::<Vec<_>>(), expected, "{}\n{}", patch, answer);
        for (position, (line, its_end)) in lines.iter().enumerate().filter(|(at, _)| at + 1 < lines.len()) {
            let at = line.strip_prefix("line ").and_then(|number| number.parse::<usize>().ok());
            if let Some(at) = at.filter(|at| !end(*at).is_empty()) {
                prop_assert_eq!(*its_end, end(at), "line {} of\n{}\n{}", position, after, patch);
            }
        }
    }
}
