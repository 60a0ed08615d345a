//! Laws of judging, over all commands of the corpus: what a wrapper, a quote or a neighbour may and may not change.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the helpers of a test are tests too, and it reports")]

mod rows;

use hermes_guard::{Verdict, judge};
use proptest::prelude::*;
use rows::Row;
use rows::random::Random;

/// A text as one word, in single quotes.
fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The same in double quotes.
fn double(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            out.push('\\');
        }
        out.push(c);
    }
    out + "\""
}

/// The same in `$'…'`.
fn ansi(text: &str) -> String {
    format!("$'{}'", text.replace('\\', r"\\").replace('\'', r"\'").replace('\n', r"\n"))
}

/// The same with a backslash before each character that could mean something.
fn escaped(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_alphanumeric() || c == '\n' { vec![c] } else { vec!['\\', c] }).collect()
}

fn verdict(cmd: &str) -> Verdict {
    judge(cmd, &rows::world()).verdict
}

/// The corpus commands that bash reads as scripts.
fn scripts() -> Vec<Row> {
    rows::all().into_iter().filter(|row| hermes_guard::parses(&row.cmd).is_ok()).collect()
}

/// Builtins and reserved words are no programs that a wrapper could run.
const OF_THE_SHELL: &[&str] = &[
    "cd",
    "pushd",
    "popd",
    "eval",
    "source",
    ".",
    "exec",
    "trap",
    "alias",
    "unalias",
    "export",
    "declare",
    "typeset",
    "set",
    "unset",
    "local",
    "readonly",
    "history",
    "fc",
    "read",
    "shopt",
    "builtin",
    "command",
    "enable",
    "hash",
    "bind",
    "complete",
    "compgen",
    "if",
    "for",
    "while",
    "until",
    "case",
    "select",
    "function",
    "time",
    "coproc",
    "ulimit",
    "umask",
    "let",
    "mapfile",
    "readarray",
    "jobs",
    "disown",
    "wait",
    "bg",
    "fg",
    "exit",
    "return",
    "logout",
    "suspend",
    "kill",
    "type",
    "noglob",
    "nocorrect",
];

/// Whether the command is one simple command, so that a wrapper can stand in front of it.
fn is_simple(cmd: &str) -> bool {
    let first = cmd.split_whitespace().next().unwrap_or_default();
    let name = first.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
    let plain = |c: char| !"\n;&|<>()`#{}~*?[]!$\\'\"".contains(c);
    name && !first.is_empty() && !OF_THE_SHELL.contains(&first) && cmd.chars().all(plain)
}

/// Judges `change` of each command that it takes and wants at least the verdict of the command.
#[track_caller]
fn never_lower(name: &str, except: &[&str], change: impl Fn(&Row) -> Option<String>) {
    let (mut count, mut lowered) = (0, Vec::new());
    for row in scripts() {
        let Some(changed) = change(&row) else { continue };
        count += 1;
        let (before, after) = (verdict(&row.cmd), verdict(&changed));
        if after < before && !except.iter().any(|part| row.cmd.contains(part)) {
            lowered.push(format!("{before:?} became {after:?}: {changed:?} [{}]", row.family));
        }
    }
    println!("{name}: {count} commands");
    assert!(count > 300, "{name}: only {count} commands");
    assert!(lowered.is_empty(), "{name}: {} of {count} lowered:\n{}", lowered.len(), lowered.join("\n"));
}

#[test]
fn a_wrapper_in_front_never_lowers_a_verdict() {
    for wrapper in [
        "sudo",
        "env X=1",
        "timeout 5",
        "nice",
        "nohup",
        "sudo -u root",
        "env -i",
        "nice -n 5",
        "command",
        "setsid",
        "time",
    ] {
        never_lower(wrapper, &[], |row| is_simple(&row.cmd).then(|| format!("{wrapper} {}", row.cmd)));
    }
}

/// Text that means something else once it is inside of other text: an unfinished here-document, a comment that would
/// swallow what follows, history expansion of other shells, commands for Windows.
fn stays_whole(row: &Row) -> bool {
    let windows = ["cmd", "powershell", "pwsh", "%", "\\\\", "C:"];
    !windows.iter().any(|part| row.cmd.contains(part))
}

#[test]
fn a_shell_around_a_command_never_lowers_a_verdict() {
    never_lower("bash -c", &[], |row| stays_whole(row).then(|| format!("bash -c {}", single(&row.cmd))));
    never_lower("sh -c \"…\"", &["$0"], |row| stays_whole(row).then(|| format!("sh -c {}", double(&row.cmd))));
    never_lower("eval", &[], |row| stays_whole(row).then(|| format!("eval {}", single(&row.cmd))));
    // What reads its input finds nothing more there: a shell with more rights, `xargs`.
    never_lower("bash <<<", &["xargs", "bash -l", "su -c bash"], |row| {
        (stays_whole(row) && row.family != "privilege").then(|| format!("bash <<< {}", single(&row.cmd)))
    });
    never_lower("( … )", &[], |row| Some(format!("( {}\n)", row.cmd)));
    never_lower("{ … }", &[], |row| Some(format!("{{ {}\n}}", row.cmd)));
    never_lower("if", &[], |row| Some(format!("if true; then {}\nfi", row.cmd)));
    never_lower("function", &["return"], |row| Some(format!("f() {{ {}\n}}; f", row.cmd)));
    never_lower("sudo bash -c", &[], |row| stays_whole(row).then(|| format!("sudo bash -c {}", single(&row.cmd))));
}

#[test]
fn a_quoted_command_that_is_written_down_is_safe() {
    let mut wrong = Vec::new();
    for row in rows::all() {
        let (one, two) = (single(&row.cmd), double(&row.cmd));
        for noted in [
            format!("printf '%s\\n' {one} > notes.txt"),
            format!("echo {two} >> notes.txt"),
            format!("cat > notes.txt <<'END_OF_NOTES'\n{}\nEND_OF_NOTES", row.cmd),
            format!("git commit -m {one}"),
            format!("grep -F -- {one} notes.txt"),
            format!("true # {}", row.cmd.replace('\n', " ")),
        ] {
            let judgement = judge(&noted, &rows::world());
            if judgement.verdict != Verdict::Safe {
                wrong.push(format!("{noted:?}: {:?}", judgement.findings.first().map(|finding| &finding.why)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} alarms:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether a command leaves the shell and the files as they were, so that the next one means what it meant alone.
fn changes_nothing(cmd: &str) -> bool {
    const CHANGES: &[&str] = &[
        "cd",
        "pushd",
        "popd",
        "exit",
        "trap",
        "alias",
        "export",
        "set",
        "unset",
        "exec",
        "eval",
        "source",
        "=",
        "()",
        "function",
        "read",
        "declare",
        ">",
        "tee",
        "<<",
        "ln",
        "cp",
        "mv",
        "curl",
        "wget",
        "git",
        "return",
        "history",
        "local",
        "printf -v",
        "mktemp",
        "hash",
        "enable",
        "break",
        "continue",
        "for ",
        "coproc",
        "let",
        "((",
        ". ",
        "shopt",
        "chmod",
        "-o",
        "dd",
        "install",
        "clone",
        "tar",
        "unzip",
        "-O",
        "typeset",
        "mapfile",
        "select",
        "mount",
        "!",
        "rsync",
        "scp",
        "aria2c",
        "python",
        "sed",
        "perl",
    ];
    !cmd.ends_with('\\') && !CHANGES.iter().any(|part| cmd.contains(part))
}

#[test]
fn two_commands_are_as_bad_as_the_worse_one() {
    let scripts = scripts();
    let quiet: Vec<&Row> = scripts.iter().filter(|row| changes_nothing(&row.cmd) && !row.cmd.contains('#')).collect();
    assert!(quiet.len() > 500, "only {}", quiet.len());
    let mut random = Random::new(3);
    let mut wrong = Vec::new();
    for second in &scripts {
        let first = quiet[random.below(quiet.len())];
        let expected = verdict(&first.cmd).max(verdict(&second.cmd));
        for joint in ["; ", "\n", " && "] {
            let background = first.cmd.trim_end().ends_with(['&', ';']);
            // Behind `&&` a change may not happen, and then more is possible than without.
            if background && joint != "\n" || joint == " && " && !changes_nothing(&second.cmd) {
                continue;
            }
            let both = format!("{}{joint}{}", first.cmd.trim_end(), second.cmd);
            let got = verdict(&both);
            if got != expected {
                wrong.push(format!("{got:?} instead of {expected:?}: {both:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn how_a_literal_word_is_quoted_changes_nothing() {
    let mut random = Random::new(5);
    let (mut count, mut wrong) = (0, Vec::new());
    for row in rows::all() {
        let assigns = row.cmd.split(' ').next().is_some_and(|word| word.contains('='));
        if !is_simple(&row.cmd) || assigns || row.cmd.contains('{') {
            continue;
        }
        count += 1;
        let expected = verdict(&row.cmd);
        for _ in 0..4 {
            let words: Vec<String> = row
                .cmd
                .split_whitespace()
                .map(|word| match random.below(6) {
                    0 => single(word),
                    1 => double(word),
                    2 => ansi(word),
                    3 => escaped(word),
                    4 => {
                        let half = word.char_indices().nth(word.chars().count() / 2).map_or(0, |(at, _)| at);
                        format!("{}''{}", &word[..half], double(&word[half..]))
                    }
                    _ => word.to_owned(),
                })
                .collect();
            let quoted = words.join(" ");
            let got = verdict(&quoted);
            if got != expected {
                wrong.push(format!("{got:?} instead of {expected:?}: {quoted}"));
            }
        }
    }
    assert!(count > 300, "only {count}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_beginning_of_a_command_is_judged_and_twice_alike() {
    let world = rows::world();
    for row in rows::all() {
        let borders: Vec<usize> = row.cmd.char_indices().map(|(at, _)| at).collect();
        // All of them take long for the few commands of several kilobytes.
        let step = borders.len() / 200 + 1;
        for at in borders.into_iter().step_by(step) {
            let _ = judge(&row.cmd[..at], &world);
        }
        assert_eq!(judge(&row.cmd, &world), judge(&row.cmd, &world), "{:?}", row.cmd);
    }
}

/// Characters and pieces that mean something to a shell, and a few that mean nothing.
fn shellish() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "\\",
        "{",
        "}",
        "${",
        "$((",
        "))",
        "((",
        "[[",
        "]]",
        "<<E\n",
        "\nE\n",
        "<<<",
        "|",
        "||",
        "&&",
        "&",
        ";",
        ";;",
        "\n",
        " ",
        "  ",
        "\t",
        "#",
        "~",
        "*",
        "?",
        "[",
        "]",
        "!",
        "=",
        "x=",
        "a[",
        "]=",
        "if ",
        "then ",
        "fi ",
        "for x in ",
        "do ",
        "done ",
        "case x in ",
        "esac ",
        "f()",
        "eval ",
        "bash -c ",
        "rm -rf ",
        "/",
        "$x",
        "${x:-",
        "${x//",
        "${!x}",
        "${#x}",
        "$@",
        "printf %s ",
        "echo -e ",
        "| sh",
        "xargs ",
        "sudo ",
        "find . -exec ",
        "\\;",
        "+",
        "python3 -c ",
        "awk ",
        "sed ",
        "é",
        "\u{F0000}",
        "\u{1F600}",
        "\u{0}",
        "\r",
        "%s",
        "{1..9}",
        "{a,b}",
        "1",
        "-",
        "--",
        ">",
        ">>",
        "2>&1",
        "<(",
        ">(",
        "$'",
        "\\x41",
        "@",
        ",",
        "..",
    ]);
    prop::collection::vec(
        prop_oneof![4 => pieces.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)],
        0..40,
    )
    .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_judged_and_twice_alike(text in shellish()) {
        let world = rows::world();
        prop_assert_eq!(judge(&text, &world), judge(&text, &world));
    }

    #[test]
    fn any_text_is_data_in_quotes(text in shellish()) {
        let text = text.replace('\0', "");
        prop_assert_eq!(verdict(&format!("printf %s {} > notes.txt", single(&text))), Verdict::Safe);
    }
}

/// Texts that took seconds or never ended, as the fuzzer found them. Nothing is timed here: whoever breaks them waits.
#[test]
fn what_multiplies_comes_to_an_end() {
    for text in [
        "* ".repeat(200),
        "nice [a-z]* ".repeat(100),
        format!("{}echo {}", "eval ".repeat(24), "{a,b}".repeat(500)),
        "b $(gi[t ".repeat(300),
        "x[$(y[$((".repeat(300),
        "a=([ ".repeat(1_000),
        "coproc $(coproc ".repeat(300),
        format!("a='a+a'; {} echo $((a))", "a=$a+$a; ".repeat(40)),
        "x=$x$x; ".repeat(200),
    ] {
        let small = std::thread::Builder::new().stack_size(2 << 20);
        let text_of_it = text.clone();
        let judged = small.spawn(move || judge(&text_of_it, &rows::world()).verdict).unwrap().join().unwrap();
        let harmless = text.starts_with("x=") || text.starts_with("a='");
        assert!(judged > Verdict::Safe || harmless, "{}", &text[..40]);
    }
}

#[test]
fn lines_before_a_line_that_cannot_be_read_still_run() {
    for (text, expected) in [
        ("rm -rf /\n)", Verdict::Hardline),
        ("cat <<E\nrm -rf /\nE\n)", Verdict::Dangerous),
        ("a=/\nrm -rf $a\nif", Verdict::Hardline),
        ("bash -c 'halt\n fi'", Verdict::Hardline),
        (") ; rm -rf /", Verdict::Dangerous),
        ("rm -rf / ; )", Verdict::Dangerous),
    ] {
        assert_eq!(verdict(text), expected, "{text}");
    }
}

#[test]
fn what_may_not_have_run_has_perhaps_changed_nothing() {
    for (text, expected) in [
        ("a=/; [ -e x ] && a=./b; rm -rf $a", Verdict::Hardline),
        ("a=./b; [ -e x ] && a=/; rm -rf $a", Verdict::Hardline),
        ("if [ -e x ]; then a=./b; else a=/; fi; ((a==1)); rm -rf $a", Verdict::Hardline),
        ("if [ -e x ]; then a=./b; else a=/; fi; [[ $a ]]; case $a in x) ;; esac; rm -rf $a", Verdict::Hardline),
        // What has no value yet is taken to get it: this writes into the new directory.
        ("cd sub && out=$(mktemp -d); cp a \"$out/b\"", Verdict::Safe),
        ("cd / && ls && cd /home/u/project && rm -f build.log", Verdict::Safe),
        ("u=; rm -rf ${u+/}", Verdict::Hardline),
        ("x='r!m'; ${x//[[:punct:]]} -rf /", Verdict::Hardline),
        ("declare -l x; x=RM; $x -rf /", Verdict::Hardline),
        ("r=(a b c); r[1]=/; unset 'r[0]'; rm -rf ${r[@]:1:1}", Verdict::Hardline),
        ("IFS=:; a=rm:-rf:/; $a", Verdict::Hardline),
        ("p=/x; rm -rf ${p////}etc", Verdict::Dangerous),
        ("printf 'r\\0m -rf /' | tr -d '\\0' | sh", Verdict::Hardline),
    ] {
        assert_eq!(verdict(text), expected, "{text}: {:?}", judge(text, &rows::world()).findings);
    }
}
