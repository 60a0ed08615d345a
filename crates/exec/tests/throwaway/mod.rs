//! A root folder to throw away, for tests that run what destroys machines: even if the sandbox under test fails,
//! nothing is lost but a file system in memory.
//!
//! [`run_in_wall`] runs one test of this program again, first as [`enter`]'s builder and then inside. Inside, `/` is an
//! overlay over the machine's files whose changes stay in memory and on which devices cannot be opened; `/proc`, `/dev`
//! and `/tmp` are its own; what could harm the machine through `/proc` is read-only; the capabilities with which one
//! reboots it, loads modules, sets the clock or makes device nodes are gone for good.
//!
//! The overlay's upper folder is no longer mounted anywhere when the test begins: it reads it through its standard
//! input, where what it runs does not find it.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{chdir, pivot_root};

/// Says what is to be done inside; set in the processes of the wall only.
const TASK: &str = "HERMES_TEST_TASK";
/// The folder on which the builder mounts its file system; only the builder has it.
const BASE: &str = "HERMES_TEST_BASE";
/// How a test that could not have its wall says why.
const NO_WALL: &str = "no throw-away root: ";
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Large parts of the machine that no command needs: they are empty inside, so that walks over all files end soon.
const LEFT_OUT: [&str; 22] = [
    "usr/include",
    "usr/lib/debug",
    "usr/lib/google-cloud-sdk",
    "usr/lib/jvm",
    "usr/lib/llvm-14",
    "usr/lib/node_modules",
    "usr/lib/postgresql",
    "usr/lib/python3",
    "usr/share/X11",
    "usr/share/alsa",
    "usr/share/doc",
    "usr/share/i18n",
    "usr/share/icons",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/maven-repo",
    "usr/share/mime",
    "usr/share/postgresql",
    "usr/share/source-highlight",
    "usr/share/tcltk",
    "usr/share/vim",
    "usr/share/zoneinfo",
];
/// Ways from `/proc` to the machine's settings and hardware.
const READ_ONLY: [&str; 8] = ["sys", "sysrq-trigger", "irq", "bus", "acpi", "fs", "scsi", "mtrr"];
/// Character devices that programs expect, by their numbers (Documentation/admin-guide/devices.txt of Linux).
const DEVICES: [(&str, u64, u64); 6] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];

/// What this process is to do inside, if it belongs to a wall.
pub(crate) fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

/// Runs a test of this program with a task inside of a new throw-away root. `None`, with the reason on standard error,
/// where there cannot be one.
pub(crate) fn run_in_wall(test: &str, task: &str, limit: Duration) -> Option<Output> {
    let base = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args(["--signal=KILL", &limit.as_secs().to_string()])
        .args(["setpriv", "--bounding-set=-sys_boot,-sys_module,-sys_rawio,-sys_time,-syslog"])
        .args(["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(TASK, task)
        .env(BASE, base.path())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: {error}");
            return None;
        }
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    let reason = complaint.lines().find(|line| line.contains(NO_WALL) || line.starts_with("unshare: "));
    if let Some(reason) = reason {
        eprintln!("skipped: {reason}");
        return None;
    }
    Some(output)
}

/// Called first in a process of a wall: the builder does not come back, it becomes the one inside.
pub(crate) fn enter(test: &str) {
    if let Some(base) = std::env::var_os(BASE) {
        let Err(error) = build(Path::new(&base), test);
        panic!("{NO_WALL}{error}");
    }
}

fn build(base: &Path, test: &str) -> io::Result<Infallible> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    mount(Some("tmpfs"), base, Some("tmpfs"), MsFlags::MS_NODEV, Some("size=512m,mode=755"))?;
    let (root, upper, work) = (base.join("root"), base.join("upper"), base.join("work"));
    for folder in [&root, &upper, &work] {
        fs::create_dir(folder)?;
    }
    for folder in LEFT_OUT.iter().filter(|folder| Path::new("/").join(folder).is_dir()) {
        fs::create_dir_all(upper.join(folder))?;
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(upper.join(folder), "trusted.overlay.opaque", b"y", flags)?;
    }
    let options = format!("lowerdir=/,upperdir={},workdir={}", upper.display(), work.display());
    mount(Some("overlay"), &root, Some("overlay"), MsFlags::MS_NODEV, Some(options.as_str()))?;
    build_proc(&root)?;
    build_dev(&root.join("dev"))?;
    mount(Some("tmpfs"), &root.join("tmp"), Some("tmpfs"), MsFlags::MS_NODEV, Some("size=256m,mode=1777"))?;
    // The program may lie on a file system that the overlay does not show.
    let program = root.join("run/strict-root-test");
    File::create(&program)?;
    show_read_only(&std::env::current_exe()?, &program)?;

    let opened = File::open(base)?;
    chdir(&root)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    // No file may become larger than 256 MiB: what writes without end must not take the machine's memory.
    Err(Command::new("prlimit")
        .arg("--fsize=268435456")
        .args(["setpriv", "--bounding-set=-mknod", "/run/strict-root-test"])
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env_clear()
        .env("PATH", PATH)
        .env(TASK, std::env::var_os(TASK).unwrap_or_default())
        .stdin(Stdio::from(opened))
        .exec())
}

fn show_read_only(source: &Path, at: &Path) -> nix::Result<()> {
    mount(Some(source), at, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | MsFlags::MS_NODEV;
    mount(None::<&str>, at, None::<&str>, flags, None::<&str>)
}

fn build_proc(root: &Path) -> io::Result<()> {
    let (proc, whole) = (root.join("proc"), root.join("run/whole-proc"));
    let flags = MsFlags::MS_NODEV | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount(Some("proc"), &proc, Some("proc"), flags, None::<&str>)?;
    // With parts of it covered, the kernel lets a user namespace have a /proc of its own only if there is a whole one,
    // which may be read-only when the new one is (mount_too_revealing in fs/namespace.c).
    fs::create_dir_all(&whole)?;
    show_read_only(&proc, &whole)?;
    for part in READ_ONLY.iter().map(|part| proc.join(part)).filter(|part| part.exists()) {
        show_read_only(&part, &part)?;
    }
    Ok(())
}

/// Nodes of its own: a change of the mode of a node that is only bound here would be a change of the machine's.
fn build_dev(dev: &Path) -> io::Result<()> {
    mount(Some("tmpfs"), dev, Some("tmpfs"), MsFlags::MS_NOSUID, Some("size=1m,mode=755"))?;
    for (name, major, minor) in DEVICES {
        mknod(&dev.join(name), SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(major, minor))?;
        fs::set_permissions(dev.join(name), fs::Permissions::from_mode(0o666))?;
    }
    for (name, target) in [("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd")] {
        symlink(target, dev.join(name))?;
    }
    for (name, kind, options) in [("pts", "devpts", "ptmxmode=0666,mode=620"), ("shm", "tmpfs", "size=1m,mode=1777")] {
        fs::create_dir(dev.join(name))?;
        mount(Some(kind), &dev.join(name), Some(kind), MsFlags::MS_NOSUID, Some(options))?;
    }
    Ok(())
}

/// Panics unless what happens here stays here. Leaves `canary`, which must not be found on the machine.
pub(crate) fn check_the_wall(canary: &Path) {
    assert!(std::process::id() == 1, "not the first process of a namespace");
    fs::write(canary, "inside").unwrap();
    let upper = upper();
    assert!(upper.join(canary.strip_prefix("/").unwrap()).exists(), "what is written to / does not go to the overlay");
    for file in ["/proc/sysrq-trigger", "/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern"] {
        let opened = fs::OpenOptions::new().write(true).open(file);
        let kind = opened.unwrap_err().kind();
        assert!(matches!(kind, io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotFound), "{file}: {kind}");
    }
    let mut devices = Vec::new();
    walk("/dev".as_ref(), &mut |path, about| {
        assert!(!about.file_type().is_block_device(), "{} is a disk", path.display());
        devices.push(path.to_path_buf());
    });
    assert!(devices.contains(&"/dev/null".into()), "there is no /dev/null: {devices:?}");
    // The machine's disks, and a number that is hardly one of them.
    let disks = fs::read_to_string("/proc/partitions").unwrap();
    let numbers = disks.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().map_while(|field| field.parse::<u64>().ok());
        Some((fields.next()?, fields.next()?))
    });
    for (major, minor) in numbers.chain([(7, 200)]) {
        for folder in ["/dev", "/tmp", "/srv"] {
            let node = Path::new(folder).join("strict-root-disk");
            let made = mknod(&node, SFlag::S_IFBLK, Mode::S_IRUSR, makedev(major, minor));
            let opened = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&node);
            let _ = fs::remove_file(&node);
            assert!(made.is_err() && opened.is_err(), "disk {major}:{minor} can be reached in {folder}");
        }
    }
}

fn upper() -> PathBuf {
    PathBuf::from("/proc/self/fd/0/upper")
}

/// Everything that a command in the sandbox must not change.
#[derive(Debug)]
pub(crate) struct World {
    /// Files with all that is known of them; a change of anything changes the time of the last change.
    files: BTreeMap<PathBuf, String>,
    processes: BTreeSet<String>,
    facts: BTreeMap<&'static str, String>,
    /// How far the clock of the wall is ahead of the one that nobody can set, in milliseconds.
    clock: i128,
}

impl World {
    /// How it is now, but for what is in `workspace`. `began` must be the same for all that are compared.
    pub(crate) fn now(workspace: &Path, began: Instant) -> Self {
        let mut files = BTreeMap::new();
        let upper = upper();
        let excepted = upper.join(workspace.strip_prefix("/").unwrap());
        for folder in [&upper, Path::new("/dev"), Path::new("/tmp")] {
            walk(folder, &mut |path, about| {
                if path.starts_with(&excepted) {
                    return;
                }
                let name = path.strip_prefix(&upper).map_or(path.to_path_buf(), |path| Path::new("/").join(path));
                files.insert(name, described(about));
            });
        }
        let read = |path: &str| fs::read_to_string(path).unwrap();
        let facts = BTreeMap::from([
            ("host name", read("/proc/sys/kernel/hostname")),
            ("mounts", read("/proc/self/mountinfo")),
            ("network", read("/proc/net/dev").lines().filter_map(|line| line.split(':').next()).collect()),
        ]);
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let clock = wall.cast_signed() - began.elapsed().as_millis().cast_signed();
        Self { files, processes: processes(), facts, clock }
    }

    /// What is different `later`, in words.
    pub(crate) fn differences(&self, later: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for path in self.files.keys().chain(later.files.keys()).collect::<BTreeSet<_>>() {
            let (before, after) = (self.files.get(path), later.files.get(path));
            if before != after {
                found.push(format!("{}: {before:?} became {after:?}", path.display()));
            }
        }
        found.extend(self.processes.difference(&later.processes).map(|process| format!("process {process} ended")));
        found.extend(later.processes.difference(&self.processes).map(|process| format!("process {process} is left")));
        for (name, before) in &self.facts {
            if later.facts[name] != *before {
                found.push(format!("{name}: {before:?} became {:?}", later.facts[name]));
            }
        }
        // The machine itself may correct its clock a little.
        if (self.clock - later.clock).abs() > 2_000 {
            found.push(format!("the clock was set by {} ms", later.clock - self.clock));
        }
        found
    }
}

fn described(about: &fs::Metadata) -> String {
    let (mode, user, group, size) = (about.mode(), about.uid(), about.gid(), about.size());
    let changed = (about.ctime(), about.ctime_nsec());
    format!("mode {mode:o} of {user}:{group}, {size} bytes, device {}, changed {changed:?}", about.rdev())
}

/// Visits what is below a folder, but not the folder.
fn walk(folder: &Path, visit: &mut impl FnMut(&Path, &fs::Metadata)) {
    // A folder may go away meanwhile.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        visit(&path, &about);
        if about.is_dir() {
            walk(&path, visit);
        }
    }
}

/// Live processes, with their names.
fn processes() -> BTreeSet<String> {
    let numbers = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let numbers = numbers.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let live = |number: String| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // `12 (name) S …`; Z and X are dead (proc_pid_stat(5)).
        let (name, rest) = stat.rsplit_once(')')?;
        (!rest.trim_start().starts_with(['Z', 'X'])).then(|| format!("{name})"))
    };
    numbers.filter_map(live).collect()
}
