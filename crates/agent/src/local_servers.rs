//! Finding a model server on this machine.
//!
//! The usual programs listen on known ports and answer the same question, which models they have. All of them are asked
//! at once, so that looking costs no more than one of them being silent.

use std::time::Duration;

use futures::future::join_all;
use reqwest::Url;
use serde_json::Value;

use crate::chat_completions::transport;

/// A program that serves models, and where it listens by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name, as people know it.
    pub name: String,
    /// The endpoint, for example `http://127.0.0.1:11434/v1`.
    pub base_url: String,
}

/// A server that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its endpoint.
    pub base_url: String,
    /// The first model it offers.
    pub model: String,
}

/// How long a server may take to answer.
pub const PATIENCE: Duration = Duration::from_millis(200);

/// The programs that are looked for, in the order of preference. The ports are their documented defaults.
pub fn candidates() -> Vec<Candidate> {
    [("Ollama", 11434), ("LM Studio", 1234), ("llama.cpp", 8080), ("vLLM", 8000)]
        .map(|(name, port)| Candidate { name: name.into(), base_url: format!("http://127.0.0.1:{port}/v1") })
        .into()
}

/// The first of `candidates` that answers within `patience` with at least one model.
pub async fn find(candidates: &[Candidate], patience: Duration) -> Option<Found> {
    let asked = candidates.iter().map(|candidate| async move {
        let model = tokio::time::timeout(patience, first_model(&candidate.base_url)).await.ok()??;
        Some(Found { name: candidate.name.clone(), base_url: candidate.base_url.clone(), model })
    });
    join_all(asked).await.into_iter().flatten().next()
}

async fn first_model(base_url: &str) -> Option<String> {
    ask(base_url).await.ok()
}

/// The first model that the server at `base_url` offers, or in one line why there is none.
pub async fn ask(base_url: &str) -> Result<String, String> {
    let url = Url::parse(&format!("{}/models", base_url.trim_end_matches('/'))).map_err(|error| error.to_string())?;
    let client = transport::client(&url).map_err(|error| error.to_string())?;
    let answer = client.get(url).send().await.map_err(|error| transport::cause(&error))?;
    let status = answer.status();
    let body = answer.bytes().await.map_err(|error| transport::cause(&error))?;
    let list: Value =
        serde_json::from_slice(&body).map_err(|_| format!("it answered {status} and no list of models"))?;
    let first = list.pointer("/data/0/id").and_then(Value::as_str);
    first.map(str::to_owned).ok_or_else(|| format!("it answered {status} and no model"))
}
