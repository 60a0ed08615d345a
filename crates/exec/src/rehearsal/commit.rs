//! Carrying changes over into the workspace.
//!
//! Four phases with a line of the journal between them: *build* everything new under temporary names (slow, harmless),
//! *swap* path by path (renames only, quick), *settle* what was replaced into the undo folder, and note the moment. Until
//! all is swapped an error or a stop goes back; afterwards the only way is forward.

use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use rustix::fs::{AtFlags, StatxFlags};

use super::changes::{Change, Changes, Entry, Kind, Totals};
use super::checks::{conflicts, hindrance, outermost};
use super::copying::Copier;
use super::journal::{Journal, Line, Plan};
use super::marker::Marker;
use super::shown::Shown;
use super::steps::{Bits, Flush, Permission, SAVED, Site, Step};
use super::undo::{Undo, roll_back};
use super::{RehearsalError, Stage, owner, reason, trouble};
use crate::beneath::Root;

/// A commit that is done.
#[derive(Debug)]
#[must_use = "it can be taken back, or its undo folder discarded"]
pub struct Committed {
    /// The way back.
    pub undo: Undo,
    /// What was carried over.
    pub applied: Totals,
}

/// How far a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Steps that are done.
    pub done: usize,
    /// Steps in all.
    pub of: usize,
}

pub(super) fn commit(
    stage: &Stage,
    shown: &Shown,
    undo_base: &Path,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Committed, RehearsalError> {
    let base = undo_base.canonicalize().map_err(|error| trouble("open", undo_base, &error))?;
    let workspace = stage.workspace.path();
    let compared = &shown.compared;
    // It may lie in the workspace, as long as nothing is to be done to it or to a folder that holds it.
    if let Ok(within) = base.strip_prefix(workspace)
        && compared.entries.iter().any(|entry| entry.path.starts_with(within) || within.starts_with(&entry.path))
    {
        return Err(RehearsalError::BaseInside { workspace: workspace.to_path_buf(), base });
    }
    let found = conflicts(stage, compared)?;
    if !found.is_empty() {
        return Err(RehearsalError::Underneath { undoing: false, conflicts: found });
    }
    shown.is_still_so(stage)?;
    let applied = Changes::new(compared.entries.clone()).totals;
    let flush = Flush::of(compared.entries.len() as u64 + applied.files_deleted + applied.folders_deleted);
    let failed = |error: io::Error| trouble("make an undo folder in", &base, &error);
    let folder = owner::private_folder(&base, "undo-").map_err(failed)?.keep();
    let done = prepare_site(stage, &folder, flush).map_err(failed).and_then(|(site, journal)| {
        let mut work = Work { stage, shown, site, journal, watch, done: 0, of: 0 };
        work.run(&folder)
    });
    match done {
        Ok(()) => Ok(Committed { undo: Undo::at(folder), applied }),
        Err(error) => Err(back(&folder, &error)),
    }
}

fn prepare_site(stage: &Stage, folder: &Path, flush: Flush) -> io::Result<(Site, Journal)> {
    std::fs::create_dir(folder.join(SAVED))?;
    let workspace = stage.workspace.again()?;
    let (now, then) = (Root::open(workspace.path())?.itself()?, workspace.itself()?);
    if (now.dev, now.ino) != (then.dev, then.ino) {
        return Err(io::Error::other("the workspace is another folder than the one that was rehearsed"));
    }
    let undo = Root::open(folder)?;
    // Whoever looks for what is to be recovered after a crash must find the folder.
    rustix::fs::fsync(Root::open(folder.parent().unwrap_or(folder))?.descriptor())?;
    let mount = |root: &Root| rustix::fs::statx(root.descriptor(), "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
    // The same device seen through two mounts does not do: names cannot move between mounts.
    let same_mount = mount(&workspace)?.stx_mnt_id == mount(&undo)?.stx_mnt_id;
    let moves = same_mount && now.dev == undo.itself()?.dev;
    Ok((Site { workspace, undo, moves, flush }, Journal::create(folder)?))
}

/// Puts everything back after an error; says what came of that.
fn back(folder: &Path, error: &RehearsalError) -> RehearsalError {
    let why = match error {
        RehearsalError::PutBack { why } => why.clone(),
        error => reason(error),
    };
    match roll_back(folder) {
        Ok(true) => RehearsalError::PutBack { why },
        Ok(false) => RehearsalError::Unsettled { why, undo: folder.to_path_buf() },
        Err(then) => RehearsalError::Half { why, then: reason(&then), undo: folder.to_path_buf() },
    }
}

struct Work<'a, 'w> {
    stage: &'a Stage,
    shown: &'a Shown,
    site: Site,
    journal: Journal,
    watch: &'w mut dyn FnMut(Progress) -> ControlFlow<()>,
    done: usize,
    of: usize,
}

impl Work<'_, '_> {
    fn run(&mut self, folder: &Path) -> Result<(), RehearsalError> {
        let (mut plan, made_of) = self.plan(folder)?;
        // One more before each line of the journal.
        self.of = plan.steps.len() * 3 + 4;
        self.note(&Line::Plan(plan.clone()))?;
        self.next()?;
        self.build(&mut plan, &made_of)?;
        // What was built cannot be reached from the stand-in, so this look is the last that is needed.
        self.is_as_shown()?;
        self.site.flush(&plan.steps)?;
        self.next()?;
        self.note(&Line::Prepared { new: plan.steps.iter().map(|step| step.new).collect() })?;
        // All before the first swap: one gives a new change time to the other names of the same file.
        for (step, entry) in plan.steps.iter().zip(&made_of) {
            self.is_still(step, entry)?;
        }
        for step in &plan.steps {
            self.next()?;
            self.site.swap(step)?;
        }
        // Files get their permissions while there is a way back; folders when nothing has to be reached through them.
        let of_files = |permission: &Permission| (!permission.is_folder).then_some(permission.after);
        self.site.set_all(&plan.permissions, of_files)?;
        self.site.flush(&plan.steps)?;
        self.next()?;
        self.note(&Line::Applied)?;
        finish(&self.site, &plan, &mut self.journal, &mut || {
            self.done += 1;
            // There is no going back from here, so nobody is asked whether to.
            let _ = (self.watch)(Progress { done: self.done, of: self.of });
        })
    }

    fn is_as_shown(&self) -> Result<(), RehearsalError> {
        self.shown.is_still_so(self.stage).map_err(|error| match error {
            RehearsalError::NotAsShown { path } => {
                let name = super::render::name(&path);
                RehearsalError::PutBack { why: format!("{name} changed in the stand-in at the last moment") }
            }
            error => error,
        })
    }

    fn note(&mut self, line: &Line) -> Result<(), RehearsalError> {
        self.journal.write(line).map_err(|error| trouble("write to", self.site.undo.path(), &error))
    }

    fn next(&mut self) -> Result<(), RehearsalError> {
        self.done += 1;
        match (self.watch)(Progress { done: self.done, of: self.of }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RehearsalError::PutBack { why: "stopped".to_owned() }),
        }
    }

    /// The steps, and the entry that each comes from.
    fn plan(&self, folder: &Path) -> Result<(Plan, Vec<Entry>), RehearsalError> {
        let workspace = &self.site.workspace;
        let failed = |path: &Path, error: io::Error| trouble("read", &workspace.path().join(path), &error);
        let stem = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (mut steps, mut made_of, mut permissions) = (Vec::new(), Vec::new(), Vec::<Permission>::new());
        for entry in outermost(&self.shown.compared.entries) {
            let look = workspace.look(&entry.path).map_err(|error| failed(&entry.path, error))?;
            if entry.in_place {
                if let (Some(look), Some(new)) = (look, &entry.new) {
                    let after = Bits { mode: new.mode, uid: new.uid, gid: new.gid };
                    let (path, ino, before) = (entry.path.clone(), look.ino, Bits::of(&look));
                    permissions.push(Permission { path, ino, before, after, is_folder: look.is_folder() });
                }
                continue;
            }
            let temporary = format!(".hermes-{stem}-{}", steps.len());
            let makes = entry.new.is_some();
            let old = look.map(|look| look.ino);
            steps.push(Step { path: entry.path.clone(), temporary, old, makes, new: None });
            made_of.push(entry.clone());
        }
        let mut parents = HashSet::new();
        for step in &steps {
            let parent = step.path.parent().unwrap_or(Path::new(""));
            if !parents.insert(parent) || permissions.iter().any(|permission| permission.path == parent) {
                continue;
            }
            let look = workspace.look(parent).map_err(|error| failed(parent, error))?;
            if let Some(look) = look.filter(|look| look.mode & 0o300 != 0o300) {
                let (path, ino, bits) = (parent.to_path_buf(), look.ino, Bits::of(&look));
                permissions.push(Permission { path, ino, before: bits, after: bits, is_folder: true });
            }
        }
        // A folder before what it holds.
        permissions.sort_by(|left, right| left.path.cmp(&right.path));
        let identity = workspace.itself().map_err(|error| failed(Path::new(""), error))?;
        let identity = (identity.dev, identity.ino);
        let workspace = workspace.path().to_path_buf();
        Ok((Plan { workspace, identity, moves: self.site.moves, flush: self.site.flush, steps, permissions }, made_of))
    }

    fn build(&mut self, plan: &mut Plan, made_of: &[Entry]) -> Result<(), RehearsalError> {
        let Self { stage, shown, .. } = *self;
        self.site.allow_work(&plan.permissions)?;
        let again = |root: &Root| root.again().map_err(|error| trouble("open", root.path(), &error));
        let (from, to) = (again(&self.site.workspace)?, again(&self.site.undo)?);
        let mut keeper = Copier::new(&from, &to).flushing(plan.flush);
        let mut builder = Copier::out_of_stage(&stage.view, &from, &shown.modes).flushing(plan.flush);
        for ((dev, ino), path) in &shown.compared.unchanged {
            builder.is_already(*dev, *ino, path.clone());
        }
        for (number, (step, entry)) in plan.steps.iter_mut().zip(made_of).enumerate() {
            self.next()?;
            self.site.save(number, step, &mut keeper)?;
            if !step.makes {
                continue;
            }
            let temporary = step.temporary_path();
            builder.entry(&step.path, &temporary)?;
            let made = from.look(&temporary).and_then(|look| {
                let look = look.ok_or(rustix::io::Errno::NOENT)?;
                if let Some(new) = &entry.new
                    && (look.uid, look.gid) != (new.uid, new.gid)
                {
                    from.place(&temporary)?.set_owner(new.uid, new.gid)?;
                    if new.kind != Kind::Link {
                        from.place(&temporary)?.set_mode(new.mode)?;
                    }
                }
                Ok(look.ino)
            });
            step.new = Some(made.map_err(|error| trouble("write", &from.path().join(&step.path), &error))?);
        }
        Ok(())
    }

    /// Looks once more right before the swaps. What somebody manages to write after this look ends up in the undo folder.
    fn is_still(&self, step: &Step, entry: &Entry) -> Result<(), RehearsalError> {
        let failed = |error| trouble("read", &self.site.workspace.path().join(&step.path), &error);
        let look = self.site.workspace.look(&step.path).map_err(failed)?;
        let conflict = match (look, entry.change) {
            (None, Change::Added) => None,
            (look, _) if look.map(|look| look.ino) != step.old => hindrance(self.stage, &step.path, look.as_ref())
                .or(Some(super::Conflict { path: step.path.clone(), what: super::Underneath::Replaced })),
            // A file of several names may have got one more from us meanwhile, and a new change time with it.
            (Some(look), _) if look.links > 1 && !look.is_folder() => None,
            (look, _) => hindrance(self.stage, &step.path, look.as_ref()),
        };
        match conflict {
            None => Ok(()),
            Some(conflict) => {
                let name = super::render::name(&conflict.path);
                Err(RehearsalError::PutBack { why: format!("{name} {} at the last moment", conflict.what) })
            }
        }
    }
}

/// From the moment when all is swapped to the end. May be interrupted and run again.
pub(super) fn finish(
    site: &Site,
    plan: &Plan,
    journal: &mut Journal,
    tell: &mut dyn FnMut(),
) -> Result<(), RehearsalError> {
    for (number, step) in plan.steps.iter().enumerate() {
        tell();
        site.settle(number, step)?;
    }
    site.flush(&plan.steps)?;
    site.set_all(&plan.permissions, |permission| permission.is_folder.then_some(permission.after))?;
    tell();
    let failed = |error: io::Error| trouble("write to", site.undo.path(), &error);
    let marker = Marker::take(&site.workspace, site.undo.path()).map_err(failed)?;
    journal.write(&Line::Committed { marker }).map_err(failed)
}
