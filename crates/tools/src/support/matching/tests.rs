//! The ladder as a table: a file, what is wanted, and the file afterwards.

use proptest::prelude::*;

use super::{Strategy, *};
use crate::support::view::View;

fn replaced(file: &str, old: &str, new: &str, all: bool) -> Result<(Strategy, String), Miss> {
    let hay = Haystack::new(file);
    let found = hay.find(Wanted { old, new, all })?;
    assert_eq!(found.places.len(), found.splices.len());
    let after = View::new(file.as_bytes()).spliced(&found.splices).unwrap();
    Ok((found.strategy, String::from_utf8(after).unwrap()))
}

#[track_caller]
fn gives(strategy: Strategy, file: &str, old: &str, new: &str, after: &str) {
    assert_eq!(replaced(file, old, new, false), Ok((strategy, after.to_owned())), "{old:?} in {file:?}");
}

#[test]
fn exactly() {
    use Strategy::Exact;
    gives(Exact, "a\n\tb\nc\n", "\tb", "\\tB", "a\n\\tB\nc\n");
    gives(Exact, "s = \"\\t\"\nt = 1\n", "s = \"\\t\"", "s = \"\\t\\t\"", "s = \"\\t\\t\"\nt = 1\n");
    gives(Exact, "a.b*c[1]\n", ".b*c[", "_", "a_1]\n");
    gives(Exact, "b=2\n", "b=2\n", "b=2\nc=3\n", "b=2\nc=3\n");
    gives(Exact, "a\r\nb\nc\n", "c", "C", "a\r\nb\nC\n");
    gives(Exact, "a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n");
    gives(Exact, "x = 1   \n", "x = 1", "x = 2", "x = 2   \n");
}

#[test]
fn line_ends() {
    use Strategy::LineEnds;
    gives(LineEnds, "a\r\nb\r\nc\r\n", "a\nb", "a\nB", "a\r\nB\r\nc\r\n");
    gives(LineEnds, "a\nb\nc\n", "a\r\nb", "a\r\nB\r\nx", "a\nB\nx\nc\n");
    // In a mixed file each line keeps its own, and a new one ends like its neighbour.
    gives(LineEnds, "a\r\nb\nc\r\nd\n", "a\nb\nc\n", "a\nb\nx\nc\n", "a\r\nb\nx\r\nc\r\nd\n");
    gives(LineEnds, "one a\r\nb two\r\nx\n", "a\nb", "A\nB", "one A\r\nB two\r\nx\n");
    gives(LineEnds, "a\r\nb\r\n", "\nb", " b", "a b\r\n");
    gives(LineEnds, "first\nlast", "last\n", "LAST\n", "first\nLAST");
    gives(LineEnds, "a\r\nb", "a\nb\n", "a\nc\n", "a\r\nc");
    gives(LineEnds, "a\r\nb\r\nc", "a\nb\n", "", "c");
}

#[test]
fn trailing_blanks() {
    use Strategy::TrailingBlanks;
    gives(TrailingBlanks, "a  \nb\n", "a\nb", "a\nB", "a  \nB\n");
    gives(TrailingBlanks, "a\nb\n", "a \nb\t", "A\nb", "A\nb\n");
    // Blanks that nobody mentioned stay, also where the line changes.
    gives(TrailingBlanks, "hello  \nworld\n", "hello\nworld\n", "hallo\nworld\n", "hallo  \nworld\n");
    gives(TrailingBlanks, "a\n\t\nb\n", "a\n\nb", "a\n\nc", "a\n\t\nc\n");
    gives(TrailingBlanks, "a \nb", "a\nb\n", "a\nc\n", "a \nc");
    gives(TrailingBlanks, "a \r\nb\r\n", "a\nb\n", "a\nx\nb\n", "a \r\nx\r\nb\r\n");
}

#[test]
fn indentation() {
    use Strategy::Indentation;
    let class = "class A:\n    def f(self):\n        return 1\n";
    gives(Indentation, class, "def f(self):\n    return 1", "def f(self):\n    return 2", &class.replace('1', "2"));
    let go = "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n";
    let (old, new) = ("    if x {\n        y()\n    }", "    if x {\n        y()\n        z()\n    }");
    gives(Indentation, go, old, new, "func f() {\n\tif x {\n\t\ty()\n\t\tz()\n\t}\n}\n");
    gives(Indentation, "if a:\n\tb = 1\n", "if a:\n    b = 1", "if a:\n    b = 2", "if a:\n\tb = 2\n");
    gives(Indentation, "    x = 1\n    y = 2\n", "x = 1  \ny = 2", "x = 10\ny = 20", "    x = 10\n    y = 20\n");
    gives(Indentation, "  a\n\n  b\n", "a\n\nb\n", "a\n\nb\nc\n", "  a\n\n  b\n  c\n");
    gives(Indentation, "x\n  y\n", "\tx\n\t  y\n", "\tx\n\t  y\n\t  z\n", "x\n  y\n  z\n");
    // A line that was sent with another step than its neighbours is another line.
    assert_eq!(replaced("  a\n   b\n", "a\nb\n", "c\n", false), Err(Miss::Nowhere));
}

#[test]
fn escapes() {
    use Strategy::Escapes;
    gives(Escapes, "a\nb\nc\n", "a\\nb", "a\nX", "a\nX\nc\n");
    gives(Escapes, "msg = 'it is'\n", "msg = \\'it is\\'", "msg = \\'it was\\'", "msg = 'it was'\n");
    gives(Escapes, "p(\"a\\n\")\n", "p(\\\"a\\n\\\")", "p(\\\"b\\n\\\")", "p(\"b\\n\")\n");
    gives(Escapes, "\tif a:\n\t\tb\n", "if a:\\n\\tb", "if a:\\n\\tc", "\tif a:\n\t\tc\n");
    assert_eq!(replaced("a\nb", "\\n", " ", false), Err(Miss::Nowhere));
}

#[test]
fn typography() {
    use Strategy::Typography;
    let said = "He said “hello” — ok\n";
    gives(Typography, said, "He said \"hello\" -- ok", "He said \"hello\" -- fine", &said.replace("ok", "fine"));
    gives(Typography, "a\u{a0}b c\n", "a b c", "a b d", "a\u{a0}b d\n");
    gives(Typography, "it's\r\n", "it’s", "it was", "it was\r\n");
    // A long dash is typed as one short one or as two, and half of a sign is no place.
    gives(Typography, "a—b — c\n", "a-b - c", "a-b - d", "a—b — d\n");
    assert_eq!(replaced("a…b", ".b", "x", false), Err(Miss::Nowhere));
}

#[test]
fn several_places_are_none_unless_all_are_meant() {
    assert_eq!(replaced("k\nk\n", "k", "z", false), Err(Miss::Several(vec![0, 2])));
    assert_eq!(replaced("aaa", "aa", "b", false), Err(Miss::Several(vec![0, 1])));
    assert_eq!(replaced("k \nv\nk\nv \n", "k\nv\n", "q\n", false), Err(Miss::Several(vec![0, 5])));
    assert_eq!(replaced("k\nk\n", "k", "z", true), Ok((Strategy::Exact, "z\nz\n".into())));
    let (old, new) = ("k\nv", "q\nw");
    assert_eq!(
        replaced("k\r\nv\r\nk\r\nv\r\n", old, new, true),
        Ok((Strategy::LineEnds, "q\r\nw\r\nq\r\nw\r\n".into()))
    );
    assert_eq!(replaced("a \na \na \n", "a\na\n", "b\n", true), Ok((Strategy::TrailingBlanks, "b\na \n".into())));
}

#[test]
fn what_is_only_similar_is_not_found() {
    for (file, old) in [
        ("def calculate_total(x):\n", "def calculate_totals(x):"),
        ("if a:\n    one()\n    two()\nend\n", "if a:\n    three()\n    four()\nend"),
        ("a\n\nb\n", "   "),
        ("a  b\n", "a b"),
        ("a\nb\n", "a\n\nb"),
    ] {
        assert_eq!(replaced(file, old, "x", false), Err(Miss::Nowhere), "{old:?}");
    }
}

#[test]
fn a_search_in_vain_stays_linear() {
    // Each of these takes minutes with two loops inside of one another.
    let same = "x\n".repeat(500_000);
    let blanks = " ".repeat(1_000_000);
    let stairs = (0..100_000).map(|at| format!("{}x\n", " ".repeat(at % 9))).collect::<Vec<_>>().concat();
    let quotes = "“x” ".repeat(100_000);
    let began = std::time::Instant::now();
    for (file, old) in [
        (&same, "x\n".repeat(1_000) + "y\n"),
        (&same, "  x\n".repeat(1_000) + "x\n"),
        (&blanks, " ".repeat(5_000) + "x"),
        (&stairs, "x\n".repeat(500) + " x\n"),
        (&quotes, "\"x\" ".repeat(5_000) + "y"),
    ] {
        assert_eq!(replaced(file, &old, "z", false), Err(Miss::Nowhere));
        assert_eq!(replaced(file, &old, "z", true), Err(Miss::Nowhere));
        nearest(&Lines::of(file), &Lines::of(&old));
    }
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}

proptest! {
    /// Whatever is found, it is at most one place, nothing beside it changes, and there is no panic.
    #[test]
    fn whatever_is_sent_only_its_place_changes(
        file in "([a-c \t\"“—…\\\\]{0,4}(\r?\n)?){0,12}",
        old in "([a-c \t\"“—…\\\\n]{0,4}(\r?\n)?){0,4}",
        new in "([a-c \t\"“—…\\\\n]{0,4}(\r?\n)?){0,4}",
        all in any::<bool>(),
    ) {
        let hay = Haystack::new(&file);
        if let Ok(found) = hay.find(Wanted { old: &old, new: &new, all }) {
            prop_assert!(all || found.places.len() == 1);
            prop_assert!(found.places.is_sorted_by(|a, b| a.end <= b.start));
            let after = View::new(file.as_bytes()).spliced(&found.splices).unwrap();
            let after = String::from_utf8(after).unwrap();
            let (head, tail) = (found.places[0].start, file.len() - found.places.last().unwrap().end);
            prop_assert_eq!(&after[..head], &file[..head]);
            prop_assert_eq!(&after[after.len() - tail..], &file[file.len() - tail..]);
            if found.strategy == Strategy::Exact {
                prop_assert_eq!(&file[found.places[0].clone()], old.as_str());
            }
        }
        nearest(&Lines::of(&file), &Lines::of(&old));
    }

    /// What stays as it was is kept as it is in the file, whichever way it was found.
    #[test]
    fn a_change_that_changes_nothing_changes_nothing(
        file in "([a-c\"“—]{1,4}[ \t]{0,2}\r?\n){1,8}",
        rung in 0..4,
    ) {
        let old = match rung {
            0 => file.replace("\r\n", "\n"),
            1 => file.lines().map(|line| format!("{}\n", line.trim_end())).collect::<Vec<_>>().concat(),
            2 => file.lines().map(|line| format!("  {line}\n")).collect::<Vec<_>>().concat(),
            _ => file.replace('“', "\"").replace('—', "--"),
        };
        if let Ok((_, after)) = replaced(&file, &old, &old, false) {
            prop_assert_eq!(after, file);
        }
    }
}
