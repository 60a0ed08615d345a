//! A process that dies in the middle of a commit, or of taking one back.
//!
//! The test runs itself again as a child, which kills itself at a given moment.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use hermes_exec::rehearsal::{Method, Recovered, RehearsalError, Stage, Undo, reap};
use nix::sys::signal::{Signal, raise};

use crate::place::{Here, Looks, run};

const BEFORE: &str =
    "mkdir -p src old keep; echo main > src/main; echo lib > src/lib; echo x > old/x; echo run > run.sh
    echo kind > kind; chmod 555 keep; echo six > src/six";
const SCRIPT: &str = "echo more >> src/main; rm src/lib; rm -r old; mkdir new; echo n > new/n; chmod 755 run.sh
    rm kind; mkdir kind; chmod 755 keep; echo > keep/in; chmod 500 keep; mv src/six seven";

const ROLE: &str = "HERMES_TEST_CRASHES";

/// The child: stage, run, commit (and take back, if it is to die there), all in the folders it is told.
#[test]
fn the_one_that_crashes() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let role = role.into_string().unwrap();
    let [what, moment, workspace, stages, undo] = role.split('|').collect::<Vec<_>>()[..] else { panic!() };
    let moment: usize = moment.parse().unwrap();
    let die_at = |done| {
        if done == moment {
            raise(Signal::SIGKILL).unwrap();
        }
    };
    let is_commit = what == "commit";
    let stage = Stage::open(Path::new(workspace), Path::new(stages), Method::Overlay).unwrap();
    run(&stage.mount(), SCRIPT.as_bytes());
    let committed = stage.commit_watched(Path::new(undo), &mut |progress| {
        if is_commit {
            die_at(progress.done);
        }
        ControlFlow::Continue(())
    });
    let undo = committed.unwrap().undo;
    if !is_commit {
        undo.undo_watched(&mut |progress| die_at(progress.done)).unwrap();
    }
}

/// Runs the child; says whether it died before its work was done.
fn dies(here: &Here, what: &str, moment: usize) -> bool {
    let parts = [here.workspace(), here.stages(), here.undo()].map(|path| path.display().to_string());
    let role = format!("{what}|{moment}|{}", parts.join("|"));
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::the_one_that_crashes", "--test-threads=1"])
        .env(ROLE, role)
        .output()
        .unwrap();
    if let Some(code) = child.status.code() {
        assert_eq!(code, 0, "{}", String::from_utf8_lossy(&child.stdout));
    }
    !child.status.success()
}

fn undo_folder(here: &Here) -> Option<PathBuf> {
    fs::read_dir(here.undo()).unwrap().next().map(|entry| entry.unwrap().path())
}

fn old_and_new() -> (Looks, Looks) {
    let direct = Here::new();
    direct.directly(BEFORE);
    let old = direct.tree().looks();
    direct.directly(SCRIPT);
    (old, direct.tree().looks())
}

fn crashes_while_committing(new_place: fn() -> Here) {
    let (old, new) = old_and_new();
    let mut seen = Vec::new();
    for moment in 1.. {
        let here = new_place();
        here.directly(BEFORE);
        if !dies(&here, "commit", moment) {
            break;
        }
        let undo = undo_folder(&here).unwrap();
        match Undo::recover(&undo).unwrap() {
            Recovered::NotCommitted => {
                assert_eq!(here.tree().looks(), old, "moment {moment}");
                assert!(undo_folder(&here).is_none());
                seen.push("old");
            }
            Recovered::Committed(undo) => {
                assert_eq!(here.tree().looks(), new, "moment {moment}");
                undo.undo().unwrap();
                assert_eq!(here.tree().looks(), old, "moment {moment}");
                seen.push("new");
            }
            Recovered::TakenBack | Recovered::Removed => panic!("moment {moment}"),
        }
        assert_eq!(reap(&here.stages()).unwrap(), 1);
        assert!(here.left_over().is_empty());
    }
    assert!(seen.len() > 20 && seen.contains(&"old") && seen.contains(&"new"), "{seen:?}");
    assert!(seen.is_sorted_by_key(|tree| *tree == "new"), "{seen:?}");
}

#[test]
fn after_a_crash_at_any_moment_the_tree_is_the_old_or_the_new_one() {
    crashes_while_committing(Here::new);
}

#[test]
fn the_same_where_nothing_can_be_moved_to_the_undo_folder() {
    crashes_while_committing(Here::undoing_elsewhere);
}

#[test]
fn taking_back_goes_on_after_a_crash() {
    let (old, _) = old_and_new();
    for new_place in [Here::new, Here::undoing_elsewhere] {
        let mut moment = 1;
        loop {
            let here = new_place();
            here.directly(BEFORE);
            if !dies(&here, "undo", moment) {
                break;
            }
            let recovered = Undo::recover(&undo_folder(&here).unwrap()).unwrap();
            assert!(matches!(recovered, Recovered::TakenBack));
            assert_eq!(here.tree().looks(), old, "moment {moment}");
            assert!(undo_folder(&here).is_none());
            moment += 1;
        }
        assert!(moment > 5);
    }
}

#[test]
fn a_journal_that_was_cut_short_counts_up_to_its_last_whole_line() {
    let (old, new) = old_and_new();
    let mut outcomes = Vec::new();
    // A commit that is done, of which the journal lost its end: what can be told from the rest must still be whole.
    for cut in 0..6 {
        let here = Here::new();
        here.directly(BEFORE);
        let stage = here.rehearse(Method::Overlay, SCRIPT);
        let undo = stage.commit(&here.undo()).unwrap().undo;
        let journal = undo.path().join("journal");
        let text = fs::read_to_string(&journal).unwrap();
        let committed = text.trim_end().rfind('\n').unwrap() + 1;
        fs::write(&journal, &text[..committed + cut]).unwrap();
        let Recovered::Committed(undo) = Undo::recover(undo.path()).unwrap() else { panic!() };
        assert_eq!(here.tree().looks(), new);
        undo.undo().unwrap();
        assert_eq!(here.tree().looks(), old);
        outcomes.push(cut);
    }
    assert_eq!(outcomes.len(), 6);
}

#[test]
fn a_folder_without_a_journal_is_only_removed() {
    let here = Here::new();
    here.directly(BEFORE);
    let before = here.tree();
    let folder = here.undo().join(OsStr::new("undo-empty"));
    fs::create_dir(&folder).unwrap();
    assert!(matches!(Undo::recover(&folder).unwrap(), Recovered::NotCommitted));
    assert!(!folder.exists());
    assert_eq!(here.tree(), before);
}

#[test]
fn a_crash_while_looking_whether_it_can_be_taken_back_leaves_no_folder_open() {
    let (old, new) = old_and_new();
    let here = Here::new();
    here.directly(BEFORE);
    let stage = here.rehearse(Method::Overlay, SCRIPT);
    let undo = stage.commit(&here.undo()).unwrap().undo;
    let mut journal = OpenOptions::new().append(true).open(undo.path().join("journal")).unwrap();
    writeln!(journal, "\"looking\"").unwrap();
    fs::set_permissions(here.path("keep"), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(undo.undo().unwrap_err(), RehearsalError::NoUndo { .. }));
    let Recovered::Committed(undo) = Undo::recover(undo.path()).unwrap() else { panic!() };
    assert_eq!(here.tree().looks(), new);

    here.directly("echo >> src/main");
    assert!(matches!(undo.undo().unwrap_err(), RehearsalError::Underneath { undoing: true, .. }));
    assert_eq!(fs::metadata(here.path("keep")).unwrap().permissions().mode() & 0o777, 0o500);

    let here = Here::new();
    here.directly(BEFORE);
    here.rehearse(Method::Overlay, SCRIPT).commit(&here.undo()).unwrap().undo.undo().unwrap();
    assert_eq!(here.tree().looks(), old);
}

/// The number of a deleted file is given to the next one that is made, here to the copy that was being put back.
#[test]
fn a_copy_that_was_interrupted_is_not_taken_for_the_original() {
    let (old, _) = old_and_new();
    let here = Here::undoing_elsewhere();
    here.directly(BEFORE);
    let number = |name: &str| fs::metadata(here.path(name)).unwrap().ino();
    let original = number("src/main");
    let undo = here.rehearse(Method::Overlay, SCRIPT).commit(&here.undo()).unwrap().undo;
    let text = fs::read_to_string(undo.path().join("journal")).unwrap();
    let plan: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let steps = plan["plan"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["path"] == "src/main").unwrap();
    assert_eq!(step["old"], original);
    // Half a copy under the temporary name, and the journal names its number as that of the original.
    let half = here.path("src").join(step["temporary"].as_str().unwrap());
    fs::write(&half, "ma").unwrap();
    let reused = fs::metadata(&half).unwrap().ino();
    let text = text.replace(&format!("\"old\":{original},"), &format!("\"old\":{reused},"));
    fs::write(undo.path().join("journal"), text + "\"taking_back\"\n").unwrap();
    assert!(matches!(Undo::recover(undo.path()).unwrap(), Recovered::TakenBack));
    assert_eq!(here.tree().looks(), old);
}
