//! The adapter for the `OpenAI` Chat Completions API and everything that speaks it (`OpenAI` API reference, *chat*).
//!
//! Three parts: [`transport`] gets bytes, [`wire`] writes requests, `reply` reads answers. This file owns what lies
//! between them: which failures are worth another attempt, and how long to wait for it.
//!
//! A reply is whole or it is an error. A stream that breaks off is asked for again, and what it showed is withdrawn.

mod reply;
pub mod transport;
pub mod wire;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use hermes_core::{CancellationToken, Model, ModelDelta, ModelError, ModelErrorKind, ModelReply, ModelRequest};

use self::reply::{Assembler, BadReply};
pub use self::transport::{HttpTransport, Response, Transport, TransportError};
pub use self::wire::Body;

/// The most that is read of an error's body.
const LONGEST_ERROR_BODY: usize = 64 * 1024;

/// A model behind a Chat Completions endpoint.
pub struct ChatCompletions {
    transport: Box<dyn Transport>,
    model: String,
    retry: Retry,
    stream: bool,
    max_tokens: Option<u64>,
    idle_limit: Duration,
}

/// How often and how patiently a failed request is repeated (spec agent §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all, at least one.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with each one, up to a minute.
    pub base: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, base: Duration::from_secs(2) }
    }
}

impl Retry {
    const LONGEST: Duration = Duration::from_secs(60);
    /// A provider may ask for more patience than we have by ourselves, but not for ever.
    const LONGEST_ASKED_FOR: Duration = Duration::from_secs(600);

    /// The wait before attempt number `next` (2, 3, …), with up to half of it added so that many clients spread out.
    fn delay(self, next: u32, asked_for: Option<Duration>) -> Duration {
        if let Some(asked_for) = asked_for {
            return asked_for.min(Self::LONGEST_ASKED_FOR);
        }
        let doubled = self.base.saturating_mul(1 << (next.saturating_sub(2)).min(16)).min(Self::LONGEST);
        doubled.mul_f64(1.0 + jitter() / 2.0)
    }
}

/// Something between 0 and 1.
fn jitter() -> f64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    let random = RandomState::new().build_hasher().finish();
    f64::from((random % 1000) as u32) / 1000.0
}

/// Why one attempt failed.
struct Failure {
    kind: ModelErrorKind,
    message: String,
    again: bool,
    asked_for: Option<Duration>,
}

impl ChatCompletions {
    /// The longest silence inside a stream (spec agent §5.2).
    const IDLE_LIMIT: Duration = Duration::from_secs(180);

    /// The model called `model`, reached through `transport`.
    pub fn new(transport: impl Transport + 'static, model: impl Into<String>) -> Self {
        Self {
            transport: Box::new(transport),
            model: model.into(),
            retry: Retry::default(),
            stream: true,
            max_tokens: None,
            idle_limit: Self::IDLE_LIMIT,
        }
    }

    /// Sets how failures are repeated.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Asks for the whole answer at once (`false`) or piece by piece (`true`, the default).
    #[must_use]
    pub fn with_stream(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    /// Limits what the model may write in one turn.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: Option<u64>) -> Self {
        self.max_tokens = max_tokens;
        self
    }

    async fn attempt(
        &self,
        body: &Body,
        messages: usize,
        deltas: &mut (dyn FnMut(ModelDelta) + Send),
    ) -> Result<ModelReply, Failure> {
        let response = self.within_patience(self.transport.post(body)).await?.map_err(|error| self.lost(&error))?;
        if !(200..300).contains(&response.status) {
            return Err(self.refused(response).await);
        }
        if response.content_type.starts_with("text/html") {
            return Err(Failure {
                kind: ModelErrorKind::Garbled,
                message: format!("{} answered with a web page, not as a model; check model.base_url", self.place()),
                again: false,
                asked_for: None,
            });
        }
        let mut assembler = Assembler::new(messages);
        if response.content_type.starts_with("application/json") {
            let bytes = self.whole(response).await?;
            return assembler.whole(&bytes, deltas).map_err(|bad| self.bad(bad));
        }
        let mut events = eventsource_stream::EventStream::new(response.body);
        while let Some(event) = self.within_patience(events.next()).await? {
            let event = event.map_err(|error| self.broke_off(&error.to_string()))?;
            if assembler.event(&event.data, deltas).map_err(|bad| self.bad(bad))? {
                break;
            }
            // A stream that is always ready would keep everybody else waiting, also whoever wants to stop it.
            tokio::task::yield_now().await;
        }
        assembler.finish(deltas).map_err(|bad| self.bad(bad))
    }

    async fn within_patience<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::time::timeout(self.idle_limit, work).await.map_err(|_| Failure {
            kind: ModelErrorKind::Unreachable,
            message: format!("{} has been silent for {} s", self.place(), self.idle_limit.as_secs()),
            again: true,
            asked_for: None,
        })
    }

    async fn whole(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.within_patience(response.body.next()).await? {
            bytes.extend_from_slice(&piece.map_err(|error| self.broke_off(&error.to_string()))?);
            if bytes.len() > reply::MOST_BYTES {
                return Err(self.bad(reply::too_much()));
            }
        }
        Ok(bytes)
    }

    async fn refused(&self, mut response: Response) -> Failure {
        let mut bytes = Vec::new();
        while let Ok(Some(Ok(piece))) = self.within_patience(response.body.next()).await {
            bytes.extend_from_slice(&piece);
            if bytes.len() > LONGEST_ERROR_BODY {
                break;
            }
        }
        let said = reply::error_text(&bytes).map(|text| format!(": {text}")).unwrap_or_default();
        let status = response.status;
        let (kind, again, hint) = match status {
            401 | 403 => (ModelErrorKind::Credentials, false, "; check the API key"),
            404 => (ModelErrorKind::NotFound, false, "; check model.default and model.base_url"),
            408 | 409 | 425 | 429 | 500.. => (ModelErrorKind::Busy, true, ""),
            300..=399 => (ModelErrorKind::NotFound, false, "; the address has moved, check model.base_url"),
            _ => (ModelErrorKind::Rejected, false, ""),
        };
        let message = format!("{} answered {status}{said}{hint}", self.place());
        Failure { kind, message, again, asked_for: response.retry_after }
    }

    fn lost(&self, error: &TransportError) -> Failure {
        let (kind, again) = match error {
            TransportError::Network(_) => (ModelErrorKind::Unreachable, true),
            TransportError::Address(_) => (ModelErrorKind::NotFound, false),
            TransportError::ScriptEnded(_) => (ModelErrorKind::ScriptEnded, false),
        };
        Failure { kind, message: format!("{}: {error}", self.place()), again, asked_for: None }
    }

    fn broke_off(&self, why: &str) -> Failure {
        Failure {
            kind: ModelErrorKind::Garbled,
            message: format!("the answer of {} broke off: {why}", self.place()),
            again: true,
            asked_for: None,
        }
    }

    fn bad(&self, bad: BadReply) -> Failure {
        match bad {
            BadReply::BrokeOff => self.broke_off("the connection was closed in the middle of it"),
            BadReply::Garbled(what) => Failure {
                kind: ModelErrorKind::Garbled,
                message: format!("{} sent something that is no Chat Completions answer: {what}", self.place()),
                again: true,
                asked_for: None,
            },
            BadReply::Error(what) => Failure {
                kind: ModelErrorKind::Busy,
                message: format!("{} reported an error in the middle of its answer: {what}", self.place()),
                again: true,
                asked_for: None,
            },
        }
    }

    fn place(&self) -> String {
        format!("{} at {}", self.model, self.transport.place())
    }
}

#[async_trait]
impl Model for ChatCompletions {
    fn name(&self) -> &str {
        &self.model
    }

    async fn respond(
        &self,
        request: ModelRequest<'_>,
        deltas: &mut (dyn FnMut(ModelDelta) + Send),
        cancel: &CancellationToken,
    ) -> Result<ModelReply, ModelError> {
        let body = wire::request(&self.model, &request, self.stream, self.max_tokens);
        let cancelled = || ModelError { kind: ModelErrorKind::Cancelled, message: "stopped by the user".into() };
        let of = self.retry.attempts.max(1);
        let mut attempt = 1;
        loop {
            let failure = tokio::select! {
                result = self.attempt(&body, request.messages.len(), deltas) => match result {
                    Ok(reply) => return Ok(reply),
                    Err(failure) => failure,
                },
                () = cancel.cancelled() => return Err(cancelled()),
            };
            if !failure.again || attempt == of {
                let tries = if attempt > 1 { format!(" ({attempt} attempts)") } else { String::new() };
                return Err(ModelError { kind: failure.kind, message: failure.message + &tries });
            }
            attempt += 1;
            let delay = self.retry.delay(attempt, failure.asked_for);
            deltas(ModelDelta::Restart { reason: failure.message, delay, attempt, of });
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = cancel.cancelled() => return Err(cancelled()),
            }
        }
    }
}

impl fmt::Debug for ChatCompletions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChatCompletions({})", self.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_a_provider_may_ask_for_more() {
        let retry = Retry::default();
        let between = |next, low: u64, high: u64| {
            let delay = retry.delay(next, None);
            assert!((Duration::from_secs(low)..=Duration::from_secs(high)).contains(&delay), "{next}: {delay:?}");
        };
        between(2, 2, 3);
        between(3, 4, 6);
        between(9, 60, 90);
        assert_eq!(retry.delay(2, Some(Duration::from_secs(17))), Duration::from_secs(17));
        assert_eq!(retry.delay(2, Some(Duration::from_secs(90_000))), Duration::from_secs(600));
    }
}
