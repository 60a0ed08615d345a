//! Package managers of languages: what a project declares is its own business; the whole system, code from a bare
//! address, and versions that others use are not.

use super::options::{Grammar, Options, gnu, leading};
use super::verbs::{self, Rule, Tool, asks, fine, tool};
use super::{Program, builds, prints};
use crate::eval::{Call, Writing};
use crate::finding::Effect;
use crate::text::HOLE;

pub(super) const PROGRAMS: [Program; 30] = verbs::programs(&TOOLS, model);
pub(super) const PYTHON: &[Program] =
    &[prints(&["pip"], |call| pip(call, 0)), prints(&["uv"], uv), prints(&["uvx", "pipx"], pipx)];

pub(super) const PUBLISHES: &str = "publishes or withdraws versions that others use";
pub(super) const ADDRESS: &str = "installs code from an address, which nobody has reviewed";
pub(super) const SYSTEM: &str = "installs or removes packages for the whole system";
const INSTALLS: Effect = Effect::Package;

/// Whether a package is named by where it lies, and not by its name in a registry.
pub(super) fn is_bare_address(word: &str) -> bool {
    let word = word.rsplit_once(" @ ").map_or(word, |(_, address)| address);
    let word = word.trim_start_matches(['\'', '"']);
    let scheme = [
        "git+",
        "hg+",
        "svn+",
        "bzr+",
        "http://",
        "https://",
        "ftp://",
        "git://",
        "ssh://",
        "git@",
        "github:",
        "gitlab:",
        "bitbucket:",
        "gist:",
        "git:",
        "sourcehut:",
        "tarball+",
        "git+ssh:",
    ]
    .iter()
    .any(|scheme| word.starts_with(scheme));
    // `name@https://…` as npm has it.
    scheme || word.split_once('@').is_some_and(|(name, rest)| !name.is_empty() && rest.contains("://"))
}

/// Whether the command runs with the rights of somebody else.
pub(super) fn is_elevated(call: &mut Call<'_, '_>) -> bool {
    call.machine.elevated
}

/// Installing files or directories that this very command fetched is running them.
fn fetched(call: &mut Call<'_, '_>, operands: &[String]) {
    for operand in operands {
        if (operand.contains(['/', '.'])) && !is_bare_address(operand) {
            builds::project_code(call, operand);
        }
    }
}

/// Registries that everybody uses.
fn is_known_index(address: &str) -> bool {
    ["https://pypi.org/", "https://test.pypi.org/", "https://download.pytorch.org/", "https://files.pythonhosted.org/"]
        .iter()
        .any(|known| address.starts_with(known))
}

const PIP: Grammar = gnu(
    "recifbtdp",
    "requirement= editable= constraint= index-url= extra-index-url= find-links= target= prefix= root= python-version= \
     platform= abi= implementation= src= trusted-host= proxy= cache-dir= log= python= build-option= global-option= \
     config-settings= no-binary= only-binary= progress-bar= report= timeout= retries= upgrade-strategy= cert= \
     client-cert= exists-action= wheel-dir= dest= dry-run user upgrade system break-system-packages no-deps yes \
     quiet \
     verbose no-index no-cache-dir force-reinstall pre isolated require-virtualenv help version format= path= \
     outdated",
);

/// `pip verb …`; `skip` words come before the verb.
fn pip(call: &mut Call<'_, '_>, skip: usize) {
    let arguments: Vec<String> = call.arguments().get(skip..).unwrap_or_default().to_vec();
    let options = PIP.read(&arguments);
    call.print(&HOLE.to_string());
    let Some((verb, packages)) = options.operands.split_first() else { return };
    if options.has("help h dry-run") {
        return;
    }
    match verb.as_str() {
        "install" | "uninstall" | "wheel" | "sync" => {}
        "config" => {
            if packages.first().is_some_and(|verb| matches!(verb.as_str(), "set" | "unset" | "edit")) {
                let name = packages.get(1).cloned().unwrap_or_default();
                call.asks(Effect::Persistence, &name, "changes from where packages come");
            }
            return;
        }
        _ => return,
    }
    let target = packages.join(" ");
    if verb != "wheel" && (is_elevated(call) || options.has("break-system-packages system")) {
        call.asks(INSTALLS, &target, SYSTEM);
    }
    let addresses = packages.iter().map(String::as_str).chain(options.values("r requirement e editable c constraint"));
    if addresses.into_iter().any(is_bare_address) {
        call.asks(Effect::ExecuteRemote, &target, ADDRESS);
    }
    let index = options
        .values("i index-url extra-index-url f find-links")
        .any(|address| address.contains("://") && !is_known_index(address));
    let variable = ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"]
        .iter()
        .any(|name| call.sees(name).is_some_and(|address| !is_known_index(&address)));
    if (index || variable) && verb != "uninstall" {
        call.asks(Effect::ExecuteRemote, &target, "installs code from a registry that is not the usual one");
    }
    for directory in options.values("t target prefix root").map(str::to_owned).collect::<Vec<_>>() {
        call.write(&directory, Writing::Replace);
    }
    let mut files: Vec<String> = packages.to_vec();
    files.extend(options.values("r requirement e editable").map(str::to_owned));
    fetched(call, &files);
}

const UV: Grammar = leading(
    "",
    "directory= project= config-file= cache-dir= python= color= allow-insecure-host= quiet verbose offline \
        no-cache no-config",
);

fn uv(call: &mut Call<'_, '_>) {
    let options = UV.read(call.arguments());
    let Some((verb, rest)) = options.operands.split_first() else { return };
    if options.has("help h") || rest.first().is_some_and(|word| word == "--help") {
        return;
    }
    let (verb, rest) = (verb.clone(), rest.to_vec());
    match verb.as_str() {
        "pip" => {
            let at = call.arguments().len() - rest.len();
            pip(call, at);
        }
        "run" => run_tool(call, &rest, &RUN, false),
        "tool" => match rest.first().map(String::as_str) {
            Some("run") => run_tool(call, &rest[1..], &RUN, true),
            Some("install") => install_tool(call, &rest[1..]),
            _ => {}
        },
        "add" | "sync" | "lock" => {
            let options = PIP.read(&rest);
            if verb == "add" && (options.operands.iter().any(|word| is_bare_address(word)) || options.has("git")) {
                call.asks(Effect::ExecuteRemote, &options.operands.join(" "), ADDRESS);
            }
            fetched(call, &options.operands);
        }
        "publish" if !rest.iter().any(|word| word == "--dry-run") => call.asks(INSTALLS, "a package", PUBLISHES),
        "self" if rest.first().is_some_and(|word| word == "uninstall") => call.asks(INSTALLS, "uv", SYSTEM),
        _ => {}
    }
    call.print(&HOLE.to_string());
}

const RUN: Grammar = leading(
    "pmwC",
    "from= with= with-editable= with-requirements= spec= python= module= package= env-file= extra= group= only-group= \
     index-url= index= default-index= extra-index-url= directory= project= pip-args= isolated no-project script \
     no-sync frozen locked help version quiet verbose no-cache",
);

/// Runs a tool from a registry: its name says what it does, an address says nothing.
fn run_tool(call: &mut Call<'_, '_>, arguments: &[String], grammar: &Grammar, named: bool) {
    let options = grammar.read(arguments);
    if options.has("help h") {
        return;
    }
    let mut words = options.operands.clone();
    let program = words.first().cloned().unwrap_or_default();
    let sources = options.values("from with with-editable spec").map(str::to_owned).chain([program.clone()]);
    if sources.into_iter().any(|source| is_bare_address(&source)) {
        call.asks(Effect::ExecuteRemote, &program, "runs code from an address");
        return;
    }
    if options.values("with-requirements index-url index default-index extra-index-url").any(|a| a.contains("://")) {
        call.asks(Effect::ExecuteRemote, &program, "runs code from a registry that is not the usual one");
    }
    if let Some(module) = options.value("m module").filter(|_| !named) {
        let mut python = vec!["python".to_owned(), "-m".to_owned(), module.to_owned()];
        python.append(&mut words);
        return call.run(python);
    }
    if program.ends_with(".py") && !named {
        words.insert(0, "python".to_owned());
        return call.run(words);
    }
    builds::project_code(call, ".");
    if let Some(first) = words.first_mut() {
        *first = bare_name(first);
    }
    call.run(words);
}

/// `@scope/name@1.2` and `name==1.2` without scope and version; a path stays a path.
pub(super) fn bare_name(package: &str) -> String {
    if package.starts_with(['.', '/', '~']) {
        return package.to_owned();
    }
    let scoped = package.strip_prefix('@').and_then(|rest| rest.split_once('/')).map_or(package, |(_, name)| name);
    let end = scoped.find(['@', '=', '[', '<', '>', '~']).unwrap_or(scoped.len());
    scoped[..end].to_owned()
}

fn install_tool(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = PIP.read(arguments);
    let with = options.values("spec from with").map(str::to_owned).collect::<Vec<_>>();
    let target = options.operands.join(" ");
    if options.operands.iter().chain(&with).any(|word| is_bare_address(word)) {
        call.asks(Effect::ExecuteRemote, &target, ADDRESS);
    } else if is_elevated(call) || options.has("global") {
        call.asks(INSTALLS, &target, SYSTEM);
    }
    fetched(call, &options.operands);
}

fn pipx(call: &mut Call<'_, '_>) {
    let arguments = call.arguments().to_vec();
    if call.name == "uvx" {
        run_tool(call, &arguments, &RUN, true);
    } else if let Some((verb, rest)) = arguments.split_first() {
        match verb.as_str() {
            "run" => run_tool(call, rest, &RUN, true),
            "install" | "inject" | "upgrade" | "reinstall" | "uninstall" => install_tool(call, rest),
            _ => {}
        }
    }
    call.print(&HOLE.to_string());
}

const POETRY: &[Rule] = &[
    asks("publish", INSTALLS, PUBLISHES),
    asks("config pypi-token*|http-basic*", Effect::Persistence, "changes stored credentials"),
    asks("config repositories*", Effect::Persistence, "changes from where packages come"),
    asks("env remove", Effect::Delete, "deletes an environment with all that is installed in it"),
    asks("self remove", INSTALLS, SYSTEM),
];
const CONDA: &[Rule] = &[
    asks("env remove", Effect::Delete, "deletes an environment with all that is installed in it"),
    asks("remove|uninstall|delete", Effect::Delete, "deletes an environment with all that is installed in it")
        .only("all"),
    asks("config", Effect::Persistence, "changes from where packages come")
        .only("add append prepend set remove remove-key")
        .unless("get show env"),
];
const PUBLISHERS: &[Rule] = &[
    asks("upload|publish|release|register|unpublish|delete|remove", INSTALLS, PUBLISHES),
    asks("trunk|repo push|delete|deprecate|add-owner|remove-owner", INSTALLS, PUBLISHES),
    asks("pub|hex publish|retire", INSTALLS, PUBLISHES),
    asks("publish-*|upload-*", INSTALLS, PUBLISHES),
];
const ALWAYS: &[Rule] = &[asks("*", INSTALLS, PUBLISHES)];
const GEM: &[Rule] = &[
    asks("push|yank", INSTALLS, PUBLISHES),
    asks("owner", INSTALLS, "changes who may publish").only("a add r remove"),
    asks("update", INSTALLS, SYSTEM).only("system"),
    asks("sources", Effect::Persistence, "changes from where packages come").only("a add r remove"),
];
const COMPOSER: &[Rule] = &[
    asks("global require|remove|update|install", INSTALLS, SYSTEM),
    asks("config", Effect::Persistence, "changes settings for all projects").only("g global"),
    asks("self-update|selfupdate", INSTALLS, SYSTEM),
];
const MIX: &[Rule] = &[
    fine("hex.publish").only("dry-run"),
    asks("hex.publish|hex.retire", INSTALLS, PUBLISHES),
    asks("hex.owner add|remove|transfer", INSTALLS, "changes who may publish"),
    asks("ecto.drop|ecto.reset|ecto.rollback", Effect::Database, "drops or rolls back a database"),
];
const DOTNET: &[Rule] = &[
    asks("nuget push|delete|setapikey", INSTALLS, PUBLISHES),
    asks("push|delete|setapikey", INSTALLS, PUBLISHES),
    asks("nuget add|remove|update source", Effect::Persistence, "changes from where packages come"),
    asks("tool install|uninstall|update", INSTALLS, SYSTEM).only("g global"),
    asks("workload install|uninstall|update|restore|repair", INSTALLS, SYSTEM),
    asks("ef database drop", Effect::Database, "drops a database"),
];
const CPAN: &[Rule] = &[];
const LUAROCKS: &[Rule] = &[asks("upload|remove-version", INSTALLS, PUBLISHES)];
const CABAL: &[Rule] = &[asks("upload", INSTALLS, PUBLISHES)];
const GALAXY: &[Rule] = &[
    asks("collection publish", INSTALLS, PUBLISHES),
    asks("role import|delete|remove", INSTALLS, PUBLISHES),
    asks("import|delete", INSTALLS, PUBLISHES),
];
const RUSTUP: &[Rule] = &[
    asks("self uninstall", INSTALLS, SYSTEM),
    asks("toolchain uninstall|remove", INSTALLS, "removes a toolchain"),
    asks("uninstall", INSTALLS, "removes a toolchain"),
];
const VSCE: &[Rule] = &[asks("publish|unpublish|delete-publisher", INSTALLS, PUBLISHES)];
const ANACONDA: &[Rule] = &[asks("upload|remove|move|copy|label|channel", INSTALLS, PUBLISHES).unless("list show l")];
const SETUP: &[Rule] = &[asks("upload|register", INSTALLS, PUBLISHES), asks("* upload|register", INSTALLS, PUBLISHES)];

const TOOLS: [Tool; 30] = [
    tool(&["poetry", "pdm", "hatch", "rye", "pipenv"], POETRY)
        .valued("CPGEs", "directory= project= group= extras= source= repository= git="),
    tool(&["conda", "mamba", "micromamba"], CONDA).valued("npc", "name= prefix= channel= file= clone= set="),
    tool(&["anaconda"], ANACONDA).valued("tsu", "token= site= user="),
    tool(&["twine"], PUBLISHERS).valued("rup", "repository= repository-url= username= password= config-file="),
    tool(&["flit", "maturin", "vsce", "ovsx", "web-ext"], VSCE).valued("pif", "repository= pat= packagePath="),
    tool(&["setup.py"], SETUP),
    tool(&["gem"], GEM).valued("vasrip", "version= add= remove= source= install-dir= bindir= key= host= otp="),
    tool(&["bundle", "bundler"], &[asks("clean", INSTALLS, SYSTEM).only("force")])
        .valued("", "git= github= path= gemfile= group="),
    tool(&["composer"], COMPOSER).valued("d", "working-dir="),
    tool(&["mix"], MIX),
    tool(&["rebar3"], PUBLISHERS),
    tool(&["dotnet", "nuget"], DOTNET).valued("svko", "source= version= api-key= output= project= framework="),
    tool(&["cpan", "cpanm", "cpm"], CPAN)
        .valued("lL", "local-lib= local-lib-contained= mirror=")
        .dry("scandeps info showdeps look"),
    tool(&["luarocks"], LUAROCKS).valued("", "server= tree= only-server= lua-version= api-key="),
    tool(&["cabal", "stack"], CABAL).valued("", "project-file= stack-yaml= resolver="),
    tool(
        &["opam"],
        &[
            asks("publish", INSTALLS, PUBLISHES),
            asks("switch remove", INSTALLS, "removes a switch"),
            asks("pin add *://*", INSTALLS, ADDRESS),
        ],
    ),
    tool(&["dart", "flutter"], PUBLISHERS).valued("C", "directory=").dry("dry-run n"),
    tool(&["pod"], PUBLISHERS),
    tool(&["ansible-galaxy"], GALAXY).valued("rp", "role-file= api-key= token= server="),
    tool(&["rustup"], RUSTUP).valued("", "toolchain= target= component="),
    tool(
        &["goreleaser", "release-plz", "jreleaser", "full-release"],
        &[
            fine("release").only("snapshot skip=publish skip-publish auto-snapshot"),
            asks("release|publish|full-release|deploy|upload", INSTALLS, PUBLISHES),
        ],
    )
    .valued("f", "config= skip="),
    tool(&["semantic-release", "release-it", "np", "auto", "semantic-release-cli"], &[])
        .dry("dry-run d preview release-version changelog"),
    tool(&["python-semantic-release"], PUBLISHERS).dry("noop"),
    tool(
        &["lerna", "nx", "rush", "beachball"],
        &[
            asks("publish", INSTALLS, PUBLISHES),
            asks("release publish", INSTALLS, PUBLISHES),
            asks("release", INSTALLS, PUBLISHES),
        ],
    )
    .valued("", "scope= dist-tag= registry=")
    .dry("dry-run d"),
    tool(&["changeset"], PUBLISHERS),
    tool(&["jsr"], PUBLISHERS),
    tool(
        &["conan", "vcpkg"],
        &[asks("upload", INSTALLS, PUBLISHES), asks("remove * *", INSTALLS, PUBLISHES).only("r remote")],
    )
    .valued("r", "remote="),
    tool(&["nimble", "shards", "raco", "carton", "wally", "bower", "elm"], PUBLISHERS),
    tool(&["wapm", "wasmer", "bit"], PUBLISHERS),
    tool(&["gh-pages"], ALWAYS),
];

/// Verbs that install what their operands name.
const INSTALLING: &[&str] = &["install", "add", "require", "update", "i"];

fn model(call: &mut Call<'_, '_>) {
    let Some(tool) = verbs::find(&TOOLS, &call.name) else { return };
    // `bundle exec program --help` is the program's own question.
    let arguments = call.arguments().to_vec();
    if let Some(words) = behind(&call.name, &arguments) {
        builds::project_code(call, ".");
        return call.run(words);
    }
    let Some(options) = tool.judge(call) else { return };
    match call.name.clone().as_str() {
        "semantic-release" | "release-it" | "np" | "auto" if !options.has("version v") => {
            call.asks(INSTALLS, "a release", PUBLISHES);
        }
        "setup.py"
            if is_elevated(call) && options.operands.iter().any(|word| word == "install" || word == "develop") =>
        {
            call.asks(INSTALLS, "a package", SYSTEM);
        }
        "cpan" | "cpanm" | "cpm" => installs(call, &options, &options.operands, true),
        "pipenv" if options.has("rm") => {
            call.asks(Effect::Delete, "the environment", "deletes an environment with all that is installed in it");
        }
        "conda" | "mamba" | "micromamba" | "poetry" | "pdm" | "pipenv" | "gem" | "bundle" | "composer" | "luarocks"
        | "dotnet" | "mix" | "opam" | "ansible-galaxy" | "dart" | "cabal" | "stack" | "nimble" | "raco" | "hatch"
        | "rye" => {
            if let Some((verb, packages)) = options.operands.split_first() {
                let installing = INSTALLING.contains(&verb.as_str())
                    || matches!(
                        verb.as_str(),
                        "archive.install" | "escript.install" | "pub" | "role" | "collection" | "pkg"
                    );
                let removing =
                    matches!(verb.as_str(), "uninstall" | "remove") && matches!(call.name.as_str(), "gem" | "luarocks");
                if installing || removing {
                    installs(call, &options, packages, call.name != "composer");
                }
                builds::project_code(call, ".");
            }
        }
        _ => {}
    }
}

/// Judges what is installed by where it comes from and by whom.
fn installs(call: &mut Call<'_, '_>, options: &Options, packages: &[String], for_all: bool) {
    let target = packages.join(" ");
    let named = packages.iter().any(|word| is_bare_address(word));
    let source = options
        .values("git github source s server mirror only-server repository source-path r role-file")
        .any(|address| is_bare_address(address) && !is_public_registry(address));
    let github = options.has("git github") && packages.iter().all(|word| !word.starts_with('-'));
    if named
        || source
        || github
        || (packages.first().is_some_and(|word| word == "github" || word == "git") && packages.len() > 1)
    {
        call.asks(Effect::ExecuteRemote, &target, ADDRESS);
    } else if for_all && is_elevated(call) {
        call.asks(INSTALLS, &target, SYSTEM);
    }
}

fn is_public_registry(address: &str) -> bool {
    [
        "https://rubygems.org",
        "https://luarocks.org",
        "https://packagist.org",
        "https://cpan.org",
        "https://www.cpan.org",
        "https://api.nuget.org",
    ]
    .iter()
    .any(|known| address.starts_with(known))
}

/// The program that `bundle exec`, `poetry run` and their kin run.
fn behind(name: &str, arguments: &[String]) -> Option<Vec<String>> {
    let verbs: &[&str] = match name {
        "bundle" | "bundler" | "composer" => &["exec"],
        "poetry" | "pdm" | "rye" | "hatch" | "pipenv" | "conda" | "mamba" | "micromamba" => &["run"],
        "mix" => &["cmd"],
        "opam" | "stack" | "cabal" | "dotnet" | "luarocks" => &["exec"],
        _ => return None,
    };
    let options = leading("CP", "directory= project=").read(arguments);
    let (verb, rest) = options.operands.split_first()?;
    if !verbs.contains(&verb.as_str()) {
        return None;
    }
    let inner = leading("nspe", "name= prefix= cwd= keep-file-descriptors env=").read(rest);
    Some(inner.operands)
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn addresses_and_the_whole_system_ask() {
        pairs(&[
            ("sudo pip install requests", "pip install requests"),
            ("sudo sh -c 'pip3 install x'", "pip3 install --user x"),
            ("pip install 'x @ git+https://x.example/p.git'", "pip install -e ."),
            ("pip install --index-url http://x.example/simple x", "pip install --index-url https://pypi.org/simple x"),
            (
                "git clone https://x.example/r.git && pip install ./r",
                "git clone https://x.example/r.git && pip install r-lib",
            ),
            ("uvx --from git+https://x.example/t.git t", "uvx ruff check"),
            ("uv pip install --system x", "uv pip install x"),
            ("uv run rm -rf data", "uv run pytest"),
            ("poetry run rm -rf data", "poetry run pytest"),
            ("poetry add git+https://x.example/p.git", "poetry add httpx"),
            ("conda env remove -n x", "conda remove -n env numpy"),
            ("sudo gem install rails", "bundle install"),
            ("bundle add x --git https://x.example/x.git", "bundle add x"),
            ("bundle exec rm -rf data", "bundle exec rspec"),
        ]);
    }

    #[test]
    fn versions_that_others_use_are_published() {
        pairs(&[
            ("uv publish", "uv build"),
            ("poetry publish", "poetry publish --dry-run"),
            ("python -m twine upload dist/x.whl", "python -m twine check dist/x.whl"),
            ("python setup.py sdist upload", "python setup.py sdist"),
            ("gem push x.gem", "gem build x.gemspec"),
            ("mix hex.publish", "mix hex.info"),
            ("dotnet nuget push x.nupkg", "dotnet publish"),
            ("pod trunk push X.podspec", "pod install"),
            ("goreleaser release", "goreleaser release --snapshot"),
            ("npx semantic-release", "npx semantic-release --dry-run"),
        ]);
    }
}
