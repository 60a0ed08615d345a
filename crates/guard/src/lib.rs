//! Judge: what a command would do, who must be asked, and what may be read, fetched and shown.

pub mod injection;
pub mod paths;
pub mod url_policy;
