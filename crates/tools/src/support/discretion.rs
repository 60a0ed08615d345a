//! Whose contents are not quoted: in a diff, in the nearest text, in an error.
//!
//! Who may touch a file, and which files hold secrets, is decided elsewhere (the judge). This is about what a permitted
//! change shows beside itself: a token in `.env` that has nothing to do with the change must not be in the answer because
//! it stands on the next line.

use std::ops::Range;
use std::path::Path;

use hermes_core::ToolCx;

/// How much of a content is looked at.
const HEAD: usize = 4 * 1024;

/// Whether the content of a file is not for the model: by what the judge says of the path and of what it leads to, or
/// because a private key stands in it, whatever the name.
pub(crate) fn keeps_quiet(cx: &ToolCx, stated: &Path, real: &Path, content: &[u8]) -> bool {
    cx.judge.as_ref().is_some_and(|judge| judge.withholds(stated, real).is_some()) || has_private_key(content)
}

fn has_private_key(content: &[u8]) -> bool {
    memchr::memmem::find(&content[..content.len().min(HEAD)], b"PRIVATE KEY-----").is_some()
}

/// What stands in the place of a line of a private key.
pub(crate) const PART_OF_A_KEY: &str = "[part of a private key]";

/// The lines between the first and the last line of each private key, from 1. Who is shown only some of them cannot tell
/// that they are one. A program that has the marks of a key in it has none: they stand in lines of their own, and what
/// follows is nothing but letters and digits.
pub(crate) fn private_lines(content: &[u8]) -> Vec<Range<u64>> {
    let mut all = Vec::new();
    if memchr::memmem::find(content, b"PRIVATE KEY-----").is_none() {
        return all;
    }
    let mut begin: Option<u64> = None;
    for (line, number) in content.split(|byte| *byte == b'\n').zip(1..) {
        let line = line.trim_ascii();
        let is_mark = line.ends_with(b"PRIVATE KEY-----") || line.ends_with(b"PRIVATE KEY BLOCK-----");
        if is_mark && line.starts_with(b"-----BEGIN ") {
            begin = Some(number + 1);
        } else if !is_of_a_key(line) {
            all.extend(begin.take().filter(|begin| *begin < number).map(|begin| begin..number));
        }
    }
    let end = content.split(|byte| *byte == b'\n').count() as u64 + 1;
    all.extend(begin.filter(|begin| *begin < end).map(|begin| begin..end));
    all
}

/// Whether a line may stand within a key: the key itself, nothing, or what is said about it (`DEK-Info: AES-128-CBC,…`).
pub(crate) fn is_of_a_key(line: &[u8]) -> bool {
    let is_code = line.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
    let is_said = || {
        let name = line.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
        name > 0 && line[name..].starts_with(b": ")
    };
    is_code || is_said()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_private_key_are_those_between_its_marks() {
        let text = b"x\n-----BEGIN RSA PRIVATE KEY-----\nMII\nabc\n-----END RSA PRIVATE KEY-----\ny\n";
        let lines = |text: &[u8]| private_lines(text).into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(lines(text), [3, 4]);
        assert_eq!(lines(b"-----BEGIN PRIVATE KEY-----\nMII\nabc"), [2, 3]);
        assert_eq!(lines(b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMII\nx = 1\nabc"), [2, 3, 4]);
        assert!(lines(b"M = \"-----BEGIN PRIVATE KEY-----\"\nx\ny\n").is_empty(), "a program");
        assert!(lines(b"-----BEGIN PRIVATE KEY-----\nfn x() {\nabc\n").is_empty(), "no key");
        assert!(private_lines(b"-----BEGIN PUBLIC KEY-----\nMII\n").is_empty());
    }

    #[test]
    fn a_private_key_is_seen_near_the_beginning_of_a_content() {
        assert!(has_private_key(b"-----BEGIN RSA PRIVATE KEY-----\nx"));
        assert!(!has_private_key(b"-----BEGIN PUBLIC KEY-----\nx") && !has_private_key(b""));
    }
}
