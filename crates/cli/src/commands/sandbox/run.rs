//! `hermes sandbox run -- CMD…`.
//!
//! What went wrong with the sandbox itself ends with 125, as other programs that run a command do it (`env`, `timeout`,
//! `docker run`), so that it cannot be taken for the command's own failure.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use hermes_exec::local::{Reach, SandboxWish, Strictness};
use hermes_exec::sandbox::{Mechanism, launch, preflight};

use super::{confinement, here};
use crate::args::SandboxRunArgs;
use crate::words::{Exit, Failure};
use crate::world::World;

/// The sandbox could not be set up.
const NOT_CONFINED: Exit = Exit::Like(125);
/// The command is there and cannot be run.
const NOT_RUN: Exit = Exit::Like(126);
/// The command is not there.
const NOT_FOUND: Exit = Exit::Like(127);

pub(super) fn run(world: &World, args: &SandboxRunArgs) -> Result<Exit, Failure> {
    let not_confined = |failure: Failure| Failure { exit: NOT_CONFINED, ..failure };
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::usage("a command is missing (hermes sandbox run -- CMD)"));
    };
    let mechanism = preflight().best();
    if mechanism == Mechanism::None {
        let why = "nothing can confine a command here, so it did not run (hermes sandbox check says why)";
        return Err(not_confined(Failure::new(why)));
    }
    let folder = here(world).map_err(not_confined)?;
    let wish = SandboxWish {
        strictness: if args.strict { Strictness::Strict } else { Strictness::Workspace },
        writable: args
            .writable
            .iter()
            .map(|path| there(world, path))
            .collect::<Result<_, _>>()
            .map_err(not_confined)?,
        hidden: args.hide.iter().map(|path| there(world, path)).collect::<Result<_, _>>().map_err(not_confined)?,
        reach: if args.network { Reach::Open } else { Reach::Off },
    };
    let confinement = confinement(world, mechanism, &folder, wish);
    let ended = launch(&confinement, program, arguments).map_err(|error| {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            io::ErrorKind::PermissionDenied => NOT_RUN,
            _ => NOT_CONFINED,
        };
        Failure { message: format!("{}: {error}; it did not run", program.to_string_lossy()), exit }
    })?;
    // As a shell says it.
    let code = ended.code().or_else(|| ended.signal().map(|signal| 128 + signal));
    Ok(Exit::Like(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// A path that is named must be there: one that is mistyped would be neither writable nor hidden.
fn there(world: &World, path: &Path) -> Result<PathBuf, Failure> {
    let path = world.cwd.join(path);
    match std::fs::canonicalize(&path) {
        Ok(real) => Ok(real),
        Err(error) => Err(Failure::new(format!("{}: {error}; nothing ran", world.shown(&path)))),
    }
}
