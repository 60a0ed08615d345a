//! Paths and numbers as people and models like to see them, the same in every crate.

use std::path::Path;

/// `path` as people and models like to see it: relative to `base` where it lies below it, else as it is.
pub fn shown_path(path: &Path, base: &Path) -> String {
    match path.strip_prefix(base) {
        Ok(below) if !below.as_os_str().is_empty() => below.display().to_string(),
        _ => path.display().to_string(),
    }
}

/// A number with its thousands apart: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 line`, `2 lines`, `1,234 matches`.
pub fn plural(count: usize, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        noun if noun.ends_with("ch") || noun.ends_with("ss") => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", grouped(count as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!(plural(1, "line"), "1 line");
        assert_eq!(plural(0, "match"), "0 matches");
        assert_eq!(plural(1_234_567, "line"), "1,234,567 lines");
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_path_below_is_relative_and_the_base_itself_is_not_blank() {
        let shown = |path: &str| shown_path(Path::new(path), Path::new("/a"));
        assert_eq!((shown("/a/b/c"), shown("/a"), shown("/b")), ("b/c".into(), "/a".into(), "/b".into()));
    }
}
