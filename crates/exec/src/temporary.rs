//! A temporary folder of which can be told whether it is in use.
//!
//! A process that is killed leaves its folders behind. Each holds a file that is locked for as long as the folder is in
//! use; the kernel takes the lock away together with the process. Whoever finds the folder later, see
//! [`crate::processes::reap`], trusts neither names nor process numbers.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// How the names of such folders begin.
const PREFIX: &str = "hermes-";
/// The file in them that is locked.
const LOCK: &str = ".in-use";

/// A folder that goes with its owner, or is taken away for it.
#[derive(Debug)]
pub struct Temporary {
    // Before the lock: while it is being removed, nobody else does so.
    folder: TempDir,
    _lock: File,
}

impl Temporary {
    /// Makes one in `base`. `what` becomes a part of its name.
    pub fn new(base: &Path, what: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(&format!("{PREFIX}{what}")).tempdir_in(base)?;
        // Locked before it has its name: whoever finds it by that name never finds it free.
        let unnamed = folder.path().join(".new");
        let lock = File::create(&unnamed)?;
        lock.try_lock()?;
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whether `folder` is one whose owner is gone. A folder without our lock file is none of ours, whatever its name.
pub(crate) fn is_abandoned(folder: &Path) -> bool {
    let named_so = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    named_so && File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_holds_and_what_is_ours_is_abandoned() {
        let base = tempfile::tempdir().unwrap();
        let held = Temporary::new(base.path(), "test-").unwrap();
        let folder = |name: &str, locked: bool| {
            let folder = base.path().join(name);
            fs::create_dir(&folder).unwrap();
            if locked {
                fs::write(folder.join(LOCK), "").unwrap();
            }
            folder
        };
        assert!(!is_abandoned(held.path()));
        assert!(is_abandoned(&folder("hermes-test-dead", true)));
        assert!(!is_abandoned(&folder("hermes-of-somebody", false)) && !is_abandoned(&folder("other", true)));
        let path = held.path().to_path_buf();
        drop(held);
        assert!(!path.exists());
    }
}
