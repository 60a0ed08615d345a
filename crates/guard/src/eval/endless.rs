//! Loops that start processes without end, told by their shape.

use crate::shell::syntax::{Command, Compound, Item, Script, Word};

/// Whether a loop's condition never changes its mind.
pub(super) fn is_constant(condition: &Script) -> bool {
    let [item] = condition.items.as_slice() else { return false };
    let [command] = item.first.stages.as_slice() else { return false };
    match command {
        Command::Simple(simple) => {
            let words: Vec<_> = simple.words.iter().map(Word::bare).collect();
            item.rest.is_empty()
                && matches!(
                    words.as_slice(),
                    [Some(":" | "true" | "false" | "/bin/true" | "echo" | "printf"), ..]
                        | [Some("sleep"), Some("0")]
                        | [Some("["), Some(_), Some("]")]
                        | [Some("test"), Some(_)]
                )
        }
        Command::Compound(compound, _) => match &**compound {
            Compound::Arithmetic(word) => word.bare().is_some_and(|text| text.trim().parse::<i64>().is_ok()),
            Compound::Test(words) => words.len() == 1,
            _ => false,
        },
        Command::Function(..) => false,
    }
}

/// Whether each round of an endless loop leaves something running and waits for nothing.
pub(super) fn spawns_without_end(body: &Script) -> bool {
    let mut spawns = false;
    for item in &body.items {
        spawns |= item.background || holds_background(item);
        if !item.background && waits(item) {
            return false;
        }
    }
    spawns
}

fn stages(item: &Item) -> impl Iterator<Item = &Command> {
    std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline)).flat_map(|p| &p.stages)
}

fn inner(command: &Command) -> Vec<&Script> {
    let Command::Compound(compound, _) = command else { return Vec::new() };
    match &**compound {
        Compound::Group(script) | Compound::Subshell(script) => vec![script],
        Compound::If(arms, otherwise) => arms.iter().flat_map(|(a, b)| [a, b]).chain(otherwise).collect(),
        Compound::Loop { condition, body, .. } => vec![condition, body],
        Compound::For { body, .. } | Compound::ArithmeticFor { body, .. } => vec![body],
        Compound::Case { arms, .. } => arms.iter().map(|(_, script)| script).collect(),
        Compound::Arithmetic(_) | Compound::Test(_) | Compound::Coprocess(_) => Vec::new(),
    }
}

fn holds_background(item: &Item) -> bool {
    stages(item).flat_map(inner).any(|script| script.items.iter().any(|item| item.background || holds_background(item)))
}

fn waits(item: &Item) -> bool {
    const PATIENT: [&str; 12] =
        ["wait", "sleep", "read", "break", "exit", "return", "inotifywait", "select", "fg", "nc", "accept", "flock"];
    stages(item).any(|command| match command {
        Command::Simple(simple) => {
            simple.words.first().and_then(Word::bare).is_some_and(|name| PATIENT.contains(&name))
        }
        other => inner(other).iter().any(|script| script.items.iter().any(|item| !item.background && waits(item))),
    })
}
