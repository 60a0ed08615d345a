//! Commit and undo.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use hermes_exec::rehearsal::{Committed, Method, Mount, Recovered, RehearsalError, Undo};

use crate::place::{COPY, Here, METHODS, paths};

const BEFORE: &str = "mkdir -p src old/deep empty; echo main > src/main; echo lib > src/lib; echo x > old/deep/x
    echo y > old/y; echo run > run.sh; ln -s src/main link; chmod 640 src/lib; touch -d 2001-02-03 src/main old/y run.sh";

const SCRIPT: &str =
    "echo more >> src/main; rm src/lib; rm -r old; mkdir -p new/a/b; echo n > new/a/b/n; ln new/a/b/n new/m
    chmod 755 run.sh; ln -sfn src link; chmod 700 empty; ln src/main main2; rm -r empty/..2 2>/dev/null; echo s > .dot
    touch -d 2005-06-07 new/m new/a; chmod 555 new/a; mkfifo new/pipe";

#[test]
fn a_commit_gives_what_was_rehearsed_and_undo_gives_it_back() {
    for method in METHODS {
        for here in [Here::new(), Here::undoing_elsewhere()] {
            here.directly(BEFORE);
            let before = here.tree();
            let stage = here.rehearse(method, SCRIPT);
            let totals = stage.changes().unwrap().totals;
            let Committed { undo, applied } = stage.commit(&here.undo()).unwrap();
            assert_eq!(applied, totals);

            let direct = Here::new();
            direct.directly(BEFORE);
            direct.directly(SCRIPT);
            assert_eq!(here.tree().looks(), direct.tree().looks());
            let metadata = |name: &str| fs::metadata(here.path(name)).unwrap();
            assert_eq!(metadata("new/m").ino(), metadata("new/a/b/n").ino());
            assert_eq!(metadata("src/main").ino(), metadata("main2").ino());
            assert_eq!(metadata("new/m").mtime(), fs::metadata(direct.path("new/m")).unwrap().mtime());
            assert_eq!(metadata("new/a").mtime(), fs::metadata(direct.path("new/a")).unwrap().mtime());

            drop(stage);
            let undo = Undo::open(undo.path()).unwrap();
            undo.undo().unwrap();
            assert_eq!(here.tree().looks_and_times(), before.looks_and_times(), "{method:?}");
            assert!(here.left_over().is_empty());
            assert!(matches!(undo.undo().unwrap_err(), RehearsalError::Io { .. } | RehearsalError::NoUndo { .. }));
        }
    }
}

#[test]
fn discarding_the_way_back_leaves_the_changes() {
    let here = Here::new();
    let stage = here.rehearse(Method::Overlay, "echo new > new");
    let undo = stage.commit(&here.undo()).unwrap().undo;
    stage.throw_away().unwrap();
    let path = undo.path().to_path_buf();
    undo.discard().unwrap();
    assert_eq!(here.read("new"), "new\n");
    assert!(here.left_over().is_empty());
    assert!(Undo::open(&path).is_err());
}

#[test]
fn nothing_to_commit_is_fine() {
    let here = Here::new();
    here.directly("echo 1 > a");
    let before = here.tree();
    let stage = here.rehearse(COPY, "cat a");
    stage.commit(&here.undo()).unwrap().undo.undo().unwrap();
    assert_eq!(here.tree(), before);
}

#[test]
fn extended_attributes_come_along_without_those_of_overlayfs() {
    for method in METHODS {
        let here = Here::new();
        here.directly("echo 1 > a; mkdir d; echo 2 > d/b; echo 3 > c");
        for name in ["a", "c"] {
            rustix::fs::setxattr(here.path(name), "user.note", b"kept", rustix::fs::XattrFlags::empty()).unwrap();
        }
        // `c` gets new contents, `d/b` is made anew in a folder that hides the old one.
        let stage =
            here.rehearse(method, "echo 2 >> a; rm -r d; mkdir d; echo 4 > d/b; echo 5 > d/c; mkdir e; mv c e/c");
        let _undo = stage.commit(&here.undo()).unwrap().undo;
        let names = |name: &str| {
            let mut names = vec![0_u8; 1024];
            let length = rustix::fs::listxattr(here.path(name), names.as_mut_slice()).unwrap();
            names.truncate(length);
            String::from_utf8(names).unwrap()
        };
        assert!(names("a").contains("user.note") && names("e/c").contains("user.note"));
        for name in ["a", "d", "d/b", "d/c", "e", "e/c"] {
            assert!(!names(name).contains("overlay"), "{method:?} {name}: {}", names(name));
        }
    }
}

#[test]
fn an_attribute_alone_is_a_change() {
    for method in METHODS {
        let here = Here::new();
        here.directly("echo 1 > a");
        let script = "python3 -c 'import os; os.setxattr(\"a\", \"user.note\", b\"new\")' || exit 9";
        let stage = here.rehearse(method, script);
        assert_eq!(stage.changes().unwrap().to_string(), "mode       1 path      a (extended attributes)");
        let undo = stage.commit(&here.undo()).unwrap().undo;
        let note = |value: &mut [u8]| rustix::fs::getxattr(here.path("a"), "user.note", value);
        let mut value = [0_u8; 8];
        assert_eq!(note(&mut value).unwrap(), 3);
        undo.undo().unwrap();
        assert!(note(&mut value).is_err());
    }
}

/// Only root may give files away.
#[test]
fn an_owner_that_changed_is_carried_over() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let here = Here::new();
    here.directly("mkdir d; echo 1 > d/a; echo 2 > b; echo 3 > c; chmod 4755 d/a");
    chown(here.path("c"), Some(7), Some(7)).unwrap();
    let before = here.tree();
    let stage = here.stage(COPY);
    let Mount::Bind { source, .. } = stage.mount() else { panic!() };
    for name in ["d", "d/a"] {
        chown(source.join(name), Some(8), Some(9)).unwrap();
    }
    fs::set_permissions(source.join("d/a"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::write(source.join("c"), "changed").unwrap();
    let changes = stage.changes().unwrap();
    assert_eq!(paths(&changes), ["Changed c", "ModeChanged d", "ModeChanged d/a"]);
    assert!(changes.to_string().contains("d (owner 0:0 → 8:9)  d/a (owner 0:0 → 8:9)"), "{changes}");
    let undo = stage.commit(&here.undo()).unwrap().undo;
    let owner = |name: &str| fs::metadata(here.path(name)).map(|file| (file.uid(), file.gid(), file.mode() & 0o7777));
    assert_eq!(owner("d/a").unwrap(), (8, 9, 0o4755));
    assert_eq!((owner("d").unwrap().0, owner("c").unwrap().0), (8, 7));
    undo.undo().unwrap();
    assert_eq!((owner("d/a").unwrap(), owner("d").unwrap().0, owner("c").unwrap().0), ((0, 0, 0o4755), 0, 7));
    assert_eq!(here.tree().looks_and_times(), before.looks_and_times());
}

#[test]
fn other_names_of_a_changed_file_keep_what_they_had() {
    let here = Here::new();
    fs::write(here.outside().join("store"), "old").unwrap();
    fs::hard_link(here.outside().join("store"), here.path("a")).unwrap();
    let stage = here.rehearse(Method::Overlay, "printf new > a");
    let undo = stage.commit(&here.undo()).unwrap().undo;
    assert_eq!(here.read("a"), "new");
    assert_eq!(fs::read_to_string(here.outside().join("store")).unwrap(), "old");
    undo.undo().unwrap();
    // The very same file again.
    assert_eq!(fs::metadata(here.path("a")).unwrap().nlink(), 2);
}

#[test]
fn names_of_one_file_that_a_copy_changed_stay_names_of_one_file() {
    for here in [Here::new(), Here::undoing_elsewhere()] {
        here.directly("echo 1 > a; ln a b; ln a c; echo x > d; ln d f; ln d g");
        let before = here.tree();
        let stage = here.rehearse(COPY, "echo 2 >> a; rm c; ln a e; mv f h; rm g");
        let undo = stage.commit(&here.undo()).unwrap().undo;
        assert_eq!(here.read("b"), "1\n2\n");
        let names = |name: &str| fs::metadata(here.path(name)).unwrap().nlink();
        let number = |name: &str| fs::metadata(here.path(name)).unwrap().ino();
        assert_eq!((names("e"), number("h")), (3, number("d")));
        undo.undo().unwrap();
        assert_eq!(here.tree().looks_and_times(), before.looks_and_times());
        assert_eq!(names("c"), 3);
    }
}

#[test]
fn a_commit_can_be_stopped_at_every_step_until_all_is_swapped() {
    for here in [Here::new(), Here::undoing_elsewhere()] {
        here.directly(BEFORE);
        let before = here.tree().looks_and_times();
        let mut after = 0;
        let of = loop {
            // The links of what was there are new each time, so the stage is too.
            let stage = here.rehearse(Method::Overlay, SCRIPT);
            let mut of = 0;
            let done = stage.commit_watched(&here.undo(), &mut |progress| {
                of = progress.of;
                if progress.done > after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            match done {
                Err(error) => {
                    assert!(matches!(error, RehearsalError::PutBack { .. }), "{error}");
                    assert_eq!(error.to_string(), "rehearsal: not committed, everything was put back: stopped");
                    assert_eq!(here.tree().looks_and_times(), before, "stopped after {after}");
                }
                Ok(committed) => {
                    committed.undo.discard().unwrap();
                    break of;
                }
            }
            drop(stage);
            assert!(here.left_over().is_empty());
            after += 1;
        };
        assert!(after > of / 2 && after < of, "{after} of {of}");
    }
}

#[test]
fn undo_is_refused_when_somebody_worked_on() {
    let changes: [(&str, &[&str]); 8] = [
        ("echo >> src/main", &["src/main"]),
        ("rm src/main", &["src/main"]),
        ("echo > new/a/other", &["new/a"]),
        ("echo lib > src/lib", &["src/lib"]),
        ("chmod 711 run.sh", &["run.sh"]),
        ("chmod 711 empty", &["empty"]),
        ("mv src s; mkdir src", &["src/main"]),
        ("mkdir old", &["old"]),
    ];
    for (change, named) in changes {
        let here = Here::new();
        here.directly(BEFORE);
        let stage = here.rehearse(Method::Overlay, SCRIPT);
        let undo = stage.commit(&here.undo()).unwrap().undo;
        here.directly(change);
        let changed = here.tree().looks_and_times();
        let RehearsalError::Underneath { undoing: true, conflicts } = undo.undo().unwrap_err() else { panic!() };
        let paths: Vec<_> = conflicts.iter().map(|conflict| conflict.path.to_str().unwrap()).collect();
        assert!(named.iter().all(|name| paths.contains(name)), "{change}: {paths:?}");
        assert_eq!(here.tree().looks_and_times(), changed, "{change}");
    }
}

#[test]
fn work_elsewhere_does_not_hinder_undo() {
    let here = Here::new();
    here.directly(BEFORE);
    let stage = here.rehearse(Method::Overlay, SCRIPT);
    let undo = stage.commit(&here.undo()).unwrap().undo;
    here.directly("echo > src/other; echo > empty/in_it; mkdir more");
    undo.undo().unwrap();
    here.directly("rm src/other empty/in_it; rmdir more");
    let direct = Here::new();
    direct.directly(BEFORE);
    assert_eq!(here.tree().looks(), direct.tree().looks());
}

#[test]
fn undo_in_another_workspace_is_refused() {
    let here = Here::new();
    let stage = here.rehearse(Method::Overlay, "echo > new");
    let undo = stage.commit(&here.undo()).unwrap().undo;
    drop(stage);
    fs::rename(here.workspace(), here.outside().join("moved")).unwrap();
    fs::create_dir(here.workspace()).unwrap();
    fs::write(here.path("new"), "\n").unwrap();
    assert!(matches!(undo.undo().unwrap_err(), RehearsalError::NoUndo { .. }));
    assert!(here.path("new").exists());
}

#[test]
fn a_workspace_that_is_moved_during_a_commit_is_put_back_when_it_is_there_again() {
    let here = Here::new();
    here.directly("echo 1 > a; echo 2 > b");
    let stage = here.rehearse(Method::Overlay, "echo 3 >> a; rm b");
    let moved = here.outside().join("moved");
    let error = stage.commit_watched(&here.undo(), &mut |progress| {
        if progress.done == 5 {
            fs::rename(here.workspace(), &moved).unwrap();
            fs::create_dir(here.workspace()).unwrap();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let RehearsalError::Half { why, then, undo } = error.unwrap_err() else { panic!() };
    assert_eq!(why, "stopped");
    assert!(then.ends_with("is another folder than at the commit"), "{then}");
    fs::remove_dir(here.workspace()).unwrap();
    fs::rename(&moved, here.workspace()).unwrap();
    assert!(matches!(Undo::recover(&undo).unwrap(), Recovered::NotCommitted));
    assert_eq!((here.read("a"), here.read("b")), ("1\n".to_owned(), "2\n".to_owned()));
}

#[test]
fn a_link_in_the_way_leads_nowhere() {
    for method in METHODS {
        let here = Here::new();
        here.directly("mkdir -p d/e; echo 1 > d/f; echo 2 > d/e/g");
        let stage =
            here.rehearse(method, "echo hack >> d/f; echo hack > d/new; rm d/e/g; mkdir d/n; echo hack > d/n/n");
        let outside = here.outside();
        fs::create_dir(outside.join("e")).unwrap();
        for name in ["f", "e/g"] {
            fs::write(outside.join(name), "precious").unwrap();
        }
        fs::rename(here.path("d"), here.path("d.old")).unwrap();
        symlink(&outside, here.path("d")).unwrap();
        let error = stage.commit(&here.undo()).unwrap_err();
        assert!(matches!(error, RehearsalError::Underneath { .. }), "{error}");
        assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "precious");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 2);
        assert!(outside.join("e/g").exists());
    }
}

/// The link comes while the commit is at work, at every moment of it.
#[test]
fn a_link_that_comes_during_a_commit_leads_nowhere() {
    for moment in 1.. {
        let here = Here::new();
        here.directly("mkdir -p d; echo 1 > d/f; echo 2 > d/g");
        let outside = here.outside();
        for name in ["f", "g"] {
            fs::write(outside.join(name), "precious").unwrap();
        }
        let stage = here.rehearse(Method::Overlay, "echo hack >> d/f; echo hack > d/new; rm d/g");
        let mut is_last = true;
        let done = stage.commit_watched(&here.undo(), &mut |progress| {
            if progress.done == moment {
                is_last = progress.done == progress.of;
                fs::rename(here.path("d"), here.path("d.old")).unwrap();
                symlink(&outside, here.path("d")).unwrap();
            }
            ControlFlow::Continue(())
        });
        assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "precious");
        assert_eq!(fs::read_to_string(outside.join("g")).unwrap(), "precious");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 2, "moment {moment}");
        match done {
            Ok(_) => assert!(is_last),
            // Nothing could be put back through the link; once it is gone, it can.
            Err(RehearsalError::Half { undo, .. } | RehearsalError::Unsettled { undo, .. }) => {
                fs::remove_file(here.path("d")).unwrap();
                fs::rename(here.path("d.old"), here.path("d")).unwrap();
                let _recovered = Undo::recover(&undo).unwrap();
                let has_new = here.path("d/new").exists();
                assert_eq!(here.read("d/f"), if has_new { "1\nhack\n" } else { "1\n" });
                assert_eq!(here.path("d/g").exists(), !has_new);
                assert_eq!(fs::read_dir(here.path("d")).unwrap().count(), 2);
            }
            Err(error) => panic!("{error}"),
        }
        if is_last {
            break;
        }
    }
}

#[test]
fn folders_that_may_not_be_written_are_written_all_the_same_and_stay_so() {
    for method in METHODS {
        let here = Here::new();
        here.directly("mkdir -p d/e; echo 1 > d/e/f; echo 2 > d/e/g; chmod 555 d/e d");
        let before = here.tree();
        let script = "chmod 755 d d/e; echo 3 >> d/e/f; rm d/e/g; echo > d/e/h; chmod 555 d/e d";
        let stage = here.rehearse(method, script);
        let undo = stage.commit(&here.undo()).unwrap().undo;
        assert_eq!(here.read("d/e/f"), "1\n3\n");
        assert_eq!(fs::metadata(here.path("d/e")).unwrap().permissions().mode() & 0o777, 0o555);
        undo.undo().unwrap();
        assert_eq!(here.tree().looks_and_times(), before.looks_and_times());
        assert!(!Path::new(&here.path("d/e/h")).exists());
        here.directly("chmod -R u+w .");
    }
}
