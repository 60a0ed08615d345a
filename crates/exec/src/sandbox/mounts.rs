//! Building the command's root and moving into it.
//!
//! First every tree is taken from the machine's files as a detached mount; then the root is exchanged; then the trees
//! are put in their places, parents first. Nothing here is undone on an error: the process ends.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, fchdir, pivot_root};

use super::mount_calls::{
    FsOption, NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY, attach, copy_tree, new_filesystem, open_plain, restrict_tree,
};
use super::plan::{Layer, Plan};
use super::{own_terminal, step};
use crate::rehearsal::OVERLAY_OPTIONS;

/// The devices that programs expect everywhere, none of which reaches hardware.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Makes `plan` the root of this process, which must be the first of new user, mount and PID namespaces.
pub(super) fn build(plan: &Plan) -> io::Result<()> {
    // What is mounted on the machine from now on must not appear, writable, in the middle of our trees.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .map_err(|error| step("separate its mounts from those of the machine")(error.into()))?;
    let root = if plan.from_everything {
        Tree::of("/".as_ref(), READ_ONLY | NO_SUID | NO_DEVICES)
    } else {
        Tree::scratch(0o755)
    };
    let root = root.map_err(step("take the root folder"))?;
    let proc = new_filesystem(c"proc", &[], READ_ONLY | NO_SUID | NO_DEVICES | NO_PROGRAMS)
        .map_err(step("make a /proc of its own"))?;
    let devices = Devices::take()?;
    let mut trees = Vec::new();
    for (at, layer) in plan.layers() {
        trees.push((at, layer, take(at, layer).map_err(step(format_args!("show {}", at.display())))?));
    }

    exchange_root(&root.handle).map_err(step("exchange the root folder"))?;
    place(&proc, "/proc".as_ref(), true).map_err(step("mount /proc"))?;
    root.restrict_late("/".as_ref()).map_err(step("make the root folder read-only"))?;
    devices.place().map_err(step("make /dev"))?;
    for (at, layer, tree) in &trees {
        put(at, layer, tree.as_ref()).map_err(step(format_args!("mount {}", at.display())))?;
    }
    // Places for the mounts above were made in these, so they become read-only last.
    for (at, layer) in plan.layers() {
        if *layer == (Layer::HiddenFolder { passage: true }) {
            make_read_only(at).map_err(step(format_args!("hide {}", at.display())))?;
        }
    }
    if !plan.from_everything {
        make_read_only("/".as_ref()).map_err(step("make the root folder read-only"))?;
    }
    Ok(())
}

/// A detached tree, and the attributes that the kernel could not set on it in one step.
struct Tree {
    handle: OwnedFd,
    late: Option<u64>,
}

impl Tree {
    fn of(path: &Path, attributes: u64) -> io::Result<Self> {
        let handle = copy_tree(open_plain(path)?)?;
        match restrict_tree(&handle, attributes) {
            Ok(()) => Ok(Self { handle, late: None }),
            Err(error) if error.raw_os_error() == Some(Errno::ENOSYS as i32) => {
                Ok(Self { handle, late: Some(attributes) })
            }
            Err(error) => Err(error),
        }
    }

    fn scratch(mode: u32) -> io::Result<Self> {
        let mode = CString::new(format!("{mode:o}"))?;
        let handle = new_filesystem(c"tmpfs", &[FsOption::Text(c"mode", &mode)], NO_SUID | NO_DEVICES)?;
        Ok(Self { handle, late: None })
    }

    /// The folder at `lower` with its changes in `upper`. The kernel reads the folders' names itself, so it gets names
    /// that mean the folders we have opened.
    fn overlay(lower: &Path, upper: &Path, work: &Path) -> io::Result<Self> {
        let handles = [open_plain(lower)?, open_plain(upper)?, open_plain(work)?];
        let name = |index: usize| CString::new(format!("/proc/self/fd/{}", handles[index].as_raw_fd()));
        let (lower, upper, work) = (name(0)?, name(1)?, name(2)?);
        let mut options = vec![
            FsOption::Text(c"lowerdir", &lower),
            FsOption::Text(c"upperdir", &upper),
            FsOption::Text(c"workdir", &work),
        ];
        // Everything that was changed is to be found in `upper` alone.
        let mut texts = Vec::new();
        for (name, value) in OVERLAY_OPTIONS {
            texts.push((CString::new(name)?, value.map(CString::new).transpose()?));
        }
        options.extend(texts.iter().map(|(name, value)| match value {
            Some(value) => FsOption::Text(name, value),
            None => FsOption::Flag(name),
        }));
        let handle = new_filesystem(c"overlay", &options, NO_SUID | NO_DEVICES)?;
        Ok(Self { handle, late: None })
    }

    /// Before Linux 5.12 the mounts of a tree are restricted one by one, where they are; needs the new `/proc`.
    fn restrict_late(&self, at: &Path) -> io::Result<()> {
        self.late.map_or(Ok(()), |attributes| restrict_by_walk(at, attributes))
    }
}

fn take(at: &Path, layer: &Layer) -> io::Result<Option<Tree>> {
    Ok(Some(match layer {
        Layer::ReadOnly(source) => Tree::of(source, READ_ONLY | NO_SUID | NO_DEVICES)?,
        Layer::Writable(source) => Tree::of(source, NO_SUID | NO_DEVICES)?,
        Layer::Overlay { upper, work } => Tree::overlay(at, upper, work)?,
        Layer::Scratch { shared } => Tree::scratch(if *shared { 0o1777 } else { 0o755 })?,
        Layer::HiddenFolder { passage } => Tree::scratch(if *passage { 0o111 } else { 0 })?,
        // A device on a mount without devices cannot be opened, not even by root.
        Layer::HiddenFile => Tree::of("/dev/null".as_ref(), READ_ONLY | NO_SUID | NO_DEVICES)?,
        Layer::Link(_) | Layer::Pinned(_) => return Ok(None),
    }))
}

fn put(at: &Path, layer: &Layer, tree: Option<&Tree>) -> io::Result<()> {
    let Some(tree) = tree else {
        return match layer {
            Layer::Link(target) => symlink(target, at),
            // The folder onto itself, as the layers below have made it.
            _ => open_plain(at).and_then(copy_tree).and_then(|tree| attach(tree, open_plain(at)?)),
        };
    };
    match layer {
        Layer::HiddenFolder { passage } => {
            // What the view does not show needs no cover, unless there are layers to show below it.
            match open_plain(at) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && !passage => return Ok(()),
                _ => place(&tree.handle, at, true)?,
            }
            if *passage { Ok(()) } else { make_read_only(at) }
        }
        Layer::HiddenFile => {
            match open_plain(at) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                _ => place(&tree.handle, at, false)?,
            }
            tree.restrict_late(at)
        }
        _ => {
            place(&tree.handle, at, is_folder(&tree.handle)?)?;
            tree.restrict_late(at)
        }
    }
}

/// Replaces the root of this process, and lets go of the old one.
fn exchange_root(root: &OwnedFd) -> io::Result<()> {
    attach(root, open_plain("/".as_ref())?)?;
    fchdir(root)?;
    // With both folders the same, the old root ends up on top of the new one, under no name of its own (pivot_root(2)).
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    Ok(chdir("/")?)
}

/// Attaches a tree at a path of the new root, which is made where the parent can be written.
fn place(tree: impl AsFd, at: &Path, folder: bool) -> io::Result<()> {
    let target = match open_plain(at) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if folder {
                fs::DirBuilder::new().recursive(true).mode(0o755).create(at)?;
            } else {
                fs::create_dir_all(at.parent().unwrap_or(Path::new("/")))?;
                File::create(at)?;
            }
            open_plain(at)?
        }
        other => other?,
    };
    attach(tree, target)
}

fn is_folder(tree: &OwnedFd) -> io::Result<bool> {
    let about = nix::sys::stat::fstat(tree)?;
    Ok(about.st_mode & nix::libc::S_IFMT == nix::libc::S_IFDIR)
}

/// Makes one mount read-only, not what is mounted below it.
fn make_read_only(at: &Path) -> io::Result<()> {
    remount(at, MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV)
}

fn remount(at: &Path, flags: MsFlags) -> io::Result<()> {
    Ok(mount(None::<&str>, at, None::<&str>, MsFlags::MS_REMOUNT | MsFlags::MS_BIND | flags, None::<&str>)?)
}

/// Adds attributes to each mount at or below `at`. Flags that a mount has already are kept: in a user namespace taking
/// one away is not permitted.
fn restrict_by_walk(at: &Path, attributes: u64) -> io::Result<()> {
    let added = [(READ_ONLY, MsFlags::MS_RDONLY), (NO_SUID, MsFlags::MS_NOSUID), (NO_DEVICES, MsFlags::MS_NODEV)];
    let added = added.iter().filter(|(attribute, _)| attributes & attribute != 0).map(|(_, flag)| *flag);
    let added: MsFlags = added.collect();
    for (point, flags) in mount_points(&fs::read_to_string("/proc/self/mountinfo")?) {
        // /proc is ours and read-only, and what was mounted in the old one is covered by it.
        if point.starts_with(at) && !point.starts_with("/proc") {
            match remount(&point, flags | added) {
                // Covered by another mount: no path leads there.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
    }
    Ok(())
}

/// Where something is mounted, with its flags, from the text of `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).
fn mount_points(table: &str) -> Vec<(PathBuf, MsFlags)> {
    let point = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let flags = fields.get(5)?.split(',').map(|option| match option {
            "ro" => MsFlags::MS_RDONLY,
            "nosuid" => MsFlags::MS_NOSUID,
            "nodev" => MsFlags::MS_NODEV,
            "noexec" => MsFlags::MS_NOEXEC,
            "noatime" => MsFlags::MS_NOATIME,
            "nodiratime" => MsFlags::MS_NODIRATIME,
            "relatime" => MsFlags::MS_RELATIME,
            _ => MsFlags::empty(),
        });
        // Blank, tab, newline and backslash are written as octal numbers.
        let path = fields.get(4)?.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n");
        Some((PathBuf::from(path.replace("\\134", "\\")), flags.collect()))
    };
    table.lines().filter_map(point).collect()
}

/// The parts of `/dev`.
struct Devices {
    folder: Tree,
    nodes: Vec<(&'static str, Tree)>,
    terminals: OwnedFd,
    shared_memory: Tree,
    /// The terminal that the command has been given, so that it has a name inside.
    own_terminal: Option<Tree>,
}

impl Devices {
    fn take() -> io::Result<Self> {
        // A device on a read-only mount can be written, but its owner, who may be root here, cannot change its mode or
        // times; they are those of the machine's own.
        let take = |path: &Path| Tree::of(path, READ_ONLY | NO_SUID);
        let node = |name: &'static str| {
            let tree = take(&Path::new("/dev").join(name)).map_err(step(format_args!("take /dev/{name}")))?;
            Ok((name, tree))
        };
        let terminals = [FsOption::Text(c"ptmxmode", c"0666"), FsOption::Text(c"mode", c"0620")];
        Ok(Self {
            folder: Tree::scratch(0o755).map_err(step("make /dev"))?,
            nodes: DEVICES.into_iter().map(node).collect::<io::Result<_>>()?,
            terminals: new_filesystem(c"devpts", &terminals, NO_SUID | NO_PROGRAMS).map_err(step("make /dev/pts"))?,
            shared_memory: Tree::scratch(0o1777).map_err(step("make /dev/shm"))?,
            own_terminal: own_terminal().and_then(|path| take(&path).ok()),
        })
    }

    fn place(&self) -> io::Result<()> {
        let path = |name: &str| Path::new("/dev").join(name);
        place(&self.folder.handle, "/dev".as_ref(), true)?;
        for (name, node) in &self.nodes {
            place(&node.handle, &path(name), false)?;
            node.restrict_late(&path(name))?;
        }
        for (name, target) in DEVICE_LINKS {
            symlink(target, path(name))?;
        }
        place(&self.terminals, &path("pts"), true)?;
        place(&self.shared_memory.handle, &path("shm"), true)?;
        if let Some(terminal) = &self.own_terminal {
            place(&terminal.handle, &path("console"), false)?;
            terminal.restrict_late(&path("console"))?;
        }
        make_read_only("/dev".as_ref())
    }
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::*;

    /// What kernels before Linux 5.12 need, on this one: in namespaces of its own, a child makes everything read-only.
    #[test]
    #[expect(unsafe_code, reason = "namespaces are made between fork and exec")]
    fn without_the_one_step_the_mounts_are_restricted_one_by_one() {
        use std::os::unix::process::CommandExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        let mut command = std::process::Command::new("true");
        let target = file.clone();
        // SAFETY: the child has one thread, and the C library lets it allocate.
        unsafe {
            command.pre_exec(move || {
                super::super::namespaces::new_namespaces(super::super::Network::Open)?;
                fs::write(&target, "new")?;
                mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
                restrict_by_walk("/".as_ref(), READ_ONLY | NO_SUID | NO_DEVICES)?;
                let lines = fs::read_to_string("/proc/self/mountinfo")?;
                let places = mount_points(&lines);
                let is_open = |(at, flags): &(PathBuf, MsFlags)| {
                    // Of several mounts on one place only the last can be reached.
                    let last = places.iter().rfind(|(other, _)| other == at);
                    !at.starts_with("/proc") && !last.unwrap_or(&(at.clone(), *flags)).1.contains(MsFlags::MS_RDONLY)
                };
                if places.iter().any(is_open) {
                    return Err(Errno::EISDIR.into());
                }
                match fs::write(&target, "escaped").unwrap_err().raw_os_error() {
                    Some(libc::EROFS) => Ok(()),
                    _ => Err(Errno::EEXIST.into()),
                }
            });
        }
        assert!(command.status().unwrap().success());
        assert_eq!(fs::read_to_string(file).unwrap(), "new");
    }

    #[test]
    fn the_table_of_mounts_is_read_with_strange_names_and_all_flags() {
        let table = "22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw\n\
                     30 1 8:1 /x /mnt/a\\040b\\134c ro,nosuid,nodev,noexec,noatime - ext4 /dev/sda1 rw\n\nshort line\n";
        let (plain, all) = (MsFlags::MS_RELATIME, MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV);
        let all = all | MsFlags::MS_NOEXEC | MsFlags::MS_NOATIME;
        assert_eq!(mount_points(table), [("/proc".into(), plain), ("/mnt/a b\\c".into(), all)]);
    }
}
