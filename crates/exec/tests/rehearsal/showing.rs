//! What a person sees of a rehearsal.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use hermes_exec::rehearsal::{Change, Diff, Kind, Method, RehearsalError, Stage};

use crate::place::{COPY, Here, METHODS, paths};

const PROJECT: &str = "mkdir -p config db docs build/deep
    printf 'a: 1\nb: 2\nc: 3\n' > config/app.yaml; printf 'one\n' > docs/db.md
    echo 7 > db/schema_v7.sql; echo x > build/x; echo yy > build/deep/y; echo run > run.sh";

#[test]
fn a_rehearsal_reads_like_the_mock_up() {
    for method in METHODS {
        let here = Here::new();
        here.directly(PROJECT);
        let stage = here.rehearse(
            method,
            "printf 'a: 1\nb: 3\nb2: 4\nc: 3\n' > config/app.yaml; printf 'one\ntwo\n' > docs/db.md; chmod 755 run.sh
             for n in 8 9 10; do echo $n > db/schema_v$n.sql; done; rm db/schema_v7.sql; rm -r build; mkdir empty",
        );
        let changes = stage.changes().unwrap();
        let expected = "\
added      3 files     db/schema_v10.sql  db/schema_v8.sql  db/schema_v9.sql
added      1 empty folder  empty
changed    2 files     config/app.yaml (+2 −1)  docs/db.md (+1 −0)
mode       1 path      run.sh (644 → 755)
deleted    1 file      db/schema_v7.sql
deleted    1 folder    build (1 folder, 2 files, 5 B)";
        assert_eq!(changes.to_string(), expected, "{method:?}");
        let totals = changes.totals;
        assert_eq!((totals.files_added, totals.files_changed, totals.files_deleted), (3, 2, 3));
        assert_eq!((totals.folders_added, totals.folders_deleted, totals.modes_changed), (1, 2, 1));
    }
}

#[test]
fn a_command_that_changes_nothing_is_said_to() {
    for method in METHODS {
        let here = Here::new();
        here.directly(PROJECT);
        let script = "touch run.sh; cp docs/db.md x; mv x docs/db.md; : >> config/app.yaml; ls -R; mkdir d; rmdir d
            chmod 600 db/schema_v7.sql; chmod 644 db/schema_v7.sql; mv build b; mv b build";
        let changes = here.rehearse(method, script).changes().unwrap();
        assert!(changes.is_empty(), "{method:?} {:?}", paths(&changes));
        assert_eq!(changes.to_string(), "changed    nothing");
    }
}

#[test]
fn a_folder_that_was_emptied_or_made_anew_shows_what_is_gone() {
    for method in METHODS {
        let here = Here::new();
        here.directly(
            "mkdir -p d/e d/i/j f; echo 1 > d/1; echo 2 > d/e/2; echo 3 > f/3; echo 4 > d/4; echo 6 > d/i/j/6",
        );
        let stage = here.rehearse(method, "rm -r d; mkdir -p d/i/j; echo 4 > d/4; echo 5 > d/5; rm f/3");
        assert_eq!(
            paths(&stage.changes().unwrap()),
            ["Deleted d/1", "Added d/5", "Deleted d/e", "Deleted d/i/j/6", "Deleted f/3"],
            "{method:?}"
        );
    }
}

#[test]
fn kinds_that_take_each_others_place_are_named() {
    for method in METHODS {
        let here = Here::new();
        here.directly("mkdir d; echo 1 > d/1; echo 2 > f; ln -s f l; echo 3 > g");
        let stage = here.rehearse(method, "rm -r d f g l; echo d > d; mkdir f; echo x > f/x; ln -s d l; mkfifo g");
        let changes = stage.changes().unwrap();
        let expected = ["Replaced d", "Replaced f", "Added f/x", "Replaced g", "Changed l"];
        assert_eq!(paths(&changes), expected, "{method:?}");
        let lines = changes.lines(200);
        assert!(
            lines
                .iter()
                .any(|line| line.ends_with("d (folder, 1 file, 2 B → file)  f (file → folder)  g (file → pipe)")),
            "{lines:#?}"
        );
        assert!(lines.iter().any(|line| line.ends_with("l → d")), "{lines:#?}");
        assert_eq!(changes.get(Path::new("d")).unwrap().new.as_ref().unwrap().kind, Kind::File);
    }
}

#[test]
fn whatever_a_name_holds_it_is_shown_safely_and_kept_exactly() {
    let odd = OsStr::from_bytes(b"a\n\x1b[31m\xff\xe2\x80\xae");
    for method in METHODS {
        let here = Here::new();
        let mount = here.stage(method).mount();
        let text = serde_json::to_string(&mount).unwrap();
        assert_eq!(serde_json::from_str::<hermes_exec::rehearsal::Mount>(&text).unwrap(), mount);
        let stage = here.rehearse(method, r"echo 1 > $'a\n\x1b[31m\xff\xe2\x80\xae'; echo 2 > 'it'\''s \ ok'");
        let changes = stage.changes().unwrap();
        assert_eq!(changes.entries[0].path.as_os_str(), odd);
        let shown = changes.to_string();
        assert_eq!(shown, r"added      2 files     a\n\u{1b}[31m\xff\u{202e}  it's \ ok");
        let json = serde_json::to_value(&changes).unwrap();
        let bytes: Vec<u64> = odd.as_bytes().iter().map(|byte| u64::from(*byte)).collect();
        assert_eq!(json["entries"][0]["path"], serde_json::json!(bytes));
        assert_eq!(json["entries"][1]["path"], r"it's \ ok");
        assert_eq!(json["entries"][1]["change"], "added");
        let _undo = stage.commit(&here.undo()).unwrap().undo;
        assert_eq!(fs::read(here.workspace().join(odd)).unwrap(), b"1\n");
    }
}

#[test]
fn a_difference_is_text_where_it_can_be() {
    let here = Here::new();
    here.directly("printf 'a\nb\nc\n' > text; printf 'a\\0b' > binary; echo 1 > gone; head -c 1100000 /dev/zero | tr '\\0' x > large; ln -s a link");
    let stage = here.rehearse(
        Method::Overlay,
        "printf 'a\nB\nc\n' > text; printf 'a\\0bc' > binary; rm gone; echo >> large; ln -sfn b link; echo new > new",
    );
    let changes = stage.changes().unwrap();
    let diff = |name: &str| stage.diff(changes.get(Path::new(name)).unwrap()).unwrap().to_string();
    assert_eq!(diff("text"), "--- a/text\n+++ b/text\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
    assert_eq!(diff("binary"), "binary, 3 B → 4 B\n");
    assert_eq!(diff("gone"), "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n");
    assert_eq!(diff("new"), "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+new\n");
    assert_eq!(diff("large"), "too large to compare by lines, 1.1 MB → 1.1 MB\n");
    assert_eq!(diff("link"), "--- a/link\n+++ b/link\n@@ -1 +1 @@\n-a\n+b\n");
    let Diff::Text { lines, cut, .. } = stage.diff(changes.get(Path::new("text")).unwrap()).unwrap() else { panic!() };
    assert_eq!((lines.plus, lines.minus, cut), (1, 1, false));
}

#[test]
fn a_long_difference_is_cut_and_says_so() {
    let here = Here::new();
    here.directly("seq 1 100000 > numbers");
    let stage = here.rehearse(Method::Overlay, "seq 100001 200000 > numbers");
    let changes = stage.changes().unwrap();
    let diff = stage.diff(&changes.entries[0]).unwrap();
    assert!(matches!(&diff, Diff::Text { cut: true, unified, .. } if unified.len() <= 256 << 10));
    assert!(diff.to_string().ends_with("(the rest is not shown)\n"));
}

#[test]
fn many_changes_are_wrapped_and_capped() {
    let here = Here::new();
    let stage = here.rehearse(COPY, "for n in $(seq 1000 1040); do echo > a_name_of_some_length_$n; done");
    let lines = stage.changes().unwrap().lines(80);
    assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    assert!(lines[0].starts_with("added      41 files    a_name_of"));
    assert!(lines[1].starts_with("                       a_name_of"));
    assert!(lines.last().unwrap().ends_with("… and 29 more"));
}

fn ten_thousand_files(method: Method) {
    let here = Here::in_memory();
    here.directly("mkdir d; cd d; seq 1 10000 | split -l 1 -a 4 -d - f");
    let stage = here.rehearse(method, "cd d; for f in f0*; do echo more >> $f; done; rm f9*; cp -r . ../copy");
    let changes = stage.changes().unwrap();
    let totals = changes.totals;
    assert_eq!((totals.files_added, totals.files_changed, totals.files_deleted), (9_000, 1_000, 1_000));
    let undo = stage.commit(&here.undo()).unwrap().undo;
    assert_eq!(fs::read_dir(here.path("copy")).unwrap().count(), 9_000);
    assert_eq!(fs::read_dir(here.path("d")).unwrap().count(), 9_000);
    undo.undo().unwrap();
    assert!(!here.path("copy").exists());
    assert_eq!(fs::read_dir(here.path("d")).unwrap().count(), 10_000);
}

#[test]
fn ten_thousand_files_below_an_overlay_are_no_burden() {
    ten_thousand_files(Method::Overlay);
}

#[test]
fn ten_thousand_files_in_a_copy_are_no_burden() {
    ten_thousand_files(COPY);
}

#[test]
fn thrown_away_leaves_no_trace() {
    for method in METHODS {
        let here = Here::new();
        here.directly(&format!("{PROJECT}; ln -s nowhere link; mkfifo pipe"));
        let before = here.tree();
        let script = "rm -r build; echo > new; mkdir -p r/s/t; echo > r/s/t/u; chmod 555 r/s/t r/s r; chmod 000 db; mv docs d2
            p=$PWD; for n in $(seq 170); do mkdir deeply_nested_folder_$n; cd deeply_nested_folder_$n; done; echo > bottom";
        here.rehearse(method, script).throw_away().unwrap();
        assert!(here.left_over().is_empty());
        drop(here.rehearse(method, script));
        assert!(here.left_over().is_empty());
        assert_eq!(here.tree(), before, "{method:?}");
    }
}

#[test]
fn a_copy_keeps_everything_about_its_files() {
    let here = Here::new();
    here.directly(
        "echo 1 > a; ln a b; ln -s a l; mkfifo p; truncate -s 100M holes; echo end >> holes; mkdir d; chmod 750 d
         touch -d 2001-02-03T04:05:06.789 a; chmod 4711 a; printf x > d/x",
    );
    rustix::fs::setxattr(here.path("d/x"), "user.note", b"kept", rustix::fs::XattrFlags::empty()).unwrap();
    // Much smaller than the hole: what is not there is not copied.
    let method = Method::Copy { most_bytes: 1 << 20, most_files: 8 };
    let stage = here.rehearse(
        method,
        "[ a -ef b ] && [ -p p ] && [ \"$(stat -c %a%Y a)\" = \"4711$(date -d 2001-02-03T04:05:06 +%s)\" ] &&
         [ $(readlink l) = a ] && [ $(tail -n 1 holes | tr -d '\\0') = end ] && [ $(stat -c %b holes) -lt 100 ] &&
         [ $(stat -c %a d) = 750 ] && touch fine",
    );
    assert_eq!(paths(&stage.changes().unwrap()), ["Added fine"]);
    let hermes_exec::rehearsal::Mount::Bind { source, .. } = stage.mount() else { panic!() };
    let mut note = [0_u8; 16];
    let length = rustix::fs::getxattr(source.join("d/x"), "user.note", note.as_mut_slice()).unwrap();
    assert_eq!(&note[..length], b"kept");
}

#[test]
fn what_is_too_large_is_not_copied() {
    let here = Here::new();
    here.directly("mkdir d; for n in 1 2 3 4; do head -c 10000 /dev/urandom > d/$n; done");
    let refused = |most_bytes, most_files| {
        Stage::open(&here.workspace(), &here.stages(), Method::Copy { most_bytes, most_files }).unwrap_err()
    };
    let error = refused(1 << 20, 4);
    assert!(matches!(error, RehearsalError::TooLarge { .. }));
    assert!(error.to_string().contains("too large to copy: more than 1.0 MB or 4 entries (stopped at d/"), "{error}");
    // Where files are shared with the original, bytes cost nothing and there is nothing to refuse.
    if let Err(error) =
        Stage::open(&here.workspace(), &here.stages(), Method::Copy { most_bytes: 30_000, most_files: 9 })
    {
        assert!(matches!(error, RehearsalError::TooLarge { .. }));
    }
    assert!(here.left_over().is_empty());
}

#[test]
fn a_stage_within_its_workspace_is_refused() {
    let here = Here::new();
    fs::create_dir(here.path("stages")).unwrap();
    let error = Stage::open(&here.workspace(), &here.path("stages"), Method::Overlay).unwrap_err();
    assert!(matches!(error, RehearsalError::BaseInside { .. }));
}

#[test]
fn what_is_kept_for_the_way_back_may_lie_in_the_workspace_where_nothing_touches_it() {
    let here = Here::new();
    here.directly("mkdir -p agent/undo");
    let before = here.tree().looks();
    for script in ["echo > agent/undo/new", "rm -r agent", "mv agent other"] {
        let error = here.rehearse(Method::Overlay, script).commit(&here.path("agent/undo")).unwrap_err();
        assert!(matches!(error, RehearsalError::BaseInside { .. }), "{script}");
    }
    let committed = here.rehearse(Method::Overlay, "echo > agent/new").commit(&here.path("agent/undo")).unwrap();
    assert!(here.path("agent/new").exists());
    committed.undo.undo().unwrap();
    assert_eq!(here.tree().looks(), before);
}

#[test]
fn a_whiteout_made_of_attributes_is_a_deletion() {
    let here = Here::new();
    here.directly("mkdir d; echo 1 > d/1; echo 2 > d/2");
    let stage = here.stage(Method::Overlay);
    let hermes_exec::rehearsal::Mount::Overlay { upper, .. } = stage.mount() else { panic!() };
    let mark = |path: &Path, name: &str, value: &[u8]| {
        rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    fs::create_dir(upper.join("d")).unwrap();
    mark(&upper.join("d"), "user.overlay.opaque", b"x");
    fs::write(upper.join("d/1"), "").unwrap();
    mark(&upper.join("d/1"), "user.overlay.whiteout", b"y");
    fs::set_permissions(upper.join("d"), fs::metadata(here.path("d")).unwrap().permissions()).unwrap();
    assert_eq!(paths(&stage.changes().unwrap()), ["Deleted d/1"]);
}

#[test]
fn the_command_finds_the_mode_of_its_folder() {
    for method in METHODS {
        let here = Here::new();
        fs::set_permissions(here.workspace(), fs::Permissions::from_mode(0o755)).unwrap();
        let stage = here.rehearse(method, "stat -c %a . > mode");
        let _undo = stage.commit(&here.undo()).unwrap().undo;
        assert_eq!(here.read("mode"), "755\n");
        let stages = fs::read_dir(here.stages()).unwrap();
        assert!(stages.map(|stage| stage.unwrap().metadata().unwrap().mode()).all(|mode| mode & 0o077 == 0));
    }
}

#[test]
fn a_further_name_in_the_workspace_is_mentioned() {
    let here = Here::new();
    here.directly("echo 1 > a; ln a b");
    let stage = here.rehearse(Method::Overlay, "echo 2 >> a");
    let changes = stage.changes().unwrap();
    assert_eq!(changes.entries[0].change, Change::Changed);
    assert!(changes.to_string().ends_with("a (+1 −0) (one of 2 names of this file; the others stay)"));
}
