//! Following links, with the disk as a parameter.
//!
//! The tricky idea: `..` after a link means the parent of what the link leads to, so links are followed name by name
//! from the left, and never after the text was tidied up.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many links one path may cross, as on Linux.
const MOST_LINKS: usize = 40;

/// Why a path cannot be resolved.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ResolveError<E> {
    /// It has to start at the root.
    #[error("{} is not an absolute path; put the folder in front that it is relative to", .0.display())]
    NotAbsolute(PathBuf),
    /// Links lead to links, maybe in a circle.
    #[error("{} crosses more than {MOST_LINKS} links, probably in a circle; name the file itself", .0.display())]
    TooManyLinks(PathBuf),
    /// A part of it could not be looked at.
    #[error("cannot see whether {} is a link: {why}", path.display())]
    Unseen {
        /// The part.
        path: PathBuf,
        /// What the disk answered.
        why: E,
    },
}

/// Where `path` leads when its links are followed; parts that do not exist stay as they are written.
///
/// `link` answers the target of a link, as it is stored in it, and `None` for anything else, existing or not. It is asked
/// for absolute paths whose parents are already resolved.
pub fn resolve<E>(
    path: &Path,
    mut link: impl FnMut(&Path) -> Result<Option<PathBuf>, E>,
) -> Result<PathBuf, ResolveError<E>> {
    if !path.is_absolute() {
        return Err(ResolveError::NotAbsolute(path.to_path_buf()));
    }
    let mut done = PathBuf::new();
    let mut to_do = reversed(path);
    let mut links = 0;
    while let Some(part) = to_do.pop() {
        match Path::new(&part).components().next() {
            None | Some(Component::CurDir) => {}
            Some(Component::ParentDir) => drop(done.pop()),
            // An absolute target of a link begins anew.
            Some(Component::Prefix(_) | Component::RootDir) => done.push(part),
            Some(Component::Normal(_)) => {
                done.push(part);
                let target = link(&done).map_err(|why| ResolveError::Unseen { path: done.clone(), why })?;
                if let Some(target) = target {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(ResolveError::TooManyLinks(path.to_path_buf()));
                    }
                    done.pop();
                    to_do.extend(reversed(&target));
                }
            }
        }
    }
    Ok(done)
}

fn reversed(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|component| component.as_os_str().to_owned()).collect()
}
