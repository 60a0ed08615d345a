//! Build tools: they run the project's own code, which the person knows, unless this very command fetched it.

use std::collections::HashSet;

use super::options::{Grammar, gnu, leading, single_dash};
use super::registries::{self, ADDRESS, PUBLISHES};
use super::{Program, environment, prints, runs, verbs};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text::{self, HOLE};

pub(super) const PROGRAMS: &[Program] = &[
    prints(&["make", "gmake", "mingw32-make", "bmake", "remake"], make),
    prints(&["cargo"], cargo),
    prints(&["go", "tinygo"], go),
    runs(&["cmake"], cmake),
    prints(&["mvn", "mvnw", "mvnd"], maven),
    prints(&["gradle", "gradlew", "sbt", "lein", "mill", "ant"], gradle),
    runs(
        &[
            "ninja",
            "meson",
            "just",
            "task",
            "scons",
            "bazel",
            "bazelisk",
            "buck",
            "buck2",
            "pants",
            "tox",
            "nox",
            "pytest",
            "jest",
            "vitest",
            "mocha",
            "pre-commit",
            "invoke",
            "inv",
            "waf",
            "xmake",
            "zig",
            "xcodebuild",
            "shake",
            "earthly",
            "dagger",
            "rspec",
            "phpunit",
            "configure",
            "autoreconf",
            "turbo",
            "grunt",
            "gulp",
            "ctest",
            "act",
            "lake",
            "dune",
        ],
        project_tool,
    ),
];

/// Code that lies at `path` runs: that asks if it came with this very command.
pub(super) fn project_code(call: &mut Call<'_, '_>, path: &str) {
    let place = call.place(path, true);
    if call.is_foreign(&place.path) {
        call.asks(Effect::ExecuteRemote, &place.path, "runs what this very command fetched, unread");
    }
}

fn project_tool(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("CfSBj", "directory= file= justfile= working-directory= help version"));
    if options.asks_only() {
        return;
    }
    let places: Vec<String> =
        options.values("C directory f file justfile working-directory").map(str::to_owned).collect();
    if options.operands.iter().any(|goal| goal == "install" || goal == "uninstall") && registries::is_elevated(call) {
        call.asks(Effect::Package, &options.operands.join(" "), registries::SYSTEM);
    }
    project_code(call, ".");
    for place in places {
        project_code(call, &place);
    }
}

// ---------------------------------------------------------------------------------------------------------------- make

const MAKE: Grammar = gnu(
    "CfIjloWE",
    "directory= file= makefile= include-dir= jobs=? load-average=? old-file= what-if= eval= keep-going dry-run just-print \
     recon silent quiet question touch always-make environment-overrides ignore-errors print-data-base \
     no-print-directory warn-undefined-variables output-sync=? shuffle=? trace version help",
);

/// `cmake -E verb`: a shell of its own for build scripts; otherwise a build.
fn cmake(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let Some(at) = words.iter().position(|word| word == "-E") else { return };
    let rest = words.get(at + 2..).unwrap_or_default().to_vec();
    let program = match words.get(at + 1).map(String::as_str) {
        Some("rm" | "remove" | "remove_directory") => "rm",
        Some("copy" | "copy_if_different" | "copy_directory") => "cp",
        Some("rename") => "mv",
        Some("create_symlink") => "ln",
        Some("touch") => "touch",
        Some("env") => "env",
        Some("time") => "time",
        Some("tar") => "tar",
        _ => return,
    };
    let mut command = vec![program.to_owned()];
    if words[at + 1] == "remove_directory" {
        command.push("-r".into());
    }
    command.extend(rest);
    call.run(command);
}

fn make(call: &mut Call<'_, '_>) {
    // `-j 4` and `-j target`: a number after it is its own, anything else is not.
    let mut arguments = Vec::new();
    let mut after_jobs = false;
    for word in call.arguments() {
        let number = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if !(after_jobs && number) {
            arguments.push(if matches!(word.as_str(), "-j" | "-l") { "-k".to_owned() } else { word.clone() });
        }
        after_jobs = matches!(word.as_str(), "-j" | "-l" | "--jobs");
    }
    let options = MAKE.read(&arguments);
    call.print(&HOLE.to_string());
    if options.has("help h version v") {
        return;
    }
    for text in options.values("eval E").map(str::to_owned).collect::<Vec<_>>() {
        makefile(call, &text, None);
    }
    for word in &options.operands {
        let Some((name, value)) = word.split_once('=') else { continue };
        let name = name.trim_end_matches([':', '+', '?', '!']);
        if matches!(
            name,
            "SHELL" | "CC" | "CXX" | "CPP" | "LD" | "AR" | "AS" | "MAKE" | "RM" | "INSTALL" | "PYTHON" | "NODE"
        ) {
            program(call, value);
        } else if value.contains("$(shell ") || value.contains('`') {
            makefile(call, value, None);
        }
    }
    if options.has("n dry-run just-print recon q question") {
        return;
    }
    if options.operands.iter().any(|goal| goal.starts_with("install") || goal == "uninstall")
        && registries::is_elevated(call)
    {
        call.asks(Effect::Package, "make install", registries::SYSTEM);
    }
    let directory = options.values("C directory").map(str::to_owned).collect::<Vec<_>>().join("/");
    let within = |file: &str| {
        if directory.is_empty() || file.starts_with('/') { file.to_owned() } else { format!("{directory}/{file}") }
    };
    project_code(call, &within("."));
    let mut files: Vec<String> = options.values("f file makefile").map(str::to_owned).collect();
    if files.is_empty() {
        files = ["GNUmakefile", "makefile", "Makefile"].map(str::to_owned).to_vec();
    }
    let goals: Vec<&str> = options.operands.iter().filter(|word| !word.contains('=')).map(String::as_str).collect();
    // What several texts, options and the environment make of one another is not followed.
    let alone = options.values("f file makefile eval E").count() < 2
        && !options.has("eval E")
        && call.sees("MAKEFLAGS").is_none_or(|flags| flags.is_empty());
    let goals = alone.then_some(goals.as_slice());
    for file in files {
        if matches!(file.as_str(), "-" | "/dev/stdin") {
            if let Some(text) = call.input() {
                makefile(call, &text, goals);
            }
            continue;
        }
        let path = call.place(&within(&file), true).path;
        if let Some(text) = call.machine.file(&path).map(|fact| fact.text.clone()) {
            makefile(call, &text, goals);
        } else {
            project_code(call, &within(&file));
        }
    }
}

/// A compiler or a shell that something else runs; those of the system are what everybody expects.
fn program(call: &mut Call<'_, '_>, value: &str) {
    let shell = ["/bin/sh", "/bin/bash", "/usr/bin/bash", "/usr/bin/env bash", "bash", "sh", "/bin/zsh", "/bin/dash"];
    if !shell.contains(&value) {
        environment::side_door(call, value);
    }
}

/// Text that `make` reads: recipes, and what is run while it reads.
///
/// With `goals`, only recipes that they need are read, if the text is so plain that this can be told; `None` reads all.
fn makefile(call: &mut Call<'_, '_>, source: &str, goals: Option<&[&str]>) {
    if source.contains(text::REMOTE) {
        return call.asks(Effect::ExecuteRemote, "makefile", "runs text that comes over the network");
    }
    if text::is_unknown(source) {
        call.cannot_tell("reads rules of which a part is unknown");
    }
    if source.contains(".RECIPEPREFIX") {
        call.cannot_tell("marks recipes in a way of its own");
    }
    let source = source.replace("\\\n", " ");
    for line in source.lines() {
        let mut rest = line;
        while let Some(at) = rest.find("$(shell ") {
            rest = &rest[at + "$(shell ".len()..];
            let script = rest.rsplit_once(')').map_or(rest, |(script, _)| script);
            call.shell(script);
        }
        if let Some((_, script)) = line.split_once("!=") {
            call.shell(script);
        }
        if let Some((name, value)) = line.split_once('=')
            && name.trim_end_matches([':', '+', '?', ' ', '\t']).split_whitespace().next_back() == Some("SHELL")
        {
            program(call, value.trim());
        }
    }
    let rules = rules(&source);
    let wanted = goals.and_then(|goals| wanted(&source, &rules, goals));
    for rule in rules.iter().filter(|rule| wanted.as_ref().is_none_or(|wanted| rule.makes(wanted))) {
        for recipe in &rule.recipes {
            let recipe = recipe.trim_start().trim_start_matches(['@', '-', '+']);
            // `$$` is the shell's `$`; variables of the makefile are not followed.
            call.shell(&recipe.replace("$$", "$"));
        }
    }
}

/// `targets: needs` and the lines below it.
#[derive(Default)]
struct Rule<'s> {
    targets: Vec<&'s str>,
    needs: Vec<&'s str>,
    recipes: Vec<&'s str>,
}

impl Rule<'_> {
    fn makes(&self, wanted: &HashSet<&str>) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|target| wanted.contains(target))
    }
}

fn rules(source: &str) -> Vec<Rule<'_>> {
    let mut rules = vec![Rule::default()];
    for line in source.lines() {
        if let Some(recipe) = line.strip_prefix('\t') {
            rules.last_mut().expect("one from the start").recipes.push(recipe);
            continue;
        }
        let (head, recipe) = line.split_once(';').map_or((line, None), |(head, recipe)| (head, Some(recipe)));
        let Some((targets, needs)) = head.split_once(':') else { continue };
        rules.push(Rule {
            targets: targets.split_whitespace().collect(),
            needs: needs.split_whitespace().collect(),
            recipes: recipe.into_iter().collect(),
        });
    }
    rules
}

/// The targets that have to be made for the goals; none if that cannot be told: names that are more than letters, rules
/// that no goal names, lines that are anything but `target: needs`.
fn wanted<'s>(source: &str, rules: &[Rule<'s>], goals: &[&'s str]) -> Option<HashSet<&'s str>> {
    let plain = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !name.eq_ignore_ascii_case("makefile")
            && name != "GNUmakefile"
    };
    let plain_line = |line: &str| match line.split_once(':') {
        Some((targets, needs)) => {
            needs.split_whitespace().all(plain) && (targets == ".PHONY" || targets.split_whitespace().all(plain))
        }
        None => line.trim().is_empty() || line.starts_with('#'),
    };
    if !source.lines().all(|line| line.starts_with('\t') || plain_line(line)) || !goals.iter().all(|goal| plain(goal)) {
        return None;
    }
    let mut open: Vec<&str> = goals.to_vec();
    if open.is_empty() {
        open.extend(rules.iter().flat_map(|rule| &rule.targets).find(|target| **target != ".PHONY"));
    }
    let mut wanted = HashSet::new();
    while let Some(target) = open.pop() {
        if wanted.insert(target) {
            open.extend(rules.iter().filter(|rule| rule.targets.contains(&target)).flat_map(|rule| &rule.needs));
        }
    }
    Some(wanted)
}

// --------------------------------------------------------------------------------------------------------------- cargo

pub(super) const CARGO: Grammar =
    leading("CZ", "config= color= manifest-path= explain= quiet verbose offline locked frozen list");

const CARGO_VERB: Grammar = gnu(
    "pFjZCas",
    "package= bin= example= test= bench= features= target= target-dir= manifest-path= jobs= profile= color= config= \
     version= vers= git= branch= tag= rev= path= index= registry= root= add= remove= token= message-format= \
     exec= shell= \
     watch= ignore= dry-run undo list execute force no-verify allow-dirty help release all workspace verbose \
     quiet yes push no-push no-publish",
);

fn cargo(call: &mut Call<'_, '_>) {
    let mut arguments = call.arguments().to_vec();
    if arguments.first().is_some_and(|word| word.starts_with('+')) {
        arguments.remove(0);
    }
    call.print(&HOLE.to_string());
    let options = CARGO.read(&arguments);
    let mut settings: Vec<String> = options.values("config").map(str::to_owned).collect();
    let Some((verb, rest)) = options.operands.split_first() else { return };
    let end = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let given = CARGO_VERB.read(&rest[..end]);
    settings.extend(given.values("config").map(str::to_owned));
    for setting in settings {
        let Some((name, value)) = setting.split_once('=') else { continue };
        let value = value.trim().trim_matches(['"', '\'', '[', ']']).to_owned();
        let last = name.trim().rsplit('.').next().unwrap_or_default().to_owned();
        match last.as_str() {
            "rustc-wrapper"
            | "rustc-workspace-wrapper"
            | "rustc"
            | "rustdoc"
            | "linker"
            | "runner"
            | "credential-provider" => {
                environment::side_door(call, &value);
            }
            _ => {}
        }
    }
    for variable in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTC", "RUSTDOC", "CARGO_BUILD_RUSTC_WRAPPER"] {
        if let Some(value) = call.sees(variable).filter(|value| !value.is_empty()) {
            environment::side_door(call, &value);
        }
    }
    if given.has("help h") || options.has("help h") || verb == "help" {
        return;
    }
    let target = given.operands.join(" ");
    match verb.as_str() {
        "publish" | "yank" | "owner" | "unyank" => {
            let lists = verb == "owner" && !given.has("a add r remove");
            if !given.has("n dry-run") && !lists {
                call.asks(Effect::Package, &target, PUBLISHES);
            }
        }
        "release" | "smart-release" => {
            if given.has("x execute") {
                call.asks(Effect::Package, &target, PUBLISHES);
            }
        }
        "workspaces" | "ws" if given.operands.first().is_some_and(|verb| verb == "publish") => {
            if !given.has("n dry-run") {
                call.asks(Effect::Package, &target, PUBLISHES);
            }
        }
        "install" | "add" | "binstall" => {
            if given.has("list") {
                return;
            }
            let git = given.has("git") || given.values("index").any(|a| !a.contains("crates.io"));
            if git || given.operands.iter().any(|word| registries::is_bare_address(word)) {
                call.asks(Effect::ExecuteRemote, &target, ADDRESS);
            } else if verb != "add" && registries::is_elevated(call) {
                call.asks(Effect::Package, &target, registries::SYSTEM);
            }
            let path = given.value("path").unwrap_or(".").to_owned();
            project_code(call, &path);
        }
        "login" if !given.operands.is_empty() => {
            call.asks(Effect::Persistence, "the token", "changes stored credentials");
        }
        "uninstall" if registries::is_elevated(call) => call.asks(Effect::Package, &target, registries::SYSTEM),
        "watch" => {
            for script in given.values("s shell").map(str::to_owned).collect::<Vec<_>>() {
                call.shell(&script);
            }
            let words = rest.get(end + 1..).unwrap_or_default().to_vec();
            call.run(words);
        }
        "clean" | "search" | "info" | "tree" | "metadata" | "fmt" | "new" | "init" | "fetch" | "rm" | "remove" => {}
        other => {
            let manifest = given.value("manifest-path").or_else(|| options.value("manifest-path"));
            let place = manifest.or_else(|| options.value("C")).unwrap_or(".").to_owned();
            project_code(call, &place);
            // A program of its own that cargo only finds.
            let mut words = vec![other.to_owned()];
            words.extend_from_slice(rest);
            if matches!(other, "sqlx" | "lambda" | "shuttle" | "leptos" | "espflash") {
                call.run(words);
            }
        }
    }
}

// ------------------------------------------------------------------------------------------------------------------ go

fn go(call: &mut Call<'_, '_>) {
    let options = leading("C", "").read(call.arguments());
    call.print(&HOLE.to_string());
    let Some((verb, rest)) = options.operands.split_first() else { return };
    let grammar = single_dash(
        "exec= toolexec= o= mod= modfile= tags= ldflags= gcflags= asmflags= gccgoflags= vettool= pkgdir= overlay= C= run= \
         count= timeout= bench= coverprofile= p= json= f= w u",
        false,
    );
    let given = grammar.read(rest);
    for program in given.values("exec toolexec vettool").map(str::to_owned).collect::<Vec<_>>() {
        environment::side_door(call, &program);
    }
    if let Some(flags) = call.sees("GOFLAGS") {
        for flag in crate::shell::split(&flags) {
            let flag = flag.trim_start_matches('-');
            if let Some((_, program)) =
                flag.split_once('=').filter(|(name, _)| matches!(*name, "toolexec" | "exec" | "vettool"))
            {
                environment::side_door(call, program);
            }
        }
    }
    if given.has("h help") {
        return;
    }
    let place = options.value("C").or_else(|| given.value("C")).unwrap_or(".").to_owned();
    match verb.as_str() {
        "install" | "run" => {
            let named = given.operands.iter().take(if verb == "run" { 1 } else { usize::MAX });
            let remote = named.into_iter().find(|word| is_module(word)).cloned();
            match remote {
                Some(module) => call.asks(Effect::ExecuteRemote, &module, ADDRESS),
                None => project_code(call, &place),
            }
        }
        "build" | "test" | "generate" | "vet" | "tool" => project_code(call, &place),
        "env" if given.has("w u") => {
            let dangerous = given.operands.iter().any(|setting| {
                let name = setting.split('=').next().unwrap_or_default();
                matches!(
                    name,
                    "CC" | "CXX"
                        | "GOFLAGS"
                        | "GOPROXY"
                        | "GOSUMDB"
                        | "GONOSUMDB"
                        | "GOINSECURE"
                        | "GOROOT"
                        | "GOTOOLCHAIN"
                        | "GOVCS"
                )
            });
            if dangerous {
                call.asks(
                    Effect::Persistence,
                    "go env",
                    "changes what all later builds run or from where they take code",
                );
            }
        }
        _ => {}
    }
}

/// A module by its address, `x.example/tool@latest`, and not a directory of the project.
fn is_module(word: &str) -> bool {
    let (path, version) = word.split_once('@').map_or((word, None), |(path, version)| (path, Some(version)));
    !path.starts_with(['.', '/'])
        && (version.is_some() || path.split('/').next().is_some_and(|host| host.contains('.')) && path.contains('/'))
}

// ----------------------------------------------------------------------------------------------------------- JVM tools

fn maven(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "fPplstDTbe",
        "file= activate-profiles= projects= settings= toolchains= threads= define= help version",
    ));
    call.print(&HOLE.to_string());
    if options.has("help h version v") {
        return;
    }
    let publishes = options.operands.iter().any(|goal| {
        let (plugin, goal) = goal.rsplit_once(':').unwrap_or(("", goal));
        matches!(goal, "deploy" | "deploy-file" | "site-deploy" | "sign-and-deploy-file" | "nexus-staging-release")
            || (plugin.contains("release") && goal == "perform")
            || (plugin.contains("nexus-staging") && matches!(goal, "release" | "drop" | "close"))
            || (plugin.contains("central-publishing") && goal == "publish")
    });
    let skipped = options
        .values("D define")
        .any(|set| matches!(set, "maven.deploy.skip" | "maven.deploy.skip=true" | "dryRun=true" | "dryRun"));
    if publishes && !skipped {
        call.asks(Effect::Package, &options.operands.join(" "), PUBLISHES);
    }
    if let Some(program) =
        options.values("D define").find_map(|set| set.strip_prefix("exec.executable=")).map(str::to_owned)
    {
        let arguments =
            options.values("D define").find_map(|set| set.strip_prefix("exec.args=")).unwrap_or_default().to_owned();
        call.shell(&format!("{program} {arguments}"));
    }
    let file = options.value("f file").unwrap_or(".").to_owned();
    project_code(call, &file);
}

fn gradle(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "pIbcgPDx",
        "project-dir= init-script= build-file= settings-file= gradle-user-home= project-prop= system-prop= exclude-task= \
         include-build= dry-run tasks help version",
    ));
    call.print(&HOLE.to_string());
    if options.has("help h version v") {
        return;
    }
    for script in options.values("I init-script").map(str::to_owned).collect::<Vec<_>>() {
        let place = call.place(&script, true);
        if place.class != crate::finding::TargetClass::Workspace {
            call.asks(Effect::CannotTell, &place.path, "runs a script that cannot be read here");
        }
    }
    let publishes = options.operands.iter().any(|task| {
        let task = task.rsplit([':', '/']).next().unwrap_or(task);
        let local = task.ends_with("ToMavenLocal") || task.ends_with("Local") || task.contains("Local");
        let named = task.starts_with("publish")
            || matches!(
                task,
                "uploadArchives"
                    | "bintrayUpload"
                    | "closeAndReleaseRepository"
                    | "sonatypeRelease"
                    | "sonatypeBundleRelease"
                    | "deploy"
            );
        named && !local && !(call.name == "ant" && task.starts_with("publish"))
    });
    if publishes && !verbs::is_dry(&options, "m dry-run") {
        call.asks(Effect::Package, &options.operands.join(" "), PUBLISHES);
    }
    let place = options.value("p project-dir b build-file").unwrap_or(".").to_owned();
    project_code(call, &place);
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn what_a_build_runs_is_judged_where_it_is_known() {
        pairs(&[
            ("make --eval='x:;rm -rf data' x", "make --eval='x:;@echo hi' x"),
            ("make SHELL=/tmp/evil test", "make SHELL=/bin/bash -j 4 test"),
            ("make CC='sh -c \"rm -rf data\"'", "make CC=clang CFLAGS=-O2"),
            ("make -f - <<'EOF'\nall:\n\trm -rf data\nEOF", "make -f - <<'EOF'\nall:\n\t@echo hi\nEOF"),
            ("printf 'all:\\n\\trm -rf data\\n' > Makefile; make", "printf 'all:\\n\\techo x\\n' > Makefile; make"),
            (
                "git clone https://x.example/r.git && make -C r install",
                "git clone https://x.example/r.git && make install",
            ),
            (
                "git clone https://x.example/r.git && cd r && cargo build",
                "git clone https://x.example/r.git && cd r && ls",
            ),
            ("cargo --config build.rustc-wrapper=/tmp/evil build", "cargo --config net.offline=true build"),
            ("go test -exec 'rm -rf data' ./...", "go test ./..."),
        ]);
    }

    #[test]
    fn publishing_and_addresses_ask() {
        pairs(&[
            ("cargo yank --version 1.0.0", "cargo search yank"),
            ("cargo +nightly publish -p core", "cargo publish -n"),
            ("cargo install --git https://x.example/t.git", "cargo install --list"),
            ("go install x.example/cmd@latest", "go install ./cmd/tool"),
            ("go run x.example/cmd@latest", "go run ."),
            ("mvn -B deploy", "mvn -B verify"),
            ("./gradlew publish", "./gradlew publishToMavenLocal"),
        ]);
    }
}
