//! What a shell knows while it runs, as sets of possibilities.
//!
//! Branches are followed one after the other on the same state. Whatever a branch changes is written to a log; at its end
//! the log takes the changes back, and after the last branch the possibilities of all of them are joined. The price of a
//! branch is what it changes, not what there is.

use std::collections::HashMap;
use std::rc::Rc;

use crate::shell::syntax::Command;

/// One possible value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Unset,
    Text(String),
    /// Keys and elements, in order.
    Array(Vec<(String, String)>),
}

/// All possible values; never empty.
pub(crate) type Values = Rc<Vec<Value>>;

/// What is known of a file that this very command wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileFact {
    /// Its text, with holes.
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Variable(String),
    Function(String),
    Alias(String),
    File(String),
    Link(String),
    Positional,
}

#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Variable(Option<Values>),
    Function(Option<Vec<Rc<Command>>>),
    Text(Option<String>),
    Positional(Vec<String>),
}

/// How many possibilities of one thing are kept apart.
pub(crate) const MOST_VALUES: usize = 24;

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) variables: HashMap<String, Values>,
    pub(crate) functions: HashMap<String, Vec<Rc<Command>>>,
    pub(crate) aliases: HashMap<String, String>,
    pub(crate) files: HashMap<String, FileFact>,
    pub(crate) links: HashMap<String, String>,
    pub(crate) positional: Vec<String>,
    log: Vec<(Key, Slot)>,
    /// How many callers may want to go back.
    marks: usize,
}

impl State {
    pub(crate) fn slot(&self, key: &Key) -> Slot {
        match key {
            Key::Variable(name) => Slot::Variable(self.variables.get(name).cloned()),
            Key::Function(name) => Slot::Function(self.functions.get(name).cloned()),
            Key::Alias(name) => Slot::Text(self.aliases.get(name).cloned()),
            Key::File(path) => Slot::Text(self.files.get(path).map(|fact| fact.text.clone())),
            Key::Link(path) => Slot::Text(self.links.get(path).cloned()),
            Key::Positional => Slot::Positional(self.positional.clone()),
        }
    }

    fn put(&mut self, key: Key, slot: Slot) {
        fn replace<T>(map: &mut HashMap<String, T>, name: String, value: Option<T>) {
            match value {
                Some(value) => map.insert(name, value),
                None => map.remove(&name),
            };
        }
        match (key, slot) {
            (Key::Variable(name), Slot::Variable(values)) => replace(&mut self.variables, name, values),
            (Key::Function(name), Slot::Function(bodies)) => replace(&mut self.functions, name, bodies),
            (Key::Alias(name), Slot::Text(text)) => replace(&mut self.aliases, name, text),
            (Key::File(path), Slot::Text(text)) => replace(&mut self.files, path, text.map(|text| FileFact { text })),
            (Key::Link(path), Slot::Text(text)) => replace(&mut self.links, path, text),
            (Key::Positional, Slot::Positional(words)) => self.positional = words,
            _ => {}
        }
    }

    /// Changes one thing.
    pub(crate) fn set(&mut self, key: Key, slot: Slot) {
        if self.marks > 0 {
            self.log.push((key.clone(), self.slot(&key)));
        }
        self.put(key, slot);
    }

    pub(crate) fn set_text(&mut self, name: &str, text: impl Into<String>) {
        self.set(Key::Variable(name.into()), Slot::Variable(Some(Rc::new(vec![Value::Text(text.into())]))));
    }

    /// A place to go back to with [`State::take_back`] or [`State::keep`].
    pub(crate) fn mark(&mut self) -> usize {
        self.marks += 1;
        self.log.len()
    }

    /// Lets everything since the mark stand.
    pub(crate) fn keep(&mut self, mark: usize) {
        self.marks -= 1;
        if self.marks == 0 {
            self.log.clear();
        }
        debug_assert!(self.marks == 0 || self.log.len() >= mark);
    }

    /// Takes back everything since the mark and answers what it was.
    pub(crate) fn take_back(&mut self, mark: usize) -> Vec<(Key, Slot)> {
        self.marks -= 1;
        let undo: Vec<_> = self.log.drain(mark..).collect();
        let mut changed: Vec<(Key, Slot)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (key, _) in &undo {
            if seen.insert(key) {
                changed.push((key.clone(), self.slot(key)));
            }
        }
        for (key, slot) in undo.into_iter().rev() {
            self.put(key, slot);
        }
        changed
    }

    /// Joins what several branches changed; `base` says whether none of them may have run.
    pub(crate) fn join(&mut self, branches: Vec<Vec<(Key, Slot)>>, base: bool) {
        let count = branches.len();
        let mut joined: Vec<(Key, Slot)> = Vec::new();
        let mut index: HashMap<Key, usize> = HashMap::new();
        let mut times: Vec<usize> = Vec::new();
        for (key, slot) in branches.into_iter().flatten() {
            if let Some(&at) = index.get(&key) {
                times[at] += 1;
                let before = std::mem::replace(&mut joined[at].1, Slot::Text(None));
                joined[at].1 = both(before, slot);
            } else {
                index.insert(key.clone(), joined.len());
                times.push(1);
                joined.push((key, slot));
            }
        }
        for ((key, slot), times) in joined.into_iter().zip(times) {
            let slot = if base || times < count { both(self.slot(&key), slot) } else { slot };
            self.set(key, slot);
        }
    }
}

/// Either of two possibilities.
fn both(a: Slot, b: Slot) -> Slot {
    match (a, b) {
        (Slot::Variable(a), Slot::Variable(b)) => {
            let unset = || Rc::new(vec![Value::Unset]);
            let (a, b) = (a.unwrap_or_else(unset), b.unwrap_or_else(unset));
            if a == b {
                return Slot::Variable(Some(a));
            }
            let mut values = a.to_vec();
            for value in b.iter() {
                if !values.contains(value) {
                    if values.len() >= MOST_VALUES {
                        values.push(Value::Text(crate::text::HOLE.to_string()));
                        break;
                    }
                    values.push(value.clone());
                }
            }
            Slot::Variable(Some(Rc::new(values)))
        }
        (Slot::Function(a), Slot::Function(b)) => {
            let mut bodies = a.unwrap_or_default();
            for body in b.unwrap_or_default() {
                if !bodies.contains(&body) && bodies.len() < MOST_VALUES {
                    bodies.push(body);
                }
            }
            Slot::Function((!bodies.is_empty()).then_some(bodies))
        }
        // Either text may be the one that is run: both are read.
        (Slot::Text(Some(a)), Slot::Text(Some(b))) if a != b => Slot::Text(Some(format!("{a}\n{b}"))),
        (Slot::Text(a), Slot::Text(b)) => Slot::Text(a.or(b)),
        (_, b) => b,
    }
}
