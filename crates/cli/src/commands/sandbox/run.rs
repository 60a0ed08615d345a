//! `hermes sandbox run -- CMD…`.
//!
//! What went wrong with the sandbox itself ends with 125, as other programs that run a command do it (`env`, `timeout`,
//! `docker run`), so that it cannot be taken for the command's own failure.

use std::io;
use std::os::unix::process::ExitStatusExt as _;

use hermes_exec::sandbox::{Limits, Mechanism, Network, View, WritableRoot, launch, preflight};

use super::{confinement, real};
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
    let folder = real(world, &world.cwd).map_err(not_confined)?;
    let mut confinement = confinement(world, mechanism, &folder);
    for path in &args.writable {
        confinement.writable.push(WritableRoot::direct(real(world, path).map_err(not_confined)?));
    }
    confinement.hidden.extend(args.hide.iter().map(|path| world.cwd.join(path)));
    if args.network {
        confinement.network = Network::Open;
    }
    if args.strict {
        confinement.view = View::System { home: real(world, &world.user_home).map_err(not_confined)? };
        confinement.limits = Limits::STRICT;
    }
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
