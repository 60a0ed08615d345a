//! Texts and numbers as people read them.

use std::fmt::Write as _;
use std::time::Duration;

/// `text` with everything that could fool a reader made visible: control characters (an escape sequence can redraw the
/// line above), characters that reorder what is shown, and characters that show nothing. Line ends and tabs stay.
pub(crate) fn visible(text: &str) -> String {
    escaped(text, |c| c.is_control() || reorders(c) || shows_nothing(c))
}

/// The same for running text, in which joiners and variation selectors belong to the script or the emoji.
pub(crate) fn harmless(text: &str) -> String {
    escaped(text, |c| c.is_control() || reorders(c))
}

/// The same for text of which only colours are left beside what people read: those stay.
pub(crate) fn harmless_in_colour(text: &str) -> String {
    escaped(text, reorders)
}

fn escaped(text: &str, is_bad: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if is_bad(c) => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// Direction marks, overrides and isolates, and separators that break a line (Unicode TR 36 §2.10, UAX 9).
fn reorders(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Format characters, fillers, variation selectors and tags (Unicode categories Cf and `Default_Ignorable_Code_Point`).
fn shows_nothing(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}' | '\u{115f}' | '\u{1160}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The first line of `text`, at most `columns` wide.
pub(crate) fn one_line(text: &str, columns: usize) -> String {
    let visible = visible(text);
    let mut lines = visible.trim().lines();
    let first = lines.next().unwrap_or_default().replace('\t', " ");
    let more = lines.next().is_some();
    shortened(&if more { first + " …" } else { first }, columns)
}

/// `text` cut to `columns`, with an ellipsis where something is missing.
pub(crate) fn shortened(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = char_width(c);
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        out.push(c);
    }
    out + "…"
}

/// `line` in pieces of at most `columns`, broken where it happens to be: not one character is left out or added.
pub(crate) fn folded(line: &str, columns: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in line.chars() {
        let wide = char_width(c);
        if used + wide > columns {
            pieces.push(String::new());
            used = 0;
        }
        used += wide;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

/// `text` in lines of at most `columns` that begin with `indent` blanks and break between words.
pub(crate) fn wrapped(text: &str, columns: usize, indent: usize) -> String {
    let blanks = " ".repeat(indent);
    let mut lines = vec![blanks.clone()];
    for word in text.split_whitespace().flat_map(|word| folded(word, columns.saturating_sub(indent).max(1))) {
        let used = lines.last().map_or(0, |line| width(line));
        if used > indent && used + 1 + width(&word) > columns {
            lines.push(blanks.clone());
        }
        if let Some(line) = lines.last_mut() {
            if line.len() > indent {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines.join("\n")
}

/// How many columns a terminal gives `text`.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    // A tab takes what is missing to the next stop; the most is taken for granted.
    if c == '\t' { 8 } else { unicode_width::UnicodeWidthChar::width(c).unwrap_or(0) }
}

/// `text` and blanks up to `columns`.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `6 ms`, `4.2 s`, `3 min 20 s`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match duration.as_millis() {
        millis @ ..1_000 => format!("{millis} ms"),
        // What is set to whole seconds is said in whole seconds.
        1_000..60_000 if duration.subsec_millis() == 0 => format!("{seconds} s"),
        1_000..60_000 => format!("{:.1} s", duration.as_secs_f64()),
        _ if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// `812`, `11.2k`, `1.3M`.
#[expect(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides_and_nothing_moves_the_cursor() {
        assert_eq!(visible("a\u{1b}[2Kb\u{202e}c\r\n\td"), "a\\u{1b}[2Kb\\u{202e}c\\u{d}\n\td");
        for hidden in
            ['\u{61c}', '\u{ad}', '\u{2028}', '\u{180e}', '\u{e0041}', '\u{3164}', '\u{fe0f}', '\u{115f}', '\u{9b}']
        {
            assert_eq!(visible(&format!("a{hidden}b")), format!("a\\u{{{:x}}}b", hidden as u32));
        }
        // In running text an emoji keeps its selector and a Persian word its joiner; a direction mark is still shown.
        assert_eq!(harmless("⚠\u{fe0f} می\u{200c}خواهم \u{202e}"), "⚠\u{fe0f} می\u{200c}خواهم \\u{202e}");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("工具"), 4);
        assert_eq!(shortened("工具注册", 5), "工具…");
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(one_line("a\tb\nc", 80), "a b …");
    }

    #[test]
    fn wrapping_breaks_between_words_and_never_leaves_the_columns() {
        let text = wrapped(&format!("{}{}", "word ".repeat(50), "x".repeat(200)), 78, 6);
        assert!(text.lines().all(|line| width(line) <= 78 && line.starts_with("      ")), "{text}");
        assert!(text.lines().next().unwrap().ends_with("word"));
    }

    #[test]
    fn folding_keeps_every_character() {
        let line = "rm -rf 工具 && echo done";
        let pieces = folded(line, 7);
        assert!(pieces.len() > 2 && pieces.iter().all(|piece| width(piece) <= 7));
        assert_eq!(pieces.concat(), line);
        assert_eq!(folded("", 7), [""]);
    }

    #[test]
    fn numbers_are_rounded_for_people() {
        assert_eq!(duration(Duration::from_micros(900)), "0 ms");
        assert_eq!(duration(Duration::from_millis(4_240)), "4.2 s");
        assert_eq!(duration(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!((tokens(812), tokens(11_240)), ("812".into(), "11.2k".into()));
    }
}
