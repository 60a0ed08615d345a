//! Paths as people and models like to see them.

use std::path::{Path, PathBuf};

use hermes_core::{ToolCx, ToolError, shown_path, stated_path};

/// The path that `raw` means in a call of `tool`, or why there can be no file of that name.
pub(crate) fn stated(cx: &ToolCx, tool: &str, raw: &str) -> Result<PathBuf, ToolError> {
    match stated_path::refusal(raw) {
        Some(why) => Err(ToolError::tell(format!("{tool}: {why}; nothing was done"))),
        None => Ok(cx.resolve(raw)),
    }
}

/// The same for a path at which there must be a file, or nothing.
pub(crate) fn stated_file(cx: &ToolCx, tool: &str, raw: &str) -> Result<PathBuf, ToolError> {
    let path = stated(cx, tool, raw)?;
    if stated_path::is_of_a_folder(raw) {
        return Err(ToolError::tell(format!("{tool}: {raw} is a directory by its name; nothing was done")));
    }
    Ok(path)
}

/// `path` relative to the session's directory where it lies below it, else as it is.
pub(crate) fn shown(cx: &ToolCx, path: &Path) -> String {
    shown_path(path, &cx.environment.cwd())
}

/// Names beside `path` that look like it, nearest first, as full paths; its own, if that is a link to nothing, is none.
pub(crate) async fn similar(cx: &ToolCx, path: &Path) -> Vec<String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let names = cx.environment.list(folder).await.unwrap_or_default();
    let wanted = name.to_lowercase();
    let mut scored: Vec<(f64, String)> = names
        .into_iter()
        .filter(|candidate| candidate != name)
        .map(|candidate| (strsim::jaro_winkler(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= 0.8)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take(5).map(|(_, name)| folder.join(name).display().to_string()).collect()
}
