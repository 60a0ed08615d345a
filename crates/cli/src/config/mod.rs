//! Reading `config.yaml`.
//!
//! Nothing in the file is silently replaced by a default: a value of the wrong kind and a key that looks like a typo
//! are errors with their line; a key that nobody here knows is left alone and said.

pub(crate) mod edit;
pub(crate) mod keys;
mod node;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::Limits;
use hermes_runtime::guardrails::Thresholds;
use hermes_runtime::{CustomToolset, Guardrails, names, toolset};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use self::keys::{KEYS, Kind, Standing, VARIABLES, standing};
use self::node::Node;
use crate::terminal::out;
use crate::words::Failure;
use crate::world::World;

/// The configuration: every key of the table, as the file or the default says. Not printable: it may hold a key.
#[derive(Clone, Default)]
pub(crate) struct Config {
    /// What the file says, by dotted path.
    values: BTreeMap<&'static str, Value>,
    /// The same for keys that are secrets.
    secrets: BTreeMap<&'static str, SecretString>,
    /// What a person should know about the file, one line each.
    pub(crate) warnings: Vec<String>,
    /// This process works on a task of the board (`HERMES_KANBAN_TASK`), so it needs the board's tools.
    pub(crate) on_the_board: bool,
}

/// Where a text comes from that is being read.
struct Source<'a> {
    /// What messages call it.
    path: &'a Path,
    /// What `${NAME}` stands for.
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Source<'_> {
    fn trouble(&self, line: u64, why: &str) -> Failure {
        Failure::new(format!("{} line {line}: {why}", self.path.display()))
    }
}

/// Where the configuration file is.
pub(crate) fn path(world: &World) -> PathBuf {
    world.home.join("config.yaml")
}

impl Config {
    /// Reads the file of `world` and the variables that stand in for it; an absent file is an empty one.
    pub(crate) fn load(world: &World) -> Result<Self, Failure> {
        let path = path(world);
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::of(world, &text).map_err(|failure| {
                let kept = edit::last_good(&path);
                let hint = format!(" (as it was before the last change: {})", kept.display());
                Failure { message: failure.message + if kept.exists() { &hint } else { "" }, ..failure }
            }),
            // A home that cannot hold a file holds none; who wants to write there is told so.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Self::of(world, ""),
            Err(error) => Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
        }
    }

    /// What the file would say if `text` stood in it.
    pub(crate) fn of(world: &World, text: &str) -> Result<Self, Failure> {
        let mut config = Self::parse(&path(world), text, &|name| world.variable(name).map(str::to_owned))?;
        config.take_variables(&|name| world.variable(name).map(str::to_owned)).map_err(Failure::new)?;
        config.on_the_board = world.variable("HERMES_KANBAN_TASK").is_some();
        Ok(config)
    }

    /// A variable that is set to nonsense must not keep anybody from starting: it is said and has no effect. But for the one
    /// that says where commands run: whoever sets it must not find them somewhere else.
    fn take_variables(&mut self, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
        for (name, path) in VARIABLES {
            let (Some(said), Some(key)) = (variable(name), keys::find(path)) else { continue };
            let value = serde_json::from_str(said.trim()).unwrap_or(Value::String(said));
            match key.check(&value) {
                Ok(value) if !self.is_set(path) => drop(self.values.insert(key.path, value)),
                Ok(_) => {}
                Err(why) if *path == "terminal.backend" && !self.is_set(path) => {
                    return Err(format!("{name} in the environment: {why} (hermes env list)"));
                }
                Err(why) => self.warnings.push(format!("{name} in the environment is ignored: {why}")),
            }
        }
        Ok(())
    }

    /// Like [`Self::load`], and says on standard error what in the file has no effect.
    pub(crate) fn load_and_warn(world: &World) -> Result<Self, Failure> {
        let config = Self::load(world)?;
        for warning in &config.warnings {
            out::error(&format!("hermes: {warning}"));
        }
        Ok(config)
    }

    /// Reads `text`; `path` is what messages call it, `variable` gives what `${NAME}` stands for.
    fn parse(path: &Path, text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let source = Source { path, variable };
        let root = node::parse(text).map_err(|error| source.trouble(error.line, &error.why))?;
        let mut config = Self::default();
        let Node::Map(entries) = root else {
            return match root {
                Node::Leaf(Value::Null) => Ok(config),
                _ => Err(source.trouble(1, "the file must hold keys and values, for example `model:`")),
            };
        };
        for entry in &entries {
            config.take(&entry.key, entry, &source)?;
        }
        Ok(config)
    }

    fn take(&mut self, dotted: &str, entry: &node::Entry, source: &Source<'_>) -> Result<(), Failure> {
        match (standing(dotted), &entry.value) {
            (Standing::Accepted, _) | (Standing::Section, Node::Leaf(Value::Null)) => Ok(()),
            (Standing::Section, Node::Map(inner)) => {
                inner.iter().try_for_each(|inner| self.take(&format!("{dotted}.{}", inner.key), inner, source))
            }
            // The original also takes `model: NAME`.
            (Standing::Section, Node::Leaf(Value::String(name))) if dotted == "model" => {
                self.values.insert("model.default", Value::String(name.clone()));
                Ok(())
            }
            // So is `toolsets: {NAME: {…}}`: not which are on, but what they are.
            (Standing::Ours, Node::Map(_)) if dotted == "toolsets" => self.take_value("custom_toolsets", entry, source),
            (Standing::Ours, Node::Map(surfaces)) if dotted == "platform_toolsets" => {
                for surface in surfaces {
                    self.check_surface(surface, source)?;
                }
                self.take_value(dotted, entry, source)
            }
            (Standing::Section, _) => {
                Err(source.trouble(entry.line, &format!("{dotted} must hold keys, for example {}", example(dotted))))
            }
            (Standing::Ours, _) => self.take_value(dotted, entry, source),
            (Standing::Unknown(Some(nearest)), _) => {
                Err(source.trouble(entry.line, &format!("\"{dotted}\" is not a key; did you mean \"{nearest}\"?")))
            }
            (Standing::Unknown(None), _) if dotted.contains('.') => {
                Err(source.trouble(entry.line, &format!("\"{dotted}\" is not a key (hermes config get lists them)")))
            }
            (Standing::Unknown(None), _) => {
                self.warnings.push(
                    source
                        .trouble(entry.line, &format!("\"{dotted}\" is not a key that Hermes knows; it is ignored"))
                        .message,
                );
                Ok(())
            }
        }
    }

    fn take_value(&mut self, dotted: &str, entry: &node::Entry, source: &Source<'_>) -> Result<(), Failure> {
        let Some(key) = keys::find(dotted) else { return Ok(()) };
        // A key with nothing behind it says nothing. Only a list that is written empty is an empty list.
        if key.kind == Kind::List && matches!(entry.value, Node::Leaf(Value::Null)) {
            return Ok(());
        }
        let value = with_variables(entry.value.to_json(), source.variable);
        if key.kind == Kind::List && value.as_str().is_some_and(|text| text.contains([',', '['])) {
            self.warnings
                .push(source.trouble(entry.line, &format!("{dotted} is a text; it is read as a list")).message);
        }
        let value = key.check(&value).map_err(|why| source.trouble(entry.line, &why))?;
        match value {
            Value::String(text) if key.kind == Kind::Secret => {
                self.secrets.insert(key.path, text.into());
            }
            value if key.kind == Kind::Toolsets => {
                return self.add_toolsets(value).map_err(|why| source.trouble(entry.line, &why));
            }
            value => {
                self.values.insert(key.path, value);
            }
        }
        Ok(())
    }

    /// Toolsets of the user's own may stand in two places; each has one meaning.
    fn add_toolsets(&mut self, sets: Value) -> Result<(), String> {
        let all = self.values.entry("custom_toolsets").or_insert_with(|| Value::Object(serde_json::Map::new()));
        let (Value::Object(all), Value::Object(sets)) = (all, sets) else { return Ok(()) };
        for (name, set) in sets {
            if all.insert(name.clone(), set).is_some() {
                return Err(format!("the toolset \"{name}\" is described twice, under toolsets and custom_toolsets"));
            }
        }
        Ok(())
    }

    /// A list under a name that no surface has would restrict nobody.
    fn check_surface(&mut self, entry: &node::Entry, source: &Source<'_>) -> Result<(), Failure> {
        let written = &entry.key;
        let known: Vec<&str> = toolset::platforms().filter_map(toolset::platform_key).collect();
        let meant = toolset::platform_key(written).or_else(|| names::nearest(written, known).first().copied());
        match meant {
            Some(key) if key == written => Ok(()),
            Some(key) => {
                let why = format!("platform_toolsets has no surface \"{written}\"; did you mean \"{key}\"?");
                Err(source.trouble(entry.line, &why))
            }
            None => {
                let why = format!("platform_toolsets.{written} is no surface that Hermes knows; it is ignored");
                self.warnings.push(source.trouble(entry.line, &why).message);
                Ok(())
            }
        }
    }

    /// The value of a key of the table.
    pub(crate) fn value(&self, path: &str) -> Value {
        let default = || keys::find(path).map_or(Value::Null, keys::Key::default_value);
        self.values.get(path).cloned().unwrap_or_else(default)
    }

    /// Whether the file sets the key.
    pub(crate) fn is_set(&self, path: &str) -> bool {
        self.values.contains_key(path) || self.secrets.contains_key(path)
    }

    /// A secret; `None` if it is not set or empty.
    pub(crate) fn secret(&self, path: &str) -> Option<SecretString> {
        self.secrets.get(path).filter(|secret| !secret.expose_secret().is_empty()).cloned()
    }

    /// A text; `None` if it is empty.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.value(path).as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    pub(crate) fn flag(&self, path: &str) -> bool {
        self.value(path).as_bool().unwrap_or(false)
    }

    pub(crate) fn whole(&self, path: &str) -> u64 {
        self.value(path).as_u64().unwrap_or(0)
    }

    pub(crate) fn seconds(&self, path: &str) -> Duration {
        Duration::try_from_secs_f64(self.value(path).as_f64().unwrap_or(0.0)).unwrap_or(Duration::MAX)
    }

    pub(crate) fn list(&self, path: &str) -> Vec<String> {
        self.value(path).as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The surfaces, of those that Hermes knows, for which the user chose something.
    pub(crate) fn chosen_surfaces(&self) -> Vec<String> {
        let lists = self.value("platform_toolsets");
        lists
            .as_object()
            .into_iter()
            .flat_map(|lists| lists.keys())
            .filter(|key| toolset::platform_key(key).is_some())
            .cloned()
            .collect()
    }

    /// What the user chose for the surface called `key`; `None` if they chose nothing.
    pub(crate) fn platform_toolsets(&self, key: &str) -> Option<Vec<String>> {
        let lists = self.value("platform_toolsets");
        let list = lists.get(key)?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// The user's own toolsets, by name.
    pub(crate) fn custom_toolsets(&self) -> Vec<(String, CustomToolset)> {
        let names = |set: &Value, field: &str| -> Vec<String> {
            let names = set[field].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let sets = self.value("custom_toolsets");
        let sets = sets.as_object().into_iter().flatten();
        sets.map(|(name, set)| {
            let about = set["description"].as_str().unwrap_or_default().to_owned();
            (name.clone(), CustomToolset { about, tools: names(set, "tools"), includes: names(set, "includes") })
        })
        .collect()
    }

    /// The model's window in tokens, if somebody said.
    pub(crate) fn context_length(&self) -> Option<u64> {
        Some(self.whole("model.context_length")).filter(|tokens| *tokens > 0)
    }

    /// The brakes against repetition.
    pub(crate) fn guardrails(&self) -> Guardrails {
        let count = |path: String| u32::try_from(self.whole(&path)).unwrap_or(u32::MAX);
        let thresholds = |when: &str| Thresholds {
            exact_failure: count(format!("tool_loop_guardrails.{when}.exact_failure")),
            same_tool_failure: count(format!("tool_loop_guardrails.{when}.same_tool_failure")),
            idempotent_no_progress: count(format!("tool_loop_guardrails.{when}.idempotent_no_progress")),
        };
        Guardrails {
            warnings_enabled: self.flag("tool_loop_guardrails.warnings_enabled"),
            hard_stop_enabled: self.flag("tool_loop_guardrails.hard_stop_enabled"),
            warn_after: thresholds("warn_after"),
            hard_stop_after: thresholds("hard_stop_after"),
        }
    }

    /// What tools may show and how long they may take.
    pub(crate) fn limits(&self) -> Limits {
        let size = |path| usize::try_from(self.whole(path)).unwrap_or(usize::MAX);
        Limits {
            command_timeout: Duration::from_secs(self.whole("terminal.timeout")),
            keep_at_limit: self.text("terminal.at_limit").as_deref() != Some("kill"),
            output_bytes: size("tool_output.max_bytes"),
            read_lines: size("tool_output.max_lines"),
            line_chars: size("tool_output.max_line_length"),
            ..Limits::default()
        }
    }
}

fn example(section: &str) -> &'static str {
    KEYS.iter().map(|key| key.path).find(|path| path.starts_with(section)).unwrap_or_default()
}

/// `${NAME}` in texts becomes the variable's value; a name that is not set stays as it is (spec agent §1.2).
fn with_variables(value: Value, variable: &dyn Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::String(text) => Value::String(replaced(&text, variable)),
        Value::Array(items) => items.into_iter().map(|item| with_variables(item, variable)).collect(),
        other => other,
    }
}

fn replaced(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out += before;
        match after.split_once('}').and_then(|(name, tail)| variable(name).map(|value| (value, tail))) {
            Some((value, tail)) => {
                out += &value;
                rest = tail;
            }
            None => {
                out += "${";
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Config, String> {
        let variable = |name: &str| (name == "KEY").then(|| "value".to_owned());
        Config::parse(Path::new("config.yaml"), text, &variable).map_err(|failure| failure.message)
    }

    #[test]
    fn an_empty_file_is_all_defaults() {
        for text in ["", "# nothing\n", "model:\n"] {
            let config = parsed(text).unwrap();
            assert_eq!((config.whole("agent.max_turns"), config.list("toolsets")), (90, vec!["hermes-cli".to_owned()]));
        }
    }

    #[test]
    fn values_are_read_and_variables_replaced() {
        let config = parsed("model:\n  api_key: a-${KEY}-${OTHER}\nagent: {max_turns: 5}\ntoolsets: file\n").unwrap();
        assert_eq!(config.secret("model.api_key").unwrap().expose_secret(), "a-value-${OTHER}");
        assert_eq!((config.whole("agent.max_turns"), config.list("toolsets")), (5, vec!["file".to_owned()]));
        assert_eq!(parsed("model: gpt-5\n").unwrap().text("model.default").as_deref(), Some("gpt-5"));
    }

    #[test]
    fn a_variable_counts_where_the_file_is_silent_and_nonsense_in_it_is_said() {
        let with = |yaml: &str, said: &str| {
            let mut config = parsed(yaml).unwrap();
            config.take_variables(&|name| (name == "TERMINAL_TIMEOUT").then(|| said.to_owned())).unwrap();
            (config.whole("terminal.timeout"), config.warnings)
        };
        assert_eq!(with("terminal:\n", "90"), (90, Vec::new()));
        assert_eq!(with("terminal: {timeout: 20}\n", "90"), (20, Vec::new()));
        for bad in ["abc", "-5", "inf", "0", "9000", "1.5"] {
            let (timeout, warnings) = with("", bad);
            assert_eq!(timeout, 180, "{bad}");
            assert!(warnings[0].contains("TERMINAL_TIMEOUT") && warnings[0].contains(bad), "{warnings:?}");
        }
    }

    #[test]
    fn lists_in_quotes_are_lists_and_toolsets_of_ones_own_are_read_from_either_place() {
        for text in ["'[\"terminal\",\"file\"]'", "terminal, file", "[terminal, file]"] {
            let config = parsed(
                &format!("agent: {{disabled_toolsets: {text}}}\n").replace("terminal, file}", "'terminal, file'}"),
            )
            .unwrap();
            assert_eq!(config.list("agent.disabled_toolsets"), ["terminal", "file"], "{text}");
            assert_eq!(config.warnings.len(), usize::from(!text.starts_with('[')), "{text}: {:?}", config.warnings);
        }
        let both = parsed("toolsets: {a: {tools: [x]}}\ncustom_toolsets: {b: {tools: [y]}}\n").unwrap();
        assert_eq!(both.custom_toolsets().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
        let strange = parsed("platform_toolsets: {my_plugin_surface: [web]}").unwrap();
        assert!(strange.warnings[0].contains("my_plugin_surface"), "{:?}", strange.warnings);
        for place in ["toolsets", "custom_toolsets"] {
            let config = parsed(&format!("{place}:\n  mine: {{description: d, tools: [a], includes: web}}\n")).unwrap();
            let set = CustomToolset { about: "d".into(), tools: vec!["a".into()], includes: vec!["web".into()] };
            assert_eq!(config.custom_toolsets(), [("mine".to_owned(), set)]);
            assert!(!config.is_set("toolsets"));
        }
        let silent =
            parsed("toolsets:\nagent:\n  disabled_toolsets:\nplatform_toolsets:\n  cli:\n  cron: []\n").unwrap();
        assert!(!silent.is_set("toolsets") && silent.platform_toolsets("cli").is_none());
        assert_eq!(silent.platform_toolsets("cron"), Some(Vec::new()));
        for (bad, why) in [
            ("custom_toolsets: {mine: [a]}", "must hold description, tools and includes"),
            ("custom_toolsets: {mine: {tool: [a]}}", "has no \"tool\""),
            ("custom_toolsets: {mine: {tools: 5}}", "custom_toolsets.mine.tools must be a list of names"),
            ("platform_toolsets: [cli]", "must be keys with lists of names"),
            ("platform_toolsets: {cli: 5}", "platform_toolsets.cli must be a list of names"),
            (
                "platform_toolsets:\n  telegrm: [web]",
                "line 2: platform_toolsets has no surface \"telegrm\"; did you mean \"telegram\"?",
            ),
            ("platform_toolsets: {hermes-cli: [web]}", "did you mean \"cli\"?"),
            ("toolsets: {mine: {}}\ncustom_toolsets: {mine: {}}", "line 2: the toolset \"mine\" is described twice"),
        ] {
            let error = parsed(bad).err().expect(bad);
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        for (text, expected) in [
            ("a_b: 1\nterminl:\n  timeout: 5\n", "line 2: \"terminl\" is not a key; did you mean \"terminal\"?"),
            (
                "terminal:\n  timeot: 5\n",
                "line 2: \"terminal.timeot\" is not a key; did you mean \"terminal.timeout\"?",
            ),
            ("terminal:\n  zzz: 5\n", "line 2: \"terminal.zzz\" is not a key"),
            (
                "agent:\n\n  max_turns: many\n",
                "line 3: agent.max_turns must be a whole number from 1 to 1000000, not \"many\"",
            ),
            ("agent: 5\n", "line 1: agent must hold keys"),
            ("- a\n", "line 1: the file must hold keys"),
            ("model:\n  stream: [\n", "line"),
            ("agent: {max_turns: 1}\nagent: {max_turns: 2}\n", "duplicate"),
        ] {
            let error = parsed(text).err().expect(text);
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn sections_of_others_are_left_alone_and_unknown_ones_are_said() {
        let config = parsed("browser: {anything: [1, 2]}\nmy_plugin_things: 1\nmodel: {stream: no}\n");
        assert!(config.is_err(), "`no` is a text in YAML 1.2 and no flag");
        let config = parsed("browser: {anything: [1, 2]}\nmy_plugin_things: 1\n").unwrap();
        assert_eq!(config.warnings.len(), 1);
        assert!(config.warnings[0].contains("my_plugin_things"));
    }
}
