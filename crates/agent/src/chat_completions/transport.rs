//! Getting the bytes of an answer: over HTTP, or from anything else that can give them.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use hermes_core::plural;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Url, redirect};
use secrecy::{ExposeSecret as _, SecretString};

use super::wire::Body;

/// Where requests go.
#[async_trait]
pub trait Transport: Send + Sync {
    /// The place in words, for messages; it never contains a secret.
    fn place(&self) -> String;

    /// Sends one request and gives the head of the answer; the body may still be arriving.
    async fn post(&self, body: &Body) -> Result<Response, TransportError>;
}

/// The head of an answer, and its body as it arrives.
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The media type, lower case; empty if it was not given.
    pub content_type: String,
    /// How long the other side asks us to wait.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
}

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TransportError {
    /// Nobody there, or the connection broke.
    #[error("{0}")]
    Network(String),
    /// The address cannot be used at all.
    #[error("{0}")]
    Address(String),
    /// A script was asked for more turns than it has.
    #[error("the script has {} and the agent asked for another one", plural(*.0, "turn"))]
    ScriptEnded(usize),
}

/// The real thing.
pub struct HttpTransport {
    client: Client,
    url: Url,
    authorization: Option<HeaderValue>,
}

impl HttpTransport {
    /// How long connecting may take.
    const CONNECT: Duration = Duration::from_secs(10);

    /// A transport for the endpoint `base_url` (for example `https://openrouter.ai/api/v1`), with a key if it needs one.
    pub fn new(base_url: &str, key: Option<&SecretString>) -> Result<Self, TransportError> {
        // An address with an @ may hold a password and is not repeated.
        let shown = if base_url.contains('@') { String::new() } else { format!(" \"{base_url}\"") };
        let unusable = |why: String| TransportError::Address(format!("cannot use the model's address{shown}: {why}"));
        let url = Url::parse(&format!("{}/chat/completions", base_url.trim_end_matches('/')))
            .map_err(|error| unusable(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(unusable("it contains a user name or password; use model.api_key".into()));
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unusable("it must begin with http:// or https://".into()));
        }
        let authorization = key
            .map(|key| HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())))
            .transpose()
            .map_err(|_| unusable("the API key contains characters that no header can carry".into()))?
            .map(|mut value| {
                value.set_sensitive(true);
                value
            });
        Ok(Self { client: client(&url)?, url, authorization })
    }
}

/// Whether `base_url` leads to `host` and to nobody else, over an encrypted connection: the condition for sending a key
/// that belongs to that host.
pub fn leads_to(base_url: &str, host: &str) -> bool {
    let Ok(url) = Url::parse(base_url) else { return false };
    url.scheme() == "https" && url.host_str() == Some(host) && url.port().is_none() && url.username().is_empty()
}

/// A client for one endpoint. Redirects are refused: a key must not travel to an address that nobody configured.
pub(crate) fn client(url: &Url) -> Result<Client, TransportError> {
    // reqwest takes its cryptography from the process; installing the same one twice changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("hermes/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(HttpTransport::CONNECT)
        .redirect(redirect::Policy::none());
    if is_loopback(url) {
        // A proxy for the world outside cannot reach a server on this machine.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| TransportError::Address(cause(&error)))
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

#[async_trait]
impl Transport for HttpTransport {
    fn place(&self) -> String {
        self.url.as_str().trim_end_matches("/chat/completions").to_owned()
    }

    async fn post(&self, body: &Body) -> Result<Response, TransportError> {
        let mut request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let response = request.body(body.text.clone()).send().await.map_err(|error| network(&error))?;
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        Ok(Response {
            status: response.status().as_u16(),
            content_type: header(CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase(),
            retry_after: header(RETRY_AFTER).and_then(seconds),
            body: response.bytes_stream().map(|piece| piece.map_err(|error| network(&error))).boxed(),
        })
    }
}

/// `Retry-After` as a number of seconds; its other form, a date, is not used by model providers (RFC 9110 §10.2.3).
fn seconds(value: &str) -> Option<Duration> {
    let seconds: f64 = value.trim().parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)?;
    // More seconds than a duration can hold are simply too many.
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

fn network(error: &reqwest::Error) -> TransportError {
    TransportError::Network(cause(error))
}

/// The innermost cause, which is the one that says what happened.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let text = cause.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpTransport({})", self.place())
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({}, {})", self.status, self.content_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_to_its_host_and_to_no_address_that_merely_looks_like_it() {
        let host = "api.openai.com";
        for good in ["https://api.openai.com/v1", "https://API.OpenAI.com", "https://api.openai.com:443/v1"] {
            assert!(leads_to(good, host), "{good}");
        }
        for bad in [
            "http://api.openai.com/v1",
            "https://api.openai.com:x@127.0.0.1/v1",
            "https://api.openai.com@evil.example/v1",
            "https://api.openai.com.evil.example/v1",
            "https://evil.example/api.openai.com",
            "https://api.openai.com:8443/v1",
            "api.openai.com",
        ] {
            assert!(!leads_to(bad, host), "{bad}");
        }
    }
}
