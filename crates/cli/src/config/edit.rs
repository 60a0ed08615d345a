//! Changing one value of `config.yaml` and nothing else: comments, order and layout stay.
//!
//! The new text is read back and compared before it replaces the old file, in one step.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::str::FromStr as _;

use hermes_exec::files;
use serde_json::Value;
use yaml_edit::path::YamlPath as _;
use yaml_edit::{SequenceBuilder, YamlFile};

use super::node;
use crate::words::Failure;

/// Sets `dotted` to `value` in the file at `path`, which is created (with its folder, private to the user) if needed. A
/// link stays a link. Two processes that set something at the same time do it one after the other.
pub(crate) fn set(path: &Path, dotted: &str, value: &Value) -> Result<(), Failure> {
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
    let new = changed(&old, dotted, value).map_err(|why| trouble("change", &why))?;
    if new == old {
        return Ok(());
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
    Ok(())
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
    if written.as_ref() == Some(value) { Ok(new) } else { Err(format!("the change of {dotted} did not take")) }
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
