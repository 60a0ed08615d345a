//! Reading the head of a request to a proxy (RFC 9112 §3.2).

/// How long a head may be.
pub(super) const HEAD_LIMIT: usize = 32 * 1024;

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// In small letters, without a final point, an IPv6 address without brackets.
    pub host: String,
    pub port: u16,
    pub way: Way,
    /// What came after the head already.
    pub rest: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// `CONNECT`: bytes go through untouched.
    Tunnel,
    /// Plain HTTP: the server gets this head, then the rest.
    Forward { head: String },
}

impl Request {
    /// Reads a head, which ends with an empty line. Errors say what is wrong with it.
    pub(super) fn parse(head: &[u8], rest: Vec<u8>) -> Result<Self, String> {
        let head = std::str::from_utf8(head).map_err(|_| "the head of the request is not UTF-8")?;
        // A line break that only some readers see as one would smuggle in a header, or a whole request.
        if let Some(line) = head.split("\r\n").find(|line| line.contains(|c: char| c.is_control() && c != '\t')) {
            return Err(format!("`{}` has a control character in it", line.escape_debug()));
        }
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let words: Vec<&str> = first.split(' ').collect();
        let [method, target, version @ ("HTTP/1.1" | "HTTP/1.0")] = words[..] else {
            return Err("the request line is not `METHOD TARGET HTTP/1.1`".into());
        };
        if method == "CONNECT" {
            let (host, port) = split(target, None)?;
            return Ok(Self { host, port, way: Way::Tunnel, rest });
        }
        let Some(address) = strip_prefix_ignoring_case(target, "http://") else {
            return Err("this is a proxy: the target must begin with http:// or the method be CONNECT".into());
        };
        let end = address.find(['/', '?', '#']).unwrap_or(address.len());
        let (authority, path) = address.split_at(end);
        let (host, port) = split(authority, Some(80))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        // The policy was asked about the target's host, so the server must not be told another one (§3.2.2).
        let mut forward = format!("{method} {slash}{path} {version}\r\nHost: {authority}\r\nConnection: close\r\n");
        for line in lines.filter(|line| !line.is_empty()) {
            let name = line.split(':').next().unwrap_or_default();
            if name.is_empty() || name.contains([' ', '\t']) {
                return Err(format!("`{}` is not a header", line.escape_debug()));
            }
            if !is_for_the_proxy(name) {
                forward.push_str(line);
                forward.push_str("\r\n");
            }
        }
        forward.push_str("\r\n");
        Ok(Self { host, port, way: Way::Forward { head: forward }, rest })
    }
}

/// Headers that end here: they are about this connection, or written anew.
fn is_for_the_proxy(name: &str) -> bool {
    ["host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "upgrade"]
        .iter()
        .any(|ours| name.eq_ignore_ascii_case(ours))
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Host and port of `host:port`, where the host may be an IPv6 address in brackets.
fn split(authority: &str, usual: Option<u16>) -> Result<(String, u16), String> {
    let wrong = || format!("`{}` is not HOST:PORT", authority.escape_debug());
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(wrong());
            }
            (host, port)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => number.parse().ok(),
        None if port.is_empty() => usual,
        _ => None,
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    // What no name has could mean one thing to the policy and another to the resolver.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    match port {
        Some(port) if port != 0 && !host.is_empty() && host.bytes().all(is_plain) => Ok((host, port)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Result<Request, String> {
        Request::parse(head.as_bytes(), Vec::new())
    }

    #[test]
    fn a_tunnel_names_host_and_port() {
        let wanted =
            [("Example.ORG.:443", "example.org", 443), ("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:8443", "::1", 8443)];
        for (target, host, port) in wanted {
            let request = parse(&format!("CONNECT {target} HTTP/1.1\r\nHost: other\r\n\r\n")).unwrap();
            assert_eq!((request.host.as_str(), request.port, request.way), (host, port, Way::Tunnel));
        }
    }

    #[test]
    fn a_plain_request_is_written_anew_for_the_server_with_the_host_that_was_asked_about() {
        let head = "GET HTTP://Host.test:8080?q=1 HTTP/1.1\r\nhost: evil.test\r\nProxy-Connection: keep-alive\r\n\
                    Accept: */*\r\nConnection: keep-alive\r\n\r\n";
        let request = parse(head).unwrap();
        assert_eq!((request.host.as_str(), request.port), ("host.test", 8080));
        let expected = "GET /?q=1 HTTP/1.1\r\nHost: Host.test:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n";
        assert_eq!(request.way, Way::Forward { head: expected.into() });
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let wrong = [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://a.test/ HTTP/1.1\r\n\r\n",
            "GET http://user@a.test/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "CONNECT a.test HTTP/1.1\r\n\r\n",
            "CONNECT a.test:+443 HTTP/1.1\r\n\r\n",
            "CONNECT a.test:0 HTTP/1.1\r\n\r\n",
            "CONNECT a.test:99999 HTTP/1.1\r\n\r\n",
            "CONNECT [a.test]:443 HTTP/1.1\r\n\r\n",
            "CONNECT a%2etest:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.test:443  HTTP/1.1\r\n\r\n",
            "CONNECT a.test:443 HTTP/2\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\n folded\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\nHost : b.test\r\n\r\n",
            "GET http://a.test/\nHost:b.test HTTP/1.1\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\nA: b\nHost: b.test\r\n\r\n",
        ];
        for head in wrong {
            assert!(parse(head).is_err(), "{head:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_comes_is_refused_or_names_one_plain_host(
            start in "(GET http://|CONNECT |[A-Z ]{0,3}http:/)",
            target in "([a-c.]{1,3}|[:@/?#]|:80|\\[::1\\]|[é \\x00\\r\\n]){0,6}",
            headers in "((Host|host|A|é| )(:|: | :)[ab:]{0,3}(\r\n|\r\n|\n|\r|)){0,4}",
        ) {
            if let Ok(request) = parse(&format!("{start}{target} HTTP/1.1\r\n{headers}\r\n\r\n")) {
                assert!(!request.host.is_empty() && !request.host.contains([' ', '\r', '\n', '/', '@']));
                if let Way::Forward { head } = request.way {
                    let lines: Vec<&str> = head.split("\r\n").collect();
                    assert!(head.ends_with("\r\n\r\n") && !lines.iter().any(|line| line.contains(['\r', '\n'])));
                    let hosts = lines.iter().filter(|line| line.to_ascii_lowercase().starts_with("host:"));
                    assert_eq!(hosts.count(), 1);
                    assert!(!lines[..lines.len() - 2].contains(&""), "{head:?}");
                }
            }
        }
    }
}
