//! Changing one value of `config.yaml` and nothing else: comments, order and layout stay.
//!
//! The new text is read back and compared before it replaces the old file, in one step.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::str::FromStr as _;

use hermes_exec::files;
use serde_json::Value;
use yaml_edit::path::YamlPath as _;
use yaml_edit::{SequenceBuilder, YamlFile};

use super::node;
use crate::words::Failure;

/// Sets `dotted` to `value` in the file at `path`, like [`update`].
pub(crate) fn set(path: &Path, dotted: &str, value: &Value) -> Result<(), Failure> {
    update(path, |_| Ok((vec![(dotted.to_owned(), value.clone())], ())))
}

/// A dotted path and what it shall be.
pub(crate) type Edit = (String, Value);

/// Changes the file at `path`, which is created (with its folder, private to the user) if needed. A link stays a link.
/// `edits` sees the text as it is and answers with everything that changes, and with whatever the caller wants to keep;
/// nobody else changes the file meanwhile, and all of it is written in one step or none.
pub(crate) fn update<T>(
    path: &Path,
    edits: impl FnOnce(&str) -> Result<(Vec<Edit>, T), Failure>,
) -> Result<T, Failure> {
    let trouble =
        |what: &str, error: &dyn std::fmt::Display| Failure::new(format!("cannot {what} {}: {error}", path.display()));
    let folder = path.parent().unwrap_or(Path::new("."));
    private_folder(folder).map_err(|error| trouble("write", &error))?;
    let lock = File::open(folder).map_err(|error| trouble("write", &error))?;
    lock.lock().map_err(|error| trouble("lock", &error))?;
    let old = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| trouble("read", &error))?,
    };
    let mut new = old.clone();
    let (edits, kept) = edits(&old)?;
    for (dotted, value) in edits {
        new = changed(&new, &dotted, &value).map_err(|why| trouble("change", &why))?;
    }
    if new == old {
        return Ok(kept);
    }
    if !old.is_empty() {
        // What is replaced was good enough to be read a moment ago; it stays beside the new one.
        files::write_private(&last_good(path), old.as_bytes())
            .map_err(|error| Failure::new(format!("cannot keep a copy of the old file: {error}")))?;
    }
    // A new file is private from its first moment on, because it may hold a key.
    let private = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    private.map_err(|error| trouble("write", &error))?;
    files::write(path, new.as_bytes()).map_err(|error| Failure::new(format!("cannot write {error}")))?;
    Ok(kept)
}

/// Takes the file from everybody but its owner, because it holds a key.
pub(crate) fn keep_private(path: &Path) -> Result<(), Failure> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .map_err(|error| Failure::new(format!("cannot make {} private: {error}", path.display())))
}

/// Where the file is kept as it was before the last change: `config.yaml.last-good`.
pub(crate) fn last_good(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".last-good");
    path.with_file_name(name)
}

/// Makes a folder that only its owner can look into, if it is not there yet.
pub(crate) fn private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn changed(old: &str, dotted: &str, value: &Value) -> Result<String, String> {
    let is = read(old, dotted)?;
    if let Some(Value::Object(keys)) = &is
        && !keys.is_empty()
    {
        let keys: Vec<&str> = keys.keys().map(String::as_str).collect();
        let keys = keys.join(", ");
        return Err(format!("{dotted} holds keys of its own there ({keys}), which would be lost; move them first"));
    }
    if let (Some(Value::Array(is)), Value::Array(wanted)) = (&is, value)
        && let Some(new) = list_changed(old, dotted, is, wanted)
        && read(&new, dotted).is_ok_and(|written| written.as_ref() == Some(value))
    {
        return alone(old, &new, dotted).map(|()| new);
    }
    if let (Some(Value::String(name)), true) = (read(old, "model")?, dotted.starts_with("model.")) {
        // `model: NAME` is accepted, but has no room for a second key.
        let file = YamlFile::from_str(old).map_err(|error| error.to_string())?;
        let document = file.document().ok_or("there is no document in it")?;
        document.remove("model");
        let rest = file.to_string();
        let gap = if rest.is_empty() || rest.ends_with('\n') { "" } else { "\n" };
        return changed(&format!("{rest}{gap}model:\n  default: {}\n", Value::String(name)), dotted, value);
    }
    let file = YamlFile::from_str(old).map_err(|error| error.to_string())?;
    let new = match file.document().filter(|document| document.as_mapping().is_some()) {
        Some(document) => {
            match value {
                Value::Array(items) => {
                    let list =
                        items.iter().filter_map(Value::as_str).fold(SequenceBuilder::new(), SequenceBuilder::item);
                    let list = list.build_document().as_sequence().ok_or("the list cannot be written")?;
                    document.try_set_path(dotted, &list)
                }
                Value::Bool(flag) => document.try_set_path(dotted, *flag),
                Value::Number(number) if number.is_u64() => document.try_set_path(dotted, number.as_u64().unwrap_or(0)),
                Value::Number(number) => document.try_set_path(dotted, number.as_f64().unwrap_or(0.0)),
                other => document.try_set_path(dotted, other.as_str().unwrap_or_default()),
            }
            .map_err(|error| error.to_string())?;
            file.to_string()
        }
        // Nothing but comments so far: the first key goes below them.
        None => {
            let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
            let sections = dotted.split('.').enumerate();
            let path: Vec<String> = sections.map(|(depth, key)| format!("{}{key}:", "  ".repeat(depth))).collect();
            let path = path.join("\n");
            if value.is_array() {
                // The place is made first, so that the list is written like any other.
                return changed(&format!("{old}{gap}{path} none\n"), dotted, value);
            }
            format!("{old}{gap}{path} {value}\n")
        }
    };
    let written = read(&new, dotted)?;
    if written.as_ref() != Some(value) {
        return Err(format!("the change of {dotted} did not take"));
    }
    alone(old, &new, dotted).map(|()| new)
}

/// Whether nothing but `dotted` differs. A list with an anchor is also what its aliases stand for.
fn alone(old: &str, new: &str, dotted: &str) -> Result<(), String> {
    let rest = |text: &str| -> Result<Value, String> {
        let mut root = node::parse(text).map_err(|error| error.why)?.to_json();
        take_out(&mut root, &dotted.split('.').collect::<Vec<_>>());
        Ok(if root.is_null() { Value::Object(serde_json::Map::new()) } else { root })
    };
    if rest(old)? == rest(new)? {
        return Ok(());
    }
    Err(format!(
        "{dotted} shares what stands there with other keys (& and *), which would change too; write it out first"
    ))
}

/// Takes a key out, and the sections that hold nothing without it.
fn take_out(root: &mut Value, path: &[&str]) {
    let (Value::Object(map), [first, rest @ ..]) = (root, path) else { return };
    if let Some(inner) = map.get_mut(*first) {
        take_out(inner, rest);
        if rest.is_empty() || inner.is_null() || inner.as_object().is_some_and(serde_json::Map::is_empty) {
            map.remove(*first);
        }
    }
}

/// The text with single items of a list taken out and put in, so that what stands beside the others stays; `None` if no
/// item stays, or the list cannot be changed like that.
fn list_changed(old: &str, dotted: &str, is: &[Value], wanted: &[Value]) -> Option<String> {
    if !is.iter().any(|item| wanted.contains(item)) {
        return None;
    }
    let file = YamlFile::from_str(old).ok()?;
    let node = file.document()?.try_get_path(dotted).ok()?;
    let list = node.as_sequence()?;
    let mut now = is.to_vec();
    let mut at = 0;
    while at < now.len().max(wanted.len()) {
        match (now.get(at), wanted.get(at)) {
            (Some(item), Some(wish)) if item == wish => at += 1,
            (Some(item), _) if !wanted[at.min(wanted.len())..].contains(item) => {
                list.remove(at)?;
                now.remove(at);
            }
            (item, Some(wish)) => {
                if item.is_some() {
                    list.insert(at, wish.as_str()?);
                } else {
                    list.push(wish.as_str()?);
                }
                now.insert(at, wish.clone());
            }
            (_, None) => return None,
        }
    }
    Some(file.to_string())
}

/// What `text` says about `dotted`.
fn read(text: &str, dotted: &str) -> Result<Option<Value>, String> {
    let root = node::parse(text).map_err(|error| error.why)?.to_json();
    Ok(root.pointer(&format!("/{}", dotted.replace('.', "/"))).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_everything_else_stay() {
        let old = "# mine\nmodel:\n  default: a   # the small one\n\n# rest\nagent: {max_turns: 5}\n";
        let new = changed(old, "model.default", &json!("b")).unwrap();
        assert_eq!(new, "# mine\nmodel:\n  default: b   # the small one\n\n# rest\nagent: {max_turns: 5}\n");
        let new = changed(old, "agent.max_turns", &json!(7)).unwrap();
        assert!(new.contains("max_turns: 7") && new.contains("# the small one"), "{new}");
    }

    #[test]
    fn a_model_that_is_only_a_name_makes_room_for_more() {
        let new =
            changed("# mine\nmodel: gpt-5\nagent: {max_turns: 5}\n", "model.base_url", &json!("http://h/v1")).unwrap();
        assert_eq!(read(&new, "model").unwrap(), Some(json!({"default": "gpt-5", "base_url": "http://h/v1"})), "{new}");
        assert!(new.contains("# mine") && new.contains("agent: {max_turns: 5}"), "{new}");
    }

    #[test]
    fn what_stands_beside_the_items_of_a_list_stays() {
        let old = "toolsets:\n  # for work\n  - file # reading\n  - web\n  # and the rest\n  - math\nagent: {}\n";
        for (list, lost) in [
            (json!(["file", "math"]), ""),
            (json!(["file", "web", "math", "- x: y"]), ""),
            (json!(["file", "math", "vision"]), ""),
            (json!(["web", "math"]), "# reading"),
            (json!(["file", "vision", "web", "math"]), ""),
            (json!(["file", "math", "web"]), ""),
        ] {
            let new = changed(old, "toolsets", &list).unwrap();
            assert_eq!(read(&new, "toolsets").unwrap(), Some(list), "{new}");
            for comment in ["# for work", "# reading", "# and the rest"] {
                assert!(comment == lost || new.contains(comment), "{comment}: {new}");
            }
            assert!(new.ends_with("agent: {}\n"), "{new}");
        }
        for old in ["toolsets: [file, web] # mine\n", "toolsets: []\n", "toolsets: file\n", "toolsets:\n"] {
            let list = json!(["web", "math"]);
            assert_eq!(read(&changed(old, "toolsets", &list).unwrap(), "toolsets").unwrap(), Some(list));
        }
    }

    #[test]
    fn what_an_alias_shares_is_not_changed_behind_its_back() {
        for old in [
            "platform_toolsets:\n  cli: &a [hermes-cli, -terminal]\n  telegram: *a\n",
            "platform_toolsets:\n  cli: &a\n    - hermes-cli\n    - -terminal\n  telegram: *a\n",
            "x_b: &b {cli: [hermes-cli, -terminal]}\nplatform_toolsets: {<<: *b}\n",
            "agent:\n  disabled_toolsets: &a [terminal, file]\nplatform_toolsets: {cli: *a}\n",
        ] {
            for path in ["platform_toolsets.cli", "agent.disabled_toolsets"] {
                match changed(old, path, &json!(["hermes-cli"])) {
                    Ok(new) => alone(old, &new, path).unwrap(),
                    Err(why) => assert!(why.contains("with other keys"), "{why}"),
                }
            }
        }
        let shared = "platform_toolsets:\n  cli: &a [hermes-cli, -terminal]\n  telegram: *a\n";
        assert!(changed(shared, "platform_toolsets.cli", &json!(["hermes-cli"])).is_err());
    }

    #[test]
    fn a_list_over_several_lines_in_brackets_is_changed_whatever_stands_in_it() {
        for old in [
            "toolsets: [\n  file, # a\n  web # b\n  # note\n]\n",
            "toolsets: [\n  web, # b\n  # note\n]\n",
            "toolsets: [ # o\n  math\n  # e\n] # x\n",
        ] {
            let list = json!(["web", "todo"]);
            let new = changed(old, "toolsets", &list).unwrap_or_else(|why| panic!("{old}: {why}"));
            assert_eq!(read(&new, "toolsets").unwrap(), Some(list), "{new}");
        }
    }

    #[test]
    fn keys_below_are_not_written_over() {
        let old = "toolsets:\n  mine: {tools: [read_file]}\n";
        let why = changed(old, "toolsets", &json!(["web"])).unwrap_err();
        assert!(why.contains("(mine), which would be lost"), "{why}");
    }

    #[test]
    fn new_keys_sections_and_files_are_made() {
        for old in [
            "",
            "# only a comment\n",
            "# no line end",
            "model:\n  default: a\n",
            "other: 1\n",
            "agent:\n  max_turns: 5\n",
        ] {
            for (key, value) in [
                ("model.default", json!("x/y:free # not a comment")),
                ("agent.max_turns", json!(7)),
                ("model.stream", json!(false)),
                ("agent.api_retry_base_seconds", json!(0.5)),
                ("tool_loop_guardrails.warn_after.exact_failure", json!(3)),
                ("platform_toolsets.cli", json!(["hermes-cli", "-web", "- x: y"])),
                ("toolsets", json!(["file", "no"])),
                ("agent.disabled_toolsets", json!(["terminal"])),
            ] {
                let new = changed(old, key, &value).unwrap_or_else(|why| panic!("{old:?} {key}: {why}"));
                assert_eq!(read(&new, key).unwrap(), Some(value), "{new}");
            }
        }
    }
}
