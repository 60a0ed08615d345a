//! Lines that were copied with the numbers that `read_file` puts before them.

/// Both texts without numbers, if every line of the old one has one and they count up. The new text loses its own if it was
/// made from the same lines: they begin with the same number and grow; lines that came in between may have none. Other
/// numbers are data, and then nobody can tell what is meant.
pub(super) fn taken_away(old: &str, new: &str) -> Option<(String, String)> {
    let mut last = None;
    let mut plain = String::with_capacity(old.len());
    for line in old.split_inclusive('\n') {
        let (number, rest) = numbered(line)?;
        if last.is_some_and(|last: u64| last.checked_add(1) != Some(number)) {
            return None;
        }
        last = Some(number);
        plain.push_str(rest);
    }
    let first = numbered(old.split_inclusive('\n').next()?)?.0;
    let mut grown: Option<u64> = None;
    let mut plain_new = String::with_capacity(new.len());
    for line in new.split_inclusive('\n') {
        let Some((number, rest)) = numbered(line) else {
            plain_new.push_str(line);
            continue;
        };
        if grown.map_or(number != first, |before| number <= before) {
            return None;
        }
        grown = Some(number);
        plain_new.push_str(rest);
    }
    let new = plain_new;
    (!plain.trim().is_empty()).then_some((plain, new))
}

/// `  12|text`: the number and the text.
pub(crate) fn numbered(line: &str) -> Option<(u64, &str)> {
    let (number, rest) = line.split_once('|')?;
    let number = number.trim_start_matches(' ');
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| is_number)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_count_up_are_taken_away_and_others_are_text() {
        let plain = |old: &str, new: &str| taken_away(old, new);
        assert_eq!(plain("  9|a\n 10|b", "  9|c\nd\n 11|e"), Some(("a\nb".into(), "c\nd\ne".into())));
        assert_eq!(plain("  9|a\n 10|b", "c\nd"), Some(("a\nb".into(), "c\nd".into())));
        // Data that looks like a number stays, or nothing is done.
        assert_eq!(plain("1|7|a", "1|7|z"), Some(("7|a".into(), "7|z".into())));
        assert_eq!(plain("1|7|a", "7|z"), None);
        assert_eq!(plain("9|a\n10|b", "9|c\n7|d"), None);
        assert_eq!(plain("12|a\n", ""), Some(("a\n".into(), String::new())));
        for text in [
            "a",
            "1|a\nb",
            "1|a\n3|b",
            "1|a\n1|b",
            "x1|a",
            "|a",
            "+1|a",
            "1|",
            "1|\n2| \n",
            "18446744073709551615|a\n0|b",
        ] {
            assert_eq!(plain(text, "x"), None, "{text}");
        }
    }
}
