//! Checkpoints: what a turn changed comes back, what others changed stays, and nothing is lost on the way.
#![allow(clippy::unwrap_used)]

mod going_back;
mod keeping;
mod laws;
mod place;
