//! What the command's file tree is made of: a [`Confinement`] as layers, parents before children.
//!
//! The layers are the same for every mechanism that has a view of its own, so that they show the same files. They are
//! worked out before anything is exchanged, while the machine's own files are still visible.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Backing, Confinement, Network, View, failed, step};

/// Below these, programs of the machine keep their sockets.
pub(super) const RUNTIME_FOLDERS: [&str; 2] = ["/run", "/var/run"];
pub(super) const TEMPORARY_FOLDERS: [&str; 2] = ["/tmp", "/var/tmp"];
/// What the view `System` shows: programs, libraries, configuration.
pub(super) const SYSTEM_FOLDERS: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"];

/// One part of the file tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// What is at this path of the machine, read-only.
    ReadOnly(PathBuf),
    /// What is at this path of the machine.
    Writable(PathBuf),
    /// The folder of the machine at the layer's own path; changes go into `upper`.
    Overlay { upper: PathBuf, work: PathBuf },
    /// A folder inside of a writable one that is to stay under its name; it is at this path of the machine.
    Pinned(PathBuf),
    /// An empty folder that lives in memory and can be written.
    Scratch { shared: bool },
    /// A symbolic link that leads there.
    Link(PathBuf),
    /// An empty folder that cannot be listed; with `passage` there are layers below it.
    HiddenFolder { passage: bool },
    /// A file that cannot be read.
    HiddenFile,
}

/// The whole file tree, but for `/proc` and `/dev`, which are always the command's own.
#[derive(Debug)]
pub(super) struct Plan {
    /// Whether the tree begins with all files of the machine, read-only, or with nothing.
    pub from_everything: bool,
    layers: BTreeMap<(usize, PathBuf), Layer>,
}

impl Plan {
    /// Fails if a writable or readable path is not absolute or is the root, and if a hidden one cannot be looked at.
    pub(super) fn of(confinement: &Confinement) -> io::Result<Self> {
        let listed = confinement.readable.iter().chain(confinement.writable.iter().map(|root| &root.path));
        for path in listed.chain(match &confinement.view {
            View::System { home } => Some(home),
            View::Everything => None,
        }) {
            if !path.is_absolute() || path.parent().is_none() {
                return Err(failed(format_args!("show {}", path.display()), "it must be absolute and not the root"));
            }
        }
        let mut plan = Self { from_everything: confinement.view == View::Everything, layers: BTreeMap::new() };
        plan.add_system(confinement);
        for path in &confinement.readable {
            plan.add(path, Layer::ReadOnly(path.clone()));
        }
        for root in &confinement.writable {
            let layer = match &root.backing {
                Backing::Direct => Layer::Writable(root.path.clone()),
                Backing::Source(source) => Layer::Writable(source.clone()),
                Backing::Overlay { upper, work } => Layer::Overlay { upper: upper.clone(), work: work.clone() },
            };
            plan.add(&root.path, layer);
        }
        for path in hidden(confinement) {
            let is_folder = fs::metadata(&path).map_err(step(format_args!("hide {}", path.display())))?.is_dir();
            plan.add(&path, if is_folder { Layer::HiddenFolder { passage: false } } else { Layer::HiddenFile });
        }
        plan.find_passages();
        plan.pin(confinement);
        if confinement.network != Network::Open {
            plan.hide_sockets();
        }
        Ok(plan)
    }

    /// Layers with their places, parents first.
    pub(super) fn layers(&self) -> impl Iterator<Item = (&Path, &Layer)> {
        self.layers.iter().map(|((_, path), layer)| (path.as_path(), layer))
    }

    /// Where the command can write.
    pub(super) fn writable(&self) -> impl Iterator<Item = &Path> {
        let is_writable =
            |layer: &Layer| matches!(layer, Layer::Writable(_) | Layer::Overlay { .. } | Layer::Scratch { .. });
        self.layers().filter(move |(_, layer)| is_writable(layer)).map(|(path, _)| path)
    }

    fn add(&mut self, path: &Path, layer: Layer) {
        self.layers.insert((path.components().count(), path.to_path_buf()), layer);
    }

    fn add_system(&mut self, confinement: &Confinement) {
        if let View::System { home } = &confinement.view {
            for folder in SYSTEM_FOLDERS {
                match (fs::read_link(folder), Path::new(folder).is_dir()) {
                    (Ok(target), _) => self.add(folder.as_ref(), Layer::Link(target)),
                    (Err(_), true) => self.add(folder.as_ref(), Layer::ReadOnly(folder.into())),
                    (Err(_), false) => {}
                }
            }
            self.add(home, Layer::Scratch { shared: false });
        }
        if confinement.private_tmp || !self.from_everything {
            self.add_scratch(&TEMPORARY_FOLDERS, true);
        }
        self.add_scratch(&RUNTIME_FOLDERS, false);
        // Names are looked up with this file, and it is often a link into /run.
        if let Ok(file) = fs::canonicalize("/etc/resolv.conf")
            && self.is_private(&file)
        {
            self.add(&file.clone(), Layer::ReadOnly(file));
        }
    }

    fn add_scratch(&mut self, folders: &[&str], shared: bool) {
        for folder in folders.iter().map(Path::new) {
            // `/var/run` is a link on most machines.
            let is_folder = fs::symlink_metadata(folder).is_ok_and(|about| about.is_dir());
            if is_folder || (!self.from_everything && folder.parent() == Some(Path::new("/"))) {
                self.add(folder, Layer::Scratch { shared });
            }
        }
    }

    /// Whether nothing of the machine is visible at `path` anyway.
    fn is_private(&self, path: &Path) -> bool {
        let covering = path.ancestors().find_map(|above| self.layers.get(&(above.components().count(), above.into())));
        match covering {
            Some(Layer::Scratch { .. } | Layer::HiddenFolder { .. } | Layer::HiddenFile) => true,
            Some(_) => false,
            None => !self.from_everything,
        }
    }

    /// Pins the folders between a writable root and what is protected or hidden inside of it: a mount cannot be renamed,
    /// but the folders above it could, and what it covers would have another path in the next command.
    fn pin(&mut self, confinement: &Confinement) {
        let covers =
            |layer: &Layer| matches!(layer, Layer::ReadOnly(_) | Layer::HiddenFolder { .. } | Layer::HiddenFile);
        let covers: Vec<PathBuf> =
            self.layers().filter(|(_, layer)| covers(layer)).map(|(at, _)| at.to_path_buf()).collect();
        for cover in covers {
            for above in cover.ancestors().skip(1) {
                let root = confinement.writable.iter().find(|root| root.path == above);
                if root.is_some() || self.layers.contains_key(&(above.components().count(), above.into())) {
                    break;
                }
                let within = confinement.writable.iter().filter(|root| above.starts_with(&root.path));
                let Some(root) = within.max_by_key(|root| root.path.components().count()) else { break };
                let source = match (&root.backing, above.strip_prefix(&root.path)) {
                    (Backing::Source(source), Ok(rest)) => source.join(rest),
                    _ => above.to_path_buf(),
                };
                self.add(above, Layer::Pinned(source));
            }
        }
    }

    fn find_passages(&mut self) {
        let places: Vec<PathBuf> = self.layers.keys().map(|(_, path)| path.clone()).collect();
        for ((_, path), layer) in &mut self.layers {
            if let Layer::HiddenFolder { passage } = layer {
                *passage = places.iter().any(|other| other != path && other.starts_with(path));
            }
        }
    }

    /// Hides the sockets that programs of the machine have bound to visible paths: being read-only does not keep a
    /// command from talking to a daemon. One that is bound later can be reached, before Landlock's version 9.
    fn hide_sockets(&mut self) {
        // num refcount protocol flags type state inode path (`unix(7)`, /proc/net/unix); unreadable means no sockets.
        let table = fs::read("/proc/net/unix").unwrap_or_default();
        for line in String::from_utf8_lossy(&table).lines().skip(1) {
            let Some(start) = line.find(" /") else { continue };
            let path = Path::new(&line[start + 1..]);
            let is_socket = |about: fs::Metadata| {
                use std::os::unix::fs::FileTypeExt as _;
                about.file_type().is_socket()
            };
            // The table has the path as it was bound; only one without links is in the tree under this name.
            let Ok(real) = fs::canonicalize(path) else { continue };
            if !self.is_private(&real) && fs::symlink_metadata(&real).is_ok_and(is_socket) {
                self.add(&real, Layer::HiddenFile);
            }
        }
    }
}

/// The real paths that exist of what is hidden.
pub(super) fn hidden(confinement: &Confinement) -> impl Iterator<Item = PathBuf> {
    // Most are not there, which costs the least to find out so.
    let there = confinement.hidden.iter().filter(|path| path.symlink_metadata().is_ok());
    there.filter_map(|path| fs::canonicalize(path).ok())
}

#[cfg(test)]
mod tests {
    use super::super::{Mechanism, WritableRoot};
    use super::*;

    #[test]
    fn parents_come_first_and_for_one_path_hidden_beats_writable_beats_readable() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name);
        for name in ["a/b/c", "d"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        let mut confinement = Confinement::new(Mechanism::Namespaces);
        confinement.readable = vec![path("a/b"), path("d"), path("a")];
        confinement.writable = vec![WritableRoot::direct(path("a/b/c")), WritableRoot::direct(path("d"))];
        confinement.hidden = vec![path("d"), path("a"), path("no such")];
        let plan = Plan::of(&confinement).unwrap();
        let ours: Vec<_> = plan.layers().filter(|(at, _)| at.starts_with(&root)).collect();
        let expected = [
            (path("a"), Layer::HiddenFolder { passage: true }),
            (path("d"), Layer::HiddenFolder { passage: false }),
            (path("a/b"), Layer::ReadOnly(path("a/b"))),
            (path("a/b/c"), Layer::Writable(path("a/b/c"))),
        ];
        assert_eq!(ours, expected.iter().map(|(at, layer)| (at.as_path(), layer)).collect::<Vec<_>>());
    }

    #[test]
    fn the_root_and_relative_paths_cannot_be_listed() {
        for path in ["/", "relative", ""] {
            let mut confinement = Confinement::new(Mechanism::Namespaces);
            confinement.writable = vec![WritableRoot::direct(path)];
            let error = Plan::of(&confinement).unwrap_err().to_string();
            assert!(error.ends_with("it must be absolute and not the root"), "{error}");
        }
    }

    #[test]
    fn sockets_of_other_programs_on_visible_paths_are_hidden_unless_the_network_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("with space.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mut confinement = Confinement::new(Mechanism::Namespaces);
        confinement.private_tmp = false;
        let hides = |confinement: &Confinement| {
            let plan = Plan::of(confinement).unwrap();
            plan.layers().any(|(at, layer)| at == path && *layer == Layer::HiddenFile)
        };
        assert!(hides(&confinement));
        confinement.network = Network::Open;
        assert!(!hides(&confinement));
    }
}
