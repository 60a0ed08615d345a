//! `hermes sandbox check|run`: what the sandbox is worth here, and the same sandbox for the person's own commands.

mod check;
mod run;

use std::path::{Path, PathBuf};

use hermes_exec::local::SandboxWish;
use hermes_exec::sandbox::{Confinement, Mechanism};

use crate::args::SandboxVerb;
use crate::words::{Exit, Failure};
use crate::world::World;

pub(crate) fn run(world: &World, verb: &SandboxVerb) -> Result<Exit, Failure> {
    match verb {
        SandboxVerb::Check { json } => check::run(world, json.json),
        SandboxVerb::Run(args) => run::run(world, args),
    }
}

/// What a command that works in `folder` may do. Keys and credentials are hidden besides what `wish` says.
fn confinement(world: &World, mechanism: Mechanism, folder: &Path, mut wish: SandboxWish) -> Confinement {
    wish.hidden.extend(world.secret_places());
    wish.confinement(mechanism, &[folder], &world.user_home, &world.variables().collect())
}

/// The current directory without links, which a confinement asks for.
fn here(world: &World) -> Result<PathBuf, Failure> {
    std::fs::canonicalize(&world.cwd).map_err(|error| Failure::new(format!("{}: {error}", world.shown(&world.cwd))))
}
