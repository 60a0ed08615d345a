//! Puts paths back to what a snapshot says they were.
//!
//! Every path is looked at once more right before it is touched: what changed after it was kept is left alone and said.
//! Paths are reached through held folders and never through links ([`crate::beneath`]), and a content takes its place in one
//! step, so that whatever happens a file is the old one or the new one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
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
        let said = match (target.at(&path), now.at(&path)) {
            (Known::Nothing, _) => Left::stays("nothing is known of it"),
            (_, Known::Nothing) => Left::stays("it cannot be looked at now"),
            (Known::Here(Entry::LeftOut { why, .. }), Known::NotThere) => {
                Left::is_gone(&format!("it was {} then", why.in_words()))
            }
            (Known::Here(Entry::LeftOut { why, .. }), _) => Left::stays(&format!("it was {} then", why.in_words())),
            (_, Known::Here(Entry::LeftOut { why, .. })) => {
                Left::stays(&format!("it is {} now, so there would be no way back", why.in_words()))
            }
            (Known::NotThere, Known::NotThere) => continue,
            (Known::Here(_), Known::Here(entry))
                if target.areas.contains_key(&path) && !matches!(entry, Entry::Folder { .. }) =>
            {
                Left::stays("something else stands in the place of the project")
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
        left.push(Left { path, said });
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

/// What became of the steps.
#[derive(Debug)]
pub(super) struct Applied {
    /// What is as it should be now.
    pub(super) done: Vec<PathBuf>,
    /// What is not.
    pub(super) left: Vec<Left>,
    /// Something is other than before, whether or not it is as it should be.
    pub(super) touched: bool,
    /// Not all steps were taken, because somebody wanted it so.
    pub(super) stopped: bool,
}

/// Takes the steps, until `stop` says so.
pub(super) fn apply(
    steps: &BTreeMap<PathBuf, Step>,
    now: &Snapshot,
    contents: &mut Contents,
    stop: &dyn Fn() -> bool,
) -> Applied {
    let mut work = Work {
        now,
        contents,
        stop,
        stopped: false,
        opened: BTreeMap::new(),
        handled: HashSet::new(),
        folders: BTreeSet::new(),
        begun: HashSet::new(),
        done: Vec::new(),
        failed: HashSet::new(),
        left: Vec::new(),
    };
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
    work.flush();
    let Work { done, left, folders, stopped, .. } = work;
    Applied { touched: !done.is_empty() || !folders.is_empty(), done, left, stopped }
}

struct Work<'a> {
    now: &'a Snapshot,
    contents: &'a mut Contents,
    stop: &'a dyn Fn() -> bool,
    stopped: bool,
    /// Folders that could not be written to and had to be opened, with the mode that they get back.
    opened: BTreeMap<PathBuf, u32>,
    /// Files of which a name went, or the permissions changed, by our own doing: device and number.
    handled: HashSet<(u64, u64)>,
    /// Folders in which something came, went or changed.
    folders: BTreeSet<PathBuf>,
    /// Paths of which the first of two steps is taken.
    begun: HashSet<PathBuf>,
    done: Vec<PathBuf>,
    /// The paths in `left`.
    failed: HashSet<PathBuf>,
    left: Vec<Left>,
}

/// Why a step was not taken.
enum Trouble {
    Stopped,
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
        if self.failed.contains(path) {
            return;
        }
        // What was begun is brought to its end.
        self.stopped |= !self.begun.contains(path) && (self.stop)();
        let is_off = self.stopped && !self.begun.contains(path);
        let mut taken = if is_off { Err(Trouble::Stopped) } else { step(self) };
        if let Err(Trouble::Io(error)) = &taken
            && error.kind() == io::ErrorKind::PermissionDenied
            && self.open_up(path)
        {
            taken = step(self);
        }
        let said = match taken {
            Ok(()) => {
                if is_end {
                    self.done.push(path.to_path_buf());
                } else {
                    self.begun.insert(path.to_path_buf());
                }
                return;
            }
            Err(Trouble::Stopped) => Left::stays("it was stopped before that"),
            Err(Trouble::Changed) => Left::stays("it changed while it was to be put back"),
            Err(Trouble::Inhabited) => Left::stays("something that is not kept is in this folder"),
            Err(Trouble::Io(error)) => Left::is_not_as_before(&error.to_string()),
            Err(Trouble::Store(error)) => Left::is_not_as_before(&error.to_string()),
        };
        self.failed.insert(path.to_path_buf());
        self.left.push(Left { path: path.to_path_buf(), said });
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
            // Another name of the same file was put back before.
            (Some(look), Some(known)) if self.handled.contains(&(known.dev, known.ino)) => {
                Look { links: known.links, ctime: known.ctime, mode: known.mode, ..*look } == *known
            }
            (Some(look), Some(known)) => look == known,
        };
        if is_same { Ok((place, look)) } else { Err(Trouble::Changed) }
    }

    /// Remembers what is about to be our own doing.
    fn handle(&mut self, path: &Path, look: Option<&Look>) {
        self.handled.extend(look.filter(|look| !look.is_folder()).map(|look| (look.dev, look.ino)));
        self.folders.extend(path.parent().map(Path::to_path_buf));
    }

    fn remove(&mut self, path: &Path, is_folder: bool) -> Result<(), Trouble> {
        let (place, look) = match self.unchanged(path) {
            Err(Trouble::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        if look.is_none() {
            return Ok(());
        }
        if !is_folder {
            match place.unlink() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                unlinked => unlinked?,
            }
        } else if !place.remove_empty_folder()? {
            return Err(Trouble::Inhabited);
        }
        self.handle(path, look.as_ref());
        Ok(())
    }

    fn put(&mut self, path: &Path, entry: &Entry) -> Result<(), Trouble> {
        let place = self.place(path)?;
        let here = place.look()?;
        match entry {
            Entry::Folder { .. } => match here {
                Some(look) if look.is_folder() => Ok(()),
                Some(_) => Err(Trouble::Changed),
                None => {
                    place.make_folder()?;
                    self.handle(path, None);
                    Ok(())
                }
            },
            Entry::File { blob, mode } => {
                // Only its permissions are others.
                if let Known::Here(Entry::File { blob: known, .. }) = self.now.at(path)
                    && known == blob
                    && here.is_some()
                {
                    let (place, look) = self.unchanged(path)?;
                    place.set_mode(*mode)?;
                    self.handle(path, look.as_ref());
                    return Ok(());
                }
                let bytes = self.contents.read(*blob).map_err(Trouble::Store)?;
                let before = here.filter(|look| look.kind == Kind::File);
                let attributes = before.and_then(|_| place.attributes().ok()).unwrap_or_default();
                let (aside, mut file) = aside(&place, Place::create)?;
                let dressed = || {
                    // What the folder gives to new files is not what this one had.
                    drop_access_list(&file);
                    file.write_all(&bytes)?;
                    if let Some(look) = here.filter(|look| !look.is_folder()) {
                        // Who may not give files away keeps them.
                        let _ = aside.set_owner(look.uid, look.gid);
                    }
                    // What it has beside its content stays with it, as far as that is possible.
                    for (name, value) in attributes {
                        let _ = aside.set_attribute(&name, &value);
                    }
                    // The last of all: an access list has permissions in it, too.
                    aside.set_mode(*mode)?;
                    file.sync_all()
                };
                let dressed = dressed();
                self.take_place(&aside, path, dressed)
            }
            Entry::Link { blob } => {
                let target = self.contents.read(*blob).map_err(Trouble::Store)?;
                let target: PathBuf = std::ffi::OsString::from_vec(target).into();
                let (aside, ()) = aside(&place, |aside| aside.make_link(&target))?;
                self.take_place(&aside, path, Ok(()))
            }
            Entry::LeftOut { .. } => Ok(()),
        }
    }

    /// Lets what was made beside `path` take its place; `made`: whether it is whole.
    fn take_place(&mut self, aside: &Place, path: &Path, made: io::Result<()>) -> Result<(), Trouble> {
        // What stands aside is ours until it has changed places with what was there.
        let mut is_ours = true;
        let taken = made.map_err(Trouble::Io).and_then(|()| {
            let (place, look) = self.unchanged(path)?;
            match look {
                None => aside.move_to(&place)?,
                Some(look) if aside.exchange(&place)? => {
                    is_ours = false;
                    let taken = aside.look()?.map(|taken| Look { ctime: look.ctime, ..taken });
                    if taken != Some(look) {
                        aside.exchange(&place)?;
                        is_ours = true;
                        return Err(Trouble::Changed);
                    }
                    aside.unlink()?;
                }
                Some(_) => aside.replace(&place)?,
            }
            Ok(look)
        });
        match taken {
            Ok(look) => {
                self.handle(path, look.as_ref());
                Ok(())
            }
            Err(trouble) => {
                // The trouble that is told is the one before this. What somebody else wrote stays, if only beside its place.
                if is_ours {
                    let _ = aside.unlink();
                }
                Err(trouble)
            }
        }
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
                let said = format!("did not get its permissions back: {error}");
                self.left.push(Left { path: folder, said });
            }
        }
    }

    /// Waits until names are on disk, as contents are.
    fn flush(&self) {
        for folder in &self.folders {
            // One that has gone by now holds no names, and a file system that cannot do this does it by itself.
            let _ = self.place(folder).and_then(|place| place.flush());
        }
    }
}

/// Makes something beside `place` under a name that nobody else has.
fn aside<T>(place: &Place, make: impl Fn(&Place) -> io::Result<T>) -> io::Result<(Place, T)> {
    loop {
        let random = RandomState::new().build_hasher().finish();
        let aside = place.beside(&format!(".hermes-undo-{random:016x}"))?;
        match make(&aside) {
            Ok(made) => return Ok((aside, made)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
