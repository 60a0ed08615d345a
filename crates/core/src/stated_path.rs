//! Paths as models and people write them, and what they mean.
//!
//! There is one reading for every tool, and it is purely lexical: `.` and `..` are folded and links are not followed, so it
//! costs nothing and never fails. What cannot be a path here at all, such as one of another system, is refused by whoever
//! is about to use it ([`refusal`]), before a file of a strange name is made of it.

use std::path::{Component, Path, PathBuf};

/// The absolute path that `raw` means: `~` is `home`, a `file:` address is its path, anything relative starts at `cwd`.
pub fn resolve(raw: &str, cwd: &Path, home: &Path) -> PathBuf {
    let address = from_address(raw);
    let raw = address.as_deref().unwrap_or(raw);
    let joined = match raw.strip_prefix('~') {
        Some("") => home.to_path_buf(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => cwd.join(raw),
    };
    fold_dots(&joined)
}

/// Why `raw` is no path on a system like this one, in words that stand behind it; `None` if it may be one.
pub fn refusal(raw: &str) -> Option<String> {
    if raw.trim().is_empty() {
        return Some("the path is empty".to_owned());
    }
    if raw.contains('\0') {
        return Some("a path cannot hold a NUL character".to_owned());
    }
    if raw.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")) && from_address(raw).is_none() {
        return Some(format!("{raw} is no address of a file here; write its path"));
    }
    if let Some(rest) = raw.strip_prefix('~')
        && !rest.starts_with('/')
        && rest.contains('/')
    {
        return Some(format!("{raw} would be the home of somebody else, which is not looked up; write its path"));
    }
    let (drive, rest) = match raw.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => (Some(*drive), &raw[3..]),
        [b'\\', b'\\', ..] => (None, raw),
        _ => return None,
    };
    let there = drive.map(|drive| {
        let drive = char::from(drive.to_ascii_lowercase());
        format!("; below WSL this drive is /mnt/{drive}/{}", rest.replace('\\', "/"))
    });
    Some(format!("{raw} is a path of Windows, and this is another system{}", there.unwrap_or_default()))
}

/// The path in a `file:` address (RFC 8089).
fn from_address(raw: &str) -> Option<String> {
    let rest = raw.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = path.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

/// Whether a path says of itself that it is a folder's: no file can be meant, whatever is there.
pub fn is_of_a_folder(raw: &str) -> bool {
    raw.ends_with('/') || matches!(raw.rsplit('/').next(), Some("." | ".."))
}

fn fold_dots(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            part => folded.push(part),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_path_means_one_file() {
        let resolved = |raw| resolve(raw, Path::new("/home/me/code"), Path::new("/home/me"));
        for raw in [
            "a b.txt",
            "./a b.txt",
            "sub/../a b.txt",
            "~/code/a b.txt",
            "~//code/a b.txt",
            "/home/me/code/a b.txt",
            "/home/me//code/./x/../a b.txt",
            "/../home/me/code/a b.txt",
            "file:///home/me/code/a%20b.txt",
            "file://localhost/home/me/code/a b.txt",
        ] {
            assert_eq!(resolved(raw), Path::new("/home/me/code/a b.txt"), "{raw}");
        }
        assert_eq!(resolved("~"), Path::new("/home/me"));
        assert_eq!(resolved("~you/x"), Path::new("/home/me/code/~you/x"));
        assert_eq!(resolved("file:x"), Path::new("/home/me/code/file:x"));
    }

    #[test]
    fn dots_fold_and_never_climb_above_the_root() {
        assert_eq!(fold_dots(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(fold_dots(Path::new("/../../x")), Path::new("/x"));
    }

    #[test]
    fn what_ends_like_a_folder_is_no_file() {
        for raw in ["a/", "a/.", "a/..", ".", "..", "/"] {
            assert!(is_of_a_folder(raw), "{raw}");
        }
        for raw in ["a", "a/b", ".a", "a.", "a..", "a/.b", "..."] {
            assert!(!is_of_a_folder(raw), "{raw}");
        }
    }

    #[test]
    fn a_path_of_another_system_is_no_file_of_a_strange_name() {
        for raw in [
            r"C:\notes\a.md",
            "d:/notes/a.md",
            r"\\server\share\a.md",
            "",
            "  ",
            "a\0b",
            "~you/x",
            "file://host/x",
            "file:x",
        ] {
            assert!(refusal(raw).is_some(), "{raw}");
        }
        assert!(refusal(r"C:\notes\a.md").unwrap().contains("/mnt/c/notes/a.md"));
        for raw in ["a.md", r"odd\name", "c:", "C:notes", "/C:/x", "ab:/x", "~", "~/x", "~$notes.docx", "~x"] {
            assert!(refusal(raw).is_none(), "{raw}");
        }
    }
}
