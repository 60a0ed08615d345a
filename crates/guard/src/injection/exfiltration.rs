//! A secret on its way out: a command that sends, a reference to a secret, a target elsewhere, all in one clause.
//!
//! The tricky idea: each of the three is everyday talk ("I prefer curl", "the token is in `GH_TOKEN`", a URL), so a word
//! alone counts for nothing. A command counts with something to act on behind it, a secret counts where its value is
//! taken (`$GH_TOKEN`, `~/.ssh/id_rsa`), and a target counts unless it is this machine.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::patterns::compiled;
use super::reading::Reading;
use super::{Found, Kind, Level};

/// A program or a call that can carry data away, with something to act on.
const COMMAND: &str = r#"\b(?:curl|wget|nc|ncat|netcat|socat|telnet|scp|sftp|rsync|ftp|tftp|iwr|irm|invoke-webrequest|invoke-restmethod|dig|nslookup)(?:\.exe)?\s{1,8}(?:[-"'$@<~/`\\]|[\w.-]{1,80}[@:./]|[\w-]{1,60}\s{1,4}\d)|\b(?:requests|httpx|axios)\.(?:post|put|get|patch|request)\s{0,3}\(|\burlopen\s{0,3}\(|\bfetch\s{0,3}\(|\bsendbeacon\s{0,3}\(|/dev/tcp/|\baws\s{1,4}s3\s{1,4}(?:cp|mv|sync)\b|\bopenssl\s{1,4}s_client\b"#;

/// A file or a variable whose value is a secret.
const SECRET: &str = r"\$(?:env:)?\{?[a-z0-9_]{0,40}(?:key|token|secret|passw|credential|auth)[a-z0-9_]{0,40}|\bprocess\.env\b|\bos\.(?:environ|getenv)\b|\bENV\[|\bprintenv\b|\benv\s{0,4}\||\.ssh\b|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|\.aws\b|\.gnupg\b|\.netrc\b|\.pgpass\b|\.npmrc\b|\.pypirc\b|\.git-credentials\b|\.kube/config\b|\.docker/config|/etc/shadow\b|/proc/\w{1,10}/environ|\.hermes/(?:auth|config|hermes\.db)|\.envrc\b|\.env(?:\.(?:local|development|production|test|staging))?(?:[^\w.]|\.?$|\.\s)";

/// The same, and what people call it.
const SECRET_IN_PROSE: &str = r"\b(?:api|access|secret|private|ssh|signing)[\s_-](?:keys?|tokens?)\b|\bcredentials\b|\bsecrets\b|\bpasswords\b|\benvironment variables\b|\bprivate keys?\b";

/// Something that is not here.
const TARGET: &str = r#"(?:https?|ftp|wss?)://(?:[^\s/@"'<>]{1,100}@)?(?P<host>\[[0-9a-f:.]{2,45}\]|[^\s/:"'<>)\]]{1,253})|\b[\w.-]{1,64}@(?P<mail>[\w-]{1,63}\.[\w.-]{1,190})|\b[\w.-]{1,64}@(?P<ssh>[\w.-]{1,100}):|(?:^|[\s"'(@])(?P<bare>(?:[\w-]{1,63}\.){1,8}(?:com|net|org|io|dev|sh|xyz|top|ru|cn|app|me|co|info|site|online|example|test|onion|link|cc|tk))\b|\b(?P<ip>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})\b|/dev/tcp/(?P<tcp>[\w.-]{1,253})|\$\{?\w{0,30}(?:url|host|endpoint|webhook)\w{0,10}|\bs3://(?P<bucket>[\w.-]{1,100})|\b(?:nc|ncat|netcat|telnet)\s{1,4}(?:-\S{1,20}\s{1,4}){0,4}(?P<port>[\w.-]{1,253})\s{1,4}\d{1,5}\b"#;

/// An order to send something to somebody.
const ORDER: &str =
    r"\b(?:send|post|upload|forward|email|e-mail|mail|transmit|exfiltrate|leak|copy|submit|deliver|publish|push)\b";

/// An order to send what was just read.
const ORDER_IT: &str = r"\b(?:send|post|upload|forward|email|e-mail|mail|transmit|exfiltrate|leak|copy|submit|deliver|publish|push)GAP(?:it|them|that|this|its|their|the)\b";

const READS: &str = r"\b(?:read|cat|print|get|collect|open|copy|grab|take|load|find|gather|encode|base64|dump)\b";

/// A secret that goes where it belongs: into the header that asks for access, or into a login. `NAME` stands for below.
const IN_HEADER: &str = r#"(?:-H|--header|-Headers?)[\s=]{0,4}(?:"NAME\s{0,3}:[^"\n]{0,200}"|'NAME\s{0,3}:[^'\n]{0,200}'|NAME:\S{0,200})|\s(?:-u|--user)[\s=]{1,4}["']?[\w$:{}.@-]{1,120}["']?"#;
const HEADER_NAME: &str = "(?:proxy-)?(?:authorization|x-api-key|api-key|x-auth-token|private-token|x-goog-api-key)";

/// Not secret, or not sent: public halves of keys; the key that ssh programs show at the door.
const HARMLESS: &str =
    r"(?:\.ssh/|\bid_)[\w-]{1,60}\.pub\b|\.ssh/(?:known_hosts|config)\b|\.env\.(?:example|sample|template)\b";
const IDENTITY: &str = r"\s-i\s{0,4}\S{1,200}";
const SSH_IDENTITY: &str = r"\bssh\s{1,4}-i\s{0,4}\S{1,200}";

/// What makes a command one that must not be run.
const FORBIDS: &str = r"\b(?:never|do not|don't|must not|refuse|beware|reject|attacks?|attackers?|malicious|hostile)\b";

struct Patterns {
    command: Regex,
    secret: Regex,
    secret_in_prose: Regex,
    target: Regex,
    order: Regex,
    order_it: Regex,
    reads: Regex,
    in_header: Regex,
    harmless: Regex,
    identity: Regex,
    ssh_identity: Regex,
    forbids: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    Some(Patterns {
        command: compiled(COMMAND)?,
        secret: compiled(SECRET)?,
        secret_in_prose: compiled(SECRET_IN_PROSE)?,
        target: compiled(TARGET)?,
        order: compiled(ORDER)?,
        order_it: compiled(ORDER_IT)?,
        reads: compiled(READS)?,
        in_header: compiled(&IN_HEADER.replace("NAME", HEADER_NAME))?,
        harmless: compiled(HARMLESS)?,
        identity: compiled(IDENTITY)?,
        ssh_identity: compiled(SSH_IDENTITY)?,
        forbids: compiled(FORBIDS)?,
    })
});

/// Why a memory is not kept. Its text is one line: what, why, what next.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "line {line} would send a secret to another machine each time the memory is followed: {excerpt}; keep the name of the \
     secret and the address apart, without the command"
)]
pub struct MemoryRefusal {
    /// Where; the first line is 1.
    pub line: usize,
    /// The passage.
    pub excerpt: String,
}

/// Refuses a memory that would carry a secret away whenever it is followed; everything else is accepted.
///
/// A memory is read in every later session by a model that did not see where it came from, so this is refused also in
/// quotes and also where the secret goes into a header.
pub fn refuse_memory(text: &str) -> Result<(), MemoryRefusal> {
    let reading = Reading::of(text);
    let first = clauses_that_send(&reading).into_iter().next();
    first.map_or(Ok(()), |(passage, _)| {
        Err(MemoryRefusal { line: reading.line(passage.start), excerpt: reading.excerpt(&passage) })
    })
}

pub(super) fn find(reading: &Reading<'_>, found: &mut Found) {
    let Some(patterns) = PATTERNS.as_ref() else { return };
    for (passage, Sends { level, at }) in clauses_that_send(reading) {
        let line = reading.line(passage.start);
        let excerpt = || reading.excerpt(&passage);
        if reading.is_comment(at) {
            found.add(line, Kind::HiddenComment, Level::Warn, excerpt);
            continue;
        }
        // Quotes alone are no excuse, since a command to run is often written in them; nor is a "not" far away.
        let forbidden = reading.is_quoted(at) && patterns.forbids.is_match(reading.before(at, 60));
        found.add(line, Kind::Exfiltration, if forbidden { Level::Note } else { level }, excerpt);
    }
}

/// How sure it is that a clause sends a secret, and where the sending begins.
struct Sends {
    level: Level,
    at: usize,
}

/// The clauses that send a secret.
fn clauses_that_send(reading: &Reading<'_>) -> Vec<(Range<usize>, Sends)> {
    let Some(patterns) = PATTERNS.as_ref() else { return Vec::new() };
    let mut out = Vec::new();
    let mut secret_was_read = false;
    for clause in clauses(&reading.plain) {
        let text = &reading.plain[clause.clone()];
        let (sends, reads_secret) = patterns.judge(text, secret_was_read);
        secret_was_read = reads_secret;
        if let Some(Sends { level, at }) = sends {
            let blank = text.len() - text.trim_start().len();
            out.push((clause.start + blank..clause.end, Sends { level, at: clause.start + at }));
        }
    }
    out
}

impl Patterns {
    /// Whether a clause sends a secret, and whether it reads one that the next clause may send.
    fn judge(&self, text: &str, secret_was_read: bool) -> (Option<Sends>, bool) {
        let names_secret = self.secret.is_match(text) || self.secret_in_prose.is_match(text);
        let reads_secret = names_secret && self.reads.is_match(text);
        if !names_secret && !secret_was_read {
            return (None, reads_secret);
        }
        let command = self.command.find(text).filter(|_| self.leads_away(text, false));
        let order = self.order.find(text).filter(|_| self.leads_away(text, true));
        let Some(at) = command.or(order).map(|found| found.start()) else { return (None, reads_secret) };

        let relevant = self.harmless.replace_all(text, " ");
        let relevant = self.ssh_identity.replace_all(&relevant, " ");
        // To other programs `-i` means something else, and the secret itself may follow it.
        let shows_key = command.is_some_and(|program| copies_by_ssh(program.as_str()));
        let relevant = if shows_key { self.identity.replace_all(&relevant, " ") } else { relevant };
        let secret = self.secret.is_match(&relevant);
        let level = if command.is_some() && secret {
            let without_header = self.in_header.replace_all(&relevant, " ");
            Some(if self.secret.is_match(&without_header) { Level::Warn } else { Level::Note })
        } else {
            let named = secret || self.secret_in_prose.is_match(&relevant);
            let just_read = secret_was_read && self.order_it.is_match(text);
            (order.is_some() && (named || just_read)).then_some(Level::Warn)
        };
        (level.map(|level| Sends { level, at }), reads_secret)
    }

    /// Whether something in a clause is not here; for an order also whether that is where something goes: "to", "at".
    fn leads_away(&self, text: &str, ordered: bool) -> bool {
        self.target.captures_iter(text).any(|target| {
            let names = ["host", "mail", "ssh", "bare", "ip", "tcp", "bucket", "port"];
            let host = names.into_iter().find_map(|name| target.name(name));
            let start = target.get(0).map_or(0, |whole| whole.start());
            let near = &text[text.floor_char_boundary(start.saturating_sub(80))..start];
            let before = near.rsplit(char::is_whitespace).filter(|word| !word.is_empty()).take(3);
            let goes_there = || before.into_iter().any(|word| matches!(word, "to" | "at" | "into" | "via" | "through"));
            host.is_none_or(|host| !is_here(host.as_str())) && (!ordered || goes_there())
        })
    }
}

fn copies_by_ssh(command: &str) -> bool {
    let program = command.get(..4).unwrap_or_default();
    program.eq_ignore_ascii_case("scp ") || program.eq_ignore_ascii_case("sftp")
}

/// This machine by its usual names.
fn is_here(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host == "::1"
        || host == "0.0.0.0"
        || host.starts_with("127.")
}

/// Cuts at line breaks that are not continued, at `;` and at the ends of sentences: what stands apart is said apart.
fn clauses(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let is_blank = |at: usize| bytes.get(at).is_none_or(u8::is_ascii_whitespace);
    let mut start = 0;
    std::iter::from_fn(move || {
        if start >= bytes.len() {
            return None;
        }
        let ends = |at: usize| match bytes[at] {
            b'\n' => at == 0 || bytes[at - 1] != b'\\',
            b';' | b'!' | b'?' | b'.' => is_blank(at + 1),
            _ => false,
        };
        let end = (start..bytes.len()).find(|&at| ends(at)).map_or(bytes.len(), |at| at + 1);
        let clause = start..end;
        start = end;
        Some(clause)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for text in [COMMAND, SECRET, SECRET_IN_PROSE, TARGET, ORDER, ORDER_IT, READS, HARMLESS, IDENTITY, FORBIDS] {
            assert!(compiled(text).is_some(), "{text}");
        }
        assert!(PATTERNS.is_some());
    }
}
