//! npm and its kin: projects, the whole system, registries, and the programs that they find or fetch.

use super::options::{Grammar, Options, gnu, leading};
use super::registries::{self, ADDRESS, PUBLISHES, SYSTEM, bare_name};
use super::{Program, builds, interpreters, prints, shells};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text::HOLE;

pub(super) const PROGRAMS: &[Program] = &[
    prints(&["npm", "cnpm", "tnpm"], npm),
    prints(&["npx", "pnpx", "bunx"], npx),
    prints(&["yarn", "yarnpkg"], yarn),
    prints(&["pnpm"], pnpm),
    prints(&["bun"], bun),
];

const INSTALLS: Effect = Effect::Package;

const NPM: Grammar = gnu(
    "wC",
    "prefix= registry= cache= workspace= userconfig= globalconfig= loglevel= tag= otp= access= script-shell= \
     node-options= location= scope= omit= include= depth= global global-style save save-dev save-exact dry-run force \
     yes help version recursive workspaces ignore-scripts filter= dir= package= call= shell= editor= json long \
     parseable",
);

/// Whether what a word names is not in the registry. `user/name` is a repository on GitHub.
fn is_address(word: &str) -> bool {
    registries::is_bare_address(word)
        || (word.matches('/').count() == 1
            && !word.starts_with(['@', '.', '/', '~'])
            && !word.contains('@')
            && !word.ends_with('/')
            && !word.ends_with(".tgz"))
}

fn is_global(options: &Options) -> bool {
    options.has("g global") || options.value("location") == Some("global")
}

/// Judges what is installed by where it comes from and for whom.
fn installs(call: &mut Call<'_, '_>, options: &Options, packages: &[String]) {
    let target = packages.join(" ");
    if packages.iter().any(|word| is_address(word)) {
        call.asks(Effect::ExecuteRemote, &target, ADDRESS);
    }
    if is_global(options) || registries::is_elevated(call) {
        call.asks(INSTALLS, &target, SYSTEM);
    }
    let registry = options.value("registry").filter(|address| !is_known(address)).map(str::to_owned);
    if let Some(registry) = registry {
        call.asks(Effect::ExecuteRemote, &registry, "installs code from a registry that is not the usual one");
    }
    let places: Vec<String> = packages.iter().filter(|word| word.contains(['/', '.'])).cloned().collect();
    for place in places {
        builds::project_code(call, &place);
    }
    let directory = options.value("prefix C dir").unwrap_or(".").to_owned();
    builds::project_code(call, &directory);
}

fn is_known(address: &str) -> bool {
    ["https://registry.npmjs.org", "https://registry.yarnpkg.com", "https://registry.npmmirror.com", "http://localhost"]
        .iter()
        .any(|known| address.starts_with(known))
}

fn publishes(call: &mut Call<'_, '_>, options: &Options, operands: &[String]) {
    if !options.has("dry-run n") {
        call.asks(INSTALLS, &operands.join(" "), PUBLISHES);
    }
}

fn npm(call: &mut Call<'_, '_>) {
    let arguments = call.arguments().to_vec();
    call.print(&HOLE.to_string());
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let options = NPM.read(&arguments[..end]);
    let behind = arguments.get(end + 1..).unwrap_or_default();
    verb_of_npm(call, &arguments, &options, behind);
}

fn verb_of_npm(call: &mut Call<'_, '_>, arguments: &[String], options: &Options, behind: &[String]) {
    let Some((verb, rest)) = options.operands.split_first() else { return };
    if options.has("help h") {
        return;
    }
    let first = rest.first().map_or("", String::as_str);
    if let Some(shell) = options.value("script-shell").map(str::to_owned) {
        super::environment::side_door(call, &shell);
    }
    match verb.as_str() {
        "install" | "i" | "in" | "ins" | "inst" | "insta" | "instal" | "isnt" | "isntall" | "add" | "ci"
        | "clean-install" | "install-clean" | "it" | "install-test" | "cit" | "update" | "up" | "upgrade"
        | "udpate" | "link" | "ln" | "rebuild" | "rb" => {
            if !options.has("dry-run") {
                installs(call, options, rest);
            }
        }
        "uninstall" | "un" | "unlink" | "remove" | "rm" | "r" => {
            if (is_global(options) || registries::is_elevated(call)) && !options.has("dry-run") {
                call.asks(INSTALLS, &rest.join(" "), SYSTEM);
            }
        }
        "publish" | "unpublish" | "deprecate" | "undeprecate" => publishes(call, options, rest),
        "dist-tag" | "dist-tags" | "tag" if matches!(first, "add" | "rm" | "remove" | "set") => {
            publishes(call, options, rest);
        }
        "owner" | "author" | "access" | "team" | "org" | "hook" | "token" | "trust"
            if !matches!(
                first,
                "" | "ls"
                    | "list"
                    | "get"
                    | "ls-packages"
                    | "ls-collaborators"
                    | "list-packages"
                    | "list-collaborators"
            ) =>
        {
            call.asks(INSTALLS, &rest.join(" "), "changes who may publish");
        }
        "profile" if first.starts_with("set") || first.contains("2fa") => {
            call.asks(Effect::Account, "npm profile", "changes an account");
        }
        "config" | "c" | "set" => {
            let sets = verb == "set" || matches!(first, "set" | "delete" | "rm" | "edit" | "fix");
            let shell = rest.iter().any(|word| word.starts_with("script-shell") || word.starts_with("node-options"));
            if sets && (shell || options.value("location") != Some("project")) {
                call.asks(Effect::Persistence, &rest.join(" "), "changes settings for all projects");
            }
        }
        "exec" | "x" => {
            let at = arguments.iter().position(|word| word == verb).map_or(arguments.len(), |at| at + 1);
            fetch_and_run(call, &arguments[at..]);
        }
        "explore" => {
            let words = if behind.is_empty() { rest.get(1..).unwrap_or_default() } else { behind };
            call.shell(&words.join(" "));
        }
        "init" | "create" | "innit" => {
            if is_address(first) {
                call.asks(Effect::ExecuteRemote, first, "runs code from an address");
            }
        }
        "cache" | "ls" | "list" | "view" | "info" | "search" | "audit" | "outdated" | "prune" | "pkg" | "get" => {}
        _ => {
            let directory = options.value("prefix C dir").unwrap_or(".").to_owned();
            builds::project_code(call, &directory);
        }
    }
}

const NPX: Grammar = leading(
    "pcw",
    "package= call= registry= cache= workspace= shell= script-shell= node-options= yes no no-install install quiet \
     ignore-existing help version shell-mode bun silent",
);

fn npx(call: &mut Call<'_, '_>) {
    let arguments = call.arguments().to_vec();
    call.print(&HOLE.to_string());
    fetch_and_run(call, &arguments);
}

/// `npx [options] package[@version] arguments`: a known program is judged, an address asks.
fn fetch_and_run(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = NPX.read(arguments);
    let mut words = options.operands.clone();
    if words.is_empty() && options.has("help version h v") {
        return;
    }
    let named = words.first().cloned();
    let address = options.values("p package").map(str::to_owned).chain(named.clone()).find(|word| is_address(word));
    if let Some(address) = address {
        return call.asks(Effect::ExecuteRemote, &address, "runs code from an address");
    }
    if let Some(registry) = options.value("registry").filter(|address| !is_known(address)).map(str::to_owned) {
        call.asks(Effect::ExecuteRemote, &registry, "runs code from a registry that is not the usual one");
    }
    if let Some(script) = options.value("c call").map(str::to_owned) {
        return call.shell(&script);
    }
    builds::project_code(call, ".");
    let Some(first) = words.first_mut() else { return };
    *first = program_of(first);
    call.run(words);
}

/// The program that a package brings, where the two have different names.
fn program_of(package: &str) -> String {
    match package.split_once('@').filter(|(name, _)| !name.is_empty()).map_or(package, |(name, _)| name) {
        "@changesets/cli" => return "changeset".into(),
        "aws-cdk" => return "cdk".into(),
        "firebase-tools" => return "firebase".into(),
        "netlify-cli" => return "netlify".into(),
        "cdktf-cli" => return "cdktf".into(),
        "@vscode/vsce" => return "vsce".into(),
        "@railway/cli" => return "railway".into(),
        _ => {}
    }
    let scoped = package.strip_prefix('@').is_some();
    let name = bare_name(package);
    match (scoped, name.as_str()) {
        (true, "cli") => package[1..].split('/').next().unwrap_or_default().to_owned(),
        _ => name,
    }
}

/// Programs of packages that `yarn name` and `pnpm name` run; other names are those of scripts of the project.
const BINARIES: &[&str] = &[
    "rimraf",
    "del-cli",
    "cdk",
    "cdktf",
    "wrangler",
    "vercel",
    "netlify",
    "firebase",
    "serverless",
    "sls",
    "lerna",
    "changeset",
    "semantic-release",
    "release-it",
    "np",
    "prisma",
    "sequelize",
    "sequelize-cli",
    "knex",
    "typeorm",
    "vsce",
    "gh-pages",
    "supabase",
    "nx",
    "pm2",
    "kill-port",
    "fkill",
    "drizzle-kit",
    "shx",
    "mikro-orm",
    "amplify",
    "sst",
];

fn script_or_binary(call: &mut Call<'_, '_>, words: &[String]) {
    builds::project_code(call, ".");
    if words.first().is_some_and(|name| BINARIES.contains(&name.as_str())) {
        call.run(words.to_vec());
    }
}

/// What follows a word on the command line, as it was written.
fn after<'a>(arguments: &'a [String], word: &str) -> &'a [String] {
    arguments.iter().position(|argument| argument == word).map_or(&[], |at| &arguments[at + 1..])
}

fn yarn(call: &mut Call<'_, '_>) {
    let arguments = call.arguments().to_vec();
    call.print(&HOLE.to_string());
    let options = NPM.read(&arguments);
    let Some((verb, rest)) = options.operands.split_first() else {
        if !options.has("help version h v") {
            builds::project_code(call, ".");
        }
        return;
    };
    if options.has("help h") && !matches!(verb.as_str(), "run" | "exec" | "dlx") {
        return;
    }
    let first = rest.first().map_or("", String::as_str);
    match verb.as_str() {
        "add" | "install" | "up" | "upgrade" | "upgrade-interactive" | "link" => installs(call, &options, rest),
        "remove" if registries::is_elevated(call) => call.asks(INSTALLS, &rest.join(" "), SYSTEM),
        "global" if matches!(first, "add" | "remove" | "upgrade" | "upgrade-interactive") => {
            call.asks(INSTALLS, &rest[1..].join(" "), SYSTEM);
        }
        "publish" => publishes(call, &options, rest),
        "npm" if matches!(first, "publish" | "unpublish") => publishes(call, &options, rest),
        "npm" if first == "tag" && rest.get(1).is_some_and(|verb| verb == "add" || verb == "remove") => {
            publishes(call, &options, rest);
        }
        "tag" | "owner" | "team" if !matches!(first, "" | "list" | "ls") => publishes(call, &options, rest),
        "dlx" | "create" => fetch_and_run(call, after(&arguments, verb)),
        "exec" => call.shell(&shells::joined(after(&arguments, "exec"))),
        "run" => script_or_binary(call, after(&arguments, "run")),
        "workspace" => {
            let inner = after(&arguments, "workspace").get(1..).unwrap_or_default();
            again(call, inner);
        }
        "workspaces" => {
            let inner = if first == "foreach" { after(&arguments, "foreach") } else { after(&arguments, first) };
            let inner = leading("j", "include= exclude= from= jobs=").read(inner);
            again(call, &inner.operands);
        }
        "config" if matches!(first, "set" | "delete" | "unset") && !options.has("json") => {
            let name = rest.get(1).cloned().unwrap_or_default();
            if options.has("H home") || !name.contains("node") {
                call.asks(Effect::Persistence, &name, "changes settings for all projects");
            }
        }
        "plugin" if first == "import" && rest.get(1).is_some_and(|word| registries::is_bare_address(word)) => {
            call.asks(Effect::ExecuteRemote, first, ADDRESS);
        }
        "set" if rest.get(1).is_some_and(|word| registries::is_bare_address(word)) => {
            call.asks(Effect::ExecuteRemote, first, ADDRESS);
        }
        "cache" | "info" | "list" | "why" | "outdated" | "audit" | "pack" | "version" => {}
        other => script_or_binary(call, &[&[other.to_owned()], after(&arguments, other)].concat()),
    }
}

/// The same program with other arguments.
fn again(call: &mut Call<'_, '_>, arguments: &[String]) {
    if arguments.is_empty() {
        return;
    }
    let mut words = vec![call.name.clone()];
    words.extend_from_slice(arguments);
    call.run(words);
}

fn pnpm(call: &mut Call<'_, '_>) {
    let arguments = call.arguments().to_vec();
    call.print(&HOLE.to_string());
    // `-r` and `-F` stand before the verb; those after it may be the program's own.
    let options = gnu(
        "FCw",
        "filter= dir= workspace= registry= tag= otp= access= prefix= script-shell= \
        location= global dry-run help version",
    )
    .read(&arguments);
    let Some((verb, rest)) = options.operands.split_first() else { return };
    let first = rest.first().map_or("", String::as_str);
    match verb.as_str() {
        "dlx" => fetch_and_run(call, after(&arguments, "dlx")),
        "exec" | "x" => {
            let inner = leading("", "").read(after(&arguments, verb)).operands;
            call.run(inner);
        }
        "create" => fetch_and_run(call, after(&arguments, verb)),
        "env" if matches!(first, "use" | "add" | "remove" | "rm") && options.has("g global") => {
            call.asks(INSTALLS, &rest.join(" "), SYSTEM);
        }
        "self-update" => call.asks(INSTALLS, "pnpm", SYSTEM),
        "run" => script_or_binary(call, after(&arguments, "run")),
        "store" | "env" | "deploy" | "patch" | "setup" | "server" | "why" | "licenses" => {}
        "install" | "i" | "add" | "update" | "up" | "upgrade" | "remove" | "rm" | "uninstall" | "un" | "publish"
        | "unpublish" | "deprecate" | "dist-tag" | "owner" | "access" | "team" | "token" | "config" | "c" | "set"
        | "link" | "ln" | "unlink" | "rebuild" | "rb" | "list" | "ls" | "view" | "info" | "audit" | "outdated"
        | "prune" | "init" => {
            verb_of_npm(call, &arguments, &options, &[]);
        }
        other => script_or_binary(call, &[&[other.to_owned()], after(&arguments, other)].concat()),
    }
}

fn bun(call: &mut Call<'_, '_>) {
    let arguments = call.arguments().to_vec();
    call.print(&HOLE.to_string());
    let options = leading("erpc", "eval= print= preload= config= cwd= env-file= require= import=").read(&arguments);
    for source in options.values("e eval p print").map(str::to_owned).collect::<Vec<_>>() {
        interpreters::code(call, interpreters::Language::JavaScript, &source);
    }
    let Some((verb, rest)) = options.operands.split_first() else { return };
    let given = NPM.read(rest);
    if given.has("help h") && !matches!(verb.as_str(), "run" | "x") {
        return;
    }
    match verb.as_str() {
        "add" | "a" | "install" | "i" | "update" | "link" => installs(call, &given, &given.operands),
        "remove" | "rm" if is_global(&given) => call.asks(INSTALLS, &rest.join(" "), SYSTEM),
        "publish" => publishes(call, &given, &given.operands),
        "x" | "create" => fetch_and_run(call, rest),
        "upgrade" => call.asks(INSTALLS, "bun", SYSTEM),
        "exec" => call.shell(&rest.join(" ")),
        "run" => {
            let words = leading("", "cwd= filter= shell=").read(rest).operands;
            match words.first() {
                Some(file) if file.contains(['/', '.']) || file == "-" => {
                    interpreters::run_file(call, &file.clone(), Some(interpreters::Language::JavaScript));
                }
                _ => script_or_binary(call, &words),
            }
        }
        "pm" | "build" | "init" | "outdated" => {}
        file if file.contains(['/', '.']) => {
            interpreters::run_file(call, file, Some(interpreters::Language::JavaScript));
        }
        other => script_or_binary(call, &[&[other.to_owned()], rest].concat()),
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn the_system_and_the_registry_are_not_the_project() {
        pairs(&[
            ("npm i -g typescript", "npm i -D typescript"),
            ("npm i user/repo", "npm i @scope/name"),
            ("npm --registry https://r.x.example publish", "npm --registry https://r.x.example ping"),
            ("npm dist-tag add x@1 latest", "npm dist-tag ls x"),
            ("npm owner add bob x", "npm owner ls x"),
            ("npm config set registry https://r.x.example", "npm config get registry"),
            ("yarn global add x", "yarn add x"),
            ("yarn workspaces foreach -A npm publish", "yarn workspaces foreach -A run build"),
            ("pnpm -r publish", "pnpm -r build"),
            ("pnpm add -g x", "pnpm store prune"),
            ("bun publish", "bun add zod"),
        ]);
    }

    #[test]
    fn programs_that_are_fetched_are_judged() {
        pairs(&[
            ("npx github:user/repo", "npx --no-install eslint src"),
            ("npx rimraf dist", "npx prettier --check ."),
            ("npx -c 'rm -rf data'", "npx -c 'echo hi'"),
            ("npx @changesets/cli publish", "npx changeset status"),
            ("npm exec -- rm -rf data", "npm exec -- eslint ."),
            ("pnpm exec rm -rf data", "pnpm exec tsc"),
            ("yarn rimraf dist", "yarn format"),
            ("yarn dlx https://x.example/p.tgz", "yarn dlx tsc"),
        ]);
    }
}
