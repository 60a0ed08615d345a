//! What several tools share.

#[allow(dead_code)]
pub(crate) mod encoding;
pub(crate) mod known;
pub(crate) mod paths;
pub(crate) mod text;
pub(crate) mod words;
