//! What the programs that talk to other machines have in common: what leaves, what arrives, and what a request asks for.

use super::environment::side_door;
use super::sql::{self, Dialect};
use crate::eval::{Call, Extent, Feed, Writing};
use crate::finding::{Effect, TargetClass, Verdict};
use crate::text::{self, HOLE, REMOTE, SECRET};

/// A text goes to another machine.
pub(super) fn sends(call: &mut Call<'_, '_>, sent: &str, to: &str) {
    if sent.contains(SECRET) {
        call.asks(Effect::NetworkSend, to, "sends a secret to another machine");
    }
}

/// A file, or a directory with all that is in it, goes to another machine.
pub(super) fn sends_file(call: &mut Call<'_, '_>, path: &str, to: &str) {
    let place = call.place(path, true);
    let secret = match call.machine.file(&place.path) {
        Some(fact) => fact.text.contains(SECRET),
        None => matches!(place.class, TargetClass::Secret | TargetClass::Home | TargetClass::Root),
    };
    if secret {
        let why = format!("sends secrets to another machine ({})", text::shown(to));
        call.find(Verdict::Dangerous, Effect::NetworkSend, &place.path, place.class, &why);
    }
}

/// A file is written with what came over the network.
pub(super) fn arrives(call: &mut Call<'_, '_>, path: &str, writing: Writing) {
    if path == "/dev/null" {
        return;
    }
    let path = call.write(path, writing);
    call.machine.remember_file(&path, REMOTE.to_string());
    call.machine.foreign.push(path);
}

/// A file is written under the name that an address ends in: a name that nobody knows still picks no directory.
pub(super) fn arrives_from(call: &mut Call<'_, '_>, directory: &str, url: &str, writing: Writing) {
    let directory = if directory.is_empty() { "." } else { directory.trim_end_matches('/') };
    let path = format!("{directory}/{}", file_of(url));
    arrives(call, &path, writing);
}

/// What is fed to the command, without taking it.
pub(super) fn waiting(call: &Call<'_, '_>) -> String {
    call.peek_input().unwrap_or_default()
}

/// The name of the file that an address ends in.
pub(super) fn file_of(url: &str) -> &str {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split(['?', '#', text::QUERY]).next().unwrap_or(path);
    match path.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => name,
        None if !url.contains("://") => path,
        _ => "index.html",
    }
}

/// An address in parts.
struct Address<'a> {
    host: &'a str,
    port: &'a str,
    path: &'a str,
    query: &'a str,
}

fn address(url: &str) -> Address<'_> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or(rest);
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(at);
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (authority, ""),
    };
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    Address { host, port, path, query }
}

/// Ports on which stores answer to HTTP.
const STORES: [&str; 12] =
    ["9200", "9201", "5984", "8983", "8123", "8086", "6333", "7474", "8529", "7700", "8108", "8091"];

/// An HTTP request: most only ask, some delete, and some servers run what they are told.
pub(super) fn request(call: &mut Call<'_, '_>, method: &str, url: &str, body: &str) {
    let method = method.to_ascii_uppercase();
    // Outside of quotes `?` and `*` look like patterns.
    let url = text::unglob(url);
    let url = url.as_str();
    let parts = address(url);
    let path = parts.path.trim_end_matches('/').to_ascii_lowercase();
    let last = path.rsplit('/').next().unwrap_or_default();
    let first = parts.host.split('.').next().unwrap_or_default();
    let store = STORES.contains(&parts.port)
        || ["es", "elastic", "opensearch", "couch", "solr", "influx", "clickhouse", "qdrant", "arango"].iter().any(
            |name| {
                first
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['s', 'd', 'b', '-', '0', '1', '2']))
            },
        );
    if matches!(parts.host, "169.254.169.254" | "metadata.google.internal" | "100.100.100.200" | "169.254.170.2")
        && ["security-credentials/", "/token", "user-data", "/credentials", "identity"]
            .iter()
            .any(|part| path.contains(part))
    {
        call.asks(Effect::SecretRead, url, "shows keys of this machine's role");
        call.print(&SECRET.to_string());
    }
    if method == "DELETE" {
        return deletes(call, url, &parts, &path, store);
    }
    let compact: String = body.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
    let posts = matches!(method.as_str(), "POST" | "PUT" | "PATCH");
    if posts && matches!(last, "_delete_by_query" | "_update_by_query") {
        if compact.is_empty() || compact.contains("match_all") || text::is_unknown(&compact) {
            call.asks(Effect::Database, url, "deletes or changes every document that a query without a filter finds");
        }
    } else if matches!(last, "flushall" | "flushdb" | "delete_series" | "_purge" | "_shutdown" | "truncate") {
        call.asks(Effect::Database, url, "empties a store");
    } else if posts && path.ends_with("actuator/shutdown") {
        call.asks(Effect::Service, url, "stops a service");
    } else if compact.contains("*:*") && compact.contains("delete") {
        call.asks(Effect::Database, url, "deletes every document");
    } else if compact.contains("detachdelete") && !compact.contains("where") {
        call.asks(Effect::Database, url, "deletes every node");
    }
    let speaks_sql = matches!(parts.port, "8123" | "8086" | "9047" | "4001")
        || matches!(last, "query" | "sql" | "_sql" | "execute" | "statement" | "statements")
        || first.starts_with("clickhouse");
    if speaks_sql {
        for pair in parts.query.split('&') {
            if let Some((_, statement)) =
                pair.split_once('=').filter(|(name, _)| matches!(*name, "query" | "q" | "sql"))
            {
                sql::script(call, Dialect::Other, &unescaped(statement));
            }
        }
        let statement =
            body.strip_prefix("q=").or_else(|| body.strip_prefix("query=")).map_or_else(|| body.to_owned(), unescaped);
        // A form or JSON holds the statement in a string.
        let statement = statement.trim_start_matches(['{', '[', '"', ' ']);
        let statement = ["query\":\"", "query\": \"", "sql\":\"", "sql\": \"", "statement\":\"", "statement\": \""]
            .iter()
            .find_map(|key| statement.strip_prefix(key))
            .unwrap_or(statement);
        if statement != HOLE.to_string() {
            sql::script(call, Dialect::Other, statement);
        }
    }
}

fn deletes(call: &mut Call<'_, '_>, url: &str, parts: &Address<'_>, path: &str, store: bool) {
    let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let wide = path.contains('*') || segments.contains(&"_all");
    if store {
        // One document, not an index or a database.
        let one = segments.contains(&"_doc") || parts.port == "5984" && segments.len() > 1;
        if wide || !one {
            call.asks(Effect::Database, url, "deletes an index, a database or a collection");
        }
        return;
    }
    let local = matches!(parts.host, "localhost" | "127.0.0.1" | "0.0.0.0" | "[::1]")
        || parts.host.ends_with(".localhost")
        || parts.host.ends_with(".test");
    let one = segments.len() > 1
        && segments.last().is_some_and(|last| last.contains(|c: char| c.is_ascii_digit() || text::is_hole(c)));
    if !(local && one && !wide) {
        call.asks(Effect::CloudResource, url, "asks a server to delete something");
    }
}

/// `%20` and `+` in the query of an address.
fn unescaped(query: &str) -> String {
    let mut out = String::new();
    let mut rest = query;
    while let Some(at) = rest.find(['%', '+']) {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(byte) if rest[at..].starts_with('%') && byte.is_ascii() => {
                out.push(char::from(byte));
                rest = &rest[at + 3..];
            }
            _ => {
                out.push(if rest[at..].starts_with('+') { ' ' } else { '%' });
                rest = &rest[at + 1..];
            }
        }
    }
    out + rest
}

/// A request to the daemon of a container engine, over its socket.
pub(super) fn engine_request(call: &mut Call<'_, '_>, method: &str, url: &str) {
    let path = address(url).path.to_ascii_lowercase();
    let asks = matches!(method.to_ascii_uppercase().as_str(), "GET" | "HEAD" | "OPTIONS");
    let harmless = ["/build", "/images/create", "/tag", "/auth", "/wait"].iter().any(|end| path.ends_with(end));
    if asks || harmless {
        return;
    }
    if path.contains("/create") || path.contains("/exec") {
        call.asks(Effect::Privilege, url, "starts something through the socket of the container engine");
    } else {
        call.asks(Effect::CloudResource, url, "changes containers through the socket of their engine");
    }
}

pub(super) fn is_engine_socket(path: &str) -> bool {
    ["docker.sock", "containerd.sock", "podman.sock", "crio.sock"].iter().any(|name| path.ends_with(name))
}

/// Text that is written to a connection as it is: secrets, and the plain protocols of stores and servers.
pub(super) fn speaks(call: &mut Call<'_, '_>, spoken: &str, to: &str) {
    sends(call, spoken, to);
    for line in spoken.lines().take(500) {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or_default();
        match verb.to_ascii_lowercase().as_str() {
            "flush_all" | "flushall" | "flushdb" => call.asks(Effect::Database, to, "empties a store"),
            "shutdown" => call.asks(Effect::Service, to, "stops a service"),
            "delete" | "post" | "put" | "get" if line.contains(" HTTP/") => {
                let path = words.next().unwrap_or_default();
                if is_engine_socket(to) {
                    engine_request(call, verb, &format!("http://engine{path}"));
                } else {
                    request(call, verb, &format!("http://{to}{path}"), spoken);
                }
            }
            _ => {}
        }
    }
}

/// A program is connected to whoever is at the other end.
pub(super) fn serves(call: &mut Call<'_, '_>, program: &str, fed: &str) {
    let first = crate::shell::split(program).into_iter().next().unwrap_or_default();
    let name = crate::eval::base_name(&first).to_ascii_lowercase();
    if matches!(name.as_str(), "cmd" | "powershell" | "pwsh" | "login" | "fish" | "expect" | "tclsh" | "irb" | "ssh") {
        return call.asks(Effect::ExecuteRemote, program, "gives a shell to whoever is at the other end");
    }
    let outer = std::mem::replace(&mut call.machine.stdin, Feed::of(fed));
    side_door(call, program);
    call.machine.stdin = outer;
}

/// The commands of `sftp`, `ftp` and `lftp`.
pub(super) fn transfers(call: &mut Call<'_, '_>, script: &str, to: &str) {
    for line in script.split(['\n', ';']).take(2_000) {
        let line = line.trim().trim_start_matches(['-', '@']);
        if let Some(command) = line.strip_prefix('!') {
            call.shell(command);
            continue;
        }
        let home = call.machine.world.home.clone();
        let words: Vec<String> = crate::shell::split(line)
            .into_iter()
            .map(|word| if word.starts_with("~/") { word.replacen('~', &home, 1) } else { word })
            .collect();
        let Some(verb) = words.first() else { continue };
        let plain: Vec<&String> = words[1..].iter().filter(|word| !word.starts_with('-')).collect();
        let has = |letters: &[&str]| words[1..].iter().any(|word| letters.contains(&word.as_str()));
        match verb.as_str() {
            "shell" | "local" => call.shell(&super::shells::joined(&words[1..])),
            "put" | "reput" | "send" | "append" => {
                plain.first().into_iter().for_each(|file| sends_file(call, file, to));
            }
            "mput" => plain.iter().for_each(|file| sends_file(call, &text::live(file), to)),
            "mirror" => {
                let reverse = words[1..].iter().any(|word| {
                    word == "--reverse" || word.starts_with('-') && !word.starts_with("--") && word.contains('R')
                });
                if has(&["--delete", "--delete-first"]) {
                    let target = plain.get(1).or(plain.first()).map_or(".", |word| word.as_str());
                    call.delete(target, Extent::Bulk);
                }
                if reverse {
                    sends_file(call, plain.first().map_or(".", |word| word.as_str()), to);
                } else if let Some(target) = plain.get(1) {
                    arrives(call, target, Writing::Edit);
                }
            }
            "get" | "reget" | "recv" | "mget" | "pget" => {
                let local = match plain.as_slice() {
                    [_, local] if verb != "mget" => (*local).clone(),
                    [remote, ..] => file_of(remote).to_owned(),
                    [] => continue,
                };
                arrives(call, &local, Writing::Replace);
            }
            "rm" | "mrm" | "mdelete" | "delete" | "glob"
                if (has(&["-r", "-rf", "-fr", "mrm"]) || verb.starts_with('m') || line.contains('*')) =>
            {
                call.asks(Effect::Delete, to, "deletes many files on another machine");
            }
            _ if text::is_unknown(verb) => call.cannot_tell("gives a file transfer commands that cannot be told"),
            _ => {}
        }
    }
}
