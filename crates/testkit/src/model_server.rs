//! A provider that says what the test wrote down: a Chat Completions server on the loopback interface.
//!
//! It speaks real HTTP because half of what goes wrong with a model goes wrong on the wire: streams that break off,
//! proxies that answer HTML, arguments that arrive in pieces. It knows nothing about Hermes and checks nothing about a
//! request; it keeps the request, and the test looks at it.
//!
//! The server always runs on a thread and runtime of its own. That makes [`ModelServer::start`] an ordinary function,
//! usable from a `#[test]` that spawns the binary as well as from a `#[tokio::test]`, and it makes dropping certain:
//! when the runtime goes, every connection goes with it, also one that hangs on purpose.

mod reply;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{PATIENCE, lock};
pub use reply::{Call, Reply};
use reply::{Ending, What};
use wire::Wire;

/// An OpenAI-compatible server on `127.0.0.1` that answers from a script. Dropping it closes every connection.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    script: Arc<Script>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// A chat completion request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    /// The body; a JSON string of the raw text where the body was no JSON.
    pub body: Value,
    /// Lower-case names; the values of a repeated header are joined with `, ` (RFC 9110 §5.3).
    pub headers: BTreeMap<String, String>,
    /// When the whole request was there.
    pub received: Instant,
}

#[derive(Debug)]
struct Script {
    progress: Mutex<Progress>,
    arrived: Condvar,
}

#[derive(Debug)]
struct Progress {
    replies: VecDeque<Reply>,
    requests: Vec<Request>,
}

impl ModelServer {
    /// Listens on a free port and answers each `POST /v1/chat/completions` with the next reply.
    ///
    /// When no reply is left it answers HTTP 500 with `the script of this server has ended`. A body that is no JSON is
    /// answered with HTTP 400 and takes no reply. `GET /v1/models` lists one model, `test-model`.
    #[track_caller]
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on the loopback interface");
        listener.set_nonblocking(true).expect("a listener that tokio can poll");
        let address = listener.local_addr().expect("the address of a bound listener");
        let progress = Mutex::new(Progress { replies: reply::number_calls(replies), requests: Vec::new() });
        let script = Arc::new(Script { progress, arrived: Condvar::new() });

        let (stop, stopped) = oneshot::channel();
        let router = router(Arc::clone(&script));
        let thread = std::thread::spawn(move || serve(listener, router, stopped));
        Self { address, script, running: Some((stop, thread)) }
    }

    /// What to configure as `base_url`, for example `http://127.0.0.1:40123/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The chat completion requests so far, in the order in which they arrived.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.script.progress).requests.clone()
    }

    /// Blocks until `count` chat completion requests have arrived, and answers all of them.
    ///
    /// For a test that has to act while a reply is under way, for example to interrupt a child process. It blocks the
    /// thread: do not call it on the runtime that drives the client. Panics after 30 s.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        let progress = lock(&self.script.progress);
        let (progress, wait) = self
            .script
            .arrived
            .wait_timeout_while(progress, PATIENCE, |progress| progress.requests.len() < count)
            .unwrap_or_else(PoisonError::into_inner);
        let arrived = progress.requests.len();
        assert!(!wait.timed_out(), "waited {PATIENCE:?} for {count} requests, {arrived} arrived");
        progress.requests.clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            // A panic of the server has already been printed and reached the test as a broken connection.
            let _ = thread.join();
        }
    }
}

/// A base URL on which nobody listens: connecting is refused at once.
///
/// The port stays bound without listening until the process ends, so that no other test can be given it meanwhile.
#[track_caller]
pub fn unused_base_url() -> String {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port on the loopback interface");
    let address = socket.local_addr().expect("the address of a bound socket");
    std::mem::forget(socket);
    format!("http://{address}/v1")
}

fn serve(listener: TcpListener, router: Router, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a tokio runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener in non-blocking mode");
        tokio::select! {
            served = axum::serve(listener, router) => served.expect("axum serves until it is stopped"),
            _ = stopped => {}
        }
    });
}

fn router(script: Arc<Script>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat_completion))
        .route("/v1/models", get(models))
        // Conversations with stored results are longer than axum's 2 MB.
        .layer(DefaultBodyLimit::disable())
        .with_state(script)
}

async fn models() -> Json<Value> {
    Json(json!({
        "object": "list",
        "data": [{ "id": wire::MODEL, "object": "model", "created": wire::CREATED, "owned_by": "hermes-testkit" }],
    }))
}

async fn chat_completion(State(script): State<Arc<Script>>, headers: HeaderMap, body: Bytes) -> Response {
    let received = Instant::now();
    let text = String::from_utf8_lossy(&body);
    let parsed: Result<Value, _> = serde_json::from_str(&text);
    let reply = match &parsed {
        Ok(_) => script.next_reply(),
        Err(error) => {
            Reply::status(400, wire::error("invalid_request_error", &format!("the body is no JSON: {error}")))
        }
    };
    let body = parsed.unwrap_or_else(|_| Value::String(text.into_owned()));
    let answer = respond(&reply, &body);
    script.record(Request { body, headers: collect(&headers), received });
    tokio::time::sleep(reply.delay).await;
    answer
}

impl Script {
    fn next_reply(&self) -> Reply {
        let next = lock(&self.progress).replies.pop_front();
        next.unwrap_or_else(|| Reply::status(500, wire::error("server_error", "the script of this server has ended")))
    }

    fn record(&self, request: Request) {
        lock(&self.progress).requests.push(request);
        self.arrived.notify_all();
    }
}

fn collect(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut collected = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        collected
            .entry(name.as_str().to_owned())
            .and_modify(|values| {
                values.push_str(", ");
                values.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    collected
}

fn respond(reply: &Reply, request: &Value) -> Response {
    let (status, wire) = match &reply.what {
        What::Turn(turn) => (200, wire::render(turn, request)),
        What::Raw { status, content_type, body } => (*status, Wire::raw(content_type, body)),
    };
    let mut response = Response::builder().status(status).header(header::CONTENT_TYPE, wire.content_type);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    response.body(body(wire, &reply.ending)).expect("the status and the headers of a reply are valid HTTP")
}

fn body(wire: Wire, ending: &Ending) -> Body {
    let sent = match ending {
        Ending::Whole => wire.parts.len(),
        Ending::CutAfter(count) => wire.before_finish.min(*count),
        Ending::Hang => 1,
    };
    let parts = stream::iter(wire.parts.into_iter().take(sent).map(Ok));
    match ending {
        Ending::Whole => Body::from_stream(parts),
        Ending::CutAfter(_) => Body::from_stream(parts.chain(stream::once(async {
            // hyper drops what it has buffered when a body fails, but flushes whenever a body makes it wait.
            tokio::task::yield_now().await;
            Err(io::Error::other("the script cuts here"))
        }))),
        Ending::Hang => Body::from_stream(parts.chain(stream::pending::<io::Result<String>>())),
    }
}
