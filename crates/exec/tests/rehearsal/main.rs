//! Rehearsals, with real overlay mounts and real files.
#![allow(clippy::unwrap_used)]

#[path = "../again/mod.rs"]
mod again;
mod by_nobody;
mod committing;
mod crashes;
mod mounts;
mod place;
mod random;
mod showing;
mod underneath;
