//! What several tools share.

pub(crate) mod diff;
pub(crate) mod discretion;
pub(crate) mod document;
pub(crate) mod echo;
pub(crate) mod encoding;
pub(crate) mod known;
pub(crate) mod matching;
pub(crate) mod paths;
pub(crate) mod syntax;
pub(crate) mod text;
pub(crate) mod v4a;
pub(crate) mod view;
pub(crate) mod window;
pub(crate) mod words;
