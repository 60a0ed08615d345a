//! What is kept, what is not, and what it costs.

use std::borrow::Cow;
use std::fs;
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime};

use hermes_core::{Redactor, Touches, Typed};
use hermes_exec::checkpoints::{Checkpoints, Limits, Recorder};

use crate::place::{Here, TASK, set_mode};

#[test]
fn a_turn_that_changes_nothing_leaves_nothing_and_one_that_only_reads_is_not_looked_at() {
    let here = Here::new();
    here.write("a.txt", "1");
    here.turn_with(&[Touches::executing("ls")], |_| {}).unwrap();
    assert!(!here.home.join(".hermes").exists());
    here.turn(|here| {
        here.write("a.txt", "2");
        here.write("a.txt", "1");
    });
    assert_eq!(here.list(), []);
}

#[test]
fn what_is_left_out_is_never_removed_and_an_ignored_env_is_kept() {
    let here = Here::new();
    here.write(".gitignore", ".env*\nbuild/\n*.log\n");
    here.write(".env", "A=1\n");
    here.write("build/out.o", "object");
    here.write("node_modules/x/index.js", "code");
    here.write("Cargo.toml", "[package]\n");
    here.write("target/debug/app", "binary");
    here.write("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    here.turn(|here| {
        // From now on nothing is ignored, and all of that is to be seen.
        fs::remove_file(here.at(".gitignore")).unwrap();
        fs::remove_file(here.at(".env")).unwrap();
        fs::remove_file(here.at("Cargo.toml")).unwrap();
        fs::remove_file(here.at("cache/CACHEDIR.TAG")).unwrap();
        here.write("cache/x", "cached");
    });
    here.undo();
    assert_eq!(here.read(".env").unwrap(), "A=1\n");
    for kept in ["build/out.o", "node_modules/x/index.js", "target/debug/app", "cache/x", "Cargo.toml", ".gitignore"] {
        assert!(here.at(kept).exists(), "{kept}");
    }
}

#[test]
fn a_file_that_is_too_large_is_neither_brought_back_nor_lost() {
    let here = Here::with(Limits { file_bytes: 1000, ..Limits::default() });
    here.write("large", &"x".repeat(2000));
    here.write("grows", "small");
    here.turn(|here| {
        here.write("large", &"y".repeat(3000));
        here.write("grows", &"z".repeat(3000));
        here.write("new", &"n".repeat(3000));
        here.write("a.txt", "1");
    });
    let gone = here.undo();
    assert_eq!(gone.left.len(), 2, "{:?}", gone.left);
    assert_eq!(here.read("large").unwrap().len(), 3000);
    // It is kept as it is now, whatever its size, because it was kept before: so there is a way back.
    assert_eq!(here.read("grows").unwrap(), "small");
    assert_eq!(here.read("new").unwrap().len(), 3000);
    assert_eq!(here.read("a.txt"), None);
}

#[test]
fn a_project_that_is_too_large_says_so_once_and_what_calls_name_is_kept_all_the_same() {
    let here = Here::with(Limits { entries: 10, ..Limits::default() });
    for at in 0..20 {
        here.write(&format!("{at}.txt"), "1");
    }
    let named = Touches::writing(here.at("3.txt"));
    here.turn_with(std::slice::from_ref(&named), |here| here.write("3.txt", "2")).unwrap();
    here.undo();
    assert_eq!(here.read("3.txt").unwrap(), "1");
    let make = Touches::executing("make");
    let why = here.turn_with(std::slice::from_ref(&make), |_| {}).unwrap_err();
    assert!(why.contains("more than 10 files"), "{why}");
    here.turn_with(&[make, named], |here| here.write("3.txt", "2")).unwrap();
    here.undo();
    assert_eq!(here.read("3.txt").unwrap(), "1");
}

#[test]
fn the_home_folder_is_not_kept_as_a_whole() {
    let here = Here::new();
    fs::write(here.home.join("a.txt"), "1").unwrap();
    let make = Touches { runs_in: Some(here.home.clone()), ..Touches::executing("make") };
    let why = here.turn_with(&[make], |_| {}).unwrap_err();
    assert!(why.contains("no project"), "{why}");
}

#[test]
fn the_whole_repository_is_kept_from_wherever_in_it_a_command_runs() {
    let here = Here::new();
    fs::create_dir(here.at(".git")).unwrap();
    here.write("top.txt", "1");
    here.write("sub/a.txt", "1");
    here.write("inner/.git/HEAD", "ref: refs/heads/main\n");
    here.write("inner/b.txt", "1");
    let make = Touches { runs_in: Some(here.at("sub")), ..Touches::executing("make") };
    here.turn_with(&[make], |here| {
        here.write("top.txt", "2");
        here.write("inner/b.txt", "2");
    })
    .unwrap();
    assert_eq!(here.last().project, here.project);
    here.undo();
    assert_eq!((here.read("top.txt").unwrap(), here.read("inner/b.txt").unwrap()), ("1".into(), "1".into()));
}

#[test]
fn what_is_named_in_a_part_that_is_left_out_is_kept() {
    let here = Here::new();
    here.write("node_modules/x/index.js", "code");
    here.write(".git/config", "[core]\n");
    let remove = Touches::executing(format!("only {}", here.at("node_modules").display()));
    let edit = Touches::writing(here.at(".git/config"));
    here.turn_with(&[remove, edit], |here| {
        fs::remove_dir_all(here.at("node_modules")).unwrap();
        here.write(".git/config", "[core]\nhooksPath = x\n");
    })
    .unwrap();
    assert_eq!(here.undo().left, []);
    assert_eq!(here.read("node_modules/x/index.js").unwrap(), "code");
    assert_eq!(here.read(".git/config").unwrap(), "[core]\n");
}

#[test]
fn attributes_and_settings_of_git_change_no_byte() {
    let here = Here::new();
    here.write(".gitattributes", "* text eol=crlf\n*.txt filter=upper ident working-tree-encoding=UTF-16\n");
    let bytes = b"a\r\nb\nc\r$Id$\0\xff";
    fs::write(here.at("a.txt"), bytes).unwrap();
    here.turn(|here| fs::remove_file(here.at("a.txt")).unwrap());
    here.undo();
    assert_eq!(fs::read(here.at("a.txt")).unwrap(), bytes);
}

#[test]
fn old_and_superfluous_checkpoints_are_given_up_and_the_others_work() {
    let here = Here::with(Limits { checkpoints: 3, ..Limits::default() });
    for text in ["1", "2", "3", "4", "5"] {
        here.turn(|here| here.write("a.txt", text));
    }
    let pruned = here.checkpoints.prune(SystemTime::now()).unwrap();
    assert_eq!((pruned.checkpoints, here.list().len()), (2, 3));
    here.undo();
    assert_eq!(here.read("a.txt").unwrap(), "4");
    let later = SystemTime::now() + Duration::from_secs(8 * 24 * 3600);
    here.checkpoints.prune(later).unwrap();
    assert_eq!(here.list(), []);
    // An index that speaks of contents that are gone is no trouble.
    here.turn(|here| here.write("a.txt", "6"));
    here.undo();
    assert_eq!(here.read("a.txt").unwrap(), "4");
}

#[test]
fn the_oldest_go_until_the_rest_is_small_enough_and_the_last_one_stays() {
    let here = Here::with(Limits { total_bytes: 150_000, ..Limits::default() });
    let mut number = 1_u64;
    let mut noise = || -> String {
        let mut digits = || {
            // xorshift64: nothing that could be packed.
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            format!("{number:016x}")
        };
        (0..6_000).map(|_| digits()).collect()
    };
    let mut texts = Vec::new();
    for _ in 0..6 {
        texts.push(noise());
        here.turn(|here| here.write("a.txt", &texts[texts.len() - 1]));
    }
    let pruned = here.checkpoints.prune(SystemTime::now()).unwrap();
    assert!(pruned.checkpoints > 0 && pruned.bytes.1 <= 150_000, "{pruned:?}");
    assert!(!here.list().is_empty());
    here.undo();
    assert_eq!(here.read("a.txt").unwrap(), texts[4]);
}

#[test]
fn the_store_is_for_its_owner_only_and_any_git_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let here = Here::new();
    here.write("a.txt", "kept\n");
    here.turn(|here| here.write("a.txt", "2"));
    let store = here.home.join(".hermes/checkpoints/store.git");
    assert_eq!(fs::metadata(&store).unwrap().permissions().mode() & 0o77, 0);
    let checkpoint = here.last();
    let name = format!("*/{}/before", checkpoint.id);
    let refs = Command::new("git").arg("--git-dir").arg(&store).args(["for-each-ref", "--format=%(refname)"]).output();
    let refs = String::from_utf8(refs.unwrap().stdout).unwrap();
    let reference = refs.lines().find(|line| line.ends_with(name.trim_start_matches('*'))).unwrap();
    let object = format!("{reference}:files{}", here.at("a.txt").display());
    let shown = Command::new("git").arg("--git-dir").arg(&store).args(["show", &object]).output().unwrap();
    assert_eq!(shown.stdout, b"kept\n");
}

#[test]
fn two_sessions_and_a_prune_at_the_same_time_lose_nothing() {
    let here = Here::new();
    let other = here.home.join("code").join("q");
    fs::create_dir(&other).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for text in 0..8 {
                here.turn(|here| here.write("a.txt", &text.to_string()));
            }
        });
        scope.spawn(|| {
            for _ in 0..4 {
                let checkpoints: &Checkpoints = &here.checkpoints;
                checkpoints.prune(SystemTime::now()).unwrap();
            }
        });
    });
    assert_eq!(here.list().len(), 8);
    for text in (0..7).rev() {
        here.undo();
        assert_eq!(here.read("a.txt").unwrap(), text.to_string());
    }
}

#[test]
fn a_turn_that_makes_a_project_too_large_is_undone_all_the_same() {
    let here = Here::with(Limits { entries: 50, ..Limits::default() });
    here.write("important.txt", "1");
    here.write("other.txt", "1");
    here.turn_until_settled(|here| {
        fs::remove_file(here.at("important.txt")).unwrap();
        here.write("other.txt", "2");
        (0..100).for_each(|at| here.write(&format!("many/{at}"), ""));
    })
    .unwrap_err();
    let gone = here.undo();
    assert_eq!((here.read("important.txt").unwrap(), here.read("other.txt").unwrap()), ("1".into(), "1".into()));
    assert!(gone.left.iter().any(|left| left.said.contains("more than 50")), "{:?}", gone.left);
    assert!(here.at("many/7").exists(), "nobody has looked for what was added");
}

#[test]
fn what_a_turn_makes_ignored_marked_or_derived_comes_back() {
    let here = Here::new();
    here.write("src/main.rs", "fn main() {}");
    here.write("src/lib.rs", "1");
    here.write("d/f", "1");
    here.write("target/notes", "1");
    here.write("big.log", &"x".repeat(900_000));
    here.write(".gitignore", "*.log\n");
    let before = here.tree();
    here.turn(|here| {
        here.write(".gitignore", "src/\n*.log\n");
        fs::remove_file(here.at("src/main.rs")).unwrap();
        here.write("src/lib.rs", "broken");
        here.write("d/CACHEDIR.TAG", "");
        here.write("d/f", "2");
        here.write("Cargo.toml", "");
        here.write("target/notes", "lost");
        here.write("big.log", &"y".repeat(2_000_000));
    });
    here.undo();
    let mut now = here.tree();
    // What was new in a folder that nobody looks into any more may stay.
    now.remove(std::path::Path::new("d/CACHEDIR.TAG"));
    assert_eq!(now, before);
}

#[test]
fn a_second_project_in_a_turn_does_not_pass_for_how_it_was_before() {
    let here = Here::new();
    fs::create_dir(here.at(".git")).unwrap();
    here.write("vendor/x/.git/HEAD", "ref: refs/heads/main");
    here.write("vendor/x/a", "1");
    let inside = Touches { runs_in: Some(here.at("vendor/x")), ..Touches::executing("make") };
    here.turn_in_steps(
        &[Touches::executing("make"), inside],
        &[
            &|here: &Here| {
                here.write("vendor/x/a", "2");
                here.write("vendor/x/n", "2");
            },
            &|here: &Here| here.write("vendor/x/b", "3"),
        ],
    );
    here.undo();
    assert_eq!(here.read("vendor/x/a").unwrap(), "1");
    assert!(here.read("vendor/x/n").is_none() && here.read("vendor/x/b").is_none());
}

#[test]
fn a_large_file_that_a_call_names_is_kept_and_one_that_is_too_large_for_that_is_said() {
    let here = Here::with(Limits { file_bytes: 1000, ..Limits::default() });
    here.write("large", &"x".repeat(2000));
    here.turn_with(&[Touches::writing(here.at("large"))], |here| here.write("large", "y")).unwrap();
    assert_eq!(here.undo().left, []);
    assert_eq!(here.read("large").unwrap().len(), 2000);
    fs::File::create(here.at("huge")).unwrap().set_len(65 << 20).unwrap();
    let why = here.turn_with(&[Touches::writing(here.at("huge"))], |_| {}).unwrap_err();
    assert!(why.contains("huge"), "{why}");
}

#[test]
fn a_turn_that_goes_on_is_not_given_up_by_others() {
    let here = Here::with(Limits { checkpoints: 1, ..Limits::default() });
    here.write("a.txt", "1");
    here.turn(|here| {
        here.write("a.txt", "2");
        let other = Recorder::new(here.checkpoints.clone(), None);
        here.turn_of(&other, |here| here.write("b.txt", "1"));
        here.checkpoints.prune(SystemTime::now()).unwrap();
    });
    let mine = here.list().into_iter().find(|one| one.task == TASK).unwrap();
    here.checkpoints.go(here.checkpoints.way_back(&mine).unwrap()).unwrap();
    assert_eq!(here.read("a.txt").unwrap(), "1");
}

#[test]
fn what_was_left_out_for_its_size_is_not_stored_when_the_turn_is_over_either() {
    let here = Here::with(Limits { file_bytes: 1000, ..Limits::default() });
    here.write("large", &"x".repeat(2000));
    here.turn(|here| here.write("a.txt", "1"));
    let store = here.home.join(".hermes/checkpoints/store.git");
    let listed =
        Command::new("git").arg("--git-dir").arg(&store).args(["log", "--all", "--name-only", "--format="]).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    assert!(listed.contains("/a.txt") && !listed.contains("/large"), "{listed}");
}

#[test]
fn nothing_is_kept_where_others_may_look() {
    let here = Here::new();
    let folder = here.home.join(".hermes/checkpoints");
    fs::create_dir_all(&folder).unwrap();
    set_mode(&folder, 0o755);
    here.write("a.txt", "1");
    let why = here.turn_with(&[Touches::executing("make")], |here| here.write("a.txt", "2")).unwrap_err();
    assert!(why.contains("only its owner"), "{why}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn half_a_store_is_no_store() {
    let here = Here::new();
    let folder = here.home.join(".hermes/checkpoints/store-half");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("HEAD"), "ref: refs/heads/none\n").unwrap();
    set_mode(&here.home.join(".hermes/checkpoints"), 0o700);
    here.turn(|here| here.write("a.txt", "1"));
    here.undo();
    assert_eq!(here.read("a.txt"), None);
}

#[test]
fn a_project_whose_name_is_no_text_is_a_project() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut here = Here::new();
    here.project = here.home.join("code").join(std::ffi::OsStr::from_bytes(b"p\xff"));
    fs::create_dir(&here.project).unwrap();
    here.write("a.txt", "1");
    let make = Touches { runs_in: Some(here.project.clone()), ..Touches::executing("make") };
    here.turn_with(&[make], |here| here.write("a.txt", "2")).unwrap();
    here.undo();
    assert_eq!(here.read("a.txt").unwrap(), "1");
    here.redo();
    assert_eq!(here.read("a.txt").unwrap(), "2");
    assert_eq!(here.checkpoints.list(Some(&here.project)).unwrap().len(), 3);
}

#[test]
fn many_processes_that_begin_at_the_same_moment_lose_no_checkpoint() {
    let here = Here::new();
    here.write("a.txt", "1");
    here.turn(|here| here.write("a.txt", "2"));
    let (turns, rounds) = (6, 3);
    let barrier = Barrier::new(turns);
    std::thread::scope(|scope| {
        for turn in 0..turns {
            let (here, barrier) = (&here, &barrier);
            scope.spawn(move || {
                for round in 0..rounds {
                    let recorder = Recorder::new(here.checkpoints.clone(), None);
                    barrier.wait();
                    here.turn_of(&recorder, |here| here.write(&format!("{turn}-{round}"), "x"));
                }
            });
        }
    });
    assert_eq!(here.list().len(), 1 + turns * rounds);
}

#[test]
fn hermes_itself_is_not_kept_because_somebody_names_a_folder_around_it() {
    let here = Here::new();
    let (memory, beside) = (here.home.join("around/.hermes/memory.md"), here.home.join("around/x"));
    fs::create_dir_all(memory.parent().unwrap()).unwrap();
    fs::write(&memory, "1").unwrap();
    fs::write(&beside, "1").unwrap();
    let here = here.with_own(memory.parent().unwrap());
    let around = here.home.join("around");
    here.turn_with(&[Touches::writing(around)], |_| {
        fs::write(&memory, "2").unwrap();
        fs::write(&beside, "2").unwrap();
    })
    .unwrap();
    let turn = here.last();
    here.restore(&turn);
    assert_eq!((fs::read_to_string(&memory).unwrap(), fs::read_to_string(&beside).unwrap()), ("2".into(), "1".into()));
    let store = here.home.join(".hermes/checkpoints/store.git");
    let kept =
        Command::new("git").arg("--git-dir").arg(store).args(["log", "--all", "--name-only", "--format="]).output();
    let kept = String::from_utf8(kept.unwrap().stdout).unwrap();
    assert!(kept.contains("around/x") && !kept.contains("memory.md"), "{kept}");
    // The home is nobody's project, whoever names it.
    let why = here.turn_with(&[Touches::writing(here.home.clone())], |_| {}).unwrap_err();
    assert!(why.contains("no project"), "{why}");
}

#[test]
fn of_a_pattern_only_what_it_can_match_is_kept() {
    let here = Here::new();
    let at = |name: &str| here.home.join(name);
    for name in ["xa", "xb", "y", "z[1]"] {
        fs::write(at(name), "1").unwrap();
    }
    let commands = [format!("only {}", at("x*").display()), format!("only {}", at("z[1]").display())];
    let calls: Vec<Touches> = commands.iter().map(String::as_str).map(Touches::executing).collect();
    here.turn_with(&calls, |here| {
        for name in ["xa", "xb", "y", "z[1]"] {
            fs::remove_file(here.home.join(name)).unwrap();
        }
    })
    .unwrap();
    here.undo();
    let back: Vec<bool> = ["xa", "xb", "y", "z[1]"].iter().map(|name| at(name).exists()).collect();
    assert_eq!(back, [true, true, false, true]);
}

#[test]
fn what_is_typed_into_a_program_may_change_anything() {
    let here = Here::new();
    here.write("a.txt", "1");
    let typed = Touches { typed: Some(Typed::default()), ..Touches::executing("ls") };
    here.turn_with(&[typed], |here| here.write("a.txt", "2")).unwrap();
    here.undo();
    assert_eq!(here.read("a.txt").unwrap(), "1");
}

#[test]
fn a_snapshot_that_comes_when_the_call_goes_on_already_is_thrown_away() {
    let here = Here::new();
    here.write("a.txt", "1");
    here.turn(|here| here.write("a.txt", "2"));
    let before = here.list();
    let projects = here.home.join(".hermes/checkpoints/projects");
    let files = fs::read_dir(projects).unwrap().map(|entry| entry.unwrap().path());
    let lock = files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "lock"));
    let held = fs::File::open(lock.unwrap()).unwrap();
    held.lock().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let make = Touches::executing("make");
        assert!(tokio::time::timeout(Duration::from_millis(100), here.before(99, &make)).await.is_err());
    });
    here.write("a.txt", "3");
    held.unlock().unwrap();
    // Whoever works on a blocking thread is waited for.
    drop(runtime);
    assert_eq!(here.list(), before);
    here.turn(|here| here.write("a.txt", "4"));
    here.undo();
    assert_eq!(here.read("a.txt").unwrap(), "3");
}

#[test]
fn a_secret_is_taken_out_of_a_reason_before_it_is_cut() {
    struct Hides;
    impl Redactor for Hides {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            text.replace("very-secret-word", "***").into()
        }
    }
    let here = Here::new();
    let recorder = Recorder::new(here.checkpoints.clone(), Some(Arc::new(Hides)));
    for padding in 90..125 {
        let command = format!("echo {}very-secret-word", "x".repeat(padding));
        here.turn_of_command(&recorder, &command, |here| here.write("a.txt", &padding.to_string()));
        let reason = here.last().reason;
        assert!(!reason.contains("very"), "{reason}");
    }
}
