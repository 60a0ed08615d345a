//! Reading the name that a model wrote.
//!
//! Case, separators and a `tool` suffix are habits of spelling and are normalised; what follows a quote or an angle
//! bracket is a piece of the call's own syntax that got into the name (spec core §13.1). Similarity is not normalised:
//! the nearest name is only ever *offered*, because `list_files` is 80 % of `write_file` (spec agent §21.1.1). Neither
//! are the names that other agents use: whoever calls `bash` may expect what our tool does not do.

use std::collections::BTreeSet;

use hermes_core::ToolName;

/// The tool that `written` means, if only its spelling differs.
pub fn resolve<'a>(written: &str, visible: &'a BTreeSet<ToolName>) -> Option<&'a ToolName> {
    if let Some(exact) = visible.get(written) {
        return Some(exact);
    }
    // What is far longer than any name is none, and comparing it with every tool would cost its length each time.
    if written.len() > 8 * ToolName::MAX_CHARS {
        return None;
    }
    let plain = snake_case(without_syntax(written));
    let bare = without_suffix(&plain);
    // `TodoTool_tool` has been seen.
    let spellings = [Some(plain.as_str()), bare, bare.and_then(without_suffix)];
    let spelt = spellings.into_iter().flatten().find_map(|spelling| visible.get(spelling));
    // `readfile`: the same letters without the separators, if only one tool has them.
    spelt.or_else(|| {
        let letters = |name: &str| name.replace('_', "");
        let wanted = letters(&plain);
        let mut same = visible.iter().filter(|name| letters(&snake_case(name.as_str())) == wanted);
        same.next().filter(|_| !wanted.is_empty() && same.next().is_none())
    })
}

/// Those of `tools`, each a name with its names in other agents, that are known as `written` elsewhere.
pub fn known_elsewhere<'a>(written: &str, tools: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Vec<&'a str> {
    let written = snake_case(without_syntax(written));
    let bare = without_suffix(&written).unwrap_or(&written);
    let known = |names: &[String]| names.iter().any(|name| *name == written || name == bare);
    tools.into_iter().filter(|(_, names)| known(names)).map(|(name, _)| name).collect()
}

fn without_suffix(name: &str) -> Option<&str> {
    name.strip_suffix("tool").map(|bare| bare.trim_end_matches('_'))
}

/// `terminal" x` and `terminal<|call|>` as `terminal`.
fn without_syntax(written: &str) -> &str {
    let written = written.trim_start();
    match written.find(['"', '\'', '<', '>']) {
        Some(at) if at > 0 => &written[..at],
        _ => written,
    }
}

/// Up to three of `names` that look like `written`, nearest first.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // Nobody's name is longer, and similarity takes the product of both lengths.
    let written: String = snake_case(without_syntax(written)).chars().take(2 * ToolName::MAX_CHARS).collect();
    let mut scored: Vec<(f64, &str)> =
        names.into_iter().map(|name| (alike(&written, &snake_case(name)), name)).collect();
    scored.retain(|(score, _)| *score >= 0.75);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// `; did you mean "…"?` if one of `names` looks like `written`, for the end of a message.
pub fn did_you_mean<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    hint(nearest(written, names).first())
}

/// The same for names that were compared before.
pub(crate) fn hint(nearest: Option<impl std::fmt::Display>) -> String {
    nearest.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default()
}

/// From 0 to 1. Names that begin alike are alike; of short ones, those that differ in one letter anywhere.
fn alike(a: &str, b: &str) -> f64 {
    let one_letter_off = a.len().max(b.len()) <= 5 && strsim::damerau_levenshtein(a, b) == 1;
    if one_letter_off { 0.8_f64.max(strsim::jaro_winkler(a, b)) } else { strsim::jaro_winkler(a, b) }
}

/// `ReadFile`, `read-file` and `Read File` as `read_file`.
fn snake_case(written: &str) -> String {
    let mut out = String::with_capacity(written.len() + 4);
    let mut after_lower = false;
    for c in written.trim().chars() {
        if c.is_uppercase() && after_lower {
            out.push('_');
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        match c {
            '-' | ' ' => out.push('_'),
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<ToolName> {
        names.iter().map(|name| ToolName::new(name).unwrap()).collect()
    }

    fn visible() -> BTreeSet<ToolName> {
        set(&["read_file", "write_file", "todo", "terminal"])
    }

    #[test]
    fn spelling_is_normalised() {
        let visible = visible();
        for (written, meant) in [
            ("read_file", "read_file"),
            ("Read_File", "read_file"),
            ("ReadFile", "read_file"),
            ("read-file", "read_file"),
            (" READ FILE ", "read_file"),
            ("read_file_tool", "read_file"),
            ("TodoTool", "todo"),
            ("TodoTool_tool", "todo"),
            ("terminalTool", "terminal"),
            ("readfile", "read_file"),
            ("WRITEFILE", "write_file"),
            ("terminal\" x", "terminal"),
            ("terminal'", "terminal"),
            ("ReadFile<|channel|>commentary", "read_file"),
            (" terminal > out", "terminal"),
        ] {
            assert_eq!(resolve(written, &visible).map(ToolName::as_str), Some(meant), "{written}");
        }
    }

    #[test]
    fn a_similar_name_is_offered_and_never_taken() {
        let visible = visible();
        for written in [
            "list_files",
            "create_file",
            "remove_file",
            "terminate",
            "writefile2",
            "todos",
            "",
            "_",
            "tool",
            "_tool",
            "\"terminal\"",
            "<terminal>",
            "mcp__x__write_file",
            "x.terminal",
            "<",
            "\"",
        ] {
            assert_eq!(resolve(written, &visible), None, "{written}");
        }
        assert_eq!(nearest("writ_file", visible.iter().map(ToolName::as_str))[0], "write_file");
    }

    /// Pairs that similarity took for one another in the field (spec core §20 item 19, agent §21.1.1), each with the
    /// dangerous tool alone in sight.
    #[test]
    fn no_name_is_ever_redirected_to_another_tool() {
        for (written, dangerous) in [
            ("list_files", "write_file"),
            ("create_file", "read_file"),
            ("create_file", "write_file"),
            ("rename_file", "read_file"),
            ("remove_file", "read_file"),
            ("kanban_unlink", "kanban_link"),
            ("kanban_delete", "kanban_complete"),
            ("skills_delete", "skills_list"),
            ("browser_close", "browser_console"),
            ("create_task", "delegate_task"),
            ("terminate", "terminal"),
            ("search", "web_search"),
            ("ha_get_service", "ha_list_services"),
            ("mcp__x__write_file", "write_file"),
        ] {
            let alone = set(&[dangerous]);
            for spelling in
                [written.to_owned(), written.to_uppercase(), format!("{written}_tool"), format!("{written}\" x")]
            {
                assert_eq!(resolve(&spelling, &alone), None, "{spelling} is not {dangerous}");
            }
        }
    }

    #[test]
    fn names_of_other_agents_find_their_tool() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (shell, edit) = (names(&["bash", "shell"]), names(&["edit", "bash"]));
        let tools = || [("patch", edit.as_slice()), ("terminal", shell.as_slice())];
        for (written, found) in [
            ("shell", vec!["terminal"]),
            ("Shell", vec!["terminal"]),
            ("shell_tool", vec!["terminal"]),
            ("bash", vec!["patch", "terminal"]),
            ("bas", vec![]),
            ("terminal", vec![]),
        ] {
            assert_eq!(known_elsewhere(written, tools()), found, "{written}");
        }
    }
}
