//! Stores of keys, queues and topics: commands in words of their own.

use super::options::{gnu, leading, single_dash};
use super::{Program, plain, prints};
use crate::eval::{Call, Writing};
use crate::finding::Effect;
use crate::text::{self, HOLE, PLAIN, SECRET};

pub(super) const PROGRAMS: &[Program] = &[
    prints(&["redis-cli", "valkey-cli", "keydb-cli", "dragonfly-cli", "iredis"], redis),
    prints(&["etcdctl"], etcd),
    prints(&["consul"], consul),
    prints(&["zkCli", "zkCli.sh", "zookeeper-shell", "zookeeper-shell.sh"], zookeeper),
    prints(&["rabbitmqctl", "rabbitmqadmin", "rabbitmq-plugins"], rabbit),
    prints(
        &[
            "kafka-topics",
            "kafka-topics.sh",
            "kafka-delete-records",
            "kafka-delete-records.sh",
            "kafka-consumer-groups",
            "kafka-consumer-groups.sh",
            "kafka-configs",
            "kafka-configs.sh",
            "kafka-acls",
            "kafka-acls.sh",
            "kafka-server-stop",
            "kafka-server-stop.sh",
            "zookeeper-server-stop",
            "zookeeper-server-stop.sh",
        ],
        kafka,
    ),
    prints(&["rpk", "kafkactl", "nats", "pulsar-admin"], topics),
    plain(&["solr", "curator_cli", "couchbase-cli", "neo4j-admin", "arangosh"], others),
];

// --------------------------------------------------------------------------------------------------------------- Redis

fn redis(call: &mut Call<'_, '_>) {
    let options = leading(
        "hpsautnridDX",
        "user= pass= pattern= rdb= functions-rdb= eval= cacert= cacertdir= cert= key= sni= tls-ciphers= count= quoted-pattern= \
         memkeys-samples= intrinsic-latency= lru-test= cluster= pipe-timeout= scan bigkeys hotkeys stat latency pipe raw \
         no-raw csv json tls insecure verbose show-pushes= help version",
    )
    .read(call.arguments());
    if options.asks_only() {
        return call.print(&PLAIN.to_string());
    }
    if let Some(file) = options.value("rdb functions-rdb").filter(|file| *file != "-").map(str::to_owned) {
        call.write(&file, Writing::Replace);
    }
    if let Some(file) = options.value("eval").map(str::to_owned) {
        let script = call.read(&file);
        if script != HOLE.to_string() {
            redis_script(call, &script);
        }
    }
    if options.has("cluster") {
        let verb = options.value("cluster").unwrap_or_default().to_owned();
        if matches!(verb.as_str(), "del-node" | "reshard" | "fix" | "import" | "rebalance") {
            call.asks(Effect::Service, &verb, "changes the nodes of a cluster");
        } else if verb == "call" {
            redis_command(call, options.operands.get(1..).unwrap_or_default());
        }
        return call.print(&HOLE.to_string());
    }
    call.print(&HOLE.to_string());
    if !options.operands.is_empty() {
        if options.unknown {
            call.cannot_tell("gives a store a command that cannot be told");
        }
        return redis_command(call, &options.operands);
    }
    if options.has("scan bigkeys hotkeys stat latency eval rdb") {
        return;
    }
    if let Some(input) = call.input().filter(|input| *input != HOLE.to_string()) {
        for line in input.lines().take(2_000) {
            redis_command(call, &crate::shell::split(line));
        }
    }
}

fn redis_command(call: &mut Call<'_, '_>, words: &[String]) {
    let Some(verb) = words.first() else { return };
    let upper = |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let (verb, second, third) = (verb.to_ascii_uppercase(), upper(1), upper(2));
    if text::is_unknown(&verb) {
        return call.cannot_tell("gives a store a command that cannot be told");
    }
    match (verb.as_str(), second.as_str()) {
        ("FLUSHALL" | "FLUSHDB", _) | ("SCRIPT" | "FUNCTION", "FLUSH") | ("CLUSTER", "RESET" | "FLUSHSLOTS") => {
            call.asks(Effect::Database, "the store", "empties the store");
        }
        ("FUNCTION", "DELETE") | ("FT.DROPINDEX" | "FT.DROP" | "GRAPH.DELETE", _) => {
            call.asks(Effect::Database, &second, "deletes more than one key");
        }
        // Keys that a pattern or another program names are many.
        ("DEL" | "UNLINK", _) if words[1..].iter().any(|key| key.contains([text::HOLES, text::OUTPUT, text::STAR])) => {
            call.asks(Effect::Database, "the store", "deletes keys that cannot be told");
        }
        ("SHUTDOWN", _) | ("DEBUG", "SEGFAULT" | "RESTART" | "CRASH-AND-RECOVER" | "PANIC" | "OOM") => {
            call.asks(Effect::Service, "the store", "stops the store");
        }
        ("CONFIG", "SET") => {
            let pairs: Vec<String> = words[2..].iter().step_by(2).map(|name| name.to_ascii_lowercase()).collect();
            let risky = [
                "dir",
                "dbfilename",
                "requirepass",
                "masterauth",
                "appendfilename",
                "appenddirname",
                "appendonly",
                "save",
                "protected-mode",
                "bind",
                "logfile",
                "aclfile",
                "rename-command",
                "enable-module-command",
                "masteruser",
                "enable-debug-command",
                "enable-protected-configs",
                "unixsocket",
            ];
            if pairs.iter().any(|name| risky.contains(&name.as_str())) {
                call.asks(Effect::Persistence, &third, "changes where the store writes, or who may use it");
            }
        }
        ("CONFIG", "GET") => {
            let asked = text::unglob(&third).to_ascii_lowercase();
            let secret = ["requirepass", "masterauth", "masteruser", "tls-key-file-pass"]
                .iter()
                .any(|name| text::matches(&text::live(&asked), name));
            if secret {
                call.asks(Effect::SecretRead, &third, "shows the password of the store");
                call.print(&SECRET.to_string());
            }
        }
        ("MODULE", "LOAD" | "LOADEX") => {
            call.asks(Effect::CannotTell, &third, "loads code into the store that cannot be read here");
        }
        ("SLAVEOF" | "REPLICAOF", host) if host != "NO" => {
            call.asks(Effect::Database, "the store", "replaces all that is in the store by a copy of another one");
        }
        ("ACL", "SETUSER" | "DELUSER" | "LOAD") => call.asks(Effect::Account, &third, "changes who may use the store"),
        ("ACL", "GETUSER" | "LIST") => {}
        ("EVAL" | "EVAL_RO", _) => redis_script(call, words.get(1).map_or("", String::as_str)),
        ("CLIENT", "KILL") if words.len() > 3 => {
            call.asks(Effect::ProcessKill, "clients", "ends connections of a kind");
        }
        _ => {}
    }
}

/// Lua for Redis: the commands stand in strings.
fn redis_script(call: &mut Call<'_, '_>, script: &str) {
    let lower = script.to_ascii_lowercase();
    if text::is_unknown(&lower) {
        return call.cannot_tell("gives a store a script of which a part is unknown");
    }
    let names = |word: &str| lower.contains(&format!("'{word}'")) || lower.contains(&format!("\"{word}\""));
    if names("flushall")
        || names("flushdb")
        || names("shutdown")
        || (names("keys") || names("scan")) && (names("del") || names("unlink"))
    {
        call.asks(Effect::Database, "the store", "empties the store by a script");
    }
}

// -------------------------------------------------------------------------------------------------------------- others

fn deletes(call: &mut Call<'_, '_>, target: &str, why: &str) {
    call.asks(Effect::Database, target, why);
}

fn etcd(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("w", "endpoints= cert= key= cacert= user= password= command-timeout= dial-timeout= write-out= limit= rev= prefix from-key range prev-kv recursive dir help version"));
    if options.asks_only() {
        return;
    }
    let words: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    let target = words.get(1..).unwrap_or_default().join(" ");
    match words.as_slice() {
        ["del" | "delete" | "rm" | "rmdir", keys @ ..]
            if options.has("prefix from-key range recursive r") || keys.len() > 1 =>
        {
            deletes(call, &target, "deletes every key of a range");
        }
        ["snapshot", "restore", ..] => deletes(call, &target, "replaces what is stored by a copy"),
        ["member" | "user" | "role" | "auth", "remove" | "delete" | "disable" | "revoke-role", ..] => {
            call.asks(Effect::Account, &target, "changes members or users of the store");
        }
        ["lease", "revoke", ..] => deletes(call, &target, "deletes every key of a lease"),
        // What a transaction does stands on its input.
        ["txn", ..]
            if call.input().is_some_and(|input| {
                input.lines().any(|line| line.trim_start().starts_with("del") && line.contains("prefix"))
            }) =>
        {
            deletes(call, "a range", "deletes every key of a range");
        }
        _ => {}
    }
    call.print(&HOLE.to_string());
}

fn consul(call: &mut Call<'_, '_>) {
    let options = call.options(&single_dash(
        "http-addr= token= datacenter= id= service= reason= namespace= recurse cas modify-index= help",
        true,
    ));
    let words: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    let target = words.join(" ");
    match words.as_slice() {
        ["kv", "delete", ..] if options.has("recurse") => deletes(call, &target, "deletes every key below it"),
        ["snapshot", "restore", ..] => deletes(call, &target, "replaces what is stored by a copy"),
        ["leave" | "force-leave" | "maint", ..]
        | ["services", "deregister", ..]
        | ["operator", _, "remove-peer", ..] => {
            call.asks(Effect::Service, &target, "takes a service or a node out of use");
        }
        ["acl" | "namespace" | "partition" | "peering" | "config" | "intention", .., "delete"]
        | ["acl", _, "delete", ..]
        | ["namespace" | "partition" | "peering" | "config" | "intention", "delete", ..] => {
            deletes(call, &target, "deletes rights or settings");
        }
        ["exec", ..] => {
            let at = call.arguments().iter().position(|word| word == "exec").unwrap_or(0);
            let script: Vec<String> =
                call.arguments()[at + 1..].iter().skip_while(|word| word.starts_with('-')).cloned().collect();
            call.shell(&super::shells::joined(&script));
        }
        ["lock" | "watch", ..] => {
            let script: Vec<String> =
                options.operands.iter().skip(if words[0] == "lock" { 2 } else { 1 }).cloned().collect();
            call.shell(&super::shells::joined(&script));
        }
        _ => {}
    }
    call.print(&HOLE.to_string());
}

fn zookeeper(call: &mut Call<'_, '_>) {
    let mut lines: Vec<Vec<String>> = vec![call.arguments().to_vec()];
    if let Some(input) = call.input() {
        lines.extend(input.lines().take(2_000).map(crate::shell::split));
    }
    for words in lines {
        if words.iter().any(|word| matches!(word.as_str(), "deleteall" | "rmr")) {
            let target = words.last().cloned().unwrap_or_default();
            deletes(call, &target, "deletes every node below it");
        }
    }
    call.print(&HOLE.to_string());
}

fn rabbit(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("nptuHPVf", "node= vhost= timeout= host= port= username= password= help version"));
    let words: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    let target = words.join(" ");
    match words.first().copied().unwrap_or_default() {
        "purge_queue" | "delete_queue" | "purge" | "delete" | "reset" | "force_reset" | "delete_vhost"
        | "clear_policy" => {
            deletes(call, &target, "deletes queues or what waits in them");
        }
        "delete_user" | "change_password" | "add_user" | "set_user_tags" => {
            call.asks(Effect::Account, &target, "changes who may use the broker");
        }
        "stop" | "stop_app" | "shutdown" | "forget_cluster_node" | "close_all_connections" | "disable" => {
            call.asks(Effect::Service, &target, "stops the broker or a part of it");
        }
        "eval" => call.cannot_tell("runs code in the broker"),
        _ => {}
    }
    call.print(&HOLE.to_string());
}

fn kafka(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("", "bootstrap-server= zookeeper= topic= group= entity-name= entity-type= command-config= offset-json-file= delete list describe create alter execute reset-offsets remove dry-run help version"));
    if options.asks_only() {
        return;
    }
    let target = options.value("topic group entity-name").unwrap_or("topics").to_owned();
    if call.name.contains("server-stop") {
        call.asks(Effect::Service, "the broker", "stops the broker");
    } else if call.name.contains("delete-records") || options.has("delete delete-offsets") {
        deletes(call, &target, "deletes topics, records or groups");
    } else if options.has("reset-offsets") && options.has("execute") {
        deletes(call, &target, "moves what a group has read");
    } else if call.name.contains("acls") && options.has("remove") {
        call.asks(Effect::Account, &target, "changes who may use the broker");
    }
    call.print(&HOLE.to_string());
}

/// Clients with an object and a verb: `nats stream purge NAME`, `rpk topic delete NAME`.
fn topics(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("sfX", "server= context= brokers= user= password= admin-url= help version"));
    let words: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    let verbs =
        ["purge", "rm", "delete", "del", "remove", "truncate", "trim-prefix", "rmm", "clear-backlog", "terminate"];
    if words.iter().take(3).any(|word| verbs.contains(word)) {
        let one_key = call.name == "nats" && matches!(words.as_slice(), ["kv" | "kvs", "del" | "rm", _, _, ..]);
        if !one_key && !options.asks_only() {
            deletes(call, &words.join(" "), "deletes streams, topics or what is in them");
        }
    }
    call.print(&HOLE.to_string());
}

fn others(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("cupn", "cluster= username= password= bucket= host= config= help version"));
    let words: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    let target = words.join(" ");
    let deleting = words.iter().take(3).any(|word| {
        matches!(
            *word,
            "delete"
                | "delete_indices"
                | "delete-indices"
                | "delete-snapshots"
                | "bucket-delete"
                | "bucket-flush"
                | "drop"
                | "delete_collection"
        )
    });
    if deleting {
        deletes(call, &target, "deletes a collection, an index or a bucket");
    } else if words.iter().any(|word| matches!(*word, "stop" | "restart" | "failover" | "server-stop")) {
        call.asks(Effect::Service, &target, "stops the store");
    } else if words.first() == Some(&"database")
        && words.iter().any(|word| matches!(*word, "load" | "restore"))
        && call.arguments().iter().any(|word| word.starts_with("--overwrite"))
    {
        deletes(call, &target, "replaces what is stored by a copy");
    }
}

#[cfg(test)]
mod tests {
    use crate::{Verdict, World, judge};

    #[test]
    fn commands_that_empty_a_store_need_a_person() {
        for (dangerous, safe) in [
            ("redis-cli -h c -n 2 flushdb async", "redis-cli -h c -n 2 dbsize"),
            ("printf 'GET a\\nFLUSHALL\\n' | redis-cli", "printf 'GET a\\n' | redis-cli"),
            ("redis-cli SHUTDOWN", "redis-cli SET shutdown 1"),
            ("redis-cli config set dir /root/.ssh", "redis-cli config set maxmemory 1gb"),
            ("redis-cli config get '*'", "redis-cli config get maxmemory"),
            ("redis-cli --scan --pattern 'a:*' | xargs redis-cli del", "redis-cli del a:1"),
            ("redis-cli eval \"redis.call('flushdb')\" 0", "redis-cli eval \"return redis.call('get', KEYS[1])\" 1 a"),
            ("valkey-cli MODULE LOAD ./evil.so", "valkey-cli MODULE LIST"),
            ("redis-cli REPLICAOF h 6379", "redis-cli REPLICAOF NO ONE"),
            ("etcdctl del a --prefix", "etcdctl del a"),
            ("consul kv delete -recurse a/", "consul kv delete a/b"),
            ("zkCli.sh -server h deleteall /a", "zkCli.sh -server h ls /a"),
            ("rabbitmqctl -n r purge_queue q", "rabbitmqctl -n r list_queues"),
            (
                "kafka-topics --bootstrap-server k --delete --topic t",
                "kafka-topics --bootstrap-server k --describe --topic t",
            ),
            ("nats stream rm S -f", "nats stream ls"),
            ("rpk topic delete t", "rpk topic list"),
            ("solr delete -c app", "solr status"),
        ] {
            let world = World::new("/home/u", "/home/u/project");
            assert_eq!(judge(dangerous, &world).verdict, Verdict::Dangerous, "{dangerous}");
            assert_eq!(judge(safe, &world).verdict, Verdict::Safe, "{safe} {:?}", judge(safe, &world).findings);
        }
    }
}
