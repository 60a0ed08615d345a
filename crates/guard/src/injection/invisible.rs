//! Characters that nobody sees.
//!
//! The tricky idea: some of them are honest work. A joiner holds an emoji together and shapes Persian and Hindi words;
//! marks of direction belong to Hebrew and Arabic; a tag ends the flag of Scotland. So those count only where no such
//! script is near.

use std::fmt::Write as _;

use super::{Found, Kind, Level};

/// How many different characters a finding names.
const NAMED: usize = 5;

/// Whether a character takes no place and makes no mark by itself; joiners are among them.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e01ef}'
    )
}

/// Whether a control character has no business in a text.
fn is_stray_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}' | '\u{1b}')
}

/// Whether a character shapes its neighbours, as in emoji and Persian words.
pub(super) fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

pub(super) fn find(text: &str, found: &mut Found) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.split('\n').enumerate() {
        if line.is_ascii() && !line.contains(is_stray_control) {
            continue;
        }
        let mut odd = Odd::default();
        let right_to_left = line.chars().any(is_right_to_left);
        let mut before = '\n';
        let mut in_flag = false;
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            in_flag = c == '\u{1f3f4}' || (in_flag && matches!(c, '\u{e0020}'..='\u{e007f}'));
            let after = chars.peek().copied().unwrap_or('\n');
            match c {
                // Joiners hide only where there is nothing to join.
                c if is_joiner(c) && !(before.is_ascii_alphanumeric() && after.is_ascii_alphanumeric()) => {}
                '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2066}'..='\u{2069}' if right_to_left => {}
                // A soft hyphen and a direction mark are relics of word processors more often than tricks.
                '\u{ad}' | '\u{200e}' | '\u{200f}' => odd.add(c, Level::Note),
                '\u{e0000}'..='\u{e007f}' if in_flag => {}
                c if is_invisible(c) => odd.add(c, Level::Warn),
                c if is_stray_control(c) => odd.add(c, Level::Note),
                _ => {}
            }
            before = c;
        }
        if let Some(level) = odd.level {
            found.add(index + 1, Kind::Invisible, level, || odd.in_words());
        }
    }
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}')
}

/// What is odd in one line.
#[derive(Default)]
struct Odd {
    level: Option<Level>,
    counts: Vec<(char, usize)>,
    others: usize,
    /// Tag characters are letters in disguise: what they spell.
    spelt: String,
}

impl Odd {
    fn add(&mut self, c: char, level: Level) {
        self.level = self.level.max(Some(level));
        if let '\u{e0020}'..='\u{e007e}' = c {
            self.spelt.extend(char::from_u32(u32::from(c) - 0xe0000).filter(|_| self.spelt.len() < 80));
        }
        if let Some((_, count)) = self.counts.iter_mut().find(|(known, _)| *known == c) {
            *count += 1;
        } else if self.counts.len() < NAMED {
            self.counts.push((c, 1));
        } else {
            self.others += 1;
        }
    }

    fn in_words(&self) -> String {
        let mut out = String::new();
        for (c, count) in &self.counts {
            let comma = if out.is_empty() { "" } else { ", " };
            let _ = write!(out, "{comma}{count} × U+{:04X}", u32::from(*c));
        }
        if self.others > 0 {
            let _ = write!(out, " and {} others", self.others);
        }
        if !self.spelt.is_empty() {
            let _ = write!(out, ", which spell \"{}\"", self.spelt);
        }
        out
    }
}
