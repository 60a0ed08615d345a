//! What lies inside of what: as text, through links, and for writes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use hermes_guard::paths::{PathPolicy, ResolveError, SafeRoots, contains, normalise, resolve, traverses};
use proptest::prelude::*;

fn tidy(path: &str) -> String {
    normalise(Path::new(path), Path::new("/home/u/project"), Path::new("/home/u")).display().to_string()
}

fn disk(links: &[(&str, &str)]) -> BTreeMap<PathBuf, PathBuf> {
    links.iter().map(|(from, to)| (PathBuf::from(from), PathBuf::from(to))).collect()
}

fn real(path: &str, links: &[(&str, &str)]) -> Result<PathBuf, ResolveError<Infallible>> {
    let links = disk(links);
    resolve(Path::new(path), |path| Ok(links.get(path).cloned()))
}

#[test]
fn a_path_is_made_absolute_by_its_text() {
    for (written, expected) in [
        ("", "/home/u/project"),
        (".", "/home/u/project"),
        ("a//b/./c/", "/home/u/project/a/b/c"),
        ("../x", "/home/u/x"),
        ("../../../../../x", "/x"),
        ("/", "/"),
        ("//etc/../etc//passwd", "/etc/passwd"),
        ("~", "/home/u"),
        ("~/.ssh/../x", "/home/u/x"),
        ("~root/x", "/home/u/project/~root/x"),
        ("a/~/b", "/home/u/project/a/~/b"),
        ("/a/...", "/a/..."),
    ] {
        assert_eq!(tidy(written), expected, "{written}");
    }
}

#[test]
fn whole_names_decide_what_lies_inside() {
    let inside = |root: &str, path: &str| contains(Path::new(root), Path::new(path));
    assert!(inside("/home/u/project", "/home/u/project"));
    assert!(inside("/home/u/project/", "/home/u/project/a/b"));
    assert!(inside("/", "/x"));
    assert!(!inside("/home/u/project", "/home/u/project-evil"));
    assert!(!inside("/home/u/project", "/home/u/project-evil/a"));
    assert!(!inside("/home/u/project", "/home/u"));
    assert!(!inside("/home/u/project", "/home/u/Project/a"));
    assert!(!inside("/home/u/project", "/home/u/project/../other"));
    assert!(!inside("/home/u/../u", "/home/u/x"));
    assert!(!inside("", "/x"));
    assert!(!inside("", "x"));
    assert!(!inside("project", "project/x"));
    assert!(traverses(Path::new("a/../b")) && !traverses(Path::new("a/..b/c..")));
}

#[test]
fn links_are_followed_from_the_left() {
    let links = [
        ("/home/u/ws", "/data/ws"),
        ("/data/ws/log.txt", "../../home/u/.ssh/authorized_keys"),
        ("/data/ws/up", ".."),
        ("/data/ws/root", "/"),
        ("/data/ws/chain", "chain2"),
        ("/data/ws/chain2", "./gone/./x"),
    ];
    for (written, leads_to) in [
        ("/home/u/ws/a/b", "/data/ws/a/b"),
        ("/home/u/ws", "/data/ws"),
        ("/home/u/ws/log.txt", "/home/u/.ssh/authorized_keys"),
        ("/home/u/ws/../x", "/data/x"),
        ("/home/u/ws/up/x", "/data/x"),
        ("/home/u/ws/up/../x", "/x"),
        ("/home/u/ws/root/etc/passwd", "/etc/passwd"),
        ("/home/u/ws/chain/y", "/data/ws/gone/x/y"),
        ("/nowhere/../a/./b", "/a/b"),
        ("/../..", "/"),
    ] {
        assert_eq!(real(written, &links), Ok(PathBuf::from(leads_to)), "{written}");
    }
}

#[test]
fn a_circle_of_links_ends() {
    assert!(matches!(real("/a/x", &[("/a", "/b"), ("/b", "/a")]), Err(ResolveError::TooManyLinks(_))));
    assert!(matches!(real("/a", &[("/a", "a/a")]), Err(ResolveError::TooManyLinks(_))));
    assert!(matches!(real("a", &[]), Err(ResolveError::NotAbsolute(_))));
    let unseen = resolve(Path::new("/a/b"), |path| if path.ends_with("b") { Err("no") } else { Ok(None) });
    assert_eq!(unseen.expect_err("cannot be seen").to_string(), "cannot see whether /a/b is a link: no");
}

/// `cases/reports.jsonl` 03-files-15: through a link, through a linked folder, through `..`.
#[test]
fn a_link_to_a_protected_file_is_not_written() {
    let links = [("/ws/log.txt", "/home/u/.ssh/authorized_keys"), ("/ws/dir", "/home/u/.ssh")];
    let policy = PathPolicy::new("/home/u", "/home/u/.hermes");
    for stated in ["/ws/log.txt", "/ws/dir/authorized_keys", "/ws/a/../../home/u/.ssh/authorized_keys"] {
        let target = real(stated, &links).expect("no circle");
        let refusal = policy.check_write(Path::new(stated), &target).expect_err(stated).to_string();
        assert_eq!(
            refusal,
            format!(
                "Write denied: {stated} leads to /home/u/.ssh/authorized_keys, which decides which keys and hosts ssh trusts; \
                 ask the user to make this change"
            )
        );
    }
    // A protected name is protected even if it leads to a place that is not.
    policy
        .check_write(Path::new("/home/u/.ssh/config"), Path::new("/dotfiles/ssh"))
        .expect_err("protected by its name");
    policy.check_write(Path::new("/ws/ok.txt"), Path::new("/ws/ok.txt")).expect("ordinary");
}

#[test]
fn a_home_behind_a_link_is_a_home() {
    let policy = PathPolicy::new("/home/u", "/home/u/.hermes").also("/data/u", "/srv/agent");
    for path in ["/home/u/.aws/credentials", "/data/u/.aws/config", "/srv/agent/auth.json", "/home/u/.hermes/auth.json"]
    {
        let refusal = policy.check_read(Path::new(path), Path::new(path)).expect_err(path).to_string();
        assert!(refusal.starts_with(&format!("Access denied: {path}, which holds ")), "{refusal}");
    }
    policy.check_read(Path::new("/home/u/.ssh/id_rsa.pub"), Path::new("/home/u/.ssh/id_rsa.pub")).expect("public");
    let forged =
        policy.check_read(Path::new("/p/a\nb/.env"), Path::new("/p/a\nb/.env")).expect_err("secret").to_string();
    assert!(!forged.contains('\n'), "{forged}");
}

#[test]
fn safe_roots_confine_writes() {
    let read = |value: &str| SafeRoots::read(Some(OsStr::new(value)), Path::new("/opt/w"), Path::new("/home/u"));
    assert_eq!(SafeRoots::read(None, Path::new("/"), Path::new("/")), None);
    assert_eq!(read(""), None);
    let roots = read("/srv/a/../data::out:~/w/").expect("set");
    assert_eq!(roots.folders(), ["/srv/data", "/opt/w/out", "/home/u/w"].map(PathBuf::from));

    let policy = PathPolicy::new("/home/u", "/home/u/.hermes").within(Some(roots.clone()));
    let write = |path: &str| policy.check_write(Path::new(path), Path::new(path));
    for path in ["/srv/data", "/srv/data/x", "/opt/w/out/a/b", "/home/u/w/x"] {
        write(path).expect(path);
    }
    for path in ["/srv/data2/x", "/srv", "/opt/w/x", "/srv/Data/x"] {
        let refusal = write(path).expect_err(path).to_string();
        assert_eq!(
            refusal,
            format!(
                "Write denied: {path} lies outside of HERMES_WRITE_SAFE_ROOT; write below /srv/data or /opt/w/out or /home/u/w"
            )
        );
    }
    let linked = policy.check_write(Path::new("/srv/data/link/x"), Path::new("/etcetera/x")).expect_err("leads out");
    assert!(linked.to_string().contains("/srv/data/link/x leads to /etcetera/x"), "{linked}");
    // Reading is not confined.
    policy.check_read(Path::new("/opt/w/x"), Path::new("/opt/w/x")).expect("readable");

    let real = roots.resolved(|folder| (folder == Path::new("/srv/data")).then(|| PathBuf::from("/mnt/data")));
    assert!(real.permits(Path::new("/mnt/data/x")) && !real.permits(Path::new("/srv/data/x")));
    assert!(!real.permits(Path::new("/opt/w/out/x")), "a folder that cannot be resolved allows nothing");

    let none = PathPolicy::new("/home/u", "/home/u/.hermes").within(read(":"));
    none.check_write(Path::new("/opt/w/x"), Path::new("/opt/w/x")).expect_err("an empty list allows nothing");
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("..".to_owned()), Just(".".to_owned()), Just("~".to_owned()), Just(String::new()), "[a-c]{1,2}"]
}

fn path() -> impl Strategy<Value = String> {
    (any::<bool>(), proptest::collection::vec(name(), 0..8))
        .prop_map(|(absolute, names)| format!("{}{}", if absolute { "/" } else { "" }, names.join("/")))
}

proptest! {
    #[test]
    fn normalising_twice_changes_nothing(path in path()) {
        let once = tidy(&path);
        prop_assert!(Path::new(&once).is_absolute() && !traverses(Path::new(&once)));
        prop_assert_eq!(tidy(&once), once);
    }

    #[test]
    fn what_lies_inside_shares_every_name_of_the_root(root in path(), path in path()) {
        let (root, path) = (tidy(&root), tidy(&path));
        let names = |path: &str| path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(contains(Path::new(&root), Path::new(&path)), names(&path).starts_with(&names(&root)));
        prop_assert!(contains(Path::new(&root), &Path::new(&root).join("x")));
        let longer = root.clone() + "x";
        prop_assert!(root == "/" || !contains(Path::new(&root), Path::new(&longer)));
    }

    #[test]
    fn without_links_resolving_is_normalising(path in path()) {
        let absolute = Path::new("/w").join(&path);
        let resolved = resolve(&absolute, |_| Ok::<_, Infallible>(None));
        prop_assert_eq!(resolved, Ok(normalise(&absolute, Path::new("/"), Path::new("/"))));
    }

    #[test]
    fn what_is_resolved_crosses_no_link(path in path(), links in proptest::collection::btree_map("(/[a-c]){1,2}", path_text(), 0..4)) {
        let links: BTreeMap<PathBuf, PathBuf> = links.into_iter().map(|(from, to)| (from.into(), to.into())).collect();
        if let Ok(real) = resolve(&Path::new("/").join(path), |path| Ok::<_, Infallible>(links.get(path).cloned())) {
            prop_assert!(real.ancestors().all(|part| !links.contains_key(part)), "{}", real.display());
        }
    }
}

fn path_text() -> impl Strategy<Value = String> {
    "/?([a-c]|\\.\\.)(/([a-c]|\\.\\.)){0,2}"
}
