//! Finds the text that a model wants to replace, and says what to put in its place.
//!
//! Similar is not equal. A text that was copied by a model differs from the file in a few known ways: line ends, blanks at
//! the ends of lines, indentation that is shifted as a whole, escapes of one quoting too many, typographic quotes. Each of
//! them is a rung of a ladder, tried from the strictest on; the first rung on which the text occurs decides, and there it
//! must occur once, unless all of its places are meant. Nothing is accepted because it looks alike.
//!
//! The tricky idea: a loose match is never replaced by the new text as a whole. Old and new text are compared with each
//! other, and only what differs between *them* changes in the file; the rest keeps the file's own characters.

mod escapes;
mod folded;
mod indent;
mod nearest;
mod numbers;
mod windows;

use std::cell::OnceCell;
use std::ops::Range;

use memchr::memmem;

pub(crate) use self::nearest::{is_there_already, nearest};
pub(crate) use self::numbers::numbered;
pub(crate) use self::windows::{Alike, Lines, Most, Piece, Window};

use self::folded::{Change, Folded, Kinds};
use super::text::{is_crlf, to_crlf};
use super::view::Splice;

/// How the text was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strategy {
    /// Every character is the same.
    Exact,
    /// All but the line ends, or the line end of the last line of a file.
    LineEnds,
    /// All but the blanks at the ends of lines.
    TrailingBlanks,
    /// All but the indentation, which differs in one way for all lines.
    Indentation,
    /// After escapes such as `\n` were undone, in the old and in the new text.
    Escapes,
    /// All but typographic quotes, dashes, dots and blanks.
    Typography,
    /// After the numbers were taken away that `read_file` puts before lines.
    Numbers,
}

impl Strategy {
    /// The word for models.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineEnds => "line_ends",
            Self::TrailingBlanks => "trailing_blanks",
            Self::Indentation => "indentation",
            Self::Escapes => "escapes",
            Self::Typography => "typography",
            Self::Numbers => "line_numbers",
        }
    }
}

/// One replacement that is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'w> {
    pub(crate) old: &'w str,
    pub(crate) new: &'w str,
    /// Every place is meant.
    pub(crate) all: bool,
}

/// Where it is, and what comes there; in order, without overlap, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) strategy: Strategy,
    /// What was matched.
    pub(crate) places: Vec<Range<usize>>,
    pub(crate) splices: Vec<Splice>,
}

/// Why it cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// It occurs in no way that is accepted.
    Nowhere,
    /// It occurs more than once: where, in order, as places in the text.
    Several(Vec<usize>),
}

/// A text to be searched, with what was found out about it on the way.
#[derive(Debug)]
pub(crate) struct Haystack<'t> {
    pub(crate) text: &'t str,
    lines: OnceCell<Lines<'t>>,
    without_cr: OnceCell<Folded>,
    plain: OnceCell<Folded>,
    with_short_dashes: OnceCell<Folded>,
    is_crlf: OnceCell<bool>,
}

impl<'t> Haystack<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            lines: OnceCell::new(),
            without_cr: OnceCell::new(),
            plain: OnceCell::new(),
            with_short_dashes: OnceCell::new(),
            is_crlf: OnceCell::new(),
        }
    }

    pub(crate) fn lines(&self) -> &Lines<'t> {
        self.lines.get_or_init(|| Lines::of(self.text))
    }

    fn is_crlf(&self) -> bool {
        *self.is_crlf.get_or_init(|| is_crlf(self.text))
    }

    fn folded(&self, kinds: Kinds) -> &Folded {
        let slot = match kinds {
            Kinds::LineEnds => &self.without_cr,
            Kinds::Typography => &self.plain,
            Kinds::ShortDashes => &self.with_short_dashes,
        };
        slot.get_or_init(|| Folded::of(self.text, kinds))
    }

    /// Finds what is wanted. The time is a small multiple of what reading both texts once takes.
    pub(crate) fn find(&self, wanted: Wanted<'_>) -> Result<Found, Miss> {
        if let Some(found) = self.literally(wanted)? {
            return Ok(found);
        }
        for (old, new) in escapes::undone(wanted.old, wanted.new) {
            // Blanks and line ends alone are no text that somebody meant.
            if !old.trim().is_empty()
                && let Some(found) = self.literally(Wanted { old: &old, new: &new, all: wanted.all })?
            {
                return Ok(Found { strategy: Strategy::Escapes, ..found });
            }
        }
        for kinds in [Kinds::Typography, Kinds::ShortDashes] {
            if let Some(found) = self.folded_to(kinds, wanted)? {
                return Ok(found);
            }
        }
        if let Some((old, new)) = numbers::taken_away(wanted.old, wanted.new)
            && let Some(found) = self.literally(Wanted { old: &old, new: &new, all: wanted.all })?
        {
            return Ok(Found { strategy: Strategy::Numbers, ..found });
        }
        Err(Miss::Nowhere)
    }

    /// The rungs on which nothing is reinterpreted.
    fn literally(&self, wanted: Wanted<'_>) -> Result<Option<Found>, Miss> {
        if let Some(found) = self.exactly(wanted)? {
            return Ok(Some(found));
        }
        if let Some(found) = self.folded_to(Kinds::LineEnds, wanted)? {
            return Ok(Some(found));
        }
        for (alike, strategy) in [
            (Alike::Content, Strategy::LineEnds),
            (Alike::TrailingBlanks, Strategy::TrailingBlanks),
            (Alike::Indentation, Strategy::Indentation),
        ] {
            if let Some(found) = self.by_lines(alike, strategy, wanted)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn exactly(&self, wanted: Wanted<'_>) -> Result<Option<Found>, Miss> {
        // An LF is no place in the middle of a CRLF: half of it would stay.
        if wanted.old.starts_with('\n') && Kinds::LineEnds.concern(self.text) {
            return Ok(None);
        }
        let places = literal_places(self.text, wanted)?;
        // Where both line ends occur, a place that differs in nothing else looks the same to whoever reads the file.
        let unseen = |text: &str| text.replace("\r\n", "\n");
        if !places.is_empty()
            && wanted.old.contains('\n')
            && !wanted.old.contains("\r\n")
            && Kinds::LineEnds.concern(self.text)
            && !self.is_crlf()
            && unseen(wanted.old) != unseen(wanted.new)
            && let Some(found) = self.folded_to(Kinds::LineEnds, wanted)?
            && found.places.len() > places.len()
        {
            return Ok(Some(found));
        }
        // Models write LF. In a file that has no other line ends than CRLF, the new lines end so too.
        let new = if self.is_crlf() { to_crlf(wanted.new) } else { wanted.new.to_owned() };
        let splices = places.iter().map(|place| Splice { range: place.clone(), new: new.clone() }).collect();
        Ok((!places.is_empty()).then_some(Found { strategy: Strategy::Exact, places, splices }))
    }

    /// The old text occurs once both texts are folded.
    fn folded_to(&self, kinds: Kinds, wanted: Wanted<'_>) -> Result<Option<Found>, Miss> {
        if !kinds.concern(wanted.old) && !kinds.concern(self.text) {
            return Ok(None);
        }
        let (folded, old) = (self.folded(kinds), Folded::of(wanted.old, kinds));
        let there = |place: &Range<usize>| Some(folded.original(place.start)?..folded.original(place.end)?);
        let found = literal_places(folded.text(), Wanted { old: old.text(), ..wanted });
        let found = found.map_err(|miss| match miss {
            Miss::Several(at) => Miss::Several(at.into_iter().filter_map(|at| folded.original(at)).collect()),
            Miss::Nowhere => Miss::Nowhere,
        })?;
        // A place that begins within a sign of several characters is none.
        let places: Vec<Range<usize>> = found.iter().filter_map(there).collect();
        if places.is_empty() {
            return Ok(None);
        }
        let change = Change::new(wanted.old, wanted.new, kinds);
        let of_place = |place: &Range<usize>| {
            let new = change.carried(&self.text[place.clone()], self.line_end_near(place));
            Splice { range: place.clone(), new }
        };
        let splices = places.iter().map(of_place).collect();
        let strategy = if kinds == Kinds::LineEnds { Strategy::LineEnds } else { Strategy::Typography };
        Ok(Some(Found { strategy, places, splices }))
    }

    fn by_lines(&self, alike: Alike, strategy: Strategy, wanted: Wanted<'_>) -> Result<Option<Found>, Miss> {
        let lines = self.lines();
        let old = Lines::of(wanted.old);
        let is_possible = match alike {
            // All else that differs in line ends only was found before.
            Alike::Content => wanted.old.ends_with('\n') && !self.text.ends_with('\n'),
            // The longest line is there, up to its indentation: most texts that are nowhere end here.
            _ => {
                let longest =
                    old.contents().into_iter().map(str::trim).max_by_key(|line| line.len()).unwrap_or_default();
                !longest.is_empty() && memmem::find(self.text.as_bytes(), longest.as_bytes()).is_some()
            }
        };
        if !is_possible {
            return Ok(None);
        }
        let new = Lines::of(wanted.new);
        let windows = lines.windows(&old, &new, alike, if wanted.all { Most::All } else { Most::Some(MOST_PLACES) });
        if windows.is_empty() {
            return Ok(None);
        }
        if windows.len() > 1 && !wanted.all {
            return Err(Miss::Several(windows.iter().map(|window| lines.start(window.first)).collect()));
        }
        let pieces = windows::compared(&old, &new);
        let (mut places, mut splices) = (Vec::new(), Vec::new());
        for window in windows {
            let splice = lines.replaced(&window, &old, &new, &pieces);
            places.push(splice.range.clone());
            splices.push(splice);
        }
        Ok(Some(Found { strategy, places, splices }))
    }

    /// The line end that is used at a place: that of the line it begins in, or of the file.
    fn line_end_near(&self, place: &Range<usize>) -> &'static str {
        let after = &self.text[place.start..];
        match memchr::memchr(b'\n', after.as_bytes()) {
            Some(0) => {
                if self.text[..place.start].ends_with('\r') {
                    "\r\n"
                } else {
                    "\n"
                }
            }
            Some(at) => {
                if after.as_bytes()[at - 1] == b'\r' {
                    "\r\n"
                } else {
                    "\n"
                }
            }
            None => {
                if self.is_crlf() {
                    "\r\n"
                } else {
                    "\n"
                }
            }
        }
    }
}

/// So many places of a text that is not unique are looked for.
pub(crate) const MOST_PLACES: usize = 11;

/// The places of a text in another: all of them, or the only one.
fn literal_places(text: &str, wanted: Wanted<'_>) -> Result<Vec<Range<usize>>, Miss> {
    let (old, size) = (wanted.old.as_bytes(), wanted.old.len());
    let finder = memmem::Finder::new(old);
    let found = |at| at..at + size;
    if old.is_empty() {
        return Ok(Vec::new());
    }
    if wanted.all {
        return Ok(finder.find_iter(text.as_bytes()).map(found).collect());
    }
    let Some(first) = finder.find(text.as_bytes()) else { return Ok(Vec::new()) };
    // Places that overlap are several, too: `aa` in `aaa` may be either.
    let Some(second) = finder.find(&text.as_bytes()[first + 1..]) else { return Ok(vec![found(first)]) };
    let apart: Vec<usize> = finder.find_iter(text.as_bytes()).collect();
    Err(Miss::Several(if apart.len() > 1 { apart } else { vec![first, first + 1 + second] }))
}

#[cfg(test)]
mod tests;
