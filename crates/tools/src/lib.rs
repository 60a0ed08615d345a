//! The built-in tools, one file each.
//!
//! A tool is a file in `src/builtin/`; nothing else has to change. Every file there is a module, the build script finds
//! those that register a tool and writes the sorted table; two tools of one name do not compile. `builtin/calculate.rs`
//! is the page to copy.
//!
//! What this crate refuses to do: know how calls are dispatched, how commands are run or who approves them. A tool asks
//! the ports in its [`hermes_core::ToolCx`], and nothing else.
//!
//! Start reading at [`declare`], then any file of `src/builtin/`.

pub mod declare;
mod support;

use std::sync::Arc;

use hermes_core::{Tool, ToolSource};

mod builtin {
    //! A module for each file of `src/builtin/`, and the table of those that register a tool, from the build script.
    automod::dir!("src/builtin");

    type MakeTool = fn() -> std::sync::Arc<dyn hermes_core::Tool>;

    include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

    pub(crate) fn all() -> Vec<std::sync::Arc<dyn hermes_core::Tool>> {
        TABLE.iter().map(|(_, tool)| tool()).collect()
    }
}

/// What every tool file needs.
mod prelude {
    pub(crate) use crate::declare::{Builtin, fails, gives};
    pub(crate) use hermes_core::{Effect, Tool, ToolCx, ToolError, ToolOutput, ToolResult, Touches};
    pub(crate) use schemars::JsonSchema;
    pub(crate) use serde::Deserialize;
    pub(crate) use serde_json::{Value, json};
}

/// The built-in tools as a source for the registry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builtins;

impl ToolSource for Builtins {
    fn name(&self) -> &'static str {
        "built-in"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        builtin::all()
    }
}
