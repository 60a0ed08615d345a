//! From texts to terms: identifiers in parts, stems of English words, pairs of characters where a script has no blanks.

use std::collections::HashSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

/// Words that say nothing about a tool.
static STOP: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "a an the of to in on at by for from with and or is are was were be been am do does did i me my we our us you your it \
     its this that these those as if so can could would will shall should may might must please have has had not no there \
     here what which who whom how when where why than then also just about into"
        .split(' ')
        .filter(|word| !word.is_empty())
        .collect()
});

/// Porter's second algorithm (Snowball, "english").
static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

pub(super) fn is_stop(word: &str) -> bool {
    STOP.contains(word)
}

/// The stem of an English word. What is longer than any of them stays as it is.
pub(super) fn stem(word: &str) -> String {
    const LONGEST: usize = 64;
    if word.len() > LONGEST { word.to_owned() } else { STEMMER.stem(word).into_owned() }
}

/// Chinese, Japanese and Korean characters, whose words no blank separates.
pub(super) fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// The runs of letters and digits of a text, with where each begins.
pub(super) fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let from = rest + text[rest..].find(char::is_alphanumeric)?;
        let length = text[from..].find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len() - from);
        rest = from + length;
        Some((from, &text[from..rest]))
    })
}

/// Gives every word of a run, in lower case: `getHTTPUrl2` has four, a stretch of CJK its overlapping pairs.
pub(super) fn words_of(run: &str, mut give: impl FnMut(&str)) {
    // Most words are like this, and an index has a million of them.
    if run.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return give(run);
    }
    let mut word = String::with_capacity(run.len());
    let mut say = |part: &str| {
        word.clear();
        if part.is_ascii() {
            word.push_str(part);
            word.make_ascii_lowercase();
        } else {
            word.extend(part.chars().flat_map(char::to_lowercase));
        }
        give(&word);
    };
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        let same = is_cjk(first);
        let length = rest.find(|c| is_cjk(c) != same).unwrap_or(rest.len());
        let (part, next) = rest.split_at(length);
        rest = next;
        if !same {
            if part.len() == run.len() && is_mixed(part) {
                in_parts(part, &mut say);
            } else {
                say(part);
            }
            continue;
        }
        let starts: Vec<usize> = part.char_indices().map(|(at, _)| at).chain([part.len()]).collect();
        if starts.len() == 2 {
            say(part);
        }
        starts.windows(3).for_each(|pair| say(&part[pair[0]..pair[2]]));
    }
}

/// Whether a run is made of several words: `getUrl`, `HTTPServer`, `top10`.
fn is_mixed(run: &str) -> bool {
    let bytes = run.as_bytes();
    bytes.windows(2).any(|pair| {
        pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()
            || pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit()
            || pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic()
    }) || bytes
        .windows(3)
        .any(|three| three[0].is_ascii_uppercase() && three[1].is_ascii_uppercase() && three[2].is_ascii_lowercase())
}

fn in_parts(run: &str, say: &mut impl FnMut(&str)) {
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        let count = |belongs: fn(char) -> bool| rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        let length = match first {
            'A'..='Z' => {
                let capitals = count(|c| c.is_ascii_uppercase());
                let small = rest[capitals..].find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len() - capitals);
                match (capitals, small) {
                    (1, small) => 1 + small,
                    (_, 0) => capitals,
                    // The last capital begins the next word.
                    _ => capitals - 1,
                }
            }
            'a'..='z' => count(|c| c.is_ascii_lowercase()),
            '0'..='9' => count(|c| c.is_ascii_digit()),
            _ => count(|c| !c.is_ascii_digit()),
        };
        let (part, next) = rest.split_at(length.max(first.len_utf8()));
        say(part);
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        runs(text).for_each(|(_, run)| words_of(run, |word| all.push(word.to_owned())));
        all
    }

    #[test]
    fn names_fall_into_their_words() {
        for (text, expected) in [
            ("get_current_weather", "get current weather"),
            ("getHTTPUrl2", "get http url 2"),
            ("Movies_3_FindMovies", "movies 3 find movies"),
            ("IBM", "ibm"),
            ("x-y.z:w", "x y z w"),
            ("Éclair été", "éclair été"),
            ("查天气", "查天 天气"),
            ("用Rust写", "用 rust 写"),
            ("", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn stems_are_those_of_snowball() {
        for (word, expected) in
            [("calculating", "calcul"), ("cities", "citi"), ("weather", "weather"), ("天气", "天气")]
        {
            assert_eq!(stem(word), expected);
        }
        assert!(is_stop("the") && !is_stop("find") && !is_stop(""));
    }
}
