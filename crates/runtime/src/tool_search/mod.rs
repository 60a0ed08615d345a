//! Which of many tools does somebody mean? An index over names, descriptions and parameters, and a ranking of it.
//!
//! It is BM25 over weighted fields (Robertson and Zaragoza, 2009) with three additions, each of which pays on real questions
//! (`cases/tool-search`; `docs/decisions/tool-search.md` has the ablations): how much of the question a tool covers, how much
//! a tool talks in all, and what it requires that the question does not have. Where several words mean one thing, the best of
//! them counts. Names come first: whoever writes a name, with whatever marks around it, gets that tool.
//!
//! All that does not depend on the question is computed when the index is built, so that a search adds up a few numbers for
//! each tool that has a word of it. Ties go by the order of the catalogue; the same question gives the same answer.
#![allow(clippy::cast_precision_loss, reason = "counts of words and tools are far below what an f32 holds exactly")]

mod question;
mod words;

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use self::question::{Question, Variant};
use self::words::{is_cjk, is_stop, runs, stem, words_of};

/// The fields: the name, the description, names of parameters, what is said about them, the values that they may have.
const FIELDS: usize = 5;
const WEIGHTS: [f32; FIELDS] = [6.0, 2.0, 1.0, 0.5, 1.0];
/// How much the length of a field counts, and how soon a word that is repeated counts no more.
const LENGTH: f32 = 0.5;
const SATURATION: f32 = 2.0;
/// A word is not worth more than `ln N` less this: in a small catalogue every word is rare.
const RAREST: f32 = 2.5;
const LEAST_RAREST: f32 = 2.0;
/// Exponents of how much of the question is covered and of how much the tool says.
const COVERAGE: f32 = 0.6;
const TALK: f32 = -0.75;
const LEAST_TALK: f32 = 0.5;
/// What a missing value and a required parameter cost, and what is left at least.
const MISSING: f32 = 0.15;
const REQUIRED: f32 = 0.02;
const LEAST_LEFT: f32 = 0.2;
const MOST_REQUIRED: usize = 6;
const MOST_MISSING_NUMBERS: usize = 2;
/// What a name is worth: the question itself, the end of one, one in a sentence.
const IS_NAME: f32 = 2_000.0;
const ENDS_NAME: f32 = 1_000.0;
const HAS_NAME: f32 = 500.0;
/// A name in the very letters in which it is registered.
const SAME_LETTERS: f32 = 1.0;
/// Characters that the end of a name has at least.
const SHORTEST_END: usize = 3;

/// Names of parameters that take a place, a date, a time.
const SLOTS: [&[&str]; 3] = [
    &[
        "location",
        "city",
        "place",
        "state",
        "country",
        "region",
        "address",
        "destination",
        "origin",
        "area",
        "district",
        "zip",
    ],
    &["date", "day", "start", "end", "when"],
    &["time", "hour"],
];

/// One tool of a catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// Its JSON Schema.
    pub parameters: &'a Value,
}

/// A tool that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its place in the catalogue, from 0.
    pub tool: usize,
    /// Higher is better; comparable within one answer only.
    pub score: f32,
}

/// An index of a catalogue. Never changes.
#[derive(Debug, Default)]
pub struct Index {
    terms: HashMap<String, Term>,
    postings: Vec<Posting>,
    tools: Vec<Tool>,
    /// The tools of each name, in lower case.
    by_name: HashMap<String, Vec<usize>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Term {
    idf: f32,
    first: usize,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Posting {
    tool: u32,
    /// What the term is worth for the tool: by all fields, and by those of the parameters.
    all: f32,
    parameters: f32,
}

#[derive(Clone, Debug, Default)]
struct Tool {
    /// As it is, and in lower case.
    name: String,
    lower: String,
    /// What its score is multiplied with for how much it says.
    talk: f32,
    /// Whether it must be given a place, a date, a time; how many numbers; how many parameters in all.
    required_slots: [bool; 3],
    required_numbers: usize,
    required: usize,
}

impl Index {
    /// Reads a catalogue. The time is linear in its text.
    pub fn new<'a>(catalogue: impl IntoIterator<Item = Described<'a>>) -> Self {
        let mut building = Building::default();
        catalogue.into_iter().for_each(|tool| building.add(tool));
        building.finish()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tools that `question` may mean, the likeliest first, at most `limit`.
    pub fn search(&self, question: &str, limit: usize) -> Vec<Hit> {
        let asked = Question::of(question);
        let count = self.tools.len();
        let (mut scores, mut covered, mut whole) = (vec![0.0_f32; count], vec![0.0_f32; count], 0.0);
        let mut best: Vec<(f32, f32)> = vec![(0.0, 0.0); count];
        let mut met: Vec<u32> = Vec::new();
        for group in &asked.groups {
            whole += self.meet(group, &mut best, &mut met);
            for tool in met.drain(..) {
                let tool = tool as usize;
                let (worth, rarity) = std::mem::take(&mut best[tool]);
                scores[tool] += worth;
                covered[tool] += rarity;
            }
        }
        for (at, score) in scores.iter_mut().enumerate().filter(|(_, score)| **score > 0.0) {
            let tool = &self.tools[at];
            *score *= (covered[at] / whole).powf(COVERAGE) * tool.talk;
            if asked.has_values {
                *score *= tool.suits(&asked);
            }
        }
        self.add_names(question, &mut scores);
        let mut hits: Vec<Hit> = scores
            .into_iter()
            .enumerate()
            .filter(|(_, score)| *score > 0.0)
            .map(|(tool, score)| Hit { tool, score })
            .collect();
        let order = |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then(a.tool.cmp(&b.tool));
        if hits.len() > limit && limit > 0 {
            hits.select_nth_unstable_by(limit - 1, order);
        }
        hits.truncate(limit);
        hits.sort_by(order);
        hits
    }

    /// Finds for every tool the variant that it meets best. Answers the most that a tool could have.
    fn meet(&self, group: &[Variant], best: &mut [(f32, f32)], met: &mut Vec<u32>) -> f32 {
        let mut most = 0.0_f32;
        for variant in group {
            let Some(term) = self.terms.get(&variant.term) else { continue };
            let rarity = variant.weight * term.idf;
            most = most.max(rarity);
            for posting in &self.postings[term.first..term.first + term.count] {
                let worth = variant.weight * if variant.in_parameters { posting.parameters } else { posting.all };
                if worth <= 0.0 {
                    continue;
                }
                let known = &mut best[posting.tool as usize];
                if known.0 <= 0.0 {
                    met.push(posting.tool);
                }
                *known = (known.0.max(worth), known.1.max(rarity));
            }
        }
        most
    }

    /// Raises the tools whose names are in the question: it may be one, the end of one, or have some in it.
    fn add_names(&self, question: &str, scores: &mut [f32]) {
        let is_part = |c: char| (c.is_alphanumeric() && !is_cjk(c)) || "_.-:/".contains(c);
        let words: Vec<&str> =
            question.split(|c| !is_part(c)).map(|word| word.trim_matches(['.', '-', ':', '/'])).collect();
        let mut words = words.into_iter().filter(|word| !word.is_empty());
        let (first, second) = (words.next(), words.next());
        if let (Some(word), None) = (first, second)
            && self.add_name(word, scores)
        {
            return;
        }
        for word in first.into_iter().chain(second).chain(words) {
            let looks_like_one = word.contains(['_', '.', '-', ':', '/'])
                || word.as_bytes().windows(2).any(|pair| pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit());
            let named = self.by_name.get(&word.to_lowercase()).filter(|_| looks_like_one);
            for tool in named.into_iter().flatten() {
                scores[*tool] += HAS_NAME + if self.tools[*tool].name == word { SAME_LETTERS } else { 0.0 };
            }
        }
    }

    /// Raises the tools of which this is the name or its end. `false`: there is none.
    fn add_name(&self, word: &str, scores: &mut [f32]) -> bool {
        let lower = word.to_lowercase();
        let mut any = false;
        for (tool, score) in self.tools.iter().zip(scores) {
            let worth = match tool.lower.strip_suffix(&lower) {
                Some("") if tool.name == word => IS_NAME + SAME_LETTERS,
                Some("") => IS_NAME,
                Some(begin) if lower.chars().count() >= SHORTEST_END && !begin.ends_with(char::is_alphanumeric) => {
                    // Of several, the one that has the least besides. No name has so many characters.
                    ENDS_NAME - tool.lower.chars().take(400).count() as f32
                }
                _ => continue,
            };
            any = true;
            *score += worth;
        }
        any
    }
}

impl Tool {
    /// What is left of a tool's score for what it requires and the question does not have.
    fn suits(&self, asked: &Question) -> f32 {
        let slots = self.required_slots.iter().zip(asked.slots).filter(|(required, has)| **required && !has).count();
        let numbers = self.required_numbers.saturating_sub(asked.numbers).min(MOST_MISSING_NUMBERS);
        let cost = MISSING * (slots + numbers) as f32 + REQUIRED * self.required as f32;
        (1.0 - cost).max(LEAST_LEFT)
    }
}

/// An index that is being built: words as numbers, since most of them occur many times.
#[derive(Default)]
struct Building {
    /// The number of the term of each word; `None` for those that say nothing.
    words: HashMap<String, Option<u32>>,
    terms: HashMap<String, u32>,
    /// For each term the tools that have it, with how often in each field.
    found: Vec<Vec<(u32, [u16; FIELDS])>>,
    lengths: Vec<[f32; FIELDS]>,
    tools: Vec<Tool>,
}

impl Building {
    fn add(&mut self, described: Described<'_>) {
        let number = u32::try_from(self.tools.len()).unwrap_or(u32::MAX);
        let mut parameters = Vec::new();
        collect(described.parameters, 0, &mut parameters);
        let mut lengths = [0.0; FIELDS];
        lengths[0] += self.field(number, 0, described.name);
        lengths[1] += self.field(number, 1, described.description);
        for parameter in &parameters {
            lengths[2] += self.field(number, 2, parameter.name);
            lengths[3] += self.field(number, 3, parameter.description);
            for value in parameter.values {
                lengths[4] += match value {
                    Value::String(text) => self.field(number, 4, text),
                    other => self.field(number, 4, &other.to_string()),
                };
            }
        }
        self.lengths.push(lengths);
        let (name, lower) = (described.name.to_owned(), described.name.to_lowercase());
        let mut tool = Tool { name, lower, ..Tool::default() };
        let required = described.parameters["required"].as_array().into_iter().flatten();
        let required: HashSet<&str> = required.filter_map(Value::as_str).collect();
        for parameter in parameters.iter().filter(|parameter| parameter.depth == 0) {
            if !required.contains(parameter.name) {
                continue;
            }
            tool.required += usize::from(tool.required < MOST_REQUIRED);
            tool.required_numbers += usize::from(parameter.is_number);
            for (_, run) in runs(parameter.name) {
                words_of(run, |word| {
                    for (requires, slot) in tool.required_slots.iter_mut().zip(SLOTS) {
                        *requires |= slot.contains(&word);
                    }
                });
            }
        }
        self.tools.push(tool);
    }

    /// Counts the terms of one field. Answers how many there are.
    fn field(&mut self, tool: u32, field: usize, text: &str) -> f32 {
        let mut length = 0_u32;
        for (_, run) in runs(text) {
            words_of(run, |word| {
                let Some(term) = self.term(word) else { return };
                length += 1;
                let found = &mut self.found[term as usize];
                if found.last().is_none_or(|(last, _)| *last != tool) {
                    found.push((tool, [0; FIELDS]));
                }
                if let Some((_, counts)) = found.last_mut() {
                    counts[field] = counts[field].saturating_add(1);
                }
            });
        }
        length as f32
    }

    fn term(&mut self, word: &str) -> Option<u32> {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let term = (!is_stop(word)).then(|| {
            let next = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
            let number = *self.terms.entry(stem(word)).or_insert(next);
            if number == next {
                self.found.push(Vec::new());
            }
            number
        });
        self.words.insert(word.to_owned(), term);
        term
    }

    fn finish(mut self) -> Index {
        let count = self.tools.len() as f32;
        let mut average = [f32::EPSILON; FIELDS];
        for lengths in &self.lengths {
            average.iter_mut().zip(lengths).for_each(|(sum, length)| *sum += length / count);
        }
        let rarest = (count.max(1.0).ln() - RAREST).max(LEAST_RAREST);
        let mut index = Index::default();
        let mut talk = vec![0.0_f32; self.tools.len()];
        let mut terms: Vec<(String, u32)> = self.terms.drain().collect();
        // A sum depends on its order in the last place.
        terms.sort_by_key(|(_, number)| *number);
        for (term, number) in terms {
            let found = &self.found[number as usize];
            let with = found.len() as f32;
            let idf = (1.0 + (count - with + 0.5) / (with + 0.5)).ln().min(rarest);
            let first = index.postings.len();
            for (tool, counts) in found {
                let lengths = &self.lengths[*tool as usize];
                let weight = |field: usize| {
                    let length = 1.0 - LENGTH + LENGTH * lengths[field] / average[field];
                    if counts[field] == 0 { 0.0 } else { WEIGHTS[field] * f32::from(counts[field]) / length }
                };
                let parameters: f32 = (2..FIELDS).map(weight).sum();
                let all = weight(0) + weight(1) + parameters;
                let worth = |weight: f32| idf * weight / (SATURATION + weight);
                index.postings.push(Posting { tool: *tool, all: worth(all), parameters: worth(parameters) });
                talk[*tool as usize] += worth(all).powi(2);
            }
            index.terms.insert(term, Term { idf, first, count: found.len() });
        }
        let mean = talk.iter().map(|sum| sum.sqrt()).sum::<f32>() / count.max(1.0);
        for (tool, sum) in self.tools.iter_mut().zip(talk) {
            tool.talk = (sum.sqrt() / mean.max(f32::EPSILON)).max(LEAST_TALK).powf(TALK);
        }
        for (at, tool) in self.tools.iter().enumerate() {
            index.by_name.entry(tool.lower.clone()).or_default().push(at);
        }
        index.tools = self.tools;
        index
    }
}

/// A parameter at any depth of a schema.
struct Parameter<'a> {
    name: &'a str,
    description: &'a str,
    values: &'a [Value],
    is_number: bool,
    depth: usize,
}

/// More levels than anybody writes, and few enough for any stack.
const DEEPEST: usize = 32;

fn collect<'a>(schema: &'a Value, depth: usize, all: &mut Vec<Parameter<'a>>) {
    let Some(properties) = schema["properties"].as_object().filter(|_| depth < DEEPEST) else { return };
    for (name, schema) in properties {
        let items = &schema["items"];
        let values = [schema, items].into_iter().find_map(|schema| schema["enum"].as_array());
        all.push(Parameter {
            name,
            description: schema["description"].as_str().unwrap_or_default(),
            values: values.map(Vec::as_slice).unwrap_or_default(),
            is_number: matches!(schema["type"].as_str(), Some("integer" | "number")),
            depth,
        });
        collect(schema, depth + 1, all);
        collect(items, depth + 1, all);
    }
}
