//! Where a path leads and what kind of place that is: purely by its text, after `..`, `~`, `cd` and known links.

use crate::finding::TargetClass;
use crate::sensitive;
use crate::text::{self, BRACKET, QUERY, STAR};
use crate::world::World;

/// A path after resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Absolute and without `.` and `..`; globs and holes are still in it.
    pub(crate) path: String,
    pub(crate) class: TargetClass,
}

/// Top-level directories whose loss ends a system, Linux and macOS (rule 9 of the corpus).
const SYSTEM: [&str; 19] = [
    "etc",
    "usr",
    "var",
    "boot",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "home",
    "root",
    "System",
    "Library",
    "Users",
    "Applications",
    "private",
    "dev",
    "sys",
];
/// Directories that are the system's without being wiped as a whole by their loss.
const BELOW: [&str; 4] = ["proc", "run", "sys", "dev"];
/// Directories of the system that are links into `/usr` on most machines and mean the same everywhere: the name that is
/// written says more than where it leads.
const MERGED: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Device files that swallow or produce without harm.
const HARMLESS_DEVICES: [&str; 12] =
    ["null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr", "ptmx", "console", "NUL"];

/// Resolves `written` against `cwd`; `link` says where a path leads if it is a link.
pub(crate) fn resolve(
    written: &str,
    cwd: Option<&str>,
    world: &World,
    link: &dyn Fn(&str) -> Option<String>,
    follow_last: bool,
) -> Place {
    let unknown = |path: &str| {
        // Some names are secret wherever they are.
        let name = path.rsplit_once('/').map_or("", |(_, name)| name);
        let secret = text::is_literal(name)
            && sensitive::classify(&format!("/{}/{name}", text::HOLE), world) == Some(TargetClass::Secret);
        Place { path: path.to_owned(), class: if secret { TargetClass::Secret } else { TargetClass::Unknown } }
    };
    if written.chars().next().is_some_and(|c| text::is_hole(c) || c == text::JOB) {
        return unknown(written);
    }
    let absolute = written.starts_with('/');
    let Some(base) = (if absolute { Some("") } else { cwd }) else { return unknown(written) };
    let mut path = String::with_capacity(base.len() + written.len() + 1);
    path.push_str(base.trim_end_matches('/'));
    let mut left = 12;
    join(&mut path, written, link, follow_last || written.ends_with('/'), &mut left);
    if path.is_empty() {
        path.push('/');
    }
    let class = classify(&path, world);
    Place { path, class }
}

/// Appends the components of `written` to `path`, which has no trailing slash.
fn join(path: &mut String, written: &str, link: &dyn Fn(&str) -> Option<String>, follow_last: bool, left: &mut usize) {
    let mut components = written.split('/').peekable();
    while let Some(component) = components.next() {
        match component {
            "" | "." => continue,
            ".." => {
                let cut = path.rfind('/').unwrap_or(0);
                path.truncate(cut);
                continue;
            }
            name => {
                path.push('/');
                path.push_str(name);
            }
        }
        if components.peek().is_none() && !follow_last {
            return;
        }
        if path == "/proc/self/fd" || path == "/proc/thread-self/fd" {
            path.replace_range(.., "/dev/fd");
            continue;
        }
        if !is_per_process(path)
            && (!MERGED.contains(&path.as_str()) || components.clone().any(|component| component == ".."))
            && *left > 0
            && let Some(target) = link(path)
        {
            *left -= 1;
            if target.starts_with('/') {
                path.clear();
            } else {
                let cut = path.rfind('/').unwrap_or(0);
                path.truncate(cut);
            }
            join(path, &target, link, true, left);
        }
    }
}

/// What means something else to each process: where it leads here says nothing about the command.
fn is_per_process(path: &str) -> bool {
    ["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/proc/self", "/proc/thread-self"]
        .iter()
        .any(|own| within(path, own))
}

/// Whether a path is the standard input of whoever opens it.
pub(crate) fn is_stdin(path: &str) -> bool {
    matches!(path, "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "/proc/thread-self/fd/0")
}

/// Whether a path is the standard output of whoever opens it.
pub(crate) fn is_stdout(path: &str) -> bool {
    matches!(path, "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" | "/proc/thread-self/fd/1")
}

/// Whether `path` is `directory` or lies in it, component by component.
pub(crate) fn within(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || directory == "/")
}

/// What of `path` is below the home in which the work lies, empty for that home itself. It need not be the home of the
/// user: root may work in the checkout of a person.
fn home_of<'a>(path: &'a str, world: &World) -> Option<&'a str> {
    let rest = ["/home/", "/Users/"].iter().find_map(|homes| path.strip_prefix(homes))?;
    let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
    let home = &path[..path.len() - rest.len() + name.len()];
    let works = !name.is_empty() && (within(&world.workspace, home) || within(&world.cwd, home));
    works.then_some(below)
}

/// The kind of place of an absolute path. What a glob or a hole may stand for is judged by the directory before it.
pub(crate) fn classify(path: &str, world: &World) -> TargetClass {
    if path == "/" {
        return TargetClass::Root;
    }
    if path == world.home || home_of(path, world) == Some("") {
        return TargetClass::Home;
    }
    if path.strip_prefix('/').is_some_and(|name| SYSTEM.contains(&name)) {
        return TargetClass::System;
    }
    if let Some(device) = path.strip_prefix("/dev/") {
        return classify_device(device);
    }
    let known_end = (!text::is_literal(path)).then(|| path.find(is_open)).flatten().unwrap_or(path.len());
    if known_end < path.len() {
        let directory = &path[..path[..known_end].rfind('/').unwrap_or(0)];
        if directory.is_empty() {
            return if text::is_unknown(path) { TargetClass::Unknown } else { TargetClass::Root };
        }
        if let Some(class) = sensitive::classify(path, world) {
            return class;
        }
        return match classify(directory, world) {
            TargetClass::System => TargetClass::BelowSystem,
            TargetClass::Home => TargetClass::Outside,
            other => other,
        };
    }
    if let Some(class) = sensitive::classify(path, world) {
        return class;
    }
    let roomy = world.workspace.matches('/').count() > 1 || world.workspace == world.home;
    if roomy && within(path, &world.workspace) {
        return TargetClass::Workspace;
    }
    if ["/tmp", "/var/tmp", "/dev/shm", "/private/tmp"].iter().any(|dir| within(path, dir)) {
        return TargetClass::Temporary;
    }
    if within(path, &world.home) || home_of(path, world).is_some() {
        return TargetClass::Outside;
    }
    let mut components = path.strip_prefix('/').unwrap_or(path).split('/');
    let (first, second) = (components.next().unwrap_or_default(), components.next());
    match second {
        None if SYSTEM.contains(&first) => TargetClass::System,
        Some(_) if matches!(first, "home" | "Users") => TargetClass::OtherUser,
        _ if SYSTEM.contains(&first) || BELOW.contains(&first) => TargetClass::BelowSystem,
        _ => TargetClass::Outside,
    }
}

fn is_open(c: char) -> bool {
    text::is_hole(c) || matches!(c, STAR | QUERY | BRACKET)
}

fn classify_device(device: &str) -> TargetClass {
    let first = device.split('/').next().unwrap_or_default();
    if HARMLESS_DEVICES.contains(&device) || matches!(first, "fd" | "pts") {
        return TargetClass::Temporary;
    }
    if first == "shm" {
        return if device == "shm" { TargetClass::BelowSystem } else { TargetClass::Temporary };
    }
    if matches!(first, "tcp" | "udp") {
        return TargetClass::Thing;
    }
    let numbered = |prefix: &str| {
        first.strip_prefix(prefix).is_some_and(|rest| {
            rest.chars().all(|c| c.is_ascii_alphanumeric() || is_open(c) || matches!(c, ']' | '-' | '!' | '^'))
        })
    };
    // Names of other systems, which are a disk only with a number.
    let counted = |prefix: &str| {
        first.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || is_open(c)))
    };
    let raw = ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "md", "dm-", "loop", "nbd", "zd", "zvol", "rdisk", "disk", "bcache"]
        .iter()
        .any(|prefix| numbered(prefix))
        || ["ada", "da", "ad", "nvd", "nda", "wd", "sg", "sr", "st", "mtd", "pmem", "rbd", "drbd", "rsd", "vblk"]
            .iter()
            .any(|prefix| counted(prefix))
        || matches!(first, "mapper" | "disk" | "block" | "mem" | "kmem" | "zvol" | "drbd0")
        // A logical volume: `/dev/group/volume`.
        || (device.contains('/')
            && !matches!(first, "input" | "snd" | "net" | "bus" | "dri" | "char" | "cpu" | "usb" | "hugepages" | "mqueue" | "vfio"));
    if raw { TargetClass::Device } else { TargetClass::BelowSystem }
}

/// Whether removing this place, as a glob stands in it, wipes root, home or a whole system directory; names which.
pub(crate) fn wiped(place: &Place, world: &World) -> Option<String> {
    if is_whole(place.class) {
        return Some(place.path.clone());
    }
    if !text::has_glob(&place.path) || !place.path.starts_with('/') {
        return None;
    }
    // A glob at the root stands for each top-level directory that it matches.
    let rest = &place.path[1..];
    let (first, tail) = rest.split_once('/').map_or((rest, None), |(first, tail)| (first, Some(tail)));
    if text::has_glob(first) {
        for name in SYSTEM {
            if text::matches(first, name) {
                let path = tail.map_or_else(|| format!("/{name}"), |tail| format!("/{name}/{tail}"));
                let class = classify(&path, world);
                if let Some(wiped) = wiped(&Place { path, class }, world) {
                    return Some(wiped);
                }
            }
        }
        return None;
    }
    let (directory, last) = place.path.rsplit_once('/')?;
    let directory = if directory.is_empty() { "/" } else { directory };
    if !text::has_glob(directory) && covers_all(last) && is_whole(classify(directory, world)) {
        return Some(directory.to_owned());
    }
    None
}

fn is_whole(class: TargetClass) -> bool {
    matches!(class, TargetClass::Root | TargetClass::System | TargetClass::Home)
}

/// Whether a glob matches everything in a directory, or everything that is hidden.
fn covers_all(pattern: &str) -> bool {
    let pattern = text::unglob(pattern);
    pattern.contains('*')
        && pattern.chars().all(|c| matches!(c, '*' | '?' | '.' | '[' | ']' | '!' | '^'))
        && !pattern.ends_with("*.*")
}
