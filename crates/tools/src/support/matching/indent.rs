//! How the indentation of a text that a model sent becomes that of the file: in one way for all of its lines, or not.

/// The one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    /// It is the same.
    None,
    /// The file has this in front of it.
    Deeper(String),
    /// The file lacks this in front of it.
    Shallower(String),
    /// Every `unit` blanks are one tab in the file, and it has `more` tabs beside.
    ToTabs { unit: usize, more: isize },
    /// Every tab is `unit` blanks in the file, and it has `more` blanks beside.
    ToBlanks { unit: usize, more: isize },
}

/// How wide a step may be; the usual ones first.
const UNITS: [usize; 8] = [4, 2, 8, 3, 1, 5, 6, 7];

impl Shift {
    /// The way from what was sent to what is in the file, for the lines that are in both (sent, in the file), such that it
    /// makes sense for those that are new. `unit` is how wide a step is elsewhere in the file.
    pub(super) fn of(pairs: &[(&str, &str)], new: &[&str], unit: Option<usize>) -> Option<Self> {
        if pairs.iter().all(|(sent, there)| sent == there) {
            return Some(Self::None);
        }
        let sent = || pairs.iter().map(|(sent, _)| *sent).chain(new.iter().copied());
        let there = || pairs.iter().map(|(_, there)| *there);
        let is = |letter: u8| move |indent: &str| indent.bytes().all(|byte| byte == letter);
        let is_any = |indent: &str| !indent.is_empty();
        if sent().all(is(b' '))
            && sent().any(is_any)
            && there().any(|indent| indent.starts_with('\t'))
            && there().all(|indent| split(indent).is_some())
        {
            return Self::to_tabs(pairs, sent().map(str::len).fold(0, common_divisor));
        }
        if sent().all(is(b'\t')) && sent().any(is_any) && there().all(is(b' ')) && there().any(is_any) {
            return Self::to_blanks(pairs, unit);
        }
        let (first_sent, first_there) = pairs.first()?;
        if let Some(more) = first_there.strip_suffix(first_sent) {
            let holds = pairs.iter().all(|(sent, there)| there.strip_suffix(sent) == Some(more));
            return holds.then(|| Self::Deeper(more.to_owned()));
        }
        let less = first_sent.strip_suffix(first_there)?;
        let holds = pairs.iter().all(|(sent, there)| sent.strip_suffix(there) == Some(less));
        holds.then(|| Self::Shallower(less.to_owned()))
    }

    fn to_tabs(pairs: &[(&str, &str)], step: usize) -> Option<Self> {
        let (first_sent, first_there) = pairs.first()?;
        let mut possible = Some(step).filter(|step| UNITS.contains(step)).into_iter().chain(UNITS).filter_map(|unit| {
            let more = split(first_there)?.0.cast_signed() - (first_sent.len() / unit).cast_signed();
            let fits = |(sent, there): &(&str, &str)| {
                let tabs = (sent.len() / unit).checked_add_signed(more);
                tabs.is_some_and(|tabs| split(there) == Some((tabs, sent.len() % unit)))
            };
            pairs.iter().all(fits).then_some(Self::ToTabs { unit, more })
        });
        let first = possible.next()?;
        let is_plain = |shift: &Self| matches!(shift, Self::ToTabs { more: 0, .. });
        Some(if is_plain(&first) { first } else { possible.find(is_plain).unwrap_or(first) })
    }

    fn to_blanks(pairs: &[(&str, &str)], step: Option<usize>) -> Option<Self> {
        let (first_sent, first_there) = pairs.first()?;
        let mut possible = step.into_iter().chain(UNITS).filter_map(|unit| {
            let more = first_there.len().cast_signed() - (first_sent.len() * unit).cast_signed();
            let fits = |(sent, there): &(&str, &str)| (sent.len() * unit).checked_add_signed(more) == Some(there.len());
            pairs.iter().all(fits).then_some(Self::ToBlanks { unit, more })
        });
        let first = possible.next()?;
        let is_plain = |shift: &Self| matches!(shift, Self::ToBlanks { more: 0, .. });
        Some(if is_plain(&first) { first } else { possible.find(is_plain).unwrap_or(first) })
    }

    /// An indentation as it is in the file.
    pub(super) fn led(&self, sent: &str) -> String {
        let is = |letter: u8| sent.bytes().all(|byte| byte == letter);
        match self {
            Self::Deeper(more) => format!("{more}{sent}"),
            // What is less deep than what is taken away cannot be less than nothing.
            Self::Shallower(less) if less.starts_with(sent) => String::new(),
            Self::Shallower(less) => sent.strip_prefix(less.as_str()).unwrap_or(sent).to_owned(),
            Self::ToTabs { unit, more } if is(b' ') => {
                let tabs = (sent.len() / unit).saturating_add_signed(*more);
                "\t".repeat(tabs) + &" ".repeat(sent.len() % unit)
            }
            Self::ToBlanks { unit, more } if is(b'\t') => " ".repeat((sent.len() * unit).saturating_add_signed(*more)),
            Self::None | Self::ToTabs { .. } | Self::ToBlanks { .. } => sent.to_owned(),
        }
    }
}

/// Tabs, and blanks behind them; `None` if they are mixed.
fn split(indent: &str) -> Option<(usize, usize)> {
    let tabs = indent.bytes().take_while(|byte| *byte == b'\t').count();
    let blanks = &indent[tabs..];
    blanks.bytes().all(|byte| byte == b' ').then_some((tabs, blanks.len()))
}

pub(super) fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_way_for_all_lines_or_none() {
        let way = |pairs: &[(&str, &str)], new: &[&str]| Shift::of(pairs, new, Some(2));
        assert_eq!(way(&[("", ""), ("  ", "  ")], &["\t"]), Some(Shift::None));
        assert_eq!(way(&[("", "  "), ("  ", "    ")], &[]), Some(Shift::Deeper("  ".into())));
        assert_eq!(way(&[("    ", ""), ("      ", "  ")], &[]), Some(Shift::Shallower("    ".into())));
        assert_eq!(way(&[("", "  "), ("  ", "  ")], &[]), None);
        assert_eq!(way(&[("    ", "\t"), ("        ", "\t\t")], &[]), Some(Shift::ToTabs { unit: 4, more: 0 }));
        assert_eq!(way(&[("", "\t")], &["  "]), Some(Shift::ToTabs { unit: 2, more: 1 }));
        assert_eq!(way(&[("  ", "\t\t")], &["  ", "   "]), Some(Shift::ToTabs { unit: 1, more: 0 }));
        assert_eq!(way(&[("", "  ")], &["\t"]), Some(Shift::ToBlanks { unit: 2, more: 2 }));
        assert_eq!(way(&[("\t", "   "), ("\t\t", "      ")], &[]), Some(Shift::ToBlanks { unit: 3, more: 0 }));
        assert_eq!(way(&[("    ", "\t"), ("        ", "\t")], &[]), None);
    }

    #[test]
    fn new_lines_follow_the_same_way() {
        let tabs = Shift::ToTabs { unit: 4, more: 0 };
        assert_eq!([tabs.led("      "), tabs.led("\t"), tabs.led("")], ["\t  ", "\t", ""]);
        let blanks = Shift::ToBlanks { unit: 2, more: -2 };
        assert_eq!([blanks.led("\t\t"), blanks.led("")], ["  ", ""]);
        let less = Shift::Shallower("    ".into());
        assert_eq!([less.led("      "), less.led("  ")], ["  ", ""]);
    }
}
