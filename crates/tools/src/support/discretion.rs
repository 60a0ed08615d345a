//! Whose contents are not quoted: in a diff, in the nearest text, in an error.
//!
//! Who may touch a file, and which files hold secrets, is decided elsewhere (the judge). This is about what a permitted
//! change shows beside itself: a token in `.env` that has nothing to do with the change must not be in the answer because
//! it stands on the next line.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_key_is_seen_near_the_beginning_of_a_content() {
        assert!(has_private_key(b"-----BEGIN RSA PRIVATE KEY-----\nx"));
        assert!(!has_private_key(b"-----BEGIN PUBLIC KEY-----\nx") && !has_private_key(b""));
    }
}
