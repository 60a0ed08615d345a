//! The rules of comparison of `cases/README.md`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::slice;

use hermes_core::JsonMap;
use serde_json::Value;

use crate::case::{Alternative, Attributes, Case, Correct, FileRule, Files, Names};
use crate::folder::{decode, everything_below, octal, path};

/// What of `correct` does not hold after the last step: in the answer, in the files it lists, and in the folder, where
/// nothing may have appeared that is neither `known` nor listed.
pub(crate) fn differences(correct: &Correct, text: &str, known: &BTreeSet<PathBuf>, names: &Names) -> Vec<String> {
    let answer = match Answer::read(text, names) {
        Ok(answer) => answer,
        Err(difference) => return vec![difference],
    };
    let now = everything_below(Path::new(&names.work));
    let appeared: Vec<&Path> = now.difference(known).map(PathBuf::as_path).collect();

    let mut differences = answer.differences(&correct.result);
    differences.extend(file_differences(&correct.files, names));
    // Without alternatives there is one, and it asks for nothing more.
    let nothing_more = Alternative::default();
    let alternatives = if correct.either.is_empty() { slice::from_ref(&nothing_more) } else { &correct.either };
    let of_each = alternatives.iter().map(|alternative| {
        let mut differences = answer.differences(&alternative.result);
        differences.extend(file_differences(&alternative.files, names));
        differences.extend(strangers(&appeared, &[&correct.files, &alternative.files], names));
        differences
    });
    let of_each: Vec<Vec<String>> = of_each.collect();
    if !of_each.iter().any(Vec::is_empty) {
        let label = if correct.either.is_empty() { "" } else { "no alternative: " };
        differences.extend(of_each.iter().map(|of_one| format!("{label}{}", of_one.join("; "))));
    }
    if !differences.is_empty() {
        differences.push(format!("answer: {}", shorten(&answer.texts[0])));
    }
    differences
}

/// The paths outside of the case's folders that must not exist after the case, and do not exist now.
pub(crate) fn absent_outside(case: &Case, names: &Names) -> Vec<PathBuf> {
    let alternatives = case.correct.either.iter().map(|alternative| &alternative.files);
    let all = alternatives.chain([&case.correct.files]).flatten();
    let absent = all.filter(|(_, rule)| rule.is_none()).map(|(key, _)| path(key, names));
    let outside = |path: &PathBuf| ![&names.work, &names.home].iter().any(|inside| path.starts_with(inside));
    absent.filter(|path| outside(path) && path.symlink_metadata().is_err()).collect()
}

/// What the model was told, with the placeholders put back.
struct Answer {
    document: Value,
    /// Where texts are looked for: the text as it stands, its compact form, and every string in it, decoded.
    texts: Vec<String>,
}

impl Answer {
    fn read(text: &str, names: &Names) -> Result<Self, String> {
        let document = serde_json::from_str(text).unwrap_or_default();
        let document = names.put_back_value(document);
        if !document.is_object() {
            return Err(format!("the answer is not one JSON object: {}", shorten(text)));
        }
        let mut texts = vec![names.put_back(text), document.to_string()];
        collect_strings(&document, &mut texts);
        Ok(Self { document, texts })
    }

    fn differences(&self, rules: &JsonMap) -> Vec<String> {
        let mut differences = Vec::new();
        for (key, wanted) in rules {
            match key.as_str() {
                "error~" => match self.document.get("error").and_then(Value::as_str) {
                    None | Some("") => differences.push("there is no error".into()),
                    Some(error) => {
                        let error = error.to_lowercase();
                        let holds = |part: &str| error.contains(&part.to_lowercase());
                        let missing = all_of(wanted).filter(|one| !any_of(one).any(holds));
                        differences.extend(missing.map(|one| format!("the error does not say {one}")));
                    }
                },
                "has~" => {
                    let missing = all_of(wanted).filter(|one| !any_of(one).any(|part| self.says(part)));
                    differences.extend(missing.map(|one| format!("the answer does not say {}", shorten_value(one))));
                }
                "not~" => {
                    let present = all_of(wanted).filter(|one| any_of(one).any(|part| self.says(part)));
                    differences.extend(present.map(|one| format!("the answer says {}", shorten_value(one))));
                }
                key => {
                    let got = self.document.get(key);
                    if !same(wanted, got) {
                        let got = got.map_or("nothing".into(), shorten_value);
                        differences.push(format!("{key} is not {} but {got}", shorten_value(wanted)));
                    }
                }
            }
        }
        differences
    }

    fn says(&self, part: &str) -> bool {
        self.texts.iter().any(|text| text.contains(part))
    }
}

fn collect_strings(value: &Value, strings: &mut Vec<String>) {
    match value {
        Value::String(text) => strings.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, strings)),
        Value::Object(map) => {
            for (key, value) in map {
                strings.push(key.clone());
                collect_strings(value, strings);
            }
        }
        _ => {}
    }
}

/// A rule is one text or a list of which all count.
fn all_of(rule: &Value) -> impl Iterator<Item = &Value> {
    rule.as_array().map_or(slice::from_ref(rule), Vec::as_slice).iter()
}

/// A list inside a rule means one of its texts.
fn any_of(rule: &Value) -> impl Iterator<Item = &str> {
    all_of(rule).map(|part| part.as_str().unwrap())
}

/// Whether a field is what is wanted. `None` is a field that is not there.
fn same(wanted: &Value, got: Option<&Value>) -> bool {
    let Some(got) = got else {
        return match wanted {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
    };
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => wanted.iter().all(|(key, wanted)| same(wanted, got.get(key))),
        (Value::Array(wanted), Value::Array(got)) => {
            wanted.len() == got.len() && wanted.iter().zip(got).all(|(wanted, got)| same(wanted, Some(got)))
        }
        (Value::String(wanted), Value::String(got)) => relative(wanted) == relative(got),
        _ => wanted == got,
    }
}

/// A path may be absolute or relative to the working folder.
fn relative(text: &str) -> &str {
    text.strip_prefix("$W/").unwrap_or(text)
}

fn file_differences(files: &Files, names: &Names) -> Vec<String> {
    let mut differences = Vec::new();
    for (key, rule) in files {
        let path = path(key, names);
        let found = match rule {
            None => path.symlink_metadata().is_ok().then(|| "exists".into()),
            Some(FileRule::Text(text)) => wrong_content(&path, names.fill(text).as_bytes()),
            Some(FileRule::Attributes(attributes)) => wrong_attribute(&path, attributes, names),
        };
        differences.extend(found.map(|what| format!("{key} {what}")));
    }
    differences
}

fn wrong_attribute(path: &Path, attributes: &Attributes, names: &Names) -> Option<String> {
    let Attributes { text, b64, mode, symlink } = attributes;
    let wrong_link = |target: &String| {
        let got = fs::read_link(path).ok();
        (got.as_deref() != Some(Path::new(&names.fill(target)))).then(|| format!("is not a link to {target}"))
    };
    let wrong_mode = |mode: &String| {
        let got = fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode() & 0o7777);
        (got != octal(mode)).then(|| format!("has not mode {mode} but 0o{got:o}"))
    };
    let wrong_text = |text: &String| wrong_content(path, names.fill(text).as_bytes());
    symlink
        .as_ref()
        .and_then(wrong_link)
        .or_else(|| mode.as_ref().and_then(wrong_mode))
        .or_else(|| text.as_ref().and_then(wrong_text))
        .or_else(|| b64.as_ref().and_then(|b64| wrong_content(path, &decode(b64))))
}

fn wrong_content(path: &Path, wanted: &[u8]) -> Option<String> {
    // A pipe would be read for ever.
    if !path.is_file() {
        return Some("is no file".into());
    }
    match fs::read(path) {
        Ok(got) if got == wanted => None,
        Ok(got) => {
            let show = |bytes: &[u8]| shorten(&bytes.escape_ascii().to_string());
            Some(format!("does not hold `{}` but `{}`", show(wanted), show(&got)))
        }
        Err(error) => Some(format!("cannot be read: {error}")),
    }
}

/// What has appeared and is neither a file that must exist nor a folder above one.
fn strangers(appeared: &[&Path], files: &[&Files], names: &Names) -> Vec<String> {
    let listed = files.iter().copied().flatten().filter(|(_, rule)| rule.is_some());
    let listed: Vec<PathBuf> = listed.map(|(key, _)| path(key, names)).collect();
    let strange = appeared.iter().filter(|path| !listed.iter().any(|listed| listed.starts_with(path)));
    strange.map(|path| format!("{} has appeared", names.put_back(&path.display().to_string()))).collect()
}

fn shorten_value(value: &Value) -> String {
    shorten(&value.to_string())
}

fn shorten(text: &str) -> String {
    const LONGEST: usize = 300;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names() -> Names {
        Names { work: "/tmp/w".into(), home: "/tmp/h".into(), stub: None }
    }

    fn holds(rules: &Value, answer: &Value) -> bool {
        let answer = Answer::read(&answer.to_string(), &names()).unwrap();
        answer.differences(rules.as_object().unwrap()).is_empty()
    }

    #[test]
    fn numbers_and_booleans_are_compared_strictly() {
        assert!(holds(&json!({"n": 1, "b": true}), &json!({"n": 1, "b": true, "more": 2})));
        assert!(!holds(&json!({"n": 1}), &json!({"n": true})));
        assert!(!holds(&json!({"n": 1}), &json!({"n": "1"})));
        assert!(!holds(&json!({"b": true}), &json!({"b": 1})));
    }

    #[test]
    fn only_nothing_matches_an_absent_field() {
        assert!(holds(&json!({"a": false, "b": null, "c": "", "d": []}), &json!({})));
        assert!(!holds(&json!({"a": 0}), &json!({})));
        assert!(!holds(&json!({"a": {}}), &json!({})));
        assert!(!holds(&json!({"a": false}), &json!({"a": 0})));
    }

    #[test]
    fn objects_are_compared_by_the_listed_keys_and_lists_by_every_element() {
        assert!(holds(&json!({"l": [{"a": 1}]}), &json!({"l": [{"a": 1, "b": 2}]})));
        assert!(!holds(&json!({"l": [{"a": 1}]}), &json!({"l": [{"a": 1}, {"a": 2}]})));
    }

    #[test]
    fn a_path_may_be_absolute_or_relative() {
        for got in ["/tmp/w/a", "a"] {
            assert!(holds(&json!({"p": "$W/a"}), &json!({"p": got})));
            assert!(holds(&json!({"p": "a"}), &json!({"p": got})));
        }
        assert!(!holds(&json!({"p": "$W/a"}), &json!({"p": "/tmp/wa"})));
    }

    #[test]
    fn an_error_is_a_text_and_found_in_any_case() {
        assert!(holds(&json!({"error~": ""}), &json!({"error": "No"})));
        assert!(!holds(&json!({"error~": ""}), &json!({"error": ""})));
        assert!(!holds(&json!({"error~": ""}), &json!({"error": true})));
        assert!(holds(&json!({"error~": ["no", ["x", "FILE"]]}), &json!({"error": "No such file"})));
        assert!(!holds(&json!({"error~": ["no", "x"]}), &json!({"error": "No such file"})));
    }

    #[test]
    fn texts_are_found_decoded_and_in_compact_form_but_only_in_their_own_case() {
        let answer = json!({"status": "error", "text": "a \"b\"\n/tmp/w/c"});
        assert!(holds(&json!({"has~": ["\"status\":\"error\"", "a \"b\"\n", ["x", "$W/c"]]}), &answer));
        assert!(!holds(&json!({"has~": ["ERROR"]}), &answer));
        assert!(!holds(&json!({"not~": ["x", "/c"]}), &answer));
        assert!(holds(&json!({"not~": ["/tmp/w"]}), &answer));
    }

    #[test]
    fn nothing_may_appear_but_what_is_listed_and_the_folders_above_it() {
        let files: Files = serde_json::from_value(json!({"d/a": "text", "gone": null})).unwrap();
        let strange = |path: &str| !strangers(&[Path::new(path)], &[&files], &names()).is_empty();
        assert!(!strange("/tmp/w/d") && !strange("/tmp/w/d/a"));
        assert!(strange("/tmp/w/d/a.tmp") && strange("/tmp/w/gone") && strange("/tmp/w/d/a/b"));
    }
}
