//! Puts paths back to what a snapshot says they were.
//!
//! Every path is looked at once more right before it is touched: what changed after it was kept is left alone and said.
//! Paths are reached through held folders and never through links ([`crate::beneath`]), and a content takes its place in one
//! step, so that whatever happens a file is the old one or the new one.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::snapshot::{Entry, Known, Snapshot};
use super::store::Contents;
use super::{CheckpointError, Left};
use crate::beneath::{Look, Place, Root};
use crate::files::drop_access_list;
use crate::rehearsal::Kind;

/// What is to be done with one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Remove,
    Put(Entry),
}

/// Sorts paths into those that can be made what `target` says, coming from `now`, and those that cannot, with the reason.
pub(super) fn plan(
    target: &Snapshot,
    now: &Snapshot,
    paths: impl Iterator<Item = PathBuf>,
) -> (BTreeMap<PathBuf, Step>, Vec<Left>) {
    let (mut steps, mut left) = (BTreeMap::new(), Vec::new());
    for path in paths {
        let why = match (target.at(&path), now.at(&path)) {
            (Known::Nothing, _) => "nothing is known of it".to_owned(),
            (_, Known::Nothing) => "it cannot be looked at now".to_owned(),
            (Known::Here(Entry::LeftOut { why, .. }), _) => format!("it was {} then", why.in_words()),
            (_, Known::Here(Entry::LeftOut { why, .. })) => {
                format!("it is {} now, so there would be no way back", why.in_words())
            }
            (Known::NotThere, Known::NotThere) => continue,
            (Known::Here(_), Known::Here(entry))
                if target.areas.contains_key(&path) && !matches!(entry, Entry::Folder { .. }) =>
            {
                "something else stands in the place of the project".to_owned()
            }
            (Known::Here(entry), _) => {
                steps.insert(path, Step::Put(*entry));
                continue;
            }
            (Known::NotThere, Known::Here(_)) => {
                steps.insert(path, Step::Remove);
                continue;
            }
        };
        left.push(Left { path, why });
    }
    let missing = folders_to_make(target, now, &steps);
    steps.extend(missing);
    (steps, left)
}

/// The folders without which what is put back has no place, where nobody asked for them.
fn folders_to_make(target: &Snapshot, now: &Snapshot, steps: &BTreeMap<PathBuf, Step>) -> BTreeMap<PathBuf, Step> {
    let mut missing = BTreeMap::new();
    for path in steps.iter().filter(|(_, step)| matches!(step, Step::Put(_))).map(|(path, _)| path) {
        for above in path.ancestors().skip(1) {
            if steps.contains_key(above) || missing.contains_key(above) || now.at(above) != Known::NotThere {
                break;
            }
            let Known::Here(entry @ Entry::Folder { .. }) = target.at(above) else { break };
            missing.insert(above.to_path_buf(), Step::Put(*entry));
        }
    }
    missing
}

/// Takes the steps. Answers the paths that are as they should be now, and the others.
pub(super) fn apply(
    steps: &BTreeMap<PathBuf, Step>,
    now: &Snapshot,
    contents: &mut Contents,
) -> (Vec<PathBuf>, Vec<Left>) {
    let mut work = Work { now, contents, opened: BTreeMap::new(), done: Vec::new(), left: Vec::new(), made: 0 };
    let is_folder = |path: &Path| matches!(now.at(path), Known::Here(Entry::Folder { .. }));
    // It goes for good, or because something else stands in the place of a folder, or a folder in the place of it.
    let goes = |path: &Path, step: &Step| match step {
        Step::Remove => true,
        Step::Put(entry) => {
            let comes_folder = matches!(entry, Entry::Folder { .. });
            matches!(now.at(path), Known::Here(_)) && comes_folder != is_folder(path)
        }
    };
    // What is in a folder goes before the folder: paths in reverse order.
    for folders in [false, true] {
        for (path, step) in steps.iter().rev().filter(|(path, step)| goes(path, step) && is_folder(path) == folders) {
            let is_end = *step == Step::Remove;
            work.one(path, is_end, |work| work.remove(path, folders));
        }
    }
    // And a folder comes before what is in it.
    for (path, step) in steps {
        if let Step::Put(entry) = step {
            let is_end = !matches!(entry, Entry::Folder { .. });
            work.one(path, is_end, |work| work.put(path, entry));
        }
    }
    // Folders that may not be written to get that mode when all is in them.
    for (path, step) in steps.iter().rev() {
        if let Step::Put(Entry::Folder { mode }) = step {
            work.one(path, true, |work| {
                work.opened.remove(path);
                Ok(work.place(path)?.set_mode(*mode)?)
            });
        }
    }
    work.close();
    let Work { done, left, .. } = work;
    (done, left)
}

struct Work<'a> {
    now: &'a Snapshot,
    contents: &'a mut Contents,
    /// Folders that could not be written to and had to be opened, with the mode that they get back.
    opened: BTreeMap<PathBuf, u32>,
    done: Vec<PathBuf>,
    left: Vec<Left>,
    made: usize,
}

/// Why a step was not taken.
enum Trouble {
    /// Somebody else was there in between.
    Changed,
    /// A folder is not empty.
    Inhabited,
    Io(io::Error),
    Store(CheckpointError),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Work<'_> {
    /// One step; `is_end`: after it the path is as it should be.
    fn one(&mut self, path: &Path, is_end: bool, mut step: impl FnMut(&mut Self) -> Result<(), Trouble>) {
        if self.left.iter().any(|left| left.path == path) {
            return;
        }
        let mut taken = step(self);
        if let Err(Trouble::Io(error)) = &taken
            && error.kind() == io::ErrorKind::PermissionDenied
            && self.open_up(path)
        {
            taken = step(self);
        }
        let why = match taken {
            Ok(()) => {
                if is_end {
                    self.done.push(path.to_path_buf());
                }
                return;
            }
            Err(Trouble::Changed) => "it changed while it was to be put back".to_owned(),
            Err(Trouble::Inhabited) => "something that is not kept is in this folder".to_owned(),
            Err(Trouble::Io(error)) => error.to_string(),
            Err(Trouble::Store(error)) => error.to_string(),
        };
        self.left.push(Left { path: path.to_path_buf(), why });
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        let base = self.now.base_of(path);
        Root::open_directly(base)?.place(path.strip_prefix(base).unwrap_or(path))
    }

    /// The place of a path, if it is as it was when it was kept, and what is there.
    fn unchanged(&self, path: &Path) -> Result<(Place, Option<Look>), Trouble> {
        let place = self.place(path)?;
        let look = place.look()?;
        let is_same = match (&look, self.now.looks.get(path.as_os_str())) {
            (None, _) => true,
            (Some(_), None) => false,
            // What was done inside a folder changes its times.
            (Some(look), Some(known)) if look.is_folder() => known.is_folder(),
            // The count of names, and with it the time of the last change, may be our own doing: another name went.
            (Some(look), Some(known)) => Look { links: known.links, ctime: known.ctime, ..*look } == *known,
        };
        if is_same { Ok((place, look)) } else { Err(Trouble::Changed) }
    }

    fn remove(&mut self, path: &Path, is_folder: bool) -> Result<(), Trouble> {
        let (place, look) = match self.unchanged(path) {
            Err(Trouble::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        match look {
            None => Ok(()),
            Some(_) if is_folder => {
                if place.remove_empty_folder()? {
                    Ok(())
                } else {
                    Err(Trouble::Inhabited)
                }
            }
            Some(_) => Ok(place.remove()?),
        }
    }

    fn put(&mut self, path: &Path, entry: &Entry) -> Result<(), Trouble> {
        let place = self.place(path)?;
        let here = place.look()?;
        match entry {
            Entry::Folder { .. } => match here {
                Some(look) if look.is_folder() => Ok(()),
                Some(_) => Err(Trouble::Changed),
                None => Ok(place.make_folder()?),
            },
            Entry::File { blob, mode } => {
                // Only its permissions are others.
                if let Known::Here(Entry::File { blob: known, .. }) = self.now.at(path)
                    && known == blob
                    && here.is_some()
                {
                    let (place, _) = self.unchanged(path)?;
                    return Ok(place.set_mode(*mode)?);
                }
                let bytes = self.contents.read(*blob).map_err(Trouble::Store)?;
                let aside = self.aside(&place)?;
                let has_some = here.is_some_and(|look| look.kind == Kind::File);
                let attributes = has_some.then(|| place.attributes().ok()).flatten().unwrap_or_default();
                self.dressed(&aside, path, here.as_ref(), |aside| {
                    let mut file = aside.create()?;
                    // What the folder gives to new files is not what this one had.
                    drop_access_list(&file);
                    file.write_all(&bytes)?;
                    if let Some(look) = here.filter(|look| !look.is_folder()) {
                        // Who may not give files away keeps them.
                        let _ = aside.set_owner(look.uid, look.gid);
                    }
                    aside.set_mode(*mode)?;
                    // What it has beside its content stays with it, as far as that is possible.
                    for (name, value) in attributes {
                        let _ = aside.set_attribute(&name, &value);
                    }
                    Ok(())
                })
            }
            Entry::Link { blob } => {
                let target = self.contents.read(*blob).map_err(Trouble::Store)?;
                let target: PathBuf = std::ffi::OsString::from_vec(target).into();
                let aside = self.aside(&place)?;
                self.dressed(&aside, path, here.as_ref(), |aside| aside.make_link(&target))
            }
            Entry::LeftOut { .. } => Ok(()),
        }
    }

    /// Makes something beside `path` and lets it take its place.
    fn dressed(
        &self,
        aside: &Place,
        path: &Path,
        here: Option<&Look>,
        make: impl FnOnce(&Place) -> io::Result<()>,
    ) -> Result<(), Trouble> {
        let taken = make(aside).map_err(Trouble::Io).and_then(|()| {
            let (place, look) = self.unchanged(path)?;
            if here.is_none() && look.is_none() { Ok(aside.move_to(&place)?) } else { Ok(aside.replace(&place)?) }
        });
        if taken.is_err() {
            // The trouble that is told is the one before this.
            let _ = aside.remove();
        }
        taken
    }

    fn aside(&mut self, place: &Place) -> io::Result<Place> {
        self.made += 1;
        place.beside(&format!(".hermes-undo-{}-{}", std::process::id(), self.made))
    }

    /// Lets us write to the folder that `path` is in. `false`: it is not ours.
    fn open_up(&mut self, path: &Path) -> bool {
        let Some(folder) = path.parent() else { return false };
        let open = || {
            let place = self.place(folder)?;
            let Some(look) = place.look()? else { return Ok(None) };
            place.set_mode(look.mode | 0o700)?;
            io::Result::Ok(Some(look.mode))
        };
        let Ok(Some(mode)) = open() else { return false };
        self.opened.entry(folder.to_path_buf()).or_insert(mode);
        true
    }

    fn close(&mut self) {
        for (folder, mode) in std::mem::take(&mut self.opened).into_iter().rev() {
            let close = || self.place(&folder)?.set_mode(mode);
            if let Err(error) = close()
                && error.kind() != io::ErrorKind::NotFound
            {
                self.left.push(Left { path: folder, why: format!("its permissions could not be put back: {error}") });
            }
        }
    }
}
