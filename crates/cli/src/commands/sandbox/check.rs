//! `hermes sandbox check`.

use hermes_exec::local::{Reach, SandboxWish, Strictness};
use hermes_exec::sandbox::{Level, Mechanism, Preflight, preflight};
use serde_json::{Value, json};

use super::{confinement, here};
use crate::terminal::out;
use crate::terminal::text::{padded, visible, wrapped};
use crate::words::{Exit, Failure};
use crate::world::World;

pub(super) fn run(world: &World, as_json: bool) -> Result<Exit, Failure> {
    let preflight = preflight();
    let best = preflight.best();
    // What `run` gives without options.
    let strictness = Strictness::Workspace;
    let wish = SandboxWish { strictness, writable: Vec::new(), hidden: Vec::new(), reach: Reach::Off };
    let level = Level::of(&confinement(world, best, &here(world)?, wish), &preflight);
    let exit = if best == Mechanism::None { Exit::Failed } else { Exit::Done };
    if as_json {
        out::pretty(&in_json(&preflight, &level))?;
        return Ok(exit);
    }
    let mut text = String::new();
    for probe in &preflight.probes {
        let (mark, says) = match &probe.outcome {
            Ok(()) if probe.mechanism == best => ("✓", "works, and is used".to_owned()),
            Ok(()) => ("✓", "works".to_owned()),
            // That of another system is missed by nobody.
            Err(why) if probe.mechanism == Mechanism::Seatbelt => ("·", visible(why)),
            Err(why) => ("✗", visible(why)),
        };
        text += &entry(mark, probe.mechanism.name(), &says);
    }
    if best == Mechanism::None {
        text += "Nothing works here: commands cannot be confined. Exit 1.\n";
        out::line(&text)?;
        return Ok(exit);
    }
    text += &format!("\nWhat holds for a command in the sandbox ({}):\n\n", best.name());
    let Level { files, processes, network, system_calls } = &level;
    for (what, holds) in
        [("files", files), ("processes", processes), ("network", network), ("system calls", system_calls)]
    {
        text += &entry(" ", what, holds);
    }
    text += "\nTo try it: hermes sandbox run -- CMD\n";
    out::line(&text)?;
    Ok(exit)
}

fn entry(mark: &str, name: &str, says: &str) -> String {
    format!("  {mark} {} {}\n", padded(name, 13), wrapped(says, 80, 18).trim_start())
}

fn in_json(preflight: &Preflight, level: &Level) -> Value {
    let mechanisms: Vec<Value> = preflight
        .probes
        .iter()
        .map(|probe| {
            let why = probe.outcome.as_ref().err();
            json!({ "name": probe.mechanism.name(), "works": why.is_none(), "why_not": why })
        })
        .collect();
    json!({
        "mechanisms": mechanisms,
        "landlock_version": preflight.landlock,
        "used": preflight.best().name(),
        "level": level,
    })
}
