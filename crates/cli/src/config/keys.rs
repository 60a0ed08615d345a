//! The keys of `config.yaml`: one table that drives reading, checking, listing and setting.
//!
//! The names are those of the Python original (spec agent §1.2), so that its users can point us at their file. Keys of
//! theirs that we do not read yet are known too: they are accepted and left alone.

use serde_json::{Value, json};

/// A key that is read.
#[derive(Debug)]
pub(crate) struct Key {
    /// Dotted.
    pub(crate) path: &'static str,
    /// What it takes.
    pub(crate) kind: Kind,
    /// JSON text of the value that holds when the key is absent.
    pub(crate) default: &'static str,
    /// One line for people.
    pub(crate) about: &'static str,
}

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// A text that is never shown.
    Secret,
    Flag,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// The address of a model server.
    Address,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A number of at least 0.
    Number,
    /// A list of texts.
    List,
    /// A list of texts for each name.
    Lists,
    /// Rules about calls; what is in them is checked by those who know rules.
    Rules,
    /// Toolsets by name: what each is for, its tools, what it includes.
    Toolsets,
}

/// Sorted by name within each section.
pub(crate) const KEYS: &[Key] = &[
    key("agent.api_max_retries", Kind::Whole(1, 100), "3", "attempts in all when the model does not answer"),
    key("agent.api_retry_base_seconds", Kind::Number, "2", "wait before the second attempt; it doubles"),
    key(
        "agent.coding_context",
        Kind::OneOf(&["auto", "focus", "lean", "off", "on", "strict"]),
        "\"auto\"",
        "focus: in a code base, only the toolset `coding` and MCP servers are on",
    ),
    key("agent.disabled_toolsets", Kind::List, "[]", "toolsets that are off, whatever else is said"),
    key(
        "agent.image_input_mode",
        Kind::OneOf(&["auto", "native", "text"]),
        "\"auto\"",
        "text: pictures are never sent to the model; native: it takes them",
    ),
    key("agent.max_turns", Kind::Whole(1, 1_000_000), "90", "requests that one turn may make"),
    key("approvals.deny", Kind::List, "[]", "commands that never run: a pattern each, for example git push *"),
    key(
        "approvals.mode",
        Kind::OneOf(&["manual", "off", "rehearse", "smart"]),
        "\"manual\"",
        "manual asks about what is dangerous, rehearse shows first what it would do, smart lets a model look first, off asks nothing; what never runs never runs",
    ),
    key(
        "approvals.rules",
        Kind::Rules,
        "[]",
        "rules: {tool, argument, pattern, action: allow|ask|deny|judge, examples}",
    ),
    key("approvals.timeout", Kind::Whole(1, 3600), "60", "seconds after which a question counts as not answered"),
    key("auxiliary.approval.api_key", Kind::Secret, "\"\"", "key for auxiliary.approval.base_url"),
    key("auxiliary.approval.base_url", Kind::Address, "\"\"", "endpoint of the reviewer; the model's own if empty"),
    key(
        "auxiliary.approval.model",
        Kind::Text,
        "\"\"",
        "model that reviews in approvals.mode smart; the model's own if empty",
    ),
    key("auxiliary.approval.timeout", Kind::Whole(1, 600), "30", "seconds the reviewer may take"),
    key(
        "checkpoints.enabled",
        Kind::Flag,
        "true",
        "keep what files were before a turn changes them (hermes checkpoints)",
    ),
    key("checkpoints.max_file_size_mb", Kind::Whole(1, 1000), "10", "the largest file that is kept with a project"),
    key("checkpoints.max_snapshots", Kind::Whole(1, 10_000), "20", "checkpoints that are kept of one project"),
    key(
        "checkpoints.max_total_size_mb",
        Kind::Whole(1, 1_000_000),
        "500",
        "the largest project that is kept as a whole, and what all checkpoints may take on disk",
    ),
    key("checkpoints.retention_days", Kind::Whole(1, 3650), "7", "days that a checkpoint is kept"),
    key("command_allowlist", Kind::List, "[]", "what is approved for good (hermes approvals list)"),
    key("custom_toolsets", Kind::Toolsets, "{}", "toolsets of your own: NAME: {description, tools, includes}"),
    key("model.api_key", Kind::Secret, "\"\"", "key for model.base_url; ${NAME} takes it from the environment"),
    key(
        "model.base_url",
        Kind::Address,
        "\"\"",
        "endpoint that speaks Chat Completions, for example http://127.0.0.1:11434/v1",
    ),
    key("model.context_length", Kind::Whole(0, 100_000_000), "0", "the model's window in tokens; 0 if it is not known"),
    key("model.default", Kind::Text, "\"\"", "name of the model, or script:FILE"),
    key(
        "model.max_tokens",
        Kind::Whole(0, 100_000_000),
        "0",
        "what the model may write in one turn; 0 leaves it to the provider",
    ),
    key("model.probe_local", Kind::Flag, "true", "look for a model server on this machine when nothing else is set"),
    key(
        "model.provider",
        Kind::OneOf(&["", "auto", "custom", "openai", "openrouter"]),
        "\"\"",
        "openrouter, openai or custom; found out from the rest if empty",
    ),
    key("model.stream", Kind::Flag, "true", "ask for answers piece by piece"),
    key(
        "model.tool_profile",
        Kind::OneOf(&["", "auto", "openai", "local"]),
        "\"\"",
        "how tools are described: openai, or local for servers that make grammars of schemas; found out if empty",
    ),
    key("platform_toolsets", Kind::Lists, "{}", "what is on for one surface: cli: [hermes-cli, -web, spotify]"),
    key("security.allow_private_urls", Kind::Flag, "false", "whether addresses that are not public may be reached"),
    key(
        "security.url_allowlist",
        Kind::List,
        "[]",
        "hosts that may be reached although they are private: [*.]host[:port]",
    ),
    key(
        "security.website_blocklist.domains",
        Kind::List,
        "[]",
        "hosts that may not be reached, with all names below them",
    ),
    key("security.website_blocklist.enabled", Kind::Flag, "false", "whether the blocklist holds"),
    key("security.website_blocklist.shared_files", Kind::List, "[]", "files with one such host a line"),
    key(
        "terminal.at_limit",
        Kind::OneOf(&["background", "kill"]),
        "\"background\"",
        "what becomes of a command that outlives its time: it goes on in the background, or it is killed",
    ),
    key("terminal.backend", Kind::OneOf(&["local"]), "\"local\"", "where commands run"),
    key("terminal.cwd", Kind::Text, "\".\"", "where sessions start"),
    key(
        "terminal.daemon_term_grace_seconds",
        Kind::Number,
        "2",
        "seconds between SIGTERM and SIGKILL when a process in the background is killed; 0 kills at once",
    ),
    key(
        "terminal.env_passthrough",
        Kind::List,
        "[]",
        "environment variables that commands may see besides the safe ones",
    ),
    key(
        "terminal.lifetime_seconds",
        Kind::Whole(0, 1_000_000),
        "300",
        "seconds after which an idle session frees what it holds for the next command; 0 never",
    ),
    key(
        "terminal.sandbox",
        Kind::OneOf(&["off", "strict", "workspace"]),
        "\"off\"",
        "workspace: commands change only the folder the session starts in and see no secrets; strict: they see little else",
    ),
    key("terminal.sandbox_hidden", Kind::List, "[]", "paths that commands in the sandbox cannot see, besides secrets"),
    key(
        "terminal.sandbox_hosts",
        Kind::List,
        "[]",
        "with sandbox_network hosts: what commands may connect to, for example [pypi.org, .crates.io]",
    ),
    key(
        "terminal.sandbox_network",
        Kind::OneOf(&["hosts", "off", "open"]),
        "\"off\"",
        "what commands in the sandbox reach: nothing, the hosts of sandbox_hosts, or everything",
    ),
    key("terminal.sandbox_writable", Kind::List, "[]", "folders that commands in the sandbox may change as well"),
    key(
        "terminal.secrets",
        Kind::List,
        "[]",
        "secrets that commands get, by reference: NAME=env:OTHER, NAME=file:PATH or NAME=command:WORDS",
    ),
    key(
        "terminal.shell_init_files",
        Kind::List,
        "[]",
        "files that bash reads before the first command: what they define is there from then on",
    ),
    key("terminal.timeout", Kind::Whole(1, 600), "180", "seconds a command may take if the call does not say"),
    key(
        "tool_loop_guardrails.hard_stop_after.exact_failure",
        Kind::Whole(1, 1000),
        "5",
        "failures of one call before it is not run any more",
    ),
    key(
        "tool_loop_guardrails.hard_stop_after.idempotent_no_progress",
        Kind::Whole(1, 1000),
        "5",
        "equal results of one call before it is not run any more",
    ),
    key(
        "tool_loop_guardrails.hard_stop_after.same_tool_failure",
        Kind::Whole(1, 1000),
        "8",
        "failures of one tool before the turn ends",
    ),
    key(
        "tool_loop_guardrails.hard_stop_enabled",
        Kind::Flag,
        "true",
        "whether calls that go round in circles are stopped",
    ),
    key(
        "tool_loop_guardrails.warn_after.exact_failure",
        Kind::Whole(1, 1000),
        "2",
        "failures of one call before the model is told",
    ),
    key(
        "tool_loop_guardrails.warn_after.idempotent_no_progress",
        Kind::Whole(1, 1000),
        "2",
        "equal results of one call before the model is told",
    ),
    key(
        "tool_loop_guardrails.warn_after.same_tool_failure",
        Kind::Whole(1, 1000),
        "3",
        "failures of one tool before the model is told",
    ),
    key(
        "tool_loop_guardrails.warnings_enabled",
        Kind::Flag,
        "true",
        "whether the model is told that it goes round in circles",
    ),
    key("tool_output.max_bytes", Kind::Whole(1, 10_000_000), "50000", "bytes of command output that are kept"),
    key("tool_output.max_line_length", Kind::Whole(1, 1_000_000), "2000", "characters of one line that are shown"),
    key("tool_output.max_lines", Kind::Whole(1, 1_000_000), "2000", "lines that one read shows at most"),
    key("toolsets", Kind::List, "[\"hermes-cli\"]", "toolsets that are on"),
];

/// Sections and keys of the original that are accepted and not read yet.
const ACCEPTED: &[&str] = &[
    "_config_version",
    "agent.clarify_timeout",
    "agent.environment_probe",
    "agent.gateway_notify_interval",
    "agent.gateway_timeout",
    "agent.gateway_timeout_warning",
    "agent.max_verify_nudges",
    "agent.parallel_tool_call_guidance",
    "agent.task_completion_guidance",
    "agent.tool_use_enforcement",
    "agent.verify_on_stop",
    "approvals.cron_mode",
    "auxiliary",
    "browser",
    "checkpoints.auto_prune",
    "checkpoints.delete_orphans",
    "checkpoints.min_interval_hours",
    "compression",
    "credential_pool_strategies",
    "cron",
    "curator",
    "delegation",
    "discord",
    "display",
    "fallback_providers",
    "gateway",
    "hooks",
    "hooks_auto_accept",
    "image_gen",
    "kanban",
    "known_plugin_toolsets",
    "lsp",
    "matrix",
    "mattermost",
    "mcp",
    "mcp_servers",
    "memory",
    "model.api_mode",
    "personalities",
    "platform_hints",
    "platforms",
    "plugins",
    "prompt_caching",
    "providers",
    "quick_commands",
    "security",
    "session_reset",
    "sessions",
    "skills",
    "slack",
    "streaming",
    "stt",
    "telegram",
    "terminal.container_cpu",
    "terminal.container_disk",
    "terminal.container_memory",
    "terminal.container_persistent",
    "terminal.daytona_image",
    "terminal.docker_image",
    "terminal.docker_volumes",
    "terminal.home_mode",
    "terminal.modal_image",
    "terminal.persistent_shell",
    "terminal.singularity_image",
    "terminal.ssh_host",
    "terminal.ssh_key",
    "terminal.ssh_port",
    "terminal.ssh_user",
    "timezone",
    "tools",
    "tts",
    "video_gen",
    "voice",
    "web",
    "whatsapp",
    "x_search",
];

const fn key(path: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { path, kind, default, about }
}

/// Keys that a variable of the environment sets where the file says nothing, as in the original.
pub(crate) const VARIABLES: &[(&str, &str)] =
    &[("TERMINAL_CWD", "terminal.cwd"), ("TERMINAL_ENV", "terminal.backend"), ("TERMINAL_TIMEOUT", "terminal.timeout")];

/// The key with exactly this path.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// What the table says about a path in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is read.
    Ours,
    /// It holds keys that are read.
    Section,
    /// It is accepted, with everything below it.
    Accepted,
    /// Nobody knows it; the nearest path that somebody knows, if there is one.
    Unknown(Option<&'static str>),
}

/// Where a path stands.
pub(crate) fn standing(path: &str) -> Standing {
    if find(path).is_some() {
        return Standing::Ours;
    }
    let below = |known: &str| known.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    if KEYS.iter().any(|key| below(key.path)) {
        return Standing::Section;
    }
    // A section of which only a part is read is accepted in its other parts.
    let within = |known: &str| path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if ACCEPTED.iter().any(|known| within(known)) {
        return Standing::Accepted;
    }
    Standing::Unknown(nearest(path))
}

/// The known path, or section, that looks most like `path`.
pub(crate) fn nearest(path: &str) -> Option<&'static str> {
    let sections = KEYS.iter().filter_map(|key| key.path.split_once('.')).map(|(section, _)| section);
    let known = KEYS.iter().map(|key| key.path).chain(sections).chain(ACCEPTED.iter().copied());
    let scored = known.map(|known| (strsim::normalized_damerau_levenshtein(path, known), known));
    scored
        .filter(|(score, _)| *score >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))
        .map(|(_, known)| known)
}

impl Key {
    /// The value that holds when the file says nothing.
    pub(crate) fn default_value(&self) -> Value {
        serde_json::from_str(self.default).unwrap_or(Value::Null)
    }

    /// `value` if it is one that this key takes, else what it takes, in words.
    pub(crate) fn check(&self, value: &Value) -> Result<Value, String> {
        let wanted = match self.kind {
            Kind::Text | Kind::Secret => match value {
                Value::String(_) => return Ok(value.clone()),
                Value::Null => return Ok(json!("")),
                _ => "a text".to_owned(),
            },
            // The original writes `true` for "ask me".
            Kind::OneOf(options) if *value == Value::Bool(true) && options.contains(&"manual") => {
                return Ok(json!("manual"));
            }
            Kind::OneOf(options) => match value {
                Value::String(text) if options.contains(&text.as_str()) => return Ok(value.clone()),
                Value::Null => return Ok(self.default_value()),
                // YAML has words of its own for these two.
                Value::Bool(flag) if options.contains(&if *flag { "on" } else { "off" }) => {
                    return Ok(json!(if *flag { "on" } else { "off" }));
                }
                _ => format!(
                    "one of {}",
                    options.iter().filter(|o| !o.is_empty()).copied().collect::<Vec<_>>().join(", ")
                ),
            },
            Kind::Address => match value {
                // What is wrong with it is not repeated: it may be a password.
                Value::String(text) if text.contains('@') => {
                    return Err(format!("{} must not contain a user name or password; use model.api_key", self.path));
                }
                Value::String(text)
                    if text.is_empty() || ["http://", "https://"].iter().any(|s| text.starts_with(s)) =>
                {
                    return Ok(value.clone());
                }
                Value::Null => return Ok(json!("")),
                _ => "an address that begins with http:// or https://".to_owned(),
            },
            Kind::Flag if value.is_boolean() => return Ok(value.clone()),
            Kind::Flag => "true or false".to_owned(),
            Kind::Whole(least, most) if value.as_u64().is_some_and(|n| (least..=most).contains(&n)) => {
                return Ok(value.clone());
            }
            Kind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Number if value.as_f64().is_some_and(|n| n >= 0.0) => return Ok(value.clone()),
            Kind::Number => "a number of at least 0".to_owned(),
            Kind::List => match list(value) {
                Some(items) => return Ok(items),
                None => "a list of names".to_owned(),
            },
            Kind::Lists => match value {
                Value::Null => return Ok(json!({})),
                Value::Object(map) => match map.iter().find(|(_, value)| list(value).is_none()) {
                    None => {
                        let said = map.iter().filter(|(_, value)| !value.is_null());
                        let lists = said.map(|(name, value)| (name.clone(), list(value).unwrap_or_default()));
                        return Ok(Value::Object(lists.collect()));
                    }
                    Some((name, value)) => {
                        return Err(format!("{}.{name} must be a list of names, not {value}", self.path));
                    }
                },
                _ => "keys with lists of names, for example cli: [hermes-cli, -web]".to_owned(),
            },
            Kind::Rules => match value {
                Value::Null => return Ok(json!([])),
                Value::Array(_) => return Ok(value.clone()),
                _ => "a list of rules".to_owned(),
            },
            Kind::Toolsets => match value {
                Value::Null => return Ok(json!({})),
                Value::Object(sets) => {
                    let sets = sets.iter().map(|(name, set)| Ok((name.clone(), toolset(self.path, name, set)?)));
                    return Ok(Value::Object(sets.collect::<Result<_, String>>()?));
                }
                _ => "toolsets by name, for example mine: {tools: [read_file], includes: [web]}".to_owned(),
            },
        };
        Err(format!("{} must be {wanted}, not {value}", self.path))
    }
}

/// A list of names. A list that was saved as a text (`"[a, b]"`, `"a, b"`) is one too: a restriction that somebody set
/// must not be lost to a pair of quotes.
fn list(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(json!([])),
        Value::Array(items) if items.iter().all(Value::is_string) => Some(value.clone()),
        Value::String(text) if text.trim_start().starts_with('[') => {
            serde_saphyr::from_str::<Vec<String>>(text).ok().map(|items| json!(items))
        }
        Value::String(text) => Some(text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()),
        _ => None,
    }
}

/// One toolset of the user's own.
fn toolset(path: &str, name: &str, value: &Value) -> Result<Value, String> {
    let Value::Object(fields) = value else {
        return Err(format!("{path}.{name} must hold description, tools and includes, not {value}"));
    };
    for (field, value) in fields {
        let fits = match field.as_str() {
            "description" => value.is_string(),
            "tools" | "includes" => list(value).is_some(),
            _ => return Err(format!("{path}.{name} has no \"{field}\"; it takes description, tools and includes")),
        };
        if !fits {
            let wanted = if field == "description" { "a text" } else { "a list of names" };
            return Err(format!("{path}.{name}.{field} must be {wanted}, not {value}"));
        }
    }
    let names = |field| fields.get(field).and_then(list).unwrap_or_else(|| json!([]));
    let about = fields.get("description").cloned().unwrap_or_else(|| json!(""));
    Ok(json!({ "description": about, "tools": names("tools"), "includes": names("includes") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_defaults_are_values_it_takes() {
        assert!(KEYS.is_sorted_by_key(|key| key.path) && ACCEPTED.is_sorted());
        for key in KEYS {
            assert_eq!(key.check(&key.default_value()), Ok(key.default_value()), "{}", key.path);
        }
    }

    #[test]
    fn a_typo_is_told_from_a_key_of_somebody_else() {
        assert_eq!(standing("terminl"), Standing::Unknown(Some("terminal")));
        assert_eq!(standing("agent.max_turn"), Standing::Unknown(Some("agent.max_turns")));
        assert_eq!(standing("agent"), Standing::Section);
        assert_eq!(standing("browser"), Standing::Accepted);
        assert_eq!(standing("my_own_plugin_section"), Standing::Unknown(None));
    }
}
