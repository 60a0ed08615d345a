//! What a question asks for: groups of terms, each of which a tool may meet with any of its variants.
//!
//! The tricky idea is that not every word of a question is about the tool. A city, a date or a quoted title is what the tool
//! will be called with; it tells which *parameters* a tool has, not what the tool is. So such words count less, and where
//! their kind is known, the names of such parameters are looked for instead.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::words::{is_cjk, is_stop, runs, stem, words_of};

/// What a word of a question is; the later one counts where a word occurs as several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// A month, a weekday, a number.
    Date,
    /// Within quotes.
    Quoted,
    /// It has a capital where none is needed.
    Proper,
    Plain,
}

/// One way to meet a group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Variant {
    pub(super) term: String,
    pub(super) weight: f32,
    /// It is about what a tool takes, not about what it is.
    pub(super) in_parameters: bool,
}

/// A question, understood as far as counting needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    pub(super) groups: Vec<Vec<Variant>>,
    /// Whether it has a place, a date, a time.
    pub(super) slots: [bool; 3],
    pub(super) numbers: usize,
    /// It has values in it, so that a tool that needs others is the wrong one. A search by words has none.
    pub(super) has_values: bool,
}

const QUOTED: f32 = 0.65;
const PROPER: f32 = 0.65;
const DATE: f32 = 0.3;
const FILLED: f32 = 0.3;
const OF_A_KIND: f32 = 0.75;
const SYNONYM: f32 = 0.4;

/// Words that questions are full of, whatever they are about.
static FILLER: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let words = "want need like looking look tell know help let give show think going go planning plan interested interest \
                 try trying wonder wondering hi hello hey thanks thank kindly sure really very some any one all more much many \
                 now currently able up out over use using able feel feeling love hear see hope ask question request";
    words.split_whitespace().map(stem).collect()
});

static CALENDAR: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let words = "january february march april may june july august september october november december jan feb mar apr jun \
                 jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday";
    words.split_whitespace().collect()
});

/// The other words of the groups that a word is in.
static SYNONYMS: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut all: HashMap<String, Vec<String>> = HashMap::new();
    for line in lines(include_str!("synonyms.txt")) {
        let stems: Vec<String> = line.split_whitespace().map(stem).collect();
        for word in &stems {
            all.entry(word.clone()).or_default().extend(stems.iter().filter(|other| *other != word).cloned());
        }
    }
    for others in all.values_mut() {
        others.sort();
        others.dedup();
    }
    all
});

/// What Chinese words are called in English.
static CHINESE: LazyLock<HashMap<&str, Vec<String>>> = LazyLock::new(|| {
    let entries = lines(include_str!("chinese.txt")).filter_map(|line| line.split_once(' '));
    entries.map(|(word, called)| (word, called.split_whitespace().map(stem).collect())).collect()
});

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

const MONTH: &str = "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?\
                     |oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";

/// Kinds of values and the parameters that take them. The first three are what tools are known to require.
static KINDS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let place = r"\b[A-Z][a-z]+,\s?(?:[A-Z]{2}\b|[A-Z][a-z]+)|\b(?:in|at|near|around|from|to|visit(?:ing)?|for)\s+(?:the\s+)?(?:city of\s+)?[A-Z][a-z]+";
    let date = format!(
        r"(?i)\b\d{{4}}[-/.]\s?\d{{1,2}}[-/.]\s?\d{{1,2}}\b|\b\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}\b|\b{MONTH}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\b|\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH}\b|\b(?:tomorrow|today|tonight|yesterday)\b|\bnext (?:week|month|weekend)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    );
    let time = r"(?i)\b\d{1,2}(?::\d{2})?\s?(?:am|pm|a\.m\.|p\.m\.)|\b\d{1,2}:\d{2}\b";
    let year = r"\b(?:1[5-9]|20)\d\d\b";
    let money = r"(?i)[$€£¥₹]\s?\d|\b\d[\d,.]*\s?(?:usd|eur|gbp|dollars?|euros?|pounds|yen|pesos?|rupees|yuan|rmb|btc)\b|\b(?:USD|EUR|GBP|JPY|CNY|INR|AUD|CAD)\b";
    let url = r"(?i)https?://|\bwww\.";
    let email = r"\b[\w.+-]+@[\w-]+\.\w+";
    let path = r#"(?:^|[\s'"(])(?:[A-Za-z]:\\|~?/[\w.-]+/)|\b[\w-]+\.(?:txt|csv|json|pdf|png|jpe?g|py|xlsx?|docx?|md|xml|html?)\b"#;
    let all = [
        (place, "location city"),
        (&date, "date"),
        (time, "time"),
        (year, "year"),
        (money, "amount price currency"),
        (url, "url"),
        (email, "email"),
        (path, "file path"),
    ];
    all.iter().filter_map(|(pattern, called)| Some((Regex::new(pattern).ok()?, *called))).collect()
});

static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[$€£]?\d[\d,.]*").ok());
static NUMBER_WORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|fifty|hundred|thousand|million|half|quarter|dozen)\b",
    )
    .ok()
});

impl Question {
    pub(super) fn of(text: &str) -> Self {
        let words = classified(text);
        let mut question = Self::default();
        for (term, class) in &words {
            let weight = match class {
                Class::Date => DATE,
                Class::Quoted => QUOTED,
                Class::Proper => PROPER,
                Class::Plain if FILLER.contains(term) => FILLED,
                Class::Plain => 1.0,
            };
            let mut group = vec![Variant { term: term.clone(), weight, in_parameters: false }];
            if *class >= Class::Proper {
                let others = SYNONYMS.get(term).into_iter().flatten();
                group.extend(others.map(|other| Variant {
                    term: other.clone(),
                    weight: SYNONYM,
                    in_parameters: false,
                }));
            }
            question.groups.push(group);
        }
        let mut is_any = false;
        for (at, (pattern, called)) in KINDS.iter().enumerate() {
            if !pattern.is_match(text) {
                continue;
            }
            is_any = true;
            if let Some(named) = question.slots.get_mut(at) {
                *named = true;
            }
            let new = called.split(' ').map(stem).filter(|term| words.iter().all(|(word, _)| word != term));
            let group: Vec<_> = new.map(|term| Variant { term, weight: OF_A_KIND, in_parameters: true }).collect();
            if !group.is_empty() {
                question.groups.push(group);
            }
        }
        let new = translated(text)
            .into_iter()
            .filter(|group| group.iter().all(|one| words.iter().all(|(word, _)| *word != one.term)));
        question.groups.extend(new);
        question.numbers = numbers(text);
        let has_names = words.iter().any(|(_, class)| matches!(class, Class::Proper | Class::Quoted));
        question.has_values = question.numbers > 0 || is_any || has_names;
        question
    }
}

/// The terms of a question, each once, in the order in which they first occur.
fn classified(text: &str) -> Vec<(String, Class)> {
    let quoted = quoted(text);
    let (letters, capitals) = text
        .chars()
        .filter(|c| c.is_alphabetic())
        .fold((0, 0), |(letters, capitals), c| (letters + 1, capitals + usize::from(c.is_uppercase())));
    let is_loud = capitals * 2 > letters.max(1);
    let mut words: Vec<(String, Class)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (at, run) in runs(text) {
        let before = text[..at].trim_end_matches([' ', '"', '\'', '(', '“', '`']);
        let begins = before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n', ';']);
        let next = quoted.partition_point(|place| place.end <= at);
        let is_quoted = quoted.get(next).is_some_and(|place| place.contains(&at));
        let is_proper = run.starts_with(char::is_uppercase) && !begins && !is_loud;
        words_of(run, |word| {
            if is_stop(word) {
                return;
            }
            let class = if CALENDAR.contains(word) || is_ordinal(word) {
                Class::Date
            } else if is_quoted {
                Class::Quoted
            } else if is_proper {
                Class::Proper
            } else {
                Class::Plain
            };
            let term = stem(word);
            let at = *known.entry(term.clone()).or_insert(words.len());
            match words.get_mut(at) {
                Some((_, known)) => *known = class.max(*known),
                None => words.push((term, class)),
            }
        });
    }
    words
}

/// `12`, `3rd`.
fn is_ordinal(word: &str) -> bool {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < word.len() && matches!(rest, "" | "st" | "nd" | "rd" | "th")
}

/// The parts of a text in quotes. An apostrophe within a word is none.
fn quoted(text: &str) -> Vec<std::ops::Range<usize>> {
    const LONGEST: usize = 400;
    let mut all = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(['"', '\'', '“', '`']).map(|at| from + at) {
        let open = text[at..].chars().next().unwrap_or('"');
        // Several in a row fence a block.
        let marks =
            if open == '`' { text[at..].bytes().take_while(|byte| *byte == b'`').count() } else { open.len_utf8() };
        let inside = at + marks;
        let close = if open == '“' { '”' } else { open };
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if open == '\'' && text[..at].ends_with(is_word) {
            from = inside;
            continue;
        }
        let may_span_lines = matches!(open, '“' | '`');
        let end = text[inside..].char_indices().take(LONGEST).take_while(|(_, c)| may_span_lines || *c != '\n').find(
            |(place, c)| {
                *c == close && *place > 0 && !(open == '\'' && text[inside + place + 1..].starts_with(is_word))
            },
        );
        match end {
            Some((place, _)) => {
                all.push(at..inside + place);
                from = inside + place + close.len_utf8();
            }
            None => from = inside,
        }
    }
    all
}

/// Chinese words, the longest first, each once.
fn translated(text: &str) -> Vec<Vec<Variant>> {
    const LONGEST: usize = 4;
    let mut groups = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for part in text.split(|c| !is_cjk(c)) {
        let mut rest = part;
        while !rest.is_empty() {
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).take(LONGEST).collect::<Vec<_>>();
            let known = ends.iter().rev().find_map(|end| Some((*end, CHINESE.get(&rest[..*end])?)));
            let end = known.map_or(ends[0], |(end, _)| end);
            let new = known.filter(|(end, _)| seen.insert(&rest[..*end]));
            groups.extend(new.map(|(_, called)| {
                let variant = |term: &String| Variant { term: term.clone(), weight: 1.0, in_parameters: false };
                called.iter().map(variant).collect()
            }));
            rest = &rest[end..];
        }
    }
    groups
}

fn numbers(text: &str) -> usize {
    let stands_alone = |before: &str| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
    let digits = NUMBER.iter().flat_map(|number| number.find_iter(text));
    let words = NUMBER_WORD.iter().flat_map(|word| word.find_iter(text)).count();
    let is_sum = |found: &regex::Match<'_>| !found.as_str().starts_with(|c: char| c.is_ascii_digit());
    digits.filter(|found| is_sum(found) || stands_alone(&text[..found.start()])).count() + words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(text: &str) -> Vec<(String, f32)> {
        Question::of(text).groups.into_iter().map(|group| (group[0].term.clone(), group[0].weight)).collect()
    }

    #[test]
    fn all_patterns_can_be_compiled() {
        assert_eq!(KINDS.len(), 8);
        assert!(NUMBER.is_some() && NUMBER_WORD.is_some());
    }

    #[test]
    fn words_count_by_what_they_are() {
        assert_eq!(
            weights("I want the weather of 'big town' and Rome on monday"),
            [
                ("want", 0.3),
                ("weather", 1.0),
                ("big", 0.65),
                ("town", 0.65),
                ("rome", 0.65),
                ("monday", 0.3),
                ("date", 0.75)
            ]
            .map(|(term, weight)| (term.to_owned(), weight))
        );
        assert_eq!(weights("it's 'x")[0].0, "s");
        assert_eq!(weights("```\nweather of towns\n```")[0], ("weather".to_owned(), 0.65));
        assert_eq!(weights("文件文件").iter().filter(|(term, _)| term == "file").count(), 1);
        assert_eq!(numbers("US$100 and A$5, x1 2.5"), 3);
        assert_eq!(
            weights("删除文件"),
            [("删除", 1.0), ("除文", 1.0), ("文件", 1.0), ("delet", 1.0), ("file", 1.0)]
                .map(|(term, weight)| (term.to_owned(), weight))
        );
    }

    #[test]
    fn values_are_seen_and_a_search_by_words_has_none() {
        let question = Question::of("a table for two in Rome at 7pm, $20.50 each");
        assert_eq!((question.slots, question.numbers, question.has_values), ([true, false, true], 3, true));
        let question = Question::of("send email");
        assert_eq!((question.slots, question.numbers, question.has_values), ([false; 3], 0, false));
    }
}
