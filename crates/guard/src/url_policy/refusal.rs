//! Why a URL is not fetched, in one line that says what to do next.
//!
//! A URL may carry a password or a token, so a refusal names its scheme, host and port, and nothing else of it.

use std::net::IpAddr;

use super::address::{Reach, place};

/// A URL or an address that may not be reached. Its text is one line: what, why, what next.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct Refusal {
    /// The kind of trouble, for code.
    pub kind: RefusalKind,
    message: String,
}

/// The kinds of trouble that callers tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// It is not a URL that can be fetched: another scheme, no host, hidden characters.
    Malformed,
    /// It leads to this machine or its network; a setting can allow it.
    Private,
    /// It leads to the metadata of a cloud or cannot be dialled; no setting allows it.
    Forbidden,
    /// A rule of the website block list names it.
    Blocked {
        /// The rule as it is written.
        rule: String,
        /// Where the rule stands.
        source: String,
    },
    /// The name has no address, or the addresses are not those of the URL.
    Unresolved,
    /// A chain of redirects is too long.
    TooManyRedirects,
    /// The policy itself could not be read.
    PolicyUnreadable,
}

impl Refusal {
    pub(super) fn malformed(message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::Malformed, message: message.into() }
    }

    pub(super) fn unresolved(message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::Unresolved, message: message.into() }
    }

    pub(super) fn closed(why: &str) -> Self {
        let message = format!(
            "no URL is fetched, because the URL policy cannot be read: {why}; the user must mend that setting first"
        );
        Self { kind: RefusalKind::PolicyUnreadable, message }
    }

    pub(super) fn too_many_redirects(host: &str, most: usize) -> Self {
        let message =
            format!("{host} redirects again after {most} redirects; fetch the address you really want directly");
        Self { kind: RefusalKind::TooManyRedirects, message }
    }

    pub(super) fn blocked(host: &str, rule: &str, source: &str) -> Self {
        Self {
            message: format!("{host} is blocked by the rule `{rule}` in {source}; use another source, or ask the user"),
            kind: RefusalKind::Blocked { rule: rule.to_owned(), source: source.to_owned() },
        }
    }

    pub(super) fn metadata_name(host: &str) -> Self {
        let message =
            format!("{host} is a metadata service of a cloud, which hands out credentials; no setting allows it");
        Self { kind: RefusalKind::Forbidden, message }
    }

    pub(super) fn loopback_name(host: &str, port: u16) -> Self {
        let message = format!("{host} is this machine itself; {}", how_to_allow(host, port));
        Self { kind: RefusalKind::Private, message }
    }

    /// The same, with who brought us there.
    pub(super) fn after(self, who: &str) -> Self {
        Self { kind: self.kind, message: format!("{who}: {}", self.message) }
    }

    /// `host` is the name that led to the address, if one did; `port` the one that would be dialled, if that is known.
    pub(super) fn address(host: Option<&str>, address: IpAddr, port: Option<u16>) -> Self {
        let place = place(address);
        let shown = match address {
            IpAddr::V6(v6) => format!("[{v6}]"),
            IpAddr::V4(v4) => v4.to_string(),
        };
        let what = match (host, place.carries) {
            (Some(host), None) => format!("{host} leads to {shown}, {}", place.what),
            (Some(host), Some(v4)) => format!("{host} leads to {shown}, which carries {v4}, {}", place.what),
            (None, None) => format!("{shown} is {}", place.what),
            (None, Some(v4)) => format!("{shown} carries {v4}, {}", place.what),
        };
        if place.reach == Reach::Never {
            return Self { kind: RefusalKind::Forbidden, message: format!("{what}; no setting allows it") };
        }
        let next = how_to_allow(host.unwrap_or(&shown), port.unwrap_or_default());
        Self { kind: RefusalKind::Private, message: format!("{what}; {next}") }
    }
}

fn how_to_allow(host: &str, port: u16) -> String {
    let port = if port == 0 { String::new() } else { format!(":{port}") };
    format!(
        "the user can allow it by adding \"{host}{port}\" to security.url_allowlist, or all private addresses by \
         security.allow_private_urls: true"
    )
}
