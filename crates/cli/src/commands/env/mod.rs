//! `hermes env list|test`: the places where commands can run.

mod list;
mod test;

use crate::args::EnvVerb;
use crate::words::{Exit, Failure};
use crate::world::World;

/// The backend of this machine.
const LOCAL: &str = "local";

/// What users of the original know and this build has not, with what each is.
const NOT_YET: [(&str, &str); 6] = [
    ("docker", "a container of Docker"),
    ("podman", "a container of Podman"),
    ("ssh", "another host"),
    ("singularity", "a container of Apptainer"),
    ("modal", "a sandbox at modal.com"),
    ("daytona", "a workspace at daytona.io"),
];

pub(crate) async fn run(world: &World, verb: EnvVerb) -> Result<Exit, Failure> {
    match verb {
        EnvVerb::List { json } => list::run(world, json.json),
        EnvVerb::Test { name, json } => test::run(world, name.as_deref(), json.json).await,
    }
}
