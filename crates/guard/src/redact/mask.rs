//! What stands where a secret was: `[redacted: LABEL]`.
//!
//! A mask says what kind of thing is missing and shows no letter of it. Redaction leaves masks alone, so text may pass
//! through it twice. A label is a few short words; whatever looks like a secret dressed up as a label is none.

use std::sync::LazyLock;

use regex::Regex;

const OPEN: &str = "[redacted: ";
const LONGEST_LABEL: usize = 48;
/// Letters and digits mixed in a run of this length are no word.
const LONGEST_MIXED_WORD: usize = 16;

static MASK: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[redacted: ([A-Za-z0-9_. -]{1,48})\]").ok());

/// A mask in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskAt {
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends, in bytes.
    pub end: usize,
    /// The line it is in, counted from 1.
    pub line: usize,
    /// The kind of secret, as the mask names it.
    pub label: String,
}

/// Whether `text` holds a mask: then it was shown, not read, and writing it to a file would destroy what it stands for
/// (report 10-injection-redaction-03).
pub fn contains_mask(text: &str) -> bool {
    spans(text).next().is_some()
}

/// The masks in `text`, in order.
pub fn masks(text: &str) -> Vec<MaskAt> {
    let (mut line, mut counted) = (1, 0);
    spans(text)
        .map(|(start, end)| {
            line += text[counted..start].bytes().filter(|byte| *byte == b'\n').count();
            counted = start;
            MaskAt { start, end, line, label: text[start + OPEN.len()..end - 1].into() }
        })
        .collect()
}

/// Where the masks in `text` are.
pub(super) fn spans(text: &str) -> impl Iterator<Item = (usize, usize)> {
    MASK.iter()
        .flat_map(move |regex| regex.find_iter(text))
        .map(|found| (found.start(), found.end()))
        .filter(|(start, end)| is_label(&text[start + OPEN.len()..end - 1]))
}

/// Writes the mask for a secret of this kind.
pub(super) fn write(label: &str, out: &mut String) {
    out.push_str(OPEN);
    out.push_str(label);
    out.push(']');
}

/// A label made of `name`; `secret` if it makes none.
pub(super) fn label(name: &str) -> String {
    let label: String = name
        .trim()
        .chars()
        .take(LONGEST_LABEL)
        .map(|c| if c.is_ascii_alphanumeric() || "_.- ".contains(c) { c } else { '_' })
        .collect();
    if is_label(&label) { label } else { "secret".into() }
}

fn is_label(label: &str) -> bool {
    !label.trim().is_empty()
        && label.split(['_', '.', ' ', '-']).all(|word| {
            let digit = word.bytes().any(|byte| byte.is_ascii_digit());
            let letter = word.bytes().any(|byte| byte.is_ascii_alphabetic());
            word.len() < LONGEST_MIXED_WORD || !(digit && letter)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_found_with_its_line() {
        let text = "a\nb [redacted: OPENAI_API_KEY] [redacted: github token]\n\n[redacted: x]";
        let found: Vec<_> = masks(text).into_iter().map(|mask| (mask.line, mask.label)).collect();
        assert_eq!(found, [(2, "OPENAI_API_KEY".into()), (2, "github token".into()), (4, "x".to_owned())]);
        assert!(contains_mask(text));
    }

    #[test]
    fn what_hides_a_secret_is_no_mask() {
        assert!(!contains_mask("[redacted: ghp_EXAMPLE0example0EXAMPLE0example0EXAM]"));
        assert!(!contains_mask("[redacted] [redacted: ] redacted: x [redacted: a\nb]"));
        assert_eq!(label("AKIA0000EXAMPLE00000"), "secret");
        assert_eq!(label("  "), "secret");
        assert_eq!(label("my key]"), "my key_");
    }
}
