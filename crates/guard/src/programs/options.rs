//! How programs read their options: bundles, abbreviations, values, `--`.

use crate::text::{self, HOLES};

/// The options of a program. What is not listed is a flag without a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grammar {
    /// Letters of short options that take a value; a letter followed by `?` takes one only if it is attached, and one
    /// followed by `{…}` only those characters (with `:` among them also all behind a colon): more letters may follow.
    pub(crate) valued: &'static str,
    /// Long options separated by blanks; `=` at the end means a value, `=?` one that must be attached.
    pub(crate) long: &'static str,
    /// Options may stand after operands; otherwise the first operand ends them.
    pub(crate) permute: bool,
    /// Words such as `-name` are one long option and not a bundle of letters.
    pub(crate) single_dash: bool,
}

/// A program that follows GNU conventions.
pub(crate) const fn gnu(valued: &'static str, long: &'static str) -> Grammar {
    Grammar { valued, long, permute: true, single_dash: false }
}

/// A program whose options end at the first operand: wrappers, and programs with verbs.
pub(crate) const fn leading(valued: &'static str, long: &'static str) -> Grammar {
    Grammar { valued, long, permute: false, single_dash: false }
}

/// A program whose long options have one dash.
pub(crate) const fn single_dash(long: &'static str, permute: bool) -> Grammar {
    Grammar { valued: "", long, permute, single_dash: true }
}

/// The words of a command, told apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Name without dashes, and value.
    pub(crate) options: Vec<(String, Option<String>)>,
    /// Everything else.
    pub(crate) operands: Vec<String>,
    /// Some word may be any option.
    pub(crate) unknown: bool,
}

/// What a short option takes.
enum Takes {
    Nothing,
    /// As many of these characters as are attached.
    These(&'static str),
    /// The rest of the word, or else the next one.
    Anything {
        attached: bool,
    },
}

impl Grammar {
    pub(crate) fn read(&self, arguments: &[String]) -> Options {
        let mut found = Options::default();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            if word == "--" {
                found.operands.extend(rest.cloned());
                break;
            }
            if word.starts_with([HOLES, text::OUTPUT]) {
                // Unknown text outside of quotes may be options as well.
                found.unknown = true;
            }
            let dashed = word.len() > 1 && word.starts_with('-');
            if !dashed {
                found.operands.push(word.clone());
                if !self.permute {
                    found.operands.extend(rest.cloned());
                    break;
                }
                continue;
            }
            if text::is_unknown(word) {
                found.unknown = true;
            }
            if let Some(long) = word.strip_prefix("--") {
                self.long(long, &mut rest, &mut found);
            } else if self.single_dash && word.len() > 2 {
                self.long(&word[1..], &mut rest, &mut found);
            } else {
                self.bundle(&word[1..], &mut rest, &mut found);
            }
        }
        found
    }

    fn long<'a>(&self, word: &str, rest: &mut impl Iterator<Item = &'a String>, found: &mut Options) {
        let (written, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        let known = || self.long.split(' ').filter(|spec| !spec.is_empty());
        let bare = |spec: &'static str| spec.trim_end_matches("=?").trim_end_matches('=');
        let exact = known().find(|spec| bare(spec) == written);
        let mut abbreviated = known().filter(|spec| bare(spec).starts_with(written));
        let spec = exact.or_else(|| {
            let first = abbreviated.next()?;
            // An abbreviation of several names is the one they have in common only if all mean the same; take the first.
            (!written.is_empty()).then_some(first)
        });
        let (name, takes) = match spec {
            Some(spec) => (bare(spec).to_owned(), spec.ends_with('=')),
            None => (written.to_owned(), false),
        };
        let value = match attached {
            Some(value) => Some(value),
            None if takes => rest.next().cloned(),
            None => None,
        };
        found.options.push((name, value));
    }

    fn bundle<'a>(&self, letters: &str, rest: &mut impl Iterator<Item = &'a String>, found: &mut Options) {
        let mut left = letters;
        while let Some(letter) = left.chars().next() {
            left = &left[letter.len_utf8()..];
            let name = letter.to_string();
            match self.takes(letter) {
                // Said once is said: whoever asks about options for each operand must not pay for repetitions.
                Takes::Nothing
                    if found.options.iter().take(128).any(|(known, value)| *known == name && value.is_none()) => {}
                Takes::Nothing => found.options.push((name, None)),
                Takes::These(set) => {
                    let colon = left.starts_with(':') && set.contains(':');
                    let length = if colon { left.len() } else { left.find(|c| !set.contains(c)).unwrap_or(left.len()) };
                    let (value, more) = left.split_at(length);
                    found.options.push((name, (!value.is_empty()).then(|| value.to_owned())));
                    left = more;
                }
                Takes::Anything { attached } => {
                    let value = if left.is_empty() && !attached {
                        rest.next().cloned()
                    } else {
                        (!left.is_empty()).then(|| left.to_owned())
                    };
                    found.options.push((name, value));
                    return;
                }
            }
        }
    }

    fn takes(&self, letter: char) -> Takes {
        let mut valued = self.valued.chars();
        while let Some(known) = valued.next() {
            let behind = valued.as_str();
            let set = behind.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let attached = behind.starts_with('?');
            if known == letter && known != '?' {
                return set.map_or(Takes::Anything { attached }, |(set, _)| Takes::These(set));
            }
            if let Some((_, rest)) = set {
                valued = rest.chars();
            }
        }
        Takes::Nothing
    }
}

impl Options {
    /// Whether one of the options, separated by blanks, is there.
    pub(crate) fn has(&self, names: &str) -> bool {
        self.options.iter().any(|(name, _)| names.split(' ').any(|wanted| wanted == name))
    }

    /// The value of the last of these options.
    pub(crate) fn value(&self, names: &str) -> Option<&str> {
        let wanted = |name: &str| names.split(' ').any(|wanted| wanted == name);
        self.options
            .iter()
            .rev()
            .find(|(name, value)| value.is_some() && wanted(name))
            .and_then(|(_, value)| value.as_deref())
    }

    /// The values of all of these options.
    pub(crate) fn values<'a>(&'a self, names: &'a str) -> impl Iterator<Item = &'a str> {
        self.options
            .iter()
            .filter(move |(name, _)| names.split(' ').any(|wanted| wanted == name))
            .filter_map(|(_, value)| value.as_deref())
    }

    /// Asking for help or the version is not doing.
    pub(crate) fn asks_only(&self) -> bool {
        self.has("help version")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(grammar: &Grammar, words: &str) -> Options {
        grammar.read(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_the_way_programs_read_them() {
        const RM: Grammar = gnu("", "recursive force interactive=? preserve-root no-preserve-root");
        const CURL: Grammar = gnu("odX", "output= data=");
        let options = read(&RM, "a -rf --recurs -- -x");
        assert!(options.has("r") && options.has("f") && options.has("recursive"));
        assert_eq!(options.operands, ["a", "-x"]);
        let options = read(&CURL, "-sSo out -XPOST --data=x --output y u");
        assert_eq!(options.values("o output").collect::<Vec<_>>(), ["out", "y"]);
        assert_eq!(options.value("X"), Some("POST"));
        assert_eq!(options.operands, ["u"]);
        let options = read(&gnu("el{01234567}W{01:}", ""), "-l0ne code -W1e more -W:no-e x");
        assert_eq!(options.values("e").collect::<Vec<_>>(), ["code", "more"]);
        assert_eq!(options.values("l W").collect::<Vec<_>>(), ["0", "1", ":no-e"]);
        let options = read(&leading("u", "user="), "-u root rm -rf /");
        assert_eq!(options.operands, ["rm", "-rf", "/"]);
    }
}
