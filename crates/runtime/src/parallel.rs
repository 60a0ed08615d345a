//! Which calls of one turn may overlap, and the board on which they wait for one another.
//!
//! Two calls may run side by side unless one changes what the other touches. Where they may not, the order of the calls
//! decides, so a read after a write sees what was written. A call that does not say what it touches runs alone.
//!
//! The tricky idea: nobody plans ahead. Each call claims its place when it knows its own footprint and waits for the
//! *earlier* calls that conflict, and for *later* ones that already run. A hook that rewrites a call's arguments simply
//! makes it claim again. Nobody who waits is waited for by a later call that runs, so there is no deadlock.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_core::{Environment, Touches};
use tokio::sync::Notify;

/// At most this many calls of a turn run at the same time (spec agent §4.6).
pub const MOST_AT_ONCE: usize = 8;

/// What a call reaches, as far as other calls are concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Footprint {
    /// Nothing that another call could change or see changed.
    Nothing,
    /// These files and folders; a folder stands for everything below it.
    Paths {
        /// Read.
        reads: Vec<PathBuf>,
        /// Created, changed or removed.
        writes: Vec<PathBuf>,
    },
    /// It cannot be said, so it may be anything.
    #[default]
    Anything,
}

impl Footprint {
    /// The footprint of a call that touches `touches`, with links followed, so that two names of one file are one file.
    /// A path that cannot be followed may be anything. Upper and lower case count as one, because on some file systems they
    /// are: where they are not, somebody waits for nothing.
    pub async fn of(touches: &Touches, environment: &dyn Environment) -> Self {
        if touches.command.is_some() {
            return Self::Anything;
        }
        if touches.reads.is_empty() && touches.writes.is_empty() {
            return Self::Nothing;
        }
        match (real(&touches.reads, environment).await, real(&touches.writes, environment).await) {
            (Some(reads), Some(writes)) => Self::Paths { reads, writes },
            _ => Self::Anything,
        }
    }

    /// Of a call that reads, and does not say what.
    pub fn reading_anything() -> Self {
        Self::Paths { reads: vec![PathBuf::from("/")], writes: Vec::new() }
    }

    /// Whether the two must not run side by side.
    pub fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => false,
            (Self::Anything, _) | (_, Self::Anything) => true,
            (Self::Paths { reads: r1, writes: w1 }, Self::Paths { reads: r2, writes: w2 }) => {
                meet(w1, w2) || meet(w1, r2) || meet(r1, w2)
            }
        }
    }
}

async fn real(paths: &[PathBuf], environment: &dyn Environment) -> Option<Vec<PathBuf>> {
    let mut real = Vec::with_capacity(paths.len());
    for path in paths {
        let path = environment.real_path(path).await.ok()?;
        real.push(PathBuf::from(path.to_string_lossy().to_lowercase()));
    }
    Some(real)
}

fn meet(some: &[PathBuf], others: &[PathBuf]) -> bool {
    let overlap = |a: &Path, b: &Path| a.starts_with(b) || b.starts_with(a);
    some.iter().any(|a| others.iter().any(|b| overlap(a, b)))
}

/// The calls of one turn and how far each of them is.
#[derive(Debug)]
pub struct Board {
    slots: Mutex<Vec<Slot>>,
    /// The calls about which nobody will be asked any more.
    decided: Mutex<HashSet<usize>>,
    moved: Notify,
    most: usize,
}

#[derive(Debug)]
enum Slot {
    /// It has not said what it touches.
    Unknown,
    Waiting(Footprint),
    Running(Footprint),
    Done,
}

impl Board {
    /// For `calls` calls, of which at most `most` run at the same time.
    pub fn new(calls: usize, most: usize) -> Self {
        let slots = std::iter::repeat_with(|| Slot::Unknown).take(calls).collect();
        Self { slots: Mutex::new(slots), decided: Mutex::default(), moved: Notify::new(), most: most.max(1) }
    }

    /// Waits until call number `index` may run, which it then does until [`Board::done`]. May be called again with
    /// another footprint.
    pub async fn claim(&self, index: usize, footprint: Footprint) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // From here on no notification is missed.
            moved.as_mut().enable();
            if self.try_claim(index, &footprint) {
                return;
            }
            moved.await;
        }
    }

    /// Waits until a person may be asked about call number `index`: after they were asked about the earlier calls that run,
    /// so that questions come in the order of the calls. An earlier call that waits for something is not waited for.
    pub async fn turn_to_ask(&self, index: usize) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            let undecided = {
                let decided = self.decided.lock().unwrap_or_else(PoisonError::into_inner);
                let slots = self.slots();
                (0..index).any(|earlier| matches!(slots[earlier], Slot::Running(_)) && !decided.contains(&earlier))
            };
            if !undecided {
                return;
            }
            moved.await;
        }
    }

    /// Nobody will be asked about call number `index` any more.
    pub fn decided(&self, index: usize) {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner).insert(index);
        self.moved.notify_waiters();
    }

    /// Call number `index` runs no more, or never will.
    pub fn done(&self, index: usize) {
        if let Some(slot) = self.slots().get_mut(index) {
            *slot = Slot::Done;
        }
        self.moved.notify_waiters();
    }

    fn try_claim(&self, index: usize, footprint: &Footprint) -> bool {
        let mut slots = self.slots();
        let Some(slot) = slots.get_mut(index) else { return true };
        // Whoever claims again does not run meanwhile; that, too, may set others free.
        let was_waiting = matches!(slot, Slot::Waiting(before) if before == footprint);
        *slot = Slot::Waiting(footprint.clone());
        let may_run = may_run(&slots, index, footprint, self.most);
        if may_run {
            slots[index] = Slot::Running(footprint.clone());
        }
        drop(slots);
        if !was_waiting {
            self.moved.notify_waiters();
        }
        may_run
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn may_run(slots: &[Slot], index: usize, footprint: &Footprint, most: usize) -> bool {
    let running = slots.iter().filter(|slot| matches!(slot, Slot::Running(_))).count();
    running < most
        && slots.iter().enumerate().all(|(other, slot)| match slot {
            Slot::Done => true,
            Slot::Unknown => other >= index || *footprint == Footprint::Nothing,
            Slot::Waiting(theirs) => other >= index || !footprint.conflicts(theirs),
            Slot::Running(theirs) => !footprint.conflicts(theirs),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(reads: &[&str], writes: &[&str]) -> Footprint {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        Footprint::Paths { reads: paths(reads), writes: paths(writes) }
    }

    #[test]
    fn only_a_change_conflicts_and_a_folder_stands_for_what_is_in_it() {
        for (a, b, conflict) in [
            (paths(&["/a"], &[]), paths(&["/a"], &[]), false),
            (paths(&["/a"], &[]), paths(&[], &["/a"]), true),
            (paths(&[], &["/a"]), paths(&[], &["/b"]), false),
            (paths(&["/src"], &[]), paths(&[], &["/src/x/y.rs"]), true),
            (paths(&[], &["/src/x"]), paths(&["/src/x1"], &[]), false),
            (Footprint::Anything, paths(&["/a"], &[]), true),
            (Footprint::Anything, Footprint::Anything, true),
            (Footprint::Nothing, Footprint::Anything, false),
        ] {
            assert_eq!(a.conflicts(&b), conflict, "{a:?} {b:?}");
            assert_eq!(b.conflicts(&a), conflict, "{b:?} {a:?}");
        }
    }

    #[test]
    fn a_call_waits_for_earlier_ones_that_have_not_said_what_they_touch() {
        let board = Board::new(3, 8);
        assert!(!board.try_claim(1, &paths(&["/a"], &[])));
        assert!(board.try_claim(2, &Footprint::Nothing));
        assert!(board.try_claim(0, &paths(&["/a"], &[])));
        assert!(board.try_claim(1, &paths(&["/a"], &[])));
    }

    #[test]
    fn who_claims_again_waits_for_later_ones_that_run_and_not_for_those_that_wait() {
        let board = Board::new(3, 8);
        assert!(board.try_claim(0, &paths(&["/a"], &[])));
        assert!(board.try_claim(1, &paths(&["/b"], &[])));
        // A hook made the first call write where the second one reads.
        assert!(!board.try_claim(0, &paths(&[], &["/b"])));
        // And the second one claims again too: it has to let the earlier one go first.
        assert!(!board.try_claim(1, &paths(&["/b", "/c"], &[])));
        assert!(board.try_claim(0, &paths(&[], &["/b"])));
        board.done(0);
        assert!(board.try_claim(1, &paths(&["/b", "/c"], &[])));
    }

    #[test]
    fn no_more_than_the_limit_run_at_once() {
        let board = Board::new(3, 2);
        assert!(board.try_claim(0, &Footprint::Nothing) && board.try_claim(1, &Footprint::Nothing));
        assert!(!board.try_claim(2, &Footprint::Nothing));
        board.done(0);
        assert!(board.try_claim(2, &Footprint::Nothing));
    }
}
