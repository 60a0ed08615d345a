//! The way back from a commit.

use std::io;
use std::path::{Path, PathBuf};

use super::checks::{Conflict, Underneath};
use super::commit::{Progress, finish};
use super::copying::Copier;
use super::journal::{Journal, Line, Plan, Reached};
use super::marker::Marker;
use super::steps::{Bits, Permission, Phase, Site, Step};
use super::{RehearsalError, owner, reason, trouble};
use crate::beneath::Root;

/// What a commit replaced, in a folder of its own. It outlives the process; see [`Undo::open`].
#[derive(Debug)]
pub struct Undo {
    folder: PathBuf,
}

/// What came of a commit that was interrupted.
#[derive(Debug)]
pub enum Recovered {
    /// The workspace is what it was before the commit. The undo folder is gone.
    NotCommitted,
    /// The workspace has all of the changes.
    Committed(Undo),
    /// Taking back was interrupted and is done now. The undo folder is gone.
    TakenBack,
    /// Nothing was left to be done but to remove the undo folder.
    Removed,
}

impl Undo {
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Opens the undo folder of a commit that is done.
    pub fn open(folder: &Path) -> Result<Self, RehearsalError> {
        let undo = Self { folder: folder.canonicalize().map_err(|error| trouble("open", folder, &error))? };
        undo.committed()?;
        Ok(undo)
    }

    /// Ends what was interrupted: a commit goes back if it had not swapped all paths and forward if it had; taking back
    /// goes on. May itself be interrupted and run again.
    ///
    /// For when no process works with this folder any more, and before anybody works on: what was written meanwhile to a
    /// path that is put back is lost.
    pub fn recover(folder: &Path) -> Result<Recovered, RehearsalError> {
        let folder = folder.canonicalize().map_err(|error| trouble("open", folder, &error))?;
        match read(&folder)? {
            Reached::Nothing | Reached::Planned(_) | Reached::Prepared(_) => {
                roll_back(&folder)?;
                Ok(Recovered::NotCommitted)
            }
            Reached::Applied(plan) => {
                let (site, mut journal) = again(&folder, &plan)?;
                site.allow_work(&plan.permissions)?;
                finish(&site, &plan, &mut journal, &mut || {})?;
                Ok(Recovered::Committed(Self { folder }))
            }
            Reached::Committed(..) => Ok(Recovered::Committed(Self { folder })),
            Reached::Looking(plan, _) => {
                let (site, mut journal) = again(&folder, &plan)?;
                close(&site, &plan, plan.permissions.len(), &mut journal)?;
                Ok(Recovered::Committed(Self { folder }))
            }
            Reached::TakingBack(plan) => {
                take_back(&folder, &plan, &mut |_| {})?;
                Ok(Recovered::TakenBack)
            }
            Reached::Over => {
                owner::remove(&folder)?;
                Ok(Recovered::Removed)
            }
        }
    }

    /// The folder to remember for [`Undo::open`].
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The workspace of the commit.
    pub fn workspace(&self) -> Result<PathBuf, RehearsalError> {
        Ok(self.committed()?.0.workspace)
    }

    /// Puts everything back as it was before the commit, and removes the undo folder.
    ///
    /// Refused when something that the commit wrote was changed since.
    pub fn undo(&self) -> Result<(), RehearsalError> {
        self.undo_watched(&mut |_| {})
    }

    /// The same, telling how far it is.
    pub fn undo_watched(&self, watch: &mut dyn FnMut(Progress)) -> Result<(), RehearsalError> {
        let (plan, marker) = self.committed()?;
        let (site, mut journal) = again(&self.folder, &plan)?;
        let conflicts = conflicts(&site, &plan, marker, &mut journal)?;
        if !conflicts.is_empty() {
            return Err(RehearsalError::Underneath { undoing: true, conflicts });
        }
        journal.write(&Line::TakingBack).map_err(|error| trouble("write to", &self.folder, &error))?;
        take_back(&self.folder, &plan, watch)
            .map_err(|error| RehearsalError::Unfinished { why: reason(&error), undo: self.folder.clone() })
    }

    /// Gives up the way back and removes what was kept for it.
    pub fn discard(self) -> Result<(), RehearsalError> {
        over(&self.folder)
    }

    fn committed(&self) -> Result<(Plan, Marker), RehearsalError> {
        let why = match read(&self.folder)? {
            Reached::Committed(plan, marker) => return Ok((plan, marker)),
            Reached::Nothing | Reached::Over => "it is empty or was taken back already",
            Reached::TakingBack(_) | Reached::Looking(..) => "taking back was interrupted; recover it",
            Reached::Planned(_) | Reached::Prepared(_) | Reached::Applied(_) => {
                "its commit was interrupted; recover it first"
            }
        };
        Err(RehearsalError::NoUndo { undo: self.folder.clone(), why: why.to_owned() })
    }
}

fn read(folder: &Path) -> Result<Reached, RehearsalError> {
    Journal::read(folder).map_err(|error| trouble("read the journal in", folder, &error))
}

/// Comes back to a commit, perhaps in another process.
fn again(folder: &Path, plan: &Plan) -> Result<(Site, Journal), RehearsalError> {
    let failed = |path: &Path, error: &io::Error| trouble("open", path, error);
    let workspace = Root::open(&plan.workspace).map_err(|error| failed(&plan.workspace, &error))?;
    let look = workspace.itself().map_err(|error| failed(&plan.workspace, &error))?;
    if (look.dev, look.ino) != plan.identity {
        let why = format!("{} is another folder than at the commit", super::render::name(&plan.workspace));
        return Err(RehearsalError::NoUndo { undo: folder.to_path_buf(), why });
    }
    let undo = Root::open(folder).map_err(|error| failed(folder, &error))?;
    let journal = Journal::reopen(folder).map_err(|error| failed(folder, &error))?;
    Ok((Site { workspace, undo, moves: plan.moves, flush: plan.flush }, journal))
}

/// Brings the workspace back from a commit that had not swapped everything, and removes the undo folder. Says whether
/// that was so: otherwise nothing is done, as the only way is forward.
pub(super) fn roll_back(folder: &Path) -> Result<bool, RehearsalError> {
    match read(folder)? {
        Reached::Planned(plan) => restore_all(folder, &plan, Phase::Building, &mut |_| {})?,
        Reached::Prepared(plan) => restore_all(folder, &plan, Phase::Swapping, &mut |_| {})?,
        Reached::Nothing => {}
        Reached::Applied(_)
        | Reached::Committed(..)
        | Reached::Looking(..)
        | Reached::TakingBack(_)
        | Reached::Over => return Ok(false),
    }
    over(folder)?;
    Ok(true)
}

fn take_back(folder: &Path, plan: &Plan, watch: &mut dyn FnMut(Progress)) -> Result<(), RehearsalError> {
    restore_all(folder, plan, Phase::Done, watch)?;
    over(folder)
}

fn restore_all(
    folder: &Path,
    plan: &Plan,
    phase: Phase,
    watch: &mut dyn FnMut(Progress),
) -> Result<(), RehearsalError> {
    let (site, _) = again(folder, plan)?;
    site.allow_work(&plan.permissions)?;
    let mut copier = Copier::new(&site.undo, &site.workspace).flushing(plan.flush);
    for (number, step) in plan.steps.iter().enumerate().rev() {
        watch(Progress { done: plan.steps.len() - number, of: plan.steps.len() });
        site.restore(number, step, phase, &mut copier)?;
    }
    site.flush(&plan.steps)?;
    site.set_all(&plan.permissions, |permission| Some(permission.before))
}

/// Marks a folder as rubbish, so that an interrupted removal is not mistaken for something to take back.
fn over(folder: &Path) -> Result<(), RehearsalError> {
    let mark = || Journal::reopen(folder)?.write(&Line::Over);
    match mark() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(trouble("write to", folder, &error)),
        _ => {}
    }
    owner::remove(folder)
}

/// What was changed since the commit.
///
/// The command may have closed a folder to its owner, who then has to open it to look into it. So folders are opened one
/// after the other, outer ones first, and closed again when there is a conflict.
fn conflicts(site: &Site, plan: &Plan, marker: Marker, journal: &mut Journal) -> Result<Vec<Conflict>, RehearsalError> {
    let (mut found, mut opened) = (Vec::new(), 0);
    let is_closed = |permission: &Permission| permission.is_folder && permission.after.mode & 0o700 != 0o700;
    let is_noted = plan.permissions.iter().any(is_closed);
    if is_noted {
        journal.write(&Line::Looking).map_err(|error| trouble("write to", site.undo.path(), &error))?;
    }
    let looked = look_for_conflicts(site, plan, marker, &mut found, &mut opened);
    if is_noted && (looked.is_err() || !found.is_empty()) {
        close(site, plan, opened, journal)?;
    }
    looked?;
    found.sort_by(|left, right| left.path.as_os_str().cmp(right.path.as_os_str()));
    Ok(found)
}

/// Closes folders that were opened to look into them: the first so many of a plan, those that are still the same.
fn close(site: &Site, plan: &Plan, opened: usize, journal: &mut Journal) -> Result<(), RehearsalError> {
    let was_opened = |permission: &Permission| {
        let look = site.workspace.look(&permission.path).ok().flatten();
        look.is_some_and(|look| look.ino == permission.ino && look.mode == permission.after.mode | 0o700)
    };
    site.set_all(&plan.permissions[..opened], |permission| {
        (permission.is_folder && was_opened(permission)).then_some(permission.after)
    })?;
    journal.write(&Line::Looked).map_err(|error| trouble("write to", site.undo.path(), &error))
}

fn look_for_conflicts(
    site: &Site,
    plan: &Plan,
    marker: Marker,
    found: &mut Vec<Conflict>,
    opened: &mut usize,
) -> Result<(), RehearsalError> {
    let failed = |path: &Path, error: io::Error| trouble("check", &plan.workspace.join(path), &error);
    for permission in &plan.permissions {
        let what = match site.workspace.look(&permission.path).map_err(|error| failed(&permission.path, error))? {
            None => Some(Underneath::Deleted),
            Some(look) if look.ino != permission.ino => Some(Underneath::Replaced),
            Some(look) if Bits::of(&look) != permission.after => Some(Underneath::Changed),
            // A folder's time tells of what is in it as well.
            Some(look) if !look.is_folder() && marker.is_before(&look) => Some(Underneath::Changed),
            Some(_) => None,
        };
        if let Some(what) = what {
            found.push(Conflict { path: permission.path.clone(), what });
            return Ok(());
        }
        site.allow_work(std::slice::from_ref(permission))?;
        *opened += 1;
    }
    for step in &plan.steps {
        check(site, step, marker, found).map_err(|error| failed(&step.path, error))?;
    }
    Ok(())
}

fn check(site: &Site, step: &Step, marker: Marker, found: &mut Vec<Conflict>) -> io::Result<()> {
    let mut add = |path: &Path, what| found.push(Conflict { path: path.to_path_buf(), what });
    let parent = step.path.parent().unwrap_or(Path::new(""));
    if !site.workspace.look(parent)?.is_some_and(|look| look.is_folder()) {
        add(&step.path, Underneath::FolderReplaced);
        return Ok(());
    }
    let present = site.workspace.look(&step.path)?;
    match (present, step.makes) {
        (None, false) => {}
        (Some(_), false) => add(&step.path, Underneath::Appeared),
        (None, true) => add(&step.path, Underneath::Deleted),
        (Some(look), true) if Some(look.ino) != step.new => add(&step.path, Underneath::Replaced),
        (Some(look), true) => {
            let mut looks = vec![(step.path.clone(), look)];
            while let Some((path, look)) = looks.pop() {
                if marker.is_before(&look) {
                    add(&path, Underneath::Changed);
                }
                if look.is_folder() {
                    let children = match site.workspace.children(&path) {
                        // The command took its own permissions away; then the folder's own time has to do.
                        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
                        children => children?,
                    };
                    looks.extend(children.into_iter().map(|(name, look)| (path.join(name), look)));
                }
            }
        }
    }
    Ok(())
}
