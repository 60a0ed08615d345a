//! `hermes sandbox check|run`: what the sandbox is worth here, and the same sandbox for the person's own commands.

mod check;
mod run;

use std::path::{Path, PathBuf};

use hermes_exec::sandbox::{Confinement, Mechanism, WritableRoot, secrets};

use crate::args::SandboxVerb;
use crate::words::{Exit, Failure};
use crate::world::World;

pub(crate) fn run(world: &World, verb: &SandboxVerb) -> Result<Exit, Failure> {
    match verb {
        SandboxVerb::Check { json } => check::run(world, json.json),
        SandboxVerb::Run(args) => run::run(world, args),
    }
}

/// What holds for a command in `folder` if nothing else is said.
fn confinement(world: &World, mechanism: Mechanism, folder: &Path) -> Confinement {
    let mut confinement = Confinement::new(mechanism);
    confinement.writable = vec![WritableRoot::direct(folder)];
    confinement.hidden = secrets(&world.user_home, &world.home);
    confinement
}

/// `path` without links, which a confinement asks for.
fn real(world: &World, path: &Path) -> Result<PathBuf, Failure> {
    let path = world.cwd.join(path);
    std::fs::canonicalize(&path).map_err(|error| Failure::new(format!("{}: {error}", world.shown(&path))))
}
