//! `hermes config path|get|set`.

use std::io::Read as _;

use hermes_runtime::Selection;
use serde_json::{Value, json};

use crate::args::ConfigVerb;
use crate::config::keys::{self, KEYS, Key, Kind};
use crate::config::{self, Config, edit};
use crate::session;
use crate::terminal::{out, text};
use crate::words::{Exit, Failure};
use crate::world::World;

pub(crate) fn run(world: &World, verb: ConfigVerb) -> Result<Exit, Failure> {
    match verb {
        ConfigVerb::Path => out::line(&config::path(world).display().to_string())?,
        ConfigVerb::Get { key: Some(name), json } => {
            let key = known(&name)?;
            let config = Config::load_and_warn(world)?;
            let value = shown(&config, key);
            match &value {
                Value::String(text) if !json.json => out::line(text)?,
                value => out::line(&value.to_string())?,
            }
        }
        ConfigVerb::Get { key: None, json } => list(&Config::load_and_warn(world)?, json.json)?,
        ConfigVerb::Set { key, value } => {
            let key = known(&key)?;
            if matches!(key.kind, Kind::Lists | Kind::Toolsets) {
                return Err(Failure::usage(elsewhere(key)));
            }
            let value = if value == "-" { from_standard_input()? } else { value };
            let value = key.check(&given(key, &value)).map_err(Failure::usage)?;
            // A file that is broken elsewhere is not touched.
            let config = Config::load_and_warn(world)?;
            known_toolsets(world, &config, key, &value)?;
            let path = config::path(world);
            edit::set(&path, key.path, &value)?;
            if key.kind == Kind::Secret {
                edit::keep_private(&path)?;
            }
            let value = if key.kind == Kind::Secret { json!("(not shown)") } else { value };
            out::line(&format!("{} = {value} in {}", key.path, world.shown(&path)))?;
            if key.path == "toolsets" && config.platform_toolsets("cli").is_some() {
                out::line("! platform_toolsets.cli is set too, and that is what counts in the terminal")?;
            }
        }
    }
    Ok(Exit::Done)
}

fn known(name: &str) -> Result<&'static Key, Failure> {
    keys::find(name).ok_or_else(|| {
        if let Some(key) = KEYS.iter().find(|key| name.strip_prefix(key.path).is_some_and(|rest| rest.starts_with('.')))
        {
            return Failure::usage(elsewhere(key));
        }
        let hint = keys::nearest(name).filter(|nearest| keys::find(nearest).is_some());
        let hint = hint.map(|nearest| format!("; did you mean \"{nearest}\"?")).unwrap_or_default();
        Failure::new(format!("\"{name}\" is not a key{hint} (hermes config get lists them)"))
    })
}

/// Where a key is set that has more parts than a command line can name.
fn elsewhere(key: &Key) -> String {
    let by = if key.kind == Kind::Lists { "hermes tools enable|disable NAME --platform SURFACE, or " } else { "" };
    format!("{} is set with {by}an editor: $EDITOR \"$(hermes config path)\"", key.path)
}

/// A secret is said to be set and never shown.
fn shown(config: &Config, key: &Key) -> Value {
    match config.secret(key.path) {
        Some(_) => json!("(set, not shown)"),
        None => config.value(key.path),
    }
}

/// A toolset that does not exist would stop every later command.
fn known_toolsets(world: &World, config: &Config, key: &Key, value: &Value) -> Result<(), Failure> {
    if !matches!(key.path, "toolsets" | "agent.disabled_toolsets") {
        return Ok(());
    }
    let names: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let definitions = session::definitions(world, config)?;
    let selection = if key.path == "toolsets" {
        Selection::exactly(&names)
    } else {
        Selection { disabled: names.into_iter().map(str::to_owned).collect(), ..Selection::default() }
    };
    selection.resolve(&definitions.registry().snapshot(), definitions.checks())?;
    Ok(())
}

fn from_standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("cannot read the value from standard input: {error}")))?;
    let value = text.trim_end_matches(['\n', '\r']);
    match value.lines().count() {
        0 => Err(Failure::usage("there is nothing on standard input; nothing was set")),
        1 => Ok(value.to_owned()),
        lines => Err(Failure::usage(format!(
            "there are {lines} lines on standard input, where one is the value; nothing was set"
        ))),
    }
}

/// What was typed, as the kind of value that the key takes.
fn given(key: &Key, typed: &str) -> Value {
    match key.kind {
        Kind::Text | Kind::Secret | Kind::Address | Kind::OneOf(_) => json!(typed),
        Kind::List => match serde_saphyr::from_str::<Vec<String>>(typed) {
            Ok(items) => json!(items),
            // A list that is opened and not closed is no name.
            Err(_) if typed.trim_start().starts_with('[') => json!(typed),
            Err(_) => typed.split(',').map(str::trim).filter(|item| !item.is_empty()).collect(),
        },
        Kind::Number => typed.parse::<f64>().map_or_else(|_| json!(typed), |number| json!(number)),
        // The last three are not set here.
        Kind::Flag | Kind::Whole(..) | Kind::Lists | Kind::Rules | Kind::Toolsets => {
            serde_json::from_str(typed).unwrap_or_else(|_| json!(typed))
        }
    }
}

fn list(config: &Config, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let all: Vec<Value> = KEYS
            .iter()
            .map(|key| {
                json!({
                    "key": key.path,
                    "value": shown(config, key),
                    "set": config.is_set(key.path),
                    "default": key.default_value(),
                    "about": key.about,
                })
            })
            .collect();
        return Ok(out::pretty(&Value::Array(all))?);
    }
    let mut lines = String::new();
    for key in KEYS {
        let mark = if config.is_set(key.path) { "●" } else { " " };
        let value = text::shortened(&shown(config, key).to_string(), 30);
        lines += &format!("{mark} {} {}\n    {}\n", text::padded(key.path, 32), value, key.about);
    }
    lines += "● set in the file; the rest are defaults.\n";
    Ok(out::line(&lines)?)
}
