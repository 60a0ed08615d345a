//! Assignments: texts, elements, attributes, what is local.

use std::rc::Rc;

use super::Machine;
use super::state::{Key, Slot, Value};
use crate::programs;
use crate::shell::syntax::{AssignedValue, Assignment};
use crate::text::{self, HOLE, PLAIN};

impl Machine<'_> {
    /// `declare -i`, `-l`, `-u`: what the variable will do to its values.
    pub(super) fn declare_letters(&mut self, name: &str, arguments: &[String]) {
        for argument in arguments {
            let letters = argument.trim_start_matches(['-', '+']);
            if letters.len() == argument.len() || !text::is_literal(argument) {
                continue;
            }
            for letter in letters.chars().filter(|letter| matches!(letter, 'A' | 'i' | 'l' | 'u')) {
                let known = self.attributes.entry(name.to_owned()).or_default();
                // Small and capital letters exclude one another.
                known.retain(|c| c != letter && !(matches!(c, 'l' | 'u') && matches!(letter, 'l' | 'u')));
                if argument.starts_with('-') {
                    known.push(letter);
                }
            }
        }
    }

    pub(super) fn make_local(&mut self, name: &str) {
        let key = Key::Variable(name.to_owned());
        let slot = self.state.slot(&key);
        if let Some(frame) = self.frames.last_mut() {
            frame.locals.push((key, slot));
        }
    }

    pub(super) fn assign(&mut self, assignment: &Assignment, exported: bool) {
        let name = assignment.name.as_str();
        match &assignment.value {
            AssignedValue::Scalar(word) => {
                let mut value = self.assigned_text(word);
                if let Some(index) = &assignment.index {
                    let key = self.text_of(index);
                    let key = self.element_key(name, key);
                    return self.assign_element(name, &key, value, assignment.append);
                }
                if !assignment.append && matches!(self.variable(name), Value::Array(_)) {
                    return self.assign_element(name, "0", value, false);
                }
                if assignment.append {
                    match self.variable(name) {
                        Value::Text(text) if self.attributes.get(name).is_some_and(|known| known.contains('i')) => {
                            value = format!("({text})+({value})");
                        }
                        Value::Text(text) => value = text + &value,
                        Value::Array(_) => return self.assign_element(name, "0", value, true),
                        Value::Unset => {}
                    }
                }
                if value.len() > super::MOST_OUTPUT {
                    value = HOLE.into();
                }
                programs::environment::assigned(self, name, &value, exported);
                self.assign_text(name, value);
            }
            AssignedValue::Array(words) => {
                let mut elements = match self.variable(name) {
                    Value::Array(elements) if assignment.append => elements,
                    Value::Text(text) if assignment.append => vec![("0".into(), text)],
                    _ => Vec::new(),
                };
                let mut next =
                    elements.iter().filter_map(|(at, _)| at.parse::<u64>().ok()).max().map_or(0, |at| at + 1);
                for (index, word) in words {
                    if let Some(index) = index {
                        let key = self.text_of(index);
                        let key = self.element_key(name, key);
                        let value = self.text_of(word);
                        next = key.parse().map_or(next, |at: u64| at.saturating_add(1));
                        put_element(&mut elements, &key, value, false);
                    } else {
                        for value in self.arguments(std::slice::from_ref(word)) {
                            put_element(&mut elements, &next.to_string(), value, false);
                            next += 1;
                        }
                    }
                }
                self.assign_array(name, elements);
            }
        }
    }

    /// Assigns to a name or an element such as `a[1]`.
    pub(super) fn assign_to(&mut self, name: &str, text: String) {
        match name.split_once('[') {
            Some((name, index)) => {
                let index = index.trim_end_matches(']').trim_matches(['"', '\'']).to_owned();
                let key = self.element_key(name, index);
                self.assign_element(name, &key, text, false);
            }
            None if matches!(self.variable(name), Value::Array(_)) => self.assign_element(name, "0", text, false),
            None => self.assign_text(name, text),
        }
    }

    /// Assigns to an element of an array, or appends to it.
    pub(super) fn assign_element(&mut self, name: &str, key: &str, value: String, append: bool) {
        let mut elements = match self.variable(name) {
            Value::Array(elements) => elements,
            Value::Text(text) => vec![("0".into(), text)],
            Value::Unset => Vec::new(),
        };
        put_element(&mut elements, key, value, append);
        self.assign_array(name, elements);
    }

    pub(super) fn assign_text(&mut self, name: &str, text: impl Into<String>) {
        let mut text = text.into();
        self.charge(text.len());
        let name = self.references.get(name).cloned().unwrap_or_else(|| name.to_owned());
        if name.contains('[') && !self.references.is_empty() {
            return self.assign_to(&name, text);
        }
        for flag in self.attributes.get(&name).cloned().unwrap_or_default().chars() {
            text = match flag {
                'l' => text.to_lowercase(),
                'u' => text.to_uppercase(),
                'i' => self.compute(&text).value.map_or_else(|| PLAIN.to_string(), |value| value.to_string()),
                _ => text,
            };
        }
        self.state.set_text(&name, text);
    }

    pub(super) fn assign_array(&mut self, name: &str, elements: Vec<(String, String)>) {
        self.state.set(Key::Variable(name.into()), Slot::Variable(Some(Rc::new(vec![Value::Array(elements)]))));
    }
}

/// Puts an element in its place: numbers in their order, names behind them.
pub(super) fn put_element(elements: &mut Vec<(String, String)>, key: &str, value: String, append: bool) {
    match elements.iter_mut().find(|(at, _)| at == key) {
        Some((_, text)) if append => text.push_str(&value),
        Some((_, text)) => *text = value,
        None => {
            let number = key.parse::<u64>().ok();
            let later = |(at, _): &(String, String)| match (number, at.parse::<u64>().ok()) {
                (Some(number), Some(at)) => at > number,
                (Some(_), None) => true,
                (None, _) => false,
            };
            // Most often it goes to the end.
            let place = match elements.last() {
                Some(last) if later(last) => elements.iter().position(later).unwrap_or(elements.len()),
                _ => elements.len(),
            };
            elements.insert(place, (key.to_owned(), value));
        }
    }
}
