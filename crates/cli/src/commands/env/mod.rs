//! `hermes env list|test`: the places where commands can run.

mod list;
mod test;

use hermes_runtime::names::did_you_mean;

use crate::args::EnvVerb;
use crate::terminal::text::visible;
use crate::words::{Exit, Failure};
use crate::world::World;

/// The backend of this machine.
const LOCAL: &str = "local";
/// The same inside of its sandbox, for `env test`.
const SANDBOX: &str = "sandbox";

/// What users of the original know and this build has not, with what each is.
const NOT_YET: [(&str, &str); 6] = [
    ("docker", "a container of Docker"),
    ("podman", "a container of Podman"),
    ("ssh", "another host"),
    ("singularity", "a container of Apptainer"),
    ("modal", "a sandbox at modal.com"),
    ("daytona", "a workspace at daytona.io"),
];

/// Refuses a name that is no backend of this build.
pub(crate) fn must_be_here(name: &str) -> Result<(), Failure> {
    if NOT_YET.iter().any(|(known, _)| *known == name) {
        return Err(Failure::new(format!("the backend {name} is not in this build yet (hermes env list)")));
    }
    if name != LOCAL {
        let hint = did_you_mean(name, NOT_YET.iter().map(|(name, _)| *name).chain([LOCAL, SANDBOX]));
        return Err(Failure::usage(format!("there is no backend \"{}\"{hint} (hermes env list)", visible(name))));
    }
    Ok(())
}

pub(crate) async fn run(world: &World, verb: EnvVerb) -> Result<Exit, Failure> {
    match verb {
        EnvVerb::List { json } => list::run(world, json.json),
        EnvVerb::Test { name, json } => test::run(world, name.as_deref(), json.json).await,
    }
}
