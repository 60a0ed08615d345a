//! `hermes env list`: the places where commands can run.

mod list;

use crate::args::EnvVerb;
use crate::words::{Exit, Failure};
use crate::world::World;

pub(crate) fn run(world: &World, verb: &EnvVerb) -> Result<Exit, Failure> {
    match verb {
        EnvVerb::List { json } => list::run(world, json.json),
    }
}
