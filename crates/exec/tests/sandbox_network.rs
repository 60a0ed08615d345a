//! The sandbox against real sockets: what a command can reach, and the proxy as the only way out.
#![allow(clippy::unwrap_used)]

mod confined;

use std::ffi::CString;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use confined::{Ended, Place, collect, own_namespaces, places, unique_sleep};
use hermes_core::{CancellationToken, FinishedHow};
use hermes_exec::sandbox::proxy::{ConnectPolicy, receive_listener, serve};
use hermes_exec::sandbox::{Mechanism, Network, refusal};

/// Connects to a UNIX socket; an abstract one has `@` for its first byte.
const PERL: &str = r#"perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 1; $ARGV[0] =~ s/^@/\0/;
                      connect(S, pack_sockaddr_un($ARGV[0])) or exit 1; print "REACHED $ARGV[0]\n"' "#;

/// Sockets of a program on this machine.
struct Sockets {
    tcp: TcpListener,
    udp: UdpSocket,
    /// Only held, so that they can be reached.
    _unix: Vec<UnixListener>,
    script: String,
}

impl Sockets {
    fn of(place: &Place) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let name = unique_sleep();
        let paths = ["outside/socket", "work/socket"].map(|path| place.path(path));
        let mut unix: Vec<UnixListener> = paths.iter().map(|path| UnixListener::bind(path).unwrap()).collect();
        for path in &paths {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        }
        unix.push(UnixListener::bind_addr(&UnixAddress::from_abstract_name(&name).unwrap()).unwrap());
        let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        let script = format!(
            "(: <>/dev/tcp/127.0.0.1/{tcp_port}) && echo REACHED tcp\necho x >/dev/udp/127.0.0.1/{udp_port}\n\
             {PERL} {}; {PERL} {}; {PERL} @{name}; echo end",
            paths[0].display(),
            paths[1].display(),
        );
        Self { tcp, udp, _unix: unix, script }
    }

    fn was_reached(&self) -> bool {
        self.tcp.set_nonblocking(true).unwrap();
        self.udp.recv(&mut [0; 8]).is_ok() || self.tcp.accept().is_ok()
    }
}

#[test]
fn without_a_network_no_socket_of_the_machine_is_reached() {
    for place in places() {
        for confinement in [place.confinement(), place.strict()] {
            let sockets = Sockets::of(&place);
            let got = place.run_in(&confinement, &sockets.script);
            assert!(!got.output.contains("REACHED") && got.output.ends_with("end\n"), "{}: {got:?}", place.name());
            assert!(!sockets.was_reached(), "{}", place.name());
            let _ =
                (std::fs::remove_file(place.path("work/socket")), std::fs::remove_file(place.path("outside/socket")));
        }
    }
}

#[test]
fn with_an_open_network_the_machine_is_reached_but_not_its_abstract_sockets() {
    for place in places() {
        let mut confinement = place.confinement();
        confinement.network = Network::Open;
        let sockets = Sockets::of(&place);
        let got = place.run_in(&confinement, &sockets.script);
        assert!(got.output.contains("REACHED tcp") && sockets.was_reached(), "{}: {got:?}", place.name());
        // bwrap shares them with the network.
        if place.mechanism != Mechanism::Bubblewrap {
            assert!(!got.output.contains("REACHED \0"), "{}: {got:?}", place.name());
        }
    }
}

#[test]
fn sockets_below_run_are_out_of_reach_also_with_an_open_network() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let path = std::path::Path::new("/run").join(unique_sleep());
    let _listener = UnixListener::bind(&path).unwrap();
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Landlock) {
        let mut confinement = place.confinement();
        confinement.network = Network::Open;
        let got = place.run_in(&confinement, &format!("{PERL} {}", path.display()));
        assert_eq!(got.output, "", "{}", place.name());
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_server_of_its_own_works_inside() {
    for place in own_namespaces() {
        let answer = place.inside(&place.confinement(), || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            TcpStream::connect(listener.local_addr().unwrap()).unwrap().write_all(b"hello").unwrap();
            let mut text = String::new();
            listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(answer, "hello", "{}", place.name());
    }
}

/// Allows connections to hosts whose name is in `hosts`; sees and remembers everything.
#[derive(Default)]
struct Rules {
    hosts: Vec<&'static str>,
    /// Given instead of what the name leads to.
    instead: Option<SocketAddr>,
    asked: Mutex<Vec<(String, u16, Vec<SocketAddr>)>>,
    refused: Mutex<Vec<String>>,
}

#[async_trait]
impl ConnectPolicy for Rules {
    async fn may_connect(&self, host: &str, port: u16, addresses: &[SocketAddr]) -> Result<Vec<SocketAddr>, String> {
        self.asked.lock().unwrap().push((host.into(), port, addresses.to_vec()));
        if self.hosts.contains(&host) {
            Ok(self.instead.map_or_else(|| addresses.to_vec(), |address| vec![address]))
        } else {
            Err("it is not in the list".into())
        }
    }

    fn refused(&self, host: &str, port: u16, reason: &str) {
        self.refused.lock().unwrap().push(format!("{host}:{port} {reason}"));
    }
}

/// An HTTP server that answers each request with its first line and its host; gives its port.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head);
            let host = head.lines().find(|line| line.starts_with("Host:")).unwrap_or("no host");
            let body = format!("{} {host}\n", head.lines().next().unwrap_or("nothing"));
            let length = body.len();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        }
    });
    port
}

/// The proxy on a thread of its own.
struct Serving {
    cancel: CancellationToken,
    thread: JoinHandle<std::io::Result<()>>,
}

impl Serving {
    fn start(
        rules: Arc<dyn ConnectPolicy>,
        listener: impl FnOnce() -> std::io::Result<TcpListener> + Send + 'static,
    ) -> Self {
        let cancel = CancellationToken::new();
        let until = cancel.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async { serve(listener()?, rules, until).await })
        });
        Self { cancel, thread }
    }

    fn stop(self) {
        self.cancel.cancel();
        self.thread.join().unwrap().unwrap();
    }
}

/// Runs a script with the proxy as its only way out.
#[expect(unsafe_code, reason = "confining happens between fork and exec")]
fn proxied(place: &Place, rules: &Arc<Rules>, script: &str) -> Ended {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let rules: Arc<dyn ConnectPolicy> = Arc::<Rules>::clone(rules);
    let serving = Serving::start(rules, move || receive_listener(ours.as_fd()));
    let mut confinement = place.confinement();
    confinement.network = Network::Proxied;
    let mut command = place.plain("bash".as_ref());
    let arguments = ["bash", "-c", script].map(|text| CString::new(text).unwrap());
    // SAFETY: the child has one thread, and the C library lets it allocate.
    unsafe {
        command.pre_exec(move || {
            let entered = confinement.enter(Some(theirs.as_fd()))?;
            let path = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
            let variables = entered
                .variables
                .into_iter()
                .chain([path])
                .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).unwrap());
            Err(nix::unistd::execve(c"/bin/bash", &arguments, &variables.collect::<Vec<_>>()).unwrap_err().into())
        });
    }
    let ended = collect(&mut command);
    serving.stop();
    ended
}

#[test]
fn an_allowed_host_is_reached_through_the_proxy_plain_and_as_a_tunnel() {
    for place in own_namespaces() {
        let port = server();
        let rules = Arc::new(Rules { hosts: vec!["localhost"], ..Rules::default() });
        let script = format!(
            "curl -sS --noproxy '' http://localhost:{port}/a; curl -sS --noproxy '' -p http://localhost:{port}/b; \
             curl -sS --noproxy '' -d body http://LOCALHOST.:{port}/c; echo $https_proxy $HTTP_PROXY $NO_PROXY"
        );
        let got = proxied(&place, &rules, &script);
        let lines: Vec<&str> = got.output.lines().collect();
        let expected = [
            format!("GET /a HTTP/1.1 Host: localhost:{port}"),
            format!("GET /b HTTP/1.1 Host: localhost:{port}"),
            format!("POST /c HTTP/1.1 Host: LOCALHOST.:{port}"),
        ];
        assert_eq!(lines[..3], expected, "{}: {got:?}", place.name());
        assert!(lines[3].matches("http://127.0.0.1:").count() == 2 && lines[3].ends_with("::1"), "{got:?}");
        let asked = rules.asked.lock().unwrap();
        assert_eq!(asked.len(), 3);
        let loopback = |(host, to, addresses): &(String, u16, Vec<SocketAddr>)| {
            host == "localhost" && *to == port && addresses.iter().all(|address| address.ip().is_loopback())
        };
        assert!(asked.iter().all(loopback), "{asked:?}");
    }
}

#[test]
fn a_refused_host_is_answered_with_403_and_recognised_in_the_result() {
    for place in own_namespaces() {
        let port = server();
        let rules = Arc::new(Rules::default());
        let plain = format!("curl -sS --noproxy '' -w '%{{http_code}}\\n' http://127.0.0.2:{port}/; exit 22");
        let got = proxied(&place, &rules, &plain);
        let line = format!("hermes sandbox: refused a connection to 127.0.0.2:{port}: it is not in the list\n403\n");
        assert_eq!(got.output, line, "{}", place.name());
        let mut confinement = place.confinement();
        confinement.network = Network::Proxied;
        let find = |output: &str| refusal::find(&confinement, "curl", "/".as_ref(), FinishedHow::Exited(22), output);
        let found = find(&got.output).unwrap().to_string();
        assert_eq!(found, format!("The sandbox refused a connection to 127.0.0.2:{port}: it is not in the list."));

        let tunnel = proxied(&place, &rules, "curl -sS https://127.0.0.2/");
        assert_eq!(tunnel.code(), Some(56), "{tunnel:?}");
        assert!(matches!(find(&tunnel.output), Some(refusal::Refusal::Proxy(_))), "{tunnel:?}");
        let expected =
            [format!("127.0.0.2:{port} it is not in the list"), "127.0.0.2:443 it is not in the list".into()];
        assert_eq!(*rules.refused.lock().unwrap(), expected);
    }
}

#[test]
fn nothing_gets_out_beside_the_proxy() {
    for place in own_namespaces() {
        let sockets = Sockets::of(&place);
        let rules = Arc::new(Rules { hosts: vec!["localhost"], ..Rules::default() });
        let got = proxied(&place, &rules, &format!("{}; curl -sS --noproxy '*' http://192.0.2.1/", sockets.script));
        assert!(!got.output.contains("REACHED") && !sockets.was_reached(), "{}: {got:?}", place.name());
        assert!(got.output.contains("end\n") && got.code() == Some(7), "{got:?}");
        assert!(rules.asked.lock().unwrap().is_empty());
    }
}

#[test]
fn an_address_that_the_name_does_not_lead_to_is_not_connected_to() {
    for place in own_namespaces() {
        let port = server();
        let instead = Some(SocketAddr::from(([127, 0, 0, 1], port)));
        let rules = Arc::new(Rules { hosts: vec!["127.0.0.3"], instead, ..Rules::default() });
        let got = proxied(&place, &rules, &format!("curl -sS --noproxy '' http://127.0.0.3:{port}/"));
        assert!(got.output.contains("no address of this host is allowed"), "{got:?}");
    }
}

#[test]
fn other_mechanisms_refuse_to_promise_a_proxy() {
    for place in places().into_iter().filter(|place| place.mechanism != Mechanism::Namespaces) {
        let mut confinement = place.confinement();
        confinement.network = Network::Proxied;
        let error = place.inside(&confinement, String::new);
        assert!(error.starts_with("sandbox: cannot let only the proxy through"), "{error}");
    }
}

/// The proxy alone, on a listener of this test.
struct Alone {
    address: SocketAddr,
    serving: Serving,
}

impl Alone {
    fn start(rules: Rules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        Self { address, serving: Serving::start(Arc::new(rules), || Ok(listener)) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// The first line of the answer to `request`.
    fn status(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // A connection that is reset after the answer is fine: more was sent than was read.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    }
}

#[test]
fn broken_requests_get_an_answer_that_says_so() {
    let alone = Alone::start(Rules { hosts: vec!["127.0.0.1"], ..Rules::default() });
    assert_eq!(alone.status(b"GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    assert_eq!(alone.status(b"\x05\x01\x00\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    let long = format!("GET http://127.0.0.1/ HTTP/1.1\r\nA: {}\r\n", "x".repeat(40_000));
    assert_eq!(alone.status(long.as_bytes()), "HTTP/1.1 431 Request Header Fields Too Large");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert_eq!(
        alone.status(format!("CONNECT 127.0.0.1:{closed} HTTP/1.1\r\n\r\n").as_bytes()),
        "HTTP/1.1 502 Bad Gateway"
    );
    alone.serving.stop();
}

#[test]
fn the_end_of_one_direction_leaves_the_other_open() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        write!(stream, "got {all}").unwrap();
    });
    let alone = Alone::start(Rules { hosts: vec!["127.0.0.1"], ..Rules::default() });
    let mut stream = alone.connect();
    // What follows the head at once belongs to the tunnel.
    write!(stream, "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nearly ").unwrap();
    stream.write_all(b"late").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\ngot early late");
    server.join().unwrap();
    alone.serving.stop();
}

#[test]
fn cancelling_ends_open_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let alone = Alone::start(Rules { hosts: vec!["127.0.0.1"], ..Rules::default() });
    let mut stream = alone.connect();
    write!(stream, "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n").unwrap();
    let mut head = [0; 39];
    stream.read_exact(&mut head).unwrap();
    let _server = listener.accept().unwrap();
    alone.serving.stop();
    assert!(stream.read(&mut head).is_ok_and(|read| read == 0));
}
