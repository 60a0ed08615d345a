//! Reading the name that a model wrote.
//!
//! Case, separators and a `tool` suffix are habits of spelling and are normalised. Similarity is not: the nearest name
//! is only ever *offered*, because `list_files` is 80 % of `write_file` (spec agent §21.1.1).

use std::collections::BTreeSet;

use hermes_core::ToolName;

/// The tool that `written` means, if only its spelling differs.
pub fn resolve<'a>(written: &str, visible: &'a BTreeSet<ToolName>) -> Option<&'a ToolName> {
    if let Some(exact) = visible.get(written) {
        return Some(exact);
    }
    let plain = snake_case(written);
    let bare =
        ["_tool", "tool"].iter().find_map(|suffix| plain.strip_suffix(suffix)).map(|bare| bare.trim_end_matches('_'));
    let spelt = [Some(plain.as_str()), bare].into_iter().flatten().find_map(|spelling| visible.get(spelling));
    // `readfile`: the same letters without the separators, if only one tool has them.
    spelt.or_else(|| {
        let letters = |name: &str| name.replace('_', "");
        let mut same = visible.iter().filter(|name| letters(&snake_case(name.as_str())) == letters(&plain));
        same.next().filter(|_| !letters(&plain).is_empty() && same.next().is_none())
    })
}

/// Up to three of `names` that look like `written`, nearest first.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let written = snake_case(written);
    let mut scored: Vec<(f64, &str)> =
        names.into_iter().map(|name| (strsim::jaro_winkler(&written, &snake_case(name)), name)).collect();
    scored.retain(|(score, _)| *score >= 0.75);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
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

    fn visible() -> BTreeSet<ToolName> {
        ["read_file", "write_file", "todo", "terminal"].iter().map(|name| ToolName::new(name).unwrap()).collect()
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
            ("terminalTool", "terminal"),
            ("readfile", "read_file"),
            ("WRITEFILE", "write_file"),
        ] {
            assert_eq!(resolve(written, &visible).map(ToolName::as_str), Some(meant), "{written}");
        }
    }

    #[test]
    fn a_similar_name_is_offered_and_never_taken() {
        let visible = visible();
        for written in
            ["list_files", "create_file", "remove_file", "terminate", "writefile2", "todos", "", "_", "tool", "_tool"]
        {
            assert_eq!(resolve(written, &visible), None, "{written}");
        }
        assert_eq!(nearest("writ_file", visible.iter().map(ToolName::as_str))[0], "write_file");
    }
}
