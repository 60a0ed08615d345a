//! What several tools share.

pub(crate) mod encoding;
pub(crate) mod known;
pub(crate) mod paths;
pub(crate) mod text;
pub(crate) mod window;
pub(crate) mod words;
