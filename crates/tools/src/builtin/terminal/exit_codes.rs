//! What an exit code means where it is not simply "it failed" (spec exec §9.5).

/// A sentence about the end of `command` with `code`, or nothing.
///
/// What ended is the last command of the line, as far as it can be told from its words.
pub(super) fn meaning(command: &str, code: i32) -> Option<String> {
    let of_program = match (last_program(command)?, code) {
        ("grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack", 1) => "no matches; not an error",
        ("diff" | "colordiff" | "cmp", 1) => "the files differ; not an error",
        ("find", 1) => "some folders could not be read",
        ("test" | "[", 1) => "the condition is false; not an error",
        ("git", 1) => "often normal for git, for example differences found",
        ("curl", 6) => "the host's name could not be resolved",
        ("curl", 7) => "no connection to the host",
        ("curl", 22) => "the server answered with an HTTP error",
        ("curl", 28) => "curl's own time limit was reached",
        ("ssh", 255) => "ssh itself failed, not the command there",
        ("timeout", 124) => "the time limit given to `timeout` was reached",
        ("make", 2) => "a recipe failed; see the first error above",
        ("pytest" | "py.test", 5) => "no tests were collected",
        ("pytest" | "py.test", 1) => "some tests failed",
        _ => return of_shell(code),
    };
    Some(of_program.to_owned())
}

fn of_shell(code: i32) -> Option<String> {
    let meaning = match code {
        126 => "it was found but could not be run (no permission, or no program)",
        127 => "no such command",
        129 => "ended by a hang-up (SIGHUP)",
        130 => "interrupted (SIGINT)",
        134 => "it aborted (SIGABRT)",
        135 => "bus error (SIGBUS)",
        136 => "arithmetic error (SIGFPE)",
        137 => "killed (SIGKILL); often out of memory",
        139 => "it crashed (SIGSEGV)",
        141 => "whoever read its output went away (SIGPIPE); often normal in a pipeline",
        143 => "asked to end (SIGTERM)",
        _ => return None,
    };
    Some(meaning.to_owned())
}

/// The name of the last program in a line, without its folder.
fn last_program(command: &str) -> Option<&str> {
    let last = command.trim_end().rsplit(['|', ';', '&', '\n']).find(|part| !part.trim().is_empty())?;
    let is_assignment = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    let word = last.split_whitespace().find(|word| !is_assignment(word))?;
    word.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_program_of_a_line_says_what_its_code_means() {
        let cases = [
            ("grep x file", 1, Some("no matches")),
            ("cat a | LC_ALL=C /usr/bin/grep x", 1, Some("no matches")),
            ("grep x file; true", 1, None),
            ("diff a b", 1, Some("differ")),
            ("diff a b", 2, None),
            ("make -j2 && curl -f http://x", 22, Some("HTTP")),
            ("./program", 139, Some("SIGSEGV")),
            ("nosuch", 127, Some("no such command")),
            ("true", 0, None),
            ("", 127, None),
        ];
        for (command, code, expected) in cases {
            let got = meaning(command, code);
            match expected {
                Some(part) => assert!(got.as_deref().is_some_and(|got| got.contains(part)), "{command}: {got:?}"),
                None => assert_eq!(got, None, "{command}"),
            }
        }
    }
}
