//! Words become the arguments that bash makes of them.
//!
//! Each script ends in calls of `show`, which bash runs as a function that writes down its arguments, and of which the
//! guard tells the arguments that it resolved. A word that the guard does not know is not wrong; a word that it knows
//! otherwise than bash is. `SEED=2 COUNT=5000 cargo test …` tries other scripts and more.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the helpers of a test are tests too, and it reports")]

mod bash;
mod rows;

use hermes_guard::{World, words_of};
use rows::random::Random;

/// What came of comparing many scripts.
#[derive(Default)]
struct Figures {
    scripts: usize,
    words: usize,
    known: usize,
    wrong: Vec<String>,
}

/// Whether our words may be bash's. Unknown text may be any number of words.
fn agree(ours: &[Option<String>], theirs: &[String]) -> bool {
    match (ours, theirs) {
        ([], []) => true,
        ([None, ours @ ..], _) => (0..=theirs.len()).any(|taken| agree(ours, &theirs[taken..])),
        ([Some(our), ours @ ..], [their, theirs @ ..]) => our == their && agree(ours, theirs),
        _ => false,
    }
}

/// `straight`: the scripts have no branches, so that our calls are bash's, one by one. Otherwise each of bash's calls is
/// one of ours.
fn compare(scripts: &[String], straight: bool) -> Figures {
    let cwd = tempfile::tempdir().unwrap();
    let world = World::new("/home/u", &cwd.path().to_string_lossy());
    let mut figures = Figures::default();
    for (script, answer) in scripts.iter().zip(bash::run(scripts, "/home/u", cwd.path())) {
        let Some(answer) = answer else { continue };
        if !bash::accepts(script) {
            continue;
        }
        figures.scripts += 1;
        let ours = match words_of(script, "show", &world) {
            Ok(ours) => ours,
            Err(error) => {
                figures.wrong.push(format!("{script}\n    bash {:?}\n    ours cannot be read: {error}", answer.calls));
                continue;
            }
        };
        // Where bash stopped in the middle, we may have gone on.
        let counts = ours.len() == answer.calls.len() || !answer.ended && ours.len() >= answer.calls.len();
        let words: Vec<_> = ours.iter().flatten().collect();
        figures.words += words.len();
        figures.known += words.iter().filter(|word| word.is_some()).count();
        let right = if straight {
            // Which empty words of a list stay with separators of one's own, not even versions of bash agree on.
            let clean = |words: &[Option<String>]| -> Vec<Option<String>> {
                let keep = |word: &&Option<String>| !script.contains("IFS=") || word.as_deref() != Some("");
                words.iter().filter(keep).cloned().collect()
            };
            let theirs = |words: &[String]| words.iter().cloned().map(Some).collect::<Vec<_>>();
            let pair = |(their, our): (&Vec<String>, &Vec<Option<String>>)| {
                let their: Vec<String> = clean(&theirs(their)).into_iter().flatten().collect();
                agree(&clean(our), &their)
            };
            counts && answer.calls.iter().zip(&ours).all(pair)
        } else {
            answer.calls.iter().all(|theirs| ours.iter().any(|ours| agree(ours, theirs)))
        };
        if !right {
            figures.wrong.push(format!("{script}\n    bash {:?}\n    ours {ours:?}", answer.calls));
        }
    }
    figures
}

#[track_caller]
fn assert_right(name: &str, figures: &Figures) {
    println!(
        "{name}: {} scripts, {} words, {} of them known, {} scripts wrong",
        figures.scripts,
        figures.words,
        figures.known,
        figures.wrong.len()
    );
    assert!(figures.wrong.is_empty(), "{} wrong:\n{}", figures.wrong.len(), figures.wrong.join("\n"));
}

/// One script a line, written by hand, each about one thing.
const LINES: &str = include_str!("bash/scripts.txt");

#[test]
fn scripts_by_hand_get_the_words_of_bash() {
    if !bash::is_here() {
        return;
    }
    let lines = LINES.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let scripts: Vec<String> = lines.map(|line| format!("{UNSET}{}", line.replace('␤', "\n"))).collect();
    assert_right("by hand", &compare(&scripts, true));
}

/// A variable that nobody set may come from the environment; these do not.
const UNSET: &str = "unset a b c d e f i j k l m n p q r s u v w x y z p unset_one unset; p=a q=b\n";

/// Scripts in which bash takes one way and we look at all of them.
const BRANCHES: &[&str] = &[
    "true && show a || show b; false && show c; false || show d",
    "if [ 1 = 1 ]; then a=x; else a=y; fi; show $a",
    "if [[ a == b ]]; then show 1; elif [[ -n x ]]; then show 2; else show 3; fi",
    "case foo in f*) a=1;; *) a=2;; esac; show $a",
    "case x in a|x) show in;& b) show fall;; c) show no;; esac",
    "for x in 1 2 3; do [ $x = 2 ] && continue; show $x; done",
    "for x in 1 2 3; do [ $x = 2 ] && break; show $x; done; show $x",
    "f() { [ \"$1\" = a ] && return; show $1; }; f a; f b",
    "f() { if [ $# -gt 0 ]; then show $1; shift; f \"$@\"; fi; }; f a b",
    "i=0; while [ $i -lt 3 ]; do show $i; i=$((i+1)); done; show end$i",
    "n=3; until [ $n -eq 0 ]; do n=$((n-1)); done; show $n",
    "printf 'a b\\nc\\n' | while read -r x y; do show $x $y; done",
    "select x in a b; do show $x; break; done <<< 2",
    "a=1; [ -e /nonexistent ] && a=2; show $a",
    "x=abc; [[ $x =~ a(.)c ]] && show ${BASH_REMATCH[1]}",
    "set -e; false || true; show still",
    "trap 'show bye' EXIT; show hello",
    "while getopts ab: o -a -b val; do show $o $OPTARG; done",
    "(exit 3); show $?; ! true; show $?",
    "a=x; unset a; show ${a:-gone}; [ -z \"$a\" ] && show empty",
    "command -v show >/dev/null && show yes",
    "a=$(false) || show failed",
    "for ((i=0; i<20; i++)); do :; done; show $i",
    "for x in {1..20}; do y=$x; done; show $y",
];

#[test]
fn the_way_that_bash_takes_is_among_ours() {
    if !bash::is_here() {
        return;
    }
    let scripts: Vec<String> = BRANCHES.iter().map(|&script| script.to_owned()).collect();
    assert_right("branches", &compare(&scripts, false));
}

const TEXTS: &[&str] = &[
    "x",
    "foo",
    "hello world",
    "a/b/c.tar.gz",
    "  lead  trail ",
    "x:y:z",
    "ABC",
    "aBcDe",
    "12",
    "007",
    "-5",
    "x=y",
    "ünï",
    "1 2  3",
    "a,b,c",
    "/etc/passwd",
    "-n",
    "a\tb",
    "foofoo",
    "rm -rf /",
    "::",
    "a:b c:d",
    "file.txt",
    "..",
    "abcabc",
    "a'b",
    "A\"B",
    "back\\slash",
    "a*b",
    "?",
    "",
    "l1\nl2",
    "$x",
    "~",
    "{a,b}",
    "!",
];
const NAMES: &[&str] = &["a", "b", "c", "d"];
const LISTS: &[&str] = &["r", "s"];
const PATTERNS: &[&str] = &[
    "*",
    "?",
    "*.",
    ".*",
    "*/",
    "/*",
    "a",
    "foo",
    "o",
    "[a-c]",
    "[!a-c]",
    "*o",
    "o*",
    ":",
    "*:",
    "\\*",
    "'*'",
    "b?",
    "\"a\"",
    "[[:upper:]]",
    "$a",
    "\"$b\"",
    "x*y",
    "",
    "??",
    "[0-9]",
    "l",
];
const NUMBERS: &[&str] = &["0", "1", "2", "3", " -1", " -2", "10", "1+1", "(1)"];
const SUMS: &[&str] = &[
    "1+2",
    "7/2",
    "-7/2",
    "-7%3",
    "2**10",
    "1<<4",
    "0x1F",
    "017",
    "2#1011",
    "36#z",
    "64#_",
    "5>3",
    "5==5&&0",
    "1?2:3",
    "~5",
    "!0",
    "(1+2)*3",
    "3-1-1",
    "2**3**2",
    "1,2",
    "n=5",
    "n+=2",
    "n++",
    "--n",
    "10%4*2",
    "6&3|8",
    "6^3",
    "-2**2",
    "1||0",
    "16#fF",
    "1 + 2",
    "",
    "n*n",
    "a",
    "9223372036854775807+1",
    "1<<63",
    "-1>>1",
    "n==0?7:9",
    "0||n",
    "2>1>0",
    "-(3)",
    "+4",
    "- -3",
    "!n+1",
    "1<2==1",
    "n=m=3",
    "m",
    "100/7%5",
];

/// A text as a word of a script, in one of the ways to write it.
fn word(random: &mut Random, text: &str) -> String {
    let single = format!("'{}'", text.replace('\'', r"'\''"));
    match random.below(5) {
        0 => {
            let mut out = String::from('"');
            for c in text.chars() {
                if matches!(c, '"' | '\\' | '$' | '`') {
                    out.push('\\');
                }
                out.push(c);
            }
            out + "\""
        }
        1 if !text.is_empty() && !text.contains('\n') => {
            text.chars().flat_map(|c| if c.is_alphanumeric() { vec![c] } else { vec!['\\', c] }).collect()
        }
        2 => {
            let mut out = String::from("$'");
            for c in text.chars() {
                match (random.below(4), c) {
                    (_, '\n') => out.push_str("\\n"),
                    (_, '\t') => out.push_str("\\t"),
                    (_, '\'' | '\\') => out.extend(['\\', c]),
                    (0, c) if c.is_ascii() => out.push_str(&format!("\\x{:02x}", c as u32)),
                    (1, c) if c.is_ascii() => out.push_str(&format!("\\{:03o}", c as u32)),
                    (2, c) => out.push_str(&format!("\\u{:04x}", c as u32)),
                    (_, c) => out.push(c),
                }
            }
            out + "'"
        }
        3 if !text.is_empty() => {
            let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
            format!("'{}'\"\"'{}'", text[..half].replace('\'', r"'\''"), text[half..].replace('\'', r"'\''"))
        }
        _ => single,
    }
}

fn value(random: &mut Random) -> String {
    let text = random.of(TEXTS);
    word(random, text)
}

/// `${…}` with something done to it.
fn parameter(random: &mut Random, depth: usize) -> String {
    let subject = match random.below(9) {
        4 => format!("{}[{}]", random.of(LISTS), random.of(&["0", "1", "2", "-1", "@", "*", "n"])),
        5 => format!("{}[@]", random.of(LISTS)),
        6 => random.of(&["1", "2", "@", "*"]).to_owned(),
        7 => random.of(&["r", "unset_one", "m[k]", "m[j]"]).to_owned(),
        _ => random.of(NAMES).to_owned(),
    };
    let inner = |random: &mut Random| -> String {
        if depth > 1 {
            return random.of(&["x", "y z", "'q q'", "\"w w\""]).to_owned();
        }
        match random.below(4) {
            0 => parameter(random, depth + 1),
            1 => format!("\"{}\"", parameter(random, depth + 1)),
            _ => random.of(&["x", "y z", "'q q'", "\"w  w\"", "a*", "\\*", "~", "$((1+1))", "\\$a", ""]).to_owned(),
        }
    };
    match random.below(22) {
        0 => format!("${{#{subject}}}"),
        1 => format!("${{{subject}:-{}}}", inner(random)),
        2 => format!("${{{subject}-{}}}", inner(random)),
        3 => format!("${{{subject}:+{}}}", inner(random)),
        4 => format!("${{{subject}+{}}}", inner(random)),
        5 => format!("${{{}:={}}}", random.of(&["a", "e", "f"]), inner(random)),
        6 => format!("${{{subject}:{}}}", random.of(NUMBERS)),
        7 => format!("${{{subject}:{}:{}}}", random.of(NUMBERS), random.of(&NUMBERS[..4])),
        8 => format!("${{{subject}#{}}}", random.of(PATTERNS)),
        9 => format!("${{{subject}##{}}}", random.of(PATTERNS)),
        10 => format!("${{{subject}%{}}}", random.of(PATTERNS)),
        11 => format!("${{{subject}%%{}}}", random.of(PATTERNS)),
        12 => format!("${{{subject}/{}/{}}}", random.of(PATTERNS), inner(random)),
        13 => format!("${{{subject}//{}/{}}}", random.of(PATTERNS), inner(random)),
        14 => format!("${{{subject}/{}{}/{}}}", random.of(&["#", "%"]), random.of(PATTERNS), inner(random)),
        15 => format!("${{{subject}{}}}", random.of(&["^", "^^", ",", ",,"])),
        16 => format!("${{!{}}}", random.of(&["p", "q"])),
        17 => format!("${{!{}[@]}}", random.of(LISTS)),
        18 => format!("${{{subject}@{}}}", random.of(&["U", "L", "u", "Q", "E"])),
        19 => format!("${{{subject}//{}}}", random.of(PATTERNS)),
        _ => format!("${{{subject}}}"),
    }
}

fn shown(random: &mut Random) -> String {
    match random.below(14) {
        0..=4 => format!("\"{}\"", parameter(random, 0)),
        5..=7 => parameter(random, 0),
        8 => format!("$(({}))", random.of(SUMS)),
        9 => format!("x{}y{}", parameter(random, 0), parameter(random, 1)),
        10 => random
            .of(&[
                "{a,b}",
                "x{1..3}",
                "{c..a}",
                "{01..03}",
                "{a,b}{1,2}",
                "{a,{b,c}}",
                "{1..7..3}",
                "{a}",
                "{,x}",
                "a{b,c",
                "{a..c}$a",
                "\"{a,b}\"",
                "{a\\,b,c}",
                "{3..1}",
                "{-1..1}",
                "~/x",
                "~",
                "'~'",
                "x~",
                "{'a b',c}",
                "{$a,$b}",
                "\\{a,b}",
                "{a,b}\\}",
                "{1..a}",
                "{A..c..20}",
                "{1..2}{x,}",
                "${a}{1,2}",
                "{10..8..1}",
                "{a,b,}",
                "{{a,b},c}",
                "{a..d..2}",
            ])
            .to_owned(),
        11 => format!(
            "$({} {})",
            random.of(&["echo", "echo -n", "echo -e", "printf %s", "printf '%s\\n'", "printf '<%s>'", "printf %b"]),
            shown(random)
        ),
        12 => format!("\"$({} {})\"", random.of(&["echo", "echo -e", "printf '%s '", "printf %b"]), shown(random)),
        _ => random
            .of(&[
                "$@",
                "\"$@\"",
                "$*",
                "\"$*\"",
                "$#",
                "$1",
                "x\"$@\"y",
                "\"x$*y\"",
                "${r[@]}",
                "\"${r[@]}\"",
                "\"${s[*]}\"",
            ])
            .to_owned(),
    }
}

/// Changes what the shell knows, without a branch.
fn statement(random: &mut Random) -> String {
    let name = random.of(NAMES);
    match random.below(24) {
        0..=3 => format!("{name}={}", value(random)),
        4 => format!("{name}+={}", value(random)),
        5 => format!("{name}={}", shown(random)),
        6 => format!("{}=({} {} {})", random.of(LISTS), value(random), value(random), shown(random)),
        7 => format!("{}+=({})", random.of(LISTS), value(random)),
        8 => format!("{}[{}]={}", random.of(LISTS), random.of(&["0", "1", "2", "5", "n"]), value(random)),
        9 => format!("r=([2]={} {} [0]={})", value(random), value(random), value(random)),
        10 => format!("declare -A m=([k]={} [j]={})", value(random), value(random)),
        11 => format!("IFS={}", random.of(&[":", ",", "' '", "$' \\t\\n'", "/", "o", "': '", "a:"])),
        12 => format!("set -- {} {} {}", value(random), shown(random), value(random)),
        13 => random.of(&["shift", "unset IFS", "unset a", "unset b", "unset r", "set --", "shift 2"]).to_owned(),
        14 => format!("p={}; q={}", random.of(NAMES), random.of(&["r[1]", "a", "'r[@]'", "b"])),
        15 => format!(
            "printf -v {name} {} {} {}",
            random.of(&[
                "%s",
                "'%s-%s'",
                "'%d'",
                "'%5s|'",
                "'%-5s|'",
                "'%05d'",
                "'%x'",
                "'%b'",
                "'%q'",
                "'%c'",
                "'%.2s'",
                "'a\\tb%%'",
                "'%o'",
                "'%+d'",
                "'%s\\n'"
            ]),
            value(random),
            random.of(&["", "12", "'a b'", "0x1f", "\"'a\""])
        ),
        16 => format!("(({}))", random.of(&["n=3", "n++", "n+=2", "n=n*2", "n=0", "n=1<<3", "m=n"])),
        17 => format!("let {}", random.of(&["n=4", "'n = 2'", "n+=1", "n=m=1"])),
        18 => format!("read -r a b <<< {}", value(random)),
        19 => format!("read -ra s <<< {}", value(random)),
        20 => format!("{name}=$(echo {})", shown(random)),
        21 => {
            format!("f() {{ local a={}; show \"$#\" \"$a\" {}; }}; f {}", value(random), shown(random), shown(random))
        }
        22 => format!("for x in {} {}; do show \"$x\"; done", shown(random), value(random)),
        _ => format!("{name}={}{}", value(random), value(random)),
    }
}

#[test]
fn scripts_by_chance_get_the_words_of_bash() {
    if !bash::is_here() {
        return;
    }
    let (seed, count) = rows::random::from_environment(600);
    let mut random = Random::new(seed);
    let scripts: Vec<String> = (0..count)
        .map(|_| {
            let mut lines: Vec<String> = (0..=random.below(5)).map(|_| statement(&mut random)).collect();
            for _ in 0..=random.below(3) {
                lines.push(format!("show {}", shown(&mut random)));
            }
            // `/*` would be answered with what this machine has.
            lines.insert(0, format!("set -f; {}", UNSET.trim_end()));
            lines.join("\n")
        })
        .collect();
    assert_right("by chance", &compare(&scripts, true));
}
