//! The one way out of a confined network: an HTTP proxy that asks a policy about every connection.
//!
//! It runs outside, in our own process, and accepts on a listener that was made inside (see [`receive_listener`]). It
//! speaks `CONNECT` and plain HTTP with a whole address in the request line, which is what programs do with
//! `HTTP_PROXY` and `HTTPS_PROXY`; SOCKS it does not speak.
//!
//! The tricky idea: the name is resolved *here, once*, the policy sees the addresses, and the connection goes to one of
//! those it allowed. A name that leads somewhere else a moment later (DNS rebinding) therefore gains nothing. What the
//! policy cannot see is what travels in an encrypted tunnel to an allowed host.

mod request;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::CancellationToken;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use super::network::receive_listener;
use request::{HEAD_LIMIT, Request, Way};

/// How long a client may take to send the head of its request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long resolving, and connecting to one address, may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long a client that was refused may go on sending.
const LINGER: Duration = Duration::from_secs(1);
/// Connections at one time; more of them wait to be accepted.
const CONNECTIONS: usize = 128;

/// Decides where a confined command may connect.
#[async_trait]
pub trait ConnectPolicy: Send + Sync {
    /// The addresses of `addresses` that may be connected to, or why none may, in words for the model.
    ///
    /// `host` is as the program named it, in small letters without a final point; it may be an address itself.
    /// `addresses` is what the name leads to now, never empty.
    async fn may_connect(&self, host: &str, port: u16, addresses: &[SocketAddr]) -> Result<Vec<SocketAddr>, String>;

    /// Is told of each connection that was refused, so that the command's result can say so.
    fn refused(&self, host: &str, port: u16, reason: &str);
}

/// Serves the listener until `cancel`; then all connections end.
///
/// A refused connection is answered with status 403 and one line that names host and reason. Fails only if the listener
/// cannot be used.
pub async fn serve(
    listener: std::net::TcpListener,
    policy: Arc<dyn ConnectPolicy>,
    cancel: CancellationToken,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let place = tokio::select! {
            place = Arc::clone(&free).acquire_owned() => place.map_err(io::Error::other)?,
            () = cancel.cancelled() => return Ok(()),
        };
        let client = tokio::select! {
            accepted = listener.accept() => accepted,
            () = cancel.cancelled() => return Ok(()),
        };
        // Finished tasks are taken away, or the set would grow for ever.
        while connections.try_join_next().is_some() {}
        match client {
            Ok((client, _)) => {
                let policy = Arc::clone(&policy);
                connections.spawn(async move {
                    // A client that went away in the middle is its own affair.
                    let _ = converse(client, policy.as_ref()).await;
                    drop(place);
                });
            }
            // Out of descriptors, or the client has gone already: neither ends the proxy, and the first passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// An answer of ours instead of a connection.
#[derive(Debug)]
struct Answer {
    status: &'static str,
    line: String,
}

async fn converse(mut client: TcpStream, policy: &dyn ConnectPolicy) -> io::Result<()> {
    let connected = match timeout(HEAD_TIME, read_request(&mut client)).await {
        Ok(request) => match request? {
            Ok(request) => connect(&request, policy).await.map(|server| (request, server)),
            Err(answer) => Err(answer),
        },
        Err(_) => Err(Answer { status: "408 Request Timeout", line: "no whole request came in time".into() }),
    };
    match connected {
        Ok((request, server)) => relay(client, server, request).await,
        Err(Answer { status, line }) => {
            let body = format!("hermes sandbox: {line}\n");
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}");
            client.write_all(format!("{head}\r\nConnection: close\r\n\r\n{body}").as_bytes()).await?;
            client.shutdown().await?;
            // Closing while the client still sends would reset the connection, and the answer might be lost with it.
            let _ = timeout(LINGER, copy(&mut client, &mut tokio::io::sink())).await;
            Ok(())
        }
    }
}

async fn read_request(client: &mut TcpStream) -> io::Result<Result<Request, Answer>> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        // Only what is new can complete the end of the head, together with three bytes before it.
        let seen = bytes.len().saturating_sub(3);
        if client.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = bytes[seen..].windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(seen + end + 4);
            let bad = |line| Answer { status: "400 Bad Request", line };
            return Ok(Request::parse(&bytes, rest).map_err(bad));
        }
        if bytes.len() > HEAD_LIMIT {
            let line = format!("the head of the request is longer than {HEAD_LIMIT} bytes");
            return Ok(Err(Answer { status: "431 Request Header Fields Too Large", line }));
        }
    }
}

/// Resolves, asks, and connects to one address that was allowed.
async fn connect(request: &Request, policy: &dyn ConnectPolicy) -> Result<TcpStream, Answer> {
    let (host, port) = (request.host.as_str(), request.port);
    let unreachable = |why: &dyn std::fmt::Display| Answer {
        status: "502 Bad Gateway",
        line: format!("cannot reach {host}:{port}: {why}"),
    };
    let addresses = resolve(host, port).await.map_err(|error| unreachable(&error))?;
    let refuse = |reason: String| {
        policy.refused(host, port, &reason);
        Answer { status: "403 Forbidden", line: format!("refused a connection to {host}:{port}: {reason}") }
    };
    let allowed = policy.may_connect(host, port, &addresses).await.map_err(refuse)?;
    let mut last = None;
    // An address that the name does not lead to is not the policy's to give.
    for address in allowed.iter().filter(|address| addresses.contains(address)) {
        match timeout(CONNECT_TIME, TcpStream::connect(address)).await {
            Ok(Ok(server)) => return Ok(server),
            Ok(Err(error)) => last = Some(error),
            Err(late) => last = Some(late.into()),
        }
    }
    Err(match last {
        Some(error) => unreachable(&error),
        None => refuse("no address of this host is allowed".into()),
    })
}

async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let addresses: Vec<SocketAddr> = timeout(CONNECT_TIME, lookup_host((host, port))).await??.collect();
    if addresses.is_empty() {
        Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"))
    } else {
        Ok(addresses)
    }
}

async fn relay(mut client: TcpStream, mut server: TcpStream, request: Request) -> io::Result<()> {
    match request.way {
        Way::Tunnel => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            server.write_all(&request.rest).await?;
            // Passes on the end of one direction while the other goes on.
            copy_bidirectional(&mut client, &mut server).await.map(drop)
        }
        Way::Forward { head } => {
            server.write_all(head.as_bytes()).await?;
            server.write_all(&request.rest).await?;
            let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.split(), server.split());
            let upload = async {
                let _ = copy(&mut from_client, &mut to_server).await;
                let _ = to_server.shutdown().await;
                std::future::pending::<()>().await;
            };
            // The request says that the connection ends with the answer, so the answer's end is ours too.
            tokio::select! {
                copied = copy(&mut from_server, &mut to_client) => copied.map(drop)?,
                () = upload => {}
            }
            to_client.shutdown().await
        }
    }
}
