//! The judge that stands in until commands are read by a grammar.
//!
//! It knows three answers. What reaches nothing, and what only reads inside the session's directory (or the session's
//! own folder of stored results), may run. Everything else asks. It never tries to recognise a harmless command.

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
            path.starts_with(request.cwd) || request.own_folders.iter().any(|folder| path.starts_with(folder))
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
    if let Some(command) = &request.touches.command {
        let cwd = request.touches.runs_in.as_deref().unwrap_or(request.cwd).display();
        return Concern {
            reason: "runs a command".into(),
            note: None,
            scope: ApprovalScope {
                key: format!("{tool}\0{cwd}\0{command}"),
                words: format!("exactly this command in {cwd}"),
            },
        };
    }
    if !request.touches.writes.is_empty() {
        let paths = Paths::of(&request.touches.writes, request.cwd);
        return Concern {
            reason: format!("changes {}", paths.shown),
            note: paths.outside,
            scope: ApprovalScope { key: format!("write\0{}", paths.key), words: format!("changing {}", paths.shown) },
        };
    }
    if !request.touches.reads.is_empty() {
        let paths = Paths::of(&request.touches.reads, request.cwd);
        return Concern {
            reason: format!("reads {}, outside of {}", paths.shown, request.cwd.display()),
            note: paths.outside,
            scope: ApprovalScope { key: format!("read\0{}", paths.key), words: format!("reading {}", paths.shown) },
        };
    }
    // A tool that acts but does not say on what: only this very call can be allowed.
    let arguments = serde_json::Value::Object(request.arguments.clone());
    Concern {
        reason: format!("calls {tool}"),
        note: None,
        scope: ApprovalScope { key: format!("{tool}\0{arguments}"), words: "exactly this call".into() },
    }
}

/// Some paths, for comparing and for reading.
struct Paths {
    key: String,
    shown: String,
    /// Set if one of them lies outside of the session's directory.
    outside: Option<String>,
}

impl Paths {
    fn of(paths: &[PathBuf], cwd: &Path) -> Self {
        let outside: Vec<String> =
            paths.iter().filter(|path| !path.starts_with(cwd)).map(|path| path.display().to_string()).collect();
        let joined = |text: &dyn Fn(&Path) -> String, between| {
            paths.iter().map(|path| text(path)).collect::<Vec<_>>().join(between)
        };
        Self {
            // A path cannot contain a NUL byte, so no two lists share a key.
            key: joined(&|path| path.display().to_string(), "\0"),
            shown: joined(&|path| shown_path(path, cwd), ", "),
            outside: (!outside.is_empty()).then(|| format!("outside of {}: {}", cwd.display(), outside.join(", "))),
        }
    }
}
