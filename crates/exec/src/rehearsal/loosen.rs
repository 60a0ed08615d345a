//! Reading a stage in which the command took its own permissions away.
//!
//! A command may leave a folder with mode 000. Root reads it all the same; anybody else, who owns it, has to allow
//! himself first. That is done for the whole stage at once, the true modes are remembered, and put back on drop. In
//! between nobody changes a mode, so that a change time tells of somebody else.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::changes::Kind;
use crate::beneath::{Look, Root};

/// A stage that can be read. Modes are asked for here.
#[derive(Debug)]
pub(super) struct Loosened {
    root: Root,
    /// By inode, since a file may have several names.
    modes: HashMap<u64, u32>,
    /// In the order in which they were met: a folder before what it holds.
    order: Vec<(PathBuf, u32)>,
}

impl Loosened {
    pub(super) fn new(root: Root) -> Self {
        let mut loosened = Self { root, modes: HashMap::new(), order: Vec::new() };
        if rustix::process::geteuid().is_root() {
            return loosened;
        }
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            // What cannot be listed now is an error for whoever needs it later.
            for (name, look) in loosened.root.children(&folder).unwrap_or_default() {
                let path = folder.join(name);
                let needed = match look.kind {
                    Kind::Folder => 0o500,
                    Kind::File => 0o400,
                    _ => 0,
                };
                if look.mode & needed != needed && loosened.set(&path, look.mode | needed).is_ok() {
                    loosened.modes.insert(look.ino, look.mode);
                    loosened.order.push((path.clone(), look.mode));
                }
                if look.is_folder() {
                    folders.push(path);
                }
            }
        }
        loosened
    }

    fn set(&self, path: &Path, mode: u32) -> std::io::Result<()> {
        self.root.place(path)?.set_mode(mode)
    }

    /// The mode that the command left.
    pub(super) fn mode(&self, look: &Look) -> u32 {
        self.modes.get(&look.ino).copied().unwrap_or(look.mode)
    }
}

impl Drop for Loosened {
    fn drop(&mut self) {
        for (path, mode) in self.order.iter().rev() {
            // The stage is private and about to go; a mode that stays loose in it harms nobody.
            let _ = self.set(path, *mode);
        }
    }
}
