//! A judge that reads nothing: for programs that embed the runtime without a guard of commands, and for tests.
//!
//! What reaches nothing, and what only reads below the folder in which the task began (or in the session's own folder of
//! stored results), may run. Everything else asks. A `cd` does not widen what may be read. It never tries to recognise a
//! harmless command; `hermes_guard::Guard` does.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use hermes_core::{ApprovalScope, Concern, Effect, Judge, JudgeRequest, Verdict, shown_path};

/// See the top of this file.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainJudge;

impl Judge for PlainJudge {
    fn judge(&self, request: &JudgeRequest<'_>) -> Verdict {
        let touches = request.touches;
        let quiet = matches!(request.spec.effect, Effect::None | Effect::Converse | Effect::Read);
        let inside = |path: &Path| {
            path.starts_with(request.root) || request.own_folders.iter().any(|folder| path.starts_with(folder))
        };
        if quiet
            && touches.command.is_none()
            && touches.writes.is_empty()
            && touches.reads.iter().all(|path| inside(path))
        {
            return Verdict::Allow;
        }
        Verdict::Ask(concern(request))
    }
}

fn concern(request: &JudgeRequest<'_>) -> Concern {
    let tool = &request.spec.name;
    let root = request.root.display();
    if let Some(command) = &request.touches.command {
        let cwd = request.touches.runs_in.as_deref().unwrap_or(request.cwd);
        let scope = ApprovalScope {
            key: key("command", [tool.as_str().as_bytes(), cwd.as_os_str().as_bytes(), command.as_bytes()]),
            words: format!("exactly this command in {}", cwd.display()),
            lasting: false,
        };
        return Concern::new("runs a command", None, Some(scope));
    }
    if !request.touches.writes.is_empty() {
        let paths = Paths::of(&request.touches.writes, request);
        let words = format!("any change of {}", paths.shown);
        let scope = ApprovalScope { key: key("write", paths.bytes), words, lasting: false };
        return Concern::new(format!("changes {}", paths.shown), paths.outside, Some(scope));
    }
    if !request.touches.reads.is_empty() {
        let paths = Paths::of(&request.touches.reads, request);
        let words = format!("reading {}", paths.shown);
        let scope = ApprovalScope { key: key("read", paths.bytes), words, lasting: false };
        return Concern::new(format!("reads {}, outside of {root}", paths.shown), paths.outside, Some(scope));
    }
    // A tool that acts but does not say on what: only this very call can be allowed.
    let arguments = serde_json::Value::Object(request.arguments.clone());
    let scope = ApprovalScope {
        key: key("call", [tool.as_str().as_bytes(), arguments.to_string().as_bytes()]),
        words: "exactly this call".into(),
        lasting: false,
    };
    Concern::new(format!("calls {tool}"), None, Some(scope))
}

/// The parts of a scope, told apart by their lengths: paths are bytes and need not be text, and no two scopes share a key.
fn key<'a>(kind: &'a str, parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut key = kind.to_owned();
    for part in parts {
        key.push_str(&format!(" {} {}", part.len(), part.escape_ascii()));
    }
    key
}

/// Some paths, for comparing and for reading.
struct Paths<'a> {
    bytes: Vec<&'a [u8]>,
    shown: String,
    /// Set if one of them lies outside of the folder in which the task began.
    outside: Option<String>,
}

impl<'a> Paths<'a> {
    fn of(paths: &'a [PathBuf], request: &JudgeRequest<'_>) -> Self {
        let shown: Vec<String> = paths.iter().map(|path| shown_path(path, request.cwd)).collect();
        let outside = paths.iter().filter(|path| !path.starts_with(request.root));
        let outside: Vec<String> = outside.map(|path| path.display().to_string()).collect();
        Self {
            bytes: paths.iter().map(|path| path.as_os_str().as_bytes()).collect(),
            shown: shown.join(", "),
            outside: (!outside.is_empty())
                .then(|| format!("outside of {}: {}", request.root.display(), outside.join(", "))),
        }
    }
}
