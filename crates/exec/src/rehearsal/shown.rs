//! What was shown of a stage: a commit carries over that and nothing else.
//!
//! The command has ended, but nobody locks its stand-in, and a process that got away could go on writing there while a
//! person reads what they are asked about. So the changes that were shown are the ones that are applied, and whatever a
//! commit reads in the stand-in must carry the change times that it had before anybody looked at it.

use super::compare::{Compared, compare};
use super::loosen::Loosened;
use super::marker::{Known, Marker, Memory};
use super::{RehearsalError, Stage, trouble};

/// A look at a stage. What it found can be read for as long as this lives.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) modes: Loosened,
    seen: Known,
    pub(super) compared: Compared,
}

impl Shown {
    pub(super) fn of(stage: &Stage) -> Result<Self, RehearsalError> {
        let failed = |error| trouble("read", stage.view.path(), &error);
        let modes = Loosened::new(stage.view.again().map_err(failed)?);
        let seen = Known::take(&stage.view, usize::MAX).map_err(failed)?;
        // Contents are read when the clock has moved on: what is written meanwhile is noticed, and not taken for seen.
        Marker::take(&stage.view, &stage.folder).map_err(failed)?;
        let compared = compare(stage, &modes)?;
        Ok(Self { modes, seen, compared })
    }

    /// Refused when something that a commit takes from the stand-in is not what was shown.
    pub(super) fn is_still_so(&self, stage: &Stage) -> Result<(), RehearsalError> {
        // New permissions are not read again. Anything else that was shown is, with all that a new folder holds; of a
        // deletion only that it is one, since all whiteouts of an overlay are names of one file with one time.
        let read_again = self.compared.entries.iter().filter(|entry| !entry.in_place);
        let read_again = read_again.map(|entry| (&entry.path, entry.new.is_none()));
        for (path, is_deletion) in read_again.chain(self.compared.unchanged.values().map(|path| (path, false))) {
            let look = stage.view.look(path).map_err(|error| trouble("check", path, &error))?;
            let is_same = match (self.seen.get(path), look) {
                (Memory::There(seen), Some(look)) => seen.is(&look) && (is_deletion || seen.ctime == look.ctime),
                (Memory::NotThere, None) => true,
                _ => false,
            };
            if !is_same {
                return Err(RehearsalError::NotAsShown { path: path.clone() });
            }
        }
        Ok(())
    }
}
