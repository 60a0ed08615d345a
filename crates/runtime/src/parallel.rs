//! Which calls of one turn may run side by side.
//!
//! Neighbouring calls that only read (or reach nothing) and say that they may run beside others form a group;
//! everything else is alone. The order never changes, so a read after a write sees what was written.

use std::ops::Range;

/// At most this many calls run at the same time (spec agent §4.6).
pub const MOST_AT_ONCE: usize = 8;

/// Splits `calls` into runs; `may_share` says whether a call may run beside others.
pub fn plan<T>(calls: &[T], may_share: impl Fn(&T) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut open = false;
    for (i, call) in calls.iter().enumerate() {
        let share = may_share(call);
        match runs.last_mut() {
            Some(run) if open && share && run.len() < MOST_AT_ONCE => run.end = i + 1,
            _ => runs.push(i..i + 1),
        }
        open = share;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_join_and_everything_else_stands_alone() {
        let runs = plan(&[1, 1, 0, 0, 1, 1, 1, 0], |share| *share == 1);
        assert_eq!(runs, [0..2, 2..3, 3..4, 4..7, 7..8]);
        assert!(plan(&[] as &[u8], |_| true).is_empty());
    }

    #[test]
    fn a_group_has_a_limit() {
        let lengths: Vec<usize> = plan(&[(); 20], |()| true).iter().map(ExactSizeIterator::len).collect();
        assert_eq!(lengths, [8, 8, 4]);
    }
}
