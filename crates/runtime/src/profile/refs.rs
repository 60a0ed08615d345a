//! References: where they lead, and which may stay.
//!
//! A reference stays only if it is of the one form that every reader of JSON Schema follows, `#/$defs/NAME`, or the root
//! itself. Any other that leads somewhere inside the schema is written out in place; one that leads nowhere, or out of
//! the schema, is left out, and the place accepts anything.
//!
//! The tricky case is a reference that leads back to itself without passing a property: following it never ends, and no
//! provider says so kindly. [`Loops`] finds them, through unions as well, because folding a union can bring one about.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::shape::Shaper;

/// What becomes of a reference.
#[derive(Debug)]
pub(super) enum Target<'a> {
    /// It stays, in this form.
    Kept(String),
    /// This is written out in its place.
    WrittenOut(&'a Value),
    /// It leads nowhere.
    Gone,
}

impl<'a> Shaper<'a> {
    /// What becomes of the reference `text`; `keep`: whether any may stay.
    pub(super) fn target(&mut self, text: &str, keep: bool) -> Target<'a> {
        let Some(tokens) = tokens(text) else { return Target::Gone };
        let Some(target) = lookup(self.root, &tokens) else { return Target::Gone };
        if self.loops.reaches(self.root, target) {
            return Target::Gone;
        }
        match tokens.as_slice() {
            [] if keep => Target::Kept(text.to_owned()),
            [place, name] if keep && place == "$defs" => Target::Kept(canonical(text, name)),
            [place, name] if keep && place == "definitions" && !has_definition(self.root, name) => {
                Target::Kept(canonical("", name))
            }
            _ => Target::WrittenOut(target),
        }
    }
}

fn has_definition(root: &Value, name: &str) -> bool {
    root.get("$defs").and_then(Value::as_object).is_some_and(|definitions| definitions.contains_key(name))
}

/// `text` if every reader agrees on it, else the same reference with everything unusual escaped (RFC 6901 §3, §6).
fn canonical(text: &str, name: &str) -> String {
    let usual = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    if text.starts_with("#/$defs/") && name.bytes().all(usual) && text.len() == "#/$defs/".len() + name.len() {
        return text.to_owned();
    }
    let mut escaped = "#/$defs/".to_owned();
    for b in name.bytes() {
        match b {
            b'~' => escaped.push_str("~0"),
            b'/' => escaped.push_str("~1"),
            _ if usual(b) => escaped.push(char::from(b)),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "%{b:02X}");
            }
        }
    }
    escaped
}

/// The steps of a JSON pointer in a fragment: percent-encoding first, then `~1` and `~0` (RFC 6901 §6).
fn tokens(text: &str) -> Option<Vec<String>> {
    let pointer = percent_decoded(text.strip_prefix('#')?)?;
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let steps = pointer.strip_prefix('/')?.split('/');
    Some(steps.map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

fn lookup<'a>(root: &'a Value, tokens: &[String]) -> Option<&'a Value> {
    tokens.iter().try_fold(root, |value, token| match value {
        Value::Object(map) => map.get(token),
        Value::Array(list) => list.get(token.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Which schemas lead into a loop that passes no property. Remembered, so that each is looked at once.
#[derive(Default, Debug)]
pub(super) struct Loops(BTreeMap<usize, bool>);

/// A schema on the path that is being followed, and where it leads.
struct Visit<'a> {
    id: usize,
    leads_to: Vec<&'a Value>,
    looping: bool,
}

impl Loops {
    /// Whether following `start` in place, through references and unions, ever comes round. On a stack of its own:
    /// a chain of references may be as long as the schema.
    pub(super) fn reaches<'a>(&mut self, root: &'a Value, start: &'a Value) -> bool {
        if let Some(known) = self.0.get(&id(start)) {
            return *known;
        }
        let mut path = vec![self.visit(root, start)];
        while let Some(top) = path.last_mut() {
            if let Some(next) = top.leads_to.pop() {
                match self.0.get(&id(next)) {
                    // What is on the path counts as looping until it is left.
                    Some(looping) => top.looping |= looping,
                    None => {
                        let visit = self.visit(root, next);
                        path.push(visit);
                    }
                }
                continue;
            }
            let (done, looping) = (top.id, top.looping);
            self.0.insert(done, looping);
            path.pop();
            if let Some(outer) = path.last_mut() {
                outer.looping |= looping;
            }
        }
        self.0.get(&id(start)).copied().unwrap_or_default()
    }

    fn visit<'a>(&mut self, root: &'a Value, schema: &'a Value) -> Visit<'a> {
        self.0.insert(id(schema), true);
        Visit { id: id(schema), leads_to: leads_to(root, schema), looping: false }
    }
}

/// A schema is itself, wherever in the input it lies.
fn id(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

/// The targets of the references in `schema` that apply to the same value as it does.
fn leads_to<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let mut targets = Vec::new();
    let mut open = vec![schema];
    while let Some(Value::Object(map)) = open.pop() {
        if let Some(Value::String(text)) = map.get("$ref") {
            targets.extend(tokens(text).and_then(|tokens| lookup(root, &tokens)));
        }
        for union in ["anyOf", "oneOf", "allOf"] {
            if let Some(Value::Array(branches)) = map.get(union) {
                open.extend(branches.iter().filter(|branch| branch.is_object()));
            }
        }
    }
    targets
}
