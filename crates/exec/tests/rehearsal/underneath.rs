//! What somebody else changes while a rehearsal is open.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use hermes_exec::rehearsal::{Method, Mount, RehearsalError, Stage};

use crate::place::{COPY, Here, METHODS, paths, run_in};

const BEFORE: &str = "mkdir -p d/e gone/deep keep; echo 1 > d/f; echo 2 > d/g; echo 3 > gone/x; echo 4 > gone/deep/y
    echo 5 > mode; echo 6 > kind; echo 7 > target; echo 8 > keep/k; ln -s nowhere link";

const SCRIPT: &str = "echo more >> d/f; rm d/g; echo new > d/new; mkdir -p added/in; echo > added/in/it; rm -r gone
    chmod 600 mode; rm kind; mkdir kind; echo > kind/in; ln target target2; ln -sfn elsewhere link; chmod 700 keep";

/// Each change, and the path that the refusal names.
const HINDRANCES: [(&str, &str); 24] = [
    ("echo >> d/f", "d/f"),
    ("rm d/f", "d/f"),
    ("chmod 600 d/f", "d/f"),
    ("rm d/f; mkdir d/f", "d/f"),
    ("echo other > t; mv t d/f", "d/f"),
    ("cp -p d/f t; mv t d/f", "d/f"),
    ("touch d/g", "d/g"),
    ("echo mine > d/new", "d/new"),
    ("ln -s /nowhere d/new", "d/new"),
    ("mkdir added", "added"),
    ("echo > gone/deep/new", "gone/deep"),
    ("echo >> gone/deep/y", "gone/deep/y"),
    ("rm gone/x", "gone"),
    ("mv gone/deep gone/deeper", "gone"),
    ("chmod 700 gone/deep", "gone/deep"),
    ("chmod 644 mode; chmod 640 mode", "mode"),
    ("echo >> mode", "mode"),
    ("echo >> kind", "kind"),
    ("rm kind; mkdir kind", "kind"),
    ("echo >> target", "target"),
    ("rm target", "target"),
    ("ln -sfn third link", "link"),
    ("chmod 711 keep", "keep"),
    ("mv d d.old; cp -a d.old d", "d/f"),
];

fn refused_for_each(method: Method) {
    for (change, named) in HINDRANCES {
        let here = Here::new();
        here.directly(BEFORE);
        let stage = here.rehearse(method, SCRIPT);
        here.directly(change);
        let before = here.tree();
        let Err(error) = stage.commit(&here.undo()) else { panic!("{change}: committed") };
        let RehearsalError::Underneath { undoing: false, conflicts } = &error else { panic!("{change}: {error}") };
        let paths: Vec<_> = conflicts.iter().map(|conflict| conflict.path.to_str().unwrap()).collect();
        assert!(paths.iter().any(|path| Path::new(path).starts_with(named)), "{change}: {paths:?}");
        assert!(error.to_string().starts_with("rehearsal: not committed, nothing was touched: since it began "));
        assert_eq!(here.tree(), before, "{change}");
        assert!(fs::read_dir(here.undo()).unwrap().next().is_none());
    }
}

#[test]
fn a_change_below_an_overlay_is_refused_and_named() {
    refused_for_each(Method::Overlay);
}

#[test]
fn a_change_beside_a_copy_is_refused_and_named() {
    refused_for_each(COPY);
}

#[test]
fn a_change_elsewhere_does_not_hinder() {
    for method in METHODS {
        let here = Here::new();
        here.directly(BEFORE);
        let stage = here.rehearse(method, SCRIPT);
        here.directly(
            "echo > d/other; echo >> keep/k; echo > keep/new; rmdir d/e; echo > top; mkdir more; mv top more",
        );
        let _undo = stage.commit(&here.undo()).unwrap().undo;
        assert_eq!(here.read("d/f"), "1\nmore\n");
        assert_eq!(here.read("d/new"), "new\n");
        assert_eq!(here.read("keep/k"), "8\n\n", "{method:?}");
        assert!(here.path("more/top").exists() && !here.path("gone").exists() && !here.path("d/e").exists());
    }
}

#[test]
fn the_stage_is_still_there_after_a_refusal() {
    let here = Here::new();
    here.directly(BEFORE);
    let stage = here.rehearse(Method::Overlay, "echo more >> d/f");
    here.directly("rm d/f");
    stage.commit(&here.undo()).unwrap_err();
    assert!(!stage.changes().unwrap().is_empty());
    stage.throw_away().unwrap();
    assert!(here.left_over().is_empty());
}

#[test]
fn a_change_during_the_commit_is_put_back() {
    let here = Here::new();
    here.directly(BEFORE);
    let stage = here.rehearse(Method::Overlay, SCRIPT);
    let mut is_changed = false;
    let error = stage.commit_watched(&here.undo(), &mut |progress| {
        if progress.done == 3 && !is_changed {
            is_changed = true;
            here.directly("echo >> d/f");
        }
        ControlFlow::Continue(())
    });
    let error = error.unwrap_err();
    let expected = "rehearsal: not committed, everything was put back: d/f changed at the last moment";
    assert_eq!(error.to_string(), expected);
    let direct = Here::new();
    direct.directly(BEFORE);
    direct.directly("echo >> d/f");
    assert_eq!(here.tree().looks(), direct.tree().looks());
}

/// Where a stage keeps what a command wrote.
fn stand_in(stage: &Stage) -> PathBuf {
    match stage.mount() {
        Mount::Overlay { upper, .. } => upper,
        Mount::Bind { source, .. } => source,
    }
}

#[test]
fn what_was_not_shown_is_not_committed() {
    // Of a whiteout there is none in a copy, where a deleted file that is there again is no less a change.
    for (what, path) in [("echo evil > a", "a"), ("echo > new/more", "new"), ("rm -r new", "new"), ("mv b d", "b")] {
        for method in METHODS {
            let here = Here::new();
            here.directly("echo 1 > a; echo 2 > b; echo 3 > c");
            let stage = here.rehearse(method, "echo good > a; mkdir new; echo n > new/n; rm b; echo b > b; rm c");
            stage.changes().unwrap();
            let before = here.tree();
            run_in(&stand_in(&stage), what.as_bytes());
            match stage.commit(&here.undo()).unwrap_err() {
                RehearsalError::NotAsShown { path: found } => assert_eq!(found, Path::new(path), "{what}"),
                error => panic!("{what}: {error}"),
            }
            assert_eq!(here.tree().looks_and_times(), before.looks_and_times());
            // Whoever looks again may have what they see now.
            stage.changes().unwrap();
            stage.commit(&here.undo()).unwrap().undo.discard().unwrap();
            assert_ne!(here.tree().looks(), before.looks());
        }
    }
}

#[test]
fn what_comes_beside_what_was_shown_is_left_out() {
    for method in METHODS {
        let here = Here::new();
        here.directly("mkdir d; echo 1 > d/a; echo 2 > b");
        let stage = here.rehearse(method, "echo good > d/a; chmod 700 d");
        assert_eq!(paths(&stage.changes().unwrap()), ["ModeChanged d", "Changed d/a"]);
        run_in(&stand_in(&stage), b"echo late > d/late; echo late > b");
        stage.commit(&here.undo()).unwrap().undo.discard().unwrap();
        assert_eq!((here.read("d/a").as_str(), here.read("b").as_str()), ("good\n", "2\n"));
        assert!(!here.path("d/late").exists());
    }
}

#[test]
fn what_changes_in_the_stand_in_while_it_is_built_is_put_back() {
    for method in METHODS {
        let here = Here::new();
        here.directly("echo 1 > a; echo 2 > b");
        let stage = here.rehearse(method, "echo good > a; echo good > b");
        stage.changes().unwrap();
        let before = here.tree();
        let mut is_first = true;
        let error = stage.commit_watched(&here.undo(), &mut |_| {
            if std::mem::take(&mut is_first) {
                run_in(&stand_in(&stage), b"echo evil > b");
            }
            ControlFlow::Continue(())
        });
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("everything was put back: b changed in the stand-in at the last moment"), "{error}");
        assert_eq!(here.tree().looks_and_times(), before.looks_and_times());
    }
}
