//! `patch` on a real disk: what fails is taken back, what is kept is kept, and what is told is true.
#![allow(clippy::unwrap_used)]

mod patching;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use hermes_core::{
    CancellationToken, Command, Environment, EnvironmentError, FileError, FileErrorKind, FileStat, Finished,
};
use hermes_exec::LocalEnvironment;
use hermes_testkit::TempHome;
use patching::{Patcher, refused};
use serde_json::{Value, json};

fn local(home: &TempHome) -> LocalEnvironment {
    LocalEnvironment::new(&home.work(), &home.user_home(), std::env::vars_os(), &[]).unwrap()
}

fn patcher(home: &TempHome) -> Patcher {
    Patcher::new(Arc::new(local(home)))
}

/// Everything below the working folder: kind, mode, inode and content.
fn tree(home: &TempHome) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
    fn below(folder: &Path, tree: &mut BTreeMap<PathBuf, (u32, u64, Vec<u8>)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = match () {
                () if metadata.is_symlink() => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                () if metadata.is_dir() => Vec::new(),
                () => fs::read(&path).unwrap(),
            };
            // A folder's inode says nothing about what is in it; a file that was written over is another file.
            let inode = if metadata.is_symlink() { metadata.ino() } else { 0 };
            tree.insert(path.clone(), (metadata.mode(), inode, content));
            if metadata.is_dir() {
                below(&path, tree);
            }
        }
    }
    let mut all = BTreeMap::new();
    below(&home.work(), &mut all);
    all
}

/// A disk on which the change with this number fails, from 0; those behind it work, or there would be no way back.
struct Failing {
    inner: LocalEnvironment,
    at: usize,
    count: AtomicUsize,
    stop: Option<CancellationToken>,
}

impl Failing {
    fn step(&self, path: &Path) -> Result<(), FileError> {
        if self.count.fetch_add(1, Ordering::SeqCst) != self.at {
            return Ok(());
        }
        if let Some(stop) = &self.stop {
            stop.cancel();
            return Ok(());
        }
        Err(FileError { path: path.to_owned(), kind: FileErrorKind::Other, why: "the disk is full".into() })
    }
}

#[async_trait]
impl Environment for Failing {
    fn backend(&self) -> &str {
        self.inner.backend()
    }
    fn cwd(&self) -> PathBuf {
        self.inner.cwd()
    }
    fn home(&self) -> &Path {
        self.inner.home()
    }
    fn scratch(&self) -> &Path {
        self.inner.scratch()
    }
    fn shares_our_files(&self) -> bool {
        true
    }
    async fn run(&self, command: Command, cancel: &CancellationToken) -> Result<Finished, EnvironmentError> {
        self.inner.run(command, cancel).await
    }
    async fn stat(&self, path: &Path) -> Result<FileStat, FileError> {
        self.inner.stat(path).await
    }
    async fn real_path(&self, path: &Path) -> Result<PathBuf, FileError> {
        self.inner.real_path(path).await
    }
    async fn read(&self, path: &Path, range: Range<u64>) -> Result<Vec<u8>, FileError> {
        self.inner.read(path, range).await
    }
    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
        self.step(path)?;
        self.inner.write(path, bytes).await
    }
    async fn create(&self, path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>, FileError> {
        self.step(path)?;
        self.inner.create(path, bytes).await
    }
    async fn rename(&self, from: &Path, to: &Path) -> Result<Vec<PathBuf>, FileError> {
        self.step(from)?;
        self.inner.rename(from, to).await
    }
    async fn remove(&self, path: &Path) -> Result<(), FileError> {
        self.inner.remove(path).await
    }
    async fn list(&self, path: &Path) -> Result<Vec<String>, FileError> {
        self.inner.list(path).await
    }
    async fn close(&self) {}
}

const EVERYTHING: &str = "*** Begin Patch
*** Update File: a.txt
-one
+1
*** Add File: new/deep/b.txt
+b
*** Move File: c.bin -> new/moved/c.bin
*** Update File: d.txt
*** Move to: other/d.txt
-d
+D
*** Delete File: e.bin
*** Delete File: link
*** Update File: new/deep/b.txt
-b
+bb
*** End Patch
";

fn furnished() -> TempHome {
    let home = TempHome::new();
    home.write("a.txt", "one\ntwo\n");
    home.write("c.bin", b"\0\xff\x01");
    home.write("d.txt", "d\r\n");
    home.write("e.bin", b"\0\0");
    symlink("a.txt", home.work().join("link")).unwrap();
    fs::set_permissions(home.work().join("c.bin"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(home.work().join("d.txt"), fs::Permissions::from_mode(0o700)).unwrap();
    home
}

#[tokio::test]
async fn a_patch_of_everything_does_all_of_it_and_keeps_modes() {
    let home = furnished();
    let answer = patcher(&home).apply(EVERYTHING).await;
    assert_eq!(answer["success"], true, "{answer}");
    let names: Vec<String> =
        tree(&home).keys().map(|path| path.strip_prefix(home.work()).unwrap().display().to_string()).collect();
    assert_eq!(
        names,
        ["a.txt", "new", "new/deep", "new/deep/b.txt", "new/moved", "new/moved/c.bin", "other", "other/d.txt"]
    );
    let mode = |name: &str| fs::metadata(home.work().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("new/moved/c.bin"), mode("other/d.txt")), (0o751, 0o700));
    assert_eq!(
        [home.read("a.txt"), home.read("other/d.txt"), home.read("new/deep/b.txt")],
        ["1\ntwo\n", "D\r\n", "bb\n"]
    );
    let path = |name: &str| home.work().join(name).display().to_string();
    assert_eq!(answer["files_modified"], json!([path("a.txt"), path("new/deep/b.txt")]));
    assert_eq!(answer["files_created"], json!([path("new/deep/b.txt"), path("new/moved/c.bin"), path("other/d.txt")]));
    assert_eq!(answer["files_deleted"], json!([path("c.bin"), path("d.txt"), path("e.bin"), path("link")]));
    assert_eq!(answer["files_moved"][1], json!({"from": path("d.txt"), "to": path("other/d.txt")}));
    let diff = answer["diff"].as_str().unwrap();
    for part in [
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n",
        "--- /dev/null\n+++ b/new/deep/b.txt\n",
        "--- a/d.txt\n+++ b/other/d.txt\n",
        "--- a/e.bin\n+++ /dev/null\n[2 bytes]\n",
    ] {
        assert!(diff.contains(part), "{part} in {diff}");
    }
}

#[tokio::test]
async fn whichever_step_fails_everything_is_as_it_was() {
    let mut failures = 0;
    for at in 0.. {
        for stops in [false, true] {
            let home = furnished();
            let before = tree(&home);
            let stop = CancellationToken::new();
            let environment =
                Failing { inner: local(&home), at, count: AtomicUsize::new(0), stop: stops.then(|| stop.clone()) };
            let mut patcher = Patcher::new(Arc::new(environment));
            patcher.cx.cancel = stop;
            let answer = patcher.apply(EVERYTHING).await;
            if answer.get("error").is_none() {
                // Stopped behind the last step: it was done already.
                assert!(at >= 7, "{at} {stops} {answer}");
                if !stops {
                    assert!(failures >= 14, "{failures}");
                    return;
                }
                continue;
            }
            failures += 1;
            let error = refused(&answer);
            assert!(error.ends_with("; what had been done was taken back; nothing was changed"), "{error}");
            assert_eq!(tree(&home), before, "step {at}, {error}");
        }
    }
}

#[tokio::test]
async fn a_write_that_the_disk_refuses_takes_the_writes_before_it_back() {
    let home = furnished();
    home.write("fixed.txt", "x\n");
    fs::set_permissions(home.work().join("fixed.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    let before = tree(&home);
    let begin = "*** Update File: a.txt\n-one\n+1\n*** Add File: p/q/r\n+r\n*** Delete File: e.bin\n*** Move File: c.bin -> s/t\n";
    for (last, error) in [
        ("*** Update File: fixed.txt\n-x\n+y\n", "the file is read-only"),
        // Nothing is there before, so it only shows when it is done.
        ("*** Add File: u\n+u\n*** Add File: u/v\n+v\n", "not a directory"),
    ] {
        let answer = patcher(&home).apply(&format!("{begin}{last}")).await;
        assert!(refused(&answer).contains(error), "{answer}");
        assert_eq!(tree(&home), before, "{answer}");
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_said_before_anything_is_done() {
    let home = furnished();
    fs::create_dir(home.work().join("folder")).unwrap();
    symlink("nowhere", home.work().join("dangling")).unwrap();
    let before = tree(&home);
    for (patch, error) in [
        ("*** Add File: a.txt\n+x", "a.txt exists already, and nothing is overwritten by adding or moving"),
        ("*** Add File: dangling\n+x", "dangling exists already"),
        ("*** Add File: a.txt/x\n+x", "not a directory"),
        ("*** Move File: a.txt -> folder", "folder exists already"),
        ("*** Move File: a.txt -> a.txt", "is moved to itself"),
        ("*** Move File: none -> x", "none: no such file or directory"),
        ("*** Move File: folder -> x", "is a directory, not a regular file"),
        ("*** Delete File: folder", "is a directory, not a regular file"),
        ("*** Delete File: none", "no such file or directory"),
        (
            "*** Delete File: a.txt\n*** Update File: a.txt\n-one\n+1",
            "is not there any more: an operation before this one took it away",
        ),
        ("*** Move File: link -> l\n*** Update File: l\n-one\n+1", "is a link that this patch has moved"),
        ("*** Update File: c.bin\n-a\n+b", "is binary, not text"),
        ("*** Update File: a.txt\n one\n two", "would stay as it is"),
        ("*** Update File: a.txt\n-on\n+1\n*** Delete File: none", "2 problems:\n- "),
    ] {
        let answer = patcher(&home).apply(patch).await;
        let said = refused(&answer);
        assert!(
            said.starts_with("patch: ") && said.contains(error) && said.ends_with("; nothing was changed"),
            "{said}"
        );
        assert_eq!(tree(&home), before, "{answer}");
    }
}

#[tokio::test]
async fn links_are_written_through_and_moved_and_deleted_themselves() {
    let home = furnished();
    let answer = patcher(&home)
        .apply("*** Update File: link\n-one\n+1\n*** Move File: link -> ln\n*** Update File: a.txt\n-two\n+2\n")
        .await;
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(home.read("a.txt"), "1\n2\n");
    assert_eq!(fs::read_link(home.work().join("ln")).unwrap(), Path::new("a.txt"));
    patcher(&home).apply("*** Delete File: ln\n").await;
    assert!(fs::symlink_metadata(home.work().join("ln")).is_err() && home.work().join("a.txt").exists());
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_patched_under_any_name() {
    let home = furnished();
    let patcher = patcher(&home);
    patcher.call("read_file", json!({"path": "a.txt"})).await;
    let moved = patcher.apply("*** Move File: a.txt -> b.txt\n").await;
    assert_eq!(moved["success"], true, "{moved}");
    home.write("b.txt", "one\nTWO\n");
    for patch in ["*** Update File: b.txt\n-one\n+1\n", "*** Delete File: b.txt\n", "*** Move File: b.txt -> c.txt\n"] {
        let answer = patcher.apply(&format!("{patch}*** Add File: x\n+x\n")).await;
        assert!(refused(&answer).contains("has changed since it was last read"), "{answer}");
    }
    // What stands under the old name now is another file, of which nothing is known.
    home.write("a.txt", "one\n");
    assert_eq!(patcher.apply("*** Update File: a.txt\n-one\n+1\n").await["success"], true);
    let again = patcher.patch(json!({"path": "a.txt", "old_string": "1", "new_string": "2"})).await;
    assert_eq!(again["success"], true, "{again}");
}

#[tokio::test]
async fn whoever_decides_sees_every_file_and_both_ends_of_a_move() {
    let home = furnished();
    let patcher = patcher(&home);
    let arguments = json!({"mode": "patch", "patch": EVERYTHING});
    let touches = patcher.touches(&arguments);
    let paths = |names: &[&str]| names.iter().map(|name| patcher.path(name)).collect::<Vec<_>>();
    assert_eq!(
        touches.writes,
        paths(&[
            "a.txt",
            "new/deep/b.txt",
            "c.bin",
            "new/moved/c.bin",
            "d.txt",
            "other/d.txt",
            "e.bin",
            "link",
            "new/deep/b.txt"
        ])
    );
    assert_eq!(touches.reads, paths(&["c.bin", "d.txt"]));
    assert_eq!(touches.explain[0], "a patch: changes 3 files, adds 1 file, moves 2 files, deletes 2 files");
    assert!(touches.explain.iter().any(|line| line == "-one"));
    let edits = patcher.edits(arguments).await.unwrap();
    let said: Vec<_> = edits
        .iter()
        .map(|edit| {
            (edit.path.strip_prefix(home.work()).unwrap().to_str().unwrap(), edit.old.as_deref(), edit.new.as_deref())
        })
        .collect();
    let binary = Some("(not shown)");
    assert_eq!(
        said,
        [
            ("a.txt", Some("one\ntwo\n"), Some("1\ntwo\n")),
            ("new/deep/b.txt", None, Some("b\n")),
            ("c.bin", binary, None),
            ("new/moved/c.bin", None, binary),
            ("d.txt", Some("d\r\n"), None),
            ("other/d.txt", None, Some("D\r\n")),
            ("e.bin", Some("(2 bytes that are no text)"), None),
            ("link", binary, None),
            ("new/deep/b.txt", Some("b\n"), Some("bb\n")),
        ]
    );
    let several = json!({"path": "a.txt", "edits": [{"old_string": "one", "new_string": "1"}]});
    assert_eq!(patcher.touches(&several).writes, paths(&["a.txt"]));
    assert_eq!(patcher.touches(&json!({"mode": "patch", "patch": "nonsense"})), hermes_core::Touches::nothing());
}

#[tokio::test]
async fn several_edits_are_all_made_in_the_file_as_it_was_or_none_is() {
    let home = furnished();
    let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    let call = async |edits: Value| patcher(&home).patch(json!({"path": "a.txt", "edits": edits})).await;
    // The second is not found in what the first one makes.
    let swapped = call(json!([edit("one", "two"), edit("two", "one")])).await;
    assert_eq!((home.read("a.txt"), &swapped["edits"][1]["lines"]), ("two\none\n".into(), &json!([2])), "{swapped}");
    for (edits, error) in [
        (
            json!([edit("two", "2"), edit("three", "3")]),
            "edit 2 of 2: the text to replace was not found in a.txt (2 lines)",
        ),
        (json!([edit("two\no", "x"), edit("one", "y")]), "edits 1 and 2 both change line 2 of a.txt; make them one"),
        (json!([edit("two", "2"), edit("two", "2")]), "edits 1 and 2 both change line 1 of a.txt"),
        (json!([edit("two", "2"), edit("", "y")]), "edit 2 of 2: old_string is empty"),
        (json!([]), "`old_string` is missing"),
    ] {
        let answer = call(edits).await;
        assert!(refused(&answer).contains(error), "{answer}");
        assert_eq!(home.read("a.txt"), "two\none\n");
    }
    let both = patcher(&home)
        .patch(json!({"path": "a.txt", "old_string": "one", "new_string": "1", "edits": [edit("two", "2")]}))
        .await;
    assert_eq!((both["success"].as_bool(), home.read("a.txt")), (Some(true), "2\n1\n".into()), "{both}");
}

#[tokio::test]
async fn errors_are_sentences_that_say_what_to_do() {
    let home = furnished();
    home.write("lib.rs", "fn one() {\n    start();\n}\n\nfn two() {\n    start();\n    stop();\n}\n");
    home.write("latin.txt", b"caf\xe9 noir\n");
    let call = async |arguments: Value| patcher(&home).patch(arguments).await;
    let replace =
        async |old: &str, new: &str| call(json!({"path": "lib.rs", "old_string": old, "new_string": new})).await;
    let missing = replace("fn two() {\n    start();\n    halt();\n}", "x").await;
    assert_eq!(
        missing["error"],
        "patch: the text to replace was not found in lib.rs (8 lines). The nearest text begins in line 5; copy it exactly; nothing was changed"
    );
    assert_eq!(
        missing["nearest"],
        "    5 | fn two() {\n    6 |     start();\n-     |     halt();\n+   7 |     stop();\n    8 | }\n"
    );
    for (answer, error) in [
        (
            replace("start();", "x").await,
            "patch: the text to replace was found 2 times in lib.rs (lines 2, 6). Add surrounding lines to make it unique, or set replace_all; nothing was changed",
        ),
        (
            replace("begin(1, 2);", "stop();").await,
            "patch: the text to replace was not found in lib.rs (8 lines). The new text is there already, in line 7: the edit may have been made before; nothing was changed",
        ),
        (
            replace("zzzzzzzzz", "y").await,
            "patch: the text to replace was not found in lib.rs (8 lines). Read the file and copy the text exactly; nothing was changed",
        ),
        (replace("a", "a").await, "patch: old_string and new_string are the same; nothing was changed"),
        (
            call(json!({"old_string": "a", "new_string": "b"})).await,
            "patch: `path` is missing: mode replace needs path, and old_string with new_string, or edits; nothing was changed",
        ),
        (
            call(json!({"path": "lib.rs", "new_string": "b"})).await,
            "patch: `old_string` is missing: mode replace needs path, and old_string with new_string, or edits; nothing was changed",
        ),
        (
            call(json!({"mode": "patch", "path": "lib.rs"})).await,
            "patch: `patch` is missing: mode patch needs the text of a patch in it; nothing was changed",
        ),
        (
            call(json!({"mode": "replace", "patch": "*** Delete File: lib.rs"})).await,
            "patch: the mode is replace, but there is a `patch`; use mode patch for it; nothing was changed",
        ),
        (
            call(json!({"path": "latin.txt", "old_string": "noir", "new_string": "→"})).await,
            "patch: latin.txt: the file is windows-1252, which has no character `→` (U+2192); nothing was changed",
        ),
    ] {
        assert_eq!(refused(&answer), error);
    }
    let near = call(json!({"path": "lib.r", "old_string": "a", "new_string": "b"})).await;
    assert_eq!(near["similar_files"], json!([home.work().join("lib.rs")]), "{near}");
}

#[tokio::test]
async fn files_in_any_encoding_are_edited_in_it() {
    let home = TempHome::new();
    let utf16 = |text: &str| [b"\xff\xfe".to_vec(), text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat();
    home.write("wide.txt", utf16("one\r\nzwei \u{1f600}\r\n"));
    home.write("latin.txt", b"caf\xe9\ntwo\n");
    home.write("damaged.txt", [b"z\xc3\xbcrich \xff\n".as_slice(), "größe\n".as_bytes()].concat());
    let patcher = patcher(&home);
    let answer =
        patcher.patch(json!({"path": "wide.txt", "old_string": "one\nzwei", "new_string": "eins\nzwei ü"})).await;
    assert_eq!(fs::read(home.work().join("wide.txt")).unwrap(), utf16("eins\r\nzwei ü \u{1f600}\r\n"), "{answer}");
    let both = "*** Update File: latin.txt\n café\n-two\n+thé\n*** Update File: damaged.txt\n-größe\n+Größe\n";
    let answer = patcher.apply(both).await;
    assert_eq!(fs::read(home.work().join("latin.txt")).unwrap(), b"caf\xe9\nth\xe9\n", "{answer}");
    assert_eq!(
        fs::read(home.work().join("damaged.txt")).unwrap(),
        [b"z\xc3\xbcrich \xff\n".as_slice(), "Größe\n".as_bytes()].concat()
    );
}

#[tokio::test]
async fn what_stands_beside_a_change_in_a_file_of_secrets_is_not_told() {
    let home = TempHome::new();
    home.write(".env", "TOKEN=supersecretabc\nMODE=dev\nPORT=1\n");
    symlink(".env", home.work().join("settings")).unwrap();
    let patcher = patcher(&home);
    let mut answers = vec![
        patcher.patch(json!({"path": ".env", "old_string": "TOKEN=wrong", "new_string": "TOKEN=x"})).await,
        patcher.patch(json!({"path": "settings", "old_string": "TOKEN=supersecret\nx", "new_string": "TOKEN=x"})).await,
        patcher.patch(json!({"path": ".env", "old_string": "MODE=dev", "new_string": "MODE=test"})).await,
        patcher.apply("*** Update File: .env\n-TOKEN=wrong\n+TOKEN=x\n").await,
        patcher.apply("*** Update File: settings\n-PORT=1\n+PORT=2\n").await,
        patcher.apply("*** Move File: .env -> plain.txt\n*** Update File: plain.txt\n-PORT=2\n+PORT=3\n").await,
    ];
    assert_eq!(home.read("plain.txt"), "TOKEN=supersecretabc\nMODE=test\nPORT=3\n");
    fs::rename(home.work().join("plain.txt"), home.work().join(".env")).unwrap();
    answers.push(patcher.apply("*** Delete File: .env\n").await);
    for (at, answer) in answers.iter().enumerate() {
        assert!(!answer.to_string().contains("supersecret"), "{at}: {answer}");
    }
    assert!(answers[2]["diff"].as_str().unwrap().contains("[not shown: the file may hold secrets]"), "{}", answers[2]);
}
