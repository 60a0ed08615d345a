//! Version control other than git: the same losses under other names.

use super::verbs::{self, Rule, Tool, asks, fine, tool};
use super::{Program, environment, shells};
use crate::eval::Call;
use crate::finding::Effect;

pub(super) const PROGRAMS: [Program; 12] = verbs::programs(&TOOLS, model);

const LOSES: Effect = Effect::VersionControl;
const WORK: &str = "throws away uncommitted work";
const HISTORY: &str = "deletes or rewrites history";
const REMOTE: &str = "overwrites or deletes what others have";

const HG: &[Rule] = &[
    asks("update|up|checkout|co|goto|merge", LOSES, WORK).only("C clean"),
    asks("revert|rev", LOSES, WORK),
    fine("purge|clean").only("p print"),
    asks("purge|clean", LOSES, "deletes files that are not tracked"),
    asks("strip|debugstrip|rollback|prune|histedit|obsolete|hide", LOSES, HISTORY),
    asks("push", LOSES, REMOTE).only("f force"),
    asks("phase", LOSES, HISTORY).only("f force"),
    asks("shelve", LOSES, "deletes shelved work").only("d delete cleanup"),
    asks("bookmark|bookmarks|book", LOSES, "deletes or moves bookmarks").only("d delete f force strip B"),
    asks("censor", LOSES, HISTORY),
    asks("tag", LOSES, "removes or moves tags").only("remove f force"),
    asks("remove|rm|delete", LOSES, WORK).only("f force"),
    asks("forget", LOSES, WORK).only("force"),
];
const SVN: &[Rule] = &[
    asks("revert", LOSES, WORK),
    asks("cleanup", LOSES, "deletes files that are not tracked").only("remove-unversioned remove-ignored"),
    asks("delete|del|remove|rm", LOSES, WORK).only("force"),
    asks("delete|del|remove|rm *://*", LOSES, REMOTE),
    asks("propset|propdel|propedit|ps|pd|pe", LOSES, "changes history that is not versioned").only("revprop"),
    asks("unlock", LOSES, "takes a lock from somebody else").only("force"),
    asks("resolve|resolved", LOSES, WORK).only("accept=theirs-full accept=base"),
];
const JJ: &[Rule] = &[
    asks("abandon|restore", LOSES, "throws away changes"),
    asks("op|operation abandon|restore|revert", LOSES, HISTORY),
    asks("git push", LOSES, REMOTE).only("deleted delete"),
    asks("bookmark|branch|b delete|forget|d|f", LOSES, "deletes bookmarks"),
    asks("bookmark|branch|b set|move|s|m", LOSES, "moves a bookmark away from its commits").only("allow-backwards B"),
    asks("tag delete|d", LOSES, "deletes tags"),
    asks("workspace forget", LOSES, WORK),
    asks("util gc", LOSES, "deletes commits that nothing points to any more"),
];
const FOSSIL: &[Rule] = &[
    asks("clean", LOSES, "deletes files that are not tracked").unless("n"),
    asks("revert", LOSES, WORK),
    asks("stash drop|rm|clear", LOSES, "drops stashed work"),
    asks("purge|shun|scrub", LOSES, HISTORY),
    asks("rm|delete|forget", LOSES, WORK).only("hard"),
    asks("close", LOSES, WORK).only("f force"),
    asks("update|checkout|co", LOSES, WORK).only("f force"),
];
const P4: &[Rule] = &[
    asks("revert|clean|obliterate|undo", LOSES, WORK).unless("n"),
    asks("sync|update|flush", LOSES, WORK).only("f").unless("n"),
    asks("reconcile|rec", LOSES, WORK).only("w").unless("n"),
    asks(
        "client|workspace|branch|change|changelist|shelve|label|user|depot|group|stream|job|protect|typemap|triggers",
        LOSES,
        "deletes what the server keeps",
    )
    .only("d"),
    asks("admin stop|restart|checkpoint", Effect::Service, "stops or changes the server"),
    asks("archive|purge", LOSES, HISTORY),
];
const BZR: &[Rule] = &[
    asks("revert", LOSES, WORK),
    asks("clean-tree", LOSES, "deletes files that are not tracked"),
    asks("push|pull", LOSES, REMOTE).only("overwrite overwrite-tags"),
    asks("remove|rm", LOSES, WORK).only("force no-backup"),
    asks("tag", LOSES, "deletes tags").only("delete force"),
    asks("remove-branch|rmbranch", LOSES, "deletes a branch"),
    asks("shelve", LOSES, "deletes shelved work").only("destroy"),
    asks("unshelve", LOSES, "deletes shelved work").only("delete-only"),
];
const DARCS: &[Rule] =
    &[asks("revert|clean", LOSES, WORK), asks("obliterate|unpull|unrecord|optimize", LOSES, HISTORY)];
const SAPLING: &[Rule] = &[
    asks("goto|go|update|up|checkout|co", LOSES, WORK).only("C clean"),
    asks("revert|purge|clean", LOSES, WORK).unless("p print"),
    asks("hide|strip|debugstrip|undo", LOSES, HISTORY),
    asks("push", LOSES, REMOTE).only("f force delete"),
    asks("bookmark|book", LOSES, "deletes bookmarks").only("d delete f force"),
    asks("shelve", LOSES, "deletes shelved work").only("d delete cleanup"),
];
const CVS: &[Rule] = &[
    asks("update|up", LOSES, WORK).only("C"),
    asks("release", LOSES, WORK).only("d"),
    asks("remove|rm|delete", LOSES, WORK).only("f"),
    asks("tag|rtag", LOSES, "deletes or moves tags").only("d F"),
    asks("admin", LOSES, HISTORY).only("o"),
];
const REPO: &[Rule] = &[
    asks("sync", LOSES, WORK).only("force-sync force-remove-dirty force-checkout d detach"),
    asks("abandon|prune", LOSES, "deletes branches"),
];
const BFG: &[Rule] = &[asks("*", LOSES, "rewrites the history")];
const SVNADMIN: &[Rule] = &[
    asks("rmtxns|rmlocks|setrevprop|delrevprop|load|build-repcache", LOSES, "changes a repository behind its back"),
    asks("rmlocks", LOSES, "takes locks from others"),
];

const TOOLS: [Tool; 12] = [
    tool(&["hg", "chg", "rhg"], HG)
        .valued(
            "RrbmIXdutlo",
            "repository= cwd= config= encoding= rev= message= date= user= include= exclude= \
            clean color= pager= style= template= tool=",
        )
        .dry("dry-run n"),
    tool(&["svn"], SVN).valued(
        "rmFc",
        "revision= message= file= username= password= config-dir= config-option= \
        accept= depth= set-depth= diff-cmd= diff3-cmd= editor-cmd= encoding= targets= changelist= limit= \
        extensions= force force-interactive",
    ),
    tool(&["jj"], JJ).valued(
        "RrmbofdAT",
        "repository= at-operation= at-op= color= config= config-toml= \
        config-file= revision= revisions= message= bookmark= remote= from= to= into= delete deleted",
    ),
    tool(&["fossil"], FOSSIL)
        .valued("Rm", "repository= user= case-sensitive= ignore= keep= comment=")
        .dry("dry-run dryrun"),
    tool(&["p4"], P4).valued("cCdHpPuxL", ""),
    tool(&["bzr", "brz"], BZR).valued("rmd", "revision= message= directory="),
    tool(&["darcs"], DARCS).valued("pm", "repodir= patch= patches= matches="),
    tool(&["sl"], SAPLING).valued("Rrm", "repository= cwd= config= rev= message="),
    tool(&["cvs"], CVS).valued("dermz", ""),
    tool(&["repo"], REPO).valued("jcmbu", "jobs= command= manifest-name="),
    tool(&["bfg"], BFG),
    tool(&["svnadmin"], SVNADMIN),
];

fn model(call: &mut Call<'_, '_>) {
    let Some(tool) = verbs::find(&TOOLS, &call.name) else { return };
    let options = tool.read(call.arguments());
    match call.name.as_str() {
        "hg" | "chg" | "rhg" | "sl" | "jj" => {
            for setting in options.values("config config-toml").map(str::to_owned).collect::<Vec<_>>() {
                setting_of(call, &setting);
            }
        }
        "svn" => {
            for program in options.values("diff-cmd diff3-cmd editor-cmd").map(str::to_owned).collect::<Vec<_>>() {
                environment::side_door(call, &program);
            }
            for setting in options.values("config-option").map(str::to_owned).collect::<Vec<_>>() {
                // `config:tunnels:ssh=program`
                if let Some((name, value)) = setting.split_once('=')
                    && (name.contains(":tunnels:") || name.contains(":helpers:"))
                {
                    environment::side_door(call, value);
                }
            }
        }
        "repo" if options.operands.first().is_some_and(|verb| verb == "forall") => {
            let at = call.arguments().iter().position(|word| word == "-c").map(|at| at + 1);
            if let Some(script) = at.map(|at| shells::joined(call.arguments().get(at..).unwrap_or_default())) {
                call.shell(&script);
            }
            return;
        }
        _ => {}
    }
    tool.judge(call);
}

/// `section.name=value`: hooks, editors, aliases and extensions are programs.
fn setting_of(call: &mut Call<'_, '_>, setting: &str) {
    let Some((name, value)) = setting.split_once('=') else { return };
    let value = value.trim_matches(['"', '\'']);
    let (section, last) = name.trim().split_once('.').unwrap_or((name, ""));
    match section {
        "alias" => {
            if let Some(script) = value.strip_prefix('!') {
                call.shell(script);
            } else {
                let mut words = vec![call.name.clone()];
                words.extend(crate::shell::split(value));
                call.run(words);
            }
        }
        "hooks" if value.starts_with("python:") => call.cannot_tell("runs a hook that cannot be read here"),
        "hooks" => call.shell(value),
        "extensions" if value.contains('/') => call.cannot_tell("loads an extension that cannot be read here"),
        "ui" if matches!(last, "editor" | "ssh" | "merge" | "remotecmd" | "pager" | "diff-editor" | "merge-editor") => {
            environment::side_door(call, value);
        }
        "pager" if last == "pager" => environment::side_door(call, value),
        "extdiff" | "merge-tools" if last.contains("cmd") || last.contains("executable") => {
            environment::side_door(call, value);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn others_lose_work_as_git_does() {
        pairs(&[
            ("hg update -C default", "hg update --check default"),
            ("hg --cwd ../x revert --all", "hg revert -n --all"),
            ("hg --config alias.x='!rm -rf data' x", "hg --config ui.color=never log"),
            ("svn revert -R .", "svn diff"),
            ("svn rm https://svn.x.example/branches/a -m x", "svn rm a.txt"),
            ("jj abandon @-", "jj log -r @-"),
            ("jj git push --deleted", "jj git push"),
            ("fossil clean --force", "fossil clean --dry-run"),
            ("p4 revert //...", "p4 revert -n //..."),
            ("bzr clean-tree --force", "bzr clean-tree --dry-run"),
            ("repo forall -c 'git reset --hard'", "repo forall -c 'git status'"),
            ("bfg --delete-files id_rsa repo.git", "bfg --help"),
        ]);
    }
}
