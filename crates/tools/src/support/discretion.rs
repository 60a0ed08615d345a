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
/// that they are one.
pub(crate) fn private_lines(content: &[u8]) -> Vec<Range<u64>> {
    let mut all = Vec::new();
    if memchr::memmem::find(content, b"PRIVATE KEY").is_none() {
        return all;
    }
    let mut begin = None;
    let mut count = 0;
    for (line, number) in content.split(|byte| *byte == b'\n').zip(1..) {
        count = number;
        let has = |text: &[u8]| memchr::memmem::find(line, text).is_some();
        if !has(b"PRIVATE KEY") {
            continue;
        }
        if has(b"-----BEGIN ") {
            begin = Some(number);
        } else if has(b"-----END ") {
            all.extend(begin.take().map(|begin| begin + 1..number));
        }
    }
    // One that does not end goes on to the end of the text.
    all.extend(begin.map(|begin| begin + 1..count + 1));
    all
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
        assert!(private_lines(b"-----BEGIN PUBLIC KEY-----\nMII\n").is_empty());
    }

    #[test]
    fn a_private_key_is_seen_near_the_beginning_of_a_content() {
        assert!(has_private_key(b"-----BEGIN RSA PRIVATE KEY-----\nx"));
        assert!(!has_private_key(b"-----BEGIN PUBLIC KEY-----\nx") && !has_private_key(b""));
    }
}
