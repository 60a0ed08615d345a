//! The one URL policy: which addresses of the network the agent may reach.
//!
//! It exists so that a page, a model or a redirect cannot use the agent's machine to reach what only that machine can
//! reach: services on loopback, the local network, the metadata service of a cloud. Nothing here does I/O; names are
//! resolved and connections are made elsewhere.
//!
//! The tricky idea: a name that was judged must not be resolved again, or it may answer differently the second time.
//! So the check is a path of types that ends in the addresses to dial:
//!
//! ```text
//! text ──check_url──► CheckedUrl ──pin(resolved addresses)──► Pinned: dial these, and no others
//!                        ▲                                      │
//!                        └────────── redirect(Location) ────────┘
//! ```
//!
//! Where to start reading: [`UrlPolicy::check_url`], then [`CheckedUrl::pin`]; the table of addresses is in
//! `url_policy/address.rs`.

mod address;
mod checked;
mod pattern;
mod refusal;
mod settings;

use std::net::IpAddr;
use std::sync::Arc;

use url::Host;

use self::pattern::HostPattern;

pub use self::address::{Place, Reach, place};
pub use self::checked::{CheckedUrl, MOST_REDIRECTS, Note, Pinned};
pub use self::refusal::{Refusal, RefusalKind};
pub use self::settings::{BlocklistSettings, UnreadablePolicy, UrlSettings};

/// Names under which clouds serve credentials to their machines; they and all names below them are never reached.
const METADATA_NAMES: &[&str] = &[
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.tencentyun.com",
];

/// Names that mean this machine, whatever a resolver says (RFC 6761 §6.3 and the hosts files of Linux systems).
const LOOPBACK_NAMES: &[&str] = &["ip6-localhost", "ip6-loopback", "localhost", "localhost.localdomain"];

/// What may be fetched. Cheap to clone; never changes once it is made.
///
/// The default allows the public internet and nothing else.
#[derive(Clone, Debug, Default)]
pub struct UrlPolicy(Arc<Rules>);

#[derive(Debug, Default)]
struct Rules {
    allow_private: bool,
    allowed: Vec<HostPattern>,
    blocked: Vec<BlockRule>,
    /// Why the policy could not be read; then nothing is allowed.
    closed: Option<String>,
}

#[derive(Debug)]
struct BlockRule {
    pattern: HostPattern,
    written: String,
    source: String,
}

impl UrlPolicy {
    /// A policy that refuses every URL, because the real one could not be read. `why` is one line for a person.
    pub fn closed(why: impl Into<String>) -> Self {
        Self(Arc::new(Rules { closed: Some(why.into()), ..Rules::default() }))
    }

    /// Judges a URL as it was written, before its name is resolved.
    ///
    /// Blanks around it are ignored. Answers the URL that is to be used from here on: lower-cased, its host in ASCII and
    /// without the final dot, numbers spelt as an address. At most 8,192 bytes (RFC 9110 §4.1 asks for 8,000).
    pub fn check_url(&self, text: &str) -> Result<CheckedUrl, Refusal> {
        checked::check(self, text)
    }

    /// Judges one address, for a host that no rule of the allow-list names.
    ///
    /// Source of the ranges: the IANA registries of special-purpose addresses, and the vendors' pages on metadata.
    pub fn check_address(&self, address: IpAddr) -> Result<(), Refusal> {
        self.not_closed()?;
        self.address_rule(address)?;
        match place(address).reach {
            Reach::Public => Ok(()),
            Reach::Local if self.0.allow_private => Ok(()),
            Reach::Local | Reach::Never => Err(Refusal::address(None, address, None)),
        }
    }

    fn not_closed(&self) -> Result<(), Refusal> {
        self.0.closed.as_ref().map_or(Ok(()), |why| Err(Refusal::closed(why)))
    }

    /// Whether a host may lie on this machine or its network.
    fn allows_private(&self, host: &Host<&str>, port: u16) -> bool {
        self.0.allow_private || self.0.allowed.iter().any(|pattern| pattern.is(host, port))
    }

    fn host_rule(&self, host: &Host<&str>, port: u16) -> Result<(), Refusal> {
        let hit = self.0.blocked.iter().find(|rule| rule.pattern.covers(host, port));
        hit.map_or(Ok(()), |rule| Err(Refusal::blocked(&host.to_string(), &rule.written, &rule.source)))
    }

    /// A block rule that is an address also holds for names that resolve to it.
    fn address_rule(&self, address: IpAddr) -> Result<(), Refusal> {
        match address.to_canonical() {
            IpAddr::V4(v4) => self.host_rule(&Host::Ipv4(v4), 0),
            IpAddr::V6(v6) => self.host_rule(&Host::Ipv6(v6), 0),
        }
    }
}

/// Whether `name` is one of `names` or below one of them. Both in lower case, without the final dot.
fn is_or_is_below(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| pattern::below(name, known) || name == *known)
}
