//! `hermes env list`.

use hermes_core::Capabilities;
use hermes_exec::LocalEnvironment;
use serde_json::{Value, json};

use super::{LOCAL, NOT_YET};
use crate::config::Config;
use crate::terminal::out;
use crate::terminal::text::{padded, wrapped};
use crate::words::{Exit, Failure};
use crate::world::World;

pub(super) fn run(world: &World, as_json: bool) -> Result<Exit, Failure> {
    let config = Config::load_and_warn(world)?;
    let chosen = config.text("terminal.backend").unwrap_or_default();
    let local = LocalEnvironment::CAPABILITIES;
    if as_json {
        let mut all = vec![json!({
            "name": LOCAL,
            "available": true,
            "chosen": chosen == LOCAL,
            "capabilities": in_json(local),
        })];
        all.extend(NOT_YET.iter().map(
            |(name, _)| json!({ "name": name, "available": false, "chosen": false, "capabilities": Value::Null }),
        ));
        out::pretty(&Value::Array(all))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    let mut row = |mark: &str, name: &str, says: &str| {
        text += &format!("  {mark} {} {}\n", padded(name, 12), wrapped(says, 80, 17).trim_start());
    };
    let can = in_words(local);
    row(if chosen == LOCAL { "●" } else { "○" }, LOCAL, &format!("this machine · {can}"));
    for (name, what_for) in NOT_YET {
        row("·", name, &format!("{what_for} · not in this build yet"));
    }
    text += "● is chosen (terminal.backend)\n";
    out::line(&text)?;
    Ok(Exit::Done)
}

/// The promises, with the names that people read and those that programs do.
fn promises(can: Capabilities) -> [(&'static str, &'static str, bool); 6] {
    let Capabilities { background, terminal, input, file_transfer, snapshot, network_policy } = can;
    [
        ("background", "keeps processes in the background", background),
        ("terminal", "gives commands a terminal", terminal),
        ("input", "gives them input", input),
        ("file_transfer", "brings files there and back", file_transfer),
        ("snapshot", "puts files back as they were", snapshot),
        ("network_policy", "keeps commands from the network", network_policy),
    ]
}

fn in_words(can: Capabilities) -> String {
    let words: Vec<&str> = promises(can).into_iter().filter(|(.., kept)| *kept).map(|(_, words, _)| words).collect();
    if words.is_empty() { "runs commands and reaches files".into() } else { words.join(", ") }
}

fn in_json(can: Capabilities) -> Value {
    promises(can)
        .into_iter()
        .map(|(name, _, kept)| (name.to_owned(), Value::Bool(kept)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
