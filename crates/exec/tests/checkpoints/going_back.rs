//! Undo, redo and restore.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use hermes_core::Touches;
use hermes_exec::checkpoints::{Change, Limits, Purpose, TakenBack};
use hermes_exec::rehearsal::Diff;

use crate::place::{Here, TASK, set_mode, tree};

#[test]
fn added_files_go_deleted_ones_come_back_and_modes_and_links_are_kept() {
    let here = Here::new();
    here.write("a.txt", "one\n");
    here.write("deep/er/b.txt", "two\n");
    here.write("run.sh", "#!/bin/sh\n");
    here.write("secret.key", "k\n");
    set_mode(&here.at("run.sh"), 0o4751);
    set_mode(&here.at("secret.key"), 0o600);
    symlink("a.txt", here.at("link")).unwrap();
    symlink("/nowhere/at all", here.at("broken")).unwrap();
    fs::create_dir(here.at("empty")).unwrap();
    set_mode(&here.at("empty"), 0o700);
    let before = here.tree();

    here.turn(|here| {
        fs::remove_dir_all(here.at("deep")).unwrap();
        fs::remove_dir(here.at("empty")).unwrap();
        fs::remove_file(here.at("secret.key")).unwrap();
        fs::remove_file(here.at("link")).unwrap();
        symlink("run.sh", here.at("link")).unwrap();
        fs::remove_file(here.at("broken")).unwrap();
        here.write("broken", "a file now\n");
        set_mode(&here.at("run.sh"), 0o644);
        here.write("a.txt", "ONE\n");
        here.write("new/folder/c.txt", "three\n");
    });
    let after = here.tree();
    let gone = here.undo();
    assert_eq!(gone.left, []);
    assert_eq!(here.tree(), before);
    here.redo();
    assert_eq!(here.tree(), after);
    here.undo();
    assert_eq!(here.tree(), before);
}

#[test]
fn what_somebody_changed_after_the_turn_stays_and_is_named() {
    let here = Here::new();
    here.write("a.txt", "a\n");
    here.write("b.txt", "b\n");
    here.write("mine.txt", "mine\n");
    here.turn(|here| {
        here.write("a.txt", "A\n");
        here.write("b.txt", "B\n");
        here.write("c.txt", "C\n");
    });
    here.write("b.txt", "by hand\n");
    here.write("mine.txt", "changed by hand\n");
    here.write("d.txt", "new by hand\n");
    let gone = here.undo();
    let left: Vec<_> = gone.left.iter().map(|left| left.path.clone()).collect();
    assert_eq!(left, [here.at("b.txt")]);
    let read = |path| here.read(path).unwrap_or_default();
    assert_eq!((read("a.txt"), read("b.txt")), ("a\n".into(), "by hand\n".into()));
    assert_eq!((read("mine.txt"), read("d.txt")), ("changed by hand\n".into(), "new by hand\n".into()));
    assert_eq!(here.read("c.txt"), None);
}

#[test]
fn turns_are_taken_back_one_after_the_other_and_done_again_in_their_order() {
    let here = Here::new();
    let mut states = vec![here.tree()];
    for text in ["one", "two", "three"] {
        here.turn(|here| here.write("a.txt", text));
        states.push(here.tree());
    }
    for state in states[..3].iter().rev() {
        here.undo();
        assert_eq!(here.tree(), *state);
    }
    for state in &states[1..] {
        here.redo();
        assert_eq!(here.tree(), *state);
    }
}

#[test]
fn a_restore_goes_back_to_a_moment_whoever_changed_things_since_and_can_be_undone() {
    let here = Here::new();
    here.write("a.txt", "1");
    here.turn(|here| here.write("a.txt", "2"));
    let first = here.last();
    here.turn(|here| here.write("b.txt", "3"));
    here.write("c.txt", "by hand");
    let now = here.tree();
    let gone = here.restore(&first);
    assert_eq!(gone.left, []);
    assert_eq!(here.tree().keys().filter(|path| path.is_relative()).count(), 2);
    assert_eq!(here.read("a.txt").unwrap(), "1");
    let made = here.last();
    assert_eq!((made.id.as_str(), made.purpose), (gone.id.as_str(), Purpose::Restore));
    here.restore(&made);
    assert_eq!(here.tree(), now);
}

#[test]
fn a_restore_of_some_paths_leaves_the_others() {
    let here = Here::new();
    here.write("src/a.txt", "1");
    here.write("b.txt", "1");
    here.turn(|here| {
        here.write("src/a.txt", "2");
        here.write("src/new.txt", "2");
        here.write("b.txt", "2");
    });
    let way = here.checkpoints.way_to(&here.last(), &[here.at("src")]).unwrap();
    let changes = way.changes();
    assert_eq!(changes, [(here.at("src/a.txt"), Change::Changed), (here.at("src/new.txt"), Change::Removed)]);
    here.checkpoints.go(way).unwrap();
    assert_eq!((here.read("src/a.txt").unwrap(), here.read("b.txt").unwrap()), ("1".into(), "2".into()));
}

#[test]
fn a_way_that_is_given_up_leaves_no_trace() {
    let here = Here::new();
    here.turn(|here| here.write("a.txt", "1"));
    let list = here.list();
    let way = here.checkpoints.way_to(&list[0], &[]).unwrap();
    assert!(!way.changes().is_empty());
    here.checkpoints.give_up(&way).unwrap();
    assert_eq!(here.list(), list);
}

#[test]
fn a_project_that_was_removed_as_a_whole_comes_back() {
    let here = Here::new();
    here.write("a/b.txt", "1");
    set_mode(&here.project, 0o750);
    let before = here.tree();
    here.turn(|here| fs::remove_dir_all(&here.project).unwrap());
    here.undo();
    assert_eq!(here.tree(), before);
}

#[test]
fn a_folder_that_may_not_be_written_to_is_restored_with_its_mode() {
    let here = Here::new();
    here.write("locked/a.txt", "1");
    set_mode(&here.at("locked"), 0o555);
    let before = here.tree();
    here.turn(|here| {
        set_mode(&here.at("locked"), 0o755);
        here.write("locked/a.txt", "2");
        here.write("locked/new.txt", "2");
        set_mode(&here.at("locked"), 0o555);
    });
    assert_eq!(here.undo().left, []);
    assert_eq!(here.tree(), before);
}

#[test]
fn a_link_in_the_way_is_never_followed() {
    let here = Here::new();
    let outside = here.home.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "not yours").unwrap();
    here.write("d/a.txt", "1");
    here.turn(|here| here.write("d/a.txt", "2"));
    fs::remove_dir_all(here.at("d")).unwrap();
    symlink(&outside, here.at("d")).unwrap();
    here.undo();
    assert_eq!(fs::read_to_string(outside.join("a.txt")).unwrap(), "not yours");
    assert_eq!(tree(&outside).len(), 2);
}

#[test]
fn a_file_outside_of_the_project_that_a_call_names_comes_back_too() {
    let here = Here::new();
    let (there, new) = (here.home.join("notes.txt"), here.home.join("made/up/new.txt"));
    fs::write(&there, "1").unwrap();
    let touches = Touches { writes: vec![there.clone(), new.clone()], ..Touches::nothing() };
    here.turn_with(&[touches], |_| {
        fs::write(&there, "2").unwrap();
        fs::create_dir_all(new.parent().unwrap()).unwrap();
        fs::write(&new, "2").unwrap();
    })
    .unwrap();
    assert_eq!(here.undo().left, []);
    assert_eq!(fs::read_to_string(&there).unwrap(), "1");
    assert!(!here.home.join("made").exists());
}

#[test]
fn a_difference_is_shown_and_a_secret_is_not_quoted() {
    let here = Here::new();
    here.write("a.txt", "one\n");
    here.write(".env", "KEY=old-secret\n");
    here.turn(|here| {
        here.write("a.txt", "two\n");
        here.write(".env", "KEY=new-secret\n");
    });
    let way = here.checkpoints.way_to(&here.last(), &[]).unwrap();
    let shown = here.checkpoints.differences(&way, |path| path.ends_with(".env")).unwrap();
    let [(_, _, Diff::Summary { text: secret }), (_, _, Diff::Text { unified, .. })] = &shown[..] else {
        panic!("{shown:?}");
    };
    assert!(unified.contains("-one\n+two\n"), "{unified}");
    assert!(secret.starts_with("not shown") && !secret.contains("secret\n") && !secret.contains("KEY"), "{secret}");
    here.checkpoints.go(way).unwrap();
    assert_eq!(here.read(".env").unwrap(), "KEY=old-secret\n");
}

#[test]
fn a_project_that_became_a_link_is_not_what_was_kept() {
    let here = Here::new();
    here.write("x", "1");
    here.turn(|here| here.write("x", "2"));
    let other = here.home.join("code").join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("keep.txt"), "keep").unwrap();
    fs::write(other.join("x"), "other").unwrap();
    fs::rename(&here.project, here.home.join("code").join("moved")).unwrap();
    symlink(&other, &here.project).unwrap();
    let gone = here.restore(&here.last());
    assert_eq!(gone.done, [] as [PathBuf; 0]);
    assert!(!gone.left.is_empty());
    assert_eq!(fs::read_to_string(other.join("x")).unwrap(), "other");
    assert!(other.join("keep.txt").exists());
}

#[test]
fn a_further_name_that_a_turn_gave_a_file_goes_and_the_file_is_as_it_was() {
    let here = Here::new();
    here.write("a", "1");
    let before = here.tree();
    here.turn(|here| {
        here.write("a", "2");
        fs::hard_link(here.at("a"), here.at("b")).unwrap();
    });
    assert_eq!(here.undo().left, []);
    assert_eq!(here.tree(), before);
}

#[test]
fn a_path_comes_back_with_the_folders_that_it_needs() {
    let here = Here::new();
    here.write("a/b/c.txt", "1");
    here.write("a/d.txt", "1");
    here.turn(|here| fs::remove_dir_all(here.at("a")).unwrap());
    let gone = here.checkpoints.go(here.checkpoints.way_to(&here.last(), &[here.at("a/b/c.txt")]).unwrap()).unwrap();
    assert_eq!(gone.left, []);
    assert!(here.at("a/b/c.txt").exists() && !here.at("a/d.txt").exists());
    let error = here.checkpoints.way_to(&here.last(), &[here.at("nosuch")]).unwrap_err();
    assert!(error.to_string().contains("nosuch"), "{error}");
}

#[test]
fn what_was_left_out_and_is_gone_is_named() {
    let here = Here::new();
    here.write(".git/HEAD", "ref: refs/heads/main");
    here.write("a", "1");
    here.turn(|here| fs::remove_dir_all(&here.project).unwrap());
    let gone = here.undo();
    assert_eq!(here.read("a").unwrap(), "1");
    assert_eq!(gone.left.iter().map(|left| left.path.clone()).collect::<Vec<_>>(), [here.at(".git")]);
}

#[test]
fn an_edit_between_the_look_and_the_way_is_seen_although_size_and_time_are_the_same() {
    let here = Here::new();
    here.write("a.txt", "one");
    here.write("gone.txt", "one");
    here.turn(|here| {
        here.write("a.txt", "two");
        here.write("b.txt", "two");
    });
    let way = here.checkpoints.way_to(&here.last(), &[]).unwrap();
    for name in ["a.txt", "b.txt"] {
        let before = fs::metadata(here.at(name)).unwrap().modified().unwrap();
        here.write(name, "own");
        fs::File::options().write(true).open(here.at(name)).unwrap().set_modified(before).unwrap();
    }
    let gone = here.checkpoints.go(way).unwrap();
    assert_eq!(gone.left.len(), 2, "{:?}", gone.left);
    assert_eq!((here.read("a.txt").unwrap(), here.read("b.txt").unwrap()), ("own".into(), "own".into()));
}

#[test]
fn an_undo_goes_past_turns_of_which_nothing_is_left() {
    let here = Here::new();
    let undo = || here.checkpoints.take_back(TASK, false, &|| false).unwrap();
    here.write("a.txt", "1");
    here.turn(|here| here.write("a.txt", "2"));
    here.turn(|here| here.write("b.txt", "1"));
    fs::remove_file(here.at("b.txt")).unwrap();
    assert!(matches!(undo(), TakenBack::Done { .. }));
    assert_eq!(here.read("a.txt").unwrap(), "1", "the turn before is meant");
    assert!(matches!(undo(), TakenBack::Nothing));

    here.turn(|here| here.write("a.txt", "2"));
    here.turn(|here| here.write("c.txt", "1"));
    here.write("c.txt", "mine");
    let TakenBack::Done { gone, .. } = undo() else { panic!("there is something to say") };
    assert!(gone.done.is_empty() && gone.left[0].said.contains("changed afterwards"), "{gone:?}");
    undo();
    assert_eq!((here.read("a.txt").unwrap(), here.read("c.txt").unwrap()), ("1".into(), "mine".into()));
}

#[test]
fn an_undo_that_is_stopped_goes_on_with_the_next_one() {
    let here = Here::new();
    here.write("a.txt", "1");
    here.turn(|here| (0..9).for_each(|n| here.write(&format!("f{n}"), "x")));
    let asked = Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) >= 4;
    let TakenBack::Done { gone, .. } = here.checkpoints.take_back(TASK, false, &stop).unwrap() else { panic!() };
    assert_eq!((gone.done.len(), gone.left.len()), (4, 5), "{gone:?}");
    let TakenBack::Done { gone, .. } = here.checkpoints.take_back(TASK, false, &|| false).unwrap() else { panic!() };
    assert_eq!((gone.done.len(), gone.left.len()), (5, 0), "{gone:?}");
    assert_eq!(here.tree().len(), 2);
}

#[test]
fn an_undo_that_is_stopped_leaves_nothing_half_done() {
    for patience in 0..8 {
        let here = Here::new();
        here.write("a", "1");
        here.write("b/c", "1");
        here.turn(|here| {
            fs::remove_file(here.at("a")).unwrap();
            here.write("a/x", "2");
            fs::remove_dir_all(here.at("b")).unwrap();
            here.write("b", "2");
            set_mode(&here.project, 0o711);
        });
        let asked = Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) >= patience;
        for stop in [&stop as &dyn Fn() -> bool, &|| false] {
            here.checkpoints.take_back(TASK, false, stop).unwrap();
            for name in ["a", "b"] {
                assert!(here.at(name).exists(), "{name} after {patience}");
            }
        }
        assert_eq!((here.read("a").unwrap(), here.read("b/c").unwrap()), ("1".into(), "1".into()), "after {patience}");
    }
}

#[test]
fn whoever_only_looks_leaves_no_checkpoint_and_what_is_looked_at_is_not_collected() {
    let here = Here::new();
    here.write("a.txt", "1");
    here.turn(|here| here.write("a.txt", "2"));
    let before = here.list();
    let way = here.checkpoints.way_to(&here.last(), &[]).unwrap();
    assert_eq!(here.list(), before);
    here.checkpoints.prune(SystemTime::now()).unwrap();
    assert_eq!(here.checkpoints.go(way).unwrap().left, []);
    assert_eq!(here.read("a.txt").unwrap(), "1");
    here.checkpoints.way_to(&before[0], &[]).unwrap();
    here.checkpoints.prune(SystemTime::now() + Duration::from_secs(2 * 24 * 3600)).unwrap();
    let store = here.home.join(".hermes/checkpoints/store.git");
    let named = Command::new("git").arg("--git-dir").arg(store).arg("for-each-ref").output().unwrap().stdout;
    assert!(!String::from_utf8(named).unwrap().contains("/look"), "what nobody goes any more is given up");
}

#[test]
fn permissions_come_back_also_where_an_access_list_has_others() {
    let here = Here::new();
    here.write("a.txt", "1");
    set_mode(&here.at("a.txt"), 0o664);
    // user::rw-, user 1:r--, group::rw-, mask::rw-, other::r-- (acl(5), as the kernel keeps it).
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 4, 1), (4, 6, u32::MAX), (16, 6, u32::MAX), (32, 4, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, who) in entries {
        list.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
        list.extend(who.to_le_bytes());
    }
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(here.at("a.txt"), "system.posix_acl_access", &list, flags).is_err() {
        eprintln!("skipped: this file system has no access lists");
        return;
    }
    here.turn(|here| {
        here.write("a.txt", "2");
        set_mode(&here.at("a.txt"), 0o600);
    });
    assert_eq!(here.undo().left, []);
    assert_eq!(fs::metadata(here.at("a.txt")).unwrap().permissions().mode() & 0o777, 0o664);
}

#[test]
fn what_does_not_come_back_is_not_said_to_stay() {
    let here = Here::with(Limits { file_bytes: 1000, ..Limits::default() });
    here.write("large", &"x".repeat(2000));
    here.write("other", &"x".repeat(2000));
    here.write("node_modules/x", "code");
    here.turn(|here| {
        fs::remove_file(here.at("large")).unwrap();
        fs::remove_dir_all(here.at("node_modules")).unwrap();
        here.write("other", "y");
    });
    let said: BTreeMap<PathBuf, String> = here.undo().left.into_iter().map(|left| (left.path, left.said)).collect();
    assert!(said[&here.at("large")].starts_with("is gone and does not come back"), "{said:?}");
    assert!(said[&here.at("node_modules")].starts_with("is gone and does not come back"), "{said:?}");
    assert!(said[&here.at("other")].starts_with("stays as it is"), "{said:?}");
}
