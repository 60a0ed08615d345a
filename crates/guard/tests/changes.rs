//! What a command would change, as whoever keeps files for an undo is told.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use hermes_core::{Changes, CommandPlace, Judge as _};
use hermes_guard::Guard;
use hermes_guard::paths::PathPolicy;
use hermes_guard::policy::Policy;

fn changes(command: &str) -> Changes {
    let (home, agent) = (Path::new("/home/me"), Path::new("/home/me/.hermes"));
    let guard = Guard::new(home, "me", agent, PathPolicy::new(home, agent), Policy::default());
    let place = CommandPlace { cwd: Path::new("/home/me/code"), carried: "", shares_our_files: false };
    guard.changes(command, &place)
}

#[test]
fn what_only_reads_changes_nothing() {
    for command in [
        "ls -la",
        "cat a.txt | grep -n x | sort | head -3",
        "git status && git log --oneline -3; git diff > /dev/null",
        "find . -name '*.rs' -print | xargs grep -l fn",
        "cd sub && pwd",
        "for f in *.txt; do wc -l \"$f\"; done",
        "if [ -f x ]; then echo yes; fi 2>/dev/null",
        "timeout 5 cat x",
    ] {
        assert_eq!(changes(command), Changes::Nothing, "{command}");
    }
}

#[test]
fn what_writes_says_where_as_far_as_that_can_be_told() {
    let only = |command: &str, path: &str| {
        let named = vec![PathBuf::from(path)];
        assert!(
            matches!(changes(command), Changes::Only(ref paths) | Changes::Anything(ref paths) if *paths == named),
            "{command}: {:?}",
            changes(command)
        );
    };
    only("echo x > a.txt", "/home/me/code/a.txt");
    only("cat b >> ../notes.txt", "/home/me/notes.txt");
    only("rm -rf build", "/home/me/code/build");
    only("sort -o out.txt in.txt", "/home/me/code/out.txt");
    only("sed -i s/a/b/ a.txt", "/home/me/code/a.txt");
    only("/usr/bin/time -o t.txt ls", "/home/me/code/t.txt");
    only("jobs -x rm -f a.txt", "/home/me/code/a.txt");
    only("echo x > /dev/shm/p", "/dev/shm/p");
    only("d=/srv/x; echo x > $d/y", "/srv/x/y");
    only("rm *.o", "/home/me/code/*.o");
    only("rm 'a[1].txt'", "/home/me/code/a[1].txt");
    only("rm ~/x?[ab]", "/home/me/x?[ab]");
    only("echo x > log.$$", "/home/me/code/log.*");
}

#[test]
fn what_nobody_knows_may_change_anything() {
    for command in [
        "make",
        "python3 -c 'open(\"x\",\"w\")'",
        "./build.sh",
        "git checkout .",
        "echo x > $SOMEWHERE",
        "cat a | tee b | bash",
        "$TOOL x",
        "echo 'unclosed",
        "npm install",
        "xargs rm < list",
        "find . -name '*.o' -delete",
        "./test",
        "bin/cat x",
        "PATH=.:$PATH cat x",
        "export PATH=.; cat x",
        "GIT_EXTERNAL_DIFF=./x git diff",
        "rg --pre ./gen.sh x",
        "sort --compress-program=./x a",
        "git grep -O./x y",
        "ag --pager ./x y",
        "echo x > \"$(cat y)\"",
    ] {
        assert!(matches!(changes(command), Changes::Anything(_)), "{command}: {:?}", changes(command));
    }
}
