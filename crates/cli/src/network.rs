//! Where commands in the sandbox may connect: the hosts that the user lists, as far as the URL policy lets anybody go.
//!
//! Asked at connection time, with the addresses to which the name leads at that moment; see
//! [`hermes_exec::sandbox::proxy`].

use std::net::SocketAddr;
use std::path::Path;

use async_trait::async_trait;
use hermes_exec::sandbox::proxy::ConnectPolicy;
use hermes_guard::url_policy::{BlocklistSettings, UrlPolicy, UrlSettings};

use crate::config::Config;

/// The hosts of `terminal.sandbox_hosts`.
#[derive(Debug)]
pub(crate) struct Hosts {
    listed: Vec<Listed>,
    policy: UrlPolicy,
}

/// One of them: `host`, or `.host` for it and all names below it, with or without a port.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    name: String,
    and_below: bool,
    port: Option<u16>,
}

impl Hosts {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            listed: config.list("terminal.sandbox_hosts").iter().map(|entry| Listed::read(entry)).collect(),
            policy: url_policy(config),
        }
    }
}

impl Listed {
    fn read(entry: &str) -> Self {
        let entry = entry.trim().to_ascii_lowercase();
        let (name, port) = match entry.rsplit_once(':').map(|(name, port)| (name, port.parse())) {
            Some((name, Ok(port))) if !name.contains(':') || name.ends_with(']') => (name.to_owned(), Some(port)),
            _ => (entry, None),
        };
        let below = name.strip_prefix("*.").or_else(|| name.strip_prefix('.'));
        let and_below = below.is_some();
        let name = below.unwrap_or(&name).trim_matches(['[', ']']).trim_end_matches('.').to_owned();
        Self { name, and_below, port }
    }

    fn covers(&self, host: &str, port: u16) -> bool {
        let is_below = || host.strip_suffix(&self.name).is_some_and(|rest| rest.ends_with('.'));
        self.port.is_none_or(|only| only == port) && (host == self.name || self.and_below && is_below())
    }
}

/// The policy for everything that reaches the network.
pub(crate) fn url_policy(config: &Config) -> UrlPolicy {
    let settings = UrlSettings {
        allow_private_urls: config.flag("security.allow_private_urls"),
        url_allowlist: config.list("security.url_allowlist"),
        website_blocklist: BlocklistSettings {
            enabled: config.flag("security.website_blocklist.enabled"),
            domains: config.list("security.website_blocklist.domains"),
            shared_files: config.list("security.website_blocklist.shared_files").into_iter().map(Into::into).collect(),
        },
    };
    // A restriction that cannot be read allows nothing.
    UrlPolicy::new(&settings, |file: &Path| std::fs::read_to_string(file))
        .unwrap_or_else(|error| UrlPolicy::closed(error.to_string()))
}

#[async_trait]
impl ConnectPolicy for Hosts {
    async fn may_connect(&self, host: &str, port: u16, addresses: &[SocketAddr]) -> Result<Vec<SocketAddr>, String> {
        if !self.listed.iter().any(|listed| listed.covers(host, port)) {
            return Err("it is not in terminal.sandbox_hosts".into());
        }
        let authority = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let url =
            self.policy.check_url(&format!("http://{authority}:{port}/")).map_err(|refusal| refusal.to_string())?;
        let pinned = url.pin(addresses.iter().map(SocketAddr::ip)).map_err(|refusal| refusal.to_string())?;
        Ok(pinned.addresses().to_vec())
    }

    fn refused(&self, _: &str, _: u16, _: &str) {
        // The command is answered with the reason, and says it.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_covers_its_host_and_with_a_point_what_is_below_it() {
        let cases = [
            ("pypi.org", "pypi.org", 443, true),
            ("pypi.org", "files.pypi.org", 443, false),
            (".pypi.org", "files.pypi.org", 443, true),
            ("*.pypi.org", "pypi.org", 443, true),
            (".pypi.org", "evilpypi.org", 443, false),
            ("PyPI.org:443", "pypi.org", 443, true),
            ("pypi.org:443", "pypi.org", 80, false),
            ("[::1]:8080", "::1", 8080, true),
            ("", "pypi.org", 443, false),
        ];
        for (entry, host, port, expected) in cases {
            assert_eq!(Listed::read(entry).covers(host, port), expected, "{entry} {host}:{port}");
        }
    }

    #[tokio::test]
    async fn a_listed_host_that_leads_to_a_private_address_is_refused() {
        let hosts = Hosts { listed: vec![Listed::read("pypi.org")], policy: UrlPolicy::default() };
        let asked = |address: &str| {
            let address: SocketAddr = address.parse().unwrap();
            let hosts = &hosts;
            async move { hosts.may_connect("pypi.org", 443, &[address]).await }
        };
        assert!(asked("151.101.0.223:443").await.is_ok());
        for private in ["127.0.0.1:443", "10.0.0.5:443", "169.254.169.254:443"] {
            assert!(asked(private).await.is_err(), "{private}");
        }
        let public: SocketAddr = "151.101.0.223:443".parse().unwrap();
        assert!(hosts.may_connect("example.org", 443, &[public]).await.unwrap_err().contains("terminal.sandbox_hosts"));
    }
}
