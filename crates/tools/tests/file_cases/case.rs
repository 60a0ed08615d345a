//! The format of `cases/file-tools.jsonl`. A key that is not known here is an error: a rule nobody checks is no rule.

use std::collections::BTreeMap;

use hermes_core::JsonMap;
use serde::Deserialize;
use serde_json::Value;

/// One line. Further keys at this level (`category`, `tool`, `note`) are for readers.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) setup: Vec<Entry>,
    pub(crate) steps: Vec<Step>,
    pub(crate) correct: Correct,
    /// Whether `$STUB` occurs anywhere.
    #[serde(skip)]
    pub(crate) needs_stub: bool,
}

/// Something in the folder: made before the run, or changed during it behind the tools' back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) text: Option<String>,
    pub(crate) b64: Option<String>,
    pub(crate) symlink: Option<String>,
    pub(crate) hardlink: Option<String>,
    #[serde(default)]
    pub(crate) fifo: bool,
    #[serde(default)]
    pub(crate) dir: bool,
    #[serde(default)]
    pub(crate) delete: bool,
    pub(crate) mode: Option<String>,
    pub(crate) mtime: Option<i64>,
    #[serde(default)]
    pub(crate) keep_mtime: bool,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Step {
    /// The last of these is judged.
    Call(Call),
    Other {
        other: Call,
        task: Option<String>,
    },
    Mutate {
        mutate: Entry,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) args: JsonMap,
    /// The JSON text of the arguments, byte for byte, in place of `args`.
    pub(crate) raw_args: Option<String>,
    pub(crate) task: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Correct {
    #[serde(default)]
    pub(crate) summary: String,
    #[serde(default)]
    pub(crate) result: JsonMap,
    #[serde(default)]
    pub(crate) files: Files,
    #[serde(default)]
    pub(crate) either: Vec<Alternative>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Alternative {
    pub(crate) result: JsonMap,
    pub(crate) files: Files,
}

/// What must lie at a path; nothing at all where there is `None`.
pub(crate) type Files = BTreeMap<String, Option<FileRule>>;

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum FileRule {
    Text(String),
    Attributes(Attributes),
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Attributes {
    pub(crate) text: Option<String>,
    pub(crate) b64: Option<String>,
    pub(crate) mode: Option<String>,
    pub(crate) symlink: Option<String>,
}

impl Case {
    #[track_caller]
    pub(crate) fn parse(line: &str) -> Self {
        let mut case: Self = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:.80}"));
        assert!(case.steps.iter().any(|step| matches!(step, Step::Call(_))), "{} has nothing to judge", case.id);
        case.needs_stub = line.contains("$STUB");
        case
    }
}

/// What the placeholders stand for during one run of one case.
pub(crate) struct Names {
    pub(crate) work: String,
    pub(crate) home: String,
    pub(crate) stub: Option<String>,
}

impl Names {
    pub(crate) fn fill(&self, text: &str) -> String {
        let text = replace_words(text, "$W", &self.work);
        let text = replace_words(&text, "$HOME", &self.home);
        match &self.stub {
            Some(stub) => replace_words(&text, "$STUB", stub),
            None => text,
        }
    }

    /// Like [`Names::fill`], inside the quotes of a JSON text.
    pub(crate) fn fill_json(&self, text: &str) -> String {
        let escaped = |text: &str| Value::from(text).to_string().trim_matches('"').to_owned();
        let names =
            Self { work: escaped(&self.work), home: escaped(&self.home), stub: self.stub.as_deref().map(escaped) };
        names.fill(text)
    }

    /// Like [`Names::fill`], in all texts of a value.
    pub(crate) fn fill_value(&self, value: Value) -> Value {
        map_texts(value, &|text| self.fill(text))
    }

    pub(crate) fn put_back(&self, text: &str) -> String {
        replace_words(&replace_words(text, &self.work, "$W"), &self.home, "$HOME")
    }

    /// Like [`Names::put_back`], in all texts of a value.
    pub(crate) fn put_back_value(&self, value: Value) -> Value {
        map_texts(value, &|text| self.put_back(text))
    }
}

fn map_texts(value: Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => change(&text).into(),
        Value::Array(items) => items.into_iter().map(|item| map_texts(item, change)).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (change(&key), map_texts(value, change))).collect(),
        plain => plain,
    }
}

/// Replaces `word` wherever no letter, digit or underscore follows: `$W/a`, but not `$WORK`.
fn replace_words(text: &str, word: &str, by: &str) -> String {
    let mut parts = text.split(word);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let goes_on = part.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        replaced.push_str(if goes_on { word } else { by });
        replaced.push_str(part);
    }
    replaced
}

#[test]
fn placeholders_are_whole_words() {
    let names = Names { work: "/tmp/w".into(), home: "/tmp/h".into(), stub: None };
    assert_eq!(
        names.fill("$W $W/a $WORK ${HOME} $HOME. $HOME_2 $STUB"),
        "/tmp/w /tmp/w/a $WORK ${HOME} /tmp/h. $HOME_2 $STUB"
    );
    assert_eq!(names.put_back("/tmp/w/a /tmp/wa /tmp/h"), "$W/a /tmp/wa $HOME");
}
