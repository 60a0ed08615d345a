//! git: what loses uncommitted work, branches, stashes, refs or history, here or on the remote, and what it runs.
//!
//! git itself keeps most of what it is told to drop for a while; nobody should have to know where. So everything that
//! needs the reflog to get it back asks, and everything else does not.

use super::options::{Grammar, Options, gnu, leading};
use super::{Program, environment, git_settings, prints, shells, verbs};
use crate::eval::{Call, Writing};
use crate::finding::{Effect, TargetClass};
use crate::text::{self, HOLE, PLAIN, SECRET};

pub(super) const PROGRAMS: &[Program] = &[
    prints(&["git"], git),
    prints(
        &[
            "git-lfs",
            "git-filter-repo",
            "git-filter-branch",
            "git-annex",
            "git-push",
            "git-reset",
            "git-clean",
            "git-stash",
        ],
        dashed,
    ),
];

pub(super) const GLOBAL: Grammar = leading(
    "Cc",
    "git-dir= work-tree= namespace= super-prefix= config-env= attr-source= exec-path=? list-cmds= paginate no-pager bare \
     html-path man-path info-path version help",
);

/// `git-reset …` is `git reset …`.
fn dashed(call: &mut Call<'_, '_>) {
    let mut words = vec!["git".to_owned(), call.name.trim_start_matches("git-").to_owned()];
    words.extend_from_slice(call.arguments());
    call.run(words);
}

fn git(call: &mut Call<'_, '_>) {
    let options = GLOBAL.read(call.arguments());
    let mut settings: Vec<(String, String)> = options
        .values("c")
        .map(|setting| setting.split_once('=').unwrap_or((setting, "true")))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    for setting in options.values("config-env") {
        if let Some((name, variable)) = setting.split_once('=') {
            settings.push((name.to_owned(), call.sees(variable).unwrap_or_else(|| HOLE.into())));
        }
    }
    let path = options.value("exec-path").map(str::to_owned);
    if let Some(path) = path {
        call.asks(Effect::CannotTell, &path, "makes git run its parts from another directory");
    }
    let operands = options.operands.clone();
    let name = call.name.clone();
    let environment = call.environment;
    let words = call.words.clone();
    // Settings of this call are gone after it; aliases among them, too.
    let lasting = operands.first().is_some_and(|verb| verb == "config");
    let run = |machine: &mut crate::eval::Machine<'_>| {
        let mut call = Call::new(machine, words, environment);
        call.name = name;
        git_settings::from_environment(&mut call);
        for (name, value) in &settings {
            git_settings::set(&mut call, name, value);
        }
        let Some((verb, arguments)) = operands.split_first() else { return };
        if options.has("help h") || arguments.iter().take_while(|word| *word != "--").any(|word| word == "--help") {
            return;
        }
        command(&mut call, verb, arguments);
    };
    if lasting { run(call.machine) } else { call.machine.apart(run) }
}

/// Runs a verb of git with its arguments.
fn command(call: &mut Call<'_, '_>, verb: &str, arguments: &[String]) {
    if text::is_unknown(verb) {
        call.cannot_tell("is told what to do by a text that is not known");
    }
    match verb {
        "config" => git_settings::config(call, arguments),
        "reset" => reset(call, arguments),
        "clean" => clean(call, arguments),
        "checkout" => checkout(call, arguments),
        "switch" => switch(call, arguments),
        "restore" => restore(call, arguments),
        "stash" => stash(call, arguments),
        "branch" => branch(call, arguments),
        "tag" => tag(call, arguments),
        "push" | "send-pack" => push(call, arguments),
        "fetch" | "pull" | "ls-remote" | "fetch-pack" | "archive" => transfer(call, verb, arguments),
        "clone" => clone(call, arguments),
        "submodule" => submodule(call, arguments),
        "rm" => remove(call, arguments),
        "rebase" => rebase(call, arguments),
        "bisect" => bisect(call, arguments),
        "gc" | "prune" | "reflog" | "filter-branch" | "filter-repo" | "update-ref" | "symbolic-ref" | "worktree"
        | "checkout-index" | "read-tree" | "replace" | "notes" | "remote" | "lfs" | "annex" | "maintenance" => {
            rare(call, verb, arguments);
        }
        "grep" | "difftool" | "mergetool" | "send-email" | "instaweb" => viewers(call, verb, arguments),
        "show" | "cat-file" | "diff" | "log" | "blame" | "annotate" | "credential" | "credential-store"
        | "credential-cache" | "format-patch" | "diff-index" | "diff-tree" | "diff-files" => {
            show(call, verb, arguments);
        }
        "rev-parse" => return rev_parse(call, arguments),
        "ls-files" | "ls-tree" => return call.print(&format!("./{HOLE}")),
        "describe" | "merge-base" | "hash-object" | "rev-list" | "write-tree" | "commit-tree" => {
            return call.print(&PLAIN.to_string());
        }
        "init" => {
            if let Some(template) = gnu("b", "template= separate-git-dir= initial-branch= object-format= shared=?")
                .read(arguments)
                .value("template")
            {
                git_settings::set(call, "init.templateDir", template);
            }
        }
        "apply" | "am" => {
            let options = gnu("pC", "directory= exclude= include= whitespace= unsafe-paths").read(arguments);
            if options.has("unsafe-paths") {
                call.asks(Effect::Overwrite, "files", "may change files outside of the repository");
            }
            if let Some(directory) = options.value("directory").map(str::to_owned) {
                call.write(&directory, Writing::Edit);
            }
        }
        "for-each-repo" => {
            let options = leading("", "config= keep-going").read(arguments);
            if let Some((verb, arguments)) = options.operands.split_first() {
                command(call, verb, arguments);
            }
        }
        other => alias(call, other, arguments),
    }
    call.print(&HOLE.to_string());
}

/// A name that this very command made an alias.
fn alias(call: &mut Call<'_, '_>, name: &str, arguments: &[String]) {
    let key = git_settings::alias_key(&name.to_ascii_lowercase());
    let Some(value) = call.sees(&key) else { return rare(call, name, arguments) };
    if let Some(script) = value.strip_prefix('!') {
        let rest: Vec<String> = arguments.iter().map(|word| crate::eval::quoted(word)).collect();
        return call.shell(&format!("{script} {}", rest.join(" ")));
    }
    let mut words = vec!["git".to_owned()];
    words.extend(crate::shell::split(&value));
    words.extend_from_slice(arguments);
    call.run(words);
}

fn loses(call: &mut Call<'_, '_>, what: &str, why: &str) {
    call.asks(Effect::VersionControl, what, why);
}

const WORK: &str = "uncommitted work";

fn reset(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = gnu(
        "U",
        "hard help soft mixed merge keep quiet patch intent-to-add pathspec-from-file= recurse-submodules=? \
            no-refresh",
    )
    .read(arguments);
    if options.has("hard merge") {
        loses(call, WORK, "throws away all uncommitted changes");
    }
}

fn clean(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = gnu("e", "exclude= force dry-run quiet interactive").read(arguments);
    let unforced = call.sees("git clean.requireforce").is_some();
    if !options.has("n dry-run") && (options.has("f force i interactive") || unforced || options.unknown) {
        loses(call, WORK, "deletes files that git does not track");
    }
}

fn checkout(call: &mut Call<'_, '_>, arguments: &[String]) {
    let grammar = gnu(
        "bB",
        "orphan= conflict= pathspec-from-file= force quiet detach track=? guess ours theirs merge patch progress \
         ignore-skip-worktree-bits recurse-submodules=? overlay no-overlay no-guess no-track",
    );
    let options = grammar.read(arguments);
    if options.has("f force") {
        return loses(call, WORK, "switches and throws away uncommitted changes");
    }
    if options.has("B") {
        return loses(call, "a branch", "moves a branch away from its commits");
    }
    if options.has("p patch ours theirs pathspec-from-file") {
        return loses(call, WORK, "replaces files by what is committed");
    }
    let named = arguments.iter().position(|word| word == "--").is_some_and(|at| at + 1 < arguments.len());
    let branches = options.has("b orphan t track detach d");
    let paths = match options.operands.as_slice() {
        [] => false,
        [only] => looks_like_path(only),
        _ => true,
    };
    if named || (paths && !branches) {
        loses(call, WORK, "replaces files by what is committed");
    }
}

/// Whether a word after `git checkout` names files and not a branch.
fn looks_like_path(word: &str) -> bool {
    if matches!(word, "." | "..") || word.starts_with(['/', ':']) || word.ends_with('/') {
        return true;
    }
    if text::has_glob(word) || word.contains('*') || word.starts_with("./") || word.starts_with("../") {
        return true;
    }
    let last = word.rsplit('/').next().unwrap_or_default();
    if matches!(
        last,
        "Makefile" | "Dockerfile" | "LICENSE" | "README" | "Gemfile" | "Procfile" | "Rakefile" | "Justfile"
    ) {
        return true;
    }
    match last.rsplit_once('.') {
        // `v1.2` and `1.2.x` are versions, `src/app.py` is a file.
        Some((stem, ending)) => {
            !stem.ends_with(|c: char| c.is_ascii_digit())
                && match ending.len() {
                    // `main.c` is a file, `feature/x.y` is not.
                    1 => "chdmrsv".contains(&ending.to_ascii_lowercase()),
                    2..=6 => {
                        ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
                            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
                    }
                    _ => false,
                }
        }
        None => false,
    }
}

fn switch(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = gnu(
        "cC",
        "create= force-create= orphan= conflict= force discard-changes detach track=? guess merge quiet \
         ignore-other-worktrees recurse-submodules=?",
    )
    .read(arguments);
    if options.has("f force discard-changes") {
        loses(call, WORK, "switches and throws away uncommitted changes");
    } else if options.has("C force-create") {
        loses(call, "a branch", "moves a branch away from its commits");
    }
}

fn restore(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = gnu(
        "sU",
        "source= staged worktree patch quiet progress ours theirs merge conflict= ignore-unmerged overlay \
         pathspec-from-file= ignore-skip-worktree-bits",
    )
    .read(arguments);
    let touches = !options.has("S staged") || options.has("W worktree");
    if touches && (!options.operands.is_empty() || options.has("p patch pathspec-from-file")) {
        loses(call, WORK, "replaces files by what is committed");
    }
}

fn stash(call: &mut Call<'_, '_>, arguments: &[String]) {
    if matches!(arguments.first().map(String::as_str), Some("drop" | "clear")) {
        loses(call, "stashes", "drops stashed work");
    }
}

fn branch(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = gnu(
        "ut?",
        "set-upstream-to= contains= no-contains= merged=? no-merged=? sort= points-at= format= color=? column=? \
         abbrev=? delete move copy force list all remotes verbose quiet show-current edit-description \
         unset-upstream track=?",
    )
    .read(arguments);
    if options.has("D") || (options.has("d delete") && options.has("f force")) {
        loses(call, "branches", "deletes branches that may not be merged");
    } else if options.has("M C f force") {
        loses(call, "branches", "moves a branch away from its commits, or replaces one");
    }
}

fn tag(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = gnu(
        "mFun?",
        "message= file= local-user= cleanup= contains= no-contains= points-at= sort= format= merged=? no-merged=? \
         delete force list annotate sign verify color=? column=? edit trailer=",
    )
    .read(arguments);
    if options.has("d delete") {
        loses(call, "tags", "deletes tags");
    } else if options.has("f force") && !options.has("l list") {
        loses(call, "tags", "moves a tag that is there");
    }
}

fn push(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = gnu(
        "o",
        "force repo= push-option= receive-pack= exec= recurse-submodules=? signed=? force-with-lease=? \
         force-if-includes delete mirror prune all branches tags follow-tags dry-run porcelain quiet verbose \
         set-upstream thin atomic progress verify no-verify ipv4 ipv6",
    )
    .read(arguments);
    for program in options.values("receive-pack exec").map(str::to_owned).collect::<Vec<_>>() {
        git_settings::command(call, &program);
    }
    if let Some(remote) = options.operands.first().cloned() {
        git_settings::address(call, &remote);
    }
    if options.has("n dry-run") {
        return;
    }
    let specs = if options.has("repo") { &options.operands[..] } else { options.operands.get(1..).unwrap_or_default() };
    let forced = options.has("f force force-with-lease force-if-includes mirror");
    let deletes = options.has("d delete prune");
    let why = if forced || specs.iter().any(|spec| spec.starts_with('+')) {
        "overwrites history on the remote"
    } else if deletes || specs.iter().any(|spec| spec.starts_with(':') && spec.len() > 1) {
        "deletes branches or tags on the remote"
    } else {
        return;
    };
    let target = options.operands.join(" ");
    loses(call, &target, why);
}

const TRANSFER: Grammar = gnu(
    "ojsX",
    "upload-pack= exec= remote= output= prefix= format= depth= deepen= shallow-since= shallow-exclude= jobs= \
     negotiation-tip= refmap= server-option= filter= recurse-submodules=? strategy= strategy-option= rebase=? \
     gpg-sign=? sort= add-file= force prune prune-tags dry-run tags all append",
);

/// Verbs that talk to another repository.
fn transfer(call: &mut Call<'_, '_>, verb: &str, arguments: &[String]) {
    let options = TRANSFER.read(arguments);
    for program in options.values("upload-pack exec").map(str::to_owned).collect::<Vec<_>>() {
        git_settings::command(call, &program);
    }
    let remote = options.value("remote").map(str::to_owned).or_else(|| options.operands.first().cloned());
    if let Some(remote) = remote {
        git_settings::address(call, &remote);
    }
    if verb == "archive" {
        if let Some(file) = options.value("o output").map(str::to_owned) {
            call.write(&file, Writing::Replace);
        }
        return;
    }
    if options.has("dry-run") || verb == "ls-remote" {
        return;
    }
    let overwrites = options.operands.iter().skip(1).any(|spec| {
        let forced = spec.starts_with('+') || options.has("f force");
        forced && spec.split_once(':').is_some_and(|(_, to)| !to.is_empty() && !to.starts_with("refs/remotes/"))
    });
    if overwrites {
        loses(call, "branches", "overwrites branches that are here by those of the remote");
    } else if options.has("prune-tags P") {
        loses(call, "tags", "deletes tags that the remote does not have");
    }
}

const CLONE: Grammar = gnu(
    "bocju",
    "branch= origin= config= jobs= upload-pack= template= reference= reference-if-able= separate-git-dir= depth= \
     shallow-since= shallow-exclude= filter= server-option= bundle-uri= recurse-submodules=? recursive bare mirror \
     no-checkout single-branch local shared quiet verbose progress",
);

fn clone(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = CLONE.read(arguments);
    for setting in options.values("c config").map(str::to_owned).collect::<Vec<_>>() {
        let (name, value) = setting.split_once('=').unwrap_or((&setting, "true"));
        git_settings::set(call, name, value);
    }
    for program in options.values("u upload-pack").map(str::to_owned).collect::<Vec<_>>() {
        git_settings::command(call, &program);
    }
    if let Some(template) = options.value("template").filter(|template| !template.is_empty()) {
        git_settings::set(call, "init.templateDir", template);
    }
    let Some(source) = options.operands.first().cloned() else { return };
    git_settings::address(call, &source);
    let directory = match options.operands.get(1) {
        Some(directory) => directory.clone(),
        None => default_directory(&source),
    };
    if directory.is_empty() {
        return;
    }
    call.write(&directory, Writing::Create);
    if is_remote(&source) {
        call.now_foreign(&directory);
    }
}

/// Where a repository goes when nobody says so.
fn default_directory(source: &str) -> String {
    let name = source.trim_end_matches('/').trim_end_matches("/.git").trim_end_matches(".git");
    name.rsplit(['/', ':']).next().unwrap_or_default().to_owned()
}

/// Whether an address leads to another machine; `../lib` and `/srv/lib.git` do not.
pub(super) fn is_remote(source: &str) -> bool {
    if source.starts_with("file://") || source.starts_with(['.', '/', '~']) {
        return false;
    }
    let before_slash = source.split('/').next().unwrap_or_default();
    source.contains("://") || before_slash.contains(':') || text::is_unknown(source)
}

fn submodule(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = leading("b", "branch= name= reference= depth= jobs= force quiet recursive all init remote cached")
        .read(arguments);
    let Some((verb, rest)) = options.operands.split_first() else { return };
    let inner: Options = match verb.as_str() {
        "foreach" => leading("", "recursive quiet").read(rest),
        _ => gnu("bj", "branch= name= reference= depth= jobs= force quiet recursive all init remote").read(rest),
    };
    match verb.as_str() {
        "foreach" => call.shell(&shells::joined(&inner.operands)),
        "deinit" | "update" if inner.has("f force") => {
            loses(call, "submodules", "throws away uncommitted changes in submodules");
        }
        "add" => {
            let source = inner.operands.first().cloned().unwrap_or_default();
            git_settings::address(call, &source);
            let directory = inner.operands.get(1).cloned().unwrap_or_else(|| default_directory(&source));
            if is_remote(&source) {
                call.now_foreign(&directory);
            }
        }
        _ => {}
    }
}

fn remove(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = gnu("", "force dry-run cached quiet ignore-unmatch sparse pathspec-from-file=").read(arguments);
    if options.has("cached n dry-run") {
        return;
    }
    let many = options.operands.iter().any(|path| text::has_glob(path) || path.contains('*') || path == ".");
    if options.has("r f force pathspec-from-file") || many {
        loses(call, "tracked files", "deletes tracked files, all of a directory or with their uncommitted changes");
    }
}

fn rebase(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options =
        gnu("xsXC", "exec= strategy= strategy-option= onto= empty= whitespace= root interactive").read(arguments);
    for script in options.values("x exec").map(str::to_owned).collect::<Vec<_>>() {
        call.shell(&script);
    }
}

fn bisect(call: &mut Call<'_, '_>, arguments: &[String]) {
    if arguments.first().is_some_and(|verb| verb == "run") {
        call.run(arguments[1..].to_vec());
    }
}

const LOSES: Effect = Effect::VersionControl;

/// Verbs that are seldom used and tables say enough about.
const RARE: verbs::Tool = verbs::tool(
    &["git"],
    &[
        verbs::fine("gc").unless("prune"),
        verbs::fine("gc").only("prune=never prune=2.weeks.ago prune=1.month.ago"),
        verbs::asks("gc", LOSES, "deletes commits and files that nothing points to any more"),
        verbs::asks("prune", LOSES, "deletes commits and files that nothing points to any more"),
        verbs::asks("reflog expire|delete|drop", LOSES, "forgets where branches were"),
        verbs::fine("filter-repo").only("analyze"),
        verbs::asks("filter-branch|filter-repo", LOSES, "rewrites the history"),
        verbs::asks("update-ref", LOSES, "deletes a ref").only("d delete stdin"),
        verbs::asks("update-ref", LOSES, "moves a ref away from its commits"),
        verbs::asks("symbolic-ref", LOSES, "deletes a ref").only("d delete"),
        verbs::asks("worktree remove", LOSES, "throws away uncommitted changes in a work tree").only("f force"),
        verbs::asks("worktree add", LOSES, "moves a branch away from its commits").only("B"),
        verbs::asks("checkout-index", LOSES, "overwrites files by what is staged").only("f force"),
        verbs::asks("read-tree", LOSES, "throws away uncommitted changes").only("reset"),
        verbs::asks("replace", LOSES, "changes what stands for a commit").only("d delete f force"),
        verbs::asks("notes remove|prune", LOSES, "deletes notes"),
        verbs::asks("lfs prune", LOSES, "deletes large files that are kept here"),
        verbs::asks("lfs migrate", LOSES, "rewrites the history").unless("help"),
        verbs::fine("lfs install|uninstall").only("local l worktree w skip-repo"),
        verbs::asks("lfs install|uninstall", Effect::Persistence, "changes the settings of git for all repositories"),
        verbs::asks("lfs unlock", LOSES, "takes a lock from somebody else").only("f force"),
        verbs::asks("annex drop|dropunused|unannex|uninit|forget", LOSES, "deletes copies of files").only("force f"),
        verbs::asks("maintenance start|register|unregister|stop", Effect::Persistence, "schedules jobs of git"),
        verbs::asks("undo", LOSES, "takes commits back, with their changes").only("hard h"),
        verbs::asks(
            "obliterate|clear|delete-branch|delete-tag|delete-submodule|delete-merged-branches|reset-file|nuke",
            LOSES,
            "deletes work or history",
        ),
        verbs::asks("force-clone", LOSES, "replaces a repository"),
    ],
)
.valued("m", "expire= expire-unreachable= prune=? message= path= index-filter= tree-filter= analyze delete force")
.dry("dry-run n");

fn rare(call: &mut Call<'_, '_>, verb: &str, arguments: &[String]) {
    if let ("remote", [first, .., address]) = (verb, arguments)
        && matches!(first.as_str(), "add" | "set-url")
    {
        return git_settings::address(call, address);
    }
    let mut words = vec!["git".to_owned(), verb.to_owned()];
    words.extend_from_slice(arguments);
    let before = std::mem::replace(&mut call.words, words);
    RARE.judge(call);
    call.words = before;
}

/// Verbs that hand files to a program.
fn viewers(call: &mut Call<'_, '_>, verb: &str, arguments: &[String]) {
    let options = match verb {
        "grep" => gnu(
            "O?efmABC",
            "open-files-in-pager=? max-count= max-depth= threads= after-context= before-context= context=?",
        ),
        "send-email" => gnu("", "smtp-server= sendmail-cmd= to-cmd= cc-cmd= to= from= cc= bcc= subject="),
        "instaweb" => gnu("dmpb", "httpd= module-path= port= browser= local start stop restart"),
        _ => gnu("xtO", "extcmd= tool= tool-help trust-exit-code dir-diff no-prompt prompt"),
    }
    .read(arguments);
    let programs = match verb {
        "grep" => "O open-files-in-pager",
        "send-email" => "sendmail-cmd to-cmd cc-cmd",
        "instaweb" => "d httpd b browser",
        _ => "x extcmd",
    };
    for program in options.values(programs).map(str::to_owned).collect::<Vec<_>>() {
        git_settings::command(call, &program);
    }
    if let Some(server) = options.value("smtp-server").filter(|server| server.starts_with('/')).map(str::to_owned) {
        environment::side_door(call, &server);
    }
}

/// Verbs that print what files hold or held, or write it down.
fn show(call: &mut Call<'_, '_>, verb: &str, arguments: &[String]) {
    let options = gnu(
        "SGnULo",
        "output= output-directory= format=? pretty=? since= until= after= before= author= grep= max-count= skip= \
         date= diff-filter= color=? word-diff=? stat=? name-only name-status",
    )
    .read(arguments);
    if verb.starts_with("credential") {
        let gets = options.operands.iter().any(|word| word == "get" || word == "fill");
        if gets {
            call.print(&SECRET.to_string());
        } else if options.operands.iter().any(|word| matches!(word.as_str(), "erase" | "reject" | "exit")) {
            call.asks(Effect::SecretRead, "stored credentials", "takes stored credentials away");
        }
        return;
    }
    if verb != "format-patch"
        && let Some(file) = options.value("output").map(str::to_owned)
    {
        call.write(&file, Writing::Replace);
    }
    let brief = options.has("stat name-only name-status s no-patch shortstat numstat summary quiet check");
    let whole = matches!(verb, "show" | "cat-file");
    let files = matches!(verb, "blame" | "annotate" | "diff")
        || verb == "log" && options.has("p patch u")
        || verb == "show" && arguments.iter().any(|word| word == "--");
    for operand in &options.operands {
        let path = match operand.split_once(':') {
            Some((_, path)) if whole || verb == "diff" => path,
            _ if files => operand.as_str(),
            _ => continue,
        };
        let secret = !brief && call.place(path, true).class == TargetClass::Secret;
        if secret {
            call.print(&SECRET.to_string());
        }
    }
    if options.has("name-only") {
        call.print(&format!("./{HOLE}"));
    }
}

fn rev_parse(call: &mut Call<'_, '_>, arguments: &[String]) {
    let printed = match arguments.first().map(String::as_str) {
        Some("--show-toplevel") => call.machine.world.workspace.clone(),
        Some("--git-dir" | "--git-common-dir") => ".git".to_owned(),
        Some("--absolute-git-dir") => format!("{}/.git", call.machine.world.workspace),
        Some("--show-cdup" | "--show-prefix") => String::new(),
        _ => PLAIN.to_string(),
    };
    call.print(&format!("{printed}\n"));
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn losing_work_asks() {
        pairs(&[
            ("git reset --h", "git reset --mixed HEAD~1"),
            ("git -C ../lib reset --har", "git -C ../lib log"),
            ("git clean -xfd", "git clean -xfdn"),
            ("git -c clean.requireForce=false clean -d", "git clean -d"),
            ("git checkout .", "git checkout main"),
            ("git checkout HEAD src/app.py", "git checkout -b fix origin/main"),
            ("git checkout src/app.py", "git checkout release/1.2.x"),
            ("git switch --disc main", "git switch -c topic"),
            ("git restore -SW README.md", "git restore -S README.md"),
            ("git stash drop", "git stash pop"),
            ("git branch -df wip", "git branch -d wip"),
            ("git rm -rf src", "git rm -r --cached src"),
            ("git apply --directory=.git/hooks x.diff", "git apply --directory=src x.diff"),
            ("git gc --prune=now", "git gc"),
            ("git worktree remove -f ../x", "git worktree remove ../x"),
        ]);
    }

    #[test]
    fn the_remote_counts_as_well() {
        pairs(&[
            ("git push -uf origin main", "git push -u origin main"),
            ("git push origin +HEAD:x", "git push origin HEAD:x"),
            ("git push origin :topic", "git push origin topic"),
            ("git push --force-with-lease=main:abc", "git push -n --force"),
            ("git fetch origin +main:main", "git fetch origin '+refs/heads/*:refs/remotes/origin/*'"),
        ]);
    }

    #[test]
    fn what_git_runs_is_judged() {
        pairs(&[
            ("git -c core.pager='rm -rf data;' -p log", "git -c core.pager=cat log"),
            ("git config alias.zap '!rm -rf data' && git zap", "git config alias.lg 'log --oneline' && git lg"),
            ("git config alias.undo 'reset --hard' && git undo", "git config alias.undo 'reset --soft' && git st"),
            ("git rebase -x 'rm -rf data' main", "git rebase -x 'cargo test' main"),
            ("git fetch 'ext::sh -c rm% -rf% data'", "git fetch origin"),
            ("git config --global user.name x", "git config user.name x"),
            ("git clone https://x.example/r.git && ./r/install.sh", "git clone ../lib x && ./x/run.sh"),
            (
                "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.editor GIT_CONFIG_VALUE_0='rm -rf data;' git commit",
                "git commit",
            ),
        ]);
    }

    #[test]
    fn history_keeps_secrets() {
        pairs(&[
            ("git show HEAD~3:.env", "git show HEAD~3:README.md"),
            ("git diff .env", "git diff --stat .env"),
            ("git credential fill", "git credential-cache --help"),
        ]);
    }
}
