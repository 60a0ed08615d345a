//! What an approval is bound to: a digest of everything that decides what would happen.

use hermes_core::{JsonMap, Touches};
use sha2::{Digest as _, Sha256};

use crate::task::Task;

/// SHA-256, in hex, over the tool, its arguments, the command, the directory and the environment. Each part is preceded
/// by its length, so that no two different calls spell the same bytes.
pub(super) fn digest(task: &Task, tool: &str, arguments: &JsonMap, touches: &Touches) -> String {
    let cwd = touches.runs_in.clone().unwrap_or_else(|| task.environment.cwd());
    let arguments = serde_json::Value::Object(arguments.clone()).to_string();
    let mut hash = Sha256::new();
    for part in [
        tool.as_bytes(),
        arguments.as_bytes(),
        touches.command.as_deref().unwrap_or_default().as_bytes(),
        cwd.as_os_str().as_encoded_bytes(),
        task.environment.fingerprint().as_bytes(),
    ] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    format!("{:x}", hash.finalize())
}
