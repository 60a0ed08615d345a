//! Tools that move the schema of a database: most steps can be taken back, some begin by dropping everything.

use super::options::{gnu, leading, single_dash};
use super::sql::{self, Dialect};
use super::{Program, interpreters, plain};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text::{self, HOLE};

pub(super) const PROGRAMS: &[Program] = &[
    plain(&["rails", "rake", "hanami", "sequel"], rails),
    plain(&["manage.py", "django-admin", "django", "manage"], django),
    plain(&["alembic"], alembic),
    plain(&["flask", "aerich"], flask),
    plain(&["artisan"], artisan),
    plain(&["console"], symfony),
    plain(&["prisma"], prisma),
    plain(&["wp"], wordpress),
    plain(&["drush"], drush),
    plain(
        &["flyway", "liquibase", "dbmate", "goose", "migrate", "atlas", "sqitch", "tern", "refinery", "phinx", "umzug"],
        steps,
    ),
    plain(
        &["knex", "sequelize", "sequelize-cli", "typeorm", "mikro-orm", "drizzle-kit", "node-pg-migrate", "db-migrate"],
        steps,
    ),
    plain(&["diesel", "sqlx", "sea-orm-cli", "cargo-sqlx"], steps),
    plain(&["mix", "dotnet-ef", "hasura", "ecto"], steps),
];

fn drops(call: &mut Call<'_, '_>, step: &str) {
    call.asks(Effect::Database, step, "drops or empties the database of the application");
}

/// Steps that lose what the database holds, by their words in order. `*` stands for any words between.
const STEPS: &[(&[&str], &[&[&str]])] = &[
    (&["flyway"], &[&["clean"]]),
    (
        &["liquibase"],
        &[
            &["drop-all"],
            &["dropAll"],
            &["rollback"],
            &["rollback-count"],
            &["rollbackCount"],
            &["rollback-to-date"],
            &["rollbackToDate"],
            &["rollback-one-update"],
            &["rollback-one-changeset"],
        ],
    ),
    (&["dbmate"], &[&["drop"]]),
    (&["goose"], &[&["reset"], &["down-to", "0"]]),
    (&["migrate"], &[&["drop"], &["down", "-all"]]),
    (&["atlas"], &[&["schema", "clean"]]),
    (&["sqitch"], &[&["revert"]]),
    (&["tern"], &[&["migrate", "--destination", "0"]]),
    (&["phinx"], &[&["rollback", "-t", "0"]]),
    (&["knex"], &[&["migrate:rollback", "--all"]]),
    (&["sequelize", "sequelize-cli"], &[&["db:drop"], &["db:migrate:undo:all"], &["db:seed:undo:all"]]),
    (&["typeorm"], &[&["schema:drop"]]),
    (&["mikro-orm"], &[&["schema:drop"], &["schema:fresh"], &["migration:fresh"], &["database:drop"]]),
    (&["drizzle-kit"], &[&["push", "--force"], &["drop"]]),
    (&["db-migrate"], &[&["reset"], &["db:drop"]]),
    (
        &["diesel"],
        &[
            &["database", "reset"],
            &["database", "drop"],
            &["migration", "revert", "--all"],
            &["migration", "revert", "-a"],
        ],
    ),
    (
        &["sqlx", "cargo-sqlx"],
        &[
            &["database", "drop"],
            &["database", "reset"],
            &["db", "drop"],
            &["db", "reset"],
            &["migrate", "revert", "--target-version", "0"],
        ],
    ),
    (&["sea-orm-cli"], &[&["migrate", "fresh"], &["migrate", "refresh"], &["migrate", "reset"]]),
    (
        &["mix", "ecto"],
        &[&["ecto.drop"], &["ecto.reset"], &["ecto.rollback", "--all"], &["ash.reset"], &["ash.tear_down"]],
    ),
    (&["dotnet-ef"], &[&["database", "drop"], &["database", "update", "0"]]),
    (&["hasura"], &[&["metadata", "clear"], &["migrate", "delete"]]),
    (&["aerich"], &[&["downgrade", "-d"]]),
];

fn steps(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().flat_map(|word| word.split('=')).map(str::to_owned).collect();
    let shows =
        words.iter().any(|word| matches!(word.as_str(), "--dry-run" | "--dry-run-output" | "--plan" | "--help" | "-h"));
    let name = call.name.clone();
    let Some((_, lists)) = STEPS.iter().find(|(names, _)| names.contains(&name.as_str())) else { return };
    for list in *lists {
        let mut rest = words.iter();
        if !shows && list.iter().all(|step| rest.any(|word| word == step)) {
            drops(call, &list.join(" "));
        }
    }
}

/// Rake's tasks. `db:setup` and `db:schema:load` drop the tables that they then make.
fn rails(call: &mut Call<'_, '_>) {
    let options = call
        .options(&gnu("fIReprE", "rakefile= libdir= environment= tasks=? dry-run prereqs describe=? all help version"));
    if options.asks_only() || options.has("T tasks D describe P prereqs n dry-run W") {
        return;
    }
    let words = options.operands.clone();
    match words.first().map(String::as_str) {
        Some("runner" | "r") => {
            let code = words.get(1).cloned().or_else(|| call.input()).unwrap_or_default();
            if code == "-" || code.ends_with(".rb") {
                return;
            }
            records(call, &code);
            return interpreters::code(call, interpreters::Language::Ruby, &code);
        }
        Some("console" | "c") => {
            if let Some(code) = call.input() {
                records(call, &code);
                interpreters::code(call, interpreters::Language::Ruby, &code);
            }
            return;
        }
        Some("dbconsole" | "db") => {
            if let Some(text) = call.input().filter(|text| *text != HOLE.to_string()) {
                sql::script(call, Dialect::Other, &text);
            }
            return;
        }
        Some("new" | "generate" | "g" | "server" | "s" | "routes" | "test" | "t" | "credentials:edit") => return,
        Some("credentials:show" | "encrypted:show" | "secrets:show") => {
            return call.asks(Effect::SecretRead, "credentials", "shows what is secret in it");
        }
        _ => {}
    }
    for task in &words {
        let task = task.split('[').next().unwrap_or(task);
        // Names of several databases follow: `db:drop:primary`.
        let loses = [
            "db:drop",
            "db:reset",
            "db:purge",
            "db:setup",
            "db:schema:load",
            "db:structure:load",
            "db:migrate:reset",
            "db:truncate",
            "db:truncate_all",
            "db:seed:replant",
            "db:clean",
            "db:wipe",
        ]
        .iter()
        .any(|name| task.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')));
        if loses && !task.contains(":dump") {
            drops(call, task);
        }
    }
}

/// Code for an object mapper: calls that delete or change whatever their table holds.
fn records(call: &mut Call<'_, '_>, code: &str) {
    let compact: String = code.chars().filter(|c| *c == '\n' || !c.is_whitespace()).collect();
    for statement in compact.split(['\n', ';']) {
        let narrowed =
            [".where(", ".filter(", ".find(", ".find_by(", ".exclude(", "where(", "->find(", ".get(", ".limit("]
                .iter()
                .any(|name| statement.contains(name));
        let all = [
            ".delete_all",
            ".destroy_all",
            ".update_all(",
            ".all().delete()",
            ".all()._raw_delete(",
            ".objects.all().update(",
            ".delete_by()",
            "->truncate()",
            "::truncate()",
            ".truncate_tables(",
            ")->delete()",
            "::query()->delete()",
            ".drop_table(",
            "::all()->each->delete()",
            ".flushdb",
            ".flushall",
            ".drop_all(",
        ]
        .iter()
        .any(|name| statement.contains(name));
        let whatever = statement.contains("truncate()") || statement.contains("flush") || statement.contains("drop_");
        if all && (!narrowed || whatever) {
            call.asks(
                Effect::Database,
                "the database of the application",
                "deletes or changes every record of a table",
            );
        }
    }
    for name in ["execute(", "exec_query(", "statement(", "unprepared(", "raw("] {
        for rest in code.split(name).skip(1) {
            let text = rest.trim_start();
            if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\''))
                && let Some(statement) = text[1..].split(quote).next()
            {
                sql::script(call, Dialect::Other, statement);
            }
        }
    }
}

fn django(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("vc", "settings= pythonpath= database= verbosity= command= interface= noinput no-input traceback plan check help version"));
    if options.asks_only() {
        return;
    }
    let words: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["flush" | "reset_db" | "reset_schema" | "drop_db" | "drop_test_database", ..] => drops(call, words[0]),
        ["migrate", .., "zero"] if !options.has("plan check fake") => drops(call, "migrate zero"),
        ["shell" | "shell_plus" | "runscript", ..] => {
            let code = options.value("c command").map(str::to_owned).or_else(|| call.input()).unwrap_or_default();
            records(call, &code);
            interpreters::code(call, interpreters::Language::Python, &code);
        }
        ["dbshell", rest @ ..] => {
            let statements: Vec<String> = options
                .values("c command")
                .map(str::to_owned)
                .chain(rest.iter().map(|word| (*word).to_owned()))
                .collect();
            for statement in statements {
                sql::script(call, Dialect::Postgres, &statement);
            }
            if let Some(text) = call.input().filter(|text| *text != HOLE.to_string()) {
                sql::script(call, Dialect::Postgres, &text);
            }
        }
        _ => {}
    }
}

fn alembic(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("cnx", "config= name= raiseerr sql tag= help version"));
    downgrades(call, &options.operands, options.has("sql"));
}

fn downgrades(call: &mut Call<'_, '_>, words: &[String], shows: bool) {
    if let [verb, target, ..] = words
        && verb == "downgrade"
        && target == "base"
        && !shows
    {
        drops(call, "downgrade base");
    }
}

/// `flask db downgrade base`
fn flask(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("Aedx", "app= env-file= directory= x-arg= tag= debug sql help version"));
    if call.name == "aerich" {
        return steps(call);
    }
    if let Some((verb, rest)) = options.operands.split_first()
        && verb == "db"
    {
        downgrades(call, rest, options.has("sql"));
    }
    if options.operands.first().is_some_and(|verb| verb == "shell")
        && let Some(code) = call.input()
    {
        records(call, &code);
        interpreters::code(call, interpreters::Language::Python, &code);
    }
}

fn artisan(call: &mut Call<'_, '_>) {
    let options = call.options(&leading("", "env= help version"));
    let Some(task) = options.operands.first().cloned() else { return };
    let rest = gnu("", "execute= database= path= step= force seed pretend env=").read(&options.operands[1..]);
    match task.as_str() {
        "migrate:fresh" | "migrate:refresh" | "migrate:reset" | "db:wipe" if !rest.has("pretend") => drops(call, &task),
        "queue:flush" | "queue:clear" | "model:prune" | "horizon:clear" if !rest.has("pretend") => {
            call.asks(Effect::Database, &task, "deletes waiting jobs or old records");
        }
        "down" | "horizon:terminate" | "queue:restart" => {
            call.asks(Effect::Service, &task, "takes the application out of service");
        }
        "tinker" => {
            let code = rest.value("execute").map(str::to_owned).or_else(|| call.input()).unwrap_or_default();
            records(call, &code);
            interpreters::code(call, interpreters::Language::Php, &code);
        }
        _ => {}
    }
}

/// `bin/console`, whose tasks may be cut short: `d:d:d` is `doctrine:database:drop`.
fn symfony(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "enc",
        "env= connection= em= force append dump-sql if-exists full-database no-interaction help version",
    ));
    let Some(task) = options.operands.first().cloned() else { return };
    if options.asks_only() {
        return;
    }
    let is = |full: &str| {
        let (own, full): (Vec<&str>, Vec<&str>) = (task.split(':').collect(), full.split(':').collect());
        own.len() == full.len() && own.iter().zip(full).all(|(own, full)| !own.is_empty() && full.starts_with(own))
    };
    if is("doctrine:query:sql") || is("dbal:run-sql") || is("doctrine:query:dql") {
        for statement in &options.operands[1..] {
            sql::script(call, Dialect::Other, statement);
        }
    } else if is("doctrine:database:drop") || is("doctrine:schema:drop") || is("doctrine:mongodb:schema:drop") {
        // Without `--force` it only says what it would do.
        if options.has("force f") && !options.has("dump-sql") {
            drops(call, &task);
        }
    } else if is("doctrine:fixtures:load") && !options.has("append")
        || is("doctrine:migrations:migrate") && options.operands.iter().any(|word| word == "first" || word == "0")
    {
        drops(call, &task);
    }
}

fn prisma(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("f", "schema= file= url= stdin force force-reset accept-data-loss skip-seed help version"));
    if options.asks_only() || options.has("h") {
        return;
    }
    let words: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["migrate", "reset", ..] => drops(call, "migrate reset"),
        ["db", "push", ..] if options.has("force-reset accept-data-loss") => drops(call, "db push"),
        ["db", "execute", ..] => {
            if let Some(file) = options.value("file").map(str::to_owned) {
                sql::file(call, Dialect::Postgres, &file);
            } else if let Some(text) = call.input().filter(|text| *text != HOLE.to_string()) {
                sql::script(call, Dialect::Postgres, &text);
            }
        }
        _ => {}
    }
}

fn wordpress(call: &mut Call<'_, '_>) {
    let options = call
        .options(&gnu("", "path= url= ssh= http= user= require= exec= yes dry-run all all-tables force help version"));
    if options.asks_only() {
        return;
    }
    for code in options.values("exec").map(str::to_owned).collect::<Vec<_>>() {
        interpreters::code(call, interpreters::Language::Php, &code);
    }
    let words: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["db", "reset" | "drop" | "clean", ..] | ["site", "empty" | "delete", ..] => drops(call, &words.join(" ")),
        ["db", "query" | "cli", rest @ ..] => {
            let statements: Vec<String> = rest
                .iter()
                .map(|word| (*word).to_owned())
                .chain(call.input().filter(|text| *text != HOLE.to_string()))
                .collect();
            for statement in statements {
                sql::script(call, Dialect::Mysql, &statement);
            }
        }
        ["eval", code, ..] => interpreters::code(call, interpreters::Language::Php, code),
        ["post" | "user" | "comment" | "term", "delete", rest @ ..]
            if rest.len() > 1 || rest.iter().any(|id| id.contains(text::is_hole)) =>
        {
            call.asks(Effect::Database, &words.join(" "), "deletes records of the site");
        }
        _ => {}
    }
}

fn drush(call: &mut Call<'_, '_>) {
    let options =
        call.options(&super::options::Grammar { valued: "rl", ..single_dash("root= uri= yes help version", true) });
    let words: Vec<&str> = options.operands.iter().map(String::as_str).filter(|word| !word.starts_with('@')).collect();
    match words.as_slice() {
        [
            "sql:drop" | "sql-drop" | "site:install" | "site-install" | "si" | "sql:create" | "sql-create"
            | "entity:delete" | "edel",
            ..,
        ] => {
            drops(call, words[0]);
        }
        ["sql:query" | "sql-query" | "sqlq", statement, ..] => sql::script(call, Dialect::Mysql, statement),
        ["sql:cli" | "sql-cli" | "sqlc", ..] => {
            if let Some(text) = call.input().filter(|text| *text != HOLE.to_string()) {
                sql::script(call, Dialect::Mysql, &text);
            }
        }
        ["php:eval" | "php-eval" | "ev" | "eval", code, ..] => {
            interpreters::code(call, interpreters::Language::Php, code);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::{Verdict, World, judge};

    #[test]
    fn steps_that_drop_everything_need_a_person() {
        for (dangerous, safe) in [
            ("rails db:reset", "rails db:migrate"),
            ("bin/rails db:drop:primary db:create", "bin/rails db:schema:dump"),
            ("rake db:drop", "rake -T db:drop"),
            ("rails runner 'User.delete_all'", "rails runner 'User.where(id: 3).delete_all'"),
            ("rails dbconsole <<< 'drop table t'", "rails dbconsole <<< 'select 1'"),
            ("python manage.py flush --noinput", "python manage.py sqlflush"),
            ("./manage.py migrate shop zero", "./manage.py migrate shop 0003"),
            ("manage.py shell -c 'U.objects.all().delete()'", "manage.py shell -c 'U.objects.filter(id=1).delete()'"),
            ("python manage.py dbshell <<< 'drop table t'", "python manage.py dbshell <<< 'select 1'"),
            ("alembic -c a.ini downgrade base", "alembic downgrade base --sql"),
            ("flask --app x db downgrade base", "flask db upgrade"),
            ("flyway -url=jdbc:x clean", "flyway info"),
            ("liquibase rollback v1", "liquibase rollback-sql v1"),
            ("prisma migrate reset -f", "prisma migrate dev"),
            ("prisma db push --force-reset", "prisma db push"),
            ("prisma db execute --stdin <<< 'drop table t'", "prisma db execute --stdin <<< 'select 1'"),
            ("knex migrate:rollback --all", "knex migrate:rollback"),
            ("sequelize db:migrate:undo:all", "sequelize db:migrate:undo"),
            ("typeorm schema:drop -d ds.js", "typeorm schema:log -d ds.js"),
            ("php artisan migrate:fresh --seed", "php artisan migrate:fresh --pretend"),
            ("php artisan tinker --execute='User::truncate();'", "php artisan tinker --execute='User::count();'"),
            ("bin/console d:d:d --force", "bin/console doctrine:database:drop"),
            ("php bin/console dbal:run-sql 'drop table t'", "php bin/console dbal:run-sql 'select 1'"),
            ("mix ecto.reset", "mix ecto.migrate"),
            ("diesel database reset", "diesel migration run"),
            ("sqlx database drop -y", "sqlx migrate run"),
            ("migrate -path m -database x down -all", "migrate -path m -database x up"),
            ("goose -dir m postgres x reset", "goose -dir m postgres x up"),
            ("wp db query 'drop table t'", "wp db query 'select 1'"),
            ("drush @prod sql:drop -y", "drush status"),
        ] {
            let world = World::new("/home/u", "/home/u/project");
            assert_eq!(judge(dangerous, &world).verdict, Verdict::Dangerous, "{dangerous}");
            assert_eq!(judge(safe, &world).verdict, Verdict::Safe, "{safe} {:?}", judge(safe, &world).findings);
        }
    }
}
