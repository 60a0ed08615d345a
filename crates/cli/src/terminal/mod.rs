//! Everything a person sees.
//!
//! The rules: colour only adds, so everything reads without it; nothing that a model or a file says can move the cursor
//! or hide a character ([`text::visible`]); 80 columns are enough.

mod answer;
pub(crate) mod events;
pub(crate) mod markdown;
pub(crate) mod mirror;
pub(crate) mod out;
pub(crate) mod person;
pub(crate) mod screen;
pub(crate) mod signals;
pub(crate) mod text;
