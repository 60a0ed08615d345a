//! Which model answers: `--model`, then the configuration, then a key in the environment, then a server on this machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_agent::chat_completions::transport;
use hermes_agent::{ChatCompletions, HttpTransport, Retry, Script, local_servers};
use hermes_core::Model;
use hermes_runtime::Profile;
use secrecy::SecretString;

use crate::config::Config;
use crate::env_file::Keys;
use crate::terminal::text::one_line;
use crate::words::Failure;
use crate::world::World;

/// A model, and what else came with it.
pub(crate) struct Chosen {
    pub(crate) model: Arc<dyn Model>,
    /// The dialect in which it wants its tools described.
    pub(crate) profile: Profile,
    /// For people, for example `gpt-5 via OpenAI`.
    pub(crate) label: String,
    /// What the person answers, if the model is scripted.
    pub(crate) person: Vec<String>,
}

/// A provider that is known by name.
struct Provider {
    name: &'static str,
    label: &'static str,
    host: &'static str,
    key_variable: &'static str,
    base_url: &'static str,
    /// A name that the provider itself resolves to something current.
    model: &'static str,
}

/// In the order in which keys are looked for.
const PROVIDERS: &[Provider] = &[
    Provider {
        name: "openrouter",
        label: "OpenRouter",
        host: "openrouter.ai",
        key_variable: "OPENROUTER_API_KEY",
        base_url: "https://openrouter.ai/api/v1",
        model: "openrouter/auto",
    },
    Provider {
        name: "openai",
        label: "OpenAI",
        host: "api.openai.com",
        key_variable: "OPENAI_API_KEY",
        base_url: "https://api.openai.com/v1",
        model: "gpt-5",
    },
];

/// The prefix of a model that plays a file.
const SCRIPT: &str = "script:";

/// Finds the model; `flag` is what `--model` says.
pub(crate) async fn choose(world: &World, config: &Config, flag: Option<&str>) -> Result<Chosen, Failure> {
    let name = flag.map(str::to_owned).or_else(|| config.text("model.default"));
    if let Some(file) = name.as_deref().and_then(|name| name.strip_prefix(SCRIPT)) {
        return scripted(world, config, file);
    }
    let keys = Keys::read(world)?;
    if let Some(base_url) = config.text("model.base_url") {
        return at(config, &keys, &base_url, name).await;
    }
    if let Some(provider) = wanted_provider(config, &keys)? {
        let name = name.unwrap_or_else(|| provider.model.to_owned());
        let key = config.secret("model.api_key").or_else(|| keys.secret(provider.key_variable));
        let base_url = match provider.name {
            // Set by the user beside the key, so the key is meant to go there.
            "openai" => keys.text("OPENAI_BASE_URL").unwrap_or_else(|| provider.base_url.to_owned()),
            _ => provider.base_url.to_owned(),
        };
        let label = format!("{name} via {}", provider.label);
        return connected(config, &base_url, key.as_ref(), name, &label);
    }
    if config.flag("model.probe_local")
        && let Some(found) = local_servers::find(&local_servers::candidates(), local_servers::PATIENCE).await
    {
        let name = name.unwrap_or(found.model);
        let label = format!("{name} via {} on this machine", found.name);
        return connected(config, &found.base_url, None, name, &label);
    }
    Err(none_found(&keys))
}

/// The model that reviews: the one that the configuration names for it, else the model of the conversation.
pub(crate) async fn reviewer(world: &World, config: &Config, chosen: &Chosen) -> Result<Arc<dyn Model>, Failure> {
    let name = config.text("auxiliary.approval.model");
    let Some(base_url) = config.text("auxiliary.approval.base_url") else {
        return match name {
            Some(name) => Ok(choose(world, config, Some(&name)).await?.model),
            None => Ok(Arc::clone(&chosen.model)),
        };
    };
    let key = config.secret("auxiliary.approval.api_key");
    let name = name.unwrap_or_else(|| chosen.model.name().to_owned());
    let label = format!("{name} at {base_url}");
    Ok(connected(config, &base_url, key.as_ref(), name, &label)?.model)
}

fn scripted(world: &World, config: &Config, file: &str) -> Result<Chosen, Failure> {
    let path = world.cwd.join(file);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::new(format!("cannot read the script {}: {error}", path.display())))?;
    play(config, &Path::new(file).display().to_string(), &text)
}

/// A model that plays `text`, a script called `name`.
pub(crate) fn play(config: &Config, name: &str, text: &str) -> Result<Chosen, Failure> {
    let script = Script::parse(name, text).map_err(|error| Failure::new(error.to_string()))?;
    let person = script.person().to_vec();
    let model = tuned(config, ChatCompletions::new(script.into_transport(), "scripted"));
    Ok(Chosen { model, profile: Profile::OpenAiChat, label: format!("scripted model ({name})"), person })
}

/// The endpoint that the configuration names. A key of a provider goes to that provider's host only.
async fn at(config: &Config, keys: &Keys<'_>, base_url: &str, name: Option<String>) -> Result<Chosen, Failure> {
    let provider = PROVIDERS.iter().find(|provider| transport::leads_to(base_url, provider.host));
    let key = config.secret("model.api_key");
    let key = key.or_else(|| provider.and_then(|provider| keys.secret(provider.key_variable)));
    let name = match (name, provider) {
        (Some(name), _) => name,
        (None, Some(provider)) => provider.model.to_owned(),
        (None, None) => {
            let asked = tokio::time::timeout(Duration::from_secs(2), local_servers::ask(base_url)).await;
            let asked = asked.unwrap_or_else(|_| Err("it has been silent for 2 s".into()));
            asked.map_err(|why| {
                Failure::new(format!(
                    "cannot ask {base_url} which models it has: {why}. Is it running? (or set model.default)"
                ))
            })?
        }
    };
    let place = provider.map_or_else(|| base_url.to_owned(), |provider| provider.label.to_owned());
    let label = format!("{name} via {place}");
    connected(config, base_url, key.as_ref(), name, &label)
}

fn connected(
    config: &Config,
    base_url: &str,
    key: Option<&SecretString>,
    name: String,
    label: &str,
) -> Result<Chosen, Failure> {
    let transport = HttpTransport::new(base_url, key).map_err(|error| Failure::new(error.to_string()))?;
    // A server chooses the names of its models.
    let label = one_line(label, 120);
    let profile = profile(config, base_url);
    Ok(Chosen { model: tuned(config, ChatCompletions::new(transport, name)), profile, label, person: Vec::new() })
}

/// How the tools are described: as the configuration says, else strictly for a server on this machine, which as a rule
/// turns schemas into grammars.
fn profile(config: &Config, base_url: &str) -> Profile {
    let said = config.text("model.tool_profile").unwrap_or_default();
    let on_this_machine = ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| transport::leads_to(base_url, host));
    match said.as_str() {
        "local" => Profile::Local,
        "openai" => Profile::OpenAiChat,
        _ if on_this_machine => Profile::Local,
        _ => Profile::OpenAiChat,
    }
}

fn tuned(config: &Config, model: ChatCompletions) -> Arc<dyn Model> {
    let retry = Retry {
        attempts: u32::try_from(config.whole("agent.api_max_retries")).unwrap_or(u32::MAX),
        base: config.seconds("agent.api_retry_base_seconds"),
    };
    let max_tokens = Some(config.whole("model.max_tokens")).filter(|tokens| *tokens > 0);
    Arc::new(model.with_retry(retry).with_stream(config.flag("model.stream")).with_max_tokens(max_tokens))
}

fn wanted_provider(config: &Config, keys: &Keys<'_>) -> Result<Option<&'static Provider>, Failure> {
    let by_key = PROVIDERS.iter().find(|provider| keys.secret(provider.key_variable).is_some());
    match config.text("model.provider").as_deref() {
        None | Some("auto" | "custom") if config.secret("model.api_key").is_some() => Err(Failure::new(
            "model.api_key is set, but nothing says whose it is: set model.base_url or model.provider beside it",
        )),
        None | Some("auto" | "custom") => Ok(by_key),
        Some(name) => {
            let named = PROVIDERS.iter().find(|provider| provider.name == name);
            let has_key = |provider: &Provider| {
                config.secret("model.api_key").is_some() || keys.secret(provider.key_variable).is_some()
            };
            match named.filter(|provider| !has_key(provider)) {
                Some(provider) => Err(Failure::new(format!(
                    "model.provider is \"{name}\" but there is no key: export {}=…",
                    provider.key_variable
                ))),
                None => Ok(named),
            }
        }
    }
}

fn none_found(keys: &Keys<'_>) -> Failure {
    let anthropic = if keys.secret("ANTHROPIC_API_KEY").is_some() {
        "\n(ANTHROPIC_API_KEY is set, but Anthropic's own API is not supported yet; OpenRouter offers the same models.)"
    } else {
        ""
    };
    Failure::new(format!(
        "no model found. The three shortest ways to get one:\n  \
         1. export OPENROUTER_API_KEY=…        (or OPENAI_API_KEY)\n  \
         2. start a local server               (Ollama, LM Studio, llama.cpp, vLLM: found by themselves)\n  \
         3. hermes config set model.base_url http://host:port/v1\n\
         To see the tools at work without a model: hermes tour{anthropic}"
    ))
}
