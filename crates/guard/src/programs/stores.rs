//! Clients of databases: which of their words hold statements, and the commands of stores that speak no SQL.

use super::environment::side_door;
use super::options::{Grammar, gnu, single_dash};
use super::sql::{self, Dialect};
use super::{Program, interpreters, prints};
use crate::eval::{Call, Writing};
use crate::finding::Effect;
use crate::text::{self, HOLE, PLAIN, REMOTE};

pub(super) const PROGRAMS: &[Program] = &[
    prints(
        &[
            "psql",
            "pgcli",
            "ysqlsh",
            "vsql",
            "gsql",
            "cockroach",
            "usql",
            "mysql",
            "mariadb",
            "mycli",
            "mysqlsh",
            "sqlcmd",
            "osql",
            "mssql-cli",
            "isql",
            "tsql",
            "clickhouse-client",
            "clickhouse",
            "snowsql",
            "snow",
            "cqlsh",
            "ycqlsh",
            "trino",
            "presto",
            "hive",
            "beeline",
            "impala-shell",
            "spark-sql",
            "sqlplus",
            "sql",
            "dolt",
            "cypher-shell",
            "influx",
            "bsqldb",
            "db2",
            "questdb",
            "turso",
            "litecli",
            "ksql",
        ],
        client,
    ),
    prints(&["sqlite3", "sqlite", "sqlcipher", "duckdb"], sqlite),
    prints(&["pg_dump", "pg_dumpall", "mysqldump", "mariadb-dump", "mongodump", "mongoexport"], dump),
    prints(&["pg_restore"], pg_restore),
    prints(&["dropdb", "dropuser", "pg_dropcluster", "pg_resetwal", "memcflush", "pg_archivecleanup"], drops),
    prints(&["pg_ctl", "pg_ctlcluster"], pg_ctl),
    prints(&["mysqladmin", "mariadb-admin"], mysqladmin),
    prints(&["mongosh", "mongo"], mongo),
    prints(&["mongorestore", "mongoimport", "mysqlimport", "myloader", "arangorestore", "mariadb-import"], restore),
];

/// How a client takes its statements.
struct Client {
    names: &'static [&'static str],
    dialect: Dialect,
    grammar: Grammar,
    /// Options whose value is statements.
    statements: &'static str,
    /// Options whose value is a file with statements.
    files: &'static str,
    /// Options whose value is a file, or after `|` a program, that gets the output.
    outputs: &'static str,
}

const CLIENTS: &[Client] = &[
    Client {
        names: &["psql", "pgcli", "ysqlsh", "vsql", "gsql", "usql"],
        dialect: Dialect::Postgres,
        grammar: gnu(
            "cdfFhLoPpRTUv",
            "command= dbname= file= field-separator= host= log-file= output= port= pset= record-separator= table-attr= \
             username= set= variable= list echo-all echo-errors expanded html csv no-psqlrc quiet single-step tuples-only \
             no-align no-password password single-transaction help=? version",
        ),
        statements: "c command",
        files: "f file",
        outputs: "o output L log-file",
    },
    Client {
        names: &["mysql", "mariadb", "mycli", "mysqlsh", "litecli"],
        dialect: Dialect::Mysql,
        grammar: gnu(
            "eDhPuSp?",
            "execute= init-command= init-command-add= database= host= port= user= socket= password=? pager=? tee= delimiter= \
             defaults-file= defaults-extra-file= defaults-group-suffix= default-character-set= protocol= prompt= file= sqlc= \
             ssl-ca= ssl-cert= ssl-key= max-allowed-packet= connect-timeout= login-path= batch silent table skip-column-names \
             raw force help version",
        ),
        statements: "e execute init-command init-command-add sqlc",
        files: "file",
        outputs: "tee",
    },
    Client {
        names: &["sqlcmd", "osql", "mssql-cli", "isql", "tsql", "bsqldb"],
        dialect: Dialect::Other,
        grammar: gnu("QqidoSUPDHlhsawtcvmKrFfy", "query= input-file= output-file= server= database-name="),
        statements: "Q q query",
        files: "i input-file",
        outputs: "o output-file",
    },
    Client {
        names: &["clickhouse-client", "clickhouse"],
        dialect: Dialect::Other,
        grammar: gnu(
            "qhudf",
            "query= queries-file= host= port= user= password= database= format= config-file= param_= multiquery secure help version",
        ),
        statements: "q query",
        files: "queries-file",
        outputs: "",
    },
    Client {
        names: &["cypher-shell"],
        dialect: Dialect::Other,
        grammar: gnu(
            "aupdfP",
            "address= username= password= database= file= param= format= encryption= non-interactive help version",
        ),
        statements: "",
        files: "f file",
        outputs: "",
    },
    Client {
        names: &["influx"],
        dialect: Dialect::Other,
        grammar: single_dash(
            "execute= database= host= port= username= password= precision= format= n= i= o= name= id= org= token= bucket= path=",
            true,
        ),
        statements: "execute",
        files: "",
        outputs: "",
    },
];

/// Clients without a row of their own.
const COMMON: Client = Client {
    names: &[],
    dialect: Dialect::Other,
    grammar: gnu(
        "eqfuphUdikc",
        "execute= query= query-string= sql= file= filename= user= password= host= url= database= keyspace= schema= catalog= server= \
         output-format= certs-dir= init-file= query-file= format= insecure help version",
    ),
    statements: "e q c execute query query-string sql",
    files: "f file filename i init-file query-file",
    outputs: "",
};

fn client(call: &mut Call<'_, '_>) {
    let name = call.name.clone();
    let row = CLIENTS.iter().find(|client| client.names.contains(&name.as_str())).unwrap_or(&COMMON);
    let options = call.options(&row.grammar);
    if options.asks_only() {
        return call.print(&PLAIN.to_string());
    }
    call.print(&HOLE.to_string());
    let mut statements: Vec<String> = options.values(row.statements).map(str::to_owned).collect();
    let mut bare = false;
    match name.as_str() {
        "cypher-shell" => {
            statements.extend(options.operands.iter().cloned());
            bare = statements.is_empty();
            statements.iter().for_each(|statement| cypher(call, statement));
        }
        "influx" => influx(call, &options.operands),
        "db2" | "turso" | "ksql" => statements.extend(options.operands.iter().cloned()),
        // Verbs in front of the options: only one of them takes statements.
        "cockroach" | "clickhouse" | "dolt" | "snow" | "questdb" | "sql"
            if !options
                .operands
                .first()
                .is_some_and(|verb| matches!(verb.as_str(), "sql" | "client" | "local" | "shell")) =>
        {
            if let Some(verb) = options.operands.first().filter(|_| name == "cockroach") {
                let stops = matches!(verb.as_str(), "quit")
                    || verb == "node"
                        && options.operands.iter().any(|word| matches!(word.as_str(), "drain" | "decommission"));
                if stops {
                    call.asks(Effect::Service, "the database", "takes a node of the database out of service");
                }
            }
            return;
        }
        _ => {}
    }
    for statement in &statements {
        sql::script(call, row.dialect, statement);
    }
    for target in options.values(row.outputs).map(str::to_owned).collect::<Vec<_>>() {
        match target.strip_prefix('|') {
            Some(script) => call.shell(script),
            None => drop(call.write(&target, Writing::Edit)),
        }
    }
    if let Some(pager) = options.value("pager").map(str::to_owned) {
        side_door(call, &pager);
    }
    let files: Vec<String> = options.values(row.files).map(str::to_owned).collect();
    for file in &files {
        if file == "-" {
            bare = true;
        } else {
            sql::file(call, row.dialect, file);
        }
    }
    if (statements.is_empty() && files.is_empty() || bare)
        && let Some(input) = input(call)
    {
        sql::script(call, row.dialect, &input);
        if name == "cypher-shell" {
            cypher(call, &input);
        }
    }
}

/// Programs that print a file or a copy of a database as it is.
const OPEN: [&str; 18] = [
    "cat", "zcat", "bzcat", "xzcat", "zstdcat", "lz4cat", "gunzip", "gzip", "bzip2", "xz", "zstd", "pv", "unzip", "7z",
    "tar", "gpg", "tail", "head",
];

const DUMPS: [&str; 6] = ["pg_dump", "pg_dumpall", "mysqldump", "mariadb-dump", ".dump", "sqldump"];

/// The statements on the input. A file of the project, or a copy of a database, runs openly; text that something else
/// made up may be anything.
fn input(call: &mut Call<'_, '_>) -> Option<String> {
    let by = call.input_by();
    let input = call.input()?;
    if input != HOLE.to_string() {
        return Some(input);
    }
    let first = by.split(' ').next().map_or("", crate::eval::base_name);
    if !(by.is_empty() || OPEN.contains(&first) || by.split(' ').any(|word| DUMPS.contains(&word))) {
        call.cannot_tell("gives a database statements that another program makes up");
    }
    None
}

/// Statements of Neo4j: `MATCH (n) DETACH DELETE n` spares nothing.
fn cypher(call: &mut Call<'_, '_>, script: &str) {
    for statement in script.split(';') {
        let lower = statement.to_ascii_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
        let filtered = words.contains(&"where") || lower.contains('{');
        if words.contains(&"delete") && !filtered {
            call.asks(
                Effect::Database,
                "the graph",
                "deletes every node that it matches, and it matches without a filter",
            );
        }
    }
}

fn influx(call: &mut Call<'_, '_>, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["delete", ..] | [_, "delete" | "rm", ..] => {
            call.asks(Effect::Database, &words.join(" "), "deletes stored measurements or who may see them");
        }
        _ => {}
    }
}

/// `sqlite3 [options] file [statements]…`
fn sqlite(call: &mut Call<'_, '_>) {
    const SQLITE: Grammar = Grammar {
        valued: "csf",
        ..single_dash(
            "cmd= init= separator= newline= nullvalue= vfs= mmap= maxsize= lookaside= pagecache= file= key= readonly header \
         csv json batch bail interactive list line column box table markdown html safe ascii echo help version",
            true,
        )
    };
    let options = call.options(&SQLITE);
    if options.has("help version") {
        return call.print(&PLAIN.to_string());
    }
    call.print(&HOLE.to_string());
    for file in options.values("init f file").map(str::to_owned).collect::<Vec<_>>() {
        sql::file(call, Dialect::Sqlite, &file);
    }
    let statements: Vec<String> =
        options.operands.iter().skip(1).cloned().chain(options.values("cmd c s").map(str::to_owned)).collect();
    for statement in &statements {
        sql::script(call, Dialect::Sqlite, statement.trim_start());
    }
    if options.operands.len() < 2
        && !options.has("c s")
        && let Some(input) = input(call)
    {
        sql::script(call, Dialect::Sqlite, &input);
    }
}

fn dump(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("fhpUdnNtTjFZur", "file= result-file= host= port= username= user= password=? dbname= db= out= archive=? table= schema= format= uri= collection= gzip help version"));
    for file in options.values("f file r result-file out").map(str::to_owned).collect::<Vec<_>>() {
        if file != "-" {
            call.write(&file, Writing::Replace);
        }
    }
    call.print(&HOLE.to_string());
}

fn pg_restore(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("dfFIjLnNPStThpU", "dbname= file= format= index= jobs= use-list= schema= table= host= port= username= clean create list if-exists data-only schema-only help version"));
    if let Some(file) = options.value("f file").filter(|file| *file != "-").map(str::to_owned) {
        call.write(&file, Writing::Replace);
    }
    if options.has("c clean") && options.has("d dbname") && !options.has("l list") {
        let database = options.value("d dbname").unwrap_or_default().to_owned();
        call.asks(Effect::Database, &database, "drops what is there before it restores");
    }
    call.print(&HOLE.to_string());
}

fn drops(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("hpUx", "host= port= username= servers= dry-run help version"));
    if options.asks_only() || options.has("n dry-run") {
        return;
    }
    let target = options.operands.join(" ");
    call.asks(Effect::Database, &target, "drops or empties a database");
}

fn pg_ctl(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("DlmotcpUPNSe", "pgdata= log= mode= options= timeout="));
    if options
        .operands
        .iter()
        .any(|word| matches!(word.as_str(), "stop" | "restart" | "kill" | "promote" | "register" | "unregister"))
    {
        call.asks(Effect::Service, "the database", "stops or restarts the database");
    }
}

fn mysqladmin(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("hPuSp?i", "host= port= user= socket= password=? protocol= sleep= count= help version"));
    let words: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    if let Some(at) = words.iter().position(|word| *word == "drop") {
        let database = words.get(at + 1).copied().unwrap_or_default().to_owned();
        call.asks(Effect::Database, &database, "drops a database");
    }
    if words.contains(&"shutdown") {
        call.asks(Effect::Service, "the database", "stops the database");
    }
    if words.contains(&"password") {
        call.asks(Effect::Account, "the database", "changes a password");
    }
    call.print(&HOLE.to_string());
}

fn restore(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("dcuphD", "db= collection= uri= host= port= user= username= password=? file= archive=? nsInclude= nsFrom= nsTo= type= dir= drop dryRun delete overwrite overwrite-tables overwrite-collection help version"));
    if options.asks_only() || options.has("dryRun") {
        return;
    }
    let mysql = matches!(call.name.as_str(), "mysqlimport" | "mariadb-import");
    let overwrites = options.has("drop overwrite-tables o") || mysql && options.has("delete d");
    if overwrites {
        call.asks(Effect::Database, "the database", "drops what is there before it restores");
    }
}

// ------------------------------------------------------------------------------------------------------------- MongoDB

fn mongo(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("uphf", "eval= file= username= password= host= port= authenticationDatabase= tls ssl quiet norc shell nodb json=? help version"));
    if options.asks_only() {
        return call.print(&PLAIN.to_string());
    }
    call.print(&HOLE.to_string());
    let mut scripts: Vec<String> = options.values("eval").map(str::to_owned).collect();
    let files: Vec<String> = options
        .values("f file")
        .map(str::to_owned)
        .chain(options.operands.iter().filter(|word| word.ends_with(".js") || word.ends_with(".mongodb")).cloned())
        .collect();
    for file in &files {
        interpreters::run_file(call, file, Some(interpreters::Language::JavaScript));
        let text = call.read(file);
        if text != HOLE.to_string() {
            scripts.push(text);
        }
    }
    if scripts.is_empty() && files.is_empty() {
        scripts.extend(input(call));
    }
    for script in scripts {
        if script.contains(REMOTE) {
            call.asks(Effect::ExecuteRemote, "a database", "runs code that comes over the network, unread");
        } else {
            documents(call, &script);
            interpreters::code(call, interpreters::Language::JavaScript, &script);
        }
    }
}

/// The code without blanks, comments and the content of strings, except where a string names a property or a command.
fn compact(code: &str) -> String {
    let mut out = String::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => {}
            '/' if chars.peek() == Some(&'/') => while chars.next_if(|c| *c != '\n').is_some() {},
            '/' if chars.peek() == Some(&'*') => {
                let mut last = ' ';
                for c in chars.by_ref().skip(1) {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            '"' | '\'' | '`' => {
                let mut string = String::new();
                while let Some(next) = chars.next() {
                    if next == '\\' {
                        chars.next();
                    } else if next == c {
                        break;
                    } else {
                        string.push(next);
                    }
                }
                let word = string.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
                if word && out.ends_with('[') {
                    // `a["drop"]` is `a.drop`.
                    out.pop();
                    out.push('.');
                    out.push_str(&string);
                    chars.next_if_eq(&']');
                } else if word && out.ends_with(['{', ',']) {
                    out.push_str(&string);
                } else {
                    out.push_str("''");
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// Calls of `MongoDB` that lose documents.
fn documents(call: &mut Call<'_, '_>, code: &str) {
    if text::is_unknown(code.trim_start().get(..4).unwrap_or(code)) {
        return call.cannot_tell("gives a database code that cannot be told");
    }
    let code = compact(code);
    for name in
        [".drop(", ".dropDatabase(", ".dropIndexes(", ".dropIndex(", ".dropUser(", ".dropRole(", ".dropAllUsers("]
    {
        if code.contains(name) {
            call.asks(Effect::Database, "the database", "drops it, with all that is in it");
        }
    }
    if code.contains(".shutdownServer(") || code.contains("{shutdown:") {
        call.asks(Effect::Service, "the database", "stops the database");
    }
    for command in ["{drop:", "{dropDatabase:", "{dropIndexes:"] {
        if code.contains(command) {
            call.asks(Effect::Database, "the database", "drops it, with all that is in it");
        }
    }
    for name in [".deleteMany(", ".remove(", ".updateMany(", ".update(", "{q:", "{deleteMany:{filter:"] {
        let mut rest = code.as_str();
        while let Some(at) = rest.find(name) {
            rest = &rest[at + name.len()..];
            // Without `multi` only one document changes.
            if unfiltered(rest) && (name != ".update(" || rest.contains("multi:true")) {
                call.asks(Effect::Database, "the database", "deletes or changes every document of a collection");
            }
        }
    }
}

/// Whether the first argument of a call is a filter that every document passes.
fn unfiltered(arguments: &str) -> bool {
    let key = [
        "{_id:{$exists:true}}",
        "{_id:{$ne:null}}",
        "{_id:{$exists:1}}",
        "{$expr:true}",
        "{$where:''}",
        "{$or:[{}]}",
        "{$and:[{}]}",
    ];
    arguments.starts_with("{}") || arguments.starts_with(')') || key.iter().any(|filter| arguments.starts_with(filter))
}

#[cfg(test)]
mod tests {
    use crate::{Verdict, World, judge};

    #[test]
    fn clients_are_read_where_they_take_statements() {
        for (dangerous, safe) in [
            ("psql -U app -tAc 'truncate t' app", "psql -U app -tAc 'table t' app"),
            ("psql app --comm='drop table t'", "psql app --set=a='drop table t' -c 'select 1'"),
            ("psql -c 'select 1' -c 'drop table t'", "psql -c 'select 1' -c 'select 2'"),
            ("psql -o '|rm -rf data' -c 'select 1'", "psql -o out.txt -c 'select 1'"),
            ("echo 'drop table t' > m.sql; psql -f m.sql", "psql -f m.sql"),
            ("awk '/x/' a.sql | psql", "cat a.sql | psql"),
            ("./make-sql | psql", "pg_dump a | psql b"),
            ("echo \"$SQL\" | psql", "psql < schema.sql"),
            ("mysql -uroot -psecret -Bse 'drop table t' app", "mysql -uroot -psecret -Bse 'show tables' app"),
            ("mysql --pager='rm -rf data' app", "mysql --pager=less app"),
            ("mysql <<'E'\nsystem rm -rf data\nE", "mysql <<'E'\nselect 1;\nE"),
            ("cockroach sql --insecure -e 'drop table t'", "cockroach sql --insecure -e 'show tables'"),
            ("clickhouse local -q 'drop table t'", "clickhouse local -q 'select 1'"),
            ("cqlsh h -e 'truncate k.t'", "cqlsh h -e 'describe tables'"),
            ("cypher-shell -u neo4j 'match (n) detach delete n'", "cypher-shell 'match (n {id: 1}) detach delete n'"),
            ("influx bucket delete -n x", "influx bucket list"),
            ("sqlite3 a.db 'select 1' 'drop table t'", "sqlite3 a.db 'select 1'"),
            ("sqlite3 a.db -cmd '.shell rm -rf data' .tables", "sqlite3 -header -csv a.db 'select 1'"),
            ("duckdb -c 'drop table t' a.duckdb", "duckdb -c 'select 1'"),
            ("pg_restore -cd app a.dump", "pg_restore -c -f a.sql a.dump"),
            ("dropdb -i app", "createdb app"),
            ("pg_ctl -D data stop", "pg_ctl -D data status"),
            ("mysqladmin -u root -f drop app", "mysqladmin -u root status"),
            ("mongorestore --drop dump", "mongorestore --drop --dryRun dump"),
        ] {
            pair(dangerous, safe);
        }
    }

    #[test]
    fn code_for_documents() {
        for (dangerous, safe) in [
            ("db.users.drop()", "db.users.find()"),
            ("db['users']['drop']()", "print('db.users.drop()')"),
            ("db.users.deleteMany( {} )", "db.users.deleteMany({ a: 1 })"),
            ("db.users.remove({})", "db.users.deleteOne({})"),
            ("db.users.updateMany({}, {$set: {a: 1}})", "db.users.updateMany({b: 2}, {$set: {a: 1}})"),
            ("db.runCommand({drop: 'users'})", "db.runCommand({ping: 1})"),
            ("db.adminCommand({ shutdown: 1 })", "// db.users.drop()\ndb.stats()"),
        ] {
            let command = |code: &str| format!("mongosh app --eval '{}'", code.replace('\'', r"'\''"));
            pair(&command(dangerous), &command(safe));
        }
    }

    fn pair(dangerous: &str, safe: &str) {
        let world = World::new("/home/u", "/home/u/project");
        assert_eq!(judge(dangerous, &world).verdict, Verdict::Dangerous, "{dangerous}");
        assert_eq!(judge(safe, &world).verdict, Verdict::Safe, "{safe} {:?}", judge(safe, &world).findings);
    }
}
