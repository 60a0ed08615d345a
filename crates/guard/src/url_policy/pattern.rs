//! Hosts as people write them in a configuration: `localhost:3000`, `*.example.org`, `[::1]:8080`.

use url::Host;

/// One host, or all below it, on one port or on all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostPattern {
    host: Host<String>,
    only_below: bool,
    port: Option<u16>,
}

impl HostPattern {
    /// Reads `[*.]host[:port]`; a scheme before it and a path behind it are ignored. `Err` says what is wrong.
    pub(super) fn parse(written: &str) -> Result<Self, String> {
        let text = written.split_once("://").map_or(written, |(_, rest)| rest);
        let text = text.split(['/', '?']).next().unwrap_or_default();
        let (only_below, text) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        let (host, port) = split_port(text)?;
        let host = host.strip_suffix('.').unwrap_or(&host);
        if host.is_empty() {
            return Err("it names no host".into());
        }
        if host.contains('*') {
            return Err("`*` may only stand at the beginning, as in `*.example.org`".into());
        }
        let host = Host::parse(host).map_err(|error| format!("it is no host name: {error}"))?;
        if only_below && !matches!(host, Host::Domain(_)) {
            return Err("there are no names below an address".into());
        }
        Ok(Self { host, only_below, port })
    }

    /// Without `www.`, as block rules are read: who blocks `www.example.org` means the site.
    pub(super) fn without_www(mut self) -> Self {
        if let Host::Domain(name) = &mut self.host
            && let Some(rest) = name.strip_prefix("www.")
        {
            *name = rest.to_owned();
        }
        self
    }

    /// Whether it names exactly this host (`*.x`: one below), as an allowance is read.
    pub(super) fn is(&self, host: &Host<&str>, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
            && match (&self.host, host) {
                (Host::Domain(own), Host::Domain(name)) if self.only_below => below(name, own),
                (own, host) => same(own, host),
            }
    }

    /// Whether it names this host or one above it, as a prohibition is read.
    pub(super) fn covers(&self, host: &Host<&str>, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
            && match (&self.host, host) {
                (Host::Domain(own), Host::Domain(name)) => below(name, own) || (!self.only_below && name == own),
                (own, host) => same(own, host),
            }
    }
}

/// Whether `name` is a name below `domain`; both in lower case.
pub(super) fn below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

fn same(own: &Host<String>, host: &Host<&str>) -> bool {
    match (own, host) {
        (Host::Domain(own), Host::Domain(name)) => own == name,
        (Host::Ipv4(own), Host::Ipv4(address)) => own == address,
        (Host::Ipv6(own), Host::Ipv6(address)) => own == address,
        _ => false,
    }
}

/// `host:port`, `[v6]:port`, or a host alone; an IPv6 address may stand without its brackets if no port follows.
fn split_port(text: &str) -> Result<(String, Option<u16>), String> {
    let number = |port: &str| match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => Err(format!("`{port}` is no port (1 to 65535)")),
    };
    if let Some(end) = text.starts_with('[').then(|| text.find(']')).flatten() {
        let (host, rest) = text.split_at(end + 1);
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host.to_owned(), number(port)?)),
            None if rest.is_empty() => Ok((host.to_owned(), None)),
            None => Err("after `]` only a port may follow".into()),
        };
    }
    match text.split_once(':') {
        None => Ok((text.to_owned(), None)),
        Some((_, rest)) if rest.contains(':') => Ok((format!("[{text}]"), None)),
        Some((host, port)) => Ok((host.to_owned(), number(port)?)),
    }
}
