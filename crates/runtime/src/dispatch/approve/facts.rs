//! What a person is told besides the command itself: what it meets on the disk.

use std::path::{Path, PathBuf};

use hermes_core::{Doubt, Environment, FileErrorKind, FileKind, Touches, grouped, shown_path};

use crate::dispatch::Call;
use crate::task::Task;

/// How many files are counted before it is "more than".
const MOST_COUNTED: u64 = 10_000;

pub(super) fn subject(call: &Call<'_>, stated: &Touches) -> String {
    let cwd = call.scope.task.environment.cwd();
    let paths: Vec<String> = stated.writes.iter().chain(&stated.reads).map(|path| shown_path(path, &cwd)).collect();
    let paths = (!paths.is_empty()).then(|| paths.join("\n"));
    let headline = || call.entry.as_ref().map(|entry| entry.tool.headline(&call.arguments)).unwrap_or_default();
    stated.command.clone().or(paths).unwrap_or_else(headline)
}

/// A person who allows a write should know what it meets.
pub(super) async fn what_is_there(task: &Task, writes: &[PathBuf]) -> Vec<String> {
    let mut lines = Vec::new();
    for path in writes {
        let name = shown_path(path, &task.environment.cwd());
        lines.push(match task.environment.stat(path).await {
            Ok(stat) if stat.kind == FileKind::File => format!("{name} exists: {} bytes", grouped(stat.len)),
            Ok(stat) => format!("{name} is {}", stat.kind.in_words()),
            Err(error) if error.kind == FileErrorKind::NotFound => format!("{name} does not exist yet"),
            Err(error) => error.to_string(),
        });
    }
    lines
}

/// A person who reads the name of a link is told what is behind it.
pub(super) fn where_links_lead(stated: &Touches, real: &Touches) -> Vec<String> {
    let paths = |touches: &Touches| -> Vec<PathBuf> {
        touches.reads.iter().chain(&touches.writes).chain(&touches.runs_in).cloned().collect()
    };
    let pairs = paths(stated).into_iter().zip(paths(real));
    pairs
        .filter(|(stated, real)| stated != real)
        .map(|(stated, real)| format!("{} leads to {}", stated.display(), real.display()))
        .collect()
}

/// How much would be gone, for each deletion whose target is there: "132 files, 4.1 MB under ./build".
pub(super) async fn what_would_go(task: &Task, doubts: &[Doubt]) -> Vec<String> {
    let mut lines = Vec::new();
    for path in doubts.iter().filter_map(|doubt| doubt.deletes.as_deref()) {
        let name = shown_path(path, &task.environment.cwd());
        let line = match measured(&*task.environment, path).await {
            None => format!("{name} is not there"),
            Some(Size { files: 1, bytes, alone: true, .. }) => format!("1 file, {}: {name}", in_units(bytes)),
            Some(Size { files, bytes, more, .. }) => {
                let more = if more { "more than " } else { "" };
                let files = if files == 1 { "1 file".to_owned() } else { format!("{} files", grouped(files)) };
                format!("{more}{files}, {} under {name}", in_units(bytes))
            }
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

struct Size {
    files: u64,
    bytes: u64,
    /// The path is a file and no folder.
    alone: bool,
    /// Counting was given up.
    more: bool,
}

/// Counts what is below a path. Links are counted and not followed.
async fn measured(environment: &dyn Environment, path: &Path) -> Option<Size> {
    let stat = environment.stat(path).await.ok()?;
    if stat.kind != FileKind::Directory {
        return Some(Size { files: 1, bytes: stat.len, alone: true, more: false });
    }
    let mut size = Size { files: 0, bytes: 0, alone: false, more: false };
    let mut folders: Vec<PathBuf> = vec![environment.real_path(path).await.ok()?];
    while let Some(folder) = folders.pop() {
        for name in environment.list(&folder).await.unwrap_or_default() {
            let entry = folder.join(name);
            if size.files >= MOST_COUNTED {
                size.more = true;
                return Some(size);
            }
            let is_link = environment.real_path(&entry).await.is_ok_and(|real| real != entry);
            match environment.stat(&entry).await {
                Ok(stat) if stat.kind == FileKind::Directory && !is_link => folders.push(entry),
                Ok(stat) if !is_link => {
                    size.files += 1;
                    size.bytes += stat.len;
                }
                Ok(_) | Err(_) => size.files += 1,
            }
        }
    }
    Some(size)
}

/// Bytes as people read them: 980 bytes, 4.1 MB.
fn in_units(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    match bytes {
        1 => return "1 byte".into(),
        0..1_000 => return format!("{bytes} bytes"),
        _ => {}
    }
    #[allow(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
    let mut value = bytes as f64 / 1_000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1_000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_without_counting_digits() {
        assert_eq!((in_units(1).as_str(), in_units(980).as_str()), ("1 byte", "980 bytes"));
        assert_eq!(in_units(4_100_000), "4.1 MB");
        assert_eq!(in_units(999_999), "1.0 MB");
        assert_eq!(in_units(1_000), "1.0 kB");
    }
}
