//! A URL on its way from text to the addresses that may be dialled.
//!
//! The tricky idea: what people read and what a client dials must be one parse. The text is refused where parsers are
//! known to disagree (backslashes, hidden characters, `http:host`), and everything after is said about the parsed URL,
//! which is also what is handed to the client.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

use super::refusal::Refusal;
use super::{LOOPBACK_NAMES, METADATA_NAMES, Reach, UrlPolicy, is_or_is_below, place};

/// How many redirects one fetch may follow.
pub const MOST_REDIRECTS: usize = 10;

/// How long a URL may be, in bytes.
const LONGEST: usize = 8192;

/// Names of parameters whose values open doors (spec exec §15), in lower case with `_` for `-`. The last two are ours.
const CREDENTIAL_NAMES: &[&str] = &[
    "access_token",
    "api_key",
    "apikey",
    "auth_token",
    "authorization",
    "awsaccesskeyid",
    "client_secret",
    "credential",
    "credentials",
    "jwt",
    "password",
    "passwd",
    "secret",
    "session_id",
    "signature",
    "token",
    "x_amz_security_token",
    "x_amz_signature",
    "id_token",
    "refresh_token",
];

/// Something a person or a log should hear about a URL that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A user name or password stands before the host; `https://bank.example@evil.example/` leads to `evil.example`.
    UserInfo,
    /// A redirect left https for plain http: what follows can be read and changed on the way.
    Downgraded,
    /// A redirect left the origin: no cookie, authorization header or body may be sent along.
    OtherOrigin,
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::UserInfo => "the URL carries a user name or a password before its host",
            Self::Downgraded => "the redirect leaves https for plain http",
            Self::OtherOrigin => "the redirect leads to another origin",
        })
    }
}

/// A URL that may be fetched, if its name resolves to addresses that may be.
#[derive(Clone)]
pub struct CheckedUrl {
    policy: UrlPolicy,
    url: Url,
    private_too: bool,
    redirects: usize,
    notes: Vec<Note>,
}

/// A URL with the addresses that may be dialled for it.
///
/// The client must be given these addresses instead of a resolver, must not follow redirects by itself, and must not use
/// a proxy: a proxy would resolve the name again.
#[derive(Clone, Debug)]
pub struct Pinned {
    url: CheckedUrl,
    addresses: Vec<SocketAddr>,
}

pub(super) fn check(policy: &UrlPolicy, text: &str) -> Result<CheckedUrl, Refusal> {
    policy.not_closed()?;
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    unambiguous(text)?;
    let rest = after_scheme(text)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(Refusal::malformed("the URL names no host; write it as https://host/path"));
    }
    if authority.contains(' ') {
        return Err(Refusal::malformed("there is a blank before or in the host of the URL; write it without"));
    }
    let url = Url::parse(text)
        .map_err(|error| Refusal::malformed(format!("the URL cannot be read: {error}; check its host")))?;
    admit(policy, url, 0, Vec::new())
}

/// What every URL has to pass, written by somebody or come by a redirect.
fn admit(policy: &UrlPolicy, mut url: Url, redirects: usize, mut notes: Vec<Note>) -> Result<CheckedUrl, Refusal> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(other_scheme(url.scheme()));
    }
    if let Some(Host::Domain(name)) = url.host()
        && let Some(short) = name.strip_suffix('.')
    {
        let short = short.to_owned();
        let parsed = url.set_host(Some(&short));
        parsed.map_err(|error| Refusal::malformed(format!("the host of the URL cannot be read: {error}")))?;
    }
    let port = url.port_or_known_default().unwrap_or_default();
    if port == 0 {
        return Err(Refusal::malformed("the URL names port 0, which nothing listens on; name the real port"));
    }
    let private_too = {
        let Some(host) = url.host() else {
            return Err(Refusal::malformed("the URL names no host; write it as https://host/path"));
        };
        judge_host(policy, &host, port)?
    };
    if !url.username().is_empty() || url.password().is_some() {
        notes.push(Note::UserInfo);
    }
    Ok(CheckedUrl { policy: policy.clone(), url, private_too, redirects, notes })
}

/// Answers whether the host may be private.
fn judge_host(policy: &UrlPolicy, host: &Host<&str>, port: u16) -> Result<bool, Refusal> {
    policy.host_rule(host, port)?;
    let private_too = policy.allows_private(host, port);
    match host {
        Host::Domain(name) => {
            if name.is_empty() || name.starts_with('.') || name.ends_with('.') || name.contains("..") {
                return Err(Refusal::malformed(
                    "the host of the URL has an empty part between its dots; write its name",
                ));
            }
            if is_or_is_below(name, METADATA_NAMES) {
                return Err(Refusal::metadata_name(name));
            }
            if !private_too && is_or_is_below(name, LOOPBACK_NAMES) {
                return Err(Refusal::loopback_name(name, port));
            }
        }
        Host::Ipv4(v4) => judge_address(policy, private_too, None, IpAddr::V4(*v4), port)?,
        Host::Ipv6(v6) => judge_address(policy, private_too, None, IpAddr::V6(*v6), port)?,
    }
    Ok(private_too)
}

fn judge_address(
    policy: &UrlPolicy,
    private_too: bool,
    host: Option<&str>,
    address: IpAddr,
    port: u16,
) -> Result<(), Refusal> {
    policy.address_rule(address)?;
    match place(address).reach {
        Reach::Public => Ok(()),
        Reach::Local if private_too => Ok(()),
        Reach::Local | Reach::Never => Err(Refusal::address(host, address, Some(port))),
    }
}

/// Refuses text that different programs read differently.
fn unambiguous(text: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::malformed("the URL is empty; write it as https://host/path"));
    }
    if text.len() > LONGEST {
        let message =
            format!("the URL has {} bytes, more than {LONGEST}; send long data in a request body", text.len());
        return Err(Refusal::malformed(message));
    }
    if let Some(odd) = text.chars().find(|&c| c != ' ' && (c.is_control() || c.is_whitespace() || is_invisible(c))) {
        let message = format!(
            "the URL has a hidden character in it (U+{:04X}); write it without, or percent-encoded if it belongs there",
            u32::from(odd)
        );
        return Err(Refusal::malformed(message));
    }
    if text.split(['?', '#']).next().is_some_and(|before| before.contains('\\')) {
        return Err(Refusal::malformed("the URL has a backslash in it; write `/`, or `%5C` if a backslash is meant"));
    }
    Ok(())
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// What follows `http://` or `https://`.
fn after_scheme(text: &str) -> Result<&str, Refusal> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) && !rest.starts_with(|c: char| c.is_ascii_digit()) => {
                other_scheme(scheme)
            }
            _ => Refusal::malformed("the URL has no scheme; write it as https://host/path"),
        });
    };
    if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") {
        Ok(rest)
    } else if is_scheme(scheme) {
        Err(other_scheme(scheme))
    } else {
        Err(Refusal::malformed("the URL has no scheme; write it as https://host/path"))
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() <= 40
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn other_scheme(scheme: &str) -> Refusal {
    if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") {
        return Refusal::malformed(
            "after the scheme of the URL `//` and a host must follow; write it as https://host/path",
        );
    }
    let scheme = scheme.to_ascii_lowercase();
    Refusal::malformed(format!("the scheme `{scheme}` cannot be fetched, only http and https; use another tool for it"))
}

impl CheckedUrl {
    /// The URL to use. It may carry a password or a token: show [`CheckedUrl::origin`] instead.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Scheme, host and port, which hold no secret.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// The name or the address, as the client's resolver is asked for it.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The port to dial.
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    /// The address, if the host is one: then there is nothing to resolve, and [`CheckedUrl::pin`] takes an empty list.
    pub fn literal(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Domain(_) => None,
            Host::Ipv4(v4) => Some(IpAddr::V4(v4)),
            Host::Ipv6(v6) => Some(IpAddr::V6(v6)),
        }
    }

    /// What a person should hear about it.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Redirects followed so far.
    pub fn redirects(&self) -> usize {
        self.redirects
    }

    /// Names of parameters, of the query and of the fragment, that carry a credential and are not empty, each once.
    ///
    /// A third party that fetches the URL for us would learn them.
    pub fn credential_parameters(&self) -> Vec<String> {
        let fragment = self.url.fragment().unwrap_or_default();
        let fragment = url::form_urlencoded::parse(fragment.trim_start_matches(['!', '/', '?']).as_bytes());
        let mut names: Vec<String> = Vec::new();
        for (name, value) in self.url.query_pairs().chain(fragment) {
            let known = name.trim().to_ascii_lowercase().replace('-', "_");
            if !value.is_empty()
                && CREDENTIAL_NAMES.contains(&known.as_str())
                && !names.iter().any(|other| *other == name)
            {
                names.push(name.into_owned());
            }
        }
        names
    }

    /// Binds the URL to the addresses its name was resolved to, once. One that may not be reached refuses them all:
    /// a client tries them in turn, and an attacker only needs one to answer.
    pub fn pin(self, addresses: impl IntoIterator<Item = IpAddr>) -> Result<Pinned, Refusal> {
        let (literal, port) = (self.literal(), self.port());
        let mut pinned: Vec<SocketAddr> = Vec::new();
        for address in addresses.into_iter().chain(literal) {
            if literal.is_some_and(|literal| literal != address) {
                let message = format!(
                    "{} is an address, but {address} was to be dialled for it; dial what is written",
                    self.host()
                );
                return Err(Refusal::unresolved(message));
            }
            judge_address(&self.policy, self.private_too, Some(self.host()), address, port)?;
            let address = SocketAddr::new(address, port);
            if !pinned.contains(&address) {
                pinned.push(address);
            }
        }
        if pinned.is_empty() {
            return Err(Refusal::unresolved(format!("{} has no address; check the spelling of its name", self.host())));
        }
        Ok(Pinned { url: self, addresses: pinned })
    }

    /// Where a redirect leads: `location` is the value of the header `Location` (RFC 9110 §10.2.2), maybe relative.
    ///
    /// The target is judged as if it had been written, and must be pinned anew. Where a redirect goes from https to http
    /// or to another origin, the notes say so; the notes of the URL before are not carried on.
    pub fn redirect(&self, location: &str) -> Result<Self, Refusal> {
        self.policy.not_closed()?;
        if self.redirects >= MOST_REDIRECTS {
            return Err(Refusal::too_many_redirects(self.host(), MOST_REDIRECTS));
        }
        let from_here = |refusal: Refusal| refusal.after(&format!("{} redirects", self.host()));
        let location = location.trim_matches([' ', '\t', '\r', '\n']);
        unambiguous(location).map_err(from_here)?;
        let target = self.url.join(location);
        let target =
            target.map_err(|error| from_here(Refusal::malformed(format!("the URL cannot be read: {error}"))))?;
        let mut notes = Vec::new();
        if self.url.scheme() == "https" && target.scheme() == "http" {
            notes.push(Note::Downgraded);
        }
        if self.url.origin() != target.origin() {
            notes.push(Note::OtherOrigin);
        }
        admit(&self.policy, target, self.redirects + 1, notes).map_err(from_here)
    }
}

/// Without path, query and password: they may be secret.
impl fmt::Debug for CheckedUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CheckedUrl")
            .field("origin", &self.origin())
            .field("redirects", &self.redirects)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

impl Pinned {
    /// The URL.
    pub fn url(&self) -> &CheckedUrl {
        &self.url
    }

    /// The only addresses that may be dialled, in the resolver's order, each once. Never empty.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether a connection that was made leads where it was allowed to. For clients that report the peer afterwards.
    pub fn permits(&self, peer: SocketAddr) -> bool {
        let same = |own: &SocketAddr| own.port() == peer.port() && own.ip().to_canonical() == peer.ip().to_canonical();
        self.addresses.iter().any(same)
    }

    /// See [`CheckedUrl::redirect`].
    pub fn redirect(&self, location: &str) -> Result<CheckedUrl, Refusal> {
        self.url.redirect(location)
    }
}
