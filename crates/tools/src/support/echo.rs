//! What a tool showed, sent back as the content of a file.
//!
//! It is refused wherever a text is written: lines with the numbers of `read_file` in front, and its notice that a file has
//! not changed, were never meant.

use super::known;
use super::matching::numbered;

/// What a model took for the content of a file, if this is it.
pub(crate) fn echo(content: &str) -> Option<&'static str> {
    let text = content.trim();
    if text.contains(known::UNCHANGED) && text.len() <= 2 * known::UNCHANGED.len() {
        return Some("this is the notice of read_file that the file has not changed, and no content");
    }
    let lines: Vec<&str> = content.lines().filter(|line| !line.trim().is_empty()).collect();
    let numbers: Vec<Option<u64>> = lines.iter().map(|line| numbered(line).map(|(number, _)| number)).collect();
    let follows = numbers
        .windows(2)
        .filter(|pair| pair[0].is_some_and(|first| pair[1].is_some() && pair[1] == first.checked_add(1)))
        .count();
    // Most lines carry the number that follows the one before.
    (follows > 0 && (follows + 1) * 10 >= lines.len() * 6)
        .then_some("these are lines with the numbers of read_file in front; send them without the numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_showed_is_no_content_and_what_only_looks_so_is() {
        for refused in
            ["1|import os\n2|import sys\n3|\n", "7|a\n8|b\n", "  9|a\n 10|b\n", known::UNCHANGED, "10|a\n11|b\nrest\n"]
        {
            assert!(echo(refused).is_some(), "{refused}");
        }
        for fine in
            ["", "1|a\n", "a|b\nc|d\n", "1|a\n1|b\n", "| 1 | 2 |\n| 3 | 4 |\n", "3|a\nx\ny\nz\n4|b\n5|c\nq\nr\ns\n"]
        {
            assert!(echo(fine).is_none(), "{fine}");
        }
    }
}
